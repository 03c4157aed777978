//! Evaluates expressions over the frame.
//!
//! The tree was typed by the planner: operands have been cast to the domain they are compared or
//! computed in, so each case here is short. NULL is a value like any other until an operator says
//! what it means.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use porpoise_core::error::{Condition, Error, Level, Result};
use porpoise_core::memory::{Charge, MemoryAccount};
use porpoise_core::variables::user_variable_value;
use porpoise_expr::cast::cast_value;
use porpoise_expr::compare::comparison;
use porpoise_expr::function::{Call, Eval, Function};
use porpoise_expr::key;
use porpoise_expr::{Arithmetic, Comparison, Domain, EvalContext, Expr, ExprKind, SlotId};
use porpoise_storage::Interrupt;
use porpoise_types::cancel::{self, Cancelled, IsOver};
use porpoise_types::key::KeyHead;
use porpoise_types::{Collation, DataType, Decimal, JsonValue, KeyBuf, Loss, Value, convert, row};
use smallvec::SmallVec;

use crate::{Exec, condition, stored};

/// Evaluation of expressions over the frame's current rows.
pub trait Evaluate {
    /// The expression's value.
    ///
    /// # Errors
    /// What MySQL has errors for: values out of range, subqueries of too many rows, invalid JSON,
    /// and, where a statement in strict mode changes rows, whatever else would only be a warning.
    fn eval(&self, exec: &mut Exec<'_>) -> Result<Value>;

    /// Whether the expression is true: neither false nor NULL.
    ///
    /// # Errors
    /// As [`Evaluate::eval`].
    fn eval_condition(&self, exec: &mut Exec<'_>) -> Result<bool>;
}

/// The value of a constant, computed when it is first asked for.
fn constant(exec: &mut Exec<'_>, operand: &Expr) -> Result<Value> {
    if let Some(value) = exec.known_constant(operand) {
        return Ok(value.clone());
    }
    let value = operand.eval(exec)?;
    exec.kept()
        .constants
        .push((place_of(operand), value.clone()));
    Ok(value)
}

/// What tells an expression apart: those of a plan stay where they are as long as it runs.
fn place_of(expr: &Expr) -> usize {
    std::ptr::from_ref(expr) as usize
}

impl Evaluate for Expr {
    fn eval(&self, exec: &mut Exec<'_>) -> Result<Value> {
        match &self.kind {
            ExprKind::Literal(value) => Ok(value.clone()),
            ExprKind::Parameter(number) | ExprKind::Variable(number) => {
                Ok(exec.parameters.get(*number).cloned().unwrap_or(Value::Null))
            }
            ExprKind::Column { slot, column, .. } => exec.column(*slot, *column as usize, &self.ty),
            ExprKind::UserVariable(name) => Ok(exec.session.user_variable(name)),
            ExprKind::SystemVariable { position, reads } => Ok(porpoise_core::variables::read(
                *position,
                *reads,
                exec.session,
                &exec.engine.variables,
            )),
            ExprKind::AssignUserVariable { name, value } => {
                let result = user_variable_value(value.eval(exec)?, &value.ty);
                exec.session
                    .set_user_variable(name, result.clone(), value.ty.clone())?;
                Ok(result)
            }
            ExprKind::Cast { operand, kind } => {
                let value = operand.eval(exec)?;
                match may_take_long(&value) {
                    true => cancellable(exec, |exec| {
                        cast_value(exec, value, &operand.ty, &self.ty, *kind)
                    }),
                    false => cast_value(exec, value, &operand.ty, &self.ty, *kind),
                }
            }
            ExprKind::Once(operand) => constant(exec, operand),
            ExprKind::Not(_)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Xor(..)
            | ExprKind::Compare { .. }
            | ExprKind::Between { .. }
            | ExprKind::InList { .. }
            | ExprKind::IsNull { .. }
            | ExprKind::IsTruth { .. }
            | ExprKind::Like { .. } => {
                let truth = condition::truth(self, exec)?;
                Ok(truth.map_or(Value::Null, boolean))
            }
            ExprKind::Arithmetic { op, left, right } => {
                if let Some(result) = signed(self, exec) {
                    return Ok(Value::Int(result));
                }
                let left = left.eval(exec)?;
                if left.is_null() {
                    return Ok(Value::Null);
                }
                let right = right.eval(exec)?;
                if right.is_null() {
                    return Ok(Value::Null);
                }
                arithmetic(exec, *op, left, right, &self.ty, self)
            }
            ExprKind::Negate(operand) => {
                let value = operand.eval(exec)?;
                negate(exec, value, &self.ty, self)
            }
            ExprKind::Case {
                branches,
                otherwise,
            } => {
                for (condition, value) in branches {
                    if condition.eval_condition(exec)? {
                        return value.eval(exec);
                    }
                }
                match otherwise {
                    Some(value) => value.eval(exec),
                    None => Ok(Value::Null),
                }
            }
            ExprKind::Call {
                function,
                arguments,
            } => call(exec, function, arguments, &self.ty),
            ExprKind::Stored {
                function,
                arguments,
            } => stored::call(exec, function.as_ref(), arguments),
            ExprKind::Row(_) => Err(Error::operand_columns(1)),
            ExprKind::Subquery { number, kind } => exec.subquery(*number, kind),
            ExprKind::Aggregate(_) => Err(Error::invalid_group_function_use()),
        }
    }

    fn eval_condition(&self, exec: &mut Exec<'_>) -> Result<bool> {
        Ok(condition::truth(self, exec)? == Some(true))
    }
}

/// Calls a function. Apart from [`Expr::eval`](Evaluate::eval), whose frame on the stack stays small.
#[inline(never)]
fn call(
    exec: &mut Exec<'_>,
    function: &'static Function,
    arguments: &[Expr],
    ty: &DataType,
) -> Result<Value> {
    let (eval, strict) = match function.eval {
        Eval::Lazy(eval) => {
            return eval(&mut Call {
                function,
                context: exec,
                arguments,
                ty,
            });
        }
        Eval::Strict(eval) => (eval, true),
        Eval::Values(eval) => (eval, false),
    };
    let mut values: SmallVec<[Value; 4]> = SmallVec::with_capacity(arguments.len());
    let mut charge = Charge::default();
    let mut takes_long = false;
    for argument in arguments {
        let value = argument.eval(exec)?;
        if strict && value.is_null() {
            return Ok(Value::Null);
        }
        exec.charge_long(&value, &mut charge)?;
        takes_long |= may_take_long(&value);
        values.push(value);
    }
    let work = |exec: &mut Exec<'_>| {
        let mut call = Call {
            function,
            context: exec,
            arguments,
            ty,
        };
        let result = eval(&mut call, &values)?;
        call.bounded(result)
    };
    match takes_long {
        true => cancellable(exec, work),
        false => work(exec),
    }
}

/// Whether work on the value alone may take longer than a row should.
#[inline]
pub(crate) fn may_take_long(value: &Value) -> bool {
    match value {
        Value::Json(json) => matches!(json.value(), JsonValue::Array(_) | JsonValue::Object(_)),
        _ => (value.as_bytes()).is_some_and(|bytes| bytes.len() > cancel::SHORT_BYTES),
    }
}

/// The statement whose work on a long value can be ended.
struct Statement(Arc<Interrupt>);

impl IsOver for Statement {
    fn is_over(&self) -> bool {
        self.0.is_signalled() && {
            self.0.wait_while_paused();
            self.0.is_set()
        }
    }
}

/// Such work that is charged for what it makes.
struct LongWork {
    statement: Statement,
    account: Arc<MemoryAccount>,
    charge: Mutex<Charge>,
    refused: OnceLock<Error>,
}

impl LongWork {
    fn of(exec: &Exec<'_>) -> LongWork {
        LongWork {
            statement: Statement(Arc::clone(&exec.vars().interrupt)),
            account: Arc::clone(&exec.session.memory),
            charge: Mutex::default(),
            refused: OnceLock::new(),
        }
    }
}

impl IsOver for LongWork {
    fn is_over(&self) -> bool {
        self.statement.is_over()
    }

    fn refuses(&self, bytes: usize) -> bool {
        let charged = self.charge.lock().add(&self.account, bytes);
        charged.is_err_and(|error| self.refused.set(error).is_ok())
    }
}

/// Does work on long values, which ends as soon as the statement is to.
///
/// # Errors
/// 1317, those of the work, and those of [`Charge::add`].
#[cold]
pub(crate) fn cancellable<T>(
    exec: &mut Exec<'_>,
    work: impl FnOnce(&mut Exec<'_>) -> Result<T>,
) -> Result<T> {
    cancellable_as(LongWork::of(exec), || work(exec))
}

fn cancellable_as<T>(asked: LongWork, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let asked = Arc::new(asked);
    match cancel::cancellable(asked.clone(), work) {
        Ok(result) => result,
        Err(Cancelled) => {
            let refused = asked.refused.get().cloned();
            Err(refused.unwrap_or_else(Error::query_interrupted))
        }
    }
}

/// Appends the comparable key of a value; a long one's ends with the statement.
///
/// # Errors
/// 1317.
#[inline]
pub(crate) fn append_key(
    exec: &mut Exec<'_>,
    value: &Value,
    ty: &DataType,
    descending: bool,
    key: &mut KeyBuf,
) -> Result<()> {
    let mut append = || {
        key::encode_values(std::iter::once((value, ty, descending)), key);
        Ok(())
    };
    match may_take_long(value) {
        true => cancellable(exec, |_| append()),
        false => append(),
    }
}

/// Appends what a text is to the head of a key; of a long one, that ends with the statement.
///
/// # Errors
/// 1317.
#[inline]
pub(crate) fn push_text(
    exec: &Exec<'_>,
    text: &[u8],
    collation: Collation,
    descending: bool,
    head: &mut KeyHead,
) -> Result<()> {
    if text.len() > cancel::SHORT_BYTES {
        return cancellable_as(LongWork::of(exec), || {
            head.push_text(text, collation, descending);
            Ok(())
        });
    }
    head.push_text(text, collation, descending);
    Ok(())
}

#[inline]
pub(crate) fn boolean(truth: bool) -> Value {
    if truth { Value::TRUE } else { Value::FALSE }
}

impl Exec<'_> {
    /// Compares two values, and ends with the statement if they are long.
    ///
    /// # Errors
    /// 1317.
    #[inline]
    pub(crate) fn comparison(
        &mut self,
        op: Comparison,
        left: &Value,
        right: &Value,
        domain: Domain,
    ) -> Result<Option<bool>> {
        match may_take_long(left) && may_take_long(right) {
            true => cancellable(self, |_| Ok(comparison(op, left, right, domain))),
            false => Ok(comparison(op, left, right, domain)),
        }
    }

    /// The value of a constant ([`ExprKind::Once`]), if it was asked for before.
    #[inline]
    pub(crate) fn known_constant(&self, operand: &Expr) -> Option<&Value> {
        let place = place_of(operand);
        let mut constants = self.kept.as_ref()?.constants.iter();
        constants
            .find(|(of, _)| *of == place)
            .map(|(_, value)| value)
    }

    /// Charges a string or a document beside which others are kept, if it is long: a thousand
    /// arguments, each as long as a string may be, are more than a machine has memory for.
    ///
    /// # Errors
    /// As [`Charge::add`].
    #[inline]
    pub(crate) fn charge_long(&self, value: &Value, charge: &mut Charge) -> Result<()> {
        match value.heap_bytes() {
            bytes if bytes > cancel::SHORT_BYTES => charge.add(&self.session.memory, bytes),
            _ => Ok(()),
        }
    }

    /// A column of a slot's current row.
    ///
    /// # Errors
    /// Of a long document, which is parsed: 1317, and those of [`Charge::add`].
    pub fn column(&self, slot: SlotId, column: usize, ty: &DataType) -> Result<Value> {
        let row = &self.frame.slots[slot.0 as usize];
        if row.null {
            return Ok(Value::Null);
        }
        let layout = &self.layouts[slot.0 as usize];
        let read = || layout.layout.get(&row.bytes, layout.position(column));
        let value = match ty {
            DataType::Json if row.bytes.len() > cancel::SHORT_BYTES => {
                cancellable_as(LongWork::of(self), || Ok(read()))?
            }
            _ => read(),
        };
        Ok(match (&value, ty) {
            (Value::DateTime(utc), DataType::Timestamp { .. }) => {
                Value::DateTime(self.session.from_utc(*utc))
            }
            _ => value,
        })
    }

    /// The stored bytes of a column of the slot's current row, and the type that they are of, which
    /// may have more digits than the expression's; `None` for NULL.
    #[inline]
    pub(crate) fn stored(&self, slot: SlotId, column: usize) -> Option<(&[u8], &DataType)> {
        let row = self.frame.slots.get(slot.0 as usize)?;
        let layout = self.layouts.get(slot.0 as usize)?;
        let position = layout.position(column);
        let stored = layout.layout.raw(&row.bytes, position)?;
        let ty = layout.layout.types().get(position)?;
        (!row.null).then_some((stored, ty))
    }

    /// The current row's text in a column of characters, where it lies; `None` for NULL and for all
    /// other expressions.
    pub fn text_column(&self, expr: &Expr) -> Option<(&[u8], Collation)> {
        let (slot, column) = expr.as_column()?;
        let (DataType::Char { collation, .. }
        | DataType::Varchar { collation, .. }
        | DataType::Text { collation, .. }) = expr.ty
        else {
            return None;
        };
        let row = &self.frame.slots[slot.0 as usize];
        let layout = &self.layouts[slot.0 as usize];
        let text = layout.layout.raw(&row.bytes, layout.position(column));
        Some((text.filter(|_| !row.null)?, collation))
    }

    /// The stored bytes of a column of the current row, `Some(None)` for NULL; `None` for all other
    /// expressions.
    pub fn stored_column(&self, expr: &Expr) -> Option<Option<&[u8]>> {
        let (slot, column) = expr.as_column()?;
        let row = &self.frame.slots[slot.0 as usize];
        let layout = &self.layouts[slot.0 as usize];
        let stored = layout.layout.raw(&row.bytes, layout.position(column));
        Some(stored.filter(|_| !row.null))
    }

    /// Whether a column of the slot's current row is NULL, without decoding it.
    pub fn column_is_null(&self, slot: SlotId, column: usize) -> bool {
        let row = &self.frame.slots[slot.0 as usize];
        let layout = &self.layouts[slot.0 as usize];
        row.null || layout.layout.is_null(&row.bytes, layout.position(column))
    }
}

/// Text of an expression for an out-of-range message.
fn out_of_range(exec: &Exec<'_>, ty: &DataType, expr: &Expr) -> Error {
    let kind = match ty {
        DataType::Int { unsigned: true, .. } => "BIGINT UNSIGNED",
        DataType::Int { .. } => "BIGINT",
        DataType::Decimal { .. } => "DECIMAL",
        _ => "DOUBLE",
    };
    Error::value_out_of_range(kind, exec.describe(expr))
}

fn integer(value: &Value) -> i128 {
    match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        other => i128::from(convert::to_int(other).0),
    }
}

/// Bits of a value as the bit operators see it: negative numbers in two's complement.
fn bits(value: &Value) -> u64 {
    match value {
        Value::Int(v) => *v as u64,
        Value::UInt(v) => *v,
        Value::Decimal(_) | Value::Double(_) => match convert::to_int(value) {
            (v, Loss::OutOfRange) if v > 0 => convert::to_uint(value).0,
            (v, _) => v as u64,
        },
        other => convert::to_uint(other).0,
    }
}

fn narrow(exec: &Exec<'_>, value: i128, ty: &DataType, expr: &Expr) -> Result<Value> {
    let narrowed = match ty {
        DataType::Int { unsigned: true, .. } => u64::try_from(value).map(Value::UInt).ok(),
        _ => i64::try_from(value).map(Value::Int).ok(),
    };
    narrowed.ok_or_else(|| out_of_range(exec, ty, expr))
}

fn division_by_zero(exec: &mut Exec<'_>) -> Result<Value> {
    exec.session.division_by_zero()?;
    Ok(Value::Null)
}

/// Computes with signed integers; `None` where the result isn't one, or isn't plain.
#[inline]
fn of_integers(op: Arithmetic, a: i64, b: i64) -> Option<i64> {
    match op {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Modulo => a.checked_rem(b),
        Arithmetic::IntegerDivide => a.checked_div(b),
        _ => None,
    }
}

/// Signed arithmetic nests so deep at most where no value is made of each step. What fails is
/// computed again, step by step.
const SIGNED_DEPTH_MAX: u32 = 4;

/// The value of an expression over signed integers, which needs no [`Value`]; `None` where it is
/// another one, NULL, out of range, or takes more than a look. Has no effects.
#[inline]
pub(crate) fn signed(expr: &Expr, exec: &Exec<'_>) -> Option<i64> {
    signed_to_depth(expr, exec, SIGNED_DEPTH_MAX)
}

fn signed_to_depth(expr: &Expr, exec: &Exec<'_>, depth: u32) -> Option<i64> {
    match &expr.kind {
        ExprKind::Literal(Value::Int(value)) => Some(*value),
        ExprKind::Parameter(number) | ExprKind::Variable(number) => {
            match exec.parameters.get(*number) {
                Some(Value::Int(value)) => Some(*value),
                _ => None,
            }
        }
        ExprKind::Column { slot, column, .. } => {
            let (stored, ty) = exec.stored(*slot, *column as usize)?;
            is_signed(ty).then(|| row::stored::signed(stored))
        }
        ExprKind::Arithmetic { op, left, right } if depth > 0 && is_signed(&expr.ty) => {
            let left = signed_to_depth(left, exec, depth - 1)?;
            of_integers(*op, left, signed_to_depth(right, exec, depth - 1)?)
        }
        _ => None,
    }
}

fn is_signed(ty: &DataType) -> bool {
    matches!(ty, DataType::Int { unsigned, .. } if !unsigned)
}

/// Computes in the domain of the result's type; the planner has cast the operands to it.
fn arithmetic(
    exec: &mut Exec<'_>,
    op: Arithmetic,
    left: Value,
    right: Value,
    ty: &DataType,
    expr: &Expr,
) -> Result<Value> {
    if let (Value::Int(a), Value::Int(b), DataType::Int { unsigned, .. }) = (&left, &right, ty)
        && !unsigned
        && let Some(result) = of_integers(op, *a, *b)
    {
        return Ok(Value::Int(result));
    }
    match op {
        Arithmetic::BitAnd => return Ok(Value::UInt(bits(&left) & bits(&right))),
        Arithmetic::BitOr => return Ok(Value::UInt(bits(&left) | bits(&right))),
        Arithmetic::BitXor => return Ok(Value::UInt(bits(&left) ^ bits(&right))),
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
            let by = u32::try_from(bits(&right)).unwrap_or(u32::MAX);
            let value = bits(&left);
            let shifted = if op == Arithmetic::ShiftLeft {
                value.checked_shl(by)
            } else {
                value.checked_shr(by)
            };
            return Ok(Value::UInt(shifted.unwrap_or(0)));
        }
        Arithmetic::IntegerDivide
            if !matches!(
                (&left, &right),
                (
                    Value::Int(_) | Value::UInt(_),
                    Value::Int(_) | Value::UInt(_)
                )
            ) =>
        {
            // DIV of other numbers: divided exactly, then cut.
            let (a, b) = (convert::to_decimal(&left).0, convert::to_decimal(&right).0);
            let Some(quotient) = a.checked_div_integer(&b) else {
                return division_by_zero(exec);
            };
            return match (quotient.to_i64(), quotient.to_u64()) {
                (Some(v), _) if !matches!(ty, DataType::Int { unsigned: true, .. }) => {
                    Ok(Value::Int(v))
                }
                (_, Some(v)) if matches!(ty, DataType::Int { unsigned: true, .. }) => {
                    Ok(Value::UInt(v))
                }
                _ => Err(out_of_range(exec, ty, expr)),
            };
        }
        _ => {}
    }
    match ty {
        DataType::Int { .. } => {
            let (a, b) = (integer(&left), integer(&right));
            let result = match op {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::IntegerDivide if b == 0 => return division_by_zero(exec),
                Arithmetic::IntegerDivide => a / b,
                Arithmetic::Modulo if b == 0 => return division_by_zero(exec),
                Arithmetic::Modulo => a % b,
                _ => return Err(Error::wrong_arguments("operator")),
            };
            narrow(exec, result, ty, expr)
        }
        DataType::Decimal { scale, .. } => {
            let (a, b) = (convert::to_decimal(&left).0, convert::to_decimal(&right).0);
            let result: Option<Decimal> = match op {
                Arithmetic::Add => a.checked_add(&b),
                Arithmetic::Subtract => a.checked_sub(&b),
                Arithmetic::Multiply => a.checked_mul(&b),
                Arithmetic::Divide | Arithmetic::Modulo if b.is_zero() => {
                    return division_by_zero(exec);
                }
                Arithmetic::Divide => quotient(&a, &b, *scale, expr),
                Arithmetic::Modulo => a.checked_rem(&b),
                _ => return Err(Error::wrong_arguments("operator")),
            };
            result
                .map(Value::Decimal)
                .ok_or_else(|| out_of_range(exec, ty, expr))
        }
        _ => {
            let (a, b) = (convert::to_double(&left).0, convert::to_double(&right).0);
            let result = match op {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide | Arithmetic::Modulo if b == 0.0 => {
                    return division_by_zero(exec);
                }
                Arithmetic::Divide => a / b,
                Arithmetic::Modulo => a % b,
                _ => return Err(Error::wrong_arguments("operator")),
            };
            if result.is_finite() {
                Ok(Value::Double(result))
            } else {
                Err(out_of_range(exec, &DataType::DOUBLE, expr))
            }
        }
    }
}

/// `a / b`, which is shown with a scale: so many digits more than its dividend's type has.
fn quotient(a: &Decimal, b: &Decimal, scale: u8, expr: &Expr) -> Option<Decimal> {
    let dividend = match &expr.kind {
        ExprKind::Arithmetic { left, .. } => left.ty.decimals(),
        _ => 0,
    };
    // A parameter's value may have fewer digits than its type.
    let missing = dividend.saturating_sub(a.scale());
    a.quotient(b, scale.saturating_sub(dividend) + missing)
}

fn negate(exec: &Exec<'_>, value: Value, ty: &DataType, expr: &Expr) -> Result<Value> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Int(v) => match (v.checked_neg(), ty) {
            (Some(v), DataType::Int { .. }) => Value::Int(v),
            (_, DataType::Decimal { .. }) => {
                Value::Decimal(convert::to_decimal(&Value::Int(v)).0.neg())
            }
            _ => return Err(out_of_range(exec, ty, expr)),
        },
        Value::UInt(v) => match ty {
            DataType::Decimal { .. } => {
                Value::Decimal(convert::to_decimal(&Value::UInt(v)).0.neg())
            }
            _ => narrow(exec, -i128::from(v), &DataType::BIGINT, expr)?,
        },
        Value::Decimal(v) => Value::Decimal(v.neg()),
        other => Value::Double(-convert::to_double(&other).0),
    })
}

/// A condition raised by evaluating, kept as a warning.
pub fn as_warning(error: Error) -> (Level, Condition) {
    (Level::Warning, error.into_condition())
}
