//! Signals that a program handles reach it wherever it waits: in the midst of a statement, too,
//! which goes on as if nothing had been.

#![cfg(target_os = "linux")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::served::Served;
use porpoise_client::Connection;
use rustix::process::{Signal, kill_process};
use rustix::thread::gettid;
use signal_hook::consts::SIGUSR1;

/// Runs `f` on a thread that is interrupted all the time, and says how often it was.
///
/// A signal for a thread's number goes to its process, and is handled on that thread (kill(2),
/// `complete_signal`). What waits in poll(2) is interrupted whether or not SA_RESTART is set
/// (signal(7)).
fn interrupted<R: Send>(f: impl FnOnce() -> R + Send) -> (R, u32) {
    let came = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGUSR1, came.clone()).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (result, times) = std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            tell.send(gettid()).unwrap();
            f()
        });
        let number = told.recv().unwrap();
        let mut times = 0;
        while !thread.is_finished() {
            // It may have ended meanwhile.
            if kill_process(number, Signal::USR1).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
            times += u32::from(came.swap(false, Ordering::SeqCst));
        }
        (thread.join().unwrap(), times)
    });
    signal_hook::low_level::unregister(registered);
    (result, times)
}

#[test]
fn a_statement_goes_on_after_a_signal() {
    let served = Served::start("127.0.0.1:0", false);
    for way in ["unix", "tcp", "shm"] {
        let url = served.url("ann:secret", &format!("transport={way}"));
        let mut connection = Connection::open(&url).unwrap();
        let ((), times) = interrupted(|| {
            // While it waits for a reply, takes a long one, and sends a long statement.
            let rows = connection.rows("SELECT SLEEP(0.3)").unwrap();
            assert_eq!(rows.to_text(), [["0"]], "{way}");
            let rows = connection.rows("SELECT REPEAT('fish', 4000000)").unwrap();
            assert_eq!(rows.to_text()[0][0].len(), 16_000_000, "{way}");
            let long = "x".repeat(16_000_000);
            let rows = connection.rows(format!("SELECT LENGTH('{long}')")).unwrap();
            assert_eq!(rows.to_text(), [["16000000"]], "{way}");
        });
        assert!(times > 20, "{way}: {times} signals");
        assert!(!connection.is_broken());
    }
}
