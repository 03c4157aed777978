//! System variables by SET: what each row of their table promises.

use porpoise_core::variables::{Kind, Scope, Use, VARIABLES, Variable};

use super::database::Db;

/// A value that a variable takes, and that isn't its default.
fn other_value(variable: &Variable) -> String {
    let default = variable.show(&variable.default_value());
    match variable.kind {
        Kind::Bool => if default == "ON" { "OFF" } else { "ON" }.to_string(),
        Kind::Int { min, max } => {
            let other = [u64::try_from(min).unwrap_or(1), max, 1].into_iter();
            let mut other = other.map(|value| value.to_string());
            other.find(|value| *value != default).unwrap()
        }
        Kind::Real { max, .. } => format!("{max:.1}"),
        Kind::Choice(choices) => {
            let mut others = choices.iter().filter(|choice| **choice != default);
            format!("'{}'", others.next().unwrap())
        }
        Kind::SqlMode => "''".to_string(),
        Kind::Flags(flags) => {
            let flag = &flags.0[0];
            format!("'{}={}'", flag.name, if flag.is_on { "off" } else { "on" })
        }
        Kind::Charset => "'latin1'".to_string(),
        Kind::Collation => "'utf8mb4_bin'".to_string(),
        Kind::TimeZone => "'+01:00'".to_string(),
        Kind::Locale => "'de_DE'".to_string(),
        Kind::Text | Kind::LogFile => "'other'".to_string(),
        Kind::Words(words) | Kind::WordSet(words) => format!("'{}'", words[0]),
    }
}

#[test]
fn no_variable_takes_a_value_silently() {
    for variable in VARIABLES {
        let mut db = Db::new();
        // Some variables are its own.
        db.run("INSTALL COMPONENT 'file://component_validate_password'");
        let scope = match (variable.scope, variable.usage) {
            (Scope::Global, _) | (_, Use::SetGlobal) => "GLOBAL",
            (Scope::Session | Scope::Both, _) => "SESSION",
        };
        let (name, value) = (variable.name, other_value(variable));
        let set = format!("SET {scope} {name} = {value}");
        match variable.usage {
            Use::Settable | Use::SetGlobal => {
                let warnings = db.run(&set).warnings;
                assert_eq!(warnings, 0, "{set}: {:?}", db.rows("SHOW WARNINGS"));
            }
            Use::Inert => {
                db.run(&set);
                let warning = db.rows("SHOW WARNINGS").join("");
                assert!(warning.contains("has no effect"), "{set}: {warning}");
            }
            Use::AtStart | Use::ReadOnly | Use::InertAtStart | Use::DefaultAtStart => {
                db.fails(&set, 1238)
            }
            Use::DefaultOnly => {
                db.fails(&set, 1235);
                assert_eq!(db.run(&format!("SET {scope} {name} = DEFAULT")).warnings, 0);
            }
        }
    }
}

#[test]
fn clients_are_told_of_the_changes_that_they_track() {
    let mut db = Db::new();
    db.session.take_tracked_changes();
    db.run("SET time_zone = '+01:00', sql_notes = 0");
    db.run("USE d");
    let changes = db.session.take_tracked_changes();
    assert_eq!(changes.variables, [("time_zone".into(), "+01:00".into())]);
    assert_eq!(changes.schema.as_deref(), Some("d"));
    assert!(!changes.state_changed);

    db.run("SET session_track_schema = OFF, session_track_state_change = ON");
    db.run("SET session_track_system_variables = '*'");
    db.session.take_tracked_changes();
    db.run("SET sql_notes = 1");
    db.run("USE d");
    let changes = db.session.take_tracked_changes();
    assert_eq!(changes.variables, [("sql_notes".into(), "ON".into())]);
    assert_eq!(changes.schema, None);
    assert!(changes.state_changed);
}

#[test]
fn read_only_is_part_of_super_read_only() {
    let mut db = Db::new();
    let both = "SELECT @@read_only, @@super_read_only";
    db.run("SET GLOBAL super_read_only = ON");
    assert_eq!(db.rows(both), ["1|1"]);
    db.fails("CREATE TABLE t (id INT)", 1290);
    db.fails("START TRANSACTION READ WRITE", 1290);
    db.run("SET GLOBAL super_read_only = OFF");
    assert_eq!(db.rows(both), ["1|0"]);
    // A session without an account may do everything.
    db.run("CREATE TABLE t (id INT)");
    db.run("SET GLOBAL super_read_only = ON");
    db.run("SET GLOBAL read_only = OFF");
    assert_eq!(db.rows(both), ["0|0"]);
}

/// Sequences in tables are counted by it: UPDATE … SET id = LAST_INSERT_ID(id + 1).
#[test]
fn an_ok_packet_tells_what_last_insert_id_was_given() {
    let mut db = Db::new();
    db.run("CREATE TABLE sequence (id INT)");
    db.run("INSERT INTO sequence VALUES (5)");
    db.run("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT)");
    for (sql, id) in [
        ("UPDATE sequence SET id = LAST_INSERT_ID(id + 1)", 6),
        ("UPDATE sequence SET id = id + 1", 0),
        ("INSERT INTO t (b) VALUES (LAST_INSERT_ID(77))", 1),
        ("INSERT INTO t VALUES (900, LAST_INSERT_ID(78))", 78),
        ("INSERT INTO sequence VALUES (LAST_INSERT_ID(79))", 79),
        ("INSERT INTO t VALUES (1000, 1)", 1000),
    ] {
        assert_eq!(db.run(sql).last_insert_id, id, "{sql}");
    }
}

/// Only rows that are inserted or changed have a say, and of these first the one whose value was
/// generated first.
#[test]
fn an_ok_packet_tells_of_rows_that_are_there() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9) UNIQUE, c INT)");
    db.run("INSERT INTO t (b, c) VALUES ('x', 0), ('y', 0)");
    let inserted = "INSERT INTO t (b) VALUES";
    for (sql, id) in [
        (
            "INSERT INTO t (a, b) VALUES (1, 'z') ON DUPLICATE KEY UPDATE a = a".to_string(),
            0,
        ),
        (format!("{inserted} ('x') ON DUPLICATE KEY UPDATE b = b"), 0),
        (
            format!("{inserted} ('y') ON DUPLICATE KEY UPDATE c = c + 1"),
            2,
        ),
        (
            format!("{inserted} ('x') ON DUPLICATE KEY UPDATE a = LAST_INSERT_ID(a)"),
            1,
        ),
        ("INSERT INTO t (a, b) VALUES (90, 'z')".to_string(), 90),
        (
            format!("{inserted} ('new'), ('x') ON DUPLICATE KEY UPDATE c = c + 1"),
            91,
        ),
        ("INSERT IGNORE INTO t (b) VALUES ('x')".to_string(), 0),
    ] {
        assert_eq!(db.run(&sql).last_insert_id, id, "{sql}");
    }
    assert_eq!(db.rows("SELECT LAST_INSERT_ID()"), ["91"]);
    let both = format!("{inserted} ('newer'), ('y') ON DUPLICATE KEY UPDATE a = LAST_INSERT_ID(a)");
    let id = db.run(&both).last_insert_id.to_string();
    assert_eq!(db.rows("SELECT a FROM t WHERE b = 'newer'"), [id.as_str()]);
    assert_eq!(db.rows("SELECT LAST_INSERT_ID()"), [id.as_str()]);
}

#[test]
fn a_persisted_variable_that_there_is_not_keeps_no_start_from_happening() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = Db::in_folder(folder.path());
    db.run("SET PERSIST max_connections = 77");
    drop(db);
    let file = folder.path().join("data/mysqld-auto.cnf");
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, text.replace("max_connections", "no_such_one")).expect("written");
    let mut db = Db::in_folder(folder.path());
    assert_eq!(db.rows("SELECT @@max_connections"), ["151"]);
    db.run("SET PERSIST wait_timeout = 60");
    drop(db);
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(text.contains("no_such_one") && text.contains("wait_timeout"));
}
