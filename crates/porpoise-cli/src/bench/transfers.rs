//! `porpoise bench transfers`: clients that move money between a few rows, and others that add the
//! rows up.
//!
//! ```text
//!   porpoise bench transfers ──┬─ porpoise serve    a process of its own, in a temporary folder
//!     clients, busy threads    └─ mariadbd          with --peer: the same, or a server that runs already
//! ```
//!
//! Both servers sync each commit, as they do by default.

use std::time::Duration;

use clap::Args;
use porpoise_lab::Way;
use porpoise_lab::serving::{Serving, prepare};
use porpoise_lab::transfers::{self, TransfersPlan};

use super::peer::PeerServer;
use super::serving::{self, targets};
use super::{Failure, temporary_folder};
use crate::ways::WayIn;

#[derive(Args)]
pub struct TransfersOptions {
    /// Clients that move money
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Clients that add all rows up
    #[arg(long, default_value_t = 4)]
    readers: usize,
    /// Rows that money is moved between
    #[arg(long, default_value_t = 20)]
    rows: u64,
    /// Threads that compute beside, so that the cores are busy
    #[arg(long, default_value_t = 0)]
    busy: usize,
    /// Seconds each round takes
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Ways in: tcp, unix or shm
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [WayIn(Way::Unix), WayIn(Way::SharedMemory)])]
    ways: Vec<WayIn>,
    /// Measure a MySQL or MariaDB server beside, over its Unix socket: the one at
    /// mysql://user:password@host:port/schema?socket=/path, or a MariaDB that is started for it
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
}

pub fn measure(options: &TransfersOptions) -> Result<(), Failure> {
    let stop = serving::ends_when_asked()?;
    let folder = temporary_folder()?;
    let connections = options.writers + options.readers;
    let serving = Serving::start(None, folder.path(), connections, &[], None)?;
    prepare(&mut serving.root()?, &["localhost"])?;
    let peer = match &options.peer {
        None => PeerServer::default(),
        Some(Some(url)) => PeerServer::at(url)?,
        Some(None) => PeerServer::start(folder.path(), connections, &[])?
            .ok_or("MariaDB (mariadbd), to measure beside, is not installed")?,
    };
    let plan = TransfersPlan {
        rows: options.rows,
        writers: options.writers,
        readers: options.readers,
        busy: options.busy,
        duration: Duration::from_secs(options.seconds.max(1)),
        rounds: options.rounds,
        stop,
        ..TransfersPlan::default()
    };
    let targets = targets(&peer, &serving, &options.ways)?;
    let report = transfers::run(&targets, &plan)?;
    print!("{report}");
    let wrong: Vec<&str> = report.wrong_targets().collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{}: a sum was not what the accounts held at the beginning",
            wrong.join(", ")
        )
        .into()),
    }
}
