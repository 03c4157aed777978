//! Scans: rows of a table, read and locked.

use std::ops::Bound;

use porpoise_storage::{Cursor, Direction, LockMode, Wait};
use porpoise_types::KeyBuf;
use smallvec::SmallVec;

use crate::error::Result;
use crate::executor::key_range::Bounds;
use crate::executor::{Exec, index_entry, key_range};
use crate::planner::plan::{Access, OnLocked, RowLock, Scan};

use super::{Operator, all_true};

/// Reads a table, by whatever access path the plan chose.
///
/// A locking scan reads what is newest, locks each row that passes the filter, and looks again at what it
/// locked: another transaction may have changed it while this one waited.
pub(super) struct ScanOperator<'p> {
    scan: &'p Scan,
    point: Option<KeyBuf>,
    bounds: SmallVec<[Bounds; 1]>,
    at: usize,
    cursor: Option<Cursor>,
    /// Of the row that an index's entry leads to.
    primary_key: KeyBuf,
}

impl<'p> ScanOperator<'p> {
    pub(super) fn new(scan: &'p Scan) -> ScanOperator<'p> {
        ScanOperator {
            scan,
            point: None,
            bounds: SmallVec::new(),
            at: 0,
            cursor: None,
            primary_key: KeyBuf::new(),
        }
    }

    fn latest(&self) -> bool {
        self.scan.lock != RowLock::None
    }

    /// Looks a row up by its primary key, into the slot.
    fn fetch(&self, exec: &mut Exec<'_>, primary_key: &[u8]) -> Result<bool> {
        let latest = self.latest();
        let row = &mut exec.frame.slots[self.scan.slot.0 as usize];
        let found = Exec::read(
            &exec.view,
            self.scan.table.space,
            primary_key,
            latest,
            |bytes| row.set(bytes),
        )?;
        row.set_key(primary_key);
        Ok(found.is_some())
    }

    /// Filters, locks and checks again the row in the slot.
    fn accept(&self, exec: &mut Exec<'_>) -> Result<bool> {
        if !all_true(&self.scan.filter, exec)? {
            return Ok(false);
        }
        let (mode, on_locked) = match self.scan.lock {
            RowLock::None => return Ok(true),
            RowLock::Shared(on_locked) => (LockMode::Shared, on_locked),
            RowLock::Exclusive(on_locked) => (LockMode::Exclusive, on_locked),
        };
        let slot = self.scan.slot.0 as usize;
        let key = exec.frame.slots[slot].key.clone();
        let wait = match on_locked {
            OnLocked::Wait => Wait::Timeout(exec.session.lock_wait_timeout()),
            OnLocked::Fail | OnLocked::Skip => Wait::NoWait,
        };
        let space = self.scan.table.space;
        match exec.transaction()?.lock(space, &key, mode, wait) {
            Ok(porpoise_storage::Locked::AlreadyHeld) => return Ok(true),
            Ok(porpoise_storage::Locked::Granted) => {}
            Err(porpoise_storage::LockError::Busy) if on_locked == OnLocked::Skip => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.fetch(exec, &key)? && all_true(&self.scan.filter, exec)?)
    }

    fn open_cursor(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(bounds) = self.bounds.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        let space = match &self.scan.access {
            Access::Full => self.scan.table.space,
            Access::Index { index, .. } | Access::Point { index, .. } => {
                self.scan.table.indexes[*index].space
            }
        };
        let low = Bound::Included(bounds.low.as_slice());
        let high = bounds
            .high
            .as_ref()
            .map_or(Bound::Unbounded, |high| Bound::Excluded(high.as_slice()));
        let direction = if self.scan.reverse {
            Direction::Backward
        } else {
            Direction::Forward
        };
        self.cursor = Some(exec.cursor(space, low, high, direction, self.latest())?);
        Ok(true)
    }
}

impl Operator for ScanOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.cursor = None;
        self.point = None;
        self.at = 0;
        self.bounds.clear();
        let table = &self.scan.table;
        match &self.scan.access {
            Access::Full => self.bounds.push(Bounds {
                low: KeyBuf::new(),
                high: None,
            }),
            Access::Index { index, ranges, .. } => {
                self.bounds = key_range::all_bounds(exec, table, &table.indexes[*index], ranges)?;
                if self.scan.reverse {
                    self.bounds.reverse();
                }
            }
            Access::Point { index, key, .. } => {
                self.point = key_range::point(exec, table, &table.indexes[*index], key)?
            }
        }
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let slot = self.scan.slot.0 as usize;
        let table = &self.scan.table;
        if let Access::Point {
            index, covering, ..
        } = &self.scan.access
        {
            let Some(key) = self.point.take() else {
                return Ok(false);
            };
            let index = &table.indexes[*index];
            if index.space == table.space {
                return Ok(self.fetch(exec, &key)? && self.accept(exec)?);
            }
            let latest = self.latest();
            let row = &mut exec.frame.slots[slot];
            let primary_key = &mut self.primary_key;
            primary_key.clear();
            let found = Exec::read(&exec.view, index.space, &key, latest, |entry| {
                let (of_row, columns) = index_entry::split(entry);
                primary_key.extend_from_slice(of_row);
                row.set(columns);
            })?;
            let primary_key = self.primary_key.clone();
            return Ok(found.is_some()
                && {
                    exec.frame.slots[slot].set_key(&primary_key);
                    *covering || self.fetch(exec, &primary_key)?
                }
                && self.accept(exec)?);
        }
        loop {
            let Some(cursor) = &mut self.cursor else {
                if !self.open_cursor(exec)? {
                    return Ok(false);
                }
                continue;
            };
            let Some((key, value)) = cursor.next()? else {
                self.cursor = None;
                continue;
            };
            exec.check_interrupt()?;
            let row = &mut exec.frame.slots[slot];
            match &self.scan.access {
                Access::Index {
                    index, covering, ..
                } if table.indexes[*index].space != table.space => {
                    let (primary_key, columns) = index_entry::split(value);
                    if *covering {
                        row.set(columns);
                        row.set_key(primary_key);
                    } else {
                        self.primary_key.clear();
                        self.primary_key.extend_from_slice(primary_key);
                        let primary_key = std::mem::take(&mut self.primary_key);
                        let found = self.fetch(exec, &primary_key)?;
                        self.primary_key = primary_key;
                        if !found {
                            continue;
                        }
                    }
                }
                _ => {
                    row.set(value);
                    row.set_key(key);
                }
            }
            if self.accept(exec)? {
                return Ok(true);
            }
        }
    }
}
