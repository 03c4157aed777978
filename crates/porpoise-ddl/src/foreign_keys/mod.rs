//! Foreign keys in definitions: what CREATE and ALTER TABLE write down, and what the tables at both
//! ends must have.
//!
//! A key lies in the child's record and names its parent. So a statement that makes, changes,
//! renames or drops a table looks at both sides:
//!
//! 1. [`lock`] takes the metadata locks of the table and of all that are tied to it.
//! 2. [`add`] and [`complete`] put keys into the record, with the indexes that find the child's
//!    rows.
//! 3. [`check_new`] compares a new key with its parent; [`check_altered`] keeps ALTER TABLE from
//!    taking away what a key needs; [`check_unreferenced`] keeps parents from being dropped.
//! 4. [`follow`] takes a parent's new names to its children, and gives every table that a new key
//!    ties together a new version, so that no statement goes on with a plan from before.
//!
//! With foreign_key_checks=0 a parent may be missing: its name is remembered, and checked when it
//! comes.

mod check;
mod follow;

use std::sync::Arc;

use compact_str::{CompactString, format_compact};
use porpoise_catalog::record::{ForeignKeyRecord, IndexRecord, PartRecord, TableRecord};
use porpoise_catalog::{IndexKind, ReferenceAction, Table};
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_mdl::{MdlTicket, Mode};
use porpoise_sql::ast;

use crate::{Ddl, Name, column, lock as metadata};

pub use check::{
    check_altered, check_awaited, check_names_are_free, check_new, check_truncated,
    check_unreferenced,
};
pub use follow::{follow, rename_in_record};

// ---------------------------------------------------------------------------------------------------------
// Locks
// ---------------------------------------------------------------------------------------------------------

/// A table's parents and children that exist, those included that new keys name.
fn related(ddl: &Ddl<'_>, name: &Name, parents: &[Name]) -> Vec<Name> {
    let catalog = ddl.shared.catalog.load();
    let own = catalog.base_table(&name.schema, &name.table);
    let named = own.iter().flat_map(|table| {
        table.foreign_keys.iter().map(|key| Name {
            schema: key.parent_schema.clone(),
            table: key.parent_table.clone(),
        })
    });
    let mut names: Vec<Name> = named.chain(parents.iter().cloned()).collect();
    names.retain(|parent| {
        catalog.base_table(&parent.schema, &parent.table).is_some()
            && ddl.temporary(parent).is_none()
    });
    let children = catalog.children(&name.schema, &name.table);
    names.extend(children.iter().map(|child| name_of(child)));
    names.sort();
    names.dedup();
    names
}

fn name_of(table: &Table) -> Name {
    Name {
        schema: table.schema.clone(),
        table: table.name.clone(),
    }
}

/// Locks a table, if it exists, with all that keys tie it to. The table comes first.
pub fn lock(
    ddl: &Ddl<'_>,
    name: &Name,
    exists: bool,
    parents: &[Name],
    mode: Mode,
) -> Result<(Vec<Arc<Table>>, MdlTicket)> {
    loop {
        let related = related(ddl, name, parents);
        let mut wanted = related.clone();
        wanted.retain(|other| other != name);
        if exists {
            wanted.insert(0, name.clone());
        }
        match metadata::tables(ddl, &wanted, mode) {
            Err(error)
                if error.is(ErrorKind::NoSuchTable)
                    && related != self::related(ddl, name, parents) => {}
            Err(error) => return Err(error),
            // Another statement may have tied more tables together before the locks were had.
            Ok(held) if related == self::related(ddl, name, parents) => return Ok(held),
            Ok(_) => {}
        }
    }
}

/// The parents that the keys of a statement name.
pub fn named_parents<'a>(
    keys: impl IntoIterator<Item = &'a ast::ForeignKey>,
    schema: &CompactString,
) -> Vec<Name> {
    let name = |key: &ast::ForeignKey| {
        let parent = &key.references.table;
        Name {
            schema: parent
                .schema
                .as_ref()
                .map_or_else(|| schema.clone(), |schema| schema.0.clone()),
            table: parent.name.0.clone(),
        }
    };
    keys.into_iter().map(name).collect()
}

// ---------------------------------------------------------------------------------------------------------
// Into the record
// ---------------------------------------------------------------------------------------------------------

fn action(written: Option<ast::ReferenceAction>) -> Result<ReferenceAction> {
    Ok(match written {
        None | Some(ast::ReferenceAction::NoAction) => ReferenceAction::NoAction,
        Some(ast::ReferenceAction::Restrict) => ReferenceAction::Restrict,
        Some(ast::ReferenceAction::Cascade) => ReferenceAction::Cascade,
        Some(ast::ReferenceAction::SetNull) => ReferenceAction::SetNull,
        Some(ast::ReferenceAction::SetDefault) => return Err(Error::cannot_add_foreign_key()),
    })
}

/// Adds a key as it is written, with an index of its own that [`complete`] may find to be needless.
pub fn add(record: &mut TableRecord, def: &ast::ForeignKey) -> Result<()> {
    if record.temporary {
        return Err(Error::cannot_add_foreign_key());
    }
    let name = match &def.name {
        Some(name) if name.chars().count() > 64 => {
            return Err(Error::identifier_too_long(name.as_str()));
        }
        Some(name) => CompactString::from(name.as_str()),
        None => CompactString::default(),
    };
    if def.columns.len() != def.references.columns.len() {
        let name = if name.is_empty() {
            "foreign key without name"
        } else {
            &name
        };
        return Err(Error::wrong_foreign_key(
            name,
            "Key reference and table reference don't match",
        ));
    }
    for (position, column) in def.columns.iter().enumerate() {
        if def.columns[..position]
            .iter()
            .any(|earlier| earlier.eq_ignore_ascii_case(column))
        {
            return Err(Error::duplicate_column(column.as_str()));
        }
    }
    let columns: Vec<CompactString> = def
        .columns
        .iter()
        .map(|column| column.as_str().into())
        .collect();
    let index_name = def.name.as_ref().or(def.index_name.as_ref());
    record.indexes.push(IndexRecord {
        name: index_name.map_or_else(CompactString::default, |name| name.as_str().into()),
        space: 0,
        kind: IndexKind::NonUnique,
        parts: columns
            .iter()
            .map(|column| PartRecord {
                column: column.clone(),
                prefix: None,
                descending: false,
            })
            .collect(),
        invisible: false,
        comment: String::new(),
        algorithm: None,
        implicit: true,
        origin: None,
    });
    let parent = &def.references.table;
    record.foreign_keys.push(ForeignKeyRecord {
        name,
        columns,
        parent_schema: parent
            .schema
            .as_ref()
            .map_or_else(|| record.schema.clone(), |schema| schema.0.clone()),
        parent_table: parent.name.0.clone(),
        parent_columns: def
            .references
            .columns
            .iter()
            .map(|column| column.as_str().into())
            .collect(),
        on_delete: action(def.references.on_delete)?,
        on_update: action(def.references.on_update)?,
        is_old: false,
    });
    Ok(())
}

/// Whether an index finds rows by these columns: whole, in this order, first of all.
fn serves(index: &IndexRecord, columns: &[CompactString]) -> bool {
    index.parts.len() >= columns.len()
        && index
            .parts
            .iter()
            .zip(columns)
            .all(|(part, column)| part.prefix.is_none() && part.column.eq_ignore_ascii_case(column))
}

/// Names the keys, and drops indexes made for keys that others serve as well. Comes before the
/// indexes are named.
pub fn complete(record: &mut TableRecord) -> Result<()> {
    if record.foreign_keys.is_empty() && record.indexes.iter().all(|index| !index.implicit) {
        return Ok(());
    }
    let prefix = format_compact!("{}_ibfk_", record.name);
    let numbered =
        |key: &ForeignKeyRecord| key.name.strip_prefix(prefix.as_str())?.parse::<u32>().ok();
    let mut next = record
        .foreign_keys
        .iter()
        .filter_map(numbered)
        .max()
        .unwrap_or(0);
    for position in 0..record.foreign_keys.len() {
        let key = &record.foreign_keys[position];
        if key.is_old {
            continue;
        }
        let mut columns = Vec::with_capacity(key.columns.len());
        for column in &key.columns {
            let at = record
                .column_position(column)
                .ok_or_else(|| Error::key_column_missing(column))?;
            columns.push(record.columns[at].name.clone());
        }
        let name = if key.name.is_empty() {
            next += 1;
            format_compact!("{prefix}{next}")
        } else {
            column::check_name(&key.name)?;
            key.name.clone()
        };
        let taken = |other: &ForeignKeyRecord| other.name.eq_ignore_ascii_case(&name);
        if record.foreign_keys[..position].iter().any(taken) {
            return Err(Error::duplicate_foreign_key(&name));
        }
        let key = &mut record.foreign_keys[position];
        (key.name, key.columns) = (name, columns);
    }
    let mut position = 0;
    while position < record.indexes.len() {
        let index = &record.indexes[position];
        let columns: Vec<CompactString> =
            index.parts.iter().map(|part| part.column.clone()).collect();
        let replaced = index.implicit
            && record.indexes.iter().enumerate().any(|(at, other)| {
                let longer = other.parts.len() > columns.len();
                let descends = |part: &PartRecord| part.descending;
                at != position
                    && serves(other, &columns)
                    && !other.parts[..columns.len()].iter().any(descends)
                    && (!other.implicit || longer || at < position)
            });
        if replaced {
            record.indexes.remove(position);
        } else {
            position += 1;
        }
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------
// Checks
// ---------------------------------------------------------------------------------------------------------

/// What ALTER TABLE did to the names that keys use.
#[derive(Default)]
pub struct Renames {
    /// Old and new names of columns. All are renamed at once: two may exchange their names.
    pub columns: Vec<(CompactString, CompactString)>,
}

impl Renames {
    /// A column's name now.
    pub fn now(&self, name: &CompactString) -> CompactString {
        let mut renamed = self.columns.iter();
        let found = renamed.find(|(old, _)| name.eq_ignore_ascii_case(old));
        found.map_or_else(|| name.clone(), |(_, new)| new.clone())
    }
}
