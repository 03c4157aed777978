//! `mysql_native_password`: two rounds of SHA-1, no salt. Old, and still what many clients response
//! first.

use super::{constant_time_eq, xor};
use sha1::{Digest, Sha1};

/// The length of a response to a nonce.
pub const RESPONSE_BYTES: usize = 20;

/// What the server keeps: SHA1(SHA1(password)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stored(pub [u8; 20]);

impl std::fmt::Debug for Stored {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Stored(..)")
    }
}

impl Stored {
    /// Of a password.
    pub fn of(password: &[u8]) -> Self {
        Self(sha1(&[&sha1(&[password])]))
    }

    /// Of no password that anybody has.
    pub fn decoy() -> Self {
        Self(super::random())
    }

    /// Takes as long to verify as any other hash, for an account without a password. The result
    /// means nothing.
    pub(crate) const PLACEHOLDER: Self = Self([0; 20]);

    /// From `authentication_string`: a star and forty hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('*')?.as_bytes();
        let mut hash = [0; 20];
        if digits.len() != 2 * hash.len() {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(digits.as_chunks::<2>().0) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(Self(hash))
    }

    /// As `authentication_string` keeps it.
    pub fn to_text(&self) -> String {
        let mut text = String::from("*");
        for byte in self.0 {
            text.push_str(&format!("{byte:02X}"));
        }
        text
    }

    /// Whether `response` to `nonce` was made of the password.
    pub fn verify(&self, nonce: &[u8], response: &[u8]) -> bool {
        let Ok(response) = <[u8; 20]>::try_from(response) else {
            return false;
        };
        let once_hashed = xor(response, &sha1(&[nonce, &self.0]));
        constant_time_eq(&sha1(&[&once_hashed]), &self.0)
    }
}

/// The client's response to a nonce.
pub fn scramble(password: &[u8], nonce: &[u8]) -> [u8; 20] {
    let once_hashed = sha1(&[password]);
    let twice_hashed = sha1(&[&once_hashed]);
    xor(once_hashed, &sha1(&[nonce, &twice_hashed]))
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hash = Sha1::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SELECT PASSWORD('mypass')` in the MySQL 5.7 manual.
    #[test]
    fn the_manuals_hash_is_made_and_read() {
        let stored = Stored::of(b"mypass");
        assert_eq!(
            stored.to_text(),
            "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4"
        );
        assert_eq!(Stored::parse(&stored.to_text()), Some(stored));
        assert_eq!(Stored::parse("*6C89"), None);
        assert_eq!(
            Stored::parse("*ZZ8989366EAF75BB670AD8EA7A7FC1176A95CEF4"),
            None
        );
    }

    #[test]
    fn only_the_password_answers_the_nonce() {
        let nonce = super::super::nonce();
        let stored = Stored::of(b"secret");
        assert!(stored.verify(&nonce, &scramble(b"secret", &nonce)));
        assert!(!stored.verify(&nonce, &scramble(b"Secret", &nonce)));
        assert!(!stored.verify(b"another nonce", &scramble(b"secret", &nonce)));
        assert!(!stored.verify(&nonce, b""));
    }
}
