//! EXPLAIN: what it says of a plan, and of what operators do.

use super::accounts::login;
use super::database::{Db, beside};

/// `a`: 100 rows, of which 10 have each x; `b`: 40 rows.
fn tables() -> Db {
    let mut db = Db::new();
    db.run("CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT, KEY x (x))");
    db.run("CREATE TABLE b (id INT PRIMARY KEY, x INT, y INT)");
    db.run(
        "INSERT INTO a WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 100) \
         SELECT i, i % 10, i FROM n",
    );
    db.run("INSERT INTO b SELECT id, x, y FROM a WHERE id <= 40");
    db
}

impl Db {
    /// The operators of EXPLAIN ANALYZE, each with the rows it yielded and how often it was opened;
    /// `-` where it never ran.
    #[track_caller]
    fn analyzed(&mut self, sql: &str) -> Vec<String> {
        let tree = self.rows(&format!("EXPLAIN ANALYZE {sql}"));
        tree[0].lines().map(operator).collect()
    }

    /// A plan's operators, without figures.
    #[track_caller]
    fn tree(&mut self, sql: &str) -> String {
        let tree = self.rows(&format!("EXPLAIN FORMAT=TREE {sql}"));
        let lines = tree[0].lines().map(operator);
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn operator(line: &str) -> String {
    let text = line.trim_start().trim_start_matches("-> ");
    let name = text.split("  (cost=").next().unwrap_or(text);
    if text.ends_with("(never executed)") {
        return format!("{name}: -");
    }
    let Some((_, figures)) = text.split_once(" (actual time=") else {
        return name.to_string();
    };
    let (times, counts) = figures.split_once(" rows=").expect("rows");
    let (first, last) = times.split_once("..").expect("two times");
    let times = [first, last].map(|time| time.parse::<f64>().expect("a time"));
    assert!(times[0] <= times[1], "{line}");
    let counts = counts.trim_end_matches(')').replace(" loops=", " x ");
    format!("{name}: {counts}")
}

#[test]
fn operators_are_counted_while_the_statement_runs() {
    let mut db = tables();
    assert_eq!(
        db.analyzed("SELECT * FROM a JOIN b ON a.id = b.id WHERE a.x = 3 AND b.y > 20"),
        [
            "Nested loop inner join: 2 x 1",
            "Index lookup on a using x (x=3): 10 x 1",
            "Filter: (b.y > 20): 0.2 x 10",
            "Single-row index lookup on b using PRIMARY (id=a.id): 0.4 x 10",
        ]
    );
    assert_eq!(
        db.analyzed("SELECT x, COUNT(*) FROM b WHERE y > 30 GROUP BY x ORDER BY 2 DESC LIMIT 3"),
        [
            "Limit: 3 row(s): 3 x 1",
            "Sort: count(0) DESC, limit input to 3 row(s) per chunk: 3 x 1",
            "Table scan on <temporary>: 10 x 1",
            "Aggregate using temporary table",
            "Filter: (b.y > 30): 10 x 1",
            "Table scan on b: 40 x 1",
        ]
    );
    let nothing = db.analyzed("SELECT * FROM b x JOIN a ON a.id = x.id WHERE x.y > 1000");
    assert!(
        nothing.last().is_some_and(|line| line.ends_with(": -")),
        "{nothing:?}"
    );
}

#[test]
fn subqueries_are_counted_apart() {
    let mut db = tables();
    let correlated = db.analyzed("SELECT (SELECT COUNT(*) FROM b WHERE b.x = a.x) FROM a");
    assert!(
        correlated.contains(&"Aggregate: count(0): 1 x 10".to_string()),
        "one execution for each x: {correlated:?}"
    );
    assert!(correlated.contains(&"Table scan on b: 40 x 1".to_string()));
    assert!(correlated.contains(&"Hash (kept for all executions)".to_string()));
    let in_key = db.analyzed("SELECT * FROM a WHERE x = (SELECT MIN(x) FROM b)");
    assert!(in_key.contains(&"Select #2 (subquery in key; run only once)".to_string()));
    assert!(in_key.contains(&"Table scan on b: 40 x 1".to_string()));
}

#[test]
fn a_common_table_is_computed_once_and_told_once() {
    let mut db = tables();
    let sql = "WITH c AS (SELECT x, COUNT(*) n FROM b GROUP BY x) \
               SELECT * FROM c p JOIN c q ON p.x = q.n";
    let analyzed = db.analyzed(sql);
    let scans = analyzed
        .iter()
        .filter(|line| line.contains("Table scan on b"));
    assert_eq!(scans.collect::<Vec<_>>(), ["Table scan on b: 40 x 1"]);
    let rows = db.rows(&format!("EXPLAIN {sql}"));
    let tables: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.split('|').nth(2))
        .collect();
    assert_eq!(tables, ["<derived2>", "<derived2>", "b"]);
}

#[test]
fn changes_that_are_analyzed_happen() {
    let mut db = tables();
    let update = "UPDATE a JOIN b ON a.id = b.id SET a.y = 0 WHERE b.x = 1";
    let analyzed = db.analyzed(update);
    assert_eq!(analyzed[..2], ["Update a", "Nested loop inner join: 4 x 1"]);
    assert_eq!(db.rows("SELECT COUNT(*) FROM a WHERE y = 0"), ["4"]);
    db.analyzed("DELETE a FROM a JOIN b ON a.id = b.id WHERE b.x = 1");
    assert_eq!(db.rows("SELECT COUNT(*) FROM a"), ["96"]);
    // As in MySQL, no others are.
    for other in [
        "UPDATE a SET y = 1",
        "DELETE FROM a",
        "INSERT INTO b SELECT id + 100, x, y FROM a",
        "INSERT INTO b VALUES (1000, 1, 1)",
    ] {
        db.fails(&format!("EXPLAIN ANALYZE {other}"), 1235);
    }
    db.run("START TRANSACTION READ ONLY");
    db.fails(&format!("EXPLAIN ANALYZE {update}"), 1792);
    db.run("COMMIT");
}

#[test]
fn analyzed_queries_answer_nothing_else() {
    let mut db = tables();
    db.run("SET @v = 5");
    db.analyzed("SELECT COUNT(*) INTO @v FROM a");
    assert_eq!(db.rows("SELECT @v"), ["5"]);
    db.fails("EXPLAIN ANALYZE SELECT (SELECT id FROM a)", 1242);
    db.fails(
        "EXPLAIN ANALYZE SELECT /*+ MAX_EXECUTION_TIME(1) */ COUNT(*) FROM a, a b, a c, a d",
        3024,
    );
}

#[test]
fn formats_are_asked_for_or_set() {
    let mut db = tables();
    db.run("SET explain_format = TREE");
    assert!(db.rows("EXPLAIN SELECT * FROM a")[0].starts_with("-> Table scan on a"));
    db.run("SET explain_format = JSON");
    assert!(db.rows("EXPLAIN SELECT * FROM a")[0].contains("\"query_block\""));
    // The first version knows no operators.
    db.fails("EXPLAIN ANALYZE SELECT * FROM a", 1235);
    db.run("SET explain_json_format_version = 2");
    let analyzed = &db.rows("EXPLAIN ANALYZE SELECT * FROM a LIMIT 1")[0];
    assert!(
        analyzed.contains("\"operation\": \"Limit: 1 row(s)\""),
        "{analyzed}"
    );
    assert!(analyzed.contains("\"actual_rows\": 1.0"), "{analyzed}");
    db.run("SET explain_format = DEFAULT");
    db.fails("EXPLAIN ANALYZE FORMAT=TRADITIONAL SELECT 1", 1235);
    db.fails("EXPLAIN FORMAT=POETRY SELECT 1", 1791);
    db.fails("EXPLAIN INTO @plan SELECT 1", 1235);
    assert_eq!(
        db.run("EXPLAIN FORMAT=JSON INTO @plan SELECT * FROM a")
            .affected_rows,
        1
    );
    assert_eq!(
        db.rows("SELECT JSON_UNQUOTE(JSON_EXTRACT(@plan, '$.operation'))"),
        ["Table scan on a"]
    );
    db.run("CREATE DATABASE other");
    db.run("CREATE TABLE other.a (id INT)");
    assert!(db.tree("SELECT * FROM a WHERE x = 1").contains("using x"));
    db.fails("EXPLAIN FOR SCHEMA other SELECT * FROM a WHERE x = 1", 1054);
    db.run("EXPLAIN FOR DATABASE other SELECT * FROM a WHERE id = 1");
    db.fails("EXPLAIN FOR SCHEMA nothing SELECT * FROM a", 1049);
    assert_eq!(db.rows("SELECT DATABASE()"), ["d"]);
}

#[test]
fn the_traditional_form_tells_what_operators_do() {
    let mut db = tables();
    let mut extra = |sql: &str| {
        let rows = db.rows(&format!("EXPLAIN {sql}"));
        let last = |row: &String| row.rsplit('|').next().unwrap_or_default().to_string();
        rows.iter().map(last).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        extra("SELECT ROW_NUMBER() OVER (ORDER BY y) FROM b"),
        "Using temporary; Using filesort"
    );
    assert_eq!(
        extra("SELECT x FROM a UNION ALL SELECT x FROM b"),
        "Using index, NULL"
    );
    assert_eq!(
        extra("SELECT x FROM a UNION SELECT x FROM b"),
        "Using index, NULL, Using temporary"
    );
    assert_eq!(
        extra("SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (c INT PATH '$')) j"),
        "Table function: json_table; Using temporary"
    );
    let anti = extra("SELECT * FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.y = b.y)");
    assert_eq!(anti, "NULL, Not exists; Using join buffer (hash join)");
    let distinct = db.tree("SELECT DISTINCT y FROM b");
    assert!(
        distinct.starts_with("Remove duplicates by a hash table"),
        "{distinct}"
    );
}

#[test]
fn the_optimizer_tells_of_its_choices() {
    let mut db = tables();
    let traces = "SELECT QUERY, TRACE, MISSING_BYTES_BEYOND_MAX_MEM_SIZE, INSUFFICIENT_PRIVILEGES \
                  FROM information_schema.OPTIMIZER_TRACE";
    let sql = "SELECT * FROM a JOIN b ON a.id = b.id WHERE a.x = 3";
    db.run(sql);
    assert!(db.rows(traces).is_empty());
    db.run("SET optimizer_trace = 'enabled=on'");
    db.run(sql);
    // What reads traces leaves none.
    for _ in 0..2 {
        let told = &db.rows(traces)[0];
        assert!(
            told.starts_with(&format!("{sql}|{{\n  \"steps\": [")),
            "{told}"
        );
        assert!(told.ends_with("|0|0"), "{told}");
    }
    let step = |db: &mut Db, path: &str| {
        db.rows(&format!(
            "SELECT JSON_EXTRACT(TRACE, '{path}') FROM information_schema.OPTIMIZER_TRACE"
        ))
        .join("\n")
    };
    let paths = step(&mut db, "$**.table_access.considered_access_paths");
    assert!(paths.contains("\"index\": \"x\""), "{paths}");
    assert!(paths.contains("\"cause\": \"least cost\""), "{paths}");
    let order = step(&mut db, "$**.chosen_join_order.tables[*].table");
    assert_eq!(order, "[\"a\", \"b\"]");
    let conditions = step(&mut db, "$**.condition_processing.resulting_conditions");
    assert_eq!(conditions, "[[\"(`d`.`a`.`x` = 3)\"]]");
    assert!(step(&mut db, "$**.plan[0]").contains("Nested loop inner join"));

    db.run("SELECT * FROM (SELECT * FROM a) d WHERE id IN (SELECT x FROM b WHERE b.y = d.y)");
    let transformations = step(&mut db, "$**.transformation.to");
    assert!(
        transformations.contains("part of the query around it"),
        "{transformations}"
    );
    assert!(transformations.contains("semijoin"), "{transformations}");

    db.run("SET optimizer_trace_features = 'greedy_search=off,range_optimizer=off'");
    db.run("PREPARE p FROM 'SELECT * FROM a JOIN b USING (id)'");
    db.run("EXECUTE p");
    assert_eq!(step(&mut db, "$**.join_step"), "NULL");
    assert_eq!(step(&mut db, "$**.table_access"), "NULL");
    db.run("SET optimizer_trace_max_mem_size = 10");
    db.run(sql);
    let told = &db.rows(traces)[0];
    assert!(!told.ends_with("|0|0") && told.ends_with("|0"), "{told}");
    db.run("SET optimizer_trace_max_mem_size = default, optimizer_trace = 'one_line=on'");
    db.run("SET optimizer_trace_offset = -2, optimizer_trace_limit = 2");
    for x in 0..3 {
        db.run(&format!("SELECT * FROM a WHERE x = {x}"));
    }
    let told = db.rows("SELECT QUERY FROM information_schema.OPTIMIZER_TRACE");
    assert_eq!(
        told,
        ["SELECT * FROM a WHERE x = 1", "SELECT * FROM a WHERE x = 2"]
    );
    let lines = "SELECT MAX(TRACE LIKE '%\n%') FROM information_schema.OPTIMIZER_TRACE";
    assert_eq!(db.rows(lines), ["0"]);
    db.run("SET optimizer_trace = 'enabled=off'");
    db.run(sql);
    assert_eq!(db.rows(traces).len(), 2);
}

#[test]
fn a_note_has_the_query_as_it_was_rewritten() {
    let mut db = tables();
    let mut note = |sql: &str| {
        db.rows(&format!("EXPLAIN {sql}"));
        let warnings = db.rows("SHOW WARNINGS");
        let [note] = &warnings[..] else {
            panic!("{sql}: {warnings:?}")
        };
        note.trim_start_matches("Note|1003|").to_string()
    };
    assert_eq!(
        note(
            "SELECT a.id FROM (SELECT * FROM a WHERE x = 3) a LEFT JOIN b ON a.id = b.id WHERE b.y > 5"
        ),
        "/* select#1 */ select `d`.`a`.`id` AS `id` from `d`.`a` join `d`.`b` on((`d`.`a`.`id` = `d`.`b`.`id`)) \
         where ((`d`.`b`.`y` > 5) and (`d`.`a`.`x` = 3))"
    );
    for (sql, part) in [
        (
            "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.y = a.y)",
            "`d`.`a` semi join `d`.`b` on(",
        ),
        (
            "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.y = a.y)",
            "anti join",
        ),
        (
            "SELECT x, COUNT(*) n FROM a GROUP BY x HAVING n > 2 ORDER BY n DESC LIMIT 3",
            "select `d`.`a`.`x` AS `x`,count(0) AS `n` from `d`.`a` group by `d`.`a`.`x` having (count(0) > 2) \
             order by count(0) desc limit 3",
        ),
        (
            "SELECT (SELECT MAX(y) FROM b WHERE b.x = a.x) m FROM a",
            "(/* select#2 */ select max(`d`.`b`.`y`) AS `MAX(y)` from `d`.`b` where (`d`.`b`.`x` = `d`.`a`.`x`))",
        ),
        (
            "SELECT * FROM (SELECT DISTINCT x FROM b) d",
            "from (/* select#2 */ select distinct `d`.`b`.`x` AS `x` from `d`.`b`) `d`",
        ),
        (
            "SELECT x FROM a UNION ALL SELECT y FROM b",
            "from `d`.`a` union all /* select#2 */ select `d`.`b`.`y` AS `y` from `d`.`b`",
        ),
        (
            "SELECT ROW_NUMBER() OVER (PARTITION BY x ORDER BY y DESC) r FROM a",
            "select row_number() OVER (PARTITION BY `d`.`a`.`x` ORDER BY `d`.`a`.`y` desc) AS `r`",
        ),
        (
            "SELECT AVG(x) OVER (ORDER BY y ROWS 2 PRECEDING) r FROM a",
            "select avg(`d`.`a`.`x`) OVER (ORDER BY `d`.`a`.`y` ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS `r`",
        ),
    ] {
        let note = note(sql);
        assert!(note.contains(part), "{sql}: {note}");
    }
    // Notes may be unwanted.
    db.run("SET sql_notes = 0");
    db.rows("EXPLAIN SELECT 1");
    assert!(db.rows("SHOW WARNINGS").is_empty());
    db.run("SET sql_notes = 1");
    db.rows("EXPLAIN DELETE FROM a WHERE x = 1");
    assert_eq!(
        db.rows("SHOW WARNINGS"),
        ["Note|1003|delete from `d`.`a` where (`d`.`a`.`x` = 1)"]
    );
}

#[test]
fn what_another_session_executes_is_explained() {
    let mut holder = tables();
    holder.run("CREATE PROCEDURE p() UPDATE b SET y = 0 WHERE id = 7");
    let mut db = beside(&holder);
    let other = beside(&holder);
    let id = other.session.id();
    let explain = format!("EXPLAIN FORMAT=TREE FOR CONNECTION {id}");
    assert_eq!(db.rows(&explain), [""; 0]);
    db.fails(&format!("EXPLAIN FOR CONNECTION {}", db.session.id()), 3012);
    db.fails("EXPLAIN FOR CONNECTION 999999", 1094);
    db.fails(&format!("EXPLAIN ANALYZE FOR CONNECTION {id}"), 1235);
    let mut waiting = Some(other);
    for (statement, table, select_type) in [
        ("DELETE FROM b WHERE id = 7", "b", "DELETE"),
        (
            "REPLACE INTO b (id, x) SELECT id, x FROM a WHERE x = 7 AND id < 10",
            "b",
            "REPLACE",
        ),
        (
            "SELECT a.id FROM a JOIN b ON b.x = a.x WHERE a.id = 7 FOR UPDATE",
            "a",
            "SIMPLE",
        ),
        (
            "PREPARE s FROM 'UPDATE b SET y = ? WHERE id = 7'; EXECUTE s USING @y",
            "b",
            "UPDATE",
        ),
        ("CALL p()", "b", "UPDATE"),
    ] {
        holder.run("BEGIN");
        holder.run("UPDATE a JOIN b ON a.id = b.id SET a.y = 1, b.y = 1 WHERE b.id = 7");
        let mut other = waiting.take().expect("it has come back");
        let ends = std::thread::spawn(move || {
            statement.split("; ").for_each(|one| {
                other.try_rows(one).expect(one);
            });
            other
        });
        let explained = loop {
            let row = db.try_rows(&format!("EXPLAIN FOR CONNECTION {id}"));
            match row.unwrap_or_default().first() {
                Some(row) if !row.ends_with("Plan isn't ready yet") => break row.clone(),
                _ => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        };
        let begins = format!("1|{select_type}|{table}|");
        assert!(explained.starts_with(&begins), "{explained}: {statement}");
        let tree = db.rows(&explain);
        assert!(!tree[0].is_empty(), "{statement}");
        holder.run("ROLLBACK");
        waiting = Some(ends.join().expect(statement));
    }
    assert_eq!(db.rows(&explain), [""; 0]);
}

#[test]
fn whose_statement_it_is_matters() {
    let mut root = tables();
    root.run("CREATE USER reader; GRANT SELECT ON *.* TO reader");
    let mut reader = login(&root, "reader");
    let watched = beside(&root);
    let id = watched.session.id();
    reader.fails(&format!("EXPLAIN FOR CONNECTION {id}"), 1094);
    root.run("GRANT PROCESS ON *.* TO reader");
    let mut reader = login(&root, "reader");
    assert_eq!(
        reader.rows(&format!("EXPLAIN FOR CONNECTION {id}")),
        [""; 0]
    );
}

#[test]
fn a_semi_join_begins_with_the_subquery_where_that_is_less() {
    let mut db = tables();
    db.run("CREATE TABLE few (a INT, b INT)");
    db.run("INSERT INTO few VALUES (3, 90), (3, 91), (4, 20)");
    db.run("INSERT INTO a SELECT id + 1000 * n.i, x + 100 * n.i, y FROM a, (VALUES ROW(1), ROW(2), ROW(3), ROW(4), ROW(5)) n(i)");
    db.run("ANALYZE TABLE a, few");
    let query =
        "SELECT id FROM a WHERE x IN (SELECT /*+ QB_NAME(q) */ a FROM few WHERE few.b > a.y)";
    assert_eq!(
        db.tree(query),
        "Remove duplicate rows by a.id using temporary table (weedout)\n\
         Nested loop inner join\n\
         Table scan on few\n\
         Filter: (few.b > a.y)\n\
         Index lookup on a using x (x=few.a)"
    );
    let rows = db.rows(&format!("EXPLAIN {query}"));
    let ends = |row: &str, note| assert!(row.ends_with(note), "{row}");
    ends(&rows[0], "|Start temporary");
    ends(&rows[1], "End temporary");
    // Nothing else is left; and this is.
    let hinted = |hint: &str| query.replacen("SELECT", &format!("SELECT /*+ {hint} */"), 1);
    let only = hinted("SEMIJOIN(@q DUPSWEEDOUT)").replace("WHERE x", "WHERE id = 3 AND x");
    assert!(db.tree(&only).starts_with("Remove duplicate rows"));
    let without = db.tree(&hinted("NO_SEMIJOIN(@q DUPSWEEDOUT)"));
    assert!(without.contains("semijoin"), "{without}");
    db.run("SET optimizer_switch = 'duplicateweedout=off'");
    assert_eq!(db.tree(query), without);
    let sorted = format!("{query} ORDER BY id");
    let answer = db.rows(&sorted);
    db.run("SET optimizer_switch = 'duplicateweedout=on'");
    assert_eq!(db.rows(&sorted), answer);
    // A lock is taken as a row is read.
    let locks = db.tree(&format!("{query} FOR UPDATE"));
    assert!(locks.contains("semijoin"), "{locks}");
}

#[test]
fn a_join_without_an_equality_reads_the_other_side_once() {
    let mut db = tables();
    assert_eq!(
        db.tree("SELECT COUNT(*) FROM a JOIN b ON a.y < b.y"),
        "Aggregate: count(0)\n\
         Inner hash join (no condition), extra conditions: (a.y < b.y)\n\
         Table scan on a\n\
         Hash\n\
         Table scan on b"
    );
}
