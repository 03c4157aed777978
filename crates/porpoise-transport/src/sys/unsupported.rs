//! A system for which shared memory isn't implemented: it can't be made, so it can't be used.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::ptr::NonNull;
use std::time::Duration;

fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "shared memory isn't supported on this system",
    ))
}

pub(crate) fn create_memory(_length: usize) -> io::Result<OwnedFd> {
    unsupported()
}

pub(crate) fn check_memory(_memory: &OwnedFd, _length: usize) -> io::Result<()> {
    unsupported()
}

#[derive(Debug)]
pub(crate) struct Mapping(Infallible);

impl Mapping {
    pub fn new(_memory: &OwnedFd, _length: usize) -> io::Result<Mapping> {
        unsupported()
    }

    pub fn base(&self) -> NonNull<u8> {
        match self.0 {}
    }

    pub fn length(&self) -> usize {
        match self.0 {}
    }

    pub fn release(&self, _range: std::ops::Range<usize>) -> io::Result<()> {
        match self.0 {}
    }
}

pub(crate) fn create_doorbell() -> io::Result<OwnedFd> {
    unsupported()
}

pub(crate) fn ring_doorbell(_doorbell: &OwnedFd) {}

pub(crate) fn clear_doorbell(_doorbell: &OwnedFd) {}

pub(crate) fn send_wakeup(_socket: impl AsFd) {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "no socket is read here")]
pub(crate) enum SocketState {
    Empty,
    Wakeups,
    Closed,
}

pub(crate) fn read_wakeups(_socket: impl AsFd, _wait: bool) -> io::Result<SocketState> {
    unsupported()
}

pub(crate) fn wait_for<const N: usize>(
    _descriptors: [BorrowedFd<'_>; N],
    _timeout: Option<Duration>,
) -> io::Result<()> {
    unsupported()
}

pub(crate) fn send_descriptors(
    _socket: impl AsFd,
    _message: &[u8],
    _descriptors: [&OwnedFd; 2],
) -> io::Result<()> {
    unsupported()
}

pub(crate) fn receive_descriptors(
    _socket: impl AsFd,
    _message: &mut [u8],
) -> io::Result<[OwnedFd; 2]> {
    unsupported()
}

pub(crate) fn listen_abstract(_name: &str) -> io::Result<UnixListener> {
    unsupported()
}

pub(crate) fn connect_abstract(_name: &str) -> io::Result<UnixStream> {
    unsupported()
}

pub(crate) fn run_queue_wait() -> Option<Duration> {
    None
}

pub(crate) fn has_idle_core() -> bool {
    false
}

pub(crate) fn yield_core() {
    std::thread::yield_now();
}
