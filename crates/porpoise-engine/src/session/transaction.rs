//! Transactions as a session has them: autocommit, explicit ones, savepoints, isolation levels, and
//! the metadata locks they hold.
//!
//! ```text
//! autocommit read      a snapshot, for the statement
//! autocommit change    a storage transaction, committed behind the statement
//! BEGIN … COMMIT       one storage transaction, made by its first statement that needs it
//! ```
//!
//! A statement that fails takes back its own writes only; a deadlock rolls back the whole
//! transaction.

use compact_str::CompactString;
use porpoise_catalog::TableState;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::Isolation;
use porpoise_mdl::HeldTables;
use porpoise_mdl::process::Control;
use porpoise_session::SessionTransaction;
use porpoise_session::check;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_storage::{Commit, Savepoint};

use crate::session::Session;
use crate::session::xa::XaBranch;

/// The session's current transaction.
#[derive(Default)]
pub(crate) struct TransactionState {
    /// Whether BEGIN, or with autocommit off a statement, has begun a transaction that has not
    /// ended.
    pub open: bool,
    /// READ ONLY or READ WRITE, as it was said for this transaction; otherwise as the session's are.
    pub read_only: Option<bool>,
    pub storage: Option<SessionTransaction>,
    pub isolation: Isolation,
    /// It has changed more than temporary tables.
    pub changes_lasting_tables: bool,
    savepoints: Vec<(CompactString, Savepoint)>,
    /// The XA branch that the session is at; such a transaction is always open.
    pub xa: Option<Box<XaBranch>>,
    pub tables: HeldTables<TableState>,
}

/// Begins a storage transaction.
fn begin_storage(shared: &Shared, state: &SessionState, is_branch: bool) -> SessionTransaction {
    let mut storage = SessionTransaction::begin(shared, state);
    if is_branch {
        storage.may_be_prepared();
    }
    storage
}

impl TransactionState {
    /// The storage transaction, begun now if there is none.
    pub fn storage(&mut self, shared: &Shared, state: &SessionState) -> &mut SessionTransaction {
        let xa = &self.xa;
        let begin = || begin_storage(shared, state, xa.is_some());
        self.storage.get_or_insert_with(begin)
    }

    /// The storage transaction, taken out for a statement that writes through it.
    pub fn take_storage(&mut self, shared: &Shared, state: &SessionState) -> SessionTransaction {
        let storage = self.storage.take();
        storage.unwrap_or_else(|| begin_storage(shared, state, self.xa.is_some()))
    }

    /// Ends it by a commit. `None` where there was nothing to commit, and all that was read is
    /// safe.
    pub fn commit(&mut self, control: &Control) -> Result<Option<Commit>> {
        self.open = false;
        self.changes_lasting_tables = false;
        self.savepoints.clear();
        let committed = match self.storage.take() {
            Some(transaction) if transaction.has_writes() || transaction.is_unconfirmed() => {
                transaction.commit().map(Some)
            }
            _ => Ok(None),
        };
        self.tables.release(control);
        committed
    }

    /// Undoes everything. A session that is at an XA branch stays there.
    pub fn rollback(&mut self, control: &Control) {
        self.open = match &mut self.xa {
            Some(branch) => {
                branch.is_rolled_back = true;
                true
            }
            None => false,
        };
        self.changes_lasting_tables = false;
        self.savepoints.clear();
        self.storage = None;
        self.tables.release(control);
    }

    pub fn set_savepoint(&mut self, name: &str, shared: &Shared, state: &SessionState) {
        let savepoint = self.storage(shared, state).savepoint();
        self.savepoints
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.savepoints.push((name.into(), savepoint));
    }

    fn position(&self, name: &str) -> Result<usize> {
        self.savepoints
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(name))
            .ok_or_else(|| Error::savepoint_does_not_exist(name))
    }

    /// Undoes what came after the savepoint, and forgets the savepoints set after it.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let position = self.position(name)?;
        self.savepoints.truncate(position + 1);
        if let (Some(transaction), Some((_, savepoint))) =
            (&mut self.storage, self.savepoints.last())
        {
            transaction.rollback_to(*savepoint);
        }
        Ok(())
    }

    pub fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let position = self.position(name)?;
        self.savepoints.truncate(position);
        Ok(())
    }
}

impl Session {
    /// Commits the transaction: COMMIT, and before statements that commit implicitly. A transaction
    /// that has written waits while another session has the global read lock, and is rolled back if
    /// `read_only` was switched on since (1290).
    pub(crate) fn commit(&mut self) -> Result<Option<Commit>> {
        let writes = self.transaction.storage.as_ref();
        let changing = match writes.is_some_and(|transaction| transaction.has_writes()) {
            true => Some(self.state.begin_commit(&self.shared.locks, &self.control)?),
            false => None,
        };
        if changing.is_some() && self.transaction.changes_lasting_tables {
            let writable = check::check_writable(&self.state, &self.shared.variables);
            if let Err(error) = writable {
                drop(changing);
                if let Some(read) = self.rollback() {
                    read.wait()?;
                }
                return Err(error);
            }
        }
        let commit = self.transaction.commit(&self.control);
        drop(changing);
        self.end_transaction();
        commit
    }

    /// Rolls the transaction back: ROLLBACK. What is returned is to be waited for, as the client was
    /// told what the transaction's changes have met.
    pub(crate) fn rollback(&mut self) -> Option<Commit> {
        let storage = self.transaction.storage.as_ref();
        let unconfirmed = storage.and_then(|storage| storage.unconfirmed());
        self.transaction.rollback(&self.control);
        self.end_transaction();
        unconfirmed
    }

    /// Whether the current transaction, or the next one, may only read.
    pub(crate) fn is_read_only(&self) -> bool {
        let session = self.state.transaction_read_only;
        self.transaction.read_only.unwrap_or(session)
    }

    /// Before the session's `transaction_read_only` changes: a transaction that has begun without
    /// BEGIN keeps the value it began with.
    pub(super) fn pin_read_only(&mut self) {
        if self.transaction.storage.is_some() {
            let now = self.is_read_only();
            self.transaction.read_only = Some(now);
        }
    }

    /// Takes back what SET TRANSACTION set for the transaction that has ended.
    pub(super) fn end_transaction(&mut self) {
        self.transaction.read_only = None;
        self.transaction.isolation = self.state.isolation;
    }
}
