//! Keys of rows that several indexes tell, each to be read once.

use std::cmp::Ordering;
use std::ops::Bound;

use porpoise_catalog::{IndexKind, Table, index_entry};
use porpoise_core::error::Result;
use porpoise_core::memory::{Arena, Charge, Place};
use porpoise_core::sort;
use porpoise_expr::EvalContext;
use porpoise_planner::key_range::{self, Bounds};
use porpoise_planner::plan::{KeyOperation, KeySource};
use porpoise_storage::{Cursor, Direction, SpaceId};
use porpoise_types::KeyBuf;

use crate::Exec;

/// How many keys may be sorted without a look whether the statement is to end.
const KEYS_RUN: usize = 1 << 16;

/// A key that was collected.
#[derive(Clone, Copy)]
struct RowKey {
    /// Its first bytes, which tell most keys apart.
    prefix: u64,
    place: Place,
    len: u32,
    /// How many were collected before it.
    number: u32,
}

/// The keys that a set operation leaves of those of several sources, in order.
pub(super) enum RowKeys {
    /// Read to their end, and sorted.
    Collected(CollectedKeys),
    /// Read as they are asked for.
    Merged(MergedKeys),
}

impl RowKeys {
    /// Opens all sources. A source has no key twice: its ranges don't overlap. `latest`: what they
    /// have is read now, and locked later.
    pub(super) fn open(
        exec: &mut Exec<'_>,
        table: &Table,
        operation: KeyOperation,
        sources: &[KeySource],
        latest: bool,
    ) -> Result<RowKeys> {
        let sources_min = match operation {
            KeyOperation::Union => 1,
            KeyOperation::Intersection => sources.len(),
        };
        if !latest && MergedKeys::may_read(table, sources) {
            let merged = MergedKeys::open(exec, table, sources, sources_min)?;
            return Ok(RowKeys::Merged(merged));
        }
        let collected = CollectedKeys::read(exec, table, sources, sources_min, latest)?;
        Ok(RowKeys::Collected(collected))
    }

    /// The next key that enough sources have.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        match self {
            RowKeys::Collected(keys) => Ok(keys.next()),
            RowKeys::Merged(keys) => keys.next(),
        }
    }
}

/// Keys of ranges that each have them in order: those of one value in all parts of an index, behind
/// which the entries are ordered by the primary key. They are merged as they are asked for, so a
/// LIMIT leaves most of them unread.
pub(super) struct MergedKeys {
    heads: Vec<Head>,
    /// In how many sources a key has to be.
    sources_min: usize,
    key: KeyBuf,
}

/// The next key of a range.
struct Head {
    cursor: Cursor,
    is_primary: bool,
    key: KeyBuf,
}

/// More ranges are not merged: each key would be compared with too many others.
const MERGED_MAX: usize = 16;

impl Head {
    /// Takes the next key; false where there is none.
    fn advance(&mut self) -> Result<bool> {
        let Some((key, value)) = self.cursor.next()? else {
            return Ok(false);
        };
        let key = match self.is_primary {
            true => key,
            false => index_entry::split(value).0,
        };
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(true)
    }
}

impl MergedKeys {
    /// Whether each range has its keys in order.
    fn may_read(table: &Table, sources: &[KeySource]) -> bool {
        let is_in_order = |source: &KeySource| {
            let parts = table.indexes[source.index].parts.len();
            let mut ranges = source.ranges.iter();
            ranges.all(|range| {
                let is_bounded = range.lower.is_some() || range.upper.is_some();
                range.equal.len() == parts && !is_bounded
            })
        };
        let count: usize = sources.iter().map(|source| source.ranges.len()).sum();
        count <= MERGED_MAX && sources.iter().all(is_in_order)
    }

    fn open(
        exec: &mut Exec<'_>,
        table: &Table,
        sources: &[KeySource],
        sources_min: usize,
    ) -> Result<MergedKeys> {
        let mut heads = Vec::new();
        for source in sources {
            let index = &table.indexes[source.index];
            let is_primary = index.kind == IndexKind::Primary;
            let space = if is_primary { table.space } else { index.space };
            let mut bounds: Vec<Bounds> = Vec::new();
            for range in &source.ranges {
                bounds.extend(key_range::bounds(exec, table, &index.parts, range)?);
            }
            // A value that is named twice has its keys once.
            bounds.sort_by(|a, b| a.low.cmp(&b.low));
            bounds.dedup();
            for bounds in bounds {
                let mut head = Head {
                    cursor: open_cursor(exec, space, &bounds, false)?,
                    is_primary,
                    key: KeyBuf::new(),
                };
                if head.advance()? {
                    heads.push(head);
                }
            }
        }
        Ok(MergedKeys {
            heads,
            sources_min,
            key: KeyBuf::new(),
        })
    }

    fn next(&mut self) -> Result<Option<&[u8]>> {
        loop {
            let Some(least) = self.heads.iter().map(|head| &head.key).min() else {
                return Ok(None);
            };
            self.key.clone_from(least);
            let mut count = 0;
            let mut at = 0;
            while let Some(head) = self.heads.get_mut(at) {
                if head.key != self.key {
                    at += 1;
                    continue;
                }
                count += 1;
                match head.advance()? {
                    true => at += 1,
                    false => drop(self.heads.swap_remove(at)),
                }
            }
            if count >= self.sources_min {
                return Ok(Some(&self.key));
            }
        }
    }
}

fn open_cursor(exec: &Exec<'_>, space: SpaceId, bounds: &Bounds, latest: bool) -> Result<Cursor> {
    let low = Bound::Included(bounds.low.as_slice());
    let high = bounds
        .high
        .as_deref()
        .map_or(Bound::Unbounded, Bound::Excluded);
    exec.cursor(space, low, high, Direction::Forward, latest)
}

/// Keys that were read and sorted.
#[derive(Default)]
pub(super) struct CollectedKeys {
    bytes: Arena,
    keys: Vec<RowKey>,
    charge: Charge,
    /// In how many sources a key has to be.
    sources_min: usize,
    at: usize,
}

impl CollectedKeys {
    /// Reads all sources.
    fn read(
        exec: &mut Exec<'_>,
        table: &Table,
        sources: &[KeySource],
        sources_min: usize,
        latest: bool,
    ) -> Result<CollectedKeys> {
        let mut keys = CollectedKeys {
            sources_min,
            ..CollectedKeys::default()
        };
        for source in sources {
            keys.add(exec, table, source, latest)?;
        }
        let bytes = &keys.bytes;
        let order = |a: &RowKey, b: &RowKey| compare(bytes, a, b).then(a.number.cmp(&b.number));
        sort::sort(&mut keys.keys, KEYS_RUN, order, || exec.check_interrupt())?;
        Ok(keys)
    }

    fn add(
        &mut self,
        exec: &mut Exec<'_>,
        table: &Table,
        source: &KeySource,
        latest: bool,
    ) -> Result<()> {
        let index = &table.indexes[source.index];
        for bounds in key_range::all_bounds(exec, table, &index.parts, &source.ranges)? {
            let mut cursor = open_cursor(exec, index.space, &bounds, latest)?;
            while let Some((key, value)) = cursor.next()? {
                exec.check_interrupt()?;
                let key = match index.kind {
                    IndexKind::Primary => key,
                    _ => index_entry::split(value).0,
                };
                self.push(exec, key)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, exec: &Exec<'_>, key: &[u8]) -> Result<()> {
        let account = &exec.session.memory;
        self.charge.reserve(account, &mut self.keys, 1)?;
        let mut prefix = [0; size_of::<u64>()];
        let head = key.len().min(prefix.len());
        prefix[..head].copy_from_slice(&key[..head]);
        self.keys.push(RowKey {
            prefix: u64::from_be_bytes(prefix),
            place: self.bytes.push(account, key)?,
            len: key.len() as u32,
            number: self.keys.len() as u32,
        });
        Ok(())
    }

    fn next(&mut self) -> Option<&[u8]> {
        loop {
            let first = *self.keys.get(self.at)?;
            let rest = &self.keys[self.at..];
            let same = rest
                .iter()
                .take_while(|key| compare(&self.bytes, key, &first).is_eq());
            let count = same.count();
            self.at += count;
            if count >= self.sources_min {
                return Some(bytes_of(&self.bytes, &first));
            }
        }
    }
}

fn bytes_of<'b>(bytes: &'b Arena, key: &RowKey) -> &'b [u8] {
    &bytes.from(key.place)[..key.len as usize]
}

fn compare(bytes: &Arena, a: &RowKey, b: &RowKey) -> Ordering {
    let by_prefix = a.prefix.cmp(&b.prefix);
    by_prefix.then_with(|| bytes_of(bytes, a).cmp(bytes_of(bytes, b)))
}
