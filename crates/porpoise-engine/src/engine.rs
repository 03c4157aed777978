//! One database: its storage, catalog, variables and sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use porpoise_accounts::component::Components;
use porpoise_accounts::host_cache::HostCache;
use porpoise_accounts::server::ForeignServers;
use porpoise_accounts::{Account, Accounts};
use porpoise_catalog::Dictionary;
use porpoise_catalog::dictionary::DICTIONARY_SPACE;
use porpoise_core::error::Result;
use porpoise_core::password_validation;
use porpoise_core::variables::GlobalVariables;
use porpoise_mdl::command_counts::CountedCommand;
use porpoise_mdl::{self as mdl, BlockHook, Locks, MetadataLocks};
use porpoise_planner::bind_table_expression;
use porpoise_session::deadlines::Deadlines;
use porpoise_session::log_tables::LogTables;
use porpoise_session::persisted::PersistedVariables;
use porpoise_session::plan_cache::PlanCache;
use porpoise_session::xa::XaBranches;
use porpoise_storage::{Location, SpaceId, SpaceOwner, Store};

use crate::session::{Login, Session};
use crate::{event_scheduler, statistics_refresh};
pub use porpoise_session::shared::{Front, Shared};

/// A running database.
#[derive(Clone)]
pub struct Engine {
    /// What the engine's sessions share.
    pub shared: Arc<Shared>,
    /// Whether `event_scheduler` was given when it was opened.
    says_scheduler: bool,
    /// Ends the refresh of statistics with the last clone.
    _refresh: statistics_refresh::Ending,
    /// Ends the running of events with the last clone.
    _events: Arc<event_scheduler::Ending>,
}

/// How to open a database.
pub struct EngineOptions {
    /// Where the data lies: a folder, or memory.
    pub location: Location,
    /// Start-up values of system variables, by name.
    pub variables: Vec<(String, String)>,
}

/// Whether an option is that variable, written with dashes or underscores.
fn is_lower_case_table_names(name: &str) -> bool {
    name.replace('-', "_")
        .eq_ignore_ascii_case("lower_case_table_names")
}

/// How many bytes of versions make a checkpoint due. Of a large table each checkpoint writes about
/// one page for each row that changed, and most pages of an index: the more rows at a time, the less
/// is written for each. Who gives the cache much memory gives versions a part of it; those under way
/// and the newest take up to three times this, as reads that began before keep them.
fn version_bytes(cache_bytes: u64, log_bytes: u64) -> u64 {
    const SMALLEST: u64 = 16 << 20;
    const LARGEST: u64 = 64 << 20;
    (cache_bytes / 16)
        .clamp(SMALLEST, LARGEST)
        .min(log_bytes / 2)
}

/// Those of the persisted values that a start sets. Of a variable that there isn't, which another
/// version may have written, it goes on without (MySQL 8.4 manual, 7.1.9.3).
fn known(mut persisted: Vec<(String, String)>) -> Vec<(String, String)> {
    persisted.retain(|(name, _)| {
        let is_known = porpoise_core::variables::find(name).is_some();
        if !is_known {
            tracing::warn!(
                "Currently unknown variable '{name}' was read from the persisted config file"
            );
        }
        is_known
    });
    persisted
}

impl Engine {
    /// Opens a database, making it if it isn't there.
    pub fn open(options: EngineOptions) -> Result<Engine> {
        let mut given = options.variables;
        let mut variables = GlobalVariables::new(&given)?;
        let folder = match &options.location {
            Location::Path(folder) => Some(folder.as_path()),
            Location::Memory => None,
        };
        let loads_persisted = variables.get_u64("persisted_globals_load") == 1;
        let persisted =
            PersistedVariables::read(folder).or_else(|error| match loads_persisted {
                true => Err(error),
                false => {
                    tracing::warn!("{}", error.message());
                    Ok(PersistedVariables::none(folder))
                }
            })?;
        let log_tables = LogTables::new(folder);
        if loads_persisted {
            let kept = known(persisted.all());
            if !kept.is_empty() {
                given.extend(kept);
                variables = GlobalVariables::new(&given)?;
            }
        }
        let mut storage = match options.location {
            Location::Path(folder) => porpoise_storage::Options::path(folder),
            Location::Memory => porpoise_storage::Options::memory(),
        };
        storage.flush = variables.flush_policy().clone();
        storage.cache_bytes = variables.cache_bytes();
        let log_bytes = variables.log_bytes();
        storage.checkpoint_log_bytes = log_bytes;
        storage.log_segment_bytes = storage.log_segment_bytes.min(log_bytes / 4);
        storage.checkpoint_version_bytes = version_bytes(storage.cache_bytes as u64, log_bytes);
        storage.spill_bytes = variables.transaction_bytes();
        let store = Store::open(&storage)?;
        store.set_space_names(Some(Arc::new(name_of_dictionary)));
        porpoise_infoschema::register();
        porpoise_locks::prepare_fences();
        let metadata_locks = Arc::<MetadataLocks>::default();
        // Who doesn't say takes a database as it is.
        let is_said = |(name, _): &(String, String)| is_lower_case_table_names(name);
        let wanted = given.iter().any(is_said);
        let wanted = wanted.then(|| variables.get_u64("lower_case_table_names") == 1);
        let binder = bind_table_expression;
        let (dictionary, catalog) = Dictionary::open(&store, &metadata_locks, binder, wanted)?;
        let lowers_names = u8::from(dictionary.lowers_names).to_string();
        variables.learn("lower_case_table_names", &lowers_names);
        let xa = XaBranches::open(&store, &catalog)?;
        let accounts = Accounts::open(&store)?;
        let components = Components::open(&store)?;
        let servers = ForeignServers::open(&store)?;
        let validation = &variables.password_validation;
        validation.set_installed(components.has(password_validation::COMPONENT));
        let shared = Shared {
            locks: Locks::new(metadata_locks, store.clone()),
            store,
            catalog: ArcSwap::from_pointee(catalog),
            dictionary,
            accounts,
            components,
            servers,
            persisted,
            xa,
            variables,
            plans: PlanCache::default(),
            deadlines: Deadlines::default(),
            hosts: HostCache::default(),
            log_tables,
            connection_ids: AtomicU64::new(1),
            prepared_statements: Arc::default(),
            fronts: RwLock::default(),
            events: Arc::default(),
        };
        let shared = Arc::new(shared);
        let weak = Arc::downgrade(&shared);
        shared
            .store
            .set_external_waits(Some(Arc::new(move |transaction| {
                weak.upgrade().map_or_else(Vec::new, |shared| {
                    mdl::rows_behind(&shared.locks, transaction)
                })
            })));
        let weak = Arc::downgrade(&shared);
        shared.store.set_space_names(Some(Arc::new(move |space| {
            owner_of(&*weak.upgrade()?, space)
        })));
        let says_scheduler = given.iter().any(|(name, _)| {
            name.replace('-', "_")
                .eq_ignore_ascii_case("event_scheduler")
        });
        let _refresh = statistics_refresh::start(&shared);
        let _events = event_scheduler::start(&shared);
        Ok(Engine {
            shared,
            says_scheduler,
            _refresh,
            _events,
        })
    }

    /// The global values of system variables.
    pub fn variables(&self) -> &GlobalVariables {
        &self.shared.variables
    }

    /// The logs as tables.
    pub fn log_tables(&self) -> &LogTables {
        &self.shared.log_tables
    }

    /// The hosts that clients dial from.
    pub fn hosts(&self) -> &HostCache {
        &self.shared.hosts
    }

    /// A number for a connection that no other connection of this engine has had.
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

    /// The plugin by which a user is asked for a password that has no account, or none with a
    /// password: the same at each try.
    pub fn decoy_plugin(&self, user: &str) -> &'static str {
        self.shared.accounts.decoy_plugin(user)
    }

    /// Whether any account has a second password.
    pub fn any_second_password(&self) -> bool {
        self.shared.accounts.any_second_password()
    }

    /// Whether any account is for users from this host.
    pub fn hears_host(&self, host: &str, ip: Option<std::net::IpAddr>) -> bool {
        self.shared.accounts.accepts_host(host, ip)
    }

    /// The line of figures that COM_STATISTICS returns. Definitions of tables stay open: all count
    /// as opened.
    pub fn statistics(&self) -> String {
        let started_s = self.shared.variables.started_us / 1_000_000;
        let now_s = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(started_s, |since| since.as_secs() as i64);
        let uptime_s = (now_s - started_s).max(0);
        let of_servers = self.shared.server_status();
        let counted = |wanted: &str| {
            let found = of_servers.iter().find(|(name, _)| *name == wanted);
            found.map_or(0, |(_, count)| *count)
        };
        let questions = counted("Questions");
        let sessions = &self.shared.locks.sessions;
        let tables = self.shared.catalog.load().relation_count();
        format!(
            "Uptime: {uptime_s}  Threads: {}  Questions: {questions}  Slow queries: {}  \
             Opens: {tables}  Flush tables: {}  Open tables: {tables}  \
             Queries per second avg: {:.3}",
            sessions.all().iter().filter(|one| one.has_client()).count(),
            counted("Slow_queries"),
            sessions.counts()[CountedCommand::Flush as usize],
            questions as f64 / uptime_s.max(1) as f64,
        )
    }

    /// From now on the engine has this server in front of it, until it is [taken
    /// away](Self::detach) by the number returned.
    pub fn attach(&self, front: Front) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mut fronts = self.shared.fronts.write();
        fronts.push((number, front));
        self.have_led(&fronts);
        if fronts.len() == 1 && !self.says_scheduler {
            // An embedded database runs events if it is told to, a server unless it is told not to.
            self.shared.variables.learn("event_scheduler", "ON");
            self.shared.events.ring();
        }
        number
    }

    /// Ends what `attach` began under this number.
    pub fn detach(&self, number: u64) {
        let mut fronts = self.shared.fronts.write();
        fronts.retain(|(known, _)| *known != number);
        self.have_led(&fronts);
    }

    /// Has every server called when commits wait: each knows which of them are its own.
    fn have_led(&self, fronts: &[(u64, Front)]) {
        let leads: Vec<BlockHook> = fronts.iter().map(|(_, front)| front.lead.clone()).collect();
        let hook: Option<BlockHook> = match &leads[..] {
            [] => None,
            [one] => Some(one.clone()),
            _ => Some(Arc::new(move || leads.iter().for_each(|lead| lead()))),
        };
        self.shared.store.set_leader_hook(hook);
    }

    /// Opens a session for a client that the caller has authenticated.
    pub fn connect(&self, login: Login) -> Result<Session> {
        Session::open(Arc::clone(&self.shared), login)
    }

    /// Syncs the log on this thread if commits wait and nobody is at it.
    pub fn sync_pending(&self) -> bool {
        self.shared.store.sync_pending()
    }

    /// Has `hook` called by a thread that is about to wait for a lock: what it holds back, others
    /// may wait for.
    pub fn set_block_hook(&self, hook: BlockHook) {
        self.shared.locks.set_block_hook(hook.clone());
        self.shared
            .store
            .set_wait_hook(Some(Arc::new(move |blocking| {
                if blocking == porpoise_storage::WaitPhase::Begin {
                    hook();
                }
            })));
    }

    /// Has `hook` called by a thread that is about to wait for the disk, for a moment.
    pub fn set_read_hook(&self, hook: BlockHook) {
        self.shared.store.set_read_hook(Some(hook));
    }

    /// Has `hook` called by a thread whose statement is likely to compute for long.
    pub fn set_compute_hook(&self, hook: BlockHook) {
        self.shared.locks.set_compute_hook(hook);
    }

    /// Writes a checkpoint and lets the folder go.
    pub fn close(&self) -> Result<()> {
        Ok(self.shared.store.close()?)
    }
}

/// What a space is called in messages about its damage.
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

#[cfg(test)]
mod tests {
    use super::version_bytes;

    #[test]
    fn checkpoints_are_larger_with_a_larger_cache_and_small_with_a_small_log() {
        const MIB: u64 = 1 << 20;
        assert_eq!(version_bytes(36 * MIB, 64 * MIB), 16 * MIB);
        assert_eq!(version_bytes(512 * MIB, 128 * MIB), 32 * MIB);
        assert_eq!(version_bytes(1024 * MIB, 64 * MIB), 32 * MIB);
        assert_eq!(version_bytes(64 * 1024 * MIB, 1024 * MIB), 64 * MIB);
        assert_eq!(version_bytes(36 * MIB, 8 * MIB), 4 * MIB);
    }
}
