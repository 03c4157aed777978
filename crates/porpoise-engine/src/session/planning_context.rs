//! What a plan depends on beside the statement's text and the catalog: default schema, SQL mode,
//! collation and a few variables. Plans are kept under its hash.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::LazyLock;

use compact_str::CompactString;
use porpoise_catalog::Catalog;
use porpoise_core::variables::{Isolation, PlannerSettings, SqlMode};
use porpoise_planner::{Context, Variables};
use porpoise_session::session_state::SessionState;
use porpoise_sql::Modes;
use porpoise_types::{Charset, DataType};

use crate::session::Session;

/// What planning depends on beside text and catalog, and its hash. It is kept from one statement to
/// the next, as it seldom changes.
pub(super) struct PlanningContext {
    schema: Option<CompactString>,
    settings: Settings,
    hash: u64,
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
    fn of(state: &SessionState) -> Settings {
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
    pub(super) fn of(state: &SessionState) -> PlanningContext {
        let settings = Settings::of(state);
        PlanningContext {
            hash: hash_one((&state.schema, &settings)),
            schema: state.schema.clone(),
            settings,
        }
    }

    fn is_of(&self, state: &SessionState) -> bool {
        self.schema == state.schema && self.settings == Settings::of(state)
    }
}

impl Session {
    /// The hash of what planning depends on beside text and catalog, computed anew if that has
    /// changed.
    pub(super) fn planning_context_hash(&mut self) -> u64 {
        if !self.planning_context.is_of(&self.state) {
            self.planning_context = PlanningContext::of(&self.state);
        }
        self.planning_context.hash
    }

    /// Whether plain reads lock what they read: at SERIALIZABLE, but for a statement that is a
    /// transaction by itself.
    pub(super) fn reads_lock(&self) -> bool {
        self.transaction.isolation == Isolation::Serializable
            && (self.transaction.open || !self.state.autocommit)
    }

    /// How the lexer and the parser read a text: sql_mode, and what the client asked for at login.
    pub(super) fn modes(&self) -> Modes {
        let mode = self.state.sql_mode;
        let mut modes = Modes::NONE;
        for (is_set, flag) in [
            (mode.ansi_quotes(), Modes::ANSI_QUOTES),
            (mode.pipes_as_concat(), Modes::PIPES_AS_CONCAT),
            (mode.no_backslash_escapes(), Modes::NO_BACKSLASH_ESCAPES),
            (mode.high_not_precedence(), Modes::HIGH_NOT_PRECEDENCE),
            (
                mode.ignore_space() || self.login.ignore_space,
                Modes::IGNORE_SPACE,
            ),
            (mode.real_as_float(), Modes::REAL_AS_FLOAT),
            (self.state.lower_case_names, Modes::LOWER_CASE_NAMES),
        ] {
            if is_set {
                modes = modes.with(flag);
            }
        }
        modes
    }

    /// What the planner is given for a statement whose literals are not parameters. `types` are
    /// those of its placeholders.
    pub(super) fn context<'a>(
        &'a self,
        catalog: &'a Catalog,
        sql: &'a [u8],
        types: &'a [DataType],
    ) -> Context<'a> {
        let scope = self.programs.scope.as_deref();
        Context {
            catalog,
            session: &self.state,
            temporary_tables: &self.state.temporary_tables,
            parameters: types,
            literals: &[],
            sql,
            contents: &self.shared.store,
            variables: scope.map(|scope| scope as &dyn Variables),
            trace: None,
        }
    }
}

/// A hash that nobody outside of the process can know.
pub(super) fn hash_one(what: impl Hash) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SEED.hash_one(what)
}
