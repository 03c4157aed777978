//! Foreign servers: `mysql.servers`. They are kept and shown; nothing connects to them.
//!
//! MySQL 8.4 manual, 15.1.18 (CREATE SERVER).

use parking_lot::Mutex;
use porpoise_catalog::dictionary::{KIND_SERVER, delete_record, put_record, read_kind};
use porpoise_core::error::{Error, Result};
use porpoise_sql::ast::{ChangeServer, ServerOption};
use porpoise_storage::Store;
use serde::{Deserialize, Serialize};

/// The foreign servers of a database, by their names.
#[derive(Debug, Default)]
pub struct ForeignServers {
    servers: Mutex<Vec<ForeignServer>>,
}

/// A row of `mysql.servers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignServer {
    /// Compared without regard to case.
    pub name: String,
    /// `HOST`.
    pub host: String,
    /// `DATABASE`.
    pub database: String,
    /// `USER`.
    pub user: String,
    /// `PASSWORD`.
    pub password: String,
    /// `PORT`.
    pub port: u64,
    /// `SOCKET`.
    pub socket: String,
    /// `FOREIGN DATA WRAPPER`.
    pub wrapper: String,
    /// `OWNER`.
    pub owner: String,
}

/// The longest texts, in characters: more is cut off.
const NAME_CHARS: usize = 64;
const HOST_CHARS: usize = 255;

impl ForeignServers {
    /// Reads them.
    pub fn open(store: &Store) -> Result<ForeignServers> {
        let records = read_kind::<ForeignServer>(store, KIND_SERVER)?;
        let servers = records.into_iter().map(|(_, server)| server).collect();
        Ok(ForeignServers {
            servers: Mutex::new(servers),
        })
    }

    /// All of them, by their names.
    pub fn all(&self) -> Vec<ForeignServer> {
        let mut all = self.servers.lock().clone();
        all.sort_by_key(|server| key(&server.name));
        all
    }

    /// CREATE SERVER, ALTER SERVER, durably. Whether there was one before.
    ///
    /// # Errors
    /// 1476 for a second one of that name, 1477 for one to be altered that isn't there, 1525 for an
    /// empty name.
    pub fn change(&self, store: &Store, change: &ChangeServer) -> Result<bool> {
        if change.name.is_empty() {
            return Err(Error::incorrect_literal("server name", ""));
        }
        let name = cut(&change.name, NAME_CHARS);
        let mut servers = self.servers.lock();
        let place = servers.iter().position(|one| key(&one.name) == key(&name));
        let mut server = match (place, &change.wrapper) {
            (Some(_), Some(_)) => return Err(Error::foreign_server_exists(name)),
            (None, None) => return Err(Error::foreign_server_does_not_exist(name)),
            (Some(place), None) => servers[place].clone(),
            (None, Some(wrapper)) => ForeignServer {
                wrapper: cut(wrapper, NAME_CHARS),
                name,
                ..ForeignServer::default()
            },
        };
        for option in &change.options {
            server.take(option);
        }
        let mut transaction = store.begin();
        let record_key = key(&server.name);
        put_record(
            &mut transaction,
            KIND_SERVER,
            record_key.as_bytes(),
            &server,
        )?;
        transaction.commit()?.wait()?;
        match place {
            Some(place) => servers[place] = server,
            None => servers.push(server),
        }
        Ok(place.is_some())
    }

    /// DROP SERVER, durably. Whether there was one.
    ///
    /// # Errors
    /// 1525 for an empty name.
    pub fn drop(&self, store: &Store, name: &str) -> Result<bool> {
        if name.is_empty() {
            return Err(Error::incorrect_literal("server name", ""));
        }
        let mut servers = self.servers.lock();
        let Some(place) = servers.iter().position(|one| key(&one.name) == key(name)) else {
            return Ok(false);
        };
        let mut transaction = store.begin();
        delete_record(&mut transaction, KIND_SERVER, key(name).as_bytes());
        transaction.commit()?.wait()?;
        servers.remove(place);
        Ok(true)
    }
}

impl ForeignServer {
    fn take(&mut self, option: &ServerOption) {
        let (field, text, chars) = match option {
            ServerOption::Port(port) => {
                self.port = *port;
                return;
            }
            ServerOption::Host(text) => (&mut self.host, text, HOST_CHARS),
            ServerOption::Database(text) => (&mut self.database, text, NAME_CHARS),
            ServerOption::User(text) => (&mut self.user, text, NAME_CHARS),
            ServerOption::Password(text) => (&mut self.password, text, NAME_CHARS),
            ServerOption::Socket(text) => (&mut self.socket, text, NAME_CHARS),
            ServerOption::Owner(text) => (&mut self.owner, text, NAME_CHARS),
        };
        *field = cut(text, chars);
    }
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

fn key(name: &str) -> String {
    name.to_lowercase()
}
