//! Where Porpoise differs from MySQL 8.4: a row a difference, each a statement and what it answers
//! here. The test runs every row, and `docs/differences.md` is made of them: what is listed is so.

use super::database::Db;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md");

const HEAD: &str = "\
# Where Porpoise differs from MySQL 8.4

Each statement answers here as its row says. This page is made from the table in
`crates/porpoise-engine/src/tests/differences.rs`, and a test runs every row:
`PORPOISE_WRITE_DOCS=1 cargo test -p porpoise-engine differences` writes it anew. What works and
what doesn't yet, by topic, is in [SUPPORT.md](SUPPORT.md).
";

/// Whether a difference is to stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intent {
    OnPurpose,
    NotYet,
}

/// A statement that MySQL answers otherwise.
struct Difference {
    intent: Intent,
    /// Run before it, by the same session.
    before: &'static [&'static str],
    statement: &'static str,
    /// What comes back: rows, or an error.
    here: &'static str,
    in_mysql: &'static str,
}

/// A statement that isn't there yet, and says so.
const fn absent(statement: &'static str, here: &'static str) -> Difference {
    Difference {
        intent: Intent::NotYet,
        before: &[],
        statement,
        here,
        in_mysql: "runs it",
    }
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        intent: Intent::OnPurpose,
        before: &["XA START 'x'", "XA END 'x'"],
        statement: "SHOW TABLES",
        here: "t",
        in_mysql: "error 1399: an idle XA branch may use no table, and there SHOW uses some",
    },
    Difference {
        intent: Intent::OnPurpose,
        before: &["SET sql_mode = 'STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER'"],
        statement: "SELECT @@sql_mode",
        here: "STRICT_TRANS_TABLES",
        in_mysql: "error 1231 from SET: it knows no mode that can't be switched off. MariaDB's dumps of programs set this one",
    },
    Difference {
        intent: Intent::OnPurpose,
        before: &["CREATE TABLE m (a INT) ENGINE = MyISAM"],
        statement: "SHOW WARNINGS",
        here: "Warning / 1266 / Using storage engine InnoDB for table 'm'",
        in_mysql: "nothing: it has the engine. Here InnoDB takes the place of MyISAM, MEMORY, CSV, ARCHIVE and BLACKHOLE, under NO_ENGINE_SUBSTITUTION as well",
    },
    Difference {
        intent: Intent::OnPurpose,
        before: &[],
        statement: "SELECT 1/2/3/4",
        here: "0.041666666667",
        in_mysql: "0.041666667500: it rounds each quotient before the next division, as it does before AVG and SUM",
    },
    Difference {
        intent: Intent::OnPurpose,
        before: &[
            "SET cte_max_recursion_depth = 5000",
            "CREATE TABLE many (id INT PRIMARY KEY)",
            "INSERT INTO many WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i FROM n",
            "SET statement_memory_limit = 1048576",
            "BEGIN",
            "SELECT COUNT(*) FROM many FOR UPDATE",
        ],
        statement: "SHOW STATUS LIKE 'Porpoise_lock_escalations'",
        here: "Porpoise_lock_escalations / 1",
        in_mysql: "nothing: InnoDB never turns row locks into a lock on the table. Here a transaction does so whose locks would take more than an eighth of statement_memory_limit (see SERVER.md)",
    },
    Difference {
        intent: Intent::OnPurpose,
        before: &["SET @f = 1.25"],
        statement: "SELECT @f + 1",
        here: "2.25",
        in_mysql: "2.250000000000000000000000000000: a DECIMAL user variable has 30 decimals there, here those of its value",
    },
    Difference {
        intent: Intent::OnPurpose,
        before: &[
            "CREATE TABLE narrow (c CHAR(1) CHARACTER SET latin1)",
            "INSERT INTO narrow VALUES ('a')",
        ],
        statement: "SELECT c = 'か' FROM narrow",
        here: "0",
        in_mysql: "error 1267: the literal has a character that the column can't hold. Here texts of all character sets are compared as they are, and one plan serves all literals",
    },
    absent(
        "CREATE TABLE p (a INT) PARTITION BY HASH (a) PARTITIONS 4",
        "ERROR 1235 (42000)",
    ),
    absent(
        "CREATE TABLE f (a TEXT, FULLTEXT (a))",
        "ERROR 1235 (42000)",
    ),
    absent("CREATE TABLE g (a GEOMETRY)", "ERROR 1235 (42000)"),
    absent("SELECT ST_GeomFromText('POINT(1 1)')", "ERROR 1305 (42000)"),
    absent("SELECT JSON_SCHEMA_VALID('{}', '{}')", "ERROR 1305 (42000)"),
    absent("SELECT STATEMENT_DIGEST('SELECT 1')", "ERROR 1305 (42000)"),
    absent(
        "SELECT EXTRACTVALUE('<a>1</a>', '/a')",
        "ERROR 1305 (42000)",
    ),
    absent("SELECT GTID_SUBSET('', '')", "ERROR 1305 (42000)"),
    absent("SELECT ICU_VERSION()", "ERROR 1305 (42000)"),
    absent("SELECT PS_CURRENT_THREAD_ID()", "ERROR 1305 (42000)"),
    absent("SELECT ROLES_GRAPHML()", "ERROR 1305 (42000)"),
    absent(
        "SELECT VALIDATE_PASSWORD_STRENGTH('x')",
        "ERROR 1305 (42000)",
    ),
    Difference {
        intent: Intent::NotYet,
        before: &[],
        statement: "SELECT HEX(_ucs2 x'D800')",
        here: "ERROR 1300 (HY000)",
        in_mysql: "D800",
    },
    absent(
        "CREATE TABLE c (a CHAR(1) CHARACTER SET gbk)",
        "ERROR 1115 (42000)",
    ),
    absent(
        "CREATE TABLE c (a CHAR(1) COLLATE utf8mb4_ja_0900_as_cs)",
        "ERROR 1273 (HY000)",
    ),
    absent(
        "CREATE TABLE c (j JSON, KEY ((CAST(j->'$.a' AS UNSIGNED ARRAY))))",
        "ERROR 1235 (42000)",
    ),
    absent(
        "SELECT CAST(TIMESTAMP'2024-01-01 00:00:00' AT TIME ZONE '+00:00' AS DATETIME)",
        "ERROR 1235 (42000)",
    ),
    absent(
        "LOAD XML INFILE '/tmp/one' INTO TABLE t",
        "ERROR 1235 (42000)",
    ),
    absent("SET sql_auto_is_null = 1", "ERROR 1235 (42000)"),
    absent(
        "SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
        "ERROR 1235 (42000)",
    ),
    absent("DELETE FROM mysql.user", "ERROR 1288 (HY000)"),
    absent("DROP TABLE mysql.user", "ERROR 1044 (42000)"),
    Difference {
        intent: Intent::NotYet,
        before: &["DROP TABLE IF EXISTS mysql.user"],
        statement: "SELECT user FROM mysql.user",
        here: "root",
        in_mysql: "error 1146. Here the server's tables stay; what a session makes and fills in their place is its own, with warning 3554, so that dumps of the schema mysql can be loaded",
    },
    absent(
        "CREATE USER u IDENTIFIED BY 'x' AND IDENTIFIED BY 'y'",
        "ERROR 1064 (42000)",
    ),
    Difference {
        intent: Intent::NotYet,
        before: &[],
        statement: "SELECT COUNT(*) FROM mysql.time_zone_transition",
        here: "0",
        in_mysql: "what mysql_tzinfo_to_sql has loaded; here CONVERT_TZ reads the program's own database, whose names mysql.time_zone_name lists",
    },
    absent("ALTER TABLE t DISCARD TABLESPACE", "ERROR 1235 (42000)"),
    absent("IMPORT TABLE FROM '/tmp/t.sdi'", "ERROR 1235 (42000)"),
    absent("INSTALL PLUGIN x SONAME 'x.so'", "ERROR 1235 (42000)"),
    absent(
        "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
        "ERROR 1064 (42000)",
    ),
    absent("GRANT SELECT ON *.* TO u AS v", "ERROR 1235 (42000)"),
    absent("RESTART", "ERROR 1235 (42000)"),
    absent("SHUTDOWN", "ERROR 1235 (42000)"),
    absent("PURGE BINARY LOGS TO 'x'", "ERROR 1235 (42000)"),
    absent(
        "CREATE TABLESPACE s ADD DATAFILE 's.ibd'",
        "ERROR 1235 (42000)",
    ),
    absent("CREATE RESOURCE GROUP r TYPE = USER", "ERROR 1235 (42000)"),
    absent(
        "CLONE LOCAL DATA DIRECTORY '/tmp/clone'",
        "ERROR 1235 (42000)",
    ),
    absent(
        "ALTER INSTANCE ROTATE INNODB MASTER KEY",
        "ERROR 1235 (42000)",
    ),
    absent(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'x'",
        "ERROR 1235 (42000)",
    ),
];

/// What a statement answers: its rows, `/` between columns, or its error.
fn answer(db: &mut Db, sql: &str) -> String {
    match db.try_rows(sql) {
        Ok(rows) => rows.join("; ").replace('|', " / "),
        Err(error) => format!("ERROR {} ({})", error.number(), error.sqlstate()),
    }
}

#[test]
fn every_difference_is_as_listed() {
    for difference in DIFFERENCES {
        let mut db = Db::new();
        db.run("CREATE TABLE t (id INT)");
        for sql in difference.before {
            db.run(sql);
        }
        let statement = difference.statement;
        assert_eq!(answer(&mut db, statement), difference.here, "{statement}");
    }
}

fn section(intent: Intent, title: &str) -> String {
    let mut text =
        format!("\n## {title}\n\n| statement | here | MySQL 8.4 |\n| --- | --- | --- |\n");
    for difference in DIFFERENCES.iter().filter(|row| row.intent == intent) {
        let before = difference.before.iter().map(|sql| format!("`{sql}`"));
        let statement = format!("`{}`", difference.statement);
        let all: Vec<String> = before.chain([statement]).collect();
        text.push_str(&format!(
            "| {} | {} | {} |\n",
            all.join("; "),
            difference.here.replace('|', "\\|"),
            difference.in_mysql
        ));
    }
    text
}

#[test]
fn the_document_of_differences_is_up_to_date() {
    let expected = [
        HEAD.to_string(),
        section(Intent::OnPurpose, "On purpose"),
        section(Intent::NotYet, "Not yet"),
    ]
    .concat();
    if std::env::var_os("PORPOISE_WRITE_DOCS").is_some() {
        std::fs::write(DOCUMENT, &expected).expect("writes the document");
    }
    assert!(
        std::fs::read_to_string(DOCUMENT).is_ok_and(|text| text == expected),
        "docs/differences.md is out of date. To write it anew:\n\
         PORPOISE_WRITE_DOCS=1 cargo test -p porpoise-engine differences"
    );
}
