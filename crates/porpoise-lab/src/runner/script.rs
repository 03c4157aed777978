//! A run of the real sysbench: warmed up by a run of its own, and measured by what it reports.

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use porpoise_client::Options;

use super::measure::Outcome;
use crate::experiment::WarmUp;
use crate::resources::{Usage, load_average, pin_process};
use crate::sysbench::{ScriptReport, SysbenchScript, complaints};
use crate::{Error, Measured, Mode};

/// Between two looks at what the processes use.
const LOOK: Duration = Duration::from_millis(100);

/// How a run is done.
pub(super) struct ScriptPlan<'a> {
    pub script: &'a SysbenchScript,
    pub options: &'a Options,
    pub mode: Mode,
    pub clients: usize,
    pub seed: u64,
    pub rate: Option<f64>,
    pub cpus: Option<&'a [usize]>,
    pub warm_up: WarmUp,
    pub duration: Duration,
    /// The server's process, if it is known.
    pub server: Option<u32>,
    /// When somebody sets it, the run ends, and comes to nothing.
    pub stop: &'a AtomicBool,
}

/// What a process said, and what was used meanwhile.
struct Ran {
    stdout: String,
    server: Option<Usage>,
    client: Usage,
}

/// Measures. `show` is told what is going on.
pub(super) fn measure(plan: &ScriptPlan<'_>, mut show: impl FnMut(&str)) -> Result<Outcome, Error> {
    let load_average = load_average();
    let warm_up = plan.warm_up.min;
    if !warm_up.is_zero() {
        show("warming up");
        if plan.run(warm_up)?.is_none() {
            return Ok(Outcome::Stopped);
        }
    }
    show("measuring");
    let Some(ran) = plan.run(plan.duration)? else {
        return Ok(Outcome::Stopped);
    };
    let report = ScriptReport::parse(&ran.stdout);
    let report = report.ok_or_else(|| plan.failed("it reports no transactions"))?;
    let conflicts = (report.ignored_errors > 0).then_some((0, report.ignored_errors));
    Ok(Outcome::Measured(Box::new(Measured {
        warm_up_seconds: whole_seconds(warm_up) as f64,
        is_stationary: None,
        seconds: report.seconds,
        transactions: report.transactions,
        statements: report.queries,
        conflicts: conflicts.into_iter().collect(),
        latencies: report.latencies,
        per_second: report.per_second,
        server: ran.server,
        client: ran.client,
        load_average,
        ..Measured::default()
    })))
}

/// sysbench knows no others.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs_f64().ceil() as u64
}

impl ScriptPlan<'_> {
    fn failed(&self, what: &str) -> Error {
        Error::Plan(format!("sysbench {}: {what}", self.script.script))
    }

    /// Runs it; nothing if somebody asked to stop.
    fn run(&self, time: Duration) -> Result<Option<Ran>, Error> {
        let command = self.script.command(self.options);
        let mut command = command.map_err(|what| self.failed(&what))?;
        command
            .arg(format!("--threads={}", self.clients))
            .arg(format!("--time={}", whole_seconds(time)))
            .args(["--events=0", "--report-interval=1", "--histogram=on"])
            .arg(match self.mode {
                Mode::Prepared => "--db-ps-mode=auto",
                Mode::Text => "--db-ps-mode=disable",
            });
        if !self
            .script
            .options
            .iter()
            .any(|option| option.contains("rand-seed"))
        {
            command.arg(format!("--rand-seed={}", self.seed & 0x7fff_ffff));
        }
        if let Some(rate) = self.rate {
            command.arg(format!("--rate={}", rate.round().max(1.0)));
        }
        let child = command
            .arg("run")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| self.failed(&error.to_string()))?;
        if let Some(cpus) = self.cpus {
            pin_process(child.id(), cpus)?;
        }
        let pipes = (child.stdout.take(), child.stderr.take());
        let (Some(mut stdout), Some(mut stderr)) = pipes else {
            return Err(self.failed("it has no output"));
        };
        std::thread::scope(|scope| {
            let stdout = scope.spawn(move || all_of(&mut stdout));
            let stderr = scope.spawn(move || all_of(&mut stderr));
            let watched = self.watch(&mut child);
            let joined = "a reader doesn't panic";
            let (stdout, stderr) = (stdout.join().expect(joined), stderr.join().expect(joined));
            let status = child.wait()?;
            let Some((server, client)) = watched? else {
                return Ok(None);
            };
            if !status.success() {
                return Err(self.failed(&complaints(&stdout, &stderr)));
            }
            Ok(Some(Ran {
                stdout: String::from_utf8_lossy(&stdout).into_owned(),
                server,
                client,
            }))
        })
    }

    /// Looks at the processes until sysbench has ended; nothing if somebody asked to stop.
    fn watch(&self, child: &mut Child) -> Result<Option<(Option<Usage>, Usage)>, Error> {
        let server = || self.server.and_then(Usage::of);
        let began = Instant::now();
        let before = server();
        let (mut server_memory, mut client_memory) = (0, 0);
        let mut client = Usage::default();
        while child.try_wait()?.is_none() {
            if self.stop.load(Ordering::Relaxed) {
                child.kill()?;
                return Ok(None);
            }
            if let Some(usage) = Usage::of(child.id()) {
                client_memory = usage.resident_bytes.max(client_memory);
                // Switches are those of threads that live: those that have ended had some.
                client = Usage {
                    voluntary_switches: usage.voluntary_switches.max(client.voluntary_switches),
                    involuntary_switches: usage
                        .involuntary_switches
                        .max(client.involuntary_switches),
                    ..usage
                };
            }
            if began.elapsed().as_millis() % 1000 < LOOK.as_millis() {
                let resident = server().map_or(0, |usage| usage.resident_bytes);
                server_memory = resident.max(server_memory);
            }
            std::thread::sleep(LOOK);
        }
        client.resident_bytes = client_memory;
        let used = before.and_then(|before| {
            Some(Usage {
                resident_bytes: server_memory,
                ..server()?.since(&before)
            })
        });
        Ok(Some((used, client)))
    }
}

fn all_of(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before an error is what there is.
    let _ = from.read_to_end(&mut bytes);
    bytes
}
