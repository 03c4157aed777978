//! The server: listeners, workers, and what all connections share.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use porpoise_engine::Account;
use porpoise_engine::hosts::Refusal;
use porpoise_engine::{Engine, Error, Front};

use crate::crew::{self, Crew};
use crate::descriptors::{self, Spare, Wishes};
use crate::limits::{UserSeat, UserSeats};
use crate::listener::Listener;
use crate::neighbours::Neighbours;
use crate::newcomer::Gate;
use crate::outlet::Traffic;
use crate::placement::Moves;
use crate::stream::Peer;
use crate::sync_round::SyncRound;
use crate::syncer::{Duties, Syncer};
use crate::worker::{EventLoop, Letter, Mailbox};

/// Where a server is to be reached, and with how many threads it serves.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Addresses to listen on; port 0 takes any free port.
    pub tcp: Vec<SocketAddr>,
    /// The path of a Unix socket.
    pub socket: Option<PathBuf>,
    /// The path of the Unix socket where clients are given shared memory.
    pub shared_memory: Option<PathBuf>,
    /// Where other processes of this process' user (and root's) are given shared memory and let in as embedded
    /// programs are: as `root@localhost`, who may do everything, without being asked for a password.
    pub neighbours: Option<Arc<Neighbours>>,
    /// Event loops; 0 for one a core.
    pub workers: usize,
    /// When connections go from one event loop to another.
    pub moves: Moves,
    /// What a thread does that has had nothing to do for a while, once until it has worked again: gives memory back that its
    /// work has left, if the program's allocator keeps any.
    pub when_idle: Option<fn()>,
}

/// Why a server didn't start.
#[derive(Debug)]
pub enum StartError {
    Tcp(SocketAddr, io::Error),
    Socket(PathBuf, io::Error),
    Worker(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Tcp(address, error) => write!(f, "can't listen on {address}: {error}"),
            StartError::Socket(path, error) => {
                write!(f, "can't listen on {}: {error}", path.display())
            }
            StartError::Worker(error) => write!(f, "can't start a worker: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// What every connection can reach.
pub(crate) struct Shared {
    pub engine: Engine,
    pub crew: Arc<Crew>,
    pub gate: Gate,
    pub sync_round: SyncRound,
    pub syncer: Arc<Syncer>,
    pub moves: Moves,
    pub when_idle: Option<fn()>,
    /// The most rings that each worker keeps for clients that may come back.
    pub kept_most: AtomicUsize,
    /// For the client that finds no descriptor.
    pub spare_descriptor: Spare,
    mailboxes: OnceLock<Vec<Arc<Mailbox>>>,
    seats_taken: Arc<AtomicUsize>,
    stop: Stop,
    /// Of connections that no worker has yet.
    pub traffic: Arc<Traffic>,
    seats_most: AtomicUsize,
    /// When that was, in seconds since 1970.
    seats_most_at: AtomicU64,
    pub user_seats: UserSeats,
    pub aborted_clients: AtomicU64,
    pub aborted_connects: AtomicU64,
    pub turned_away: AtomicU64,
    /// Clients that couldn't be accepted, and those whose address couldn't be told.
    pub accept_errors: AtomicU64,
    /// Clients that asked for the loopback fast path and got it, and those that stayed on TCP.
    pub fast_path_moved: AtomicU64,
    pub fast_path_stayed: AtomicU64,
}

fn unix_seconds() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[derive(Clone, Default)]
struct Stop(Arc<(Mutex<bool>, Condvar)>);

/// One of the `max_connections` places. Dropping it gives it back.
pub(crate) struct Seat {
    taken: Arc<AtomicUsize>,
    reserved: bool,
}

impl Seat {
    /// The one place beyond `max_connections`, for an administrator.
    pub fn is_reserved(&self) -> bool {
        self.reserved
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    pub fn new(engine: Engine) -> Shared {
        Shared {
            engine,
            crew: Arc::default(),
            gate: Gate::default(),
            sync_round: SyncRound::default(),
            syncer: Arc::default(),
            moves: Moves::default(),
            when_idle: None,
            kept_most: AtomicUsize::new(0),
            spare_descriptor: Spare::default(),
            mailboxes: OnceLock::new(),
            seats_taken: Arc::default(),
            stop: Stop::default(),
            traffic: Arc::default(),
            seats_most: AtomicUsize::new(0),
            seats_most_at: AtomicU64::new(0),
            user_seats: UserSeats::default(),
            aborted_clients: AtomicU64::new(0),
            aborted_connects: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            fast_path_moved: AtomicU64::new(0),
            fast_path_stayed: AtomicU64::new(0),
        }
    }

    /// Lowers `max_connections` to what the limit of descriptors bears, now that all is open that
    /// is before the first client.
    fn divide_descriptors(&self, workers: usize, rings: bool) {
        let variables = self.engine.variables();
        let wishes = Wishes {
            max_connections: variables.max_connections(),
            workers: workers as u64,
            rings,
        };
        let (limit, open) = (descriptors::limit(), descriptors::open());
        let shares = wishes.share(limit, open);
        self.kept_most.store(shares.kept, Ordering::Relaxed);
        let (most, wanted) = (shares.connections, wishes.max_connections);
        if most < wanted {
            let needs = wishes.needs(open);
            tracing::warn!("Changed limits: max_open_files: {limit} (requested {needs})");
            tracing::warn!("Changed limits: max_connections: {most} (requested {wanted})");
        }
        variables.limit_connections(most);
    }

    fn seats(&self) -> usize {
        usize::try_from(self.engine.variables().max_connections()).unwrap_or(usize::MAX)
    }

    /// A place for a new connection, if there is one left: the administrator's if it is the last.
    pub fn take_seat(&self) -> Option<Seat> {
        let seats = self.seats();
        self.take_seat_of(seats.saturating_add(1), seats)
    }

    /// A place for a new connection that isn't the administrator's.
    pub fn take_ordinary_seat(&self) -> Option<Seat> {
        let seats = self.seats();
        self.take_seat_of(seats, seats)
    }

    fn take_seat_of(&self, limit: usize, ordinary: usize) -> Option<Seat> {
        let (load, store) = (Ordering::Relaxed, Ordering::Relaxed);
        let one_more = |taken| (taken < limit).then_some(taken + 1);
        let taken = self.seats_taken.try_update(store, load, one_more).ok()?;
        let taken_now = taken + 1;
        if taken_now > self.seats_most.load(Ordering::Relaxed)
            && self.seats_most.fetch_max(taken_now, Ordering::Relaxed) < taken_now
        {
            self.seats_most_at.store(unix_seconds(), Ordering::Relaxed);
        }
        Some(Seat {
            taken: self.seats_taken.clone(),
            reserved: taken >= ordinary,
        })
    }

    /// No place is left but the administrator's.
    pub fn is_full(&self) -> bool {
        self.seats_taken.load(Ordering::Relaxed) >= self.seats()
    }

    /// One of the connections that the account may have; nothing where there is no limit.
    pub fn take_user_seat(&self, account: Option<&Account>) -> Result<Option<UserSeat>, Error> {
        let most = self.engine.variables().max_user_connections();
        match account {
            Some(account) => self.user_seats.take(account, most),
            None => Ok(None),
        }
    }

    /// A client broke off before it had said who it is, said what isn't a login, or took too long.
    pub fn handshake_failed(&self, peer: Peer) {
        self.refused(peer, Refusal::Handshake);
    }

    /// A client was not let in.
    pub fn refused(&self, peer: Peer, why: Refusal) {
        self.aborted_connects.fetch_add(1, Ordering::Relaxed);
        if let Some(address) = peer.remote_ip() {
            self.engine.hosts().refused(address, why);
        }
    }

    /// Whether clients from there are heard: error 1129 if they have broken off too often, 1130 if
    /// no account is for them.
    pub fn hears(&self, peer: Peer) -> Result<(), Error> {
        self.has_patience_with(peer)?;
        if peer == Peer::Neighbour || self.engine.hears_host(&peer.host(), peer.ip()) {
            return Ok(());
        }
        self.refused(peer, Refusal::NoAccount);
        Err(Error::host_not_privileged(peer.host()))
    }

    fn has_patience_with(&self, peer: Peer) -> Result<(), Error> {
        let Some(address) = peer.remote_ip() else {
            return Ok(());
        };
        let variables = self.engine.variables();
        let most = variables.get_u64("max_connect_errors");
        let hosts = usize::try_from(variables.get_u64("host_cache_size")).unwrap_or(0);
        if self.engine.hosts().hears(address, most, hosts) {
            return Ok(());
        }
        Err(Error::host_is_blocked(address))
    }

    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.engine.variables().connect_timeout())
    }

    /// Commits of all workers that are not on disk yet, or whose clients are not yet told.
    pub fn commits_under_way(&self) -> usize {
        let commits = self
            .mailboxes()
            .iter()
            .map(|mailbox| mailbox.commits.load(Ordering::SeqCst));
        commits.sum()
    }

    /// Has the commits that wait synced by a thread of its own. False: there is none.
    pub fn ask_syncer(&self) -> bool {
        self.syncer.ask(|| {
            let engine = self.engine.clone();
            let mailboxes = self.mailboxes().to_vec();
            Duties {
                sync: Box::new(move || {
                    engine.sync_pending();
                }),
                remind: Box::new(move || remind_of_sync(&mailboxes)),
            }
        })
    }

    pub fn mailboxes(&self) -> &[Arc<Mailbox>] {
        self.mailboxes.get().map_or(&[], Vec::as_slice)
    }

    /// COM_STATISTICS' line of figures.
    pub fn statistics(&self) -> String {
        self.engine.statistics()
    }

    /// What SHOW STATUS has from the server.
    fn status(&self) -> Vec<(&'static str, u64)> {
        let add = |which: fn(&Traffic) -> &AtomicU64| {
            let workers = self.mailboxes().iter().map(|mailbox| &mailbox.traffic);
            workers
                .chain([&self.traffic])
                .map(|traffic| which(traffic).load(Ordering::Relaxed))
                .sum()
        };
        let (created, standbys) = self.crew.figures();
        let commands = add(|traffic| &traffic.commands);
        vec![
            (
                "Aborted_clients",
                self.aborted_clients.load(Ordering::Relaxed),
            ),
            (
                "Aborted_connects",
                self.aborted_connects.load(Ordering::Relaxed),
            ),
            ("Bytes_received", add(|traffic| &traffic.bytes_received)),
            ("Bytes_sent", add(|traffic| &traffic.bytes_sent)),
            (
                "Connection_errors_accept",
                self.accept_errors.load(Ordering::Relaxed),
            ),
            ("Connection_errors_internal", 0),
            (
                "Connection_errors_max_connections",
                self.turned_away.load(Ordering::Relaxed),
            ),
            ("Connection_errors_peer_address", 0),
            ("Connection_errors_select", 0),
            ("Connection_errors_tcpwrap", 0),
            (
                "Loopback_fast_path_connections",
                self.fast_path_moved.load(Ordering::Relaxed),
            ),
            (
                "Loopback_fast_path_fallbacks",
                self.fast_path_stayed.load(Ordering::Relaxed),
            ),
            (
                "Max_used_connections",
                self.seats_most.load(Ordering::Relaxed) as u64,
            ),
            (
                "Max_used_connections_time",
                self.seats_most_at.load(Ordering::Relaxed),
            ),
            ("Moved_connections", add(|traffic| &traffic.moves)),
            ("Queries", commands),
            ("Questions", commands),
            ("Shared_memory_connections", add(|traffic| &traffic.rings)),
            (
                "Shared_memory_spins_lost",
                add(|traffic| &traffic.spins_lost),
            ),
            ("Shared_memory_spins_won", add(|traffic| &traffic.spins_won)),
            ("Shared_memory_wakeups", add(|traffic| &traffic.wakeups)),
            ("Threads_cached", standbys),
            ("Threads_created", created),
        ]
    }

    pub fn request_stop(&self) {
        self.stop.request();
    }
}

impl Stop {
    fn request(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let mut requested = self.0.0.lock();
        while !*requested {
            self.0.1.wait(&mut requested);
        }
    }
}

/// Asks a server to stop, from any thread.
#[derive(Clone)]
pub struct Stopper(Stop);

impl Stopper {
    /// Wakes [`Server::wait`].
    pub fn stop(&self) {
        self.0.request();
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    tcp: Vec<SocketAddr>,
    socket: Option<PathBuf>,
    shared_memory: Option<PathBuf>,
    /// Keeps the socket's file as long as somebody listens.
    _neighbours: Option<Arc<Neighbours>>,
    /// Its number among the engine's servers.
    front: u64,
    stopped: AtomicBool,
}

/// How long statements may go on after a stop before they are interrupted.
const GRACE: Duration = Duration::from_secs(3);
/// How long interrupted statements may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Server {
    /// Opens the doors and serves what comes in, until [`stop`](Self::stop).
    pub fn start(engine: Engine, options: &ServerOptions) -> Result<Server, StartError> {
        let backlog = i32::try_from(engine.variables().get_u64("back_log")).unwrap_or(i32::MAX);
        let mut listeners = Vec::new();
        for &address in &options.tcp {
            listeners.push(
                Listener::tcp(address, backlog).map_err(|error| StartError::Tcp(address, error))?,
            );
        }
        if let Some(path) = &options.socket {
            listeners.push(
                Listener::unix(path, false, backlog)
                    .map_err(|error| StartError::Socket(path.clone(), error))?,
            );
        }
        if let Some(path) = &options.shared_memory {
            listeners.push(
                Listener::unix(path, true, backlog)
                    .map_err(|error| StartError::Socket(path.clone(), error))?,
            );
        }
        if let Some(neighbours) = &options.neighbours {
            listeners
                .push(Listener::neighbours(neighbours.listener()).map_err(StartError::Worker)?);
        }
        let tcp = listeners.iter().filter_map(Listener::tcp_address).collect();
        engine.set_block_hook(Arc::new(crew::leave_loop));
        let mut shared = Shared::new(engine);
        shared.moves = options.moves;
        shared.when_idle = options.when_idle;
        let shared = Arc::new(shared);
        let weak = Arc::downgrade(&shared);
        let lead = Arc::new(move || {
            let Some(shared) = weak.upgrade() else { return };
            remind_of_sync(shared.mailboxes());
        });
        let weak = Arc::downgrade(&shared);
        let status = Arc::new(move || {
            weak.upgrade()
                .map_or_else(Vec::new, |shared| shared.status())
        });
        let front = shared.engine.attach(Front { lead, status });
        let workers = match options.workers {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            workers => workers,
        };
        let mut polls = Vec::new();
        for _ in 0..workers {
            polls.push(EventLoop::open().map_err(StartError::Worker)?);
        }
        let mailboxes = polls.iter().map(|(_, mailbox)| mailbox.clone()).collect();
        if shared.mailboxes.set(mailboxes).is_err() {
            unreachable!("the workers are set once, here");
        }
        let rings = listeners.iter().any(Listener::offers_rings);
        let rings = rings || shared.engine.variables().loopback_fast_path();
        shared.divide_descriptors(workers, rings);
        let listeners: Arc<[Listener]> = listeners.into();
        for (poll, mailbox) in polls {
            let doors = listeners.clone();
            let event_loop = EventLoop::with_listeners(shared.clone(), poll, mailbox, doors)
                .map_err(StartError::Worker)?;
            shared.crew.run(event_loop);
        }
        Ok(Server {
            shared,
            tcp,
            socket: options.socket.clone(),
            shared_memory: options.shared_memory.clone(),
            _neighbours: options.neighbours.clone(),
            front,
            stopped: AtomicBool::new(false),
        })
    }

    /// The TCP addresses it listens on.
    pub fn tcp_addresses(&self) -> &[SocketAddr] {
        &self.tcp
    }

    /// The Unix socket it listens on.
    pub fn socket_path(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The Unix socket where it offers shared memory.
    pub fn shared_memory_path(&self) -> Option<&Path> {
        self.shared_memory.as_deref()
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.shared.stop.clone())
    }

    /// Waits until somebody asks it to stop: a [`Stopper`], or a client with SHUTDOWN.
    pub fn wait(&self) {
        self.shared.stop.wait();
    }

    /// Closes the doors and idle connections, lets statements end or interrupts them, and waits for all of it.
    /// The engine stays open.
    pub fn stop(&self) {
        if self.stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        let grace_ends = Instant::now() + GRACE;
        for mailbox in self.shared.mailboxes() {
            mailbox.send(Letter::Stop(grace_ends));
        }
        if !self.shared.crew.end(GRACE + PATIENCE) {
            tracing::warn!("some statements did not end in time");
        }
        self.shared.syncer.end();
        self.shared.engine.detach(self.front);
    }
}

/// Tells the workers whose commits wait for a sync.
fn remind_of_sync(mailboxes: &[Arc<Mailbox>]) {
    for mailbox in mailboxes {
        if mailbox.commits.load(Ordering::SeqCst) > 0 {
            mailbox.send(Letter::Sync);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
