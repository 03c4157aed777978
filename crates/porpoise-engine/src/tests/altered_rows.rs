//! Columns that come to rows which stay as they are, leave them, and move.

use porpoise_types::ROW_VERSIONS_MAX;

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
    for step in 1..=ROW_VERSIONS_MAX {
        db.run(&format!(
            "ALTER TABLE t ADD COLUMN c{step} INT DEFAULT {step}"
        ));
        db.run(&format!("INSERT INTO t (id) VALUES ({})", step + 2));
        assert_eq!(steps(&db), step);
    }
    db.run("UPDATE t SET c40 = 0 WHERE id IN (1, 50)");
    let sum: usize = (1..=ROW_VERSIONS_MAX).sum();
    let all: Vec<String> = (1..=ROW_VERSIONS_MAX)
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

/// Numbers that a seed gives (SplitMix64).
pub(super) struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (number ^ (number >> 31)) as usize % end
    }

    pub fn one_of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

/// The tables `t`, whose rows stay as they are, and `c`, whose rows are copied by each ALTER TABLE.
struct Twins {
    db: Db,
    numbers: Numbers,
    /// Of the columns beside `id`: name and type.
    columns: Vec<(String, &'static str)>,
    named: usize,
}

const TYPES: [&str; 8] = [
    "INT",
    "VARCHAR(30)",
    "DECIMAL(12,3)",
    "TINYINT",
    "TEXT",
    "DATETIME(3)",
    "CHAR(5)",
    "BIGINT",
];

impl Twins {
    fn new(db: Db, seed: u64) -> Twins {
        let mut twins = Twins {
            db,
            numbers: Numbers(seed),
            columns: Vec::new(),
            named: 0,
        };
        twins.both(
            "CREATE TABLE # (id INT PRIMARY KEY, a INT, b VARCHAR(30), KEY kb (b), KEY ka (a))",
        );
        for (name, ty) in [("a", "INT"), ("b", "VARCHAR(30)")] {
            twins.columns.push((name.into(), ty));
        }
        twins
    }

    /// Runs a statement for each table, which `#` stands for; both affect as many rows.
    fn both(&mut self, sql: &str) {
        let affected = ["t", "c"].map(|table| self.db.run(&sql.replace('#', table)).affected_rows);
        assert_eq!(affected[0], affected[1], "{sql}");
    }

    fn value(&mut self, ty: &str) -> String {
        let number = self.numbers.below(100);
        match ty {
            "VARCHAR(30)" | "TEXT" => format!("REPEAT('ž', {})", number % 30),
            "CHAR(5)" => format!("'{number}'"),
            "DATETIME(3)" => format!("'2024-02-28 10:00:{:02}.125'", number % 60),
            "DECIMAL(12,3)" => format!("{number}.125"),
            _ => number.to_string(),
        }
    }

    fn position(&mut self, but: Option<usize>) -> String {
        let others: Vec<usize> = (0..self.columns.len())
            .filter(|at| Some(*at) != but)
            .collect();
        match self.numbers.below(3) {
            0 => " FIRST".into(),
            1 if !others.is_empty() => {
                let after = others[self.numbers.below(others.len())];
                format!(" AFTER {}", self.columns[after].0)
            }
            _ => " AFTER id".into(),
        }
    }

    /// An action of ALTER TABLE; the list of columns is as it will be then, but for its order.
    fn action(&mut self) -> String {
        let at = self.numbers.below(self.columns.len().max(1));
        match self.numbers.below(4) {
            0 if self.columns.len() > 1 => {
                let (name, _) = self.columns.remove(at);
                format!("DROP COLUMN {name}")
            }
            1 if !self.columns.is_empty() => {
                let position = self.position(Some(at));
                let (name, ty) = &self.columns[at];
                format!("MODIFY {name} {ty}{position}")
            }
            _ => {
                let ty = self.numbers.one_of(&TYPES);
                self.named += 1;
                let name = format!("c{}", self.named);
                let default = match ty {
                    "TEXT" => "",
                    "VARCHAR(30)" | "CHAR(5)" => " DEFAULT 'ž'",
                    "DATETIME(3)" => " DEFAULT '2020-02-29 00:00:00.5'",
                    _ => self
                        .numbers
                        .one_of(&["", " NOT NULL DEFAULT 3", " DEFAULT 7"]),
                };
                let position = self.position(None);
                self.columns.push((name.clone(), ty));
                format!("ADD COLUMN {name} {ty}{default}{position}")
            }
        }
    }

    fn alter(&mut self) {
        let action = self.action();
        self.db
            .run(&format!("ALTER TABLE t {action}, ALGORITHM=INSTANT"));
        self.db
            .run(&format!("ALTER TABLE c {action}, ALGORITHM=COPY"));
    }

    fn change(&mut self) {
        let id = self.numbers.below(40);
        let column = self.numbers.below(self.columns.len());
        let (name, ty) = self.columns[column].clone();
        let value = self.value(ty);
        let sql = match self.numbers.below(4) {
            0 => format!("UPDATE # SET {name} = {value} WHERE id > {id}"),
            1 => format!("DELETE FROM # WHERE id = {id}"),
            2 => format!("REPLACE INTO # (id, {name}) VALUES ({id}, {value})"),
            _ => format!(
                "INSERT INTO # (id, {name}) VALUES ({id}, {value}) ON DUPLICATE KEY UPDATE {name} = {value}"
            ),
        };
        self.both(&sql);
    }

    fn compare(&mut self) {
        let shown = ["t", "c"].map(|table| self.db.rows(&format!("SHOW COLUMNS FROM {table}")));
        assert_eq!(shown[0], shown[1]);
        let rows = ["t", "c"].map(|table| {
            let sums = format!("CHECKSUM TABLE {table}");
            let all = format!("SELECT * FROM {table} ORDER BY id");
            let sum = self.db.rows(&sums).concat().split_off("d.t|".len());
            (self.db.rows(&all), sum)
        });
        assert_eq!(rows[0], rows[1]);
        let (name, _) = &self.columns[self.numbers.below(self.columns.len())];
        let read = ["t", "c"].map(|table| {
            let sorted = format!("SELECT {name}, id FROM {table} WHERE id > 3 ORDER BY {name}, id");
            self.db.rows(&sorted)
        });
        assert_eq!(read[0], read[1]);
        for table in ["t", "c"] {
            let checked = self.db.rows(&format!("CHECK TABLE {table} EXTENDED"));
            assert_eq!(checked, [format!("d.{table}|check|status|OK")]);
        }
    }
}

#[test]
fn rows_that_stay_read_as_rows_that_are_copied() {
    for seed in 1..=20 {
        let folder = tempfile::tempdir().expect("a folder");
        let mut twins = Twins::new(Db::in_folder(folder.path()), seed);
        let space = twins.db.table("t").expect("the table").space;
        for step in 0..40 {
            twins.change();
            twins.change();
            if step % 2 == 0 {
                twins.alter();
            }
            if step % 5 == 0 {
                twins.compare();
            }
            if step == 25 {
                let Twins {
                    db,
                    numbers,
                    columns,
                    named,
                } = twins;
                db.engine.close().expect("closes");
                drop(db);
                let db = Db::in_folder(folder.path());
                twins = Twins {
                    db,
                    numbers,
                    columns,
                    named,
                };
            }
        }
        assert_eq!(twins.db.table("t").expect("the table").space, space);
        twins.both("OPTIMIZE TABLE #");
        assert_eq!(twins.db.table("t").expect("the table").row_versions(), 0);
        twins.compare();
    }
}

#[test]
fn a_column_is_dropped_with_its_keys_and_rows_get_their_room_back_when_they_are_copied() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(9), KEY ka (a), UNIQUE KEY kab (a, b))");
    db.run("INSERT INTO t VALUES (1, 1, 1, 'x'), (2, 1, 2, 'y')");
    let space = db.table("t").expect("the table").space;
    // What is left of a key is another key, which is built.
    db.fails("ALTER TABLE t DROP COLUMN b", 1062);
    db.run("ALTER TABLE t DROP COLUMN a");
    let table = db.table("t").expect("the table");
    assert_eq!((table.space, table.indexes.len()), (space, 2));
    assert_eq!(
        db.rows("SELECT id FROM t FORCE INDEX (kab) WHERE b = 2"),
        ["2"]
    );
    db.fails("INSERT INTO t VALUES (3, 2, 'z')", 1062);
    db.run("ALTER TABLE t MODIFY c VARCHAR(9) FIRST, DROP INDEX kab");
    db.run("INSERT INTO t VALUES ('z', 3, 2)");
    assert_eq!(db.rows("SELECT * FROM t"), ["x|1|1", "y|2|2", "z|3|2"]);
    assert_eq!(db.table("t").expect("the table").row_versions(), 1);
    db.run("ALTER TABLE t FORCE");
    assert_eq!(db.table("t").expect("the table").row_versions(), 0);
    assert_eq!(db.rows("SELECT * FROM t"), ["x|1|1", "y|2|2", "z|3|2"]);
    db.run("CREATE TABLE l LIKE t");
    db.run("ALTER TABLE t DROP COLUMN c");
    db.run("TRUNCATE t");
    assert_eq!(db.table("t").expect("the table").row_versions(), 0);
    db.run("INSERT INTO t VALUES (1, 2)");
    db.run("INSERT INTO l SELECT 'l', id, b FROM t");
    assert_eq!(db.rows("SELECT * FROM l"), ["l|1|2"]);
}
