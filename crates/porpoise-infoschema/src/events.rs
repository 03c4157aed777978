//! Events: information_schema.EVENTS and SHOW CREATE EVENT.

use std::fmt::Write as _;

use porpoise_catalog::event::{EventRecord, EventSchedule, EventStatus};
use porpoise_catalog::program::ProgramKind;
use porpoise_core::error::Result;
use porpoise_core::quote;
use porpoise_core::reply::ResultColumn;
use porpoise_executor::Exec;
use porpoise_executor::virtual_table::{Lookup, Sink, VirtualSource};
use porpoise_sql::ast;
use porpoise_types::{DataType, DateTime, IntervalUnit, TimeZone, Value};

use super::*;
use crate::objects::CATALOG;
use crate::programs::{Parsed, definer, visible};
use crate::show::ShowContext;

pub const TABLES: &[VirtualSource] = &[VirtualSource {
    schema: "information_schema",
    name: "EVENTS",
    columns: &[
        ("EVENT_CATALOG", name, false),
        ("EVENT_SCHEMA", exact, false),
        ("EVENT_NAME", name, false),
        ("DEFINER", word, false),
        ("TIME_ZONE", name, false),
        ("EVENT_BODY", name, false),
        ("EVENT_DEFINITION", long, false),
        ("EVENT_TYPE", name, false),
        ("EXECUTE_AT", moment, true),
        ("INTERVAL_VALUE", word, true),
        ("INTERVAL_FIELD", name, true),
        ("SQL_MODE", wide, false),
        ("STARTS", moment, true),
        ("ENDS", moment, true),
        ("STATUS", name, false),
        ("ON_COMPLETION", name, false),
        ("CREATED", moment, false),
        ("LAST_ALTERED", moment, false),
        ("LAST_EXECUTED", moment, true),
        ("EVENT_COMMENT", wide, false),
        ("ORIGINATOR", uint, false),
        ("CHARACTER_SET_CLIENT", name, false),
        ("COLLATION_CONNECTION", name, false),
        ("DATABASE_COLLATION", name, false),
    ],
    rows: events,
}];

/// A time as the event's own time zone has it.
fn zoned(event: &EventRecord, seconds: i64) -> DateTime {
    let zone = TimeZone::parse(&event.time_zone).unwrap_or_else(TimeZone::utc);
    let utc = DateTime::from_unix_micros(seconds.saturating_mul(1_000_000));
    zone.from_utc(utc.unwrap_or_default())
}

/// How many units lie between two runs: in quotes where there are several numbers.
fn count_text(count: &str, unit: &str) -> String {
    match IntervalUnit::by_name(unit).is_some_and(IntervalUnit::is_compound) {
        true => format!("'{count}'"),
        false => count.to_owned(),
    }
}

fn completion(event: &EventRecord) -> &'static str {
    match event.preserve {
        true => "PRESERVE",
        false => "NOT PRESERVE",
    }
}

fn events(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for (parsed, _) in visible(exec, lookup) {
        let record = parsed.record();
        let Some(event) = &record.event else {
            continue;
        };
        let at = |seconds: Option<i64>| {
            seconds.map_or(Value::Null, |seconds| {
                Value::DateTime(zoned(event, seconds))
            })
        };
        let (kind, execute_at, count, unit, starts_s, ends_s) = match &event.schedule {
            EventSchedule::At(at_s) => ("ONE TIME", Some(*at_s), None, None, None, None),
            EventSchedule::Every {
                count,
                unit,
                starts_s,
                ends_s,
            } => (
                "RECURRING",
                None,
                Some(count_text(count, unit)),
                Some(unit),
                Some(*starts_s),
                *ends_s,
            ),
        };
        let altered_s = record.altered.at_s.unwrap_or(record.created_s);
        let mut values = vec![
            text(CATALOG),
            text(&record.schema),
            text(&record.name),
            text(&record.definer),
            text(&event.time_zone),
            text("SQL"),
            text(parsed.body()),
            text(kind),
            at(execute_at),
            some_text(count.as_deref()),
            some_text(unit.map(|unit| unit.as_str())),
            text(&record.sql_mode),
            at(starts_s),
            at(ends_s),
            text(match event.status {
                EventStatus::Enabled => "ENABLED",
                EventStatus::Disabled => "DISABLED",
                EventStatus::DisabledOnReplica => "REPLICA_SIDE_DISABLED",
            }),
            text(completion(event)),
            local_time(exec, record.created_s),
            local_time(exec, altered_s),
            at(event.last_executed_s),
            text(&event.comment),
            Value::UInt(exec.engine.variables.get_u64("server_id")),
        ];
        values.extend(parsed.collations());
        row(exec, &values)?;
    }
    Ok(())
}

/// The statement that makes the event again.
fn create_text(parsed: &Parsed, event: &EventRecord) -> String {
    let record = parsed.record();
    let (user, host) = definer(record);
    let mut out = format!(
        "CREATE DEFINER={}@{} EVENT {} ON SCHEDULE ",
        quote::name(user),
        quote::name(host),
        quote::name(&record.name)
    );
    match &event.schedule {
        EventSchedule::At(at_s) => {
            let _ = write!(out, "AT '{}'", zoned(event, *at_s));
        }
        EventSchedule::Every {
            count,
            unit,
            starts_s,
            ends_s,
        } => {
            let starts = zoned(event, *starts_s);
            let _ = write!(
                out,
                "EVERY {} {unit} STARTS '{starts}'",
                count_text(count, unit)
            );
            if let Some(ends_s) = ends_s {
                let _ = write!(out, " ENDS '{}'", zoned(event, *ends_s));
            }
        }
    }
    let _ = write!(out, " ON COMPLETION {}", completion(event));
    out.push_str(match event.status {
        EventStatus::Enabled => " ENABLE",
        EventStatus::Disabled => " DISABLE",
        EventStatus::DisabledOnReplica => " DISABLE ON REPLICA",
    });
    if !event.comment.is_empty() {
        let _ = write!(out, " COMMENT '{}'", event.comment.replace('\'', "''"));
    }
    let _ = write!(out, " DO {}", parsed.body());
    out
}

/// SHOW CREATE EVENT; `None` where there is no such event.
///
/// # Errors
/// 1044 without EVENT on its schema.
pub(crate) fn show_create(
    context: ShowContext<'_>,
    name: &ast::ObjectName,
) -> Result<Option<(Vec<ResultColumn>, Vec<Vec<Value>>)>> {
    let state = context.state;
    let schema = state.schema_or_current(name.schema.as_ref())?;
    porpoise_session::check::check_schema(
        state,
        porpoise_core::privilege::Privilege::Event,
        &schema,
    )?;
    let catalog = context.shared.catalog.load_full();
    let Some(program) = catalog.program(&schema, ProgramKind::Event, &name.name) else {
        return Ok(None);
    };
    let (Some(parsed), Some(event)) = (Parsed::of(&program), &program.record.event) else {
        return Ok(None);
    };
    let columns = [
        "Event",
        "sql_mode",
        "time_zone",
        "Create Event",
        "character_set_client",
        "collation_connection",
        "Database Collation",
    ];
    let named = |name: &str| ResultColumn::expression(name, DataType::varchar(1024), true);
    let mut columns = columns.map(named).to_vec();
    columns[3].ty = parsed.statement_type();
    let mut values = vec![
        text(&program.record.name),
        text(&program.record.sql_mode),
        text(&event.time_zone),
        Value::from(create_text(&parsed, event)),
    ];
    values.extend(parsed.collations());
    Ok(Some((columns, vec![values])))
}
