//! CREATE TABLE … LIKE: an empty table with the columns, keys and checks of another.

use std::sync::Arc;

use porpoise_catalog::record::TableRecord;
use porpoise_catalog::{system_table, virtual_table};
use porpoise_core::error::Result;
use porpoise_core::reply::Completion;
use porpoise_sql::ast;

use crate::create::{exists, place, publish};
use crate::{Ddl, table};

/// An empty table with another's columns, keys and checks.
pub fn create_like(
    ddl: &mut Ddl<'_>,
    temporary: bool,
    if_not_exists: bool,
    name: &ast::ObjectName,
    source: &ast::ObjectName,
) -> Result<Completion> {
    let (name, source) = (ddl.resolve(name)?, ddl.resolve(source)?);
    if exists(ddl, &name, temporary, if_not_exists)? {
        return Ok(Completion::default());
    }
    if !temporary {
        let locked = &ddl.session.locked_tables;
        locked.admits_change(&name.schema, &name.table)?;
    }
    let own = virtual_table::find(&source.schema, &source.table);
    let own = own.filter(|_| ddl.temporary(&source).is_none());
    let mut record = match own.and_then(system_table::record) {
        Some(own) => own,
        None => TableRecord::of(&*ddl.table(&source)?),
    };
    record.foreign_keys.clear();
    record.forget_alterations();
    for index in &mut record.indexes {
        index.implicit = false;
    }
    record.id = ddl.shared.dictionary.next_table_id();
    record.version = ddl.shared.dictionary.next_version();
    record.created_s = ddl.now_us() / 1_000_000;
    record.temporary = temporary;
    // Names of checks are a schema's own: all are made anew, as MySQL does.
    for (position, check) in record.checks.iter_mut().enumerate() {
        check.name = format!("{}_chk_{}", name.table, position + 1).into();
    }
    record.schema = name.schema;
    record.name = name.table;
    for index in &mut record.indexes {
        index.origin = None;
    }
    place(ddl, &mut record);
    let table = Arc::new(table::bind(
        &record,
        Arc::new(ddl.shared.dictionary.new_state()),
    )?);
    publish(ddl, &record, table, None, None, if_not_exists)
}
