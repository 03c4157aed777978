//! Repairs indexes after rows were lost.
//!
//! `porpoise recover` saves rows and index entries from the pages that are still readable, so the
//! two need not agree. The repair takes the rows as correct: it removes entries that belong to no
//! row, and adds the entries that rows lack.

use std::ops::Bound;
use std::sync::Arc;

use porpoise_catalog::index_entry;
use porpoise_catalog::{Index, IndexKind, Relation, Table};
use porpoise_core::error::Result;
use porpoise_storage::{Direction, Snapshot, SpaceId, Transaction};

use crate::engine::Engine;

/// How many changes go into one transaction.
const BATCH: usize = 10_000;

/// A table whose indexes agree with its rows.
#[derive(Debug)]
pub struct RepairedTable {
    /// `schema.name`.
    pub name: String,
    /// The space of its rows.
    pub rows: SpaceId,
    /// The spaces of its secondary indexes.
    pub entries: Vec<SpaceId>,
    /// The indexes that had to be changed, with the entries removed and added.
    pub repaired: Vec<(String, u64, u64)>,
}

/// Makes the indexes of all tables agree with their rows. `begin` is called with each table's
/// `schema.name` before the table is read.
///
/// # Errors
/// Damage in storage, and I/O errors. The tables before stay repaired.
pub fn repair_indexes(engine: &Engine, mut begin: impl FnMut(&str)) -> Result<Vec<RepairedTable>> {
    let mut tables = Vec::new();
    for table in base_tables(engine) {
        let mut repaired = RepairedTable {
            name: format!("{}.{}", table.schema, table.name),
            rows: table.space,
            entries: Vec::new(),
            repaired: Vec::new(),
        };
        begin(&repaired.name);
        let indexes = table.indexes.iter();
        for index in indexes.filter(|index| index.kind != IndexKind::Primary) {
            repaired.entries.push(index.space);
            let removed = remove_strays(engine, &table, index)?;
            let added = add_missing(engine, &table, index)?;
            if removed + added > 0 {
                repaired
                    .repaired
                    .push((index.name.to_string(), removed, added));
            }
        }
        tables.push(repaired);
    }
    Ok(tables)
}

fn base_tables(engine: &Engine) -> Vec<Arc<Table>> {
    let catalog = engine.shared.catalog.load();
    let relations = catalog
        .schemas
        .values()
        .flat_map(|entry| entry.relations.values());
    let mut tables: Vec<Arc<Table>> = relations
        .filter_map(|relation| match relation {
            Relation::Table(table) => Some(Arc::clone(table)),
            _ => None,
        })
        .collect();
    tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
    tables
}

/// Changes that are committed some at a time.
struct Batches<'a> {
    engine: &'a Engine,
    work: Transaction,
    waiting: usize,
    done: u64,
}

impl<'a> Batches<'a> {
    fn new(engine: &'a Engine) -> Batches<'a> {
        Batches {
            engine,
            work: engine.shared.store.begin(),
            waiting: 0,
            done: 0,
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Transaction)) -> Result<()> {
        change(&mut self.work);
        self.waiting += 1;
        self.done += 1;
        match self.waiting {
            BATCH => self.commit(),
            _ => Ok(()),
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.waiting = 0;
        let work = std::mem::replace(&mut self.work, self.engine.shared.store.begin());
        Ok(work.commit()?.wait()?)
    }

    fn finish(mut self) -> Result<u64> {
        self.commit()?;
        Ok(self.done)
    }
}

fn each_row(
    snapshot: &Snapshot,
    space: SpaceId,
    mut row: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut cursor = snapshot.range(space, all, Direction::Forward)?;
    while let Some((key, value)) = cursor.next()? {
        row(key, value)?;
    }
    Ok(())
}

/// Removes the entries that belong to no row.
fn remove_strays(engine: &Engine, table: &Table, index: &Index) -> Result<u64> {
    let snapshot = engine.shared.store.snapshot();
    let mut batches = Batches::new(engine);
    let mut value = Vec::new();
    each_row(&snapshot, index.space, |entry, held| {
        let (primary_key, _) = index_entry::split(held);
        let is_own = snapshot.get(table.space, primary_key, |row| {
            index_entry::is_entry_of(table, index, (primary_key, row), (entry, held), &mut value)
        })?;
        match is_own {
            Some(true) => Ok(()),
            _ => batches.change(|work| work.delete(index.space, entry)),
        }
    })?;
    batches.finish()
}

/// Adds the entries that rows lack.
fn add_missing(engine: &Engine, table: &Table, index: &Index) -> Result<u64> {
    let snapshot = engine.shared.store.snapshot();
    let mut batches = Batches::new(engine);
    let mut value = Vec::new();
    each_row(&snapshot, table.space, |key, row| {
        let parts = index_entry::parts_of(table, index, row);
        let entry = index_entry::entry_key(index, &parts, key);
        match snapshot.get(index.space, &entry, |_| ())? {
            Some(()) => Ok(()),
            None => {
                index_entry::entry_value(table, index, key, row, &mut value);
                batches.change(|work| work.insert(index.space, &entry, &value))
            }
        }
    })?;
    batches.finish()
}
