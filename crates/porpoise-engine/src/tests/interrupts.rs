//! Statements that would take minutes end when they are told to, and when their time is up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use porpoise_core::error::Result;
use porpoise_mdl::process::Command;

use super::database::{Db, beside, cpu_time};

/// How long a statement that was told to end may go on: much longer than it does, as the tests run
/// unoptimised and beside others.
const END_MAX: Duration = Duration::from_secs(5);

/// Queries, each of which takes minutes in a part of its own. `ten` has ten rows, `tens` ten
/// thousand.
const QUERIES: &[(&str, &str)] = &[
    (
        "a function called often",
        "SELECT BENCHMARK(1000000000, MD5('a'))",
    ),
    ("a wait", "SELECT SLEEP(1000)"),
    ("a named lock", "SELECT GET_LOCK('taken', 1000)"),
    (
        "a digest",
        "SELECT SHA2(REPEAT('a', 50000000), 512), SLEEP(1000)",
    ),
    (
        "an encryption",
        "SELECT LENGTH(AES_ENCRYPT(REPEAT('a', 50000000), 'key')), SLEEP(1000)",
    ),
    (
        "a compression",
        "SELECT LENGTH(COMPRESS(HEX(AES_ENCRYPT(REPEAT('a', 3000000), 'key')))), SLEEP(1000)",
    ),
    (
        "a pattern that nearly matches everywhere",
        "SELECT REPEAT('a', 10000000) LIKE CONCAT('%', REPEAT('a', 1000000), 'b%')",
    ),
    (
        "a text that is nearly found everywhere",
        "SELECT LOCATE(CONCAT(REPEAT('a', 1000000), 'b'), REPEAT('a', 10000000))",
    ),
    (
        "a replacement that grows",
        "SELECT LENGTH(REGEXP_REPLACE(REPEAT('a', 10000000), 'a', 'bb'))",
    ),
    (
        "a regular expression of many states",
        "SELECT REPEAT('ab', 100000000) REGEXP '(?:[ab]{1,50}){1,20}c', SLEEP(1000)",
    ),
    (
        "a regular expression that backtracks",
        "SELECT REPEAT('ab', 20000000) REGEXP '(?=[ab]*c)', SLEEP(1000)",
    ),
    (
        "digits of digits",
        "SELECT LENGTH(HEX(HEX(HEX(HEX(REPEAT('a', 30000000)))))), SLEEP(1000)",
    ),
    (
        "groups of long concatenations",
        "SELECT a.i, LENGTH(GROUP_CONCAT(b.i, c.i)) FROM tens a, tens b, tens c GROUP BY a.i",
    ),
    (
        "scans in batches",
        "SELECT SUM((SELECT SUM(t.i * a.i) FROM tens t WHERE t.i * 3 > a.i)) FROM tens a, tens b",
    ),
    (
        "a document searched in another",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000),
           doc AS (SELECT JSON_ARRAYAGG(i) AS j FROM n)
         SELECT BENCHMARK(1000000000, JSON_CONTAINS(j, j)) FROM doc",
    ),
    (
        "a long document",
        "SELECT JSON_VALID(CONCAT('[', REPEAT('1,', 30000000), '1]')), SLEEP(1000)",
    ),
    (
        "a long text in capitals",
        "SELECT LENGTH(UPPER(REPEAT('é', 50000000))), SLEEP(1000)",
    ),
    (
        "a comparison of long texts",
        "SELECT REPEAT('é', 50000000) = REPEAT('É', 50000000), SLEEP(1000)",
    ),
    (
        "a nested loop",
        "SELECT COUNT(*) FROM tens a, tens b, tens c WHERE a.i < b.i AND b.i < c.i",
    ),
    (
        "a hash join whose rows don't match",
        "SELECT COUNT(*) FROM tens a JOIN tens b ON a.i % 2 = b.i % 2 AND a.i + b.i < 0",
    ),
    (
        "a filter that nothing passes",
        "SELECT * FROM tens a, tens b WHERE a.i + b.i < 0",
    ),
    (
        "a sort",
        "SELECT a.i FROM tens a, tens b ORDER BY a.i * b.i DESC",
    ),
    (
        "the first rows of an order",
        "SELECT a.i FROM tens a, tens b ORDER BY a.i * b.i DESC LIMIT 3",
    ),
    (
        "a grouping",
        "SELECT a.i * b.i AS p, COUNT(*) FROM tens a, tens b GROUP BY p",
    ),
    ("DISTINCT", "SELECT DISTINCT a.i * b.i FROM tens a, tens b"),
    (
        "an aggregate of distinct values",
        "SELECT COUNT(DISTINCT a.i * b.i) FROM tens a, tens b",
    ),
    (
        "a concatenation in order",
        "SELECT LENGTH(GROUP_CONCAT(a.i ORDER BY b.i)) FROM tens a, tens b",
    ),
    (
        "a window",
        "SELECT SUM(a.i) OVER (ORDER BY b.i ROWS 5 PRECEDING) FROM tens a, tens b",
    ),
    (
        "frames that start anew",
        "SELECT MAX(i) OVER (ORDER BY i ROWS BETWEEN 3000 PRECEDING AND 3000 FOLLOWING) FROM tens",
    ),
    (
        "a union",
        "SELECT a.i * b.i FROM tens a, tens b UNION SELECT a.i FROM tens a, tens b",
    ),
    (
        "an intersection",
        "SELECT a.i * b.i FROM tens a, tens b INTERSECT SELECT a.i FROM tens a, tens b",
    ),
    (
        "a recursive table",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
         SELECT COUNT(*) FROM n",
    ),
    (
        "a derived table",
        "SELECT COUNT(*) FROM (SELECT a.i + b.i AS s FROM tens a, tens b LIMIT 1000000000) d",
    ),
    (
        "a subquery for each row",
        "SELECT COUNT(*) FROM tens a
         WHERE (SELECT COUNT(*) FROM tens b WHERE b.i * 2 > a.i) > 0",
    ),
    (
        "a subquery's rows",
        "SELECT COUNT(*) FROM tens c
         WHERE (c.i, 1) < ANY (SELECT -a.i, b.i FROM tens a, ten b)",
    ),
    (
        "rows found in a document",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000),
           doc AS (SELECT JSON_ARRAYAGG(i) AS j FROM n)
         SELECT COUNT(*) FROM doc,
           JSON_TABLE(j, '$[*]' COLUMNS (x INT PATH '$')) a,
           JSON_TABLE(j, '$[*]' COLUMNS (y INT PATH '$')) b,
           JSON_TABLE(j, '$[*]' COLUMNS (z INT PATH '$')) c",
    ),
    (
        "rows skipped by a limit",
        "SELECT a.i FROM tens a, tens b LIMIT 9999999999, 1",
    ),
];

/// Statements that aren't queries.
const CHANGES: &[(&str, &str)] = &[
    ("DO", "DO BENCHMARK(1000000000, 1 + 1)"),
    ("SET", "SET @x = BENCHMARK(1000000000, 1 + 1)"),
    (
        "an insert of a query's rows",
        "INSERT INTO sink SELECT a.i + b.i FROM tens a, tens b",
    ),
    (
        "an insert of many values",
        "INSERT INTO sink VALUES (1), (BENCHMARK(1000000000, 1 + 1))",
    ),
    (
        "an update",
        "UPDATE tens SET i = i + BENCHMARK(100000, 1 + 1)",
    ),
    (
        "an update of a join",
        "UPDATE tens a, tens b SET a.i = a.i + 1 WHERE a.i > b.i",
    ),
    (
        "a delete",
        "DELETE FROM tens WHERE BENCHMARK(100000, 1 + 1) = 0",
    ),
    ("a delete that cascades", "DELETE FROM parent WHERE id = 1"),
    (
        "a table made of a query",
        "CREATE TABLE made AS SELECT a.i + b.i AS s FROM tens a, tens b",
    ),
    (
        "a check of all rows",
        "ALTER TABLE tens ADD CHECK (NOT REPEAT('a', 1000000 + i)
           LIKE CONCAT('%', REPEAT('a', 900000), 'b'))",
    ),
    (
        "a copy of all rows",
        "ALTER TABLE tens ADD COLUMN j INT AS (REPEAT('a', 100000 + i)
           LIKE CONCAT('%', REPEAT('a', 90000), 'b')) STORED",
    ),
    ("a row that is locked", "UPDATE locked SET i = 2"),
    ("a table that is locked", "DROP TABLE locked"),
];

/// A database with the tables of the statements, and the session that holds the locks.
fn database() -> Db {
    let mut db = Db::new();
    db.run("SET GLOBAL max_allowed_packet = 1073741824");
    db.run("SET GLOBAL cte_max_recursion_depth = 4294967295");
    db.run("SET GLOBAL group_concat_max_len = 4294967296");
    db.run("SET GLOBAL innodb_lock_wait_timeout = 1000");
    db.run("CREATE TABLE ten (i BIGINT)");
    db.run("INSERT INTO ten VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)");
    db.run("CREATE TABLE tens (i BIGINT)");
    db.run("CREATE TABLE sink (i BIGINT)");
    db.run(
        "INSERT INTO tens SELECT a.i + 10 * b.i + 100 * c.i + 1000 * d.i
         FROM ten a, ten b, ten c, ten d",
    );
    db.run(
        "CREATE TABLE parent (id INT PRIMARY KEY, up INT,
              FOREIGN KEY (up) REFERENCES parent (id) ON DELETE CASCADE)",
    );
    db.run("INSERT INTO parent VALUES (1, NULL)");
    db.run("INSERT INTO parent SELECT i + 2, 1 FROM tens");
    db.run("CREATE TABLE locked (i INT)");
    db.run("INSERT INTO locked VALUES (1)");
    db.run("DO GET_LOCK('taken', 0)");
    db.run("BEGIN");
    db.run("UPDATE locked SET i = 3");
    // The last row that a cascade comes to.
    db.run("SELECT * FROM parent WHERE id = 10001 FOR UPDATE");
    db
}

/// Runs a statement in a session of its own, and has it killed after a moment if `kills`. With what
/// it ended, if it ended soon.
fn end(db: &Db, setting: &str, sql: &str, kills: bool) -> Result<Result<()>, &'static str> {
    /// So that the statement is in the middle of something.
    const MOMENT: Duration = Duration::from_millis(100);
    let mut session = beside(db);
    session.run(setting);
    let control = session.session.control().clone();
    let (sender, ended) = mpsc::channel();
    let sql = sql.to_owned();
    std::thread::spawn(move || {
        let outcome = session.try_run(&sql).map(drop);
        // Nobody hears of a statement that took too long.
        let _ = sender.send(outcome);
    });
    if kills {
        while control.process().command == Command::Sleep {
            if let Ok(outcome) = ended.recv_timeout(Duration::from_millis(1)) {
                return Ok(outcome);
            }
        }
        if let Ok(outcome) = ended.recv_timeout(MOMENT) {
            return Ok(outcome);
        }
        control.kill_query();
    }
    ended.recv_timeout(END_MAX).map_err(|_| "it goes on and on")
}

/// All statements, each with what it did instead of ending with an error of that number.
fn not_ended_with(
    number: u16,
    statements: &[(&str, &str)],
    mut end: impl FnMut(&str) -> Result<Result<()>, &'static str>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (what, sql) in statements {
        let began = Instant::now();
        let did = match end(sql) {
            Ok(Err(error)) if error.number() == number => continue,
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(())) => "it came to its end".to_owned(),
            Err(did) => did.to_owned(),
        };
        wrong.push(format!("{what}: {did}, {:?}", began.elapsed()));
    }
    wrong
}

#[test]
fn kill_query_ends_every_statement() {
    let db = database();
    let end = |sql: &str| end(&db, "DO 0", sql, true);
    let mut wrong = not_ended_with(1317, QUERIES, end);
    wrong.extend(not_ended_with(1317, CHANGES, end));
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_query_ends_when_its_time_is_up() {
    let db = database();
    let end = |sql: &str| end(&db, "SET max_execution_time = 50", sql, false);
    let wrong = not_ended_with(3024, QUERIES, end);
    assert_eq!(wrong, Vec::<String>::new());
}

/// Statements that take long to plan, beside what they do. `tens` has ten thousand rows.
fn long_plans() -> Vec<(&'static str, String)> {
    let nested = |around: &str, inner: &str, levels: usize| {
        let nest = |sql: String, _| around.replace("{}", &sql);
        (1..levels).fold(inner.to_owned(), nest)
    };
    let list = |len: u32, sep: &str, item: &dyn Fn(u32) -> String| {
        (0..len).map(item).collect::<Vec<_>>().join(sep)
    };
    let of_tens = |condition: String| format!("SELECT COUNT(*) FROM tens WHERE {condition}");
    vec![
        (
            "100 subqueries within each other",
            nested(
                "SELECT i FROM tens WHERE i IN ({})",
                "SELECT i FROM tens",
                100,
            ),
        ),
        (
            "100 that must not match",
            nested(
                "SELECT i FROM tens WHERE i NOT IN ({})",
                "SELECT i FROM tens",
                100,
            ),
        ),
        (
            "a join of 61 tables",
            format!(
                "SELECT COUNT(*) FROM {} WHERE {}",
                list(61, ", ", &|n| format!("tens t{n}")),
                list(60, " AND ", &|n| format!("t{n}.i = t{}.i", n + 1))
            ),
        ),
        (
            "a list of 10,000",
            of_tens(format!("i IN ({})", list(10_000, ", ", &|n| n.to_string()))),
        ),
        (
            "5,000 terms",
            of_tens(list(5000, " OR ", &|n| format!("i + {} = {n}", n % 3))),
        ),
        (
            "1,000 unions",
            list(1000, " UNION ", &|n| format!("SELECT {n}")),
        ),
        (
            "1,000 parentheses",
            format!("SELECT {}1{}", "(".repeat(1000), ")".repeat(1000)),
        ),
    ]
}

#[test]
fn long_statements_are_planned_soon_and_planning_ends_by_kill() {
    let db = database();
    for (what, sql) in long_plans() {
        let mut session = beside(&db);
        // Of a processor: other tests take theirs.
        let began = cpu_time();
        let explained = session.try_run(&format!("EXPLAIN {sql}"));
        let took = cpu_time() - began;
        assert!(explained.is_ok(), "{what}: {explained:?}");
        assert!(took < END_MAX, "{what}: {took:?}");
        // Whenever the kill comes, the session goes on; and what was killed while it was planned
        // has that error.
        let control = session.session.control().clone();
        // The statement may be over before the killer has seen it.
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = ended.clone();
        let killer = std::thread::spawn(move || {
            while control.process().command == Command::Sleep {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::yield_now();
            }
            control.kill_query();
        });
        let outcome = session.try_run(&format!("EXPLAIN {sql}"));
        ended.store(true, Ordering::Relaxed);
        killer.join().expect("kills");
        if let Err(error) = outcome {
            assert_eq!(error.number(), 1317, "{what}");
        }
        assert_eq!(session.rows("SELECT 1"), ["1"]);
    }
}

#[test]
fn the_time_of_a_query_counts_from_its_beginning() {
    let mut db = database();
    let nested = |sql: String, _| format!("SELECT i FROM tens WHERE i NOT IN ({sql})");
    let sql = (0..60).fold("SELECT i FROM ten WHERE SLEEP(1000)".to_owned(), nested);
    db.run("SET max_execution_time = 1");
    let began = Instant::now();
    db.fails(&sql, 3024);
    assert!(began.elapsed() < END_MAX);
}

#[test]
fn the_hint_gives_a_time_to_its_own_statement() {
    let mut db = database();
    for hinted in [
        "SELECT /*+ MAX_EXECUTION_TIME(20) */ SLEEP(1000)",
        "(SELECT /*+ NO_ICP(ten) MAX_EXECUTION_TIME( 20 ) */ SLEEP(1000)) UNION SELECT 1",
        "SELECT /*+ MAX_EXECUTION_TIME(20) */ * FROM tens a, tens b WHERE a.i + b.i < 0",
    ] {
        db.fails(hinted, 3024);
    }
    let prepared = db
        .session
        .prepare(b"SELECT /*+ max_execution_time(20) */ SLEEP(1000)");
    let prepared = prepared.expect("prepares");
    let error = db.execute(prepared.id).expect_err("its time is up");
    assert_eq!(error.number(), 3024);
    // A time that is 0, or of a query within another, says nothing.
    db.run("SELECT /*+ MAX_EXECUTION_TIME(0) */ SLEEP(0.05)");
    db.run("SELECT (SELECT /*+ MAX_EXECUTION_TIME(10) */ SLEEP(0.05))");
    db.run("SET max_execution_time = 10");
    // The hint is stronger than the variable.
    db.run("SELECT /*+ MAX_EXECUTION_TIME(100000) */ SLEEP(0.05)");
    // Only queries have a time.
    db.run("DO SLEEP(0.05)");
    db.run("INSERT INTO sink VALUES (SLEEP(0.05))");
    // What ended one statement doesn't end the next.
    db.fails("SELECT SLEEP(1000)", 3024);
    db.run("SET max_execution_time = 0");
    assert_eq!(db.rows("SELECT SLEEP(0.05)"), ["0"]);
}

#[test]
fn buffers_beyond_the_limit_end_the_statement_and_nothing_else() {
    let mut db = database();
    // These keep in memory what they keep.
    let keepers = [
        "SELECT LENGTH(GROUP_CONCAT(REPEAT('a', 100) ORDER BY b.i)) FROM tens a, ten b",
        "SELECT JSON_LENGTH(JSON_ARRAYAGG(REPEAT('a', 100))) FROM tens a, ten b",
        "SELECT COUNT(*) FROM ten c WHERE c.i > ANY (SELECT a.i + b.i FROM tens a, tens b)",
    ];
    // These go on to disk.
    let spillers = [
        "SELECT SUM(a.i) OVER (ORDER BY b.i) FROM tens a, tens b",
        "SELECT a.i * b.i AS p, COUNT(*) FROM tens a, tens b GROUP BY p",
        "SELECT DISTINCT a.i * b.i FROM tens a, tens b",
        "SELECT COUNT(DISTINCT a.i * b.i) FROM tens a, tens b",
        "SELECT a.i * b.i FROM tens a, tens b EXCEPT SELECT a.i FROM tens a",
        "SELECT COUNT(*) FROM (SELECT a.i + b.i AS s FROM tens a, tens b LIMIT 100000000) d",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
        "SELECT a.i FROM tens a, tens b ORDER BY a.i * b.i LIMIT 5000000",
        "SELECT a.i, REPEAT('a', 5000 + a.i % 2) AS x FROM tens a ORDER BY x, a.i LIMIT 60000",
        "SELECT a.i FROM tens a, tens b ORDER BY a.i * b.i",
    ];
    db.run("SET cte_max_recursion_depth = 4294967295");
    db.run("SET statement_memory_limit = 4194304, max_tmp_session_space_usage = 4194304");
    let all = keepers.map(|sql| (sql, 1037)).into_iter();
    for (sql, number) in all.chain(spillers.map(|sql| (sql, 1114))) {
        db.fails(sql, number);
        assert_eq!(db.session.state.memory.used(), 0, "{sql}");
        assert_eq!(db.session.state.memory.space().used(), 0, "{sql}");
    }
    db.run("SET max_tmp_session_space_usage = DEFAULT");
    assert_eq!(db.engine.variables().memory().used(), 0);
    // What is limited is memory, not rows.
    assert_eq!(db.rows("SELECT COUNT(*) FROM tens a, ten b"), ["100000"]);
    db.run("SET statement_memory_limit = DEFAULT");
    assert_eq!(
        db.rows("SELECT COUNT(DISTINCT a.i * 10 + b.i) FROM tens a, ten b"),
        ["100000"]
    );
}

#[test]
fn sorted_lists_count_too() {
    let mut db = database();
    let list = |len: u32| {
        let items: Vec<String> = (0..len).map(|item| item.to_string()).collect();
        format!(
            "SELECT COUNT(*) FROM tens WHERE i + 0 IN ({})",
            items.join(", ")
        )
    };
    db.run("SET statement_memory_limit = 1048576");
    db.fails(&list(50_000), 1037);
    assert_eq!(db.session.state.memory.used(), 0);
    assert_eq!(db.rows(&list(5000)), ["5000"]);
}

#[test]
fn results_of_subqueries_are_kept_only_where_there_is_memory() {
    let mut db = database();
    let sql = "SELECT SUM((SELECT MAX(b.i) FROM ten b WHERE b.i + a.i >= 0))
               FROM tens a STRAIGHT_JOIN ten c WHERE c.i < 3";
    assert_eq!(db.rows(sql), ["270000"]);
    db.run("SET statement_memory_limit = 524288");
    assert_eq!(db.rows(sql), ["270000"]);
    assert_eq!(db.session.state.memory.used(), 0);
}

#[test]
fn a_connection_that_takes_too_much_memory_is_closed() {
    let db = database();
    let collected = "SELECT JSON_LENGTH(JSON_ARRAYAGG(REPEAT('a', 100))) FROM tens a, tens b";
    let mut own = beside(&db);
    own.run("SET connection_memory_limit = 4194304");
    let error = own.try_run(collected).expect_err("too much");
    assert_eq!(error.number(), 4082);
    let words = "Connection closed. Connection memory limit 4194304 bytes exceeded. Consumed ";
    assert!(error.message().starts_with(words), "{error}");
    assert!(own.session.control().is_connection_killed());
    let mut all = beside(&db);
    all.run("SET GLOBAL global_connection_memory_limit = 16777216");
    all.run("SET global_connection_memory_tracking = ON");
    all.fails(collected, 4081);
    assert!(all.session.control().is_connection_killed());
    beside(&db).run("SELECT 1");
}

#[test]
fn results_longer_than_a_packet_are_null_with_a_warning() {
    let mut db = Db::with(&[("max_allowed_packet", "1048576")]);
    db.run("SET @long = REPEAT('a', 1048576)");
    let longer = [
        ("repeat", "REPEAT('a', 1048577)"),
        ("repeat", "REPEAT(@long, 9223372036854775807)"),
        ("space", "SPACE(1048577)"),
        ("concat", "CONCAT(@long, 'b')"),
        ("concat_ws", "CONCAT_WS(',', @long, 'b')"),
        ("lpad", "LPAD('a', 1048577, 'b')"),
        ("rpad", "RPAD('a', 1048577, 'b')"),
        ("rpad", "RPAD('a', 1048576, 'é')"),
        ("replace", "REPLACE(@long, 'a', 'bc')"),
        ("insert", "INSERT(@long, 5, 0, 'b')"),
        ("hex", "HEX(@long)"),
        ("to_base64", "TO_BASE64(@long)"),
        ("quote", "QUOTE(@long)"),
        ("export_set", "EXPORT_SET(-1, @long, 'n')"),
        ("make_set", "MAKE_SET(3, @long, 'b')"),
        ("regexp_replace", "REGEXP_REPLACE(@long, 'a', 'bc')"),
        ("aes_encrypt", "AES_ENCRYPT(@long, 'key')"),
        ("json_array", "JSON_ARRAY(@long, @long)"),
        ("json_object", "JSON_OBJECT('k', @long)"),
        ("json_quote", "JSON_QUOTE(@long)"),
        (
            "date_format",
            "DATE_FORMAT('2024-01-01', REPEAT('%W', 500000))",
        ),
        ("cast_as_binary", "CAST('a' AS BINARY(1048577))"),
    ];
    for (name, call) in longer {
        assert_eq!(db.rows(&format!("SELECT {call} IS NULL")), ["1"], "{call}");
        let warning = format!(
            "Warning|1301|Result of {name}() was larger than max_allowed_packet (1048576) - truncated"
        );
        assert_eq!(db.rows("SHOW WARNINGS"), [warning], "{call}");
    }
    // What is just as long as a packet is whole.
    for call in [
        "REPEAT('a', 1048576)",
        "CONCAT(LEFT(@long, 1048575), 'b')",
        "LPAD('a', 1048576, 'b')",
        "HEX(LEFT(@long, 524288))",
    ] {
        assert_eq!(db.rows(&format!("SELECT LENGTH({call})")), ["1048576"]);
    }
    db.run("SET group_concat_max_len = 1000000000");
    db.run("CREATE TABLE two (t LONGTEXT)");
    db.run("INSERT INTO two VALUES (REPEAT('a', 600000)), (REPEAT('b', 600000))");
    for order in ["", " ORDER BY t DESC"] {
        let sql = format!("SELECT LENGTH(GROUP_CONCAT(t{order})) FROM two");
        assert_eq!(db.rows(&sql), ["1048576"]);
        assert_eq!(
            db.rows("SHOW WARNINGS"),
            ["Warning|1260|Row 2 was cut by GROUP_CONCAT()"]
        );
    }
}

#[test]
fn long_arguments_count_too() {
    let mut db = Db::new();
    db.run("SET @long = REPEAT('a', 10000000)");
    db.run("SET statement_memory_limit = 33554432");
    let many = |call: &str| format!("SELECT LENGTH({call}({}))", vec!["@long"; 20].join(", "));
    db.fails(&many("CONCAT"), 1037);
    db.fails(&many("GREATEST"), 1037);
    db.run("SELECT LENGTH(CONCAT(@long, @long))");
}
