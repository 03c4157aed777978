//! `DATE_FORMAT`, `TIME_FORMAT` and `STR_TO_DATE`.

use super::{DateMode, DateTime, Time};

/// `DATE_FORMAT(value, pattern)` in English; `None` where MySQL gives NULL.
pub fn date_format(value: DateTime, pattern: &str) -> Option<String> {
    let _ = (value, pattern);
    None
}

/// `TIME_FORMAT(value, pattern)`.
pub fn time_format(value: Time, pattern: &str) -> Option<String> {
    let _ = (value, pattern);
    None
}

/// What `STR_TO_DATE` found: parts of a date, of a time, or both, by what the pattern asks for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParsedByFormat {
    Date(super::Date),
    Time(Time),
    DateTime(DateTime),
}

/// `STR_TO_DATE(text, pattern)`; `None` where MySQL gives NULL.
pub fn str_to_date(text: &str, pattern: &str, mode: DateMode) -> Option<ParsedByFormat> {
    let _ = (text, pattern, mode);
    None
}

/// The type that `STR_TO_DATE` with this pattern has: (has a date part, has a time part, has microseconds).
pub fn format_parts(pattern: &str) -> (bool, bool, bool) {
    let (mut date, mut time, mut micros) = (false, false, false);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '%' {
            match chars.next() {
                Some('f') => (time, micros) = (true, true),
                Some('H' | 'h' | 'I' | 'i' | 'k' | 'l' | 'p' | 'r' | 'S' | 's' | 'T') => {
                    time = true
                }
                Some('%') | None => {}
                Some(_) => date = true,
            }
        }
    }
    (date, time, micros)
}
