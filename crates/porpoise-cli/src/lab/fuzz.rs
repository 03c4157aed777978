//! `porpoise lab fuzz`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use porpoise_client::{Options, TlsMode, Transport};
use porpoise_lab::fuzz::oracles::{self, OraclePlan};
use porpoise_lab::fuzz::{self, FuzzPlan};
use porpoise_lab::resources::Memory;
use porpoise_lab::serving::Serving;
use porpoise_lab::{ServerKind, ServerSpec, Way, WorkFolder};

use super::Failure;
use crate::bench::serving;
use crate::ways::WayIn;

#[derive(Args)]
pub struct FuzzOptions {
    /// Ways in, one after the other
    #[arg(long, value_enum, value_delimiter = ',', default_value = "shm")]
    ways: Vec<WayIn>,
    /// Connections at a time, each with a thread
    #[arg(long, default_value_t = 8)]
    threads: usize,
    /// Statements that a connection sends before it waits for the first one's reply, up to 8: more
    /// statements a second, which aren't those of a client that waits for each
    #[arg(long, value_name = "N", default_value_t = 1)]
    pipeline: usize,
    /// Statements over each way in
    #[arg(long, default_value_t = 1_000_000)]
    statements: u64,
    /// Seconds that each way in has at most
    #[arg(long)]
    seconds: Option<f64>,
    /// Statements come from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first statement
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How deep expressions nest
    #[arg(long, default_value_t = 2)]
    depth: u32,
    /// Only functions whose names hold one of these words
    #[arg(long, value_delimiter = ',', value_name = "WORDS")]
    functions: Vec<String>,
    /// A server that runs already, instead of this Porpoise
    #[arg(long, value_name = "URL", conflicts_with_all = ["program", "mariadb"])]
    server: Option<String>,
    /// Another Porpoise
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The MariaDB that is installed
    #[arg(long, conflicts_with = "program")]
    mariadb: bool,
    /// A second server, whose answers have to be the same
    #[arg(long, value_name = "URL")]
    oracle: Option<String>,
    /// MiB of memory that the server may have: with more it is ended, which is a finding. By default
    /// half of the machine's, as all its statements together may have
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// Write findings into this folder
    #[arg(long, value_name = "FOLDER", default_value = "fuzz")]
    findings: PathBuf,
    /// Random tables and queries that have one answer however they are asked, instead: of the seeds
    /// FROM..TO
    #[arg(long, value_name = "FROM..TO", value_parser = seeds, conflicts_with_all = ["oracle", "functions", "statements"])]
    queries: Option<std::ops::Range<u64>>,
    /// Print the statement of a number, and do nothing
    #[arg(long, value_name = "NUMBER")]
    show: Option<u64>,
    /// Don't tell what is going on
    #[arg(long)]
    quiet: bool,
    /// Ask an embedded database as told on the input: how a run has its own in another process
    #[arg(long, hide = true)]
    child: bool,
}

const THREADS_MAX: usize = 10_000;
const PIPELINE_MAX: usize = 8;
/// Exit code where something is found.
const FOUND: u8 = 3;
/// Queries of a seed.
const QUERIES: usize = 100;

fn seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let numbers = text
        .split_once("..")
        .map(|(from, to)| (from.parse(), to.parse()));
    match numbers {
        Some((Ok(from), Ok(to))) if from < to => Ok(from..to),
        _ => Err("seeds are FROM..TO, two numbers".into()),
    }
}

pub fn run(options: &FuzzOptions) -> Result<ExitCode, Failure> {
    if options.child {
        fuzz::serve_as_child()?;
        return Ok(ExitCode::SUCCESS);
    }
    let ways: Vec<Way> = options.ways.iter().map(|way| way.0).collect();
    let kind = kind_of(options, &ways)?;
    let limit = match options.seconds.map(Duration::try_from_secs_f64) {
        Some(Err(_)) => return Err("--seconds is a number from 0".into()),
        limit => limit.and_then(Result::ok),
    };
    if !(1..=PIPELINE_MAX).contains(&options.pipeline) {
        return Err(format!("--pipeline is a number from 1 to {PIPELINE_MAX}").into());
    }
    if !(1..=THREADS_MAX).contains(&options.threads) {
        return Err(format!("--threads is a number from 1 to {THREADS_MAX}").into());
    }
    let plan = FuzzPlan {
        server: ServerSpec {
            name: "server".into(),
            kind,
            options: Vec::new(),
        },
        ways,
        threads: options.threads,
        ahead: options.pipeline,
        statements: options.statements,
        limit,
        first: options.first,
        seed: options.seed,
        depth: options.depth,
        functions: options.functions.clone(),
        oracle: options.oracle.clone(),
        memory_max_bytes: memory_max_bytes(options),
        folder: options.findings.clone(),
        stop: serving::ends_when_asked()?,
        progress: !options.quiet,
    };
    if let Some(number) = options.show {
        println!("{}", fuzz::statement_of(&plan, number)?);
        return Ok(ExitCode::SUCCESS);
    }
    crate::serve::raise_descriptor_limit(0);
    if let Some(seeds) = &options.queries {
        return queries(options, &plan, seeds.clone());
    }
    let report = fuzz::run(&plan)?;
    print!("{report}");
    Ok(code(report.is_clean()))
}

fn code(is_clean: bool) -> ExitCode {
    match is_clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FOUND),
    }
}

fn memory_max_bytes(options: &FuzzOptions) -> u64 {
    let half = || Memory::of_machine().map_or(u64::MAX, |all| all / 2);
    options
        .memory
        .map_or_else(half, |mib| mib.saturating_mul(1 << 20))
}

/// What serves, if it can be reached so.
fn kind_of(options: &FuzzOptions, ways: &[Way]) -> Result<ServerKind, Failure> {
    let kind = match (&options.server, &options.program) {
        (Some(url), _) => ServerKind::Url(url.clone()),
        (None, Some(program)) => ServerKind::Porpoise(Some(program.clone())),
        (None, None) if options.mariadb => ServerKind::MariaDb,
        (None, None) => ServerKind::Porpoise(None),
    };
    if ways.contains(&Way::Embedded) && !matches!(kind, ServerKind::Porpoise(_)) {
        return Err("embedded is Porpoise's own way in: this server has others".into());
    }
    if matches!(kind, ServerKind::MariaDb)
        && let Some(way) = ways.iter().find(|way| !way.is_of_mariadb())
    {
        return Err(format!("MariaDB has no {way}: --ways unix").into());
    }
    Ok(kind)
}

fn options_of(url: &str) -> Result<Options, porpoise_client::Error> {
    let mut options: Options = url.parse()?;
    options.tls.mode.get_or_insert(TlsMode::Disabled);
    Ok(options)
}

/// Queries over random tables.
fn queries(
    options: &FuzzOptions,
    plan: &FuzzPlan,
    seeds: std::ops::Range<u64>,
) -> Result<ExitCode, Failure> {
    let is_way = |way: &Way| matches!(way, Way::Unix | Way::SharedMemory);
    if options.server.is_none() && !(plan.ways.len() == 1 && plan.ways.iter().all(is_way)) {
        return Err("queries are asked over one way in, unix or shm, and embedded beside".into());
    }
    let folder = WorkFolder::new("porpoise-fuzz")?;
    let (_serving, server) = match &plan.server.kind {
        ServerKind::Url(url) => (None, options_of(url)?),
        ServerKind::Porpoise(program) => {
            let log = folder.path().join("porpoise.log");
            let serving = Serving::start(program.as_deref(), folder.path(), 8, &[], Some(&log))?;
            let server = Options {
                transport: match plan.ways.first() {
                    Some(Way::SharedMemory) => Transport::SharedMemory,
                    _ => Transport::Unix,
                },
                socket: Some(serving.socket.clone()),
                user: "root".into(),
                ..Options::default()
            };
            (Some(serving), server)
        }
        _ => {
            return Err(
                "queries are asked of this Porpoise, of a --program, or of a --server".into(),
            );
        }
    };
    let plan = OraclePlan {
        options: server,
        with_embedded: options.server.is_none(),
        seeds,
        queries: QUERIES,
        folder: Some(plan.folder.clone()),
        stop: plan.stop.clone(),
        progress: plan.progress,
    };
    let report = oracles::run(&plan)?;
    for difference in &report.differences {
        println!("{difference}\n");
    }
    let seeds = plan.seeds.end - plan.seeds.start;
    if report.seeds < seeds {
        println!("ended behind {} of {seeds} seeds", report.seeds);
    }
    let (statements, refused) = (report.statements, report.refused);
    println!(
        "{statements} statements, {refused} of them refused, {} findings",
        report.differences.len()
    );
    Ok(code(report.differences.is_empty()))
}
