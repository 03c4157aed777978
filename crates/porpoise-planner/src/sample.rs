//! Samples of tables: how many rows pass a condition, found by trying it on some.
//!
//! A sample is a few hundred rows, read at places spread over the table's keys when a plan first
//! wants them, and kept beside the table's definition. Conditions on one table are tried on it all
//! together, so that columns that depend on each other don't count twice. The values of literals
//! count: a plan is made for those of the statement that is planned first.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use porpoise_catalog::{Index, IndexPart, Table, TableSample};
use porpoise_core::error::Result;
use porpoise_expr::compare::{compare, comparison};
use porpoise_expr::value_list::{self, Found, SORTED_MIN, ValueList};
use porpoise_expr::{Comparison, Domain, Expr, ExprKind, SlotId};
use porpoise_storage::{Direction, Snapshot, Store};
use porpoise_types::{DataType, Value};
use smallvec::SmallVec;

use crate::known::KnownValues;
use crate::places;

/// Tables of no more rows are read as a whole.
const ROWS_MAX: usize = 512;
/// How many expressions are evaluated to try conditions, about: some milliseconds' worth.
const TRIED_MAX: usize = 1 << 17;
/// On how many of a sample's rows conditions are tried, however long they are.
const TRIED_ROWS_MIN: usize = 32;
/// At how many places larger ones are read.
const PLACES: usize = 64;
/// A sample is taken again when the number of rows has changed by this factor.
const CHANGE_MAX: f64 = 1.3;

/// The table's sample, taken now if there is none that is good enough. `None` for an empty table,
/// and where its rows can't be read.
pub fn of_table(store: &Store, table: &Table) -> Option<Arc<TableSample>> {
    let rows = store.approximate_len(table.space);
    if let Some(sample) = &*table.state.sample.load() {
        let (less, more) = (rows.min(sample.table_rows), rows.max(sample.table_rows));
        let layout = sample.layout.as_ref();
        let is_of_version = layout.is_some_and(|layout| Arc::ptr_eq(layout, &table.layout));
        if is_of_version && more as f64 <= less as f64 * CHANGE_MAX + 1.0 {
            return (sample.rows > 0).then(|| sample.clone());
        }
    }
    let mut sample = TableSample {
        table_rows: rows,
        layout: Some(table.layout.clone()),
        columns: table.columns.iter().map(|_| Vec::new()).collect(),
        ..TableSample::default()
    };
    take(&store.snapshot(), table, rows, &mut sample).ok()?;
    let sample = Arc::new(sample);
    table.state.sample.store(Some(sample.clone()));
    (sample.rows > 0).then_some(sample)
}

fn take(snapshot: &Snapshot, table: &Table, rows: u64, sample: &mut TableSample) -> Result<()> {
    if rows <= ROWS_MAX as u64 {
        let all = (Bound::Unbounded, Bound::Unbounded);
        return read(snapshot, table, all, ROWS_MAX, sample);
    }
    let places = places::spread(snapshot, table.space, PLACES)?;
    let at_place = ROWS_MAX / places.len().max(1);
    for (n, place) in places.iter().enumerate() {
        let end = places
            .get(n + 1)
            .map_or(Bound::Unbounded, |next| Bound::Excluded(&next[..]));
        let bounds = (Bound::Included(&place[..]), end);
        read(snapshot, table, bounds, at_place, sample)?;
    }
    Ok(())
}

/// Adds up to `count` rows.
fn read(
    snapshot: &Snapshot,
    table: &Table,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    count: usize,
    sample: &mut TableSample,
) -> Result<()> {
    let mut cursor = snapshot.range(table.space, bounds, Direction::Forward)?;
    for _ in 0..count {
        let Some((_, row)) = cursor.next()? else {
            break;
        };
        let columns = sample.columns.iter_mut().zip(&table.columns).enumerate();
        for (number, (values, column)) in columns {
            if is_sampled(&column.ty) {
                values.push(table.layout.get(row, number));
            }
        }
        sample.rows += 1;
    }
    Ok(())
}

fn is_sampled(ty: &DataType) -> bool {
    !matches!(
        ty,
        DataType::Text { .. } | DataType::Blob(_) | DataType::Json
    )
}

/// About how many different values some columns of the table have together. `None` where one of
/// them isn't sampled.
pub fn distinct_values(sample: &TableSample, table: &Table, columns: &[usize]) -> Option<f64> {
    let has_values = |column: &usize| {
        let values = sample.columns.get(*column);
        values.is_some_and(|values| !values.is_empty())
    };
    if !columns.iter().all(has_values) {
        return None;
    }
    if let Some(known) = sample.distinct.lock().get(columns) {
        return Some(*known);
    }
    let distinct = count_distinct(sample, table, columns);
    sample.distinct.lock().insert(columns.into(), distinct);
    Some(distinct)
}

/// About how many different values the first `parts` parts of an index have: as they were counted
/// last, or as the sample has it. `None` where neither tells.
pub fn distinct_of_index<'s>(
    table: &Table,
    index: &Index,
    parts: usize,
    rows: f64,
    sample: impl FnOnce() -> Option<&'s TableSample>,
) -> Option<f64> {
    let has_null = |part: &IndexPart| table.columns[part.column].nullable;
    if index.is_unique() && parts == index.parts.len() && !index.parts.iter().any(has_null) {
        return Some(rows);
    }
    if let Some(counted) = table.state.statistics.load().distinct(index, parts, rows) {
        return Some(counted.max(1.0));
    }
    let columns: SmallVec<[usize; 4]> = index.parts[..parts].iter().map(|p| p.column).collect();
    Some(distinct_values(sample()?, table, &columns)?.min(rows))
}

fn count_distinct(sample: &TableSample, table: &Table, columns: &[usize]) -> f64 {
    let order = |a: &usize, b: &usize| {
        let by_column = columns.iter().map(|&column| {
            let values = &sample.columns[column];
            match (&values[*a], &values[*b]) {
                (Value::Null, Value::Null) => Ordering::Equal,
                (Value::Null, _) => Ordering::Less,
                (_, Value::Null) => Ordering::Greater,
                (a, b) => compare(a, b, Domain::of(&table.columns[column].ty)),
            }
        });
        by_column.fold(Ordering::Equal, Ordering::then)
    };
    let is_known = |row: &usize| columns.len() > 1 || !sample.columns[columns[0]][*row].is_null();
    let mut sorted: Vec<usize> = (0..sample.rows).filter(is_known).collect();
    sorted.sort_unstable_by(order);
    let (mut distinct, mut single) = (0.0, 0.0);
    for group in sorted.chunk_by(|a, b| order(a, b).is_eq()) {
        distinct += 1.0;
        single += f64::from(u8::from(group.len() == 1));
    }
    // The estimator Duj1 of Haas and Stokes (1998).
    let read = sorted.len() as f64;
    let part = read / (sample.table_rows as f64).max(read);
    (distinct / (1.0 - (1.0 - part) * single / read.max(1.0)).max(part)).max(1.0)
}

/// Conditions that were tried on a sample.
#[derive(Clone, Debug)]
pub struct Tried {
    /// How many of its rows pass all conditions that could be tried.
    pub passed: usize,
    /// By condition: whether it could be.
    pub tried: SmallVec<[bool; 8]>,
}

/// Trials by where the conditions lie, as long as they lie there.
pub type Trials = RefCell<HashMap<SmallVec<[usize; 8]>, Tried>>;

/// Tries conditions on the rows of one table, which are in `slot`, unless that was done.
pub fn try_conditions(
    known: KnownValues<'_>,
    sample: &TableSample,
    slot: SlotId,
    conditions: &[&Expr],
    trials: &Trials,
) -> Tried {
    let key = conditions
        .iter()
        .map(|c| std::ptr::from_ref::<Expr>(c) as usize);
    let key: SmallVec<[usize; 8]> = key.collect();
    if let Some(known) = trials.borrow().get(&key) {
        return known.clone();
    }
    let tried = try_anew(known, sample, slot, conditions);
    trials.borrow_mut().insert(key, tried.clone());
    tried
}

fn try_anew(
    known: KnownValues<'_>,
    sample: &TableSample,
    slot: SlotId,
    conditions: &[&Expr],
) -> Tried {
    let lists = RefCell::default();
    let trial = |row| Trial {
        known,
        sample,
        slot,
        row,
        lists: &lists,
    };
    let can_be = |condition: &&Expr| trial(0).truth(condition).is_some();
    let tried: SmallVec<[bool; 8]> = conditions.iter().map(can_be).collect();
    let testable = conditions.iter().zip(&tried).filter(|(_, tried)| **tried);
    let testable: SmallVec<[&Expr; 8]> = testable.map(|(condition, _)| *condition).collect();
    if testable.is_empty() {
        let passed = sample.rows;
        return Tried { passed, tried };
    }
    let passes = |row: &usize| {
        let trial = trial(*row);
        testable.iter().all(|c| trial.truth(c) == Some(Some(true)))
    };
    // Long conditions are tried on fewer rows, which stand for the others.
    let weight: usize = testable.iter().map(|condition| weight(condition)).sum();
    let rows = (TRIED_MAX / weight.max(1)).max(TRIED_ROWS_MIN);
    let stride = sample.rows.div_ceil(rows).max(1);
    let passed = (0..sample.rows).step_by(stride).filter(passes).count();
    Tried {
        passed: (passed * stride).min(sample.rows),
        tried,
    }
}

/// How many expressions are evaluated to try a condition on a row, about.
fn weight(condition: &Expr) -> usize {
    let mut sum = 1;
    match &condition.kind {
        // A list is sorted once.
        ExprKind::InList { operand, .. } => sum += 8 + weight(operand),
        _ => condition.for_each_child(&mut |child| sum += weight(child)),
    }
    sum
}

/// One row of a sample on which conditions are tried.
struct Trial<'a> {
    known: KnownValues<'a>,
    sample: &'a TableSample,
    slot: SlotId,
    row: usize,
    lists: &'a SortedLists,
}

/// Lists of constants by where they lie; `None` where not all can be told.
type SortedLists = RefCell<Vec<(usize, Option<Rc<ValueList>>)>>;

impl Trial<'_> {
    /// Whether a condition is true, false or unknown; `None` where that can't be told here.
    fn truth(&self, condition: &Expr) -> Option<Option<bool>> {
        let compared = |op, left: &Expr, right: &Expr, domain| {
            let (left, right) = (self.value(left)?, self.value(right)?);
            Some(comparison(op, &left, &right, domain))
        };
        match &condition.kind {
            ExprKind::Compare {
                op, left, right, ..
            } if let (ExprKind::Row(left), ExprKind::Row(right)) = (&left.kind, &right.kind) => {
                self.compare_rows(*op, left, right)
            }
            ExprKind::Compare {
                op,
                domain,
                left,
                right,
            } => compared(*op, left, right, *domain),
            ExprKind::Between {
                operand,
                low,
                high,
                domain,
                negated,
            } => {
                let low = compared(Comparison::Ge, operand, low, *domain)?;
                let high = compared(Comparison::Le, operand, high, *domain)?;
                Some(both(low, high).map(|is| is != *negated))
            }
            ExprKind::InList {
                operand,
                list,
                domain,
                negated,
            } => {
                let is_in = self.is_in(operand, list, *domain)?;
                Some(is_in.map(|is| is != *negated))
            }
            ExprKind::IsNull { operand, negated } => {
                Some(Some(self.value(operand)?.is_null() != *negated))
            }
            ExprKind::Like {
                operand,
                pattern,
                escape,
                collation,
                negated,
            } => {
                let (operand, pattern) = (self.value(operand)?, self.value(pattern)?);
                let matches = operand.as_bytes().zip(pattern.as_bytes());
                Some(matches.map(|(text, pattern)| {
                    porpoise_types::like(text, pattern, *escape, *collation) != *negated
                }))
            }
            ExprKind::Not(operand) => Some(self.truth(operand)?.map(|is| !is)),
            ExprKind::And(parts) => parts
                .iter()
                .try_fold(Some(true), |held, part| Some(both(held, self.truth(part)?))),
            ExprKind::Or(parts) => parts.iter().try_fold(Some(false), |held, part| {
                Some(either(held, self.truth(part)?))
            }),
            _ => None,
        }
    }

    /// Whether a value, or a row of values, is in a list.
    fn is_in(&self, operand: &Expr, list: &[Expr], domain: Domain) -> Option<Option<bool>> {
        let operands = value_list::elements(operand);
        let domains: SmallVec<[Domain; 4]> = match &operand.kind {
            ExprKind::Row(_) => operands.iter().map(|part| Domain::of(&part.ty)).collect(),
            _ => SmallVec::from_elem(domain, 1),
        };
        if list.len() >= SORTED_MIN {
            let row: Option<SmallVec<[Value; 4]>> =
                operands.iter().map(|x| self.owned(x)).collect();
            let list = self.sorted_list(list, &domains)?;
            return Some(match list.find(&row?, &domains) {
                Found::Yes => Some(true),
                Found::No => Some(false),
                Found::Unknown => None,
            });
        }
        let mut is_in = Some(false);
        for item in list {
            let mut is_equal = Some(true);
            let pairs = operands.iter().zip(value_list::elements(item));
            for ((operand, item), domain) in pairs.zip(&domains) {
                let (operand, item) = (self.value(operand)?, self.value(item)?);
                is_equal = both(
                    is_equal,
                    comparison(Comparison::Eq, &operand, &item, *domain),
                );
            }
            is_in = either(is_in, is_equal);
        }
        Some(is_in)
    }

    /// A list of constants, sorted for the first row and kept for the others.
    fn sorted_list(&self, list: &[Expr], domains: &[Domain]) -> Option<Rc<ValueList>> {
        let number = list.as_ptr() as usize;
        if let Some((_, known)) = self.lists.borrow().iter().find(|(of, _)| *of == number) {
            return known.clone();
        }
        let row = |item| -> Option<Box<[Value]>> {
            let elements = value_list::elements(item).iter();
            let value = |element: &Expr| match element.is_constant() {
                true => self.owned(element),
                false => None,
            };
            elements.map(value).collect()
        };
        let rows: Option<Vec<Box<[Value]>>> = list.iter().map(row).collect();
        let sorted = rows.map(|rows| Rc::new(ValueList::new(rows, domains)));
        self.lists.borrow_mut().push((number, sorted.clone()));
        sorted
    }

    fn owned(&self, expr: &Expr) -> Option<Value> {
        self.value(expr).map(Cow::into_owned)
    }

    /// Rows are ordered by the first elements that differ.
    fn compare_rows(&self, op: Comparison, left: &[Expr], right: &[Expr]) -> Option<Option<bool>> {
        let strictly = match op {
            Comparison::Lt | Comparison::Le => Comparison::Lt,
            Comparison::Gt | Comparison::Ge => Comparison::Gt,
            Comparison::Eq | Comparison::Ne | Comparison::NullSafeEq => return None,
        };
        let (mut is, mut equal) = (Some(false), Some(true));
        for (left, right) in left.iter().zip(right) {
            let domain = Domain::of(&left.ty);
            let (left, right) = (self.value(left)?, self.value(right)?);
            let told = |op| comparison(op, &left, &right, domain);
            is = either(is, both(equal, told(strictly)));
            equal = both(equal, told(Comparison::Eq));
        }
        Some(match op {
            Comparison::Le | Comparison::Ge => either(is, equal),
            _ => is,
        })
    }

    /// The value of a column, of what is known, or of a cast of either.
    fn value<'e>(&'e self, expr: &'e Expr) -> Option<Cow<'e, Value>> {
        match &expr.kind {
            ExprKind::Column { slot, column, .. } if *slot == self.slot => {
                let values = self.sample.columns.get(*column as usize)?;
                values.get(self.row).map(Cow::Borrowed)
            }
            ExprKind::Cast { operand, kind } => {
                let value = self.value(operand)?;
                self.known.cast(value, operand, expr, *kind)
            }
            _ => self.known.of(expr),
        }
    }
}

/// AND of three-valued truths.
fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// OR of three-valued truths.
fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    both(a.map(|is| !is), b.map(|is| !is)).map(|is| !is)
}
