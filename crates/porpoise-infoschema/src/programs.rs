//! Stored programs: information_schema.ROUTINES, PARAMETERS and TRIGGERS, and SHOW CREATE of them.
//!
//! What they show is read from the program's own text, as it was created.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use porpoise_accounts::Account;
use porpoise_accounts::routine::RoutineName;
use porpoise_catalog::StoredProgram;
use porpoise_catalog::program::{ProgramKind, ProgramRecord, TriggerRecord};
use porpoise_catalog::program_statistics::Times;
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::quote;
use porpoise_core::reply::ResultColumn;
use porpoise_core::variables::{SessionVars, SqlMode};
use porpoise_executor::Exec;
use porpoise_executor::virtual_table::{Lookup, Sink, VirtualSource};
use porpoise_expr::typing::declared::{TypeContext, data_type};
use porpoise_session::check::grants;
use porpoise_session::session_state::SessionState;
use porpoise_sql::{Modes, ast};
use porpoise_types::{Charset, Collation, DataType, Value};

use super::*;
use crate::objects::{CATALOG, type_columns, type_word, visible_schemas};
use crate::show::ShowContext;

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "performance_schema",
        name: "events_statements_summary_by_program",
        columns: &[
            ("OBJECT_TYPE", name, false),
            ("OBJECT_SCHEMA", exact, false),
            ("OBJECT_NAME", name, false),
            ("COUNT_STAR", ubig, false),
            ("SUM_TIMER_WAIT", ubig, false),
            ("MIN_TIMER_WAIT", ubig, false),
            ("AVG_TIMER_WAIT", ubig, false),
            ("MAX_TIMER_WAIT", ubig, false),
            ("COUNT_STATEMENTS", ubig, false),
            ("SUM_STATEMENTS_WAIT", ubig, false),
            ("MIN_STATEMENTS_WAIT", ubig, false),
            ("AVG_STATEMENTS_WAIT", ubig, false),
            ("MAX_STATEMENTS_WAIT", ubig, false),
            ("SUM_ERRORS", ubig, false),
        ],
        rows: summary,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "events_statements_summary_by_program_line",
        columns: &[
            ("OBJECT_TYPE", name, false),
            ("OBJECT_SCHEMA", exact, false),
            ("OBJECT_NAME", name, false),
            ("LINE", uint, false),
            ("STATEMENT", long, true),
            ("COUNT_STAR", ubig, false),
            ("SUM_TIMER_WAIT", ubig, false),
            ("MIN_TIMER_WAIT", ubig, false),
            ("AVG_TIMER_WAIT", ubig, false),
            ("MAX_TIMER_WAIT", ubig, false),
            ("SUM_ERRORS", ubig, false),
        ],
        rows: summary_by_line,
    },
    VirtualSource {
        schema: "information_schema",
        name: "ROUTINES",
        columns: &[
            ("SPECIFIC_NAME", name, false),
            ("ROUTINE_CATALOG", name, false),
            ("ROUTINE_SCHEMA", exact, false),
            ("ROUTINE_NAME", name, false),
            ("ROUTINE_TYPE", name, false),
            ("DATA_TYPE", long, true),
            ("CHARACTER_MAXIMUM_LENGTH", big, true),
            ("CHARACTER_OCTET_LENGTH", big, true),
            ("NUMERIC_PRECISION", uint, true),
            ("NUMERIC_SCALE", uint, true),
            ("DATETIME_PRECISION", uint, true),
            ("CHARACTER_SET_NAME", name, true),
            ("COLLATION_NAME", name, true),
            ("DTD_IDENTIFIER", long, true),
            ("ROUTINE_BODY", name, false),
            ("ROUTINE_DEFINITION", long, true),
            ("EXTERNAL_NAME", name, true),
            ("EXTERNAL_LANGUAGE", name, false),
            ("PARAMETER_STYLE", name, false),
            ("IS_DETERMINISTIC", yes_no, false),
            ("SQL_DATA_ACCESS", name, false),
            ("SQL_PATH", name, true),
            ("SECURITY_TYPE", name, false),
            ("CREATED", moment, false),
            ("LAST_ALTERED", moment, false),
            ("SQL_MODE", wide, false),
            ("ROUTINE_COMMENT", wide, false),
            ("DEFINER", word, false),
            ("CHARACTER_SET_CLIENT", name, false),
            ("COLLATION_CONNECTION", name, false),
            ("DATABASE_COLLATION", name, false),
        ],
        rows: routines,
    },
    VirtualSource {
        schema: "information_schema",
        name: "PARAMETERS",
        columns: &[
            ("SPECIFIC_CATALOG", name, false),
            ("SPECIFIC_SCHEMA", exact, false),
            ("SPECIFIC_NAME", name, false),
            ("ORDINAL_POSITION", ubig, false),
            ("PARAMETER_MODE", name, true),
            ("PARAMETER_NAME", name, true),
            ("DATA_TYPE", long, true),
            ("CHARACTER_MAXIMUM_LENGTH", big, true),
            ("CHARACTER_OCTET_LENGTH", big, true),
            ("NUMERIC_PRECISION", uint, true),
            ("NUMERIC_SCALE", big, true),
            ("DATETIME_PRECISION", uint, true),
            ("CHARACTER_SET_NAME", name, true),
            ("COLLATION_NAME", name, true),
            ("DTD_IDENTIFIER", long, false),
            ("ROUTINE_TYPE", name, false),
        ],
        rows: parameters,
    },
    VirtualSource {
        schema: "information_schema",
        name: "TRIGGERS",
        columns: &[
            ("TRIGGER_CATALOG", name, false),
            ("TRIGGER_SCHEMA", exact, false),
            ("TRIGGER_NAME", name, false),
            ("EVENT_MANIPULATION", name, false),
            ("EVENT_OBJECT_CATALOG", name, false),
            ("EVENT_OBJECT_SCHEMA", exact, false),
            ("EVENT_OBJECT_TABLE", exact, false),
            ("ACTION_ORDER", uint, false),
            ("ACTION_CONDITION", long, true),
            ("ACTION_STATEMENT", long, false),
            ("ACTION_ORIENTATION", name, false),
            ("ACTION_TIMING", name, false),
            ("ACTION_REFERENCE_OLD_TABLE", name, true),
            ("ACTION_REFERENCE_NEW_TABLE", name, true),
            ("ACTION_REFERENCE_OLD_ROW", name, false),
            ("ACTION_REFERENCE_NEW_ROW", name, false),
            ("CREATED", moment, false),
            ("SQL_MODE", wide, false),
            ("DEFINER", word, false),
            ("CHARACTER_SET_CLIENT", name, false),
            ("COLLATION_CONNECTION", name, false),
            ("DATABASE_COLLATION", name, false),
        ],
        rows: triggers,
    },
];

/// A program and what its text says.
pub(crate) struct Parsed {
    program: Arc<StoredProgram>,
    statement: ast::CreateProgram,
    mode: SqlMode,
}

impl Parsed {
    /// `None` for a text that can't be read, which no CREATE leaves.
    pub(crate) fn of(program: &Arc<StoredProgram>) -> Option<Parsed> {
        let record = &program.record;
        let mode = SqlMode::parse(&record.sql_mode).unwrap_or_default();
        let parsed = porpoise_sql::parse_statement(record.sql.as_bytes(), 0, modes(mode));
        match parsed.ok()??.statement {
            ast::Statement::CreateProgram(statement) => Some(Parsed {
                program: Arc::clone(program),
                statement: *statement,
                mode,
            }),
            _ => None,
        }
    }

    pub(crate) fn record(&self) -> &ProgramRecord {
        &self.program.record
    }

    fn source(&self, span: ast::Span) -> &str {
        let bytes = span.of(self.record().sql.as_bytes());
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub(crate) fn body(&self) -> &str {
        self.source(self.statement.body.span)
    }

    fn characteristics(&self) -> ast::Characteristics {
        match &self.statement.kind {
            ast::ProgramKind::Procedure {
                characteristics, ..
            }
            | ast::ProgramKind::Function {
                characteristics, ..
            } => characteristics.clone(),
            _ => ast::Characteristics::default(),
        }
    }

    fn data_access(&self) -> &str {
        let altered = self.record().altered.data_access.as_deref();
        let written = self.characteristics().data_access;
        let written = written.unwrap_or(ast::DataAccess::ContainsSql);
        altered.unwrap_or(written.sql())
    }

    fn comment(&self) -> String {
        if let Some(comment) = &self.record().altered.comment {
            return comment.clone();
        }
        let comment = self.characteristics().comment.unwrap_or_default();
        String::from_utf8_lossy(&comment).into_owned()
    }

    fn parameters(&self) -> (&[ast::Parameter], &str) {
        match &self.statement.kind {
            ast::ProgramKind::Procedure {
                parameters,
                parameters_span,
                ..
            }
            | ast::ProgramKind::Function {
                parameters,
                parameters_span,
                ..
            } => (parameters, self.source(*parameters_span)),
            _ => (&[], ""),
        }
    }

    fn returns(&self) -> Option<DataType> {
        match &self.statement.kind {
            ast::ProgramKind::Function { returns, .. } => {
                self.data_type(&returns.data_type, returns.collation.as_ref())
            }
            _ => None,
        }
    }

    /// A declared type, as the program has it.
    fn data_type(
        &self,
        written: &ast::DataType,
        collation: Option<&ast::Ident>,
    ) -> Option<DataType> {
        let mut vars = SessionVars::new(0);
        vars.sql_mode = self.mode;
        let mut context = TypeContext {
            session: &mut vars,
            collation: self.database_collation(),
            now_us: 0,
        };
        data_type(written, collation, "", &mut context).ok()
    }

    fn database_collation(&self) -> Collation {
        Collation::by_id(self.record().collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI)
    }

    /// CHARACTER_SET_CLIENT, COLLATION_CONNECTION and DATABASE_COLLATION.
    pub(crate) fn collations(&self) -> [Value; 3] {
        [
            text(&self.record().client_charset),
            text(&self.record().connection_collation),
            text(self.database_collation().name()),
        ]
    }

    /// The type of the statement that makes the program again. Its characters are those of the client
    /// that made the program: where results aren't converted (`character_set_results` is `binary`) a
    /// dump has their bytes behind a SET of that character set.
    pub(crate) fn statement_type(&self) -> DataType {
        let charset = Charset::by_name(&self.record().client_charset);
        let charset = charset.filter(|charset| *charset != Charset::Binary);
        let charset = charset.unwrap_or(Charset::Utf8mb4);
        DataType::varchar(1024).with_collation(charset.default_collation())
    }

    /// The statement that makes the program again.
    fn create_text(&self) -> String {
        let record = self.record();
        let (user, host) = definer(record);
        let is_trigger = record.kind == ProgramKind::Trigger;
        let name = |name: &str| match self.mode.ansi_quotes() && !is_trigger {
            true => format!("\"{}\"", name.replace('"', "\"\"")),
            false => quote::name(name).to_string(),
        };
        let mut out = format!(
            "CREATE DEFINER={}@{} {} {}",
            name(user),
            name(host),
            record.kind.name(),
            name(&record.name)
        );
        if let Some(fired) = &record.trigger {
            let table = name(&fired.table);
            let (timing, event) = (timing(fired), &fired.event);
            let _ = write!(
                out,
                " {timing} {event} ON {table} FOR EACH ROW {}",
                self.body()
            );
            return out;
        }
        let _ = write!(out, "({})", self.parameters().1);
        if let Some(returns) = self.returns() {
            let _ = write!(out, " RETURNS {}", type_text(&returns));
        }
        out.push('\n');
        self.write_characteristics(&mut out);
        out.push_str(self.body());
        out
    }

    fn write_characteristics(&self, out: &mut String) {
        let said = self.characteristics();
        let access = self.data_access();
        if access != ast::DataAccess::ContainsSql.sql() {
            let _ = writeln!(out, "    {access}");
        }
        if said.deterministic == Some(true) {
            out.push_str("    DETERMINISTIC\n");
        }
        if self.record().invoker {
            out.push_str("    SQL SECURITY INVOKER\n");
        }
        let comment = self.comment();
        if !comment.is_empty() {
            let _ = writeln!(out, "    COMMENT '{}'", comment.replace('\'', "''"));
        }
    }
}

/// How the parser reads a text that was written under a SQL mode.
fn modes(mode: SqlMode) -> Modes {
    let flags = [
        (mode.ansi_quotes(), Modes::ANSI_QUOTES),
        (mode.pipes_as_concat(), Modes::PIPES_AS_CONCAT),
        (mode.no_backslash_escapes(), Modes::NO_BACKSLASH_ESCAPES),
        (mode.high_not_precedence(), Modes::HIGH_NOT_PRECEDENCE),
        (mode.ignore_space(), Modes::IGNORE_SPACE),
        (mode.real_as_float(), Modes::REAL_AS_FLOAT),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    set.fold(Modes::NONE, |modes, (_, flag)| modes.with(*flag))
}

pub(crate) fn definer(record: &ProgramRecord) -> (&str, &str) {
    let definer = &record.definer;
    definer.rsplit_once('@').unwrap_or((definer, "%"))
}

fn timing(fired: &TriggerRecord) -> &'static str {
    match fired.is_before {
        true => "BEFORE",
        false => "AFTER",
    }
}

/// A type as SHOW CREATE FUNCTION prints it: with its character set, and the collation where that
/// isn't the character set's own.
fn type_text(ty: &DataType) -> String {
    let mut out = ty.sql_name();
    if ty.is_string() && !ty.is_binary_string() {
        let (charset, collation) = (ty.collation().charset(), ty.collation());
        let _ = write!(out, " CHARSET {}", charset.name());
        if collation != charset.default_collation() {
            let _ = write!(out, " COLLATE {}", collation.name());
        }
    }
    out
}

/// What a session may know of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// Nothing at all.
    Nothing,
    /// That it is there.
    Name,
    /// Its body too.
    All,
}

/// What a session may know of a routine (MySQL 8.4 manual, 15.7.7.9) or of a trigger (28.3.45).
pub fn sight(state: &SessionState, record: &ProgramRecord) -> Sight {
    let Some(grants) = grants(state) else {
        return Sight::All;
    };
    if let Some(fired) = &record.trigger {
        let held = grants.on_table(&record.schema, &fired.table);
        return match held.has(Privilege::Trigger) {
            true => Sight::All,
            false => Sight::Nothing,
        };
    }
    if record.event.is_some() {
        return match grants.on_schema(&record.schema).has(Privilege::Event) {
            true => Sight::All,
            false => Sight::Nothing,
        };
    }
    let is_own = |own: &Arc<Account>| (own.user.as_str(), own.host.as_str()) == definer(record);
    if state.account.as_ref().is_some_and(is_own)
        || grants.global.has(Privilege::Select)
        || grants.has_dynamic("SHOW_ROUTINE")
    {
        return Sight::All;
    }
    let held = grants.on_routine(&RoutineName {
        schema: record.schema.clone(),
        name: record.name.clone(),
        is_function: record.kind == ProgramKind::Function,
    });
    let some = [
        Privilege::CreateRoutine,
        Privilege::AlterRoutine,
        Privilege::Execute,
    ];
    match some.iter().any(|privilege| held.has(*privilege)) {
        true => Sight::Name,
        false => Sight::Nothing,
    }
}

/// The programs that a session may know of, by schema and name.
pub(crate) fn visible(exec: &Exec<'_>, lookup: &Lookup) -> Vec<(Parsed, Sight)> {
    let mut found = Vec::new();
    for entry in visible_schemas(exec, lookup) {
        let mut programs: Vec<_> = entry.programs.values().collect();
        programs.sort_by(|a, b| {
            (&a.record.name, a.record.kind.name()).cmp(&(&b.record.name, b.record.kind.name()))
        });
        let seen = programs.into_iter().filter_map(|program| {
            let sight = sight(exec.session, &program.record);
            (sight > Sight::Nothing).then_some(())?;
            Some((Parsed::of(program)?, sight))
        });
        found.extend(seen);
    }
    found
}

fn is_routine(parsed: &Parsed) -> bool {
    matches!(
        parsed.record().kind,
        ProgramKind::Procedure | ProgramKind::Function
    )
}

/// DATA_TYPE to DTD_IDENTIFIER of a type; of none where there is no type.
fn described(ty: Option<&DataType>, without: Value) -> Vec<Value> {
    let Some(ty) = ty else {
        let nulls = std::iter::repeat_n(Value::Null, 8);
        return std::iter::once(without).chain(nulls).collect();
    };
    let columns = type_columns(ty);
    std::iter::once(text(type_word(ty)))
        .chain(columns)
        .collect()
}

fn routines(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for (parsed, sight) in visible(exec, lookup) {
        if !is_routine(&parsed) {
            continue;
        }
        let record = parsed.record();
        let said = parsed.characteristics();
        let altered = record.altered.at_s.unwrap_or(record.created_s);
        let altered = local_time(exec, altered);
        let created = local_time(exec, record.created_s);
        let mut values = vec![
            text(&record.name),
            text(CATALOG),
            text(&record.schema),
            text(&record.name),
            text(record.kind.name()),
        ];
        values.extend(described(parsed.returns().as_ref(), text("")));
        values.extend([
            text("SQL"),
            some_text((sight == Sight::All).then(|| parsed.body())),
            Value::Null,
            text("SQL"),
            text("SQL"),
            yes(said.deterministic == Some(true)),
            text(parsed.data_access()),
            Value::Null,
            text(match record.invoker {
                true => "INVOKER",
                false => "DEFINER",
            }),
            created,
            altered,
            text(&record.sql_mode),
            text(parsed.comment()),
            text(&record.definer),
        ]);
        values.extend(parsed.collations());
        row(exec, &values)?;
    }
    Ok(())
}

fn parameters(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for (parsed, _) in visible(exec, lookup) {
        let record = parsed.record();
        let mut send = |number: u64, mode: Value, name: Value, ty: Option<DataType>| {
            let mut values = vec![
                text(CATALOG),
                text(&record.schema),
                text(&record.name),
                Value::UInt(number),
                mode,
                name,
            ];
            values.extend(described(ty.as_ref(), Value::Null));
            values.push(text(record.kind.name()));
            row(exec, &values)
        };
        if let Some(returns) = parsed.returns() {
            send(0, Value::Null, Value::Null, Some(returns))?;
        }
        for (number, parameter) in (1..).zip(parsed.parameters().0) {
            let mode = match parameter.mode {
                ast::ParameterMode::In => "IN",
                ast::ParameterMode::Out => "OUT",
                ast::ParameterMode::InOut => "INOUT",
            };
            let ty = parsed.data_type(&parameter.data_type, parameter.collation.as_ref());
            send(number, text(mode), text(parameter.name.as_str()), ty)?;
        }
    }
    Ok(())
}

/// What the runs of programs have taken; those that have not run have no row.
fn summary(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for entry in visible_schemas(exec, &Lookup::default()) {
        for program in entry.programs.values() {
            let (record, statistics) = (&program.record, &program.statistics);
            let runs = statistics.runs.times();
            if runs.count == 0 || sight(exec.session, record) == Sight::Nothing {
                continue;
            }
            let mut values = vec![
                text(record.kind.name()),
                text(&record.schema),
                text(&record.name),
            ];
            values.extend(figures(runs));
            values.extend(figures(statistics.statements.times()));
            values.push(Value::UInt(statistics.errors.load(Ordering::Relaxed)));
            row(exec, &values)?;
        }
    }
    Ok(())
}

/// What each statement of the programs has taken; those that have not run have no row.
fn summary_by_line(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for entry in visible_schemas(exec, &Lookup::default()) {
        for program in entry.programs.values() {
            let record = &program.record;
            let sight = sight(exec.session, record);
            let statements = program.statistics.by_statement.get();
            let (Some(statements), true) = (statements, sight > Sight::Nothing) else {
                continue;
            };
            for statement in statements {
                let runs = statement.runs.times();
                if runs.count == 0 {
                    continue;
                }
                let mut values = vec![
                    text(record.kind.name()),
                    text(&record.schema),
                    text(&record.name),
                    Value::UInt(statement.line as u64),
                    match sight {
                        Sight::All => text(&statement.text),
                        _ => Value::Null,
                    },
                ];
                values.extend(figures(runs));
                values.push(Value::UInt(statement.errors.load(Ordering::Relaxed)));
                row(exec, &values)?;
            }
        }
    }
    Ok(())
}

fn figures(times: Times) -> [Value; 5] {
    let figures = [
        times.count,
        times.sum_ps,
        times.min_ps,
        times.avg_ps,
        times.max_ps,
    ];
    figures.map(Value::UInt)
}

fn triggers(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    for (parsed, _) in visible(exec, lookup) {
        let record = parsed.record();
        let Some(fired) = &record.trigger else {
            continue;
        };
        let same = |other: &Arc<StoredProgram>| {
            let other = other.record.trigger.as_ref();
            other.is_some_and(|other| other.fired() == fired.fired())
        };
        let rivals = exec.catalog.triggers(&record.schema, &fired.table);
        let mut rivals = rivals.iter().filter(|other| same(other));
        let before = rivals.position(|other| other.record.name == record.name);
        let mut values = vec![
            text(CATALOG),
            text(&record.schema),
            text(&record.name),
            text(&fired.event),
            text(CATALOG),
            text(&record.schema),
            text(&fired.table),
            Value::UInt(before.map_or(0, |before| before as u64 + 1)),
            Value::Null,
            text(parsed.body()),
            text("ROW"),
            text(timing(fired)),
            Value::Null,
            Value::Null,
            text("OLD"),
            text("NEW"),
            local_time(exec, record.created_s),
            text(&record.sql_mode),
            text(&record.definer),
        ];
        values.extend(parsed.collations());
        row(exec, &values)?;
    }
    Ok(())
}

/// SHOW CREATE PROCEDURE, FUNCTION and TRIGGER; `None` where there is no such program, or none that
/// the session may know of.
pub(crate) fn show_create(
    context: ShowContext<'_>,
    kind: ProgramKind,
    name: &ast::ObjectName,
) -> Result<Option<(Vec<ResultColumn>, Vec<Vec<Value>>)>> {
    let state = context.state;
    let schema = state.schema_or_current(name.schema.as_ref())?;
    let catalog = context.shared.catalog.load_full();
    let Some(program) = catalog.program(&schema, kind, &name.name) else {
        return Ok(None);
    };
    let sight = sight(state, &program.record);
    if sight == Sight::Nothing {
        return match kind {
            ProgramKind::Trigger => Err(Error::specific_access_denied("TRIGGER")),
            _ => Ok(None),
        };
    }
    let Some(parsed) = Parsed::of(&program) else {
        return Ok(None);
    };
    let (first, statement) = match kind {
        ProgramKind::Procedure => ("Procedure", "Create Procedure"),
        ProgramKind::Function => ("Function", "Create Function"),
        ProgramKind::Trigger => ("Trigger", "SQL Original Statement"),
        ProgramKind::Event => return Ok(None),
    };
    let named = |name: &str| ResultColumn::expression(name, DataType::varchar(1024), true);
    let mut columns = [
        first,
        "sql_mode",
        statement,
        "character_set_client",
        "collation_connection",
        "Database Collation",
    ]
    .map(named)
    .to_vec();
    columns[2].ty = parsed.statement_type();
    let mut values = vec![
        text(&program.record.name),
        text(&program.record.sql_mode),
        match sight {
            Sight::All => Value::from(parsed.create_text()),
            _ => Value::Null,
        },
    ];
    values.extend(parsed.collations());
    if kind == ProgramKind::Trigger {
        columns.push(ResultColumn::expression(
            "Created",
            DataType::Timestamp { fsp: 2 },
            true,
        ));
        let created_us = program.record.created_s.saturating_mul(1_000_000);
        values.push(Value::DateTime(state.to_local(created_us)));
    }
    Ok(Some((columns, vec![values])))
}
