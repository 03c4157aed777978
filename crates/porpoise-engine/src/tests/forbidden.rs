//! Whether a statement of any kind reads a table that its session may not read.
//!
//! [`KINDS`] has a line for each kind of statement that the parser makes, with examples. Every
//! literal and every name in them is replaced, one after the other, by a subquery on a forbidden
//! table or by that table's name. Where the grammar takes that, the statement has to fail: run, and
//! prepared. What is tried is therefore decided by the parser, not by this file.
//!
//! A new kind of statement doesn't compile until it has its line ([`kind_of`]); a line whose
//! examples are of another kind, or which is said to take expressions and never meets a refusal,
//! fails.

use porpoise_core::error::{Error, ErrorKind};
use porpoise_sql::lexer::{Lexer, TokenKind};
use porpoise_sql::{Modes, ast};

use super::database::Db;

/// What stands in the forbidden table; no error may tell it.
const SECRETS: [&str; 2] = ["sesame", "7340033"];

/// What an example's parts are replaced by.
const REPLACEMENTS: [&str; 5] = [
    "(SELECT id FROM secret.t)",
    "(SELECT pw FROM secret.t LIMIT 1)",
    "(SELECT pw FROM secret.v)",
    "(SELECT * FROM secret.t) AS stolen",
    "secret.t",
];

/// Whether a kind of statement takes expressions, queries or tables' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// It does: some replacement is refused for want of a privilege.
    Names,
    /// It takes none: no replacement is a statement.
    Nothing,
    /// It takes some, and fails for another reason, whatever they are.
    Vain,
}

struct Kind {
    name: &'static str,
    takes: Takes,
    examples: &'static [&'static str],
}

macro_rules! kinds {
    ($($variant:ident $takes:ident [$($example:literal),* $(,)?];)*) => {
        const KINDS: &[Kind] = &[
            $(Kind {
                name: stringify!($variant),
                takes: Takes::$takes,
                examples: &[$($example),*],
            }),*
        ];

        /// The name of a statement's line.
        fn kind_of(statement: &ast::Statement) -> &'static str {
            match statement {
                $(ast::Statement::$variant { .. } => stringify!($variant)),*
            }
        }
    };
}

kinds! {
    Query Names [
        "SELECT x, 'text' FROM a WHERE id = 1 GROUP BY x HAVING x > 2 ORDER BY x LIMIT 3",
        "SELECT a.x + 1, COUNT(*) OVER (PARTITION BY 1 ORDER BY 2) FROM a JOIN b ON a.id = 3 LEFT JOIN v USING (id)",
        "SELECT CASE 1 WHEN 2 THEN 3 ELSE 4 END, IF(1, 2, 3), x BETWEEN 1 AND 2, x IN (1, 2), s LIKE 'a' ESCAPE 'b' FROM a",
        "SELECT CAST(1 AS CHAR), CONVERT(1 USING utf8mb4), EXTRACT(DAY FROM '2000-01-01'), TRIM(LEADING 'a' FROM 'b'), INTERVAL 1 DAY + '2000-01-01'",
        "SELECT EXISTS (SELECT 1 FROM b WHERE id = 1), (1, 2) = (3, 4), x = ANY (SELECT 5), NOT 1, -1, ~1, 1 IS NULL FROM a",
        "SELECT GROUP_CONCAT(DISTINCT x, 1 ORDER BY 2 SEPARATOR ','), JSON_OBJECT('a', 1), SUBSTRING('a' FROM 1 FOR 2) FROM a",
        "SELECT * FROM a, LATERAL (SELECT a.x + 1 AS y) l, JSON_TABLE('[1]', '$[*]' COLUMNS (j INT PATH '$')) AS k",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n",
        "WITH c AS (SELECT * FROM a) SELECT 1 FROM c UNION SELECT 2 FROM b INTERSECT SELECT 3 EXCEPT SELECT 4",
        "SELECT 1 INTO @y", "SELECT @y := 1", "SELECT x FROM a WHERE id = 1 FOR UPDATE", "TABLE a", "VALUES ROW(1, 2)",
        "SELECT 1 FROM a USE INDEX (PRIMARY) WHERE MATCH (s) AGAINST ('x')", "SELECT DEFAULT(x) FROM a",
        "SELECT ROW_NUMBER() OVER w FROM a WINDOW w AS (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SELECT SLEEP(0), GET_LOCK('a', 0), RELEASE_LOCK('a'), UUID(), RAND(1), BENCHMARK(1, 2)",
    ];
    Insert Names [
        "INSERT INTO a (id, x) VALUES (1, 2), (3, DEFAULT) ON DUPLICATE KEY UPDATE x = 4",
        "INSERT INTO a VALUES (1, 2, 'a') AS n ON DUPLICATE KEY UPDATE x = n.x + 5",
        "INSERT IGNORE INTO a SET id = 1, x = 2",
        "INSERT INTO a (id) SELECT id FROM b WHERE x = 1 ON DUPLICATE KEY UPDATE x = 2",
        "REPLACE INTO a VALUES (1, 2, 'a')", "REPLACE INTO a SELECT * FROM b", "INSERT INTO v (id) VALUES (1)",
        "INSERT INTO a WITH c AS (SELECT 1) SELECT * FROM c", "INSERT INTO a TABLE b",
    ];
    Update Names [
        "UPDATE a SET x = 1, s = 'a' WHERE id = 2 ORDER BY x LIMIT 3", "UPDATE v SET x = 1",
        "UPDATE a JOIN b ON a.id = b.id SET a.x = 1, b.x = 2 WHERE a.id = 3",
        "UPDATE a, (SELECT 1 AS y) d SET a.x = d.y", "WITH c AS (SELECT 1 AS y) UPDATE a, c SET a.x = c.y",
    ];
    Delete Names [
        "DELETE FROM a WHERE id = 1 ORDER BY x LIMIT 2", "DELETE FROM v WHERE id = 1",
        "DELETE a, b FROM a JOIN b ON a.id = b.id WHERE a.x = 1", "DELETE FROM a USING a JOIN b ON a.x = 1",
        "WITH c AS (SELECT 1 AS y) DELETE FROM a WHERE x IN (SELECT y FROM c)",
    ];
    LoadData Names [
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE a FIELDS TERMINATED BY ',' IGNORE 1 LINES (id, @y) SET x = 1",
        "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE a",
    ];
    Handler Names [
        "HANDLER a OPEN", "HANDLER a OPEN AS b", "HANDLER a READ FIRST WHERE id = 1 LIMIT 2",
        "HANDLER a READ `PRIMARY` = (1)", "HANDLER a CLOSE",
    ];
    Do Names ["DO 1, SLEEP(0)"];
    Call Names ["CALL p(1, 2)"];
    CreateDatabase Nothing ["CREATE DATABASE n CHARACTER SET utf8mb4"];
    AlterDatabase Nothing ["ALTER DATABASE d CHARACTER SET utf8mb4"];
    DropDatabase Nothing ["DROP DATABASE n"];
    CreateTable Names [
        "CREATE TABLE n (id INT DEFAULT 1, g INT AS (id + 1), CHECK (id > 2), KEY ((id + 3)))",
        "CREATE TABLE n AS SELECT * FROM a WHERE id = 1", "CREATE TABLE IF NOT EXISTS a AS SELECT * FROM b",
        "CREATE TEMPORARY TABLE n REPLACE AS SELECT 1 AS y", "CREATE TABLE n (c INT, FOREIGN KEY (c) REFERENCES a (id))",
    ];
    CreateTableLike Names ["CREATE TABLE n LIKE a", "CREATE TEMPORARY TABLE n LIKE a"];
    AlterTable Names [
        "ALTER TABLE a ADD COLUMN c INT DEFAULT 1, ALTER COLUMN x SET DEFAULT 2, ADD CHECK (x > 3), RENAME TO n",
        "ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES b (id)", "ALTER TABLE a ADD INDEX ((x + 1))",
        "ALTER TABLE a MODIFY x INT DEFAULT (1 + 2)",
    ];
    DropTable Names ["DROP TABLE IF EXISTS a, b", "DROP TEMPORARY TABLE a"];
    Truncate Names ["TRUNCATE TABLE a"];
    RenameTable Names ["RENAME TABLE a TO n, b TO m"];
    CreateIndex Names ["CREATE INDEX i ON a (x, (x + 1))"];
    DropIndex Names ["DROP INDEX i ON a"];
    CreateView Names [
        "CREATE VIEW n (y) AS SELECT x FROM a WHERE id = 1", "ALTER VIEW v AS SELECT * FROM b",
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW v AS SELECT id FROM a UNION SELECT 1 WITH CHECK OPTION",
        "CREATE VIEW n AS WITH c AS (SELECT * FROM a) SELECT * FROM c, (SELECT 1 AS z) d",
    ];
    DropView Names ["DROP VIEW IF EXISTS v"];
    Begin Nothing ["START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"];
    Commit Nothing ["COMMIT AND CHAIN"];
    Rollback Nothing ["ROLLBACK RELEASE"];
    Savepoint Nothing ["SAVEPOINT y"];
    RollbackTo Nothing ["ROLLBACK TO SAVEPOINT y"];
    ReleaseSavepoint Nothing ["RELEASE SAVEPOINT y"];
    SetTransaction Nothing ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"];
    LockTables Names ["LOCK TABLES a READ, b AS c WRITE"];
    Xa Nothing ["XA START 'a', 'b', 1", "XA END 'a'"];
    UnlockTables Nothing ["UNLOCK TABLES"];
    ChangeServer Nothing ["CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')"];
    DropServer Nothing ["DROP SERVER s"];
    LockInstance Nothing ["LOCK INSTANCE FOR BACKUP"];
    Set Names [
        "SET @y = 1, @z = 'a'", "SET SESSION group_concat_max_len = 1000", "SET @@sort_buffer_size = 100000 + 1",
        "SET GLOBAL max_connections = 100", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET CHARACTER SET utf8mb4",
        "SET sql_mode = CONCAT('A', 'B')", "SET PERSIST max_connections = 5", "SET timestamp = 1",
    ];
    Use Nothing ["USE d"];
    Show Names [
        "SHOW COLUMNS FROM a WHERE Field = 'x'", "SHOW CREATE TABLE a", "SHOW INDEX FROM a IN d WHERE 1",
        "SHOW STATUS WHERE Variable_name = 'x'", "SHOW TABLES FROM d LIKE 'a'", "SHOW VARIABLES WHERE 1",
        "SHOW TABLE STATUS FROM d WHERE Name = 'a'", "SHOW FULL TABLES WHERE 1", "SHOW DATABASES WHERE 1",
        "SHOW CREATE VIEW v", "SHOW WARNINGS LIMIT 1", "SHOW TRIGGERS WHERE 1", "SHOW EVENTS WHERE 1",
        "SHOW PROCEDURE STATUS WHERE 1", "SHOW COLLATION WHERE 1", "SHOW CHARACTER SET WHERE 1",
        "SHOW OPEN TABLES WHERE 1", "SHOW CREATE PROCEDURE p", "SHOW GRANTS",
    ];
    Describe Names ["DESCRIBE a x", "EXPLAIN a"];
    Explain Names [
        "EXPLAIN SELECT x FROM a WHERE id = 1", "EXPLAIN FORMAT=JSON DELETE FROM a WHERE id = 1",
        "EXPLAIN INSERT INTO a (id) VALUES (1)", "EXPLAIN UPDATE a SET x = 1", "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN FORMAT=TREE REPLACE INTO a SELECT * FROM b", "EXPLAIN FOR CONNECTION 1",
        "EXPLAIN ANALYZE SELECT x FROM a", "EXPLAIN ANALYZE DELETE a FROM a JOIN b ON a.id = b.id",
        "EXPLAIN FORMAT=JSON INTO @y SELECT x FROM a",
    ];
    Help Nothing ["HELP 'x'"];
    Kill Names ["KILL 1000000", "KILL QUERY 1000000 + 1"];
    Prepare Nothing ["PREPARE s FROM 'SELECT 1'", "PREPARE s FROM @y"];
    Execute Nothing ["EXECUTE s USING @y"];
    Deallocate Nothing ["DEALLOCATE PREPARE s"];
    Maintain Names [
        "ANALYZE TABLE a, b", "CHECK TABLE a EXTENDED", "OPTIMIZE TABLE a", "REPAIR TABLE a", "CHECKSUM TABLE a",
    ];
    Histogram Names [
        "ANALYZE TABLE a UPDATE HISTOGRAM ON x WITH 4 BUCKETS", "ANALYZE TABLE a DROP HISTOGRAM ON x",
    ];
    Flush Names ["FLUSH TABLES a, b WITH READ LOCK", "FLUSH TABLES a FOR EXPORT", "FLUSH STATUS"];
    Reset Nothing ["RESET QUERY CACHE"];
    ResetPersist Nothing ["RESET PERSIST"];
    ReloadTls Vain ["ALTER INSTANCE RELOAD TLS"];
    Component Vain ["INSTALL COMPONENT 'file://component_validate_password'"];
    CreateUser Nothing ["CREATE USER w IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1"];
    AlterUser Nothing ["ALTER USER w IDENTIFIED BY 'x' ACCOUNT LOCK"];
    SetDefaultRole Nothing ["SET DEFAULT ROLE ALL TO w"];
    DropUser Nothing ["DROP USER IF EXISTS w"];
    RenameUser Nothing ["RENAME USER w TO z"];
    // What a body names is refused when it runs: `a_program_reads_what_its_definer_may` tries it.
    CreateProgram Nothing [];
    AlterEvent Names ["ALTER EVENT e DISABLE", "ALTER EVENT e ON SCHEDULE AT '2001-01-01'"];
    AlterRoutine Names ["ALTER PROCEDURE p COMMENT 'text' SQL SECURITY INVOKER"];
    Signal Names ["SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'text'"];
    GetDiagnostics Nothing ["GET DIAGNOSTICS @n = NUMBER"];
    DropStored Names ["DROP PROCEDURE IF EXISTS p", "DROP EVENT IF EXISTS p"];
    CreateRole Nothing ["CREATE ROLE r"];
    DropRole Nothing ["DROP ROLE r"];
    SetRole Nothing ["SET ROLE NONE"];
    SetPassword Nothing ["SET PASSWORD FOR w = 'x'"];
    Grant Names ["GRANT SELECT (x), UPDATE ON a TO u", "GRANT ALL ON d.* TO u"];
    Revoke Names ["REVOKE SELECT ON a FROM u"];
    Empty Nothing ["/* FROM a */"];
    Unsupported Vain ["BINLOG 'a'"];
}

/// The parts of an example that are replaced: literals, names, and names with their qualifiers.
fn parts(sql: &str) -> Vec<std::ops::Range<usize>> {
    let mut lexer = Lexer::new(sql.as_bytes(), 0, Modes::NONE);
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    let mut qualifies = false;
    loop {
        let token = lexer.next();
        let range = token.start as usize..token.end as usize;
        match token.kind {
            TokenKind::End => return parts,
            TokenKind::Word | TokenKind::QuotedName if qualifies => {
                if let Some(last) = parts.last_mut() {
                    last.end = range.end;
                }
            }
            TokenKind::Word
            | TokenKind::QuotedName
            | TokenKind::Variable
            | TokenKind::Literal(_) => parts.push(range.clone()),
            _ => {}
        }
        qualifies = &sql[range] == ".";
    }
}

/// The only statement of a text.
fn parsed(sql: &str) -> Option<ast::Statement> {
    let parsed = porpoise_sql::parse_statement(sql.as_bytes(), 0, Modes::NONE).ok()??;
    (parsed.next >= sql.len()).then_some(parsed.statement)
}

/// Whether an error says that a privilege is missing.
fn is_refusal(error: &Error) -> bool {
    [
        ErrorKind::RoutineAccessDenied,
        ErrorKind::TableAccessDenied,
        ErrorKind::ColumnAccessDenied,
        ErrorKind::DbAccessDenied,
        ErrorKind::SpecificAccessDenied,
        ErrorKind::AccessDenied,
    ]
    .contains(&error.kind())
}

/// Whether an error came before anything could be read: a name or a feature that there isn't, or a
/// subquery where there may be none.
fn is_of_binding(error: &Error) -> bool {
    const KINDS: [ErrorKind; 15] = [
        ErrorKind::UnsupportedInPrepared,
        ErrorKind::UnknownDatabase,
        ErrorKind::UnknownColumn,
        ErrorKind::UnknownTableIn,
        ErrorKind::NoSuchTable,
        ErrorKind::UnknownSystemVariable,
        ErrorKind::NotSupportedYet,
        ErrorKind::DerivedMustHaveAlias,
        ErrorKind::RoutineDoesNotExist,
        ErrorKind::FunctionDoesNotExist,
        ErrorKind::UndeclaredVariable,
        ErrorKind::DefaultHoldsDisallowed,
        ErrorKind::GeneratedHoldsDisallowed,
        ErrorKind::CheckHoldsDisallowed,
        ErrorKind::FunctionalKeyFunctionNotAllowed,
    ];
    KINDS.contains(&error.kind())
}

fn databases() -> (Db, Db) {
    let mut root = Db::new();
    for sql in [
        "CREATE DATABASE secret",
        "CREATE TABLE secret.t (id INT PRIMARY KEY, pw VARCHAR(40))",
        "INSERT INTO secret.t VALUES (7340033, 'sesame')",
        "CREATE VIEW secret.v AS SELECT * FROM secret.t",
        "CREATE TABLE a (id INT PRIMARY KEY, x INT, s VARCHAR(20))",
        "CREATE TABLE b (id INT PRIMARY KEY, x INT, s VARCHAR(20))",
        "INSERT INTO a VALUES (1, 2, 'a')",
        "INSERT INTO b VALUES (1, 2, 'a')",
        "CREATE VIEW v AS SELECT * FROM a",
        "CREATE USER u",
        "GRANT ALL ON d.* TO u WITH GRANT OPTION",
        "GRANT RELOAD, PROCESS, SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN, BACKUP_ADMIN ON *.* TO u",
    ] {
        root.run(sql);
    }
    let user = super::accounts::login(&root, "u");
    (root, user)
}

#[test]
fn no_statement_of_any_kind_reads_a_forbidden_table() {
    let (mut root, mut user) = databases();
    user.run("USE d");
    let mut tried = 0;
    let mut failures = Vec::new();
    for kind in KINDS {
        let (mut taken, mut refused) = (0, 0);
        for example in kind.examples {
            let statement = parsed(example).unwrap_or_else(|| panic!("no statement: {example}"));
            assert_eq!(kind_of(&statement), kind.name, "{example}");
            for part in parts(example) {
                for replacement in REPLACEMENTS {
                    let sql = [&example[..part.start], replacement, &example[part.end..]].concat();
                    if parsed(&sql).is_none() {
                        continue;
                    }
                    taken += 1;
                    let error = user.try_run(&sql).err();
                    refused += usize::from(error.as_ref().is_some_and(is_refusal));
                    let prepared = user.session.prepare(sql.as_bytes());
                    let executed = prepared.and_then(|prepared| user.execute(prepared.id));
                    match (error, executed.err()) {
                        (Some(first), Some(second)) => {
                            for error in [&first, &second] {
                                if !is_refusal(error) && !is_of_binding(error) {
                                    failures.push(format!("fails later: {sql}: {error}"));
                                }
                            }
                            let told = format!("{first} {second}");
                            if SECRETS.iter().any(|secret| told.contains(secret)) {
                                failures.push(format!("tells: {sql}: {told}"));
                            }
                        }
                        (None, _) => failures.push(format!("runs: {sql}")),
                        (_, None) => failures.push(format!("runs when prepared: {sql}")),
                    }
                }
            }
        }
        println!(
            "{:<16} {taken:5} tried, {refused:5} refused for want of a privilege",
            kind.name
        );
        tried += taken;
        let fits = match kind.takes {
            Takes::Names => refused > 0,
            Takes::Nothing => taken == 0,
            Takes::Vain => taken > 0 && refused == 0,
        };
        if !fits {
            failures.push(format!(
                "{}: {taken} tried, {refused} refused, but it takes {:?}",
                kind.name, kind.takes
            ));
        }
    }
    println!("{tried} statements tried");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(
        root.rows("SELECT COUNT(*) FROM secret.t"),
        ["1"],
        "nothing was changed"
    );
}
