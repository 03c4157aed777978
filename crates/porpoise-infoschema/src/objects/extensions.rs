//! What engines could say of schemas, tables and columns beyond their definitions. Ours says
//! nothing: the rows name what there is.

use porpoise_types::Value;

use super::*;

pub(super) fn schemata_extensions(
    exec: &mut Exec<'_>,
    lookup: &Lookup,
    row: Sink<'_>,
) -> Result<()> {
    for entry in visible_schemas(exec, lookup) {
        let options = match entry.schema.read_only {
            true => "READ ONLY=1",
            false => "",
        };
        row(
            exec,
            &[text(CATALOG), text(&entry.schema.name), text(options)],
        )?;
    }
    Ok(())
}

pub(super) fn tables_extensions(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    let tables = visible_tables(exec, lookup);
    let tables = tables.iter().map(|table| (&table.schema, &table.name));
    let views = visible_views(exec, lookup);
    let views = views.iter().map(|view| (&view.schema, &view.name));
    for (schema, name) in tables.chain(views) {
        let names = [text(CATALOG), text(schema), text(name)];
        row(
            exec,
            &[names.as_slice(), &[Value::Null, Value::Null]].concat(),
        )?;
    }
    Ok(())
}

/// A row an index, as MySQL has it: attributes of constraints are attributes of their indexes.
pub(super) fn table_constraints_extensions(
    exec: &mut Exec<'_>,
    lookup: &Lookup,
    row: Sink<'_>,
) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        for index in &table.indexes {
            let names = [&table.schema, &index.name, &table.name].map(text);
            let row_of = [text(CATALOG)].into_iter().chain(names);
            let values: Vec<Value> = row_of.chain([Value::Null, Value::Null]).collect();
            row(exec, &values)?;
        }
    }
    Ok(())
}

pub(super) fn columns_extensions(
    exec: &mut Exec<'_>,
    lookup: &Lookup,
    row: Sink<'_>,
) -> Result<()> {
    for table in visible_tables(exec, lookup) {
        for column in table.declared_columns() {
            let names = [&table.schema, &table.name, &column.name].map(text);
            let row_of = [text(CATALOG)].into_iter().chain(names);
            let values: Vec<Value> = row_of.chain([Value::Null, Value::Null]).collect();
            row(exec, &values)?;
        }
    }
    for view in visible_views(exec, lookup) {
        for column in &view.columns {
            let names = [&view.schema, &view.name, column].map(text);
            let row_of = [text(CATALOG)].into_iter().chain(names);
            let values: Vec<Value> = row_of.chain([Value::Null, Value::Null]).collect();
            row(exec, &values)?;
        }
    }
    Ok(())
}
