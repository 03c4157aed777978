//! A suite's tables on a server.

use std::time::{Duration, Instant};

use porpoise_client::Connection;

use super::{Row, Suite, Table};
use crate::progress::Progress;
use crate::{Error, Target};

/// Bytes a statement while loading: many rows, and far below every server's longest packet.
const STATEMENT_BYTES: usize = 512 << 10;

/// Makes the suite's tables in the target's database, fills them, and has the server analyse them;
/// how long it took.
///
/// # Errors
/// If the target can't be reached or refuses a statement: the tables must not be there yet.
pub fn load(target: &Target, suite: &dyn Suite, progress: bool) -> Result<Duration, Error> {
    let began = Instant::now();
    let mut progress = Progress::new(progress);
    let failed = target.failed("loading");
    let mut connection = Connection::connect(&target.options).map_err(&failed)?;
    fill_suite(&mut connection, suite, &mut |what| {
        progress.show(&format!("{}: {what}", target.name));
    })
    .map_err(&failed)?;
    progress.clear();
    Ok(began.elapsed())
}

/// The same in the database that a connection uses; `show` is told what it is at.
pub(crate) fn fill_suite(
    connection: &mut Connection,
    suite: &dyn Suite,
    show: &mut dyn FnMut(&str),
) -> Result<(), porpoise_client::Error> {
    // Every row is right, and reference columns have indexes already.
    connection.run("SET foreign_key_checks = 0, unique_checks = 0")?;
    for definition in suite.definitions() {
        connection.run(definition)?;
    }
    let mut names = Vec::new();
    for table in suite.tables() {
        let name = table.name;
        names.push(name);
        fill(connection, table, |rows| {
            show(&format!("{rows} rows of {name}"));
        })?;
    }
    show("ANALYZE TABLE");
    connection.run(format!("ANALYZE TABLE {}", names.join(", ")))?;
    Ok(())
}

/// Inserts a table's rows; `loaded` is told how many are in.
pub(crate) fn fill(
    connection: &mut Connection,
    table: Table<'_>,
    mut loaded: impl FnMut(u64),
) -> Result<(), porpoise_client::Error> {
    let insert = format!("INSERT INTO {} VALUES ", table.name);
    let mut sql = insert.clone();
    let mut rows = 0;
    for row in table.rows {
        if sql.len() > insert.len() {
            sql.push(',');
        }
        write_row(&row, &mut sql);
        rows += 1;
        if sql.len() >= STATEMENT_BYTES {
            connection.run(&sql)?;
            sql.truncate(insert.len());
            loaded(rows);
        }
    }
    if sql.len() > insert.len() {
        connection.run(&sql)?;
    }
    Ok(())
}

fn write_row(row: &Row, sql: &mut String) {
    let mut before = '(';
    for value in row {
        sql.push(before);
        value.write_literal(sql);
        before = ',';
    }
    sql.push(')');
}
