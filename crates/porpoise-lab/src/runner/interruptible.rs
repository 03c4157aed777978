//! Work on one connection that somebody may ask to stop: filling tables, asking what is compared. It
//! has no place at which it could look, so its connection is ended by another one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use porpoise_client::{Connection, Options};

/// Between two looks whether somebody asked.
const LOOK: Duration = Duration::from_millis(100);

/// Does `work`, which ends with the connection's error if somebody asks to stop.
pub(super) fn interruptible<T>(
    connection: &mut Connection,
    options: &Options,
    stop: &AtomicBool,
    work: impl FnOnce(&mut Connection) -> T,
) -> T {
    let id = connection.id();
    // Whichever database the work is about may not be there just now.
    let options = Options {
        database: None,
        ..options.clone()
    };
    let (done, is_done) = sync_channel::<()>(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(LOOK) {
                if stop.load(Ordering::Relaxed) {
                    let other = Connection::connect(&options);
                    let killed = other.and_then(|mut other| other.run(format!("KILL {id}")));
                    if killed.is_ok() {
                        return;
                    }
                }
            }
        });
        let result = work(connection);
        drop(done);
        result
    })
}
