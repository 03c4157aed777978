//! Rings that this process reuses for its next connection to the same server.
//!
//! Memory that was shared with a stranger can't be taken back: the stranger may have it still. So
//! rings are never given to another client. But a client that comes back to the server that it has
//! just left finds them as they were, with everything in them taken by the other end: no memory is
//! made, handed over, mapped, faulted in and unmapped; no socket is connected and accepted.
//!
//! ```text
//!   connect ─► connection ─► ends in good order ─► pooled ─► the next connection ─► …
//!                 └ breaks off ─► gone               └ server gone, or unused for long ─► gone
//! ```
//!
//! Both ends have to keep theirs; the server's offer says whether it does. By what the next
//! connection begins, and who has to prove what in it, is the affair of the protocol above.
//!
//! Rings belong to the process and the user that connected them, and to the socket that was
//! connected to: a child doesn't use its parent's, a process that has changed its user doesn't use
//! what it was given as another, and a server that has taken another's place is connected to anew.

use crate::shared_memory::SharedMemory;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The most rings in the pool.
const POOLED_MAX: usize = 64;
/// How long they are pooled without use. The server gives up earlier.
const POOLED_TIME_MAX: Duration = Duration::from_secs(10);
/// Attempts to lock the pool. In the child of a process of several threads it may be locked for
/// ever.
const LOCK_ATTEMPTS: u32 = 200;

/// Who connected rings, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    path: PathBuf,
    /// Device and inode number of the socket's file.
    file: (u64, u64),
    process: u32,
    user: u32,
}

impl Origin {
    /// The origin of rings that this process connects now. `None` if there is no socket.
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

struct PooledRings {
    rings: SharedMemory,
    since: Instant,
}

static POOL: Mutex<Vec<PooledRings>> = Mutex::new(Vec::new());

fn lock() -> Option<MutexGuard<'static, Vec<PooledRings>>> {
    (0..LOCK_ATTEMPTS).find_map(|_| {
        let all = POOL.try_lock().ok();
        if all.is_none() {
            std::thread::yield_now();
        }
        all
    })
}

/// Adds rings whose connection has ended.
pub(crate) fn put(rings: SharedMemory) {
    let now = Instant::now();
    let pooled = PooledRings { rings, since: now };
    // Dropped after the lock is free.
    let _dropped: Vec<PooledRings> = match lock() {
        Some(mut all) => {
            all.push(pooled);
            let surplus = all.len().saturating_sub(POOLED_MAX);
            let stale = all
                .iter()
                .take_while(|pooled| now - pooled.since > POOLED_TIME_MAX)
                .count();
            all.drain(..surplus.max(stale)).collect()
        }
        None => vec![pooled],
    };
}

/// Takes rings to the server at `path`, the last used first, whose server replies to the `request`.
pub(crate) fn take(path: &Path, request: &[u8], timeout: Option<Duration>) -> Option<SharedMemory> {
    if lock()?.is_empty() {
        return None;
    }
    let origin = Origin::now(path)?;
    loop {
        let mut rings = {
            let mut all = lock()?;
            let place = all
                .iter()
                .rposition(|pooled| pooled.rings.origin() == Some(&origin))?;
            all.remove(place).rings
        };
        if rings.restart(request, timeout) {
            return Some(rings);
        }
    }
}
