//! A server of an experiment's own: started on its folder again and again.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use porpoise_client::{Connection, Options};
use rustix::process::{Pid, Signal, kill_process};

use crate::memory_group::MemoryGroup;
use crate::resources::Memory;
use crate::serving::{Serving, prepare, routes_to};
use crate::{Error, Peer};

/// Of `innodb_buffer_pool_size`: MariaDB takes no less.
pub(crate) const CACHE_MIN_MIB: u64 = 8;
/// A million MiB: caches and limits that no machine of today has are mistakes.
pub(crate) const MEMORY_MAX_MIB: u64 = 1 << 20;
/// What a server's folder takes without any rows: logs, dictionaries.
pub(crate) const EMPTY_BYTES: u64 = 512 << 20;
/// How long a server may take to end.
const STOP_PATIENCE: Duration = Duration::from_secs(300);
/// A folder whose size stays the same for so long is at rest.
const REST: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Porpoise,
    MariaDb,
}

impl Product {
    /// In the order in which they are measured.
    pub(crate) const fn all(with_peer: bool) -> &'static [Self] {
        match with_peer {
            true => &[Self::MariaDb, Self::Porpoise],
            false => &[Self::Porpoise],
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Porpoise => "Porpoise",
            Self::MariaDb => "MariaDB",
        }
    }
}

pub(crate) struct OwnServer {
    process: Process,
    /// Where its files are.
    data: PathBuf,
}

enum Process {
    Porpoise(Serving),
    MariaDb(Peer),
}

impl OwnServer {
    /// One that serves from `folder`, with what was there before, for so many clients, with more of
    /// mysqld's options; its memory limited by a group, if there is one.
    pub(crate) fn start(
        product: Product,
        folder: &Path,
        clients: usize,
        options: &[String],
        group: Option<&MemoryGroup>,
    ) -> Result<Self, Error> {
        let (process, data) = match product {
            Product::Porpoise => {
                let log = folder.join("porpoise.log");
                let serving = Serving::start_in(group, None, folder, clients, options, Some(&log))?;
                (Process::Porpoise(serving), folder.join("porpoise"))
            }
            Product::MariaDb => {
                let peer = Peer::start_in(group, folder, clients, options)?;
                (Process::MariaDb(peer), folder.join("mariadb"))
            }
        };
        Ok(Self { process, data })
    }

    pub(crate) fn product(&self) -> Product {
        match self.process {
            Process::Porpoise(_) => Product::Porpoise,
            Process::MariaDb(_) => Product::MariaDb,
        }
    }

    /// How clients come in, by the Unix socket.
    pub(crate) fn options(&self) -> Options {
        let [_, unix] = match &self.process {
            Process::Porpoise(serving) => routes_to(serving.port, &serving.socket),
            Process::MariaDb(peer) => routes_to(peer.port(), peer.socket()),
        };
        unix
    }

    fn root(&self) -> Result<Connection, porpoise_client::Error> {
        match &self.process {
            Process::Porpoise(serving) => serving.root(),
            Process::MariaDb(peer) => peer.connect(),
        }
    }

    /// Makes the clients' account.
    pub(crate) fn prepare(&self) -> Result<(), porpoise_client::Error> {
        prepare(&mut self.root()?, &["localhost"])
    }

    /// Has it answer a query.
    pub(crate) fn answers(&self) -> Result<(), porpoise_client::Error> {
        self.root()?.rows("SELECT 1").map(drop)
    }

    fn pid(&self) -> u32 {
        match &self.process {
            Process::Porpoise(serving) => serving.pid(),
            Process::MariaDb(peer) => peer.pid(),
        }
    }

    /// Its memory; nothing once it has ended.
    pub(crate) fn memory(&self) -> Option<Memory> {
        Memory::of(self.pid())
    }

    /// Has the peak of its memory be counted from now on.
    pub(crate) fn forget_peak(&self) -> std::io::Result<()> {
        Memory::forget_peak(self.pid())
    }

    /// What its files take on the disk.
    pub(crate) fn data_bytes(&self) -> u64 {
        folder_bytes(&self.data)
    }

    /// Waits until its files take the same for a while, or for `patience`; what they then take.
    /// Nothing, if somebody sets `stop` before.
    pub(crate) fn rest(&self, patience: Duration, stop: &AtomicBool) -> Option<u64> {
        let began = Instant::now();
        let (mut bytes, mut since) = (self.data_bytes(), Instant::now());
        while began.elapsed() < patience && since.elapsed() < REST {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
            let now = self.data_bytes();
            if now != bytes {
                (bytes, since) = (now, Instant::now());
            }
        }
        Some(bytes)
    }

    /// How it has ended; nothing as long as it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        match &mut self.process {
            Process::Porpoise(serving) => serving.ended(),
            Process::MariaDb(peer) => peer.ended(),
        }
    }

    /// Ends it as services are ended, and waits until it has.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        let name = self.product().name();
        let pid = Pid::from_raw(self.pid() as i32).expect("a process has a number");
        kill_process(pid, Signal::TERM).map_err(std::io::Error::from)?;
        let began = Instant::now();
        loop {
            match self.ended() {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(Error::Plan(format!("{name} stopped with {status}"))),
                None if began.elapsed() > STOP_PATIENCE => {
                    let seconds = STOP_PATIENCE.as_secs();
                    let why = format!("{name} has not stopped after {seconds} seconds");
                    return Err(Error::Plan(why));
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Ends it at once, and waits until it has.
    pub(crate) fn kill(&mut self) {
        match &mut self.process {
            Process::Porpoise(serving) => serving.kill(),
            Process::MariaDb(peer) => peer.kill(),
        }
        while self.ended().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What the files of a folder take on the disk; those that go meanwhile take nothing.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        // As stat tells it, in units of 512.
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_what_is_in_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(folder_bytes(folder.path()), 0);
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        for name in ["one", "inner/two"] {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            std::io::Write::write_all(&mut &file, &vec![1; 100_000]).unwrap();
            file.sync_all().unwrap();
        }
        let bytes = folder_bytes(folder.path());
        assert!((200_000..400_000).contains(&bytes), "{bytes}");
        assert_eq!(folder_bytes(&folder.path().join("missing")), 0);
    }
}
