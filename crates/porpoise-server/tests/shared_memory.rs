//! Shared memory: everything that goes over a socket goes over it, and what is its own.

#[path = "server.rs"]
mod server;
