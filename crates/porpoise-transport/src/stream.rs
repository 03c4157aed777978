//! What all streams have in common, TCP connections, and the stream that has ended.

use crate::loopback::TcpAddresses;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Two-way bytes to another process.
pub trait Stream: Read + Write + Send + std::fmt::Debug {
    /// How long a read may wait; forever with `None`. A read that has waited for so long fails with
    /// [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`].
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// How long a write may wait; forever with `None`.
    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Whether nobody but the two ends can read what passes.
    fn is_private(&self) -> bool;

    /// Whether the peer is on this machine.
    fn is_local(&self) -> bool;

    /// Whether its bytes pass through a socket, so that encrypting them makes sense.
    fn is_socket(&self) -> bool {
        false
    }

    /// What it is, for people: `TCP/IP`, `UNIX socket`, `shared memory`.
    fn kind(&self) -> &'static str;

    /// Ends both directions; the peer notices at once.
    fn shutdown(&self) -> io::Result<()>;

    /// Writes some of `from`, or reads into `into` while there is no room to write: returns how
    /// many bytes of each. For a program that sends much to a peer that replies before it takes
    /// more: if it only wrote, it would wait for ever. A stream that always has room needn't read.
    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        let _ = into;
        Ok((self.write(from)?, 0))
    }

    /// The addresses of a TCP connection; `None` for other streams.
    fn tcp_addresses(&self) -> Option<TcpAddresses> {
        None
    }

    /// The socket that it is, or by which it learns that the peer is gone; `None` if there is no
    /// such socket.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Reads what is there: fails with [`io::ErrorKind::WouldBlock`] where [`read`](Read::read)
    /// would wait. A stream that never waits needn't tell the two apart.
    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read(into)
    }

    /// Whether there is something to read, as far as memory tells; `None` if only the system knows,
    /// by a poll of the [`socket`](Self::socket).
    fn is_readable(&self) -> Option<bool> {
        self.socket().is_none().then_some(true)
    }

    /// The reader is about to sleep in a poll of the socket: has the peer write to the socket when
    /// it sends something. True if there is something to read already.
    fn arm(&mut self) -> bool {
        false
    }

    /// The reader is awake again; `socket_readable` tells whether the socket had something. True if
    /// there is something to read, or the peer is gone.
    fn disarm(&mut self, socket_readable: bool) -> bool {
        socket_readable
    }

    /// The connection over it has ended in good order. A stream that can carry another is pooled,
    /// for this process to [take](crate::take_pooled); any other ends.
    fn return_to_pool(self: Box<Self>) {}
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// [`Stream::write_or_read`] for a socket.
pub(crate) fn write_or_read(
    socket: BorrowedFd<'_>,
    timeout: Option<Duration>,
    from: &[u8],
    into: &mut [u8],
) -> io::Result<(usize, usize)> {
    let timeout = timeout.map(timespec);
    loop {
        match send(socket, from, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            sent => return Ok((sent?, 0)),
        }
        match recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            received => return Ok((0, received?.0)),
        }
        let mut polled = [PollFd::from_borrowed_fd(
            socket,
            PollFlags::IN | PollFlags::OUT,
        )];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A stream that has ended: a read returns 0, a write fails with [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct ClosedStream;

impl Read for ClosedStream {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Write for ClosedStream {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for ClosedStream {
    fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "nothing"
    }

    fn shutdown(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for TcpStream {
    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        write_or_read(self.as_fd(), self.write_timeout()?, from, into)
    }

    fn tcp_addresses(&self) -> Option<TcpAddresses> {
        let (local, peer) = (self.local_addr().ok()?, self.peer_addr().ok()?);
        Some(TcpAddresses::new(local, peer))
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        TcpStream::set_read_timeout(self, timeout)
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        TcpStream::set_write_timeout(self, timeout)
    }

    fn is_private(&self) -> bool {
        false
    }

    fn is_local(&self) -> bool {
        self.peer_addr().is_ok_and(|peer| peer.ip().is_loopback())
    }

    fn is_socket(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "TCP/IP"
    }

    fn shutdown(&self) -> io::Result<()> {
        TcpStream::shutdown(self, Shutdown::Both)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.as_fd(), into, RecvFlags::DONTWAIT)?.0)
    }
}
