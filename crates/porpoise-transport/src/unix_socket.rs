//! The client's end of a Unix socket.
//!
//! A thread that sleeps in `recv` on a Unix socket is woken twice for each reply. Linux wakes all
//! threads that sleep on a socket when its peer takes what was sent, as there is room to write
//! then; only a thread that sleeps in `poll` says that it waits for something else:
//!
//! ```text
//!   client:  send ── recv: sleeps ────── woken for nothing, sleeps ────── woken
//!   server:             takes the request ──┘           sends the reply ───┘
//! ```
//!
//! Each wake costs two context switches, and an interrupt if it crosses cores. So reading polls
//! first.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::Stream;
use crate::stream::{timespec, write_or_read};

/// A Unix socket, as a blocking stream.
#[derive(Debug)]
pub struct UnixSocket {
    stream: UnixStream,
    read_timeout: Cell<Option<Duration>>,
    /// The last read took all it had room for, so there may be more.
    more: bool,
}

impl UnixSocket {
    /// Connects to the socket at `path`. It succeeds or fails at once, unless the backlog is full.
    pub(crate) fn connect(path: &Path) -> io::Result<UnixSocket> {
        let address = SocketAddr::from_pathname(path)?;
        Ok(UnixStream::connect_addr(&address)?.into())
    }

    /// The socket itself.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }
}

/// From a socket that has no timeouts yet.
impl From<UnixStream> for UnixSocket {
    fn from(stream: UnixStream) -> UnixSocket {
        UnixSocket {
            stream,
            read_timeout: Cell::new(None),
            more: false,
        }
    }
}

impl Read for UnixSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let timeout = self.read_timeout.get().map(timespec);
        loop {
            if !std::mem::take(&mut self.more) {
                let mut polled = [PollFd::new(&self.stream, PollFlags::IN)];
                match poll(&mut polled, timeout.as_ref()) {
                    Ok(0) => return Err(io::ErrorKind::WouldBlock.into()),
                    Ok(_) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            match recv(&self.stream, &mut *into, RecvFlags::DONTWAIT) {
                Ok((count, _)) => {
                    self.more = count > 0 && count == into.len();
                    return Ok(count);
                }
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for UnixSocket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for UnixSocket {
    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        write_or_read(
            self.stream.as_fd(),
            self.stream.write_timeout()?,
            from,
            into,
        )
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.read_timeout.set(timeout);
        Ok(())
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_write_timeout(timeout)
    }

    fn is_private(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn is_socket(&self) -> bool {
        true
    }

    fn kind(&self) -> &'static str {
        "UNIX socket"
    }

    fn shutdown(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.stream, into, RecvFlags::DONTWAIT)?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::time::Instant;

    fn pair() -> (UnixSocket, UnixStream) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let local = UnixSocket::connect(&path).unwrap();
        (local, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_come_whole_whatever_the_room_for_them() {
        let (mut local, mut peer) = pair();
        let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let expected = sent.clone();
        let sender = std::thread::spawn(move || peer.write_all(&sent));
        let mut received = Vec::new();
        let mut part = [0; 1000];
        loop {
            match local.read(&mut part).unwrap() {
                0 => break,
                count => received.extend_from_slice(&part[..count]),
            }
        }
        sender.join().unwrap().unwrap();
        assert_eq!(received, expected);
    }

    #[test]
    fn a_read_waits_no_longer_than_it_may() {
        let (mut local, mut peer) = pair();
        let timeout = Duration::from_millis(50);
        local.set_read_timeout(Some(timeout)).unwrap();
        let began = Instant::now();
        let error = local.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(began.elapsed() >= timeout);
        peer.write_all(b"late").unwrap();
        let mut bytes = [0; 4];
        assert_eq!(local.read(&mut bytes).unwrap(), 4);
        // It filled the room, and there is no more.
        let error = local.read(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(peer);
        assert_eq!(local.read(&mut bytes).unwrap(), 0);
    }
}
