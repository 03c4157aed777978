//! INSERT … SELECT and LOAD DATA of very many rows into empty tables.

use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use porpoise_catalog::Relation;
use porpoise_storage::SpaceId;

use super::database::{Db, beside};

/// Of some 800 bytes.
const ROWS: u32 = 10_000;

/// A table `t`, and a file of rows for it, in this order.
fn database(folder: &Path, order: impl Fn(u32) -> u32) -> Db {
    let mut lines = String::new();
    for row in 0..ROWS {
        let id = order(row);
        writeln!(lines, "{id}\t{}\t{}", id % 100, "x".repeat(790)).expect("a text grows");
    }
    std::fs::write(folder.join("rows.txt"), lines).expect("the file can be written");
    let folder = folder.to_str().expect("a path of text");
    let mut db = Db::with(&[("secure_file_priv", folder), ("tmpdir", folder)]);
    db.run(TABLE);
    db
}

const TABLE: &str =
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, c VARCHAR(900), UNIQUE KEY (a, id))";

fn load(folder: &Path) -> String {
    let file = folder.join("rows.txt");
    format!("LOAD DATA INFILE '{}' INTO TABLE t", file.display())
}

fn space_of(db: &Db, name: &str) -> SpaceId {
    match db.engine.shared.catalog.load().relation("d", name) {
        Some(Relation::Table(table)) => table.space,
        _ => panic!("there is no table {name}"),
    }
}

#[track_caller]
fn is_whole(db: &mut Db, rows: u32) {
    let sums = |index: &str| {
        format!("SELECT COUNT(*), SUM(id), SUM(a) FROM t FORCE INDEX ({index}) WHERE {index} >= 0")
    };
    let by_rows = db.rows(&sums("PRIMARY").replace("WHERE PRIMARY", "WHERE id"));
    assert!(by_rows[0].starts_with(&format!("{rows}|")), "{by_rows:?}");
    assert_eq!(db.rows(&sums("a")), by_rows);
    assert_eq!(db.rows("CHECK TABLE t EXTENDED"), ["d.t|check|status|OK"]);
}

#[test]
fn a_file_is_loaded_into_an_empty_table_in_any_order_of_its_rows() {
    let orders: [fn(u32) -> u32; 4] = [
        |row| row,
        |row| ROWS - row,
        |row| row * 7919 % 10_007,
        |row| if row == 0 { 20_000 } else { row },
    ];
    for order in orders {
        let folder = tempfile::tempdir().expect("a folder");
        let mut db = database(folder.path(), order);
        let space = space_of(&db, "t");
        let before = db.engine.shared.store.changes(space);
        db.run(&load(folder.path()));
        is_whole(&mut db, ROWS);
        // Nothing of it went through the transaction's row locks; the table has its space as before.
        assert_eq!(space_of(&db, "t"), space);
        let changes = db.engine.shared.store.changes(space) - before;
        assert_eq!(changes, u64::from(ROWS), "statistics are refreshed by it");
        db.fails("INSERT INTO t VALUES (5, 1, '')", 1062);
        db.run("INSERT INTO t VALUES (-1, 1, 'one more')");
        db.run("DELETE FROM t WHERE id > 100");
        db.run("DELETE FROM t");
        db.run(&load(folder.path()));
        is_whole(&mut db, ROWS);
    }
}

#[test]
fn rows_put_in_place_leave_no_space_without_an_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = database(folder.path(), |row| row * 7919 % 10_007);
    let unclaimed =
        |db: &Db| porpoise_catalog::dictionary::unclaimed(&db.engine.shared.store).expect("reads");
    db.run(&load(folder.path()));
    assert_eq!(unclaimed(&db), []);
    db.run("TRUNCATE TABLE t");
    db.run("INSERT INTO t VALUES (7, 7, '')");
    db.run("DELETE FROM t");
    // The rows of two files have the same keys.
    let file = folder.path().join("rows.txt");
    let lines = std::fs::read_to_string(&file).expect("reads");
    std::fs::write(&file, format!("{lines}{lines}")).expect("writes");
    db.fails(&load(folder.path()), 1062);
    assert_eq!(db.rows("SELECT COUNT(*) FROM t"), ["0"]);
    assert_eq!(unclaimed(&db), []);
    db.run("INSERT INTO t VALUES (7, 7, '')");
    // Not empty: all goes through the transaction, and back.
    db.fails(&load(folder.path()), 1062);
    assert_eq!(db.rows("SELECT id FROM t"), ["7"]);
    assert_eq!(unclaimed(&db), []);
}

#[test]
fn a_load_that_is_killed_leaves_the_table_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = database(folder.path(), |row| row * 7919 % 10_007);
    for wait in [0, 5, 20, 50, 100, 200] {
        let mut session = beside(&db);
        let control = session.session.control().clone();
        let statement = load(folder.path());
        let began = Instant::now();
        let loading = thread::spawn(move || {
            let outcome = session.try_run(&statement);
            (session, outcome.map(drop))
        });
        while control.process().state != "executing" && began.elapsed() < Duration::from_secs(5) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(wait));
        control.kill_query();
        let (mut session, outcome) = loading.join().expect("the load");
        match outcome {
            Ok(()) => {
                is_whole(&mut session, ROWS);
                session.run("TRUNCATE TABLE t");
            }
            Err(error) => {
                assert_eq!(error.number(), 1317);
                assert_eq!(session.rows("SELECT COUNT(*) FROM t"), ["0"]);
            }
        }
        session.run("INSERT INTO t VALUES (1, 1, '')");
        session.run("DELETE FROM t");
    }
}

#[test]
fn rows_put_in_place_are_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = Db::in_folder(folder.path());
    db.run(TABLE);
    db.run("CREATE TABLE n (i INT PRIMARY KEY)");
    let numbers: Vec<String> = (0..100).map(|n| format!("({n})")).collect();
    db.run(&format!("INSERT INTO n VALUES {}", numbers.join(", ")));
    db.run("CREATE TABLE hidden (a INT, c VARCHAR(900))");
    let rows = "SELECT a.i * 100 + b.i, b.i, REPEAT('x', 790) FROM n a, n b";
    db.run(&format!("INSERT INTO t {rows}"));
    db.run("INSERT INTO hidden SELECT a, c FROM t");
    drop(db);
    let mut db = Db::in_folder(folder.path());
    is_whole(&mut db, ROWS);
    // The numbers of rows go on behind those that were put in place.
    db.run("INSERT INTO hidden VALUES (1, 'new')");
    assert_eq!(db.rows("SELECT COUNT(*) FROM hidden"), ["10001"]);
}
