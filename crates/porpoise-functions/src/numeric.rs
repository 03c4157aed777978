//! Mathematical functions (MySQL 8.4 manual, 14.6.2). Results that are not finite are NULL or error
//! 1690.

use porpoise_core::error::{Error, Result};
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Purity, Returns, between, exactly, pure,
};
use porpoise_expr::{Expr, ExprKind};
use porpoise_types::{DataType, Decimal, Rounding, Value, cancel, convert};

macro_rules! real {
    ($name:literal, $f:expr) => {
        pure(
            $name,
            exactly(1),
            &[ArgumentKind::Double],
            Returns::Double,
            Eval::Strict(|_, values| Ok(finite($f(double(&values[0]))))),
        )
    };
}

pub static TABLE: &[Function] = &[
    pure(
        "ABS",
        exactly(1),
        &[ArgumentKind::Number],
        Returns::By(same_number),
        Eval::Strict(abs),
    ),
    real!("ACOS", f64::acos),
    real!("ASIN", f64::asin),
    pure(
        "ATAN",
        between(1, 2),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(atan),
    ),
    pure(
        "ATAN2",
        between(1, 2),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(atan),
    ),
    pure(
        "BIT_COUNT",
        exactly(1),
        &[ArgumentKind::Bits],
        Returns::Int,
        Eval::Strict(|_, values| {
            let ones = match &values[0] {
                Value::Bytes(bytes) => bytes.iter().map(|byte| byte.count_ones()).sum(),
                number => bits(number).count_ones(),
            };
            Ok(Value::Int(ones.into()))
        }),
    ),
    pure(
        "CEIL",
        exactly(1),
        &[ArgumentKind::Number],
        Returns::By(integral),
        Eval::Strict(|call, values| whole(call, &values[0], Rounding::Ceiling)),
    ),
    pure(
        "CEILING",
        exactly(1),
        &[ArgumentKind::Number],
        Returns::By(integral),
        Eval::Strict(|call, values| whole(call, &values[0], Rounding::Ceiling)),
    ),
    pure(
        "CONV",
        exactly(3),
        &[
            ArgumentKind::String,
            ArgumentKind::Integer,
            ArgumentKind::Integer,
        ],
        Returns::OwnText(|_| 64),
        Eval::Strict(conv),
    ),
    real!("COS", f64::cos),
    pure(
        "COT",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(|call, values| {
            let cotangent = 1.0 / double(&values[0]).tan();
            if cotangent.is_finite() {
                return Ok(Value::Double(cotangent));
            }
            let argument = &call.arguments[0];
            let shown = format!("cot({argument})");
            Err(Error::value_out_of_range("DOUBLE", shown))
        }),
    ),
    pure(
        "CRC32",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::UInt,
        Eval::Strict(|_, values| {
            Ok(Value::UInt(
                crc32(values[0].as_bytes().unwrap_or_default()).into(),
            ))
        }),
    ),
    real!("DEGREES", f64::to_degrees),
    pure(
        "EXP",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(|_, values| checked(double(&values[0]).exp(), "exp")),
    ),
    pure(
        "FLOOR",
        exactly(1),
        &[ArgumentKind::Number],
        Returns::By(integral),
        Eval::Strict(|call, values| whole(call, &values[0], Rounding::Floor)),
    ),
    pure(
        "LN",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(|call, values| logarithm(call, double(&values[0]), f64::ln)),
    ),
    pure(
        "LOG",
        between(1, 2),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(log),
    ),
    pure(
        "LOG10",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(|call, values| logarithm(call, double(&values[0]), f64::log10)),
    ),
    pure(
        "LOG2",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(|call, values| logarithm(call, double(&values[0]), binary_logarithm)),
    ),
    pure(
        "MOD",
        exactly(2),
        &[ArgumentKind::Number],
        Returns::By(modulo_type),
        Eval::Strict(modulo),
    ),
    pure(
        "PI",
        exactly(0),
        &[],
        Returns::Fixed(|| DataType::Double {
            unsigned: false,
            zerofill: false,
            digits: Some((8, 6)),
        }),
        Eval::Strict(|_, _| Ok(Value::Double(std::f64::consts::PI))),
    ),
    pure(
        "POW",
        exactly(2),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(|_, values| checked(double(&values[0]).powf(double(&values[1])), "pow")),
    ),
    pure(
        "POWER",
        exactly(2),
        &[ArgumentKind::Double],
        Returns::Double,
        Eval::Strict(|_, values| checked(double(&values[0]).powf(double(&values[1])), "pow")),
    ),
    real!("RADIANS", f64::to_radians),
    Function {
        name: "RAND",
        arity: between(0, 1),
        argument_kinds: &[ArgumentKind::Integer],
        returns: Returns::Double,
        eval: Eval::Values(rand),
        purity: Purity::Volatile,
    },
    pure(
        "ROUND",
        between(1, 2),
        &[ArgumentKind::Number, ArgumentKind::Integer],
        Returns::By(rounded),
        Eval::Strict(|call, values| round(call, values, Rounding::HalfAwayFromZero)),
    ),
    pure(
        "SIGN",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Int,
        Eval::Strict(|_, values| {
            Ok(Value::Int(match double(&values[0]) {
                v if v > 0.0 => 1,
                v if v < 0.0 => -1,
                _ => 0,
            }))
        }),
    ),
    real!("SIN", f64::sin),
    real!("SQRT", f64::sqrt),
    real!("TAN", f64::tan),
    pure(
        "TRUNCATE",
        exactly(2),
        &[ArgumentKind::Number, ArgumentKind::Integer],
        Returns::By(rounded),
        Eval::Strict(|call, values| round(call, values, Rounding::Truncate)),
    ),
    pure(
        "BIN",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::Text(64),
        Eval::Strict(|call, values| in_base(call, values, 2)),
    ),
    pure(
        "OCT",
        exactly(1),
        &[ArgumentKind::Any],
        Returns::Text(64),
        Eval::Strict(|call, values| in_base(call, values, 8)),
    ),
    pure(
        "FORMAT_BYTES",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Text(17),
        Eval::Strict(format_bytes),
    ),
    pure(
        "FORMAT_PICO_TIME",
        exactly(1),
        &[ArgumentKind::Double],
        Returns::Text(17),
        Eval::Strict(format_pico_time),
    ),
];

fn double(value: &Value) -> f64 {
    convert::to_double(value).0
}

fn bits(value: &Value) -> u64 {
    match value {
        Value::Int(v) => *v as u64,
        Value::UInt(v) => *v,
        other => convert::to_uint(other).0,
    }
}

fn finite(value: f64) -> Value {
    if value.is_finite() {
        Value::Double(value)
    } else {
        Value::Null
    }
}

fn checked(value: f64, name: &str) -> Result<Value> {
    if value.is_finite() {
        Ok(Value::Double(value))
    } else {
        Err(Error::value_out_of_range(
            "DOUBLE",
            format_args!("{name}()"),
        ))
    }
}

fn argument_type(arguments: &[Expr]) -> &DataType {
    arguments
        .first()
        .map_or(&DataType::Null, |argument| &argument.ty)
}

fn same_number(arguments: &[Expr]) -> Result<DataType> {
    Ok(match argument_type(arguments) {
        ty @ (DataType::Decimal { .. } | DataType::Double { .. }) => ty.clone(),
        DataType::Int { unsigned: true, .. } | DataType::Bit(_) | DataType::Year => {
            DataType::BIGINT_UNSIGNED
        }
        DataType::Int { .. } => DataType::BIGINT,
        _ => DataType::DOUBLE,
    })
}

fn abs(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(match &values[0] {
        Value::Int(v) => Value::Int(v.checked_abs().ok_or_else(|| {
            Error::value_out_of_range("BIGINT", format_args!("abs({})", call.arguments[0]))
        })?),
        Value::UInt(v) => Value::UInt(*v),
        Value::Decimal(v) => Value::Decimal(v.abs()),
        other => Value::Double(double(other).abs()),
    })
}

fn atan(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    Ok(finite(match values {
        [y, x] => double(y).atan2(double(x)),
        _ => double(&values[0]).atan(),
    }))
}

/// CEIL and FLOOR give integers where the digits allow.
fn integral(arguments: &[Expr]) -> Result<DataType> {
    Ok(match argument_type(arguments) {
        DataType::Decimal {
            precision, scale, ..
        } if precision - scale < 18 => DataType::BIGINT,
        DataType::Decimal {
            precision, scale, ..
        } => DataType::decimal((precision - scale + 1).min(65), 0),
        DataType::Int { unsigned: true, .. } | DataType::Bit(_) | DataType::Year => {
            DataType::BIGINT_UNSIGNED
        }
        DataType::Int { .. } => DataType::BIGINT,
        _ => DataType::DOUBLE,
    })
}

fn whole(call: &mut Call<'_>, value: &Value, rounding: Rounding) -> Result<Value> {
    Ok(match value {
        Value::Decimal(v) => {
            let whole = v.rescale(0, rounding);
            match (call.ty, whole.to_i64()) {
                (DataType::Int { .. }, Some(v)) => Value::Int(v),
                _ => Value::Decimal(whole),
            }
        }
        Value::Double(v) => Value::Double(if rounding == Rounding::Ceiling {
            v.ceil()
        } else {
            v.floor()
        }),
        other => other.clone(),
    })
}

/// BIN and OCT are CONV from base ten.
fn in_base(call: &mut Call<'_>, values: &[Value], base: i64) -> Result<Value> {
    let text = match &values[0] {
        // Of BIT columns too.
        Value::UInt(number) => number.to_string(),
        other => convert::to_text(other, &call.arguments[0].ty),
    };
    conv(call, &[Value::from(text), Value::Int(10), Value::Int(base)])
}

fn conv(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let bytes = values[0].as_bytes().unwrap_or_default();
    // Bits are bytes where text is wanted; here they are the number that they are.
    let text = match (&values[0], &call.arguments[0].kind) {
        (Value::Bytes(_), ExprKind::Cast { operand, .. })
            if matches!(operand.ty, DataType::Bit(_)) =>
        {
            bytes
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
                .to_string()
        }
        _ => String::from_utf8_lossy(bytes).trim().to_ascii_lowercase(),
    };
    let (from, to) = (convert::to_int(&values[1]).0, convert::to_int(&values[2]).0);
    let base = 2..=36;
    if text.is_empty() || !base.contains(&from.unsigned_abs()) || !base.contains(&to.unsigned_abs())
    {
        return Ok(Value::Null);
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let mut number: u64 = 0;
    for digit in digits
        .chars()
        .map_while(|c| c.to_digit(from.unsigned_abs() as u32))
    {
        number = number
            .checked_mul(from.unsigned_abs())
            .and_then(|n| n.checked_add(digit.into()))
            .unwrap_or(u64::MAX);
        if number == u64::MAX {
            break;
        }
    }
    // A negative base reads signed numbers. What is beyond the range is its end.
    const SIGNED_MAX: u64 = i64::MAX as u64;
    number = match (from < 0, negative) {
        (true, true) => number.min(SIGNED_MAX + 1).wrapping_neg(),
        (true, false) => number.min(SIGNED_MAX),
        (false, true) if number < u64::MAX => number.wrapping_neg(),
        (false, _) => number,
    };
    let (mut rest, minus) = if to < 0 && (number as i64) < 0 {
        ((number as i64).unsigned_abs(), true)
    } else {
        (number, false)
    };
    let mut out = Vec::new();
    loop {
        let digit = char::from_digit((rest % to.unsigned_abs()) as u32, 36).unwrap_or('0');
        out.push(digit.to_ascii_uppercase());
        rest /= to.unsigned_abs();
        if rest == 0 {
            break;
        }
    }
    if minus {
        out.push('-');
    }
    Ok(Value::text(out.iter().rev().collect::<String>()))
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    cancel::parts(bytes).for_each(|part| crc.update(part));
    crc.finalize()
}

/// As MySQL computes it, to the last digit.
fn binary_logarithm(x: f64) -> f64 {
    x.ln() / std::f64::consts::LN_2
}

fn logarithm(call: &mut Call<'_>, value: f64, log: fn(f64) -> f64) -> Result<Value> {
    if value <= 0.0 {
        let warning = Error::invalid_logarithm_argument();
        call.context.vars_mut().warn_or_fail(warning)?;
        return Ok(Value::Null);
    }
    Ok(finite(log(value)))
}

fn log(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    match values {
        [base, value] => {
            let (base, value) = (double(base), double(value));
            if base <= 0.0 || base == 1.0 {
                return logarithm(call, 0.0, f64::ln);
            }
            logarithm(call, value, f64::ln).map(|ln| match ln {
                Value::Double(ln) => finite(ln / base.ln()),
                other => other,
            })
        }
        _ => logarithm(call, double(&values[0]), f64::ln),
    }
}

fn modulo_type(arguments: &[Expr]) -> Result<DataType> {
    let [a, b] = arguments else {
        return Ok(DataType::DOUBLE);
    };
    Ok(match (&a.ty, &b.ty) {
        (
            DataType::Decimal {
                precision: p,
                scale: s,
                ..
            },
            DataType::Decimal {
                precision: q,
                scale: t,
                ..
            },
        ) => DataType::decimal(*p.max(q), *s.max(t)),
        (ty @ DataType::Decimal { .. }, other) | (other, ty @ DataType::Decimal { .. })
            if other.is_integer() =>
        {
            ty.clone()
        }
        (DataType::Int { unsigned: true, .. }, other) if other.is_integer() => {
            DataType::BIGINT_UNSIGNED
        }
        (a, b) if a.is_integer() && b.is_integer() => DataType::BIGINT,
        _ => DataType::DOUBLE,
    })
}

fn modulo(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let (a, b) = (&values[0], &values[1]);
    if double(b) == 0.0 {
        call.context.vars_mut().division_by_zero()?;
        return Ok(Value::Null);
    }
    let int = |value: &Value| match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        _ => 0,
    };
    Ok(match call.ty {
        DataType::Int { unsigned: true, .. } => Value::UInt((int(a) % int(b)) as u64),
        DataType::Int { .. } => Value::Int((int(a) % int(b)) as i64),
        DataType::Decimal { .. } => convert::to_decimal(a)
            .0
            .checked_rem(&convert::to_decimal(b).0)
            .map_or(Value::Null, Value::Decimal),
        _ => Value::Double(double(a) % double(b)),
    })
}

/// A seed gives a sequence of its own, the same for the same seed.
fn rand(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let random = match values.first() {
        None => call.context.vars_mut().random(),
        Some(seed) => {
            let seed = if seed.is_null() { 0 } else { bits(seed) };
            call.context
                .seeded_random(seed, call.arguments.as_ptr() as usize)
        }
    };
    Ok(Value::Double(random))
}

/// The places of ROUND and TRUNCATE, when the planner can see them.
fn places(arguments: &[Expr]) -> Option<i64> {
    match arguments.get(1).map(|argument| &argument.kind) {
        None => Some(0),
        Some(ExprKind::Literal(Value::Int(v))) => Some(*v),
        Some(ExprKind::Literal(Value::UInt(v))) => i64::try_from(*v).ok(),
        Some(ExprKind::Negate(inner)) => match &inner.kind {
            ExprKind::Literal(Value::Int(v)) => v.checked_neg(),
            _ => None,
        },
        _ => None,
    }
}

/// The most digits after the point that a decimal has.
const SCALE_MAX: i64 = 30;

fn rounded(arguments: &[Expr]) -> Result<DataType> {
    Ok(match argument_type(arguments) {
        DataType::Decimal {
            precision, scale, ..
        } => {
            let wanted = places(arguments).map_or(*scale, |places| {
                u8::try_from(places.clamp(0, SCALE_MAX)).unwrap_or(*scale)
            });
            DataType::decimal(
                (precision - scale + wanted + 1).clamp(1, 65).max(wanted),
                wanted,
            )
        }
        DataType::Int { unsigned: true, .. } | DataType::Bit(_) | DataType::Year => {
            DataType::BIGINT_UNSIGNED
        }
        DataType::Int { .. } => DataType::BIGINT,
        // As many decimals as there are, even of a DOUBLE(10, 2).
        _ => DataType::DOUBLE,
    })
}

fn round(call: &mut Call<'_>, values: &[Value], rounding: Rounding) -> Result<Value> {
    let places = values.get(1).map_or(0, |places| match places {
        Value::UInt(v) => i64::try_from(*v).unwrap_or(i64::MAX),
        other => convert::to_int(other).0,
    });
    let decimal = |value: &Decimal| {
        let places = places.clamp(-65, i64::from(value.scale()));
        let rounded = if rounding == Rounding::Truncate {
            value.truncate(places)
        } else {
            value.round(places)
        };
        match call.ty {
            DataType::Decimal { scale, .. } => rounded.rescale(*scale, Rounding::Truncate),
            _ => rounded,
        }
    };
    Ok(match &values[0] {
        Value::Decimal(v) => Value::Decimal(decimal(v)),
        value @ (Value::Int(_) | Value::UInt(_)) if places >= 0 => value.clone(),
        value @ (Value::Int(_) | Value::UInt(_)) => {
            let rounded = decimal(&convert::to_decimal(value).0);
            match call.ty {
                DataType::Int { unsigned: true, .. } => Value::UInt(
                    rounded
                        .to_u64()
                        .ok_or_else(|| Error::value_out_of_range("BIGINT UNSIGNED", "round()"))?,
                ),
                _ => Value::Int(
                    rounded
                        .to_i64()
                        .ok_or_else(|| Error::value_out_of_range("BIGINT", "round()"))?,
                ),
            }
        }
        other => {
            let value = double(other);
            let factor = 10f64.powi(places.clamp(-310, 310) as i32);
            let scaled = value * factor;
            if !scaled.is_finite() {
                return Ok(Value::Double(value));
            }
            let whole = if rounding == Rounding::Truncate {
                scaled.trunc()
            } else {
                scaled.round_ties_even()
            };
            let result = whole / factor;
            Value::Double(if result.is_finite() { result } else { 0.0 })
        }
    })
}

fn format_bytes(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (double(&values[0]), 0);
    while value.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    Ok(Value::text(if unit == 0 {
        format!("{:4} {}", value.trunc() as i64, UNITS[0])
    } else {
        in_unit(value, UNITS[unit])
    }))
}

/// With two decimals, or with an exponent where that would be long.
fn in_unit(value: f64, unit: &str) -> String {
    const PLAIN_MAX: f64 = 1e5;
    if value.abs() < PLAIN_MAX {
        return format!("{value:.2} {unit}");
    }
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{digits}e+{exponent:0>2} {unit}")
}

/// A number of picoseconds in the largest unit that it has one of.
fn format_pico_time(_: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    const UNITS: [(f64, &str); 7] = [
        (8.64e16, "d"),
        (3.6e15, "h"),
        (6e13, "min"),
        (1e12, "s"),
        (1e9, "ms"),
        (1e6, "us"),
        (1e3, "ns"),
    ];
    let value = double(&values[0]);
    let unit = UNITS.iter().find(|(size, _)| value.abs() >= *size);
    Ok(Value::text(match unit {
        None => format!("{:3} ps", value.trunc() as i64),
        Some((size, name)) => in_unit(value / size, name),
    }))
}
