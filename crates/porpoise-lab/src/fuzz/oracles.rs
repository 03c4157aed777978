//! Random queries that a server has to answer alike however they are asked: wrong answers are found
//! without a second server, of any types, in columns of all types.
//!
//! | oracle | a query | has the rows of |
//! | --- | --- | --- |
//! | partition | `SELECT … FROM …` | the same with `WHERE p`, `WHERE NOT p` and `WHERE p IS NULL` together |
//! | counting | `SELECT COUNT(*) … WHERE p` | the sum of `p IS TRUE` over all rows |
//! | pivot | `SELECT … FROM a, b WHERE p` | at least those rows of both for which `p` holds where they are alone |
//! | keys | any | the same on copies of the tables that have no keys |
//! | switches | any | the same with parts of the optimizer switched off |
//! | parameters | any | the same prepared, with numbers as parameters |
//! | embedded | any | the same with the database in this process |
//! | literals | any, with other texts | the same when it is planned for these, instead of served by a plan for others |
//!
//! The first is known as ternary logic partitioning, the second as NoREC, the third as pivoted query
//! synthesis (Rigger and Su, 2020). The last two are asked of Porpoise alone.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use porpoise_client::{Connection, Options, Transport};

use super::random_sql::{Generator, Parts, with_other_texts};
use super::reply::{Fault, Reply, ask};
use crate::Error;
use crate::progress::Progress;

/// The schema that tables are made in.
const SCHEMA: &str = "porpoise_fuzz";

/// What the optimizer may do without.
const SWITCHED_OFF: &[&str] = &[
    "semijoin=off,derived_merge=off",
    "semijoin=on,materialization=off,subquery_materialization_cost_based=off",
    "block_nested_loop=off,index_merge=off,skip_scan=off",
    "derived_condition_pushdown=off,index_condition_pushdown=off,loosescan=off,firstmatch=off",
];

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct OraclePlan {
    /// Where the server is; its schema `porpoise_fuzz` is made anew.
    pub options: Options,
    /// Whether Porpoise in this process is asked as well.
    pub with_embedded: bool,
    /// Each makes tables, rows and queries.
    pub seeds: Range<u64>,
    /// Queries of a seed.
    pub queries: usize,
    /// Where findings are written to, if anywhere.
    pub folder: Option<PathBuf>,
    /// Ends the run when somebody sets it.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

/// A query whose answers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed.
    pub seed: u64,
    /// The oracle.
    pub oracle: String,
    /// The query.
    pub sql: String,
    /// What is wrong.
    pub fault: Fault,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "seed {}, {}: {}\n  {}",
            self.seed, self.oracle, self.fault, self.sql
        )
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct OracleReport {
    /// Statements that were asked.
    pub statements: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Seeds whose queries were all asked.
    pub seeds: u64,
    /// What was found.
    pub differences: Vec<Difference>,
}

/// Runs a plan.
pub fn run(plan: &OraclePlan) -> Result<OracleReport, Error> {
    if let Some(folder) = &plan.folder {
        crate::make_folder(folder)?;
    }
    let mut oracles = Oracles::new(plan)?;
    let mut progress = Progress::new(plan.progress);
    for seed in plan.seeds.clone() {
        if plan.stop.load(Ordering::Relaxed) {
            break;
        }
        oracles.seed(seed)?;
        oracles.report.seeds += 1;
        let report = &oracles.report;
        progress.show(&format!(
            "seed {seed} of {}..{}: {} statements, {} differences",
            plan.seeds.start,
            plan.seeds.end,
            report.statements,
            report.differences.len()
        ));
    }
    progress.clear();
    Ok(oracles.report)
}

struct Oracles<'p> {
    plan: &'p OraclePlan,
    server: Connection,
    embedded: Option<Connection>,
    report: OracleReport,
    /// The seed, and what made its tables.
    seed: u64,
    setup: Vec<String>,
}

impl<'p> Oracles<'p> {
    fn new(plan: &'p OraclePlan) -> Result<Self, Error> {
        let embedded = plan.with_embedded.then(|| {
            porpoise::provide_to_clients();
            let options = Options {
                transport: Transport::Embedded,
                folder: None,
                user: "root".into(),
                ..Options::default()
            };
            connected(&options, "embedded")
        });
        Ok(Self {
            plan,
            server: connected(&plan.options, "the server")?,
            embedded: embedded.transpose()?,
            report: OracleReport::default(),
            seed: 0,
            setup: Vec::new(),
        })
    }

    /// Makes a seed's tables, and asks its queries.
    fn seed(&mut self, seed: u64) -> Result<(), Error> {
        let mut generator = Generator::mixing(seed);
        self.seed = seed;
        self.setup = setup(&mut generator);
        for sql in self.setup.clone() {
            let there = self.ask("setup", &sql);
            let here = self
                .embedded
                .as_mut()
                .map(|embedded| ask(embedded, &sql, true));
            if let (Some(Ok(here)), Some(there)) = (here, there) {
                self.compare("embedded", &sql, &here, &there);
            }
        }
        for number in 0..self.plan.queries {
            match number % 5 {
                0 => self.partition(&generator.parts()),
                1 => self.counting(&generator.parts()),
                2 => self.pivot(&mut generator),
                _ => {
                    let sql = generator.query();
                    self.query(&generator, &sql);
                }
            }
            if self.server.is_broken() {
                self.server = connected(&self.plan.options, "the server")?;
                self.server
                    .run(format!("USE {SCHEMA}"))
                    .map_err(|error| Error::Plan(error.to_string()))?;
            }
        }
        Ok(())
    }

    /// The answer, with its rows in order; nothing if something is wrong with it, which is noted.
    fn ask(&mut self, oracle: &str, sql: &str) -> Option<Reply> {
        self.report.statements += 1;
        match ask(&mut self.server, sql, true) {
            Ok(reply) => {
                self.report.refused += u64::from(matches!(reply, Reply::Refused(..)));
                Some(reply.sorted())
            }
            Err(fault) => {
                self.note(oracle, sql, fault);
                None
            }
        }
    }

    fn note(&mut self, oracle: &str, sql: &str, fault: Fault) {
        let difference = Difference {
            seed: self.seed,
            oracle: oracle.into(),
            sql: sql.into(),
            fault,
        };
        if let Some(folder) = &self.plan.folder {
            let path = folder.join(format!(
                "query-{:03}.sql",
                self.report.differences.len() + 1
            ));
            // What was found is told in any case.
            let _ = written(&path, &difference, &self.setup);
        }
        self.report.differences.push(difference);
    }

    fn compare(&mut self, oracle: &str, sql: &str, expected: &Reply, got: &Reply) {
        let is_refused =
            matches!(expected, Reply::Refused(..)) || matches!(got, Reply::Refused(..));
        // What fails for a value needn't be computed on every path.
        if is_refused || expected.agrees_with(got) {
            return;
        }
        let (one, other) = match (expected, got) {
            (Reply::Rows(a), Reply::Rows(b)) => (only_in(a, b), only_in(b, a)),
            _ => (expected.shown(), got.shown()),
        };
        self.note(
            oracle,
            sql,
            Fault::Differs {
                one: format!("expected {one}"),
                other: format!("got {other}"),
            },
        );
    }

    fn partition(&mut self, parts: &Parts) {
        let Parts {
            with,
            items,
            from,
            condition,
        } = parts;
        let mut asked = |behind: String| {
            self.ask(
                "partition",
                &format!("{with}SELECT {items} FROM {from}{behind}"),
            )
        };
        let Some(all) = asked(String::new()) else {
            return;
        };
        let thirds = [
            asked(format!(" WHERE {condition}")),
            asked(format!(" WHERE NOT ({condition})")),
            asked(format!(" WHERE ({condition}) IS NULL")),
        ];
        let mut together = Vec::new();
        for third in thirds {
            match third {
                Some(Reply::Rows(rows)) => together.extend(rows),
                _ => return,
            }
        }
        together.sort();
        let sql = format!("{with}SELECT {items} FROM {from} WHERE {condition}");
        self.compare("partition", &sql, &all, &Reply::Rows(together));
    }

    fn counting(&mut self, parts: &Parts) {
        let Parts {
            with,
            from,
            condition,
            ..
        } = parts;
        let sql = format!("{with}SELECT COUNT(*) FROM {from} WHERE {condition}");
        let counted = self.ask("counting", &sql);
        let summed = format!("{with}SELECT COALESCE(SUM(({condition}) IS TRUE), 0) FROM {from}");
        if let (Some(counted), Some(summed)) = (counted, self.ask("counting", &summed)) {
            self.compare("counting", &sql, &summed, &counted);
        }
    }

    /// A row of each of two tables, a condition made true for them, and whether a query finds them.
    fn pivot(&mut self, generator: &mut Generator) {
        let pivot = generator.pivot();
        let [a, b] = &pivot.tables;
        let mut ids = Vec::new();
        for (at, table) in [a, b].into_iter().enumerate() {
            let some = format!(
                "SELECT id FROM {table} ORDER BY RAND({}) LIMIT 1",
                self.report.statements
            );
            let Some(Reply::Rows(rows)) = self.ask("pivot", &some) else {
                return;
            };
            let Some(Some(id)) = rows.first().and_then(|row| row.first().cloned()) else {
                return;
            };
            let id = String::from_utf8_lossy(&id).into_owned();
            for sql in [
                format!("DROP TABLE IF EXISTS pivot{at}"),
                format!("CREATE TABLE pivot{at} AS SELECT * FROM {table} WHERE id = {id}"),
            ] {
                if self.ask("pivot", &sql).is_none() {
                    return;
                }
            }
            ids.push(id);
        }
        let condition = &pivot.condition;
        let alone =
            format!("SELECT ({condition}) IS TRUE, ({condition}) IS FALSE FROM pivot0 a, pivot1 b");
        let Some(Reply::Rows(verdict)) = self.ask("pivot", &alone) else {
            return;
        };
        let is = |at: usize| {
            verdict
                .first()
                .is_some_and(|row| row[at].as_deref() == Some(b"1"))
        };
        let holds = match (is(0), is(1)) {
            (true, _) => condition.clone(),
            (_, true) => format!("NOT ({condition})"),
            _ => format!("({condition}) IS NULL"),
        };
        let sql = format!("SELECT a.id, b.id FROM {a} a, {b} b WHERE {holds}");
        if let Some(Reply::Rows(rows)) = self.ask("pivot", &sql) {
            let wanted: Vec<Option<Vec<u8>>> =
                ids.iter().map(|id| Some(id.as_bytes().to_vec())).collect();
            if !rows.contains(&wanted) {
                let one = format!("expected the row ({}) among others", ids.join(", "));
                let other = format!("{} rows without it", rows.len());
                self.note("pivot", &sql, Fault::Differs { one, other });
            }
        }
    }

    /// A query, asked in all ways.
    fn query(&mut self, generator: &Generator, sql: &str) {
        let Some(answer @ Reply::Rows(_)) = self.ask("query", sql) else {
            return;
        };
        self.with_other_texts(sql);
        let mut unkeyed = sql.to_string();
        for table in &generator.tables {
            let name = &table.name;
            unkeyed = unkeyed.replace(&format!(" {name} "), &format!(" {name}n "));
        }
        if let Some(unkeyed) = self.ask("keys", &unkeyed) {
            self.compare("keys", sql, &unkeyed, &answer);
        }
        for switches in SWITCHED_OFF {
            // A server may have other switches.
            let switched = self.ask("switches", &format!("SET optimizer_switch = '{switches}'"));
            if switched == Some(Reply::Done) {
                if let Some(switched) = self.ask(switches, sql) {
                    self.compare(switches, sql, &switched, &answer);
                }
                self.ask("switches", "SET optimizer_switch = DEFAULT");
            }
        }
        self.prepared(sql, &answer);
        if let Some(embedded) = &mut self.embedded {
            match ask(embedded, sql, true).map(Reply::sorted) {
                Ok(embedded) => self.compare("embedded", sql, &answer, &embedded),
                Err(fault) => self.note("embedded", sql, fault),
            }
        }
    }

    /// Served by the plan of the statement before it, which had other texts; and planned for its own,
    /// in this process, where nobody has asked it.
    fn with_other_texts(&mut self, sql: &str) {
        let other = with_other_texts(sql);
        if other == sql || self.embedded.is_none() {
            return;
        }
        let served = self.ask("literals", &other);
        let planned = self
            .embedded
            .as_mut()
            .map(|embedded| ask(embedded, &other, true));
        if let (Some(served), Some(Ok(planned))) = (served, planned) {
            self.compare("literals", &other, &planned.sorted(), &served);
        }
    }

    fn prepared(&mut self, sql: &str, answer: &Reply) {
        let (parametrized, values) = with_parameters(sql);
        let quoted = parametrized.replace('\\', "\\\\").replace('\'', "''");
        let mut using = String::new();
        for (number, value) in values.iter().enumerate() {
            self.ask("parameters", &format!("SET @p{number} = {value}"));
            using.push_str(if number == 0 { " USING " } else { ", " });
            using.push_str(&format!("@p{number}"));
        }
        self.ask("parameters", &format!("PREPARE s FROM '{quoted}'"));
        if let Some(prepared) = self.ask("parameters", &format!("EXECUTE s{using}")) {
            self.compare("parameters", sql, answer, &prepared);
        }
    }
}

fn connected(options: &Options, target: &str) -> Result<Connection, Error> {
    Connection::connect(options).map_err(|error| Error::Target {
        target: target.into(),
        doing: "connecting".into(),
        error,
    })
}

/// What makes a seed's tables, each with a copy without keys.
fn setup(generator: &mut Generator) -> Vec<String> {
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
    setup
}

fn written(
    path: &std::path::Path,
    difference: &Difference,
    setup: &[String],
) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for line in difference.to_string().lines() {
        writeln!(file, "-- {line}")?;
    }
    for sql in setup {
        writeln!(file, "{sql};")?;
    }
    writeln!(file, "{};", difference.sql)?;
    file.flush()
}

/// The rows that only `rows` hold, as text.
fn only_in(rows: &[super::reply::Row], others: &[super::reply::Row]) -> String {
    let mut left = others.to_vec();
    let mut differs = |row: &&super::reply::Row| match left.iter().position(|other| other == *row) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    let differing: Vec<super::reply::Row> =
        rows.iter().filter(|row| differs(row)).cloned().collect();
    format!("of {} rows {}", rows.len(), Reply::Rows(differing).shown())
}

/// A query with placeholders for the numbers that are compared with something, and these numbers.
fn with_parameters(sql: &str) -> (String, Vec<String>) {
    const OPERATORS: [&str; 8] = [
        " = ", " < ", " > ", " <= ", " >= ", " <> ", " <=> ", "BETWEEN ",
    ];
    let (mut text, mut values) = (String::new(), Vec::new());
    let mut rest = sql;
    let next = |rest: &str| {
        let places = OPERATORS
            .iter()
            .filter_map(|operator| rest.find(operator).map(|at| (at, operator.len())));
        places.min()
    };
    while let Some((at, operator)) = next(rest) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_compared_become_parameters() {
        let (text, values) =
            with_parameters("SELECT 1 FROM t WHERE a = 12 AND b < 1.5 OR c BETWEEN 3 AND 4");
        assert_eq!(
            text,
            "SELECT 1 FROM t WHERE a = ? AND b < 1.5 OR c BETWEEN ? AND 4"
        );
        assert_eq!(values, ["12", "3"]);
    }
}
