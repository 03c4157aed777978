//! Authentication: the password plugins, both ends.
//!
//! | plugin | the server keeps | the client answers the nonce with |
//! | --- | --- | --- |
//! | [`native`] | SHA1(SHA1(password)) | SHA1(password) ⊕ SHA1(nonce, SHA1(SHA1(password))) |
//! | [`caching_sha2`] | a salted, slow hash; in memory, SHA256(SHA256(password)) | SHA256(password) ⊕ SHA256(SHA256(SHA256(password)), nonce) |
//! | [`sha256`] | a salted, slow hash | the password itself |
//!
//! `caching_sha2_password` can check that response only once it has seen the password: the first
//! login of an account after a start sends the password itself, over TLS or a Unix socket as it is,
//! otherwise under the server's [`rsa`](public_key) key. [`Exchange`] is the server's side of all
//! that, [`respond`] begins the client's.

pub mod caching_sha2;
mod exchange;
pub mod native;
mod pem;
pub mod public_key;
pub mod sha256;

pub use exchange::{AuthOutcome, Credential, Exchange, accept};

use crate::Error;
use crate::handshake::NONCE_BYTES;

/// `mysql_native_password`.
pub const NATIVE_PASSWORD: &str = "mysql_native_password";
/// `caching_sha2_password`, the default of MySQL 8.
pub const CACHING_SHA2_PASSWORD: &str = "caching_sha2_password";
/// [`sha256`]'s name.
pub const SHA256_PASSWORD: &str = "sha256_password";
/// `mysql_clear_password`: the password and a zero byte. Only for a channel that nobody else can
/// read.
pub const CLEAR_PASSWORD: &str = "mysql_clear_password";

/// A fresh nonce: random bytes that are printable ASCII, as some clients treat it as a string.
pub fn nonce() -> [u8; NONCE_BYTES] {
    let mut nonce = random::<NONCE_BYTES>();
    const FIRST: u8 = b'!';
    const LETTERS: u8 = b'~' - FIRST + 1;
    for byte in &mut nonce {
        *byte = FIRST + *byte % LETTERS;
    }
    nonce
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}

/// A client's response to a nonce, by the plugin that the server named. The response to a nonce
/// with an empty password is empty.
///
/// # Errors
/// [`Error::UnknownAuthPlugin`], and [`Error::InsecureChannel`] for the bare password over a
/// channel that isn't `secure`.
pub fn respond(
    plugin: &[u8],
    password: &[u8],
    nonce: &[u8],
    secure: bool,
) -> Result<Vec<u8>, Error> {
    let plugin = std::str::from_utf8(plugin).unwrap_or_default();
    match plugin {
        NATIVE_PASSWORD | CACHING_SHA2_PASSWORD if password.is_empty() => Ok(Vec::new()),
        NATIVE_PASSWORD => Ok(native::scramble(password, nonce).to_vec()),
        CACHING_SHA2_PASSWORD => Ok(caching_sha2::scramble(password, nonce).to_vec()),
        CLEAR_PASSWORD if secure => Ok(caching_sha2::cleartext_packet(password)),
        CLEAR_PASSWORD => Err(Error::InsecureChannel),
        _ => Err(Error::UnknownAuthPlugin),
    }
}

/// Compares secrets in a time that doesn't depend on where they differ.
pub(crate) fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let differing = left
        .iter()
        .zip(right)
        .fold(0, |differing, (left, right)| differing | (left ^ right));
    std::hint::black_box(differing) == 0
}

pub(crate) fn xor<const N: usize>(mut left: [u8; N], right: &[u8; N]) -> [u8; N] {
    for (left, right) in left.iter_mut().zip(right) {
        *left ^= right;
    }
    left
}

/// XORs with `pad`, repeated as often as needed.
fn xor_repeated(bytes: &mut [u8], pad: &[u8]) {
    for (byte, pad) in bytes.iter_mut().zip(pad.iter().cycle()) {
        *byte ^= pad;
    }
}
