//! What the runs of a program have taken, since its definition was read.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What the runs of a program have taken. All sessions add to it.
#[derive(Debug, Default)]
pub struct ProgramStatistics {
    /// Its runs.
    pub runs: Timed,
    /// The SQL statements that it ran.
    pub statements: Timed,
    /// Runs that ended with an error.
    pub errors: AtomicU64,
    /// Its statements one by one, as they are numbered; known once it was compiled.
    pub by_statement: OnceLock<Box<[StatementStatistics]>>,
}

impl ProgramStatistics {
    /// A statement has run.
    pub fn statement_ran(&self, number: usize, took: Duration, failed: bool) {
        self.statements.add(took);
        let known = self.by_statement.get();
        if let Some(statement) = known.and_then(|statements| statements.get(number)) {
            statement.runs.add(took);
            if failed {
                statement.errors.fetch_add(1, Relaxed);
            }
        }
    }
}

/// What the runs of one statement of a program have taken.
#[derive(Debug)]
pub struct StatementStatistics {
    /// The line of the program's text that it begins on, from 1.
    pub line: usize,
    /// Its text.
    pub text: Box<str>,
    /// Its runs; those of CALL have what the procedure took.
    pub runs: Timed,
    /// Runs that ended with an error, handled or not.
    pub errors: AtomicU64,
}

impl StatementStatistics {
    /// A statement that has not run.
    pub fn new(line: usize, text: Box<str>) -> StatementStatistics {
        StatementStatistics {
            line,
            text,
            runs: Timed::default(),
            errors: AtomicU64::new(0),
        }
    }
}

/// How often something was done, and how long it took.
#[derive(Debug)]
pub struct Timed {
    count: AtomicU64,
    sum_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for Timed {
    fn default() -> Timed {
        Timed {
            count: AtomicU64::new(0),
            sum_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
        }
    }
}

/// What [`Timed`] has counted. Times are in picoseconds, as performance_schema has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub sum_ps: u64,
    /// The shortest.
    pub min_ps: u64,
    /// The mean.
    pub avg_ps: u64,
    /// The longest.
    pub max_ps: u64,
}

impl Timed {
    /// Counts one more.
    pub fn add(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
        // A read is cheaper than a write, and mostly enough.
        if ns < self.min_ns.load(Relaxed) {
            self.min_ns.fetch_min(ns, Relaxed);
        }
        if ns > self.max_ns.load(Relaxed) {
            self.max_ns.fetch_max(ns, Relaxed);
        }
    }

    /// What was counted until now.
    pub fn times(&self) -> Times {
        const PS_PER_NS: u64 = 1000;
        let count = self.count.load(Relaxed);
        let sum_ps = self.sum_ns.load(Relaxed).saturating_mul(PS_PER_NS);
        let min_ns = match count {
            0 => 0,
            _ => self.min_ns.load(Relaxed),
        };
        Times {
            count,
            sum_ps,
            min_ps: min_ns.saturating_mul(PS_PER_NS),
            avg_ps: sum_ps.checked_div(count).unwrap_or(0),
            max_ps: self.max_ns.load(Relaxed).saturating_mul(PS_PER_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_done_took_no_time() {
        let times = Timed::default().times();
        assert_eq!((times.count, times.min_ps, times.avg_ps), (0, 0, 0));
    }

    #[test]
    fn times_are_picoseconds() {
        let timed = Timed::default();
        timed.add(Duration::from_nanos(10));
        timed.add(Duration::from_nanos(30));
        let expected = Times {
            count: 2,
            sum_ps: 40_000,
            min_ps: 10_000,
            avg_ps: 20_000,
            max_ps: 30_000,
        };
        assert_eq!(timed.times(), expected);
    }
}
