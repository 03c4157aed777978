//! Bit operations on binary strings, whose results are as long as they are (MySQL 8.4 manual,
//! 14.12). A hexadecimal or bit literal is a number unless a binary string stands beside it.

use porpoise_core::error::{Error, Result};
use porpoise_types::{DataType, Value, convert};

use super::{Class, bytes_type, class, is_hex};
use crate::function::{ArgumentKind, Call, Eval, Function, Purity, Returns, exactly};
use crate::{Arithmetic, Expr, ExprKind};

/// `left op right`, if it is an operation on binary strings.
pub fn operation(op: Arithmetic, left: &Expr, right: &Expr) -> Option<Expr> {
    let is_bytes = |expr: &Expr| class(&expr.ty) == Class::Bytes;
    let (function, is_of_bytes) = match op {
        Arithmetic::BitAnd => (&AND, is_bytes(right)),
        Arithmetic::BitOr => (&OR, is_bytes(right)),
        Arithmetic::BitXor => (&XOR, is_bytes(right)),
        Arithmetic::ShiftLeft => (&SHIFT_LEFT, true),
        Arithmetic::ShiftRight => (&SHIFT_RIGHT, true),
        _ => return None,
    };
    let is_string = match op {
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight => !is_hex(left),
        _ => !(is_hex(left) && is_hex(right)),
    };
    (is_bytes(left) && is_of_bytes && is_string).then(|| {
        let arguments = vec![left.clone(), right.clone()];
        call(function, arguments, left.ty.max_chars())
    })
}

/// `~operand`, if it is an operation on a binary string.
pub fn complement(operand: &Expr) -> Option<Expr> {
    let is_string = class(&operand.ty) == Class::Bytes && !is_hex(operand);
    is_string.then(|| call(&NOT, vec![operand.clone()], operand.ty.max_chars()))
}

fn call(function: &'static Function, arguments: Vec<Expr>, bytes: u64) -> Expr {
    let nullable = arguments.iter().any(|argument| argument.nullable);
    let kind = ExprKind::Call {
        function,
        arguments,
    };
    Expr::new(kind, bytes_type(bytes), nullable)
}

const fn row(
    name: &'static str,
    arguments: usize,
    eval: fn(&mut Call<'_>, &[Value]) -> Result<Value>,
) -> Function {
    Function {
        name,
        arity: exactly(arguments),
        argument_kinds: &[ArgumentKind::Any],
        returns: Returns::Fixed(|| DataType::Varbinary(0)),
        eval: Eval::Strict(eval),
        purity: Purity::Pure,
    }
}

static AND: Function = row("&", 2, |_, values| bytewise(values, |a, b| a & b));
static OR: Function = row("|", 2, |_, values| bytewise(values, |a, b| a | b));
static XOR: Function = row("^", 2, |_, values| bytewise(values, |a, b| a ^ b));
static NOT: Function = row("~", 1, |_, values| {
    let bytes = bytes(&values[0]);
    Ok(Value::Bytes(bytes.iter().map(|byte| !byte).collect()))
});
static SHIFT_LEFT: Function = row("<<", 2, |_, values| {
    let by = shift(&values[1]);
    Ok(shifted(bytes(&values[0]), |bit| bit.checked_add(by)))
});
static SHIFT_RIGHT: Function = row(">>", 2, |_, values| {
    let by = shift(&values[1]);
    Ok(shifted(bytes(&values[0]), |bit| bit.checked_sub(by)))
});

fn bytes(value: &Value) -> &[u8] {
    value.as_bytes().unwrap_or_default()
}

/// By how many bits: a negative number is a very large one.
fn shift(value: &Value) -> usize {
    match convert::to_int(value).0 {
        bits @ 0.. => usize::try_from(bits).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

fn bytewise(values: &[Value], of: fn(u8, u8) -> u8) -> Result<Value> {
    let (left, right) = (bytes(&values[0]), bytes(&values[1]));
    if left.len() != right.len() {
        return Err(Error::bit_operands_size());
    }
    let pairs = left.iter().zip(right);
    Ok(Value::Bytes(pairs.map(|(a, b)| of(*a, *b)).collect()))
}

/// As many bytes, each bit of which is the one `from` names, counted from the first; 0 where there
/// is none.
fn shifted(bytes: &[u8], from: impl Fn(usize) -> Option<usize>) -> Value {
    let bit = |at: usize| {
        let byte = from(at).and_then(|from| Some((bytes.get(from / 8)?, from % 8)));
        byte.is_some_and(|(byte, bit)| byte >> (7 - bit) & 1 == 1)
    };
    let byte = |at: usize| (0..8).fold(0, |byte, low| byte << 1 | u8::from(bit(at * 8 + low)));
    Value::Bytes((0..bytes.len()).map(byte).collect())
}
