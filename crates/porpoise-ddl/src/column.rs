//! Column definitions: from what was written to types, defaults and attributes that fit together.
//!
//! MySQL 8.4 manual, 15.1.20 (CREATE TABLE), chapter 13 (data types).

use porpoise_catalog::record::{ColumnRecord, DefaultRecord, GeneratedRecord};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::quote::text;
use porpoise_core::variables::SessionVars;
use porpoise_expr::typing;
use porpoise_expr::typing::declared::{TypeContext, charset_named, data_type, decode, hexadecimal};
use porpoise_sql::ast;
use porpoise_types::{Charset, Collation, DataType, Decimal, Loss, Value};

const NAME_CHARS_MAX: usize = 64;
const COMMENT_CHARS_MAX: usize = 1024;

/// Makes the record of a column. Keys, checks and the table's other columns are not looked at.
pub fn column(def: &ast::ColumnDef, cx: &mut TypeContext<'_>) -> Result<ColumnRecord> {
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
    let nullable = def
        .nullable
        .unwrap_or(!def.primary_key && !def.auto_increment);
    let mut record = ColumnRecord {
        explicit_collation: def.collation.is_some(),
        default: DefaultRecord::None,
        auto_increment: def.auto_increment,
        invisible: def.visible == Some(false),
        comment,
        ..ColumnRecord::new(name.into(), ty, nullable)
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
    cx: &mut TypeContext<'_>,
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
    session: &SessionVars,
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
        Literal::Introduced(introduced) => {
            let bytes = typing::written_bytes(introduced, session);
            match charset_named(&introduced.charset)? {
                Charset::Binary => as_bytes(&bytes),
                charset => as_text(
                    charset
                        .decode(&bytes)
                        .map_err(|_| {
                            Error::warn_invalid_character_string(
                                charset.name(),
                                hexadecimal(&bytes),
                            )
                        })?
                        .into_owned(),
                ),
            }
        }
        Literal::Hex(bytes) | Literal::Bit(bytes) => as_bytes(bytes),
        Literal::Date(text) | Literal::Time(text) | Literal::Timestamp(text) => {
            as_text(text.to_string())
        }
    }))
}
