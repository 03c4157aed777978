//! Options that protect or limit: what a server does with them. What MariaDB does too is shown on
//! MariaDB as well.

use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::{Error, Reply, Wire};

const BOTH: [Product; 2] = [Product::MariaDb, Product::Porpoise];

/// The number of the error, 0 for none.
fn error(outcome: Result<Reply, Error>) -> u16 {
    match outcome {
        Ok(_) => 0,
        Err(Error::Server { number, .. }) => number,
        Err(other) => panic!("{other}"),
    }
}

fn message(outcome: Result<Reply, Error>) -> String {
    match outcome {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// A server with the table `d.t`, and the account `low`, which may do everything in `d`.
fn start(product: Product, options: &[&str]) -> (Server, Wire) {
    let server = Server::start_with(product, options);
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO d.t VALUES (1, 1)",
        "CREATE USER low@localhost",
        "GRANT ALL ON d.* TO low@localhost",
        "GRANT ALL ON e.* TO low@localhost",
        "GRANT CREATE USER, RELOAD ON *.* TO low@localhost",
    ] {
        root.query(sql).unwrap();
    }
    (server, root)
}

/// Statements of an ordinary account on a server with `read_only`, and the errors they get.
const ON_READ_ONLY: &[(&str, u16)] = &[
    ("SELECT * FROM t", 0),
    ("SELECT * FROM t FOR UPDATE", 1290),
    ("SELECT * FROM t LOCK IN SHARE MODE", 0),
    ("INSERT INTO t VALUES (2, 2)", 1290),
    ("REPLACE INTO t VALUES (2, 2)", 1290),
    ("UPDATE t SET v = 2 WHERE id = 77", 1290),
    ("DELETE FROM t WHERE id = 77", 1290),
    ("INSERT INTO t SELECT * FROM t WHERE 0", 1290),
    ("CREATE TEMPORARY TABLE own (id INT)", 0),
    ("INSERT INTO own VALUES (1)", 0),
    ("INSERT INTO own SELECT id FROM t", 0),
    ("UPDATE t, own SET own.id = 5 WHERE t.id = 1", 0),
    ("ALTER TABLE own ADD v INT", 0),
    ("BEGIN", 0),
    ("UPDATE own SET id = 6", 0),
    ("COMMIT", 0),
    ("TRUNCATE own", 0),
    ("DROP TEMPORARY TABLE own", 0),
    ("CREATE TABLE other (id INT)", 1290),
    ("CREATE TABLE other AS SELECT * FROM t", 1290),
    ("ALTER TABLE t ADD x INT", 1290),
    ("CREATE INDEX i ON t (v)", 1290),
    ("RENAME TABLE t TO other", 1290),
    ("TRUNCATE t", 1290),
    ("DROP TABLE t", 1290),
    ("CREATE VIEW w AS SELECT 1", 1290),
    ("CREATE DATABASE e", 1290),
    ("DROP DATABASE d", 1290),
    ("CREATE USER new@localhost", 1290),
    ("DROP USER new@localhost", 1290),
    ("LOCK TABLES t READ", 0),
    ("UNLOCK TABLES", 0),
    ("LOCK TABLES t WRITE", 1290),
    ("START TRANSACTION READ WRITE", 1290),
    ("START TRANSACTION", 0),
    ("SAVEPOINT s", 0),
    ("COMMIT", 0),
    ("FLUSH TABLES", 0),
    ("PREPARE p FROM 'INSERT INTO t VALUES (3, 3)'", 0),
    ("EXECUTE p", 1290),
];

#[test]
fn a_read_only_server_takes_no_changes_of_ordinary_accounts() {
    for product in BOTH {
        let (server, mut root) = start(product, &[]);
        let mut low = server.log_in(Route::UnixSocket, "low", "d").unwrap();
        root.query("SET GLOBAL read_only = ON").unwrap();
        for (sql, expected) in ON_READ_ONLY {
            assert_eq!(error(low.query(sql)), *expected, "{product:?}: {sql}");
        }
        let refused = message(low.query("DELETE FROM t"));
        let words = "server is running with the --read-only option so it cannot execute this";
        assert!(refused.contains(words), "{refused}");
        // An administrator may.
        root.query("INSERT INTO d.t VALUES (9, 9)").unwrap();
        root.query("SET GLOBAL read_only = OFF").unwrap();
        low.query("DELETE FROM t WHERE id = 9").unwrap();
    }
}

#[test]
fn super_read_only_takes_no_changes_of_anybody() {
    let (server, mut root) = start(Product::Porpoise, &["--read-only"]);
    let mut low = server.log_in(Route::UnixSocket, "low", "d").unwrap();
    assert_eq!(error(low.query("DELETE FROM t")), 1290);
    root.query("SET GLOBAL super_read_only = ON").unwrap();
    assert_eq!(
        root.value("SELECT CONCAT(@@read_only, @@super_read_only)"),
        "11"
    );
    for sql in [
        "DELETE FROM d.t",
        "CREATE DATABASE e",
        "DROP USER low@localhost",
    ] {
        let refused = message(root.query(sql));
        assert!(
            refused.contains("--super-read-only option"),
            "{sql}: {refused}"
        );
    }
    root.query("CREATE TEMPORARY TABLE d.own (id INT)").unwrap();
    root.query("INSERT INTO d.own VALUES (1)").unwrap();
    root.query("SET GLOBAL read_only = OFF").unwrap();
    assert_eq!(
        root.value("SELECT CONCAT(@@read_only, @@super_read_only)"),
        "00"
    );
    root.query("DELETE FROM d.t").unwrap();
}

#[test]
fn read_only_waits_for_changes_and_ends_transactions_that_made_some() {
    for product in BOTH {
        let (server, mut root) = start(product, &[]);
        let mut low = server.log_in(Route::UnixSocket, "low", "d").unwrap();
        // The session's own transaction and locked tables are in its way.
        for (before, after) in [
            ("BEGIN", "COMMIT"),
            ("LOCK TABLES d.t READ", "UNLOCK TABLES"),
        ] {
            root.query(before).unwrap();
            assert_eq!(error(root.query("SET GLOBAL read_only = ON")), 1192);
            root.query(after).unwrap();
        }
        low.query("BEGIN").unwrap();
        low.query("INSERT INTO t VALUES (2, 2)").unwrap();
        root.query("SET GLOBAL read_only = ON").unwrap();
        assert_eq!(error(low.query("COMMIT")), 1290, "{product:?}");
        assert_eq!(low.value("SELECT COUNT(*) FROM t WHERE id = 2"), "0");
        root.query("SET GLOBAL read_only = OFF").unwrap();

        // It waits for tables that others have locked to write them.
        low.query("LOCK TABLES t WRITE").unwrap();
        root.query("SET SESSION lock_wait_timeout = 1").unwrap();
        assert_eq!(error(root.query("SET GLOBAL read_only = ON")), 1205);
        low.query("UNLOCK TABLES").unwrap();
        root.query("SET GLOBAL read_only = ON").unwrap();
        assert_eq!(error(low.query("DELETE FROM t")), 1290, "{product:?}");
    }
}

#[test]
fn a_server_that_requires_secure_transport_takes_no_plain_tcp() {
    let (server, mut root) = start(Product::Porpoise, &["--require-secure-transport"]);
    let refused = server
        .connect(Route::Tcp, "")
        .err()
        .map(|error| error.to_string());
    let words = "Connections using insecure transport are prohibited while \
                 --require_secure_transport=ON.";
    assert!(refused.is_some_and(|refused| refused.contains(words)));
    for route in [Route::UnixSocket, Route::SharedMemory] {
        server.connect(route, "").unwrap();
    }
    root.query("SET GLOBAL require_secure_transport = OFF")
        .unwrap();
    server.connect(Route::Tcp, "").unwrap();
    root.query("SET GLOBAL require_secure_transport = ON")
        .unwrap();
    assert!(server.connect(Route::Tcp, "").is_err());
}

#[test]
fn init_connect_runs_for_ordinary_accounts() {
    for product in BOTH {
        let options = "--init-connect=SET @greeted = 'yes'; SET sql_safe_updates = 1";
        let (server, mut root) = start(product, &[options]);
        assert_eq!(root.value("SELECT IFNULL(@greeted, 'no')"), "no");
        let mut low = server.log_in(Route::UnixSocket, "low", "d").unwrap();
        assert_eq!(low.value("SELECT @greeted"), "yes");
        assert_eq!(low.value("SELECT @@sql_safe_updates"), "1");
        // What it changes is committed.
        root.query("SET GLOBAL init_connect = 'INSERT INTO d.t VALUES (CONNECTION_ID() + 99, 0)'")
            .unwrap();
        server
            .log_in(Route::UnixSocket, "low", "d")
            .unwrap()
            .query("DO 1")
            .unwrap();
        assert_eq!(root.value("SELECT COUNT(*) FROM d.t WHERE id > 99"), "1");
        // A statement that fails ends the connection.
        root.query("SET GLOBAL init_connect = 'SELECT nonsense'")
            .unwrap();
        let outcome = server.log_in(Route::UnixSocket, "low", "d");
        assert!(outcome.and_then(|mut low| low.query("DO 1")).is_err());
        root.query("DO 1").unwrap();
        assert!(server.log().contains("init_connect"), "{}", server.log());
        server.connect(Route::UnixSocket, "").unwrap();
    }
}

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_general_log_has_what_clients_ask_for_and_no_passwords() {
    let (server, mut root) = start(Product::Porpoise, &["--general-log-file=general"]);
    let log = server.folder().join("data/general");
    root.query("SELECT 'before'").unwrap();
    assert!(!log.exists());
    root.query("SET GLOBAL general_log = ON").unwrap();
    root.query("SELECT 'logged'").unwrap();
    root.query("ALTER USER low@localhost IDENTIFIED BY 'hidden'")
        .unwrap();
    root.query("ALTER USER low@localhost IDENTIFIED BY ''")
        .unwrap();
    let mut low = server.log_in(Route::UnixSocket, "low", "d").unwrap();
    low.query("SET NAMES utf8mb4").unwrap();
    let text = read(&log);
    let has_line = |end: &str| text.lines().any(|line| line.ends_with(end));
    assert!(has_line("Query\tSELECT 'logged'"), "{text}");
    assert!(
        has_line("Connect\tlow@localhost on d using Socket"),
        "{text}"
    );
    assert!(has_line(
        "Query\tALTER USER low@localhost IDENTIFIED <secret>"
    ));
    assert!(
        !text.contains("hidden") && !text.contains("before"),
        "{text}"
    );

    // A file that was renamed is let go of by FLUSH LOGS.
    let renamed = log.with_extension("1");
    std::fs::rename(&log, &renamed).unwrap();
    root.query("FLUSH LOGS").unwrap();
    root.query("SELECT 'afterwards'").unwrap();
    assert!(read(&log).contains("SELECT 'afterwards'"));
    assert!(!read(&renamed).contains("SELECT 'afterwards'"));
    root.query("SET sql_log_off = ON").unwrap();
    root.query("SELECT 'unlogged'").unwrap();
    root.query("SET sql_log_off = OFF, GLOBAL general_log = OFF")
        .unwrap();
    root.query("SELECT 'unlogged'").unwrap();
    assert!(!read(&log).contains("unlogged"));
}

#[test]
fn the_slow_query_log_has_what_took_longer_than_long_query_time() {
    let options = [
        "--slow-query-log",
        "--slow-query-log-file=slow",
        "--long-query-time=0.5",
    ];
    let (server, mut root) = start(Product::Porpoise, &options);
    root.query("USE d").unwrap();
    root.query("SELECT SLEEP(0.6), 'slow one'").unwrap();
    root.query("SET long_query_time = 100").unwrap();
    root.query("SELECT SLEEP(0.6), 'quick one'").unwrap();
    let text = read(&server.folder().join("data/slow"));
    let entry = text
        .split("# Time: ")
        .find(|entry| entry.contains("slow one"));
    let entry = entry.unwrap_or_else(|| panic!("{text}"));
    assert!(
        entry.contains("# User@Host: root[root] @ localhost []"),
        "{entry}"
    );
    assert!(entry.contains("# Query_time: 0.") || entry.contains("# Query_time: 1."));
    assert!(
        entry.contains("Rows_sent: 1  Rows_examined: 0\nuse d;\nSET timestamp="),
        "{entry}"
    );
    assert!(
        entry.ends_with(";\nSELECT SLEEP(0.6), 'slow one';\n"),
        "{entry}"
    );
    assert!(!text.contains("quick one"));
}

#[test]
fn logs_are_tables_or_files_or_both_as_log_output_says() {
    let options = ["--general-log-file=general", "--slow-query-log-file=slow"];
    let (server, mut root) = start(Product::Porpoise, &options);
    let file = server.folder().join("data/general");
    for setup in [
        "SET GLOBAL log_output = 'table', GLOBAL general_log = ON, GLOBAL slow_query_log = ON",
        "USE d",
        "SELECT 'to \"both\"\n'",
        "ALTER USER low@localhost IDENTIFIED BY 'hidden'",
        "ALTER USER low@localhost IDENTIFIED BY ''",
        "SET long_query_time = 0.5, time_zone = '+01:00'",
        "SELECT SLEEP(0.6), 'slow one'",
        "SET GLOBAL slow_query_log = OFF",
    ] {
        root.query(setup).unwrap();
    }
    assert!(!file.exists());
    let logged = "FROM mysql.general_log WHERE argument LIKE";
    let own = "thread_id = CONNECTION_ID() AND server_id = 1
               AND ABS(TIMESTAMPDIFF(SECOND, event_time, NOW())) < 100";
    let entry = format!(
        "SELECT CONCAT_WS('|', user_host, command_type, CONVERT(argument USING utf8mb4), {own})
         {logged} 'SELECT \\'to %'"
    );
    assert_eq!(
        root.value(&entry),
        "root[root] @ localhost []|Query|SELECT 'to \"both\"\n'|1"
    );
    assert_eq!(
        root.value(&format!("SELECT COUNT(*) {logged} CONCAT('%hid', 'den%')")),
        "0"
    );
    assert_eq!(
        root.value(&format!("SELECT COUNT(*) {logged} 'ALTER USER%<secret>'")),
        "2"
    );
    assert_eq!(
        root.value(
            "SELECT CONCAT_WS('|', COUNT(*), MAX(user_host), MIN(query_time) >= '00:00:00.5',
                              MAX(rows_sent), MAX(db), MAX(CONVERT(sql_text USING utf8mb4)))
             FROM mysql.slow_log"
        ),
        "1|root[root] @ localhost []|1|1|d|SELECT SLEEP(0.6), 'slow one'"
    );

    // Both, in MySQL's order; a number is bits.
    root.query("SET GLOBAL log_output = 'TABLE,FILE'").unwrap();
    assert_eq!(root.value("SELECT @@log_output"), "FILE,TABLE");
    root.query("SELECT 'everywhere'").unwrap();
    assert!(read(&file).contains("SELECT 'everywhere'"));
    let count = format!("SELECT COUNT(*) {logged} 'SELECT \\'everywhere%'");
    assert_eq!(root.value(&count), "1");
    // NONE counts more than what stands beside it.
    root.query("SET GLOBAL log_output = 5").unwrap();
    assert_eq!(root.value("SELECT @@log_output"), "NONE,TABLE");
    root.query("SELECT 'everywhere'").unwrap();
    assert_eq!(root.value(&count), "1");
    for wrong in ["''", "'FILE,SHELF'", "8", "0", "NULL"] {
        let refused = root.query(&format!("SET GLOBAL log_output = {wrong}"));
        assert!(refused.is_err(), "{wrong}");
    }

    root.query("TRUNCATE TABLE mysql.general_log").unwrap();
    assert_eq!(root.value("SELECT COUNT(*) FROM mysql.general_log"), "0");
    root.query("SET GLOBAL log_output = 'TABLE'").unwrap();
    root.query("SELECT 'afterwards'").unwrap();
    root.query("SET GLOBAL general_log = OFF").unwrap();
    assert_eq!(root.value("SELECT COUNT(*) FROM mysql.general_log"), "2");
}

#[test]
fn the_slow_query_log_tells_of_rows_read_whole_tables_and_waits() {
    let options = [
        "--slow-query-log",
        "--slow-query-log-file=slow",
        "--log-queries-not-using-indexes",
    ];
    for product in BOTH {
        let (server, mut root) = start(product, &options);
        for setup in [
            "CREATE TABLE d.many (id INT PRIMARY KEY, n INT, KEY (n))",
            "INSERT INTO d.many WITH RECURSIVE s (n) AS
             (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 200) SELECT n, n FROM s",
            "SET SESSION min_examined_row_limit = 3",
        ] {
            root.query(setup).unwrap();
        }
        for sql in [
            "SELECT 'whole', MAX(id + n) FROM d.many IGNORE INDEX (n)",
            "SELECT 'by key', id, n FROM d.many WHERE id IN (1, 2, 3)",
        ] {
            root.query(sql).unwrap();
        }
        root.query("SET SESSION min_examined_row_limit = 201")
            .unwrap();
        root.query("SELECT 'too few', MAX(n + 2) FROM d.many")
            .unwrap();
        let text = read(&server.folder().join("data/slow"));
        let entry = |name: &str| text.split("# User@Host").find(|e| e.contains(name));
        let whole = entry("'whole'").unwrap_or_else(|| panic!("{product:?}: {text}"));
        assert!(whole.contains("Rows_examined: 200"), "{product:?}: {whole}");
        for absent in ["'by key'", "'too few'"] {
            assert_eq!(entry(absent), None, "{product:?}: {absent}");
        }
    }
}

#[test]
fn the_slow_query_log_tells_how_long_a_statement_waited_for_locks() {
    let options = ["--slow-query-log", "--slow-query-log-file=slow"];
    let (server, mut root) = start(Product::Porpoise, &options);
    root.query("CREATE TABLE d.waited (id INT PRIMARY KEY)")
        .unwrap();
    root.query("INSERT INTO d.waited VALUES (1)").unwrap();
    for (hold, wait) in [
        (
            "DELETE FROM d.waited",
            "UPDATE d.waited SET id = 5 WHERE id = 1",
        ),
        ("SELECT * FROM d.waited", "ALTER TABLE d.waited ADD n INT"),
    ] {
        root.query("BEGIN").unwrap();
        root.query(hold).unwrap();
        let mut other = server.connect(Route::UnixSocket, "d").unwrap();
        let waits = std::thread::spawn(move || {
            other.query("SET long_query_time = 0.2").unwrap();
            other.query(wait).unwrap();
        });
        std::thread::sleep(std::time::Duration::from_millis(400));
        root.query("ROLLBACK").unwrap();
        waits.join().unwrap();
        let text = read(&server.folder().join("data/slow"));
        let entry = text.split("# User@Host").find(|entry| entry.contains(wait));
        let entry = entry.unwrap_or_else(|| panic!("{text}"));
        let waited = entry
            .split("Lock_time: ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let waited: f64 = waited.and_then(|text| text.parse().ok()).unwrap();
        assert!((0.2..60.0).contains(&waited), "{entry}");
    }
}

#[test]
fn sessions_have_no_more_prepared_statements_than_max_prepared_stmt_count() {
    for product in BOTH {
        let (server, mut root) = start(product, &["--max-prepared-stmt-count=2"]);
        let mut low = server.log_in(Route::UnixSocket, "low", "d").unwrap();
        root.query("PREPARE a FROM 'SELECT 1'").unwrap();
        low.query("PREPARE a FROM 'SELECT 1'").unwrap();
        assert_eq!(error(low.query("PREPARE b FROM 'SELECT 1'")), 1461);
        low.query("PREPARE a FROM 'SELECT 2'").unwrap();
        root.query("DEALLOCATE PREPARE a").unwrap();
        low.query("PREPARE b FROM 'SELECT 1'").unwrap();
        low.reset().unwrap();
        root.query("PREPARE a FROM 'SELECT 1'").unwrap();
        root.query("PREPARE b FROM 'SELECT 1'").unwrap();
    }
}
