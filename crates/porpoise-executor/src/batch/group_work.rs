//! What a grouping has whoever has time do with a unit's rows: filter and aggregate them.
//!
//! Nothing of the session is needed for that, since only loops compute: where the row evaluator would
//! have to, there is no [`GroupWork`]. What comes of a unit is small, and is given to the statement's
//! groups in the order of the units. Where something is out of the ordinary nothing comes of it, and
//! its rows are gone through as if there were no units.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use porpoise_core::error::Result;
use porpoise_expr::SlotId;
use porpoise_planner::plan::Group;
use porpoise_storage::Rows;
use porpoise_types::vector::{ElementSlice, Elements, Kind, Vector, VectorSlice};
use porpoise_types::{KeyBuf, RowLayout};

use super::columns::{Accumulators, Column, ColumnKind, Groups};
use super::evaluator::LoopsOnly;
use super::filter::Filter;
use super::group::{GroupProgram, NOTHING};
use super::keys::spell_part;
use super::program::{Program, Register};
use super::units::{Next, Work};
use super::{RawRows, RowOf, UNIT_ROWS_MAX};
use crate::Exec;

/// What is computed of a unit.
pub(crate) struct GroupWork {
    layout: Arc<RowLayout>,
    row_of: RowOf,
    filter: Filter<'static>,
    /// The keys' program, and the register of each.
    keys: (Program<'static>, Vec<Register>),
    arguments: Program<'static>,
    /// Each aggregate's argument, and what is kept of it.
    columns: Vec<(Option<Register>, ColumnKind)>,
}

/// What has come of a unit's rows.
pub(crate) struct Computed {
    /// How many rows it had, and how many have passed.
    pub(crate) examined: usize,
    pub(crate) passed: usize,
    /// How many groups there are.
    pub(crate) groups: usize,
    keys: UnitKeys,
    columns: Vec<Column>,
}

/// The keys of a unit's groups, in the order in which they came.
#[derive(Default)]
struct UnitKeys {
    /// As [`spell`](super::KeyProgram::spell) has them, one behind the other.
    spelled: Vec<u8>,
    ends: Vec<usize>,
    /// The first row of each group: the number of its batch, and its own within that.
    first_rows: Vec<(u32, u32)>,
}

/// With fewer rows to a group than two it is no use to add them up before; that is seen once there are
/// so many rows.
const ROWS_OF_GROUPS_MIN: usize = 4096;

/// Longer keys are not kept.
const KEY_BYTES_MAX: usize = 4096;

impl GroupWork {
    /// `None` where the row evaluator has to compute something, there is nothing that is worth it, or
    /// an aggregate isn't one of those that can be put together.
    pub(crate) fn new(
        exec: &mut Exec<'_>,
        group: &Group,
        scan: &mut dyn RawRows,
    ) -> Option<GroupWork> {
        let (slot, filter, row_of) = scan.raw(exec)?;
        let aggregates = &group.aggregates;
        let program = GroupProgram::new(exec, slot, &group.keys, aggregates)?;
        let (keys, arguments, registers) = program.detached()?;
        let kinds = registers.iter().zip(aggregates);
        let columns = kinds.map(|(register, aggregate)| {
            let kind = register.map_or(Kind::Int, |register| arguments.kind(register));
            Some((*register, ColumnKind::of(aggregate, kind)?))
        });
        let columns: Vec<_> = columns.collect::<Option<_>>()?;
        let is_any = |register: &Register| keys.0.kind(*register) == Kind::Any;
        let is_work = !filter.is_empty() || keys.0.has_loops() || arguments.has_loops();
        if keys.1.iter().any(is_any) || !is_work {
            return None;
        }
        Some(GroupWork {
            layout: Arc::clone(&exec.layouts[slot.0 as usize].layout),
            row_of,
            filter,
            keys,
            arguments,
            columns,
        })
    }

    /// The slot whose rows are computed with.
    pub(crate) fn slot(&self) -> SlotId {
        self.arguments.slot
    }

    /// What of an entry is a row.
    fn row<'r>(&self, entry: &'r [u8]) -> &'r [u8] {
        self.row_of.map_or(entry, |row_of| row_of(entry))
    }

    /// How the key of a unit's group is spelled, and the group's first row.
    pub(crate) fn key<'n>(
        &self,
        next: &'n Next<GroupWork>,
        computed: &'n Computed,
        group: usize,
    ) -> (&'n [u8], &'n [u8]) {
        let (spelled, first_row) = computed.key(group);
        (spelled, self.row(next.entry(first_row)))
    }
}

impl Work for GroupWork {
    type Computed = Computed;

    fn vectors_bytes(&self) -> usize {
        let programs = self.keys.0.vectors_bytes() + self.arguments.vectors_bytes();
        self.filter.vectors_bytes() + programs
    }

    fn computed_bytes(&self) -> usize {
        const KEY_BYTES: usize = 64;
        let columns = self.columns.iter();
        let columns: usize = columns.map(|(_, kind)| kind.element_bytes()).sum();
        let is_grouped = !self.keys.1.is_empty();
        let has_all = |(_, kind): &(_, ColumnKind)| matches!(kind, ColumnKind::All);
        match is_grouped || self.columns.iter().any(has_all) {
            true => UNIT_ROWS_MAX / 2 * (columns + KEY_BYTES),
            false => columns,
        }
    }

    fn compute(&self, unit: &[Rows], is_over: &dyn Fn() -> bool) -> Option<Computed> {
        let mut by = LoopsOnly(is_over);
        let is_grouped = !self.keys.1.is_empty();
        let columns = self.columns.iter().map(|(_, kind)| Column::new(*kind));
        let mut computed = Computed {
            examined: 0,
            passed: 0,
            groups: 0,
            keys: UnitKeys::default(),
            columns: columns.collect(),
        };
        let mut lookup = Lookup::default();
        let (mut numbers, mut groups_of) = (Vec::new(), Vec::new());
        for (batch, batch_rows) in unit.iter().enumerate() {
            if (by.0)() {
                return None;
            }
            let mut rows = Vec::new();
            batch_rows.append_values(&mut rows);
            if let Some(row_of) = self.row_of {
                rows.iter_mut().for_each(|row| *row = row_of(row));
            }
            computed.examined += rows.len();
            numbers.clear();
            numbers.extend(0..rows.len() as u32);
            if !self.filter.is_empty() {
                let filter = &self.filter;
                let is_plain = filter.run(&mut by, &self.layout, &mut rows, &mut numbers);
                is_plain.ok().filter(|is_plain| *is_plain)?;
            }
            if rows.is_empty() {
                continue;
            }
            if is_grouped {
                let (program, registers) = &self.keys;
                let of = registers.iter().copied();
                let vectors = program.outputs(of, &mut by, &self.layout, &rows).ok()??;
                let parts = registers.iter();
                let parts: Option<Vec<_>> = parts.map(|part| vectors.vector(*part)).collect();
                groups_of.clear();
                let keys = &mut computed.keys;
                lookup.find(keys, &parts?, (batch as u32, &numbers), &mut groups_of)?;
                computed.groups = keys.ends.len();
            } else {
                computed.groups = 1;
            }
            let groups = Groups {
                of_rows: is_grouped.then_some(&groups_of),
                count: computed.groups,
            };
            let of = self.columns.iter().filter_map(|(register, _)| *register);
            let vectors = self.arguments.outputs(of, &mut by, &self.layout, &rows);
            let vectors = vectors.ok()??;
            for ((register, _), column) in self.columns.iter().zip(&mut computed.columns) {
                let slice = match register {
                    Some(register) => vectors.vector(*register)?.slice(0..rows.len()),
                    None => VectorSlice {
                        kind: Kind::Int,
                        elements: ElementSlice::Integers(&NOTHING[..rows.len()]),
                        nulls: &[],
                    },
                };
                column.add(slice, computed.passed as u32, &groups)?;
            }
            computed.passed += rows.len();
            if computed.passed >= ROWS_OF_GROUPS_MIN && computed.groups > computed.passed / 2 {
                return None;
            }
        }
        Some(computed)
    }
}

impl Computed {
    /// How a group's key is spelled, and its first row.
    pub(crate) fn key(&self, group: usize) -> (&[u8], (usize, usize)) {
        let (batch, row) = self.keys.first_rows[group];
        (self.keys.spelled(group), (batch as usize, row as usize))
    }

    /// Gives the groups' accumulators what the rows have come to.
    ///
    /// # Errors
    /// As [`Accumulator::add`](porpoise_expr::aggregate::Accumulator::add).
    pub(crate) fn give(&self, exec: &mut Exec<'_>, to: &mut dyn Accumulators) -> Result<()> {
        for (aggregate, column) in self.columns.iter().enumerate() {
            column.give(exec, aggregate, to)?;
        }
        Ok(())
    }
}

/// The groups' numbers, by their keys.
#[derive(Default)]
struct Lookup {
    hasher: DefaultHashBuilder,
    /// Of keys that are one integer, which isn't NULL.
    by_integer: HashMap<i64, u32, DefaultHashBuilder>,
    /// Of all others: hashes, beside the numbers.
    by_bytes: HashTable<(u64, u32)>,
    bytes: KeyBuf,
}

impl Lookup {
    /// Appends each row's group. New ones are added to the keys, with the numbers of their first rows.
    /// `None`: a key is too long.
    fn find(
        &mut self,
        keys: &mut UnitKeys,
        parts: &[&Vector<'_>],
        (batch, numbers): (u32, &[u32]),
        groups_of: &mut Vec<u32>,
    ) -> Option<()> {
        let integers = match parts {
            [
                Vector {
                    elements: Elements::Integers(integers),
                    nulls,
                    ..
                },
            ] => Some((integers, nulls)),
            _ => None,
        };
        for (row, number) in numbers.iter().enumerate() {
            let bytes = &mut self.bytes;
            let first_row = (batch, *number);
            let integer = integers.and_then(|(integers, nulls)| {
                let is_null = nulls.get(row).copied().unwrap_or(false);
                (!is_null).then_some(integers[row])
            });
            if let Some(integer) = integer {
                let add = || {
                    bytes.clear();
                    spell_part(parts[0], row, bytes);
                    keys.add(bytes, first_row)
                };
                groups_of.push(*self.by_integer.entry(integer).or_insert_with(add));
                continue;
            }
            bytes.clear();
            for part in parts {
                spell_part(part, row, bytes);
            }
            if bytes.len() > KEY_BYTES_MAX {
                return None;
            }
            let hash = self.hasher.hash_one(bytes.as_slice());
            let is_same = |(of, group): &(u64, u32)| {
                *of == hash && keys.spelled(*group as usize) == bytes.as_slice()
            };
            let group = match self.by_bytes.find(hash, is_same) {
                Some((_, group)) => *group,
                None => {
                    let group = keys.add(bytes, first_row);
                    self.by_bytes
                        .insert_unique(hash, (hash, group), |(of, _)| *of);
                    group
                }
            };
            groups_of.push(group);
        }
        Some(())
    }
}

impl UnitKeys {
    #[inline]
    fn spelled(&self, group: usize) -> &[u8] {
        let begin = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.spelled[begin..self.ends[group]]
    }

    fn add(&mut self, spelled: &[u8], first_row: (u32, u32)) -> u32 {
        self.spelled.extend_from_slice(spelled);
        self.ends.push(self.spelled.len());
        self.first_rows.push(first_row);
        self.ends.len() as u32 - 1
    }
}
