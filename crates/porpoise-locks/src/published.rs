//! Something that one thread uses, and others may look at meanwhile.
//!
//! ```text
//!   the owner   published ─── uses it ─── withdrawn ── light fence ── does anybody look? ── waits until nobody does
//!   who looks                says that it looks ── heavy fence ── is it published? ── looks ── says that it is done
//! ```
//!
//! The owner pays two stores and a load; who looks pays for both. Either who looks sees that it was
//! withdrawn, or the owner sees that somebody looks, and waits.

use super::base::{AtomicBool, AtomicUsize, Mutex, heavy_fence, light_fence, lock};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The address of something that its owner uses at the moment, for others to look at.
#[derive(Debug)]
pub struct Published {
    /// 0: nothing.
    address: AtomicUsize,
    /// Somebody looks.
    is_looked_at: AtomicBool,
    /// Held by whoever looks.
    looking: Mutex<()>,
}

impl Default for Published {
    fn default() -> Published {
        Published {
            address: AtomicUsize::new(0),
            is_looked_at: AtomicBool::new(false),
            looking: Mutex::new(()),
        }
    }
}

impl Published {
    /// Publishes an address; returns what was published before, to be published again when this one
    /// is withdrawn. Only the owner calls this, one thread at a time.
    #[inline]
    pub fn publish(&self, address: usize) -> usize {
        let before = self.address.load(Relaxed);
        self.address.store(address, Release);
        before
    }

    /// Publishes what was published before instead. When this returns, nobody looks at what was
    /// published last. Only the owner calls this.
    #[inline]
    pub fn withdraw(&self, before: usize) {
        self.address.store(before, Release);
        light_fence();
        if self.is_looked_at.load(Acquire) {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        drop(lock(&self.looking));
    }

    /// Has `look` look at what is published; `None` if nothing is. The owner doesn't withdraw it
    /// before `look` returns.
    pub fn look<R>(&self, look: impl FnOnce(usize) -> R) -> Option<R> {
        let _looking = lock(&self.looking);
        self.is_looked_at.store(true, Relaxed);
        let done = Done(&self.is_looked_at);
        heavy_fence();
        let address = self.address.load(Acquire);
        let seen = (address != 0).then(|| look(address));
        drop(done);
        seen
    }
}

/// Nobody looks any more, not even after a panic.
struct Done<'p>(&'p AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}
