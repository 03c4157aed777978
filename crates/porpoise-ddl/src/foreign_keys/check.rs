//! What the tables at both ends of a foreign key must have, and what statements must not take from
//! them.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::record::{ForeignKeyRecord, IndexRecord, TableRecord};
use porpoise_catalog::{Catalog, IndexKind, ReferenceAction, SchemaEntry, Table};
use porpoise_core::error::{Error, Result};
use porpoise_core::quote;
use porpoise_types::DataType;

use super::{Renames, serves};
use crate::Ddl;

/// Whether values of two columns can be equal by their keys alone.
fn compatible(a: &DataType, b: &DataType) -> bool {
    use DataType as T;
    match (a, b) {
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
            T::Decimal {
                precision: a,
                scale: sa,
                ..
            },
            T::Decimal {
                precision: b,
                scale: sb,
                ..
            },
        ) => a == b && sa == sb,
        (T::Float { .. }, T::Float { .. }) | (T::Double { .. }, T::Double { .. }) => true,
        (
            T::Char { collation: a, .. } | T::Varchar { collation: a, .. },
            T::Char { collation: b, .. } | T::Varchar { collation: b, .. },
        ) => a == b,
        (T::Binary(_) | T::Varbinary(_), T::Binary(_) | T::Varbinary(_)) => true,
        (T::Enum(a), T::Enum(b)) | (T::Set(a), T::Set(b)) => a.collation == b.collation,
        (a, b) => a == b,
    }
}

/// Whether a compatible type holds all values of the old one, in the form they have: a VARCHAR or
/// VARBINARY may grow, an ENUM or SET may get further members.
fn widens(old: &DataType, new: &DataType) -> bool {
    use DataType as T;
    match (old, new) {
        (T::Varchar { length: old, .. }, T::Varchar { length: new, .. })
        | (T::Varbinary(old), T::Varbinary(new)) => new >= old,
        (T::Char { length: old, .. }, T::Char { length: new, .. })
        | (T::Binary(old), T::Binary(new)) => new == old,
        (T::Char { .. } | T::Varchar { .. }, _) | (T::Binary(_) | T::Varbinary(_), _) => false,
        (T::Enum(old), T::Enum(new)) | (T::Set(old), T::Set(new)) => {
            new.members.starts_with(&old.members)
        }
        _ => true,
    }
}

/// Checks new keys of a record against their parents. The tables are locked.
pub fn check_new(ddl: &Ddl<'_>, record: &TableRecord) -> Result<()> {
    let catalog = ddl.shared.catalog.load();
    for key in record.foreign_keys.iter().filter(|key| !key.is_old) {
        check_columns(record, key)?;
        if key.parent_table == record.name && key.parent_schema == record.schema {
            check_parent(ddl, record, key, record)?;
            continue;
        }
        match catalog.base_table(&key.parent_schema, &key.parent_table) {
            Some(parent) => check_parent(ddl, record, key, &TableRecord::of(&parent))?,
            None if ddl.session.foreign_key_checks => {
                return Err(Error::foreign_key_no_parent(&key.parent_table));
            }
            None => {}
        }
    }
    Ok(())
}

/// Checks a new table against the keys that waited for it.
pub fn check_awaited(ddl: &Ddl<'_>, record: &TableRecord) -> Result<()> {
    let catalog = ddl.shared.catalog.load();
    for child in catalog.children(&record.schema, &record.name) {
        let child = TableRecord::of(&child);
        for key in &child.foreign_keys {
            if key.parent_table == record.name && key.parent_schema == record.schema {
                check_parent(ddl, &child, key, record)?;
            }
        }
    }
    Ok(())
}

fn check_columns(record: &TableRecord, key: &ForeignKeyRecord) -> Result<()> {
    for name in &key.columns {
        let Some(at) = record.column_position(name) else {
            continue;
        };
        let column = &record.columns[at];
        let nulls = [
            ("ON DELETE SET NULL", key.on_delete),
            ("ON UPDATE SET NULL", key.on_update),
        ];
        if !column.nullable
            && nulls
                .iter()
                .any(|(_, action)| *action == ReferenceAction::SetNull)
        {
            return Err(Error::foreign_key_column_not_null(&column.name, &key.name));
        }
        if let Some(generated) = &column.generated {
            if !generated.stored {
                return Err(Error::foreign_key_virtual_column(&key.name, &column.name));
            }
            let set_null = nulls
                .iter()
                .find(|(_, action)| *action == ReferenceAction::SetNull);
            if let Some((clause, _)) = set_null {
                return Err(Error::foreign_key_generated_column(clause));
            }
            if key.on_update == ReferenceAction::Cascade {
                return Err(Error::foreign_key_generated_column("ON UPDATE CASCADE"));
            }
        }
    }
    Ok(())
}

fn check_parent(
    ddl: &Ddl<'_>,
    record: &TableRecord,
    key: &ForeignKeyRecord,
    parent: &TableRecord,
) -> Result<()> {
    for (name, parent_name) in key.columns.iter().zip(&key.parent_columns) {
        let Some(at) = parent.column_position(parent_name) else {
            return Err(Error::foreign_key_no_column(
                parent_name,
                &key.name,
                &parent.name,
            ));
        };
        let own = record.column_position(name).map(|at| &record.columns[at]);
        if own.is_none_or(|own| !compatible(&own.ty, &parent.columns[at].ty)) {
            return Err(Error::foreign_key_incompatible(
                name,
                parent_name,
                &key.name,
            ));
        }
    }
    let mut serving = parent
        .indexes
        .iter()
        .filter(|index| serves(index, &key.parent_columns))
        .peekable();
    if serving.peek().is_none() {
        return Err(Error::foreign_key_no_index(&key.name, &parent.name));
    }
    let exact = |index: &IndexRecord| {
        index.kind != IndexKind::NonUnique && index.parts.len() == key.parent_columns.len()
    };
    if ddl.session.restrict_fk_on_non_standard_key && !serving.any(exact) {
        return Err(Error::foreign_key_no_unique(&key.name, &parent.name));
    }
    Ok(())
}

/// A table before and after an ALTER TABLE, as its foreign keys see it.
struct Alteration<'a> {
    table: &'a Table,
    record: &'a TableRecord,
    renames: &'a Renames,
    /// foreign_key_checks: with it, no type may change; without, new types must fit.
    checks: bool,
}

impl Alteration<'_> {
    /// Whether a column lost the type that keys need, or cannot hold all its old values.
    fn changed(&self, name: &str) -> bool {
        self.record.column_position(name).is_some_and(|at| {
            let column = &self.record.columns[at];
            column.origin.is_some_and(|origin| {
                let old = &self.table.columns[origin].ty;
                !compatible(old, &column.ty) || !widens(old, &column.ty)
            })
        })
    }

    /// Refuses the loss of the index that finds rows by a key's columns (1553).
    fn check_index(&self, columns: &[CompactString]) -> Result<()> {
        let record = self.record;
        if record.indexes.iter().any(|index| serves(index, columns)) {
            return Ok(());
        }
        let is_gone =
            |index: &&porpoise_catalog::Index| record.index_position(&index.name).is_none();
        let lost = self.table.indexes.iter().filter(is_gone).find(|index| {
            index.parts.first().is_some_and(|part| {
                let name = self.renames.now(&self.table.columns[part.column].name);
                columns
                    .first()
                    .is_some_and(|first| first.eq_ignore_ascii_case(&name))
            })
        });
        let name = lost.map_or("", |index| index.name.as_str());
        Err(Error::cannot_drop_needed_index(name))
    }

    /// Checks a key of the altered table that was there before.
    fn check_own_key(&self, ddl: &Ddl<'_>, key: &ForeignKeyRecord) -> Result<()> {
        let record = self.record;
        for name in &key.columns {
            if record.column_position(name).is_none() {
                return Err(Error::foreign_key_column_dropped(name, &key.name));
            }
            if self.checks && self.changed(name) {
                return Err(Error::foreign_key_column_changed(name, &key.name));
            }
        }
        check_columns(record, key)?;
        self.check_index(&key.columns)?;
        let catalog = ddl.shared.catalog.load();
        let is_own = key.parent_table == record.name && key.parent_schema == record.schema;
        if !self.checks
            && !is_own
            && key.columns.iter().any(|name| self.changed(name))
            && let Some(parent) = catalog.base_table(&key.parent_schema, &key.parent_table)
        {
            check_parent(ddl, record, key, &TableRecord::of(&parent))?;
        }
        Ok(())
    }

    /// Checks a key of a child (maybe the table itself) that refers to the altered table.
    fn check_key_of_child(
        &self,
        ddl: &Ddl<'_>,
        child: &Table,
        key: &ForeignKeyRecord,
    ) -> Result<()> {
        let record = self.record;
        let columns: Vec<CompactString> = key
            .parent_columns
            .iter()
            .map(|name| self.renames.now(name))
            .collect();
        for name in &columns {
            if record.column_position(name).is_none() {
                return Err(Error::foreign_key_parent_column_dropped(
                    name,
                    &key.name,
                    &child.name,
                ));
            }
            if self.checks && self.changed(name) {
                let child = format!("{}.{}", child.schema, child.name);
                return Err(Error::foreign_key_parent_column_changed(
                    name, &key.name, child,
                ));
            }
        }
        self.check_index(&columns)?;
        let is_own = child.id == self.table.id;
        if !self.checks && !is_own && columns.iter().any(|name| self.changed(name)) {
            let mut key = key.clone();
            key.parent_columns = columns;
            check_parent(ddl, &TableRecord::of(child), &key, record)?;
        }
        Ok(())
    }
}

/// Refuses an ALTER TABLE that takes from an old key of the table, or of another that refers to it,
/// what the key needs.
pub fn check_altered(
    ddl: &Ddl<'_>,
    table: &Table,
    record: &TableRecord,
    renames: &Renames,
) -> Result<()> {
    let alteration = Alteration {
        table,
        record,
        renames,
        checks: ddl.session.foreign_key_checks,
    };
    for key in record.foreign_keys.iter().filter(|key| key.is_old) {
        alteration.check_own_key(ddl, key)?;
    }
    let children = ddl
        .shared
        .catalog
        .load()
        .children(&table.schema, &table.name);
    for child in &children {
        let is_own = child.id == table.id;
        for key in TableRecord::of(child).foreign_keys {
            let refers = key.parent_table == table.name && key.parent_schema == table.schema;
            let dropped = is_own && !record.foreign_keys.iter().any(|kept| kept.name == key.name);
            if refers && !dropped {
                alteration.check_key_of_child(ddl, child, &key)?;
            }
        }
    }
    Ok(())
}

/// Checks names of keys against those of a schema's other tables.
pub fn check_names_are_free(record: &TableRecord, schema: &SchemaEntry) -> Result<()> {
    if record.foreign_keys.is_empty() {
        return Ok(());
    }
    for relation in schema.relations.values() {
        let porpoise_catalog::Relation::Table(table) = relation else {
            continue;
        };
        let taken = |key: &&ForeignKeyRecord| {
            table
                .foreign_keys
                .iter()
                .any(|other| other.name.eq_ignore_ascii_case(&key.name))
        };
        if table.id.0 != record.id
            && let Some(key) = record.foreign_keys.iter().find(taken)
        {
            return Err(Error::duplicate_foreign_key(&key.name));
        }
    }
    Ok(())
}

/// Refuses to drop tables that tables beside them refer to.
pub fn check_unreferenced(ddl: &Ddl<'_>, catalog: &Catalog, dropped: &[Arc<Table>]) -> Result<()> {
    if !ddl.session.foreign_key_checks {
        return Ok(());
    }
    for table in dropped {
        for child in catalog.children(&table.schema, &table.name) {
            if dropped.iter().any(|other| other.id == child.id) {
                continue;
            }
            if let Some(key) = referring(&child, table) {
                return Err(Error::drop_referenced(&table.name, &key.name, &child.name));
            }
        }
    }
    Ok(())
}

/// Refuses to truncate a table that another refers to.
pub fn check_truncated(ddl: &Ddl<'_>, table: &Table) -> Result<()> {
    if !ddl.session.foreign_key_checks || table.temporary {
        return Ok(());
    }
    let children = ddl
        .shared
        .catalog
        .load()
        .children(&table.schema, &table.name);
    for child in children.iter().filter(|child| child.id != table.id) {
        if let Some(key) = referring(child, table) {
            return Err(Error::truncate_referenced(format_args!(
                "{}.{}, CONSTRAINT {}",
                quote::name(&child.schema),
                quote::name(&child.name),
                quote::name(&key.name)
            )));
        }
    }
    Ok(())
}

fn referring<'a>(child: &'a Table, parent: &Table) -> Option<&'a porpoise_catalog::ForeignKey> {
    child
        .foreign_keys
        .iter()
        .find(|key| key.parent_table == parent.name && key.parent_schema == parent.schema)
}
