//! Logging in, and logging in again: the client's side of the password plugins, and of the loopback
//! fast path. [TLS](crate::tls) begins before the login, compression behind it.
//!
//! The fast path is asked for by a connection attribute, [`FAST_PATH_ATTRIBUTE`]: a server that
//! doesn't know it, or doesn't want it, passes over it as over any attribute, and goes on as if
//! nobody had asked. One that wants it answers the login with a ticket
//! ([`porpoise_transport::loopback`]) in place of the authentication's first step, which then is
//! the first thing to come over the rings.
//!
//! ```text
//!   TCP    ◄─ greeting    ─► login, _loopback_fast_path=NAME    ◄─ more: ticket    ─► moved, or stays
//!   rings                                                                             ◄─ the plugin's question, or OK
//! ```

use crate::connection::Connection;
use crate::{Error, Options};
use porpoise_protocol::auth::{self, caching_sha2, public_key};
use porpoise_protocol::codes::UTF8MB4_GENERAL_CI;
use porpoise_protocol::command::Command;
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::flags::Capabilities;
use porpoise_protocol::handshake::{
    Attributes, AuthStep, ChangeUser, FAST_PATH_ACCEPTED, FAST_PATH_ATTRIBUTE, FAST_PATH_DECLINED,
    Greeting, Login, NONCE_BYTES, SslRequest, put_attribute,
};
use porpoise_protocol::reply::ErrPacket;
use porpoise_transport::Stream;
use porpoise_transport::loopback::{self, RingsListener, TcpAddresses};

/// What the greeting says of the server, and what both ends can do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Server {
    pub(crate) version: String,
    pub(crate) connection_id: u32,
    pub(crate) capabilities: Capabilities,
    /// What the server can do.
    pub(crate) offered: Capabilities,
    pub(crate) collation: u8,
    nonce: [u8; NONCE_BYTES],
}

/// What this client can do on every connection.
const CAPABILITIES: Capabilities = Capabilities::LONG_PASSWORD
    .union(Capabilities::LONG_FLAG)
    .union(Capabilities::PROTOCOL_41)
    .union(Capabilities::TRANSACTIONS)
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::MULTI_RESULTS)
    .union(Capabilities::PS_MULTI_RESULTS)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(Capabilities::CONNECT_ATTRS)
    .union(Capabilities::SESSION_TRACK)
    .union(Capabilities::DEPRECATE_EOF);

/// The plugin that takes the password itself: over a channel that nobody else can read, or under the
/// server's public key.
const SHA256_PASSWORD: &str = "sha256_password";

/// What a client of that plugin sends to be sent the key.
const SHA256_KEY_REQUEST: u8 = 1;

/// Capabilities a server must have.
const REQUIRED: Capabilities = Capabilities::PROTOCOL_41.union(Capabilities::SECURE_CONNECTION);

fn requested_capabilities(options: &Options) -> Capabilities {
    let mut capabilities = CAPABILITIES | options.capabilities;
    capabilities.set(Capabilities::CONNECT_WITH_DB, options.database.is_some());
    for (flag, asked) in [
        (Capabilities::MULTI_STATEMENTS, options.multi_statements),
        (Capabilities::FOUND_ROWS, options.found_rows),
    ] {
        if asked {
            capabilities.insert(flag);
        }
    }
    capabilities
}

fn attributes(options: &Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_attribute(&mut bytes, "_client_name", "porpoise-client");
    put_attribute(&mut bytes, "_client_version", env!("CARGO_PKG_VERSION"));
    put_attribute(&mut bytes, "_os", std::env::consts::OS);
    put_attribute(&mut bytes, "_platform", std::env::consts::ARCH);
    put_attribute(&mut bytes, "_pid", &std::process::id().to_string());
    for (name, value) in &options.attributes {
        put_attribute(&mut bytes, name, value);
    }
    bytes
}

/// Texts that the protocol ends with a zero byte can't have one.
fn check(options: &Options) -> Result<(), Error> {
    let database = options.database.as_deref().unwrap_or_default();
    if options.user.contains('\0') || database.contains('\0') {
        return Err(Error::Options("a name holds a zero byte".into()));
    }
    Ok(())
}

/// Reads the greeting and logs in.
pub(crate) fn log_in(connection: &mut Connection) -> Result<(), Error> {
    let options = connection.options().clone();
    check(&options)?;
    let (plugin, mut sequence) = read_greeting(connection, &options)?;
    let capabilities = connection.server.capabilities;
    let max_packet_bytes = u32::try_from(options.max_allowed_packet).unwrap_or(u32::MAX);
    let collation = u8::try_from(options.collation).unwrap_or(UTF8MB4_GENERAL_CI as u8);
    if capabilities.contains(Capabilities::SSL) {
        connection.writer().set_sequence(sequence);
        SslRequest {
            capabilities,
            max_packet_bytes,
            collation,
        }
        .write(connection.writer());
        sequence = connection.writer().sequence();
        connection.flush()?;
        connection.start_tls()?;
    }
    let answer = auth::respond(
        plugin.as_bytes(),
        options.password.as_bytes(),
        &connection.server.nonce,
        connection.stream().is_private(),
    )?;
    let mut attributes = attributes(&options);
    let listener = listen_for_rings(connection, &options, capabilities);
    if let Some((listener, _)) = &listener {
        put_attribute(&mut attributes, FAST_PATH_ATTRIBUTE, listener.name());
    }
    let zstd_level = capabilities
        .contains(Capabilities::ZSTD_COMPRESSION)
        .then_some(options.compression.zstd_level);
    let login = Login {
        capabilities,
        max_packet_bytes,
        collation,
        user: options.user.as_bytes(),
        auth_response: &answer,
        database: options.database.as_deref().map(str::as_bytes),
        auth_plugin: Some(plugin.as_bytes()),
        attributes: Attributes::new(&attributes),
        zstd_level,
    };
    connection.writer().set_sequence(sequence);
    login.write(connection.writer());
    connection.flush()?;
    authenticate(connection, &options, plugin, listener)?;
    match Algorithm::agreed(capabilities, zstd_level) {
        Some(algorithm) => connection.start_compression(algorithm),
        None => Ok(()),
    }
}

/// Reads what the server says of itself, and settles what both ends do. Returns the plugin to answer
/// with, and the number of the packet that answers.
fn read_greeting(connection: &mut Connection, options: &Options) -> Result<(String, u8), Error> {
    let range = connection.read_packet()?;
    let packet = connection.packet(range);
    if let Some(error) = ErrPacket::parse(packet.payload)? {
        return Err(Error::from_server(error));
    }
    let greeting = Greeting::parse(packet.payload)?;
    let offered = greeting.capabilities;
    if !offered.contains(REQUIRED) {
        return Err(porpoise_protocol::Error::UnsupportedHandshake.into());
    }
    let mut capabilities = requested_capabilities(options) & offered;
    capabilities |= options.compression.requested(offered)?;
    let encrypts = encrypts(options, connection.stream(), offered)?;
    capabilities.set(Capabilities::SSL, encrypts);
    let server = Server {
        version: String::from_utf8_lossy(greeting.server_version).into_owned(),
        connection_id: greeting.connection_id,
        capabilities,
        offered,
        collation: greeting.collation,
        nonce: greeting.nonce,
    };
    let plugin = first_plugin(greeting.auth_plugin).to_owned();
    let sequence = packet.sequence.wrapping_add(1);
    connection.server = server;
    Ok((plugin, sequence))
}

/// Whether to encrypt what follows.
///
/// # Errors
/// If the options require it and it can't be.
fn encrypts(options: &Options, stream: &dyn Stream, offered: Capabilities) -> Result<bool, Error> {
    let is_asked = options.tls.is_asked(stream, options.loopback_fast_path);
    if is_asked && offered.contains(Capabilities::SSL) {
        return Ok(true);
    }
    match options.tls.is_required() {
        false => Ok(false),
        true if is_asked => Err(Error::Tls(
            "SSL is required but the server doesn't support it".into(),
        )),
        true => Err(Error::Tls(format!(
            "SSL is required, but isn't for {}",
            stream.kind()
        ))),
    }
}

/// A place for the server's rings, if they were asked for and this is a TCP connection within the
/// machine. What goes wrong here goes on over TCP.
fn listen_for_rings(
    connection: &Connection,
    options: &Options,
    capabilities: Capabilities,
) -> Option<(RingsListener, TcpAddresses)> {
    let addresses = connection
        .stream()
        .tcp_addresses()
        .filter(|addresses| addresses.are_loopback())?;
    let asks = options.loopback_fast_path
        && connection.tls().is_none()
        && capabilities.contains(Capabilities::CONNECT_ATTRS);
    let listener = asks.then(RingsListener::open)?.ok()?;
    Some((listener, addresses))
}

/// Logs in again.
pub(crate) fn change_user(connection: &mut Connection, options: &Options) -> Result<(), Error> {
    check(options)?;
    let plugin = auth::NATIVE_PASSWORD;
    let nonce = connection.server.nonce;
    let answer = auth::respond(
        plugin.as_bytes(),
        options.password.as_bytes(),
        &nonce,
        false,
    )?;
    let capabilities = connection.capabilities();
    let attributes = attributes(options);
    Command::ChangeUser(ChangeUser {
        user: options.user.as_bytes(),
        auth_response: &answer,
        database: options.database.as_deref().unwrap_or_default().as_bytes(),
        collation: Some(options.collation),
        auth_plugin: Some(plugin.as_bytes()),
        attributes: Attributes::new(&attributes),
    })
    .write(connection.writer(), capabilities);
    connection.flush()?;
    authenticate(connection, options, plugin.to_owned(), None)
}

/// The plugin to answer with first: the server's, unless this client hasn't got it. The server then
/// names the account's.
fn first_plugin(plugin: &[u8]) -> &'static str {
    match plugin {
        plugin if plugin == auth::CACHING_SHA2_PASSWORD.as_bytes() => auth::CACHING_SHA2_PASSWORD,
        _ => auth::NATIVE_PASSWORD,
    }
}

/// The first response to a plugin that the server has switched to.
fn respond(
    plugin: &str,
    password: &[u8],
    nonce: &[u8],
    secure: bool,
    trusts_key: bool,
) -> Result<Vec<u8>, Error> {
    Ok(match plugin {
        SHA256_PASSWORD if secure || password.is_empty() => {
            caching_sha2::cleartext_packet(password)
        }
        SHA256_PASSWORD if trusts_key => vec![SHA256_KEY_REQUEST],
        SHA256_PASSWORD => return Err(porpoise_protocol::Error::InsecureChannel.into()),
        plugin => auth::respond(plugin.as_bytes(), password, nonce, secure)?,
    })
}

/// The response to a question of `caching_sha2_password`; `None` if it asks for none. The bare password
/// goes over a `secure` channel only; over others it is encrypted under the server's public key, if
/// this client trusts that.
fn caching_sha2_response(
    question: &[u8],
    password: &[u8],
    nonce: &[u8],
    secure: bool,
    trusts_key: bool,
) -> Result<Option<Vec<u8>>, Error> {
    Ok(match question {
        [caching_sha2::FAST_AUTH_SUCCESS] => None,
        [caching_sha2::FULL_AUTH_NEEDED] if secure => {
            Some(caching_sha2::cleartext_packet(password))
        }
        [caching_sha2::FULL_AUTH_NEEDED] if !trusts_key => {
            return Err(porpoise_protocol::Error::InsecureChannel.into());
        }
        [caching_sha2::FULL_AUTH_NEEDED] => Some(vec![caching_sha2::PUBLIC_KEY_REQUEST]),
        pem => Some(public_key::encrypt(password, nonce, pem)?),
    })
}

/// Responds to the server's questions until it sends OK or an error.
fn authenticate(
    connection: &mut Connection,
    options: &Options,
    plugin: String,
    mut listener: Option<(RingsListener, TcpAddresses)>,
) -> Result<(), Error> {
    let password = options.password.as_bytes();
    let mut secure = connection.stream().is_private();
    // The stream before the rings, kept until the server has replied over them: until then it may
    // still read this one.
    let mut previous_stream = None;
    let mut plugin = plugin;
    let mut nonce = connection.server.nonce.to_vec();
    loop {
        let range = connection.read_packet()?;
        let packet = connection.packet(range);
        let sequence = packet.sequence.wrapping_add(1);
        if let Some(error) = ErrPacket::parse(packet.payload)? {
            return Err(Error::from_server(error));
        }
        let response = match AuthStep::parse(packet.payload)? {
            None => {
                drop(previous_stream);
                return connection.set_outcome(range);
            }
            Some(AuthStep::Switch {
                plugin: named,
                nonce: fresh,
            }) => {
                plugin = String::from_utf8_lossy(named).into_owned();
                nonce = fresh.to_vec();
                let trusts_key = options.get_server_public_key || connection.stream().is_local();
                Some(respond(&plugin, password, &nonce, secure, trusts_key)?)
            }
            Some(AuthStep::More(ticket)) if listener.is_some() && loopback::is_ticket(ticket) => {
                let rings = match listener.take() {
                    Some((listener, addresses)) => listener.accept_rings(ticket, addresses).ok(),
                    None => None,
                };
                let decision = if rings.is_some() {
                    FAST_PATH_ACCEPTED
                } else {
                    FAST_PATH_DECLINED
                };
                connection.writer().set_sequence(sequence);
                connection.writer().write(&[decision]);
                connection.flush()?;
                if let Some(rings) = rings {
                    previous_stream = Some(connection.switch_stream(Box::new(rings))?);
                    secure = true;
                }
                None
            }
            Some(AuthStep::More(bytes)) if plugin == auth::CACHING_SHA2_PASSWORD => {
                let trusts_key = options.get_server_public_key || connection.stream().is_local();
                caching_sha2_response(bytes, password, &nonce, secure, trusts_key)?
            }
            Some(AuthStep::More(pem)) if plugin == SHA256_PASSWORD => {
                Some(public_key::encrypt(password, &nonce, pem)?)
            }
            Some(AuthStep::More(_)) => {
                return Err(porpoise_protocol::Error::UnknownAuthPlugin.into());
            }
        };
        if let Some(response) = response {
            connection.writer().set_sequence(sequence);
            connection.writer().write(&response);
            connection.flush()?;
        }
    }
}
