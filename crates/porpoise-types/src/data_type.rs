//! `DataType`: the static type of a column or an expression, and the one place that knows a type's
//! rules.
//!
//! What a type's values may be is in [`store`](crate::store()); how they lie in a row is in
//! [`row`](crate::row); here are their names, classes, and the lengths MySQL reports in result-set
//! metadata (MySQL 8.4 manual, chapter 13).

use crate::{Charset, Collation, Date, DateTime, Decimal, Json, JsonValue, Time, Value};
use compact_str::CompactString;
use std::fmt::Write;
use std::sync::Arc;

/// The size of an integer type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum IntWidth {
    /// `TINYINT`: 1 byte.
    Tiny,
    /// `SMALLINT`: 2 bytes.
    Small,
    /// `MEDIUMINT`: 3 bytes.
    Medium,
    /// `INT`: 4 bytes.
    Int,
    /// `BIGINT`: 8 bytes.
    Big,
}

impl IntWidth {
    /// How many bits a value has.
    pub fn bits(self) -> u32 {
        match self {
            IntWidth::Tiny => 8,
            IntWidth::Small => 16,
            IntWidth::Medium => 24,
            IntWidth::Int => 32,
            IntWidth::Big => 64,
        }
    }

    /// The range of the type: signed values, or unsigned ones clamped into `i128`.
    pub fn range(self, unsigned: bool) -> (i128, i128) {
        let bits = self.bits();
        if unsigned {
            (0, (1i128 << bits) - 1)
        } else {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        }
    }

    /// The type's name in lower case, without UNSIGNED.
    pub fn sql_name(self) -> &'static str {
        match self {
            IntWidth::Tiny => "tinyint",
            IntWidth::Small => "smallint",
            IntWidth::Medium => "mediumint",
            IntWidth::Int => "int",
            IntWidth::Big => "bigint",
        }
    }

    fn default_display_width(self, unsigned: bool) -> u8 {
        match (self, unsigned) {
            (IntWidth::Tiny, false) => 4,
            (IntWidth::Tiny, true) => 3,
            (IntWidth::Small, false) => 6,
            (IntWidth::Small, true) => 5,
            (IntWidth::Medium, false) => 9,
            (IntWidth::Medium, true) => 8,
            (IntWidth::Int, false) => 11,
            (IntWidth::Int, true) => 10,
            (IntWidth::Big, _) => 20,
        }
    }
}

/// The four sizes of TEXT and BLOB, by the width of their length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum BlobSize {
    /// `TINYTEXT`, `TINYBLOB`.
    Tiny,
    /// `TEXT`, `BLOB`.
    Normal,
    /// `MEDIUMTEXT`, `MEDIUMBLOB`.
    Medium,
    /// `LONGTEXT`, `LONGBLOB`.
    Long,
}

impl BlobSize {
    /// The longest value, in bytes.
    pub fn max_octets(self) -> u64 {
        match self {
            BlobSize::Tiny => 255,
            BlobSize::Normal => 65_535,
            BlobSize::Medium => 16_777_215,
            BlobSize::Long => 4_294_967_295,
        }
    }

    /// The smallest but TINY that holds so many bytes; LONG for more than any holds.
    pub fn holding(octets: u64) -> BlobSize {
        let sizes = [BlobSize::Normal, BlobSize::Medium];
        let fitting = sizes.into_iter().find(|size| octets <= size.max_octets());
        fitting.unwrap_or(BlobSize::Long)
    }

    fn prefix(self) -> &'static str {
        match self {
            BlobSize::Tiny => "tiny",
            BlobSize::Normal => "",
            BlobSize::Medium => "medium",
            BlobSize::Long => "long",
        }
    }
}

/// The members of an ENUM or a SET, in definition order; member `i` is index `i + 1` (ENUM) or bit
/// `i` (SET).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EnumDef {
    /// The members, in definition order.
    pub members: Vec<CompactString>,
    /// By which members are found in texts.
    pub collation: Collation,
}

impl EnumDef {
    /// The position of a member equal to `text` under the collation, trailing spaces ignored.
    pub fn find(&self, text: &str) -> Option<usize> {
        let text = text.trim_end_matches(' ');
        self.members
            .iter()
            .position(|m| m.as_str() == text)
            .or_else(|| {
                self.members
                    .iter()
                    .position(|m| self.collation.eq(m.as_bytes(), text.as_bytes()))
            })
    }

    /// The text of an ENUM index; index 0 is the empty "error" member.
    pub fn enum_text(&self, index: u64) -> &str {
        match index {
            0 => "",
            i => self.members.get(i as usize - 1).map_or("", |m| m.as_str()),
        }
    }

    /// The comma-joined text of a SET's bit mask.
    pub fn set_text(&self, bits: u64, out: &mut Vec<u8>) {
        let mut first = true;
        for (i, member) in self.members.iter().enumerate().take(64) {
            if bits >> i & 1 == 1 {
                if !first {
                    out.push(b',');
                }
                first = false;
                out.extend_from_slice(member.as_bytes());
            }
        }
    }

    fn sql_members(&self, out: &mut String) {
        for (i, m) in self.members.iter().enumerate() {
            let _ = write!(
                out,
                "{}'{}'",
                if i > 0 { "," } else { "" },
                m.replace('\'', "''")
            );
        }
    }
}

/// The type of a column or an expression (MySQL 8.4 manual, chapter 13).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DataType {
    /// The type of a bare `NULL`.
    Null,
    /// `TINYINT` to `BIGINT`.
    Int {
        /// Its size.
        width: IntWidth,
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`: printed with zeros up to the display width.
        zerofill: bool,
        /// The display width, if it was written.
        display_width: Option<u8>,
    },
    /// 1 to 64 bits.
    Bit(u8),
    /// `DECIMAL(precision, scale)`.
    Decimal {
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`: printed with zeros up to the precision.
        zerofill: bool,
    },
    /// `FLOAT`.
    Float {
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`: printed with zeros up to the display width.
        zerofill: bool,
        /// `FLOAT(M,D)`: digits in all, and after the point.
        digits: Option<(u8, u8)>,
    },
    /// `DOUBLE`.
    Double {
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`: printed with zeros up to the display width.
        zerofill: bool,
        /// `DOUBLE(M,D)`: digits in all, and after the point.
        digits: Option<(u8, u8)>,
    },
    /// Length in characters.
    Char {
        /// At most so many characters.
        length: u32,
        /// By which its texts compare.
        collation: Collation,
    },
    /// Length in characters.
    Varchar {
        /// At most so many characters.
        length: u32,
        /// By which its texts compare.
        collation: Collation,
    },
    /// `TINYTEXT` to `LONGTEXT`.
    Text {
        /// How long it may be.
        size: BlobSize,
        /// By which its texts compare.
        collation: Collation,
    },
    /// Length in bytes; padded with zero bytes.
    Binary(u32),
    /// Length in bytes.
    Varbinary(u32),
    /// `TINYBLOB` to `LONGBLOB`.
    Blob(BlobSize),
    /// `DATE`.
    Date,
    /// `TIME(fsp)`.
    Time {
        /// Digits of a fraction of a second, 0 to 6.
        fsp: u8,
    },
    /// `DATETIME(fsp)`.
    DateTime {
        /// Digits of a fraction of a second, 0 to 6.
        fsp: u8,
    },
    /// `TIMESTAMP(fsp)`.
    Timestamp {
        /// Digits of a fraction of a second, 0 to 6.
        fsp: u8,
    },
    /// `YEAR`.
    Year,
    /// `ENUM(…)`: the value is the number of a member, 0 for the empty error value.
    Enum(Arc<EnumDef>),
    /// `SET(…)`: the value is a bit for each member.
    Set(Arc<EnumDef>),
    /// `JSON`.
    Json,
}

impl DataType {
    /// What a column that takes no NULL gets in its place outside strict mode.
    pub fn implicit_default(&self) -> Value {
        match self {
            DataType::Int { unsigned: true, .. }
            | DataType::Bit(_)
            | DataType::Year
            | DataType::Set(_) => Value::UInt(0),
            DataType::Enum(_) => Value::UInt(1),
            DataType::Int { .. } => Value::Int(0),
            DataType::Decimal { scale, .. } => Value::Decimal(Decimal::new(0, *scale)),
            DataType::Float { .. } | DataType::Double { .. } => Value::Double(0.0),
            DataType::Date => Value::Date(Date::default()),
            DataType::Time { .. } => Value::Time(Time::default()),
            DataType::DateTime { .. } | DataType::Timestamp { .. } => {
                Value::DateTime(DateTime::default())
            }
            DataType::Binary(length) => Value::Bytes(vec![0; *length as usize]),
            DataType::Varbinary(_) | DataType::Blob(_) => Value::Bytes(Vec::new()),
            DataType::Json => Value::Json(Json::new(JsonValue::Null)),
            _ => Value::text(""),
        }
    }

    /// `BIGINT`.
    pub const BIGINT: DataType = DataType::Int {
        width: IntWidth::Big,
        unsigned: false,
        zerofill: false,
        display_width: None,
    };
    /// `BIGINT UNSIGNED`.
    pub const BIGINT_UNSIGNED: DataType = DataType::Int {
        width: IntWidth::Big,
        unsigned: true,
        zerofill: false,
        display_width: None,
    };
    /// `INT`.
    pub const INT: DataType = DataType::Int {
        width: IntWidth::Int,
        unsigned: false,
        zerofill: false,
        display_width: None,
    };
    /// `DOUBLE`.
    pub const DOUBLE: DataType = DataType::Double {
        unsigned: false,
        zerofill: false,
        digits: None,
    };
    /// `FLOAT`.
    pub const FLOAT: DataType = DataType::Float {
        unsigned: false,
        zerofill: false,
        digits: None,
    };

    /// `VARCHAR(length)` of the default collation.
    pub fn varchar(length: u32) -> DataType {
        DataType::Varchar {
            length,
            collation: Collation::UTF8MB4_0900_AI_CI,
        }
    }

    /// `DECIMAL(precision, scale)`.
    pub fn decimal(precision: u8, scale: u8) -> DataType {
        DataType::Decimal {
            precision,
            scale,
            unsigned: false,
            zerofill: false,
        }
    }

    /// Whether its values are whole numbers: TINYINT to BIGINT, BIT, YEAR.
    pub fn is_integer(&self) -> bool {
        matches!(
            self,
            DataType::Int { .. } | DataType::Bit(_) | DataType::Year
        )
    }

    /// Whether no two numbers of this type are the same double.
    pub fn is_exact_in_double(&self) -> bool {
        /// A double tells as many decimal digits apart.
        const DIGITS: u8 = 15;
        match self {
            DataType::Int { width, .. } => *width != IntWidth::Big,
            DataType::Bit(bits) => u32::from(*bits) < f64::MANTISSA_DIGITS,
            DataType::Decimal { precision, .. } => *precision <= DIGITS,
            _ => true,
        }
    }

    /// Whether its values are numbers: integers, DECIMAL, FLOAT, DOUBLE, BIT, YEAR.
    pub fn is_numeric(&self) -> bool {
        self.is_integer()
            || matches!(
                self,
                DataType::Decimal { .. } | DataType::Float { .. } | DataType::Double { .. }
            )
    }

    /// Whether its numbers are never negative: UNSIGNED, BIT, YEAR, ENUM, SET.
    pub fn is_unsigned(&self) -> bool {
        match self {
            DataType::Int { unsigned, .. }
            | DataType::Decimal { unsigned, .. }
            | DataType::Float { unsigned, .. }
            | DataType::Double { unsigned, .. } => *unsigned,
            DataType::Bit(_) | DataType::Year | DataType::Enum(_) | DataType::Set(_) => true,
            _ => false,
        }
    }

    /// Whether it is a numeric type with ZEROFILL.
    pub fn is_zerofill(&self) -> bool {
        match self {
            DataType::Int { zerofill, .. }
            | DataType::Decimal { zerofill, .. }
            | DataType::Float { zerofill, .. }
            | DataType::Double { zerofill, .. } => *zerofill,
            _ => false,
        }
    }

    /// Character strings, byte strings, ENUM and SET.
    pub fn is_string(&self) -> bool {
        matches!(
            self,
            DataType::Char { .. }
                | DataType::Varchar { .. }
                | DataType::Text { .. }
                | DataType::Binary(_)
                | DataType::Varbinary(_)
                | DataType::Blob(_)
                | DataType::Enum(_)
                | DataType::Set(_)
        )
    }

    /// Whether it is DATE, TIME, DATETIME or TIMESTAMP.
    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            DataType::Date
                | DataType::Time { .. }
                | DataType::DateTime { .. }
                | DataType::Timestamp { .. }
        )
    }

    /// Whether its values are bytes that are no text: BINARY, VARBINARY, BLOB, and texts of the
    /// collation `binary`.
    pub fn is_binary_string(&self) -> bool {
        match self {
            DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_) => true,
            DataType::Char { collation, .. }
            | DataType::Varchar { collation, .. }
            | DataType::Text { collation, .. } => *collation == Collation::BINARY,
            _ => false,
        }
    }

    /// BLOB, TEXT and JSON: no length of their own, so keys on them need a prefix.
    pub fn is_blob(&self) -> bool {
        matches!(
            self,
            DataType::Text { .. } | DataType::Blob(_) | DataType::Json
        )
    }

    /// The collation of texts of this type; `binary` for everything that has none, utf8mb4_bin for
    /// JSON.
    pub fn collation(&self) -> Collation {
        match self {
            DataType::Char { collation, .. }
            | DataType::Varchar { collation, .. }
            | DataType::Text { collation, .. } => *collation,
            DataType::Enum(def) | DataType::Set(def) => def.collation,
            DataType::Json => Collation::UTF8MB4_BIN,
            _ => Collation::BINARY,
        }
    }

    /// The same type under another collation; types without one are returned as they are.
    pub fn with_collation(&self, to: Collation) -> DataType {
        let mut ty = self.clone();
        match &mut ty {
            DataType::Char { collation, .. }
            | DataType::Varchar { collation, .. }
            | DataType::Text { collation, .. } => *collation = to,
            DataType::Enum(def) | DataType::Set(def) => Arc::make_mut(def).collation = to,
            _ => {}
        }
        ty
    }

    /// As SHOW CREATE TABLE prints it, without CHARACTER SET and COLLATE.
    pub fn sql_name(&self) -> String {
        let mut s = String::new();
        let attributes = |s: &mut String, unsigned: bool, zerofill: bool| {
            if unsigned || zerofill {
                s.push_str(" unsigned");
            }
            if zerofill {
                s.push_str(" zerofill");
            }
        };
        let fsp = |name: &str, fsp: u8| {
            if fsp == 0 {
                name.to_string()
            } else {
                format!("{name}({fsp})")
            }
        };
        match self {
            DataType::Null => s.push_str("null"),
            DataType::Int {
                width,
                unsigned,
                zerofill,
                display_width,
            } => {
                s.push_str(width.sql_name());
                if *zerofill {
                    let shown = display_width.unwrap_or(width.default_display_width(true));
                    let _ = write!(s, "({shown})");
                } else if *width == IntWidth::Tiny && *display_width == Some(1) && !unsigned {
                    s.push_str("(1)");
                }
                attributes(&mut s, *unsigned, *zerofill);
            }
            DataType::Bit(n) => {
                let _ = write!(s, "bit({n})");
            }
            DataType::Decimal {
                precision,
                scale,
                unsigned,
                zerofill,
            } => {
                let _ = write!(s, "decimal({precision},{scale})");
                attributes(&mut s, *unsigned, *zerofill);
            }
            DataType::Float {
                unsigned,
                zerofill,
                digits,
            }
            | DataType::Double {
                unsigned,
                zerofill,
                digits,
            } => {
                s.push_str(if matches!(self, DataType::Float { .. }) {
                    "float"
                } else {
                    "double"
                });
                if let Some((m, d)) = digits {
                    let _ = write!(s, "({m},{d})");
                }
                attributes(&mut s, *unsigned, *zerofill);
            }
            DataType::Char { length, .. } => {
                let _ = write!(s, "char({length})");
            }
            DataType::Varchar { length, .. } => {
                let _ = write!(s, "varchar({length})");
            }
            DataType::Text { size, .. } => {
                let _ = write!(s, "{}text", size.prefix());
            }
            DataType::Binary(n) => {
                let _ = write!(s, "binary({n})");
            }
            DataType::Varbinary(n) => {
                let _ = write!(s, "varbinary({n})");
            }
            DataType::Blob(size) => {
                let _ = write!(s, "{}blob", size.prefix());
            }
            DataType::Date => s.push_str("date"),
            DataType::Time { fsp: n } => s = fsp("time", *n),
            DataType::DateTime { fsp: n } => s = fsp("datetime", *n),
            DataType::Timestamp { fsp: n } => s = fsp("timestamp", *n),
            DataType::Year => s.push_str("year"),
            DataType::Enum(def) => {
                s.push_str("enum(");
                def.sql_members(&mut s);
                s.push(')');
            }
            DataType::Set(def) => {
                s.push_str("set(");
                def.sql_members(&mut s);
                s.push(')');
            }
            DataType::Json => s.push_str("json"),
        }
        s
    }

    /// The width in characters that a value of this type can take when printed.
    pub fn max_chars(&self) -> u64 {
        let with_fraction = |base: u64, fsp: u8| base + if fsp > 0 { fsp as u64 + 1 } else { 0 };
        match self {
            DataType::Null => 0,
            DataType::Int {
                width,
                unsigned,
                display_width,
                ..
            } => display_width.unwrap_or(width.default_display_width(*unsigned)) as u64,
            DataType::Bit(n) => *n as u64,
            DataType::Decimal {
                precision,
                scale,
                unsigned,
                ..
            } => *precision as u64 + (*scale > 0) as u64 + !*unsigned as u64,
            DataType::Float {
                digits: Some((m, _)),
                ..
            }
            | DataType::Double {
                digits: Some((m, _)),
                ..
            } => *m as u64,
            DataType::Float { .. } => 12,
            DataType::Double { .. } => 22,
            DataType::Char { length, .. } | DataType::Varchar { length, .. } => *length as u64,
            DataType::Text { size, .. } => size.max_octets(),
            DataType::Binary(n) | DataType::Varbinary(n) => *n as u64,
            DataType::Blob(size) => size.max_octets(),
            DataType::Date => 10,
            DataType::Time { fsp } => with_fraction(10, *fsp),
            DataType::DateTime { fsp } | DataType::Timestamp { fsp } => with_fraction(19, *fsp),
            DataType::Year => 4,
            DataType::Enum(def) => def
                .members
                .iter()
                .map(|m| m.chars().count() as u64)
                .max()
                .unwrap_or(0),
            DataType::Set(def) => {
                let chars: u64 = def.members.iter().map(|m| m.chars().count() as u64).sum();
                chars + def.members.len().saturating_sub(1) as u64
            }
            DataType::Json => u32::MAX as u64,
        }
    }

    /// The length in bytes that result-set metadata reports when texts are sent in `charset`.
    pub fn max_octets(&self, charset: Charset) -> u64 {
        let bytes_per_char = if self.is_string() && !self.is_binary_string() {
            charset.max_len() as u64
        } else {
            1
        };
        (self.max_chars() * bytes_per_char).min(u32::MAX as u64)
    }

    /// The `decimals` of result-set metadata: 31 where the number of decimals is not fixed.
    pub fn decimals(&self) -> u8 {
        match self {
            DataType::Decimal { scale, .. } => *scale,
            DataType::Float { digits, .. } | DataType::Double { digits, .. } => {
                digits.map_or(31, |(_, d)| d)
            }
            DataType::Time { fsp } | DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
                *fsp
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(width: IntWidth, unsigned: bool, zerofill: bool, display_width: Option<u8>) -> DataType {
        DataType::Int {
            width,
            unsigned,
            zerofill,
            display_width,
        }
    }

    /// MySQL 8.4 manual, 13.1.1: display widths are gone, but for tinyint(1) and ZEROFILL.
    #[test]
    fn types_print_as_show_create_table_does() {
        let members: Arc<EnumDef> = Arc::new(EnumDef {
            members: vec!["a".into(), "it's".into()],
            collation: Collation::UTF8MB4_BIN,
        });
        let facts = [
            (int(IntWidth::Int, true, false, Some(10)), "int unsigned"),
            (int(IntWidth::Tiny, false, false, Some(1)), "tinyint(1)"),
            (int(IntWidth::Tiny, false, false, Some(2)), "tinyint"),
            (
                int(IntWidth::Int, true, true, None),
                "int(10) unsigned zerofill",
            ),
            (
                int(IntWidth::Small, true, true, Some(3)),
                "smallint(3) unsigned zerofill",
            ),
            (DataType::varchar(20), "varchar(20)"),
            (DataType::decimal(10, 2), "decimal(10,2)"),
            (
                DataType::Double {
                    unsigned: false,
                    zerofill: false,
                    digits: Some((7, 3)),
                },
                "double(7,3)",
            ),
            (
                DataType::Text {
                    size: BlobSize::Medium,
                    collation: Collation::UTF8MB4_BIN,
                },
                "mediumtext",
            ),
            (DataType::Blob(BlobSize::Normal), "blob"),
            (DataType::DateTime { fsp: 0 }, "datetime"),
            (DataType::Timestamp { fsp: 6 }, "timestamp(6)"),
            (DataType::Enum(members.clone()), "enum('a','it''s')"),
            (DataType::Set(members), "set('a','it''s')"),
            (DataType::Bit(1), "bit(1)"),
            (DataType::Json, "json"),
        ];
        for (ty, name) in facts {
            assert_eq!(ty.sql_name(), name);
        }
    }

    #[test]
    fn metadata_lengths_are_those_of_mysql() {
        assert_eq!(DataType::INT.max_chars(), 11);
        assert_eq!(DataType::BIGINT.max_chars(), 20);
        assert_eq!(DataType::decimal(10, 2).max_chars(), 12);
        assert_eq!(DataType::varchar(20).max_octets(Charset::Utf8mb4), 80);
        let text = DataType::Text {
            size: BlobSize::Normal,
            collation: Collation::UTF8MB4_BIN,
        };
        assert_eq!(text.max_octets(Charset::Utf8mb4), 262_140);
        assert_eq!(
            DataType::DateTime { fsp: 3 }.max_octets(Charset::Utf8mb4),
            23
        );
        assert_eq!(DataType::DOUBLE.decimals(), 31);
    }
}
