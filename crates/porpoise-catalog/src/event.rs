//! When an event runs (MySQL 8.4 manual, 15.1.13).

use compact_str::CompactString;
use porpoise_types::{DateTime, Interval, IntervalUnit, TimeZone};
use serde::{Deserialize, Serialize};

/// An event's schedule and what has become of it. Times are seconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// When it runs.
    pub schedule: EventSchedule,
    /// ON COMPLETION PRESERVE: it stays when it has run for the last time.
    pub preserve: bool,
    /// Whether it runs.
    pub status: EventStatus,
    /// COMMENT.
    pub comment: String,
    /// `time_zone` when its schedule was said: the one that months and days are counted in.
    pub time_zone: CompactString,
    /// When it last began to run.
    pub last_executed_s: Option<i64>,
    /// When CREATE or ALTER last said anything of it: it doesn't run for times before.
    pub changed_s: i64,
}

/// When an event runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EventSchedule {
    /// Once.
    At(i64),
    /// Time after time.
    Every {
        /// How many units lie between two runs, as text: `1`, `1:30`.
        count: String,
        /// The unit's name.
        unit: CompactString,
        /// The first run.
        starts_s: i64,
        /// After this it doesn't run.
        ends_s: Option<i64>,
    },
}

/// Whether an event runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventStatus {
    /// ENABLE.
    Enabled,
    /// DISABLE, or it has run for the last time.
    Disabled,
    /// DISABLE ON REPLICA.
    DisabledOnReplica,
}

impl EventRecord {
    /// The first time of its schedule, no earlier than `from_s`, at which it runs; `None` if there is
    /// none, or it doesn't run.
    pub fn next_run(&self, from_s: i64) -> Option<i64> {
        if self.status != EventStatus::Enabled {
            return None;
        }
        match &self.schedule {
            // A time that has passed while nobody looked is made up for.
            EventSchedule::At(at_s) => self.last_executed_s.is_none().then_some(*at_s),
            EventSchedule::Every {
                count,
                unit,
                starts_s,
                ends_s,
            } => {
                let interval = interval_of(count, unit)?;
                let zone = TimeZone::parse(&self.time_zone).unwrap_or_else(TimeZone::utc);
                let by_clock = is_by_clock(unit);
                let next = first_from(*starts_s, (interval, by_clock), from_s, &zone)?;
                ends_s.is_none_or(|ends_s| next <= ends_s).then_some(next)
            }
        }
    }

    /// Whether it is to run once.
    pub fn is_only_run(&self) -> bool {
        matches!(self.schedule, EventSchedule::At(_))
    }

    /// Whether it doesn't run again after `now_s`.
    pub fn is_over(&self, now_s: i64) -> bool {
        match &self.schedule {
            EventSchedule::At(_) => self.last_executed_s.is_some(),
            EventSchedule::Every { .. } => self.next_run(now_s + 1).is_none(),
        }
    }
}

/// What stands before the body in an event's record: its name and schedule are kept apart.
const BEFORE_BODY: &str = "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ";

/// The statement of an event's record.
pub fn with_body(body: &str) -> String {
    format!("{BEFORE_BODY}{body}")
}

/// The body in the statement of an event's record.
pub fn body(sql: &str) -> &str {
    sql.strip_prefix(BEFORE_BODY).unwrap_or(sql)
}

/// The time between two runs; `None` if that is no interval, or a negative one, or none at all.
pub fn interval_of(count: &str, unit: &str) -> Option<Interval> {
    let unit = IntervalUnit::by_name(unit)?;
    if !unit.is_compound() && count.parse().is_ok_and(|count: i64| count > MOST_UNITS) {
        return None;
    }
    let interval = Interval::parse(count, unit)?;
    let is_positive = interval.months >= 0 && interval.micros >= 0;
    (is_positive && (interval.months > 0 || interval.micros >= MICROS_PER_SECOND))
        .then_some(interval)
}

const MICROS_PER_SECOND: i64 = 1_000_000;
/// The most units that may lie between two runs, as MySQL 8.4 has it.
const MOST_UNITS: i64 = 1_000_000_000;

/// Whether a unit is counted by the clocks and calendars of a time zone: a day may have 23 hours.
fn is_by_clock(unit: &str) -> bool {
    let by_time = IntervalUnit::by_name(unit).is_some_and(IntervalUnit::has_time);
    !by_time
}

/// The first of `starts_s`, `starts_s` + `interval`, … that isn't before `from_s`. Months and days
/// are those of the time zone, so that a daily event keeps its hour when clocks change.
fn first_from(
    starts_s: i64,
    (interval, by_clock): (Interval, bool),
    from_s: i64,
    zone: &TimeZone,
) -> Option<i64> {
    if starts_s >= from_s {
        return Some(starts_s);
    }
    if !by_clock {
        let step = interval.micros / MICROS_PER_SECOND;
        let steps = (from_s - starts_s + step - 1).div_euclid(step);
        return starts_s.checked_add(steps.checked_mul(step)?);
    }
    let local = |seconds: i64| {
        let utc = DateTime::from_unix_micros(seconds.checked_mul(MICROS_PER_SECOND)?)?;
        Some(zone.from_utc(utc))
    };
    let first = local(starts_s)?;
    let nth = |n: i64| -> Option<i64> {
        let moved = first.checked_add(Interval {
            months: interval.months.checked_mul(n)?,
            micros: interval.micros.checked_mul(n)?,
        })?;
        Some(zone.to_utc(moved)?.unix_micros() / MICROS_PER_SECOND)
    };
    // A step is at most this long: so many steps certainly don't reach beyond.
    let longest = interval
        .months
        .checked_mul(31 * 86_400)?
        .checked_add(interval.micros / MICROS_PER_SECOND + 86_400)?;
    let mut n = (from_s - starts_s) / longest;
    loop {
        let at_s = nth(n)?;
        if at_s >= from_s {
            return Some(at_s);
        }
        n += 1 + (from_s - at_s) / (2 * longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, zone: &TimeZone) -> i64 {
        let (local, _) = porpoise_types::temporal::parse::datetime(text, Default::default());
        zone.to_utc(local).unwrap().unix_micros() / MICROS_PER_SECOND
    }

    fn shown(seconds: i64, zone: &TimeZone) -> String {
        let utc = DateTime::from_unix_micros(seconds * MICROS_PER_SECOND).unwrap();
        zone.from_utc(utc).to_string()
    }

    fn next(every: (&str, &str), starts: &str, from: &str, zone: &str) -> String {
        let zone = TimeZone::parse(zone).unwrap();
        let interval = interval_of(every.0, every.1).unwrap();
        let found = first_from(
            at(starts, &zone),
            (interval, is_by_clock(every.1)),
            at(from, &zone),
            &zone,
        )
        .unwrap();
        shown(found, &zone)
    }

    #[test]
    fn runs_lie_an_interval_apart() {
        let cases = [
            (
                ("1", "SECOND"),
                "2024-01-01 00:00:00",
                "2024-01-01 00:00:05",
                "2024-01-01 00:00:05",
            ),
            (
                ("7", "SECOND"),
                "2024-01-01 00:00:00",
                "2024-01-01 00:00:08",
                "2024-01-01 00:00:14",
            ),
            (
                ("1:30", "HOUR_MINUTE"),
                "2024-01-01 00:00:00",
                "2024-01-01 02:00:00",
                "2024-01-01 03:00:00",
            ),
            (
                ("1", "MONTH"),
                "2024-01-31 10:00:00",
                "2024-02-01 00:00:00",
                "2024-02-29 10:00:00",
            ),
            (
                ("1", "MONTH"),
                "2024-01-31 10:00:00",
                "2024-03-01 00:00:00",
                "2024-03-31 10:00:00",
            ),
            (
                ("1", "YEAR"),
                "1990-02-28 10:00:00",
                "2024-03-01 00:00:00",
                "2025-02-28 10:00:00",
            ),
            (
                ("1", "QUARTER"),
                "2020-01-01 00:00:00",
                "2024-05-05 00:00:00",
                "2024-07-01 00:00:00",
            ),
            (
                ("1", "WEEK"),
                "2024-01-01 08:00:00",
                "2024-01-08 08:00:00",
                "2024-01-08 08:00:00",
            ),
            (
                ("2", "DAY"),
                "2030-01-01 08:00:00",
                "2024-01-08 08:00:00",
                "2030-01-01 08:00:00",
            ),
        ];
        for (every, starts, from, expected) in cases {
            assert_eq!(
                next(every, starts, from, "+00:00"),
                expected,
                "{every:?} from {from}"
            );
        }
    }

    #[test]
    fn a_daily_event_keeps_its_hour_when_clocks_change() {
        // In Berlin clocks went forward on 31 March 2024.
        let daily = next(
            ("1", "DAY"),
            "2024-03-29 08:00:00",
            "2024-03-31 00:00:00",
            "Europe/Berlin",
        );
        assert_eq!(daily, "2024-03-31 08:00:00");
        // So many hours are so many hours.
        let hourly = next(
            ("24", "HOUR"),
            "2024-03-30 08:00:00",
            "2024-03-31 00:00:00",
            "Europe/Berlin",
        );
        assert_eq!(hourly, "2024-03-31 09:00:00");
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for (count, unit) in [
            ("0", "SECOND"),
            ("-1", "DAY"),
            ("0:0", "HOUR_MINUTE"),
            ("1", "CENTURY"),
        ] {
            assert_eq!(interval_of(count, unit), None, "{count} {unit}");
        }
    }
}
