//! Kill -9 under load: nothing acknowledged is missing, nothing is there by half.
//!
//! A child process commits from several threads. Each transaction writes the same stamp to every
//! key of its thread's group, and is reported through a pipe once it was acknowledged. Some write so
//! many rows that they commit as a memtable of their own. The parent
//! kills the child at a random moment, opens the store, and compares. `PORPOISE_CRASH_ROUNDS` sets
//! how often (8 unless told).

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use porpoise_storage::{Flush, Options, SpaceId, Store};

const THREADS: u8 = 4;
const KEYS: u8 = 5;
/// How many rows more one in [`LARGE_EVERY`] transactions of a thread writes.
const LARGE_KEYS: u16 = 1500;
const LARGE_EVERY: u64 = 12;
const SPACE: SpaceId = SpaceId(1);
const FOLDER: &str = "PORPOISE_CRASH_FOLDER";
const FLUSH: &str = "PORPOISE_CRASH_FLUSH";

fn options(folder: &str) -> Options {
    let mut options = Options::path(folder);
    // Small, so that segments roll and checkpoints run all the time.
    options.log_segment_bytes = 32 << 10;
    options.checkpoint_log_bytes = 96 << 10;
    options.checkpoint_version_bytes = 64 << 10;
    options
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

fn large_key(thread: u8, key: u16) -> Vec<u8> {
    [&[thread, KEYS], &key.to_be_bytes()[..]].concat()
}

/// Not a test of its own: what the child process runs until it is killed.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let options = options(&folder);
    if std::env::var(FLUSH).is_ok_and(|f| f == "2") {
        options.flush.set(Flush::WriteAtCommit);
    }
    let store = Store::open(&options).unwrap();
    let report = Mutex::new(std::io::stdout());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, report) = (&store, &report);
            scope.spawn(move || {
                let last = store.snapshot().get(SPACE, &[thread, 0], number).unwrap();
                for stamp in last.unwrap_or(0) + 1..=u64::MAX {
                    let mut work = store.begin();
                    let value = [
                        &stamp.to_le_bytes()[..],
                        &vec![thread; stamp as usize % 700],
                    ];
                    for key in 0..KEYS {
                        work.put(SPACE, &[thread, key], &value.concat());
                    }
                    if stamp % LARGE_EVERY == 0 {
                        for key in 0..LARGE_KEYS {
                            work.put(SPACE, &large_key(thread, key), &stamp.to_le_bytes());
                        }
                        assert!(work.is_large());
                    }
                    work.set_counter(SPACE, stamp);
                    work.commit().unwrap().wait().unwrap();
                    let mut out = report.lock().unwrap();
                    writeln!(out, "\nack {thread} {stamp}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

fn run_and_kill(folder: &str, flush: &str, after: Duration) -> [u64; THREADS as usize] {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env(FLUSH, flush)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = [0; THREADS as usize];
        for line in lines.map_while(Result::ok) {
            let words: Vec<_> = line.split(' ').collect();
            if let ["ack", thread, stamp] = words[..] {
                // A line cut off by the kill may read as a smaller stamp, never as a greater one.
                let thread: usize = thread.parse().unwrap();
                let stamp: u64 = stamp.parse().unwrap_or(0);
                acknowledged[thread] = stamp.max(acknowledged[thread]);
            }
        }
        acknowledged
    });
    std::thread::sleep(after);
    assert!(
        child.try_wait().unwrap().is_none(),
        "the child ended by itself"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    let rounds = std::env::var("PORPOISE_CRASH_ROUNDS")
        .ok()
        .and_then(|r| r.parse().ok());
    let mut random = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut stamps_seen = 0;
    for round in 0..rounds.unwrap_or(8) {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let after = Duration::from_millis(50 + (random >> 33) % 800);
        let flush = if round % 4 == 3 { "2" } else { "1" };
        let acknowledged = run_and_kill(path, flush, after);
        let store = Store::open(&options(path)).unwrap();
        let now = store.snapshot();
        for thread in 0..THREADS {
            let stamps: Vec<_> = (0..KEYS)
                .map(|key| now.get(SPACE, &[thread, key], number).unwrap())
                .collect();
            assert!(
                stamps.iter().all(|s| *s == stamps[0]),
                "half a commit in round {round}"
            );
            let found = stamps[0].unwrap_or(0);
            let promised = acknowledged[thread as usize];
            assert!(
                found >= promised,
                "round {round} lost {promised}, has {found}"
            );
            assert!(store.counter(SPACE) >= promised);
            let large = found - found % LARGE_EVERY;
            for key in 0..LARGE_KEYS {
                let stamp = now.get(SPACE, &large_key(thread, key), number).unwrap();
                assert_eq!(stamp.unwrap_or(0), large, "half a commit in round {round}");
            }
            stamps_seen += found;
        }
        if round % 3 == 2 {
            store.close().unwrap();
        }
    }
    assert!(stamps_seen > 0, "the children did something");
}
