//! File descriptors: as many connections as the process' limit bears beside what storage needs.
//!
//! Clients never take the descriptors that storage opens its next log segment with: they are given
//! away before the first client comes.
//!
//! ```text
//!   open when the server starts   storage's files, doors, event loops: counted
//! + RESERVED, and some a worker   log segments, checkpoints, files of statements, rings in transit
//! + rings kept for clients        that may come back
//! + max_connections and one more  each with a socket, and a doorbell where rings are offered
//! ≤ RLIMIT_NOFILE                 or max_connections is lowered, with a warning in mysqld's words
//! ```
//!
//! Others may take descriptors, too (the program that has the database embedded), or the limit may
//! be lowered. Where `accept` finds none, the [`Spare`] is given up for a moment: the client is
//! accepted, told that there are too many connections, and gone.

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
/// For each worker: a client that is turned away or waits at the door, and rings on their way to
/// one that dials.
const RESERVED_A_WORKER: u64 = 8;

/// Connections with rings have a socket and a doorbell.
const WITH_RINGS: u64 = 2;
const WITHOUT_RINGS: u64 = 1;

/// Rings that a worker keeps at most for clients that may come back.
const KEPT_MAX: u64 = 64;
/// Of what is left for clients, those that are gone have one part of so many at most.
const KEPT_PARTS: u64 = 8;

/// What a server would like to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub max_connections: u64,
    pub workers: u64,
    /// Clients may have rings.
    pub rings: bool,
}

/// What it can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The most connections that can be let in, the administrator's not counted.
    pub connections: u64,
    /// The most rings that each worker keeps.
    pub kept: usize,
}

impl Wishes {
    fn of_a_connection(self) -> u64 {
        match self.rings {
            true => WITH_RINGS,
            false => WITHOUT_RINGS,
        }
    }

    fn reserved(self) -> u64 {
        RESERVED + RESERVED_A_WORKER.saturating_mul(self.workers)
    }

    /// The descriptors that all of it takes, with `open` ones there already.
    pub fn needs(self, open: u64) -> u64 {
        let kept = match self.rings {
            true => KEPT_MAX.saturating_mul(self.workers) * WITH_RINGS,
            false => 0,
        };
        let connections = self.max_connections.saturating_add(1);
        let connections = connections.saturating_mul(self.of_a_connection());
        let others = open.saturating_add(self.reserved()).saturating_add(kept);
        connections.saturating_add(others)
    }

    /// What there is of it when the process may have `limit` descriptors.
    pub fn share(self, limit: u64, open: u64) -> Shares {
        let left = limit.saturating_sub(open.saturating_add(self.reserved()));
        let kept = match self.rings {
            true => (left / KEPT_PARTS / WITH_RINGS / self.workers.max(1)).min(KEPT_MAX),
            false => 0,
        };
        let kept_in_all = kept * WITH_RINGS * self.workers;
        let connections = left.saturating_sub(kept_in_all) / self.of_a_connection();
        Shares {
            // Without the administrator's. A server that lets nobody in is none.
            connections: connections.saturating_sub(1).max(1),
            kept: kept as usize,
        }
    }
}

/// How many descriptors this process may have.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many it has. Where the system doesn't list them: more than a server has that just starts.
pub(crate) fn open() -> u64 {
    const UNKNOWN: u64 = 128;
    std::fs::read_dir("/dev/fd").map_or(UNKNOWN, |entries| entries.count() as u64)
}

/// There are no descriptors left in this process, or none in the system.
pub(crate) fn are_used_up(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// A descriptor that is held for nothing, to be there when there is no other.
///
/// Clients are accepted [`beside`](Self::beside) it, or, one at a time, [in its place](Self::lend):
/// nobody who is accepted takes the descriptor that it needs to be whole again. Somebody else may
/// (storage); then the next client that is accepted gives up its own.
#[derive(Debug)]
pub(crate) struct Spare(RwLock<Option<OwnedFd>>);

impl Default for Spare {
    fn default() -> Spare {
        Spare(RwLock::new(Spare::take().ok()))
    }
}

impl Spare {
    /// A socket needs no file to be there.
    fn take() -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC;
        Ok(socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            flags,
            None,
        )?)
    }

    /// Does something that takes a descriptor, and tells whether the spare one is there.
    pub fn beside<R>(&self, what: impl FnOnce() -> R) -> (R, bool) {
        let spare = self.0.read();
        (what(), spare.is_some())
    }

    /// Does something that takes one descriptor and gives it back.
    pub fn lend<R>(&self, to: impl FnOnce() -> R) -> R {
        let mut spare = self.0.write();
        drop(spare.take());
        let result = to();
        *spare = Spare::take().ok();
        result
    }

    /// Is whole again, if it wasn't. False: there is no descriptor for it.
    pub fn restore(&self) -> bool {
        let mut spare = self.0.write();
        if spare.is_some() {
            return true;
        }
        match Spare::take() {
            Ok(taken) => {
                *spare = Some(taken);
                true
            }
            Err(error) => !are_used_up(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISHES: Wishes = Wishes {
        max_connections: 2000,
        workers: 2,
        rings: true,
    };

    #[test]
    fn what_is_needed_is_enough() {
        for rings in [false, true] {
            for workers in [1, 2, 64] {
                let wishes = Wishes {
                    workers,
                    rings,
                    ..WISHES
                };
                let most = wishes.needs(20);
                assert_eq!(wishes.share(most + 2, 20).connections.min(2000), 2000);
                assert!(wishes.share(most / 4, 20).connections < 2000);
            }
        }
    }

    #[test]
    fn shares_and_what_is_reserved_never_exceed_the_limit() {
        for limit in [200, 256, 1024, 4096, 20_000] {
            for (workers, rings) in [(1, false), (2, true), (8, true), (8, false)] {
                let wishes = Wishes {
                    workers,
                    rings,
                    ..WISHES
                };
                let shares = wishes.share(limit, 20);
                let kept = shares.kept as u64 * workers * WITH_RINGS;
                let connections = (shares.connections + 1) * wishes.of_a_connection();
                assert!(20 + wishes.reserved() + kept + connections <= limit);
                assert!(shares.connections > 10, "{limit} {workers} {shares:?}");
            }
        }
        assert_eq!(WISHES.share(10, 20).connections, 1);
    }

    #[test]
    fn the_spare_is_there_again_after_it_was_lent() {
        let spare = Spare::default();
        for _ in 0..3 {
            assert!(spare.lend(|| Spare::take().is_ok()));
            assert!(spare.beside(|| ()).1);
        }
        drop(spare.0.write().take());
        assert!(!spare.beside(|| ()).1);
        assert!(spare.restore() && spare.beside(|| ()).1);
    }
}
