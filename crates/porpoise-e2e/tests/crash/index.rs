//! Every index of a table agrees with the table.
//!
//! The rows are read by the primary key, or by a scan where there is none, and again by each index:
//! its own columns alone (what the entries hold), and all columns (which rows the entries lead to).
//! EXPLAIN must say that the index was read. CHECK TABLE, the server's own check, must find nothing
//! either.

use crate::victim::Client;

struct Index {
    name: String,
    columns: Vec<String>,
}

pub fn agree_with(client: &mut Client, table: &str) -> Result<(), String> {
    let described = client.must_rows(&format!("SHOW COLUMNS FROM {table}"))?;
    let columns: Vec<&str> = described.iter().map(|row| row[0].as_str()).collect();
    let Some(&id) = columns.first() else {
        return Err(format!("{table} has no columns"));
    };
    let mut indexes: Vec<Index> = Vec::new();
    for row in client.must_rows(&format!("SHOW INDEX FROM {table}"))? {
        let [_, _, name, _, column, ..] = row.as_slice() else {
            return Err(format!("SHOW INDEX FROM {table}: {row:?}"));
        };
        match indexes.last_mut() {
            Some(last) if last.name == *name => last.columns.push(column.clone()),
            _ => indexes.push(Index {
                name: name.clone(),
                columns: vec![column.clone()],
            }),
        }
    }
    let has_primary = indexes.iter().any(|i| i.name == "PRIMARY");
    let by_rows = match has_primary {
        true => "FORCE INDEX (PRIMARY)",
        false => "USE INDEX ()",
    };
    let all = columns.join(", ");
    for index in indexes.iter().filter(|i| i.name != "PRIMARY") {
        let key = index.columns.join(", ");
        let first = &index.columns[0];
        let is_text = described
            .iter()
            .any(|row| row[0] == *first && row[1].contains("char"));
        let lowest = if is_text { "''" } else { "-2147483648" };
        for selected in [&all, &format!("{key}, {id}")] {
            let order = format!("WHERE {first} >= {lowest} ORDER BY {key}, {id}");
            let by_table = format!("SELECT {selected} FROM {table} {by_rows} {order}");
            let by_index = format!(
                "SELECT {selected} FROM {table} FORCE INDEX ({}) {order}",
                index.name
            );
            let (want, have) = (client.must_rows(&by_table)?, client.must_rows(&by_index)?);
            let missing = want.iter().find(|row| !have.contains(row));
            let beyond = have.iter().find(|row| !want.contains(row));
            if want != have {
                return Err(format!(
                    "{table} has {} rows, its index {} leads to {}: the table alone has {missing:?}, \
                     the index alone {beyond:?}, or their order differs",
                    want.len(),
                    index.name,
                    have.len(),
                ));
            }
            reads(client, &by_index, &index.name)?;
        }
    }
    check_table(client, table)
}

fn reads(client: &mut Client, sql: &str, index: &str) -> Result<(), String> {
    let (names, rows) = client
        .table(&format!("EXPLAIN {sql}"))
        .map_err(|t| format!("EXPLAIN {sql}: {t:?}"))?;
    let key = names.iter().position(|name| name == "key");
    match key.and_then(|at| rows.first()?.get(at)) {
        Some(used) if used == index => Ok(()),
        used => Err(format!("{sql} reads {used:?} instead of {index}")),
    }
}

fn check_table(client: &mut Client, table: &str) -> Result<(), String> {
    let rows = client.must_rows(&format!("CHECK TABLE {table}"))?;
    match rows
        .iter()
        .all(|row| row.last().is_some_and(|text| text == "OK"))
    {
        true => Ok(()),
        false => Err(format!("CHECK TABLE {table}: {rows:?}")),
    }
}
