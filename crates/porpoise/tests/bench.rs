//! The load generator against Porpoise: two threads that have eight clients, over every way in.

use porpoise::{Database, Listen, Listening};
use porpoise_lab::{BenchPlan, Error, Target, Workload, bench};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A database that serves over every way in, and targets to go there.
struct Served {
    listening: Listening,
    _database: Database,
    targets: Vec<Target>,
    _folder: TempDir,
}

impl Served {
    fn start() -> Served {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let database = Database::options()
            .set("loopback_fast_path", "ON")
            .in_memory()
            .unwrap();
        let doors = Listen::unix(&socket)
            .and(Listen::shared_memory(folder.path().join("s.MYSQL")))
            .and(Listen::tcp(([127, 0, 0, 1], 0).into()));
        let listening = database.listen(doors).unwrap();
        let setup = database.connect().unwrap();
        setup.execute("CREATE DATABASE sbtest", ()).unwrap();
        setup.execute("CREATE USER sb", ()).unwrap();
        setup.execute("GRANT ALL ON sbtest.* TO sb", ()).unwrap();
        let port = listening.tcp_addresses()[0].port();
        let socket = socket.display();
        let targets = [
            ("shared memory", "shm"),
            ("Unix socket", "unix"),
            ("TCP", "tcp"),
            ("loopback fast path", "tcp&loopback_fast_path"),
        ]
        .map(|(name, way)| {
            let url = format!("mysql://sb@127.0.0.1:{port}/sbtest?transport={way}&socket={socket}");
            Target::new(name, &url).unwrap()
        });
        Served {
            listening,
            _database: database,
            targets: targets.into(),
            _folder: folder,
        }
    }
}

fn plan(workloads: impl IntoIterator<Item = Workload>) -> BenchPlan {
    BenchPlan {
        workloads: workloads.into_iter().collect(),
        clients: vec![8],
        jobs: Some(2),
        rows: 2_000,
        duration: Duration::from_millis(200),
        warm_up: Duration::from_millis(20),
        progress: false,
        ..BenchPlan::default()
    }
}

#[test]
fn two_threads_have_eight_clients_over_every_way_in() {
    let served = Served::start();
    let workloads = Workload::all().filter(|&workload| workload != Workload::Connect);
    let plan = plan(workloads);
    let report = bench::run(&served.targets, &plan).unwrap();
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
        assert!(
            measurement.transactions_per_second > 10.0,
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
    let served = Served::start();
    let plan = BenchPlan {
        jobs: Some(1),
        rows: 12,
        ..plan([Workload::WriteOnly])
    };
    let report = bench::run(&served.targets, &plan).unwrap();
    let conflicts: u64 = report
        .measurements
        .iter()
        .map(|measurement| measurement.errors)
        .sum();
    assert!(conflicts > 0, "{report}");
    for measurement in &report.measurements {
        assert!(
            measurement.transactions_per_second > 10.0,
            "{measurement:?}"
        );
    }
    // Every transaction put its row back.
    let mut connection = porpoise_client::Connection::connect(&served.targets[0].options).unwrap();
    let rows = connection
        .rows("SELECT COUNT(*), MIN(id), MAX(id) FROM sbtest1")
        .unwrap();
    assert_eq!(rows.to_text(), [["12", "1", "12"]]);
}

#[test]
fn threads_beyond_the_clients_stay_away() {
    let served = Served::start();
    let plan = BenchPlan {
        clients: vec![1, 3],
        jobs: Some(2),
        ..plan([Workload::PointSelect])
    };
    let report = bench::run(&served.targets[..1], &plan).unwrap();
    let jobs: Vec<usize> = report.measurements.iter().map(|one| one.jobs).collect();
    assert_eq!(jobs, [1, 2]);
}

#[test]
fn a_server_that_ends_ends_the_run() {
    let served = Served::start();
    let plan = BenchPlan {
        duration: Duration::from_secs(60),
        ..plan([Workload::ReadOnly])
    };
    bench::load_tables(&served.targets, &plan).unwrap();
    let plan = BenchPlan {
        load: false,
        ..plan
    };
    let targets = served.targets;
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
    let error = bench::run(&[nobody], &plan([Workload::Connect])).unwrap_err();
    assert!(matches!(&error, Error::Plan(why) if why.contains("connect")));
}
