//! Entries of the map and their versions, as they lie in memory.
//!
//! ```text
//! entry     │ prefix │ newest │ next │ key length │ key … │ version, if it came with the key │
//! version   │ older │ timestamp │ value length │ value … │
//! ```

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::arena::{ALIGNMENT, Arena};
use super::key_index::BYTES_PER_KEY;
use crate::prefix::prefix;

/// The length of a value that isn't there.
const DELETED: u32 = u32::MAX;

/// An entry's header; its key follows.
#[repr(C)]
pub(super) struct Entry {
    /// The key's first bytes ([`prefix`]).
    pub prefix: u64,
    /// The newest version of the key.
    pub newest: AtomicPtr<Version>,
    /// The entry of the next greater key.
    pub next: AtomicPtr<Entry>,
    key_len: u32,
}

/// A version's header; its value follows.
#[repr(C)]
pub(super) struct Version {
    older: AtomicPtr<Version>,
    ts: u64,
    /// [`DELETED`] if there is no value.
    value_len: u32,
}

/// What the first version of a key takes in memory beside key and value, about.
pub(crate) const ENTRY_OVERHEAD_BYTES: u64 =
    (size_of::<Entry>() + size_of::<Version>() + BYTES_PER_KEY) as u64;

fn length(bytes: &[u8]) -> u32 {
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len < DELETED);
    len.expect("keys and values are shorter than 4 GiB")
}

/// A pointer to an entry, with the right to read all of its memory. Valid as long as its arena.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryPtr(pub NonNull<Entry>);

impl EntryPtr {
    /// An entry with no successor and one version.
    pub fn new(arena: &Arena, key: &[u8], ts: u64, value: Option<&[u8]>) -> EntryPtr {
        let version_at = size_of::<Entry>() + key.len().next_multiple_of(ALIGNMENT);
        let memory = arena.allocate(version_at + VersionPtr::len(value));
        // SAFETY: the memory is as large as all that is written, aligned for all of it, and nobody
        // else's yet.
        unsafe {
            let version = VersionPtr::write(memory.add(version_at), ts, value);
            let at = memory.cast::<Entry>();
            at.write(Entry {
                prefix: prefix(key),
                newest: AtomicPtr::new(version.0.as_ptr()),
                next: AtomicPtr::new(ptr::null_mut()),
                key_len: length(key),
            });
            let body = memory.add(size_of::<Entry>());
            ptr::copy_nonoverlapping(key.as_ptr(), body.as_ptr(), key.len());
            EntryPtr(at)
        }
    }

    #[inline]
    pub fn entry(&self) -> &Entry {
        // SAFETY: the arena outlives the pointer, and of an entry's header only atomics change.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        let entry = self.entry();
        // SAFETY: `new` has written these bytes behind the header, and they aren't changed after
        // it.
        unsafe {
            let body = self.0.add(1).cast::<u8>();
            std::slice::from_raw_parts(body.as_ptr(), entry.key_len as usize)
        }
    }

    #[inline]
    pub fn next(&self) -> Option<EntryPtr> {
        NonNull::new(self.entry().next.load(Ordering::Acquire)).map(EntryPtr)
    }

    /// The newest version that is not newer than `ts`.
    #[inline]
    pub fn visible(&self, ts: u64) -> Option<VersionPtr> {
        let newest = self.entry().newest.load(Ordering::Acquire);
        let mut at = NonNull::new(newest).map(VersionPtr);
        while let Some(version) = at.filter(|at| at.version().ts > ts) {
            at = version.older();
        }
        at
    }

    /// The newest version.
    pub fn newest(&self) -> Option<VersionPtr> {
        self.visible(u64::MAX)
    }

    /// Takes the newest version out of the chain. Nobody else writes to it.
    pub fn pop(&self) {
        let newest = self.entry().newest.load(Ordering::Acquire);
        if let Some(newest) = NonNull::new(newest).map(VersionPtr) {
            let older = newest.older().map_or(ptr::null_mut(), |at| at.0.as_ptr());
            self.entry().newest.store(older, Ordering::Release);
        }
    }

    /// Adds a version to the chain. Of two of the same timestamp the later one is found.
    pub fn push(&self, new: VersionPtr) {
        let ts = new.version().ts;
        let mut link = &self.entry().newest;
        loop {
            let next = link.load(Ordering::Acquire);
            // SAFETY: versions live as long as the arena.
            if let Some(version) = unsafe { next.as_ref() }
                && version.ts > ts
            {
                link = &version.older;
                continue;
            }
            new.version().older.store(next, Ordering::Relaxed);
            let new = new.0.as_ptr();
            let outcome = link.compare_exchange(next, new, Ordering::Release, Ordering::Relaxed);
            if outcome.is_ok() {
                return;
            }
        }
    }
}

/// A pointer to a version, with the right to read its value. Valid as long as its arena.
#[derive(Clone, Copy)]
pub(super) struct VersionPtr(pub NonNull<Version>);

impl VersionPtr {
    fn len(value: Option<&[u8]>) -> usize {
        size_of::<Version>() + value.map_or(0, <[u8]>::len)
    }

    pub fn new(arena: &Arena, ts: u64, value: Option<&[u8]>) -> VersionPtr {
        let memory = arena.allocate(VersionPtr::len(value));
        // SAFETY: the memory is large enough, aligned and nobody else's yet.
        unsafe { VersionPtr::write(memory, ts, value) }
    }

    /// # Safety
    ///
    /// The memory is the caller's alone, aligned, and holds [`VersionPtr::len`] bytes.
    unsafe fn write(memory: NonNull<u8>, ts: u64, value: Option<&[u8]>) -> VersionPtr {
        let at = memory.cast::<Version>();
        let bytes = value.unwrap_or_default();
        // SAFETY: as the caller promises.
        unsafe {
            at.write(Version {
                older: AtomicPtr::new(ptr::null_mut()),
                ts,
                value_len: value.map_or(DELETED, length),
            });
            let body = at.add(1).cast::<u8>();
            ptr::copy_nonoverlapping(bytes.as_ptr(), body.as_ptr(), bytes.len());
        }
        VersionPtr(at)
    }

    #[inline]
    fn version(&self) -> &Version {
        // SAFETY: the arena outlives the pointer, and of a version's header only an atomic changes.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub fn older(&self) -> Option<VersionPtr> {
        NonNull::new(self.version().older.load(Ordering::Acquire)).map(VersionPtr)
    }

    #[inline]
    pub fn ts(&self) -> u64 {
        self.version().ts
    }

    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        let len = self.version().value_len;
        // SAFETY: `write` has put these bytes behind the header, and they aren't changed after it.
        (len != DELETED).then(|| unsafe {
            let body = self.0.add(1).cast::<u8>();
            std::slice::from_raw_parts(body.as_ptr(), len as usize)
        })
    }
}
