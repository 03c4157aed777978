//! Random stored programs, which two servers have to run alike.
//!
//! Each seed makes two tables with a trigger, a function and two procedures ([`generator`]), and
//! calls the procedures some times. A program writes where it is and what its variables hold into
//! a table `trace`. After each call the outcome, the tables, the trace, and the OUT parameters
//! have to be the same; what differs is printed with the seed and the programs.
//!
//! ```sh
//! PORPOISE_SEEDS=1..500 cargo test -p porpoise-e2e --test differential programs -- --nocapture
//! ```

mod generator;

use std::fs::File;
use std::io::Write;

use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::Wire;

use crate::answer::Answer;
use crate::{file_of_statements, seeds};
use generator::ProgramGenerator;

const SCHEMA: &str = "differential_programs";
const CALLS: usize = 6;
/// What is compared after each call.
const READS: [&str; 4] = [
    "SELECT * FROM trace ORDER BY id",
    "SELECT * FROM t ORDER BY k",
    "SELECT * FROM u ORDER BY k",
    "SELECT @b, @c",
];

struct Pair {
    peer: Wire,
    porpoise: Wire,
    written: Option<File>,
}

impl Pair {
    fn both(&mut self, sql: &str) -> (Answer, Answer) {
        if let Some(file) = &mut self.written {
            writeln!(file, "{sql};").expect("the statements can be written down");
        }
        let answers = (
            Answer::to(&mut self.peer, sql),
            Answer::to(&mut self.porpoise, sql),
        );
        let lost = [&answers.0, &answers.1].map(|answer| matches!(answer, Answer::Lost));
        assert_eq!(lost, [false, false], "a server is gone: {sql}");
        answers
    }
}

/// Whether two answers are the same: errors are if their numbers are. Of CALL MySQL counts the rows
/// of the last statement (8.4 manual, 15.2.1), MariaDB those of all.
fn is_same(theirs: &Answer, ours: &Answer) -> bool {
    match (theirs, ours) {
        (Answer::Refused(a, _), Answer::Refused(b, _)) => a == b,
        (Answer::Done(_), Answer::Done(_)) => true,
        (Answer::Refused(..), _) | (_, Answer::Refused(..)) => false,
        (theirs, ours) => theirs.agrees_with(ours),
    }
}

/// Runs a seed's programs; `false` if something differs.
fn run(pair: &mut Pair, product: Product, seed: u64) -> bool {
    let mut generator = ProgramGenerator::new(seed, matches!(product, Product::MySql));
    let mut definitions: Vec<String> = vec![
        format!("DROP DATABASE IF EXISTS {SCHEMA}"),
        format!("CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
        format!("USE {SCHEMA}"),
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci".to_string(),
        format!("SET sql_mode = '{}'", generator.mode()),
    ];
    definitions.extend(generator.definitions());
    let programs = definitions.join(";\n");
    for sql in &definitions {
        let (theirs, ours) = pair.both(sql);
        if matches!(theirs, Answer::Refused(..)) != matches!(ours, Answer::Refused(..)) {
            println!("seed {seed}: {sql}");
            println!("  expected {}\n       got {}", theirs.shown(), ours.shown());
            return false;
        }
    }
    for _ in 0..CALLS {
        for sql in generator.call() {
            let (theirs, ours) = pair.both(&sql);
            let mut outcomes = vec![(sql.clone(), theirs, ours)];
            for read in READS {
                let (theirs, ours) = pair.both(read);
                outcomes.push((read.to_string(), theirs, ours));
            }
            let differing = outcomes
                .iter()
                .find(|(_, theirs, ours)| !is_same(theirs, ours));
            if let Some((what, theirs, ours)) = differing {
                println!("seed {seed}:\n{programs};\n  after {sql}: {what}");
                println!("  expected {}\n       got {}", theirs.shown(), ours.shown());
                return false;
            }
        }
    }
    true
}

fn search(product: Product) {
    let (peer, ours) = (Server::start(product), Server::start(Product::Porpoise));
    let connect = |server: &Server| server.connect(Route::UnixSocket, "").expect("root logs in");
    let mut pair = Pair {
        peer: connect(&peer),
        porpoise: connect(&ours),
        written: file_of_statements(),
    };
    let seeds = seeds();
    let differing = seeds.clone().filter(|&seed| !run(&mut pair, product, seed));
    let differing: Vec<u64> = differing.collect();
    println!("seeds {seeds:?}: programs differ under {differing:?}");
    assert!(differing.is_empty());
}

#[test]
fn random_programs_run_alike() {
    search(Product::MariaDb);
}

#[test]
#[ignore = "needs a MySQL server, named by PORPOISE_MYSQL_SOCKET"]
fn random_programs_on_mysql() {
    search(Product::MySql);
}
