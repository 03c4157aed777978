//! The loopback fast path: a TCP connection within one machine that moves to shared memory.
//!
//! ```text
//!  client                                                          server
//!    │ ═══════════════════════ TCP on 127.0.0.1 ══════════════════════ │
//!    │  listens at an abstract Unix socket of a random name            │
//!    │  name ──────────────────────────── over TCP ──────────────────► │  willing? connects to that name,
//!    │  ◄──────────────── nonce, [`ServerEnd`]'s offer, over the socket │  and makes rings
//!    │  ◄──────────────── ticket: nonce, both ends' addresses, over TCP │
//!    │  the same nonce, the same addresses? maps the rings             │
//!    │  yes or no ─────────────────────── over TCP ──────────────────► │
//!    │ ═══════════════════════ the rings, or TCP ═════════════════════ │
//! ```
//!
//! The protocol above carries names, tickets and replies over TCP. If any step fails, both stay on
//! TCP.
//!
//! **Why the client listens.** It asks in a message that every server reads and most ignore, so
//! that nothing is different for clients that don't ask and for servers that don't know the fast
//! path. The server needs no listener for it, hence none to which a process without a TCP
//! connection could connect, and it never waits: a name where nobody listens, or where the queue is
//! full, is a no.
//!
//! **Whom it is safe from: any other user of the machine,** who can see the names of abstract
//! sockets, connect to them, and run programs that listen on TCP. Not from root, nor from a user
//! that may read the machine's network traffic or the two processes' memory: they need no fast
//! path.
//!
//! | who | tries | and fails because |
//! | --- | --- | --- |
//! | an impostor | connects to the client's name and offers rings | only the one who holds the TCP connection knows the nonce |
//! |  | listens at the name first | the client chooses it at random and listens before it sends it |
//! |  | relays | the server connects to the client itself: there is nobody in between |
//! | a client of the same server | names another client's socket as its own | that client gets a nonce that isn't of its own ticket |
//! |  | names a socket of some other program | names have to be of the form that clients make here |
//! | a TCP proxy | forwards the request | the ticket holds the addresses of a connection that the client hasn't got |
//! | anybody | floods the name | no connection holds the client up, and a full queue is a no |
//!
//! Another host or network namespace has no such name, so it stays on TCP. The rings are sealed
//! memory that both ends distrust, as always ([`crate::shared_memory`]). Which user is at the other end,
//! the protocol above has to find out as on TCP: the credentials of the socket may be those of
//! anybody whom the client has named, and prove nothing.

use crate::shared_memory::{ServerEnd, SharedMemory};
use crate::sys;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// The addresses of a TCP connection, as one end sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpAddresses {
    local: SocketAddr,
    peer: SocketAddr,
}

const END_BYTES: usize = 18;

impl TcpAddresses {
    /// From this end's address and the peer's. IPv4 addresses that are mapped to IPv6 are made
    /// IPv4.
    pub fn new(local: SocketAddr, peer: SocketAddr) -> TcpAddresses {
        let plain =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        TcpAddresses {
            local: plain(local),
            peer: plain(peer),
        }
    }

    /// Whether both are loopback addresses, which no packet from another machine can have.
    pub fn are_loopback(self) -> bool {
        self.local.ip().is_loopback() && self.peer.ip().is_loopback()
    }

    /// The addresses as the peer sees them.
    fn swapped(self) -> TcpAddresses {
        TcpAddresses {
            local: self.peer,
            peer: self.local,
        }
    }

    fn to_bytes(self) -> [u8; 2 * END_BYTES] {
        let mut bytes = [0; 2 * END_BYTES];
        for (place, end) in bytes
            .as_chunks_mut::<END_BYTES>()
            .0
            .iter_mut()
            .zip([self.local, self.peer])
        {
            let ip = match end.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            place[..16].copy_from_slice(&ip.octets());
            place[16..].copy_from_slice(&end.port().to_be_bytes());
        }
        bytes
    }
}

const MAGIC: [u8; 16] = *b"loopback to ring";
const NONCE_BYTES: usize = 32;
const NAME_PREFIX: &str = "porpoise-loopback-";
const NAME_DIGITS: usize = 32;

/// The length of the ticket that the server sends over TCP when it has offered rings.
pub const TICKET_BYTES: usize = MAGIC.len() + NONCE_BYTES + 2 * END_BYTES;

/// Whether these bytes have the form of a ticket, genuine or not.
pub fn is_ticket(bytes: &[u8]) -> bool {
    bytes.len() == TICKET_BYTES && bytes.starts_with(&MAGIC)
}

fn make_ticket(nonce: &[u8; NONCE_BYTES], addresses: TcpAddresses) -> [u8; TICKET_BYTES] {
    let mut bytes = [0; TICKET_BYTES];
    let (magic, rest) = bytes.split_at_mut(MAGIC.len());
    let (nonce_bytes, address_bytes) = rest.split_at_mut(NONCE_BYTES);
    magic.copy_from_slice(&MAGIC);
    nonce_bytes.copy_from_slice(nonce);
    address_bytes.copy_from_slice(&addresses.to_bytes());
    bytes
}

/// Compares in a time that doesn't depend on where they differ.
fn constant_time_eq<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    let differences = one.iter().zip(other).map(|(one, other)| one ^ other);
    differences.fold(0, |all, difference| all | difference) == 0
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A client's socket to which the server connects. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct RingsListener {
    listener: UnixListener,
    name: String,
}

/// How long the client waits for the offer, which the server has sent before the ticket.
const OFFER_TIMEOUT: Duration = Duration::from_secs(1);

impl RingsListener {
    /// Listens at a random name.
    ///
    /// # Errors
    /// If the system gives no socket or no random bytes.
    pub fn open() -> io::Result<RingsListener> {
        let digits = u128::from_ne_bytes(random()?);
        let name = format!("{NAME_PREFIX}{digits:032x}");
        let listener = sys::listen_abstract(&name)?;
        listener.set_nonblocking(true)?;
        Ok(RingsListener { listener, name })
    }

    /// The name to send to the server over TCP.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the rings of the server that wrote the ticket, which came over the TCP connection of
    /// these addresses.
    ///
    /// # Errors
    /// If the ticket isn't one, or is for another connection, or nobody offers its rings: then the
    /// client stays on TCP.
    pub fn accept_rings(self, ticket: &[u8], addresses: TcpAddresses) -> io::Result<SharedMemory> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let rest = ticket
            .strip_prefix(&MAGIC)
            .ok_or_else(|| invalid("not a ticket to shared memory"))?;
        let (nonce, address_bytes) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or_else(|| invalid("a ticket cut short"))?;
        if *address_bytes != addresses.swapped().to_bytes() {
            return Err(invalid("the ticket is for another connection"));
        }
        loop {
            // The server connected before it sent the ticket. Others may have connected as well.
            let (socket, _) = self.listener.accept()?;
            if has_nonce(&socket, nonce)? {
                socket.set_nonblocking(false)?;
                return SharedMemory::accept(socket, Some(OFFER_TIMEOUT));
            }
        }
    }
}

/// Whether the nonce has come over the socket. It doesn't wait: the server has sent it already.
fn has_nonce(mut socket: &UnixStream, nonce: &[u8; NONCE_BYTES]) -> io::Result<bool> {
    socket.set_nonblocking(true)?;
    let mut brought = [0; NONCE_BYTES];
    match socket.read(&mut brought) {
        Ok(NONCE_BYTES) => Ok(constant_time_eq(&brought, nonce)),
        Ok(_) | Err(_) => Ok(false),
    }
}

fn is_name(name: &str) -> bool {
    name.strip_prefix(NAME_PREFIX).is_some_and(|digits| {
        digits.len() == NAME_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// Offers rings to the client that sent the name of its socket over the TCP connection of these
/// addresses. Returns the server's end, and the ticket to send over TCP. Never waits.
///
/// # Errors
/// If the addresses aren't loopback addresses, the name isn't one that clients make, or nobody
/// listens there: then the connection stays on TCP.
pub fn offer_rings(
    name: &str,
    addresses: TcpAddresses,
) -> io::Result<(ServerEnd, [u8; TICKET_BYTES])> {
    if !addresses.are_loopback() {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    if !is_name(name) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut socket = sys::connect_abstract(name)?;
    let nonce = random()?;
    // A new socket has room for it.
    socket.write_all(&nonce)?;
    let end = ServerEnd::offer(socket)?;
    Ok((end, make_ticket(&nonce, addresses)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// Both ends of a TCP connection, as client and server see them.
    fn connection() -> (TcpStream, TcpAddresses, TcpAddresses) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let addresses = |stream: &TcpStream| {
            TcpAddresses::new(stream.local_addr().unwrap(), stream.peer_addr().unwrap())
        };
        let (local, peer) = (addresses(&client), addresses(&server));
        (client, local, peer)
    }

    fn works(mut client: SharedMemory, mut server: ServerEnd) -> bool {
        client.write_all(b"hello").unwrap();
        let mut bytes = [0; 5];
        server.read(&mut bytes).unwrap() == 5 && bytes == *b"hello"
    }

    /// An offer of rings with a given nonce.
    fn offer_with(name: &str, nonce: &[u8]) -> ServerEnd {
        let mut socket = sys::connect_abstract(name).unwrap();
        socket.write_all(nonce).unwrap();
        ServerEnd::offer(socket).unwrap()
    }

    #[test]
    fn both_ends_of_a_tcp_connection_meet_in_memory() {
        let (_tcp, client, server) = connection();
        let listener = RingsListener::open().unwrap();
        let (end, ticket) = offer_rings(listener.name(), server).unwrap();
        assert!(is_ticket(&ticket));
        assert!(works(listener.accept_rings(&ticket, client).unwrap(), end));
    }

    #[test]
    fn an_impostor_that_connects_first_is_skipped() {
        let (_tcp, client, server) = connection();
        let listener = RingsListener::open().unwrap();
        let _silent = sys::connect_abstract(listener.name()).unwrap();
        drop(sys::connect_abstract(listener.name()).unwrap());
        let _guessing = offer_with(listener.name(), &[7; NONCE_BYTES]);
        let (end, ticket) = offer_rings(listener.name(), server).unwrap();
        assert!(works(listener.accept_rings(&ticket, client).unwrap(), end));
    }

    #[test]
    fn an_impostor_alone_is_not_taken_for_the_server() {
        let (_tcp, client, server) = connection();
        let listener = RingsListener::open().unwrap();
        let _guessing = offer_with(listener.name(), &[7; NONCE_BYTES]);
        let ticket = make_ticket(&[8; NONCE_BYTES], server);
        assert!(listener.accept_rings(&ticket, client).is_err());
    }

    #[test]
    fn rings_for_another_connection_of_the_same_server_are_refused() {
        let (_tcp, client, server) = connection();
        let listener = RingsListener::open().unwrap();
        // Another client has sent the server this name as its own.
        let (_tcp, _, elsewhere) = connection();
        let (_end, _their_ticket) = offer_rings(listener.name(), elsewhere).unwrap();
        let own = make_ticket(&[9; NONCE_BYTES], server);
        assert!(listener.accept_rings(&own, client).is_err());
    }

    #[test]
    fn what_came_through_a_proxy_stays_where_it_is() {
        let (_tcp, client, _) = connection();
        let (_tcp, _, behind_the_proxy) = connection();
        let listener = RingsListener::open().unwrap();
        let (_end, ticket) = offer_rings(listener.name(), behind_the_proxy).unwrap();
        assert!(listener.accept_rings(&ticket, client).is_err());
    }

    #[test]
    fn the_server_connects_to_no_socket_but_a_clients() {
        let (_tcp, _, server) = connection();
        let other = sys::listen_abstract("porpoise-test-of-another-program").unwrap();
        for name in [
            "porpoise-test-of-another-program",
            "porpoise-loopback-",
            "porpoise-loopback-../../../../../../tmp/socket00",
            "porpoise-loopback-00000000000000000000000000000000",
            "",
        ] {
            assert!(offer_rings(name, server).is_err(), "{name}");
        }
        other.set_nonblocking(true).unwrap();
        assert!(other.accept().is_err());
        let address = |text: &str| text.parse().unwrap();
        let remote = TcpAddresses::new(address("192.0.2.1:3306"), address("192.0.2.7:999"));
        let listener = RingsListener::open().unwrap();
        assert!(offer_rings(listener.name(), remote).is_err());
    }

    #[test]
    fn a_full_queue_holds_nobody_up() {
        let (_tcp, _, server) = connection();
        let listener = RingsListener::open().unwrap();
        let mut flood = Vec::new();
        while let Ok(socket) = sys::connect_abstract(listener.name()) {
            flood.push(socket);
            assert!(flood.len() < 100);
        }
        assert!(offer_rings(listener.name(), server).is_err());
    }

    #[test]
    fn an_address_is_the_same_in_either_family() {
        let four = TcpAddresses::new(
            "127.0.0.1:1".parse().unwrap(),
            "127.0.0.1:2".parse().unwrap(),
        );
        let six = TcpAddresses::new(
            "[::ffff:127.0.0.1]:1".parse().unwrap(),
            "[::ffff:127.0.0.1]:2".parse().unwrap(),
        );
        assert_eq!(four.to_bytes(), six.to_bytes());
        assert!(six.are_loopback());
    }
}
