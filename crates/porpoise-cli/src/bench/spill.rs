//! `porpoise bench spill`: statements that take more memory than they may.
//!
//! ```text
//!   porpoise bench spill ──┬─ porpoise serve    with memory enough, then with a limit, on one folder
//!     one client           └─ mariadbd          with --peer: the same rows, the same limit
//! ```

use clap::Args;
use porpoise_lab::spill::{self, SpillPlan};

use super::{Failure, serving, temporary_folder};

#[derive(Args)]
pub struct SpillOptions {
    /// MiB of the values of sysbench's table. In memory a statement takes up to three times as much
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    table_mib: u64,
    /// MiB that a statement may take when it goes to disk (statement_memory_limit)
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    limit_mib: u64,
    /// MiB of each server's buffer pool (innodb_buffer_pool_size)
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    memory_mib: u64,
    /// Measure a MariaDB with the same limits beside, which is started for it, and compare the answers
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
}

pub fn measure(options: &SpillOptions) -> Result<(), Failure> {
    let peer = serving::has_startable_peer(options.peer.as_ref())?;
    let stop = serving::ends_when_asked()?;
    let folder = temporary_folder()?;
    let plan = SpillPlan {
        table_mib: options.table_mib,
        limit_mib: options.limit_mib,
        cache_mib: options.memory_mib,
        peer,
        stop,
        ..SpillPlan::default()
    };
    let report = spill::run(&plan, folder.path())?;
    print!("{report}");
    match report.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(failures.join("\n").into()),
    }
}
