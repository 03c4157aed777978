//! `porpoise bench programs`: a procedure that loops, a function for each row, triggers, and
//! procedures that many clients call.
//!
//! ```text
//!   porpoise bench programs ──┬─ porpoise serve    a process of its own, in a temporary folder
//!     clients                 └─ mariadbd          with --peer: the same, or a server that runs already
//! ```
//!
//! Both have memory for all of the data, and sync each commit, as they do by default.

use std::time::Duration;

use clap::Args;
use porpoise_lab::Way;
use porpoise_lab::programs::{self, ProgramsPlan};
use porpoise_lab::serving::{Serving, prepare};

use super::peer::PeerServer;
use super::serving::{self, targets};
use super::{Failure, temporary_folder};
use crate::ways::WayIn;

/// Memory that either server may have for the data.
const POOL: &str = "--innodb-buffer-pool-size=1G";

#[derive(Args)]
pub struct ProgramsOptions {
    /// Rounds of the loop
    #[arg(long, default_value_t = 10_000_000)]
    loop_rounds: u64,
    /// Rows that the function is called for, and that are inserted under triggers
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Clients that call the procedure of selects and updates
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Seconds for which they do, in each round
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Ways in: tcp, unix or shm
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [WayIn(Way::Unix)])]
    ways: Vec<WayIn>,
    /// Measure a MySQL or MariaDB server beside, over its Unix socket: the one at
    /// mysql://user:password@host:port/schema?socket=/path, or a MariaDB that is started for it
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
}

pub fn measure(options: &ProgramsOptions) -> Result<(), Failure> {
    let stop = serving::ends_when_asked()?;
    let folder = temporary_folder()?;
    let memory = [POOL.to_string()];
    let serving = Serving::start(None, folder.path(), options.clients, &memory, None)?;
    prepare(&mut serving.root()?, &["localhost"])?;
    let peer = match &options.peer {
        None => PeerServer::default(),
        Some(Some(url)) => PeerServer::at(url)?,
        Some(None) => PeerServer::start(folder.path(), options.clients, &memory)?
            .ok_or("MariaDB (mariadbd), to measure beside, is not installed")?,
    };
    let plan = ProgramsPlan {
        loop_rounds: options.loop_rounds,
        rows: options.rows,
        clients: options.clients,
        duration: Duration::from_secs(options.seconds.max(1)),
        rounds: options.rounds,
        stop,
        ..ProgramsPlan::default()
    };
    let targets = targets(&peer, &serving, &options.ways)?;
    print!("{}", programs::run(&targets, &plan)?);
    Ok(())
}
