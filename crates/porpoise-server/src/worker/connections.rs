//! The connections of a worker: a table of slots, and how a connection enters, leaves and changes
//! workers.
//!
//! A connection is named by a [`Token`]: the index of its slot, and the slot's generation, which
//! tells it from the connections that had the slot before. It is in its slot, or checked out while
//! it is served.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::Token;
use porpoise_engine::Control;
use porpoise_storage::Commit;

use crate::connection::{Connection, NextState};
use crate::placement::MigrationPolicy;
use crate::ready_queue::LastActive;
use crate::timers::{Deadline, Timers};

use super::EventLoop;
use super::inbox::{WorkerInbox, WorkerMessage};

const GENERATION_MASK: u32 = 0x7FFF_FFFF;
const INDEX_MASK: usize = 0xFFFF_FFFF;

pub(super) enum SlotState {
    Free,
    Resident(Box<Connection>),
    /// Being served. The control is there to interrupt its statement if its client is found to be
    /// gone.
    CheckedOut(Option<Arc<Control>>),
}

pub(super) struct Slot {
    pub generation: u32,
    pub state: SlotState,
    pub deadline: Deadline,
    /// In the ready queue.
    pub queued: bool,
    /// An event came while it couldn't be served: it was checked out, or its reply was held back.
    pub missed_event: bool,
    /// Its reply is held back: until its commit is durable, or for the other replies of the turn.
    pub reply_held: bool,
    /// Its ring is among those that are polled.
    pub ring_polled: bool,
    /// It was served since its ring was last found silent.
    pub ring_active: bool,
    /// Its rings wait for their client to come back.
    pub awaiting_reuse: bool,
    /// The number of the interval between two syncs in which it was last served.
    pub sync_interval: u32,
    /// When it was last seen in the middle of something.
    pub last_active: LastActive,
    /// What it last began was a transaction that wasn't over with its turn.
    pub begins_transactions: bool,
}

impl Slot {
    fn free(generation: u32) -> Slot {
        Slot {
            generation,
            state: SlotState::Free,
            deadline: Deadline::default(),
            queued: false,
            missed_event: false,
            reply_held: false,
            ring_polled: false,
            ring_active: false,
            awaiting_reuse: false,
            sync_interval: 0,
            last_active: None,
            begins_transactions: false,
        }
    }

    /// Its ring holds what it waits for.
    pub fn is_ready(&self) -> bool {
        match &self.state {
            SlotState::Resident(connection) => {
                !self.queued && !self.reply_held && connection.is_ready()
            }
            SlotState::Free | SlotState::CheckedOut(_) => false,
        }
    }
}

/// The slots of a worker's connections, with their deadlines.
#[derive(Default)]
pub(super) struct ConnectionTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    pub timers: Timers,
    /// Slots whose rings wait for clients that may come back.
    awaiting_reuse: usize,
}

fn index_of(token: Token) -> usize {
    token.0 & INDEX_MASK
}

impl ConnectionTable {
    /// The token of whatever connection is in the slot at `index`.
    pub fn token_at(&self, index: usize) -> Token {
        let generation = self.slots[index].generation & GENERATION_MASK;
        Token((generation as usize) << 32 | index)
    }

    /// The number of slots, free ones included.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn has_no_connections(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slot of a connection that is there still.
    pub fn get_mut(&mut self, token: Token) -> Option<&mut Slot> {
        let generation = token.0 >> 32;
        self.slots.get_mut(index_of(token)).filter(|slot| {
            slot.generation as usize == generation && !matches!(slot.state, SlotState::Free)
        })
    }

    /// A slot and the timers, which change together.
    pub fn slot_and_timers(&mut self, index: usize) -> (&mut Slot, &mut Timers) {
        (&mut self.slots[index], &mut self.timers)
    }

    /// The index of a free slot, which is a new one if there is none.
    fn reserve(&mut self) -> usize {
        match self.free.pop() {
            Some(index) => index as usize,
            None => {
                self.slots.push(Slot::free(0));
                self.slots.len() - 1
            }
        }
    }

    fn cancel_reservation(&mut self, index: usize) {
        self.free.push(index as u32);
    }
}

impl EventLoop {
    /// Takes in a connection that is new, or that another worker had.
    pub(super) fn adopt(&mut self, mut connection: Box<Connection>) {
        let index = self.connections.reserve();
        let token = self.connections.token_at(index);
        let is_new = connection.is_new();
        if let Err(error) = connection.register(self.poll.registry(), token, self.inbox.clone()) {
            tracing::error!("can't watch a connection: {error}");
            self.connections.cancel_reservation(index);
            return;
        }
        self.inbox.connections.fetch_add(1, Ordering::Relaxed);
        let due = connection.deadline(self.now);
        let is_ring = connection.is_ring();
        let is_killed = connection
            .control()
            .is_some_and(|control| control.is_connection_killed());
        self.connections.slots[index].state = SlotState::Resident(connection);
        if is_ring {
            let ring_connections = &self.inbox.traffic.ring_connections;
            ring_connections.fetch_add(u64::from(is_new), Ordering::Relaxed);
            self.poll_ring_of(token);
        }
        let (slot, timers) = self.connections.slot_and_timers(index);
        timers.set(index, &mut slot.deadline, due);
        // A connection may have been killed on its way here.
        if self.is_stopping || is_killed {
            self.enqueue(token);
        }
    }

    fn release(&mut self, token: Token) {
        let index = index_of(token);
        let slot = &mut self.connections.slots[index];
        let mut deadline = slot.deadline;
        deadline.clear();
        self.ready.active.record(&mut slot.last_active, false);
        *slot = Slot {
            deadline,
            ..Slot::free(slot.generation.wrapping_add(1) & GENERATION_MASK)
        };
        self.connections.free.push(index as u32);
        self.inbox.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Puts a connection into the ready queue. One that can't be served now is queued when it can.
    pub(super) fn enqueue(&mut self, token: Token) {
        let Some(slot) = self.connections.get_mut(token) else {
            return;
        };
        match &slot.state {
            SlotState::Resident(connection) if !slot.reply_held => {
                if !slot.queued {
                    slot.queued = true;
                    let is_high_priority = slot.last_active.is_some()
                        || !slot.begins_transactions
                        || connection.is_urgent();
                    self.ready.push(token, is_high_priority, self.now);
                }
            }
            _ => slot.missed_event = true,
        }
    }

    /// Takes a connection out of its slot, to serve it.
    pub(super) fn check_out(&mut self, token: Token) -> Option<Box<Connection>> {
        let slot = self.connections.get_mut(token)?;
        slot.queued = false;
        let checked_out = SlotState::CheckedOut(match &slot.state {
            SlotState::Resident(connection) => connection.control().cloned(),
            _ => return None,
        });
        let awaited_reuse = std::mem::take(&mut slot.awaiting_reuse);
        let state = std::mem::replace(&mut slot.state, checked_out);
        self.connections.awaiting_reuse -= usize::from(awaited_reuse);
        match state {
            SlotState::Resident(connection) => Some(connection),
            _ => None,
        }
    }

    /// Puts a connection that was served back into its slot, or ends it, or hands it to another
    /// worker.
    pub(super) fn check_in(
        &mut self,
        token: Token,
        mut connection: Box<Connection>,
        next: NextState,
    ) {
        let mut next = next;
        let may_wait = match next {
            NextState::Idle => !self.is_stopping,
            NextState::AwaitingReuse => {
                let most = self.server.awaiting_reuse_max.load(Ordering::Relaxed);
                !self.is_stopping && self.connections.awaiting_reuse < most
            }
            _ => true,
        };
        if !may_wait {
            next = NextState::Close;
        }
        let mut again = false;
        match connection.watch_new_stream(self.poll.registry(), token) {
            Ok(false) => {}
            Ok(true) => {
                let ring_connections = &self.inbox.traffic.ring_connections;
                ring_connections.fetch_add(1, Ordering::Relaxed);
                // No event tells of bytes that came before the stream was watched.
                again = true;
            }
            Err(error) => {
                tracing::error!("can't watch a connection: {error}");
                next = NextState::Close;
            }
        }
        match &next {
            NextState::Close => {
                connection.close(self.poll.registry());
                self.release(token);
                return;
            }
            NextState::Idle => {
                if let Some(inbox) = self.better_worker(&mut connection) {
                    self.migrate(token, connection, &inbox);
                    return;
                }
            }
            NextState::Again => again = true,
            NextState::AwaitingRoom => connection.watch_writable(self.poll.registry(), token),
            NextState::AwaitingReuse | NextState::Committing(_) | NextState::ReplyHeld => {}
        }
        self.settle(token, connection, next, again);
    }

    /// Puts a connection that stays into its slot; `again`: it has more to do.
    fn settle(
        &mut self,
        token: Token,
        connection: Box<Connection>,
        next: NextState,
        mut again: bool,
    ) {
        let due = connection.deadline(self.now);
        let is_active = connection.is_active(&next);
        let is_in_transaction = connection.is_in_transaction();
        if connection.is_ring() && !matches!(next, NextState::Committing(_)) {
            self.poll_ring_of(token);
        }
        let Some(slot) = self.connections.get_mut(token) else {
            return;
        };
        slot.state = SlotState::Resident(connection);
        slot.awaiting_reuse = matches!(next, NextState::AwaitingReuse);
        slot.reply_held = matches!(next, NextState::Committing(_) | NextState::ReplyHeld);
        again |= std::mem::take(&mut slot.missed_event);
        let awaiting_reuse = usize::from(slot.awaiting_reuse);
        if slot.last_active.is_none() {
            slot.begins_transactions = is_in_transaction;
        }
        self.ready.active.record(&mut slot.last_active, is_active);
        self.connections.awaiting_reuse += awaiting_reuse;
        let index = index_of(token);
        let (slot, timers) = self.connections.slot_and_timers(index);
        timers.set(index, &mut slot.deadline, due);
        if let NextState::Committing(commit) = next {
            slot.missed_event = again;
            self.inbox.commits.fetch_add(1, Ordering::SeqCst);
            self.notify_when_durable(token, commit);
        } else if again {
            self.enqueue(token);
        }
    }

    fn notify_when_durable(&self, token: Token, commit: Commit) {
        let inbox = self.inbox.clone();
        let server = self.server.clone();
        commit.on_durable(Box::new(move |result| {
            server
                .group_commit_delay
                .record_durable(std::time::Instant::now(), server.pending_commits());
            inbox.send(WorkerMessage::CommitDurable(token, result));
        }));
    }

    // ── Migration ────────────────────────────────────────────────────────────────────────────

    /// The worker that an idle connection had better go to, if there is one.
    fn better_worker(&self, connection: &mut Connection) -> Option<Arc<WorkerInbox>> {
        let always_migrates = self.server.migration == MigrationPolicy::AfterEveryTurn;
        if connection.take_should_migrate() || always_migrates {
            self.next_worker()
        } else if connection.has_settled() {
            self.emptier_worker()
        } else {
            None
        }
    }

    /// The worker after this one, if there are others.
    fn next_worker(&self) -> Option<Arc<WorkerInbox>> {
        let inboxes = self.server.inboxes();
        let own = inboxes
            .iter()
            .position(|inbox| Arc::ptr_eq(inbox, &self.inbox))?;
        let next = &inboxes[(own + 1) % inboxes.len()];
        (!Arc::ptr_eq(next, &self.inbox)).then(|| next.clone())
    }

    /// The worker with the fewest connections, if it would still have fewer with one of this
    /// worker's.
    fn emptier_worker(&self) -> Option<Arc<WorkerInbox>> {
        let count = |inbox: &WorkerInbox| inbox.connections.load(Ordering::Relaxed);
        let inboxes = self.server.inboxes().iter();
        let fewest = inboxes.min_by_key(|inbox| count(inbox))?;
        (count(fewest) + 1 < count(&self.inbox)).then(|| fewest.clone())
    }

    fn migrate(&mut self, token: Token, mut connection: Box<Connection>, to: &WorkerInbox) {
        connection.unregister(self.poll.registry());
        self.release(token);
        let migrations = &self.inbox.traffic.migrations;
        migrations.fetch_add(1, Ordering::Relaxed);
        // A worker that has ended takes no connection: then the server stops, and this one is
        // closed.
        drop(to.try_send(WorkerMessage::Adopt(connection)));
    }
}
