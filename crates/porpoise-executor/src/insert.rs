//! INSERT and REPLACE.
//!
//! A row is built column by column: values given, defaults, AUTO_INCREMENT, then generated columns
//! and CHECKs over the whole row, each stored in the column's type. Then it is written, and if
//! another row has one of its keys, the statement's `OnDuplicate` says what happens.

use std::ops::Range;

use porpoise_catalog::IndexKind;
use porpoise_core::error::{Error, ErrorKind, Level, Result};
use porpoise_core::reply::Completion;
use porpoise_core::variables::SessionVars;
use porpoise_expr::EvalContext;
use porpoise_expr::{Expr, ExprKind};
use porpoise_planner::plan::{Insert, InsertSource, Node, OnDuplicate, RowTriggers};
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use porpoise_types::{DataType, Value};

use crate::column_value::{is_zero, number, store_given};
use crate::defaults::with_defaults;
use crate::eval::Evaluate;
use crate::row_check::{check_views, compute_generated, finish_row};
use crate::stored::fire;
use crate::write::{Written, duplicate_entry};
use crate::{Exec, change, load, operator};

/// What a statement that changes rows counts.
#[derive(Debug, Default)]
pub struct Counts {
    /// Rows affected, as MySQL counts them: 1 for an inserted row, 2 for one that was updated or
    /// replaced.
    pub affected: u64,
    /// Rows that the statement gave.
    pub records: u64,
    /// Rows that met a duplicate key, whatever became of them.
    pub duplicates: u64,
    /// The first AUTO_INCREMENT value that was generated for a row that is there now.
    pub generated: Option<u64>,
    /// The AUTO_INCREMENT column's value in the last row that was inserted with a given one, or was
    /// changed because it had the key.
    pub given: Option<u64>,
    /// Whether a value was generated, whatever became of its row.
    generates: bool,
    /// How many AUTO_INCREMENT values are taken at once: the statement's rows still to come, where
    /// they are known, so that their values follow one another though other sessions insert too.
    run_length: u64,
    /// What is left of the values taken.
    run: Range<u64>,
}

/// A row's value in the AUTO_INCREMENT column.
#[derive(Clone, Copy)]
enum AutoValue {
    Generated(u64),
    Given(u64),
}

impl Counts {
    /// The row is there now.
    fn row_inserted(&mut self, value: Option<AutoValue>) {
        self.affected += 1;
        match value {
            Some(AutoValue::Generated(value)) => {
                self.generated.get_or_insert(value);
            }
            Some(AutoValue::Given(value)) => self.given = Some(value),
            None => {}
        }
    }
}

/// What the OK packet tells: the first value that was generated, else LAST_INSERT_ID(expr)'s, else
/// that of the last row that was inserted or changed.
fn insert_id_of(session: &SessionVars, counts: &Counts) -> u64 {
    let by_function = session.statement.gave_insert_id;
    let by_function = by_function.then_some(session.last_insert_id);
    counts
        .generated
        .or(by_function)
        .or(counts.given)
        .unwrap_or(0)
}

/// Executes an INSERT, REPLACE or LOAD DATA in the transaction of `exec`.
pub fn insert(exec: &mut Exec<'_>, plan: &Insert) -> Result<Completion> {
    exec.session.statement.begin_change(plan.ignore);
    let mut counts = Counts {
        run_length: 1,
        ..Counts::default()
    };
    exec.begin_filling_empty(plan)?;
    let many = match &plan.source {
        InsertSource::Values(rows) => {
            exec.session.statement.refuses_null = rows.len() == 1 && !plan.ignore;
            insert_values(exec, plan, rows, &mut counts)?;
            rows.len() > 1
        }
        InsertSource::Load(load) => {
            load::load(exec, plan, load, &mut counts)?;
            true
        }
        InsertSource::Query { node, output } => {
            insert_query(exec, plan, node, output, &mut counts)?;
            true
        }
    };
    let skipped = exec.finish_filling(plan.ignore)?;
    counts.affected -= skipped;
    counts.duplicates += skipped;
    if let Some(first) = counts.generated {
        exec.session.last_insert_id = first;
    }
    if matches!(plan.source, InsertSource::Load(_)) {
        return Ok(load::completion(plan, &counts, exec.session.warnings.len()));
    }
    Ok(Completion {
        affected_rows: counts.affected,
        last_insert_id: insert_id_of(exec.session, &counts),
        warnings: 0,
        message: if many {
            format!(
                "Records: {}  Duplicates: {}  Warnings: {}",
                counts.records,
                counts.duplicates,
                exec.session.warnings.len()
            )
        } else {
            String::new()
        },
    })
}

/// Inserts the rows of VALUES. Where their expressions read the table itself, all are computed
/// before the first row is inserted.
fn insert_values(
    exec: &mut Exec<'_>,
    plan: &Insert,
    rows: &[Vec<Option<Expr>>],
    counts: &mut Counts,
) -> Result<()> {
    counts.run_length = rows.len() as u64;
    let mut ahead = Vec::new();
    if plan.reads_itself {
        ahead.reserve(rows.len());
        for row in rows {
            exec.check_interrupt()?;
            exec.row_number += 1;
            ahead.push(given_values(exec, plan, row)?);
        }
        exec.row_number = 0;
    }
    let mut ahead = ahead.into_iter();
    for row in rows {
        exec.check_interrupt()?;
        exec.row_number += 1;
        let mut given = match ahead.next() {
            Some(given) => given,
            None => given_values(exec, plan, row)?,
        };
        insert_row_of(exec, plan, &mut given, counts)?;
    }
    Ok(())
}

/// Inserts the rows of a query.
fn insert_query(
    exec: &mut Exec<'_>,
    plan: &Insert,
    node: &Node,
    output: &[Expr],
    counts: &mut Counts,
) -> Result<()> {
    let mut input = operator::build(node);
    input.open(exec)?;
    let mut given = Vec::with_capacity(output.len());
    while input.next(exec)? {
        exec.check_interrupt()?;
        exec.row_number += 1;
        given.clear();
        for (expr, &column) in output.iter().zip(&plan.columns) {
            let value = expr.eval(exec)?;
            given.push(store_given(exec, plan, column, value, &expr.ty)?);
        }
        insert_row_of(exec, plan, &mut given, counts)?;
    }
    Ok(())
}

/// A column's value, or nothing yet: its default, or the next AUTO_INCREMENT value.
pub(crate) type Given = Option<Value>;

/// What a row of VALUES gives.
fn given_values(exec: &mut Exec<'_>, plan: &Insert, row: &[Option<Expr>]) -> Result<Vec<Given>> {
    let mut given: Vec<Given> = Vec::with_capacity(row.len());
    for (position, expr) in row.iter().enumerate() {
        let column = plan.columns[position];
        given.push(match expr {
            None => None,
            Some(expr) => {
                if !matches!(
                    expr.kind,
                    ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Variable(_)
                ) {
                    // The expression may read columns given before it.
                    let values = with_defaults(exec, plan, &given, false)?;
                    exec.fill(plan.slot, &values)?;
                }
                let value = expr.eval(exec)?;
                store_given(exec, plan, column, value, &expr.ty)?
            }
        });
    }
    Ok(given)
}

/// Inserts one row of given values: fills in defaults, stores it, and does what the plan says about
/// a duplicate key.
pub fn insert_row_of(
    exec: &mut Exec<'_>,
    plan: &Insert,
    given: &mut [Given],
    counts: &mut Counts,
) -> Result<()> {
    let table = &plan.table;
    counts.records += 1;
    let mut values = with_defaults(exec, plan, given, true)?;
    let chosen = match &plan.triggers {
        Some(triggers) if triggers.has(TriggerTime::Before, TriggerEvent::Insert) => {
            before_insert(exec, plan, triggers, given, &mut values)?
        }
        _ => None,
    };
    let mut auto_value = None;
    if let Some(position) = table.auto_increment_column() {
        let at = plan.columns.iter().position(|&column| column == position);
        let given = at.and_then(|at| given[at].take());
        match chosen.or(given) {
            Some(value) => {
                if let Ok(value) = u64::try_from(number(&value)) {
                    auto_value = Some(AutoValue::Given(value));
                    exec.raise_auto_increment(table, value.saturating_add(1))?;
                    if value >= counts.run.start {
                        counts.run.start = exec.on_auto_increment_grid(value.saturating_add(1));
                    }
                }
            }
            None => {
                let demanded = std::mem::take(&mut exec.session.next_insert_id);
                if demanded != 0 {
                    exec.raise_auto_increment(table, demanded.saturating_add(1))?;
                    counts.run = demanded..demanded.saturating_add(1);
                } else if counts.run.is_empty() {
                    let ty = &table.columns[position].ty;
                    counts.run = exec.take_auto_increment(table, ty, counts.run_length)?;
                }
                let next = counts.run.start;
                counts.run.start = exec.on_auto_increment_grid(next.saturating_add(1));
                auto_value = Some(AutoValue::Generated(next));
                counts.generates = true;
                values[position] = match table.columns[position].ty {
                    DataType::Int { unsigned: true, .. } => Value::UInt(next),
                    DataType::Int { .. } => Value::Int(next as i64),
                    _ => Value::Double(next as f64),
                };
            }
        }
    }
    if counts.generates {
        counts.run_length = counts.run_length.saturating_sub(1).max(1);
    }
    let finished =
        finish_row(exec, table, plan.slot, &values).and_then(|()| check_views(exec, &plan.checks));
    match finished {
        Ok(()) => {}
        Err(error) if plan.ignore && is_row_error(&error) => {
            exec.session.warn(Level::Warning, error.into_condition());
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    let row = std::mem::take(&mut exec.frame.slots[plan.slot.0 as usize].bytes);
    let key = exec.new_key(table, &row)?;
    let savepoint = exec.savepoint_for(plan.ignore)?;
    let written = write(exec, plan, &key, &row, auto_value, counts);
    exec.frame.slots[plan.slot.0 as usize].bytes = row;
    match written {
        Err(error) if plan.ignore && is_row_error(&error) => {
            exec.undo_row(savepoint)?;
            exec.session.warn(Level::Warning, error.into_condition());
            Ok(())
        }
        written => written,
    }
}

/// Fires the triggers before a row is inserted: they see its generated columns, and no automatic
/// value yet. What they have given the AUTO_INCREMENT column, if they have.
fn before_insert(
    exec: &mut Exec<'_>,
    plan: &Insert,
    triggers: &RowTriggers,
    given: &[Given],
    values: &mut [Value],
) -> Result<Option<Value>> {
    let table = &plan.table;
    let automatic = table.auto_increment_column();
    let is_given = |column: usize| {
        let at = plan.columns.iter().position(|&known| known == column);
        at.is_some_and(|at| given.get(at).is_some_and(Option::is_some))
    };
    let unset = automatic.filter(|&column| !is_given(column));
    if let Some(column) = unset {
        values[column] = table.columns[column].ty.implicit_default();
    }
    exec.fill(plan.slot, values)?;
    compute_generated(exec, table, plan.slot, 0..table.columns.len())?;
    let row = exec.frame.slots[plan.slot.0 as usize].bytes.clone();
    let fired = (triggers, TriggerTime::Before, TriggerEvent::Insert);
    let mut chosen = None;
    for (column, value) in fire(exec, table, fired, Some(&row), None)? {
        if Some(column) == automatic {
            chosen = (!is_zero(&value) && !value.is_null()).then(|| value.clone());
        }
        values[column] = value;
    }
    let is_only_row = matches!(&plan.source, InsertSource::Values(rows) if rows.len() == 1);
    if is_only_row && !plan.ignore {
        let columns = table.columns.iter().enumerate();
        let mut void = columns.filter(|(number, column)| {
            !column.nullable && column.generated.is_none() && values[*number].is_null()
        });
        if let Some((_, column)) = void.find(|(number, _)| Some(*number) != automatic) {
            return Err(Error::column_cannot_be_null(&column.name));
        }
    }
    Ok(chosen)
}

/// Errors of a row that IGNORE turns into warnings.
pub fn is_row_error(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DuplicateEntry
            | ErrorKind::ColumnCannotBeNull
            | ErrorKind::CheckViolated
            | ErrorKind::ViewCheckFailed
            | ErrorKind::NoReferencedRow
            | ErrorKind::RowIsReferenced
    )
}

fn write(
    exec: &mut Exec<'_>,
    plan: &Insert,
    key: &[u8],
    row: &[u8],
    auto_value: Option<AutoValue>,
    counts: &mut Counts,
) -> Result<()> {
    let table = &plan.table;
    loop {
        let (index, other) = match exec.insert_related(table, key, row)? {
            Written::Done => {
                counts.row_inserted(auto_value);
                return inserted(exec, plan, row);
            }
            Written::Duplicate { index, primary_key } => (index, primary_key),
        };
        match &plan.duplicates {
            OnDuplicate::Error if plan.ignore => {
                let error = duplicate_entry(exec, table, index, row);
                exec.session.warn(Level::Warning, error.into_condition());
                counts.duplicates += 1;
                return Ok(());
            }
            OnDuplicate::Error => return Err(duplicate_entry(exec, table, index, row)),
            OnDuplicate::Replace => {
                let Some(existing) = exec.lock_and_read(table, &other)? else {
                    continue;
                };
                if existing == row && replaces_by_update(exec, plan, index) {
                    counts.row_inserted(auto_value);
                    return inserted(exec, plan, row);
                }
                counts.affected += 1;
                change::delete_row(exec, table, plan.triggers.as_deref(), &other, &existing)?;
                counts.duplicates += 1;
            }
            OnDuplicate::Update { new_slot, target } => {
                let Some(existing) = exec.lock_and_read(table, &other)? else {
                    continue;
                };
                exec.frame.slots[new_slot.0 as usize].set(row);
                let current = &mut exec.frame.slots[plan.slot.0 as usize];
                current.set(&existing);
                current.set_key(&other);
                counts.duplicates += 1;
                match change::update_current(exec, target)? {
                    change::Updated::Changed => {
                        counts.affected += 2;
                        counts.given = row_auto_value(exec, plan)?;
                    }
                    change::Updated::Same if exec.session.found_rows_flag => counts.affected += 1,
                    change::Updated::Same => {}
                    change::Updated::Duplicate(index) => {
                        let row = exec.frame.slots[plan.slot.0 as usize].bytes.clone();
                        let error = duplicate_entry(exec, table, index, &row);
                        if !plan.ignore {
                            return Err(error);
                        }
                        exec.session.warn(Level::Warning, error.into_condition());
                    }
                }
                return Ok(());
            }
        }
    }
}

/// The AUTO_INCREMENT column's value in the current row.
fn row_auto_value(exec: &mut Exec<'_>, plan: &Insert) -> Result<Option<u64>> {
    let Some(position) = plan.table.auto_increment_column() else {
        return Ok(None);
    };
    let ty = &plan.table.columns[position].ty;
    let value = exec.column(plan.slot, position, ty)?;
    Ok(u64::try_from(number(&value)).ok())
}

/// What follows a row that was inserted.
fn inserted(exec: &mut Exec<'_>, plan: &Insert, row: &[u8]) -> Result<()> {
    if let Some(triggers) = &plan.triggers {
        let fired = (&**triggers, TriggerTime::After, TriggerEvent::Insert);
        fire(exec, &plan.table, fired, Some(row), None)?;
    }
    Ok(())
}

/// Whether REPLACE may change the row that it found by this index, instead of deleting it: nobody
/// sees the difference but the client, whom an equal row is counted once. It can't collide by
/// another key behind the last one, and no trigger or foreign key waits for a deletion.
fn replaces_by_update(exec: &Exec<'_>, plan: &Insert, index: usize) -> bool {
    let mut later = plan.table.indexes.iter().skip(index + 1);
    let mut deletions = plan.triggers.iter().flat_map(|triggers| &triggers.list);
    later.all(|index| index.kind == IndexKind::NonUnique)
        && !deletions.any(|(_, event, _)| *event == TriggerEvent::Delete)
        && !is_parent(exec, plan)
}

/// Whether foreign keys refer to the table.
fn is_parent(exec: &Exec<'_>, plan: &Insert) -> bool {
    let mut nodes = exec.foreign_keys.iter().flat_map(|graph| &graph.nodes);
    nodes.any(|node| node.table.id == plan.table.id && !node.children.is_empty())
}

impl Exec<'_> {
    /// An error about data: a warning outside strict mode and under IGNORE.
    pub fn data_error(&mut self, error: Error) -> Result<()> {
        if self.is_lenient() {
            self.session.warn(Level::Warning, error.into_condition());
            return Ok(());
        }
        Err(error)
    }

    /// Whether values that do not fit are adjusted, with a warning: outside strict mode and under
    /// IGNORE.
    pub(crate) fn is_lenient(&self) -> bool {
        self.session.statement.ignores_errors || !self.session.sql_mode.strict()
    }

    /// Under IGNORE a row that is refused leaves nothing behind: where to go back to.
    pub fn savepoint_for(&mut self, ignore: bool) -> Result<Option<porpoise_storage::Savepoint>> {
        if !ignore || self.foreign_keys.is_none() {
            return Ok(None);
        }
        Ok(Some(self.transaction()?.savepoint()))
    }

    /// Takes back what a row wrote since the savepoint; nothing without one.
    pub fn undo_row(&mut self, savepoint: Option<porpoise_storage::Savepoint>) -> Result<()> {
        if let Some(savepoint) = savepoint {
            self.transaction()?.rollback_to(savepoint);
        }
        Ok(())
    }
}
