//! The global read lock: FLUSH TABLES WITH READ LOCK.
//!
//! Two doors: one that statements go through which change anything, for as long as they run, and one that commits go
//! through. Who takes the lock waits for the statements first, then for the commits: a statement may be waiting for a row whose
//! transaction has yet to commit.

use std::sync::Arc;

use porpoise_locks::Kind;

use super::door::{Door, HasDoor};
use super::mode::Mode;
use super::queue::{Asker, Duration, Grant, MetadataLocks, Object, Want};
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::planner::plan::TableUse;
use crate::session::SessionState;
use crate::session::process::Control;

/// What changes of anything go through.
pub struct GlobalReadLock {
    statements: Arc<Door>,
    commits: Arc<Door>,
}

impl GlobalReadLock {
    pub fn new(locks: &Arc<MetadataLocks>) -> GlobalReadLock {
        GlobalReadLock {
            statements: Arc::new(Door::new(Kind::default(), locks)),
            commits: Arc::new(Door::new(Kind::default(), locks)),
        }
    }
}

/// A change that runs, or a commit.
pub struct Changing<'a> {
    door: &'a Door,
    control: &'a Control,
    is_commit: bool,
}

impl Drop for Changing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.control.held.set_changing(self.is_commit, false);
        self.door.leave(TableUse::Write);
    }
}

/// Begins a statement that changes something; waits while a session has the global read lock, or waits for it.
#[inline]
pub fn begin_change<'a>(
    shared: &'a Shared,
    session: &SessionState,
    control: &'a Control,
) -> Result<Changing<'a>> {
    begin(shared, session, control, false)
}

/// Begins the commit of a transaction. (A statement that is its own transaction has begun already.)
pub fn begin_commit<'a>(
    shared: &'a Shared,
    session: &SessionState,
    control: &'a Control,
) -> Result<Changing<'a>> {
    begin(shared, session, control, true)
}

#[inline]
fn begin<'a>(
    shared: &'a Shared,
    session: &SessionState,
    control: &'a Control,
    is_commit: bool,
) -> Result<Changing<'a>> {
    let lock = &shared.global_read_lock;
    let door = if is_commit {
        &lock.commits
    } else {
        &lock.statements
    };
    if !door.try_enter(TableUse::Write) {
        wait(shared, session, is_commit)?;
    }
    control.held.set_changing(is_commit, true);
    Ok(Changing {
        door,
        control,
        is_commit,
    })
}

#[cold]
fn wait(shared: &Shared, session: &SessionState, is_commit: bool) -> Result<()> {
    if session.global_read_lock.is_some() {
        return Err(Error::conflicting_read_lock());
    }
    let want = want(
        shared,
        is_commit,
        Mode::IntentionExclusive,
        Duration::Statement,
    );
    let asker = Asker { shared, session };
    shared.metadata_locks.enter(asker, vec![want])
}

fn want(shared: &Shared, is_commit: bool, mode: Mode, duration: Duration) -> Want {
    let lock = &shared.global_read_lock;
    let (object, door) = match is_commit {
        true => (Object::Commit, &lock.commits),
        false => (Object::Global, &lock.statements),
    };
    let door: Arc<dyn HasDoor> = Arc::<Door>::clone(door);
    Want {
        object,
        mode,
        duration,
        door: Some(door),
    }
}

/// FLUSH TABLES WITH READ LOCK, until both are dropped.
pub fn take_global_read_lock(shared: &Shared, session: &SessionState) -> Result<[Grant; 2]> {
    let asker = Asker { shared, session };
    let take = |is_commit| {
        let want = want(shared, is_commit, Mode::Shared, Duration::Explicit);
        shared.metadata_locks.acquire(asker, vec![want])
    };
    let statements = take(false)?;
    Ok([statements, take(true)?])
}
