//! A session's transaction, with what its changes take of the session's memory.
//!
//! Storage counts the bytes of memory that a transaction's writes and row locks take; whoever has it write or
//! lock has them charged. They are given back when it ends, however it ends, and what a rollback to a
//! savepoint frees, at once. What COMMIT will take for its log record is charged beforehand: COMMIT
//! isn't refused. Storage is told how much row locks may take, beyond which it locks whole spaces.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_core::memory::{Charge, MemoryAccount};
use porpoise_storage::{Commit, PreparedTransaction, Savepoint, SpaceId, Transaction};

use crate::session_state::SessionState;
use crate::shared::Shared;

/// A storage transaction whose changes are charged to its session.
pub struct SessionTransaction {
    storage: Transaction,
    charge: Charge,
}

impl SessionTransaction {
    /// Begins a transaction whose waits KILL interrupts.
    pub fn begin(shared: &Shared, state: &SessionState) -> SessionTransaction {
        let mut storage = shared.store.begin();
        storage.set_interrupt(Arc::clone(&state.interrupt));
        storage.limit_lock_memory(state.memory.row_lock_bytes_max());
        SessionTransaction {
            storage,
            charge: Charge::default(),
        }
    }

    /// Charges what was written and locked since it was last charged.
    ///
    /// # Errors
    /// As [`Charge::add`]; those of the disk, where writes go to a file. What was written stays: the
    /// statement is to be rolled back.
    #[inline]
    pub fn charge(&mut self, account: &Arc<MemoryAccount>) -> Result<()> {
        if let Some(error) = self.storage.take_spill_failure() {
            return Err(error.into());
        }
        self.charge.set(account, self.storage.held_bytes())
    }

    /// A statement begins, which is not charged for what those before it have written.
    #[inline]
    pub fn begin_statement(&mut self, account: &MemoryAccount) {
        self.charge.hand_down();
        let bytes = account.row_lock_bytes_max();
        self.storage.limit_lock_memory(bytes);
    }

    /// As [`Transaction::rollback_to`], and gives back what it frees.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        self.storage.rollback_to(savepoint);
        self.charge.shrink(self.storage.held_bytes());
    }

    /// As [`Transaction::commit`].
    ///
    /// # Errors
    /// Those of [`Transaction::commit`].
    pub fn commit(self) -> Result<Commit> {
        Ok(self.storage.commit()?)
    }

    /// As [`Transaction::prepare`]. What the log record takes is charged until it is written.
    ///
    /// # Errors
    /// Those of [`Transaction::prepare`], and of [`Charge::add`].
    pub fn prepare(
        mut self,
        place: (SpaceId, &[u8]),
        label: &[u8],
        account: &Arc<MemoryAccount>,
    ) -> Result<PreparedTransaction> {
        // The record, and its rows before they are logged.
        self.charge.add(account, self.storage.held_bytes())?;
        Ok(self.storage.prepare(place, label)?)
    }
}

impl Deref for SessionTransaction {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.storage
    }
}

impl DerefMut for SessionTransaction {
    fn deref_mut(&mut self) -> &mut Transaction {
        &mut self.storage
    }
}
