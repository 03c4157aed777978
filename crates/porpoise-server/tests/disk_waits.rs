//! Clients whose statements wait for the disk have threads of their own meanwhile, and share them if there are
//! many.

pub mod common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{CLIENTS, RawClient, Reply, eventually};
use porpoise_engine::{Engine, EngineOptions};
use porpoise_server::{Server, ServerOptions};
use porpoise_storage::Location;

const ROWS: u32 = 60_000;

/// A table that the cache holds half of, in a folder of which the system keeps no pages.
struct SlowServer {
    server: Server,
    is_over: AtomicBool,
    folder: tempfile::TempDir,
}

fn start(folder: &Path) -> Server {
    let engine = Engine::open(EngineOptions {
        location: Location::Path(folder.join("data")),
        variables: vec![("innodb_buffer_pool_size".into(), "5242880".into())],
    });
    let options = ServerOptions {
        socket: Some(folder.join("s.sock")),
        tcp: vec!["127.0.0.1:0".parse().unwrap()],
        workers: 2,
        ..ServerOptions::default()
    };
    Server::start(engine.unwrap(), &options).unwrap()
}

impl SlowServer {
    fn new() -> SlowServer {
        // Where the system keeps temporary files in memory, it never lets go of their pages.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let server = start(folder.path());
        let mut root = root(&folder.path().join("s.sock"));
        for sql in [
            "CREATE DATABASE test",
            "CREATE USER c",
            "GRANT ALL ON test.* TO c",
            "CREATE TABLE test.t (id INT PRIMARY KEY, v VARCHAR(300) NOT NULL)",
            "SET cte_max_recursion_depth = 100000",
            &format!(
                "INSERT INTO test.t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) \
                 SELECT i, CONCAT(i, ':', REPEAT('x', 180)) FROM n"
            ),
        ] {
            let answer = root.query(sql);
            assert!(answer.is_ok(), "{sql}: {answer:?}");
        }
        drop(root);
        // When it stops, all rows go from the log into the tree.
        server.stop();
        drop(server);
        SlowServer {
            server: start(folder.path()),
            is_over: AtomicBool::new(false),
            folder,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    /// Has the system let go of the tree's pages again and again.
    fn evict(&self) {
        let tree = File::open(self.folder.path().join("data/tree.redb")).unwrap();
        while !self.is_over.load(Ordering::Relaxed) {
            let _ = rustix::fs::fadvise(&tree, 0, None, rustix::fs::Advice::DontNeed);
            thread::sleep(Duration::from_micros(300));
        }
    }

    /// What root is answered, who then quits.
    fn ask(&self, sql: &str) -> Reply {
        let mut root = root(&self.socket());
        let answer = root.query(sql);
        quit(&mut root);
        answer
    }

    fn count(&self, status: &str) -> u64 {
        let answer = self.ask(&format!("SHOW GLOBAL STATUS LIKE '{status}'"));
        answer.rows()[0][1].as_deref().unwrap().parse().unwrap()
    }

    /// Four, over each way in for which a thread of its own is of use.
    fn clients(&self) -> Vec<RawClient> {
        self.many_clients(4)
    }

    fn many_clients(&self, count: usize) -> Vec<RawClient> {
        let tcp = self.server.tcp_addresses()[0];
        let client = |number: usize| match number % 2 {
            0 => RawClient::local(&self.socket()).unwrap(),
            _ => RawClient::tcp(tcp).unwrap(),
        };
        let clients = (0..count).map(client);
        clients
            .map(|client| client.login("c", "").unwrap())
            .collect()
    }

    /// Clients, each on a thread; meanwhile, and until `beside` is done, the disk is slow.
    fn while_slow(
        &self,
        clients: Vec<RawClient>,
        each: impl Fn(RawClient, u64) + Sync,
        beside: impl FnOnce(),
    ) {
        thread::scope(|scope| {
            scope.spawn(|| self.evict());
            let each = &each;
            let threads: Vec<_> = (0..)
                .zip(clients)
                .map(|(seed, client)| scope.spawn(move || each(client, seed)))
                .collect();
            beside();
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            self.is_over.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok), "a client failed");
        });
        self.is_over.store(false, Ordering::Relaxed);
    }
}

fn root(socket: &Path) -> RawClient {
    let client = RawClient::local(socket).unwrap();
    client.login("root", "").unwrap()
}

fn quit(client: &mut RawClient) {
    client.send(0, &[1]).unwrap();
}

/// Asks for a random row, and looks whether it is the right one.
fn select(client: &mut RawClient, random: &mut fastrand::Rng) {
    let id = random.u32(1..=ROWS);
    let answer = client.query(&format!("SELECT v FROM test.t WHERE id = {id}"));
    assert!(
        answer.value().starts_with(&format!("{id}:xxx")),
        "{id}: {answer:?}"
    );
}

/// As [`select`], of a server that may close the connection.
fn is_answered(client: &mut RawClient, random: &mut fastrand::Rng) -> bool {
    let id = random.u32(1..=ROWS);
    let query = format!("\u{3}SELECT v FROM test.t WHERE id = {id}");
    // How many columns, the column, the row, and the end.
    client.send(0, query.as_bytes()).is_ok() && (0..4).all(|_| client.packet().is_ok())
}

#[test]
fn who_waits_for_the_disk_again_and_again_has_a_thread_of_its_own() {
    let slow = SlowServer::new();
    let read = |mut client: RawClient, seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..1500 {
            select(&mut client, &mut random);
        }
        // A change goes through the loop again, and so does a pause.
        let id = seed + 1;
        let update = format!("UPDATE test.t SET v = CONCAT(v, 'y') WHERE id = {id}");
        assert!(client.query(&update).is_ok());
        thread::sleep(Duration::from_millis(20));
        for _ in 0..100 {
            select(&mut client, &mut random);
        }
        let found = client.query(&format!("SELECT RIGHT(v, 2) FROM test.t WHERE id = {id}"));
        assert_eq!(found.value(), "xy");
        quit(&mut client);
    };
    slow.while_slow(slow.clients(), read, || {});
    eventually(|| slow.ask(CLIENTS).rows().len() == 1);
    assert_eq!(slow.count("Aborted_clients"), 0);
    let turns = slow.count("Dedicated_turns");
    match lets_go(&slow.folder.path().join("data/tree.redb")) {
        true => assert!(turns > 100, "{turns}"),
        false => eprintln!("the system lets go of no page here: {turns} turns"),
    }
}

/// The threads of this process that serve connections.
fn worker_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")));
    // One may have ended meanwhile.
    let workers = names.filter(|name| name.as_ref().is_ok_and(|name| name == "worker\n"));
    workers.count()
}

#[test]
fn many_clients_that_wait_for_the_disk_share_a_few_threads() {
    const CLIENTS: usize = 400;
    let slow = SlowServer::new();
    slow.ask("SET GLOBAL max_connections = 1000");
    slow.ask("CREATE TABLE test.n (n INT)");
    slow.ask("INSERT INTO test.n VALUES (0)");
    let (asking, is_settled) = (AtomicUsize::new(0), AtomicBool::new(false));
    let read = |mut client: RawClient, seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        for number in 0.. {
            if number == 10 {
                asking.fetch_add(1, Ordering::Relaxed);
            }
            if number >= 40 && is_settled.load(Ordering::Relaxed) {
                break;
            }
            select(&mut client, &mut random);
        }
        // Who holds a row that many wait for reads the disk, too, and gets to it.
        for sql in [
            "BEGIN".to_string(),
            "SELECT v FROM test.t WHERE id = 1 FOR UPDATE".to_string(),
            format!("SELECT v FROM test.t WHERE id = {}", random.u32(1..=ROWS)),
            "UPDATE test.n SET n = n + 1".to_string(),
            "COMMIT".to_string(),
        ] {
            let answer = client.query(&sql);
            assert!(!matches!(answer, Reply::Error(..)), "{sql}: {answer:?}");
        }
        for _ in 0..5 {
            select(&mut client, &mut random);
        }
        quit(&mut client);
    };
    let clients = slow.many_clients(CLIENTS);
    // At first a machine whose cores are taken has more, as loops are handed over to them.
    let (mut few_in_succession, mut last) = (0, 0);
    slow.while_slow(clients, read, || {
        let began = Instant::now();
        while few_in_succession < 50 && began.elapsed() < Duration::from_secs(60) {
            last = worker_threads();
            let are_few = asking.load(Ordering::Relaxed) == CLIENTS && last < CLIENTS / 2;
            few_in_succession = if are_few { few_in_succession + 1 } else { 0 };
            thread::sleep(Duration::from_millis(5));
        }
        is_settled.store(true, Ordering::Relaxed);
    });
    assert!(few_in_succession == 50, "{last} threads");
    assert_eq!(
        slow.ask("SELECT n FROM test.n").value(),
        CLIENTS.to_string()
    );
    let turns = slow.count("Disk_turns");
    match lets_go(&slow.folder.path().join("data/tree.redb")) {
        true => assert!(turns > 100, "{turns}"),
        false => eprintln!("the system lets go of no page here: {turns} turns"),
    }
}

/// Whether the system lets go of a file's pages when it is told to, and says so.
fn lets_go(path: &Path) -> bool {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let file = File::open(path).unwrap();
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    let mut bytes = [0; 4096];
    let mut into = [std::io::IoSliceMut::new(&mut bytes)];
    let read = preadv2(&file, &mut into, 1 << 20, ReadWriteFlags::NOWAIT);
    read == Err(Errno::AGAIN)
}

#[test]
fn clients_with_threads_of_their_own_are_killed_noticed_and_stopped() {
    let slow = SlowServer::new();
    let clients = slow.clients();
    let ids: Vec<u32> = clients.iter().map(|client| client.connection_id).collect();
    // One of each way in is killed as it asks, one waits for long and vanishes.
    let each = |mut client: RawClient, seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        if seed < 2 {
            while is_answered(&mut client, &mut random) {}
            return;
        }
        for _ in 0..300 {
            select(&mut client, &mut random);
        }
        client.send_query("SELECT SLEEP(1000)");
        thread::sleep(Duration::from_millis(50));
    };
    slow.while_slow(clients, each, || {
        thread::sleep(Duration::from_millis(300));
        let mut root = root(&slow.socket());
        for id in &ids[..2] {
            let killed = root.query(&format!("KILL {id}"));
            assert!(matches!(killed, Reply::Ok { .. }), "{killed:?}");
        }
    });
    eventually(|| slow.ask(CLIENTS).rows().len() == 1);

    // The server stops beside clients that go on asking.
    let go_on = |mut client: RawClient, seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        while is_answered(&mut client, &mut random) {}
    };
    slow.while_slow(slow.clients(), go_on, || {
        thread::sleep(Duration::from_millis(200));
        slow.server.stop();
    });
}
