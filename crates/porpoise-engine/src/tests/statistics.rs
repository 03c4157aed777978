//! Statistics of tables: histograms, distinct values, their refresh, and what plans make of them.

use porpoise_storage::Location;

use super::database::Db;
use crate::engine::{Engine, EngineOptions};
use crate::session::Login;

/// Makes a table `t` of so many rows: `v` is 0 in most and `id` in every hundredth, `half` is one of
/// two values, `name` one of five.
fn with_rows(db: &mut Db, rows: u32) {
    db.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, half INT, name VARCHAR(20), u INT UNIQUE, j JSON, \
         KEY by_half (half, v))",
    );
    db.run(&format!("SET cte_max_recursion_depth = {rows}"));
    db.run(&format!(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n WHERE id < {rows}) \
         SELECT id, IF(id % 100 = 0, id, 0), id % 2, CONCAT('name', id % 5), id, NULL FROM n"
    ));
}

/// How many rows a query is expected to read and to find, by EXPLAIN.
fn expected(db: &mut Db, sql: &str) -> f64 {
    let plan = db.rows(&format!("EXPLAIN {sql}"));
    let fields: Vec<&str> = plan[0].split('|').collect();
    let number = |field: &str| field.parse::<f64>().expect("a number");
    number(fields[9]) * number(fields[10]) / 100.0
}

/// The type of a histogram, and how many buckets it has.
fn kind(db: &mut Db, column: &str) -> Vec<String> {
    db.rows(&format!(
        "SELECT HISTOGRAM->>'$.\"histogram-type\"', JSON_LENGTH(HISTOGRAM->'$.buckets') \
         FROM information_schema.COLUMN_STATISTICS WHERE TABLE_NAME = 't' AND COLUMN_NAME = '{column}'"
    ))
}

#[test]
fn histograms_are_made_and_dropped_by_column() {
    let mut db = Db::new();
    with_rows(&mut db, 1_000);
    assert_eq!(
        db.rows("ANALYZE TABLE t UPDATE HISTOGRAM ON v, name, u, j, nothing WITH 8 BUCKETS"),
        [
            "d.t|histogram|Error|The column 'j' has an unsupported data type.",
            "d.t|histogram|status|Histogram statistics created for column 'name'.",
            "d.t|histogram|Error|The column 'nothing' does not exist.",
            "d.t|histogram|Error|The column 'u' is covered by a single-part unique index.",
            "d.t|histogram|status|Histogram statistics created for column 'v'.",
        ]
    );
    assert_eq!(kind(&mut db, "name"), ["singleton|5"]);
    assert_eq!(kind(&mut db, "v"), ["equi-height|8"]);
    assert_eq!(
        db.rows(
            "SELECT HISTOGRAM->>'$.buckets[0]', HISTOGRAM->>'$.\"data-type\"' \
             FROM information_schema.COLUMN_STATISTICS WHERE COLUMN_NAME = 'name'"
        ),
        ["[\"base64:type254:bmFtZTA=\", 0.2]|string"]
    );
    assert_eq!(
        db.rows("ANALYZE TABLE t DROP HISTOGRAM ON v, half"),
        [
            "d.t|histogram|Error|No histogram statistics found for column 'half'.",
            "d.t|histogram|status|Histogram statistics removed for column 'v'.",
        ]
    );
    assert_eq!(kind(&mut db, "v").len(), 0);
    db.fails("ANALYZE TABLE t UPDATE HISTOGRAM ON v WITH 0 BUCKETS", 1690);
    db.fails(
        "ANALYZE TABLE t UPDATE HISTOGRAM ON v WITH 1025 BUCKETS",
        1690,
    );
    db.fails("ANALYZE TABLE t UPDATE HISTOGRAM ON v, V", 1060);
}

#[test]
fn histograms_are_of_one_table_that_lasts() {
    let mut db = Db::new();
    db.run("CREATE TABLE a (x INT)");
    db.run("CREATE VIEW w AS SELECT x FROM a");
    db.run("CREATE TEMPORARY TABLE own (x INT)");
    let mut told = |sql: &str| db.rows(sql).join("; ");
    assert_eq!(
        told("ANALYZE TABLE a, own UPDATE HISTOGRAM ON x"),
        "|histogram|Error|Only one table can be specified while modifying histogram statistics."
    );
    assert_eq!(
        told("ANALYZE TABLE w UPDATE HISTOGRAM ON x"),
        "d.w|histogram|Error|Cannot create histogram statistics for a view."
    );
    assert_eq!(
        told("ANALYZE TABLE own UPDATE HISTOGRAM ON x"),
        "d.own|histogram|Error|Cannot create histogram statistics for a temporary table."
    );
    assert_eq!(
        told("ANALYZE TABLE nothing DROP HISTOGRAM ON x"),
        "d.nothing|histogram|Error|Table 'd.nothing' doesn't exist; d.nothing|histogram|status|Operation failed"
    );
}

#[test]
fn a_histogram_can_be_given_as_json() {
    let mut db = Db::new();
    with_rows(&mut db, 1_000);
    db.run("ANALYZE TABLE t UPDATE HISTOGRAM ON half AUTO UPDATE");
    let json = db.rows("SELECT HISTOGRAM FROM information_schema.COLUMN_STATISTICS");
    let changed = json[0].replace("[0, 0.5]", "[0, 0.001]");
    assert_ne!(json[0], changed);
    assert_eq!(
        db.rows(&format!(
            "ANALYZE TABLE t UPDATE HISTOGRAM ON half USING DATA '{changed}'"
        )),
        ["d.t|histogram|status|Histogram statistics created for column 'half'."]
    );
    assert_eq!(
        db.rows("SELECT HISTOGRAM FROM information_schema.COLUMN_STATISTICS"),
        [changed]
    );
    let unable = "Unable to build histogram statistics for column";
    for (columns, json, errors) in [
        (
            "half",
            "{",
            vec![
                "Invalid JSON text in argument 1 to function UPDATE HISTOGRAM: \"Missing a name for \
                 object member.\" at position 1."
                    .to_owned(),
                format!("{unable} 'half' in table 'd'.'t'"),
                "JSON format error.".to_owned(),
            ],
        ),
        (
            "half",
            "[1]",
            vec![
                format!("{unable} 'half' in table 'd'.'t'"),
                "JSON data is not an object".to_owned(),
            ],
        ),
        (
            "half",
            "{\"histogram-type\": \"singleton\"}",
            vec![
                format!("{unable} 'half' in table 'd'.'t'"),
                "Missing attribute at '$.\"data-type\"'.".to_owned(),
            ],
        ),
        (
            "v",
            &json[0].replace("\"int\"", "\"double\""),
            vec![
                format!("{unable} 'v' in table 'd'.'t'"),
                "JSON format error.".to_owned(),
            ],
        ),
        (
            "half, v",
            &json[0],
            vec![
                "Only one column can be specified while modifying histogram statistics with JSON \
                 data."
                    .to_owned(),
            ],
        ),
    ] {
        let sql = format!("ANALYZE TABLE t UPDATE HISTOGRAM ON {columns} USING DATA '{json}'");
        let expected = errors
            .iter()
            .map(|error| format!("d.t|histogram|Error|{error}"));
        assert_eq!(db.rows(&sql), expected.collect::<Vec<String>>());
    }
}

#[test]
fn histograms_that_update_themselves_follow_the_rows() {
    let mut db = Db::new();
    with_rows(&mut db, 1_000);
    db.run("ANALYZE TABLE t UPDATE HISTOGRAM ON half AUTO UPDATE");
    db.run("ANALYZE TABLE t UPDATE HISTOGRAM ON name MANUAL UPDATE");
    db.run("UPDATE t SET half = id % 3, name = id % 7");
    db.run("ANALYZE TABLE t");
    assert_eq!(kind(&mut db, "half"), ["singleton|3"]);
    assert_eq!(kind(&mut db, "name"), ["singleton|5"]);
}

#[test]
fn statistics_follow_their_columns_and_indexes() {
    let mut db = Db::new();
    with_rows(&mut db, 1_000);
    db.run("ANALYZE TABLE t UPDATE HISTOGRAM ON v, half, name");
    db.run("ANALYZE TABLE t");
    db.run("ALTER TABLE t RENAME COLUMN v TO w, RENAME INDEX by_half TO h, ADD COLUMN z INT FIRST");
    assert_eq!(kind(&mut db, "w"), ["singleton|11"]);
    assert_eq!(kind(&mut db, "v").len(), 0);
    let counted = db
        .table("t")
        .expect("the table")
        .state
        .statistics
        .load_full();
    assert_eq!(counted.cardinality["h"], [2, 12]);
    db.run("ALTER TABLE t MODIFY name VARCHAR(30), DROP COLUMN half");
    assert_eq!(kind(&mut db, "name").len(), 0);
    assert_eq!(kind(&mut db, "half").len(), 0);
    db.run("ALTER TABLE t RENAME TO other");
    let left = "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMN_STATISTICS";
    assert_eq!(db.rows(left), ["other|w"]);
    db.run("DROP TABLE other");
    assert_eq!(db.rows(left).len(), 0);
}

#[test]
fn statistics_outlast_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let engine = Engine::open(EngineOptions {
            location: Location::Path(folder.path().join("data")),
            variables: Vec::new(),
        })
        .expect("opens");
        let session = engine.connect(Login::default()).expect("connects");
        Db { engine, session }
    };
    let queries = [
        "SELECT * FROM information_schema.COLUMN_STATISTICS",
        "SELECT * FROM mysql.innodb_table_stats",
        "SELECT * FROM mysql.innodb_index_stats",
    ];
    let mut db = open();
    db.run("CREATE DATABASE d");
    db.run("USE d");
    with_rows(&mut db, 1_000);
    db.run("ANALYZE TABLE t UPDATE HISTOGRAM ON v, name WITH 7 BUCKETS AUTO UPDATE");
    db.run("ANALYZE TABLE t");
    let before = queries.map(|query| db.rows(query));
    db.engine.close().expect("closes");
    drop(db);
    let mut db = open();
    assert_eq!(queries.map(|query| db.rows(query)), before);
}

#[test]
fn statistics_tables_agree_with_each_other() {
    let mut db = Db::new();
    with_rows(&mut db, 2_000);
    db.run("ANALYZE TABLE t");
    assert_eq!(
        db.rows(
            "SELECT stat_name, stat_value, stat_description FROM mysql.innodb_index_stats \
             WHERE index_name = 'by_half' AND stat_name LIKE 'n_diff%'"
        ),
        [
            "n_diff_pfx01|2|half",
            "n_diff_pfx02|22|half,v",
            "n_diff_pfx03|2000|half,v,id",
        ]
    );
    assert_eq!(
        db.rows(
            "SELECT INDEX_NAME, SEQ_IN_INDEX, CARDINALITY FROM information_schema.STATISTICS \
             WHERE TABLE_NAME = 't'"
        ),
        ["PRIMARY|1|2000", "u|1|2000", "by_half|1|2", "by_half|2|22"]
    );
    let rows = db.rows("SELECT n_rows FROM mysql.innodb_table_stats WHERE table_name = 't'");
    assert_eq!(rows, ["2000"]);
    let shown = db.rows("SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_NAME = 't'");
    assert_eq!(rows, shown);
}

#[test]
fn a_rare_value_is_expected_to_be_rare() {
    let mut db = Db::new();
    with_rows(&mut db, 20_000);
    db.run("ALTER TABLE t ADD KEY by_v (v)");
    db.run("ANALYZE TABLE t UPDATE HISTOGRAM ON v WITH 1024 BUCKETS");
    let rare = expected(&mut db, "SELECT * FROM t WHERE v = 700");
    assert!(rare < 3.0, "{rare}");
    let range = expected(&mut db, "SELECT * FROM t WHERE v BETWEEN 500 AND 1500");
    assert!((5.0..25.0).contains(&range), "{range}");
    let usual = expected(&mut db, "SELECT * FROM t WHERE v = 0");
    assert!((18_000.0..21_000.0).contains(&usual), "{usual}");
    let none = expected(&mut db, "SELECT * FROM t WHERE v IS NULL");
    assert!(none < 3.0, "{none}");
}

#[test]
fn statistics_are_refreshed_when_a_tenth_has_changed() {
    let mut db = Db::new();
    with_rows(&mut db, 1_000);
    let refresh = |db: &Db| {
        let refreshed = porpoise_ddl::statistics::refresh(&db.engine.shared, &|| false);
        refreshed.expect("it can be refreshed");
        db.table("t")
            .expect("the table")
            .state
            .statistics
            .load_full()
    };
    let first = refresh(&db);
    assert!(first.analyzed);
    assert_eq!(first.rows, 1_000);
    db.run("UPDATE t SET half = half + 10 WHERE id <= 50");
    assert_eq!(refresh(&db).updated_us, first.updated_us);
    db.run("ANALYZE TABLE t UPDATE HISTOGRAM ON half AUTO UPDATE");
    db.run("UPDATE t SET half = id WHERE id BETWEEN 51 AND 200");
    let second = refresh(&db);
    assert_ne!(second.updated_us, first.updated_us);
    assert_eq!(kind(&mut db, "half"), ["equi-height|100"]);
    db.run("ALTER TABLE t STATS_AUTO_RECALC = 0");
    db.run("UPDATE t SET half = 1");
    assert_eq!(refresh(&db).updated_us, second.updated_us);
}

#[test]
fn plans_made_before_are_retired() {
    let mut db = Db::new();
    with_rows(&mut db, 1_000);
    let query = "SELECT id FROM t WHERE half = 1 AND v > 10 ORDER BY name";
    let prepared = db.session.prepare(query.as_bytes()).expect("prepares");
    db.run(query);
    db.execute(prepared.id).expect("executes");
    let table = db.table("t").expect("the table").id;
    db.run("DELETE FROM t WHERE id > 10");
    porpoise_ddl::statistics::refresh(&db.engine.shared, &|| false).expect("refreshes");
    assert_eq!(db.engine.shared.plans.plans_of(table), 0);
    assert_eq!(db.rows(query).len(), 0);
    db.execute(prepared.id).expect("executes");
    assert_eq!(db.engine.shared.plans.plans_of(table), 2);
}

#[test]
fn a_plan_made_for_frequent_values_is_retired_by_rare_ones() {
    let mut db = Db::new();
    db.run("CREATE TABLE s (id INT PRIMARY KEY, v INT, x INT, KEY (v))");
    db.run("SET SESSION cte_max_recursion_depth = 20000");
    // Of 20,000 rows 8,000 have the value 1, 400 the value 3 and, behind the first of those, 200
    // the value 2.
    db.run(
        "INSERT INTO s WITH RECURSIVE n (i) AS
             (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         SELECT i, CASE WHEN i % 10 < 4 THEN 1 WHEN i % 100 IN (15, 17) THEN 3
             WHEN i % 100 = 16 THEN 2 ELSE i END, i FROM n",
    );
    db.run("ANALYZE TABLE s");
    let first_value = |db: &mut Db, values: &str| {
        let rows = db.rows(&format!("SELECT v, x FROM s WHERE v BETWEEN {values}"));
        rows[0].split('|').next().unwrap().to_owned()
    };
    assert_eq!(first_value(&mut db, "1 AND 1"), "1");
    // The rows in the order of the table, by the plan of the frequent value.
    assert_eq!(first_value(&mut db, "2 AND 3"), "3");
    // In the order of the index, by a plan of their own.
    assert_eq!(first_value(&mut db, "2 AND 3"), "2");
}
