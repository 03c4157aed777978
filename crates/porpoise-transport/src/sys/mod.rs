//! What the operating system does for shared memory: memory that can be handed to another process
//! and can't be taken away again, a doorbell, and how both travel over a Unix socket. Nothing else
//! of this crate depends on the system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::*;
