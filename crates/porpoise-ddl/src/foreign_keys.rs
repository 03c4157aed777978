//! Foreign keys in definitions: what CREATE and ALTER TABLE write down, and what the tables at both ends must have.
//!
//! A key lies in the child's record and names its parent. So a statement that makes, changes, renames or
//! drops a table looks at both sides:
//!
//! 1. [`lock`] takes the metadata locks of the table and of all that are tied to it.
//! 2. [`add`] and [`complete`] put keys into the record, with the indexes that find the child's rows.
//! 3. [`check_new`] compares a new key with its parent; [`check_altered`] keeps ALTER TABLE from taking
//!    away what a key needs; [`check_unreferenced`] keeps parents from being dropped.
//! 4. [`follow`] takes a parent's new names to its children, and gives every table that a new key ties
//!    together a new version, so that no statement goes on with a plan from before.
//!
//! With foreign_key_checks=0 a parent may be missing: its name is remembered, and checked when it comes.

use std::sync::Arc;

use compact_str::{CompactString, format_compact};
use porpoise_catalog::record::{ForeignKeyRecord, IndexRecord, PartRecord, TableRecord};
use porpoise_catalog::{Catalog, CatalogChange, IndexKind, ReferenceAction, SchemaEntry, Table};
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::quote;
use porpoise_mdl::{MdlTicket, Mode};
use porpoise_planner::bind_table_expression;
use porpoise_sql::ast;
use porpoise_types::DataType;

use crate::{Ddl, Name, column, lock as metadata};

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

/// Names the keys, and drops indexes made for keys that others serve as well. Comes before the indexes are named.
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

/// What ALTER TABLE did to the names that keys use.
#[derive(Default)]
pub struct Renames {
    /// Old and new names of columns, in the order they were given.
    pub columns: Vec<(CompactString, CompactString)>,
}

impl Renames {
    /// A column's name now.
    fn now(&self, name: &CompactString) -> CompactString {
        let mut name = name.clone();
        for (old, new) in &self.columns {
            if name.eq_ignore_ascii_case(old) {
                name = new.clone();
            }
        }
        name
    }
}

/// Whether an old key of the altered table, or of another that refers to it, lost what it needs.
pub fn check_altered(
    ddl: &Ddl<'_>,
    table: &Table,
    record: &TableRecord,
    renames: &Renames,
) -> Result<()> {
    let checks = ddl.session.foreign_key_checks;
    // The type that a column had, if the new one is not as good for keys.
    let changed = |name: &str| {
        record.column_position(name).is_some_and(|at| {
            let column = &record.columns[at];
            column
                .origin
                .is_some_and(|origin| !compatible(&table.columns[origin].ty, &column.ty))
        })
    };
    let lost_index = |columns: &[CompactString]| {
        let was_there =
            |index: &&porpoise_catalog::Index| record.index_position(&index.name).is_none();
        let of_old = table.indexes.iter().filter(was_there).find(|index| {
            index.parts.first().is_some_and(|part| {
                let name = renames.now(&table.columns[part.column].name);
                columns
                    .first()
                    .is_some_and(|first| first.eq_ignore_ascii_case(&name))
            })
        });
        let name = of_old.map_or("", |index| index.name.as_str());
        Error::cannot_drop_needed_index(name)
    };
    for key in record.foreign_keys.iter().filter(|key| key.is_old) {
        for name in &key.columns {
            if record.column_position(name).is_none() {
                return Err(Error::foreign_key_column_dropped(name, &key.name));
            }
            if checks && changed(name) {
                return Err(Error::foreign_key_column_changed(name, &key.name));
            }
        }
        check_columns(record, key)?;
        if !record
            .indexes
            .iter()
            .any(|index| serves(index, &key.columns))
        {
            return Err(lost_index(&key.columns));
        }
        let catalog = ddl.shared.catalog.load();
        let is_own = key.parent_table == record.name && key.parent_schema == record.schema;
        if !checks
            && !is_own
            && key.columns.iter().any(|name| changed(name))
            && let Some(parent) = catalog.base_table(&key.parent_schema, &key.parent_table)
        {
            check_parent(ddl, record, key, &TableRecord::of(&parent))?;
        }
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
            if !refers || dropped {
                continue;
            }
            let columns: Vec<CompactString> = key
                .parent_columns
                .iter()
                .map(|name| renames.now(name))
                .collect();
            for name in &columns {
                if record.column_position(name).is_none() {
                    return Err(Error::foreign_key_parent_column_dropped(
                        name,
                        &key.name,
                        &child.name,
                    ));
                }
                if checks && changed(name) {
                    return Err(Error::foreign_key_parent_column_changed(
                        name,
                        &key.name,
                        &child.name,
                    ));
                }
            }
            if !record.indexes.iter().any(|index| serves(index, &columns)) {
                return Err(lost_index(&columns));
            }
            if !checks && !is_own && columns.iter().any(|name| changed(name)) {
                let mut key = key.clone();
                key.parent_columns = columns;
                check_parent(ddl, &TableRecord::of(child), &key, record)?;
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

// ---------------------------------------------------------------------------------------------------------
// Following
// ---------------------------------------------------------------------------------------------------------

/// Renames what a table's own record says of itself in its keys.
pub fn rename_in_record(record: &mut TableRecord, new: &Name) {
    let prefix = format!("{}_ibfk_", record.name);
    for key in &mut record.foreign_keys {
        if let Some(number) = key.name.strip_prefix(prefix.as_str())
            && number.parse::<u32>().is_ok()
        {
            key.name = format_compact!("{}_ibfk_{number}", new.table);
        }
        if key.parent_table == record.name && key.parent_schema == record.schema {
            key.parent_table = new.table.clone();
            key.parent_schema = new.schema.clone();
        }
    }
}

/// Tells the tables that keys tie to this one what it is now. The table is in its new place already.
pub fn follow(
    ddl: &Ddl<'_>,
    change: &mut CatalogChange<'_>,
    record: &TableRecord,
    old: &Name,
    renames: &Renames,
) -> Result<()> {
    let is_renamed = old.table != record.name || old.schema != record.schema;
    // Children that know the table by its old name.
    for child in change.catalog().children(&old.schema, &old.table) {
        if child.id.0 == record.id {
            continue;
        }
        let mut changed = TableRecord::of(&child);
        for key in &mut changed.foreign_keys {
            if key.parent_table == old.table && key.parent_schema == old.schema {
                key.parent_schema = record.schema.clone();
                key.parent_table = record.name.clone();
                for column in &mut key.parent_columns {
                    *column = renames.now(column);
                }
            }
        }
        if is_renamed || !renames.columns.is_empty() {
            put(ddl, change, changed, &child)?;
        }
    }
    // Tables that a new key ties to it, and children that waited for one of this name.
    let mut tied: Vec<Arc<Table>> = record
        .foreign_keys
        .iter()
        .filter(|key| !key.is_old)
        .filter_map(|key| {
            change
                .catalog()
                .base_table(&key.parent_schema, &key.parent_table)
        })
        .collect();
    tied.extend(change.catalog().children(&record.schema, &record.name));
    tied.retain(|table| table.id.0 != record.id);
    tied.sort_by_key(|table| table.id);
    tied.dedup_by_key(|table| table.id);
    for table in tied {
        put(ddl, change, TableRecord::of(&table), &table)?;
    }
    Ok(())
}

fn put(
    ddl: &Ddl<'_>,
    change: &mut CatalogChange<'_>,
    mut record: TableRecord,
    table: &Arc<Table>,
) -> Result<()> {
    record.version = ddl.shared.dictionary.next_version();
    let bound = Arc::new(record.bind(Arc::clone(&table.state), bind_table_expression)?);
    change.put_table(&record, bound)
}
