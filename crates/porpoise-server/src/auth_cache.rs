//! What all logins share: passwords that were seen, as their fast hashes, and the key that encrypts
//! them on TCP.

use std::collections::HashMap;
use std::sync::OnceLock;

use parking_lot::Mutex;
use porpoise_engine::Account;
use porpoise_protocol::auth::{self, Credential, caching_sha2, native, public_key::ServerKey};

use crate::thread_pool;

/// An account's user and host.
type AccountName = (String, String);

/// A fast hash, and the stored hash with which the password was checked: a new password makes the
/// entry invalid.
struct CachedHash {
    stored: String,
    fast: caching_sha2::Cached,
}

/// The cache of `caching_sha2_password`, and the server's RSA key.
#[derive(Default)]
pub(crate) struct AuthCache {
    hashes: Mutex<HashMap<AccountName, CachedHash>>,
    key: OnceLock<ServerKey>,
    key_generation: Mutex<()>,
    decoys: Decoys,
}

/// What users without an account are checked with.
struct Decoys {
    native: Credential,
    sha2: Credential,
}

impl Default for Decoys {
    fn default() -> Decoys {
        Decoys {
            native: Credential::decoy(auth::NATIVE_PASSWORD),
            sha2: Credential::decoy(auth::CACHING_SHA2_PASSWORD),
        }
    }
}

impl AuthCache {
    /// The RSA key. It is generated when the first client asks for it, which takes a second, off
    /// the event loop.
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

    /// Keeps the fast hash of a password that was right for the account.
    pub fn insert(&self, account: &Account, fast: caching_sha2::Cached) {
        let name = (account.user.to_string(), account.host.to_string());
        let stored = account.authentication_string.to_string();
        self.hashes.lock().insert(name, CachedHash { stored, fast });
    }

    /// The fast hash of an account whose stored hash is `stored`.
    fn get(&self, user: &str, host: &str, stored: &str) -> Option<caching_sha2::Cached> {
        let name = (user.to_string(), host.to_string());
        let hashes = self.hashes.lock();
        let cached = hashes.get(&name)?;
        (cached.stored == stored).then_some(cached.fast)
    }

    /// What a password for the account is checked with; `None` if no password is right.
    pub fn credential(&self, account: &Account) -> Option<Credential> {
        let text = &*account.authentication_string;
        match &*account.plugin {
            auth::NATIVE_PASSWORD if text.is_empty() => Some(Credential::Native(None)),
            auth::NATIVE_PASSWORD => {
                native::Stored::parse(text).map(|stored| Credential::Native(Some(stored)))
            }
            auth::CACHING_SHA2_PASSWORD if text.is_empty() => Some(Credential::CachingSha2 {
                stored: None,
                cached: None,
            }),
            auth::CACHING_SHA2_PASSWORD => {
                let stored = caching_sha2::Stored::parse(text.as_bytes())?;
                Some(Credential::CachingSha2 {
                    stored: Some(stored),
                    cached: self.get(&account.user, &account.host, text),
                })
            }
            _ => None,
        }
    }

    /// What a user is checked with for whom no password is right. It takes the work that finding an
    /// account's credential takes.
    pub fn decoy(&self, user: &str, plugin: &str) -> Credential {
        if plugin == auth::NATIVE_PASSWORD {
            return self.decoys.native.clone();
        }
        std::hint::black_box(self.get(user, "%", ""));
        self.decoys.sha2.clone()
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
