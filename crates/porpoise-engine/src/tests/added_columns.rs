//! Columns that come to rows which stay as they are.

use porpoise_types::EXTENSIONS_MAX;

use super::database::{Db, beside};

fn steps(db: &Db) -> usize {
    db.table("t").expect("the table").layout.steps()
}

#[test]
fn rows_are_written_anew_when_columns_were_added_too_often() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY)");
    db.run("INSERT INTO t VALUES (1), (2)");
    let space = db.table("t").expect("the table").space;
    for step in 1..=EXTENSIONS_MAX {
        db.run(&format!(
            "ALTER TABLE t ADD COLUMN c{step} INT DEFAULT {step}"
        ));
        db.run(&format!("INSERT INTO t (id) VALUES ({})", step + 2));
        assert_eq!(steps(&db), step);
    }
    db.run("UPDATE t SET c40 = 0 WHERE id IN (1, 50)");
    let sum: usize = (1..=EXTENSIONS_MAX).sum();
    let all: Vec<String> = (1..=EXTENSIONS_MAX)
        .map(|step| format!("c{step}"))
        .collect();
    let wrong = format!("SELECT id, {0} FROM t WHERE {0} <> {sum}", all.join("+"));
    let expected = [format!("1|{}", sum - 40), format!("50|{}", sum - 40)];
    assert_eq!(db.rows(&wrong), expected);
    assert_eq!(db.table("t").expect("the table").space, space);

    db.run("ALTER TABLE t ADD COLUMN last INT DEFAULT 7");
    assert_eq!(steps(&db), 0);
    assert_eq!(db.rows(&wrong), expected);
    assert_eq!(db.rows("SELECT COUNT(*), SUM(last) FROM t"), ["66|462"]);
    assert_eq!(db.rows("CHECK TABLE t EXTENDED"), ["d.t|check|status|OK"]);
}

#[test]
fn a_snapshot_from_before_reads_its_rows_with_the_new_column() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    db.run("INSERT INTO t VALUES (1, 1), (2, 2)");
    let mut reader = beside(&db);
    reader.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    db.run("ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 5");
    db.run("UPDATE t SET b = 6, a = 9 WHERE id = 1");
    db.run("INSERT INTO t VALUES (3, 3, 3)");
    assert_eq!(reader.rows("SELECT * FROM t"), ["1|1|5", "2|2|5"]);
    reader.run("COMMIT");
    assert_eq!(reader.rows("SELECT * FROM t"), ["1|9|6", "2|2|5", "3|3|3"]);
}
