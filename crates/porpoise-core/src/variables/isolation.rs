//! Isolation levels: what a transaction sees of others (MySQL 8.4 manual, 17.7.2.1).

/// How much a transaction sees of what others commit meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// As READ COMMITTED, but plain SELECTs read what isn't committed, too.
    ReadUncommitted,
    /// Each statement reads a snapshot of its own.
    ReadCommitted,
    /// All statements of a transaction read the snapshot that its first read took.
    #[default]
    RepeatableRead,
    /// As REPEATABLE READ, and plain reads inside a transaction lock what they read.
    Serializable,
}

impl Isolation {
    /// As `@@transaction_isolation` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "READ-UNCOMMITTED",
            Isolation::ReadCommitted => "READ-COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE-READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }

    /// Finds a level by its name in any case, its words joined by dashes or spaces.
    pub fn by_name(name: &str) -> Option<Isolation> {
        [
            Isolation::ReadUncommitted,
            Isolation::ReadCommitted,
            Isolation::RepeatableRead,
            Isolation::Serializable,
        ]
        .into_iter()
        .find(|isolation| {
            isolation
                .name()
                .eq_ignore_ascii_case(&name.replace(' ', "-"))
        })
    }

    /// Whether each statement reads what is newest.
    pub fn refreshes(self) -> bool {
        matches!(self, Isolation::ReadCommitted | Isolation::ReadUncommitted)
    }
}
