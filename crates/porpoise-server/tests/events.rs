//! Events that run: the scheduler on and off, whose rights they have, what is left of them (MySQL
//! 8.4 manual, 27.5).

pub mod common;

use common::test_server::{TestServer, in_memory};
use common::{RawClient, eventually};
use porpoise_server::ServerOptions;

fn start(variables: &[(&str, &str)]) -> TestServer {
    let setup = [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.done (what VARCHAR(20), who VARCHAR(80), place VARCHAR(20))",
    ];
    TestServer::start(in_memory(variables), ServerOptions::default(), &setup)
}

const NOTE: &str = "INSERT INTO shop.done VALUES ('ran', CURRENT_USER(), DATABASE())";

fn count(client: &mut RawClient, table: &str) -> u64 {
    let reply = client.query(&format!("SELECT COUNT(*) FROM {table}"));
    reply.value().parse().unwrap()
}

fn all_ok(client: &mut RawClient, statements: &[&str]) {
    for sql in statements {
        let reply = client.query(sql);
        assert!(reply.is_ok(), "{sql}: {reply:?}");
    }
}

#[test]
fn an_event_runs_again_and_again_in_its_schema_as_its_definer() {
    let server = start(&[]);
    let mut root = server.root();
    let create = format!("CREATE EVENT shop.often ON SCHEDULE EVERY 1 SECOND DO {NOTE}");
    all_ok(&mut root, &[&create]);
    await_more(&mut root, "shop.done", 1);
    let row = root.query("SELECT what, who, place FROM shop.done LIMIT 1");
    let row: Vec<Option<&str>> = row.rows()[0].iter().map(Option::as_deref).collect();
    assert_eq!(row, [Some("ran"), Some("root@localhost"), Some("shop")]);
    let last = "SELECT LAST_EXECUTED IS NOT NULL FROM information_schema.EVENTS";
    assert_eq!(root.query(last).value(), "1");

    // Altered while it waits: the scheduler takes notice.
    all_ok(
        &mut root,
        &["ALTER EVENT shop.often DISABLE", "DELETE FROM shop.done"],
    );
    all_ok(&mut root, &["CREATE TABLE shop.other (a INT)"]);
    let other =
        "CREATE EVENT shop.other ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.other VALUES (1)";
    all_ok(&mut root, &[other]);
    await_more(&mut root, "shop.other", 1);
    assert_eq!(count(&mut root, "shop.done"), 0);
}

/// Waits until the table has more rows than that.
#[track_caller]
fn await_more(client: &mut RawClient, table: &str, than: u64) {
    eventually(|| count(client, table) > than);
}

#[test]
fn an_event_of_one_moment_is_dropped_or_kept_disabled() {
    let server = start(&[]);
    let mut root = server.root();
    let at = "ON SCHEDULE AT NOW() + INTERVAL 1 SECOND";
    let gone = format!("CREATE EVENT shop.gone {at} DO {NOTE}");
    let kept = format!("CREATE EVENT shop.kept {at} ON COMPLETION PRESERVE DO {NOTE}");
    all_ok(&mut root, &[&gone, &kept]);
    eventually(|| count(&mut root, "shop.done") == 2);
    let left = "SELECT GROUP_CONCAT(EVENT_NAME, ' ', STATUS) FROM information_schema.EVENTS";
    eventually(|| root.query(left).value() == "kept DISABLED");
}

#[test]
fn the_scheduler_is_switched_off_and_on() {
    let server = start(&[]);
    let mut root = server.root();
    let daemons = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                   WHERE USER = 'event_scheduler' AND COMMAND = 'Daemon' AND INFO IS NULL";
    eventually(|| root.query(daemons).value() == "1");
    all_ok(&mut root, &["SET GLOBAL event_scheduler = OFF"]);
    eventually(|| root.query(daemons).value() == "0");
    let create = format!("CREATE EVENT shop.often ON SCHEDULE EVERY 1 SECOND DO {NOTE}");
    all_ok(&mut root, &[&create, "DO SLEEP(1.5)"]);
    assert_eq!(count(&mut root, "shop.done"), 0);
    all_ok(&mut root, &["SET GLOBAL event_scheduler = 1"]);
    eventually(|| root.query(daemons).value() == "1");
    await_more(&mut root, "shop.done", 0);
    assert_eq!(
        root.query("SET GLOBAL event_scheduler = DISABLED")
            .error_number(),
        1231
    );
    assert_eq!(root.query("SET event_scheduler = 1").error_number(), 1229);
}

#[test]
fn an_event_may_do_what_its_definer_may_and_can_be_killed() {
    let server = start(&[]);
    let mut root = server.root();
    all_ok(
        &mut root,
        &[
            "CREATE USER ann",
            "GRANT EVENT ON shop.* TO ann",
            "CREATE TABLE shop.seen (number INT)",
            // It has no privilege on shop.done, and a handler tells.
            "CREATE DEFINER = ann EVENT shop.tries ON SCHEDULE EVERY 1 HOUR DO \
             INSERT INTO shop.done SELECT 'no', '', ''",
            "CREATE EVENT shop.sleeps ON SCHEDULE EVERY 1 HOUR DO BEGIN DO SLEEP(100); \
             INSERT INTO shop.seen VALUES (1); END",
        ],
    );
    let sleeping = "SELECT ID FROM information_schema.PROCESSLIST \
                    WHERE COMMAND = 'Connect' AND STATE = 'User sleep'";
    eventually(|| !root.query(sleeping).rows().is_empty());
    let id = root.query(sleeping).value().to_owned();
    all_ok(&mut root, &[&format!("KILL {id}")]);
    eventually(|| root.query(sleeping).rows().is_empty());
    assert_eq!(count(&mut root, "shop.seen"), 0);
    let ran = "SELECT COUNT(*) FROM information_schema.EVENTS WHERE LAST_EXECUTED IS NOT NULL";
    eventually(|| root.query(ran).value() == "2");
    assert_eq!(count(&mut root, "shop.done"), 0);
}

#[test]
fn what_an_event_selects_goes_nowhere() {
    let server = start(&[]);
    let mut root = server.root();
    let create = format!(
        "CREATE EVENT shop.selects ON SCHEDULE EVERY 1 HOUR DO BEGIN SELECT 1; SHOW TABLES; {NOTE}; END"
    );
    all_ok(&mut root, &[&create]);
    eventually(|| count(&mut root, "shop.done") == 1);
}
