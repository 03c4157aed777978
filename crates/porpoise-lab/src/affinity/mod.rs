//! Which CPUs server and clients should have: found by experiment.
//!
//! [`placements`] are the partitions of a machine's cores that are worth a try: in each group of
//! cores that share a cache, so many cores for the server, so many for clients, so many whose
//! threads are split between the two, or that both may use; in all groups alike, or with groups for
//! the one and for the other. [`search`] measures them by successive halving (Jamieson and
//! Talwalkar, 2016): all of them shortly, the better half twice as long, and so on. What is left is
//! changed core by core as long as that helps.
//!
//! ```text
//!   282 placements, 1 run each ─► 141, 2 more ─► 71, 4 more ─► … ─► the best ─► its neighbours ─► …
//! ```

mod topology;

use std::collections::BTreeSet;

use fastrand::Rng;

use crate::Affinity;
use crate::statistics::Summary;

pub use topology::Topology;

/// Placements that a search ends with.
const FINALISTS: usize = 4;
/// Runs that a variation is told from.
const RUNS_MIN: usize = 3;
/// Runs that a finalist has at least.
const FINAL_RUNS: usize = 12;
/// Times that the best one is changed, and no more, whatever noise there is.
const CHANGES_MAX: usize = 6;
/// Runs of one placement in one round, at most.
const ROUND_RUNS_MAX: usize = 8;

/// The CPUs of the server and of clients; some may be both's, some nobody's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// The server's.
    pub server: BTreeSet<usize>,
    /// The clients'.
    pub clients: BTreeSet<usize>,
}

impl Placement {
    fn is_possible(&self) -> bool {
        !self.server.is_empty() && !self.clients.is_empty()
    }

    /// As an experiment has it.
    pub fn affinity(&self) -> Affinity {
        Affinity {
            name: format!(
                "server {}, clients {}",
                list(&self.server),
                list(&self.clients)
            ),
            server: self.server.iter().copied().collect(),
            clients: self.clients.iter().copied().collect(),
        }
    }
}

/// CPUs as the kernel lists them: `0-3,8`.
pub fn list(cpus: &BTreeSet<usize>) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let parts = parts.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    parts.collect::<Vec<_>>().join(",")
}

/// Whose a core is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Nobodys,
    Servers,
    Clients,
    /// The first thread is the server's, the others are the clients'.
    Split,
    Both,
}

const ROLES: [Role; 5] = [
    Role::Nobodys,
    Role::Servers,
    Role::Clients,
    Role::Split,
    Role::Both,
];

impl Role {
    /// Whose the core's thread of this number is: the server's, and the clients'.
    fn of_thread(self, thread: usize) -> (bool, bool) {
        match self {
            Role::Nobodys => (false, false),
            Role::Servers => (true, false),
            Role::Clients => (false, true),
            Role::Split => (thread == 0, thread > 0),
            Role::Both => (true, true),
        }
    }
}

fn place(topology: &Topology, role: impl Fn(usize, usize) -> Role) -> Placement {
    let mut placement = Placement {
        server: BTreeSet::new(),
        clients: BTreeSet::new(),
    };
    for (group, cores) in topology.groups.iter().enumerate() {
        for (at, core) in cores.iter().enumerate() {
            set(&mut placement, core, role(group, at));
        }
    }
    placement
}

fn set(placement: &mut Placement, core: &[usize], role: Role) {
    for (thread, cpu) in core.iter().enumerate() {
        let (server, clients) = role.of_thread(thread);
        for (is_in, cpus) in [
            (server, &mut placement.server),
            (clients, &mut placement.clients),
        ] {
            if is_in {
                cpus.insert(*cpu);
            } else {
                cpus.remove(cpu);
            }
        }
    }
}

/// The partitions that are worth a try. Cores of one group are taken to be alike, and groups as
/// well.
pub fn placements(topology: &Topology) -> Vec<Placement> {
    let cores = topology.groups.iter().map(Vec::len).max().unwrap_or(0);
    let groups = topology.groups.len();
    let mut all = BTreeSet::new();
    // As the system likes comes first, whatever else there is.
    all.insert(place(topology, |_, _| Role::Both));
    for server in 0..=cores {
        for clients in 0..=cores - server {
            for third in 0..=cores - server - clients {
                for third_role in [Role::Split, Role::Both] {
                    let role = |at: usize| match at {
                        at if at < server => Role::Servers,
                        at if at < server + clients => Role::Clients,
                        at if at < server + clients + third => third_role,
                        _ => Role::Nobodys,
                    };
                    for used in 1..=groups {
                        all.insert(place(topology, |group, at| match group < used {
                            true => role(at),
                            false => Role::Nobodys,
                        }));
                    }
                }
            }
        }
    }
    // Whole groups for the one and for the other.
    for server in 1..groups {
        for clients in 1..=groups - server {
            all.insert(place(topology, |group, _| match group {
                group if group < server => Role::Servers,
                group if group < server + clients => Role::Clients,
                _ => Role::Nobodys,
            }));
        }
    }
    all.into_iter().filter(Placement::is_possible).collect()
}

/// A placement with one core, or two, used otherwise.
fn neighbours(topology: &Topology, placement: &Placement) -> Vec<Placement> {
    let mut all = BTreeSet::new();
    let cores: Vec<&Vec<usize>> = topology.groups.iter().flatten().collect();
    for core in &cores {
        for role in ROLES {
            let mut changed = placement.clone();
            set(&mut changed, core, role);
            all.insert(changed);
        }
    }
    all.remove(placement);
    all.into_iter().filter(Placement::is_possible).collect()
}

/// A placement with what was measured.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Where server and clients ran.
    pub placement: Placement,
    /// Throughput of each run.
    pub runs: Vec<f64>,
}

impl Tried {
    /// Mean and spread of its runs.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.runs).unwrap_or_default()
    }

    /// Better is higher: first those within the bound of variation, then throughput.
    fn rank(&self, variation_max: f64) -> (bool, f64) {
        let summary = self.summary();
        let is_steady = summary.count < RUNS_MIN || summary.variation() <= variation_max;
        (is_steady, summary.mean)
    }
}

fn sort(tried: &mut [Tried], variation_max: f64) {
    tried.sort_by(|one, other| {
        let (one, other) = (one.rank(variation_max), other.rank(variation_max));
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
}

/// Measures placements until the best is known. `measure` gives the throughput of one run;
/// `variation_max` is the standard deviation by the mean that the best may have. Returned are those
/// that were measured longest, the best first; none within the bound: the fastest.
pub fn search<E>(
    topology: &Topology,
    variation_max: f64,
    seed: u64,
    mut measure: impl FnMut(&Placement, usize) -> Result<f64, E>,
) -> Result<Vec<Tried>, E> {
    let mut halving = Halving {
        variation_max,
        random: Rng::with_seed(seed),
        measure: &mut measure,
    };
    let untried = |placement| Tried {
        placement,
        runs: Vec::new(),
    };
    let all = placements(topology).into_iter().map(untried).collect();
    let mut best = halving.run(all)?;
    for _ in 0..CHANGES_MAX {
        let Some(first) = best.first().map(|tried| tried.placement.clone()) else {
            break;
        };
        let known = best
            .iter()
            .map(|tried| tried.placement.clone())
            .collect::<BTreeSet<_>>();
        let others = neighbours(topology, &first).into_iter();
        let mut field: Vec<Tried> = others
            .filter(|placement| !known.contains(placement))
            .map(untried)
            .collect();
        field.append(&mut best);
        best = halving.run(field)?;
        if best.first().is_some_and(|tried| tried.placement == first) {
            break;
        }
    }
    Ok(best)
}

struct Halving<'m, M> {
    variation_max: f64,
    random: Rng,
    measure: &'m mut M,
}

impl<E, M: FnMut(&Placement, usize) -> Result<f64, E>> Halving<'_, M> {
    /// The better half again and again, with twice the runs, until few are left.
    fn run(&mut self, mut field: Vec<Tried>) -> Result<Vec<Tried>, E> {
        let mut runs = 1;
        while field.len() > FINALISTS {
            self.add_runs(&mut field, |_| runs)?;
            sort(&mut field, self.variation_max);
            field.truncate(field.len().div_ceil(2).max(FINALISTS));
            runs = (runs * 2).min(ROUND_RUNS_MAX);
        }
        self.add_runs(&mut field, |tried| {
            FINAL_RUNS.saturating_sub(tried.runs.len())
        })?;
        sort(&mut field, self.variation_max);
        Ok(field)
    }

    /// In an order of their own in each turn, so that drift hits all alike.
    fn add_runs(&mut self, field: &mut [Tried], runs: impl Fn(&Tried) -> usize) -> Result<(), E> {
        let mut left: Vec<usize> = field.iter().map(runs).collect();
        let mut order: Vec<usize> = (0..field.len()).collect();
        while left.iter().any(|left| *left > 0) {
            self.random.shuffle(&mut order);
            for &at in &order {
                if left[at] > 0 {
                    left[at] -= 1;
                    let total = field.len();
                    let run = (self.measure)(&field[at].placement, total)?;
                    field[at].runs.push(run);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Two caches with six cores of two threads each.
    fn large() -> Topology {
        let core = |number: usize| vec![number, number + 12];
        let group = |first: usize| (first..first + 6).map(core).collect();
        Topology {
            groups: vec![group(0), group(6)],
        }
    }

    /// What a core gives to the server and to clients, by the roles of its threads: a second thread
    /// adds a quarter, or less beside a stranger.
    fn given(server: usize, clients: usize, both: usize) -> (f64, f64) {
        match (server, clients, both) {
            (0, 0, 0) => (0.0, 0.0),
            (1, 0, 0) => (1.0, 0.0),
            (0, 1, 0) => (0.0, 1.0),
            (2, 0, 0) => (1.25, 0.0),
            (0, 2, 0) => (0.0, 1.25),
            (1, 1, 0) => (0.58, 0.58),
            // They push each other aside.
            _ => (0.5, 0.5),
        }
    }

    /// Transactions a second of the simulated machine, without noise: what the slower of the two
    /// sides can do, less for what goes from cache to cache.
    fn throughput(topology: &Topology, placement: &Placement) -> f64 {
        let (mut server, mut clients, mut across) = (0.0, 0.0, 0.0);
        let mut sides = Vec::new();
        for cores in &topology.groups {
            let (mut own_server, mut own_clients) = (0.0, 0.0);
            for core in cores {
                let is_in = |cpus: &BTreeSet<usize>, cpu| usize::from(cpus.contains(cpu));
                let (mut s, mut c, mut b) = (0, 0, 0);
                for cpu in core {
                    let (one, other) = (
                        is_in(&placement.server, cpu),
                        is_in(&placement.clients, cpu),
                    );
                    b += one & other;
                    s += one & !other;
                    c += other & !one;
                }
                let (one, other) = given(s, c, b);
                own_server += one;
                own_clients += other;
            }
            server += own_server;
            clients += own_clients;
            sides.push((own_server, own_clients));
        }
        if server == 0.0 || clients == 0.0 {
            return 0.0;
        }
        // The share of messages whose ends are in different groups.
        for (own_server, own_clients) in sides {
            across += own_server / server * (1.0 - own_clients / clients);
        }
        let capacity = (server * 10_000.0).min(clients * 17_000.0);
        // A server in two groups has its own locks to carry over.
        capacity * (1.0 - 0.35 * across)
    }

    /// The best of all ways to give each core a role, alike cores being alike: known without a search.
    fn optimum(topology: &Topology) -> f64 {
        let cores = topology.groups[0].len();
        let mut best: f64 = 0.0;
        let mut counts = Vec::new();
        for a in 0..=cores {
            for b in 0..=cores - a {
                for c in 0..=cores - a - b {
                    for d in 0..=cores - a - b - c {
                        counts.push([a, b, c, d]);
                    }
                }
            }
        }
        let role = |counts: &[usize; 4], at: usize| {
            let mut end = 0;
            for (count, role) in
                counts
                    .iter()
                    .zip([Role::Servers, Role::Clients, Role::Split, Role::Both])
            {
                end += count;
                if at < end {
                    return role;
                }
            }
            Role::Nobodys
        };
        for one in &counts {
            for other in &counts {
                let placement = place(topology, |group, at| {
                    role(if group == 0 { one } else { other }, at)
                });
                best = best.max(throughput(topology, &placement));
            }
        }
        best
    }

    #[test]
    fn the_best_placement_of_24_cpus_is_found_under_noise() {
        let topology = large();
        assert_eq!(topology.cpus().len(), 24);
        let optimum = optimum(&topology);
        let free = throughput(&topology, &place(&topology, |_, _| Role::Both));
        assert!(
            free < 0.75 * optimum,
            "there is something to find: {free} {optimum}"
        );
        for seed in 0..8 {
            let mut noise = Rng::with_seed(seed);
            let mut measured = 0;
            let tried = search(&topology, 0.1, seed, |placement, _| {
                measured += 1;
                let normal = (0..12).map(|_| noise.f64()).sum::<f64>() - 6.0;
                Ok::<_, Infallible>(throughput(&topology, placement) * (1.0 + 0.03 * normal))
            });
            let best = &tried.unwrap()[0];
            let found = throughput(&topology, &best.placement);
            assert!(
                found > 0.98 * optimum,
                "{seed}: {found} of {optimum}, {best:?}"
            );
            assert!(measured < 6000, "{seed}: {measured} runs");
        }
    }

    #[test]
    fn a_placement_that_varies_too_much_is_not_chosen() {
        let topology = Topology {
            groups: vec![vec![vec![0], vec![1]]],
        };
        let apart = place(&topology, |_, at| [Role::Servers, Role::Clients][at]);
        let mut turn = 0;
        let mut measure = |placement: &Placement, _: usize| {
            turn += 1;
            // Everything but one is faster, and erratic.
            Ok::<_, Infallible>(match *placement == apart {
                true => 100.0,
                false => [80.0, 160.0, 300.0][turn % 3],
            })
        };
        let steady = search(&topology, 0.05, 1, &mut measure).unwrap();
        assert_eq!(steady[0].placement, apart);
        let fastest = search(&topology, 10.0, 1, &mut measure).unwrap();
        assert_ne!(fastest[0].placement, apart);
    }

    #[test]
    fn placements_of_two_cpus_are_few_and_of_one_there_is_one() {
        let two = Topology {
            groups: vec![vec![vec![0], vec![1]]],
        };
        let names: Vec<String> = placements(&two)
            .iter()
            .map(|one| one.affinity().name)
            .collect();
        assert!(
            names.contains(&"server 0, clients 1".to_owned()),
            "{names:?}"
        );
        assert!(
            names.contains(&"server 0-1, clients 0-1".to_owned()),
            "{names:?}"
        );
        assert!(names.len() <= 6, "{names:?}");
        let one = Topology {
            groups: vec![vec![vec![0]]],
        };
        assert_eq!(placements(&one).len(), 1);
    }

    #[test]
    fn cpus_are_listed_as_the_kernel_does() {
        assert_eq!(list(&BTreeSet::from([0, 1, 2, 5, 7, 8])), "0-2,5,7-8");
    }
}
