//! Work on one long value that can be ended from outside.
//!
//! A statement looks once a row whether it is to end. One value can be a gigabyte long, though: to
//! parse it as JSON or to compare it takes seconds, deep in this crate, which knows no statements.
//! So who works on a long value does it in [`cancellable`], and says how to ask; the loops below
//! ask every 64 KiB ([`passed`]) or every few thousand nodes of a document ([`step`]), and for each
//! 64 KiB of a document that they make ([`made`]), whether it may be had.
//!
//! ```text
//!   executor   cancellable(asked, || JSON_VALID('[1,1,1,…'))
//!   types          └─ parser … passed … passed … is_over()? ─ yes: unwinds to cancellable ─► Err
//! ```
//!
//! A loop that is to end unwinds, so that none of them has to give an answer that means nothing,
//! and texts compare without a `Result`. No panic hook runs. Outside of [`cancellable`] nothing is
//! asked, and nothing unwinds: what changes shared structures never runs inside. In an application
//! that is built with `panic = "abort"`, nothing can unwind: there such work goes on to its end.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Values up to this length take a millisecond at most, whatever is done with them.
pub const SHORT_BYTES: usize = 1 << 16;
/// Nodes of a document between two questions.
const STEPS: u32 = 4096;

/// Tells whether work is to end.
pub trait IsOver {
    /// Whether it is; asked on the thread that works.
    fn is_over(&self) -> bool;

    /// Whether the work may not take so many bytes of memory more: it is over then.
    fn refuses(&self, _bytes: usize) -> bool {
        false
    }
}

thread_local! {
    static ASKED: RefCell<Option<Arc<dyn IsOver>>> = const { RefCell::new(None) };
    static MADE_BYTES: Cell<usize> = const { Cell::new(0) };
    static STEPS_LEFT: Cell<u32> = const { Cell::new(STEPS) };
}

/// The work was ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Puts back the question of the work around this one.
struct Around(Option<Arc<dyn IsOver>>);

impl Drop for Around {
    fn drop(&mut self) {
        let around = self.0.take();
        ASKED.with_borrow_mut(|asked| *asked = around);
    }
}

/// Does the work, which ends early once `asked` tells it to.
///
/// # Errors
/// [`Cancelled`] if it did.
pub fn cancellable<T>(asked: Arc<dyn IsOver>, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
    let around = ASKED.with_borrow_mut(|before| before.replace(asked));
    let _around = Around(around);
    catch_unwind(AssertUnwindSafe(work)).or_else(|payload| {
        if payload.is::<Cancelled>() {
            Err(Cancelled)
        } else {
            resume_unwind(payload)
        }
    })
}

/// A loop over a long text has gone from one byte to another.
#[inline]
pub fn passed(from: usize, to: usize) {
    if (from ^ to) >= SHORT_BYTES {
        ask();
    }
}

/// A loop over a document, or over a list, has made a step.
#[inline]
pub fn step() {
    match STEPS_LEFT.get() {
        0 => {
            STEPS_LEFT.set(STEPS);
            ask();
        }
        left => STEPS_LEFT.set(left - 1),
    }
}

/// A loop is about to make a part of a document, of so many bytes: a text of a megabyte can become a
/// document of twenty.
#[inline]
pub fn made(bytes: usize) {
    let made = MADE_BYTES.get() + bytes;
    match made < SHORT_BYTES {
        true => MADE_BYTES.set(made),
        false => {
            MADE_BYTES.set(0);
            ask_for(made);
        }
    }
}

/// The parts of a long text, of [`SHORT_BYTES`] each.
pub fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = bytes.chunks(SHORT_BYTES).enumerate();
    parts.map(|(number, part)| {
        if number > 0 {
            ask();
        }
        part
    })
}

/// The characters of a long text.
pub fn chars(text: &str) -> impl Iterator<Item = char> {
    text.char_indices().map(|(at, c)| {
        passed(at, at + c.len_utf8());
        c
    })
}

#[cold]
fn ask_for(bytes: usize) {
    end_if(|asked| asked.refuses(bytes));
}

#[cold]
fn ask() {
    end_if(|asked| asked.is_over());
}

fn end_if(ends: impl FnOnce(&dyn IsOver) -> bool) {
    if cfg!(not(panic = "unwind")) {
        return;
    }
    // It may pause, or be asked in between: nothing stays borrowed meanwhile.
    let asked = ASKED.with_borrow(Clone::clone);
    if asked.is_some_and(|asked| ends(&*asked)) {
        resume_unwind(Box::new(Cancelled));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::{Collation, Json};

    /// Ends at the question of this number.
    struct EndsAt(u32, AtomicU32);

    impl IsOver for EndsAt {
        fn is_over(&self) -> bool {
            self.1.fetch_add(1, Ordering::Relaxed) + 1 == self.0
        }
    }

    fn ended<T>(work: impl FnOnce() -> T) -> Result<T, Cancelled> {
        cancellable(Arc::new(EndsAt(1, AtomicU32::new(0))), work)
    }

    fn endless<T>(work: impl FnOnce() -> T) -> Result<T, Cancelled> {
        cancellable(Arc::new(EndsAt(0, AtomicU32::new(0))), work)
    }

    #[test]
    fn work_ends_when_it_is_to_and_the_work_around_goes_on() {
        let list = format!("[{}1]", "1,".repeat(1 << 20));
        assert!(Json::parse(&list).is_ok());
        assert_eq!(ended(|| Json::parse(&list).is_ok()), Err(Cancelled));
        // What is short asks nobody.
        assert_eq!(ended(|| Json::parse("[1]").is_ok()), Ok(true));
        // The inner work's end is not the outer one's.
        let inner = || (ended(|| Json::parse(&list).is_ok()), 7);
        assert_eq!(endless(inner), Ok((Err(Cancelled), 7)));
        assert!(Json::parse(&list).is_ok());
    }

    #[test]
    fn every_collation_can_be_ended_in_a_long_text() {
        let text = "éa".repeat(1 << 15);
        let other = "Éa".repeat(1 << 15) + "b";
        for collation in Collation::all() {
            let name = collation.name();
            if collation.is_binary() || name == "utf8mb4_0900_bin" {
                // Their weights are the bytes.
                continue;
            }
            let (a, b) = (text.as_bytes(), other.as_bytes());
            let is_ended = |work: &dyn Fn()| assert_eq!(ended(work), Err(Cancelled), "{name}");
            is_ended(&|| drop(collation.weight_string(a)));
            is_ended(&|| collation.sort_key(a, &mut Vec::new()));
            is_ended(&|| drop(collation.upper(&text)));
            is_ended(&|| drop(collation.lower(&text)));
            if collation.compare(&a[..3], &b[..3]).is_eq() {
                is_ended(&|| assert!(collation.compare(a, b).is_lt()));
            }
        }
    }

    #[test]
    #[should_panic(expected = "of its own")]
    fn another_panic_stays_one() {
        let _ = endless(|| panic!("of its own"));
    }
}
