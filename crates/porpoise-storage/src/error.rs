//! What can go wrong in storage.

use std::path::PathBuf;
use std::sync::Arc;
use std::{error, fmt, io};

use crate::SpaceId;
use crate::tree_file::Damage;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What storage could not do, and why. Cheap to clone: one failed sync fails every commit beside it.
#[derive(Clone, Debug)]
pub enum Error {
    /// A file could not be read or written.
    Io {
        doing: &'static str,
        path: PathBuf,
        source: Arc<io::Error>,
    },
    /// A file holds what was never written to it. The store refuses to start.
    Corrupt {
        path: PathBuf,
        offset: u64,
        what: String,
    },
    /// A place of the tree doesn't hold what was written to it, or can't be read. What needs it
    /// fails; the rest of the store goes on.
    Damaged(Arc<DamagedPlace>),
    /// The files were written by an older version, in a way that this one doesn't read.
    OlderFormat {
        path: PathBuf,
        found: u32,
        supported: u32,
    },
    /// The files were written by a newer version.
    NewerFormat {
        path: PathBuf,
        found: u32,
        supported: u32,
    },
    /// Another process has the store open.
    InUse { path: PathBuf, pid: Option<u32> },
    /// An earlier write failed; reads go on, writes don't. Holds the first failure.
    ReadOnly { cause: Arc<Error> },
    /// One transaction's record would not fit the log.
    TransactionTooLarge { bytes: u64, limit: u64 },
    /// The B-tree reported an error.
    Tree(Arc<redb::Error>),
    /// The B-tree's library gave up in the middle of something.
    TreePanicked(Arc<str>),
    /// The store was closed.
    Closed,
}

/// A place of the tree that is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    pub path: PathBuf,
    pub offset: u64,
    pub what: String,
    /// The system refused to read it; it may be there another time.
    pub is_refused: bool,
    /// Whose rows are, or may be, there.
    pub space: Option<SpaceId>,
    /// What the space is to those who use the store; see
    /// [`Store::set_space_names`](crate::Store::set_space_names).
    pub owner: Option<SpaceOwner>,
}

/// What a space is to those who use the store: a table's rows, or an index of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceOwner {
    pub table: String,
    pub index: Option<String>,
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

    fn of_tree(error: redb::Error) -> Error {
        let damage = match &error {
            redb::Error::Io(e) => e.get_ref().and_then(|e| e.downcast_ref::<Damage>()),
            _ => None,
        };
        match damage {
            Some(damage) => damage.clone().into(),
            None => Error::Tree(Arc::new(error)),
        }
    }

    /// Whether it is the B-tree itself that can't go on, not a page of it.
    pub(crate) fn is_of_tree(&self) -> bool {
        matches!(self, Error::Tree(_) | Error::TreePanicked(_))
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
            Error::TransactionTooLarge { bytes, limit } => {
                write!(
                    f,
                    "a transaction of {bytes} bytes is over the limit of {limit}"
                )
            }
            Error::Tree(e) => write!(f, "B-tree: {e}"),
            Error::TreePanicked(text) => write!(f, "B-tree: {text}"),
            Error::Closed => write!(f, "the store is closed"),
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
                Error::of_tree(e.into())
            }
        }
    )*};
}

from_redb!(DatabaseError TransactionError TableError StorageError CommitError SetDurabilityError);

/// Why a row lock was not granted. The transaction is as it was before; what to roll back is the
/// caller's choice (MySQL rolls back all on a deadlock, the statement on a timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockError {
    /// This transaction was chosen to break a cycle of waits (MySQL error 1213).
    Deadlock,
    /// The wait took longer than asked (1205).
    Timeout,
    /// Somebody holds it, and the caller would not wait (3572).
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
