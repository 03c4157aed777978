//! The load generator: how many transactions a second a server does, and how long the slow ones
//! take.
//!
//! It knows servers only through `porpoise-client`, so the same run measures Porpoise over each of
//! its ways in, and MariaDB or MySQL beside it. The table and the statements are those of
//! sysbench's OLTP workloads, so figures can be laid beside sysbench's own.
//!
//! 1. [`Target`]: a way in, a name and where to connect.
//! 2. [`BenchPlan`]: which [`Workload`]s, with how many clients on how many threads, for how long.
//! 3. [`bench::run`]: loads the table, runs every workload on every target in turn, round after
//!    round, so that what the machine does meanwhile hits all of them alike.
//! 4. [`Report`]: a table to print, with each target's ratio to the one that it is compared with.
//!
//! What takes longer than a minute is an [`Experiment`], read from a file: [`run_experiment`] does
//! its runs in an order that is shuffled, and puts what they came to into [`Results`], a database.
//!
//! ```text
//! experiment ──► runner ──► store ──► export
//!   a file       servers,   tables
//!                load
//! ```
//!
//! Some experiments are their own: [`locks`], reader-writer locks against each other, without any
//! server; and [`connect`], clients that come and go, over every way in. [`ceiling`] sets a server
//! that does nothing ([`replay`]) beside the real ones. [`fairness`] has clients ask for little
//! beside statements that compute for long, [`transfers`] has them change a few rows on a machine
//! that is busy. [`programs`] runs stored programs. [`growth`] has tables that grow beyond memory. [`bulk`]
//! has statements that go through a whole table, [`spill`] those that take more memory than they may. [`fuzz`] asks random statements, and looks whether
//! the answers can be. [`profile`] samples where the time goes. [`queries`] has suites of analytical queries, which are
//! run one at a time and whose answers are compared: TPC-H, the Star Schema Benchmark, and joins of a
//! database of films. [`costs`] measures what the optimizer's constants stand for. [`Peer`] is a MariaDB to measure beside.
//!
//! ```no_run
//! use porpoise_lab::{BenchPlan, Target, Workload, bench};
//!
//! let targets = [
//!     Target::new("MariaDB", "mysql://sb:sb@localhost/sbtest?socket=/tmp/mariadb.sock")?,
//!     Target::new("Unix socket", "mysql://sb:sb@localhost/sbtest?transport=unix&socket=/tmp/porpoise.sock")?,
//! ];
//! let plan = BenchPlan { workloads: vec![Workload::PointSelect], clients: vec![1, 8], ..BenchPlan::default() };
//! print!("{}", bench::run(&targets, &plan)?);
//! # Ok::<(), porpoise_lab::Error>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod affinity;
pub mod bench;
pub mod bulk;
mod bulk_load;
pub mod ceiling;
mod chart;
pub mod connect;
pub mod costs;
mod custom;
mod experiment;
pub mod fairness;
pub mod fuzz;
pub mod growth;
mod histogram;
pub mod idle;
mod lifeline;
mod load;
pub mod locks;
pub mod machine;
mod memory_group;
mod own_server;
mod page;
mod peer;
pub mod profile;
pub mod programs;
mod progress;
pub mod queries;
pub mod replay;
mod report;
pub mod resources;
mod runner;
mod scenario;
pub mod serving;
pub mod spill;
pub mod statistics;
pub mod steadiness;
mod store;
mod sysbench;
mod table;
mod tpcc;
mod tpch;
pub mod transfers;
pub mod watch;
mod way;
mod workload;

pub use bench::{BenchPlan, Target};
pub use custom::CustomWorkload;
pub use experiment::{
    Affinity, Experiment, FileError, Point, ScheduledRun, ServerKind, ServerSpec, WarmUp,
    WorkloadKind, WorkloadSpec,
};
pub use histogram::Histogram;
pub use lifeline::WorkFolder;
pub use page::Page;
pub use peer::Peer;
pub use report::{Measurement, Report};
pub use runner::{Probe, RunOptions, Seen, run as run_experiment};
pub use store::{Measured, MeasuredKind, PlannedRun, Results, RunCounts, SCHEMA};
pub use sysbench::{Sysbench, SysbenchScript};
pub use table::Table;
pub use way::Way;
pub use workload::{Mode, ScenarioRef, Script, Workload};

/// Makes a folder that files are to be written into.
pub(crate) fn make_folder(folder: &std::path::Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::Plan(format!("{}: {error}", folder.display())))
}

/// Refuses rows that may take more than is free where `folder` is.
pub(crate) fn check_room(rows: u64, needed: u64, folder: &std::path::Path) -> Result<(), Error> {
    let disk = rustix::fs::statvfs(folder).map_err(std::io::Error::from)?;
    let free = disk.f_bavail * disk.f_frsize;
    if free >= needed {
        return Ok(());
    }
    let mib = |bytes: u64| report::grouped(bytes >> 20);
    Err(Error::Plan(format!(
        "{} rows may take {} MiB in {}, where {} MiB are free; TMPDIR names another folder",
        report::grouped(rows),
        mib(needed),
        folder.display(),
        mib(free)
    )))
}

/// Why a run came to nothing.
#[derive(Debug)]
pub enum Error {
    /// A target can't be reached, or refused a statement in a way that isn't part of any workload.
    Target {
        /// The target's name.
        target: String,
        /// What was being done.
        doing: String,
        /// The client's error.
        error: porpoise_client::Error,
    },
    /// A plan that can't be run.
    Plan(String),
    /// An experiment's results can't be read or written.
    Results(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Target {
                target,
                doing,
                error,
            } => write!(formatter, "{target}, {doing}: {error}"),
            Self::Plan(what) | Self::Results(what) => formatter.write_str(what),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Plan(error.to_string())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Target { error, .. } => Some(error),
            Self::Plan(_) | Self::Results(_) => None,
        }
    }
}
