//! Streams over a pair of rings, and how two processes come to share them.
//!
//! ```text
//!  client                                                       server
//!    │  connects to a Unix socket  ─────────────────────────────► │  makes a sealed memfd and a doorbell
//!    │  ◄────────── an offer, with both descriptors ───────────── │
//!    │  checks size and seals, maps                               │
//!    │ ═══════════ bytes through the rings, both ways ═══════════ │
//!    │  sleeps? the server sends a byte over the socket           │
//!    │           the client adds to the doorbell (eventfd)        │  sleeps?
//!    │  dies?    the socket ends                                  │  dies?
//! ```
//!
//! This module knows nothing but the rings' bytes, wake-ups and the end of the connection: what the
//! bytes mean is the affair of the protocol above.
//!
//! **Two kinds of wake-up.** The server waits for thousands of clients with one poll, and needn't
//! even read the eventfd. But it must never block when it wakes a client, and a write to an eventfd
//! does when its number is full and a holder has made it blocking: a client that was given the
//! eventfd can do both. A byte to the socket never blocks, for this end of the socket is the
//! server's own. And a client that sleeps at the socket wakes when the other end dies, too, with
//! one system call for both.
//!
//! **Rings may be reused** for the same client's next connection, if the offer says so
//! (`ring_pool`).
//!
//! **The socket tells whether the other process lives.** It carries nothing from the client. The
//! kernel closes it when a process ends, however it ends.

mod client_end;
mod offer;
mod server_end;
#[cfg(test)]
mod tests;

pub use client_end::SharedMemory;
pub use server_end::ServerEnd;

use std::path::{Path, PathBuf};

/// The base name of a server and a client that were given none.
pub const BASE_NAME: &str = "MYSQL";

/// Where a server that listens at `socket` offers shared memory of this base name: beside the
/// socket. A name with a slash in it is the path itself.
pub fn path_of(socket: &Path, base_name: &str) -> PathBuf {
    if base_name.contains('/') {
        return PathBuf::from(base_name);
    }
    let mut path = socket.as_os_str().to_owned();
    path.push(".");
    path.push(base_name);
    PathBuf::from(path)
}
