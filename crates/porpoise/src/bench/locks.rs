//! `porpoise bench locks`: reader-writer locks against each other, alone or inside a server.
//!
//! ```text
//! porpoise bench locks                 turns a second through each lock, 1 to 64 threads, four mixes; a table and a picture
//! porpoise bench locks --end-to-end    a server for each lock, point selects and ranges from 256 clients on each in turn
//! ```

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use porpoise_lab::locks::{self, LocksPlan};
use porpoise_lab::{BenchPlan, Target, Workload, bench};
use porpoise_locks::Kind;
use porpoise_storage::Location;

use super::{Served, temporary_folder};

#[derive(Args)]
pub struct LocksOptions {
    /// Numbers of threads; end to end, of clients (256 unless said)
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    /// Milliseconds each round takes; end to end, 3,000 unless said
    #[arg(long)]
    milliseconds: Option<u64>,
    /// Rounds of which the median counts; end to end, 3 unless said
    #[arg(long)]
    rounds: Option<usize>,
    /// Where the picture goes
    #[arg(long, default_value = "porpoise-locks.svg")]
    picture: PathBuf,
    /// Measure the server with each lock in its metadata locking (metadata_lock_kind)
    #[arg(long)]
    end_to_end: bool,
    /// Rows of the table, end to end
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
}

pub fn measure(options: &LocksOptions) -> Result<(), Box<dyn std::error::Error>> {
    if options.end_to_end {
        return measure_servers(options);
    }
    let mut plan = LocksPlan::default();
    if !options.threads.is_empty() {
        plan.threads.clone_from(&options.threads);
    }
    if let Some(milliseconds) = options.milliseconds {
        plan.duration = Duration::from_millis(milliseconds);
    }
    plan.rounds = options.rounds.unwrap_or(plan.rounds).max(1);
    plan.threads.retain(|&threads| threads > 0);
    let report = locks::run(&plan);
    print!("{report}");
    std::fs::write(&options.picture, report.picture())?;
    println!("picture: {}", options.picture.display());
    Ok(())
}

/// The oldest lock comes first, so that the others are told as its multiples.
fn measure_servers(options: &LocksOptions) -> Result<(), Box<dyn std::error::Error>> {
    const CLIENTS: usize = 256;
    let folder = temporary_folder()?;
    let clients = match options.threads.as_slice() {
        [] => vec![CLIENTS],
        given => given.to_vec(),
    };
    let clients_max = clients.iter().max().copied().unwrap_or(CLIENTS);
    let mut servers = Vec::new();
    for kind in Kind::ALL {
        let variables = [
            ("max_connections", (clients_max + 10).to_string()),
            ("metadata_lock_kind", kind.name().to_string()),
        ]
        .map(|(name, value)| (name.to_string(), value));
        servers.push(Served::start(
            Location::Memory,
            folder.path(),
            kind.name(),
            variables.into(),
        )?);
    }
    let targets: Vec<Target> = servers
        .iter()
        .zip(Kind::ALL)
        .map(|(served, kind)| Target::new(kind.name(), &served.local("unix")))
        .collect::<Result<_, _>>()?;
    let plan = BenchPlan {
        workloads: vec![Workload::PointSelect, Workload::SimpleRanges],
        clients,
        rows: options.rows,
        duration: Duration::from_millis(options.milliseconds.unwrap_or(3_000)),
        rounds: options.rounds.unwrap_or(3).max(1),
        ..BenchPlan::default()
    };
    let report = bench::run(&targets, &plan)?;
    print!("{report}");
    for served in servers {
        served.stop()?;
    }
    Ok(())
}
