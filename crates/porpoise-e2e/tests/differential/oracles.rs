//! Random queries that Porpoise has to answer alike however they are asked. No second server is
//! needed, so that values of any types may be compared, in columns of all types.
//!
//! | oracle | a query | has the rows of |
//! | --- | --- | --- |
//! | partition | `SELECT … FROM …` | the same with `WHERE p`, `WHERE NOT p` and `WHERE p IS NULL` together |
//! | counting | `SELECT COUNT(*) … WHERE p` | the sum of `p IS TRUE` over all rows |
//! | keys | any | the same on copies of the tables that have no keys |
//! | switches | any | the same with parts of the optimizer switched off |
//! | parameters | any | the same prepared, with numbers as parameters |
//! | embedded | any | the same with the database in this process |
//! | literals | any, with other texts | the same when it is planned for these, instead of served by a plan for others |
//!
//! The first is known as ternary logic partitioning, the second as NoREC (Rigger and Su, 2020).

use std::fs::File;
use std::io::Write;

use porpoise::Database;
use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::Wire;

use crate::answer::{Answer, report};
use crate::generator::{Generator, Parts, with_other_texts};
use crate::{SCHEMA, STATEMENTS, file_of_statements, seeds};

/// What the optimizer may do without.
const SWITCHED_OFF: &[&str] = &[
    "semijoin=off,derived_merge=off",
    "semijoin=on,materialization=off,subquery_materialization_cost_based=off",
    "block_nested_loop=off,index_merge=off,skip_scan=off",
    "derived_condition_pushdown=off,index_condition_pushdown=off,loosescan=off,firstmatch=off",
];

struct Oracles {
    server: Wire,
    embedded: Wire,
    statements: usize,
    differences: usize,
    /// The file that statements are written to, if any.
    written: Option<File>,
}

impl Oracles {
    fn ask(&mut self, sql: &str) -> Answer {
        self.statements += 1;
        if let Some(file) = &mut self.written {
            writeln!(file, "{sql};").expect("the statements can be written down");
        }
        Answer::to(&mut self.server, sql)
    }

    fn compare(&mut self, seed: u64, how: &str, sql: &str, expected: &Answer, got: &Answer) {
        let is_refused =
            matches!(expected, Answer::Refused(..)) || matches!(got, Answer::Refused(..));
        // What fails for a value needn't be computed on every path.
        if is_refused || expected.agrees_with(got) {
            return;
        }
        self.differences += 1;
        report(seed, sql, how, expected, got);
    }

    fn run(&mut self, seed: u64) {
        let mut generator = Generator::mixing(seed);
        let mut setup = vec![
            format!("DROP DATABASE IF EXISTS {SCHEMA}"),
            format!("CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
            format!("USE {SCHEMA}"),
            "SET time_zone = '+00:00'".to_string(),
        ];
        for table in 0..generator.tables.len() {
            let rows = generator.rows(table);
            let table = &generator.tables[table];
            let (name, given) = (&table.name, table.given());
            setup.push(table.definition(name, true));
            setup.extend(rows);
            setup.push(table.definition(&format!("{name}n"), false));
            setup.push(format!(
                "INSERT INTO {name}n ({given}) SELECT {given} FROM {name} ORDER BY RAND(1)"
            ));
        }
        for sql in setup {
            let (there, here) = (self.ask(&sql), Answer::to(&mut self.embedded, &sql));
            if let Answer::Refused(number, message) = &there {
                println!("seed {seed}: {sql}: {number} {message}");
            }
            assert!(
                there.agrees_with(&here),
                "seed {seed}: {sql}: {there:?} {here:?}"
            );
        }
        for number in 0..STATEMENTS {
            match number % 4 {
                0 => self.partition(seed, &generator.parts()),
                1 => self.counting(seed, &generator.parts()),
                _ => {
                    let sql = generator.query();
                    self.query(seed, &generator, &sql);
                }
            }
        }
    }

    fn partition(&mut self, seed: u64, parts: &Parts) {
        let Parts {
            with,
            items,
            from,
            condition,
        } = parts;
        let all = self.ask(&format!("{with}SELECT {items} FROM {from}"));
        let third = |oracles: &mut Oracles, condition: String| {
            oracles.ask(&format!(
                "{with}SELECT {items} FROM {from} WHERE {condition}"
            ))
        };
        let thirds = [
            third(self, condition.clone()),
            third(self, format!("NOT ({condition})")),
            third(self, format!("({condition}) IS NULL")),
        ];
        let mut together = Vec::new();
        for answer in thirds {
            match answer {
                Answer::Rows(rows) => together.extend(rows),
                _ => return,
            }
        }
        together.sort();
        let sql = format!("{with}SELECT {items} FROM {from} WHERE {condition}");
        self.compare(seed, "partition", &sql, &all, &Answer::Rows(together));
    }

    fn counting(&mut self, seed: u64, parts: &Parts) {
        let Parts {
            with,
            from,
            condition,
            ..
        } = parts;
        let sql = format!("{with}SELECT COUNT(*) FROM {from} WHERE {condition}");
        let counted = self.ask(&sql);
        let summed = format!("{with}SELECT COALESCE(SUM(({condition}) IS TRUE), 0) FROM {from}");
        let summed = self.ask(&summed);
        self.compare(seed, "counting", &sql, &summed, &counted);
    }

    fn query(&mut self, seed: u64, generator: &Generator, sql: &str) {
        let answer = self.ask(sql);
        if matches!(answer, Answer::Refused(..)) {
            return;
        }
        let other = with_other_texts(sql);
        if other != sql {
            let served = self.ask(&other);
            let planned = Answer::to(&mut self.embedded, &other);
            self.compare(
                seed,
                "served by a plan for other texts",
                &other,
                &planned,
                &served,
            );
        }
        let mut unkeyed = sql.to_string();
        for table in &generator.tables {
            let name = &table.name;
            unkeyed = unkeyed.replace(&format!(" {name} "), &format!(" {name}n "));
        }
        let unkeyed = self.ask(&unkeyed);
        self.compare(seed, "without keys", sql, &unkeyed, &answer);
        for switches in SWITCHED_OFF {
            self.ask(&format!("SET optimizer_switch = '{switches}'"));
            let switched = self.ask(sql);
            self.compare(seed, switches, sql, &switched, &answer);
            self.ask("SET optimizer_switch = DEFAULT");
        }
        let (parametrized, values) = with_parameters(sql);
        let quoted = parametrized.replace('\'', "''");
        let mut using = String::new();
        for (number, value) in values.iter().enumerate() {
            self.ask(&format!("SET @p{number} = {value}"));
            using.push_str(if number == 0 { " USING " } else { ", " });
            using.push_str(&format!("@p{number}"));
        }
        self.ask(&format!("PREPARE s FROM '{quoted}'"));
        let prepared = self.ask(&format!("EXECUTE s{using}"));
        self.compare(seed, "prepared, with parameters", sql, &answer, &prepared);
        let embedded = Answer::to(&mut self.embedded, sql);
        self.compare(seed, "embedded", sql, &answer, &embedded);
    }
}

/// A query with placeholders for the numbers that are compared with something, and these numbers.
fn with_parameters(sql: &str) -> (String, Vec<String>) {
    let (mut text, mut values) = (String::new(), Vec::new());
    let mut rest = sql;
    while let Some((at, operator)) = [
        " = ", " < ", " > ", " <= ", " >= ", " <> ", " <=> ", "BETWEEN ",
    ]
    .iter()
    .filter_map(|operator| rest.find(operator).map(|at| (at, operator.len())))
    .min()
    {
        let (before, after) = rest.split_at(at + operator);
        text.push_str(before);
        let end = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        let is_number = end > 0 && !after[end..].starts_with(['.', 'e', 'x', '\'']);
        if is_number {
            text.push('?');
            values.push(after[..end].to_string());
        }
        rest = if is_number { &after[end..] } else { after };
    }
    text.push_str(rest);
    (text, values)
}

#[test]
fn queries_have_one_answer_however_they_are_asked() {
    let server = Server::start(Product::Porpoise);
    let database = Database::in_memory().expect("a database in memory");
    let stream = database.stream().expect("a database that is open");
    let mut oracles = Oracles {
        server: server.connect(Route::UnixSocket, "").expect("root logs in"),
        embedded: Wire::over(Box::new(stream), ("root", ""), "", 255).expect("root logs in"),
        statements: 0,
        differences: 0,
        written: file_of_statements(),
    };
    let seeds = seeds();
    for seed in seeds.clone() {
        oracles.run(seed);
    }
    let (statements, differences) = (oracles.statements, oracles.differences);
    println!("seeds {seeds:?}: {statements} statements, {differences} differences");
    assert_eq!(differences, 0, "of {statements} statements");
}
