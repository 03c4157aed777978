//! Conditions: what is true, false or unknown of each row of a batch.

use porpoise_core::error::Result;
use porpoise_expr::{Comparison, Domain, Expr, ExprKind};
use porpoise_types::vector::{Elements, Kind};
use porpoise_types::{Collation, RowLayout, Value, cancel, try_like};

use super::evaluator::Evaluator;
use super::kernels::{Operand, Truth, compared, either_null, null_safe, unknown_where};
use super::program::{Program, Register, Vectors, power};
use super::silently;
use crate::Exec;

pub(super) enum Condition<'p> {
    Compare {
        op: Comparison,
        operands: [Register; 2],
        by: Order,
    },
    /// Whether integers are among these, in order.
    In {
        operand: Register,
        values: Vec<i64>,
        /// There is a NULL beside them.
        has_null: bool,
    },
    IsNull(Register),
    Like {
        text: Register,
        pattern: Vec<u8>,
        escape: Option<char>,
        collation: Collation,
    },
    /// Whether a number is not zero.
    Number(Register),
    Not(Box<Condition<'p>>),
    And(Vec<Condition<'p>>),
    Or(Vec<Condition<'p>>),
    Xor(Box<[Condition<'p>; 2]>),
    IsTruth(Box<Condition<'p>>, bool),
    /// By the row evaluator.
    Row(&'p Expr),
}

/// How two vectors are compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Integers,
    /// Integers, once they have been multiplied by these.
    Scaled([i64; 2]),
    Doubles,
    Texts(Collation),
}

/// How deep a condition may be that is computed on other threads' stacks.
const DETACHED_LEVELS_MAX: usize = 64;

impl<'p> Condition<'p> {
    /// The condition that an expression is, over registers of the program, to which what it needs is
    /// added. The expression must be repeatable.
    pub(super) fn compile(
        program: &mut Program<'p>,
        exec: &mut Exec<'_>,
        expr: &'p Expr,
    ) -> Condition<'p> {
        let compiled = program.attempt(|program| Condition::of_loops(program, exec, expr));
        compiled.unwrap_or(Condition::Row(expr))
    }

    /// Whether a register is not NULL.
    pub(super) fn is_not_null(register: Register) -> Condition<'p> {
        Condition::Not(Box::new(Condition::IsNull(register)))
    }

    /// Whether loops compute a part of it.
    pub(super) fn has_loops(&self) -> bool {
        match self {
            Condition::Row(_) => false,
            Condition::Not(operand) | Condition::IsTruth(operand, _) => operand.has_loops(),
            Condition::And(operands) | Condition::Or(operands) => {
                operands.iter().any(Condition::has_loops)
            }
            Condition::Xor(operands) => operands.iter().any(Condition::has_loops),
            _ => true,
        }
    }

    /// The same without what it borrows of the plan; `None` where the row evaluator computes a part, or
    /// where it is too deep for the stack of a thread that isn't a statement's.
    pub(super) fn detached(&self) -> Option<Condition<'static>> {
        self.detached_within(DETACHED_LEVELS_MAX)
    }

    fn detached_within(&self, levels: usize) -> Option<Condition<'static>> {
        let below = levels.checked_sub(1)?;
        let all = |operands: &[Condition<'p>]| {
            let operands = operands.iter();
            let operands = operands.map(|operand| operand.detached_within(below));
            operands.collect::<Option<Vec<_>>>()
        };
        Some(match self {
            Condition::Compare { op, operands, by } => Condition::Compare {
                op: *op,
                operands: *operands,
                by: *by,
            },
            Condition::In {
                operand,
                values,
                has_null,
            } => Condition::In {
                operand: *operand,
                values: values.clone(),
                has_null: *has_null,
            },
            Condition::IsNull(operand) => Condition::IsNull(*operand),
            Condition::Like {
                text,
                pattern,
                escape,
                collation,
            } => Condition::Like {
                text: *text,
                pattern: pattern.clone(),
                escape: *escape,
                collation: *collation,
            },
            Condition::Number(operand) => Condition::Number(*operand),
            Condition::Not(operand) => Condition::Not(Box::new(operand.detached_within(below)?)),
            Condition::And(operands) => Condition::And(all(operands)?),
            Condition::Or(operands) => Condition::Or(all(operands)?),
            Condition::Xor(operands) => {
                let [left, right] = &**operands;
                let operands = [left.detached_within(below)?, right.detached_within(below)?];
                Condition::Xor(Box::new(operands))
            }
            Condition::IsTruth(operand, is) => {
                Condition::IsTruth(Box::new(operand.detached_within(below)?), *is)
            }
            Condition::Row(_) => return None,
        })
    }

    fn of_loops(
        program: &mut Program<'p>,
        exec: &mut Exec<'_>,
        expr: &'p Expr,
    ) -> Option<Condition<'p>> {
        let negated_if = |negated: bool, condition| match negated {
            true => Condition::Not(Box::new(condition)),
            false => condition,
        };
        Some(match &expr.kind {
            ExprKind::Not(operand) => {
                Condition::Not(Box::new(Condition::compile(program, exec, operand)))
            }
            ExprKind::And(operands) => {
                let operands = operands.iter();
                let compile = |operand| Condition::compile(program, exec, operand);
                Condition::And(operands.map(compile).collect())
            }
            ExprKind::Or(operands) => {
                let operands = operands.iter();
                let compile = |operand| Condition::compile(program, exec, operand);
                Condition::Or(operands.map(compile).collect())
            }
            ExprKind::Xor(left, right) => Condition::Xor(Box::new([
                Condition::compile(program, exec, left),
                Condition::compile(program, exec, right),
            ])),
            ExprKind::IsTruth {
                operand,
                truth,
                negated,
            } => {
                let operand = Condition::compile(program, exec, operand);
                negated_if(*negated, Condition::IsTruth(Box::new(operand), *truth))
            }
            ExprKind::Compare {
                op,
                domain,
                left,
                right,
            } => compile_comparison(program, exec, *op, *domain, [left, right])?,
            ExprKind::Between {
                operand,
                low,
                high,
                domain,
                negated,
            } => {
                let low = [&**operand, &**low];
                let low = compile_comparison(program, exec, Comparison::Ge, *domain, low)?;
                let high = [&**operand, &**high];
                let high = compile_comparison(program, exec, Comparison::Le, *domain, high)?;
                negated_if(*negated, Condition::And(vec![low, high]))
            }
            ExprKind::InList {
                operand,
                list,
                negated,
                ..
            } => negated_if(*negated, compile_list(program, exec, operand, list)?),
            ExprKind::IsNull { operand, negated } => {
                let operand = match operand.as_column() {
                    Some((slot, _)) if slot == program.slot => program.add_nulls(exec, operand)?,
                    _ => program.compile(exec, operand)?,
                };
                if program.constant(operand).is_some() {
                    return None;
                }
                negated_if(*negated, Condition::IsNull(operand))
            }
            ExprKind::Like {
                operand,
                pattern,
                escape,
                collation,
                negated,
            } => {
                let text = program.compile(exec, operand)?;
                let pattern = program.compile(exec, pattern)?;
                let (Kind::Text, None, Some(Value::Text(pattern))) = (
                    program.kind(text),
                    program.constant(text),
                    program.constant(pattern),
                ) else {
                    return None;
                };
                let like = Condition::Like {
                    text,
                    pattern: pattern.as_bytes().to_vec(),
                    escape: *escape,
                    collation: *collation,
                };
                negated_if(*negated, like)
            }
            _ => {
                let number = program.compile(exec, expr)?;
                let is_number = matches!(
                    program.kind(number),
                    Kind::Int | Kind::UInt | Kind::Decimal(_) | Kind::Double
                );
                if !is_number || program.constant(number).is_some() {
                    return None;
                }
                Condition::Number(number)
            }
        })
    }

    /// What it says of each row; `Ok(None)`: something is out of the ordinary. What the row evaluator
    /// has to say, it is asked for the rows that `wanted` names (all: `None`); of others anything may
    /// be said.
    ///
    /// # Errors
    /// 1317.
    pub(super) fn truths(
        &self,
        by: &mut dyn Evaluator,
        program: &Program<'_>,
        layout: &RowLayout,
        rows: &[&[u8]],
        vectors: &Vectors<'_>,
        wanted: Option<&[bool]>,
    ) -> Result<Option<Vec<Truth>>> {
        let mut of = |operand: &Condition<'_>, wanted: Option<&[bool]>| {
            operand.truths(by, program, layout, rows, vectors, wanted)
        };
        Ok(match self {
            Condition::Compare { op, operands, by } => {
                compare(program, vectors, *op, *operands, *by)
            }
            Condition::In {
                operand,
                values,
                has_null,
            } => program.integers(vectors, *operand).map(|integers| {
                let otherwise = match has_null {
                    true => Truth::Unknown,
                    false => Truth::No,
                };
                let is_in = |integer| match values.binary_search(&integer) {
                    Ok(_) => Truth::Yes,
                    Err(_) => otherwise,
                };
                let mut truths = match integers {
                    Operand::Vector(integers) => integers.iter().copied().map(is_in).collect(),
                    Operand::Constant(integer) => vec![is_in(integer); rows.len()],
                };
                unknown_where(vectors.nulls(*operand), &mut truths);
                truths
            }),
            Condition::IsNull(operand) => {
                let nulls = vectors.nulls(*operand);
                Some(match nulls.is_empty() {
                    true => vec![Truth::No; rows.len()],
                    false => nulls.iter().map(|is_null| Truth::of(*is_null)).collect(),
                })
            }
            Condition::Number(operand) => {
                let elements = vectors.vector(*operand).map(|vector| &vector.elements);
                let mut truths: Vec<Truth> = match elements {
                    Some(Elements::Integers(v)) => v.iter().map(|v| Truth::of(*v != 0)).collect(),
                    Some(Elements::Doubles(v)) => v.iter().map(|v| Truth::of(*v != 0.0)).collect(),
                    _ => return Ok(None),
                };
                unknown_where(vectors.nulls(*operand), &mut truths);
                Some(truths)
            }
            Condition::Not(operand) => of(operand, wanted)?.map(|mut truths| {
                truths.iter_mut().for_each(|truth| *truth = truth.negated());
                truths
            }),
            Condition::IsTruth(operand, is) => of(operand, wanted)?.map(|mut truths| {
                let is = Truth::of(*is);
                truths
                    .iter_mut()
                    .for_each(|truth| *truth = Truth::of(*truth == is));
                truths
            }),
            Condition::Xor(operands) => {
                let (Some(left), Some(right)) =
                    (of(&operands[0], wanted)?, of(&operands[1], wanted)?)
                else {
                    return Ok(None);
                };
                let pairs = left.into_iter().zip(right);
                let xor = |(a, b)| match (a, b) {
                    (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
                    (a, b) => Truth::of(a != b),
                };
                Some(pairs.map(xor).collect())
            }
            Condition::And(operands) => unless_any(Truth::No, operands, wanted, rows.len(), of)?,
            Condition::Or(operands) => unless_any(Truth::Yes, operands, wanted, rows.len(), of)?,
            Condition::Like {
                text,
                pattern,
                escape,
                collation,
            } => {
                let Some(Operand::Vector(texts)) = program.texts(vectors, *text) else {
                    return Ok(None);
                };
                let is_wanted = |row| wanted.is_none_or(|wanted| wanted[row]);
                let mut truths = Vec::with_capacity(rows.len());
                for (row, text) in texts.iter().enumerate() {
                    let matches = is_wanted(row) && {
                        let check = || by.check_interrupt();
                        try_like(text, pattern, *escape, *collation, check)?
                    };
                    truths.push(Truth::of(matches));
                }
                unknown_where(vectors.nulls(*text), &mut truths);
                Some(truths)
            }
            Condition::Row(expr) => {
                let is_wanted = |row| wanted.is_none_or(|wanted| wanted[row]);
                let mut truths = Vec::with_capacity(rows.len());
                for (number, row) in rows.iter().enumerate() {
                    if !is_wanted(number) {
                        truths.push(Truth::Unknown);
                        continue;
                    }
                    by.check_interrupt()?;
                    by.load(program.slot, row);
                    match by.truth(expr) {
                        Some(truth) => truths.push(Truth::from_option(truth)),
                        None => return Ok(None),
                    }
                }
                Some(truths)
            }
        })
    }
}

/// `decisive` where one of the operands says so; otherwise unknown where one is unknown.
fn unless_any<'c, 'p>(
    decisive: Truth,
    operands: &'c [Condition<'p>],
    wanted: Option<&[bool]>,
    rows: usize,
    mut truths_of: impl FnMut(&'c Condition<'p>, Option<&[bool]>) -> Result<Option<Vec<Truth>>>,
) -> Result<Option<Vec<Truth>>> {
    let mut all = vec![decisive.negated(); rows];
    let mut undecided: Vec<bool> = wanted.map_or_else(|| vec![true; rows], <[bool]>::to_vec);
    for operand in operands {
        let Some(truths) = truths_of(operand, Some(&undecided))? else {
            return Ok(None);
        };
        for ((all, truth), undecided) in all.iter_mut().zip(truths).zip(&mut undecided) {
            if truth == decisive {
                *all = decisive;
                *undecided = false;
            } else if truth == Truth::Unknown && *all != decisive {
                *all = Truth::Unknown;
            }
        }
    }
    Ok(Some(all))
}

fn compile_comparison<'p>(
    program: &mut Program<'p>,
    exec: &mut Exec<'_>,
    op: Comparison,
    domain: Domain,
    [left, right]: [&'p Expr; 2],
) -> Option<Condition<'p>> {
    let mut operands = [program.compile(exec, left)?, program.compile(exec, right)?];
    if operands
        .iter()
        .all(|operand| program.constant(*operand).is_some())
    {
        return None;
    }
    let kinds = operands.map(|operand| program.kind(operand));
    let by = match kinds {
        [Kind::Int | Kind::UInt, Kind::Int | Kind::UInt] => Order::Integers,
        [Kind::Date, Kind::Date] | [Kind::DateTime, Kind::DateTime] => Order::Integers,
        [Kind::Date, Kind::DateTime] => {
            operands[0] = program.midnight(operands[0])?;
            Order::Integers
        }
        [Kind::DateTime, Kind::Date] => {
            operands[1] = program.midnight(operands[1])?;
            Order::Integers
        }
        [Kind::Text, Kind::Text] => match domain {
            Domain::Text(collation) => Order::Texts(collation),
            _ => return None,
        },
        [Kind::Double, Kind::Double] => Order::Doubles,
        [Kind::Double, Kind::Int | Kind::UInt] | [Kind::Int | Kind::UInt, Kind::Double]
            if domain == Domain::Double =>
        {
            operands = [program.double(operands[0])?, program.double(operands[1])?];
            Order::Doubles
        }
        [a, b] => {
            let (left, right) = (a.scale()?, b.scale()?);
            let are_decimals = matches!([a, b], [Kind::Decimal(_), Kind::Decimal(_)]);
            if !are_decimals && !matches!(domain, Domain::Decimal | Domain::Integer) {
                return None;
            }
            let scale = left.max(right);
            Order::Scaled([power(scale - left)?, power(scale - right)?])
        }
    };
    Some(Condition::Compare { op, operands, by })
}

/// Lists are looked up in where the operand and all items are integers of one kind, or NULL.
fn compile_list<'p>(
    program: &mut Program<'p>,
    exec: &mut Exec<'_>,
    operand: &'p Expr,
    list: &'p [Expr],
) -> Option<Condition<'p>> {
    let operand = program.compile(exec, operand)?;
    let kind = program.kind(operand);
    if program.constant(operand).is_some() || matches!(kind, Kind::Double | Kind::Text | Kind::Any)
    {
        return None;
    }
    let mut values = Vec::with_capacity(list.len());
    let mut has_null = false;
    for item in list {
        if !item.is_constant() {
            return None;
        }
        match silently(exec, |exec| crate::eval::Evaluate::eval(item, exec))? {
            Value::Null => has_null = true,
            Value::Int(value) if kind == Kind::UInt => {
                // A negative number is none of them.
                values.extend((value >= 0).then_some(value));
            }
            Value::UInt(value) if kind == Kind::Int => values.extend(i64::try_from(value).ok()),
            Value::Decimal(value) if kind.scale().is_some_and(|scale| value.scale() <= scale) => {
                let Kind::Decimal(scale) = kind else {
                    return None;
                };
                let mantissa = i64::try_from(value.mantissa_i128()?).ok()?;
                values.push(mantissa.checked_mul(power(scale - value.scale())?)?);
            }
            value => values.push(kind.integer_of(&value)?),
        }
    }
    values.sort_unstable();
    Some(Condition::In {
        operand,
        values,
        has_null,
    })
}

/// Compares two registers; `None` where the row evaluator has to.
fn compare(
    program: &Program<'_>,
    vectors: &Vectors<'_>,
    op: Comparison,
    operands: [Register; 2],
    by: Order,
) -> Option<Vec<Truth>> {
    let rows = vectors.rows;
    let [left, right] = operands;
    let mut truths = match by {
        Order::Integers => compared(
            op,
            program.integers(vectors, left)?,
            program.integers(vectors, right)?,
            rows,
            |a, b| a.cmp(&b),
        ),
        Order::Scaled([1, 1]) => {
            return compare(program, vectors, op, operands, Order::Integers);
        }
        Order::Scaled(factors) => {
            let [f, g] = factors.map(i128::from);
            compared(
                op,
                program.integers(vectors, left)?,
                program.integers(vectors, right)?,
                rows,
                |a, b| (i128::from(a) * f).cmp(&(i128::from(b) * g)),
            )
        }
        Order::Doubles => compared(
            op,
            program.doubles(vectors, left)?,
            program.doubles(vectors, right)?,
            rows,
            |a, b| a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal),
        ),
        Order::Texts(collation) => {
            let (left, right) = (
                program.texts(vectors, left)?,
                program.texts(vectors, right)?,
            );
            let mut is_long = false;
            let truths = compared(op, left, right, rows, |a, b| {
                if a.len().min(b.len()) > cancel::SHORT_BYTES {
                    return std::cmp::Ordering::Equal;
                }
                collation.compare(a, b)
            });
            // Comparing long ones takes long, and ends with the statement.
            let _ = super::kernels::combine(left, right, rows, |a, b| {
                is_long |= a.len().min(b.len()) > cancel::SHORT_BYTES;
            });
            if is_long {
                return None;
            }
            truths
        }
    };
    let (left, right) = (vectors.nulls(left), vectors.nulls(right));
    match op {
        Comparison::NullSafeEq => null_safe(left, right, &mut truths),
        _ => unknown_where(&either_null(left, right), &mut truths),
    }
    Some(truths)
}
