//! Queries inside expressions.
//!
//! An uncorrelated subquery runs once an execution and its result is kept; a correlated one runs
//! for each row, reading the outer query's slots in the same frame.

use std::sync::Arc;

use hashbrown::HashSet;
use porpoise_core::error::{Error, Result};
use porpoise_core::memory::Charge;
use porpoise_expr::compare;
use porpoise_expr::key;
use porpoise_expr::{Comparison, Domain, EvalContext, Expr, ExprKind, SubqueryKind};
use porpoise_planner::plan::Subplan;
use porpoise_types::{KeyBuf, Value};

use crate::eval::Evaluate;
use crate::{Exec, operator};

/// What an uncorrelated subquery gave.
pub(super) enum SubplanResult {
    Value(Value),
    Exists(bool),
    Rows {
        rows: Vec<Vec<Value>>,
        /// Encoded single values, for `=`: a look-up instead of a search.
        set: HashSet<Box<[u8]>>,
        has_null: bool,
        /// For the rows and the set.
        _charge: Charge,
    },
}

/// What a row takes beside its values, and an encoded value beside its bytes.
const ROW_BYTES: usize = 80;

impl Exec<'_> {
    /// The value of the statement's n-th subquery.
    pub(super) fn subquery(&mut self, number: usize, kind: &SubqueryKind) -> Result<Value> {
        let result = match self.subquery_results.get(&number) {
            Some(result) => result.clone(),
            None => {
                let plan = self.subplans.get(number).and_then(Option::as_ref);
                let subplan =
                    plan.ok_or_else(|| Error::engine_error("a subquery that has no plan"))?;
                let result = Arc::new(self.execute_subplan(subplan, kind)?);
                if !subplan.correlated {
                    self.subquery_results.insert(number, result.clone());
                }
                result
            }
        };
        match (&*result, kind) {
            (SubplanResult::Value(value), _) => Ok(value.clone()),
            (SubplanResult::Exists(found), SubqueryKind::Exists { negated }) => {
                Ok(truth(found != negated))
            }
            (
                SubplanResult::Rows {
                    rows,
                    set,
                    has_null,
                    ..
                },
                SubqueryKind::Quantified {
                    operand,
                    op,
                    all,
                    domains,
                },
            ) => self.quantified(rows, set, *has_null, operand, *op, *all, domains),
            _ => Err(Error::engine_error("a subquery's result of another kind")),
        }
    }

    fn execute_subplan(&mut self, subplan: &Subplan, kind: &SubqueryKind) -> Result<SubplanResult> {
        let mut input = operator::build(&subplan.node);
        input.open(self)?;
        match kind {
            SubqueryKind::Scalar => {
                if !input.next(self)? {
                    return Ok(SubplanResult::Value(Value::Null));
                }
                let value = match subplan.output.first() {
                    Some(output) => output.eval(self)?,
                    None => Value::Null,
                };
                if input.next(self)? {
                    return Err(Error::subquery_returns_many_rows());
                }
                Ok(SubplanResult::Value(value))
            }
            SubqueryKind::Exists { .. } => Ok(SubplanResult::Exists(input.next(self)?)),
            SubqueryKind::Quantified { .. } => {
                let (mut rows, mut set, mut has_null) = (Vec::new(), HashSet::new(), false);
                let mut charge = Charge::default();
                while input.next(self)? {
                    let mut row = Vec::with_capacity(subplan.output.len());
                    for output in &subplan.output {
                        row.push(output.eval(self)?);
                    }
                    if let ([value], [output]) = (&row[..], &subplan.output[..]) {
                        has_null |= value.is_null();
                        let mut key = KeyBuf::new();
                        key::encode_values(std::iter::once((value, &output.ty, false)), &mut key);
                        set.insert(key.as_slice().into());
                    }
                    let values = row
                        .iter()
                        .map(|value| size_of_val(value) + value.heap_bytes());
                    let bytes = values.sum::<usize>() * 2 + ROW_BYTES;
                    charge.add(&self.session.memory, bytes)?;
                    rows.push(row);
                }
                Ok(SubplanResult::Rows {
                    rows,
                    set,
                    has_null,
                    _charge: charge,
                })
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn quantified(
        &mut self,
        rows: &[Vec<Value>],
        set: &HashSet<Box<[u8]>>,
        has_null: bool,
        operand: &Expr,
        op: Comparison,
        all: bool,
        domains: &[Domain],
    ) -> Result<Value> {
        if rows.is_empty() {
            return Ok(truth(all));
        }
        let operands: Vec<&Expr> = match &operand.kind {
            ExprKind::Row(elements) => elements.iter().collect(),
            _ => vec![operand],
        };
        let mut left = Vec::with_capacity(operands.len());
        for operand in &operands {
            left.push(operand.eval(self)?);
        }
        // `= ANY` and `<> ALL` of one column: equal values have equal keys.
        if let ([value], true) = (
            &left[..],
            matches!((op, all), (Comparison::Eq, false) | (Comparison::Ne, true)),
        ) {
            if value.is_null() {
                return Ok(Value::Null);
            }
            let mut key = KeyBuf::new();
            key::encode_values(std::iter::once((value, &operands[0].ty, false)), &mut key);
            return Ok(match (set.contains(key.as_slice()), has_null) {
                (true, _) => truth(!all),
                (false, true) => Value::Null,
                (false, false) => truth(all),
            });
        }
        let mut unknown = false;
        for row in rows {
            self.check_interrupt()?;
            match row_comparison(&left, row, op, domains) {
                None => unknown = true,
                Some(is) if is != all => return Ok(truth(!all)),
                Some(_) => {}
            }
        }
        Ok(if unknown { Value::Null } else { truth(all) })
    }
}

/// Compares element by element; `None` where a NULL leaves it open.
fn row_comparison(
    left: &[Value],
    right: &[Value],
    op: Comparison,
    domains: &[Domain],
) -> Option<bool> {
    if let ([left], [right], [domain, ..]) = (left, right, domains) {
        return compare::comparison(op, left, right, *domain);
    }
    let mut unknown = false;
    for ((left, right), domain) in left.iter().zip(right).zip(domains) {
        match compare::comparison(Comparison::Eq, left, right, *domain) {
            Some(true) => {}
            Some(false) => return Some(op == Comparison::Ne),
            None => unknown = true,
        }
    }
    if unknown {
        None
    } else {
        Some(op != Comparison::Ne)
    }
}

fn truth(is: bool) -> Value {
    if is { Value::TRUE } else { Value::FALSE }
}
