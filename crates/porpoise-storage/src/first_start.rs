//! A store's first start, and what may be left of one that was cut short.
//!
//! ```text
//! 1. log-0000000000000000   completed under another name, synced, renamed, folder synced
//! 2. tree.redb              the same, with the segment's store identity
//! ```
//!
//! A folder that has the tree is a store, and must have the log, too. A folder with nothing but an
//! unwritten log is one whose first start was cut short; nothing was ever acknowledged, and it
//! starts anew. A folder with a log that was written to and no tree has lost it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::checkpoint;
use crate::disk::{Disk, OpenMode};
use crate::log::{create_log, remove_unused_log, sync_folder};
use crate::options::Options;
use crate::page_checksums::{PAGE_BYTES, StoreId};
use crate::tree::Tree;
use crate::tree_file::CheckedFile;
use crate::{Error, Result};

pub(crate) const TREE: &str = "tree.redb";
const TREE_UNFINISHED: &str = "tree.redb.unfinished";

/// Pages of checksums have as much as this share of the cache at most, beside it. Each covers 2 MiB of the
/// tree: for a tree of 32 times the cache none is read twice.
const CHECKSUM_CACHE_SHARE: usize = 16;
const CHECKSUM_PAGES_CACHED_MIN: usize = 64;

/// The file of the folder's tree, created if the folder is new.
pub(crate) fn open_tree_file(options: &Options, folder: &Path) -> Result<Arc<CheckedFile>> {
    let disk = &*options.disk;
    let path = folder.join(TREE);
    if disk
        .metadata(&path)
        .map_err(Error::io("read", &path))?
        .is_none()
    {
        return create_store(options, folder);
    }
    let file = disk.open(&path, OpenMode::Existing);
    let file = file.map_err(Error::io("open", &path))?;
    CheckedFile::open(file, &path, cached_checksum_pages(options)).map(Arc::new)
}

fn create_store(options: &Options, folder: &Path) -> Result<Arc<CheckedFile>> {
    let disk = &*options.disk;
    let (path, unfinished) = (folder.join(TREE), folder.join(TREE_UNFINISHED));
    remove_unused_log(disk, folder, &path)?;
    let id = StoreId::random();
    create_log(&options.disk, folder, id, options.log_segment_bytes)?;
    let file = disk.open(&unfinished, OpenMode::Truncated);
    let file = file.map_err(Error::io("create", &unfinished))?;
    let checked = CheckedFile::create(Arc::clone(&file), &path, id, cached_checksum_pages(options));
    let checked = Arc::new(checked);
    let tree = Tree::open(Some(&checked), tree_cache_bytes(options))?;
    checkpoint::open_tree(&tree, &path)?;
    tree.abandon();
    file.sync_all()
        .and_then(|()| disk.rename(&unfinished, &path))
        .map_err(Error::io("create", &path))?;
    sync_folder(disk, folder)?;
    sync_ancestors(disk, folder)?;
    Ok(checked)
}

/// The folder may have been made by a start that was killed before its name was on disk.
fn sync_ancestors(disk: &dyn Disk, folder: &Path) -> Result<()> {
    match folder.parent() {
        None => Ok(()),
        Some(parent) => {
            let parent = current_if_empty(parent);
            match disk.sync_folder(parent) {
                Err(e) if e.kind() != io::ErrorKind::PermissionDenied => {
                    return Err(Error::io("sync", parent)(e));
                }
                _ => {}
            }
            // Those further up are old, as a rule, and this user may have no right to open them.
            for above in parent.ancestors().skip(1) {
                let _ = disk.sync_folder(current_if_empty(above));
            }
            Ok(())
        }
    }
}

/// The current folder, if a relative path has no parent left.
pub(crate) fn current_if_empty(folder: &Path) -> &Path {
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

/// The B-tree's own share of the cache, for checkpoints; readers have blocks. In bytes.
pub(crate) fn tree_cache_bytes(options: &Options) -> usize {
    options.cache_bytes / 12
}

fn cached_checksum_pages(options: &Options) -> usize {
    (options.cache_bytes / CHECKSUM_CACHE_SHARE / PAGE_BYTES).max(CHECKSUM_PAGES_CACHED_MIN)
}
