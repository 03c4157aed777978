//! Declared types: from what a column's definition says to a type (MySQL 8.4 manual, chapter 13).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::variables::SessionVars;
use porpoise_sql::ast;
use porpoise_types::{BlobSize, Charset, Collation, DataType, EnumDef, IntWidth};

const CHAR_LENGTH_MAX: u32 = 255;
/// Of VARCHAR and VARBINARY, in bytes.
const VARCHAR_BYTES_MAX: u32 = 65_535;
/// The longest string of an expression, in characters or bytes, that is kept as VARCHAR or VARBINARY
/// (MySQL 8.4 manual, 10.4.4).
const STRING_LENGTH_MAX: u32 = 512;
const FSP_MAX: u32 = 6;
const DECIMAL_DIGITS_MAX: u32 = 65;
const DECIMAL_SCALE_MAX: u32 = 30;
const FLOAT_DIGITS_MAX: u32 = 255;
const BIT_WIDTH_MAX: u32 = 64;
const SET_MEMBERS_MAX: usize = 64;

/// What a column's definition is read against.
pub struct TypeContext<'a> {
    /// For the SQL mode and the connection's collation; takes the warnings.
    pub session: &'a mut SessionVars,
    /// The table's collation.
    pub collation: Collation,
    /// When the statement began, in UTC microseconds since 1970.
    pub now_us: i64,
}

/// Finds a collation by name, or error 1273.
pub fn collation_named(name: &str) -> Result<Collation> {
    Collation::by_name(name).ok_or_else(|| Error::unknown_collation(name))
}

/// Finds a character set by name, or error 1115.
pub fn charset_named(name: &str) -> Result<Charset> {
    Charset::by_name(name).ok_or_else(|| Error::unknown_character_set(name))
}

/// The collation that `CHARACTER SET` and `COLLATE` make together, over an inherited one.
pub fn resolve_collation(
    charset: Option<&str>,
    collation: Option<&str>,
    inherited: Collation,
) -> Result<Collation> {
    match (charset, collation) {
        (None, None) => Ok(inherited),
        (Some(charset), None) => Ok(charset_named(charset)?.default_collation()),
        (None, Some(collation)) => collation_named(collation),
        (Some(charset), Some(collation)) => {
            let (set, found) = (charset_named(charset)?, collation_named(collation)?);
            if found.charset() != set {
                return Err(Error::collation_charset_mismatch(found.name(), set.name()));
            }
            Ok(found)
        }
    }
}

fn text_collation(
    spec: &ast::CharsetSpec,
    collate: Option<&ast::Ident>,
    inherited: Collation,
) -> Result<Collation> {
    let charset = spec.charset.as_ref().map(|name| name.as_str());
    let mut collation = resolve_collation(charset, collate.map(|name| name.as_str()), inherited)?;
    if spec.binary && collate.is_none() {
        collation =
            Collation::by_name(&format!("{}_bin", collation.charset().name())).unwrap_or(collation);
    }
    // `COLLATE` of another character set than the one written was refused; of the inherited one it
    // isn't.
    Ok(collation)
}

fn fsp(written: Option<u32>, column: &str) -> Result<u8> {
    match written.unwrap_or(0) {
        fsp @ 0..=FSP_MAX => Ok(fsp as u8),
        fsp => Err(Error::too_big_precision(fsp, column, FSP_MAX)),
    }
}

fn float_digits(digits: Option<(u32, u32)>, column: &str) -> Result<Option<(u8, u8)>> {
    let Some((m, d)) = digits else {
        return Ok(None);
    };
    if m > FLOAT_DIGITS_MAX {
        return Err(Error::display_width_out_of_range(column, FLOAT_DIGITS_MAX));
    }
    if d > DECIMAL_SCALE_MAX {
        return Err(Error::too_big_scale(d, column, DECIMAL_SCALE_MAX));
    }
    if d > m {
        return Err(Error::scale_over_precision(column));
    }
    Ok(Some((m as u8, d as u8)))
}

/// The type of a column that keeps an expression's values: a string that may be longer than
/// [`STRING_LENGTH_MAX`] is a TEXT or a BLOB.
pub fn stored_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Null => DataType::Binary(0),
        DataType::Varchar { length, collation } if *length > STRING_LENGTH_MAX => {
            let bytes_per_char = u64::from(collation.charset().max_len());
            DataType::Text {
                size: BlobSize::holding(u64::from(*length) * bytes_per_char),
                collation: *collation,
            }
        }
        DataType::Varbinary(length) if *length > STRING_LENGTH_MAX => {
            DataType::Blob(BlobSize::holding(u64::from(*length)))
        }
        ty => ty.clone(),
    }
}

fn blob_size(size: ast::LobSize, length: Option<u32>, bytes_per_char: u32) -> BlobSize {
    const SIZES: [BlobSize; 4] = [
        BlobSize::Tiny,
        BlobSize::Normal,
        BlobSize::Medium,
        BlobSize::Long,
    ];
    match length {
        Some(length) if size == ast::LobSize::Normal => {
            let bytes = u64::from(length) * u64::from(bytes_per_char);
            SIZES
                .into_iter()
                .find(|size| bytes <= size.max_octets())
                .unwrap_or(BlobSize::Long)
        }
        _ => SIZES[size as usize],
    }
}

/// The type that was written, in the column's collation.
pub fn data_type(
    ty: &ast::DataType,
    collate: Option<&ast::Ident>,
    column: &str,
    cx: &mut TypeContext<'_>,
) -> Result<DataType> {
    let inherited = cx.collation;
    Ok(match ty {
        ast::DataType::Integer {
            kind,
            width,
            unsigned,
            zerofill,
        } => {
            if width.is_some_and(|width| width > 255) {
                return Err(Error::display_width_out_of_range(column, 255));
            }
            const WIDTHS: [IntWidth; 5] = [
                IntWidth::Tiny,
                IntWidth::Small,
                IntWidth::Medium,
                IntWidth::Int,
                IntWidth::Big,
            ];
            DataType::Int {
                width: WIDTHS[*kind as usize],
                unsigned: *unsigned || *zerofill,
                zerofill: *zerofill,
                display_width: width.map(|width| width as u8),
            }
        }
        ast::DataType::Bit(width) => match width.unwrap_or(1) {
            0 => return Err(Error::invalid_field_size(column)),
            width @ 1..=BIT_WIDTH_MAX => DataType::Bit(width as u8),
            _ => return Err(Error::display_width_out_of_range(column, BIT_WIDTH_MAX)),
        },
        ast::DataType::Decimal {
            precision,
            scale,
            unsigned,
            zerofill,
        } => {
            let scale = scale.unwrap_or(0);
            let precision = match precision {
                None | Some(0) => 10,
                Some(precision) => *precision,
            };
            if scale > DECIMAL_SCALE_MAX {
                return Err(Error::too_big_scale(scale, column, DECIMAL_SCALE_MAX));
            }
            if precision > DECIMAL_DIGITS_MAX {
                return Err(Error::too_big_precision(
                    precision,
                    column,
                    DECIMAL_DIGITS_MAX,
                ));
            }
            if scale > precision {
                return Err(Error::scale_over_precision(column));
            }
            DataType::Decimal {
                precision: precision as u8,
                scale: scale as u8,
                unsigned: *unsigned || *zerofill,
                zerofill: *zerofill,
            }
        }
        ast::DataType::Float {
            double,
            digits,
            unsigned,
            zerofill,
        } => {
            let (unsigned, zerofill, digits) = (
                *unsigned || *zerofill,
                *zerofill,
                float_digits(*digits, column)?,
            );
            match double {
                true => DataType::Double {
                    unsigned,
                    zerofill,
                    digits,
                },
                false => DataType::Float {
                    unsigned,
                    zerofill,
                    digits,
                },
            }
        }
        ast::DataType::Date => DataType::Date,
        ast::DataType::Time(digits) => DataType::Time {
            fsp: fsp(*digits, column)?,
        },
        ast::DataType::DateTime(digits) => DataType::DateTime {
            fsp: fsp(*digits, column)?,
        },
        ast::DataType::Timestamp(digits) => DataType::Timestamp {
            fsp: fsp(*digits, column)?,
        },
        ast::DataType::Year => DataType::Year,
        ast::DataType::Char { length, charset } => {
            let length = length.unwrap_or(1);
            if length > CHAR_LENGTH_MAX {
                return Err(Error::column_length_too_big(column, CHAR_LENGTH_MAX));
            }
            match text_collation(charset, collate, inherited)? {
                Collation::BINARY => DataType::Binary(length),
                collation => DataType::Char { length, collation },
            }
        }
        ast::DataType::VarChar { length, charset } => {
            let collation = text_collation(charset, collate, inherited)?;
            let most = VARCHAR_BYTES_MAX / u32::from(collation.charset().max_len());
            if *length > most {
                if cx.session.sql_mode.strict() {
                    return Err(Error::column_length_too_big(column, most));
                }
                let size = blob_size(
                    ast::LobSize::Normal,
                    Some(*length),
                    u32::from(collation.charset().max_len()),
                );
                let kind = if collation.is_binary() {
                    "VARBINARY"
                } else {
                    "VARCHAR"
                };
                let to = if collation.is_binary() {
                    "BLOB"
                } else {
                    "TEXT"
                };
                cx.session.warn(
                    Level::Note,
                    Error::converted_to_text(column, kind, to).into_condition(),
                );
                return Ok(if collation.is_binary() {
                    DataType::Blob(size)
                } else {
                    DataType::Text { size, collation }
                });
            }
            match collation {
                Collation::BINARY => DataType::Varbinary(*length),
                collation => DataType::Varchar {
                    length: *length,
                    collation,
                },
            }
        }
        ast::DataType::Text {
            size,
            length,
            charset,
        } => {
            let collation = text_collation(charset, collate, inherited)?;
            let size = blob_size(*size, *length, u32::from(collation.charset().max_len()));
            match collation {
                Collation::BINARY => DataType::Blob(size),
                collation => DataType::Text { size, collation },
            }
        }
        ast::DataType::Binary(length) => match length.unwrap_or(1) {
            length @ 0..=CHAR_LENGTH_MAX => DataType::Binary(length),
            _ => return Err(Error::column_length_too_big(column, CHAR_LENGTH_MAX)),
        },
        ast::DataType::VarBinary(length) => match *length {
            length @ 0..=VARCHAR_BYTES_MAX => DataType::Varbinary(length),
            _ => return Err(Error::column_length_too_big(column, VARCHAR_BYTES_MAX)),
        },
        ast::DataType::Blob { size, length } => DataType::Blob(blob_size(*size, *length, 1)),
        ast::DataType::Enum { members, charset } => {
            let collation = text_collation(charset, collate, inherited)?;
            DataType::Enum(Arc::new(members_of(
                members, collation, column, "ENUM", cx,
            )?))
        }
        ast::DataType::Set { members, charset } => {
            let collation = text_collation(charset, collate, inherited)?;
            let def = members_of(members, collation, column, "SET", cx)?;
            if def.members.len() > SET_MEMBERS_MAX {
                return Err(Error::too_big_set(column));
            }
            if let Some(bad) = def.members.iter().find(|member| member.contains(',')) {
                return Err(Error::illegal_value_for_type("set", bad));
            }
            DataType::Set(Arc::new(def))
        }
        ast::DataType::Json => DataType::Json,
        ast::DataType::Geometry(_) => return Err(Error::not_supported_yet("spatial types")),
    })
}

/// An ENUM's or SET's members: trailing spaces are cut; a value twice is an error in strict mode.
fn members_of(
    members: &[Box<[u8]>],
    collation: Collation,
    column: &str,
    kind: &str,
    cx: &mut TypeContext<'_>,
) -> Result<EnumDef> {
    let mut def = EnumDef {
        members: Vec::with_capacity(members.len()),
        collation,
    };
    for member in members {
        let decoded = decode(member, cx.session)?;
        let member = decoded.trim_end_matches(' ');
        if def.find(member).is_some() {
            let error = Error::duplicated_value_in_type(column, member, kind);
            if cx.session.sql_mode.strict() {
                return Err(error);
            }
            cx.session.warn(Level::Note, error.into_condition());
        }
        def.members.push(CompactString::new(member));
    }
    Ok(def)
}

/// Text of a literal of the connection's character set. A statement is read in UTF-8, whatever
/// character set its client wrote it in.
pub fn decode(bytes: &[u8], session: &SessionVars) -> Result<String> {
    let charset = session.collation.charset();
    let read = match charset {
        Charset::Latin1 => Charset::Utf8mb4,
        charset if !charset.extends_ascii() => Charset::Utf8mb4,
        charset => charset,
    };
    read.decode(bytes)
        .map(|text| text.into_owned())
        .map_err(|_| Error::warn_invalid_character_string(charset.name(), hexadecimal(bytes)))
}

/// The first six bytes in hexadecimal, as error messages show what isn't a text.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02X}"))
        .collect()
}
