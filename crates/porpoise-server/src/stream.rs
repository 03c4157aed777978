//! One connection's bytes: a TCP or a Unix socket, never blocking.
//!
//! The event loop reads and writes when the socket is ready. A statement that has handed the loop
//! to another thread may wait for the socket itself, with [`Stream::wait_writable`]. Streams of
//! other kinds (TLS, a ring in shared memory) are further variants of [`Stream`].

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec};

/// Where a client comes from, as accounts and the process list see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    Unix,
}

impl Peer {
    /// The host part that accounts are matched with: MySQL calls a Unix socket's and a loopback
    /// address' host `localhost`.
    pub fn host(&self) -> String {
        match self {
            Peer::Unix => "localhost".to_string(),
            Peer::Tcp(address) => match address.ip().to_canonical() {
                ip if ip.is_loopback() => "localhost".to_string(),
                ip => ip.to_string(),
            },
        }
    }

    /// The address itself, for accounts made for an address.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Unix => None,
            Peer::Tcp(address) => Some(address.ip().to_canonical()),
        }
    }

    /// What the process list shows: the host, and the port for TCP.
    pub fn display(&self) -> String {
        match self {
            Peer::Unix => "localhost".to_string(),
            Peer::Tcp(address) => format!("{}:{}", self.host(), address.port()),
        }
    }

    /// A password may travel in clear: nothing leaves the machine. Some clients send it so over loopback.
    pub fn is_private(&self) -> bool {
        match self {
            Peer::Unix => true,
            Peer::Tcp(address) => address.ip().to_canonical().is_loopback(),
        }
    }
}

#[derive(Debug)]
pub enum Stream {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

macro_rules! each {
    ($stream:expr, $inner:ident => $body:expr) => {
        match $stream {
            Stream::Tcp($inner) => $body,
            Stream::Unix($inner) => $body,
        }
    };
}

impl Stream {
    /// Reads what is there; `WouldBlock` when nothing is, `Ok(0)` when the client is gone.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = each!(self, s => { let mut s = s; s.read(into) });
            if !matches!(&result, Err(e) if e.kind() == io::ErrorKind::Interrupted) {
                return result;
            }
        }
    }

    /// Writes as much as fits at once.
    pub fn write(&self, from: &[u8]) -> io::Result<usize> {
        loop {
            let result = each!(self, s => { let mut s = s; s.write(from) });
            if !matches!(&result, Err(e) if e.kind() == io::ErrorKind::Interrupted) {
                return result;
            }
        }
    }

    /// Begins to report readiness, edge by edge: readable, and writable on demand.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        each!(self, s => s.register(registry, token, Interest::READABLE))
    }

    /// Reports room for writing too, while a reply didn't fit.
    pub fn watch_writable(
        &mut self,
        registry: &Registry,
        token: Token,
        on: bool,
    ) -> io::Result<()> {
        let interest = if on {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        each!(self, s => s.reregister(registry, token, interest))
    }

    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        each!(self, s => s.deregister(registry))
    }

    /// Waits on this thread until the socket takes more bytes: true; false when `patience` ran out.
    pub fn wait_writable(&self, patience: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(self, PollFlags::OUT)];
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => Ok(false),
            Ok(_) if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The operating system's user at the other end of a Unix socket (SO_PEERCRED).
    pub fn peer_uid(&self) -> Option<u32> {
        match self {
            Stream::Tcp(_) => None,
            Stream::Unix(s) => rustix::net::sockopt::socket_peercred(s)
                .ok()
                .map(|them| them.uid.as_raw()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, s => s.as_fd())
    }
}
