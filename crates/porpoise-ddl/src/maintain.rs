//! ANALYZE, CHECK, OPTIMIZE, REPAIR and CHECKSUM TABLE.
//!
//! What ANALYZE counts is told in [`statistics`](crate::statistics), what CHECK does in
//! `check_table`.

use std::ops::Bound;

use porpoise_catalog::{Relation, Table};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::reply::ResultColumn;
use porpoise_sql::ast::{self, Maintenance};
use porpoise_storage::{Direction, Snapshot, SpaceId};
use porpoise_types::{DataType, Value};

use crate::alter;
use crate::check_table::{self, Depth};
use crate::statistics::{self, ANALYZED_ENTRIES_MAX, Effort};
use crate::{Ddl, Name};

/// A result: its columns and its rows.
pub type Rows = (Vec<ResultColumn>, Vec<Vec<Value>>);

/// Runs the statement; what it tells of each table is a row.
///
/// # Errors
/// 1046 without a schema; 1317 after a KILL. What goes wrong with a table is a row.
pub fn maintain(
    ddl: &mut Ddl<'_>,
    action: Maintenance,
    tables: &[ast::ObjectName],
    options: &[Box<str>],
) -> Result<Rows> {
    let mut names = Vec::with_capacity(tables.len());
    for table in tables {
        let schema = ddl.session.schema_or_current(table.schema.as_ref())?;
        names.push(Name {
            schema,
            table: table.name.0.clone(),
        });
    }
    if action == Maintenance::Checksum {
        return checksum(ddl, &names);
    }
    let verb = match action {
        Maintenance::Analyze => "analyze",
        Maintenance::Check => "check",
        Maintenance::Optimize => "optimize",
        _ => "repair",
    };
    let mut rows = Vec::new();
    for name in &names {
        let mut tell = |kind: &str, message: String| {
            rows.push(vec![
                Value::from(name.to_string()),
                verb.into(),
                kind.into(),
                message.into(),
            ]);
        };
        let Some(table) = find(ddl, name) else {
            tell("Error", format!("Table '{name}' doesn't exist"));
            tell("status", "Operation failed".into());
            continue;
        };
        let Some(table) = table else {
            match action {
                Maintenance::Check => {
                    let faults = view_faults(ddl, name);
                    for fault in &faults {
                        tell("Error", fault.message().into());
                    }
                    match faults.is_empty() {
                        true => tell("status", "OK".into()),
                        false => tell("error", "Corrupt".into()),
                    }
                }
                _ => {
                    tell("Error", format!("'{name}' is not BASE TABLE"));
                    tell("status", "Operation failed".into());
                }
            }
            continue;
        };
        match action {
            Maintenance::Check => {
                let snapshot = ddl.shared.store.snapshot();
                let depth = Depth::of(options);
                match check_table::check(ddl, &table, &snapshot, depth)? {
                    problems if problems.is_empty() => tell("status", "OK".into()),
                    problems => {
                        for problem in problems {
                            tell("Error", problem);
                        }
                        tell("error", "Corrupt".into());
                    }
                }
            }
            Maintenance::Repair => tell(
                "note",
                "The storage engine for the table doesn't support repair".into(),
            ),
            _ => {
                if action == Maintenance::Optimize {
                    tell(
                        "note",
                        "Table does not support optimize, doing recreate + analyze instead".into(),
                    );
                    if let Err(error) = recreate(ddl, name, &table) {
                        interrupted(ddl)?;
                        tell("Error", error.message().into());
                        tell("status", "Operation failed".into());
                        continue;
                    }
                }
                let Some(Some(table)) = find(ddl, name) else {
                    continue;
                };
                let effort = Effort {
                    entries_max: ANALYZED_ENTRIES_MAX,
                    values_bytes_max: ddl.session.histogram_generation_max_mem_size,
                    check: &|| interrupted(ddl),
                };
                statistics::analyze(ddl.shared, &table, &effort)?;
                tell("status", "OK".into());
            }
        }
    }
    if action == Maintenance::Optimize {
        let given_back = ddl.shared.store.shrink(|| interrupted(ddl).is_ok());
        interrupted(ddl)?;
        given_back?;
    }
    Ok((columns(), rows))
}

/// Copies the rows, where columns were added to them or dropped from them that lie in parts of their own
/// or left room. Other rows are no shorter when they are copied.
fn recreate(ddl: &mut Ddl<'_>, name: &Name, table: &Table) -> Result<()> {
    if table.row_versions() == 0 {
        return Ok(());
    }
    let name = ast::ObjectName {
        schema: Some(ast::Ident(name.schema.clone())),
        name: ast::Ident(name.table.clone()),
    };
    alter::alter(ddl, &name, &[ast::AlterAction::Force], None).map(|_| ())
}

/// The columns of the results of ANALYZE, CHECK, OPTIMIZE and REPAIR TABLE.
pub(crate) fn columns() -> Vec<ResultColumn> {
    ["Table", "Op", "Msg_type", "Msg_text"]
        .map(|name| ResultColumn::expression(name, DataType::varchar(128), true))
        .into()
}

/// What keeps the view of that name from being read.
fn view_faults(ddl: &Ddl<'_>, name: &Name) -> Vec<Error> {
    match ddl
        .shared
        .catalog
        .load()
        .relation(&name.schema, &name.table)
    {
        Some(Relation::View(view)) => ddl.view_faults(&view),
        _ => Vec::new(),
    }
}

/// A base table; `Some(None)` for a view or a virtual table.
fn find(ddl: &Ddl<'_>, name: &Name) -> Option<Option<std::sync::Arc<Table>>> {
    let temporary = ddl
        .session
        .temporary_tables
        .get(&(name.schema.clone(), name.table.clone()));
    if let Some(table) = temporary {
        return Some(Some(table.clone()));
    }
    match ddl
        .shared
        .catalog
        .load()
        .relation(&name.schema, &name.table)?
    {
        Relation::Table(table) => Some(Some(table)),
        _ => Some(None),
    }
}

pub(super) fn each(
    snapshot: &Snapshot,
    space: SpaceId,
    mut row: impl FnMut(&[u8], &[u8]) -> Result<bool>,
) -> Result<()> {
    let mut cursor = snapshot.range(
        space,
        (Bound::Unbounded, Bound::Unbounded),
        Direction::Forward,
    )?;
    while let Some((key, value)) = cursor.next()? {
        if !row(key, value)? {
            break;
        }
    }
    Ok(())
}

pub(super) fn interrupted(ddl: &Ddl<'_>) -> Result<()> {
    if ddl.session.interrupt.is_set() {
        Err(Error::query_interrupted())
    } else {
        Ok(())
    }
}

/// CHECKSUM TABLE: a number that changes with any value of any row, and not with how rows lie.
fn checksum(ddl: &mut Ddl<'_>, names: &[Name]) -> Result<Rows> {
    let mut rows = Vec::new();
    for name in names {
        let sum = match find(ddl, name) {
            Some(Some(table)) => {
                let snapshot = ddl.shared.store.snapshot();
                let mut sum = 0u32;
                let columns = table.columns.len();
                each(&snapshot, table.space, |_, row| {
                    interrupted(ddl)?;
                    let values = (0..columns).map(|column| table.layout.raw(row, column));
                    sum = sum.wrapping_add(fnv(values));
                    Ok(true)
                })?;
                Value::UInt(u64::from(sum))
            }
            _ => {
                let error = Error::no_such_table(&name.schema, &name.table);
                ddl.session.warn(Level::Error, error.into_condition());
                Value::Null
            }
        };
        rows.push(vec![Value::from(name.to_string()), sum]);
    }
    let columns = vec![
        ResultColumn::expression("Table", DataType::varchar(128), true),
        ResultColumn::expression("Checksum", DataType::BIGINT_UNSIGNED, true),
    ];
    Ok((columns, rows))
}

/// FNV-1a: the same for the same values on every machine and in every version.
fn fnv<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> u32 {
    let add = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    values.fold(0x811C_9DC5, |hash, value| match value {
        None => add(hash, &0),
        Some(bytes) => {
            let head = (bytes.len() as u64 + 1).to_le_bytes();
            bytes.iter().fold(head.iter().fold(hash, add), add)
        }
    })
}
