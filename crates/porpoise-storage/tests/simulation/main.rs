//! Storage on a disk that is made up: power cuts, faults, crashes, thousands a minute.
//!
//! One seed determines everything that happens. What runs here is short; a night's work is
//!
//! ```sh
//! PORPOISE_SIM_OPERATIONS=100000000 cargo test --release -p porpoise-storage --test simulation -- --nocapture
//! PORPOISE_SIM_SEED=4711 cargo test -p porpoise-storage --test simulation -- --nocapture   # that one again
//! ```

mod disk;
mod model;
mod run;

use disk::{Faults, Lies, SimDisk};
use run::{Counts, Plan, Run};

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn many(steps: u64, make: impl Fn(u64) -> Plan) -> Counts {
    let mut counts = Counts::default();
    let start = std::time::Instant::now();
    if let Some(seed) = env("PORPOISE_SIM_SEED") {
        counts.add(Run::carry_out(make(seed)));
        return counts;
    }
    let mut seed = 0;
    while counts.steps < env("PORPOISE_SIM_OPERATIONS").unwrap_or(steps) {
        counts.add(Run::carry_out(make(seed)));
        seed += 1;
    }
    eprintln!("{seed} seeds in {:?}: {counts:?}", start.elapsed());
    counts
}

#[test]
fn smoke() {
    many(20_000, |seed| {
        let mut plan = Plan::new(seed, 300 + seed % 7 * 300);
        plan.looks = 300;
        plan.crashes = 100;
        plan
    });
}

/// Some seeds get one fault often, some all of them, some none.
fn faults_of(seed: u64) -> Faults {
    let all = Faults {
        read: 200,
        write: 1_000,
        sync: 2_000,
        open: 5_000,
        name: 3_000,
        short: 3_000,
        full: 1_000,
        ..Faults::default()
    };
    let none = Faults::default();
    match seed % 8 {
        0 => Faults {
            read: 1_000,
            ..none
        },
        1 => Faults {
            write: 3_000,
            ..none
        },
        2 => Faults {
            sync: 5_000,
            ..none
        },
        3 => Faults {
            open: 20_000,
            ..none
        },
        4 => Faults {
            name: 10_000,
            ..none
        },
        5 => Faults {
            full: 5_000,
            ..none
        },
        _ => all,
    }
}

#[test]
fn faulty() {
    many(100_000, |seed| {
        let mut plan = Plan::new(seed, 300 + seed % 7 * 300);
        plan.crashes = 150;
        plan.looks = if seed % 4 == 0 { 50 } else { 2 };
        plan.faults = faults_of(seed);
        plan.is_small = seed % 3 == 0;
        plan
    });
}
