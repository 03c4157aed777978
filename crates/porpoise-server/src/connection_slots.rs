//! Connection slots: at most `max_connections` connections, and one more for an administrator.
//!
//! Source: MySQL 8.4 Reference Manual, 7.1.12.1 "Connection Interfaces".

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The slots of a server, and the most that were ever taken at once.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSlots {
    taken: Arc<AtomicUsize>,
    max_used: AtomicUsize,
    /// When that was, in seconds since 1970.
    max_used_at: AtomicU64,
}

/// One connection's slot. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    taken: Arc<AtomicUsize>,
    reserved: bool,
}

impl ConnectionSlot {
    /// The one slot beyond `max_connections`, for an administrator.
    pub fn is_reserved(&self) -> bool {
        self.reserved
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConnectionSlots {
    /// One of `max_connections` slots, or the reserved one beyond them if that is the last.
    pub fn take(&self, max_connections: usize) -> Option<ConnectionSlot> {
        self.take_below(max_connections.saturating_add(1), max_connections)
    }

    /// One of `max_connections` slots.
    pub fn take_ordinary(&self, max_connections: usize) -> Option<ConnectionSlot> {
        self.take_below(max_connections, max_connections)
    }

    /// One of `limit` slots, of which those from `ordinary` up are reserved.
    fn take_below(&self, limit: usize, ordinary: usize) -> Option<ConnectionSlot> {
        let (load, store) = (Ordering::Relaxed, Ordering::Relaxed);
        let one_more = |taken| (taken < limit).then_some(taken + 1);
        let taken = self.taken.try_update(store, load, one_more).ok()?;
        let taken_now = taken + 1;
        if taken_now > self.max_used.load(Ordering::Relaxed)
            && self.max_used.fetch_max(taken_now, Ordering::Relaxed) < taken_now
        {
            self.max_used_at.store(unix_seconds(), Ordering::Relaxed);
        }
        Some(ConnectionSlot {
            taken: self.taken.clone(),
            reserved: taken >= ordinary,
        })
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// The most slots that were ever taken at once.
    pub fn max_used(&self) -> usize {
        self.max_used.load(Ordering::Relaxed)
    }

    /// When the most slots were taken, in seconds since 1970; 0 if none ever was.
    pub fn max_used_at(&self) -> u64 {
        self.max_used_at.load(Ordering::Relaxed)
    }
}

fn unix_seconds() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
