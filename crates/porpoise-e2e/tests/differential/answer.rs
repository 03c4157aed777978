//! What a server answers to a statement, and when two answers are alike.

use std::fmt::Write;

use porpoise_e2e::slt;
use porpoise_e2e::wire::{Error, Reply, Wire};

/// How many rows of an answer are shown.
const SHOWN_MAX: usize = 8;

type Row = Vec<Option<Vec<u8>>>;

/// The outcome of a statement.
#[derive(Debug)]
pub enum Answer {
    Rows(Vec<Row>),
    Done(u64),
    Refused(u16, String),
    /// The server has ended, or is silent.
    Lost,
}

impl Answer {
    pub fn to(wire: &mut Wire, sql: &str) -> Answer {
        Answer::to_bytes(wire, sql.as_bytes())
    }

    pub fn to_bytes(wire: &mut Wire, sql: &[u8]) -> Answer {
        match wire.query_bytes(sql) {
            Ok(Reply::Rows { mut rows, .. }) => {
                rows.sort();
                Answer::Rows(rows)
            }
            Ok(Reply::Done { affected }) => Answer::Done(affected),
            Err(Error::Server {
                number, message, ..
            }) => Answer::Refused(number, message),
            Err(Error::Connection(_)) => Answer::Lost,
        }
    }

    pub fn agrees_with(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::Rows(a), Answer::Rows(b)) => agree(a, b),
            (Answer::Done(a), Answer::Done(b)) => a == b,
            (Answer::Lost, _) | (_, Answer::Lost) => true,
            (Answer::Refused(..), Answer::Refused(..)) => true,
            // What needn't be computed may overflow on one path, and not on another.
            (Answer::Refused(1690, _), Answer::Rows(_))
            | (Answer::Rows(_), Answer::Refused(1690, _)) => true,
            (refused @ Answer::Refused(..), Answer::Rows(_) | Answer::Done(_)) => {
                refused.refuses_a_lossy_conversion()
            }
            _ => false,
        }
    }

    /// Whether two answers have the same rows but for numbers that differ by so much, relative to
    /// the greater one.
    pub fn is_roughly(&self, other: &Answer, by: f64) -> bool {
        let (Answer::Rows(a), Answer::Rows(b)) = (self, other) else {
            return false;
        };
        let number = |value: &Option<Vec<u8>>| -> Option<f64> {
            std::str::from_utf8(value.as_deref()?).ok()?.parse().ok()
        };
        let near = |(a, b): (&Option<Vec<u8>>, &Option<Vec<u8>>)| match (number(a), number(b)) {
            (Some(a), Some(b)) => (a - b).abs() <= by * a.abs().max(b.abs()).max(1.0),
            _ => fold(a) == fold(b),
        };
        let rows_near = |(a, b): (&Row, &Row)| a.iter().zip(b).all(near);
        a.len() == b.len() && a.iter().zip(b).all(rows_near)
    }

    /// Refused because a text that isn't a constant might have characters that latin1 lacks. A plan
    /// of Porpoise serves all literals, so that it can't look at one beforehand; it loses nothing,
    /// as it stores texts of all character sets alike.
    fn refuses_a_lossy_conversion(&self) -> bool {
        let Answer::Refused(1267 | 1270 | 1271, message) = self else {
            return false;
        };
        message.contains("latin1_swedish_ci,IMPLICIT") && message.contains("COERCIBLE")
    }

    pub fn shown(&self) -> String {
        match self {
            Answer::Rows(rows) => {
                let mut text = format!("{} rows:", rows.len());
                for row in rows.iter().take(SHOWN_MAX) {
                    let values = row.iter().map(|value| slt::text(value.as_deref()));
                    let _ = write!(text, " ({})", values.collect::<Vec<_>>().join(", "));
                }
                text
            }
            Answer::Done(affected) => format!("{affected} rows changed"),
            Answer::Refused(number, message) => format!("ERROR {number}: {message}"),
            Answer::Lost => "nothing".to_string(),
        }
    }
}

/// Prints a difference. Of rows, those that the other answer lacks.
pub fn report(seed: u64, sql: &str, how: &str, expected: &Answer, got: &Answer) {
    println!("seed {seed}: {sql};\n  {how}");
    let (lacking, more) = match (expected, got) {
        (Answer::Rows(expected), Answer::Rows(got)) => {
            (only_in(expected, got), only_in(got, expected))
        }
        _ => (expected.shown(), got.shown()),
    };
    println!("  expected {lacking}\n       got {more}");
}

/// The rows that only `rows` hold, as text.
fn only_in(rows: &[Row], others: &[Row]) -> String {
    let key = |row: &Row| row.iter().map(fold).collect::<Vec<_>>();
    let mut left: Vec<_> = others.iter().map(key).collect();
    let mut differs = |row: &&Row| {
        let key = key(row);
        match left.iter().position(|other| *other == key) {
            Some(at) => {
                left.swap_remove(at);
                false
            }
            None => true,
        }
    };
    let differing: Vec<Row> = rows.iter().filter(|row| differs(row)).cloned().collect();
    format!("of {} rows {}", rows.len(), Answer::Rows(differing).shown())
}

/// Whether two answers hold the same rows.
fn agree(a: &[Row], b: &[Row]) -> bool {
    if a == b {
        return true;
    }
    if a.len() != b.len() {
        return false;
    }
    let folded = |rows: &[Row]| {
        let mut rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(fold).collect())
            .collect();
        rows.sort();
        rows
    };
    folded(a) == folded(b)
}

/// A value as it is compared: numbers by thirteen digits, texts without case, accents and trailing
/// spaces.
pub fn fold(value: &Option<Vec<u8>>) -> String {
    let Some(value) = value else {
        return "NULL".to_string();
    };
    let text = match std::str::from_utf8(value) {
        Ok(text) => text.to_string(),
        // A client in latin1 gets it so.
        Err(_) => value.iter().copied().map(char::from).collect(),
    };
    if text.contains(['.', 'e'])
        && let Ok(number) = text.parse::<f64>()
    {
        // There is no negative zero among exact numbers.
        return format!("{:.12e}", number + 0.0);
    }
    let folded = text.trim_end().to_lowercase().replace("ss", "s");
    // ß equals s in some collations, ss in others.
    folded
        .replace('é', "e")
        .replace('ß', "s")
        .replace("ss", "s")
}
