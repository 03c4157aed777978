//! Where servers are, and connecting to them.

use crate::ring_pool;
use crate::{SharedMemory, Stream, UnixSocket};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where to find a server.
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

/// A stream to `endpoint` from the pool, whose server has begun another connection: it has replied
/// to the `request` within `timeout`. `None` if there is no such stream: then the caller connects.
pub fn take_pooled(
    endpoint: &Endpoint,
    request: &[u8],
    timeout: Option<Duration>,
) -> Option<Box<dyn Stream>> {
    match endpoint {
        Endpoint::SharedMemory(path) => Some(Box::new(ring_pool::take(path, request, timeout)?)),
        Endpoint::Tcp { .. } | Endpoint::Unix(_) => None,
    }
}

/// Connects to `endpoint`. The addresses of a host are tried one after the other, `timeout` in all.
///
/// # Errors
/// If the host has no address, nobody listens, or the server doesn't offer what the endpoint says.
pub fn connect(endpoint: &Endpoint, timeout: Option<Duration>) -> io::Result<Box<dyn Stream>> {
    connect_from(endpoint, None, timeout)
}

/// As [`connect`]; over TCP from the address `local` of this machine, if one is given.
pub fn connect_from(
    endpoint: &Endpoint,
    local: Option<IpAddr>,
    timeout: Option<Duration>,
) -> io::Result<Box<dyn Stream>> {
    match endpoint {
        Endpoint::Tcp { host, port } => Ok(Box::new(connect_tcp(host, *port, local, timeout)?)),
        Endpoint::Unix(path) => Ok(Box::new(UnixSocket::connect(path)?)),
        Endpoint::SharedMemory(path) => {
            let origin = ring_pool::Origin::now(path);
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
    local: Option<IpAddr>,
    timeout: Option<Duration>,
) -> io::Result<TcpStream> {
    let stream = connect_to_any(host, port, timeout, |address, left| match (local, left) {
        (Some(local), left) if local.is_ipv4() == address.is_ipv4() => {
            connect_tcp_from(local, address, left)
        }
        (Some(_), _) => Err(io::ErrorKind::AddrNotAvailable.into()),
        (None, None) => TcpStream::connect(address),
        (None, Some(left)) => TcpStream::connect_timeout(&address, left),
    })?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Tries the addresses of a host in turn, each with what is left of the time.
///
/// # Errors
/// That of the last address; `NotFound` if there is none, `TimedOut` if the time is up before the next.
pub fn connect_to_any(
    host: &str,
    port: u16,
    timeout: Option<Duration>,
    mut connect: impl FnMut(SocketAddr, Option<Duration>) -> io::Result<TcpStream>,
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
        match connect(address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Connects from an address of this machine, and a port of it that no connection to another address
/// uses.
fn connect_tcp_from(
    local: IpAddr,
    peer: SocketAddr,
    timeout: Option<Duration>,
) -> io::Result<TcpStream> {
    let family = if peer.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A port whose last connection has ended may be taken again.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &std::net::SocketAddr::new(local, 0))?;
    // What limits a send limits connecting as well.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, timeout)?;
    match rustix::net::connect(&socket, &peer) {
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
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_tcp_stream_is_without_delay_and_carries_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp {
            host: "localhost".into(),
            port: listener.local_addr().unwrap().port(),
        };
        let mut local = connect(&endpoint, Some(Duration::from_secs(5))).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        local.write_all(b"ping").unwrap();
        let mut bytes = [0; 4];
        peer.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"ping");
        assert!(local.is_local() && !local.is_private());
        local.shutdown().unwrap();
        assert_eq!(peer.read(&mut bytes).unwrap(), 0);
    }

    #[test]
    fn a_client_connects_from_the_address_that_it_names() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".into(),
            port: listener.local_addr().unwrap().port(),
        };
        let local: IpAddr = "127.0.0.9".parse().unwrap();
        let timeout = Some(Duration::from_secs(5));
        let _stream = connect_from(&endpoint, Some(local), timeout).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), local);
        let other = Some("::1".parse().unwrap());
        let error = connect_from(&endpoint, other, timeout).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn a_read_that_times_out_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut local = connect(&Endpoint::Unix(path), None).unwrap();
        let _far = listener.accept().unwrap();
        local
            .set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        let error = local.read(&mut [0]).unwrap_err();
        assert!(matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
        ));
        assert!(local.is_private());
    }

    #[test]
    fn a_port_where_nobody_listens_refuses() {
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
