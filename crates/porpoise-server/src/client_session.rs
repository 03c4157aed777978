//! A connection whose client has logged in: commands in, replies out.
//!
//! Each command is one row of the `match` in [`ClientSession::dispatch_command`]. Statements run on
//! the thread that serves the connection; the reply is in the writer when the command is over, or
//! already on its way to the client where it was too long to be kept. [`statements`] has the
//! commands that run statements, [`logs`] what commands leave in logs.

mod logs;
mod parameter;
mod statements;

use std::sync::Arc;
use std::time::Duration;

use porpoise_engine::Control;
use porpoise_engine::command_counts::CountedCommand as C;
use porpoise_engine::reply::Unread;
use porpoise_engine::session::SessionStateChanges;
use porpoise_engine::{Error, Result, Session};
use porpoise_protocol::codes::CommandCode;
use porpoise_protocol::command::Command;
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::flags::{Capabilities, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{ChangeUser, NONCE_BYTES};
use porpoise_protocol::reply::{OkPacket, StateChange};
use porpoise_storage::Commit;
use porpoise_types::{Charset, Collation, Value};

use crate::account_limits::AccountSlot;
use crate::auth_exchange::{AuthExchange, AuthResult, ClientOrigin, FirstResponse, LoginRequest};
use crate::column_definition::write_column_definition;
use crate::connection::PacketOutcome;
use crate::connection_slots::ConnectionSlot;
use crate::error_packet::{wire_error, write_error, write_error_in};
use crate::reply_writer::{ResultSetFormat, RowFormat};
use crate::send_buffer::SendBuffer;
use crate::server_state::ServerState;
use crate::stream::Peer;

use statements::PreparedStatements;

pub(crate) struct ClientSession {
    session: Session,
    _slot: ConnectionSlot,
    /// Where the account's connections are limited.
    account_slot: Option<AccountSlot>,
    capabilities: Capabilities,
    compression: Option<Algorithm>,
    peer: Peer,
    nonce: [u8; NONCE_BYTES],
    collation: Collation,
    server: Arc<ServerState>,
    prepared: PreparedStatements,
    /// COM_CHANGE_USER under way: the next packet is a response, not a command.
    change_user: Option<Box<AuthExchange>>,
    /// Parameters of the statement that runs; their memory is kept for the next.
    values: Vec<Value>,
}

/// A command that was carried out, perhaps with a commit that isn't on disk yet.
#[derive(Default)]
pub(crate) struct CommandOutcome {
    pub commit: Option<Commit>,
}

impl ClientSession {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        session: Session,
        (slot, account_slot): (ConnectionSlot, Option<AccountSlot>),
        (capabilities, compression): (Capabilities, Option<Algorithm>),
        peer: Peer,
        nonce: [u8; NONCE_BYTES],
        collation: Collation,
        server: Arc<ServerState>,
    ) -> ClientSession {
        let mut client = ClientSession {
            session,
            _slot: slot,
            account_slot,
            capabilities,
            compression,
            peer,
            nonce,
            collation,
            server,
            prepared: PreparedStatements::default(),
            change_user: None,
            values: Vec::new(),
        };
        client
            .session
            .set_multi_statements(capabilities.contains(Capabilities::MULTI_STATEMENTS));
        client
    }

    pub fn control(&self) -> &Arc<Control> {
        self.session.control()
    }

    pub fn is_in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// How its packets are compressed; `None` if they aren't.
    pub fn compression(&self) -> Option<Algorithm> {
        self.compression
    }

    /// In bytes.
    pub fn max_allowed_packet(&self) -> usize {
        usize::try_from(self.session.state.max_allowed_packet).unwrap_or(usize::MAX)
    }

    pub fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.session.state.wait_timeout_s)
    }

    fn results_charset(&self) -> Charset {
        self.session
            .state
            .results_charset
            .unwrap_or(Charset::Utf8mb4)
    }

    pub fn net_read_timeout(&self) -> Duration {
        Duration::from_secs(self.session.state.net_read_timeout_s)
    }

    pub fn net_write_timeout(&self) -> Duration {
        Duration::from_secs(self.session.state.net_write_timeout_s)
    }

    // ── Commands ─────────────────────────────────────────────────────────────────────────────

    /// Carries out one command, or takes a response of a COM_CHANGE_USER under way.
    pub fn dispatch_command(
        &mut self,
        payload: &[u8],
        writer: &mut PacketWriter,
        send_buffer: &mut SendBuffer,
    ) -> PacketOutcome {
        if let Some(mut exchange) = self.change_user.take() {
            let result = exchange.handle_response(payload, &self.server, writer);
            return self.finish_change_user(exchange, result, writer);
        }
        let command = match Command::parse(payload, self.capabilities) {
            Ok(command) => command,
            Err(error) => return self.write_command_error(&wire_error(error), writer),
        };
        self.log_command(&command);
        let result = match command {
            Command::StmtExecute(execute) => self.execute(&execute, writer, send_buffer),
            Command::Query(query) => self.query(query.sql, writer, send_buffer),
            Command::StmtPrepare(sql) => self.prepare(sql, writer),
            Command::StmtFetch { statement, rows } => {
                self.count(C::StmtFetch);
                self.fetch(statement, rows, writer, send_buffer)
            }
            Command::StmtReset(id) => {
                self.count(C::StmtReset);
                self.reset_statement(id, writer)
            }
            Command::StmtClose(id) => {
                self.prepared.remove(id);
                self.session.close_statement(id);
                return PacketOutcome::Reply;
            }
            Command::StmtSendLongData {
                statement,
                parameter,
                bytes,
            } => {
                self.count(C::StmtSendLongData);
                self.append_long_data(statement, parameter, bytes);
                return PacketOutcome::Reply;
            }
            Command::Quit => return PacketOutcome::Quit,
            Command::Ping => {
                self.count(C::AdminCommands);
                Ok(self.write_ok(writer))
            }
            Command::InitDb(name) => {
                self.count(C::ChangeDb);
                self.init_db(name, writer)
            }
            Command::FieldList { table, pattern } => {
                self.count(C::ShowFields);
                self.field_list(table, pattern, writer)
            }
            Command::ResetConnection => {
                self.count(C::AdminCommands);
                self.reset(writer)
            }
            Command::ChangeUser(change) => {
                self.count(C::AdminCommands);
                return self.begin_change_user(&change, writer, send_buffer);
            }
            Command::SetMultiStatements(on) => {
                self.count(C::AdminCommands);
                self.session.set_multi_statements(on);
                Ok(self.write_eof(writer))
            }
            Command::Statistics => {
                self.count(C::ShowStatus);
                let line = self.server.statistics();
                writer.write(line.as_bytes());
                return PacketOutcome::Reply;
            }
            Command::ProcessInfo => self.query(b"SHOW PROCESSLIST", writer, send_buffer),
            Command::ProcessKill(id) => {
                self.query(format!("KILL {id}").as_bytes(), writer, send_buffer)
            }
            Command::Debug => {
                self.count(C::AdminCommands);
                Ok(self.write_eof(writer))
            }
            Command::Shutdown => {
                self.count(C::AdminCommands);
                self.shut_down(writer)
            }
            Command::Refresh(what) => self.refresh(what, writer),
            Command::Unsupported(CommandCode::BinlogDump | CommandCode::BinlogDumpGtid) => {
                Err(Error::not_supported_yet("replication"))
            }
            Command::Unsupported(_) => Err(Error::unknown_command()),
        };
        match result {
            Ok(outcome) => outcome.into(),
            Err(error) => self.write_command_error(&error, writer),
        }
    }

    fn count(&self, command: C) {
        self.session.control().counts.count(command);
    }

    fn write_command_error(&mut self, error: &Error, writer: &mut PacketWriter) -> PacketOutcome {
        write_error_in(writer, error, self.capabilities, self.results_charset());
        PacketOutcome::Reply
    }

    fn status(&self) -> Status {
        let session = &self.session;
        [
            (Status::IN_TRANS, session.in_transaction()),
            (Status::AUTOCOMMIT, session.autocommit()),
            (Status::NO_BACKSLASH_ESCAPES, session.no_backslash_escapes()),
        ]
        .into_iter()
        .filter(|(_, is_set)| *is_set)
        .fold(Status::empty(), |status, (flag, _)| status | flag)
    }

    fn format(&self, row_format: RowFormat) -> ResultSetFormat {
        ResultSetFormat {
            row_format,
            capabilities: self.capabilities,
            status: self.status(),
            charset: self.results_charset(),
            read_timeout: self.net_read_timeout(),
            write_timeout: self.net_write_timeout(),
        }
    }

    /// What changed in the session, encoded, for a client that tracks it; empty for others.
    fn state_changes(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.capabilities.contains(Capabilities::SESSION_TRACK) {
            return out;
        }
        let SessionStateChanges {
            schema,
            variables,
            transaction_state,
            transaction_characteristics,
            state_changed,
        } = self.session.take_tracked_changes();
        for (name, value) in &variables {
            StateChange::SystemVariable {
                name: name.as_bytes(),
                value: value.as_bytes(),
            }
            .put(&mut out);
        }
        if let Some(schema) = &schema {
            StateChange::Schema(schema.as_bytes()).put(&mut out);
        }
        if state_changed {
            StateChange::State(true).put(&mut out);
        }
        if let Some(statements) = &transaction_characteristics {
            StateChange::TransactionCharacteristics(statements.as_bytes()).put(&mut out);
        }
        if let Some(letters) = &transaction_state {
            StateChange::TransactionState(letters.as_bytes()).put(&mut out);
        }
        out
    }

    /// Writes an OK packet.
    pub fn write_ok(&mut self, writer: &mut PacketWriter) -> CommandOutcome {
        let state = self.state_changes();
        OkPacket {
            status: self.status(),
            state: &state,
            ..OkPacket::default()
        }
        .write(writer, self.capabilities);
        CommandOutcome::default()
    }

    fn write_eof(&mut self, writer: &mut PacketWriter) -> CommandOutcome {
        OkPacket {
            status: self.status(),
            ..OkPacket::default()
        }
        .write_end_of_rows(writer, self.capabilities);
        CommandOutcome::default()
    }

    // ── The session ──────────────────────────────────────────────────────────────────────────

    fn init_db(&mut self, name: &[u8], writer: &mut PacketWriter) -> Result<CommandOutcome> {
        self.session.init_db(&String::from_utf8_lossy(name))?;
        Ok(self.write_ok(writer))
    }

    /// COM_FIELD_LIST: the definitions of a table's columns whose names match a LIKE pattern.
    fn field_list(
        &mut self,
        table: &[u8],
        pattern: &[u8],
        writer: &mut PacketWriter,
    ) -> Result<CommandOutcome> {
        let pattern = pattern.strip_suffix(&[0]).unwrap_or(pattern);
        let table = String::from_utf8_lossy(table).replace('`', "``");
        let prepared = self
            .session
            .prepare(format!("SELECT * FROM `{table}`").as_bytes())?;
        self.session.close_statement(prepared.id);
        let charset = self.results_charset();
        let matches = |name: &str| {
            let collation = Collation::UTF8MB4_0900_AI_CI;
            pattern.is_empty()
                || porpoise_types::like(name.as_bytes(), pattern, Some('\\'), collation)
        };
        for column in &prepared.columns {
            if matches(&column.name) {
                write_column_definition(column, charset, Some(b""), writer);
            }
        }
        Ok(self.write_eof(writer))
    }

    fn reset(&mut self, writer: &mut PacketWriter) -> Result<CommandOutcome> {
        self.session.reset()?;
        self.forget_statements();
        Ok(self.write_ok(writer))
    }

    fn forget_statements(&mut self) {
        self.prepared = PreparedStatements::default();
        self.values = Vec::new();
    }

    /// COM_REFRESH: a FLUSH for each of the bits (MySQL 8.4 C API manual, `mysql_refresh()`).
    fn refresh(&mut self, what: u8, writer: &mut PacketWriter) -> Result<CommandOutcome> {
        const STATEMENTS: [(u8, &str); 6] = [
            (0x01, "FLUSH PRIVILEGES"),
            (0x02, "FLUSH LOGS"),
            (0x04, "FLUSH TABLES"),
            (0x08, "FLUSH HOSTS"),
            (0x10, "FLUSH STATUS"),
            (0x80, "FLUSH BINARY LOGS"),
        ];
        for (_, statement) in STATEMENTS.iter().filter(|(bit, _)| what & bit != 0) {
            let flushed = self.session.query(statement.as_bytes(), &mut Unread)?;
            if let Some(commit) = flushed.commit {
                commit.wait()?;
            }
        }
        Ok(self.write_ok(writer))
    }

    fn shut_down(&mut self, writer: &mut PacketWriter) -> Result<CommandOutcome> {
        if !self.session.may_kill() {
            return Err(Error::specific_access_denied("SHUTDOWN"));
        }
        self.server.stop_request.request();
        Ok(self.write_ok(writer))
    }

    // ── COM_CHANGE_USER ──────────────────────────────────────────────────────────────────────

    fn begin_change_user(
        &mut self,
        change: &ChangeUser<'_>,
        writer: &mut PacketWriter,
        send_buffer: &SendBuffer,
    ) -> PacketOutcome {
        let origin = ClientOrigin {
            nonce: self.nonce,
            peer: self.peer,
            stream: &send_buffer.stream,
        };
        let response = FirstResponse {
            plugin: change.auth_plugin,
            bytes: change.auth_response,
        };
        let collation = self.collation.id();
        let host = self.session.state.host.as_str().into();
        let (offered, compression) = (self.capabilities, self.compression);
        let request = LoginRequest::from_change_user(change, host, offered, compression, collation);
        let (exchange, result) =
            AuthExchange::begin(request, response, origin, &self.server, writer);
        self.finish_change_user(Box::new(exchange), result, writer)
    }

    fn finish_change_user(
        &mut self,
        mut exchange: Box<AuthExchange>,
        result: AuthResult,
        writer: &mut PacketWriter,
    ) -> PacketOutcome {
        let error = match result {
            AuthResult::Continue => {
                self.change_user = Some(exchange);
                return PacketOutcome::Reply;
            }
            AuthResult::Authenticated(account) => {
                // The old slot is freed first: a change to the same account doesn't need two.
                self.account_slot = None;
                let account_slot = self.server.take_account_slot(account.as_deref());
                let login = exchange.take_login(account, self.session.id(), self.peer);
                self.collation = login.collation.unwrap_or(self.collation);
                self.forget_statements();
                match account_slot.and_then(|account_slot| {
                    self.session.change_user(login)?;
                    Ok(account_slot)
                }) {
                    Ok(account_slot) => {
                        self.account_slot = account_slot;
                        self.write_ok(writer);
                        return PacketOutcome::Reply;
                    }
                    Err(error) => error,
                }
            }
            AuthResult::Refused(error) => error,
        };
        write_error(writer, &error, self.capabilities);
        PacketOutcome::Close
    }
}
