//! Scans: rows of a table, read and locked.

use std::collections::VecDeque;
use std::ops::Bound;
use std::time::{Duration, Instant};

use porpoise_catalog::{Index, IndexKind, index_entry};
use porpoise_core::error::{Error, Result};
use porpoise_expr::{EvalContext, SlotId};
use porpoise_planner::key_range::{self, Bounds};
use porpoise_planner::plan::{Access, OnLocked, RowLock, Scan, SlotLayout, Taken};
use porpoise_storage::{Cursor, Direction, LockError, LockMode, Locked, Rows, SpaceId, Wait};
use porpoise_types::KeyBuf;
use smallvec::SmallVec;

use super::leaps::Leaps;
use super::row_keys::RowKeys;
use super::{Operator, all_true};
use crate::batch::{
    self, BYTES_MAX, Batch, Filter, FilterWork, ROWS_MAX, RawRows, RowOf, Tries, Units, load_row,
};
use crate::{Exec, Row};

/// Reads a table, by whatever access path the plan chose.
///
/// A locking scan reads what is newest, locks each row that passes the filter, and looks again at
/// what it locked: another transaction may have changed it while this one waited.
///
/// Where it looks for single rows, each by a whole unique key, it also locks the keys that it
/// doesn't find: no other transaction inserts them before this one ends. The lock is on the key in
/// the index that was looked in, where [`insert_row`](Exec::insert_row) asks for it. At READ
/// COMMITTED such locks are given back at once; the look-up has only waited for whoever was
/// inserting the key.
pub(super) struct ScanOperator<'p> {
    scan: &'p Scan,
    /// The index whose whole keys are looked up one by one.
    looks_up: Option<&'p Index>,
    /// Keys still to be looked up, the next one last.
    points: SmallVec<[KeyBuf; 1]>,
    bounds: SmallVec<[Bounds; 1]>,
    at: usize,
    cursor: Option<Box<Cursor>>,
    /// Where cursors read.
    entries: Entries,
    /// Of an index merge: the rows' keys.
    keys: Option<Box<RowKeys>>,
    /// Of a skip scan: the groups that make the bounds.
    leaps: Option<Box<(Leaps<'p>, End)>>,
    /// Of the row that an index's entry leads to.
    primary_key: KeyBuf,
    /// How often it was opened, how many rows it has read since, and how many it has yielded.
    opened: u64,
    read: u64,
    yielded: u64,
    /// How many rows it had read when it was last opened, and when its cursor was.
    read_before: u64,
    read_before_cursor: u64,
    /// Rows that were read ahead of those that were asked for.
    ahead: Option<Box<ReadAhead<'p>>>,
    /// Of single look-ups, from the second opening on.
    last: Option<Box<LastFound>>,
}

/// Each look-up of a single row makes one, and small ones are made fast.
const _: () = assert!(size_of::<ScanOperator<'_>>() <= 512);

/// The key that was looked up last, and its row: what a join looks up comes in the other side's order,
/// where equal keys are often neighbours.
#[derive(Default)]
struct LastFound {
    key: KeyBuf,
    row: Vec<u8>,
    is_found: bool,
}

/// A batch of rows: those that have not been yielded yet, and how the next one is read.
struct ReadAhead<'p> {
    /// `None`: they can't be computed for a batch.
    filter: Option<Filter<'p>>,
    /// Loops compute a part of the filter.
    has_loops: bool,
    rows: Rows,
    /// Which rows are to be yielded.
    numbers: Vec<u32>,
    /// How many of these were.
    at: usize,
    /// How many were before the rest was handed out as a batch.
    at_batch: usize,
    /// They have passed the filter. Otherwise each is to be looked at.
    is_filtered: bool,
    /// How many rows of the batch count as examined.
    examined: usize,
    /// How many rows the next batch is to have.
    count: usize,
    tries: Tries,
    /// Rows that somebody took before the conditions were looked at, and put back.
    put_back: VecDeque<Rows>,
    /// Somebody has rows that come before those of the cursor.
    is_lent: bool,
    /// What comes behind those that were put back.
    error: Option<Error>,
    /// How long the conditions have taken, of so many rows.
    filtering: (Duration, u32),
    /// Other threads look at the conditions, too. `None` while that goes on, and from where somebody has
    /// taken rows before they were looked at: it gives them to others itself.
    units: Option<Units<FilterWork>>,
    /// What has come of a unit: batches, and which of their rows have passed.
    filtered: VecDeque<(Rows, Vec<u32>)>,
}

/// A scan is a large one once it has read as many times the rows as it reads one by one.
const LARGE_TIMES: u64 = 64;

/// Conditions that take less of a row are not worth another thread.
const DIVIDED_MIN: Duration = Duration::from_nanos(20);

/// So many rows the first batch has. Each one has more than the last, so that little is read in vain
/// where not all rows are asked for.
const FIRST_BATCH_ROWS: usize = 128;

/// Of longer rows no copy is kept.
const LAST_ROW_BYTES_MAX: usize = 1024;

/// What the entries are that a cursor reads.
#[derive(Clone, Copy, Debug)]
enum Entries {
    /// The table's rows.
    Rows(SpaceId),
    /// A secondary index's, which hold all that is read.
    Covering(SpaceId),
    /// A secondary index's, which lead to rows.
    Leading(SpaceId),
}

/// Where a skip scan reads the current group.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// So many of the bounds are read forward, the others backward.
    forward: usize,
    /// One entry of each end is wanted, not all.
    single: bool,
    /// The entry by which the group was found is wanted next.
    takes_entry: bool,
}

/// What became of a row that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    Yes,
    /// The filter, or somebody's lock that is to be skipped, says no.
    No,
    /// It was changed or deleted before it was locked, and is not wanted any more.
    Changed,
}

impl<'p> ScanOperator<'p> {
    pub(super) fn new(scan: &'p Scan) -> ScanOperator<'p> {
        let looks_up = match &scan.access {
            Access::Point { index, .. } => Some(&scan.table.indexes[*index]),
            Access::Index { index, ranges, .. } if scan.lock != RowLock::None => {
                let index = &scan.table.indexes[*index];
                ranges
                    .iter()
                    .all(|range| range.is_point(index))
                    .then_some(index)
            }
            _ => None,
        };
        let entries = match scan.access.single_index() {
            Some((index, covering)) if index_space(scan, index) != scan.table.space => {
                let space = index_space(scan, index);
                match covering {
                    true => Entries::Covering(space),
                    false => Entries::Leading(space),
                }
            }
            _ => Entries::Rows(scan.table.space),
        };
        ScanOperator {
            scan,
            looks_up,
            points: SmallVec::new(),
            bounds: SmallVec::new(),
            at: 0,
            cursor: None,
            entries,
            keys: None,
            leaps: None,
            primary_key: KeyBuf::new(),
            opened: 0,
            read: 0,
            yielded: 0,
            read_before: 0,
            read_before_cursor: 0,
            ahead: None,
            last: None,
        }
    }

    /// Whether the access path has rows in batches: in order, without a look-up of each, and without
    /// locks.
    fn is_in_batches(&self) -> bool {
        let scan = self.scan;
        self.looks_up.is_none()
            && scan.lock == RowLock::None
            && matches!(scan.access, Access::Full | Access::Index { .. })
            && !matches!(self.entries, Entries::Leading(_))
    }

    /// Whether the rows from here on are read in batches: enough were read one by one.
    #[inline]
    fn reads_ahead(&mut self, exec: &mut Exec<'_>) -> bool {
        self.read - self.read_before >= exec.session.batch_scan_min_rows
            && self.is_in_batches()
            && self.ahead(exec).filter.is_some()
    }

    fn ahead(&mut self, exec: &mut Exec<'_>) -> &mut ReadAhead<'p> {
        let scan = self.scan;
        self.ahead.get_or_insert_with(|| {
            let filter = Filter::new(exec, scan.slot, &scan.filter);
            Box::new(ReadAhead {
                has_loops: filter.as_ref().is_some_and(Filter::has_loops),
                filter,
                rows: Rows::default(),
                numbers: Vec::new(),
                at: 0,
                at_batch: 0,
                is_filtered: false,
                examined: 0,
                count: FIRST_BATCH_ROWS,
                tries: Tries::default(),
                put_back: VecDeque::new(),
                is_lent: false,
                error: None,
                filtering: (Duration::ZERO, 0),
                units: Some(Units::new()),
                filtered: VecDeque::new(),
            })
        })
    }

    /// Whether what comes next isn't read by the cursor.
    fn is_held_back(&self) -> bool {
        let is_held_back = |ahead: &ReadAhead<'_>| {
            ahead.is_lent
                || !ahead.put_back.is_empty()
                || !ahead.filtered.is_empty()
                || ahead.error.is_some()
        };
        self.ahead.as_deref().is_some_and(is_held_back)
    }

    /// Whether it has given rows to other threads that have not been yielded yet.
    fn is_dividing(&self) -> bool {
        let units = self.ahead.as_deref().and_then(|ahead| ahead.units.as_ref());
        units.is_some_and(Units::are_left)
    }

    /// The rows of the next batch, if there are any: those that were put back first.
    fn fill_batch(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if let Some(ahead) = self.ahead.as_deref_mut() {
            if let Some(rows) = ahead.put_back.pop_front() {
                ahead.rows = rows;
                return Ok(true);
            }
            if let Some(error) = ahead.error.take() {
                return Err(error);
            }
            if ahead.is_lent {
                return Ok(false);
            }
        }
        let mut rows = match self.ahead.as_deref_mut() {
            Some(ahead) => std::mem::take(&mut ahead.rows),
            None => return Ok(false),
        };
        let is_read = self.read_many(exec, &mut rows);
        if let Some(ahead) = self.ahead.as_deref_mut() {
            ahead.rows = rows;
        }
        is_read
    }

    /// Replaces `rows` by the cursor's next ones; `false` if it has none many at a time.
    fn read_many(&mut self, exec: &mut Exec<'_>, rows: &mut Rows) -> Result<bool> {
        if self.cursor.is_none() && !self.open_cursor(exec)? {
            return Ok(false);
        }
        let (Some(cursor), Some(ahead)) = (&mut self.cursor, self.ahead.as_deref_mut()) else {
            return Ok(false);
        };
        cursor.next_rows(rows, ahead.count, BYTES_MAX)?;
        if rows.is_empty() {
            return Ok(false);
        }
        ahead.count = (2 * ahead.count).min(ROWS_MAX);
        self.read += rows.len() as u64;
        Ok(true)
    }

    /// Reads the next batch; `false` where there is none, and the next row is to be read alone.
    fn read_batch(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(ahead) = self.ahead.as_deref_mut() else {
            return Ok(false);
        };
        exec.check_interrupt()?;
        ahead.numbers.clear();
        (ahead.at, ahead.examined) = (0, 0);
        if self.next_filtered(exec)? {
            return Ok(true);
        }
        if !self.fill_batch(exec)? {
            if let Some(ahead) = self.ahead.as_deref_mut() {
                ahead.rows.clear();
            }
            return Ok(false);
        }
        let entries = self.entries;
        let Some(ahead) = self.ahead.as_deref_mut() else {
            return Ok(false);
        };
        ahead.numbers.extend(0..ahead.rows.len() as u32);
        ahead.is_filtered = match &ahead.filter {
            Some(filter) if !self.scan.filter.is_empty() => {
                let mut rows = Vec::new();
                append_rows(&ahead.rows, entries, &mut rows);
                let layouts = exec.layouts;
                let layout = &layouts[self.scan.slot.0 as usize].layout;
                let begun = Instant::now();
                let is_filtered = filter.run(exec, layout, &mut rows, &mut ahead.numbers)?;
                let (time, rows) = &mut ahead.filtering;
                *time += begun.elapsed();
                *rows = rows.saturating_add(ahead.rows.len() as u32);
                is_filtered
            }
            Some(_) => true,
            None => false,
        };
        if !ahead.is_filtered {
            ahead.numbers.clear();
            ahead.numbers.extend(0..ahead.rows.len() as u32);
        }
        if !ahead.tries.note(ahead.is_filtered) {
            ahead.filter = None;
        }
        Ok(true)
    }

    /// The next batch of those that a unit has left, or that the next unit has, whose conditions other
    /// threads may have looked at; `false` where there is none, and the next batch is to be filtered.
    fn next_filtered(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(ahead) = self.ahead.as_deref_mut() else {
            return Ok(false);
        };
        if ahead.filtered.is_empty()
            && ahead.is_divided(exec.session.batch_scan_min_rows == 0)
            && let Some(mut units) = ahead.units.take()
        {
            let next = units.next(exec, self, FilterWork::new);
            let Some(ahead) = self.ahead.as_deref_mut() else {
                return Ok(false);
            };
            ahead.units = Some(units);
            if let Some(unit) = next? {
                let numbers = unit.computed()?.clone();
                ahead
                    .filtered
                    .extend(unit.into_rows().into_iter().zip(numbers));
            }
        }
        let Some(ahead) = self.ahead.as_deref_mut() else {
            return Ok(false);
        };
        let Some((rows, numbers)) = ahead.filtered.pop_front() else {
            return Ok(false);
        };
        (ahead.rows, ahead.numbers, ahead.is_filtered) = (rows, numbers, true);
        Ok(true)
    }

    /// Yields the next row that was read ahead, if there is one; `None`: there is none left.
    fn next_ahead(&mut self, exec: &mut Exec<'_>) -> Result<Option<()>> {
        while let Some(ahead) = self.ahead.as_deref_mut() {
            let Some(&number) = ahead.numbers.get(ahead.at) else {
                if ahead.is_filtered {
                    ahead.examine(exec, ahead.rows.len());
                }
                return Ok(None);
            };
            ahead.at += 1;
            let value = row_of_entry(self.entries, ahead.rows.value(number as usize));
            load_row(exec, self.scan.slot, value);
            if ahead.is_filtered {
                ahead.examine(exec, number as usize + 1);
                self.yielded += 1;
                return Ok(Some(()));
            }
            exec.check_interrupt()?;
            if self.accept(exec)? == Accepted::Yes {
                self.yielded += 1;
                return Ok(Some(()));
            }
        }
        Ok(None)
    }

    /// Tells the statement if what the scan read has little to do with what the planner expected.
    fn compare_with_estimate(&self, exec: &mut Exec<'_>) {
        /// Planning a statement anew takes as long as reading a part of so many rows.
        const READ_MIN: u64 = 5000;
        const TIMES: f64 = 10.0;
        if self.read < READ_MIN {
            return;
        }
        let (read, yielded) = (self.read as f64, self.yielded as f64);
        let expected = self.scan.rows_estimate * self.opened as f64;
        let finds_few = yielded * TIMES < read * self.scan.filtered;
        if read > expected * TIMES || (finds_few && !self.scan.possible_keys.is_empty()) {
            exec.session.statement.is_misplanned = true;
        }
    }

    fn latest(&self) -> bool {
        self.scan.lock != RowLock::None
    }

    /// Looks a row up by its primary key, into the slot.
    fn fetch(&self, exec: &mut Exec<'_>, primary_key: &[u8]) -> Result<bool> {
        fetch(self.scan, exec, primary_key)
    }

    /// Filters, locks and checks again the row in the slot.
    fn accept(&self, exec: &mut Exec<'_>) -> Result<Accepted> {
        exec.session.statement.rows_examined += 1;
        if !all_true(&self.scan.filter, exec)? {
            return Ok(Accepted::No);
        }
        let (mode, on_locked) = match self.scan.lock {
            RowLock::None => return Ok(Accepted::Yes),
            RowLock::Shared(on_locked) => (LockMode::Shared, on_locked),
            RowLock::Exclusive(on_locked) => (LockMode::Exclusive, on_locked),
        };
        let slot = self.scan.slot.0 as usize;
        let key = KeyBuf::from_slice(&exec.frame.slots[slot].key);
        let space = self.scan.table.space;
        let locked = match lock(exec, space, &key, mode, on_locked)? {
            None => return Ok(Accepted::No),
            Some(Locked::AlreadyHeld) => return Ok(Accepted::Yes),
            Some(locked) => locked,
        };
        if !self.fetch(exec, &key)? {
            if self.looks_up.is_some() && locked == Locked::Granted {
                exec.transaction()?.unlock(space, &key);
            }
            return Ok(Accepted::Changed);
        }
        Ok(if all_true(&self.scan.filter, exec)? {
            Accepted::Yes
        } else {
            Accepted::Changed
        })
    }

    /// Looks up the row that has a whole unique key.
    fn look_up(&mut self, exec: &mut Exec<'_>, index: &Index, key: &[u8]) -> Result<bool> {
        if !self.latest() {
            let is_found = match self.opened {
                ..=1 => self.find(exec, index, key)?,
                _ => self.find_again(exec, index, key)?,
            };
            return Ok(is_found && self.accept(exec)? == Accepted::Yes);
        }
        loop {
            if !self.find(exec, index, key)? {
                if self.is_absent(exec, index, key)? {
                    return Ok(false);
                }
                continue;
            }
            match self.accept(exec)? {
                Accepted::Yes => return Ok(true),
                // The index may have told of a key that the row had no more when it was read.
                Accepted::No
                    if index.kind == IndexKind::Primary
                        || self.is_still_of(exec, index, key)? =>
                {
                    return Ok(false);
                }
                Accepted::No | Accepted::Changed => {}
            }
        }
    }

    /// As [`find`](Self::find), without looking for the key that was looked up last.
    fn find_again(&mut self, exec: &mut Exec<'_>, index: &Index, key: &[u8]) -> Result<bool> {
        if !exec.view.is_unchanging() {
            self.last = None;
            return self.find(exec, index, key);
        }
        let slot = self.scan.slot.0 as usize;
        if let Some(last) = &self.last
            && last.key.as_slice() == key
        {
            if last.is_found {
                exec.frame.slots[slot].set(&last.row);
            }
            return Ok(last.is_found);
        }
        let mut last = self.last.take().unwrap_or_default();
        last.is_found = self.find(exec, index, key)?;
        let row = &exec.frame.slots[slot].bytes;
        if row.len() <= LAST_ROW_BYTES_MAX {
            last.key.clear();
            last.key.extend_from_slice(key);
            last.row.clear();
            last.row.extend_from_slice(row);
        }
        let is_found = last.is_found;
        self.last = (row.len() <= LAST_ROW_BYTES_MAX).then_some(last);
        Ok(is_found)
    }

    /// Reads the row that has a key, into the slot.
    fn find(&mut self, exec: &mut Exec<'_>, index: &Index, key: &[u8]) -> Result<bool> {
        if index.kind == IndexKind::Primary {
            return self.fetch(exec, key);
        }
        let latest = self.latest();
        let row = &mut exec.frame.slots[self.scan.slot.0 as usize];
        let primary_key = &mut self.primary_key;
        primary_key.clear();
        let compares = exec.view.is_uncommitted();
        let mut held = Vec::new();
        let found = Exec::read(&exec.view, index.space, key, latest, |entry| {
            let (of_row, columns) = index_entry::split(entry);
            primary_key.extend_from_slice(of_row);
            row.set(columns);
            if compares {
                held.extend_from_slice(entry);
            }
        })?;
        if found.is_none() {
            return Ok(false);
        }
        if matches!(self.scan.access, Access::Point { covering: true, .. }) {
            return Ok(true);
        }
        let primary_key = std::mem::take(&mut self.primary_key);
        let found = self.fetch(exec, &primary_key);
        let entry = (key, held.as_slice());
        let is_changed = matches!(found, Ok(true))
            && compares
            && !is_entrys_row(self.scan, exec, &primary_key, entry);
        self.primary_key = primary_key;
        Ok(found? && !is_changed)
    }

    /// Whether a key of a secondary index still leads to the row that it led to.
    fn is_still_of(&self, exec: &Exec<'_>, index: &Index, key: &[u8]) -> Result<bool> {
        let same = Exec::read(&exec.view, index.space, key, true, |entry| {
            index_entry::split(entry).0 == self.primary_key.as_slice()
        })?;
        Ok(same == Some(true))
    }

    /// Locks a key that was not found; `false` if it has to be looked up again, as somebody was
    /// just inserting it.
    fn is_absent(&self, exec: &mut Exec<'_>, index: &Index, key: &[u8]) -> Result<bool> {
        let space = index.space;
        let (mode, on_locked) = match self.scan.lock {
            RowLock::None => return Ok(true),
            RowLock::Shared(on_locked) => (LockMode::Shared, on_locked),
            RowLock::Exclusive(on_locked) => (LockMode::Exclusive, on_locked),
        };
        let is_there = |exec: &Exec<'_>| -> Result<bool> {
            Ok(Exec::read(&exec.view, space, key, true, |_| ())?.is_some())
        };
        match exec
            .transaction()?
            .lock(space, key, LockMode::Absent, Wait::NoWait)
        {
            Ok(Locked::Granted) => {
                exec.charge_changes()?;
                let is_there = is_there(exec)?;
                if is_there || !exec.session.statement.keeps_absent_locks {
                    exec.transaction()?.unlock(space, key);
                }
                Ok(!is_there)
            }
            Ok(Locked::Upgraded | Locked::AlreadyHeld) => Ok(true),
            Err(LockError::Busy) => {
                // A row that comes is wanted as rows are, and those that wait for it take turns
                // from here on.
                match lock(exec, space, key, mode, on_locked)? {
                    None => return Ok(true),
                    Some(Locked::Granted) => {
                        let is_row = index.kind == IndexKind::Primary && is_there(exec)?;
                        if !is_row {
                            exec.transaction()?.unlock(space, key);
                        }
                    }
                    Some(Locked::Upgraded | Locked::AlreadyHeld) => {}
                }
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a cursor on the next bounds, those of a skip scan's next group where there are no
    /// more.
    fn open_cursor(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let mut direction = match self.scan.reverse {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        if let Some((leaps, end)) = self.leaps.as_deref_mut() {
            while self.at >= self.bounds.len() {
                let Some(group) = leaps.next_group(exec)? else {
                    return Ok(false);
                };
                (self.bounds, self.at) = (group.bounds, 0);
                (end.forward, end.takes_entry) = (group.forward, group.entry_is_first);
                if end.takes_entry {
                    return Ok(true);
                }
            }
            if self.at >= end.forward {
                direction = Direction::Backward;
            }
        }
        let Some(bounds) = self.bounds.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        let (Entries::Rows(space) | Entries::Covering(space) | Entries::Leading(space)) =
            self.entries;
        let low = Bound::Included(bounds.low.as_slice());
        let high = bounds
            .high
            .as_ref()
            .map_or(Bound::Unbounded, |high| Bound::Excluded(high.as_slice()));
        self.read_before_cursor = self.read;
        let cursor = exec.cursor(space, low, high, direction, self.latest())?;
        self.cursor = Some(Box::new(cursor));
        Ok(true)
    }

    /// Of a group's end an entry was found: its other bounds are not read.
    fn end_found(&mut self) {
        if let Some((_, end)) = self.leaps.as_deref()
            && end.single
        {
            self.cursor = None;
            self.at = match self.at <= end.forward {
                true => end.forward,
                false => self.bounds.len(),
            };
        }
    }

    /// Yields the entry by which a skip scan has found its group, if that is wanted and passes.
    fn take_entry(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some((leaps, end)) = self.leaps.as_deref_mut() else {
            return Ok(false);
        };
        if !std::mem::take(&mut end.takes_entry) {
            return Ok(false);
        }
        self.read += 1;
        let (key, value) = (&leaps.entry.key, &leaps.entry.value);
        let put = put_entry(
            self.scan,
            self.entries,
            &mut self.primary_key,
            exec,
            (key, value),
        )?;
        Ok(put && self.accept(exec)? == Accepted::Yes)
    }

    /// Reads the next row whose key an index merge has found.
    fn next_of_keys(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        while let Some(keys) = self.keys.as_deref_mut()
            && let Some(key) = keys.next()?
        {
            exec.check_interrupt()?;
            self.read += 1;
            if fetch(self.scan, exec, key)? && self.accept(exec)? == Accepted::Yes {
                self.yielded += 1;
                return Ok(true);
            }
        }
        self.keys = None;
        self.compare_with_estimate(exec);
        Ok(false)
    }
}

impl ReadAhead<'_> {
    /// Whether the conditions are worth the time of other threads, which may be at them already; from
    /// the second batch on, so that a grouping may take rows first. `always`: however short they take.
    fn is_divided(&self, always: bool) -> bool {
        let (time, rows) = self.filtering;
        let is_going_on = self.units.as_ref().is_some_and(Units::are_left);
        is_going_on || (self.has_loops && rows > 0 && (always || time / rows >= DIVIDED_MIN))
    }

    /// Counts the rows of the batch as examined up to one.
    fn examine(&mut self, exec: &mut Exec<'_>, end: usize) {
        exec.session.statement.rows_examined += (end - self.examined) as u64;
        self.examined = end;
    }
}

/// What of an entry is in the slot.
#[inline]
fn row_of_entry(entries: Entries, value: &[u8]) -> &[u8] {
    match entries {
        Entries::Covering(_) => index_entry::split(value).1,
        Entries::Rows(_) | Entries::Leading(_) => value,
    }
}

/// Appends rows as they would be in the slot.
fn append_rows<'r>(rows: &'r Rows, entries: Entries, out: &mut Vec<&'r [u8]>) {
    rows.append_values(out);
    if matches!(entries, Entries::Covering(_)) {
        for value in out {
            *value = row_of_entry(entries, value);
        }
    }
}

impl Operator for ScanOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.ahead = None;
        self.read_before = self.read;
        self.cursor = None;
        self.points.clear();
        self.at = 0;
        self.bounds.clear();
        self.opened += 1;
        let scan = self.scan;
        let table = &scan.table;
        match &scan.access {
            Access::Full => self.bounds.push(Bounds {
                low: KeyBuf::new(),
                high: None,
            }),
            Access::Index { ranges, .. } if let Some(index) = self.looks_up => {
                self.points = key_range::points(exec, table, index, ranges)?;
                if !scan.reverse {
                    self.points.reverse();
                }
            }
            Access::Index { index, ranges, .. } => {
                let parts = &table.indexes[*index].parts;
                self.bounds = key_range::all_bounds(exec, table, parts, ranges)?;
                if scan.reverse {
                    self.bounds.reverse();
                }
            }
            Access::Point { index, key, .. } => {
                let key = key_range::point(exec, table, &table.indexes[*index], key.iter())?;
                self.points.extend(key);
            }
            Access::Merge { operation, sources } => {
                let keys = RowKeys::open(exec, table, *operation, sources, self.latest())?;
                self.keys = Some(Box::new(keys));
            }
            Access::Skip(skip) => {
                let end = End {
                    single: skip.taken != Taken::All,
                    ..End::default()
                };
                self.leaps = Some(Box::new((Leaps::open(exec, skip, table)?, end)));
            }
        }
        if self.bounds.first().is_some_and(Bounds::is_everything) {
            exec.session.statement.uses_no_index = true;
        }
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if let Some(index) = self.looks_up {
            while let Some(key) = self.points.pop() {
                exec.check_interrupt()?;
                if self.look_up(exec, index, &key)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if self.keys.is_some() {
            return self.next_of_keys(exec);
        }
        loop {
            if self.ahead.is_some() && self.next_ahead(exec)?.is_some() {
                return Ok(true);
            }
            if self.is_held_back() {
                if self.read_batch(exec)? || !self.is_held_back() {
                    continue;
                }
                return Ok(false);
            }
            // Who takes rows one by one gains nothing by a batch that no loop filters.
            if !self.scan.filter.is_empty()
                && self.reads_ahead(exec)
                && self.ahead(exec).has_loops
                && self.read_batch(exec)?
            {
                continue;
            }
            let Some(cursor) = &mut self.cursor else {
                if !self.open_cursor(exec)? {
                    self.compare_with_estimate(exec);
                    return Ok(false);
                }
                if self.leaps.is_some() && self.take_entry(exec)? {
                    self.yielded += 1;
                    return Ok(true);
                }
                continue;
            };
            let Some(entry) = cursor.next()? else {
                self.cursor = None;
                continue;
            };
            exec.check_interrupt()?;
            self.read += 1;
            let put = put_entry(self.scan, self.entries, &mut self.primary_key, exec, entry)?;
            if self.leaps.is_some() {
                self.end_found();
            }
            if put && self.accept(exec)? == Accepted::Yes {
                self.yielded += 1;
                return Ok(true);
            }
        }
    }

    fn has_batches(&self) -> bool {
        self.is_in_batches()
    }

    fn next_batch<'s>(&'s mut self, exec: &mut Exec<'_>) -> Result<Option<Batch<'s>>> {
        let has_rows = |ahead: &ReadAhead<'_>| ahead.at < ahead.numbers.len();
        if !self.ahead.as_deref().is_some_and(has_rows)
            && !(self.reads_ahead(exec) && self.read_batch(exec)?)
        {
            return Ok(None);
        }
        let entries = self.entries;
        let Some(ahead) = self.ahead.as_deref_mut().filter(|ahead| ahead.is_filtered) else {
            return Ok(None);
        };
        let end = ahead.rows.len();
        ahead.examine(exec, end);
        let from = std::mem::replace(&mut ahead.at, ahead.numbers.len());
        ahead.at_batch = from;
        let ahead = &*ahead;
        let mut rows = Vec::new();
        append_rows(&ahead.rows, entries, &mut rows);
        let wanted = &ahead.numbers[from..];
        if wanted.len() < end {
            let all = rows;
            rows = wanted.iter().map(|number| all[*number as usize]).collect();
        }
        self.yielded += rows.len() as u64;
        Ok(Some(Batch {
            slot: self.scan.slot,
            rows,
        }))
    }

    fn raw_rows(&mut self) -> Option<&mut dyn RawRows> {
        match self.is_in_batches() {
            true => Some(self),
            false => None,
        }
    }

    fn load_of_batch(&mut self, exec: &mut Exec<'_>, place: usize) {
        if let Some(ahead) = &self.ahead
            && let Some(&number) = ahead.numbers.get(ahead.at_batch + place)
        {
            let value = row_of_entry(self.entries, ahead.rows.value(number as usize));
            load_row(exec, self.scan.slot, value);
        }
    }
}

impl RawRows for ScanOperator<'_> {
    fn is_large(&mut self, exec: &mut Exec<'_>) -> bool {
        let rows = exec.session.batch_scan_min_rows;
        self.read - self.read_before_cursor >= rows.saturating_mul(LARGE_TIMES)
            && self.reads_ahead(exec)
            && !self.has_put_back()
            && !self.is_held_back()
            && !self.is_dividing()
    }

    fn raw(&mut self, exec: &mut Exec<'_>) -> Option<(SlotId, Filter<'static>, RowOf)> {
        let filter = self.ahead(exec).filter.as_ref()?.detached()?;
        let row_of: RowOf = match self.entries {
            Entries::Covering(_) => Some(|entry| index_entry::split(entry).1),
            Entries::Rows(_) | Entries::Leading(_) => None,
        };
        Some((self.scan.slot, filter, row_of))
    }

    fn next_raw(&mut self, exec: &mut Exec<'_>, rows: &mut Rows) -> Result<bool> {
        exec.check_interrupt()?;
        let ahead = self.ahead(exec);
        (ahead.is_lent, ahead.units) = (true, None);
        self.read_many(exec, rows)
    }

    fn count_raw(&mut self, exec: &mut Exec<'_>, examined: usize, passed: usize) {
        exec.session.statement.rows_examined += examined as u64;
        self.yielded += passed as u64;
    }

    fn put_back(&mut self, rows: Vec<Rows>) {
        if let Some(ahead) = self.ahead.as_deref_mut() {
            ahead.put_back.extend(rows);
        }
    }

    fn has_put_back(&mut self) -> bool {
        let has_rows = |ahead: &ReadAhead<'_>| {
            let is_in_batch = ahead.at < ahead.numbers.len();
            is_in_batch || !ahead.put_back.is_empty() || !ahead.filtered.is_empty()
        };
        self.ahead.as_deref().is_some_and(has_rows)
    }

    fn end_raw(&mut self, error: Option<Error>) {
        if let Some(ahead) = self.ahead.as_deref_mut() {
            ahead.is_lent = false;
            ahead.error = error;
        }
    }
}

fn index_space(scan: &Scan, index: usize) -> SpaceId {
    scan.table.indexes[index].space
}

/// Looks a row up by its primary key, into the scan's slot, with its key where it is to be locked.
fn fetch(scan: &Scan, exec: &mut Exec<'_>, primary_key: &[u8]) -> Result<bool> {
    let latest = scan.lock != RowLock::None;
    let row = &mut exec.frame.slots[scan.slot.0 as usize];
    let layout = &exec.layouts[scan.slot.0 as usize];
    let space = scan.table.space;
    let found = Exec::read(&exec.view, space, primary_key, latest, |bytes| {
        put_row(scan, row, layout, bytes)
    })?;
    if scan.lock != RowLock::None {
        row.set_key(primary_key);
    }
    Ok(found.is_some())
}

/// Makes a row the slot's current one. One that is locked may change, and is whole.
#[inline]
fn put_row(scan: &Scan, row: &mut Row, layout: &SlotLayout, bytes: &[u8]) {
    match scan.lock {
        RowLock::None => batch::put_row(row, layout, bytes),
        _ => row.set(bytes),
    }
}

/// Puts the row of an entry, a key and a value, into the scan's slot, with its key where it is to be
/// locked; `false` where the conditions on entries say no, or the row is gone. `room` is
/// overwritten.
#[inline]
fn put_entry(
    scan: &Scan,
    entries: Entries,
    room: &mut KeyBuf,
    exec: &mut Exec<'_>,
    (key, value): (&[u8], &[u8]),
) -> Result<bool> {
    let row = &mut exec.frame.slots[scan.slot.0 as usize];
    match entries {
        Entries::Rows(_) => {
            let layout = &exec.layouts[scan.slot.0 as usize];
            put_row(scan, row, layout, value);
            if scan.lock != RowLock::None {
                row.set_key(key);
            }
        }
        Entries::Covering(_) => row.set(index_entry::split(value).1),
        Entries::Leading(_) => {
            let (primary_key, columns) = index_entry::split(value);
            if let Some(of_entry) = &scan.index_condition {
                exec.frame.slots[of_entry.slot.0 as usize].set(columns);
                if !all_true(&of_entry.conditions, exec)? {
                    return Ok(false);
                }
            }
            room.clear();
            room.extend_from_slice(primary_key);
            return Ok(fetch(scan, exec, room)? && is_entrys_row(scan, exec, room, (key, value)));
        }
    }
    Ok(true)
}

/// Whether the row in the slot is the one that an index's entry told of. Where rows are read that
/// others are changing, it may have another value by now; InnoDB passes over such entries, too.
fn is_entrys_row(scan: &Scan, exec: &Exec<'_>, primary_key: &[u8], entry: (&[u8], &[u8])) -> bool {
    if !exec.view.is_uncommitted() {
        return true;
    }
    let Some((index, _)) = scan.access.single_index() else {
        return true;
    };
    let (table, index) = (&scan.table, &scan.table.indexes[index]);
    let row = &exec.frame.slots[scan.slot.0 as usize].bytes;
    index_entry::is_entry_of(table, index, (primary_key, row), entry, &mut Vec::new())
}

/// Locks a key; `None` where it is locked by somebody else and to be skipped.
fn lock(
    exec: &mut Exec<'_>,
    space: SpaceId,
    key: &[u8],
    mode: LockMode,
    on_locked: OnLocked,
) -> Result<Option<Locked>> {
    let wait = match on_locked {
        OnLocked::Wait => Wait::Timeout(exec.session.lock_wait_timeout()),
        OnLocked::Fail | OnLocked::Skip => Wait::NoWait,
    };
    match exec.transaction()?.lock(space, key, mode, wait) {
        Ok(locked) => {
            exec.charge_changes()?;
            Ok(Some(locked))
        }
        Err(LockError::Busy) if on_locked == OnLocked::Skip => Ok(None),
        Err(error) => Err(error.into()),
    }
}
