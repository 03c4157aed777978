//! File descriptors: as many connections as the process' limit bears beside what storage needs.
//!
//! Clients never take the descriptors that storage opens its next log segment with: the descriptors
//! are allotted before the first client comes.
//!
//! ```text
//!   open when the server starts   storage's files, listeners, event loops: counted
//! + RESERVED, and some a worker   log segments, checkpoints, files of statements, rings in transit
//! + rings awaiting reuse          of clients that may come back
//! + max_connections and one more  each with a socket, and a doorbell where rings are offered
//! ≤ RLIMIT_NOFILE                 or max_connections is lowered, with a warning in mysqld's words
//! ```
//!
//! Others may take descriptors, too (the program that embeds the database), or the limit may
//! be lowered. Where `accept` finds none, the [`SpareDescriptor`] is released for a moment: the
//! client is accepted, told that there are too many connections, and disconnected.

use std::io;
use std::os::fd::OwnedFd;

use parking_lot::RwLock;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Resource, getrlimit};

/// What is opened while the server runs, beside its connections: the next log segment and the
/// folder to sync it in, a checkpoint's files, the files of statements (LOAD DATA, INTO OUTFILE),
/// the system's list of users.
const RESERVED: u64 = 32;
/// For each worker: a client that is refused or pending, and rings on their way to one that
/// connects.
const RESERVED_PER_WORKER: u64 = 8;

/// A connection with rings has a socket and a doorbell.
const PER_CONNECTION_WITH_RINGS: u64 = 2;
const PER_CONNECTION: u64 = 1;

/// Rings that a worker keeps at most for clients that may come back.
const RINGS_AWAITING_REUSE_MAX: u64 = 64;
/// The part of the clients' descriptors that such rings may take: one in so many.
const RINGS_AWAITING_REUSE_DIVISOR: u64 = 8;

/// What a server asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescriptorRequest {
    pub max_connections: u64,
    pub workers: u64,
    /// Clients may have rings.
    pub rings: bool,
}

/// What a server gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescriptorBudget {
    /// The most connections that can be accepted, the administrator's not counted.
    pub connections: u64,
    /// The most rings that each worker keeps for clients that may come back.
    pub awaiting_reuse: usize,
}

impl DescriptorRequest {
    fn per_connection(self) -> u64 {
        match self.rings {
            true => PER_CONNECTION_WITH_RINGS,
            false => PER_CONNECTION,
        }
    }

    fn reserved(self) -> u64 {
        RESERVED + RESERVED_PER_WORKER.saturating_mul(self.workers)
    }

    /// The descriptors that all of it takes, with `open` ones there already.
    pub fn required(self, open: u64) -> u64 {
        let awaiting_reuse = match self.rings {
            true => {
                RINGS_AWAITING_REUSE_MAX.saturating_mul(self.workers) * PER_CONNECTION_WITH_RINGS
            }
            false => 0,
        };
        let connections = self.max_connections.saturating_add(1);
        let connections = connections.saturating_mul(self.per_connection());
        let others = open.saturating_add(self.reserved());
        connections.saturating_add(others.saturating_add(awaiting_reuse))
    }

    /// What of it there is when the process may have `limit` descriptors, and has `open` already.
    pub fn allocate(self, limit: u64, open: u64) -> DescriptorBudget {
        let left = limit.saturating_sub(open.saturating_add(self.reserved()));
        let rings_left = left / RINGS_AWAITING_REUSE_DIVISOR / PER_CONNECTION_WITH_RINGS;
        let awaiting_reuse = match self.rings {
            true => (rings_left / self.workers.max(1)).min(RINGS_AWAITING_REUSE_MAX),
            false => 0,
        };
        let of_all_workers = awaiting_reuse * PER_CONNECTION_WITH_RINGS * self.workers;
        let connections = left.saturating_sub(of_all_workers) / self.per_connection();
        DescriptorBudget {
            // Without the administrator's. A server accepts one connection at least.
            connections: connections.saturating_sub(1).max(1),
            awaiting_reuse: awaiting_reuse as usize,
        }
    }
}

/// How many descriptors this process may have.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many it has. Where the system doesn't list them: more than a server has at its start.
pub(crate) fn open() -> u64 {
    const UNKNOWN: u64 = 128;
    std::fs::read_dir("/dev/fd").map_or(UNKNOWN, |entries| entries.count() as u64)
}

/// Whether an error says that no descriptors are left in this process, or none in the system.
pub(crate) fn are_exhausted(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// A descriptor that is held to have one when no other is left.
///
/// Clients are accepted [while it is held](Self::while_held), or, one at a time, [while it is
/// released](Self::while_released): so no accepted client takes the descriptor that is needed to
/// hold it again. Somebody else may (storage); then the next client that is accepted gives up its
/// own.
#[derive(Debug)]
pub(crate) struct SpareDescriptor(RwLock<Option<OwnedFd>>);

impl Default for SpareDescriptor {
    fn default() -> SpareDescriptor {
        SpareDescriptor(RwLock::new(SpareDescriptor::take().ok()))
    }
}

impl SpareDescriptor {
    /// A socket: it needs no file.
    fn take() -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC;
        Ok(socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            flags,
            None,
        )?)
    }

    /// Runs an action that takes a descriptor, and tells whether the spare one is held.
    pub fn while_held<R>(&self, action: impl FnOnce() -> R) -> (R, bool) {
        let spare = self.0.read();
        (action(), spare.is_some())
    }

    /// Runs an action that takes one descriptor and gives it back.
    pub fn while_released<R>(&self, action: impl FnOnce() -> R) -> R {
        let mut spare = self.0.write();
        drop(spare.take());
        let result = action();
        *spare = SpareDescriptor::take().ok();
        result
    }

    /// Holds a descriptor again, if it doesn't. False if there is none left.
    pub fn restore(&self) -> bool {
        let mut spare = self.0.write();
        if spare.is_some() {
            return true;
        }
        match SpareDescriptor::take() {
            Ok(taken) => {
                *spare = Some(taken);
                true
            }
            Err(error) => !are_exhausted(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: DescriptorRequest = DescriptorRequest {
        max_connections: 2000,
        workers: 2,
        rings: true,
    };

    #[test]
    fn what_is_required_is_enough() {
        for rings in [false, true] {
            for workers in [1, 2, 64] {
                let request = DescriptorRequest {
                    workers,
                    rings,
                    ..REQUEST
                };
                let most = request.required(20);
                assert_eq!(request.allocate(most + 2, 20).connections.min(2000), 2000);
                assert!(request.allocate(most / 4, 20).connections < 2000);
            }
        }
    }

    #[test]
    fn what_is_allocated_and_reserved_never_exceeds_the_limit() {
        for limit in [200, 256, 1024, 4096, 20_000] {
            for (workers, rings) in [(1, false), (2, true), (8, true), (8, false)] {
                let request = DescriptorRequest {
                    workers,
                    rings,
                    ..REQUEST
                };
                let budget = request.allocate(limit, 20);
                let awaiting_reuse =
                    budget.awaiting_reuse as u64 * workers * PER_CONNECTION_WITH_RINGS;
                let connections = (budget.connections + 1) * request.per_connection();
                assert!(20 + request.reserved() + awaiting_reuse + connections <= limit);
                assert!(budget.connections > 10, "{limit} {workers} {budget:?}");
            }
        }
        assert_eq!(REQUEST.allocate(10, 20).connections, 1);
    }

    #[test]
    fn the_spare_is_held_again_after_it_was_released() {
        let spare = SpareDescriptor::default();
        for _ in 0..3 {
            assert!(spare.while_released(|| SpareDescriptor::take().is_ok()));
            assert!(spare.while_held(|| ()).1);
        }
        drop(spare.0.write().take());
        assert!(!spare.while_held(|| ()).1);
        assert!(spare.restore() && spare.while_held(|| ()).1);
    }
}
