//! The groups of an index's entries that a skip scan steps through.
//!
//! ```text
//! index (a, b)      1,4  1,7 | 2,1  2,3  2,9 | 5,2 …
//!                   ^ found, its group is 1
//!                              ^ found by what follows group 1
//! ```
//!
//! A key's parts are self-delimiting, so the bounds of the parts behind a group's are the same bytes
//! in each group: they are made once, and put behind the group's own bytes.

use std::ops::Bound;

use porpoise_catalog::{Index, Table};
use porpoise_core::error::{Error, Result};
use porpoise_expr::EvalContext;
use porpoise_planner::key_range::{self, Bounds};
use porpoise_planner::plan::{SkipScan, Taken};
use porpoise_storage::{Cursor, Direction};
use porpoise_types::key::skip_key_part;
use porpoise_types::{KeyBuf, successor_of_prefix};
use smallvec::SmallVec;

use crate::Exec;

/// A skip scan's place in its index.
pub(super) struct Leaps<'p> {
    skip: &'p SkipScan,
    table: &'p Table,
    index: &'p Index,
    /// The ranges of groups, the next one to be begun, and the end of the one that is read.
    outer: SmallVec<[Bounds; 1]>,
    at: usize,
    /// Where in the current one of `outer` the next group is looked for.
    from: Option<KeyBuf>,
    /// Where its entries are looked for, behind a group's bytes.
    inner: SmallVec<[Bounds; 1]>,
    /// The entry by which the current group was found.
    pub(super) entry: Entry,
}

/// A copy of an index's entry.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) key: KeyBuf,
    pub(super) value: Vec<u8>,
}

/// What is to be read of a group.
#[derive(Default)]
pub(super) struct Group {
    pub(super) bounds: SmallVec<[Bounds; 1]>,
    /// So many of the bounds are read forward. Of ends, the first entry found in them is wanted,
    /// and then the last one in the others.
    pub(super) forward: usize,
    /// The entry by which the group was found is the first one wanted; the bounds don't have it.
    pub(super) entry_is_first: bool,
}

impl<'p> Leaps<'p> {
    pub(super) fn open(
        exec: &mut Exec<'_>,
        skip: &'p SkipScan,
        table: &'p Table,
    ) -> Result<Leaps<'p>> {
        let index = &table.indexes[skip.index];
        let behind = &index.parts[skip.prefix..];
        let mut inner = SmallVec::new();
        if let Taken::Ends { not_null: true, .. } = skip.taken {
            for range in &skip.inner {
                inner.extend(key_range::bounds_not_null(exec, table, behind, range)?);
            }
        }
        inner.extend(key_range::all_bounds(exec, table, behind, &skip.inner)?);
        Ok(Leaps {
            skip,
            table,
            index,
            outer: key_range::all_bounds(exec, table, &index.parts, &skip.ranges)?,
            at: 0,
            from: None,
            inner,
            entry: Entry::default(),
        })
    }

    /// Goes to the next group. `None` behind the last.
    pub(super) fn next_group(&mut self, exec: &mut Exec<'_>) -> Result<Option<Group>> {
        loop {
            exec.check_interrupt()?;
            let Some(bounds) = self.outer.get(self.at) else {
                return Ok(None);
            };
            let low = self.from.as_ref().unwrap_or(&bounds.low);
            let high = bounds.high.as_deref();
            let is_passed = high.is_some_and(|high| low.as_slice() >= high);
            let found = match is_passed {
                true => None,
                false => {
                    let (low, high) = (Bound::Included(low.as_slice()), bound_of(high));
                    let space = self.index.space;
                    let cursor = exec.cursor(space, low, high, Direction::Forward, false)?;
                    self.group_of_first(cursor)?
                }
            };
            let Some(group) = found else {
                self.at += 1;
                self.from = None;
                continue;
            };
            let mut next = group.clone();
            match successor_of_prefix(&mut next) {
                true => self.from = Some(next),
                // Nothing can follow.
                false => self.at = self.outer.len(),
            }
            return Ok(Some(self.parts_of(&group)));
        }
    }

    /// The bytes of the leading parts of a cursor's first entry, which is kept.
    fn group_of_first(&mut self, mut cursor: Cursor) -> Result<Option<KeyBuf>> {
        let Some((key, value)) = cursor.next()? else {
            return Ok(None);
        };
        self.entry.key.clear();
        self.entry.key.extend_from_slice(key);
        self.entry.value.clear();
        self.entry.value.extend_from_slice(value);
        let mut len = 0;
        for part in &self.index.parts[..self.skip.prefix] {
            let column = &self.table.columns[part.column];
            let rest = &key[len..];
            len += skip_key_part(rest, &column.ty, column.nullable, part.descending)
                .ok_or_else(|| Error::engine_error("an index's key has too few parts"))?;
        }
        Ok(Some(KeyBuf::from_slice(&key[..len])))
    }

    /// What is read of a group.
    fn parts_of(&self, group: &KeyBuf) -> Group {
        let key = &self.entry.key;
        let holds_entry = |bounds: &Bounds| {
            bounds.low <= *key && bounds.high.as_ref().is_none_or(|high| key < high)
        };
        let bounds = |inner: &Bounds| {
            let mut low = group.clone();
            low.extend_from_slice(&inner.low);
            let mut high = group.clone();
            let is_bounded = match &inner.high {
                Some(end) => {
                    high.extend_from_slice(end);
                    true
                }
                None => successor_of_prefix(&mut high),
            };
            Bounds {
                low,
                high: is_bounded.then_some(high),
            }
        };
        let forward = self.inner.iter().map(bounds);
        match self.skip.taken {
            Taken::All => Group {
                bounds: forward.collect(),
                forward: self.inner.len(),
                entry_is_first: false,
            },
            Taken::Ends {
                first,
                last,
                not_null,
            } => {
                let mut group = Group::default();
                if first {
                    group.bounds.extend(forward);
                    group.entry_is_first = group.bounds.first().is_some_and(holds_entry);
                    if group.entry_is_first {
                        group.bounds.clear();
                    }
                    group.forward = group.bounds.len();
                }
                if last {
                    // Those that aren't NULL come first in any case.
                    let kept = usize::from(not_null).min(self.inner.len());
                    let (preferred, others) = self.inner.split_at(kept);
                    let backward = preferred.iter().chain(others.iter().rev());
                    group.bounds.extend(backward.map(bounds));
                }
                group
            }
        }
    }
}

fn bound_of(high: Option<&[u8]>) -> Bound<&[u8]> {
    high.map_or(Bound::Unbounded, Bound::Excluded)
}
