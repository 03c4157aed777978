//! RENAME TABLE: any number of renames, left to right, all or none. What it does with the logs is in
//! [`rename_logs`](crate::rename_logs).

use std::sync::Arc;

use porpoise_catalog::record::{TableRecord, ViewRecord};
use porpoise_catalog::{CatalogChange, Relation, Table};
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::Completion;
use porpoise_planner::bind_table_expression;
use porpoise_sql::ast;

use crate::rename_logs::LogRenames;
use crate::{Ddl, Name, check_table_name, foreign_keys, lock};

pub fn rename(
    ddl: &mut Ddl<'_>,
    pairs: &[(ast::ObjectName, ast::ObjectName)],
) -> Result<Completion> {
    let mut steps = Vec::with_capacity(pairs.len());
    for (old, new) in pairs {
        let (old, new) = (ddl.resolve(old)?, ddl.resolve(new)?);
        check_table_name(&new.table)?;
        steps.push((old, new));
    }
    // Tables that exist now; the others come into being by an earlier step.
    let catalog = ddl.shared.catalog.load_full();
    let children = steps
        .iter()
        .flat_map(|(old, new)| [old, new])
        .flat_map(|name| {
            let children = catalog.children(&name.schema, &name.table);
            children.into_iter().map(|child| Name {
                schema: child.schema.clone(),
                table: child.name.clone(),
            })
        });
    let mut names: Vec<Name> = steps
        .iter()
        .flat_map(|(old, new)| [old.clone(), new.clone()])
        .chain(children)
        .filter(|name| {
            let is_there = catalog.relation(&name.schema, &name.table).is_some();
            is_there && ddl.temporary(name).is_none()
        })
        .collect();
    names.sort();
    names.dedup();
    let _held = lock::relations(ddl, &names)?;
    for (old, new) in &steps {
        ddl.check_schema(&catalog, &old.schema)?;
        ddl.check_schema(&catalog, &new.schema)?;
    }
    let logs = LogRenames::begin(ddl, &steps)?;
    match move_all(ddl, &steps, &logs) {
        Ok(()) => logs.finish(ddl)?,
        Err(error) => {
            logs.abandon(ddl)?;
            return Err(error);
        }
    }
    Ok(Completion::default())
}

fn move_all(ddl: &Ddl<'_>, steps: &[(Name, Name)], logs: &LogRenames) -> Result<()> {
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    for (old, new) in steps {
        if !logs.put(&mut change, old, new)? {
            move_relation(ddl, &mut change, old, new)?;
        }
    }
    change.commit()
}

/// Gives a table or view another name within a change.
pub fn move_relation(
    ddl: &Ddl<'_>,
    change: &mut CatalogChange<'_>,
    old: &Name,
    new: &Name,
) -> Result<()> {
    if change.catalog().relation(&new.schema, &new.table).is_some() {
        return Err(Error::table_exists(&new.table));
    }
    match change.catalog().relation(&old.schema, &old.table) {
        Some(Relation::Table(table)) => {
            change.detach_relation(&old.schema, &old.table);
            let mut record = TableRecord::of(&table);
            rename_record(&mut record, new);
            record.version = ddl.shared.dictionary.next_version();
            if let Some(entry) = change.catalog().schema(&record.schema).cloned() {
                foreign_keys::check_names_are_free(&record, &entry)?;
            }
            let renamed = record.bind(Arc::clone(&table.state), bind_table_expression)?;
            change.put_table(&record, Arc::new(renamed))?;
            move_triggers(change, &table, &record)?;
            foreign_keys::follow(ddl, change, &record, old, &foreign_keys::Renames::default())
        }
        Some(Relation::View(view)) => {
            if old.schema != new.schema {
                return Err(Error::view_schema_change(&old.schema, &new.schema));
            }
            change.detach_relation(&old.schema, &old.table);
            let version = ddl.shared.dictionary.next_version();
            let record = ViewRecord {
                name: new.table.clone(),
                version,
                ..view.record()
            };
            change.put_view(record, Some(&view))
        }
        _ => Err(Error::no_such_table(&old.schema, &old.table)),
    }
}

/// Has the triggers of a table belong to what it is called now.
///
/// # Errors
/// 1435 where that is in another schema.
pub fn move_triggers(change: &mut CatalogChange<'_>, old: &Table, new: &TableRecord) -> Result<()> {
    if (&old.schema, &old.name) == (&new.schema, &new.name) {
        return Ok(());
    }
    let triggers = change.catalog().triggers(&old.schema, &old.name);
    if old.schema != new.schema && !triggers.is_empty() {
        return Err(Error::trigger_in_wrong_schema());
    }
    for trigger in triggers {
        let mut record = trigger.record.clone();
        if let Some(fired) = &mut record.trigger {
            fired.table = new.name.clone();
        }
        change.put_program(record)?;
    }
    Ok(())
}

/// Renames a table's record, with the checks that were named after it.
pub fn rename_record(record: &mut TableRecord, new: &Name) {
    let prefix = format!("{}_chk_", record.name);
    for check in &mut record.checks {
        if let Some(number) = check
            .name
            .strip_prefix(prefix.as_str())
            .filter(|number| number.parse::<u32>().is_ok())
        {
            check.name = format!("{}_chk_{number}", new.table).into();
        }
    }
    foreign_keys::rename_in_record(record, new);
    record.schema = new.schema.clone();
    record.name = new.table.clone();
}
