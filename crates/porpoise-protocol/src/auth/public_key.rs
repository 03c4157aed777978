//! The server's RSA key, under which a password crosses a channel that others can read.
//!
//! The client asks for the key, XORs the password and its zero byte with the nonce, repeated, and
//! encrypts that with RSA-OAEP (SHA-1).

use rsa::pkcs8::{DecodePublicKey, EncodePublicKey};
use rsa::rand_core::{CryptoRng, RngCore};
use rsa::{Oaep, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;

use super::{pem, xor_repeated};
use crate::Error;

const KEY_BITS: usize = 2048;

/// How many bytes an encrypted password has.
pub const ENCRYPTED_BYTES: usize = KEY_BITS / 8;

/// The operating system's random numbers, as `rsa` asks for them.
struct SystemRandom;

impl RngCore for SystemRandom {
    fn next_u32(&mut self) -> u32 {
        rsa::rand_core::impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        rsa::rand_core::impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system has random numbers");
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rsa::rand_core::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for SystemRandom {}

/// A private key and its public half, as clients are sent it.
pub struct ServerKey {
    private: RsaPrivateKey,
    public_pem: String,
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ServerKey").finish_non_exhaustive()
    }
}

impl ServerKey {
    /// A fresh key. Takes from a tenth of a second to several: not for a thread that others wait
    /// for.
    pub fn generate() -> Result<Self, Error> {
        let private =
            RsaPrivateKey::new(&mut SystemRandom, KEY_BITS).map_err(|_| Error::PublicKey)?;
        let public_der = private
            .to_public_key()
            .to_public_key_der()
            .map_err(|_| Error::PublicKey)?;
        Ok(Self {
            private,
            public_pem: pem::encode(public_der.as_bytes()),
        })
    }

    /// The public key, in PEM.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// The password that [`encrypt`] made `encrypted` of.
    pub fn decrypt(&self, encrypted: &[u8], nonce: &[u8]) -> Result<Vec<u8>, Error> {
        let mut password = self
            .private
            .decrypt_blinded(&mut SystemRandom, Oaep::new::<Sha1>(), encrypted)
            .map_err(|_| Error::Malformed("a password that the public key didn't encrypt"))?;
        xor_repeated(&mut password, nonce);
        if password.pop() != Some(0) {
            return Err(Error::Malformed("a password has no end"));
        }
        Ok(password)
    }
}

/// A password for the owner of the key in `public_pem`.
pub fn encrypt(password: &[u8], nonce: &[u8], public_pem: &[u8]) -> Result<Vec<u8>, Error> {
    let pem = std::str::from_utf8(public_pem).map_err(|_| Error::PublicKey)?;
    let der = pem::decode(pem).ok_or(Error::PublicKey)?;
    let key = RsaPublicKey::from_public_key_der(&der).map_err(|_| Error::PublicKey)?;
    let mut packet = super::caching_sha2::cleartext_packet(password);
    xor_repeated(&mut packet, nonce);
    key.encrypt(&mut SystemRandom, Oaep::new::<Sha1>(), &packet)
        .map_err(|_| Error::PublicKey)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_reads_what_the_client_encrypted() {
        let key = ServerKey::generate().unwrap();
        let nonce = super::super::nonce();
        let encrypted = encrypt(
            b"a password longer than the nonce",
            &nonce,
            key.public_pem().as_bytes(),
        )
        .unwrap();
        assert_eq!(encrypted.len(), KEY_BITS / 8);
        assert_eq!(
            key.decrypt(&encrypted, &nonce).unwrap(),
            b"a password longer than the nonce"
        );
        assert!(key.decrypt(&encrypted[1..], &nonce).is_err());
        assert!(encrypt(b"x", &nonce, b"no key").is_err());
    }
}
