//! A history's small files: JSON, replaced as a whole.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

fn failed(path: &Path, error: &impl std::fmt::Display) -> Error {
    Error::Results(format!("{}: {error}", path.display()))
}

/// What a file has; nothing, if there is none.
pub(super) fn read<T: DeserializeOwned + Default>(path: &Path) -> Result<T, Error> {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(path, &error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Writes a file beside, which takes the place of the one before: whoever is stopped in the middle
/// leaves that.
pub(super) fn write(path: &Path, what: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(what).map_err(|error| failed(path, &error))?;
    let beside = path.with_added_extension("new");
    std::fs::write(&beside, text + "\n").map_err(|error| failed(&beside, &error))?;
    std::fs::rename(&beside, path).map_err(|error| failed(path, &error))
}
