//! Listeners: a TCP port, a Unix socket, and sockets where shared memory is offered, to everybody
//! or to the same user; opened before the server says it is ready.
//!
//! Every worker watches every listener and keeps the clients that it accepts. Of the workers that
//! sleep, a client wakes one (`EPOLLEXCLUSIVE`). A backlog that one worker has no time for is seen
//! by the next that polls.
//!
//! A Unix socket's file outlives the process that made it. One that nobody listens on is removed
//! and made again; one where a connection is accepted is in use, and starting fails.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use mio::{Registry, Token};
use porpoise_transport::ServerEnd;
use rustix::event::epoll;

use crate::stream::{Peer, Stream};

/// Where clients connect.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(mio::net::TcpListener),
    Unix {
        listener: mio::net::UnixListener,
        _file: SocketFile,
        /// Each client is given a pair of rings in shared memory.
        offers_rings: bool,
    },
    /// Shared memory for processes of the same user. The socket's file belongs to the
    /// [`InstanceSocket`](crate::instance_socket::InstanceSocket).
    Instance(mio::net::UnixListener),
}

/// The path of a Unix socket. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = fs::remove_file(&self.0);
    }
}

impl Listener {
    /// A TCP port where `backlog` clients may wait to be accepted; the system may have a lower
    /// limit of its own.
    pub fn tcp(address: SocketAddr, backlog: i32) -> io::Result<Listener> {
        let listener = mio::net::TcpListener::bind(address)?;
        rustix::net::listen(&listener, backlog)?;
        if ACCEPTED_INHERIT {
            set_options(listener.as_fd())?;
        }
        Ok(Listener::Tcp(listener))
    }

    /// A Unix socket, or one where shared memory is offered.
    pub fn unix(path: &Path, offers_rings: bool, backlog: i32) -> io::Result<Listener> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                match std::os::unix::net::UnixStream::connect(path) {
                    Ok(_) => {
                        return Err(io::Error::new(
                            io::ErrorKind::AddrInUse,
                            "another server listens on it",
                        ));
                    }
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                        fs::remove_file(path)?
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "it exists and is not a socket",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = mio::net::UnixListener::bind(path)?;
        rustix::net::listen(&listener, backlog)?;
        let file = SocketFile(path.to_path_buf());
        // Everybody who may search the folder may connect: accounts and passwords decide who logs
        // in.
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        Ok(Listener::Unix {
            listener,
            _file: file,
            offers_rings,
        })
    }

    /// A listener for processes of the same user.
    pub fn instance(listener: &UnixListener) -> io::Result<Listener> {
        let listener = listener.try_clone()?;
        listener.set_nonblocking(true)?;
        let listener = mio::net::UnixListener::from_std(listener);
        Ok(Listener::Instance(listener))
    }

    /// The address it really has: port 0 asks for any free one.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix { .. } | Listener::Instance(_) => None,
        }
    }

    /// Each client is given rings.
    pub fn offers_rings(&self) -> bool {
        match self {
            Listener::Tcp(_) => false,
            Listener::Unix { offers_rings, .. } => *offers_rings,
            Listener::Instance(_) => true,
        }
    }

    /// The next client, to be refused; `None` for one that waits for rings, which
    /// is disconnected. It takes one descriptor.
    pub fn accept_to_refuse(&self) -> io::Result<Option<(Stream, Peer)>> {
        match self {
            Listener::Unix {
                listener,
                offers_rings: true,
                ..
            }
            | Listener::Instance(listener) => listener.accept().map(|_| None),
            Listener::Tcp(_) | Listener::Unix { .. } => self.accept().map(Some),
        }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix { listener, .. } | Listener::Instance(listener) => listener.as_fd(),
        }
    }

    /// Has an event loop, one of several, notified as long as a client waits to be accepted.
    pub fn watch(&self, registry: &Registry, token: Token) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.0 as u64);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
        Ok(epoll::add(registry, self.socket(), data, flags)?)
    }

    pub fn unwatch(&self, registry: &Registry) -> io::Result<()> {
        Ok(epoll::delete(registry, self.socket())?)
    }

    /// The next client; `WouldBlock` if there is none.
    pub fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                if !ACCEPTED_INHERIT {
                    set_options(stream.as_fd())?;
                }
                Ok((Stream::Tcp(stream), Peer::Tcp(address)))
            }
            Listener::Unix {
                listener,
                offers_rings,
                ..
            } => {
                let (stream, _) = listener.accept()?;
                if !offers_rings {
                    return Ok((Stream::Unix(stream), Peer::Unix));
                }
                Ok((with_rings(stream, ServerEnd::offer_reusable)?, Peer::Unix))
            }
            Listener::Instance(listener) => {
                let (stream, _) = listener.accept()?;
                let uid = rustix::net::sockopt::socket_peercred(&stream)?.uid;
                if !uid.is_root() && uid != rustix::process::geteuid() {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                Ok((with_rings(stream, ServerEnd::offer)?, Peer::SameUser))
            }
        }
    }
}

/// On Linux an accepted socket inherits its listener's options: two system calls less for each
/// connection.
const ACCEPTED_INHERIT: bool = cfg!(target_os = "linux");

fn set_options(socket: BorrowedFd<'_>) -> io::Result<()> {
    rustix::net::sockopt::set_tcp_nodelay(socket, true)?;
    Ok(rustix::net::sockopt::set_socket_keepalive(socket, true)?)
}

fn with_rings(
    stream: mio::net::UnixStream,
    offer: fn(UnixStream) -> io::Result<ServerEnd>,
) -> io::Result<Stream> {
    let end = offer(OwnedFd::from(stream).into()).map_err(|error| match error.kind() {
        // The client has gone already.
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            io::ErrorKind::ConnectionAborted.into()
        }
        _ => error,
    })?;
    Ok(Stream::SharedMemory(Box::new(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_connection_has_its_listeners_options() {
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let _client = std::net::TcpStream::connect(listener.tcp_address().unwrap()).unwrap();
        let (Stream::Tcp(stream), _) = listener.accept().unwrap() else {
            panic!("not a TCP connection");
        };
        assert!(stream.nodelay().unwrap());
        assert!(rustix::net::sockopt::socket_keepalive(&stream).unwrap());
    }

    #[test]
    fn a_socket_left_behind_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let listener = Listener::unix(&path, false, 8).unwrap();
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_somebody_listens_on_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(
            Listener::unix(&path, false, 8).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
        assert!(path.exists());
    }

    #[test]
    fn as_many_clients_wait_as_the_backlog_says() {
        use rustix::net::{
            AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let _listener = Listener::unix(&path, false, 2).unwrap();
        let flags = SocketFlags::NONBLOCK;
        let clients = (0..9).map_while(|_| {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
            connect(&socket, &SocketAddrUnix::new(&path).unwrap()).ok()?;
            Some(socket)
        });
        // The system lets one more wait than the backlog says.
        assert_eq!(clients.collect::<Vec<_>>().len(), 3);
    }

    #[test]
    fn a_plain_file_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("precious");
        fs::write(&path, "text").unwrap();
        assert!(Listener::unix(&path, false, 8).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }
}
