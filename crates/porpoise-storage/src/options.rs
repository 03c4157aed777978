//! How a store is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::disk::{Disk, OsDisk};

/// Where a store lives.
#[derive(Clone, Debug)]
pub enum Location {
    /// A folder of its own; made if it doesn't exist.
    Path(PathBuf),
    /// In memory: gone when the last clone of the store is dropped.
    Memory,
}

/// What a commit waits for, numbered as `innodb_flush_log_at_trx_commit` is (MySQL 8.4 manual,
/// 17.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// 0: for nothing. The log is written and synced each second.
    EachSecond,
    /// 1: for the disk. What was acknowledged survives a crash of the machine.
    AtCommit,
    /// 2: for the operating system. What was acknowledged survives a crash of the process; the disk
    /// follows each second.
    WriteAtCommit,
}

/// The flush policy of a store. Clones share it, and it may change while the store runs.
#[derive(Clone, Debug)]
pub struct FlushPolicy(Arc<AtomicU8>);

impl FlushPolicy {
    /// A policy of its own.
    pub fn new(flush: Flush) -> FlushPolicy {
        let policy = FlushPolicy(Arc::new(AtomicU8::new(0)));
        policy.set(flush);
        policy
    }

    /// Changes the policy, for commits from now on.
    pub fn set(&self, flush: Flush) {
        let number = match flush {
            Flush::EachSecond => 0,
            Flush::AtCommit => 1,
            Flush::WriteAtCommit => 2,
        };
        self.0.store(number, Ordering::Release);
    }

    /// The policy now.
    pub fn get(&self) -> Flush {
        match self.0.load(Ordering::Acquire) {
            0 => Flush::EachSecond,
            2 => Flush::WriteAtCommit,
            _ => Flush::AtCommit,
        }
    }
}

impl Default for FlushPolicy {
    fn default() -> FlushPolicy {
        FlushPolicy::new(Flush::AtCommit)
    }
}

/// Which threads sync once a second, preallocate log segments, make checkpoints, and end the state
/// in which writing is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Two threads of the store.
    Threads,
    /// The caller of [`Store::work`](crate::Store::work) and `Store::checkpoint`: a simulation, in
    /// which everything happens in an order that can be repeated.
    Manual,
}

/// A piece of background work; see [`Background::Manual`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Syncs what no commit has waited for.
    Sync,
    /// Preallocates the next log segment, if it is time to.
    PreallocateSegment,
    /// Gives room in the tree's file back to the disk.
    Shrink,
    /// Ends the state in which writing is refused, if what caused it is over.
    Recover,
}

/// How a store is opened. [`Options::path`] and [`Options::memory`] give the usual values.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the store lives.
    pub location: Location,
    /// What a commit waits for.
    pub flush: FlushPolicy,
    /// Memory for what is read from the B-tree, in bytes: a twelfth for its pages, the rest for
    /// blocks of rows.
    pub cache_bytes: usize,
    /// A checkpoint starts when so many bytes of log have been written since the last.
    pub checkpoint_log_bytes: u64,
    /// A checkpoint starts when versions in memory take so many bytes.
    pub checkpoint_version_bytes: u64,
    /// A transaction whose writes take more bytes of memory writes them to a file of the folder, and
    /// goes on with the next. Not before they take about twice `checkpoint_version_bytes`, unless
    /// those of all transactions take more than `spill_bytes` and these more than the average; never in
    /// a store in memory.
    pub spill_bytes: usize,
    /// A checkpoint starts when nothing was committed for so long, to free memory.
    pub checkpoint_idle: Duration,
    /// How many checkpoints in a row may fail because the disk can't read a place, before the place
    /// counts as damaged. One is tried every other second.
    pub checkpoint_read_tries: u32,
    /// The length of a log file, in bytes.
    pub log_segment_bytes: u64,
    /// Which threads do the work that no commit waits for.
    pub background: Background,
    /// The file system that the folder is in.
    pub disk: Arc<dyn Disk>,
}

impl Options {
    /// A store in a folder, which is made if it doesn't exist.
    pub fn path(folder: impl Into<PathBuf>) -> Options {
        Options::at(Location::Path(folder.into()))
    }

    /// A store in memory.
    pub fn memory() -> Options {
        Options::at(Location::Memory)
    }

    fn at(location: Location) -> Options {
        Options {
            location,
            flush: FlushPolicy::default(),
            cache_bytes: 24 << 20,
            checkpoint_log_bytes: 64 << 20,
            checkpoint_version_bytes: 16 << 20,
            spill_bytes: 64 << 20,
            checkpoint_idle: Duration::from_secs(10),
            checkpoint_read_tries: 1_000,
            log_segment_bytes: 16 << 20,
            background: Background::Threads,
            disk: Arc::new(OsDisk),
        }
    }
}
