//! MySQL's relaxed temporal texts and numbers.

use super::{Date, DateMode, DateTime, Time};
use crate::Loss;

/// A parsed value and what was lost: `Truncated` (garbage after it), `BadTemporal` (the value is zero),
/// `OutOfRange` (clamped).
pub type Parsed<T> = (T, Loss);

/// `'2024-01-31 10:11:12.5'`, `'24-1-31'`, `'20240131101112'`, `'2024.01.31T10:11:12'` …
pub fn datetime(text: &str, mode: DateMode) -> Parsed<DateTime> {
    let _ = (text, mode);
    (DateTime::ZERO, Loss::BadTemporal)
}

/// A date; a time of day behind it is dropped with a `Rounded`.
pub fn date(text: &str, mode: DateMode) -> Parsed<Date> {
    let (v, loss) = datetime(text, mode);
    (v.date(), loss)
}

/// `'10:11:12.5'`, `'1 10:11'`, `'101112'`, `'-838:59:59'`, or a datetime's time of day.
pub fn time(text: &str) -> Parsed<Time> {
    let _ = text;
    (Time::ZERO, Loss::BadTemporal)
}

/// 20240131, 240131, 20240131101112, with microseconds apart.
pub fn datetime_from_number(number: i64, micros: u32, mode: DateMode) -> Parsed<DateTime> {
    let _ = (number, micros, mode);
    (DateTime::ZERO, Loss::BadTemporal)
}

/// 101112 or a datetime's number.
pub fn time_from_number(number: i64, micros: u32) -> Parsed<Time> {
    let _ = (number, micros);
    (Time::ZERO, Loss::BadTemporal)
}
