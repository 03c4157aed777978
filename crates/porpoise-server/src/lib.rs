//! Listeners, event loops, sessions and authentication: what makes an engine a server.
//!
//! It serves clients over sockets and shared memory. It knows packets (by `porpoise-protocol`) and
//! statements' results (by the engine's `Reply`), and nothing of SQL: a statement is bytes that go
//! to a session, whose rows come back into the reply buffer.
//!
//! | module | holds |
//! | --- | --- |
//! | `server`, `server_state`, `status` | the server: started and stopped; what all connections share; status variables |
//! | `listener`, `stream` | a TCP port, a Unix socket, a socket where shared memory is offered; one connection's bytes |
//! | `layer`, `tls`, `compressed_stream` | what changes these bytes on their way |
//! | [`instance_socket`] | the socket by which other processes reach the instance that has a folder open |
//! | `worker` | the event loop that serves thousands of connections with a few threads |
//! | `ready_queue`, `timers` | which connection is served next; deadlines |
//! | `placement` | which worker has a connection |
//! | `thread_pool` | the threads of the event loops, and what happens when a statement waits or takes long |
//! | `disk_threads` | how many threads wait for the disk, and connections that queue for one |
//! | `turn_monitor`, `thread_priority` | who finds that one takes long; how much of the cores such statements get |
//! | `group_commit_delay`, `sync_thread` | commits that share a sync; a thread that syncs |
//! | `connection` | one connection, from greeting to end |
//! | `handshake`, `auth_exchange`, `auth_cache`, `peer_credentials`, `init_connect` | how a client logs in |
//! | `connection_slots`, `account_limits`, `descriptors` | how many connections there may be |
//! | `client_session`, `query_logs` | the commands of a client that has logged in, and logs of them |
//! | `reply_writer`, `column_definition`, `cursor`, `local_infile`, `error_packet` | replies, encoded |
//! | `send_buffer`, `io_buffers`, `traffic` | bytes on their way, and counters of them |
//! | `in_process` | the same for clients in the server's own process, without listeners, event loops and threads |
//! | [`options`] | option files and command lines, read the way `mysqld` does |

#![warn(missing_docs)]

pub mod instance_socket;
pub mod options;

mod account_limits;
mod auth_cache;
mod auth_exchange;
mod client_session;
mod column_definition;
mod compressed_stream;
mod compute_turns;
mod connection;
mod connection_slots;
mod cursor;
mod descriptors;
mod disk_threads;
mod error_packet;
mod group_commit_delay;
mod handshake;
mod host_names;
mod in_process;
mod init_connect;
mod io_buffers;
mod layer;
mod listener;
mod local_infile;
mod peer_credentials;
mod placement;
mod query_logs;
mod ready_queue;
mod reply_writer;
mod send_buffer;
mod server;
mod server_state;
mod status;
mod stream;
mod sync_thread;
mod thread_pool;
mod thread_priority;
mod timers;
mod tls;
mod traffic;
mod turn_monitor;
mod worker;

pub use in_process::{InProcessServer, InProcessStream, LocalInfileReader};
pub use instance_socket::InstanceSocket;
pub use placement::MigrationPolicy;
pub use server::{Server, ServerOptions, StartError, Stopper};

/// The version that the greeting announces, as `SELECT VERSION()`.
pub const SERVER_VERSION: &str = porpoise_engine::variables::VERSION;
