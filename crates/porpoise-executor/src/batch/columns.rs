//! What aggregates come to within a unit of rows: a column for each, with an element for each group.
//!
//! Exact sums, counts and extremes of a unit are given to the accumulators of its groups as they are.
//! A sum of doubles depends on their order: they are kept, in the order of their rows, and added one
//! by one.

use std::cmp::Ordering;

use porpoise_core::error::Result;
use porpoise_expr::Domain;
use porpoise_expr::aggregate::{Accumulator, Aggregate, Total};
use porpoise_types::vector::{ElementSlice, Kind, VectorSlice};
use porpoise_types::{Collation, Value};

use crate::Exec;

/// What is kept of an aggregate's arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum ColumnKind {
    /// How many are not NULL.
    Count,
    /// That, and what they add up to.
    Sum(Kind),
    /// The first that none is better than.
    Best(Kind, Ordering),
    BestText(Collation, Ordering),
    /// All, as doubles.
    All,
}

impl ColumnKind {
    /// What has to be kept of arguments of a kind; `None` for aggregates of which that isn't known.
    pub(super) fn of(aggregate: &Aggregate, kind: Kind) -> Option<ColumnKind> {
        if aggregate.distinct {
            return None;
        }
        let wanted = match aggregate.function.name {
            "COUNT" => return Some(ColumnKind::Count),
            "SUM" | "AVG" if kind.scale().is_some() => return Some(ColumnKind::Sum(kind)),
            "SUM" | "AVG" | "STD" | "STDDEV" | "STDDEV_POP" | "STDDEV_SAMP" | "VARIANCE"
            | "VAR_POP" | "VAR_SAMP"
                if kind == Kind::Double =>
            {
                return Some(ColumnKind::All);
            }
            "MIN" => Ordering::Less,
            "MAX" => Ordering::Greater,
            _ => return None,
        };
        match kind {
            Kind::Any => None,
            Kind::Text => match Domain::of(&aggregate.arguments.first()?.ty) {
                Domain::Text(collation) => Some(ColumnKind::BestText(collation, wanted)),
                _ => None,
            },
            kind => Some(ColumnKind::Best(kind, wanted)),
        }
    }

    /// What a group's element takes at most, in bytes, beside texts; of doubles, so many rows'.
    pub(super) fn element_bytes(self) -> usize {
        match self {
            ColumnKind::Count => size_of::<u64>(),
            ColumnKind::Sum(_) => size_of::<i128>() + size_of::<u64>(),
            ColumnKind::Best(..) | ColumnKind::BestText(..) => size_of::<Option<Best<Vec<u8>>>>(),
            ColumnKind::All => 2 * (size_of::<f64>() + size_of::<u32>()),
        }
    }
}

/// A value that is better than those of other rows, and the number of its row.
#[derive(Clone, Debug)]
pub(super) struct Best<T> {
    value: T,
    row: u32,
}

/// An aggregate's elements, by group.
pub(super) enum Column {
    Counts(Vec<u64>),
    Sums {
        kind: Kind,
        sums: Vec<i128>,
        counts: Vec<u64>,
    },
    Integers {
        kind: Kind,
        wanted: Ordering,
        best: Vec<Option<Best<i64>>>,
    },
    Doubles {
        wanted: Ordering,
        best: Vec<Option<Best<f64>>>,
    },
    Texts {
        collation: Collation,
        wanted: Ordering,
        best: Vec<Option<Best<Vec<u8>>>>,
    },
    All {
        values: Vec<f64>,
        groups: Vec<u32>,
    },
}

/// Comparing longer texts may take long.
const TEXT_BYTES_MAX: usize = porpoise_types::cancel::SHORT_BYTES;

impl Column {
    pub(super) fn new(kind: ColumnKind) -> Column {
        match kind {
            ColumnKind::Count => Column::Counts(Vec::new()),
            ColumnKind::Sum(kind) => Column::Sums {
                kind,
                sums: Vec::new(),
                counts: Vec::new(),
            },
            ColumnKind::Best(Kind::Double, wanted) => Column::Doubles {
                wanted,
                best: Vec::new(),
            },
            ColumnKind::Best(kind, wanted) => Column::Integers {
                kind,
                wanted,
                best: Vec::new(),
            },
            ColumnKind::BestText(collation, wanted) => Column::Texts {
                collation,
                wanted,
                best: Vec::new(),
            },
            ColumnKind::All => Column::All {
                values: Vec::new(),
                groups: Vec::new(),
            },
        }
    }

    /// Takes the arguments of rows, the first of which has a number within the unit. `groups` has each
    /// row's group, of which there are so many by now. `None`: something is out of the ordinary.
    pub(super) fn add(
        &mut self,
        arguments: VectorSlice<'_>,
        first_row: u32,
        groups: &Groups<'_>,
    ) -> Option<()> {
        let rows = 0..arguments.len();
        let rows = rows.filter(|row| !arguments.is_null(*row));
        match (self, arguments.elements) {
            (Column::Counts(counts), _) => {
                counts.resize(groups.count, 0);
                match groups.of_rows {
                    None => counts[0] += arguments.count() as u64,
                    Some(_) => rows.for_each(|row| counts[groups.of(row)] += 1),
                }
            }
            (Column::Sums { kind, sums, counts }, ElementSlice::Integers(integers)) => {
                debug_assert_eq!(*kind, arguments.kind);
                sums.resize(groups.count, 0);
                counts.resize(groups.count, 0);
                match groups.of_rows {
                    None if arguments.nulls.is_empty() => {
                        let mut sum = 0;
                        integers.iter().for_each(|v| sum += i128::from(*v));
                        sums[0] += sum;
                        counts[0] += integers.len() as u64;
                    }
                    _ => rows.for_each(|row| {
                        sums[groups.of(row)] += i128::from(integers[row]);
                        counts[groups.of(row)] += 1;
                    }),
                }
            }
            (Column::Integers { wanted, best, .. }, ElementSlice::Integers(integers)) => {
                best.resize_with(groups.count, || None);
                for row in rows {
                    let is_better = |a: &i64, b: &i64| a.cmp(b) == *wanted;
                    let place = &mut best[groups.of(row)];
                    keep_better(place, integers[row], first_row + row as u32, is_better);
                }
            }
            (Column::Doubles { wanted, best }, ElementSlice::Doubles(doubles)) => {
                best.resize_with(groups.count, || None);
                for row in rows {
                    let is_better = |a: &f64, b: &f64| a.partial_cmp(b) == Some(*wanted);
                    let place = &mut best[groups.of(row)];
                    keep_better(place, doubles[row], first_row + row as u32, is_better);
                }
            }
            (
                Column::Texts {
                    collation,
                    wanted,
                    best,
                },
                ElementSlice::Texts(texts),
            ) => {
                best.resize_with(groups.count, || None);
                for row in rows {
                    let (text, place) = (texts[row], &mut best[groups.of(row)]);
                    if text.len() > TEXT_BYTES_MAX {
                        return None;
                    }
                    let row = first_row + row as u32;
                    match place {
                        None => {
                            let value = text.to_vec();
                            *place = Some(Best { value, row });
                        }
                        Some(best) if collation.compare(text, &best.value) == *wanted => {
                            best.value.clear();
                            best.value.extend_from_slice(text);
                            best.row = row;
                        }
                        Some(_) => {}
                    }
                }
            }
            (Column::All { values, groups: of }, ElementSlice::Doubles(doubles)) => {
                for row in rows {
                    values.push(doubles[row]);
                    if groups.of_rows.is_some() {
                        of.push(groups.of(row) as u32);
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Gives the groups' accumulators of an aggregate what the rows have come to.
    ///
    /// # Errors
    /// As [`Accumulator::add`].
    pub(super) fn give(
        &self,
        exec: &mut Exec<'_>,
        aggregate: usize,
        to: &mut dyn Accumulators,
    ) -> Result<()> {
        match self {
            Column::Counts(counts) => {
                for (group, count) in counts.iter().enumerate() {
                    let total = Total {
                        kind: Kind::Int,
                        sum: 0,
                        count: *count,
                    };
                    to.of(group, aggregate).add_total(total)?;
                }
            }
            Column::Sums { kind, sums, counts } => {
                for (group, (sum, count)) in sums.iter().zip(counts).enumerate() {
                    let total = Total {
                        kind: *kind,
                        sum: *sum,
                        count: *count,
                    };
                    to.of(group, aggregate).add_total(total)?;
                }
            }
            Column::Integers { kind, best, .. } => {
                for (group, best) in in_order(best) {
                    let elements = ElementSlice::Integers(std::slice::from_ref(&best.value));
                    add_slice(exec, to.of(group, aggregate), *kind, elements)?;
                }
            }
            Column::Doubles { best, .. } => {
                for (group, best) in in_order(best) {
                    let elements = ElementSlice::Doubles(std::slice::from_ref(&best.value));
                    add_slice(exec, to.of(group, aggregate), Kind::Double, elements)?;
                }
            }
            Column::Texts { best, .. } => {
                for (group, best) in in_order(best) {
                    let text = [&best.value[..]];
                    let elements = ElementSlice::Texts(&text);
                    add_slice(exec, to.of(group, aggregate), Kind::Text, elements)?;
                }
            }
            Column::All { values, groups } if groups.is_empty() && !values.is_empty() => {
                let elements = ElementSlice::Doubles(values);
                add_slice(exec, to.of(0, aggregate), Kind::Double, elements)?;
            }
            Column::All { values, groups } => {
                for (value, group) in values.iter().zip(groups) {
                    let elements = ElementSlice::Doubles(std::slice::from_ref(value));
                    let to = to.of(*group as usize, aggregate);
                    add_slice(exec, to, Kind::Double, elements)?;
                }
            }
        }
        Ok(())
    }
}

/// The accumulators of a unit's groups.
pub(crate) trait Accumulators {
    /// That of an aggregate, for a group that has this number within the unit.
    fn of(&mut self, group: usize, aggregate: usize) -> &mut dyn Accumulator;
}

/// Which groups rows belong to.
pub(super) struct Groups<'g> {
    /// `None`: all to the first.
    pub(super) of_rows: Option<&'g [u32]>,
    pub(super) count: usize,
}

impl Groups<'_> {
    #[inline]
    fn of(&self, row: usize) -> usize {
        self.of_rows.map_or(0, |groups| groups[row] as usize)
    }
}

#[inline]
fn keep_better<T>(
    place: &mut Option<Best<T>>,
    value: T,
    row: u32,
    is_better: impl Fn(&T, &T) -> bool,
) {
    if place
        .as_ref()
        .is_none_or(|best| is_better(&value, &best.value))
    {
        *place = Some(Best { value, row });
    }
}

/// The best of each group, in the order of their rows: groups of a unit may turn out to be one, and of
/// equal ones the first is kept.
fn in_order<T>(best: &[Option<Best<T>>]) -> Vec<(usize, &Best<T>)> {
    let there = best.iter().enumerate();
    let there = there.filter_map(|(group, best)| Some((group, best.as_ref()?)));
    let mut there: Vec<(usize, &Best<T>)> = there.collect();
    there.sort_unstable_by_key(|(_, best)| best.row);
    there
}

fn add_slice(
    exec: &mut Exec<'_>,
    to: &mut dyn Accumulator,
    kind: Kind,
    elements: ElementSlice<'_>,
) -> Result<()> {
    let slice = VectorSlice {
        kind,
        elements,
        nulls: &[],
    };
    if to.add_vector(slice)? {
        return Ok(());
    }
    for row in 0..slice.len() {
        let value: Value = slice.value(row);
        to.add(exec, &[value])?;
    }
    Ok(())
}
