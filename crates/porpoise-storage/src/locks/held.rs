//! The locks of one transaction, as it knows them itself.
//!
//! It lists the first rows that it locks, and gives them back one by one at its end. One that has
//! more only counts them, by space and mode, and finds them in the shards.
//!
//! What they may take of memory is bounded. When half of what is allowed are locks of one mode in one
//! space, the transaction is to lock the space instead (`spaces`); when all is in use, it is to lock
//! each space that it goes on in after a few rows more.

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::{LockMode, LockTable, Locked, RowHash};
use crate::overlay::SharedOverlay;
use crate::{SpaceId, TxnId};

/// What a lock takes at most: its place in a shard, whose memory doubles as it fills.
const LOCK_BYTES: usize = 44;
/// What a transaction's locks take beside that while they are listed.
const LISTED_BYTES: usize = 16;
/// So many locks a transaction lists, at most.
const LISTED_MAX: usize = 1 << 16;
/// So many locks a transaction has of single rows, unless it is told otherwise.
const ROWS_MAX: usize = 1 << 20;
/// With more than are allowed, so many parts of that are allowed of each space.
const PARTS_BEYOND: usize = 128;

/// The locks of one transaction.
pub(crate) struct HeldLocks {
    pub(super) txn: TxnId,
    pub(super) rows: SmallVec<[RowHash; 8]>,
    /// So many of single rows it should have, at most.
    rows_max: usize,
    /// Those that are not listed.
    pub(super) unlisted: Option<Box<Unlisted>>,
    /// Those in the shards before this one are released.
    pub(super) next_shard: usize,
    /// Its writes are among [`LockTable::open_writes`].
    pub(super) has_writes: bool,
}

/// Locks that are too many to be listed.
#[derive(Default)]
pub(super) struct Unlisted {
    /// How many rows are locked.
    count: usize,
    /// How many of them were since they aren't listed any more, without those given back.
    by_space: HashMap<(SpaceId, LockMode), usize>,
    spaces: SmallVec<[(SpaceId, LockMode); 2]>,
}

/// That a transaction is to lock a space.
pub(super) struct Escalation {
    /// It has twice as many locks as it should: it doesn't let others go first any more.
    pub is_overdue: bool,
}

impl HeldLocks {
    pub fn none(txn: TxnId) -> HeldLocks {
        HeldLocks {
            txn,
            rows: SmallVec::new(),
            rows_max: ROWS_MAX,
            unlisted: None,
            next_shard: 0,
            has_writes: false,
        }
    }

    /// How much memory the locks of single rows should take, at most.
    pub fn set_bytes_max(&mut self, bytes: usize) {
        self.rows_max = bytes / (LOCK_BYTES + LISTED_BYTES);
    }

    /// The transaction begins to write: until its locks are released, those who read what isn't
    /// committed find its writes there.
    pub fn note_writes(&mut self, table: &LockTable, writes: &Arc<SharedOverlay>) {
        self.has_writes = true;
        table.open_writes.add(self.txn, Arc::clone(writes));
    }

    /// How many rows are locked one by one.
    pub fn len(&self) -> usize {
        let unlisted = self.unlisted.as_ref();
        unlisted.map_or(self.rows.len(), |unlisted| unlisted.count)
    }

    pub fn held_bytes(&self) -> usize {
        self.len() * LOCK_BYTES + self.rows.len() * LISTED_BYTES
    }

    /// The spaces that are locked, and how.
    pub fn spaces(&self) -> &[(SpaceId, LockMode)] {
        let unlisted = self.unlisted.as_ref();
        unlisted.map_or(&[], |unlisted| &unlisted.spaces)
    }

    /// How a space is locked.
    pub(super) fn mode_of_space(&self, space: SpaceId) -> Option<LockMode> {
        let mut spaces = self.spaces().iter();
        let found = spaces.find(|(locked, _)| *locked == space);
        found.map(|&(_, mode)| mode)
    }

    /// Whether a space is locked in a mode, or a stronger one.
    pub(super) fn has_space(&self, space: SpaceId, mode: LockMode) -> bool {
        self.mode_of_space(space).is_some_and(|held| held >= mode)
    }

    pub(super) fn granted(
        &mut self,
        (space, row): (SpaceId, RowHash),
        mode: LockMode,
        is_upgrade: bool,
    ) -> Locked {
        if is_upgrade {
            return Locked::Upgraded;
        }
        self.add(row);
        if let Some(unlisted) = &mut self.unlisted {
            *unlisted.by_space.entry((space, mode)).or_default() += 1;
        }
        Locked::Granted
    }

    /// A row was locked that hadn't been.
    pub(super) fn add(&mut self, row: RowHash) {
        match &mut self.unlisted {
            Some(unlisted) => unlisted.count += 1,
            None if self.rows.len() < LISTED_MAX.min(self.rows_max / 2) => self.rows.push(row),
            None => self.unlist().count += 1,
        }
    }

    /// From now on the locks are found in the shards.
    fn unlist(&mut self) -> &mut Unlisted {
        let rows = std::mem::take(&mut self.rows);
        self.unlisted.get_or_insert_with(|| {
            Box::new(Unlisted {
                count: rows.len(),
                ..Unlisted::default()
            })
        })
    }

    /// A row that isn't listed was given back, which was locked in a mode.
    pub(super) fn remove_unlisted(&mut self, space: SpaceId, mode: LockMode) {
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.count = unlisted.count.saturating_sub(1);
            if let Some(of_space) = unlisted.by_space.get_mut(&(space, mode)) {
                *of_space = of_space.saturating_sub(1);
            }
        }
    }

    /// Whether the space is to be locked in which a row was locked just now.
    pub(super) fn escalation(&self, space: SpaceId, mode: LockMode) -> Option<Escalation> {
        let unlisted = self.unlisted.as_ref()?;
        if self.has_space(space, mode) {
            return None;
        }
        let count = *unlisted.by_space.get(&(space, mode))?;
        let enough = match unlisted.count < self.rows_max {
            true => self.rows_max / 2,
            false => self.rows_max / PARTS_BEYOND,
        };
        (count > enough).then_some(Escalation {
            is_overdue: unlisted.count / 2 >= self.rows_max,
        })
    }

    /// The space is locked.
    pub(super) fn add_space(&mut self, space: SpaceId, mode: LockMode) {
        let spaces = &mut self.unlist().spaces;
        match spaces.iter_mut().find(|(locked, _)| *locked == space) {
            Some((_, held)) => *held = (*held).max(mode),
            None => spaces.push((space, mode)),
        }
    }

    /// The spaces that were locked, and are to be released.
    pub(super) fn take_spaces(&mut self) -> SmallVec<[(SpaceId, LockMode); 2]> {
        let unlisted = self.unlisted.as_mut();
        unlisted.map_or_else(SmallVec::new, |unlisted| {
            std::mem::take(&mut unlisted.spaces)
        })
    }
}
