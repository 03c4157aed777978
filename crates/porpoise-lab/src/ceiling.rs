//! The ceiling experiment: how near a server is to one that does nothing.
//!
//! ```text
//!   for each workload and way in
//!     one client's requests and the server's replies are recorded
//!     for each number of clients
//!       round 1: the peer, the server, nothing        nothing: one thread that has the replies at hand ([`replay`])
//!       round 2: the peer, the server, nothing        the median of each counts
//! ```
//!
//! Clients, the system's sockets and the disk cost the same whoever answers, so no server gets much
//! beyond what nothing gets. A little it can: with threads on more cores than one, or by waking its
//! clients in a better moment. How much of nothing a server is tells how much of the time is the
//! engine's.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use porpoise_client::{Options, Transport};

use crate::progress::Progress;
use crate::replay::{Recording, ReplayServer};
use crate::report::{aligned, rate};
use crate::statistics::median;
use crate::steadiness::Spread;
use crate::{BenchPlan, Error, Sysbench, Target, Workload, bench};

/// How long requests are recorded: a transaction of twenty takes half a second then.
const RECORDING: Duration = Duration::from_secs(2);

/// What asks.
#[derive(Clone, Debug)]
pub enum Driver {
    /// The project's own generator, a thread a client.
    Generator,
    /// Debian's sysbench: over shared memory with Porpoise's library, if it has it.
    Sysbench(Sysbench),
}

impl Driver {
    /// What asks over `route`, wherever it is sent: another library would ask in other words.
    fn over(&self, route: &Route) -> Driver {
        match self {
            Driver::Sysbench(_) if route.server.transport != Transport::SharedMemory => {
                Driver::Sysbench(Sysbench { library: None })
            }
            driver => driver.clone(),
        }
    }
}

/// A way in, on both servers.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name in the report.
    pub name: String,
    /// Into the server.
    pub server: Options,
    /// Into the peer, if there is one.
    pub peer: Option<Options>,
}

impl Route {
    /// The same way into the server that does nothing.
    fn to_replay_server(&self, replay_server: &ReplayServer) -> Options {
        let real = self.server.clone();
        let socket = Some(replay_server.socket().to_path_buf());
        match real.transport {
            Transport::Tcp => Options {
                port: replay_server.port(),
                ..real
            },
            _ => Options {
                socket,
                shared_memory_base_name: Options::default().shared_memory_base_name,
                ..real
            },
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct CeilingPlan {
    /// The workloads, in order.
    pub workloads: Vec<Workload>,
    /// The numbers of clients, in order.
    pub clients: Vec<usize>,
    /// Rows of the table.
    pub rows: u64,
    /// How long a round takes.
    pub duration: Duration,
    /// Rounds of which the median counts.
    pub rounds: usize,
    /// What asks.
    pub driver: Driver,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
    /// Once true, no further round begins, and there is no report.
    pub stop: Arc<AtomicBool>,
}

impl CeilingPlan {
    /// What asks the peer: a program that knows nothing of Porpoise.
    fn peer_driver(&self) -> Driver {
        match &self.driver {
            Driver::Sysbench(_) => Driver::Sysbench(Sysbench::default()),
            driver => driver.clone(),
        }
    }
}

/// Transactions a second of a workload, over a way in, by so many clients: medians.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// The workload.
    pub workload: Workload,
    /// Clients at a time.
    pub clients: usize,
    /// The way's name.
    pub route: String,
    /// The peer's.
    pub peer: Option<f64>,
    /// The server's.
    pub server: f64,
    /// Those of the server that does nothing.
    pub replay_server: f64,
    /// How far the rounds lie apart, of whichever has the widest.
    pub spread: Spread,
}

/// All that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct CeilingReport {
    /// The peer's name.
    pub peer: String,
    /// In the order of the plan.
    pub ceilings: Vec<Ceiling>,
}

fn measure(
    driver: &Driver,
    rows: u64,
    to: &Options,
    workload: Workload,
    clients: usize,
    time: Duration,
) -> Result<f64, Error> {
    match driver {
        Driver::Sysbench(sysbench) => {
            sysbench.transactions_per_second(to, workload, clients, rows, time)
        }
        Driver::Generator => {
            let target = Target::at(workload.to_string(), to.clone());
            let round = BenchPlan {
                workloads: vec![workload],
                clients: vec![clients],
                rows,
                duration: time,
                warm_up: Duration::from_millis(200),
                load: false,
                progress: false,
                ..BenchPlan::default()
            };
            let report = bench::run(&[target], &round)?;
            let measured = report.measurements.first();
            Ok(measured.map_or(0.0, |measured| measured.transactions_per_second))
        }
    }
}

/// Runs `plan` over the `ways` into a server with the Unix socket `upstream`, and into a peer of
/// that name. The tables are there, in both. `folder` takes sockets and a log.
pub fn run(
    routes: &[Route],
    peer: &str,
    upstream: &Path,
    folder: &Path,
    plan: &CeilingPlan,
) -> Result<CeilingReport, Error> {
    let mut progress = Progress::new(plan.progress);
    let mut ceilings = Vec::new();
    for &workload in &plan.workloads {
        for route in routes {
            let driver = plan.driver.over(route);
            progress.show(&format!(
                "{workload}, {}: recording the replies",
                route.name
            ));
            let recording = Recording::of(upstream, folder, |socket| {
                let through = Options {
                    socket: Some(socket.to_path_buf()),
                    transport: Transport::Unix,
                    ..route.server.clone()
                };
                measure(&driver, plan.rows, &through, workload, 1, RECORDING).map(drop)
            })?;
            let replay_server = ReplayServer::start(Arc::new(recording), folder)?;
            let to_replay_server = route.to_replay_server(&replay_server);
            let peer_driver = plan.peer_driver();
            let entrants = [
                route.peer.as_ref().map(|peer| (&peer_driver, peer)),
                Some((&driver, &route.server)),
                Some((&driver, &to_replay_server)),
            ];
            for &clients in &plan.clients {
                let mut rates = [const { Vec::new() }; 3];
                for round in 1..=plan.rounds {
                    for (entrant, rates) in entrants.iter().zip(&mut rates) {
                        let Some((driver, to)) = entrant else {
                            continue;
                        };
                        if plan.stop.load(Ordering::Relaxed) {
                            return Err(Error::Plan("asked to end".into()));
                        }
                        progress.show(&format!(
                            "{workload}, {clients} clients, {}: round {round} of {}",
                            route.name, plan.rounds
                        ));
                        rates.push(measure(
                            driver,
                            plan.rows,
                            to,
                            workload,
                            clients,
                            plan.duration,
                        )?);
                    }
                }
                let [peer, server, replay_server] = rates;
                ceilings.push(Ceiling {
                    workload,
                    clients,
                    route: route.name.clone(),
                    peer: route.peer.as_ref().map(|_| median(&peer)),
                    server: median(&server),
                    replay_server: median(&replay_server),
                    spread: Spread::widest(
                        [&peer, &server, &replay_server].map(|rates| Spread::of(rates)),
                    ),
                });
            }
        }
    }
    progress.clear();
    Ok(CeilingReport {
        peer: peer.to_owned(),
        ceilings,
    })
}

impl fmt::Display for CeilingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "workload".to_owned(),
            "way in".to_owned(),
            "clients".to_owned(),
            self.peer.clone(),
            "Porpoise".to_owned(),
            "nothing".to_owned(),
            format!("Porpoise × {}", self.peer),
            format!("nothing × {}", self.peer),
            "Porpoise of nothing".to_owned(),
            "spread".to_owned(),
        ];
        let rows = self.ceilings.iter().map(|ceiling| {
            let ratio = |of: f64, to: Option<f64>| match to {
                Some(to) if to > 0.0 => format!("{:.2}", of / to),
                _ => "-".to_owned(),
            };
            [
                ceiling.workload.to_string(),
                ceiling.route.clone(),
                ceiling.clients.to_string(),
                ceiling.peer.map_or("-".to_owned(), rate),
                rate(ceiling.server),
                rate(ceiling.replay_server),
                ratio(ceiling.server, ceiling.peer),
                ratio(ceiling.replay_server, ceiling.peer),
                ratio(ceiling.server, Some(ceiling.replay_server)),
                ceiling.spread.to_string(),
            ]
        });
        let table: Vec<Vec<String>> = std::iter::once(header).chain(rows).map(Vec::from).collect();
        writeln!(
            f,
            "Transactions a second, beside a server that does nothing"
        )?;
        aligned(f, &table, 2)?;
        Spread::note(self.ceilings.iter().map(|ceiling| ceiling.spread), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_peer_and_to_nothing() {
        let report = CeilingReport {
            peer: "MariaDB".into(),
            ceilings: vec![
                Ceiling {
                    workload: Workload::ReadWrite,
                    clients: 8,
                    route: "Unix socket".into(),
                    peer: Some(2000.0),
                    server: 3500.0,
                    replay_server: 5000.0,
                    spread: Spread::of(&[1.0, 2.0]),
                },
                Ceiling {
                    workload: Workload::PointSelect,
                    clients: 1,
                    route: "TCP".into(),
                    peer: None,
                    server: 0.0,
                    replay_server: 0.0,
                    spread: Spread::default(),
                },
            ],
        };
        let text = report.to_string();
        let words = |line: usize| -> Vec<&str> {
            let line = text.lines().nth(line).unwrap();
            line.split_whitespace().collect()
        };
        assert_eq!(
            words(2)[3..],
            [
                "8", "2,000", "3,500", "5,000", "1.75", "2.50", "0.70", "100", "%", "!"
            ]
        );
        assert_eq!(
            words(3)[2..],
            ["1", "-", "0.00", "0.00", "-", "-", "-", "-"]
        );
        assert!(
            text.contains("\nRounds disagree by more than 20 % in 1 of"),
            "{text}"
        );
    }
}
