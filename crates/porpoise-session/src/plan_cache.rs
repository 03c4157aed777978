//! The statement cache: from a statement's digest to its plan.
//!
//! Two levels. Each session keeps the plans it used lately in a small map of its own, so that the
//! usual look-up touches no shared memory; behind it all sessions of a database share a sharded
//! map. A plan is made for one version of the catalog and thrown away when the catalog has another.
//! It is chosen for the literals of the statement that comes first; where others' rows turn out to be
//! quite different in number, it is retired, and the next statement is planned for its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use parking_lot::RwLock;
use porpoise_catalog::TableId;
use porpoise_mdl::command_counts::CountedCommand;
use porpoise_planner::plan::Plan;
use porpoise_sql::{Digest, Literals, ParamMask};

/// How many plans a session keeps beside the shared ones.
const SESSION_PLANS_MAX: usize = 64;
/// How many plans one of the shared map's shards keeps.
const SHARD_PLANS_MAX: usize = 512;
const SHARDS: usize = 16;
/// A plan is kept with its text: how long the texts of a shard's plans are together, at most.
const SHARD_TEXT_BYTES_MAX: usize = 4 << 20;
/// Plans of longer texts are not kept: to plan them costs little beside reading and running them.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Plans of longer texts are kept by no session.
const SESSION_TEXT_BYTES_MAX: usize = 64 << 10;

/// What a plan was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanKey {
    /// `Digest::key` of a text, or the hash of a prepared statement's text and its parameters'
    /// types.
    pub statement: u128,
    /// The hash of what else planning depends on: schema, SQL mode, collation.
    pub context_hash: u64,
}

/// A plan, and what is needed to use it for another text of the same digest.
#[derive(Debug)]
pub struct CachedPlan {
    /// The plan; immutable, executed by any number of sessions at a time.
    pub plan: Plan,
    /// What SHOW STATUS counts the statement as.
    pub command: Option<CountedCommand>,
    /// The version of the catalog that names were resolved in. The plan is good for no other.
    pub catalog_version: u64,
    /// The statement it was made from: column names are found in the current text by way of it.
    pub sql: Box<[u8]>,
    /// The digest and the literals of `sql`; `None` for a prepared statement.
    pub source: Option<(Digest, Literals)>,
    /// Which literals are parameters.
    pub mask: Option<ParamMask>,
    /// How many characters or bytes each literal may have, where the result's columns are said to be
    /// as long as literals make them; empty where they don't depend on them.
    pub text_lengths: Box<[u32]>,
    /// It served other literals than those it was made for badly, or what is known of its tables has
    /// changed: it is not to be used again.
    pub is_retired: AtomicBool,
}

impl CachedPlan {
    fn uses(&self, table: TableId) -> bool {
        self.plan.tables.iter().any(|(used, _)| used.id == table)
    }

    /// Whether it may be used with this version of the catalog.
    pub fn is_good(&self, catalog_version: u64) -> bool {
        self.catalog_version == catalog_version && !self.is_retired.load(Ordering::Relaxed)
    }
}

/// The plans that all sessions share.
pub struct PlanCache {
    shards: [RwLock<Shard>; SHARDS],
}

#[derive(Default)]
struct Shard {
    plans: HashMap<PlanKey, Arc<CachedPlan>>,
    masks: HashMap<u128, ParamMask>,
    /// Of the plans' texts.
    text_bytes: usize,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache {
            shards: std::array::from_fn(|_| RwLock::default()),
        }
    }
}

impl PlanCache {
    fn shard(&self, statement: u128) -> &RwLock<Shard> {
        &self.shards[statement as usize % SHARDS]
    }

    /// The plan kept for a key, whatever its catalog version.
    pub fn plan(&self, key: &PlanKey) -> Option<Arc<CachedPlan>> {
        self.shard(key.statement).read().plans.get(key).cloned()
    }

    /// Which literals of statements of this shape are parameters; `None` if no such statement was
    /// planned lately.
    pub fn mask(&self, shape: u128) -> Option<ParamMask> {
        self.shard(shape).read().masks.get(&shape).cloned()
    }

    /// Keeps a shape's mask. A shard that is full is emptied first.
    pub fn keep_mask(&self, shape: u128, mask: ParamMask) {
        let mut shard = self.shard(shape).write();
        if shard.masks.len() >= SHARD_PLANS_MAX {
            shard.masks.clear();
        }
        shard.masks.insert(shape, mask);
    }

    /// How many plans that read or change a table are kept.
    pub fn plans_of(&self, table: TableId) -> usize {
        let of_shard = |shard: &RwLock<Shard>| {
            let shard = shard.read();
            shard
                .plans
                .values()
                .filter(|cached| cached.uses(table))
                .count()
        };
        self.shards.iter().map(of_shard).sum()
    }

    /// Has plans that read or change a table made anew: what they were chosen by has changed. They
    /// leave the map; sessions that keep them too find them retired.
    pub fn retire(&self, table: TableId) {
        for shard in &self.shards {
            let mut shard = shard.write();
            let mut text_bytes = 0;
            shard.plans.retain(|_, cached| {
                let is_retired = cached.uses(table);
                if is_retired {
                    cached.is_retired.store(true, Ordering::Relaxed);
                } else {
                    text_bytes += cached.sql.len();
                }
                !is_retired
            });
            shard.text_bytes = text_bytes;
        }
    }

    /// Keeps a plan, in place of an older one. A shard that is full is emptied first.
    pub fn keep(&self, key: PlanKey, plan: Arc<CachedPlan>) {
        let bytes = plan.sql.len();
        if bytes > TEXT_BYTES_MAX {
            return;
        }
        let mut shard = self.shard(key.statement).write();
        if shard.plans.len() >= SHARD_PLANS_MAX || shard.text_bytes + bytes > SHARD_TEXT_BYTES_MAX {
            shard.plans.clear();
            shard.text_bytes = 0;
        }
        shard.text_bytes += bytes;
        if let Some(older) = shard.plans.insert(key, plan) {
            shard.text_bytes -= older.sql.len();
        }
    }
}

/// The plans a session used lately.
#[derive(Default)]
pub struct SessionPlans {
    plans: HashMap<PlanKey, Arc<CachedPlan>>,
}

impl SessionPlans {
    /// A plan of this catalog version: the session's own, or a shared one.
    pub fn find(
        &mut self,
        shared: &PlanCache,
        key: PlanKey,
        catalog_version: u64,
    ) -> Option<Arc<CachedPlan>> {
        if let Some(plan) = self.plans.get(&key) {
            if plan.is_good(catalog_version) {
                return Some(plan.clone());
            }
            self.plans.remove(&key);
        }
        let plan = shared
            .plan(&key)
            .filter(|plan| plan.is_good(catalog_version))?;
        self.keep(key, plan.clone());
        Some(plan)
    }

    /// Keeps a plan. A session's plans are all dropped when there are too many.
    pub fn keep(&mut self, key: PlanKey, plan: Arc<CachedPlan>) {
        if plan.sql.len() > SESSION_TEXT_BYTES_MAX {
            return;
        }
        if self.plans.len() >= SESSION_PLANS_MAX {
            self.plans.clear();
        }
        self.plans.insert(key, plan);
    }

    /// Drops the session's plans, and with them their references to tables.
    pub fn clear(&mut self) {
        self.plans.clear();
    }
}
