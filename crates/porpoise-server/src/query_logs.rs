//! The general log, of what clients ask for, and the slow query log, of what took long: files in
//! MySQL's formats, tables, or both, as `log_output` says.
//!
//! Whether there are any is asked of the global variables before each command. While a log is off
//! that is all that it costs. A statement that gives an account a password is cut off before the
//! password.
//!
//! A log's file is opened anew after FLUSH LOGS, and when its name is set: so it can be renamed.
//!
//! Source: MySQL 8.4 Reference Manual, 7.4.3 "The General Query Log" and 7.4.5 "The Slow Query Log".

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use porpoise_engine::log_tables::{LogTable, LogTables};
use porpoise_engine::variables::GlobalVariables;
use porpoise_types::{DataType, DateTime, Value, convert};

/// What is said in place of a password.
const SECRET: &[u8] = b" <secret>";

/// The two logs of a server.
pub(crate) struct QueryLogs {
    general: LogFile,
    slow: LogFile,
    /// How many statements the slow query log was told of.
    pub slow_statements: AtomicU64,
}

/// Whose session an entry is about.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub connection: u64,
    pub user: &'a str,
    pub host: &'a str,
}

impl Client<'_> {
    /// The user as logged in, as whom it is let in, the host, and its address where it has one.
    fn user_host(&self) -> String {
        let Client { user, host, .. } = self;
        format!("{user}[{user}] @ {host} []")
    }
}

/// A statement that took long.
pub(crate) struct SlowStatement<'a> {
    pub client: Client<'a>,
    pub schema: Option<&'a str>,
    pub sql: &'a [u8],
    pub took: Duration,
    /// Of which it waited for locks.
    pub waited: Duration,
    pub rows_sent: u64,
    pub rows_examined: u64,
    /// The last AUTO_INCREMENT value that it made.
    pub insert_id: u64,
}

impl Default for QueryLogs {
    fn default() -> QueryLogs {
        QueryLogs {
            general: LogFile::new("Time                 Id Command    Argument"),
            slow: LogFile::new(""),
            slow_statements: AtomicU64::new(0),
        }
    }
}

impl QueryLogs {
    /// Tells the general log of a command.
    pub fn command(
        &self,
        globals: &GlobalVariables,
        tables: &LogTables,
        client: Client<'_>,
        command: &str,
        argument: &[u8],
    ) {
        let now_us = now_us();
        let argument = without_password(argument);
        if globals.logs_to_table() {
            let fields = [
                now_us.to_string().into_bytes(),
                client.user_host().into_bytes(),
                client.connection.to_string().into_bytes(),
                globals.get_u64("server_id").to_string().into_bytes(),
                command.as_bytes().to_vec(),
                argument.clone(),
            ];
            append("mysql.general_log", &tables.general, &fields);
        }
        if !globals.logs_to_file() {
            return;
        }
        let time = shown_time(now_us);
        let connection = client.connection;
        let mut line = format!("{time}\t{connection:5} {command}\t").into_bytes();
        line.extend(argument);
        line.push(b'\n');
        let path = globals.get_text("general_log_file");
        self.general.write(globals, &path, &line);
    }

    /// Tells the slow query log of a statement that has just ended.
    pub fn slow(
        &self,
        globals: &GlobalVariables,
        tables: &LogTables,
        statement: &SlowStatement<'_>,
    ) {
        self.slow_statements.fetch_add(1, Ordering::Relaxed);
        let now_us = now_us();
        let &SlowStatement {
            client,
            schema,
            sql,
            took,
            waited,
            rows_sent,
            rows_examined,
            insert_id,
        } = statement;
        let sql = without_password(sql);
        if globals.logs_to_table() {
            let number = |number: u64| number.to_string().into_bytes();
            let fields = [
                now_us.to_string().into_bytes(),
                client.user_host().into_bytes(),
                number(took.as_micros() as u64),
                number(waited.as_micros() as u64),
                number(rows_sent),
                number(rows_examined),
                schema.unwrap_or_default().as_bytes().to_vec(),
                number(insert_id),
                number(insert_id),
                number(globals.get_u64("server_id")),
                sql.clone(),
                number(client.connection),
            ];
            append("mysql.slow_log", &tables.slow, &fields);
        }
        if !globals.logs_to_file() {
            return;
        }
        let Client {
            connection,
            user,
            host,
        } = client;
        let mut entry = format!(
            "# Time: {}\n# User@Host: {user}[{user}] @ {host} []  Id: {connection:5}\n\
             # Query_time: {:.6}  Lock_time: {:.6} Rows_sent: {rows_sent}  Rows_examined: {rows_examined}\n",
            shown_time(now_us),
            took.as_secs_f64(),
            waited.as_secs_f64(),
        )
        .into_bytes();
        if let Some(schema) = schema {
            entry.extend(format!("use {schema};\n").as_bytes());
        }
        let began_s = (now_us - took.as_micros() as i64) / 1_000_000;
        entry.extend(format!("SET timestamp={began_s};\n").as_bytes());
        entry.extend(sql);
        entry.extend(b";\n");
        let path = globals.get_text("slow_query_log_file");
        self.slow.write(globals, &path, &entry);
    }
}

/// One log's file.
struct LogFile {
    /// The last line of its head.
    columns: &'static str,
    open: Mutex<OpenFile>,
}

/// The file that a log goes to now.
#[derive(Default)]
struct OpenFile {
    path: PathBuf,
    generation: u64,
    /// `None` before the first line, and after an error.
    file: Option<File>,
}

impl LogFile {
    fn new(columns: &'static str) -> LogFile {
        LogFile {
            columns,
            open: Mutex::default(),
        }
    }

    /// Writes an entry to the file at a path, which may be relative to the data folder.
    fn write(&self, globals: &GlobalVariables, path: &str, entry: &[u8]) {
        let path = Path::new(&*globals.get_text("datadir")).join(path);
        let generation = globals.log_generation();
        let mut open = self.open.lock();
        if open.path != path || open.generation != generation {
            let file = self.open_at(&path, globals);
            let file = file.map_err(|error| report(&path, &error)).ok();
            *open = OpenFile {
                path,
                generation,
                file,
            };
        }
        // After an error it waits for another name, or FLUSH LOGS: the error is told once.
        if let Some(file) = &mut open.file
            && let Err(error) = file.write_all(entry)
        {
            report(&open.path, &error);
            open.file = None;
        }
    }

    fn open_at(&self, path: &Path, globals: &GlobalVariables) -> io::Result<File> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let port = globals.get_u64("port");
        let socket = globals.get_text("socket");
        let version = crate::SERVER_VERSION;
        let columns = self.columns;
        let newline = if columns.is_empty() { "" } else { "\n" };
        let head = format!(
            "porpoise, Version: {version}. started with:\n\
             Tcp port: {port}  Unix socket: {socket}\n{columns}{newline}"
        );
        file.write_all(head.as_bytes())?;
        Ok(file)
    }
}

fn append<const N: usize>(name: &str, table: &LogTable, fields: &[Vec<u8>; N]) {
    if let Err(error) = table.append(&fields.each_ref().map(Vec::as_slice)) {
        report(Path::new(name), &error);
    }
}

fn report(path: &Path, error: &io::Error) {
    tracing::error!("can't write the log '{}': {error}", path.display());
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

/// A moment as `log_timestamps=UTC` shows it.
fn shown_time(utc_us: i64) -> String {
    let moment = DateTime::from_unix_micros(utc_us).unwrap_or_default();
    let text = convert::to_text(&Value::DateTime(moment), &DataType::DateTime { fsp: 6 });
    format!("{}Z", text.replacen(' ', "T", 1))
}

/// A statement, cut off behind IDENTIFIED and SET PASSWORD, where passwords stand.
fn without_password(sql: &[u8]) -> Vec<u8> {
    let mut before: &[u8] = b"";
    let mut end = 0;
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    while let Some(begin) = sql[end..].iter().position(is_word) {
        let begin = end + begin;
        let length = sql[begin..].iter().position(|byte| !is_word(byte));
        end = length.map_or(sql.len(), |length| begin + length);
        let word = &sql[begin..end];
        let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is(word, "IDENTIFIED") || (is(word, "PASSWORD") && is(before, "SET")) {
            return [&sql[..end], SECRET].concat();
        }
        before = word;
    }
    sql.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_logged() {
        for (sql, logged) in [
            ("SELECT password FROM users", "SELECT password FROM users"),
            (
                "create user a identified by 'x', b identified by 'y'",
                "create user a identified <secret>",
            ),
            ("SET PASSWORD = 'x'", "SET PASSWORD <secret>"),
            (
                "SELECT 1; SET\n password FOR a = 'x'",
                "SELECT 1; SET\n password <secret>",
            ),
            ("", ""),
        ] {
            assert_eq!(without_password(sql.as_bytes()), logged.as_bytes());
        }
    }

    #[test]
    fn moments_are_shown_in_utc_with_microseconds() {
        assert_eq!(shown_time(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(shown_time(1_500_000), "1970-01-01T00:00:01.500000Z");
    }
}
