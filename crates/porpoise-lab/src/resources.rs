//! What processes use of the machine, as Linux tells it under `/proc`; elsewhere nothing is told.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;

/// Processor time, context switches and memory of a process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// In the program.
    pub user: Duration,
    /// In the kernel for it.
    pub system: Duration,
    /// Times that a thread of it slept, to wait for something.
    pub voluntary_switches: u64,
    /// Times that a thread had to give its CPU to another.
    pub involuntary_switches: u64,
    /// Memory that is resident now.
    pub resident_bytes: u64,
}

impl Usage {
    /// Of a process, unless it is gone. Switches are those of threads that live.
    pub fn of(pid: u32) -> Option<Self> {
        let folder = Path::new("/proc").join(pid.to_string());
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // Behind the name, which may hold anything: state is the first, utime the 12th.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut times = fields.split_whitespace().skip(11);
        let ticks = rustix::param::clock_ticks_per_second();
        let mut time = || -> Option<Duration> {
            let spent: u64 = times.next()?.parse().ok()?;
            Some(Duration::from_secs_f64(spent as f64 / ticks as f64))
        };
        let mut usage = Self {
            user: time()?,
            system: time()?,
            ..Self::default()
        };
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        usage.resident_bytes = field(&status, "VmRSS").unwrap_or(0) * 1024;
        for thread in std::fs::read_dir(folder.join("task")).ok()?.flatten() {
            // A thread may end meanwhile.
            if let Ok(status) = std::fs::read_to_string(thread.path().join("status")) {
                usage.voluntary_switches += field(&status, "voluntary_ctxt_switches").unwrap_or(0);
                usage.involuntary_switches +=
                    field(&status, "nonvoluntary_ctxt_switches").unwrap_or(0);
            }
        }
        Some(usage)
    }

    /// What was used since `earlier`; memory is what there is now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            resident_bytes: self.resident_bytes,
        }
    }
}

/// The memory of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Resident now.
    pub resident_bytes: u64,
    /// The most that was resident at any time.
    pub peak_bytes: u64,
}

impl Memory {
    /// Of a process, unless it is gone.
    pub fn of(pid: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Some(Self {
            resident_bytes: field(&status, "VmRSS")? * 1024,
            peak_bytes: field(&status, "VmHWM")? * 1024,
        })
    }

    /// Has the peak of a process be counted from what is resident now.
    ///
    /// # Errors
    ///
    /// A kernel that doesn't let it.
    pub fn forget_peak(pid: u32) -> io::Result<()> {
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5")
    }

    /// What the machine has.
    pub fn of_machine() -> Option<u64> {
        let all = std::fs::read_to_string("/proc/meminfo").ok()?;
        Some(field(&all, "MemTotal")? * 1024)
    }
}

/// Of a line `name:  12 kB`.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Has the calling thread, and those that it starts, run on these CPUs only.
pub fn pin_this_thread(cpus: &[usize]) -> io::Result<()> {
    pin(None, cpus)
}

/// Has all threads of a process, and those that it starts, run on these CPUs only.
pub fn pin_process(pid: u32, cpus: &[usize]) -> io::Result<()> {
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        let id = thread.file_name().to_string_lossy().parse().ok();
        if let Some(id) = id.and_then(Pid::from_raw) {
            match pin(Some(id), cpus) {
                // It has ended meanwhile.
                Err(error)
                    if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
                pinned => pinned?,
            }
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn pin(thread: Option<Pid>, cpus: &[usize]) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::other(format!("there is no CPU {cpu}")));
        }
        set.set(cpu);
    }
    sched_setaffinity(thread, &set)
        .map_err(|error| io::Error::other(format!("can't run on CPUs {cpus:?}: {error}")))
}

#[cfg(not(target_os = "linux"))]
fn pin(_: Option<Pid>, _: &[usize]) -> io::Result<()> {
    Err(io::Error::other(
        "only Linux says which CPUs a thread runs on",
    ))
}

/// The CPUs of a list as the kernel writes them: `0-3,8`.
pub fn parse_cpus(list: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("'{list}' is no list of CPUs, such as 0-3,8");
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| wrong())?;
        let last: usize = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last >= 4096 {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// How many threads wanted a CPU in the last minute, on average.
pub fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_uses_grows() {
        let now = || Usage::of(std::process::id()).unwrap();
        let before = now();
        let began = std::time::Instant::now();
        let cpu_time = |used: &Usage| used.user + used.system;
        // On a busy machine it may get a core late.
        while cpu_time(&now().since(&before)) < Duration::from_millis(20)
            && began.elapsed() < Duration::from_secs(30)
        {
            for _ in 0..100_000 {
                std::hint::black_box(began);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
        let used = now().since(&before);
        assert!(cpu_time(&used) >= Duration::from_millis(20), "{used:?}");
        assert!(
            used.voluntary_switches > 0 && used.resident_bytes > 1 << 20,
            "{used:?}"
        );
        assert_eq!(Usage::of(u32::MAX), None);
    }

    #[test]
    fn a_peak_is_counted_anew() {
        // Its own memory, so that no other test takes any of it.
        let mut child = std::process::Command::new("sh")
            .args([
                "-c",
                "x=$(head -c 20000000 /dev/zero | tr '\\0' x); x=; echo; read y",
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Its line comes once it has had the most.
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let before = Memory::of(child.id()).unwrap();
        let forgotten = Memory::forget_peak(child.id());
        let after = Memory::of(child.id()).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(before.peak_bytes > 20_000_000, "{before:?}");
        // Not every machine lets it.
        if forgotten.is_ok() {
            assert!(after.peak_bytes < before.peak_bytes, "{before:?} {after:?}");
            assert!(after.peak_bytes >= after.resident_bytes, "{after:?}");
        }
        assert!(Memory::forget_peak(u32::MAX).is_err());
    }

    #[test]
    fn lists_of_cpus_are_the_kernels() {
        assert_eq!(parse_cpus("0-2,7").unwrap(), [0, 1, 2, 7]);
        assert_eq!(parse_cpus("1").unwrap(), [1]);
        for wrong in ["", "3-1", "a", "1,,2", "0-99999999"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_thread_is_pinned_to_a_cpu_and_refused_one_that_is_missing() {
        let pinned = std::thread::spawn(|| {
            pin_this_thread(&[0]).unwrap();
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = pinned.join().unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        assert!(pin_this_thread(&[1023]).is_err());
        assert!(pin_this_thread(&[5000]).is_err());
    }
}
