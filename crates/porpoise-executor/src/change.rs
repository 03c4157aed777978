//! UPDATE and DELETE.
//!
//! The plan's scan locks each target row before it is yielded. A simple statement changes rows as it meets
//! them: its cursors read what was there when they were opened. With joins or ORDER BY the rows are
//! collected first, and each target row is changed once, however often it was joined.

use hashbrown::HashSet;
use porpoise_catalog::Table;
use porpoise_core::error::{Level, Result};
use porpoise_core::reply::Completion;
use porpoise_expr::EvalContext;
use porpoise_expr::Slot;
use porpoise_planner::plan::{Assignment, Delete, Update, ViewCheck};
use porpoise_types::{KeyBuf, Value};

use crate::eval::Evaluate;
use crate::row_buffer::RowBuffer;
use crate::write::{Written, duplicate_entry};
use crate::{Exec, insert, operator};

/// What became of a row under UPDATE.
#[derive(Debug, PartialEq)]
pub enum Updated {
    Changed,
    /// Every column has the value it had.
    Same,
    /// Another row has its new key in the index at this position; the refused row is in the slot.
    Duplicate(usize),
}

/// Applies assignments to the row in a slot (locked, its key beside it), left to right, each seeing those before.
pub fn update_current(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: Slot,
    assignments: &[Assignment],
    checks: &[ViewCheck],
) -> Result<Updated> {
    let old = exec.frame.slots[slot.0 as usize].bytes.clone();
    let mut values = columns_of(exec, table, slot);
    assign(exec, table, slot, assignments, &mut values)?;
    write_values(exec, table, slot, old, assignments, values, checks)
}

/// Every column of the row in a slot.
fn columns_of(exec: &Exec<'_>, table: &Table, slot: Slot) -> Vec<Value> {
    let columns = table.columns.iter().enumerate();
    columns
        .map(|(column, definition)| exec.column(slot, column, &definition.ty))
        .collect()
}

/// Assigns to the values of the row in a slot, which becomes what they are for the expressions that follow.
fn assign(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: Slot,
    assignments: &[Assignment],
    values: &mut [Value],
) -> Result<()> {
    for (number, assignment) in assignments.iter().enumerate() {
        let column = &table.columns[assignment.column];
        if number > 0 {
            exec.fill(slot, values)?;
        }
        values[assignment.column] = match &assignment.value {
            None => insert::default_value(exec, column, true)?,
            Some(expr) => {
                let value = expr.eval(exec)?;
                insert::store(exec, column, value, &expr.ty)?
            }
        };
    }
    Ok(())
}

/// What assignments give for the row in a slot, which stays as it is.
fn assigned(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: Slot,
    assignments: &[Assignment],
) -> Result<Vec<Value>> {
    let old = exec.frame.slots[slot.0 as usize].bytes.clone();
    let mut values = columns_of(exec, table, slot);
    assign(exec, table, slot, assignments, &mut values)?;
    exec.frame.slots[slot.0 as usize].bytes = old;
    let columns = assignments.iter().map(|assignment| assignment.column);
    Ok(columns.map(|column| values[column].clone()).collect())
}

/// Writes the new values of the row that a slot is of; `old` is the row as it was stored.
fn write_values(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: Slot,
    old: Vec<u8>,
    assignments: &[Assignment],
    mut values: Vec<Value>,
    checks: &[ViewCheck],
) -> Result<Updated> {
    let position = slot.0 as usize;
    let key = exec.frame.slots[position].key.clone();
    insert::finish_row(exec, table, slot, &mut values)?;
    if exec.frame.slots[position].bytes == old {
        return Ok(Updated::Same);
    }
    let mut stamped = false;
    for (number, column) in table.columns.iter().enumerate() {
        if column.on_update_now
            && assignments
                .iter()
                .all(|assignment| assignment.column != number)
        {
            values[number] = insert::now_for(exec, &column.ty);
            stamped = true;
        }
    }
    if stamped {
        insert::finish_row(exec, table, slot, &mut values)?;
    }
    insert::check_views(exec, checks)?;
    let new = std::mem::take(&mut exec.frame.slots[position].bytes);
    let written = exec.update_related(table, &key, &old, &new);
    exec.frame.slots[position].bytes = new;
    match written? {
        Written::Done => {
            if let Some(number) = table.auto_increment_column() {
                // What is generated next is greater than what UPDATE gave, as in InnoDB.
                if assignments
                    .iter()
                    .any(|assignment| assignment.column == number)
                    && let Ok(value) = u64::try_from(insert::number(&values[number]))
                {
                    exec.raise_auto_increment(table, value.saturating_add(1))?;
                }
            }
            Ok(Updated::Changed)
        }
        Written::Duplicate { index, .. } => Ok(Updated::Duplicate(index)),
    }
}

pub fn run_update(exec: &mut Exec<'_>, plan: &Update) -> Result<Completion> {
    exec.session.ignore_errors = plan.ignore;
    exec.session.changes_rows = true;
    let (mut matched, mut changed) = (0, 0);
    let mut seen: Vec<HashSet<KeyBuf>> = vec![HashSet::new(); plan.targets.len()];
    let once = plan.targets.len() > 1 || !plan.in_place;
    for_each_row(
        exec,
        &plan.node,
        plan.in_place,
        plan.limit.as_ref(),
        &mut |exec| {
            // Of several tables each reads the others as they were joined, not what was just assigned there.
            let mut ahead: Vec<Option<Vec<Value>>> = Vec::new();
            if plan.targets.len() > 1 {
                let row_number = exec.row_number;
                ahead.resize(plan.targets.len(), None);
                for (number, target) in plan.targets.iter().enumerate() {
                    let row = &exec.frame.slots[target.slot.0 as usize];
                    if row.null || seen[number].contains(&row.key) {
                        continue;
                    }
                    exec.row_number += 1;
                    let (table, slot) = (&target.table, target.slot);
                    ahead[number] = Some(assigned(exec, table, slot, &target.assignments)?);
                }
                exec.row_number = row_number;
            }
            for (number, target) in plan.targets.iter().enumerate() {
                let (table, slot) = (&target.table, target.slot);
                let row = &exec.frame.slots[slot.0 as usize];
                if row.null || (once && !seen[number].insert(row.key.clone())) {
                    continue;
                }
                if once && !reread(exec, table, slot)? {
                    continue;
                }
                matched += 1;
                exec.row_number += 1;
                let savepoint = exec.savepoint_for(plan.ignore)?;
                let (assignments, checks) = (&target.assignments, &target.checks);
                let updated = match ahead.get_mut(number).and_then(Option::take) {
                    None => update_current(exec, table, slot, assignments, checks),
                    Some(new) => {
                        let old = exec.frame.slots[slot.0 as usize].bytes.clone();
                        let mut values = columns_of(exec, table, slot);
                        for (assignment, value) in assignments.iter().zip(new) {
                            values[assignment.column] = value;
                        }
                        write_values(exec, table, slot, old, assignments, values, checks)
                    }
                };
                let updated = match updated {
                    Err(error) if plan.ignore && insert::is_row_error(&error) => {
                        exec.undo_row(savepoint)?;
                        exec.session.warn(Level::Warning, error.into_condition());
                        continue;
                    }
                    updated => updated?,
                };
                match updated {
                    Updated::Changed => changed += 1,
                    Updated::Same => {}
                    Updated::Duplicate(index) => {
                        let row = exec.frame.slots[target.slot.0 as usize].bytes.clone();
                        let error = duplicate_entry(exec, &target.table, index, &row);
                        if !plan.ignore {
                            return Err(error);
                        }
                        exec.session.warn(Level::Warning, error.into_condition());
                    }
                }
            }
            Ok(())
        },
    )?;
    let warnings = exec.session.warnings.len();
    Ok(Completion {
        affected_rows: if exec.session.found_rows_flag {
            matched
        } else {
            changed
        },
        last_insert_id: 0,
        warnings: 0,
        message: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
    })
}

pub fn run_delete(exec: &mut Exec<'_>, plan: &Delete) -> Result<Completion> {
    exec.session.ignore_errors = plan.ignore;
    exec.session.changes_rows = true;
    let mut deleted = 0;
    let mut seen: Vec<HashSet<KeyBuf>> = vec![HashSet::new(); plan.targets.len()];
    let once = plan.targets.len() > 1 || !plan.in_place;
    for_each_row(
        exec,
        &plan.node,
        plan.in_place,
        plan.limit.as_ref(),
        &mut |exec| {
            for (number, (table, slot)) in plan.targets.iter().enumerate() {
                let row = &exec.frame.slots[slot.0 as usize];
                if row.null || (once && !seen[number].insert(row.key.clone())) {
                    continue;
                }
                if once && !reread(exec, table, *slot)? {
                    continue;
                }
                let row = std::mem::take(&mut exec.frame.slots[slot.0 as usize]);
                let savepoint = exec.savepoint_for(plan.ignore)?;
                let outcome = exec.delete_related(table, &row.key, &row.bytes);
                exec.frame.slots[slot.0 as usize] = row;
                match outcome {
                    Err(error) if plan.ignore && insert::is_row_error(&error) => {
                        exec.undo_row(savepoint)?;
                        exec.session.warn(Level::Warning, error.into_condition());
                    }
                    outcome => {
                        outcome?;
                        deleted += 1;
                    }
                }
            }
            Ok(())
        },
    )?;
    Ok(Completion {
        affected_rows: deleted,
        ..Completion::default()
    })
}

/// A collected row may be stale: an earlier row's change may have come after it was read.
fn reread(exec: &mut Exec<'_>, table: &Table, slot: Slot) -> Result<bool> {
    let key = exec.frame.slots[slot.0 as usize].key.clone();
    match exec.lock_and_read(table, &key)? {
        Some(row) => {
            exec.frame.slots[slot.0 as usize].bytes = row;
            Ok(true)
        }
        None => Ok(false),
    }
}

fn for_each_row(
    exec: &mut Exec<'_>,
    node: &porpoise_planner::plan::Node,
    in_place: bool,
    limit: Option<&porpoise_expr::Expr>,
    each: &mut dyn FnMut(&mut Exec<'_>) -> Result<()>,
) -> Result<()> {
    let mut left = match limit {
        Some(limit) => operator::count_of(exec, limit)?,
        None => u64::MAX,
    };
    let mut input = operator::build(node);
    input.open(exec)?;
    if in_place {
        while left > 0 && input.next(exec)? {
            left -= 1;
            each(exec)?;
        }
        return Ok(());
    }
    let slots = porpoise_planner::plan::slots_of(node);
    let mut rows = RowBuffer::default();
    while left > 0 && input.next(exec)? {
        left -= 1;
        rows.push(&exec.frame, &slots);
    }
    for row in 0..rows.len() {
        exec.check_interrupt()?;
        rows.restore(row, &mut exec.frame, &slots);
        each(exec)?;
    }
    Ok(())
}
