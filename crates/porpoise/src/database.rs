//! A database that a program has open: opening it, its settings, and its end.
//!
//! All handles (the [`Database`]s, their connections) share one [`Instance`]. When the last of them
//! is dropped, listeners are closed, a checkpoint is written and the folder is unlocked.
//!
//! **One folder, several programs.** One process has a folder open and runs every statement on it.
//! Another process that opens the folder finds it in use and connects to the [`InstanceListener`]
//! that the first has in it; its connections are sessions of the first process. When the first has
//! ended, in whatever way, the next process to open the folder or to connect opens it.
//!
//! ```text
//!   open(folder) ──► has this process opened it? ── yes ─► one more handle
//!                      │ no
//!                      ├─► the folder's lock ── free ─► local: engine, listener
//!                      │      │ taken
//!                      ├─► the socket in the folder ── answers ─► remote: connections are sessions of the process that has it
//!                      │      │ nobody: its process begins or ends
//!                      └──────┴─► again, for [`OPEN_WAIT_MAX`]
//! ```

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use porpoise_engine::error::ErrorKind;
use porpoise_engine::session::Login;
use porpoise_engine::{Engine, EngineOptions, Error, Result};
use porpoise_server::{InProcessServer, LocalInfileReader};
use porpoise_storage::Location;
use porpoise_transport::Stream;

use crate::connection::Connection;
use crate::instance_listener::InstanceListener;
use crate::listen::{Listen, Listening, WeakServer};
use crate::remote::{RemoteSession, Unreachable};

/// How long an open waits for a process that has the folder and can't be reached.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(3);
/// How long it waits between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A database that this process has open, or reaches in the process that has. Clones are handles to
/// the same one.
#[derive(Clone)]
pub struct Database {
    handle: Arc<Handle>,
}

struct Handle {
    /// `None` for one in memory.
    folder: Option<PathBuf>,
    options: Options,
    /// The engine, if it is in this process.
    instance: Mutex<Option<Arc<Instance>>>,
}

pub(crate) struct Instance {
    pub engine: Engine,
    /// The server that [`Database::listen`] started last.
    pub server: Mutex<WeakServer>,
    listener: Mutex<Option<InstanceListener>>,
    /// For clients of the protocol in this process ([`Database::stream`]).
    inside: OnceLock<InProcessServer>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.server.get_mut().close();
        drop(self.listener.get_mut().take());
        if let Err(error) = self.engine.close() {
            // What was committed is in the log: whoever opens the folder next finds it.
            tracing::error!("can't close the database: {}", error.cause());
        }
    }
}

/// Has `porpoise_client` open `porpoise:///folder`, `porpoise::memory:` and `transport=embedded` in
/// this process, or over shared memory in the process that has the folder. Every connection to
/// `:memory:` is to a database of its own.
pub fn provide_to_clients() {
    porpoise_client::embedded::set_opener(|options| {
        let database = match &options.folder {
            Some(folder) => Database::open(folder),
            None => Database::in_memory(),
        };
        database
            .and_then(|database| database.stream())
            .map_err(crate::remote::to_client_error)
    });
}

/// The folders that this process has open.
static OPEN_FOLDERS: LazyLock<Mutex<OpenFolders>> = LazyLock::new(Mutex::default);

type OpenFolders = HashMap<PathBuf, Weak<Instance>>;

/// The instance of a folder, if this process has it open.
fn open_instance(open_folders: &OpenFolders, folder: &Path) -> Option<Arc<Instance>> {
    // A folder that isn't there yet is not open either.
    let name = std::fs::canonicalize(folder).ok()?;
    open_folders.get(&name)?.upgrade()
}

/// Settings to open a database with.
#[derive(Clone, Debug)]
pub struct Options {
    variables: Vec<(String, String)>,
    shares: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            variables: Vec::new(),
            shares: true,
        }
    }
}

impl Options {
    /// Sets a system variable by MySQL's name, as an option of `mysqld` does:
    /// `set("innodb_flush_log_at_trx_commit", "2")`. A name or a value that isn't known is an error
    /// of opening.
    ///
    /// In a folder that another process has open its settings count, not these.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl ToString) -> Options {
        self.variables.push((name.into(), value.to_string()));
        self
    }

    /// Whether a folder is shared with other programs of the same user; it is unless said
    /// otherwise.
    ///
    /// Not shared, a folder that another process has open is error 1015, which names the process;
    /// and other programs can't come in here: no socket is made in the folder, and no thread sleeps
    /// at it.
    #[must_use]
    pub fn share(mut self, shares: bool) -> Options {
        self.shares = shares;
        self
    }

    /// Opens the database in a folder, making it if it isn't there.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Database> {
        let folder = std::path::absolute(folder.as_ref()).map_err(Error::unknown_error)?;
        let instance = self.open_or_reach(&folder)?;
        Ok(Database::of(Some(folder), self, instance))
    }

    /// Opens a fresh database that is kept in memory and forgotten at its end.
    pub fn in_memory(self) -> Result<Database> {
        let instance = self.start(Location::Memory, "memory")?;
        Ok(Database::of(None, self, Some(instance)))
    }

    /// The instance of a folder; `None` if another process has the folder and lets this one in.
    fn open_or_reach(&self, folder: &Path) -> Result<Option<Arc<Instance>>> {
        let deadline = Instant::now() + OPEN_WAIT_MAX;
        loop {
            let refusal = match self.open_here(folder) {
                Err(error) if error.is(ErrorKind::FolderInUse) && self.shares => error,
                taken => return taken.map(Some),
            };
            match RemoteSession::connect(folder, None) {
                Ok(_) => return Ok(None),
                Err(Unreachable::Refused(error)) => return Err(error),
                Err(Unreachable::Nobody) if Instant::now() < deadline => {
                    std::thread::sleep(RETRY_PAUSE);
                }
                Err(Unreachable::Nobody) => {
                    let words = format!("{}, which lets no other in", refusal.message());
                    return Err(refusal.with_message(words));
                }
            }
        }
    }

    fn open_here(&self, folder: &Path) -> Result<Arc<Instance>> {
        let mut open_folders = OPEN_FOLDERS.lock();
        open_folders.retain(|_, instance| instance.strong_count() > 0);
        if let Some(instance) = open_instance(&open_folders, folder) {
            return if self.shares {
                Ok(instance)
            } else {
                let words = format!(
                    "{} is in use by process {}",
                    folder.display(),
                    std::process::id()
                );
                Err(Error::folder_in_use(words))
            };
        }
        let name = folder.display().to_string();
        let instance = self.start(Location::Path(folder.to_path_buf()), &name)?;
        if self.shares {
            match InstanceListener::open(&instance.engine, folder) {
                Ok(listener) => *instance.listener.lock() = Some(listener),
                Err(error) => tracing::warn!("other programs can't come in at {name}: {error}"),
            }
        }
        if let Ok(name) = std::fs::canonicalize(folder) {
            open_folders.insert(name, Arc::downgrade(&instance));
        }
        Ok(instance)
    }

    fn start(&self, location: Location, name: &str) -> Result<Arc<Instance>> {
        let engine = Engine::open(EngineOptions {
            location,
            variables: self.variables.clone(),
        })
        .map_err(|error| {
            let cause = error.cause().to_owned();
            error.with_message(cause)
        })?;
        for warning in &engine.variables().start_up_warnings {
            tracing::warn!("{warning}");
        }
        engine.variables().learn("datadir", name);
        Ok(Arc::new(Instance {
            engine,
            server: Mutex::default(),
            listener: Mutex::default(),
            inside: OnceLock::new(),
        }))
    }
}

impl Database {
    fn of(folder: Option<PathBuf>, options: Options, instance: Option<Arc<Instance>>) -> Database {
        Database {
            handle: Arc::new(Handle {
                folder,
                options,
                instance: Mutex::new(instance),
            }),
        }
    }

    /// Opens the database in a folder, making it if it isn't there.
    ///
    /// A folder is open in one process at a time. If another one of the same user has it,
    /// connections are sessions of that process, over shared memory, and everything else is as if
    /// it were here; see [`Options::share`].
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

    /// A new connection whose current database is `schema`. Error 1049 if there is none of this
    /// name.
    pub fn connect_to(&self, schema: &str) -> Result<Connection> {
        self.log_in(Some(schema))
    }

    /// A stream to a new connection, for `porpoise_client::Connection::over`: the MySQL protocol,
    /// without a socket if the database is in this process. The database stays open as long as the
    /// stream.
    ///
    /// Which files LOAD DATA LOCAL may read is for the program to say: it is the one that reads
    /// them.
    pub fn stream(&self) -> Result<Box<dyn Stream>> {
        self.stream_with_files(Box::new(|path| {
            std::fs::read(Path::new(std::ffi::OsStr::from_bytes(path)))
        }))
    }

    /// As [`stream`](Self::stream), with files for LOAD DATA LOCAL from `files`; where another
    /// process has the folder, they are asked of the client.
    pub fn stream_with_files(&self, mut files: LocalInfileReader) -> Result<Box<dyn Stream>> {
        loop {
            let instance = self.handle.instance.lock().clone();
            if let Some(instance) = instance {
                let inside = instance
                    .inside
                    .get_or_init(|| InProcessServer::new(instance.engine.clone()));
                let inside = inside.clone();
                let visitor = inside.connect(Some(Box::new(move |path| {
                    let _open = &instance;
                    files(path)
                })));
                return Ok(Box::new(visitor));
            }
            let Some(folder) = &self.handle.folder else {
                return Err(crate::backend::connection_lost());
            };
            match RemoteSession::open_stream(folder) {
                Ok(stream) => return Ok(stream),
                Err(Unreachable::Refused(error)) => return Err(error),
                Err(Unreachable::Nobody) => self.open_after_holder(folder)?,
            }
        }
    }

    /// After the process that had the folder has ended: opens it, unless another process was
    /// faster.
    fn open_after_holder(&self, folder: &Path) -> Result<()> {
        let instance = open_instance(&OPEN_FOLDERS.lock(), folder);
        *self.handle.instance.lock() = match instance {
            Some(instance) => Some(instance),
            None => self.handle.options.open_or_reach(folder)?,
        };
        Ok(())
    }

    /// Whether statements run in this process. They do unless another process has the folder open.
    pub fn is_local(&self) -> bool {
        self.handle.instance.lock().is_some()
    }

    fn log_in(&self, schema: Option<&str>) -> Result<Connection> {
        loop {
            let instance = self.handle.instance.lock().clone();
            if let Some(instance) = instance {
                let session = instance.engine.connect(Login {
                    connection_id: instance.engine.next_connection_id(),
                    user: "root".into(),
                    host: "localhost".into(),
                    peer: "localhost".into(),
                    schema: schema.map(Into::into),
                    ..Login::default()
                })?;
                return Ok(Connection::local(session, instance));
            }
            let Some(folder) = &self.handle.folder else {
                return Err(crate::backend::connection_lost());
            };
            if let Some(instance) = open_instance(&OPEN_FOLDERS.lock(), folder) {
                *self.handle.instance.lock() = Some(instance);
                continue;
            }
            match RemoteSession::connect(folder, schema) {
                Ok(session) => return Ok(Connection::remote(session)),
                Err(Unreachable::Refused(error)) => return Err(error),
                Err(Unreachable::Nobody) => self.open_after_holder(folder)?,
            }
        }
    }

    /// Lets MySQL clients in, as `porpoise serve` does, until the returned value or the last handle
    /// to the database is dropped. Clients log in with the accounts that the database has. One set
    /// of listeners at a time; error 1105 if another process has the folder open, as clients have
    /// to come in there.
    pub fn listen(&self, listen: Listen) -> Result<Listening> {
        match &*self.handle.instance.lock() {
            Some(instance) => crate::listen::start(instance, listen),
            None => Err(Error::unknown_error(
                "The process that has the database open has to listen",
            )),
        }
    }
}
