//! An arena: memory that any thread allocates from in small pieces, and that is freed all at once.
//!
//! ```text
//! chunk 0   16 KiB  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//! chunk 1   32 KiB  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//! chunk 2   64 KiB  ▓▓▓▓▓▓▓▓▓▓▓▓ ← `used` moves on by one atomic addition
//! ```

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::entry::Entry;

/// The first chunk of an arena; each later one is twice as large, up to the largest.
const CHUNK_BYTES_MIN: usize = 16 << 10;
pub(super) const CHUNK_BYTES_MAX: usize = 1 << 20;

/// The alignment of all that is allocated.
pub(super) const ALIGNMENT: usize = align_of::<Entry>();

/// Memory that any thread allocates from, and that is freed all at once.
#[derive(Default)]
pub(crate) struct Arena {
    /// The chunk that is allocated from now; owned by `chunks`.
    current: AtomicPtr<Chunk>,
    chunks: Mutex<Vec<NonNull<Chunk>>>,
}

struct Chunk {
    memory: NonNull<u8>,
    len: usize,
    /// How much is given out; beyond `len` once it is full.
    used: AtomicUsize,
}

impl Arena {
    /// Memory of this length, aligned for an entry, uninitialized and used by nobody else.
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        loop {
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: chunks are freed only with the arena, which is borrowed.
            if let Some(chunk) = unsafe { current.as_ref() }
                && let Some(memory) = chunk.allocate(bytes)
            {
                return memory;
            }
            let mut chunks = self.chunks.lock();
            if self.current.load(Ordering::Relaxed) != current {
                continue;
            }
            if bytes > CHUNK_BYTES_MAX / 4 {
                // It would waste most of a chunk: it gets its own, and the current one stays.
                let chunk = Chunk::new(bytes);
                let memory = chunk.memory;
                chunk.used.store(bytes, Ordering::Relaxed);
                chunks.push(NonNull::from(Box::leak(Box::new(chunk))));
                return memory;
            }
            let len = CHUNK_BYTES_MIN << chunks.len().min(16);
            let chunk = Box::leak(Box::new(Chunk::new(len.clamp(bytes, CHUNK_BYTES_MAX))));
            let chunk = NonNull::from(chunk);
            chunks.push(chunk);
            self.current.store(chunk.as_ptr(), Ordering::Release);
        }
    }
}

// SAFETY: the pointers are to memory that the arena owns, and that is changed by atomics alone, or
// by the one caller that `allocate` has given it to.
unsafe impl Send for Arena {}
// SAFETY: as above; `chunks` is behind a mutex.
unsafe impl Sync for Arena {}

impl Drop for Arena {
    fn drop(&mut self) {
        for chunk in self.chunks.get_mut() {
            // SAFETY: `chunks` owns what was leaked into it; users of its memory borrowed the
            // arena.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

impl Chunk {
    fn new(len: usize) -> Chunk {
        let layout = Chunk::layout(len);
        // SAFETY: the layout isn't empty: an entry has a header.
        let memory = unsafe { alloc(layout) };
        Chunk {
            memory: NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout)),
            len,
            used: AtomicUsize::new(0),
        }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, ALIGNMENT).expect("a chunk is smaller than the address space")
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let at = self.used.fetch_add(bytes, Ordering::Relaxed);
        // SAFETY: the bytes lie within the chunk's memory.
        (at <= self.len && bytes <= self.len - at).then(|| unsafe { self.memory.add(at) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout by `new`.
        unsafe { dealloc(self.memory.as_ptr(), Chunk::layout(self.len)) };
    }
}
