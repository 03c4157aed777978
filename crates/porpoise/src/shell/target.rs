//! What the shell talks to: a server by its URL, or a folder or memory that this process opens itself.

use porpoise::{Database, Listen, Listening};
use porpoise_client::{Connection, Error, Options, Transport};
use porpoise_server::neighbours::Place;
use tempfile::TempDir;

pub struct Target {
    options: Options,
    /// What was opened here, and what it is called.
    opened: Option<(String, Opened)>,
}

/// Kept as long as the shell runs.
struct Opened {
    _listening: Option<Listening>,
    _folder: Option<TempDir>,
    _place: Option<Place>,
    database: Database,
}

fn refused(error: &porpoise::Error) -> Error {
    let mut sqlstate = *b"HY000";
    if let Ok(state) = error.sqlstate().as_bytes().try_into() {
        sqlstate = state;
    }
    Error::Server {
        number: error.number(),
        sqlstate,
        message: error.message().to_string(),
    }
}

impl Target {
    /// By a URL, a folder's path, or `:memory:`.
    pub fn open(target: &str) -> Result<Target, Error> {
        let mut options: Options = match target {
            url if url.contains("://") => url.parse()?,
            ":memory:" => "porpoise::memory:".parse()?,
            folder => Options {
                user: "root".into(),
                transport: Transport::Embedded,
                folder: Some(folder.into()),
                ..Options::default()
            },
        };
        if options.transport != Transport::Embedded {
            if options.user.is_empty() {
                options.user = std::env::var("USER").unwrap_or_else(|_| "root".to_string());
            }
            return Ok(Target {
                options,
                opened: None,
            });
        }
        let (name, database) = match &options.folder {
            Some(folder) => (folder.display().to_string(), Database::open(folder)),
            None => ("memory".to_string(), Database::in_memory()),
        };
        let database = database.map_err(|error| refused(&error))?;
        let mut opened = Opened {
            _listening: None,
            _folder: None,
            _place: None,
            database,
        };
        options.transport = Transport::SharedMemory;
        match &options.folder {
            Some(folder) if !opened.database.is_here() => {
                let place = Place::of(folder)?;
                options.shared_memory_base_name = place.path().display().to_string();
                opened._place = Some(place);
            }
            _ => {
                let folder = TempDir::with_prefix("porpoise-sql")?;
                let socket = folder.path().join("s");
                options.shared_memory_base_name = socket.display().to_string();
                let listening = opened.database.listen(Listen::shared_memory(socket));
                opened._listening = Some(listening.map_err(|error| refused(&error))?);
                opened._folder = Some(folder);
            }
        }
        Ok(Target {
            options,
            opened: Some((name, opened)),
        })
    }

    /// How to connect to it.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The way there, for people.
    pub fn describe(&self, connection: &Connection) -> String {
        match &self.opened {
            Some((name, opened)) if opened.database.is_here() => format!("{name}, in this process"),
            Some((name, _)) => format!("{name}, which another process has open"),
            None => connection.stream().kind().to_string(),
        }
    }
}
