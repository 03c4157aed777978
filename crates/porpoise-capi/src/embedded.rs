//! The engine in this process: one database a folder, shared by all connections.
//!
//! A folder is opened by whoever connects to it first, or by `mysql_server_init()`, and stays open
//! until `mysql_server_end()` or the process' end, as programs connect and disconnect all the time.
//! Connections that outlive that keep it open: the last one to go writes the checkpoint and lets
//! the folder go. Opening it, sharing it with other programs, and going over shared memory to one
//! that has it already are [`porpoise::Database`]'s.

use crate::failure::{self, Failure};
use crate::stack::Stack;
use parking_lot::Mutex;
use porpoise::Database;
use porpoise_server::LocalInfileReader;
use porpoise_transport::Stream;
use std::ffi::c_int;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

/// Which database, with which settings if it isn't open yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddedConfig {
    /// None for one in memory.
    pub folder: Option<PathBuf>,
    /// System variables.
    pub variables: Vec<(String, String)>,
}

/// An open database.
pub struct Instance {
    folder: Option<PathBuf>,
    /// Always there but in `drop`.
    database: Option<Database>,
}

impl Instance {
    /// A stream to a new connection's server end.
    pub fn connect(&self, files: LocalInfileReader) -> Result<EmbeddedStream, Failure> {
        let mut stack = Stack::new().map_err(failure_of_io)?;
        let database = self.database.as_ref();
        let database = database.ok_or_else(|| Failure::of(failure::SERVER_GONE))?;
        let stream = stack
            .run(|| database.stream_with_files(files))
            .map_err(failure_of)?;
        Ok(EmbeddedStream {
            stream: Some(stream),
            stack,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let database = self.database.take();
        match Stack::new() {
            Ok(mut stack) => stack.run(|| drop(database)),
            Err(_) => drop(database),
        }
    }
}

/// A connection in this process, its commands carried out on a stack of their own.
#[derive(Debug)]
pub struct EmbeddedStream {
    /// Always there but in `drop`.
    stream: Option<Box<dyn Stream>>,
    stack: Stack,
}

impl io::Write for EmbeddedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Some(stream) => self.stack.run(|| stream.write(bytes)),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.as_mut().map_or(Ok(()), |stream| stream.flush())
    }
}

impl io::Read for EmbeddedStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Some(stream) => stream.read(into),
            None => Ok(0),
        }
    }
}

impl Drop for EmbeddedStream {
    fn drop(&mut self) {
        let stream = self.stream.take();
        self.stack.run(|| drop(stream));
    }
}

impl Stream for EmbeddedStream {
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let stream = self.stream.as_ref();
        stream.map_or(Ok(()), |stream| stream.set_read_timeout(timeout))
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let stream = self.stream.as_ref();
        stream.map_or(Ok(()), |stream| stream.set_write_timeout(timeout))
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        self.stream
            .as_ref()
            .map_or("embedded", |stream| stream.kind())
    }

    fn shutdown(&self) -> io::Result<()> {
        self.stream
            .as_ref()
            .map_or(Ok(()), |stream| stream.shutdown())
    }
}

static INSTANCES: Mutex<Vec<Arc<Instance>>> = Mutex::new(Vec::new());

/// What `mysql_server_init()` was told: where connections go that ask for no other place.
static DEFAULT_CONFIG: Mutex<Option<EmbeddedConfig>> = Mutex::new(None);

static AT_EXIT: Once = Once::new();

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

extern "C" fn close_at_exit() {
    // Nobody is left to be told of a panic.
    let _ = std::panic::catch_unwind(close);
}

/// Opens a database, or finds it open.
pub fn open(config: &EmbeddedConfig) -> Result<Arc<Instance>, Failure> {
    let folder = match &config.folder {
        Some(folder) => Some(std::path::absolute(folder).map_err(failure_of_io)?),
        None => None,
    };
    let mut instances = INSTANCES.lock();
    if let Some(instance) = instances.iter().find(|instance| instance.folder == folder) {
        return Ok(instance.clone());
    }
    let options = config
        .variables
        .iter()
        .fold(Database::options(), |options, (name, value)| {
            options.set(name, value)
        });
    let mut stack = Stack::new().map_err(failure_of_io)?;
    let database = stack
        .run(|| match &folder {
            Some(folder) => options.open(folder),
            None => options.in_memory(),
        })
        .map_err(failure_of)?;
    let instance = Arc::new(Instance {
        folder,
        database: Some(database),
    });
    instances.push(instance.clone());
    AT_EXIT.call_once(|| {
        // SAFETY: the function is in this library, which by then is still loaded or has ended with
        // the process. Without it the log is replayed at the next start.
        let _ = unsafe { atexit(close_at_exit) };
    });
    Ok(instance)
}

fn failure_of_io(error: io::Error) -> Failure {
    Failure::new(failure::UNKNOWN, error.to_string())
}

/// An error of the engine.
fn failure_of(error: porpoise_engine::Error) -> Failure {
    let mut sqlstate = failure::GENERAL;
    if let Ok(state) = error.sqlstate().as_bytes().try_into() {
        sqlstate = state;
    }
    Failure {
        sqlstate,
        ..Failure::new(error.number().into(), error.message().to_string())
    }
}

/// Lets go of every database that no connection is open to.
pub fn close() {
    let instances = std::mem::take(&mut *INSTANCES.lock());
    drop(instances);
}

pub fn set_default_config(config: Option<EmbeddedConfig>) {
    *DEFAULT_CONFIG.lock() = config;
}

pub fn default_config() -> Option<EmbeddedConfig> {
    DEFAULT_CONFIG.lock().clone()
}

/// The arguments of `mysql_server_init()`: `--datadir=…` and system variables. Without a folder
/// there is no server to be embedded.
pub fn config_of_arguments<'a>(arguments: impl Iterator<Item = &'a str>) -> Option<EmbeddedConfig> {
    let mut config = EmbeddedConfig::default();
    for argument in arguments {
        let Some((name, value)) = argument
            .strip_prefix("--")
            .map(|option| option.split_once('=').unwrap_or((option, "ON")))
        else {
            continue;
        };
        match name.replace('-', "_").as_str() {
            "datadir" => config.folder = Some(value.into()),
            // What the old library was told of its messages, its own option files and its tables'
            // engine.
            "language" | "lc_messages_dir" | "basedir" | "defaults_file" | "no_defaults"
            | "skip_innodb" => {}
            name => config.variables.push((name.to_owned(), value.to_owned())),
        }
    }
    config.folder.is_some().then_some(config)
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
            config_of_arguments(arguments.into_iter()),
            Some(EmbeddedConfig {
                folder: Some("/tmp/a".into()),
                variables: vec![("innodb_flush_log_at_trx_commit".into(), "2".into())],
            })
        );
        assert_eq!(config_of_arguments(["program"].into_iter()), None);
    }

    #[test]
    fn connections_to_one_folder_share_one_database() {
        let folder = tempfile::tempdir().unwrap();
        let config = EmbeddedConfig {
            folder: Some(folder.path().join("data")),
            variables: Vec::new(),
        };
        let (one, other) = (open(&config).unwrap(), open(&config).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        close();
    }
}
