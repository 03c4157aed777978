//! A value that a session uses at the moment, for other sessions to look at.

use std::marker::PhantomData;
use std::ptr;

use porpoise_locks::Published;

/// What a session uses at the moment, such as the plan of its statement: others may look at it, and
/// the session goes on when they have.
#[derive(Debug)]
pub struct InUse<T> {
    published: Published,
    value: PhantomData<fn(&T)>,
}

impl<T> Default for InUse<T> {
    fn default() -> InUse<T> {
        InUse {
            published: Published::default(),
            value: PhantomData,
        }
    }
}

impl<T: Sync> InUse<T> {
    /// Runs `run`, which uses `value`; others may look at it meanwhile. What was in use before is so
    /// again afterwards. Only the session that owns this calls it.
    #[inline]
    pub fn during<R>(&self, value: &T, run: impl FnOnce() -> R) -> R {
        let address = ptr::from_ref(value).expose_provenance();
        let _withdrawn = Withdraw {
            before: self.published.publish(address),
            published: &self.published,
        };
        run()
    }

    /// Has `look` look at what is in use now; `None` if nothing is. The session can't go on to the
    /// next statement before `look` returns.
    pub fn look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.published.look(|address| {
            let value = ptr::with_exposed_provenance::<T>(address);
            // SAFETY: the address is that of a reference to a `T` that `during` was given, which
            // keeps the borrow until `withdraw` has returned; that waits for this look to end. `T`
            // is `Sync`, so that this thread may have the reference, too.
            look(unsafe { &*value })
        })
    }
}

/// Withdraws it when its use ends, by a panic, too.
struct Withdraw<'p> {
    before: usize,
    published: &'p Published,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.published.withdraw(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn others_see_what_is_used_for_as_long_as_it_is() {
        let in_use = InUse::<String>::default();
        let seen = || in_use.look(String::clone);
        assert_eq!(seen(), None);
        in_use.during(&"outer".to_string(), || {
            in_use.during(&"inner".to_string(), || {
                assert_eq!(seen().as_deref(), Some("inner"));
            });
            assert_eq!(seen().as_deref(), Some("outer"));
        });
        assert_eq!(seen(), None);
    }

    #[test]
    fn what_is_looked_at_is_not_dropped() {
        let in_use = InUse::<String>::default();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    in_use.look(|text| assert_eq!(text.trim_matches('x'), ""));
                }
            });
            for length in 0..if cfg!(miri) { 50 } else { 10_000 } {
                let text = "x".repeat(length % 100);
                in_use.during(&text, || ());
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
