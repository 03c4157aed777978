//! How fast a checkpoint goes, and how fast commits may go meanwhile.
//!
//! A checkpoint that goes as fast as it can takes a core and the disk from those that commit, for
//! as long as it lasts, and then leaves them alone: throughput goes up and down. One that is too
//! slow lets versions pile up in memory, until commits have to wait. So the two watch each other:
//!
//! ```text
//! fill of the newest memtable   0 ────────────────────────► limit ─────────────► 2 × limit
//! the checkpoint                puts rows into pages        writes the pages
//!                               as the fill grows           at full speed
//! a commit                                    sleeps while the fill is further than the
//!                                             checkpoint, by some margin: a little longer,
//!                                             the further it is
//! ```
//!
//! All rows are to be in pages when there is as much time left as the last checkpoint took for the
//! rest. Whoever waits for the checkpoint itself, to make another or to close the store, makes it go
//! at full speed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::options::Background;
use crate::store::Shared;

/// Progress is counted in these.
const WHOLE: u64 = 1000;
/// What part of a checkpoint is done when all rows are in the tree's pages. The rest is to write the
/// pages and to refresh blocks.
const INSERTED: u64 = 600;
const WRITTEN: u64 = 900;
/// So long a checkpoint takes at most where it doesn't have to.
const TIME_MAX: Duration = Duration::from_secs(6);
/// At which fill of the newest memtable, in thousandths of the limit, a checkpoint is to be done.
const DONE_AT: u64 = 850;
const SLEEP: Duration = Duration::from_millis(2);
/// Rows between two looks at how far others are.
const ROWS_A_STEP: u64 = 128;

/// How far the checkpoint under way has come.
#[derive(Default)]
pub(crate) struct Pace {
    progress: AtomicU32,
    waiting: AtomicU32,
    /// The newest memtable's fill when all rows were in pages.
    inserted_at: AtomicU32,
    /// How much it was filled from there to the end of the last checkpoint.
    filled_by_rest: AtomicU32,
}

impl Pace {
    /// The checkpoint under way must not sleep while this lives: somebody waits for it.
    pub fn hurry(&self) -> Hurry<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Hurry(self)
    }

    pub fn begin(&self) {
        self.note(0);
    }

    /// All rows are in the tree's pages, with the newest memtable filled so far.
    pub fn note_inserted(&self, fill: u64) {
        self.inserted_at.store(fill as u32, Ordering::Relaxed);
        self.note(INSERTED);
    }

    /// The tree is on disk.
    pub fn note_written(&self) {
        self.note(WRITTEN);
    }

    /// Blocks are refreshed, too.
    pub fn note_done(&self, fill: u64) {
        let inserted_at = u64::from(self.inserted_at.load(Ordering::Relaxed));
        let by_rest = fill.saturating_sub(inserted_at) as u32;
        self.filled_by_rest.store(by_rest, Ordering::Relaxed);
    }

    /// At which fill all rows are to be in pages.
    fn insert_by(&self) -> u64 {
        const EARLIEST: u64 = 200;
        let rest = u64::from(self.filled_by_rest.load(Ordering::Relaxed));
        DONE_AT.saturating_sub(rest).max(EARLIEST)
    }

    fn note(&self, progress: u64) {
        self.progress.store(progress as u32, Ordering::Relaxed);
    }

    /// How long a commit is to sleep, if the newest memtable is filled so far, in thousandths of
    /// the limit.
    pub fn delay(&self, fill: u64) -> Option<Duration> {
        /// How far commits may be ahead.
        const MARGIN: u64 = 700;
        const DELAY_MAX: Duration = Duration::from_millis(20);
        let progress = u64::from(self.progress.load(Ordering::Relaxed));
        let excess = fill.checked_sub(MARGIN + progress * 13 / 10)?;
        let delay = Duration::from_micros(50 + excess * excess / 100);
        (excess > 0).then_some(delay.min(DELAY_MAX))
    }
}

/// Somebody waits for the checkpoint.
pub(crate) struct Hurry<'a>(&'a Pace);

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The steps of a checkpoint that puts rows into the tree.
pub(super) struct Steps<'a> {
    shared: &'a Shared,
    rows: u64,
    done: u64,
    began: Instant,
}

impl<'a> Steps<'a> {
    /// For so many rows.
    pub fn of(shared: &'a Shared, rows: u64) -> Steps<'a> {
        shared.pace.begin();
        Steps {
            shared,
            rows: rows.max(1),
            done: 0,
            began: Instant::now(),
        }
    }

    /// One row is done.
    #[inline]
    pub fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(ROWS_A_STEP) {
            self.keep_pace();
        }
    }

    fn keep_pace(&self) {
        let progress = (self.done * INSERTED / self.rows).min(INSERTED);
        self.shared.pace.note(progress);
        while self.may_sleep(progress) {
            std::thread::sleep(SLEEP);
        }
    }

    fn may_sleep(&self, progress: u64) -> bool {
        let shared = self.shared;
        let is_ahead = || progress * shared.pace.insert_by() > shared.fill_of_newest() * INSERTED;
        shared.background == Background::Threads
            && !shared.is_stopping()
            && shared.pace.waiting.load(Ordering::Acquire) == 0
            && is_ahead()
            && self.began.elapsed() < TIME_MAX * progress as u32 / WHOLE as u32
    }
}
