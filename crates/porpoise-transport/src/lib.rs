//! Streams between processes. Knows nothing of MySQL.
//!
//! A [`Stream`] is two-way bytes to another process, in order and complete, whatever carries them.
//! [`connect`] makes one to an [`Endpoint`]. Every stream tells what the layers above have to know:
//! whether anybody else could read along ([`Stream::is_private`]), and whether the peer is on this
//! machine.
//!
//! | endpoint | stream | private |
//! | --- | --- | --- |
//! | [`Endpoint::Tcp`] | a TCP connection, without Nagle's delay | no |
//! | [`Endpoint::Unix`] | a Unix socket | yes |
//! | [`Endpoint::SharedMemory`] | a pair of rings in memory, beside a Unix socket | yes |
//!
//! | module | holds |
//! | --- | --- |
//! | `stream`, `endpoint`, `unix_socket` | what streams have in common; connecting; Unix sockets |
//! | [`loopback`] | a TCP connection within the machine that moves to shared memory, when both ends want it |
//! | [`shared_memory`] | how two processes come to share rings, and the streams over them |
//! | `ring_pool` | rings that a client reuses for its next connection |
//! | [`ring`] | the rules by which two ends that don't trust each other pass bytes and wake each other |
//! | [`memory`] | how words and rings lie in the mapping |
//! | [`spin`] | how long to spin before sleeping |
//! | `sys` | what differs between operating systems |
//!
//! [`Poll`] waits for several streams at once.
//!
//! ```no_run
//! use porpoise_transport::{Endpoint, connect};
//! use std::io::Write;
//!
//! let endpoint = Endpoint::Unix("/run/mysqld/mysqld.sock".into());
//! let mut stream = connect(&endpoint, None)?;
//! stream.write_all(b"hello")?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod endpoint;
pub mod loopback;
#[allow(unsafe_code, reason = "it follows pointers into the mapping")]
pub mod memory;
mod poll;
pub mod ring;
mod ring_pool;
pub mod shared_memory;
pub mod spin;
mod stream;
#[allow(unsafe_code, reason = "it maps memory")]
mod sys;
mod unix_socket;

pub use endpoint::{Endpoint, connect, connect_from, connect_to_any, take_pooled};
pub use poll::Poll;
pub use ring::RingInterest;
pub use shared_memory::{ServerEnd, SharedMemory};
pub use stream::{ClosedStream, Stream};
pub use unix_socket::UnixSocket;
