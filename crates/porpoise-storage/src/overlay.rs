//! What a transaction has written and not committed.
//!
//! A space's writes are an ordered map behind a reference count. A cursor takes the map as it is; a
//! later write of the same transaction copies the map if a cursor still holds it. So a statement
//! that reads a range while it writes to it never meets its own writes, and a cursor borrows
//! nothing.
//!
//! Every write leaves in `undo` what it replaced. A savepoint is the length of that list; going
//! back to it puts back what was written since, newest first.
//!
//! The overlay lies behind a lock that only its own transaction ever takes to write: whoever reads
//! what isn't committed ([`crate::uncommitted`]) takes it to read, for a row or a batch of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::SpaceId;
use crate::memtable::{Key, Value};
use crate::reclaim::reclaim;

pub(crate) type Writes = BTreeMap<Key, Value>;

pub(crate) struct SpaceOverlay {
    pub space: SpaceId,
    pub writes: Arc<Writes>,
    pub net_rows: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpaceChange {
    Create,
    Drop,
}

#[derive(Default)]
pub(crate) struct Overlay {
    pub spaces: SmallVec<[SpaceOverlay; 2]>,
    pub changes: Vec<(SpaceId, SpaceChange)>,
    undo: Vec<Undo>,
    held_bytes: usize,
}

/// A transaction's overlay, and its readers'.
#[derive(Default)]
pub(crate) struct SharedOverlay(pub RwLock<Overlay>);

impl Drop for SharedOverlay {
    fn drop(&mut self) {
        std::mem::take(self.0.get_mut()).discard();
    }
}

/// What a write takes beside its key and its value: its places in the map and in `undo`, what the
/// allocator adds, and the head of its operation in the log record.
const WRITE_BYTES: usize = 200;

/// What a write takes until the transaction ends. Key and value count twice, as COMMIT encodes them
/// into the log record: what a commit needs is counted before.
fn write_bytes(key: &Key, value: &Value) -> usize {
    WRITE_BYTES + 2 * (key.len() + value.as_ref().map_or(0, |value| value.len()))
}

enum Undo {
    Write {
        space: SpaceId,
        key: Key,
        before: Option<Value>,
        net_rows: i64,
    },
    Change,
}

/// A moment within a transaction to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

impl Savepoint {
    /// Whether nothing was written before it.
    pub(crate) fn is_first(self) -> bool {
        self.0 == 0
    }

    /// How much work would be lost by a rollback: what a deadlock's victim is chosen by.
    pub(crate) fn weight(self) -> usize {
        self.0
    }
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.spaces.iter().all(|s| s.writes.is_empty())
    }

    /// How many bytes the writes take, with those that they replaced, and will take at COMMIT.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub fn writes(&self, space: SpaceId) -> Option<&Arc<Writes>> {
        let found = self.spaces.iter().find(|s| s.space == space)?;
        (!found.writes.is_empty()).then_some(&found.writes)
    }

    pub fn get(&self, space: SpaceId, key: &[u8]) -> Option<&Value> {
        self.writes(space)?.get(key)
    }

    pub fn write(&mut self, space: SpaceId, key: &[u8], value: Value, net_rows: i64) {
        let at = match self.spaces.iter().position(|s| s.space == space) {
            Some(at) => at,
            None => {
                self.spaces.push(SpaceOverlay {
                    space,
                    writes: Arc::default(),
                    net_rows: 0,
                });
                self.spaces.len() - 1
            }
        };
        let target = &mut self.spaces[at];
        let key: Key = key.into();
        self.held_bytes += write_bytes(&key, &value);
        let before = Arc::make_mut(&mut target.writes).insert(key.clone(), value);
        target.net_rows += net_rows;
        self.undo.push(Undo::Write {
            space,
            key,
            before,
            net_rows,
        });
    }

    pub fn change(&mut self, space: SpaceId, change: SpaceChange) {
        self.changes.push((space, change));
        self.undo.push(Undo::Change);
    }

    /// Adds to the rows that a space has more after the commit.
    pub fn add_rows(&mut self, space: SpaceId, net: i64) {
        match self.spaces.iter_mut().find(|s| s.space == space) {
            Some(found) => found.net_rows += net,
            None => self.spaces.push(SpaceOverlay {
                space,
                writes: Arc::default(),
                net_rows: net,
            }),
        }
    }

    /// Gives up what it would take to undo the writes so far.
    pub fn forget_undo(&mut self) {
        self.undo = Vec::new();
    }

    /// Gives up, as the transaction commits, what it would take to undo very many writes: memory
    /// that the commit needs.
    pub fn give_up_undo(&mut self) {
        const MANY: usize = 100_000;
        if self.undo.len() > MANY {
            reclaim(std::mem::take(&mut self.undo));
        }
    }

    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.undo.len())
    }

    /// Drops everything. What takes a while to free another thread frees.
    pub fn discard(self) {
        const LARGE_BYTES: usize = 16 << 20;
        if self.held_bytes > LARGE_BYTES {
            reclaim(self);
        }
    }

    /// Undoes at most `count` of the changes since the savepoint; `false` when there are no more.
    pub fn roll_back(&mut self, savepoint: Savepoint, count: usize) -> bool {
        let end = savepoint.0.max(self.undo.len().saturating_sub(count));
        while self.undo.len() > end {
            match self.undo.pop() {
                Some(Undo::Write {
                    space,
                    key,
                    before,
                    net_rows,
                }) => {
                    let Some(target) = self.spaces.iter_mut().find(|s| s.space == space) else {
                        continue;
                    };
                    let writes = Arc::make_mut(&mut target.writes);
                    let undone = match before {
                        Some(value) => writes.insert(key.clone(), value),
                        None => writes.remove(&key),
                    };
                    let undone = undone.map_or(0, |value| write_bytes(&key, &value));
                    self.held_bytes = self.held_bytes.saturating_sub(undone);
                    target.net_rows -= net_rows;
                }
                Some(Undo::Change) => {
                    self.changes.pop();
                }
                None => {}
            }
        }
        let is_more = end > savepoint.0;
        if !is_more && self.undo.capacity() / 4 > self.undo.len() {
            self.undo.shrink_to(self.undo.len() * 2);
        }
        is_more
    }
}
