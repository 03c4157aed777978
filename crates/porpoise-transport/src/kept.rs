//! Rings that this process keeps for its next conversation with the same server.
//!
//! Memory shared with a stranger can't be taken back: whoever had it may have it still. So rings are never given to anybody
//! else. But who comes back to the server that it has just left finds them as they were, with everything in them taken by
//! the other end: no memory is made, handed over, mapped, faulted in, unmapped; no socket dialled and accepted.
//!
//! ```text
//!   dial ─► conversation ─► over, in good order ─► kept ─► the next conversation ─► …
//!             └ breaks off ─► gone                  └ server gone, or not needed for long ─► gone
//! ```
//!
//! Both ends have to keep theirs; the server's offer says whether it does. What makes a conversation the next one,
//! and who has to prove what in it, is the affair of those who talk.
//!
//! Rings belong to the process and the user that dialled them, and to the socket that was dialled: a child doesn't use its
//! parent's, a process that has changed its user doesn't use what it was given as another, and a server that has
//! taken another's place is dialled.

use crate::shared_memory::SharedMemory;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Rings that a process keeps at most.
const KEPT_MAX: usize = 64;
/// How long they are kept without use. The server loses patience earlier.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Attempts at the lock. In the child of a process of several threads it may be locked for ever.
const TRIES: u32 = 200;

/// Who dialled rings, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    path: PathBuf,
    /// Device and number of the socket's file.
    file: (u64, u64),
    process: u32,
    user: u32,
}

impl Origin {
    /// Of rings that this process dials now. `None`: nothing is there to be dialled.
    pub(crate) fn now(path: &Path) -> Option<Origin> {
        let file = fs::metadata(path).ok()?;
        Some(Origin {
            path: path.to_path_buf(),
            file: (file.dev(), file.ino()),
            process: std::process::id(),
            user: rustix::process::geteuid().as_raw(),
        })
    }
}

struct Kept {
    rings: SharedMemory,
    since: Instant,
}

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn lock() -> Option<MutexGuard<'static, Vec<Kept>>> {
    (0..TRIES).find_map(|_| {
        let all = KEPT.try_lock().ok();
        if all.is_none() {
            std::thread::yield_now();
        }
        all
    })
}

/// Keeps rings whose last conversation is over.
pub(crate) fn put(rings: SharedMemory) {
    let now = Instant::now();
    let kept = Kept { rings, since: now };
    // Ended after the lock is free.
    let _ended: Vec<Kept> = match lock() {
        Some(mut all) => {
            all.push(kept);
            let surplus = all.len().saturating_sub(KEPT_MAX);
            let stale = all
                .iter()
                .take_while(|kept| now - kept.since > KEPT_FOR)
                .count();
            all.drain(..surplus.max(stale)).collect()
        }
        None => vec![kept],
    };
}

/// Rings to the server at `path` that were kept, the last used first, whose server answers the `knock`.
pub(crate) fn take(path: &Path, knock: &[u8], patience: Option<Duration>) -> Option<SharedMemory> {
    if lock()?.is_empty() {
        return None;
    }
    let origin = Origin::now(path)?;
    loop {
        let mut rings = {
            let mut all = lock()?;
            let place = all
                .iter()
                .rposition(|kept| kept.rings.origin() == Some(&origin))?;
            all.remove(place).rings
        };
        if rings.is_answered(knock, patience) {
            return Some(rings);
        }
    }
}
