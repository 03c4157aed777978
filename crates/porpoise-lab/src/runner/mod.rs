//! Runs an experiment: what is still to be done, in the order of its schedule, into its results.
//!
//! 1. The results are opened, or made; runs that are done there stay.
//! 2. For each run: its server is started if it isn't there, its tables are made if another run
//!    left them changed, and it is [measured](measure).
//! 3. [What must hold](verify) after it is looked at.
//! 4. What came of it is written down, before the next begins. A run that comes to nothing, because
//!    its server died, a client was refused, or what must hold doesn't, is a finding as well.
//!
//! Servers stay up between runs, so that an idle one costs the others as much as it costs them in
//! other orders: nothing but memory.

mod interruptible;
mod measure;
mod probe;
mod script;
mod server;
mod stationary;
mod verify;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use porpoise_client::{Connection, Options};

use crate::Error;
use crate::experiment::{Experiment, Point, ServerKind, WorkloadKind};
use crate::lifeline::WorkFolder;
use crate::load::Load;
use crate::machine;
use crate::progress::{self, Progress};
use crate::report::rate;
use crate::resources::pin_process;
use crate::store::{PlannedRun, Results, RunCounts};
use crate::sysbench;

use interruptible::interruptible;
use measure::{Outcome, RunPlan, measure};
pub use probe::{Probe, Seen};
use script::ScriptPlan;
use server::Filling;
pub(crate) use server::{Embedded, RunningServer, build, commit_of, is_program};
use verify::Reference;

/// How an experiment is run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions<'a> {
    /// Runs that came to nothing are done again.
    pub retry_failed: bool,
    /// When somebody sets it, the run that is going on is broken off, and done again next time.
    pub stop: &'a AtomicBool,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

/// Works at `experiment` until all its runs are done, or somebody stops it. Returned is how many
/// there are of each kind.
pub fn run(
    experiment: &Experiment,
    results: &Results,
    options: RunOptions<'_>,
) -> Result<RunCounts, Error> {
    if options.retry_failed {
        results.retry_failed()?;
    }
    let planned = results.planned()?;
    if planned.is_empty() {
        return results.counts();
    }
    let mut workloads = experiment.workloads.iter();
    if workloads.any(|workload| matches!(workload.kind, WorkloadKind::Sysbench(_)))
        && !sysbench::is_installed()
    {
        let what = "a workload is a script of sysbench, which is not installed (on Debian: apt-get install sysbench)";
        return Err(Error::Plan(what.into()));
    }
    let folder = WorkFolder::new("porpoise-lab")?;
    let session = results.begin_session()?;
    results.add_facts(session, "machine", &machine::describe())?;
    let mut program = vec![("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
    let own = std::env::current_exe();
    program.extend(
        own.ok()
            .and_then(|path| machine::fact_of_file("file", &path)),
    );
    results.add_facts(session, "program", &program)?;
    for workload in &experiment.workloads {
        if let WorkloadKind::Sysbench(script) = &workload.kind {
            results.add_facts(session, &workload.name, &script.facts())?;
        }
    }
    let mut runner = Runner {
        experiment,
        results,
        options,
        folder: folder.path(),
        session,
        servers: experiment.servers.iter().map(|_| None).collect(),
        references: experiment.workloads.iter().map(|_| None).collect(),
        progress: Progress::new(options.progress),
        began: Instant::now(),
        total: planned.len(),
    };
    for (done, run) in planned.into_iter().enumerate() {
        if options.stop.load(Ordering::Relaxed) || !runner.run(done, run)? {
            break;
        }
    }
    runner.progress.clear();
    results.end_session(session)?;
    results.counts()
}

struct Runner<'a> {
    experiment: &'a Experiment,
    results: &'a Results,
    options: RunOptions<'a>,
    folder: &'a Path,
    session: u32,
    servers: Vec<Option<RunningServer>>,
    /// Of each workload whose answers are compared.
    references: Vec<Option<Reference>>,
    progress: Progress,
    began: Instant,
    total: usize,
}

impl Runner<'_> {
    /// Does one run, after so many in this session. False if somebody stopped it.
    fn run(&mut self, done: usize, run: PlannedRun) -> Result<bool, Error> {
        let experiment = self.experiment;
        let Some(point) = experiment.points.get(run.point) else {
            return Err(Error::Results(format!("there is no point {}", run.point)));
        };
        let began = Instant::now();
        let failed = |runner: &mut Self, error: &dyn std::error::Error| {
            runner.failed(run, point, began.elapsed(), &error.to_string())
        };
        match self.attempt(done, run, point) {
            Ok(Outcome::Measured(measured)) => {
                self.results.finish(self.session, run.id, &measured)?;
            }
            Ok(Outcome::Stopped) => return Ok(false),
            // What ended because somebody asked is done again.
            Ok(Outcome::Failed(_)) if self.is_stopped() => return Ok(false),
            Ok(Outcome::Failed(error)) => failed(self, &error)?,
            // What can't be written down ends the experiment.
            Err(error @ Error::Results(_)) => return Err(error),
            Err(_) if self.is_stopped() => return Ok(false),
            Err(error) => failed(self, &error)?,
        }
        Ok(true)
    }

    fn is_stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    fn failed(
        &mut self,
        run: PlannedRun,
        point: &Point,
        after: Duration,
        why: &str,
    ) -> Result<(), Error> {
        // Whatever state it is in: the next run has a fresh one.
        let server = self.servers[point.server].take();
        let folder = self.folder.join(point.server.to_string());
        let end = server.and_then(|mut server| server.end_of(&folder));
        let why = &match end {
            Some(end) => format!("{why}; {}", end.trim_end()),
            None => why.to_owned(),
        };
        self.progress.clear();
        if self.options.progress {
            let name = self.name(point);
            progress::tell(format_args!(
                "run {}, {name}, came to nothing: {why}",
                run.id
            ));
        }
        self.results.fail(self.session, run.id, after, why)
    }

    fn name(&self, point: &Point) -> String {
        format!(
            "{}, {}, {} clients",
            self.experiment.series(point),
            self.experiment.workloads[point.workload].name,
            point.clients
        )
    }

    fn attempt(&mut self, done: usize, run: PlannedRun, point: &Point) -> Result<Outcome, Error> {
        let head = format!(
            "run {} of {}, {}, {}",
            done + 1,
            self.total,
            self.left(done),
            self.name(point)
        );
        self.refer(point, &head)?;
        let clients = self.loaded(point, &head)?;
        let outcome = self.measured(run, point, &clients, &head)?;
        if matches!(outcome, Outcome::Measured(_)) {
            self.progress.show(&format!("{head}: checking"));
            self.verify(point, &clients)?;
        }
        Ok(outcome)
    }

    /// Has a point's server run, with the tables of its workload; gives what clients connect by.
    fn loaded(&mut self, point: &Point, head: &str) -> Result<Options, Error> {
        let experiment = self.experiment;
        let spec = &experiment.servers[point.server];
        let workload = &experiment.workloads[point.workload];
        let folder = self.folder.join(point.server.to_string());
        let progress = &mut self.progress;
        let place = &mut self.servers[point.server];
        let server = match place {
            Some(server) => server,
            None => {
                progress.show(&format!("{head}: starting the server"));
                let clients = experiment.points.iter().map(|point| point.clients).max();
                // One that has died may have left its data in any state.
                let _ = std::fs::remove_dir_all(&folder);
                // Clients that come and go are there before those that went are gone.
                let server = RunningServer::start(spec, &folder, clients.unwrap_or(1) * 2)?;
                self.results
                    .add_facts(self.session, &spec.name, &server.facts(spec))?;
                place.insert(server)
            }
        };
        let clients = server.options_for(spec, point.way, workload, &folder)?;
        let shown = |what: &str| progress.show(&format!("{head}: filling tables, {what}"));
        let filling = Filling {
            workload,
            tables: &experiment.tables,
            seed: experiment.seed,
        };
        server.load(point.way, &clients, filling, self.options.stop, shown)?;
        Ok(clients)
    }

    fn measured(
        &mut self,
        run: PlannedRun,
        point: &Point,
        clients: &Options,
        head: &str,
    ) -> Result<Outcome, Error> {
        let experiment = self.experiment;
        let workload = &experiment.workloads[point.workload];
        let server = self.servers[point.server].as_ref();
        let pid = server.and_then(RunningServer::pid);
        let all_cpus = machine::online_cpus();
        let affinity = |of: fn(&crate::Affinity) -> &Vec<usize>| {
            let named = point
                .affinity
                .as_ref()
                .map(of)
                .filter(|cpus| !cpus.is_empty());
            named.unwrap_or(&all_cpus).clone()
        };
        let has_affinities = point.affinity.is_some();
        if let Some(pid) = pid.filter(|_| has_affinities) {
            pin_process(pid, &affinity(|affinity| &affinity.server))?;
        }
        let client_cpus = affinity(|affinity| &affinity.clients);
        let cpus = has_affinities.then_some(&client_cpus[..]);
        // Repetitions differ, and what is compared doesn't.
        let seed = experiment.seed.wrapping_add(u64::from(run.repetition));
        let server = pid.filter(|_| point.way != crate::Way::Embedded);
        let progress = &mut self.progress;
        if let WorkloadKind::Sysbench(script) = &workload.kind {
            let plan = ScriptPlan {
                script,
                options: clients,
                mode: experiment.mode,
                clients: point.clients,
                seed,
                rate: point.rate,
                cpus,
                warm_up: experiment.warm_up,
                duration: experiment.duration,
                server,
                stop: self.options.stop,
            };
            return script::measure(&plan, |phase| progress.show(&format!("{head}: {phase}")));
        }
        let Some(script) = workload.script(&experiment.tables) else {
            return Err(Error::Plan(format!("{} has no script", workload.name)));
        };
        let plan = RunPlan {
            load: Load {
                options: clients,
                script: &script,
                mode: experiment.mode,
                clients: point.clients,
                jobs: experiment.threads(point),
                seed,
                rate: point.rate,
                cpus,
            },
            warm_up: experiment.warm_up,
            duration: experiment.duration,
            transactions_min: match &workload.kind {
                WorkloadKind::Scenario(scenario) => scenario.0.transactions_min(),
                _ => 0,
            },
            server,
            stop: self.options.stop,
        };
        measure(&plan, |phase, per_second| {
            progress.show(&format!("{head}: {phase}, {}/s", rate(per_second)));
        })
    }

    /// Asks the server that a workload's answers are compared with, if that wasn't done: the first
    /// that isn't a Porpoise we start, or the first.
    fn refer(&mut self, point: &Point, head: &str) -> Result<(), Error> {
        let experiment = self.experiment;
        let WorkloadKind::Scenario(scenario) = &experiment.workloads[point.workload].kind else {
            return Ok(());
        };
        let queries = scenario.0.compared();
        if queries.is_empty() || self.references[point.workload].is_some() {
            return Ok(());
        }
        let is_peer = |other: &&Point| {
            let kind = &experiment.servers[other.server].kind;
            matches!(kind, ServerKind::MariaDb | ServerKind::Url(_))
        };
        let points = || experiment.points.iter();
        let of_workload = || points().filter(|other| other.workload == point.workload);
        let reference = of_workload().find(is_peer).or(of_workload().next());
        let reference = reference.unwrap_or(point);
        let options = self.loaded(reference, head)?;
        self.progress
            .show(&format!("{head}: asking the server to compare with"));
        let server = experiment.series(reference);
        let failed = |error| Error::Target {
            target: server.clone(),
            doing: "answering what is compared".into(),
            error,
        };
        let mut connection = Connection::connect(&options).map_err(failed)?;
        let answers = interruptible(&mut connection, &options, self.options.stop, |connection| {
            verify::answers(&queries, connection)
        });
        let answers = answers.map_err(failed)?;
        self.references[point.workload] = Some(Reference { server, answers });
        Ok(())
    }

    /// What must hold after a run; an error tells what doesn't.
    fn verify(&self, point: &Point, clients: &Options) -> Result<(), Error> {
        let experiment = self.experiment;
        let WorkloadKind::Scenario(scenario) = &experiment.workloads[point.workload].kind else {
            return Ok(());
        };
        let queries = scenario.0.compared();
        if queries.is_empty() && scenario.0.checks().is_empty() {
            return Ok(());
        }
        let failed = |error| Error::Target {
            target: experiment.series(point),
            doing: "looking at what must hold after the run".into(),
            error,
        };
        let mut connection = Connection::connect(clients).map_err(failed)?;
        let stop = self.options.stop;
        let violation = interruptible(&mut connection, clients, stop, |connection| {
            let violation = verify::violation(&*scenario.0, connection)?;
            Ok(match (violation, &self.references[point.workload]) {
                (None, Some(reference)) => {
                    let own = verify::answers(&queries, connection)?;
                    verify::difference(&queries, &own, reference)
                }
                (violation, _) => violation,
            })
        });
        let violation = violation.map_err(failed)?;
        match violation {
            Some(what) => Err(Error::Plan(format!("after the run, {what}"))),
            None => Ok(()),
        }
    }

    /// How long the runs take that are left.
    fn left(&self, done: usize) -> String {
        let warm_up = self.experiment.warm_up;
        let expected = match done {
            // Nothing is known yet but what was asked for.
            0 => (self.experiment.duration + warm_up.min) * self.total as u32,
            done => self.began.elapsed() / done as u32 * (self.total - done) as u32,
        };
        let ends =
            jiff::Zoned::now().checked_add(jiff::Span::new().seconds(expected.as_secs() as i64));
        let ends = ends.map_or_else(|_| "?".into(), |ends| ends.strftime("%H:%M").to_string());
        format!("{} left, until {ends}", in_words(expected))
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
