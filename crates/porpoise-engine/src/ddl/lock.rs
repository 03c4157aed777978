//! Exclusive metadata locks for the length of a DDL statement.
//!
//! A statement names its tables; they are locked in order of name, so that two statements never wait for
//! each other. A table may be dropped, renamed or altered while a statement waits for its lock: then
//! the name is looked up again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::{Table, TableState};
use crate::ddl::{Ddl, Name};
use crate::error::{Error, Result};
use crate::session::SessionState;

/// How often a waiting statement looks whether it was killed.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

/// Holds a table's metadata lock as the writer, until it is dropped.
pub struct Exclusive {
    state: Option<Arc<TableState>>,
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if let Some(state) = &self.state {
            state.metadata_lock.unlock_exclusive();
        }
    }
}

/// Waits for a table's lock. The session itself may hold it shared `own_shared` times.
fn wait(ddl: &Ddl<'_>, state: &Arc<TableState>, own_shared: u32) -> Result<Exclusive> {
    let session: &SessionState = ddl.session;
    let entered = || {
        Ok(Exclusive {
            state: Some(Arc::clone(state)),
        })
    };
    if state.metadata_lock.try_exclusive(own_shared) {
        return entered();
    }
    ddl.shared.before_waiting();
    let deadline = Instant::now() + session.metadata_lock_timeout();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if state
            .metadata_lock
            .exclusive(own_shared, left.min(INTERRUPT_CHECK))
        {
            return entered();
        }
        if session.interrupt.is_set() {
            return Err(session.interrupt_error());
        }
        if left.is_zero() {
            return Err(Error::lock_wait_timeout());
        }
    }
}

/// Finds a base table and locks it. Temporary tables need no lock.
pub fn table(ddl: &Ddl<'_>, name: &Name) -> Result<(Arc<Table>, Exclusive)> {
    loop {
        let table = ddl.table(name)?;
        if table.temporary {
            return Ok((table, Exclusive { state: None }));
        }
        let held = wait(ddl, &table.state, 0)?;
        if ddl
            .table(name)
            .is_ok_and(|now| now.version == table.version)
        {
            return Ok((table, held));
        }
    }
}

/// Finds and locks several base tables, in order of name. The result is in the order asked for.
pub fn tables(ddl: &Ddl<'_>, names: &[Name]) -> Result<Vec<(Arc<Table>, Exclusive)>> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| names[a].cmp(&names[b]));
    let mut locked: Vec<Option<(Arc<Table>, Exclusive)>> = names.iter().map(|_| None).collect();
    for position in order {
        locked[position] = Some(table(ddl, &names[position])?);
    }
    Ok(locked.into_iter().flatten().collect())
}
