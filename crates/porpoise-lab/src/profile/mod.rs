//! Where the time goes: samples of server and clients while a workload runs, and what differs
//! between two servers or two ways in.
//!
//! 1. The [`Subject`] is started, filled, and has its clients at work.
//! 2. `perf` samples the stacks of both processes, first by time on a CPU, then by switches of
//!    context: what a thread does when it stops running is what it waits for ([`recording`]).
//! 3. Stacks that are alike become one, with a count ([`Stacks`]): flame graphs are drawn of them.
//! 4. [`report`]: functions by their own time with ranks, waiting sites, contended locks; of two
//!    subjects side by side.
//!
//! ```text
//! perf record ──► perf script ──► folded stacks ──┬──► flame graphs, and their difference
//!  server, clients                                └──► ranks, waiting sites, locks
//! ```
//!
//! A lock's contention is seen from outside: samples and switches within its slow path, by who
//! asked for the lock. So nothing has to be counted where nobody looks.

mod flame;
mod recording;
mod report;
mod stacks;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::runner::Probe;
use crate::{Error, ServerSpec, Way, Workload};

pub use recording::check_perf;
pub use report::{Functions, Locks, Sites};
pub use stacks::Stacks;

use recording::{Event, record};

/// Samples of switches that are aimed at: each takes kilobytes. Every switch is one, for as long as
/// that lasts. Each n-th would be counted for each thread, and one that sleeps seldom, as one that
/// waits for a lock does, would never be seen.
const SWITCH_SAMPLES: f64 = 4000.0;
/// How long switches are sampled at least.
const SWITCHES_MIN: Duration = Duration::from_millis(50);

/// What is sampled.
#[derive(Clone, Debug)]
pub struct ProfilePlan {
    /// What the clients do.
    pub workload: Workload,
    /// Clients at a time.
    pub clients: usize,
    /// Rows of the table.
    pub rows: u64,
    /// How long the clients work before.
    pub warm_up: Duration,
    /// How long each of the two recordings takes.
    pub duration: Duration,
    /// Samples a second of each CPU.
    pub frequency: u32,
}

/// A server, and how it is come to.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The server.
    pub server: ServerSpec,
    /// The way in.
    pub way: Way,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.server.name, self.way)
    }
}

/// Whose stacks they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The server's.
    Server,
    /// The clients', with an embedded database's.
    Clients,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Server => "server",
            Role::Clients => "clients",
        })
    }
}

/// A subject's samples.
#[derive(Debug)]
pub struct Profile {
    /// The subject's name.
    pub name: String,
    /// Transactions a second before samples were taken.
    pub throughput: f64,
    /// Switches of context a second, of server and clients.
    pub switches: f64,
    /// By time on a CPU, of each process.
    pub on_cpu: Vec<(Role, Stacks)>,
    /// By switches of context.
    pub off_cpu: Vec<(Role, Stacks)>,
}

impl Profile {
    /// Samples a subject; nothing if somebody asked to stop.
    pub fn of(
        subject: &Subject,
        plan: &ProfilePlan,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, Error> {
        check_perf()?;
        let probe = Probe::start(
            &subject.server,
            subject.way,
            plan.workload,
            plan.rows,
            plan.clients,
            stop,
        )?;
        let server = probe.pid().filter(|_| subject.way != Way::Embedded);
        let mut roles = vec![(Role::Clients, std::process::id())];
        roles.extend(server.map(|pid| (Role::Server, pid)));
        let pids: Vec<u32> = roles.iter().map(|(_, pid)| *pid).collect();
        let recorded = probe.under_load(plan.warm_up, stop, |seen| -> Result<_, Error> {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let on_cpu = record(Event::Cpu(plan.frequency), &pids, plan.duration)?;
            let window = Duration::from_secs_f64(SWITCH_SAMPLES / seen.switches.max(1.0));
            let window = window.max(SWITCHES_MIN).min(plan.duration);
            let off_cpu = record(Event::Switches, &pids, window)?;
            Ok(Some((on_cpu, off_cpu)))
        })?;
        let Some((seen, recorded)) = recorded else {
            return Ok(None);
        };
        let Some((on_cpu, off_cpu)) = recorded? else {
            return Ok(None);
        };
        let folded = |recording: &recording::Recording| -> Result<Vec<(Role, Stacks)>, Error> {
            let each = roles
                .iter()
                .map(|&(role, pid)| Ok((role, recording.stacks_of(pid)?)));
            each.collect()
        };
        Ok(Some(Self {
            name: subject.to_string(),
            throughput: seen.throughput,
            switches: seen.switches,
            on_cpu: folded(&on_cpu)?,
            off_cpu: folded(&off_cpu)?,
        }))
    }

    /// Writes folded stacks and flame graphs into a folder. Returned are the files.
    pub fn write(&self, folder: &std::path::Path) -> Result<Vec<PathBuf>, Error> {
        crate::make_folder(folder)?;
        let mut files = Vec::new();
        for (kind, count, all) in [
            ("cpu", "samples", &self.on_cpu),
            ("switches", "switches", &self.off_cpu),
        ] {
            let whole = Stacks::under_roles(all);
            let base = folder.join(format!("{}-{kind}", file_name(&self.name)));
            let (text, drawn) = (
                base.with_added_extension("folded"),
                base.with_added_extension("svg"),
            );
            std::fs::write(&text, whole.folded())?;
            files.push(text);
            if !whole.is_empty() {
                let title = format!("{}, {kind}", self.name);
                std::fs::write(&drawn, flame::graph(&title, count, &whole)?)?;
                files.push(drawn);
            }
        }
        Ok(files)
    }

    /// Draws the stacks of `self` in the colours of what they have more, or less, than `other`'s.
    pub fn write_difference(
        &self,
        other: &Profile,
        folder: &std::path::Path,
    ) -> Result<Option<PathBuf>, Error> {
        let [before, after] = [other, self].map(|profile| Stacks::under_roles(&profile.on_cpu));
        if before.is_empty() || after.is_empty() {
            return Ok(None);
        }
        let title = format!("{}, against {}", self.name, other.name);
        let path = folder.join("difference.svg");
        std::fs::write(&path, flame::difference(&title, &before, &after)?)?;
        Ok(Some(path))
    }

    /// The stacks of a role, by time.
    pub fn role(&self, role: Role) -> Option<&Stacks> {
        let mut all = self.on_cpu.iter();
        all.find(|(own, _)| *own == role).map(|(_, stacks)| stacks)
    }
}

fn file_name(name: &str) -> String {
    let kept = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '-',
    };
    name.chars().map(kept).collect()
}
