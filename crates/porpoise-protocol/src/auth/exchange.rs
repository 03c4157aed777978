//! The server's side of a login, from the client's first response to yes or no.
//!
//! ```text
//! first response ──► other plugin than the account's? ──► Switch, its response
//!                                  │
//!        native ◄──────────────────┴───────────────► caching_sha2; sha256: the password at once
//!        right or wrong                               cached and right? ──► "3", accepted
//!                                                     "4": the password, clear or under the public key
//!                                                     right or wrong by the slow hash
//! ```
//!
//! A client that doesn't know the password sees the same packets, after the same work, whether
//! there is an account or not ([`Credential::decoy`]), and whether it has a password, or has been
//! logged in to.

use super::{
    CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, SHA256_PASSWORD, caching_sha2, native,
    public_key::{ENCRYPTED_BYTES, ServerKey},
    sha256,
};
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
    /// `sha256_password`; nothing if the password is empty.
    Sha256(Option<sha256::Stored>),
}

impl Credential {
    /// What a user without an account is checked with, by this plugin: no password is right. Of
    /// plugins that aren't known here, `caching_sha2_password`'s.
    pub fn decoy(plugin: &str) -> Credential {
        match plugin {
            NATIVE_PASSWORD => Self::Native(Some(native::Stored::decoy())),
            SHA256_PASSWORD => Self::Sha256(Some(sha256::Stored::decoy())),
            _ => Self::CachingSha2 {
                stored: Some(caching_sha2::Stored::decoy()),
                cached: None,
            },
        }
    }

    /// The plugin that checks it.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::Native(_) => NATIVE_PASSWORD,
            Self::CachingSha2 { .. } => CACHING_SHA2_PASSWORD,
            Self::Sha256(_) => SHA256_PASSWORD,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Native(stored) => stored.is_none(),
            Self::CachingSha2 { stored, .. } => stored.is_none(),
            Self::Sha256(stored) => stored.is_none(),
        }
    }

    /// Whether the response to a nonce was made of the password, as far as that can be told from
    /// it: of a password that isn't in memory it can't. All take as long.
    fn verify_response(&self, nonce: &[u8; NONCE_BYTES], response: &[u8]) -> bool {
        match self {
            Self::Native(stored) => {
                let known = stored.unwrap_or(native::Stored::PLACEHOLDER);
                known.verify(nonce, response) && stored.is_some()
            }
            Self::CachingSha2 { cached, .. } => {
                let known = cached.unwrap_or(caching_sha2::Cached::PLACEHOLDER);
                known.verify(nonce, response) && cached.is_some()
            }
            Self::Sha256(_) => false,
        }
    }

    /// Whether this is the password. All slow hashes take as long.
    fn verify_password(&self, password: &[u8]) -> bool {
        match self {
            Self::Native(_) => false,
            Self::CachingSha2 { stored, .. } => {
                let known = stored.as_ref();
                let known = known.unwrap_or(&caching_sha2::Stored::PLACEHOLDER);
                known.verify(password) && stored.is_some()
            }
            Self::Sha256(stored) => {
                let known = stored.as_ref().unwrap_or(&sha256::Stored::PLACEHOLDER);
                known.verify(password) && stored.is_some()
            }
        }
    }
}

/// What a response led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthOutcome {
    /// The writer holds what to send; the client's next packet goes to
    /// [`Exchange::handle_response`].
    Continue,
    /// The password was right: send OK next. It holds the fast hash to cache for the next login, if
    /// that is new.
    Accepted(Option<caching_sha2::Cached>),
    /// The password was wrong: send error 1045.
    Denied,
}

/// Ends an exchange with a client that is let in whatever its response, because something
/// other than a password has authenticated it. A client waits for more than an OK if its plugin
/// does.
pub fn accept(
    client_plugin: Option<&[u8]>,
    response: &[u8],
    nonce: &[u8; NONCE_BYTES],
    writer: &mut PacketWriter,
) -> AuthOutcome {
    const SHA2: &[u8] = CACHING_SHA2_PASSWORD.as_bytes();
    const NATIVE: &[u8] = NATIVE_PASSWORD.as_bytes();
    let plugin = client_plugin.unwrap_or(NATIVE);
    if plugin == SHA2 {
        // With a password, OK has to follow the word that the fast response was right; without one,
        // nothing is waited for.
        if !is_no_password(response) {
            AuthStep::More(&[caching_sha2::FAST_AUTH_SUCCESS]).write(writer);
        }
        return AuthOutcome::Accepted(None);
    }
    if plugin == NATIVE && !waits_first(client_plugin, response) {
        return AuthOutcome::Accepted(None);
    }
    // Other plugins begin by waiting for a question. This one takes it, answers, and waits for OK.
    let plugin = NATIVE;
    AuthStep::Switch { plugin, nonce }.write(writer);
    AuthOutcome::Continue
}

/// A client that was told to use `mysql_native_password`, whatever the greeting says, may wait for
/// a nonce that is for this plugin before it answers: libmariadb and libmysqlclient do. What it
/// says meanwhile is the same as without a password.
fn waits_first(client_plugin: Option<&[u8]>, response: &[u8]) -> bool {
    client_plugin == Some(NATIVE_PASSWORD.as_bytes()) && is_no_password(response)
}

/// Some clients say "no password" by a zero byte alone.
fn is_no_password(response: &[u8]) -> bool {
    matches!(response, [] | [0])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expecting {
    PluginResponse,
    PasswordOrKeyRequest,
    EncryptedPassword,
    Nothing,
}

/// One login under way.
#[derive(Clone, Debug)]
pub struct Exchange {
    credential: Credential,
    /// Of the password before, which is still valid; or a decoy, where other accounts have one.
    second: Option<Box<Credential>>,
    used_second: bool,
    nonce: [u8; NONCE_BYTES],
    secure: bool,
    expecting: Expecting,
}

impl Exchange {
    /// For an account's credential and the nonce of the greeting. `secure` is TLS, a Unix socket,
    /// shared memory or the machine's own loopback: a channel over which the password may go as it
    /// is.
    pub fn new(credential: Credential, nonce: [u8; NONCE_BYTES], secure: bool) -> Self {
        Self {
            credential,
            second: None,
            used_second: false,
            nonce,
            secure,
            expecting: Expecting::PluginResponse,
        }
    }

    /// A second password is right too, by the same plugin. With a decoy none is, in the same time:
    /// where some accounts have two passwords, others are to take as long.
    pub fn with_second(mut self, second: Option<Credential>) -> Self {
        self.second = second.map(Box::new);
        self
    }

    /// Whether it was the second password that was right.
    pub fn used_second(&self) -> bool {
        self.used_second
    }

    /// Whether one of the passwords is right, by a check that both have to take.
    fn verify(&mut self, check: impl Fn(&Credential) -> bool) -> bool {
        let first = check(&self.credential);
        let second = self.second.as_deref().is_some_and(check);
        self.used_second = second && !first;
        first || second
    }

    /// The plugin that the client has to response by.
    pub fn plugin(&self) -> &'static str {
        self.credential.plugin()
    }

    /// The first response, as [`crate::handshake::Login`] or [`crate::handshake::ChangeUser`]
    /// brought it. `key` is called only if the client asks for the public key or uses it.
    pub fn begin<'k>(
        &mut self,
        client_plugin: Option<&[u8]>,
        response: &[u8],
        writer: &mut PacketWriter,
        key: impl FnOnce() -> Result<&'k ServerKey, Error>,
    ) -> Result<AuthOutcome, Error> {
        let plugin = client_plugin.unwrap_or(NATIVE_PASSWORD.as_bytes());
        if plugin != self.credential.plugin().as_bytes() || waits_first(client_plugin, response) {
            AuthStep::Switch {
                plugin: self.credential.plugin().as_bytes(),
                nonce: &self.nonce,
            }
            .write(writer);
            return Ok(AuthOutcome::Continue);
        }
        self.handle_response(response, writer, key)
    }

    /// The payload of each packet after that. Errors mean that the client broke the protocol.
    pub fn handle_response<'k>(
        &mut self,
        packet: &[u8],
        writer: &mut PacketWriter,
        key: impl FnOnce() -> Result<&'k ServerKey, Error>,
    ) -> Result<AuthOutcome, Error> {
        match std::mem::replace(&mut self.expecting, Expecting::Nothing) {
            Expecting::PluginResponse => {
                if matches!(self.credential, Credential::Sha256(_)) && !is_no_password(packet) {
                    self.expecting = Expecting::PasswordOrKeyRequest;
                    return self.handle_response(packet, writer, key);
                }
                self.check_response(packet, writer)
            }
            // A client that doesn't take the channel for secure asks for the key: a password ends
            // in a zero byte.
            Expecting::PasswordOrKeyRequest if packet == self.key_request() => {
                AuthStep::More(key()?.public_pem().as_bytes()).write(writer);
                self.expecting = Expecting::EncryptedPassword;
                Ok(AuthOutcome::Continue)
            }
            Expecting::PasswordOrKeyRequest if self.secure => {
                let outcome = match packet.strip_suffix(&[0]) {
                    Some(password) => self.password(password),
                    None => AuthOutcome::Denied,
                };
                // On loopback, a client that has the key from a file doesn't know the channel for
                // secure.
                match outcome {
                    AuthOutcome::Denied if packet.len() == ENCRYPTED_BYTES => {
                        Ok(self.encrypted_password(packet, key()?))
                    }
                    outcome => Ok(outcome),
                }
            }
            Expecting::PasswordOrKeyRequest | Expecting::EncryptedPassword => {
                Ok(self.encrypted_password(packet, key()?))
            }
            Expecting::Nothing => Err(Error::Malformed("an answer that nothing asked for")),
        }
    }

    fn key_request(&self) -> [u8; 1] {
        match self.credential {
            Credential::Sha256(_) => [sha256::PUBLIC_KEY_REQUEST],
            _ => [caching_sha2::PUBLIC_KEY_REQUEST],
        }
    }

    fn check_response(
        &mut self,
        response: &[u8],
        writer: &mut PacketWriter,
    ) -> Result<AuthOutcome, Error> {
        if is_no_password(response) {
            return Ok(accepted_if(self.credential.is_empty()));
        }
        let is_native = matches!(self.credential, Credential::Native(_));
        if is_native && response.len() != native::RESPONSE_BYTES {
            return Err(Error::Malformed(
                "an answer of another length than the plugin's",
            ));
        }
        let nonce = self.nonce;
        let right = self.verify(|credential| credential.verify_response(&nonce, response));
        if is_native {
            return Ok(accepted_if(right));
        }
        if right {
            AuthStep::More(&[caching_sha2::FAST_AUTH_SUCCESS]).write(writer);
            return Ok(AuthOutcome::Accepted(None));
        }
        // A wrong fast response gets the slow check too: the password may have changed since it was
        // cached.
        AuthStep::More(&[caching_sha2::FULL_AUTH_NEEDED]).write(writer);
        self.expecting = Expecting::PasswordOrKeyRequest;
        Ok(AuthOutcome::Continue)
    }

    fn encrypted_password(&mut self, packet: &[u8], key: &ServerKey) -> AuthOutcome {
        match key.decrypt(packet, &self.nonce) {
            Ok(password) => self.password(&password),
            Err(_) => AuthOutcome::Denied,
        }
    }

    fn password(&mut self, password: &[u8]) -> AuthOutcome {
        if !self.verify(|credential| credential.verify_password(password)) {
            return AuthOutcome::Denied;
        }
        let is_cached = matches!(self.credential, Credential::CachingSha2 { .. });
        AuthOutcome::Accepted(is_cached.then(|| caching_sha2::Cached::of(password)))
    }
}

fn accepted_if(right: bool) -> AuthOutcome {
    if right {
        AuthOutcome::Accepted(None)
    } else {
        AuthOutcome::Denied
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
            (&b"secret"[..], AuthOutcome::Accepted(None)),
            (b"guess", AuthOutcome::Denied),
        ] {
            let mut writer = PacketWriter::new();
            let response = native::scramble(password, &nonce);
            let mut exchange = Exchange::new(credential.clone(), nonce, false);
            assert_eq!(
                exchange.begin(None, &response, &mut writer, no_key),
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
        assert_eq!(outcome, Ok(AuthOutcome::Continue));
        let AuthStep::Switch {
            plugin,
            nonce: sent,
        } = step(&writer)
        else {
            panic!("not a switch");
        };
        assert_eq!((plugin, sent), (NATIVE_PASSWORD.as_bytes(), &nonce[..]));
        let response = super::super::respond(plugin, b"secret", sent, false).unwrap();
        assert_eq!(
            exchange.handle_response(&response, &mut writer, no_key),
            Ok(AuthOutcome::Accepted(None))
        );
    }

    #[test]
    fn a_cached_account_is_accepted_by_its_fast_answer() {
        let nonce = super::super::nonce();
        let mut writer = PacketWriter::new();
        let mut exchange = Exchange::new(sha2(b"secret", true), nonce, false);
        let response = caching_sha2::scramble(b"secret", &nonce);
        let outcome = exchange.begin(
            Some(CACHING_SHA2_PASSWORD.as_bytes()),
            &response,
            &mut writer,
            no_key,
        );
        assert_eq!(outcome, Ok(AuthOutcome::Accepted(None)));
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
            let response = caching_sha2::scramble(password, &nonce);
            exchange
                .begin(
                    Some(CACHING_SHA2_PASSWORD.as_bytes()),
                    &response,
                    &mut writer,
                    no_key,
                )
                .unwrap();
            assert_eq!(
                step(&writer),
                AuthStep::More(&[caching_sha2::FULL_AUTH_NEEDED])
            );
            let outcome = exchange
                .handle_response(
                    &caching_sha2::cleartext_packet(password),
                    &mut writer,
                    no_key,
                )
                .unwrap();
            let cached = caching_sha2::Cached::of(b"secret");
            assert_eq!(
                outcome,
                if right {
                    AuthOutcome::Accepted(Some(cached))
                } else {
                    AuthOutcome::Denied
                }
            );
        }
    }

    #[test]
    fn any_other_channel_carries_it_under_the_public_key() {
        let nonce = super::super::nonce();
        let mut writer = PacketWriter::new();
        let mut exchange = Exchange::new(sha2(b"secret", false), nonce, false);
        let response = caching_sha2::scramble(b"secret", &nonce);
        exchange
            .begin(
                Some(CACHING_SHA2_PASSWORD.as_bytes()),
                &response,
                &mut writer,
                no_key,
            )
            .unwrap();
        writer.clear();
        exchange
            .handle_response(&[caching_sha2::PUBLIC_KEY_REQUEST], &mut writer, || {
                Ok(&*KEY)
            })
            .unwrap();
        let AuthStep::More(pem) = step(&writer) else {
            panic!("not a key");
        };
        let encrypted = super::super::public_key::encrypt(b"secret", &nonce, pem).unwrap();
        let outcome = exchange.handle_response(&encrypted, &mut PacketWriter::new(), || Ok(&*KEY));
        assert!(matches!(outcome, Ok(AuthOutcome::Accepted(Some(_)))));
    }

    #[test]
    fn an_empty_password_is_no_way_into_an_account_that_has_one() {
        let nonce = super::super::nonce();
        for credential in [
            Credential::Native(Some(native::Stored::of(b"x"))),
            sha2(b"x", true),
        ] {
            let plugin = credential.plugin().as_bytes();
            for response in [&b""[..], b"\0"] {
                let mut exchange = Exchange::new(credential.clone(), nonce, true);
                let writer = &mut PacketWriter::new();
                let mut outcome = exchange.begin(Some(plugin), response, writer, no_key);
                if outcome == Ok(AuthOutcome::Continue) {
                    outcome = exchange.handle_response(response, writer, no_key);
                }
                assert_eq!(outcome, Ok(AuthOutcome::Denied));
            }
        }
    }

    #[test]
    fn a_client_told_to_use_the_old_plugin_is_sent_its_nonce() {
        let nonce = super::super::nonce();
        let native = NATIVE_PASSWORD.as_bytes();
        for password in [&b""[..], b"secret"] {
            let stored = (!password.is_empty()).then(|| native::Stored::of(password));
            let mut exchange = Exchange::new(Credential::Native(stored), nonce, false);
            let mut writer = PacketWriter::new();
            let outcome = exchange.begin(Some(native), b"", &mut writer, no_key);
            assert_eq!(outcome, Ok(AuthOutcome::Continue));
            let plugin = native;
            let nonce = &nonce[..];
            assert_eq!(step(&writer), AuthStep::Switch { plugin, nonce });
            let response = super::super::respond(plugin, password, nonce, false).unwrap();
            let outcome = exchange.handle_response(&response, &mut writer, no_key);
            assert_eq!(outcome, Ok(AuthOutcome::Accepted(None)));
        }
    }

    /// All that a client who says this hears, up to the refusal.
    fn dialogue(
        credential: &Credential,
        secure: bool,
        plugin: Option<&[u8]>,
        said: &[u8],
    ) -> Vec<u8> {
        let mut exchange = Exchange::new(credential.clone(), *b"a nonce of 20 bytes!", secure);
        let mut writer = PacketWriter::new();
        let mut outcome = exchange.begin(plugin, said, &mut writer, || Ok(&*KEY));
        for _ in 0..5 {
            match outcome {
                Ok(AuthOutcome::Continue) => {}
                Ok(AuthOutcome::Denied) => writer.write(b"denied"),
                Ok(AuthOutcome::Accepted(_)) => writer.write(b"accepted"),
                Err(error) => writer.write(error.to_string().as_bytes()),
            }
            if outcome != Ok(AuthOutcome::Continue) {
                return writer.take();
            }
            outcome = exchange.handle_response(said, &mut writer, || Ok(&*KEY));
        }
        panic!("an exchange without an end");
    }

    #[test]
    fn who_knows_no_password_hears_the_same_with_and_without_an_account() {
        let sha2_without = Credential::CachingSha2 {
            stored: None,
            cached: None,
        };
        let kinds = [
            (
                Credential::decoy(SHA256_PASSWORD),
                Credential::Sha256(None),
                vec![Credential::Sha256(Some(sha256::Stored::of(b"x")))],
            ),
            (
                Credential::decoy(NATIVE_PASSWORD),
                Credential::Native(None),
                vec![Credential::Native(Some(native::Stored::of(b"x")))],
            ),
            (
                Credential::decoy(CACHING_SHA2_PASSWORD),
                sha2_without,
                vec![sha2(b"x", false), sha2(b"x", true)],
            ),
        ];
        let plugins: [Option<&[u8]>; 5] = [
            None,
            Some(SHA256_PASSWORD.as_bytes()),
            Some(NATIVE_PASSWORD.as_bytes()),
            Some(CACHING_SHA2_PASSWORD.as_bytes()),
            Some(b"dialog"),
        ];
        for (decoy, without_password, accounts) in &kinds {
            for said in [
                &b""[..],
                b"\0",
                b"\x02",
                b"guess\0",
                &[7; 20],
                &[7; 32],
                &[7; 256],
            ] {
                for (plugin, secure) in plugins.into_iter().flat_map(|p| [(p, true), (p, false)]) {
                    let stranger = dialogue(decoy, secure, plugin, said);
                    for account in accounts {
                        let heard = dialogue(account, secure, plugin, said);
                        assert_eq!(heard, stranger, "{plugin:?} {said:?} {account:?}");
                    }
                    let heard = dialogue(without_password, secure, plugin, said);
                    match is_no_password(said) {
                        true => assert!(heard.ends_with(b"accepted"), "{plugin:?}"),
                        false => assert_eq!(heard, stranger, "{plugin:?} {said:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn who_is_known_otherwise_is_let_in_by_words_that_the_plugin_waits_for() {
        let nonce = super::super::nonce();
        let hears = |plugin: Option<&str>, response: &[u8]| {
            let mut writer = PacketWriter::new();
            let outcome = accept(plugin.map(str::as_bytes), response, &nonce, &mut writer);
            let packets = (!writer.is_empty()).then(|| writer.bytes()[4..].to_vec());
            (outcome, packets)
        };
        let accepted = AuthOutcome::Accepted(None);
        for (plugin, response) in [
            (None, &b""[..]),
            (None, &[7; 20]),
            (Some(NATIVE_PASSWORD), &[7; 20]),
            (Some(CACHING_SHA2_PASSWORD), b""),
            (Some(CACHING_SHA2_PASSWORD), b"\0"),
        ] {
            assert_eq!(hears(plugin, response), (accepted, None), "{plugin:?}");
        }
        let right = Some(vec![1, caching_sha2::FAST_AUTH_SUCCESS]);
        assert_eq!(
            hears(Some(CACHING_SHA2_PASSWORD), &[7; 32]),
            (accepted, right)
        );
        for plugin in [
            NATIVE_PASSWORD,
            "dialog",
            "client_ed25519",
            "mysql_clear_password",
            "",
        ] {
            let (outcome, packet) = hears(Some(plugin), b"");
            assert_eq!(outcome, AuthOutcome::Continue, "{plugin}");
            let packet = packet.unwrap();
            let step = AuthStep::parse(&packet).unwrap().unwrap();
            let plugin = NATIVE_PASSWORD.as_bytes();
            let nonce = &nonce[..];
            assert_eq!(step, AuthStep::Switch { plugin, nonce });
        }
    }

    #[test]
    fn sha256_takes_the_password_over_a_secure_channel_or_under_the_key() {
        let nonce = super::super::nonce();
        let plugin = Some(SHA256_PASSWORD.as_bytes());
        let credential = Credential::Sha256(Some(sha256::Stored::of(b"secret")));
        for (said, outcome) in [
            (&b"secret\0"[..], AuthOutcome::Accepted(None)),
            (b"guess\0", AuthOutcome::Denied),
        ] {
            let mut exchange = Exchange::new(credential.clone(), nonce, true);
            let heard = exchange.begin(plugin, said, &mut PacketWriter::new(), no_key);
            assert_eq!(heard, Ok(outcome));
        }
        let mut writer = PacketWriter::new();
        let mut exchange = Exchange::new(credential, nonce, false);
        let asked = exchange.begin(plugin, &[1], &mut writer, || Ok(&*KEY));
        assert_eq!(asked, Ok(AuthOutcome::Continue));
        let AuthStep::More(pem) = step(&writer) else {
            panic!("not a key");
        };
        let encrypted = super::super::public_key::encrypt(b"secret", &nonce, pem).unwrap();
        let outcome = exchange.handle_response(&encrypted, &mut PacketWriter::new(), || Ok(&*KEY));
        assert_eq!(outcome, Ok(AuthOutcome::Accepted(None)));
    }

    #[test]
    fn of_two_passwords_both_are_right() {
        let nonce = super::super::nonce();
        let native = |password: &[u8]| Credential::Native(Some(native::Stored::of(password)));
        let sha256 = |password: &[u8]| Credential::Sha256(Some(sha256::Stored::of(password)));
        for (first, second) in [
            (native(b"new"), native(b"old")),
            (sha2(b"new", false), sha2(b"old", false)),
            (sha2(b"new", true), sha2(b"old", true)),
            (sha256(b"new"), sha256(b"old")),
        ] {
            for (password, right, used_second) in [
                (&b"new"[..], true, false),
                (b"old", true, true),
                (b"guess", false, false),
            ] {
                let plugin = first.plugin();
                let exchange = Exchange::new(first.clone(), nonce, true);
                let mut exchange = exchange.with_second(Some(second.clone()));
                let clear = caching_sha2::cleartext_packet(password);
                let response = match plugin {
                    SHA256_PASSWORD => clear.clone(),
                    plugin => {
                        super::super::respond(plugin.as_bytes(), password, &nonce, true).unwrap()
                    }
                };
                let writer = &mut PacketWriter::new();
                let plugin = Some(plugin.as_bytes());
                let mut outcome = exchange.begin(plugin, &response, writer, no_key).unwrap();
                if outcome == AuthOutcome::Continue {
                    outcome = exchange.handle_response(&clear, writer, no_key).unwrap();
                }
                assert_eq!(matches!(outcome, AuthOutcome::Accepted(_)), right);
                assert_eq!(exchange.used_second(), used_second);
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
            exchange.handle_response(&[7; 256], &mut writer, || Ok(&*KEY)),
            Ok(AuthOutcome::Denied)
        );
        assert!(
            exchange
                .handle_response(&[7; 256], &mut writer, || Ok(&*KEY))
                .is_err()
        );
    }
}
