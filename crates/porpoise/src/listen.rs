//! Listeners for MySQL clients in a program that has a database embedded.
//!
//! The server is `porpoise-server`'s, on the engine that the program's own connections use. Its
//! threads run the clients' statements only. A client may KILL a statement or a connection of the
//! program; what it asks with COM_SHUTDOWN changes nothing: the program decides when its database
//! ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use porpoise_engine::{Error, Result};
use porpoise_server::{Server, ServerOptions};

use crate::database::Instance;

/// Where the program listens for clients.
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

    /// At both.
    #[must_use]
    pub fn and(mut self, other: Listen) -> Listen {
        self.options.tcp.extend(other.options.tcp);
        self.options.socket = self.options.socket.or(other.options.socket);
        self.options.shared_memory = self.options.shared_memory.or(other.options.shared_memory);
        self
    }
}

type SharedServer = Mutex<Option<Server>>;

/// A server that listens. Dropping it closes the listeners and the clients' connections, and
/// interrupts their statements.
pub struct Listening {
    server: Arc<SharedServer>,
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
        drop(self.server.lock().take());
    }
}

/// The server as the database knows it, which doesn't keep it running.
#[derive(Default)]
pub(crate) struct WeakServer(Weak<SharedServer>);

impl WeakServer {
    pub fn close(&self) {
        if let Some(server) = self.0.upgrade() {
            drop(server.lock().take());
        }
    }
}

pub(crate) fn start(instance: &Instance, listen: Listen) -> Result<Listening> {
    let mut known = instance.server.lock();
    if known.0.upgrade().is_some() {
        return Err(Error::unknown_error("The database listens already"));
    }
    let server =
        Server::start(instance.engine.clone(), &listen.options).map_err(Error::unknown_error)?;
    let tcp = server.tcp_addresses().to_vec();
    let server = Arc::new(Mutex::new(Some(server)));
    known.0 = Arc::downgrade(&server);
    Ok(Listening { server, tcp })
}
