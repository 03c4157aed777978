//! The graph of waits: which session waits for which, for locks of any kind.
//!
//! ```text
//! a ── waits for a table that ──► b holds, and waits for a row that ──► c holds, and waits in GET_LOCK ──► a
//!  └── or queues behind b, which waits for the table too, and goes first
//! ```
//!
//! Row locks know transactions; a session says which is its own. Storage's search for cycles of row
//! locks asks [`rows_behind`] where a transaction goes on that waits for no row. A session writes
//! down what it holds before it sleeps, and that it waits before it searches, so the last to join a
//! cycle sees all of it.
//!
//! One session of a cycle is the victim and gets error 1213: of those that wait for metadata locks
//! the one of the least weight ([`Mode::weight`]), and of equals the one that closed the cycle.

use std::sync::Arc;

use hashbrown::HashMap;
use porpoise_core::error::{Error, Result};
use porpoise_storage::TxnId;

use super::Locks;
use super::mode::Mode;
use super::process::Control;
use super::queue::{Object, Wait};

/// All sessions at a moment of the search.
struct Graph<'a> {
    locks: &'a Locks,
    sessions: Vec<Arc<Control>>,
    waits: HashMap<u64, Wait>,
}

impl Graph<'_> {
    fn of(locks: &Locks) -> Graph<'_> {
        Graph {
            locks,
            waits: locks.metadata.waits(),
            sessions: locks.sessions.all(),
        }
    }

    /// The sessions that a session waits for, row locks not counted.
    fn before(&self, session: u64) -> Vec<u64> {
        let Some(wait) = self.waits.get(&session) else {
            let named_locks = &self.locks.named;
            return named_locks.waits_for(session).into_iter().collect();
        };
        let mut found = wait.obstacles.clone();
        let others = self.sessions.iter().filter(|other| other.id != session);
        let inside = others.filter(|other| {
            let tables = other.held.tables();
            wait.wants.iter().any(|(object, mode)| match object {
                Object::Global => mode.waits_for(Mode::IntentionExclusive) && other.held.changes(),
                Object::Commit => mode.waits_for(Mode::IntentionExclusive) && other.held.commits(),
                Object::Backup | Object::Schema(_) => false,
                Object::Table(id) | Object::Function(id) | Object::Procedure(id) => tables
                    .iter()
                    .any(|(held, other)| held == id && mode.waits_for(*other)),
            })
        });
        found.extend(inside.map(|other| other.id));
        found
    }

    fn session_of(&self, transaction: TxnId) -> Option<u64> {
        self.sessions
            .iter()
            .find(|session| session.held.transaction() == Some(transaction))
            .map(|session| session.id)
    }

    fn transaction_of(&self, session: u64) -> Option<TxnId> {
        self.sessions
            .iter()
            .find(|other| other.id == session)?
            .held
            .transaction()
    }

    /// The sessions that a session waits for, row locks included.
    fn next(&self, session: u64) -> Vec<u64> {
        let mut next = self.before(session);
        if let Some(transaction) = self.transaction_of(session) {
            let holders = self.locks.rows.row_lock_blockers(transaction);
            next.extend(holders.into_iter().filter_map(|txn| self.session_of(txn)));
        }
        next
    }

    /// The sessions of a cycle that a session is on, itself the first.
    fn cycle(&self, session: u64) -> Option<Vec<u64>> {
        let mut came_from: HashMap<u64, u64> = HashMap::new();
        let from_here = |from: u64| move |next: u64| (from, next);
        let mut rest: Vec<(u64, u64)> = self
            .before(session)
            .into_iter()
            .map(from_here(session))
            .collect();
        while let Some((from, next)) = rest.pop() {
            if next == session {
                let mut cycle = vec![session];
                let mut at = from;
                while at != session {
                    cycle.push(at);
                    at = *came_from.get(&at)?;
                }
                return Some(cycle);
            }
            if came_from.contains_key(&next) {
                continue;
            }
            came_from.insert(next, from);
            rest.extend(self.next(next).into_iter().map(from_here(next)));
        }
        None
    }
}

/// Whether a session that has said what it waits for waits for itself, through others.
pub fn closes_cycle(locks: &Locks, session: u64) -> bool {
    Graph::of(locks).cycle(session).is_some()
}

/// Breaks the cycles that a session's request has closed: by an error, if it is the one to give
/// way.
pub(super) fn break_cycles(locks: &Locks, session: u64) -> Result<()> {
    /// Each round a cycle less. One that others break meanwhile is gone too.
    const ROUNDS_MAX: u32 = 1_000;
    for _ in 0..ROUNDS_MAX {
        let graph = Graph::of(locks);
        let Some(cycle) = graph.cycle(session) else {
            return Ok(());
        };
        let weight = |session: &u64| graph.waits.get(session).map(|wait| wait.weight);
        // The session itself is the first, and so the one of equals.
        let waiters = cycle.iter().filter(|session| weight(session).is_some());
        match waiters.min_by_key(|session| weight(session)) {
            Some(&lightest) if lightest != session => locks.metadata.refuse(lightest),
            _ => return Err(Error::deadlock()),
        }
    }
    Ok(())
}

/// The transactions that one waits for, which waits for something else than a row.
pub fn rows_behind(locks: &Locks, transaction: TxnId) -> Vec<TxnId> {
    if !locks.metadata.has_waiters() && !locks.named.has_waiters() {
        return Vec::new();
    }
    let graph = Graph::of(locks);
    let mut seen = hashbrown::HashSet::new();
    let mut found = Vec::new();
    let mut rest: Vec<u64> = graph.session_of(transaction).into_iter().collect();
    while let Some(next) = rest.pop() {
        for before in graph.before(next) {
            if seen.insert(before) {
                found.extend(graph.transaction_of(before));
                rest.push(before);
            }
        }
    }
    found
}
