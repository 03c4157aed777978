//! What parsing and planning are told of a session.

use porpoise_catalog::Catalog;
use porpoise_core::variables::Isolation;
use porpoise_planner::{Context, Variables};
use porpoise_programs::functions::PROGRAMS;
use porpoise_sql::Modes;
use porpoise_types::DataType;

use crate::session::Session;

impl Session {
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
            programs: Some(&PROGRAMS),
            variables: scope.map(|scope| scope as &dyn Variables),
            trace: None,
        }
    }
}
