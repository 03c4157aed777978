//! XA statements (MySQL 8.4 manual, 15.3.8).

/// A transaction branch's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    /// Which transaction it is part of, in the words of its transaction manager: 64 bytes at most.
    pub gtrid: Box<[u8]>,
    /// Which branch of it: 64 bytes at most.
    pub bqual: Box<[u8]>,
    /// In which format a transaction manager names them; never above `i64::MAX`.
    pub format: u64,
}

/// `XA …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Xa {
    /// `XA START | BEGIN xid [JOIN | RESUME]`.
    Start {
        /// Which.
        xid: Xid,
        /// What stands behind the name.
        option: XaStart,
    },
    /// `XA END xid [SUSPEND [FOR MIGRATE]]`.
    End {
        /// Which.
        xid: Xid,
        /// `SUSPEND`.
        suspend: bool,
    },
    /// `XA PREPARE xid`.
    Prepare(Xid),
    /// `XA COMMIT xid [ONE PHASE]`.
    Commit {
        /// Which.
        xid: Xid,
        /// `ONE PHASE`.
        one_phase: bool,
    },
    /// `XA ROLLBACK xid`.
    Rollback(Xid),
    /// `XA RECOVER [CONVERT XID]`.
    Recover {
        /// `CONVERT XID`.
        convert: bool,
    },
}

/// What XA START does with the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XaStart {
    /// Begins it.
    New,
    /// `JOIN`.
    Join,
    /// `RESUME`.
    Resume,
}
