//! Commands that run statements, as text or prepared.

use std::sync::Arc;

use hashbrown::HashMap;
use porpoise_engine::memory::{Charge, Kept};
use porpoise_engine::session::StatementOutcome;
use porpoise_engine::{Error, Result};
use porpoise_protocol::command::Execute;
use porpoise_protocol::flags::{Capabilities, CursorFlags, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::reply::write_eof;
use porpoise_protocol::statement::{Parameters, PrepareOk};

use crate::column_definition::write_column_definition;
use crate::cursor::Cursor;
use crate::error_packet::wire_error;
use crate::reply_writer::{ReplyWriter, RowFormat};
use crate::send_buffer::SendBuffer;
use crate::thread_pool;

use super::parameter::engine_value;
use super::{ClientSession, CommandOutcome};

/// A prepared statement, as the protocol sees it.
struct PreparedStatement {
    parameters: Parameters,
    /// What went wrong with long data; reported by the next execute.
    long_data_error: Option<Error>,
    cursor: Option<Cursor>,
    /// What of the session's memory its long data and its cursor are charged with.
    bytes: usize,
}

impl PreparedStatement {
    /// Drops the rows and the long data that it has; how many bytes they took.
    fn clear(&mut self) -> usize {
        self.cursor = None;
        self.parameters.clear_long();
        std::mem::take(&mut self.bytes)
    }
}

/// The prepared statements of a session, by their ids.
#[derive(Default)]
pub(super) struct PreparedStatements {
    by_id: HashMap<u32, PreparedStatement>,
    last: u32,
    /// The memory of what clients have sent and not had executed, and of rows they haven't fetched.
    kept: Kept,
}

impl PreparedStatements {
    pub fn remove(&mut self, id: u32) {
        if let Some(mut statement) = self.by_id.remove(&id) {
            self.kept.sub(statement.clear());
        }
    }

    /// `command` is its name in MySQL's error 1243.
    fn get_mut(&mut self, id: u32, command: &str) -> Result<&mut PreparedStatement> {
        let statement = self.by_id.get_mut(&id);
        statement.ok_or_else(|| Error::unknown_statement_handler(id, command))
    }
}

/// A command's text without the semicolons and spaces that end it: no message, log or list of processes
/// shows them, in MySQL neither.
fn without_end(sql: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b';' | b' ' | b'\t'..=b'\r');
    let length = sql.iter().rposition(|byte| !is_end(byte));
    &sql[..length.map_or(0, |last| last + 1)]
}

impl ClientSession {
    /// COM_QUERY: every statement in it, each with its own result, up to the first that fails.
    pub(super) fn query(
        &mut self,
        sql: &[u8],
        writer: &mut PacketWriter,
        send_buffer: &mut SendBuffer,
    ) -> Result<CommandOutcome> {
        let mut rest = without_end(sql);
        loop {
            let format = self.format(RowFormat::Text);
            let mut reply = ReplyWriter::new(writer, send_buffer, format);
            let timing = self.begin_timing();
            let outcome = self.session.query(rest, &mut reply);
            let length = outcome.as_ref().map_or(rest.len(), |ran| ran.rest);
            self.end_timing(timing, || rest[..length.min(rest.len())].to_vec());
            let StatementOutcome {
                rest: after,
                commit,
            } = match outcome {
                Ok(ran) => ran,
                Err(error) => {
                    reply.abandon();
                    return Err(error);
                }
            };
            rest = rest.get(after..).unwrap_or_default();
            let more = if rest.is_empty() {
                Status::empty()
            } else {
                Status::MORE_RESULTS_EXISTS
            };
            let state = self.state_changes();
            reply.finish(self.status() | more, &state);
            if rest.is_empty() {
                return Ok(CommandOutcome { commit });
            }
            if let Some(commit) = commit
                && !commit.is_durable()
            {
                thread_pool::hand_over_loop();
                commit.wait()?;
            }
        }
    }

    /// COM_STMT_PREPARE.
    pub(super) fn prepare(
        &mut self,
        sql: &[u8],
        writer: &mut PacketWriter,
    ) -> Result<CommandOutcome> {
        let prepared = self.session.prepare(without_end(sql))?;
        let charset = self.results_charset();
        let too_many = |_| Error::too_many_parameters();
        PrepareOk {
            statement: prepared.id,
            columns: u16::try_from(prepared.columns.len()).map_err(too_many)?,
            parameters: u16::try_from(prepared.parameters.len()).map_err(too_many)?,
            warnings: prepared.warnings,
        }
        .write(writer);
        let status = self.status();
        for list in [&prepared.parameters, &prepared.columns] {
            for column in list {
                write_column_definition(column, charset, None, writer);
            }
            if !list.is_empty() && !self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
                write_eof(writer, 0, status);
            }
        }
        self.prepared.last = prepared.id;
        let statement = PreparedStatement {
            parameters: Parameters::new(prepared.parameters.len()),
            long_data_error: None,
            cursor: None,
            bytes: 0,
        };
        self.prepared.by_id.insert(prepared.id, statement);
        Ok(CommandOutcome::default())
    }

    /// The statement that a client wants to be executed.
    pub(super) fn statement_id(&self, execute: &Execute<'_>) -> u32 {
        if execute.statement == Execute::LAST_PREPARED {
            self.prepared.last
        } else {
            execute.statement
        }
    }

    /// COM_STMT_EXECUTE.
    pub(super) fn execute(
        &mut self,
        execute: &Execute<'_>,
        writer: &mut PacketWriter,
        send_buffer: &mut SendBuffer,
    ) -> Result<CommandOutcome> {
        let id = self.statement_id(execute);
        let format = self.format(RowFormat::Binary);
        let charset = self.session.state.client_charset;
        let account = Arc::clone(&self.session.state.memory);
        let statement = self.prepared.get_mut(id, "mysqld_stmt_execute")?;
        statement.cursor = None;
        if let Some(error) = statement.long_data_error.take() {
            let freed = statement.clear();
            self.prepared.kept.sub(freed);
            return Err(error);
        }
        // Those of an execution that was refused.
        self.values.clear();
        // What was sent in pieces is copied.
        let mut charge = Charge::default();
        charge.add(&account, statement.parameters.long_bytes())?;
        for value in statement
            .parameters
            .decode(&execute.parameters)
            .map_err(wire_error)?
        {
            let value = value.map_err(wire_error)?;
            self.values.push(engine_value(value, charset)?);
        }
        let freed = statement.clear();
        self.prepared.kept.sub(freed);
        let mut reply = ReplyWriter::new(writer, send_buffer, format);
        if execute.cursor.contains(CursorFlags::READ_ONLY) && self.session.opens_cursor(id) {
            reply = reply.into_cursor(Arc::clone(&account));
        }
        let timing = self.begin_timing();
        let outcome = self.session.execute(id, &self.values, &mut reply);
        self.values.clear();
        let cursor_bytes = reply.cursor_bytes();
        let outcome = outcome.and_then(|ran| {
            self.prepared.kept.add(&account, cursor_bytes)?;
            Ok(ran)
        });
        self.end_timing(timing, || self.prepared_text(execute));
        match outcome {
            Ok(ran) => {
                let state = self.state_changes();
                let status = self.status();
                if let Some(cursor) = reply.finish(status, &state)
                    && let Some(statement) = self.prepared.by_id.get_mut(&id)
                {
                    statement.cursor = Some(cursor.opened());
                    statement.bytes = cursor_bytes;
                }
                Ok(CommandOutcome { commit: ran.commit })
            }
            Err(error) => {
                reply.abandon();
                Err(error)
            }
        }
    }

    /// COM_STMT_FETCH.
    pub(super) fn fetch(
        &mut self,
        id: u32,
        rows: u32,
        writer: &mut PacketWriter,
        send_buffer: &mut SendBuffer,
    ) -> Result<CommandOutcome> {
        let format = self.format(RowFormat::Binary);
        let statement = self.prepared.get_mut(id, "mysqld_stmt_fetch")?;
        let cursor = statement
            .cursor
            .as_mut()
            .ok_or_else(|| Error::statement_has_no_open_cursor(id))?;
        cursor.fetch(rows, writer, send_buffer, &format)?;
        Ok(CommandOutcome::default())
    }

    /// COM_STMT_RESET.
    pub(super) fn reset_statement(
        &mut self,
        id: u32,
        writer: &mut PacketWriter,
    ) -> Result<CommandOutcome> {
        let statement = self.prepared.get_mut(id, "mysqld_stmt_reset")?;
        statement.long_data_error = None;
        let freed = statement.clear();
        self.prepared.kept.sub(freed);
        Ok(self.write_ok(writer))
    }

    /// COM_STMT_SEND_LONG_DATA, which has no reply.
    pub(super) fn append_long_data(&mut self, id: u32, parameter: u16, bytes: &[u8]) {
        let most = self.max_allowed_packet();
        // A statement that doesn't exist has no execute that could report it.
        let Some(statement) = self.prepared.by_id.get_mut(&id) else {
            return;
        };
        if statement.long_data_error.is_some() {
            return;
        }
        let kept = self
            .prepared
            .kept
            .add(&self.session.state.memory, bytes.len());
        let appended = kept.and_then(|()| {
            statement.bytes += bytes.len();
            let appended = statement.parameters.append_long(parameter, bytes, most);
            appended.map_err(|error| match error {
                porpoise_protocol::Error::PacketTooLarge => Error::long_data_too_large(),
                error => wire_error(error),
            })
        });
        statement.long_data_error = appended.err();
    }
}
