//! Scans in batches do what scans row by row do: `batch_scan_min_rows` tells which.

use std::time::{Duration, Instant};

use super::altered_rows::Numbers;
use super::database::{Db, beside};
use super::transaction_memory::used_by_all;

const ALL: &str = "0";
const NONE: &str = "18446744073709551615";

/// An answer's rows, or its error, and the warnings.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub rows: Result<Vec<String>, String>,
    pub warnings: Vec<String>,
}

pub(super) fn answer(db: &mut Db, batches_from: &str, sql: &str) -> Answer {
    db.run(&format!("SET batch_scan_min_rows = {batches_from}"));
    let rows = db
        .try_rows(sql)
        .map_err(|error| format!("{}: {error}", error.number()));
    let warnings = db.rows("SHOW WARNINGS");
    Answer { rows, warnings }
}

#[track_caller]
fn is_the_same(db: &mut Db, sql: &str) -> Answer {
    let by_rows = answer(db, NONE, sql);
    assert_eq!(answer(db, ALL, sql), by_rows, "{sql}");
    by_rows
}

/// Columns by what they may be used as.
const INTEGERS: [&str; 5] = ["id", "b", "s", "t", "i"];
const UNSIGNED: [&str; 2] = ["u", "t"];
const DECIMALS: [&str; 4] = ["m", "n", "w", "z"];
const DOUBLES: [&str; 2] = ["f", "g"];
const MOMENTS: [&str; 3] = ["d", "dt", "d2"];
const TEXTS: [&str; 4] = ["c", "v", "x", "a2"];
const OTHERS: [&str; 4] = ["y", "e", "ts", "ye"];

fn create(name: &str) -> String {
    format!(
        "CREATE TABLE {name} (id INT PRIMARY KEY, b BIGINT, u BIGINT UNSIGNED, s SMALLINT,
           t TINYINT UNSIGNED, i INT, m DECIMAL(9,2), n DECIMAL(18,4), w DECIMAL(30,6),
           z DECIMAL(60,10), f DOUBLE, g FLOAT, d DATE, dt DATETIME(3), c CHAR(6), v VARCHAR(20),
           x VARCHAR(10) COLLATE utf8mb4_bin, y VARBINARY(5), e ENUM('p', 'q'),
           ts TIMESTAMP NULL, ye YEAR, KEY i (i), KEY si (s, i))"
    )
}

const NUMBERS: [&str; 26] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "10",
    "100",
    "127",
    "-128",
    "255",
    "32767",
    "-32768",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "0.05",
    "-0.05",
    "1.5",
    "99999999999999.9999",
    "123456789.12",
    "1e0",
    "-2.5e3",
];
const DATES: [&str; 7] = [
    "'2024-02-29'",
    "'1000-01-01'",
    "'9999-12-31'",
    "'0000-00-00'",
    "'2024-01-00'",
    "'1995-03-15'",
    "'1995-03-16 12:30:45.678'",
];
const WORDS: [&str; 9] = [
    "''", "'a'", "'A'", "'b '", "'abc'", "'ABC'", "'ä'", "'50%'", "'1x'",
];

/// A value for each column; now and then one is NULL.
fn row(numbers: &mut Numbers, id: usize) -> String {
    let mut values = vec![id.to_string()];
    for _ in 0..5 {
        values.push(match numbers.below(3) {
            0 => numbers.one_of(&NUMBERS).to_string(),
            _ => (numbers.below(11) as i64 - 3).to_string(),
        });
    }
    for _ in 0..6 {
        values.push(match numbers.below(4) {
            0 => numbers.one_of(&NUMBERS).to_string(),
            _ => format!("{}.{:02}", numbers.below(20) as i64 - 5, numbers.below(100)),
        });
    }
    for _ in 0..2 {
        values.push(match numbers.below(3) {
            0 => numbers.one_of(&DATES).to_string(),
            _ => format!(
                "'199{}-0{}-1{}'",
                numbers.below(3),
                1 + numbers.below(3),
                numbers.below(3)
            ),
        });
    }
    for _ in 0..4 {
        values.push(numbers.one_of(&WORDS).to_string());
    }
    values.push(numbers.one_of(&["'p'", "'q'"]).to_string());
    values.push(
        numbers
            .one_of(&["'2001-01-01 00:00:00'", "'1999-05-05 05:05:05'"])
            .to_string(),
    );
    values.push(numbers.one_of(&["1999", "2000", "2155"]).to_string());
    for value in &mut values[1..] {
        if numbers.below(8) == 0 {
            *value = "NULL".into();
        }
    }
    format!("({})", values.join(","))
}

pub(super) fn insert(db: &mut Db, numbers: &mut Numbers, ids: std::ops::Range<usize>) {
    let rows: Vec<String> = ids.map(|id| row(numbers, id)).collect();
    let columns = "id,b,u,s,t,i,m,n,w,z,f,g,d,dt,c,v,x,y,e,ts,ye";
    db.run(&format!(
        "INSERT IGNORE INTO t ({columns}) VALUES {}",
        rows.join(",")
    ));
}

/// A table whose rows are of several ages, in the tree, in memory and not committed: the session is
/// in a transaction that has changed some.
pub(super) fn database(seed: u64) -> (Db, Numbers) {
    let mut numbers = Numbers(seed);
    let mut db = Db::new();
    db.run("SET sql_mode = ''");
    db.run(&create("t"));
    insert(&mut db, &mut numbers, 0..300);
    db.engine.shared.store.checkpoint().expect("written");
    // Columns that the rows until now are not written with.
    db.run("ALTER TABLE t ADD COLUMN a INT DEFAULT 5, ADD COLUMN a2 VARCHAR(9) DEFAULT 'abc'");
    insert(&mut db, &mut numbers, 400..700);
    db.engine.shared.store.checkpoint().expect("written");
    db.run("ALTER TABLE t ADD COLUMN d2 DATE DEFAULT '1995-03-15', DROP COLUMN a");
    db.run("UPDATE t SET s = s + 1, d2 = '1994-01-01' WHERE id % 7 = 0");
    db.run("DELETE FROM t WHERE id % 11 = 0");
    insert(&mut db, &mut numbers, 800..850);
    db.run("BEGIN");
    db.run("UPDATE t SET i = 4, v = 'aBC' WHERE id BETWEEN 100 AND 130 OR id % 50 = 0");
    db.run("DELETE FROM t WHERE id BETWEEN 200 AND 210");
    insert(&mut db, &mut numbers, 300..320);
    (db, numbers)
}

/// Makes expressions.
pub(super) struct Expressions<'n>(pub &'n mut Numbers);

impl Expressions<'_> {
    fn column(&mut self) -> String {
        let kind = match self.0.below(8) {
            0..3 => &INTEGERS[..],
            3..5 => &DECIMALS[..],
            5 => &UNSIGNED[..],
            6 => &DOUBLES[..],
            _ => &["m", "s", "i"],
        };
        self.0.one_of(kind).into()
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.0.below(4) == 0 {
            return match self.0.below(3) {
                0 => self.0.one_of(&NUMBERS).into(),
                _ => self.column(),
            };
        }
        match self.0.below(17) {
            0..9 => {
                let op = self
                    .0
                    .one_of(&["+", "-", "*", "+", "-", "*", "/", "%", "DIV", "&"]);
                format!(
                    "({} {op} {})",
                    self.number(depth - 1),
                    self.number(depth - 1)
                )
            }
            9 => format!("(-{})", self.number(depth - 1)),
            10 => format!("LENGTH({})", self.0.one_of(&TEXTS)),
            11 => format!("CAST({} AS SIGNED)", self.number(depth - 1)),
            12 => format!("CAST({} AS DECIMAL(12,3))", self.number(depth - 1)),
            13 => format!(
                "IFNULL({}, {})",
                self.number(depth - 1),
                self.number(depth - 1)
            ),
            14 => {
                let otherwise = match self.0.below(3) {
                    0 => String::new(),
                    1 => "ELSE NULL".into(),
                    _ => format!("ELSE {}", self.number(depth - 1)),
                };
                format!(
                    "CASE WHEN {} THEN {} WHEN {} THEN {} {otherwise} END",
                    self.condition(depth - 1),
                    self.number(depth - 1),
                    self.condition(depth - 1),
                    self.number(depth - 1),
                )
            }
            15 => {
                let part = self.0.one_of(&["YEAR", "MONTH", "DAY", "DAYOFMONTH"]);
                format!("{part}({})", self.0.one_of(&MOMENTS))
            }
            _ => self.condition(depth - 1),
        }
    }

    /// Two expressions of one family.
    fn pair(&mut self, depth: usize) -> [String; 2] {
        match self.0.below(6) {
            0..3 => [self.number(depth), self.number(depth)],
            3 => {
                let other = match self.0.below(2) {
                    0 => self.0.one_of(&DATES).into(),
                    _ => self.0.one_of(&MOMENTS).to_string(),
                };
                [self.0.one_of(&MOMENTS).into(), other]
            }
            4 => {
                let other = match self.0.below(2) {
                    0 => self.0.one_of(&WORDS).into(),
                    _ => self.0.one_of(&TEXTS).to_string(),
                };
                [self.0.one_of(&TEXTS).into(), other]
            }
            _ => [
                self.0.one_of(&OTHERS).into(),
                self.0.one_of(&NUMBERS).into(),
            ],
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let kind = match depth {
            0 => self.0.below(6),
            _ => self.0.below(12),
        };
        match kind {
            0 | 1 => {
                let [a, b] = self.pair(depth.saturating_sub(1));
                let op = self.0.one_of(&["=", "<>", "<", "<=", ">", ">=", "<=>"]);
                format!("{a} {op} {b}")
            }
            2 => {
                let [a, b] = self.pair(0);
                let [_, c] = self.pair(0);
                let c = if self.0.below(2) == 0 { b.clone() } else { c };
                let not = self.0.one_of(&["", "NOT "]);
                format!("{a} {not}BETWEEN {b} AND {c}")
            }
            3 => {
                let not = self.0.one_of(&["", "NOT "]);
                let items: Vec<String> = (0..1 + self.0.below(6))
                    .map(|_| match self.0.below(9) {
                        0 => "NULL".into(),
                        _ => self.0.one_of(&NUMBERS).to_string(),
                    })
                    .collect();
                format!("{} {not}IN ({})", self.column(), items.join(","))
            }
            4 => {
                let columns = [&INTEGERS[..], &DECIMALS, &MOMENTS, &TEXTS, &OTHERS].concat();
                let is = self.0.one_of(&["IS NULL", "IS NOT NULL"]);
                format!("{} {is}", self.0.one_of(&columns))
            }
            5 => {
                let pattern = self
                    .0
                    .one_of(&["'%b%'", "'a%'", "'_'", "'%'", "'A_c'", "'5%'"]);
                let not = self.0.one_of(&["", "NOT "]);
                format!("{} {not}LIKE {pattern}", self.0.one_of(&TEXTS))
            }
            6 => format!(
                "({} AND {})",
                self.condition(depth - 1),
                self.condition(depth - 1)
            ),
            7 => format!(
                "({} OR {})",
                self.condition(depth - 1),
                self.condition(depth - 1)
            ),
            8 => format!(
                "({} XOR {})",
                self.condition(depth - 1),
                self.condition(depth - 1)
            ),
            9 => format!("NOT ({})", self.condition(depth - 1)),
            10 => {
                let is = self
                    .0
                    .one_of(&["IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE"]);
                format!("({}) {is}", self.condition(depth - 1))
            }
            _ => self.number(depth - 1),
        }
    }

    fn aggregates(&mut self) -> String {
        let number = self.number(2);
        let other = match self.0.below(3) {
            0 => self.0.one_of(&TEXTS).to_string(),
            1 => self.0.one_of(&MOMENTS).to_string(),
            _ => self.number(1),
        };
        let functions = ["SUM", "AVG", "MIN", "MAX", "COUNT", "STDDEV_POP", "BIT_OR"];
        let function = self.0.one_of(&functions);
        let last = self.0.one_of(&[
            "COUNT(DISTINCT s)",
            "COUNT(DISTINCT v)",
            "SUM(DISTINCT i)",
            "MAX(DISTINCT m)",
            "GROUP_CONCAT(DISTINCT e)",
            "SUM(1)",
            "ANY_VALUE(id)",
            "COUNT(i)",
        ]);
        let last = if self.0.below(3) == 0 {
            last
        } else {
            "COUNT(u)"
        };
        format!("COUNT(*), {function}({number}), MIN({other}), MAX({other}), {last}")
    }

    fn condition_clause(&mut self) -> String {
        match self.0.below(4) {
            0 => String::new(),
            1 => format!(" WHERE {} AND {}", self.condition(1), self.condition(2)),
            _ => format!(" WHERE {}", self.condition(2)),
        }
    }

    /// A join of the table with itself. What it is joined on has no index, or many equal values.
    fn join(&mut self) -> String {
        let keys = [
            ["i", "s"],
            ["b", "i"],
            ["u", "t"],
            ["t", "u"],
            ["m", "n"],
            ["s", "u"],
            ["v", "c"],
            ["d", "d2"],
            ["dt", "dt"],
            ["f", "g"],
            ["x", "x"],
            ["b + 1", "b"],
        ];
        let [left, right] = keys[self.0.below(keys.len())];
        let (condition, inner) = (self.condition_clause(), self.condition_clause());
        let both = self.0.below(3) == 0;
        let (and, second) = match both {
            true => (" AND e <=> j2 AND ye > jy", ", e AS j2, ye AS jy"),
            false => ("", ""),
        };
        let inner = format!(
            "(SELECT id AS jid, {right} AS j, v AS jv, m AS jm{second} FROM t AS u{inner}) AS o"
        );
        match self.0.below(5) {
            0 => format!(
                "SELECT COUNT(*), SUM(id) FROM t WHERE {left} {} (SELECT {right} FROM t AS u)",
                self.0.one_of(&["IN", "NOT IN"])
            ),
            1 => format!(
                "SELECT id, jid FROM t LEFT JOIN {inner} ON {left} = j{and}{condition} LIMIT {}",
                1 + self.0.below(700)
            ),
            2 => format!(
                "SELECT id, s, jid, jv FROM t JOIN {inner} ON {left} = j AND id < 40{and}{condition}"
            ),
            kind => format!(
                "SELECT COUNT(*), SUM(id), SUM(jid), MIN(jv), MAX(jm) FROM t {}JOIN {inner}
                 ON {left} = j{and}{condition}",
                if kind == 3 { "LEFT " } else { "" }
            ),
        }
    }

    pub fn query(&mut self) -> String {
        match self.0.below(12) {
            7..9 => self.join(),
            9..12 => self.sort(),
            kind => self.query_of(kind),
        }
    }

    /// What rows are put in order by: often the same of many.
    fn order(&mut self) -> String {
        let columns = [
            &INTEGERS[..],
            &UNSIGNED,
            &DECIMALS,
            &DOUBLES,
            &MOMENTS,
            &TEXTS,
            &OTHERS,
        ]
        .concat();
        let computed = [
            "UPPER(v)",
            "c COLLATE utf8mb4_bin",
            "v COLLATE utf8mb4_general_ci",
            "CONCAT(v, x, c, a2)",
            "LENGTH(v)",
            "m / 3",
            "e IS NULL",
            "RAND(5)",
            "CAST(d AS CHAR)",
        ];
        let keys = (0..1 + self.0.below(3)).map(|_| {
            let key = match self.0.below(6) {
                0 => self.number(1),
                1 => self.0.one_of(&computed).into(),
                _ => self.0.one_of(&columns).to_string(),
            };
            format!("{key} {}", self.0.one_of(&["", "DESC"]))
        });
        keys.collect::<Vec<_>>().join(", ")
    }

    /// Rows in order, all or some of them; what they are sorted by is not all that is told of them.
    fn sort(&mut self) -> String {
        let (condition, order) = (self.condition_clause(), self.order());
        let limit = match self.0.below(4) {
            0 => String::new(),
            1 => format!(" LIMIT {}", self.0.below(700)),
            2 => format!(" LIMIT {} OFFSET {}", self.0.below(30), self.0.below(30)),
            _ => format!(" LIMIT {}", self.0.below(10)),
        };
        match self.0.below(6) {
            0 => format!(
                "SELECT DISTINCT s, e, LENGTH(v) AS l FROM t{condition}
                 ORDER BY e, l DESC, s{limit}"
            ),
            1 => format!(
                "SELECT id, jid FROM t JOIN (SELECT id AS jid, s AS j FROM t AS u{condition}) AS o
                 ON i = j ORDER BY {order}{limit}"
            ),
            2 => format!(
                "SELECT o.id, t.id FROM
                 (SELECT id, s AS j FROM t{condition} ORDER BY {order}{limit}) AS o
                 LEFT JOIN t ON t.i = o.j"
            ),
            _ => format!("SELECT id, v FROM t{condition} ORDER BY {order}{limit}"),
        }
    }

    /// One of one table: of an aggregate (below 3), of groups (below 5) or of rows.
    pub fn query_of(&mut self, kind: usize) -> String {
        let condition = self.condition_clause();
        match kind {
            0..3 => format!("SELECT {} FROM t{condition}", self.aggregates()),
            3..5 => {
                let keys = [
                    &INTEGERS[..],
                    &DECIMALS,
                    &MOMENTS,
                    &TEXTS,
                    &OTHERS,
                    &DOUBLES,
                ]
                .concat();
                let mut key = self.0.one_of(&keys).to_string();
                if self.0.below(3) == 0 {
                    key = format!("{key}, {}", self.number(1));
                }
                let aggregates = self.aggregates();
                format!("SELECT {key}, {aggregates} FROM t{condition} GROUP BY {key}")
            }
            5 => format!("SELECT id, {} FROM t{condition}", self.number(1)),
            _ => {
                let limit = 1 + self.0.below(200);
                format!("SELECT id FROM t{condition} ORDER BY id DESC LIMIT {limit}")
            }
        }
    }
}

#[test]
fn whatever_is_asked_is_answered_as_row_by_row() {
    let mut failed = 0;
    let mut warned = 0;
    let mut plain = 0;
    for seed in 0..4 {
        let (mut db, mut numbers) = database(seed);
        for query in 0..250 {
            if query == 200 {
                db.run("SET sql_mode = DEFAULT");
                db.run("SET sql_mode = CONCAT(@@sql_mode, ',NO_UNSIGNED_SUBTRACTION')");
            }
            let sql = Expressions(&mut numbers).query();
            let Answer { rows, warnings } = is_the_same(&mut db, &sql);
            failed += usize::from(rows.is_err());
            warned += usize::from(rows.is_ok() && !warnings.is_empty());
            plain += usize::from(rows.is_ok() && warnings.is_empty());
        }
    }
    assert!(
        failed > 20 && warned > 20 && plain > 400,
        "{failed} failed, {warned} warned, {plain} did neither"
    );
}

#[test]
fn sums_at_the_ends_of_the_ranges_are_exact() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, b BIGINT, u BIGINT UNSIGNED, m DECIMAL(18,2), w DECIMAL(38,0))");
    for id in 0..40 {
        db.run(&format!(
            "INSERT INTO t VALUES ({id}, 9223372036854775807, 18446744073709551615,
               9999999999999999.99, 99999999999999999999999999999999999999)"
        ));
    }
    let Answer { rows, .. } = is_the_same(
        &mut db,
        "SELECT SUM(b), SUM(u), SUM(m), SUM(w), AVG(b) FROM t",
    );
    let expected = "368934881474191032280|737869762948382064600|399999999999999999.60|\
                    3999999999999999999999999999999999999960|9223372036854775807.0000";
    assert_eq!(rows.expect("sums"), [expected]);
    is_the_same(
        &mut db,
        "SELECT SUM(m * 10), SUM(m * m), SUM(b - 1), SUM(m + w) FROM t",
    );
    let Answer { rows, .. } = is_the_same(&mut db, "SELECT SUM(b + id) FROM t");
    assert!(rows.expect_err("out of range").starts_with("1690"));
}

#[test]
fn errors_and_warnings_come_of_the_rows_that_they_come_of_row_by_row() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b BIGINT, v VARCHAR(9))");
    db.run("SET cte_max_recursion_depth = 5000");
    db.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         SELECT i, i % 10, IF(i = 2500, 9223372036854775807, i), CONCAT(i, IF(i > 2000, 'x', '')) FROM n",
    );
    let Answer { warnings, .. } = is_the_same(
        &mut db,
        "SELECT SUM(10 / a), SUM(v + 0) FROM t WHERE id > 1500",
    );
    assert_eq!(warnings.len(), 1024);
    let both = "SELECT SUM(10 % a), SUM(b + 1), SUM(v * 1) FROM t WHERE id > 1990";
    let Answer { rows, warnings } = is_the_same(&mut db, both);
    assert!(rows.expect_err("out of range").starts_with("1690"));
    assert!(warnings.len() > 500);
    is_the_same(
        &mut db,
        "SELECT a, SUM(b + 1) FROM t WHERE b + 1 > a GROUP BY a",
    );
    is_the_same(
        &mut db,
        "SELECT a, SUM(b + 1) FROM t WHERE v < 2500 GROUP BY a",
    );
    is_the_same(&mut db, "SELECT id FROM t WHERE b + 1 > 5 AND id < 2000");
    db.run("SET @seen = 0");
    let counts = "SELECT COUNT(*) FROM t WHERE (@seen := @seen + 1) % 2 = 0";
    is_the_same(&mut db, counts);
    assert_eq!(db.rows("SELECT @seen"), ["6000"]);
}

#[test]
fn groups_that_memory_does_not_hold_are_grouped_all_the_same() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(60))");
    db.run("SET cte_max_recursion_depth = 50000");
    db.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
         SELECT i, i % 20000, REPEAT(CHAR(65 + i % 3, 97 + i % 7), 5 + i % 20) FROM n",
    );
    let sql = "SELECT COUNT(*), SUM(n), SUM(s), MAX(v) FROM
                 (SELECT a, v, COUNT(*) AS n, SUM(id) AS s FROM t GROUP BY a, v) g";
    let whole = is_the_same(&mut db, sql);
    db.run("SET tmp_table_size = 1024");
    assert_eq!(is_the_same(&mut db, sql), whole);
    is_the_same(&mut db, "SELECT v, COUNT(*), SUM(a) FROM t GROUP BY v");
}

#[test]
fn rows_examined_and_measured_are_those_of_row_by_row() {
    let (mut db, _) = database(1);
    for sql in [
        "EXPLAIN ANALYZE SELECT COUNT(*), SUM(i) FROM t WHERE s < 3",
        "EXPLAIN ANALYZE SELECT id FROM t WHERE s < 3 LIMIT 7",
        "EXPLAIN ANALYZE SELECT id FROM t WHERE s < 3",
        "EXPLAIN ANALYZE SELECT s, MAX(m) FROM t IGNORE INDEX (si) WHERE f > 0 GROUP BY s",
        "EXPLAIN ANALYZE SELECT id FROM t WHERE f > 0 ORDER BY v, m",
        "EXPLAIN ANALYZE SELECT id FROM t ORDER BY m DESC, v LIMIT 7",
    ] {
        let counts = |db: &mut Db, batches_from: &str| {
            let Answer { rows, .. } = answer(db, batches_from, sql);
            let text = rows.expect("explained").join("\n");
            let actual = text
                .split("rows=")
                .map(|rest| rest.split([' ', ')']).next());
            let actual: Vec<_> = actual.map(|count| count.map(str::to_string)).collect();
            (actual, db.session.state.statement.rows_examined)
        };
        assert_eq!(counts(&mut db, ALL), counts(&mut db, NONE), "{sql}");
    }
}

/// A table `t` of twenty thousand rows, with 0 to 99 in `a`.
fn twenty_thousand_rows() -> Db {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    db.run("SET cte_max_recursion_depth = 50000");
    db.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         SELECT i, i % 100 FROM n",
    );
    db
}

#[test]
fn a_scan_in_batches_ends_with_its_statement() {
    let mut db = twenty_thousand_rows();
    db.run("SET batch_scan_min_rows = 0, max_execution_time = 200");
    let begun = Instant::now();
    let slow = "SELECT COUNT(*) FROM t x JOIN t y ON y.a + x.a = 300 JOIN t z ON z.a + y.a = 5";
    let error = db.try_rows(slow).expect_err("ended");
    assert_eq!(error.number(), 3024, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// The memory that is charged while a statement runs, at most, as far as it is seen.
fn peak(db: &Db, batches_from: &str, sql: &str) -> u64 {
    let mut other = beside(db);
    other.run(&format!("SET batch_scan_min_rows = {batches_from}"));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| other.run(sql));
        let mut peak = 0;
        while !asking.is_finished() {
            peak = peak.max(used_by_all(db));
            std::thread::sleep(Duration::from_millis(1));
        }
        peak
    })
}

#[test]
fn vectors_are_charged_to_the_statement() {
    let mut db = twenty_thousand_rows();
    let sums = (1..=300).map(|factor| format!("SUM(a * {factor})"));
    let sql = format!("SELECT {} FROM t", sums.collect::<Vec<_>>().join(", "));
    let vectors = 300 * 1024 * size_of::<i64>() as u64;
    assert!(peak(&db, ALL, &sql) > vectors);
    assert!(peak(&db, NONE, &sql) < vectors);
    // Where there is no room for vectors, there is for rows.
    db.run(&format!("SET statement_memory_limit = {vectors}"));
    is_the_same(&mut db, &sql);
}

#[test]
fn others_see_what_they_should_while_a_scan_is_in_batches() {
    let (mut db, _) = database(2);
    let mut other = beside(&db);
    let sql = "SELECT COUNT(*), SUM(id), MAX(i), MIN(v) FROM t WHERE id > 50";
    let own = is_the_same(&mut db, sql);
    let committed = is_the_same(&mut other, sql);
    assert_ne!(own, committed);
    other.run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    assert_eq!(is_the_same(&mut other, sql), own);
    db.run("ROLLBACK");
    assert_eq!(is_the_same(&mut other, sql), committed);
}

#[test]
fn long_lists_are_sorted_in_batches_too() {
    let mut db = Db::new();
    db.run("SET cte_max_recursion_depth = 20000");
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) AS
         WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         SELECT i AS id, CONCAT('v', i) AS v FROM n",
    );
    // Item by item these would be 400 million comparisons of texts.
    db.run("SET max_execution_time = 20000");
    let texts: Vec<String> = (19_990..40_000).map(|i| format!("'v{i}'")).collect();
    let list = texts.join(", ");
    for condition in [
        format!("v IN ({list})"),
        format!("id > 500 AND v IN ({list})"),
        format!("id > 500 AND UPPER(v) IN ({list})"),
    ] {
        let sql = format!("SELECT COUNT(*) FROM t WHERE {condition}");
        assert_eq!(is_the_same(&mut db, &sql).rows.unwrap(), ["11"]);
    }
    // Of a list that warns, as often as row by row.
    for list in ["'1x', 2, 3, 4", "2, 3, 4, '1x'"] {
        let items: Vec<String> = (10..90).map(|item| item.to_string()).collect();
        for more in ["", ", 0", &format!(", {}", items.join(", "))] {
            is_the_same(
                &mut db,
                &format!("SELECT COUNT(*) FROM t WHERE id IN ({list}{more})"),
            );
            let computed =
                format!("SELECT COUNT(*) FROM t WHERE id > 500 AND id * 1.5 IN ({list}{more})");
            is_the_same(&mut db, &computed);
        }
    }
}

#[test]
fn long_values_that_are_not_in_the_tree_are_read_between_batches() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, v MEDIUMTEXT)");
    for id in 0..200 {
        let length = if id % 20 == 7 { 10_000 } else { 3 };
        db.run(&format!(
            "INSERT INTO t VALUES ({id}, {}, REPEAT('x', {length}))",
            id % 9
        ));
    }
    let sql = "SELECT COUNT(*), SUM(a), SUM(LENGTH(v)), MAX(id) FROM t WHERE a <> 5";
    let in_memory = is_the_same(&mut db, sql);
    is_the_same(&mut db, "SELECT id, a FROM t WHERE a <> 5 ORDER BY id DESC");
    db.engine.shared.store.checkpoint().expect("written");
    assert_eq!(is_the_same(&mut db, sql), in_memory);
}

#[test]
fn neighbours_that_look_one_key_up_find_its_row() {
    let mut db = Db::new();
    db.run("CREATE TABLE u (id INT PRIMARY KEY, c INT UNIQUE, v INT, long_text TEXT)");
    db.run(
        "INSERT INTO u VALUES (1, 10, 1, 'a'), (2, 20, 2, REPEAT('b', 3000)), (4, 40, NULL, 'c')",
    );
    db.run("CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT)");
    db.run(
        "INSERT INTO t VALUES (1,1,0),(2,1,1),(3,1,0),(4,2,5),(5,2,2),(6,2,2),(7,3,0),(8,3,0),
         (9,1,1),(10,NULL,0),(11,NULL,0),(12,1,1),(13,4,0),(14,4,1),(15,3,1),(16,2,1)",
    );
    let is_found_by_scanning = |db: &mut Db| {
        for join in ["JOIN", "LEFT JOIN"] {
            for on in [
                "u.id = k",
                "u.id = k AND v <> x",
                "c = k * 10",
                "c = k * 10 AND v <> x",
            ] {
                let by = |hint: &str| {
                    format!(
                        "SELECT t.id, u.id, v, LENGTH(long_text), c FROM t {join} u {hint} ON {on}
                         ORDER BY t.id"
                    )
                };
                let expected = db.rows(&by("IGNORE INDEX (PRIMARY, c)"));
                assert!(expected.len() >= 4, "{join} {on}");
                assert_eq!(
                    db.rows(&by("FORCE INDEX (PRIMARY, c)")),
                    expected,
                    "{join} {on}"
                );
            }
        }
    };
    is_found_by_scanning(&mut db);
    db.run("BEGIN");
    is_found_by_scanning(&mut db);
    db.run("UPDATE u SET v = v + 1");
    db.run("DELETE FROM u WHERE id = 4");
    is_found_by_scanning(&mut db);
}

/// Tables whose rows are many, and the same in much of what they are sorted by.
fn texts_and_others() -> Db {
    let mut db = Db::new();
    db.run("SET cte_max_recursion_depth = 50000");
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b BIGINT, bi BIT(9),
           se SET('x', 'y', 'z'), ti TIME(2), ts TIMESTAMP(3) NULL, ye YEAR, j JSON, z DECIMAL(20,3),
           general VARCHAR(90) COLLATE utf8mb4_general_ci, spaced VARCHAR(90) COLLATE utf8mb4_bin,
           plain VARCHAR(90), accents VARCHAR(90) COLLATE utf8mb4_0900_as_cs,
           language VARCHAR(90) COLLATE utf8mb4_hr_0900_ai_ci, latin CHAR(90) CHARACTER SET latin1,
           bytes VARBINARY(90), long_text TEXT)",
    );
    let mut numbers = Numbers(7);
    let beginnings = [
        "",
        " ",
        "                                ",
        "https://example.com/path/of/",
        "Яяяяяяяяяяяяяяяяяяяяя",
        "Щ",
        "日本語日本語日本語日本語",
        "日",
        "éééééééééééééééééé",
        "l·lllllllllllllllll·",
        "dž",
        "\t",
        "ab\t",
    ];
    let endings = ["", " ", "a", "A", "á", "ž", "Я", "語", "\u{1}", "z  "];
    for from in (0..1200).step_by(400) {
        let rows = (from..from + 400).map(|id| {
            let mut text = || match numbers.below(9) {
                0 => "NULL".to_string(),
                _ => {
                    let latin = |text: &&str| text.chars().all(|c| c <= 'ÿ');
                    let text = format!(
                        "{}{}{}",
                        numbers.one_of(&beginnings),
                        numbers.below(7),
                        numbers.one_of(&endings)
                    );
                    format!("'{}'", Some(&*text).filter(latin).unwrap_or("é"))
                        .replace("'é'", &format!("'{text}'"))
                }
            };
            let texts: Vec<String> = (0..5).map(|_| text()).collect();
            let latin = ["'a'", "'A '", "'é'", "'E1'", "NULL"];
            format!(
                "({id}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})",
                numbers.below(9),
                numbers.one_of(&["NULL", "1", "-1", "9223372036854775807", "5"]),
                numbers.below(512),
                numbers.below(8),
                numbers.one_of(&["NULL", "'-01:02:03.5'", "'800:00:00'", "'00:00:01'"]),
                numbers.one_of(&["NULL", "'2024-07-01 12:00:00.125'", "'2001-01-01'"]),
                numbers.one_of(&["NULL", "1999", "2001"]),
                numbers.one_of(&["NULL", "'[1,2]'", "'{\"a\":1}'", "'7'", "'\"x\"'"]),
                numbers.one_of(&["NULL", "0.001", "-12345678901234567.891", "7", "100"]),
                texts[0],
                texts[1],
                texts[2],
                texts[3],
                texts[4],
                numbers.one_of(&latin),
                numbers.one_of(&["NULL", "'a'", "'a\\0'", "'a\\0\\0b'", "X'FF'"]),
                match numbers.below(3) {
                    0 => "REPEAT('x', 2000)",
                    _ => "'x'",
                },
            )
        });
        let rows: Vec<String> = rows.collect();
        db.run(&format!("INSERT INTO t VALUES {}", rows.join(",")));
        db.engine.shared.store.checkpoint().expect("written");
    }
    db
}

/// What rows are sorted by; `@` stands for the table.
const SORTED: [&str; 17] = [
    "@a",
    "@b",
    "@bi",
    "@se + 0",
    "@ti",
    "@ts",
    "@ye",
    "@z",
    "@general",
    "@spaced",
    "@plain",
    "@accents",
    "@language",
    "@latin",
    "@bytes",
    "@long_text",
    "CONCAT(@plain, @general COLLATE utf8mb4_0900_ai_ci)",
];

#[test]
fn rows_are_in_order_whatever_they_are_sorted_by() {
    let mut db = texts_and_others();
    let mut orders: Vec<String> = SORTED.iter().map(|key| key.to_string()).collect();
    orders.extend(SORTED.iter().map(|key| format!("{key} DESC")));
    orders.extend(SORTED.iter().map(|key| format!("a, {key} DESC, b")));
    orders.extend(
        SORTED
            .iter()
            .map(|key| format!("b DESC, z, {key}, id DESC")),
    );
    orders.push("j".into());
    for order in &orders {
        let all = is_the_same(&mut db, &format!("SELECT id, a FROM t ORDER BY {order}"));
        let all = all.rows.expect("rows");
        assert_eq!(all.len(), 1200);
        is_the_same(
            &mut db,
            &format!("SELECT id, LENGTH(long_text) FROM t ORDER BY {order}"),
        );
        for limit in [1, 70, 1199] {
            let sql = format!("SELECT id, a FROM t ORDER BY {order} LIMIT {limit}");
            let first = is_the_same(&mut db, &sql).rows.expect("rows");
            assert_eq!(first, all[..limit], "{sql}");
        }
    }
    // By comparing what is side by side, which makes no keys.
    for key in SORTED {
        for (direction, wrong) in [("", ">"), ("DESC", "<")] {
            db.run("DROP TABLE IF EXISTS o");
            db.run(&format!(
                "CREATE TABLE o (n INT AUTO_INCREMENT PRIMARY KEY, id INT) AS
                 SELECT id FROM t ORDER BY {} {direction}",
                key.replace('@', "")
            ));
            let of = |table: &str| key.replace('@', &format!("{table}."));
            let (x, y) = (of("x"), of("y"));
            let null = if direction.is_empty() { &y } else { &x };
            let sql = format!(
                "SELECT COUNT(*), SUM({x} {wrong} {y} OR ({x} IS NULL) <> ({y} IS NULL) AND {null} IS NULL
                   OR {x} <=> {y} AND x.id > y.id)
                 FROM o a JOIN o b ON b.n = a.n + 1 JOIN t x ON x.id = a.id JOIN t y ON y.id = b.id"
            );
            let rows = db.rows(&sql);
            assert!(
                rows == ["1199|0"] || rows == ["1199|NULL"],
                "{key} {direction}: {rows:?}"
            );
        }
    }
}

#[test]
fn sorts_that_memory_does_not_hold_are_sorted_all_the_same() {
    let mut db = texts_and_others();
    let orders = [
        "plain, a",
        "a, general DESC",
        "b",
        "a % 3, id DESC",
        "UPPER(plain)",
        "long_text, z",
    ];
    for order in orders {
        for what in ["id, a", "id, LENGTH(long_text)"] {
            for limit in ["", " LIMIT 700", " LIMIT 3"] {
                let sql = format!("SELECT {what} FROM t ORDER BY {order}{limit}");
                let whole = is_the_same(&mut db, &sql);
                db.run("SET sort_buffer_size = 32768");
                assert_eq!(is_the_same(&mut db, &sql), whole, "{sql}");
                db.run("SET sort_buffer_size = DEFAULT");
            }
        }
        let sql = format!(
            "SELECT DISTINCT a, b, plain FROM t ORDER BY plain, b, a, '{}'",
            order.len()
        );
        let whole = is_the_same(&mut db, &sql);
        db.run("SET sort_buffer_size = 32768");
        assert_eq!(is_the_same(&mut db, &sql), whole, "{sql}");
        db.run("SET sort_buffer_size = DEFAULT");
    }
}

#[test]
fn a_sort_that_is_read_again_goes_on_where_it_ended() {
    let mut db = texts_and_others();
    for order in ["t.a", "t.b DESC, t.a", "t.plain", "t.a % 4, t.z"] {
        for limit in [5, 150, 900] {
            is_the_same(
                &mut db,
                &format!(
                    "SELECT t.id, u.id FROM t JOIN t u ON u.id = t.id * 7 AND u.a = 3
                     ORDER BY {order} LIMIT {limit}"
                ),
            );
        }
    }
}

#[test]
fn first_rows_that_grow_go_to_disk_with_the_rest_of_their_batch() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, v TEXT)");
    db.run("SET cte_max_recursion_depth = 5000");
    db.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
         SELECT i, ABS(i - 1600) DIV 3, REPEAT('x', IF(i > 1500, 800, 3)) FROM n",
    );
    let sql = "SELECT id, v FROM t ORDER BY a LIMIT 200";
    let whole = is_the_same(&mut db, sql);
    db.run("SET sort_buffer_size = 32768");
    assert_eq!(is_the_same(&mut db, sql), whole);
}

#[test]
fn first_rows_that_come_first_are_not_all() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    db.run("CREATE TABLE u (id INT PRIMARY KEY, k INT)");
    db.run("SET cte_max_recursion_depth = 5000");
    db.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
         SELECT i, i DIV 3 FROM n",
    );
    db.run("INSERT INTO u SELECT id, a FROM t WHERE id > 300");
    db.run("ANALYZE TABLE t, u");
    // Twice as many rows are kept at first, which is what the first batch has.
    let sql = "SELECT STRAIGHT_JOIN t.id, u.k FROM t JOIN u ON u.id = t.id ORDER BY t.a LIMIT 64";
    let explained = db.rows(&format!("EXPLAIN FORMAT=TREE {sql}")).join("\n");
    let sort = explained.find("Sort").expect("sorted");
    assert!(
        explained.find("join").is_some_and(|join| join < sort),
        "{explained}"
    );
    let Answer { rows, .. } = is_the_same(&mut db, sql);
    assert_eq!(rows.map(|rows| rows.len()), Ok(64));
}

#[test]
fn what_a_sort_fails_or_warns_with_is_as_row_by_row() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, b BIGINT, v VARCHAR(9))");
    db.run("SET cte_max_recursion_depth = 5000");
    db.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         SELECT i, IF(i = 2500, 9223372036854775807, i), CONCAT(i, IF(i > 2900, 'x', '')) FROM n",
    );
    for limit in ["", " LIMIT 7"] {
        let Answer { rows, .. } = is_the_same(
            &mut db,
            &format!("SELECT id FROM t ORDER BY b + 1 DESC{limit}"),
        );
        assert!(rows.expect_err("out of range").starts_with("1690"));
        let Answer { rows, warnings } = is_the_same(
            &mut db,
            &format!("SELECT id FROM t ORDER BY v + 0 DESC{limit}"),
        );
        assert!(rows.is_ok_and(|rows| rows[0] == "3000"));
        assert_eq!(warnings.len(), 100);
        db.run("SET @seen = 0");
        let counts = format!("SELECT id FROM t ORDER BY (@seen := @seen + 1) % 5, id{limit}");
        is_the_same(&mut db, &counts);
        assert_eq!(db.rows("SELECT @seen"), ["6000"]);
    }
    db.run("SET batch_scan_min_rows = 0, max_execution_time = 1");
    let slow = "SELECT COUNT(*) FROM (SELECT x.id FROM t x JOIN t y ORDER BY x.v DESC, y.v LIMIT 9000000) o";
    let error = db.try_rows(slow).expect_err("ended");
    assert_eq!(error.number(), 3024, "{error}");
}
