//! Runs a plan: every workload, with every number of threads, on every target in turn.
//!
//! ```text
//! for each workload and number of clients
//!   round 1: target A, target B, …     the machine's moods hit all targets alike
//!   round 2: target A, target B, …
//!   the median round of each target goes into the report
//! ```

use crate::load::{self, Load, Running};
use crate::progress::Progress;
use crate::report::{Measurement, Report, grouped};
use crate::steadiness::Spread;
use crate::{Error, Histogram, Mode, Script, Table, Workload};
use fastrand::Rng;
use porpoise_client::{Connection, Options, Transport};
use std::time::{Duration, Instant};

/// The most clients at a time.
pub const CLIENTS_MAX: usize = 100_000;

/// What is measured: a way into a server.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in the report.
    pub name: String,
    /// Where to connect, as whom; the database is where the tables are.
    pub options: Options,
    /// The name of the target that it is compared with.
    pub compared_with: Option<String>,
}

impl Target {
    /// A target that is compared with none.
    pub fn at(name: impl Into<String>, options: Options) -> Self {
        Self {
            name: name.into(),
            options,
            compared_with: None,
        }
    }

    /// Compared with the target of this name.
    #[must_use]
    pub fn compared_with(mut self, other: Option<&str>) -> Self {
        self.compared_with = other.map(str::to_owned);
        self
    }

    /// A target by its `mysql://` URL.
    pub fn new(name: impl Into<String>, url: &str) -> Result<Self, Error> {
        let name = name.into();
        match url.parse() {
            Ok(options) => Ok(Self::at(name, options)),
            Err(error) => Err(Error::Target {
                target: name,
                doing: "reading its URL".into(),
                error,
            }),
        }
    }

    pub(crate) fn failed(&self, doing: &str) -> impl Fn(porpoise_client::Error) -> Error + use<> {
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
            (
                self.clients.iter().any(|&clients| clients > CLIENTS_MAX),
                "too many clients",
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
            let mut workloads = self.workloads.iter();
            if let Some(connects) = workloads.find(|workload| workload.connects()) {
                return Err(Error::Plan(format!(
                    "{connects}: a client waits while it logs in, so each needs a thread of its own"
                )));
            }
        }
        Ok(())
    }
}

/// Runs `plan` on `targets`.
pub fn run(targets: &[Target], plan: &BenchPlan) -> Result<Report, Error> {
    plan.check(targets)?;
    let mut progress = Progress::new(plan.progress);
    if plan.load {
        load(targets, plan, &mut progress)?;
    }
    let mut report = Report::default();
    let mut grown = false;
    for &workload in &plan.workloads {
        // What one workload inserted is not another's to read: `whole_table` would be slowest on
        // the server that inserts fastest.
        if plan.load && grown {
            load(targets, plan, &mut progress)?;
        }
        grown = workload.grows_tables();
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
    let rates: Vec<f64> = rounds
        .iter()
        .map(|one| one.transactions_per_second)
        .collect();
    Some(Measurement {
        spread: Spread::of(&rates),
        ..rounds.swap_remove(middle)
    })
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
pub(crate) fn connect_to_database(options: &Options) -> Result<Connection, porpoise_client::Error> {
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
    let script = Script::Oltp(workload, plan.tables());
    let load = Load {
        options: &target.options,
        script: &script,
        mode: plan.mode,
        clients,
        jobs,
        seed,
        rate: None,
        cpus: None,
    };
    let name = format!("{workload}, {}, {clients} clients", target.name);
    let (measured, counted) = load::run(&load, |running| {
        if !plan.warm_up.is_zero() {
            watch(running, plan.warm_up, &name, " warming up", progress);
        }
        running.begin_measuring();
        watch(running, plan.duration, &name, "", progress)
    })?;
    let running = format!("running {workload} with {clients} clients");
    let sum = counted.map_err(target.failed(&running))?;
    let measurement = Measurement {
        workload,
        target: target.name.clone(),
        compared_with: target.compared_with.clone(),
        clients,
        jobs,
        transactions_per_second: sum.transactions as f64 / measured.as_secs_f64(),
        queries_per_second: sum.queries as f64 / measured.as_secs_f64(),
        latency_p95: sum.latencies.percentile(0.95),
        errors: sum.errors(),
        spread: Spread::default(),
    };
    Ok((measurement, sum.latencies))
}

/// Lets the clients work for so long, and shows what they do. Returned is how long they did.
fn watch(
    running: &Running<'_>,
    measure: Duration,
    name: &str,
    phase: &str,
    progress: &mut Progress,
) -> Duration {
    let began = Instant::now();
    let mut last = (began, running.transactions());
    while began.elapsed() < measure {
        let left = measure.saturating_sub(began.elapsed());
        if !running.wait(left.min(Duration::from_secs(1))) {
            break;
        }
        let transactions = running.transactions();
        let per_second = (transactions - last.1) as f64 / last.0.elapsed().as_secs_f64();
        last = (Instant::now(), transactions);
        progress.show(&format!(
            "{name}: {} of {} s{phase}, {} transactions/s",
            began.elapsed().as_secs(),
            measure.as_secs(),
            grouped(per_second as u64),
        ));
    }
    began.elapsed()
}
