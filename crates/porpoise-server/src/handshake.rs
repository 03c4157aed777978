//! The handshake of a connection: from the greeting to a session, or a refusal.
//!
//! ```text
//! Greeting ─► [TLS] ─► login ─► the account's plugin asks and checks ─► a connection slot? ─► a session
//!               └─► asks for the fast path? ticket ─► moved or not ─┘
//! ```
//!
//! A TCP client on this machine may ask for the loopback fast path in its login. While
//! `loopback_fast_path` is ON, it is then given rings ([`porpoise_transport::loopback`]) before
//! anything else is done with the login, and the authentication is the first thing to go over them.
//! For accounts it is still a TCP client. One whose connection is encrypted stays there.
//!
//! A client whose host is looked up is greeted meanwhile; its login waits until the host is known
//! ([`crate::host_names`]).
//!
//! How a client proves who it is, is in [`crate::auth_exchange`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use porpoise_engine::Error;
use porpoise_engine::host_cache::Refusal;
use porpoise_engine::session::Login;
use porpoise_protocol::auth;
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{
    self, AuthStep, FAST_PATH_ACCEPTED, FAST_PATH_ATTRIBUTE, FirstPacket, Greeting, NONCE_BYTES,
};
use porpoise_transport::{ServerEnd, loopback};
use porpoise_types::Collation;

use crate::auth_exchange::{
    AuthExchange, AuthResult, ClientOrigin, FirstResponse, LoginRequest, is_in_order, lossy_text,
};
use crate::client_session::ClientSession;
use crate::connection_slots::ConnectionSlot;
use crate::error_packet::write_error;
use crate::host_names::{ClientHost, Lookup};
use crate::init_connect;
use crate::server_state::ServerState;
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

pub(crate) struct Handshake {
    id: u64,
    peer: Peer,
    host: ClientHost,
    /// Whether any account is for the host is to be seen when it is known.
    host_is_unchecked: bool,
    /// Came before its client's host was known.
    waiting_login: Option<WaitingLogin>,
    nonce: [u8; NONCE_BYTES],
    slot: Option<ConnectionSlot>,
    exchange: Option<AuthExchange>,
    /// Rings were offered; the login waits for the client's word on them.
    rings_offer: Option<Box<RingsOffer>>,
    /// What the greeting has offered.
    offered: Capabilities,
    /// TLS was offered, and not begun.
    may_start_tls: bool,
    /// Rings may still be offered: once, with the login.
    may_offer_rings: bool,
    /// The number that the login must have.
    expected_sequence: u8,
}

/// A login that waits for its client's host to be looked up.
pub(crate) struct WaitingLogin {
    pub packet: Vec<u8>,
    /// The number of the packet that replies to it.
    pub reply_sequence: u8,
}

/// Rings that were offered to a client, and the login to be answered over them or over TCP.
struct RingsOffer {
    rings: ServerEnd,
    login: Vec<u8>,
}

/// A client's word on the rings that it was offered.
pub(crate) struct RingsDecision {
    /// `None` if the client stays on TCP.
    pub rings: Option<ServerEnd>,
    /// To be answered now.
    pub login: Vec<u8>,
}

/// What a packet of the handshake has led to.
pub(crate) enum HandshakeProgress {
    Continue,
    /// TLS begins with what comes next.
    StartTls,
    Authenticated(Box<Login>),
    Refused,
}

impl Handshake {
    /// Writes the greeting. `layers` is what the stream may carry beside packets as they are.
    pub fn begin(
        id: u64,
        peer: Peer,
        host: ClientHost,
        slot: ConnectionSlot,
        layers: Capabilities,
        writer: &mut PacketWriter,
    ) -> Handshake {
        let nonce = auth::nonce();
        let offered = CAPABILITIES | layers;
        Greeting {
            server_version: crate::SERVER_VERSION.as_bytes(),
            connection_id: id as u32,
            nonce,
            capabilities: offered,
            collation: porpoise_protocol::codes::UTF8MB4_0900_AI_CI as u8,
            status: Status::AUTOCOMMIT,
            auth_plugin: auth::CACHING_SHA2_PASSWORD.as_bytes(),
        }
        .write(writer);
        Handshake {
            id,
            peer,
            host_is_unchecked: matches!(host, ClientHost::Pending(_)),
            host,
            waiting_login: None,
            nonce,
            slot: Some(slot),
            exchange: None,
            rings_offer: None,
            offered,
            may_start_tls: offered.contains(Capabilities::SSL),
            may_offer_rings: true,
            expected_sequence: writer.sequence(),
        }
    }

    /// The lookup of the client's host, if that isn't known yet.
    pub fn pending_host(&self) -> Option<&Lookup> {
        match &self.host {
            ClientHost::Pending(lookup) => Some(lookup),
            ClientHost::Known(_) => None,
        }
    }

    /// Whether all that is missing is the client's host.
    pub fn waits_for_host(&self) -> bool {
        self.waiting_login.is_some()
    }

    /// The login that has waited for the client's host, once that is known.
    pub fn take_waiting_login(&mut self) -> Option<WaitingLogin> {
        self.waiting_login.as_ref()?;
        if let ClientHost::Pending(lookup) = &self.host {
            self.host = ClientHost::Known(lookup.host()?);
        }
        self.waiting_login.take()
    }

    /// Goes on by the client's address. False if no login waits for its host.
    pub fn give_up_host(&mut self, peer: Peer) -> bool {
        if self.waiting_login.is_some() {
            self.host = ClientHost::Known(peer.host().into());
        }
        self.waiting_login.is_some()
    }

    /// The client's host; `None` while it is looked up.
    fn known_host(&mut self) -> Option<Arc<str>> {
        if let ClientHost::Pending(lookup) = &self.host {
            self.host = ClientHost::Known(lookup.host()?);
        }
        match &self.host {
            ClientHost::Known(host) => Some(host.clone()),
            ClientHost::Pending(_) => None,
        }
    }

    /// If rings were offered, the packet is the client's word on them; `None` if none were.
    pub fn take_rings_decision(
        &mut self,
        packet: &[u8],
        server: &ServerState,
    ) -> Option<RingsDecision> {
        let RingsOffer { rings, login } = *self.rings_offer.take()?;
        let accepts = packet == [FAST_PATH_ACCEPTED];
        let counter = if accepts {
            &server.fast_path_accepted
        } else {
            &server.fast_path_declined
        };
        counter.fetch_add(1, Ordering::Relaxed);
        // Accepted or not, rings are offered once.
        self.may_offer_rings = false;
        Some(RingsDecision {
            rings: accepts.then_some(rings),
            login,
        })
    }

    /// Offers rings to a client that asks for them with its login. False if it doesn't ask, or they
    /// can't be offered.
    fn offer_rings(
        &mut self,
        packet: &[u8],
        login: &handshake::Login<'_>,
        (stream, server): (&Stream, &ServerState),
        writer: &mut PacketWriter,
    ) -> bool {
        if !self.may_offer_rings || !server.engine.variables().loopback_fast_path() {
            return false;
        }
        let Some(addresses) = stream.tcp_addresses() else {
            return false;
        };
        let asks_for = |name: &[u8]| name == FAST_PATH_ATTRIBUTE.as_bytes();
        let Some((_, name)) = login.attributes.iter().find(|(name, _)| asks_for(name)) else {
            return false;
        };
        match loopback::offer_rings(&lossy_text(name), addresses) {
            Ok((rings, ticket)) => {
                AuthStep::More(&ticket).write(writer);
                self.expected_sequence = writer.sequence();
                let login = packet.to_vec();
                self.rings_offer = Some(Box::new(RingsOffer { rings, login }));
                true
            }
            Err(error) => {
                tracing::info!("connection {} stays on TCP: {error}", self.id);
                server.fast_path_declined.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Takes the login, or the response to the plugin's question.
    pub fn handle_packet(
        &mut self,
        packet: &[u8],
        stream: &Stream,
        server: &ServerState,
        writer: &mut PacketWriter,
    ) -> HandshakeProgress {
        let result = match &mut self.exchange {
            Some(exchange) => exchange.handle_response(packet, server, writer),
            None if !is_in_order(self.expected_sequence, writer) => {
                AuthResult::Refused(Error::packets_out_of_order())
            }
            None => match self.handle_first_packet(packet, stream, server, writer) {
                Some(result) => result,
                None => return HandshakeProgress::StartTls,
            },
        };
        match (result, &mut self.exchange) {
            (AuthResult::Continue, _) => HandshakeProgress::Continue,
            (AuthResult::Authenticated(account), Some(exchange)) => {
                let login = exchange.take_login(account, self.id, self.peer);
                HandshakeProgress::Authenticated(Box::new(login))
            }
            (AuthResult::Authenticated(_), None) => {
                self.refuse(&Error::handshake_error(), server, writer)
            }
            (AuthResult::Refused(error), _) => self.refuse(&error, server, writer),
        }
    }

    /// `None` if TLS begins, and the login comes after it.
    fn handle_first_packet(
        &mut self,
        packet: &[u8],
        stream: &Stream,
        server: &ServerState,
        writer: &mut PacketWriter,
    ) -> Option<AuthResult> {
        let Some(host) = self.known_host() else {
            if self.waiting_login.is_some() {
                return Some(AuthResult::Refused(Error::packets_out_of_order()));
            }
            self.waiting_login = Some(WaitingLogin {
                packet: packet.to_vec(),
                reply_sequence: writer.sequence(),
            });
            return Some(AuthResult::Continue);
        };
        if std::mem::take(&mut self.host_is_unchecked)
            && let Err(error) = server.check_host(self.peer, &host)
        {
            return Some(AuthResult::Refused(error));
        }
        let login = match FirstPacket::parse(packet) {
            Ok(FirstPacket::Login(login)) => login,
            Err(porpoise_protocol::Error::UnsupportedHandshake) => {
                return Some(AuthResult::Refused(Error::not_supported_auth_mode()));
            }
            Ok(FirstPacket::SslRequest(_)) if self.may_start_tls => {
                self.may_start_tls = false;
                self.expected_sequence = writer.sequence();
                return None;
            }
            Ok(FirstPacket::SslRequest(_)) | Err(_) => {
                return Some(AuthResult::Refused(Error::handshake_error()));
            }
        };
        if self.offer_rings(packet, &login, (stream, server), writer) {
            return Some(AuthResult::Continue);
        }
        if let Err(error) = server.check_transport(stream) {
            return Some(AuthResult::Refused(error));
        }
        let response = FirstResponse {
            plugin: login.auth_plugin,
            bytes: login.auth_response,
        };
        let origin = ClientOrigin {
            nonce: self.nonce,
            peer: self.peer,
            stream,
        };
        let request = LoginRequest::from_login(&login, host, self.offered);
        if request.compression.is_none() && login.capabilities.contains(Capabilities::COMPRESS) {
            // Some clients (mysqlnd) compress when they weren't offered to: they would wait for
            // ever for replies that they understand.
            let error = Error::wrong_compression_algorithm(Algorithm::Zlib.name());
            return Some(AuthResult::Refused(error));
        }
        if let Err(error) = server.check_compression(request.compression, stream) {
            return Some(AuthResult::Refused(error));
        }
        let (exchange, result) = AuthExchange::begin(request, response, origin, server, writer);
        self.exchange = Some(exchange);
        Some(result)
    }

    /// The number of the reply to a packet that can't be read.
    pub fn next_sequence(&self) -> u8 {
        let exchange = self.exchange.as_ref();
        exchange
            .map_or(self.expected_sequence, AuthExchange::expected_sequence)
            .wrapping_add(1)
    }

    fn capabilities(&self) -> Capabilities {
        let exchange = self.exchange.as_ref();
        exchange.map_or(Capabilities::PROTOCOL_41, |exchange| {
            exchange.request.capabilities
        })
    }

    fn compression(&self) -> Option<Algorithm> {
        let exchange = self.exchange.as_ref();
        exchange.and_then(|exchange| exchange.request.compression)
    }

    fn refuse(
        &self,
        error: &Error,
        server: &ServerState,
        writer: &mut PacketWriter,
    ) -> HandshakeProgress {
        server.record_refused(self.peer, refusal(error));
        tracing::info!(
            "connection {} from {}: {}",
            self.id,
            self.peer.display(),
            error.message()
        );
        write_error(writer, error, self.capabilities());
        HandshakeProgress::Refused
    }

    /// Opens the session of an authenticated client, and writes the OK that ends the handshake.
    /// `None` if it is refused: then the writer has the error. The last connection slot is for an
    /// administrator.
    pub fn open_session(
        &mut self,
        login: Login,
        server: &Arc<ServerState>,
        writer: &mut PacketWriter,
    ) -> Option<Box<ClientSession>> {
        let slot = self.slot.take()?;
        let capabilities = self.capabilities();
        let collation = login.collation.unwrap_or(Collation::UTF8MB4_0900_AI_CI);
        let account = login.account.clone();
        let is_admin = || {
            let account = account.as_ref();
            account.is_some_and(|account| account.may_use_reserved_connection())
        };
        let session = if slot.is_reserved() && !is_admin() {
            server.refused_full.fetch_add(1, Ordering::Relaxed);
            Err(Error::too_many_connections())
        } else {
            server
                .take_account_slot(account.as_deref())
                .and_then(|account_slot| {
                    let mut session = server.engine.connect(login)?;
                    init_connect::run(&server.engine, &mut session)?;
                    Ok((session, account_slot))
                })
        };
        match session {
            Ok((session, account_slot)) => {
                if let Some(address) = self.peer.remote_ip() {
                    server.engine.hosts().record_success(address);
                }
                let mut client = ClientSession::new(
                    session,
                    (slot, account_slot),
                    (capabilities, self.compression()),
                    self.peer,
                    self.nonce,
                    collation,
                    server.clone(),
                );
                client.log_connect();
                client.write_ok(writer);
                Some(Box::new(client))
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
    use porpoise_engine::error::ErrorKind;
    match error.kind() {
        ErrorKind::HandshakeError | ErrorKind::MalformedPacket | ErrorKind::PacketsOutOfOrder => {
            Refusal::Handshake
        }
        ErrorKind::TooManyUserConnections | ErrorKind::UserConnectionsReached => {
            Refusal::MaxUserConnections
        }
        ErrorKind::UserHourReached => Refusal::MaxConnectionsPerHour,
        ErrorKind::UnknownDatabase => Refusal::DefaultDatabase,
        _ => Refusal::Authentication,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use porpoise_engine::{Engine, EngineOptions};
    use porpoise_storage::Location;

    use crate::connection::Connection;
    use crate::host_names::HostNames;
    use crate::host_names::tests::MadeUp;
    use crate::io_buffers::IoBuffers;
    use crate::listener::Listener;

    /// A server whose clients' hosts have made-up names, and a client that has connected from
    /// `address`.
    fn named_client(
        hosts: MadeUp,
        address: [u8; 4],
        statements: &[&str],
    ) -> (Box<Connection>, TcpStream, Arc<ServerState>) {
        let engine = Engine::open(EngineOptions {
            location: Location::Memory,
            variables: Vec::new(),
        });
        let engine = engine.unwrap();
        let mut root = engine.connect(Login::default()).unwrap();
        for sql in statements {
            let mut reply = porpoise_engine::reply::Unread;
            root.query(sql.as_bytes(), &mut reply).unwrap();
        }
        let mut server = ServerState::new(engine);
        server.host_names = Arc::new(HostNames::new(Arc::new(hosts)));
        let server = Arc::new(server);
        let (connection, client) = connect(&server, address);
        (connection.unwrap(), client, server)
    }

    fn connect(
        server: &Arc<ServerState>,
        address: [u8; 4],
    ) -> (Option<Box<Connection>>, TcpStream) {
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let client = TcpStream::connect(listener.tcp_address().unwrap()).unwrap();
        let timeout = Some(Duration::from_secs(10));
        client.set_read_timeout(timeout).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let peer = Peer::Tcp((address, 999).into());
        let (slot, traffic) = (server.take_slot(), Arc::default());
        let mut writer = PacketWriter::new();
        let greeted = Connection::greet(stream, peer, slot, server, traffic, &mut writer);
        (greeted, client)
    }

    fn packet(mut client: &TcpStream) -> Vec<u8> {
        let mut header = [0; 4];
        client.read_exact(&mut header).unwrap();
        let mut payload = vec![0; usize::from(header[0])];
        client.read_exact(&mut payload).unwrap();
        payload
    }

    fn log_in(mut client: &TcpStream, user: &[u8]) {
        let mut writer = PacketWriter::with_buffer(Vec::new(), 1);
        handshake::Login {
            capabilities: CAPABILITIES,
            max_packet_bytes: 1 << 24,
            collation: 45,
            user,
            auth_response: b"",
            database: None,
            auth_plugin: Some(auth::CACHING_SHA2_PASSWORD.as_bytes()),
            attributes: handshake::Attributes::new(&[]),
            zstd_level: None,
        }
        .write(&mut writer);
        client.write_all(writer.bytes()).unwrap();
    }

    /// Serves a connection until its client is answered.
    fn serve_until_answered(connection: &mut Connection, client: &TcpStream) -> Vec<u8> {
        let mut buffers = IoBuffers::default();
        let until = Instant::now() + Duration::from_secs(10);
        client.set_nonblocking(true).unwrap();
        while client.peek(&mut [0]).is_err() && Instant::now() < until {
            connection.serve(&mut buffers);
            std::thread::sleep(Duration::from_millis(1));
        }
        client.set_nonblocking(false).unwrap();
        packet(client)
    }

    const DB1: [u8; 4] = [192, 0, 2, 1];

    fn db1() -> MadeUp {
        MadeUp::default().with("192.0.2.1", "db1.example.com", &["192.0.2.1"])
    }

    #[test]
    fn an_account_for_a_hosts_name_lets_its_client_in() {
        let statements = ["CREATE USER u@'db%.example.com'"];
        let (mut connection, client, server) = named_client(db1(), DB1, &statements);
        assert_eq!(packet(&client)[0], 10);
        log_in(&client, b"u");
        assert_eq!(serve_until_answered(&mut connection, &client)[0], 0);
        let (address, known) = server.engine.hosts().all().remove(0);
        assert_eq!(address, std::net::IpAddr::from(DB1));
        assert_eq!(known.name.as_deref(), Some("db1.example.com"));
        // The next client's host is known at once.
        let (connection, client) = connect(&server, DB1);
        let mut connection = connection.unwrap();
        assert_eq!(packet(&client)[0], 10);
        log_in(&client, b"u");
        connection.serve(&mut IoBuffers::default());
        assert_eq!(packet(&client)[0], 0);
    }

    #[test]
    fn a_name_that_leads_elsewhere_lets_nobody_in() {
        let hosts = MadeUp::default().with("192.0.2.1", "db1.example.com", &["192.0.2.9"]);
        let statements = ["CREATE USER u@'db%.example.com'"];
        let (mut connection, client, server) = named_client(hosts, DB1, &statements);
        assert_eq!(packet(&client)[0], 10);
        log_in(&client, b"u");
        let refused = serve_until_answered(&mut connection, &client);
        assert_eq!(refused[..3], [0xFF, 0x6A, 0x04], "1130");
        let (_, known) = server.engine.hosts().all().remove(0);
        assert_eq!((known.name, known.is_validated), (None, true));
        // By now it is known before the greeting.
        let (connection, client) = connect(&server, DB1);
        assert!(connection.is_none());
        assert_eq!(packet(&client)[..3], [0xFF, 0x6A, 0x04]);
    }

    #[test]
    fn a_resolver_that_hangs_is_not_waited_for_to_the_end() {
        let hosts = db1();
        let hangs = hosts.hangs.clone();
        let hung = hangs.lock();
        let statements = ["CREATE USER u@'192.0.2.%'"];
        let (mut connection, client, server) = named_client(hosts, DB1, &statements);
        assert_eq!(packet(&client)[0], 10);
        let due = |connection: &Connection| connection.deadline(Instant::now()).unwrap();
        let full = due(&connection);
        log_in(&client, b"u");
        connection.serve(&mut IoBuffers::default());
        let half = server.connect_timeout() / 2;
        // Serving takes a moment, which isn't its client's.
        assert!(full - due(&connection) > half - Duration::from_secs(1));
        connection.mark_expired();
        connection.serve(&mut IoBuffers::default());
        assert_eq!(packet(&client)[0], 0);
        drop(hung);
    }

    #[test]
    fn generating_the_key_does_not_count_as_the_clients_time() {
        const GENERATION: Duration = Duration::from_millis(200);
        let engine = Engine::open(EngineOptions {
            location: Location::Memory,
            variables: Vec::new(),
        });
        let server = Arc::new(ServerState::new(engine.unwrap()));
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let mut client = TcpStream::connect(listener.tcp_address().unwrap()).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        let (slot, traffic) = (server.take_slot(), Arc::default());
        let mut writer = PacketWriter::new();
        let greeted = Connection::greet(stream, peer, slot, &server, traffic, &mut writer);
        let (mut connection, mut buffers) = (greeted.unwrap(), IoBuffers::default());
        let due = |connection: &Connection| connection.deadline(Instant::now()).unwrap();

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
        connection.serve(&mut buffers);
        let due_before = due(&connection);

        // It asks for the key.
        client.write_all(&[1, 0, 0, 3, 2]).unwrap();
        let blocked = server.auth_cache.block_key_generation();
        std::thread::scope(|scope| {
            let (connection, buffers) = (&mut connection, &mut buffers);
            let serving = scope.spawn(move || connection.serve(buffers));
            std::thread::sleep(GENERATION);
            assert!(!serving.is_finished());
            drop(blocked);
        });
        assert!(server.auth_cache.has_key());
        assert!(due(&connection) >= due_before + GENERATION);
    }
}
