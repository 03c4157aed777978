//! Runs a plan: every workload, with every number of threads, on every target in turn.
//!
//! ```text
//! for each workload and number of threads
//!   round 1: target A, target B, …     the machine's moods hit all targets alike
//!   round 2: target A, target B, …
//!   the median round of each target goes into the report
//! ```

use crate::progress::Progress;
use crate::report::{Measurement, Report, grouped};
use crate::workload::{Client, Ending};
use crate::{Error, Histogram, Mode, Table, Workload};
use fastrand::Rng;
use porpoise_client::{Connection, Options};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

/// What is measured: a way into a server.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in the report.
    pub name: String,
    /// Where to connect, as whom; the database is where the tables are.
    pub options: Options,
}

impl Target {
    /// A target by its `mysql://` URL.
    pub fn new(name: impl Into<String>, url: &str) -> Result<Self, Error> {
        let name = name.into();
        match url.parse() {
            Ok(options) => Ok(Self { name, options }),
            Err(error) => Err(Error::Target {
                target: name,
                doing: "reading its URL".into(),
                error,
            }),
        }
    }

    fn failed(&self, doing: &str) -> impl Fn(porpoise_client::Error) -> Error {
        let (target, doing) = (self.name.clone(), doing.to_owned());
        move |error| Error::Target {
            target: target.clone(),
            doing: doing.clone(),
            error,
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// The workloads, in order.
    pub workloads: Vec<Workload>,
    /// The numbers of clients, in order.
    pub threads: Vec<usize>,
    /// Tables.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u64,
    /// Make and fill the tables first. Targets that are ways into one server and have the same database share them.
    pub load: bool,
    /// How statements are sent.
    pub mode: Mode,
    /// How long a round takes.
    pub duration: Duration,
    /// Before each round, not measured.
    pub warm_up: Duration,
    /// Rounds of which the median is reported.
    pub rounds: usize,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
    /// Makes the same ids and values come again.
    pub seed: u64,
}

impl Default for BenchPlan {
    fn default() -> Self {
        Self {
            workloads: vec![
                Workload::PointSelect,
                Workload::ReadOnly,
                Workload::ReadWrite,
            ],
            threads: vec![1, 8],
            tables: 1,
            rows: 100_000,
            load: true,
            mode: Mode::Prepared,
            duration: Duration::from_secs(5),
            warm_up: Duration::from_secs(1),
            rounds: 1,
            progress: true,
            seed: 1,
        }
    }
}

impl BenchPlan {
    fn tables(&self) -> Vec<Table> {
        let rows = self.rows;
        (1..=self.tables)
            .map(|number| Table { number, rows })
            .collect()
    }

    fn check(&self, targets: &[Target]) -> Result<(), Error> {
        for (missing, what) in [
            (targets.is_empty(), "no target"),
            (self.workloads.is_empty(), "no workload"),
            (
                self.threads.is_empty() || self.threads.contains(&0),
                "no threads",
            ),
            (self.tables == 0 || self.rows == 0, "no rows"),
            (self.rounds == 0, "no rounds"),
        ] {
            if missing {
                return Err(Error::Plan(format!("nothing to measure: {what}")));
            }
        }
        Ok(())
    }
}

/// Runs `plan` on `targets`. The first target is the one the others are compared with.
pub fn run(targets: &[Target], plan: &BenchPlan) -> Result<Report, Error> {
    plan.check(targets)?;
    let mut progress = Progress::new(plan.progress);
    if plan.load {
        load(targets, plan, &mut progress)?;
    }
    let mut report = Report::default();
    for &workload in &plan.workloads {
        for &threads in &plan.threads {
            let mut rounds: Vec<Vec<Measurement>> = vec![Vec::new(); targets.len()];
            for round in 0..plan.rounds {
                for (target, measured) in targets.iter().zip(&mut rounds) {
                    let seed = plan.seed.wrapping_add(round as u64);
                    measured.push(run_once(
                        target,
                        plan,
                        workload,
                        threads,
                        seed,
                        &mut progress,
                    )?);
                }
            }
            report
                .measurements
                .extend(rounds.into_iter().filter_map(median));
        }
    }
    progress.clear();
    Ok(report)
}

fn median(mut rounds: Vec<Measurement>) -> Option<Measurement> {
    rounds.sort_by(|one, other| {
        one.transactions_per_second
            .total_cmp(&other.transactions_per_second)
    });
    let middle = rounds.len().checked_sub(1)? / 2;
    Some(rounds.swap_remove(middle))
}

/// Makes and fills the tables, once for each server and database.
pub fn load_tables(targets: &[Target], plan: &BenchPlan) -> Result<(), Error> {
    let mut progress = Progress::new(plan.progress);
    let loaded = load(targets, plan, &mut progress);
    progress.clear();
    loaded
}

fn load(targets: &[Target], plan: &BenchPlan, progress: &mut Progress) -> Result<(), Error> {
    let mut seen = Vec::new();
    for target in targets {
        let failed = target.failed("loading the table");
        let mut connection =
            connect_to_database(&target.options).map_err(target.failed("connecting"))?;
        // Two ways into one server show the same tables, which are loaded once.
        let server = connection
            .rows("SELECT @@port, @@socket, @@datadir, DATABASE()")
            .map(|rows| rows.to_text())
            .unwrap_or_else(|_| vec![vec![target.name.clone()]]);
        if seen.contains(&server) {
            continue;
        }
        seen.push(server);
        let mut random = Rng::with_seed(plan.seed);
        for table in plan.tables() {
            table
                .load(&mut connection, &mut random, |rows| {
                    progress.show(&format!(
                        "{}: {} of {} rows in {}",
                        target.name,
                        grouped(rows),
                        grouped(table.rows),
                        table.name()
                    ));
                })
                .map_err(&failed)?;
        }
    }
    progress.clear();
    Ok(())
}

/// Connects, making the database if the server hasn't got it.
fn connect_to_database(options: &Options) -> Result<Connection, porpoise_client::Error> {
    const UNKNOWN_DATABASE: u16 = 1049;
    match (Connection::connect(options), &options.database) {
        (Err(error), Some(database)) if error.number() == Some(UNKNOWN_DATABASE) => {
            let anywhere = Options {
                database: None,
                ..options.clone()
            };
            let mut connection = Connection::connect(&anywhere)?;
            connection.run(format!("CREATE DATABASE `{}`", database.replace('`', "``")))?;
            connection.init_db(database)?;
            Ok(connection)
        }
        (connected, _) => connected,
    }
}

/// What the clients of a round share.
struct Round {
    start: Barrier,
    measuring: AtomicBool,
    stop: AtomicBool,
    /// Transactions so far, of each client.
    transactions: Vec<Counter>,
}

/// A counter that one thread writes, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Round {
    fn transactions(&self) -> u64 {
        self.transactions
            .iter()
            .map(|counter| counter.0.load(Ordering::Relaxed))
            .sum()
    }
}

/// What one client counted.
#[derive(Default)]
struct Counted {
    transactions: u64,
    queries: u64,
    errors: u64,
    latencies: Histogram,
}

fn run_once(
    target: &Target,
    plan: &BenchPlan,
    workload: Workload,
    threads: usize,
    seed: u64,
    progress: &mut Progress,
) -> Result<Measurement, Error> {
    let round = Round {
        start: Barrier::new(threads + 1),
        measuring: AtomicBool::new(plan.warm_up.is_zero()),
        stop: AtomicBool::new(false),
        transactions: (0..threads).map(|_| Counter::default()).collect(),
    };
    let tables = plan.tables();
    let mut seeds = Rng::with_seed(seed);
    let (send, ended) = mpsc::channel();
    let (measured, counted) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..threads)
            .map(|number| {
                let (random, round, tables, send) = (seeds.fork(), &round, &tables, send.clone());
                scope.spawn(move || {
                    let client =
                        Client::connect(workload, &target.options, tables, plan.mode, random);
                    round.start.wait();
                    let counted =
                        client.and_then(|client| drive(client, round, &round.transactions[number]));
                    // A client that fails ends the round; nobody listens if it is over already.
                    let _ = send.send(counted.is_err());
                    counted
                })
            })
            .collect();
        drop(send);
        round.start.wait();
        let mut watch = |measure: Duration, warming: bool| {
            let began = Instant::now();
            let mut last = (began, round.transactions());
            while began.elapsed() < measure {
                let left = measure.saturating_sub(began.elapsed());
                if let Ok(true) | Err(mpsc::RecvTimeoutError::Disconnected) =
                    ended.recv_timeout(left.min(Duration::from_secs(1)))
                {
                    break;
                }
                let transactions = round.transactions();
                let per_second = (transactions - last.1) as f64 / last.0.elapsed().as_secs_f64();
                last = (Instant::now(), transactions);
                progress.show(&format!(
                    "{workload}, {}, {threads} threads: {} of {} s{}, {} transactions/s",
                    target.name,
                    began.elapsed().as_secs(),
                    measure.as_secs(),
                    if warming { " warming up" } else { "" },
                    grouped(per_second as u64),
                ));
            }
            began.elapsed()
        };
        if !plan.warm_up.is_zero() {
            watch(plan.warm_up, true);
            round.measuring.store(true, Ordering::Relaxed);
        }
        let measured = watch(plan.duration, false);
        round.stop.store(true, Ordering::Relaxed);
        let counted: Vec<_> = clients
            .into_iter()
            .map(|client| client.join().expect("a client doesn't panic"))
            .collect();
        (measured, counted)
    });
    let mut sum = Counted::default();
    for counted in counted {
        let counted = counted
            .map_err(target.failed(&format!("running {workload} with {threads} threads")))?;
        sum.transactions += counted.transactions;
        sum.queries += counted.queries;
        sum.errors += counted.errors;
        sum.latencies.merge(&counted.latencies);
    }
    Ok(Measurement {
        workload,
        target: target.name.clone(),
        threads,
        transactions_per_second: sum.transactions as f64 / measured.as_secs_f64(),
        queries_per_second: sum.queries as f64 / measured.as_secs_f64(),
        latency_p95: sum.latencies.percentile(0.95),
        errors: sum.errors,
    })
}

/// Runs transactions until the round ends. A transaction that ends after it isn't counted.
fn drive(
    mut client: Client,
    round: &Round,
    transactions: &Counter,
) -> Result<Counted, porpoise_client::Error> {
    let mut counted = Counted::default();
    let mut done = 0;
    loop {
        let measuring = round.measuring.load(Ordering::Relaxed);
        let queries = client.queries;
        let began = Instant::now();
        let ending = client.transact()?;
        let latency = began.elapsed();
        if round.stop.load(Ordering::Relaxed) {
            return Ok(counted);
        }
        if ending == Ending::Done {
            done += 1;
            transactions.0.store(done, Ordering::Relaxed);
        }
        if !measuring {
            continue;
        }
        counted.queries += client.queries - queries;
        match ending {
            Ending::Done => {
                counted.transactions += 1;
                counted.latencies.record(latency);
            }
            Ending::Conflict => counted.errors += 1,
        }
    }
}
