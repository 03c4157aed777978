//! A session of an engine in another process, over shared memory.
//!
//! What comes back is put into the same [`Answer`] that an engine in this process would write into,
//! so that rows are the same wherever they were made: texts without parameters come as text and are
//! read by their columns' types, prepared statements' rows come with their values as they are.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use porpoise_client as client;
use porpoise_client::codes::{BINARY, ColumnType};
use porpoise_client::flags::{ColumnFlags, Status};
use porpoise_client::{ColumnDefinition, FromValue};
use porpoise_engine::reply::{Completion, Reply};
use porpoise_engine::{Error, Result};
use porpoise_server::instance_socket::InstanceSocketPath;
use porpoise_transport::{Endpoint, Stream};
use porpoise_types as types;

use crate::Value;
use crate::answer::Answer;
use crate::backend::{CACHED_STATEMENTS_MAX, connection_lost};
use crate::parameters;
use crate::rows::{Column, Columns, Kind};

pub(crate) struct RemoteSession {
    connection: client::Connection,
    statements: HashMap<u32, client::Statement>,
    /// The texts that are prepared, with their statements' numbers.
    cached: HashMap<Box<str>, u32>,
}

/// How long the process that has the folder may take to hand over the shared memory.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no session.
pub(crate) enum Unreachable {
    /// Nobody listens in the folder: the process that has it is about to listen, about to end, or
    /// doesn't share it.
    Nobody,
    Refused(Error),
}

impl RemoteSession {
    /// Connects to the process that has the folder open.
    pub fn connect(
        folder: &Path,
        schema: Option<&str>,
    ) -> std::result::Result<RemoteSession, Unreachable> {
        let options = client::Options {
            user: "root".into(),
            database: schema.map(Into::into),
            ..client::Options::default()
        };
        match client::Connection::over(RemoteSession::open_stream(folder)?, &options) {
            Ok(connection) => Ok(RemoteSession {
                connection,
                statements: HashMap::new(),
                cached: HashMap::new(),
            }),
            Err(client::Error::Io(error)) if is_nobody(error.kind()) => Err(Unreachable::Nobody),
            Err(error) => Err(Unreachable::Refused(from_client_error(error))),
        }
    }

    /// A stream to the process that has the folder open.
    pub fn open_stream(folder: &Path) -> std::result::Result<Box<dyn Stream>, Unreachable> {
        let place = InstanceSocketPath::in_folder(folder).map_err(|_| Unreachable::Nobody)?;
        let endpoint = Endpoint::SharedMemory(place.path().to_path_buf());
        porpoise_transport::connect(&endpoint, Some(CONNECT_TIMEOUT)).map_err(|error| {
            if is_nobody(error.kind()) {
                Unreachable::Nobody
            } else {
                Unreachable::Refused(Error::cannot_connect(error))
            }
        })
    }

    pub fn check(&self) -> Result<()> {
        if self.connection.is_broken() {
            return Err(connection_lost());
        }
        Ok(())
    }

    pub fn query(&mut self, sql: &str, answer: &mut Answer<'_>) -> Result<()> {
        if changes_parsing(sql) {
            self.clear_cache();
        }
        let ran = self.connection.query(sql).map_err(from_client_error);
        let taken = ran.and_then(|results| take(results, answer));
        self.finish(taken)
    }

    pub fn prepare(&mut self, sql: &str) -> Result<u32> {
        let statement = self.connection.prepare(sql).map_err(from_client_error)?;
        let id = statement.id();
        self.statements.insert(id, statement);
        Ok(id)
    }

    pub fn execute(
        &mut self,
        id: u32,
        bound: &[types::Value],
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let Some(statement) = self.statements.get(&id) else {
            return Err(Error::unknown_statement_handler(id, "mysqld_stmt_execute"));
        };
        if bound.len() != statement.parameters() {
            return Err(Error::wrong_arguments("mysqld_stmt_execute"));
        }
        let texts: Vec<String> = bound.iter().map(parameters::text_of).collect();
        let values: Vec<Value<'_>> = bound
            .iter()
            .zip(&texts)
            .map(|(value, text)| parameters::wire_value(value, text))
            .collect();
        let ran = self
            .connection
            .execute(statement, &values)
            .map_err(from_client_error);
        let taken = ran.and_then(|results| take(results, answer));
        self.finish(taken)
    }

    /// An error's reply doesn't say whether a transaction is still open: asks, by a statement that
    /// replies OK.
    fn finish(&mut self, taken: Result<()>) -> Result<()> {
        if taken.is_err() && self.in_transaction() && !self.connection.is_broken() {
            // If even this fails, the next statement returns the error.
            let _ = self.connection.ping();
        }
        taken
    }

    /// The prepared statement of a text, from the cache if it is there.
    pub fn prepare_cached(&mut self, sql: &str) -> Result<(u32, Arc<Columns>)> {
        if let Some(&id) = self.cached.get(sql) {
            return Ok((id, Arc::default()));
        }
        if self.cached.len() >= CACHED_STATEMENTS_MAX {
            self.clear_cache();
        }
        let id = self.prepare(sql)?;
        self.cached.insert(sql.into(), id);
        Ok((id, Arc::default()))
    }

    fn clear_cache(&mut self) {
        for (_, id) in std::mem::take(&mut self.cached) {
            self.close_statement(id);
        }
    }

    pub fn close_statement(&mut self, id: u32) {
        if let Some(statement) = self.statements.remove(&id) {
            self.connection.close_statement(statement);
        }
    }

    pub fn in_transaction(&self) -> bool {
        self.connection.status().contains(Status::IN_TRANS)
    }

    pub fn id(&self) -> u64 {
        self.connection.id().into()
    }
}

fn is_nobody(kind: io::ErrorKind) -> bool {
    use io::ErrorKind as K;
    matches!(
        kind,
        K::NotFound
            | K::ConnectionRefused
            | K::ConnectionReset
            | K::BrokenPipe
            | K::UnexpectedEof
            | K::InvalidData
    )
}

/// Whether a statement may change how texts are read: in which schema names are looked up, or by
/// which `sql_mode`.
fn changes_parsing(sql: &str) -> bool {
    let word = sql.split_ascii_whitespace().next().unwrap_or_default();
    ["USE", "SET"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// An error of the engine as an error of the client.
pub(crate) fn to_client_error(error: Error) -> client::Error {
    let mut sqlstate = *b"HY000";
    if let Ok(state) = error.sqlstate().as_bytes().try_into() {
        sqlstate = state;
    }
    client::Error::Server {
        number: error.number(),
        sqlstate,
        message: error.message().to_string(),
    }
}

/// An error of the client as an engine in this process would have returned it.
fn from_client_error(error: client::Error) -> Error {
    match error {
        client::Error::Server {
            number,
            sqlstate,
            message,
        } => Error::from_remote(number, sqlstate, message),
        error if error.is_fatal() => connection_lost(),
        error => Error::unknown_error(error),
    }
}

fn take(mut results: client::Results<'_>, answer: &mut Answer<'_>) -> Result<()> {
    if results.columns().is_empty() {
        let completion = completion(results.outcome());
        return answer.ok(&completion);
    }
    let columns: Vec<Source> = results
        .columns()
        .iter()
        .map(|column| Source::of(&column))
        .collect();
    answer.begin(Columns::new(
        results.columns().iter().map(|column| column_of(&column)),
    ));
    while let Some(row) = results.next_row().map_err(from_client_error)? {
        for (at, source) in columns.iter().enumerate() {
            let value = row.value(at).map_err(from_client_error)?;
            put(value, *source, answer);
        }
        answer.end_row()?;
    }
    let completion = completion(results.outcome());
    answer.end_rows(&completion)
}

fn completion(outcome: &client::Outcome) -> Completion {
    Completion {
        affected_rows: outcome.affected_rows,
        last_insert_id: outcome.last_insert_id,
        warnings: outcome.warnings,
        message: outcome.message.clone(),
    }
}

fn column_of(column: &ColumnDefinition<'_>) -> Column {
    use ColumnType as T;
    let kind = match column.column_type {
        T::NewDecimal => Kind::Decimal,
        T::Bit => Kind::Bit,
        T::Geometry => Kind::Bytes,
        T::TinyBlob
        | T::Blob
        | T::MediumBlob
        | T::LongBlob
        | T::VarString
        | T::String
        | T::VarChar
            if column.collation == BINARY =>
        {
            Kind::Bytes
        }
        _ => Kind::Text,
    };
    let text = |bytes| String::from_utf8_lossy(bytes);
    Column::new(&text(column.name), &text(column.table), kind)
}

/// What the text of a column's values is to be read as.
#[derive(Clone, Copy)]
enum Source {
    Int,
    UInt,
    Float,
    Double,
    Date,
    DateTime,
    Time,
    Bytes,
}

impl Source {
    fn of(column: &ColumnDefinition<'_>) -> Source {
        use ColumnType as T;
        match column.column_type {
            T::Year => Source::UInt,
            T::Tiny | T::Short | T::Int24 | T::Long | T::LongLong => {
                if column.flags.contains(ColumnFlags::UNSIGNED) {
                    Source::UInt
                } else {
                    Source::Int
                }
            }
            T::Float => Source::Float,
            T::Double => Source::Double,
            T::Date | T::NewDate => Source::Date,
            T::DateTime | T::Timestamp => Source::DateTime,
            T::Time => Source::Time,
            _ => Source::Bytes,
        }
    }
}

/// One value, as the engine would have written it. What can't be read as its column's type stays
/// text.
fn put(value: Value<'_>, source: Source, answer: &mut Answer<'_>) {
    let bytes = match value {
        Value::Null => return answer.null(),
        Value::Int(value) => return answer.int(value),
        Value::UInt(value) => return answer.uint(value),
        Value::Float(value) => return answer.float(value),
        Value::Double(value) => return answer.double(value),
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => &[][..],
        Value::Decimal(bytes) | Value::Text(bytes) | Value::Bytes(bytes) => bytes,
    };
    let written = match source {
        Source::Int => i64::from_value(value).map(|value| answer.int(value)),
        Source::UInt => u64::from_value(value).map(|value| answer.uint(value)),
        Source::Float => f32::from_value(value).map(|value| answer.float(value)),
        Source::Double => f64::from_value(value).map(|value| answer.double(value)),
        Source::Date => client::Date::from_value(value)
            .and_then(parameters::date)
            .map(|value| answer.date(value)),
        Source::DateTime => client::DateTime::from_value(value)
            .and_then(parameters::datetime)
            .map(|value| answer.datetime(value, 6)),
        Source::Time => client::Time::from_value(value)
            .and_then(parameters::time)
            .map(|value| answer.time(value, 6)),
        Source::Bytes => None,
    };
    if written.is_none() {
        answer.bytes(bytes);
    }
}
