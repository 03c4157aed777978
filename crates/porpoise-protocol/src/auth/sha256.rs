//! `sha256_password`, deprecated: the slow hash of [`caching_sha2`](super::caching_sha2), and
//! nothing in memory. Each log-in sends the password, as it is or under the server's key.
//!
//! ```text
//! authentication_string   $5$ │ salt, 20 bytes │ $ │ digest, 43 letters
//! ```
//!
//! MySQL 8.4 manual, 8.4.1.3 (SHA-256 Pluggable Authentication).

use super::caching_sha2;

/// What a client sends that wants the public key.
pub const PUBLIC_KEY_REQUEST: u8 = 1;

const PREFIX: &[u8] = b"$5$";

/// What the server keeps on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored(caching_sha2::Stored);

impl Stored {
    /// Of a password, with a fresh salt.
    pub fn of(password: &[u8]) -> Stored {
        Stored(caching_sha2::Stored::of(password))
    }

    /// Takes as long to verify as any other hash, for an account without a password. The result
    /// means nothing.
    pub(crate) const PLACEHOLDER: Stored = Stored(caching_sha2::Stored::PLACEHOLDER);

    /// Of no password that anybody has.
    pub fn decoy() -> Stored {
        Stored(caching_sha2::Stored::decoy())
    }

    /// From `authentication_string`.
    pub fn parse(text: &[u8]) -> Option<Stored> {
        let rest = text.strip_prefix(PREFIX)?;
        let (salt, rest) = rest.split_first_chunk()?;
        let digest = rest.strip_prefix(b"$")?.try_into().ok()?;
        Some(Stored(caching_sha2::Stored::of_parts(*salt, digest)))
    }

    /// As `authentication_string` keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (salt, digest) = self.0.parts();
        [PREFIX, salt, b"$", digest].concat()
    }

    /// Whether this is the password. Takes some milliseconds, by design.
    pub fn verify(&self, password: &[u8]) -> bool {
        self.0.verify(password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_back_as_it_was_written() {
        let stored = Stored::of(b"secret");
        let text = stored.to_bytes();
        assert_eq!(text.len(), 3 + 20 + 1 + 43);
        assert_eq!(Stored::parse(&text), Some(stored.clone()));
        assert!(stored.verify(b"secret") && !stored.verify(b"guess"));
        assert_eq!(Stored::parse(&text[1..]), None);
        assert_eq!(Stored::parse(&text[..60]), None);
    }
}
