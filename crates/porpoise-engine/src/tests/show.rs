//! SHOW, DESCRIBE and information_schema.

use super::database::Db;

fn with_tables() -> Db {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'x' COMMENT 'who', at DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE KEY n (name(5), at))");
    db.run("CREATE TABLE u (a INT, b INT, KEY (a))");
    db
}

#[test]
fn show_lists_schemas_and_tables() {
    let mut db = with_tables();
    assert_eq!(
        db.rows("SHOW DATABASES"),
        [
            "d",
            "information_schema",
            "mysql",
            "performance_schema",
            "sys"
        ]
    );
    assert_eq!(db.columns("SHOW DATABASES LIKE 'd%'"), "Database (d%)");
    assert_eq!(db.rows("SHOW DATABASES LIKE 'd%'"), ["d"]);
    assert_eq!(db.columns("SHOW TABLES"), "Tables_in_d");
    assert_eq!(db.rows("SHOW TABLES"), ["t", "u"]);
    assert_eq!(db.rows("SHOW TABLES WHERE Tables_in_d > 't'"), ["u"]);
    assert_eq!(
        db.rows("SHOW FULL TABLES FROM d LIKE 'u'"),
        ["u|BASE TABLE"]
    );
    db.fails("SHOW TABLES FROM nothing", 1049);
    assert_eq!(
        db.rows(
            "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.tables WHERE table_schema = 'd' ORDER BY 1"
        ),
        ["t", "u"]
    );
}

#[test]
fn show_columns_and_describe_tell_the_same() {
    let mut db = with_tables();
    let rows = [
        "id|int unsigned|NO|PRI|NULL|auto_increment",
        "name|varchar(20)|NO|MUL|x|",
        "at|datetime|YES||CURRENT_TIMESTAMP|DEFAULT_GENERATED",
    ];
    assert_eq!(
        db.columns("SHOW COLUMNS FROM t"),
        "Field|Type|Null|Key|Default|Extra"
    );
    assert_eq!(db.rows("SHOW COLUMNS FROM t"), rows);
    assert_eq!(db.rows("DESC t"), rows);
    assert_eq!(db.rows("DESCRIBE d.t name"), rows[1..2]);
    assert_eq!(
        db.rows("SHOW FULL FIELDS FROM t LIKE 'n%'"),
        ["name|varchar(20)|utf8mb4_0900_ai_ci|NO|MUL|x||select,insert,update,references|who"]
    );
    db.fails("DESC nothing", 1146);
    db.run("CREATE TEMPORARY TABLE t (only INT)");
    assert_eq!(db.rows("DESC t"), ["only|int|YES||NULL|"]);
}

#[test]
fn show_index_tells_parts_in_order() {
    let mut db = with_tables();
    db.run("ANALYZE TABLE t");
    assert_eq!(
        db.rows("SHOW INDEX FROM t"),
        [
            "t|0|PRIMARY|1|id|A|0|NULL|NULL||BTREE|||YES|NULL",
            "t|0|n|1|name|A|0|5|NULL||BTREE|||YES|NULL",
            "t|0|n|2|at|A|0|NULL|NULL|YES|BTREE|||YES|NULL",
        ]
    );
    assert_eq!(
        db.rows("SHOW KEYS FROM t WHERE Key_name = 'PRIMARY'").len(),
        1
    );
}

#[test]
fn show_create_prints_what_makes_the_same_again() {
    let mut db = with_tables();
    let text = db.rows("SHOW CREATE TABLE t")[0]
        .trim_start_matches("t|")
        .to_string();
    db.run("CREATE DATABASE e");
    db.run("USE e");
    db.run(&text);
    assert_eq!(
        db.rows("SHOW CREATE TABLE t")[0].trim_start_matches("t|"),
        text
    );
    assert_eq!(
        db.rows("SHOW CREATE DATABASE e"),
        [
            "e|CREATE DATABASE `e` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */"
        ]
    );
    db.run("CREATE VIEW v AS SELECT id, name FROM d.t");
    assert!(db.rows("SHOW CREATE VIEW v")[0].contains("VIEW `v`"));
    assert_eq!(
        db.rows("DESC v"),
        ["id|int unsigned|NO||0|", "name|varchar(20)|NO||x|"]
    );
}

#[test]
fn warnings_can_be_counted_and_limited() {
    let mut db = Db::new();
    db.run("DROP TABLE IF EXISTS a, b, c");
    assert_eq!(db.rows("SHOW COUNT(*) WARNINGS"), ["3"]);
    assert_eq!(
        db.rows("SHOW WARNINGS LIMIT 1, 1"),
        ["Note|1051|Unknown table 'd.b'"]
    );
    assert!(db.rows("SHOW ERRORS").is_empty());
}

#[test]
fn constraints_and_keys_are_told() {
    let mut db = with_tables();
    db.run("CREATE TABLE c (a INT CHECK (a > 0), b INT, PRIMARY KEY (b, a))");
    assert_eq!(
        db.rows("SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA='d' AND TABLE_NAME='c'"),
        ["PRIMARY|PRIMARY KEY", "c_chk_1|CHECK"]
    );
    assert_eq!(
        db.rows("SELECT COLUMN_NAME, ORDINAL_POSITION FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_NAME='c'"),
        ["b|1", "a|2"]
    );
    assert_eq!(
        db.rows("SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS"),
        ["(`a` > 0)"]
    );
}

#[test]
fn every_virtual_table_can_be_read_and_has_a_value_a_column() {
    let mut db = with_tables();
    db.run("CREATE USER u");
    db.run("GRANT SELECT (a) ON d.u TO u");
    db.run("GRANT INSERT ON d.* TO u");
    let tables: Vec<_> = porpoise_catalog::virtual_table::all()
        .map(|table| (table.schema, table.name, table.columns.len()))
        .collect();
    for (schema, name, columns) in tables {
        for row in db.rows(&format!("SELECT * FROM {schema}.{name}")) {
            assert!(
                row.matches('|').count() >= columns - 1,
                "{schema}.{name}: {row}"
            );
        }
    }
}

#[test]
fn the_rest_of_show_answers() {
    let mut db = with_tables();
    for show in [
        "ENGINES",
        "PLUGINS",
        "PRIVILEGES",
        "CHARACTER SET",
        "COLLATION LIKE 'utf8mb4%'",
        "VARIABLES LIKE 'version%'",
        "GLOBAL VARIABLES",
        "STATUS",
        "GLOBAL STATUS LIKE 'Uptime'",
        "PROCESSLIST",
        "FULL PROCESSLIST",
        "TABLE STATUS",
        "GRANTS FOR root@localhost",
        "CREATE USER root@localhost",
        "ENGINE INNODB STATUS",
    ] {
        assert!(!db.rows(&format!("SHOW {show}")).is_empty(), "SHOW {show}");
    }
    for show in [
        "OPEN TABLES",
        "TRIGGERS",
        "EVENTS",
        "PROCEDURE STATUS",
        "FUNCTION STATUS",
        "BINARY LOG STATUS",
        "REPLICA STATUS",
    ] {
        assert!(db.rows(&format!("SHOW {show}")).is_empty(), "SHOW {show}");
    }
    assert_eq!(
        db.rows("SHOW VARIABLES LIKE 'autocommit'"),
        ["autocommit|ON"]
    );
    db.fails("SHOW BINARY LOGS", 1381);
    db.fails("SHOW CREATE PROCEDURE p", 1305);
}
