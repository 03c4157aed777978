//! Conditions on single columns, by the columns' histograms: how many rows pass.
//!
//! A sample of some hundred rows tells of a value that every tenth row has, but not whether a rare
//! one is in one row of a thousand or of a million. A histogram does.

use porpoise_catalog::{Statistics, Table};
use porpoise_expr::{Comparison, Domain, Expr, ExprKind, SlotId};
use porpoise_types::Value;

use crate::known::KnownValues;

/// A table whose columns' histograms are asked.
pub struct Histograms<'a> {
    pub known: KnownValues<'a>,
    pub table: &'a Table,
    /// Where the table's row is.
    pub slot: SlotId,
    pub statistics: &'a Statistics,
}

impl Histograms<'_> {
    /// The part of the table's rows that pass a condition. `None` where it isn't a comparison of a
    /// column that has a histogram with constants that are known.
    pub fn part(&self, condition: &Expr) -> Option<f64> {
        if self.statistics.histograms.is_empty() {
            return None;
        }
        let part = match &condition.kind {
            ExprKind::Compare {
                op,
                domain,
                left,
                right,
            } => match self.column(left) {
                Some(_) => self.compared(left, *op, right, *domain)?,
                None => self.compared(right, flipped(*op), left, *domain)?,
            },
            ExprKind::Between {
                operand,
                low,
                high,
                domain,
                negated,
            } => {
                let least = self.compared(operand, Comparison::Lt, low, *domain)?;
                let most = self.compared(operand, Comparison::Le, high, *domain)?;
                let between = (most - least).max(0.0);
                match negated {
                    true => self.not_null(operand)? - between,
                    false => between,
                }
            }
            ExprKind::InList {
                operand,
                list,
                domain,
                negated,
            } => {
                let equal = |item: &Expr| self.compared(operand, Comparison::Eq, item, *domain);
                let equal: Option<f64> = list.iter().map(equal).sum();
                match negated {
                    true => self.not_null(operand)? - equal?,
                    false => equal?,
                }
            }
            ExprKind::IsNull { operand, negated } => {
                let not_null = self.not_null(operand)?;
                match negated {
                    true => not_null,
                    false => 1.0 - not_null,
                }
            }
            _ => return None,
        };
        Some(part.clamp(0.0, 1.0))
    }

    /// The name of the column that an expression is, if it is one of the table's.
    fn column(&self, expr: &Expr) -> Option<&str> {
        let (slot, column) = expr.as_column()?;
        let is_own = slot == self.slot;
        let column = is_own.then(|| self.table.columns.get(column)).flatten()?;
        Some(&column.name)
    }

    fn compared(&self, column: &Expr, op: Comparison, with: &Expr, domain: Domain) -> Option<f64> {
        let histogram = self.statistics.histogram(self.column(column)?)?;
        if !compare_alike(domain, histogram.domain) {
            return None;
        }
        let value = self.known.of(with)?;
        if let Value::Null = *value {
            return Some(match op {
                Comparison::NullSafeEq => histogram.null_part,
                _ => 0.0,
            });
        }
        let (below, equal) = histogram.below_and_equal(&value);
        let not_null = 1.0 - histogram.null_part;
        Some(match op {
            Comparison::Eq | Comparison::NullSafeEq => equal,
            Comparison::Ne => not_null - equal,
            Comparison::Lt => below,
            Comparison::Le => below + equal,
            Comparison::Gt => not_null - below - equal,
            Comparison::Ge => not_null - below,
        })
    }

    fn not_null(&self, column: &Expr) -> Option<f64> {
        let histogram = self.statistics.histogram(self.column(column)?)?;
        Some(1.0 - histogram.null_part)
    }
}

/// Whether values in the order of one domain are in that of the other, too.
fn compare_alike(a: Domain, b: Domain) -> bool {
    let is_number = |domain| matches!(domain, Domain::Integer | Domain::Decimal | Domain::Double);
    let is_day = |domain| matches!(domain, Domain::Date | Domain::DateTime);
    a == b || (is_number(a) && is_number(b)) || (is_day(a) && is_day(b))
}

/// The operator with its sides exchanged.
fn flipped(op: Comparison) -> Comparison {
    match op {
        Comparison::Lt => Comparison::Gt,
        Comparison::Le => Comparison::Ge,
        Comparison::Gt => Comparison::Lt,
        Comparison::Ge => Comparison::Le,
        op => op,
    }
}
