//! The machine that an experiment runs on, in words: what somebody needs to judge its figures.

use std::fs::{self, File, read_to_string};
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// A name and a value.
pub type Fact = (String, String);

/// A file as a fact of this name: its own name, how long it is, and its SHA-256, which tells one build
/// from another. Not its folder: reports are for others. `None` if it can't be read, as the program of
/// another user's process can't.
pub fn fact_of_file(name: &str, path: &Path) -> Option<Fact> {
    let place = fs::canonicalize(path).ok()?;
    let file = place.file_name()?.to_string_lossy();
    let mut digest = Sha256::new();
    let len = io::copy(&mut File::open(path).ok()?, &mut digest).ok()?;
    let value = format!("{file}, {len} bytes, SHA-256 {:x}", digest.finalize());
    Some((name.to_owned(), value))
}

/// CPU, memory, kernel, mitigations, frequency governor, load. What the system doesn't tell is left
/// out.
pub fn describe() -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name.to_owned(), value));
        }
    };
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    add("cpu", line_of(&cpuinfo, "model name"));
    add(
        "cpus",
        std::thread::available_parallelism()
            .ok()
            .map(|n| n.to_string()),
    );
    add(
        "threads a core",
        sysfs("devices/system/cpu/smt/active").map(|smt| match &*smt {
            "1" => "2 (SMT on)".to_owned(),
            _ => "1 (SMT off or none)".to_owned(),
        }),
    );
    let is_guest = cpuinfo.lines().any(|line| {
        line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
    });
    add(
        "virtual machine",
        Some(if is_guest { "yes" } else { "no" }.to_owned()),
    );
    for (name, path) in [
        (
            "frequency governor",
            "devices/system/cpu/cpu0/cpufreq/scaling_governor",
        ),
        ("turbo off", "devices/system/cpu/intel_pstate/no_turbo"),
        (
            "transparent huge pages",
            "kernel/mm/transparent_hugepage/enabled",
        ),
        (
            "clock source",
            "devices/system/clocksource/clocksource0/current_clocksource",
        ),
    ] {
        add(name, sysfs(path));
    }
    let meminfo = read_to_string("/proc/meminfo").unwrap_or_default();
    add("memory", line_of(&meminfo, "MemTotal"));
    add(
        "kernel",
        read_to_string("/proc/sys/kernel/osrelease")
            .ok()
            .map(trimmed),
    );
    let release = read_to_string("/etc/os-release").unwrap_or_default();
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    add(
        "system",
        system.map(|name| name.trim_matches('"').to_owned()),
    );
    add(
        "autogroup",
        read_to_string("/proc/sys/kernel/sched_autogroup_enabled")
            .ok()
            .map(trimmed),
    );
    add("mitigations", mitigations());
    add(
        "load at start",
        read_to_string("/proc/loadavg").ok().map(trimmed),
    );
    facts
}

fn trimmed(text: String) -> String {
    text.trim().to_owned()
}

fn sysfs(path: &str) -> Option<String> {
    read_to_string(Path::new("/sys").join(path))
        .ok()
        .map(trimmed)
}

/// Of a line `name : value`.
fn line_of(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The CPUs that are there, by number.
pub fn online_cpus() -> Vec<usize> {
    let online = sysfs("devices/system/cpu/online");
    let online = online.and_then(|list| crate::resources::parse_cpus(&list).ok());
    online.unwrap_or_else(|| {
        (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
    })
}

/// What the kernel does about the CPU's vulnerabilities.
fn mitigations() -> Option<String> {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities").ok()?;
    let mut all: Vec<String> = folder
        .flatten()
        .filter_map(|entry| {
            let what = trimmed(read_to_string(entry.path()).ok()?);
            let name = entry.file_name().to_string_lossy().into_owned();
            (what != "Not affected").then(|| format!("{name}: {what}"))
        })
        .collect();
    all.sort();
    Some(all.join("; "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_has_a_kernel_and_processors() {
        let facts = super::describe();
        for name in ["kernel", "cpus", "memory"] {
            assert!(facts.iter().any(|(known, _)| known == name), "{facts:?}");
        }
    }
}
