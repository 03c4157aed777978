//! A worker: an event loop over its connections.
//!
//! ```text
//!  ┌─► mail ──► serve each ready connection ([`Ready`]) to the end of what it sent ──► nothing ready?
//!  │                                                                        │
//!  │     1. look once more without sleeping; commits that wait are synced, on this thread if
//!  │        there is nothing else to do or clients look for their replies themselves, otherwise by the
//!  │        [`Syncer`](crate::syncer::Syncer)
//!  │     2. look for a little longer, as long as that has been worth it lately ([`Spin`])
//!  └──── 3. sleep until a socket, a letter or a deadline
//! ```
//!
//! Newcomers are let in by the [`acceptor`], a few a turn.
//!
//! Of sockets the system tells when they are ready. Connections over shared memory that were served lately are *looked at*
//! instead, which takes no system call; before the loop sleeps, and when they have been silent for a while, they are armed:
//! then their clients ring. So a client costs nothing while it is silent, and no system call while it isn't.
//!
//! Replies of one turn over sockets go out together ([`EventLoop::send_held`]): each wakes a client, who would
//! interrupt this thread or, worse, the other core, once for each reply.
//!
//! A connection is in its slot, or out: being served by the thread that runs this loop, or by one that
//! had to leave the loop because its statement waits ([`crate::crew`]). That thread sends the
//! connection back by mail. While it is out, its socket is still watched, so that a client that dies is
//! noticed at once, whatever its statement waits for.
//!
//! A commit that is not yet on disk keeps its connection in the slot, with its reply held back,
//! until a letter says it is durable.

mod acceptor;
mod spin;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use parking_lot::Mutex;
use porpoise_engine::Control;
use porpoise_protocol::frame::{PacketReader, PacketWriter};
use porpoise_storage::Commit;
use porpoise_transport::spin::Spin as RingSpin;

use crate::connection::{Connection, Next};
use crate::crew::{self, Crew};
use crate::listener::Listener;
use crate::outlet::Traffic;
use crate::placement::Moves;
use crate::ready::{Ready, Seen};
use crate::server::Shared;
use crate::timers::{Deadline, Timers};

use acceptor::{Acceptor, Nobody};
use spin::Spin;

const WAKE: Token = Token(usize::MAX);
/// Listeners' tokens lie below [`WAKE`], connections' from 0 up.
const FIRST_LISTENER: usize = usize::MAX - 64;
const EVENTS_MAX: usize = 256;

/// The longest time that replies wait for the other replies of their turn.
const HOLD_MAX: Duration = Duration::from_micros(200);

/// So many connections that a worker has served of late, beside those that wait for a sync, are worth a hand-over.
const OTHERS_MIN: usize = 2;

/// While a sync takes less, a worker with rings does it itself, whoever else it has served: their clients take their
/// replies and put their next statements meanwhile, without anybody having to wake.
const HAND_OVER_MIN: Duration = Duration::from_micros(250);

/// How many turns commits may wait for more to share their sync.
const TURNS_UNSYNCED_MAX: usize = 1;

/// Turns that rings alone may have before sockets are looked at again.
const TURNS_RINGS_ONLY_MAX: u32 = 16;
/// Looks at rings, while there is nothing else to do, before sockets are looked at again.
const LOOKS_RINGS_ONLY_MAX: u32 = 128;
/// How long a ring may be silent before it is looked at no more.
const RING_IDLE_MAX: Duration = Duration::from_millis(5);

/// A sleep that is longer has found the worker idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Clients that a worker lets in before it serves those it has.
const ACCEPTS_A_TURN: usize = 8;

/// What a thread needs to serve any connection, one at a time: a buffer for each direction. A connection
/// that waits for its next command has none of its own.
pub(crate) struct Desk {
    pub reader: PacketReader,
    pub writer: PacketWriter,
    /// More connections are ready: a small reply waits for theirs.
    pub holds_replies: bool,
}

impl Default for Desk {
    fn default() -> Desk {
        Desk {
            reader: PacketReader::new(0),
            writer: PacketWriter::new(),
            holds_replies: false,
        }
    }
}

impl Desk {
    /// Gives back what a large statement left.
    pub fn tidy(&mut self) {
        *self = Desk::default();
    }
}

/// How other threads reach a worker.
pub(crate) struct Mailbox {
    /// `None` once the worker has ended: nobody would read them.
    letters: Mutex<Option<Vec<Letter>>>,
    /// The worker sleeps, or is about to: a letter must be followed by a wake.
    asleep: AtomicBool,
    waker: mio::Waker,
    /// Connections that this worker has.
    pub connections: AtomicUsize,
    pub traffic: Arc<Traffic>,
    /// Commits of its connections that are not on disk yet.
    pub commits: AtomicUsize,
}

pub(crate) enum Letter {
    /// A connection that another worker had.
    Adopt(Box<Connection>),
    /// A statement that waited on its own thread is done.
    Return(Token, Box<Connection>, Next),
    /// The connection's commit is on disk, or never will be.
    Durable(Token, porpoise_storage::Result<()>),
    /// Commits wait for somebody to sync them: whoever did it last has done its batch.
    Sync,
    /// The connection was killed: look at it, even if its client is silent.
    Killed(Token),
    /// End: idle connections now, statements at the given time.
    Stop(Instant),
}

impl Mailbox {
    /// What comes after the worker has ended is dropped.
    pub fn send(&self, letter: Letter) {
        drop(self.post(letter));
    }

    /// Gives the letter back if the worker has ended.
    fn post(&self, letter: Letter) -> Result<(), Letter> {
        match &mut *self.letters.lock() {
            Some(letters) => letters.push(letter),
            None => return Err(letter),
        }
        // The order of this and of the worker's own store and look: one of the two sees the other.
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!("can't wake a worker: {error}");
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.letters.lock().as_ref().is_none_or(Vec::is_empty)
    }

    /// Takes no more letters from here on, unless there are some: false.
    fn end(&self) -> bool {
        let mut letters = self.letters.lock();
        let is_empty = letters.as_ref().is_none_or(Vec::is_empty);
        if is_empty {
            *letters = None;
        }
        is_empty
    }
}

enum Place {
    Free,
    Here(Box<Connection>),
    /// Being served; its client may be noticed to be gone meanwhile.
    Out(Option<Arc<Control>>),
}

struct Slot {
    /// Told apart from the connections that had this slot before.
    generation: u32,
    place: Place,
    deadline: Deadline,
    /// In the ready queue.
    queued: bool,
    /// Something happened that it couldn't be served for: it was out, or its commit is pending.
    woken: bool,
    /// Its reply is held back: until its commit is durable, or for the other replies of the turn.
    replying: bool,
    /// Its ring is among those looked at.
    looked_at: bool,
    /// It was served since its ring was last found silent.
    active: bool,
    /// Its rings wait for their client to come back.
    kept: bool,
    /// In which stretch between two syncs it was last served.
    stretch: u32,
    /// It is in the middle of something.
    seen_under_way: Seen,
}

pub(crate) struct EventLoop {
    server: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    poll: Poll,
    events: Events,
    acceptor: Acceptor,
    slots: Vec<Slot>,
    free: Vec<u32>,
    ready: Ready,
    /// Connections whose replies are held back to the end of the turn, and since when.
    held: Vec<Token>,
    held_since: Instant,
    timers: Timers,
    spin: Spin,
    /// Connections whose rings are looked at; some may be gone or out.
    rings: Vec<Token>,
    ring_spin: RingSpin,
    turns_rings_only: u32,
    /// When silent rings are armed next.
    arm_silent_at: Instant,
    /// Slots whose rings are kept for clients that may come back.
    kept: usize,
    /// Turns since commits began to wait for a sync.
    turns_unsynced: usize,
    /// Connections that were served since the last sync, and the number of that stretch of time.
    served: usize,
    stretch: u32,
    /// The last sync was this thread's, for the one client it has lately had.
    synced_alone: bool,
    stopping: Option<Instant>,
    now: Instant,
}

fn token(index: usize, generation: u32) -> Token {
    Token((generation as usize & 0x7FFF_FFFF) << 32 | index)
}

impl EventLoop {
    /// What a loop waits on, and how others reach it: made before the loops, which all know each other.
    pub fn open() -> io::Result<(Poll, Arc<Mailbox>)> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), WAKE)?;
        let mailbox = Mailbox {
            letters: Mutex::new(Some(Vec::new())),
            asleep: AtomicBool::new(false),
            waker,
            connections: AtomicUsize::new(0),
            traffic: Arc::default(),
            commits: AtomicUsize::new(0),
        };
        Ok((poll, Arc::new(mailbox)))
    }

    pub fn with_listeners(
        server: Arc<Shared>,
        poll: Poll,
        mailbox: Arc<Mailbox>,
        listeners: Arc<[Listener]>,
    ) -> io::Result<Box<EventLoop>> {
        let traffic = mailbox.traffic.clone();
        let acceptor = Acceptor::open(server.clone(), listeners, traffic, poll.registry())?;
        Ok(Box::new(EventLoop {
            server,
            mailbox,
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            acceptor,
            slots: Vec::new(),
            free: Vec::new(),
            ready: Ready::default(),
            held: Vec::new(),
            held_since: Instant::now(),
            timers: Timers::default(),
            spin: Spin::default(),
            rings: Vec::new(),
            ring_spin: RingSpin::default(),
            turns_rings_only: 0,
            arm_silent_at: Instant::now(),
            kept: 0,
            turns_unsynced: 0,
            served: 0,
            stretch: 0,
            synced_alone: false,
            stopping: None,
            now: Instant::now(),
        }))
    }

    pub fn crew(&self) -> Arc<Crew> {
        self.server.crew.clone()
    }

    /// Runs until the server ends or until a statement has to wait; then another thread has the loop.
    pub fn run(mut self: Box<Self>, desk: &mut Desk) {
        // Of the turn in which the statement before has left the loop.
        self.send_held();
        loop {
            self.read_mail();
            self.ready.begin_turn();
            let mut is_first = true;
            while let Some(token) = self.next_ready(is_first) {
                is_first = false;
                desk.holds_replies = !self.ready.is_empty() || !self.held.is_empty();
                let Some(mut connection) = self.check_out(token) else {
                    continue;
                };
                self.note_served(token);
                crew::lay_aside(self);
                let mut next = serve(&mut connection, desk);
                match crew::take_back() {
                    Some(back) => self = back,
                    None => {
                        // The turn that it would be held back for is over.
                        if matches!(next, Next::Held) {
                            next = connection.send_held();
                        }
                        let mailbox = connection.mailbox().clone();
                        mailbox.send(Letter::Return(token, connection, next));
                        return;
                    }
                }
                if matches!(next, Next::Held) {
                    self.note_held(token);
                }
                self.check_in(token, connection, next);
                if !self.held.is_empty() && self.held_since.elapsed() > HOLD_MAX {
                    self.send_held();
                }
            }
            self.send_held();
            if self.has_ended() {
                return;
            }
            self.wait();
            self.expire();
        }
    }

    fn next_ready(&mut self, is_first: bool) -> Option<Token> {
        if self.stopping.is_some() {
            return self.ready.next_of_all();
        }
        self.ready.next(is_first, self.now)
    }

    fn note_served(&mut self, token: Token) {
        let stretch = self.stretch;
        if let Some(slot) = self.slot(token)
            && slot.stretch != stretch
        {
            slot.stretch = stretch;
            self.served += 1;
        }
    }

    fn note_held(&mut self, token: Token) {
        if self.held.is_empty() {
            self.held_since = Instant::now();
        }
        self.held.push(token);
    }

    /// Sends the replies that were held back for each other.
    fn send_held(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        for token in held.drain(..) {
            let Some(slot) = self.slot(token) else {
                continue;
            };
            slot.replying = false;
            if let Some(mut connection) = self.check_out(token) {
                let next = connection.send_held();
                self.check_in(token, connection, next);
            }
        }
        self.held = held;
    }

    // ── Slots ────────────────────────────────────────────────────────────────────────────────

    fn slot(&mut self, token: Token) -> Option<&mut Slot> {
        let (index, generation) = (token.0 & 0xFFFF_FFFF, token.0 >> 32);
        self.slots.get_mut(index).filter(|slot| {
            slot.generation as usize == generation && !matches!(slot.place, Place::Free)
        })
    }

    fn adopt(&mut self, mut connection: Box<Connection>) {
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                self.slots.push(Slot::free(0));
                self.slots.len() - 1
            }
        };
        let token = token(index, self.slots[index].generation);
        let is_new = connection.is_new();
        if let Err(error) = connection.register(self.poll.registry(), token, self.mailbox.clone()) {
            tracing::error!("can't watch a connection: {error}");
            self.free.push(index as u32);
            return;
        }
        self.mailbox.connections.fetch_add(1, Ordering::Relaxed);
        let due = connection.due(self.now);
        let is_ring = connection.is_ring();
        let is_killed = connection
            .control()
            .is_some_and(|control| control.is_connection_killed());
        let slot = &mut self.slots[index];
        slot.place = Place::Here(connection);
        if is_ring {
            let rings = &self.mailbox.traffic.rings;
            rings.fetch_add(u64::from(is_new), Ordering::Relaxed);
            self.look_at(token);
        }
        let slot = &mut self.slots[index];
        self.timers.set(index, &mut slot.deadline, due);
        // A connection may have been killed on its way here.
        if self.stopping.is_some() || is_killed {
            self.queue(token);
        }
    }

    fn release(&mut self, token: Token) {
        let index = token.0 & 0xFFFF_FFFF;
        let slot = &mut self.slots[index];
        let mut deadline = slot.deadline;
        deadline.vacate();
        self.ready.crowd.note(&mut slot.seen_under_way, false);
        *slot = Slot {
            deadline,
            ..Slot::free(slot.generation.wrapping_add(1) & 0x7FFF_FFFF)
        };
        self.free.push(index as u32);
        self.mailbox.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn queue(&mut self, token: Token) {
        let Some(slot) = self.slot(token) else { return };
        match &slot.place {
            Place::Here(connection) if !slot.replying => {
                if !slot.queued {
                    slot.queued = true;
                    let goes_first = slot.seen_under_way.is_some() || connection.is_over();
                    self.ready.push(token, goes_first, self.now);
                }
            }
            _ => slot.woken = true,
        }
    }

    fn check_out(&mut self, token: Token) -> Option<Box<Connection>> {
        let slot = self.slot(token)?;
        slot.queued = false;
        let out = Place::Out(match &slot.place {
            Place::Here(connection) => connection.control().cloned(),
            _ => return None,
        });
        let was_kept = std::mem::take(&mut slot.kept);
        let place = std::mem::replace(&mut slot.place, out);
        self.kept -= usize::from(was_kept);
        match place {
            Place::Here(connection) => Some(connection),
            _ => None,
        }
    }

    fn check_in(&mut self, token: Token, mut connection: Box<Connection>, next: Next) {
        let mut next = next;
        if self.stopping.is_some() && matches!(next, Next::Idle | Next::Kept) {
            next = Next::Close;
        }
        if matches!(next, Next::Kept) && self.kept >= self.server.kept_most.load(Ordering::Relaxed)
        {
            next = Next::Close;
        }
        let mut again = false;
        match connection.follow(self.poll.registry(), token) {
            Ok(false) => {}
            Ok(true) => {
                self.mailbox.traffic.rings.fetch_add(1, Ordering::Relaxed);
                // What came before anybody watched is told by nobody.
                again = true;
            }
            Err(error) => {
                tracing::error!("can't watch a connection: {error}");
                next = Next::Close;
            }
        }
        match &mut next {
            Next::Close => {
                connection.close(self.poll.registry());
                self.release(token);
                return;
            }
            Next::Idle if self.stopping.is_none() => {
                let better = if connection.take_misplaced() || self.moves_always() {
                    self.next_worker()
                } else if connection.takes_root() {
                    self.emptier_worker()
                } else {
                    None
                };
                if let Some(mailbox) = better {
                    self.hand_on(token, connection, &mailbox);
                    return;
                }
            }
            Next::Idle | Next::Kept => {}
            Next::Again => again = true,
            Next::Full => connection.watch_writable(self.poll.registry(), token),
            Next::Committing(_) | Next::Held => {}
        }
        let due = connection.due(self.now);
        let is_under_way = connection.is_under_way();
        if connection.is_ring() && !matches!(next, Next::Committing(_)) {
            self.look_at(token);
        }
        let Some(slot) = self.slot(token) else { return };
        slot.place = Place::Here(connection);
        slot.kept = matches!(next, Next::Kept);
        let mut seen = std::mem::take(&mut slot.seen_under_way);
        let kept = usize::from(slot.kept);
        let is_held = matches!(next, Next::Held);
        let committing = if let Next::Committing(commit) = next {
            Some(commit)
        } else {
            None
        };
        slot.replying = committing.is_some() || is_held;
        again |= std::mem::take(&mut slot.woken);
        self.kept += kept;
        self.ready.crowd.note(&mut seen, is_under_way);
        let index = token.0 & 0xFFFF_FFFF;
        let slot = &mut self.slots[index];
        slot.seen_under_way = seen;
        self.timers.set(index, &mut slot.deadline, due);
        if let Some(commit) = committing {
            self.mailbox.commits.fetch_add(1, Ordering::SeqCst);
            slot.woken = again;
            self.await_durable(token, commit);
        } else if again {
            self.queue(token);
        }
    }

    fn moves_always(&self) -> bool {
        self.server.moves == Moves::AfterEveryTurn
    }

    /// The worker after this one, if there are others.
    fn next_worker(&self) -> Option<Arc<Mailbox>> {
        let mailboxes = self.server.mailboxes();
        let here = mailboxes
            .iter()
            .position(|mailbox| Arc::ptr_eq(mailbox, &self.mailbox))?;
        let next = &mailboxes[(here + 1) % mailboxes.len()];
        (!Arc::ptr_eq(next, &self.mailbox)).then(|| next.clone())
    }

    /// The worker with the fewest connections, if it would still have fewer with one of this worker's.
    fn emptier_worker(&self) -> Option<Arc<Mailbox>> {
        let count = |mailbox: &Mailbox| mailbox.connections.load(Ordering::Relaxed);
        let mailboxes = self.server.mailboxes().iter();
        let fewest = mailboxes.min_by_key(|mailbox| count(mailbox))?;
        (count(fewest) + 1 < count(&self.mailbox)).then(|| fewest.clone())
    }

    fn hand_on(&mut self, token: Token, mut connection: Box<Connection>, to: &Mailbox) {
        connection.leave(self.poll.registry());
        self.release(token);
        self.mailbox.traffic.moves.fetch_add(1, Ordering::Relaxed);
        // A worker that has ended already takes nobody: then the server stops, and the connection is closed.
        drop(to.post(Letter::Adopt(connection)));
    }

    fn await_durable(&self, token: Token, commit: Commit) {
        let mailbox = self.mailbox.clone();
        let server = self.server.clone();
        commit.on_durable(Box::new(move |result| {
            server
                .sync_round
                .told(Instant::now(), server.commits_under_way());
            mailbox.send(Letter::Durable(token, result));
        }));
    }

    // ── Rings ────────────────────────────────────────────────────────────────────────────────

    /// Looks at this connection's ring from now on.
    fn look_at(&mut self, token: Token) {
        let Some(slot) = self.slot(token) else { return };
        slot.active = true;
        if !std::mem::replace(&mut slot.looked_at, true) {
            self.rings.push(token);
        }
    }

    /// Queues the connections whose rings hold something.
    fn look_at_rings(&mut self) -> bool {
        let mut found = false;
        for at in 0..self.rings.len() {
            let token = self.rings[at];
            if self.slot(token).is_some_and(|slot| slot.is_ready()) {
                self.queue(token);
                found = true;
            }
        }
        found
    }

    /// Has the clients ring: all of them before a sleep, otherwise those that have been silent. True: one has sent something
    /// just now.
    fn arm_rings(&mut self, all: bool) -> bool {
        let mut found = false;
        let mut rings = std::mem::take(&mut self.rings);
        rings.retain(|&token| {
            let Some(slot) = self.slot(token) else {
                return false;
            };
            if !all && std::mem::take(&mut slot.active) {
                return true;
            }
            slot.looked_at = false;
            // One that is out or committing is looked at again when it is back.
            if let Place::Here(connection) = &mut slot.place
                && !slot.replying
                && connection.arm()
            {
                self.queue(token);
                found = true;
            }
            false
        });
        self.rings = rings;
        found
    }

    /// Looks at the rings until one holds something, or a letter or a socket comes, or it isn't worth it any longer: false.
    fn spin_for_rings(&mut self) -> bool {
        let mut spin = std::mem::take(&mut self.ring_spin);
        let mut looks = 0;
        let won = spin.wait(|| {
            looks += 1;
            self.look_at_rings()
                || !self.mailbox.is_empty()
                || (looks % LOOKS_RINGS_ONLY_MAX == 0 && self.look(Some(Duration::ZERO)))
        });
        self.ring_spin = spin;
        let traffic = &self.mailbox.traffic;
        let counter = if won {
            &traffic.spins_won
        } else {
            &traffic.spins_lost
        };
        counter.fetch_add(1, Ordering::Relaxed);
        won
    }

    // ── What happens ─────────────────────────────────────────────────────────────────────────

    fn read_mail(&mut self) {
        let letters = {
            let mut letters = self.mailbox.letters.lock();
            match &mut *letters {
                Some(letters) if !letters.is_empty() => std::mem::take(letters),
                _ => return,
            }
        };
        for letter in letters {
            match letter {
                Letter::Adopt(connection) => self.adopt(connection),
                Letter::Return(token, connection, next) => {
                    // Its socket may have had something to say that nobody took.
                    if let Some(slot) = self.slot(token) {
                        slot.woken = true;
                    }
                    self.check_in(token, connection, next);
                }
                Letter::Durable(token, result) => self.durable(token, result),
                // They are synced before this worker waits.
                Letter::Sync => {}
                Letter::Killed(token) => self.queue(token),
                Letter::Stop(grace_ends) => self.stop(grace_ends),
            }
        }
    }

    fn durable(&mut self, token: Token, result: porpoise_storage::Result<()>) {
        self.mailbox.commits.fetch_sub(1, Ordering::SeqCst);
        let Some(slot) = self.slot(token) else { return };
        if !std::mem::take(&mut slot.replying) {
            return;
        }
        let Some(mut connection) = self.check_out(token) else {
            return;
        };
        let next = connection.commit_is_durable(result);
        self.check_in(token, connection, next);
    }

    fn stop(&mut self, grace_ends: Instant) {
        self.acceptor.close(self.poll.registry());
        self.stopping = Some(grace_ends);
        for index in 0..self.slots.len() {
            let token = token(index, self.slots[index].generation);
            self.queue(token);
        }
    }

    fn has_ended(&self) -> bool {
        self.stopping.is_some() && self.free.len() == self.slots.len() && self.mailbox.end()
    }

    /// Deadlines that are over: the connection learns of it when it is served.
    fn expire(&mut self) {
        while let Some((index, entry)) = self.timers.pop(self.now) {
            let now = self.now;
            let slot = &mut self.slots[index];
            let token = token(index, slot.generation);
            match &mut slot.place {
                Place::Free => self.timers.put_back(index, &mut slot.deadline, entry),
                Place::Here(connection) if slot.deadline.is_over(now) && !slot.replying => {
                    connection.expire();
                    self.timers.set(index, &mut slot.deadline, None);
                    self.timers.put_back(index, &mut slot.deadline, entry);
                    self.queue(token);
                }
                Place::Here(_) if !slot.replying => {
                    self.timers.put_back(index, &mut slot.deadline, entry)
                }
                // It gets a deadline of its own when it is back.
                _ => {
                    self.timers.set(index, &mut slot.deadline, None);
                    self.timers.put_back(index, &mut slot.deadline, entry);
                }
            }
        }
        if self
            .stopping
            .is_some_and(|grace_ends| grace_ends <= self.now)
        {
            for slot in &self.slots {
                if let Place::Out(Some(control)) = &slot.place {
                    control.kill_connection();
                }
            }
        }
        if self.acceptor.returns(self.poll.registry(), self.now) {
            self.accept(0);
        }
    }

    /// Lets in who waits at a door, a few at a time: the others in the loop have their turn too.
    fn accept(&mut self, at: usize) {
        for _ in 0..ACCEPTS_A_TURN {
            let registry = self.poll.registry();
            match self.acceptor.accept(at, registry, self.now) {
                Ok(Some(connection)) => self.adopt(connection),
                Ok(None) => {}
                Err(Nobody) => return,
            }
        }
    }

    // ── Waiting ──────────────────────────────────────────────────────────────────────────────

    fn wait(&mut self) {
        let from = Instant::now();
        self.now = from;
        self.ready.crowd.pass(from);
        if self.now >= self.arm_silent_at {
            self.arm_silent_at = self.now + RING_IDLE_MAX;
            self.arm_rings(false);
        }
        let mut found = self.look_at_rings() || !self.ready.is_empty();
        let commits = self.mailbox.commits.load(Ordering::SeqCst) > 0;
        if !self.rings.is_empty() && !commits && self.turns_rings_only < TURNS_RINGS_ONLY_MAX {
            self.turns_rings_only += 1;
        } else {
            self.turns_rings_only = 0;
            found |= self.look(Some(Duration::ZERO));
        }
        if self.ready.is_held_up() {
            rustix::thread::sched_yield();
            self.look_at_rings();
            self.look(Some(Duration::ZERO));
        }
        if commits {
            // Those that come at once share the sync; under steady load it isn't put off for ever.
            if found && (self.turns_unsynced < TURNS_UNSYNCED_MAX || self.holds_sync()) {
                self.turns_unsynced += 1;
                return;
            }
            while !found && self.holds_sync() {
                rustix::thread::sched_yield();
                if self.look_at_rings()
                    || self.look(Some(Duration::ZERO))
                    || !self.mailbox.is_empty()
                {
                    return;
                }
            }
            self.turns_unsynced = 0;
            let waiting = self.mailbox.commits.load(Ordering::SeqCst);
            let others = self.served.saturating_sub(waiting);
            self.served = 0;
            self.stretch = self.stretch.wrapping_add(1);
            let is_short = self.server.sync_round.takes() < HAND_OVER_MIN;
            let is_own = others < OTHERS_MIN || is_short && !self.rings.is_empty();
            if is_own || !self.server.ask_syncer() {
                let begins = Instant::now();
                let led = self.server.engine.sync_pending();
                self.now = Instant::now();
                // Nothing was left to do when it took no time.
                if led && self.now - begins > Duration::from_micros(5) {
                    self.server.sync_round.took(self.now - begins);
                    self.synced_alone = waiting == 1 && others == 0;
                }
            }
            if found
                || !self.mailbox.is_empty()
                || self.look_at_rings()
                || self.look(Some(Duration::ZERO))
            {
                return;
            }
        } else if found {
            return;
        }
        if !self.rings.is_empty() {
            if !self.spin_for_rings() && !self.arm_rings(true) {
                self.sleep();
                self.ring_spin.woke();
            }
            self.now = Instant::now();
            return;
        }
        // Both have slept for the disk. If this thread sleeps again, the system wakes its client here, at the next reply, rather than
        // on the other core: that takes an interrupt less, which is more than a look can win.
        let worth = match std::mem::take(&mut self.synced_alone) {
            true => Duration::ZERO,
            false => self.spin.worth(),
        };
        let spin_ends = from + worth;
        loop {
            let now = Instant::now();
            if now >= spin_ends {
                break;
            }
            rustix::thread::sched_yield();
            if self.look(Some(Duration::ZERO)) || !self.mailbox.is_empty() {
                self.now = Instant::now();
                self.spin.won(self.now - from);
                return;
            }
        }
        self.sleep();
        self.spin.slept(self.now - from);
    }

    /// Commits of other clients are likely to come before a sync of those that wait would be worth it.
    fn holds_sync(&self) -> bool {
        let waiting = self.server.commits_under_way();
        self.server
            .sync_round
            .is_worth_holding(Instant::now(), waiting)
    }

    fn sleep(&mut self) {
        let patience = [
            self.timers.patience(self.now),
            self.acceptor.patience(self.now),
            self.stopping.map(|_| Duration::from_millis(20)),
        ];
        self.mailbox.asleep.store(true, Ordering::SeqCst);
        if self.mailbox.is_empty() {
            self.rest(patience.into_iter().flatten().min());
        }
        self.mailbox.asleep.store(false, Ordering::SeqCst);
        self.now = Instant::now();
    }

    /// Sleeps until something happens or patience is over. Once in a long sleep the worker is idle ([`ServerOptions::when_idle`]).
    ///
    /// [`ServerOptions::when_idle`]: crate::server::ServerOptions::when_idle
    fn rest(&mut self, patience: Option<Duration>) {
        let is_long = patience.is_none_or(|patience| patience > IDLE_AFTER);
        let Some(when_idle) = self.server.when_idle.filter(|_| is_long) else {
            self.look(patience);
            return;
        };
        let is_idle = !self.look(Some(IDLE_AFTER)) && self.now.elapsed() >= IDLE_AFTER;
        // Whoever has sent a letter found the worker asleep, and has woken it.
        if is_idle && self.mailbox.is_empty() {
            when_idle();
            self.look(patience.map(|patience| patience.saturating_sub(self.now.elapsed())));
        }
    }

    /// Asks the system which sockets are ready, and queues their connections.
    fn look(&mut self, patience: Option<Duration>) -> bool {
        if let Err(error) = self.poll.poll(&mut self.events, patience)
            && error.kind() != io::ErrorKind::Interrupted
        {
            tracing::error!("can't poll: {error}");
        }
        if self.events.is_empty() {
            return false;
        }
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let mut found = false;
        for event in &events {
            match event.token() {
                WAKE => {}
                Token(at) if at >= FIRST_LISTENER => {
                    self.accept(at - FIRST_LISTENER);
                    found = true;
                }
                token => {
                    self.queue(token);
                    found = true;
                    if event.is_read_closed() || event.is_error() {
                        self.hang_up(token);
                    }
                }
            }
        }
        events.clear();
        self.events = events;
        found
    }

    /// The client is gone. A statement that waits is told; any other finds out when it reads or writes.
    fn hang_up(&mut self, token: Token) {
        let Some(slot) = self.slot(token) else { return };
        match &mut slot.place {
            Place::Here(connection) => connection.hang_up(),
            Place::Out(Some(control)) => control.kill_connection(),
            Place::Out(None) | Place::Free => {}
        }
    }
}

impl Slot {
    fn free(generation: u32) -> Slot {
        Slot {
            generation,
            place: Place::Free,
            deadline: Deadline::default(),
            queued: false,
            woken: false,
            replying: false,
            looked_at: false,
            active: false,
            kept: false,
            stretch: 0,
            seen_under_way: None,
        }
    }

    /// Its ring holds what it waits for.
    fn is_ready(&self) -> bool {
        match &self.place {
            Place::Here(connection) => !self.queued && !self.replying && connection.is_ready(),
            Place::Free | Place::Out(_) => false,
        }
    }
}

/// Serves a connection; one whose statement panics is closed, and the server goes on.
fn serve(connection: &mut Connection, desk: &mut Desk) -> Next {
    catch_unwind(AssertUnwindSafe(|| connection.serve(desk))).unwrap_or_else(|_| {
        tracing::error!(
            "connection {} was closed: its statement panicked",
            connection.id()
        );
        desk.tidy();
        connection.fail()
    })
}
