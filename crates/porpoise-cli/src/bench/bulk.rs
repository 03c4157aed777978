//! `porpoise bench bulk`: statements that go through a whole table, and changes in bulk.
//!
//! ```text
//!   porpoise bench bulk ──┬─ porpoise serve    a process of its own, in a temporary folder
//!     one client          └─ mariadbd          with --peer: the same, before it
//! ```
//!
//! Both have the same buffer pool, sync each commit, and are stopped and started again.

use std::time::Duration;

use clap::Args;
use porpoise_lab::bulk::{self, BulkPlan};

use super::{Failure, serving, temporary_folder};

#[derive(Args)]
pub struct BulkOptions {
    /// Rows of sysbench's table
    #[arg(long, default_value_t = 2_000_000)]
    rows: u64,
    /// MiB of each server's buffer pool (innodb_buffer_pool_size)
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory_mib: u64,
    /// Measure a MariaDB beside, which is started for it, and compare the answers
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
    /// Rounds of each SELECT, of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds to wait at most until the folder's size stays the same
    #[arg(long, default_value_t = 60)]
    idle: u64,
}

pub fn measure(options: &BulkOptions) -> Result<(), Failure> {
    let peer = serving::has_startable_peer(options.peer.as_ref())?;
    let stop = serving::ends_when_asked()?;
    let folder = temporary_folder()?;
    let plan = BulkPlan {
        rows: options.rows,
        memory_mib: options.memory_mib,
        rounds: options.rounds,
        idle: Duration::from_secs(options.idle),
        peer,
        stop,
        ..BulkPlan::default()
    };
    let report = bulk::run(&plan, folder.path())?;
    print!("{report}");
    match report.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(failures.join("\n").into()),
    }
}
