//! The bulk experiment: statements that go through a whole table, cold and warm, and bulk changes.
//!
//! ```text
//! a file of sysbench's rows, then for each server, in a new folder
//!   load        sbtest1, by INSERTs of many rows                seconds in statements
//!               an empty copy, by LOAD DATA LOCAL INFILE        seconds; are all rows there?
//!               an empty copy, by INSERT … SELECT               …
//!   select      round by round: stop, start, ask cold, ask      medians of the rounds; answers
//!   ADD INDEX   memory before, the most meanwhile               seconds, bytes
//!   UPDATE      of each row, in one transaction                 …; are the rows changed?
//!   idle        until the folder stays as it is                 bytes
//! ```
//!
//! Servers are measured one after the other, so that neither has the other's memory or processor
//! beside it. What a server has in a cache of its own goes with its process; what the kernel keeps
//! of its files stays.

mod report;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use porpoise_client::flags::Capabilities;
use porpoise_client::{Connection, Options};

use crate::own_server::{CACHE_MIN_MIB, EMPTY_BYTES, MEMORY_MAX_MIB, OwnServer, Product};
use crate::progress::{Progress, tell};
use crate::queries::Reply;
use crate::report::grouped;
use crate::statistics::median;
use crate::table::LOAD_ROWS;
use crate::{Error, Table, Target, check_room};

pub use report::{BulkFigure, BulkReport, BulkServer};
use rows::{Expected, RowsFile};

type ClientError = porpoise_client::Error;

/// `k` is an INT of at most as many as there are rows, and one more after the UPDATE.
const ROWS_MAX: u64 = i32::MAX as u64 - 1;
/// What a row takes on the disk, roughly: in the file, in the table with its indexes, in a copy, in
/// what is kept of it while all are changed, and in logs.
const ROW_BYTES: u64 = 1500;

/// The table, and an empty one like it that is filled from it or from the file.
const TABLE: &str = "sbtest1";
const COPY: &str = "sbtest1_copy";
const LOAD_DATA: &str =
    "LOAD DATA LOCAL INFILE 'rows' INTO TABLE sbtest1_copy FIELDS TERMINATED BY ','";
const INSERT_SELECT: &str = "INSERT INTO sbtest1_copy SELECT * FROM sbtest1";

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct BulkPlan {
    /// Rows of the table.
    pub rows: u64,
    /// `innodb_buffer_pool_size` of each server, in MiB.
    pub memory_mib: u64,
    /// How often each SELECT is measured; the median counts.
    pub rounds: usize,
    /// How long to wait at most until a folder is at rest.
    pub idle: Duration,
    /// Whether a MariaDB is measured beside.
    pub peer: bool,
    /// When somebody sets it, the run ends; what was measured counts.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for BulkPlan {
    fn default() -> Self {
        Self {
            rows: 2_000_000,
            memory_mib: 1024,
            rounds: 3,
            idle: Duration::from_secs(60),
            peer: false,
            stop: Arc::default(),
            progress: true,
        }
    }
}

impl BulkPlan {
    fn check(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Plan(why));
        if self.rows == 0 || self.rows > ROWS_MAX {
            let (rows, most) = (grouped(self.rows), grouped(ROWS_MAX));
            return refused(format!("{rows} rows: there must be 1 to {most}"));
        }
        if self.rounds == 0 {
            return refused("nothing to measure".into());
        }
        if !(CACHE_MIN_MIB..=MEMORY_MAX_MIB).contains(&self.memory_mib) {
            return refused(format!(
                "a buffer pool has {CACHE_MIN_MIB} to {MEMORY_MAX_MIB} MiB"
            ));
        }
        Ok(())
    }

    fn table(&self) -> Table {
        Table {
            number: 1,
            rows: self.rows,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    fn start_server(&self, product: Product, folder: &Path) -> Result<OwnServer, Error> {
        let mut options = vec![
            format!("--innodb-buffer-pool-size={}M", self.memory_mib),
            "--local-infile=ON".to_owned(),
        ];
        if product == Product::MariaDb {
            // A pool that is filled again while it is measured is neither cold nor warm.
            options.extend(
                [
                    "--innodb-buffer-pool-load-at-startup=OFF",
                    "--innodb-buffer-pool-dump-at-shutdown=OFF",
                ]
                .map(str::to_owned),
            );
        }
        OwnServer::start(product, folder, 1, &options, None)
    }
}

/// A SELECT that reads all of the table.
#[derive(Debug)]
struct Query {
    name: &'static str,
    text: &'static str,
    /// Whether it is measured on a server that has just been started, too.
    is_cold: bool,
    /// It has as many rows as the table: they are looked at as they come, and not kept.
    is_long: bool,
    /// The columns that put its rows in order.
    ordered_by: &'static [usize],
}

const QUERIES: &[Query] = &[
    Query {
        name: "SELECT SUM(LENGTH(c))",
        text: "SELECT SUM(LENGTH(c)) FROM sbtest1",
        is_cold: true,
        is_long: false,
        ordered_by: &[],
    },
    Query {
        name: "self join ON b.id = a.k",
        text: "SELECT COUNT(*) FROM sbtest1 a JOIN sbtest1 b ON b.id = a.k",
        is_cold: true,
        is_long: false,
        ordered_by: &[],
    },
    Query {
        name: "ORDER BY c LIMIT 5",
        text: "SELECT c FROM sbtest1 ORDER BY c LIMIT 5",
        is_cold: true,
        is_long: false,
        ordered_by: &[0],
    },
    Query {
        name: "GROUP BY k % 1000",
        text: "SELECT k % 1000, COUNT(*) FROM sbtest1 GROUP BY k % 1000",
        is_cold: false,
        is_long: false,
        ordered_by: &[],
    },
    Query {
        name: "COUNT(DISTINCT k)",
        text: "SELECT COUNT(DISTINCT k) FROM sbtest1",
        is_cold: false,
        is_long: false,
        ordered_by: &[],
    },
    Query {
        name: "SELECT * ORDER BY k, pad",
        text: "SELECT * FROM sbtest1 ORDER BY k, pad",
        is_cold: false,
        is_long: true,
        ordered_by: &[],
    },
];

/// A statement that changes all of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BulkChange {
    /// An index of the longest column.
    AddIndex,
    /// Of a column that has an index, of each row.
    Update,
}

impl BulkChange {
    const fn name(self) -> &'static str {
        match self {
            Self::AddIndex => "ADD INDEX (c)",
            Self::Update => "UPDATE k = k + 1",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::AddIndex => "ALTER TABLE sbtest1 ADD INDEX (c)",
            Self::Update => "UPDATE sbtest1 SET k = k + 1",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Inserts,
    LoadData,
    InsertSelect,
    /// One of [`QUERIES`].
    Select(usize),
    Change(BulkChange),
    Rest,
}

impl Step {
    fn all() -> impl Iterator<Item = Self> {
        let loads = [Self::Inserts, Self::LoadData, Self::InsertSelect];
        let changes = [BulkChange::AddIndex, BulkChange::Update].map(Self::Change);
        let selects = (0..QUERIES.len()).map(Self::Select);
        loads
            .into_iter()
            .chain(selects)
            .chain(changes)
            .chain([Self::Rest])
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Inserts => "INSERTs of many rows",
            Self::LoadData => "LOAD DATA LOCAL INFILE",
            Self::InsertSelect => "INSERT … SELECT",
            Self::Select(at) => QUERIES[at].name,
            Self::Change(change) => change.name(),
            Self::Rest => "waiting until the folder is at rest",
        }
    }
}

/// Runs the plan with folders in `folder`, of which there is one at a time, and a file. What goes
/// wrong with a server is part of the report.
///
/// # Errors
///
/// A plan that can't be run; too little room on the disk, before anything is begun; a file that can't be
/// written, or a folder that can't be removed.
pub fn run(plan: &BulkPlan, folder: &Path) -> Result<BulkReport, Error> {
    plan.check()?;
    check_room(plan.rows, plan.rows * ROW_BYTES + EMPTY_BYTES, folder)?;
    let mut report = BulkReport::new(plan);
    let mut progress = Progress::new(plan.progress);
    progress.show("writing a file of the rows");
    let Some(file) = RowsFile::write(plan, &folder.join("rows.csv"))? else {
        return Ok(report);
    };
    for &product in Product::all(plan.peer) {
        if plan.is_stopped() {
            break;
        }
        let folder = folder.join(product.name());
        std::fs::create_dir(&folder)?;
        let run = Run::start(plan, &file, product, &folder, &mut progress);
        let server = run.map(Run::measure).unwrap_or_else(|why| BulkServer {
            failures: vec![why.to_string()],
            ..BulkServer::new(product.name())
        });
        report.servers.push(server);
        std::fs::remove_dir_all(&folder)?;
    }
    progress.clear();
    Ok(report)
}

/// One server.
struct Run<'a> {
    plan: &'a BulkPlan,
    file: &'a RowsFile,
    product: Product,
    folder: PathBuf,
    server: OwnServer,
    target: Target,
    progress: &'a mut Progress,
    measured: BulkServer,
}

impl<'a> Run<'a> {
    fn start(
        plan: &'a BulkPlan,
        file: &'a RowsFile,
        product: Product,
        folder: &Path,
        progress: &'a mut Progress,
    ) -> Result<Self, Error> {
        progress.show(&format!("{}: starting", product.name()));
        let server = plan.start_server(product, folder)?;
        let target = Target::at(product.name(), server.options());
        server
            .prepare()
            .map_err(target.failed("making the clients' account"))?;
        Ok(Self {
            plan,
            file,
            product,
            folder: folder.to_owned(),
            server,
            target,
            progress,
            measured: BulkServer::new(product.name()),
        })
    }

    /// All steps. One that fails is told, and the others go on, as long as there is a table and a
    /// server.
    fn measure(mut self) -> BulkServer {
        for step in Step::all() {
            if self.plan.is_stopped() {
                break;
            }
            self.show(step.name());
            let Err(error) = self.take(step) else {
                continue;
            };
            let ended = self.server.ended();
            let mut why = error.to_string();
            if let Some(status) = ended {
                why = format!("{why}; the server has ended: {status}");
            }
            self.fail(why);
            if matches!(step, Step::Inserts) {
                break;
            }
            if ended.is_some()
                && let Err(error) = self.start_again()
            {
                self.fail(error.to_string());
                break;
            }
        }
        self.measured
    }

    fn take(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Inserts => self.insert(),
            Step::LoadData => self.fill_copy(step, LOAD_DATA, BulkFigure::LoadData),
            Step::InsertSelect => self.fill_copy(step, INSERT_SELECT, BulkFigure::InsertSelect),
            Step::Select(at) => self.select(at),
            Step::Change(change) => self.change(change),
            Step::Rest => {
                if let Some(bytes) = self.server.rest(self.plan.idle, &self.plan.stop) {
                    self.note(BulkFigure::Folder, bytes as f64);
                }
                Ok(())
            }
        }
    }

    fn show(&mut self, doing: &str) {
        let name = &self.target.name;
        self.progress.show(&format!("{name}: {doing}"));
    }

    fn fail(&mut self, why: String) {
        if self.plan.progress {
            self.progress.clear();
            tell(&why);
        }
        self.measured.failures.push(why);
    }

    fn note(&mut self, figure: BulkFigure, value: f64) {
        self.measured.figures.insert(figure, value);
    }

    fn connect(&self) -> Result<Connection, ClientError> {
        Connection::connect(&self.target.options)
    }

    fn restart(&mut self) -> Result<(), Error> {
        self.server.stop()?;
        self.start_again()
    }

    fn start_again(&mut self) -> Result<(), Error> {
        self.server = self.plan.start_server(self.product, &self.folder)?;
        // MariaDB has another TCP port.
        self.target = Target::at(self.product.name(), self.server.options());
        Ok(())
    }

    /// Fills the table. Only statements count: making them takes a good part of the time that they
    /// take.
    fn insert(&mut self) -> Result<(), Error> {
        let failed = self.target.failed(Step::Inserts.name());
        let table = self.plan.table();
        let mut connection = self.connect().map_err(&failed)?;
        connection.run(table.create_statement()).map_err(&failed)?;
        let (mut random, mut sql) = (rows::random(), String::new());
        let (mut done, mut took) = (0, Duration::ZERO);
        while done < table.rows {
            if self.plan.is_stopped() {
                return Ok(());
            }
            let rows = LOAD_ROWS.min(table.rows - done);
            table.write_insert(rows, &mut random, &mut sql);
            let began = Instant::now();
            connection.run(&sql).map_err(&failed)?;
            took += began.elapsed();
            done += rows;
            self.show(&format!("INSERTs, {} rows are there", grouped(done)));
        }
        self.expect(&mut connection, TABLE, &self.file.expected)?;
        self.note(BulkFigure::Inserts, took.as_secs_f64());
        Ok(())
    }

    /// Fills an empty copy of the table, which then goes.
    fn fill_copy(&mut self, step: Step, sql: &str, figure: BulkFigure) -> Result<(), Error> {
        let failed = self.target.failed(step.name());
        let mut options: Options = self.target.options.clone();
        options.capabilities |= Capabilities::LOCAL_FILES;
        let mut connection = Connection::connect(&options).map_err(&failed)?;
        connection.set_file_source(Some(self.file.source()));
        for sql in [
            format!("DROP TABLE IF EXISTS {COPY}"),
            format!("CREATE TABLE {COPY} LIKE {TABLE}"),
        ] {
            connection.run(sql).map_err(&failed)?;
        }
        let began = Instant::now();
        connection.run(sql).map_err(&failed)?;
        let took = began.elapsed().as_secs_f64();
        self.expect(&mut connection, COPY, &self.file.expected)?;
        connection
            .run(format!("DROP TABLE {COPY}"))
            .map_err(&failed)?;
        self.note(figure, took);
        Ok(())
    }

    fn expect(
        &self,
        connection: &mut Connection,
        table: &str,
        expected: &Expected,
    ) -> Result<(), Error> {
        let failed = self.target.failed("counting rows");
        match expected.difference(connection, table).map_err(failed)? {
            None => Ok(()),
            Some(why) => Err(Error::Plan(format!("{}: {why}", self.target.name))),
        }
    }

    fn select(&mut self, at: usize) -> Result<(), Error> {
        let query = &QUERIES[at];
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for round in 1..=self.plan.rounds {
            if self.plan.is_stopped() {
                return Ok(());
            }
            self.show(&format!("{}, round {round}", query.name));
            if query.is_cold {
                self.restart()?;
            }
            let failed = self.target.failed(query.name);
            let mut connection = self.connect().map_err(&failed)?;
            // One that isn't measured cold has a first time as well, to be warm.
            if query.is_cold || round == 1 {
                let (seconds, reply) =
                    Reply::ask(&mut connection, query.text, query.is_long).map_err(&failed)?;
                self.compare(at, reply)?;
                cold.push(seconds);
            }
            let (seconds, reply) =
                Reply::ask(&mut connection, query.text, query.is_long).map_err(&failed)?;
            self.compare(at, reply)?;
            warm.push(seconds);
        }
        if query.is_cold {
            self.note(BulkFigure::Cold(at), median(&cold));
        }
        self.note(BulkFigure::Warm(at), median(&warm));
        Ok(())
    }

    /// Keeps an answer, or compares it with the one that is kept.
    fn compare(&mut self, at: usize, reply: Reply) -> Result<(), Error> {
        let query = &QUERIES[at];
        let name = &self.target.name;
        let kept = self.measured.replies[at].get_or_insert_with(|| reply.clone());
        match kept.agrees(&reply, query.ordered_by) {
            true => Ok(()),
            false => Err(Error::Plan(format!(
                "{name} answers differently when asked again: {}",
                query.text
            ))),
        }
    }

    fn change(&mut self, change: BulkChange) -> Result<(), Error> {
        let failed = self.target.failed(change.name());
        let mut connection = self.connect().map_err(&failed)?;
        let before = self.server.memory();
        if self.server.forget_peak().is_err() {
            self.measured.has_older_peaks = true;
        }
        let began = Instant::now();
        connection.run(change.text()).map_err(&failed)?;
        let took = began.elapsed().as_secs_f64();
        let after = self.server.memory();
        if let (Some(before), Some(after)) = (before, after) {
            self.note(BulkFigure::Before(change), before.resident_bytes as f64);
            self.note(BulkFigure::Peak(change), after.peak_bytes as f64);
        }
        if change == BulkChange::Update {
            let expected = self.file.expected.with_all_counted_up();
            self.expect(&mut connection, TABLE, &expected)?;
        }
        self.note(BulkFigure::Change(change), took);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_cannot_be_run_are_refused() {
        let usual = BulkPlan::default;
        let plans = [
            (
                BulkPlan { rows: 0, ..usual() },
                "0 rows: there must be 1 to 2,147,483,646",
            ),
            (
                BulkPlan {
                    rounds: 0,
                    ..usual()
                },
                "nothing to measure",
            ),
            (
                BulkPlan {
                    memory_mib: 4,
                    ..usual()
                },
                "a buffer pool has 8 to 1048576 MiB",
            ),
        ];
        for (plan, why) in plans {
            let error = run(&plan, Path::new("/nowhere")).unwrap_err();
            assert_eq!(error.to_string(), why);
        }
        let folder = tempfile::tempdir().unwrap();
        let plan = BulkPlan {
            rows: ROWS_MAX,
            ..usual()
        };
        let told = run(&plan, folder.path()).unwrap_err().to_string();
        assert!(told.starts_with("2,147,483,646 rows may take 3,"), "{told}");
    }
}
