//! UPDATE and DELETE.
//!
//! The plan's scan locks each target row before it is yielded. A simple statement changes rows as
//! it meets them: its cursors read what was there when they were opened. With joins or ORDER BY the
//! rows are collected first, and each target row is changed once, however often it was joined.

use hashbrown::HashSet;
use porpoise_catalog::Table;
use porpoise_core::error::{Level, Result};
use porpoise_core::reply::Completion;
use porpoise_expr::EvalContext;
use porpoise_expr::SlotId;
use porpoise_planner::plan::{Delete, RowTriggers, Update, UpdateTarget};
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use porpoise_types::{KeyBuf, Value};

use crate::Exec;
use crate::eval::Evaluate;
use crate::operator;
use crate::row_buffer::{RowBuffer, RowReader};
use crate::stored::fire;
use crate::write::RowUpdate;
use crate::write::Written;
use crate::write::duplicate_entry;
use crate::{column_value, defaults, insert, row_check};

/// What became of a row under UPDATE.
#[derive(Debug, PartialEq)]
pub enum Updated {
    Changed,
    /// Every column has the value it had.
    Same,
    /// Another row has its new key in the index at this position; the refused row is in the slot.
    Duplicate(usize),
}

/// Gives the row in the target's slot (locked, its key beside it) its new values, and writes it.
pub fn update_current(exec: &mut Exec<'_>, target: &UpdateTarget) -> Result<Updated> {
    let old = exec.frame.slots[target.slot.0 as usize].bytes.clone();
    assign(exec, target, |_, _| ())?;
    write_assigned(exec, target, &old)
}

/// Whether triggers are fired before a row is written.
fn fires_before(target: &UpdateTarget) -> bool {
    let has = |triggers: &RowTriggers| triggers.has(TriggerTime::Before, TriggerEvent::Update);
    target.triggers.as_deref().is_some_and(has)
}

/// Applies the assignments to the row in the slot, left to right: each reads what those before it
/// have made of it. `assigned` is called with each column's value.
fn assign(
    exec: &mut Exec<'_>,
    target: &UpdateTarget,
    mut assigned: impl FnMut(usize, Value),
) -> Result<()> {
    for assignment in &target.assignments {
        let column = &target.table.columns[assignment.column];
        let value = match &assignment.value {
            // It is computed from what the row will be.
            None if column.generated.is_some() => continue,
            None => defaults::default_value(exec, column, target.slot, true)?,
            Some(expr) => {
                let value = expr.eval(exec)?;
                match value.is_null() && fires_before(target) {
                    // A trigger may yet give it another.
                    true => value,
                    false => column_value::store(exec, column, value, &expr.ty)?,
                }
            }
        };
        exec.set_column(target.slot, assignment.column, &value);
        assigned(assignment.column, value);
    }
    Ok(())
}

/// What the assignments give for the row in the slot, which stays as it is.
fn assigned_values(exec: &mut Exec<'_>, target: &UpdateTarget) -> Result<Vec<(usize, Value)>> {
    let old = exec.frame.slots[target.slot.0 as usize].bytes.clone();
    let mut values = Vec::with_capacity(target.assignments.len());
    assign(exec, target, |column, value| values.push((column, value)))?;
    exec.frame.slots[target.slot.0 as usize].bytes = old;
    Ok(values)
}

/// Writes the row in the slot, whose columns were assigned, with what follows from them; `old` is
/// the row as it was stored.
fn write_assigned(exec: &mut Exec<'_>, target: &UpdateTarget, old: &[u8]) -> Result<Updated> {
    let UpdateTarget {
        table,
        slot,
        changes,
        checks,
        ..
    } = target;
    let slot = *slot;
    let position = slot.0 as usize;
    if let Some(triggers) = &target.triggers
        && fires_before(target)
    {
        before_update(exec, target, triggers, old)?;
    } else {
        compute_generated(exec, table, slot, &changes.generated)?;
        if is_same(exec, target, old) {
            after_update(exec, target, old)?;
            return Ok(Updated::Same);
        }
        stamp(exec, target)?;
    }
    if target.triggers.is_some() && is_same(exec, target, old) {
        after_update(exec, target, old)?;
        return Ok(Updated::Same);
    }
    row_check::check_row(exec, table, slot, changes.checks.iter().copied())?;
    row_check::check_views(exec, checks)?;
    let row = &mut exec.frame.slots[position];
    let (key, new) = (KeyBuf::from_slice(&row.key), std::mem::take(&mut row.bytes));
    let update = RowUpdate {
        key: &key,
        old,
        new: &new,
        changes,
    };
    let written = exec.update_related(table, update);
    exec.frame.slots[position].bytes = new;
    match written? {
        Written::Done => {
            if let Some(column) = changes.auto_increment {
                // What is generated next is greater than what UPDATE gave, as in InnoDB.
                let value = exec.column(slot, column, &table.columns[column].ty)?;
                if let Ok(value) = u64::try_from(column_value::number(&value)) {
                    exec.raise_auto_increment(table, value.saturating_add(1))?;
                }
            }
            after_update(exec, target, old)?;
            Ok(Updated::Changed)
        }
        Written::Duplicate { index, .. } => Ok(Updated::Duplicate(index)),
    }
}

/// Whether every column of the row in the slot is as it was stored.
fn is_same(exec: &Exec<'_>, target: &UpdateTarget, old: &[u8]) -> bool {
    let new = &exec.frame.slots[target.slot.0 as usize].bytes;
    target.table.layout.is_same(new, old)
}

/// Gives ON UPDATE CURRENT_TIMESTAMP columns of a row that changes their value.
fn stamp(exec: &mut Exec<'_>, target: &UpdateTarget) -> Result<()> {
    let (table, changes) = (&target.table, &target.changes);
    for &column in &changes.stamped {
        let now = defaults::now_for(exec, &table.columns[column].ty);
        exec.set_column(target.slot, column, &now);
    }
    compute_generated(exec, table, target.slot, &changes.generated_of_stamped)
}

/// Fires the triggers before the row in the slot is written, which may give its columns other values.
fn before_update(
    exec: &mut Exec<'_>,
    target: &UpdateTarget,
    triggers: &RowTriggers,
    old: &[u8],
) -> Result<()> {
    let UpdateTarget {
        table,
        slot,
        changes,
        ..
    } = target;
    let position = slot.0 as usize;
    row_check::compute_generated(exec, table, *slot, changes.generated.iter().copied())?;
    if !is_same(exec, target, old) {
        stamp(exec, target)?;
    }
    let new = exec.frame.slots[position].bytes.clone();
    let fired = (triggers, TriggerTime::Before, TriggerEvent::Update);
    for (column, value) in fire(exec, table, fired, Some(&new), Some(old))? {
        exec.set_column(*slot, column, &value);
    }
    row_check::complete(exec, table, *slot)
}

fn after_update(exec: &mut Exec<'_>, target: &UpdateTarget, old: &[u8]) -> Result<()> {
    if let Some(triggers) = &target.triggers {
        let new = exec.frame.slots[target.slot.0 as usize].bytes.clone();
        let fired = (&**triggers, TriggerTime::After, TriggerEvent::Update);
        fire(exec, &target.table, fired, Some(&new), Some(old))?;
    }
    Ok(())
}

/// Deletes a row that is locked, with what belongs to it.
pub(crate) fn delete_row(
    exec: &mut Exec<'_>,
    table: &Table,
    triggers: Option<&RowTriggers>,
    key: &[u8],
    row: &[u8],
) -> Result<()> {
    let Some(triggers) = triggers else {
        return exec.delete_related(table, key, row);
    };
    let delete = TriggerEvent::Delete;
    fire(
        exec,
        table,
        (triggers, TriggerTime::Before, delete),
        None,
        Some(row),
    )?;
    exec.delete_related(table, key, row)?;
    fire(
        exec,
        table,
        (triggers, TriggerTime::After, delete),
        None,
        Some(row),
    )?;
    Ok(())
}

fn compute_generated(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: SlotId,
    columns: &[usize],
) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    row_check::compute_generated(exec, table, slot, columns.iter().copied())?;
    row_check::check_nulls(exec, table, slot, columns.iter().copied())
}

pub fn update(exec: &mut Exec<'_>, plan: &Update) -> Result<Completion> {
    exec.session.statement.begin_change(plan.ignore);
    let (mut matched, mut changed) = (0, 0);
    let mut seen: Vec<HashSet<KeyBuf>> = vec![HashSet::new(); plan.targets.len()];
    let once = plan.targets.len() > 1 || !plan.in_place;
    for_each_row(
        exec,
        &plan.node,
        plan.in_place,
        plan.limit.as_ref(),
        &mut |exec| {
            // Of several tables each reads the others as they were joined, not what was just
            // assigned there.
            let mut ahead: Vec<Option<Vec<(usize, Value)>>> = Vec::new();
            if plan.targets.len() > 1 {
                let row_number = exec.row_number;
                ahead.resize(plan.targets.len(), None);
                for (number, target) in plan.targets.iter().enumerate() {
                    let row = &exec.frame.slots[target.slot.0 as usize];
                    if row.null || seen[number].contains(&row.key) {
                        continue;
                    }
                    exec.row_number += 1;
                    ahead[number] = Some(assigned_values(exec, target)?);
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
                let updated = match ahead.get_mut(number).and_then(Option::take) {
                    None => update_current(exec, target),
                    Some(values) => {
                        let old = exec.frame.slots[slot.0 as usize].bytes.clone();
                        for (column, value) in values {
                            exec.set_column(slot, column, &value);
                        }
                        write_assigned(exec, target, &old)
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
        last_insert_id: match exec.session.statement.gave_insert_id {
            true => exec.session.last_insert_id,
            false => 0,
        },
        warnings: 0,
        message: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
    })
}

pub fn delete(exec: &mut Exec<'_>, plan: &Delete) -> Result<Completion> {
    exec.session.statement.begin_change(plan.ignore);
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
                let triggers = plan.triggers.get(number).and_then(Option::as_deref);
                let outcome = delete_row(exec, table, triggers, &row.key, &row.bytes);
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
fn reread(exec: &mut Exec<'_>, table: &Table, slot: SlotId) -> Result<bool> {
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
        rows.put_aside(exec, &slots)?;
    }
    rows.finish()?;
    let mut reader = RowReader::default();
    while reader.next(&rows, &mut exec.frame, &slots)? {
        exec.check_interrupt()?;
        each(exec)?;
    }
    Ok(())
}
