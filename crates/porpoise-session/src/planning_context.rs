//! What a plan depends on beside the statement's text and the catalog: default schema, SQL mode,
//! collation and a few variables. Plans are kept under its hash.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::LazyLock;

use compact_str::CompactString;
use porpoise_core::variables::{PlannerSettings, SessionVars, SqlMode};
use porpoise_types::Charset;

/// What planning depends on beside text and catalog, and its hash. It is kept from one statement to
/// the next, as it seldom changes.
pub(crate) struct PlanningContext {
    schema: Option<CompactString>,
    settings: Settings,
    /// Its hash.
    pub hash: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Settings {
    sql_mode: SqlMode,
    collation: u16,
    client_charset: Charset,
    reads_lock: bool,
    div_precision_increment: u8,
    sql_safe_updates: bool,
    sql_select_limit: u64,
    planner: PlannerSettings,
}

impl Settings {
    fn of(state: &SessionVars) -> Settings {
        Settings {
            sql_mode: state.sql_mode,
            collation: state.collation.id(),
            client_charset: state.client_charset,
            reads_lock: state.statement.reads_lock,
            div_precision_increment: state.div_precision_increment,
            sql_safe_updates: state.sql_safe_updates,
            sql_select_limit: state.sql_select_limit,
            planner: state.planner,
        }
    }
}

impl PlanningContext {
    pub fn of(state: &SessionVars) -> PlanningContext {
        let settings = Settings::of(state);
        PlanningContext {
            hash: hash_one((&state.schema, &settings)),
            schema: state.schema.clone(),
            settings,
        }
    }

    pub fn is_of(&self, state: &SessionVars) -> bool {
        self.schema == state.schema && self.settings == Settings::of(state)
    }
}

/// A hash that nobody outside of the process can know.
pub fn hash_one(what: impl Hash) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SEED.hash_one(what)
}
