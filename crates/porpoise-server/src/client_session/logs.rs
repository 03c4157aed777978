//! What a client's commands leave in the general log and the slow query log.

use std::time::{Duration, Instant};

use porpoise_protocol::command::{Command, Execute};

use crate::query_logs::{Client, SlowStatement};

use super::ClientSession;

/// When a statement began, where somebody wants to know how long it takes.
#[derive(Clone, Copy)]
pub(super) struct Timing(Option<Instant>);

impl ClientSession {
    /// Tells the general log of a command, if there is one.
    #[inline]
    pub(super) fn log_command(&self, command: &Command<'_>) {
        if self.server.engine.variables().general_log() {
            self.write_command(command);
        }
    }

    #[cold]
    fn write_command(&self, command: &Command<'_>) {
        let prepared;
        let (name, argument): (&str, &[u8]) = match command {
            Command::Query(query) => ("Query", query.sql),
            Command::StmtPrepare(sql) => ("Prepare", sql),
            Command::StmtExecute(execute) => {
                prepared = self.prepared_text(execute);
                ("Execute", &prepared)
            }
            Command::InitDb(name) => ("Init DB", name),
            Command::FieldList { table, .. } => ("Field List", table),
            Command::ChangeUser(change) => ("Change user", change.user),
            Command::Quit => ("Quit", b""),
            Command::Ping => ("Ping", b""),
            Command::Statistics => ("Statistics", b""),
            Command::ProcessInfo => ("Processlist", b""),
            Command::ProcessKill(_) => ("Kill", b""),
            Command::Shutdown => ("Shutdown", b""),
            Command::ResetConnection => ("Reset Connection", b""),
            Command::StmtReset(_) => ("Reset stmt", b""),
            Command::StmtClose(_) => ("Close stmt", b""),
            Command::StmtFetch { .. } => ("Fetch", b""),
            Command::StmtSendLongData { .. } => ("Long Data", b""),
            Command::SetMultiStatements(_) => ("Set option", b""),
            Command::Debug => ("Debug", b""),
            Command::Refresh(_) | Command::Unsupported(_) => ("Error", b""),
        };
        self.write_to_general_log(name, argument);
    }

    /// Tells the general log that the client has logged in, if there is one.
    pub fn log_connect(&self) {
        if !self.server.engine.variables().general_log() {
            return;
        }
        let state = &self.session.state;
        let schema = self.session.current_schema().unwrap_or_default();
        let means = self.peer.means();
        let argument = format!("{}@{} on {schema} using {means}", state.user, state.host);
        self.write_to_general_log("Connect", argument.as_bytes());
    }

    fn write_to_general_log(&self, command: &str, argument: &[u8]) {
        if self.session.state.general_log_off {
            return;
        }
        let engine = &self.server.engine;
        let (globals, tables) = (engine.variables(), engine.log_tables());
        let logs = &self.server.query_logs;
        logs.command(globals, tables, self.logged_client(), command, argument);
    }

    fn logged_client(&self) -> Client<'_> {
        let state = &self.session.state;
        Client {
            connection: self.session.id(),
            user: &state.user,
            host: &state.host,
        }
    }

    /// The text of a prepared statement that is to be executed, with its placeholders.
    pub(super) fn prepared_text(&self, execute: &Execute<'_>) -> Vec<u8> {
        let text = self.session.prepared_text(self.statement_id(execute));
        text.unwrap_or_default().to_vec()
    }

    /// A statement begins.
    #[inline]
    pub(super) fn begin_timing(&self) -> Timing {
        let is_on = self.server.engine.variables().slow_query_log();
        Timing(is_on.then(|| {
            self.session.state.interrupt.take_waited();
            Instant::now()
        }))
    }

    /// A statement has ended: tells the slow query log, if it took longer than `long_query_time`, or
    /// read whole tables where such statements are wanted, and didn't read too few rows.
    #[inline]
    pub(super) fn end_timing(&self, timing: Timing, sql: impl FnOnce() -> Vec<u8>) {
        let Some(began) = timing.0 else { return };
        let took = began.elapsed();
        let state = &self.session.state;
        let is_slow = took >= Duration::from_micros(state.long_query_time_us)
            || (state.statement.uses_no_index
                && self
                    .server
                    .engine
                    .variables()
                    .log_queries_not_using_indexes());
        if is_slow && state.statement.rows_examined >= state.min_examined_row_limit {
            self.write_slow(took, &sql());
        }
    }

    #[cold]
    fn write_slow(&self, took: Duration, sql: &[u8]) {
        let state = &self.session.state;
        // A statement that has rows has no count of changed ones.
        let has_rows = state.row_count == -1;
        let statement = SlowStatement {
            client: self.logged_client(),
            schema: self.session.current_schema(),
            sql: without_end(sql),
            took,
            waited: state.interrupt.take_waited(),
            rows_sent: if has_rows { state.found_rows } else { 0 },
            rows_examined: state.statement.rows_examined,
            insert_id: state.last_insert_id,
        };
        let engine = &self.server.engine;
        let (globals, tables) = (engine.variables(), engine.log_tables());
        self.server.query_logs.slow(globals, tables, &statement);
    }
}

/// A statement without the semicolon that ends it.
fn without_end(sql: &[u8]) -> &[u8] {
    let sql = sql.trim_ascii();
    sql.strip_suffix(b";").unwrap_or(sql)
}
