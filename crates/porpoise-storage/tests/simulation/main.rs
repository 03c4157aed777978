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

#[test]
fn faulty() {
    many(100_000, |seed| {
        let mut plan = Plan::new(seed, 300 + seed % 7 * 300);
        plan.crashes = 100;
        plan.faults = Faults {
            read: 50,
            write: 300,
            sync: 500,
            open: 1000,
            name: 1000,
            short: 500,
            full: 300,
            misdirected: 0,
            rot: 0,
        };
        plan.is_small = true;
        plan
    });
}
