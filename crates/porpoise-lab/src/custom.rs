//! Workload files: transactions of plain SQL with weights, and generators of their values.
//!
//! ```toml
//! setup = ["CREATE TABLE item (id INT PRIMARY KEY, sold INT NOT NULL)", "INSERT INTO item …"]
//!
//! [generators]
//! item = { zipf = { from = 1, to = 1000, exponent = 1.1 } }     # 1 is the most frequent one
//! amount = { uniform = { from = 1, to = 5 } }
//! bill = { sequence = { from = 1 } }                            # each value once, of all clients
//!
//! [[transactions]]
//! name = "look"
//! weight = 9
//! statements = ["SELECT * FROM item WHERE id = :item"]
//!
//! [[transactions]]
//! name = "buy"
//! statements = ["BEGIN", "UPDATE item SET sold = sold + :amount WHERE id = :item", "COMMIT"]
//!
//! [[checks]]                                                    # after each run
//! name = "something was sold less than never"
//! query = "SELECT id FROM item WHERE sold < 0"                  # finds no row
//! ```
//!
//! A generator that a transaction names several times has one value in all of its statements: the
//! row that is read is the row that is changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use porpoise_client::{Connection, Error};
use serde::Deserialize;
use toml::Spanned;

use crate::experiment::{in_words, place_of};
use crate::scenario::{Check, Scenario};
use crate::workload::{Course, Filled};

/// The transactions of a workload file.
#[derive(Debug)]
pub struct CustomWorkload {
    /// Run once on each server before it is measured, by one connection.
    pub setup: Vec<String>,
    pub(crate) statements: Vec<String>,
    transactions: Vec<Transaction>,
    generators: Vec<Generator>,
    weights: u64,
    checks: Vec<Check>,
}

#[derive(Debug)]
struct Transaction {
    name: String,
    weight: u64,
    /// Each statement's number and the generators of its values.
    steps: Vec<(usize, Vec<usize>)>,
}

/// Exponents of Zipf's law at which numbers of this size neither vanish nor run over.
const EXPONENTS: std::ops::RangeInclusive<f64> = 0.01..=10.0;
/// Of a text that is sent with each statement.
const DIGITS_MAX: usize = 1 << 20;
/// Characters of a transaction's name.
const NAME_MAX: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    setup: Vec<String>,
    #[serde(default)]
    generators: BTreeMap<String, Spanned<GeneratorEntry>>,
    transactions: Spanned<Vec<TransactionEntry>>,
    #[serde(default)]
    checks: Vec<CheckEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckEntry {
    name: String,
    query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactionEntry {
    name: Spanned<String>,
    weight: Option<Spanned<u64>>,
    statements: Spanned<Vec<Spanned<String>>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum GeneratorEntry {
    Uniform {
        from: u64,
        to: u64,
    },
    Zipf {
        from: u64,
        to: u64,
        #[serde(default = "one")]
        exponent: f64,
    },
    Sequence {
        from: u64,
    },
    Digits {
        length: usize,
    },
}

fn one() -> f64 {
    1.0
}

#[derive(Debug)]
enum Generator {
    Uniform {
        from: u64,
        to: u64,
    },
    Zipf {
        from: u64,
        zipf: Zipf,
    },
    /// The first value, and the next.
    Sequence(u64, AtomicU64),
    Digits(usize),
}

impl Generator {
    fn of(entry: GeneratorEntry) -> Result<Self, String> {
        let ordered = |from, to| {
            let is_ordered = from <= to;
            is_ordered
                .then_some(())
                .ok_or_else(|| format!("nothing lies between {from} and {to}"))
        };
        Ok(match entry {
            GeneratorEntry::Uniform { from, to } => {
                ordered(from, to)?;
                Self::Uniform { from, to }
            }
            GeneratorEntry::Zipf { from, to, exponent } => {
                ordered(from, to)?;
                if !EXPONENTS.contains(&exponent) {
                    let (least, most) = (EXPONENTS.start(), EXPONENTS.end());
                    return Err(format!(
                        "the exponent of a Zipf distribution is from {least} to {most}"
                    ));
                }
                let zipf = Zipf::new((to - from).saturating_add(1), exponent);
                Self::Zipf { from, zipf }
            }
            GeneratorEntry::Sequence { from } => Self::Sequence(from, AtomicU64::new(from)),
            GeneratorEntry::Digits { length } if length <= DIGITS_MAX => Self::Digits(length),
            GeneratorEntry::Digits { .. } => {
                return Err(format!("a text has at most {DIGITS_MAX} digits"));
            }
        })
    }

    fn draw(&self, random: &mut Rng) -> Filled {
        match self {
            Self::Uniform { from, to } => Filled::UInt(random.u64(*from..=*to)),
            Self::Zipf { from, zipf } => Filled::UInt(from + zipf.draw(random) - 1),
            Self::Sequence(_, next) => Filled::UInt(next.fetch_add(1, Ordering::Relaxed)),
            Self::Digits(length) => {
                let digits = (0..*length).map(|_| char::from(random.u8(b'0'..=b'9')));
                Filled::Text(digits.collect())
            }
        }
    }
}

/// Zipf's distribution over 1 to `count`, by rejection-inversion (Hörmann and Derflinger, 1996):
/// no table, and about one draw a value.
#[derive(Debug)]
struct Zipf {
    count: f64,
    exponent: f64,
    at_first: f64,
    at_last: f64,
    squeeze: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Self {
            count: count as f64,
            exponent,
            at_first: 0.0,
            at_last: 0.0,
            squeeze: 0.0,
        };
        zipf.at_first = zipf.integral(1.5) - 1.0;
        zipf.at_last = zipf.integral(zipf.count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The integral of the density, up to a constant.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let scaled = (1.0 - self.exponent) * log;
        // (e^s - 1) / s, which is 1 at 0.
        let slope = if scaled.abs() > 1e-8 {
            scaled.exp_m1() / scaled
        } else {
            1.0 + scaled / 2.0
        };
        slope * log
    }

    fn inverse(&self, y: f64) -> f64 {
        let scaled = (y * (1.0 - self.exponent)).max(-1.0);
        let slope = if scaled.abs() > 1e-8 {
            scaled.ln_1p() / scaled
        } else {
            1.0 - scaled / 2.0
        };
        (slope * y).exp()
    }

    fn draw(&self, random: &mut Rng) -> u64 {
        loop {
            let y = self.at_last + random.f64() * (self.at_first - self.at_last);
            let x = self.inverse(y);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.squeeze || y >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }
}

/// What is wrong with a file, and where in its text.
pub(crate) type Complaint = (String, std::ops::Range<usize>);

impl CustomWorkload {
    /// Of the text of a file. What is wrong with it is told with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let at = |what: String, place: usize| {
            let line = text[..place.min(text.len())].matches('\n').count() + 1;
            format!("line {line}: {what}")
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let what = in_words(error.message());
            match place_of(&error, text) {
                Some(span) => at(what, span.start),
                None => what,
            }
        })?;
        Self::of(file).map_err(|(what, span)| at(what, span.start))
    }

    fn of(file: File) -> Result<Self, Complaint> {
        let mut names = Vec::new();
        let mut generators = Vec::new();
        for (name, entry) in file.generators {
            let at = entry.span();
            generators.push(Generator::of(*entry.get_ref()).map_err(|what| (what, at))?);
            names.push(name);
        }
        let mut workload = Self {
            setup: file.setup,
            statements: Vec::new(),
            transactions: Vec::new(),
            generators,
            weights: 0,
            checks: Vec::new(),
        };
        let checks = file.checks.into_iter();
        workload.checks = checks
            .map(|CheckEntry { name, query }| Check { name, query })
            .collect();
        let at = file.transactions.span();
        for entry in file.transactions.into_inner() {
            workload.add_transaction(entry, &names)?;
        }
        match workload.weights {
            0 => Err(("no transaction has a weight above 0".into(), at)),
            _ => Ok(workload),
        }
    }

    fn add_transaction(
        &mut self,
        entry: TransactionEntry,
        names: &[String],
    ) -> Result<(), Complaint> {
        if entry.statements.get_ref().is_empty() {
            let what = format!("transaction '{}' has no statement", entry.name.get_ref());
            return Err((what, entry.statements.span()));
        }
        let mut steps = Vec::new();
        for statement in entry.statements.into_inner() {
            let at = statement.span();
            let (text, values) =
                with_parameters(statement.get_ref(), names).map_err(|what| (what, at))?;
            let known = self.statements.iter().position(|other| *other == text);
            let number = known.unwrap_or_else(|| {
                self.statements.push(text);
                self.statements.len() - 1
            });
            steps.push((number, values));
        }
        let name = entry.name.get_ref();
        if name.chars().count() > NAME_MAX {
            let what = format!("a name has at most {NAME_MAX} characters");
            return Err((what, entry.name.span()));
        }
        if self.transactions.iter().any(|known| known.name == *name) {
            let what = format!("two transactions have the name '{name}'");
            return Err((what, entry.name.span()));
        }
        let weight = entry.weight.map_or(1, Spanned::into_inner);
        self.weights = self.weights.saturating_add(weight);
        self.transactions.push(Transaction {
            name: entry.name.into_inner(),
            weight,
            steps,
        });
        Ok(())
    }
}

impl Scenario for CustomWorkload {
    fn load(
        &self,
        connection: &mut Connection,
        _seed: u64,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        // Sequences begin anew, as the tables do.
        for generator in &self.generators {
            if let Generator::Sequence(first, next) = generator {
                next.store(*first, Ordering::Relaxed);
            }
        }
        for sql in &self.setup {
            show("setup");
            connection.run(sql)?;
        }
        Ok(())
    }

    /// Runs of a sequence change what later runs find: they would draw values that are there already.
    fn loads_for_each_run(&self) -> bool {
        let mut generators = self.generators.iter();
        generators.any(|generator| matches!(generator, Generator::Sequence(..)))
    }

    fn statements(&self) -> Vec<String> {
        self.statements.clone()
    }

    /// Those that have values.
    fn to_prepare(&self) -> Vec<usize> {
        let steps = self.transactions.iter().flat_map(|one| &one.steps);
        let with_values = steps.filter(|(_, values)| !values.is_empty());
        with_values.map(|&(number, _)| number).collect()
    }

    fn kinds(&self) -> Vec<String> {
        let names = self.transactions.iter().map(|one| one.name.clone());
        match self.transactions.len() {
            1 => Vec::new(),
            _ => names.collect(),
        }
    }

    fn course(self: Arc<Self>, _: usize) -> Box<dyn Course> {
        Box::new(CustomCourse {
            drawn: vec![None; self.generators.len()],
            workload: self,
            transaction: 0,
            sent: 0,
        })
    }

    fn checks(&self) -> Vec<Check> {
        self.checks.clone()
    }
}

/// `:name` replaced by `?` outside of quotes and comments, and whose values these are.
fn with_parameters(text: &str, names: &[String]) -> Result<(String, Vec<usize>), String> {
    let mut sql = String::with_capacity(text.len());
    let mut values = Vec::new();
    let mut rest = text;
    let mut quote = None;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        match (quote, character) {
            (Some(_), '?') | (None, '?') => {
                return Err("a value is written as :name, and '?' can't be in a text".into());
            }
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(character),
            (None, ':') => {
                let length = after
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(after.len());
                let name = &after[..length];
                // `:=` assigns.
                if length > 0 {
                    let generator = names.iter().position(|known| known == name);
                    let none = || format!("there is no generator '{name}'");
                    values.push(generator.ok_or_else(none)?);
                    sql.push('?');
                    rest = &after[length..];
                    continue;
                }
            }
            _ => {}
        }
        sql.push(character);
        rest = after;
    }
    Ok((sql, values))
}

/// A client's way through the transactions of a workload file.
struct CustomCourse {
    workload: Arc<CustomWorkload>,
    transaction: usize,
    sent: usize,
    /// The generators' values in this transaction.
    drawn: Vec<Option<Filled>>,
}

impl Course for CustomCourse {
    fn begin(&mut self, random: &mut Rng) -> Duration {
        let mut chosen = random.u64(0..self.workload.weights);
        let by_weight = self.workload.transactions.iter().position(|transaction| {
            let is_it = chosen < transaction.weight;
            chosen = chosen.saturating_sub(transaction.weight);
            is_it
        });
        self.transaction = by_weight.unwrap_or_default();
        self.sent = 0;
        self.drawn.fill(None);
        Duration::ZERO
    }

    fn next(&mut self, random: &mut Rng, values: &mut Vec<Filled>) -> Option<usize> {
        let steps = &self.workload.transactions[self.transaction].steps;
        let (number, generators) = steps.get(self.sent)?;
        self.sent += 1;
        for &generator in generators {
            let draw = || self.workload.generators[generator].draw(random);
            values.push(self.drawn[generator].get_or_insert_with(draw).clone());
        }
        Some(*number)
    }

    fn kind(&self) -> usize {
        self.transaction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = r#"
setup = ["CREATE TABLE item (id INT PRIMARY KEY)"]
[generators]
item = { uniform = { from = 1, to = 10 } }
bill = { sequence = { from = 5 } }
[[transactions]]
name = "look"
weight = 3
statements = ["SELECT ':item' FROM item WHERE id = :item"]
[[transactions]]
name = "buy"
statements = ["BEGIN", "UPDATE item SET sold = :bill WHERE id = :item", "SELECT :item", "COMMIT"]
"#;

    #[test]
    fn transactions_are_chosen_by_weight_and_have_one_value_of_each_generator() {
        let workload = Arc::new(CustomWorkload::parse(SHOP).unwrap());
        assert_eq!(
            workload.statements[0],
            "SELECT ':item' FROM item WHERE id = ?"
        );
        assert_eq!(workload.to_prepare(), [0, 2, 3]);
        let mut course = workload.course(0);
        let mut random = Rng::with_seed(1);
        let mut looks = 0;
        let mut bills = Vec::new();
        for _ in 0..4000 {
            course.begin(&mut random);
            let mut sent = Vec::new();
            let mut values = Vec::new();
            while let Some(number) = course.next(&mut random, &mut values) {
                sent.push(number);
            }
            if sent == [0] {
                looks += 1;
                continue;
            }
            assert_eq!(sent, [1, 2, 3, 4]);
            let [bill, item, again] = &values[..] else {
                panic!("{values:?}")
            };
            assert_eq!(item, again);
            bills.push(bill.clone());
        }
        assert!((2800..3200).contains(&looks), "{looks}");
        assert_eq!(bills[..2], [Filled::UInt(5), Filled::UInt(6)]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_line() {
        let told = |from: &str, to: &str| {
            let text = SHOP.replace(from, to);
            CustomWorkload::parse(&text).unwrap_err()
        };
        assert_eq!(
            told("id = :item\"", "id = :tem\""),
            "line 9: there is no generator 'tem'"
        );
        assert!(told("weight = 3", "wait = 3").starts_with("line 8: unknown field `wait`"));
        assert!(!told("weight = 3", "wait = 3").contains('\n'));
        assert!(told("weight = 3", "weight = -3").ends_with("expected a number from 0"));
        assert_eq!(
            told("\"buy\"", "\"look\""),
            "line 11: two transactions have the name 'look'"
        );
        let long = format!("\"{}\"", "é".repeat(101));
        assert!(told("\"buy\"", &long).starts_with("line 11: a name has at most 100"));
        let uniform = "{ uniform = { from = 1, to = 10 } }";
        for exponent in ["0.0", "nan", "1000.0", "-1.0"] {
            let zipf = format!("{{ zipf = {{ from = 1, to = 9, exponent = {exponent} }} }}");
            let told = told(uniform, &zipf);
            assert!(told.starts_with("line 4: the exponent of a Zipf"), "{told}");
        }
        let digits = told(uniform, "{ digits = { length = 1000000000000 } }");
        assert!(
            digits.starts_with("line 4: a text has at most 1048576"),
            "{digits}"
        );
        assert_eq!(
            told("from = 1, to = 10", "from = 11, to = 10"),
            "line 4: nothing lies between 11 and 10"
        );
        assert!(told("\"COMMIT\"", "\"SELECT ?\"").contains(":name"));
    }

    #[test]
    fn a_zipf_distribution_has_the_frequencies_of_its_law() {
        for exponent in [0.01, 0.8, 1.0, 1.3, 10.0] {
            let zipf = Zipf::new(100, exponent);
            let mut random = Rng::with_seed(7);
            let mut seen = [0u64; 101];
            let draws = 200_000;
            for _ in 0..draws {
                seen[zipf.draw(&mut random) as usize] += 1;
            }
            let sum: f64 = (1..=100).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1, 2, 5, 20, 100] {
                let expected = f64::from(rank).powf(-exponent) / sum * f64::from(draws);
                let got = seen[rank as usize] as f64;
                let tolerance = 5.0 * expected.sqrt().max(1.0);
                assert!(
                    (got - expected).abs() < tolerance,
                    "{exponent} {rank}: {got} {expected}"
                );
            }
        }
    }
}
