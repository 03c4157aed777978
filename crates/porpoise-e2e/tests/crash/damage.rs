//! A damaged log.
//!
//! One connection commits rows 1, 2, 3 … and the server is killed. The end of a log may hold
//! anything, as a machine that lost its power while it wrote leaves it; the server then starts with
//! a prefix of the commits, unless a mark names_the_damage that more was on disk. But no power cut
//! makes the file shorter than it was made. And damage in the log's middle, behind which more was
//! written and synced, means that acknowledged commits are lost. In both cases the server must
//! refuse to start, and name the file.

use std::fs;
use std::path::{Path, PathBuf};

use porpoise_e2e::server::Product;

use crate::victim::Victim;

/// The longest text of a row: about the bytes that its commit takes in the log.
const PAD_LEN_MAX: usize = 300;

/// The folder of a killed server that had acknowledged the rows 1 to `rows`.
struct KilledServer {
    folder: tempfile::TempDir,
    victim: Victim,
    rows: i64,
}

impl KilledServer {
    fn new() -> KilledServer {
        let folder =
            tempfile::TempDir::with_prefix("porpoise-crash-").expect("a folder can be made");
        let mut victim = Victim::new(Product::Porpoise, folder.path());
        victim.start(&[]).unwrap_or_else(|what| panic!("{what}"));
        let mut client = victim.connect().expect("a fresh server lets root in");
        for sql in [
            "CREATE DATABASE history",
            "CREATE TABLE history.line (id INT NOT NULL PRIMARY KEY, pad VARCHAR(1000) NOT NULL, KEY by_pad (pad(5), id))",
        ] {
            client.must(sql).unwrap_or_else(|what| panic!("{what}"));
        }
        let rows = fastrand::i64(40..120);
        for id in 1..=rows {
            let pad = "p".repeat(fastrand::usize(..PAD_LEN_MAX));
            client
                .must(&format!("INSERT INTO history.line VALUES ({id}, '{pad}')"))
                .unwrap_or_else(|what| panic!("{what}"));
        }
        victim.kill();
        KilledServer {
            folder,
            victim,
            rows,
        }
    }

    /// The newest segment of the log.
    fn log(&self) -> PathBuf {
        let files = fs::read_dir(&self.victim.data).expect("the folder can be read");
        let paths = files.map(|file| file.expect("a folder's entry is readable").path());
        let named = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("log-"))
        };
        paths.filter(named).max().expect("a server has a log")
    }

    /// Changes the log's bytes; the first argument is what was written, without the zeros after it.
    fn edit(&self, change: impl FnOnce(usize, &mut Vec<u8>)) -> PathBuf {
        let log = self.log();
        let mut bytes = fs::read(&log).expect("the log can be read");
        let written = bytes
            .iter()
            .rposition(|b| *b != 0)
            .map_or(0, |last| last + 1);
        change(written, &mut bytes);
        fs::write(&log, bytes).expect("the log can be written");
        log
    }

    /// Starts the server and returns how many rows it has; they must be the first ones, in every
    /// index.
    fn rows_after_start(&mut self) -> Result<i64, String> {
        self.victim.start(&[])?;
        let mut client = self.victim.connect().map_err(|t| format!("{t:?}"))?;
        let count = client.number("SELECT COUNT(*) FROM history.line")?;
        let last = client.number("SELECT COALESCE(MAX(id), 0) FROM history.line")?;
        if count != last {
            return Err(format!(
                "{count} rows are there, the last is {last}: not a prefix"
            ));
        }
        crate::index::agree_with(&mut client, "history.line")?;
        // It goes on from there.
        client.must(&format!(
            "INSERT INTO history.line VALUES ({}, 'new')",
            last + 1
        ))?;
        self.victim.kill();
        self.victim.start(&[])?;
        let mut client = self.victim.connect().map_err(|t| format!("{t:?}"))?;
        let after = client.number("SELECT COUNT(*) FROM history.line")?;
        if after != count + 1 {
            return Err(format!(
                "{count} rows, and one committed since, are {after}"
            ));
        }
        Ok(count)
    }

    fn fail(self, what: &str) -> ! {
        panic!(
            "{what}\nthe folder is kept: {}",
            self.folder.keep().display()
        );
    }
}

/// Changes a log's bytes, of which the first argument names_the_damage how many were written.
type Damage = fn(usize, &mut Vec<u8>);

/// What a start may do with a damaged log.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// Refuse, by the file's name.
    Refusal,
    /// The same, or find a prefix of the commits.
    Prefix,
    /// Find every commit.
    All,
}

pub fn at_the_end(rounds: u32) {
    use Outcome::{All, Prefix, Refusal};
    let damages: &[(&str, Outcome, Damage)] = &[
        (
            "the file ends in the last commit",
            Refusal,
            |written, bytes| {
                bytes.truncate(written - fastrand::usize(1..40));
            },
        ),
        ("the file ends somewhere", Refusal, |written, bytes| {
            bytes.truncate(fastrand::usize(written / 2..written));
        }),
        ("zeros from somewhere on", Prefix, |written, bytes| {
            let from = fastrand::usize(written / 2..written);
            bytes[from..].fill(0);
        }),
        (
            "a byte of the last commit is another",
            Prefix,
            |written, bytes| {
                bytes[written - fastrand::usize(1..24)] ^= 1 << fastrand::u8(..8);
            },
        ),
        ("rubbish behind the last commit", All, |written, bytes| {
            let end = (written + 4096).min(bytes.len());
            bytes[written.next_multiple_of(8)..end].fill_with(|| fastrand::u8(..));
        }),
        (
            "half a record behind the last commit",
            All,
            |written, bytes| {
                let end = written.next_multiple_of(8);
                let copy = bytes[end - 100..end - 30].to_vec();
                bytes[end..end + copy.len()].copy_from_slice(&copy);
            },
        ),
    ];
    for round in 0..rounds as usize {
        let (name, expected, damage) = damages[round % damages.len()];
        let mut killed = KilledServer::new();
        let log = killed.edit(damage);
        match killed.rows_after_start() {
            Ok(_) if expected == Refusal => killed.fail(&format!("{name}: it was not noticed")),
            Ok(found) if found > killed.rows => {
                killed.fail(&format!("{name}: {found} rows, more than there were"))
            }
            Ok(found) if expected == All && found != killed.rows => {
                let rows = killed.rows;
                killed.fail(&format!("{name}: {found} rows of {rows}"))
            }
            Ok(_) => {}
            Err(what) if expected != All && names_the_damage(&what, &log) => {}
            Err(what) => killed.fail(&format!("{name}: {what}")),
        }
    }
}

pub fn in_the_middle(rounds: u32) {
    for _ in 0..rounds {
        let mut killed = KilledServer::new();
        // Among the rows' commits, but not among the last few.
        let log = killed.edit(|written, bytes| {
            let at = fastrand::usize(written / 3..written - 4 * (PAD_LEN_MAX + 200));
            let from = (at..written)
                .find(|&at| bytes[at] != 0)
                .expect("records are not all zeros");
            match fastrand::bool() {
                true => bytes[from] ^= 1 << fastrand::u8(..8),
                false => bytes[from..from + 16].fill_with(|| fastrand::u8(..)),
            }
        });
        match killed.victim.start(&[]) {
            Ok(_) => killed.fail("a log that is damaged in its middle was accepted"),
            Err(what) if names_the_damage(&what, &log) => {}
            Err(what) => killed.fail(&format!(
                "the refusal does not name {}: {what}",
                log.display()
            )),
        }
    }
}

fn names_the_damage(what: &str, log: &Path) -> bool {
    let last = what
        .lines()
        .rfind(|line| line.contains("porpoise:"))
        .unwrap_or("");
    last.contains(&*log.to_string_lossy()) && last.contains("corrupt")
}
