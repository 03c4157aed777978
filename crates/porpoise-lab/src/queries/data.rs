//! What generators are made of: values, days, and random numbers that are a row's own.
//!
//! A row is a function of the seed, the table and the row's number. So tables that have to agree
//! (an order's total is that of its lines) are generated apart, each from the same numbers, and
//! nothing is kept in memory.

use std::fmt::Write;

use fastrand::Rng;

/// A value of a generated row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A DECIMAL of two places, in hundredths.
    Hundredths(i64),
    /// A text.
    Text(String),
    /// A date.
    Day(Day),
}

impl Value {
    /// Appends the literal that stands for it in SQL.
    pub(super) fn write_literal(&self, sql: &mut String) {
        let written = match self {
            Self::Null => write!(sql, "NULL"),
            Self::Int(number) => write!(sql, "{number}"),
            Self::Hundredths(number) => {
                let sign = if *number < 0 { "-" } else { "" };
                let number = number.unsigned_abs();
                write!(sql, "{sign}{}.{:02}", number / 100, number % 100)
            }
            Self::Day(day) => write!(sql, "'{day}'"),
            Self::Text(text) if text.contains(['\'', '\\']) => {
                let text = text.replace('\\', "\\\\").replace('\'', "''");
                write!(sql, "'{text}'")
            }
            Self::Text(text) => write!(sql, "'{text}'"),
        };
        written.expect("a String takes every write");
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(number as i64)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Day> for Value {
    fn from(day: Day) -> Self {
        Self::Day(day)
    }
}

/// A day of the Gregorian calendar, as days since 1 March of the year 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

/// Days in 400, 100 and 4 years that begin on 1 March, as leap days come last in these.
const DAYS_400: i64 = 146_097;
const DAYS_100: i64 = 36_524;
const DAYS_4: i64 = 1_461;

impl Day {
    /// A date; months and days count from 1.
    pub const fn of(year: i64, month: i64, day: i64) -> Self {
        let year = if month < 3 { year - 1 } else { year };
        let month = (month + 9) % 12;
        let leap_days = year / 4 - year / 100 + year / 400;
        Self(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1)
    }

    /// Its year, month and day of the month.
    pub fn civil(self) -> (i64, i64, i64) {
        let (era, rest) = (self.0 / DAYS_400, self.0 % DAYS_400);
        let century = (rest / DAYS_100).min(3);
        let rest = rest - century * DAYS_100;
        let (fours, rest) = (rest / DAYS_4, rest % DAYS_4);
        let one = (rest / 365).min(3);
        let rest = rest - one * 365;
        let year = era * 400 + century * 100 + fours * 4 + one;
        let month = (rest * 5 + 2) / 153;
        let day = rest - (month * 153 + 2) / 5 + 1;
        match month {
            0..10 => (year, month + 3, day),
            _ => (year + 1, month - 9, day),
        }
    }

    /// So many days later.
    pub const fn plus(self, days: i64) -> Self {
        Self(self.0 + days)
    }

    /// Days from another one to this.
    pub const fn since(self, other: Self) -> i64 {
        self.0 - other.0
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = self.civil();
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

/// The random numbers of one row of one table.
pub(crate) fn row_random(seed: u64, table: &str, row: u64) -> Rng {
    let mut state = mixed(seed);
    for byte in table.bytes() {
        state = mixed(state ^ u64::from(byte));
    }
    Rng::with_seed(mixed(state ^ row))
}

/// Neighbouring numbers become unlike numbers (the finaliser of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// One of several, each as likely as the others.
pub(super) fn pick<T: Copy>(random: &mut Rng, among: &[T]) -> T {
    among[random.usize(0..among.len())]
}

/// A text of so many characters out of 64: letters, digits, comma and blank.
pub(super) fn random_text(random: &mut Rng, length: usize) -> String {
    const CHARACTERS: &[u8; 64] =
        b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789, ";
    let character = |_| char::from(CHARACTERS[random.usize(0..CHARACTERS.len())]);
    (0..length).map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates_and_back() {
        let mut day = Day::of(1992, 1, 1);
        let (mut year, mut month, mut date) = (1992, 1, 1);
        for _ in 0..4_000 {
            assert_eq!(day.civil(), (year, month, date));
            assert_eq!(day, Day::of(year, month, date));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, date) = match (month, date == last) {
                (_, false) => (year, month, date + 1),
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
            };
            day = day.plus(1);
        }
        assert_eq!(Day::of(2000, 2, 29).plus(1), Day::of(2000, 3, 1));
        assert_eq!(Day::of(1900, 2, 28).plus(1), Day::of(1900, 3, 1));
        assert_eq!(Day::of(1998, 12, 31).since(Day::of(1992, 1, 1)), 2556);
    }

    #[test]
    fn literals_are_what_sql_reads() {
        let literal = |value: Value| {
            let mut sql = String::new();
            value.write_literal(&mut sql);
            sql
        };
        assert_eq!(literal(Value::Null), "NULL");
        assert_eq!(literal(Value::Int(-3)), "-3");
        assert_eq!(literal(Value::Hundredths(-5)), "-0.05");
        assert_eq!(literal(Value::Hundredths(12_345)), "123.45");
        assert_eq!(literal(Day::of(1995, 6, 17).into()), "'1995-06-17'");
        assert_eq!(literal("Tiresias' \\".into()), "'Tiresias'' \\\\'");
    }

    #[test]
    fn a_row_has_its_own_numbers() {
        let number = |seed, table, row| row_random(seed, table, row).u64(..);
        assert_eq!(number(1, "a", 1), number(1, "a", 1));
        assert_ne!(number(1, "a", 1), number(1, "a", 2));
        assert_ne!(number(1, "a", 1), number(1, "b", 1));
        assert_ne!(number(1, "a", 1), number(2, "a", 1));
    }
}
