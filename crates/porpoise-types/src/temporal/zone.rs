//! Time zones: 'SYSTEM', '+05:30', and names of the IANA database.

use super::{Date, DateTime, MICROS_PER_SECOND};
use crate::Loss;
use jiff::tz::{Offset, TimeZone as Rules};

/// A session's time zone. TIMESTAMP values are UTC in rows and local to this zone in SQL.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeZone {
    name: String,
    rules: Rules,
    fixed_micros: Option<i64>,
}

/// What a TIMESTAMP holds, in seconds since 1970.
const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = 1..=i32::MAX as i64;

/// Day number of 1970-01-01.
const EPOCH_DAY: i64 = 719_528;

impl DateTime {
    /// Microseconds since 1970 of this datetime read as UTC.
    pub fn unix_micros(self) -> i64 {
        self.linear_micros() - EPOCH_DAY * super::MICROS_PER_DAY
    }

    /// The UTC datetime of microseconds since 1970.
    pub fn from_unix_micros(micros: i64) -> Option<DateTime> {
        DateTime::from_linear_micros(micros.checked_add(EPOCH_DAY * super::MICROS_PER_DAY)?)
    }
}

impl TimeZone {
    /// UTC, which has no offset.
    pub fn utc() -> TimeZone {
        TimeZone {
            name: "+00:00".into(),
            rules: Rules::UTC,
            fixed_micros: Some(0),
        }
    }

    /// The machine's own zone, called SYSTEM.
    pub fn system() -> TimeZone {
        let rules = Rules::system();
        TimeZone {
            name: "SYSTEM".into(),
            fixed_micros: fixed(&rules),
            rules,
        }
    }

    /// The names of the IANA database's zones, in order.
    pub fn names() -> Vec<String> {
        let known = jiff::tz::db().available();
        let mut names: Vec<String> = known.map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    /// `SYSTEM`, `±HH:MM` from -13:59 to +14:00, or a zone's name, any case.
    pub fn parse(name: &str) -> Option<TimeZone> {
        if name.eq_ignore_ascii_case("SYSTEM") {
            return Some(TimeZone::system());
        }
        if let Some(seconds) = parse_offset(name) {
            let rules = Rules::fixed(Offset::from_seconds(seconds).ok()?);
            let minutes = seconds.abs() / 60;
            let name = format!(
                "{}{:02}:{:02}",
                if seconds < 0 { '-' } else { '+' },
                minutes / 60,
                minutes % 60
            );
            return Some(TimeZone {
                name,
                rules,
                fixed_micros: Some(seconds as i64 * MICROS_PER_SECOND),
            });
        }
        let rules = Rules::get(name).ok()?;
        Some(TimeZone {
            name: rules.iana_name().unwrap_or(name).to_string(),
            fixed_micros: fixed(&rules),
            rules,
        })
    }

    /// As `@@time_zone` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Local to UTC. A time skipped by a clock change is moved to its end; one that happens twice
    /// is the first. `None` for impossible dates.
    pub fn to_utc(&self, local: DateTime) -> Option<DateTime> {
        if !local.date().is_real() {
            return None;
        }
        if let Some(offset) = self.fixed_micros {
            return if offset == 0 {
                Some(local)
            } else {
                DateTime::from_linear_micros(local.linear_micros() - offset)
            };
        }
        let date = local.date();
        let civil = jiff::civil::DateTime::new(
            date.year() as i16,
            date.month() as i8,
            date.day() as i8,
            local.hour() as i8,
            local.minute() as i8,
            local.second() as i8,
            0,
        )
        .ok()?;
        use jiff::tz::AmbiguousOffset;
        let seconds = match self.rules.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.seconds(),
            AmbiguousOffset::Fold { before, .. } => before.seconds(),
            AmbiguousOffset::Gap { before, after } => {
                // The moment of the change itself: the first second of the new offset.
                let inside = local.linear_micros() - before.seconds() as i64 * MICROS_PER_SECOND;
                let stamp =
                    jiff::Timestamp::from_microsecond(inside - EPOCH_DAY * super::MICROS_PER_DAY)
                        .ok()?;
                return match self.rules.preceding(stamp).next() {
                    Some(t) => DateTime::from_unix_micros(t.timestamp().as_microsecond()),
                    None => DateTime::from_linear_micros(
                        local.linear_micros() - after.seconds() as i64 * MICROS_PER_SECOND,
                    ),
                };
            }
        };
        DateTime::from_linear_micros(local.linear_micros() - seconds as i64 * MICROS_PER_SECOND)
    }

    /// A local datetime on its way into a TIMESTAMP column: to UTC, within 1970-01-01 00:00:01 …
    /// 2038-01-19 03:14:07.999999. Zero stays zero; what is outside becomes zero and `BadTemporal`.
    pub fn to_timestamp(&self, local: DateTime) -> (DateTime, Loss) {
        if local == DateTime::ZERO {
            return (local, Loss::None);
        }
        match self
            .to_utc(local)
            .filter(|utc| TIMESTAMP_SECONDS.contains(&utc.unix_micros().div_euclid(1_000_000)))
        {
            Some(utc) => (utc, Loss::None),
            None => (DateTime::ZERO, Loss::BadTemporal),
        }
    }

    /// UTC to local; zero dates stay as they are.
    pub fn from_utc(&self, utc: DateTime) -> DateTime {
        if utc.date() == Date::ZERO {
            return utc;
        }
        let offset = match self.fixed_micros {
            Some(0) => return utc,
            Some(offset) => offset,
            None => match jiff::Timestamp::from_microsecond(utc.unix_micros()) {
                Ok(t) => self.rules.to_offset(t).seconds() as i64 * MICROS_PER_SECOND,
                Err(_) => return utc,
            },
        };
        DateTime::from_linear_micros(utc.linear_micros() + offset).unwrap_or(utc)
    }
}

fn fixed(rules: &Rules) -> Option<i64> {
    rules
        .to_fixed_offset()
        .ok()
        .map(|o| o.seconds() as i64 * MICROS_PER_SECOND)
}

/// Seconds of `+5:30`; `None` if it is not of that form or outside -13:59 … +14:00.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |s: &str| {
        (matches!(s.len(), 1 | 2) && s.bytes().all(|b| b.is_ascii_digit()))
            .then(|| s.parse::<i32>().ok())
            .flatten()
    };
    let (h, m) = (number(hours)?, number(minutes)?);
    let total = sign * (h * 60 + m);
    (m < 60 && (-(13 * 60 + 59)..=14 * 60).contains(&total)).then_some(total * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        super::super::parse::datetime(text, Default::default()).0
    }

    #[test]
    fn offsets_and_names_are_zones() {
        assert_eq!(TimeZone::parse("+5:30").unwrap().name(), "+05:30");
        assert_eq!(TimeZone::parse("-13:59").unwrap().name(), "-13:59");
        assert!(TimeZone::parse("+14:01").is_none() && TimeZone::parse("-14:00").is_none());
        assert!(TimeZone::parse("Nowhere/Else").is_none() && TimeZone::parse("").is_none());
        let india = TimeZone::parse("+05:30").unwrap();
        assert_eq!(
            india.to_utc(at("2024-01-01 03:00:00")),
            Some(at("2023-12-31 21:30:00"))
        );
        assert_eq!(
            india.from_utc(at("2023-12-31 21:30:00")),
            at("2024-01-01 03:00:00")
        );
    }

    /// 2024-03-31 02:00 became 03:00 in Prague; 2024-10-27 03:00 became 02:00.
    #[test]
    fn clock_changes() {
        let prague = TimeZone::parse("Europe/Prague").unwrap();
        assert_eq!(
            prague.from_utc(at("2024-07-01 10:00:00.5")),
            at("2024-07-01 12:00:00.5")
        );
        assert_eq!(
            prague.to_utc(at("2024-01-01 12:00:00")),
            Some(at("2024-01-01 11:00:00"))
        );
        assert_eq!(
            prague.to_utc(at("2024-03-31 02:30:00")),
            Some(at("2024-03-31 01:00:00"))
        );
        assert_eq!(
            prague.to_utc(at("2024-10-27 02:30:00")),
            Some(at("2024-10-27 00:30:00"))
        );
    }

    #[test]
    fn timestamps_have_a_range() {
        let utc = TimeZone::utc();
        assert_eq!(
            utc.to_timestamp(at("1970-01-01 00:00:00")).1,
            Loss::BadTemporal
        );
        assert_eq!(utc.to_timestamp(at("1970-01-01 00:00:01")).1, Loss::None);
        assert_eq!(
            utc.to_timestamp(at("2038-01-19 03:14:07.999999")).1,
            Loss::None
        );
        assert_eq!(
            utc.to_timestamp(at("2038-01-19 03:14:08")).1,
            Loss::BadTemporal
        );
        assert_eq!(
            utc.to_timestamp(DateTime::ZERO),
            (DateTime::ZERO, Loss::None)
        );
    }
}
