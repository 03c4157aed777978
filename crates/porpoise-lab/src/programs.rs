//! The programs experiment: what stored programs take, beside another server.
//!
//! ```text
//! for each target, round after round
//!   loop       CALL of a procedure that counts, adds and asks             one client
//!   function   a function of three statements, called for each row        one client
//!   triggers   INSERT … SELECT into a table with two triggers             one client
//!   clients    CALL of ten point selects and ten updates                  many clients
//! ```
//!
//! Each answer has to be the first target's.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fastrand::Rng;
use porpoise_client::{Connection, Value};

use crate::progress::Progress;
use crate::report::{aligned, grouped};
use crate::steadiness::Spread;
use crate::workload::is_conflict;
use crate::{Error, Target};

const TABLES: &[&str] = &[
    "DROP TABLE IF EXISTS program_rows, program_filled, program_log",
    "CREATE TABLE program_rows (id INT PRIMARY KEY, v INT NOT NULL, s VARCHAR(20), \
     n INT NOT NULL DEFAULT 0) ENGINE=InnoDB",
    "CREATE TABLE program_filled (id INT PRIMARY KEY, v INT, s VARCHAR(20), doubled INT) \
     ENGINE=InnoDB",
    "CREATE TABLE program_log (id INT PRIMARY KEY AUTO_INCREMENT, row_id INT, what VARCHAR(20)) \
     ENGINE=InnoDB",
];
const PROGRAMS: &[&str] = &[
    "DROP PROCEDURE IF EXISTS program_loop",
    "DROP FUNCTION IF EXISTS program_function",
    "DROP PROCEDURE IF EXISTS program_transaction",
    "CREATE PROCEDURE program_loop(rounds INT) BEGIN \
       DECLARE i, odd INT DEFAULT 0; DECLARE total BIGINT DEFAULT 0; \
       WHILE i < rounds DO \
         SET total = total + i * 3 - 1; \
         IF i % 2 = 1 THEN SET odd = odd + 1; END IF; \
         SET i = i + 1; \
       END WHILE; \
       SELECT total, odd; \
     END",
    "CREATE FUNCTION program_function(a INT, b INT) RETURNS INT DETERMINISTIC NO SQL BEGIN \
       DECLARE x INT DEFAULT a * 2 + b; \
       IF x > 1000 THEN SET x = x - 1000; END IF; \
       RETURN x; \
     END",
    "CREATE TRIGGER program_before BEFORE INSERT ON program_filled FOR EACH ROW BEGIN \
       SET NEW.doubled = NEW.v * 2; \
       IF NEW.v > 500 THEN SET NEW.s = CONCAT(NEW.s, '+'); END IF; \
     END",
    "CREATE TRIGGER program_after AFTER INSERT ON program_filled FOR EACH ROW \
       INSERT INTO program_log (row_id, what) VALUES (NEW.id, NEW.s)",
    "CREATE PROCEDURE program_transaction(k INT, row_count INT) BEGIN \
       DECLARE i INT DEFAULT 0; DECLARE one INT; DECLARE total BIGINT DEFAULT 0; \
       START TRANSACTION; \
       WHILE i < 10 DO \
         SELECT n INTO one FROM program_rows WHERE id = (k + i * 7919) % row_count; \
         SET total = total + one; \
         UPDATE program_rows SET n = n + 1 WHERE id = (k + i * 7919) % row_count; \
         SET i = i + 1; \
       END WHILE; \
       COMMIT; \
     END",
];
/// Rows that one INSERT fills the table with.
const ROWS_AN_INSERT: u64 = 1000;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct ProgramsPlan {
    /// Rounds of the loop.
    pub loop_rounds: u64,
    /// Rows that the function is called for, and that are inserted.
    pub rows: u64,
    /// Clients that call the procedure.
    pub clients: usize,
    /// How long they do in a round.
    pub duration: Duration,
    /// Rounds of which the median counts.
    pub rounds: usize,
    /// When somebody sets it, the run ends; what was measured counts.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for ProgramsPlan {
    fn default() -> Self {
        Self {
            loop_rounds: 10_000_000,
            rows: 1_000_000,
            clients: 8,
            duration: Duration::from_secs(5),
            rounds: 3,
            stop: Arc::default(),
            progress: true,
        }
    }
}

/// What was measured of one kind of program.
#[derive(Clone, Debug)]
pub struct ProgramsFigure {
    /// What was run.
    pub what: String,
    /// Seconds that it took, by target: the median of the rounds. Of clients, seconds for a thousand
    /// calls.
    pub seconds: Vec<f64>,
    /// How far the rounds lie apart, of the target that has the widest.
    pub spread: Spread,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct ProgramsReport {
    /// The targets' names.
    pub targets: Vec<String>,
    /// A row for each kind of program.
    pub figures: Vec<ProgramsFigure>,
}

/// Runs the plan on each target in turn, round after round.
///
/// # Errors
///
/// A target that can't be reached, and one that answers something else than the first.
pub fn run(targets: &[Target], plan: &ProgramsPlan) -> Result<ProgramsReport, Error> {
    if targets.is_empty() || plan.clients == 0 || plan.rows == 0 || plan.rounds == 0 {
        return Err(Error::Plan("nothing to measure".into()));
    }
    let mut progress = Progress::new(plan.progress);
    for target in targets {
        progress.show(&format!("{}: filling tables", target.name));
        load(target, plan.rows).map_err(target.failed("making tables and programs"))?;
    }
    let kinds = kinds(plan);
    let mut seconds = vec![vec![Vec::new(); targets.len()]; kinds.len()];
    for round in 0..plan.rounds {
        for (kind, seconds) in kinds.iter().zip(&mut seconds) {
            let mut expected = None;
            for (target, seconds) in targets.iter().zip(seconds) {
                if plan.stop.load(Relaxed) {
                    break;
                }
                let (name, what) = (&target.name, &kind.what);
                progress.show(&format!("{name}: {what}, round {}", round + 1));
                let measured = kind.measure(target, plan, round as u64);
                let (took, answer) = measured.map_err(target.failed("running a program"))?;
                if *expected.get_or_insert_with(|| answer.clone()) != answer {
                    let other = &targets[0].name;
                    let why = format!("{name} and {other} answer differently: {what}");
                    return Err(Error::Plan(why));
                }
                seconds.push(took);
            }
        }
    }
    progress.clear();
    let figures = kinds.into_iter().zip(seconds);
    Ok(ProgramsReport {
        targets: targets.iter().map(|target| target.name.clone()).collect(),
        figures: figures
            .map(|(kind, seconds)| ProgramsFigure {
                what: kind.what,
                spread: Spread::widest(seconds.iter().map(|seconds| Spread::of(seconds))),
                seconds: seconds.into_iter().filter_map(median).collect(),
            })
            .collect(),
    })
}

fn median(mut seconds: Vec<f64>) -> Option<f64> {
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len().checked_sub(1)? / 2;
    Some(seconds[middle])
}

fn load(target: &Target, rows: u64) -> Result<(), porpoise_client::Error> {
    let mut connection = Connection::connect(&target.options)?;
    for sql in TABLES.iter().chain(PROGRAMS) {
        connection.run(sql)?;
    }
    let mut from = 0;
    while from < rows {
        let to = rows.min(from + ROWS_AN_INSERT);
        let values = (from..to).map(|id| format!("({id},{},'v{}')", id % 1000, id / 1000));
        let values: Vec<String> = values.collect();
        let values = values.join(",");
        connection.run(format!(
            "INSERT INTO program_rows (id, v, s) VALUES {values}"
        ))?;
        from = to;
    }
    connection.close()
}

/// A kind of program.
struct Kind {
    what: String,
    /// Statements before, whose time doesn't count.
    before: &'static [&'static str],
    /// What is measured; nothing for that of many clients.
    sql: Option<String>,
    /// What tells that it did what it was to do, if its own answer doesn't.
    check: Option<&'static str>,
}

fn kinds(plan: &ProgramsPlan) -> Vec<Kind> {
    let (rounds, rows) = (plan.loop_rounds, grouped(plan.rows));
    vec![
        Kind {
            what: format!("a loop of {} rounds", grouped(rounds)),
            before: &[],
            sql: Some(format!("CALL program_loop({rounds})")),
            check: None,
        },
        Kind {
            what: format!("a function for {rows} rows"),
            before: &[],
            sql: Some("SELECT SUM(program_function(id, v)) FROM program_rows".into()),
            check: None,
        },
        Kind {
            what: format!("INSERT of {rows} rows, two triggers"),
            before: &["TRUNCATE program_filled", "TRUNCATE program_log"],
            sql: Some("INSERT INTO program_filled SELECT id, v, s, 0 FROM program_rows".into()),
            check: Some(
                "SELECT (SELECT SUM(doubled) FROM program_filled), COUNT(*), SUM(CHAR_LENGTH(what)) \
                 FROM program_log",
            ),
        },
        Kind {
            what: format!("1,000 calls of {} clients", plan.clients),
            before: &[],
            sql: None,
            check: None,
        },
    ]
}

impl Kind {
    /// Seconds, and what was answered.
    fn measure(
        &self,
        target: &Target,
        plan: &ProgramsPlan,
        seed: u64,
    ) -> Result<(f64, Vec<Vec<String>>), porpoise_client::Error> {
        let Some(sql) = &self.sql else {
            let calls = many_clients(target, plan, seed)?;
            return Ok((1000.0 / calls, Vec::new()));
        };
        let mut connection = Connection::connect(&target.options)?;
        for sql in self.before {
            connection.run(sql)?;
        }
        let began = Instant::now();
        let mut results = connection.query(sql)?;
        let mut answer = results.rows()?.to_text();
        results.finish()?;
        let took = began.elapsed().as_secs_f64();
        if let Some(check) = self.check {
            answer = connection.rows(check)?.to_text();
        }
        connection.close()?;
        Ok((took, answer))
    }
}

/// Calls a second.
fn many_clients(
    target: &Target,
    plan: &ProgramsPlan,
    seed: u64,
) -> Result<f64, porpoise_client::Error> {
    let connect = |_| Connection::connect(&target.options);
    let connections = (0..plan.clients)
        .map(connect)
        .collect::<Result<Vec<_>, _>>()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let began = Instant::now();
        let threads = connections.into_iter().enumerate();
        let threads = threads.map(|(number, connection)| {
            let random = Rng::with_seed(seed * 1000 + number as u64);
            let is_over = &is_over;
            scope.spawn(move || call_until(connection, random, plan.rows, is_over))
        });
        let threads: Vec<_> = threads.collect();
        while began.elapsed() < plan.duration && !plan.stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Relaxed);
        let took = began.elapsed().as_secs_f64();
        let mut calls = 0;
        for thread in threads {
            calls += thread.join().expect("a client doesn't panic")?;
        }
        Ok(calls as f64 / took)
    })
}

fn call_until(
    mut connection: Connection,
    mut random: Rng,
    rows: u64,
    is_over: &AtomicBool,
) -> Result<u64, porpoise_client::Error> {
    let statement = connection.prepare("CALL program_transaction(?, ?)")?;
    let mut calls = 0;
    while !is_over.load(Relaxed) {
        let given = [Value::UInt(random.u64(0..rows)), Value::UInt(rows)];
        let called = connection.execute(&statement, &given);
        match called.and_then(|results| results.finish()) {
            Ok(_) => calls += 1,
            Err(error) if is_conflict(&error) => {
                connection.run("ROLLBACK")?;
            }
            Err(error) => return Err(error),
        }
    }
    connection.close()?;
    Ok(calls)
}

impl fmt::Display for ProgramsReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut header = vec![String::from("seconds")];
        header.extend(self.targets.iter().cloned());
        header.extend(self.targets.iter().skip(1).map(|_| "× the first".into()));
        header.push("spread".into());
        let mut table = vec![header];
        for figure in &self.figures {
            let mut row = vec![figure.what.clone()];
            row.extend(figure.seconds.iter().map(|seconds| format!("{seconds:.2}")));
            if let Some((first, others)) = figure.seconds.split_first() {
                row.extend(others.iter().map(|other| format!("{:.2}", other / first)));
                row.push(figure.spread.to_string());
            }
            table.push(row);
        }
        aligned(formatter, &table, 1)?;
        Spread::note(self.figures.iter().map(|figure| figure.spread), formatter)
    }
}
