//! XA branches: what was prepared survives a kill, with its locks, until it is told what to do.
//!
//! Each coordinator has rows of its own, and runs one branch after the other. What it knows when
//! the server dies says what the next server may have:
//!
//! | last answer | XA RECOVER lists the branch | the rows are |
//! | --- | --- | --- |
//! | to XA START or a change | no | as before |
//! | none to XA PREPARE | maybe | as before |
//! | to XA PREPARE | yes | as before |
//! | none to XA COMMIT or XA ROLLBACK | maybe | as before if it does, as told if it doesn't |

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use porpoise_e2e::server::Product;

use crate::report;
use crate::victim::{Attempt, Client, Trouble, Victim};

const COORDINATORS: i64 = 3;
const ROWS: i64 = 8;
const LOCK_NOT_AVAILABLE: u16 = 3572;

type Rows = BTreeMap<i64, i64>;

/// What is known of the branch that the server died on.
#[derive(Clone, Debug)]
enum Doubt {
    /// Nothing was to be prepared yet.
    None,
    /// XA PREPARE has no answer.
    Prepare(Rows),
    /// XA PREPARE was answered.
    Prepared(Rows),
    /// XA COMMIT or XA ROLLBACK has no answer; the rows if it was done, and those after a commit.
    End { told: Rows, changed: Rows },
}

struct Coordinator {
    number: i64,
    next_branch: u64,
    rows: Rows,
    doubt: Doubt,
    ended: u64,
}

impl Coordinator {
    fn new(number: i64) -> Coordinator {
        let ids = number * 100..number * 100 + ROWS;
        Coordinator {
            number,
            next_branch: 0,
            rows: ids.map(|id| (id, 0)).collect(),
            doubt: Doubt::None,
            ended: 0,
        }
    }

    fn xid(&self) -> String {
        format!("'c{}', 'b{}'", self.number, self.next_branch)
    }

    /// Runs branches until the server dies.
    fn work(&mut self, client: &mut Client) -> Result<(), String> {
        loop {
            match self.branch(client) {
                Ok(()) => self.ended += 1,
                Err(Trouble::Lost) => return Ok(()),
                Err(trouble) => return Err(format!("coordinator {}: {trouble:?}", self.number)),
            }
        }
    }

    fn branch(&mut self, client: &mut Client) -> Attempt {
        self.doubt = Doubt::None;
        self.next_branch += 1;
        let xid = self.xid();
        client.run(&format!("XA START {xid}"))?;
        let mut changed = self.rows.clone();
        for _ in 0..fastrand::u8(1..5) {
            let id = self.number * 100 + fastrand::i64(0..ROWS);
            let value = fastrand::i64(0..1_000_000);
            client.run(&format!(
                "UPDATE branches.t SET v = {value} WHERE id = {id}"
            ))?;
            changed.insert(id, value);
        }
        client.run(&format!("XA END {xid}"))?;
        self.doubt = Doubt::Prepare(changed.clone());
        client.run(&format!("XA PREPARE {xid}"))?;
        self.doubt = Doubt::Prepared(changed.clone());
        if fastrand::bool() {
            std::thread::sleep(Duration::from_millis(fastrand::u64(..4)));
        }
        let (verb, told) = match fastrand::bool() {
            true => ("COMMIT", changed.clone()),
            false => ("ROLLBACK", self.rows.clone()),
        };
        self.doubt = Doubt::End {
            told: told.clone(),
            changed,
        };
        client.run(&format!("XA {verb} {xid}"))?;
        self.rows = told;
        self.doubt = Doubt::None;
        Ok(())
    }

    /// Asks the next server what became of the branch, and ends it if it is prepared.
    fn settle(&mut self, client: &mut Client) -> Result<(), String> {
        let own = format!("c{}b", self.number);
        let listed = client.must_rows("XA RECOVER")?;
        let listed: Vec<&str> = listed
            .iter()
            .filter_map(|row| row.last())
            .filter(|data| data.starts_with(&own))
            .map(String::as_str)
            .collect();
        let doubt = std::mem::replace(&mut self.doubt, Doubt::None);
        let is_listed = match listed.as_slice() {
            [] => false,
            [data] if **data == format!("{own}{}", self.next_branch) => true,
            other => return Err(format!("{other:?} is prepared, which was ended")),
        };
        match (doubt, is_listed) {
            (Doubt::None | Doubt::Prepare(_), false) => {}
            (Doubt::End { told, .. }, false) => self.rows = told,
            (Doubt::Prepare(changed) | Doubt::Prepared(changed), true)
            | (Doubt::End { changed, .. }, true) => self.end(client, changed)?,
            (doubt, _) => return Err(format!("listed: {is_listed}, after {doubt:?}")),
        }
        let sql = format!(
            "SELECT id, v FROM branches.t WHERE id DIV 100 = {}",
            self.number
        );
        let number = |text: &String| text.parse::<i64>().map_err(|e| format!("{text}: {e}"));
        let rows = client.must_rows(&sql)?;
        let rows = rows
            .iter()
            .map(|row| Ok((number(&row[0])?, number(&row[1])?)));
        let rows: Rows = rows.collect::<Result<_, String>>()?;
        match rows == self.rows {
            true => Ok(()),
            false => Err(format!("{rows:?} are there, not {:?}", self.rows)),
        }
    }

    /// Ends a branch that has survived: its rows are locked until then.
    fn end(&mut self, client: &mut Client, changed: Rows) -> Result<(), String> {
        let refused = |trouble| format!("{trouble:?}");
        for (id, _) in changed
            .iter()
            .filter(|(id, value)| self.rows[*id] != **value)
        {
            let sql = format!("SELECT v FROM branches.t WHERE id = {id} FOR UPDATE NOWAIT");
            client.refused(&sql, LOCK_NOT_AVAILABLE).map_err(refused)?;
        }
        if changed != self.rows {
            client.run("SET lock_wait_timeout = 1").map_err(refused)?;
            match client.run("ALTER TABLE branches.t ADD COLUMN w INT") {
                Err(Trouble::Refused) => {}
                other => return Err(format!("ALTER TABLE under a prepared branch: {other:?}")),
            }
        }
        let (verb, told) = match fastrand::bool() {
            true => ("COMMIT", changed),
            false => ("ROLLBACK", self.rows.clone()),
        };
        client.must(&format!("XA {verb} {}", self.xid()))?;
        self.rows = told;
        self.ended += 1;
        Ok(())
    }
}

/// Kills a server under branches so many times.
pub fn survive(rounds: u32) {
    let folder = tempfile::TempDir::with_prefix("porpoise-branches-").expect("a folder");
    let mut victim = Victim::new(Product::Porpoise, folder.path());
    if let Err(what) = run_rounds(&mut victim, rounds) {
        victim.kill();
        let log = victim.log();
        let folder = folder.keep();
        panic!(
            "{what}\nthe folder is kept: {}\nthe server's log:\n{log}",
            folder.display()
        );
    }
}

fn run_rounds(victim: &mut Victim, rounds: u32) -> Result<(), String> {
    let mut coordinators: Vec<Coordinator> = (1..=COORDINATORS).map(Coordinator::new).collect();
    let mut survivors = 0;
    for round in 0..=rounds {
        victim.start(&[])?;
        let mut client = victim.connect().map_err(|trouble| format!("{trouble:?}"))?;
        if round == 0 {
            client.must("CREATE DATABASE branches")?;
            client.must("CREATE TABLE branches.t (id INT PRIMARY KEY, v INT NOT NULL, KEY (v))")?;
            for id in coordinators.iter().flat_map(|c| c.rows.keys()) {
                client.must(&format!("INSERT INTO branches.t VALUES ({id}, 0)"))?;
            }
        }
        survivors += client.must_rows("XA RECOVER")?.len();
        if round % 3 == 2 {
            // What was recovered once is recovered again.
            victim.kill();
            victim.start(&[])?;
            client = victim.connect().map_err(|trouble| format!("{trouble:?}"))?;
        }
        for coordinator in &mut coordinators {
            coordinator
                .settle(&mut client)
                .map_err(|what| format!("round {round}: {what}"))?;
        }
        crate::index::agree_with(&mut client, "branches.t")?;
        if round < rounds {
            load_and_kill(victim, &mut coordinators)?;
        }
    }
    let ended: u64 = coordinators
        .iter()
        .map(|coordinator| coordinator.ended)
        .sum();
    report(&format!(
        "{rounds} kills, {survivors} branches prepared then, {ended} ended"
    ));
    match ended > 0 {
        true => Ok(()),
        false => Err("nothing was done".to_owned()),
    }
}

fn load_and_kill(victim: &mut Victim, coordinators: &mut [Coordinator]) -> Result<(), String> {
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for coordinator in coordinators {
            let mut client = victim.connect().expect("a fresh server lets root in");
            let wrong = &wrong;
            scope.spawn(move || {
                if let Err(what) = coordinator.work(&mut client) {
                    wrong.lock().expect("no thread panicked").push(what);
                }
            });
        }
        std::thread::sleep(Duration::from_millis(fastrand::u64(20..600)));
        victim.kill();
    });
    let wrong = wrong.into_inner().expect("no thread panicked");
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}
