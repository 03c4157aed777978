//! Filling a table that has no rows with very many.
//!
//! Few rows are writes of the statement's transaction, as any others are. Once they have grown to
//! [`SMALL_BYTES`], those so far and all that follow go into the tree beside the log ([`BulkLoad`]),
//! in the order of their keys:
//!
//! ```text
//! rows ─┬─ greater than all before ─────────────────────────────────────► tree
//!       └─ else ─► external sort ─► in order, equal keys refused: 1062 ─► tree
//! ```
//!
//! Such rows are neither locked nor looked for. When all have come, the secondary indexes are built as
//! for a table that has rows ([`index_build`](crate::index_build)).
//!
//! | table | by | rows go to | in the end |
//! | --- | --- | --- | --- |
//! | new, nobody sees it yet | CREATE … SELECT, ALTER | its spaces, which have no owner yet | the caller's catalog change makes them its own |
//! | there, without rows | INSERT, LOAD DATA ([`EmptyTable`]) | new spaces | they take the place of the table's ([`put_in_place`]) |
//!
//! If the statement fails or is killed, the new spaces are dropped; after a crash, too, for they have
//! no owner yet.
//!
//! **A table that is there is seen by others.** From when its rows leave the transaction until they
//! are in place, the statement keeps writers of the table and FOR UPDATE out, by a metadata lock
//! that it gets at once or not at all. Only then it looks whether the table is empty, as the newest
//! commits have it. If it can't have both, the rows stay in the transaction to the end. Readers go on:
//! the table is empty for every snapshot until the rows are in place, and in older ones for good. The
//! statement has to be a transaction of its own, for rows in place can't be taken back.
//!
//! **What differs:** FOR SHARE, and reads under SERIALIZABLE, lock rows that they don't find against
//! inserts; a statement that fills an empty table waits only for those of its first 4 MiB. An INSERT
//! of rows that refer to what is being put into an empty table fails with 1452 at once behind these,
//! where it would wait for a row. Where several rows have keys that are taken, the error names the one
//! that is found first, which is not always the first one of the source.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use porpoise_catalog::dictionary::{create_unclaimed, drop_unclaimed};
use porpoise_catalog::{IndexKind, Table};
use porpoise_core::error::{Level, Result};
use porpoise_core::external_sort::ExternalSort;
use porpoise_expr::EvalContext;
use porpoise_mdl::{HasFastPath, MdlTicket};
use porpoise_planner::plan::{Insert, InsertSource, OnDuplicate};
use porpoise_storage::{
    BulkLoad, Direction, LoadedSpace, Savepoint, Snapshot, SpaceId, Store, put_in_place,
};

use crate::Exec;
use crate::index_build::{IndexBuild, TableSpaces};
use crate::write::duplicate_entry;

/// Rows and index entries of so many bytes go through the log.
pub const SMALL_BYTES: usize = 4 << 20;
/// An INSERT of fewer rows that are written out is not looked at.
const VALUES_MIN: usize = 100;
/// The buffer of a sort.
const SORT_BUFFER_BYTES: usize = 32 << 20;

/// A table that is being filled.
pub struct BulkFill {
    table: Arc<Table>,
    /// Where the transaction was before the first row.
    began: Savepoint,
    // Dropped before the spaces that it writes to.
    rows: Rows,
    /// `None` for a new table.
    empty: Option<EmptyTable>,
}

/// Where the rows are.
enum Rows {
    /// In the transaction, with the entries of indexes: so many bytes.
    InTransaction(usize),
    /// In the transaction to the end: the table has others, or others write to it.
    Staying,
    BesideLog(Box<BesideLog>),
}

/// Rows that go into the tree.
struct BesideLog {
    load: BulkLoad,
    space: SpaceId,
    /// How many.
    count: u64,
    /// The greatest key.
    last: Vec<u8>,
    /// Those that didn't come in the order of their keys.
    others: Option<ExternalSort>,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Nothing: it is to be written in the transaction.
    No,
    /// It is beside the log, or in a sort on its way there.
    BesideLog,
    /// The row before has its key.
    Duplicate,
}

impl BulkFill {
    /// Begins to fill a new table, whose spaces must be without owners, in the execution's
    /// transaction.
    ///
    /// # Errors
    /// If the execution has no transaction.
    pub fn begin(exec: &mut Exec<'_>, table: &Arc<Table>) -> Result<BulkFill> {
        Ok(BulkFill {
            table: Arc::clone(table),
            began: exec.transaction()?.savepoint(),
            rows: Rows::InTransaction(0),
            empty: None,
        })
    }

    /// Notes a row that was written in the transaction, with its index entries. If there are many
    /// now, all of them leave the transaction.
    ///
    /// # Errors
    /// Those of [`push`](BulkFill::push).
    pub fn note_written(&mut self, exec: &mut Exec<'_>, bytes: usize) -> Result<()> {
        match &mut self.rows {
            Rows::InTransaction(before) if *before + bytes < SMALL_BYTES => {
                *before += bytes;
                Ok(())
            }
            Rows::InTransaction(_) => self.leave_transaction(exec),
            _ => Ok(()),
        }
    }

    fn leave_transaction(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        if let Some(empty) = &mut self.empty
            && !empty.claim(exec, &self.table)?
        {
            self.rows = Rows::Staying;
            return Ok(());
        }
        let space = match EmptyTable::new_spaces(&self.empty) {
            Some(spaces) => spaces.rows(),
            None => self.table.space,
        };
        let (low, high) = (Bound::Unbounded, Bound::Unbounded);
        // There are no others.
        let mut own = exec.cursor(self.table.space, low, high, Direction::Forward, true)?;
        self.rows = Rows::BesideLog(Box::new(BesideLog {
            load: begin_load(exec, space)?,
            space,
            count: 0,
            last: Vec::new(),
            others: None,
        }));
        while let Some((key, row)) = own.next()? {
            self.push(exec, key, row)?;
        }
        std::mem::drop(own);
        exec.transaction()?.rollback_to(self.began);
        Ok(())
    }

    /// Adds a row beside the log, if they are there by now.
    ///
    /// # Errors
    /// 1317 if the statement was killed, 1878 if `tmpdir` has no room, and those of storage.
    #[inline]
    pub fn push(&mut self, exec: &Exec<'_>, key: &[u8], row: &[u8]) -> Result<Pushed> {
        match &mut self.rows {
            Rows::BesideLog(rows) => rows.push(exec, key, row),
            Rows::InTransaction(_) | Rows::Staying => Ok(Pushed::No),
        }
    }

    /// Puts what is beside the log into the tree, and builds the secondary indexes. If nothing is,
    /// the transaction has all. Gives how many rows were passed over as their key is taken, where
    /// that is to be ignored.
    ///
    /// # Errors
    /// 1062 if two rows have the same key of a unique index, and those of [`push`](BulkFill::push).
    pub fn finish(self, exec: &mut Exec<'_>, ignores_duplicates: bool) -> Result<u64> {
        let BulkFill {
            table, rows, empty, ..
        } = self;
        let Rows::BesideLog(rows) = rows else {
            return Ok(0);
        };
        let (count, skipped) = rows.finish(exec, &table, ignores_duplicates)?;
        let spaces = match EmptyTable::new_spaces(&empty) {
            Some(spaces) => spaces,
            None => &TableSpaces::of(&table),
        };
        let mut indexes = IndexBuild {
            shared: exec.engine,
            session: exec.session,
            table: &table,
            spaces,
        };
        indexes.build_secondary()?;
        if let Some(empty) = empty {
            exec.check_interrupt()?;
            // The statement may have read commits that aren't safe yet, as a parent's row. What is put
            // in place can't be taken back if they are lost.
            exec.transaction()?.confirm()?;
            empty.put_in_place(exec, &table, count)?;
        }
        Ok(skipped)
    }
}

impl BesideLog {
    #[inline]
    fn push(&mut self, exec: &Exec<'_>, key: &[u8], row: &[u8]) -> Result<Pushed> {
        let order = match self.count {
            0 => Ordering::Greater,
            _ => key.cmp(&self.last),
        };
        match order {
            Ordering::Greater => {
                self.last.clear();
                self.last.extend_from_slice(key);
                self.load.push(key, row)?;
            }
            Ordering::Equal => return Ok(Pushed::Duplicate),
            Ordering::Less => {
                let memory = &exec.session.vars.memory;
                let new = || ExternalSort::new(SORT_BUFFER_BYTES, memory);
                let others = self.others.get_or_insert_with(new);
                others.push(key, row, &mut || exec.check_interrupt())?;
            }
        }
        self.count += 1;
        Ok(Pushed::BesideLog)
    }

    /// Puts all rows into the tree. Gives how many it has, and how many were passed over.
    fn finish(
        self,
        exec: &mut Exec<'_>,
        table: &Table,
        ignores_duplicates: bool,
    ) -> Result<(u64, u64)> {
        self.load.finish()?;
        let Some(others) = self.others else {
            return Ok((self.count, 0));
        };
        let mut sorted = others.finish(&mut || exec.check_interrupt())?;
        let in_order = exec.engine.store.snapshot();
        let mut load = begin_load(exec, self.space)?;
        let (mut before, mut is_first) = (Vec::new(), true);
        let mut skipped = 0;
        while let Some((key, row)) = sorted.next_entry()? {
            exec.check_interrupt()?;
            // Of equal keys the one that came first is first, and a row that is in the tree came
            // before it was passed over.
            let is_taken =
                (!is_first && before == key) || in_order.get(self.space, key, |_| ())?.is_some();
            if is_taken {
                let error = duplicate_entry(exec, table, 0, row);
                if !ignores_duplicates {
                    return Err(error);
                }
                exec.session.warn(Level::Warning, error.into_condition());
                skipped += 1;
                continue;
            }
            is_first = false;
            before.clear();
            before.extend_from_slice(key);
            load.push(key, row)?;
        }
        std::mem::drop(in_order);
        load.finish()?;
        Ok((self.count - skipped, skipped))
    }
}

fn begin_load(exec: &Exec<'_>, space: SpaceId) -> Result<BulkLoad> {
    let interrupt = Arc::clone(&exec.session.vars.interrupt);
    Ok(BulkLoad::begin(&exec.engine.store, space, Some(interrupt))?)
}

/// A table without rows that others see.
#[derive(Default)]
struct EmptyTable {
    // Dropped before writers come in.
    spaces: Option<NewSpaces>,
    writers_out: Option<MdlTicket>,
}

impl EmptyTable {
    /// The spaces that its rows go to, once it is claimed.
    fn new_spaces(empty: &Option<EmptyTable>) -> Option<&TableSpaces> {
        Some(&empty.as_ref()?.spaces.as_ref()?.spaces)
    }

    /// Keeps writers out and makes new spaces. `false` if the table isn't empty, or in use.
    fn claim(&mut self, exec: &Exec<'_>, table: &Arc<Table>) -> Result<bool> {
        let (store, session) = (&exec.engine.store, &exec.session);
        if has_rows(&store.snapshot(), table.space)? {
            return Ok(false);
        }
        // What LOCK TABLES holds for writing nobody else writes to.
        let is_own = table.temporary || session.locked_tables.mode(&table.state).is_some();
        if !is_own {
            let fast_path: Arc<dyn HasFastPath> = Arc::clone(&table.state) as _;
            let object = fast_path.object(table.id);
            let metadata = &exec.engine.locks.metadata;
            let kept_out = metadata.try_keep_writers_out(session.connection_id, object, &fast_path);
            let Some(writers_out) = kept_out else {
                return Ok(false);
            };
            self.writers_out = Some(writers_out);
        }
        // They may have left rows that are on their way to the disk.
        if has_rows(&store.snapshot_of_queued()?, table.space)? {
            self.writers_out = None;
            return Ok(false);
        }
        self.spaces = Some(NewSpaces::create(store, table)?);
        Ok(true)
    }

    /// Has the table own the rows.
    fn put_in_place(self, exec: &Exec<'_>, table: &Table, count: u64) -> Result<()> {
        let Some(new) = &self.spaces else {
            return Ok(());
        };
        let pairs = new.spaces.all().zip(table.spaces());
        let loaded = pairs.map(|(from, into)| LoadedSpace {
            from,
            into,
            rows: count,
        });
        put_in_place(&exec.engine.store, &loaded.collect::<Vec<_>>())?;
        Ok(())
    }
}

fn has_rows(snapshot: &Snapshot, space: SpaceId) -> Result<bool> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut rows = snapshot.range(space, all, Direction::Forward)?;
    Ok(rows.next()?.is_some())
}

/// Spaces without an owner, which are dropped in the end: by then they are empty, or of no use.
struct NewSpaces {
    store: Store,
    spaces: TableSpaces,
}

impl NewSpaces {
    fn create(store: &Store, table: &Table) -> Result<NewSpaces> {
        let spaces = TableSpaces::allocate(store, table);
        create_unclaimed(store, &spaces.all().collect::<Vec<_>>())?;
        Ok(NewSpaces {
            store: store.clone(),
            spaces,
        })
    }
}

impl Drop for NewSpaces {
    fn drop(&mut self) {
        let spaces: Vec<SpaceId> = self.spaces.all().collect();
        if let Err(error) = drop_unclaimed(&self.store, &spaces) {
            // The next start does it.
            tracing::warn!(%error, "the spaces of a statement that has ended can't be dropped");
        }
    }
}

impl Exec<'_> {
    /// Has the rows that INSERT gives a new table from now on fill it.
    ///
    /// # Errors
    /// Those of [`BulkFill::begin`].
    pub fn begin_filling_new(&mut self, table: &Arc<Table>) -> Result<()> {
        let fill = BulkFill::begin(self, table)?;
        self.kept().fill = Some(Box::new(fill));
        Ok(())
    }

    /// Has the rows that a statement gives a table from now on fill it if it is empty, where the
    /// statement gives many and none has to be looked for.
    pub(crate) fn begin_filling_empty(&mut self, plan: &Insert) -> Result<()> {
        if self.is_whole_transaction && !self.transaction()?.has_writes() && self.may_fill(plan) {
            let mut fill = BulkFill::begin(self, &plan.table)?;
            fill.empty = Some(EmptyTable::default());
            self.kept().fill = Some(Box::new(fill));
        }
        Ok(())
    }

    fn may_fill(&self, plan: &Insert) -> bool {
        let table = &plan.table;
        let gives_many = match &plan.source {
            InsertSource::Values(rows) => rows.len() >= VALUES_MIN,
            InsertSource::Load(_) | InsertSource::Query { .. } => true,
        };
        // What most inserts are is told by one look.
        if !gives_many || !matches!(plan.duplicates, OnDuplicate::Error) {
            return false;
        }
        let own_name = (&table.schema, &table.name);
        let mut parents = table.foreign_keys.iter();
        let refers_to_itself =
            parents.any(|key| (&key.parent_schema, &key.parent_table) == own_name);
        let of_table = |slot: &&porpoise_planner::plan::SlotLayout| {
            slot.table.as_ref().is_some_and(|used| used.id == table.id)
        };
        let reads_itself = plan.reads_itself || self.layouts.iter().filter(of_table).count() > 1;
        // A row that IGNORE passes over must not have been put into the tree.
        let mut indexes = table.indexes.iter();
        let may_ignore = self.foreign_keys.is_none()
            && indexes.all(|index| index.kind == IndexKind::Primary || !index.is_unique());
        (!plan.ignore || may_ignore)
            && plan.triggers.is_none()
            && !self.runs_programs()
            && !refers_to_itself
            && !reads_itself
    }

    /// Whether the statement runs programs: they could write to other tables, or read this one.
    fn runs_programs(&self) -> bool {
        !self.own_tables.is_empty()
    }

    /// Ends what was begun by [`begin_filling_new`](Exec::begin_filling_new), as
    /// [`BulkFill::finish`].
    ///
    /// # Errors
    /// Those of [`BulkFill::finish`].
    pub(crate) fn finish_filling(&mut self, ignores_duplicates: bool) -> Result<u64> {
        match self.kept.as_mut().and_then(|kept| kept.fill.take()) {
            Some(fill) => fill.finish(self, ignores_duplicates),
            None => Ok(0),
        }
    }

    /// Adds a row to a table that is being filled.
    #[inline]
    pub(crate) fn fill_with(&mut self, table: &Table, key: &[u8], row: &[u8]) -> Result<Pushed> {
        let Some(mut fill) = self.take_fill(table) else {
            return Ok(Pushed::No);
        };
        let added = fill.push(self, key, row);
        self.kept().fill = Some(fill);
        added
    }

    /// Notes a row that was written in the transaction, with its index entries.
    #[inline]
    pub(crate) fn note_filled(&mut self, table: &Table, bytes: usize) -> Result<()> {
        let Some(mut fill) = self.take_fill(table) else {
            return Ok(());
        };
        let noted = fill.note_written(self, bytes);
        self.kept().fill = Some(fill);
        noted
    }

    #[inline]
    fn take_fill(&mut self, table: &Table) -> Option<Box<BulkFill>> {
        let kept = self.kept.as_mut()?;
        kept.fill.take_if(|fill| fill.table.space == table.space)
    }
}
