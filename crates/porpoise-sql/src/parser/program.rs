//! Stored programs: CREATE PROCEDURE, FUNCTION, TRIGGER and EVENT, and the statements of their
//! bodies.

use super::*;
use crate::ast::{
    AlterEvent, AlterRoutine, Arm, Block, Characteristics, Clause, ConditionItem, ConditionValue,
    CreateProgram, DataAccess, Declaration, Diagnostics, EventStatus, GetDiagnostics, IntoTarget,
    Parameter, ParameterMode, ProgramAssignment, ProgramKind, ProgramStatement, ProgramStep,
    ReturnType, Schedule, Signal, SignalItem, StatementItem, TriggerEvent, TriggerTime,
};

impl Parser<'_> {
    /// `PROCEDURE | FUNCTION | TRIGGER | EVENT …`, behind CREATE and DEFINER.
    pub(super) fn create_program(&mut self, definer: Option<Account>) -> Result<Statement> {
        let kind = self.eat_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]);
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let kind = match kind {
            Some("TRIGGER") => self.trigger_head()?,
            Some("EVENT") => self.event_head()?,
            Some("FUNCTION") => {
                let (parameters, parameters_span) = self.parameters(false)?;
                self.expect("RETURNS")?;
                let start = self.tok(0).token.start;
                let data_type = self.data_type()?;
                let collation = match self.eat("COLLATE") {
                    true => Some(self.ident_or_string()?),
                    false => None,
                };
                let span = Span {
                    start,
                    end: self.last_end,
                };
                ProgramKind::Function {
                    parameters,
                    parameters_span,
                    returns: ReturnType {
                        data_type,
                        collation,
                        span,
                    },
                    characteristics: self.characteristics()?,
                }
            }
            _ => {
                let (parameters, parameters_span) = self.parameters(true)?;
                ProgramKind::Procedure {
                    parameters,
                    parameters_span,
                    characteristics: self.characteristics()?,
                }
            }
        };
        Ok(Statement::CreateProgram(Box::new(CreateProgram {
            definer,
            if_not_exists,
            name,
            kind,
            body: self.body()?,
        })))
    }

    fn body(&mut self) -> Result<ProgramStatement> {
        self.programs += 1;
        let body = self.program_statement();
        self.programs -= 1;
        body
    }

    /// `ON SCHEDULE … DO`, behind `EVENT name`.
    fn event_head(&mut self) -> Result<ProgramKind> {
        self.expect_all(&["ON", "SCHEDULE"])?;
        let schedule = self.schedule()?;
        let preserve = self.on_completion()?;
        let status = self.event_status()?;
        let comment = match self.eat("COMMENT") {
            true => Some(self.string()?),
            false => None,
        };
        self.expect("DO")?;
        Ok(ProgramKind::Event {
            schedule,
            preserve,
            status,
            comment,
        })
    }

    fn schedule(&mut self) -> Result<Schedule> {
        if self.eat("AT") {
            return Ok(Schedule::At(self.expr()?));
        }
        self.expect("EVERY")?;
        let count = self.expr()?;
        let unit = self.time_unit()?;
        let starts = match self.eat("STARTS") {
            true => Some(self.expr()?),
            false => None,
        };
        let ends = match self.eat("ENDS") {
            true => Some(self.expr()?),
            false => None,
        };
        Ok(Schedule::Every {
            count,
            unit,
            starts,
            ends,
        })
    }

    fn on_completion(&mut self) -> Result<Option<bool>> {
        if !self.eat_all(&["ON", "COMPLETION"]) {
            return Ok(None);
        }
        let preserve = !self.eat("NOT");
        self.expect("PRESERVE")?;
        Ok(Some(preserve))
    }

    fn event_status(&mut self) -> Result<Option<EventStatus>> {
        if self.eat("ENABLE") {
            return Ok(Some(EventStatus::Enabled));
        }
        if !self.eat("DISABLE") {
            return Ok(None);
        }
        if !self.eat("ON") {
            return Ok(Some(EventStatus::Disabled));
        }
        match self.eat_any(&["REPLICA", "SLAVE"]) {
            Some(_) => Ok(Some(EventStatus::DisabledOnReplica)),
            None => Err(self.syntax_error()),
        }
    }

    /// `EVENT name …`, behind ALTER and DEFINER.
    pub(super) fn alter_event(&mut self, definer: Option<Account>) -> Result<Statement> {
        self.expect("EVENT")?;
        let name = self.object_name()?;
        let before = self.last_end;
        let schedule = match self.eat_all(&["ON", "SCHEDULE"]) {
            true => Some(self.schedule()?),
            false => None,
        };
        let preserve = self.on_completion()?;
        let rename = match self.eat_all(&["RENAME", "TO"]) {
            true => Some(self.object_name()?),
            false => None,
        };
        let status = self.event_status()?;
        let comment = match self.eat("COMMENT") {
            true => Some(self.string()?),
            false => None,
        };
        let body = match self.eat("DO") {
            true => Some(self.body()?),
            false => None,
        };
        if self.last_end == before {
            return Err(self.syntax_error());
        }
        Ok(Statement::AlterEvent(Box::new(AlterEvent {
            definer,
            name,
            schedule,
            preserve,
            rename,
            status,
            comment,
            body,
        })))
    }

    /// `PROCEDURE | FUNCTION name characteristics`, behind ALTER.
    pub(super) fn alter_routine(&mut self) -> Result<Statement> {
        let is_function = self.eat_any(&["PROCEDURE", "FUNCTION"]) == Some("FUNCTION");
        let name = self.object_name()?;
        let characteristics = self.characteristics()?;
        if characteristics.deterministic.is_some() {
            return Err(self.syntax_error());
        }
        Ok(Statement::AlterRoutine(Box::new(AlterRoutine {
            is_function,
            name,
            characteristics,
        })))
    }

    fn trigger_head(&mut self) -> Result<ProgramKind> {
        let time = match self.eat_any(&["BEFORE", "AFTER"]) {
            Some("BEFORE") => TriggerTime::Before,
            Some(_) => TriggerTime::After,
            None => return Err(self.syntax_error()),
        };
        let event = match self.eat_any(&["INSERT", "UPDATE", "DELETE"]) {
            Some("INSERT") => TriggerEvent::Insert,
            Some("UPDATE") => TriggerEvent::Update,
            Some(_) => TriggerEvent::Delete,
            None => return Err(self.syntax_error()),
        };
        self.expect("ON")?;
        let table = self.object_name()?;
        self.expect_all(&["FOR", "EACH", "ROW"])?;
        let order = match self.eat_any(&["FOLLOWS", "PRECEDES"]) {
            Some(word) => Some((word == "FOLLOWS", self.ident()?)),
            None => None,
        };
        Ok(ProgramKind::Trigger {
            time,
            event,
            table,
            order,
        })
    }

    fn parameters(&mut self, has_modes: bool) -> Result<(Vec<Parameter>, Span)> {
        self.need(TokenKind::LeftParen)?;
        let start = self.tok(0).token.start;
        let mut end = start;
        let mut parameters = Vec::new();
        if !self.is(TokenKind::RightParen) {
            parameters = self.list(|p| p.parameter(has_modes))?;
            end = self.last_end;
        }
        self.need(TokenKind::RightParen)?;
        Ok((parameters, Span { start, end }))
    }

    fn parameter(&mut self, has_modes: bool) -> Result<Parameter> {
        let mode = match has_modes {
            true => self.eat_any(&["IN", "OUT", "INOUT"]),
            false => None,
        };
        let name = self.ident()?;
        let start = self.tok(0).token.start;
        let data_type = self.data_type()?;
        let collation = match self.eat("COLLATE") {
            true => Some(self.ident_or_string()?),
            false => None,
        };
        Ok(Parameter {
            mode: match mode {
                Some("OUT") => ParameterMode::Out,
                Some("INOUT") => ParameterMode::InOut,
                _ => ParameterMode::In,
            },
            name,
            data_type,
            collation,
            type_span: Span {
                start,
                end: self.last_end,
            },
        })
    }

    fn characteristics(&mut self) -> Result<Characteristics> {
        let mut said = Characteristics::default();
        loop {
            if self.eat("COMMENT") {
                said.comment = Some(self.string()?);
            } else if self.eat_all(&["LANGUAGE", "SQL"]) {
            } else if self.eat("DETERMINISTIC") {
                said.deterministic = Some(true);
            } else if self.eat_all(&["NOT", "DETERMINISTIC"]) {
                said.deterministic = Some(false);
            } else if self.eat_all(&["CONTAINS", "SQL"]) {
                said.data_access = Some(DataAccess::ContainsSql);
            } else if self.eat_all(&["NO", "SQL"]) {
                said.data_access = Some(DataAccess::NoSql);
            } else if self.eat_all(&["READS", "SQL", "DATA"]) {
                said.data_access = Some(DataAccess::ReadsSqlData);
            } else if self.eat_all(&["MODIFIES", "SQL", "DATA"]) {
                said.data_access = Some(DataAccess::ModifiesSqlData);
            } else if self.eat_all(&["SQL", "SECURITY"]) {
                match self.eat_any(&["DEFINER", "INVOKER"]) {
                    Some(word) => said.invoker = Some(word == "INVOKER"),
                    None => return Err(self.syntax_error()),
                }
            } else {
                return Ok(said);
            }
        }
    }

    /// Statements with a semicolon behind each, up to one of these words.
    fn program_statements(&mut self, ends: &[&str]) -> Result<Vec<ProgramStatement>> {
        let mut statements = Vec::new();
        while !self.at_any(ends) {
            statements.push(self.program_statement()?);
            self.need(TokenKind::Semicolon)?;
        }
        Ok(statements)
    }

    fn program_statement(&mut self) -> Result<ProgramStatement> {
        let start = self.tok(0).token.start;
        let step = self.nested(Self::program_step)?;
        Ok(ProgramStatement {
            step,
            span: Span {
                start,
                end: self.last_end,
            },
        })
    }

    fn program_step(&mut self) -> Result<ProgramStep> {
        let has_label = self.at_ident() && self.is_ahead(1, TokenKind::Colon);
        let label = match has_label {
            true => {
                let label = self.ident()?;
                self.need(TokenKind::Colon)?;
                Some(label)
            }
            false => None,
        };
        let word = self.keyword();
        match word {
            "BEGIN" => return self.block(label),
            "LOOP" | "WHILE" | "REPEAT" => return self.program_loop(word, label),
            _ if has_label => return Err(self.syntax_error()),
            _ => {}
        }
        Ok(match word {
            "IF" => self.program_if()?,
            "CASE" => self.program_case()?,
            "ITERATE" => {
                self.advance();
                ProgramStep::Iterate(self.ident()?)
            }
            "LEAVE" => {
                self.advance();
                ProgramStep::Leave(self.ident()?)
            }
            "RETURN" => {
                self.advance();
                ProgramStep::Return(self.expr()?)
            }
            "OPEN" => {
                self.advance();
                ProgramStep::Open(self.ident()?)
            }
            "CLOSE" => {
                self.advance();
                ProgramStep::Close(self.ident()?)
            }
            "FETCH" => {
                self.advance();
                if self.eat("NEXT") {
                    self.expect("FROM")?;
                } else {
                    self.eat("FROM");
                }
                let cursor = self.ident()?;
                self.expect("INTO")?;
                let into = self.list(Self::variable_target)?;
                ProgramStep::Fetch { cursor, into }
            }
            "SET" if self.at_program_assignment() => {
                self.advance();
                ProgramStep::Set(self.list(Self::program_assignment)?)
            }
            _ => ProgramStep::Sql(Box::new(self.statement()?)),
        })
    }

    /// Whether SET names what may be a variable of the program or a column of a trigger's row.
    fn at_program_assignment(&mut self) -> bool {
        let is_assigned =
            |p: &mut Self, at| p.is_ahead(at, TokenKind::Eq) || p.is_ahead(at, TokenKind::Assign);
        if self.is_ahead(1, TokenKind::Variable) {
            return true;
        }
        self.at_ident_ahead(1)
            && (is_assigned(self, 2) || self.is_ahead(2, TokenKind::Dot) && is_assigned(self, 4))
    }

    fn program_assignment(&mut self) -> Result<ProgramAssignment> {
        if self.at_ident() && self.is_ahead(1, TokenKind::Dot) && self.at_row() {
            let old = self.ident()?.eq_ignore_ascii_case("OLD");
            self.need(TokenKind::Dot)?;
            let column = self.any_ident()?;
            self.assign()?;
            let value = self.expr()?;
            return Ok(ProgramAssignment::Row { old, column, value });
        }
        let is_name = self.at_ident()
            && (self.is_ahead(1, TokenKind::Eq) || self.is_ahead(1, TokenKind::Assign));
        if is_name {
            let name = self.ident()?;
            self.assign()?;
            let value = self.set_value()?;
            return Ok(ProgramAssignment::Name { name, value });
        }
        Ok(ProgramAssignment::Other(self.set_item(&mut None)?))
    }

    fn at_row(&mut self) -> bool {
        self.at_word("NEW") || self.at_word("OLD")
    }

    fn variable_target(&mut self) -> Result<IntoTarget> {
        match self.is(TokenKind::Variable) {
            true => self.variable().map(IntoTarget::User),
            false => self.ident().map(IntoTarget::Local),
        }
    }

    /// The label behind END, which must be that of the beginning (1310); where there was none, no
    /// label may follow.
    fn end_label(&mut self, label: Option<&Ident>) -> Result<()> {
        if !self.at_ident() {
            return Ok(());
        }
        match label {
            Some(label) if self.text().eq_ignore_ascii_case(label.as_bytes()) => {
                self.ident().map(drop)
            }
            Some(_) => {
                let error = self.error(ParseErrorKind::LabelMismatch);
                let label = self.ident()?;
                Err(ParseError {
                    near: label.as_str().into(),
                    ..error
                })
            }
            None => Err(self.syntax_error()),
        }
    }

    fn block(&mut self, label: Option<Ident>) -> Result<ProgramStep> {
        self.expect("BEGIN")?;
        let mut declarations = Vec::new();
        while self.at("DECLARE") {
            declarations.push(self.declaration()?);
            self.need(TokenKind::Semicolon)?;
        }
        let body = self.program_statements(&["END"])?;
        self.expect("END")?;
        self.end_label(label.as_ref())?;
        Ok(ProgramStep::Block(Box::new(Block {
            label,
            declarations,
            body,
        })))
    }

    fn declaration(&mut self) -> Result<Declaration> {
        self.expect("DECLARE")?;
        if let Some(word) = self.eat_any(&["CONTINUE", "EXIT"]) {
            self.expect_all(&["HANDLER", "FOR"])?;
            let conditions = self.list(Self::condition_value)?;
            return Ok(Declaration::Handler {
                continues: word == "CONTINUE",
                conditions,
                body: Box::new(self.program_statement()?),
            });
        }
        if self.at_ident() && self.at_ahead(1, "CONDITION") {
            let name = self.ident()?;
            self.expect_all(&["CONDITION", "FOR"])?;
            let value = self.condition_value()?;
            return Ok(Declaration::Condition { name, value });
        }
        if self.at_ident() && self.at_ahead(1, "CURSOR") {
            let name = self.ident()?;
            self.expect_all(&["CURSOR", "FOR"])?;
            let start = self.tok(0).token.start;
            let query = Box::new(self.query()?);
            let span = Span {
                start,
                end: self.last_end,
            };
            return Ok(Declaration::Cursor { name, query, span });
        }
        let names = self.list(Self::ident)?;
        let data_type = self.data_type()?;
        let collation = match self.eat("COLLATE") {
            true => Some(self.ident_or_string()?),
            false => None,
        };
        let default = match self.eat("DEFAULT") {
            true => Some(self.clause()?),
            false => None,
        };
        Ok(Declaration::Variables {
            names,
            data_type,
            collation,
            default,
        })
    }

    fn condition_value(&mut self) -> Result<ConditionValue> {
        if self.eat("SQLSTATE") {
            self.eat("VALUE");
            let text = self.string()?;
            return Ok(ConditionValue::SqlState((&*text).into()));
        }
        if self.eat("SQLWARNING") {
            return Ok(ConditionValue::SqlWarning);
        }
        if self.eat_all(&["NOT", "FOUND"]) {
            return Ok(ConditionValue::NotFound);
        }
        if self.eat("SQLEXCEPTION") {
            return Ok(ConditionValue::SqlException);
        }
        if self.at_ident() {
            return Ok(ConditionValue::Name(self.ident()?));
        }
        let number = u16::try_from(self.u64()?);
        number
            .map(ConditionValue::Number)
            .map_err(|_| self.syntax_error())
    }

    /// An expression, with its source text.
    fn clause(&mut self) -> Result<Clause> {
        let start = self.tok(0).token.start;
        let expr = self.expr()?;
        let span = Span {
            start,
            end: self.last_end,
        };
        Ok(Clause { expr, span })
    }

    fn program_if(&mut self) -> Result<ProgramStep> {
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        self.expect("IF")?;
        loop {
            let condition = self.clause()?;
            self.expect("THEN")?;
            let body = self.program_statements(&["ELSEIF", "ELSE", "END"])?;
            arms.push(Arm { condition, body });
            if self.eat("ELSEIF") {
                continue;
            }
            if self.eat("ELSE") {
                otherwise = self.program_statements(&["END"])?;
            }
            self.expect_all(&["END", "IF"])?;
            return Ok(ProgramStep::If { arms, otherwise });
        }
    }

    fn program_case(&mut self) -> Result<ProgramStep> {
        self.expect("CASE")?;
        let operand = match self.at("WHEN") {
            true => None,
            false => Some(self.clause()?),
        };
        let mut arms = Vec::new();
        while self.eat("WHEN") {
            let condition = self.clause()?;
            self.expect("THEN")?;
            let body = self.program_statements(&["WHEN", "ELSE", "END"])?;
            arms.push(Arm { condition, body });
        }
        if arms.is_empty() {
            return Err(self.syntax_error());
        }
        let otherwise = match self.eat("ELSE") {
            true => Some(self.program_statements(&["END"])?),
            false => None,
        };
        self.expect_all(&["END", "CASE"])?;
        Ok(ProgramStep::Case {
            operand,
            arms,
            otherwise,
        })
    }

    fn program_loop(&mut self, word: &str, label: Option<Ident>) -> Result<ProgramStep> {
        self.advance();
        let step = match word {
            "LOOP" => {
                let body = self.program_statements(&["END"])?;
                self.expect_all(&["END", "LOOP"])?;
                ProgramStep::Loop {
                    label: label.clone(),
                    body,
                }
            }
            "WHILE" => {
                let condition = self.clause()?;
                self.expect("DO")?;
                let body = self.program_statements(&["END"])?;
                self.expect_all(&["END", "WHILE"])?;
                ProgramStep::While {
                    label: label.clone(),
                    condition,
                    body,
                }
            }
            _ => {
                let body = self.program_statements(&["UNTIL"])?;
                self.expect("UNTIL")?;
                let until = self.clause()?;
                self.expect_all(&["END", "REPEAT"])?;
                ProgramStep::Repeat {
                    label: label.clone(),
                    body,
                    until,
                }
            }
        };
        self.end_label(label.as_ref())?;
        Ok(step)
    }

    /// SIGNAL, RESIGNAL.
    pub(super) fn signal(&mut self) -> Result<Statement> {
        let is_resignal = self.at("RESIGNAL");
        self.advance();
        let has_condition = self.at("SQLSTATE") || self.at_ident();
        let condition = match has_condition || !is_resignal {
            true => Some(self.condition_value()?),
            false => None,
        };
        let items = match self.eat("SET") {
            true => self.list(|p| {
                let item = p.signal_item()?;
                p.need(TokenKind::Eq)?;
                Ok((item, p.expr()?))
            })?,
            false => Vec::new(),
        };
        Ok(Statement::Signal(Box::new(Signal {
            is_resignal,
            condition,
            items,
        })))
    }

    fn signal_item(&mut self) -> Result<SignalItem> {
        use SignalItem as I;
        const ITEMS: &[(&str, SignalItem)] = &[
            ("CLASS_ORIGIN", I::ClassOrigin),
            ("SUBCLASS_ORIGIN", I::SubclassOrigin),
            ("MESSAGE_TEXT", I::MessageText),
            ("MYSQL_ERRNO", I::MysqlErrno),
            ("CONSTRAINT_CATALOG", I::ConstraintCatalog),
            ("CONSTRAINT_SCHEMA", I::ConstraintSchema),
            ("CONSTRAINT_NAME", I::ConstraintName),
            ("CATALOG_NAME", I::CatalogName),
            ("SCHEMA_NAME", I::SchemaName),
            ("TABLE_NAME", I::TableName),
            ("COLUMN_NAME", I::ColumnName),
            ("CURSOR_NAME", I::CursorName),
        ];
        let found = ITEMS.iter().find(|(word, _)| self.at_word(word));
        match found {
            Some((_, item)) => {
                self.advance();
                Ok(*item)
            }
            None => Err(self.syntax_error()),
        }
    }

    /// GET DIAGNOSTICS.
    pub(super) fn get_diagnostics(&mut self) -> Result<Statement> {
        self.expect("GET")?;
        let is_stacked = self.eat_any(&["CURRENT", "STACKED"]) == Some("STACKED");
        self.expect("DIAGNOSTICS")?;
        let what = match self.eat("CONDITION") {
            true => {
                let number = self.expr()?;
                let items = self.list(|p| {
                    let target = p.variable_target()?;
                    p.need(TokenKind::Eq)?;
                    if p.at_word("RETURNED_SQLSTATE") {
                        p.advance();
                        return Ok((target, ConditionItem::ReturnedSqlState));
                    }
                    Ok((target, ConditionItem::Signal(p.signal_item()?)))
                })?;
                Diagnostics::Condition { number, items }
            }
            false => Diagnostics::Statement(self.list(|p| {
                let target = p.variable_target()?;
                p.need(TokenKind::Eq)?;
                let item = match p.at_word("NUMBER") {
                    true => StatementItem::Number,
                    false if p.at_word("ROW_COUNT") => StatementItem::RowCount,
                    false => return Err(p.syntax_error()),
                };
                p.advance();
                Ok((target, item))
            })?),
        };
        Ok(Statement::GetDiagnostics(Box::new(GetDiagnostics {
            is_stacked,
            what,
        })))
    }
}
