//! The handshake of a connection: from the greeting to a session, or a refusal.
//!
//! ```text
//! Greeting ─► login ─► the account's plugin asks and checks ─► a connection slot? ─► a session
//!               └─► asks for the fast path? ticket ─► moved or not ─┘
//! ```
//!
//! A TCP client on this machine may ask for the loopback fast path in its login. While
//! `loopback_fast_path` is ON, it is then given rings ([`porpoise_transport::loopback`]) before
//! anything else is done with the login, and the authentication is the first thing to go over them.
//! For accounts it is still a TCP client.
//!
//! How a client proves who it is, is in [`crate::auth_exchange`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use porpoise_engine::Error;
use porpoise_engine::host_cache::Refusal;
use porpoise_engine::session::Login;
use porpoise_protocol::auth;
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
    nonce: [u8; NONCE_BYTES],
    slot: Option<ConnectionSlot>,
    exchange: Option<AuthExchange>,
    /// Rings were offered; the login waits for the client's word on them.
    rings_offer: Option<Box<RingsOffer>>,
    /// Rings may still be offered: once, with the login.
    may_offer_rings: bool,
    /// The number that the login must have.
    expected_sequence: u8,
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
    Authenticated(Box<Login>),
    Refused,
}

impl Handshake {
    /// Writes the greeting.
    pub fn begin(
        id: u64,
        peer: Peer,
        slot: ConnectionSlot,
        writer: &mut PacketWriter,
    ) -> Handshake {
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
        Handshake {
            id,
            peer,
            nonce,
            slot: Some(slot),
            exchange: None,
            rings_offer: None,
            may_offer_rings: true,
            expected_sequence: writer.sequence(),
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
            Some(exchange) => exchange.handle_response(packet, self.peer, server, writer),
            None if !is_in_order(self.expected_sequence, writer) => {
                AuthResult::Refused(Error::packets_out_of_order())
            }
            None => self.handle_first_packet(packet, stream, server, writer),
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

    fn handle_first_packet(
        &mut self,
        packet: &[u8],
        stream: &Stream,
        server: &ServerState,
        writer: &mut PacketWriter,
    ) -> AuthResult {
        let login = match FirstPacket::parse(packet) {
            Ok(FirstPacket::Login(login)) => login,
            Err(porpoise_protocol::Error::UnsupportedHandshake) => {
                return AuthResult::Refused(Error::not_supported_auth_mode());
            }
            Ok(FirstPacket::SslRequest(_)) | Err(_) => {
                return AuthResult::Refused(Error::handshake_error());
            }
        };
        if self.offer_rings(packet, &login, (stream, server), writer) {
            return AuthResult::Continue;
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
        let request = LoginRequest::from_login(&login);
        let (exchange, result) = AuthExchange::begin(request, response, origin, server, writer);
        self.exchange = Some(exchange);
        result
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
                    capabilities,
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
        ErrorKind::TooManyUserConnections => Refusal::MaxUserConnections,
        ErrorKind::UnknownDatabase => Refusal::DefaultDatabase,
        _ => Refusal::Authentication,
    }
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
    use crate::io_buffers::IoBuffers;
    use crate::listener::Listener;

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
