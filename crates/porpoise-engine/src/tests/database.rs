//! A database in memory, and sessions of it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use porpoise_catalog::{Relation, Table, create_text};
use porpoise_core::error::Result;
use porpoise_core::reply::{Completion, Reply, ResultColumn};
use porpoise_storage::Location;
use porpoise_types::{DataType, Date, DateTime, Time};

use crate::engine::{Engine, EngineOptions};
use crate::session::{Login, Session};

/// Keeps the last answer: its OK, or its rows as text.
#[derive(Default)]
pub(super) struct Answers {
    pub ok: Completion,
    columns: Vec<String>,
    types: Vec<DataType>,
    rows: Vec<Vec<String>>,
}

impl Answers {
    /// All values that are integers, row by row.
    pub fn integers(&self) -> Vec<i64> {
        let values = self.rows.iter().flatten();
        values.filter_map(|value| value.parse().ok()).collect()
    }

    fn push(&mut self, text: String) {
        if let Some(row) = self.rows.last_mut() {
            row.push(text);
        }
    }
}

impl Reply for Answers {
    fn ok(&mut self, completion: &Completion) -> Result<()> {
        self.ok = completion.clone();
        Ok(())
    }
    fn begin_rows(&mut self, columns: &[ResultColumn]) -> Result<()> {
        self.columns = columns
            .iter()
            .map(|column| column.name.to_string())
            .collect();
        self.types = columns.iter().map(|column| column.ty.clone()).collect();
        Ok(())
    }
    fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }
    fn null(&mut self) {
        self.push("NULL".into());
    }
    fn int(&mut self, value: i64) {
        self.push(value.to_string());
    }
    fn uint(&mut self, value: u64) {
        self.push(value.to_string());
    }
    fn float(&mut self, value: f32) {
        self.push(value.to_string());
    }
    fn double(&mut self, value: f64) {
        self.push(value.to_string());
    }
    fn bytes(&mut self, value: &[u8]) {
        self.push(String::from_utf8_lossy(value).into_owned());
    }
    fn date(&mut self, value: Date) {
        let mut text = Vec::new();
        value.write_text(&mut text);
        self.bytes(&text);
    }
    fn datetime(&mut self, value: DateTime, fsp: u8) {
        let mut text = Vec::new();
        value.write_text(fsp, &mut text);
        self.bytes(&text);
    }
    fn time(&mut self, value: Time, fsp: u8) {
        let mut text = Vec::new();
        value.write_text(fsp, &mut text);
        self.bytes(&text);
    }
    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }
    fn end_rows(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }
}

/// An engine in memory with a session in the schema `d`.
pub(super) struct Db {
    pub engine: Engine,
    pub session: Session,
}

impl Db {
    pub fn new() -> Db {
        Db::with(&[])
    }

    /// A database whose server was started with variables set.
    pub fn with(variables: &[(&str, &str)]) -> Db {
        Db::open(Location::Memory, variables)
    }

    /// One that lies in a folder.
    pub fn in_folder(folder: &Path) -> Db {
        Db::in_folder_with(folder, &[])
    }

    /// As [`Db::in_folder`], with variables set.
    pub fn in_folder_with(folder: &Path, variables: &[(&str, &str)]) -> Db {
        Db::open(Location::Path(folder.join("data")), variables)
    }

    fn open(location: Location, variables: &[(&str, &str)]) -> Db {
        let engine = Db::engine(&location, variables);
        let session = engine.connect(Login::default()).expect("connects");
        let mut db = Db { engine, session };
        db.run("CREATE DATABASE IF NOT EXISTS d");
        db.run("USE d");
        db
    }

    /// A database that was dropped and not closed goes with the last thread that is at work in it,
    /// and the refresh of statistics may read a table then: its folder is waited for.
    fn engine(location: &Location, variables: &[(&str, &str)]) -> Engine {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let options = EngineOptions {
                location: location.clone(),
                variables: variables
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.to_string()))
                    .collect(),
            };
            match Engine::open(options) {
                Err(error) if error.number() == 1015 && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => return opened.expect("opens"),
            }
        }
    }

    /// The rows of an answer, `|` between columns.
    #[track_caller]
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        self.rows_of_bytes(sql.as_bytes())
    }

    /// The rows of an answer to a statement that need not be UTF-8.
    #[track_caller]
    pub fn rows_of_bytes(&mut self, sql: &[u8]) -> Vec<String> {
        let mut answers = Answers::default();
        if let Err(error) = self.session.query(sql, &mut answers) {
            panic!("{}: {error}", String::from_utf8_lossy(sql));
        }
        answers.rows.iter().map(|row| row.join("|")).collect()
    }

    /// The rows of an answer, or its error.
    pub fn try_rows(&mut self, sql: &str) -> Result<Vec<String>> {
        let mut answers = Answers::default();
        self.session.query(sql.as_bytes(), &mut answers)?;
        Ok(answers.rows.iter().map(|row| row.join("|")).collect())
    }

    /// The names of an answer's columns.
    #[track_caller]
    pub fn columns(&mut self, sql: &str) -> String {
        let mut answers = Answers::default();
        if let Err(error) = self.session.query(sql.as_bytes(), &mut answers) {
            panic!("{sql}: {error}");
        }
        answers.columns.join("|")
    }

    /// How long the values of an answer's first column are said to be at most, and the longest one's
    /// characters.
    #[track_caller]
    pub fn lengths(&mut self, sql: &str) -> (u64, u64) {
        let mut answers = Answers::default();
        if let Err(error) = self.session.query(sql.as_bytes(), &mut answers) {
            panic!("{sql}: {error}");
        }
        let values = answers.rows.iter().map(|row| row[0].chars().count() as u64);
        (answers.types[0].max_chars(), values.max().unwrap_or(0))
    }

    pub fn try_run(&mut self, sql: &str) -> Result<Completion> {
        self.run_bytes(sql.as_bytes())
    }

    /// Runs a statement that need not be UTF-8.
    pub fn run_bytes(&mut self, sql: &[u8]) -> Result<Completion> {
        let mut answers = Answers::default();
        let ran = self.session.query(sql, &mut answers)?;
        if let Some(commit) = ran.commit {
            commit.wait()?;
        }
        Ok(answers.ok)
    }

    /// Runs a prepared statement without parameters.
    pub fn execute(&mut self, id: u32) -> Result<Completion> {
        let mut answers = Answers::default();
        let ran = self.session.execute(id, &[], &mut answers)?;
        if let Some(commit) = ran.commit {
            commit.wait()?;
        }
        Ok(answers.ok)
    }

    #[track_caller]
    pub fn run(&mut self, sql: &str) -> Completion {
        match self.try_run(sql) {
            Ok(completion) => completion,
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    #[track_caller]
    pub fn fails(&mut self, sql: &str, number: u16) {
        match self.try_run(sql) {
            Ok(_) => panic!("{sql} went through"),
            Err(error) => assert_eq!(error.number(), number, "{sql}: {error}"),
        }
    }

    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        match self.engine.shared.catalog.load().relation("d", name) {
            Some(Relation::Table(table)) => Some(table),
            _ => None,
        }
    }

    #[track_caller]
    pub fn shows(&self, name: &str) -> String {
        let table = self.table(name).expect("the table exists");
        create_text::table(&table, &self.session.state, 1)
    }
}

/// How long this thread has had a processor: what a statement costs, whatever runs beside it.
pub(super) fn cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Another session of the same engine.
pub(super) fn beside(db: &Db) -> Db {
    let session = db
        .engine
        .connect(Login {
            connection_id: db.engine.next_connection_id(),
            schema: Some("d".into()),
            ..Login::default()
        })
        .expect("connects");
    Db {
        engine: db.engine.clone(),
        session,
    }
}
