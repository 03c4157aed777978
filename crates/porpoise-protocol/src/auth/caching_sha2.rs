//! `caching_sha2_password`: a salted slow hash on disk, a fast one in memory for accounts that have
//! logged in.
//!
//! ```text
//! authentication_string   $A$005$ │ salt, 20 bytes │ digest, 43 letters
//!                            └ thousands of rounds, hexadecimal: SHA-crypt with SHA-256
//! ```

use super::{constant_time_eq, xor};
use sha2::{Digest, Sha256};

/// The plugin's byte that says the fast response was right; OK follows.
pub const FAST_AUTH_SUCCESS: u8 = 3;
/// The plugin's byte that asks for the password itself.
pub const FULL_AUTH_NEEDED: u8 = 4;
/// The client's byte that asks for the server's public key.
pub const PUBLIC_KEY_REQUEST: u8 = 2;

/// The longest password MySQL accepts here.
pub const PASSWORD_BYTES_MAX: usize = 256;

const PREFIX: &[u8] = b"$A$";
const SALT_BYTES: usize = 20;
const DIGEST_LETTERS: usize = 43;
const ROUNDS_UNIT: u32 = 1000;
const ROUNDS_DEFAULT: u32 = 5000;
const ROUNDS_UNITS_MAX: u32 = 0xFFF;

/// The client's response to a nonce.
pub fn scramble(password: &[u8], nonce: &[u8]) -> [u8; 32] {
    let once_hashed = sha256(&[password]);
    let twice_hashed = sha256(&[&once_hashed]);
    xor(once_hashed, &sha256(&[&twice_hashed, nonce]))
}

/// The password as it goes over a secure channel.
pub fn cleartext_packet(password: &[u8]) -> Vec<u8> {
    let mut packet = password.to_vec();
    packet.push(0);
    packet
}

/// What the server keeps in memory of an account that has logged in: SHA256(SHA256(password)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cached([u8; 32]);

impl std::fmt::Debug for Cached {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Cached(..)")
    }
}

impl Cached {
    /// Of a password.
    pub fn of(password: &[u8]) -> Self {
        Self(sha256(&[&sha256(&[password])]))
    }

    /// Takes as long to verify as any other hash, for an account that has not logged in yet. The
    /// result means nothing.
    pub(crate) const PLACEHOLDER: Self = Self([0; 32]);

    /// Whether `response` to `nonce` was made of the password.
    pub fn verify(&self, nonce: &[u8], response: &[u8]) -> bool {
        let Ok(response) = <[u8; 32]>::try_from(response) else {
            return false;
        };
        let once_hashed = xor(response, &sha256(&[&self.0, nonce]));
        constant_time_eq(&sha256(&[&once_hashed]), &self.0)
    }
}

/// What the server keeps on disk.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    rounds_units: u32,
    salt: [u8; SALT_BYTES],
    digest: [u8; DIGEST_LETTERS],
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Stored(..)")
    }
}

impl Stored {
    /// Of a password, with a fresh salt.
    pub fn of(password: &[u8]) -> Self {
        Self::with_salt(
            password,
            super::nonce().map(|byte| if byte == b'$' { b'%' } else { byte }),
        )
    }

    /// Takes as long to verify as any other hash, for an account without a password. The result
    /// means nothing.
    pub(crate) const PLACEHOLDER: Self = Self {
        rounds_units: ROUNDS_DEFAULT / ROUNDS_UNIT,
        salt: [0; SALT_BYTES],
        digest: [0; DIGEST_LETTERS],
    };

    /// Of no password that anybody has.
    pub fn decoy() -> Self {
        Self {
            rounds_units: ROUNDS_DEFAULT / ROUNDS_UNIT,
            salt: super::nonce(),
            digest: super::random().map(|byte: u8| SHA_CRYPT_LETTERS[usize::from(byte & 63)]),
        }
    }

    fn with_salt(password: &[u8], salt: [u8; SALT_BYTES]) -> Self {
        Self {
            rounds_units: ROUNDS_DEFAULT / ROUNDS_UNIT,
            salt,
            digest: sha_crypt(password, &salt, ROUNDS_DEFAULT),
        }
    }

    /// With MySQL's own number of rounds.
    pub(super) fn of_parts(salt: [u8; SALT_BYTES], digest: [u8; DIGEST_LETTERS]) -> Self {
        Self {
            rounds_units: ROUNDS_DEFAULT / ROUNDS_UNIT,
            salt,
            digest,
        }
    }

    /// The salt and the digest.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.salt, &self.digest)
    }

    /// From `authentication_string`, whose salt may be any bytes.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (rounds, rest) = text.strip_prefix(PREFIX)?.split_first_chunk::<3>()?;
        let rounds_units = u32::from_str_radix(std::str::from_utf8(rounds).ok()?, 16).ok()?;
        let (salt, digest) = rest.strip_prefix(b"$")?.split_first_chunk::<SALT_BYTES>()?;
        Some(Self {
            rounds_units: Some(rounds_units)
                .filter(|units| (1..=ROUNDS_UNITS_MAX).contains(units))?,
            salt: *salt,
            digest: digest.try_into().ok()?,
        })
    }

    /// As `authentication_string` keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = PREFIX.to_vec();
        text.extend_from_slice(format!("{:03X}$", self.rounds_units).as_bytes());
        text.extend_from_slice(&self.salt);
        text.extend_from_slice(&self.digest);
        text
    }

    /// Whether this is the password. Takes some milliseconds, by design.
    pub fn verify(&self, password: &[u8]) -> bool {
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let digest = sha_crypt(password, &self.salt, self.rounds_units * ROUNDS_UNIT);
        constant_time_eq(&digest, &self.digest)
    }
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// SHA-crypt with SHA-256, by Ulrich Drepper's specification, except that the salt isn't cut to 16
/// bytes.
fn sha_crypt(password: &[u8], salt: &[u8], rounds: u32) -> [u8; DIGEST_LETTERS] {
    let repeat = |block: &[u8; 32], length: usize| -> Vec<u8> {
        block.iter().copied().cycle().take(length).collect()
    };

    let b = sha256(&[password, salt, password]);
    let mut hash = Sha256::new();
    hash.update(password);
    hash.update(salt);
    hash.update(repeat(&b, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 != 0 {
            hash.update(b);
        } else {
            hash.update(password);
        }
        bits >>= 1;
    }
    let mut a: [u8; 32] = hash.finalize().into();

    let mut hash = Sha256::new();
    for _ in 0..password.len() {
        hash.update(password);
    }
    let p = repeat(&hash.finalize().into(), password.len());

    let mut hash = Sha256::new();
    for _ in 0..16 + usize::from(a[0]) {
        hash.update(salt);
    }
    let s = repeat(&hash.finalize().into(), salt.len());

    for round in 0..rounds {
        let odd = round % 2 != 0;
        let mut hash = Sha256::new();
        hash.update(if odd { &p[..] } else { &a[..] });
        if round % 3 != 0 {
            hash.update(&s);
        }
        if round % 7 != 0 {
            hash.update(&p);
        }
        hash.update(if odd { &a[..] } else { &p[..] });
        a = hash.finalize().into();
    }
    letters(&a)
}

const SHA_CRYPT_LETTERS: &[u8; 64] =
    b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// SHA-crypt's own order of the digest's bytes and its own base 64.
fn letters(digest: &[u8; 32]) -> [u8; DIGEST_LETTERS] {
    const ORDER: [[usize; 3]; 10] = [
        [0, 10, 20],
        [21, 1, 11],
        [12, 22, 2],
        [3, 13, 23],
        [24, 4, 14],
        [15, 25, 5],
        [6, 16, 26],
        [27, 7, 17],
        [18, 28, 8],
        [9, 19, 29],
    ];
    let mut out = [0; DIGEST_LETTERS];
    let mut at = 0;
    let mut put = |mut bits: u32, letters: usize| {
        for _ in 0..letters {
            out[at] = SHA_CRYPT_LETTERS[(bits & 63) as usize];
            bits >>= 6;
            at += 1;
        }
    };
    for [a, b, c] in ORDER {
        put(u32::from_be_bytes([0, digest[a], digest[b], digest[c]]), 4);
    }
    put(u32::from_be_bytes([0, 0, digest[31], digest[30]]), 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    /// Two digests of crypt(3); the first is in the specification too.
    #[test]
    fn sha_crypt_keeps_to_its_specification() {
        for (password, salt, rounds, digest) in [
            (
                "Hello world!",
                "saltstring",
                5000,
                "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            ),
            (
                "we have a short salt string but not a short password",
                "short",
                77777,
                "JiO1O3ZpDAxGJeaDIuqCoEFysAe1mZNJRs3pw0KQRd/",
            ),
        ] {
            assert_eq!(
                sha_crypt(password.as_bytes(), salt.as_bytes(), rounds),
                digest.as_bytes()
            );
        }
    }

    /// Made by MySQL 8: `CREATE USER … IDENTIFIED BY …`, then `HEX(authentication_string)`.
    #[test]
    fn hashes_that_mysql_made_are_verified() {
        for (password, stored) in [
            (
                "foobar",
                "24412430303524031A69251C34295C4B35167C7F1E5A7B63091349503974624D34504B5A424679354856336868686F52485A736E4A733368786E427575516C73446469496537",
            ),
            (
                "testpassword123",
                "24412430303524393D02673221785B414A4E5F02073711301659116B446B76753345617A4D7530635548526D3678746F6B75564835553334346932572E332F704C4856477131",
            ),
        ] {
            let bytes = bytes(stored);
            let stored = Stored::parse(&bytes).unwrap();
            assert!(stored.verify(password.as_bytes()));
            assert!(!stored.verify(b"wrong"));
            assert_eq!(stored.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_new_hash_verifies_and_its_salt_differs() {
        let (one, other) = (Stored::of(b"secret"), Stored::of(b"secret"));
        assert_ne!(one, other);
        assert!(one.verify(b"secret"));
        assert_eq!(Stored::parse(&one.to_bytes()), Some(one));
        for text in [
            &b""[..],
            b"$A$005$short",
            b"$A$000$",
            b"$B$005$",
            &[b'$'; 70],
        ] {
            assert_eq!(Stored::parse(text), None);
        }
    }

    #[test]
    fn only_the_password_answers_the_nonce() {
        let nonce = super::super::nonce();
        let cached = Cached::of(b"secret");
        assert!(cached.verify(&nonce, &scramble(b"secret", &nonce)));
        assert!(!cached.verify(&nonce, &scramble(b"other", &nonce)));
        assert!(!cached.verify(&nonce, b""));
    }
}
