//! Runs a whole plan: rows into the reply, or changes into the transaction.

use std::sync::Arc;

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_core::reply::{Completion, Reply, ResultColumn};
use porpoise_expr::{Expr, ExprKind};
use porpoise_planner::plan::{Destination, Node, Plan, PlanKind, Query, Target};
use porpoise_session::check::Privileged;
use porpoise_types::{DataType, Value, cancel, convert};

use crate::eval::Evaluate;
use crate::{Exec, change, insert, operator, output_file};

/// Runs a plan to its end. `columns` replaces the plan's own where their names come from the
/// current text.
pub fn execute(
    exec: &mut Exec<'_>,
    plan: Privileged<'_, Plan>,
    columns: Option<&[ResultColumn]>,
    reply: &mut dyn Reply,
) -> Result<()> {
    if let Some(graph) = &plan.foreign_keys
        && exec.session.foreign_key_checks
    {
        exec.foreign_keys = Some(Arc::clone(graph));
    }
    match &plan.kind {
        PlanKind::Query(query) => {
            send_result(exec, query, columns.unwrap_or(&query.columns), reply)
        }
        PlanKind::Insert(insert) => {
            let completion = insert::insert(exec, insert)?;
            finish_change(exec, completion, reply)
        }
        PlanKind::Update(update) => {
            let completion = change::update(exec, update)?;
            finish_change(exec, completion, reply)
        }
        PlanKind::Delete(delete) => {
            let completion = change::delete(exec, delete)?;
            finish_change(exec, completion, reply)
        }
    }
}

fn finish_change(
    exec: &mut Exec<'_>,
    mut completion: Completion,
    reply: &mut dyn Reply,
) -> Result<()> {
    completion.warnings = exec.session.warning_count();
    exec.session.row_count = completion.affected_rows as i64;
    reply.ok(&completion)
}

fn send_result(
    exec: &mut Exec<'_>,
    query: &Query,
    columns: &[ResultColumn],
    reply: &mut dyn Reply,
) -> Result<()> {
    match &query.into {
        Destination::Client => {}
        Destination::File(file) => {
            let rows = output_file::write_rows(exec, query, file)?;
            exec.session.found_rows = rows;
            let completion = Completion {
                affected_rows: rows,
                ..Completion::default()
            };
            return finish_change(exec, completion, reply);
        }
        Destination::Variables(targets) => return assign_variables(exec, query, targets, reply),
        Destination::Program => return give_rows(exec, query, reply),
    }
    // With SQL_CALC_FOUND_ROWS the limit is applied here, and the input read to its end.
    let (node, mut skip, mut left) = match &query.node {
        Node::Limit {
            input,
            offset,
            count,
        } if query.calc_found_rows => {
            let skip = offset
                .as_deref()
                .map_or(Ok(0), |offset| operator::count_of(exec, offset))?;
            let left = count
                .as_deref()
                .map_or(Ok(u64::MAX), |count| operator::count_of(exec, count))?;
            (&**input, skip, left)
        }
        node => (node, 0, u64::MAX),
    };
    let mut input = operator::build(node);
    input.open(exec)?;
    reply.begin_rows(columns)?;
    let (mut sent, mut found) = (0u64, 0u64);
    while input.next(exec)? {
        found += 1;
        if skip > 0 {
            skip -= 1;
            continue;
        }
        if left == 0 {
            continue;
        }
        left -= 1;
        sent += 1;
        write_row(exec, query, reply)?;
    }
    exec.session.found_rows = if query.calc_found_rows { found } else { sent };
    exec.session.row_count = -1;
    end_rows(exec, reply)
}

/// Writes the row that is in the frame.
#[inline]
pub(crate) fn write_row(exec: &mut Exec<'_>, query: &Query, reply: &mut dyn Reply) -> Result<()> {
    reply.begin_row();
    // A row goes to the client as a whole.
    let mut charge = Charge::default();
    for expr in &query.output {
        write(exec, expr, &mut charge, reply)?;
    }
    reply.end_row()
}

/// Ends the rows of a query.
pub(crate) fn end_rows(exec: &Exec<'_>, reply: &mut dyn Reply) -> Result<()> {
    reply.end_rows(&Completion {
        warnings: exec.session.warning_count(),
        ..Completion::default()
    })
}

/// A cursor's rows.
fn give_rows(exec: &mut Exec<'_>, query: &Query, reply: &mut dyn Reply) -> Result<()> {
    let mut input = operator::build(&query.node);
    input.open(exec)?;
    while input.next(exec)? {
        reply.values(output_values(exec, query)?)?;
    }
    reply.ok(&Completion::default())
}

/// The values of the row that is in the frame, with their types.
fn output_values(exec: &mut Exec<'_>, query: &Query) -> Result<Vec<(Value, DataType)>> {
    let mut charge = Charge::default();
    let mut values = Vec::with_capacity(query.output.len());
    for expr in &query.output {
        let value = expr.eval(exec)?;
        exec.charge_long(&value, &mut charge)?;
        values.push((value, expr.ty.clone()));
    }
    Ok(values)
}

fn assign_variables(
    exec: &mut Exec<'_>,
    query: &Query,
    targets: &[Target],
    reply: &mut dyn Reply,
) -> Result<()> {
    let mut input = operator::build(&query.node);
    input.open(exec)?;
    if !input.next(exec)? {
        let error = porpoise_core::Error::no_data();
        exec.session
            .warn(porpoise_core::error::Level::Warning, error.into_condition());
        return finish_change(exec, Completion::default(), reply);
    }
    let values = output_values(exec, query)?;
    // The first row counts, whatever comes behind it.
    let mut own = Vec::new();
    for (target, (value, ty)) in targets.iter().zip(values) {
        match target {
            Target::User(name) => exec.session.set_user_variable(name, value, ty)?,
            Target::Local(_) => own.push((value, ty)),
        }
    }
    if !own.is_empty() {
        reply.values(own)?;
    }
    if input.next(exec)? {
        return Err(crate::Error::too_many_rows());
    }
    finish_change(
        exec,
        Completion {
            affected_rows: 1,
            ..Completion::default()
        },
        reply,
    )
}

/// Writes one output column. A stored text goes from the row to the reply as it lies there.
fn write(
    exec: &mut Exec<'_>,
    expr: &Expr,
    charge: &mut Charge,
    reply: &mut dyn Reply,
) -> Result<()> {
    if let ExprKind::Column { slot, column, .. } = &expr.kind {
        let row = &exec.frame.slots[slot.0 as usize];
        if row.null {
            reply.null();
            return Ok(());
        }
        let is_text = matches!(
            expr.ty,
            DataType::Char { .. }
                | DataType::Varchar { .. }
                | DataType::Text { .. }
                | DataType::Varbinary(_)
                | DataType::Blob(_)
                | DataType::Binary(_)
        );
        if is_text && exec.session.result_encoding(&expr.ty).is_none() {
            let layout = &exec.layouts[slot.0 as usize];
            match layout
                .layout
                .raw(&row.bytes, layout.position(*column as usize))
            {
                Some(stored) => {
                    if stored.len() > cancel::SHORT_BYTES {
                        charge.add(&exec.session.memory, stored.len())?;
                    }
                    reply.bytes(stored);
                }
                None => reply.null(),
            }
            return Ok(());
        }
    }
    let value = expr.eval(exec)?;
    exec.charge_long(&value, charge)?;
    write_value(exec, &value, &expr.ty, reply);
    Ok(())
}

/// Writes a value as its type travels.
pub fn write_value(exec: &Exec<'_>, value: &Value, ty: &DataType, reply: &mut dyn Reply) {
    match (value, ty) {
        (Value::Null, _) => reply.null(),
        (Value::Int(v), DataType::Int { unsigned: true, .. }) => reply.uint(*v as u64),
        (
            Value::Int(v),
            DataType::Int {
                zerofill: false, ..
            },
        ) => reply.int(*v),
        (
            Value::UInt(v),
            DataType::Int {
                zerofill: false, ..
            }
            | DataType::Year,
        ) => reply.uint(*v),
        (Value::Double(v), DataType::Float { digits: None, .. }) => reply.float(*v as f32),
        (Value::Double(v), DataType::Double { digits: None, .. }) => reply.double(*v),
        (Value::Date(v), DataType::Date) => reply.date(*v),
        (Value::DateTime(v), DataType::DateTime { fsp } | DataType::Timestamp { fsp }) => {
            reply.datetime(*v, *fsp)
        }
        (Value::Time(v), DataType::Time { fsp }) => reply.time(*v, *fsp),
        (Value::Text(v), _) if exec.session.result_encoding(ty).is_none() => {
            reply.bytes(v.as_bytes())
        }
        (Value::Bytes(v), _) => reply.bytes(v),
        _ => {
            let text = convert::to_bytes(value, ty);
            match exec.session.result_encoding(ty) {
                Some(charset) => {
                    let mut encoded = Vec::with_capacity(text.len());
                    charset.encode(&String::from_utf8_lossy(&text), &mut encoded);
                    reply.bytes(&encoded);
                }
                None => reply.bytes(&text),
            }
        }
    }
}
