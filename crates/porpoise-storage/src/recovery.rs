//! How a store goes on after its disk has failed.
//!
//! A log that could not be written or synced ends all writing
//! ([`group_commit`](crate::group_commit)). Once a second the store tries to end that state: if the
//! disk still fails, the try fails and nothing has changed; else the store takes writes again.
//!
//! ```text
//! log segment      ├─ acknowledged ────┤ failed ┄┄┄       written, and synced if that was asked for
//!                          ▼ read back, verified
//! another file     ├─ acknowledged ────┤ zeros ─────┤     synced, renamed over it, folder synced
//! versions         newest memtable ─► a copy without what failed, and an empty one above
//! ```
//!
//! The same file is not synced again, since a sync that failed may have dropped pages and forgotten
//! them. What failed is gone for good before the next commit has a place in the log: its error was
//! reported, and others have gone on without it.
//!
//! With flush policy 0 commits are visible before they are written. If such commits are lost from
//! the log, they are merged into the tree first.
//!
//! redb fails every operation after a failed read or write. Its file is opened again then: nothing
//! refers to what it has not committed, and it writes its header anew when it starts.

use std::sync::Arc;

use crate::memtable::Memtable;
use crate::snapshot::Epoch;
use crate::store::Shared;
use crate::{Error, Result, checkpoint};

/// Ends the state in which writing is refused, if what caused it is gone.
pub(crate) fn run(shared: &Shared) -> Result<()> {
    // If a checkpoint is running, the next try does it.
    let Some(mut tree) = shared.tree.try_lock() else {
        return Ok(());
    };
    checkpoint::reopen_if_failed(shared, &mut tree)?;
    if !checkpoint::is_usable(&tree) || !shared.group.has_failed() {
        return Ok(());
    }
    if shared.group.is_stopped_by_damage() {
        // The memtables that the tree could not take go into it first.
        checkpoint::merge_all(shared, &mut tree)?;
    }
    let replace = |copy: Arc<Memtable>, next: Arc<Memtable>| {
        let epoch = shared.epoch.load();
        let older = epoch.memtables.iter().skip(1).cloned();
        shared.epoch.store(Arc::new(Epoch {
            memtables: [next, copy].into_iter().chain(older).collect(),
            tree: Arc::clone(&epoch.tree),
            is_oldest_merged: false,
        }));
    };
    let merge = || checkpoint::merge_all(shared, &mut tree).map(|_| ());
    if shared.group.resume(shared, replace, merge)? {
        tracing::warn!("the log can be written again, the store takes writes");
        shared.request_checkpoint_if_due();
    }
    Ok(())
}

/// Why there is no tree: the store was closed, or its file has failed and can't be opened.
pub(crate) fn no_tree(shared: &Shared) -> Error {
    match shared.is_stopping() {
        true => Error::Closed,
        false => Error::Tree(Arc::new(redb::Error::PreviousIo)),
    }
}
