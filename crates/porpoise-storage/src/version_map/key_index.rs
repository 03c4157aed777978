//! Where in the list to begin a search: a B-link tree over the entries in which no reader waits.
//!
//! ```text
//! level 1      │ c  │ m   t │                        a node: prefixes side by side, then their targets
//!               ╱    │    ╲
//! level 0   │ a b │ │ c d k │ ─► │ m p │ ─► │ t │     each node points to the one to the right
//!             │ │     │ │ │        │ │        │
//! list        a─b─────c─d─k────────m─p────────t
//! ```
//!
//! A search reads some forty prefixes in four nodes, a few lines of memory that lie together, where
//! a skip list would read twenty entries, each somewhere else.
//!
//! **The list has the truth.** The index is asked where to begin, and what it says is checked: an
//! entry that lies before the key sought is a good place, however it was found. So a reader reads
//! nodes while a writer changes them, a node that was split before its parent was updated is
//! reached from its left neighbour, and a writer that finds a node latched for long gives up
//! without having inserted anything: this costs searches a step along the list.
//!
//! **Exact answers.** Most searches are for keys that the map doesn't have, or for the first key of
//! a range, and the leaf alone answers them, without a look at an entry: it has every entry, unless
//! a writer gave up once, or changed the node during the search (its version is odd while it is
//! changed, and higher afterwards).

use std::cmp::Ordering as Order;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::arena::{ALIGNMENT, Arena};
use super::entry::EntryPtr;
use crate::prefetch::prefetch;
use crate::prefix::Probe;

/// How many entries or child nodes a node has room for.
const SLOTS_MAX: usize = 32;

/// More than enough for all entries that a map can have.
const LEVELS_MAX: u32 = 12;

/// How often a writer tries to latch a node. One is latched for some tens of nanoseconds, or by a
/// thread that has lost its core.
const LATCH_TRIES_MAX: usize = 200;

/// What an entry takes in the index, about: nodes are two thirds full.
pub(super) const BYTES_PER_KEY: usize = 2 * size_of::<u64>() * 3 / 2;

struct Node {
    /// Odd while a writer changes the node.
    version: AtomicU32,
    len: AtomicU32,
    level: u32,
    /// No entry in the node or under it comes before this one, and none before the node comes after
    /// it.
    low: EntryPtr,
    /// The next node of the level.
    right: AtomicPtr<Node>,
    /// Of each slot's key: an entry's, or the lowest in a node.
    prefixes: [AtomicU64; SLOTS_MAX],
    /// Entries, or nodes of the level below.
    targets: [AtomicPtr<u8>; SLOTS_MAX],
}

const _: () = assert!(align_of::<Node>() <= ALIGNMENT);

/// A pointer to a node. Valid as long as its arena.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NodePtr(NonNull<Node>);

impl std::ops::Deref for NodePtr {
    type Target = Node;

    fn deref(&self) -> &Node {
        // SAFETY: the arena outlives the pointer, and of a node only atomics change.
        unsafe { self.0.as_ref() }
    }
}

impl NodePtr {
    fn new(arena: &Arena, level: u32, low: EntryPtr) -> NodePtr {
        let at = arena.allocate(size_of::<Node>()).cast::<Node>();
        // SAFETY: the memory is as large as a node, aligned for it, and nobody else's yet.
        unsafe {
            at.write(Node {
                version: AtomicU32::new(0),
                len: AtomicU32::new(0),
                level,
                low,
                right: AtomicPtr::new(ptr::null_mut()),
                prefixes: [const { AtomicU64::new(0) }; SLOTS_MAX],
                targets: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS_MAX],
            });
        }
        NodePtr(at)
    }

    fn from_ptr(node: *mut Node) -> Option<NodePtr> {
        NonNull::new(node).map(NodePtr)
    }

    fn as_ptr(self) -> *mut Node {
        self.0.as_ptr()
    }

    /// Prefetches the prefixes, which lie side by side.
    #[inline]
    fn prefetch(self) {
        prefetch(self.as_ptr().cast(), 64 + SLOTS_MAX * size_of::<u64>());
    }

    /// Latches the node for a change; false if another thread keeps it latched.
    fn try_latch(self) -> bool {
        for _ in 0..LATCH_TRIES_MAX {
            let version = self.version.load(Ordering::Relaxed);
            if version.is_multiple_of(2)
                && (self.version)
                    .compare_exchange(
                        version,
                        version.wrapping_add(1),
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    fn unlatch(self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Release);
    }
}

impl Node {
    fn len(&self) -> usize {
        (self.len.load(Ordering::Acquire) as usize).min(SLOTS_MAX)
    }

    fn prefix(&self, at: usize) -> u64 {
        self.prefixes[at].load(Ordering::Acquire)
    }

    fn target(&self, at: usize) -> *mut u8 {
        self.targets[at].load(Ordering::Acquire)
    }

    fn right(&self) -> Option<NodePtr> {
        NodePtr::from_ptr(self.right.load(Ordering::Acquire))
    }

    /// The entry of a slot: in a leaf its target, above that the lowest entry below its target.
    fn entry(&self, at: usize) -> Option<EntryPtr> {
        let target = self.target(at);
        match self.level {
            0 => NonNull::new(target).map(|target| EntryPtr(target.cast())),
            _ => Some(NodePtr::from_ptr(target.cast())?.low),
        }
    }

    /// How many slots lie before the probe, of the first `len`; and whether the next one has the
    /// probe's prefix.
    #[inline]
    fn lower_bound(&self, probe: &Probe<'_>, len: usize) -> (usize, bool) {
        let (mut from, mut to) = (0, len);
        while from < to {
            let middle = (from + to) / 2;
            if self.prefix(middle) < probe.prefix() {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        if from == len || self.prefix(from) != probe.prefix() {
            return (from, false);
        }
        self.lower_bound_among_equal(probe, from, len)
    }

    /// As [`lower_bound`](Self::lower_bound), where the slot `from` is the first with the probe's
    /// prefix.
    fn lower_bound_among_equal(&self, probe: &Probe<'_>, from: usize, len: usize) -> (usize, bool) {
        let (mut from, mut to) = (from, len);
        while from < to {
            let middle = (from + to) / 2;
            let is_before = self.prefix(middle) == probe.prefix()
                && self
                    .entry(middle)
                    .is_some_and(|entry| probe.compare_entry(entry).is_lt());
            if is_before {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        (from, from < len && self.prefix(from) == probe.prefix())
    }
}

/// What the index knows of a key's neighbours.
pub(super) struct KeyLocation {
    /// Comes before the key if the answer is exact, and likely if it isn't; the list's head if
    /// there is no other.
    pub before: EntryPtr,
    /// The first entry that doesn't, as far as the index knows.
    pub at_or_after: Option<EntryPtr>,
    /// `at_or_after` may have the very key: it has the key's prefix.
    pub may_be_equal: bool,
    /// All of this is so, and there is no entry between the two.
    pub is_exact: bool,
}

/// The index of a map's list.
pub(super) struct KeyIndex {
    /// The list's head, which comes before every entry.
    head: EntryPtr,
    root: AtomicPtr<Node>,
    /// Some entry isn't in the index.
    is_incomplete: AtomicBool,
}

impl KeyIndex {
    /// The index of an empty list.
    pub fn new(arena: &Arena, head: EntryPtr) -> KeyIndex {
        KeyIndex {
            head,
            root: AtomicPtr::new(NodePtr::new(arena, 0, head).as_ptr()),
            is_incomplete: AtomicBool::new(false),
        }
    }

    fn root(&self) -> NodePtr {
        // SAFETY: `new` has set it, and nobody takes it away.
        NodePtr(unsafe { NonNull::new_unchecked(self.root.load(Ordering::Acquire)) })
    }

    /// The node of this level in which the key belongs, or one to the left of it.
    #[inline]
    fn descend(&self, probe: &Probe<'_>, level: u32) -> Option<NodePtr> {
        let mut node = self.root();
        if node.level < level {
            return None;
        }
        node.prefetch();
        while node.level > level {
            let len = node.len();
            let (before, _) = node.lower_bound(probe, len);
            if before == len
                && let Some(right) = node.right()
                && probe.compare_entry(right.low).is_lt()
            {
                node = right;
                continue;
            }
            // Nothing lies before the first, or another thread is changing the node.
            node = NodePtr::from_ptr(node.target(before.saturating_sub(1)).cast())?;
            node.prefetch();
        }
        Some(node)
    }

    /// Where the probe's key is, or would be; `None` where a concurrent change has misled the
    /// search.
    #[inline]
    pub fn locate(&self, probe: &Probe<'_>) -> Option<KeyLocation> {
        let mut node = self.descend(probe, 0)?;
        loop {
            let version = node.version.load(Ordering::Acquire);
            let len = node.len();
            let (at, mut may_be_equal) = node.lower_bound(probe, len);
            let mut at_or_after = None;
            if at < len {
                at_or_after = node.entry(at);
            } else if let Some(right) = node.right() {
                match probe.compare_entry(right.low) {
                    Order::Less => {
                        node = right;
                        continue;
                    }
                    order => may_be_equal = order.is_eq(),
                }
                at_or_after = Some(right.low);
            }
            let before = match at.checked_sub(1) {
                Some(last) => node.entry(last)?,
                None if node.low == self.head => self.head,
                None => return None,
            };
            let is_same =
                version.is_multiple_of(2) && node.version.load(Ordering::Relaxed) == version;
            return Some(KeyLocation {
                before,
                at_or_after,
                may_be_equal,
                is_exact: is_same && !self.is_incomplete.load(Ordering::Relaxed),
            });
        }
    }

    /// The last entry, or one that isn't far from it.
    pub fn approximate_last(&self) -> Option<EntryPtr> {
        let mut node = self.root();
        loop {
            while let Some(right) = node.right() {
                node = right;
            }
            let last = node.len().checked_sub(1);
            match last {
                _ if node.level > 0 => node = NodePtr::from_ptr(node.target(last?).cast())?,
                Some(last) => return node.entry(last),
                None => return Some(node.low),
            }
        }
    }

    /// Adds an entry of the list, unless the index has it already.
    pub fn insert(&self, arena: &Arena, entry: EntryPtr) {
        if !self.insert_into_level(arena, 0, entry, entry.0.as_ptr().cast()) {
            self.is_incomplete.store(true, Ordering::Relaxed);
        }
    }

    /// Adds an entry, or a node by its lowest entry, to the level; false if another thread kept the
    /// node latched where it belongs.
    fn insert_into_level(&self, arena: &Arena, level: u32, key: EntryPtr, target: *mut u8) -> bool {
        let probe = Probe::new(key.key());
        let Some(node) = self.latch_node_of(&probe, level) else {
            return false;
        };
        let len = node.len();
        let (at, _) = node.lower_bound(&probe, len);
        if at < len && node.target(at) == target {
            node.unlatch();
            return true;
        }
        if len < SLOTS_MAX {
            insert_slot(&node, at, probe.prefix(), target);
            node.unlatch();
            return true;
        }
        self.split_and_insert(arena, node, at, (key, probe.prefix(), target))
    }

    /// Latches the node of this level in which the key belongs; `None` if another thread keeps one
    /// latched, or a concurrent change has misled the search.
    fn latch_node_of(&self, probe: &Probe<'_>, level: u32) -> Option<NodePtr> {
        let mut node = self.descend(probe, level)?;
        if !node.try_latch() {
            return None;
        }
        // It may have been split since.
        while let Some(right) = node.right()
            && probe.compare_entry(right.low).is_le()
        {
            node.unlatch();
            node = right;
            if !node.try_latch() {
                return None;
            }
        }
        if node.low != self.head && probe.compare_entry(node.low).is_gt() {
            node.unlatch();
            return None;
        }
        Some(node)
    }

    /// Splits a full, latched node, adds a slot at `at` to the half where it belongs, and unlatches
    /// the node; false if it has changed nothing.
    fn split_and_insert(
        &self,
        arena: &Arena,
        node: NodePtr,
        at: usize,
        (key, prefix, target): (EntryPtr, u64, *mut u8),
    ) -> bool {
        let level = node.level;
        // What is added at the end is likely followed by more there: the left node stays full.
        let from = if at == SLOTS_MAX {
            SLOTS_MAX
        } else {
            SLOTS_MAX / 2
        };
        let low = match from {
            SLOTS_MAX => Some(key),
            _ => node.entry(from),
        };
        let Some(low) = low else {
            node.unlatch();
            return false;
        };
        let right = NodePtr::new(arena, level, low);
        for slot in from..SLOTS_MAX {
            insert_slot(&right, slot - from, node.prefix(slot), node.target(slot));
        }
        match at.checked_sub(from) {
            Some(at) if at > 0 || from == SLOTS_MAX => insert_slot(&right, at, prefix, target),
            _ => {}
        }
        let after_right = node.right.load(Ordering::Relaxed);
        right.right.store(after_right, Ordering::Relaxed);
        node.right.store(right.as_ptr(), Ordering::Release);
        node.len.store(from as u32, Ordering::Release);
        if at <= from && from < SLOTS_MAX {
            insert_slot(&node, at, prefix, target);
        }
        if self.root.load(Ordering::Relaxed) == node.as_ptr() && level < LEVELS_MAX {
            let root = NodePtr::new(arena, level + 1, node.low);
            insert_slot(&root, 0, 0, node.as_ptr().cast());
            let prefix = low.entry().prefix;
            insert_slot(&root, 1, prefix, right.as_ptr().cast());
            self.root.store(root.as_ptr(), Ordering::Release);
            node.unlatch();
        } else {
            node.unlatch();
            // Without it, the right one is found from the left one.
            self.insert_into_level(arena, level + 1, low, right.as_ptr().cast());
        }
        true
    }
}

/// Adds a slot at `at` to a node that has room, by moving up what follows it, from the end: a
/// concurrent reader sees a slot twice, or in its old place.
fn insert_slot(node: &Node, at: usize, prefix: u64, target: *mut u8) {
    let len = node.len();
    for slot in (at..len).rev() {
        node.targets[slot + 1].store(node.target(slot), Ordering::Release);
        node.prefixes[slot + 1].store(node.prefix(slot), Ordering::Release);
    }
    node.targets[at].store(target, Ordering::Release);
    node.prefixes[at].store(prefix, Ordering::Release);
    node.len.store(len as u32 + 1, Ordering::Release);
}
