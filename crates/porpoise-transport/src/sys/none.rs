//! A system for which nobody has written shared memory yet: nothing can be made, so nothing can be used.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::ptr::NonNull;
use std::time::Duration;

fn missing<T>() -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "shared memory isn't supported on this system",
    ))
}

pub(crate) fn create_memory(_length: usize) -> io::Result<OwnedFd> {
    missing()
}

pub(crate) fn check_memory(_memory: &OwnedFd, _length: usize) -> io::Result<()> {
    missing()
}

#[derive(Debug)]
pub(crate) struct Mapping(Infallible);

impl Mapping {
    pub fn new(_memory: &OwnedFd, _length: usize) -> io::Result<Mapping> {
        missing()
    }

    pub fn base(&self) -> NonNull<u8> {
        match self.0 {}
    }

    pub fn length(&self) -> usize {
        match self.0 {}
    }
}

pub(crate) fn create_doorbell() -> io::Result<OwnedFd> {
    missing()
}

pub(crate) fn ring_doorbell(_doorbell: &OwnedFd) {}

pub(crate) fn hush_doorbell(_doorbell: &OwnedFd) {}

pub(crate) fn nudge(_socket: impl AsFd) {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "nothing is heard here")]
pub(crate) enum Heard {
    Nothing,
    Nudges,
    Gone,
}

pub(crate) fn hear(_socket: impl AsFd, _wait: bool) -> io::Result<Heard> {
    missing()
}

pub(crate) fn wait_for<const N: usize>(
    _descriptors: [BorrowedFd<'_>; N],
    _patience: Option<Duration>,
) -> io::Result<()> {
    missing()
}

pub(crate) fn hand_over(
    _socket: impl AsFd,
    _message: &[u8],
    _descriptors: [&OwnedFd; 2],
) -> io::Result<()> {
    missing()
}

pub(crate) fn take_over(_socket: impl AsFd, _message: &mut [u8]) -> io::Result<[OwnedFd; 2]> {
    missing()
}

pub(crate) fn listen_at_name(_name: &str) -> io::Result<UnixListener> {
    missing()
}

pub(crate) fn connect_to_name(_name: &str) -> io::Result<UnixStream> {
    missing()
}

pub(crate) fn waited_for_a_core() -> Option<Duration> {
    None
}

pub(crate) fn has_idle_core() -> bool {
    false
}

pub(crate) fn yield_core() {
    std::thread::yield_now();
}
