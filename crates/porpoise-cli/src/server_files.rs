//! Files that a server keeps beside its data: the error log, and the number of its process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of this machine, in the default names of files.
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_string(),
        name => name.to_string(),
    }
}

/// A file's place: a relative path begins in the data folder.
pub fn place(path: &str, data: Option<&Path>) -> PathBuf {
    data.map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
}

/// `log_error`'s file. Each line opens it anew, so that it can be renamed at any time.
pub struct ErrorLog {
    path: PathBuf,
}

impl ErrorLog {
    /// A log at a path.
    ///
    /// # Errors
    /// If it can't be written there.
    pub fn open(path: PathBuf) -> Result<Arc<ErrorLog>, String> {
        let log = ErrorLog { path };
        match log.file() {
            Ok(_) => Ok(Arc::new(log)),
            Err(error) => Err(format!(
                "Could not open file '{}' for error logging: {error}",
                log.path.display()
            )),
        }
    }

    fn file(&self) -> io::Result<File> {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
    }
}

impl Write for &ErrorLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.file()?.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `pid_file`'s file, which is removed when the server ends.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes this process' number to a file.
    ///
    /// # Errors
    /// If it can't be written there.
    pub fn write(path: PathBuf) -> Result<PidFile, String> {
        fs::write(&path, PidFile::content()).map_err(|error| {
            let path = path.display();
            format!("Can't start server: can't create PID file '{path}': {error}")
        })?;
        Ok(PidFile { path })
    }

    fn content() -> String {
        format!("{}\n", std::process::id())
    }
}

impl std::fmt::Display for PidFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another server may have written its own number since.
        let is_ours = fs::read_to_string(&self.path).is_ok_and(|it| it == PidFile::content());
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("can't remove '{}': {error}", self.path.display());
        }
    }
}
