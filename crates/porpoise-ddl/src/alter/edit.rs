//! What each action of ALTER TABLE does to the table's record, in the order written.

use porpoise_catalog::expression;
use porpoise_catalog::record::{ColumnRecord, DefaultRecord, TableRecord};
use porpoise_catalog::{ColumnDefault, IndexKind, Table};
use porpoise_core::error::{Error, Result};
use porpoise_expr::typing::declared::{TypeContext, resolve_collation};
use porpoise_sql::ast;
use porpoise_types::{BlobSize, Collation, DataType};

use super::AlterSpec;
use crate::column;
use crate::table::{self, Options};
use crate::{Ddl, check_table_name, foreign_keys};

/// The longest VARCHAR.
const VARCHAR_OCTETS_MAX: u32 = 65_535;

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
        A::DropColumn(name) => drop_column(table, record, spec, name)?,
        A::SetDefault(name, default) => set_default(ddl, table, record, name, default)?,
        A::DropDefault(name) => {
            let at = find_old_or_new(table, record, name)?;
            record.columns[at].default = DefaultRecord::None;
        }
        A::SetColumnVisible(name, visible) => {
            let at = find_old_or_new(table, record, name)?;
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
            let at = old_index(record, name)
                .ok_or_else(|| Error::cannot_drop_field_or_key(name.as_str()))?;
            record.indexes.remove(at);
            table::forget_hidden(record);
        }
        A::DropPrimaryKey => {
            let primary = record
                .indexes
                .iter()
                .position(|index| index.kind == IndexKind::Primary && index.origin.is_some());
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
    let at = find_unnamed(table, record, spec, old_name)?;
    let mut new = make_column(ddl, record, def)?;
    note_null(spec, def);
    if !new.name.eq_ignore_ascii_case(old_name) {
        refuse_if_used(table, record, at)?;
    }
    let is_stored = |column: &ColumnRecord| column.generated.as_ref().is_none_or(|of| of.stored);
    if is_stored(&record.columns[at]) != is_stored(&new) {
        return Err(Error::unsupported_on_generated(
            "Changing the STORED status",
        ));
    }
    let old = record.columns.remove(at);
    new.origin = old.origin;
    widen_key_parts(record, &old.name, &new.ty);
    spec.renames.columns.push((old.name, new.name.clone()));
    let at = place_of(record, position, at)?;
    insert_column(record, def, new, at)
}

/// Where a column's new type has no prefixes, or none as long as a key's, the key has the whole.
fn widen_key_parts(record: &mut TableRecord, column: &str, ty: &DataType) {
    let whole = match ty {
        DataType::Char { length, .. } | DataType::Varchar { length, .. } => *length,
        DataType::Binary(length) | DataType::Varbinary(length) => *length,
        DataType::Text { .. } | DataType::Blob(_) => return,
        _ => 0,
    };
    let parts = record.indexes.iter_mut().flat_map(|index| &mut index.parts);
    for part in parts.filter(|part| part.column.eq_ignore_ascii_case(column)) {
        part.prefix = part.prefix.filter(|prefix| *prefix < whole);
    }
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
    let at = find_unnamed(table, record, spec, old_name)?;
    column::check_name(new_name)?;
    refuse_if_used(table, record, at)?;
    let old = record.columns[at].name.clone();
    record.columns[at].name = new_name.into();
    spec.renames.columns.push((old, new_name.into()));
    Ok(())
}

/// ALTER COLUMN … SET DEFAULT.
fn set_default(
    ddl: &mut Ddl<'_>,
    table: &Table,
    record: &mut TableRecord,
    name: &str,
    default: &ast::ColumnDefault,
) -> Result<()> {
    let at = find_old_or_new(table, record, name)?;
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
    let at = old_index(record, old).ok_or_else(|| Error::key_does_not_exist(old, &record.name))?;
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
    options.warn_of_directories(ddl.session);
    if options.encrypted == Some(true) {
        return Err(Error::no_master_key());
    }
    let old = Collation::by_id(record.collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI);
    record.collation = options.collation(old)?.id();
    options.print_into(&mut record.options);
    if let Some(comment) = options.comment {
        record.comment = comment;
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

impl AlterSpec {
    /// Whether an action has given a column another definition or name.
    fn has_named(&self, column: &str) -> bool {
        let mut done = self.renames.columns.iter();
        done.any(|(old, _)| old.eq_ignore_ascii_case(column))
    }
}

/// Where the table's column of that name is now: actions name the columns that were there.
fn find_old(table: &Table, record: &TableRecord, name: &str) -> Result<usize> {
    let origin = table.column_position(name);
    let is_it = |column: &ColumnRecord| column.origin.is_some() && column.origin == origin;
    let found = record.columns.iter().position(is_it);
    found.ok_or_else(|| Error::unknown_column(name, &record.name))
}

/// The same, or a column that an earlier action has added.
fn find_old_or_new(table: &Table, record: &TableRecord, name: &str) -> Result<usize> {
    find_old(table, record, name).or_else(|_| find_column(record, name))
}

/// The same as [`find_old`], of a column that no other action has given a definition or a name.
fn find_unnamed(
    table: &Table,
    record: &TableRecord,
    spec: &AlterSpec,
    name: &str,
) -> Result<usize> {
    match spec.has_named(name) {
        true => Err(Error::unknown_column(name, &record.name)),
        false => find_old(table, record, name),
    }
}

/// The table's index of that name, if no action has dropped it.
fn old_index(record: &TableRecord, name: &str) -> Option<usize> {
    let mut indexes = record.indexes.iter();
    indexes.position(|index| index.origin.is_some() && index.name.eq_ignore_ascii_case(name))
}

/// Has the table's own keys follow its columns, after all actions: to their new names, and out of
/// the keys if they are dropped. New keys name the columns as they are then.
pub(super) fn follow_columns(table: &Table, record: &mut TableRecord, spec: &AlterSpec) {
    let columns = &record.columns;
    let now = |name: &str| {
        let origin = table
            .columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name));
        let is_it = |column: &&ColumnRecord| column.origin.is_some() && column.origin == origin;
        columns.iter().find(is_it).map(|column| column.name.clone())
    };
    for index in record
        .indexes
        .iter_mut()
        .filter(|index| index.origin.is_some())
    {
        let before = index.parts.len();
        index.parts.retain_mut(|part| match now(&part.column) {
            Some(name) => {
                part.column = name;
                true
            }
            None => false,
        });
        if index.parts.len() != before {
            // A key of fewer columns is another key.
            index.origin = None;
        }
    }
    record.indexes.retain(|index| !index.parts.is_empty());
    let (schema, name) = (&record.schema, &record.name);
    for key in record.foreign_keys.iter_mut().filter(|key| key.is_old) {
        let refers_to_itself = key.parent_schema == *schema && key.parent_table == *name;
        let parent_columns = key.parent_columns.iter_mut().filter(|_| refers_to_itself);
        for column in key.columns.iter_mut().chain(parent_columns) {
            *column = spec.renames.now(column);
        }
    }
}

/// A column that a generated column, a functional key part, a default or a check reads can't lose
/// its name.
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
    let reads_default = |column: &ColumnRecord| {
        let default = column.origin.map(|origin| &table.columns[origin].default);
        let kept = matches!(column.default, DefaultRecord::Expression(_));
        matches!(default, Some(ColumnDefault::Expression { expr, .. })
            if kept && expression::columns(expr).contains(&origin))
    };
    if record.columns.iter().any(reads_default) {
        return Err(Error::dependent_default(name, &record.name));
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
fn drop_column(
    table: &Table,
    record: &mut TableRecord,
    spec: &AlterSpec,
    name: &str,
) -> Result<()> {
    if spec.has_named(name) {
        return Err(Error::unknown_column(name, &record.name));
    }
    let at = find_old(table, record, name).map_err(|_| Error::cannot_drop_field_or_key(name))?;
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
    record.columns.remove(at);
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
            let most = VARCHAR_OCTETS_MAX / u32::from(to.charset().max_len());
            if matches!(column.ty, DataType::Varchar { length, .. } if length > most) {
                return Err(Error::column_length_too_big(&column.name, most));
            }
            column.ty = converted_type(&column.ty, to);
            column.explicit_collation = false;
        }
    }
    Ok(())
}

/// A text type in another character set. A TEXT holds as many characters as before, if a longer
/// one is needed for that (MySQL 8.4 manual, 15.1.9).
fn converted_type(ty: &DataType, to: Collation) -> DataType {
    let DataType::Text { size, collation } = ty else {
        return ty.with_collation(to);
    };
    let chars = size.max_octets() / u64::from(collation.charset().max_len());
    let octets = chars * u64::from(to.charset().max_len());
    let sizes = [BlobSize::Tiny, BlobSize::Normal, BlobSize::Medium];
    let mut enough = sizes.into_iter();
    let enough = enough.find(|size| size.max_octets() >= octets);
    let size = (*size).max(enough.unwrap_or(BlobSize::Long));
    DataType::Text {
        size,
        collation: *collation,
    }
    .with_collation(to)
}
