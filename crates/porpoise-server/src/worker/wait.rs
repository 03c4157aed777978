//! What a worker does when no connection is ready: it polls, syncs commits, spins and sleeps.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Events, Token};

use crate::server_state::ServerState;

use super::connections::SlotState;
use super::{EventLoop, FIRST_LISTENER, WAKE};

/// So many connections that a worker has served since the last sync, beside those that wait for
/// this one, are worth a hand-over to the sync thread.
const OTHERS_MIN: usize = 2;

/// While a sync takes less, a worker with rings does it itself, whatever else it has served: the
/// clients of rings take their replies and put their next statements meanwhile, without a thread
/// having to wake.
const HAND_OVER_MIN: Duration = Duration::from_micros(250);

/// How many turns commits may wait for more to share their sync.
const TURNS_UNSYNCED_MAX: usize = 1;

/// A sync that took less had nothing to do.
const SYNC_TIME_MIN: Duration = Duration::from_micros(5);

/// A worker that sleeps for longer is idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// The longest sleep of a worker that is stopping.
const STOPPING_SLEEP_MAX: Duration = Duration::from_millis(20);

/// A thread that keeps a yielded core for longer computes, and another program's may, too: what the
/// server's own threads and clients have to do takes microseconds.
const YIELD_MAX: Duration = Duration::from_micros(500);

/// How long a worker doesn't yield its core after it got it back late.
const YIELDS_PAUSE: Duration = Duration::from_millis(100);

/// Whether yielding the core is worth it: not where other programs compute. They keep a core until
/// the next tick of the system's clock, while a thread that sleeps gets one as soon as it wakes; and
/// who yields gives up what is left of its turn.
#[derive(Default)]
pub(super) struct CoreYield {
    /// When it is to be tried again, if it was not worth it.
    pauses_until: Option<Instant>,
}

impl CoreYield {
    pub fn is_worth_it(&mut self, now: Instant) -> bool {
        match self.pauses_until {
            Some(until) if now < until => false,
            Some(_) => {
                self.pauses_until = None;
                true
            }
            None => true,
        }
    }

    /// Yields the core; `before`: now. Tells what time it is then.
    pub fn yield_core(&mut self, before: Instant) -> Instant {
        rustix::thread::sched_yield();
        let now = Instant::now();
        self.record(before, now);
        now
    }

    fn record(&mut self, before: Instant, now: Instant) {
        if now.saturating_duration_since(before) > YIELD_MAX {
            self.pauses_until = Some(now + YIELDS_PAUSE);
        }
    }
}

/// What decides who syncs a worker's commits, and when.
#[derive(Default)]
pub(super) struct CommitSync {
    /// Turns since commits began to wait for a sync.
    turns_unsynced: usize,
    /// Connections that were served since the last sync.
    served: usize,
    /// The number of the interval between two syncs.
    interval: u32,
    /// This thread did the last sync, for the only client that it has served lately.
    synced_alone: bool,
}

impl CommitSync {
    /// A connection is served; `last` is the interval in which it was served last.
    pub fn record_served(&mut self, last: &mut u32) {
        if *last != self.interval {
            *last = self.interval;
            self.served += 1;
        }
    }
}

/// What a worker finds when all that was ready is served.
pub(super) enum Found {
    /// A connection that is ready, or a message.
    Work,
    /// Commits that are to be synced on this thread first.
    CommitsToSync(OwnSync),
    Nothing,
}

/// A sync that the worker's own thread does.
pub(super) struct OwnSync {
    /// There is other work, for after it.
    found: bool,
    /// It is for the only client that the worker has served lately.
    is_alone: bool,
}

/// Whether it was this thread that synced, rather than one that was at it already.
pub(super) struct Synced(bool);

impl OwnSync {
    /// Syncs the commits that wait, without the loop.
    pub fn run(&self, server: &ServerState) -> Synced {
        let began = Instant::now();
        let led = server.engine.sync_pending();
        let took = began.elapsed();
        let led = led && took > SYNC_TIME_MIN;
        if led {
            server.group_commit_delay.record_sync(took);
        }
        Synced(led)
    }
}

impl EventLoop {
    /// Polls once, when all that was ready is served. `from`: now.
    pub(super) fn look_for_work(&mut self, from: Instant) -> Found {
        self.now = from;
        self.ready.active.advance(from);
        self.arm_silent_rings();
        let mut found = self.poll_rings() || !self.ready.is_empty();
        let has_commits = self.inbox.commits.load(Ordering::SeqCst) > 0;
        if self.rings.is_socket_turn(has_commits, from) {
            found |= self.poll_sockets(Some(Duration::ZERO));
        }
        if self.ready.is_throttled() && self.core_yield.is_worth_it(from) {
            self.core_yield.yield_core(Instant::now());
            self.poll_rings();
            self.poll_sockets(Some(Duration::ZERO));
        }
        if has_commits {
            return self.sync_commits(found);
        }
        if found { Found::Work } else { Found::Nothing }
    }

    /// Waits until a connection is ready, a message has come, or a deadline is over; the worker ran
    /// out of work at `from`.
    pub(super) fn wait(&mut self, from: Instant) {
        if self.rings.is_empty() {
            self.wait_for_sockets(from);
        } else {
            self.wait_for_rings();
        }
    }

    fn wait_for_rings(&mut self) {
        let found = match self.server.thread_pool.turn_monitor.is_crowded() {
            true => self.nap_for_rings(),
            false => self.spin_for_rings(),
        };
        if !found && !self.arm_rings(true) {
            self.sleep();
            self.rings.spin.woke();
        }
        self.now = Instant::now();
    }

    /// Spins for as long as that is worth it, then sleeps; the worker ran out of work at `from`.
    fn wait_for_sockets(&mut self, from: Instant) {
        // Both the worker and its client have slept for the disk. If this thread sleeps again, the
        // system wakes the client here, at the next reply, rather than on the other core: that
        // saves an interrupt, which is more than spinning can win.
        let is_crowded = self.server.thread_pool.turn_monitor.is_crowded();
        let sleeps = std::mem::take(&mut self.commit_sync.synced_alone)
            || is_crowded
            || !self.core_yield.is_worth_it(from);
        let budget = match sleeps {
            true => Duration::ZERO,
            false => self.socket_spin.budget(),
        };
        let spin_ends = from + budget;
        let mut now = Instant::now();
        while now < spin_ends {
            now = self.core_yield.yield_core(now);
            if self.poll_sockets(Some(Duration::ZERO)) || !self.inbox.is_empty() {
                self.now = Instant::now();
                self.socket_spin.record_found(self.now - from);
                return;
            }
        }
        self.sleep();
        self.socket_spin.record_slept(self.now - from);
    }

    // ── Commits ──────────────────────────────────────────────────────────────────────────────

    /// Has the commits synced that wait for it, or delays that; `found`: there is other work.
    fn sync_commits(&mut self, found: bool) -> Found {
        // Commits that come at once share the sync; under steady load it isn't put off for ever.
        let may_wait = self.commit_sync.turns_unsynced < TURNS_UNSYNCED_MAX;
        if found && (may_wait || self.should_delay_sync()) {
            self.commit_sync.turns_unsynced += 1;
            return Found::Work;
        }
        while !found && self.core_yield.is_worth_it(self.now) && self.should_delay_sync() {
            self.core_yield.yield_core(Instant::now());
            if self.has_work() {
                return Found::Work;
            }
        }
        match self.request_sync(found) {
            Some(own) => Found::CommitsToSync(own),
            None if found || self.has_work() => Found::Work,
            None => Found::Nothing,
        }
    }

    fn has_work(&mut self) -> bool {
        !self.inbox.is_empty() || self.poll_rings() || self.poll_sockets(Some(Duration::ZERO))
    }

    /// Commits of other clients are likely to come before a sync of those that wait would be worth
    /// it.
    fn should_delay_sync(&self) -> bool {
        let pending = self.server.pending_commits();
        self.server
            .group_commit_delay
            .should_delay(Instant::now(), pending)
    }

    /// Has the sync thread sync if other connections have something to do meanwhile; otherwise this
    /// thread is to do it.
    fn request_sync(&mut self, found: bool) -> Option<OwnSync> {
        let commit_sync = &mut self.commit_sync;
        commit_sync.turns_unsynced = 0;
        let waiting = self.inbox.commits.load(Ordering::SeqCst);
        let others = commit_sync.served.saturating_sub(waiting);
        commit_sync.served = 0;
        commit_sync.interval = commit_sync.interval.wrapping_add(1);
        let is_short = self.server.group_commit_delay.sync_time() < HAND_OVER_MIN;
        let is_own = others < OTHERS_MIN || is_short && !self.rings.is_empty();
        if !is_own && self.server.request_sync() {
            return None;
        }
        Some(OwnSync {
            found,
            is_alone: waiting == 1 && others == 0,
        })
    }

    /// This worker's thread has synced, and has the loop again.
    pub(super) fn record_sync(&mut self, sync: OwnSync, Synced(led): Synced) -> Found {
        self.now = Instant::now();
        if led {
            self.commit_sync.synced_alone = sync.is_alone;
        }
        if sync.found || self.has_work() {
            Found::Work
        } else {
            Found::Nothing
        }
    }

    // ── Sleep ────────────────────────────────────────────────────────────────────────────────

    fn sleep(&mut self) {
        let timeout = [
            self.connections.timers.time_to_next(self.now),
            self.acceptor.time_to_resume(self.now),
            self.is_stopping.then_some(STOPPING_SLEEP_MAX),
        ];
        self.inbox.set_asleep(true);
        if self.inbox.is_empty() {
            self.sleep_or_idle(timeout.into_iter().flatten().min());
        }
        self.inbox.set_asleep(false);
        self.server.thread_pool.turn_monitor.worker_awoke();
        self.now = Instant::now();
    }

    /// Sleeps until something happens or the timeout is over. In a long sleep, `when_idle` of
    /// [`ServerOptions`](crate::server::ServerOptions) is called once.
    fn sleep_or_idle(&mut self, timeout: Option<Duration>) {
        let is_long = timeout.is_none_or(|timeout| timeout > IDLE_AFTER);
        let Some(when_idle) = self.server.when_idle.filter(|_| is_long) else {
            self.poll_sockets(timeout);
            return;
        };
        let is_idle = !self.poll_sockets(Some(IDLE_AFTER)) && self.now.elapsed() >= IDLE_AFTER;
        // A thread that has sent a message found the worker asleep, and has woken it.
        if is_idle && self.inbox.is_empty() {
            when_idle();
            self.poll_sockets(timeout.map(|timeout| timeout.saturating_sub(self.now.elapsed())));
        }
    }

    /// Asks the system which sockets are ready, waiting for one for `timeout` at most, and queues
    /// their connections. True if there are any.
    pub(super) fn poll_sockets(&mut self, timeout: Option<Duration>) -> bool {
        if let Err(error) = self.poll.poll(&mut self.events, timeout)
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
                    self.enqueue(token);
                    found = true;
                    // Where the end alone is watched (`Stream::watch_end`), it comes as nothing else.
                    let is_end = !event.is_readable() && !event.is_writable();
                    if is_end || event.is_read_closed() || event.is_error() {
                        self.peer_closed(token);
                    }
                }
            }
        }
        events.clear();
        self.events = events;
        found
    }

    /// The client is gone. A statement that waits is interrupted; any other finds out when it reads
    /// or writes.
    fn peer_closed(&mut self, token: Token) {
        let Some(slot) = self.connections.get_mut(token) else {
            return;
        };
        match &mut slot.state {
            SlotState::Resident(connection) => connection.note_peer_closed(),
            SlotState::CheckedOut(Some(control)) => control.kill_connection(),
            SlotState::CheckedOut(None) | SlotState::Free => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_came_back_late_is_not_yielded_for_a_while() {
        let mut core = CoreYield::default();
        let now = Instant::now();
        core.record(now, now + YIELD_MAX);
        assert!(core.is_worth_it(now));
        core.record(now, now + YIELD_MAX * 2);
        assert!(!core.is_worth_it(now + YIELD_MAX * 2));
        // Then it is tried again.
        assert!(core.is_worth_it(now + YIELD_MAX * 2 + YIELDS_PAUSE));
        assert!(core.is_worth_it(now + YIELD_MAX * 2));
    }
}
