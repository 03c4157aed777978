//! `porpoise bench connect`: clients that connect, log in, take leave, and come again.
//!
//! ```text
//!   porpoise bench connect ──┬─ porpoise serve    a process of its own, in a temporary folder: TCP, Unix socket, shared
//!     clients, as threads    │                    memory, fast path
//!     the embedded database  └─ mariadbd          the same, if it is installed; or --peer: a server that runs already
//! ```
//!
//! Both servers are processes of their own, so that neither shares a table of descriptors, an
//! allocator or a heap with its clients. Both have the account `sb` with a password, made by CREATE
//! USER as that server makes it, and the schema `sbtest`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use porpoise::Database;
use porpoise_client::{Connection, Options};
use porpoise_lab::Way;
use porpoise_lab::connect::{self, ConnectPlan, Entrant};
use porpoise_lab::replay::{Recording, ReplayServer};
use porpoise_lab::serving::{Serving, prepare, routes_to};

use super::peer::PeerServer;
use super::serving;
use super::{Failure, temporary_folder};
use crate::ways::WayIn;

#[derive(Args)]
pub struct ConnectOptions {
    /// Numbers of clients at a time
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 100, 1000])]
    clients: Vec<usize>,
    /// Run a SELECT 1 on each connection
    #[arg(long)]
    query: bool,
    /// Ways in, of Porpoise's
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Way::PLAIN.map(WayIn))]
    ways: Vec<WayIn>,
    /// A MySQL or MariaDB server to measure beside, as
    /// mysql://user:password@host:port/schema?socket=/path: over TCP if it names a host, over its
    /// Unix socket if it names one. Without this, MariaDB is started if it is installed
    #[arg(long)]
    peer: Option<String>,
    /// Measure no other server beside
    #[arg(long, conflicts_with = "peer")]
    alone: bool,
    /// Measure a server that does nothing as well: it replays what Porpoise said to one client
    #[arg(long)]
    nothing: bool,
    /// Milliseconds each round takes
    #[arg(long, default_value_t = 1500)]
    milliseconds: u64,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds after which no further round begins
    #[arg(long, default_value_t = 210)]
    limit: u64,
    /// Where the picture goes
    #[arg(long, default_value = "porpoise-connect.svg")]
    picture: PathBuf,
}

/// The server to measure beside that `options` ask for.
fn find_peer(
    options: &ConnectOptions,
    folder: &Path,
    clients: usize,
) -> Result<PeerServer, Failure> {
    if options.alone {
        return Ok(PeerServer::default());
    }
    if let Some(url) = &options.peer {
        return PeerServer::at(url);
    }
    let started = PeerServer::start(folder, clients, &[])?;
    if started.is_none() {
        println!(
            "MariaDB (mariadbd) is not installed, and no --peer was given: measuring Porpoise alone."
        );
    }
    Ok(started.unwrap_or_default())
}

/// A server that does nothing but say what `server` says to a client that comes and goes.
fn start_replay_server(
    server: &Options,
    folder: &Path,
    query: bool,
) -> Result<ReplayServer, Failure> {
    let visit = |options: &Options| -> Result<(), Failure> {
        let mut connection = Connection::connect(options)?;
        if query {
            connection.rows("SELECT 1")?;
        }
        Ok(connection.close()?)
    };
    let upstream = server
        .socket
        .as_deref()
        .ok_or("no Unix socket to record at")?;
    // The first login is longer than those after it.
    visit(server)?;
    let recording = Recording::of(upstream, folder, |socket| {
        visit(&Options {
            socket: Some(socket.to_path_buf()),
            ..server.clone()
        })
    })?;
    Ok(ReplayServer::start(Arc::new(recording), folder)?)
}

pub fn measure(options: &ConnectOptions) -> Result<(), Failure> {
    let stop = serving::ends_when_asked()?;
    let folder = temporary_folder()?;
    let clients = options.clients.iter().max().copied().unwrap_or(1);
    // A client over shared memory has four descriptors.
    crate::serve::raise_descriptor_limit(0);
    let serving = Serving::start(None, folder.path(), clients, &[], None)?;
    prepare(&mut serving.root()?, &["localhost"])?;
    let peer = find_peer(options, folder.path(), clients)?;
    let database = Database::options()
        .share(false)
        .open(folder.path().join("embedded"))?;

    let [tcp, unix] = routes_to(serving.port, &serving.socket);
    let ways: Vec<Way> = options.ways.iter().map(|way| way.0).collect();
    let mut entrants: Vec<Entrant> = peer
        .targets(&ways)
        .into_iter()
        .map(|target| Entrant::new(target.name, target.options))
        .collect();
    for way in ways {
        let name = way.to_string();
        let entrant = match way.route(&tcp, &unix) {
            Some(route) => Entrant::new(name, route),
            None => {
                let database = database.clone();
                let visit = move |query: bool| {
                    let connection = database.connect()?;
                    if query {
                        connection.query("SELECT 1", ())?;
                    }
                    Ok(())
                };
                let visit = move |query| {
                    visit(query).map_err(|error: porpoise::Error| error.message().to_string())
                };
                Entrant::by_calls(name, Arc::new(visit))
            }
        };
        entrants.push(entrant.compared_with(peer.beside(way).as_deref()));
    }
    let replay_server = options
        .nothing
        .then(|| start_replay_server(&unix, folder.path(), options.query))
        .transpose()?;
    if let Some(replay_server) = &replay_server {
        let [tcp, unix] = routes_to(replay_server.port(), replay_server.socket());
        entrants
            .push(Entrant::new("nothing TCP", tcp).compared_with(peer.beside(Way::Tcp).as_deref()));
        entrants.push(
            Entrant::new("nothing Unix", unix).compared_with(peer.beside(Way::Unix).as_deref()),
        );
    }
    let plan = ConnectPlan {
        clients: options.clients.clone(),
        query: options.query,
        duration: Duration::from_millis(options.milliseconds.max(1)),
        rounds: options.rounds.max(1),
        limit: Duration::from_secs(options.limit),
        stop,
        ..ConnectPlan::default()
    };
    let report = connect::run(&entrants, &plan)?;
    print!("{report}");
    std::fs::write(&options.picture, report.picture())?;
    println!("picture: {}", options.picture.display());
    Ok(())
}
