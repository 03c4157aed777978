//! `porpoise bench fairness`: clients that ask for little, beside statements that compute for long.
//!
//! ```text
//!   porpoise bench fairness ──┬─ porpoise serve    a process of its own, in a temporary folder
//!     clients, on few threads └─ mariadbd          with --peer: the same, or a server that runs already
//! ```

use std::time::Duration;

use clap::Args;
use porpoise_lab::Way;
use porpoise_lab::fairness::{self, FairnessPlan};
use porpoise_lab::serving::{Serving, prepare};

use super::peer::PeerServer;
use super::serving::{self, targets};
use super::{Failure, temporary_folder};
use crate::ways::WayIn;

/// Descriptors that this process, and a server, have beside those of clients.
const OTHER_DESCRIPTORS: u64 = 300;
/// Descriptors of a client over shared memory.
const DESCRIPTORS_A_CLIENT: u64 = 4;

#[derive(Args)]
pub struct FairnessOptions {
    /// How many statements compute
    #[arg(long, default_value_t = 200)]
    statements: usize,
    /// The statement that computes, instead of a join of three tables without an index
    #[arg(long)]
    sql: Option<String>,
    /// Clients that select points: fewer if there aren't as many descriptors
    #[arg(long, default_value_t = 1000)]
    clients: usize,
    /// Threads that have these clients
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Seconds each measurement takes
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Ways in: tcp, unix or shm
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [WayIn(Way::Unix), WayIn(Way::Tcp), WayIn(Way::SharedMemory)])]
    ways: Vec<WayIn>,
    /// Measure a MySQL or MariaDB server beside, over its Unix socket: the one at
    /// mysql://user:password@host:port/schema?socket=/path, or a MariaDB that is started for it
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
}

pub fn measure(options: &FairnessOptions) -> Result<(), Failure> {
    let stop = serving::ends_when_asked()?;
    let folder = temporary_folder()?;
    let descriptors = crate::serve::raise_descriptor_limit(0);
    let most = descriptors.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS_A_CLIENT;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let clients = options
        .clients
        .min(most.saturating_sub(options.statements))
        .max(1);
    let connections = clients + options.statements;
    let serving = Serving::start(None, folder.path(), connections, &[], None)?;
    prepare(&mut serving.root()?, &["localhost"])?;
    let peer = match &options.peer {
        None => PeerServer::default(),
        Some(Some(url)) => PeerServer::at(url)?,
        Some(None) => PeerServer::start(folder.path(), connections, &[])?
            .ok_or("MariaDB (mariadbd), to measure beside, is not installed")?,
    };
    let targets = targets(&peer, &serving, &options.ways)?;
    let mut plan = FairnessPlan {
        statements: options.statements,
        clients,
        jobs: options.jobs,
        rows: options.rows,
        duration: Duration::from_secs(options.seconds.max(1)),
        stop,
        ..FairnessPlan::default()
    };
    if let Some(sql) = &options.sql {
        plan.sql.clone_from(sql);
    }
    print!("{}", fairness::run(&targets, &plan)?);
    Ok(())
}
