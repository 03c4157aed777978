//! The load generator against Porpoise: two threads that have eight clients, over every way in.

#[path = "../../porpoise/tests/common/served.rs"]
#[allow(dead_code)]
mod served;

use std::time::{Duration, Instant};

use porpoise_lab::{BenchPlan, Error, Target, Workload, bench};
use served::{Served, WAYS};

/// A database that serves over every way in, and targets to go there.
fn start() -> (Served, Vec<Target>) {
    let served = Served::with_schema("sb", "sbtest");
    let target = |(name, way)| Target::new(name, &served.url_of_schema("sb", "sbtest", way));
    let targets = WAYS.map(|way| target(way).unwrap());
    (served, targets.into())
}

fn plan(workloads: impl IntoIterator<Item = Workload>) -> BenchPlan {
    BenchPlan {
        workloads: workloads.into_iter().collect(),
        clients: vec![8],
        jobs: Some(2),
        rows: 2_000,
        // Beside other tests a thread may wait for a core for some hundred milliseconds.
        duration: Duration::from_secs(1),
        warm_up: Duration::from_millis(20),
        progress: false,
        ..BenchPlan::default()
    }
}

#[test]
fn two_threads_have_eight_clients_over_every_way_in() {
    let (_served, targets) = start();
    let workloads = Workload::all().filter(|workload| !workload.connects());
    let plan = plan(workloads);
    let report = bench::run(&targets, &plan).unwrap();
    assert_eq!(report.measurements.len(), 4 * plan.workloads.len());
    for measurement in &report.measurements {
        assert_eq!((measurement.clients, measurement.jobs), (8, 2));
        assert!(measurement.latency_p95 > Duration::ZERO, "{measurement:?}");
        let statements = match measurement.workload {
            Workload::ReadOnly => 16.0,
            Workload::ReadWrite => 20.0,
            Workload::WriteOnly => 6.0,
            _ => 1.0,
        };
        let least = match measurement.workload {
            // Two thousand rows each.
            Workload::WholeTable => 1.0,
            _ => 10.0,
        };
        assert!(
            measurement.transactions_per_second > least,
            "{measurement:?}"
        );
        if measurement.errors == 0 {
            let expected = measurement.transactions_per_second * statements;
            let ratio = measurement.queries_per_second / expected;
            assert!((ratio - 1.0).abs() < 1e-6, "{measurement:?}");
        }
    }
}

#[test]
fn clients_of_one_thread_wait_for_each_others_rows_and_begin_again_after_conflicts() {
    let (_served, targets) = start();
    let plan = BenchPlan {
        jobs: Some(1),
        rows: 12,
        ..plan([Workload::WriteOnly])
    };
    let report = bench::run(&targets, &plan).unwrap();
    let conflicts: u64 = report
        .measurements
        .iter()
        .map(|measurement| measurement.errors)
        .sum();
    assert!(conflicts > 0, "{report}");
    for measurement in &report.measurements {
        let least = match measurement.workload {
            // Two thousand rows each.
            Workload::WholeTable => 1.0,
            _ => 10.0,
        };
        assert!(
            measurement.transactions_per_second > least,
            "{measurement:?}"
        );
    }
    // Every transaction put its row back.
    let mut connection = porpoise_client::Connection::connect(&targets[0].options).unwrap();
    let rows = connection
        .rows("SELECT COUNT(*), MIN(id), MAX(id) FROM sbtest1")
        .unwrap();
    assert_eq!(rows.to_text(), [["12", "1", "12"]]);
}

#[test]
fn threads_beyond_the_clients_stay_away() {
    let (_served, targets) = start();
    let plan = BenchPlan {
        clients: vec![1, 3],
        jobs: Some(2),
        ..plan([Workload::PointSelect])
    };
    let report = bench::run(&targets[..1], &plan).unwrap();
    let jobs: Vec<usize> = report.measurements.iter().map(|one| one.jobs).collect();
    assert_eq!(jobs, [1, 2]);
}

#[test]
fn a_server_that_ends_ends_the_run() {
    let (served, targets) = start();
    let plan = BenchPlan {
        duration: Duration::from_secs(60),
        ..plan([Workload::ReadOnly])
    };
    bench::load_tables(&targets, &plan).unwrap();
    let plan = BenchPlan {
        load: false,
        ..plan
    };
    let began = Instant::now();
    let runs: Vec<_> = targets
        .into_iter()
        .map(|target| {
            let plan = plan.clone();
            std::thread::spawn(move || bench::run(&[target], &plan).unwrap_err())
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    drop(served.listening);
    for run in runs {
        let error = run.join().unwrap();
        assert!(
            matches!(&error, Error::Target { doing, error, .. }
                if doing.contains("oltp_read_only") && (error.is_fatal() || error.number().is_some())),
            "{error}"
        );
    }
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn clients_that_need_a_thread_each_are_refused_fewer() {
    let embedded = Target::new("embedded", "porpoise::memory:").unwrap();
    let error = bench::run(&[embedded], &plan([Workload::PointSelect])).unwrap_err();
    assert!(matches!(&error, Error::Plan(why) if why.contains("embedded")));
    let nobody = Target::new("nobody", "mysql://127.0.0.1:1/?transport=tcp").unwrap();
    for workload in Workload::all().filter(|workload| workload.connects()) {
        let error = bench::run(std::slice::from_ref(&nobody), &plan([workload])).unwrap_err();
        assert!(matches!(&error, Error::Plan(why) if why.contains(workload.name())));
    }
}
