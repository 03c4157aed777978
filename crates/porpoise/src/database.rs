//! A database in this process: opening it, its settings, and its end.
//!
//! All handles (the [`Database`]s, its connections) share one [`Core`]. With the last of them the doors are
//! closed, a checkpoint is written and the folder is let go.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use porpoise_engine::session::Login;
use porpoise_engine::{Engine, EngineOptions, Error, Result};
use porpoise_storage::Location;

use crate::connection::Connection;
use crate::listen::{Listen, Listening, WeakDoors};

/// A database that this process has open. Clones are handles to the same one.
#[derive(Clone)]
pub struct Database {
    core: Arc<Core>,
}

pub(crate) struct Core {
    pub engine: Engine,
    /// The doors that were opened last.
    pub doors: Mutex<WeakDoors>,
}

impl Drop for Core {
    fn drop(&mut self) {
        self.doors.get_mut().close();
        if let Err(error) = self.engine.close() {
            // What was committed is in the log: the next to open the folder finds it.
            tracing::error!("can't close the database: {}", error.cause());
        }
    }
}

/// Settings to open a database with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    variables: Vec<(String, String)>,
}

impl Options {
    /// Sets a system variable by MySQL's name, as an option of `mysqld` does:
    /// `set("innodb_flush_log_at_trx_commit", "2")`. A name or a value that isn't known is an error of opening.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl ToString) -> Options {
        self.variables.push((name.into(), value.to_string()));
        self
    }

    /// Opens the database in a folder, making it if it isn't there.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Database> {
        self.open_at(Location::Path(folder.as_ref().to_path_buf()))
    }

    /// Opens a fresh database that is kept in memory and forgotten at its end.
    pub fn in_memory(self) -> Result<Database> {
        self.open_at(Location::Memory)
    }

    fn open_at(self, location: Location) -> Result<Database> {
        let folder = match &location {
            Location::Path(folder) => folder.display().to_string(),
            Location::Memory => "memory".to_string(),
        };
        let engine = Engine::open(EngineOptions {
            location,
            variables: self.variables,
        })
        .map_err(|error| Error::new(error.number(), error.sqlstate(), error.cause()))?;
        engine.variables().learn("datadir", &folder);
        Ok(Database {
            core: Arc::new(Core {
                engine,
                doors: Mutex::default(),
            }),
        })
    }
}

impl Database {
    /// Opens the database in a folder, making it if it isn't there.
    ///
    /// A folder is open in one process at a time: another is refused, with the number of the process that has it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Database> {
        Options::default().open(folder)
    }

    /// Opens a fresh database that is kept in memory and forgotten at its end.
    pub fn in_memory() -> Result<Database> {
        Options::default().in_memory()
    }

    /// Settings to open a database with.
    pub fn options() -> Options {
        Options::default()
    }

    /// A new connection; any number, each for one thread at a time.
    pub fn connect(&self) -> Result<Connection> {
        self.log_in(None)
    }

    /// A new connection whose current database is `schema`. Error 1049 if there is none of this name.
    pub fn connect_to(&self, schema: &str) -> Result<Connection> {
        self.log_in(Some(schema))
    }

    fn log_in(&self, schema: Option<&str>) -> Result<Connection> {
        let session = self.core.engine.connect(Login {
            connection_id: self.core.engine.next_connection_id(),
            user: "root".into(),
            host: "localhost".into(),
            peer: "localhost".into(),
            schema: schema.map(Into::into),
            ..Login::default()
        })?;
        Ok(Connection::new(session, self.core.clone()))
    }

    /// Lets MySQL clients in, as `porpoise serve` does, until the returned value or the last handle to the database
    /// is dropped. Clients log in with the accounts that the database has. One set of doors at a time.
    pub fn listen(&self, doors: Listen) -> Result<Listening> {
        crate::listen::listen(&self.core, doors)
    }
}
