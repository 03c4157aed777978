//! The server's side of a login, from the client's first answer to yes or no.
//!
//! ```text
//! first answer ──► other plugin than the account's? ──► Switch, its answer
//!                                  │
//!        native ◄──────────────────┴───────────────► caching_sha2
//!        right or wrong                               cached and right? ──► "3", accepted
//!                                                     "4": the password, clear or under the public key
//!                                                     right or wrong by the slow hash
//! ```

use super::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, caching_sha2, native, public_key::ServerKey};
use crate::Error;
use crate::frame::PacketWriter;
use crate::handshake::{AuthStep, NONCE_BYTES};

/// What the server keeps of an account's password.
#[derive(Clone, Debug)]
pub enum Credential {
    /// `mysql_native_password`; nothing if the password is empty.
    Native(Option<native::Stored>),
    /// `caching_sha2_password`; nothing if the password is empty.
    CachingSha2 {
        /// The slow hash.
        stored: Option<caching_sha2::Stored>,
        /// The fast one, if the account has logged in before.
        cached: Option<caching_sha2::Cached>,
    },
}

impl Credential {
    /// The plugin that checks it.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::Native(_) => NATIVE_PASSWORD,
            Self::CachingSha2 { .. } => CACHING_SHA2_PASSWORD,
        }
    }
}

/// What an answer led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The writer holds what to send; the client's next packet goes to [`Exchange::answer`].
    Continue,
    /// The password was right: send OK next. What to remember for the next login is there if it is new.
    Accepted(Option<caching_sha2::Cached>),
    /// The password was wrong: send error 1045.
    Denied,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expecting {
    PluginAnswer,
    PasswordOrKeyRequest,
    EncryptedPassword,
    Nothing,
}

/// One login under way.
#[derive(Clone, Debug)]
pub struct Exchange {
    credential: Credential,
    nonce: [u8; NONCE_BYTES],
    secure: bool,
    expecting: Expecting,
}

impl Exchange {
    /// For an account's credential and the nonce of the greeting. `secure` is TLS, a Unix socket, shared memory
    /// or the machine's own loopback: a channel over which the password may go as it is.
    pub fn new(credential: Credential, nonce: [u8; NONCE_BYTES], secure: bool) -> Self {
        Self {
            credential,
            nonce,
            secure,
            expecting: Expecting::PluginAnswer,
        }
    }

    /// The first answer, as [`crate::handshake::Login`] or [`crate::handshake::ChangeUser`] brought it. `key` is called
    /// only if the client asks for the public key or uses it.
    pub fn begin<'k>(
        &mut self,
        client_plugin: Option<&[u8]>,
        answer: &[u8],
        writer: &mut PacketWriter,
        key: impl FnOnce() -> Result<&'k ServerKey, Error>,
    ) -> Result<Outcome, Error> {
        let client_plugin = client_plugin.unwrap_or(NATIVE_PASSWORD.as_bytes());
        if client_plugin != self.credential.plugin().as_bytes() {
            AuthStep::Switch {
                plugin: self.credential.plugin().as_bytes(),
                nonce: &self.nonce,
            }
            .write(writer);
            return Ok(Outcome::Continue);
        }
        self.answer(answer, writer, key)
    }

    /// The payload of each packet after that. Errors mean that the client broke the protocol.
    pub fn answer<'k>(
        &mut self,
        packet: &[u8],
        writer: &mut PacketWriter,
        key: impl FnOnce() -> Result<&'k ServerKey, Error>,
    ) -> Result<Outcome, Error> {
        match std::mem::replace(&mut self.expecting, Expecting::Nothing) {
            Expecting::PluginAnswer => Ok(self.plugin_answer(packet, writer)),
            // A client that doesn't take the channel for secure asks for the key: a password ends in a zero byte.
            Expecting::PasswordOrKeyRequest if packet == [caching_sha2::PUBLIC_KEY_REQUEST] => {
                AuthStep::More(key()?.public_pem().as_bytes()).write(writer);
                self.expecting = Expecting::EncryptedPassword;
                Ok(Outcome::Continue)
            }
            Expecting::PasswordOrKeyRequest if self.secure => {
                Ok(self.password(caching_sha2::parse_clear(packet)?))
            }
            Expecting::PasswordOrKeyRequest | Expecting::EncryptedPassword => {
                Ok(match key()?.decrypt(packet, &self.nonce) {
                    Ok(password) => self.password(&password),
                    Err(_) => Outcome::Denied,
                })
            }
            Expecting::Nothing => Err(Error::Malformed("an answer that nothing asked for")),
        }
    }

    fn plugin_answer(&mut self, answer: &[u8], writer: &mut PacketWriter) -> Outcome {
        // Some clients say "no password" by a zero byte alone.
        let answer = if answer == [0] { &[][..] } else { answer };
        match &self.credential {
            Credential::Native(None) | Credential::CachingSha2 { stored: None, .. } => {
                accepted_if(answer.is_empty())
            }
            Credential::Native(Some(stored)) => accepted_if(stored.verify(&self.nonce, answer)),
            Credential::CachingSha2 { .. } if answer.is_empty() => Outcome::Denied,
            Credential::CachingSha2 {
                cached: Some(cached),
                ..
            } if cached.verify(&self.nonce, answer) => {
                AuthStep::More(&[caching_sha2::FAST_AUTH_SUCCESS]).write(writer);
                Outcome::Accepted(None)
            }
            // A wrong fast answer gets the slow check too: the password may have changed since it was cached.
            Credential::CachingSha2 { .. } => {
                AuthStep::More(&[caching_sha2::FULL_AUTH_NEEDED]).write(writer);
                self.expecting = Expecting::PasswordOrKeyRequest;
                Outcome::Continue
            }
        }
    }

    fn password(&self, password: &[u8]) -> Outcome {
        match &self.credential {
            Credential::CachingSha2 {
                stored: Some(stored),
                ..
            } if stored.verify(password) => {
                Outcome::Accepted(Some(caching_sha2::Cached::of(password)))
            }
            _ => Outcome::Denied,
        }
    }
}

fn accepted_if(right: bool) -> Outcome {
    if right {
        Outcome::Accepted(None)
    } else {
        Outcome::Denied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    static KEY: LazyLock<ServerKey> = LazyLock::new(|| ServerKey::generate().unwrap());

    fn no_key() -> Result<&'static ServerKey, Error> {
        panic!("the public key isn't needed here")
    }

    fn sha2(password: &[u8], cached: bool) -> Credential {
        Credential::CachingSha2 {
            stored: Some(caching_sha2::Stored::of(password)),
            cached: cached.then(|| caching_sha2::Cached::of(password)),
        }
    }

    fn step(writer: &PacketWriter) -> AuthStep<'_> {
        AuthStep::parse(&writer.bytes()[4..]).unwrap().unwrap()
    }

    #[test]
    fn a_native_answer_is_right_or_wrong_at_once() {
        let nonce = super::super::nonce();
        let credential = Credential::Native(Some(native::Stored::of(b"secret")));
        for (password, outcome) in [
            (&b"secret"[..], Outcome::Accepted(None)),
            (b"guess", Outcome::Denied),
        ] {
            let mut writer = PacketWriter::new();
            let answer = native::scramble(password, &nonce);
            let mut exchange = Exchange::new(credential.clone(), nonce, false);
            assert_eq!(
                exchange.begin(None, &answer, &mut writer, no_key),
                Ok(outcome)
            );
            assert!(writer.is_empty());
        }
    }

    #[test]
    fn a_client_with_another_plugin_is_switched() {
        let nonce = super::super::nonce();
        let mut writer = PacketWriter::new();
        let mut exchange = Exchange::new(
            Credential::Native(Some(native::Stored::of(b"secret"))),
            nonce,
            false,
        );
        let outcome = exchange.begin(
            Some(CACHING_SHA2_PASSWORD.as_bytes()),
            &[0; 32],
            &mut writer,
            no_key,
        );
        assert_eq!(outcome, Ok(Outcome::Continue));
        let AuthStep::Switch {
            plugin,
            nonce: sent,
        } = step(&writer)
        else {
            panic!("not a switch");
        };
        assert_eq!((plugin, sent), (NATIVE_PASSWORD.as_bytes(), &nonce[..]));
        let answer = super::super::answer(plugin, b"secret", sent, false).unwrap();
        assert_eq!(
            exchange.answer(&answer, &mut writer, no_key),
            Ok(Outcome::Accepted(None))
        );
    }

    #[test]
    fn a_cached_account_is_accepted_by_its_fast_answer() {
        let nonce = super::super::nonce();
        let mut writer = PacketWriter::new();
        let mut exchange = Exchange::new(sha2(b"secret", true), nonce, false);
        let answer = caching_sha2::scramble(b"secret", &nonce);
        let outcome = exchange.begin(
            Some(CACHING_SHA2_PASSWORD.as_bytes()),
            &answer,
            &mut writer,
            no_key,
        );
        assert_eq!(outcome, Ok(Outcome::Accepted(None)));
        assert_eq!(
            step(&writer),
            AuthStep::More(&[caching_sha2::FAST_AUTH_SUCCESS])
        );
    }

    #[test]
    fn a_secure_channel_carries_the_password_as_it_is() {
        let nonce = super::super::nonce();
        for (password, right) in [(&b"secret"[..], true), (b"guess", false)] {
            let mut writer = PacketWriter::new();
            let mut exchange = Exchange::new(sha2(b"secret", false), nonce, true);
            let answer = caching_sha2::scramble(password, &nonce);
            exchange
                .begin(
                    Some(CACHING_SHA2_PASSWORD.as_bytes()),
                    &answer,
                    &mut writer,
                    no_key,
                )
                .unwrap();
            assert_eq!(
                step(&writer),
                AuthStep::More(&[caching_sha2::FULL_AUTH_NEEDED])
            );
            let outcome = exchange
                .answer(&caching_sha2::clear(password), &mut writer, no_key)
                .unwrap();
            let cached = caching_sha2::Cached::of(b"secret");
            assert_eq!(
                outcome,
                if right {
                    Outcome::Accepted(Some(cached))
                } else {
                    Outcome::Denied
                }
            );
        }
    }

    #[test]
    fn any_other_channel_carries_it_under_the_public_key() {
        let nonce = super::super::nonce();
        let mut writer = PacketWriter::new();
        let mut exchange = Exchange::new(sha2(b"secret", false), nonce, false);
        let answer = caching_sha2::scramble(b"secret", &nonce);
        exchange
            .begin(
                Some(CACHING_SHA2_PASSWORD.as_bytes()),
                &answer,
                &mut writer,
                no_key,
            )
            .unwrap();
        writer.clear();
        exchange
            .answer(&[caching_sha2::PUBLIC_KEY_REQUEST], &mut writer, || {
                Ok(&*KEY)
            })
            .unwrap();
        let AuthStep::More(pem) = step(&writer) else {
            panic!("not a key");
        };
        let encrypted = super::super::public_key::encrypt(b"secret", &nonce, pem).unwrap();
        let outcome = exchange.answer(&encrypted, &mut PacketWriter::new(), || Ok(&*KEY));
        assert!(matches!(outcome, Ok(Outcome::Accepted(Some(_)))));
    }

    #[test]
    fn an_empty_password_is_no_way_into_an_account_that_has_one() {
        let nonce = super::super::nonce();
        for credential in [
            Credential::Native(Some(native::Stored::of(b"x"))),
            sha2(b"x", true),
        ] {
            let plugin = credential.plugin().as_bytes();
            for answer in [&b""[..], b"\0"] {
                let mut exchange = Exchange::new(credential.clone(), nonce, true);
                let outcome =
                    exchange.begin(Some(plugin), answer, &mut PacketWriter::new(), no_key);
                assert_eq!(outcome, Ok(Outcome::Denied));
            }
        }
    }

    #[test]
    fn garbage_under_the_public_key_is_denied() {
        let mut exchange = Exchange::new(sha2(b"x", false), super::super::nonce(), false);
        let mut writer = PacketWriter::new();
        exchange
            .begin(
                Some(CACHING_SHA2_PASSWORD.as_bytes()),
                &[1; 32],
                &mut writer,
                no_key,
            )
            .unwrap();
        assert_eq!(
            exchange.answer(&[7; 256], &mut writer, || Ok(&*KEY)),
            Ok(Outcome::Denied)
        );
        assert!(
            exchange
                .answer(&[7; 256], &mut writer, || Ok(&*KEY))
                .is_err()
        );
    }
}
