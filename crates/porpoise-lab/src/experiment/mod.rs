//! An experiment: what is measured, how often, in which order.
//!
//! ```text
//! file.toml ──parse──► Experiment ──► points: server × way in × workload × clients × affinity × rate
//!                          └────────► schedule: every point once, shuffled; again for each repetition
//! ```
//!
//! Runs of one point lie apart, so that whatever the machine does in the course of an experiment
//! (heat, neighbours, a nightly job) hits all points alike. The order comes from a seed, which is
//! recorded: the same file gives the same order.

mod parse;
mod workloads;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::sysbench::SysbenchScript;
use crate::{Mode, ScenarioRef, Script, Table, Way, Workload};

pub use parse::FileError;
pub(crate) use parse::{in_words, place_of};

/// An experiment, as its file says.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its title.
    pub title: String,
    /// The files it was read from, with their texts: its own first, then those of workloads.
    pub files: Vec<(String, String)>,
    /// The servers.
    pub servers: Vec<ServerSpec>,
    /// What clients do.
    pub workloads: Vec<WorkloadSpec>,
    /// What is measured.
    pub points: Vec<Point>,
    /// Runs of each point.
    pub runs: u32,
    /// How long one is measured.
    pub duration: Duration,
    /// How long it may take until throughput is stationary.
    pub warm_up: WarmUp,
    /// The order of runs and what clients draw come from it.
    pub seed: u64,
    /// How statements are sent.
    pub mode: Mode,
    /// Threads that have the clients; `None`: each client has its own.
    pub jobs: Option<usize>,
    /// Tables of the OLTP workloads.
    pub tables: Vec<Table>,
    /// The series that others are compared with, as a report names it.
    pub baseline: Option<String>,
}

/// A server under test.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Its name in the report.
    pub name: String,
    /// How there comes to be one.
    pub kind: ServerKind,
    /// Options of `porpoise serve` or mysqld.
    pub options: Vec<String>,
}

/// How there comes to be a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// Porpoise: a program at a path, or this one.
    Porpoise(Option<PathBuf>),
    /// Porpoise, built from a revision of the repository in a folder.
    Revision {
        /// What git knows it by.
        revision: String,
        /// A folder of the repository.
        repository: PathBuf,
    },
    /// A MariaDB that is installed.
    MariaDb,
    /// One that runs already.
    Url(String),
}

/// What clients do, by name.
#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    /// The workload's name, or its file's.
    pub name: String,
    /// What they do.
    pub kind: WorkloadKind,
    /// Its tables are made anew for each run.
    pub is_fresh: bool,
}

/// What kind of workload it is.
#[derive(Clone, Debug)]
pub enum WorkloadKind {
    /// One of sysbench's OLTP family.
    Oltp(Workload),
    /// Tables and transactions of its own.
    Scenario(ScenarioRef),
    /// A script of the real sysbench.
    Sysbench(Arc<SysbenchScript>),
}

impl WorkloadSpec {
    /// What clients of our own do; none for a script of sysbench.
    pub(crate) fn script(&self, tables: &[Table]) -> Option<Script> {
        match &self.kind {
            WorkloadKind::Oltp(workload) => Some(Script::Oltp(*workload, tables.to_vec())),
            WorkloadKind::Scenario(scenario) => Some(Script::Of(scenario.clone())),
            WorkloadKind::Sysbench(_) => None,
        }
    }

    /// The end of the name of the database of its own that its tables lie in, if they do.
    pub(crate) fn database(&self) -> Option<&str> {
        match &self.kind {
            WorkloadKind::Oltp(_) => None,
            WorkloadKind::Scenario(scenario) => scenario.0.database(),
            WorkloadKind::Sysbench(script) => Some(&script.database),
        }
    }

    /// Whether each run has its tables anew.
    pub(crate) fn loads_for_each_run(&self) -> bool {
        self.is_fresh
            || match &self.kind {
                WorkloadKind::Oltp(workload) => workload.grows_tables(),
                WorkloadKind::Scenario(scenario) => scenario.0.loads_for_each_run(),
                WorkloadKind::Sysbench(_) => false,
            }
    }

    /// Why a thread can't have several of its clients, if it can't.
    fn needs_threads(&self) -> Option<&'static str> {
        match &self.kind {
            WorkloadKind::Oltp(workload) if workload.connects() => {
                Some("a client waits while it logs in, so each needs a thread of its own")
            }
            WorkloadKind::Scenario(scenario) if scenario.0.has_pauses() => {
                Some("a client waits between transactions, so each needs a thread of its own")
            }
            WorkloadKind::Sysbench(_) => Some("sysbench has a thread for each client"),
            _ => None,
        }
    }
}

/// Which CPUs a server's threads and the clients' run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// Its name in the report.
    pub name: String,
    /// The server's; all, if none is named.
    pub server: Vec<usize>,
    /// The clients'; all, if none is named.
    pub clients: Vec<usize>,
}

/// Bounds of the warm-up, which ends between them when throughput is stationary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// It takes so long at least.
    pub min: Duration,
    /// Then it ends, and it is noted that throughput was not stationary.
    pub max: Duration,
}

/// One combination that is measured, by a number of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The number of the server in [`Experiment::servers`].
    pub server: usize,
    /// The way in.
    pub way: Way,
    /// The number of the workload in [`Experiment::workloads`].
    pub workload: usize,
    /// Clients at a time.
    pub clients: usize,
    /// Which CPUs are used; `None`: as the system likes.
    pub affinity: Option<Affinity>,
    /// Transactions that begin a second (open loop); `None`: as many as the server does.
    pub rate: Option<f64>,
}

/// One run of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledRun {
    /// The number of the point in [`Experiment::points`].
    pub point: usize,
    /// Which of the point's runs it is, from 1.
    pub repetition: u32,
}

impl Experiment {
    /// Reads a file. Workload files that it names are sought beside it.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        parse::read(path)
    }

    /// All runs, in their order.
    pub fn schedule(&self) -> Vec<ScheduledRun> {
        let mut random = Rng::with_seed(self.seed);
        let mut runs = Vec::with_capacity(self.points.len() * self.runs as usize);
        for repetition in 1..=self.runs {
            let mut points: Vec<usize> = (0..self.points.len()).collect();
            random.shuffle(&mut points);
            runs.extend(
                points
                    .into_iter()
                    .map(|point| ScheduledRun { point, repetition }),
            );
        }
        runs
    }

    /// What a report calls the curve that a point lies on: whatever it has beside workload and
    /// number of clients.
    pub fn series(&self, point: &Point) -> String {
        let mut name = format!("{} {}", self.servers[point.server].name, point.way);
        if let Some(affinity) = &point.affinity {
            name += &format!(", {}", affinity.name);
        }
        if let Some(rate) = point.rate {
            name += &format!(", {rate}/s");
        }
        name
    }

    /// The threads that have a point's clients.
    pub fn threads(&self, point: &Point) -> usize {
        self.jobs.unwrap_or(point.clients).min(point.clients)
    }
}
