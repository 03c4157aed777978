//! The rings' memory: how words and rings lie in a mapping, and the only module that follows
//! pointers into it.
//!
//! ```text
//!        0 ┌──────────────────────┐
//!          │ client's ControlBlock│ 128 bytes
//!          │ server's ControlBlock│ 128 bytes
//!   1 page ├──────────────────────┤
//!          │ ring client ► server │ [`RingSizes::up`] bytes
//!          ├──────────────────────┤
//!          │ ring server ► client │ [`RingSizes::down`] bytes
//!          └──────────────────────┘
//! ```
//!
//! The other end may write anywhere in it at any time. So nothing in it is ever borrowed but the
//! words, which are atomic; bytes are copied in and out, once. A peer that writes while they are
//! copied decides what is copied, and no more.

use crate::ring::{Atomics, ControlBlock, RingMemory, impl_words};
use crate::sys::Mapping;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The processor's atomics.
#[derive(Debug, Default)]
pub struct NativeAtomics;

impl Atomics for NativeAtomics {
    type Word64 = AtomicU64;
    type Word32 = AtomicU32;

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

impl_words!(AtomicU64, AtomicU32);

const PAGE: usize = 4096;
const CONTROL_BYTES: usize = 2 * size_of::<ControlBlock<NativeAtomics>>();
const _: () = assert!(
    CONTROL_BYTES <= PAGE && PAGE.is_multiple_of(align_of::<ControlBlock<NativeAtomics>>())
);

/// The rings' capacities in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Of the ring from the client to the server.
    pub to_server: usize,
    /// Of the ring from the server to the client.
    pub to_client: usize,
}

/// Most messages fit at once; a longer one goes in parts. Pages that no byte ever lay in cost
/// nothing. Results of some thousand rows fit, so that a thread that serves many clients needn't wait
/// for one of them to read.
pub const DEFAULT_SIZES: RingSizes = RingSizes {
    to_server: 16 << 10,
    to_client: 1 << 20,
};

/// What a ring keeps of its memory when it gives back the rest.
pub(crate) const KEPT_BYTES: usize = 64 << 10;
const _: () = assert!(KEPT_BYTES.is_multiple_of(PAGE));

const CAPACITY_MIN: usize = PAGE;
const CAPACITY_MAX: usize = 1 << 30;

impl RingSizes {
    /// The length of the memory, in bytes.
    ///
    /// # Errors
    /// If a capacity isn't a power of two between a page and a gigabyte.
    pub fn length(self) -> io::Result<usize> {
        let is_capacity = |bytes: usize| {
            bytes.is_power_of_two() && (CAPACITY_MIN..=CAPACITY_MAX).contains(&bytes)
        };
        if is_capacity(self.to_server) && is_capacity(self.to_client) {
            Ok(PAGE + self.to_server + self.to_client)
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a ring's capacity is a power of two between a page and a gigabyte",
            ))
        }
    }
}

/// Which of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that connected.
    Client,
    /// The one that made the memory.
    Server,
}

/// One end's view of mapped memory.
#[derive(Debug)]
pub struct MappedRings {
    mapping: Mapping,
    sizes: RingSizes,
    role: Role,
}

impl MappedRings {
    /// Maps `memory`, which is as long as `sizes` says and can't shrink.
    pub(crate) fn new(memory: &OwnedFd, sizes: RingSizes, role: Role) -> io::Result<MappedRings> {
        let mapping = Mapping::new(memory, sizes.length()?)?;
        Ok(MappedRings {
            mapping,
            sizes,
            role,
        })
    }

    /// Both ends' views of memory that no other process has.
    #[cfg(test)]
    pub(crate) fn pair_in_heap(sizes: RingSizes) -> [MappedRings; 2] {
        let [client, server] = Mapping::pair_in_heap(sizes.length().expect("a sizes"));
        [(client, Role::Client), (server, Role::Server)].map(|(mapping, role)| MappedRings {
            mapping,
            sizes,
            role,
        })
    }

    fn control(&self, whose: Role) -> &ControlBlock<NativeAtomics> {
        let at = match whose {
            Role::Client => 0,
            Role::Server => size_of::<ControlBlock<NativeAtomics>>(),
        };
        // SAFETY: both control blocks lie in the first page, aligned, zeroed at first; they are
        // atomics, for which every value is valid and which others may change; they live as long as
        // the mapping, which `self` owns.
        unsafe { self.mapping.base().byte_add(at).cast().as_ref() }
    }

    /// `length` bytes from `index` of the ring that `whose` end writes.
    fn ring(&self, whose: Role, index: usize, length: usize) -> NonNull<u8> {
        let (begin, capacity) = match whose {
            Role::Client => (PAGE, self.sizes.to_server),
            Role::Server => (PAGE + self.sizes.to_server, self.sizes.to_client),
        };
        assert!(
            index <= capacity && length <= capacity - index,
            "a position in the ring"
        );
        debug_assert!(begin + index + length <= self.mapping.length());
        // SAFETY: by the assertion it points into the mapping, which `RingSizes::length` is the
        // length of.
        unsafe { self.mapping.base().byte_add(begin + index) }
    }

    /// Gives back the memory of this end's ring but for its first [`KEPT_BYTES`]; no byte that the
    /// other end is to take may lie there.
    pub(crate) fn release(&self) -> io::Result<()> {
        let (begin, capacity) = match self.role {
            Role::Client => (PAGE, self.sizes.to_server),
            Role::Server => (PAGE + self.sizes.to_server, self.sizes.to_client),
        };
        let kept = KEPT_BYTES.min(capacity);
        self.mapping.release(begin + kept..begin + capacity)
    }

    fn other(&self) -> Role {
        match self.role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    fn capacity(&self, whose: Role) -> usize {
        match whose {
            Role::Client => self.sizes.to_server,
            Role::Server => self.sizes.to_client,
        }
    }
}

impl RingMemory for MappedRings {
    type Atomics = NativeAtomics;

    #[inline]
    fn own(&self) -> &ControlBlock<NativeAtomics> {
        self.control(self.role)
    }

    #[inline]
    fn peers(&self) -> &ControlBlock<NativeAtomics> {
        self.control(self.other())
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
        // SAFETY: `ring` has checked the bounds; the bytes lie in memory of our own, so they can't
        // overlap. The rules give these bytes of the ring to this end alone until `sent` covers
        // them; a peer that breaks the rules only spoils what it reads.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }

    #[inline]
    fn get(&self, index: usize, bytes: &mut [u8]) {
        let from = self.ring(self.other(), index, bytes.len());
        // SAFETY: as for `put`. The rules give these bytes to this end until `taken` covers them;
        // any bytes are valid ones.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *bytes).cast(), bytes.len()) };
    }
}
