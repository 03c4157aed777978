//! Doors for MySQL clients into a program that has a database embedded.
//!
//! The server is `porpoise-server`'s, on the engine that the program's own connections use. Its threads run the clients'
//! statements only. A client may KILL a statement or a connection of the program; what it asks with COM_SHUTDOWN changes
//! nothing: the program decides when its database ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use porpoise_engine::{Error, Result};
use porpoise_server::{Server, ServerOptions};

use crate::database::Core;

/// Where clients come in.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    options: ServerOptions,
}

impl Listen {
    /// At a Unix socket.
    pub fn unix(path: impl Into<PathBuf>) -> Listen {
        let mut listen = Listen::default();
        listen.options.socket = Some(path.into());
        listen
    }

    /// At a TCP address; port 0 takes any free one.
    pub fn tcp(address: SocketAddr) -> Listen {
        let mut listen = Listen::default();
        listen.options.tcp.push(address);
        listen
    }

    /// At a Unix socket over which shared memory is handed out.
    pub fn shared_memory(path: impl Into<PathBuf>) -> Listen {
        let mut listen = Listen::default();
        listen.options.shared_memory = Some(path.into());
        listen
    }

    /// Here and there.
    #[must_use]
    pub fn and(mut self, other: Listen) -> Listen {
        self.options.tcp.extend(other.options.tcp);
        self.options.socket = self.options.socket.or(other.options.socket);
        self.options.shared_memory = self.options.shared_memory.or(other.options.shared_memory);
        self
    }
}

type Doors = Mutex<Option<Server>>;

/// Open doors. Dropping it closes them: statements of clients end first, for three seconds at most.
pub struct Listening {
    doors: Arc<Doors>,
    tcp: Vec<SocketAddr>,
}

impl Listening {
    /// The TCP addresses it listens on, with the ports that were found free.
    pub fn tcp_addresses(&self) -> &[SocketAddr] {
        &self.tcp
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.doors.lock().take());
    }
}

/// What the database knows of its doors.
#[derive(Default)]
pub(crate) struct WeakDoors(Weak<Doors>);

impl WeakDoors {
    pub fn close(&self) {
        if let Some(doors) = self.0.upgrade() {
            drop(doors.lock().take());
        }
    }
}

pub(crate) fn listen(core: &Core, listen: Listen) -> Result<Listening> {
    let mut known = core.doors.lock();
    if known.0.upgrade().is_some() {
        return Err(Error::unknown_error("The database listens already"));
    }
    let server =
        Server::start(core.engine.clone(), &listen.options).map_err(Error::unknown_error)?;
    let tcp = server.tcp_addresses().to_vec();
    let doors = Arc::new(Mutex::new(Some(server)));
    known.0 = Arc::downgrade(&doors);
    Ok(Listening { doors, tcp })
}
