//! CREATE, ALTER and DROP of events (MySQL 8.4 manual, 15.1.13, 15.1.3 and 15.1.25).
//!
//! Of the text that made an event only the body counts; its schedule is kept as the values that its
//! expressions had. Whatever changes an event wakes the scheduler.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::event::{EventRecord, EventSchedule, EventStatus, interval_of, with_body};
use porpoise_catalog::program::{Altered, ProgramKind, ProgramRecord};
use porpoise_catalog::{Catalog, CatalogChange, StoredProgram};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::reply::Completion;
use porpoise_mdl as metadata;
use porpoise_session::check;
use porpoise_session::session_state::{SessionState, StatementInputs};
use porpoise_session::shared::Shared;
use porpoise_sql::ast;
use porpoise_types::{DataType, convert};

use crate::{Ddl, Name, lock, program};

/// `ON SCHEDULE`, evaluated. Times are seconds since 1970, UTC.
pub enum SaidSchedule {
    /// `AT`
    At(i64),
    /// `EVERY`
    Every {
        /// How many units.
        count: String,
        /// Of what.
        unit: &'static str,
        /// `STARTS`
        starts_s: Option<i64>,
        /// `ENDS`
        ends_s: Option<i64>,
    },
}

/// Runs CREATE EVENT or ALTER EVENT, whose schedule has been evaluated.
///
/// # Errors
/// 1046 and 1049 without a schema, 1537, 1539, 1542, 1543, 1551, 1589, and those of the body.
pub fn execute(
    shared: &Shared,
    session: &mut SessionState,
    sql: &[u8],
    statement: &ast::Statement,
    schedule: Option<SaidSchedule>,
) -> Result<Completion> {
    let ddl = &mut Ddl {
        shared,
        session,
        sql,
        inputs: StatementInputs::default(),
    };
    let completion = match statement {
        ast::Statement::CreateProgram(said) => create(ddl, said, schedule)?,
        ast::Statement::AlterEvent(said) => alter(ddl, said, schedule)?,
        _ => return Err(Error::engine_error("no statement on an event")),
    };
    shared.events.ring();
    Ok(completion)
}

fn create(
    ddl: &mut Ddl<'_>,
    create: &ast::CreateProgram,
    schedule: Option<SaidSchedule>,
) -> Result<Completion> {
    let (
        ast::ProgramKind::Event {
            preserve,
            status,
            comment,
            ..
        },
        Some(schedule),
    ) = (&create.kind, schedule)
    else {
        return Err(Error::engine_error("an event without a schedule"));
    };
    let name = ddl.resolve_program(&create.name)?;
    let catalog = ddl.shared.catalog.load_full();
    ddl.check_schema(&catalog, &name.schema)?;
    let _schema = lock_schemas(ddl, &[&name])?;
    let definer = ddl.definer_of(create.definer.as_ref())?;
    program::compiled(ddl, &catalog, &name, create, None)?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    if find(change.catalog(), &name).is_some() {
        let error = Error::event_exists(&name.table);
        if !create.if_not_exists {
            return Err(error);
        }
        ddl.session.warn(Level::Note, error.into_condition());
        return Ok(Completion::default());
    }
    let now_s = ddl.session.statement.started_us / 1_000_000;
    let mut event = EventRecord {
        schedule: kept(schedule, now_s)?,
        preserve: *preserve == Some(true),
        status: kept_status(status.unwrap_or(ast::EventStatus::Enabled)),
        comment: text(comment.as_deref()),
        time_zone: time_zone(ddl.session),
        last_executed_s: None,
        changed_s: now_s,
    };
    if is_past(&event.schedule, now_s) {
        if !event.preserve {
            let note = Error::event_in_the_past_dropped().into_condition();
            ddl.session.warn(Level::Note, note);
            return Ok(Completion::default());
        }
        disable(ddl, &mut event);
    }
    let record = ProgramRecord {
        kind: ProgramKind::Event,
        schema: name.schema.clone(),
        name: name.table.clone(),
        sql: text_of_body(ddl.sql, create.body.span),
        definer,
        invoker: false,
        deterministic: false,
        sql_mode: convert::to_text(&ddl.session.get("sql_mode"), &DataType::varchar(0)),
        client_charset: ddl.session.client_charset.name().into(),
        connection_collation: ddl.session.collation.name().into(),
        collation: program::collation_of(ddl, &catalog, &name.schema),
        created_s: now_s,
        altered: Altered::default(),
        trigger: None,
        event: Some(event),
    };
    change.put_program(record)?;
    change.commit()?;
    Ok(Completion::default())
}

fn alter(
    ddl: &mut Ddl<'_>,
    alter: &ast::AlterEvent,
    schedule: Option<SaidSchedule>,
) -> Result<Completion> {
    let name = ddl.resolve_program(&alter.name)?;
    let renamed = alter.rename.as_ref();
    let new = renamed.map(|name| ddl.resolve_program(name)).transpose()?;
    let new = new.unwrap_or_else(|| name.clone());
    let catalog = ddl.shared.catalog.load_full();
    for name in [&name, &new] {
        ddl.check_schema(&catalog, &name.schema)?;
    }
    let _schemas = lock_schemas(ddl, &[&name, &new])?;
    check::check_schema(ddl.session, Privilege::Event, &new.schema)?;
    let definer = ddl.definer_of(alter.definer.as_ref())?;
    if let Some(body) = &alter.body {
        let of_body = as_create(alter, body);
        program::compiled(ddl, &catalog, &name, &of_body, None)?;
    }
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    let Some(found) = find(change.catalog(), &name) else {
        return Err(Error::unknown_event(&name.table));
    };
    let is_same = name.schema == new.schema && name.table.eq_ignore_ascii_case(&new.table);
    if renamed.is_some() {
        if is_same {
            return Err(Error::same_event_name());
        }
        if find(change.catalog(), &new).is_some() {
            return Err(Error::event_exists(&new.table));
        }
    }
    let now_s = ddl.session.statement.started_us / 1_000_000;
    let mut record = found.record.clone();
    let mut event = found
        .record
        .event
        .clone()
        .ok_or_else(|| Error::engine_error("an event without a schedule"))?;
    event.changed_s = now_s;
    event.preserve = alter.preserve.unwrap_or(event.preserve);
    if let Some(status) = alter.status {
        event.status = kept_status(status);
    }
    if let Some(comment) = &alter.comment {
        event.comment = text(Some(comment));
    }
    if let Some(schedule) = schedule {
        event.schedule = kept(schedule, now_s)?;
        event.time_zone = time_zone(ddl.session);
        event.last_executed_s = None;
        if is_past(&event.schedule, now_s) {
            if !event.preserve {
                return Err(Error::event_in_the_past_unchanged());
            }
            disable(ddl, &mut event);
        }
    }
    if let Some(body) = &alter.body {
        record.sql = text_of_body(ddl.sql, body.span);
        record.sql_mode = convert::to_text(&ddl.session.get("sql_mode"), &DataType::varchar(0));
        record.client_charset = ddl.session.client_charset.name().into();
        record.connection_collation = ddl.session.collation.name().into();
    }
    record.definer = definer;
    record.schema = new.schema.clone();
    if renamed.is_some() {
        record.name = new.table.clone();
    }
    record.altered.at_s = Some(now_s);
    record.event = Some(event);
    change.drop_program(&name.schema, ProgramKind::Event, &name.table);
    change.put_program(record)?;
    change.commit()?;
    Ok(Completion::default())
}

/// DROP EVENT.
///
/// # Errors
/// 1539 for one that isn't there.
pub fn drop(ddl: &mut Ddl<'_>, if_exists: bool, name: &ast::ObjectName) -> Result<Completion> {
    let name = ddl.resolve_program(name)?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    if change.drop_program(&name.schema, ProgramKind::Event, &name.table) {
        change.commit()?;
        ddl.shared.events.ring();
        return Ok(Completion::default());
    }
    if !if_exists {
        return Err(Error::unknown_event(&name.table));
    }
    let note = Error::routine_does_not_exist("Event", &name.table).into_condition();
    ddl.session.warn(Level::Note, note);
    Ok(Completion::default())
}

fn find(catalog: &Catalog, name: &Name) -> Option<Arc<StoredProgram>> {
    catalog.program(&name.schema, ProgramKind::Event, &name.table)
}

fn lock_schemas(ddl: &Ddl<'_>, names: &[&Name]) -> Result<metadata::MdlTicket> {
    let schemas = names.iter().map(|name| &name.schema);
    lock::schemas(ddl, schemas, metadata::Mode::IntentionExclusive)
}

/// ALTER's body as CREATE would have it, to be compiled.
fn as_create(alter: &ast::AlterEvent, body: &ast::ProgramStatement) -> ast::CreateProgram {
    ast::CreateProgram {
        definer: None,
        if_not_exists: false,
        name: alter.name.clone(),
        kind: ast::ProgramKind::Event {
            schedule: ast::Schedule::At(ast::Expr::Literal(ast::Literal::Null)),
            preserve: None,
            status: None,
            comment: None,
        },
        body: body.clone(),
    }
}

/// A statement that has the event's body.
fn text_of_body(sql: &[u8], body: ast::Span) -> String {
    with_body(&String::from_utf8_lossy(body.of(sql)))
}

/// The schedule to keep.
///
/// # Errors
/// 1542, 1543.
fn kept(said: SaidSchedule, now_s: i64) -> Result<EventSchedule> {
    match said {
        SaidSchedule::At(at_s) => Ok(EventSchedule::At(at_s)),
        SaidSchedule::Every {
            count,
            unit,
            starts_s,
            ends_s,
        } => {
            if interval_of(&count, unit).is_none() {
                return Err(Error::event_interval());
            }
            let starts_s = starts_s.unwrap_or(now_s);
            if ends_s.is_some_and(|ends_s| ends_s < starts_s) {
                return Err(Error::event_ends());
            }
            Ok(EventSchedule::Every {
                count,
                unit: unit.into(),
                starts_s,
                ends_s,
            })
        }
    }
}

fn is_past(schedule: &EventSchedule, now_s: i64) -> bool {
    match schedule {
        EventSchedule::At(at_s) => *at_s < now_s,
        EventSchedule::Every { ends_s, .. } => ends_s.is_some_and(|ends_s| ends_s < now_s),
    }
}

fn disable(ddl: &mut Ddl<'_>, event: &mut EventRecord) {
    event.status = EventStatus::Disabled;
    let note = Error::event_in_the_past_disabled().into_condition();
    ddl.session.warn(Level::Note, note);
}

fn kept_status(status: ast::EventStatus) -> EventStatus {
    match status {
        ast::EventStatus::Enabled => EventStatus::Enabled,
        ast::EventStatus::Disabled => EventStatus::Disabled,
        ast::EventStatus::DisabledOnReplica => EventStatus::DisabledOnReplica,
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

fn time_zone(session: &SessionState) -> CompactString {
    convert::to_text(&session.get("time_zone"), &DataType::varchar(0)).into()
}
