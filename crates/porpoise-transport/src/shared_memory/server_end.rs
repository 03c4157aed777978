//! The server's end of a pair of rings.

use super::offer::Offer;
use crate::memory::{DEFAULT_SIZES, KEPT_BYTES, MappedRings, RingSizes, Role};
use crate::ring::{RingEnd, RingInterest, RingMemory, Wake};
use crate::spin::Spin;
use crate::sys::{self, SocketState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Wakes the client by a byte on the socket.
#[derive(Debug)]
pub(super) struct SocketWaker(UnixStream);

impl Wake for SocketWaker {
    fn wake(&self) {
        sys::send_wakeup(&self.0);
    }
}

/// The server's end. It never blocks but in [`spin_for`](Self::spin_for) and
/// [`wait_for`](Self::wait_for), and trusts nothing it reads.
#[derive(Debug)]
pub struct ServerEnd {
    pub(super) end: RingEnd<MappedRings, SocketWaker>,
    pub(super) doorbell: OwnedFd,
    is_reused: bool,
    /// Its ring holds more memory than it keeps.
    has_spare_memory: bool,
    /// It was to be given back while the client had not taken all.
    is_release_due: bool,
    /// For the waits of a thread that is in the middle of something.
    spin: Spin,
}

impl ServerEnd {
    /// Makes rings for the client at the other end of `socket`, and hands them over.
    ///
    /// # Errors
    /// If the system gives no memory or no descriptors, or the client is gone.
    pub fn offer(socket: UnixStream) -> io::Result<ServerEnd> {
        Self::offer_with_sizes(socket, DEFAULT_SIZES)
    }

    /// Makes rings as [`offer`](Self::offer) does, and tells the client that it may reuse them for
    /// its next connection.
    pub fn offer_reusable(socket: UnixStream) -> io::Result<ServerEnd> {
        let offer = Offer {
            sizes: DEFAULT_SIZES,
            reusable: true,
        };
        Self::offer_rings(socket, offer)
    }

    /// Makes rings of other capacities: powers of two, a page at least.
    pub fn offer_with_sizes(socket: UnixStream, sizes: RingSizes) -> io::Result<ServerEnd> {
        let offer = Offer {
            sizes,
            reusable: false,
        };
        Self::offer_rings(socket, offer)
    }

    fn offer_rings(socket: UnixStream, offer: Offer) -> io::Result<ServerEnd> {
        let sizes = offer.sizes;
        socket.set_nonblocking(true)?;
        let memory = sys::create_memory(sizes.length()?)?;
        let doorbell = sys::create_doorbell()?;
        let mapped = MappedRings::new(&memory, sizes, Role::Server)?;
        sys::send_descriptors(&socket, &offer.to_bytes(), [&memory, &doorbell])?;
        Ok(ServerEnd {
            end: RingEnd::new(mapped, SocketWaker(socket)),
            doorbell,
            is_reused: false,
            has_spare_memory: false,
            is_release_due: false,
            spin: Spin::default(),
        })
    }

    /// Polls as readable when the client has died or closed the connection.
    pub fn socket(&self) -> &UnixStream {
        &self.end.waker().0
    }

    /// Has a new edge whenever the client rings. It needn't ever be read.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Takes bytes; `Ok(0)` if there are none and the client is gone.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are none, [`io::ErrorKind::InvalidData`] if the
    /// client broke the rules.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.end.read(into)? {
            0 if into.is_empty() => Ok(0),
            0 => match sys::read_wakeups(self.socket(), false)? {
                // What it wrote last came before the end.
                SocketState::Closed => Ok(self.end.read(into)?),
                SocketState::Empty => Err(io::ErrorKind::WouldBlock.into()),
                SocketState::Wakeups => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a client of shared memory wrote to its socket",
                )),
            },
            count => Ok(count),
        }
    }

    /// Puts bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room, [`io::ErrorKind::BrokenPipe`] if the
    /// client is gone, [`io::ErrorKind::InvalidData`] if it broke the rules.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self.end.write(from)? {
            0 if from.is_empty() => Ok(0),
            0 if sys::read_wakeups(self.socket(), false)? == SocketState::Closed => {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => {
                let is_spare = self.is_release_due || self.end.extent() > KEPT_BYTES as u64;
                self.has_spare_memory |= is_spare;
                Ok(count)
            }
        }
    }

    /// Large messages have gone through: their memory may be [given back](Self::release_memory).
    #[inline]
    pub fn has_spare_memory(&self) -> bool {
        self.has_spare_memory
    }

    /// Gives the memory that large messages have needed back to the system. Where the client hasn't
    /// taken them yet, it is spare again after the next message.
    pub fn release_memory(&mut self) {
        if !std::mem::take(&mut self.has_spare_memory) {
            return;
        }
        self.is_release_due = !self.is_drained();
        if !self.is_release_due {
            // Memory that can't be given back is kept.
            let _ = self.end.memory().release();
        }
    }

    /// Whether one of `interest` is there, or the rings are corrupt.
    #[inline]
    pub fn is_ready(&self, interest: RingInterest) -> bool {
        self.end.is_ready(interest)
    }

    /// Another connection begins over the rings. The socket's credentials are still those of the
    /// first: the same process, perhaps as another user by now.
    pub fn reuse(&mut self) {
        self.is_reused = true;
    }

    /// Whether the rings have carried a connection before this one.
    pub fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Whether the client has taken every byte that was written.
    pub fn is_drained(&self) -> bool {
        self.end.writable() == Ok(self.end.memory().capacity_out())
    }

    /// Has the doorbell rung when one of `interest` is there. True if it is there already: then
    /// nobody rings.
    pub fn arm(&mut self, interest: RingInterest) -> bool {
        self.end.arm(interest)
    }

    /// Needs no wake-up any more; one may still come.
    pub fn disarm(&mut self) {
        self.end.disarm();
    }

    /// How often the client was woken since the last call.
    pub fn take_wakeups(&mut self) -> u64 {
        self.end.take_wakeups()
    }

    /// Spins for one of `interest` for as long as that is worth it. True if it is there; otherwise
    /// [`wait_for`](Self::wait_for) follows.
    pub fn spin_for(&mut self, interest: RingInterest) -> bool {
        let end = &self.end;
        self.spin.wait(|| end.is_ready(interest))
    }

    /// Sleeps on this thread for bytes to read, or for room to write. False if there is none: when
    /// `timeout` is over, or earlier.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the client is gone.
    pub fn wait_for(&mut self, interest: RingInterest, timeout: Duration) -> io::Result<bool> {
        sys::clear_doorbell(&self.doorbell);
        if !self.end.arm(interest) {
            sys::wait_for(
                [self.doorbell.as_fd(), self.socket().as_fd()],
                Some(timeout),
            )?;
            self.end.disarm();
        }
        self.spin.woke();
        if sys::read_wakeups(self.socket(), false)? == SocketState::Closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(self.end.is_ready(interest))
    }
}
