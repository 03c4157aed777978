//! A row lock is given back before the disk has the commit: statements that meet such a row go on,
//! and what clients are told waits for the disk.

use porpoise_core::error::{ErrorKind, Result};
use porpoise_storage::{Commit, Location};

use super::database::Answers;
use crate::engine::{Engine, EngineOptions};
use crate::session::{Login, Session};

struct Database {
    engine: Engine,
    _folder: tempfile::TempDir,
}

impl Database {
    /// With accounts 1 and 2, of 10 each.
    fn open() -> Database {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(EngineOptions {
            location: Location::Path(folder.path().join("d")),
            variables: Vec::new(),
        });
        let database = Database {
            engine: engine.unwrap(),
            _folder: folder,
        };
        let mut session = database.session();
        for sql in [
            "CREATE DATABASE IF NOT EXISTS test",
            "USE test",
            "CREATE TABLE acct (id INT PRIMARY KEY AUTO_INCREMENT, bal INT, mail INT, UNIQUE (mail))",
            "CREATE TABLE item (id INT PRIMARY KEY, acct INT, FOREIGN KEY (acct) REFERENCES acct (id))",
            "INSERT INTO acct VALUES (1, 10, 100), (2, 10, 200)",
        ] {
            if let Some(commit) = session
                .query(sql.as_bytes(), &mut Answers::default())
                .unwrap()
                .commit
            {
                commit.wait().unwrap();
            }
        }
        database
    }

    fn session(&self) -> Session {
        self.engine.connect(Login::default()).unwrap()
    }

    fn client(&self) -> Client {
        let mut client = Client(self.session());
        client.told("USE test");
        client
    }
}

struct Client(Session);

impl Client {
    fn run(&mut self, sql: &str) -> Result<(Answers, Option<Commit>)> {
        let mut told = Answers::default();
        let outcome = self.0.query(sql.as_bytes(), &mut told)?;
        Ok((told, outcome.commit))
    }

    /// What is told at once.
    #[track_caller]
    fn told(&mut self, sql: &str) -> Answers {
        let (told, commit) = self.run(sql).unwrap();
        assert!(commit.is_none(), "{sql} is told later");
        told
    }

    /// What the client is told when the disk has a commit, which isn't waited for here.
    #[track_caller]
    fn later(&mut self, sql: &str) -> (u64, Commit) {
        let (told, commit) = self.run(sql).unwrap();
        (
            told.ok.affected_rows,
            commit.expect("something to wait for"),
        )
    }
}

#[test]
fn a_change_goes_on_with_a_row_that_the_disk_does_not_have_yet() {
    let database = Database::open();
    let (mut one, mut other, mut reader) =
        (database.client(), database.client(), database.client());
    let (_, first) = one.later("UPDATE acct SET bal = bal + 1 WHERE id = 1");
    other.told("BEGIN");
    let changed = other.told("UPDATE acct SET bal = bal * 2 WHERE id = 1");
    assert_eq!(changed.ok.affected_rows, 1);
    assert_eq!(
        reader.told("SELECT bal FROM acct WHERE id = 1").integers(),
        [10]
    );
    assert!(!first.is_done());
    let (_, second) = other.later("COMMIT");
    assert!(!first.is_done() && !second.is_done());
    second.wait().unwrap();
    assert!(first.is_durable());
    assert_eq!(
        reader.told("SELECT bal FROM acct WHERE id = 1").integers(),
        [22]
    );
}

#[test]
fn rows_are_told_when_the_disk_has_what_they_rest_on() {
    let database = Database::open();
    let (mut one, mut other) = (database.client(), database.client());
    for (sql, expected) in [
        ("SELECT bal FROM acct WHERE id = 1 FOR UPDATE", 11),
        (
            "SELECT bal FROM acct WHERE id BETWEEN 1 AND 1 FOR SHARE",
            12,
        ),
        ("SELECT SUM(bal) FROM acct WHERE id = 1 FOR UPDATE", 0),
    ] {
        let (_, first) = one.later("UPDATE acct SET bal = bal + 1 WHERE id = 1");
        let (told, _) = other.run(sql).unwrap();
        assert!(first.is_durable(), "{sql}");
        if expected > 0 {
            assert_eq!(told.integers(), [expected], "{sql}");
        }
    }
    // What a transaction has made of it counts, too.
    let (_, first) = one.later("UPDATE acct SET bal = 5 WHERE id = 1");
    other.told("BEGIN");
    other.told("UPDATE acct SET bal = bal + 1 WHERE id = 1");
    assert!(!first.is_done());
    assert_eq!(
        other.told("SELECT bal FROM acct WHERE id = 1").integers(),
        [6]
    );
    assert!(first.is_durable());
}

#[test]
fn errors_are_told_when_the_disk_has_what_they_rest_on() {
    let database = Database::open();
    let (mut one, mut other) = (database.client(), database.client());
    for (before, refused, kind) in [
        (
            "INSERT INTO acct VALUES (3, 0, 300)",
            "INSERT INTO acct VALUES (3, 1, 1)",
            ErrorKind::DuplicateEntry,
        ),
        (
            "INSERT INTO acct VALUES (4, 0, 400)",
            "UPDATE acct SET mail = 400 WHERE id = 1",
            ErrorKind::DuplicateEntry,
        ),
        (
            "DELETE FROM acct WHERE id = 4",
            "INSERT INTO item VALUES (1, 4)",
            ErrorKind::NoReferencedRow,
        ),
    ] {
        for within in [false, true] {
            if within {
                other.told("BEGIN");
            }
            let (_, first) = one.later(before);
            let error = other.run(refused).map(drop).unwrap_err();
            assert!(error.is(kind), "{error}");
            assert!(first.is_durable(), "{refused}");
            if within {
                other.told("ROLLBACK");
                break;
            }
            let undo = match before.starts_with("DELETE") {
                true => "INSERT INTO acct VALUES (4, 0, 400)",
                false => "DELETE FROM acct WHERE id > 2",
            };
            one.later(undo).1.wait().unwrap();
        }
    }
}

#[test]
fn what_was_not_found_is_told_when_the_disk_has_its_end() {
    let database = Database::open();
    let (mut one, mut other) = (database.client(), database.client());
    let (_, gone) = one.later("DELETE FROM acct WHERE id = 1");
    let (changed, told) = other.later("UPDATE acct SET bal = 0 WHERE id = 1");
    assert_eq!(changed, 0);
    assert!(!gone.is_done() && !told.is_done());
    told.wait().unwrap();
    assert!(gone.is_durable());

    let (_, gone) = one.later("DELETE FROM acct WHERE id = 2");
    for end in ["ROLLBACK", "COMMIT"] {
        other.told("BEGIN");
        assert_eq!(
            other
                .told("DELETE FROM acct WHERE bal > 5")
                .ok
                .affected_rows,
            0,
            "{end}"
        );
        let (_, told) = other.later(end);
        assert!(!gone.is_done() && !told.is_done());
        if end == "COMMIT" {
            told.wait().unwrap();
            assert!(gone.is_durable());
        }
    }
    // Nothing is waited for where nothing is on its way.
    assert_eq!(
        other.told("DELETE FROM acct WHERE id = 2").ok.affected_rows,
        0
    );
}

#[test]
fn a_key_that_was_just_deleted_is_inserted_again() {
    let database = Database::open();
    let (mut one, mut other) = (database.client(), database.client());
    let (_, gone) = one.later("DELETE FROM acct WHERE id = 1");
    let (added, again) = other.later("INSERT INTO acct VALUES (1, 7, 100)");
    assert_eq!(added, 1);
    let (_, next) = one.later("INSERT INTO acct (bal) VALUES (8)");
    assert!(!gone.is_done() && !again.is_done());
    next.wait().unwrap();
    assert!(gone.is_durable() && again.is_durable());
    let rows = other
        .told("SELECT id, bal FROM acct ORDER BY id")
        .integers();
    assert_eq!(rows, [1, 7, 2, 10, 3, 8]);
    let mail = other
        .told("SELECT bal FROM acct WHERE mail = 100")
        .integers();
    assert_eq!(mail, [7]);
}

#[test]
fn an_alter_copies_rows_that_the_disk_does_not_have_yet() {
    let database = Database::open();
    let (mut one, mut other) = (database.client(), database.client());
    for sql in [
        "ALTER TABLE acct ADD CONSTRAINT c CHECK (bal < 100)",
        "ALTER TABLE acct ADD INDEX (bal), ALGORITHM = COPY",
    ] {
        let (_, added) = one.later("INSERT INTO acct (bal) VALUES (99)");
        let _ = other.run(sql).unwrap();
        assert!(added.is_durable());
    }
    assert_eq!(
        other
            .told("SELECT COUNT(*) FROM acct WHERE bal = 99")
            .integers(),
        [2]
    );
    let (_, added) = one.later("INSERT INTO acct (bal) VALUES (98)");
    let refused = other.run("ALTER TABLE acct ADD CONSTRAINT d CHECK (bal <> 98)");
    assert!(refused.is_err() && added.is_durable());
}
