//! What clients do in the growth experiment: load, select, update, add up, and remember what they
//! were promised when the server is killed.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use fastrand::Rng;
use porpoise_client::{Connection, Statement, Value};

use super::GrowthPlan;
use crate::workload::is_conflict;
use crate::{Error, Target};

/// Of an INSERT; fewer where rows are long.
const INSERT_ROWS: u64 = 1000;
const INSERT_BYTES: usize = 1 << 20;
/// What the texts of rows are cut from: rows that stand together seldom share a part of it.
const LETTERS: usize = 1 << 20;
/// Before selects are measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// Ids of a statement that looks for updates.
const LOOK_UP_ROWS: usize = 500;
/// The numbers of the rows are below this, with all updates that add one; those that clients
/// remember are above.
const NUMBER_MAX: u32 = 1_000_000;
const REMEMBERED: u32 = 1_000_000_000;

const SELECT: &str = "SELECT * FROM growth WHERE id = ?";
const ADD_ONE: &str = "UPDATE growth SET n = n + 1 WHERE id = ?";
const SET: &str = "UPDATE growth SET n = ? WHERE id = ?";

type ClientError = porpoise_client::Error;

/// Fills the table, with the ids from 1.
pub(super) struct Loader {
    connection: Connection,
    random: Rng,
    /// Nothing where rows have no text.
    letters: String,
    text_bytes: usize,
    sql: String,
    rows: u64,
    sum: u64,
}

impl Loader {
    /// Makes the table.
    pub(super) fn begin(target: &Target, text_bytes: usize) -> Result<Self, ClientError> {
        let mut connection = Connection::connect(&target.options)?;
        let text = match text_bytes {
            0 => String::new(),
            bytes => format!(", s VARCHAR({bytes}) CHARACTER SET latin1 NOT NULL"),
        };
        connection.run(format!(
            "CREATE TABLE growth (id INT NOT NULL PRIMARY KEY, n INT NOT NULL{text}) ENGINE=InnoDB"
        ))?;
        let mut random = Rng::with_seed(1);
        let letters = match text_bytes {
            0 => 0,
            bytes => LETTERS + bytes,
        };
        Ok(Self {
            connection,
            letters: (0..letters).map(|_| random.alphanumeric()).collect(),
            random,
            text_bytes,
            sql: String::new(),
            rows: 0,
            sum: 0,
        })
    }

    /// How many rows are there.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// What their numbers come to.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// Adds some rows, until there are `most`.
    pub(super) fn insert(&mut self, most: u64) -> Result<(), ClientError> {
        self.sql.clear();
        self.sql.push_str("INSERT INTO growth VALUES ");
        let last = most.min(self.rows + INSERT_ROWS);
        let mut id = self.rows;
        while id < last && self.sql.len() < INSERT_BYTES {
            id += 1;
            let n = self.random.u32(0..NUMBER_MAX);
            self.sum += u64::from(n);
            write!(self.sql, "({id},{n}").expect("a String takes every write");
            if self.text_bytes > 0 {
                let from = self.random.usize(0..LETTERS);
                let text = &self.letters[from..from + self.text_bytes];
                self.sql.extend([",'", text, "'"]);
            }
            self.sql.push_str("),");
        }
        // The last comma.
        self.sql.pop();
        self.connection.run(&self.sql)?;
        self.rows = id;
        Ok(())
    }
}

/// What clients did together.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Statements a second, those of the warm-up left out.
    pub per_second: f64,
    /// The same, of each whole second.
    pub seconds: Vec<f64>,
    /// What the slowest statement took.
    pub longest: Duration,
    /// All statements.
    pub statements: u64,
}

/// Selects rows by their ids, any of the first `rows`.
pub(super) fn select(target: &Target, plan: &GrowthPlan, rows: u64) -> Result<Done, Error> {
    run(target, plan, SELECT, WARM_UP, rows)
}

/// Adds one to rows, any of the first `rows`.
pub(super) fn update(target: &Target, plan: &GrowthPlan, rows: u64) -> Result<Done, Error> {
    run(target, plan, ADD_ONE, Duration::ZERO, rows)
}

/// Has clients run a statement with an id again and again.
fn run(
    target: &Target,
    plan: &GrowthPlan,
    sql: &str,
    warm_up: Duration,
    rows: u64,
) -> Result<Done, Error> {
    let failed = target.failed(sql);
    let clients = connect(target, plan.clients, sql).map_err(&failed)?;
    let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut done = Done::default();
    let longest: Vec<Result<Duration, ClientError>> = std::thread::scope(|scope| {
        let threads = clients.into_iter().enumerate();
        let threads = threads.map(|(number, (connection, statement))| {
            let random = Rng::with_seed(number as u64);
            let (is_over, count) = (&is_over, &count);
            scope.spawn(move || repeat(connection, &statement, rows, random, is_over, count))
        });
        let threads: Vec<_> = threads.collect();
        let goes_on = || !plan.is_stopped() && !has_one_ended(&threads);
        wait(warm_up, goes_on);
        let counted = || count.load(Relaxed);
        let (began, before) = (Instant::now(), counted());
        let (mut second, mut at) = (began, before);
        while began.elapsed() < plan.duration && goes_on() {
            let left = plan.duration.saturating_sub(began.elapsed());
            wait(left.min(Duration::from_secs(1)), goes_on);
            let (now, then) = (counted(), Instant::now());
            let took = (then - second).as_secs_f64();
            // What is left at the end, or was stopped, is no second.
            if took > 0.9 {
                done.seconds.push((now - at) as f64 / took);
                (second, at) = (then, now);
            }
        }
        let took = began.elapsed().as_secs_f64();
        done.per_second = (counted() - before) as f64 / took;
        is_over.store(true, Relaxed);
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().expect("a client doesn't panic"));
        ends.collect()
    });
    for one in longest {
        done.longest = done.longest.max(one.map_err(&failed)?);
    }
    done.statements = count.into_inner();
    Ok(done)
}

fn has_one_ended<T>(threads: &[ScopedJoinHandle<'_, T>]) -> bool {
    threads.iter().any(ScopedJoinHandle::is_finished)
}

/// Sleeps, as long as things go on.
fn wait(duration: Duration, goes_on: impl Fn() -> bool) {
    let began = Instant::now();
    while began.elapsed() < duration && goes_on() {
        let left = duration.saturating_sub(began.elapsed());
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}

fn connect(
    target: &Target,
    clients: usize,
    sql: &str,
) -> Result<Vec<(Connection, Statement)>, ClientError> {
    let connect = |_| {
        let mut connection = Connection::connect(&target.options)?;
        let statement = connection.prepare(sql)?;
        Ok((connection, statement))
    };
    (0..clients).map(connect).collect()
}

/// What its slowest statement took.
fn repeat(
    mut connection: Connection,
    statement: &Statement,
    rows: u64,
    mut random: Rng,
    is_over: &AtomicBool,
    count: &AtomicU64,
) -> Result<Duration, ClientError> {
    let mut longest = Duration::ZERO;
    while !is_over.load(Relaxed) {
        let id = random.u64(1..=rows);
        let began = Instant::now();
        let executed = connection.execute(statement, &[Value::UInt(id)]);
        match executed.and_then(|results| results.finish()) {
            Ok(_) => {
                count.fetch_add(1, Relaxed);
            }
            // Nothing has changed.
            Err(error) if is_conflict(&error) => {}
            Err(error) => return Err(error),
        }
        longest = longest.max(began.elapsed());
    }
    connection.close()?;
    Ok(longest)
}

/// The sum of all rows' numbers.
pub(super) fn sum(target: &Target) -> Result<u64, Error> {
    let sum = || {
        let mut connection = Connection::connect(&target.options)?;
        let rows = connection.rows("SELECT SUM(n) FROM growth")?.to_text();
        connection.close()?;
        Ok(rows)
    };
    let rows = sum().map_err(target.failed("scanning"))?;
    let sum = rows.first().and_then(|row| row.first()?.parse().ok());
    sum.ok_or_else(|| Error::Plan(format!("{}: there is no sum of the rows", target.name)))
}

/// What a client knows of its rows when the server is killed.
#[derive(Debug, Default)]
pub(super) struct Promised {
    /// The number that the server said is in a row, by id.
    numbers: HashMap<u64, u32>,
    /// The update without a reply: it may be there or not.
    asked: Option<(u64, u32)>,
}

/// Has each client set rows of its own to growing numbers, and has the server killed meanwhile.
///
/// # Errors
///
/// A statement that fails before the server is killed.
pub(super) fn update_until_killed(
    target: &Target,
    plan: &GrowthPlan,
    rows: u64,
    kill: impl FnOnce(),
) -> Result<Vec<Promised>, Error> {
    let failed = target.failed("updating until it is killed");
    let clients = connect(target, plan.clients, SET).map_err(&failed)?;
    let (is_killed, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let promised: Result<Vec<_>, ClientError> = std::thread::scope(|scope| {
        let threads = clients.into_iter().enumerate();
        let threads = threads.map(|(number, (connection, statement))| {
            let own = Own {
                first: number as u64 + 1,
                step: plan.clients as u64,
                rows,
            };
            let ends = [&is_killed, &is_over];
            scope.spawn(move || set_until_killed(connection, &statement, &own, ends))
        });
        let threads: Vec<_> = threads.collect();
        let goes_on = || !plan.is_stopped() && !has_one_ended(&threads);
        wait(plan.duration / 2, goes_on);
        if has_one_ended(&threads) {
            is_over.store(true, Relaxed);
        } else {
            is_killed.store(true, Relaxed);
            kill();
        }
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().expect("a client doesn't panic"));
        ends.collect()
    });
    promised.map_err(failed)
}

/// The rows of one client.
struct Own {
    first: u64,
    /// From one to the next.
    step: u64,
    /// Of all clients.
    rows: u64,
}

impl Own {
    fn any(&self, random: &mut Rng) -> u64 {
        let count = (self.rows - self.first) / self.step + 1;
        self.first + self.step * random.u64(0..count)
    }
}

fn set_until_killed(
    mut connection: Connection,
    statement: &Statement,
    own: &Own,
    [is_killed, is_over]: [&AtomicBool; 2],
) -> Result<Promised, ClientError> {
    let mut random = Rng::with_seed(own.first);
    let mut promised = Promised::default();
    for number in REMEMBERED.. {
        // Another client has failed.
        if is_over.load(Relaxed) {
            break;
        }
        let id = own.any(&mut random);
        promised.asked = Some((id, number));
        let given = [Value::UInt(number.into()), Value::UInt(id)];
        let executed = connection.execute(statement, &given);
        match executed.and_then(|results| results.finish()) {
            Ok(_) => {
                promised.numbers.insert(id, number);
                promised.asked = None;
            }
            Err(error) if is_conflict(&error) => {}
            Err(_) if is_killed.load(Relaxed) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(promised)
}

/// How many of the rows don't hold what the server said they do.
pub(super) fn count_lost(target: &Target, promised: &[Promised]) -> Result<u64, Error> {
    let count = || {
        let mut connection = Connection::connect(&target.options)?;
        let mut lost = 0;
        for one in promised {
            let ids: Vec<u64> = one.numbers.keys().copied().collect();
            for ids in ids.chunks(LOOK_UP_ROWS) {
                let list: Vec<String> = ids.iter().map(u64::to_string).collect();
                let list = list.join(",");
                let rows =
                    connection.rows(format!("SELECT id, n FROM growth WHERE id IN ({list})"))?;
                let there: Result<HashMap<u64, u32>, ClientError> = rows
                    .iter()
                    .map(|row| Ok((row.get(0)?, row.get(1)?)))
                    .collect();
                let there = there?;
                let is_kept = |id: &u64| one.is_kept(*id, there.get(id).copied());
                lost += ids.iter().filter(|id| !is_kept(id)).count() as u64;
            }
        }
        connection.close()?;
        Ok(lost)
    };
    count().map_err(target.failed("looking for updates"))
}

impl Promised {
    fn is_kept(&self, id: u64, there: Option<u32>) -> bool {
        let said = self.numbers.get(&id).copied();
        there.is_some() && (there == said || self.asked == there.map(|number| (id, number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_what_was_said_or_what_was_asked_last() {
        let promised = Promised {
            numbers: HashMap::from([(1, 10), (2, 20)]),
            asked: Some((2, 21)),
        };
        for (id, there, is_kept) in [
            (1, Some(10), true),
            (1, Some(9), false),
            (1, Some(21), false),
            (1, None, false),
            (2, Some(20), true),
            (2, Some(21), true),
            (2, Some(19), false),
        ] {
            assert_eq!(promised.is_kept(id, there), is_kept, "{id} {there:?}");
        }
    }

    #[test]
    fn clients_have_rows_of_their_own_and_all_of_them() {
        let mut seen = [0; 11];
        let mut random = Rng::with_seed(1);
        for first in 1..=3 {
            let own = Own {
                first,
                step: 3,
                rows: 10,
            };
            for _ in 0..200 {
                let id = own.any(&mut random);
                assert_eq!(id % 3, first % 3);
                seen[id as usize] += 1;
            }
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|times| *times > 0), "{seen:?}");
    }
}
