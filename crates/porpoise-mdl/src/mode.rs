//! The modes of metadata locks, and which modes wait for which (MySQL 8.4 manual, 10.11.4).
//!
//! | mode | taken by | for how long |
//! | --- | --- | --- |
//! | INTENTION_EXCLUSIVE | changes of something below a schema, or of anything | statement |
//! | SHARED | FLUSH TABLES WITH READ LOCK | until UNLOCK TABLES |
//! | SHARED_READ | reads | statement, or transaction |
//! | SHARED_WRITE | changes, locking reads | statement, or transaction |
//! | SHARED_UPGRADABLE | ALTER TABLE, while it thinks | statement |
//! | SHARED_READ_ONLY | LOCK TABLES … READ | until UNLOCK TABLES |
//! | SHARED_NO_WRITE | ALTER TABLE, while it copies; INSERT and LOAD DATA, while they fill an empty table | statement |
//! | SHARED_NO_READ_WRITE | LOCK TABLES … WRITE | until UNLOCK TABLES |
//! | EXCLUSIVE | DDL, when definitions change | statement |
//!
//! There are two tables: which *holders* of the lock a request waits for, and which *waiters* it
//! queues behind. The second keeps later requests from starving a waiting ALTER TABLE.

/// How an object is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// INTENTION_EXCLUSIVE.
    IntentionExclusive,
    /// SHARED.
    Shared,
    /// SHARED_READ.
    SharedRead,
    /// SHARED_WRITE.
    SharedWrite,
    /// SHARED_UPGRADABLE.
    SharedUpgradable,
    /// SHARED_READ_ONLY.
    SharedReadOnly,
    /// SHARED_NO_WRITE.
    SharedNoWrite,
    /// SHARED_NO_READ_WRITE.
    SharedNoReadWrite,
    /// EXCLUSIVE.
    Exclusive,
}

use Mode::{
    Exclusive as X, IntentionExclusive as IX, Shared as S, SharedNoReadWrite as SNRW,
    SharedNoWrite as SNW, SharedRead as SR, SharedReadOnly as SRO, SharedUpgradable as SU,
    SharedWrite as SW,
};

/// A mode's row in the tables.
struct Row {
    mode: Mode,
    name: &'static str,
    /// Whose holders it waits for.
    behind_holders: &'static [Mode],
    /// Whose waiters it lets go first.
    behind_waiters: &'static [Mode],
}

const ROWS: [Row; 9] = [
    Row {
        mode: IX,
        name: "INTENTION_EXCLUSIVE",
        behind_holders: &[S, X],
        behind_waiters: &[S, X],
    },
    Row {
        mode: S,
        name: "SHARED",
        behind_holders: &[IX, X],
        behind_waiters: &[X],
    },
    Row {
        mode: SR,
        name: "SHARED_READ",
        behind_holders: &[SNRW, X],
        behind_waiters: &[SNRW, X],
    },
    Row {
        mode: SW,
        name: "SHARED_WRITE",
        behind_holders: &[SRO, SNW, SNRW, X],
        behind_waiters: &[SNW, SNRW, X],
    },
    Row {
        mode: SU,
        name: "SHARED_UPGRADABLE",
        behind_holders: &[SU, SNW, SNRW, X],
        behind_waiters: &[X],
    },
    Row {
        mode: SRO,
        name: "SHARED_READ_ONLY",
        behind_holders: &[SW, SNRW, X],
        behind_waiters: &[SW, SNRW, X],
    },
    Row {
        mode: SNW,
        name: "SHARED_NO_WRITE",
        behind_holders: &[SW, SU, SNW, SNRW, X],
        behind_waiters: &[X],
    },
    Row {
        mode: SNRW,
        name: "SHARED_NO_READ_WRITE",
        behind_holders: &[SR, SW, SU, SRO, SNW, SNRW, X],
        behind_waiters: &[X],
    },
    Row {
        mode: X,
        name: "EXCLUSIVE",
        behind_holders: &[IX, S, SR, SW, SU, SRO, SNW, SNRW, X],
        behind_waiters: &[],
    },
];

impl Mode {
    /// All modes, the weakest first.
    pub const ALL: [Mode; 9] = [IX, S, SR, SW, SU, SRO, SNW, SNRW, X];

    fn row(self) -> &'static Row {
        let row = &ROWS[self as usize];
        debug_assert_eq!(row.mode, self);
        row
    }

    /// As `performance_schema.metadata_locks` says it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether a request for this mode waits for a holder of `held`.
    pub fn waits_for(self, held: Mode) -> bool {
        self.row().behind_holders.contains(&held)
    }

    /// Whether a request for this mode queues behind a waiter for `wanted`, in whatever order they
    /// came.
    pub fn stands_behind(self, wanted: Mode) -> bool {
        self.row().behind_waiters.contains(&wanted)
    }

    /// How late a waiter is chosen as the victim of a deadlock: the least weight is chosen first. A
    /// transaction, which can be tried again, weighs less than a global read lock, which weighs
    /// less than DDL.
    pub fn weight(self) -> u8 {
        match self {
            IX | SR | SW => 0,
            S => 1,
            SU | SRO | SNW | SNRW | X => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_its_row() {
        for (mode, row) in Mode::ALL.into_iter().zip(&ROWS) {
            assert_eq!(mode, row.mode);
        }
    }

    #[test]
    fn of_two_holders_each_would_wait_for_the_other() {
        for a in Mode::ALL {
            for b in Mode::ALL {
                assert_eq!(a.waits_for(b), b.waits_for(a), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn no_two_waiters_stand_behind_each_other() {
        for a in Mode::ALL {
            for b in Mode::ALL {
                assert!(!(a.stands_behind(b) && b.stands_behind(a)), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn readers_pass_a_read_lock_and_a_copy_and_writers_dont() {
        assert!(!SR.waits_for(SRO) && !SR.waits_for(SNW) && !SR.waits_for(SU));
        assert!(SW.waits_for(SRO) && SW.waits_for(SNW) && !SW.waits_for(SU));
        assert!(SR.stands_behind(X) && SW.stands_behind(X));
        assert!(Mode::ALL.iter().all(|mode| X.waits_for(*mode)));
    }
}

/// What a statement does with the rows of a table or view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableUse {
    /// It reads rows and locks none of them.
    Read,
    /// It changes rows, or locks those that it reads.
    Write,
}

impl TableUse {
    /// The lock that a use takes.
    pub fn mode(self) -> Mode {
        match self {
            TableUse::Read => Mode::SharedRead,
            TableUse::Write => Mode::SharedWrite,
        }
    }
}

/// Names a table for its whole life, across renames and ALTERs. Views have numbers too, for as long
/// as the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);
