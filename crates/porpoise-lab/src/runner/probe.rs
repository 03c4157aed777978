//! One server, measured again and again under conditions that whoever asks chooses: for searches,
//! which know what to measure next only when they have seen the last run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::measure::{Outcome, RunPlan, measure};
use super::server::{Filling, RunningServer};
use crate::Way;
use crate::experiment::{ServerSpec, WarmUp, WorkloadKind, WorkloadSpec};
use crate::lifeline::WorkFolder;
use crate::load::{self, Load, Running};
use crate::resources::{Usage, pin_process};
use crate::{Affinity, Error, Mode, Script, Table, Workload};

/// How long the clients are looked at before somebody looks into them.
const LOOK: Duration = Duration::from_secs(1);

/// What clients at work do.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Transactions a second.
    pub throughput: f64,
    /// Switches of context a second, of server and clients.
    pub switches: f64,
}

/// A server that runs, with tables.
pub struct Probe {
    server: RunningServer,
    options: porpoise_client::Options,
    script: Script,
    clients: usize,
    way: Way,
    /// It has its data there.
    _folder: WorkFolder,
}

impl Probe {
    /// Starts a server, and fills its tables.
    pub fn start(
        spec: &ServerSpec,
        way: Way,
        oltp: Workload,
        rows: u64,
        clients: usize,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let folder = WorkFolder::new("porpoise-lab")?;
        let mut server = RunningServer::start(spec, folder.path(), clients)?;
        let options = server.options(spec, way, folder.path())?;
        let workload = WorkloadSpec {
            name: oltp.name().to_owned(),
            kind: WorkloadKind::Oltp(oltp),
            is_fresh: false,
        };
        let tables = [Table { number: 1, rows }];
        let filling = Filling {
            workload: &workload,
            tables: &tables,
            seed: 1,
        };
        server.load(way, &options, filling, stop, |_| {})?;
        Ok(Self {
            server,
            options,
            script: Script::Oltp(oltp, tables.to_vec()),
            clients,
            way,
            _folder: folder,
        })
    }

    /// Transactions a second of one run, with server and clients on these CPUs; nothing if somebody
    /// asked to stop.
    pub fn throughput(
        &self,
        affinity: &Affinity,
        duration: Duration,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Option<f64>, Error> {
        if let Some(pid) = self.server.pid().filter(|_| self.way != Way::Embedded) {
            pin_process(pid, &affinity.server)?;
        }
        let plan = RunPlan {
            load: Load {
                options: &self.options,
                script: &self.script,
                mode: Mode::Prepared,
                clients: self.clients,
                jobs: self.clients,
                seed,
                rate: None,
                cpus: Some(&affinity.clients),
            },
            // Threads have to find their CPUs; caches are as full as they get.
            warm_up: WarmUp {
                min: duration / 5,
                max: duration / 5,
            },
            duration,
            transactions_min: 0,
            server: self.server.pid(),
            stop,
        };
        match measure(&plan, |_, _| {})? {
            Outcome::Measured(measured) => {
                Ok(Some(measured.transactions as f64 / measured.seconds))
            }
            Outcome::Stopped => Ok(None),
            Outcome::Failed(error) => Err(Error::Target {
                target: format!("{}", self.way),
                doing: "measuring".into(),
                error,
            }),
        }
    }

    /// The server's process, if it is known.
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// Has the clients work, and once they have for `warm_up`, calls `look`, which takes its time.
    /// Nothing comes back if somebody asked to stop.
    pub fn under_load<T>(
        &self,
        warm_up: Duration,
        stop: &AtomicBool,
        look: impl FnOnce(Seen) -> T,
    ) -> Result<Option<(Seen, T)>, Error> {
        let load = Load {
            options: &self.options,
            script: &self.script,
            mode: Mode::Prepared,
            clients: self.clients,
            jobs: self.clients,
            seed: 1,
            rate: None,
            cpus: None,
        };
        let (seen, counted) = load::run(&load, |running| {
            if !wait(running, warm_up, stop) {
                return None;
            }
            let seen = self.see(running, stop)?;
            Some((seen, look(seen)))
        })?;
        match counted {
            Ok(_) => Ok(seen),
            Err(error) => Err(Error::Target {
                target: format!("{}", self.way),
                doing: "looking at clients".into(),
                error,
            }),
        }
    }

    fn see(&self, running: &Running<'_>, stop: &AtomicBool) -> Option<Seen> {
        let server = self.server.pid().filter(|_| self.way != Way::Embedded);
        let pids = [Some(std::process::id()), server];
        let switches = || -> u64 {
            let usages = pids.iter().flatten().filter_map(|&pid| Usage::of(pid));
            usages
                .map(|usage| usage.voluntary_switches + usage.involuntary_switches)
                .sum()
        };
        let (began, transactions, before) = (Instant::now(), running.transactions(), switches());
        if !wait(running, LOOK, stop) {
            return None;
        }
        let a_second = |count: u64| count as f64 / began.elapsed().as_secs_f64();
        Some(Seen {
            throughput: a_second(running.transactions() - transactions),
            switches: a_second(switches().saturating_sub(before)),
        })
    }
}

/// False if a client failed, or somebody asked to stop.
fn wait(running: &Running<'_>, time: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        if stop.load(Ordering::Relaxed) || !running.wait(left.min(LOOK / 10)) {
            return false;
        }
    }
}
