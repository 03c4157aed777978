//! The CPUs of a machine: which are threads of one core, and which share their last cache.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

use crate::Error;
use crate::resources::parse_cpus;

/// The CPUs, in groups that share a cache. Where caches are not told of, a group is a NUMA node or a
/// socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Groups of cores; a core is the CPUs that are its threads.
    pub groups: Vec<Vec<Vec<usize>>>,
}

impl Topology {
    /// Of this machine.
    pub fn of_this_machine() -> Result<Self, Error> {
        Self::read(Path::new("/sys/devices/system"))
    }

    /// Of a folder laid out as Linux's `/sys/devices/system`.
    pub fn read(system: &Path) -> Result<Self, Error> {
        let failed = |what: String| Error::Plan(format!("this machine's CPUs: {what}"));
        let online =
            read_to_string(system.join("cpu/online")).map_err(|e| failed(e.to_string()))?;
        let online = parse_cpus(&online).map_err(failed)?;
        let mut groups: BTreeMap<Vec<usize>, BTreeMap<Vec<usize>, ()>> = BTreeMap::new();
        for cpu in &online {
            let folder = system.join(format!("cpu/cpu{cpu}"));
            let list = |name: &str| -> Option<Vec<usize>> {
                let cpus = parse_cpus(&read_to_string(folder.join(name)).ok()?).ok()?;
                Some(
                    cpus.into_iter()
                        .filter(|cpu| online.contains(cpu))
                        .collect(),
                )
            };
            let core = list("topology/thread_siblings_list").unwrap_or_else(|| vec![*cpu]);
            let group = last_cache(&folder).and_then(|name| list(&name));
            let group = group.or_else(|| list("topology/core_siblings_list"));
            let group = group.unwrap_or_else(|| online.clone());
            groups.entry(group).or_default().insert(core, ());
        }
        let groups = groups
            .into_values()
            .map(|cores| cores.into_keys().collect());
        Ok(Self {
            groups: groups.collect(),
        })
    }

    /// All CPUs.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> = self.groups.iter().flatten().flatten().copied().collect();
        cpus.sort_unstable();
        cpus
    }
}

/// The file that tells who shares the cache of the highest level.
fn last_cache(cpu: &Path) -> Option<String> {
    let caches = std::fs::read_dir(cpu.join("cache")).ok()?.flatten();
    let levels = caches.filter_map(|entry| {
        let level: u32 = read_to_string(entry.path().join("level"))
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Some((level, format!("cache/{name}/shared_cpu_list")))
    });
    levels.max().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_caches_are_read_from_the_kernels_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("cpu/online", "0-7\n");
        for cpu in 0..8 {
            let sibling = (cpu + 4) % 8;
            let (low, high) = (cpu.min(sibling), cpu.max(sibling));
            write(
                &format!("cpu/cpu{cpu}/topology/thread_siblings_list"),
                &format!("{low},{high}\n"),
            );
            write(&format!("cpu/cpu{cpu}/cache/index0/level"), "1\n");
            write(
                &format!("cpu/cpu{cpu}/cache/index0/shared_cpu_list"),
                &format!("{cpu}\n"),
            );
            write(&format!("cpu/cpu{cpu}/cache/index3/level"), "3\n");
            let shared = if cpu % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
            write(
                &format!("cpu/cpu{cpu}/cache/index3/shared_cpu_list"),
                shared,
            );
        }
        let topology = Topology::read(folder.path()).unwrap();
        assert_eq!(
            topology.groups,
            [vec![vec![0, 4], vec![1, 5]], vec![vec![2, 6], vec![3, 7]]]
        );
        assert_eq!(topology.cpus(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn this_machine_has_cpus() {
        let topology = Topology::of_this_machine().unwrap();
        assert_eq!(topology.cpus(), crate::machine::online_cpus());
    }
}
