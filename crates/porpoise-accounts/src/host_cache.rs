//! The host cache: for each host that clients connect from over a network, how its handshakes ended
//! (MySQL 8.4 manual, 7.1.12.3).
//!
//! ```text
//!   a client dials ─► blocked? ── yes ─► error 1129
//!                        │ no
//!                        ├─ breaks off in the handshake ─► one more of max_connect_errors in a row
//!                        └─ is let in ──────────────────► none in a row
//! ```
//!
//! Clients on this machine (loopback, Unix sockets, shared memory) are not in it, and never
//! blocked. The name of a host is kept with it, once it was looked up; with `skip_name_resolve` a
//! host is an address. `host_cache_size` hosts are kept; the one that was seen longest ago is
//! evicted.

use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

/// What is known of one host. Times are in UTC microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// The name, if there is one that leads back to the address.
    pub name: Option<Arc<str>>,
    /// Whether `name` is what there is to know: a lookup has ended, not by chance without a name.
    pub is_validated: bool,
    /// How many lookups failed, by [`NameOutcome::failure`].
    pub lookup_errors: [u64; LOOKUP_ERRORS],
    /// Handshakes that broke off since the last successful one.
    pub errors_in_a_row: u64,
    /// Connections refused with error 1129, because the host was blocked.
    pub blocked: u64,
    /// How many connections were refused, by [`Refusal`] in its order; see [`Host::count`].
    pub errors: [u64; ERRORS],
    /// When the first client connected from there.
    pub first_seen_us: i64,
    /// When the last client connected from there.
    pub last_seen_us: i64,
    /// When a connection first failed; `None` if none has.
    pub first_error_us: Option<i64>,
    /// When a connection last failed; `None` if none has.
    pub last_error_us: Option<i64>,
}

/// How the lookup of a host's name has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOutcome {
    /// With a name that leads back to the address.
    Named(Arc<str>),
    /// No name was found now, but may be later.
    NameTransient,
    /// There is no name.
    NamePermanent,
    /// The name begins like an address.
    Format,
    /// The name's addresses were not found now, but may be later.
    AddressTransient,
    /// The name has no addresses.
    AddressPermanent,
    /// The name has other addresses.
    NotConfirmed,
}

impl NameOutcome {
    /// Which of the failures it is, in the order of performance_schema.host_cache's columns.
    pub fn failure(&self) -> Option<usize> {
        match self {
            NameOutcome::Named(_) => None,
            NameOutcome::NameTransient => Some(0),
            NameOutcome::NamePermanent => Some(1),
            NameOutcome::Format => Some(2),
            NameOutcome::AddressTransient => Some(3),
            NameOutcome::AddressPermanent => Some(4),
            NameOutcome::NotConfirmed => Some(5),
        }
    }

    fn is_final(&self) -> bool {
        !matches!(
            self,
            NameOutcome::NameTransient | NameOutcome::AddressTransient
        )
    }
}

const LOOKUP_ERRORS: usize = 6;

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The handshake was broken off, wasn't one, or took too long: the kind that blocks.
    Handshake,
    /// A wrong password, or a plugin that could not be agreed on.
    Authentication,
    /// The account had as many connections as MAX_USER_CONNECTIONS allows.
    MaxUserConnections,
    /// The account had as many connections in an hour as MAX_CONNECTIONS_PER_HOUR allows.
    MaxConnectionsPerHour,
    /// The schema named in the handshake doesn't exist, or the account may not use it.
    DefaultDatabase,
    /// There is no account for users from there.
    NoAccount,
}

const ERRORS: usize = 6;

/// All hosts.
#[derive(Default)]
pub struct HostCache {
    by_address: Mutex<HashMap<IpAddr, Host>>,
}

fn now_us() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}

impl Host {
    /// How many connections from this host were refused for this reason.
    pub fn count(&self, why: Refusal) -> u64 {
        self.errors[why as usize]
    }

    fn fail(&mut self, now_us: i64) {
        self.first_error_us.get_or_insert(now_us);
        self.last_error_us = Some(now_us);
    }
}

impl HostCache {
    /// A client connects from there. False: the host is blocked, after `errors_most` handshakes in
    /// a row that broke off. At most `hosts_most` hosts are kept.
    pub fn admits(&self, address: IpAddr, errors_most: u64, hosts_most: usize) -> bool {
        let now_us = now_us();
        let mut hosts = self.by_address.lock();
        if let Some(host) = hosts.get_mut(&address) {
            host.last_seen_us = now_us;
            let is_blocked = host.errors_in_a_row >= errors_most;
            if is_blocked {
                host.blocked += 1;
                host.fail(now_us);
            }
            return !is_blocked;
        }
        while hosts.len() >= hosts_most.max(1) {
            let oldest = hosts.iter().min_by_key(|(_, host)| host.last_seen_us);
            let Some(oldest) = oldest.map(|(address, _)| *address) else {
                break;
            };
            hosts.remove(&oldest);
        }
        if hosts_most > 0 {
            let host = Host {
                first_seen_us: now_us,
                last_seen_us: now_us,
                ..Host::default()
            };
            hosts.insert(address, host);
        }
        true
    }

    /// The host's name, `None` for one without; `None` where that isn't known yet.
    pub fn name(&self, address: IpAddr) -> Option<Option<Arc<str>>> {
        let hosts = self.by_address.lock();
        let host = hosts.get(&address).filter(|host| host.is_validated)?;
        Some(host.name.clone())
    }

    /// A lookup of the host's name has ended.
    pub fn record_name(&self, address: IpAddr, outcome: &NameOutcome) {
        if let Some(host) = self.by_address.lock().get_mut(&address) {
            host.is_validated = outcome.is_final();
            host.name = match outcome {
                NameOutcome::Named(name) => Some(name.clone()),
                _ => None,
            };
            if let Some(failure) = outcome.failure() {
                host.lookup_errors[failure] += 1;
                host.fail(now_us());
            }
        }
    }

    /// A connection from there was refused.
    pub fn record_refusal(&self, address: IpAddr, why: Refusal) {
        if let Some(host) = self.by_address.lock().get_mut(&address) {
            host.errors[why as usize] += 1;
            host.errors_in_a_row += u64::from(why == Refusal::Handshake);
            host.fail(now_us());
        }
    }

    /// A client from there has logged in.
    pub fn record_success(&self, address: IpAddr) {
        if let Some(host) = self.by_address.lock().get_mut(&address) {
            host.errors_in_a_row = 0;
        }
    }

    /// TRUNCATE TABLE performance_schema.host_cache, FLUSH HOSTS.
    pub fn clear(&self) {
        self.by_address.lock().clear();
    }

    /// All of them, by address.
    pub fn all(&self) -> Vec<(IpAddr, Host)> {
        let mut all: Vec<_> = self
            .by_address
            .lock()
            .iter()
            .map(|(address, host)| (*address, host.clone()))
            .collect();
        all.sort_by_key(|(address, _)| *address);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn a_host_is_blocked_after_errors_in_a_row_until_it_is_forgotten() {
        let hosts = HostCache::default();
        for _ in 0..2 {
            assert!(hosts.admits(host(1), 3, 8));
            hosts.record_refusal(host(1), Refusal::Handshake);
        }
        assert!(hosts.admits(host(1), 3, 8));
        hosts.record_success(host(1));
        for _ in 0..3 {
            assert!(hosts.admits(host(1), 3, 8));
            hosts.record_refusal(host(1), Refusal::Handshake);
        }
        assert!(!hosts.admits(host(1), 3, 8));
        assert!(hosts.admits(host(2), 3, 8));
        let [(_, blocked), _] = &hosts.all()[..] else {
            panic!("two hosts")
        };
        assert_eq!((blocked.errors_in_a_row, blocked.blocked), (3, 1));
        assert_eq!(blocked.count(Refusal::Handshake), 5);
        hosts.clear();
        assert!(hosts.admits(host(1), 3, 8));
    }

    #[test]
    fn a_wrong_password_blocks_nobody() {
        let hosts = HostCache::default();
        for _ in 0..9 {
            assert!(hosts.admits(host(1), 3, 8));
            hosts.record_refusal(host(1), Refusal::Authentication);
        }
    }

    #[test]
    fn a_name_is_kept_unless_the_lookup_failed_by_chance() {
        let hosts = HostCache::default();
        assert!(hosts.admits(host(1), 3, 8));
        assert_eq!(hosts.name(host(1)), None);
        hosts.record_name(host(1), &NameOutcome::NameTransient);
        assert_eq!(hosts.name(host(1)), None);
        hosts.record_name(host(1), &NameOutcome::Named("db".into()));
        assert_eq!(hosts.name(host(1)), Some(Some("db".into())));
        hosts.record_name(host(1), &NameOutcome::NotConfirmed);
        assert_eq!(hosts.name(host(1)), Some(None));
        assert_eq!(hosts.all()[0].1.lookup_errors, [1, 0, 0, 0, 0, 1]);
        hosts.clear();
        assert_eq!(hosts.name(host(1)), None);
    }

    #[test]
    fn the_cache_is_bounded() {
        let hosts = HostCache::default();
        for number in 0..100 {
            assert!(hosts.admits(host(number), 3, 8));
        }
        assert_eq!(hosts.all().len(), 8);
        let without = HostCache::default();
        assert!(without.admits(host(1), 3, 0) && without.all().is_empty());
    }
}
