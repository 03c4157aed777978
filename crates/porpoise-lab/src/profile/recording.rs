//! `perf`, called: it records into a file, and tells the file's stacks as text.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};

use super::stacks::Stacks;
use crate::Error;
use crate::lifeline::WorkFolder;

/// What of a stack is copied with each sample: enough for the deepest plan.
const STACK_BYTES: u32 = 16384;
/// Times that a recording is tried.
const ATTEMPTS: u32 = 3;
/// What decides who may sample whom.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// What takes a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// Time on a CPU: so many samples a second.
    Cpu(u32),
    /// Each switch of context.
    Switches,
}

/// What was recorded.
pub(super) struct Recording {
    folder: WorkFolder,
}

/// An error that says what to do, where `perf` isn't there or may not sample.
pub fn check_perf() -> Result<(), Error> {
    let folder = WorkFolder::new("porpoise-perf")?;
    let mut command = perf("record", Event::Cpu(99), &folder.path().join("perf.data"));
    command.args(["--", "true"]);
    ran(command).map(drop)
}

/// Samples processes for a while.
pub(super) fn record(event: Event, pids: &[u32], duration: Duration) -> Result<Recording, Error> {
    let folder = WorkFolder::new("porpoise-perf")?;
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let attempt = || {
        let mut command = perf("record", event, &folder.path().join("perf.data"));
        command.args(["-p", &pids.join(","), "--", "sleep"]);
        command.arg(duration.as_secs_f64().to_string());
        ran(command)
    };
    // perf passes over a thread that ends between being listed and opened, says so, and at times
    // gives up all the same. Another attempt finds others; whatever else is wrong stays so.
    let mut done = attempt();
    for _ in 1..ATTEMPTS {
        match &done {
            Err(error) if has_lost_a_thread(&error.to_string()) => done = attempt(),
            _ => break,
        }
    }
    done?;
    Ok(Recording { folder })
}

fn has_lost_a_thread(words: &str) -> bool {
    ["Ignored open failure", "No such process"]
        .iter()
        .any(|part| words.contains(part))
}

fn perf(verb: &str, event: Event, file: &Path) -> Command {
    let mut command = Command::new("perf");
    command
        .arg(verb)
        .arg("--call-graph")
        .arg(format!("dwarf,{STACK_BYTES}"));
    match event {
        Event::Cpu(frequency) => command.args(["-e", "cpu-clock", "-F", &frequency.to_string()]),
        Event::Switches => command.args(["-e", "context-switches", "-c", "1"]),
    };
    command.arg("-o").arg(file);
    command
}

fn ran(mut command: Command) -> Result<Output, Error> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Plan(
            "perf isn't installed, which takes the samples (Debian: linux-perf, Fedora: perf, Ubuntu: linux-tools-generic)".into(),
        ),
        _ => Error::Plan(format!("perf: {error}")),
    })?;
    match output.status.success() {
        true => Ok(output),
        false => Err(Error::Plan(refusal(
            &String::from_utf8_lossy(&output.stderr),
            std::fs::read_to_string(PARANOID).ok().as_deref(),
        ))),
    }
}

/// Why perf did nothing, by its own words, and what helps.
fn refusal(words: &str, paranoid: Option<&str>) -> String {
    let is_forbidden = [
        "not permitted",
        "No permission",
        "Permission denied",
        "EACCES",
        "EPERM",
    ]
    .iter()
    .any(|word| words.contains(word));
    let lines: Vec<&str> = words
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.first().copied().unwrap_or("it says nothing");
    if !is_forbidden {
        return format!("perf came to nothing: {}", lines.join("\n"));
    }
    let level = paranoid.map_or("not there".to_owned(), |level| level.trim().to_owned());
    format!(
        "perf isn't allowed to take samples here: {first}\n{PARANOID} is {level}; as root, 'sysctl kernel.perf_event_paranoid=1' allows it (in a container also the capability CAP_PERFMON)"
    )
}

impl Recording {
    /// The stacks of a process.
    pub(super) fn stacks_of(&self, pid: u32) -> Result<Stacks, Error> {
        let mut command = Command::new("perf");
        // Names come as they are in the program: what they stand for is worked out once for each.
        command
            .args(["script", "--no-inline", "--no-demangle", "--pid"])
            .arg(pid.to_string())
            .arg("-i")
            .arg(self.folder.path().join("perf.data"));
        let output = ran(command)?;
        let mut options = Options::default();
        options.annotate_kernel = true;
        let mut folded = Vec::new();
        if !output.stdout.is_empty() {
            let mut folder = Folder::from(options);
            folder.collapse(&output.stdout[..], &mut folded)?;
        }
        Ok(Stacks::parse(&String::from_utf8_lossy(&folded)))
    }
}

#[cfg(test)]
mod tests {
    use super::{has_lost_a_thread, refusal};

    #[test]
    fn a_refusal_says_what_helps() {
        let told = refusal(
            "Error:\nAccess to performance monitoring and observability operations is limited.\nNo permission to enable cpu-clock event.\n",
            Some("4\n"),
        );
        assert!(
            told.contains("perf_event_paranoid is 4") && told.contains("CAP_PERFMON"),
            "{told}"
        );
        assert!(!has_lost_a_thread(&told));
        let told = refusal("WARNING: Ignored open failure for pid 3640\n", None);
        assert!(has_lost_a_thread(&told), "{told}");
        let told = refusal("event syntax error\n", None);
        assert_eq!(told, "perf came to nothing: event syntax error");
    }
}
