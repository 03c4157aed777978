//! A database that a program has open: opening it, its settings, and its end.
//!
//! All handles (the [`Database`]s, its connections) share one [`Core`]. With the last of them the doors are
//! closed, a checkpoint is written and the folder is let go.
//!
//! **One folder, several programs.** One process has a folder open and runs every statement on it. Another that opens the folder
//! finds it in use and goes to the [`Door`] that the first has in it; its connections are sessions over there. When the first has
//! ended, in whatever way, the next to open the folder or to connect has it.
//!
//! ```text
//!   open(folder) ──► has this process opened it? ── yes ─► one more handle
//!                      │ no
//!                      ├─► the folder's lock ── free ─► here: engine, door
//!                      │      │ taken
//!                      ├─► the door in the folder ── opens ─► far: connections are sessions of the process that has it
//!                      │      │ nobody: who has it begins or ends
//!                      └──────┴─► again, for [`PATIENCE`]
//! ```

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use porpoise_engine::error::number;
use porpoise_engine::session::Login;
use porpoise_engine::{Engine, EngineOptions, Error, Result};
use porpoise_server::{InProcessServer, LocalInfileReader};
use porpoise_storage::Location;
use porpoise_transport::Stream;

use crate::connection::Connection;
use crate::door::Door;
use crate::far::{Far, Unreachable};
use crate::listen::{Listen, Listening, WeakDoors};

/// How long an open waits for a process that has the folder and can't be reached.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// A database that this process has open, or reaches in the process that has. Clones are handles to the same one.
#[derive(Clone)]
pub struct Database {
    home: Arc<Home>,
}

struct Home {
    /// Nothing for one in memory.
    folder: Option<PathBuf>,
    options: Options,
    /// The engine, if it is in this process.
    core: Mutex<Option<Arc<Core>>>,
}

pub(crate) struct Core {
    pub engine: Engine,
    /// The doors that were opened last.
    pub doors: Mutex<WeakDoors>,
    door: Mutex<Option<Door>>,
    /// For clients of the protocol in this process.
    in_process: OnceLock<InProcessServer>,
}

impl Drop for Core {
    fn drop(&mut self) {
        self.doors.get_mut().close();
        drop(self.door.get_mut().take());
        if let Err(error) = self.engine.close() {
            // What was committed is in the log: the next to open the folder finds it.
            tracing::error!("can't close the database: {}", error.cause());
        }
    }
}

/// Has `porpoise_client` open `porpoise:///folder`, `porpoise::memory:` and `transport=embedded` in this process, or over
/// shared memory in the process that has the folder. Every connection to `:memory:` is to a database of its own.
pub fn provide_to_clients() {
    porpoise_client::embedded::set_opener(|options| {
        let database = match &options.folder {
            Some(folder) => Database::open(folder),
            None => Database::in_memory(),
        };
        database
            .and_then(|database| database.stream())
            .map_err(crate::far::retold)
    });
}

/// The folders that this process has open.
static HELD: LazyLock<Mutex<Held>> = LazyLock::new(Mutex::default);

type Held = HashMap<PathBuf, Weak<Core>>;

/// The engine of a folder that this process has open.
fn known(held: &Held, folder: &Path) -> Option<Arc<Core>> {
    // A folder that isn't there yet is not open either.
    let name = std::fs::canonicalize(folder).ok()?;
    held.get(&name)?.upgrade()
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
    /// `set("innodb_flush_log_at_trx_commit", "2")`. A name or a value that isn't known is an error of opening.
    ///
    /// In a folder that another process has open its settings count, not these.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl ToString) -> Options {
        self.variables.push((name.into(), value.to_string()));
        self
    }

    /// Whether a folder is shared with other programs of the same user; it is unless said otherwise.
    ///
    /// Not shared, a folder that another process has open is error 1015, which names the process; and other programs
    /// can't come in here: no socket is made in the folder, and no thread sleeps at it.
    #[must_use]
    pub fn share(mut self, shares: bool) -> Options {
        self.shares = shares;
        self
    }

    /// Opens the database in a folder, making it if it isn't there.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Database> {
        let folder = std::path::absolute(folder.as_ref())
            .map_err(|error| Error::new(1105, "HY000", error.to_string()))?;
        let core = self.take(&folder)?;
        Ok(Database::of(Some(folder), self, core))
    }

    /// Opens a fresh database that is kept in memory and forgotten at its end.
    pub fn in_memory(self) -> Result<Database> {
        let core = self.start(Location::Memory, "memory")?;
        Ok(Database::of(None, self, Some(core)))
    }

    /// The engine of a folder, or nothing if it is in another process that lets us in.
    fn take(&self, folder: &Path) -> Result<Option<Arc<Core>>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let refusal = match self.take_here(folder) {
                Err(error) if error.number() == number::folder_in_use && self.shares => error,
                taken => return taken.map(Some),
            };
            match Far::connect(folder, None) {
                Ok(_) => return Ok(None),
                Err(Unreachable::Refused(error)) => return Err(error),
                Err(Unreachable::Nobody) if Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                Err(Unreachable::Nobody) => {
                    let words = format!("{}, which lets no other in", refusal.message());
                    return Err(Error::new(refusal.number(), refusal.sqlstate(), words));
                }
            }
        }
    }

    fn take_here(&self, folder: &Path) -> Result<Arc<Core>> {
        let mut held = HELD.lock();
        held.retain(|_, core| core.strong_count() > 0);
        if let Some(core) = known(&held, folder) {
            return if self.shares {
                Ok(core)
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
        let core = self.start(Location::Path(folder.to_path_buf()), &name)?;
        if self.shares {
            match Door::open(&core.engine, folder) {
                Ok(door) => *core.door.lock() = Some(door),
                Err(error) => tracing::warn!("other programs can't come in at {name}: {error}"),
            }
        }
        if let Ok(name) = std::fs::canonicalize(folder) {
            held.insert(name, Arc::downgrade(&core));
        }
        Ok(core)
    }

    fn start(&self, location: Location, name: &str) -> Result<Arc<Core>> {
        let engine = Engine::open(EngineOptions {
            location,
            variables: self.variables.clone(),
        })
        .map_err(|error| Error::new(error.number(), error.sqlstate(), error.cause()))?;
        engine.variables().learn("datadir", name);
        Ok(Arc::new(Core {
            engine,
            doors: Mutex::default(),
            door: Mutex::default(),
            in_process: OnceLock::new(),
        }))
    }
}

impl Database {
    fn of(folder: Option<PathBuf>, options: Options, core: Option<Arc<Core>>) -> Database {
        Database {
            home: Arc::new(Home {
                folder,
                options,
                core: Mutex::new(core),
            }),
        }
    }

    /// Opens the database in a folder, making it if it isn't there.
    ///
    /// A folder is open in one process at a time. If another one of the same user has it, connections are sessions of that
    /// process, over shared memory, and everything else is as if it were here; see [`Options::share`].
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

    /// A stream to a new connection, for `porpoise_client::Connection::over`: the MySQL protocol, without a socket if the
    /// database is in this process. The database stays open as long as the stream.
    ///
    /// Which files LOAD DATA LOCAL may read is the program's own affair: it is the one who reads.
    pub fn stream(&self) -> Result<Box<dyn Stream>> {
        self.stream_with_files(Box::new(|path| {
            std::fs::read(Path::new(std::ffi::OsStr::from_bytes(path)))
        }))
    }

    /// As [`stream`](Self::stream), with files for LOAD DATA LOCAL from `files`; where another process has the folder,
    /// they are asked of the client.
    pub fn stream_with_files(&self, mut files: LocalInfileReader) -> Result<Box<dyn Stream>> {
        loop {
            let core = self.home.core.lock().clone();
            if let Some(core) = core {
                let server = core
                    .in_process
                    .get_or_init(|| InProcessServer::new(core.engine.clone()));
                let server = server.clone();
                let stream = server.connect(Some(Box::new(move |path| {
                    let _open = &core;
                    files(path)
                })));
                return Ok(Box::new(stream));
            }
            let Some(folder) = &self.home.folder else {
                return Err(crate::connection::lost());
            };
            match Far::dial(folder) {
                Ok(stream) => return Ok(stream),
                Err(Unreachable::Refused(error)) => return Err(error),
                Err(Unreachable::Nobody) => self.take_over(folder)?,
            }
        }
    }

    /// After whoever had the folder has ended: has it, unless somebody else was faster.
    fn take_over(&self, folder: &Path) -> Result<()> {
        let core = known(&HELD.lock(), folder);
        *self.home.core.lock() = match core {
            Some(core) => Some(core),
            None => self.home.options.take(folder)?,
        };
        Ok(())
    }

    /// Whether statements run in this process. They do unless another one has the folder open.
    pub fn is_here(&self) -> bool {
        self.home.core.lock().is_some()
    }

    fn log_in(&self, schema: Option<&str>) -> Result<Connection> {
        loop {
            let core = self.home.core.lock().clone();
            if let Some(core) = core {
                let session = core.engine.connect(Login {
                    connection_id: core.engine.next_connection_id(),
                    user: "root".into(),
                    host: "localhost".into(),
                    peer: "localhost".into(),
                    schema: schema.map(Into::into),
                    ..Login::default()
                })?;
                return Ok(Connection::here(session, core));
            }
            let Some(folder) = &self.home.folder else {
                return Err(crate::connection::lost());
            };
            if let Some(core) = known(&HELD.lock(), folder) {
                *self.home.core.lock() = Some(core);
                continue;
            }
            match Far::connect(folder, schema) {
                Ok(far) => return Ok(Connection::far(far)),
                Err(Unreachable::Refused(error)) => return Err(error),
                Err(Unreachable::Nobody) => self.take_over(folder)?,
            }
        }
    }

    /// Lets MySQL clients in, as `porpoise serve` does, until the returned value or the last handle to the database
    /// is dropped. Clients log in with the accounts that the database has. One set of doors at a time; error 1105 if another
    /// process has the folder open, as clients have to come in there.
    pub fn listen(&self, doors: Listen) -> Result<Listening> {
        match &*self.home.core.lock() {
            Some(core) => crate::listen::listen(core, doors),
            None => Err(Error::new(
                1105,
                "HY000",
                "The process that has the database open has to listen",
            )),
        }
    }
}
