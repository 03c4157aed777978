//! What each action of ALTER TABLE does to the table's record, in the order written.

use porpoise_catalog::expression;
use porpoise_catalog::record::{ColumnRecord, DefaultRecord, TableRecord};
use porpoise_catalog::{IndexKind, Table};
use porpoise_core::error::{Error, Result};
use porpoise_expr::typing::declared::{TypeContext, resolve_collation};
use porpoise_sql::ast;
use porpoise_types::{Collation, DataType};

use super::AlterSpec;
use crate::column;
use crate::table::{self, Options};
use crate::{Ddl, check_table_name, foreign_keys};

/// Does one action to the record.
pub(super) fn edit(
    ddl: &mut Ddl<'_>,
    table: &Table,
    record: &mut TableRecord,
    spec: &mut AlterSpec,
    action: &ast::AlterAction,
) -> Result<()> {
    use ast::AlterAction as A;
    match action {
        A::AddColumn { column, position } => {
            add_column(ddl, record, spec, column, position.as_ref())?;
        }
        A::ChangeColumn {
            old_name,
            column,
            position,
        } => change_column(
            ddl,
            table,
            record,
            spec,
            old_name,
            column,
            position.as_ref(),
        )?,
        A::RenameColumn(old_name, new_name) => {
            rename_column(table, record, spec, old_name, new_name)?;
        }
        A::DropColumn(name) => drop_column(table, record, name)?,
        A::SetDefault(name, default) => set_default(ddl, record, name, default)?,
        A::DropDefault(name) => {
            let at = find_column(record, name)?;
            record.columns[at].default = DefaultRecord::None;
        }
        A::SetColumnVisible(name, visible) => {
            let at = find_column(record, name)?;
            record.columns[at].invisible = !visible;
        }
        A::AddIndex(def) => {
            let mut kinds = record.indexes.iter().map(|index| index.kind);
            if def.kind == ast::IndexKind::Primary && kinds.any(|kind| kind == IndexKind::Primary) {
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
        A::RenameIndex(old, new) => rename_index(record, old, new)?,
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
        A::DropConstraint(name) => drop_constraint(record, name)?,
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

/// ADD COLUMN.
fn add_column(
    ddl: &mut Ddl<'_>,
    record: &mut TableRecord,
    spec: &mut AlterSpec,
    def: &ast::ColumnDef,
    position: Option<&ast::ColumnPosition>,
) -> Result<()> {
    let new = make_column(ddl, record, def)?;
    if record.column_position(&new.name).is_some() {
        return Err(Error::duplicate_column(&new.name));
    }
    note_null(spec, def);
    let at = place_of(record, position, record.columns.len())?;
    insert_column(record, def, new, at)
}

/// CHANGE COLUMN and MODIFY COLUMN.
fn change_column(
    ddl: &mut Ddl<'_>,
    table: &Table,
    record: &mut TableRecord,
    spec: &mut AlterSpec,
    old_name: &str,
    def: &ast::ColumnDef,
    position: Option<&ast::ColumnPosition>,
) -> Result<()> {
    let Some(at) = record.column_position(old_name) else {
        return Err(Error::unknown_column(old_name, &record.name));
    };
    let mut new = make_column(ddl, record, def)?;
    note_null(spec, def);
    if !new.name.eq_ignore_ascii_case(old_name) {
        refuse_if_used(table, record, at)?;
        if record.column_position(&new.name).is_some() {
            return Err(Error::duplicate_column(&new.name));
        }
    }
    let old = record.columns.remove(at);
    new.origin = old.origin;
    rename_in_keys(record, &old.name, &new.name);
    spec.renames.columns.push((old.name, new.name.clone()));
    let at = place_of(record, position, at)?;
    insert_column(record, def, new, at)
}

/// Puts a column into the record, with the keys and checks that are written in its definition.
fn insert_column(
    record: &mut TableRecord,
    def: &ast::ColumnDef,
    column: ColumnRecord,
    at: usize,
) -> Result<()> {
    record.columns.insert(at, column);
    table::add_column_keys(record, def)?;
    for check in &def.checks {
        table::add_check(record, check);
    }
    Ok(())
}

/// RENAME COLUMN.
fn rename_column(
    table: &Table,
    record: &mut TableRecord,
    spec: &mut AlterSpec,
    old_name: &str,
    new_name: &str,
) -> Result<()> {
    let Some(at) = record.column_position(old_name) else {
        return Err(Error::unknown_column(old_name, &record.name));
    };
    column::check_name(new_name)?;
    let other = record.column_position(new_name);
    if other.is_some_and(|other| other != at) {
        return Err(Error::duplicate_column(new_name));
    }
    refuse_if_used(table, record, at)?;
    let old = record.columns[at].name.clone();
    record.columns[at].name = new_name.into();
    rename_in_keys(record, &old, new_name);
    spec.renames.columns.push((old, new_name.into()));
    Ok(())
}

/// ALTER COLUMN … SET DEFAULT.
fn set_default(
    ddl: &mut Ddl<'_>,
    record: &mut TableRecord,
    name: &str,
    default: &ast::ColumnDefault,
) -> Result<()> {
    let at = find_column(record, name)?;
    let now_us = ddl.now_us();
    let mut cx = TypeContext {
        session: ddl.session,
        collation: Collation::BINARY,
        now_us,
    };
    record.columns[at].default = column::default_value(default, &record.columns[at], &mut cx)?;
    Ok(())
}

/// RENAME INDEX. The primary key has its name for good.
fn rename_index(record: &mut TableRecord, old: &str, new: &str) -> Result<()> {
    let at = record
        .index_position(old)
        .ok_or_else(|| Error::key_does_not_exist(old, &record.name))?;
    if record.indexes[at].kind == IndexKind::Primary {
        return Err(Error::wrong_index_name(old));
    }
    if new.eq_ignore_ascii_case("PRIMARY") {
        return Err(Error::wrong_index_name(new));
    }
    if record.index_position(new).is_some_and(|other| other != at) {
        return Err(Error::duplicate_key_name(new));
    }
    record.indexes[at].name = new.into();
    Ok(())
}

/// DROP CONSTRAINT: a check, else a foreign key, else a unique or primary key of that name.
fn drop_constraint(record: &mut TableRecord, name: &str) -> Result<()> {
    let mut checks = record.checks.iter();
    if let Some(at) = checks.position(|check| check.name.eq_ignore_ascii_case(name)) {
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
        return Err(Error::constraint_not_found(name));
    }
    Ok(())
}

pub(super) fn apply_options(
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

pub(super) fn foreign_key_position(record: &TableRecord, name: &str) -> Option<usize> {
    record
        .foreign_keys
        .iter()
        .position(|key| key.name.eq_ignore_ascii_case(name))
}

pub(super) fn make_column(
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

pub(super) fn note_null(spec: &mut AlterSpec, def: &ast::ColumnDef) {
    if def.nullable == Some(true) {
        spec.explicit_null.push(def.name.as_str().into());
    }
}

pub(super) fn find_column(record: &TableRecord, name: &str) -> Result<usize> {
    record
        .column_position(name)
        .ok_or_else(|| Error::unknown_column(name, &record.name))
}

/// Where FIRST and AFTER put a column.
pub(super) fn place_of(
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

pub(super) fn rename_in_keys(record: &mut TableRecord, old: &str, new: &str) {
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
pub(super) fn refuse_if_used(table: &Table, record: &TableRecord, at: usize) -> Result<()> {
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
pub(super) fn drop_column(table: &Table, record: &mut TableRecord, name: &str) -> Result<()> {
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

pub(super) fn convert_charset(
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
