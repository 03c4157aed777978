//! What all sessions of a database share: its storage, catalog, accounts, variables, locks and
//! plans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use porpoise_accounts::Accounts;
use porpoise_accounts::component::Components;
use porpoise_accounts::host_cache::HostCache;
use porpoise_accounts::server::ForeignServers;
use porpoise_catalog::Definitions;
use porpoise_catalog::{Catalog, Dictionary, VirtualTable};
use porpoise_core::variables::GlobalVariables;
use porpoise_mdl::{BlockHook, Locks};
use porpoise_storage::Store;

use crate::deadlines::Deadlines;
use crate::event_bell::EventBell;
use crate::log_tables::LogTables;
use crate::persisted::PersistedVariables;
use crate::plan_cache::PlanCache;
use crate::xa::XaBranches;

/// What all sessions of a database share.
pub struct Shared {
    /// The rows: log, versions and tree.
    pub store: Store,
    /// The current definitions. DDL replaces the catalog as a whole.
    pub catalog: ArcSwap<Catalog>,
    /// Global values of system variables.
    pub variables: GlobalVariables,
    /// Plans of statements, by digest.
    pub plans: PlanCache,
    /// Metadata locks, named locks, and the process list.
    pub locks: Locks,
    /// When statements with a time limit are to end.
    pub deadlines: Deadlines,
    /// Hosts that failed to connect, which are refused after max_connect_errors of it.
    pub hosts: HostCache,
    /// The logs as tables.
    pub log_tables: LogTables,
    /// The next connection's number.
    pub connection_ids: AtomicU64,
    /// How many statements are prepared, in all sessions.
    pub prepared_statements: Arc<AtomicU64>,
    /// The servers in front of the engine, by number.
    pub fronts: RwLock<Vec<(u64, Front)>>,
    /// Keeps definitions in storage.
    pub dictionary: Dictionary,
    /// The accounts and roles, and what is granted to them.
    pub accounts: Accounts,
    /// SET PERSIST.
    pub persisted: PersistedVariables,
    /// CREATE SERVER.
    pub servers: ForeignServers,
    /// INSTALL COMPONENT.
    pub components: Components,
    /// Wakes the thread that runs events.
    pub events: Arc<EventBell>,
    /// XA: the transaction branches, and those that are prepared.
    pub xa: XaBranches,
}

/// A server in front of the engine, as far as the engine needs it. There may be several.
#[derive(Clone)]
pub struct Front {
    /// Called when commits wait for a sync: a thread of the server must call
    /// `Engine::sync_pending`.
    pub lead: BlockHook,
    /// What the server counts itself: names of SHOW STATUS and their values. Those that end in
    /// `_time` are seconds since 1970.
    pub status: Arc<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>,
    /// What else it has to show: names of SHOW STATUS and their values. Those that take long to find
    /// out may be left out if a name isn't wanted.
    pub facts: Arc<dyn Fn(&dyn Fn(&str) -> bool) -> Vec<(&'static str, String)> + Send + Sync>,
    /// Reads the files of TLS anew; with true it is off after an error. The error says what can't
    /// be used.
    pub reload_tls: Arc<dyn Fn(bool) -> std::result::Result<(), String> + Send + Sync>,
}

impl Shared {
    /// The definitions, to be changed.
    pub fn definitions(&self) -> Definitions<'_> {
        Definitions {
            store: &self.store,
            catalog: &self.catalog,
            dictionary: &self.dictionary,
        }
    }

    /// Whether statements are written to this table of the server's own, which is a log then.
    pub fn is_logged_to(&self, own: &VirtualTable) -> bool {
        let variables = &self.variables;
        let is_on = match own.name {
            "general_log" => variables.general_log(),
            _ => variables.slow_query_log(),
        };
        own.is_log() && is_on && variables.logs_to_table()
    }

    /// How many connections there have been.
    pub fn connections(&self) -> u64 {
        self.connection_ids.load(Ordering::Relaxed) - 1
    }

    /// What the server in front of this engine has to show beside its counters. Of several servers
    /// the first speaks: they share their variables.
    pub fn server_facts(&self, wants: &dyn Fn(&str) -> bool) -> Vec<(&'static str, String)> {
        let fronts = self.fronts.read().clone();
        fronts
            .first()
            .map_or_else(Vec::new, |(_, front)| (front.facts)(wants))
    }

    /// ALTER INSTANCE RELOAD TLS, at each server.
    pub fn reload_tls(&self, disables_on_error: bool) -> std::result::Result<(), String> {
        let fronts = self.fronts.read().clone();
        fronts
            .iter()
            .try_for_each(|(_, front)| (front.reload_tls)(disables_on_error))
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
}
