//! Column definitions: from what was written to types, defaults and attributes that fit together.
//!
//! MySQL 8.4 manual, 15.1.20 (CREATE TABLE), chapter 13 (data types).

use compact_str::CompactString;
use porpoise_sql::ast;
use porpoise_types::{
    BlobSize, Charset, Collation, DataType, Decimal, EnumDef, IntWidth, Loss, Value,
};
use std::sync::Arc;

use crate::catalog::record::{ColumnRecord, DefaultRecord, GeneratedRecord};
use crate::error::{Error, Level, Result};
use crate::session::SessionState;

const CHAR_LENGTH_MAX: u32 = 255;
/// Of VARCHAR and VARBINARY, in bytes.
const VARCHAR_BYTES_MAX: u32 = 65_535;
const FSP_MAX: u32 = 6;
const DECIMAL_DIGITS_MAX: u32 = 65;
const DECIMAL_SCALE_MAX: u32 = 30;
const FLOAT_DIGITS_MAX: u32 = 255;
const BIT_WIDTH_MAX: u32 = 64;
const SET_MEMBERS_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 64;
const COMMENT_CHARS_MAX: usize = 1024;

/// What a column's definition is read against.
pub struct ColumnContext<'a> {
    pub session: &'a mut SessionState,
    /// The table's collation.
    pub collation: Collation,
    pub now_us: i64,
}

/// Makes the record of a column. Keys, checks and the table's other columns are not looked at.
pub fn column(def: &ast::ColumnDef, cx: &mut ColumnContext<'_>) -> Result<ColumnRecord> {
    let name = def.name.as_str();
    check_name(name)?;
    let ty = data_type(&def.data_type, def.collation.as_ref(), name, cx)?;
    if def.srid.is_some() {
        return Err(Error::not_supported_yet("SRID"));
    }
    let comment = text(def.comment.as_deref());
    if comment.chars().count() > COMMENT_CHARS_MAX {
        return Err(Error::comment_too_long("field", name, COMMENT_CHARS_MAX));
    }
    let mut record = ColumnRecord {
        name: name.into(),
        nullable: def
            .nullable
            .unwrap_or(!def.primary_key && !def.auto_increment),
        default: DefaultRecord::None,
        on_update_now: false,
        auto_increment: def.auto_increment,
        generated: None,
        invisible: def.visible == Some(false),
        hidden: false,
        comment,
        origin: None,
        ty,
    };
    if def.primary_key && def.nullable == Some(true) {
        return Err(Error::primary_cannot_have_null());
    }
    if let Some(generated) = &def.generated {
        let misused = [
            (def.default.is_some(), "DEFAULT"),
            (def.auto_increment, "AUTO_INCREMENT"),
            (def.on_update.is_some(), "ON UPDATE"),
        ];
        if let Some((_, what)) = misused.iter().find(|(used, _)| *used) {
            return Err(Error::wrong_usage(what, "generated column"));
        }
        record.generated = Some(GeneratedRecord {
            sql: super::canonical::expression(&generated.expr),
            stored: generated.stored,
        });
        record.nullable = def.nullable.unwrap_or(!def.primary_key);
        return Ok(record);
    }
    if def.auto_increment {
        if !matches!(
            record.ty,
            DataType::Int { .. } | DataType::Float { .. } | DataType::Double { .. }
        ) {
            return Err(Error::wrong_column_specifier(name));
        }
        if def.default.is_some() {
            return Err(Error::invalid_default(name));
        }
        record.nullable = false;
    }
    record.default = match &def.default {
        Some(default) => default_value(default, &record, cx)?,
        None if record.nullable => DefaultRecord::Null,
        None => DefaultRecord::None,
    };
    if let Some(value) = &def.on_update {
        match (now_fsp(value), fsp_of_moment(&record.ty)) {
            (Some(given), Some(fsp)) if given == fsp => record.on_update_now = true,
            _ => return Err(Error::invalid_on_update(name)),
        }
    }
    Ok(record)
}

/// Names of checks may be anything that isn't too long.
pub fn check_name_length(name: &str) -> Result<()> {
    match name.chars().count() {
        0..=NAME_CHARS_MAX => Ok(()),
        _ => Err(Error::identifier_too_long(name)),
    }
}

pub fn check_name(name: &str) -> Result<()> {
    check_name_length(name)?;
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(Error::wrong_column_name(name));
    }
    Ok(())
}

/// Comments and other free text: bytes of the connection's character set, which is UTF-8 or decoded before.
pub fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

// ---------------------------------------------------------------------------------------------------------
// Types
// ---------------------------------------------------------------------------------------------------------

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
    // `COLLATE` of another character set than the one written was refused; of the inherited one it isn't.
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
    cx: &mut ColumnContext<'_>,
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
    cx: &mut ColumnContext<'_>,
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

/// Text of a literal, which is in the connection's character set.
fn decode(bytes: &[u8], session: &SessionState) -> Result<String> {
    let charset = session.collation.charset();
    charset
        .decode(bytes)
        .map(|text| text.into_owned())
        .map_err(|_| Error::warn_invalid_character_string(charset.name(), hexadecimal(bytes)))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

// ---------------------------------------------------------------------------------------------------------
// Defaults
// ---------------------------------------------------------------------------------------------------------

/// `now()`'s fractional digits, if the expression is `now()`.
fn now_fsp(value: &ast::Expr) -> Option<u8> {
    let ast::Expr::Function(call) = value else {
        return None;
    };
    if call.schema.is_some()
        || !matches!(
            call.name.as_str(),
            "now" | "current_timestamp" | "localtime" | "localtimestamp"
        )
    {
        return None;
    }
    match call.args.as_slice() {
        [] => Some(0),
        [ast::Expr::Literal(ast::Literal::Int(fsp))] => u8::try_from(*fsp).ok(),
        _ => None,
    }
}

fn fsp_of_moment(ty: &DataType) -> Option<u8> {
    match ty {
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } => Some(*fsp),
        _ => None,
    }
}

/// The default of a column whose type and nullability are known; error 1067 when they don't fit.
pub fn default_value(
    default: &ast::ColumnDefault,
    column: &ColumnRecord,
    cx: &mut ColumnContext<'_>,
) -> Result<DefaultRecord> {
    let invalid = || Error::invalid_default(&column.name);
    if default.expression {
        return Ok(DefaultRecord::Expression(super::canonical::expression(
            &default.value,
        )));
    }
    if let Some(fsp) = now_fsp(&default.value) {
        return if fsp_of_moment(&column.ty) == Some(fsp) {
            Ok(DefaultRecord::Now)
        } else {
            Err(invalid())
        };
    }
    let (value, ty) = literal(&default.value, &column.ty, cx.session)?.ok_or_else(invalid)?;
    if value.is_null() {
        return if column.nullable {
            Ok(DefaultRecord::Null)
        } else {
            Err(invalid())
        };
    }
    if column.ty.is_blob() {
        let error = Error::blob_cannot_have_default(&column.name);
        if cx.session.sql_mode.strict() || !matches!(&value, Value::Text(text) if text.is_empty()) {
            return Err(error);
        }
        cx.session.warn(Level::Warning, error.into_condition());
        return Ok(DefaultRecord::None);
    }
    let conversion = cx.session.conversion(cx.now_us);
    let (stored, loss) =
        porpoise_types::store(value, &ty, &column.ty, &conversion).map_err(|_| invalid())?;
    if !matches!(loss, Loss::None | Loss::Rounded | Loss::SpacesCut) {
        return Err(invalid());
    }
    // A TIMESTAMP's default is kept in UTC, as its rows are.
    let stored = match (stored, &column.ty) {
        (Value::DateTime(local), DataType::Timestamp { .. }) => {
            Value::DateTime(cx.session.to_utc(local).ok_or_else(invalid)?)
        }
        (stored, _) => stored,
    };
    Ok(DefaultRecord::literal(stored, &column.ty))
}

/// A literal, perhaps signed, and its type; `None` for anything else.
fn literal(
    expr: &ast::Expr,
    target: &DataType,
    session: &SessionState,
) -> Result<Option<(Value, DataType)>> {
    use ast::{Expr, Literal, UnaryOp};
    let literal = match expr {
        Expr::Literal(literal) => literal,
        Expr::Unary(UnaryOp::Plus, operand) => return self::literal(operand, target, session),
        Expr::Unary(UnaryOp::Neg, operand) => {
            let Some((value, ty)) = self::literal(operand, target, session)? else {
                return Ok(None);
            };
            let negated = match value {
                Value::Int(v) => Value::Int(v.wrapping_neg()),
                Value::UInt(v) if v == 1 << 63 => Value::Int(i64::MIN),
                Value::UInt(v) => Value::Decimal(Decimal::from_i128(-i128::from(v), 0)),
                Value::Decimal(v) => Value::Decimal(v.neg()),
                Value::Double(v) => Value::Double(-v),
                _ => return Ok(None),
            };
            let ty = match negated {
                Value::Int(_) => DataType::BIGINT,
                Value::Decimal(_) => DataType::decimal(65, 0),
                _ => ty,
            };
            return Ok(Some((negated, ty)));
        }
        _ => return Ok(None),
    };
    let as_text = |text: String| {
        let length = text.chars().count() as u32;
        (
            Value::text(text),
            DataType::Varchar {
                length,
                collation: Collation::UTF8MB4_0900_AI_CI,
            },
        )
    };
    let as_bytes = |bytes: &[u8]| {
        if target.is_numeric() {
            let number = bytes
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            (Value::UInt(number), DataType::BIGINT_UNSIGNED)
        } else {
            (
                Value::Bytes(bytes.to_vec()),
                DataType::Varbinary(bytes.len() as u32),
            )
        }
    };
    Ok(Some(match literal {
        Literal::Null => (Value::Null, DataType::Null),
        Literal::Bool(value) => (Value::from(*value), DataType::BIGINT),
        Literal::Int(value) => match i64::try_from(*value) {
            Ok(value) => (Value::Int(value), DataType::BIGINT),
            Err(_) => (Value::UInt(*value), DataType::BIGINT_UNSIGNED),
        },
        Literal::Decimal(digits) => match Decimal::parse_prefix(digits.as_bytes()) {
            Some(parsed) => {
                let scale = parsed.value.scale();
                (Value::Decimal(parsed.value), DataType::decimal(65, scale))
            }
            None => return Ok(None),
        },
        Literal::Double(value) => (Value::Double(*value), DataType::DOUBLE),
        Literal::String(bytes) => as_text(decode(bytes, session)?),
        Literal::Introduced(introduced) => match charset_named(&introduced.charset)? {
            Charset::Binary => as_bytes(&introduced.bytes),
            charset => as_text(
                charset
                    .decode(&introduced.bytes)
                    .map_err(|_| {
                        Error::warn_invalid_character_string(
                            charset.name(),
                            hexadecimal(&introduced.bytes),
                        )
                    })?
                    .into_owned(),
            ),
        },
        Literal::Hex(bytes) | Literal::Bit(bytes) => as_bytes(bytes),
        Literal::Date(text) | Literal::Time(text) | Literal::Timestamp(text) => {
            as_text(text.to_string())
        }
    }))
}
