//! Frees what is large on a thread of its own.
//!
//! A million small allocations take a second to free. A statement that ends, or was told to end,
//! doesn't wait for that: it hands them over.

use std::any::Any;
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};

type Value = Box<dyn Any + Send>;

/// Whom values are handed to; `None` where no thread could be started.
static RECLAIMER: LazyLock<Option<Sender<Value>>> = LazyLock::new(|| {
    let (sender, values) = channel::<Value>();
    let thread = std::thread::Builder::new().name("porpoise-reclaim".into());
    let started = thread.spawn(move || values.into_iter().for_each(drop));
    started.is_ok().then_some(sender)
});

/// Drops a value, soon.
pub fn reclaim(value: impl Any + Send) {
    if let Some(reclaimer) = &*RECLAIMER {
        // Where the thread has ended, the value comes back and is dropped here.
        let _ = reclaimer.send(Box::new(value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    struct Told(mpsc::Sender<std::thread::ThreadId>);

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().id());
        }
    }

    #[test]
    fn a_value_is_dropped_by_another_thread() {
        let (sender, told) = mpsc::channel();
        reclaim(Told(sender));
        let dropped_by = told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_ne!(dropped_by, std::thread::current().id());
    }
}
