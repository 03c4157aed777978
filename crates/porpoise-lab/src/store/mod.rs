//! The results of an experiment: a Porpoise database in a folder.
//!
//! `porpoise sql FOLDER` reads it while the experiment runs: a folder that one process has open lets
//! others in. A run is one transaction, written when it is over, so that what is in the folder is
//! whole whenever the experiment stops, for whatever reason.
//!
//! ```text
//! experiment, files   sessions ─── facts
//!        │                │ in which
//!     points ◄────────── runs ◄──── seconds, errors, kinds, figures
//! ```

mod export;
mod tables;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use porpoise::{Connection, Database, Value};

use crate::experiment::Experiment;
use crate::machine::Fact;
use crate::resources::Usage;
use crate::{Error, Histogram};

pub use tables::SCHEMA;

const SOMETHING_ELSE: &str = "it is a folder of something else: name another with --results";

/// Characters of a failure that are kept.
const FAILURE_HEAD: usize = 2_000;
const FAILURE_TAIL: usize = 8_000;

/// Of GET_LOCK: one process at a time works at an experiment.
const LOCK: &str = "porpoise lab run";

/// The results of an experiment.
pub struct Results {
    folder: PathBuf,
    connection: Connection,
}

/// What one run came to.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How long it took until throughput was stationary.
    pub warm_up_seconds: f64,
    /// Whether it was; `None`: whoever warmed up can't tell.
    pub is_stationary: Option<bool>,
    /// How long was measured.
    pub seconds: f64,
    /// Transactions, and their statements.
    pub transactions: u64,
    /// Their statements.
    pub statements: u64,
    /// Transactions rolled back, by the error's number.
    pub conflicts: Vec<(u16, u64)>,
    /// What transactions took.
    pub latencies: Histogram,
    /// The same of each kind of transaction, if there are several.
    pub kinds: Vec<MeasuredKind>,
    /// Figures of the workload's own, by name.
    pub figures: Vec<(String, f64)>,
    /// When each second ended, since measuring began, and transactions a second in it.
    pub per_second: Vec<(f64, f64)>,
    /// The server's use of the machine; not known of every server.
    pub server: Option<Usage>,
    /// The clients' process's.
    pub client: Usage,
    /// Threads that wanted a CPU before it began.
    pub load_average: Option<f64>,
}

/// What a run came to in one kind of transaction.
#[derive(Clone, Debug, Default)]
pub struct MeasuredKind {
    /// Its name.
    pub name: String,
    /// Transactions rolled back.
    pub conflicts: u64,
    /// What the others took.
    pub latencies: Histogram,
}

/// A run that is still to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Its number in the order of runs, from 1.
    pub id: u32,
    /// The number of its point in [`Experiment::points`].
    pub point: usize,
    /// Which of the point's runs it is, from 1.
    pub repetition: u32,
}

/// How many runs there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// To come.
    pub planned: u64,
    /// Measured.
    pub done: u64,
    /// That came to nothing.
    pub failed: u64,
}

/// Whether a folder is a database of Porpoise, or began to be one.
fn is_database(folder: &Path) -> bool {
    folder.join("LOCK").is_file()
}

/// What is long, such as a server's whole log, with its beginning and its end.
fn shortened(text: &str) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= FAILURE_HEAD + FAILURE_TAIL {
        return text.into();
    }
    let head: String = text.chars().take(FAILURE_HEAD).collect();
    let tail: String = text.chars().skip(count - FAILURE_TAIL).collect();
    format!("{head} … {tail}").into()
}

fn is_empty(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder);
    entries.is_ok_and(|mut entries| entries.next().is_none())
}

impl Results {
    /// Opens the results of an experiment, to look at.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        if !folder.is_dir() {
            let what = format!("there is no folder {}", folder.display());
            return Err(Error::Plan(what));
        }
        if !is_database(folder) {
            let what = format!("{}: it holds no experiment's results", folder.display());
            return Err(Error::Plan(what));
        }
        let results = Self::connect(folder)?;
        match results.format()? {
            Some(_) => Ok(results),
            None => Err(results.failed("it holds no experiment's results")),
        }
    }

    /// Opens the results of `experiment`, made if they aren't there, to add to them. Those of
    /// another experiment are refused, and those that another process works at.
    pub fn open_for(folder: &Path, experiment: &Experiment) -> Result<Self, Error> {
        let foreign = |what: &str| Error::Plan(format!("{}: {what}", folder.display()));
        if folder.exists() && !folder.is_dir() {
            return Err(foreign("it is a file: results are a folder"));
        }
        // Nothing is written beside what belongs to somebody else.
        if folder.is_dir() && !is_database(folder) && !is_empty(folder) {
            return Err(foreign(SOMETHING_ELSE));
        }
        let results = Self::connect(folder)?;
        if results.number("SELECT GET_LOCK(?, 0)", &[LOCK.into()])? != 1 {
            return Err(foreign("another 'porpoise lab' works at it"));
        }
        match results.format()? {
            Some(_) => results.check_that_it_is(experiment)?,
            None => {
                // New, or stopped while it was made: it has no schema, or this one without all tables.
                let others = "SELECT COUNT(*) FROM information_schema.SCHEMATA
                    WHERE SCHEMA_NAME NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys', ?)";
                if results.number(others, &[SCHEMA.into()])? > 0 {
                    return Err(foreign(SOMETHING_ELSE));
                }
                results.run(&format!("DROP DATABASE IF EXISTS {SCHEMA}"), &[])?;
                results.begin(experiment)?;
            }
        }
        Ok(results)
    }

    fn connect(folder: &Path) -> Result<Self, Error> {
        let failed = |error: porpoise::Error| {
            Error::Results(format!("{}: {}", folder.display(), error.message()))
        };
        let database = Database::open(folder).map_err(failed)?;
        Ok(Self {
            folder: folder.to_owned(),
            connection: database.connect().map_err(failed)?,
        })
    }

    /// The version of the tables; `None` without them. One that this program doesn't know is an
    /// error.
    fn format(&self) -> Result<Option<u32>, Error> {
        let exists = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'format'";
        if self.number(exists, &[SCHEMA.into()])? == 0 {
            return Ok(None);
        }
        // The row is written last.
        let format = self.number("SELECT COALESCE(MAX(version), 0) FROM lab.format", &[])?;
        match u32::try_from(format).unwrap_or(u32::MAX) {
            0 => Ok(None),
            format if format > tables::FORMAT => Err(Error::Plan(format!(
                "{}: it was written by a newer version (format {format}, this program knows {}): it is left as it is",
                self.folder.display(),
                tables::FORMAT
            ))),
            format => {
                if format < tables::FORMAT {
                    self.renew()?;
                }
                Ok(Some(tables::FORMAT))
            }
        }
    }

    /// Of a lower version: what it has not is made, and is empty.
    fn renew(&self) -> Result<(), Error> {
        for (_, create) in tables::TABLES {
            let create = create.replacen("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1);
            self.run(&create, &[])?;
        }
        let version = [tables::FORMAT.into()];
        self.run("UPDATE lab.format SET version = ?", &version)
    }

    fn check_that_it_is(&self, experiment: &Experiment) -> Result<(), Error> {
        let rows = self.rows("SELECT content FROM lab.files ORDER BY number", &[])?;
        let texts: Vec<&str> = experiment.files.iter().map(|(_, text)| &**text).collect();
        let known: Vec<Vec<String>> = rows.to_text();
        if known.len() != texts.len()
            || known.iter().zip(&texts).any(|(row, text)| row[0] != **text)
        {
            return Err(Error::Plan(format!(
                "{}: it has the results of another experiment, or of this one before its file was changed: name another folder with --results",
                self.folder.display()
            )));
        }
        Ok(())
    }

    /// Writes down what is to be done.
    fn begin(&self, experiment: &Experiment) -> Result<(), Error> {
        self.run(&format!("CREATE DATABASE {SCHEMA}"), &[])?;
        for (_, create) in tables::TABLES {
            self.run(create, &[])?;
        }
        self.in_transaction(|| {
            self.run(
                "INSERT INTO lab.experiment VALUES (?, ?, ?, ?, ?)",
                &[
                    (&*experiment.title).into(),
                    experiment.seed.into(),
                    experiment.runs.into(),
                    experiment.duration.as_secs_f64().into(),
                    experiment.baseline.as_deref().into(),
                ],
            )?;
            for (number, (name, text)) in experiment.files.iter().enumerate() {
                let values = [(number as u64).into(), (&**name).into(), (&**text).into()];
                self.run("INSERT INTO lab.files VALUES (?, ?, ?)", &values)?;
            }
            self.plan(experiment)?;
            self.run(
                "INSERT INTO lab.format VALUES (?)",
                &[tables::FORMAT.into()],
            )
        })
    }

    fn plan(&self, experiment: &Experiment) -> Result<(), Error> {
        for (id, point) in experiment.points.iter().enumerate() {
            let affinity = point.affinity.as_ref();
            let cpus = |cpus: &[usize]| {
                (!cpus.is_empty()).then(|| crate::affinity::list(&cpus.iter().copied().collect()))
            };
            let server_cpus = affinity.and_then(|affinity| cpus(&affinity.server));
            let client_cpus = affinity.and_then(|affinity| cpus(&affinity.clients));
            self.run(
                "INSERT INTO lab.points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                &[
                    (id as u64).into(),
                    (&*experiment.series(point)).into(),
                    (&*experiment.servers[point.server].name).into(),
                    point.way.key().into(),
                    (&*experiment.workloads[point.workload].name).into(),
                    (point.clients as u64).into(),
                    (experiment.threads(point) as u64).into(),
                    affinity.map(|affinity| &*affinity.name).into(),
                    server_cpus.as_deref().into(),
                    client_cpus.as_deref().into(),
                    point.rate.into(),
                ],
            )?;
        }
        for (at, run) in experiment.schedule().iter().enumerate() {
            let values = [
                (at as u64 + 1).into(),
                (run.point as u64).into(),
                run.repetition.into(),
            ];
            self.run(
                "INSERT INTO lab.runs (id, point, repetition) VALUES (?, ?, ?)",
                &values,
            )?;
        }
        Ok(())
    }

    /// A session begins: `lab run` was called. Returned is its number.
    pub fn begin_session(&self) -> Result<u32, Error> {
        let id = self.number("SELECT COALESCE(MAX(id), 0) + 1 FROM lab.sessions", &[])?;
        self.run(
            "INSERT INTO lab.sessions VALUES (?, UTC_TIMESTAMP(3), NULL)",
            &[id.into()],
        )?;
        Ok(id as u32)
    }

    /// The session has come to its end.
    pub fn end_session(&self, session: u32) -> Result<(), Error> {
        self.run(
            "UPDATE lab.sessions SET ended = UTC_TIMESTAMP(3) WHERE id = ?",
            &[session.into()],
        )
    }

    /// Notes what the machine or a server is.
    pub fn add_facts(&self, session: u32, subject: &str, facts: &[Fact]) -> Result<(), Error> {
        for (name, value) in facts {
            let values = [
                session.into(),
                subject.into(),
                (&**name).into(),
                (&**value).into(),
            ];
            self.run("REPLACE INTO lab.facts VALUES (?, ?, ?, ?)", &values)?;
        }
        Ok(())
    }

    /// Runs that came to nothing are to be done again.
    pub fn retry_failed(&self) -> Result<(), Error> {
        self.run(
            "UPDATE lab.runs SET state = 'planned', failure = NULL WHERE state = 'failed'",
            &[],
        )
    }

    /// The runs that are still to be done, in order.
    pub fn planned(&self) -> Result<Vec<PlannedRun>, Error> {
        let rows = self.rows(
            "SELECT id, point, repetition FROM lab.runs WHERE state = 'planned' ORDER BY id",
            &[],
        )?;
        let planned = rows
            .iter()
            .map(|row| -> Result<PlannedRun, porpoise::Error> {
                let point: u64 = row.get(1)?;
                Ok(PlannedRun {
                    id: row.get(0)?,
                    point: point as usize,
                    repetition: row.get(2)?,
                })
            });
        planned
            .collect::<Result<_, _>>()
            .map_err(|error| self.failed(error.message()))
    }

    /// How many runs there are.
    pub fn counts(&self) -> Result<RunCounts, Error> {
        let count = |state: &str| {
            self.number(
                "SELECT COUNT(*) FROM lab.runs WHERE state = ?",
                &[state.into()],
            )
        };
        Ok(RunCounts {
            planned: count("planned")?,
            done: count("done")?,
            failed: count("failed")?,
        })
    }

    /// Writes down what a run came to.
    pub fn finish(&self, session: u32, run: u32, measured: &Measured) -> Result<(), Error> {
        let milliseconds =
            |share| (measured.latencies.percentile(share).as_secs_f64() * 1e3).into();
        let conflicts: u64 = measured.conflicts.iter().map(|(_, count)| count).sum();
        let latencies = measured.latencies.to_bytes();
        let server = measured.server;
        let client = Some(measured.client);
        let mut values: Vec<Value<'_>> = vec![
            session.into(),
            (measured.warm_up_seconds + measured.seconds).into(),
            measured.warm_up_seconds.into(),
            measured.is_stationary.map(u8::from).into(),
            measured.seconds.into(),
            measured.transactions.into(),
            measured.statements.into(),
            (measured.transactions as f64 / measured.seconds).into(),
            (measured.statements as f64 / measured.seconds).into(),
            conflicts.into(),
            (measured.latencies.mean().as_secs_f64() * 1e3).into(),
            milliseconds(0.5),
            milliseconds(0.95),
            milliseconds(0.99),
            milliseconds(0.999),
            (measured.latencies.max().as_secs_f64() * 1e3).into(),
            Value::Bytes(&latencies),
        ];
        for usage in [server, client] {
            values.extend::<[Value<'_>; 5]>([
                usage.map(|usage| usage.user.as_secs_f64()).into(),
                usage.map(|usage| usage.system.as_secs_f64()).into(),
                usage.map(|usage| usage.voluntary_switches).into(),
                usage.map(|usage| usage.involuntary_switches).into(),
                usage.map(|usage| usage.resident_bytes).into(),
            ]);
        }
        values.push(measured.load_average.into());
        values.push(run.into());
        self.in_transaction(|| {
            self.run(
                "UPDATE lab.runs SET state = 'done', session = ?,
                   began = UTC_TIMESTAMP(3) - INTERVAL ? SECOND, warm_up_seconds = ?, stationary = ?,
                   seconds = ?, transactions = ?, statements = ?, transactions_per_second = ?,
                   statements_per_second = ?, conflicts = ?, latency_mean_ms = ?, latency_p50_ms = ?,
                   latency_p95_ms = ?, latency_p99_ms = ?, latency_p999_ms = ?, latency_max_ms = ?,
                   latencies = ?, server_user_seconds = ?, server_system_seconds = ?,
                   server_voluntary_switches = ?, server_involuntary_switches = ?, server_memory_bytes = ?,
                   client_user_seconds = ?, client_system_seconds = ?, client_voluntary_switches = ?,
                   client_involuntary_switches = ?, client_memory_bytes = ?, load_average = ?, failure = NULL
                 WHERE id = ?",
                &values,
            )?;
            for (number, &(at, per_second)) in measured.per_second.iter().enumerate() {
                let values = [run.into(), (number as u64 + 1).into(), at.into(), per_second.into()];
                self.run("INSERT INTO lab.seconds VALUES (?, ?, ?, ?)", &values)?;
            }
            for &(number, count) in &measured.conflicts {
                let values = [run.into(), number.into(), count.into()];
                self.run("INSERT INTO lab.errors VALUES (?, ?, ?)", &values)?;
            }
            for (number, kind) in measured.kinds.iter().enumerate() {
                self.add_kind(run, number as u64 + 1, kind)?;
            }
            for (name, value) in &measured.figures {
                let values = [run.into(), (&**name).into(), (*value).into()];
                self.run("INSERT INTO lab.figures VALUES (?, ?, ?)", &values)?;
            }
            Ok(())
        })
    }

    fn add_kind(&self, run: u32, number: u64, kind: &MeasuredKind) -> Result<(), Error> {
        let latencies = &kind.latencies;
        let milliseconds = |share| (latencies.percentile(share).as_secs_f64() * 1e3).into();
        let bytes = latencies.to_bytes();
        let values = [
            run.into(),
            number.into(),
            (&*kind.name).into(),
            latencies.count().into(),
            kind.conflicts.into(),
            (latencies.mean().as_secs_f64() * 1e3).into(),
            milliseconds(0.5),
            milliseconds(0.9),
            milliseconds(0.99),
            Value::Bytes(&bytes),
        ];
        self.run(
            "INSERT INTO lab.kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &values,
        )
    }

    /// Writes down that a run came to nothing, so long after it began.
    pub fn fail(&self, session: u32, run: u32, after: Duration, why: &str) -> Result<(), Error> {
        let why = &*shortened(why);
        let microseconds = u64::try_from(after.as_micros()).unwrap_or(0);
        self.run(
            "UPDATE lab.runs SET state = 'failed', session = ?, failure = ?,
               began = UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND WHERE id = ?",
            &[session.into(), why.into(), microseconds.into(), run.into()],
        )
    }

    /// The answer to a query of the tables.
    pub fn query(&self, sql: &str) -> Result<porpoise::Rows, Error> {
        self.rows(sql, &[])
    }

    fn in_transaction(&self, change: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let transaction = self.connection.transaction();
        let transaction = transaction.map_err(|error| self.failed(error.message()))?;
        change()?;
        transaction
            .commit()
            .map_err(|error| self.failed(error.message()))
    }

    fn run(&self, sql: &str, values: &[Value<'_>]) -> Result<(), Error> {
        let ran = self.connection.execute(sql, values);
        ran.map_err(|error| self.failed(error.message()))?;
        Ok(())
    }

    fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<porpoise::Rows, Error> {
        let rows = self.connection.query(sql, values);
        rows.map_err(|error| self.failed(error.message()))
    }

    /// The first column of the first row.
    fn number(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Error> {
        let rows = self.rows(sql, values)?;
        let number = rows.get(0).map(|row| row.get::<Option<u64>>(0));
        match number {
            Some(Ok(number)) => Ok(number.unwrap_or(0)),
            Some(Err(error)) => Err(self.failed(error.message())),
            None => Ok(0),
        }
    }

    fn failed(&self, what: &str) -> Error {
        Error::Results(format!("{}: {what}", self.folder.display()))
    }
}
