//! Who waits for whom, and what performance_schema shows of it.

use std::thread::JoinHandle;
use std::time::{Duration as Time, Instant};

use super::accounts::login;
use super::database::{Db, beside};

/// Runs statements beside the test: the result of the last one, by its error's number.
fn beside_the_test(mut db: Db, statements: &[&str]) -> JoinHandle<(Db, Option<u16>)> {
    let statements: Vec<String> = statements.iter().map(|sql| sql.to_string()).collect();
    std::thread::spawn(move || {
        let mut error = None;
        for sql in statements {
            error = db.try_run(&sql).err().map(|error| error.number());
        }
        (db, error)
    })
}

/// Waits until so many sessions wait for locks.
fn until_waiting(db: &Db, sessions: usize) {
    let began = Instant::now();
    while db.engine.shared.locks.metadata.waiting() != sessions {
        assert!(began.elapsed() < Time::from_secs(30), "nobody waits");
        std::thread::sleep(Time::from_millis(2));
    }
}

const LOCKS: &str =
    "SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, LOCK_DURATION, LOCK_STATUS
    FROM performance_schema.metadata_locks ORDER BY OBJECT_TYPE, LOCK_STATUS, LOCK_TYPE";

#[test]
fn newcomers_stand_behind_a_waiting_alter() {
    let mut reader = Db::new();
    reader.run("CREATE TABLE t (a INT)");
    reader.run("INSERT INTO t VALUES (1)");
    let mut third = beside(&reader);
    let db = beside(&reader);
    reader.run("BEGIN");
    assert_eq!(reader.rows("SELECT * FROM t"), ["1"]);
    let altering = beside_the_test(db, &["ALTER TABLE t ADD b INT DEFAULT 5"]);
    until_waiting(&reader, 1);
    third.run("SET lock_wait_timeout = 1");
    third.fails("SELECT * FROM t", 1205);
    third.fails("INSERT INTO t VALUES (2)", 1205);
    // Who reads the table already reads on.
    assert_eq!(reader.rows("SELECT COUNT(*) FROM t"), ["1"]);
    third.run("SET lock_wait_timeout = 60");
    let reading = std::thread::spawn(move || third.rows("SELECT * FROM t"));
    until_waiting(&reader, 2);
    reader.run("COMMIT");
    assert_eq!(altering.join().expect("the ALTER").1, None);
    assert_eq!(reading.join().expect("the SELECT"), ["1|5"]);
}

#[test]
fn a_reader_that_wants_to_write_gives_way_to_a_waiting_alter() {
    let mut reader = Db::new();
    reader.run("CREATE TABLE t (a INT)");
    let db = beside(&reader);
    reader.run("BEGIN");
    reader.rows("SELECT * FROM t");
    let altering = beside_the_test(db, &["ALTER TABLE t ADD b INT"]);
    until_waiting(&reader, 1);
    reader.fails("INSERT INTO t VALUES (1)", 1213);
    // It has been rolled back, with its locks.
    assert_eq!(altering.join().expect("the ALTER").1, None);
    assert_eq!(reader.rows("SELECT COUNT(*) FROM t"), ["0"]);
}

#[test]
fn on_a_cycle_that_ddl_closes_the_light_one_is_refused() {
    let mut reader = Db::new();
    reader.run("CREATE TABLE t (a INT)");
    let (mut writer, db) = (beside(&reader), beside(&reader));
    let shown = beside(&reader);
    writer.run("BEGIN");
    writer.run("INSERT INTO t VALUES (1)");
    reader.run("BEGIN");
    reader.rows("SELECT * FROM t");
    let altering = beside_the_test(db, &["ALTER TABLE t ADD KEY (a)"]);
    until_waiting(&shown, 1);
    // Behind the ALTER, which waits for the writer.
    let inserting = beside_the_test(reader, &["INSERT INTO t VALUES (2)"]);
    until_waiting(&shown, 2);
    // Now the ALTER comes to wait for the reader.
    writer.run("COMMIT");
    assert_eq!(inserting.join().expect("the INSERT").1, Some(1213));
    assert_eq!(altering.join().expect("the ALTER").1, None);
}

#[test]
fn altering_lets_readers_in_while_it_waits_for_writers() {
    let mut writer = Db::new();
    writer.run("CREATE TABLE t (a INT)");
    let (mut other, db) = (beside(&writer), beside(&writer));
    writer.run("BEGIN");
    writer.run("INSERT INTO t VALUES (1)");
    let altering = beside_the_test(db, &["ALTER TABLE t ADD b INT DEFAULT 5, ALGORITHM=COPY"]);
    until_waiting(&writer, 1);
    assert_eq!(
        other.rows(LOCKS),
        [
            "BACKUP LOCK|NULL|NULL|INTENTION_EXCLUSIVE|TRANSACTION|GRANTED",
            "GLOBAL|NULL|NULL|INTENTION_EXCLUSIVE|STATEMENT|GRANTED",
            "SCHEMA|d|NULL|INTENTION_EXCLUSIVE|TRANSACTION|GRANTED",
            "TABLE|d|t|SHARED_UPGRADABLE|TRANSACTION|GRANTED",
            "TABLE|d|t|SHARED_WRITE|TRANSACTION|GRANTED",
            "TABLE|d|t|SHARED_NO_WRITE|TRANSACTION|PENDING",
        ]
    );
    assert_eq!(
        other.rows(
            "SELECT STATE, INFO FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting%'"
        ),
        ["Waiting for table metadata lock|ALTER TABLE t ADD b INT DEFAULT 5, ALGORITHM=COPY"]
    );
    other.run("SET lock_wait_timeout = 1");
    other.run("BEGIN");
    assert_eq!(other.rows("SELECT COUNT(*) FROM t"), ["0"]);
    other.fails("SELECT * FROM t FOR UPDATE", 1205);
    writer.run("COMMIT");
    // The rows are copied; the reader is still there.
    let mut third = beside(&writer);
    let ends = [
        "TABLE|d|t|SHARED_NO_WRITE|TRANSACTION|GRANTED",
        "TABLE|d|t|SHARED_READ|TRANSACTION|GRANTED",
        "TABLE|d|t|EXCLUSIVE|TRANSACTION|PENDING",
    ];
    let began = Instant::now();
    while third.rows(LOCKS)[3..] != ends {
        assert!(
            began.elapsed() < Time::from_secs(30),
            "{:?}",
            third.rows(LOCKS)
        );
    }
    other.run("COMMIT");
    assert_eq!(altering.join().expect("the ALTER").1, None);
    assert_eq!(third.rows("SELECT * FROM t"), ["1|5"]);
    assert!(third.rows(LOCKS).is_empty());
}

#[test]
fn dropping_a_view_waits_for_transactions_that_went_through_it() {
    let mut reader = Db::new();
    reader.run("CREATE TABLE t (a INT)");
    reader.run("CREATE VIEW v AS SELECT a FROM t");
    let (mut other, db) = (beside(&reader), beside(&reader));
    reader.run("BEGIN");
    reader.rows("SELECT * FROM v");
    let dropping = beside_the_test(db, &["DROP VIEW v"]);
    until_waiting(&reader, 1);
    assert_eq!(
        other.rows(LOCKS),
        [
            "BACKUP LOCK|NULL|NULL|INTENTION_EXCLUSIVE|TRANSACTION|GRANTED",
            "GLOBAL|NULL|NULL|INTENTION_EXCLUSIVE|STATEMENT|GRANTED",
            "SCHEMA|d|NULL|INTENTION_EXCLUSIVE|TRANSACTION|GRANTED",
            "TABLE|d|t|SHARED_READ|TRANSACTION|GRANTED",
            "TABLE|d|v|SHARED_READ|TRANSACTION|GRANTED",
            "TABLE|d|v|EXCLUSIVE|TRANSACTION|PENDING",
        ]
    );
    reader.run("COMMIT");
    assert_eq!(dropping.join().expect("the DROP").1, None);
    other.fails("SELECT * FROM v", 1146);
}

#[test]
fn a_view_replaced_keeps_its_lock() {
    let mut reader = Db::new();
    reader.run("CREATE TABLE t (a INT, b INT)");
    reader.run("INSERT INTO t VALUES (1, 2)");
    reader.run("CREATE VIEW v AS SELECT a FROM t");
    for replace in [
        "CREATE OR REPLACE VIEW v AS SELECT b FROM t",
        "ALTER VIEW v AS SELECT a FROM t",
        "RENAME TABLE v TO w",
    ] {
        let (mut third, db) = (beside(&reader), beside(&reader));
        reader.run("BEGIN");
        reader.rows("SELECT * FROM v");
        let replacing = beside_the_test(db, &[replace]);
        until_waiting(&reader, 1);
        let reading = std::thread::spawn(move || third.try_run("SELECT * FROM v").is_ok());
        until_waiting(&reader, 2);
        reader.run("COMMIT");
        assert_eq!(replacing.join().expect("the change").1, None, "{replace}");
        let still_there = !replace.starts_with("RENAME");
        assert_eq!(
            reading.join().expect("the SELECT"),
            still_there,
            "{replace}"
        );
    }
    assert_eq!(reader.rows("SELECT * FROM w"), ["1"]);
}

#[test]
fn dropping_a_database_locks_its_schema_and_waits_for_all_in_it() {
    let mut reader = Db::new();
    reader.run("CREATE DATABASE e");
    reader.run("CREATE TABLE e.t (a INT)");
    reader.run("CREATE VIEW e.v AS SELECT a FROM e.t");
    let (mut other, db) = (beside(&reader), beside(&reader));
    reader.run("BEGIN");
    reader.rows("SELECT * FROM e.t");
    let dropping = beside_the_test(db, &["DROP DATABASE e"]);
    until_waiting(&reader, 1);
    assert_eq!(
        other.rows(LOCKS),
        [
            "BACKUP LOCK|NULL|NULL|INTENTION_EXCLUSIVE|TRANSACTION|GRANTED",
            "GLOBAL|NULL|NULL|INTENTION_EXCLUSIVE|STATEMENT|GRANTED",
            "SCHEMA|e|NULL|EXCLUSIVE|TRANSACTION|GRANTED",
            "TABLE|e|t|SHARED_READ|TRANSACTION|GRANTED",
            "TABLE|e|t|EXCLUSIVE|TRANSACTION|PENDING",
            "TABLE|e|v|EXCLUSIVE|TRANSACTION|PENDING",
        ]
    );
    other.run("SET lock_wait_timeout = 1");
    other.fails("CREATE TABLE e.u (a INT)", 1205);
    other.fails("ALTER DATABASE e CHARACTER SET utf8mb4", 1205);
    other.run("CREATE TABLE u (a INT)");
    reader.run("COMMIT");
    assert_eq!(dropping.join().expect("the DROP").1, None);
    other.fails("CREATE TABLE e.u (a INT)", 1049);
}

#[test]
fn dropping_a_database_waits_for_ddl_in_it() {
    let mut reader = Db::new();
    reader.run("CREATE DATABASE e");
    reader.run("CREATE TABLE e.t (a INT)");
    let (db, second) = (beside(&reader), beside(&reader));
    reader.run("BEGIN");
    reader.rows("SELECT * FROM e.t");
    let altering = beside_the_test(db, &["ALTER TABLE e.t ADD b INT"]);
    until_waiting(&reader, 1);
    let dropping = beside_the_test(second, &["ALTER DATABASE e COLLATE utf8mb4_bin"]);
    until_waiting(&reader, 2);
    assert_eq!(
        reader.rows("SELECT LOCK_TYPE, LOCK_STATUS FROM performance_schema.metadata_locks WHERE OBJECT_TYPE = 'SCHEMA' ORDER BY LOCK_STATUS"),
        ["INTENTION_EXCLUSIVE|GRANTED", "EXCLUSIVE|PENDING"]
    );
    assert_eq!(
        reader.rows("SELECT STATE FROM information_schema.PROCESSLIST WHERE STATE LIKE '%schema%'"),
        ["Waiting for schema metadata lock"]
    );
    reader.run("COMMIT");
    assert_eq!(altering.join().expect("the ALTER").1, None);
    assert_eq!(dropping.join().expect("the other").1, None);
}

#[test]
fn a_lock_of_several_tables_stands_before_newcomers_on_each() {
    let mut db = Db::new();
    db.run("CREATE TABLE a (id INT PRIMARY KEY)");
    db.run("CREATE TABLE b (id INT PRIMARY KEY)");
    let mut writer = beside(&db);
    let mut third = beside(&db);
    writer.run("BEGIN");
    writer.run("INSERT INTO b VALUES (1)");
    let locking = beside_the_test(db, &["LOCK TABLES a WRITE, b WRITE", "UNLOCK TABLES"]);
    until_waiting(&writer, 1);
    third.run("SET lock_wait_timeout = 1");
    third.fails("SELECT * FROM a", 1205);
    // And who is in one of them can't go on to another.
    writer.fails("INSERT INTO a VALUES (1)", 1213);
    assert_eq!(locking.join().expect("the LOCK TABLES").1, None);
}

#[test]
fn a_statement_holds_none_of_its_tables_while_it_waits_for_one() {
    let mut db = Db::new();
    db.run("CREATE TABLE a (id INT PRIMARY KEY)");
    db.run("CREATE TABLE b (id INT PRIMARY KEY)");
    let (mut other, joining) = (beside(&db), beside(&db));
    db.run("LOCK TABLES b WRITE");
    let joining = beside_the_test(joining, &["SELECT * FROM a, b"]);
    until_waiting(&db, 1);
    other.run("SET lock_wait_timeout = 5");
    other.run("ALTER TABLE a ADD c INT");
    db.run("UNLOCK TABLES");
    assert_eq!(joining.join().expect("the SELECT").1, None);
}

#[test]
fn read_locks_and_readers_pass_each_other() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY)");
    let mut reader = beside(&db);
    reader.run("BEGIN");
    reader.rows("SELECT * FROM t");
    db.run("SET lock_wait_timeout = 5");
    db.run("LOCK TABLES t READ");
    assert_eq!(
        reader.rows(LOCKS),
        [
            "TABLE|d|t|SHARED_READ|TRANSACTION|GRANTED",
            "TABLE|d|t|SHARED_READ_ONLY|EXPLICIT|GRANTED",
        ]
    );
    db.fails("ALTER TABLE t ADD b INT", 1099);
    let inserting = beside_the_test(beside(&db), &["INSERT INTO t VALUES (1)"]);
    until_waiting(&db, 1);
    db.run("UNLOCK TABLES");
    assert_eq!(inserting.join().expect("the INSERT").1, None);
    reader.run("COMMIT");
    db.run("LOCK TABLES t WRITE");
    assert_eq!(
        db.rows("SELECT OBJECT_TYPE, LOCK_TYPE, LOCK_DURATION FROM performance_schema.metadata_locks ORDER BY 1"),
        [
            "GLOBAL|INTENTION_EXCLUSIVE|EXPLICIT",
            "SCHEMA|INTENTION_EXCLUSIVE|EXPLICIT",
            "TABLE|SHARED_NO_READ_WRITE|EXPLICIT",
        ]
    );
}

#[test]
fn a_killed_waiter_ends_at_once() {
    let mut reader = Db::new();
    reader.run("CREATE TABLE t (a INT)");
    reader.run("BEGIN");
    reader.rows("SELECT * FROM t");
    for (kill, sql) in [
        ("KILL QUERY", "ALTER TABLE t ADD b INT"),
        ("KILL", "DROP TABLE t"),
        ("KILL QUERY", "LOCK TABLES t WRITE"),
        ("KILL", "DROP DATABASE d"),
    ] {
        let waiter = beside(&reader);
        let id = waiter.session.id();
        let waiting = beside_the_test(waiter, &[sql]);
        until_waiting(&reader, 1);
        let killed = Instant::now();
        reader.run(&format!("{kill} {id}"));
        assert_eq!(waiting.join().expect("the waiter").1, Some(1317), "{sql}");
        assert!(killed.elapsed() < Time::from_secs(2), "{sql}");
        // What it stood before goes on.
        assert_eq!(beside(&reader).rows("SELECT COUNT(*) FROM t"), ["0"]);
    }
}

#[test]
fn flush_tables_with_read_lock_lets_those_commit_that_a_statement_waits_for() {
    let mut first = Db::new();
    first.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    first.run("INSERT INTO t VALUES (1, 1)");
    let (second, flusher, mut newcomer) = (beside(&first), beside(&first), beside(&first));
    first.run("BEGIN");
    first.run("UPDATE t SET v = 2");
    let updating = beside_the_test(second, &["UPDATE t SET v = v + 1"]);
    let changes = "GLOBAL|NULL|NULL|INTENTION_EXCLUSIVE|STATEMENT|GRANTED";
    while !newcomer.rows(LOCKS).iter().any(|lock| lock == changes) {
        std::thread::sleep(Time::from_millis(1));
    }
    let flushing = beside_the_test(flusher, &["FLUSH TABLES WITH READ LOCK"]);
    until_waiting(&first, 1);
    assert_eq!(
        newcomer.rows(LOCKS)[..2],
        [changes, "GLOBAL|NULL|NULL|SHARED|EXPLICIT|PENDING"]
    );
    newcomer.run("SET lock_wait_timeout = 1");
    newcomer.fails("INSERT INTO t VALUES (2, 2)", 1205);
    first.run("COMMIT");
    assert_eq!(updating.join().expect("the UPDATE").1, None);
    let (mut flusher, error) = flushing.join().expect("the FLUSH");
    assert_eq!(error, None);
    assert_eq!(
        newcomer.rows(LOCKS),
        [
            "COMMIT|NULL|NULL|SHARED|EXPLICIT|GRANTED",
            "GLOBAL|NULL|NULL|SHARED|EXPLICIT|GRANTED",
        ]
    );
    newcomer.fails("INSERT INTO t VALUES (2, 2)", 1205);
    let inserting = beside_the_test(
        newcomer,
        &["SET lock_wait_timeout = 60", "INSERT INTO t VALUES (2, 2)"],
    );
    until_waiting(&first, 1);
    flusher.run("UNLOCK TABLES");
    assert_eq!(inserting.join().expect("the INSERT").1, None);
}

#[test]
fn under_changes_of_all_kinds_everybody_comes_to_an_end() {
    const ROUNDS: usize = 25;
    let mut db = Db::new();
    for table in ["a", "b", "c"] {
        db.run(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, v INT)"));
        db.run(&format!("INSERT INTO {table} VALUES (1, 0), (2, 0)"));
    }
    db.run("CREATE VIEW w AS SELECT a.id, b.v FROM a, b WHERE a.id = b.id");
    let scripts: [&[&str]; 6] = [
        &[
            "BEGIN",
            "SELECT * FROM a",
            "UPDATE b SET v = v + 1",
            "COMMIT",
        ],
        &[
            "BEGIN",
            "SELECT * FROM w",
            "INSERT INTO c SELECT MAX(id) + 1, 0 FROM c",
            "COMMIT",
        ],
        &["UPDATE a SET v = v + 1", "SELECT * FROM a, b, c"],
        &[
            "ALTER TABLE a ADD x INT",
            "ALTER TABLE a DROP x",
            "TRUNCATE c",
        ],
        &[
            "LOCK TABLES a READ, b WRITE",
            "UPDATE b SET v = v + 1",
            "UNLOCK TABLES",
        ],
        &[
            "RENAME TABLE b TO e, e TO b",
            "CREATE OR REPLACE VIEW w AS SELECT id, v FROM a",
            "FLUSH TABLES WITH READ LOCK",
            "UNLOCK TABLES",
        ],
    ];
    let running = scripts.map(|script| {
        let mut session = beside(&db);
        std::thread::spawn(move || {
            session.run("SET lock_wait_timeout = 20");
            for _ in 0..ROUNDS {
                for sql in script {
                    match session.try_run(sql) {
                        Err(error) if ![1048, 1060, 1091, 1213, 1412].contains(&error.number()) => {
                            panic!("{sql}: {error}")
                        }
                        _ => {}
                    }
                }
            }
        })
    });
    for thread in running {
        thread.join().expect("no statement waited for ever");
    }
    assert!(db.rows(LOCKS).is_empty());
}

#[test]
fn the_process_list_tells_what_a_session_waits_for() {
    const STATE: &str = "SELECT STATE FROM information_schema.PROCESSLIST \
                         WHERE STATE <> 'executing' AND ID = ";
    let mut db = Db::new();
    db.rows("SELECT GET_LOCK('the lock', 0)");
    for (sql, state) in [
        ("SELECT GET_LOCK('the lock', 100)", "User lock"),
        ("SELECT SLEEP(100)", "User sleep"),
    ] {
        let waiter = beside(&db);
        let id = waiter.session.id();
        let waiting = std::thread::spawn(move || {
            let mut waiter = waiter;
            waiter.try_rows(sql).map(|_| ())
        });
        let shown = format!("{STATE}{id} AND INFO IS NOT NULL");
        let deadline = Instant::now() + Time::from_secs(10);
        let mut states = db.rows(&shown);
        while states.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Time::from_millis(5));
            states = db.rows(&shown);
        }
        assert_eq!(states, [state], "{sql}");
        db.run(&format!("KILL QUERY {id}"));
        // A SLEEP that is killed ends with 1, a GET_LOCK with an error.
        let _ = waiting.join().expect("it ends");
    }
}

#[test]
fn a_connection_that_has_run_nothing_is_as_old_as_it_is() {
    let mut db = Db::new();
    let silent = beside(&db);
    let age = format!(
        "SELECT TIME < 60 FROM information_schema.PROCESSLIST WHERE ID = {}",
        silent.session.id()
    );
    assert_eq!(db.rows(&age), ["1"]);
}

/// A change that was planned before a trigger was there, and waited for it, fires it.
#[test]
fn a_change_that_waits_for_create_trigger_fires_the_trigger() {
    let mut reader = Db::new();
    reader.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    let (creator, mut writer) = (beside(&reader), beside(&reader));
    writer.run("INSERT INTO t VALUES (1, 0)");
    reader.run("BEGIN");
    reader.rows("SELECT * FROM t");
    let trigger = "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.v = 7";
    let creating = beside_the_test(creator, &[trigger]);
    until_waiting(&reader, 1);
    let writing = beside_the_test(writer, &["INSERT INTO t VALUES (2, 0)"]);
    until_waiting(&reader, 2);
    assert_eq!(reader.rows("SELECT COUNT(*) FROM t"), ["1"]);
    reader.run("COMMIT");
    for waiting in [creating, writing] {
        let (_, error) = waiting.join().expect("a statement");
        assert_eq!(error, None);
    }
    assert_eq!(reader.rows("SELECT v FROM t ORDER BY id"), ["0", "7"]);
}

/// DDL on a routine waits for the transactions whose statements have called it, however they came to.
#[test]
fn dropping_a_function_waits_for_transactions_that_called_it() {
    let mut caller = Db::new();
    for sql in [
        "CREATE TABLE t (a INT)",
        "CREATE TABLE fired (a INT)",
        "CREATE PROCEDURE p() SET @x = 1",
        "CREATE FUNCTION f() RETURNS INT BEGIN CALL p(); RETURN 1; END",
        "CREATE FUNCTION g() RETURNS INT RETURN f()",
        "CREATE VIEW v AS SELECT g() AS x",
        "CREATE TRIGGER r BEFORE INSERT ON fired FOR EACH ROW SET NEW.a = f()",
    ] {
        caller.run(sql);
    }
    let mut dropper = beside(&caller);
    dropper.run("SET lock_wait_timeout = 1");
    for call in [
        "SELECT f()",
        "SELECT g()",
        "SELECT * FROM v",
        "UPDATE t SET a = f()",
        "INSERT INTO fired VALUES (2)",
    ] {
        caller.run("BEGIN");
        caller.try_run(call).expect(call);
        dropper.fails("DROP FUNCTION f", 1205);
        dropper.fails("DROP PROCEDURE IF EXISTS p", 1205);
        caller.run("COMMIT");
    }
    caller.run("BEGIN");
    caller.rows("SELECT f()");
    dropper.fails("ALTER FUNCTION f COMMENT 'c'", 1205);
    dropper.fails("DROP DATABASE d", 1205);
    // What calls it only through CALL doesn't hold it.
    dropper.run("DROP FUNCTION g");
    caller.run("COMMIT");
    caller.run("BEGIN");
    caller.run("CALL p()");
    dropper.run("ALTER PROCEDURE p COMMENT 'c'");
    caller.run("COMMIT");
}

#[test]
fn calls_stand_behind_a_waiting_drop_and_find_no_function_then() {
    let mut caller = Db::new();
    caller.run("CREATE FUNCTION f() RETURNS INT RETURN 1");
    let (dropper, other, mut shown) = (beside(&caller), beside(&caller), beside(&caller));
    caller.run("BEGIN");
    caller.rows("SELECT f()");
    let dropping = beside_the_test(dropper, &["DROP FUNCTION f"]);
    until_waiting(&caller, 1);
    assert_eq!(
        shown.rows(
            "SELECT STATE FROM information_schema.PROCESSLIST WHERE INFO = 'DROP FUNCTION f'"
        ),
        ["Waiting for stored function metadata lock"]
    );
    let locks = "SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, LOCK_STATUS
        FROM performance_schema.metadata_locks WHERE OBJECT_NAME = 'f' ORDER BY LOCK_STATUS";
    assert_eq!(
        shown.rows(locks),
        [
            "FUNCTION|d|f|SHARED|GRANTED",
            "FUNCTION|d|f|EXCLUSIVE|PENDING"
        ]
    );
    let calling = beside_the_test(other, &["SELECT f()"]);
    until_waiting(&caller, 2);
    // Who has called it calls it on.
    assert_eq!(caller.rows("SELECT f()"), ["1"]);
    caller.run("COMMIT");
    assert_eq!(dropping.join().expect("the DROP").1, None);
    assert_eq!(calling.join().expect("the call").1, Some(1305));
}

#[test]
fn dropping_a_trigger_waits_for_transactions_that_changed_its_table() {
    let mut writer = Db::new();
    writer.run("CREATE TABLE t (a INT)");
    writer.run("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1");
    let mut dropper = beside(&writer);
    dropper.run("SET lock_wait_timeout = 1");
    writer.run("BEGIN");
    writer.run("INSERT INTO t VALUES (2)");
    dropper.fails("DROP TRIGGER r", 1205);
    writer.run("COMMIT");
    dropper.run("DROP TRIGGER r");
}

#[test]
fn who_may_not_drop_a_routine_or_trigger_waits_for_nobody() {
    let mut caller = Db::new();
    for sql in [
        "CREATE USER u",
        "CREATE TABLE t (a INT)",
        "GRANT SELECT ON d.t TO u",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = f()",
        "BEGIN",
        "INSERT INTO t VALUES (2)",
    ] {
        caller.run(sql);
    }
    let mut user = login(&caller, "u");
    // Whoever waited would fail with 1205.
    user.run("SET lock_wait_timeout = 1");
    user.fails("DROP TRIGGER d.r", 1142);
    user.fails("DROP FUNCTION d.f", 1370);
    user.fails("ALTER FUNCTION d.f COMMENT 'c'", 1370);
    user.fails("DROP DATABASE d", 1044);
}
