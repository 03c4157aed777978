//! Expressions as text, as EXPLAIN and error messages show them.

use porpoise_types::{DataType, Value};

use super::typing::{Class, class};
use super::{CastKind, Comparison, Expr, ExprKind, SlotId, SubqueryKind};

/// What an expression's columns are called.
pub trait ColumnNames {
    /// Appends the name of a column of a slot.
    fn write_column(&self, slot: SlotId, column: usize, out: &mut String);
    /// The n-th parameter, where its value is known.
    fn parameter(&self, _: usize) -> Option<&Value> {
        None
    }
}

/// Columns without names: `s0.c1`.
struct Nameless;

impl ColumnNames for Nameless {
    fn write_column(&self, slot: SlotId, column: usize, out: &mut String) {
        out.push_str(&format!("s{}.c{}", slot.0, column));
    }
}

impl std::fmt::Display for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        self.write_sql(&Nameless, &mut out);
        f.write_str(&out)
    }
}

impl Expr {
    /// Prints the expression as EXPLAIN and out-of-range errors do: every operator in parentheses.
    pub fn write_sql(&self, names: &dyn ColumnNames, out: &mut String) {
        let list = |exprs: &[Expr], between: &str, out: &mut String| {
            for (at, expr) in exprs.iter().enumerate() {
                if at > 0 {
                    out.push_str(between);
                }
                expr.write_sql(names, out);
            }
        };
        let infix = |left: &Expr, sign: &str, right: &Expr, out: &mut String| {
            out.push('(');
            left.write_sql(names, out);
            out.push(' ');
            out.push_str(sign);
            out.push(' ');
            right.write_sql(names, out);
            out.push(')');
        };
        match &self.kind {
            ExprKind::Literal(value) => write_value(value, &self.ty, out),
            ExprKind::Parameter(number) | ExprKind::Variable(number) => {
                match names.parameter(*number) {
                    Some(value) => write_value(value, &self.ty, out),
                    None => out.push('?'),
                }
            }
            ExprKind::Column { slot, column, .. } => {
                names.write_column(*slot, *column as usize, out)
            }
            ExprKind::UserVariable(name) => {
                out.push_str("(@");
                out.push_str(name);
                out.push(')');
            }
            ExprKind::SystemVariable { position, .. } => {
                out.push_str("@@");
                out.push_str(porpoise_core::variables::VARIABLES[*position].name);
            }
            ExprKind::AssignUserVariable { name, value } => {
                out.push_str("(@");
                out.push_str(name);
                out.push_str(":=");
                value.write_sql(names, out);
                out.push(')');
            }
            ExprKind::Cast {
                operand,
                kind:
                    CastKind::Implicit
                    | CastKind::Silent
                    | CastKind::Exact
                    | CastKind::Moment(_)
                    | CastKind::MomentOrZero
                    | CastKind::Member
                    | CastKind::Comparable { .. },
            } => operand.write_sql(names, out),
            ExprKind::Cast {
                operand,
                kind: CastKind::Explicit,
            } => {
                out.push_str("cast(");
                operand.write_sql(names, out);
                out.push_str(" as ");
                out.push_str(&cast_name(&self.ty));
                out.push(')');
            }
            ExprKind::Cast {
                operand,
                kind: CastKind::Whole,
            } => {
                out.push_str("cast(");
                operand.write_sql(names, out);
                out.push_str(match class(&self.ty) {
                    Class::Bytes => " as binary)",
                    _ => " as char)",
                });
            }
            ExprKind::Once(operand) => operand.write_sql(names, out),
            ExprKind::Not(operand) => {
                out.push_str("(not ");
                operand.write_sql(names, out);
                out.push(')');
            }
            ExprKind::And(operands) | ExprKind::Or(operands) => {
                out.push('(');
                list(
                    operands,
                    if matches!(self.kind, ExprKind::And(_)) {
                        " and "
                    } else {
                        " or "
                    },
                    out,
                );
                out.push(')');
            }
            ExprKind::Xor(left, right) => infix(left, "xor", right, out),
            ExprKind::Compare {
                op, left, right, ..
            } => infix(left, op.sign(), right, out),
            ExprKind::Arithmetic { op, left, right } => infix(left, op.sign(), right, out),
            ExprKind::Between {
                operand,
                low,
                high,
                negated,
                ..
            } => {
                out.push('(');
                operand.write_sql(names, out);
                out.push_str(if *negated {
                    " not between "
                } else {
                    " between "
                });
                low.write_sql(names, out);
                out.push_str(" and ");
                high.write_sql(names, out);
                out.push(')');
            }
            ExprKind::InList {
                operand,
                list: items,
                negated,
                ..
            } => {
                out.push('(');
                operand.write_sql(names, out);
                out.push_str(if *negated { " not in (" } else { " in (" });
                list(items, ",", out);
                out.push_str("))");
            }
            ExprKind::IsNull { operand, negated } => {
                out.push('(');
                operand.write_sql(names, out);
                out.push_str(if *negated {
                    " is not null)"
                } else {
                    " is null)"
                });
            }
            ExprKind::IsTruth {
                operand,
                truth,
                negated,
            } => {
                out.push('(');
                operand.write_sql(names, out);
                out.push_str(if *negated { " is not " } else { " is " });
                out.push_str(if *truth { "true)" } else { "false)" });
            }
            ExprKind::Negate(operand) => {
                out.push_str("-(");
                operand.write_sql(names, out);
                out.push(')');
            }
            ExprKind::Like {
                operand,
                pattern,
                negated,
                ..
            } => infix(
                operand,
                if *negated { "not like" } else { "like" },
                pattern,
                out,
            ),
            ExprKind::Case {
                branches,
                otherwise,
            } => {
                out.push_str("(case");
                for (condition, value) in branches {
                    out.push_str(" when ");
                    condition.write_sql(names, out);
                    out.push_str(" then ");
                    value.write_sql(names, out);
                }
                if let Some(value) = otherwise {
                    out.push_str(" else ");
                    value.write_sql(names, out);
                }
                out.push_str(" end)");
            }
            // Nobody has written these calls.
            ExprKind::Call {
                function,
                arguments,
            } if matches!(function.name, "AVERAGE" | "YEAR_NUMBER") => {
                list(arguments, ",", out);
            }
            ExprKind::Call {
                function,
                arguments,
            } => {
                out.push_str(&function.name.to_ascii_lowercase());
                out.push('(');
                list(arguments, ",", out);
                out.push(')');
            }
            ExprKind::Stored {
                function,
                arguments,
            } => {
                out.push_str(&function.name());
                out.push('(');
                list(arguments, ",", out);
                out.push(')');
            }
            ExprKind::Row(items) => {
                out.push('(');
                list(items, ",", out);
                out.push(')');
            }
            ExprKind::Subquery { number, kind } => {
                let number = number + 2;
                match kind {
                    SubqueryKind::Scalar { .. } => out.push_str(&format!("(select #{number})")),
                    SubqueryKind::Exists { negated } => out.push_str(&format!(
                        "{}exists(select #{number})",
                        if *negated { "not " } else { "" }
                    )),
                    SubqueryKind::Quantified {
                        operand, op, all, ..
                    } => {
                        out.push_str("<in_optimizer>(");
                        operand.write_sql(names, out);
                        let word = match (op, all) {
                            (Comparison::Eq, false) => "in".to_string(),
                            (Comparison::Ne, true) => "not in".to_string(),
                            (op, true) => format!("{} all", op.sign()),
                            (op, false) => format!("{} any", op.sign()),
                        };
                        out.push_str(&format!(" {word} (select #{number}))"));
                    }
                }
            }
            ExprKind::Aggregate(number) => out.push_str(&format!("aggregate #{number}")),
        }
    }
}

fn cast_name(ty: &DataType) -> String {
    match ty {
        DataType::Int { unsigned: true, .. } => "unsigned".into(),
        DataType::Int { .. } => "signed".into(),
        DataType::Char { length, .. } | DataType::Varchar { length, .. } => {
            format!("char({length})")
        }
        DataType::Text { .. } => "char".into(),
        DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_) => "binary".into(),
        other => other.sql_name(),
    }
}

fn write_value(value: &Value, ty: &DataType, out: &mut String) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
            out.push_str(&porpoise_types::convert::to_text(value, ty))
        }
        Value::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => {
            out.push_str("0x");
            for byte in bytes {
                out.push_str(&format!("{byte:02X}"));
            }
        }
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) => {
            let word = match value {
                Value::Date(_) => "DATE",
                Value::Time(_) => "TIME",
                _ => "TIMESTAMP",
            };
            out.push_str(&format!(
                "{word}'{}'",
                porpoise_types::convert::to_text(value, ty)
            ));
        }
        other => {
            out.push('\'');
            out.push_str(&porpoise_types::convert::to_text(other, ty).replace('\'', "''"));
            out.push('\'');
        }
    }
}
