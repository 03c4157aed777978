//! The client's end of a pair of rings: a blocking stream.

use super::offer::{OFFER_BYTES, Offer};
use crate::memory::{MappedRings, Role};
use crate::ring::{RingEnd, RingInterest, Wake};
use crate::ring_pool::{self, Origin};
use crate::spin::Spin;
use crate::sys::{self, SocketState};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Wakes the server by its doorbell.
#[derive(Debug)]
pub(super) struct Doorbell(pub OwnedFd);

impl Wake for Doorbell {
    fn wake(&self) {
        sys::ring_doorbell(&self.0);
    }
}

/// The client's end: a blocking stream.
#[derive(Debug)]
pub struct SharedMemory {
    pub(super) end: RingEnd<MappedRings, Doorbell>,
    pub(super) socket: UnixStream,
    spin: Spin,
    write_timeout: Cell<Option<Duration>>,
    read_timeout: Cell<Option<Duration>>,
    /// The read timeout that the socket has; it is set before a wait.
    socket_timeout: Cell<Option<Duration>>,
    /// By which the next connection finds it in the pool; `None` if it can't be reused.
    origin: Option<Origin>,
}

impl SharedMemory {
    /// Takes the rings that a server offers at the other end of `socket`, waiting for the offer no
    /// longer than `timeout`.
    ///
    /// # Errors
    /// If no offer comes, or one that isn't of this version, or its memory isn't sealed or of
    /// another size.
    pub fn accept(socket: UnixStream, timeout: Option<Duration>) -> io::Result<SharedMemory> {
        Self::accept_from(socket, None, timeout)
    }

    /// Takes the rings of a server that was connected at `origin`.
    pub(crate) fn accept_from(
        socket: UnixStream,
        origin: Option<Origin>,
        timeout: Option<Duration>,
    ) -> io::Result<SharedMemory> {
        socket.set_read_timeout(timeout)?;
        let mut offer = [0; OFFER_BYTES];
        let [memory, doorbell] = sys::receive_descriptors(&socket, &mut offer)?;
        let Offer { sizes, reusable } = Offer::parse(&offer)?;
        sys::check_memory(&memory, sizes.length()?)?;
        let mapped = MappedRings::new(&memory, sizes, Role::Client)?;
        socket.set_read_timeout(None)?;
        Ok(SharedMemory {
            end: RingEnd::new(mapped, Doorbell(doorbell)),
            socket,
            spin: Spin::default(),
            write_timeout: Cell::new(None),
            read_timeout: Cell::new(None),
            socket_timeout: Cell::new(None),
            origin: origin.filter(|_| reusable),
        })
    }

    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Begins the next connection over these rings by a `request`; true if the server replies.
    pub(crate) fn restart(&mut self, request: &[u8], timeout: Option<Duration>) -> bool {
        let is_alive = loop {
            match sys::read_wakeups(&self.socket, false) {
                // Of the connection before.
                Ok(SocketState::Wakeups) => {}
                state => break state.is_ok_and(|state| state == SocketState::Empty),
            }
        };
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        self.write_timeout.set(timeout);
        if !is_alive || self.write_all(request).is_err() {
            return false;
        }
        while self.end.readable() == Ok(0) {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !self
                .wait_for(RingInterest::READABLE, left)
                .is_ok_and(|waited| waited)
            {
                break;
            }
        }
        self.end.readable().is_ok_and(|count| count > 0)
    }

    /// Spins and then sleeps for one of `interest`. True if it may be there; false if there was no
    /// time left.
    fn wait_for(&mut self, interest: RingInterest, left: Option<Duration>) -> io::Result<bool> {
        let end = &self.end;
        if self.spin.wait(|| end.is_ready(interest)) || self.end.arm(interest) {
            return Ok(true);
        }
        let waited = sys::wait_for([self.socket.as_fd()], left);
        self.end.disarm();
        self.spin.woke();
        waited?;
        match sys::read_wakeups(&self.socket, false)? {
            SocketState::Closed => Err(io::ErrorKind::BrokenPipe.into()),
            SocketState::Empty => Ok(left != Some(Duration::ZERO)),
            SocketState::Wakeups => Ok(true),
        }
    }

    /// Sleeps until its server sends a wake-up or is gone, or the read timeout is over.
    fn wait_for_wakeup(&self) -> io::Result<SocketState> {
        let timeout = self.read_timeout.get();
        if timeout != self.socket_timeout.get() {
            self.socket.set_read_timeout(timeout)?;
            self.socket_timeout.set(timeout);
        }
        sys::read_wakeups(&self.socket, true)
    }

    /// How its waits ended.
    pub fn spin(&self) -> &Spin {
        &self.spin
    }
}

impl Read for SharedMemory {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let count = self.end.read(into)?;
            if count > 0 {
                return Ok(count);
            }
            let end = &self.end;
            if self.spin.wait(|| end.is_ready(RingInterest::READABLE))
                || self.end.arm(RingInterest::READABLE)
            {
                continue;
            }
            let state = self.wait_for_wakeup();
            self.end.disarm();
            self.spin.woke();
            match state? {
                SocketState::Wakeups => {}
                // What was written last came before the end.
                SocketState::Closed => return Ok(self.end.read(into)?),
                SocketState::Empty => return Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }
}

impl Write for SharedMemory {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let deadline = self.write_timeout.get().map(|time| Instant::now() + time);
        loop {
            let count = self.end.write(from)?;
            if count > 0 || from.is_empty() {
                return Ok(count);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !self.wait_for(RingInterest::WRITABLE, left)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl crate::Stream for SharedMemory {
    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        let deadline = self.write_timeout.get().map(|time| Instant::now() + time);
        loop {
            match (self.end.write(from)?, self.end.read(into)?) {
                (0, 0) => {}
                moved => return Ok(moved),
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if !self.wait_for(RingInterest::EITHER, left)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout == Some(Duration::ZERO) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.read_timeout.set(timeout);
        Ok(())
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.write_timeout.set(timeout);
        Ok(())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "shared memory"
    }

    fn shutdown(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Both)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.end.read(into)? {
            0 if into.is_empty() => Ok(0),
            0 => match sys::read_wakeups(&self.socket, false)? {
                // What was written last came before the end.
                SocketState::Closed => Ok(self.end.read(into)?),
                SocketState::Empty | SocketState::Wakeups => Err(io::ErrorKind::WouldBlock.into()),
            },
            count => Ok(count),
        }
    }

    #[inline]
    fn is_readable(&self) -> Option<bool> {
        Some(self.end.is_ready(RingInterest::READABLE))
    }

    fn arm(&mut self) -> bool {
        self.end.arm(RingInterest::READABLE)
    }

    fn disarm(&mut self, is_readable: bool) -> bool {
        self.end.disarm();
        // A wake-up is read, so that the next poll doesn't report it. A read finds out what else
        // there is.
        let is_over = is_readable
            && !matches!(
                sys::read_wakeups(&self.socket, false),
                Ok(SocketState::Empty | SocketState::Wakeups)
            );
        is_over || self.end.is_ready(RingInterest::READABLE)
    }

    fn return_to_pool(self: Box<Self>) {
        if self.origin.is_some() && self.end.readable() == Ok(0) {
            ring_pool::put(*self);
        }
    }
}
