//! Statements that nest deeply, on threads with small stacks.

use super::database::{Db, cpu_time};

/// As small as an embedding program's threads may be.
const STACK_BYTES: usize = 256 << 10;

/// Runs a test where the stack is small.
#[track_caller]
fn on_a_small_stack(test: impl FnOnce(&mut Db) + Send + 'static) {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, x INT, KEY (x))");
    db.run("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let running = thread.spawn(move || test(&mut db)).expect("a thread");
    if let Err(panic) = running.join() {
        std::panic::resume_unwind(panic);
    }
}

fn nest(open: &str, middle: &str, close: &str, levels: usize) -> String {
    format!("{}{middle}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn parentheses_and_operators_nest_a_thousand_deep() {
    on_a_small_stack(|db| {
        let parens = nest("(", "7", ")", 1_000);
        assert_eq!(db.rows(&format!("SELECT {parens}")), ["7"]);
        let sums = nest("(1 + ", "7", ")", 1_000);
        assert_eq!(db.rows(&format!("SELECT {sums}")), ["1007"]);
        assert_eq!(
            db.rows(&format!("SELECT {sums}")),
            ["1007"],
            "by the kept plan"
        );
        let negated = nest("- ", "7", "", 1_000);
        assert_eq!(
            db.rows(&format!("SELECT x, {negated} FROM t WHERE id = 1")),
            ["1|7"]
        );
        let calls = nest("abs(", "id", ")", 1_000);
        assert_eq!(
            db.rows(&format!("SELECT id FROM t WHERE {calls} = 2")),
            ["2"]
        );
        let chain = vec!["id"; 1_000].join(" + ");
        assert_eq!(
            db.rows(&format!("SELECT {chain} FROM t WHERE id = 3")),
            ["3000"]
        );
    });
}

#[test]
fn subqueries_nest_a_hundred_deep() {
    on_a_small_stack(|db| {
        let scalar = nest("(SELECT ", "7", ")", 100);
        assert_eq!(db.rows(&format!("SELECT {scalar}")), ["7"]);
        let of_table = nest("(SELECT max(id) FROM t WHERE id <= ", "3", ")", 100);
        assert_eq!(db.rows(&format!("SELECT {of_table}")), ["3"]);
        let members = nest("(SELECT id FROM t WHERE id IN ", "(2)", ")", 100);
        assert_eq!(db.rows(&members), ["2"]);
        let derived = nest(
            "SELECT * FROM (",
            "SELECT id FROM t WHERE id = 2",
            ") AS d",
            100,
        );
        assert_eq!(db.rows(&derived), ["2"]);
        let distinct = nest(
            "SELECT DISTINCT * FROM (",
            "SELECT x FROM t WHERE id = 2",
            ") AS d",
            100,
        );
        assert_eq!(db.rows(&distinct), ["2"]);
        for format in ["TRADITIONAL", "TREE", "JSON"] {
            assert!(
                !db.rows(&format!("EXPLAIN FORMAT={format} {distinct}"))
                    .is_empty()
            );
        }
    });
}

#[test]
fn a_union_has_a_thousand_arms_and_a_condition_five_thousand_terms() {
    on_a_small_stack(|db| {
        let arms = vec!["SELECT id FROM t WHERE id = 2"; 1_000];
        assert_eq!(db.rows(&arms.join(" UNION ")), ["2"]);
        assert_eq!(db.rows(&arms.join(" UNION ALL ")).len(), 1_000);
        let any: Vec<String> = (3..5_003).map(|id| format!("id = {id}")).collect();
        assert_eq!(
            db.rows(&format!("SELECT id FROM t WHERE {}", any.join(" OR "))),
            ["3"]
        );
        let all: Vec<String> = (3..5_003).map(|id| format!("id <> {id}")).collect();
        assert_eq!(
            db.rows(&format!("SELECT id FROM t WHERE {}", all.join(" AND "))),
            ["1", "2"]
        );
    });
}

#[test]
fn views_lead_as_deep_as_the_queries_in_them() {
    on_a_small_stack(|db| {
        let sums = nest("(1 + ", "id", ")", 900);
        db.run(&format!("CREATE VIEW v AS SELECT {sums} AS y FROM t"));
        assert_eq!(db.rows("SELECT y FROM v"), ["901", "902", "903"]);
        assert_eq!(db.rows("SELECT y FROM v WHERE y = 902"), ["902"]);
        db.run("CREATE VIEW w AS SELECT y + 1 AS z FROM v");
        assert_eq!(db.rows("SELECT z FROM w WHERE z = 903"), ["903"]);
        assert_eq!(db.rows("SHOW CREATE VIEW w").len(), 1);
        let columns = "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'v'";
        assert_eq!(db.rows(columns), ["1"]);
    });
}

#[test]
fn deeper_statements_are_refused() {
    on_a_small_stack(|db| {
        for sql in [
            format!("SELECT {}", nest("(", "1", ")", 20_000)),
            format!("SELECT {}", nest("(SELECT ", "1", ")", 20_000)),
            format!("SELECT {}", vec!["1"; 20_000].join(" + ")),
            nest("SELECT * FROM (", "SELECT 1", ") AS d", 20_000),
            vec!["SELECT 1"; 20_000].join(" UNION "),
        ] {
            db.fails(&sql, 1436);
        }
        let unfinished = format!("SELECT {} FROM", nest("(1 + ", "1", ")", 1_000));
        db.fails(&unfinished, 1064);
    });
}

/// How long a processor may take for a plan that names tables twice, level by level. Without a bound each
/// level takes twice as long as the one before.
const PLANNED_MAX: std::time::Duration = std::time::Duration::from_secs(30);

/// Common tables, each of which names the one before it twice.
fn doubled(levels: usize, query: &str) -> String {
    let table = |level: usize| {
        let before = format!("c{}", level - 1);
        format!(", c{level} AS ({})", query.replace("{}", &before))
    };
    let tables: String = (1..=levels).map(table).collect();
    format!("WITH c0 AS (SELECT x AS a FROM t){tables} SELECT COUNT(*) FROM c{levels}")
}

#[test]
fn common_tables_named_twice_by_each_other_are_planned_soon_or_refused() {
    let queries = [
        "SELECT l.a FROM {} l JOIN {} r USING (a)",
        "SELECT MAX(l.a) AS a FROM {} l JOIN {} r USING (a)",
        "SELECT a FROM {} WHERE a IN (SELECT a FROM {})",
    ];
    on_a_small_stack(move |db| {
        for query in queries {
            db.run(&doubled(3, query));
            let began = cpu_time();
            let ran = db.try_run(&doubled(30, query));
            let took = cpu_time() - began;
            assert!(took < PLANNED_MAX, "{query}: {took:?}");
            if let Err(error) = ran {
                assert_eq!(error.number(), 1116, "{query}: {error}");
            }
        }
    });
}

#[test]
fn views_named_twice_by_each_other_are_planned_soon_or_refused() {
    on_a_small_stack(|db| {
        db.run("CREATE VIEW v0 AS SELECT id, x FROM t");
        for level in 1..=20 {
            let began = cpu_time();
            let create = format!(
                "CREATE VIEW v{level} AS SELECT l.id, r.x FROM v{0} l JOIN v{0} r ON l.id = r.id",
                level - 1
            );
            let created = db.try_run(&create);
            let took = cpu_time() - began;
            assert!(took < PLANNED_MAX, "{level}: {took:?}");
            if let Err(error) = created {
                assert_eq!(error.number(), 1116, "{level}: {error}");
                assert!(level > 6, "{level}: {error}");
                break;
            }
        }
    });
}
