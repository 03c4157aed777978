//! What transactions have changed and not committed counts against the limits of memory, until they
//! end.

use std::time::Duration;

use porpoise_mdl::process::Command;

use super::database::{Db, beside};

const MIB: u64 = 1 << 20;

/// A table of ten thousand rows of 100 bytes, one that refers to them, and one that is empty.
fn database() -> Db {
    let mut db = Db::new();
    db.run("SET cte_max_recursion_depth = 10000");
    db.run("CREATE TABLE items (id INT PRIMARY KEY, k INT, filler CHAR(100), KEY (k))");
    db.run(
        "INSERT INTO items WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
         SELECT i, i, REPEAT('x', 100) FROM n",
    );
    db.run(
        "CREATE TABLE children (id INT PRIMARY KEY, parent INT,
           FOREIGN KEY (parent) REFERENCES items (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    );
    db.run("INSERT INTO children SELECT id, 1 FROM items");
    db.run("CREATE TABLE sink (id INT PRIMARY KEY AUTO_INCREMENT, filler VARCHAR(200))");
    db
}

fn used(db: &Db) -> u64 {
    db.session.state.memory.used()
}

pub(super) fn used_by_all(db: &Db) -> u64 {
    db.engine.variables().memory().used()
}

#[test]
fn a_change_beyond_the_limit_fails_and_is_taken_back() {
    let mut db = database();
    let counts = "SELECT COUNT(*), SUM(k), (SELECT COUNT(*) FROM children),
                    (SELECT SUM(parent) FROM children), (SELECT COUNT(*) FROM sink) FROM items";
    let before = db.rows(counts);
    let changes = [
        "UPDATE items SET k = k + 1",
        "UPDATE items SET k = k + 1 ORDER BY id DESC",
        "UPDATE IGNORE items SET k = k + 1",
        "UPDATE items SET id = 20000 WHERE id = 1",
        "DELETE FROM items WHERE id > 1",
        "DELETE FROM items WHERE id = 1",
        "INSERT INTO sink (filler) SELECT filler FROM items",
        "INSERT INTO items SELECT id, 5, filler FROM items r ON DUPLICATE KEY UPDATE k = items.k + 1",
        "REPLACE INTO items SELECT id, 5, filler FROM items r",
        "CREATE TABLE made AS SELECT * FROM items",
        "CREATE TABLE made (PRIMARY KEY (id)) SELECT * FROM items",
    ];
    db.run("SET statement_memory_limit = 524288");
    for sql in changes {
        db.fails(sql, 1037);
        assert_eq!(used(&db), 0, "{sql}");
        assert_eq!(db.rows(counts), before, "{sql}");
    }
    assert_eq!(used_by_all(&db), 0);
    assert_eq!(db.rows("SHOW TABLES LIKE 'made'"), Vec::<String>::new());
    // Smaller ones have room, and a copy is made in batches.
    db.run("UPDATE items SET k = k + 1 WHERE id <= 500");
    db.run("SET statement_memory_limit = DEFAULT");
    for sql in changes {
        db.run(sql);
        assert_eq!(used(&db), 0, "{sql}");
        db.run("DROP TABLE IF EXISTS made");
    }
}

#[test]
fn a_copy_of_a_table_takes_no_more_than_a_batch() {
    let mut db = database();
    db.run("CREATE TABLE long_rows (id INT PRIMARY KEY AUTO_INCREMENT, t LONGTEXT)");
    for _ in 0..64 {
        db.run("INSERT INTO long_rows (t) VALUES (REPEAT('x', 1000000))");
    }
    db.run("SET statement_memory_limit = 20971520");
    for sql in [
        "ALTER TABLE long_rows ADD COLUMN j INT DEFAULT 5 FIRST, ALGORITHM = COPY",
        "ALTER TABLE long_rows ADD KEY (t(10))",
        "OPTIMIZE TABLE long_rows",
    ] {
        db.run(sql);
        assert_eq!(used(&db), 0, "{sql}");
    }
    db.fails("UPDATE long_rows SET t = CONCAT(t, 'y')", 1037);
    assert_eq!(db.rows("SELECT MAX(LENGTH(t)) FROM long_rows"), ["1000000"]);
    // A batch that doesn't fit: the table is as it was.
    db.run("SET statement_memory_limit = 2097152");
    db.fails(
        "ALTER TABLE long_rows MODIFY COLUMN j BIGINT, ALGORITHM = COPY",
        1037,
    );
    assert_eq!(used(&db), 0);
    assert_eq!(
        db.rows("SELECT COUNT(*), MIN(LENGTH(t)), MAX(j) FROM long_rows"),
        ["64|1000000|5"]
    );
}

#[test]
fn changes_pile_up_until_the_transaction_ends() {
    let mut db = database();
    let insert = "INSERT INTO sink (filler) SELECT filler FROM items WHERE id <= 5000";
    for end in ["COMMIT", "ROLLBACK", "CREATE TABLE t (i INT)"] {
        db.run("BEGIN");
        db.run(insert);
        let once = used(&db);
        assert!(once > MIB, "{once}");
        db.run(insert);
        let twice = used(&db);
        assert!(twice > once + once / 2, "{once} {twice}");
        assert!(used_by_all(&db) >= twice);
        db.run(end);
        assert_eq!((used(&db), used_by_all(&db)), (0, 0), "{end}");
    }
    assert_eq!(db.rows("SELECT COUNT(*) FROM sink"), ["20000"]);
    // Each statement has its own limit, and what it may take doesn't depend on those before it.
    db.run("SET statement_memory_limit = 4194304");
    db.run("BEGIN");
    for _ in 0..5 {
        db.run(insert);
    }
    assert!(used(&db) > 8 * MIB, "{}", used(&db));
    let before = used(&db);
    db.fails(
        "INSERT INTO sink (filler) SELECT a.filler FROM items a, items b",
        1037,
    );
    assert_eq!(db.rows("SELECT COUNT(*) FROM sink"), ["45000"]);
    // The locks of what was taken back stay.
    assert!(used(&db) < before + 2 * MIB, "{before} {}", used(&db));
    db.run(insert);
    db.run("COMMIT");
    assert_eq!(db.rows("SELECT COUNT(*) FROM sink"), ["50000"]);
    assert_eq!(used(&db), 0);
}

#[test]
fn a_rollback_to_a_savepoint_gives_back_what_came_after_it() {
    let mut db = database();
    let insert = "INSERT INTO sink (filler) SELECT filler FROM items WHERE id <= 5000";
    db.run("BEGIN");
    db.run(insert);
    let first = used(&db);
    db.run("SAVEPOINT s");
    for _ in 0..3 {
        db.run(insert);
        assert!(used(&db) > first + MIB);
        // Row locks stay to the transaction's end.
        db.run("ROLLBACK TO s");
        db.run("UPDATE sink SET filler = 'y' WHERE id <= 10");
    }
    assert!(used(&db) < 3 * first, "{first} {}", used(&db));
    db.run("RELEASE SAVEPOINT s");
    db.run("COMMIT");
    assert_eq!(used(&db), 0);
    assert_eq!(
        db.rows("SELECT COUNT(*), SUM(filler = 'y') FROM sink"),
        ["5000|10"]
    );
}

#[test]
fn a_connection_whose_transaction_takes_too_much_is_closed() {
    let db = database();
    let insert = "INSERT INTO sink (filler) SELECT filler FROM items WHERE id <= 5000";
    let mut own = beside(&db);
    own.run("SET connection_memory_limit = 5242880");
    own.run("BEGIN");
    own.run(insert);
    let error = (0..5).find_map(|_| own.try_run(insert).err());
    assert_eq!(error.map(|error| error.number()), Some(4082));
    assert!(own.session.control().is_connection_killed());
    drop(own);
    assert_eq!(used_by_all(&db), 0);
    let mut other = beside(&db);
    assert_eq!(other.rows("SELECT COUNT(*) FROM sink"), ["0"]);
    other.run(insert);
    assert_eq!(other.rows("SELECT COUNT(*) FROM sink"), ["5000"]);
}

#[test]
fn transactions_of_many_sessions_share_the_global_limit() {
    let mut db = database();
    db.run("SET GLOBAL global_connection_memory_limit = 16777216");
    db.run("SET GLOBAL global_connection_memory_tracking = ON");
    let mut sessions: Vec<Db> = (0..20).map(|_| beside(&db)).collect();
    let mut refused = 0;
    let mut open = Vec::new();
    for mut session in sessions.drain(..) {
        session.run("BEGIN");
        match session.try_run("INSERT INTO sink (filler) SELECT filler FROM items WHERE id <= 5000")
        {
            Ok(_) => open.push(session),
            Err(error) => {
                assert_eq!(error.number(), 4081);
                assert!(session.session.control().is_connection_killed());
                refused += 1;
            }
        }
        assert!(used_by_all(&db) <= 16 * MIB);
    }
    assert!(refused > 0 && open.len() > 1, "{refused} {}", open.len());
    let committed = open.len() * 5000;
    // Others have room again as those end, and COMMIT needs none.
    for session in &mut open {
        session.run("COMMIT");
    }
    assert_eq!(used_by_all(&db), 0);
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM sink"),
        [committed.to_string()]
    );
    beside(&db).run("UPDATE sink SET filler = 'y' WHERE id <= 100");
}

#[test]
fn a_killed_change_gives_its_memory_back() {
    let mut db = database();
    db.run("BEGIN");
    db.run("INSERT INTO sink (filler) VALUES ('kept')");
    let control = db.session.control().clone();
    let killer = std::thread::spawn(move || {
        while control.process().command == Command::Sleep {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(300));
        control.kill_query();
    });
    db.fails(
        "INSERT INTO sink (filler) SELECT a.filler FROM items a, items b",
        1317,
    );
    killer.join().expect("kills");
    // Of the locks it may keep some.
    db.run("COMMIT");
    assert_eq!((used(&db), used_by_all(&db)), (0, 0));
    assert_eq!(db.rows("SELECT COUNT(*) FROM sink"), ["1"]);
}

/// A server whose transactions go on in a file with 1 MiB.
fn spilling_database(folder: &std::path::Path) -> Db {
    let memory = [
        ("transaction_memory_size", "1048576"),
        ("innodb_redo_log_capacity", "8388608"),
    ];
    let mut db = Db::in_folder_with(folder, &memory);
    db.run("SET cte_max_recursion_depth = 100000");
    db.run(
        "CREATE TABLE items (id INT PRIMARY KEY, k INT, u INT, filler CHAR(100), KEY (k), UNIQUE KEY (u))",
    );
    db.run(
        "INSERT INTO items WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
         SELECT i, i, i, REPEAT('x', 100) FROM n",
    );
    db
}

fn spill_files(folder: &std::path::Path) -> usize {
    let names = std::fs::read_dir(folder.join("data")).expect("a folder");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("spill-"))
        .count()
}

#[test]
fn a_transaction_that_goes_on_in_a_file_reads_its_own_writes_and_can_go_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = spilling_database(folder.path());
    let sums = "SELECT COUNT(*), SUM(k), SUM(u), SUM(LENGTH(filler)) FROM items";
    let by_index = "SELECT COUNT(*), MIN(k), MAX(k) FROM items FORCE INDEX (k) WHERE k > 0";
    let before = db.rows(sums);
    assert_eq!(before, ["60000|1800030000|1800030000|6000000"]);
    db.run("BEGIN");
    db.run("UPDATE items SET k = k + 1");
    assert!(spill_files(folder.path()) > 0);
    let after = ["60000|1800090000|1800030000|6000000"];
    assert_eq!(db.rows(sums), after);
    assert_eq!(db.rows(by_index), ["60000|2|60001"]);
    let mut other = beside(&db);
    assert_eq!(other.rows(sums), before);
    other.run("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    assert_eq!(other.rows(sums), after);
    db.run("SAVEPOINT a");
    // A statement that fails in the midst, and one that is undone.
    db.fails(
        "UPDATE items SET u = IF(id = 59999, 60000, u), filler = 'y' ORDER BY id",
        1062,
    );
    assert_eq!(db.rows(sums), after);
    db.run("DELETE FROM items WHERE id % 2 = 0");
    assert_eq!(db.rows("SELECT COUNT(*) FROM items"), ["30000"]);
    db.run("ROLLBACK TO a");
    assert_eq!(db.rows(sums), after);
    assert_eq!(db.rows(by_index), ["60000|2|60001"]);
    db.run("UPDATE items SET filler = 'z' WHERE id <= 10");
    db.run("COMMIT");
    let committed = ["60000|1800090000|1800030000|5999010"];
    assert_eq!(other.rows(sums), committed);
    db.run("BEGIN");
    db.run("UPDATE items SET u = u + 100000, filler = 'w'");
    db.run("ROLLBACK");
    assert_eq!(db.rows(sums), committed);
    assert_eq!(db.rows("CHECK TABLE items"), ["d.items|check|status|OK"]);
    db.run("UPDATE items SET u = u + 100000");
    db.run("DELETE FROM items WHERE id > 30000");
    let last = ["30000|450045000|3450015000|2999010"];
    assert_eq!(db.rows(sums), last);
    drop((db, other));
    let mut db = Db::in_folder_with(folder.path(), &[]);
    assert_eq!(db.rows(sums), last);
    assert_eq!(db.rows("CHECK TABLE items"), ["d.items|check|status|OK"]);
}

#[test]
fn an_xa_branch_stays_in_memory_until_it_is_prepared() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = spilling_database(folder.path());
    db.run("XA START 'a'");
    db.run("UPDATE items SET k = k + 1");
    db.run("XA END 'a'");
    db.run("XA PREPARE 'a'");
    db.run("XA COMMIT 'a'");
    assert_eq!(db.rows("SELECT SUM(k) FROM items"), ["1800090000"]);
}
