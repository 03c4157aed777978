//! What a run is to do, and what it has done.

use crate::disk::{Faults, IgnoredSyncs};

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub steps: u64,
    /// Chances in 1,000 for each disk operation to check_after_cut at what a cut would leave.
    pub crash_checks: u32,
    /// Chances in 100,000 for each disk operation to be the last before a crash.
    pub crashes: u32,
    pub faults: Faults,
    /// The disk gets full now and then.
    pub is_small: bool,
    pub ignored_syncs: IgnoredSyncs,
    /// Damage of what was written is to be noticed: errors are in order, wrong rows are not.
    pub is_damaging: bool,
    /// Failing is what is expected; nothing is printed.
    pub is_silent: bool,
}

impl Plan {
    pub fn new(seed: u64, steps: u64) -> Plan {
        Plan {
            seed,
            steps,
            crash_checks: 0,
            crashes: 0,
            faults: Faults::default(),
            is_small: false,
            ignored_syncs: IgnoredSyncs::default(),
            is_damaging: false,
            is_silent: false,
        }
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub steps: u64,
    pub disk_operations: u64,
    /// Disks after a cut that were opened and compared, those within recovery included.
    pub crash_checks: u64,
    pub crashes: u64,
    pub commits: u64,
    pub prepared: u64,
    /// Of those, with writes in a file.
    pub prepared_spilled: u64,
    pub failed_commits: u64,
    pub checkpoints: u64,
    pub shrinks: u64,
    pub faults: u64,
    pub recoveries: u64,
    pub trace_hash: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.steps += other.steps;
        self.disk_operations += other.disk_operations;
        self.crash_checks += other.crash_checks;
        self.crashes += other.crashes;
        self.commits += other.commits;
        self.prepared += other.prepared;
        self.prepared_spilled += other.prepared_spilled;
        self.failed_commits += other.failed_commits;
        self.checkpoints += other.checkpoints;
        self.shrinks += other.shrinks;
        self.faults += other.faults;
        self.recoveries += other.recoveries;
    }
}
