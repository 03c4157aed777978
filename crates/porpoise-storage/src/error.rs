//! What can go wrong in storage.

use std::path::PathBuf;
use std::sync::Arc;
use std::{error, fmt, io};

use crate::SpaceId;

/// What storage gives: a value, or why there is none.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What storage could not do, and why. Cheap to clone: one failed sync fails every commit that
/// waited for it.
#[derive(Clone, Debug)]
pub enum Error {
    /// A file could not be read or written.
    Io {
        /// What was tried, as a verb: "read", "write to".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A file holds what was never written to it. The store refuses to start.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A place of the tree doesn't hold what was written to it, or can't be read. What needs it
    /// fails; the rest of the store goes on.
    Damaged(Arc<DamagedPlace>),
    /// The files were written by an older version, in a format that this one doesn't read.
    OlderFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The version that this program reads.
        supported: u32,
    },
    /// The files were written by a newer version.
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest version that this program reads.
        supported: u32,
    },
    /// Another process has the store open.
    InUse {
        /// The store's folder.
        path: PathBuf,
        /// The process, if it has left its id.
        pid: Option<u32>,
    },
    /// An earlier write failed; reads go on, writes don't.
    ReadOnly {
        /// The first failure.
        cause: Arc<Error>,
    },
    /// A space that was to be empty and left alone has been written to.
    SpaceInUse {
        /// Which.
        space: SpaceId,
    },
    /// One transaction's record would not fit the log.
    TransactionTooLarge {
        /// The length of the record's payload.
        bytes: u64,
        /// The longest payload that a record can have.
        limit: u64,
    },
    /// The B-tree reported an error.
    Tree(Arc<redb::Error>),
    /// The B-tree's library panicked; the panic's text.
    TreePanicked(Arc<str>),
    /// The store was closed.
    Closed,
    /// The statement was told to end.
    Interrupted,
}

/// A place of the tree that is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    /// The tree's file.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
    /// The system refused to read it; it may be readable another time.
    pub is_unreadable: bool,
    /// The space whose rows are, or may be, there.
    pub space: Option<SpaceId>,
    /// What the space is to those who use the store; see
    /// [`Store::set_space_names`](crate::Store::set_space_names).
    pub owner: Option<SpaceOwner>,
}

/// What a space is to those who use the store: a table's rows, or an index of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceOwner {
    /// The table's name, as it is to be shown.
    pub table: String,
    /// The index's name; `None` for the table's rows.
    pub index: Option<String>,
}

impl DamagedPlace {
    /// A place that could be read but doesn't hold what was written to it.
    pub(crate) fn new(
        path: impl Into<PathBuf>,
        offset: u64,
        what: impl Into<String>,
    ) -> DamagedPlace {
        DamagedPlace {
            path: path.into(),
            offset,
            what: what.into(),
            is_unreadable: false,
            space: None,
            owner: None,
        }
    }
}

impl error::Error for DamagedPlace {}

impl From<DamagedPlace> for Error {
    fn from(place: DamagedPlace) -> Error {
        Error::Damaged(Arc::new(place))
    }
}

impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(
            f,
            "{path} is damaged at offset {}: {}",
            self.offset, self.what
        )
    }
}

impl Error {
    /// For `map_err`: an operation of the system on a path failed.
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io {
            doing,
            path,
            source: Arc::new(source),
        }
    }

    /// A file that holds what was never written to it.
    pub(crate) fn corrupt(path: impl Into<PathBuf>, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt {
            path: path.into(),
            offset,
            what: what.into(),
        }
    }

    pub(crate) fn newer_format(path: impl Into<PathBuf>, found: u32, supported: u32) -> Error {
        Error::NewerFormat {
            path: path.into(),
            found,
            supported,
        }
    }

    pub(crate) fn older_format(path: impl Into<PathBuf>, found: u32, supported: u32) -> Error {
        Error::OlderFormat {
            path: path.into(),
            found,
            supported,
        }
    }

    fn from_redb(error: redb::Error) -> Error {
        let damage = match &error {
            redb::Error::Io(e) => e.get_ref().and_then(|e| e.downcast_ref::<DamagedPlace>()),
            _ => None,
        };
        match damage {
            Some(damage) => damage.clone().into(),
            None => Error::Tree(Arc::new(error)),
        }
    }

    /// Whether it is the B-tree itself that can't go on, not a page of it.
    pub(crate) fn is_tree_failure(&self) -> bool {
        matches!(self, Error::Tree(_) | Error::TreePanicked(_))
    }

    /// Whether another version wrote the files, older or newer.
    pub(crate) fn is_other_format(&self) -> bool {
        matches!(self, Error::NewerFormat { .. } | Error::OlderFormat { .. })
    }

    /// Whether a file isn't there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the device behind the store has no room left (MySQL error 1021).
    pub fn is_disk_full(&self) -> bool {
        let full = |e: &io::Error| {
            matches!(
                e.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            )
        };
        match self {
            Error::Io { source, .. } => full(source),
            Error::Tree(e) => matches!(&**e, redb::Error::Io(e) if full(e)),
            Error::ReadOnly { cause } => cause.is_disk_full(),
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io {
                doing,
                path,
                source,
            } => {
                write!(f, "cannot {doing} {}: {source}", path.display())
            }
            Error::Corrupt { path, offset, what } => {
                write!(
                    f,
                    "{} is corrupt at offset {offset}: {what}",
                    path.display()
                )
            }
            Error::Damaged(place) => place.fmt(f),
            Error::OlderFormat {
                path,
                found,
                supported,
            } => write!(
                f,
                "{} has format version {found}, of an earlier version of Porpoise; this one reads \
                 version {supported}. Dump the data with the earlier version and load it anew",
                path.display()
            ),
            Error::NewerFormat {
                path,
                found,
                supported,
            } => write!(
                f,
                "{} has format version {found}; this program reads up to version {supported}",
                path.display()
            ),
            Error::InUse {
                path,
                pid: Some(pid),
            } => {
                write!(f, "{} is in use by process {pid}", path.display())
            }
            Error::InUse { path, pid: None } => {
                write!(f, "{} is in use by another process", path.display())
            }
            Error::ReadOnly { cause } => {
                write!(f, "the store is read-only since a write failed: {cause}")
            }
            Error::SpaceInUse { space } => {
                write!(f, "space {} was to be left alone, and isn't", space.0)
            }
            Error::TransactionTooLarge { bytes, limit } => {
                write!(
                    f,
                    "a transaction of {bytes} bytes is over the limit of {limit}"
                )
            }
            Error::Tree(e) => write!(f, "B-tree: {e}"),
            Error::TreePanicked(text) => write!(f, "B-tree: {text}"),
            Error::Closed => write!(f, "the store is closed"),
            Error::Interrupted => write!(f, "the statement was told to end"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::ReadOnly { cause } => Some(cause),
            Error::Tree(e) => Some(e),
            _ => None,
        }
    }
}

macro_rules! from_redb {
    ($($kind:ident)*) => {$(
        impl From<redb::$kind> for Error {
            fn from(e: redb::$kind) -> Error {
                Error::from_redb(e.into())
            }
        }
    )*};
}

from_redb!(DatabaseError TransactionError TableError StorageError CursorError CommitError SetDurabilityError);

/// Why a row lock was not granted. The transaction is as it was before; what to roll back is the
/// caller's choice (InnoDB rolls back the transaction on a deadlock, the statement on a timeout:
/// MySQL 8.4 manual, 17.20.5, "InnoDB Error Handling").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// This transaction was chosen to break a cycle of waits (MySQL error 1213).
    Deadlock,
    /// The wait took longer than asked (1205).
    Timeout,
    /// Another transaction holds it, and the caller would not wait (3572).
    Busy,
    /// The wait was ended from outside (1317).
    Interrupted,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockError::Deadlock => "deadlock found when trying to get a lock",
            LockError::Timeout => "lock wait timeout exceeded",
            LockError::Busy => "the lock is held by another transaction",
            LockError::Interrupted => "the wait for a lock was interrupted",
        })
    }
}

impl error::Error for LockError {}
