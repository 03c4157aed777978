//! The rings' memory: how words and rings lie in a mapping, and the only place that follows pointers into it.
//!
//! ```text
//!        0 ┌──────────────────────┐
//!          │ the client's Side    │ 128 bytes
//!          │ the server's Side    │ 128 bytes
//!   1 page ├──────────────────────┤
//!          │ ring client ► server │ [`Shape::up`] bytes
//!          ├──────────────────────┤
//!          │ ring server ► client │ [`Shape::down`] bytes
//!          └──────────────────────┘
//! ```
//!
//! The other end may write anywhere in it at any time. So nothing in it is ever borrowed but the words, which are atomic;
//! bytes are copied in and out, once. A peer that writes while they are copied decides what is copied, and no more.

use crate::ring::{Atomics, Cursor, Flags, Memory, Side};
use crate::sys::Mapping;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The processor's own words.
#[derive(Debug, Default)]
pub struct Native;

impl Atomics for Native {
    type Cursor = AtomicU64;
    type Flags = AtomicU32;

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

impl Cursor for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
}

impl Flags for AtomicU32 {
    fn load(&self, order: Ordering) -> u32 {
        AtomicU32::load(self, order)
    }

    fn store(&self, value: u32, order: Ordering) {
        AtomicU32::store(self, value, order);
    }
}

const PAGE: usize = 4096;
const SIDES: usize = 2 * size_of::<Side<Native>>();
const _: () = assert!(SIDES <= PAGE && PAGE.is_multiple_of(align_of::<Side<Native>>()));

/// The rings' capacities in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Of the ring from the client to the server.
    pub up: usize,
    /// Of the ring from the server to the client.
    pub down: usize,
}

/// Most of what goes in or out fits at once; what doesn't goes in turns. Pages that no byte ever lay in cost nothing.
pub const SHAPE: Shape = Shape {
    up: 16 << 10,
    down: 64 << 10,
};

const CAPACITY_MIN: usize = PAGE;
const CAPACITY_MAX: usize = 1 << 30;

impl Shape {
    /// The length of the memory; an error if the rings' capacities are none.
    pub fn length(self) -> io::Result<usize> {
        let is_capacity = |bytes: usize| {
            bytes.is_power_of_two() && (CAPACITY_MIN..=CAPACITY_MAX).contains(&bytes)
        };
        if is_capacity(self.up) && is_capacity(self.down) {
            Ok(PAGE + self.up + self.down)
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a ring's capacity is a power of two between a page and a gigabyte",
            ))
        }
    }
}

/// Whose view of the memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It connected.
    Client,
    /// It made the memory.
    Server,
}

/// One end's view of mapped memory.
#[derive(Debug)]
pub struct Mapped {
    mapping: Mapping,
    shape: Shape,
    role: Role,
}

impl Mapped {
    /// Maps `memory`, which is as long as `shape` says and can't shrink.
    pub(crate) fn new(memory: &OwnedFd, shape: Shape, role: Role) -> io::Result<Mapped> {
        let mapping = Mapping::new(memory, shape.length()?)?;
        Ok(Mapped {
            mapping,
            shape,
            role,
        })
    }

    /// Both ends' views of memory that no other process has.
    #[cfg(test)]
    pub(crate) fn pair_in_heap(shape: Shape) -> [Mapped; 2] {
        let [client, server] = Mapping::pair_in_heap(shape.length().expect("a shape"));
        [(client, Role::Client), (server, Role::Server)].map(|(mapping, role)| Mapped {
            mapping,
            shape,
            role,
        })
    }

    fn side(&self, whose: Role) -> &Side<Native> {
        let at = match whose {
            Role::Client => 0,
            Role::Server => size_of::<Side<Native>>(),
        };
        // SAFETY: both sides lie in the first page, aligned, zeroed at first; they are atomics, for which every value is
        // valid and which others may change; they live as long as the mapping, which `self` owns.
        unsafe { self.mapping.base().byte_add(at).cast().as_ref() }
    }

    /// `length` bytes from `index` of the ring that `whose` end writes.
    fn ring(&self, whose: Role, index: usize, length: usize) -> NonNull<u8> {
        let (begin, capacity) = match whose {
            Role::Client => (PAGE, self.shape.up),
            Role::Server => (PAGE + self.shape.up, self.shape.down),
        };
        assert!(
            index <= capacity && length <= capacity - index,
            "a position in the ring"
        );
        debug_assert!(begin + index + length <= self.mapping.length());
        // SAFETY: by the assertion it points into the mapping, which `Shape::length` is the length of.
        unsafe { self.mapping.base().byte_add(begin + index) }
    }

    fn other(&self) -> Role {
        match self.role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    fn capacity(&self, whose: Role) -> usize {
        match whose {
            Role::Client => self.shape.up,
            Role::Server => self.shape.down,
        }
    }
}

impl Memory for Mapped {
    type Atomics = Native;

    #[inline]
    fn mine(&self) -> &Side<Native> {
        self.side(self.role)
    }

    #[inline]
    fn theirs(&self) -> &Side<Native> {
        self.side(self.other())
    }

    #[inline]
    fn capacity_out(&self) -> usize {
        self.capacity(self.role)
    }

    #[inline]
    fn capacity_in(&self) -> usize {
        self.capacity(self.other())
    }

    #[inline]
    fn put(&mut self, index: usize, bytes: &[u8]) {
        let to = self.ring(self.role, index, bytes.len());
        // SAFETY: `ring` has checked the bounds; the bytes lie in memory of our own, so they can't overlap. The rules give these
        // bytes of the ring to this end alone until `sent` covers them; a peer that breaks the rules only spoils what it reads.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }

    #[inline]
    fn get(&self, index: usize, bytes: &mut [u8]) {
        let from = self.ring(self.other(), index, bytes.len());
        // SAFETY: as for `put`. The rules give these bytes to this end until `taken` covers them; any bytes are valid ones.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *bytes).cast(), bytes.len()) };
    }
}
