//! A server: it opens its listeners, starts its workers, and stops them.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use porpoise_engine::{Engine, Front};

use crate::instance_socket::InstanceSocket;
use crate::listener::Listener;
use crate::placement::MigrationPolicy;
use crate::server_state::{ServerState, StopRequest, notify_sync_pending};
use crate::status::status_variables;
use crate::thread_pool;
use crate::worker::{EventLoop, Worker, WorkerMessage};

/// Where a server is to be reached, and with how many threads it serves.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Addresses to listen on; port 0 takes any free port.
    pub tcp: Vec<SocketAddr>,
    /// The path of a Unix socket.
    pub socket: Option<PathBuf>,
    /// The path of the Unix socket where clients are given shared memory.
    pub shared_memory: Option<PathBuf>,
    /// Where other processes of this process' user, and root's, are given shared memory. They are
    /// let in as embedded programs are: as `root@localhost`, with all privileges and without a
    /// password.
    pub instance_socket: Option<Arc<InstanceSocket>>,
    /// The number of workers, each an event loop; 0 for one a core.
    pub workers: usize,
    /// When connections go from one worker to another.
    pub migration: MigrationPolicy,
    /// Called by a worker that has had nothing to do for a second, once until it has worked again:
    /// to give memory back that its work has left, if the program's allocator keeps any.
    pub when_idle: Option<fn()>,
}

/// Why a server didn't start.
#[derive(Debug)]
pub enum StartError {
    /// It can't listen on a TCP address.
    Tcp(SocketAddr, io::Error),
    /// It can't listen on a Unix socket.
    Socket(PathBuf, io::Error),
    /// What it is to offer TLS with can't be used.
    Tls(String),
    /// It can't make or watch what a worker needs.
    Worker(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Tcp(address, error) => write!(f, "can't listen on {address}: {error}"),
            StartError::Socket(path, error) => {
                write!(f, "can't listen on {}: {error}", path.display())
            }
            StartError::Tls(error) => write!(f, "can't set up TLS: {error}"),
            StartError::Worker(error) => write!(f, "can't start a worker: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Asks a server to stop, from any thread.
#[derive(Clone)]
pub struct Stopper(StopRequest);

impl Stopper {
    /// Wakes [`Server::wait`].
    pub fn stop(&self) {
        self.0.request();
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    state: Arc<ServerState>,
    tcp: Vec<SocketAddr>,
    socket: Option<PathBuf>,
    shared_memory: Option<PathBuf>,
    /// Keeps the socket's file while the server listens.
    _instance_socket: Option<Arc<InstanceSocket>>,
    /// Its number among the engine's servers.
    front: u64,
    stopped: AtomicBool,
}

/// How long interrupted statements may take to end.
const INTERRUPTED_END_MAX: Duration = Duration::from_secs(10);

/// Opens what `options` names.
fn open_listeners(engine: &Engine, options: &ServerOptions) -> Result<Vec<Listener>, StartError> {
    let backlog = i32::try_from(engine.variables().get_u64("back_log")).unwrap_or(i32::MAX);
    let mut listeners = Vec::new();
    for &address in &options.tcp {
        let listener = Listener::tcp(address, backlog);
        listeners.push(listener.map_err(|error| StartError::Tcp(address, error))?);
    }
    for (path, offers_rings) in [(&options.socket, false), (&options.shared_memory, true)] {
        if let Some(path) = path {
            let listener = Listener::unix(path, offers_rings, backlog);
            listeners.push(listener.map_err(|error| StartError::Socket(path.clone(), error))?);
        }
    }
    if let Some(socket) = &options.instance_socket {
        listeners.push(Listener::instance(socket.listener()).map_err(StartError::Worker)?);
    }
    Ok(listeners)
}

/// What the engine asks a server for. It doesn't keep the server alive.
fn front_of(state: &Arc<ServerState>) -> Front {
    let weak = Arc::downgrade(state);
    let lead = Arc::new(move || {
        if let Some(state) = weak.upgrade() {
            notify_sync_pending(state.inboxes());
        }
    });
    let weak = Arc::downgrade(state);
    let status = Arc::new(move || {
        let state = weak.upgrade();
        state.map_or_else(Vec::new, |state| status_variables(&state))
    });
    let weak = Arc::downgrade(state);
    let facts = Arc::new(move |wants: &dyn Fn(&str) -> bool| {
        let state = weak.upgrade();
        state.map_or_else(Vec::new, |state| {
            let mut facts = state.tls.facts();
            facts.extend(state.auth_cache.facts(wants));
            facts
        })
    });
    let weak = Arc::downgrade(state);
    let reload_tls = Arc::new(move |disables_on_error| match weak.upgrade() {
        Some(state) => state.tls.reload(&state.engine, disables_on_error),
        None => Ok(()),
    });
    Front {
        lead,
        status,
        facts,
        reload_tls,
    }
}

impl Server {
    /// Listens, and serves the clients that connect, until [`stop`](Self::stop).
    ///
    /// # Errors
    /// If an address or a path can't be listened on, a file for TLS that the variables name can't be
    /// used, or the system gives no event loop.
    pub fn start(engine: Engine, options: &ServerOptions) -> Result<Server, StartError> {
        let listeners = open_listeners(&engine, options)?;
        let tcp = listeners.iter().filter_map(Listener::tcp_address).collect();
        engine.set_block_hook(Arc::new(thread_pool::hand_over_loop));
        engine.set_read_hook(Arc::new(thread_pool::hand_over_others));
        engine.set_compute_hook(Arc::new(thread_pool::hand_over_for_long));
        let mut state = ServerState::new(engine);
        state.migration = options.migration;
        state.when_idle = options.when_idle;
        if !options.tcp.is_empty() || options.socket.is_some() {
            state.tls.open(&state.engine).map_err(StartError::Tls)?;
        }
        let state = Arc::new(state);
        let front = state.engine.attach(front_of(&state));
        start_workers(&state, listeners, options.workers).map_err(StartError::Worker)?;
        Ok(Server {
            state,
            tcp,
            socket: options.socket.clone(),
            shared_memory: options.shared_memory.clone(),
            _instance_socket: options.instance_socket.clone(),
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

    /// A handle by which another thread can ask it to stop.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.state.stop_request.clone())
    }

    /// Waits until somebody asks it to stop: a [`Stopper`], or a client with SHUTDOWN.
    pub fn wait(&self) {
        self.state.stop_request.wait();
    }

    /// Closes the listeners and idle connections, interrupts statements, but for commits that are
    /// being synced, and waits for all of it. The engine stays open.
    pub fn stop(&self) {
        if self.stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        for inbox in self.state.inboxes() {
            inbox.send(WorkerMessage::Stop);
        }
        if !self.state.thread_pool.end(INTERRUPTED_END_MAX) {
            tracing::warn!("some statements did not end in time");
        }
        self.state.thread_pool.turn_monitor.end();
        self.state.sync_thread.end();
        self.state.engine.detach(self.front);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the workers: `count` of them, or one a core for 0.
fn start_workers(
    state: &Arc<ServerState>,
    listeners: Vec<Listener>,
    count: usize,
) -> io::Result<()> {
    let count = match count {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        count => count,
    };
    let mut polls = Vec::new();
    for _ in 0..count {
        polls.push(EventLoop::open()?);
    }
    let inboxes = polls.iter().map(|(_, inbox)| inbox.clone()).collect();
    if state.inboxes.set(inboxes).is_err() {
        unreachable!("the workers are set once, here");
    }
    let rings = listeners.iter().any(Listener::offers_rings);
    let rings = rings || state.engine.variables().loopback_fast_path();
    state.allocate_descriptors(count, rings);
    let listeners: Arc<[Listener]> = listeners.into();
    let mut workers = Vec::new();
    for (poll, inbox) in polls {
        let event_loop = EventLoop::with_listeners(state.clone(), poll, inbox, listeners.clone())?;
        workers.push(Worker::new(event_loop));
    }
    let pool = &state.thread_pool;
    pool.turn_monitor.start(workers.clone(), pool.clone())?;
    workers.into_iter().for_each(|worker| pool.run(worker));
    Ok(())
}
