//! `porpoise bench`: the main job, measured.
//!
//! A database in a temporary folder, sysbench's OLTP table, a server in this process, and the
//! read-write mix over every way in, the embedded one included; then one table of figures, each
//! beside its ratio to the peer's, if there is one. [`locks`], [`connect`], [`ceiling`], [`fairness`], [`transfers`],
//! [`programs`], [`growth`], [`bulk`], [`spill`], [`queries`] and [`costs`] are experiments of their own.

mod bulk;
mod ceiling;
mod connect;
mod costs;
mod fairness;
mod growth;
mod locks;
mod peer;
mod programs;
mod queries;
pub mod serving;
mod spill;
mod transfers;

use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use clap::{Args, Subcommand};
use porpoise_client::Options;
use porpoise_engine::{Engine, EngineOptions};
use porpoise_lab::{BenchPlan, Target, Way, WorkFolder, Workload, bench, steadiness};
use porpoise_server::{InProcessServer, Server, ServerOptions};
use porpoise_storage::Location;
use porpoise_transport::Stream;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};

use crate::ways::WayIn;
use peer::PeerServer;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchOptions {
    #[command(subcommand)]
    experiment: Option<Experiment>,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Numbers of clients, each with a connection
    #[arg(long, visible_alias = "threads", value_delimiter = ',', default_values_t = [1, 8])]
    clients: Vec<usize>,
    /// Threads that have the clients: each sends for its clients in turn, and takes the replies
    /// that are there. Unless given, each client has its own, which waits
    #[arg(long, value_name = "THREADS")]
    jobs: Option<usize>,
    /// Seconds each measurement takes
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// What the clients do: read-write, point-select, read-only, …
    #[arg(long, value_delimiter = ',', default_value = "oltp_read_write")]
    workload: Vec<Workload>,
    /// Ways in; unless given, all that neither encrypt nor compress, but with --jobs the embedded one
    /// is left out: its statements run on the thread that sends them
    #[arg(long, value_delimiter = ',', value_enum)]
    ways: Vec<WayIn>,
    /// Measure a MySQL or MariaDB server beside, each way beside the same way into it, or its Unix
    /// socket where it hasn't got that way: the server at
    /// mysql://user:password@host:port/schema?socket=/path, or a MariaDB that is started for it
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    peer: Option<Option<String>>,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Keep the data in memory
    #[arg(long)]
    memory: bool,
}

type Failure = Box<dyn std::error::Error>;

#[derive(Subcommand)]
enum Experiment {
    /// Measure five reader-writer locks, and parking_lot's, against each other
    Locks(locks::LocksOptions),
    /// Measure clients that come and go: connections a second over every way in, beside MariaDB
    Connect(connect::ConnectOptions),
    /// Measure how near Porpoise is to a server that does nothing, which replays recorded replies,
    /// beside MariaDB
    Ceiling(ceiling::CeilingOptions),
    /// Measure the 22 queries of TPC-H, and with --peer compare times and answers with MariaDB's
    Tpch(queries::QueriesOptions),
    /// Measure the 13 queries of the Star Schema Benchmark, the same way
    Ssb(queries::QueriesOptions),
    /// Measure 92 joins of 4 to 14 tables whose columns are skewed and tied to each other, the same
    /// way
    Joins(queries::QueriesOptions),
    /// Measure what clients that ask for little get beside statements that compute for long
    Fairness(fairness::FairnessOptions),
    /// Measure what units of a query's work cost, beside the constants that plans are chosen by
    Costs(costs::CostsOptions),
    /// Measure clients that move money between a few rows, on a machine that may be busy
    Transfers(transfers::TransfersOptions),
    /// Measure stored programs: a loop, a function for each row, triggers, procedures that many
    /// clients call
    Programs(programs::ProgramsOptions),
    /// Measure a table that grows beyond the cache: rates, sizes, memory, start and recovery
    Growth(growth::GrowthOptions),
    /// Measure statements that go through a whole table, cold and warm, and bulk changes, beside
    /// MariaDB
    Bulk(bulk::BulkOptions),
    /// Measure sorts, groups, joins and windows that take more memory than they may, and go to disk
    Spill(spill::SpillOptions),
}

pub fn run(options: &BenchOptions) -> ExitCode {
    crate::serve::start_log();
    let before = steadiness::taken_by_others();
    let measured = match &options.experiment {
        None => measure(options),
        Some(Experiment::Locks(options)) => locks::measure(options),
        Some(Experiment::Connect(options)) => connect::measure(options),
        Some(Experiment::Ceiling(options)) => ceiling::measure(options),
        Some(Experiment::Tpch(options)) => queries::measure_tpch(options),
        Some(Experiment::Ssb(options)) => queries::measure_ssb(options),
        Some(Experiment::Joins(options)) => queries::measure_joins(options),
        Some(Experiment::Fairness(options)) => fairness::measure(options),
        Some(Experiment::Costs(options)) => costs::measure(options),
        Some(Experiment::Transfers(options)) => transfers::measure(options),
        Some(Experiment::Programs(options)) => programs::measure(options),
        Some(Experiment::Growth(options)) => growth::measure(options),
        Some(Experiment::Bulk(options)) => bulk::measure(options),
        Some(Experiment::Spill(options)) => spill::measure(options),
    };
    match measured {
        Ok(()) => {
            if let Some(note) = steadiness::busy_note(&[before, steadiness::taken_by_others()]) {
                println!("{note}");
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("porpoise bench: {why}");
            ExitCode::FAILURE
        }
    }
}

use porpoise_lab::serving::{CLIENTS_SCHEMA as SCHEMA, routes_to};

/// A database with a server in this process, and an account for the clients.
struct Served {
    engine: Engine,
    server: Server,
    socket: String,
}

impl Served {
    fn start(
        location: Location,
        folder: &Path,
        name: &str,
        variables: Vec<(String, String)>,
    ) -> Result<Served, Failure> {
        // Where the certificates for TLS are made.
        let data_folder = match &location {
            Location::Path(path) => path.clone(),
            Location::Memory => folder.to_path_buf(),
        };
        let engine = Engine::open(EngineOptions {
            location,
            variables,
        })?;
        let data_folder = data_folder.display().to_string();
        engine.variables().learn("datadir", &data_folder);
        let socket = folder.join(format!("{name}.sock"));
        let server_options = ServerOptions {
            tcp: vec![([127, 0, 0, 1], 0).into()],
            socket: Some(socket.clone()),
            shared_memory: Some(path_of(&socket, BASE_NAME)),
            ..ServerOptions::default()
        };
        let server = Server::start(engine.clone(), &server_options)?;
        let socket = socket.display().to_string();
        // What a server says of itself tells it from others.
        engine.variables().learn("socket", &socket);
        let mut root: porpoise_client::Connection = porpoise_client::Connection::connect(
            &format!("mysql://root@localhost/?socket={socket}").parse()?,
        )?;
        for statement in [
            format!("CREATE DATABASE {SCHEMA}"),
            "CREATE USER sb@localhost IDENTIFIED BY 'sb'".to_string(),
            format!("GRANT ALL ON {SCHEMA}.* TO sb@localhost"),
        ] {
            root.run(&statement)?;
        }
        Ok(Served {
            engine,
            server,
            socket,
        })
    }

    fn stop(self) -> Result<(), Failure> {
        self.server.stop();
        Ok(self.engine.close()?)
    }
}

fn temporary_folder() -> std::io::Result<WorkFolder> {
    WorkFolder::new("porpoise-bench")
}

/// What is measured, as embedded clients find it whatever folder they name.
static IN_PROCESS: OnceLock<InProcessServer> = OnceLock::new();

fn in_this_process(_: &Options) -> Result<Box<dyn Stream>, porpoise_client::Error> {
    let server = IN_PROCESS.get().ok_or(porpoise_client::Error::Closed)?;
    Ok(Box::new(server.connect(None)))
}

fn measure(options: &BenchOptions) -> Result<(), Failure> {
    let folder = temporary_folder()?;
    let location = if options.memory {
        Location::Memory
    } else {
        Location::Path(folder.path().join("data"))
    };
    let clients = options.clients.iter().max().copied().unwrap_or(1);
    let variables = [
        ("max_connections", clients.saturating_add(10).to_string()),
        ("loopback_fast_path", "ON".to_string()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into();
    let served = Served::start(location, folder.path(), "porpoise", variables)?;
    IN_PROCESS.get_or_init(|| InProcessServer::new(served.engine.clone()));
    porpoise_client::embedded::set_opener(in_this_process);
    let port = served
        .server
        .tcp_addresses()
        .first()
        .ok_or("no TCP address")?
        .port();
    let peer = match &options.peer {
        None => PeerServer::default(),
        Some(Some(url)) => PeerServer::at(url)?,
        Some(None) => PeerServer::start(folder.path(), clients, &[])?
            .ok_or("MariaDB (mariadbd), to measure beside, is not installed")?,
    };
    let named: Vec<Way> = options.ways.iter().map(|way| way.0).collect();
    let is_left_out = named.is_empty() && options.jobs.is_some();
    let mut ways = match named.is_empty() {
        true => Way::PLAIN.to_vec(),
        false => named,
    };
    ways.retain(|way| !(is_left_out && *way == Way::Embedded));
    let [tcp, unix] = routes_to(port, Path::new(&served.socket));
    let mut targets = peer.targets(&ways);
    for way in ways {
        let options = match way.route(&tcp, &unix) {
            Some(options) => options,
            None => format!("porpoise::memory:?database={SCHEMA}").parse()?,
        };
        let target = Target::at(way.to_string(), options);
        targets.push(target.compared_with(peer.beside(way).as_deref()));
    }
    let plan = BenchPlan {
        workloads: options.workload.clone(),
        clients: options.clients.clone(),
        jobs: options.jobs,
        rows: options.rows,
        duration: Duration::from_secs(options.seconds),
        rounds: options.rounds.max(1),
        ..BenchPlan::default()
    };
    let report = bench::run(&targets, &plan)?;
    print!("{report}");
    if is_left_out {
        println!("embedded is left out: each client needs a thread of its own there");
    }
    served.stop()
}
