//! Constructors of typed expressions: what MySQL decides once for all rows.
//!
//! In which domain two values are compared, which type an operator yields, where a string becomes a
//! number: all that is said here, by putting the conversions into the tree.
//!
//! - [`literal`]s and casts: this file;
//! - [`compare`](compare()), BETWEEN, IN, LIKE: [`compare`];
//! - arithmetic, CASE, calls of functions: [`operate`];
//! - which collation a mix of strings has: [`collation`];
//! - the common type of several expressions: [`merge`].

pub mod byte_bits;
pub mod collation;
pub mod compare;
pub mod declared;
pub mod hidden;
pub mod merge;
pub mod operate;

pub use compare::{between, compare, in_list, is_null, is_truth, like, not};
pub use merge::{coerce, merged_type};
pub use operate::{arithmetic, call_function, case, convert_to, negate};

use std::borrow::Cow;

use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_sql::ast;
use porpoise_types::{
    BlobSize, Charset, Collation, CompactString, DataType, DateMode, Decimal, IntWidth, Loss,
    Value, temporal,
};

use crate::aggregate::AggregateFunction;
use crate::{CastKind, Expr, ExprKind};

/// The longest VARCHAR an expression yields; longer results are TEXT.
const VARCHAR_CHARS_MAX: u64 = 16_383;

/// The kinds of values that conversions distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// NULL itself, which has every type.
    Null,
    /// Integers, BIT and YEAR.
    Integer,
    /// DECIMAL.
    Decimal,
    /// FLOAT and DOUBLE.
    Double,
    /// Strings of characters.
    Text,
    /// Strings of bytes.
    Bytes,
    /// DATE.
    Date,
    /// TIME.
    Time,
    /// DATETIME and TIMESTAMP.
    DateTime,
    /// JSON.
    Json,
    /// ENUM and SET: a number that is shown as a text.
    Member,
}

/// The kind of a type's values.
pub fn class(ty: &DataType) -> Class {
    match ty {
        DataType::Null => Class::Null,
        DataType::Int { .. } | DataType::Bit(_) | DataType::Year => Class::Integer,
        DataType::Decimal { .. } => Class::Decimal,
        DataType::Float { .. } | DataType::Double { .. } => Class::Double,
        DataType::Date => Class::Date,
        DataType::Time { .. } => Class::Time,
        DataType::DateTime { .. } | DataType::Timestamp { .. } => Class::DateTime,
        DataType::Json => Class::Json,
        DataType::Enum(_) | DataType::Set(_) => Class::Member,
        string if string.is_binary_string() => Class::Bytes,
        _ => Class::Text,
    }
}

impl Class {
    /// Whether values are numbers; ENUM and SET don't count.
    pub fn is_number(self) -> bool {
        matches!(self, Class::Integer | Class::Decimal | Class::Double)
    }

    /// Whether values are dates, times or moments.
    pub fn is_temporal(self) -> bool {
        matches!(self, Class::Date | Class::Time | Class::DateTime)
    }

    /// Whether values are shown as strings; ENUM and SET count.
    pub fn is_string(self) -> bool {
        matches!(self, Class::Text | Class::Bytes | Class::Member)
    }
}

/// What isn't a text or bytes as a text, in the connection's character set unless it has one of its
/// own.
pub fn text_or_bytes(expr: Expr, session: &SessionVars) -> Expr {
    let collation = match class(&expr.ty) {
        Class::Text | Class::Bytes | Class::Null => return expr,
        _ if let DataType::Bit(width) = expr.ty => {
            return implicit(expr, bytes_type(u64::from(width).div_ceil(8)));
        }
        Class::Member => expr.ty.collation(),
        _ => session.collation,
    };
    let ty = text_type(spelled_chars(&expr.ty), collation);
    implicit(expr, ty)
}

/// A text type of at most so many characters.
pub fn text_type(chars: u64, collation: Collation) -> DataType {
    if collation == Collation::BINARY {
        return bytes_type(chars);
    }
    match chars {
        0..=VARCHAR_CHARS_MAX => DataType::Varchar {
            length: chars as u32,
            collation,
        },
        _ if chars <= BlobSize::Medium.max_octets() / 4 => DataType::Text {
            size: BlobSize::Medium,
            collation,
        },
        _ => DataType::Text {
            size: BlobSize::Long,
            collation,
        },
    }
}

/// A binary string type of at most so many bytes.
pub fn bytes_type(bytes: u64) -> DataType {
    match bytes {
        0..=65_535 => DataType::Varbinary(bytes as u32),
        _ if bytes <= BlobSize::Medium.max_octets() => DataType::Blob(BlobSize::Medium),
        _ => DataType::Blob(BlobSize::Long),
    }
}

/// An integer of at most so many digits.
pub fn bigint(unsigned: bool, digits: Option<u8>) -> DataType {
    DataType::Int {
        width: IntWidth::Big,
        unsigned,
        zerofill: false,
        display_width: digits,
    }
}

/// The type of a literal's value, as a digest that lifted it out of the text should declare it.
pub fn literal_type(value: &Value, session: &SessionVars) -> DataType {
    match value {
        Value::Null => DataType::Null,
        Value::Int(v) => bigint(false, Some(digits(v.unsigned_abs()) + u8::from(*v < 0))),
        Value::UInt(v) => bigint(i64::try_from(*v).is_err(), Some(digits(*v))),
        Value::Double(_) => DataType::DOUBLE,
        Value::Decimal(v) => DataType::decimal(
            (v.digits().max(u32::from(v.scale())).max(1)) as u8,
            v.scale(),
        ),
        Value::Text(text) => text_type(text.chars().count() as u64, session.collation),
        Value::Bytes(bytes) => bytes_type(bytes.len() as u64),
        Value::Date(_) => DataType::Date,
        Value::Time(v) => DataType::Time {
            fsp: fraction_digits(v.microsecond()),
        },
        Value::DateTime(v) => DataType::DateTime {
            fsp: fraction_digits(v.microsecond()),
        },
        Value::Json(_) => DataType::Json,
    }
}

fn digits(v: u64) -> u8 {
    v.checked_ilog10().unwrap_or(0) as u8 + 1
}

fn fraction_digits(micros: u32) -> u8 {
    (0..6)
        .find(|fsp| micros.is_multiple_of(10u32.pow(6 - u32::from(*fsp))))
        .unwrap_or(6)
}

/// How many digits of a second a text shows.
fn shown_fraction(text: &str) -> u8 {
    text.rfind('.').map_or(0, |dot| {
        text[dot + 1..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count()
            .min(6) as u8
    })
}

/// The one value of a constant in the text.
pub fn literal(literal: &ast::Literal, session: &SessionVars) -> Result<Expr> {
    let typed = |value: Value| {
        let ty = literal_type(&value, session);
        Expr::literal(value, ty)
    };
    Ok(match literal {
        ast::Literal::Null => typed(Value::Null),
        ast::Literal::Bool(truth) => Expr::literal(Value::from(*truth), bigint(false, Some(1))),
        ast::Literal::Int(v) => match i64::try_from(*v) {
            Ok(signed) => typed(Value::Int(signed)),
            Err(_) => typed(Value::UInt(*v)),
        },
        ast::Literal::Decimal(text) => {
            let value =
                Decimal::parse_prefix(text.as_bytes()).map_or(Decimal::ZERO, |parsed| parsed.value);
            typed(Value::Decimal(value))
        }
        ast::Literal::Double(v) => typed(Value::Double(*v)),
        ast::Literal::String(bytes) => match session.string_value(Cow::Borrowed(bytes)) {
            // Whether what is no well-formed text may be text is for its use to say.
            Value::Bytes(bytes) if !session.collation.is_binary() => {
                let chars = String::from_utf8_lossy(&bytes).chars().count() as u64;
                Expr::literal(Value::Bytes(bytes), text_type(chars, session.collation))
            }
            Value::Bytes(bytes) => string_of_bytes(bytes),
            value => typed(value),
        },
        ast::Literal::Introduced(introduced) => introduced_string(introduced, session)?,
        ast::Literal::Hex(bytes) | ast::Literal::Bit(bytes) => typed(Value::Bytes(bytes.to_vec())),
        ast::Literal::Date(text) => match temporal::parse::date(text, DateMode::default()) {
            (date, Loss::None) => typed(Value::Date(date)),
            _ => return Err(incorrect_temporal("DATE", text)),
        },
        ast::Literal::Time(text) => match temporal::parse::time(text) {
            (time, Loss::None) => Expr::literal(
                Value::Time(time),
                DataType::Time {
                    fsp: shown_fraction(text),
                },
            ),
            _ => return Err(incorrect_temporal("TIME", text)),
        },
        ast::Literal::Timestamp(text) => match temporal::parse::datetime(text, DateMode::default())
        {
            (moment, Loss::None) => Expr::literal(
                Value::DateTime(moment),
                DataType::DateTime {
                    fsp: shown_fraction(text),
                },
            ),
            _ => return Err(incorrect_temporal("DATETIME", text)),
        },
    })
}

fn incorrect_temporal(kind: &str, text: &str) -> Error {
    Error::incorrect_literal(kind, text)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

fn introduced_string(introduced: &ast::Introduced, session: &SessionVars) -> Result<Expr> {
    let charset = Charset::by_name(&introduced.charset)
        .ok_or_else(|| Error::unknown_character_set(introduced.charset.as_str()))?;
    let bytes = written_bytes(introduced, session);
    if charset == Charset::Binary {
        return Ok(string_of_bytes(bytes.into_owned()));
    }
    let text = charset
        .decode(&bytes)
        .map_err(|_| Error::warn_invalid_character_string(charset.name(), hex(&bytes)))?;
    let ty = text_type(text.chars().count() as u64, charset.default_collation());
    Ok(Expr::literal(Value::text(text), ty))
}

/// A binary string. Bytes that are a literal themselves are a hexadecimal or bit literal, which is a
/// number where one is wanted.
fn string_of_bytes(bytes: Vec<u8>) -> Expr {
    let ty = bytes_type(bytes.len() as u64);
    let operand = Box::new(Expr::literal(Value::Bytes(bytes), ty.clone()));
    let kind = CastKind::Implicit;
    Expr::new(ExprKind::Cast { operand, kind }, ty, false)
}

/// The text of a string that is written out.
fn written_text(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Literal(Value::Text(text)) => Some(text),
        ExprKind::Cast { operand, .. } if operand.ty == expr.ty => match &operand.kind {
            ExprKind::Literal(Value::Bytes(bytes)) => std::str::from_utf8(bytes).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// An introducer's bytes as the client wrote them: the statement's text was decoded from its
/// character set, which the introducer's string is not in. Hexadecimal digits stand for themselves.
pub fn written_bytes<'b>(introduced: &'b ast::Introduced, session: &SessionVars) -> Cow<'b, [u8]> {
    match introduced.binary_form {
        true => Cow::Borrowed(&introduced.bytes),
        false => session.as_sent(&introduced.bytes),
    }
}

/// Converts as an expression does by itself; a constant that converts without loss is converted
/// here and now.
pub fn implicit(expr: Expr, ty: DataType) -> Expr {
    if expr.ty == ty {
        return expr;
    }
    if let ExprKind::Literal(value) = &expr.kind
        && let Some(value) = fold(value, &ty)
    {
        return Expr::literal(value, ty);
    }
    // From a text or JSON anything may come out NULL; dates can't be made of every number.
    let to_temporal = class(&ty).is_temporal() && !class(&expr.ty).is_temporal();
    let nullable = expr.nullable || to_temporal;
    let kind = match (&expr.kind, class(&ty)) {
        (ExprKind::UserVariable(_), Class::Double) => CastKind::Silent,
        _ => CastKind::Implicit,
    };
    Expr::new(
        ExprKind::Cast {
            operand: Box::new(expr),
            kind,
        },
        ty,
        nullable,
    )
}

/// Another name for a type whose values are the same. A cast gets one by a second cast: what it
/// does is what its own type says.
pub fn renamed(mut expr: Expr, ty: DataType) -> Expr {
    let is_text = matches!(class(&expr.ty), Class::Text | Class::Bytes);
    match &expr.kind {
        ExprKind::Cast { kind, .. }
            if !(is_text && matches!(kind, CastKind::Implicit | CastKind::Whole)) =>
        {
            implicit(expr, ty)
        }
        _ => {
            expr.ty = ty;
            expr
        }
    }
}

/// CAST and CONVERT.
pub fn explicit(expr: Expr, ty: DataType) -> Expr {
    explicit_by(expr, ty, CastKind::Explicit)
}

/// CAST or CONVERT to a text or bytes of no stated length.
pub fn whole(expr: Expr, ty: DataType) -> Expr {
    explicit_by(expr, ty, CastKind::Whole)
}

fn explicit_by(expr: Expr, ty: DataType, kind: CastKind) -> Expr {
    // A hexadecimal literal that is cast to a number is one.
    let expr = match class(&ty).is_number() {
        true => hex_number(expr),
        false => expr,
    };
    // What is no date, document or year is NULL.
    let can_fail = class(&ty).is_temporal() || class(&ty) == Class::Json || ty == DataType::Year;
    let nullable = expr.nullable || can_fail;
    Expr::new(
        ExprKind::Cast {
            operand: Box::new(expr),
            kind,
        },
        ty,
        nullable,
    )
}

/// A literal in another type, where nothing is lost.
fn fold(value: &Value, ty: &DataType) -> Option<Value> {
    use porpoise_types::convert;
    let (value, loss) = match (value, ty) {
        (Value::Null, _) => (Value::Null, Loss::None),
        (_, DataType::Double { .. }) => {
            let (v, loss) = convert::to_double(value);
            (Value::Double(v), loss)
        }
        (Value::Text(text), DataType::DateTime { .. }) => {
            let (v, loss) = temporal::parse::datetime(text, DateMode::default());
            (Value::DateTime(v), loss)
        }
        (Value::Text(text), DataType::Date) => {
            let (v, loss) = temporal::parse::date(text, DateMode::default());
            (Value::Date(v), loss)
        }
        (Value::Text(text), DataType::Time { .. }) => {
            let (v, loss) = temporal::parse::time(text);
            (Value::Time(v), loss)
        }
        _ => return None,
    };
    (loss == Loss::None).then_some(value)
}

/// The type CAST yields.
pub fn cast_type(to: &ast::CastType, from: &Expr, session: &SessionVars) -> Result<DataType> {
    let fsp = |fsp: &Option<u32>| match fsp.unwrap_or(0) {
        fsp @ 0..=6 => Ok(fsp as u8),
        fsp => Err(Error::too_big_precision(fsp, "CAST", 6)),
    };
    let chars = || match from.ty {
        DataType::Null => 0,
        _ => spelled_chars(&from.ty),
    };
    Ok(match to {
        ast::CastType::Binary(None) => bytes_type(match class(&from.ty) {
            Class::Text => chars().saturating_mul(4),
            _ => chars().max(spelled_octets(&from.ty)),
        }),
        ast::CastType::Binary(Some(length)) => DataType::Binary(*length),
        ast::CastType::Char {
            length,
            charset,
            binary,
        } => {
            let charset = match charset {
                None => None,
                Some(name) => Some(
                    Charset::by_name(name)
                        .ok_or_else(|| Error::unknown_character_set(name.as_str()))?,
                ),
            };
            let collation = match (charset, binary) {
                (None, false) => session.collation,
                (None, true) => session.collation.charset().binary_collation(),
                (Some(charset), false) => charset.default_collation(),
                (Some(charset), true) => charset.binary_collation(),
            };
            match length {
                Some(length) if collation == Collation::BINARY => DataType::Binary(*length),
                _ => text_type(length.map_or_else(chars, u64::from), collation),
            }
        }
        ast::CastType::NChar(length) => text_type(
            length.map_or_else(chars, u64::from),
            Collation::UTF8MB3_GENERAL_CI,
        ),
        ast::CastType::Signed => DataType::BIGINT,
        ast::CastType::Unsigned => DataType::BIGINT_UNSIGNED,
        ast::CastType::Decimal(size) => {
            let (precision, scale) = size.map_or((10, 0), |(precision, scale)| {
                (precision, scale.unwrap_or(0))
            });
            let precision = if precision == 0 { 10 } else { precision };
            if scale > 30 {
                return Err(Error::too_big_scale(scale, "CAST", 30));
            }
            if precision > 65 {
                return Err(Error::too_big_precision(precision, "CAST", 65));
            }
            if scale > precision {
                return Err(Error::scale_over_precision(""));
            }
            DataType::decimal(precision as u8, scale as u8)
        }
        ast::CastType::Float(bits) if bits.unwrap_or(0) <= 24 => DataType::FLOAT,
        ast::CastType::Float(_) | ast::CastType::Double => DataType::DOUBLE,
        ast::CastType::Date => DataType::Date,
        ast::CastType::Time(digits) => DataType::Time { fsp: fsp(digits)? },
        ast::CastType::DateTime(digits) => DataType::DateTime { fsp: fsp(digits)? },
        ast::CastType::Year => DataType::Year,
        ast::CastType::Json => DataType::Json,
        ast::CastType::Geometry(_) => return Err(Error::not_supported_yet("spatial types")),
    })
}

/// How many characters a value has at most when it becomes a text: of a number whose digits are all
/// behind the point, a zero before it as well.
pub(crate) fn spelled_chars(ty: &DataType) -> u64 {
    let has_zero = matches!(ty, DataType::Decimal { precision, scale, .. } if precision == scale && *scale > 0);
    ty.max_chars() + u64::from(has_zero)
}

/// How many bytes a number has at most when it becomes bytes. Of one that floats more than it is said
/// to have, for a sign, a zero, a point, zeros up to where an exponent is written, and digits; and of
/// the longest DECIMAL: ROUND leaves 65 digits before the point, whatever is behind it.
pub fn spelled_octets(ty: &DataType) -> u64 {
    const SMALL: u64 = "-0.00000000000000".len() as u64;
    match ty {
        DataType::Float { digits: None, .. } => SMALL + 9,
        DataType::Double { digits: None, .. } => SMALL + 17,
        DataType::Float {
            digits: Some((digits, _)),
            ..
        }
        | DataType::Double {
            digits: Some((digits, _)),
            ..
        } => u64::from(*digits) + "-.".len() as u64,
        DataType::Decimal {
            precision: 65,
            scale,
            ..
        } => ty.max_chars() + u64::from(*scale),
        _ => spelled_chars(ty),
    }
}

/// The type that a materialised row has for an expression: rows of tables alone hold TIMESTAMPs in
/// UTC.
pub fn slot_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Timestamp { fsp } => DataType::DateTime { fsp: *fsp },
        other => other.clone(),
    }
}

/// The type in which an aggregate's value is kept. What is computed of a quotient has more digits
/// than it shows, in groups of nine: an average, which is a quotient itself, and the sum or the
/// greatest of quotients.
pub fn held_type(function: &AggregateFunction, arguments: &[Expr], ty: &DataType) -> DataType {
    let DataType::Decimal {
        precision, scale, ..
    } = ty
    else {
        return ty.clone();
    };
    let of_quotient = arguments.first().filter(|of| has_hidden_digits(of));
    let held = match (function.name, of_quotient) {
        ("AVG", None) => digit_groups(*scale),
        // The quotient of what is held of its argument.
        ("AVG", Some(of)) => {
            digit_groups(digit_groups(of.ty.decimals()) + scale - of.ty.decimals())
        }
        ("SUM" | "MIN" | "MAX", Some(_)) => digit_groups(*scale),
        _ => return ty.clone(),
    };
    let held = held.min(30).max(*scale);
    DataType::decimal((precision + held - scale).min(65), held)
}

/// Whole groups of digits, at least so many.
fn digit_groups(scale: u8) -> u8 {
    /// What is computed of a quotient has its digits in such groups.
    const GROUP: u8 = 9;
    scale.div_ceil(GROUP) * GROUP
}

/// Whether an expression is made of a quotient, which has more digits than its type shows.
pub fn has_hidden_digits(expr: &Expr) -> bool {
    let is_cast = matches!(expr.kind, ExprKind::Cast { .. });
    let is_decimal = class(&expr.ty) == Class::Decimal;
    let divide = crate::Arithmetic::Divide;
    is_decimal
        && !is_cast
        && expr.any(&mut |part| match &part.kind {
            ExprKind::Arithmetic { op, .. } => *op == divide,
            ExprKind::Aggregate(_) => true,
            ExprKind::Call { function, .. } => function.name == hidden::AVERAGE.name,
            // What it selects may be one.
            ExprKind::Subquery { kind, .. } => {
                matches!(kind, crate::SubqueryKind::Scalar { .. })
            }
            _ => false,
        })
}

/// The name of a unit as a constant argument.
pub fn unit_literal(unit: ast::IntervalUnit) -> Expr {
    text_literal(unit.name())
}

/// A constant text in the server's own character set.
pub fn text_literal(text: &str) -> Expr {
    Expr::literal(
        Value::Text(CompactString::new(text)),
        DataType::varchar(text.chars().count() as u32),
    )
}

/// Whether an expression is a hexadecimal or bit literal, which is a number where one is wanted.
pub fn is_hex(expr: &Expr) -> bool {
    match (&expr.kind, &expr.ty) {
        (ExprKind::Literal(Value::Bytes(bytes)), ty) => bytes.len() <= 8 && ty.is_binary_string(),
        (ExprKind::Parameter(_), DataType::Binary(length)) => *length <= 8,
        _ => false,
    }
}

/// The number that a hexadecimal or bit literal is; anything else as it is.
pub fn hex_number(expr: Expr) -> Expr {
    match &expr.kind {
        _ if !is_hex(&expr) => expr,
        ExprKind::Literal(Value::Bytes(bytes)) => {
            let number = hidden::number_of_bytes(bytes);
            Expr::literal(Value::UInt(number), DataType::BIGINT_UNSIGNED)
        }
        _ => {
            let call = ExprKind::Call {
                function: &hidden::BYTES_NUMBER,
                arguments: vec![expr],
            };
            Expr::new(call, DataType::BIGINT_UNSIGNED, false)
        }
    }
}

/// How many digits of a second an expression can have.
pub fn fraction_of(expr: &Expr) -> u8 {
    if let Some(text) = written_text(expr) {
        return shown_fraction(text);
    }
    match class(&expr.ty) {
        Class::Date | Class::Integer => 0,
        Class::Time | Class::DateTime | Class::Decimal => expr.ty.decimals().min(6),
        _ => 6,
    }
}
