//! Where in the list to begin a search: a B-tree over the entries, of which readers and writers wait for nobody.
//!
//! ```text
//! level 1      │ c  │ m   t │                        a node: prefixes side by side, then what they stand for
//!               ╱    │    ╲
//! level 0   │ a b │ │ c d k │ ─► │ m p │ ─► │ t │     each knows the one to the right
//!             │ │     │ │ │        │ │        │
//! list        a─b─────c─d─k────────m─p────────t
//! ```
//!
//! A search looks at some forty prefixes in four nodes, a few lines of memory that lie together, where a skip list would look
//! at twenty entries, each somewhere else.
//!
//! **The list has the truth.** The guide is asked where to begin, and what it says is checked: an entry that lies before the one
//! sought is a good place, however it was come by. So a reader looks at nodes while somebody changes them, a node that was split
//! before its parent knew is reached from its left neighbour, and a writer that finds a node taken and not given back soon goes away
//! without having entered anything: this costs searches a step along the list.
//!
//! **Sure answers.** Most searches are for keys that the map doesn't have, or for the first key of a range, and the leaf tells the
//! answer: it has every entry, if no writer ever went away, and nobody has changed it during the look (a number that is odd
//! while it is changed). Then no entry is looked at in vain.

use std::cmp::Ordering as Order;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::{ALIGNMENT, Arena, At};
use crate::prefetch::prefetch;
use crate::prefix::Probe;

/// What a node has room for.
const SLOTS: usize = 32;

/// More than enough for all entries that a map can have.
const LEVELS_MAX: u32 = 12;

/// How often a writer looks whether a node is free. It is taken for some tens of nanoseconds, or by a thread that has lost its core.
const LOOKS_MAX: usize = 200;

/// What an entry takes in the guide, about: nodes are two thirds full.
pub(super) const SLOT_BYTES: usize = 2 * size_of::<u64>() * 3 / 2;

struct Node {
    /// Odd while somebody changes the node.
    version: AtomicU32,
    len: AtomicU32,
    level: u32,
    /// No entry in the node or under it comes before this one, and none before the node comes after it.
    low: At,
    right: AtomicPtr<Node>,
    /// Of each slot's key: an entry's, or the lowest in a node.
    prefixes: [AtomicU64; SLOTS],
    /// Entries, or nodes of the level below.
    targets: [AtomicPtr<u8>; SLOTS],
}

const _: () = assert!(align_of::<Node>() <= ALIGNMENT);

/// A node's place. It lives as long as its arena.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place(NonNull<Node>);

impl std::ops::Deref for Place {
    type Target = Node;

    fn deref(&self) -> &Node {
        // SAFETY: whoever holds a place holds the arena, and of a node only atomics change.
        unsafe { self.0.as_ref() }
    }
}

impl Place {
    fn new(arena: &Arena, level: u32, low: At) -> Place {
        let piece = arena.allocate(size_of::<Node>());
        let at = piece.cast::<Node>();
        // SAFETY: the piece is as large as a node, aligned for it, and nobody else's yet.
        unsafe {
            at.write(Node {
                version: AtomicU32::new(0),
                len: AtomicU32::new(0),
                level,
                low,
                right: AtomicPtr::new(ptr::null_mut()),
                prefixes: [const { AtomicU64::new(0) }; SLOTS],
                targets: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS],
            });
        }
        Place(at)
    }

    fn from_ptr(node: *mut Node) -> Option<Place> {
        NonNull::new(node).map(Place)
    }

    fn as_ptr(self) -> *mut Node {
        self.0.as_ptr()
    }

    /// Has the prefixes brought near, which lie side by side.
    #[inline]
    fn approach(self) {
        prefetch(self.as_ptr().cast(), 64 + SLOTS * size_of::<u64>());
    }

    /// Takes the node for a change; false if somebody else keeps it.
    fn take(self) -> bool {
        for _ in 0..LOOKS_MAX {
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

    fn give_back(self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Release);
    }
}

impl Node {
    fn len(&self) -> usize {
        (self.len.load(Ordering::Acquire) as usize).min(SLOTS)
    }

    fn prefix(&self, at: usize) -> u64 {
        self.prefixes[at].load(Ordering::Acquire)
    }

    fn target(&self, at: usize) -> *mut u8 {
        self.targets[at].load(Ordering::Acquire)
    }

    fn right(&self) -> Option<Place> {
        Place::from_ptr(self.right.load(Ordering::Acquire))
    }

    /// The entry of a slot: in a leaf what it stands for, above that the lowest in the node it stands for.
    fn entry(&self, at: usize) -> Option<At> {
        let target = self.target(at);
        match self.level {
            0 => NonNull::new(target).map(|target| At(target.cast())),
            _ => Some(Place::from_ptr(target.cast())?.low),
        }
    }

    /// How many slots lie before the probe, of the first `len`; and whether the next one has the probe's prefix.
    #[inline]
    fn before(&self, probe: &Probe<'_>, len: usize) -> (usize, bool) {
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
        self.before_of_equal(probe, from, len)
    }

    /// As [`before`](Self::before), where the slot `from` is the first with the probe's prefix.
    fn before_of_equal(&self, probe: &Probe<'_>, from: usize, len: usize) -> (usize, bool) {
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

/// What the guide knows of a key's surroundings.
pub(super) struct Located {
    /// Comes before the key if the answer is sure, and likely if it isn't; the list's head if there is no other.
    pub before: At,
    /// The first entry that doesn't, as far as the guide knows.
    pub behind: Option<At>,
    /// `behind` may have the very key: it has the key's prefix.
    pub may_be_equal: bool,
    /// All of this is so, and there is no entry between the two.
    pub is_sure: bool,
}

pub(super) struct Guide {
    /// The list's, which no node has an entry before.
    head: At,
    root: AtomicPtr<Node>,
    /// An entry isn't in the guide.
    has_gaps: AtomicBool,
}

impl Guide {
    /// The guide of an empty list.
    pub fn new(arena: &Arena, head: At) -> Guide {
        Guide {
            head,
            root: AtomicPtr::new(Place::new(arena, 0, head).as_ptr()),
            has_gaps: AtomicBool::new(false),
        }
    }

    fn root(&self) -> Place {
        // SAFETY: `new` has set it, and nobody takes it away.
        Place(unsafe { NonNull::new_unchecked(self.root.load(Ordering::Acquire)) })
    }

    /// The node of this level in which the key belongs, or one to the left of it.
    #[inline]
    fn descend(&self, probe: &Probe<'_>, level: u32) -> Option<Place> {
        let mut node = self.root();
        if node.level < level {
            return None;
        }
        node.approach();
        while node.level > level {
            let len = node.len();
            let (before, _) = node.before(probe, len);
            if before == len
                && let Some(right) = node.right()
                && probe.compare_entry(right.low).is_lt()
            {
                node = right;
                continue;
            }
            // Nothing lies before the first, or somebody is changing the node.
            node = Place::from_ptr(node.target(before.saturating_sub(1)).cast())?;
            node.approach();
        }
        Some(node)
    }

    /// Where the probe is, or would be; `None` where a change under way has led astray.
    #[inline]
    pub fn locate(&self, probe: &Probe<'_>) -> Option<Located> {
        let mut node = self.descend(probe, 0)?;
        loop {
            let version = node.version.load(Ordering::Acquire);
            let len = node.len();
            let (at, mut may_be_equal) = node.before(probe, len);
            let mut behind = None;
            if at < len {
                behind = node.entry(at);
            } else if let Some(right) = node.right() {
                match probe.compare_entry(right.low) {
                    Order::Less => {
                        node = right;
                        continue;
                    }
                    order => may_be_equal = order.is_eq(),
                }
                behind = Some(right.low);
            }
            let before = match at.checked_sub(1) {
                Some(last) => node.entry(last)?,
                None if node.low == self.head => self.head,
                None => return None,
            };
            let is_same =
                version.is_multiple_of(2) && node.version.load(Ordering::Relaxed) == version;
            return Some(Located {
                before,
                behind,
                may_be_equal,
                is_sure: is_same && !self.has_gaps.load(Ordering::Relaxed),
            });
        }
    }

    /// The last entry, or one that isn't far from it.
    pub fn near_last(&self) -> Option<At> {
        let mut node = self.root();
        loop {
            while let Some(right) = node.right() {
                node = right;
            }
            let last = node.len().checked_sub(1);
            match last {
                _ if node.level > 0 => node = Place::from_ptr(node.target(last?).cast())?,
                Some(last) => return node.entry(last),
                None => return Some(node.low),
            }
        }
    }

    /// Enters what is in the list; what is in the guide already stays there, once.
    pub fn enter(&self, arena: &Arena, entry: At) {
        if !self.put(arena, 0, entry, entry.0.as_ptr().cast()) {
            self.has_gaps.store(true, Ordering::Relaxed);
        }
    }

    /// Puts an entry, or a node by its lowest entry, into the level; false if somebody else kept the node where it belongs.
    fn put(&self, arena: &Arena, level: u32, key: At, target: *mut u8) -> bool {
        let probe = Probe::new(key.key());
        let Some(mut node) = self.descend(&probe, level) else {
            return false;
        };
        if !node.take() {
            return false;
        }
        // It may have been split since.
        while let Some(right) = node.right()
            && probe.compare_entry(right.low).is_le()
        {
            node.give_back();
            node = right;
            if !node.take() {
                return false;
            }
        }
        if node.low != self.head && probe.compare_entry(node.low).is_gt() {
            // Led astray.
            node.give_back();
            return false;
        }
        let len = node.len();
        let (at, _) = node.before(&probe, len);
        if at < len && node.target(at) == target {
            node.give_back();
            return true;
        }
        if len < SLOTS {
            shift_in(&node, at, probe.prefix(), target);
            node.give_back();
            return true;
        }
        // What is added at the end is likely followed by more there: the left one stays full.
        let from = if at == SLOTS { SLOTS } else { SLOTS / 2 };
        let low = match from {
            SLOTS => Some(key),
            _ => node.entry(from),
        };
        let Some(low) = low else {
            node.give_back();
            return false;
        };
        let right = Place::new(arena, level, low);
        for slot in from..SLOTS {
            shift_in(&right, slot - from, node.prefix(slot), node.target(slot));
        }
        match at.checked_sub(from) {
            Some(at) if at > 0 || from == SLOTS => shift_in(&right, at, probe.prefix(), target),
            _ => {}
        }
        let right_of_right = node.right.load(Ordering::Relaxed);
        right.right.store(right_of_right, Ordering::Relaxed);
        node.right.store(right.as_ptr(), Ordering::Release);
        node.len.store(from as u32, Ordering::Release);
        if at <= from && from < SLOTS {
            shift_in(&node, at, probe.prefix(), target);
        }
        if self.root.load(Ordering::Relaxed) == node.as_ptr() && level < LEVELS_MAX {
            let root = Place::new(arena, level + 1, node.low);
            shift_in(&root, 0, 0, node.as_ptr().cast());
            let prefix = low.entry().prefix;
            shift_in(&root, 1, prefix, right.as_ptr().cast());
            self.root.store(root.as_ptr(), Ordering::Release);
            node.give_back();
        } else {
            node.give_back();
            // Without it, the right one is found from the left one.
            self.put(arena, level + 1, low, right.as_ptr().cast());
        }
        true
    }
}

/// Makes room at a place of a node that has room, by moving up what is behind it, from the end: whoever looks meanwhile
/// sees something twice, or in an old place.
fn shift_in(node: &Node, at: usize, prefix: u64, target: *mut u8) {
    let len = node.len();
    for slot in (at..len).rev() {
        node.targets[slot + 1].store(node.target(slot), Ordering::Release);
        node.prefixes[slot + 1].store(node.prefix(slot), Ordering::Release);
    }
    node.targets[at].store(target, Ordering::Release);
    node.prefixes[at].store(prefix, Ordering::Release);
    node.len.store(len as u32 + 1, Ordering::Release);
}
