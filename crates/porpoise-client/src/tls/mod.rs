//! TLS: whether to ask for it, how far to trust the server, and the stream over it.
//!
//! ```text
//!   greeting with SSL ──► TlsOptions::is_asked ──► SslRequest ──► handshake ──► login, over the TLS stream
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | `config` | what the options and their files come to; kept, so that the next connection resumes a session |
//! | `verify` | what is asked of a server's certificate |
//! | `session` | the handshake, and the stream afterwards |
//!
//! | [`TlsMode`] | encrypted | the certificate |
//! | --- | --- | --- |
//! | `Disabled` | never | |
//! | `Preferred`, the default | if the server offers it, over TCP | is anyone's; with a CA named and the mode not, as `VerifyCa` |
//! | `Required` | or there is no connection, over TCP and Unix sockets | is anyone's |
//! | `VerifyCa` | as `Required` | is issued by a CA that is trusted |
//! | `VerifyIdentity` | as `Required` | and for the host that is connected to |
//!
//! Shared memory and embedded databases are never encrypted: nobody else reads along. A connection
//! within this machine that asks for the loopback fast path goes without TLS unless the mode is
//! `Required` or stricter; then it stays on TCP.
//!
//! Source: MySQL 8.4 Reference Manual, 8.3.1 "Configuring MySQL to Use Encrypted Connections" and
//! 6.2.3 "Command Options for Connecting to the Server".

mod config;
mod session;
mod verify;

use porpoise_transport::Stream;
use std::path::PathBuf;

pub(crate) use session::start;

/// Whether connections are encrypted, and how far the server is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsMode {
    /// Not encrypted.
    Disabled,
    /// Encrypted if the server offers it.
    Preferred,
    /// Encrypted, or there is no connection.
    Required,
    /// And the server's certificate comes from a CA that is trusted.
    VerifyCa,
    /// And it is made out for the host.
    VerifyIdentity,
}

impl TlsMode {
    /// MySQL's names.
    pub const NAMES: [(&'static str, TlsMode); 5] = [
        ("DISABLED", Self::Disabled),
        ("PREFERRED", Self::Preferred),
        ("REQUIRED", Self::Required),
        ("VERIFY_CA", Self::VerifyCa),
        ("VERIFY_IDENTITY", Self::VerifyIdentity),
    ];

    /// By MySQL's name, in letters of any case.
    pub fn named(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        let (_, mode) = names.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(*mode)
    }
}

/// What to encrypt with. Lists are written as the server's variables of those names have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlsOptions {
    /// Whether, and how far to trust; nothing for `Preferred`.
    pub mode: Option<TlsMode>,
    /// A file of certificates of the CAs that are trusted.
    pub ca: Option<PathBuf>,
    /// A folder of such files.
    pub ca_path: Option<PathBuf>,
    /// A file with this client's certificate, and those between it and a CA.
    pub cert: Option<PathBuf>,
    /// The file of its key.
    pub key: Option<PathBuf>,
    /// A file of certificates that were revoked.
    pub crl: Option<PathBuf>,
    /// A folder of such files.
    pub crl_path: Option<PathBuf>,
    /// Ciphers for TLS 1.2, by OpenSSL's names, with colons between them.
    pub cipher: Option<String>,
    /// Ciphers for TLS 1.3.
    pub ciphersuites: Option<String>,
    /// Protocols, with commas between them: `TLSv1.2`, `TLSv1.3`.
    pub versions: Option<String>,
    /// Where there are any, the server's certificate has one of these hashes: SHA-1, SHA-256,
    /// SHA-384 or SHA-512 by the length, in hexadecimal digits, with or without colons.
    pub fingerprints: Vec<String>,
    /// Whether a certificate without a CA named is trusted if one of the system's has issued it.
    pub system_cas: bool,
    /// Whether no session of an earlier connection is resumed, so that each has a full handshake.
    pub always_full: bool,
}

/// What a connection is encrypted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, by OpenSSL's name.
    pub cipher: &'static str,
    /// Whether it goes on with the keys of an earlier connection.
    pub is_resumed: bool,
    /// The server's certificate, DER.
    pub certificate: Vec<u8>,
}

impl TlsOptions {
    /// The mode in effect.
    pub fn mode(&self) -> TlsMode {
        self.mode.unwrap_or(TlsMode::Preferred)
    }

    /// Whether a connection that isn't encrypted won't do.
    pub fn is_required(&self) -> bool {
        self.mode() >= TlsMode::Required
    }

    /// Whether the server's certificate is looked at.
    fn verifies(&self) -> bool {
        let has_ca = self.ca.is_some() || self.ca_path.is_some();
        self.mode() >= TlsMode::VerifyCa || self.mode.is_none() && has_ca
    }

    /// Whether a connection over `stream` is to be encrypted, if its server can.
    pub(crate) fn is_asked(&self, stream: &dyn Stream, fast_path: bool) -> bool {
        let can_move = fast_path && stream.is_local();
        match self.mode() {
            TlsMode::Disabled => false,
            TlsMode::Preferred => stream.is_socket() && !stream.is_private() && !can_move,
            _ => stream.is_socket(),
        }
    }
}
