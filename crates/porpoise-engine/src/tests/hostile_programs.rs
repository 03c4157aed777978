//! Programs that never end, are too deep or too long, or whose tables and definers go away.

use std::thread;
use std::time::{Duration, Instant};

use porpoise_core::error::Result;
use porpoise_mdl::process::Command;

use super::accounts::login;
use super::database::{Db, beside};

/// How long a statement that was told to end may go on: much longer than it does.
const END_MAX: Duration = Duration::from_secs(10);

/// Runs a statement in a session of its own, which has begun it when this returns.
fn begin(db: &Db, sql: &'static str) -> (Db, thread::JoinHandle<Result<()>>) {
    let mut session = beside(db);
    let control = session.session.control().clone();
    let watcher = beside(db);
    let running = thread::spawn(move || session.try_run(sql).map(drop));
    while control.process().command != Command::Query {
        thread::yield_now();
    }
    let mut watcher = watcher;
    watcher.run(&format!("SET @id = {}", control.id));
    (watcher, running)
}

#[track_caller]
fn ends_with(number: u16, running: thread::JoinHandle<Result<()>>, what: &str) {
    let deadline = Instant::now() + END_MAX;
    while !running.is_finished() {
        assert!(Instant::now() < deadline, "{what} goes on");
        thread::sleep(Duration::from_millis(1));
    }
    let ended = running.join().expect("the statement");
    assert_eq!(ended.expect_err(what).number(), number, "{what}");
}

#[test]
fn a_program_that_never_ends_is_killed_at_once() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT)");
    db.run("CREATE PROCEDURE loops() BEGIN l: LOOP ITERATE l; END LOOP; END");
    db.run("CREATE PROCEDURE selects() BEGIN WHILE 1 DO SELECT COUNT(*) INTO @n FROM t; END WHILE; END");
    db.run(
        "CREATE PROCEDURE handles() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; \
         REPEAT SIGNAL SQLSTATE '45000'; UNTIL 0 END REPEAT; END",
    );
    db.run("CREATE PROCEDURE handles_all() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION CALL loops(); CALL loops(); END");
    db.run("CREATE FUNCTION returns_never() RETURNS INT BEGIN WHILE 1 DO SET @x = 1; END WHILE; RETURN 1; END");
    db.run(
        "CREATE TRIGGER fires_for_ever BEFORE INSERT ON t FOR EACH ROW SET NEW.a = returns_never()",
    );
    for sql in [
        "CALL loops()",
        "CALL selects()",
        "CALL handles()",
        "CALL handles_all()",
        "SELECT returns_never()",
        "INSERT INTO t VALUES (1)",
    ] {
        let (mut watcher, running) = begin(&db, sql);
        watcher.run("KILL QUERY @id");
        ends_with(1317, running, sql);
    }
    assert_eq!(db.rows("SELECT COUNT(*) FROM t"), ["0"]);
}

#[test]
fn a_table_that_is_dropped_ends_the_program_that_uses_it() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT)");
    db.run("CREATE TABLE u (a INT)");
    db.run("CREATE PROCEDURE changes() BEGIN WHILE 1 DO INSERT INTO t VALUES (1); DELETE FROM t; END WHILE; END");
    let (mut watcher, running) = begin(&db, "CALL changes()");
    watcher.run("ALTER TABLE t ADD COLUMN b INT DEFAULT 7");
    // It has one value for two columns now.
    ends_with(1136, running, "another column");
    db.run(
        "CREATE PROCEDURE counts() BEGIN WHILE 1 DO SELECT COUNT(*) INTO @n FROM u; END WHILE; END",
    );
    let (mut watcher, running) = begin(&db, "CALL counts()");
    watcher.run("DROP TABLE u");
    ends_with(1146, running, "no table");
    // A program may drop what it has used, and itself.
    db.run("CREATE TABLE u (a INT)");
    db.run("CREATE PROCEDURE drops() BEGIN SELECT COUNT(*) INTO @n FROM u; DROP TABLE u; SELECT COUNT(*) INTO @n FROM u; END");
    db.fails("CALL drops()", 1146);
}

#[test]
fn recursion_has_a_limit() {
    let mut db = Db::new();
    db.run("CREATE PROCEDURE itself(n INT) BEGIN SET @depth = n; CALL itself(n + 1); END");
    db.fails("CALL itself(0)", 1456);
    assert_eq!(db.rows("SELECT @depth"), ["0"]);
    db.run("SET max_sp_recursion_depth = 255");
    db.fails("CALL itself(0)", 1456);
    assert_eq!(db.rows("SELECT @depth"), ["255"]);
    db.run("CREATE FUNCTION itself(n INT) RETURNS INT RETURN itself(n + 1)");
    db.fails("SELECT itself(0)", 1424);
    db.run(
        "CREATE PROCEDURE by_prepared() BEGIN PREPARE s FROM 'CALL by_prepared()'; EXECUTE s; END",
    );
    assert!(db.try_run("CALL by_prepared()").is_err());
    db.run("CREATE TABLE t (a INT)");
    db.run("CREATE TRIGGER again AFTER INSERT ON t FOR EACH ROW INSERT INTO t VALUES (NEW.a + 1)");
    db.fails("INSERT INTO t VALUES (1)", 1442);
}

#[test]
fn a_handler_that_fails_ends_its_block_with_its_own_error() {
    let mut db = Db::new();
    db.run("CREATE PROCEDURE fails() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT * FROM no_table; SIGNAL SQLSTATE '45000'; END");
    db.fails("CALL fails()", 1146);
    db.run("CREATE PROCEDURE takes() BEGIN DECLARE EXIT HANDLER FOR 1146 SET @taken = 1; CALL fails(); END");
    db.run("CALL takes()");
    assert_eq!(db.rows("SELECT @taken"), ["1"]);
}

#[test]
fn a_definer_that_is_gone_runs_nothing() {
    let mut db = Db::new();
    db.run("CREATE USER made@localhost");
    db.run("CREATE TABLE t (a INT)");
    db.run("CREATE DEFINER = made@localhost PROCEDURE p() SELECT 1");
    db.run("CREATE DEFINER = made@localhost FUNCTION f() RETURNS INT RETURN 1");
    db.run(
        "CREATE DEFINER = made@localhost TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
    );
    db.run("CREATE USER caller");
    db.run("GRANT ALL ON *.* TO caller");
    db.run("DROP USER made@localhost");
    let mut session = login(&db, "caller");
    session.run(&format!("USE {}", db.rows("SELECT DATABASE()")[0]));
    for sql in ["CALL p()", "SELECT f()", "INSERT INTO t VALUES (2)"] {
        session.fails(sql, 1449);
    }
    assert_eq!(db.rows("SELECT COUNT(*) FROM t"), ["0"]);
}

#[test]
fn a_program_may_have_a_megabyte_but_not_any_depth() {
    let mut db = Db::new();
    let steps = "SET x = x + 1; ".repeat(70_000);
    db.run(&format!(
        "CREATE PROCEDURE lengthy() BEGIN DECLARE x INT DEFAULT 0; {steps} SELECT x; END"
    ));
    assert_eq!(db.rows("CALL lengthy()"), ["70000"]);
    let arms = "ELSEIF 0 THEN SET @x = 2; ".repeat(40_000);
    db.run(&format!(
        "CREATE PROCEDURE wide() IF 0 THEN SET @x = 1; {arms} ELSE SET @x = 3; END IF"
    ));
    db.run("CALL wide()");
    assert_eq!(db.rows("SELECT @x"), ["3"]);
    let (begins, ends) = ("BEGIN ".repeat(100_000), "END; ".repeat(99_999));
    db.fails(
        &format!("CREATE PROCEDURE deep() {begins} SET @x = 1; {ends} END"),
        1436,
    );
}
