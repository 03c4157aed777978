//! How a table's rows are found: whole, by ranges of an index, by leaps over one, by keys of several.

use std::sync::Arc;

use porpoise_catalog::{Index, IndexKind, Table};
use porpoise_expr::{Expr, SlotId};

/// How a scan locks the rows that it yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowLock {
    /// Not at all: a consistent read of the snapshot.
    #[default]
    None,
    /// FOR SHARE.
    Shared(OnLocked),
    /// FOR UPDATE, and what UPDATE and DELETE read.
    Exclusive(OnLocked),
}

/// What a locking read does with a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLocked {
    /// Waits until the lock is free or `innodb_lock_wait_timeout` is over (error 1205).
    Wait,
    /// NOWAIT: error 3572.
    Fail,
    /// SKIP LOCKED: passes over the row.
    Skip,
}

/// A part of an index: rows between two bounds of its leading parts.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// Leading parts fixed to a value (`=`, or IS NULL when the flag is set: `<=>`).
    pub equal: Vec<KeyPart>,
    /// Bounds on the part after them.
    pub lower: Option<KeyBound>,
    /// The upper bound; `None`: to the end of what `equal` selects.
    pub upper: Option<KeyBound>,
}

impl KeyRange {
    /// The whole index.
    pub const ALL: KeyRange = KeyRange {
        equal: Vec::new(),
        lower: None,
        upper: None,
    };

    /// Whether it is the whole index.
    pub(crate) fn is_all(&self) -> bool {
        self.equal.is_empty() && !self.is_bounded()
    }

    /// Whether it has a bound beside its fixed parts.
    pub(crate) fn is_bounded(&self) -> bool {
        self.lower.is_some() || self.upper.is_some()
    }

    /// Whether it holds one key at most: every part of a unique index is fixed, and none may be
    /// NULL.
    pub fn is_point(&self, index: &Index) -> bool {
        index.is_unique()
            && self.equal.len() == index.parts.len()
            && self.equal.iter().all(|part| !part.null_safe)
            && index.parts.iter().all(|part| part.prefix.is_none())
    }
}

/// A leading index part that is fixed to a value.
#[derive(Clone, Debug)]
pub struct KeyPart {
    /// Evaluated once a scan is opened; reads slots filled before it.
    pub value: Expr,
    /// `<=>`: NULL matches NULL. Otherwise a NULL makes the range empty.
    pub null_safe: bool,
}

/// A bound of a range.
#[derive(Clone, Debug)]
pub struct KeyBound {
    /// Evaluated once a scan is opened; reads slots filled before it.
    pub value: Expr,
    /// `<=` or `>=`, not `<` or `>`.
    pub inclusive: bool,
}

/// How a scan reaches its rows.
#[derive(Clone, Debug)]
pub enum Access {
    /// Every row, in primary key order (`reverse` turns it round).
    Full,
    /// `index` is a position in `table.indexes`. Ranges are disjoint where they are constant; the
    /// executor orders and merges them when it has the values.
    Index {
        /// Position in `table.indexes`.
        index: usize,
        /// What is read, in the index's order.
        ranges: Vec<KeyRange>,
        /// The index's entries hold every column that the statement reads: rows are not looked up.
        covering: bool,
    },
    /// At most one row: every part of a unique index is fixed and none is NULL.
    Point {
        /// Position in `table.indexes`.
        index: usize,
        /// A value each part of the index.
        key: Vec<Expr>,
        /// The index's entry holds every column that the statement reads.
        covering: bool,
    },
    /// The rows that parts of several indexes lead to, each once, in the order of the table's
    /// keys. All keys are collected before the first row is read.
    Merge {
        /// Which of the keys are wanted.
        operation: KeyOperation,
        /// Where the keys come from: two or more.
        sources: Vec<KeySource>,
    },
    /// Rows of an index whose leading parts no condition fixes, or the ends of groups.
    Skip(Box<SkipScan>),
}

impl Access {
    /// The index that is read, if it is one alone, and whether its entries hold all that the
    /// statement reads.
    pub fn single_index(&self) -> Option<(usize, bool)> {
        match self {
            Access::Full | Access::Merge { .. } => None,
            Access::Index {
                index, covering, ..
            }
            | Access::Point {
                index, covering, ..
            } => Some((*index, *covering)),
            Access::Skip(skip) => Some((skip.index, skip.covering)),
        }
    }

    /// Whether the statement's columns are read from an index's entries.
    pub fn is_covering(&self) -> bool {
        self.single_index().is_some_and(|(_, covering)| covering)
    }
}

/// What is read of an index whose leading parts are stepped through, one combination of their
/// values after the other.
///
/// ```text
/// index (a, b), prefix 1        a:   1         2         3
///   inner (b > 5), All          b:   6 7       9         -       a skip scan
///   inner everything, Ends      b:   1   7     4   9     2       MIN(b), MAX(b) … GROUP BY a
/// ```
#[derive(Clone, Debug)]
pub struct SkipScan {
    /// Position in `table.indexes`.
    pub index: usize,
    /// How many leading parts make a combination. None: all entries are of the one combination.
    pub prefix: usize,
    /// Which combinations: ranges over those parts.
    pub ranges: Vec<KeyRange>,
    /// Which entries of a combination: ranges over the parts behind, the same for each.
    pub inner: Vec<KeyRange>,
    /// Which of these entries are wanted.
    pub taken: Taken,
    /// The index's entries hold every column that the statement reads: rows are not looked up.
    pub covering: bool,
}

impl SkipScan {
    /// Whether it leaves entries out that conditions exclude.
    pub(crate) fn has_conditions(&self) -> bool {
        let mut ranges = self.ranges.iter().chain(&self.inner);
        !ranges.all(KeyRange::is_all)
    }
}

/// Which of a combination's entries a [`SkipScan`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All.
    All,
    /// Those at the ends, which tell of the whole group.
    Ends {
        /// The first one.
        first: bool,
        /// The last one.
        last: bool,
        /// Where there are some, of those whose part behind the fixed ones isn't NULL.
        not_null: bool,
    },
}

/// Conditions on an index's entries, checked before their rows are read.
#[derive(Clone, Debug)]
pub struct IndexCondition {
    /// Where the entry is put.
    pub slot: SlotId,
    /// All must hold; they read the entry's slot in place of the row's.
    pub conditions: Vec<Expr>,
}

/// Which keys of several sources are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    /// Those of any source.
    Union,
    /// Those of all sources.
    Intersection,
}

/// Parts of an index, of which only the keys of the rows are wanted.
#[derive(Clone, Debug)]
pub struct KeySource {
    /// Position in `table.indexes`; the primary key may be one of several sources.
    pub index: usize,
    /// What is read.
    pub ranges: Vec<KeyRange>,
    /// How many parts of the index conditions fix or bound; for EXPLAIN.
    pub parts: usize,
}

impl KeySource {
    /// Whether its entries come in the order of the table's keys: one range, which fixes every part
    /// of a secondary index.
    pub(crate) fn is_in_key_order(&self, table: &Table) -> bool {
        let index = &table.indexes[self.index];
        match &self.ranges[..] {
            [_] if index.kind == IndexKind::Primary => true,
            [range] => range.equal.len() == index.parts.len(),
            _ => false,
        }
    }
}

/// A read of one table's rows.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Where each row is put.
    pub slot: SlotId,
    /// The table as it was when the plan was made.
    pub table: Arc<Table>,
    /// How the rows are reached.
    pub access: Access,
    /// From the end of the key order to its beginning.
    pub reverse: bool,
    /// How the rows are locked.
    pub lock: RowLock,
    /// Which columns the statement reads from this slot; with a covering index, all are in its
    /// entry.
    pub columns_read: Vec<bool>,
    /// Conditions that an index's entry alone decides, where rows are looked up behind it.
    pub index_condition: Option<IndexCondition>,
    /// Conditions on this table alone (and on slots filled before), checked as soon as the row is
    /// there.
    pub filter: Vec<Expr>,
    /// The planner's guess of rows read an opening, before the filter; for EXPLAIN.
    pub rows_estimate: f64,
    /// The guess of the part of them that the filter passes, 0 to 1; for EXPLAIN.
    pub filtered: f64,
    /// Indexes that conditions could use, by position; for EXPLAIN.
    pub possible_keys: Vec<usize>,
    /// How many parts of the chosen index conditions fix or bound; for EXPLAIN.
    pub key_parts_used: usize,
}
