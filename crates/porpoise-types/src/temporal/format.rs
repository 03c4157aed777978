//! `DATE_FORMAT` and `TIME_FORMAT`, in the language asked for, and `STR_TO_DATE`, in English (MySQL
//! 8.4 manual, 14.7).

use super::locale::Locale;
use super::{Date, DateMode, DateTime, MICROS_PER_SECOND, Time, day_number, push_digits};

/// The months' English names.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Monday first, as `WEEKDAY` counts.
pub const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// What is formatted: a date that may be impossible, and a time of day or a span.
struct FormatParts {
    date: Date,
    time: Time,
    /// A TIME has no month or weekday to name.
    is_time: bool,
}

/// `DATE_FORMAT(value, pattern)`; `None` where MySQL gives NULL: a name asked of month 0, for
/// example.
pub fn date_format(value: DateTime, pattern: &str, locale: &Locale) -> Option<String> {
    format(
        &FormatParts {
            date: value.date(),
            time: value.time(),
            is_time: false,
        },
        pattern,
        locale,
    )
}

/// `TIME_FORMAT(value, pattern)`: hours may be more than 23; parts of a date are 0, their names
/// NULL.
pub fn time_format(value: Time, pattern: &str) -> Option<String> {
    format(
        &FormatParts {
            date: Date::ZERO,
            time: value,
            is_time: true,
        },
        pattern,
        Locale::english(),
    )
}

fn format(parts: &FormatParts, pattern: &str, locale: &Locale) -> Option<String> {
    let FormatParts {
        date,
        time,
        is_time,
    } = parts;
    let (hours, hour12) = (time.hours(), (time.hours() + 11) % 12 + 1);
    let day_half = if time.hours() % 24 < 12 { "AM" } else { "PM" };
    let weekday = || {
        let known = !is_time && (date.month() > 0 || date.year() > 0);
        known.then(|| date.weekday())
    };
    let week = |mode: u32| (!is_time).then(|| date.week(mode));
    let mut out = Vec::with_capacity(pattern.len() + 16);
    if time.is_negative() {
        out.push(b'-');
    }
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let specifier = match c {
            '%' => match chars.next() {
                Some(s) => s,
                None => break,
            },
            other => {
                out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        match specifier {
            'a' => out.extend_from_slice(locale.weekday_short(weekday()?)?.as_bytes()),
            'b' => out.extend_from_slice(locale.month_short(date.month())?.as_bytes()),
            'c' => push_digits(&mut out, date.month(), 1),
            'D' => {
                push_digits(&mut out, date.day(), 1);
                out.extend_from_slice(ordinal_suffix(date.day()));
            }
            'd' => push_digits(&mut out, date.day(), 2),
            'e' => push_digits(&mut out, date.day(), 1),
            'f' => push_digits(&mut out, time.microsecond(), 6),
            'H' => push_digits(&mut out, hours, 2),
            'h' | 'I' => push_digits(&mut out, hour12, 2),
            'i' => push_digits(&mut out, time.minute(), 2),
            'j' => {
                if *is_time {
                    return None;
                }
                push_digits(&mut out, date.day_of_year(), 3)
            }
            'k' => push_digits(&mut out, hours, 1),
            'l' => push_digits(&mut out, hour12, 1),
            'M' => out.extend_from_slice(locale.month(date.month())?.as_bytes()),
            'm' => push_digits(&mut out, date.month(), 2),
            'p' => out.extend_from_slice(day_half.as_bytes()),
            'r' | 'T' => {
                push_digits(&mut out, if specifier == 'r' { hour12 } else { hours }, 2);
                out.push(b':');
                push_digits(&mut out, time.minute(), 2);
                out.push(b':');
                push_digits(&mut out, time.second(), 2);
                if specifier == 'r' {
                    out.push(b' ');
                    out.extend_from_slice(day_half.as_bytes());
                }
            }
            'S' | 's' => push_digits(&mut out, time.second(), 2),
            'U' => push_digits(&mut out, week(0)?.0, 2),
            'u' => push_digits(&mut out, week(1)?.0, 2),
            'V' => push_digits(&mut out, week(2)?.0, 2),
            'v' => push_digits(&mut out, week(3)?.0, 2),
            'W' => out.extend_from_slice(locale.weekday(weekday()?)?.as_bytes()),
            'w' => push_digits(&mut out, (weekday()? + 1) % 7, 1),
            'X' => push_digits(&mut out, week(2)?.1.max(0) as u32, 4),
            'x' => push_digits(&mut out, week(3)?.1.max(0) as u32, 4),
            'Y' => push_digits(&mut out, date.year(), 4),
            'y' => push_digits(&mut out, date.year() % 100, 2),
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    String::from_utf8(out).ok()
}

fn ordinal_suffix(n: u32) -> &'static [u8] {
    match (n % 10, n % 100) {
        (_, 11..=13) => b"th",
        (1, _) => b"st",
        (2, _) => b"nd",
        (3, _) => b"rd",
        _ => b"th",
    }
}

/// What `STR_TO_DATE` found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParsedByFormat {
    /// A time, its days among its hours.
    Time(Time),
    /// A date and a time of day; what the text doesn't say is 0.
    DateTime(DateTime),
}

/// What a text said by a pattern.
#[derive(Default)]
struct ScannedFields {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    /// Hours are on a clock of twelve.
    twelve: bool,
    /// Whether `%p` was there, and said PM.
    afternoon: Option<bool>,
    day_of_year: Option<u32>,
    /// A week's number, and whether weeks start on Sunday.
    week: Option<(u32, bool)>,
    /// The year that a `%V` or `%v` week belongs to.
    week_year: Option<u32>,
    /// 0 = Monday.
    weekday: Option<u32>,
}

/// `STR_TO_DATE(text, pattern)`, and whether the pattern was at its end before the text was; `None`
/// where MySQL gives NULL. `as_time`: the result is a time, which a day may belong to, but no other
/// part of a date.
pub fn str_to_date(
    text: &str,
    pattern: &str,
    as_time: bool,
    mode: DateMode,
) -> Option<(ParsedByFormat, bool)> {
    let mut found = ScannedFields::default();
    let mut rest = text.trim_start();
    scan(&mut rest, pattern, &mut found)?;
    let is_longer = !rest.trim_start().is_empty();
    // Without hours of twelve there are no halves of the day.
    if found.afternoon.is_some() && !found.twelve {
        return None;
    }
    if found.twelve {
        if !(1..=12).contains(&found.hour) {
            return None;
        }
        found.hour = found.hour % 12 + if found.afternoon == Some(true) { 12 } else { 0 };
    }
    let mut date = Date::new(found.year, found.month, found.day)?;
    if let Some(n) = found.day_of_year {
        date = match n {
            // It says nothing.
            0 => Date::new(found.year, 0, 0)?,
            // In the calendar there is no year 0; it has the days of year 1.
            1..=365 if found.year == 0 => {
                let next = Date::from_day_number(365 + i64::from(n))?;
                Date::new(0, next.month(), next.day())?
            }
            n => Date::from_day_number(day_number(found.year as i64, 1, 1) + n as i64 - 1)?,
        };
    } else if let (Some(week), Some(weekday)) = (found.week, found.weekday) {
        date = date_of_week(
            found.week_year.unwrap_or(found.year),
            week,
            weekday,
            found.week_year.is_some(),
        )?;
    }
    if !as_time {
        // Here NO_ZERO_DATE alone refuses zeros in dates, a year's too.
        let has_zero = date.year() == 0 || date.month() == 0 || date.day() == 0;
        if !date.is_allowed(mode) || mode.no_zero_date && has_zero {
            return None;
        }
    }
    let parsed = if as_time {
        let hours = i64::from(found.day) * 24 + i64::from(found.hour);
        let clock = DateTime::new(Date::ZERO, 0, found.minute, found.second, found.micros)?;
        let micros = hours * 3600 * MICROS_PER_SECOND + clock.micros_of_day();
        let time = Time::from_micros(micros).filter(|_| found.hour < 24)?;
        ParsedByFormat::Time(time)
    } else {
        let (hour, minute, second) = (found.hour, found.minute, found.second);
        ParsedByFormat::DateTime(DateTime::new(date, hour, minute, second, found.micros)?)
    };
    Some((parsed, is_longer))
}

/// The date of a weekday in a week of a year. `strict` weeks (`%V`, `%v`) belong to the year given
/// with them; week 1 of Monday weeks is the first with four days.
fn date_of_week(
    year: u32,
    (week, sunday_first): (u32, bool),
    weekday: u32,
    strict: bool,
) -> Option<Date> {
    if week > 53 || (strict && week == 0) {
        return None;
    }
    let first = day_number(year as i64, 1, 1);
    let weekday_of_first = (first + 5 + sunday_first as i64).rem_euclid(7);
    let day = if sunday_first {
        let to_first_sunday = if weekday_of_first == 0 { 0 } else { 7 };
        to_first_sunday - weekday_of_first + (week as i64 - 1) * 7 + (weekday as i64 + 1) % 7
    } else {
        let to_first_monday = if weekday_of_first <= 3 { 0 } else { 7 };
        to_first_monday - weekday_of_first + (week as i64 - 1) * 7 + weekday as i64
    };
    Date::from_day_number(first + day)
}

/// Reads up to `max` digits off the front.
fn take_number(text: &mut &str, max: usize) -> Option<(u32, usize)> {
    let len = text
        .bytes()
        .take(max)
        .take_while(u8::is_ascii_digit)
        .count();
    let value = text[..len].parse().ok()?;
    *text = &text[len..];
    Some((value, len))
}

/// The index of the name the text begins with, any case.
fn take_name(text: &mut &str, names: &[&str], letters: usize) -> Option<u32> {
    names
        .iter()
        .position(|name| {
            let name = &name[..letters.min(name.len())];
            let found = text
                .get(..name.len())
                .is_some_and(|t| t.eq_ignore_ascii_case(name));
            if found {
                *text = &text[name.len()..];
            }
            found
        })
        .map(|i| i as u32)
}

fn scan(text: &mut &str, pattern: &str, found: &mut ScannedFields) -> Option<()> {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        *text = text.trim_ascii_start();
        if text.is_empty() {
            return Some(());
        }
        if c.is_ascii_whitespace() {
            continue;
        }
        let specifier = match c {
            '%' => chars.next()?,
            literal => {
                *text = text.strip_prefix(literal)?;
                continue;
            }
        };
        match specifier {
            'Y' => {
                let (year, len) = take_number(text, 4)?;
                found.year = full_year(year, len);
            }
            'y' => found.year = full_year(take_number(text, 2)?.0, 2),
            'm' | 'c' => found.month = take_number(text, 2)?.0,
            'M' => found.month = take_name(text, &MONTHS, usize::MAX)? + 1,
            'b' => found.month = take_name(text, &MONTHS, 3)? + 1,
            'd' | 'e' => found.day = take_number(text, 2)?.0,
            'D' => {
                found.day = take_number(text, 2)?.0;
                *text = text.get(2..).unwrap_or_default();
            }
            'H' | 'k' => found.hour = take_number(text, 2)?.0,
            'h' | 'I' | 'l' => {
                found.hour = take_number(text, 2)?.0;
                found.twelve = true;
            }
            'i' => found.minute = take_number(text, 2)?.0,
            's' | 'S' => found.second = take_number(text, 2)?.0,
            'f' => {
                let (n, len) = take_number(text, 6)?;
                found.micros = n * 10u32.pow(6 - len as u32);
            }
            'p' => found.afternoon = Some(take_name(text, &["AM", "PM"], 2)? == 1),
            'W' => found.weekday = Some(take_name(text, &WEEKDAYS, usize::MAX)?),
            'a' => found.weekday = Some(take_name(text, &WEEKDAYS, 3)?),
            'w' => match take_number(text, 1)?.0 {
                n @ 0..=6 => found.weekday = Some((n + 6) % 7),
                _ => return None,
            },
            'j' => found.day_of_year = Some(take_number(text, 3)?.0),
            'U' | 'V' => found.week = Some((take_number(text, 2)?.0, true)),
            'u' | 'v' => found.week = Some((take_number(text, 2)?.0, false)),
            'X' | 'x' => found.week_year = Some(take_number(text, 4)?.0),
            'r' => scan(text, "%I:%i:%S %p", found)?,
            'T' => scan(text, "%H:%i:%S", found)?,
            '.' => *text = text.trim_start_matches(|c: char| c.is_ascii_punctuation()),
            '@' => *text = text.trim_start_matches(char::is_alphabetic),
            '#' => *text = text.trim_start_matches(|c: char| c.is_ascii_digit()),
            literal => *text = text.strip_prefix(literal)?,
        }
    }
    Some(())
}

fn full_year(year: u32, digits: usize) -> u32 {
    match (digits, year) {
        (..=2, 0..=69) => 2000 + year,
        (..=2, _) => 1900 + year,
        _ => year,
    }
}

/// The type that `STR_TO_DATE` with this pattern has: (has a date part, has a time part, has
/// microseconds). A day beside parts of a time, without month or year, is one of its days.
pub fn format_parts(pattern: &str) -> (bool, bool, bool) {
    let (mut date, mut day, mut time, mut micros) = (false, false, false, false);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '%' {
            match chars.next() {
                Some('f') => (time, micros) = (true, true),
                Some('H' | 'h' | 'I' | 'i' | 'k' | 'l' | 'p' | 'r' | 'S' | 's' | 'T') => {
                    time = true
                }
                Some('%' | '.' | '@' | '#') | None => {}
                Some('d' | 'D' | 'e') => day = true,
                Some(_) => date = true,
            }
        }
    }
    (date || (day && !time), time, micros)
}

/// `SEC_TO_TIME`, `TIMEDIFF` and their kin: seconds and microseconds to a time, clamped.
pub fn time_from_seconds(seconds: i64, micros: i64) -> Time {
    Time::from_micros_clamped(
        seconds
            .saturating_mul(MICROS_PER_SECOND)
            .saturating_add(micros),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::parse;
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime {
        parse::datetime(text, DateMode::default()).0
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn dates_are_formatted_by_every_specifier() {
        let facts = [
            (
                "2024-01-03 04:05:06.789",
                "%a|%b|%c|%D|%d|%e|%f|%H|%h|%I|%i|%j|%k|%l|%M|%m|%p",
                "Wed|Jan|1|3rd|03|3|789000|04|04|04|05|003|4|4|January|01|AM",
            ),
            (
                "2024-01-03 04:05:06.789",
                "%r|%S|%s|%T|%U|%u|%V|%v|%W|%w|%X|%x|%Y|%y|%%|%q",
                "04:05:06 AM|06|06|04:05:06|00|01|53|01|Wednesday|3|2023|2024|2024|24|%|q",
            ),
            (
                "2024-01-12 12:00:00",
                "%D %p %h %l %r",
                "12th PM 12 12 12:00:00 PM",
            ),
            ("2024-12-31", "%U %u %V %v %X %x", "52 53 52 01 2024 2025"),
            ("2023-01-01", "%U %u %V %v %X %x", "01 00 01 52 2023 2022"),
            ("2024-00-00", "%d %m", "00 00"),
            ("2024-01-00", "%W", "Sunday"),
        ];
        for (text, pattern, expected) in facts {
            assert_eq!(
                date_format(at(text), pattern, Locale::english()).as_deref(),
                Some(expected),
                "{text} {pattern}"
            );
        }
        assert_eq!(date_format(at("2024-00-00"), "%b", Locale::english()), None);
        assert_eq!(
            time_format(parse::time("-10:05:06").0, "%H:%i:%s").as_deref(),
            Some("-10:05:06")
        );
        assert_eq!(
            time_format(parse::time("100:05:06").0, "%H %k %h %l").as_deref(),
            Some("100 100 04 4")
        );
        assert_eq!(time_format(Time::ZERO, "%M"), None);
    }

    /// Checked on MariaDB 10.11; that impossible dates are NULL is MySQL's.
    #[test]
    fn texts_are_read_by_a_pattern() {
        let facts = [
            ("01,5,2013", "%d,%m,%Y", "2013-05-01"),
            ("May 1, 2013", "%M %d,%Y", "2013-05-01"),
            ("a09:30:17", "a%h:%i:%s", "09:30:17"),
            ("a09:30:17", "%h:%i:%s", "NULL"),
            ("09:30:17a", "%h:%i:%s", "09:30:17"),
            ("abc", "abc", "0000-00-00"),
            ("9", "%m", "0000-09-00"),
            ("9", "%s", "00:00:09"),
            ("200442 Monday", "%X%V %W", "2004-10-18"),
            (
                "2024-01-31 10:11:12.5",
                "%Y-%m-%d %H:%i:%s.%f",
                "2024-01-31 10:11:12.500000",
            ),
            ("10:11:12 PM", "%r", "22:11:12"),
            ("13:11:12", "%T", "13:11:12"),
            ("99-1-1", "%y-%m-%d", "1999-01-01"),
            ("32 2024", "%j %Y", "2024-02-01"),
            ("2024-02-30", "%Y-%m-%d", "NULL"),
            ("3rd Jan 2024", "%D %b %Y", "2024-01-03"),
            ("2024 5 Mon", "%Y %u %a", "2024-01-29"),
            ("12:30 am", "%h:%i %p", "00:30:00"),
            ("20240131", "%Y%m%d", "2024-01-31"),
            ("2024-01-31", "%Y-%m-%d %H", "2024-01-31 00:00:00"),
            ("00:00:60", "%T", "NULL"),
            ("2024-01-31x", "%Y-%m-%d", "2024-01-31"),
            ("2024-13-01", "%Y-%m-%d", "NULL"),
        ];
        for (text, pattern, expected) in facts {
            let (has_date, has_time, _) = format_parts(pattern);
            let as_time = has_time && !has_date;
            let shown = match str_to_date(text, pattern, as_time, DateMode::default()) {
                Some((ParsedByFormat::Time(v), _)) => v.to_string(),
                Some((ParsedByFormat::DateTime(v), _)) if has_time => v.to_string(),
                Some((ParsedByFormat::DateTime(v), _)) => v.date().to_string(),
                None => "NULL".into(),
            };
            assert_eq!(shown, expected, "{text} {pattern}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_panics(text in ".{0,20}|[0-9 :-]{0,20}", pattern in "(%[A-Za-z.@#%]|.){0,6}", micros in any::<i64>()) {
            for as_time in [false, true] {
                str_to_date(&text, &pattern, as_time, DateMode::default());
            }
            date_format(DateTime::from_unix_micros(micros % 10_000_000_000_000_000).unwrap_or_default(), &pattern, Locale::english());
            time_format(Time::from_micros_clamped(micros), &pattern);
        }

        #[test]
        fn what_is_formatted_is_read_back(micros in 0i64..100_000_000_000_000_000) {
            let v = DateTime::from_linear_micros(micros + 400 * 86_400_000_000).unwrap();
            for pattern in ["%Y-%m-%d %H:%i:%s.%f", "%X %V %W %T.%f", "%x %v %a %r.%f", "%Y %j %I:%i:%s.%f %p"] {
                let text = date_format(v, pattern, Locale::english()).unwrap();
                let read = str_to_date(&text, pattern, false, DateMode::default());
                prop_assert_eq!(read, Some((ParsedByFormat::DateTime(v), false)), "{} {}", text, pattern);
            }
        }
    }
}
