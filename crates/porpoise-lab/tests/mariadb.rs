//! Short runs against MariaDB: every workload works on a server that is not ours, and its figures
//! are plausible.

use porpoise_client::{Connection, Options, Transport};
use porpoise_e2e::server::{Product, Server};
use porpoise_lab::replay::{Recording, ReplayServer};
use porpoise_lab::{BenchPlan, Error, Mode, Peer, Target, Workload, bench};
use std::sync::Arc;
use std::time::Duration;

fn targets(server: &Server) -> [Target; 2] {
    let url = format!("mysql://root@127.0.0.1:{}/sbtest", server.port);
    let socket = server.socket.display();
    [
        Target::new(
            "Unix socket",
            &format!("{url}?transport=unix&socket={socket}"),
        )
        .unwrap(),
        Target::new("TCP", &format!("{url}?transport=tcp")).unwrap(),
    ]
}

#[test]
fn every_workload_runs_over_each_way_in() {
    let server = Server::start(Product::MariaDb);
    let targets = targets(&server);
    let plan = BenchPlan {
        workloads: Workload::all().collect(),
        clients: vec![2],
        rows: 2_000,
        duration: Duration::from_secs(1),
        warm_up: Duration::from_millis(50),
        progress: false,
        ..BenchPlan::default()
    };
    let report = bench::run(&targets, &plan).unwrap();
    println!("{report}");
    assert_eq!(report.measurements.len(), 2 * plan.workloads.len());
    for measurement in &report.measurements {
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
        assert!(measurement.latency_p95 > Duration::ZERO, "{measurement:?}");
        if measurement.errors == 0 {
            let expected = measurement.transactions_per_second * statements;
            assert!(
                (measurement.queries_per_second - expected).abs() < 1.0,
                "{measurement:?}"
            );
        }
    }
    let mut wire = porpoise_client::Connection::connect(&targets[0].options).unwrap();
    let rows = wire
        .rows("SELECT MIN(id), COUNT(*), MIN(LENGTH(c)), MAX(LENGTH(pad)) FROM sbtest1")
        .unwrap();
    // The rows of `oltp_insert` were gone before the workloads behind it.
    assert_eq!(rows.to_text(), [["1", "2000", "119", "59"]]);
}

#[test]
fn one_thread_has_several_clients_over_each_way_in() {
    let server = Server::start(Product::MariaDb);
    let targets = targets(&server);
    let plan = BenchPlan {
        workloads: vec![Workload::PointSelect, Workload::ReadWrite],
        clients: vec![8],
        jobs: Some(1),
        rows: 2_000,
        duration: Duration::from_millis(300),
        warm_up: Duration::from_millis(50),
        progress: false,
        ..BenchPlan::default()
    };
    let report = bench::run(&targets, &plan).unwrap();
    for measurement in &report.measurements {
        assert_eq!((measurement.clients, measurement.jobs), (8, 1));
        assert!(
            measurement.transactions_per_second > 10.0,
            "{measurement:?}"
        );
    }
    // It is killed, not stopped: nothing but the ends of its connections tells.
    let plan = BenchPlan {
        load: false,
        duration: Duration::from_secs(60),
        ..plan
    };
    let run = std::thread::spawn(move || bench::run(&targets, &plan).unwrap_err());
    std::thread::sleep(Duration::from_millis(500));
    drop(server);
    let error = run.join().unwrap();
    assert!(
        matches!(&error, Error::Target { target, .. } if target == "Unix socket"),
        "{error}"
    );
}

#[test]
fn one_second_of_text_statements_on_many_tables() {
    let server = Server::start(Product::MariaDb);
    let plan = BenchPlan {
        workloads: vec![Workload::ReadWrite],
        clients: vec![4],
        tables: 3,
        rows: 500,
        mode: Mode::Text,
        duration: Duration::from_secs(1),
        warm_up: Duration::ZERO,
        rounds: 3,
        ..BenchPlan::default()
    };
    let report = bench::run(&targets(&server)[..1], &plan).unwrap();
    assert_eq!(report.measurements.len(), 1);
    assert!(report.measurements[0].transactions_per_second > 10.0);
}

#[test]
fn a_target_that_is_not_there_is_named() {
    let target = Target::new("nobody", "mysql://root@127.0.0.1:1/sbtest?transport=tcp").unwrap();
    let plan = BenchPlan {
        load: false,
        progress: false,
        duration: Duration::from_secs(5),
        ..BenchPlan::default()
    };
    let error = bench::run(&[target], &plan).unwrap_err();
    assert!(
        matches!(&error, Error::Target { target, .. } if target == "nobody"),
        "{error}"
    );
    assert!(matches!(bench::run(&[], &plan), Err(Error::Plan(_))));
}

#[test]
fn a_peer_is_started_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(folder.path(), 8, &[]).unwrap();
    assert!(peer.connect().unwrap().ping().is_ok());
    let socket = peer.socket().to_path_buf();
    drop(peer);
    assert!(std::os::unix::net::UnixStream::connect(socket).is_err());
}

#[test]
fn what_was_recorded_is_replayed_over_every_way_in_and_nothing_else() {
    let server = Server::start(Product::MariaDb);
    let [unix, _] = targets(&server);
    let round = |options: &Options, load, clients| {
        let target = Target::at("recorded", options.clone());
        let plan = BenchPlan {
            workloads: vec![Workload::ReadWrite],
            clients: vec![clients],
            rows: 1_000,
            duration: Duration::from_millis(300),
            warm_up: Duration::ZERO,
            load,
            progress: false,
            ..BenchPlan::default()
        };
        bench::run(&[target], &plan)
    };
    round(&unix.options, true, 1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::of(&server.socket, folder.path(), |socket| {
        let through = Options {
            socket: Some(socket.to_path_buf()),
            ..unix.options.clone()
        };
        round(&through, false, 1).map(drop)
    });
    let replay_server = ReplayServer::start(Arc::new(recording.unwrap()), folder.path()).unwrap();
    // It replays by itself.
    drop(server);
    let route = |transport| Options {
        transport,
        socket: Some(replay_server.socket().to_path_buf()),
        port: replay_server.port(),
        ..unix.options.clone()
    };
    for transport in [Transport::Unix, Transport::Tcp, Transport::SharedMemory] {
        let report = round(&route(transport), false, 2).unwrap();
        let measured = &report.measurements[0];
        assert!(measured.transactions_per_second > 0.0, "{transport:?}");
        assert_eq!(measured.errors, 0, "{transport:?}");
        let mut connection = Connection::connect(&route(transport)).unwrap();
        let unknown = connection.rows("SELECT 'never asked before'").unwrap_err();
        assert_eq!(unknown.number(), Some(1105), "{transport:?}");
    }
}
