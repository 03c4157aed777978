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
use std::sync::atomic::Ordering;

use porpoise_engine::Account;
use porpoise_engine::Error;
use porpoise_engine::policy::now_us;
use porpoise_engine::session::Login;
use porpoise_engine::tls::ClientTls;
use porpoise_protocol::auth::{self, AuthOutcome, Exchange};
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{self, Attributes, ChangeUser, NONCE_BYTES};
use porpoise_types::Collation;

use crate::error_packet::wire_error;
use crate::peer_credentials::{self, AUTH_SOCKET};
use crate::server_state::ServerState;
use crate::stream::{Peer, Stream};

/// The level at which zlib compresses, as the status shows it.
const ZLIB_LEVEL: u8 = 6;

/// As whom a client wants to log in, and what it can do.
pub(crate) struct LoginRequest {
    user: String,
    /// The client's host, a name or an address.
    host: Arc<str>,
    schema: Option<String>,
    pub capabilities: Capabilities,
    /// How packets are compressed after the login; `None` if they aren't.
    pub compression: Option<Algorithm>,
    collation: u16,
    attributes: Vec<(String, String)>,
    /// The client has sent a password, right or wrong.
    with_password: bool,
    /// The account whose password was given, if it acts as another.
    proxy_user: Option<String>,
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
    /// The login of a new connection from this host, whose greeting has `offered` this.
    pub fn from_login(
        login: &handshake::Login<'_>,
        host: Arc<str>,
        offered: Capabilities,
    ) -> LoginRequest {
        let capabilities = login.capabilities & offered;
        LoginRequest {
            compression: Algorithm::agreed(capabilities, login.zstd_level),
            user: lossy_text(login.user),
            host,
            schema: login.database.map(lossy_text),
            capabilities,
            collation: u16::from(login.collation),
            attributes: owned_attributes(&login.attributes),
            with_password: !is_no_password(login.auth_response),
            proxy_user: None,
        }
    }

    /// COM_CHANGE_USER, which keeps what the connection can do; `collation` is the one so far.
    pub fn from_change_user(
        change: &ChangeUser<'_>,
        host: Arc<str>,
        capabilities: Capabilities,
        compression: Option<Algorithm>,
        collation: u16,
    ) -> LoginRequest {
        LoginRequest {
            compression,
            user: lossy_text(change.user),
            host,
            schema: Some(lossy_text(change.database)).filter(|name| !name.is_empty()),
            capabilities,
            collation: change.collation.unwrap_or(collation),
            attributes: owned_attributes(&change.attributes),
            with_password: !change.auth_response.is_empty(),
            proxy_user: None,
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
    tls: Option<Arc<ClientTls>>,
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
        let account = engine.account_for(&request.user, &request.host, peer.ip());
        // Looked up for every client, so that the time it takes tells nothing.
        let decoy_plugin = engine.decoy_plugin(&request.user);
        // Where some accounts have two passwords, two are checked for everybody.
        let two = engine.any_second_password();
        let password = |credential, account: Option<Arc<Account>>| {
            let second = two.then(|| match &account {
                Some(account) => server.auth_cache.second_credential(account),
                None => server.auth_cache.second_decoy(&request.user, decoy_plugin),
            });
            let is_private = peer.is_private() || stream.is_secure();
            let exchange = Exchange::new(credential, nonce, is_private);
            AuthMethod::Password(exchange.with_second(second), account)
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
            tls: origin.stream.client_tls().cloned(),
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
        let result = exchange.conclude(outcome, server);
        (exchange, result)
    }

    /// Takes the response to a question.
    pub fn handle_response(
        &mut self,
        packet: &[u8],
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
        self.conclude(outcome, server)
    }

    /// The number that the client's next packet must have.
    pub fn expected_sequence(&self) -> u8 {
        self.expected_sequence
    }

    fn conclude(
        &mut self,
        outcome: Result<AuthOutcome, porpoise_protocol::Error>,
        server: &ServerState,
    ) -> AuthResult {
        match (outcome, &self.method) {
            (Ok(AuthOutcome::Continue), _) => AuthResult::Continue,
            (Ok(AuthOutcome::Accepted(_)), AuthMethod::Preauthenticated(None)) => {
                AuthResult::Authenticated(None)
            }
            (Ok(AuthOutcome::Accepted(_)), AuthMethod::Preauthenticated(Some(account))) => {
                let account = account.clone();
                self.check_account_state(account, server)
            }
            (Ok(AuthOutcome::Accepted(fast_hash)), AuthMethod::Password(by, Some(account))) => {
                if let Some(fast_hash) = fast_hash {
                    let cache = &server.auth_cache;
                    cache.insert(account, by.used_second(), fast_hash);
                }
                let account = account.clone();
                self.check_account_state(account, server)
            }
            (Ok(AuthOutcome::Denied), AuthMethod::Password(_, Some(account))) => {
                self.refuse_password(account)
            }
            (Ok(AuthOutcome::Accepted(_) | AuthOutcome::Denied), _) => {
                AuthResult::Refused(self.access_denied())
            }
            (Err(porpoise_protocol::Error::Malformed(_)), _) => {
                AuthResult::Refused(Error::handshake_error())
            }
            (Err(error), _) => AuthResult::Refused(wire_error(error)),
        }
    }

    /// A wrong password. When there were too many of them, that is what a client is told, whether
    /// its password is right or wrong: the lock is to stop a search for the right one.
    fn refuse_password(&self, account: &Account) -> AuthResult {
        account.usage.login_failed(&account.policy, now_us());
        AuthResult::Refused(match self.temporary_lock(account) {
            Some(locked) => locked,
            None => self.access_denied(),
        })
    }

    /// Error 3955, if wrong passwords have locked the account.
    fn temporary_lock(&self, account: &Account) -> Option<Error> {
        let lock = account.usage.temporary_lock(&account.policy, now_us())?;
        let days = |days: Option<u32>| {
            days.map_or_else(|| "unlimited".to_string(), |days| days.to_string())
        };
        Some(Error::account_temporarily_locked(
            &self.request.user,
            &self.request.host,
            days(lock.days),
            days(lock.days_left),
            lock.failures,
        ))
    }

    /// Whether an account lets its owner in. Why it doesn't is told to nobody else.
    fn check_account_state(&mut self, account: Arc<Account>, server: &ServerState) -> AuthResult {
        let has_no_password =
            account.authentication_string.is_empty() && &*account.plugin != AUTH_SOCKET;
        if let Some(locked) = self.temporary_lock(&account) {
            return AuthResult::Refused(locked);
        }
        account.usage.forget_failures();
        if account.locked {
            server.locked_connects.fetch_add(1, Ordering::Relaxed);
        }
        if !account.tls.is_met(self.tls.as_deref()) || account.locked && has_no_password {
            return AuthResult::Refused(self.access_denied());
        }
        if account.locked {
            let error = Error::account_locked(&self.request.user, &self.request.host);
            return AuthResult::Refused(error);
        }
        let can_change_it = Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS;
        let variables = server.engine.variables();
        let default_lifetime = variables.get_u64("default_password_lifetime");
        if account.must_change_password(default_lifetime)
            && !self.request.capabilities.contains(can_change_it)
            && variables.get_u64("disconnect_on_expired_password") != 0
        {
            return AuthResult::Refused(Error::password_has_expired());
        }
        if let Some(proxied) = proxied(&account, server) {
            self.request.proxy_user = Some(account.quoted());
            return AuthResult::Authenticated(Some(proxied));
        }
        AuthResult::Authenticated(Some(account))
    }

    fn access_denied(&self) -> Error {
        let with_password = match self.request.with_password {
            true => "YES",
            false => "NO",
        };
        Error::access_denied(&self.request.user, &self.request.host, with_password)
    }

    /// What the engine needs to open a session, or to change its user. The attributes are moved
    /// out.
    pub fn take_login(&mut self, account: Option<Arc<Account>>, id: u64, peer: Peer) -> Login {
        let request = &mut self.request;
        Login {
            connection_id: id,
            account,
            user: request.user.as_str().into(),
            host: (&*request.host).into(),
            peer: peer.display_as(&request.host).into(),
            schema: request.schema.as_deref().map(Into::into),
            collation: Collation::by_id(request.collation),
            found_rows: request.capabilities.contains(Capabilities::FOUND_ROWS),
            ignore_space: request.capabilities.contains(Capabilities::IGNORE_SPACE),
            single_result: !request.capabilities.contains(Capabilities::MULTI_RESULTS),
            interactive: request.capabilities.contains(Capabilities::INTERACTIVE),
            tls: self.tls.clone(),
            compression: request.compression.map(|algorithm| {
                let level = match algorithm {
                    Algorithm::Zlib => ZLIB_LEVEL,
                    Algorithm::Zstd { level } => level,
                };
                (algorithm.name(), level)
            }),
            attributes: Some(std::mem::take(&mut request.attributes)),
            proxy_user: request.proxy_user.as_deref().map(Into::into),
        }
    }
}

/// The account as which another one acts, where accounts of its plugin may (MySQL 8.4 manual,
/// 8.2.19): the first that it has PROXY on.
fn proxied(account: &Account, server: &ServerState) -> Option<Arc<Account>> {
    if account.proxies.is_empty() {
        return None;
    }
    let variables = server.engine.variables();
    let may = match &*account.plugin {
        auth::NATIVE_PASSWORD => variables.get_u64("mysql_native_password_proxy_users"),
        auth::SHA256_PASSWORD => variables.get_u64("sha256_password_proxy_users"),
        _ => 0,
    };
    if may == 0 || variables.get_u64("check_proxy_users") == 0 {
        return None;
    }
    let accounts = &server.engine.shared.accounts;
    let rights = account.proxies.iter();
    let mut named = rights.filter(|right| !right.is("", ""));
    named.find_map(|right| accounts.get(&right.user, &right.host))
}

/// Whether a packet had the number that was expected. The writer's next number is the one after the
/// packet's.
pub(crate) fn is_in_order(expected: u8, writer: &PacketWriter) -> bool {
    writer.sequence() == expected.wrapping_add(1)
}
