//! Listeners, event loop, sessions and authentication: what makes an engine a server.
//!
//! It is the way in over sockets and shared memory. It knows packets (by `porpoise-protocol`) and statements' answers (by the
//! engine's `Reply`), and nothing of SQL: a statement is bytes that go to a session, whose rows come back
//! into the reply buffer.
//!
//! In the order a client meets them:
//!
//! 1. [`listener`]: a TCP port, a Unix socket, one where shared memory is offered. [`stream`]: one connection's bytes.
//! 2. [`connection`]: one connection, from greeting to end. First a [`newcomer`], which has to prove who it is, within its account's [`limits`];
//!    then a [`client`], whose commands run on a session.
//! 3. [`reply`]: rows encoded into the reply buffer; [`outlet`]: the buffer's way to the socket.
//! 4. [`worker`]: the event loop that serves thousands of connections with a few threads; its `acceptor` lets them in, its
//!    `spin` tells how long to look before sleeping, [`timers`] has their deadlines; [`ready`]: who is served next; [`placement`]: which of them has a connection; [`sync_round`]: commits that share a sync; [`syncer`]: who else may sync; [`crew`]: what happens when a statement has to wait.
//! 5. [`descriptors`]: how many connections the system bears. [`server`]: all of it together, started and stopped.
//! 6. [`inside`]: the same for clients in the server's own process, without doors, loops and threads.
//!
//! [`neighbours`] is the door for other programs that want the folder this process has open.
//!
//! [`options`] reads option files and command lines the way `mysqld` does.

pub mod options;

mod client;
mod connection;
mod crew;
mod descriptors;
mod inside;
mod limits;
mod listener;
pub mod neighbours;
mod newcomer;
mod outlet;
mod placement;
mod ready;
mod reply;
mod server;
mod stream;
mod sync_round;
mod syncer;
mod timers;
mod worker;

pub use inside::{FileSource, Inside, Visitor};
pub use neighbours::Neighbours;
pub use placement::Moves;
pub use server::{Server, ServerOptions, StartError, Stopper};

/// What the greeting says this server is.
pub const SERVER_VERSION: &str = porpoise_engine::variables::VERSION;
