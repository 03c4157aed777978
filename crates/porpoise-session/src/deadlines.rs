//! When statements with a time limit are to end (`max_execution_time`).
//!
//! A statement with a limit notes when it is due, and takes the note back when it ends. A thread
//! sleeps until the first of them is due, and interrupts it. It is started with the first note, so
//! a database without limits has none; a statement without a limit doesn't come here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use porpoise_mdl::process::Control;

/// The statements that are due some time, of all sessions.
#[derive(Default)]
pub struct Deadlines(Arc<Schedule>);

#[derive(Default)]
struct Schedule {
    notes: Mutex<Notes>,
    changed: Condvar,
}

#[derive(Default)]
struct Notes {
    /// By when they are due; the number tells apart those of one moment.
    due: BTreeMap<(Instant, u64), Arc<Control>>,
    last: u64,
    has_thread: bool,
    /// When the thread looks next; `None` if it waits for a first note.
    wakes_at: Option<Instant>,
    /// The database is closed: the thread ends.
    ended: bool,
}

/// The note of a running statement. Dropped, it is taken back: from then on the statement is not
/// interrupted any more.
pub struct Deadline {
    schedule: Arc<Schedule>,
    key: (Instant, u64),
}

impl Deadlines {
    /// The statement that `control`'s session runs is due in `limit`. `None` if that is beyond the
    /// clock, or if the system gives no thread to watch it.
    pub fn note(&self, control: &Arc<Control>, limit: Duration) -> Option<Deadline> {
        let at = Instant::now().checked_add(limit)?;
        let mut notes = self.0.notes.lock();
        if !notes.has_thread {
            let schedule = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("porpoise-deadlines".into());
            thread.spawn(move || schedule.watch()).ok()?;
            notes.has_thread = true;
        }
        notes.last += 1;
        let key = (at, notes.last);
        notes.due.insert(key, Arc::clone(control));
        if notes.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.0.changed.notify_one();
        }
        drop(notes);
        Some(Deadline {
            schedule: Arc::clone(&self.0),
            key,
        })
    }
}

impl Drop for Deadlines {
    fn drop(&mut self) {
        self.0.notes.lock().ended = true;
        self.0.changed.notify_one();
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.schedule.notes.lock().due.remove(&self.key);
    }
}

impl Schedule {
    /// Interrupts what is due. A note is taken back under the same mutex, so no statement is
    /// interrupted for the one before it.
    fn watch(&self) {
        let mut notes = self.notes.lock();
        while !notes.ended {
            let now = Instant::now();
            while let Some(first) = notes.due.first_entry()
                && first.key().0 <= now
            {
                first.remove().exceed_time();
            }
            notes.wakes_at = notes.due.first_key_value().map(|((at, _), _)| *at);
            match notes.wakes_at {
                Some(at) => {
                    self.changed.wait_until(&mut notes, at);
                }
                None => self.changed.wait(&mut notes),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use porpoise_storage::InterruptCause;

    fn control() -> Arc<Control> {
        Arc::new(Control::new(1, "".into(), "".into()))
    }

    #[test]
    fn what_is_due_is_interrupted_and_what_has_ended_is_not() {
        let deadlines = Deadlines::default();
        let [late, early, ended] = [control(), control(), control()];
        let _late = deadlines.note(&late, Duration::from_secs(3600));
        drop(deadlines.note(&ended, Duration::from_millis(5)));
        let _early = deadlines.note(&early, Duration::from_millis(10));
        while early.interrupt.cause() != Some(InterruptCause::TimeExceeded) {
            std::thread::yield_now();
        }
        assert_eq!(late.interrupt.cause(), None);
        assert_eq!(ended.interrupt.cause(), None);
    }

    #[test]
    fn a_kill_stands_before_the_end_of_the_time() {
        let control = control();
        control.kill_query();
        control.exceed_time();
        assert_eq!(control.interrupt.cause(), Some(InterruptCause::Killed));
    }
}
