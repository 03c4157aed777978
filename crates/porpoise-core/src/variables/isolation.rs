//! Isolation levels: what a transaction sees of others (MySQL 8.4 manual, 17.7.2.1).

/// How much a transaction sees of what others commit meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    #[default]
    RepeatableRead,
    Serializable,
}

impl Isolation {
    pub fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "READ-UNCOMMITTED",
            Isolation::ReadCommitted => "READ-COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE-READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }

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
