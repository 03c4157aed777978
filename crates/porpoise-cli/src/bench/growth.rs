//! `porpoise bench growth`: a table that grows from what the cache holds to far more.
//!
//! ```text
//!   porpoise bench growth ──┬─ porpoise serve    a process of its own, in a temporary folder
//!     clients               └─ mariadbd          with --peer: the same, in turn with it
//! ```
//!
//! Both have the same cache and the same limit of memory, sync each commit, and are stopped, killed
//! and started again.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use porpoise_lab::growth::{self, GrowthPlan};

use super::{Failure, serving, temporary_folder};

#[derive(Args)]
pub struct GrowthOptions {
    /// Numbers of rows, each measured in a new folder
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000])]
    rows: Vec<u64>,
    /// Bytes of each row's text, beside two integers; with 0 rows have none
    #[arg(long, value_name = "BYTES", default_value_t = 60)]
    text: usize,
    /// MiB of each server's cache (innodb_buffer_pool_size)
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    cache: u64,
    /// MiB that each server's process may have, its pages of files included; 0: no limit. Unless
    /// given, four times the cache, and 256 at least
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// Clients that select and update
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Seconds that selects of any row, selects of rows in the cache, and updates take each
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds to wait at most until the folder's size stays the same
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// Measure a MariaDB beside, which is started for it
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
    /// Write a chart of each figure into this folder
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// What a server takes beside its cache, in a limit that isn't given.
const MEMORY_MIN_MIB: u64 = 256;

pub fn measure(options: &GrowthOptions) -> Result<(), Failure> {
    let peer = serving::has_startable_peer(options.peer.as_ref())?;
    let stop = serving::ends_when_asked()?;
    if let Some(output) = &options.output {
        std::fs::create_dir_all(output)
            .map_err(|error| format!("{}: {error}", output.display()))?;
    }
    let folder = temporary_folder()?;
    let usual = options.cache.saturating_mul(4).max(MEMORY_MIN_MIB);
    let plan = GrowthPlan {
        rows: options.rows.clone(),
        text_bytes: options.text,
        cache_mib: options.cache,
        memory_mib: options.memory.unwrap_or(usual),
        clients: options.clients,
        duration: Duration::from_secs(options.seconds),
        idle: Duration::from_secs(options.idle),
        peer,
        stop,
        ..GrowthPlan::default()
    };
    let report = growth::run(&plan, folder.path())?;
    print!("{report}");
    if let Some(output) = &options.output {
        report.write_charts(output)?;
    }
    match report.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(failures.join("\n").into()),
    }
}
