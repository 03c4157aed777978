//! Statements that write very many rows at once are whole or not there after a kill.
//!
//! One client goes at random along the arrows, again and again:
//!
//! ```text
//!             CREATE … SELECT                      TRUNCATE, DELETE
//!  no table ◄─────────────────► a table, all rows ◄──────────────────────────► a table, no rows
//!                DROP             │           ▲     INSERT … SELECT, LOAD DATA
//!                                 └───────────┘
//!             ADD INDEX, DROP INDEX, another primary key, UPDATE of all rows
//! ```
//!
//! UPDATE and DELETE write more than memory is to hold.
//!
//! The rows come to more than what goes through the log, so that new tables, copies and indexes are
//! filled beside it, with keys that ascend or are sorted first. After the kill the table must be
//! what it was before the statement that had no answer, or after it: rows, indexes and all.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use porpoise_e2e::server::Product;

use crate::report;
use crate::victim::{Client, Trouble, Victim};

/// Of some 270 bytes.
const ROWS: i64 = 30_000;
/// Its multiples are different numbers in another order, modulo [`MODULUS`].
const FACTOR: i64 = 7919;
/// The first prime beyond [`ROWS`].
const MODULUS: i64 = 30_011;
const LOAD_MS: std::ops::Range<u64> = 20..2500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// Ascends in the rows' source.
    Id,
    Number,
}

impl Key {
    fn column(self) -> &'static str {
        match self {
            Key::Id => "id",
            Key::Number => "n",
        }
    }

    fn other(self) -> Key {
        match self {
            Key::Id => Key::Number,
            Key::Number => Key::Id,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    primary: Key,
    is_indexed: bool,
    is_full: bool,
    /// An UPDATE has made capitals of its letters.
    is_upper: bool,
}

/// The table, if there is one.
type State = Option<Shape>;

struct Step {
    name: &'static str,
    sql: String,
    after: State,
}

/// All that can be done to a table.
fn steps(state: State, file: &Path) -> Vec<Step> {
    let step = |name, sql: String, after| Step { name, sql, after };
    let Some(shape) = state else {
        let create = |(primary, is_indexed): (Key, bool)| {
            let key = primary.column();
            let index = if is_indexed {
                ", UNIQUE KEY by_pad (pad, id)"
            } else {
                ""
            };
            let sql = format!(
                "CREATE TABLE bulk.t (PRIMARY KEY ({key}){index}) SELECT * FROM bulk.source"
            );
            let shape = Shape {
                primary,
                is_indexed,
                is_full: true,
                is_upper: false,
            };
            step("CREATE … SELECT", sql, Some(shape))
        };
        let shapes = [Key::Id, Key::Number].map(|key| [(key, false), (key, true)]);
        return shapes.into_iter().flatten().map(create).collect();
    };
    let filled = |is_full| {
        Some(Shape {
            is_full,
            is_upper: false,
            ..shape
        })
    };
    if !shape.is_full {
        let load = format!("LOAD DATA INFILE '{}' INTO TABLE bulk.t", file.display());
        let insert = "INSERT INTO bulk.t SELECT * FROM bulk.source".to_owned();
        return vec![
            step("LOAD DATA", load, filled(true)),
            step("INSERT … SELECT", insert, filled(true)),
        ];
    }
    let (name, change) = match shape.is_indexed {
        true => ("DROP INDEX", "DROP INDEX by_pad"),
        false => ("ADD INDEX", "ADD UNIQUE INDEX by_pad (pad, id)"),
    };
    let indexed = Shape {
        is_indexed: !shape.is_indexed,
        ..shape
    };
    let case = if shape.is_upper { "LOWER" } else { "UPPER" };
    let update = format!("UPDATE bulk.t SET pad = {case}(pad)");
    let updated = Shape {
        is_upper: !shape.is_upper,
        ..shape
    };
    let primary = shape.primary.other();
    let copy = format!(
        "ALTER TABLE bulk.t DROP PRIMARY KEY, ADD PRIMARY KEY ({})",
        primary.column()
    );
    vec![
        step(name, format!("ALTER TABLE bulk.t {change}"), Some(indexed)),
        step("ALTER", copy, Some(Shape { primary, ..shape })),
        step("UPDATE", update, Some(updated)),
        step("DELETE", "DELETE FROM bulk.t".to_owned(), filled(false)),
        step("TRUNCATE", "TRUNCATE bulk.t".to_owned(), filled(false)),
        step("DROP", "DROP TABLE bulk.t".to_owned(), None),
    ]
}

/// What the table is, if it is whole.
fn state_of(client: &mut Client) -> Result<State, String> {
    if client
        .must_rows("SHOW TABLES FROM bulk LIKE 't'")?
        .is_empty()
    {
        return Ok(None);
    }
    let checked = client.must_rows("CHECK TABLE bulk.t")?;
    if checked
        .iter()
        .any(|row| row.last().is_none_or(|text| text != "OK"))
    {
        return Err(format!("CHECK TABLE: {checked:?}"));
    }
    let indexes = client.must_rows("SHOW INDEX FROM bulk.t WHERE seq_in_index = 1")?;
    let column_of = |name: &str| {
        let index = indexes.iter().find(|row| row[2] == name)?;
        Some(index[4].as_str())
    };
    let primary = match column_of("PRIMARY") {
        Some("id") => Key::Id,
        Some("n") => Key::Number,
        other => return Err(format!("the primary key is {other:?}")),
    };
    let is_indexed = column_of("by_pad").is_some();
    let sums = |pad: &str, table: &str| {
        let crc = format!("SUM(CRC32(CONCAT_WS(',', id, n, {pad})))");
        format!("SELECT COUNT(*), SUM(id), SUM(n), {crc} FROM bulk.{table}")
    };
    let mut read = vec![client.must_rows(&sums("pad", "t FORCE INDEX (PRIMARY)"))?];
    if is_indexed {
        let by_index = sums("pad", "t FORCE INDEX (by_pad) WHERE pad >= ''");
        read.push(client.must_rows(&by_index)?);
    }
    let all = client.must_rows(&sums("pad", "source"))?;
    let upper = client.must_rows(&sums("UPPER(pad)", "source"))?;
    let is_upper = read[0] == upper;
    let is_full = is_upper || read[0] == all;
    let is_empty = read[0][0][0] == "0";
    if read.iter().any(|one| *one != read[0]) || !(is_full || is_empty) {
        return Err(format!("there are {read:?} of {all:?}"));
    }
    Ok(Some(Shape {
        primary,
        is_indexed,
        is_full,
        is_upper,
    }))
}

/// Does step after step until the server dies. Gives the one that had no answer.
fn work(client: &mut Client, state: &mut State, file: &Path) -> Result<Step, String> {
    loop {
        let mut steps = steps(*state, file);
        let step = steps.swap_remove(fastrand::usize(..steps.len()));
        match client.run(&step.sql) {
            Ok(()) => *state = step.after,
            Err(Trouble::Lost) => return Ok(step),
            Err(other) => return Err(format!("{other:?}")),
        }
    }
}

fn make_source(client: &mut Client, file: &Path) -> Result<(), String> {
    client.must("CREATE DATABASE bulk")?;
    client.must(
        "CREATE TABLE bulk.source (
            id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL, pad VARCHAR(250) NOT NULL)",
    )?;
    let mut lines = String::new();
    for id in 1..=ROWS {
        let pad = char::from(b'a' + (id % 26) as u8).to_string().repeat(250);
        writeln!(lines, "{id}\t{}\t{pad}", id * FACTOR % MODULUS).expect("a text grows");
    }
    std::fs::write(file, lines).map_err(|error| error.to_string())?;
    let load = format!(
        "LOAD DATA INFILE '{}' INTO TABLE bulk.source",
        file.display()
    );
    client.must(&load)
}

fn run_rounds(victim: &mut Victim, folder: &Path, rounds: u32) -> Result<(), String> {
    let file = folder.join("rows.txt");
    let options = [format!("--secure-file-priv={}", folder.display())];
    let mut state = None;
    let mut cut: Option<Step> = None;
    let mut cuts = Vec::new();
    for round in 0..=rounds {
        victim.start(&options)?;
        let mut client = victim
            .connect()
            .map_err(|trouble| format!("no connection: {trouble:?}"))?;
        if round == 0 {
            make_source(&mut client, &file)?;
        }
        let is = state_of(&mut client).map_err(|what| match &cut {
            Some(step) => format!("{what}\n  killed in: {}", step.sql),
            None => what,
        })?;
        let may_be = cut.as_ref().map_or(state, |step| step.after);
        if is != state && is != may_be {
            return Err(format!(
                "the table was {state:?}, or {may_be:?} after the last statement; it is {is:?}"
            ));
        }
        if round == rounds {
            break;
        }
        state = is;
        let time = Duration::from_millis(fastrand::u64(LOAD_MS));
        let step = std::thread::scope(|scope| {
            let worker = scope.spawn(|| work(&mut client, &mut state, &file));
            std::thread::sleep(time);
            victim.kill();
            worker.join().expect("the worker doesn't panic")
        })?;
        cuts.push(step.name);
        cut = Some(step);
    }
    report(&format!("{rounds} kills, in {}", cuts.join(", ")));
    Ok(())
}

pub fn survive(rounds: u32) {
    let folder = tempfile::TempDir::with_prefix("porpoise-bulk-").expect("a folder can be made");
    let mut victim = Victim::new(Product::Porpoise, folder.path());
    if let Err(what) = run_rounds(&mut victim, folder.path(), rounds) {
        victim.kill();
        let log = victim.log();
        panic!(
            "{what}\nthe folder is kept: {}\nthe server's log:\n{log}",
            folder.keep().display()
        );
    }
}
