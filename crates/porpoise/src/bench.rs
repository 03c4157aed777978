//! `porpoise bench`: the main job, measured.
//!
//! A database in a temporary folder, sysbench's OLTP table, a server in this process, and the read-write mix over
//! every way in; then one table of figures.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use porpoise_engine::{Engine, EngineOptions};
use porpoise_lab::{BenchPlan, Target, Workload, bench};
use porpoise_server::{Server, ServerOptions};
use porpoise_storage::Location;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};

#[derive(Args)]
pub struct BenchOptions {
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    threads: Vec<usize>,
    /// Seconds each measurement takes
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// What the clients do: read-write, point-select, read-only, …
    #[arg(long, value_delimiter = ',', default_value = "oltp_read_write")]
    workload: Vec<Workload>,
    /// Keep the data in memory
    #[arg(long)]
    memory: bool,
}

pub fn run(options: &BenchOptions) -> ExitCode {
    crate::serve::start_log();
    match measure(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("porpoise bench: {why}");
            ExitCode::FAILURE
        }
    }
}

const SCHEMA: &str = "sbtest";

fn measure(options: &BenchOptions) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::Builder::new()
        .prefix("porpoise-bench")
        .tempdir()?;
    let location = if options.memory {
        Location::Memory
    } else {
        Location::Path(folder.path().join("data"))
    };
    let clients = options.threads.iter().max().copied().unwrap_or(1);
    let variables = [
        ("max_connections", (clients + 10).to_string()),
        ("loopback_fast_path", "ON".to_string()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into();
    let engine = Engine::open(EngineOptions {
        location,
        variables,
    })?;
    let socket = folder.path().join("porpoise.sock");
    let doors = ServerOptions {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        socket: Some(socket.clone()),
        shared_memory: Some(path_of(&socket, BASE_NAME)),
        ..ServerOptions::default()
    };
    let server = Server::start(engine.clone(), &doors)?;
    let port = server
        .tcp_addresses()
        .first()
        .ok_or("no TCP address")?
        .port();

    let socket = socket.display().to_string();
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
    let tcp = format!("mysql://sb:sb@127.0.0.1:{port}/{SCHEMA}?transport=tcp");
    // The others are compared with the first.
    let targets = [
        Target::new("TCP", &tcp)?,
        Target::new(
            "Unix socket",
            &format!("mysql://sb:sb@localhost/{SCHEMA}?transport=unix&socket={socket}"),
        )?,
        Target::new(
            "shared memory",
            &format!("mysql://sb:sb@localhost/{SCHEMA}?transport=shm&socket={socket}"),
        )?,
        Target::new("loopback fast path", &format!("{tcp}&loopback_fast_path"))?,
    ];
    let plan = BenchPlan {
        workloads: options.workload.clone(),
        threads: options.threads.clone(),
        rows: options.rows,
        duration: Duration::from_secs(options.seconds),
        ..BenchPlan::default()
    };
    let report = bench::run(&targets, &plan)?;
    print!("{report}");
    drop(root);
    server.stop();
    engine.close()?;
    Ok(())
}
