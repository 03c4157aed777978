//! Frees what is large, and releases what is many, on threads of their own.
//!
//! A million small allocations take a second to free. A statement that ends, or was told to end,
//! doesn't wait for that: it hands them over.

use std::any::Any;
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};

type Value = Box<dyn Any + Send>;

/// Whom values are handed to; `None` where no thread could be started.
type Dropper = LazyLock<Option<Sender<Value>>>;

static RECLAIMER: Dropper = LazyLock::new(|| dropper("porpoise-reclaim"));
/// Somebody may wait for what this one drops: nothing that only takes memory goes before it.
static RELEASER: Dropper = LazyLock::new(|| dropper("porpoise-release"));

/// A thread that drops what it is sent.
fn dropper(name: &str) -> Option<Sender<Value>> {
    let (sender, values) = channel::<Value>();
    let thread = std::thread::Builder::new().name(name.into());
    let started = thread.spawn(move || values.into_iter().for_each(drop));
    started.is_ok().then_some(sender)
}

/// Drops a value that takes much memory, soon.
pub fn reclaim(value: impl Any + Send) {
    hand_over(&RECLAIMER, value);
}

/// Drops a value that somebody may wait for, soon.
pub fn release_soon(value: impl Any + Send) {
    hand_over(&RELEASER, value);
}

fn hand_over(dropper: &Dropper, value: impl Any + Send) {
    if let Some(dropper) = &**dropper {
        // Where the thread has ended, the value comes back and is dropped here.
        let _ = dropper.send(Box::new(value));
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
