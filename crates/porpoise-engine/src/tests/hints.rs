//! Optimizer hints, index hints and `optimizer_switch`: what they do to plans, and what is told of
//! those that do nothing.

use super::database::Db;

/// Three tables: `a` and `b` of 300 rows with indexes, `c` of 60 without.
fn tables() -> Db {
    let mut db = Db::new();
    db.run("CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT, KEY x (x), KEY y (y))");
    db.run("CREATE TABLE b (id INT PRIMARY KEY, x INT, y INT, KEY x (x))");
    db.run("CREATE TABLE c (id INT PRIMARY KEY, x INT, y INT)");
    db.run(
        "INSERT INTO a WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 300) \
         SELECT i, i % 10, i FROM n",
    );
    db.run("INSERT INTO b SELECT id, id % 20, y FROM a");
    db.run("INSERT INTO c SELECT id, id % 30, y FROM a WHERE id <= 60");
    db
}

impl Db {
    /// The operators of a statement's plan, each without its figures.
    #[track_caller]
    fn operators(&mut self, sql: &str) -> Vec<String> {
        let tree = self.rows(&format!("EXPLAIN FORMAT=TREE {sql}"));
        let operator = |line: &str| {
            let text = line.trim_start().trim_start_matches("-> ");
            text.split("  (cost=").next().unwrap_or(text).to_string()
        };
        tree[0].lines().map(operator).collect()
    }

    #[track_caller]
    fn has(&mut self, sql: &str, operator: &str) {
        let operators = self.operators(sql);
        let found = operators.iter().any(|line| line.contains(operator));
        assert!(found, "{sql}: {operators:#?}");
    }

    #[track_caller]
    fn lacks(&mut self, sql: &str, operator: &str) {
        let operators = self.operators(sql);
        let found = operators.iter().any(|line| line.contains(operator));
        assert!(!found, "{sql}: {operators:#?}");
    }

    /// The tables in the order in which a statement reads them.
    #[track_caller]
    fn order(&mut self, sql: &str) -> String {
        let rows = self.rows(&format!("EXPLAIN {sql}"));
        let table = |row: &String| row.split('|').nth(2).unwrap_or_default().to_string();
        rows.iter().map(table).collect::<Vec<_>>().join(" ")
    }

    /// What a statement warns of.
    #[track_caller]
    fn warned(&mut self, sql: &str) -> Vec<String> {
        self.rows(sql);
        let warnings = self.rows("SHOW WARNINGS");
        let warnings = warnings.iter().filter(|row| !row.starts_with("Note|"));
        warnings
            .map(|row| row.trim_start_matches("Warning|").to_string())
            .collect()
    }
}

#[test]
fn tables_come_in_the_order_that_hints_say() {
    let mut db = tables();
    let sql = |hints: &str| {
        format!("SELECT {hints} * FROM a JOIN b ON a.id = b.id JOIN c ON c.id = b.id")
    };
    assert_eq!(db.order(&sql("")), "c b a");
    for (hints, order) in [
        ("/*+ JOIN_FIXED_ORDER() */", "a b c"),
        ("STRAIGHT_JOIN", "a b c"),
        ("/*+ JOIN_PREFIX(b, a) */", "b a c"),
        ("/*+ JOIN_SUFFIX(c) JOIN_PREFIX(a) */", "a b c"),
        ("/*+ JOIN_ORDER(b, c) JOIN_ORDER(a, b) */", "a b c"),
        ("/*+ QB_NAME(q) JOIN_ORDER(@q a, b, c) */", "a b c"),
        ("/*+ JOIN_PREFIX(b@`select#1`, a) */", "b a c"),
    ] {
        assert_eq!(db.order(&sql(hints)), order, "{hints}");
    }
    // Of orders that contradict each other the first counts.
    let hints = "/*+ JOIN_ORDER(a, b, c) JOIN_ORDER(c, a) */";
    assert_eq!(db.order(&sql(hints)), "a b c");
    assert_eq!(
        db.warned(&sql(hints)),
        [
            "3126|Hint JOIN_ORDER(`c`@`select#1`,`a`@`select#1`) is ignored as conflicting/duplicated"
        ]
    );
    // The outer join says more.
    let outer = "SELECT /*+ JOIN_ORDER(b, a) */ * FROM a LEFT JOIN b ON a.id = b.id";
    assert_eq!(db.order(outer), "a b");
    assert_eq!(db.warned(outer).len(), 1);
    let nested = "SELECT STRAIGHT_JOIN * FROM a LEFT JOIN (b JOIN c ON b.id = c.id) ON a.id = b.x";
    assert_eq!(db.order(nested), "a b c");
}

#[test]
fn changes_have_hints_too() {
    let mut db = tables();
    let update = "UPDATE /*+ JOIN_FIXED_ORDER() */ a JOIN c ON a.id = c.id SET a.y = 1";
    assert_eq!(db.order(update), "a c");
    db.has(
        "DELETE /*+ NO_INDEX(a y) */ FROM a WHERE x = 3 AND y = 5",
        "using x",
    );
    let insert = "INSERT /*+ NO_BNL(@q) */ INTO b SELECT /*+ QB_NAME(q) */ 1000 + a.id, 1, 1 \
                  FROM a JOIN c ON a.y + 0 = c.y + 1";
    db.lacks(insert, "hash join");
    db.has(&insert.replace("NO_BNL(@q)", ""), "hash join");
}

#[test]
fn indexes_are_those_that_hints_allow() {
    let mut db = tables();
    let both = |hints: &str| format!("SELECT {hints} * FROM a WHERE x = 3 AND y = 5");
    db.has(&both(""), "using y");
    db.has(&both("/*+ NO_INDEX(a y) */"), "using x");
    db.has(&both("/*+ INDEX(a x) */"), "using x");
    db.has(&both("/*+ JOIN_INDEX(a x) */"), "using x");
    db.has(&both("/*+ NO_INDEX(a) */"), "Table scan on a");
    db.has(&both("/*+ NO_ORDER_INDEX(a y) */"), "using y");
    let ordered = |hints: &str| format!("SELECT {hints} * FROM a ORDER BY y LIMIT 3");
    db.lacks(&ordered(""), "Sort");
    db.has(&ordered("/*+ NO_ORDER_INDEX(a y) */"), "Sort");
    db.lacks(&ordered("/*+ NO_JOIN_INDEX(a y) */"), "Sort");
    db.lacks("SELECT /*+ ORDER_INDEX(a y) */ * FROM a ORDER BY y", "Sort");
    db.has("SELECT * FROM a ORDER BY y", "Sort");
    db.has(
        "SELECT * FROM a IGNORE INDEX FOR ORDER BY (y) ORDER BY y LIMIT 3",
        "Sort",
    );
    db.lacks(
        "SELECT * FROM a FORCE INDEX FOR ORDER BY (y) ORDER BY y",
        "Sort",
    );
    let range = |hints: &str| format!("SELECT {hints} * FROM a WHERE y BETWEEN 5 AND 7");
    db.has(&range(""), "Index range scan");
    db.has(&range("/*+ NO_RANGE_OPTIMIZATION(a y) */"), "Table scan");
    db.has("SELECT MIN(y) FROM a", "using y");
    db.lacks("SELECT /*+ NO_INDEX(a y) */ MIN(y) FROM a", "using y");
}

#[test]
fn subqueries_are_evaluated_as_hints_say() {
    let mut db = tables();
    let inside =
        |hints: &str| format!("SELECT * FROM a WHERE id IN (SELECT {hints} x FROM c WHERE y < 50)");
    db.has(&inside(""), "weedout");
    db.has(&inside("/*+ SEMIJOIN(DUPSWEEDOUT) */"), "weedout");
    db.has(&inside("/*+ NO_SEMIJOIN(DUPSWEEDOUT) */"), "Hash semijoin");
    db.has(&inside("/*+ SEMIJOIN(MATERIALIZATION) */"), "Hash semijoin");
    db.has(&inside("/*+ NO_SEMIJOIN() */"), "run only once");
    db.has(&inside("/*+ SUBQUERY(MATERIALIZATION) */"), "run only once");
    db.has(&inside("/*+ SUBQUERY(INTOEXISTS) */"), "dependent");
    db.has(
        &inside("/*+ SEMIJOIN(FIRSTMATCH) */"),
        "Nested loop semijoin",
    );
    db.has(
        &inside("/*+ NO_SEMIJOIN(MATERIALIZATION, DUPSWEEDOUT) */"),
        "Nested loop semijoin",
    );
    let outside = "SELECT /*+ NO_SEMIJOIN(@`select#2`) */ * FROM a WHERE id IN (SELECT x FROM c)";
    db.has(outside, "run only once");
    let count = "SELECT COUNT(*) FROM a WHERE id IN (SELECT /*+ HINT */ x FROM c)";
    for hint in [
        "",
        "NO_SEMIJOIN()",
        "SUBQUERY(INTOEXISTS)",
        "SEMIJOIN(FIRSTMATCH)",
        "SEMIJOIN(DUPSWEEDOUT)",
    ] {
        assert_eq!(db.rows(&count.replace("HINT", hint)), ["29"], "{hint}");
    }
}

#[test]
fn derived_tables_are_merged_or_not() {
    let mut db = tables();
    let derived = |hints: &str| format!("SELECT {hints} * FROM (SELECT * FROM a) d WHERE d.y = 1");
    db.lacks(&derived(""), "Materialize");
    db.has(&derived("/*+ NO_MERGE(d) */"), "Materialize");
    db.lacks(&derived("/*+ NO_MERGE(d) */"), "Filter: (d.y = 1)");
    let hints = "/*+ NO_MERGE(d) NO_DERIVED_CONDITION_PUSHDOWN(d) */";
    db.has(&derived(hints), "Filter: (d.y = 1)");
    db.run("SET optimizer_switch = 'derived_merge=off'");
    db.has(&derived(""), "Materialize");
    db.lacks(&derived("/*+ MERGE(d) */"), "Materialize");
    // A view that is written through is part of the statement all the same.
    db.run("CREATE VIEW v AS SELECT id, y FROM a WHERE x = 1");
    db.run("UPDATE v SET y = 7 WHERE id = 11");
    assert_eq!(db.rows("SELECT y FROM a WHERE id = 11"), ["7"]);
}

#[test]
fn hints_that_can_not_be_followed_are_told() {
    let mut db = tables();
    for (hints, warnings) in [
        (
            "BNL(a) NO_BNL(a)",
            &["3126|Hint NO_BNL(`a`@`select#1`) is ignored as conflicting/duplicated"][..],
        ),
        (
            "NO_ICP(a nope)",
            &["3128|Unresolved name `a`@`select#1` `nope` for NO_ICP hint"],
        ),
        (
            "NO_BNL(nope)",
            &["3128|Unresolved name `nope`@`select#1` for NO_BNL hint"],
        ),
        (
            "JOIN_ORDER(a, nope)",
            &["3128|Unresolved name `nope`@`select#1` for JOIN_ORDER hint"],
        ),
        (
            "NO_BNL(@nope a)",
            &["3127|Query block name `nope` is not found for NO_BNL hint"],
        ),
        (
            "QB_NAME(p) QB_NAME(q)",
            &["3126|Hint QB_NAME(`q`) is ignored as conflicting/duplicated"],
        ),
        (
            "MRR(a)",
            &["1235|Hint MRR(`a`@`select#1`) has no effect in this version of Porpoise"],
        ),
        ("NO_MRR(a) NO_BKA(a)", &[]),
        (
            "RESOURCE_GROUP(r)",
            &["3658|Feature Resource Groups is unsupported (Porpoise has none)."],
        ),
        (
            "NO_BNL(a) nonsense",
            &["1064|Optimizer hint syntax error near 'nonsense */ 1 FROM a LIMIT 1' at line 1"],
        ),
    ] {
        let sql = format!("SELECT /*+ {hints} */ 1 FROM a LIMIT 1");
        // The second time the plan comes out of the cache.
        assert_eq!(db.warned(&sql), warnings, "{hints}");
        assert_eq!(db.warned(&sql), warnings, "{hints}");
        assert_eq!(db.warned(&format!("EXPLAIN {sql}")), warnings, "{hints}");
    }
    let inner = "SELECT (SELECT /*+ MAX_EXECUTION_TIME(10) */ 1)";
    assert_eq!(
        db.warned(inner),
        [
            "3125|MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only"
        ]
    );
}

#[test]
fn a_statement_has_variables_of_its_own() {
    let mut db = tables();
    let own = "SELECT /*+ SET_VAR(sql_mode = 'ANSI') SET_VAR(max_error_count = 7) */ \
               @@max_error_count, @@sql_mode LIKE '%ANSI%'";
    let after = "SELECT @@max_error_count, @@sql_mode LIKE '%ANSI%'";
    for _ in 0..2 {
        assert_eq!(db.rows(own), ["7|1"]);
        assert_eq!(db.rows(after), ["1024|0"]);
    }
    let sql = "SELECT /*+ SET_VAR(nope = 1) SET_VAR(autocommit = 0) SET_VAR(max_error_count = 8) \
               SET_VAR(max_error_count = 9) */ @@max_error_count";
    assert_eq!(
        db.warned(sql),
        [
            "3128|Unresolved name 'nope' for SET_VAR hint",
            "3637|Variable autocommit cannot be set using SET_VAR hint.",
            "3126|Hint SET_VAR(max_error_count=9)  is ignored as conflicting/duplicated",
        ]
    );
    let planned = "SELECT /*+ SET_VAR(optimizer_switch = 'semijoin=off') */ * FROM a WHERE id IN \
                   (SELECT x FROM c)";
    db.has(planned, "run only once");
    // An error doesn't keep the values.
    db.fails("SELECT /*+ SET_VAR(sql_mode = 'ANSI') */ nope FROM a", 1054);
    assert_eq!(db.rows(after), ["1024|0"]);
    db.run("PREPARE p FROM 'SELECT /*+ SET_VAR(max_error_count = 7) */ @@max_error_count'");
    assert_eq!(db.rows("EXECUTE p"), ["7"]);
    assert_eq!(db.rows(after), ["1024|0"]);
}

#[test]
fn switches_are_part_of_what_a_plan_is_kept_for() {
    let mut db = tables();
    let sql = "SELECT COUNT(*) FROM a JOIN c ON a.y + 0 = c.y + 1";
    db.has(sql, "hash join");
    for switch in ["block_nested_loop", "hash_join"] {
        db.run(&format!("SET optimizer_switch = '{switch}=off'"));
        db.lacks(sql, "hash join");
        db.has(
            &sql.replace("COUNT", "/*+ BNL() HASH_JOIN() */ COUNT"),
            "hash join",
        );
        db.run("SET optimizer_switch = default");
    }
    let limited = "SELECT * FROM a ORDER BY y LIMIT 3";
    db.run("SET optimizer_switch = 'prefer_ordering_index=off'");
    db.has(limited, "Sort");
    db.run("SET optimizer_switch = 'default'");
    db.run("ALTER TABLE a ALTER INDEX y INVISIBLE");
    db.lacks("SELECT * FROM a WHERE y = 1", "using y");
    db.run("SET optimizer_switch = 'use_invisible_indexes=on'");
    db.has("SELECT * FROM a WHERE y = 1", "using y");
    db.run("SET optimizer_switch = 'default,semijoin=off'");
    db.has(
        "SELECT * FROM a WHERE id IN (SELECT x FROM c)",
        "run only once",
    );
    db.run("SET optimizer_switch = 'materialization=off'");
    db.has("SELECT * FROM a WHERE id IN (SELECT x FROM c)", "dependent");
    db.run("SET optimizer_switch = 'default'");
    db.run("SET optimizer_search_depth = 1");
    assert_eq!(db.rows(sql), ["60"]);
    db.run("SET optimizer_prune_level = 0");
    assert_eq!(db.rows(sql), ["60"]);
}

#[test]
fn hints_in_a_view_are_the_views_own() {
    let mut db = tables();
    db.run(
        "CREATE VIEW v AS SELECT /*+ NO_INDEX(a y) NO_BNL(nope) */ a.* FROM a WHERE x = 3 AND y = 5",
    );
    db.has("SELECT * FROM v", "using x");
    assert!(db.warned("SELECT * FROM v").is_empty());
    // The view's table is not the statement's.
    db.has(
        "SELECT * FROM v JOIN a ON a.id = v.id + 1 WHERE a.x = 3 AND a.y = 5",
        "a using y",
    );
    let sql = "SELECT /*+ NO_INDEX(a x) */ * FROM v";
    db.has(sql, "using x");
    assert_eq!(db.warned(sql).len(), 1);
}
