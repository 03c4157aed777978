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
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::DiskFile;
use crate::snapshot::Epoch;
use crate::store::Shared;
use crate::tree_file::TreeFile;
use crate::versions::Generation;
use crate::{Error, Result, checkpoint};

/// What it takes to open the tree again.
pub(crate) struct TreeSource {
    pub file: Arc<dyn DiskFile>,
    pub cache_bytes: usize,
    pub has_failed: Arc<AtomicBool>,
}

impl TreeSource {
    pub fn new(file: Arc<dyn DiskFile>, cache_bytes: usize) -> TreeSource {
        TreeSource {
            file,
            cache_bytes,
            has_failed: Arc::default(),
        }
    }

    pub fn open(&self) -> Result<redb::Database> {
        self.has_failed.store(false, Ordering::Release);
        let tree = TreeFile::new(Arc::clone(&self.file), Arc::clone(&self.has_failed));
        let mut builder = redb::Builder::new();
        builder.set_cache_size(self.cache_bytes);
        let opened = builder.create_with_backend(tree);
        if opened.is_err() {
            self.has_failed.store(true, Ordering::Release);
        }
        Ok(opened?)
    }
}

/// Ends what a failed disk has begun, if it can be ended.
pub(crate) fn run(shared: &Shared) -> Result<()> {
    let is_tree_well = shared.tree.as_ref().is_none_or(TreeSource::is_well);
    if is_tree_well && !shared.group.has_failed() {
        return Ok(());
    }
    // A checkpoint that is under way goes first; there will be another try.
    let Some(mut database) = shared.database.try_lock() else {
        return Ok(());
    };
    reopen_tree(shared, &mut database)?;
    let Some(database) = &*database else {
        return Ok(());
    };
    if !shared.group.has_failed() {
        return Ok(());
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
    let fold = || checkpoint::fold_all(shared, database).map(|_| ());
    if shared.group.resume(shared, replace, fold)? {
        tracing::warn!("the log can be written again, the store takes writes");
        shared.note_growth();
    }
    Ok(())
}

impl TreeSource {
    pub fn is_well(&self) -> bool {
        !self.has_failed.load(Ordering::Acquire)
    }
}

/// Opens the tree again if redb has given it up.
pub(crate) fn reopen_tree(shared: &Shared, database: &mut Option<redb::Database>) -> Result<()> {
    let Some(tree) = &shared.tree else {
        return Ok(());
    };
    if tree.is_well() || shared.is_stopping() {
        return Ok(());
    }
    // Who reads through it gets errors until the next is there, as before.
    drop(database.take());
    let opened = tree.open()?;
    let epoch = shared.epoch.load_full();
    let base = epoch.base.after(&opened).inspect_err(|_| {
        tree.has_failed.store(true, Ordering::Release);
    })?;
    shared.epoch.store(Arc::new(Epoch {
        generations: epoch.generations.clone(),
        base,
        is_oldest_in_tree: false,
    }));
    *database = Some(opened);
    tracing::warn!("the tree is open again after its file had failed");
    Ok(())
}

/// Why there is no tree: the store was closed, or its file has failed and can't be opened.
pub(crate) fn no_tree(shared: &Shared) -> Error {
    match shared.is_stopping() {
        true => Error::Closed,
        false => Error::Tree(Arc::new(redb::Error::PreviousIo)),
    }
}
