//! The fairness experiment: what clients that ask for little get beside statements that compute.
//!
//! ```text
//! for each way in
//!   M clients select points                                         how many a second: alone
//!   N connections each begin a statement that computes for long
//!   M clients select points                                         how many a second, how long each: beside
//!   a visitor logs in, and interrupts one of the N with KILL, again and again        how long either takes
//! ```
//!
//! Nothing of it is about how fast statements that compute are; their number should tell only a
//! little on the others.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use porpoise_client::Connection;

use crate::bench::run_once;
use crate::progress::Progress;
use crate::report::{aligned, grouped, rate};
use crate::{BenchPlan, Error, Histogram, Target, Workload};

/// A join of three tables of 900 rows without any index: 729 million combinations.
const COMPUTES_LONG: &str = "WITH RECURSIVE s(n) AS \
    (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900) \
    SELECT COUNT(*) FROM s a, s b, s c WHERE a.n + b.n + c.n > 5";

/// The time from one visit to the next.
const VISIT_INTERVAL: Duration = Duration::from_millis(100);

/// How long a statement that was interrupted may take to end, to be counted as ended.
const END_WAIT_MAX: Duration = Duration::from_secs(1);

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct FairnessPlan {
    /// How many statements compute.
    pub statements: usize,
    /// The statement that computes.
    pub sql: String,
    /// Clients that select points.
    pub clients: usize,
    /// Threads that have these clients.
    pub jobs: usize,
    /// Rows of the table that they select from.
    pub rows: u64,
    /// How long each measurement takes.
    pub duration: Duration,
    /// When somebody sets it, the run ends; what was measured counts.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for FairnessPlan {
    fn default() -> Self {
        Self {
            statements: 200,
            sql: COMPUTES_LONG.into(),
            clients: 1000,
            jobs: 2,
            rows: 100_000,
            duration: Duration::from_secs(5),
            stop: Arc::default(),
            progress: true,
        }
    }
}

/// What was measured over one way in.
#[derive(Clone, Debug)]
pub struct FairnessMeasurement {
    /// The target's name.
    pub target: String,
    /// Point selects a second, with nothing beside.
    pub alone_per_second: f64,
    /// Point selects a second, beside the statements that compute.
    pub beside_per_second: f64,
    /// How long each took, beside.
    pub latencies: Histogram,
    /// How long logging in took, and asking for something.
    pub log_ins: Histogram,
    /// How long it took until KILL was answered.
    pub kills: Histogram,
    /// Statements that ended soon after their KILL.
    pub ended: u64,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct FairnessReport {
    /// One for each target.
    pub measurements: Vec<FairnessMeasurement>,
    statements: usize,
    clients: usize,
}

/// Runs the plan on each target in turn.
pub fn run(targets: &[Target], plan: &FairnessPlan) -> Result<FairnessReport, Error> {
    if targets.is_empty() || plan.clients == 0 || plan.statements == 0 || plan.jobs == 0 {
        return Err(Error::Plan("nothing to measure".into()));
    }
    let bench = BenchPlan {
        jobs: Some(plan.jobs),
        rows: plan.rows,
        duration: plan.duration,
        progress: plan.progress,
        ..BenchPlan::default()
    };
    crate::bench::load_tables(targets, &bench)?;
    let mut report = FairnessReport {
        measurements: Vec::new(),
        statements: plan.statements,
        clients: plan.clients,
    };
    for target in targets {
        if plan.stop.load(Relaxed) {
            break;
        }
        report.measurements.push(measure(target, plan, &bench)?);
    }
    Ok(report)
}

fn measure(
    target: &Target,
    plan: &FairnessPlan,
    bench: &BenchPlan,
) -> Result<FairnessMeasurement, Error> {
    let mut progress = Progress::new(plan.progress);
    let select = |progress: &mut Progress| {
        run_once(
            target,
            bench,
            Workload::PointSelect,
            plan.clients,
            bench.seed,
            progress,
        )
    };
    let (alone, _) = select(&mut progress)?;
    let mut visitor = Visitor::begin(target, plan)?;
    let is_over = AtomicBool::new(false);
    let (beside, visited) = std::thread::scope(|scope| {
        let visits = scope.spawn(|| visitor.visit_until(&is_over));
        let beside = select(&mut progress);
        is_over.store(true, Relaxed);
        (beside, visits.join().expect("a visitor doesn't panic"))
    });
    progress.clear();
    let (beside, latencies) = beside?;
    visited?;
    visitor.kill_all()?;
    Ok(FairnessMeasurement {
        target: target.name.clone(),
        alone_per_second: alone.queries_per_second,
        beside_per_second: beside.queries_per_second,
        latencies,
        log_ins: visitor.log_ins,
        kills: visitor.kills,
        ended: visitor.ended,
    })
}

/// Has the statements that compute, and comes again and again.
struct Visitor<'a> {
    target: &'a Target,
    sql: &'a str,
    computing: Vec<Connection>,
    /// Which of them is interrupted next.
    next: usize,
    log_ins: Histogram,
    kills: Histogram,
    ended: u64,
}

impl<'a> Visitor<'a> {
    fn begin(target: &'a Target, plan: &'a FairnessPlan) -> Result<Self, Error> {
        let failed = target.failed("beginning a statement that computes");
        let mut computing = Vec::new();
        for _ in 0..plan.statements {
            computing.push(Connection::connect(&target.options).map_err(&failed)?);
        }
        for connection in &mut computing {
            begin_computing(connection, &plan.sql).map_err(&failed)?;
        }
        Ok(Self {
            target,
            sql: &plan.sql,
            computing,
            next: 0,
            log_ins: Histogram::default(),
            kills: Histogram::default(),
            ended: 0,
        })
    }

    fn visit_until(&mut self, is_over: &AtomicBool) -> Result<(), Error> {
        let failed = self.target.failed("visiting");
        while !is_over.load(Relaxed) {
            self.visit().map_err(&failed)?;
            std::thread::sleep(VISIT_INTERVAL);
        }
        Ok(())
    }

    fn visit(&mut self) -> Result<(), porpoise_client::Error> {
        let began = Instant::now();
        let mut connection = Connection::connect(&self.target.options)?;
        connection.rows("SELECT 1")?;
        self.log_ins.record(began.elapsed());
        let at = self.next;
        self.next = (at + 1) % self.computing.len();
        let victim = &mut self.computing[at];
        let began = Instant::now();
        connection.run(format!("KILL QUERY {}", victim.id()))?;
        self.kills.record(began.elapsed());
        if ends_soon(victim)? {
            self.ended += 1;
            begin_computing(victim, self.sql)?;
        }
        connection.close()
    }

    fn kill_all(&mut self) -> Result<(), Error> {
        let failed = self.target.failed("ending the statements that compute");
        let mut connection = Connection::connect(&self.target.options).map_err(&failed)?;
        for victim in &self.computing {
            connection.kill(victim.id()).map_err(&failed)?;
        }
        self.computing.clear();
        Ok(())
    }
}

fn begin_computing(connection: &mut Connection, sql: &str) -> Result<(), porpoise_client::Error> {
    connection.send_query(sql)?;
    connection.flush()
}

/// Waits for a statement that was interrupted; false if it goes on.
fn ends_soon(connection: &mut Connection) -> Result<bool, porpoise_client::Error> {
    let began = Instant::now();
    while !connection.has_reply()? {
        if began.elapsed() >= END_WAIT_MAX {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // An error, as it was interrupted, before or among its rows.
    match read_all(connection) {
        Err(error) if error.number().is_none() => Err(error),
        Ok(()) | Err(_) => Ok(true),
    }
}

fn read_all(connection: &mut Connection) -> Result<(), porpoise_client::Error> {
    let mut results = connection.receive()?;
    while results.next_row()?.is_some() {}
    Ok(())
}

impl fmt::Display for FairnessReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "Point selects of {} clients, alone and beside {} statements that compute",
            grouped(self.clients as u64),
            grouped(self.statements as u64)
        )?;
        let header = [
            "way in",
            "alone/s",
            "beside/s",
            "share",
            "p50 ms",
            "p99 ms",
            "max ms",
            "log-in p50 ms",
            "max ms",
            "KILL p50 ms",
            "max ms",
            "ended",
        ];
        let rows = self.measurements.iter().map(|measured| {
            let milliseconds = |histogram: &Histogram, share| {
                format!("{:.2}", histogram.percentile(share).as_secs_f64() * 1e3)
            };
            let share = measured.beside_per_second / measured.alone_per_second.max(1.0);
            vec![
                measured.target.clone(),
                rate(measured.alone_per_second),
                rate(measured.beside_per_second),
                format!("{share:.2}"),
                milliseconds(&measured.latencies, 0.5),
                milliseconds(&measured.latencies, 0.99),
                milliseconds(&measured.latencies, 1.0),
                milliseconds(&measured.log_ins, 0.5),
                milliseconds(&measured.log_ins, 1.0),
                milliseconds(&measured.kills, 0.5),
                milliseconds(&measured.kills, 1.0),
                format!("{} of {}", measured.ended, measured.kills.count()),
            ]
        });
        let table: Vec<Vec<String>> = std::iter::once(header.map(str::to_owned).into())
            .chain(rows)
            .collect();
        aligned(formatter, &table, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_tells_what_is_left_beside() {
        let mut latencies = Histogram::default();
        (0..100).for_each(|ms| latencies.record(Duration::from_millis(ms)));
        let mut few = Histogram::default();
        few.record(Duration::from_micros(1500));
        let report = FairnessReport {
            measurements: vec![FairnessMeasurement {
                target: "Unix socket".into(),
                alone_per_second: 100_000.0,
                beside_per_second: 40_000.0,
                latencies,
                log_ins: few.clone(),
                kills: few,
                ended: 1,
            }],
            statements: 200,
            clients: 1000,
        };
        let text = report.to_string();
        let row = text.lines().last().unwrap();
        for cell in ["100,000", "40,000", "0.40", "1.5", "1 of 1"] {
            assert!(row.contains(cell), "{cell}: {text}");
        }
    }

    #[test]
    fn a_plan_without_clients_is_refused() {
        let target = Target::new("none", "mysql://root@localhost/sbtest").unwrap();
        let plan = FairnessPlan {
            clients: 0,
            ..FairnessPlan::default()
        };
        assert!(run(&[target], &plan).is_err());
    }
}
