//! One connection's statements: from text to the plan that is executed, and what a connection keeps
//! between its statements.
//!
//! The life of a text statement:
//!
//! 1. [`Session::query`] starts the clock and clears the last statement's warnings
//!    ([`execute_text`]).
//! 2. `porpoise_sql::digest` hashes the text without its literals. The plan is found under the hash
//!    and the settings that planning depends on ([`planning_context`]), or
//! 3. the text is parsed and planned ([`porpoise_planner::plan`]), and the plan kept.
//! 4. [`Session::execute_plan`] checks privileges, takes the tables' metadata locks, and a snapshot
//!    or the transaction, and executes the plan ([`execute_plan`]).
//! 5. In autocommit mode a change is committed behind the statement ([`transaction`]); the caller
//!    holds the reply back until the commit is durable.
//!
//! A prepared statement enters at 3 ([`prepared`]). Statements that have no plan (SET, SHOW, DDL,
//! transactions, accounts) go from the parser to [`dispatch`]. [`lifecycle`] opens, resets and
//! closes a session; [`state_changes`] collects what a client wants to be told of.

mod administer;
mod counted_command;
mod dispatch;
mod event;
mod execute_plan;
mod execute_text;
mod explain;
mod explain_call;
mod handler;
mod hinted_variables;
mod lifecycle;
mod literals;
mod load;
mod planning_context;
mod prepared;
mod program;
mod set;
mod state_changes;
mod syntax_error;
mod trace;
mod transaction;
mod xa;

use std::sync::Arc;

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_core::memory::Kept;
use porpoise_mdl::in_use::InUse;
use porpoise_mdl::process::Control;
use porpoise_planner::plan::Plan;
use porpoise_session::plan_cache::SessionPlans;
use porpoise_session::shared::Shared;
use porpoise_sql::Literals;
use porpoise_storage::Commit;
use porpoise_types::{Collation, Value};

use prepared::PreparedStatement;
use transaction::TransactionState;

pub use execute_plan::expect_long;
pub use porpoise_session::session_state::SessionState;
pub use prepared::Prepared;
pub use state_changes::SessionStateChanges;

/// Who opens a session. The caller has authenticated them.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// What CONNECTION_ID() gives; from
    /// [`Engine::next_connection_id`](crate::Engine::next_connection_id).
    pub connection_id: u64,
    /// The account that was matched: the name and host pattern of CURRENT_USER().
    pub account: Option<Arc<porpoise_accounts::Account>>,
    /// The name and host that the client came with.
    pub user: CompactString,
    /// The host that the client came from, without the port.
    pub host: CompactString,
    /// The process list's Host: with the port.
    pub peer: CompactString,
    /// The database that the client asked for; `None` for none.
    pub schema: Option<CompactString>,
    /// The client's collation; `None` for the server's default.
    pub collation: Option<Collation>,
    /// CLIENT_FOUND_ROWS.
    pub found_rows: bool,
    /// CLIENT_IGNORE_SPACE.
    pub ignore_space: bool,
    /// The client takes one result a statement, at most: it has no CLIENT_MULTI_RESULTS.
    pub single_result: bool,
    /// CLIENT_INTERACTIVE: interactive_timeout counts instead of wait_timeout.
    pub interactive: bool,
    /// How its connection is encrypted; `None` if it isn't.
    pub tls: Option<Arc<porpoise_accounts::tls::ClientTls>>,
    /// By what its packets are compressed, and at which level; `None` if they aren't.
    pub compression: Option<(&'static str, u8)>,
    /// Connection attributes, as performance_schema.session_connect_attrs shows them; `None` leaves
    /// those that the connection has.
    pub attributes: Option<Vec<(String, String)>>,
    /// `@@proxy_user`: the account whose password was given, if `account` is another's.
    pub proxy_user: Option<CompactString>,
}

/// What the execution of one statement leaves to its caller.
pub struct StatementOutcome {
    /// Where the next statement of the text begins; the text's length if there is none.
    pub rest: usize,
    /// The reply must be held back until this is durable; `None` if nothing was committed.
    pub commit: Option<Commit>,
}

/// One connection's state.
pub struct Session {
    /// The session's variables, and what it holds.
    pub state: SessionState,
    pub(crate) shared: Arc<Shared>,
    pub(crate) transaction: TransactionState,
    pub(crate) control: Arc<Control>,
    /// The plan that it executes.
    plan_in_use: Arc<InUse<Plan>>,
    plans: SessionPlans,
    /// Prepared statements, by number.
    prepared: HashMap<u32, PreparedStatement>,
    /// What they take of the session's memory.
    kept_statements: Kept,
    /// The numbers of those that PREPARE made, by name in lower case.
    named: HashMap<CompactString, u32>,
    next_statement_id: u32,
    /// Buffers that each statement uses again.
    literals: Literals,
    parameters: Vec<Value>,
    pub(crate) login: Login,
    state_changes: SessionStateChanges,
    multi_statements: bool,
    programs: program::Programs,
    /// HANDLER.
    handlers: Vec<handler::OpenHandler>,
}

impl Session {
    /// The connection's number: CONNECTION_ID().
    pub fn id(&self) -> u64 {
        self.state.connection_id
    }

    /// How others see the session, and kill it.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Whether a text may hold several statements (CLIENT_MULTI_STATEMENTS); it may unless switched
    /// off.
    pub fn set_multi_statements(&mut self, on: bool) {
        self.multi_statements = on;
    }

    /// Whether a transaction is open: SERVER_STATUS_IN_TRANS.
    pub fn in_transaction(&self) -> bool {
        self.transaction.open
    }

    /// @@autocommit.
    pub fn autocommit(&self) -> bool {
        self.state.autocommit
    }

    /// The default database; `None` before the first USE.
    pub fn current_schema(&self) -> Option<&str> {
        self.state.schema.as_deref()
    }

    /// Whether a backslash is an ordinary character in texts: NO_BACKSLASH_ESCAPES.
    pub fn no_backslash_escapes(&self) -> bool {
        self.state.sql_mode.no_backslash_escapes()
    }
}
