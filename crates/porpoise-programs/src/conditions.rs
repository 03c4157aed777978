//! Conditions: which handler takes one, SIGNAL and RESIGNAL, GET DIAGNOSTICS (MySQL 8.4 manual,
//! 15.6.7).
//!
//! A handler begins with the conditions of the statement that it handles, which stay readable
//! (STACKED) while it runs: `SessionVars::handled` is a stack of them, across calls.

use porpoise_core::error::{Condition, Error, Level, Result};
use porpoise_core::variables::Diagnostics;
use porpoise_sql::ast::{ConditionItem, SignalItem, StatementItem};
use porpoise_types::{DataType, Value, convert};

use crate::code::{Asked, Diagnose, Handler, HandlerScope, Matched, Program, Signal};
use crate::machine::{Host, Machine, Typed};

/// What is raised, as far as handlers look at it.
#[derive(Clone, Copy, Debug)]
pub struct Raised {
    /// The error's number.
    pub number: u16,
    /// Its SQLSTATE.
    pub sqlstate: &'static str,
    /// How bad it is.
    pub level: Level,
}

impl Raised {
    /// An error.
    pub fn of_error(error: &Error) -> Raised {
        Raised {
            number: error.number(),
            sqlstate: error.sqlstate(),
            level: Level::Error,
        }
    }

    /// How specifically a handler's condition matches: the greater, the more specific.
    fn specificity(self, matched: Matched) -> Option<u8> {
        let class = &self.sqlstate[..2];
        let is_warning = class == "01";
        let is_not_found = class == "02";
        match matched {
            Matched::Number(number) => (number == self.number).then_some(2),
            Matched::SqlState(state) => (state == self.sqlstate.as_bytes()).then_some(1),
            // SELECT … INTO without a row is both, and the handler that was declared last takes it, as
            // in MySQL.
            Matched::NotFound => is_not_found.then_some(0),
            Matched::Warning => {
                let warns = is_warning || self.level == Level::Warning;
                warns.then_some(0)
            }
            Matched::Exception => {
                let excepts = self.level == Level::Error && !is_warning && !is_not_found;
                excepts.then_some(0)
            }
        }
    }
}

/// The handler that takes a condition, by scope and position there: of the innermost scope that has
/// one, the most specific. None does where that scope only declares its handlers later.
pub(crate) fn find(program: &Program, scope: usize, raised: Raised) -> Option<(usize, usize)> {
    let mut scope = Some(scope);
    while let Some(at) = scope {
        let here = &program.handler_scopes[at];
        if let Some(handler) = fitting(here, raised) {
            return Some((at, handler));
        }
        let hidden = here.hides.map(|hidden| &program.handler_scopes[hidden]);
        if hidden.is_some_and(|hidden| fitting(hidden, raised).is_some()) {
            return None;
        }
        scope = here.parent;
    }
    None
}

/// The most specific of a scope's handlers that take a condition.
fn fitting(scope: &HandlerScope, raised: Raised) -> Option<usize> {
    let specificity = |handler: &Handler| {
        let conditions = handler.conditions.iter();
        conditions
            .filter_map(|matched| raised.specificity(*matched))
            .max()
    };
    let handlers = scope.handlers.iter().enumerate().rev();
    let fitting = handlers.filter_map(|(number, handler)| Some((specificity(handler)?, number)));
    let (_, number) = fitting.max_by_key(|(specificity, _)| *specificity)?;
    Some(number)
}

/// What a condition's SQLSTATE is raised as where SIGNAL gives no number and text.
fn general(sqlstate: [u8; 5]) -> Error {
    match &sqlstate[..2] {
        b"01" => Error::signalled_warning(),
        b"02" => Error::signalled_not_found(),
        _ => Error::signalled_exception(),
    }
}

/// A condition as SIGNAL builds it.
struct Built {
    /// What it was when it was handled: RESIGNAL without a SQLSTATE leaves that.
    level: Level,
    number: u16,
    sqlstate: [u8; 5],
    message: String,
    items: Vec<(SignalItem, String)>,
}

impl Built {
    fn new(sqlstate: [u8; 5]) -> Built {
        let general = general(sqlstate);
        Built {
            level: Level::Error,
            number: general.number(),
            sqlstate,
            message: general.message().to_owned(),
            items: Vec::new(),
        }
    }

    fn of(level: Level, condition: &Condition) -> Built {
        let mut sqlstate = *b"HY000";
        sqlstate.copy_from_slice(condition.sqlstate.as_bytes());
        Built {
            level,
            number: condition.number,
            sqlstate,
            message: condition.message.clone(),
            items: condition.items.as_deref().cloned().unwrap_or_default(),
        }
    }

    fn set(&mut self, item: SignalItem, (value, ty): Typed) -> Result<()> {
        const MESSAGE_CHARS_MAX: usize = 128;
        const NAME_CHARS_MAX: usize = 64;
        let name = item_name(item);
        if value.is_null() {
            return Err(Error::wrong_value_for_variable(name, "NULL"));
        }
        if item == SignalItem::MysqlErrno {
            let number = convert::to_int(&value).0;
            let refused = || {
                let shown = convert::to_text(&value, &ty);
                Error::wrong_value_for_variable(name, shown)
            };
            let number = u16::try_from(number).map_err(|_| refused())?;
            if number == 0 {
                return Err(refused());
            }
            self.number = number;
            return Ok(());
        }
        let text = convert::to_text(&value, &ty).to_string();
        let most = match item {
            SignalItem::MessageText => MESSAGE_CHARS_MAX,
            _ => NAME_CHARS_MAX,
        };
        if text.chars().count() > most {
            return Err(Error::condition_item_too_long(name));
        }
        if item == SignalItem::MessageText {
            self.message = text;
            return Ok(());
        }
        self.items.retain(|(known, _)| *known != item);
        self.items.push((item, text));
        Ok(())
    }

    fn into_error(self) -> Error {
        Error::signalled(self.number, self.sqlstate, self.message, self.items)
    }
}

/// SIGNAL and RESIGNAL: a warning among the statement's, or the error to raise.
pub(crate) fn signal(machine: &Machine<'_>, signal: &Signal, host: &mut impl Host) -> Result<()> {
    let sqlstate = match signal.condition {
        Some(Matched::SqlState(state)) => Some(state),
        Some(_) => return Err(Error::signal_bad_condition()),
        None => None,
    };
    let mut built = match (signal.is_resignal, sqlstate) {
        (false, state) => Built::new(state.unwrap_or(*b"45000")),
        (true, state) => {
            let Some(handled) = host.vars().handled.last().cloned() else {
                return Err(Error::resignal_without_handler());
            };
            resignalled(handled, state, host)
        }
    };
    for (item, value) in &signal.items {
        let value = machine.ask(value, host)?;
        built.set(*item, value)?;
    }
    let level = built.level;
    let error = built.into_error();
    let is_warning = level != Level::Error && !error.sqlstate().starts_with("02");
    if is_warning || error.sqlstate().starts_with("01") {
        let vars = host.vars_mut();
        vars.row_count = 0;
        vars.warn(Level::Warning, error.into_condition());
        return Ok(());
    }
    Err(error)
}

/// The condition that RESIGNAL raises anew, or beside the one that is handled. The conditions of the
/// statement that is handled are the current ones again.
fn resignalled(handled: Diagnostics, state: Option<[u8; 5]>, host: &mut impl Host) -> Built {
    let vars = host.vars_mut();
    vars.warnings_total = handled.total;
    vars.warnings = handled.warnings;
    let last = vars
        .warnings
        .last()
        .map(|(level, condition)| Built::of(*level, condition));
    let last = last.unwrap_or_else(|| Built::new(*b"45000"));
    match state {
        Some(state) => Built {
            level: Level::Error,
            number: general(state).number(),
            sqlstate: state,
            ..last
        },
        None => {
            if vars.warnings.pop().is_some() {
                vars.warnings_total -= 1;
            }
            last
        }
    }
}

/// GET DIAGNOSTICS.
pub(crate) fn diagnose(
    machine: &mut Machine<'_>,
    asked: &Diagnose,
    host: &mut impl Host,
) -> Result<()> {
    let area = match asked.is_stacked {
        true => match host.vars().handled.last() {
            Some(handled) => handled.clone(),
            None => return Err(Error::no_stacked_diagnostics()),
        },
        false => host.vars().diagnostics(),
    };
    match &asked.what {
        Asked::Statement(items) => {
            let row_count = host.vars().row_count;
            for (target, item) in items {
                let value = match item {
                    StatementItem::Number => area.total as i64,
                    StatementItem::RowCount => row_count,
                };
                machine.assign(target, (Value::Int(value), DataType::BIGINT), host)?;
            }
        }
        Asked::Condition { number, items } => {
            let number = convert::to_int(&machine.ask(number, host)?.0).0;
            let at = usize::try_from(number)
                .ok()
                .and_then(|at| at.checked_sub(1));
            let Some((_, condition)) = at.and_then(|at| area.warnings.get(at)) else {
                let refused = Error::invalid_condition_number().into_condition();
                host.vars_mut().warn(Level::Error, refused);
                return Ok(());
            };
            for (target, item) in items {
                machine.assign(target, item_value(condition, *item), host)?;
            }
        }
    }
    Ok(())
}

fn item_value(condition: &Condition, item: ConditionItem) -> Typed {
    let text = |text: &str| {
        let length = text.chars().count() as u32;
        (Value::text(text), DataType::varchar(length))
    };
    match item {
        ConditionItem::ReturnedSqlState => text(condition.sqlstate),
        ConditionItem::Signal(SignalItem::MysqlErrno) => {
            (Value::Int(condition.number.into()), DataType::BIGINT)
        }
        ConditionItem::Signal(SignalItem::MessageText) => text(&condition.message),
        ConditionItem::Signal(item) => {
            let given = condition.items.iter().flat_map(|items| items.iter());
            let mut given = given.filter(|(known, _)| *known == item);
            match (given.next(), item) {
                (Some((_, value)), _) => text(value),
                (None, SignalItem::ClassOrigin | SignalItem::SubclassOrigin) => {
                    text(origin(condition.sqlstate))
                }
                (None, _) => text(""),
            }
        }
    }
}

/// Who defines a SQLSTATE's class: classes that begin with these characters are the standard's.
fn origin(sqlstate: &str) -> &'static str {
    match sqlstate.as_bytes().first() {
        Some(b'0'..=b'4' | b'A'..=b'H') => "ISO 9075",
        _ => "MySQL",
    }
}

fn item_name(item: SignalItem) -> &'static str {
    match item {
        SignalItem::ClassOrigin => "CLASS_ORIGIN",
        SignalItem::SubclassOrigin => "SUBCLASS_ORIGIN",
        SignalItem::MessageText => "MESSAGE_TEXT",
        SignalItem::MysqlErrno => "MYSQL_ERRNO",
        SignalItem::ConstraintCatalog => "CONSTRAINT_CATALOG",
        SignalItem::ConstraintSchema => "CONSTRAINT_SCHEMA",
        SignalItem::ConstraintName => "CONSTRAINT_NAME",
        SignalItem::CatalogName => "CATALOG_NAME",
        SignalItem::SchemaName => "SCHEMA_NAME",
        SignalItem::TableName => "TABLE_NAME",
        SignalItem::ColumnName => "COLUMN_NAME",
        SignalItem::CursorName => "CURSOR_NAME",
    }
}
