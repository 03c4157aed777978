//! Scenarios: tables of a workload's own, transactions on them, and what must be true afterwards.
//!
//! ```text
//!   Scenario ── load ─────────► its tables, in a database of their own
//!     ├──────── course ───────► what each client does: one kind of transaction after the other
//!     ├──────── checks ───────► queries that find no row, unless something went wrong
//!     └──────── compared ─────► queries whose answers are the same on every server
//! ```
//!
//! A run whose checks find something, or whose answers differ, has failed, however fast it was.

use std::sync::Arc;

use porpoise_client::{Connection, Error, Options};

use crate::queries::Query;
use crate::workload::Course;
use crate::{Measured, Way};

/// What must hold after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// What is violated where the query finds a row.
    pub name: String,
    /// Finds what should not be.
    pub query: String,
}

/// Tables and transactions on them.
pub(crate) trait Scenario: Send + Sync {
    /// The name of the database of its own that its tables lie in, put behind that of the clients'
    /// database; `None`: in that.
    fn database(&self) -> Option<&str> {
        None
    }

    /// Makes its tables anew, and fills them; tells what it is at.
    fn load(
        &self,
        connection: &mut Connection,
        seed: u64,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), Error>;

    /// Whether each run has its tables anew.
    fn loads_for_each_run(&self) -> bool {
        false
    }

    /// The texts of its statements, with `?` for values.
    fn statements(&self) -> Vec<String>;

    /// The numbers of those that are worth preparing.
    fn to_prepare(&self) -> Vec<usize>;

    /// The names of its kinds of transactions; none if there is one kind.
    fn kinds(&self) -> Vec<String> {
        Vec::new()
    }

    /// A client's way through it; clients count from 0.
    fn course(self: Arc<Self>, client: usize) -> Box<dyn Course>;

    /// Why it can't be run by this way in, if it can't.
    fn has_no_way(&self, _way: Way) -> Option<&'static str> {
        None
    }

    /// What its clients' connections need.
    fn adapt(&self, _options: &mut Options) {}

    /// Whether clients wait between transactions.
    fn has_pauses(&self) -> bool {
        false
    }

    /// Transactions that a client does at least while it is measured.
    fn transactions_min(&self) -> u64 {
        0
    }

    /// What must hold after a run.
    fn checks(&self) -> Vec<Check> {
        Vec::new()
    }

    /// Queries that every server has to answer alike after a run.
    fn compared(&self) -> Vec<Query> {
        Vec::new()
    }

    /// Figures of its own, by name.
    fn figures(&self, _measured: &Measured) -> Vec<(String, f64)> {
        Vec::new()
    }
}
