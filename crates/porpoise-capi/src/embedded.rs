//! The engine in this process: one database a folder, shared by all connections.
//!
//! A folder is opened by whoever connects to it first, or by `mysql_server_init()`, and stays open until
//! `mysql_server_end()` or the process' end, as programs connect and disconnect all the time. Connections that outlive that
//! keep it open: the last one to go writes the checkpoint and lets the folder go.

use crate::failure::{Failure, UNKNOWN};
use crate::stack::Stack;
use parking_lot::Mutex;
use porpoise_engine::{Engine, EngineOptions};
use porpoise_server::{FileSource, Inside, Visitor};
use porpoise_storage::Location;
use std::ffi::c_int;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

/// Which database, with which settings if it isn't open yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// None for one in memory.
    pub folder: Option<PathBuf>,
    /// System variables.
    pub variables: Vec<(String, String)>,
}

/// An open database.
pub struct House {
    folder: Option<PathBuf>,
    engine: Engine,
    inside: Inside,
}

impl House {
    /// A stream to a new connection's server end.
    pub fn connect(&self, files: FileSource) -> io::Result<Guest> {
        Ok(Guest {
            visitor: Some(self.inside.connect(Some(files))),
            stack: Stack::new()?,
        })
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // What was committed is in the log: if the checkpoint fails, the next to open the folder replays it.
        let close = || drop(self.engine.close());
        match Stack::new() {
            Ok(mut stack) => stack.run(close),
            Err(_) => close(),
        }
    }
}

/// A connection in this process, its commands carried out on a stack of their own.
#[derive(Debug)]
pub struct Guest {
    /// Always there but in `drop`.
    visitor: Option<Visitor>,
    stack: Stack,
}

impl io::Write for Guest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.visitor {
            Some(visitor) => self.stack.run(|| visitor.write(bytes)),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Read for Guest {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.visitor {
            Some(visitor) => visitor.read(into),
            None => Ok(0),
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let visitor = self.visitor.take();
        self.stack.run(|| drop(visitor));
    }
}

impl porpoise_transport::Stream for Guest {
    fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn shutdown(&self) -> io::Result<()> {
        Ok(())
    }
}

static HOUSES: Mutex<Vec<Arc<House>>> = Mutex::new(Vec::new());

/// What `mysql_server_init()` was told: where connections go that ask for no other place.
static DEFAULT_HOME: Mutex<Option<Home>> = Mutex::new(None);

static AT_EXIT: Once = Once::new();

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

extern "C" fn close_at_exit() {
    // Nobody is left to be told of a panic.
    let _ = std::panic::catch_unwind(close);
}

/// Opens a database, or finds it open.
pub fn open(home: &Home) -> Result<Arc<House>, Failure> {
    let folder = match &home.folder {
        Some(folder) => Some(std::path::absolute(folder).map_err(|error| cant_open(home, &error))?),
        None => None,
    };
    let mut houses = HOUSES.lock();
    if let Some(house) = houses.iter().find(|house| house.folder == folder) {
        return Ok(house.clone());
    }
    let location = match &folder {
        Some(folder) => Location::Path(folder.clone()),
        None => Location::Memory,
    };
    let options = EngineOptions {
        location,
        variables: home.variables.clone(),
    };
    let mut stack = Stack::new().map_err(|error| cant_open(home, &error))?;
    let engine = stack
        .run(|| Engine::open(options))
        .map_err(|error| cant_open(home, &error.cause()))?;
    let shown = folder.as_ref().map(|folder| folder.display().to_string());
    engine
        .variables()
        .learn("datadir", shown.as_deref().unwrap_or("memory"));
    let house = Arc::new(House {
        folder,
        inside: Inside::new(engine.clone()),
        engine,
    });
    houses.push(house.clone());
    AT_EXIT.call_once(|| {
        // SAFETY: the function is in this library, which by then is still loaded or has ended with the process. Without
        // it the log is replayed at the next start.
        let _ = unsafe { atexit(close_at_exit) };
    });
    Ok(house)
}

fn cant_open(home: &Home, why: &dyn std::fmt::Display) -> Failure {
    let folder = home
        .folder
        .as_deref()
        .map(|folder| folder.display().to_string());
    Failure::new(
        UNKNOWN,
        format!(
            "Can't open the database in '{}': {why}",
            folder.unwrap_or_default()
        ),
    )
}

/// Lets go of every database that no connection is open to.
pub fn close() {
    let houses = std::mem::take(&mut *HOUSES.lock());
    drop(houses);
}

pub fn set_default_home(home: Option<Home>) {
    *DEFAULT_HOME.lock() = home;
}

pub fn default_home() -> Option<Home> {
    DEFAULT_HOME.lock().clone()
}

/// The arguments of `mysql_server_init()`: `--datadir=…` and system variables. Without a folder there is no
/// server to be embedded.
pub fn home_of_arguments<'a>(arguments: impl Iterator<Item = &'a str>) -> Option<Home> {
    let mut home = Home::default();
    for argument in arguments {
        let Some((name, value)) = argument
            .strip_prefix("--")
            .map(|option| option.split_once('=').unwrap_or((option, "ON")))
        else {
            continue;
        };
        match name.replace('-', "_").as_str() {
            "datadir" => home.folder = Some(value.into()),
            // What the old library was told of its messages, its own option files and its tables' engine.
            "language" | "lc_messages_dir" | "basedir" | "defaults_file" | "no_defaults"
            | "skip_innodb" => {}
            name => home.variables.push((name.to_owned(), value.to_owned())),
        }
    }
    home.folder.is_some().then_some(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_among_the_arguments_makes_an_embedded_server() {
        let arguments = [
            "program",
            "--datadir=/tmp/a",
            "--innodb-flush-log-at-trx-commit=2",
        ];
        assert_eq!(
            home_of_arguments(arguments.into_iter()),
            Some(Home {
                folder: Some("/tmp/a".into()),
                variables: vec![("innodb_flush_log_at_trx_commit".into(), "2".into())],
            })
        );
        assert_eq!(home_of_arguments(["program"].into_iter()), None);
    }

    #[test]
    fn connections_to_one_folder_share_one_database() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home {
            folder: Some(folder.path().join("data")),
            variables: Vec::new(),
        };
        let (one, other) = (open(&home).unwrap(), open(&home).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        close();
    }
}
