//! One folder, several programs: everything that works embedded works while another process has the
//! folder open, and what becomes of it when programs come, end and die.

#[path = "embedded.rs"]
mod embedded;

use std::time::{Duration, Instant};

use embedded::common::{Part, Program, ROWS_EACH, new_folder};
use porpoise::{Connection, Database};

fn count(connection: &Connection, table: &str) -> i64 {
    let rows = connection.query(&format!("SELECT COUNT(*) FROM {table}"), ());
    rows.unwrap().get(0).unwrap().get(0).unwrap()
}

fn make_table(database: &Database) -> Connection {
    let connection = database.connect().unwrap();
    connection.execute("CREATE DATABASE shop", ()).unwrap();
    connection.execute("USE shop", ()).unwrap();
    connection
        .execute(
            "CREATE TABLE seen (who BIGINT, what BIGINT, PRIMARY KEY (who, what))",
            (),
        )
        .unwrap();
    connection
}

#[test]
fn the_second_program_works_on_the_firsts_database() {
    let folder = new_folder();
    let database = Database::open(&folder).unwrap();
    let connection = make_table(&database);
    let mut second = Program::start(&folder, Part::Adds);
    assert!(second.child.wait().unwrap().success());
    assert_eq!(count(&connection, "seen"), ROWS_EACH);
}

#[test]
fn when_the_holder_is_killed_the_next_to_connect_has_what_was_committed() {
    let folder = new_folder();
    let mut holder = Program::with_folder_open(&folder, Part::Holds);
    let database = Database::open(&folder).unwrap();
    assert!(!database.is_local());
    let connection = make_table(&database);
    connection
        .execute("INSERT INTO seen VALUES (1, 1)", ())
        .unwrap();
    let other = database.connect_to("shop").unwrap();
    let transaction = other.transaction().unwrap();
    transaction
        .execute("INSERT INTO seen VALUES (2, 2)", ())
        .unwrap();

    holder.kill();
    let died = Instant::now();
    let error = connection
        .execute("INSERT INTO seen VALUES (3, 3)", ())
        .unwrap_err();
    assert_eq!(error.number(), 2013);
    assert_eq!(transaction.commit().unwrap_err().number(), 2013);
    let connection = database.connect_to("shop").unwrap();
    assert!(database.is_local());
    assert_eq!(count(&connection, "seen"), 1);
    assert!(
        died.elapsed() < Duration::from_secs(3),
        "{:?}",
        died.elapsed()
    );

    // And now others come to this one.
    let mut second = Program::start(&folder, Part::Adds);
    assert!(second.child.wait().unwrap().success());
    assert_eq!(count(&connection, "seen"), 1 + ROWS_EACH);
}

#[test]
fn when_the_holder_ends_the_next_to_open_has_the_folder() {
    let folder = new_folder();
    let holder = Program::with_folder_open(&folder, Part::Holds);
    let database = Database::open(&folder).unwrap();
    drop(make_table(&database));
    holder.end();
    let again = Database::open(&folder).unwrap();
    assert!(again.is_local() && !database.is_local());
    assert_eq!(count(&database.connect_to("shop").unwrap(), "seen"), 0);
    assert!(database.is_local());
}

#[test]
fn programs_that_come_and_go_hand_the_folder_on() {
    const PROGRAMS: i64 = 4;
    let folder = new_folder();
    drop(make_table(&Database::open(&folder).unwrap()));
    let programs: Vec<_> = (0..PROGRAMS)
        .map(|_| Program::start(&folder, Part::Adds))
        .collect();
    for mut program in programs {
        assert!(program.child.wait().unwrap().success());
    }
    let database = Database::open(&folder).unwrap();
    assert!(database.is_local());
    let connection = database.connect_to("shop").unwrap();
    assert_eq!(count(&connection, "seen"), PROGRAMS * ROWS_EACH);
}

#[test]
fn a_folder_that_is_not_shared_is_refused_with_a_clear_error() {
    let folder = new_folder();
    let holder = Program::with_folder_open(&folder, Part::HoldsAlone);
    let process = format!("is in use by process {}", holder.child.id());
    // Who doesn't share is told at once; who does waits in case somebody is about to let them in.
    let error = Database::options()
        .share(false)
        .open(&folder)
        .map(drop)
        .unwrap_err();
    assert_eq!(error.number(), 1015);
    assert!(error.message().ends_with(&process), "{error}");
    let error = Database::open(&folder).map(drop).unwrap_err();
    assert_eq!(error.number(), 1015);
    assert!(
        error
            .message()
            .ends_with(&format!("{process}, which lets no other in")),
        "{error}"
    );
    holder.end();

    let holder = Program::with_folder_open(&folder, Part::Holds);
    let error = Database::options()
        .share(false)
        .open(&folder)
        .map(drop)
        .unwrap_err();
    assert_eq!(error.number(), 1015);
    holder.end();
}

#[test]
fn in_one_process_every_open_is_one_more_handle() {
    let folder = new_folder();
    let database = Database::open(&folder).unwrap();
    let connection = make_table(&database);
    let again = Database::open(folder.join("..").join(folder.file_name().unwrap())).unwrap();
    assert!(again.is_local());
    drop(database);
    connection
        .execute("INSERT INTO seen VALUES (1, 1)", ())
        .unwrap();
    assert_eq!(count(&again.connect_to("shop").unwrap(), "seen"), 1);
}

#[test]
fn a_shared_folder_costs_one_thread_that_sleeps() {
    let threads = |part| {
        let holder = Program::with_folder_open(&new_folder(), part);
        let (_, threads) = holder.said.trim_end().rsplit_once(' ').unwrap();
        threads.parse::<i64>().unwrap()
    };
    assert_eq!(threads(Part::Holds), threads(Part::HoldsAlone) + 1);
}

#[test]
fn listeners_for_clients_and_for_programs_work_side_by_side() {
    let folder = new_folder();
    let database = Database::open(&folder).unwrap();
    let connection = make_table(&database);
    let socket = folder.join("clients.sock");
    let listening = database.listen(porpoise::Listen::unix(&socket)).unwrap();
    let url = format!(
        "mysql://root@localhost/shop?transport=unix&socket={}",
        socket.display()
    );
    let mut client = porpoise_client::Connection::open(&url).unwrap();
    let programs = [0; 2].map(|_| Program::start(&folder, Part::Adds));
    for row in 0..ROWS_EACH {
        client
            .run(format!("INSERT INTO seen VALUES (0, {row})"))
            .unwrap();
        connection
            .execute("INSERT INTO seen VALUES (1, ?)", (row,))
            .unwrap();
    }
    for mut program in programs {
        assert!(program.child.wait().unwrap().success());
    }
    assert_eq!(count(&connection, "seen"), 4 * ROWS_EACH);
    drop(listening);
    assert!(client.run("SELECT 1").is_err());
    let mut program = Program::start(&folder, Part::Adds);
    assert!(program.child.wait().unwrap().success());
    assert_eq!(count(&connection, "seen"), 5 * ROWS_EACH);
}
