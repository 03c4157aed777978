//! The writes of a transaction that has written very much: a memtable of its own.
//!
//! Each write is a version, told apart by its number in the order of the transaction's writes:
//!
//! ```text
//! row 7     4 1          a cursor that was opened behind write 3 sees what write 1 left of row 7
//! row 9     2            undoing write 4 takes the version out
//! row 12    3✗
//! ```
//!
//! Key and value lie in the memtable's arena once, and stay there when the transaction commits: the
//! memtable becomes one of those that all read from ([`crate::group_commit`]), without a copy. The
//! map needs no list of what a write replaced; to be undone a write leaves its place.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{SpaceChange, SpaceOverlay};
use crate::blocks::CacheLoan;
use crate::memtable::{Key, Memtable, Value, VersionCursor};
use crate::version_map::WrittenEntry;
use crate::{CommitTs, Direction, SpaceId};

pub(super) struct LargeWrites {
    pub memtable: Arc<Memtable>,
    /// The number of the last write.
    last: u64,
    undo: Vec<Undo>,
    /// For how many bytes the cache has made room.
    borrowed: u64,
}

/// A change to be undone.
struct Undo {
    /// `None` for a change of a space.
    written: Option<WrittenEntry>,
    space: SpaceId,
    net_rows: i32,
}

/// The cache is asked to make room for so many bytes at a time.
const LOAN_STEP_BYTES: u64 = 2 << 20;

impl LargeWrites {
    pub fn of(loan: CacheLoan) -> LargeWrites {
        LargeWrites {
            memtable: Arc::new(Memtable::own(loan)),
            last: 0,
            undo: Vec::new(),
            borrowed: 0,
        }
    }

    pub fn held_bytes(&self) -> usize {
        let bytes = usize::try_from(self.memtable.bytes()).unwrap_or(usize::MAX);
        bytes.saturating_add(self.undo.len() * size_of::<Undo>())
    }

    /// What sees all writes so far, and none to come.
    pub fn now(&self) -> CommitTs {
        CommitTs(self.last)
    }

    /// Takes over what was written to a space.
    pub fn take(&mut self, of: SpaceOverlay) {
        self.last = 1;
        let writes = of.writes.iter();
        let writes = writes.map(|(key, value)| (&**key, value.as_deref()));
        let first = CommitTs(self.last);
        self.memtable.insert(of.space, first, of.net_rows, writes);
    }

    pub fn write(
        &mut self,
        space: SpaceId,
        row: (&[u8], Option<&[u8]>),
        net_rows: i64,
        keeps_undo: bool,
    ) {
        self.last += 1;
        let written = self.memtable.write(space, self.last, net_rows, row);
        let bytes = self.memtable.bytes();
        if bytes > self.borrowed {
            self.borrowed = bytes + LOAN_STEP_BYTES;
            if let Some(loan) = &self.memtable.loan {
                loan.grow_to(usize::try_from(self.borrowed).unwrap_or(usize::MAX));
            }
        }
        if keeps_undo {
            self.undo.push(Undo {
                written: Some(written),
                space,
                net_rows: net_rows as i32,
            });
        }
    }

    /// A space was created or dropped.
    pub fn note_change(&mut self) {
        self.undo.push(Undo {
            written: None,
            space: SpaceId(0),
            net_rows: 0,
        });
    }

    /// Undoes the last change since the writes are so many; `false` if there is none.
    pub fn undo_last(&mut self, changes: &mut Vec<(SpaceId, SpaceChange)>) -> bool {
        let Some(undo) = self.undo.pop() else {
            return false;
        };
        match undo.written {
            Some(written) => {
                let versions = self.memtable.space(undo.space);
                // SAFETY: the write was one of this space's versions.
                unsafe { versions.take_back(written, i64::from(undo.net_rows)) };
            }
            None => {
                changes.pop();
            }
        }
        if self.undo.capacity() / 4 > self.undo.len() {
            self.undo.shrink_to(self.undo.len() * 2);
        }
        true
    }

    /// Undoes a write from before the writes were so many: puts back what it replaced.
    pub fn put_back(&mut self, space: SpaceId, (key, before): (&[u8], Option<Value>), net: i64) {
        let versions = self.memtable.space(space);
        match before {
            None => {
                versions.clear(key);
                versions.net_rows.fetch_sub(net, Ordering::Relaxed);
            }
            Some(value) => {
                self.last += 1;
                let row = (key, value.as_deref());
                self.memtable.write(space, self.last, -net, row);
            }
        }
    }

    /// Forgets what it would take to undo writes, if those are more than so many.
    pub fn forget_undo(&mut self, many: usize) {
        if self.undo.len() > many {
            self.undo = Vec::new();
        }
    }

    /// Copies at most `len` of a space's writes within the bounds.
    pub fn copy_writes(
        &self,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        len: usize,
        to: &mut Vec<(Key, Value)>,
    ) {
        let Some(versions) = self.memtable.spaces.get(space) else {
            return;
        };
        let versions = Arc::clone(versions);
        let newest = CommitTs(u64::MAX);
        let mut rows = VersionCursor::new(versions, bounds, direction, newest, None);
        while let Some((key, value)) = rows.current()
            && to.len() < len
        {
            to.push((key.into(), value.map(Arc::from)));
            rows.advance();
        }
    }
}
