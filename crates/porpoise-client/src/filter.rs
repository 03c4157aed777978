//! Streams whose bytes are changed on their way: encrypted, compressed.
//!
//! ```text
//!   write ──► Filter::put_out ──► outgoing ──► inner stream
//!   read  ◄── plain ◄── Filter::take_in ◄──── inner stream
//! ```
//!
//! A [`FilteredStream`] is a stream like any other to the connection above it, so a connection
//! without one is as it was, and one that is both encrypted and compressed has two.

use porpoise_protocol::byte_queue::ByteQueue;
use porpoise_transport::Stream;
use porpoise_transport::loopback::TcpAddresses;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What changes the bytes of a [`FilteredStream`].
pub(crate) trait Filter: Send + std::fmt::Debug {
    /// Room for what the inner stream gives.
    fn spare(&mut self) -> &mut [u8];

    /// The first `count` bytes of the room were filled.
    fn filled(&mut self, count: usize);

    /// Appends to `plain` some of what came; false if that takes more than has come.
    fn take_in(&mut self, plain: &mut ByteQueue) -> io::Result<bool>;

    /// Whether [`take_in`](Self::take_in) has something to append.
    fn has_more(&self) -> bool;

    /// Appends to `outgoing` what `from` becomes, or its first bytes: returns how many.
    fn put_out(&mut self, from: &[u8], outgoing: &mut ByteQueue) -> io::Result<usize>;

    /// Whether what passes is secret where the inner stream isn't.
    fn encrypts(&self) -> bool;
}

/// So much is gathered before it is written.
const OUTGOING_BYTES: usize = 64 << 10;

/// A stream over another.
#[derive(Debug)]
pub(crate) struct FilteredStream<F> {
    inner: Box<dyn Stream>,
    filter: F,
    plain: ByteQueue,
    outgoing: ByteQueue,
}

impl<F: Filter> FilteredStream<F> {
    pub fn new(inner: Box<dyn Stream>, filter: F) -> Self {
        Self {
            inner,
            filter,
            plain: ByteQueue::default(),
            outgoing: ByteQueue::default(),
        }
    }

    fn read_by(
        &mut self,
        into: &mut [u8],
        mut read: impl FnMut(&mut dyn Stream, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while self.plain.is_empty() {
            if !self.filter.take_in(&mut self.plain)? {
                let count = read(&mut *self.inner, self.filter.spare())?;
                if count == 0 {
                    return Ok(0);
                }
                self.filter.filled(count);
            }
        }
        Ok(self.plain.take_into(into))
    }

    /// Writes some of what is to go out, or reads while there is no room for it. Returns how many
    /// bytes came.
    fn push(&mut self) -> io::Result<usize> {
        let unread = self.outgoing.unread();
        match self.inner.write_or_read(unread, self.filter.spare()) {
            Ok((written, read)) => {
                self.outgoing.take(written);
                self.filter.filled(read);
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Lets the filter have `from`, as far as there is no need to write first: returns how many
    /// bytes it took.
    fn put_out(&mut self, from: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < from.len() && self.outgoing.unread().len() < OUTGOING_BYTES {
            taken += self.filter.put_out(&from[taken..], &mut self.outgoing)?;
        }
        Ok(taken)
    }

    fn write_all_out(&mut self) -> io::Result<()> {
        let count = self.outgoing.unread().len();
        if count > 0 {
            self.inner.write_all(self.outgoing.unread())?;
            self.outgoing.take(count);
        }
        Ok(())
    }
}

impl<F: Filter> Read for FilteredStream<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_by(into, |inner, room| inner.read(room))
    }
}

impl<F: Filter> Write for FilteredStream<F> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let taken = self.put_out(from)?;
        self.write_all_out()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        // A peer that doesn't take the rest may wait for its own bytes to be taken.
        while !self.outgoing.is_empty() {
            self.push()?;
        }
        self.inner.flush()
    }
}

impl<F: Filter> Stream for FilteredStream<F> {
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.inner.set_read_timeout(timeout)
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.inner.set_write_timeout(timeout)
    }

    fn is_private(&self) -> bool {
        self.filter.encrypts() || self.inner.is_private()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn is_socket(&self) -> bool {
        self.inner.is_socket()
    }

    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn shutdown(&self) -> io::Result<()> {
        self.inner.shutdown()
    }

    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        // What is encrypted or in a frame has to go before anything that follows it.
        let mut taken = 0;
        if self.outgoing.is_empty() {
            taken = self.put_out(from)?;
        }
        while !self.outgoing.is_empty() {
            let came = self.push()? > 0;
            if came && self.plain.is_empty() && self.filter.take_in(&mut self.plain)? {
                return Ok((taken, self.plain.take_into(into)));
            }
        }
        Ok((taken, 0))
    }

    fn tcp_addresses(&self) -> Option<TcpAddresses> {
        self.inner.tcp_addresses()
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.inner.socket()
    }

    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_by(into, |inner, room| inner.try_read(room))
    }

    fn is_readable(&self) -> Option<bool> {
        if !self.plain.is_empty() || self.filter.has_more() {
            return Some(true);
        }
        self.inner.is_readable()
    }

    fn arm(&mut self) -> bool {
        !self.plain.is_empty() || self.filter.has_more() || self.inner.arm()
    }

    fn disarm(&mut self, socket_readable: bool) -> bool {
        let inner = self.inner.disarm(socket_readable);
        inner || !self.plain.is_empty() || self.filter.has_more()
    }

    fn return_to_pool(self: Box<Self>) {
        if self.plain.is_empty() && self.outgoing.is_empty() && !self.filter.has_more() {
            self.inner.return_to_pool();
        }
    }
}
