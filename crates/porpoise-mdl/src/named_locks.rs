//! Locks that applications name: `GET_LOCK` and its kin (MySQL 8.4 manual, 14.14).
//!
//! A session may hold any number of them, each any number of times, and keeps them until it
//! releases them or ends; transactions don't matter. A waiter notes which lock it waits for, so
//! a deadlock is found before sleeping: the session that would close the cycle gets error 3058.

use std::time::{Duration, Instant};

use compact_str::CompactString;
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use porpoise_core::error::{Error, Result};

/// The longest name, in characters.
pub const NAME_CHARS_MAX: usize = 64;

/// How long a waiter takes to notice a KILL.
const STEP: Duration = Duration::from_millis(20);

/// All named locks of a database.
#[derive(Default)]
pub struct NamedLocks {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Default)]
struct State {
    held: HashMap<CompactString, Held>,
    /// Which lock a session waits for.
    waiting: HashMap<u64, CompactString>,
}

struct Held {
    owner: u64,
    times: u64,
}

impl State {
    /// Takes the lock if nobody else has it.
    fn take(&mut self, name: &CompactString, owner: u64) -> bool {
        match self.held.get_mut(name) {
            Some(held) if held.owner == owner => held.times += 1,
            Some(_) => return false,
            None => {
                let held = Held { owner, times: 1 };
                self.held.insert(name.clone(), held);
            }
        }
        true
    }

    /// Whether the holder of a lock waits, through others or itself, for a lock of `owner`'s.
    fn would_deadlock(&self, name: &CompactString, owner: u64) -> bool {
        let mut wanted = name;
        for _ in 0..=self.waiting.len() {
            match self.held.get(wanted) {
                None => return false,
                Some(held) if held.owner == owner => return true,
                Some(held) => match self.waiting.get(&held.owner) {
                    None => return false,
                    Some(next) => wanted = next,
                },
            }
        }
        false
    }
}

/// Names are the same in any case.
pub fn name_key(name: &str) -> Result<CompactString> {
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return Err(Error::wrong_user_lock_name(name));
    }
    Ok(name.to_lowercase().into())
}

impl NamedLocks {
    /// Waits up to `timeout`, without end if there is none, for the lock; false if it wasn't to be
    /// had. `before_waiting` is called once, `check` again and again while waiting. `closes_cycle`
    /// looks whether the holder waits for this session, through locks of other kinds.
    pub fn get(
        &self,
        name: &CompactString,
        owner: u64,
        timeout: Option<Duration>,
        before_waiting: impl FnOnce(),
        closes_cycle: impl FnOnce() -> bool,
        check: impl Fn() -> Result<()>,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        if state.take(name, owner) {
            return Ok(true);
        }
        if timeout == Some(Duration::ZERO) {
            return Ok(false);
        }
        if state.would_deadlock(name, owner) {
            return Err(Error::user_lock_deadlock());
        }
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        state.waiting.insert(owner, name.clone());
        drop(state);
        // Through locks of other kinds.
        if closes_cycle() {
            self.state.lock().waiting.remove(&owner);
            return Err(Error::user_lock_deadlock());
        }
        before_waiting();
        let mut state = self.state.lock();
        let outcome = loop {
            if state.take(name, owner) {
                break Ok(true);
            }
            let left = match end {
                None => STEP,
                Some(end) => end.saturating_duration_since(Instant::now()).min(STEP),
            };
            if left.is_zero() {
                break Ok(false);
            }
            if let Err(error) = check() {
                break Err(error);
            }
            self.released.wait_for(&mut state, left);
        };
        state.waiting.remove(&owner);
        outcome
    }

    /// Gives the lock back once. `None`: nobody has it; false: another session has it.
    pub fn release(&self, name: &CompactString, owner: u64) -> Option<bool> {
        let mut state = self.state.lock();
        let held = state.held.get_mut(name)?;
        if held.owner != owner {
            return Some(false);
        }
        held.times -= 1;
        if held.times == 0 {
            state.held.remove(name);
            self.released.notify_all();
        }
        Some(true)
    }

    /// Gives back all that a session has; how many times it had taken them.
    pub fn release_all(&self, owner: u64) -> u64 {
        let mut state = self.state.lock();
        if state.held.is_empty() {
            return 0;
        }
        let mut released = 0;
        state.held.retain(|_, held| {
            let own = held.owner == owner;
            released += if own { held.times } else { 0 };
            !own
        });
        self.released.notify_all();
        released
    }

    /// The connection that has the lock which another waits for.
    pub fn waits_for(&self, waiter: u64) -> Option<u64> {
        let state = self.state.lock();
        let held = state.held.get(state.waiting.get(&waiter)?)?;
        Some(held.owner).filter(|owner| *owner != waiter)
    }

    /// Whether any session waits for a named lock.
    pub fn has_waiters(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// Every lock that is held, and its connection; every lock that is waited for, and by whom.
    pub fn all(&self) -> (Vec<(CompactString, u64)>, Vec<(CompactString, u64)>) {
        let state = self.state.lock();
        let held = state
            .held
            .iter()
            .map(|(name, held)| (name.clone(), held.owner));
        let waiting = state
            .waiting
            .iter()
            .map(|(owner, name)| (name.clone(), *owner));
        (held.collect(), waiting.collect())
    }

    /// The connection that has the lock.
    pub fn owner(&self, name: &CompactString) -> Option<u64> {
        self.state.lock().held.get(name).map(|held| held.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(locks: &NamedLocks, name: &str, owner: u64, seconds: f64) -> Result<bool> {
        let timeout = Some(Duration::from_secs_f64(seconds));
        locks.get(&name_key(name)?, owner, timeout, || (), || false, || Ok(()))
    }

    #[test]
    fn a_lock_is_taken_again_by_its_owner_and_released_as_often() {
        let locks = NamedLocks::default();
        assert!(get(&locks, "a", 1, 0.0).unwrap());
        assert!(get(&locks, "A", 1, 0.0).unwrap());
        assert!(!get(&locks, "a", 2, 0.01).unwrap());
        let a = name_key("a").unwrap();
        assert_eq!(locks.release(&a, 2), Some(false));
        assert_eq!(locks.release(&a, 1), Some(true));
        assert_eq!(locks.owner(&a), Some(1));
        assert_eq!(locks.release_all(1), 1);
        assert_eq!(locks.release(&a, 1), None);
        assert!(get(&locks, "a", 2, 0.0).unwrap());
    }

    #[test]
    fn whoever_would_close_a_cycle_of_waiters_is_refused() {
        let locks = NamedLocks::default();
        assert!(get(&locks, "a", 1, 0.0).unwrap());
        assert!(get(&locks, "b", 2, 0.0).unwrap());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| get(&locks, "b", 1, 30.0));
            while locks.state.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            assert_eq!(get(&locks, "a", 2, 30.0).unwrap_err().number(), 3058);
            locks.release_all(2);
            assert!(waiter.join().unwrap().unwrap());
        });
    }

    #[test]
    fn names_are_limited() {
        assert_eq!(name_key("").unwrap_err().number(), 3057);
        assert_eq!(name_key(&"x".repeat(65)).unwrap_err().number(), 3057);
    }
}
