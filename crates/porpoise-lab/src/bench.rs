//! Runs a plan: every workload, with every number of threads, on every target in turn.
//!
//! ```text
//! for each workload and number of clients
//!   round 1: target A, target B, …     the machine's moods hit all targets alike
//!   round 2: target A, target B, …
//!   the median round of each target goes into the report
//! ```
//!
//! A client has a thread of its own, which waits for its replies, unless the plan gives fewer
//! threads ([`BenchPlan::jobs`]). Then a thread sends a statement for each of its clients, and
//! takes the replies that are there, each followed by that client's next statement. What is asked
//! of the server is the same; what differs is what the clients cost:
//!
//! ```text
//!   8 threads, a core    client 1 sends ── change of threads ── client 2 sends ── change of threads ── …
//!   1 thread             client 1 takes, sends ── client 2 takes, sends ── …
//! ```

use crate::progress::Progress;
use crate::report::{Measurement, Report, grouped};
use crate::workload::{Client, Ending};
use crate::{Error, Histogram, Mode, Table, Workload};
use fastrand::Rng;
use porpoise_client::{Connection, Options, Poll, Transport};
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

    pub(crate) fn failed(&self, doing: &str) -> impl Fn(porpoise_client::Error) -> Error {
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
    pub clients: Vec<usize>,
    /// Threads that have the clients; `None`: each client has its own.
    pub jobs: Option<usize>,
    /// Tables.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u64,
    /// Make and fill the tables first. Targets that are ways into one server and have the same
    /// database share them.
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
            clients: vec![1, 8],
            jobs: None,
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
                self.clients.is_empty() || self.clients.contains(&0),
                "no clients",
            ),
            (self.jobs == Some(0), "no threads"),
            (self.tables == 0 || self.rows == 0, "no rows"),
            (self.rounds == 0, "no rounds"),
        ] {
            if missing {
                return Err(Error::Plan(format!("nothing to measure: {what}")));
            }
        }
        if self.jobs.is_some() {
            let embedded = targets
                .iter()
                .find(|target| target.options.transport == Transport::Embedded);
            if let Some(target) = embedded {
                return Err(Error::Plan(format!(
                    "{}: statements run on the thread that sends them, so each client needs a thread of its own",
                    target.name
                )));
            }
            if self.workloads.contains(&Workload::Connect) {
                return Err(Error::Plan(format!(
                    "{}: a client waits while it logs in, so each needs a thread of its own",
                    Workload::Connect
                )));
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
        for &clients in &plan.clients {
            let mut rounds: Vec<Vec<Measurement>> = vec![Vec::new(); targets.len()];
            for round in 0..plan.rounds {
                for (target, measured) in targets.iter().zip(&mut rounds) {
                    let seed = plan.seed.wrapping_add(round as u64);
                    let (measurement, _) =
                        run_once(target, plan, workload, clients, seed, &mut progress)?;
                    measured.push(measurement);
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
    /// Transactions so far, of each thread.
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

/// What one thread counted.
#[derive(Default)]
struct Counted {
    transactions: u64,
    queries: u64,
    errors: u64,
    latencies: Histogram,
}

impl Counted {
    fn add(&mut self, other: &Counted) {
        self.transactions += other.transactions;
        self.queries += other.queries;
        self.errors += other.errors;
        self.latencies.merge(&other.latencies);
    }
}

/// Runs a workload on a target for one round. What its transactions took is returned beside.
pub(crate) fn run_once(
    target: &Target,
    plan: &BenchPlan,
    workload: Workload,
    clients: usize,
    seed: u64,
    progress: &mut Progress,
) -> Result<(Measurement, Histogram), Error> {
    let jobs = plan.jobs.unwrap_or(clients).min(clients);
    let round = Round {
        start: Barrier::new(jobs + 1),
        measuring: AtomicBool::new(plan.warm_up.is_zero()),
        stop: AtomicBool::new(false),
        transactions: (0..jobs).map(|_| Counter::default()).collect(),
    };
    let tables = plan.tables();
    let mut seeds = Rng::with_seed(seed);
    let (send, ended) = mpsc::channel();
    let (measured, counted) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs)
            .map(|job| {
                let (round, tables, send) = (&round, &tables, send.clone());
                // As many for each, or one more.
                let own = (job * clients / jobs..(job + 1) * clients / jobs).len();
                let seeds: Vec<Rng> = (0..own).map(|_| seeds.fork()).collect();
                scope.spawn(move || {
                    let connect = |random| {
                        Client::connect(workload, &target.options, tables, plan.mode, random)
                    };
                    let clients: Result<Vec<_>, _> = seeds.into_iter().map(connect).collect();
                    round.start.wait();
                    let counted =
                        clients.and_then(|clients| drive(clients, round, &round.transactions[job]));
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
                    "{workload}, {}, {clients} clients: {} of {} s{}, {} transactions/s",
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
        let counted: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a client doesn't panic"))
            .collect();
        (measured, counted)
    });
    let mut sum = Counted::default();
    let running = format!("running {workload} with {clients} clients");
    for counted in counted {
        sum.add(&counted.map_err(target.failed(&running))?);
    }
    let measurement = Measurement {
        workload,
        target: target.name.clone(),
        clients,
        jobs,
        transactions_per_second: sum.transactions as f64 / measured.as_secs_f64(),
        queries_per_second: sum.queries as f64 / measured.as_secs_f64(),
        latency_p95: sum.latencies.percentile(0.95),
        errors: sum.errors,
    };
    Ok((measurement, sum.latencies))
}

/// A client in the midst of a transaction.
struct Driven {
    client: Client,
    began: Instant,
    /// Statements that it had sent when the transaction began.
    queries: u64,
    /// The transaction counts: it began while the round was measured.
    is_measured: bool,
}

impl AsMut<Connection> for Driven {
    fn as_mut(&mut self) -> &mut Connection {
        self.client.as_mut()
    }
}

/// Runs transactions on all clients until the round ends. A transaction that ends after it isn't
/// counted.
fn drive(
    clients: Vec<Client>,
    round: &Round,
    transactions: &Counter,
) -> Result<Counted, porpoise_client::Error> {
    let mut thread = Thread {
        round,
        transactions,
        done: 0,
        counted: Counted::default(),
        now: Instant::now(),
    };
    let mut all = Vec::with_capacity(clients.len());
    for client in clients {
        let mut driven = Driven {
            client,
            began: thread.now,
            queries: 0,
            is_measured: false,
        };
        if thread.begin(&mut driven)? {
            all.push(driven);
        }
    }
    let mut poll = Poll::default();
    while let [_, ..] = &all[..] {
        // Who has a single client waits by receiving its reply.
        let ready = match all.len() {
            1 => &[0],
            _ => poll.wait(&mut all, None)?,
        };
        let mut is_over = false;
        for &place in ready {
            let driven = &mut all[place];
            if let Some(ending) = driven.client.go_on()? {
                is_over |= !(thread.count(driven, ending) && thread.begin(driven)?);
            }
        }
        if is_over {
            all.retain_mut(|driven| driven.as_mut().pending() > 0);
        }
    }
    Ok(thread.counted)
}

/// A thread that has clients.
struct Thread<'r> {
    round: &'r Round,
    transactions: &'r Counter,
    done: u64,
    counted: Counted,
    /// When the last transaction ended, and the next began.
    now: Instant,
}

impl Thread<'_> {
    /// Begins a transaction; false if the round ended before one was in flight.
    fn begin(&mut self, driven: &mut Driven) -> Result<bool, porpoise_client::Error> {
        loop {
            driven.began = self.now;
            driven.queries = driven.client.queries;
            driven.is_measured = self.round.measuring.load(Ordering::Relaxed);
            match driven.client.begin()? {
                None => return Ok(true),
                Some(ending) if self.count(driven, ending) => {}
                Some(_) => return Ok(false),
            }
        }
    }

    /// Counts a transaction; false if the round has ended.
    fn count(&mut self, driven: &Driven, ending: Ending) -> bool {
        self.now = Instant::now();
        if self.round.stop.load(Ordering::Relaxed) {
            return false;
        }
        if ending == Ending::Done {
            self.done += 1;
            self.transactions.0.store(self.done, Ordering::Relaxed);
        }
        if driven.is_measured {
            self.counted.queries += driven.client.queries - driven.queries;
            match ending {
                Ending::Done => {
                    self.counted.transactions += 1;
                    self.counted.latencies.record(self.now - driven.began);
                }
                Ending::Conflict => self.counted.errors += 1,
            }
        }
        true
    }
}
