//! The program as its users start it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use porpoise_client::Connection;

fn porpoise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_porpoise"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Serving {
    child: Child,
    ready: String,
    folder: tempfile::TempDir,
}

impl Serving {
    fn start(arguments: &[&str]) -> Serving {
        let folder = tempfile::tempdir().unwrap();
        Serving::start_in(folder, arguments)
    }

    fn start_in(folder: tempfile::TempDir, arguments: &[&str]) -> Serving {
        Serving::start_with(folder, &[&["--no-defaults"], arguments].concat())
    }

    /// As `start_in`, with the option files that the arguments say.
    fn start_with(folder: tempfile::TempDir, arguments: &[&str]) -> Serving {
        let mut child = Command::new(env!("CARGO_BIN_EXE_porpoise"))
            .args(["serve", "--port=0"])
            .arg(format!(
                "--datadir={}",
                folder.path().join("data").display()
            ))
            .arg(format!(
                "--socket={}",
                folder.path().join("s.sock").display()
            ))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut ready)
            .unwrap();
        Serving {
            child,
            ready,
            folder,
        }
    }

    fn socket(&self) -> String {
        self.folder.path().join("s.sock").display().to_string()
    }

    fn connect(&self) -> Connection {
        let url = format!("mysql://root@localhost/?socket={}", self.socket());
        Connection::connect(&url.parse().unwrap()).unwrap()
    }

    /// The only value of a query.
    fn value(&self, sql: &str) -> String {
        let rows = self.connect().rows(sql).unwrap();
        rows.get(0).unwrap().get(0).unwrap()
    }

    /// What it says on its standard error until it ends.
    fn said(mut self) -> String {
        assert!(self.terminate().success());
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        said
    }

    fn terminate(&mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it doesn't end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn help_and_version_are_what_people_expect() {
    assert!(text(&porpoise(&["--help"]).stdout).contains("serve"));
    assert!(text(&porpoise(&["--version"]).stdout).starts_with("porpoise "));
    assert!(text(&porpoise(&["serve", "--help"]).stdout).contains("--datadir"));
    assert!(text(&porpoise(&["serve", "--version"]).stdout).contains("MySQL 8.4"));
}

#[test]
fn an_option_that_is_not_known_is_refused_in_mysqlds_words() {
    for (option, words) in [
        ("--no-such-thing=1", "unknown variable 'no-such-thing=1'"),
        ("--no-such-thing", "unknown option '--no-such-thing'"),
        ("--port", "option '--port' requires an argument"),
    ] {
        let refused = porpoise(&["serve", "--no-defaults", option]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            text(&refused.stderr).contains(words),
            "{}",
            text(&refused.stderr)
        );
    }
}

#[test]
fn it_says_when_it_is_ready_and_where_and_ends_cleanly() {
    let mut serving = Serving::start(&[]);
    assert!(
        serving
            .ready
            .contains("ready for connections on 127.0.0.1:"),
        "{}",
        serving.ready
    );
    assert!(
        serving.ready.contains(&serving.socket()),
        "{}",
        serving.ready
    );
    let mut connection = serving.connect();
    connection.run("CREATE DATABASE kept").unwrap();
    assert!(serving.terminate().success());
    assert!(!Path::new(&serving.socket()).exists());

    let folder = std::mem::replace(&mut serving.folder, tempfile::tempdir().unwrap());
    let again = Serving::start_in(folder, &[]);
    again.connect().run("USE kept").unwrap();
}

#[test]
fn a_second_server_on_the_folder_is_told_of_the_first() {
    let serving = Serving::start(&[]);
    let folder = format!("--datadir={}", serving.folder.path().join("data").display());
    let second = porpoise(&["serve", "--no-defaults", "--port=0", "--socket=", &folder]);
    assert_eq!(second.status.code(), Some(1));
    let words = text(&second.stderr);
    assert!(
        words.contains(&format!("in use by process {}", serving.child.id())),
        "{words}"
    );
}

#[test]
fn options_come_from_files_and_the_command_line_overrules_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.cnf");
    std::fs::write(
        &file,
        "[mysqld]\nmax-connections=11\nwait_timeout=22\n[porpoise]\nnet-read-timeout=33\n",
    )
    .unwrap();
    let printed = porpoise(&[
        "serve",
        &format!("--defaults-file={}", file.display()),
        "--wait-timeout=44",
        "--print-defaults",
    ]);
    let printed = text(&printed.stdout);
    for expected in [
        "--max-connections=11",
        "--wait-timeout=44",
        "--net-read-timeout=33",
    ] {
        assert!(printed.lines().any(|line| line == expected), "{printed}");
    }
    let missing = porpoise(&["serve", "--defaults-file=/no/such/file"]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn nothing_is_kept_of_a_database_in_memory() {
    let serving = Serving::start(&["--datadir=:memory:"]);
    serving.connect().run("CREATE DATABASE passing").unwrap();
    assert!(!serving.folder.path().join("data").exists());
}

/// A server that is killed while a client waits for its answer.
#[test]
fn a_client_over_shared_memory_whose_server_dies_fails_at_once() {
    let mut serving = Serving::start(&[]);
    let url = format!(
        "mysql://root@localhost/?transport=shm&socket={}",
        serving.socket()
    );
    let mut idle = Connection::open(&url).unwrap();
    let mut waiting = Connection::open(&url).unwrap();
    assert!(serving.ready.contains("(shared memory)"));
    let waiter = std::thread::spawn(move || {
        let began = Instant::now();
        let error = waiting.run("SELECT SLEEP(60)").unwrap_err();
        (began.elapsed(), error)
    });
    std::thread::sleep(Duration::from_millis(300));
    serving.child.kill().unwrap();
    let (took, error) = waiter.join().unwrap();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(error.is_fatal(), "{error}");
    assert!(idle.run("SELECT 1").unwrap_err().is_fatal());
}

#[test]
fn shared_memory_can_be_left_out_or_have_another_name() {
    let serving = Serving::start(&["--skip-shared-memory"]);
    assert!(!serving.ready.contains("shared memory"));
    assert!(!Path::new(&format!("{}.MYSQL", serving.socket())).exists());

    let serving = Serving::start(&["--shared-memory-base-name=fish"]);
    let url = format!(
        "mysql://root@localhost/?transport=shm&shared_memory_base_name=fish&socket={}",
        serving.socket()
    );
    let mut connection = Connection::open(&url).unwrap();
    let rows = connection
        .rows("SELECT @@shared_memory, @@shared_memory_base_name")
        .unwrap();
    assert_eq!(rows.to_text(), [["1", "fish"]]);
}

#[test]
fn the_real_client_gets_in_and_out() {
    let serving = Serving::start(&[]);
    let mut client = Command::new("mariadb")
        .args([
            "--no-defaults",
            "-u",
            "root",
            "-S",
            &serving.socket(),
            "-N",
            "-e",
            "SELECT 1 + 1",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answer = String::new();
    client
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut answer)
        .unwrap();
    assert!(client.wait().unwrap().success());
    assert_eq!(answer.trim(), "2");
}

#[test]
fn clients_that_come_and_go_are_measured_over_every_way_in() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("picture.svg");
    let output = porpoise(&[
        "bench",
        "connect",
        "--alone",
        "--query",
        "--clients=1,3",
        "--rounds=2",
        "--milliseconds=60",
        &format!("--picture={}", picture.display()),
    ]);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    for way in [
        "TCP",
        "Unix socket",
        "shared memory",
        "loopback fast path",
        "embedded",
    ] {
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with(way)).collect();
        assert_eq!(rows.len(), 2, "{way}:\n{table}");
        for row in rows {
            let cells: Vec<&str> = row[way.len()..].split_whitespace().collect();
            let [_, per_second, _, of_best, _, errors, ..] = cells[..] else {
                panic!("{row}");
            };
            assert_eq!(errors, "0", "{table}");
            assert_ne!(per_second, "0", "{table}");
            assert!(of_best.parse::<f64>().unwrap() <= 1.0, "{table}");
        }
    }
    assert!(
        std::fs::read_to_string(picture)
            .unwrap()
            .contains("embedded")
    );
}

#[test]
fn fewer_threads_than_clients_measure_every_way_in_with_a_server() {
    let common = [
        "--memory",
        "--rows=1000",
        "--seconds=1",
        "--clients=4",
        "--jobs=1",
    ];
    let bench = |further: &[&str]| porpoise(&[&["bench"], &common[..], further].concat());
    let output = bench(&["--workload=oltp_point_select"]);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    for way in ["TCP", "Unix socket", "shared memory", "loopback fast path"] {
        let begins = format!("oltp_point_select  {way} ");
        let row = table.lines().find(|line| line.starts_with(&begins));
        let cells: Vec<&str> = row.unwrap()[begins.len()..].split_whitespace().collect();
        assert_eq!(cells[..2], ["4", "1"], "{table}");
        assert_ne!(cells[2], "0", "{table}");
    }
    assert!(table.contains("embedded is left out"), "{table}");
    let output = bench(&["--ways=shm,embedded"]);
    assert!(!output.status.success());
    let why = text(&output.stderr);
    assert!(
        why.contains("embedded: ") && why.contains("thread of its own"),
        "{why}"
    );
}

#[test]
fn suites_of_queries_are_measured_and_their_plans_written() {
    let folder = tempfile::tempdir().unwrap();
    let plans = folder.path().join("plans");
    let output = porpoise(&[
        "bench",
        "tpch",
        "--scale=0.001",
        "--queries=6,1",
        "--rounds=1",
        "--markdown",
        &format!("--explain={}", plans.display()),
    ]);
    let (told, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}{errors}");
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("Porpoise: loaded in "), "{told}");
    assert_eq!(lines[1], "| query | rows | Porpoise s |");
    assert!(lines[3].starts_with("| 1 | 4 | "), "{told}");
    assert!(lines[4].starts_with("| 6 | 1 | "), "{told}");
    for plan in ["1.txt", "6.txt"] {
        let plan = std::fs::read_to_string(plans.join(plan)).unwrap();
        assert!(plan.contains("lineitem"), "{plan}");
    }
    for (arguments, complaint) in [
        (["ssb", "--scale=0"], "a scale is above 0"),
        (["joins", "--queries=99"], "joins has no query 99"),
    ] {
        let refused = porpoise(&["bench", arguments[0], arguments[1]]);
        assert!(!refused.status.success());
        assert!(text(&refused.stderr).contains(complaint), "{refused:?}");
    }
}

#[test]
fn a_growing_table_is_measured_through_a_stop_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let charts = folder.path().join("charts");
    let output = porpoise(&[
        "bench",
        "growth",
        "--rows=500,2000",
        "--text=20",
        "--clients=2",
        "--seconds=1",
        "--idle=1",
        &format!("--output={}", charts.display()),
    ]);
    let (told, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}{errors}");
    assert!(
        told.starts_with("Rows of two integers and a text of 20 bytes; 2 clients"),
        "{told}"
    );
    for rows in ["500", "2,000"] {
        let begins = |line: &&str| line.split_whitespace().take(2).eq([rows, "Porpoise"]);
        let lines: Vec<&str> = told.lines().filter(begins).collect();
        let [rates, rest] = lines[..] else {
            panic!("{told}");
        };
        for (line, count) in [(rates, 7), (rest, 8)] {
            // One that is missing is a dash.
            let figures: Result<Vec<f64>, _> = line
                .split_whitespace()
                .skip(2)
                .map(|cell| cell.replace(',', "").parse())
                .collect();
            assert_eq!(figures.unwrap().len(), count, "{told}");
        }
        assert!(rest.ends_with(" 0"), "updates are lost: {told}");
    }
    let written: Vec<_> = std::fs::read_dir(&charts).unwrap().flatten().collect();
    assert_eq!(written.len(), 14);
    for chart in written {
        let svg = std::fs::read_to_string(chart.path()).unwrap();
        assert!(svg.contains("Porpoise"), "{svg}");
    }
}

#[test]
fn growth_that_cannot_be_measured_is_refused_before_it_begins() {
    for (arguments, complaint) in [
        (
            &["--peer=mysql://root@localhost/"][..],
            "can't be killed and started again",
        ),
        (&["--rows=100,4"], "4 rows: there must be 8 (one a client)"),
        (&["--cache=512", "--memory=300"], "has no room for a cache"),
        (&["--seconds=0"], "nothing to measure"),
        (
            &["--rows=2000000000", "--text=60000"],
            "2,000,000,000 rows may take ",
        ),
    ] {
        let refused = porpoise(&[&["bench", "growth"], arguments].concat());
        let why = text(&refused.stderr);
        assert!(!refused.status.success(), "{arguments:?}");
        assert!(why.contains(complaint), "{why}");
    }
}

#[test]
fn statements_through_a_whole_table_are_measured_cold_and_warm() {
    let output = porpoise(&[
        "bench",
        "bulk",
        "--rows=2000",
        "--memory-mib=64",
        "--rounds=2",
        "--idle=1",
    ]);
    let (told, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}{errors}");
    assert!(
        told.starts_with("2,000 rows of sysbench's table; a buffer pool of 64 MiB each"),
        "{told}"
    );
    for name in [
        "INSERTs of many rows",
        "LOAD DATA LOCAL INFILE",
        "INSERT … SELECT",
        "SELECT SUM(LENGTH(c)), cold",
        "SELECT SUM(LENGTH(c)), warm",
        "self join ON b.id = a.k, cold",
        "self join ON b.id = a.k, warm",
        "ORDER BY c LIMIT 5, cold",
        "ORDER BY c LIMIT 5, warm",
        "GROUP BY k % 1000, warm",
        "COUNT(DISTINCT k), warm",
        "SELECT * ORDER BY k, pad, warm",
        "ADD INDEX (c)",
        "UPDATE k = k + 1",
        "memory before ADD INDEX (c)",
        "peak in ADD INDEX (c)",
        "memory before UPDATE k = k + 1",
        "peak in UPDATE k = k + 1",
        "folder at the end",
    ] {
        // One that is missing is a dash.
        let figure = told.lines().find_map(|line| {
            let (_, figure) = line
                .split_once(name)
                .filter(|(before, _)| before.is_empty())?;
            figure.trim().replace(',', "").parse::<f64>().ok()
        });
        assert!(figure.is_some(), "{name}: {told}");
    }
}

#[test]
fn bulk_that_cannot_be_measured_is_refused_before_it_begins() {
    for (argument, complaint) in [
        (
            "--peer=mysql://root@localhost/",
            "can't be killed and started again",
        ),
        ("--rows=0", "0 rows: there must be 1 to "),
        ("--rounds=0", "nothing to measure"),
        ("--memory-mib=1", "a buffer pool has 8 to "),
    ] {
        let refused = porpoise(&["bench", "bulk", argument]);
        let why = text(&refused.stderr);
        assert!(!refused.status.success(), "{argument}");
        assert!(why.contains(complaint), "{why}");
    }
}

#[test]
fn statements_are_measured_in_memory_and_to_disk() {
    let output = porpoise(&["bench", "spill", "--table-mib=12", "--limit-mib=16"]);
    let (told, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}{errors}");
    assert!(
        told.starts_with("67,650 rows of sysbench's table, 12 MiB; a buffer pool of 64 MiB; to disk: a statement may take 16 MiB"),
        "{told}"
    );
    for name in [
        "ORDER BY c",
        "GROUP BY c",
        "hash join ON",
        "ROW_NUMBER() OVER",
    ] {
        let line = told.lines().find(|line| line.starts_with(name));
        assert!(
            line.is_some_and(|line| !line.contains('–')),
            "{name}: {told}"
        );
    }
    for (argument, complaint) in [
        (
            "--peer=mysql://root@localhost/",
            "can't be killed and started again",
        ),
        ("--table-mib=0", "a table has 1 to "),
        ("--limit-mib=1", "a statement may take 16 to "),
    ] {
        let refused = porpoise(&["bench", "spill", argument]);
        let why = text(&refused.stderr);
        assert!(!refused.status.success(), "{argument}");
        assert!(why.contains(complaint), "{why}");
    }
}

fn option_file(name: &str) -> String {
    format!(
        "{}/tests/option_files/{name}.cnf",
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn option_files_of_mysql_and_mariadb_start_as_they_are() {
    for (name, without_effect) in [
        (
            "debian-mysql-5.7",
            &["query_cache_size=16M", "thread_stack=192K"][..],
        ),
        (
            "ubuntu-mysql-8.0",
            &["mysqlx_bind_address=127.0.0.1", "max_binlog_size=100M"],
        ),
        ("docker-mysql-8.4", &["user=mysql"]),
        ("red-hat-mysql-5.7", &["symbolic_links=0"]),
        (
            "debian-mariadb-10.11",
            &["plugin_load_add=provider_lz4", "expire_logs_days=10"],
        ),
        (
            "tuned-mysql-8.0",
            &["innodb_flush_method=O_DIRECT", "innodb_io_capacity=2000"],
        ),
    ] {
        let defaults = format!("--defaults-file={}", option_file(name));
        // What isn't there on every machine.
        let arguments = [&*defaults, "--log-error=stderr", "--pid-file="];
        let serving = Serving::start_with(tempfile::tempdir().unwrap(), &arguments);
        assert!(serving.ready.contains("ready for connections"), "{name}");
        if name == "debian-mariadb-10.11" {
            serving.connect().run("CREATE DATABASE d").unwrap();
            let sql = "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA \
                       WHERE SCHEMA_NAME = 'd'";
            assert_eq!(serving.value(sql), "utf8mb4_general_ci");
        }
        let said = serving.said();
        let told = |line: &&str| line.contains("These options have no effect in Porpoise: ");
        assert_eq!(said.lines().filter(told).count(), 1, "{name}: {said}");
        for option in without_effect {
            assert!(said.contains(option), "{name}: {said}");
        }
        // It has one.
        assert!(!said.contains("sort_buffer_size"), "{name}: {said}");
    }
}

#[test]
fn a_certificate_that_cannot_be_read_refuses_the_start() {
    for option in ["ssl-ca", "ssl-cert", "ssl-crl"] {
        let word = format!("--{option}=/nonexistent");
        let refused = porpoise(&["serve", "--no-defaults", "--datadir=:memory:", &word]);
        assert_eq!(refused.status.code(), Some(1), "{option}");
        let said = text(&refused.stderr);
        assert!(said.contains("can't set up TLS: ssl_"), "{option}: {said}");
    }
}

#[test]
fn an_option_that_somebody_may_rely_on_refuses_the_start() {
    for option in [
        "log-bin=/var/lib/mysql/bin",
        "skip-grant-tables",
        "gtid_mode=ON",
        "sql_require_primary_key=1",
    ] {
        let word = format!("--{option}");
        let refused = porpoise(&["serve", "--no-defaults", "--datadir=:memory:", &word]);
        assert_eq!(refused.status.code(), Some(1), "{option}");
        let said = text(&refused.stderr);
        assert!(said.contains("doesn't yet support"), "{option}: {said}");
    }
}

#[test]
fn a_folder_keeps_the_case_of_names_that_it_was_made_with() {
    let mut serving = Serving::start(&["--lower-case-table-names=1"]);
    assert_eq!(serving.value("SELECT @@lower_case_table_names"), "1");
    let data = serving.folder.path().join("data");
    assert!(serving.terminate().success());
    let datadir = format!("--datadir={}", data.display());
    for value in ["0", "2"] {
        let word = format!("--lower-case-table-names={value}");
        let refused = porpoise(&["serve", "--no-defaults", &datadir, &word]);
        assert_eq!(refused.status.code(), Some(1), "{value}");
        let said = text(&refused.stderr);
        assert!(said.contains("lower_case_table_names"), "{value}: {said}");
    }
}

#[test]
fn the_error_log_and_the_process_number_are_files() {
    let options = ["--log-error=errors", "--pid-file=number", "--user=me"];
    let mut serving = Serving::start(&options);
    let place = |name: &str| serving.folder.path().join("data").join(name);
    let (errors, number) = (place("errors"), place("number"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let process = serving.child.id().to_string();
    assert_eq!(read(&number).trim(), process);
    assert!(read(&errors).contains("have no effect in Porpoise: user=me"));
    for (variable, path) in [("log_error", &errors), ("pid_file", &number)] {
        let shown = serving.value(&format!("SELECT @@{variable}"));
        assert_eq!(shown, path.display().to_string());
    }
    let said = read(&errors);
    assert!(
        said.contains(&format!("starting as process {process}\n")),
        "{said}"
    );
    assert!(said.contains("ready for connections on"), "{said}");
    assert!(serving.terminate().success());
    assert!(!number.exists());
    assert!(read(&errors).contains("shutdown complete\n"));

    let refused = porpoise(&[
        "serve",
        "--no-defaults",
        "--datadir=:memory:",
        "--log-error=/no/such/folder/errors",
    ]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("for error logging"));
}

#[test]
fn an_option_file_in_the_home_that_cannot_be_read_is_passed_over() {
    let home = tempfile::tempdir().unwrap();
    // What root can't read either.
    std::fs::create_dir(home.path().join(".porpoise.cnf")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_porpoise"))
        .args(["serve", "--datadir=:memory:", "--port=0", "--socket="])
        .env("HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut ready, mut warning) = (String::new(), String::new());
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut ready).unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut warning).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready.contains("ready for connections"), "{ready}{warning}");
    assert!(
        warning.contains("can't be read, and is ignored"),
        "{warning}"
    );
}

#[test]
fn output_that_nobody_reads_changes_nothing_about_how_a_command_ends() {
    let unread = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    for (arguments, code) in [
        (&["serve", "--help"][..], 0),
        (&["serve", "--no-defaults", "--print-defaults"], 0),
        (&["lab", "fuzz", "--show", "7"], 0),
        (&["lab", "report", "no_such_folder"], 1),
        (&["recover", "no_such_folder", "--into", "nowhere"], 1),
    ] {
        let run = |stdout: Stdio, stderr: Stdio| {
            Command::new(env!("CARGO_BIN_EXE_porpoise"))
                .args(arguments)
                .stdout(stdout)
                .stderr(stderr)
                .output()
                .unwrap()
        };
        // As in `porpoise … | head`, and as in `porpoise … 2>&1 | head`.
        let output = run(unread().into(), Stdio::piped());
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(!told.contains("panicked"), "{arguments:?}: {told}");
        let output = run(unread().into(), unread().into());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_below_stdout_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_porpoise"))
        .args(["lab", "fuzz", "--show", "7"])
        .stdout(
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(
        told.contains("stdout: ") && !told.contains("panicked"),
        "{told}"
    );
}
