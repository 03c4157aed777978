//! One database: its storage, catalog, variables and sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use porpoise_storage::{Location, SpaceId, SpaceOwner, Store};

use crate::accounts::{Account, Accounts};
use crate::catalog::dictionary::DICTIONARY_SPACE;
use crate::catalog::{Catalog, Dictionary};
use crate::error::Result;
use crate::hosts::Hosts;
use crate::session::cache::PlanCache;
use crate::session::metadata::{GlobalReadLock, MetadataLocks};
use crate::session::named_locks::NamedLocks;
use crate::session::process::Processes;
use crate::session::{Login, Session, metadata};
use crate::variables::GlobalVariables;

/// What all sessions of a database share.
pub struct Shared {
    pub store: Store,
    pub catalog: ArcSwap<Catalog>,
    pub variables: GlobalVariables,
    pub plans: PlanCache,
    pub processes: Processes,
    pub named_locks: NamedLocks,
    pub metadata_locks: Arc<MetadataLocks>,
    pub global_read_lock: GlobalReadLock,
    pub hosts: Hosts,
    connection_ids: AtomicU64,
    block_hook: RwLock<Option<BlockHook>>,
    fronts: RwLock<Vec<(u64, Front)>>,
    pub dictionary: Dictionary,
    pub accounts: Accounts,
}

/// Called on a thread that is about to wait for a lock, so that its event loop goes on elsewhere.
pub type BlockHook = Arc<dyn Fn() + Send + Sync>;

/// A server in front of the engine, as far as the engine needs it. There may be several.
#[derive(Clone)]
pub struct Front {
    /// Called when commits wait for somebody to call [`Engine::sync_pending`].
    pub lead: BlockHook,
    /// What the server counts itself: names of SHOW STATUS and their values. Those that end in `_time` are seconds since 1970.
    pub status: Arc<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>,
}

/// A running database.
#[derive(Clone)]
pub struct Engine {
    pub shared: Arc<Shared>,
}

pub struct EngineOptions {
    pub location: Location,
    /// Start-up values of system variables, by name.
    pub variables: Vec<(String, String)>,
}

impl Engine {
    /// Opens a database, making it if it isn't there.
    pub fn open(options: EngineOptions) -> Result<Engine> {
        let variables = GlobalVariables::new(&options.variables)?;
        let mut storage = match options.location {
            Location::Path(folder) => porpoise_storage::Options::path(folder),
            Location::Memory => porpoise_storage::Options::memory(),
        };
        storage.flush = variables.flush_policy().clone();
        storage.cache_bytes = variables.cache_bytes();
        let log_bytes = variables.log_bytes();
        storage.checkpoint_log_bytes = log_bytes;
        storage.log_segment_bytes = storage.log_segment_bytes.min(log_bytes / 4);
        storage.checkpoint_version_bytes = storage.checkpoint_version_bytes.min(log_bytes / 4);
        let store = Store::open(&storage)?;
        store.set_space_names(Some(Arc::new(name_of_dictionary)));
        porpoise_locks::prepare_fences();
        let metadata_locks = Arc::<MetadataLocks>::default();
        let lock_kind = variables.metadata_lock_kind();
        let (dictionary, catalog) = Dictionary::open(&store, lock_kind, &metadata_locks)?;
        let accounts = Accounts::open(&store)?;
        let shared = Shared {
            store,
            catalog: ArcSwap::from_pointee(catalog),
            dictionary,
            accounts,
            variables,
            plans: PlanCache::default(),
            processes: Processes::default(),
            named_locks: NamedLocks::default(),
            global_read_lock: GlobalReadLock::new(&metadata_locks),
            metadata_locks,
            hosts: Hosts::default(),
            connection_ids: AtomicU64::new(1),
            block_hook: RwLock::new(None),
            fronts: RwLock::default(),
        };
        let shared = Arc::new(shared);
        let weak = Arc::downgrade(&shared);
        shared
            .store
            .set_outer_waits(Some(Arc::new(move |transaction| {
                weak.upgrade().map_or_else(Vec::new, |shared| {
                    metadata::rows_behind(&shared, transaction)
                })
            })));
        let weak = Arc::downgrade(&shared);
        shared.store.set_space_names(Some(Arc::new(move |space| {
            owner_of(&*weak.upgrade()?, space)
        })));
        Ok(Engine { shared })
    }

    pub fn variables(&self) -> &GlobalVariables {
        &self.shared.variables
    }

    /// The hosts that clients dial from.
    pub fn hosts(&self) -> &Hosts {
        &self.shared.hosts
    }

    pub fn next_connection_id(&self) -> u64 {
        self.shared.connection_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The account that a user from a host is matched with.
    pub fn account_for(
        &self,
        user: &str,
        host: &str,
        ip: Option<std::net::IpAddr>,
    ) -> Option<Arc<Account>> {
        self.shared.accounts.find(user, host, ip)
    }

    /// The line of figures that COM_STATISTICS answers.
    pub fn statistics(&self) -> String {
        let started_s = self.shared.variables.started_us / 1_000_000;
        let now_s = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(started_s, |since| since.as_secs() as i64);
        format!(
            "Uptime: {}  Threads: {}",
            (now_s - started_s).max(0),
            self.shared.processes.all().len()
        )
    }

    /// From now on the engine has this server in front of it, until it is [taken away](Self::detach) by the number returned.
    pub fn attach(&self, front: Front) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mut fronts = self.shared.fronts.write();
        fronts.push((number, front));
        self.have_led(&fronts);
        number
    }

    pub fn detach(&self, number: u64) {
        let mut fronts = self.shared.fronts.write();
        fronts.retain(|(known, _)| *known != number);
        self.have_led(&fronts);
    }

    /// Commits that wait are told to every server: whose they are is known to each.
    fn have_led(&self, fronts: &[(u64, Front)]) {
        let leads: Vec<BlockHook> = fronts.iter().map(|(_, front)| front.lead.clone()).collect();
        let hook: Option<BlockHook> = match &leads[..] {
            [] => None,
            [one] => Some(one.clone()),
            _ => Some(Arc::new(move || leads.iter().for_each(|lead| lead()))),
        };
        self.shared.store.set_lead_hook(hook);
    }

    /// Opens a session for somebody whose identity has been proven.
    pub fn connect(&self, login: Login) -> Result<Session> {
        Session::open(self.clone(), login)
    }

    /// Syncs the log on this thread if commits wait and nobody is at it.
    pub fn sync_pending(&self) -> bool {
        self.shared.store.sync_pending()
    }

    pub fn set_block_hook(&self, hook: BlockHook) {
        *self.shared.block_hook.write() = Some(hook.clone());
        self.shared
            .store
            .set_block_hook(Some(Arc::new(move |blocking| {
                if blocking == porpoise_storage::Blocking::Begin {
                    hook();
                }
            })));
    }

    /// Writes a checkpoint and lets the folder go.
    pub fn close(&self) -> Result<()> {
        Ok(self.shared.store.close()?)
    }
}

impl Shared {
    /// How many connections there have been.
    pub fn connections(&self) -> u64 {
        self.connection_ids.load(Ordering::Relaxed) - 1
    }

    /// The counters of the servers in front of this engine, added up.
    pub fn server_status(&self) -> Vec<(&'static str, u64)> {
        let fronts = self.fronts.read().clone();
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for (name, count) in fronts.iter().flat_map(|(_, front)| (front.status)()) {
            match sums.iter_mut().find(|(known, _)| *known == name) {
                // Of times the last counts.
                Some((_, last)) if name.ends_with("_time") => *last = count.max(*last),
                Some((_, sum)) => *sum += count,
                None => sums.push((name, count)),
            }
        }
        sums
    }

    /// Tells the event loop that this thread is about to wait.
    pub fn before_waiting(&self) {
        if let Some(hook) = &*self.block_hook.read() {
            hook();
        }
    }
}

/// What a space is called where its damage is told of.
fn owner_of(shared: &Shared, space: SpaceId) -> Option<SpaceOwner> {
    if let Some(dictionary) = name_of_dictionary(space) {
        return Some(dictionary);
    }
    let (table, index) = shared.catalog.load().owner_of(space)?;
    Some(SpaceOwner {
        table: format!("{}.{}", table.schema, table.name),
        index: index.map(String::from),
    })
}

fn name_of_dictionary(space: SpaceId) -> Option<SpaceOwner> {
    (space == DICTIONARY_SPACE).then(|| SpaceOwner {
        table: "mysql.data_dictionary".into(),
        index: None,
    })
}
