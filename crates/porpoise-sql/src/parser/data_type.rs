//! Data types.

use super::*;

/// Words that say a character type's set.
const CHARSET_WORDS: &[(&str, &str)] =
    &[("ASCII", "latin1"), ("UNICODE", "ucs2"), ("BYTE", "binary")];

fn national() -> CharsetSpec {
    CharsetSpec {
        charset: Some("utf8mb3".into()),
        binary: false,
    }
}

impl Parser<'_> {
    // -- Types
    // --------------------------------------------------------------------------------------------

    pub(super) fn geometry_kind(&mut self) -> Option<GeometryKind> {
        let kind = match self.keyword() {
            "GEOMETRY" => GeometryKind::Geometry,
            "POINT" => GeometryKind::Point,
            "LINESTRING" => GeometryKind::LineString,
            "POLYGON" => GeometryKind::Polygon,
            "MULTIPOINT" => GeometryKind::MultiPoint,
            "MULTILINESTRING" => GeometryKind::MultiLineString,
            "MULTIPOLYGON" => GeometryKind::MultiPolygon,
            "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => GeometryKind::GeometryCollection,
            _ => return None,
        };
        self.advance();
        Some(kind)
    }

    /// The type of a column.
    pub(super) fn data_type(&mut self) -> Result<DataType> {
        if let Some(kind) = self.geometry_kind() {
            return Ok(DataType::Geometry(kind));
        }
        let error = self.syntax_error();
        Ok(match self.advance().keyword.text() {
            "TINYINT" | "INT1" => self.integer(IntegerKind::TinyInt)?,
            "SMALLINT" | "INT2" => self.integer(IntegerKind::SmallInt)?,
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => self.integer(IntegerKind::MediumInt)?,
            "INT" | "INTEGER" | "INT4" => self.integer(IntegerKind::Int)?,
            "BIGINT" | "INT8" => self.integer(IntegerKind::BigInt)?,
            "BOOL" | "BOOLEAN" => DataType::Integer {
                kind: IntegerKind::TinyInt,
                width: Some(1),
                unsigned: false,
                zerofill: false,
            },
            "BIT" => DataType::Bit(self.opt_length()?),
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => {
                let (precision, scale) = match self.is(TokenKind::LeftParen) {
                    true => {
                        let (precision, scale) = self.precision_scale()?;
                        (Some(precision), scale)
                    }
                    false => (None, None),
                };
                let (unsigned, zerofill) = self.sign();
                DataType::Decimal {
                    precision,
                    scale,
                    unsigned,
                    zerofill,
                }
            }
            "FLOAT" | "FLOAT4" => self.float(false)?,
            "REAL" => self.float(!self.modes.has(Modes::REAL_AS_FLOAT))?,
            "DOUBLE" | "FLOAT8" => {
                self.eat("PRECISION");
                self.float(true)?
            }
            "DATE" => DataType::Date,
            "TIME" => DataType::Time(self.opt_length()?),
            "DATETIME" => DataType::DateTime(self.opt_length()?),
            "TIMESTAMP" => DataType::Timestamp(self.opt_length()?),
            "YEAR" => {
                self.opt_length()?;
                self.sign();
                DataType::Year
            }
            "CHAR" | "CHARACTER" => match self.eat("VARYING") {
                true => self.varchar(CharsetSpec::default())?,
                false => {
                    let length = self.opt_length()?;
                    DataType::Char {
                        length,
                        charset: self.charset_spec(CharsetSpec::default())?,
                    }
                }
            },
            "NCHAR" => match self.eat("VARCHAR") || self.eat("VARYING") {
                true => self.varchar(national())?,
                false => {
                    let length = self.opt_length()?;
                    DataType::Char {
                        length,
                        charset: self.charset_spec(national())?,
                    }
                }
            },
            "NATIONAL" => match self.advance().keyword.text() {
                "VARCHAR" => self.varchar(national())?,
                "CHAR" | "CHARACTER" if self.eat("VARYING") => self.varchar(national())?,
                "CHAR" | "CHARACTER" => {
                    let length = self.opt_length()?;
                    DataType::Char {
                        length,
                        charset: self.charset_spec(national())?,
                    }
                }
                _ => return Err(error),
            },
            "NVARCHAR" => self.varchar(national())?,
            "VARCHAR" | "VARCHARACTER" => self.varchar(CharsetSpec::default())?,
            "TINYTEXT" => self.text_type(LobSize::Tiny, None)?,
            "TEXT" => {
                let length = self.opt_length()?;
                self.text_type(LobSize::Normal, length)?
            }
            "MEDIUMTEXT" => self.text_type(LobSize::Medium, None)?,
            "LONGTEXT" => self.text_type(LobSize::Long, None)?,
            "LONG" => match self.eat_any(&["VARBINARY", "VARCHAR", "VARCHARACTER"]) {
                Some("VARBINARY") => DataType::Blob {
                    size: LobSize::Medium,
                    length: None,
                },
                _ => self.text_type(LobSize::Medium, None)?,
            },
            "BINARY" => DataType::Binary(self.opt_length()?),
            "VARBINARY" => DataType::VarBinary(self.parens(Self::u32)?),
            "TINYBLOB" => DataType::Blob {
                size: LobSize::Tiny,
                length: None,
            },
            "BLOB" => DataType::Blob {
                size: LobSize::Normal,
                length: self.opt_length()?,
            },
            "MEDIUMBLOB" => DataType::Blob {
                size: LobSize::Medium,
                length: None,
            },
            "LONGBLOB" => DataType::Blob {
                size: LobSize::Long,
                length: None,
            },
            "ENUM" => {
                let members = self.paren_list(Self::string_or_hex)?;
                DataType::Enum {
                    members,
                    charset: self.charset_spec(CharsetSpec::default())?,
                }
            }
            "SET" => {
                let members = self.paren_list(Self::string_or_hex)?;
                DataType::Set {
                    members,
                    charset: self.charset_spec(CharsetSpec::default())?,
                }
            }
            "JSON" => DataType::Json,
            _ => return Err(error),
        })
    }

    fn integer(&mut self, kind: IntegerKind) -> Result<DataType> {
        let width = self.opt_length()?;
        let (unsigned, zerofill) = self.sign();
        Ok(DataType::Integer {
            kind,
            width,
            unsigned,
            zerofill,
        })
    }

    /// `[SIGNED | UNSIGNED] [ZEROFILL]`: unsigned, zerofill.
    fn sign(&mut self) -> (bool, bool) {
        let (mut unsigned, mut zerofill) = (false, false);
        while let Some(word) = self.eat_any(&["SIGNED", "UNSIGNED", "ZEROFILL"]) {
            unsigned |= word != "SIGNED";
            zerofill |= word == "ZEROFILL";
        }
        (unsigned, zerofill)
    }

    fn float(&mut self, double: bool) -> Result<DataType> {
        let (mut double, mut digits) = (double, None);
        if self.is(TokenKind::LeftParen) {
            match self.precision_scale()? {
                (precision, Some(scale)) => digits = Some((precision, scale)),
                // FLOAT(bits).
                (bits, None) => double |= bits > 24,
            }
        }
        let (unsigned, zerofill) = self.sign();
        Ok(DataType::Float {
            double,
            digits,
            unsigned,
            zerofill,
        })
    }

    fn varchar(&mut self, charset: CharsetSpec) -> Result<DataType> {
        let length = self.parens(Self::u32)?;
        Ok(DataType::VarChar {
            length,
            charset: self.charset_spec(charset)?,
        })
    }

    fn text_type(&mut self, size: LobSize, length: Option<u32>) -> Result<DataType> {
        Ok(DataType::Text {
            size,
            length,
            charset: self.charset_spec(CharsetSpec::default())?,
        })
    }

    /// `[CHARACTER SET name | ASCII | UNICODE | BYTE] [BINARY]`, in any order.
    pub(super) fn charset_spec(&mut self, mut spec: CharsetSpec) -> Result<CharsetSpec> {
        loop {
            if self.eat_charset_words() {
                spec.charset = Some(self.charset_name()?);
            } else if self.eat("BINARY") {
                spec.binary = true;
            } else if let Some((word, charset)) =
                CHARSET_WORDS.iter().find(|(word, _)| self.at(word))
            {
                self.expect(word)?;
                spec.charset = Some(Ident::new(charset));
            } else {
                return Ok(spec);
            }
        }
    }
}
