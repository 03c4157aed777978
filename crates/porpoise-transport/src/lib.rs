//! Streams between processes. Knows nothing of MySQL.
//!
//! A [`Stream`] is two-way bytes to another process, in order and whole; how they travel is its own affair.
//! [`connect`] dials an [`Endpoint`]. What every stream tells of itself is what the layers above have to know:
//! whether anybody else could read along ([`Stream::is_private`]), and whether the peer is on this machine.
//!
//! | endpoint | stream | private |
//! | --- | --- | --- |
//! | [`Endpoint::Tcp`] | a TCP connection, without Nagle's delay | no |
//! | [`Endpoint::Unix`] | a Unix socket | yes |
//! | [`Endpoint::SharedMemory`] | a pair of rings in memory, beside a Unix socket | yes |
//!
//! `unix_socket` is the second. [`loopback`] takes a TCP connection within the machine to shared memory, when both ends want it.
//!
//! Shared memory, from the outside in: [`shared_memory`] is how two processes come to share rings, and the streams over them;
//! `kept` how they go on to share them;
//! [`ring`] the rules by which two ends that don't trust each other pass bytes and wake each other; [`memory`] how words and
//! rings lie in the mapping; [`spin`] how long to look before sleeping. What is the system's own is in `sys`.
//!
//! [`Poll`] waits for several streams at once.
//!
//! ```no_run
//! use porpoise_transport::{Endpoint, connect};
//! use std::io::Write;
//!
//! let endpoint = Endpoint::Unix("/run/mysqld/mysqld.sock".into());
//! let mut stream = connect(&endpoint, None)?;
//! stream.write_all(b"hello")?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod kept;
pub mod loopback;
#[allow(unsafe_code, reason = "it follows pointers into the mapping")]
pub mod memory;
mod poll;
pub mod ring;
pub mod shared_memory;
pub mod spin;
#[allow(unsafe_code, reason = "it maps memory")]
mod sys;
mod unix_socket;

pub use poll::Poll;
pub use ring::Wants;
pub use shared_memory::{ServerEnd, SharedMemory};
pub use unix_socket::UnixSocket;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Two-way bytes to another process.
pub trait Stream: Read + Write + Send + std::fmt::Debug {
    /// How long a read may wait; forever with `None`. A read that waited in vain fails with
    /// [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`].
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// How long a write may wait; forever with `None`.
    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Whether nobody but the two ends can read what passes.
    fn is_private(&self) -> bool;

    /// Whether the peer is on this machine.
    fn is_local(&self) -> bool;

    /// What it is, for people: `TCP/IP`, `UNIX socket`, `shared memory`.
    fn kind(&self) -> &'static str;

    /// Ends both directions; the peer sees it at once.
    fn shutdown(&self) -> io::Result<()>;

    /// Writes some of `from`, or reads into `into` while there is no room to write: how many bytes of each. For whoever
    /// sends much to a peer that answers before it takes more; who only wrote would wait for ever. A stream
    /// that always has room needn't read.
    fn write_or_read(&mut self, from: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        let _ = into;
        Ok((self.write(from)?, 0))
    }

    /// The addresses of a TCP connection.
    fn tcp_ends(&self) -> Option<loopback::Ends> {
        None
    }

    /// The socket that it is, or that tells of the peer's end.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Reads what is there: fails with [`io::ErrorKind::WouldBlock`] where [`read`](Read::read) would wait. A stream that
    /// never waits needn't tell the two apart.
    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read(into)
    }

    /// Whether there is something to read, as far as a look into memory tells; `None` if only the system knows, which
    /// a poll of its [`socket`](Self::socket) asks.
    fn is_readable(&self) -> Option<bool> {
        self.socket().is_none().then_some(true)
    }

    /// Its reader is about to sleep in a poll of its socket, where the peer is to make itself heard. True: there is
    /// something to read already.
    fn arm(&mut self) -> bool {
        false
    }

    /// Its reader is awake again; `is_heard` tells whether the socket had something. True: there is something to read, or
    /// the peer is gone.
    fn disarm(&mut self, is_heard: bool) -> bool {
        is_heard
    }

    /// The conversation over it has ended in good order. One that can carry another is kept for whoever in this process
    /// [wants it next](take_kept); any other ends.
    fn keep(self: Box<Self>) {}
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// [`Stream::write_or_read`] for a socket.
fn write_or_read(
    socket: BorrowedFd<'_>,
    patience: Option<Duration>,
    from: &[u8],
    into: &mut [u8],
) -> io::Result<(usize, usize)> {
    let patience = patience.map(timespec);
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
        match poll(&mut polled, patience.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The end of a stream. Nothing comes from it, and nothing goes into it.
#[derive(Debug)]
pub struct Ended;

impl Read for Ended {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Write for Ended {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Ended {
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

    fn tcp_ends(&self) -> Option<loopback::Ends> {
        let (near, far) = (self.local_addr().ok()?, self.peer_addr().ok()?);
        Some(loopback::Ends::new(near, far))
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

    fn kind(&self) -> &'static str {
        "TCP/IP"
    }

    fn shutdown(&self) -> io::Result<()> {
        TcpStream::shutdown(self, Shutdown::Both)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.as_fd(), into, RecvFlags::DONTWAIT)?.0)
    }
}

/// Where to find a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A host, by name or address, and a port.
    Tcp {
        /// A name that resolves, an IPv4 address, or an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// The path of the Unix socket where a server offers shared memory.
    SharedMemory(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(formatter, "{host}:{port}"),
            Self::Unix(path) | Self::SharedMemory(path) => write!(formatter, "{}", path.display()),
        }
    }
}

/// A stream to `endpoint` that was [kept](Stream::keep), whose server has taken up the next conversation: something came in answer
/// to the `knock`, within `patience`. Without such a stream `endpoint` has to be dialled.
pub fn take_kept(
    endpoint: &Endpoint,
    knock: &[u8],
    patience: Option<Duration>,
) -> Option<Box<dyn Stream>> {
    match endpoint {
        Endpoint::SharedMemory(path) => Some(Box::new(kept::take(path, knock, patience)?)),
        Endpoint::Tcp { .. } | Endpoint::Unix(_) => None,
    }
}

/// Dials `endpoint`. A host with several addresses is tried address by address, `timeout` in all.
pub fn connect(endpoint: &Endpoint, timeout: Option<Duration>) -> io::Result<Box<dyn Stream>> {
    connect_from(endpoint, None, timeout)
}

/// Dials `endpoint`; over TCP from the address `near` of this machine, if one is given.
pub fn connect_from(
    endpoint: &Endpoint,
    near: Option<IpAddr>,
    timeout: Option<Duration>,
) -> io::Result<Box<dyn Stream>> {
    match endpoint {
        Endpoint::Tcp { host, port } => Ok(Box::new(connect_tcp(host, *port, near, timeout)?)),
        Endpoint::Unix(path) => Ok(Box::new(UnixSocket::connect(path)?)),
        Endpoint::SharedMemory(path) => {
            let origin = kept::Origin::now(path);
            let socket = UnixSocket::connect(path)?.into_stream();
            Ok(Box::new(SharedMemory::accept_from(
                socket, origin, timeout,
            )?))
        }
    }
}

fn connect_tcp(
    host: &str,
    port: u16,
    near: Option<IpAddr>,
    timeout: Option<Duration>,
) -> io::Result<TcpStream> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut failure = io::Error::new(
        io::ErrorKind::NotFound,
        format!("no address for host '{host}'"),
    );
    for address in (host, port).to_socket_addrs()? {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let dialled = match (near, left) {
            (Some(near), left) if near.is_ipv4() == address.is_ipv4() => {
                dial_from(near, address, left)
            }
            (Some(_), _) => Err(io::ErrorKind::AddrNotAvailable.into()),
            (None, None) => TcpStream::connect(address),
            (None, Some(left)) => TcpStream::connect_timeout(&address, left),
        };
        match dialled {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Dials from an address of this machine, and any port of it that no connection to somewhere else uses.
fn dial_from(
    near: IpAddr,
    far: std::net::SocketAddr,
    patience: Option<Duration>,
) -> io::Result<TcpStream> {
    let family = if far.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A port whose last connection has ended may be taken again.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &std::net::SocketAddr::new(near, 0))?;
    // What limits a send limits connecting as well.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, patience)?;
    match rustix::net::connect(&socket, &far) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
        Err(error) => return Err(error.into()),
    }
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, None)?;
    Ok(TcpStream::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_tcp_stream_is_dialled_without_delay_and_carries_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp {
            host: "localhost".into(),
            port: listener.local_addr().unwrap().port(),
        };
        let mut near = connect(&endpoint, Some(Duration::from_secs(5))).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(b"ping").unwrap();
        let mut bytes = [0; 4];
        far.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"ping");
        assert!(near.is_local() && !near.is_private());
        near.shutdown().unwrap();
        assert_eq!(far.read(&mut bytes).unwrap(), 0);
    }

    #[test]
    fn a_client_dials_from_the_address_it_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: listener.local_addr().unwrap().port(),
        };
        let near: IpAddr = "127.0.0.9".parse().unwrap();
        let patience = Some(Duration::from_secs(5));
        let _stream = connect_from(&endpoint, Some(near), patience).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), near);
        let other = Some("::1".parse().unwrap());
        let error = connect_from(&endpoint, other, patience).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn a_read_that_waits_in_vain_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut near = connect(&Endpoint::Unix(path), None).unwrap();
        let _far = listener.accept().unwrap();
        near.set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        let error = near.read(&mut [0]).unwrap_err();
        assert!(matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
        ));
        assert!(near.is_private());
    }

    #[test]
    fn a_port_that_nobody_listens_on_refuses() {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port,
        };
        let error = connect(&endpoint, Some(Duration::from_secs(5))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
