//! Runs sqllogictest files, each in a database of its own, and reports every record that fails.
//!
//! Results are written so:
//!
//! | value | text |
//! | --- | --- |
//! | NULL | `NULL` |
//! | empty string | `(empty)` |
//! | bytes that are not UTF-8, or hold control characters | `0x` and hexadecimal digits |
//! | line feed, tab, carriage return | `\n`, `\t`, `\r` |
//! | a space at either end | `␠` |
//! | anything else | the bytes the server sent |
//!
//! Columns are one space apart. The letters after `query` are checked: `I` integers and YEAR, `R`
//! DECIMAL and floating point, `T` everything else, `?` any.
//!
//! `statement error 1062 \(23000\)` is matched against `ERROR 1062 (23000): text`.

use std::path::{Path, PathBuf};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner};

use crate::server::{Product, Route, Server};
use crate::wire::{Error, Reply, Wire};

/// What the files run on: a server over one route, or an embedded database.
pub struct Subject<'s> {
    /// Which product it is: its label chooses the records that run.
    pub product: Product,
    /// The name of the way in, as reports show it.
    pub route: String,
    /// Logs in, with this database (empty: none) as the current one.
    pub connect: Box<dyn Fn(&str) -> Result<Wire, Error> + 's>,
}

impl Subject<'_> {
    /// A server, over one of its routes.
    pub fn server(server: &Server, route: Route) -> Subject<'_> {
        Subject {
            product: server.product,
            route: format!("{route:?}"),
            connect: Box::new(move |database| server.connect(route, database)),
        }
    }
}

/// A file that takes longer is reported: something in it waits or hangs.
const SLOW: Duration = Duration::from_secs(10);

/// The outcome of a run of many files.
#[derive(Default)]
pub struct Tally {
    /// How many files ran.
    pub files: usize,
    /// How many records they have for this product.
    pub records: usize,
    /// The files with failing records, each with its failures.
    pub failed: Vec<(String, Vec<String>)>,
}

impl Tally {
    /// How many files and records pass, as one line.
    pub fn summary(&self) -> String {
        let failures: usize = self.failed.iter().map(|(_, failures)| failures.len()).sum();
        format!(
            "{} of {} files, {} of {} records pass",
            self.files - self.failed.len(),
            self.files,
            self.records - failures,
            self.records
        )
    }
}

/// The files to run: all of `tests/slt`, or those whose path contains one of the words in
/// `PORPOISE_SLT_FILTER`.
pub fn chosen_files() -> Vec<PathBuf> {
    let files = crate::files_below(&crate::repository("tests/slt"), "slt");
    match std::env::var("PORPOISE_SLT_FILTER") {
        Ok(filter) => files
            .into_iter()
            .filter(|f| filter.split_whitespace().any(|w| name(f).contains(w)))
            .collect(),
        Err(_) => files,
    }
}

/// A file's path below `tests/slt`.
pub fn name(file: &Path) -> String {
    let root = crate::repository("tests/slt");
    file.strip_prefix(&root)
        .unwrap_or(file)
        .display()
        .to_string()
}

/// Runs `files` one after the other.
pub fn run(subject: &Subject<'_>, files: &[PathBuf]) -> Tally {
    let mut tally = Tally::default();
    for file in files {
        let started = Instant::now();
        let (records, failures) = run_file(subject, file);
        if started.elapsed() > SLOW {
            println!("{} took {:.0?}", name(file), started.elapsed());
        }
        tally.files += 1;
        tally.records += records;
        if !failures.is_empty() {
            tally.failed.push((name(file), failures));
        }
    }
    tally
}

/// Runs a file and returns how many records it has for this product, and the failures among them.
fn run_file(subject: &Subject<'_>, file: &Path) -> (usize, Vec<String>) {
    let parsed = match sqllogictest::parse_file::<DefaultColumnType>(file) {
        Ok(parsed) => parsed,
        Err(e) => return (1, vec![e.to_string()]),
    };
    let mut records = 0;
    let mut failures = Vec::new();
    let database = in_database_of_its_own(subject, file, |database| {
        let mut runner = Runner::new(|| async { (subject.connect)(database).map(Session) });
        runner.add_label(subject.product.label());
        runner.with_normalizer(String::clone);
        runner.with_column_validator(same_types);
        for record in parsed {
            records += usize::from(matches!(
                record,
                Record::Statement { .. } | Record::Query { .. }
            ));
            if let Err(e) = runner.run(record) {
                failures.push(e.display(false).to_string());
            }
        }
        runner.shutdown();
    });
    if let Err(e) = database {
        failures.push(format!("the file's database: {e}"));
    }
    (records.max(failures.len()), failures)
}

/// Writes this server's results into the file wherever they differ from what it expects.
///
/// # Errors
/// When the file can't be read or written, or the server can't be reached.
pub fn record_file(subject: &Subject<'_>, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut outcome = Ok(());
    in_database_of_its_own(subject, file, |database| {
        let mut runner = Runner::new(|| async { (subject.connect)(database).map(Session) });
        runner.add_label(subject.product.label());
        let validator = sqllogictest::default_validator;
        outcome =
            finished(runner.update_test_file(file, " ", validator, String::clone, same_types));
        runner.shutdown();
    })?;
    outcome
}

fn in_database_of_its_own(
    subject: &Subject<'_>,
    file: &Path,
    run: impl FnOnce(&str),
) -> Result<(), Error> {
    let database = format!(
        "slt_{}",
        name(file)
            .trim_end_matches(".slt")
            .replace(['/', '-', '.'], "_")
    );
    let mut admin = (subject.connect)("")?;
    admin.query(&format!("DROP DATABASE IF EXISTS {database}"))?;
    admin.query(&format!("CREATE DATABASE {database}"))?;
    run(&database);
    admin.query(&format!("DROP DATABASE {database}"))?;
    Ok(())
}

#[allow(clippy::ptr_arg)] // the runner asks for this type
fn same_types(actual: &Vec<DefaultColumnType>, expected: &Vec<DefaultColumnType>) -> bool {
    let same = |(a, e): (_, &DefaultColumnType)| *e == DefaultColumnType::Any || a == e;
    actual.len() == expected.len() && actual.iter().zip(expected).all(same)
}

/// Runs a future that never waits: sessions block instead.
fn finished<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(done) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return done;
        }
    }
}

struct Session(Wire);

impl DB for Session {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        Ok(match self.0.query(sql)? {
            Reply::Done { affected } => DBOutput::StatementComplete(affected),
            Reply::Rows { columns, rows } => DBOutput::Rows {
                types: columns.iter().map(|c| letter(c.type_code)).collect(),
                rows: rows
                    .iter()
                    .map(|row| row.iter().map(|v| text(v.as_deref())).collect())
                    .collect(),
            },
        })
    }

    fn error_sql_state(error: &Error) -> Option<String> {
        match error {
            Error::Server { sqlstate, .. } => Some(sqlstate.clone()),
            Error::Connection(_) => None,
        }
    }
}

fn letter(type_code: u8) -> DefaultColumnType {
    match type_code {
        1..=3 | 8 | 9 | 13 => DefaultColumnType::Integer,
        0 | 4 | 5 | 246 => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

/// A value as files show it; see the table at the top.
pub fn text(value: Option<&[u8]>) -> String {
    let Some(bytes) = value else {
        return "NULL".to_owned();
    };
    if bytes.is_empty() {
        return "(empty)".to_owned();
    }
    let shown = match std::str::from_utf8(bytes) {
        Ok(text) => text
            .replace('\n', "\\n")
            .replace('\t', "\\t")
            .replace('\r', "\\r"),
        Err(_) => return hexadecimal(bytes),
    };
    if shown.chars().any(char::is_control) {
        return hexadecimal(bytes);
    }
    let inner = shown.trim_matches(' ');
    let start = shown.len() - shown.trim_start_matches(' ').len();
    let end = if inner.is_empty() {
        0
    } else {
        shown.len() - shown.trim_end_matches(' ').len()
    };
    format!("{}{}{}", "␠".repeat(start), inner, "␠".repeat(end))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold("0x".to_owned(), |text, byte| text + &format!("{byte:02X}"))
}

/// The files that Porpoise does not pass yet, as a folder's `PENDING` names them: one a line; `#`
/// starts a comment. A line `*` stands for all of them.
pub struct Pending(Vec<String>);

impl Pending {
    /// Reads `PENDING` in a folder of the repository. Without such a file nothing is pending.
    pub fn read(folder: &str) -> Pending {
        let text =
            std::fs::read_to_string(crate::repository(folder).join("PENDING")).unwrap_or_default();
        let lines = text
            .lines()
            .map(|l| l.split('#').next().unwrap_or_default().trim());
        Pending(lines.filter(|l| !l.is_empty()).map(str::to_owned).collect())
    }

    /// Whether every file is pending.
    pub fn is_everything(&self) -> bool {
        self.0.iter().any(|line| line == "*")
    }

    /// Whether this file is named.
    pub fn holds(&self, file: &str) -> bool {
        self.0.iter().any(|line| line == file)
    }
}

/// Starts a server and runs the chosen files on it, as [`assert_subject_passes`] does.
///
/// # Panics
/// As that, and when the server doesn't start.
pub fn assert_passes(product: Product, route: Route) {
    let server = Server::start(product);
    assert_subject_passes(&Subject::server(&server, route));
}

/// Runs the chosen files and prints every failure.
///
/// # Panics
/// Unless exactly the pending files fail, or when no file is chosen.
pub fn assert_subject_passes(subject: &Subject<'_>) {
    let (product, route) = (subject.product, &subject.route);
    let pending = match product {
        Product::MariaDb | Product::MySql => Pending(Vec::new()),
        Product::Porpoise => Pending::read("tests/slt"),
    };
    if pending.is_everything() {
        println!("{product:?} over {route}: all files are pending");
        return;
    }
    let files = chosen_files();
    assert!(!files.is_empty(), "no file is chosen");
    if product == Product::MariaDb && std::env::var_os("PORPOISE_SLT_RECORD").is_some() {
        for file in &files {
            record_file(subject, file).unwrap_or_else(|e| panic!("{}: {e}", name(file)));
        }
    }
    let tally = run(subject, &files);
    let mut wrong = 0;
    for (file, failures) in &tally.failed {
        if !pending.holds(file) {
            wrong += 1;
            println!(
                "\n──── {file} on {product:?} over {route}: {} failures",
                failures.len()
            );
            failures.iter().for_each(|failure| println!("{failure}"));
        }
    }
    for file in files.iter().map(|f| name(f)) {
        if pending.holds(&file) && !tally.failed.iter().any(|(failed, _)| *failed == file) {
            wrong += 1;
            println!("{file} passes: take it off tests/slt/PENDING");
        }
    }
    println!("\n{product:?} over {route}: {}", tally.summary());
    assert_eq!(wrong, 0, "files that went wrong");
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_value_is_shown_so_that_no_two_look_alike() {
        assert_eq!(text(None), "NULL");
        assert_eq!(text(Some(b"")), "(empty)");
        assert_eq!(text(Some(b" a ")), "␠a␠");
        assert_eq!(text(Some(b"  ")), "␠␠");
        assert_eq!(text(Some(b"a\nb")), "a\\nb");
        assert_eq!(text(Some(b"\xff\x00")), "0xFF00");
        assert_eq!(text(Some(b"\x01")), "0x01");
    }
}
