//! A connection that has not yet said who it is, and the exchange that finds out.
//!
//! ```text
//! Greeting ─► login ─► the account's plugin asks and checks ─► a seat? ─► a session
//!               └─► asks for the fast path? ticket ─► moved or not ─┘
//! ```
//!
//! A TCP client on this machine that asks for the loopback fast path in its login, while `loopback_fast_path` is ON, is brought
//! rings ([`porpoise_transport::loopback`]) before anything else is done with the login; the authentication then is the
//! first thing to go over them. Accounts see the client where it came from: it is a TCP client still.
//!
//! Who doesn't know an account's password can't tell whether there is such an account: they are
//! asked the same questions, and refused with the same words after the same steps and as much work.
//! A user without an account is asked by a plugin that others have
//! ([`Engine::decoy_plugin`](porpoise_engine::Engine::decoy_plugin)), and checked with a hash that
//! no password has. That an account is locked, or its password expired, is told to who has its
//! password; an empty one proves nothing.
//!
//! An account with the plugin `auth_socket` has no password: it is for the operating system's user
//! of the same name, at the other end of a Unix socket. For `root` that is also the user that runs
//! the server: who can read the database's files needs no password to read the database. The owner
//! is let in whatever password the client was given, by an exchange that the client's plugin can
//! follow ([`auth::accept`]). Everybody else is asked as if there were no such account: MySQL says
//! 1698 to them, which tells that there is.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use porpoise_engine::Account;
use porpoise_engine::Error;
use porpoise_engine::hosts::Refusal;
use porpoise_engine::session::Login;
use porpoise_protocol::auth::{
    self, Credential, Exchange, Outcome, caching_sha2, native, public_key::ServerKey,
};
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{
    self, AuthStep, ChangeUser, FirstPacket, Greeting, NONCE_BYTES,
};
use porpoise_transport::{ServerEnd, loopback};
use porpoise_types::Collation;

use crate::client::Client;
use crate::connection::{wire_error, write_error};
use crate::crew;
use crate::server::{Seat, Shared};
use crate::stream::{Peer, Stream};

/// What this server can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::FOUND_ROWS)
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::CONNECT_WITH_DB)
    .union(Capabilities::NO_SCHEMA)
    .union(Capabilities::ODBC)
    .union(Capabilities::LOCAL_FILES)
    .union(Capabilities::IGNORE_SPACE)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::INTERACTIVE)
    .union(Capabilities::IGNORE_SIGPIPE)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::RESERVED)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_STATEMENTS)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::DEPRECATE_EOF)
    .union(Capabilities::QUERY_ATTRIBUTES);

const AUTH_SOCKET: &str = "auth_socket";

/// The attribute by which a client asks for the fast path; its value says where rings are to be brought.
const FAST_PATH: &[u8] = b"_loopback_fast_path";
/// What a client says to a ticket when it goes on over the rings.
const MOVED: &[u8] = &[1];

/// What all logins share: passwords seen, as their fast hashes, and the key that hides them on TCP.
#[derive(Default)]
pub(crate) struct Gate {
    /// By account; beside the stored hash it was checked with, so that a new password forgets it.
    cache: Mutex<HashMap<(String, String), (String, caching_sha2::Cached)>>,
    key: OnceLock<ServerKey>,
    key_making: Mutex<()>,
    decoys: Decoys,
}

/// What users without an account are checked with.
struct Decoys {
    native: Credential,
    sha2: Credential,
}

impl Default for Decoys {
    fn default() -> Decoys {
        Decoys {
            native: Credential::decoy(auth::NATIVE_PASSWORD),
            sha2: Credential::decoy(auth::CACHING_SHA2_PASSWORD),
        }
    }
}

impl Gate {
    /// Made when the first client asks for it: it takes a second, off the event loop.
    fn key(&self) -> Result<&ServerKey, porpoise_protocol::Error> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        crew::leave_loop();
        let _one_is_enough = self.key_making.lock();
        if self.key.get().is_none() {
            // Somebody else can't have set it: the lock is held.
            let _ = self.key.set(ServerKey::generate()?);
        }
        Ok(self.key.get().expect("it was just set"))
    }

    fn remember(&self, account: &Account, cached: caching_sha2::Cached) {
        let whose = (account.user.to_string(), account.host.to_string());
        self.cache
            .lock()
            .insert(whose, (account.authentication_string.to_string(), cached));
    }

    fn cached(&self, user: &str, host: &str, text: &str) -> Option<caching_sha2::Cached> {
        let whose = (user.to_string(), host.to_string());
        let cache = self.cache.lock();
        let (stored, cached) = cache.get(&whose)?;
        (stored == text).then_some(*cached)
    }

    /// What a password for the account is checked with; nothing where none is right.
    fn credential(&self, account: &Account) -> Option<Credential> {
        let text = &*account.authentication_string;
        match &*account.plugin {
            auth::NATIVE_PASSWORD if text.is_empty() => Some(Credential::Native(None)),
            auth::NATIVE_PASSWORD => {
                native::Stored::parse(text).map(|stored| Credential::Native(Some(stored)))
            }
            auth::CACHING_SHA2_PASSWORD if text.is_empty() => Some(Credential::CachingSha2 {
                stored: None,
                cached: None,
            }),
            auth::CACHING_SHA2_PASSWORD => {
                let stored = caching_sha2::Stored::parse(text.as_bytes())?;
                Some(Credential::CachingSha2 {
                    stored: Some(stored),
                    cached: self.cached(&account.user, &account.host, text),
                })
            }
            _ => None,
        }
    }

    /// What somebody is checked with for whom no password is right. It takes what finding an
    /// account's credential takes.
    fn decoy(&self, user: &str, plugin: &str) -> Credential {
        if plugin == auth::NATIVE_PASSWORD {
            return self.decoys.native.clone();
        }
        std::hint::black_box(self.cached(user, "%", ""));
        self.decoys.sha2.clone()
    }
}

/// Who somebody says they are, and how they want to be served.
pub(crate) struct Claim {
    user: String,
    schema: Option<String>,
    pub capabilities: Capabilities,
    collation: u16,
    attributes: Vec<(String, String)>,
    /// They gave a password, right or wrong.
    with_password: bool,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Claim {
    /// By COM_CHANGE_USER, which keeps what the connection can do.
    fn change(change: &ChangeUser<'_>, capabilities: Capabilities, collation: u16) -> Claim {
        Claim {
            user: text(change.user),
            schema: Some(text(change.database)).filter(|name| !name.is_empty()),
            capabilities,
            collation: change.collation.unwrap_or(collation),
            attributes: change
                .attributes
                .iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            with_password: !change.auth_response.is_empty(),
        }
    }
}

/// Somebody proving who they are, at the start of a connection or by COM_CHANGE_USER.
pub(crate) struct Proof {
    pub claim: Claim,
    method: Method,
    /// The number that the client's next packet has.
    expects: u8,
}

enum Method {
    /// By the account's password. Without an account none is right.
    Password(Exchange, Option<Arc<Account>>),
    /// By who the operating system says is at the other end: as the account, or without one as
    /// somebody who shares the process or its user. The exchange is for the client, not for the
    /// server.
    Given(Option<Arc<Account>>),
}

pub(crate) enum Verdict {
    /// The writer holds the next question.
    Continue,
    /// By the account; without one, as somebody who shares the process.
    Proven(Option<Arc<Account>>),
    Refused(Error),
}

impl Method {
    fn of(
        claim: &Claim,
        (nonce, peer, stream): ([u8; NONCE_BYTES], Peer, &Stream),
        server: &Shared,
    ) -> Method {
        if peer == Peer::Neighbour || stream.is_inside() {
            return Method::Given(None);
        }
        let engine = &server.engine;
        let account = engine.account_for(&claim.user, &peer.host(), peer.ip());
        // Looked up for everybody, so that the time it takes tells nothing.
        let decoy = engine.decoy_plugin(&claim.user);
        let password = |credential, account| {
            let exchange = Exchange::new(credential, nonce, peer.is_private());
            Method::Password(exchange, account)
        };
        let Some(account) = account else {
            return password(server.gate.decoy(&claim.user, decoy), None);
        };
        if &*account.plugin == AUTH_SOCKET {
            return match peer == Peer::Unix && is_socket_owner(&account, stream) {
                true => Method::Given(Some(account)),
                false => password(server.gate.decoy(&claim.user, decoy), None),
            };
        }
        match server.gate.credential(&account) {
            Some(credential) => password(credential, Some(account)),
            None => {
                tracing::warn!(
                    "{}: its plugin or its hash isn't known here",
                    account.quoted()
                );
                password(server.gate.decoy(&claim.user, decoy), None)
            }
        }
    }
}

impl Proof {
    fn begin(
        claim: Claim,
        plugin: Option<&[u8]>,
        answer: &[u8],
        whence: ([u8; NONCE_BYTES], Peer, &Stream),
        server: &Shared,
        writer: &mut PacketWriter,
    ) -> (Proof, Verdict) {
        let (nonce, peer, _) = whence;
        let method = Method::of(&claim, whence, server);
        let mut proof = Proof {
            claim,
            method,
            expects: 0,
        };
        let outcome = match &mut proof.method {
            Method::Password(exchange, _) => {
                if !proof.claim.capabilities.contains(Capabilities::PLUGIN_AUTH)
                    && exchange.plugin() != auth::NATIVE_PASSWORD
                {
                    return (proof, Verdict::Refused(Error::not_supported_auth_mode()));
                }
                exchange.begin(plugin, answer, writer, || server.gate.key())
            }
            Method::Given(_) => Ok(auth::accept(plugin, answer, &nonce, writer)),
        };
        proof.expects = writer.sequence();
        let verdict = proof.judge(outcome, peer, server);
        (proof, verdict)
    }

    /// Takes the answer to a question.
    pub fn answer(
        &mut self,
        packet: &[u8],
        peer: Peer,
        server: &Shared,
        writer: &mut PacketWriter,
    ) -> Verdict {
        if !is_in_order(self.expects, writer) {
            return Verdict::Refused(Error::packets_out_of_order());
        }
        self.claim.with_password |= !matches!(packet, [] | [0]);
        let outcome = match &mut self.method {
            Method::Password(exchange, _) => exchange.answer(packet, writer, || server.gate.key()),
            Method::Given(_) => Ok(Outcome::Accepted(None)),
        };
        self.expects = writer.sequence();
        self.judge(outcome, peer, server)
    }

    fn judge(
        &mut self,
        outcome: Result<Outcome, porpoise_protocol::Error>,
        peer: Peer,
        server: &Shared,
    ) -> Verdict {
        match (outcome, &self.method) {
            (Ok(Outcome::Continue), _) => Verdict::Continue,
            (Ok(Outcome::Accepted(_)), Method::Given(None)) => Verdict::Proven(None),
            (Ok(Outcome::Accepted(_)), Method::Given(Some(account))) => {
                self.unless_barred(account, peer, server)
            }
            (Ok(Outcome::Accepted(seen)), Method::Password(_, Some(account))) => {
                if let Some(cached) = seen {
                    server.gate.remember(account, cached);
                }
                self.unless_barred(account, peer, server)
            }
            (Ok(Outcome::Accepted(_) | Outcome::Denied), _) => Verdict::Refused(self.denied(peer)),
            (Err(porpoise_protocol::Error::Malformed(_)), _) => {
                Verdict::Refused(Error::handshake_error())
            }
            (Err(error), _) => Verdict::Refused(wire_error(error)),
        }
    }

    /// What bars the owner of an account from it is told to nobody else.
    fn unless_barred(&self, account: &Arc<Account>, peer: Peer, server: &Shared) -> Verdict {
        let is_open = account.authentication_string.is_empty() && &*account.plugin != AUTH_SOCKET;
        if account.locked && is_open {
            return Verdict::Refused(self.denied(peer));
        }
        if account.locked {
            return Verdict::Refused(Error::account_locked(&self.claim.user, peer.host()));
        }
        let can_change_it = Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS;
        if account.password_expired
            && !self.claim.capabilities.contains(can_change_it)
            && server
                .engine
                .variables()
                .get_u64("disconnect_on_expired_password")
                != 0
        {
            return Verdict::Refused(Error::password_has_expired());
        }
        Verdict::Proven(Some(account.clone()))
    }

    fn denied(&self, peer: Peer) -> Error {
        let with_password = match self.claim.with_password {
            true => "YES",
            false => "NO",
        };
        Error::access_denied(&self.claim.user, peer.host(), with_password)
    }

    /// What the engine needs to open a session.
    pub fn login(&mut self, account: Option<Arc<Account>>, id: u64, peer: Peer) -> Login {
        let claim = &mut self.claim;
        Login {
            connection_id: id,
            account,
            user: claim.user.as_str().into(),
            host: peer.host().into(),
            peer: peer.display().into(),
            schema: claim.schema.as_deref().map(Into::into),
            collation: Collation::by_id(claim.collation),
            found_rows: claim.capabilities.contains(Capabilities::FOUND_ROWS),
            ignore_space: claim.capabilities.contains(Capabilities::IGNORE_SPACE),
            interactive: claim.capabilities.contains(Capabilities::INTERACTIVE),
            attributes: std::mem::take(&mut claim.attributes),
        }
    }
}

/// Whether a packet has the number that its client's next has to have: the writer's next is the one
/// after it.
fn is_in_order(expected: u8, writer: &PacketWriter) -> bool {
    writer.sequence() == expected.wrapping_add(1)
}

/// The process at the other end belongs to the operating system's user that the account is for.
fn is_socket_owner(account: &Account, stream: &Stream) -> bool {
    let Some(uid) = stream.peer_uid() else {
        return false;
    };
    let is_root = &*account.user == "root";
    if is_root && (uid == 0 || uid == rustix::process::geteuid().as_raw()) {
        return true;
    }
    !is_root && user_name(uid).is_some_and(|name| name == *account.user)
}

/// The name of an operating system's user, by `/etc/passwd`.
fn user_name(uid: u32) -> Option<String> {
    let uid = uid.to_string();
    std::fs::read_to_string("/etc/passwd")
        .ok()?
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == uid).then(|| name.to_string())
        })
}

pub(crate) struct Newcomer {
    id: u64,
    peer: Peer,
    nonce: [u8; NONCE_BYTES],
    seat: Option<Seat>,
    proof: Option<Proof>,
    /// Rings were brought; the login waits for the client's word on them.
    moving: Option<Box<Moving>>,
    /// Rings may still be brought: once, with the login.
    may_move: bool,
    /// The number that the login has to have.
    expects: u8,
}

struct Moving {
    end: ServerEnd,
    login: Vec<u8>,
}

pub(crate) enum Progress {
    Continue,
    Admitted(Box<Login>),
    Refused,
}

impl Newcomer {
    pub fn greet(id: u64, peer: Peer, seat: Seat, writer: &mut PacketWriter) -> Newcomer {
        let nonce = auth::nonce();
        Greeting {
            server_version: crate::SERVER_VERSION.as_bytes(),
            connection_id: id as u32,
            nonce,
            capabilities: CAPABILITIES,
            collation: porpoise_protocol::codes::UTF8MB4_0900_AI_CI as u8,
            status: Status::AUTOCOMMIT,
            auth_plugin: auth::CACHING_SHA2_PASSWORD.as_bytes(),
        }
        .write(writer);
        let expects = writer.sequence();
        Newcomer {
            id,
            peer,
            nonce,
            seat: Some(seat),
            proof: None,
            moving: None,
            may_move: true,
            expects,
        }
    }

    /// If the packet says whether the client goes on over the rings it was brought: the rings in that case, and the login, to
    /// be answered now.
    pub fn moves(
        &mut self,
        packet: &[u8],
        server: &Shared,
    ) -> Option<(Option<ServerEnd>, Vec<u8>)> {
        let Moving { end, login } = *self.moving.take()?;
        let has_moved = packet == MOVED;
        let counter = if has_moved {
            &server.fast_path_moved
        } else {
            &server.fast_path_stayed
        };
        counter.fetch_add(1, Ordering::Relaxed);
        // Whether it moved or not, nobody asks again.
        self.may_move = false;
        Some((has_moved.then_some(end), login))
    }

    /// Brings rings to a client that asks for them with its login: true. It may also not ask, or not be on this machine.
    fn offer_rings(
        &mut self,
        packet: &[u8],
        login: &handshake::Login<'_>,
        (stream, server): (&Stream, &Shared),
        writer: &mut PacketWriter,
    ) -> bool {
        if !self.may_move || !server.engine.variables().loopback_fast_path() {
            return false;
        }
        let Some(ends) = stream.tcp_ends() else {
            return false;
        };
        let Some((_, name)) = login.attributes.iter().find(|(name, _)| *name == FAST_PATH) else {
            return false;
        };
        match loopback::visit(&text(name), ends) {
            Ok((end, ticket)) => {
                AuthStep::More(&ticket).write(writer);
                self.expects = writer.sequence();
                let login = packet.to_vec();
                self.moving = Some(Box::new(Moving { end, login }));
                true
            }
            Err(error) => {
                tracing::info!("connection {} stays on TCP: {error}", self.id);
                server.fast_path_stayed.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Takes the login, or the answer to the plugin's question.
    pub fn answer(
        &mut self,
        packet: &[u8],
        stream: &Stream,
        server: &Shared,
        writer: &mut PacketWriter,
    ) -> Progress {
        let verdict = match &mut self.proof {
            Some(proof) => proof.answer(packet, self.peer, server, writer),
            None if !is_in_order(self.expects, writer) => {
                Verdict::Refused(Error::packets_out_of_order())
            }
            None => match FirstPacket::parse(packet) {
                Ok(FirstPacket::Login(login))
                    if self.offer_rings(packet, &login, (stream, server), writer) =>
                {
                    Verdict::Continue
                }
                Ok(FirstPacket::Login(login)) => {
                    let claim = Claim {
                        user: text(login.user),
                        schema: login.database.map(text),
                        capabilities: login.capabilities & CAPABILITIES,
                        collation: u16::from(login.collation),
                        attributes: login
                            .attributes
                            .iter()
                            .map(|(name, value)| (text(name), text(value)))
                            .collect(),
                        with_password: !matches!(login.auth_response, [] | [0]),
                    };
                    let whence = (self.nonce, self.peer, stream);
                    let (proof, verdict) = Proof::begin(
                        claim,
                        login.auth_plugin,
                        login.auth_response,
                        whence,
                        server,
                        writer,
                    );
                    self.proof = Some(proof);
                    verdict
                }
                Ok(FirstPacket::SslRequest(_)) => Verdict::Refused(Error::handshake_error()),
                Err(porpoise_protocol::Error::UnsupportedHandshake) => {
                    Verdict::Refused(Error::not_supported_auth_mode())
                }
                Err(_) => Verdict::Refused(Error::handshake_error()),
            },
        };
        match (verdict, &mut self.proof) {
            (Verdict::Continue, _) => Progress::Continue,
            (Verdict::Proven(account), Some(proof)) => {
                Progress::Admitted(Box::new(proof.login(account, self.id, self.peer)))
            }
            (Verdict::Proven(_), None) => self.refuse(&Error::handshake_error(), server, writer),
            (Verdict::Refused(error), _) => self.refuse(&error, server, writer),
        }
    }

    /// The number of what is said to a packet that can't be read.
    pub fn next_sequence(&self) -> u8 {
        let proof = self.proof.as_ref();
        proof
            .map_or(self.expects, |proof| proof.expects)
            .wrapping_add(1)
    }

    fn capabilities(&self) -> Capabilities {
        self.proof
            .as_ref()
            .map_or(Capabilities::PROTOCOL_41, |proof| proof.claim.capabilities)
    }

    fn refuse(&self, error: &Error, server: &Shared, writer: &mut PacketWriter) -> Progress {
        server.refused(self.peer, refusal(error));
        tracing::info!(
            "connection {} from {}: {}",
            self.id,
            self.peer.display(),
            error.message()
        );
        write_error(writer, error, self.capabilities());
        Progress::Refused
    }

    /// Opens the session of somebody who has proven who they are. The last seat is for an administrator.
    pub fn sit_down(
        &mut self,
        login: Login,
        server: &Arc<Shared>,
        writer: &mut PacketWriter,
    ) -> Option<Box<Client>> {
        let seat = self.seat.take()?;
        let capabilities = self.capabilities();
        let collation = login.collation.unwrap_or(Collation::UTF8MB4_0900_AI_CI);
        let account = login.account.clone();
        let admin = || {
            let account = account.as_ref();
            account.is_some_and(|account| account.may_use_reserved_connection())
        };
        let session = if seat.is_reserved() && !admin() {
            server.turned_away.fetch_add(1, Ordering::Relaxed);
            Err(Error::too_many_connections())
        } else {
            server
                .take_user_seat(account.as_deref())
                .and_then(|of_user| Ok((server.engine.connect(login)?, of_user)))
        };
        match session {
            Ok((session, of_user)) => {
                if let Some(address) = self.peer.remote_ip() {
                    server.engine.hosts().admitted(address);
                }
                let client = Client::new(
                    session,
                    (seat, of_user),
                    capabilities,
                    self.peer,
                    self.nonce,
                    collation,
                    server.clone(),
                );
                Some(Box::new(client.welcome(writer)))
            }
            Err(error) => {
                self.refuse(&error, server, writer);
                None
            }
        }
    }
}

/// What the host cache counts an error as.
fn refusal(error: &Error) -> Refusal {
    use porpoise_engine::error::number;
    match error.number() {
        number::handshake_error | number::malformed_packet | number::packets_out_of_order => {
            Refusal::Handshake
        }
        number::too_many_user_connections => Refusal::MaxUserConnections,
        number::unknown_database => Refusal::DefaultDatabase,
        _ => Refusal::Authentication,
    }
}

/// COM_CHANGE_USER: the same exchange in the middle of a connection.
pub(crate) fn change_user(
    change: &ChangeUser<'_>,
    capabilities: Capabilities,
    collation: u16,
    (nonce, peer, stream): ([u8; NONCE_BYTES], Peer, &Stream),
    server: &Shared,
    writer: &mut PacketWriter,
) -> (Proof, Verdict) {
    let claim = Claim::change(change, capabilities, collation);
    Proof::begin(
        claim,
        change.auth_plugin,
        change.auth_response,
        (nonce, peer, stream),
        server,
        writer,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Write;
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use porpoise_engine::{Engine, EngineOptions};
    use porpoise_storage::Location;

    use crate::connection::Connection;
    use crate::listener::Listener;
    use crate::worker::Desk;

    #[test]
    fn while_the_key_is_made_no_time_passes_for_the_client() {
        const MAKING: Duration = Duration::from_millis(200);
        let engine = Engine::open(EngineOptions {
            location: Location::Memory,
            variables: Vec::new(),
        });
        let server = Arc::new(Shared::new(engine.unwrap()));
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let mut client = TcpStream::connect(listener.tcp_address().unwrap()).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        let (seat, traffic) = (server.take_seat(), Arc::default());
        let mut writer = PacketWriter::new();
        let greeted = Connection::greet(stream, peer, seat, &server, traffic, &mut writer);
        let (mut connection, mut desk) = (greeted.unwrap(), Desk::default());
        let due = |connection: &Connection| connection.due(Instant::now()).unwrap();

        let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
        handshake::Login {
            capabilities: CAPABILITIES,
            max_packet_bytes: 1 << 24,
            collation: 45,
            user: b"ann",
            auth_response: &[7; 32],
            database: None,
            auth_plugin: Some(auth::CACHING_SHA2_PASSWORD.as_bytes()),
            attributes: handshake::Attributes::new(&[]),
            zstd_level: None,
        }
        .write(&mut writer);
        client.write_all(writer.bytes()).unwrap();
        connection.serve(&mut desk);
        let due_before = due(&connection);

        // It asks for the key.
        client.write_all(&[1, 0, 0, 3, 2]).unwrap();
        let making = server.gate.key_making.lock();
        std::thread::scope(|scope| {
            let (connection, desk) = (&mut connection, &mut desk);
            let serving = scope.spawn(move || connection.serve(desk));
            std::thread::sleep(MAKING);
            assert!(!serving.is_finished());
            drop(making);
        });
        assert!(server.gate.key.get().is_some());
        assert!(due(&connection) >= due_before + MAKING);
    }
}
