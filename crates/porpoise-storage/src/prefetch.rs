//! Hints to the processor about memory that is read soon.
//!
//! Reading a row that is not in the processor's cache takes some hundred nanoseconds, a hundred
//! times as long as one that is. A scan knows the next row before it has dealt with the current
//! one, and a look-up knows a block before it knows which of its keys it compares: prefetching
//! overlaps these delays with work, several lines at a time.

const CACHE_LINE_BYTES: usize = 64;

/// Prefetches so many bytes into this core's cache. Any address will do: it is a hint.
#[inline]
pub(crate) fn prefetch(from: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for at in (0..bytes).step_by(CACHE_LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, which neither faults nor changes
        // anything.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at).cast()) };
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = (from, bytes, CACHE_LINE_BYTES);
}
