//! How a run goes, as whoever waits for it sees it: statements, time, memory.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::asker::Counts;
use super::findings::Findings;
use super::reply::Fault;
use super::subject::Verdict;
use super::{FuzzPlan, WayReport};
use crate::Way;
use crate::progress::Progress;
use crate::report::grouped;
use crate::resources::Memory;

/// Memory may grow so much beside what caches take: allocators keep some of what they get.
const GROWTH_BYTES: u64 = 64 << 20;
/// Looks that tell whether it grows: in fewer seconds caches aren't full.
const GROWTH_LOOKS: usize = 30;

pub(super) struct Course<'p> {
    plan: &'p FuzzPlan,
    way: Way,
    began: Instant,
    progress: RefCell<Progress>,
    next_look: Instant,
    /// Of the rounds before this one, each with a server of its own.
    before: Counts,
    now: Counts,
    /// Statements at the end of each minute.
    minutes: Vec<u64>,
    /// Resident bytes at each look, a look a second.
    memory: Vec<u64>,
    peak_bytes: u64,
}

impl<'p> Course<'p> {
    pub(super) fn new(plan: &'p FuzzPlan, way: Way) -> Self {
        let began = Instant::now();
        Self {
            plan,
            way,
            began,
            progress: RefCell::new(Progress::new(plan.progress)),
            next_look: began,
            before: Counts::default(),
            now: Counts::default(),
            minutes: Vec::new(),
            memory: Vec::new(),
            peak_bytes: 0,
        }
    }

    /// Whether somebody has had enough.
    pub(super) fn is_ended(&self) -> bool {
        self.plan.stop.load(Relaxed)
    }

    /// Whether time is up, or somebody has had enough.
    pub(super) fn is_over(&self) -> bool {
        let is_late = |limit| self.began.elapsed() >= limit;
        self.is_ended() || self.plan.limit.is_some_and(is_late)
    }

    /// Looks at a server that is asked: at its memory always, at the rest once a second.
    pub(super) fn look(
        &mut self,
        pid: Option<u32>,
        counts: Counts,
        findings: &Findings<'_>,
    ) -> Verdict {
        self.now = counts;
        let (memory, verdict) = self.memory_of(pid);
        if !matches!(verdict, Verdict::GoOn) {
            return verdict;
        }
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + Duration::from_secs(1);
            let asked = self.asked();
            let seconds = (now - self.began).as_secs_f64();
            if seconds >= 60.0 * (self.minutes.len() + 1) as f64 {
                self.minutes.push(asked);
            }
            self.memory
                .extend(memory.map(|memory| memory.resident_bytes));
            self.progress.borrow_mut().show(&format!(
                "{}: {} statements, {}/s, {} findings",
                self.way,
                grouped(asked),
                grouped((asked as f64 / seconds.max(0.001)) as u64),
                findings.count()
            ));
        }
        match self.is_over() {
            true => Verdict::Stop,
            false => Verdict::GoOn,
        }
    }

    /// Looks at a server that is asked one statement.
    pub(super) fn look_aside(&mut self, pid: Option<u32>) -> Verdict {
        self.memory_of(pid).1
    }

    fn memory_of(&mut self, pid: Option<u32>) -> (Option<Memory>, Verdict) {
        let memory = pid.and_then(Memory::of);
        let Some(seen) = memory else {
            return (None, Verdict::GoOn);
        };
        self.peak_bytes = self.peak_bytes.max(seen.peak_bytes);
        let is_too_much = seen.resident_bytes > self.plan.memory_max_bytes;
        let verdict = match is_too_much {
            true => Verdict::End(Fault::Memory(format!(
                "{} MiB of the {} MiB that it may",
                seen.resident_bytes >> 20,
                self.plan.memory_max_bytes >> 20
            ))),
            false => Verdict::GoOn,
        };
        (memory, verdict)
    }

    /// A server has been asked, the next one begins anew.
    pub(super) fn add(&mut self, counts: Counts) {
        self.before.asked += counts.asked;
        self.before.refused += counts.refused;
        self.now = Counts::default();
    }

    /// Tells what is done beside asking.
    pub(super) fn tell(&self, text: &str) {
        self.progress.borrow_mut().show(text);
    }

    fn asked(&self) -> u64 {
        self.before.asked + self.now.asked
    }

    pub(super) fn report(&self) -> WayReport {
        self.progress.borrow_mut().clear();
        let mut before = 0;
        let minutes = self.minutes.iter().map(|&asked| {
            let own = asked.saturating_sub(before);
            before = asked;
            own as f64 / 60.0
        });
        let minutes = minutes.collect();
        let (memory_bytes, has_grown) = growth(&self.memory);
        WayReport {
            way: self.way,
            statements: self.asked(),
            refused: self.before.refused,
            duration: self.began.elapsed(),
            minutes,
            memory_bytes,
            peak_bytes: self.peak_bytes,
            has_grown,
        }
    }
}

/// Memory when it was warm and at the end; and whether it grew: caches fill in the first half of a
/// run that takes a while.
fn growth(memory: &[u64]) -> (Option<(u64, u64)>, bool) {
    let half = &memory[memory.len() / 2..];
    let (head, tail) = half.split_at(half.len() / 2);
    let (Some(&before), Some(&after)) = (head.iter().max(), tail.iter().min()) else {
        return (None, false);
    };
    (
        Some((before, after)),
        memory.len() >= GROWTH_LOOKS && after > before + before / 10 + GROWTH_BYTES,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_fills_caches_has_not_grown_and_what_goes_on_growing_has() {
        let mib = |numbers: &[u64], looks: usize| {
            numbers
                .iter()
                .flat_map(|number| std::iter::repeat_n(number << 20, looks))
                .collect::<Vec<u64>>()
        };
        let filling = [50, 200, 300, 310, 310, 311, 312, 312];
        let growing = [50, 200, 300, 400, 600, 700, 900, 1000];
        assert_eq!(growth(&[]), (None, false));
        assert!(!growth(&mib(&filling, 10)).1);
        assert!(growth(&mib(&growing, 10)).1);
        // Eight seconds don't tell.
        assert!(!growth(&mib(&growing, 1)).1);
    }
}
