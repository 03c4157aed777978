//! Clients at work: threads that run transactions until whoever started them has seen enough.
//!
//! A client has a thread of its own, which waits for its replies, unless there are fewer threads
//! ([`Load::jobs`]). Then a thread sends a statement for each of its clients, and takes the replies
//! that are there, each followed by that client's next statement. What is asked of the server is the
//! same; what differs is what the clients cost:
//!
//! ```text
//!   8 threads, a core    client 1 sends ── change of threads ── client 2 sends ── change of threads ── …
//!   1 thread             client 1 takes, sends ── client 2 takes, sends ── …
//! ```
//!
//! Without a [rate](Load::rate) a client sends its next transaction when the last one has ended
//! (closed loop). With one, transactions begin at times that are drawn beforehand, whether or not
//! the server keeps up, and a latency counts from the time when its transaction should have begun
//! (open loop): a server that stalls for a second then has a second's worth of slow transactions
//! instead of one, which is what its users would have seen (coordinated omission).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use parking_lot::{Condvar, Mutex};
use porpoise_client::{Connection, Options, Poll};

use crate::workload::{Client, Ending};
use crate::{Error, Histogram, Mode, Script};

/// How long a client that waits for its time sleeps before it looks whether all is over.
const NAP: Duration = Duration::from_millis(100);

/// What clients do.
pub(crate) struct Load<'a> {
    /// Where they connect.
    pub options: &'a Options,
    pub script: &'a Script,
    pub mode: Mode,
    pub clients: usize,
    /// Threads that have them.
    pub jobs: usize,
    pub seed: u64,
    /// Transactions that begin a second, of all clients together. `None`: each as soon as the one
    /// before has ended. Each client needs a thread of its own.
    pub rate: Option<f64>,
    /// The CPUs that their threads may run on.
    pub cpus: Option<&'a [usize]>,
}

/// What one thread counted, or all did.
#[derive(Default)]
pub(crate) struct Counted {
    pub transactions: u64,
    pub queries: u64,
    /// Transactions rolled back because of a conflict, by the error's number.
    pub conflicts: BTreeMap<u16, u64>,
    pub latencies: Histogram,
    /// The same of each kind of transaction, if the script has several.
    pub kinds: Vec<CountedKind>,
}

/// What was counted of a kind of transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountedKind {
    pub conflicts: u64,
    pub latencies: Histogram,
}

impl Counted {
    fn of_kinds(kinds: usize) -> Self {
        Self {
            kinds: vec![CountedKind::default(); kinds],
            ..Self::default()
        }
    }

    pub(crate) fn errors(&self) -> u64 {
        self.conflicts.values().sum()
    }

    fn add(&mut self, other: &Counted) {
        self.transactions += other.transactions;
        self.queries += other.queries;
        for (&number, count) in &other.conflicts {
            *self.conflicts.entry(number).or_default() += count;
        }
        self.latencies.merge(&other.latencies);
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.conflicts += other.conflicts;
            kind.latencies.merge(&other.latencies);
        }
    }
}

/// Clients that have connected wait until all have.
#[derive(Default)]
struct Gate {
    /// `Some(false)`: go home, not all could be started.
    open: Mutex<Option<bool>>,
    opened: Condvar,
}

impl Gate {
    fn open(&self, go: bool) {
        *self.open.lock() = Some(go);
        self.opened.notify_all();
    }

    fn wait(&self) -> bool {
        let mut open = self.open.lock();
        loop {
            match *open {
                Some(go) => return go,
                None => self.opened.wait(&mut open),
            }
        }
    }
}

/// What the threads share.
struct Shared {
    gate: Gate,
    measuring: AtomicBool,
    stop: AtomicBool,
    /// Transactions so far, of each thread.
    transactions: Vec<Counter>,
}

/// A counter that one thread writes, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// Clients at work, to whoever started them.
pub(crate) struct Running<'r> {
    shared: &'r Shared,
    ended: mpsc::Receiver<bool>,
}

impl Running<'_> {
    /// Transactions that were done since the clients began.
    pub(crate) fn transactions(&self) -> u64 {
        let counters = self.shared.transactions.iter();
        counters
            .map(|counter| counter.0.load(Ordering::Relaxed))
            .sum()
    }

    /// The same of each thread.
    pub(crate) fn transactions_of_threads(&self) -> Vec<u64> {
        let counters = self.shared.transactions.iter();
        counters
            .map(|counter| counter.0.load(Ordering::Relaxed))
            .collect()
    }

    /// What begins from now on is counted.
    pub(crate) fn begin_measuring(&self) {
        self.shared.measuring.store(true, Ordering::Relaxed);
    }

    /// Lets time pass; false if a client failed meanwhile, which ends the others.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        matches!(
            self.ended.recv_timeout(time),
            Err(mpsc::RecvTimeoutError::Timeout)
        )
    }
}

/// Starts the clients, calls `watch`, which says by returning that it has seen enough, and gives
/// what the clients counted. A transaction that ends after that isn't counted.
pub(crate) fn run<T>(
    load: &Load<'_>,
    watch: impl FnOnce(&Running<'_>) -> T,
) -> Result<(T, Result<Counted, porpoise_client::Error>), Error> {
    let shared = Shared {
        gate: Gate::default(),
        measuring: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        transactions: (0..load.jobs).map(|_| Counter::default()).collect(),
    };
    let mut seeds = Rng::with_seed(load.seed);
    let (ready, all_ready) = mpsc::channel();
    let (send, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(load.jobs);
        for job in 0..load.jobs {
            let (shared, ready, send) = (&shared, ready.clone(), send.clone());
            // As many for each, or one more.
            let own = job * load.clients / load.jobs..(job + 1) * load.clients / load.jobs;
            let seeds: Vec<(usize, Rng)> = own.map(|client| (client, seeds.fork())).collect();
            let work = move || {
                let clients = connect(load, seeds);
                // Whoever started this thread waits for it, or has given up.
                let _ = ready.send(());
                drop(ready);
                if !shared.gate.wait() {
                    return Ok(Counted::default());
                }
                let counted = clients
                    .and_then(|clients| drive(load, clients, shared, &shared.transactions[job]));
                // A client that fails ends all; nobody listens if it is over already.
                let _ = send.send(counted.is_err());
                counted
            };
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shared.gate.open(false);
                    return Err(Error::Plan(format!(
                        "{} clients need {} threads, of which the system gives {job}: {error}",
                        load.clients, load.jobs
                    )));
                }
            }
        }
        drop((ready, send));
        // An error: all threads have said so and dropped their ends.
        while all_ready.recv().is_ok() {}
        shared.gate.open(true);
        let running = Running {
            shared: &shared,
            ended,
        };
        let seen = watch(&running);
        shared.stop.store(true, Ordering::Relaxed);
        let mut sum = Ok(Counted::of_kinds(load.script.kinds().len()));
        for thread in threads {
            let counted = thread.join().expect("a client doesn't panic");
            match (&mut sum, counted) {
                (Ok(sum), Ok(counted)) => sum.add(&counted),
                (Ok(_), Err(error)) => sum = Err(error),
                (Err(_), _) => {}
            }
        }
        Ok((seen, sum))
    })
}

fn connect(
    load: &Load<'_>,
    seeds: Vec<(usize, Rng)>,
) -> Result<Vec<Client>, porpoise_client::Error> {
    if let Some(cpus) = load.cpus {
        crate::resources::pin_this_thread(cpus).map_err(porpoise_client::Error::Io)?;
    }
    let connect =
        |(client, random)| Client::connect(load.script, load.options, load.mode, client, random);
    seeds.into_iter().map(connect).collect()
}

/// Times at which a client's transactions begin: those of a Poisson process.
struct Pace {
    random: Rng,
    seconds_between: f64,
    next: Instant,
}

impl Pace {
    /// When the next transaction is to begin.
    fn next(&mut self) -> Instant {
        let next = self.next;
        let seconds = -(1.0 - self.random.f64()).ln() * self.seconds_between;
        self.next += Duration::from_secs_f64(seconds);
        next
    }
}

/// A client in the midst of a transaction.
struct Driven {
    client: Client,
    pace: Option<Pace>,
    began: Instant,
    /// Statements that it had sent when the transaction began.
    queries: u64,
    /// The transaction counts: it began while measuring.
    is_measured: bool,
}

impl AsMut<Connection> for Driven {
    fn as_mut(&mut self) -> &mut Connection {
        self.client.as_mut()
    }
}

/// Runs transactions on all clients until it is over.
fn drive(
    load: &Load<'_>,
    clients: Vec<Client>,
    shared: &Shared,
    transactions: &Counter,
) -> Result<Counted, porpoise_client::Error> {
    let mut thread = Thread {
        shared,
        transactions,
        done: 0,
        counted: Counted::of_kinds(load.script.kinds().len()),
        now: Instant::now(),
    };
    let mut all = Vec::with_capacity(clients.len());
    for mut client in clients {
        let pace = load.rate.map(|rate| {
            let mut pace = Pace {
                random: client.fork_random(),
                seconds_between: load.clients as f64 / rate,
                next: thread.now,
            };
            // The first of all clients aren't due at once.
            pace.next();
            pace
        });
        let mut driven = Driven {
            client,
            pace,
            began: thread.now,
            queries: 0,
            is_measured: false,
        };
        if thread.begin(&mut driven)? {
            all.push(driven);
        }
    }
    let mut poll = Poll::default();
    while let [_, ..] = &all[..] {
        // Who has a single client waits by receiving its reply.
        let ready = match all.len() {
            1 => &[0],
            _ => poll.wait(&mut all, None)?,
        };
        let mut is_over = false;
        for &place in ready {
            let driven = &mut all[place];
            if let Some(ending) = driven.client.go_on()? {
                is_over |= !(thread.count(driven, ending) && thread.begin(driven)?);
            }
        }
        if is_over {
            all.retain(|driven| driven.client.is_waiting());
        }
    }
    Ok(thread.counted)
}

/// A thread that has clients.
struct Thread<'r> {
    shared: &'r Shared,
    transactions: &'r Counter,
    done: u64,
    counted: Counted,
    /// When the last transaction ended, and the next began.
    now: Instant,
}

impl Thread<'_> {
    /// Begins a transaction; false if it was over before one was in flight.
    fn begin(&mut self, driven: &mut Driven) -> Result<bool, porpoise_client::Error> {
        loop {
            let pause = driven.client.choose();
            let due = match &mut driven.pace {
                None if pause.is_zero() => None,
                None => Some(self.now + pause),
                Some(pace) => Some(pace.next()),
            };
            driven.began = match due {
                None => self.now,
                Some(due) => match self.wait_until(due) {
                    Some(due) => due,
                    None => return Ok(false),
                },
            };
            driven.queries = driven.client.queries;
            driven.is_measured = self.shared.measuring.load(Ordering::Relaxed);
            match driven.client.begin()? {
                None => return Ok(true),
                Some(ending) if self.count(driven, ending) => {}
                Some(_) => return Ok(false),
            }
        }
    }

    /// Sleeps until `due`, and gives it; nothing if it is over before.
    fn wait_until(&self, due: Instant) -> Option<Instant> {
        loop {
            if self.shared.stop.load(Ordering::Relaxed) {
                return None;
            }
            match due.checked_duration_since(Instant::now()) {
                None | Some(Duration::ZERO) => return Some(due),
                Some(left) => std::thread::sleep(left.min(NAP)),
            }
        }
    }

    /// Counts a transaction; false if it is over.
    fn count(&mut self, driven: &Driven, ending: Ending) -> bool {
        self.now = Instant::now();
        if self.shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        if ending == Ending::Done {
            self.done += 1;
            self.transactions.0.store(self.done, Ordering::Relaxed);
        }
        if driven.is_measured {
            self.counted.queries += driven.client.queries - driven.queries;
            let took = self.now - driven.began;
            let kind = self.counted.kinds.get_mut(driven.client.kind());
            match ending {
                Ending::Done => {
                    self.counted.transactions += 1;
                    self.counted.latencies.record(took);
                    if let Some(kind) = kind {
                        kind.latencies.record(took);
                    }
                }
                Ending::Conflict(number) => {
                    *self.counted.conflicts.entry(number).or_default() += 1;
                    if let Some(kind) = kind {
                        kind.conflicts += 1;
                    }
                }
            }
        }
        true
    }
}
