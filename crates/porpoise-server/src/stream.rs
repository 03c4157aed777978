//! One connection's bytes: a TCP socket, a Unix socket or a pair of rings in shared memory, never
//! blocking.
//!
//! The event loop reads and writes when the stream is ready. A statement that has handed the loop
//! to another thread may wait for the stream itself, with [`Stream::wait_for`].
//!
//! A layer is a stream over another: it changes the bytes on their way, and what concerns the way
//! itself (readiness, addresses, credentials) it leaves to the stream below.
//!
//! ```text
//!   packets ── [compression] ── [TLS] ── TCP socket, Unix socket or rings
//! ```
//!
//! What a layer has made and the stream below doesn't take waits in it
//! ([`Stream::has_pending`]). Of what it has received nothing is left after a read that gave less
//! than there was room for. A connection without layers pays for them nothing but arms of a `match`
//! that it goes through anyway.
//!
//! The system reports when a socket is ready. A ring has to be polled ([`Stream::is_ready`]); only
//! when it is [armed](Stream::arm) does its client ring the doorbell that the system watches. The
//! socket beside the ring is watched always: it tells when the client is gone.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use porpoise_engine::tls::ClientTls;
use porpoise_protocol::frame::PacketReader;
use porpoise_transport::loopback::TcpAddresses;
use porpoise_transport::{RingInterest, ServerEnd};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::compressed_stream::CompressedStream;
use crate::in_process::PendingReply;
use crate::layer::Layer;
use crate::tls::TlsStream;

/// Where a client comes from, as accounts and the process list see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    Unix,
    /// Another process of the user that this one runs as: a process that may read the database's
    /// files needs no account.
    SameUser,
}

impl Peer {
    /// The host part that accounts are matched with: MySQL calls a Unix socket's and a loopback
    /// address' host `localhost`.
    pub fn host(&self) -> String {
        match self {
            Peer::Unix | Peer::SameUser => "localhost".to_string(),
            Peer::Tcp(address) => match address.ip().to_canonical() {
                ip if ip.is_loopback() => "localhost".to_string(),
                ip => ip.to_string(),
            },
        }
    }

    /// The address itself, for accounts made for an address.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Unix | Peer::SameUser => None,
            Peer::Tcp(address) => Some(address.ip().to_canonical()),
        }
    }

    /// Where it comes from over a network, not on this machine.
    pub fn remote_ip(&self) -> Option<IpAddr> {
        self.ip().filter(|ip| !ip.is_loopback())
    }

    /// By what means it comes, as the general log says.
    pub fn means(&self) -> &'static str {
        match self {
            Peer::Unix | Peer::SameUser => "Socket",
            Peer::Tcp(_) => "TCP/IP",
        }
    }

    /// What the process list shows: the host, and the port for TCP.
    pub fn display(&self) -> String {
        self.display_as(&self.host())
    }

    /// As [`display`](Self::display), of a client whose host has a name.
    pub fn display_as(&self, host: &str) -> String {
        match self {
            Peer::Unix | Peer::SameUser => host.to_string(),
            Peer::Tcp(address) => format!("{host}:{}", address.port()),
        }
    }

    /// A password may travel in clear: nothing leaves the machine. Some clients send it so over
    /// loopback.
    pub fn is_private(&self) -> bool {
        match self {
            Peer::Unix | Peer::SameUser => true,
            Peer::Tcp(address) => address.ip().to_canonical().is_loopback(),
        }
    }
}

/// Where a connection's bytes go.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
    SharedMemory(Box<ServerEnd>),
    /// A layer that encrypts.
    Tls(Box<TlsStream>),
    /// A layer of compressed frames.
    Compressed(Box<CompressedStream>),
    /// Not served by an event loop: its client is on this thread.
    InProcess(PendingReply),
}

/// What has come of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The client is gone.
    End,
    Bytes {
        count: usize,
        /// It was all that had come.
        drained: bool,
    },
}

/// What the system watches for rings: the socket that tells of the client's end, and the doorbell.
fn watched(end: &ServerEnd) -> [RawFd; 2] {
    [end.socket().as_raw_fd(), end.doorbell().as_raw_fd()]
}

impl Stream {
    /// Takes the stream to put a layer over it, and leaves one without a client.
    pub fn take(&mut self) -> Stream {
        std::mem::replace(self, Stream::InProcess(PendingReply::default()))
    }

    /// Reads what is there; `WouldBlock` when nothing is, `Ok(0)` when the client is gone.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Stream::Tcp(socket) => socket.read(into),
                Stream::Unix(socket) => socket.read(into),
                Stream::SharedMemory(end) => end.read(into),
                Stream::Tls(tls) => tls.read(into),
                // Frames are received into a reader.
                Stream::Compressed(_) => return Err(io::ErrorKind::Unsupported.into()),
                Stream::InProcess(_) => return Err(io::ErrorKind::WouldBlock.into()),
            };
            if !matches!(&result, Err(e) if e.kind() == io::ErrorKind::Interrupted) {
                return result;
            }
        }
    }

    /// Reads what is there into a reader of packets; `WouldBlock` when nothing is.
    #[inline]
    pub fn receive(&mut self, reader: &mut PacketReader) -> io::Result<Received> {
        if let Stream::Compressed(frames) = self {
            return frames.receive(reader);
        }
        let room = reader.spare();
        let room_bytes = room.len();
        let count = self.read(room)?;
        reader.filled(count);
        Ok(match count {
            0 => Received::End,
            count => Received::Bytes {
                count,
                drained: count < room_bytes,
            },
        })
    }

    /// Writes as much as fits at once.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Stream::Tcp(socket) => socket.write(from),
                Stream::Unix(socket) => socket.write(from),
                Stream::SharedMemory(end) => end.write(from),
                Stream::Tls(tls) => tls.write(from),
                Stream::Compressed(frames) => frames.write(from),
                Stream::InProcess(pending_reply) => return pending_reply.write(from),
            };
            if !matches!(&result, Err(e) if e.kind() == io::ErrorKind::Interrupted) {
                return result;
            }
        }
    }

    /// Writes as much of several pieces as fits at once.
    pub fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(socket) => socket.write_vectored(from),
            Stream::Unix(socket) => socket.write_vectored(from),
            Stream::SharedMemory(_)
            | Stream::Tls(_)
            | Stream::Compressed(_)
            | Stream::InProcess(_) => {
                let first = from.iter().find(|piece| !piece.is_empty());
                first.map_or(Ok(0), |piece| self.write(piece))
            }
        }
    }

    /// A layer has made bytes that the stream below hasn't taken yet.
    #[inline]
    pub fn has_pending(&self) -> bool {
        match self {
            Stream::Tls(tls) => tls.has_pending(),
            Stream::Compressed(frames) => frames.has_pending(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::SharedMemory(_) | Stream::InProcess(_) => {
                false
            }
        }
    }

    /// Sends what a layer has made; `WouldBlock` if the stream below doesn't take all of it.
    pub fn flush_pending(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(tls) => tls.flush(),
            Stream::Compressed(frames) => frames.flush(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::SharedMemory(_) | Stream::InProcess(_) => {
                Ok(())
            }
        }
    }

    /// Ends a socket's stream in a direction.
    pub fn shut_down(&mut self, how: Shutdown) {
        // One that is broken already has ended as well.
        let _ = match self {
            Stream::Tcp(socket) => socket.shutdown(how),
            Stream::Unix(socket) => socket.shutdown(how),
            Stream::Tls(_)
            | Stream::Compressed(_)
            | Stream::SharedMemory(_)
            | Stream::InProcess(_) => Ok(()),
        };
    }

    /// How it is encrypted; `None` if it isn't.
    pub fn client_tls(&self) -> Option<&Arc<ClientTls>> {
        match self {
            Stream::Tls(tls) => tls.client(),
            Stream::Compressed(frames) => frames.below().client_tls(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::SharedMemory(_) | Stream::InProcess(_) => {
                None
            }
        }
    }

    /// Begins to report readiness, edge by edge: readable, and writable on demand.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let readable = Interest::READABLE;
        match self {
            Stream::Tcp(socket) => socket.register(registry, token, readable),
            Stream::Unix(socket) => socket.register(registry, token, readable),
            Stream::SharedMemory(end) => watched(end)
                .iter()
                .try_for_each(|fd| SourceFd(fd).register(registry, token, readable)),
            Stream::Tls(tls) => tls.below_mut().register(registry, token),
            Stream::Compressed(frames) => frames.below_mut().register(registry, token),
            Stream::InProcess(_) => Ok(()),
        }
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
        match self {
            Stream::Tcp(socket) => socket.reregister(registry, token, interest),
            Stream::Unix(socket) => socket.reregister(registry, token, interest),
            Stream::Tls(tls) => tls.below_mut().watch_writable(registry, token, on),
            Stream::Compressed(frames) => frames.below_mut().watch_writable(registry, token, on),
            // A connection that waits for room in a ring arms it.
            Stream::SharedMemory(_) | Stream::InProcess(_) => Ok(()),
        }
    }

    /// Reports only that the client is gone. Of rings nothing else can be told apart.
    #[cfg(target_os = "linux")]
    pub fn watch_end(&self, registry: &Registry, token: Token) -> io::Result<()> {
        use rustix::event::epoll::{self, EventData, EventFlags};
        let socket = match self {
            Stream::Tcp(socket) => (*socket).as_fd(),
            Stream::Unix(socket) => (*socket).as_fd(),
            Stream::Tls(tls) => return tls.below().watch_end(registry, token),
            Stream::Compressed(frames) => return frames.below().watch_end(registry, token),
            Stream::SharedMemory(_) | Stream::InProcess(_) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        };
        let data = EventData::new_u64(token.0 as u64);
        epoll::modify(registry, socket, data, EventFlags::RDHUP | EventFlags::ET)?;
        Ok(())
    }

    /// Other systems' events of the end come with those of bytes.
    #[cfg(not(target_os = "linux"))]
    pub fn watch_end(&self, _registry: &Registry, _token: Token) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Stream::Tcp(socket) => socket.deregister(registry),
            Stream::Unix(socket) => socket.deregister(registry),
            Stream::SharedMemory(end) => watched(end)
                .iter()
                .try_for_each(|fd| SourceFd(fd).deregister(registry)),
            Stream::Tls(tls) => tls.below_mut().deregister(registry),
            Stream::Compressed(frames) => frames.below_mut().deregister(registry),
            Stream::InProcess(_) => Ok(()),
        }
    }

    /// Ends a stream that is closed next: its watch, and what a layer has to say at its end. A
    /// socket's watch ends with the socket, without a system call; a doorbell is its client's too,
    /// and would go on to ring.
    pub fn end(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Stream::Tls(tls) => {
                tls.end();
                tls.below_mut().end(registry)
            }
            Stream::Compressed(frames) => frames.below_mut().end(registry),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::InProcess(_) => Ok(()),
            Stream::SharedMemory(_) => self.deregister(registry),
        }
    }

    /// It has to be polled in memory: the system reports nothing unless it is armed.
    pub fn is_ring(&self) -> bool {
        match self {
            Stream::SharedMemory(_) => true,
            Stream::Compressed(frames) => frames.below().is_ring(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) | Stream::InProcess(_) => false,
        }
    }

    /// A ring holds bytes to read, or has `room` again. False for sockets, of which the system
    /// reports.
    pub fn is_ready(&self, room: bool) -> bool {
        match self {
            Stream::SharedMemory(end) => end.is_ready(ring_interest(room)),
            Stream::Compressed(frames) => frames.below().is_ready(room),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) | Stream::InProcess(_) => false,
        }
    }

    /// Has the client ring when there are bytes, or `room`. True if there are already: then nobody
    /// rings.
    pub fn arm(&mut self, room: bool) -> bool {
        match self {
            Stream::SharedMemory(end) => end.arm(ring_interest(room)),
            Stream::Compressed(frames) => frames.below_mut().arm(room),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) | Stream::InProcess(_) => false,
        }
    }

    /// A ring holds memory that it needs for large replies only.
    #[inline]
    pub fn has_spare_memory(&self) -> bool {
        match self {
            Stream::SharedMemory(end) => end.has_spare_memory(),
            Stream::Compressed(frames) => frames.below().has_spare_memory(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) | Stream::InProcess(_) => false,
        }
    }

    /// Gives that memory back to the system.
    pub fn release_memory(&mut self) {
        match self {
            Stream::SharedMemory(end) => end.release_memory(),
            Stream::Compressed(frames) => frames.below_mut().release_memory(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) | Stream::InProcess(_) => {}
        }
    }

    /// How often a sleeping client was woken since this was last asked.
    pub fn take_wakeups(&mut self) -> u64 {
        match self {
            Stream::SharedMemory(end) => end.take_wakeups(),
            Stream::Compressed(frames) => frames.below_mut().take_wakeups(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) | Stream::InProcess(_) => 0,
        }
    }

    /// Spins for `room` in a ring, or for bytes to read, for as long as that is worth it. True if
    /// it is there.
    pub fn spin_for(&mut self, room: bool) -> bool {
        match self {
            Stream::SharedMemory(end) => end.spin_for(ring_interest(room)),
            Stream::Compressed(frames) => frames.below_mut().spin_for(room),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Tls(_) | Stream::InProcess(_) => false,
        }
    }

    /// Waits on this thread until the stream takes more bytes (`room`), or has some to read; false if
    /// the timeout was over before.
    pub fn wait_for(&mut self, room: bool, timeout: Duration) -> io::Result<bool> {
        let socket = match self {
            Stream::Tcp(socket) => (*socket).as_fd(),
            Stream::Unix(socket) => (*socket).as_fd(),
            Stream::SharedMemory(end) => return end.wait_for(ring_interest(room), timeout),
            Stream::Tls(tls) if !room && tls.may_have_more() => return Ok(true),
            Stream::Tls(tls) => return tls.below_mut().wait_for(room, timeout),
            Stream::Compressed(frames) if !room && frames.has_frame() => return Ok(true),
            Stream::Compressed(frames) => return frames.below_mut().wait_for(room, timeout),
            Stream::InProcess(_) => return Ok(room),
        };
        let flags = if room { PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::from_borrowed_fd(socket, flags)];
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => Ok(false),
            Ok(_)
                if !fds[0].revents().contains(PollFlags::IN)
                    && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) =>
            {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            Ok(_) => Ok(true),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The addresses of a TCP connection without layers.
    pub fn tcp_addresses(&self) -> Option<TcpAddresses> {
        match self {
            Stream::Tcp(socket) => Some(TcpAddresses::new(
                socket.local_addr().ok()?,
                socket.peer_addr().ok()?,
            )),
            Stream::Unix(_)
            | Stream::SharedMemory(_)
            | Stream::Tls(_)
            | Stream::Compressed(_)
            | Stream::InProcess(_) => None,
        }
    }

    /// Nobody on a network can read it: it is encrypted, or doesn't leave the machine.
    pub fn is_secure(&self) -> bool {
        match self {
            Stream::Tcp(_) => false,
            Stream::Compressed(frames) => frames.below().is_secure(),
            Stream::Unix(_) | Stream::SharedMemory(_) | Stream::Tls(_) | Stream::InProcess(_) => {
                true
            }
        }
    }

    /// Layers may be put over it. Rings are memory: there is nobody to hide from, and nothing to
    /// save.
    pub fn can_have_layers(&self) -> bool {
        matches!(self, Stream::Tcp(_) | Stream::Unix(_))
    }

    /// The client is in this process.
    pub fn is_in_process(&self) -> bool {
        matches!(self, Stream::InProcess(_))
    }

    /// A client that quits may begin another connection over it, now or later.
    pub fn can_be_reused(&self) -> bool {
        matches!(self, Stream::SharedMemory(end) if end.is_drained())
    }

    /// Its client begins another connection over it.
    pub fn reuse(&mut self) {
        if let Stream::SharedMemory(end) = self {
            end.reuse();
        }
    }

    /// The operating system's user at the other end of a Unix socket (SO_PEERCRED), as of the
    /// moment when it was connected. `None` where that isn't known: over TCP, and for a connection
    /// that reuses rings.
    pub fn peer_uid(&self) -> Option<u32> {
        let socket = match self {
            Stream::Tcp(_) | Stream::InProcess(_) => return None,
            Stream::Unix(socket) => socket.as_fd(),
            Stream::Tls(tls) => return tls.below().peer_uid(),
            Stream::Compressed(frames) => return frames.below().peer_uid(),
            Stream::SharedMemory(end) if end.is_reused() => return None,
            Stream::SharedMemory(end) => end.socket().as_fd(),
        };
        let them = rustix::net::sockopt::socket_peercred(socket).ok()?;
        Some(them.uid.as_raw())
    }
}

fn ring_interest(room: bool) -> RingInterest {
    if room {
        RingInterest::WRITABLE
    } else {
        RingInterest::READABLE
    }
}
