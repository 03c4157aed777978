//! How a connection begins: the packets of the handshake. What is in the authentication's packets,
//! [`crate::auth`] knows.
//!
//! ```text
//! server                                       client
//! Greeting: version, nonce, capabilities ─►
//!                                         ◄─   SslRequest, then TLS, then …
//!                                         ◄─   Login: user, response to the nonce, database
//! AuthSwitchRequest, other plugin         ─►
//!                                         ◄─   its response, bare bytes
//! AuthMoreData                            ─►   … as the plugin likes …
//! OK or ERR                               ─►
//! ```

use crate::Error;
use crate::codes::CollationId;
use crate::flags::{Capabilities, Status};
use crate::frame::PacketWriter;
use crate::wire::{Fields, PutFields};

/// The only handshake in use.
pub const PROTOCOL_VERSION: u8 = 10;

/// The length of a nonce.
pub const NONCE_BYTES: usize = 20;

/// The payload by which a client asks for a greeting on a stream that has carried a connection
/// before: Porpoise's own. Over a new stream the server greets without being asked.
pub const REUSE_REQUEST: &[u8] = b"porpoise";

/// The connection attribute by which a client asks for the loopback fast path: Porpoise's own. Its
/// value names the socket where the client waits for the server's rings. A server that wants it
/// replies with [`AuthStep::More`] and a ticket, before the authentication's first step.
pub const FAST_PATH_ATTRIBUTE: &str = "_loopback_fast_path";
/// A client's one-byte reply to the ticket: it goes on over the rings.
pub const FAST_PATH_ACCEPTED: u8 = 1;
/// A client's one-byte reply to the ticket: it stays on TCP.
pub const FAST_PATH_DECLINED: u8 = 0;

/// What a server sends first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// As `SELECT VERSION()`.
    pub server_version: &'a [u8],
    /// As `SELECT CONNECTION_ID()`.
    pub connection_id: u32,
    /// What the client's response is mixed with; no byte of it is zero.
    pub nonce: [u8; NONCE_BYTES],
    /// What the server can do.
    pub capabilities: Capabilities,
    /// The server's default collation, its low byte.
    pub collation: u8,
    /// The session's state.
    pub status: Status,
    /// The authentication plugin that the nonce is for.
    pub auth_plugin: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Writes it.
    pub fn write(&self, writer: &mut PacketWriter) {
        let capabilities = self.capabilities.bits();
        let (nonce_begin, nonce_end) = self.nonce.split_at(8);
        writer.packet(|out| {
            out.push(PROTOCOL_VERSION);
            out.put_nul_bytes(self.server_version);
            out.put_u32(self.connection_id);
            out.put_nul_bytes(nonce_begin);
            out.put_u16(capabilities as u16);
            out.push(self.collation);
            out.put_u16(self.status.bits());
            out.put_u16((capabilities >> 16) as u16);
            out.push(if self.capabilities.contains(Capabilities::PLUGIN_AUTH) {
                NONCE_BYTES as u8 + 1
            } else {
                0
            });
            out.put_zeros(10);
            out.put_nul_bytes(nonce_end);
            if self.capabilities.contains(Capabilities::PLUGIN_AUTH) {
                out.put_nul_bytes(self.auth_plugin);
            }
        });
    }

    /// Reads it. A server that refuses at once sends an ERR packet instead: look with
    /// [`crate::reply::ErrPacket::parse`] first.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(payload);
        if fields.u8()? != PROTOCOL_VERSION {
            return Err(Error::UnsupportedHandshake);
        }
        let server_version = fields.nul_bytes()?;
        let connection_id = fields.u32()?;
        let nonce_begin = fields.bytes(8)?;
        fields.bytes(1)?;
        let capabilities_low = fields.u16()?;
        if fields.is_empty() {
            return Err(Error::UnsupportedHandshake);
        }
        let collation = fields.u8()?;
        let status = Status::from_bits_retain(fields.u16()?);
        let capabilities_high = fields.u16()?;
        let capabilities = Capabilities::from_bits_retain(
            u32::from(capabilities_low) | u32::from(capabilities_high) << 16,
        );
        let nonce_bytes = fields.u8()?;
        fields.bytes(10)?;
        let nonce_end = fields.bytes(usize::from(nonce_bytes).saturating_sub(8).max(13))?;
        let auth_plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            fields.nul_bytes_or_rest()
        } else {
            crate::auth::NATIVE_PASSWORD.as_bytes()
        };
        let mut nonce = [0; NONCE_BYTES];
        for (to, from) in nonce.iter_mut().zip(nonce_begin.iter().chain(nonce_end)) {
            *to = *from;
        }
        Ok(Self {
            server_version,
            connection_id,
            nonce,
            capabilities,
            collation,
            status,
            auth_plugin,
        })
    }
}

/// The start of [`Login`], sent alone to begin TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslRequest {
    /// What the client will use.
    pub capabilities: Capabilities,
    /// The longest packet the client will send.
    pub max_packet_bytes: u32,
    /// The client's collation, its low byte.
    pub collation: u8,
}

impl SslRequest {
    /// Writes it.
    pub fn write(&self, writer: &mut PacketWriter) {
        writer.packet(|out| self.put(out));
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.capabilities.bits());
        out.put_u32(self.max_packet_bytes);
        out.push(self.collation);
        out.put_zeros(23);
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, Error> {
        let low = fields.rest().first_chunk::<2>().copied();
        if low.is_some_and(|low| {
            u32::from(u16::from_le_bytes(low)) & Capabilities::PROTOCOL_41.bits() == 0
        }) {
            return Err(Error::UnsupportedHandshake);
        }
        let request = Self {
            capabilities: Capabilities::from_bits_retain(fields.u32()?),
            max_packet_bytes: fields.u32()?,
            collation: fields.u8()?,
        };
        fields.bytes(23)?;
        Ok(request)
    }
}

/// What a client sends to log in: HandshakeResponse41.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// What the client will use; the connection has what [`Greeting`] offered of it.
    pub capabilities: Capabilities,
    /// The longest packet the client will send.
    pub max_packet_bytes: u32,
    /// The client's collation, its low byte.
    pub collation: u8,
    /// The user's name; empty for the anonymous user.
    pub user: &'a [u8],
    /// The response of `auth_plugin` to the nonce.
    pub auth_response: &'a [u8],
    /// The database to use, if one was named.
    pub database: Option<&'a [u8]>,
    /// The plugin that made it; `None` from clients without PLUGIN_AUTH, which use
    /// `mysql_native_password`.
    pub auth_plugin: Option<&'a [u8]>,
    /// What the client says about itself.
    pub attributes: Attributes<'a>,
    /// The zstd level for the server's packets, with ZSTD_COMPRESSION.
    pub zstd_level: Option<u8>,
}

/// The first packet of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPacket<'a> {
    /// TLS comes next, then [`Login`].
    SslRequest(SslRequest),
    /// The login.
    Login(Login<'a>),
}

impl<'a> FirstPacket<'a> {
    /// Reads the first packet, or the one after TLS has begun. A login of the protocol before MySQL
    /// 4.1 is [`Error::UnsupportedHandshake`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(payload);
        let request = SslRequest::take(&mut fields)?;
        if fields.is_empty() && request.capabilities.contains(Capabilities::SSL) {
            return Ok(Self::SslRequest(request));
        }
        let SslRequest {
            capabilities,
            max_packet_bytes,
            collation,
        } = request;
        let user = fields.nul_bytes()?;
        let auth_response = if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            fields.lenenc_bytes()?
        } else if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = fields.u8()?;
            fields.bytes(usize::from(length))?
        } else {
            fields.nul_bytes()?
        };
        let database = if capabilities.contains(Capabilities::CONNECT_WITH_DB) && !fields.is_empty()
        {
            Some(fields.nul_bytes_or_rest()).filter(|name| !name.is_empty())
        } else {
            None
        };
        let auth_plugin = (capabilities.contains(Capabilities::PLUGIN_AUTH) && !fields.is_empty())
            .then(|| fields.nul_bytes_or_rest());
        let attributes = Attributes::take(&mut fields, capabilities)?;
        let zstd_level = if capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            fields.u8().ok()
        } else {
            None
        };
        Ok(Self::Login(Login {
            capabilities,
            max_packet_bytes,
            collation,
            user,
            auth_response,
            database,
            auth_plugin,
            attributes,
            zstd_level,
        }))
    }
}

impl Login<'_> {
    /// Writes it. `database` and `auth_plugin` go out only with their capabilities.
    pub fn write(&self, writer: &mut PacketWriter) {
        let capabilities = self.capabilities;
        writer.packet(|out| {
            SslRequest {
                capabilities,
                max_packet_bytes: self.max_packet_bytes,
                collation: self.collation,
            }
            .put(out);
            out.put_nul_bytes(self.user);
            if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
                out.put_lenenc_bytes(self.auth_response);
            } else {
                let response = &self.auth_response[..self.auth_response.len().min(255)];
                out.push(response.len() as u8);
                out.extend_from_slice(response);
            }
            if capabilities.contains(Capabilities::CONNECT_WITH_DB) {
                out.put_nul_bytes(self.database.unwrap_or_default());
            }
            if capabilities.contains(Capabilities::PLUGIN_AUTH) {
                out.put_nul_bytes(self.auth_plugin.unwrap_or_default());
            }
            if capabilities.contains(Capabilities::CONNECT_ATTRS) {
                out.put_lenenc_bytes(self.attributes.bytes);
            }
            if let Some(level) = self.zstd_level {
                out.push(level);
            }
        });
    }
}

/// Connection attributes: names and values that clients tell of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Attributes that [`put_attribute`] appended to `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn take(fields: &mut Fields<'a>, capabilities: Capabilities) -> Result<Self, Error> {
        if !capabilities.contains(Capabilities::CONNECT_ATTRS) || fields.is_empty() {
            return Ok(Self::default());
        }
        Ok(Self {
            bytes: fields.lenenc_bytes()?,
        })
    }

    /// Each name and value, up to the first that is malformed.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut fields = Fields::new(self.bytes);
        std::iter::from_fn(move || Some((fields.lenenc_bytes().ok()?, fields.lenenc_bytes().ok()?)))
    }
}

/// Appends a name and a value for [`Attributes::new`].
pub fn put_attribute(out: &mut Vec<u8>, name: &str, value: &str) {
    out.put_lenenc_bytes(name.as_bytes());
    out.put_lenenc_bytes(value.as_bytes());
}

/// COM_CHANGE_USER: a login on a connection that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// The user's name.
    pub user: &'a [u8],
    /// The response of `auth_plugin` to the nonce of the greeting.
    pub auth_response: &'a [u8],
    /// The database to use; empty for none.
    pub database: &'a [u8],
    /// The client's collation, if it sent one.
    pub collation: Option<CollationId>,
    /// The plugin that made the response.
    pub auth_plugin: Option<&'a [u8]>,
    /// What the client says about itself.
    pub attributes: Attributes<'a>,
}

impl<'a> ChangeUser<'a> {
    pub(crate) fn take(fields: &mut Fields<'a>, capabilities: Capabilities) -> Result<Self, Error> {
        let user = fields.nul_bytes()?;
        let auth_response = if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = fields.u8()?;
            fields.bytes(usize::from(length))?
        } else {
            fields.nul_bytes()?
        };
        let database = fields.nul_bytes_or_rest();
        let collation = if fields.is_empty() {
            None
        } else {
            Some(fields.u16()?)
        };
        let auth_plugin = (capabilities.contains(Capabilities::PLUGIN_AUTH) && !fields.is_empty())
            .then(|| fields.nul_bytes_or_rest());
        let attributes = Attributes::take(fields, capabilities)?;
        Ok(Self {
            user,
            auth_response,
            database,
            collation,
            auth_plugin,
            attributes,
        })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        out.put_nul_bytes(self.user);
        let response = &self.auth_response[..self.auth_response.len().min(255)];
        out.push(response.len() as u8);
        out.extend_from_slice(response);
        out.put_nul_bytes(self.database);
        out.put_u16(self.collation.unwrap_or(crate::codes::UTF8MB4_GENERAL_CI));
        if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            out.put_nul_bytes(self.auth_plugin.unwrap_or_default());
        }
        if capabilities.contains(Capabilities::CONNECT_ATTRS) {
            out.put_lenenc_bytes(self.attributes.bytes);
        }
    }
}

/// What a server may send between a login and its OK or ERR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthStep<'a> {
    /// Answer by another plugin: the next packet of the client is that plugin's response, bare.
    Switch {
        /// The plugin.
        plugin: &'a [u8],
        /// Its nonce, without the zero byte that follows it on the wire.
        nonce: &'a [u8],
    },
    /// Bytes from the plugin at the server to the one at the client.
    More(&'a [u8]),
}

impl<'a> AuthStep<'a> {
    const SWITCH: u8 = 0xFE;
    const MORE: u8 = 0x01;

    /// Writes it.
    pub fn write(&self, writer: &mut PacketWriter) {
        writer.packet(|out| match self {
            Self::Switch { plugin, nonce } => {
                out.push(Self::SWITCH);
                out.put_nul_bytes(plugin);
                out.put_nul_bytes(nonce);
            }
            Self::More(bytes) => {
                out.push(Self::MORE);
                out.extend_from_slice(bytes);
            }
        });
    }

    /// Reads it; nothing if the packet is an OK or an ERR.
    pub fn parse(payload: &'a [u8]) -> Result<Option<Self>, Error> {
        let mut fields = Fields::new(payload);
        match fields.u8()? {
            // The request before 4.1 is the byte alone: the old password hash.
            Self::SWITCH if fields.is_empty() => Err(Error::UnsupportedHandshake),
            Self::SWITCH => {
                let plugin = fields.nul_bytes_or_rest();
                let nonce = fields.take_rest();
                Ok(Some(Self::Switch {
                    plugin,
                    nonce: nonce.strip_suffix(&[0]).unwrap_or(nonce),
                }))
            }
            Self::MORE => Ok(Some(Self::More(fields.take_rest()))),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(write: impl FnOnce(&mut PacketWriter)) -> Vec<u8> {
        let mut writer = PacketWriter::new();
        write(&mut writer);
        writer.bytes()[4..].to_vec()
    }

    /// "Protocol::HandshakeV10" in the protocol documentation: a server 5.5.2-m2.
    #[test]
    fn the_documented_greeting_is_read() {
        let mut bytes =
            b"\x0a5.5.2-m2\x00\x0b\x00\x00\x00dvH@I-CJ\x00\xff\xf7\x08\x02\x00".to_vec();
        bytes.extend_from_slice(&[0; 13]);
        bytes.extend_from_slice(b"*4d|cZwk4^]:\x00");
        let greeting = Greeting::parse(&bytes).unwrap();
        assert_eq!(greeting.server_version, b"5.5.2-m2");
        assert_eq!(greeting.connection_id, 11);
        assert_eq!(&greeting.nonce, b"dvH@I-CJ*4d|cZwk4^]:");
        assert_eq!(greeting.capabilities.bits(), 0xF7FF);
        assert_eq!(
            greeting.auth_plugin,
            crate::auth::NATIVE_PASSWORD.as_bytes()
        );
    }

    #[test]
    fn a_greeting_reads_as_it_was_written() {
        let greeting = Greeting {
            server_version: b"8.4.0-Porpoise",
            connection_id: u32::MAX,
            nonce: crate::auth::nonce(),
            capabilities: Capabilities::all(),
            collation: 255,
            status: Status::AUTOCOMMIT,
            auth_plugin: crate::auth::CACHING_SHA2_PASSWORD.as_bytes(),
        };
        let bytes = payload(|writer| greeting.write(writer));
        assert_eq!(Greeting::parse(&bytes), Ok(greeting));
    }

    /// "Protocol::HandshakeResponse41" in the protocol documentation: user pam, database test.
    #[test]
    fn the_documented_login_is_read() {
        let mut bytes = vec![0x8d, 0xa6, 0x0f, 0x00, 0, 0, 0, 0x01, 0x08];
        bytes.extend_from_slice(&[0; 23]);
        bytes.extend_from_slice(b"pam\x00\x14");
        bytes.extend_from_slice(&[0xab; 20]);
        bytes.extend_from_slice(b"test\x00mysql_native_password\x00");
        let Ok(FirstPacket::Login(login)) = FirstPacket::parse(&bytes) else {
            panic!("not a login");
        };
        assert_eq!(login.user, b"pam");
        assert_eq!(login.auth_response, [0xab; 20]);
        assert_eq!(login.database, Some(&b"test"[..]));
        assert_eq!(login.auth_plugin, Some(&b"mysql_native_password"[..]));
        assert_eq!(login.max_packet_bytes, 1 << 24);
    }

    #[test]
    fn a_login_reads_as_it_was_written() {
        let mut attributes = Vec::new();
        put_attribute(&mut attributes, "_client_name", "porpoise");
        put_attribute(&mut attributes, "_pid", "1");
        for lenenc in [true, false] {
            let mut capabilities = Capabilities::all() - Capabilities::SSL;
            capabilities.set(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA, lenenc);
            let login = Login {
                capabilities,
                max_packet_bytes: 1 << 30,
                collation: 45,
                user: "jörg".as_bytes(),
                auth_response: &[7; 32],
                database: Some(b"shop"),
                auth_plugin: Some(b"caching_sha2_password"),
                attributes: Attributes::new(&attributes),
                zstd_level: Some(3),
            };
            let bytes = payload(|writer| login.write(writer));
            assert_eq!(FirstPacket::parse(&bytes), Ok(FirstPacket::Login(login)));
            assert_eq!(
                login.attributes.iter().collect::<Vec<_>>(),
                [(&b"_client_name"[..], &b"porpoise"[..]), (b"_pid", b"1")]
            );
        }
    }

    #[test]
    fn a_request_for_tls_is_told_from_a_login() {
        let request = SslRequest {
            capabilities: Capabilities::PROTOCOL_41 | Capabilities::SSL,
            max_packet_bytes: 1 << 24,
            collation: 45,
        };
        let bytes = payload(|writer| request.write(writer));
        assert_eq!(bytes.len(), 32);
        assert_eq!(
            FirstPacket::parse(&bytes),
            Ok(FirstPacket::SslRequest(request))
        );
    }

    /// "Protocol::HandshakeResponse320" in the protocol documentation: user old.
    #[test]
    fn a_login_of_before_4_1_is_named_as_such() {
        let bytes = b"\x85\x24\x00\x00\x00old\x00GGBXHA@B\x00";
        assert_eq!(FirstPacket::parse(bytes), Err(Error::UnsupportedHandshake));
    }

    #[test]
    fn a_switch_of_plugins_reads_as_it_was_written() {
        for step in [
            AuthStep::Switch {
                plugin: b"mysql_native_password",
                nonce: b"01234567890123456789",
            },
            AuthStep::More(&[4]),
        ] {
            let bytes = payload(|writer| step.write(writer));
            assert_eq!(AuthStep::parse(&bytes), Ok(Some(step)));
        }
        assert_eq!(AuthStep::parse(&[0xFE]), Err(Error::UnsupportedHandshake));
        assert_eq!(AuthStep::parse(&[0, 0, 0, 2, 0, 0, 0]), Ok(None));
    }

    proptest::proptest! {
        #[test]
        fn random_handshakes_never_panic(
            mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..120),
            protocol_41 in proptest::bool::ANY,
        ) {
            let _ = Greeting::parse(&bytes);
            let _ = AuthStep::parse(&bytes);
            if let [_, second, ..] = &mut bytes[..] && protocol_41 {
                *second |= 0x02;
            }
            if let Ok(FirstPacket::Login(login)) = FirstPacket::parse(&bytes) {
                login.attributes.iter().for_each(drop);
            }
        }
    }
}
