//! How a store goes on after its disk has failed.
//!
//! A log that could not be written or synced ends all writing ([`commit`](crate::commit)). What ends
//! that state is tried once a second: with a disk that still refuses it fails, and nothing has
//! changed; else the store takes writes again.
//!
//! ```text
//! log segment      ├─ good ────────────┤ failed ┄┄┄       good: written, and synced if asked for
//!                          ▼ read back, verified
//! another file     ├─ good ────────────┤ zeros ─────┤     synced, renamed over it, folder synced
//! versions         newest generation ─► a copy without what failed, and an empty one above
//! ```
//!
//! The same file is not synced once more, since a sync that failed may have dropped pages and
//! forgotten them. What failed is gone for good before the next commit has a place in the log: its
//! error was reported, and others have gone on without it.
//!
//! With flush policy 0 commits are shown before they are written. If such ones are among the lost,
//! they are folded into the tree first; the log has no place for them any more.
//!
//! redb gives itself up after any failed read or write. Its file is opened again then: what it has
//! not committed is not referred to by anything, and it writes its header anew when it starts.

use std::sync::Arc;

use crate::snapshot::Epoch;
use crate::store::Shared;
use crate::versions::Generation;
use crate::{Error, Result, checkpoint};

/// Ends what a failed disk has begun, if it can be ended.
pub(crate) fn run(shared: &Shared) -> Result<()> {
    // A checkpoint that is under way goes first; there will be another try.
    let Some(mut tree) = shared.tree.try_lock() else {
        return Ok(());
    };
    checkpoint::reopen_tree(shared, &mut tree)?;
    if !checkpoint::is_well(&tree) || !shared.group.has_failed() {
        return Ok(());
    }
    if shared.group.is_held_up_by_damage() {
        // What the tree could not take it must take first.
        checkpoint::fold_all(shared, &mut tree)?;
    }
    let replace = |copy: Arc<Generation>, next: Arc<Generation>| {
        let epoch = shared.epoch.load();
        let older = epoch.generations.iter().skip(1).cloned();
        shared.epoch.store(Arc::new(Epoch {
            generations: [next, copy].into_iter().chain(older).collect(),
            base: Arc::clone(&epoch.base),
            is_oldest_in_tree: false,
        }));
    };
    let fold = || checkpoint::fold_all(shared, &mut tree).map(|_| ());
    if shared.group.resume(shared, replace, fold)? {
        tracing::warn!("the log can be written again, the store takes writes");
        shared.note_growth();
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
