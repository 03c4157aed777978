//! What a scalar function is: its name, how many arguments it takes and as what kind of value each
//! is wanted, the type of its result, and the Rust function that computes it.
//!
//! [`typing`](super::typing) checks the count, converts the arguments to the kinds that the
//! function takes, and asks for the result's type; evaluation then calls `eval` with values of just
//! those kinds.

use porpoise_core::error::{Error, Level, Result};
use porpoise_types::{DataType, Value};

use super::{EvalContext, Expr};

/// A row of the table of scalar functions.
#[derive(Debug)]
pub struct Function {
    /// In capitals, as the manual spells it.
    pub name: &'static str,
    /// How many arguments it takes.
    pub arity: Arity,
    /// What the arguments are converted to; the last entry stands for all further ones.
    pub argument_kinds: &'static [ArgumentKind],
    /// The type of the result.
    pub returns: Returns,
    /// What computes it.
    pub eval: Eval,
    /// When it may be computed early.
    pub purity: Purity,
}

impl Function {
    /// The kind of value that argument `at` is converted to.
    pub fn argument_kind(&self, at: usize) -> ArgumentKind {
        let kind = self.argument_kinds.get(at).or(self.argument_kinds.last());
        kind.copied().unwrap_or(ArgumentKind::Any)
    }
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug)]
pub struct Arity {
    /// The fewest.
    pub min: usize,
    /// The most.
    pub max: usize,
}

impl Arity {
    /// Whether a call may have so many arguments.
    pub fn admits(self, count: usize) -> bool {
        (self.min..=self.max).contains(&count)
    }
}

/// So many arguments, no more and no fewer.
pub const fn exactly(count: usize) -> Arity {
    Arity {
        min: count,
        max: count,
    }
}

/// From `min` to `max` arguments, both included.
pub const fn between(min: usize, max: usize) -> Arity {
    Arity { min, max }
}

/// `min` arguments or any number more.
pub const fn at_least(min: usize) -> Arity {
    Arity {
        min,
        max: usize::MAX,
    }
}

/// The kind of value an argument is converted to before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// As it is (ENUM and SET come as their text, BIT and YEAR as integers).
    Any,
    /// As it is, ENUM and SET as the numbers that they are.
    Amount,
    /// `Value::Text`; or `Value::Bytes` where the argument is a binary string.
    String,
    /// As `String`, and brought together with all arguments wanted so: texts next to bytes are
    /// their encoding.
    Mixed,
    /// As `Mixed`, and compared: in one collation, without which the call is refused (1267).
    Compared,
    /// `Value::Bytes`: text comes as its encoding in its character set.
    Bytes,
    /// `Value::Int` or `Value::UInt`.
    Integer,
    /// As `Integer`; a binary string that is no literal number stays `Value::Bytes`.
    Bits,
    /// Int, UInt, Decimal or Double: strings become Double, temporals a number.
    Number,
    /// `Value::Double`.
    Double,
    /// `Value::Decimal`.
    Decimal,
    /// `Value::Date`; NULL where it can't be had.
    Date,
    /// A date or a moment whose month or day may be zero, whatever the SQL mode says.
    LooseDate,
    /// DATE stays a date, everything else becomes `Value::DateTime`.
    DateTime,
    /// `Value::Time`; NULL where it can't be had.
    Time,
    /// Any temporal stays; strings are tried as DATETIME, then TIME.
    Temporal,
    /// `Value::Json`; text is parsed.
    Json,
}

/// The type of the result, given the converted arguments.
#[derive(Clone, Copy)]
pub enum Returns {
    /// Signed BIGINT, and whether it can be NULL though no argument is.
    Int,
    /// BIGINT UNSIGNED.
    UInt,
    /// DOUBLE.
    Double,
    /// 0 or 1.
    Bool,
    /// utf8mb4 text in the arguments' common collation, of at most so many characters.
    Text(u32),
    /// As `Text`, of at most as many characters as the arguments say.
    TextOf(fn(&[Expr]) -> u64),
    /// utf8mb4 text of at most so many characters that is the function's own: in the connection's
    /// collation, and weak in comparisons, whatever the arguments are.
    OwnText(fn(&[Expr]) -> u64),
    /// The type of argument n.
    Same(usize),
    /// A type that depends on nothing.
    Fixed(fn() -> DataType),
    /// A type that depends on the arguments, or an error about them.
    By(fn(&[Expr]) -> Result<DataType>),
}

/// How a call is evaluated.
#[derive(Clone, Copy)]
pub enum Eval {
    /// NULL if any argument is NULL; else this.
    Strict(fn(&mut Call<'_>, &[Value]) -> Result<Value>),
    /// Arguments are evaluated, NULLs come too.
    Values(fn(&mut Call<'_>, &[Value]) -> Result<Value>),
    /// Evaluates its own arguments, those it needs (IF, COALESCE).
    Lazy(fn(&mut Call<'_>) -> Result<Value>),
}

/// What a function sees of its call beside the values.
pub struct Call<'a> {
    /// The function that is called.
    pub function: &'static Function,
    /// The statement that calls.
    pub context: &'a mut (dyn EvalContext + 'a),
    /// The bound arguments: their types, and what `Eval::Lazy` evaluates.
    pub arguments: &'a [Expr],
    /// The type that `returns` gave.
    pub ty: &'a DataType,
}

impl Call<'_> {
    /// Whether a result of so many bytes is longer than `max_allowed_packet` allows; warns that the
    /// result is NULL if it is. Functions that know the length ask before they allocate it.
    pub fn is_too_long(&mut self, bytes: usize) -> bool {
        let most = self.context.vars().max_allowed_packet;
        let is_too_long = bytes as u64 > most;
        if is_too_long {
            let name = self.function.name.to_ascii_lowercase();
            let warning = Error::result_truncated(name, most).into_condition();
            self.context.vars_mut().warn(Level::Warning, warning);
        }
        is_too_long
    }

    /// What the call gives: NULL instead of a string that is too long. The statement may end here,
    /// as a call may have taken a while.
    ///
    /// # Errors
    /// 1317.
    #[inline]
    pub fn bounded(&mut self, result: Value) -> Result<Value> {
        /// Shorter results take no time to speak of, and are allowed by any `max_allowed_packet`.
        const SHORT_BYTES: usize = 1024;
        match result.as_bytes() {
            Some(bytes) if bytes.len() > SHORT_BYTES => {
                let bytes = bytes.len();
                self.context.check_interrupt()?;
                Ok(match self.is_too_long(bytes) {
                    true => Value::Null,
                    false => result,
                })
            }
            _ => Ok(result),
        }
    }
}

/// When a call may be computed early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purity {
    /// Same arguments, same result: folded when they are constant; allowed in generated columns.
    Pure,
    /// Constant during a statement (NOW(), DATABASE(), CONNECTION_ID()).
    Stable,
    /// Another value each row (RAND(), UUID()), or with effects (SLEEP, SET-like).
    Volatile,
}

impl std::fmt::Debug for Returns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Returns")
    }
}

impl std::fmt::Debug for Eval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Eval")
    }
}

/// A row of a function that depends on its arguments alone.
pub const fn pure(
    name: &'static str,
    arity: Arity,
    argument_kinds: &'static [ArgumentKind],
    returns: Returns,
    eval: Eval,
) -> Function {
    Function {
        name,
        arity,
        argument_kinds,
        returns,
        eval,
        purity: Purity::Pure,
    }
}

/// A row of a function that is constant during a statement.
pub const fn stable(
    name: &'static str,
    arity: Arity,
    argument_kinds: &'static [ArgumentKind],
    returns: Returns,
    eval: Eval,
) -> Function {
    Function {
        purity: Purity::Stable,
        ..pure(name, arity, argument_kinds, returns, eval)
    }
}

/// A row of a function that is computed each time.
pub const fn volatile(
    name: &'static str,
    arity: Arity,
    argument_kinds: &'static [ArgumentKind],
    returns: Returns,
    eval: Eval,
) -> Function {
    Function {
        purity: Purity::Volatile,
        ..pure(name, arity, argument_kinds, returns, eval)
    }
}

/// A stored function, as expressions know it. Who evaluates them knows more of it.
pub trait StoredFunction: std::fmt::Debug + Send + Sync {
    /// Schema and name, quoted.
    fn name(&self) -> String;
    /// Whether it is declared to give the same value for the same arguments.
    fn is_deterministic(&self) -> bool;
    /// What it is, for who evaluates it.
    fn as_any(&self) -> &dyn std::any::Any;
}
