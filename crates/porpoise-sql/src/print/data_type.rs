//! Data types as SQL.

use super::*;

impl GeometryKind {
    /// The type's name, lower case.
    pub fn name(self) -> &'static str {
        match self {
            GeometryKind::Geometry => "geometry",
            GeometryKind::Point => "point",
            GeometryKind::LineString => "linestring",
            GeometryKind::Polygon => "polygon",
            GeometryKind::MultiPoint => "multipoint",
            GeometryKind::MultiLineString => "multilinestring",
            GeometryKind::MultiPolygon => "multipolygon",
            GeometryKind::GeometryCollection => "geomcollection",
        }
    }
}

impl Printer<'_, '_> {
    // -- Types
    // --------------------------------------------------------------------------------------------

    fn length(&mut self, name: &str, length: Option<u32>) -> fmt::Result {
        match length {
            Some(length) => put!(self, "{name}({length})"),
            None => self.word(name),
        }
    }

    pub(super) fn cast_type(&mut self, to: &CastType) -> fmt::Result {
        match to {
            CastType::Binary(length) => self.length("binary", *length),
            CastType::Char {
                length,
                charset,
                binary,
            } => {
                self.length("char", *length)?;
                if let Some(charset) = charset {
                    put!(self, " charset {}", charset.as_str())?;
                }
                match binary {
                    true => put!(self, " binary"),
                    false => Ok(()),
                }
            }
            CastType::NChar(length) => self.length("nchar", *length),
            CastType::Signed => self.word("signed"),
            CastType::Unsigned => self.word("unsigned"),
            CastType::Decimal(None) => self.word("decimal"),
            CastType::Decimal(Some((precision, None))) => put!(self, "decimal({precision})"),
            CastType::Decimal(Some((precision, Some(scale)))) => {
                put!(self, "decimal({precision},{scale})")
            }
            CastType::Float(bits) => self.length("float", *bits),
            CastType::Double => self.word("double"),
            CastType::Date => self.word("date"),
            CastType::Time(fraction) => self.length("time", *fraction),
            CastType::DateTime(fraction) => self.length("datetime", *fraction),
            CastType::Year => self.word("year"),
            CastType::Json => self.word("json"),
            CastType::Geometry(kind) => self.word(kind.name()),
        }
    }

    fn signs(&mut self, unsigned: bool, zerofill: bool) -> fmt::Result {
        self.word(if unsigned { " unsigned" } else { "" })?;
        self.word(if zerofill { " zerofill" } else { "" })
    }

    pub(super) fn charset(&mut self, spec: &CharsetSpec) -> fmt::Result {
        if let Some(charset) = &spec.charset {
            put!(self, " CHARACTER SET {}", charset.as_str())?;
        }
        self.word(if spec.binary { " BINARY" } else { "" })
    }

    fn members(&mut self, name: &str, members: &[Box<[u8]>]) -> fmt::Result {
        put!(self, "{name}(")?;
        self.list(members, |p, member| match std::str::from_utf8(member) {
            // Members double their quotes, and escape nothing else but backslashes.
            Ok(text) => put!(p, "'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
            Err(_) => p.hex(member),
        })?;
        self.word(")")
    }

    pub(super) fn data_type(&mut self, data_type: &DataType) -> fmt::Result {
        match data_type {
            DataType::Integer {
                kind,
                width,
                unsigned,
                zerofill,
            } => {
                let name = match kind {
                    IntegerKind::TinyInt => "tinyint",
                    IntegerKind::SmallInt => "smallint",
                    IntegerKind::MediumInt => "mediumint",
                    IntegerKind::Int => "int",
                    IntegerKind::BigInt => "bigint",
                };
                self.length(name, *width)?;
                self.signs(*unsigned, *zerofill)
            }
            DataType::Bit(width) => self.length("bit", *width),
            DataType::Decimal {
                precision,
                scale,
                unsigned,
                zerofill,
            } => {
                match (precision, scale) {
                    (Some(precision), Some(scale)) => put!(self, "decimal({precision},{scale})")?,
                    (precision, _) => self.length("decimal", *precision)?,
                }
                self.signs(*unsigned, *zerofill)
            }
            DataType::Float {
                double,
                digits,
                unsigned,
                zerofill,
            } => {
                self.word(if *double { "double" } else { "float" })?;
                if let Some((digits, scale)) = digits {
                    put!(self, "({digits},{scale})")?;
                }
                self.signs(*unsigned, *zerofill)
            }
            DataType::Date => self.word("date"),
            DataType::Time(fraction) => self.length("time", *fraction),
            DataType::DateTime(fraction) => self.length("datetime", *fraction),
            DataType::Timestamp(fraction) => self.length("timestamp", *fraction),
            DataType::Year => self.word("year"),
            DataType::Char { length, charset } => {
                self.length("char", *length)?;
                self.charset(charset)
            }
            DataType::VarChar { length, charset } => {
                put!(self, "varchar({length})")?;
                self.charset(charset)
            }
            DataType::Text {
                size,
                length,
                charset,
            } => {
                let name = match size {
                    LobSize::Tiny => "tinytext",
                    LobSize::Normal => "text",
                    LobSize::Medium => "mediumtext",
                    LobSize::Long => "longtext",
                };
                self.length(name, *length)?;
                self.charset(charset)
            }
            DataType::Binary(length) => self.length("binary", *length),
            DataType::VarBinary(length) => put!(self, "varbinary({length})"),
            DataType::Blob { size, length } => {
                let name = match size {
                    LobSize::Tiny => "tinyblob",
                    LobSize::Normal => "blob",
                    LobSize::Medium => "mediumblob",
                    LobSize::Long => "longblob",
                };
                self.length(name, *length)
            }
            DataType::Enum { members, charset } => {
                self.members("enum", members)?;
                self.charset(charset)
            }
            DataType::Set { members, charset } => {
                self.members("set", members)?;
                self.charset(charset)
            }
            DataType::Json => self.word("json"),
            DataType::Geometry(kind) => self.word(kind.name()),
        }
    }
}
