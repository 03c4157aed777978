//! CREATE, ALTER and DROP of procedures, functions and triggers; of events in [`crate::event`].
//!
//! A program is kept as the text that made it. It is compiled once here, so that one that can't be
//! is refused; what its statements name is looked for when they run.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_accounts::routine::RoutineName;
use porpoise_catalog::program::{
    Altered, ProgramKind, ProgramRecord, StoredProgram, TriggerRecord,
};
use porpoise_catalog::{Catalog, CatalogChange, Relation, Table, TemporaryTables};
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::reply::Completion;
use porpoise_mdl::MdlTicket;
use porpoise_planner::{Context, UnknownContents};
use porpoise_programs::{compile, functions};
use porpoise_session::check;
use porpoise_sql::ast;
use porpoise_types::{DataType, convert};

use crate::account::routine::{grant_to_creator, revoke_from_all};
use crate::{Ddl, Name, lock};

pub fn create(ddl: &mut Ddl<'_>, create: &ast::CreateProgram) -> Result<Completion> {
    let name = ddl.resolve_program(&create.name)?;
    let catalog = ddl.shared.catalog.load_full();
    ddl.check_schema(&catalog, &name.schema)?;
    let definer = ddl.definer_of(create.definer.as_ref())?;
    let (kind, said) = match &create.kind {
        ast::ProgramKind::Procedure {
            characteristics, ..
        } => (ProgramKind::Procedure, Some(characteristics)),
        ast::ProgramKind::Function {
            characteristics, ..
        } => (ProgramKind::Function, Some(characteristics)),
        ast::ProgramKind::Trigger { .. } => (ProgramKind::Trigger, None),
        ast::ProgramKind::Event { .. } => {
            return Err(Error::engine_error("an event without a schedule"));
        }
    };
    let table = fired_by(ddl, &catalog, &name, create)?;
    compiled(ddl, &catalog, &name, create, table.as_deref())?;
    let held = table.as_ref().map(|table| Name {
        schema: table.schema.clone(),
        table: table.name.clone(),
    });
    let _held = held
        .as_ref()
        .map(|held| lock::relations(ddl, std::slice::from_ref(held)))
        .transpose()?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    if change
        .catalog()
        .program(&name.schema, kind, &name.table)
        .is_some()
    {
        let error = match kind {
            ProgramKind::Trigger => Error::trigger_exists(),
            kind => Error::routine_exists(kind.name(), &name.table),
        };
        if !create.if_not_exists {
            return Err(error);
        }
        ddl.session.warn(Level::Note, error.into_condition());
        return Ok(Completion::default());
    }
    let record = ProgramRecord {
        kind,
        schema: name.schema.clone(),
        name: name.table.clone(),
        sql: text_of(ddl.sql, create),
        definer,
        invoker: said.is_some_and(|said| said.invoker == Some(true)),
        deterministic: said.is_some_and(|said| said.deterministic == Some(true)),
        sql_mode: convert::to_text(&ddl.session.get("sql_mode"), &DataType::varchar(0)),
        client_charset: ddl.session.client_charset.name().into(),
        connection_collation: ddl.session.collation.name().into(),
        collation: collation_of(ddl, &catalog, &name.schema),
        created_s: ddl.session.statement.started_us / 1_000_000,
        altered: Altered::default(),
        trigger: trigger(change.catalog(), &name.schema, create)?,
        event: None,
    };
    make_room(&mut change, &record)?;
    let routine = routine_name(&record);
    change.put_program(record)?;
    change.commit()?;
    if let Some(routine) = routine {
        grant_to_creator(ddl.shared, ddl.session, routine)?;
    }
    // By its name alone it can't be called.
    if kind == ProgramKind::Function && is_native_function(&name.table) {
        let note = Error::native_function_name(&name.table).into_condition();
        ddl.session.warn(Level::Note, note);
    }
    Ok(Completion::default())
}

fn is_native_function(name: &str) -> bool {
    porpoise_functions::find(name).is_some() || porpoise_functions::find_aggregate(name).is_some()
}

/// What privileges are granted on; nothing is on a trigger.
fn routine_name(record: &ProgramRecord) -> Option<RoutineName> {
    let is_function = match record.kind {
        ProgramKind::Function => true,
        ProgramKind::Procedure => false,
        ProgramKind::Trigger | ProgramKind::Event => return None,
    };
    Some(RoutineName {
        schema: record.schema.clone(),
        name: record.name.clone(),
        is_function,
    })
}

/// The statement's own text.
fn text_of(sql: &[u8], create: &ast::CreateProgram) -> String {
    let text = sql.get(..create.body.span.end as usize).unwrap_or(sql);
    String::from_utf8_lossy(text).trim().to_owned()
}

pub(crate) fn collation_of(ddl: &Ddl<'_>, catalog: &Catalog, schema: &str) -> u16 {
    let entry = catalog.schema(schema);
    entry
        .map_or(ddl.session.collation, |entry| entry.schema.collation)
        .id()
}

/// The table whose rows fire a trigger.
///
/// # Errors
/// 1435 in another schema, 1146 where there is none, 1347 for a view, 1361 for a temporary table.
fn fired_by(
    ddl: &Ddl<'_>,
    catalog: &Catalog,
    name: &Name,
    create: &ast::CreateProgram,
) -> Result<Option<Arc<Table>>> {
    let ast::ProgramKind::Trigger { table, .. } = &create.kind else {
        return Ok(None);
    };
    let schema = table.schema.as_ref().map(|schema| schema.0.clone());
    let table = Name {
        schema: schema.unwrap_or_else(|| name.schema.clone()),
        table: table.name.0.clone(),
    };
    if catalog.schema(&table.schema).is_some() {
        ddl.check_schema(catalog, &table.schema)?;
    }
    if table.schema != name.schema {
        return Err(Error::trigger_in_wrong_schema());
    }
    if table.schema.eq_ignore_ascii_case("mysql") {
        return Err(Error::no_triggers_on_system_schema());
    }
    if ddl.temporary(&table).is_some() {
        return Err(Error::trigger_on_view_or_temporary(&table.table));
    }
    match catalog.relation(&table.schema, &table.table) {
        Some(Relation::Table(table)) => Ok(Some(table)),
        Some(Relation::View(_)) => Err(Error::not_base_table(&table.schema, &table.table)),
        Some(Relation::Virtual(_)) => Err(Error::trigger_on_view_or_temporary(&table.table)),
        None => Err(Error::no_such_table(&table.schema, &table.table)),
    }
}

pub(crate) fn compiled(
    ddl: &Ddl<'_>,
    catalog: &Catalog,
    name: &Name,
    create: &ast::CreateProgram,
    table: Option<&Table>,
) -> Result<()> {
    let mut session = ddl.session.for_connection(ddl.session.connection_id);
    session.schema = Some(name.schema.clone());
    let context = Context {
        catalog,
        session: &session,
        temporary_tables: &TemporaryTables::new(),
        parameters: &[],
        literals: &[],
        sql: ddl.sql,
        contents: &UnknownContents,
        variables: None,
        programs: Some(&functions::PROGRAMS),
        trace: None,
    };
    let entry = catalog.schema(&name.schema);
    let collation = entry.map_or(session.collation, |entry| entry.schema.collation);
    compile::compile(create, ddl.sql.into(), collation, &context, table)?;
    Ok(())
}

/// What fires a trigger, and its place among the others of the table.
fn trigger(
    catalog: &Catalog,
    schema: &str,
    create: &ast::CreateProgram,
) -> Result<Option<TriggerRecord>> {
    let ast::ProgramKind::Trigger {
        time,
        event,
        table,
        order,
    } = &create.kind
    else {
        return Ok(None);
    };
    let others = catalog.triggers(schema, &table.name);
    let others = others
        .iter()
        .filter_map(|other| Some((other, other.record.trigger.as_ref()?)))
        .filter(|(_, fired)| fired.fired() == (*time, *event));
    let others: Vec<_> = others.collect();
    let position = match order {
        Some((follows, reference)) => {
            let is_it = |name: &CompactString| name.eq_ignore_ascii_case(reference);
            let found = others
                .iter()
                .find(|(other, _)| is_it(&other.record.name))
                .ok_or_else(|| Error::referenced_trigger_missing(reference.as_str()))?;
            found.1.order + u32::from(*follows)
        }
        None => others.last().map_or(1, |(_, last)| last.order + 1),
    };
    Ok(Some(TriggerRecord {
        table: table.name.0.clone(),
        is_before: *time == ast::TriggerTime::Before,
        event: match event {
            ast::TriggerEvent::Insert => "INSERT".into(),
            ast::TriggerEvent::Update => "UPDATE".into(),
            ast::TriggerEvent::Delete => "DELETE".into(),
        },
        order: position,
    }))
}

/// Moves the triggers that are fired behind a new one of the same table, time and event.
fn make_room(change: &mut CatalogChange<'_>, record: &ProgramRecord) -> Result<()> {
    let Some(new) = &record.trigger else {
        return Ok(());
    };
    for other in change.catalog().triggers(&record.schema, &new.table) {
        let mut moved = other.record.clone();
        if let Some(fired) = &mut moved.trigger
            && fired.fired() == new.fired()
            && fired.order >= new.order
        {
            fired.order += 1;
            change.put_program(moved)?;
        }
    }
    Ok(())
}

/// ALTER PROCEDURE, ALTER FUNCTION.
///
/// # Errors
/// 1305 for one that isn't there.
pub fn alter(ddl: &mut Ddl<'_>, alter: &ast::AlterRoutine) -> Result<Completion> {
    let name = ddl.resolve_program(&alter.name)?;
    let kind = match alter.is_function {
        true => ProgramKind::Function,
        false => ProgramKind::Procedure,
    };
    let _held = locked(ddl, kind, &name)?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    let Some(program) = change.catalog().program(&name.schema, kind, &name.table) else {
        return Err(Error::routine_does_not_exist(kind.name(), &name));
    };
    let mut record = program.record.clone();
    let said = &alter.characteristics;
    if let Some(comment) = &said.comment {
        record.altered.comment = Some(String::from_utf8_lossy(comment).into_owned());
    }
    if let Some(access) = said.data_access {
        record.altered.data_access = Some(access.sql().into());
    }
    record.invoker = said.invoker.unwrap_or(record.invoker);
    record.altered.at_s = Some(ddl.session.statement.started_us / 1_000_000);
    change.put_program(record)?;
    change.commit()?;
    Ok(Completion::default())
}

/// Waits for the statements that use a program, as far as they hold its lock: a function's calls, or
/// what uses a trigger's table.
fn locked(ddl: &Ddl<'_>, kind: ProgramKind, name: &Name) -> Result<MdlTicket> {
    let found = |catalog: &Catalog| catalog.program(&name.schema, kind, &name.table);
    if kind != ProgramKind::Trigger {
        let lock = |catalog: &Catalog| found(catalog).and_then(|found| found.lock.clone());
        return lock::routines(ddl, |catalog| lock(catalog).into_iter().collect());
    }
    let trigger = found(&ddl.shared.catalog.load());
    let fired = trigger
        .as_ref()
        .and_then(|found| found.record.trigger.as_ref());
    let table = fired.map(|fired| Name {
        schema: name.schema.clone(),
        table: fired.table.clone(),
    });
    lock::relations(ddl, table.as_slice())
}

/// A trigger is dropped by the privilege on its table (1142).
fn check_fired(ddl: &Ddl<'_>, program: Option<&StoredProgram>) -> Result<()> {
    let fired = program.and_then(|program| Some((program, program.record.trigger.as_ref()?)));
    fired.map_or(Ok(()), |(program, fired)| {
        check::check_trigger(ddl.session, &program.record.schema, &fired.table)
    })
}

/// DROP PROCEDURE, DROP FUNCTION, DROP TRIGGER.
///
/// # Errors
/// 1305 or 1360 for one that isn't there.
pub fn drop(
    ddl: &mut Ddl<'_>,
    kind: ProgramKind,
    if_exists: bool,
    name: &ast::ObjectName,
) -> Result<Completion> {
    let name = ddl.resolve_program(name)?;
    let find = |catalog: &Catalog| catalog.program(&name.schema, kind, &name.table);
    // Nobody waits, and makes others wait, for what it may not drop.
    check_fired(ddl, find(&ddl.shared.catalog.load()).as_deref())?;
    let _held = locked(ddl, kind, &name)?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    let found = find(change.catalog());
    check_fired(ddl, found.as_deref())?;
    if change.drop_program(&name.schema, kind, &name.table) {
        change.commit()?;
        if let Some(routine) = found.and_then(|found| routine_name(&found.record)) {
            revoke_from_all(ddl.shared, &routine)?;
        }
        return Ok(Completion::default());
    }
    let error = match kind {
        ProgramKind::Trigger => Error::trigger_does_not_exist(),
        kind => Error::routine_does_not_exist(kind.name(), &name),
    };
    match if_exists {
        true => ddl.session.warn(Level::Note, error.into_condition()),
        false => return Err(error),
    }
    Ok(Completion::default())
}
