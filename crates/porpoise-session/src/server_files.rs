//! Files of the server that statements read and write: LOAD DATA, LOAD_FILE, SELECT … INTO.
//!
//! Who uses them needs FILE, and `secure_file_priv` must allow it: NULL, the default, allows no
//! file, a folder those in it, and an empty text all that the server's process may use. A path that
//! isn't absolute begins in the data directory (MySQL 8.4 manual, 8.2.2 and 7.1.8).

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_types::Value;

use crate::check;
use crate::session_state::SessionState;
use crate::shared::Shared;

/// What others may do with a file that a statement makes: its owner's group may read it.
const NEW_FILE_MODE: u32 = 0o640;

/// Opens a file of the server that the session may read.
///
/// # Errors
/// 1045 without FILE, 1290 if `secure_file_priv` doesn't allow it, 13 if it can't be opened.
pub fn open(state: &SessionState, shared: &Shared, path: &[u8]) -> Result<File> {
    let folder = allowed_folder(state, shared)?;
    let path = absolute(shared, path);
    let unreadable = |error| unreadable(&path, &error);
    // Links are followed first, so that none leads out of the folder.
    let real = std::fs::canonicalize(&path).map_err(unreadable)?;
    folder.check(&real)?;
    File::open(&real).map_err(unreadable)
}

/// A file's content, as LOAD_FILE() has it; `None` if the session may not read it, or it is longer
/// than `most` bytes.
pub fn read(state: &SessionState, shared: &Shared, path: &[u8], most: u64) -> Option<Vec<u8>> {
    let file = open(state, shared, path).ok()?;
    // A device has no end.
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > most {
        return None;
    }
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(most + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= most).then_some(content)
}

/// Makes a file that isn't there yet; also returns its path.
///
/// # Errors
/// 1045 without FILE, 1290 if `secure_file_priv` doesn't allow it, 1086 if there is such a file, 1
/// if it can't be made.
pub fn create(state: &SessionState, shared: &Shared, path: &[u8]) -> Result<(File, PathBuf)> {
    let folder = allowed_folder(state, shared)?;
    let path = absolute(shared, path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::file_exists(path.display()));
    };
    let not_made = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::file_exists(path.display()),
        _ => Error::cannot_create_file(path.display(), os_number(&error), os_text(&error)),
    };
    let real = std::fs::canonicalize(parent).map_err(not_made)?;
    folder.check(&real)?;
    let real = real.join(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(NEW_FILE_MODE);
    let file = options.open(&real).map_err(not_made)?;
    Ok((file, real))
}

/// The error of a file that can't be written to: 1021 where the disk is full, 3 otherwise.
pub fn unwritable(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::disk_full(path.display())
        }
        _ => Error::error_on_write(path.display(), os_number(error), os_text(error)),
    }
}

/// Where files may be.
enum AllowedFolder {
    Anywhere,
    Within(PathBuf),
}

impl AllowedFolder {
    fn check(&self, real: &Path) -> Result<()> {
        match self {
            AllowedFolder::Anywhere => Ok(()),
            AllowedFolder::Within(folder) if real.starts_with(folder) => Ok(()),
            AllowedFolder::Within(_) => Err(refused()),
        }
    }
}

fn refused() -> Error {
    Error::read_only_option("--secure-file-priv")
}

fn allowed_folder(state: &SessionState, shared: &Shared) -> Result<AllowedFolder> {
    if !check::has_global(state, Privilege::File) {
        return Err(Error::access_denied(&state.user, &state.host, "YES"));
    }
    let Value::Text(folder) = shared.variables.get("secure_file_priv") else {
        return Err(refused());
    };
    if folder.is_empty() {
        return Ok(AllowedFolder::Anywhere);
    }
    let real = std::fs::canonicalize(folder.as_str()).map_err(|_| refused())?;
    Ok(AllowedFolder::Within(real))
}

fn absolute(shared: &Shared, path: &[u8]) -> PathBuf {
    let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
    if path.is_absolute() {
        return path;
    }
    Path::new(shared.variables.get_text("datadir").as_str()).join(path)
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::cannot_stat(path.display(), os_number(error), os_text(error))
}

fn os_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or_default()
}

/// The system's words for an error, without the number that Rust adds.
fn os_text(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_string()
}
