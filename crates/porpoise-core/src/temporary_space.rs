//! How much of the disk statements' temporary files take, and how much they may take.
//!
//! A server has one [`ServerSpace`], each session a [`SessionSpace`]. A file takes of both before it
//! is written, and gives everything back when it is closed. What they count is shown by SHOW STATUS
//! (MySQL 8.4 manual, 7.1.10).
//!
//! | limit | refuses with |
//! | --- | --- |
//! | `max_tmp_session_space_usage`: all files of a session | 1114 |
//! | `max_tmp_total_space_usage`: all files of the server | 1114 |
//!
//! Both are MariaDB's variables; MySQL bounds its temporary tablespaces by their file's size.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// The temporary files of all sessions.
#[derive(Debug)]
pub struct ServerSpace {
    /// Where they are.
    folder: OnceLock<PathBuf>,
    used: AtomicU64,
    /// `max_tmp_total_space_usage`.
    limit: AtomicU64,
    /// `Created_tmp_files`.
    files: AtomicU64,
    counts: SpillCounts,
}

impl Default for ServerSpace {
    fn default() -> ServerSpace {
        ServerSpace {
            folder: OnceLock::new(),
            used: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            files: AtomicU64::new(0),
            counts: SpillCounts::default(),
        }
    }
}

/// What operators did with files.
#[derive(Debug, Default)]
pub struct SpillCounts {
    /// `Created_tmp_disk_tables`: groupings, sets of distinct rows, partitions of windows and
    /// materialised tables that went to disk.
    pub disk_tables: AtomicU64,
    /// `Sort_merge_passes`: how often sorted runs were merged.
    pub merge_passes: AtomicU64,
}

impl ServerSpace {
    /// `max_tmp_total_space_usage`; 0 for no limit.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(no_limit_for_0(bytes), Ordering::Relaxed);
    }

    /// `tmpdir`: the first of the folders that it names. The first call counts.
    pub fn set_folder(&self, tmpdir: &str) {
        let first = tmpdir.split(':').next().unwrap_or_default();
        self.folder.get_or_init(|| PathBuf::from(first));
    }

    /// The folder that temporary files are made in.
    pub fn folder(&self) -> &Path {
        self.folder.get_or_init(std::env::temp_dir)
    }

    /// How many bytes all files have.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// How many files were created.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// A file was created.
    pub(crate) fn count_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// What all sessions did.
    pub fn counts(&self) -> &SpillCounts {
        &self.counts
    }

    fn take(&self, bytes: u64) -> Result<()> {
        take(&self.used, &self.limit, bytes, "max_tmp_total_space_usage")
    }
}

/// The temporary files of one session.
#[derive(Debug)]
pub struct SessionSpace {
    used: AtomicU64,
    /// `max_tmp_session_space_usage`.
    limit: AtomicU64,
    counts: SpillCounts,
}

impl Default for SessionSpace {
    fn default() -> SessionSpace {
        SessionSpace {
            used: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            counts: SpillCounts::default(),
        }
    }
}

impl SessionSpace {
    /// Another session's space, with the same limit.
    pub fn with_same_limit(&self) -> SessionSpace {
        let limit = self.limit.load(Ordering::Relaxed);
        SessionSpace {
            limit: AtomicU64::new(limit),
            ..SessionSpace::default()
        }
    }

    /// `max_tmp_session_space_usage`; 0 for no limit.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(no_limit_for_0(bytes), Ordering::Relaxed);
    }

    /// How many bytes the session's files have.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What the session did.
    pub fn counts(&self) -> &SpillCounts {
        &self.counts
    }

    pub(crate) fn take(&self, server: &ServerSpace, bytes: u64) -> Result<()> {
        take(
            &self.used,
            &self.limit,
            bytes,
            "max_tmp_session_space_usage",
        )?;
        let taken = server.take(bytes);
        if taken.is_err() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    pub(crate) fn give_back(&self, server: &ServerSpace, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        server.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn no_limit_for_0(bytes: u64) -> u64 {
    match bytes {
        0 => u64::MAX,
        bytes => bytes,
    }
}

fn take(used: &AtomicU64, limit: &AtomicU64, bytes: u64, variable: &str) -> Result<()> {
    let all = used.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if all > limit.load(Ordering::Relaxed) {
        used.fetch_sub(bytes, Ordering::Relaxed);
        return Err(Error::temporary_space_limit(variable));
    }
    Ok(())
}
