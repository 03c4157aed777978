//! What all connections of a server share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use compact_str::CompactString;
use parking_lot::{Condvar, Mutex};
use porpoise_engine::Account;
use porpoise_engine::host_cache::Refusal;
use porpoise_engine::policy::now_us;
use porpoise_engine::{Engine, Error};
use porpoise_protocol::compressed::Algorithm;
use porpoise_protocol::flags::Capabilities;

use crate::account_limits::{AccountLimits, AccountSlot};
use crate::auth_cache::AuthCache;
use crate::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::descriptors::{self, DescriptorRequest, SpareDescriptor};
use crate::group_commit_delay::GroupCommitDelay;
use crate::host_names::{ClientHost, HostNames};
use crate::placement::MigrationPolicy;
use crate::query_logs::QueryLogs;
use crate::stream::{Peer, Stream};
use crate::sync_thread::{SyncTasks, SyncThread};
use crate::thread_pool::ThreadPool;
use crate::tls::Tls;
use crate::traffic::TrafficCounters;
use crate::worker::{WorkerInbox, WorkerMessage};

/// What every connection can reach.
pub(crate) struct ServerState {
    pub engine: Engine,
    pub thread_pool: Arc<ThreadPool>,
    pub auth_cache: AuthCache,
    pub tls: Tls,
    pub group_commit_delay: GroupCommitDelay,
    pub sync_thread: Arc<SyncThread>,
    pub migration: MigrationPolicy,
    pub when_idle: Option<fn()>,
    /// The most rings that each worker keeps for clients that may come back.
    pub awaiting_reuse_max: AtomicUsize,
    /// For the client that finds no descriptor.
    pub spare_descriptor: SpareDescriptor,
    /// One a worker; set once, before the first connection.
    pub inboxes: OnceLock<Vec<Arc<WorkerInbox>>>,
    pub slots: ConnectionSlots,
    pub stop_request: StopRequest,
    /// Of connections that no worker has yet.
    pub traffic: Arc<TrafficCounters>,
    account_limits: AccountLimits,
    pub host_names: Arc<HostNames>,
    pub query_logs: QueryLogs,
    pub aborted_clients: AtomicU64,
    pub aborted_connects: AtomicU64,
    /// Log-ins to locked accounts.
    pub locked_connects: AtomicU64,
    /// Clients that were refused because all slots were taken.
    pub refused_full: AtomicU64,
    /// Clients that couldn't be accepted, and those whose address is unknown.
    pub accept_errors: AtomicU64,
    /// Clients that asked for the loopback fast path and got it.
    pub fast_path_accepted: AtomicU64,
    /// Clients that asked for the loopback fast path and stayed on TCP.
    pub fast_path_declined: AtomicU64,
}

impl ServerState {
    pub fn new(engine: Engine) -> ServerState {
        ServerState {
            engine,
            thread_pool: Arc::default(),
            auth_cache: AuthCache::default(),
            tls: Tls::default(),
            group_commit_delay: GroupCommitDelay::default(),
            sync_thread: Arc::default(),
            migration: MigrationPolicy::default(),
            when_idle: None,
            awaiting_reuse_max: AtomicUsize::new(0),
            spare_descriptor: SpareDescriptor::default(),
            inboxes: OnceLock::new(),
            slots: ConnectionSlots::default(),
            stop_request: StopRequest::default(),
            traffic: Arc::default(),
            account_limits: AccountLimits::default(),
            host_names: Arc::default(),
            query_logs: QueryLogs::default(),
            aborted_clients: AtomicU64::new(0),
            aborted_connects: AtomicU64::new(0),
            locked_connects: AtomicU64::new(0),
            refused_full: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            fast_path_accepted: AtomicU64::new(0),
            fast_path_declined: AtomicU64::new(0),
        }
    }

    /// Lowers `max_connections` to what the limit of descriptors bears. Everything that is opened
    /// before the first client must be open already.
    pub fn allocate_descriptors(&self, workers: usize, rings: bool) {
        let variables = self.engine.variables();
        let request = DescriptorRequest {
            max_connections: variables.max_connections(),
            workers: workers as u64,
            rings,
        };
        let (limit, open) = (descriptors::limit(), descriptors::open());
        let budget = request.allocate(limit, open);
        self.awaiting_reuse_max
            .store(budget.awaiting_reuse, Ordering::Relaxed);
        let (most, requested) = (budget.connections, request.max_connections);
        if most < requested {
            let required = request.required(open);
            tracing::warn!("Changed limits: max_open_files: {limit} (requested {required})");
            tracing::warn!("Changed limits: max_connections: {most} (requested {requested})");
        }
        variables.limit_connections(most);
    }

    // ── Admission ────────────────────────────────────────────────────────────────────────────

    fn max_connections(&self) -> usize {
        usize::try_from(self.engine.variables().max_connections()).unwrap_or(usize::MAX)
    }

    /// A slot for a new connection, if there is one left: the administrator's if it is the last.
    pub fn take_slot(&self) -> Option<ConnectionSlot> {
        self.slots.take(self.max_connections())
    }

    /// A slot for a new connection that isn't the administrator's.
    pub fn take_ordinary_slot(&self) -> Option<ConnectionSlot> {
        self.slots.take_ordinary(self.max_connections())
    }

    /// No slot is left but the administrator's.
    pub fn is_full(&self) -> bool {
        self.slots.taken() >= self.max_connections()
    }

    /// One of the connections that the account may have; `None` where there is no limit.
    ///
    /// # Errors
    /// 1203 or 1226 if it has as many as it may have, at a time or in an hour.
    pub fn take_account_slot(
        &self,
        account: Option<&Account>,
    ) -> Result<Option<AccountSlot>, Error> {
        let Some(account) = account else {
            return Ok(None);
        };
        let most = self.engine.variables().max_user_connections();
        let slot = self.account_limits.take(account, most)?;
        let limits = &account.policy.limits;
        let counted = account.usage.count_connection(limits, now_us());
        counted.map_err(|reached| Error::user_hour_reached(&account.user, reached.most))?;
        Ok(slot)
    }

    /// A client broke off before it had logged in, sent what isn't a login, or took too long.
    pub fn handshake_failed(&self, peer: Peer) {
        self.record_refused(peer, Refusal::Handshake);
    }

    /// A client was refused.
    pub fn record_refused(&self, peer: Peer, why: Refusal) {
        self.aborted_connects.fetch_add(1, Ordering::Relaxed);
        if let Some(address) = peer.remote_ip() {
            self.engine.hosts().record_refusal(address, why);
        }
    }

    /// Whether clients may log in over this stream.
    ///
    /// # Errors
    /// 3159 if `require_secure_transport` forbids it.
    pub fn check_transport(&self, stream: &Stream) -> Result<(), Error> {
        match self.engine.variables().require_secure_transport() && !stream.is_secure() {
            true => Err(Error::secure_transport_required()),
            false => Ok(()),
        }
    }

    /// What a stream may carry beside packets as they are: TLS, compression.
    pub fn layers_of(&self, stream: &Stream) -> Capabilities {
        let mut layers = Capabilities::empty();
        if stream.can_have_layers() {
            layers.set(Capabilities::SSL, self.tls.is_on());
            for word in self.compression_algorithms().split(',') {
                layers |= match word.trim() {
                    "zlib" => Capabilities::COMPRESS,
                    "zstd" => Capabilities::ZSTD_COMPRESSION,
                    _ => Capabilities::empty(),
                };
            }
        }
        layers
    }

    fn compression_algorithms(&self) -> CompactString {
        let variables = self.engine.variables();
        variables.get_text("protocol_compression_algorithms")
    }

    /// Whether clients may come whose packets are compressed so, or not at all.
    ///
    /// # Errors
    /// 3922 if they have to be compressed, 3923 for a level that there isn't.
    pub fn check_compression(
        &self,
        algorithm: Option<Algorithm>,
        stream: &Stream,
    ) -> Result<(), Error> {
        match algorithm {
            None if stream.is_ring() || stream.is_in_process() => Ok(()),
            Some(Algorithm::Zstd { level }) if !(1..=22).contains(&level) => {
                Err(Error::wrong_compression_level("zstd"))
            }
            Some(_) => Ok(()),
            None if self.compression_algorithms().contains("uncompressed") => Ok(()),
            None => Err(Error::wrong_compression_algorithm("uncompressed")),
        }
    }

    /// Whether clients of this host may try to log in, and the host, which may still have to be
    /// looked up: then [`check_host`](Self::check_host) is to follow.
    ///
    /// # Errors
    /// 1129 if they have broken off too often, 1130 if no account is for them.
    pub fn admit_host(&self, peer: Peer) -> Result<ClientHost, Error> {
        self.check_connect_errors(peer)?;
        let by_address = self.engine.variables().get_u64("skip_name_resolve") != 0;
        let host = match peer.remote_ip() {
            Some(address) if !by_address => self.host_names.find(address, &self.engine.shared),
            _ => ClientHost::Known(peer.host().into()),
        };
        if let ClientHost::Known(host) = &host {
            self.check_host(peer, host)?;
        }
        Ok(host)
    }

    /// Whether any account is for users from this host.
    ///
    /// # Errors
    /// 1130 if none is.
    pub fn check_host(&self, peer: Peer, host: &str) -> Result<(), Error> {
        if peer == Peer::SameUser || self.engine.hears_host(host, peer.ip()) {
            return Ok(());
        }
        self.record_refused(peer, Refusal::NoAccount);
        Err(Error::host_not_privileged(host))
    }

    fn check_connect_errors(&self, peer: Peer) -> Result<(), Error> {
        let Some(address) = peer.remote_ip() else {
            return Ok(());
        };
        let variables = self.engine.variables();
        let most = variables.get_u64("max_connect_errors");
        let hosts = usize::try_from(variables.get_u64("host_cache_size")).unwrap_or(0);
        if self.engine.hosts().admits(address, most, hosts) {
            return Ok(());
        }
        Err(Error::host_is_blocked(address))
    }

    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.engine.variables().connect_timeout())
    }

    // ── Commits ──────────────────────────────────────────────────────────────────────────────

    /// Commits of all workers that are not on disk yet, or whose replies are still held back.
    pub fn pending_commits(&self) -> usize {
        let commits = self
            .inboxes()
            .iter()
            .map(|inbox| inbox.commits.load(Ordering::SeqCst));
        commits.sum()
    }

    /// Has the sync thread sync the commits that wait. False if there is no such thread.
    pub fn request_sync(&self) -> bool {
        self.sync_thread.request(|| {
            let engine = self.engine.clone();
            let inboxes = self.inboxes().to_vec();
            SyncTasks {
                sync: Box::new(move || {
                    engine.sync_pending();
                }),
                notify: Box::new(move || notify_sync_pending(&inboxes)),
            }
        })
    }

    /// One a worker; none before the workers are made.
    pub fn inboxes(&self) -> &[Arc<WorkerInbox>] {
        self.inboxes.get().map_or(&[], Vec::as_slice)
    }

    /// COM_STATISTICS' line of figures.
    pub fn statistics(&self) -> String {
        self.engine.statistics()
    }
}

/// Tells the workers whose commits wait for a sync.
pub(crate) fn notify_sync_pending(inboxes: &[Arc<WorkerInbox>]) {
    for inbox in inboxes {
        if inbox.commits.load(Ordering::SeqCst) > 0 {
            inbox.send(WorkerMessage::SyncPending);
        }
    }
}

/// Whether somebody has asked the server to stop.
#[derive(Clone, Default)]
pub(crate) struct StopRequest(Arc<(Mutex<bool>, Condvar)>);

impl StopRequest {
    pub fn request(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    pub fn wait(&self) {
        let mut requested = self.0.0.lock();
        while !*requested {
            self.0.1.wait(&mut requested);
        }
    }
}
