//! What an ALTER TABLE has to do to the rows: nothing, build indexes, or move every row into new
//! spaces. Rows stay as they are where columns are dropped or moved, or added that have the same value in
//! all of them ([`porpoise_types::RowLayout`]).

use std::sync::Arc;

use porpoise_catalog::record::{
    AddedRecord, ColumnRecord, DefaultRecord, DroppedRecord, IndexRecord, TableRecord,
};
use porpoise_catalog::{Column, IndexKind, Table};
use porpoise_core::error::Result;
use porpoise_executor::index_build::{IndexBuild, TableSpaces};
use porpoise_storage::SpaceId;
use porpoise_types::DataType;

use crate::{Ddl, copy};

/// What has to be done to the rows.
#[derive(Debug, PartialEq)]
pub(super) enum Work {
    Nothing,
    /// Build these indexes, by position in the new table.
    Indexes(Vec<usize>),
    Rebuild,
}

impl Work {
    pub(super) fn of(table: &Table, record: &TableRecord) -> Work {
        let mut kept = (0..record.columns.len())
            .filter_map(|at| record.columns[at].origin.map(|origin| (origin, at)));
        let keeps_columns = kept.all(|(origin, at)| keeps_rows(table, record, origin, at));
        let mut new_columns = record
            .columns
            .iter()
            .filter(|column| column.origin.is_none());
        let leaves_rows = new_columns.all(may_be_missing);
        let primary = |indexes: &[IndexRecord]| {
            indexes
                .first()
                .filter(|index| index.kind == IndexKind::Primary)
                .and_then(|index| index.origin)
        };
        let primary_kept = match (table.primary_key(), record.has_primary_key()) {
            (None, false) => true,
            (Some(_), true) => primary(&record.indexes) == Some(0),
            _ => false,
        };
        if !keeps_columns || !leaves_rows || !primary_kept {
            return Work::Rebuild;
        }
        let new: Vec<usize> = (0..record.indexes.len())
            .filter(|&at| record.indexes[at].origin.is_none())
            .collect();
        if new.is_empty() {
            Work::Nothing
        } else {
            Work::Indexes(new)
        }
    }
}

/// Whether rows may do without a new column, as its value is the same in all of them.
fn may_be_missing(column: &ColumnRecord) -> bool {
    column.generated.is_none()
        && !column.auto_increment
        && !matches!(column.default, DefaultRecord::Expression(_))
}

/// Has the columns lie where they do in the rows, in whatever order the table has them now; those that
/// it has no longer keep their room.
pub(super) fn keep_places(table: &Table, record: &mut TableRecord) {
    let lying = table.columns.iter().map(|column| column.place);
    let lying: Vec<u16> = lying
        .chain(table.dropped.iter().map(|column| column.place))
        .collect();
    let mut order: Vec<usize> = (0..lying.len()).collect();
    order.sort_by_key(|&column| lying[column]);
    let mut places = vec![0; lying.len()];
    for (place, column) in (0..).zip(order) {
        places[column] = place;
    }
    let (columns, dropped) = places.split_at(table.columns.len());
    for (column, place) in record.dropped.iter_mut().zip(dropped) {
        column.place = *place;
    }
    let steps = record.dropped.iter().map(|column| column.step);
    let step = steps.max().map_or(1, |last| last + 1);
    let is_kept = |at: usize| {
        record
            .columns
            .iter()
            .any(|column| column.origin == Some(at))
    };
    let gone = (0..table.columns.len()).filter(|&at| !is_kept(at));
    let gone: Vec<DroppedRecord> = gone
        .map(|at| {
            let Column { ty, added, .. } = &table.columns[at];
            DroppedRecord {
                ty: ty.clone(),
                added: added.as_ref().map(|added| AddedRecord::of(added, ty)),
                place: columns[at],
                step,
            }
        })
        .collect();
    record.dropped.extend(gone);
    let mut next = lying.len() as u16;
    for column in &mut record.columns {
        column.place = column.origin.map_or(next, |origin| columns[origin]);
        next += u16::from(column.origin.is_none());
    }
    // Numbers that say what the order says are left out.
    if record.dropped.is_empty() && record.columns.is_sorted_by_key(|column| column.place) {
        record
            .columns
            .iter_mut()
            .for_each(|column| column.place = 0);
    }
}

/// The step in which new columns are added to rows that stay as they are.
pub(super) fn next_step(record: &TableRecord) -> u16 {
    let added = record
        .columns
        .iter()
        .filter_map(|column| column.added.as_ref());
    let gone = record
        .dropped
        .iter()
        .filter_map(|column| column.added.as_ref());
    let last = added.chain(gone).map(|added| added.step).max();
    last.unwrap_or_default() + 1
}

/// Whether a column's stored values, in rows and in keys, are as good for its new definition.
fn keeps_rows(table: &Table, record: &TableRecord, origin: usize, at: usize) -> bool {
    let (old, new) = (&table.columns[origin], &record.columns[at]);
    let in_key = record.indexes.iter().any(|index| {
        index
            .parts
            .iter()
            .any(|part| part.column.eq_ignore_ascii_case(&new.name))
    });
    let same_generated = match (&old.generated, &new.generated) {
        (None, None) => true,
        (Some(old), Some(new)) => old.sql == new.sql && old.stored == new.stored,
        _ => false,
    };
    let nullable_ok = old.nullable == new.nullable || (new.nullable && !in_key);
    let becomes_auto = new.auto_increment && !old.auto_increment;
    same_generated && nullable_ok && !becomes_auto && keeps_values(&old.ty, &new.ty, in_key)
}

fn keeps_values(old: &DataType, new: &DataType, in_key: bool) -> bool {
    use DataType as T;
    match (old, new) {
        (old, new) if old == new => true,
        (
            T::Int {
                width: a,
                unsigned: ua,
                ..
            },
            T::Int {
                width: b,
                unsigned: ub,
                ..
            },
        ) => a == b && ua == ub,
        (
            T::Varchar {
                length: a,
                collation: ca,
            },
            T::Varchar {
                length: b,
                collation: cb,
            },
        ) => a <= b && ca == cb,
        (T::Varbinary(a), T::Varbinary(b)) => a <= b,
        (
            T::Text {
                size: a,
                collation: ca,
            },
            T::Text {
                size: b,
                collation: cb,
            },
        ) => a <= b && ca == cb,
        (T::Blob(a), T::Blob(b)) => a <= b,
        (T::Enum(a), T::Enum(b)) | (T::Set(a), T::Set(b)) => {
            !in_key && a.collation == b.collation && b.members.starts_with(&a.members)
        }
        _ => false,
    }
}

/// Whether MySQL would copy the rows into another table, and report how many there are; what it
/// does in place affects none (MySQL 8.4 manual, 17.12.1).
pub(super) fn copies_rows(table: &Table, record: &TableRecord) -> bool {
    let copied_column = |column: &ColumnRecord| {
        let stored = column.generated.as_ref().is_some_and(|new| new.stored);
        let Some(origin) = column.origin else {
            return stored || matches!(column.default, DefaultRecord::Expression(_));
        };
        let old = &table.columns[origin];
        let was_stored = old.generated.as_ref().map(|old| (old.stored, &old.sql));
        let is_stored = column.generated.as_ref().map(|new| (new.stored, &new.sql));
        let recomputed = stored && was_stored != is_stored;
        recomputed || !keeps_values(&old.ty, &column.ty, false)
    };
    let loses_primary_key = table.primary_key().is_some() && !record.has_primary_key();
    loses_primary_key || record.columns.iter().any(copied_column)
}

/// Gives new spaces where the work needs them, and returns them.
pub(super) fn place(ddl: &Ddl<'_>, record: &mut TableRecord, work: &Work) -> Vec<SpaceId> {
    let mut fresh = Vec::new();
    let mut allocate = || {
        let space = ddl.shared.store.allocate_space();
        fresh.push(space);
        space.0
    };
    let rebuild = *work == Work::Rebuild;
    if rebuild {
        record.space = allocate();
    }
    for index in &mut record.indexes {
        if index.kind == IndexKind::Primary {
            index.space = record.space;
        } else if rebuild || index.origin.is_none() {
            index.space = allocate();
        }
    }
    fresh
}

/// Fills the new spaces. Returns how many rows were copied.
pub(super) fn do_work(
    ddl: &mut Ddl<'_>,
    old: &Arc<Table>,
    new: &Arc<Table>,
    record: &TableRecord,
    work: &Work,
    checks_rows: bool,
    auto_increment: Option<u64>,
) -> Result<u64> {
    if checks_rows {
        copy::check_rows(ddl, new)?;
    }
    match work {
        Work::Nothing => Ok(0),
        Work::Indexes(positions) => {
            let mut build = IndexBuild {
                shared: ddl.shared,
                session: ddl.session,
                table: new,
                spaces: &TableSpaces::of(new),
            };
            build.build(positions)?;
            Ok(0)
        }
        Work::Rebuild => {
            let copied = copy::rebuild(ddl, old, new, record)?;
            if new.auto_increment_column().is_some() {
                let old_next = ddl.shared.store.counter(old.space);
                let next = auto_increment
                    .unwrap_or(old_next)
                    .max(copied.auto_increment_max + 1);
                let mut transaction = ddl.shared.store.begin();
                transaction.set_counter(new.space, next);
                transaction.commit()?.wait()?;
            }
            Ok(copied.rows)
        }
    }
}
