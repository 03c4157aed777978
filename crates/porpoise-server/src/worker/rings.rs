//! The rings of connections over shared memory, which a worker polls in memory.
//!
//! A ring of a connection that was served lately is polled in each turn of the loop, without a
//! system call. A ring that has been silent for a while, and every ring before the loop sleeps, is
//! armed instead: then its client rings the doorbell that epoll watches.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::Token;
use porpoise_transport::spin::Spin;

use super::EventLoop;
use super::connections::SlotState;

/// Turns in which rings alone may be polled before sockets are polled again.
const TURNS_RINGS_ONLY_MAX: u32 = 16;
/// How long that may go on: a turn may be long, and clients log in over sockets.
const TIME_RINGS_ONLY_MAX: Duration = Duration::from_millis(1);
/// To arm so many rings, and to be woken by them, takes longer than some naps.
const NAP_RINGS_MIN: usize = 32;
/// How long a nap takes, beside the system's own delay.
const NAP: Duration = Duration::from_micros(50);
/// So many naps find nothing: the rings are armed.
const NAPS_MAX: usize = 16;
/// Polls of the rings, while there is nothing else to do, before sockets are polled again.
const POLLS_RINGS_ONLY_MAX: u32 = 128;
/// How long a ring may be silent before it is armed.
const RING_IDLE_MAX: Duration = Duration::from_millis(5);

pub(super) struct PolledRings {
    /// Connections whose rings are polled; some may be gone or checked out.
    tokens: Vec<Token>,
    pub spin: Spin,
    turns_rings_only: u32,
    /// When sockets were polled in a turn.
    sockets_polled_at: Instant,
    /// When silent rings are armed next.
    arm_silent_at: Instant,
}

impl Default for PolledRings {
    fn default() -> PolledRings {
        PolledRings {
            tokens: Vec::new(),
            spin: Spin::default(),
            turns_rings_only: 0,
            sockets_polled_at: Instant::now(),
            arm_silent_at: Instant::now(),
        }
    }
}

impl PolledRings {
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whether sockets are to be polled in this turn, beside the rings.
    pub fn is_socket_turn(&mut self, has_commits: bool, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.sockets_polled_at);
        let rings_only = !self.tokens.is_empty()
            && !has_commits
            && self.turns_rings_only < TURNS_RINGS_ONLY_MAX
            && passed < TIME_RINGS_ONLY_MAX;
        self.turns_rings_only = if rings_only {
            self.turns_rings_only + 1
        } else {
            self.sockets_polled_at = now;
            0
        };
        !rings_only
    }
}

impl EventLoop {
    /// Polls this connection's ring from now on.
    pub(super) fn poll_ring_of(&mut self, token: Token) {
        let Some(slot) = self.connections.get_mut(token) else {
            return;
        };
        slot.ring_active = true;
        if !std::mem::replace(&mut slot.ring_polled, true) {
            self.rings.tokens.push(token);
        }
    }

    /// Queues the connections whose rings hold what they wait for. True if there are any.
    pub(super) fn poll_rings(&mut self) -> bool {
        let mut found = false;
        for at in 0..self.rings.tokens.len() {
            let token = self.rings.tokens[at];
            let slot = self.connections.get_mut(token);
            if slot.is_some_and(|slot| slot.is_ready()) {
                self.enqueue(token);
                found = true;
            }
        }
        found
    }

    /// Arms the rings that have been silent, if it is time.
    pub(super) fn arm_silent_rings(&mut self) {
        if self.now >= self.rings.arm_silent_at {
            self.rings.arm_silent_at = self.now + RING_IDLE_MAX;
            self.arm_rings(false);
        }
    }

    /// Arms rings, so that their clients ring: all of them before a sleep, otherwise those that
    /// have been silent. True if one holds something already; nobody rings for that.
    pub(super) fn arm_rings(&mut self, all: bool) -> bool {
        let mut found = false;
        let mut tokens = std::mem::take(&mut self.rings.tokens);
        tokens.retain(|&token| {
            let Some(slot) = self.connections.get_mut(token) else {
                return false;
            };
            if !all && std::mem::take(&mut slot.ring_active) {
                return true;
            }
            slot.ring_polled = false;
            // A connection that is checked out or commits is polled again when it is back.
            if let SlotState::Resident(connection) = &mut slot.state
                && !slot.reply_held
                && connection.arm()
            {
                self.enqueue(token);
                found = true;
            }
            false
        });
        self.rings.tokens = tokens;
        found
    }

    /// Naps beside statements that compute, from which a thread that wakes gets its core at once:
    /// nobody needs a system call to wake it. True if something has come, false if there are few
    /// rings, or nothing has come for long.
    pub(super) fn nap_for_rings(&mut self) -> bool {
        self.rings.tokens.len() >= NAP_RINGS_MIN
            && (0..NAPS_MAX).any(|_| {
                std::thread::sleep(NAP);
                self.poll_rings()
                    || !self.inbox.is_empty()
                    || self.poll_sockets(Some(Duration::ZERO))
            })
    }

    /// Polls the rings until one holds something, or a message or a socket event comes (true), or
    /// until that isn't worth it any longer (false).
    pub(super) fn spin_for_rings(&mut self) -> bool {
        let mut spin = std::mem::take(&mut self.rings.spin);
        let mut polls = 0;
        let won = spin.wait(|| {
            polls += 1;
            self.poll_rings()
                || !self.inbox.is_empty()
                || (polls % POLLS_RINGS_ONLY_MAX == 0 && self.poll_sockets(Some(Duration::ZERO)))
        });
        self.rings.spin = spin;
        let traffic = &self.inbox.traffic;
        let counter = if won {
            &traffic.spins_won
        } else {
            &traffic.spins_lost
        };
        counter.fetch_add(1, Ordering::Relaxed);
        won
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_polled_after_some_turns_or_some_time() {
        let mut rings = PolledRings::default();
        let began = rings.sockets_polled_at;
        assert!(rings.is_socket_turn(false, began), "there are no rings");
        rings.tokens.push(Token(7));
        assert!(rings.is_socket_turn(true, began), "commits wait");
        let turns = (0..).take_while(|_| !rings.is_socket_turn(false, began));
        assert_eq!(turns.count(), TURNS_RINGS_ONLY_MAX as usize);
        assert!(!rings.is_socket_turn(false, began));
        let later = began + TIME_RINGS_ONLY_MAX;
        assert!(rings.is_socket_turn(false, later));
        assert!(!rings.is_socket_turn(false, later));
    }
}
