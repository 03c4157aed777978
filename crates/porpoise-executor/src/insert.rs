//! INSERT and REPLACE.
//!
//! A row is built column by column: values given, defaults, AUTO_INCREMENT, then generated columns and
//! CHECKs over the whole row, each stored in the column's type. Then it is written, and if another row
//! has one of its keys, the statement's `OnDuplicate` says what happens.

use std::ops::Range;
use std::sync::atomic::Ordering;

use porpoise_catalog::{Column, ColumnDefault, Table};
use porpoise_core::error::{Error, ErrorKind, Level, Result};
use porpoise_core::reply::Completion;
use porpoise_expr::EvalContext;
use porpoise_expr::{Expr, ExprKind, Slot};
use porpoise_planner::plan::{Insert, InsertSource, OnDuplicate, ViewCheck};
use porpoise_types::{DataType, IntWidth, Loss, StoreError, Value, convert};

use crate::eval::Evaluate;
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
    /// The first AUTO_INCREMENT value that was generated.
    pub generated: Option<u64>,
    /// The last value given for an AUTO_INCREMENT column.
    pub given: Option<u64>,
    /// How many AUTO_INCREMENT values are taken at once: the statement's rows still to come, where they
    /// are known, so that their values follow one another whoever inserts beside.
    run_length: u64,
    /// What is left of the values taken.
    run: Range<u64>,
}

/// Executes an INSERT, REPLACE or LOAD DATA in the transaction of `exec`.
pub fn insert(exec: &mut Exec<'_>, plan: &Insert) -> Result<Completion> {
    exec.session.ignore_errors = plan.ignore;
    exec.session.changes_rows = true;
    let mut counts = Counts {
        run_length: 1,
        ..Counts::default()
    };
    let many = match &plan.source {
        InsertSource::Values(rows) => {
            counts.run_length = rows.len() as u64;
            let mut ahead = Vec::new();
            if plan.reads_itself {
                ahead.reserve(rows.len());
                for row in rows {
                    exec.row_number += 1;
                    ahead.push(given_values(exec, plan, row)?);
                }
                exec.row_number = 0;
            }
            let mut ahead = ahead.into_iter();
            for row in rows {
                exec.row_number += 1;
                let mut given = match ahead.next() {
                    Some(given) => given,
                    None => given_values(exec, plan, row)?,
                };
                insert_row_of(exec, plan, &mut given, &mut counts)?;
            }
            rows.len() > 1
        }
        InsertSource::Load(load) => {
            load::load(exec, plan, load, &mut counts)?;
            true
        }
        InsertSource::Query { node, output } => {
            let mut input = operator::build(node);
            input.open(exec)?;
            let mut given = Vec::with_capacity(output.len());
            while input.next(exec)? {
                exec.check_interrupt()?;
                exec.row_number += 1;
                given.clear();
                for (position, expr) in output.iter().enumerate() {
                    let value = expr.eval(exec)?;
                    given.push(store_given(
                        exec,
                        plan,
                        plan.columns[position],
                        value,
                        &expr.ty,
                    )?);
                }
                insert_row_of(exec, plan, &mut given, &mut counts)?;
            }
            true
        }
    };
    if let Some(first) = counts.generated {
        exec.session.last_insert_id = first;
    }
    if matches!(plan.source, InsertSource::Load(_)) {
        return Ok(load::completion(plan, &counts, exec.session.warnings.len()));
    }
    Ok(Completion {
        affected_rows: counts.affected,
        last_insert_id: counts.generated.or(counts.given).unwrap_or(0),
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

/// A column's value, or nothing yet: its default, or the next AUTO_INCREMENT value.
type Given = Option<Value>;

/// What a row of VALUES gives.
fn given_values(exec: &mut Exec<'_>, plan: &Insert, row: &[Option<Expr>]) -> Result<Vec<Given>> {
    let mut given: Vec<Given> = Vec::with_capacity(row.len());
    for (position, expr) in row.iter().enumerate() {
        let column = plan.columns[position];
        given.push(match expr {
            None => None,
            Some(expr) => {
                if !matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Parameter(_)) {
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

/// Stores a value in its column's type. An AUTO_INCREMENT column takes NULL (and 0) as "the next".
pub fn store_given(
    exec: &mut Exec<'_>,
    plan: &Insert,
    column: usize,
    value: Value,
    ty: &DataType,
) -> Result<Given> {
    let definition = &plan.table.columns[column];
    if definition.auto_increment && value.is_null() {
        return Ok(None);
    }
    let single = matches!(&plan.source, InsertSource::Values(rows) if rows.len() == 1);
    if single && value.is_null() && !definition.nullable && !plan.ignore {
        return Err(Error::column_cannot_be_null(&definition.name));
    }
    let value = store(exec, definition, value, ty)?;
    if definition.auto_increment
        && is_zero(&value)
        && !exec.session.sql_mode.no_auto_value_on_zero()
    {
        return Ok(None);
    }
    Ok(Some(value))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(v) => *v == 0,
        Value::UInt(v) => *v == 0,
        Value::Double(v) => *v == 0.0,
        _ => false,
    }
}

/// All columns' values: the given ones, and defaults for the others where asked.
pub fn with_defaults(
    exec: &mut Exec<'_>,
    plan: &Insert,
    given: &[Given],
    strict: bool,
) -> Result<Vec<Value>> {
    let table = &plan.table;
    let mut values: Vec<Value> = vec![Value::Null; table.columns.len()];
    let mut missing: u64 = 0;
    let mut set = vec![false; table.columns.len()];
    for (&column, value) in plan.columns.iter().zip(given) {
        if let Some(value) = value {
            values[column] = value.clone();
            set[column] = true;
        }
    }
    for (position, column) in table.columns.iter().enumerate() {
        if set[position] || column.auto_increment || column.generated.is_some() {
            continue;
        }
        match &column.default {
            ColumnDefault::Expression { .. } => missing += 1,
            _ => values[position] = default_value(exec, column, strict)?,
        }
    }
    if missing > 0 && strict {
        for (position, column) in table.columns.iter().enumerate() {
            if let (ColumnDefault::Expression { expr, .. }, false) =
                (&column.default, set[position])
            {
                exec.fill(plan.slot, &values)?;
                let value = eval_in(exec, expr, plan.slot)?;
                values[position] = store(exec, column, value, &expr.ty)?;
            }
        }
    }
    Ok(values)
}

/// Evaluates an expression of the table's definition, which reads its row in slot 0, over another slot.
pub fn eval_in(exec: &mut Exec<'_>, expr: &Expr, slot: Slot) -> Result<Value> {
    if slot.0 == 0 {
        return expr.eval(exec);
    }
    let layouts = exec.layouts;
    exec.frame.slots.swap(0, slot.0 as usize);
    exec.layouts = &layouts[slot.0 as usize..];
    let value = expr.eval(exec);
    exec.layouts = layouts;
    exec.frame.slots.swap(0, slot.0 as usize);
    value
}

/// The default of a column that no value was given for. Without one, strict mode refuses (1364).
pub fn default_value(exec: &mut Exec<'_>, column: &Column, strict: bool) -> Result<Value> {
    Ok(match &column.default {
        ColumnDefault::Literal(value) => value.clone(),
        ColumnDefault::Now => now_for(exec, &column.ty),
        ColumnDefault::Expression { expr, .. } => {
            let value = expr.eval(exec)?;
            store(exec, column, value, &expr.ty)?
        }
        ColumnDefault::None if column.nullable || !strict => Value::Null,
        ColumnDefault::None => {
            if let DataType::Enum(_) = column.ty {
                // An ENUM that takes no NULL has its first member for a default.
                return Ok(Value::UInt(1));
            }
            // A column that is left out is told of once, not for every row.
            if exec.row_number <= 1 || !exec.is_lenient() {
                exec.data_error(Error::no_default_for_field(&column.name))?;
            }
            implicit_default(&column.ty)
        }
    })
}

/// CURRENT_TIMESTAMP as a column of the type holds it.
pub fn now_for(exec: &Exec<'_>, ty: &DataType) -> Value {
    Value::DateTime(exec.now().truncate(ty.decimals()))
}

/// What a column that takes no NULL gets in its place outside strict mode.
pub fn implicit_default(ty: &DataType) -> Value {
    match ty {
        DataType::Int { unsigned: true, .. }
        | DataType::Bit(_)
        | DataType::Year
        | DataType::Set(_) => Value::UInt(0),
        DataType::Enum(_) => Value::UInt(1),
        DataType::Int { .. } => Value::Int(0),
        DataType::Decimal { scale, .. } => Value::Decimal(porpoise_types::Decimal::new(0, *scale)),
        DataType::Float { .. } | DataType::Double { .. } => Value::Double(0.0),
        DataType::Date => Value::Date(porpoise_types::Date::default()),
        DataType::Time { .. } => Value::Time(porpoise_types::Time::default()),
        DataType::DateTime { .. } | DataType::Timestamp { .. } => {
            Value::DateTime(porpoise_types::DateTime::default())
        }
        DataType::Binary(length) => Value::Bytes(vec![0; *length as usize]),
        DataType::Varbinary(_) | DataType::Blob(_) => Value::Bytes(Vec::new()),
        DataType::Json => Value::Json(porpoise_types::Json::new(porpoise_types::JsonValue::Null)),
        _ => Value::text(""),
    }
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
    if let Some(position) = table.auto_increment_column() {
        let at = plan.columns.iter().position(|&column| column == position);
        match at.and_then(|at| given[at].take()) {
            Some(value) => {
                if let Ok(value) = u64::try_from(number(&value)) {
                    counts.given = Some(value);
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
                counts.generated.get_or_insert(next);
                values[position] = match table.columns[position].ty {
                    DataType::Int { unsigned: true, .. } => Value::UInt(next),
                    DataType::Int { .. } => Value::Int(next as i64),
                    _ => Value::Double(next as f64),
                };
            }
        }
    }
    if counts.generated.is_some() {
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
    let written = write(exec, plan, &key, &row, counts);
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
    counts: &mut Counts,
) -> Result<()> {
    let table = &plan.table;
    loop {
        let (index, other) = match exec.insert_related(table, key, row)? {
            Written::Done => {
                counts.affected += 1;
                return Ok(());
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
                if let Some(existing) = exec.lock_and_read(table, &other)? {
                    exec.delete_related(table, &other, &existing)?;
                    counts.affected += 1;
                    counts.duplicates += 1;
                }
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
                    change::Updated::Changed => counts.affected += 2,
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
                if let Some(position) = table.auto_increment_column()
                    && let Ok(id) = u64::try_from(number(&exec.column(
                        plan.slot,
                        position,
                        &table.columns[position].ty,
                    )))
                {
                    counts.given = Some(id);
                    counts.generated = None;
                }
                return Ok(());
            }
        }
    }
}

/// An integer column's value.
pub fn number(value: &Value) -> i128 {
    match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        other => i128::from(convert::to_int(other).0),
    }
}

/// Encodes a new row into its slot: computes generated columns, checks NULLs and CHECKs.
pub fn finish_row(exec: &mut Exec<'_>, table: &Table, slot: Slot, values: &[Value]) -> Result<()> {
    exec.fill(slot, values)?;
    let columns = 0..table.columns.len();
    compute_generated(exec, table, slot, columns.clone())?;
    check_nulls(exec, table, slot, columns)?;
    let checks = table.checks.iter().enumerate();
    let enforced = checks.filter(|(_, check)| check.enforced);
    check_row(exec, table, slot, enforced.map(|(number, _)| number))
}

/// Computes those of the columns that are generated, from the row in the slot, one after the other.
pub fn compute_generated(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: Slot,
    columns: impl IntoIterator<Item = usize>,
) -> Result<()> {
    for number in columns {
        let column = &table.columns[number];
        if let Some(generated) = &column.generated {
            let value = eval_in(exec, &generated.expr, slot)?;
            let value = store(exec, column, value, &generated.expr.ty)?;
            exec.set_column(slot, number, &value);
        }
    }
    Ok(())
}

/// Error 1048 if one of the columns is NULL and must not be; outside strict mode it gets a default.
pub fn check_nulls(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: Slot,
    columns: impl IntoIterator<Item = usize>,
) -> Result<()> {
    for number in columns {
        let column = &table.columns[number];
        if !column.nullable && exec.column_is_null(slot, number) {
            exec.data_error(Error::column_cannot_be_null(&column.name))?;
            exec.set_column(slot, number, &implicit_default(&column.ty));
        }
    }
    Ok(())
}

/// Error 3819 if the row in the slot violates one of these CHECKs.
pub fn check_row(
    exec: &mut Exec<'_>,
    table: &Table,
    slot: Slot,
    checks: impl IntoIterator<Item = usize>,
) -> Result<()> {
    for number in checks {
        let check = &table.checks[number];
        if convert::to_bool(&eval_in(exec, &check.expr, slot)?) == Some(false) {
            return Err(Error::check_violated(&check.name));
        }
    }
    Ok(())
}

/// Error 1369 if a row in its slot is not one that the views it goes through would show.
pub fn check_views(exec: &mut Exec<'_>, checks: &[ViewCheck]) -> Result<()> {
    for check in checks {
        for condition in &check.conditions {
            if convert::to_bool(&condition.eval(exec)?) != Some(true) {
                return Err(Error::view_check_failed(&check.view));
            }
        }
    }
    Ok(())
}

/// Converts a value to a column's type. What gets lost is an error in strict mode, else a warning.
pub fn store(exec: &mut Exec<'_>, column: &Column, value: Value, from: &DataType) -> Result<Value> {
    if value.is_null() {
        if !column.nullable && column.generated.is_none() {
            exec.data_error(Error::column_cannot_be_null(&column.name))?;
            return Ok(implicit_default(&column.ty));
        }
        return Ok(value);
    }
    let cx = exec.conversion();
    // The original is needed only for messages: kept as text when something was lost.
    let before = value.clone();
    let (stored, loss) = match porpoise_types::store(value, from, &column.ty, &cx) {
        Ok(stored) => stored,
        Err(StoreError::InvalidJson(error)) => {
            return Err(Error::invalid_json_text_in_column(
                error.message,
                error.position,
                &column.name,
            ));
        }
    };
    if let (Value::DateTime(local), DataType::Timestamp { .. }) = (&stored, &column.ty)
        && exec.session.to_utc(*local).is_none()
    {
        lost(exec, column, Loss::BadTemporal, &before, from)?;
        return Ok(Value::DateTime(porpoise_types::DateTime::default()));
    }
    if !loss.is_none() {
        lost(exec, column, loss, &before, from)?;
    }
    Ok(stored)
}

fn lost(
    exec: &mut Exec<'_>,
    column: &Column,
    loss: Loss,
    value: &Value,
    from: &DataType,
) -> Result<()> {
    let row = exec.row_number.max(1);
    let name = &column.name;
    let text = || {
        let text = convert::to_text(value, from);
        text.chars().take(128).collect::<String>()
    };
    let error = match loss {
        Loss::None => return Ok(()),
        Loss::Rounded | Loss::SpacesCut => {
            // A fraction of a second is rounded in silence.
            if matches!(column.ty, DataType::Decimal { .. } | DataType::Date)
                || loss == Loss::SpacesCut
            {
                exec.session.warn(
                    Level::Note,
                    Error::data_truncated(name, row).into_condition(),
                );
            }
            return Ok(());
        }
        Loss::Truncated | Loss::NotAMember => Error::data_truncated(name, row),
        Loss::NotANumber => {
            let kind = match column.ty {
                DataType::Decimal { .. } => "decimal",
                DataType::Float { .. } => "float",
                DataType::Double { .. } => "double",
                _ => "integer",
            };
            Error::incorrect_value_for_column(kind, text(), name, row)
        }
        Loss::BadText => Error::incorrect_value_for_column("string", escaped(value), name, row),
        Loss::BadTemporal if exec.is_lenient() => Error::data_truncated(name, row),
        Loss::BadTemporal => {
            let kind = match column.ty {
                DataType::Date => "date",
                DataType::Time { .. } => "time",
                DataType::Year => "year",
                _ => "datetime",
            };
            Error::truncated_value_for_column(kind, text(), name, row)
        }
        Loss::TooLong if exec.is_lenient() && matches!(column.ty, DataType::Bit(_)) => {
            Error::out_of_range_column(name, row)
        }
        Loss::TooLong if exec.is_lenient() => Error::data_truncated(name, row),
        Loss::TooLong => Error::data_too_long(name, row),
        Loss::OutOfRange if matches!(column.ty, DataType::Time { .. }) && !exec.is_lenient() => {
            Error::truncated_value_for_column("time", text(), name, row)
        }
        Loss::OutOfRange => Error::out_of_range_column(name, row),
    };
    exec.data_error(error)
}

/// Bytes as MySQL shows them in error 1366.
fn escaped(value: &Value) -> String {
    let mut out = String::new();
    for &byte in value.as_bytes().unwrap_or_default().iter().take(24) {
        if (0x20..0x7F).contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("\\x{byte:02X}"));
        }
    }
    out
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

    /// Whether values that don't fit are mended: outside strict mode and under IGNORE.
    fn is_lenient(&self) -> bool {
        self.session.ignore_errors || !self.session.sql_mode.strict()
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

    fn load_auto_increment(&self, table: &Table) {
        if table.state.auto_increment.load(Ordering::Relaxed) == 0 {
            table
                .state
                .raise_auto_increment(self.engine.store.counter(table.space).max(1));
        }
    }

    /// Makes the next generated value at least `next`, durably with the transaction.
    pub fn raise_auto_increment(&mut self, table: &Table, next: u64) -> Result<()> {
        self.load_auto_increment(table);
        if table
            .state
            .auto_increment
            .fetch_max(next, Ordering::Relaxed)
            < next
        {
            self.transaction()?.set_counter(table.space, next);
        }
        Ok(())
    }

    /// The first value from this one on that the session's increment and offset allow.
    fn on_auto_increment_grid(&self, value: u64) -> u64 {
        let (increment, offset) = self.session.auto_increment_grid();
        if increment <= 1 {
            return value;
        }
        let steps = value.saturating_sub(offset).div_ceil(increment);
        offset.saturating_add(steps.saturating_mul(increment))
    }

    /// Takes the next `count` AUTO_INCREMENT values, fewer at the end of the type's range. Those on
    /// the session's grid are in the range that is returned.
    fn take_auto_increment(
        &mut self,
        table: &Table,
        ty: &DataType,
        count: u64,
    ) -> Result<Range<u64>> {
        self.load_auto_increment(table);
        let (increment, _) = self.session.auto_increment_grid();
        let most = match ty {
            DataType::Int {
                width, unsigned, ..
            } => width.range(*unsigned).1,
            _ => IntWidth::Big.range(true).1,
        };
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let mut current = table.state.auto_increment.load(Ordering::Relaxed);
        loop {
            // At the end of the type's range its last value comes again, and is a duplicate.
            let first = self.on_auto_increment_grid(current).min(most);
            if first == u64::MAX {
                return Err(Error::auto_increment_exhausted());
            }
            let past = first.saturating_add(count.max(1).saturating_mul(increment.max(1)));
            let next = past.min(most.saturating_add(1));
            match table.state.auto_increment.compare_exchange_weak(
                current,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.transaction()?.set_counter(table.space, next);
                    return Ok(first..next);
                }
                Err(now) => current = now,
            }
        }
    }
}
