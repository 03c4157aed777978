//! The locks experiment: how often a second threads get through a reader-writer lock, and how long
//! writers wait.
//!
//! The server's metadata lock, [`PreferReader`], is measured against four older shapes of such a
//! lock, which have the same trait, [`ReaderWriter`], and against parking_lot's:
//!
//! | lock | made of | bytes | whom it prefers | recursion |
//! | --- | --- | --- | --- | --- |
//! | [`Portable`] | a mutex and two condition variables | 32 | readers | readers, owner |
//! | [`Native`] | the platform's own lock around the state | 44 | readers; scoped: whom the platform prefers | held: readers, owner; scoped: none |
//! | [`TwoMutex`] | two mutexes and an event | 36 | readers | readers, owner |
//! | [`Morrison`] | a spin lock around the state, events when needed | 32 | readers | readers, owner |
//! | [`PreferReader`] | one word | 8 | readers, or whoever came first | readers, owner |
//!
//! ```text
//! each thread, for as long as a round takes:
//!   draw: read or write?  ─►  enter  ─►  look at four figures, or change them  ─►  leave
//! ```
//!
//! That is about what metadata locking does inside its lock: a few loads, or a few stores, on one
//! cache line. There is nothing between two turns, so this is the worst a lock can meet. All locks
//! are measured in turn, round after round, and of each the median round counts, so that what the
//! machine does meanwhile hits all alike.

mod base;
mod event;
mod morrison;
mod native;
mod portable;
mod spin;
mod two_mutex;

#[cfg(test)]
mod modelled;
#[cfg(test)]
mod rival_tests;

pub use morrison::Morrison;
pub use native::Native;
pub use portable::Portable;
pub use two_mutex::TwoMutex;

use std::fmt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use porpoise_locks::{Owner, PreferReader, ReaderWriter};

use crate::chart::{Curve, Panel, Picture, Scale, standalone};
use crate::progress::Progress;

/// How many of the turns write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mix {
    /// None.
    ReadOnly,
    /// One in 1,000.
    RareWrites,
    /// Every second one.
    HalfWrites,
    /// All.
    WriteOnly,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 4] = [
        Mix::ReadOnly,
        Mix::RareWrites,
        Mix::HalfWrites,
        Mix::WriteOnly,
    ];

    /// As the report says it.
    pub fn name(self) -> &'static str {
        match self {
            Mix::ReadOnly => "readers only",
            Mix::RareWrites => "1 in 1,000 writes",
            Mix::HalfWrites => "half writes",
            Mix::WriteOnly => "writers only",
        }
    }

    /// Whether a turn writes, from a number drawn at random.
    fn writes(self, drawn: u64) -> bool {
        let per_mille = match self {
            Mix::ReadOnly => 0,
            Mix::RareWrites => 1,
            Mix::HalfWrites => 500,
            Mix::WriteOnly => 1000,
        };
        ((u128::from(drawn) * 1000) >> 64) < per_mille
    }
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct LocksPlan {
    /// Numbers of threads, in order.
    pub threads: Vec<usize>,
    /// Mixes, in order.
    pub mixes: Vec<Mix>,
    /// How long a round takes.
    pub duration: Duration,
    /// Rounds of which the median counts.
    pub rounds: usize,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for LocksPlan {
    fn default() -> Self {
        Self {
            threads: vec![1, 2, 4, 8, 16, 32, 64],
            mixes: Mix::ALL.to_vec(),
            duration: Duration::from_millis(100),
            rounds: 7,
            progress: true,
        }
    }
}

/// The cache line that the locks guard. Atomic only to be shared; the locks see to it that nobody
/// meets there.
#[derive(Default)]
#[repr(align(128))]
struct Figures([AtomicU64; 4]);

impl Figures {
    #[inline]
    fn look(&self) -> u64 {
        self.0.iter().map(|figure| figure.load(Relaxed)).sum()
    }

    #[inline]
    fn change(&self) {
        for figure in &self.0 {
            figure.store(figure.load(Relaxed) + 1, Relaxed);
        }
    }
}

/// What all locks are reduced to here.
trait Subject: Sync {
    fn read(&self, f: impl FnOnce() -> u64) -> u64;
    fn write(&self, owner: Owner, f: impl FnOnce());
}

struct Ours<L>(L);

impl<L: ReaderWriter> Subject for Ours<L> {
    #[inline]
    fn read(&self, f: impl FnOnce() -> u64) -> u64 {
        self.0.read(f)
    }

    #[inline]
    fn write(&self, owner: Owner, f: impl FnOnce()) {
        self.0.write(owner, f);
    }
}

impl Subject for parking_lot::RwLock<()> {
    #[inline]
    fn read(&self, f: impl FnOnce() -> u64) -> u64 {
        let _held = self.read();
        f()
    }

    #[inline]
    fn write(&self, _: Owner, f: impl FnOnce()) {
        let _held = self.write();
        f();
    }
}

/// A lock's name, and its round.
type Entrant = (&'static str, fn(Mix, usize, Duration) -> Round);

/// The lock that the others are rivals of.
const OURS: &str = "PreferReader";

const ENTRANTS: &[Entrant] = &[
    ("Portable", |mix, threads, time| {
        run_round(&Ours(Portable::new()), mix, threads, time)
    }),
    ("Native", |mix, threads, time| {
        run_round(&Ours(Native::new()), mix, threads, time)
    }),
    ("TwoMutex", |mix, threads, time| {
        run_round(&Ours(TwoMutex::new()), mix, threads, time)
    }),
    ("Morrison", |mix, threads, time| {
        run_round(&Ours(Morrison::new()), mix, threads, time)
    }),
    ("parking_lot", |mix, threads, time| {
        run_round(&parking_lot::RwLock::new(()), mix, threads, time)
    }),
    (OURS, |mix, threads, time| {
        run_round(&Ours(PreferReader::new()), mix, threads, time)
    }),
    ("fair", |mix, threads, time| {
        run_round(&Ours(PreferReader::fair()), mix, threads, time)
    }),
];

/// What came of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    per_second: f64,
    /// Measured where writes are rare: elsewhere the clock would be most of the work.
    longest_write: Duration,
}

/// A thread's part of a round.
struct Turns {
    began: Instant,
    ended: Instant,
    turns: u64,
    writes: u64,
    longest_write: Duration,
}

fn run_round(lock: &impl Subject, mix: Mix, threads: usize, time: Duration) -> Round {
    let figures = Figures::default();
    let start = Barrier::new(threads + 1);
    let stop = AtomicBool::new(false);
    let (took, parts) = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=threads as u64)
            .map(|number| {
                let (figures, start, stop) = (&figures, &start, &stop);
                scope.spawn(move || {
                    start.wait();
                    take_turns(lock, mix, number, figures, stop)
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(time);
        stop.store(true, Relaxed);
        let parts: Vec<Turns> = workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker doesn't panic"))
            .collect();
        // This thread may get its core late: the workers' clocks count.
        let began = parts.iter().map(|part| part.began).min();
        let ended = parts.iter().map(|part| part.ended).max();
        let took = began
            .zip(ended)
            .map_or(time, |(began, ended)| ended - began);
        (took, parts)
    });
    let writes: u64 = parts.iter().map(|part| part.writes).sum();
    assert_eq!(figures.look(), writes * 4, "two writers met inside");
    let turns: u64 = parts.iter().map(|part| part.turns).sum();
    let longest_write = parts.iter().map(|part| part.longest_write).max();
    Round {
        per_second: turns as f64 / took.as_secs_f64(),
        longest_write: longest_write.unwrap_or_default(),
    }
}

fn take_turns(
    lock: &impl Subject,
    mix: Mix,
    number: u64,
    figures: &Figures,
    stop: &AtomicBool,
) -> Turns {
    let owner = Owner::new(number);
    let mut random = fastrand::Rng::with_seed(number);
    let began = Instant::now();
    let mut part = Turns {
        began,
        ended: began,
        turns: 0,
        writes: 0,
        longest_write: Duration::ZERO,
    };
    let mut seen = 0u64;
    while !stop.load(Relaxed) {
        if !mix.writes(random.u64(..)) {
            seen = seen.wrapping_add(lock.read(|| figures.look()));
        } else {
            let began = (mix == Mix::RareWrites).then(Instant::now);
            lock.write(owner, || figures.change());
            part.writes += 1;
            if let Some(began) = began {
                part.longest_write = part.longest_write.max(began.elapsed());
            }
        }
        part.turns += 1;
    }
    std::hint::black_box(seen);
    part.ended = Instant::now();
    part
}

/// One lock under one mix with one number of threads.
#[derive(Clone, Debug)]
pub struct LockMeasurement {
    /// The lock's name.
    pub lock: &'static str,
    /// The mix.
    pub mix: Mix,
    /// Threads at a time.
    pub threads: usize,
    /// Turns a second: the median of the rounds.
    pub per_second: f64,
    /// The longest that a writer waited in any round; zero where that isn't measured.
    pub longest_write: Duration,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct LocksReport {
    /// One for each mix, number of threads and lock.
    pub measurements: Vec<LockMeasurement>,
}

/// Runs the plan.
pub fn run(plan: &LocksPlan) -> LocksReport {
    let mut progress = Progress::new(plan.progress);
    let mut report = LocksReport::default();
    let total = plan.mixes.len() * plan.threads.len() * plan.rounds * ENTRANTS.len();
    let mut done = 0;
    for &mix in &plan.mixes {
        for &threads in &plan.threads {
            let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); ENTRANTS.len()];
            for _ in 0..plan.rounds {
                for ((name, round), of_lock) in ENTRANTS.iter().zip(&mut rounds) {
                    progress.show(&format!(
                        "locks: {} of {total} rounds, {}, {threads} threads, {name}",
                        done + 1,
                        mix.name()
                    ));
                    of_lock.push(round(mix, threads, plan.duration));
                    done += 1;
                }
            }
            for ((lock, _), mut of_lock) in ENTRANTS.iter().zip(rounds) {
                of_lock.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
                let Some(median) = of_lock.get(of_lock.len() / 2) else {
                    continue;
                };
                let longest_write = of_lock.iter().map(|round| round.longest_write).max();
                report.measurements.push(LockMeasurement {
                    lock,
                    mix,
                    threads,
                    per_second: median.per_second,
                    longest_write: longest_write.unwrap_or_default(),
                });
            }
        }
    }
    progress.clear();
    report
}

impl LocksReport {
    fn of(&self, mix: Mix, threads: usize, lock: &str) -> Option<&LockMeasurement> {
        self.measurements
            .iter()
            .find(|m| m.mix == mix && m.threads == threads && m.lock == lock)
    }

    fn mixes(&self) -> Vec<Mix> {
        let measured = |mix: &Mix| self.measurements.iter().any(|m| m.mix == *mix);
        Mix::ALL.into_iter().filter(measured).collect()
    }

    fn threads(&self) -> Vec<usize> {
        let mut threads: Vec<usize> = self.measurements.iter().map(|m| m.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// `PreferReader`'s turns a second by the best rival's.
    pub fn ratio(&self, mix: Mix, threads: usize) -> Option<f64> {
        let ours = self.of(mix, threads, OURS)?.per_second;
        let rivals = ENTRANTS
            .iter()
            .filter(|(name, _)| *name != OURS && *name != "fair");
        let best = rivals
            .filter_map(|(name, _)| Some(self.of(mix, threads, name)?.per_second))
            .max_by(f64::total_cmp)?;
        Some(ours / best)
    }

    /// A picture of it, as SVG.
    pub fn picture(&self) -> String {
        let curve = |mix, name: &str| {
            let threads = self.threads().into_iter();
            let points: Vec<(f64, f64)> = threads
                .filter_map(|threads| {
                    Some((threads as f64, self.of(mix, threads, name)?.per_second))
                })
                .collect();
            Curve {
                name: name.to_owned(),
                line: points.clone(),
                dots: points,
                intervals: Vec::new(),
            }
        };
        let panels = self.mixes().into_iter().map(|mix| Panel {
            title: mix.name().to_owned(),
            curves: ENTRANTS.iter().map(|(name, _)| curve(mix, name)).collect(),
        });
        let picture = Picture {
            title: "Reader-writer locks: turns through the lock".to_owned(),
            x: "threads".to_owned(),
            y: "turns a second".to_owned(),
            x_scale: Scale::Stops,
            y_scale: Scale::Logarithmic,
            panels: panels.collect(),
            columns: 2,
        };
        standalone(&picture.svg())
    }
}

/// A line of the table: a name and a cell for each number of threads.
fn line(f: &mut fmt::Formatter<'_>, name: &str, cells: &[String]) -> fmt::Result {
    write!(f, "{name:<22}")?;
    for cell in cells {
        write!(f, "{cell:>9}")?;
    }
    writeln!(f)
}

impl fmt::Display for LocksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads();
        for mix in self.mixes() {
            let title = format!("{}, M/s", mix.name());
            let heads: Vec<String> = threads.iter().map(|n| format!("{n} thr")).collect();
            line(f, &title, &heads)?;
            for (name, _) in ENTRANTS {
                let cells: Vec<String> = threads
                    .iter()
                    .filter_map(|&n| {
                        Some(format!("{:.2}", self.of(mix, n, name)?.per_second / 1e6))
                    })
                    .collect();
                line(f, &format!("  {name}"), &cells)?;
            }
            let ratios: Vec<String> = threads
                .iter()
                .filter_map(|&n| Some(format!("×{:.2}", self.ratio(mix, n)?)))
                .collect();
            line(f, "  ours : best rival", &ratios)?;
            writeln!(f)?;
        }
        if self.mixes().contains(&Mix::RareWrites) {
            let heads: Vec<String> = threads.iter().map(|n| format!("{n} thr")).collect();
            line(f, "longest wait, ms", &heads)?;
            for (name, _) in ENTRANTS {
                let cells: Vec<String> = threads
                    .iter()
                    .filter_map(|&n| {
                        let waited = self.of(Mix::RareWrites, n, name)?.longest_write;
                        Some(format!("{:.2}", waited.as_secs_f64() * 1e3))
                    })
                    .collect();
                line(f, &format!("  {name}"), &cells)?;
            }
            writeln!(f, "  (of a writer, where 1 in 1,000 turns writes)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lock_is_measured_and_shown() {
        let plan = LocksPlan {
            threads: vec![1, 2],
            duration: Duration::from_millis(2),
            rounds: 1,
            progress: false,
            ..LocksPlan::default()
        };
        let report = run(&plan);
        assert_eq!(report.measurements.len(), 4 * 2 * ENTRANTS.len());
        assert!(report.measurements.iter().all(|m| m.per_second > 0.0));
        let (text, picture) = (report.to_string(), report.picture());
        for (name, _) in ENTRANTS {
            assert!(text.contains(name) && picture.contains(name), "{name}");
        }
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    }

    #[test]
    fn the_mix_is_what_it_says() {
        let mut random = fastrand::Rng::with_seed(1);
        for (mix, expected) in Mix::ALL.into_iter().zip([0, 100, 50_000, 100_000]) {
            let writes = (0..100_000).filter(|_| mix.writes(random.u64(..))).count();
            let spread = if expected % 100_000 == 0 { 0 } else { 1000 };
            assert!(writes.abs_diff(expected) <= spread, "{mix:?}: {writes}");
        }
    }
}
