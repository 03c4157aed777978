//! What COM_RESET_CONNECTION and COM_CHANGE_USER leave of a session: the list of MySQL's manual (C
//! API, `mysql_reset_connection()` and `mysql_change_user()`), a row each. MariaDB has to agree
//! where it does the same.

use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::{Error, Reply, Wire};

/// The session that asker the question.
#[derive(Clone, Copy, PartialEq)]
enum Asker {
    /// The one that was reset.
    Same,
    /// Another one: what the reset session held is free.
    Another,
}
use Asker::{Another, Same};

struct Row {
    what: &'static str,
    before: &'static [&'static str],
    asker: Asker,
    question: &'static str,
    after_reset: &'static str,
    after_change: &'static str,
    /// MariaDB does the same.
    in_mariadb: bool,
}

const fn row(
    what: &'static str,
    before: &'static [&'static str],
    asker: Asker,
    question: &'static str,
    after: &'static str,
) -> Row {
    Row {
        what,
        before,
        asker,
        question,
        after_reset: after,
        after_change: after,
        in_mariadb: true,
    }
}

const ROWS: &[Row] = &[
    row(
        "a transaction is rolled back",
        &["BEGIN", "INSERT INTO d.t VALUES (10)"],
        Same,
        "SELECT COUNT(*) FROM d.t WHERE id = 10",
        "0",
    ),
    row(
        "its row locks are free",
        &["BEGIN", "SELECT id FROM d.t WHERE id = 1 FOR UPDATE"],
        Another,
        "SELECT id FROM d.t WHERE id = 1 FOR UPDATE NOWAIT",
        "1",
    ),
    row(
        "autocommit is on again",
        &["SET autocommit = 0"],
        Same,
        "SELECT @@autocommit",
        "1",
    ),
    row(
        "SET TRANSACTION for the next one is forgotten",
        &["SET TRANSACTION READ ONLY"],
        Same,
        "INSERT INTO d.u VALUES (1)",
        "done",
    ),
    row(
        "SET SESSION TRANSACTION is undone",
        &["SET SESSION TRANSACTION READ ONLY"],
        Same,
        "INSERT INTO d.u VALUES (2)",
        "done",
    ),
    Row {
        in_mariadb: false,
        ..row(
            "the isolation level is the global one",
            &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
            Same,
            "SELECT @@transaction_isolation",
            "REPEATABLE-READ",
        )
    },
    row(
        "temporary tables are dropped",
        &["CREATE TEMPORARY TABLE d.tmp (a INT)"],
        Same,
        "SELECT COUNT(*) FROM d.tmp",
        "error 1146",
    ),
    row(
        "a temporary table hides no table any more",
        &["CREATE TEMPORARY TABLE d.t (a INT)"],
        Same,
        "SELECT COUNT(*) FROM d.t",
        "1",
    ),
    row(
        "LOCK TABLES is undone for itself",
        &["LOCK TABLES d.t READ"],
        Same,
        "INSERT INTO d.u VALUES (3)",
        "done",
    ),
    row(
        "LOCK TABLES is undone for others",
        &["LOCK TABLES d.u WRITE"],
        Another,
        "INSERT INTO d.u VALUES (4)",
        "done",
    ),
    row(
        "FLUSH TABLES WITH READ LOCK is undone",
        &["FLUSH TABLES WITH READ LOCK"],
        Another,
        "INSERT INTO d.u VALUES (5)",
        "done",
    ),
    row(
        "locks of GET_LOCK() are released",
        &["SELECT GET_LOCK('harpoon', 0)"],
        Another,
        "SELECT GET_LOCK('harpoon', 0)",
        "1",
    ),
    row(
        "session variables have the global values",
        &["SET lock_wait_timeout = 77, sort_buffer_size = 77000"],
        Same,
        "SELECT @@lock_wait_timeout = @@global.lock_wait_timeout AND @@sort_buffer_size = @@global.sort_buffer_size",
        "1",
    ),
    row(
        "the SQL mode is the global one",
        &["SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'"],
        Same,
        "SELECT CONCAT(\"a\" || 1, @@sql_mode = @@global.sql_mode)",
        "11",
    ),
    row(
        "the time zone is the global one",
        &["SET time_zone = '+05:00'"],
        Same,
        "SELECT CONCAT(@@time_zone = @@global.time_zone, ABS(TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), NOW())) < 5)",
        "11",
    ),
    row(
        "a fixed clock goes again",
        &["SET timestamp = 1000"],
        Same,
        "SELECT UNIX_TIMESTAMP() > 2000",
        "1",
    ),
    row(
        "user variables are gone",
        &["SET @fish = 1"],
        Same,
        "SELECT @fish IS NULL",
        "1",
    ),
    row(
        "prepared statements are gone",
        &["PREPARE s FROM 'SELECT 1'"],
        Same,
        "EXECUTE s",
        "error 1243",
    ),
    row(
        "LAST_INSERT_ID() is 0",
        &["INSERT INTO d.numbered VALUES (NULL)"],
        Same,
        "SELECT LAST_INSERT_ID()",
        "0",
    ),
    row(
        "the value that AUTO_INCREMENT was to give is forgotten",
        &["SET insert_id = 5000"],
        Same,
        "INSERT INTO d.numbered VALUES (NULL)",
        "done",
    ),
    row(
        "warnings are gone",
        &["SELECT CAST('x' AS SIGNED)"],
        Same,
        "SELECT @@warning_count",
        "0",
    ),
    row(
        "the connection is the same",
        &["SET @id = CONNECTION_ID()"],
        Same,
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()",
        "1",
    ),
    Row {
        after_change: "NULL",
        ..row(
            "the database stays, unless another user comes",
            &["USE d"],
            Same,
            "SELECT DATABASE()",
            "d",
        )
    },
    Row {
        after_change: "cu@localhost",
        ..row(
            "the user stays, unless another comes",
            &[],
            Same,
            "SELECT USER()",
            "first@localhost",
        )
    },
    Row {
        after_change: "cu",
        ..row(
            "the process list tells who it is",
            &[],
            Same,
            "SELECT USER FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()",
            "first",
        )
    },
    Row {
        after_change: "NULL",
        ..row(
            "the process list tells the database",
            &["USE d"],
            Same,
            "SELECT DB FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()",
            "d",
        )
    },
    Row {
        after_change: "latin1 latin1_swedish_ci",
        in_mariadb: false,
        ..row(
            "SET NAMES is undone: the global values, or what the new user says",
            &["SET NAMES ascii"],
            Same,
            "SELECT CONCAT(@@character_set_client, ' ', @@collation_connection)",
            "utf8mb4 utf8mb4_0900_ai_ci",
        )
    },
    Row {
        in_mariadb: false,
        after_change: "latin1",
        ..row(
            "what SET NAMES said of results is undone",
            &["SET character_set_results = NULL"],
            Same,
            "SELECT @@character_set_results",
            "utf8mb4",
        )
    },
    Row {
        after_change: "NONE",
        in_mariadb: false,
        ..row(
            "roles are the account's default ones",
            &["SET ROLE ALL"],
            Same,
            "SELECT CURRENT_ROLE()",
            "NONE",
        )
    },
];

/// A statement's outcome as one word or value.
fn outcome(reply: Result<Reply, Error>) -> String {
    match reply {
        Ok(Reply::Done { .. }) => "done".into(),
        Ok(Reply::Rows { rows, .. }) => match rows.first().map(|row| &row[0]) {
            Some(Some(value)) => String::from_utf8_lossy(value).into_owned(),
            Some(None) => "NULL".into(),
            None => "no rows".into(),
        },
        Err(Error::Server { number, .. }) => format!("error {number}"),
        Err(error) => panic!("{error}"),
    }
}

/// latin1_swedish_ci: no server here has it as its global collation.
const LATIN1: u8 = 8;

fn check(product: Product) -> Vec<String> {
    let server = Server::start(product);
    let mut root = server.connect(Route::UnixSocket, "").unwrap();
    let native = match product {
        Product::MariaDb => "IDENTIFIED",
        Product::MySql | Product::Porpoise => "IDENTIFIED WITH mysql_native_password",
    };
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1)",
        "CREATE TABLE d.u (id INT)",
        "CREATE TABLE d.numbered (id INT AUTO_INCREMENT PRIMARY KEY)",
        &format!("CREATE USER first@localhost {native} BY 'one'"),
        &format!("CREATE USER cu@localhost {native} BY ''"),
        "GRANT ALL ON *.* TO first@localhost",
        "GRANT ALL ON *.* TO cu@localhost",
        "CREATE ROLE pod",
        "GRANT pod TO first@localhost",
    ] {
        root.query(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let address = server.address(Route::UnixSocket);
    let mut another = server.connect(Route::UnixSocket, "").unwrap();
    another
        .query("SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
        .unwrap();
    let mut wrong = Vec::new();
    for row in ROWS
        .iter()
        .filter(|row| row.in_mariadb || product == Product::Porpoise)
    {
        for changes in [false, true] {
            let mut wire = Wire::connect(&address, ("first", "one"), "", LATIN1).unwrap();
            for sql in row.before {
                wire.query(sql)
                    .unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
            let expected = if changes {
                wire.change_user("cu", "", LATIN1.into()).unwrap();
                row.after_change
            } else {
                wire.reset().unwrap();
                row.after_reset
            };
            let asked = match row.asker {
                Same => &mut wire,
                Another => &mut another,
            };
            let found = outcome(asked.query(row.question));
            if row.asker == Another {
                another.query("COMMIT").unwrap();
                another.query("DO RELEASE_LOCK('harpoon')").unwrap();
            }
            if found != expected {
                let how = if changes { "change_user" } else { "reset" };
                wrong.push(format!(
                    "{product:?}, {how}, {}: {found}, not {expected}",
                    row.what
                ));
            }
        }
    }
    wrong
}

#[test]
fn a_session_is_as_new_after_a_reset_and_after_another_user_came() {
    let wrong: Vec<String> = [Product::MariaDb, Product::Porpoise]
        .into_iter()
        .flat_map(check)
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
