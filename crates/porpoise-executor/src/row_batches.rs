//! Reading all rows of a table, with a transaction for each batch of what is written meanwhile.
//!
//! What is written belongs to nobody yet, so nothing is locked, and batches bound memory.

use std::ops::Bound;
use std::sync::Arc;

use porpoise_catalog::Table;
use porpoise_core::error::Result;
use porpoise_expr::EvalContext;
use porpoise_planner::plan::SlotLayout;
use porpoise_session::SessionTransaction;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_storage::{Cursor, Direction, SpaceId};

use crate::bulk_fill::SMALL_BYTES;
use crate::{Exec, View};

/// A batch is committed when it has this many bytes of rows.
pub const BATCH_BYTES: usize = SMALL_BYTES;

/// The one slot of an execution over a table's rows.
pub fn layout_of(table: &Arc<Table>) -> [SlotLayout; 1] {
    [SlotLayout::of_rows(table.name.clone(), table)]
}

/// Metadata locks are given back before the disk has the commit: a writer's last rows may be on
/// their way.
fn all_rows(shared: &Shared, space: SpaceId) -> Result<Cursor> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let snapshot = shared.store.snapshot_of_queued()?;
    Ok(snapshot.range(space, all, Direction::Forward)?)
}

/// Calls `each` for every row of a space, with a transaction that is committed whenever it has
/// grown to a batch. `each` returns how many bytes it wrote.
///
/// # Errors
/// Those of `each`, 1317 if the statement was killed, and those of storage.
pub fn in_batches(
    shared: &Shared,
    session: &mut SessionState,
    space: SpaceId,
    layout: &[SlotLayout],
    mut each: impl FnMut(&mut Exec<'_>, &[u8], &[u8]) -> Result<usize>,
) -> Result<u64> {
    let mut rows = all_rows(shared, space)?;
    let catalog = shared.catalog.load_full();
    let mut count = 0;
    let mut more = true;
    while more {
        let mut transaction = SessionTransaction::begin(shared, session);
        let view = View::Transaction(&mut transaction);
        let mut exec = Exec::of_rows(session, shared, &catalog, view, layout, &[]);
        let mut written = 0;
        while written < BATCH_BYTES {
            let Some((key, row)) = rows.next()? else {
                more = false;
                break;
            };
            count += 1;
            exec.row_number = count;
            exec.check_interrupt()?;
            written += each(&mut exec, key, row)?;
            exec.charge_changes()?;
        }
        std::mem::drop(exec);
        if transaction.has_writes() {
            transaction.commit()?.wait()?;
        }
    }
    Ok(count)
}
