//! Dates, times of day and moments, with microseconds (MySQL 8.4 manual, 13.2).
//!
//! Each is one packed integer, ordered as time is, and can hold MySQL's impossible dates
//! (`0000-00-00`, `2024-02-00`): whether those are allowed is the caller's [`DateMode`].
//!
//! ```text
//! Date      u32   year << 9 | month << 5 | day
//! Time      i64   microseconds, from -838:59:59 to 838:59:59
//! DateTime  u64   year << 46 | month << 42 | day << 37 | hour << 32 | minute << 26 | second << 20 | microsecond
//! ```
//!
//! - [`parse`]: MySQL's relaxed texts and numbers to values, with what was lost
//! - [`format`]: `DATE_FORMAT`, `TIME_FORMAT`, `STR_TO_DATE`
//! - [`interval`]: `date + INTERVAL n unit`, `TIMESTAMPDIFF`
//! - [`zone`]: time zones

pub mod format;
pub mod interval;
pub mod locale;
pub mod parse;
pub mod zone;

pub use interval::{Interval, IntervalUnit};
pub use zone::TimeZone;

/// Which impossible dates a session accepts (from `sql_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DateMode {
    /// `NO_ZERO_DATE`: refuses 0000-00-00.
    pub no_zero_date: bool,
    /// `NO_ZERO_IN_DATE`: refuses 2024-00-10 and 2024-01-00.
    pub no_zero_in_date: bool,
    /// `ALLOW_INVALID_DATES`: accepts 2024-02-31 (days up to 31 in any month).
    pub allow_invalid_dates: bool,
}

/// A calendar date, years 0 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Date(u32);

/// A signed span of time up to 838:59:59.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

/// A date and a time of day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DateTime(u64);

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day of 24 hours.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Whether a year of the Gregorian calendar has a 29th of February.
pub fn is_leap_year(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// How many days a month has; 31 for numbers that are no month.
pub fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Date = Date(0);
    /// `9999-12-31`.
    pub const MAX: Date = Date(9999 << 9 | 12 << 5 | 31);

    /// A date from its parts, impossible ones included; `None` if a part is out of its field's
    /// range (year 9999, month 12, day 31).
    pub fn new(year: u32, month: u32, day: u32) -> Option<Date> {
        (year <= 9999 && month <= 12 && day <= 31).then_some(Date(year << 9 | month << 5 | day))
    }

    /// The year, 0 to 9999.
    pub fn year(self) -> u32 {
        self.0 >> 9
    }
    /// The month, 1 to 12; 0 in a date without one.
    pub fn month(self) -> u32 {
        self.0 >> 5 & 15
    }
    /// The day, 1 to 31; 0 in a date without one.
    pub fn day(self) -> u32 {
        self.0 & 31
    }
    /// The packed integer: see the module's header.
    pub fn packed(self) -> u32 {
        self.0
    }
    /// From a packed integer; `None` if its fields are out of range.
    pub fn from_packed(packed: u32) -> Option<Date> {
        Date::new(packed >> 9, packed >> 5 & 15, packed & 31)
    }

    /// A date that exists in the calendar.
    pub fn is_real(self) -> bool {
        self.month() > 0 && self.day() > 0 && self.day() <= days_in_month(self.year(), self.month())
    }

    /// Whether it is `0000-00-00`.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether a session with this mode accepts the date.
    pub fn is_allowed(self, mode: DateMode) -> bool {
        if self.is_zero() {
            return !mode.no_zero_date;
        }
        if self.month() == 0 || self.day() == 0 {
            return !mode.no_zero_in_date;
        }
        mode.allow_invalid_dates || self.is_real()
    }

    /// `TO_DAYS`: days since year 0; what impossible parts there are count as in MySQL's
    /// arithmetic.
    pub fn day_number(self) -> i64 {
        day_number(self.year() as i64, self.month() as i64, self.day() as i64)
    }

    /// `FROM_DAYS`; `None` outside 0001-01-01 … 9999-12-31.
    pub fn from_day_number(days: i64) -> Option<Date> {
        if !(366..=3_652_424).contains(&days) {
            return None;
        }
        // Civil from days, with the era of 400 years starting on 0000-03-01 (day 60).
        let z = days - 60;
        let era = z.div_euclid(146_097);
        let doe = z.rem_euclid(146_097);
        let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let day = doy - (153 * mp + 2) / 5 + 1;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        let year = yoe + era * 400 + (month <= 2) as i64;
        Date::new(year as u32, month as u32, day as u32)
    }

    /// 0 = Monday … 6 = Sunday (`WEEKDAY`).
    pub fn weekday(self) -> u32 {
        (self.day_number() + 5).rem_euclid(7) as u32
    }

    /// 1 … 366 (`DAYOFYEAR`).
    pub fn day_of_year(self) -> u32 {
        (self.day_number() - day_number(self.year() as i64, 1, 1) + 1).clamp(0, 366) as u32
    }

    /// `LAST_DAY`; `None` for month 0.
    pub fn last_day(self) -> Option<Date> {
        (self.month() > 0).then(|| Date(self.0 & !31 | days_in_month(self.year(), self.month())))
    }

    /// `WEEK(date, mode)` with the year the week belongs to (`YEARWEEK` when mode has bit 2 set).
    ///
    /// Bits of the mode: 1 = Monday first, 2 = weeks 1-53 (else 0-53), 4 = week 1 has the first
    /// "first weekday" (else four days or more); as in the manual's table, bit 4 is flipped for
    /// Monday-first modes.
    pub fn week(self, mode: u32) -> (u32, i32) {
        let mut mode = mode & 7;
        if mode & 1 == 0 {
            mode ^= 4;
        }
        let monday_first = mode & 1 != 0;
        let mut week_year = mode & 2 != 0;
        let first_weekday = mode & 4 != 0;
        let day = self.day_number();
        let mut year = self.year() as i32;
        let length_of = |year: i32| match u32::try_from(year).is_ok_and(is_leap_year) {
            true => 366,
            false => 365,
        };
        let first = day_number(year as i64, 1, 1);
        let weekday_of = |daynr: i64| (daynr + 5 + !monday_first as i64).rem_euclid(7);
        let mut weekday = weekday_of(first);
        let mut first = first;
        if self.month() == 1 && (self.day() as i64) <= 7 - weekday {
            if !week_year && ((first_weekday && weekday != 0) || (!first_weekday && weekday >= 4)) {
                return (0, year);
            }
            week_year = true;
            year -= 1;
            let length = length_of(year);
            first -= length;
            weekday = (weekday + 53 * 7 - length).rem_euclid(7);
        }
        let days = if (first_weekday && weekday != 0) || (!first_weekday && weekday >= 4) {
            day - (first + 7 - weekday)
        } else {
            day - (first - weekday)
        };
        if week_year && days >= 52 * 7 {
            let length = length_of(year);
            let weekday = (weekday + length).rem_euclid(7);
            if (!first_weekday && weekday < 4) || (first_weekday && weekday == 0) {
                return (1, year + 1);
            }
        }
        ((days / 7 + 1) as u32, year)
    }

    /// The date at 00:00:00.
    pub fn at_midnight(self) -> DateTime {
        DateTime::from_parts(self, 0)
    }

    /// Appends `2024-12-31`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&date_text(self));
    }

    /// 20240131
    pub fn to_number(self) -> i64 {
        self.year() as i64 * 10_000 + self.month() as i64 * 100 + self.day() as i64
    }
}

/// Days since year 0 of a date whose parts may be impossible.
pub fn day_number(year: i64, month: i64, day: i64) -> i64 {
    if year == 0 && month == 0 {
        return 0;
    }
    let mut y = year;
    let mut days = 365 * y + 31 * (month - 1) + day;
    if month <= 2 {
        y -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    let centuries = (y / 100 + 1) * 3 / 4;
    days + y / 4 - centuries
}

fn push_digits(out: &mut Vec<u8>, value: u32, width: usize) {
    let mut buffer = [b'0'; 10];
    let mut v = value;
    let mut at = 10;
    while v > 0 || at > 10 - width {
        at -= 1;
        buffer[at] = b'0' + (v % 10) as u8;
        v /= 10;
    }
    out.extend_from_slice(&buffer[at..]);
}

fn push_fraction(out: &mut Vec<u8>, micros: u32, fsp: u8) {
    if fsp > 0 {
        let micros = micros.min(999_999);
        let mut text = *b".000000";
        for (i, pair) in [micros / 10_000, micros / 100 % 100, micros % 100]
            .into_iter()
            .enumerate()
        {
            text[1 + 2 * i..3 + 2 * i].copy_from_slice(&two_digits(pair));
        }
        out.extend_from_slice(&text[..1 + fsp.min(6) as usize]);
    }
}

/// A number below 100 as two digits.
#[inline]
fn two_digits(n: u32) -> [u8; 2] {
    [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]
}

/// `2024-01-31`
#[inline]
fn date_text(date: Date) -> [u8; 10] {
    let [y1, y2] = two_digits(date.year() / 100);
    let [y3, y4] = two_digits(date.year() % 100);
    let [m1, m2] = two_digits(date.month());
    let [d1, d2] = two_digits(date.day());
    [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]
}

/// `10:11:12`
#[inline]
fn clock_text(hour: u32, minute: u32, second: u32) -> [u8; 8] {
    let [h1, h2] = two_digits(hour);
    let [m1, m2] = two_digits(minute);
    let [s1, s2] = two_digits(second);
    [h1, h2, b':', m1, m2, b':', s1, s2]
}

/// Cuts or rounds microseconds to `fsp` digits; rounding may reach the next second.
fn round_micros(micros: i64, fsp: u8, truncate: bool) -> i64 {
    let unit = 10i64.pow(6 - fsp.min(6) as u32);
    let cut = micros - micros % unit;
    let half_up = if !truncate && (micros % unit).abs() * 2 >= unit {
        unit * micros.signum()
    } else {
        0
    };
    cut + half_up
}

impl Time {
    /// `838:59:59`, the greatest.
    pub const MAX: Time = Time((838 * 3600 + 59 * 60 + 59) * MICROS_PER_SECOND);
    /// `-838:59:59`, the least.
    pub const MIN: Time = Time(-Time::MAX.0);
    /// `00:00:00`.
    pub const ZERO: Time = Time(0);

    /// A span of microseconds; `None` beyond 838:59:59.
    pub fn from_micros(micros: i64) -> Option<Time> {
        (Time::MIN.0..=Time::MAX.0)
            .contains(&micros)
            .then_some(Time(micros))
    }

    /// A span of microseconds, cut to 838:59:59.
    pub fn from_micros_clamped(micros: i64) -> Time {
        Time(micros.clamp(Time::MIN.0, Time::MAX.0))
    }

    /// A time from its parts; `None` if a part is out of its field's range or the time out of
    /// TIME's.
    pub fn new(
        negative: bool,
        hours: u32,
        minutes: u32,
        seconds: u32,
        micros: u32,
    ) -> Option<Time> {
        if minutes > 59 || seconds > 59 || micros > 999_999 {
            return None;
        }
        let total = (hours as i64 * 3600 + minutes as i64 * 60 + seconds as i64)
            * MICROS_PER_SECOND
            + micros as i64;
        Time::from_micros(if negative { -total } else { total })
    }

    /// The time in microseconds, with its sign.
    pub fn micros(self) -> i64 {
        self.0
    }
    /// Whether it is less than 0.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }
    /// The hours, 0 to 838, without the sign.
    pub fn hours(self) -> u32 {
        (self.0.unsigned_abs() / 3_600_000_000) as u32
    }
    /// The minute, 0 to 59.
    pub fn minute(self) -> u32 {
        (self.0.unsigned_abs() / 60_000_000 % 60) as u32
    }
    /// The second, 0 to 59.
    pub fn second(self) -> u32 {
        (self.0.unsigned_abs() / 1_000_000 % 60) as u32
    }
    /// The microsecond, 0 to 999,999.
    pub fn microsecond(self) -> u32 {
        (self.0.unsigned_abs() % 1_000_000) as u32
    }

    /// To `fsp` digits after the second, half away from zero.
    #[must_use]
    pub fn round(self, fsp: u8) -> Time {
        Time::from_micros_clamped(round_micros(self.0, fsp, false))
    }

    /// The time with so many digits of a fraction of a second, the rest cut.
    #[must_use]
    pub fn truncate(self, fsp: u8) -> Time {
        Time(round_micros(self.0, fsp, true))
    }

    /// Appends `-12:30:00`, with so many digits of a fraction of a second.
    pub fn write_text(self, fsp: u8, out: &mut Vec<u8>) {
        if self.0 < 0 {
            out.push(b'-');
        }
        let hours = self.hours();
        if hours >= 100 {
            out.push(b'0' + (hours / 100) as u8);
        }
        out.extend_from_slice(&clock_text(hours % 100, self.minute(), self.second()));
        push_fraction(out, self.microsecond(), fsp);
    }

    /// 101112, negative for negative times.
    pub fn to_number(self) -> i64 {
        let n = self.hours() as i64 * 10_000 + self.minute() as i64 * 100 + self.second() as i64;
        if self.0 < 0 { -n } else { n }
    }
}

impl DateTime {
    /// `0000-00-00 00:00:00`.
    pub const ZERO: DateTime = DateTime(0);

    /// A date with a time of day; `None` if a part is out of its field's range.
    pub fn new(date: Date, hour: u32, minute: u32, second: u32, micros: u32) -> Option<DateTime> {
        if hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
            return None;
        }
        Some(DateTime(
            (date.0 as u64) << 37
                | (hour as u64) << 32
                | (minute as u64) << 26
                | (second as u64) << 20
                | micros as u64,
        ))
    }

    /// What compares with moments as a number does with their numbers (20240131101112, or
    /// 20240131 for a date): just after the last second that isn't greater. No moment is equal to
    /// it, so it is for numbers that are no moment's.
    pub fn just_after_number(number: i64, of_dates: bool) -> DateTime {
        /// No moment has as many microseconds.
        const AFTER: u64 = 0xF_FFFF;
        const LAST: i64 = 99_991_231_235_959;
        const LAST_CLOCK: [i64; 3] = [23, 59, 59];
        let number = match of_dates {
            true => number.saturating_mul(1_000_000).saturating_add(235_959),
            false => number,
        };
        let number = number.clamp(0, LAST);
        let (date, clock) = (number / 1_000_000, number % 1_000_000);
        let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
        let (month, day) = match month {
            ..=12 => (month, day),
            _ => (12, 31),
        };
        let days = i64::from(days_in_month(year as u32, month as u32));
        // Behind a field that is too large come the greatest of all smaller ones.
        let mut clock = match day <= days && date % 10_000 / 100 <= 12 {
            true => [clock / 10_000, clock / 100 % 100, clock % 100],
            false => LAST_CLOCK,
        };
        if let Some(at) = (0..clock.len()).find(|&at| clock[at] > LAST_CLOCK[at]) {
            clock[at..].copy_from_slice(&LAST_CLOCK[at..]);
        }
        let date = (year as u64) << 9 | (month as u64) << 5 | day.min(days) as u64;
        let [hour, minute, second] = clock.map(|field| field as u64);
        DateTime(date << 37 | hour << 32 | minute << 26 | second << 20 | AFTER)
    }

    /// A date and the microseconds since its midnight, which are taken modulo a day.
    fn from_parts(date: Date, micros: i64) -> DateTime {
        let m = micros.rem_euclid(MICROS_PER_DAY) as u64;
        let seconds = m / 1_000_000;
        DateTime(
            (date.0 as u64) << 37
                | (seconds / 3600) << 32
                | (seconds / 60 % 60) << 26
                | (seconds % 60) << 20
                | (m % 1_000_000),
        )
    }

    /// The date.
    pub fn date(self) -> Date {
        Date((self.0 >> 37) as u32)
    }
    /// The hour, 0 to 23.
    pub fn hour(self) -> u32 {
        (self.0 >> 32 & 31) as u32
    }
    /// The minute, 0 to 59.
    pub fn minute(self) -> u32 {
        (self.0 >> 26 & 63) as u32
    }
    /// The second, 0 to 59.
    pub fn second(self) -> u32 {
        (self.0 >> 20 & 63) as u32
    }
    /// The microsecond, 0 to 999,999.
    pub fn microsecond(self) -> u32 {
        (self.0 & 0xF_FFFF) as u32
    }
    /// The packed integer: see the module's header.
    pub fn packed(self) -> u64 {
        self.0
    }
    /// From a packed integer; `None` if its fields are out of range.
    pub fn from_packed(p: u64) -> Option<DateTime> {
        let date = Date::from_packed(u32::try_from(p >> 37).ok()?)?;
        DateTime::new(
            date,
            (p >> 32 & 31) as u32,
            (p >> 26 & 63) as u32,
            (p >> 20 & 63) as u32,
            (p & 0xF_FFFF) as u32,
        )
    }

    /// The time of day.
    pub fn time(self) -> Time {
        Time(self.micros_of_day())
    }

    /// Microseconds since 00:00:00.
    pub fn micros_of_day(self) -> i64 {
        (self.hour() as i64 * 3600 + self.minute() as i64 * 60 + self.second() as i64)
            * MICROS_PER_SECOND
            + self.microsecond() as i64
    }

    /// Microseconds since day number 0.
    pub fn linear_micros(self) -> i64 {
        self.date().day_number() * MICROS_PER_DAY + self.micros_of_day()
    }

    /// The reverse of [`DateTime::linear_micros`]; `None` outside years 1 to 9999.
    pub fn from_linear_micros(micros: i64) -> Option<DateTime> {
        let date = Date::from_day_number(micros.div_euclid(MICROS_PER_DAY))?;
        Some(DateTime::from_parts(
            date,
            micros.rem_euclid(MICROS_PER_DAY),
        ))
    }

    /// To `fsp` digits after the second, half up; `None` if that leaves year 9999 or the date is
    /// impossible.
    pub fn round(self, fsp: u8) -> Option<DateTime> {
        let rounded = round_micros(self.microsecond() as i64, fsp, false);
        if rounded < MICROS_PER_SECOND {
            return Some(DateTime(self.0 & !0xF_FFFF | rounded as u64));
        }
        if !self.date().is_real() {
            return None;
        }
        DateTime::from_linear_micros(
            self.linear_micros() - self.microsecond() as i64 + MICROS_PER_SECOND,
        )
    }

    /// The moment with so many digits of a fraction of a second, the rest cut.
    #[must_use]
    pub fn truncate(self, fsp: u8) -> DateTime {
        DateTime(self.0 & !0xF_FFFF | round_micros(self.microsecond() as i64, fsp, true) as u64)
    }

    /// Appends `2024-12-31 12:30:00`, with so many digits of a fraction of a second.
    pub fn write_text(self, fsp: u8, out: &mut Vec<u8>) {
        let mut text = [b' '; 19];
        text[..10].copy_from_slice(&date_text(self.date()));
        text[11..].copy_from_slice(&clock_text(self.hour(), self.minute(), self.second()));
        out.extend_from_slice(&text);
        push_fraction(out, self.microsecond(), fsp);
    }

    /// 20240131101112
    pub fn to_number(self) -> i64 {
        self.date().to_number() * 1_000_000
            + self.hour() as i64 * 10_000
            + self.minute() as i64 * 100
            + self.second() as i64
    }
}

macro_rules! display {
    ($type:ty, |$v:ident, $out:ident| $write:expr) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let ($v, mut out) = (*self, Vec::with_capacity(26));
                let $out = &mut out;
                $write;
                f.write_str(std::str::from_utf8(&out).unwrap_or("?"))
            }
        }
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// The fewest digits that show all of a fraction: 0 or 6, as MySQL prints values of unknown
/// precision.
fn shown_fsp(micros: u32) -> u8 {
    if micros == 0 { 0 } else { 6 }
}

display!(Date, |v, out| v.write_text(out));
display!(Time, |v, out| v.write_text(shown_fsp(v.microsecond()), out));
display!(DateTime, |v, out| v
    .write_text(shown_fsp(v.microsecond()), out));
