//! What the shell talks to: a server by its URL, or a folder or memory that this process opens
//! itself.

use porpoise::Database;
use porpoise_client::{Connection, Error, Options, Transport};

use super::server::ServerOptions;

pub struct Target {
    options: Options,
    /// What was opened here, and what it is called.
    opened: Option<(String, Database)>,
}

fn refused(error: porpoise::Error) -> Error {
    Error::Server {
        number: error.number(),
        sqlstate: error.sqlstate().as_bytes().try_into().unwrap_or(*b"HY000"),
        message: error.message().to_string(),
    }
}

impl Target {
    /// By a URL, a folder's path, or `:memory:`; a server also by its options.
    pub fn open(target: Option<&str>, server: &ServerOptions) -> Result<Target, Error> {
        let options = match (server.options(target)?, target) {
            (Some(options), _) => options,
            (None, None | Some(":memory:")) => "porpoise::memory:".parse()?,
            (None, Some(folder)) => Options {
                user: "root".into(),
                transport: Transport::Embedded,
                folder: Some(folder.into()),
                ..Options::default()
            },
        };
        if options.transport != Transport::Embedded {
            return Ok(Target {
                options,
                opened: None,
            });
        }
        let (name, database) = match &options.folder {
            Some(folder) => (folder.display().to_string(), Database::open(folder)),
            None => ("memory".to_string(), Database::in_memory()),
        };
        let database = database.map_err(refused)?;
        Ok(Target {
            options,
            opened: Some((name, database)),
        })
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A new connection, with this database as the current one.
    pub fn connect(&self, database: Option<&str>) -> Result<Connection, Error> {
        let options = Options {
            database: database.map(Into::into),
            multi_statements: true,
            ..self.options.clone()
        };
        match &self.opened {
            Some((_, database)) => Connection::over(database.stream().map_err(refused)?, &options),
            None => Connection::connect(&options),
        }
    }

    /// The way there, for people.
    pub fn describe(&self, connection: &Connection) -> String {
        match &self.opened {
            Some((name, database)) if database.is_local() => format!("{name}, in this process"),
            Some((name, _)) => format!("{name}, which another process has open"),
            None => connection.stream().kind().to_string(),
        }
    }
}
