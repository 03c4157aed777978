//! Statements that lock more rows than memory shall hold locks for: they lock the table.

use std::time::{Duration, Instant};

use super::database::{Db, beside};
use super::transaction_memory::used_by_all;

const ROWS: u32 = 20_000;
/// For about 2,000 row locks.
const LIMIT: u64 = 1 << 20;

/// A table with keys of 1 to 20,000, and one that refers to it.
fn fill(db: &mut Db) {
    db.run(&format!("SET cte_max_recursion_depth = {ROWS}"));
    db.run("CREATE TABLE t (id INT PRIMARY KEY, k INT, u INT, UNIQUE KEY (u))");
    db.run(&format!(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         SELECT i, i, i FROM n"
    ));
    db.run("CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))");
    db.run("INSERT INTO c VALUES (1, 1)");
}

fn database() -> Db {
    let mut db = Db::new();
    fill(&mut db);
    db.run(&format!("SET statement_memory_limit = {LIMIT}"));
    db
}

/// A session that waits a second for rows.
fn impatient(db: &Db) -> Db {
    let mut other = beside(db);
    other.run("SET innodb_lock_wait_timeout = 1");
    other
}

fn escalations(db: &mut Db) -> String {
    let rows = db.rows("SHOW STATUS LIKE 'Porpoise_lock_escalations'");
    rows.concat().replace("Porpoise_lock_escalations|", "")
}

#[track_caller]
fn until_waiting(db: &mut Db) {
    let began = Instant::now();
    let waits = "SHOW STATUS LIKE 'Innodb_row_lock_current_waits'";
    while db.rows(waits) == ["Innodb_row_lock_current_waits|0"] {
        assert!(began.elapsed().as_secs() < 30, "nobody waits");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_transaction_that_locks_very_many_rows_takes_no_more_memory_and_keeps_others_out() {
    for (locking, is_exclusive) in [("FOR UPDATE", true), ("FOR SHARE", false)] {
        let mut db = database();
        let mut other = impatient(&db);
        db.run("BEGIN");
        let read = format!("SELECT COUNT(*), SUM(k) FROM t {locking}");
        assert_eq!(db.rows(&read), ["20000|200010000"]);
        assert_eq!(escalations(&mut db), "1");
        assert!(used_by_all(&db) < LIMIT / 2, "{}", used_by_all(&db));
        assert_eq!(db.rows(&read), ["20000|200010000"]);
        // Reads, and other tables, are as ever.
        assert_eq!(other.rows("SELECT k FROM t WHERE id = 20000"), ["20000"]);
        other.run("UPDATE c SET p = NULL WHERE id = 1");
        other.fails("SELECT * FROM t WHERE id = 20000 FOR UPDATE NOWAIT", 3572);
        let skipped = other.rows("SELECT * FROM t WHERE id >= 19999 FOR UPDATE SKIP LOCKED");
        assert!(skipped.is_empty());
        other.fails("UPDATE t SET k = 0 WHERE id = 20000", 1205);
        other.fails("DELETE FROM t WHERE u = 20000", 1205);
        // A key that isn't there is the transaction's, too.
        other.fails("INSERT INTO t VALUES (20001, 1, 20001)", 1205);
        let shared = "SELECT k FROM t WHERE id = 20000 FOR SHARE";
        let child = "INSERT INTO c VALUES (2, 20000)";
        if is_exclusive {
            other.fails(shared, 1205);
            other.fails(child, 1205);
        } else {
            assert_eq!(other.rows(shared), ["20000"]);
            other.run(child);
        }
        db.run("COMMIT");
        assert_eq!(used_by_all(&db), 0);
        other.run("UPDATE t SET k = 0 WHERE id = 20000");
        other.run("INSERT INTO t VALUES (20001, 1, 20001)");
        assert_eq!(escalations(&mut db), "1");
    }
}

#[test]
fn inserts_of_very_many_rows_keep_their_keys() {
    let mut db = database();
    db.run("CREATE TABLE s LIKE t");
    db.run("INSERT INTO s VALUES (0, 0, 0)");
    let mut other = impatient(&db);
    db.run("SET statement_memory_limit = 8388608");
    db.run("BEGIN");
    db.run("INSERT INTO s SELECT * FROM t WHERE id <= 10000");
    // The table, and its unique index.
    assert_eq!(escalations(&mut db), "2");
    for row in ["(20000, 1, 30000)", "(30000, 1, 20000)"] {
        let insert = format!("INSERT INTO s VALUES {row}");
        other.fails(&insert, 1205);
    }
    // A row that it had before is its own.
    let mut waiting = beside(&db);
    let waiting = std::thread::spawn(move || waiting.try_run("INSERT INTO s VALUES (7, 1, 30000)"));
    until_waiting(&mut other);
    db.run("COMMIT");
    let duplicate = waiting.join().expect("the INSERT");
    assert_eq!(duplicate.map_err(|error| error.number()).err(), Some(1062));
    assert_eq!(db.rows("SELECT COUNT(*) FROM s"), ["10001"]);
}

#[test]
fn what_a_statement_has_read_before_it_locked_the_table_is_read_again() {
    let mut db = database();
    let mut other = beside(&db);
    other.run("BEGIN");
    other.run("UPDATE t SET k = k + 1000000 WHERE id = 19000 OR id > 19990");
    let updating = std::thread::spawn(move || {
        db.run("SET statement_memory_limit = 8388608");
        db.run("UPDATE t SET k = k + 1");
        db
    });
    until_waiting(&mut other);
    assert_eq!(escalations(&mut other), "1");
    // The rows behind it had other values when its scan began, and are free when it comes there.
    other.run("COMMIT");
    let mut db = updating.join().expect("the UPDATE");
    assert_eq!(db.rows("SELECT SUM(k) FROM t"), ["211030000"]);
}

#[test]
fn a_deadlock_through_a_locked_table_is_found() {
    let mut db = database();
    let mut other = beside(&db);
    other.run("BEGIN");
    other.run("UPDATE t SET k = 0 WHERE id = 20000");
    let mut watcher = beside(&db);
    let updating = std::thread::spawn(move || {
        db.run("SET statement_memory_limit = 2097152");
        db.run("BEGIN");
        db.run("UPDATE t SET k = 0 WHERE id <= 10");
        assert_eq!(db.rows("SELECT COUNT(*) FROM t FOR UPDATE"), ["20000"]);
        db
    });
    until_waiting(&mut watcher);
    assert_eq!(escalations(&mut watcher), "1");
    let began = Instant::now();
    other.fails("UPDATE t SET k = 1 WHERE id = 10000", 1213);
    assert!(began.elapsed().as_secs() < 20);
    let mut db = updating.join().expect("the SELECT");
    db.run("COMMIT");
    other.run("UPDATE t SET k = 1 WHERE id = 10000");
    assert_eq!(db.rows("SELECT COUNT(*) FROM t WHERE k < 2"), ["11"]);
}

#[test]
fn kill_ends_a_wait_for_a_locked_table() {
    let mut db = database();
    db.run("BEGIN");
    db.rows("SELECT COUNT(*) FROM t FOR UPDATE");
    let mut other = beside(&db);
    let control = other.session.control().clone();
    let waiting = std::thread::spawn(move || {
        other.fails("UPDATE t SET k = 1 WHERE id = 20000", 1317);
        other
    });
    until_waiting(&mut db);
    control.kill_query();
    let mut other = waiting.join().expect("the UPDATE");
    db.run("ROLLBACK");
    other.run("UPDATE t SET k = 1 WHERE id = 20000");
}

#[test]
fn a_prepared_branch_keeps_the_table_across_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = Db::in_folder(folder.path());
    fill(&mut db);
    db.run("SET statement_memory_limit = 8388608");
    db.run("XA START 'a'");
    db.run("UPDATE t SET k = k + 1");
    db.run("XA END 'a'");
    assert_eq!(escalations(&mut db), "1");
    db.run("XA PREPARE 'a'");
    let mut other = impatient(&db);
    other.fails("UPDATE t SET k = 0 WHERE id = 20000", 1205);
    drop((db, other));
    let mut db = Db::in_folder(folder.path());
    db.run("SET innodb_lock_wait_timeout = 1");
    for id in [1, 20_000] {
        let sql = format!("SELECT * FROM t WHERE id = {id} FOR UPDATE NOWAIT");
        db.fails(&sql, 3572);
    }
    db.fails("INSERT INTO t VALUES (20001, 1, 20001)", 1205);
    db.run("XA COMMIT 'a'");
    db.run("UPDATE t SET k = k + 1 WHERE id = 20000");
    assert_eq!(db.rows("SELECT SUM(k) FROM t"), ["200030001"]);
}

#[test]
fn an_update_of_more_rows_than_locks_fit_into_memory_goes_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = [
        ("transaction_memory_size", "1048576"),
        ("innodb_redo_log_capacity", "8388608"),
        ("statement_memory_limit", "12582912"),
    ];
    let mut db = Db::in_folder_with(folder.path(), &memory);
    fill(&mut db);
    // 320,000 rows, whose locks would take 14 MB.
    for doubled in 0..4 {
        let rows = ROWS << doubled;
        let more = format!("INSERT INTO t SELECT id + {rows}, k, u + {rows} FROM t");
        db.run(&more);
    }
    db.run("UPDATE t SET k = k + 1");
    assert_eq!(
        db.rows("SELECT COUNT(*), SUM(k) FROM t"),
        ["320000|3200480000"]
    );
    db.run("DELETE FROM t WHERE id > 1");
    assert_eq!(db.rows("SELECT * FROM t"), ["1|2|1"]);
    assert_eq!(used_by_all(&db), 0);
}
