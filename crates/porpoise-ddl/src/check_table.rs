//! CHECK TABLE: whether a table is as it was written.
//!
//! 1. Every page of the table's rows and of its indexes is read from disk, and its checksum
//!    verified.
//! 2. Every row of one snapshot is decoded, and lies under its own primary key.
//! 3. Every row is looked up in every index. `QUICK` leaves this out.
//! 4. The entries of each index are counted. `EXTENDED` leads each back to its row instead, and
//!    compares what the entry should be.
//!
//! `FAST`, `MEDIUM`, `CHANGED` and `FOR UPGRADE` are taken, as InnoDB takes them, and change
//! nothing. What can't be read is told of as what doesn't agree is; the statement itself fails only
//! when it is killed.

use porpoise_catalog::index_entry;
use porpoise_catalog::{Index, IndexKind, Table};
use porpoise_core::error::{Error, Result};
use porpoise_storage::{Snapshot, SpaceId};

use crate::Ddl;
use crate::maintain::{each, interrupted};

/// How many problems are reported for each part of a table.
const PROBLEMS_MAX: usize = 10;

/// How much CHECK TABLE looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Quick,
    Usual,
    Extended,
}

impl Depth {
    /// The deepest that the options ask for.
    pub fn of(options: &[Box<str>]) -> Depth {
        let has = |name: &str| options.iter().any(|option| **option == *name);
        match (has("EXTENDED"), has("QUICK")) {
            (true, _) => Depth::Extended,
            (false, true) => Depth::Quick,
            (false, false) => Depth::Usual,
        }
    }
}

/// What is wrong with a table, at most some of it.
pub fn check(
    ddl: &Ddl<'_>,
    table: &Table,
    snapshot: &Snapshot,
    depth: Depth,
) -> Result<Vec<String>> {
    let mut problems = check_pages(ddl, table.space)?;
    for index in secondary(table) {
        problems.extend(check_pages(ddl, index.space)?);
    }
    if !problems.is_empty() {
        return Ok(problems);
    }
    let rows = check_rows(ddl, table, snapshot, depth, &mut problems)?;
    if !problems.is_empty() || depth == Depth::Quick {
        return Ok(problems);
    }
    for index in secondary(table) {
        match depth {
            Depth::Extended => check_entries(ddl, table, index, snapshot, &mut problems)?,
            _ => count_entries(ddl, index, snapshot, rows, &mut problems)?,
        }
    }
    Ok(problems)
}

fn secondary(table: &Table) -> impl Iterator<Item = &Index> {
    let indexes = table.indexes.iter();
    indexes.filter(|index| index.kind != IndexKind::Primary)
}

/// Reads a space's pages from disk.
fn check_pages(ddl: &Ddl<'_>, space: SpaceId) -> Result<Vec<String>> {
    let store = &ddl.shared.store;
    let verified = store.verify(space, || !ddl.session.interrupt.is_set())?;
    interrupted(ddl)?;
    let damage = verified.damage.into_iter().take(PROBLEMS_MAX);
    let messages = damage.map(|error| Error::from(error).message().to_string());
    Ok(messages.collect())
}

/// Ends a part of the check: what can't be read is a problem, unless somebody has killed the
/// statement.
fn keep_problem(ddl: &Ddl<'_>, outcome: Result<()>, problems: &mut Vec<String>) -> Result<()> {
    interrupted(ddl)?;
    if let Err(error) = outcome {
        problems.push(error.message().to_string());
    }
    Ok(())
}

/// Looks at every row, and counts them.
fn check_rows(
    ddl: &Ddl<'_>,
    table: &Table,
    snapshot: &Snapshot,
    depth: Depth,
    problems: &mut Vec<String>,
) -> Result<u64> {
    let mut rows = 0u64;
    let mut value = Vec::new();
    let outcome = each(snapshot, table.space, |key, row| {
        interrupted(ddl)?;
        rows += 1;
        if let Some(column) = table.layout.first_corrupt_column(row) {
            let column = table
                .columns
                .get(column)
                .map_or("its end", |c| c.name.as_str());
            problems.push(format!("Row {rows} can't be read at {column}"));
            return Ok(problems.len() < PROBLEMS_MAX);
        }
        if let Some(primary) = table.primary_key()
            && index_entry::parts_of(table, primary, row).parts.as_slice() != key
        {
            problems.push(format!(
                "Row {rows} is stored under another row's primary key"
            ));
        }
        for index in secondary(table).filter(|_| depth != Depth::Quick) {
            let parts = index_entry::parts_of(table, index, row);
            let entry = index_entry::entry_key(index, &parts, key);
            index_entry::entry_value(table, index, key, row, &mut value);
            match snapshot.get(index.space, &entry, |found| found == value)? {
                Some(true) => {}
                Some(false) => problems.push(format!(
                    "Index '{}' holds other values than row {rows}",
                    index.name
                )),
                None => problems.push(format!("Index '{}' lacks row {rows}", index.name)),
            }
        }
        Ok(problems.len() < PROBLEMS_MAX)
    });
    keep_problem(ddl, outcome, problems)?;
    Ok(rows)
}

fn count_entries(
    ddl: &Ddl<'_>,
    index: &Index,
    snapshot: &Snapshot,
    rows: u64,
    problems: &mut Vec<String>,
) -> Result<()> {
    let mut entries = 0u64;
    let outcome = each(snapshot, index.space, |_, _| {
        interrupted(ddl)?;
        entries += 1;
        Ok(true)
    });
    if outcome.is_ok() && entries != rows {
        problems.push(format!(
            "Index '{}' has {entries} entries, the table {rows} rows",
            index.name
        ));
    }
    keep_problem(ddl, outcome, problems)
}

/// Leads every entry of an index back to its row.
fn check_entries(
    ddl: &Ddl<'_>,
    table: &Table,
    index: &Index,
    snapshot: &Snapshot,
    problems: &mut Vec<String>,
) -> Result<()> {
    let found_before = problems.len();
    let mut entries = 0u64;
    let mut value = Vec::new();
    let outcome = each(snapshot, index.space, |entry, held| {
        interrupted(ddl)?;
        entries += 1;
        let (primary_key, _) = index_entry::split(held);
        let is_own = snapshot.get(table.space, primary_key, |row| {
            index_entry::is_entry_of(table, index, (primary_key, row), (entry, held), &mut value)
        })?;
        match is_own {
            Some(true) => {}
            Some(false) => problems.push(format!(
                "Entry {entries} of index '{}' is not its row's",
                index.name
            )),
            None => problems.push(format!(
                "Entry {entries} of index '{}' leads to no row",
                index.name
            )),
        }
        Ok(problems.len() - found_before < PROBLEMS_MAX)
    });
    keep_problem(ddl, outcome, problems)
}
