//! Decoy plugins: how users without an account are asked for a password, so that the question
//! doesn't tell that there is none.
//!
//! The plugin that asks is one that accounts of this database have; which of several, a keyed hash
//! of the user's name says. The key is kept with the accounts: the same name is asked by the same
//! plugin each time, also after a restart, as that of a user with an account is. That changes for
//! some names only when an account gets a plugin that no other account has, or the last account
//! with a plugin loses it.

use porpoise_catalog::dictionary::{KIND_DECOY_KEY, put_record, read_kind};
use porpoise_core::error::Result;
use porpoise_storage::Store;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::CACHING_SHA2_PASSWORD;

const KEY_BYTES: usize = 32;

/// The secret key of the hash.
#[derive(Serialize, Deserialize)]
struct Key([u8; KEY_BYTES]);

pub(super) struct Decoys {
    key: Key,
}

impl Decoys {
    /// Reads the key; a database that has none gets one.
    pub fn open(store: &Store) -> Result<Decoys> {
        let kept = read_kind::<Key>(store, KIND_DECOY_KEY)?;
        if let Some((_, key)) = kept.into_iter().next() {
            return Ok(Decoys { key });
        }
        let mut key = Key([0; KEY_BYTES]);
        getrandom::fill(&mut key.0).expect("the operating system has random bytes");
        if let Err(error) = store_key(store, &key) {
            // The key is used until the next start.
            tracing::warn!("can't keep a key for logins: {}", error.message());
        }
        Ok(Decoys { key })
    }

    /// One of `plugins`, the same for the same name; MySQL's own where there are none.
    pub fn plugin(&self, user: &str, plugins: &[&'static str]) -> &'static str {
        let hash = Sha256::new()
            .chain_update(self.key.0)
            .chain_update(user)
            .finalize();
        let number = hash
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        match plugins {
            [] => CACHING_SHA2_PASSWORD,
            plugins => plugins[number % plugins.len()],
        }
    }
}

fn store_key(store: &Store, key: &Key) -> Result<()> {
    let mut transaction = store.begin();
    put_record(&mut transaction, KIND_DECOY_KEY, &[], key)?;
    Ok(transaction.commit()?.wait()?)
}

#[cfg(test)]
mod tests {
    use super::super::NATIVE_PASSWORD;
    use super::*;

    #[test]
    fn a_name_is_asked_alike_after_a_restart_and_names_differ() {
        let folder = tempfile::tempdir().unwrap();
        let plugins = [CACHING_SHA2_PASSWORD, NATIVE_PASSWORD];
        let asked = || {
            let store = Store::open(&porpoise_storage::Options::path(folder.path())).unwrap();
            let decoys = Decoys::open(&store).unwrap();
            let names = (0..200).map(|number| format!("user{number}"));
            let asked: Vec<_> = names.map(|name| decoys.plugin(&name, &plugins)).collect();
            store.close().unwrap();
            asked
        };
        let first = asked();
        assert_eq!(asked(), first);
        for plugin in plugins {
            let count = first.iter().filter(|asked| **asked == plugin).count();
            assert!((60..140).contains(&count), "{plugin}: {count}");
        }
    }

    #[test]
    fn nobody_is_asked_by_a_plugin_that_no_account_has() {
        let key = Key([7; KEY_BYTES]);
        let decoys = Decoys { key };
        for user in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(decoys.plugin(user, &[NATIVE_PASSWORD]), NATIVE_PASSWORD);
            assert_eq!(decoys.plugin(user, &[]), CACHING_SHA2_PASSWORD);
        }
    }
}
