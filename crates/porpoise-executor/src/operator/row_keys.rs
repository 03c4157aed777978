//! Keys of rows, collected from several indexes, each to be read once.

use std::cmp::Ordering;
use std::ops::Bound;

use porpoise_catalog::{IndexKind, Table};
use porpoise_core::error::Result;
use porpoise_core::memory::{Arena, Charge, Place};
use porpoise_core::sort;
use porpoise_expr::EvalContext;
use porpoise_planner::plan::{KeyOperation, KeySource};
use porpoise_storage::Direction;

use crate::{Exec, index_entry, key_range};

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
#[derive(Default)]
pub(super) struct RowKeys {
    bytes: Arena,
    keys: Vec<RowKey>,
    charge: Charge,
    /// In how many sources a key has to be.
    sources_min: usize,
    at: usize,
}

impl RowKeys {
    /// Reads all sources. A source has no key twice: its ranges don't overlap.
    pub(super) fn collect(
        exec: &mut Exec<'_>,
        table: &Table,
        operation: KeyOperation,
        sources: &[KeySource],
        latest: bool,
    ) -> Result<RowKeys> {
        let mut keys = RowKeys {
            sources_min: match operation {
                KeyOperation::Union => 1,
                KeyOperation::Intersection => sources.len(),
            },
            ..RowKeys::default()
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
            let low = Bound::Included(bounds.low.as_slice());
            let high = bounds
                .high
                .as_deref()
                .map_or(Bound::Unbounded, Bound::Excluded);
            let mut cursor = exec.cursor(index.space, low, high, Direction::Forward, latest)?;
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

    /// The next key that enough sources have.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
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
