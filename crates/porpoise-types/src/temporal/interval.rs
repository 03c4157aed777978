//! `INTERVAL` arithmetic: what `date + INTERVAL 1 MONTH` means.
//!
//! An interval is months plus microseconds: months move the calendar (and the day is cut to the
//! month's last), microseconds move the clock.

use super::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, days_in_month};

/// A unit of `INTERVAL` (MySQL 8.4 manual, 11.5, "Temporal Intervals").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntervalUnit {
    /// `MICROSECOND`.
    Microsecond,
    /// `SECOND`.
    Second,
    /// `MINUTE`.
    Minute,
    /// `HOUR`.
    Hour,
    /// `DAY`.
    Day,
    /// `WEEK`.
    Week,
    /// `MONTH`.
    Month,
    /// `QUARTER`.
    Quarter,
    /// `YEAR`.
    Year,
    /// `SECOND_MICROSECOND`: `'s.f'`.
    SecondMicrosecond,
    /// `MINUTE_MICROSECOND`: `'m:s.f'`.
    MinuteMicrosecond,
    /// `MINUTE_SECOND`: `'m:s'`.
    MinuteSecond,
    /// `HOUR_MICROSECOND`: `'h:m:s.f'`.
    HourMicrosecond,
    /// `HOUR_SECOND`: `'h:m:s'`.
    HourSecond,
    /// `HOUR_MINUTE`: `'h:m'`.
    HourMinute,
    /// `DAY_MICROSECOND`: `'d h:m:s.f'`.
    DayMicrosecond,
    /// `DAY_SECOND`: `'d h:m:s'`.
    DaySecond,
    /// `DAY_MINUTE`: `'d h:m'`.
    DayMinute,
    /// `DAY_HOUR`: `'d h'`.
    DayHour,
    /// `YEAR_MONTH`: `'y-m'`.
    YearMonth,
}

/// The name of each unit, how many numbers its text has, and what each is worth: months or
/// microseconds.
#[rustfmt::skip]
const UNITS: [(IntervalUnit, &str, &[PartSize]); 20] = [
    (IntervalUnit::Microsecond,       "MICROSECOND",        &[Micros(1)]),
    (IntervalUnit::Second,            "SECOND",             &[SECOND]),
    (IntervalUnit::Minute,            "MINUTE",             &[MINUTE]),
    (IntervalUnit::Hour,              "HOUR",               &[HOUR]),
    (IntervalUnit::Day,               "DAY",                &[DAY]),
    (IntervalUnit::Week,              "WEEK",               &[Micros(7 * MICROS_PER_DAY)]),
    (IntervalUnit::Month,             "MONTH",              &[Months(1)]),
    (IntervalUnit::Quarter,           "QUARTER",            &[Months(3)]),
    (IntervalUnit::Year,              "YEAR",               &[Months(12)]),
    (IntervalUnit::SecondMicrosecond, "SECOND_MICROSECOND", &[SECOND, Micros(1)]),
    (IntervalUnit::MinuteMicrosecond, "MINUTE_MICROSECOND", &[MINUTE, SECOND, Micros(1)]),
    (IntervalUnit::MinuteSecond,      "MINUTE_SECOND",      &[MINUTE, SECOND]),
    (IntervalUnit::HourMicrosecond,   "HOUR_MICROSECOND",   &[HOUR, MINUTE, SECOND, Micros(1)]),
    (IntervalUnit::HourSecond,        "HOUR_SECOND",        &[HOUR, MINUTE, SECOND]),
    (IntervalUnit::HourMinute,        "HOUR_MINUTE",        &[HOUR, MINUTE]),
    (IntervalUnit::DayMicrosecond,    "DAY_MICROSECOND",    &[DAY, HOUR, MINUTE, SECOND, Micros(1)]),
    (IntervalUnit::DaySecond,         "DAY_SECOND",         &[DAY, HOUR, MINUTE, SECOND]),
    (IntervalUnit::DayMinute,         "DAY_MINUTE",         &[DAY, HOUR, MINUTE]),
    (IntervalUnit::DayHour,           "DAY_HOUR",           &[DAY, HOUR]),
    (IntervalUnit::YearMonth,         "YEAR_MONTH",         &[Months(12), Months(1)]),
];

#[derive(Clone, Copy)]
enum PartSize {
    Months(i64),
    Micros(i64),
}
use PartSize::{Micros, Months};
const SECOND: PartSize = Micros(MICROS_PER_SECOND);
const MINUTE: PartSize = Micros(60 * MICROS_PER_SECOND);
const HOUR: PartSize = Micros(3600 * MICROS_PER_SECOND);
const DAY: PartSize = Micros(MICROS_PER_DAY);

impl IntervalUnit {
    /// The unit of a name, in either case; `None` if there is no such unit.
    pub fn by_name(name: &str) -> Option<IntervalUnit> {
        UNITS
            .iter()
            .find(|u| u.1.eq_ignore_ascii_case(name))
            .map(|u| u.0)
    }

    /// The name as SQL has it, in upper case.
    pub fn name(self) -> &'static str {
        UNITS[self as usize].1
    }

    /// Whether an amount in this unit has several numbers (`DAY_HOUR`).
    pub fn is_compound(self) -> bool {
        self.part_sizes().len() > 1
    }

    fn part_sizes(self) -> &'static [PartSize] {
        debug_assert!(UNITS[self as usize].0 == self);
        UNITS[self as usize].2
    }

    /// Whether it has days, months or years: adding it to a TIME gives a DATETIME of today.
    pub fn has_days(self) -> bool {
        !self.has_time()
            || matches!(
                self,
                IntervalUnit::DayHour
                    | IntervalUnit::DayMinute
                    | IntervalUnit::DaySecond
                    | IntervalUnit::DayMicrosecond
            )
    }

    /// Whether adding it to a DATE gives a DATETIME.
    pub fn has_time(self) -> bool {
        !matches!(
            self,
            IntervalUnit::Day
                | IntervalUnit::Week
                | IntervalUnit::Month
                | IntervalUnit::Quarter
                | IntervalUnit::Year
                | IntervalUnit::YearMonth
        )
    }
}

/// A span: calendar months and clock microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    /// Months of the calendar.
    pub months: i64,
    /// Microseconds of the clock.
    pub micros: i64,
}

impl Interval {
    /// A whole number of a simple unit; `None` on overflow.
    pub fn from_count(count: i64, unit: IntervalUnit) -> Option<Interval> {
        // A compound unit given one number means its smallest part.
        match *unit.part_sizes().last()? {
            Months(m) => Some(Interval {
                months: count.checked_mul(m)?,
                micros: 0,
            }),
            Micros(m) => Some(Interval {
                months: 0,
                micros: count.checked_mul(m)?,
            }),
        }
    }

    /// Parses the text of a compound unit (`'1 2:30'` DAY_MINUTE): numbers with anything between
    /// them, filled from the right; a leading `-` makes all of it negative.
    pub fn parse(text: &str, unit: IntervalUnit) -> Option<Interval> {
        let part_sizes = unit.part_sizes();
        let text = text.trim();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut parts: Vec<(&str, i64)> = Vec::new();
        for part in text
            .split(|c: char| !c.is_ascii_digit())
            .filter(|p| !p.is_empty())
        {
            parts.push((part, part.parse().ok()?));
        }
        if parts.len() > part_sizes.len() {
            return None;
        }
        let mut interval = Interval::default();
        let offset = part_sizes.len() - parts.len();
        for (i, (digits, n)) in parts.iter().enumerate() {
            match part_sizes[offset + i] {
                Months(m) => interval.months = interval.months.checked_add(n.checked_mul(m)?)?,
                // '1.5' SECOND_MICROSECOND is 1.500000.
                Micros(1) if part_sizes.len() > 1 => {
                    let micros = n.checked_mul(
                        10i64.checked_pow(6u32.saturating_sub(digits.len() as u32))?,
                    )?;
                    interval.micros = interval.micros.checked_add(micros)?;
                }
                Micros(m) => interval.micros = interval.micros.checked_add(n.checked_mul(m)?)?,
            }
        }
        Some(if negative { -interval } else { interval })
    }
}

impl std::ops::Neg for Interval {
    type Output = Interval;
    fn neg(self) -> Interval {
        Interval {
            months: self.months.saturating_neg(),
            micros: self.micros.saturating_neg(),
        }
    }
}

impl DateTime {
    /// Adds an interval; `None` if the result leaves years 0 to 9999 or the date is impossible.
    pub fn checked_add(self, interval: Interval) -> Option<DateTime> {
        let mut at = self;
        if interval.months != 0 {
            at = DateTime::from_parts(
                self.date().add_months(interval.months)?,
                self.micros_of_day(),
            );
        }
        if interval.micros != 0 {
            if !at.date().is_real() {
                return None;
            }
            at = DateTime::from_linear_micros(at.linear_micros().checked_add(interval.micros)?)?;
        }
        Some(at)
    }

    /// Whole units from `self` to `other` (`TIMESTAMPDIFF`).
    pub fn difference(self, other: DateTime, unit: IntervalUnit) -> i64 {
        match unit.part_sizes().last() {
            Some(Months(m)) => {
                let (early, late, sign) = if self <= other {
                    (self, other, 1)
                } else {
                    (other, self, -1)
                };
                let (a, b) = (early.date(), late.date());
                let mut months = (b.year() as i64 * 12 + b.month() as i64)
                    - (a.year() as i64 * 12 + a.month() as i64);
                if (b.day(), late.micros_of_day()) < (a.day(), early.micros_of_day()) {
                    months -= 1;
                }
                sign * (months / m)
            }
            Some(Micros(m)) => (other.linear_micros() - self.linear_micros()) / m,
            None => 0,
        }
    }
}

impl Date {
    /// Moves by months, cutting the day to the target month's last.
    pub fn add_months(self, months: i64) -> Option<Date> {
        let total = (self.year() as i64 * 12 + self.month() as i64 - 1).checked_add(months)?;
        let year = u32::try_from(total.div_euclid(12)).ok()?;
        let month = total.rem_euclid(12) as u32 + 1;
        Date::new(year, month, self.day().min(days_in_month(year, month)))
    }

    /// Moves by days; `None` for an impossible date or outside the calendar.
    pub fn add_days(self, days: i64) -> Option<Date> {
        if !self.is_real() {
            return None;
        }
        Date::from_day_number(self.day_number().checked_add(days)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::parse;

    fn at(text: &str) -> DateTime {
        parse::datetime(text, Default::default()).0
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn intervals_are_added_as_the_calendar_has_it() {
        let facts = [
            ("2024-01-31", "1", "MONTH", Some("2024-02-29")),
            ("2024-02-29", "-1", "YEAR", Some("2023-02-28")),
            (
                "2024-01-01",
                "1 2:3",
                "DAY_MINUTE",
                Some("2024-01-02 02:03:00"),
            ),
            (
                "2024-01-01",
                "1.5",
                "SECOND_MICROSECOND",
                Some("2024-01-01 00:00:01.5"),
            ),
            (
                "2024-01-01",
                "1.05",
                "SECOND_MICROSECOND",
                Some("2024-01-01 00:00:01.05"),
            ),
            ("2024-01-01", "1-2", "YEAR_MONTH", Some("2025-03-01")),
            (
                "2024-01-01",
                "-1 1:1:1",
                "DAY_SECOND",
                Some("2023-12-30 22:58:59"),
            ),
            (
                "2024-01-01",
                "1:2",
                "MINUTE_SECOND",
                Some("2024-01-01 00:01:02"),
            ),
            ("2024-01-01", "5", "DAY_HOUR", Some("2024-01-01 05:00:00")),
            ("2024-01-01", "1:2:3:4", "HOUR_SECOND", None),
            ("9999-12-31", "1", "DAY", None),
            ("2024-00-01", "1", "DAY", None),
        ];
        for (start, text, unit, expected) in facts {
            let interval = Interval::parse(text, IntervalUnit::by_name(unit).unwrap());
            assert_eq!(
                interval.and_then(|i| at(start).checked_add(i)),
                expected.map(at),
                "{start} + {text} {unit}"
            );
        }
        assert_eq!(Interval::from_count(i64::MAX, IntervalUnit::Hour), None);
        assert_eq!(
            at("2024-01-01").checked_add(Interval {
                months: i64::MAX,
                micros: 0
            }),
            None
        );
        assert_eq!(
            at("2024-01-01").checked_add(Interval {
                months: 0,
                micros: i64::MIN
            }),
            None
        );
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn differences_count_whole_units() {
        let facts = [
            ("MONTH", "2024-01-31", "2024-02-29", 0),
            ("YEAR", "2024-02-29", "2023-02-28", -1),
            ("QUARTER", "2024-01-01", "2024-12-31", 3),
            ("WEEK", "2024-01-01", "2024-01-14 23:59:59", 1),
            ("SECOND", "2024-01-01", "2023-12-31 23:59:58.5", -1),
        ];
        for (unit, a, b, expected) in facts {
            assert_eq!(
                at(a).difference(at(b), IntervalUnit::by_name(unit).unwrap()),
                expected,
                "{unit} {a} {b}"
            );
        }
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn weeks_in_every_mode() {
        let week = |text: &str, mode| at(text).date().week(mode);
        assert_eq!([0, 1].map(|m| week("2024-01-01", m).0), [0, 1]);
        assert_eq!(
            [2, 3].map(|m| week("2024-12-30", m)),
            [(52, 2024), (1, 2025)]
        );
        assert_eq!(
            [4, 5, 6, 7].map(|m| week("2000-01-01", m).0),
            [0, 0, 52, 52]
        );
        let day = at("2024-01-31").date();
        assert_eq!(
            (day.weekday(), day.day_number(), day.day_of_year()),
            (2, 739_281, 31)
        );
        assert_eq!(
            at("2023-02-05").date().last_day(),
            Some(at("2023-02-28").date())
        );
        assert_eq!(
            Date::from_day_number(366).unwrap().to_string(),
            "0001-01-01"
        );
        assert_eq!(Date::from_day_number(365), None);
    }
}
