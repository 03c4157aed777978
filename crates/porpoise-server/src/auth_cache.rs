//! What all logins share: passwords that were seen, as their fast hashes, and the key that encrypts
//! them on TCP.

use std::collections::HashMap;
use std::sync::OnceLock;

use parking_lot::Mutex;
use porpoise_engine::Account;
use porpoise_protocol::auth::{
    self, Credential, caching_sha2, native, public_key::ServerKey, sha256,
};

use crate::thread_pool;

/// An account's user and host, and which of its passwords: true for the second.
type PasswordName = (String, String, bool);

/// A fast hash, and the stored hash with which the password was checked: a new password makes the
/// entry invalid.
struct CachedHash {
    stored: String,
    fast: caching_sha2::Cached,
}

/// The cache of `caching_sha2_password`, and the server's RSA key.
#[derive(Default)]
pub(crate) struct AuthCache {
    hashes: Mutex<HashMap<PasswordName, CachedHash>>,
    key: OnceLock<ServerKey>,
    key_generation: Mutex<()>,
    decoys: Decoys,
}

/// What users without an account are checked with.
struct Decoys {
    native: Credential,
    sha2: Credential,
    sha256: Credential,
}

impl Default for Decoys {
    fn default() -> Decoys {
        Decoys {
            native: Credential::decoy(auth::NATIVE_PASSWORD),
            sha2: Credential::decoy(auth::CACHING_SHA2_PASSWORD),
            sha256: Credential::decoy(auth::SHA256_PASSWORD),
        }
    }
}

impl AuthCache {
    /// The RSA key. It is generated when the first client asks for it, or for its row of SHOW
    /// STATUS, which takes a second, off the event loop.
    pub fn key(&self) -> Result<&ServerKey, porpoise_protocol::Error> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        thread_pool::hand_over_loop();
        let _one_is_enough = self.key_generation.lock();
        if self.key.get().is_none() {
            // Nobody else can have set it: the lock is held.
            let _ = self.key.set(ServerKey::generate()?);
        }
        Ok(self.key.get().expect("it was just set"))
    }

    /// The public key under those of its names in SHOW STATUS that are wanted, for clients that are
    /// given it as a file. It is one key for both plugins.
    pub fn facts(&self, wants: &dyn Fn(&str) -> bool) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        for name in ["Caching_sha2_password_rsa_public_key", "Rsa_public_key"] {
            if wants(name) {
                let key = self.key();
                facts.push((
                    name,
                    key.map_or(String::new(), |key| key.public_pem().to_owned()),
                ));
            }
        }
        facts
    }

    /// Keeps the fast hash of a password that was right for the account: of the second one, if it
    /// has two and `is_second`.
    pub fn insert(&self, account: &Account, is_second: bool, fast: caching_sha2::Cached) {
        let name = (
            account.user.to_string(),
            account.host.to_string(),
            is_second,
        );
        let stored = match is_second {
            true => account.second_password.to_string(),
            false => account.authentication_string.to_string(),
        };
        self.hashes.lock().insert(name, CachedHash { stored, fast });
    }

    /// The fast hash of an account whose stored hash is `stored`.
    fn get(
        &self,
        user: &str,
        host: &str,
        is_second: bool,
        stored: &str,
    ) -> Option<caching_sha2::Cached> {
        let name = (user.to_string(), host.to_string(), is_second);
        let hashes = self.hashes.lock();
        let cached = hashes.get(&name)?;
        (cached.stored == stored).then_some(cached.fast)
    }

    /// What a password for the account is checked with; `None` if no password is right.
    pub fn credential(&self, account: &Account) -> Option<Credential> {
        self.credential_of(account, false)
    }

    /// What the second password is checked with of an account that has two; for others a decoy.
    pub fn second_credential(&self, account: &Account) -> Credential {
        let has_second = !account.second_password.is_empty();
        let credential = has_second.then(|| self.credential_of(account, true));
        let decoy = || self.decoy_of(&account.user, &account.host, true, &account.plugin);
        credential.flatten().unwrap_or_else(decoy)
    }

    fn credential_of(&self, account: &Account, is_second: bool) -> Option<Credential> {
        let text = match is_second {
            true => &*account.second_password,
            false => &*account.authentication_string,
        };
        let has_password = !text.is_empty();
        match &*account.plugin {
            auth::NATIVE_PASSWORD if has_password => {
                native::Stored::parse(text).map(|stored| Credential::Native(Some(stored)))
            }
            auth::NATIVE_PASSWORD => Some(Credential::Native(None)),
            auth::SHA256_PASSWORD if has_password => {
                let stored = sha256::Stored::parse(text.as_bytes())?;
                Some(Credential::Sha256(Some(stored)))
            }
            auth::SHA256_PASSWORD => Some(Credential::Sha256(None)),
            auth::CACHING_SHA2_PASSWORD if has_password => {
                let stored = caching_sha2::Stored::parse(text.as_bytes())?;
                Some(Credential::CachingSha2 {
                    stored: Some(stored),
                    cached: self.get(&account.user, &account.host, is_second, text),
                })
            }
            auth::CACHING_SHA2_PASSWORD => Some(Credential::CachingSha2 {
                stored: None,
                cached: None,
            }),
            _ => None,
        }
    }

    /// What a user is checked with for whom no password is right. It takes the work that finding an
    /// account's credential takes.
    pub fn decoy(&self, user: &str, plugin: &str) -> Credential {
        self.decoy_of(user, "%", false, plugin)
    }

    /// As [`decoy`](Self::decoy), in place of a second password.
    pub fn second_decoy(&self, user: &str, plugin: &str) -> Credential {
        self.decoy_of(user, "%", true, plugin)
    }

    fn decoy_of(&self, user: &str, host: &str, is_second: bool, plugin: &str) -> Credential {
        match plugin {
            auth::NATIVE_PASSWORD => self.decoys.native.clone(),
            auth::SHA256_PASSWORD => self.decoys.sha256.clone(),
            _ => {
                std::hint::black_box(self.get(user, host, is_second, ""));
                self.decoys.sha2.clone()
            }
        }
    }

    /// Whether the RSA key has been generated.
    #[cfg(test)]
    pub fn has_key(&self) -> bool {
        self.key.get().is_some()
    }

    /// Keeps the RSA key from being generated while the guard lives.
    #[cfg(test)]
    pub fn block_key_generation(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.key_generation.lock()
    }
}
