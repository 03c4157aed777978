//! What the operating system does for shared memory, and nothing else of this crate knows about it: a piece of memory that
//! can be handed to another process and can't be taken away again, a doorbell, and how both travel over a Unix socket.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
mod none;
#[cfg(not(target_os = "linux"))]
pub(crate) use none::*;
