//! The authentication of a client, at the start of its connection or by COM_CHANGE_USER.
//!
//! ```text
//! LoginRequest ─► AuthExchange::begin ─► Continue ─► AuthExchange::handle_response ─► …
//!                                    └─► Authenticated, or Refused
//! ```
//!
//! Somebody who doesn't know an account's password can't tell whether there is such an account: the
//! server asks the same questions, and refuses with the same words after the same steps and as much
//! work. A user without an account is asked by a plugin that other accounts have
//! ([`Engine::decoy_plugin`](porpoise_engine::Engine::decoy_plugin)), and checked with a hash that
//! no password has. That an account is locked, or its password expired, is told to a client that
//! knows its password; an empty one proves nothing.
//!
//! An account with the plugin `auth_socket` has no password ([`crate::peer_credentials`]). Its
//! owner is let in whatever password the client was given, by an exchange that the client's plugin
//! can follow ([`auth::accept`]). Everybody else is asked as if there were no such account: MySQL
//! answers 1698 to them, which tells that there is one.

use std::sync::Arc;

use porpoise_engine::Account;
use porpoise_engine::Error;
use porpoise_engine::session::Login;
use porpoise_protocol::auth::{self, AuthOutcome, Exchange};
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{self, Attributes, ChangeUser, NONCE_BYTES};
use porpoise_types::Collation;

use crate::error_packet::wire_error;
use crate::handshake::CAPABILITIES;
use crate::peer_credentials::{self, AUTH_SOCKET};
use crate::server_state::ServerState;
use crate::stream::{Peer, Stream};

/// As whom a client wants to log in, and what it can do.
pub(crate) struct LoginRequest {
    user: String,
    schema: Option<String>,
    pub capabilities: Capabilities,
    collation: u16,
    attributes: Vec<(String, String)>,
    /// The client has sent a password, right or wrong.
    with_password: bool,
}

/// Bytes of a client as text.
pub(crate) fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn owned_attributes(attributes: &Attributes<'_>) -> Vec<(String, String)> {
    let pairs = attributes.iter();
    pairs
        .map(|(name, value)| (lossy_text(name), lossy_text(value)))
        .collect()
}

/// Whether a client's first response says that it has no password.
fn is_no_password(response: &[u8]) -> bool {
    matches!(response, [] | [0])
}

impl LoginRequest {
    /// The login of a new connection.
    pub fn from_login(login: &handshake::Login<'_>) -> LoginRequest {
        LoginRequest {
            user: lossy_text(login.user),
            schema: login.database.map(lossy_text),
            capabilities: login.capabilities & CAPABILITIES,
            collation: u16::from(login.collation),
            attributes: owned_attributes(&login.attributes),
            with_password: !is_no_password(login.auth_response),
        }
    }

    /// COM_CHANGE_USER, which keeps what the connection can do; `collation` is the one so far.
    pub fn from_change_user(
        change: &ChangeUser<'_>,
        capabilities: Capabilities,
        collation: u16,
    ) -> LoginRequest {
        LoginRequest {
            user: lossy_text(change.user),
            schema: Some(lossy_text(change.database)).filter(|name| !name.is_empty()),
            capabilities,
            collation: change.collation.unwrap_or(collation),
            attributes: owned_attributes(&change.attributes),
            with_password: !change.auth_response.is_empty(),
        }
    }
}

/// The first response of a client to the greeting's nonce.
#[derive(Clone, Copy)]
pub(crate) struct FirstResponse<'a> {
    /// The plugin that the client has used, if it has said so.
    pub plugin: Option<&'a [u8]>,
    pub bytes: &'a [u8],
}

/// Where a client comes from, and what it was greeted with.
#[derive(Clone, Copy)]
pub(crate) struct ClientOrigin<'a> {
    pub nonce: [u8; NONCE_BYTES],
    pub peer: Peer,
    pub stream: &'a Stream,
}

/// An authentication under way.
pub(crate) struct AuthExchange {
    pub request: LoginRequest,
    method: AuthMethod,
    /// The number that the client's next packet must have.
    expected_sequence: u8,
}

enum AuthMethod {
    /// By the account's password. Without an account none is right.
    Password(Exchange, Option<Arc<Account>>),
    /// By what the operating system says of the other end: as the account, or without one as a
    /// client that shares the process or its user. The exchange is for the client, not for the
    /// server.
    Preauthenticated(Option<Arc<Account>>),
}

/// What a packet has led to.
pub(crate) enum AuthResult {
    /// The writer holds the next question.
    Continue,
    /// By the account; without one, as a client that shares the process or its user.
    Authenticated(Option<Arc<Account>>),
    Refused(Error),
}

impl AuthMethod {
    fn choose(
        request: &LoginRequest,
        origin: ClientOrigin<'_>,
        server: &ServerState,
    ) -> AuthMethod {
        let ClientOrigin {
            nonce,
            peer,
            stream,
        } = origin;
        if peer == Peer::SameUser || stream.is_in_process() {
            return AuthMethod::Preauthenticated(None);
        }
        let engine = &server.engine;
        let account = engine.account_for(&request.user, &peer.host(), peer.ip());
        // Looked up for every client, so that the time it takes tells nothing.
        let decoy_plugin = engine.decoy_plugin(&request.user);
        let password = |credential, account| {
            let exchange = Exchange::new(credential, nonce, peer.is_private());
            AuthMethod::Password(exchange, account)
        };
        let decoy = || server.auth_cache.decoy(&request.user, decoy_plugin);
        let Some(account) = account else {
            return password(decoy(), None);
        };
        if &*account.plugin == AUTH_SOCKET {
            let is_owner = peer == Peer::Unix && peer_credentials::is_owner(&account, stream);
            return match is_owner {
                true => AuthMethod::Preauthenticated(Some(account)),
                false => password(decoy(), None),
            };
        }
        match server.auth_cache.credential(&account) {
            Some(credential) => password(credential, Some(account)),
            None => {
                tracing::warn!(
                    "{}: its plugin or its hash isn't known here",
                    account.quoted()
                );
                password(decoy(), None)
            }
        }
    }
}

impl AuthExchange {
    /// Begins with the first response.
    pub fn begin(
        request: LoginRequest,
        response: FirstResponse<'_>,
        origin: ClientOrigin<'_>,
        server: &ServerState,
        writer: &mut PacketWriter,
    ) -> (AuthExchange, AuthResult) {
        let FirstResponse { plugin, bytes } = response;
        let method = AuthMethod::choose(&request, origin, server);
        let mut exchange = AuthExchange {
            request,
            method,
            expected_sequence: 0,
        };
        let outcome = match &mut exchange.method {
            AuthMethod::Password(password, _) => {
                let capabilities = exchange.request.capabilities;
                if !capabilities.contains(Capabilities::PLUGIN_AUTH)
                    && password.plugin() != auth::NATIVE_PASSWORD
                {
                    let error = Error::not_supported_auth_mode();
                    return (exchange, AuthResult::Refused(error));
                }
                password.begin(plugin, bytes, writer, || server.auth_cache.key())
            }
            AuthMethod::Preauthenticated(_) => {
                Ok(auth::accept(plugin, bytes, &origin.nonce, writer))
            }
        };
        exchange.expected_sequence = writer.sequence();
        let result = exchange.conclude(outcome, origin.peer, server);
        (exchange, result)
    }

    /// Takes the response to a question.
    pub fn handle_response(
        &mut self,
        packet: &[u8],
        peer: Peer,
        server: &ServerState,
        writer: &mut PacketWriter,
    ) -> AuthResult {
        if !is_in_order(self.expected_sequence, writer) {
            return AuthResult::Refused(Error::packets_out_of_order());
        }
        self.request.with_password |= !is_no_password(packet);
        let outcome = match &mut self.method {
            AuthMethod::Password(exchange, _) => {
                exchange.handle_response(packet, writer, || server.auth_cache.key())
            }
            AuthMethod::Preauthenticated(_) => Ok(AuthOutcome::Accepted(None)),
        };
        self.expected_sequence = writer.sequence();
        self.conclude(outcome, peer, server)
    }

    /// The number that the client's next packet must have.
    pub fn expected_sequence(&self) -> u8 {
        self.expected_sequence
    }

    fn conclude(
        &mut self,
        outcome: Result<AuthOutcome, porpoise_protocol::Error>,
        peer: Peer,
        server: &ServerState,
    ) -> AuthResult {
        match (outcome, &self.method) {
            (Ok(AuthOutcome::Continue), _) => AuthResult::Continue,
            (Ok(AuthOutcome::Accepted(_)), AuthMethod::Preauthenticated(None)) => {
                AuthResult::Authenticated(None)
            }
            (Ok(AuthOutcome::Accepted(_)), AuthMethod::Preauthenticated(Some(account))) => {
                self.check_account_state(account, peer, server)
            }
            (Ok(AuthOutcome::Accepted(fast_hash)), AuthMethod::Password(_, Some(account))) => {
                if let Some(fast_hash) = fast_hash {
                    server.auth_cache.insert(account, fast_hash);
                }
                self.check_account_state(account, peer, server)
            }
            (Ok(AuthOutcome::Accepted(_) | AuthOutcome::Denied), _) => {
                AuthResult::Refused(self.access_denied(peer))
            }
            (Err(porpoise_protocol::Error::Malformed(_)), _) => {
                AuthResult::Refused(Error::handshake_error())
            }
            (Err(error), _) => AuthResult::Refused(wire_error(error)),
        }
    }

    /// Whether an account lets its owner in. Why it doesn't is told to nobody else.
    fn check_account_state(
        &self,
        account: &Arc<Account>,
        peer: Peer,
        server: &ServerState,
    ) -> AuthResult {
        let has_no_password =
            account.authentication_string.is_empty() && &*account.plugin != AUTH_SOCKET;
        if account.locked && has_no_password {
            return AuthResult::Refused(self.access_denied(peer));
        }
        if account.locked {
            let error = Error::account_locked(&self.request.user, peer.host());
            return AuthResult::Refused(error);
        }
        let can_change_it = Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS;
        let variables = server.engine.variables();
        if account.password_expired
            && !self.request.capabilities.contains(can_change_it)
            && variables.get_u64("disconnect_on_expired_password") != 0
        {
            return AuthResult::Refused(Error::password_has_expired());
        }
        AuthResult::Authenticated(Some(account.clone()))
    }

    fn access_denied(&self, peer: Peer) -> Error {
        let with_password = match self.request.with_password {
            true => "YES",
            false => "NO",
        };
        Error::access_denied(&self.request.user, peer.host(), with_password)
    }

    /// What the engine needs to open a session, or to change its user. The attributes are moved
    /// out.
    pub fn take_login(&mut self, account: Option<Arc<Account>>, id: u64, peer: Peer) -> Login {
        let request = &mut self.request;
        Login {
            connection_id: id,
            account,
            user: request.user.as_str().into(),
            host: peer.host().into(),
            peer: peer.display().into(),
            schema: request.schema.as_deref().map(Into::into),
            collation: Collation::by_id(request.collation),
            found_rows: request.capabilities.contains(Capabilities::FOUND_ROWS),
            ignore_space: request.capabilities.contains(Capabilities::IGNORE_SPACE),
            interactive: request.capabilities.contains(Capabilities::INTERACTIVE),
            attributes: std::mem::take(&mut request.attributes),
        }
    }
}

/// Whether a packet had the number that was expected. The writer's next number is the one after the
/// packet's.
pub(crate) fn is_in_order(expected: u8, writer: &PacketWriter) -> bool {
    writer.sequence() == expected.wrapping_add(1)
}
