//! A connection whose client has proven who it is: commands in, replies out.
//!
//! Each command is one row of the `match` in [`Client::obey`]. Statements run on the thread that
//! serves the connection; the reply is in the writer when the command is over, or already on its way
//! to the client where it was too long to be kept.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use porpoise_engine::Control;
use porpoise_engine::session::{SessionStateChanges, StatementOutcome};
use porpoise_engine::{Error, Result, Session};
use porpoise_protocol::codes::CommandCode;
use porpoise_protocol::command::{Command, Execute};
use porpoise_protocol::flags::{Capabilities, CursorFlags, Status};
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::handshake::{ChangeUser, NONCE_BYTES};
use porpoise_protocol::reply::{OkPacket, StateChange, write_eof};
use porpoise_protocol::statement::{self, Parameters};
use porpoise_protocol::value as wire;
use porpoise_storage::Commit;
use porpoise_types::{Charset, Collation, CompactString, Date, DateTime, Decimal, Time, Value};

use crate::connection::{Step, wire_error, write_error};
use crate::crew;
use crate::limits::UserSeat;
use crate::newcomer::{Proof, Verdict, change_user};
use crate::outlet::Outlet;
use crate::reply::{Answer, Cursor, Encoding, Manner, define};
use crate::server::{Seat, Shared};
use crate::stream::Peer;

/// A prepared statement, as the protocol sees it.
struct Statement {
    parameters: Parameters,
    /// What went wrong with long data; told by the next execute.
    long_error: Option<Error>,
    cursor: Option<Cursor>,
}

pub(crate) struct Client {
    session: Session,
    _seat: Seat,
    /// Where the account's connections are limited.
    of_user: Option<UserSeat>,
    capabilities: Capabilities,
    peer: Peer,
    nonce: [u8; NONCE_BYTES],
    collation: Collation,
    server: Arc<Shared>,
    statements: HashMap<u32, Statement>,
    last_prepared: u32,
    /// COM_CHANGE_USER under way: the next packet is an answer, not a command.
    proof: Option<Box<Proof>>,
    /// Parameters of the statement that runs; kept for the next.
    values: Vec<Value>,
}

/// A command that was carried out, perhaps with a commit that isn't on disk yet.
#[derive(Default)]
pub(crate) struct Done {
    pub commit: Option<Commit>,
}

impl Client {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        session: Session,
        (seat, of_user): (Seat, Option<UserSeat>),
        capabilities: Capabilities,
        peer: Peer,
        nonce: [u8; NONCE_BYTES],
        collation: Collation,
        server: Arc<Shared>,
    ) -> Client {
        let mut client = Client {
            session,
            _seat: seat,
            of_user,
            capabilities,
            peer,
            nonce,
            collation,
            server,
            statements: HashMap::new(),
            last_prepared: 0,
            proof: None,
            values: Vec::new(),
        };
        client
            .session
            .set_multi_statements(capabilities.contains(Capabilities::MULTI_STATEMENTS));
        client
    }

    /// The OK that ends the handshake.
    pub fn welcome(mut self, writer: &mut PacketWriter) -> Client {
        self.ok(writer);
        self
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

    /// Carries out one command, or takes the answer of a COM_CHANGE_USER under way.
    pub fn obey(&mut self, payload: &[u8], writer: &mut PacketWriter, outlet: &mut Outlet) -> Step {
        if let Some(mut proof) = self.proof.take() {
            let verdict = proof.answer(payload, self.peer, &self.server, writer);
            return self.judge(proof, verdict, writer);
        }
        let command = match Command::parse(payload, self.capabilities) {
            Ok(command) => command,
            Err(error) => return self.fail(&wire_error(error), writer),
        };
        let result = match command {
            Command::StmtExecute(execute) => self.execute(&execute, writer, outlet),
            Command::Query(query) => self.query(query.sql, writer, outlet),
            Command::StmtPrepare(sql) => self.prepare(sql, writer),
            Command::StmtFetch { statement, rows } => self.fetch(statement, rows, writer, outlet),
            Command::StmtReset(id) => self.reset_statement(id, writer),
            Command::StmtClose(id) => {
                self.statements.remove(&id);
                self.session.close_statement(id);
                return Step::Reply;
            }
            Command::StmtSendLongData {
                statement,
                parameter,
                bytes,
            } => {
                self.append_long(statement, parameter, bytes);
                return Step::Reply;
            }
            Command::Quit => return Step::Quit,
            Command::Ping => Ok(self.ok(writer)),
            Command::InitDb(name) => self.init_db(name, writer),
            Command::FieldList { table, pattern } => self.field_list(table, pattern, writer),
            Command::ResetConnection => self.reset(writer),
            Command::ChangeUser(change) => return self.change_user(&change, writer, outlet),
            Command::SetMultiStatements(on) => {
                self.session.set_multi_statements(on);
                Ok(self.eof(writer))
            }
            Command::Statistics => {
                let line = self.server.statistics();
                writer.write(line.as_bytes());
                return Step::Reply;
            }
            Command::ProcessInfo => self.query(b"SHOW PROCESSLIST", writer, outlet),
            Command::ProcessKill(id) => self.query(format!("KILL {id}").as_bytes(), writer, outlet),
            Command::Debug => Ok(self.eof(writer)),
            Command::Shutdown => self.shut_down(writer),
            Command::Refresh(_) => Err(Error::unknown_command()),
            Command::Unsupported(CommandCode::BinlogDump | CommandCode::BinlogDumpGtid) => {
                Err(Error::not_supported_yet("replication"))
            }
            Command::Unsupported(_) => Err(Error::unknown_command()),
        };
        match result {
            Ok(done) => done.into(),
            Err(error) => self.fail(&error, writer),
        }
    }

    fn fail(&mut self, error: &Error, writer: &mut PacketWriter) -> Step {
        write_error(writer, error, self.capabilities);
        Step::Reply
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

    fn manner(&self, encoding: Encoding) -> Manner {
        Manner {
            encoding,
            capabilities: self.capabilities,
            status: self.status(),
            charset: self.results_charset(),
            read_timeout: self.net_read_timeout(),
            write_timeout: self.net_write_timeout(),
        }
    }

    /// What changed in the session, for a client that follows it.
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
        } = self.session.take_state_changes();
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

    fn ok(&mut self, writer: &mut PacketWriter) -> Done {
        let state = self.state_changes();
        OkPacket {
            status: self.status(),
            state: &state,
            ..OkPacket::default()
        }
        .write(writer, self.capabilities);
        Done::default()
    }

    fn eof(&mut self, writer: &mut PacketWriter) -> Done {
        OkPacket {
            status: self.status(),
            ..OkPacket::default()
        }
        .write_end_of_rows(writer, self.capabilities);
        Done::default()
    }

    // ── Statements ───────────────────────────────────────────────────────────────────────────

    /// COM_QUERY: every statement in it, each with its own result, up to the first that fails.
    fn query(
        &mut self,
        sql: &[u8],
        writer: &mut PacketWriter,
        outlet: &mut Outlet,
    ) -> Result<Done> {
        let mut rest = sql;
        loop {
            let manner = self.manner(Encoding::Text);
            let mut answer = Answer::new(writer, outlet, manner);
            let StatementOutcome {
                rest: after,
                commit,
            } = match self.session.query(rest, &mut answer) {
                Ok(ran) => ran,
                Err(error) => {
                    answer.abandon();
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
            answer.finish(self.status() | more, &state);
            if rest.is_empty() {
                return Ok(Done { commit });
            }
            if let Some(commit) = commit
                && !commit.is_durable()
            {
                crew::leave_loop();
                commit.wait()?;
            }
        }
    }

    fn prepare(&mut self, sql: &[u8], writer: &mut PacketWriter) -> Result<Done> {
        let prepared = self.session.prepare(sql)?;
        let charset = self.results_charset();
        let too_many = |_| Error::too_many_parameters();
        let answer = statement::Prepared {
            statement: prepared.id,
            columns: u16::try_from(prepared.columns.len()).map_err(too_many)?,
            parameters: u16::try_from(prepared.parameters.len()).map_err(too_many)?,
            warnings: prepared.warnings,
        };
        answer.write(writer);
        let status = self.status();
        for list in [&prepared.parameters, &prepared.columns] {
            for column in list {
                define(column, charset).write(writer);
            }
            if !list.is_empty() && !self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
                write_eof(writer, 0, status);
            }
        }
        self.last_prepared = prepared.id;
        let parameters = Parameters::new(prepared.parameters.len());
        self.statements.insert(
            prepared.id,
            Statement {
                parameters,
                long_error: None,
                cursor: None,
            },
        );
        Ok(Done::default())
    }

    fn execute(
        &mut self,
        execute: &Execute<'_>,
        writer: &mut PacketWriter,
        outlet: &mut Outlet,
    ) -> Result<Done> {
        let id = if execute.statement == Execute::LAST_PREPARED {
            self.last_prepared
        } else {
            execute.statement
        };
        let manner = self.manner(Encoding::Binary);
        let charset = self.session.state.client_charset;
        let statement = self
            .statements
            .get_mut(&id)
            .ok_or_else(|| Error::unknown_statement_handler(id, "mysqld_stmt_execute"))?;
        statement.cursor = None;
        if let Some(error) = statement.long_error.take() {
            statement.parameters.clear_long();
            return Err(error);
        }
        self.values.clear();
        for value in statement
            .parameters
            .decode(&execute.parameters)
            .map_err(wire_error)?
        {
            self.values
                .push(parameter(value.map_err(wire_error)?, charset)?);
        }
        statement.parameters.clear_long();
        let mut answer = Answer::new(writer, outlet, manner);
        if execute.cursor.contains(CursorFlags::READ_ONLY) {
            answer = answer.into_cursor();
        }
        match self.session.execute(id, &self.values, &mut answer) {
            Ok(ran) => {
                let state = if self.capabilities.contains(Capabilities::SESSION_TRACK) {
                    self.state_changes()
                } else {
                    Vec::new()
                };
                let status = self.status();
                if let Some(cursor) = answer.finish(status, &state)
                    && let Some(statement) = self.statements.get_mut(&id)
                {
                    statement.cursor = Some(cursor);
                }
                Ok(Done { commit: ran.commit })
            }
            Err(error) => {
                answer.abandon();
                Err(error)
            }
        }
    }

    fn fetch(
        &mut self,
        id: u32,
        rows: u32,
        writer: &mut PacketWriter,
        outlet: &mut Outlet,
    ) -> Result<Done> {
        let manner = self.manner(Encoding::Binary);
        let statement = self
            .statements
            .get_mut(&id)
            .ok_or_else(|| Error::unknown_statement_handler(id, "mysqld_stmt_fetch"))?;
        let cursor = statement
            .cursor
            .as_mut()
            .ok_or_else(|| Error::statement_has_no_open_cursor(id))?;
        cursor.fetch(rows, manner.status, writer, outlet, &manner)?;
        Ok(Done::default())
    }

    fn reset_statement(&mut self, id: u32, writer: &mut PacketWriter) -> Result<Done> {
        let statement = self
            .statements
            .get_mut(&id)
            .ok_or_else(|| Error::unknown_statement_handler(id, "mysqld_stmt_reset"))?;
        statement.cursor = None;
        statement.long_error = None;
        statement.parameters.clear_long();
        Ok(self.ok(writer))
    }

    fn append_long(&mut self, id: u32, parameter: u16, bytes: &[u8]) {
        let most = self.max_allowed_packet();
        // A statement that doesn't exist has no execute that could tell.
        let Some(statement) = self.statements.get_mut(&id) else {
            return;
        };
        if statement.long_error.is_none()
            && let Err(error) = statement.parameters.append_long(parameter, bytes, most)
        {
            statement.long_error = Some(match error {
                porpoise_protocol::Error::PacketTooLarge => Error::new(
                    1105,
                    "HY000",
                    "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes",
                ),
                error => wire_error(error),
            });
        }
    }

    // ── The session ──────────────────────────────────────────────────────────────────────────

    fn init_db(&mut self, name: &[u8], writer: &mut PacketWriter) -> Result<Done> {
        self.session.init_db(&String::from_utf8_lossy(name))?;
        Ok(self.ok(writer))
    }

    fn field_list(
        &mut self,
        table: &[u8],
        pattern: &[u8],
        writer: &mut PacketWriter,
    ) -> Result<Done> {
        let pattern = pattern.strip_suffix(&[0]).unwrap_or(pattern);
        let table = String::from_utf8_lossy(table).replace('`', "``");
        let prepared = self
            .session
            .prepare(format!("SELECT * FROM `{table}`").as_bytes())?;
        self.session.close_statement(prepared.id);
        let charset = self.results_charset();
        for column in &prepared.columns {
            if !pattern.is_empty()
                && !porpoise_types::like(
                    column.name.as_bytes(),
                    pattern,
                    Some('\\'),
                    Collation::UTF8MB4_0900_AI_CI,
                )
            {
                continue;
            }
            let mut definition = define(column, charset);
            definition.default = Some(b"");
            definition.write(writer);
        }
        Ok(self.eof(writer))
    }

    fn reset(&mut self, writer: &mut PacketWriter) -> Result<Done> {
        self.session.reset()?;
        self.forget_statements();
        Ok(self.ok(writer))
    }

    fn forget_statements(&mut self) {
        self.statements = HashMap::new();
        self.last_prepared = 0;
        self.values = Vec::new();
    }

    fn change_user(
        &mut self,
        change: &ChangeUser<'_>,
        writer: &mut PacketWriter,
        outlet: &Outlet,
    ) -> Step {
        let whence = (self.nonce, self.peer, &outlet.stream);
        let (proof, verdict) = change_user(
            change,
            self.capabilities,
            self.collation.id(),
            whence,
            &self.server,
            writer,
        );
        self.judge(Box::new(proof), verdict, writer)
    }

    fn judge(
        &mut self,
        mut proof: Box<Proof>,
        verdict: Verdict,
        writer: &mut PacketWriter,
    ) -> Step {
        let error = match verdict {
            Verdict::Continue => {
                self.proof = Some(proof);
                return Step::Reply;
            }
            Verdict::Proven(account) => {
                // Its own place first: whoever changes to the same account doesn't need two.
                self.of_user = None;
                let of_user = self.server.take_user_seat(account.as_deref());
                let login = proof.login(account, self.session.id(), self.peer);
                self.collation = login.collation.unwrap_or(self.collation);
                self.forget_statements();
                match of_user.and_then(|of_user| {
                    self.session.change_user(login)?;
                    Ok(of_user)
                }) {
                    Ok(of_user) => {
                        self.of_user = of_user;
                        self.ok(writer);
                        return Step::Reply;
                    }
                    Err(error) => error,
                }
            }
            Verdict::Refused(error) => error,
        };
        write_error(writer, &error, self.capabilities);
        Step::Close
    }

    fn shut_down(&mut self, writer: &mut PacketWriter) -> Result<Done> {
        if !self.session.may_kill() {
            return Err(Error::specific_access_denied("SHUTDOWN"));
        }
        self.server.request_stop();
        Ok(self.ok(writer))
    }
}

/// A parameter as the engine takes it.
#[inline]
fn parameter(value: wire::Value<'_>, charset: Charset) -> Result<Value> {
    let odd = || Error::wrong_arguments("mysqld_stmt_execute");
    Ok(match value {
        wire::Value::Null => Value::Null,
        wire::Value::Int(value) => Value::Int(value),
        wire::Value::UInt(value) => Value::UInt(value),
        wire::Value::Float(value) => Value::Double(f64::from(value)),
        wire::Value::Double(value) => Value::Double(value),
        wire::Value::Decimal(text) => {
            let text = std::str::from_utf8(text).map_err(|_| odd())?;
            match text.parse::<Decimal>() {
                Ok(decimal) => Value::Decimal(decimal),
                Err(_) => Value::text(text),
            }
        }
        wire::Value::Text(bytes) if charset == Charset::Binary => Value::Bytes(bytes.to_vec()),
        // Drivers send bytes as text too: what isn't text stays bytes.
        wire::Value::Text(bytes) => match charset.decode(bytes) {
            Ok(text) => Value::Text(CompactString::from(text)),
            Err(_) => Value::Bytes(bytes.to_vec()),
        },
        wire::Value::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        wire::Value::Date(date) => Value::Date(date_of(date).ok_or_else(odd)?),
        wire::Value::DateTime(value) => Value::DateTime(
            DateTime::new(
                date_of(value.date).ok_or_else(odd)?,
                value.hour.into(),
                value.minute.into(),
                value.second.into(),
                value.microsecond,
            )
            .ok_or_else(odd)?,
        ),
        wire::Value::Time(time) => {
            let hours = time
                .days
                .saturating_mul(24)
                .saturating_add(time.hours.into());
            let micros = ((i64::from(hours) * 60 + i64::from(time.minutes)) * 60
                + i64::from(time.seconds))
                * 1_000_000
                + i64::from(time.microseconds);
            Value::Time(Time::from_micros_clamped(if time.negative {
                -micros
            } else {
                micros
            }))
        }
    })
}

fn date_of(date: wire::Date) -> Option<Date> {
    Date::new(date.year.into(), date.month.into(), date.day.into())
}
