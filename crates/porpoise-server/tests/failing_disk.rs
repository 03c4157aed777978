//! A disk that is full, or refuses, while clients write.

pub mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{RawClient, Reply};
use porpoise_engine::{Engine, EngineOptions};
use porpoise_server::{Server, ServerOptions};
use porpoise_storage::Location;

/// MySQL's ER_DISK_FULL.
const DISK_FULL: u16 = 1021;

const SOCKET: &str = "PORPOISE_TEST_SOCKET";
const FOLDER: &str = "PORPOISE_TEST_FOLDER";

/// A server in a process of its own, so that it can be killed.
struct TestServer {
    process: Child,
    socket: PathBuf,
    _sockets: tempfile::TempDir,
}

impl Drop for TestServer {
    /// As a power cut would, for all that the process knows.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not a test of its own: the server of those below, when they say where its folder is.
#[test]
fn server_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    // As short a log as may be: in files of two mebibytes.
    let engine = Engine::open(EngineOptions {
        location: Location::Path(folder.into()),
        variables: vec![("innodb_redo_log_capacity".into(), "8388608".into())],
    })
    .unwrap();
    let options = ServerOptions {
        socket: Some(std::env::var(SOCKET).unwrap().into()),
        workers: 2,
        ..ServerOptions::default()
    };
    Server::start(engine, &options).unwrap().wait();
}

fn serve(folder: &Path) -> TestServer {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("s.sock");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server_that_is_killed", "--nocapture"]);
    let mut process = command
        .env(FOLDER, folder)
        .env(SOCKET, &socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while RawClient::local(&socket).is_err() {
        assert!(process.try_wait().unwrap().is_none(), "it didn't start");
        thread::sleep(Duration::from_millis(10));
    }
    TestServer {
        process,
        socket,
        _sockets: sockets,
    }
}

impl TestServer {
    fn client(&self) -> RawClient {
        let mut client = RawClient::local(&self.socket)
            .unwrap()
            .login("root", "")
            .unwrap();
        if !client.query("USE test").is_ok() {
            assert!(client.query("CREATE DATABASE test").is_ok());
            assert!(client.query("USE test").is_ok());
        }
        client
    }

    fn is_reading(&self) -> bool {
        let mut client = RawClient::local(&self.socket)
            .unwrap()
            .login("root", "")
            .unwrap();
        client.query("SELECT COUNT(*) FROM test.t").rows().len() == 1
    }

    fn ids(&self) -> Vec<u32> {
        let mut client = self.client();
        let answer = client.query("SELECT id FROM t WHERE LENGTH(v) = 4000 ORDER BY id");
        let number = |row: &Vec<Option<String>>| row[0].as_deref().unwrap().parse().unwrap();
        answer.rows().iter().map(number).collect()
    }
}

/// Where the log makes its next files, before they get their names.
const OBSTACLES: [&str; 2] = ["log.spare.unfinished", "log.unfinished"];

/// Puts a directory where a file is to be made, once the file that is made there has its name.
fn obstruct(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Err(error) = fs::create_dir(path) {
        assert!(Instant::now() < deadline, "{}: {error}", path.display());
        thread::sleep(Duration::from_millis(1));
    }
    fs::create_dir(path.join("obstacle")).expect("a directory in it");
}

const CREATE: &str = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(4000) NOT NULL)";

fn insert(id: u32) -> String {
    format!("INSERT INTO t VALUES ({id}, REPEAT('{}', 4000))", id % 10)
}

/// Neither a row that was acknowledged is missing, nor is one there that was refused.
#[track_caller]
fn assert_same(found: &[u32], kept: &[u32]) {
    let missing: Vec<_> = kept.iter().filter(|id| !found.contains(id)).collect();
    let refused: Vec<_> = found.iter().filter(|id| !kept.contains(id)).collect();
    assert!(
        missing.is_empty() && refused.is_empty(),
        "of {} rows {missing:?} are missing and {refused:?} were refused",
        kept.len()
    );
}

struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64m", "none"]);
        let mounted = mount.arg(folder.path()).output().ok()?.status.success();
        mounted.then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mut unmount = std::process::Command::new("umount");
        let _ = unmount.arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_takes_writes_again_when_it_has_room() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: no small disk can be mounted here");
        return;
    };
    let folder = disk.0.path().join("d");
    let server = serve(&folder);
    let mut client = server.client();
    assert!(client.query(CREATE).is_ok());
    let ballast = ["one", "two"].map(|name| disk.0.path().join(name));
    for path in &ballast {
        fs::write(path, vec![1; 12 << 20]).unwrap();
    }

    let next = AtomicU32::new(1);
    let fill = || -> Vec<u32> {
        thread::scope(|scope| {
            let fillers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut client = server.client();
                        let mut kept = Vec::new();
                        loop {
                            let id = next.fetch_add(1, Ordering::SeqCst);
                            match client.query(&insert(id)) {
                                Reply::Ok { .. } => kept.push(id),
                                Reply::Error(number, text) => {
                                    assert_eq!(number, DISK_FULL, "{text}");
                                    return kept;
                                }
                                rows => panic!("{rows:?}"),
                            }
                        }
                    })
                })
                .collect();
            let kept = fillers
                .into_iter()
                .flat_map(|filler| filler.join().unwrap());
            kept.collect()
        })
    };
    let mut kept = fill();
    assert!(kept.len() > 500, "only {}", kept.len());
    kept.sort();
    assert_same(&server.ids(), &kept);
    let answer = client.query("UPDATE t SET v = 'short' WHERE id > 0");
    assert_eq!(answer.error_number(), DISK_FULL);
    assert_same(&server.ids(), &kept);

    fs::remove_file(&ballast[0]).unwrap();
    let more = fill();
    assert!(more.len() > 200, "only {}", more.len());
    kept.extend(more);
    kept.sort();
    assert_same(&server.ids(), &kept);
    drop(server);
    fs::remove_file(&ballast[1]).unwrap();
    assert_same(&serve(&folder).ids(), &kept);
}

#[test]
fn big_statements_on_a_full_disk_fail_as_a_whole() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: no small disk can be mounted here");
        return;
    };
    let server = serve(&disk.0.path().join("d"));
    let mut client = server.client();
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE few (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(2000))",
        "INSERT INTO few (v) VALUES (REPEAT('x', 2000))",
        "INSERT INTO few (v) SELECT v FROM few",
        "INSERT INTO few (v) SELECT a.v FROM few a, few b, few c, few d, few e, few f, few g LIMIT 126",
        "CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(2000), KEY (v(20)))",
        "INSERT INTO big (v) SELECT a.v FROM few a, few b LIMIT 4000",
    ] {
        let answer = client.query(sql);
        assert!(answer.is_ok(), "{sql}: {answer:?}");
    }
    let ballast = disk.0.path().join("ballast");
    // All that there is but six mebibytes.
    let mut pieces = fs::File::create(&ballast).unwrap();
    while pieces.write_all(&[1; 1 << 18]).is_ok() {}
    let filled = pieces.metadata().unwrap().len();
    pieces.set_len(filled - (6 << 20)).unwrap();
    // How many rows each index has, and which tables there are.
    let state = |client: &mut RawClient| {
        let queries = [
            "SELECT CONCAT_WS(' ', COUNT(*), MAX(id), MAX(LEFT(v, 1))) FROM d.big FORCE INDEX (PRIMARY)",
            "SELECT COUNT(*) FROM d.big FORCE INDEX (v) WHERE v > ''",
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'd'",
        ];
        queries.map(|sql| format!("{:?}", client.query(sql)))
    };
    let changes = [
        "INSERT INTO d.big (v) SELECT a.v FROM d.few a, d.few b",
        "CREATE TABLE d.made AS SELECT a.v FROM d.few a, d.few b",
        "INSERT INTO d.big (v) SELECT a.v FROM d.few a, d.few b LIMIT 12000",
        "CREATE TABLE d.made (KEY (v(20))) SELECT a.v FROM d.few a, d.few b",
    ];
    let mut refused = 0;
    for sql in changes {
        let before = state(&mut client);
        client.send_query(sql);
        match client.packet() {
            Ok((_, packet)) if packet[0] == 0xFF => {
                let number = u16::from_le_bytes([packet[1], packet[2]]);
                assert_eq!(number, DISK_FULL, "{sql}");
                refused += 1;
            }
            Ok((_, packet)) => panic!("{sql}: the disk has room? {packet:?}"),
            // The disk was full in the middle of its log record.
            Err(_) => {
                client = server.client();
                refused += 1;
            }
        }
        assert_eq!(state(&mut client), before, "{sql}");
    }
    assert_eq!(refused, changes.len());
    // An open file keeps its room though its name is gone.
    drop(pieces);
    fs::remove_file(&ballast).unwrap();
    // The log looks for room now and then.
    let began = Instant::now();
    for sql in [
        "UPDATE d.big SET v = 'short' WHERE id <= 100",
        "ALTER TABLE d.few ADD COLUMN w INT DEFAULT 5, ALGORITHM = COPY",
    ] {
        loop {
            let answer = client.query(sql);
            if answer.is_ok() {
                break;
            }
            let waited = began.elapsed();
            assert!(waited < Duration::from_secs(30), "{sql}: {answer:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_log_that_fails_is_told_to_all_who_wait_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    assert!(server.client().query(CREATE).is_ok());
    let next = AtomicU32::new(1);
    let has_failed = AtomicBool::new(false);
    let began = Instant::now();
    let kept: Vec<u32> = thread::scope(|scope| {
        let (server, next, has_failed) = (&server, &next, &has_failed);
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    loop {
                        let ids = [0; 3].map(|_| next.fetch_add(1, Ordering::SeqCst));
                        let begun = std::iter::once("BEGIN".to_string());
                        let sql = begun.chain(ids.map(insert)).chain(["COMMIT".to_string()]);
                        for sql in sql {
                            client.send_query(&sql);
                            // An error, or the connection's end: both are answers.
                            let Ok((_, packet)) = client.packet() else {
                                has_failed.store(true, Ordering::SeqCst);
                                return kept;
                            };
                            if packet[0] != 0 {
                                has_failed.store(true, Ordering::SeqCst);
                                return kept;
                            }
                        }
                        kept.extend(ids);
                    }
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(300));
        for name in OBSTACLES {
            obstruct(&folder.path().join(name));
        }
        let kept = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        kept.collect()
    });
    assert!(has_failed.load(Ordering::SeqCst));
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(server.is_reading());
    drop(server);
    for name in OBSTACLES {
        let _ = fs::remove_dir_all(folder.path().join(name));
    }
    let found = serve(folder.path()).ids();
    let missing: Vec<_> = kept.iter().filter(|id| !found.contains(id)).collect();
    assert!(missing.is_empty(), "{missing:?} were acknowledged");
}
