//! Blocks that other threads read ahead of a scan, where cores are idle.
//!
//! Most of what a scan of rows costs that no block has is to read leaves and to make blocks of them.
//! A scan that has come to some of these divides what is before it into **units** of neighbouring
//! leaves, and threads of the process take one each:
//!
//! ```text
//! keys     ──────────────────────────────────────────────────────────►
//!               unit          unit          unit          unit
//! who        scan's thread    thread 1      thread 2      nobody yet
//!            ▲ the scan       read          is reading    waits
//! ```
//!
//! The scan gets the blocks in the order of their keys, as if it had read them itself. Where the unit
//! that it wants is not taken yet, it reads it; where somebody else is reading it, it reads a later
//! one meanwhile.
//!
//! The threads run only where a core has nothing else to do ([`idle_threads`]). They may therefore stop
//! in the middle of a unit for as long as others compute: a scan waits for none of them for more than a
//! moment, reads the unit itself, and after a few such waits goes on alone.
//!
//! What a thread meets that is wrong, as a damaged page, it doesn't tell: the scan reads the same
//! rows again, and gets the error where it is.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::block::Block;
use crate::blocks::Wanted;
use crate::idle_threads::{self, Help};
use crate::leaves::{BoundaryKey, LeafSpans};
use crate::memtable::{BoundKey, is_past_high};
use crate::tree_snapshot::TreeSnapshot;
use crate::{Direction, Result, SpaceId};

/// How many leaves a unit has, fewer at the end of a branch: a third of a millisecond's work.
const LEAVES_OF_A_UNIT: usize = 32;

/// How many units each thread may be ahead of the scan.
const UNITS_AHEAD: usize = 3;

/// About how many bytes the blocks of a unit have, and the part of the cache that those may take which
/// the scan has not come to.
const UNIT_BYTES: usize = LEAVES_OF_A_UNIT * 5 * 1024;
const CACHE_PART: usize = 8;

/// With fewer units nothing is gained.
const UNITS_MIN: usize = 3;

/// How long a scan waits for a thread that has the unit which it wants, and how often before it goes
/// on alone.
const WAIT_MAX: Duration = Duration::from_millis(2);
const WAITS_MAX: u32 = 3;

/// So many units in a row that the cache had: there is nothing to read ahead.
const KEPT_UNITS_MAX: u32 = 4;

/// How many units are read that no scan has come to, of all scans of the process.
static UNITS_HELD: AtomicUsize = AtomicUsize::new(0);

/// A scan's units, from where it is on.
pub(crate) struct ScanAhead {
    scan: Arc<Scan>,
    /// Divides what is behind the last unit; `None` where there is no more.
    spans: Option<LeafSpans>,
    /// Where the last unit ends.
    end: BoundaryKey,
    /// The end of the scan.
    high: Bound<BoundKey>,
    units_max: usize,
    /// Blocks of the unit that the scan is in.
    blocks: VecDeque<Arc<Block>>,
    waits: u32,
    /// Units in a row that the cache had.
    kept_units: u32,
}

/// What a scan shares with those who read for it.
struct Scan {
    tree: Arc<TreeSnapshot>,
    space: SpaceId,
    units: Mutex<Units>,
    /// Notified when a unit was read.
    was_read: Condvar,
    is_over: AtomicBool,
    /// How many units may be held.
    held_max: usize,
}

#[derive(Default)]
struct Units {
    /// In the order of their keys.
    queue: VecDeque<Unit>,
    /// The number of the first one.
    first: u64,
}

struct Unit {
    low: BoundaryKey,
    /// `None`: it is the tree's last.
    high: Option<BoundaryKey>,
    state: UnitState,
}

enum UnitState {
    Waits,
    IsTaken,
    Read(ReadUnit),
}

/// The blocks of a unit, side by side. None if something was wrong.
#[derive(Default)]
struct ReadUnit {
    blocks: VecDeque<Arc<Block>>,
    /// Whether the cache had them all.
    was_kept: bool,
    /// Of a unit that was read ahead.
    held: Option<Held>,
}

/// One of the units that are read and that no scan has come to, of all scans of the process: those of
/// scans that nobody goes on with must not fill the cache.
struct Held;

impl Held {
    /// `None` if there are so many already.
    fn new(units_max: usize) -> Option<Held> {
        let is_held = UNITS_HELD.try_update(Ordering::Relaxed, Ordering::Relaxed, |units| {
            (units < units_max).then_some(units + 1)
        });
        is_held.ok().map(|_| Held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        UNITS_HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A unit that a thread has taken.
struct Task {
    number: u64,
    low: BoundaryKey,
    high: Option<BoundaryKey>,
}

impl ScanAhead {
    /// Reads ahead of an upward scan that has come to a key, by up to so many threads beside its own;
    /// `None` where there are none, no room for more blocks, or no leaves.
    pub fn begin(
        tree: &Arc<TreeSnapshot>,
        space: SpaceId,
        from: &[u8],
        high: Bound<BoundKey>,
        threads_max: usize,
    ) -> Option<ScanAhead> {
        let threads = idle_threads::threads_max().min(threads_max);
        let have_room = tree.cache().budget() / CACHE_PART / UNIT_BYTES;
        let units_max = have_room.min(1 + threads * UNITS_AHEAD);
        if threads == 0 || units_max < UNITS_MIN {
            return None;
        }
        // Who reads the rows meets the error, too.
        let spans = tree.spans_from(space, from).ok().flatten()?;
        Some(ScanAhead {
            scan: Arc::new(Scan {
                tree: Arc::clone(tree),
                space,
                units: Mutex::default(),
                was_read: Condvar::new(),
                is_over: AtomicBool::new(false),
                held_max: have_room,
            }),
            spans: Some(spans),
            end: BoundaryKey::from_slice(from),
            high,
            units_max,
            blocks: VecDeque::new(),
            waits: 0,
            kept_units: 0,
        })
    }

    /// Whether threads that had begun were not let go on: the cores have other things to do.
    pub fn has_waited(&self) -> bool {
        self.waits >= WAITS_MAX
    }

    /// Whether it is of no more use.
    pub fn is_over(&self) -> bool {
        self.has_waited()
            || self.kept_units > KEPT_UNITS_MAX
            || (self.spans.is_none() && self.blocks.is_empty() && self.scan.units.lock().is_empty())
    }

    /// The block that covers a key, where the last one ended or further on; `None` if the scan has to
    /// read it itself.
    pub fn block(&mut self, from: &[u8]) -> Option<Arc<Block>> {
        loop {
            while let Some(block) = self.blocks.pop_front() {
                if block.is_below_high(from) {
                    return (block.low() <= from).then_some(block);
                }
            }
            let unit = self.unit(from).filter(|unit| !unit.blocks.is_empty())?;
            self.kept_units = match unit.was_kept {
                true => self.kept_units + 1,
                false => 0,
            };
            self.blocks = unit.blocks;
        }
    }

    /// The unit that has the rows from a key on.
    fn unit(&mut self, from: &[u8]) -> Option<ReadUnit> {
        let scan = Arc::clone(&self.scan);
        scan.units.lock().drop_before(from);
        loop {
            self.add_units(from);
            let mut units = scan.units.lock();
            let first = units.queue.front_mut()?;
            if &first.low[..] > from {
                return None;
            }
            match std::mem::replace(&mut first.state, UnitState::IsTaken) {
                UnitState::Read(unit) => {
                    units.pop();
                    return Some(unit);
                }
                UnitState::Waits => {
                    let task = units.pop()?;
                    drop(units);
                    return Some(scan.read(&task));
                }
                UnitState::IsTaken => {}
            }
            if let Some(task) = units.take() {
                drop(units);
                scan.put(task.number, scan.read(&task));
                continue;
            }
            let wanted = units.first;
            let is_read = |units: &Units| {
                let first = units.queue.front();
                first.is_some_and(|unit| matches!(unit.state, UnitState::Read(_)))
            };
            scan.was_read
                .wait_while_for(&mut units, |units| !is_read(units), WAIT_MAX);
            if !is_read(&units) && units.first == wanted {
                self.waits += 1;
                let task = units.pop()?;
                drop(units);
                return Some(scan.read(&task));
            }
        }
    }

    /// Divides more of what is before the scan into units.
    fn add_units(&mut self, from: &[u8]) {
        let mut missing = self.units_max - self.scan.units.lock().queue.len().min(self.units_max);
        while missing > 0
            && let Some(spans) = &mut self.spans
        {
            let high = match self
                .scan
                .tree
                .end_of_span(self.scan.space, spans, LEAVES_OF_A_UNIT)
            {
                Ok(high) => high,
                Err(_) => {
                    self.spans = None;
                    return;
                }
            };
            let low = match &high {
                Some(high) => std::mem::replace(&mut self.end, high.clone()),
                None => std::mem::take(&mut self.end),
            };
            let is_last = high
                .as_deref()
                .is_none_or(|end| is_past_high(end, self.high.as_ref().map(|high| &high[..])));
            if is_last {
                self.spans = None;
            }
            if high.as_deref().is_some_and(|high| high <= from) {
                continue;
            }
            missing -= 1;
            let unit = Unit {
                low,
                high,
                state: UnitState::Waits,
            };
            self.scan.units.lock().queue.push_back(unit);
            idle_threads::offer(&self.scan);
        }
    }
}

impl Drop for ScanAhead {
    fn drop(&mut self) {
        self.scan.is_over.store(true, Ordering::Relaxed);
        self.scan.units.lock().queue.clear();
    }
}

impl Units {
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the first one away.
    fn pop(&mut self) -> Option<Task> {
        let unit = self.queue.pop_front()?;
        self.first += 1;
        Some(Task {
            number: self.first - 1,
            low: unit.low,
            high: unit.high,
        })
    }

    /// Forgets those whose keys are all below one.
    fn drop_before(&mut self, key: &[u8]) {
        let is_before = |unit: &Unit| unit.high.as_deref().is_some_and(|high| high <= key);
        while self.queue.front().is_some_and(is_before) {
            self.pop();
        }
    }

    /// Takes the first that nobody has taken.
    fn take(&mut self) -> Option<Task> {
        let waits = |unit: &Unit| matches!(unit.state, UnitState::Waits);
        let at = self.queue.iter().position(waits)?;
        let unit = &mut self.queue[at];
        unit.state = UnitState::IsTaken;
        Some(Task {
            number: self.first + at as u64,
            low: unit.low.clone(),
            high: unit.high.clone(),
        })
    }
}

impl Help for Scan {
    /// Takes a unit and reads it, if one waits.
    fn help(&self) {
        let Some(held) = Held::new(self.held_max) else {
            return;
        };
        let Some(task) = self.units.lock().take() else {
            return;
        };
        let mut unit = self.read(&task);
        unit.held = Some(held);
        self.put(task.number, unit);
    }
}

impl Scan {
    fn put(&self, number: u64, read: ReadUnit) {
        let mut units = self.units.lock();
        // The scan may not have waited for it.
        let at = number.checked_sub(units.first);
        if let Some(unit) = at.and_then(|at| units.queue.get_mut(at as usize)) {
            unit.state = UnitState::Read(read);
        }
        if at == Some(0) {
            self.was_read.notify_one();
        }
    }

    fn read(&self, task: &Task) -> ReadUnit {
        self.try_read(task).unwrap_or_default()
    }

    fn try_read(&self, task: &Task) -> Result<ReadUnit> {
        let mut unit = ReadUnit {
            blocks: VecDeque::new(),
            was_kept: true,
            held: None,
        };
        let mut key = task.low.clone();
        while !self.is_over.load(Ordering::Relaxed) {
            let wanted = Wanted {
                key: Some(&key),
                direction: Direction::Forward,
                is_scan: true,
                end: task.high.as_deref(),
                until: None,
            };
            let Some(found) = self.tree.block(self.space, wanted)? else {
                break;
            };
            unit.was_kept &= found.was_kept;
            let end = found.block.high().map(BoundaryKey::from_slice);
            unit.blocks.push_back(found.block);
            match end {
                Some(end) if task.high.as_ref().is_none_or(|high| end < *high) => key = end,
                _ => break,
            }
        }
        Ok(unit)
    }
}
