//! The queue of a metadata lock: its obtrusive holders, its waiters, and the order they are granted
//! in.
//!
//! A request names all that a statement needs at once, each object with its mode. It is granted as
//! a whole or waits as a whole. While it waits it holds nothing, so it is in nobody's way with a
//! part of what it needs; and requests that come later queue behind it on each of its objects, so
//! they don't overtake it.
//!
//! ```text
//! request ─► pending ─┬─ no conflicting holder, no waiter before it, fast paths drained ─► granted: tickets
//!                     ├─ lock_wait_timeout (1205), KILL (1317)
//!                     └─ the victim of a deadlock (1213)
//! ```
//!
//! Whenever a ticket, a request or an unobtrusive lock whose gate is watched goes, the thread that
//! released it looks through the pending requests in the order they came, and grants those that
//! can be granted now. One mutex guards all of this; statements that meet no DDL never touch it
//! ([`super::fast_path`]).
//!
//! An upgrade is a request by a session that holds tickets already. Requests that wait for these
//! tickets don't go before it: they can't.
//!
//! A writer that fills a table with very many rows keeps other writers out, if there are none
//! ([`MetadataLocks::try_keep_writers_out`]): it gets a ticket beside its unobtrusive lock, at once or
//! not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Instant;

use compact_str::CompactString;
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use smallvec::SmallVec;

use super::Locks;
use super::fast_path::{self, HasFastPath};
use super::graph;
use super::mode::{Mode, TableId};
use super::process::EXECUTING;

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// Everything that statements change.
    Global,
    /// Everything that transactions commit.
    Commit,
    /// What changes definitions, accounts and files beside the log.
    Backup,
    /// A schema, by its name.
    Schema(CompactString),
    /// A table or view.
    Table(TableId),
    /// A stored function.
    Function(TableId),
    /// A stored procedure.
    Procedure(TableId),
}

impl Object {
    fn waiting_state(&self) -> &'static str {
        match self {
            Object::Global => "Waiting for global read lock",
            Object::Commit => "Waiting for commit lock",
            Object::Backup => "Waiting for backup lock",
            Object::Schema(_) => "Waiting for schema metadata lock",
            Object::Table(_) => "Waiting for table metadata lock",
            Object::Function(_) => "Waiting for stored function metadata lock",
            Object::Procedure(_) => "Waiting for stored procedure metadata lock",
        }
    }
}

/// For how long a lock is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// To the end of the statement.
    Statement,
    /// To the end of the transaction, which may be a statement's.
    Transaction,
    /// Until UNLOCK TABLES.
    Explicit,
}

impl Duration {
    /// As `performance_schema.metadata_locks` says it.
    pub fn name(self) -> &'static str {
        match self {
            Duration::Statement => "STATEMENT",
            Duration::Transaction => "TRANSACTION",
            Duration::Explicit => "EXPLICIT",
        }
    }
}

/// One object of a request. Schemas have no fast_path: nobody holds them but by tickets.
#[derive(Clone)]
pub struct MdlRequest {
    /// What to lock.
    pub object: Object,
    /// How.
    pub mode: Mode,
    /// Shown to users; the requester releases the lock.
    pub duration: Duration,
    /// Where unobtrusive locks of the object are counted; `None` for schemas, and for a lock that a
    /// ticket is to hold.
    pub fast_path: Option<Arc<dyn HasFastPath>>,
}

impl MdlRequest {
    /// Whether the lock, once granted, is an unobtrusive one that the fast path counts.
    fn is_unobtrusive(&self) -> bool {
        self.fast_path.is_some() && fast_path::side(self.mode).is_some()
    }
}

/// The session that requests locks.
#[derive(Clone, Copy)]
pub struct MdlRequester<'a> {
    /// All locks, for the search for cycles.
    pub locks: &'a Locks,
    /// The session, which also says how long it waits (`lock_wait_timeout`).
    pub session: &'a SessionVars,
    /// Wakes it.
    pub waiter: &'a Arc<Waiter>,
}

/// A session that may sleep for a lock. A wake-up that comes while it is awake ends its next wait
/// at once.
#[derive(Default)]
pub struct Waiter {
    is_woken: Mutex<bool>,
    condvar: Condvar,
}

impl Waiter {
    /// Wakes the session; if it does not wait, its next wait ends at once.
    pub fn wake(&self) {
        *self.is_woken.lock() = true;
        self.condvar.notify_all();
    }

    /// Sleeps until [`wake`](Self::wake) is called, or the deadline comes.
    fn wait(&self, deadline: Option<Instant>) {
        let mut is_woken = self.is_woken.lock();
        while !*is_woken {
            match deadline {
                None => self.condvar.wait(&mut is_woken),
                Some(deadline) => {
                    if self.condvar.wait_until(&mut is_woken, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        *is_woken = false;
    }
}

const WAITING: u8 = 0;
const GRANTED: u8 = 1;
const REFUSED: u8 = 2;

struct Request {
    number: u64,
    session: u64,
    wants: Vec<MdlRequest>,
    /// The tickets that it makes stronger, by their grant.
    upgrades: Option<u64>,
    outcome: AtomicU8,
    waiter: Arc<Waiter>,
}

impl Request {
    fn end(&self, outcome: u8) {
        self.outcome.store(outcome, Ordering::SeqCst);
        self.waiter.wake();
    }
}

struct Ticket {
    grant: u64,
    session: u64,
    mode: Mode,
    duration: Duration,
}

struct Pending {
    request: u64,
    session: u64,
    mode: Mode,
}

/// The tickets of an object, and the requests for it.
#[derive(Default)]
struct Queue {
    tickets: SmallVec<[Ticket; 1]>,
    pending: SmallVec<[Pending; 1]>,
}

impl Queue {
    /// The sessions that a request for a mode waits for: holders, and waiters that go first.
    fn obstacles(&self, session: u64, mode: Mode) -> impl Iterator<Item = u64> {
        let holders = self
            .tickets
            .iter()
            .filter(move |ticket| ticket.session != session && mode.waits_for(ticket.mode))
            .map(|ticket| ticket.session);
        let own: SmallVec<[Mode; 2]> = self
            .tickets
            .iter()
            .filter(|ticket| ticket.session == session)
            .map(|ticket| ticket.mode)
            .collect();
        let waiters = self
            .pending
            .iter()
            .filter(move |other| {
                // A request that waits for this session itself can't go first.
                let waits_for_own = own.iter().any(|own| other.mode.waits_for(*own));
                other.session != session && mode.stands_behind(other.mode) && !waits_for_own
            })
            .map(|other| other.session);
        holders.chain(waiters)
    }

    fn gate(&self) -> fast_path::Gate {
        fast_path::gate(
            self.tickets.iter().map(|ticket| ticket.mode),
            self.pending.iter().map(|pending| pending.mode),
        )
    }

    fn is_empty(&self) -> bool {
        self.tickets.is_empty() && self.pending.is_empty()
    }
}

#[derive(Default)]
struct State {
    queues: HashMap<Object, Queue>,
    /// In the order they came.
    requests: Vec<Arc<Request>>,
    last: u64,
}

impl State {
    /// Sets the gate of a fast path as its queue asks.
    fn set_gate(&mut self, want: &MdlRequest) {
        let queue = self.queues.get(&want.object);
        if let Some(fast_path) = &want.fast_path {
            let gate = queue.map_or_else(|| Queue::default().gate(), Queue::gate);
            fast_path.fast_path().set_gate(&gate);
        }
        if queue.is_some_and(Queue::is_empty) {
            self.queues.remove(&want.object);
        }
    }

    fn add(&mut self, request: &Arc<Request>) {
        for want in &request.wants {
            let queue = self.queues.entry(want.object.clone()).or_default();
            queue.pending.push(Pending {
                request: request.number,
                session: request.session,
                mode: want.mode,
            });
            self.set_gate(want);
        }
        self.requests.push(Arc::clone(request));
    }

    /// Takes a request off the queues.
    fn remove_pending(&mut self, request: &Request) {
        for want in &request.wants {
            if let Some(queue) = self.queues.get_mut(&want.object) {
                queue
                    .pending
                    .retain(|pending| pending.request != request.number);
            }
        }
    }

    fn remove(&mut self, request: &Request) {
        self.requests.retain(|known| known.number != request.number);
        self.remove_pending(request);
        for want in &request.wants {
            self.set_gate(want);
        }
    }

    /// Whether it is a request's turn: if so, it has what it wants.
    fn try_grant(&mut self, request: &Request) -> bool {
        let in_the_way = request.wants.iter().any(|want| {
            self.queues
                .get(&want.object)
                .is_some_and(|queue| queue.obstacles(request.session, want.mode).next().is_some())
        });
        if in_the_way || !self.are_drained(request) {
            return false;
        }
        self.remove_pending(request);
        for want in &request.wants {
            match (&want.fast_path, fast_path::side(want.mode)) {
                (Some(fast_path), Some(side)) => fast_path.fast_path().enter(side),
                _ => self.give_ticket(request, want),
            }
            self.set_gate(want);
        }
        true
    }

    /// Whether all unobtrusive locks are released that a request waits for. If so, the gates stay
    /// closed to others.
    fn are_drained(&mut self, request: &Request) -> bool {
        let drains = |want: &&MdlRequest| fast_path::drains(want.mode);
        let fast_paths: SmallVec<[(&MdlRequest, &Arc<dyn HasFastPath>); 4]> = request
            .wants
            .iter()
            .filter(drains)
            .filter_map(|want| want.fast_path.as_ref().map(|fast_path| (want, fast_path)))
            .collect();
        if fast_paths.is_empty() {
            return true;
        }
        for (want, fast_path) in &fast_paths {
            fast_path.fast_path().bar_for(want.mode);
        }
        fast_path::fence();
        let drained = fast_paths
            .iter()
            .all(|(want, fast_path)| fast_path.fast_path().is_drained_for(want.mode));
        if !drained {
            for (want, _) in fast_paths {
                self.set_gate(want);
            }
        }
        drained
    }

    fn give_ticket(&mut self, request: &Request, want: &MdlRequest) {
        let queue = self.queues.entry(want.object.clone()).or_default();
        let old = request.upgrades.and_then(|grant| {
            let mut tickets = queue.tickets.iter_mut();
            tickets.find(|ticket| ticket.grant == grant)
        });
        match old {
            Some(ticket) => ticket.mode = want.mode,
            None => queue.tickets.push(Ticket {
                grant: request.number,
                session: request.session,
                mode: want.mode,
                duration: want.duration,
            }),
        }
    }

    /// Grants what has become free to requests that `may` have waited for it.
    fn hand_over(&mut self, may: impl Fn(&Request) -> bool) {
        let mut at = 0;
        while let Some(request) = self.requests.get(at) {
            let request = Arc::clone(request);
            if may(&request) && self.try_grant(&request) {
                self.requests.remove(at);
                request.end(GRANTED);
            } else {
                at += 1;
            }
        }
    }
}

/// A lock as `performance_schema.metadata_locks` shows it.
pub struct MdlRow {
    /// The connection id.
    pub session: u64,
    /// What is locked.
    pub object: Object,
    /// How it is locked.
    pub mode: Mode,
    /// For how long.
    pub duration: Duration,
    /// False while the session waits for it.
    pub is_granted: bool,
}

/// All that is locked, and waited for, by name.
#[derive(Default)]
pub struct MetadataLocks {
    state: Mutex<State>,
    waiters: AtomicUsize,
}

impl std::fmt::Debug for MetadataLocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetadataLocks").finish_non_exhaustive()
    }
}

/// What a session holds by tickets, until dropped.
#[derive(Default)]
pub struct MdlTicket {
    number: u64,
    wants: Vec<MdlRequest>,
    locks: Option<Arc<MetadataLocks>>,
}

impl MdlTicket {
    /// Makes all of it stronger. If that fails, it is held as it was.
    pub fn upgrade(&mut self, requester: MdlRequester<'_>, mode: Mode) -> Result<()> {
        let Some(locks) = self.locks.clone() else {
            return Ok(());
        };
        let mut wants = self.wants.clone();
        for want in &mut wants {
            want.mode = mode;
        }
        locks.ask(requester, wants, Some(self.number)).map(|_| ())
    }
}

impl Drop for MdlTicket {
    fn drop(&mut self) {
        if let Some(locks) = self.locks.take() {
            locks.release(self.number, &self.wants);
        }
    }
}

impl MetadataLocks {
    /// Waits for locks that are held by tickets.
    pub fn acquire(
        self: &Arc<Self>,
        requester: MdlRequester<'_>,
        wants: Vec<MdlRequest>,
    ) -> Result<MdlTicket> {
        if wants.is_empty() {
            return Ok(MdlTicket::default());
        }
        let number = self.ask(requester, wants.clone(), None)?;
        Ok(MdlTicket {
            number,
            wants,
            locks: Some(Arc::clone(self)),
        })
    }

    /// Keeps writers of an object out that the session is inside of as a writer, for as long as the
    /// ticket lives: SHARED_NO_WRITE beside its SHARED_WRITE. `None` if there are other writers, or
    /// somebody waits for a stronger lock.
    pub fn try_keep_writers_out(
        self: &Arc<Self>,
        session: u64,
        object: Object,
        fast_path: &Arc<dyn HasFastPath>,
    ) -> Option<MdlTicket> {
        let want = MdlRequest {
            object,
            mode: Mode::SharedNoWrite,
            duration: Duration::Transaction,
            fast_path: Some(Arc::clone(fast_path)),
        };
        let mut state = self.state.lock();
        let queue = state.queues.get(&want.object);
        let in_the_way = |queue: &Queue| queue.obstacles(session, want.mode).next().is_some();
        if queue.is_some_and(in_the_way) {
            return None;
        }
        // While the mutex is held no lock is granted that waits for this writer to leave.
        fast_path.fast_path().bar_for(want.mode);
        fast_path::fence();
        if !fast_path.fast_path().has_one_writer() {
            state.set_gate(&want);
            return None;
        }
        state.last += 1;
        let number = state.last;
        let queue = state.queues.entry(want.object.clone()).or_default();
        queue.tickets.push(Ticket {
            grant: number,
            session,
            mode: want.mode,
            duration: want.duration,
        });
        state.set_gate(&want);
        Some(MdlTicket {
            number,
            wants: vec![want],
            locks: Some(Arc::clone(self)),
        })
    }

    /// Waits for locks that are held by being inside a fast_path: the requester leaves each, when
    /// it has done.
    pub fn enter(&self, requester: MdlRequester<'_>, wants: Vec<MdlRequest>) -> Result<()> {
        debug_assert!(wants.iter().all(MdlRequest::is_unobtrusive));
        self.ask(requester, wants, None).map(|_| ())
    }

    #[cold]
    fn ask(
        &self,
        requester: MdlRequester<'_>,
        wants: Vec<MdlRequest>,
        upgrades: Option<u64>,
    ) -> Result<u64> {
        let session = requester.session;
        let mut state = self.state.lock();
        state.last += 1;
        let request = Arc::new(Request {
            number: state.last,
            session: session.connection_id,
            wants,
            upgrades,
            outcome: AtomicU8::new(WAITING),
            waiter: Arc::clone(requester.waiter),
        });
        // The gate is watched from here on, so a release after the first look wakes this request.
        state.add(&request);
        if state.try_grant(&request) {
            state.requests.pop();
            return Ok(request.number);
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        drop(state);
        let ended = self.sleep(requester, &request);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        if ended.is_err() {
            let mut state = self.state.lock();
            // It may have been granted at the last moment.
            if request.outcome.load(Ordering::SeqCst) == GRANTED {
                return Ok(request.number);
            }
            state.remove(&request);
            state.hand_over(|_| true);
        }
        ended.map(|()| request.number)
    }

    fn sleep(&self, requester: MdlRequester<'_>, request: &Request) -> Result<()> {
        let MdlRequester {
            locks,
            session,
            waiter,
        } = requester;
        let began = Instant::now();
        let deadline = began.checked_add(session.metadata_lock_timeout());
        let control = locks.sessions.find(session.connection_id);
        if let (Some(control), Some(want)) = (&control, request.wants.first()) {
            control.set_state(want.object.waiting_state());
        }
        let ended = graph::break_cycles(locks, session.connection_id).and_then(|()| {
            locks.before_waiting();
            loop {
                match request.outcome.load(Ordering::SeqCst) {
                    GRANTED => return Ok(()),
                    REFUSED => return Err(Error::deadlock()),
                    _ => {}
                }
                if session.interrupt.is_set() {
                    return Err(Error::query_interrupted());
                }
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    return Err(Error::lock_wait_timeout());
                }
                waiter.wait(deadline);
            }
        });
        if let Some(control) = &control {
            control.set_state(EXECUTING);
        }
        session.interrupt.note_wait(began);
        ended
    }

    fn release(&self, grant: u64, wants: &[MdlRequest]) {
        let mut state = self.state.lock();
        for want in wants {
            if let Some(queue) = state.queues.get_mut(&want.object) {
                queue.tickets.retain(|ticket| ticket.grant != grant);
            }
            state.set_gate(want);
        }
        state.hand_over(|_| true);
    }

    /// An unobtrusive lock was released whose gate is watched.
    #[cold]
    pub(super) fn holder_released(&self) {
        let drains = |request: &Request| {
            request
                .wants
                .iter()
                .any(|want| fast_path::drains(want.mode))
        };
        self.state.lock().hand_over(drains);
    }

    // --- what the graph of waits asks
    // ------------------------------------------------------------------------

    pub(super) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    /// How many sessions wait.
    pub fn waiting(&self) -> usize {
        self.waiters.load(Ordering::SeqCst)
    }

    /// What each waiting session wants, and whom it waits for by name.
    pub(super) fn waits(&self) -> HashMap<u64, Wait> {
        let state = self.state.lock();
        let wait = |request: &Arc<Request>| {
            let mut wait = Wait::default();
            for want in &request.wants {
                wait.weight = wait.weight.max(want.mode.weight());
                wait.wants.push((want.object.clone(), want.mode));
                if let Some(queue) = state.queues.get(&want.object) {
                    wait.obstacles
                        .extend(queue.obstacles(request.session, want.mode));
                }
            }
            (request.session, wait)
        };
        state.requests.iter().map(wait).collect()
    }

    /// Ends a session's wait with a deadlock error: it is the victim.
    pub(super) fn refuse(&self, session: u64) {
        let mut state = self.state.lock();
        let mut requests = state.requests.iter();
        if let Some(request) = requests.find(|request| request.session == session) {
            let request = Arc::clone(request);
            state.remove(&request);
            request.end(REFUSED);
            state.hand_over(|_| true);
        }
    }

    /// All tickets and requests.
    pub fn shown(&self) -> Vec<MdlRow> {
        let state = self.state.lock();
        let mut shown = Vec::new();
        for (object, queue) in &state.queues {
            shown.extend(queue.tickets.iter().map(|ticket| MdlRow {
                session: ticket.session,
                object: object.clone(),
                mode: ticket.mode,
                duration: ticket.duration,
                is_granted: true,
            }));
        }
        for request in &state.requests {
            shown.extend(request.wants.iter().map(|want| MdlRow {
                session: request.session,
                object: want.object.clone(),
                mode: want.mode,
                duration: want.duration,
                is_granted: false,
            }));
        }
        shown
    }
}

/// A session's wait, as the graph sees it.
#[derive(Default)]
pub(super) struct Wait {
    pub(super) wants: Vec<(Object, Mode)>,
    /// The sessions that hold a conflicting ticket, or wait and go first.
    pub(super) obstacles: Vec<u64>,
    pub(super) weight: u8,
}
