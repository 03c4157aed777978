//! The transfers experiment: clients that move money between a few rows, beside others that add the
//! rows up, while other work keeps the cores busy.
//!
//! ```text
//! for each way in, round after round
//!   N threads compute (the busy machine)
//!   M writers   UPDATE one row; UPDATE another; COMMIT          how many a second, how many deadlocks
//!   R readers   a consistent snapshot; SELECT SUM(bal); COMMIT   how many a second; is the sum the same?
//! ```
//!
//! With more writers than pairs of rows nearly every transfer waits for another one's row. What is
//! measured is how soon a transaction goes on whose row was given back, and that those who only
//! read don't crowd out those who hold rows.

use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fastrand::Rng;
use porpoise_client::{Connection, Statement, Value};

use crate::progress::Progress;
use crate::report::{aligned, grouped, rate};
use crate::steadiness::Spread;
use crate::workload::is_conflict;
use crate::{Error, Histogram, Target};

/// What each row holds at the beginning.
const BALANCE: u64 = 1000;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct TransfersPlan {
    /// Rows that money is moved between.
    pub rows: u64,
    /// Clients that move money.
    pub writers: usize,
    /// Clients that add all rows up.
    pub readers: usize,
    /// Threads that compute beside, in this process.
    pub busy: usize,
    /// How long each round takes.
    pub duration: Duration,
    /// Rounds of which the median is reported.
    pub rounds: usize,
    /// When somebody sets it, the run ends; what was measured counts.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for TransfersPlan {
    fn default() -> Self {
        Self {
            rows: 20,
            writers: 16,
            readers: 4,
            busy: 0,
            duration: Duration::from_secs(5),
            rounds: 3,
            stop: Arc::default(),
            progress: true,
        }
    }
}

/// What was measured over one way in, in one round.
#[derive(Clone, Debug)]
pub struct TransfersMeasurement {
    /// The target's name.
    pub target: String,
    /// Transfers a second.
    pub transfers_per_second: f64,
    /// Sums a second.
    pub sums_per_second: f64,
    /// How long a transfer took, with those of its attempts that ended in a deadlock.
    pub latencies: Histogram,
    /// How often a transfer was begun again.
    pub conflicts: u64,
    /// Sums, of all rounds, that weren't what the accounts held at the beginning.
    pub wrong_sums: u64,
    /// How far the rounds lie apart, by transfers a second.
    pub spread: Spread,
}

/// The median round of each target.
#[derive(Clone, Debug, Default)]
pub struct TransfersReport {
    /// One for each target.
    pub measurements: Vec<TransfersMeasurement>,
    plan: TransfersPlan,
}

impl TransfersReport {
    /// The targets where a snapshot had a wrong sum.
    pub fn wrong_targets(&self) -> impl Iterator<Item = &str> {
        let wrong = self.measurements.iter().filter(|one| one.wrong_sums > 0);
        wrong.map(|one| one.target.as_str())
    }
}

/// Runs the plan on each target in turn, round after round.
///
/// # Errors
///
/// A target that can't be reached. A sum that isn't what all rows held at the beginning is part of
/// the report.
pub fn run(targets: &[Target], plan: &TransfersPlan) -> Result<TransfersReport, Error> {
    if targets.is_empty() || plan.writers == 0 || plan.rows < 2 || plan.rounds == 0 {
        return Err(Error::Plan("nothing to measure".into()));
    }
    for target in targets {
        load(target, plan.rows).map_err(target.failed("making the accounts"))?;
    }
    let mut progress = Progress::new(plan.progress);
    let mut rounds: Vec<Vec<TransfersMeasurement>> = vec![Vec::new(); targets.len()];
    for round in 0..plan.rounds {
        for (target, measured) in targets.iter().zip(&mut rounds) {
            if plan.stop.load(Relaxed) {
                break;
            }
            progress.show(&format!("{}: round {}", target.name, round + 1));
            measured.push(measure(target, plan, round as u64)?);
        }
    }
    progress.clear();
    Ok(TransfersReport {
        measurements: rounds.into_iter().filter_map(median).collect(),
        plan: plan.clone(),
    })
}

fn median(mut rounds: Vec<TransfersMeasurement>) -> Option<TransfersMeasurement> {
    rounds.sort_by(|one, other| {
        one.transfers_per_second
            .total_cmp(&other.transfers_per_second)
    });
    let wrong_sums = rounds.iter().map(|round| round.wrong_sums).sum();
    let middle = rounds.len().checked_sub(1)? / 2;
    let rates: Vec<f64> = rounds
        .iter()
        .map(|round| round.transfers_per_second)
        .collect();
    Some(TransfersMeasurement {
        wrong_sums,
        spread: Spread::of(&rates),
        ..rounds.swap_remove(middle)
    })
}

fn load(target: &Target, rows: u64) -> Result<(), porpoise_client::Error> {
    let mut connection = Connection::connect(&target.options)?;
    connection.run("DROP TABLE IF EXISTS acct")?;
    connection.run("CREATE TABLE acct (id INT PRIMARY KEY, bal BIGINT NOT NULL) ENGINE=InnoDB")?;
    let values: Vec<_> = (1..=rows).map(|id| format!("({id},{BALANCE})")).collect();
    connection.run(format!("INSERT INTO acct VALUES {}", values.join(",")))?;
    connection.close()
}

/// What a client counted.
#[derive(Default)]
struct Counted {
    done: u64,
    conflicts: u64,
    latencies: Histogram,
}

type Client<'a> =
    Box<dyn FnOnce(&AtomicBool) -> Result<Counted, porpoise_client::Error> + Send + 'a>;

fn measure(
    target: &Target,
    plan: &TransfersPlan,
    round: u64,
) -> Result<TransfersMeasurement, Error> {
    let failed = target.failed("moving money");
    let mut seeds = Rng::with_seed(round);
    let mut clients: Vec<Client<'_>> = Vec::new();
    for _ in 0..plan.writers {
        let writer = Writer::connect(target, plan.rows, seeds.fork()).map_err(&failed)?;
        clients.push(Box::new(move |is_over| writer.run(is_over)));
    }
    for _ in 0..plan.readers {
        let connection = Connection::connect(&target.options).map_err(&failed)?;
        let sum = (plan.rows * BALANCE) as i64;
        clients.push(Box::new(move |is_over| add_up(connection, sum, is_over)));
    }
    let is_over = AtomicBool::new(false);
    let (counted, took) = std::thread::scope(|scope| {
        for _ in 0..plan.busy {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    spin_loop();
                }
            });
        }
        let began = Instant::now();
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(|| client(&is_over)))
            .collect();
        while began.elapsed() < plan.duration
            && !plan.stop.load(Relaxed)
            && !threads.iter().any(|thread| thread.is_finished())
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        let took = began.elapsed();
        is_over.store(true, Relaxed);
        let counted: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a client doesn't panic"))
            .collect();
        (counted, took.as_secs_f64())
    });
    let mut counted = counted
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(&failed)?;
    let sums = counted.split_off(plan.writers);
    let mut measurement = TransfersMeasurement {
        target: target.name.clone(),
        transfers_per_second: 0.0,
        sums_per_second: sums.iter().map(|sums| sums.done).sum::<u64>() as f64 / took,
        latencies: Histogram::default(),
        conflicts: 0,
        wrong_sums: sums.iter().map(|sums| sums.conflicts).sum(),
        spread: Spread::default(),
    };
    for transfers in &counted {
        measurement.transfers_per_second += transfers.done as f64 / took;
        measurement.conflicts += transfers.conflicts;
        measurement.latencies.merge(&transfers.latencies);
    }
    Ok(measurement)
}

/// A client that moves money.
struct Writer {
    connection: Connection,
    take: Statement,
    give: Statement,
    rows: u64,
    random: Rng,
}

impl Writer {
    fn connect(target: &Target, rows: u64, random: Rng) -> Result<Self, porpoise_client::Error> {
        let mut connection = Connection::connect(&target.options)?;
        connection.run("SET autocommit=0")?;
        Ok(Self {
            take: connection.prepare("UPDATE acct SET bal=bal-1 WHERE id=?")?,
            give: connection.prepare("UPDATE acct SET bal=bal+1 WHERE id=?")?,
            connection,
            rows,
            random,
        })
    }

    fn run(mut self, is_over: &AtomicBool) -> Result<Counted, porpoise_client::Error> {
        let mut counted = Counted::default();
        while !is_over.load(Relaxed) {
            let from = self.random.u64(1..=self.rows);
            // Any other row.
            let to = (from - 1 + self.random.u64(1..self.rows)) % self.rows + 1;
            let began = Instant::now();
            while let Err(error) = self.transfer(from, to) {
                if !is_conflict(&error) {
                    return Err(error);
                }
                counted.conflicts += 1;
                self.connection.run("ROLLBACK")?;
            }
            counted.done += 1;
            counted.latencies.record(began.elapsed());
        }
        self.connection.close()?;
        Ok(counted)
    }

    fn transfer(&mut self, from: u64, to: u64) -> Result<(), porpoise_client::Error> {
        let connection = &mut self.connection;
        connection.execute(&self.take, &[Value::UInt(from)])?;
        connection.execute(&self.give, &[Value::UInt(to)])?;
        connection.run("COMMIT").map(drop)
    }
}

/// Adds all rows up again and again. A sum that isn't the one expected counts as a conflict.
fn add_up(
    mut connection: Connection,
    expected: i64,
    is_over: &AtomicBool,
) -> Result<Counted, porpoise_client::Error> {
    let mut counted = Counted::default();
    while !is_over.load(Relaxed) {
        connection.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let sum = connection.rows("SELECT SUM(bal) FROM acct")?.to_text();
        connection.run("COMMIT")?;
        let is_expected = sum == [[expected.to_string()]];
        counted.done += u64::from(is_expected);
        counted.conflicts += u64::from(!is_expected);
    }
    connection.close()?;
    Ok(counted)
}

impl fmt::Display for TransfersReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        writeln!(
            formatter,
            "Transfers of {} clients between {} rows, {} clients that add them up, {} threads that \
             compute beside",
            plan.writers, plan.rows, plan.readers, plan.busy
        )?;
        let header = [
            "way in",
            "transfers/s",
            "× the first",
            "p50 ms",
            "p99 ms",
            "conflicts",
            "sums/s",
            "wrong sums",
            "spread",
        ];
        let first = self
            .measurements
            .first()
            .map(|first| first.transfers_per_second);
        let rows = self.measurements.iter().map(|measured| {
            let milliseconds = |share| {
                let taken = measured.latencies.percentile(share);
                format!("{:.2}", taken.as_secs_f64() * 1e3)
            };
            let ratio = measured.transfers_per_second / first.unwrap_or_default().max(1.0);
            vec![
                measured.target.clone(),
                rate(measured.transfers_per_second),
                format!("{ratio:.2}"),
                milliseconds(0.5),
                milliseconds(0.99),
                grouped(measured.conflicts),
                rate(measured.sums_per_second),
                grouped(measured.wrong_sums),
                measured.spread.to_string(),
            ]
        });
        let table: Vec<Vec<String>> = std::iter::once(header.map(str::to_owned).into())
            .chain(rows)
            .collect();
        aligned(formatter, &table, 1)?;
        Spread::note(self.measurements.iter().map(|one| one.spread), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_compares_with_the_first() {
        let measured = |target: &str, transfers_per_second| TransfersMeasurement {
            target: target.into(),
            transfers_per_second,
            sums_per_second: 10.0,
            latencies: Histogram::default(),
            conflicts: 7,
            wrong_sums: 3,
            spread: Spread::of(&[10.0, 13.0]),
        };
        let report = TransfersReport {
            measurements: vec![measured("MariaDB", 1000.0), measured("Unix socket", 1500.0)],
            plan: TransfersPlan::default(),
        };
        let text = report.to_string();
        let row = text.lines().nth(3).unwrap();
        assert_eq!(report.wrong_targets().count(), 2);
        assert!(
            text.lines().last().unwrap().contains("in 2 of the rows"),
            "{text}"
        );
        for cell in ["Unix socket", "1,500", "1.50", "7", "3", "30 % !"] {
            assert!(row.contains(cell), "{cell}: {text}");
        }
    }

    #[test]
    fn a_single_row_is_refused() {
        let target = Target::new("none", "mysql://root@localhost/sbtest").unwrap();
        let plan = TransfersPlan {
            rows: 1,
            ..TransfersPlan::default()
        };
        assert!(run(&[target], &plan).is_err());
    }
}
