//! The database inside a program. `other_process.rs` runs the same with a database that another
//! process has open.

pub mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use porpoise::{
    Connection, Database, Date, DateTime, Error, Listen, Parameters, Row, Time, Transaction, Value,
};

/// Which of the two test programs this is.
const IN_OTHER_PROCESS: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"other_process");

/// A database with `shop.fish (id, name)` and two rows, `1, 'cod'` and `2, 'eel'`; in memory, or in
/// another process.
fn shop() -> Database {
    let database = if IN_OTHER_PROCESS {
        common::held_by_another()
    } else {
        Database::in_memory().unwrap()
    };
    fill(&database);
    assert_eq!(database.is_local(), !IN_OTHER_PROCESS);
    database
}

fn fill(database: &Database) {
    let connection = database.connect().unwrap();
    for sql in [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE fish (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE)",
        "INSERT INTO fish (name) VALUES ('cod'), ('eel')",
    ] {
        connection.execute(sql, ()).unwrap();
    }
}

fn names(connection: &Connection) -> Vec<String> {
    let rows = connection
        .query("SELECT name FROM shop.fish ORDER BY id", ())
        .unwrap();
    rows.iter().map(|row| row.get("name").unwrap()).collect()
}

fn number<T>(result: Result<T, Error>) -> u16 {
    result.err().map_or(0, |error| error.number())
}

#[test]
fn values_of_every_type_go_there_and_back() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    connection
        .execute(
            "CREATE TABLE kinds (a TINYINT, b BIGINT UNSIGNED, c FLOAT, d DOUBLE, e BOOL, f VARCHAR(9), g VARBINARY(9),
             h DECIMAL(9,2), i DATE, j DATETIME(6), k TIME(3), l YEAR, m BIT(12), n ENUM('x','y'), o JSON)",
            (),
        )
        .unwrap();
    let date = Date {
        year: 2024,
        month: 2,
        day: 29,
    };
    let datetime = DateTime {
        date,
        hour: 23,
        minute: 59,
        second: 58,
        microsecond: 123_456,
    };
    let time = Time {
        negative: true,
        days: 2,
        hours: 1,
        minutes: 2,
        seconds: 3,
        microseconds: 500_000,
    };
    let insert = connection
        .prepare(
            "INSERT INTO kinds (a, b, c, d, e, f, g, h, i, j, k) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        )
        .unwrap();
    insert
        .execute((
            i8::MIN,
            u64::MAX,
            1.5f32,
            1e300,
            true,
            "Wäl 🐋",
            &[0u8, 255, 7][..],
            Value::Decimal(b"-12.30"),
            date,
            datetime,
            time,
        ))
        .unwrap();
    connection
        .execute(
            "UPDATE kinds SET l = ?, m = ?, n = ?, o = ?",
            (2024u16, 0xabcu32, "y", "[1]"),
        )
        .unwrap();

    let text = connection.query("SELECT * FROM kinds", ()).unwrap();
    let prepared = connection
        .query("SELECT * FROM kinds WHERE a = ?", (i8::MIN,))
        .unwrap();
    for rows in [&text, &prepared] {
        let row = rows.get(0).unwrap();
        assert_eq!(row.get::<i8>("a").unwrap(), i8::MIN);
        assert_eq!(row.get::<u64>("b").unwrap(), u64::MAX);
        assert_eq!(row.get::<f32>("c").unwrap(), 1.5);
        assert_eq!(row.get::<f64>("d").unwrap(), 1e300);
        assert!(row.get::<bool>("e").unwrap());
        assert_eq!(row.get::<&str>("f").unwrap(), "Wäl 🐋");
        assert_eq!(row.get::<Vec<u8>>("g").unwrap(), [0, 255, 7]);
        assert_eq!(row.value("h").unwrap(), Value::Decimal(b"-12.30"));
        assert_eq!(row.get::<Date>("i").unwrap(), date);
        assert_eq!(row.get::<DateTime>("j").unwrap(), datetime);
        assert_eq!(row.get::<Time>("k").unwrap(), time);
        assert_eq!(row.get::<u16>("l").unwrap(), 2024);
        assert_eq!(row.get::<u16>("m").unwrap(), 0xabc);
        assert_eq!(row.get::<String>("n").unwrap(), "y");
        assert_eq!(row.get::<String>(14).unwrap(), "[1]");
    }
}

#[test]
fn null_is_an_option_and_nothing_else() {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    let rows = connection
        .query(
            "SELECT ? AS nothing, ? AS something",
            (None::<i32>, Some("x")),
        )
        .unwrap();
    let row = rows.get(0).unwrap();
    assert_eq!(row.get::<Option<i32>>("nothing").unwrap(), None);
    assert_eq!(row.get::<Option<&str>>("SOMETHING").unwrap(), Some("x"));
    let error = row.get::<i32>("nothing").unwrap_err();
    assert_eq!(error.number(), 1105);
    assert!(error.message().contains("'nothing'"), "{error}");
}

#[test]
fn errors_have_mysqls_numbers() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let run = |sql: &str, parameters: &[Value<'_>]| number(connection.execute(sql, parameters));
    assert_eq!(run("SELEC 1", &[]), 1064);
    assert_eq!(run("SELECT * FROM whales", &[]), 1146);
    assert_eq!(
        run("INSERT INTO fish (name) VALUES (?)", &["cod".into()]),
        1062
    );
    assert_eq!(run("SELECT ?", &[1.into(), 2.into()]), 1210);
    assert_eq!(run("SELECT 1; SELECT 2", &[]), 1064);
    assert_eq!(number(connection.execute("SELECT ?", (f64::NAN,))), 1525);
    assert_eq!(number(database.connect_to("nowhere")), 1049);
    let rows = connection.query("SELECT name FROM fish", ()).unwrap();
    let row = rows.get(0).unwrap();
    assert_eq!(number(row.get::<i32>("size")), 1054);
    assert_eq!(number(row.get::<i32>(1)), 1054);

    let error = connection.execute("SELECT * FROM whales", ()).unwrap_err();
    assert_eq!(error.sqlstate(), "42S02");
    assert_eq!(error.message(), "Table 'shop.whales' doesn't exist");
}

#[test]
fn settings_are_system_variables_and_an_unknown_one_is_refused() {
    let database = Database::options()
        .set("innodb_flush_log_at_trx_commit", 2)
        .set("sql-mode", "ANSI_QUOTES")
        .in_memory()
        .unwrap();
    let rows = database
        .connect()
        .unwrap()
        .query("SELECT @@innodb_flush_log_at_trx_commit, @@sql_mode", ())
        .unwrap();
    let row = rows.get(0).unwrap();
    assert_eq!(row.get::<i32>(0).unwrap(), 2);
    assert_eq!(row.get::<&str>(1).unwrap(), "ANSI_QUOTES");

    assert_eq!(
        number(Database::options().set("inodb", 1).in_memory()),
        1193
    );
    let wrong = Database::options().set("innodb_flush_log_at_trx_commit", "seldom");
    assert_ne!(number(wrong.in_memory()), 0);
}

#[test]
fn an_outcome_tells_of_rows_ids_and_warnings() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let inserted = connection
        .execute("INSERT INTO fish (name) VALUES (?), (?)", ["ray", "tench"])
        .unwrap();
    assert_eq!((inserted.affected_rows, inserted.last_insert_id), (2, 3));
    assert_eq!(inserted.message, "Records: 2  Duplicates: 0  Warnings: 0");
    let selected = connection.query("SELECT 1 + 'one'", ()).unwrap();
    assert_eq!(selected.outcome().warnings, 1);
    let changed = connection.query("DELETE FROM fish", ()).unwrap();
    assert_eq!((changed.len(), changed.columns().len()), (0, 0));
    assert_eq!(changed.outcome().affected_rows, 4);
}

#[test]
fn a_transaction_commits_when_told_and_rolls_back_when_dropped() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let delete = connection
        .prepare("DELETE FROM fish WHERE name = ?")
        .unwrap();

    let transaction = connection.transaction().unwrap();
    delete.execute(("cod",)).unwrap();
    assert_eq!(names(&transaction), ["eel"]);
    assert_eq!(names(&database.connect().unwrap()), ["cod", "eel"]);
    drop(transaction);
    assert!(!connection.in_transaction());
    assert_eq!(names(&connection), ["cod", "eel"]);

    let transaction = connection.transaction().unwrap();
    assert_eq!(number(connection.transaction()), 1105, "one at a time");
    delete.execute(("cod",)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(names(&database.connect().unwrap()), ["eel"]);
}

#[test]
fn a_dropped_connection_rolls_back() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    connection.execute("BEGIN", ()).unwrap();
    connection.execute("DELETE FROM fish", ()).unwrap();
    drop(connection);
    assert_eq!(names(&database.connect().unwrap()), ["cod", "eel"]);
}

#[test]
fn a_transaction_that_ended_by_itself_takes_no_more_statements() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let transaction = connection.transaction().unwrap();
    transaction.execute("DELETE FROM fish", ()).unwrap();
    transaction
        .execute("CREATE TABLE other (id INT)", ())
        .unwrap();
    assert_eq!(
        number(transaction.execute("INSERT INTO fish (name) VALUES ('ide')", ())),
        1105
    );
    assert_eq!(number(transaction.commit()), 1105);
    assert!(
        names(&connection).is_empty(),
        "DDL commits what came before"
    );
}

#[test]
fn a_closure_sees_rows_while_they_are_made_and_can_end_the_statement() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let mut seen = Vec::new();
    let sql = "SELECT a.name, b.id FROM fish a, fish b WHERE a.id >= ? ORDER BY a.id, b.id";
    connection
        .query_each(sql, (1,), |row: Row<'_>| {
            seen.push(format!("{}{}", row.get::<&str>(0)?, row.get::<u8>("id")?));
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, ["cod1", "cod2", "eel1", "eel2"]);

    let mut count = 0;
    let ended = connection.query_each(sql, (1,), |row| {
        count += 1;
        row.get::<i32>("name").map(drop)
    });
    assert_eq!((number(ended), count), (1105, 1));
    assert_eq!(
        names(&connection),
        ["cod", "eel"],
        "and the connection goes on"
    );
}

#[test]
fn a_closure_that_panics_leaves_a_connection_that_works() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        connection.query_each("SELECT * FROM fish FOR UPDATE", (), |_| {
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(names(&connection), ["cod", "eel"]);
    let other = database.connect_to("shop").unwrap();
    let deleted = other.execute("DELETE FROM fish", ()).unwrap();
    assert_eq!(deleted.affected_rows, 2, "its locks are gone");
}

#[test]
fn inside_a_row_no_other_statement_runs_on_the_connection() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let mut transaction: Option<Transaction<'_>> = Some(connection.transaction().unwrap());
    connection
        .execute("DELETE FROM fish WHERE id = 1", ())
        .unwrap();
    connection
        .query_each("SELECT 1", (), |_| {
            assert_eq!(number(connection.execute("SELECT 1", ())), 2014);
            transaction = None;
            Ok(())
        })
        .unwrap();
    assert_eq!(names(&connection), ["cod", "eel"], "rolled back afterwards");
}

#[test]
fn a_prepared_statement_follows_changes_of_its_tables() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let all = connection
        .prepare("SELECT * FROM fish WHERE id = ?")
        .unwrap();
    assert_eq!(all.query((1,)).unwrap().columns().len(), 2);
    connection
        .execute("ALTER TABLE fish ADD kg INT DEFAULT 7", ())
        .unwrap();
    let rows = all.query((1,)).unwrap();
    assert_eq!(rows.get(0).unwrap().get::<i32>("kg").unwrap(), 7);
    assert_eq!(
        all.query(("2",))
            .unwrap()
            .get(0)
            .unwrap()
            .get::<&str>(1)
            .unwrap(),
        "eel"
    );
}

#[test]
fn many_texts_with_parameters_do_not_pile_up() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    for n in 0..500 {
        let rows = connection.query(&format!("SELECT {n} + ?"), (1,)).unwrap();
        assert_eq!(rows.get(0).unwrap().get::<i64>(0).unwrap(), n + 1);
    }
    let quoted = |connection: &Connection| {
        let rows = connection.query("SELECT \"name\" FROM fish WHERE id = ?", (1,));
        rows.unwrap().get(0).unwrap().get::<String>(0).unwrap()
    };
    assert_eq!(quoted(&connection), "name");
    connection
        .execute("SET sql_mode = 'ANSI_QUOTES'", ())
        .unwrap();
    assert_eq!(
        quoted(&connection),
        "cod",
        "a text means what the mode of its time says"
    );
}

#[test]
fn connections_on_many_threads_share_a_database() {
    let database = shop();
    database
        .connect_to("shop")
        .unwrap()
        .execute("CREATE TABLE counter (n INT)", ())
        .and_then(|_| {
            database
                .connect_to("shop")?
                .execute("INSERT INTO counter VALUES (0)", ())
        })
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Made here, used there.
            let connection = database.connect_to("shop").unwrap();
            scope.spawn(move || {
                for _ in 0..50 {
                    connection
                        .execute("UPDATE counter SET n = n + ?", (1,))
                        .unwrap();
                }
            });
        }
    });
    let rows = database
        .connect_to("shop")
        .unwrap()
        .query("SELECT n FROM counter", ());
    assert_eq!(rows.unwrap().get(0).unwrap().get::<i32>(0).unwrap(), 200);
}

#[test]
fn a_row_lock_holds_another_thread_back_until_the_commit() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    let transaction = connection.transaction().unwrap();
    transaction
        .execute("UPDATE fish SET name = 'ling' WHERE id = 1", ())
        .unwrap();
    let commits = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let other = database.connect_to("shop").unwrap();
            let rows = other
                .query("SELECT name FROM fish WHERE id = ? FOR UPDATE", (1,))
                .unwrap();
            (
                commits.load(Ordering::SeqCst),
                rows.get(0).unwrap().get::<String>(0).unwrap(),
            )
        });
        std::thread::sleep(Duration::from_millis(200));
        commits.store(true, Ordering::SeqCst);
        transaction.commit().unwrap();
        let (has_waited, name) = waiting.join().unwrap();
        assert!(has_waited && name == "ling");
    });

    let impatient = database.connect_to("shop").unwrap();
    impatient
        .execute("SET innodb_lock_wait_timeout = 1", ())
        .unwrap();
    let _transaction = connection.transaction().unwrap();
    connection
        .execute("DELETE FROM fish WHERE id = 1", ())
        .unwrap();
    assert_eq!(
        number(impatient.execute("DELETE FROM fish WHERE id = 1", ())),
        1205
    );
}

#[test]
fn of_two_threads_in_a_deadlock_one_is_refused_and_its_transaction_is_over() {
    let database = shop();
    let both_locked = Barrier::new(2);
    let cross = |first: i32, second: i32| {
        let connection = database.connect_to("shop").unwrap();
        let transaction = connection.transaction().unwrap();
        let lock = |id: i32| {
            transaction.execute(
                "UPDATE fish SET name = ? WHERE id = ?",
                (format!("{first}-{id}"), id),
            )
        };
        lock(first).unwrap();
        both_locked.wait();
        let refused = number(lock(second));
        (refused, number(transaction.commit()))
    };
    let ends = std::thread::scope(|scope| {
        let one = scope.spawn(|| cross(1, 2));
        let other = scope.spawn(|| cross(2, 1));
        [one.join().unwrap(), other.join().unwrap()]
    });
    let mut sorted = ends;
    sorted.sort_unstable();
    assert_eq!(sorted, [(0, 0), (1213, 1105)]);
}

#[test]
fn a_folder_opened_again_holds_what_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let database = Database::open(&path).unwrap();
    fill(&database);
    let connection = database.connect_to("shop").unwrap();
    drop(database);
    connection
        .execute("INSERT INTO fish (name) VALUES (?)", ("ide",))
        .unwrap();
    let transaction = connection.transaction().unwrap();
    transaction.execute("DELETE FROM fish", ()).unwrap();
    drop(transaction);
    drop(connection); // the last handle

    let database = Database::open(&path).unwrap();
    assert_eq!(names(&database.connect().unwrap()), ["cod", "eel", "ide"]);
}

#[test]
fn persisted_variables_hold_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let run = |statements: &[&str]| {
        let database = Database::open(&path).unwrap();
        let connection = database.connect().unwrap();
        for sql in statements {
            connection.execute(sql, ()).unwrap();
        }
        let read = "SELECT @@GLOBAL.sort_buffer_size, @@GLOBAL.join_buffer_size, @@back_log";
        let rows = connection.query(read, ()).unwrap();
        let row = rows.iter().next().unwrap();
        let values: [u64; 3] = [0, 1, 2].map(|at| row.get(at).unwrap());
        values
    };
    let [sort, join, back_log] = run(&[
        "SET PERSIST sort_buffer_size = 100000",
        "SET PERSIST_ONLY join_buffer_size = 200000, PERSIST_ONLY back_log = 7",
    ]);
    assert_eq!(sort, 100_000);
    assert_ne!((join, back_log), (200_000, 7));
    assert_eq!(run(&[]), [100_000, 200_000, 7]);
    let now = run(&["RESET PERSIST sort_buffer_size"]);
    assert_eq!(now, [100_000, 200_000, 7]);
    let [sort, ..] = run(&["RESET PERSIST"]);
    assert_ne!(sort, 100_000);
    assert_eq!(run(&[]), [sort, join, back_log]);

    let database = Database::open(&path).unwrap();
    let connection = database.connect().unwrap();
    for (sql, refused) in [
        ("SET PERSIST back_log = 7", 1238),
        ("SET PERSIST_ONLY port = 7", 1238),
        ("SET PERSIST_ONLY insert_id = 7", 1228),
        ("SET PERSIST_ONLY sql_mode = 'x'", 1231),
        ("RESET PERSIST back_log", 3615),
    ] {
        assert_eq!(number(connection.execute(sql, ())), refused, "{sql}");
    }
}

#[test]
fn events_run_where_a_program_asks_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let database = Database::open(&path).unwrap();
    fill(&database);
    let connection = database.connect_to("shop").unwrap();
    let create = "CREATE EVENT hatch ON SCHEDULE EVERY 1 SECOND DO \
                  INSERT INTO fish (name) VALUES ('ide')";
    connection.execute(create, ()).unwrap();
    let fish = |connection: &Connection| {
        let names = names(connection);
        names.iter().filter(|name| *name == "ide").count()
    };
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(fish(&connection), 0);
    drop((connection, database));

    let database = Database::open(&path).unwrap();
    let connection = database.connect_to("shop").unwrap();
    assert_eq!(fish(&connection), 0);
    let switch = "SET GLOBAL event_scheduler = ON";
    connection.execute(switch, ()).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while fish(&connection) == 0 {
        assert!(Instant::now() < end, "no event ran");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_folder_in_use_is_refused_with_the_process_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let alone = || Database::options().share(false).open(&path);
    let _database = alone().unwrap();
    let error = alone().map(drop).unwrap_err();
    let expected = format!(
        "{} is in use by process {}",
        path.display(),
        std::process::id()
    );
    assert_eq!(error.message(), expected);
}

#[test]
fn clients_see_the_programs_database_while_it_listens() {
    if IN_OTHER_PROCESS {
        // Clients come in where the database is.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let database = shop();
    let listening = database
        .listen(Listen::unix(&socket).and(Listen::tcp(([127, 0, 0, 1], 0).into())))
        .unwrap();
    assert_ne!(listening.tcp_addresses()[0].port(), 0);
    assert_eq!(
        number(database.listen(Listen::unix(folder.path().join("2")))),
        1105
    );

    let url = format!("mysql://root@localhost/shop?socket={}", socket.display());
    let mut client = porpoise_client::Connection::open(&url).unwrap();
    let connection = database.connect_to("shop").unwrap();
    connection
        .execute("INSERT INTO fish (name) VALUES (?)", ("ide",))
        .unwrap();
    let seen = client
        .query("SELECT name FROM fish ORDER BY id")
        .unwrap()
        .rows()
        .unwrap();
    assert_eq!(seen.to_text(), [["cod"], ["eel"], ["ide"]]);
    client.run("DELETE FROM fish WHERE name = 'cod'").unwrap();
    assert_eq!(names(&connection), ["eel", "ide"]);

    drop(listening);
    assert!(client.run("SELECT 1").is_err());
    assert!(porpoise_client::Connection::open(&url).is_err());
    connection.execute("DELETE FROM fish", ()).unwrap();

    let _listening = database.listen(Listen::unix(&socket)).unwrap();
    porpoise_client::Connection::open(&url).unwrap();
    drop(connection);
    drop(database);
    assert!(
        porpoise_client::Connection::open(&url).is_err(),
        "the database has ended"
    );
}

#[test]
fn a_client_can_end_a_programs_statement_or_connection() {
    if IN_OTHER_PROCESS {
        // Clients come in where the database is.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let database = shop();
    let _listening = database.listen(Listen::unix(&socket)).unwrap();
    let url = format!("mysql://root@localhost/shop?socket={}", socket.display());
    let mut client = porpoise_client::Connection::open(&url).unwrap();
    let connection = database.connect_to("shop").unwrap();
    let id = connection.id().unwrap();

    let mut end_of_sleep = |kill: &str| {
        std::thread::scope(|scope| {
            let killing = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                client.run(format!("{kill} {id}")).unwrap();
            });
            let began = Instant::now();
            let slept = connection.execute("SELECT COUNT(*) FROM fish a WHERE SLEEP(20)", ());
            killing.join().unwrap();
            assert!(began.elapsed() < Duration::from_secs(10));
            number(slept)
        })
    };
    assert_eq!(end_of_sleep("KILL QUERY"), 1317);
    assert_eq!(names(&connection), ["cod", "eel"]);
    assert_eq!(end_of_sleep("KILL"), 1317);
    assert_eq!(number(connection.execute("SELECT 1", ())), 2013);
}

#[test]
fn commits_of_the_program_and_of_its_clients_share_a_log() {
    if IN_OTHER_PROCESS {
        // Clients come in where the database is.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    let database = Database::open(folder.path().join("data")).unwrap();
    fill(&database);
    let _listening = database.listen(Listen::unix(&socket)).unwrap();
    let url = format!("mysql://root@localhost/shop?socket={}", socket.display());
    const EACH: i64 = 40;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (url, database) = (&url, &database);
            scope.spawn(move || {
                let mut client = porpoise_client::Connection::open(url).unwrap();
                for n in 0..EACH {
                    client
                        .run(format!(
                            "INSERT INTO fish (name) VALUES ('client {thread} {n}')"
                        ))
                        .unwrap();
                }
            });
            scope.spawn(move || {
                let connection = database.connect_to("shop").unwrap();
                for n in 0..EACH {
                    let name = format!("program {thread} {n}");
                    connection
                        .execute("INSERT INTO fish (name) VALUES (?)", (name,))
                        .unwrap();
                }
            });
        }
    });
    let rows = database
        .connect_to("shop")
        .unwrap()
        .query("SELECT COUNT(*) FROM fish", ());
    assert_eq!(
        rows.unwrap().get(0).unwrap().get::<i64>(0).unwrap(),
        2 + 4 * EACH
    );
}

#[test]
fn the_program_may_do_everything_whatever_accounts_there_are() {
    let database = shop();
    let connection = database.connect_to("shop").unwrap();
    connection
        .execute("CREATE USER ann IDENTIFIED BY 'x'", ())
        .unwrap();
    connection
        .execute("GRANT SELECT ON shop.* TO ann", ())
        .unwrap();
    connection.execute("DROP USER root@localhost", ()).unwrap();
    let connection = database.connect_to("shop").unwrap();
    connection.execute("DROP USER ann", ()).unwrap();
    let rows = connection
        .query("SELECT USER(), CURRENT_USER()", ())
        .unwrap();
    let row = rows.get(0).unwrap();
    assert_eq!(row.get::<&str>(0).unwrap(), "root@localhost");
    assert_eq!(row.get::<&str>(1).unwrap(), "root@localhost");
}

#[test]
fn parameters_are_tuples_slices_and_arrays() {
    fn sum(connection: &Connection, parameters: impl Parameters) -> f64 {
        let rows = connection.query("SELECT ? + ?", parameters).unwrap();
        rows.get(0).unwrap().get(0).unwrap()
    }
    let connection = Database::in_memory().unwrap().connect().unwrap();
    assert_eq!(sum(&connection, (1u8, "2")), 3.0);
    assert_eq!(sum(&connection, [1, 2]), 3.0);
    assert_eq!(sum(&connection, &[1i64, 2][..]), 3.0);
    assert_eq!(
        sum(
            &connection,
            Vec::from([Value::Int(1), Value::Text(b"2")]).as_slice()
        ),
        3.0
    );
}

/// A client's rows and the embedded engine's are kept in different forms, and are asked the same.
#[test]
fn rows_are_asked_alike_wherever_they_were_made() {
    use porpoise_client::rows::{RowFormat, Rows};

    fn ask<F: RowFormat>(rows: &Rows<F>) {
        assert_eq!((rows.len(), rows.is_empty()), (2, false));
        assert_eq!(rows.to_text(), [["1", "cod"], ["2", "NULL"]]);
        let row = rows.get(0).unwrap();
        assert_eq!(row.len(), 2);
        assert_eq!(row.get::<i32>("id").unwrap(), row.get::<i32>(0).unwrap());
        assert_eq!(row.get::<&str>("name").unwrap(), "cod");
        assert!(row.get::<&str>("weight").is_err());
        assert!(row.get::<&str>(2).is_err());
        assert!(row.get::<i32>("name").is_err());
        let names: Vec<Option<String>> = rows.iter().map(|row| row.get(1).unwrap()).collect();
        assert_eq!(names, [Some("cod".to_owned()), None]);
        assert!(
            rows.iter()
                .all(|row| row.values().all(|value| value.is_ok()))
        );
        assert_eq!(rows.into_iter().len(), 2);
        assert!(rows.get(2).is_none());
    }

    let database = Database::in_memory().unwrap();
    let sql = "SELECT 1 AS id, 'cod' AS name UNION ALL SELECT 2, NULL";
    let rows = database.connect().unwrap().query(sql, ()).unwrap();
    ask(&rows);
    assert_eq!(rows.outcome().warnings, 0);

    let options = porpoise_client::Options {
        user: "root".into(),
        ..Default::default()
    };
    let stream = database.stream().unwrap();
    let mut client = porpoise_client::Connection::over(stream, &options).unwrap();
    ask(&client.rows(sql).unwrap());
    let warned = client.rows("SELECT 1 / 0").unwrap();
    assert_eq!(warned.outcome().warnings, 1);
    let statement = client.prepare(sql).unwrap();
    ask(&client.execute(&statement, &[]).unwrap().rows().unwrap());
}
