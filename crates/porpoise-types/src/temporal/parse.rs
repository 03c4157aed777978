//! MySQL's relaxed temporal texts and numbers (MySQL 8.4 manual, 11.1.3 and 13.2.9).
//!
//! A datetime's text is either one run of digits (with a `T` inside, perhaps) cut into fields by
//! its length, or fields with punctuation between them:
//!
//! ```text
//! 20240131101112   240131   20240131T101112.5      YYYYMMDDhhmmss, YYMMDD: by length
//! 2024-01-31 10:11:12.5   24.1.31T10@11            fields, two-digit years from 1970 to 2069
//! ```
//!
//! A time's text is `[days ]hours:minutes[:seconds][.fraction]`, or digits read from the right as
//! hhmmss.

use super::{Date, DateMode, DateTime, MICROS_PER_SECOND, Time};
use crate::Loss;

/// A parsed value and what was lost: `Truncated` (garbage after it), `BadTemporal` (the value is
/// zero), `OutOfRange` (clamped), `Rounded` (a time of day behind a date).
pub type Parsed<T> = (T, Loss);

/// Reads bytes from left to right.
struct Scanner<'a> {
    rest: &'a [u8],
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }
    fn skip(&mut self, n: usize) {
        self.rest = self.rest.get(n..).unwrap_or_default();
    }
    fn skip_spaces(&mut self) -> usize {
        let n = self
            .rest
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        self.skip(n);
        n
    }
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.skip(1);
        }
        found
    }
    fn starts_with_digit(&self) -> bool {
        self.peek().is_some_and(|b| b.is_ascii_digit())
    }
    fn digits_ahead(&self) -> usize {
        self.rest.iter().take_while(|b| b.is_ascii_digit()).count()
    }
    /// Up to `max` digits; `None` if there is none.
    fn number(&mut self, max: usize) -> Option<u64> {
        let n = self.digits_ahead().min(max);
        if n == 0 {
            return None;
        }
        let value = self.rest[..n].iter().fold(0u64, |v, d| {
            v.saturating_mul(10).saturating_add((d - b'0') as u64)
        });
        self.skip(n);
        Some(value)
    }
    /// The digits after a point as microseconds, rounded at the seventh: up to 1,000,000.
    fn fraction(&mut self) -> u32 {
        let digits = &self.rest[..self.digits_ahead()];
        let micros = (0..6).fold(0, |v, i| {
            v * 10 + digits.get(i).map_or(0, |d| (d - b'0') as u32)
        });
        let up = digits.get(6).is_some_and(|&d| d >= b'5');
        self.skip(digits.len());
        micros + up as u32
    }
}

/// The year that two digits stand for: one between 1970 and 2069.
pub fn two_digit_year(year: u32) -> u32 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

/// The fields of a datetime: year, month, day, hour, minute, second, and microseconds up to
/// 1,000,000.
struct Fields {
    values: [u32; 6],
    micros: u32,
    /// The number of fields found.
    found: usize,
    loss: Loss,
}

fn datetime_fields(text: &str) -> Option<Fields> {
    let mut s = Scanner {
        rest: text.as_bytes(),
    };
    s.skip_spaces();
    let run = s
        .rest
        .iter()
        .take_while(|b| b.is_ascii_digit() || **b == b'T')
        .count();
    if !s.starts_with_digit() {
        return None;
    }
    let behind = s.rest.get(run..).unwrap_or_default();
    let compact =
        behind.is_empty() || (run >= 6 && (behind[0] == b'.' || behind.trim_ascii().is_empty()));
    let DateParts {
        mut values,
        found,
        year_digits,
    } = match compact {
        true => compact_parts(&mut s, run),
        false => delimited_parts(&mut s)?,
    };
    if found < 3 {
        return None;
    }
    let micros = if (found == 6 || compact) && s.eat(b'.') {
        s.fraction()
    } else {
        0
    };
    s.skip_spaces();
    if year_digits <= 2 && (values[..3] != [0, 0, 0] || values[3..] != [0, 0, 0]) {
        values[0] = two_digit_year(values[0]);
    }
    let loss = if s.rest.is_empty() {
        Loss::None
    } else {
        Loss::Truncated
    };
    Some(Fields {
        values,
        micros: if found == 6 { micros } else { 0 },
        found,
        loss,
    })
}

/// The numbers of a date and time, from the year to the second.
struct DateParts {
    values: [u32; 6],
    /// How many of them the text has.
    found: usize,
    year_digits: usize,
}

/// Reads digits without punctuation: `20241231T123000`, of which `run` bytes are digits or T.
fn compact_parts(s: &mut Scanner<'_>, run: usize) -> DateParts {
    let digits = s.rest[..run].iter().filter(|b| b.is_ascii_digit()).count();
    let year_digits = match digits {
        4 | 8 | 14.. => 4,
        _ => 2,
    };
    let (mut values, mut found) = ([0; 6], 0);
    for (i, value) in values.iter_mut().enumerate() {
        if i == 3 {
            s.eat(b'T');
        }
        let Some(n) = s.number(if i == 0 { year_digits } else { 2 }) else {
            break;
        };
        *value = n as u32;
        found += 1;
    }
    DateParts {
        values,
        found,
        year_digits,
    }
}

/// Reads numbers with punctuation between them: `2024-12-31 12:30:00`. `None` if one is too long.
fn delimited_parts(s: &mut Scanner<'_>) -> Option<DateParts> {
    let (mut values, mut found, mut year_digits) = ([0; 6], 0, 4);
    for (i, value) in values.iter_mut().enumerate() {
        let len = s.digits_ahead();
        if len > if i == 0 { 4 } else { 2 } {
            return None;
        }
        let Some(n) = s.number(4) else { break };
        if i == 0 {
            year_digits = len;
        }
        *value = n as u32;
        found += 1;
        if i == 5 {
            break;
        }
        let mut ahead = Scanner { rest: s.rest };
        if i == 2 {
            // Between date and time: a T or spaces, or punctuation as anywhere else.
            if !ahead.eat(b'T') && ahead.skip_spaces() == 0 && !skip_punctuation(&mut ahead, false)
            {
                break;
            }
        } else if !skip_punctuation(&mut ahead, i >= 3) {
            break;
        }
        if !ahead.starts_with_digit() {
            break;
        }
        s.rest = ahead.rest;
    }
    Some(DateParts {
        values,
        found,
        year_digits,
    })
}

/// Skips a run of punctuation; a point before the fraction is not a separator of seconds.
fn skip_punctuation(s: &mut Scanner, in_time: bool) -> bool {
    let n = s
        .rest
        .iter()
        .take_while(|b| b.is_ascii_punctuation() && !(in_time && **b == b'.'))
        .count();
    s.skip(n);
    n > 0
}

fn datetime_from_fields(fields: &Fields, mode: DateMode) -> Option<DateTime> {
    let [year, month, day, hour, minute, second] = fields.values;
    let date = Date::new(year, month, day).filter(|d| d.is_allowed(mode))?;
    let at = DateTime::new(date, hour, minute, second, fields.micros.min(999_999))?;
    if fields.micros > 999_999 {
        return at.truncate(0).round_up_second();
    }
    Some(at)
}

impl DateTime {
    fn round_up_second(self) -> Option<DateTime> {
        if !self.date().is_real() {
            return None;
        }
        DateTime::from_linear_micros(self.linear_micros() + MICROS_PER_SECOND)
    }
}

/// `'2024-01-31 10:11:12.5'`, `'24-1-31'`, `'20240131101112'`, `'2024.01.31T10:11:12'` …
pub fn datetime(text: &str, mode: DateMode) -> Parsed<DateTime> {
    match datetime_fields(text).and_then(|f| Some((datetime_from_fields(&f, mode)?, f.loss))) {
        Some(parsed) => parsed,
        None => (DateTime::ZERO, Loss::BadTemporal),
    }
}

/// A date; a time of day behind it is dropped with a `Rounded`.
pub fn date(text: &str, mode: DateMode) -> Parsed<Date> {
    let (value, loss) = datetime(text, mode);
    let dropped = if value.micros_of_day() != 0 {
        Loss::Rounded
    } else {
        Loss::None
    };
    (value.date(), loss.or(dropped))
}

/// The shortest text that is first tried as a datetime when a time is asked for.
const DATETIME_LEN_MIN: usize = 12;

/// `'10:11:12.5'`, `'1 10:11'`, `'101112'`, `'-838:59:59'`, or a datetime's time of day.
pub fn time(text: &str) -> Parsed<Time> {
    let text = text.trim_ascii();
    if text.len() >= DATETIME_LEN_MIN
        && let Some(fields) = datetime_fields(text)
        && fields.found >= 4
        && let Some(at) = datetime_from_fields(&fields, DateMode::default())
    {
        return (at.time(), fields.loss);
    }
    time_fields(text).unwrap_or((Time::ZERO, Loss::BadTemporal))
}

fn time_fields(text: &str) -> Option<Parsed<Time>> {
    let mut s = Scanner {
        rest: text.as_bytes(),
    };
    let negative = s.eat(b'-');
    let first = if s.peek() == Some(b'.') {
        0
    } else {
        s.number(20)?
    };
    let mut parts = [0u64; 3];
    let mut ahead = Scanner { rest: s.rest };
    if ahead.skip_spaces() > 0 && ahead.starts_with_digit() {
        parts[0] = first.saturating_mul(24).saturating_add(ahead.number(20)?);
        s.rest = ahead.rest;
        minutes_and_seconds(&mut s, &mut parts);
    } else if s.peek() == Some(b':') {
        parts[0] = first;
        minutes_and_seconds(&mut s, &mut parts);
    } else {
        parts = [first / 10_000, first / 100 % 100, first % 100];
    }
    let micros = if s.eat(b'.') { s.fraction() } else { 0 };
    let loss = if s.rest.is_empty() {
        Loss::None
    } else {
        Loss::Truncated
    };
    let (time, range) = clamp_time(negative, parts, micros)?;
    Some((time, loss.or(range)))
}

fn minutes_and_seconds(s: &mut Scanner, parts: &mut [u64; 3]) {
    for part in &mut parts[1..] {
        let mut ahead = Scanner { rest: s.rest };
        if !ahead.eat(b':') {
            return;
        }
        let Some(n) = ahead.number(20) else { return };
        *part = n;
        s.rest = ahead.rest;
    }
}

/// `None` for more than 59 minutes or seconds; more than 838:59:59 is clamped.
fn clamp_time(
    negative: bool,
    [hours, minutes, seconds]: [u64; 3],
    micros: u32,
) -> Option<Parsed<Time>> {
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let total = (hours.min(10_000) * 3600 + minutes * 60 + seconds) as i64 * MICROS_PER_SECOND
        + micros as i64;
    let total = if negative { -total } else { total };
    Some(match Time::from_micros(total) {
        Some(t) => (t, Loss::None),
        None => (Time::from_micros_clamped(total), Loss::OutOfRange),
    })
}

/// 20240131, 240131, 20240131101112, with microseconds apart, which count behind a time of day only:
/// a number of a date has none, and 0 has.
pub fn datetime_from_number(number: i64, micros: u32, mode: DateMode) -> Parsed<DateTime> {
    let bad = (DateTime::ZERO, Loss::BadTemporal);
    let n = match number {
        0 => 0,
        101..=691_231 => (number + 20_000_000) * 1_000_000,
        700_101..=991_231 => (number + 19_000_000) * 1_000_000,
        10_000_101..=99_991_231 => number * 1_000_000,
        101_000_000..=691_231_235_959 => number + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => number + 19_000_000_000_000,
        1_000_000_000_000..=99_991_231_235_959 => number,
        _ => return bad,
    };
    /// Greater numbers have a time of day.
    const DATE_MAX: i64 = 99_991_231;
    let micros = match number {
        1..=DATE_MAX => 0,
        _ => micros,
    };
    let part = |unit: i64, size: i64| (n / unit % size) as u32;
    let fields = Fields {
        values: [
            part(10_000_000_000, 10_000),
            part(100_000_000, 100),
            part(1_000_000, 100),
            part(10_000, 100),
            part(100, 100),
            part(1, 100),
        ],
        micros,
        found: 6,
        loss: Loss::None,
    };
    datetime_from_fields(&fields, mode).map_or(bad, |at| (at, Loss::None))
}

/// 101112 or a datetime's number.
pub fn time_from_number(number: i64, micros: u32) -> Parsed<Time> {
    let n = number.unsigned_abs();
    if n >= 10_000_000_000 {
        let (at, loss) = datetime_from_number(number, micros, DateMode::default());
        if loss.is_none() {
            return (at.time(), Loss::None);
        }
    }
    if n > 8_385_959 {
        return (
            if number < 0 { Time::MIN } else { Time::MAX },
            Loss::OutOfRange,
        );
    }
    clamp_time(number < 0, [n / 10_000, n / 100 % 100, n % 100], micros)
        .unwrap_or((Time::ZERO, Loss::BadTemporal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown<T: std::fmt::Display>((value, loss): Parsed<T>) -> String {
        match loss {
            Loss::BadTemporal => "NULL".into(),
            Loss::None => value.to_string(),
            other => format!("{value} {other:?}"),
        }
    }

    /// Checked on MariaDB 10.11, except where the MySQL 8.4 manual says otherwise.
    #[test]
    fn datetimes_are_read_in_every_relaxed_form() {
        let facts = [
            ("2024.01.31T10:11:12.5", "2024-01-31 10:11:12.500000"),
            ("24-1-31", "2024-01-31 00:00:00"),
            ("20240131101112", "2024-01-31 10:11:12"),
            ("240131", "2024-01-31 00:00:00"),
            ("2024-1-31 1:2:3", "2024-01-31 01:02:03"),
            ("2024-01-31 10", "2024-01-31 10:00:00"),
            ("20240131T101112", "2024-01-31 10:11:12"),
            ("  2024-01-31", "2024-01-31 00:00:00"),
            ("2024-02-30", "NULL"),
            ("2024-01-31xyz", "2024-01-31 00:00:00 Truncated"),
            ("2024-01-31 25:00:00", "NULL"),
            ("70-1-1", "1970-01-01 00:00:00"),
            ("69-1-1", "2069-01-01 00:00:00"),
            ("100-1-1", "0100-01-01 00:00:00"),
            ("2024-1", "NULL"),
            ("2024", "NULL"),
            ("10101", "2010-10-01 00:00:00"),
            ("", "NULL"),
            ("abc", "NULL"),
            ("24@1@31", "2024-01-31 00:00:00"),
            ("2024-01-31 101112", "NULL"),
            ("202401311011", "NULL"),
            ("2401311011", "2024-01-31 10:11:00"),
            ("240131101112.5", "2024-01-31 10:11:12.500000"),
            ("2024-01-31 10:11:12 ", "2024-01-31 10:11:12"),
            ("0000-00-00", "0000-00-00 00:00:00"),
            ("2024-00-00", "2024-00-00 00:00:00"),
            ("2024-12-31 23:59:59.9999999", "2025-01-01 00:00:00"),
            ("2024-01-31 10:11:12.1234564", "2024-01-31 10:11:12.123456"),
        ];
        for (text, expected) in facts {
            assert_eq!(
                shown(datetime(text, DateMode::default())),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn impossible_dates_are_refused_as_the_mode_says() {
        let strict = DateMode {
            no_zero_date: true,
            no_zero_in_date: true,
            allow_invalid_dates: false,
        };
        assert_eq!(date("0000-00-00", strict).1, Loss::BadTemporal);
        assert_eq!(date("2024-00-10", strict).1, Loss::BadTemporal);
        let lax = DateMode {
            allow_invalid_dates: true,
            ..DateMode::default()
        };
        assert_eq!(
            date("2024-02-31", lax),
            (Date::new(2024, 2, 31).unwrap(), Loss::None)
        );
        assert_eq!(date("2024-02-32", lax).1, Loss::BadTemporal);
        assert_eq!(date("2024-02-03 10:00", lax).1, Loss::Rounded);
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn numbers_are_dates_by_their_length() {
        let facts = [
            (20240131, "2024-01-31 00:00:00"),
            (240131, "2024-01-31 00:00:00"),
            (101, "2000-01-01 00:00:00"),
            (700101, "1970-01-01 00:00:00"),
            (691231, "2069-12-31 00:00:00"),
            (20240131101112, "2024-01-31 10:11:12"),
            (240131101112, "2024-01-31 10:11:12"),
            (0, "0000-00-00 00:00:00"),
            (1, "NULL"),
            (100, "NULL"),
            (10000, "2001-00-00 00:00:00"),
            (20241301, "NULL"),
            (1011112233, "2000-10-11 11:22:33"),
            (-1, "NULL"),
        ];
        for (n, expected) in facts {
            assert_eq!(
                shown(datetime_from_number(n, 0, DateMode::default())),
                expected,
                "{n}"
            );
        }
        assert_eq!(shown(time_from_number(-101112, 0)), "-10:11:12");
        assert_eq!(shown(time_from_number(1060, 0)), "NULL");
        assert_eq!(shown(time_from_number(8390000, 0)), "838:59:59 OutOfRange");
    }

    /// Checked on MariaDB 10.11; `D hh` is the MySQL manual's.
    #[test]
    fn times_are_read_in_every_relaxed_form() {
        let facts = [
            ("10:11:12.5", "10:11:12.500000"),
            ("1 10:11", "34:11:00"),
            ("1 10", "34:00:00"),
            ("101112", "10:11:12"),
            ("-838:59:59", "-838:59:59"),
            ("900:00:00", "838:59:59 OutOfRange"),
            ("10:11", "10:11:00"),
            ("1112", "00:11:12"),
            ("12", "00:00:12"),
            ("10:61:00", "NULL"),
            ("abc", "NULL"),
            ("2024-01-31 10:11:12", "10:11:12"),
            ("10:11:12abc", "10:11:12 Truncated"),
            ("35 00:00:00", "838:59:59 OutOfRange"),
            ("-1 02:03:04", "-26:03:04"),
            ("12.5", "00:00:12.500000"),
            ("20240131101112", "10:11:12"),
            ("1:2:3", "01:02:03"),
            ("", "NULL"),
            ("::", "NULL"),
            ("2 ", "00:00:02"),
            ("-", "NULL"),
            ("24-01-31 10:11", "10:11:00"),
            ("101112.5", "10:11:12.500000"),
            ("00:00:60", "NULL"),
            ("2024-01-31", "00:20:24 Truncated"),
        ];
        for (text, expected) in facts {
            assert_eq!(shown(time(text)), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9 :.TZ+-]{0,30}|.{0,20}") {
            datetime(&text, DateMode::default());
            time(&text);
        }

        #[test]
        fn what_is_printed_is_read_back(days in 366i64..3_652_424, micros in 0i64..86_400_000_000, span in -3_020_399_000_000i64..3_020_399_000_000) {
            let at = DateTime::from_linear_micros(days * super::super::MICROS_PER_DAY + micros).unwrap();
            prop_assert_eq!(at.date().day_number(), days);
            let mut text = Vec::new();
            at.write_text(6, &mut text);
            prop_assert_eq!(datetime(std::str::from_utf8(&text).unwrap(), DateMode::default()), (at, Loss::None));
            let span = Time::from_micros(span).unwrap();
            let mut text = Vec::new();
            span.write_text(6, &mut text);
            prop_assert_eq!(time(std::str::from_utf8(&text).unwrap()), (span, Loss::None));
        }
    }
}
