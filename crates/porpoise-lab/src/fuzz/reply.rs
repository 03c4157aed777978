//! What a server answers to a statement, and whether the answer can be: each value has to be one of
//! the type that its column is said to have.

use porpoise_client::codes::{BINARY, ColumnType};
use porpoise_client::flags::ColumnFlags;
use porpoise_client::{ColumnDefinition, Connection, Error, Results};
use serde::{Deserialize, Serialize};

/// A row's values as text.
pub(super) type Row = Vec<Option<Vec<u8>>>;

/// The outcome of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Rows(Vec<Row>),
    Done,
    Refused(u16, String),
}

/// What must not be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fault {
    /// The connection has ended, and the server goes on.
    Lost(String),
    /// The process of the server has ended.
    Crash(String),
    /// It took more memory than it may.
    Memory(String),
    /// It goes on when its time is over.
    Stuck,
    /// What came isn't a reply.
    Malformed(String),
    /// A value isn't of its column's type.
    Misfit(String),
    /// The server says that it is wrong itself.
    Internal(String),
    /// It took longer than it may.
    TooLong,
    /// Two answers that have to be the same aren't.
    Differs {
        /// Who answered, and what.
        one: String,
        /// The other.
        other: String,
    },
}

impl Fault {
    /// The kind of fault, as reports group them.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Lost(_) => "connection lost",
            Fault::Crash(_) => "server ended",
            Fault::Memory(_) => "too much memory",
            Fault::Stuck => "doesn't end",
            Fault::Malformed(_) => "malformed reply",
            Fault::Misfit(_) => "value not of its type",
            Fault::Internal(_) => "internal error",
            Fault::TooLong => "too long",
            Fault::Differs { .. } => "answers differ",
        }
    }

    /// Whether another one is of the same origin, as far as can be told.
    pub(super) fn is_like(&self, other: &Fault) -> bool {
        match (self, other) {
            (Fault::Misfit(a), Fault::Misfit(b)) => a.split(':').next() == b.split(':').next(),
            _ => self.kind() == other.kind(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Fault::Lost(why)
            | Fault::Crash(why)
            | Fault::Memory(why)
            | Fault::Malformed(why)
            | Fault::Misfit(why)
            | Fault::Internal(why) => write!(f, ": {why}"),
            Fault::TooLong | Fault::Stuck => Ok(()),
            Fault::Differs { one, other } => write!(f, ": {one} | {other}"),
        }
    }
}

/// Numbers of errors by which a server says that it is wrong itself.
const INTERNAL: &[u16] = &[1105, 1815];
/// The limits on a statement's time: MySQL's, MariaDB's.
const TOO_LONG: &[u16] = &[3024, 1969];

/// Asks, and looks at each value that comes.
pub(super) fn ask(connection: &mut Connection, sql: &str, keep_rows: bool) -> Result<Reply, Fault> {
    looked_at(connection.query(sql), keep_rows)
}

/// Takes the reply to the oldest statement that was sent, and looks at each value that comes.
pub(super) fn receive(connection: &mut Connection, keep_rows: bool) -> Result<Reply, Fault> {
    looked_at(connection.receive(), keep_rows)
}

fn looked_at(reply: Result<Results<'_>, Error>, keep_rows: bool) -> Result<Reply, Fault> {
    let mut rows = Vec::new();
    let read = (|| -> Result<Result<bool, Fault>, Error> {
        let mut results = reply?;
        let has_columns = !results.columns().is_empty();
        // A row borrows what describes its columns.
        let columns = if has_columns {
            Some(results.columns().clone())
        } else {
            None
        };
        while let (Some(columns), Some(row)) = (&columns, results.next_row()?) {
            for at in 0..columns.len() {
                let Some(column) = columns.get(at) else {
                    continue;
                };
                if let Err(what) = check(&column, row.raw(at)) {
                    return Ok(Err(Fault::Misfit(what)));
                }
            }
            if keep_rows {
                rows.push(
                    (0..columns.len())
                        .map(|at| row.raw(at).map(<[u8]>::to_vec))
                        .collect(),
                );
            }
        }
        results.finish()?;
        Ok(Ok(has_columns))
    })();
    match read {
        Ok(Ok(true)) => Ok(Reply::Rows(rows)),
        Ok(Ok(false)) => Ok(Reply::Done),
        Ok(Err(fault)) => Err(fault),
        Err(Error::Server {
            number, message, ..
        }) if INTERNAL.contains(&number) => Err(Fault::Internal(format!("{number} {message}"))),
        Err(Error::Server { number, .. }) if TOO_LONG.contains(&number) => Err(Fault::TooLong),
        Err(Error::Server {
            number, message, ..
        }) => Ok(Reply::Refused(number, message)),
        Err(Error::Protocol(error)) => Err(Fault::Malformed(error.to_string())),
        Err(error) => Err(Fault::Lost(error.to_string())),
    }
}

/// Whether a value can be one of its column's.
fn check(column: &ColumnDefinition<'_>, value: Option<&[u8]>) -> Result<(), String> {
    use ColumnType as T;
    let said = |what: &str| {
        let shown = String::from_utf8_lossy(value.unwrap_or_default())
            .chars()
            .take(60)
            .collect::<String>();
        Err(format!("{:?} {what}: '{shown}'", column.column_type))
    };
    let Some(bytes) = value else {
        return match column.flags.contains(ColumnFlags::NOT_NULL) {
            true => said("that is never NULL, is NULL"),
            false => Ok(()),
        };
    };
    let is_unsigned = column.flags.contains(ColumnFlags::UNSIGNED);
    let is_right = match column.column_type {
        T::Tiny => is_within(bytes, 8, is_unsigned),
        T::Short => is_within(bytes, 16, is_unsigned),
        T::Int24 => is_within(bytes, 24, is_unsigned),
        T::Long => is_within(bytes, 32, is_unsigned),
        T::LongLong => is_within(bytes, 64, is_unsigned),
        T::Year => bytes.len() == 4 && bytes.iter().all(u8::is_ascii_digit),
        T::NewDecimal => is_decimal(bytes, usize::from(column.decimals)),
        T::Float | T::Double => {
            let number = std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| text.parse::<f64>().ok());
            number.is_some_and(f64::is_finite)
        }
        T::Date | T::NewDate => is_shaped(bytes, "dddd-dd-dd", 0),
        T::DateTime | T::Timestamp => is_shaped(bytes, "dddd-dd-dd dd:dd:dd", column.decimals),
        T::Time => {
            let bytes = bytes.strip_prefix(b"-").unwrap_or(bytes);
            is_shaped(bytes, "dd:dd:dd", column.decimals)
                || is_shaped(bytes, "ddd:dd:dd", column.decimals)
        }
        T::Json => serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok(),
        _ if column.collation != BINARY => std::str::from_utf8(bytes).is_ok(),
        _ => true,
    };
    if !is_right {
        return said(&format!(
            "({} decimals, unsigned {is_unsigned}) isn't one",
            column.decimals
        ));
    }
    let has_length = matches!(
        column.column_type,
        T::VarChar | T::VarString | T::String | T::Blob | T::TinyBlob | T::MediumBlob | T::LongBlob
    );
    match has_length && bytes.len() > column.length as usize {
        true => said(&format!(
            "is longer than it is said to be: {} of {} bytes",
            bytes.len(),
            column.length
        )),
        false => Ok(()),
    }
}

fn is_within(bytes: &[u8], bits: u32, is_unsigned: bool) -> bool {
    let number = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.parse::<i128>().ok());
    let range = match is_unsigned {
        true => 0..1i128 << bits,
        false => -(1i128 << (bits - 1))..1i128 << (bits - 1),
    };
    number.is_some_and(|number| range.contains(&number))
}

/// Digits behind the point that say that there is no fixed number of them.
const NOT_FIXED: usize = 31;

fn is_decimal(bytes: &[u8], decimals: usize) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let mut parts = digits.split(|byte| *byte == b'.');
    let whole = parts.next().unwrap_or_default();
    let fraction = parts.next().unwrap_or_default();
    let are_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let has_scale = fraction.len() == decimals || decimals >= NOT_FIXED;
    parts.next().is_none()
        && !whole.is_empty()
        && are_digits(whole)
        && are_digits(fraction)
        && has_scale
}

/// Whether a text has the shape, where `d` is a digit, and so many digits of seconds behind it.
fn is_shaped(bytes: &[u8], shape: &str, decimals: u8) -> bool {
    let (head, fraction) = bytes.split_at(bytes.len().min(shape.len()));
    let fits = |(byte, wanted): (&u8, u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        wanted => *byte == wanted,
    };
    let has_fraction = match fraction.split_first() {
        None => decimals == 0 || usize::from(decimals) >= NOT_FIXED,
        Some((b'.', digits)) => {
            digits.iter().all(u8::is_ascii_digit)
                && (digits.len() == usize::from(decimals) || usize::from(decimals) >= NOT_FIXED)
        }
        Some(_) => false,
    };
    head.len() == shape.len() && head.iter().zip(shape.bytes()).all(fits) && has_fraction
}

impl Reply {
    /// Rows in an order of their own, so that replies can be compared.
    pub(super) fn sorted(mut self) -> Reply {
        if let Reply::Rows(rows) = &mut self {
            rows.sort();
        }
        self
    }

    /// Whether two sorted replies say the same: numbers by thirteen digits, refusals whatever they
    /// say.
    pub(super) fn agrees_with(&self, other: &Reply) -> bool {
        match (self, other) {
            (Reply::Rows(a), Reply::Rows(b)) => a == b || are_alike(a, b),
            (Reply::Refused(..), Reply::Refused(..)) | (Reply::Done, Reply::Done) => true,
            _ => false,
        }
    }

    /// For people, not too long.
    pub(super) fn shown(&self) -> String {
        match self {
            Reply::Rows(rows) => {
                let shown = |value: &Option<Vec<u8>>| match value {
                    None => "NULL".to_owned(),
                    Some(bytes) => format!("'{}'", bytes.escape_ascii())
                        .chars()
                        .take(80)
                        .collect(),
                };
                let row = |row: &Row| {
                    format!("({})", row.iter().map(shown).collect::<Vec<_>>().join(", "))
                };
                let shown: Vec<String> = rows.iter().take(6).map(row).collect();
                format!("{} rows: {}", rows.len(), shown.join(" "))
            }
            Reply::Done => "done".into(),
            Reply::Refused(number, message) => format!("ERROR {number}: {message}"),
        }
    }
}

fn are_alike(a: &[Row], b: &[Row]) -> bool {
    let folded = |rows: &[Row]| {
        let fold = |row: &Row| row.iter().map(fold).collect::<Vec<_>>();
        let mut rows: Vec<Vec<String>> = rows.iter().map(fold).collect();
        rows.sort();
        rows
    };
    a.len() == b.len() && folded(a) == folded(b)
}

/// A value as it is compared: numbers by thirteen digits and without the sign of zero, texts without
/// case, accents and trailing spaces, as either of two equal values may stand for a group.
fn fold(value: &Option<Vec<u8>>) -> String {
    let Some(value) = value else {
        return "NULL".to_string();
    };
    let text = String::from_utf8_lossy(value);
    if text.contains(['.', 'e'])
        && let Ok(number) = text.parse::<f64>()
    {
        return format!("{number:.12e}");
    }
    // Zeros of either sign are equal, as members of a list as well.
    let unsigned = |part| if part == "-0" { "0" } else { part };
    let parts = text.trim_end().split(',').map(unsigned);
    let folded = parts.collect::<Vec<_>>().join(",").to_lowercase();
    folded
        .replace('é', "e")
        .replace('ß', "s")
        .replace("ss", "s")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(
        column_type: ColumnType,
        decimals: u8,
        flags: ColumnFlags,
    ) -> ColumnDefinition<'static> {
        ColumnDefinition {
            column_type,
            decimals,
            flags,
            length: 5,
            ..ColumnDefinition::default()
        }
    }

    #[test]
    fn a_value_has_to_be_of_its_columns_type() {
        use ColumnType as T;
        let none = ColumnFlags::empty();
        let right = [
            (T::Long, 0, "-2147483648"),
            (T::LongLong, 0, "9223372036854775807"),
            (T::NewDecimal, 2, "-1.50"),
            (T::NewDecimal, 0, "7"),
            (T::Double, 31, "1e22"),
            (T::Date, 0, "2024-02-29"),
            (T::Time, 0, "-838:59:59"),
            (T::DateTime, 3, "2024-02-29 10:20:30.123"),
            (T::Json, 0, "{\"a\": [1e400]}"),
            (T::VarString, 0, "abcde"),
        ];
        for (ty, decimals, text) in right {
            assert_eq!(
                check(&column(ty, decimals, none), Some(text.as_bytes())),
                Ok(())
            );
        }
        let wrong = [
            (T::Long, 0, "2147483648"),
            (T::LongLong, 0, "1.5"),
            (T::NewDecimal, 2, "1.5"),
            (T::NewDecimal, 0, "1e5"),
            (T::Double, 31, "inf"),
            (T::Date, 0, "2024-2-29"),
            (T::Time, 1, "10:20:30"),
            (T::Json, 0, "{"),
            (T::DateTime, 0, "2024-02-29 10:20:30.1"),
            (T::VarString, 0, "abcdef"),
            (T::Year, 0, "24"),
        ];
        for (ty, decimals, text) in wrong {
            assert!(
                check(&column(ty, decimals, none), Some(text.as_bytes())).is_err(),
                "{ty:?} {text}"
            );
        }
        assert!(check(&column(T::Long, 0, ColumnFlags::UNSIGNED), Some(b"-1")).is_err());
        assert!(check(&column(T::Long, 0, ColumnFlags::NOT_NULL), None).is_err());
    }

    #[test]
    fn numbers_agree_by_thirteen_digits_and_refusals_whatever_they_say() {
        let rows = |text: &str| Reply::Rows(vec![vec![Some(text.as_bytes().to_vec())]]);
        assert!(rows("0.1234567890123451").agrees_with(&rows("0.1234567890123452")));
        assert!(!rows("0.12345").agrees_with(&rows("0.12346")));
        assert!(rows("-0,0.5").agrees_with(&rows("0,0.5")));
        assert!(!rows("-1").agrees_with(&rows("1")));
        assert!(Reply::Refused(1, "a".into()).agrees_with(&Reply::Refused(2, "b".into())));
        assert!(!Reply::Refused(1, "a".into()).agrees_with(&rows("1")));
    }
}
