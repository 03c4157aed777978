//! Suites of analytical queries: one query at a time, on Porpoise and on a peer, with the answers
//! compared.
//!
//! ```text
//!   Suite ── definitions, rows ──► load ──► each server, ANALYZE TABLE
//!     └───── queries ────────────► run ───► query by query, round by round, each server in turn
//!                                             └─► Report: seconds, ratio, whether answers agree
//! ```
//!
//! 1. A [`Suite`] is a schema, a generator of its rows and queries: [`Tpch`], [`Ssb`],
//!    [`Joins`].
//! 2. [`load`] makes the tables on a server and fills them.
//! 3. [`run`] measures each query until all its rows have come. A query that takes longer than the
//!    plan allows is killed, and is told apart from one that the server refuses.
//! 4. [`Report`] is the table to print.
//!
//! With a folder for plans ([`QueriesPlan::explain`]), what each server says of how it executes a
//! query is written there: the first thing to read of a query that is slow.

mod answer;
pub(crate) mod data;
mod joins;
pub(crate) mod load;
mod reply;
mod report;
mod ssb;
mod tpch;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use porpoise_client::{Connection, Options};

use crate::progress::{self, Progress};
use crate::{Error, Target};

pub use answer::Answer;
pub use data::{Day, Value};
pub use joins::Joins;
pub(crate) use load::fill_suite;
pub use load::load;
pub(crate) use reply::Reply;
pub use report::{Measured, Outcome, Report};
pub use ssb::Ssb;
pub use tpch::Tpch;

/// How much longer than the timeout to wait for a killed query's end, before the connection is
/// given up.
const KILL_PATIENCE: Duration = Duration::from_secs(20);

/// The values of a row, in the order of the table's columns.
pub type Row = Vec<Value>;

/// A schema, its rows, and queries.
pub trait Suite {
    /// Its name, of one word.
    fn name(&self) -> &'static str;
    /// The statements that make its tables, those that others refer to first.
    fn definitions(&self) -> Vec<&'static str>;
    /// Its tables in the order of loading, with their rows.
    fn tables(&self) -> Vec<Table<'_>>;
    /// Its queries, in the order of the report.
    fn queries(&self) -> Vec<Query>;
}

/// A table and its rows, which are generated as they are taken.
pub struct Table<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub rows: Box<dyn Iterator<Item = Row> + 'a>,
}

impl<'a> Table<'a> {
    fn new(name: &'static str, rows: impl Iterator<Item = Row> + 'a) -> Self {
        let rows = Box::new(rows);
        Self { name, rows }
    }
}

/// A query of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its name, of one word.
    pub name: String,
    /// What is sent.
    pub text: String,
    /// The columns, from 0, whose values ORDER BY puts in order. Rows that are alike in these may
    /// come in any order.
    pub ordered_by: Vec<usize>,
}

/// What begins the line before a query, and one of its variants.
const QUERY_MARK: &str = "-- query ";
const VARIANT_MARK: &str = "-- variant ";

/// Reads a file of queries. Before each is a line with its name, and what it is ordered by, and
/// there may be lines with what its variants put in place of `{1}`, `{2}` and so on:
///
/// ```sql
/// -- query 13, ordered by 2 1
/// -- variant a: k.keyword = 'sequel'; t.season > 1
/// SELECT … AND {1} AND {2};
/// ```
///
/// Columns count from 1. Variants' names are put behind that of the query: here it is `13a`.
fn read_queries(file: &str) -> Vec<Query> {
    let parts = file.split(QUERY_MARK).skip(1);
    parts.flat_map(read_variants).collect()
}

fn read_variants(part: &str) -> Vec<Query> {
    let (head, body) = part.split_once('\n').unwrap_or((part, ""));
    let (name, ordered_by) = head.split_once(", ordered by ").unwrap_or((head, ""));
    let column = |number: &str| number.parse::<usize>().ok()?.checked_sub(1);
    let ordered_by: Vec<usize> = ordered_by.split_whitespace().filter_map(column).collect();
    let (variants, lines): (Vec<&str>, Vec<&str>) = body
        .lines()
        .partition(|line| line.starts_with(VARIANT_MARK));
    let text = lines.join("\n");
    let text = text.trim().trim_end_matches(';');
    let query = |suffix: &str, text: String| Query {
        name: format!("{}{suffix}", name.trim()),
        text,
        ordered_by: ordered_by.clone(),
    };
    if variants.is_empty() {
        return vec![query("", text.to_owned())];
    }
    let variant = |line: &&str| {
        let (suffix, values) = line[VARIANT_MARK.len()..].split_once(": ")?;
        let mut text = text.to_owned();
        for (value, place) in values.split("; ").zip(1..) {
            text = text.replace(&format!("{{{place}}}"), value);
        }
        Some(query(suffix, text))
    };
    variants.iter().filter_map(variant).collect()
}

/// The statements of a file: each ends with a semicolon at the end of a line.
pub(crate) fn read_statements(file: &str) -> Vec<&str> {
    let statements = file.split(";\n").map(str::trim);
    statements
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// How queries are measured.
#[derive(Clone, Debug)]
pub struct QueriesPlan {
    /// Names of the queries; all, if there are none.
    pub queries: Vec<String>,
    /// How often each is run; the median counts.
    pub rounds: usize,
    /// How long a query may take.
    pub timeout: Duration,
    /// A folder for what servers say of how they execute the queries, a file for each.
    pub explain: Option<PathBuf>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
    /// Who sets this has the run end after the query that is being measured.
    pub stop: Arc<AtomicBool>,
}

impl Default for QueriesPlan {
    fn default() -> Self {
        Self {
            queries: Vec::new(),
            rounds: 3,
            timeout: Duration::from_secs(60),
            explain: None,
            progress: true,
            stop: Arc::default(),
        }
    }
}

impl QueriesPlan {
    /// The queries of the suite that are to be measured.
    ///
    /// # Errors
    /// If the plan names one that the suite doesn't have.
    pub fn chosen(&self, suite: &dyn Suite) -> Result<Vec<Query>, Error> {
        let mut queries = suite.queries();
        if self.queries.is_empty() {
            return Ok(queries);
        }
        let unknown = |name: &&String| !queries.iter().any(|query| query.name == **name);
        if let Some(name) = self.queries.iter().find(unknown) {
            let names: Vec<&str> = queries.iter().map(|query| &*query.name).collect();
            let suite = suite.name();
            let names = names.join(" ");
            return Err(Error::Plan(format!(
                "{suite} has no query {name}, but {names}"
            )));
        }
        queries.retain(|query| self.queries.contains(&query.name));
        Ok(queries)
    }
}

/// Measures the suite's queries on each target, whose database has the suite's tables.
///
/// # Errors
/// If a target can't be reached, or the plan names a query that isn't there. A query that a server
/// refuses is part of the report.
pub fn run(targets: &[Target], suite: &dyn Suite, plan: &QueriesPlan) -> Result<Report, Error> {
    let mut sessions = Vec::new();
    for target in targets {
        sessions.push(Session::open(target, plan.timeout)?);
    }
    let mut progress = Progress::new(plan.progress);
    let mut report = Report {
        targets: targets.iter().map(|target| target.name.clone()).collect(),
        timeout: plan.timeout,
        queries: Vec::new(),
    };
    for query in plan.chosen(suite)? {
        let mut outcomes: Vec<Outcome> = vec![Outcome::default(); sessions.len()];
        for round in 1..=plan.rounds.max(1) {
            for (session, outcome) in sessions.iter_mut().zip(&mut outcomes) {
                if plan.stop.load(Ordering::Relaxed) {
                    progress.clear();
                    return Ok(report);
                }
                if !outcome.is_settled() {
                    let (name, target) = (&query.name, &session.target.name);
                    progress.show(&format!("query {name} on {target}, round {round}"));
                    session.measure(&query.text, outcome)?;
                }
            }
        }
        if let Some(folder) = &plan.explain {
            explain(&query, &mut sessions, folder)?;
        }
        report.queries.push(Measured { query, outcomes });
    }
    progress.clear();
    Ok(report)
}

/// A connection to a target, made anew when a query has cost it.
struct Session<'a> {
    target: &'a Target,
    timeout: Duration,
    connection: Connection,
}

impl<'a> Session<'a> {
    fn open(target: &'a Target, timeout: Duration) -> Result<Self, Error> {
        let options = Options {
            read_timeout: Some(timeout + KILL_PATIENCE),
            ..target.options.clone()
        };
        let connection = Connection::connect(&options).map_err(target.failed("connecting"))?;
        Ok(Self {
            target,
            timeout,
            connection,
        })
    }

    /// Runs a query and adds to `outcome` what came of it.
    fn measure(&mut self, text: &str, outcome: &mut Outcome) -> Result<(), Error> {
        let id = self.connection.id();
        let (done, is_done) = mpsc::channel::<()>();
        let (target, timeout) = (self.target, self.timeout);
        let (rows, took) = std::thread::scope(|scope| {
            scope.spawn(move || {
                if is_done.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                    // A query that can't be killed costs the connection.
                    let killed = kill(target, "KILL QUERY", id);
                    killed.inspect_err(|error| progress::tell(error)).ok();
                }
            });
            let began = Instant::now();
            let rows = self.connection.rows(text);
            let took = began.elapsed();
            drop(done);
            (rows, took)
        });
        match rows {
            Ok(rows) => outcome.answered(&rows, took),
            Err(_) if took >= timeout => *outcome = Outcome::TimedOut,
            Err(error) => *outcome = Outcome::Refused(error.to_string()),
        }
        if self.connection.is_broken() {
            // What it was at would compete with the next query.
            let killed = kill(target, "KILL", id);
            killed.inspect_err(|error| progress::tell(error)).ok();
            *self = Self::open(target, timeout)?;
        }
        Ok(())
    }
}

fn kill(target: &Target, how: &str, id: u32) -> Result<(), Error> {
    let failed = target.failed("ending a query");
    let mut connection = Connection::connect(&target.options).map_err(&failed)?;
    connection.run(format!("{how} {id}")).map_err(&failed)?;
    Ok(())
}

/// Writes how each server executes a query into a file of its name.
fn explain(query: &Query, sessions: &mut [Session<'_>], folder: &Path) -> Result<(), Error> {
    let mut text = format!("{}\n", query.text);
    for session in sessions {
        let connection = &mut session.connection;
        let tree = connection.rows(format!("EXPLAIN FORMAT=TREE {}", query.text));
        let plan = match tree.or_else(|_| connection.rows(format!("EXPLAIN {}", query.text))) {
            Ok(rows) => answer::shown(&rows),
            Err(error) => format!("{error}\n"),
        };
        write!(text, "\n== {}\n{plan}", session.target.name).expect("a String takes every write");
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(format!("{}.txt", query.name)), text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_queries_is_read() {
        let file = "-- what it is\n\n-- query 1, ordered by 2 1\nSELECT 7,\n  2;\n\n\
                    -- query 2\n-- variant a: x = 1; y\n-- variant b: x = 2; NOT y\n\
                    SELECT {1}\nAND {2};\n";
        let query = |name: &str, text: &str, ordered_by: &[usize]| Query {
            name: name.into(),
            text: text.into(),
            ordered_by: ordered_by.into(),
        };
        assert_eq!(
            read_queries(file),
            [
                query("1", "SELECT 7,\n  2", &[1, 0]),
                query("2a", "SELECT x = 1\nAND y", &[]),
                query("2b", "SELECT x = 2\nAND NOT y", &[]),
            ]
        );
    }
}
