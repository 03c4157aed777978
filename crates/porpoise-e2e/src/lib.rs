//! Tests of Porpoise from outside.
//!
//! Nothing here knows the engine. The tests start a server as its users start it, speak the MySQL
//! protocol to it, and compare what comes back with files that a person can read. MariaDB has to
//! give the expected results first, so they are facts about MySQL's dialect and not our own output
//! copied back.
//!
//! In the order in which a test meets them:
//!
//! 1. [`server::Server`] starts a throw-away server, MariaDB or Porpoise, in a temporary folder,
//!    and ends it on drop. [`process`] asks the system what a server process uses.
//! 2. [`wire::Wire`] is one connection to it.
//! 3. [`slt`] runs the sqllogictest files of `tests/slt`, each in a database of its own.
//! 4. [`script`] runs the scripts of `tests/concurrency` and `tests/privileges`: several sessions
//!    whose statements run in a given order, some of which wait or are refused.
//!
//! The clients in `tests/clients` are programs of their own; `tests/clients.rs` gives them a
//! server.

#![warn(missing_docs)]

pub mod process;
pub mod script;
pub mod server;
pub mod slt;
pub mod wire;

use std::path::{Path, PathBuf};

/// The path of a file or folder of the repository, given relative to its top.
pub fn repository(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(below)
}

/// Every file below `folder` with this extension, in a stable order.
///
/// # Panics
/// When the folder can't be read: a suite that finds no files must not pass.
pub fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for entry in entries {
            let path = entry.expect("a folder's entry is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
