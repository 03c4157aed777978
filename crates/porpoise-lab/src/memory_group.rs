//! A control group of Linux that limits the memory of a server that is measured, its pages of files
//! included.
//!
//! ```text
//!   version 1   a child of this process' own group of the memory controller
//!   version 2   a child of the nearest group around this process whose children have a limit
//! ```
//!
//! The server's process joins before it becomes the server, so that all of its memory counts. The
//! group goes when this is dropped; its processes must have ended.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

const MOUNT: &str = "/sys/fs/cgroup";
/// The process of a shell joins, and becomes the program.
const JOIN: &str = r#"echo $$ > "$0" && exec "$@""#;
/// For ended processes to have left.
const LEAVING_ATTEMPTS: u32 = 50;

#[derive(Debug)]
pub(crate) struct MemoryGroup {
    folder: PathBuf,
    /// The file that tells how often the kernel ended a process of it for its memory.
    kills: &'static str,
}

/// A version's files.
struct Version {
    limit: &'static str,
    /// What says that there is no swap beyond the limit.
    no_swap: (&'static str, Option<u64>),
    kills: &'static str,
}

const FIRST: Version = Version {
    limit: "memory.limit_in_bytes",
    no_swap: ("memory.memsw.limit_in_bytes", None),
    kills: "memory.oom_control",
};
const SECOND: Version = Version {
    limit: "memory.max",
    no_swap: ("memory.swap.max", Some(0)),
    kills: "memory.events",
};

impl MemoryGroup {
    /// A group whose processes have so many bytes together.
    ///
    /// # Errors
    ///
    /// Where there are no control groups, or this process may make none.
    pub(crate) fn make(bytes: u64) -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "porpoise-bench-{}-{}",
            std::process::id(),
            MADE.fetch_add(1, Relaxed)
        );
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let (version, parents) = parents(&own);
        let mut why = io::Error::other("there is no control group of memory around this process");
        for parent in parents {
            match Self::make_in(&parent.join(&name), bytes, &version) {
                Ok(group) => return Ok(group),
                Err(error) => why = io::Error::other(format!("{}: {error}", parent.display())),
            }
        }
        Err(why)
    }

    fn make_in(folder: &Path, bytes: u64, version: &Version) -> io::Result<Self> {
        std::fs::create_dir(folder)?;
        let group = Self {
            folder: folder.to_owned(),
            kills: version.kills,
        };
        // Unless the kernel put it there, there is no limit to be set.
        let limit = folder.join(version.limit);
        if !limit.exists() {
            return Err(io::Error::other("its groups have no limit of memory"));
        }
        std::fs::write(limit, bytes.to_string())?;
        // Kernels without swap haven't got this.
        let (file, swap) = version.no_swap;
        let _ = std::fs::write(folder.join(file), swap.unwrap_or(bytes).to_string());
        Ok(group)
    }

    /// A program that will run in it.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", JOIN])
            .arg(self.folder.join("cgroup.procs"))
            .arg(program);
        command
    }

    /// How many of its processes the kernel ended because memory was out.
    pub(crate) fn kills(&self) -> u64 {
        let told = std::fs::read_to_string(self.folder.join(self.kills)).unwrap_or_default();
        let count = told.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        for _ in 0..LEAVING_ATTEMPTS {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A program, in a group if there is one.
pub(crate) fn command(group: Option<&MemoryGroup>, program: &Path) -> Command {
    match group {
        Some(group) => group.command(program),
        None => Command::new(program),
    }
}

/// The groups that one could be made in, the best first, by the lines of `/proc/self/cgroup`.
fn parents(own: &str) -> (Version, Vec<PathBuf>) {
    let mut groups = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?.trim_start_matches('/')))
    });
    let memory = groups
        .clone()
        .find(|(controllers, _)| controllers.split(',').any(|one| one == "memory"));
    if let Some((_, path)) = memory {
        return (FIRST, vec![Path::new(MOUNT).join("memory").join(path)]);
    }
    let Some((_, path)) = groups.find(|(controllers, _)| controllers.is_empty()) else {
        return (SECOND, Vec::new());
    };
    let around = Path::new(path).ancestors();
    let around = around.map(|group| Path::new(MOUNT).join(group));
    (SECOND, around.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_made_in_the_own_one_or_around_it() {
        let first = "5:cpu:/a\n4:memory,hugetlb:/a/b\n0::/\n";
        let (version, folders) = parents(first);
        assert_eq!(version.limit, "memory.limit_in_bytes");
        assert_eq!(folders, [Path::new("/sys/fs/cgroup/memory/a/b")]);
        let (version, folders) = parents("0::/user.slice/one\n");
        assert_eq!(version.limit, "memory.max");
        let expected = ["/user.slice/one", "/user.slice", "/"].map(|path| format!("{MOUNT}{path}"));
        assert_eq!(folders, expected.map(PathBuf::from));
        assert!(parents("").1.is_empty());
    }

    #[test]
    fn a_program_in_a_group_is_the_process_that_was_started() {
        // A folder of any kind stands for the group.
        let folder = tempfile::tempdir().unwrap();
        let group = MemoryGroup {
            folder: folder.path().to_owned(),
            kills: SECOND.kills,
        };
        let child = group
            .command(Path::new("/bin/sh"))
            .args(["-c", "echo $$"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), pid);
        let joined = std::fs::read_to_string(folder.path().join("cgroup.procs")).unwrap();
        assert_eq!(joined.trim(), pid);
        assert_eq!(group.kills(), 0);
        std::fs::write(
            folder.path().join(SECOND.kills),
            "low 0\noom 3\noom_kill 2\n",
        )
        .unwrap();
        assert_eq!(group.kills(), 2);
    }
}
