//! The connect experiment: how many clients a second a server lets in and out again.
//!
//! ```text
//! each client, for as long as a round takes:
//!   connect ─► log in ─► (SELECT 1) ─► take leave ─► again
//!
//! round 1: 1 client on way A, B, C …, 8 clients on way A, B, C …      each way's median round counts
//! round 2: …
//! ```
//!
//! Every way into every server is tried by the same client, so that what differs is the server and
//! the way. All ways have their turn before any has its second, so that what the machine does
//! meanwhile hits all alike.
//!
//! **TCP runs out of ports** before it runs out of speed: the side that closes first keeps the pair
//! of addresses and ports for a minute, one pair of addresses has some 28,000, and looking for a
//! free one takes longer the fewer there are. So clients dial from ever other addresses of the
//! loopback network ([`near_address`]), where that is where the server is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use porpoise_client::{Connection, Options, Transport};

use crate::bench::CLIENTS_MAX;
use crate::chart::{Curve, Panel, Picture, Scale, standalone};
use crate::progress::Progress;
use crate::report::grouped;
use crate::steadiness::Spread;
use crate::{Error, Histogram};

/// Dials from one address of 127.0.0.0/8 before the next is dialled from.
const DIALS_AN_ADDRESS: usize = 64;

/// A thousand clients are a thousand threads, which do little.
const STACK_BYTES: usize = 512 << 10;

/// How long a client that was refused waits before it tries again.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

/// How often the line that tells what is going on is written anew.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Comes and goes; told whether to ask for something in between.
pub type Visit = Arc<dyn Fn(bool) -> Result<(), String> + Send + Sync>;

/// How a client reaches what is measured.
#[derive(Clone)]
pub enum Route {
    /// By the client of the MySQL protocol.
    Client(Box<Options>),
    /// By calls.
    Calls(Visit),
}

/// A way in that is measured.
#[derive(Clone)]
pub struct Entrant {
    /// Its name in the report.
    pub name: String,
    /// How its clients come in.
    pub route: Route,
    /// The name of the entrant that it is compared with.
    pub compared_with: Option<String>,
}

impl Entrant {
    /// A way in by the client of the MySQL protocol.
    pub fn new(name: impl Into<String>, options: Options) -> Entrant {
        Entrant {
            name: name.into(),
            route: Route::Client(Box::new(options)),
            compared_with: None,
        }
    }

    /// A way in by calls.
    pub fn by_calls(name: impl Into<String>, visit: Visit) -> Entrant {
        Entrant {
            name: name.into(),
            route: Route::Calls(visit),
            compared_with: None,
        }
    }

    /// Compared with the entrant of this name.
    #[must_use]
    pub fn compared_with(mut self, other: Option<&str>) -> Entrant {
        self.compared_with = other.map(str::to_owned);
        self
    }

    /// What a client does, once.
    fn visit(&self, query: bool) -> Visit {
        match &self.route {
            Route::Calls(visit) => visit.clone(),
            Route::Client(options) => {
                let options = options.clone();
                let is_loopback = options
                    .host
                    .parse::<IpAddr>()
                    .is_ok_and(|ip| ip.is_loopback() && ip.is_ipv4());
                if options.transport == Transport::Tcp
                    && is_loopback
                    && options.bind_address.is_none()
                {
                    return Arc::new(move |_| {
                        let bind_address = Some(near_address());
                        let options = Options {
                            bind_address,
                            ..(*options).clone()
                        };
                        come_and_go(&options, query).map_err(|error| error.to_string())
                    });
                }
                Arc::new(move |_| come_and_go(&options, query).map_err(|error| error.to_string()))
            }
        }
    }
}

/// An address of this machine to dial from. A port can't be used again from the same address for a
/// minute, and the more of them are in that state, the longer the system looks for another: what is
/// to be measured is not that search.
fn near_address() -> IpAddr {
    static DIALS: AtomicUsize = AtomicUsize::new(0);
    let number = DIALS.fetch_add(1, Relaxed) / DIALS_AN_ADDRESS;
    let part = |place: u32| (number / 250usize.pow(place) % 250) as u8 + 1;
    IpAddr::V4(Ipv4Addr::new(127, part(2), part(1), part(0)))
}

fn come_and_go(options: &Options, query: bool) -> Result<(), porpoise_client::Error> {
    let mut connection = Connection::connect(options)?;
    if query {
        connection.rows("SELECT 1")?;
    }
    connection.close()
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct ConnectPlan {
    /// Numbers of clients at a time, in order.
    pub clients: Vec<usize>,
    /// Whether each connection runs a statement.
    pub query: bool,
    /// How long a round takes.
    pub duration: Duration,
    /// Before each round, not measured.
    pub warm_up: Duration,
    /// Rounds of which the median counts.
    pub rounds: usize,
    /// When this has passed no further round begins; what was measured counts.
    pub limit: Duration,
    /// When somebody sets it, the run ends; what was measured counts.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for ConnectPlan {
    fn default() -> Self {
        Self {
            clients: vec![1, 8, 100, 1000],
            query: false,
            duration: Duration::from_millis(1500),
            warm_up: Duration::from_millis(300),
            rounds: 3,
            limit: Duration::from_secs(210),
            stop: Arc::default(),
            progress: true,
        }
    }
}

/// One way in with one number of clients.
#[derive(Clone, Debug)]
pub struct ConnectMeasurement {
    /// The entrant's name.
    pub name: String,
    /// With what it is compared.
    pub compared_with: Option<String>,
    /// Clients at a time.
    pub clients: usize,
    /// Connections a second: the median of the rounds.
    pub per_second: f64,
    /// What 95 of 100 connections took at most, in that round.
    pub latency_p95: Duration,
    /// Connections that failed, in all rounds.
    pub errors: u64,
    /// What the first of them was told.
    pub first_error: Option<String>,
    /// How many rounds there were.
    pub rounds: usize,
    /// How far they lie apart.
    pub spread: Spread,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct ConnectReport {
    /// One for each way in and number of clients.
    pub measurements: Vec<ConnectMeasurement>,
    /// Each connection ran a statement.
    pub query: bool,
    /// It ended before all rounds were begun.
    pub is_cut: bool,
}

/// A counter that one thread writes, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// What came of one round.
#[derive(Default)]
struct Round {
    per_second: f64,
    latency_p95: Duration,
    errors: u64,
    first_error: Option<String>,
}

/// Runs the plan.
pub fn run(entrants: &[Entrant], plan: &ConnectPlan) -> Result<ConnectReport, Error> {
    if entrants.is_empty() || plan.rounds == 0 || plan.clients.iter().all(|&clients| clients == 0) {
        return Err(Error::Plan("nothing to measure".into()));
    }
    if plan.clients.iter().any(|&clients| clients > CLIENTS_MAX) {
        return Err(Error::Plan(format!(
            "there are at most {CLIENTS_MAX} clients"
        )));
    }
    let mut progress = Progress::new(plan.progress);
    let cells: Vec<(usize, &Entrant)> = plan
        .clients
        .iter()
        .filter(|&&clients| clients > 0)
        .flat_map(|&clients| entrants.iter().map(move |entrant| (clients, entrant)))
        .collect();
    let mut rounds: Vec<Vec<Round>> = cells.iter().map(|_| Vec::new()).collect();
    let began = Instant::now();
    let total = cells.len() * plan.rounds;
    let mut is_cut = false;
    for number in 0..total {
        if began.elapsed() > plan.limit && number >= cells.len() {
            is_cut = true;
            break;
        }
        if plan.stop.load(Relaxed) {
            is_cut = true;
            break;
        }
        let at = number % cells.len();
        let (clients, entrant) = cells[at];
        let round = run_round(entrant, clients, plan, |per_second| {
            progress.show(&format!(
                "connect: {} of {total} rounds, {} s, {}, {}: {}/s",
                number + 1,
                began.elapsed().as_secs(),
                entrant.name,
                crowd(clients),
                grouped(per_second as u64)
            ));
        })?;
        rounds[at].push(round);
    }
    progress.clear();
    let measurements = cells
        .iter()
        .zip(rounds)
        .filter_map(|(&(clients, entrant), rounds)| summed_up(entrant, clients, rounds));
    Ok(ConnectReport {
        measurements: measurements.collect(),
        query: plan.query,
        is_cut,
    })
}

fn summed_up(
    entrant: &Entrant,
    clients: usize,
    mut rounds: Vec<Round>,
) -> Option<ConnectMeasurement> {
    rounds.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let median = rounds.get(rounds.len() / 2)?;
    Some(ConnectMeasurement {
        name: entrant.name.clone(),
        compared_with: entrant.compared_with.clone(),
        clients,
        per_second: median.per_second,
        latency_p95: median.latency_p95,
        errors: rounds.iter().map(|round| round.errors).sum(),
        first_error: rounds.iter().find_map(|round| round.first_error.clone()),
        rounds: rounds.len(),
        spread: Spread::of(
            &rounds
                .iter()
                .map(|round| round.per_second)
                .collect::<Vec<_>>(),
        ),
    })
}

/// What the threads of a round share.
#[derive(Default)]
struct RoundState {
    measuring: AtomicBool,
    stop: AtomicBool,
    errors: AtomicU64,
    first_error: Mutex<Option<String>>,
}

impl RoundState {
    /// A client that comes and goes; how long each visit took while the round was measured.
    fn visit_until_stopped(&self, visit: &Visit, query: bool, counter: &Counter) -> Histogram {
        let mut latencies = Histogram::default();
        let mut done = 0;
        while !self.stop.load(Relaxed) {
            let began = Instant::now();
            match visit(query) {
                Ok(()) => {
                    done += 1;
                    counter.0.store(done, Relaxed);
                    if self.measuring.load(Relaxed) {
                        latencies.record(began.elapsed());
                    }
                }
                Err(error) => {
                    self.errors.fetch_add(1, Relaxed);
                    self.first_error.lock().get_or_insert(error);
                    std::thread::sleep(REFUSED_PAUSE);
                }
            }
        }
        latencies
    }
}

fn run_round(
    entrant: &Entrant,
    clients: usize,
    plan: &ConnectPlan,
    mut tell: impl FnMut(f64),
) -> Result<Round, Error> {
    let start = Barrier::new(clients + 1);
    let state = RoundState::default();
    let counters: Vec<Counter> = (0..clients).map(|_| Counter::default()).collect();
    let count = || {
        counters
            .iter()
            .map(|counter| counter.0.load(Relaxed))
            .sum::<u64>()
    };
    let failed = |error: std::io::Error| Error::Plan(format!("{clients} clients: {error}"));
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, counter) in counters.iter().enumerate() {
            let visit = entrant.visit(plan.query);
            let (start, state) = (&start, &state);
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let thread = thread.spawn_scoped(scope, move || {
                start.wait();
                state.visit_until_stopped(&visit, plan.query, counter)
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    // Those that are there wait for all: they are let go, to end at once.
                    state.stop.store(true, Relaxed);
                    for _ in number..clients {
                        scope.spawn(|| start.wait());
                    }
                    start.wait();
                    return Err(failed(error));
                }
            }
        }
        start.wait();
        tell(0.0);
        std::thread::sleep(plan.warm_up);
        state.measuring.store(true, Relaxed);
        let (from, began) = (count(), Instant::now());
        let mut last = (from, began);
        while began.elapsed() < plan.duration {
            let left = plan.duration.saturating_sub(began.elapsed());
            std::thread::sleep(left.min(LOOK_EVERY));
            let now = (count(), Instant::now());
            tell((now.0 - last.0) as f64 / (now.1 - last.1).as_secs_f64().max(1e-9));
            last = now;
        }
        state.stop.store(true, Relaxed);
        let mut latencies = Histogram::default();
        for thread in threads {
            latencies.merge(&thread.join().expect("a client doesn't panic"));
        }
        Ok(Round {
            per_second: (last.0 - from) as f64 / (last.1 - began).as_secs_f64(),
            latency_p95: latencies.percentile(0.95),
            errors: state.errors.load(Relaxed),
            first_error: state.first_error.lock().take(),
        })
    })
}

fn crowd(clients: usize) -> String {
    match clients {
        1 => "1 client".into(),
        clients => format!("{} clients", grouped(clients as u64)),
    }
}

impl ConnectReport {
    fn of(&self, name: &str, clients: usize) -> Option<&ConnectMeasurement> {
        self.measurements
            .iter()
            .find(|m| m.name == name && m.clients == clients)
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for measurement in &self.measurements {
            if !names.contains(&&*measurement.name) {
                names.push(&measurement.name);
            }
        }
        names
    }

    fn clients(&self) -> Vec<usize> {
        let mut clients: Vec<usize> = self.measurements.iter().map(|m| m.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// Its connections a second by those of the entrant it is compared with, at the same number of
    /// clients.
    pub fn ratio(&self, measurement: &ConnectMeasurement) -> Option<f64> {
        let other = self.of(measurement.compared_with.as_deref()?, measurement.clients)?;
        (other.per_second > 0.0).then(|| measurement.per_second / other.per_second)
    }

    /// Its connections a second by the most that the same way has had with any number of clients.
    pub fn of_own_best(&self, measurement: &ConnectMeasurement) -> Option<f64> {
        let own = self
            .measurements
            .iter()
            .filter(|m| m.name == measurement.name);
        let best = own.map(|m| m.per_second).fold(0.0, f64::max);
        (best > 0.0).then(|| measurement.per_second / best)
    }

    fn title(&self) -> &'static str {
        if self.query {
            "Connections with one SELECT 1 each"
        } else {
            "Connections that come and go"
        }
    }

    /// A picture of it, as SVG.
    pub fn picture(&self) -> String {
        let curves = self.names().into_iter().map(|name| {
            let points: Vec<(f64, f64)> = self
                .clients()
                .into_iter()
                .filter_map(|clients| {
                    let measured = self.of(name, clients)?.per_second;
                    (measured > 0.0).then_some((clients as f64, measured))
                })
                .collect();
            Curve {
                name: name.to_owned(),
                line: points.clone(),
                dots: points,
                intervals: Vec::new(),
            }
        });
        let picture = Picture {
            title: self.title().to_owned(),
            x: "clients at a time".to_owned(),
            y: "connections a second".to_owned(),
            x_scale: Scale::Stops,
            y_scale: Scale::Logarithmic,
            panels: vec![Panel {
                title: String::new(),
                curves: curves.collect(),
            }],
            columns: 1,
        };
        standalone(&picture.svg())
    }
}

impl fmt::Display for ConnectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = [
            "connections/s",
            "× beside",
            "of its best",
            "p95 ms",
            "errors",
            "spread",
        ];
        writeln!(f, "{}", self.title())?;
        write!(f, "{:<20}{:>8}", "way in", "clients")?;
        for head in heads {
            write!(f, "{head:>14}")?;
        }
        writeln!(f, "  beside")?;
        for name in self.names() {
            for m in self.measurements.iter().filter(|m| m.name == name) {
                let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |r| format!("{r:.2}"));
                let cells = [
                    grouped(m.per_second.round() as u64),
                    ratio(self.ratio(m)),
                    ratio(self.of_own_best(m)),
                    format!("{:.3}", m.latency_p95.as_secs_f64() * 1e3),
                    grouped(m.errors),
                    m.spread.to_string(),
                ];
                write!(f, "{name:<20}{:>8}", grouped(m.clients as u64))?;
                for cell in cells {
                    write!(f, "{cell:>14}")?;
                }
                writeln!(f, "  {}", m.compared_with.as_deref().unwrap_or("-"))?;
            }
        }
        Spread::note(self.measurements.iter().map(|m| m.spread), f)?;
        for m in &self.measurements {
            if let Some(error) = &m.first_error {
                writeln!(f, "{}, {}: {error}", m.name, crowd(m.clients))?;
            }
        }
        if self.is_cut {
            let rounds = self.measurements.iter().map(|m| m.rounds);
            let least = rounds.min().unwrap_or_default();
            writeln!(
                f,
                "The run was cut short: some figures are the median of {least} rounds only."
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_is_counted_and_compared() {
        let plan = ConnectPlan {
            clients: vec![1, 4],
            // Beside other tests a thread may wait for a core for some hundred milliseconds.
            duration: Duration::from_millis(400),
            warm_up: Duration::from_millis(5),
            rounds: 3,
            progress: false,
            ..ConnectPlan::default()
        };
        let pause = |micros| -> Visit {
            Arc::new(move |_| {
                std::thread::sleep(Duration::from_micros(micros));
                Ok(())
            })
        };
        let refused: Visit = Arc::new(|_| Err("Too many connections".into()));
        let entrants = [
            Entrant::by_calls("slow", pause(20_000)),
            Entrant::by_calls("fast", pause(200)).compared_with(Some("slow")),
            Entrant::by_calls("shut", refused),
        ];
        let report = run(&entrants, &plan).unwrap();
        assert_eq!(report.measurements.len(), 6);
        let fast = report.of("fast", 1).unwrap();
        assert!(report.ratio(fast).unwrap() > 2.0, "{report}");
        let best = report.of("slow", 4).unwrap();
        assert_eq!(report.of_own_best(best), Some(1.0), "{report}");
        assert!(
            report.of_own_best(report.of("slow", 1).unwrap()).unwrap() < 0.6,
            "{report}"
        );
        assert!(report.of("shut", 4).unwrap().errors > 0);
        assert!(report.measurements.iter().all(|one| one.spread.is_known()));
        let text = report.to_string();
        assert!(
            text.contains("shut, 4 clients: Too many connections"),
            "{text}"
        );
        let picture = report.picture();
        assert!(
            picture.starts_with("<svg") && picture.contains("fast"),
            "{picture}"
        );
    }

    #[test]
    fn time_that_is_up_ends_the_run_after_one_round_of_each() {
        let plan = ConnectPlan {
            clients: vec![1],
            duration: Duration::from_millis(2),
            warm_up: Duration::ZERO,
            limit: Duration::ZERO,
            rounds: 100,
            progress: false,
            ..ConnectPlan::default()
        };
        let entrants = [Entrant::by_calls("one", Arc::new(|_| Ok(())))];
        let report = run(&entrants, &plan).unwrap();
        assert!(report.is_cut && report.measurements[0].rounds == 1);
    }
}
