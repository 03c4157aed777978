//! What SET PERSIST keeps for the next start: the file `mysqld-auto.cnf` of the data folder, in the
//! form that MySQL gives it (8.4 manual, 7.1.9.3).
//!
//! ```text
//! {"Version": 2, "mysql_dynamic_variables": {"max_connections": {"Value": "99", "Metadata":
//!   {"Host": "localhost", "User": "root", "Timestamp": 1795497709229009}}}}
//! ```
//!
//! It is read before the store is opened, and counts more than options do.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::{VARIABLES, find};
use serde::{Deserialize, Serialize};

const FILE: &str = "mysqld-auto.cnf";
const STATIC: &str = "mysql_static_variables";
const DYNAMIC: &str = "mysql_dynamic_variables";
/// Groups of the file, any of which may name variables. What MySQL encrypts isn't read.
const GROUPS: &[&str] = &[
    STATIC,
    DYNAMIC,
    "mysql_static_parse_early_variables",
    "mysql_dynamic_parse_early_variables",
];
const VERSION: u64 = 2;

/// A variable's value for the next start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persisted {
    /// As an option's value.
    #[serde(rename = "Value")]
    pub value: String,
    /// Who has set it, and when.
    #[serde(rename = "Metadata")]
    pub metadata: Metadata,
}

/// Who has set a value, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Where they came from.
    #[serde(rename = "Host")]
    pub host: String,
    /// Their name.
    #[serde(rename = "User")]
    pub user: String,
    /// In UTC microseconds since 1970.
    #[serde(rename = "Timestamp")]
    pub at_us: i64,
}

type Values = BTreeMap<String, Persisted>;

/// The persisted variables of a database.
#[derive(Debug, Default)]
pub struct PersistedVariables {
    /// `None` for a database in memory, which forgets them with everything else.
    folder: Option<PathBuf>,
    values: Mutex<Values>,
}

impl PersistedVariables {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// If it can't be read, or isn't what it should be.
    pub fn read(folder: Option<&Path>) -> Result<PersistedVariables> {
        let mut values = Values::new();
        if let Some(folder) = folder {
            let path = folder.join(FILE);
            match std::fs::read(&path) {
                Ok(bytes) => {
                    values = parse(&bytes).ok_or_else(|| {
                        let error = io::Error::other("it is no file of persisted variables");
                        io_error("read", &path, error)
                    })?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_error("read", &path, error)),
            }
        }
        Ok(PersistedVariables {
            folder: folder.map(Path::to_path_buf),
            values: Mutex::new(values),
        })
    }

    /// None, whatever the file has: the next change replaces it.
    pub fn none(folder: Option<&Path>) -> PersistedVariables {
        PersistedVariables {
            folder: folder.map(Path::to_path_buf),
            values: Mutex::default(),
        }
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<(String, String)> {
        let values = self.values.lock();
        let pairs = values.iter();
        pairs
            .map(|(name, persisted)| (name.clone(), persisted.value.clone()))
            .collect()
    }

    /// Keeps a value, durably.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn put(&self, name: &str, persisted: Persisted) -> Result<()> {
        self.change(|values| {
            values.insert(name.to_owned(), persisted);
        })
    }

    /// Forgets the value of a variable, durably. Whether there was one.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn remove(&self, name: &str) -> Result<bool> {
        if !self.values.lock().contains_key(name) {
            return Ok(false);
        }
        self.change(|values| {
            values.remove(name);
        })?;
        Ok(true)
    }

    /// Forgets all of them, durably.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn clear(&self) -> Result<()> {
        self.change(Values::clear)
    }

    fn change(&self, change: impl FnOnce(&mut Values)) -> Result<()> {
        let mut values = self.values.lock();
        let mut changed = values.clone();
        change(&mut changed);
        if let Some(folder) = &self.folder {
            write(folder, &changed)
                .map_err(|error| io_error("write", &folder.join(FILE), error))?;
        }
        *values = changed;
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Option<Values> {
    let file: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let mut values = Values::new();
    for group in GROUPS {
        if let Some(group) = file.get(group) {
            values.extend(serde_json::from_value::<Values>(group.clone()).ok()?);
        }
    }
    Some(values)
}

/// Puts a new file in the place of the old one.
fn write(folder: &Path, values: &Values) -> io::Result<()> {
    let is_static = |name: &String| find(name).is_some_and(|at| !VARIABLES[at].is_dynamic());
    let (fixed, dynamic): (Values, Values) = values
        .clone()
        .into_iter()
        .partition(|(name, _)| is_static(name));
    let mut file = serde_json::json!({ "Version": VERSION });
    for (group, values) in [(STATIC, fixed), (DYNAMIC, dynamic)] {
        if !values.is_empty() {
            file[group] = serde_json::to_value(values).map_err(io::Error::other)?;
        }
    }
    let new = folder.join(format!("{FILE}.new"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o640);
    let mut written = options.open(&new)?;
    written.write_all(file.to_string().as_bytes())?;
    written.sync_all()?;
    std::fs::rename(&new, folder.join(FILE))?;
    File::open(folder)?.sync_all()
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::from(porpoise_storage::Error::Io {
        doing,
        path: path.to_path_buf(),
        source: Arc::new(source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persisted(value: &str) -> Persisted {
        Persisted {
            value: value.to_owned(),
            metadata: Metadata {
                host: "localhost".to_owned(),
                user: "root".to_owned(),
                at_us: 7,
            },
        }
    }

    #[test]
    fn values_are_read_again_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let read = || PersistedVariables::read(Some(folder.path())).unwrap();
        let variables = read();
        assert_eq!(variables.all(), []);
        variables.put("max_connections", persisted("99")).unwrap();
        variables.put("back_log", persisted("5")).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let both = [pair("back_log", "5"), pair("max_connections", "99")];
        assert_eq!(read().all(), both);
        assert!(variables.remove("back_log").unwrap());
        assert!(!variables.remove("back_log").unwrap());
        assert_eq!(read().all(), both[1..]);
        variables.clear().unwrap();
        assert_eq!(read().all(), []);
    }

    #[test]
    fn a_file_of_mysql_is_read_and_a_broken_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let of_mysql = r#"{"Version": 2, "mysql_static_variables": {"back_log": {"Value": "100",
            "Metadata": {"Host": "localhost", "User": "root", "Timestamp": 1795497709119638}}},
            "mysql_dynamic_parse_early_variables": {"max_connections": {"Value": "66",
            "Metadata": {"Host": "", "User": "", "Timestamp": 0}}}}"#;
        std::fs::write(&path, of_mysql).unwrap();
        let names = |read: PersistedVariables| {
            let all = read.all().into_iter();
            all.map(|(name, _)| name).collect::<Vec<_>>()
        };
        let read = PersistedVariables::read(Some(folder.path())).unwrap();
        assert_eq!(names(read), ["back_log", "max_connections"]);
        for broken in ["", "{", r#"{"mysql_static_variables": {"back_log": 7}}"#] {
            std::fs::write(&path, broken).unwrap();
            let refused = PersistedVariables::read(Some(folder.path())).err();
            assert!(refused.expect(broken).message().contains(FILE));
        }
    }
}
