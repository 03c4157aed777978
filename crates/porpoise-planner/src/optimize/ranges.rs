//! Which parts of an index conditions select.
//!
//! A condition is *sargable* for a table when it compares a bare column, or what generates one, with something known before the
//! table's row: a constant, or columns of tables read earlier. It then is a list of [`Interval`]s of the
//! column. An index's ranges are made part by part, as long as parts are fixed to single values:
//!
//! ```text
//! index (a, b, c)    a IN (1, 2) AND b = 5 AND c > 7        (1,5,7..)  (2,5,7..)
//! ```

use porpoise_catalog::{Index, Table};
use porpoise_expr::typing::{Class, bytes_type, class, hidden, implicit};
use porpoise_expr::{Comparison, Domain, Expr, ExprKind, Slot};
use porpoise_types::{DataType, Value};

use crate::bind::Binder;
use crate::optimize::expr_slots;
use crate::plan::{KeyBound, KeyPart, KeyRange};
use crate::slot_set::SlotSet;

/// More ranges than this are not multiplied out.
const RANGES_MAX: usize = 1000;

#[derive(Clone, Debug)]
pub enum Interval {
    Equal(KeyPart),
    Between {
        lower: Option<KeyBound>,
        upper: Option<KeyBound>,
    },
}

/// A condition as intervals of a column.
#[derive(Clone, Debug)]
pub struct Sarg {
    /// Which of the conditions it is.
    pub condition: usize,
    pub column: usize,
    pub intervals: Vec<Interval>,
    /// The intervals say all that the condition says.
    pub exact: bool,
}

/// The ranges of one index.
#[derive(Clone, Debug)]
pub struct IndexRanges {
    pub ranges: Vec<KeyRange>,
    /// Leading parts that every range fixes to one value.
    pub equal_parts: usize,
    /// Parts fixed or bounded.
    pub parts: usize,
    /// The last part used is bounded, not fixed.
    pub bounded: bool,
    /// Bounded on both sides.
    pub closed: bool,
    /// Conditions that the ranges say wholly.
    pub exact: Vec<usize>,
}

impl IndexRanges {
    /// The whole index.
    pub fn all() -> IndexRanges {
        IndexRanges {
            ranges: vec![KeyRange::ALL],
            equal_parts: 0,
            parts: 0,
            bounded: false,
            closed: false,
            exact: Vec::new(),
        }
    }
}

/// The sargable conditions of a table, when `available` slots are filled before it.
pub fn sargs(
    binder: &Binder<'_>,
    slot: Slot,
    table: &Table,
    conditions: &[&Expr],
    available: &SlotSet,
) -> Vec<Sarg> {
    let mut found = Vec::new();
    for (number, condition) in conditions.iter().enumerate() {
        if let Some((column, intervals, exact)) = sarg(binder, slot, table, condition, available) {
            found.push(Sarg {
                condition: number,
                column,
                intervals,
                exact,
            });
        }
    }
    found
}

/// The column that an expression generates, if it has the expression's type: a key over the column is one over the expression.
fn generated_column(slot: Slot, table: &Table, expr: &Expr) -> Option<usize> {
    table.columns.iter().position(|column| {
        column.ty == expr.ty
            && column.generated.as_ref().is_some_and(|generated| {
                let mut over_slot = Expr::clone(&generated.expr);
                move_to(&mut over_slot, slot);
                over_slot.same_as(expr, &[])
            })
    })
}

/// Makes an expression over a row alone one over the row in this slot.
fn move_to(expr: &mut Expr, to: Slot) {
    if let ExprKind::Column { slot, .. } = &mut expr.kind {
        *slot = to;
    }
    expr.for_each_child_mut(&mut |child| move_to(child, to));
}

type Intervals = (usize, Vec<Interval>, bool);

fn sarg(
    binder: &Binder<'_>,
    slot: Slot,
    table: &Table,
    condition: &Expr,
    available: &SlotSet,
) -> Option<Intervals> {
    let of_slot = |expr: &Expr| match expr.as_column() {
        Some((of, column)) => (of == slot).then_some(column),
        None => generated_column(slot, table, expr),
    };
    let known = |expr: &Expr| {
        (expr.is_constant() || expr_slots(binder, expr).is_subset(available)) && !expr.is_volatile()
    };
    match &condition.kind {
        ExprKind::Compare {
            op,
            domain,
            left,
            right,
        } => {
            let (column, value, op) = match (of_slot(left), of_slot(right)) {
                (Some(column), _) if known(right) => (column, right, *op),
                (_, Some(column)) if known(left) => (column, left, op.flipped()),
                _ => return None,
            };
            let (value, exact) = key_value(&table.columns[column].ty, value, *domain)?;
            let bound = |inclusive: bool| {
                Some(KeyBound {
                    value: value.clone(),
                    inclusive,
                })
            };
            let interval = match op {
                Comparison::Eq => Interval::Equal(KeyPart {
                    value,
                    null_safe: false,
                }),
                Comparison::NullSafeEq => Interval::Equal(KeyPart {
                    value,
                    null_safe: true,
                }),
                Comparison::Lt => Interval::Between {
                    lower: None,
                    upper: bound(false),
                },
                Comparison::Le => Interval::Between {
                    lower: None,
                    upper: bound(true),
                },
                Comparison::Gt => Interval::Between {
                    lower: bound(false),
                    upper: None,
                },
                Comparison::Ge => Interval::Between {
                    lower: bound(true),
                    upper: None,
                },
                Comparison::Ne => return None,
            };
            Some((column, vec![interval], exact))
        }
        ExprKind::Between {
            operand,
            low,
            high,
            domain,
            negated: false,
        } => {
            let column = of_slot(operand)?;
            if !known(low) || !known(high) {
                return None;
            }
            let ty = &table.columns[column].ty;
            let ((low, a), (high, b)) =
                (key_value(ty, low, *domain)?, key_value(ty, high, *domain)?);
            let bound = |value| {
                Some(KeyBound {
                    value,
                    inclusive: true,
                })
            };
            Some((
                column,
                vec![Interval::Between {
                    lower: bound(low),
                    upper: bound(high),
                }],
                a && b,
            ))
        }
        ExprKind::InList {
            operand,
            list,
            domain,
            negated: false,
        } => {
            let column = of_slot(operand)?;
            let mut intervals = Vec::with_capacity(list.len());
            let mut exact = true;
            for item in list {
                if !known(item) {
                    return None;
                }
                let (value, item_exact) = key_value(&table.columns[column].ty, item, *domain)?;
                exact &= item_exact;
                intervals.push(Interval::Equal(KeyPart {
                    value,
                    null_safe: false,
                }));
            }
            Some((column, intervals, exact))
        }
        ExprKind::IsNull {
            operand,
            negated: false,
        } => {
            let column = of_slot(operand)?;
            if !table.columns[column].nullable {
                return None;
            }
            let value = Expr::literal(Value::Null, table.columns[column].ty.clone());
            Some((
                column,
                vec![Interval::Equal(KeyPart {
                    value,
                    null_safe: true,
                })],
                true,
            ))
        }
        ExprKind::Like {
            operand,
            pattern,
            escape,
            collation,
            negated: false,
        } => {
            let column = of_slot(operand)?;
            let ty = &table.columns[column].ty;
            let comparable = match class(ty) {
                Class::Text => ty.collation() == *collation,
                Class::Bytes => true,
                _ => false,
            };
            if !comparable
                || !known(pattern)
                || class(&pattern.ty) != class(ty)
                || begins_wild(binder, pattern, *escape)
            {
                return None;
            }
            let escape = escape.filter(char::is_ascii);
            let edge = |function: &'static porpoise_expr::function::Function| {
                let escape = match escape {
                    Some(escape) => {
                        porpoise_expr::typing::text_literal(escape.encode_utf8(&mut [0; 4]))
                    }
                    None => porpoise_expr::typing::text_literal(""),
                };
                let ty = if class(ty) == Class::Text {
                    pattern.ty.with_collation(*collation)
                } else {
                    pattern.ty.clone()
                };
                let value = Expr::new(
                    ExprKind::Call {
                        function,
                        arguments: vec![(**pattern).clone(), escape],
                    },
                    ty,
                    true,
                );
                Some(KeyBound {
                    value,
                    inclusive: true,
                })
            };
            let interval = Interval::Between {
                lower: edge(&hidden::LIKE_LOW),
                upper: edge(&hidden::LIKE_HIGH),
            };
            Some((column, vec![interval], false))
        }
        ExprKind::Or(parts) => {
            let mut all: Option<Intervals> = None;
            for part in parts {
                let (column, intervals, exact) = sarg(binder, slot, table, part, available)?;
                all = Some(match all {
                    None => (column, intervals, exact),
                    Some((held, _, _)) if held != column => return None,
                    Some((held, mut known, was_exact)) => {
                        known.extend(intervals);
                        (held, known, was_exact && exact)
                    }
                });
            }
            all
        }
        _ => None,
    }
}

/// Whether a pattern's first character already matches anything; a pattern not known yet is taken not to.
fn begins_wild(binder: &Binder<'_>, pattern: &Expr, escape: Option<char>) -> bool {
    let value = match &pattern.kind {
        ExprKind::Literal(value) => Some(value),
        ExprKind::Parameter(number) => binder.cx.literals.get(*number),
        _ => None,
    };
    let Some(bytes) = value.and_then(Value::as_bytes) else {
        return false;
    };
    matches!(bytes.first(), Some(b'%' | b'_')) && escape != bytes.first().map(|byte| *byte as char)
}

/// The value as a bound of the column's keys, and whether the bound says just what the comparison says.
/// `None` where the column's order is not the comparison's.
fn key_value(ty: &DataType, value: &Expr, domain: Domain) -> Option<(Expr, bool)> {
    let numbers = matches!(domain, Domain::Integer | Domain::Decimal | Domain::Double);
    let ok = match class(ty) {
        Class::Integer | Class::Decimal | Class::Double => numbers,
        Class::Member => domain == Domain::Integer,
        Class::Text => domain == Domain::Text(ty.collation()),
        Class::Bytes => domain == Domain::Bytes,
        Class::Date | Class::DateTime => matches!(domain, Domain::Date | Domain::DateTime),
        Class::Time => domain == Domain::Time,
        Class::Json | Class::Null => false,
    };
    if !ok {
        return None;
    }
    // Local time repeats an hour a year.
    let exact = !matches!(ty, DataType::Timestamp { .. });
    let value = match (class(ty), class(&value.ty)) {
        (Class::Bytes, Class::Text) => implicit(
            value.clone(),
            bytes_type(value.ty.max_chars().saturating_mul(4)),
        ),
        _ => value.clone(),
    };
    Some((value, exact))
}

/// The ranges of an index that the conditions select, if they say anything of its first part.
pub fn index_ranges(index: &Index, sargs: &[Sarg]) -> Option<IndexRanges> {
    let mut found = IndexRanges::all();
    for (number, part) in index.parts.iter().enumerate() {
        let whole = part.prefix.is_none();
        let of_part = || sargs.iter().filter(|sarg| sarg.column == part.column);
        let fixed = of_part().filter(|sarg| {
            sarg.intervals
                .iter()
                .all(|interval| matches!(interval, Interval::Equal(_)))
        });
        if let Some(sarg) = fixed.min_by_key(|sarg| sarg.intervals.len()) {
            if found.ranges.len() * sarg.intervals.len() > RANGES_MAX && number > 0 {
                break;
            }
            if sarg.intervals.len() == 1 && found.equal_parts == number {
                found.equal_parts += 1;
            }
            found.ranges = multiply(&found.ranges, sarg);
            found.parts += 1;
            if sarg.exact && whole {
                found.exact.push(sarg.condition);
            }
            continue;
        }
        let single = |sarg: &&Sarg| sarg.intervals.len() == 1;
        let (mut lower, mut upper) = (None, None);
        for sarg in of_part().filter(single) {
            let Some(Interval::Between {
                lower: low,
                upper: high,
            }) = sarg.intervals.first()
            else {
                continue;
            };
            // Of several bounds on one side the first is used; the others remain conditions.
            let takes = (low.is_none() || lower.is_none()) && (high.is_none() || upper.is_none());
            if !takes {
                continue;
            }
            lower = low.clone().or(lower);
            upper = high.clone().or(upper);
            if sarg.exact && whole {
                found.exact.push(sarg.condition);
            }
        }
        if lower.is_some() || upper.is_some() {
            found.parts += 1;
            found.bounded = true;
            found.closed = lower.is_some() && upper.is_some();
            for range in &mut found.ranges {
                range.lower = lower.clone();
                range.upper = upper.clone();
            }
            break;
        }
        if let Some(sarg) =
            of_part().find(|sarg| found.ranges.len() * sarg.intervals.len() <= RANGES_MAX)
        {
            found.ranges = multiply(&found.ranges, sarg);
            found.parts += 1;
            found.bounded = true;
            found.closed = true;
            if sarg.exact && whole {
                found.exact.push(sarg.condition);
            }
        }
        break;
    }
    (found.parts > 0).then_some(found)
}

/// Each range, once for each interval.
fn multiply(ranges: &[KeyRange], sarg: &Sarg) -> Vec<KeyRange> {
    let mut all = Vec::with_capacity(ranges.len() * sarg.intervals.len());
    for range in ranges {
        for interval in &sarg.intervals {
            let mut range = range.clone();
            match interval {
                Interval::Equal(part) => range.equal.push(part.clone()),
                Interval::Between { lower, upper } => {
                    range.lower = lower.clone();
                    range.upper = upper.clone();
                }
            }
            all.push(range);
        }
    }
    all
}
