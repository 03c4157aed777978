//! Filling a new table, which nobody else sees yet, with very many rows.
//!
//! Few rows are writes of the statement's transaction, as any others are. Once they have grown to
//! [`SMALL_BYTES`], those so far and all that follow go into the tree beside the log ([`BulkLoad`]),
//! in the order of their keys:
//!
//! ```text
//! rows ─┬─ their keys ascend as they come ───────────────────────────────────► tree
//!       └─ else ─► external sort ─► in order, neighbours with equal keys: 1062 ─► tree
//! ```
//!
//! Such rows are neither locked nor looked for. Whoever fills the table builds its secondary
//! indexes afterwards, as for a table that has rows. If the statement fails or is killed, its new
//! spaces are dropped; after a crash, too, for they have no owner yet.

use std::ops::Bound;
use std::sync::Arc;

use porpoise_catalog::Table;
use porpoise_core::error::Result;
use porpoise_core::external_sort::ExternalSort;
use porpoise_expr::EvalContext;
use porpoise_storage::{BulkLoad, Direction, Savepoint, SpaceId};

use crate::Exec;
use crate::write::duplicate_entry;

/// Rows and index entries of so many bytes go through the log.
pub const SMALL_BYTES: usize = 4 << 20;
/// The buffer of a sort.
const SORT_BUFFER_BYTES: usize = 32 << 20;

/// A new table that is being filled.
pub struct BulkFill {
    table: Arc<Table>,
    /// Whether the keys of the rows ascend as they come, and no two are equal.
    ascends: bool,
    /// Where the transaction was before the first row.
    began: Savepoint,
    rows: Rows,
}

/// Where the rows are.
enum Rows {
    /// In the transaction, with the entries of indexes: so many bytes.
    InTransaction(usize),
    InOrder(BulkLoad),
    Sorting(ExternalSort),
}

impl BulkFill {
    /// Begins to fill a table, whose spaces must be without owners, in the execution's transaction.
    ///
    /// # Errors
    /// If the execution has no transaction.
    pub fn begin(exec: &mut Exec<'_>, table: &Arc<Table>, ascends: bool) -> Result<BulkFill> {
        Ok(BulkFill {
            table: Arc::clone(table),
            ascends,
            began: exec.transaction()?.savepoint(),
            rows: Rows::InTransaction(0),
        })
    }

    /// Whether rows go beside the log by now: then they must not be written in the transaction.
    #[inline]
    pub fn is_beside_log(&self) -> bool {
        !matches!(self.rows, Rows::InTransaction(_))
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
        let space = self.table.space;
        let whole = (Bound::Unbounded, Bound::Unbounded);
        let mut own = exec.cursor(space, whole.0, whole.1, Direction::Forward, false)?;
        self.rows = match self.ascends {
            true => Rows::InOrder(begin_load(exec, space)?),
            false => {
                let memory = &exec.session.vars.memory;
                Rows::Sorting(ExternalSort::new(SORT_BUFFER_BYTES, memory))
            }
        };
        while let Some((key, row)) = own.next()? {
            self.push(exec, key, row)?;
        }
        std::mem::drop(own);
        exec.transaction()?.rollback_to(self.began);
        Ok(())
    }

    /// Adds a row, beside the log.
    ///
    /// # Errors
    /// 1317 if the statement was killed, 1878 if `tmpdir` has no room, and those of storage.
    pub fn push(&mut self, exec: &Exec<'_>, key: &[u8], row: &[u8]) -> Result<()> {
        match &mut self.rows {
            Rows::InOrder(load) => Ok(load.push(key, row)?),
            Rows::Sorting(sort) => sort.push(key, row, &mut || exec.check_interrupt()),
            Rows::InTransaction(_) => Ok(()),
        }
    }

    /// Puts what is beside the log into the tree. `true` if it was, and secondary indexes are to be
    /// built; otherwise the transaction has all.
    ///
    /// # Errors
    /// 1062 if two rows have the same primary key, and those of [`push`](BulkFill::push).
    pub fn finish(self, exec: &Exec<'_>) -> Result<bool> {
        let load = match self.rows {
            Rows::InTransaction(_) => return Ok(false),
            Rows::InOrder(load) => load,
            Rows::Sorting(sort) => {
                let mut sorted = sort.finish(&mut || exec.check_interrupt())?;
                let mut load = begin_load(exec, self.table.space)?;
                let mut before: Option<Vec<u8>> = None;
                while let Some((key, row)) = sorted.next_entry()? {
                    exec.check_interrupt()?;
                    let before = match &mut before {
                        Some(before) if before == key => {
                            return Err(duplicate_entry(exec, &self.table, 0, row));
                        }
                        before => before.get_or_insert_default(),
                    };
                    before.clear();
                    before.extend_from_slice(key);
                    load.push(key, row)?;
                }
                load
            }
        };
        load.finish()?;
        Ok(true)
    }
}

fn begin_load(exec: &Exec<'_>, space: SpaceId) -> Result<BulkLoad> {
    let interrupt = Arc::clone(&exec.session.vars.interrupt);
    Ok(BulkLoad::begin(&exec.engine.store, space, Some(interrupt))?)
}

impl Exec<'_> {
    /// Has the rows that INSERT gives a table from now on, all of them new, fill it.
    ///
    /// # Errors
    /// Those of [`BulkFill::begin`].
    pub fn begin_filling(&mut self, table: &Arc<Table>, ascends: bool) -> Result<()> {
        let fill = BulkFill::begin(self, table, ascends)?;
        self.kept().fill = Some(fill);
        Ok(())
    }

    /// Ends what [`begin_filling`](Exec::begin_filling) began, as [`BulkFill::finish`].
    ///
    /// # Errors
    /// Those of [`BulkFill::finish`].
    pub fn finish_filling(&mut self) -> Result<bool> {
        match self.kept().fill.take() {
            Some(fill) => fill.finish(self),
            None => Ok(false),
        }
    }

    /// Adds a row beside the log; `false` if it is to be written in the transaction.
    #[inline]
    pub(crate) fn fill_with(&mut self, table: &Table, key: &[u8], row: &[u8]) -> Result<bool> {
        let filling = self.kept.as_mut().and_then(|kept| {
            kept.fill
                .take_if(|fill| fill.is_beside_log() && fill.table.space == table.space)
        });
        let Some(mut fill) = filling else {
            return Ok(false);
        };
        let added = fill.push(self, key, row);
        self.kept().fill = Some(fill);
        added.map(|()| true)
    }

    /// Notes a row that was written in the transaction, with its index entries.
    #[inline]
    pub(crate) fn note_filled(&mut self, table: &Table, bytes: usize) -> Result<()> {
        let filling = self
            .kept
            .as_mut()
            .and_then(|kept| kept.fill.take_if(|fill| fill.table.space == table.space));
        let Some(mut fill) = filling else {
            return Ok(());
        };
        let noted = fill.note_written(self, bytes);
        self.kept().fill = Some(fill);
        noted
    }
}
