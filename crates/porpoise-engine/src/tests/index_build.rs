//! Indexes that are built of more entries than a sort's buffer holds.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::database::{Db, beside};

/// So many that each index's share of the buffer is small.
const INDEXES: usize = 16;
const ROWS: u32 = 16_384;

/// A table of long texts in no order; temporary files are in `folder`.
fn database(folder: &Path) -> Db {
    let folder = folder.to_str().expect("a path of text");
    let mut db = Db::with(&[("tmpdir", folder)]);
    db.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, c CHAR(150) NOT NULL)");
    db.run("INSERT INTO t (n, c) VALUES (0, '')");
    while db.rows("SELECT COUNT(*) FROM t") != [ROWS.to_string()] {
        db.run("INSERT INTO t (n, c) SELECT 0, '' FROM t");
    }
    db.run("UPDATE t SET n = id, c = REPEAT(MD5(id), 4)");
    db
}

fn add_indexes(kind: &str) -> String {
    let parts = (0..INDEXES).map(|n| format!("ADD {kind} k{n} (c({}))", 100 + n));
    format!("ALTER TABLE t {}", parts.collect::<Vec<_>>().join(", "))
}

fn names_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("it is there").count()
}

#[test]
fn indexes_of_more_entries_than_memory_holds_are_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = database(folder.path());
    let mut reader = beside(&db);
    reader.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    db.run(&add_indexes("UNIQUE"));
    db.run("ALTER TABLE t ADD INDEX whole (c)");
    let in_order = |index: &str| {
        format!("SELECT COUNT(*), SUM(CRC32(c)), SUM(id) FROM t FORCE INDEX ({index}) WHERE c > ''")
    };
    let expected = db.rows("SELECT COUNT(*), SUM(CRC32(c)), SUM(id) FROM t IGNORE INDEX (whole)");
    for index in ["k0", "k15", "whole"] {
        assert_eq!(db.rows(&in_order(index)), expected, "{index}");
    }
    assert_eq!(db.rows("CHECK TABLE t EXTENDED"), ["d.t|check|status|OK"],);
    let by_index = "SELECT id FROM t FORCE INDEX (k3) WHERE c = REPEAT(MD5(777), 4)";
    assert_eq!(db.rows(by_index), ["777"]);
    db.fails("INSERT INTO t (c) VALUES (REPEAT(MD5(5), 4))", 1062);
    db.run("DELETE FROM t WHERE id = 5");
    db.run("INSERT INTO t (c) VALUES (REPEAT(MD5(5), 4))");
    // Its snapshot is from before the indexes.
    reader.fails("SELECT COUNT(*) FROM t", 1412);
    assert_eq!(names_in(folder.path()), 0);
}

#[test]
fn two_equal_keys_in_different_runs_are_duplicates() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = database(folder.path());
    db.run("UPDATE t SET c = UPPER((SELECT * FROM (SELECT c FROM t WHERE id = 7) AS x)) WHERE id = 16384");
    let error = db.try_run(&add_indexes("UNIQUE")).expect_err("duplicates");
    assert_eq!(error.number(), 1062);
    let text = db
        .rows("SELECT SUBSTR(UPPER(REPEAT(MD5(7), 4)), 1, 60)")
        .remove(0);
    assert!(
        error
            .message()
            .starts_with(&format!("Duplicate entry '{text}")),
        "{error}"
    );
    assert!(error.message().ends_with("for key 't.k0'"), "{error}");
    db.run(&add_indexes("INDEX"));
    assert_eq!(names_in(folder.path()), 0);
}

#[test]
fn a_build_that_is_killed_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = database(folder.path());
    let stages = [
        "alter table (read PK and internal sort)",
        "alter table (insert)",
    ];
    for stage in stages {
        let mut session = beside(&db);
        let control = session.session.control().clone();
        let altering = thread::spawn(move || {
            let outcome = session.try_run(&add_indexes("INDEX"));
            (session, outcome.map(drop))
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        while control.process().state != stage {
            assert!(Instant::now() < deadline, "it never comes to {stage}");
            thread::yield_now();
        }
        control.kill_query();
        let (mut session, outcome) = altering.join().expect("the ALTER");
        assert_eq!(outcome.expect_err("killed").number(), 1317, "{stage}");
        let indexes = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_name = 't'";
        assert_eq!(session.rows(indexes), ["1"]);
        assert_eq!(session.rows("SELECT COUNT(*) FROM t"), [ROWS.to_string()]);
        assert_eq!(names_in(folder.path()), 0);
    }
}

#[test]
fn a_folder_that_is_missing_ends_a_large_build_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let mut db = database(&missing);
    let error = db.try_run(&add_indexes("INDEX")).expect_err("no folder");
    assert!(error.message().contains("missing"), "{error}");
    db.run("CREATE TABLE few (a INT)");
    db.run("INSERT INTO few VALUES (2), (1)");
    db.run("CREATE INDEX a ON few (a)");
    assert_eq!(
        db.rows("SELECT a FROM few FORCE INDEX (a) WHERE a > 0"),
        ["1", "2"]
    );
}
