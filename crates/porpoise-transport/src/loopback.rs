//! The loopback fast path: a TCP connection within one machine that goes on over shared memory.
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
//! What carries names, tickets and answers over TCP is the protocol above. Whatever fails on the way, both stay on TCP.
//!
//! **Why the client listens.** It asks in something that every server reads and most ignore, so that nothing is different for
//! clients that don't ask and for servers that don't know. The server needs no door for it, hence nothing that could be
//! knocked at by those who have no TCP connection, and never waits: a name where nobody listens, or too many wait, is a no.
//!
//! **Whom it is safe from: any other user of the machine,** who can see the names of abstract sockets, connect to them, and
//! run programs that listen on TCP. Not from root, nor from whoever may read the machine's network traffic or the two processes'
//! memory: they need no fast path.
//!
//! | who | tries | and fails because |
//! | --- | --- | --- |
//! | an impostor | connects to the client's name and offers rings | the nonce is known to the one who holds the TCP connection only |
//! |  | listens at the name first | the client chooses it at random and listens before it tells |
//! |  | relays | the server dials the client itself: there is nobody in between |
//! | a client of the same server | names another client's socket as its own | that client gets a nonce that isn't of its own ticket |
//! |  | names a socket of some other program | names have to be of the form that clients make here |
//! | a TCP proxy | passes the question on | the ticket tells the addresses of a connection that the client hasn't got |
//! | anybody | floods the name | none of them holds the client up, and a full queue is a no |
//!
//! Another host or network namespace has no such name, so it stays on TCP. The rings are sealed memory that both ends
//! distrust, as ever ([`crate::shared_memory`]). Who is at the other end is for the protocol above to find out as on TCP: the
//! user that the socket tells of may be anybody whom the client has named, and proves nothing.

use crate::shared_memory::{ServerEnd, SharedMemory};
use crate::sys;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// The two ends of a TCP connection, as one of them sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    near: SocketAddr,
    far: SocketAddr,
}

const END_BYTES: usize = 18;

impl Ends {
    /// By this end's address and the peer's.
    pub fn new(near: SocketAddr, far: SocketAddr) -> Ends {
        let plain =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Ends {
            near: plain(near),
            far: plain(far),
        }
    }

    /// Whether both are this machine's, by addresses that no packet from elsewhere can have.
    pub fn are_loopback(self) -> bool {
        self.near.ip().is_loopback() && self.far.ip().is_loopback()
    }

    /// As the peer sees them.
    fn turned(self) -> Ends {
        Ends {
            near: self.far,
            far: self.near,
        }
    }

    fn to_bytes(self) -> [u8; 2 * END_BYTES] {
        let mut bytes = [0; 2 * END_BYTES];
        for (place, end) in bytes
            .as_chunks_mut::<END_BYTES>()
            .0
            .iter_mut()
            .zip([self.near, self.far])
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

/// What the server says over TCP when it has offered rings.
pub const TICKET_BYTES: usize = MAGIC.len() + NONCE_BYTES + 2 * END_BYTES;

/// Whether these bytes are a ticket, genuine or not.
pub fn is_ticket(bytes: &[u8]) -> bool {
    bytes.len() == TICKET_BYTES && bytes.starts_with(&MAGIC)
}

fn ticket(nonce: &[u8; NONCE_BYTES], ends: Ends) -> [u8; TICKET_BYTES] {
    let mut bytes = [0; TICKET_BYTES];
    let (magic, rest) = bytes.split_at_mut(MAGIC.len());
    let (place, addresses) = rest.split_at_mut(NONCE_BYTES);
    magic.copy_from_slice(&MAGIC);
    place.copy_from_slice(nonce);
    addresses.copy_from_slice(&ends.to_bytes());
    bytes
}

/// Takes the same time wherever they differ.
fn are_same<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    let differences = one.iter().zip(other).map(|(one, other)| one ^ other);
    differences.fold(0, |all, difference| all | difference) == 0
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A client's socket for the server to come to. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Invitation {
    listener: UnixListener,
    name: String,
}

/// How long the client waits for what the server said it has sent already.
const PATIENCE: Duration = Duration::from_secs(1);

impl Invitation {
    /// Listens at a random name.
    pub fn open() -> io::Result<Invitation> {
        let digits = u128::from_ne_bytes(random()?);
        let name = format!("{NAME_PREFIX}{digits:032x}");
        let listener = sys::listen_at_name(&name)?;
        listener.set_nonblocking(true)?;
        Ok(Invitation { listener, name })
    }

    /// What to tell the server over TCP.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the rings of whoever wrote the ticket that came over the TCP connection of these `ends`. An error means to
    /// stay there.
    pub fn take(self, ticket: &[u8], ends: Ends) -> io::Result<SharedMemory> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let rest = ticket
            .strip_prefix(&MAGIC)
            .ok_or_else(|| invalid("not a ticket to shared memory"))?;
        let (nonce, addresses) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or_else(|| invalid("a ticket cut short"))?;
        if *addresses != ends.turned().to_bytes() {
            return Err(invalid("the ticket is for another connection"));
        }
        loop {
            // The server came before it sent the ticket. Others may have come as well.
            let (socket, _) = self.listener.accept()?;
            if brings(&socket, nonce)? {
                socket.set_nonblocking(false)?;
                return SharedMemory::accept(socket, Some(PATIENCE));
            }
        }
    }
}

/// Whether the nonce came over the socket. It doesn't wait: who is meant has sent it already.
fn brings(mut socket: &UnixStream, nonce: &[u8; NONCE_BYTES]) -> io::Result<bool> {
    socket.set_nonblocking(true)?;
    let mut brought = [0; NONCE_BYTES];
    match socket.read(&mut brought) {
        Ok(NONCE_BYTES) => Ok(are_same(&brought, nonce)),
        Ok(_) | Err(_) => Ok(false),
    }
}

fn is_name(name: &str) -> bool {
    name.strip_prefix(NAME_PREFIX).is_some_and(|digits| {
        digits.len() == NAME_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// Brings rings to the client that named its socket over the TCP connection of these `ends`: the server's end, and
/// the ticket to send over TCP. Never waits. An error means to stay on TCP.
pub fn visit(name: &str, ends: Ends) -> io::Result<(ServerEnd, [u8; TICKET_BYTES])> {
    if !ends.are_loopback() {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    if !is_name(name) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut socket = sys::connect_to_name(name)?;
    let nonce = random()?;
    // A socket that has just been made has room for it.
    socket.write_all(&nonce)?;
    let end = ServerEnd::offer(socket)?;
    Ok((end, ticket(&nonce, ends)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// Both ends of a TCP connection, as client and server see them.
    fn connection() -> (TcpStream, Ends, Ends) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let ends = |stream: &TcpStream| {
            Ends::new(stream.local_addr().unwrap(), stream.peer_addr().unwrap())
        };
        let (near, far) = (ends(&client), ends(&server));
        (client, near, far)
    }

    fn works(mut client: SharedMemory, mut server: ServerEnd) -> bool {
        client.write_all(b"hello").unwrap();
        let mut bytes = [0; 5];
        server.read(&mut bytes).unwrap() == 5 && bytes == *b"hello"
    }

    /// What the server makes without a nonce of its own.
    fn offer_with(name: &str, nonce: &[u8]) -> ServerEnd {
        let mut socket = sys::connect_to_name(name).unwrap();
        socket.write_all(nonce).unwrap();
        ServerEnd::offer(socket).unwrap()
    }

    #[test]
    fn both_ends_of_a_tcp_connection_meet_in_memory() {
        let (_tcp, client, server) = connection();
        let invitation = Invitation::open().unwrap();
        let (end, ticket) = visit(invitation.name(), server).unwrap();
        assert!(is_ticket(&ticket));
        assert!(works(invitation.take(&ticket, client).unwrap(), end));
    }

    #[test]
    fn an_impostor_who_comes_first_is_passed_over() {
        let (_tcp, client, server) = connection();
        let invitation = Invitation::open().unwrap();
        let _silent = sys::connect_to_name(invitation.name()).unwrap();
        drop(sys::connect_to_name(invitation.name()).unwrap());
        let _guessing = offer_with(invitation.name(), &[7; NONCE_BYTES]);
        let (end, ticket) = visit(invitation.name(), server).unwrap();
        assert!(works(invitation.take(&ticket, client).unwrap(), end));
    }

    #[test]
    fn an_impostor_alone_is_not_taken_for_the_server() {
        let (_tcp, client, server) = connection();
        let invitation = Invitation::open().unwrap();
        let _guessing = offer_with(invitation.name(), &[7; NONCE_BYTES]);
        let ticket = ticket(&[8; NONCE_BYTES], server);
        assert!(invitation.take(&ticket, client).is_err());
    }

    #[test]
    fn rings_for_another_connection_of_the_same_server_are_refused() {
        let (_tcp, client, server) = connection();
        let invitation = Invitation::open().unwrap();
        // Somebody else has told the server this name as its own.
        let (_tcp, _, elsewhere) = connection();
        let (_end, _their_ticket) = visit(invitation.name(), elsewhere).unwrap();
        let own = ticket(&[9; NONCE_BYTES], server);
        assert!(invitation.take(&own, client).is_err());
    }

    #[test]
    fn what_came_through_a_proxy_stays_where_it_is() {
        let (_tcp, client, _) = connection();
        let (_tcp, _, behind_the_proxy) = connection();
        let invitation = Invitation::open().unwrap();
        let (_end, ticket) = visit(invitation.name(), behind_the_proxy).unwrap();
        assert!(invitation.take(&ticket, client).is_err());
    }

    #[test]
    fn the_server_goes_to_no_socket_but_a_clients() {
        let (_tcp, _, server) = connection();
        let other = sys::listen_at_name("porpoise-test-of-another-program").unwrap();
        for name in [
            "porpoise-test-of-another-program",
            "porpoise-loopback-",
            "porpoise-loopback-../../../../../../tmp/socket00",
            "porpoise-loopback-00000000000000000000000000000000",
            "",
        ] {
            assert!(visit(name, server).is_err(), "{name}");
        }
        other.set_nonblocking(true).unwrap();
        assert!(other.accept().is_err());
        let address = |text: &str| text.parse().unwrap();
        let remote = Ends::new(address("192.0.2.1:3306"), address("192.0.2.7:999"));
        let invitation = Invitation::open().unwrap();
        assert!(visit(invitation.name(), remote).is_err());
    }

    #[test]
    fn a_full_queue_holds_nobody_up() {
        let (_tcp, _, server) = connection();
        let invitation = Invitation::open().unwrap();
        let mut flood = Vec::new();
        while let Ok(socket) = sys::connect_to_name(invitation.name()) {
            flood.push(socket);
            assert!(flood.len() < 100);
        }
        assert!(visit(invitation.name(), server).is_err());
    }

    #[test]
    fn an_address_is_the_same_in_either_family() {
        let four = Ends::new(
            "127.0.0.1:1".parse().unwrap(),
            "127.0.0.1:2".parse().unwrap(),
        );
        let six = Ends::new(
            "[::ffff:127.0.0.1]:1".parse().unwrap(),
            "[::ffff:127.0.0.1]:2".parse().unwrap(),
        );
        assert_eq!(four.to_bytes(), six.to_bytes());
        assert!(six.are_loopback());
    }
}
