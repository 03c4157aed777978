//! Arithmetic, CASE and calls: the type of the result, and what the operands become.

use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_types::{Collation, DataType, Value};

use crate::aggregate::AggregateFunction;
use crate::function::{ArgumentKind, Eval, Function, Returns};
use crate::typing::merge::decimal_size;
use crate::typing::{
    Class, byte_bits, bytes_type, class, coerce, collation, compare, explicit, hex_number, hidden,
    implicit, is_hex, merged_type, shown_fraction, text_or_bytes, text_type, written_text,
};
use crate::{Arithmetic, Expr, ExprKind};

const SCALE_MAX: u8 = 30;
const PRECISION_MAX: u32 = 65;

/// A value as a number: strings become doubles, dates and times numbers of their digits.
pub fn number(expr: Expr) -> Expr {
    match class(&expr.ty) {
        Class::Null | Class::Integer | Class::Decimal | Class::Double => expr,
        Class::Member => implicit(expr, DataType::DOUBLE),
        Class::Date | Class::Time | Class::DateTime => match expr.ty.decimals() {
            0 => implicit(expr, DataType::BIGINT),
            fsp => implicit(expr, DataType::decimal(14 + fsp, fsp)),
        },
        Class::Bytes if is_hex(&expr) => hex_number(expr),
        Class::Text | Class::Bytes | Class::Json => implicit(expr, DataType::DOUBLE),
    }
}

fn one_column(expr: &Expr) -> Result<()> {
    if compare::width(expr) == 1 {
        Ok(())
    } else {
        Err(Error::operand_columns(1))
    }
}

/// `left op right`.
pub fn arithmetic(op: Arithmetic, left: Expr, right: Expr, session: &SessionVars) -> Result<Expr> {
    one_column(&left)?;
    one_column(&right)?;
    if let Some(of_bytes) = byte_bits::operation(op, &left, &right) {
        return Ok(of_bytes);
    }
    let (left, right) = (number(left), number(right));
    let by_zero = matches!(
        op,
        Arithmetic::Divide | Arithmetic::IntegerDivide | Arithmetic::Modulo
    );
    let nullable = left.nullable || right.nullable || by_zero;
    let unsigned = (left.ty.is_unsigned() || right.ty.is_unsigned())
        && !(op == Arithmetic::Subtract && session.sql_mode.no_unsigned_subtraction());
    let double = [&left, &right]
        .iter()
        .any(|side| class(&side.ty) == Class::Double);
    let decimal = [&left, &right]
        .iter()
        .any(|side| class(&side.ty) == Class::Decimal);
    let ((i, s), (j, t)) = (decimal_size(&left.ty), decimal_size(&right.ty));
    let sized = |precision: u32, scale: u8| DataType::Decimal {
        precision: precision.clamp(1, PRECISION_MAX) as u8,
        scale,
        unsigned: left.ty.is_unsigned() && right.ty.is_unsigned(),
        zerofill: false,
    };
    let integer = |digits: u32| {
        super::bigint(
            unsigned,
            u8::try_from(digits).ok().filter(|digits| *digits < 19),
        )
    };
    let ty = match op {
        Arithmetic::BitAnd
        | Arithmetic::BitOr
        | Arithmetic::BitXor
        | Arithmetic::ShiftLeft
        | Arithmetic::ShiftRight => DataType::BIGINT_UNSIGNED,
        Arithmetic::IntegerDivide => DataType::Int {
            width: porpoise_types::IntWidth::Big,
            unsigned,
            zerofill: false,
            display_width: None,
        },
        _ if double => DataType::DOUBLE,
        Arithmetic::Divide => {
            let scale = (s + session.div_precision_increment).min(SCALE_MAX);
            sized(u32::from(i) + u32::from(t) + u32::from(scale), scale)
        }
        Arithmetic::Add | Arithmetic::Subtract if decimal => {
            let scale = s.max(t);
            sized(u32::from(i.max(j)) + 1 + u32::from(scale), scale)
        }
        Arithmetic::Multiply if decimal => {
            let scale = (s + t).min(SCALE_MAX);
            sized(u32::from(i) + u32::from(j) + u32::from(scale), scale)
        }
        Arithmetic::Modulo if decimal => sized(u32::from(i.max(j)) + u32::from(s.max(t)), s.max(t)),
        Arithmetic::Modulo => super::bigint(left.ty.is_unsigned(), None),
        Arithmetic::Add | Arithmetic::Subtract => integer(u32::from(i.max(j)) + 1),
        Arithmetic::Multiply => integer(u32::from(i) + u32::from(j)),
    };
    Ok(Expr::new(
        ExprKind::Arithmetic {
            op,
            left: Box::new(left),
            right: Box::new(right),
        },
        ty,
        nullable,
    ))
}

/// `-operand`. A negated constant is a constant.
pub fn negate(operand: Expr) -> Result<Expr> {
    one_column(&operand)?;
    let operand = number(operand);
    if let ExprKind::Literal(value) = &operand.kind {
        let negated = match value {
            Value::Int(v) => v.checked_neg().map(Value::Int),
            Value::UInt(v) if *v == 1 << 63 => Some(Value::Int(i64::MIN)),
            Value::UInt(v) => Some(Value::Decimal(porpoise_types::Decimal::from_i128(
                -i128::from(*v),
                0,
            ))),
            Value::Double(v) => Some(Value::Double(-v)),
            Value::Decimal(v) => Some(Value::Decimal(v.neg())),
            _ => None,
        };
        if let Some(negated) = negated {
            let ty = match (&negated, operand.ty) {
                (Value::Int(_), DataType::Int { display_width, .. }) => {
                    super::bigint(false, display_width.map(|digits| digits + 1))
                }
                (Value::Decimal(v), DataType::Int { .. }) => {
                    DataType::decimal(v.digits().clamp(1, 65) as u8, 0)
                }
                (_, ty) => ty,
            };
            return Ok(Expr::literal(negated, ty));
        }
    }
    let ty = match &operand.ty {
        DataType::Int {
            width: porpoise_types::IntWidth::Big,
            ..
        }
        | DataType::Null => DataType::BIGINT,
        DataType::Int { .. } | DataType::Bit(_) | DataType::Year => DataType::BIGINT,
        DataType::Decimal {
            precision, scale, ..
        } => DataType::decimal(*precision, *scale),
        _ => DataType::DOUBLE,
    };
    let nullable = operand.nullable;
    Ok(Expr::new(ExprKind::Negate(Box::new(operand)), ty, nullable))
}

/// CASE with conditions; the values are brought to their common type.
pub fn case(
    branches: Vec<(Expr, Expr)>,
    otherwise: Option<Expr>,
    session: &SessionVars,
) -> Result<Expr> {
    for (condition, value) in &branches {
        one_column(condition)?;
        one_column(value)?;
    }
    let values: Vec<&Expr> = branches
        .iter()
        .map(|branch| &branch.1)
        .chain(&otherwise)
        .collect();
    let ty = merged_type(&values, "CASE", session.collation)?;
    let nullable = otherwise.is_none() || values.iter().any(|value| value.nullable);
    let branches = branches
        .into_iter()
        .map(|(condition, value)| (super::compare::truth(condition), coerce(value, &ty)))
        .collect();
    let otherwise = otherwise.map(|value| Box::new(coerce(value, &ty)));
    Ok(Expr::new(
        ExprKind::Case {
            branches,
            otherwise,
        },
        ty,
        nullable,
    ))
}

/// `expr COLLATE collation`.
pub fn collate(expr: Expr, name: &str, session: &SessionVars) -> Result<Expr> {
    one_column(&expr)?;
    let to = Collation::by_name(name).ok_or_else(|| Error::unknown_collation(name))?;
    let expr = text_or_bytes(expr, session);
    let from = expr.ty.collation();
    // Constants are in the connection's character set, whatever the collation's default is.
    if class(&expr.ty) != Class::Null && from.charset() != to.charset() {
        return Err(Error::collation_charset_mismatch(
            to.name(),
            from.charset().name(),
        ));
    }
    let (ty, nullable) = (text_type(expr.ty.max_chars(), to), expr.nullable);
    Ok(Expr::new(
        ExprKind::Call {
            function: &hidden::COLLATE,
            arguments: vec![expr],
        },
        ty,
        nullable,
    ))
}

/// How many digits of a second a temporal has that is made of an expression: a constant text shows
/// its own.
fn fraction_of(expr: &Expr) -> u8 {
    match written_text(expr) {
        Some(text) => shown_fraction(text),
        _ if expr.ty.is_integer() => 0,
        _ => match expr.ty {
            DataType::Decimal { scale, .. } => scale.min(6),
            DataType::Date => 0,
            DataType::Time { fsp } | DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
                fsp
            }
            _ => 6,
        },
    }
}

/// Converts an argument to a kind of value that a function takes.
pub fn convert_to(expr: Expr, kind: ArgumentKind, session: &SessionVars) -> Result<Expr> {
    one_column(&expr)?;
    let from = class(&expr.ty);
    if from == Class::Null {
        return Ok(expr);
    }
    let as_text = |expr: Expr| {
        let ty = match class(&expr.ty) {
            // Bits are bytes to whoever wants text.
            _ if let DataType::Bit(width) = expr.ty => bytes_type(u64::from(width).div_ceil(8)),
            Class::Member => text_type(expr.ty.max_chars(), expr.ty.collation()),
            Class::Json => DataType::Text {
                size: porpoise_types::BlobSize::Long,
                collation: Collation::UTF8MB4_BIN,
            },
            _ => text_type(super::spelled_chars(&expr.ty), session.collation),
        };
        implicit(expr, ty)
    };
    Ok(match kind {
        ArgumentKind::Any => match from {
            Class::Member => as_text(expr),
            _ => expr,
        },
        ArgumentKind::Amount => expr,
        ArgumentKind::String | ArgumentKind::Mixed | ArgumentKind::Compared => match from {
            Class::Text | Class::Bytes => expr,
            _ => as_text(expr),
        },
        ArgumentKind::Bytes => match from {
            Class::Bytes => expr,
            _ => {
                let expr = if from == Class::Text {
                    expr
                } else {
                    as_text(expr)
                };
                let ty = bytes_type(
                    expr.ty
                        .max_chars()
                        .saturating_mul(u64::from(expr.ty.collation().charset().max_len())),
                );
                implicit(expr, ty)
            }
        },
        ArgumentKind::Bits if from == Class::Bytes && !is_hex(&expr) => expr,
        ArgumentKind::Integer | ArgumentKind::Bits => match from {
            Class::Integer | Class::Member => expr,
            Class::Bytes => {
                let number = number(expr);
                match class(&number.ty) {
                    Class::Integer => number,
                    _ => implicit(number, DataType::BIGINT),
                }
            }
            _ => implicit(expr, DataType::BIGINT),
        },
        ArgumentKind::Number => number(expr),
        ArgumentKind::Double => match from {
            Class::Double => expr,
            _ => implicit(hex_number(expr), DataType::DOUBLE),
        },
        ArgumentKind::Decimal => match from {
            Class::Decimal => expr,
            _ => {
                let (digits, scale) = decimal_size(&expr.ty);
                implicit(expr, DataType::decimal((digits + scale).min(65), scale))
            }
        },
        ArgumentKind::Date => match from {
            Class::Date => expr,
            _ => implicit(expr, DataType::Date),
        },
        ArgumentKind::DateTime => match from {
            Class::Date | Class::DateTime => expr,
            _ => {
                let fsp = fraction_of(&expr);
                implicit(expr, DataType::DateTime { fsp })
            }
        },
        ArgumentKind::LooseDate => match from {
            Class::Date | Class::DateTime => expr,
            _ if expr.ty == DataType::Year => implicit(expr, DataType::Date),
            _ => Expr::new(
                ExprKind::Call {
                    function: match from {
                        Class::Time | Class::Json | Class::Null => &hidden::LOOSE_DATE,
                        _ => &hidden::LOOSE_DATE_WRITTEN,
                    },
                    arguments: vec![match from {
                        Class::Member => as_text(expr),
                        _ => expr,
                    }],
                },
                DataType::DateTime { fsp: 6 },
                true,
            ),
        },
        ArgumentKind::Time => match from {
            Class::Time => expr,
            _ => {
                let fsp = fraction_of(&expr);
                implicit(expr, DataType::Time { fsp })
            }
        },
        ArgumentKind::Temporal => match from {
            Class::Date | Class::DateTime | Class::Time => expr,
            Class::Text | Class::Bytes | Class::Integer | Class::Decimal | Class::Double => {
                let fsp = fraction_of(&expr);
                Expr::new(
                    ExprKind::Call {
                        function: &hidden::TEMPORAL,
                        arguments: vec![expr],
                    },
                    DataType::DateTime { fsp },
                    true,
                )
            }
            _ => implicit(expr, DataType::DateTime { fsp: 6 }),
        },
        ArgumentKind::Json => match from {
            Class::Json => expr,
            Class::Text | Class::Bytes => explicit(expr, DataType::Json),
            _ => implicit(expr, DataType::Json),
        },
    })
}

/// A call of a function.
pub fn call_function(
    function: &'static Function,
    mut arguments: Vec<Expr>,
    session: &SessionVars,
) -> Result<Expr> {
    // What GREATEST and LEAST return, if they compare dates, and as what.
    let mut dated = None;
    // What holds each of their arguments, if they compare strings.
    let mut longest = None;
    // What holds each of them, if it is a number of floating point.
    let mut floating = None;
    if !function.arity.admits(arguments.len()) {
        return Err(Error::parameter_count(function.name));
    }
    match function.name {
        "IF" => {
            let [condition, yes, no] = <[Expr; 3]>::try_from(arguments)
                .map_err(|_| Error::parameter_count(function.name))?;
            return case(vec![(condition, yes)], Some(no), session);
        }
        "NULLIF" => {
            let [value, other] = <[Expr; 2]>::try_from(arguments)
                .map_err(|_| Error::parameter_count(function.name))?;
            let same = compare::compare(crate::Comparison::Eq, value.clone(), other, session)?;
            let null = Expr::literal(Value::Null, DataType::Null);
            return case(vec![(same, null)], Some(value), session);
        }
        "COALESCE" | "IFNULL" => {
            let ty = merged_type(
                &arguments.iter().collect::<Vec<_>>(),
                function.name,
                session.collation,
            )?;
            let nullable = arguments.iter().all(|argument| argument.nullable);
            for argument in &arguments {
                one_column(argument)?;
            }
            let arguments = arguments
                .into_iter()
                .map(|argument| coerce(argument, &ty))
                .collect();
            return Ok(Expr::new(
                ExprKind::Call {
                    function,
                    arguments,
                },
                ty,
                nullable,
            ));
        }
        "GREATEST" | "LEAST" => {
            let ty = merged_type(
                &arguments.iter().collect::<Vec<_>>(),
                function.name,
                session.collation,
            )?;
            let compared = match compared_as(&ty, &arguments, session)? {
                Some(moment) => {
                    let chars = ty.max_chars().max(moment.max_chars());
                    dated = Some((text_type(chars, ty.collation()), moment.clone()));
                    moment
                }
                None => {
                    longest = class(&ty).is_string().then(|| ty.clone());
                    floating = (class(&ty) == Class::Double).then(|| ty.clone());
                    ty
                }
            };
            let coerced = arguments.into_iter();
            arguments = coerced
                .map(|argument| coerce(argument, &compared))
                .collect();
        }
        _ => {}
    }
    let argument_kinds = match function.name {
        // Compares strings only if none is a number: dates and documents are strings here.
        "FIELD"
            if !arguments
                .iter()
                .any(|argument| class(&argument.ty).is_number()) =>
        {
            &[ArgumentKind::Compared]
        }
        "FIELD" => &[ArgumentKind::Number],
        _ => function.argument_kinds,
    };
    arguments = convert_arguments(arguments, argument_kinds, session)?;
    arguments = bring_together(function.name, argument_kinds, arguments, session)?;
    let mut ty = result_type(function, &arguments, session)?;
    if let Some(floating) = floating {
        ty = floating;
    }
    if let Some((_, moment)) = &dated {
        ty = moment.clone();
    }
    if let Some(longest) = longest {
        ty = match class(&ty) {
            Class::Text => text_type(longest.max_chars().max(ty.max_chars()), ty.collation()),
            Class::Bytes => bytes_type(
                longest
                    .max_octets(porpoise_types::Charset::Utf8mb4)
                    .max(ty.max_chars()),
            ),
            _ => ty,
        };
    }
    // Without arguments nothing but the session can make it NULL; with some, bad values may.
    let nullable = match (&function.eval, function.returns) {
        (Eval::Strict(_), Returns::Bool) => arguments.iter().any(|argument| argument.nullable),
        _ => true,
    };
    let kind = ExprKind::Call {
        function,
        arguments,
    };
    let call = Expr::new(kind, ty, nullable);
    Ok(match dated {
        Some((text, _)) => implicit(call, text),
        None => call,
    })
}

/// Converts arguments to the kinds of values that a row of a function table names.
pub fn convert_arguments(
    arguments: Vec<Expr>,
    argument_kinds: &[ArgumentKind],
    session: &SessionVars,
) -> Result<Vec<Expr>> {
    let kind_of = |at: usize| {
        argument_kinds
            .get(at)
            .or(argument_kinds.last())
            .copied()
            .unwrap_or(ArgumentKind::Any)
    };
    arguments
        .into_iter()
        .enumerate()
        .map(|(at, argument)| convert_to(argument, kind_of(at), session))
        .collect()
}

/// Gives the arguments that a function mixes or compares their common collation, or makes bytes of
/// them.
fn bring_together(
    name: &str,
    argument_kinds: &[ArgumentKind],
    mut arguments: Vec<Expr>,
    session: &SessionVars,
) -> Result<Vec<Expr>> {
    let kind_of = |at: usize| argument_kinds.get(at).or(argument_kinds.last());
    let is_compared = argument_kinds.contains(&ArgumentKind::Compared);
    let is_mixed = |at: usize| {
        matches!(
            kind_of(at),
            Some(ArgumentKind::Mixed | ArgumentKind::Compared)
        )
    };
    let strings = arguments.iter().enumerate().filter(|(at, _)| is_mixed(*at));
    let strings = strings.map(|(_, argument)| argument);
    if strings.clone().count() < 2 {
        return Ok(arguments);
    }
    let name = name.to_ascii_lowercase();
    let common = match is_compared {
        true => collation::aggregate(strings, &name, session.collation)?,
        false => collation::mixed(strings, &name, session.collation)?,
    };
    for (at, argument) in arguments.iter_mut().enumerate() {
        if is_mixed(at) {
            let expr = std::mem::replace(argument, Expr::literal(Value::Null, DataType::Null));
            *argument = into_collation(expr, common, is_compared);
        }
    }
    Ok(arguments)
}

/// A string as bytes, if the collation is that of bytes, or bytes as a text. A text may keep its
/// own collation unless that matters.
pub fn into_collation(expr: Expr, collation: Collation, matters: bool) -> Expr {
    let chars = expr.ty.max_chars();
    match (class(&expr.ty), collation == Collation::BINARY) {
        (Class::Text, true) => {
            let octets = u64::from(expr.ty.collation().charset().max_len());
            implicit(expr, bytes_type(chars.saturating_mul(octets)))
        }
        (Class::Text, false) if matters && expr.ty.collation() != collation => {
            let ty = text_type(chars, collation);
            match expr.kind {
                // A call's or a CASE's type tells how it is computed.
                ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Column { .. } => {
                    Expr { ty, ..expr }
                }
                _ => implicit(expr, ty),
            }
        }
        (Class::Bytes, false) => implicit(expr, text_type(chars, collation)),
        _ => expr,
    }
}

fn result_type(function: &Function, arguments: &[Expr], session: &SessionVars) -> Result<DataType> {
    Ok(match function.returns {
        Returns::Int => DataType::BIGINT,
        Returns::UInt => DataType::BIGINT_UNSIGNED,
        Returns::Double => DataType::DOUBLE,
        Returns::Bool => crate::boolean_type(),
        Returns::Text(_) | Returns::TextOf(_) => {
            let chars = match function.returns {
                Returns::TextOf(chars) => chars(arguments),
                Returns::Text(chars) => u64::from(chars),
                _ => 0,
            };
            // What is read as bytes has no say in the result's collation.
            let strings = arguments.iter().enumerate().filter(|(at, argument)| {
                function.argument_kind(*at) != ArgumentKind::Bytes
                    && matches!(class(&argument.ty), Class::Text | Class::Bytes)
            });
            let strings = strings.map(|(_, argument)| argument);
            let common = collation::aggregate(
                strings,
                &function.name.to_ascii_lowercase(),
                session.collation,
            )?;
            text_type(chars, common)
        }
        Returns::OwnText(chars) => text_type(chars(arguments), session.collation),
        Returns::Same(at) => arguments
            .get(at)
            .map_or(DataType::Null, |argument| argument.ty.clone()),
        Returns::Fixed(ty) => ty(),
        Returns::By(ty) => ty(arguments)?,
    })
}

/// The dates that GREATEST and LEAST compare where a string or a number stands beside a date, as in
/// any comparison. The result is the text of one.
fn compared_as(
    ty: &DataType,
    arguments: &[Expr],
    session: &SessionVars,
) -> Result<Option<DataType>> {
    let is_dated = |argument: &&Expr| matches!(class(&argument.ty), Class::Date | Class::DateTime);
    let dates: Vec<&Expr> = arguments.iter().filter(is_dated).collect();
    if dates.is_empty() || class(ty) != Class::Text {
        return Ok(None);
    }
    let fraction = arguments.iter().map(fraction_digits).max();
    Ok(Some(match merged_type(&dates, "", session.collation)? {
        DataType::DateTime { fsp } => DataType::DateTime {
            fsp: fsp.max(fraction.unwrap_or(0)),
        },
        ty => ty,
    }))
}

/// The digits behind the point of the seconds that a string or a number may be.
fn fraction_digits(expr: &Expr) -> u8 {
    const MOST: u64 = 6;
    /// `2001-02-03 04:05:06.`
    const BEFORE_FRACTION: u64 = 20;
    let digits = match &expr.ty {
        DataType::Decimal { scale, .. } => u64::from(*scale),
        ty => match class(ty) {
            Class::Text | Class::Bytes => ty.max_chars().saturating_sub(BEFORE_FRACTION),
            Class::Double => MOST,
            _ => 0,
        },
    };
    digits.min(MOST) as u8
}

/// What EXTRACT takes a unit from: parts of a date alone make a date of a string or number, even of
/// one that looks like a time.
pub fn extracted(operand: Expr, unit: porpoise_types::IntervalUnit) -> Expr {
    use porpoise_types::IntervalUnit::{Day, Month, Quarter, Week, Year, YearMonth};
    let of_date = matches!(unit, Day | Month | Quarter | Week | Year | YearMonth);
    let from = class(&operand.ty);
    if !of_date || !(from.is_number() || matches!(from, Class::Text | Class::Bytes)) {
        return operand;
    }
    if operand.ty == DataType::Year {
        return implicit(operand, DataType::Date);
    }
    let kind = ExprKind::Call {
        function: &hidden::LOOSE_DATE_WRITTEN,
        arguments: vec![operand],
    };
    Expr::new(kind, DataType::DateTime { fsp: 6 }, true)
}

/// An aggregate's converted arguments, type and nullability.
pub fn aggregate(
    function: &'static AggregateFunction,
    arguments: Vec<Expr>,
    session: &SessionVars,
) -> Result<(Vec<Expr>, DataType, bool)> {
    let arguments = convert_arguments(arguments, function.argument_kinds, session)?;
    let arguments = bring_together(function.name, function.argument_kinds, arguments, session)?;
    if let ("MIN" | "MAX", [argument]) = (function.name, &arguments[..]) {
        let operation = format!("{}(", function.name.to_ascii_lowercase());
        collation::comparable(argument, &operation)?;
    }
    let (mut ty, nullable) = (function.returns)(&arguments)?;
    if class(&ty) == Class::Text
        && !arguments
            .iter()
            .any(|argument| class(&argument.ty).is_string())
    {
        // Numbers that are written out.
        ty = ty.with_collation(session.collation);
    }
    Ok((arguments, ty, nullable))
}
