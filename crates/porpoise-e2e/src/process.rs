//! What the system says about a server's process, and the limits of this one.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::server::Server;

/// Raises this process's limit of file descriptors as far as the system allows: a test that has
/// thousands of clients holds one end of each connection.
///
/// # Panics
/// When the limit is still below `at_least`.
pub fn raise_descriptor_limit(at_least: u64) {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    // A refusal leaves the limit as it is, which is judged below.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    assert!(
        most >= at_least,
        "{most} file descriptors, {at_least} are needed"
    );
}

/// How many file descriptors the server has open.
///
/// # Panics
/// When it has ended.
pub fn descriptors(server: &Server) -> usize {
    let folder = format!("/proc/{}/fd", server.process());
    std::fs::read_dir(folder).expect("the server runs").count()
}

/// What the server's file descriptors are of, in order: a path, or `socket`, `anon_inode:[eventfd]`
/// and the like, without numbers.
///
/// # Panics
/// When it has ended.
pub fn open_files(server: &Server) -> Vec<String> {
    let folder = format!("/proc/{}/fd", server.process());
    let entries = std::fs::read_dir(folder)
        .expect("the server runs")
        .flatten();
    // One that was closed since the folder was read has no target any longer.
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let mut names: Vec<String> = targets
        .map(|target| {
            let name = target.to_string_lossy();
            match name.split_once(":[") {
                Some((kind @ ("socket" | "pipe"), _)) => kind.to_string(),
                _ => name.into_owned(),
            }
        })
        .collect();
    names.sort_unstable();
    names
}

/// The server's resident memory, in bytes.
///
/// # Panics
/// When it has ended.
pub fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process()))
        .expect("the server runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("a process that runs has resident memory") << 10
}

/// Tries `check` every 20 ms until it succeeds.
///
/// # Panics
/// With the last error, when `patience` is over.
#[track_caller]
pub fn eventually(patience: Duration, mut check: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + patience;
    while let Err(error) = check() {
        assert!(Instant::now() < end, "{error}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
