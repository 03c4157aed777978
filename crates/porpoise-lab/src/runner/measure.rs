//! One run: warm up until throughput is stationary, then count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::stationary::Series;
use crate::experiment::WarmUp;
use crate::load::{self, Counted, Load, Running};
use crate::resources::{Usage, load_average};
use crate::{Error, Measured, MeasuredKind, Script};

/// Between two looks at the throughput while warming up.
const LOOK: Duration = Duration::from_millis(20);
/// What is told of, and kept.
const SECOND: Duration = Duration::from_secs(1);

/// How a run is done.
pub(super) struct RunPlan<'a> {
    pub load: Load<'a>,
    pub warm_up: WarmUp,
    pub duration: Duration,
    /// Transactions that each client does at least, however long it takes.
    pub transactions_min: u64,
    /// The server's process, if it is known and is not this one.
    pub server: Option<u32>,
    /// When somebody sets it, the run ends, and comes to nothing.
    pub stop: &'a AtomicBool,
}

/// What a run came to.
pub(super) enum Outcome {
    Measured(Box<Measured>),
    /// A client failed.
    Failed(porpoise_client::Error),
    /// Somebody asked to stop.
    Stopped,
}

/// Measures. `show` is told each second what is going on, and transactions a second.
pub(super) fn measure(
    plan: &RunPlan<'_>,
    mut show: impl FnMut(&str, f64),
) -> Result<Outcome, Error> {
    let load_average = load_average();
    let (seen, counted) = load::run(&plan.load, |running| {
        let mut measured = Measured {
            load_average,
            ..Measured::default()
        };
        let went_on = warm_up(plan, running, &mut measured, &mut show)
            && count(plan, running, &mut measured, &mut show);
        went_on.then_some(measured)
    })?;
    Ok(match (seen, counted) {
        (_, Err(error)) => Outcome::Failed(error),
        (None, Ok(_)) => Outcome::Stopped,
        (Some(measured), Ok(counted)) => {
            Outcome::Measured(Box::new(with(measured, counted, plan.load.script)))
        }
    })
}

fn with(measured: Measured, counted: Counted, script: &Script) -> Measured {
    let kinds = script.kinds().into_iter().zip(counted.kinds);
    let mut measured = Measured {
        transactions: counted.transactions,
        statements: counted.queries,
        conflicts: counted.conflicts.into_iter().collect(),
        latencies: counted.latencies,
        kinds: kinds
            .map(|(name, kind)| MeasuredKind {
                name,
                conflicts: kind.conflicts,
                latencies: kind.latencies,
            })
            .collect(),
        ..measured
    };
    if let Script::Of(scenario) = script {
        measured.figures = scenario.0.figures(&measured);
    }
    measured
}

/// Transactions a second between looks.
struct Rate {
    at: Instant,
    transactions: u64,
}

impl Rate {
    fn begin(running: &Running<'_>) -> Self {
        Self {
            at: Instant::now(),
            transactions: running.transactions(),
        }
    }

    /// Since the last look.
    fn look(&mut self, running: &Running<'_>) -> f64 {
        let now = Self::begin(running);
        let seconds = (now.at - self.at).as_secs_f64().max(1e-9);
        let rate = (now.transactions - self.transactions) as f64 / seconds;
        *self = now;
        rate
    }
}

/// False if a client failed, or somebody asked to stop.
fn warm_up(
    plan: &RunPlan<'_>,
    running: &Running<'_>,
    measured: &mut Measured,
    show: &mut impl FnMut(&str, f64),
) -> bool {
    let began = Instant::now();
    let mut series = Series::default();
    let mut rate = Rate::begin(running);
    let mut shown = Rate::begin(running);
    loop {
        let elapsed = began.elapsed();
        let is_stationary = series.is_stationary();
        if elapsed >= plan.warm_up.max || (elapsed >= plan.warm_up.min && is_stationary) {
            measured.is_stationary = Some(is_stationary);
            measured.warm_up_seconds = elapsed.as_secs_f64();
            return true;
        }
        if plan.stop.load(Ordering::Relaxed) || !running.wait(LOOK) {
            return false;
        }
        series.add(rate.look(running));
        if shown.at.elapsed() >= SECOND {
            show("warming up", shown.look(running));
        }
    }
}

/// False if a client failed, or somebody asked to stop.
fn count(
    plan: &RunPlan<'_>,
    running: &Running<'_>,
    measured: &mut Measured,
    show: &mut impl FnMut(&str, f64),
) -> bool {
    let usage = || {
        (
            plan.server.and_then(Usage::of),
            Usage::of(std::process::id()),
        )
    };
    let (server_before, client_before) = usage();
    running.begin_measuring();
    let began = Instant::now();
    let mut rate = Rate::begin(running);
    let (mut server_memory, mut client_memory) = (0, 0);
    let floor = Floor::begin(plan, running);
    while began.elapsed() < plan.duration || !floor.is_reached(running) {
        let left = plan.duration.saturating_sub(began.elapsed());
        // Behind its end, for those who haven't done their least, as long again.
        let part = if left.is_zero() {
            SECOND
        } else {
            left.min(SECOND)
        };
        if !wait(plan, running, part) {
            return false;
        }
        let per_second = rate.look(running);
        let at = (rate.at - began).as_secs_f64();
        measured.per_second.push((at, per_second));
        show("measuring", per_second);
        let resident = |pid| Usage::of(pid).map_or(0, |usage| usage.resident_bytes);
        server_memory = plan.server.map_or(0, resident).max(server_memory);
        client_memory = resident(std::process::id()).max(client_memory);
    }
    measured.seconds = began.elapsed().as_secs_f64();
    let (server, client) = usage();
    let used = |now: Option<Usage>, before: Option<Usage>, memory| {
        Some(Usage {
            resident_bytes: memory,
            ..now?.since(&before?)
        })
    };
    measured.server = used(server, server_before, server_memory);
    measured.client = used(client, client_before, client_memory).unwrap_or_default();
    true
}

/// What each thread has done when all its clients have done their least.
struct Floor(Vec<u64>);

impl Floor {
    fn begin(plan: &RunPlan<'_>, running: &Running<'_>) -> Self {
        let clients = plan.load.clients.div_ceil(plan.load.jobs) as u64;
        let least = |done: u64| done + plan.transactions_min * clients;
        let threads = running.transactions_of_threads().into_iter();
        Self(threads.map(least).collect())
    }

    fn is_reached(&self, running: &Running<'_>) -> bool {
        let done = running.transactions_of_threads();
        done.iter().zip(&self.0).all(|(done, least)| done >= least)
    }
}

/// Lets time pass, in parts, so that somebody who asks to stop doesn't wait.
fn wait(plan: &RunPlan<'_>, running: &Running<'_>, time: Duration) -> bool {
    let began = Instant::now();
    while let Some(left) = time
        .checked_sub(began.elapsed())
        .filter(|left| !left.is_zero())
    {
        if plan.stop.load(Ordering::Relaxed) || !running.wait(left.min(LOOK * 10)) {
            return false;
        }
    }
    true
}
