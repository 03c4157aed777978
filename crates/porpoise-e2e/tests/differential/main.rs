//! Random SQL, which Porpoise and MariaDB have to answer alike, and Porpoise by every access path.
//!
//! Each seed makes a schema, rows and a run of statements (`porpoise_lab::fuzz::random_sql`). A query goes to
//!
//! ```text
//!  MariaDB ─────────────────┐
//!  Porpoise ────────────────┼─► the same rows, or a refusal by both
//!  Porpoise, prepared ──────┤
//!  Porpoise, without keys ──┘   (copies of the tables: other access paths, other joins)
//! ```
//!
//! and after each change the tables have to hold the same rows. What differs is printed with its
//! seed and statement. The rows of a result may come in any order, digits behind the thirteenth
//! don't count, and of texts that their collation holds equal either may stand for a group.
//!
//! It is a search, not a check that passes: of some thousand statements one differs, and somebody
//! has to find out why. The generator avoids what is known to be MariaDB's own behaviour, with a
//! comment. Where an expression overflows (1690) that needn't be computed, either server may refuse
//! it: that is no difference.
//!
//! A few seeds run by default. A long run, and one seed again:
//!
//! ```sh
//! PORPOISE_SEEDS=1..500 cargo test -p porpoise-e2e --test differential -- --nocapture
//! PORPOISE_SEEDS=17..18 cargo test -p porpoise-e2e --test differential -- --nocapture
//! ```
//!
//! Where the servers differ, MariaDB is asked again, with parts of its optimizer switched off, on
//! copies without keys, and in other words that mean the same ([`rewritten`]). If it then answers as
//! Porpoise does, it contradicts itself, which is counted apart; so is what differs for a known reason
//! ([`known`]), and what fails on one server only, if it fails on the other as well where nothing may
//! be left out. MySQL can be asked instead of MariaDB, where one runs:
//!
//! ```sh
//! PORPOISE_MYSQL_SOCKET=/run/mysqld/mysqld.sock PORPOISE_SEEDS=1..500 \
//!     cargo test -p porpoise-e2e --test differential mysql -- --ignored --nocapture
//! ```
//!
//! `PORPOISE_STATEMENTS=FILE` writes all statements to a file, to be run again by hand up to the
//! one that differs.

mod answer;
mod known;
mod programs;
mod rewritten;
mod templates;
mod trial;

use std::fs::File;
use std::ops::Range;

use porpoise_e2e::server::Product;

use trial::{Findings, Trial};

const SEEDS_DEFAULT: Range<u64> = 1..9;
const STATEMENTS: usize = 100;
const SCHEMA: &str = "differential";

/// The file that statements are to be written to, if any.
fn file_of_statements() -> Option<File> {
    let path = std::env::var_os("PORPOISE_STATEMENTS")?;
    Some(File::create(path).expect("the file of statements can be made"))
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("PORPOISE_SEEDS") else {
        return SEEDS_DEFAULT;
    };
    let (from, to) = text.split_once("..").expect("PORPOISE_SEEDS is FROM..TO");
    let number = |text: &str| text.parse().expect("PORPOISE_SEEDS is of two numbers");
    number(from)..number(to)
}

fn search(peer: Product) {
    let mut trial = Trial::start(peer);
    let seeds = seeds();
    for seed in seeds.clone() {
        trial.run(seed);
    }
    let Findings {
        statements,
        differences,
        known,
        contradictions,
        crashes,
    } = trial.findings;
    for (reason, count) in known {
        println!("{count:5} known: {reason}");
    }
    println!(
        "seeds {seeds:?}: {statements} statements, {differences} differences; {contradictions} \
         answers that {peer:?} contradicts itself; it ended {crashes} times"
    );
    assert_eq!(differences, 0, "of {statements} statements");
}

#[test]
fn random_statements_have_one_answer() {
    search(Product::MariaDb);
}

#[test]
#[ignore = "needs a MySQL server, named by PORPOISE_MYSQL_SOCKET"]
fn random_statements_on_mysql() {
    search(Product::MySql);
}
