//! Queries inside expressions.
//!
//! An uncorrelated subquery runs once an execution and its result is kept; a correlated one runs
//! for each row, reading the outer query's slots in the same frame. Its results are kept by the
//! values of the outer columns that it reads, as long as they are found again often enough
//! ([`ResultCache`]).

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::memory::{Charge, ITEMS_MANY, MemoryAccount, reclaim};
use porpoise_expr::compare;
use porpoise_expr::key;
use porpoise_expr::{Comparison, Domain, EvalContext, Expr, ExprKind, SubqueryKind};
use porpoise_planner::plan::Subplan;
use porpoise_types::{KeyBuf, Value};
use smallvec::SmallVec;

use crate::eval::Evaluate;
use crate::operator::{BoxedOperator, Operator};
use crate::{Exec, operator};

/// What an uncorrelated subquery gave.
enum SubplanResult {
    /// Its only row; NULLs where there is none.
    Row(SmallVec<[Value; 1]>),
    Exists(bool),
    Rows(Rows),
}

/// The rows that an operand is compared with.
#[derive(Default)]
struct Rows {
    /// How many there are.
    count: usize,
    /// For `=`: the rows without NULL, encoded, for a look-up instead of a search.
    set: HashSet<Box<[u8]>>,
    /// The rows that a look-up can't find: for `=` those with a NULL, and all where the operand
    /// may be a row with NULLs; else all.
    searched: Vec<Vec<Value>>,
    charge: Charge,
}

impl Drop for Rows {
    fn drop(&mut self) {
        if self.set.len() + self.searched.len() > ITEMS_MANY {
            let rows = (
                std::mem::take(&mut self.set),
                std::mem::take(&mut self.searched),
            );
            reclaim(rows);
        }
    }
}

/// What a row takes beside its values, and an encoded value beside its bytes.
const ROW_BYTES: usize = 80;

impl SubplanResult {
    /// About how many bytes it takes in a [`ResultCache`]; `None`: too many to be kept there.
    fn kept_bytes(&self) -> Option<usize> {
        /// Longer lists of rows are found again too rarely for what they take.
        const KEPT_ROWS_MAX: usize = 64;
        let of_value = |value: &Value| size_of::<Value>() + value.as_bytes().map_or(0, <[u8]>::len);
        match self {
            SubplanResult::Row(row) => Some(row.iter().map(of_value).sum()),
            SubplanResult::Exists(_) => Some(size_of::<SubplanResult>()),
            SubplanResult::Rows(rows) if rows.count <= KEPT_ROWS_MAX => {
                let searched = rows.searched.iter().flatten().map(of_value).sum::<usize>();
                let looked_up = rows.set.iter().map(|key| key.len() + size_of_val(key));
                Some(searched + looked_up.sum::<usize>() + size_of::<SubplanResult>())
            }
            SubplanResult::Rows(_) => None,
        }
    }
}

/// What an execution keeps of a subquery from one evaluation to the next.
#[derive(Default)]
pub(super) struct SubqueryState<'p> {
    /// An uncorrelated subquery's result, once it has run.
    result: Option<Arc<SubplanResult>>,
    /// A correlated one's results.
    cache: ResultCache,
    /// A correlated one's operators, while they don't run.
    operator: Option<BoxedOperator<'p>>,
}

/// Results of a correlated subquery, by the values of the outer columns that it reads.
#[derive(Default)]
struct ResultCache {
    results: HashMap<Box<[u8]>, Arc<SubplanResult>>,
    bytes: usize,
    looked_up: u32,
    found: u32,
    /// Too few were found again, or there is no memory for them.
    is_off: bool,
    charge: Charge,
}

impl ResultCache {
    /// Results are no longer added beyond this.
    const BYTES_MAX: usize = 4 << 20;
    /// After so many look-ups one in [`ResultCache::FOUND_MIN`] has to have found something.
    const TRIES: u32 = 1000;
    const FOUND_MIN: u32 = 8;
    /// Longer keys are not worth their hashing.
    const KEY_BYTES_MAX: usize = 512;

    fn find(&mut self, key: &[u8]) -> Option<Arc<SubplanResult>> {
        self.looked_up += 1;
        let found = self.results.get(key).cloned();
        self.found += u32::from(found.is_some());
        if self.looked_up >= Self::TRIES {
            if self.found < self.looked_up / Self::FOUND_MIN {
                self.turn_off();
            } else {
                (self.looked_up, self.found) = (0, 0);
            }
        }
        found
    }

    /// Keeps a result, where there is memory for it: what can be computed again doesn't end a
    /// statement.
    fn keep(&mut self, account: &Arc<MemoryAccount>, key: Vec<u8>, result: &Arc<SubplanResult>) {
        let Some(bytes) = result.kept_bytes() else {
            return;
        };
        let bytes = bytes + key.len();
        if self.is_off || self.bytes + bytes > Self::BYTES_MAX {
            return;
        }
        if self.charge.add(account, bytes + ROW_BYTES).is_err() {
            return self.turn_off();
        }
        self.bytes += bytes;
        self.results.insert(key.into_boxed_slice(), result.clone());
    }

    fn turn_off(&mut self) {
        *self = ResultCache {
            is_off: true,
            ..ResultCache::default()
        };
    }
}

impl<'a> Exec<'a> {
    /// The value of the statement's n-th subquery.
    pub(super) fn subquery(&mut self, number: usize, kind: &SubqueryKind) -> Result<Value> {
        let result = self.subplan_result(number, kind)?;
        match (&*result, kind) {
            (SubplanResult::Row(row), SubqueryKind::Scalar { column }) => {
                Ok(row.get(*column).cloned().unwrap_or(Value::Null))
            }
            (SubplanResult::Exists(found), SubqueryKind::Exists { negated }) => {
                Ok(truth(found != negated))
            }
            (SubplanResult::Rows(rows), SubqueryKind::Quantified { .. }) => {
                self.quantified(rows, kind)
            }
            _ => Err(Error::engine_error("a subquery's result of another kind")),
        }
    }

    fn subplan_result(&mut self, number: usize, kind: &SubqueryKind) -> Result<Arc<SubplanResult>> {
        let subplans: &'a [Option<Subplan>] = self.subplans;
        let kept = &mut self.kept().subqueries;
        if kept.is_empty() {
            kept.resize_with(subplans.len(), SubqueryState::default);
        }
        let subplan = subplans.get(number).and_then(Option::as_ref);
        let subplan = subplan.ok_or_else(|| Error::engine_error("a subquery that has no plan"))?;
        if !subplan.correlated {
            if let Some(result) = &self.kept_of(number).result {
                return Ok(result.clone());
            }
            let result = Arc::new(self.execute_subplan(subplan, kind)?);
            self.kept_of(number).result = Some(result.clone());
            return Ok(result);
        }
        let key = self.outer_values(subplan);
        if let Some(key) = &key
            && let Some(found) = self.kept_of(number).cache.find(key)
        {
            return Ok(found);
        }
        let result = Arc::new(self.execute_subplan(subplan, kind)?);
        if let Some(key) = key {
            let cache = &mut self.kept.get_or_insert_default().subqueries[number].cache;
            cache.keep(&self.session.memory, key, &result);
        }
        Ok(result)
    }

    fn kept_of(&mut self, number: usize) -> &mut SubqueryState<'a> {
        &mut self.kept().subqueries[number]
    }

    /// The stored bytes of the outer columns that a subquery reads. `None`: its results are not
    /// kept.
    fn outer_values(&mut self, subplan: &Subplan) -> Option<Vec<u8>> {
        let columns = subplan.outer_columns.as_ref()?;
        if self.kept_of(subplan.number).cache.is_off {
            return None;
        }
        let mut key = Vec::with_capacity(columns.len() * 12);
        for (slot, column) in columns.iter().filter_map(Expr::as_column) {
            let row = &self.frame.slots[slot.0 as usize];
            let layout = &self.layouts[slot.0 as usize];
            let stored = layout.layout.raw(&row.bytes, layout.position(column));
            match stored.filter(|_| !row.null) {
                None => key.push(0),
                Some(stored) => {
                    key.push(1);
                    key.extend_from_slice(&(stored.len() as u32).to_le_bytes());
                    key.extend_from_slice(stored);
                }
            }
        }
        (key.len() <= ResultCache::KEY_BYTES_MAX).then_some(key)
    }

    /// Runs a subquery. The operators of a correlated one are kept for the next time.
    fn execute_subplan(
        &mut self,
        subplan: &'a Subplan,
        kind: &SubqueryKind,
    ) -> Result<SubplanResult> {
        let kept = self.kept_of(subplan.number).operator.take();
        let mut input = kept.unwrap_or_else(|| operator::build(&subplan.node));
        let result = self.read_subplan(subplan, &mut *input, kind)?;
        if subplan.correlated {
            self.kept_of(subplan.number).operator = Some(input);
        }
        Ok(result)
    }

    fn read_subplan(
        &mut self,
        subplan: &Subplan,
        input: &mut dyn Operator,
        kind: &SubqueryKind,
    ) -> Result<SubplanResult> {
        input.open(self)?;
        match kind {
            SubqueryKind::Scalar { .. } => {
                let mut row = SmallVec::with_capacity(subplan.output.len());
                if !input.next(self)? {
                    row.resize(subplan.output.len(), Value::Null);
                    return Ok(SubplanResult::Row(row));
                }
                for output in &subplan.output {
                    row.push(output.eval(self)?);
                }
                if input.next(self)? {
                    let error = Error::subquery_returns_many_rows();
                    if !self.session.statement.ignores_errors {
                        return Err(error);
                    }
                    self.session.warn(Level::Warning, error.into_condition());
                    row.fill(Value::Null);
                }
                Ok(SubplanResult::Row(row))
            }
            SubqueryKind::Exists { .. } => Ok(SubplanResult::Exists(input.next(self)?)),
            SubqueryKind::Quantified { operand, .. } => {
                let may_be_null = operands_of(operand).iter().any(|part| part.nullable);
                let keeps_all = !is_looked_up(kind) || (may_be_null && subplan.output.len() > 1);
                let mut rows = Rows::default();
                while input.next(self)? {
                    self.add_row(&mut rows, subplan, keeps_all, is_looked_up(kind))?;
                }
                Ok(SubplanResult::Rows(rows))
            }
        }
    }

    /// Keeps a subquery's current row.
    fn add_row(
        &mut self,
        rows: &mut Rows,
        subplan: &Subplan,
        keeps_all: bool,
        is_looked_up: bool,
    ) -> Result<()> {
        rows.count += 1;
        let mut row = Vec::with_capacity(subplan.output.len());
        for output in &subplan.output {
            row.push(output.eval(self)?);
        }
        let has_null = row.iter().any(Value::is_null);
        if is_looked_up && !has_null {
            let mut key = KeyBuf::new();
            let columns = row.iter().zip(&subplan.output);
            key::encode_values(columns.map(|(value, c)| (value, &c.ty, false)), &mut key);
            let key = key.as_slice();
            if !rows.set.contains(key) {
                let bytes = key.len() + ROW_BYTES;
                rows.charge.add(&self.session.memory, bytes)?;
                rows.set.insert(key.into());
            }
        }
        // One row of a single NULL says what a thousand would.
        let is_told = has_null && row.len() == 1 && !rows.searched.is_empty();
        if keeps_all || (has_null && !is_told) {
            let values = row.iter().map(|v| size_of_val(v) + v.heap_bytes());
            let bytes = values.sum::<usize>() + ROW_BYTES;
            rows.charge.add(&self.session.memory, bytes)?;
            rows.searched.push(row);
        }
        Ok(())
    }

    /// The value of a comparison with ANY or ALL of a subquery's rows.
    fn quantified(&mut self, rows: &Rows, kind: &SubqueryKind) -> Result<Value> {
        let SubqueryKind::Quantified {
            operand,
            op,
            all,
            domains,
        } = kind
        else {
            return Err(Error::engine_error(
                "a subquery's rows without a comparison",
            ));
        };
        if rows.count == 0 {
            return Ok(truth(*all));
        }
        let operands = operands_of(operand);
        let mut left = Vec::with_capacity(operands.len());
        for operand in operands {
            left.push(operand.eval(self)?);
        }
        if is_looked_up(kind) {
            if left.iter().all(Value::is_null) {
                return Ok(Value::Null);
            }
            if !left.iter().any(Value::is_null) {
                let mut key = KeyBuf::new();
                let values = left.iter().zip(operands);
                key::encode_values(values.map(|(value, o)| (value, &o.ty, false)), &mut key);
                if rows.set.contains(key.as_slice()) {
                    return Ok(truth(!all));
                }
            }
        }
        let mut unknown = false;
        for row in &rows.searched {
            self.check_interrupt()?;
            match row_comparison(&left, row, *op, domains) {
                None => unknown = true,
                Some(is) if is != *all => return Ok(truth(!all)),
                Some(_) => {}
            }
        }
        Ok(if unknown { Value::Null } else { truth(*all) })
    }
}

/// Whether equal rows decide, which have equal keys: `= ANY` and `<> ALL`.
fn is_looked_up(kind: &SubqueryKind) -> bool {
    matches!(
        kind,
        SubqueryKind::Quantified {
            op: Comparison::Eq,
            all: false,
            ..
        } | SubqueryKind::Quantified {
            op: Comparison::Ne,
            all: true,
            ..
        }
    )
}

/// What a subquery's columns are compared with.
fn operands_of(operand: &Expr) -> &[Expr] {
    match &operand.kind {
        ExprKind::Row(elements) => elements,
        _ => std::slice::from_ref(operand),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps so many results; tells whether the last one is found again.
    fn kept(cache: &mut ResultCache, account: &Arc<MemoryAccount>, count: u32) -> bool {
        let result = Arc::new(SubplanResult::Row(smallvec::smallvec![Value::Int(1)]));
        let key = |number: u32| {
            [0; 100]
                .iter()
                .chain(&number.to_le_bytes())
                .copied()
                .collect()
        };
        for number in 0..count {
            cache.keep(account, key(number), &result);
        }
        let last: Vec<u8> = key(count - 1);
        cache.find(&last).is_some()
    }

    #[test]
    fn kept_results_are_charged_and_given_up_where_memory_ends() {
        let account = Arc::new(MemoryAccount::default());
        account.set_statement_limit(1 << 20);
        let mut cache = ResultCache::default();
        assert!(kept(&mut cache, &account, 2000));
        assert!(account.used() > 100_000, "{}", account.used());
        assert!(!kept(&mut cache, &account, 20_000));
        assert!(cache.is_off && cache.results.is_empty());
        assert_eq!(account.used(), 0);
    }
}
