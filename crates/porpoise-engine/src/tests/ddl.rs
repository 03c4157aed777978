//! What DDL leaves behind: definitions as SHOW CREATE TABLE tells them, errors, and what a restart
//! finds.

use porpoise_catalog::create_text;
use porpoise_catalog::{Dictionary, Relation};
use porpoise_storage::{Options, Store};

use super::database::{Db, beside};

#[test]
fn a_table_shows_itself_as_mysql_prints_it() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, flag BOOL, name VARCHAR(20) NOT NULL DEFAULT 'it''s',
         price DECIMAL(8,2) DEFAULT 1.5, note TEXT, at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
         kind ENUM('a','b') COLLATE utf8mb4_bin DEFAULT 'b', latin CHAR(3) CHARACTER SET latin1, bits BIT(3) DEFAULT b'101',
         UNIQUE (name), KEY (price, name(3) DESC), KEY (price), INDEX named (note(10)) COMMENT 'x') COMMENT 'what''s'",
    );
    assert_eq!(
        db.shows("t"),
        "CREATE TABLE `t` (
  `id` int unsigned NOT NULL AUTO_INCREMENT,
  `flag` tinyint(1) DEFAULT NULL,
  `name` varchar(20) NOT NULL DEFAULT 'it''s',
  `price` decimal(8,2) DEFAULT '1.50',
  `note` text,
  `at` timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  `kind` enum('a','b') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'b',
  `latin` char(3) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `bits` bit(3) DEFAULT b'101',
  PRIMARY KEY (`id`),
  UNIQUE KEY `name` (`name`),
  KEY `price` (`price`,`name`(3) DESC),
  KEY `price_2` (`price`),
  KEY `named` (`note`(10)) COMMENT 'x'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='what''s'"
    );
}

#[test]
fn definitions_that_cannot_be_are_refused() {
    let mut db = Db::new();
    for (sql, number) in [
        ("CREATE TABLE t (a INT, A INT)", 1060),
        ("CREATE TABLE t (a INT, KEY (b))", 1072),
        ("CREATE TABLE t (a TEXT, KEY (a))", 1170),
        ("CREATE TABLE t (a VARCHAR(1000), KEY (a))", 1071),
        ("CREATE TABLE t (a VARCHAR(20000))", 1074),
        ("CREATE TABLE t (a CHAR(256))", 1074),
        ("CREATE TABLE t (a INT AUTO_INCREMENT)", 1075),
        (
            "CREATE TABLE t (a INT AUTO_INCREMENT KEY, b INT AUTO_INCREMENT KEY)",
            1068,
        ),
        ("CREATE TABLE t (a INT NULL PRIMARY KEY)", 1171),
        ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", 1068),
        ("CREATE TABLE t (a INT, KEY k (a), KEY k (a))", 1061),
        ("CREATE TABLE t (a INT DEFAULT 'x')", 1067),
        ("CREATE TABLE t (a INT NOT NULL DEFAULT NULL)", 1067),
        ("CREATE TABLE t (a CHAR(2) DEFAULT 'abc')", 1067),
        ("CREATE TABLE t (a TINYINT DEFAULT 300)", 1067),
        (
            "CREATE TABLE t (a DATETIME(3) DEFAULT CURRENT_TIMESTAMP)",
            1067,
        ),
        ("CREATE TABLE t (a TEXT DEFAULT 'x')", 1101),
        ("CREATE TABLE t (a DECIMAL(70))", 1426),
        ("CREATE TABLE t (a DECIMAL(5,6))", 1427),
        ("CREATE TABLE t (a TIME(7))", 1426),
        ("CREATE TABLE t (a VARCHAR(10) AUTO_INCREMENT KEY)", 1063),
        ("CREATE TABLE t (a ENUM('x','x'))", 1291),
        (
            "CREATE TABLE t (a VARCHAR(9) CHARACTER SET latin1 COLLATE utf8mb4_bin)",
            1253,
        ),
        ("CREATE TABLE t (a VARCHAR(9) CHARACTER SET klingon)", 1115),
        ("CREATE TABLE t (a VARCHAR(9) COLLATE klingon)", 1273),
        ("CREATE TABLE t (a INT) ENGINE=klingon", 1286),
        ("CREATE TABLE t (a INT, KEY (a(3)))", 1089),
        ("CREATE TABLE t (a INT INVISIBLE)", 4028),
        ("CREATE TABLE nowhere.t (a INT)", 1049),
        ("DROP TABLE t", 1051),
        ("DROP DATABASE nowhere", 1008),
        ("CREATE DATABASE d", 1007),
        ("TRUNCATE t", 1146),
    ] {
        db.fails(sql, number);
        assert!(db.table("t").is_none());
    }
}

#[test]
fn alter_edits_columns_and_keys_in_the_order_written() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT, b INT, c INT, KEY (b), KEY bc (b, c))");
    db.run("ALTER TABLE t ADD d VARCHAR(5) NOT NULL AFTER a, DROP c, CHANGE b bb BIGINT FIRST, ADD PRIMARY KEY (a), ALTER d SET DEFAULT 'x'");
    assert_eq!(
        db.shows("t"),
        "CREATE TABLE `t` (
  `bb` bigint DEFAULT NULL,
  `a` int NOT NULL,
  `d` varchar(5) NOT NULL DEFAULT 'x',
  PRIMARY KEY (`a`),
  KEY `b` (`bb`),
  KEY `bc` (`bb`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
    );
    db.run("ALTER TABLE t DROP INDEX bc, RENAME INDEX b TO bb, RENAME COLUMN d TO e, RENAME TO u, DROP PRIMARY KEY");
    assert_eq!(
        db.shows("u"),
        "CREATE TABLE `u` (
  `bb` bigint DEFAULT NULL,
  `a` int NOT NULL,
  `e` varchar(5) NOT NULL DEFAULT 'x',
  KEY `bb` (`bb`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
    );
    assert!(db.table("t").is_none());
    for (sql, number) in [
        ("ALTER TABLE u DROP nothing", 1091),
        ("ALTER TABLE u ADD a INT", 1060),
        ("ALTER TABLE u MODIFY nothing INT", 1054),
        ("ALTER TABLE u DROP bb, DROP a, DROP e", 1090),
        ("ALTER TABLE u RENAME INDEX x TO y", 1176),
        ("ALTER TABLE u DROP CHECK x", 3821),
        ("CREATE INDEX bb ON u (a)", 1061),
        ("DROP INDEX x ON u", 1091),
        ("ALTER TABLE nothing ADD a INT", 1146),
    ] {
        db.fails(sql, number);
    }
}

#[test]
fn renames_swap_tables_or_do_nothing() {
    let mut db = Db::new();
    db.run("CREATE TABLE a (x INT)");
    db.run("CREATE TABLE b (y INT)");
    db.run("RENAME TABLE a TO c, b TO a, c TO b");
    assert_eq!(db.table("a").expect("a").columns[0].name, "y");
    assert_eq!(db.table("b").expect("b").columns[0].name, "x");
    db.fails("RENAME TABLE a TO c, b TO c", 1050);
    assert!(db.table("a").is_some() && db.table("c").is_none());
}

#[test]
fn a_drop_of_many_tables_drops_all_or_none() {
    let mut db = Db::new();
    db.run("CREATE TABLE a (x INT)");
    db.fails("DROP TABLE a, b", 1051);
    assert!(db.table("a").is_some());
    db.run("DROP TABLE IF EXISTS a, b");
    assert!(db.table("a").is_none());
    assert_eq!(db.session.state.warnings.len(), 1);
}

#[test]
fn temporary_tables_hide_others_and_belong_to_their_session() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT)");
    db.run("CREATE TEMPORARY TABLE t (b INT)");
    assert_eq!(db.session.state.temporary_tables.len(), 1);
    db.run("ALTER TABLE t ADD c INT");
    assert_eq!(db.table("t").expect("t").columns.len(), 1);
    db.run("DROP TABLE t");
    assert_eq!(db.session.state.temporary_tables.len(), 0);
    assert!(db.table("t").is_some());
    db.fails("DROP TEMPORARY TABLE t", 1051);
}

#[test]
fn definitions_outlive_the_engine() {
    let store = Store::open(&Options::memory()).expect("opens");
    let (dictionary, catalog) = Dictionary::open(
        &store,
        &Default::default(),
        porpoise_planner::bind_table_expression,
        None,
    )
    .expect("a fresh dictionary");
    assert!(catalog.schema("information_schema").is_some());
    drop((dictionary, catalog));

    let mut db = Db::new();
    db.run("CREATE DATABASE e CHARACTER SET latin1");
    db.run("CREATE TABLE t (id SERIAL, a DECIMAL(5,2) DEFAULT 1.25, b ENUM('x','y') DEFAULT 'y', c TIMESTAMP(3) NULL, KEY (a, b DESC))");
    db.run("CREATE TEMPORARY TABLE lost (a INT)");
    let before = db.shows("t");
    let (_, again) = Dictionary::open(
        &db.engine.shared.store,
        &Default::default(),
        porpoise_planner::bind_table_expression,
        None,
    )
    .expect("opens again");
    let Some(Relation::Table(table)) = again.relation("d", "t") else {
        panic!("the table is there")
    };
    assert_eq!(create_text::table(&table, &db.session.state, 1), before);
    assert_eq!(
        again.schema("e").expect("e").schema.collation.name(),
        "latin1_swedish_ci"
    );
}

#[test]
fn foreign_keys_outlive_the_engine() {
    let mut db = Db::new();
    db.run("CREATE TABLE p (id INT PRIMARY KEY)");
    db.run("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)");
    let before = db.shows("c");
    let (_, again) = Dictionary::open(
        &db.engine.shared.store,
        &Default::default(),
        porpoise_planner::bind_table_expression,
        None,
    )
    .expect("opens again");
    let Some(Relation::Table(table)) = again.relation("d", "c") else {
        panic!("the table is there")
    };
    assert_eq!(create_text::table(&table, &db.session.state, 1), before);
    assert_eq!(again.children("d", "p")[0].name, "c");
}

#[test]
fn plans_know_of_foreign_keys_that_come_and_go() {
    let mut db = Db::new();
    db.run("CREATE TABLE p (id INT PRIMARY KEY)");
    db.run("INSERT INTO p VALUES (1), (2), (3)");
    db.run("DELETE FROM p WHERE id = 3");
    db.run("CREATE TABLE c (p INT)");
    db.run("INSERT INTO c VALUES (1)");
    db.run("ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id)");
    db.fails("DELETE FROM p WHERE id = 1", 1451);
    db.fails("INSERT INTO c VALUES (9)", 1452);
    db.run("ALTER TABLE c DROP FOREIGN KEY k");
    db.run("INSERT INTO c VALUES (9)");
    db.run("DELETE FROM p WHERE id = 1");
}

#[test]
fn rows_move_with_their_table() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), c INT, KEY (b))");
    db.run("INSERT INTO t VALUES (1, '10', 5), (2, '20', NULL), (3, NULL, 7)");
    assert_eq!(
        db.run("ALTER TABLE t ADD d INT NOT NULL DEFAULT 9 FIRST")
            .affected_rows,
        0
    );
    assert_eq!(
        db.rows("SELECT * FROM t"),
        ["9|1|10|5", "9|2|20|NULL", "9|3|NULL|7"]
    );
    db.run("ALTER TABLE t MODIFY b INT, DROP PRIMARY KEY, ADD KEY (c)");
    assert_eq!(db.rows("SELECT a, b FROM t WHERE c = 7"), ["3|NULL"]);
    db.fails("ALTER TABLE t MODIFY c INT NOT NULL", 1138);
    db.fails("ALTER TABLE t ADD UNIQUE (d)", 1062);
    db.fails("ALTER TABLE t MODIFY d TINYINT, MODIFY a VARCHAR(0)", 1406);
    db.run("INSERT INTO t VALUES (9, 4, 300, 1)");
    db.fails("ALTER TABLE t MODIFY b TINYINT", 1264);
    db.run("DELETE FROM t WHERE a = 4");
    db.run("CREATE UNIQUE INDEX ua ON t (a)");
    assert_eq!(db.rows("SELECT b FROM t WHERE a = 2"), ["20"]);
    db.run("DROP INDEX ua ON t");
    assert_eq!(db.rows("CHECK TABLE t"), ["d.t|check|status|OK"]);
    db.run("TRUNCATE t");
    assert_eq!(db.rows("SELECT COUNT(*) FROM t"), ["0"]);
    assert_eq!(
        db.rows("CHECK TABLE t, nothing")[1],
        "d.nothing|check|Error|Table 'd.nothing' doesn't exist"
    );
}

#[test]
fn a_counter_goes_on_through_alter_and_begins_again_with_truncate() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 5");
    db.run("INSERT INTO t (a) VALUES (1), (2)");
    db.run("ALTER TABLE t ADD b INT FIRST");
    db.run("INSERT INTO t (a) VALUES (3)");
    assert_eq!(db.rows("SELECT id FROM t"), ["5", "6", "7"]);
    db.run("ALTER TABLE t AUTO_INCREMENT = 100");
    db.run("INSERT INTO t (a) VALUES (4)");
    db.run("ALTER TABLE t AUTO_INCREMENT = 1");
    db.run("DELETE FROM t WHERE id = 100");
    db.run("ALTER TABLE t AUTO_INCREMENT = 1");
    db.run("INSERT INTO t (a) VALUES (5)");
    assert_eq!(db.rows("SELECT id FROM t"), ["5", "6", "7", "8"]);
    db.run("TRUNCATE t");
    db.run("INSERT INTO t (a) VALUES (1)");
    assert_eq!(db.rows("SELECT id FROM t"), ["1"]);
}

#[test]
fn generated_columns_defaults_and_checks_hold() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (a INT, b INT AS (a * 2) STORED, c VARCHAR(20) DEFAULT (CONCAT('x', 'y')), d INT CHECK (d > a),
         CONSTRAINT positive CHECK (a > 0) NOT ENFORCED)",
    );
    assert_eq!(
        db.shows("t"),
        "CREATE TABLE `t` (
  `a` int DEFAULT NULL,
  `b` int GENERATED ALWAYS AS ((`a` * 2)) STORED,
  `c` varchar(20) DEFAULT (concat(_utf8mb4'x',_utf8mb4'y')),
  `d` int DEFAULT NULL,
  CONSTRAINT `t_chk_1` CHECK ((`d` > `a`)),
  CONSTRAINT `positive` CHECK ((`a` > 0)) /*!80016 NOT ENFORCED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
    );
    db.run("INSERT INTO t (a, d) VALUES (-3, 5)");
    assert_eq!(db.rows("SELECT * FROM t"), ["-3|-6|xy|5"]);
    db.fails("INSERT INTO t (a, d) VALUES (3, 2)", 3819);
    db.fails("ALTER TABLE t ALTER CHECK positive ENFORCED", 3819);
    db.fails("ALTER TABLE t RENAME COLUMN a TO z", 3108);
    db.fails("ALTER TABLE t DROP a", 3108);
    db.fails("ALTER TABLE t ADD CHECK (nothing > 0)", 3820);
    db.fails("CREATE TABLE u (a INT AS (RAND()))", 3763);
    db.fails(
        "CREATE TABLE u (a INT AUTO_INCREMENT KEY, b INT AS (a))",
        3109,
    );
    db.fails("CREATE TABLE u (a INT AS (b), b INT AS (1))", 3107);
    db.fails(
        "CREATE TABLE u (a INT, CONSTRAINT positive CHECK (a > 1))",
        3822,
    );
    db.run("ALTER TABLE t DROP b, DROP CONSTRAINT positive, DROP CHECK t_chk_1, DROP d");
    assert_eq!(db.rows("SELECT * FROM t"), ["-3|xy"]);
}

#[test]
fn a_table_made_from_a_query_has_its_columns_and_rows() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(10) NOT NULL DEFAULT 'n')",
    );
    db.run("INSERT INTO s (name) VALUES ('a'), ('b')");
    assert_eq!(
        db.run("CREATE TABLE t (extra INT, KEY (id)) SELECT id, name, id + 1 AS next FROM s")
            .affected_rows,
        2
    );
    assert_eq!(db.rows("SELECT * FROM t"), ["NULL|1|a|2", "NULL|2|b|3"]);
    assert_eq!(
        db.shows("t"),
        "CREATE TABLE `t` (
  `extra` int DEFAULT NULL,
  `id` int NOT NULL DEFAULT '0',
  `name` varchar(10) NOT NULL DEFAULT 'n',
  `next` bigint NOT NULL DEFAULT '0',
  KEY `id` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
    );
    db.fails(
        "CREATE TABLE u (a INT UNIQUE) SELECT 1 AS a UNION ALL SELECT 1",
        1062,
    );
    assert!(db.table("u").is_none());
    db.run("CREATE TABLE l LIKE s");
    assert_eq!(db.rows("SELECT COUNT(*) FROM l"), ["0"]);
    db.run("CREATE TEMPORARY TABLE tmp SELECT * FROM s");
    assert_eq!(db.rows("SELECT COUNT(*) FROM tmp"), ["2"]);
}

#[test]
fn views_read_what_their_tables_hold_now() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT, b INT)");
    db.run("INSERT INTO t VALUES (1, 2), (3, 4)");
    db.run("CREATE VIEW v (x, y) AS SELECT *  FROM t WHERE a > 1");
    db.run("ALTER TABLE t ADD c INT FIRST");
    assert_eq!(db.rows("SELECT * FROM v"), ["3|4"]);
    db.fails("CREATE VIEW v AS SELECT 1", 1050);
    db.fails("CREATE VIEW w (x) AS SELECT 1, 2", 1353);
    db.fails("CREATE VIEW w AS SELECT nothing FROM t", 1054);
    db.run("CREATE OR REPLACE VIEW v AS SELECT 1 AS one");
    assert_eq!(db.rows("SELECT * FROM v"), ["1"]);
    assert_eq!(db.rows("SHOW FULL TABLES"), ["t|BASE TABLE", "v|VIEW"]);
    db.fails("DROP TABLE v", 1051);
    db.run("DROP VIEW v");
}

#[test]
fn lock_tables_keeps_others_out() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT)");
    db.run("CREATE TABLE u (a INT)");
    let mut other = beside(&db);
    other.run("SET lock_wait_timeout = 1");
    db.run("LOCK TABLES t READ");
    db.fails("INSERT INTO t VALUES (1)", 1099);
    db.fails("SELECT * FROM u", 1100);
    assert_eq!(other.rows("SELECT COUNT(*) FROM t"), ["0"]);
    other.fails("INSERT INTO t VALUES (1)", 1205);
    db.run("LOCK TABLES t WRITE, u READ");
    db.run("INSERT INTO t SELECT 7");
    db.run("ALTER TABLE t ADD b INT");
    other.fails("SELECT * FROM t", 1205);
    db.run("UNLOCK TABLES");
    assert_eq!(other.rows("SELECT * FROM t"), ["7|NULL"]);
    other.run("INSERT INTO t VALUES (1, 2)");
}

#[test]
fn ddl_waits_for_transactions_that_use_the_table() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT)");
    let mut other = beside(&db);
    other.run("BEGIN");
    other.run("INSERT INTO t VALUES (1)");
    db.run("SET lock_wait_timeout = 1");
    db.fails("ALTER TABLE t ADD b INT", 1205);
    let altering = std::thread::spawn(move || {
        db.run("SET lock_wait_timeout = 60");
        db.run("ALTER TABLE t ADD b INT DEFAULT 5");
        db.rows("SELECT * FROM t")
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    other.run("COMMIT");
    assert_eq!(altering.join().expect("the ALTER"), ["1|5"]);
}

#[test]
fn an_added_column_is_no_business_of_a_parent() {
    let mut db = Db::new();
    db.run("CREATE TABLE parent (id INT PRIMARY KEY)");
    db.run("CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id))");
    let mut other = beside(&db);
    other.run("BEGIN");
    other.run("INSERT INTO parent VALUES (1)");
    db.run("SET lock_wait_timeout = 5");
    db.run("ALTER TABLE child ADD b INT DEFAULT 5");
    other.run("INSERT INTO child VALUES (1, 2)");
    other.run("COMMIT");
    assert_eq!(db.rows("SELECT * FROM child"), ["1|2"]);
}

#[test]
fn files_of_the_server_are_read_where_they_may_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, "id;name\n1;one\n2;\\N\n2;again\n").expect("written");
    let load = format!(
        "LOAD DATA INFILE '{}' IGNORE INTO TABLE t FIELDS TERMINATED BY ';' IGNORE 1 LINES (id, @n) SET name = UPPER(@n)",
        path.display()
    );
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10))");
    db.fails(&load, 1290);

    let allowed = folder.path().display().to_string();
    let mut db = Db::with(&[("secure_file_priv", &allowed)]);
    db.run("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10))");
    let completion = db.run(&load);
    assert_eq!(completion.affected_rows, 2);
    assert_eq!(
        completion.message,
        "Records: 3  Deleted: 0  Skipped: 1  Warnings: 1"
    );
    assert_eq!(db.rows("SELECT * FROM t"), ["1|ONE", "2|NULL"]);
    db.fails("LOAD DATA INFILE '/etc/hostname' INTO TABLE t", 1290);
    db.fails(&load.replace("rows.csv", "none.csv"), 13);
    db.fails(&load.replace("IGNORE INTO", "INTO"), 1062);
    assert_eq!(db.rows("SELECT COUNT(*) FROM t"), ["2"]);
}

/// What `SELECT … INTO` writes, as MySQL 9.7 does.
#[test]
fn rows_are_written_as_load_data_reads_them() {
    let cases: &[(&str, &str, &[u8])] = &[
        ("SELECT * FROM t", "OUTFILE", b"1\ta\\\tb\\\nc\\\\d\"e,\t\\0\r\t1.50\t2024-01-02\t\xE9\n2\t\\N\t\\N\t\\N\t\\N\t\\N\n"),
        (
            "SELECT * FROM t",
            "OUTFILE FIELDS TERMINATED BY ',' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'",
            b"\"1\",\"a\tb\nc\\\\d\\\"e,\",\"\\0\\\r\",\"1.50\",\"2024-01-02\",\"\xE9\"\r\n\"2\",\\N,\\N,\\N,\\N,\\N\r\n",
        ),
        (
            "SELECT * FROM t WHERE id = 1",
            "OUTFILE CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES STARTING BY '>>'",
            b">>1,\"a\tb\\\nc\\\\d\\\"e,\",\"\\0\r\",1.50,\"2024-01-02\",\"\xC3\xA9\"\n",
        ),
        (
            "SELECT id, a, NULL FROM t WHERE id = 1",
            "OUTFILE FIELDS ESCAPED BY ''",
            b"1\ta\tb\nc\\d\"e,\tNULL\n",
        ),
        (
            "SELECT a, NULL FROM t WHERE id = 1",
            "OUTFILE FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY '\"'",
            b"\"a\tb\"\nc\\d\"\"e,\",\"N\n",
        ),
        ("SELECT 'anba'", "OUTFILE FIELDS TERMINATED BY 'n' LINES TERMINATED BY 'b'", b"an\\bab"),
        ("SELECT 'a-b'", "OUTFILE FIELDS TERMINATED BY '-' LINES TERMINATED BY ''", b"a\\-b-"),
        ("SELECT 'nnb'", "OUTFILE FIELDS TERMINATED BY ',' ENCLOSED BY 'n'", b"nnnnnbn\n"),
        // Of characters of two bytes none is escaped.
        ("SELECT CONVERT('a\tb\\\\' USING utf16), 'c\td'", "OUTFILE", b"\0a\0\t\0b\0\\\tc\\\td\n"),
        ("SELECT 1 UNION SELECT 2", "OUTFILE", b"1\n2\n"),
        ("SELECT id FROM t WHERE id = 9", "OUTFILE", b""),
        ("SELECT a, id, b FROM t WHERE id = 1", "DUMPFILE", b"a\tb\nc\\d\"e,1\0\r"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = Db::with(&[("secure_file_priv", &folder.path().display().to_string())]);
    db.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b VARBINARY(9), c DECIMAL(6, 2), d DATE, l VARCHAR(5) CHARACTER SET latin1)");
    db.run("INSERT INTO t VALUES (1, 'a\\tb\\nc\\\\d\"e,', '\\0\\r', 1.5, '2024-01-02', 'é'), (2, NULL, NULL, NULL, NULL, NULL)");
    for (number, (query, into, expected)) in cases.iter().enumerate() {
        let path = folder.path().join(format!("{number}.txt"));
        let (kind, format) = into.split_once(' ').unwrap_or((into, ""));
        let statement = format!("{query} INTO {kind} '{}' {format}", path.display());
        db.run(&statement);
        let written = std::fs::read(&path).expect("the file");
        assert_eq!(
            written.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{statement}"
        );
        db.fails(&statement, 1086);
    }
}

#[test]
fn a_file_is_written_whole_where_it_may_be_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.txt");
    let statement = |query: &str| format!("{query} INTO OUTFILE '{}'", path.display());
    let mut db = Db::new();
    db.fails(&statement("SELECT 1"), 1290);

    let mut db = Db::with(&[("secure_file_priv", &folder.path().display().to_string())]);
    db.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))");
    db.run("INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'a\\tb\\n')");
    db.fails(&statement("SELECT EXP(id * 300) FROM t"), 1690);
    db.fails(
        &format!("SELECT id FROM t INTO DUMPFILE '{}'", path.display()),
        1172,
    );
    assert!(!path.exists());
    for elsewhere in [
        "/tmp/porpoise-elsewhere.txt",
        "../rows.txt",
        "no/folder.txt",
    ] {
        let statement = format!("SELECT 1 INTO OUTFILE '{elsewhere}'");
        assert!(db.try_run(&statement).is_err(), "{statement}");
    }
    for misplaced in [
        "SELECT * FROM (SELECT 1 INTO @a) d",
        "SELECT (SELECT 1 INTO @a)",
        "SELECT 1 INTO @a UNION SELECT 2",
        "(SELECT 1 INTO @a) UNION SELECT 2",
        "WITH c AS (SELECT 1 INTO @a) SELECT * FROM c",
    ] {
        db.fails(misplaced, 3954);
    }
    // There and back.
    assert_eq!(db.run(&statement("SELECT * FROM t")).affected_rows, 3);
    db.run("CREATE TABLE u LIKE t");
    db.run(&format!(
        "LOAD DATA INFILE '{}' INTO TABLE u",
        path.display()
    ));
    assert_eq!(
        db.rows("SELECT COUNT(*) FROM t JOIN u USING (id) WHERE t.v <=> u.v"),
        ["3"]
    );
    let content = format!("SELECT LOAD_FILE('{}')", path.display());
    assert_eq!(db.rows(&content), ["1\tone\n2\t\\N\n3\ta\\\tb\\\n\n"]);
    assert_eq!(db.rows("SELECT LOAD_FILE('/etc/hostname')"), ["NULL"]);
}

#[test]
fn a_cycle_through_tables_and_rows_ends_at_once() {
    let mut db = Db::new();
    db.run("CREATE TABLE parent (id INT PRIMARY KEY, v INT)");
    db.run("CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id))");
    db.run("INSERT INTO parent VALUES (1, 0)");
    let mut other = beside(&db);
    other.run("BEGIN");
    other.run("UPDATE parent SET v = 2 WHERE id = 1");
    db.run("LOCK TABLES child WRITE");
    let inserting = std::thread::spawn(move || {
        // Waits for the parent's row, which the other has.
        db.run("INSERT INTO child VALUES (1)");
        db.run("UNLOCK TABLES");
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    // And the other for the child.
    other.fails("SELECT * FROM child", 1213);
    inserting.join().expect("the INSERT");
    assert_eq!(other.rows("SELECT * FROM child"), ["1"]);
}

#[test]
fn a_cycle_is_found_by_the_row_lock_that_closes_it() {
    let mut db = Db::new();
    db.run("CREATE TABLE parent (id INT PRIMARY KEY, v INT)");
    db.run("CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id))");
    db.run("INSERT INTO parent VALUES (1, 0)");
    let mut other = beside(&db);
    other.run("BEGIN");
    other.run("UPDATE parent SET v = 2 WHERE id = 1");
    db.run("LOCK TABLES child WRITE");
    let reading = std::thread::spawn(move || {
        let rows = other.rows("SELECT * FROM child");
        other.run("COMMIT");
        rows
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    db.fails("INSERT INTO child VALUES (1)", 1213);
    db.run("UNLOCK TABLES");
    assert!(reading.join().expect("the SELECT").is_empty());
}

#[test]
fn a_cycle_through_a_named_lock_and_a_row_ends_at_once() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY)");
    db.run("INSERT INTO t VALUES (1)");
    let mut other = beside(&db);
    db.rows("SELECT GET_LOCK('cycle', 0)");
    other.run("BEGIN");
    other.run("UPDATE t SET id = 2 WHERE id = 1");
    let updating = std::thread::spawn(move || db.run("DELETE FROM t"));
    let waits = "SHOW STATUS LIKE 'Innodb_row_lock_current_waits'";
    let began = std::time::Instant::now();
    while other.rows(waits) == ["Innodb_row_lock_current_waits|0"] {
        assert!(began.elapsed().as_secs() < 30, "nobody waits");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    other.fails("SELECT GET_LOCK('cycle', 60)", 3058);
    other.run("ROLLBACK");
    updating.join().expect("the DELETE");
}

#[test]
fn flush_tables_with_read_lock_stops_changes_and_commits() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY)");
    let mut other = beside(&db);
    other.run("SET lock_wait_timeout = 1");
    db.run("FLUSH TABLES WITH READ LOCK");
    assert_eq!(other.rows("SELECT COUNT(*) FROM t"), ["0"]);
    other.fails("INSERT INTO t VALUES (1)", 1205);
    other.fails("CREATE TABLE u (id INT)", 1205);
    db.fails("INSERT INTO t VALUES (1)", 1223);
    db.run("UNLOCK TABLES");
    other.run("BEGIN");
    other.run("INSERT INTO t VALUES (1)");
    db.run("FLUSH TABLES WITH READ LOCK");
    other.fails("COMMIT", 1205);
    drop(db);
    other.run("COMMIT");
    assert_eq!(other.rows("SELECT * FROM t"), ["1"]);
}

#[test]
fn flush_tables_with_read_lock_of_some_is_their_read_lock() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY)");
    db.run("CREATE TABLE u (id INT PRIMARY KEY)");
    let mut other = beside(&db);
    other.run("SET lock_wait_timeout = 1");
    db.run("FLUSH TABLES t WITH READ LOCK");
    db.fails("INSERT INTO t VALUES (1)", 1099);
    db.fails("FLUSH TABLES u WITH READ LOCK", 1192);
    other.fails("INSERT INTO t VALUES (1)", 1205);
    other.run("INSERT INTO u VALUES (1)");
    db.run("UNLOCK TABLES");
    other.run("INSERT INTO t VALUES (1)");
}

#[test]
fn alter_table_waits_for_a_transaction_and_lock_tables_read_admits_readers() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT PRIMARY KEY)");
    let mut other = beside(&db);
    other.run("BEGIN");
    other.run("INSERT INTO t VALUES (1)");
    db.run("SET lock_wait_timeout = 1");
    db.fails("ALTER TABLE t ADD b INT", 1205);
    other.run("COMMIT");
    db.run("LOCK TABLES t READ");
    assert_eq!(other.rows("SELECT * FROM t"), ["1"]);
    db.run("UNLOCK TABLES");
    db.run("ALTER TABLE t ADD b INT");
}
