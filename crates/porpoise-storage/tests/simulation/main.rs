//! Storage on a simulated disk: power cuts, faults, kills and recovery, by seed.
//!
//! | file | what it is |
//! | --- | --- |
//! | `disk.rs` | a disk that keeps synced and unsynced apart, and fails when told |
//! | `model.rs` | what a store must hold, and may hold after a crash |
//! | `run.rs` | one run: a seed's steps, what happens call them, and the comparison |
//! | `prepared.rs` | the steps of transactions that are prepared, and told to commit or not |
//! | `cuts.rs` | a short history, cut, killed and refused at every single place |
//! | `loads.rs` | the same with a space that is filled beside the log |
//! | `put_in_place.rs` | the same with loaded spaces that take the place of empty ones |
//!
//! What runs here takes about a minute. `PORPOISE_SIM_OPERATIONS` sets how many steps each of the
//! random tests makes, `PORPOISE_SIM_FROM` the seed that they begin with, `PORPOISE_SIM_SEED` has
//! one seed alone repeated. `tests/README.md` has the command for a night.

mod compare;
mod cuts;
mod disk;
mod loads;
mod model;
mod plan;
mod prepared;
mod put_in_place;
mod run;
mod steps;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use disk::{Faults, IgnoredSyncs};
use plan::{Counts, Plan};
use run::Run;

fn number_from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs every so many-th seed until enough steps are made, as `plan` has it for each.
fn run_seeds(name: &str, steps: u64, (first, every): (u64, u64), plan: impl Fn(u64) -> Plan) {
    let steps = number_from_env("PORPOISE_SIM_OPERATIONS").unwrap_or(steps);
    let start = Instant::now();
    let mut counts = Counts::default();
    if let Some(seed) = number_from_env("PORPOISE_SIM_SEED") {
        counts.add(Run::carry_out(plan(seed)));
    } else {
        let mut seed = number_from_env("PORPOISE_SIM_FROM").unwrap_or(0) * every + first;
        while counts.steps < steps {
            counts.add(Run::carry_out(plan(seed)));
            seed += every;
        }
    }
    let rate = counts.steps as f64 / start.elapsed().as_secs_f64();
    println!("{name}: {rate:.0} steps a second, {counts:?}");
}

fn steps_of(seed: u64) -> u64 {
    300 + seed % 7 * 400
}

/// Some seeds get one kind of fault often, some get all kinds.
fn faults_of(seed: u64) -> Faults {
    let none = Faults::default();
    match seed % 9 {
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
        6 => Faults {
            short: 20_000,
            ..none
        },
        _ => Faults {
            read: 200,
            write: 1_000,
            sync: 2_000,
            open: 5_000,
            name: 3_000,
            short: 3_000,
            full: 1_000,
            ..none
        },
    }
}

fn failing_disk_plan(seed: u64) -> Plan {
    Plan {
        crashes: 150,
        crash_checks: if seed.is_multiple_of(8) { 40 } else { 1 },
        faults: faults_of(seed),
        is_small: seed.is_multiple_of(3),
        ..Plan::new(seed, steps_of(seed))
    }
}

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    run_seeds("power cuts", 20_000, (1, 1), |seed| Plan {
        crashes: 100,
        crash_checks: 300,
        ..Plan::new(seed, steps_of(seed))
    });
}

// Two of them, so that two cores are at it.

#[test]
fn half_a_million_steps_on_a_failing_disk_with_odd_seeds() {
    run_seeds("failing disk, odd", 500_000, (1, 2), failing_disk_plan);
}

#[test]
fn half_a_million_steps_on_a_failing_disk_with_even_seeds() {
    run_seeds("failing disk, even", 500_000, (2, 2), failing_disk_plan);
}

/// Writes that land elsewhere, and bits that flip on the disk: what is read may be an error, never
/// a wrong row.
#[test]
fn damage_gives_errors_and_no_wrong_rows() {
    run_seeds("damage", 100_000, (1, 1), |seed| Plan {
        is_damaging: true,
        faults: Faults {
            misdirected: 300,
            rot: 100,
            ..Faults::default()
        },
        ..Plan::new(seed, steps_of(seed))
    });
}

#[test]
fn a_seed_determines_everything() {
    for seed in [7, 8, 24] {
        let (one, other) = (
            Run::carry_out(failing_disk_plan(seed)),
            Run::carry_out(failing_disk_plan(seed)),
        );
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        assert!(one.trace_hash != 0 && one.disk_operations > 100);
    }
}

fn keep_quiet_about_panics_of_this_thread() {
    let (me, print_failure) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != me {
            print_failure(panic);
        }
    }));
}

/// A check on the check: a disk that does nothing when it is to sync must be found out.
#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let ignored_syncs = [
        IgnoredSyncs {
            folder_syncs: true,
            file_syncs: false,
        },
        IgnoredSyncs {
            folder_syncs: false,
            file_syncs: true,
        },
    ];
    keep_quiet_about_panics_of_this_thread();
    let found_out = ignored_syncs.map(|ignored_syncs| {
        (1..40).find(|seed| {
            let plan = Plan {
                crash_checks: 300,
                ignored_syncs,
                is_silent: true,
                ..Plan::new(*seed, 1000)
            };
            catch_unwind(AssertUnwindSafe(|| Run::carry_out(plan))).is_err()
        })
    });
    println!("found out with seeds {found_out:?}");
    assert!(found_out.iter().all(Option::is_some), "{found_out:?}");
}
