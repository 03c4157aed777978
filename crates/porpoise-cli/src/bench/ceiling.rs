//! `porpoise bench ceiling`: how near Porpoise is to a server that does nothing.
//!
//! ```text
//!   porpoise bench ceiling ──┬─ porpoise serve    a process of its own, in a temporary folder, durable
//!     clients, or sysbench   ├─ nothing           in this process: recorded replies, commits synced
//!                            └─ mariadbd          if it is installed; or --peer: a server that runs already
//! ```

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use porpoise_lab::ceiling::{self, CeilingPlan, Driver, Route};
use porpoise_lab::serving::{Serving, prepare, routes_to};
use porpoise_lab::{BenchPlan, Sysbench, Target, Way, Workload, bench};

use super::peer::PeerServer;
use super::serving;
use super::{Failure, temporary_folder};
use crate::ways::WayIn;

#[derive(Args)]
pub struct CeilingOptions {
    /// Numbers of clients at a time
    #[arg(long, value_delimiter = ',', default_values_t = [8])]
    clients: Vec<usize>,
    /// What the clients do
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "oltp_point_select,oltp_read_only,oltp_read_write"
    )]
    workload: Vec<Workload>,
    /// Ways in: tcp, unix or shm
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [WayIn(Way::Unix), WayIn(Way::Tcp), WayIn(Way::SharedMemory)])]
    ways: Vec<WayIn>,
    /// Debian's sysbench asks, instead of the project's own generator
    #[arg(long)]
    sysbench: bool,
    /// For sysbench over shared memory: the folder with Porpoise's libmariadb.so.3
    #[arg(long, value_name = "FOLDER", requires = "sysbench")]
    library: Option<PathBuf>,
    /// A MySQL or MariaDB server to measure beside, as
    /// mysql://user:password@host:port/schema?socket=/path. Without this, MariaDB is started if it
    /// is installed
    #[arg(long)]
    peer: Option<String>,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Seconds each round takes
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

pub fn measure(options: &CeilingOptions) -> Result<(), Failure> {
    let stop = serving::ends_when_asked()?;
    let folder = temporary_folder()?;
    let clients = options.clients.iter().max().copied().unwrap_or(1);
    crate::serve::raise_descriptor_limit(0);
    let serving = Serving::start(None, folder.path(), clients, &[], None)?;
    let mut root = serving.root()?;
    prepare(&mut root, &["localhost"])?;
    // MariaDB's client library, asked by several threads at once, doesn't always find its plugin
    // for other accounts, and what it says then isn't what was recorded.
    root.run("ALTER USER sb@localhost IDENTIFIED WITH mysql_native_password BY 'sb'")?;
    drop(root);
    let peer = match &options.peer {
        Some(url) => PeerServer::at(url)?,
        None => PeerServer::start(folder.path(), clients, &[])?.unwrap_or_default(),
    };
    let [tcp, unix] = routes_to(serving.port, &serving.socket);
    let mut routes = Vec::new();
    for &WayIn(way) in &options.ways {
        let server = match way {
            Way::FastPath => {
                return Err("the fast path is shared memory after the login: measure shm".into());
            }
            // Recorded bytes are of one connection's keys.
            Way::Tls | Way::FullTls | Way::Zlib | Way::Zstd => {
                return Err("what is replayed is neither encrypted nor compressed".into());
            }
            way => way.route(&tcp, &unix).ok_or("nothing can't be embedded")?,
        };
        routes.push(Route {
            name: way.to_string(),
            server,
            peer: match way.of_mariadb() {
                Way::Tcp => peer.tcp.clone(),
                _ => peer.unix.clone(),
            },
        });
    }
    let plan = CeilingPlan {
        workloads: options.workload.clone(),
        clients: options.clients.clone(),
        rows: options.rows,
        duration: Duration::from_secs(options.seconds.max(1)),
        rounds: options.rounds.max(1),
        driver: match options.sysbench {
            true => Driver::Sysbench(Sysbench {
                library: options.library.clone(),
            }),
            false => Driver::Generator,
        },
        progress: true,
        stop,
    };
    let loaded = BenchPlan {
        rows: options.rows,
        ..BenchPlan::default()
    };
    let targets: Vec<Target> = [
        ("Porpoise", Some(&unix)),
        (peer.name, peer.unix.as_ref().or(peer.tcp.as_ref())),
    ]
    .into_iter()
    .filter_map(|(name, options)| Some(Target::at(name, options?.clone())))
    .collect();
    bench::load_tables(&targets, &loaded)?;
    let name = match peer.name {
        "" => "peer",
        name => name,
    };
    let report = ceiling::run(&routes, name, &serving.socket, folder.path(), &plan)?;
    print!("{report}");
    Ok(())
}
