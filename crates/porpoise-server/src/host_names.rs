//! Names of hosts that clients connect from, looked up by threads that do nothing else.
//!
//! ```text
//!   a client dials ─► its name is in the host cache ─► known
//!                 └─► greeted; its login waits ─► a thread looks up ─► the host cache
//!                                     └── too long: it goes on by its address ──┘
//! ```
//!
//! A name counts only if it leads back to the address: whoever runs the reverse zone of an address
//! may write any name there. A resolver that hangs holds up these threads and the logins from hosts
//! without a name in the cache, until half of `connect_timeout` is over; then they go on with the
//! address alone. Clients on this machine are never looked up.
//!
//! MySQL 8.4 manual, 7.1.12.3 (DNS Lookups and the Host Cache).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use parking_lot::Mutex;
use porpoise_engine::Shared;
use porpoise_engine::host_cache::NameOutcome;

/// Lookups at the same time.
const THREADS_MAX: usize = 8;
/// Addresses that wait for a thread. Clients from others go on by their addresses.
const WAITING_MAX: usize = 1024;

/// Why a resolver doesn't answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolveError {
    /// It may answer another time.
    Transient,
    /// There is no answer.
    Permanent,
}

/// What names and addresses are asked of. Its calls may take any time.
pub(crate) trait Resolve: Send + Sync {
    /// The name of an address.
    fn name_of(&self, address: IpAddr) -> Result<String, ResolveError>;
    /// The addresses of a name.
    fn addresses_of(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError>;
}

/// The operating system's resolver: `/etc/hosts`, DNS and what else it is told to ask.
struct SystemResolver;

impl From<dns_lookup::LookupError> for ResolveError {
    fn from(error: dns_lookup::LookupError) -> ResolveError {
        match error.kind() {
            dns_lookup::LookupErrorKind::Again | dns_lookup::LookupErrorKind::System => {
                ResolveError::Transient
            }
            _ => ResolveError::Permanent,
        }
    }
}

impl Resolve for SystemResolver {
    fn name_of(&self, address: IpAddr) -> Result<String, ResolveError> {
        let socket = SocketAddr::new(address, 0);
        let (name, _) = dns_lookup::getnameinfo(&socket, libc::NI_NAMEREQD)?;
        Ok(name)
    }

    fn addresses_of(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let found = dns_lookup::getaddrinfo(Some(name), None, None)?;
        Ok(found.flatten().map(|one| one.sockaddr.ip()).collect())
    }
}

/// Whether a name begins like an address (`1.2.example.com`), which could pass for one in an
/// account's host.
fn looks_like_address(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    let digits = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    digits || name.parse::<IpAddr>().is_ok()
}

/// Looks a name up, there and back.
fn look_up(resolver: &dyn Resolve, address: IpAddr) -> NameOutcome {
    let name = match resolver.name_of(address) {
        Ok(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Err(ResolveError::Transient) => return NameOutcome::NameTransient,
        Err(ResolveError::Permanent) => return NameOutcome::NamePermanent,
    };
    if looks_like_address(&name) {
        return NameOutcome::Format;
    }
    match resolver.addresses_of(&name) {
        Ok(found) if found.iter().any(|one| one.to_canonical() == address) => {
            NameOutcome::Named(name.into())
        }
        Ok(_) => NameOutcome::NotConfirmed,
        Err(ResolveError::Transient) => NameOutcome::AddressTransient,
        Err(ResolveError::Permanent) => NameOutcome::AddressPermanent,
    }
}

/// One client's wait for a name.
#[derive(Default)]
pub(crate) struct Lookup(Mutex<LookupState>);

#[derive(Default)]
struct LookupState {
    /// The host's name, or its address as text.
    host: Option<Arc<str>>,
    wake: Option<Box<dyn Fn() + Send>>,
}

impl Lookup {
    /// The host, once it is known.
    pub fn host(&self) -> Option<Arc<str>> {
        self.0.lock().host.clone()
    }

    /// Has `wake` called when the host is known; at once if it is.
    pub fn on_found(&self, wake: Box<dyn Fn() + Send>) {
        let mut state = self.0.lock();
        if state.host.is_some() {
            drop(state);
            return wake();
        }
        state.wake = Some(wake);
    }

    fn finish(&self, host: Arc<str>) {
        let mut state = self.0.lock();
        state.host = Some(host);
        let wake = state.wake.take();
        drop(state);
        if let Some(wake) = wake {
            wake();
        }
    }
}

/// Whose client it is, as accounts are matched with it.
pub(crate) enum ClientHost {
    /// A name, or an address as text.
    Known(Arc<str>),
    Pending(Arc<Lookup>),
}

/// The lookups under way.
pub(crate) struct HostNames {
    resolver: Arc<dyn Resolve>,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    queue: VecDeque<IpAddr>,
    waiting: HashMap<IpAddr, Vec<Arc<Lookup>>>,
    threads: usize,
}

impl Default for HostNames {
    fn default() -> HostNames {
        HostNames::new(Arc::new(SystemResolver))
    }
}

impl HostNames {
    pub fn new(resolver: Arc<dyn Resolve>) -> HostNames {
        HostNames {
            resolver,
            requests: Mutex::default(),
        }
    }

    /// The host of a client at an address: from the host cache, or looked up.
    pub fn find(self: &Arc<HostNames>, address: IpAddr, shared: &Arc<Shared>) -> ClientHost {
        if let Some(name) = shared.hosts.name(address) {
            return ClientHost::Known(name.unwrap_or_else(|| address.to_string().into()));
        }
        let mut requests = self.requests.lock();
        let lookup = Arc::<Lookup>::default();
        if let Some(waiting) = requests.waiting.get_mut(&address) {
            waiting.push(lookup.clone());
            return ClientHost::Pending(lookup);
        }
        if requests.queue.len() >= WAITING_MAX {
            return ClientHost::Known(address.to_string().into());
        }
        requests.waiting.insert(address, vec![lookup.clone()]);
        requests.queue.push_back(address);
        if requests.threads < THREADS_MAX {
            requests.threads += 1;
            drop(requests);
            self.start_thread(Arc::downgrade(shared));
        }
        ClientHost::Pending(lookup)
    }

    fn start_thread(self: &Arc<HostNames>, shared: Weak<Shared>) {
        let names = self.clone();
        let spawned = std::thread::Builder::new()
            .name("resolver".to_string())
            .spawn(move || while names.look_up_next(&shared) {});
        if let Err(error) = spawned {
            // The next lookup tries again; the logins go on when they have waited long enough.
            tracing::error!("can't start a thread: {error}");
            self.requests.lock().threads -= 1;
        }
    }

    /// Looks the next address up; false if none waits, and the thread ends.
    fn look_up_next(&self, shared: &Weak<Shared>) -> bool {
        let mut requests = self.requests.lock();
        let Some(address) = requests.queue.pop_front() else {
            requests.threads -= 1;
            return false;
        };
        drop(requests);
        let outcome = look_up(&*self.resolver, address);
        if let Some(shared) = shared.upgrade() {
            shared.hosts.record_name(address, &outcome);
        }
        let host = match outcome {
            NameOutcome::Named(name) => name,
            _ => address.to_string().into(),
        };
        let waiting = self.requests.lock().waiting.remove(&address);
        for lookup in waiting.into_iter().flatten() {
            lookup.finish(host.clone());
        }
        true
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A resolver of made-up hosts: addresses and their names, names and their addresses.
    #[derive(Default)]
    pub struct MadeUp {
        pub names: HashMap<IpAddr, String>,
        pub addresses: HashMap<String, Vec<IpAddr>>,
        /// Lookups wait while somebody holds it.
        pub hangs: Arc<Mutex<()>>,
    }

    impl MadeUp {
        pub fn with(mut self, address: &str, name: &str, back: &[&str]) -> MadeUp {
            self.names.insert(address.parse().unwrap(), name.into());
            let back = back.iter().map(|one| one.parse().unwrap()).collect();
            self.addresses.insert(name.to_ascii_lowercase(), back);
            self
        }
    }

    impl Resolve for MadeUp {
        fn name_of(&self, address: IpAddr) -> Result<String, ResolveError> {
            drop(self.hangs.lock());
            let name = self.names.get(&address).cloned();
            name.ok_or(ResolveError::Permanent)
        }

        fn addresses_of(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
            let found = self.addresses.get(name).cloned();
            found.ok_or(ResolveError::Transient)
        }
    }

    #[test]
    fn a_name_counts_if_it_leads_back() {
        let hosts = MadeUp::default()
            .with("192.0.2.1", "DB1.example.com", &["192.0.2.9", "192.0.2.1"])
            .with("192.0.2.2", "db1.example.com.evil", &["192.0.2.1"])
            .with("192.0.2.3", "192.example.com", &["192.0.2.3"])
            .with("192.0.2.4", "10.0.0.1", &["192.0.2.4"]);
        let outcome = |address: &str| look_up(&hosts, address.parse().unwrap());
        let named = NameOutcome::Named("db1.example.com".into());
        assert_eq!(outcome("192.0.2.1"), named);
        assert_eq!(outcome("192.0.2.2"), NameOutcome::NotConfirmed);
        assert_eq!(outcome("192.0.2.3"), NameOutcome::Format);
        assert_eq!(outcome("192.0.2.4"), NameOutcome::Format);
        assert_eq!(outcome("192.0.2.5"), NameOutcome::NamePermanent);
        let mut lost = MadeUp::default();
        lost.names.insert([192, 0, 2, 1].into(), "gone".into());
        let outcome = look_up(&lost, [192, 0, 2, 1].into());
        assert_eq!(outcome, NameOutcome::AddressTransient);
    }
}
