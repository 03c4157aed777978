//! What a store must hold: every commit in order, what became of it, and what may be left after a
//! crash.
//!
//! A commit that is on its way may be found after a crash or not, but only whole, and only with all
//! that were before it. So the store after a crash is the store as it was after some commit, and
//! its newest timestamp says after which: no older than what was promised, and all that the model
//! has up to there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub type Value = Arc<[u8]>;
pub type Place = (u32, u16);

/// Rows, spaces and counters as of one commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    pub rows: BTreeMap<Place, Value>,
    pub spaces: BTreeSet<u32>,
    pub dropped: BTreeSet<u32>,
    pub counters: BTreeMap<u32, u64>,
    /// Prepared transactions, by the number in their key: what each is to do.
    pub prepared: BTreeMap<u16, Change>,
}

/// What one transaction does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub writes: BTreeMap<Place, Option<Value>>,
    pub created: Vec<u32>,
    pub dropped: Vec<u32>,
    pub counters: BTreeMap<u32, u64>,
    /// A transaction is prepared: its number, and what it is to do.
    pub prepares: Option<(u16, Box<Change>)>,
    /// A prepared transaction is committed or rolled back.
    pub ends: Option<u16>,
}

impl Change {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.created.is_empty()
            && self.dropped.is_empty()
            && self.counters.is_empty()
    }
}

impl Contents {
    pub fn apply(&mut self, change: &Change) {
        self.spaces.extend(&change.created);
        for (place, value) in &change.writes {
            match value {
                Some(value) => self.rows.insert(*place, Arc::clone(value)),
                None => self.rows.remove(place),
            };
        }
        for space in &change.dropped {
            self.spaces.remove(space);
            self.dropped.insert(*space);
            self.rows.retain(|(s, _), _| s != space);
            self.counters.remove(space);
        }
        if let Some((number, prepared)) = &change.prepares {
            self.prepared.insert(*number, Change::clone(prepared));
        }
        if let Some(number) = &change.ends {
            self.prepared.remove(number);
        }
        for (space, value) in &change.counters {
            let counter = self.counters.entry(*space).or_default();
            *counter = (*counter).max(*value);
        }
    }
}

struct Logged {
    number: u64,
    /// Unknown while the call that makes it is under way.
    ts: Option<u64>,
    has_failed: bool,
    change: Change,
}

/// Everything that was committed, or may have been.
#[derive(Default)]
pub struct Model {
    base: Contents,
    base_ts: u64,
    commits: Vec<Logged>,
    last_number: u64,
    /// The newest timestamp that was given out, and whether that is certain.
    pub last_ts: u64,
    pub is_last_ts_certain: bool,
    /// All up to here survives the machine.
    pub durable: u64,
    /// All up to here survives the process.
    pub written: u64,
}

impl Model {
    /// A commit is about to be made; its number.
    pub fn begin_commit(&mut self, change: Change) -> u64 {
        self.last_number += 1;
        self.commits.push(Logged {
            number: self.last_number,
            ts: None,
            has_failed: false,
            change,
        });
        self.last_number
    }

    pub fn made(&mut self, number: u64, ts: u64) {
        if let Some(commit) = self.commits.iter_mut().find(|c| c.number == number) {
            commit.ts = Some(ts);
        }
        self.last_ts = self.last_ts.max(ts);
        self.is_last_ts_certain = true;
    }

    /// It was refused before it had a place in the log.
    pub fn refused(&mut self, number: u64) {
        self.commits.retain(|c| c.number != number);
    }

    /// It has a place in the log, but an error was reported: who knows what the disk has.
    pub fn failed(&mut self, number: u64) {
        if let Some(commit) = self.commits.iter_mut().find(|c| c.number == number) {
            commit.has_failed = true;
        }
    }

    /// The store goes on after a failure: what failed is not there, and never will be.
    pub fn recovered(&mut self) {
        self.commits.retain(|c| !c.has_failed);
    }

    /// Whether it can be told what the log may hold, in the middle of a call.
    pub fn is_certain(&self) -> bool {
        self.is_last_ts_certain || self.commits.iter().all(|c| c.ts.is_some())
    }

    /// Everything but what has failed, on disk or not, and the number of the last commit that
    /// wrote the place.
    pub fn newest(&self, place: Place) -> (Contents, Option<u64>) {
        let mut contents = self.base.clone();
        let mut writer = None;
        for commit in self.commits.iter().filter(|commit| !commit.has_failed) {
            contents.apply(&commit.change);
            if commit.change.writes.contains_key(&place) {
                writer = Some(commit.number);
            }
        }
        (contents, writer)
    }

    pub fn contents_at(&self, ts: u64) -> Contents {
        assert!(ts >= self.base_ts, "{ts} is before {}", self.base_ts);
        let mut contents = self.base.clone();
        let mut next = self.last_ts;
        for commit in &self.commits {
            let at = commit.ts.unwrap_or_else(|| {
                next += 1;
                next
            });
            if at <= ts {
                contents.apply(&commit.change);
            }
        }
        contents
    }

    /// Forgets how it came to what is durable.
    pub fn shorten(&mut self) {
        let durable = self.durable;
        let is_past = |c: &Logged| c.ts.is_some_and(|ts| ts <= durable) && !c.has_failed;
        let past = self.commits.iter().take_while(|c| is_past(c)).count();
        for commit in self.commits.drain(..past) {
            self.base.apply(&commit.change);
            self.base_ts = commit.ts.unwrap_or(self.base_ts);
        }
    }

    /// After a start that found everything up to `ts`.
    pub fn restart_at(&mut self, ts: u64) {
        self.base = self.contents_at(ts);
        self.base_ts = ts;
        self.commits.clear();
        self.last_ts = ts;
        self.is_last_ts_certain = true;
        self.durable = ts;
        self.written = ts;
    }
}
