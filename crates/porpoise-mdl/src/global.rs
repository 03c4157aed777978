//! The global read lock: FLUSH TABLES WITH READ LOCK.
//!
//! Two locks: statements that change anything hold the first unobtrusively for as long as they run,
//! commits hold the second. FLUSH waits for the statements first, then for the
//! commits: a statement may be waiting for a row whose transaction has yet to commit.

use std::sync::Arc;

use porpoise_core::error::{Error, Result};

use super::Locks;
use super::fast_path::{HasFastPath, MdlFastPath};
use super::mode::{Mode, TableUse};
use super::process::Control;
use super::queue::{Duration, MdlRequest, MdlRequester, MdlTicket, MetadataLocks, Object};

/// The two locks behind FLUSH TABLES WITH READ LOCK.
pub struct GlobalReadLock {
    statements: Arc<MdlFastPath>,
    commits: Arc<MdlFastPath>,
}

impl GlobalReadLock {
    /// Nobody holds it, or changes anything.
    pub fn new(locks: &Arc<MetadataLocks>) -> GlobalReadLock {
        GlobalReadLock {
            statements: Arc::new(MdlFastPath::new(locks)),
            commits: Arc::new(MdlFastPath::new(locks)),
        }
    }
}

/// A change that runs, or a commit.
pub struct Changing<'a> {
    /// `None`: the session has what it needs for longer.
    fast_path: Option<&'a MdlFastPath>,
    control: &'a Control,
    is_commit: bool,
}

impl Drop for Changing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.control.held.set_changing(self.is_commit, false);
        if let Some(fast_path) = self.fast_path {
            fast_path.leave(TableUse::Write);
        }
    }
}

/// What a session holds of the global read lock beyond its statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldGlobally {
    /// Nothing.
    Nothing,
    /// FLUSH TABLES WITH READ LOCK: it changes nothing itself (1223).
    ReadLock,
    /// LOCK TABLES … WRITE: who wants the global read lock waits for it already.
    Intention,
}

/// Begins a statement that changes something; waits while a session has the global read lock, or waits for it.
#[inline]
pub fn begin_change<'a>(
    locks: &'a Locks,
    requester: MdlRequester<'_>,
    held: HeldGlobally,
    control: &'a Control,
) -> Result<Changing<'a>> {
    begin(locks, requester, held, control, false)
}

/// Begins the commit of a transaction. (A statement that is its own transaction has begun already.)
pub fn begin_commit<'a>(
    locks: &'a Locks,
    requester: MdlRequester<'_>,
    held: HeldGlobally,
    control: &'a Control,
) -> Result<Changing<'a>> {
    begin(locks, requester, held, control, true)
}

#[inline]
fn begin<'a>(
    locks: &'a Locks,
    requester: MdlRequester<'_>,
    held: HeldGlobally,
    control: &'a Control,
    is_commit: bool,
) -> Result<Changing<'a>> {
    let lock = &locks.global_read;
    let fast_path = if is_commit {
        &lock.commits
    } else {
        &lock.statements
    };
    let mut fast_path = Some(&**fast_path);
    if !fast_path.is_some_and(|lock| lock.try_enter(TableUse::Write)) {
        match held {
            HeldGlobally::Intention if !is_commit => fast_path = None,
            held => wait(requester, held, is_commit)?,
        }
    }
    control.held.set_changing(is_commit, true);
    Ok(Changing {
        fast_path,
        control,
        is_commit,
    })
}

#[cold]
fn wait(requester: MdlRequester<'_>, held: HeldGlobally, is_commit: bool) -> Result<()> {
    if held == HeldGlobally::ReadLock {
        return Err(Error::conflicting_read_lock());
    }
    let want = want(
        requester.locks,
        is_commit,
        Mode::IntentionExclusive,
        Duration::Statement,
    );
    requester.locks.metadata.enter(requester, vec![want])
}

fn want(locks: &Locks, is_commit: bool, mode: Mode, duration: Duration) -> MdlRequest {
    let lock = &locks.global_read;
    let (object, fast_path) = match is_commit {
        true => (Object::Commit, &lock.commits),
        false => (Object::Global, &lock.statements),
    };
    let fast_path: Arc<dyn HasFastPath> = Arc::<MdlFastPath>::clone(fast_path);
    MdlRequest {
        object,
        mode,
        duration,
        fast_path: Some(fast_path),
    }
}

/// What LOCK TABLES … WRITE requests beside its tables: nobody gets the global read lock, or
/// switches `read_only` on, as long as it is held.
pub fn intention(locks: &Locks) -> MdlRequest {
    MdlRequest {
        // It is held by a ticket, beyond any statement.
        fast_path: None,
        ..want(locks, false, Mode::IntentionExclusive, Duration::Explicit)
    }
}

/// LOCK INSTANCE FOR BACKUP, until it is dropped.
pub fn take_backup_lock(requester: MdlRequester<'_>) -> Result<MdlTicket> {
    backup(requester, Mode::Shared, Duration::Explicit)
}

/// What LOCK INSTANCE FOR BACKUP of other sessions keeps waiting: a statement that changes
/// definitions, accounts or files beside the log.
pub fn intend_change_of_files(requester: MdlRequester<'_>) -> Result<MdlTicket> {
    backup(requester, Mode::IntentionExclusive, Duration::Transaction)
}

fn backup(requester: MdlRequester<'_>, mode: Mode, duration: Duration) -> Result<MdlTicket> {
    let want = MdlRequest {
        object: Object::Backup,
        mode,
        duration,
        fast_path: None,
    };
    requester.locks.metadata.acquire(requester, vec![want])
}

/// FLUSH TABLES WITH READ LOCK, until both are dropped.
pub fn take_global_read_lock(requester: MdlRequester<'_>) -> Result<[MdlTicket; 2]> {
    let take = |is_commit| {
        let want = want(requester.locks, is_commit, Mode::Shared, Duration::Explicit);
        requester.locks.metadata.acquire(requester, vec![want])
    };
    let statements = take(false)?;
    Ok([statements, take(true)?])
}
