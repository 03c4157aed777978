//! ALTER TABLE, and CREATE INDEX and DROP INDEX, which are the same.
//!
//! 1. Every action edits the table's record, in the order written ([`edit`]). Others go on reading and writing, but none alters
//!    the table (SHARED_UPGRADABLE).
//! 2. [`Work::of`] compares the result with the table: what must be done to the rows?
//! 3. Nothing (names, defaults, comments, longer VARCHARs): the new definition takes the old spaces.
//!    New indexes only: they are built beside. Otherwise every row moves into new spaces.
//!    Where rows are looked at, writers wait from here on (SHARED_NO_WRITE).
//! 4. When the last reader has left (EXCLUSIVE), one catalog change puts the new definition in place and drops what it no longer needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use compact_str::CompactString;
use porpoise_catalog::dictionary::{create_unclaimed, drop_unclaimed};
use porpoise_catalog::expression;
use porpoise_catalog::record::{ColumnRecord, DefaultRecord, IndexRecord, TableRecord};
use porpoise_catalog::{CatalogChange, IndexKind, Relation, Table};
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::Completion;
use porpoise_expr::typing::declared::{TypeContext, resolve_collation};
use porpoise_mdl::Mode;
use porpoise_planner::bind_table_expression;
use porpoise_sql::ast;
use porpoise_storage::SpaceId;
use porpoise_types::{Collation, DataType};

use crate::column;
use crate::table::{self, Options};
use crate::{Ddl, Name, check_table_name, copy, foreign_keys, lock, rename};

/// What the actions say beside the edited record.
#[derive(Default)]
struct AlterSpec {
    explicit_null: Vec<CompactString>,
    rename_to: Option<Name>,
    auto_increment: Option<u64>,
    force: bool,
    renames: foreign_keys::Renames,
}

/// What has to be done to the rows.
#[derive(Debug, PartialEq)]
enum Work {
    Nothing,
    /// Build these indexes, by position in the new table.
    Indexes(Vec<usize>),
    Rebuild,
}

/// Executes the actions of an ALTER TABLE, in the order written (MySQL 8.4 manual, 15.1.9).
pub fn alter(
    ddl: &mut Ddl<'_>,
    name: &ast::ObjectName,
    actions: &[ast::AlterAction],
) -> Result<Completion> {
    let name = ddl.resolve(name)?;
    if let Some(completion) = rename_view(ddl, &name, actions)? {
        return Ok(completion);
    }
    let keys = actions.iter().filter_map(|action| match action {
        ast::AlterAction::AddForeignKey(key) => Some(key),
        _ => None,
    });
    let mut parents = foreign_keys::named_parents(keys, &name.schema);
    for action in actions {
        // Keys may have waited for a table of the new name.
        if let ast::AlterAction::RenameTable(new) = action {
            let new = ddl.resolve(new)?;
            let waiting = ddl.shared.catalog.load().children(&new.schema, &new.table);
            parents.extend(waiting.iter().map(|child| Name {
                schema: child.schema.clone(),
                table: child.name.clone(),
            }));
        }
    }
    ddl.table(&name)?;
    let first = std::slice::from_ref(&name);
    let (tables, mut held) = match reaches_others(actions) {
        _ if ddl.temporary(&name).is_some() => lock::tables(ddl, first, Mode::SharedUpgradable)?,
        true => foreign_keys::lock(ddl, &name, true, &parents, Mode::SharedUpgradable)?,
        false => lock::tables(ddl, first, Mode::SharedUpgradable)?,
    };
    let Some(table) = tables.into_iter().next() else {
        return Err(Error::no_such_table(&name.schema, &name.table));
    };
    let mut record = TableRecord::of(&table);
    let mut spec = AlterSpec::default();
    let options: Vec<&ast::TableOption> = actions
        .iter()
        .filter_map(|action| {
            if let ast::AlterAction::Option(option) = action {
                Some(option)
            } else {
                None
            }
        })
        .collect();
    apply_options(ddl, &mut record, &mut spec, &options)?;
    for action in actions {
        edit(ddl, &table, &mut record, &mut spec, action)?;
    }
    foreign_keys::complete(&mut record)?;
    table::complete(&mut record, &spec.explicit_null, ddl.session)?;
    foreign_keys::check_altered(ddl, &table, &record, &spec.renames)?;
    foreign_keys::check_new(ddl, &record)?;
    record.version = ddl.shared.dictionary.next_version();
    if spec.auto_increment.is_some() {
        // The counter is to be looked at while nobody counts.
        ddl.upgrade(&mut held, Mode::SharedNoWrite)?;
    }
    let counter = ddl
        .shared
        .store
        .counter(table.space)
        .max(table.state.auto_increment.load(Ordering::Relaxed));
    let lowers_counter = spec.auto_increment.is_some_and(|next| next < counter);
    let work = if spec.force || lowers_counter {
        Work::Rebuild
    } else {
        Work::of(&table, &record)
    };
    let fresh = place(ddl, &mut record, &work);
    let altered = Arc::new(table::bind(&record, Arc::clone(&table.state))?);
    let checks_rows = work != Work::Rebuild
        && altered.checks.iter().any(|check| {
            check.enforced
                && !table
                    .checks
                    .iter()
                    .any(|old| old.enforced && old.name == check.name && old.sql == check.sql)
        });
    let new_keys = record.foreign_keys.iter().filter(|key| !key.is_old);
    let checks_keys = ddl.session.foreign_key_checks && new_keys.clone().next().is_some();
    if work != Work::Nothing || checks_rows || checks_keys {
        // Others go on reading. What they write wouldn't be seen.
        ddl.upgrade(&mut held, Mode::SharedNoWrite)?;
    }
    if !fresh.is_empty() {
        create_unclaimed(&ddl.shared.store, &fresh)?;
    }
    let outcome = do_work(
        ddl,
        &table,
        &altered,
        &record,
        &work,
        checks_rows,
        spec.auto_increment,
    )
    .and_then(|rows| {
        if !checks_keys {
            return Ok(rows);
        }
        let new_keys = record.foreign_keys.iter().filter(|key| !key.is_old);
        let names: Vec<&str> = new_keys.map(|key| key.name.as_str()).collect();
        Ok(rows.max(copy::check_foreign_keys(ddl, &altered, &names)?))
    })
    .and_then(|rows| {
        ddl.upgrade(&mut held, Mode::Exclusive)?;
        install(ddl, &table, &altered, &mut record, &fresh, &spec).map(|()| rows)
    });
    match outcome {
        Ok(rows) => {
            let warnings = ddl.session.warning_count();
            let message = format!("Records: {rows}  Duplicates: 0  Warnings: {warnings}");
            Ok(Completion {
                affected_rows: rows,
                message,
                warnings,
                ..Completion::default()
            })
        }
        Err(error) => {
            if !fresh.is_empty() {
                drop_unclaimed(&ddl.shared.store, &fresh)?;
            }
            Err(error)
        }
    }
}

/// Whether actions may concern tables that foreign keys tie to the altered one.
fn reaches_others(actions: &[ast::AlterAction]) -> bool {
    use ast::AlterAction as A;
    let stays_here = |action: &A| {
        matches!(
            action,
            A::AddColumn { .. }
                | A::SetDefault(..)
                | A::DropDefault(..)
                | A::SetColumnVisible(..)
                | A::AddIndex(..)
                | A::SetIndexVisible(..)
                | A::AddCheck(..)
                | A::SetEnforced(..)
                | A::DropCheck(..)
                | A::Force
                | A::Option(..)
                | A::OrderBy(..)
                | A::SetKeys { .. }
                | A::Validation(..)
        )
    };
    !actions.iter().all(stays_here)
}

/// ALTER TABLE view RENAME TO: the one thing it can do to a view.
fn rename_view(
    ddl: &mut Ddl<'_>,
    name: &Name,
    actions: &[ast::AlterAction],
) -> Result<Option<Completion>> {
    let is_view = matches!(
        ddl.shared
            .catalog
            .load()
            .relation(&name.schema, &name.table),
        Some(Relation::View(_))
    );
    match actions {
        [ast::AlterAction::RenameTable(new)] if is_view && ddl.temporary(name).is_none() => {
            let new = ddl.resolve(new)?;
            let _held = lock::relations(ddl, &[name.clone(), new.clone()])?;
            let mut change = CatalogChange::begin(ddl.shared.definitions());
            rename::move_relation(ddl, &mut change, name, &new)?;
            change.commit()?;
            Ok(Some(Completion::default()))
        }
        _ => Ok(None),
    }
}

fn apply_options(
    ddl: &mut Ddl<'_>,
    record: &mut TableRecord,
    spec: &mut AlterSpec,
    options: &[&ast::TableOption],
) -> Result<()> {
    let options = Options::read(options.iter().copied(), &record.name, ddl.session)?;
    let old = Collation::by_id(record.collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI);
    record.collation = options.collation(old)?.id();
    if let Some(comment) = options.comment {
        record.comment = comment;
    }
    for (name, value) in options.printed {
        record.options.retain(|(known, _)| *known != name);
        record.options.push((name, value));
    }
    spec.auto_increment = options.auto_increment;
    Ok(())
}

/// Does one action to the record.
fn edit(
    ddl: &mut Ddl<'_>,
    table: &Table,
    record: &mut TableRecord,
    spec: &mut AlterSpec,
    action: &ast::AlterAction,
) -> Result<()> {
    use ast::AlterAction as A;
    match action {
        A::AddColumn { column, position } => {
            let new = make_column(ddl, record, column)?;
            if record.column_position(&new.name).is_some() {
                return Err(Error::duplicate_column(&new.name));
            }
            note_null(spec, column);
            let at = place_of(record, position.as_ref(), record.columns.len())?;
            record.columns.insert(at, new);
            table::add_column_keys(record, column)?;
            for check in &column.checks {
                table::add_check(record, check);
            }
        }
        A::ChangeColumn {
            old_name,
            column,
            position,
        } => {
            let Some(at) = record.column_position(old_name) else {
                return Err(Error::unknown_column(old_name.as_str(), &record.name));
            };
            let mut new = make_column(ddl, record, column)?;
            note_null(spec, column);
            let renamed = !new.name.eq_ignore_ascii_case(old_name);
            if renamed {
                refuse_if_used(table, record, at)?;
                if record.column_position(&new.name).is_some() {
                    return Err(Error::duplicate_column(&new.name));
                }
            }
            let old = record.columns.remove(at);
            new.origin = old.origin;
            rename_in_keys(record, &old.name, &new.name);
            spec.renames
                .columns
                .push((old.name.clone(), new.name.clone()));
            let at = place_of(record, position.as_ref(), at)?;
            record.columns.insert(at, new);
            table::add_column_keys(record, column)?;
            for check in &column.checks {
                table::add_check(record, check);
            }
        }
        A::RenameColumn(old_name, new_name) => {
            let Some(at) = record.column_position(old_name) else {
                return Err(Error::unknown_column(old_name.as_str(), &record.name));
            };
            column::check_name(new_name)?;
            if record
                .column_position(new_name)
                .is_some_and(|other| other != at)
            {
                return Err(Error::duplicate_column(new_name.as_str()));
            }
            refuse_if_used(table, record, at)?;
            let old = record.columns[at].name.clone();
            record.columns[at].name = new_name.as_str().into();
            rename_in_keys(record, &old, new_name);
            spec.renames.columns.push((old, new_name.as_str().into()));
        }
        A::DropColumn(name) => drop_column(table, record, name)?,
        A::SetDefault(name, default) => {
            let at = find_column(record, name)?;
            let now_us = ddl.now_us();
            let mut cx = TypeContext {
                session: ddl.session,
                collation: Collation::BINARY,
                now_us,
            };
            record.columns[at].default =
                column::default_value(default, &record.columns[at], &mut cx)?;
        }
        A::DropDefault(name) => {
            let at = find_column(record, name)?;
            record.columns[at].default = DefaultRecord::None;
        }
        A::SetColumnVisible(name, visible) => {
            let at = find_column(record, name)?;
            record.columns[at].invisible = !visible;
        }
        A::AddIndex(def) => {
            if def.kind == ast::IndexKind::Primary
                && record
                    .indexes
                    .iter()
                    .any(|index| index.kind == IndexKind::Primary)
            {
                return Err(Error::multiple_primary_key());
            }
            table::add_index(record, def)?;
        }
        A::DropIndex(name) => {
            let at = record
                .index_position(name)
                .ok_or_else(|| Error::cannot_drop_field_or_key(name.as_str()))?;
            record.indexes.remove(at);
            table::forget_hidden(record);
        }
        A::DropPrimaryKey => {
            let primary = record
                .indexes
                .iter()
                .position(|index| index.kind == IndexKind::Primary);
            record
                .indexes
                .remove(primary.ok_or_else(|| Error::cannot_drop_field_or_key("PRIMARY"))?);
        }
        A::RenameIndex(old, new) => {
            let at = record
                .index_position(old)
                .ok_or_else(|| Error::key_does_not_exist(old.as_str(), &record.name))?;
            if new.eq_ignore_ascii_case("PRIMARY") || record.indexes[at].kind == IndexKind::Primary
            {
                return Err(Error::wrong_index_name(
                    if record.indexes[at].kind == IndexKind::Primary {
                        old.as_str()
                    } else {
                        new.as_str()
                    },
                ));
            }
            if record.index_position(new).is_some_and(|other| other != at) {
                return Err(Error::duplicate_key_name(new.as_str()));
            }
            record.indexes[at].name = new.as_str().into();
        }
        A::SetIndexVisible(name, visible) => {
            let at = record
                .index_position(name)
                .ok_or_else(|| Error::key_does_not_exist(name.as_str(), &record.name))?;
            record.indexes[at].invisible = !visible;
        }
        A::AddCheck(check) => table::add_check(record, check),
        A::SetEnforced(name, enforced) => {
            let check = record
                .checks
                .iter_mut()
                .find(|check| check.name.eq_ignore_ascii_case(name));
            check
                .ok_or_else(|| Error::check_not_found(name.as_str()))?
                .enforced = *enforced;
        }
        A::DropCheck(name) => {
            let at = record
                .checks
                .iter()
                .position(|check| check.name.eq_ignore_ascii_case(name));
            record
                .checks
                .remove(at.ok_or_else(|| Error::check_not_found(name.as_str()))?);
        }
        A::DropConstraint(name) => {
            if let Some(at) = record
                .checks
                .iter()
                .position(|check| check.name.eq_ignore_ascii_case(name))
            {
                record.checks.remove(at);
            } else if let Some(at) = foreign_key_position(record, name) {
                record.foreign_keys.remove(at);
            } else if let Some(at) = record
                .index_position(name)
                .filter(|&at| record.indexes[at].kind != IndexKind::NonUnique)
            {
                record.indexes.remove(at);
                table::forget_hidden(record);
            } else {
                return Err(Error::constraint_not_found(name.as_str()));
            }
        }
        A::RenameTable(new) => {
            let new = ddl.resolve(new)?;
            check_table_name(&new.table)?;
            spec.rename_to = Some(new);
        }
        A::ConvertCharset(charset, collation) => {
            convert_charset(ddl, record, charset.as_ref(), collation.as_ref())?
        }
        A::Force => spec.force = true,
        A::Option(_) | A::OrderBy(_) | A::SetKeys { .. } | A::Validation(_) => {}
        A::AddForeignKey(key) => foreign_keys::add(record, key)?,
        A::DropForeignKey(name) => {
            let at = foreign_key_position(record, name)
                .ok_or_else(|| Error::cannot_drop_field_or_key(name.as_str()))?;
            record.foreign_keys.remove(at);
        }
        A::Other(text) => return Err(Error::not_supported_yet(text)),
    }
    Ok(())
}

fn foreign_key_position(record: &TableRecord, name: &str) -> Option<usize> {
    record
        .foreign_keys
        .iter()
        .position(|key| key.name.eq_ignore_ascii_case(name))
}

fn make_column(
    ddl: &mut Ddl<'_>,
    record: &TableRecord,
    def: &ast::ColumnDef,
) -> Result<ColumnRecord> {
    let collation = Collation::by_id(record.collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI);
    let now_us = ddl.now_us();
    column::column(
        def,
        &mut TypeContext {
            session: ddl.session,
            collation,
            now_us,
        },
    )
}

fn note_null(spec: &mut AlterSpec, def: &ast::ColumnDef) {
    if def.nullable == Some(true) {
        spec.explicit_null.push(def.name.as_str().into());
    }
}

fn find_column(record: &TableRecord, name: &str) -> Result<usize> {
    record
        .column_position(name)
        .ok_or_else(|| Error::unknown_column(name, &record.name))
}

/// Where FIRST and AFTER put a column.
fn place_of(
    record: &TableRecord,
    position: Option<&ast::ColumnPosition>,
    otherwise: usize,
) -> Result<usize> {
    match position {
        None => Ok(otherwise.min(record.columns.len())),
        Some(ast::ColumnPosition::First) => Ok(0),
        Some(ast::ColumnPosition::After(name)) => Ok(find_column(record, name)? + 1),
    }
}

fn rename_in_keys(record: &mut TableRecord, old: &str, new: &str) {
    for part in record.indexes.iter_mut().flat_map(|index| &mut index.parts) {
        if part.column.eq_ignore_ascii_case(old) {
            part.column = new.into();
        }
    }
    let TableRecord { schema, name, .. } = &*record;
    let (schema, name) = (schema.clone(), name.clone());
    for key in &mut record.foreign_keys {
        let refers_to_itself = key.parent_schema == schema && key.parent_table == name;
        let parent_columns = key
            .parent_columns
            .iter_mut()
            .filter(|_| refers_to_itself && key.is_old);
        for column in key
            .columns
            .iter_mut()
            .filter(|_| key.is_old)
            .chain(parent_columns)
        {
            if column.eq_ignore_ascii_case(old) {
                *column = new.into();
            }
        }
    }
}

/// A column that a generated column, a functional key part or a check reads can't lose its name.
fn refuse_if_used(table: &Table, record: &TableRecord, at: usize) -> Result<()> {
    let Some(origin) = record.columns[at].origin else {
        return Ok(());
    };
    let name = &record.columns[at].name;
    for column in &record.columns {
        let generated = column
            .origin
            .and_then(|origin| table.columns[origin].generated.as_ref());
        if column.generated.is_some()
            && generated
                .is_some_and(|generated| expression::columns(&generated.expr).contains(&origin))
        {
            return Err(match column.hidden {
                true => Error::dependent_functional_index(name),
                false => Error::dependent_generated_column(name),
            });
        }
    }
    for check in &record.checks {
        let old = table.checks.iter().find(|old| old.name == check.name);
        if old.is_some_and(|old| expression::columns(&old.expr).contains(&origin)) {
            return Err(Error::check_uses_column(&check.name, name));
        }
    }
    Ok(())
}

/// Drops a column with its place in keys, and the checks that read nothing else.
fn drop_column(table: &Table, record: &mut TableRecord, name: &str) -> Result<()> {
    let at = record
        .column_position(name)
        .ok_or_else(|| Error::cannot_drop_field_or_key(name))?;
    if record
        .columns
        .iter()
        .filter(|column| !column.hidden)
        .count()
        == 1
    {
        return Err(Error::cannot_remove_all_fields());
    }
    if let Some(origin) = record.columns[at].origin {
        let only = [origin];
        record.checks.retain(|check| {
            table
                .checks
                .iter()
                .find(|old| old.name == check.name)
                .is_none_or(|old| expression::columns(&old.expr) != only)
        });
    }
    refuse_if_used(table, record, at)?;
    let dropped = record.columns.remove(at);
    for index in &mut record.indexes {
        let before = index.parts.len();
        index
            .parts
            .retain(|part| !part.column.eq_ignore_ascii_case(&dropped.name));
        if index.parts.len() != before {
            // A key of fewer columns is another key.
            index.origin = None;
        }
    }
    record.indexes.retain(|index| !index.parts.is_empty());
    Ok(())
}

fn convert_charset(
    ddl: &Ddl<'_>,
    record: &mut TableRecord,
    charset: Option<&ast::Ident>,
    collation: Option<&ast::Ident>,
) -> Result<()> {
    let default = ddl
        .shared
        .catalog
        .load()
        .schema(&record.schema)
        .map_or(Collation::UTF8MB4_0900_AI_CI, |entry| {
            entry.schema.collation
        });
    let to = resolve_collation(
        charset.map(|name| name.as_str()),
        collation.map(|name| name.as_str()),
        default,
    )?;
    record.collation = to.id();
    for column in &mut record.columns {
        let is_text = matches!(
            column.ty,
            DataType::Char { .. }
                | DataType::Varchar { .. }
                | DataType::Text { .. }
                | DataType::Enum(_)
                | DataType::Set(_)
        );
        if is_text {
            column.ty = column.ty.with_collation(to);
        }
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------
// Doing it
// ---------------------------------------------------------------------------------------------------------

impl Work {
    fn of(table: &Table, record: &TableRecord) -> Work {
        let same_columns = table.columns.len() == record.columns.len()
            && record
                .columns
                .iter()
                .enumerate()
                .all(|(at, column)| column.origin == Some(at) && keeps_rows(table, record, at));
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
        if !same_columns || !primary_kept {
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

/// Whether a column's stored values, in rows and in keys, are as good for its new definition.
fn keeps_rows(table: &Table, record: &TableRecord, at: usize) -> bool {
    let (old, new) = (&table.columns[at], &record.columns[at]);
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

/// Gives new spaces where the work needs them, and returns them.
fn place(ddl: &Ddl<'_>, record: &mut TableRecord, work: &Work) -> Vec<SpaceId> {
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
fn do_work(
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
            copy::build_indexes(ddl, new, positions)?;
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

/// Puts the new definition in place of the old one, and drops the spaces that it doesn't use.
fn install(
    ddl: &mut Ddl<'_>,
    old: &Arc<Table>,
    new: &Arc<Table>,
    record: &mut TableRecord,
    fresh: &[SpaceId],
    spec: &AlterSpec,
) -> Result<()> {
    let unused: Vec<SpaceId> = old
        .spaces()
        .filter(|space| !new.spaces().any(|used| used == *space))
        .collect();
    let target = spec
        .rename_to
        .clone()
        .filter(|name| name.table != record.name || name.schema != record.schema);
    let mut table = Arc::clone(new);
    if let Some(name) = &target {
        rename::rename_record(record, name);
        table = Arc::new(record.bind(Arc::clone(&new.state), bind_table_expression)?);
    }
    if old.temporary {
        if let Some(name) = &target
            && ddl.temporary(name).is_some()
        {
            return Err(Error::table_exists(&name.table));
        }
        ddl.session
            .temporary_tables
            .remove(&(old.schema.clone(), old.name.clone()));
        ddl.session
            .temporary_tables
            .insert((table.schema.clone(), table.name.clone()), table);
        drop_unclaimed(&ddl.shared.store, &unused)?;
    } else {
        let mut change = CatalogChange::begin(ddl.shared.definitions());
        if let Some(name) = &target {
            ddl.check_schema(change.catalog(), &name.schema)?;
            if change
                .catalog()
                .relation(&name.schema, &name.table)
                .is_some()
            {
                return Err(Error::table_exists(&name.table));
            }
        }
        change.detach_relation(&old.schema, &old.name);
        if let Some(entry) = change.catalog().schema(&record.schema).cloned() {
            table::check_names_are_free(record, &entry)?;
            foreign_keys::check_names_are_free(record, &entry)?;
        }
        for &space in fresh {
            change.claim_space(space);
        }
        for space in unused {
            change.transaction().drop_space(space);
        }
        if let Some(next) = spec.auto_increment {
            change.transaction().set_counter(table.space, next);
        }
        change.put_table(record, table)?;
        let old_name = Name {
            schema: old.schema.clone(),
            table: old.name.clone(),
        };
        foreign_keys::follow(ddl, &mut change, record, &old_name, &spec.renames)?;
        change.commit()?;
    }
    if !fresh.is_empty() {
        let newest = ddl.shared.store.snapshot().ts();
        new.state.rebuilt_ts.store(newest.0, Ordering::Release);
    }
    if fresh.contains(&new.space) {
        // The counters are read anew from the new space.
        new.state.auto_increment.store(0, Ordering::Relaxed);
        new.state.row_number.store(0, Ordering::Relaxed);
    }
    if let Some(next) = spec.auto_increment {
        if !fresh.contains(&new.space) {
            new.state.raise_auto_increment(next);
        } else if old.temporary {
            new.state.auto_increment.store(next, Ordering::Relaxed);
        }
    }
    Ok(())
}
