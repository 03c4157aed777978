//! Events in a session: the values of a schedule's expressions, and the body that runs.

use std::sync::Arc;

use porpoise_catalog::program::ProgramRecord;
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::Unread;
use porpoise_core::variables::{self, Reads};
use porpoise_ddl::event::SaidSchedule;
use porpoise_mdl::process::Command;
use porpoise_programs::routine::find_event;
use porpoise_sql::ast;
use porpoise_types::{DataType, IntervalUnit, Value, convert};

use crate::session::Session;
use crate::session::program::host::SessionHost;

/// Whether a statement may have an event's schedule.
pub(super) fn has_schedule(statement: &ast::Statement) -> bool {
    match statement {
        ast::Statement::CreateProgram(create) => {
            matches!(create.kind, ast::ProgramKind::Event { .. })
        }
        ast::Statement::AlterEvent(_) => true,
        _ => false,
    }
}

/// The schedule of CREATE EVENT or ALTER EVENT; `None` where it isn't said.
///
/// # Errors
/// 1235 for microseconds, 1525 for what is no time or interval, 1543 for a wrong ENDS.
pub(super) fn schedule(
    session: &mut Session,
    statement: &ast::Statement,
    sql: &[u8],
) -> Result<Option<SaidSchedule>> {
    let schedule = match statement {
        ast::Statement::CreateProgram(create) => match &create.kind {
            ast::ProgramKind::Event { schedule, .. } => Some(schedule),
            _ => None,
        },
        ast::Statement::AlterEvent(alter) => alter.schedule.as_ref(),
        _ => None,
    };
    Ok(match schedule {
        None => None,
        Some(ast::Schedule::At(at)) => Some(SaidSchedule::At(session.moment("AT", at, sql)?)),
        Some(ast::Schedule::Every {
            count,
            unit,
            starts,
            ends,
        }) => {
            let count = session.interval(count, *unit, sql)?;
            let starts = starts.as_ref();
            let starts_s = starts.map(|starts| session.moment("STARTS", starts, sql));
            let starts_s = starts_s.transpose()?;
            let ends = ends.as_ref().map(|ends| session.moment("ENDS", ends, sql));
            Some(SaidSchedule::Every {
                count,
                unit: unit.name(),
                starts_s,
                ends_s: ends.transpose().map_err(|_| Error::event_ends())?,
            })
        }
    })
}

impl Session {
    /// The value of an expression of a schedule that is a moment, in seconds since 1970.
    fn moment(&mut self, what: &str, written: &ast::Expr, sql: &[u8]) -> Result<i64> {
        let (value, ty) = self.evaluate(written, sql, &[], &[])?;
        let context = self.state.conversion(self.state.statement.started_us);
        let (moment, _) = convert::to_datetime(&value, &context);
        let utc = moment.and_then(|moment| self.state.to_utc(moment));
        let utc = utc.ok_or_else(|| Error::incorrect_literal(what, shown(&value, &ty)))?;
        Ok(utc.unix_micros().div_euclid(1_000_000))
    }

    /// How many units lie between two runs, as text.
    fn interval(&mut self, written: &ast::Expr, unit: IntervalUnit, sql: &[u8]) -> Result<String> {
        if unit.name().ends_with("MICROSECOND") {
            return Err(Error::not_supported_yet("MICROSECOND"));
        }
        let (value, ty) = self.evaluate(written, sql, &[], &[])?;
        if value.is_null() {
            return Err(Error::incorrect_literal("INTERVAL", shown(&value, &ty)));
        }
        Ok(match unit.is_compound() {
            true => shown(&value, &ty),
            false => convert::to_int(&value).0.to_string(),
        })
    }

    /// Runs an event's body, in the event's time zone and with its definer's privileges.
    ///
    /// # Errors
    /// The condition that no handler took.
    pub(crate) fn run_event(&mut self, record: &ProgramRecord) -> Result<()> {
        let body = porpoise_catalog::event::body(&record.sql);
        self.begin_statement(Command::Connect, body.as_bytes());
        if let Some(event) = &record.event
            && let Some(position) = variables::find("time_zone")
        {
            let zone = Some(Value::text(&event.time_zone));
            let globals = &self.shared.variables;
            variables::set(position, Reads::Session, zone, &mut self.state, globals)?;
        }
        let ran = self.run_event_body(&record.schema, &record.name);
        // What it has begun and not committed is taken back when the session ends.
        self.control.end(self.state.statement.started_us);
        ran
    }

    fn run_event_body(&mut self, schema: &str, name: &str) -> Result<()> {
        let catalog = self.shared.catalog.load_full();
        let shared = Arc::clone(&self.shared);
        let Some(callee) = find_event(&self.state, &catalog, schema, name)? else {
            return Ok(());
        };
        let held = callee.enter(&mut self.state, &shared.accounts)?;
        // Rows that the body selects go nowhere.
        let mut nobody = Unread;
        let mut host = SessionHost::new(self, catalog, &mut nobody);
        let ran = callee.run(Vec::new(), &mut host);
        let commit = host.take_commit();
        callee.leave(held, &mut self.state);
        if let Some(commit) = commit {
            commit.wait()?;
        }
        ran.map(drop)
    }
}

fn shown(value: &Value, ty: &DataType) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        value => convert::to_text(value, ty),
    }
}
