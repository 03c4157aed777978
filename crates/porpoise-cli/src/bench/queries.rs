//! `porpoise bench tpch` and its like: a suite of analytical queries, one after the other, beside
//! MariaDB.
//!
//! ```text
//!   porpoise bench tpch ──┬─ porpoise serve    a process of its own, in a temporary folder
//!     one client          └─ mariadbd          with --peer; or --peer=…: a server that runs already
//! ```
//!
//! Both have memory for all of the data, so that neither reads from the disk.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use porpoise_client::Options;
use porpoise_lab::Target;
use porpoise_lab::queries::{self, Joins, QueriesPlan, Ssb, Suite, Tpch};
use porpoise_lab::serving::{Serving, prepare, routes_to};

use super::peer::PeerServer;
use super::serving;
use super::{Failure, temporary_folder};

/// Memory for the data of a scale of 1 with its indexes, and for what is always there.
const SCALE_BYTES: f64 = 4e9;
const POOL_BYTES_MIN: f64 = 512e6;

#[derive(Args)]
pub struct QueriesOptions {
    /// How much data, as the suite counts it: 1 is some 10 million rows
    #[arg(long, default_value_t = 0.05)]
    scale: f64,
    /// Makes other data of the same kind
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Names of the queries to run; all, unless given
    #[arg(long, value_delimiter = ',')]
    queries: Vec<String>,
    /// Measure a MySQL or MariaDB server beside, and compare the answers: the one at
    /// mysql://user:password@host:port/schema?socket=/path, or a MariaDB that is started for it
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds after which a query is killed
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// Write how each server executes each query into files in a folder
    #[arg(long, value_name = "FOLDER")]
    explain: Option<PathBuf>,
    /// Print the table as Markdown
    #[arg(long)]
    markdown: bool,
}

pub fn measure_tpch(options: &QueriesOptions) -> Result<(), Failure> {
    measure(&Tpch::new(checked_scale(options)?, options.seed), options)
}

pub fn measure_ssb(options: &QueriesOptions) -> Result<(), Failure> {
    measure(&Ssb::new(checked_scale(options)?, options.seed), options)
}

pub fn measure_joins(options: &QueriesOptions) -> Result<(), Failure> {
    measure(&Joins::new(checked_scale(options)?, options.seed), options)
}

fn checked_scale(options: &QueriesOptions) -> Result<f64, Failure> {
    match options.scale {
        scale if scale > 0.0 && scale <= 1_000.0 => Ok(scale),
        scale => Err(format!("a scale is above 0, and 1000 at most: {scale}").into()),
    }
}

fn measure(suite: &dyn Suite, options: &QueriesOptions) -> Result<(), Failure> {
    let plan = QueriesPlan {
        queries: options.queries.clone(),
        rounds: options.rounds,
        timeout: Duration::from_secs(options.timeout.max(1)),
        explain: options.explain.clone(),
        progress: true,
        stop: serving::ends_when_asked()?,
    };
    // Before anything is loaded.
    plan.chosen(suite)?;
    let folder = temporary_folder()?;
    let pool_bytes = POOL_BYTES_MIN + SCALE_BYTES * options.scale;
    let memory = [format!("--innodb-buffer-pool-size={pool_bytes:.0}")];
    let serving = Serving::start(None, folder.path(), 1, &memory, None)?;
    prepare(&mut serving.root()?, &["localhost"])?;
    let peer = match &options.peer {
        None => PeerServer::default(),
        Some(Some(url)) => PeerServer::at(url)?,
        Some(None) => PeerServer::start(folder.path(), 1, &memory)?
            .ok_or("MariaDB (mariadbd), to measure beside, is not installed")?,
    };
    let [_, unix] = routes_to(serving.port, &serving.socket);
    let target =
        |(name, options): (&str, Option<&Options>)| Some(Target::at(name, options?.clone()));
    let beside = peer.unix.as_ref().or(peer.tcp.as_ref());
    let targets = [("Porpoise", Some(&unix)), (peer.name, beside)].into_iter();
    let targets: Vec<Target> = targets.filter_map(target).collect();
    for target in &targets {
        let took = queries::load(target, suite, true)?;
        let (target, seconds) = (&target.name, took.as_secs_f64());
        println!("{target}: loaded in {seconds:.1} s");
    }
    let report = queries::run(&targets, suite, &plan)?;
    match options.markdown {
        true => print!("{}", report.markdown()),
        false => print!("{report}"),
    }
    Ok(())
}
