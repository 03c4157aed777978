//! A stack for the engine, beside the program's own.
//!
//! Expressions and subqueries nest on the stack, and the program's may be small: sysbench's threads
//! have 64 KiB, Ruby's fibers not much more. So each embedded connection has a stack as large as a
//! server's thread, of which the system gives memory only as far as it is used, and what the engine
//! does runs there, on the caller's thread.
//!
//! ```text
//!   caller's stack │ mysql_real_query ─► Visitor::write ─┐                 ┌─► the reply
//!   engine's stack │                                     └─ parse, plan, run ┘          │ guard page
//! ```

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// As a server's worker has.
const BYTES: usize = 8 << 20;

/// At the low end, where a stack that is too deep arrives; a multiple of every page size.
const GUARD_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub struct Stack {
    lowest: *mut c_void,
}

// SAFETY: it is memory that only its owner uses.
unsafe impl Send for Stack {}

impl Stack {
    pub fn new() -> io::Result<Stack> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
        // SAFETY: a new mapping wherever the system likes touches nobody's memory.
        let lowest = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        }?;
        let stack = Stack { lowest };
        // SAFETY: it is the beginning of the mapping just made, which nobody uses yet.
        unsafe { mprotect(lowest, GUARD_BYTES, MprotectFlags::empty()) }?;
        Ok(stack)
    }

    /// Runs `work` on this stack and returns to the caller's, with its panic if it has one.
    #[inline]
    pub fn run<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let base = self.lowest.wrapping_byte_add(GUARD_BYTES).cast();
        let caught = || catch_unwind(AssertUnwindSafe(work));
        // SAFETY: the memory is this stack's alone, and as it is borrowed, nothing runs on it; no
        // panic leaves the call.
        let result = unsafe { psm::on_stack(base, BYTES - GUARD_BYTES, caught) };
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: it is the mapping that `new` made. If it can't be given back, it stays.
        let _ = unsafe { munmap(self.lowest, BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deep(levels: usize) -> usize {
        let room = std::hint::black_box([levels; 512]);
        match levels {
            0 => 0,
            levels => deep(levels - 1) + room[levels % 512] / levels,
        }
    }

    #[test]
    fn a_thread_with_a_small_stack_goes_deep() {
        let thread = std::thread::Builder::new().stack_size(64 << 10);
        let done = thread.spawn(|| Stack::new().unwrap().run(|| deep(1_000)));
        assert_eq!(done.unwrap().join().unwrap(), 1_000);
    }

    #[test]
    fn a_panic_comes_back_to_the_caller() {
        let mut stack = Stack::new().unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| stack.run(|| panic!("deep down"))));
        assert!(panicked.is_err());
        assert_eq!(stack.run(|| 7), 7);
    }
}
