//! Statements about the session and the server: SET, transactions, locks, prepared statements,
//! EXPLAIN, maintenance.

use super::*;

/// The first words of statements that have plans.
const EXPLAINABLE: &[&str] = &[
    "SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE",
];

/// Whether a text, which may be the beginning of one, is that of a statement that has a plan.
pub fn is_explainable(sql: &[u8], modes: Modes) -> bool {
    let mut lexer = Lexer::new(sql, 0, modes);
    let first =
        std::iter::repeat_with(|| lexer.next()).find(|token| token.kind != TokenKind::LeftParen);
    first.is_some_and(|token| {
        let word = token.text(sql);
        let mut words = EXPLAINABLE.iter();
        words.any(|one| one.as_bytes().eq_ignore_ascii_case(word))
    })
}

impl Parser<'_> {
    // -- SET
    // ----------------------------------------------------------------------------------------------

    pub(super) fn set(&mut self) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.expect("SET")?;
        match self.keyword() {
            "ROLE" if !self.assignment_ahead() => {
                self.advance();
                return Ok(Statement::SetRole(self.role_set()?));
            }
            "DEFAULT" => {
                self.advance();
                self.expect("ROLE")?;
                let roles = self.role_set()?;
                self.expect("TO")?;
                return Ok(Statement::SetDefaultRole {
                    roles,
                    users: self.list(Self::account)?,
                });
            }
            "PASSWORD" if self.password_ahead() => return self.set_password(),
            "RESOURCE" if self.at_ahead(1, "GROUP") => {
                return self.unsupported_from(start, "SET RESOURCE GROUP");
            }
            "TRANSACTION" if !self.assignment_ahead() => return self.set_transaction(None),
            _ => {}
        }
        if self.at_ahead(1, "TRANSACTION")
            && let Some(scope) = self.variable_scope()
        {
            return self.set_transaction(Some(scope));
        }
        let mut scope = None;
        Ok(Statement::Set(self.list(|p| p.set_item(&mut scope))?))
    }

    /// Whether the word here is assigned to.
    fn assignment_ahead(&mut self) -> bool {
        self.is_ahead(1, TokenKind::Eq) || self.is_ahead(1, TokenKind::Assign)
    }

    /// `PASSWORD = 'text'`, `PASSWORD FOR …`, `PASSWORD TO RANDOM`
    fn password_ahead(&mut self) -> bool {
        self.at_ahead(1, "FOR") || self.at_ahead(1, "TO") || self.assignment_ahead()
    }

    fn set_password(&mut self) -> Result<Statement> {
        self.expect("PASSWORD")?;
        let user = match self.eat("FOR") {
            true => Some(self.account()?),
            false => None,
        };
        let password = match self.eat_all(&["TO", "RANDOM"]) {
            true => None,
            false => {
                self.need(TokenKind::Eq)?;
                // PASSWORD('text') is of older versions.
                Some(match self.eat("PASSWORD") {
                    true => self.parens(Self::string)?,
                    false => self.string()?,
                })
            }
        };
        let replace = match self.eat("REPLACE") {
            true => Some(self.string()?),
            false => None,
        };
        let retain = self.eat_all(&["RETAIN", "CURRENT", "PASSWORD"]);
        Ok(Statement::SetPassword {
            user,
            password,
            replace,
            retain,
        })
    }

    /// `READ ONLY` or `READ WRITE`: whether it is the former.
    fn access_mode(&mut self) -> Result<bool> {
        self.expect("READ")?;
        let word = self.eat_any(&["ONLY", "WRITE"]);
        word.map_or_else(|| Err(self.syntax_error()), |word| Ok(word == "ONLY"))
    }

    fn set_transaction(&mut self, scope: Option<VariableScope>) -> Result<Statement> {
        self.expect("TRANSACTION")?;
        let (mut isolation, mut read_only) = (None, None);
        self.list(|p| {
            if p.eat_all(&["ISOLATION", "LEVEL"]) {
                isolation = Some(if p.eat_all(&["READ", "UNCOMMITTED"]) {
                    IsolationLevel::ReadUncommitted
                } else if p.eat_all(&["READ", "COMMITTED"]) {
                    IsolationLevel::ReadCommitted
                } else if p.eat_all(&["REPEATABLE", "READ"]) {
                    IsolationLevel::RepeatableRead
                } else {
                    p.expect("SERIALIZABLE")?;
                    IsolationLevel::Serializable
                });
                return Ok(());
            }
            read_only = Some(p.access_mode()?);
            Ok(())
        })?;
        Ok(Statement::SetTransaction {
            scope,
            isolation,
            read_only,
        })
    }

    /// One assignment. A scope word holds for the assignments behind it that have none.
    pub(super) fn set_item(&mut self, scope: &mut Option<VariableScope>) -> Result<SetItem> {
        match self.kind() {
            TokenKind::Variable => {
                let name = self.variable()?;
                self.assign()?;
                return Ok(SetItem::User {
                    name,
                    value: self.expr()?,
                });
            }
            TokenKind::AtAt => {
                let variable = self.system_variable()?;
                self.assign()?;
                return Ok(SetItem::System {
                    variable,
                    value: self.set_value()?,
                });
            }
            _ => {}
        }
        if self.at("NAMES") && !self.assignment_ahead() {
            self.advance();
            if self.eat("DEFAULT") {
                return Ok(SetItem::Names {
                    charset: None,
                    collation: None,
                });
            }
            let charset = Some(self.charset_name()?);
            let collation = match self.eat("COLLATE") {
                true => Some(self.charset_name()?),
                false => None,
            };
            return Ok(SetItem::Names { charset, collation });
        }
        if !self.assignment_ahead() && self.eat_charset_words() {
            return Ok(SetItem::Charset(match self.eat("DEFAULT") {
                true => None,
                false => Some(self.charset_name()?),
            }));
        }
        if !self.assignment_ahead()
            && !self.is_ahead(1, TokenKind::Dot)
            && let Some(written) = self.variable_scope()
        {
            *scope = Some(written);
        }
        let first = self.ident()?;
        let variable = match self.take(TokenKind::Dot) {
            true => SystemVariable {
                scope: *scope,
                component: Some(first),
                name: self.any_ident()?,
            },
            false => SystemVariable {
                scope: *scope,
                component: None,
                name: first,
            },
        };
        self.assign()?;
        Ok(SetItem::System {
            variable,
            value: self.set_value()?,
        })
    }

    /// `=`, `:=`
    pub(super) fn assign(&mut self) -> Result<()> {
        match self.take(TokenKind::Eq) {
            true => Ok(()),
            false => self.need(TokenKind::Assign),
        }
    }

    /// A system variable's value: an expression, or a word.
    pub(super) fn set_value(&mut self) -> Result<Expr> {
        if self.at("DEFAULT") && !self.is_ahead(1, TokenKind::LeftParen) {
            self.advance();
            return Ok(Expr::Default);
        }
        let ends = matches!(
            self.tok(1).token.kind,
            TokenKind::Comma | TokenKind::End | TokenKind::Semicolon
        );
        match ends && self.at_any(&["ON", "ALL", "BINARY", "ROW", "SYSTEM"]) {
            true => {
                let name = self.take_name();
                Ok(Expr::Column(Box::new(ColumnRef {
                    schema: None,
                    table: None,
                    name,
                })))
            }
            false => self.expr(),
        }
    }

    // -- Transactions and locks
    // ---------------------------------------------------------------------------

    pub(super) fn transaction(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        match word {
            "START" if self.at("TRANSACTION") => {
                self.advance();
                let (mut consistent_snapshot, mut read_only) = (false, None);
                if self.at("WITH") || self.at("READ") {
                    self.list(|p| {
                        if p.eat("WITH") {
                            consistent_snapshot = true;
                            return p.expect_all(&["CONSISTENT", "SNAPSHOT"]);
                        }
                        read_only = Some(p.access_mode()?);
                        Ok(())
                    })?;
                }
                Ok(Statement::Begin {
                    consistent_snapshot,
                    read_only,
                })
            }
            "START" if self.at_any(&["REPLICA", "SLAVE"]) => self.unsupported("START REPLICA"),
            "START" if self.at("GROUP_REPLICATION") => self.unsupported("START GROUP_REPLICATION"),
            "BEGIN" => {
                self.eat("WORK");
                Ok(Statement::Begin {
                    consistent_snapshot: false,
                    read_only: None,
                })
            }
            "COMMIT" => Ok(Statement::Commit(self.completion()?)),
            "ROLLBACK" => {
                self.eat("WORK");
                if self.eat("TO") {
                    self.eat("SAVEPOINT");
                    return Ok(Statement::RollbackTo(self.ident()?));
                }
                Ok(Statement::Rollback(self.completion()?))
            }
            "SAVEPOINT" => Ok(Statement::Savepoint(self.ident()?)),
            "RELEASE" => {
                self.expect("SAVEPOINT")?;
                Ok(Statement::ReleaseSavepoint(self.ident()?))
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`
    fn completion(&mut self) -> Result<Completion> {
        self.eat("WORK");
        let chain = match self.eat("AND") {
            true => {
                let no = self.eat("NO");
                self.expect("CHAIN")?;
                Some(!no)
            }
            false => None,
        };
        let release = match (self.eat("NO"), self.eat("RELEASE")) {
            (no, true) => Some(!no),
            (true, false) => return Err(self.syntax_error()),
            (false, false) => None,
        };
        Ok(Completion { chain, release })
    }

    pub(super) fn lock(&mut self) -> Result<Statement> {
        let lock = self.advance().keyword.text() == "LOCK";
        if self.eat("INSTANCE") {
            if lock {
                self.expect_all(&["FOR", "BACKUP"])?;
            }
            return Ok(Statement::LockInstance { lock });
        }
        if self.eat_any(&["TABLE", "TABLES"]).is_none() {
            return Err(self.syntax_error());
        }
        if !lock {
            return Ok(Statement::UnlockTables);
        }
        Ok(Statement::LockTables(self.list(|p| {
            let table = p.object_name()?;
            let alias = p.opt_lock_alias()?;
            if p.eat("READ") {
                let local = p.eat("LOCAL");
                return Ok(LockTable {
                    table,
                    alias,
                    write: false,
                    local,
                });
            }
            p.eat("LOW_PRIORITY");
            p.expect("WRITE")?;
            Ok(LockTable {
                table,
                alias,
                write: true,
                local: false,
            })
        })?))
    }

    fn opt_lock_alias(&mut self) -> Result<Option<Ident>> {
        self.opt_alias()
    }

    // -- Prepared statements
    // ------------------------------------------------------------------------------

    pub(super) fn prepared(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        match word {
            "PREPARE" => {
                let name = self.ident()?;
                self.expect("FROM")?;
                let source = match self.is(TokenKind::Variable) {
                    true => PrepareSource::Variable(self.variable()?),
                    false => PrepareSource::Text(self.string()?),
                };
                Ok(Statement::Prepare { name, source })
            }
            "EXECUTE" => {
                let name = self.ident()?;
                let using = match self.eat("USING") {
                    true => self.list(Self::variable)?,
                    false => Vec::new(),
                };
                Ok(Statement::Execute { name, using })
            }
            _ => {
                self.expect("PREPARE")?;
                Ok(Statement::Deallocate(self.ident()?))
            }
        }
    }

    // -- EXPLAIN
    // ------------------------------------------------------------------------------------------

    /// `EXPLAIN statement`, `DESCRIBE table`: any of the words begins either.
    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.advance();
        let analyze = self.eat("ANALYZE");
        self.eat("EXTENDED");
        let mut format = None;
        if self.at("FORMAT") && self.is_ahead(1, TokenKind::Eq) {
            self.advance();
            self.advance();
            let name = self.ident_or_string()?;
            format = Some(match &*name.to_ascii_uppercase() {
                "TRADITIONAL" => ExplainFormat::Traditional,
                "TREE" => ExplainFormat::Tree,
                "JSON" => ExplainFormat::Json,
                _ => ExplainFormat::Unknown(name.as_str().into()),
            });
        }
        let into = match self.eat("INTO") {
            true => Some(self.variable()?),
            false => None,
        };
        let mut schema = None;
        if self.eat("FOR") {
            if self.eat("CONNECTION") {
                let target = ExplainTarget::Connection(self.u64()?);
                return Ok(Statement::Explain(Box::new(Explain {
                    analyze,
                    format,
                    into,
                    schema,
                    target,
                })));
            }
            if self.eat_any(&["SCHEMA", "DATABASE"]).is_none() {
                return Err(self.syntax_error());
            }
            schema = Some(self.table_ident()?);
        }
        // CALL has several plans, and MySQL doesn't explain it.
        let explainable =
            self.is(TokenKind::LeftParen) || self.at_any(EXPLAINABLE) || self.at("CALL");
        if explainable {
            let target = ExplainTarget::Statement(self.statement()?);
            return Ok(Statement::Explain(Box::new(Explain {
                analyze,
                format,
                into,
                schema,
                target,
            })));
        }
        if analyze || format.is_some() || into.is_some() || schema.is_some() {
            return Err(self.syntax_error());
        }
        let table = self.object_name()?;
        let column = match self.at_string() {
            true => Some(self.lossy_string()?),
            false => self.opt_ident()?.map(|name| name.as_str().into()),
        };
        Ok(Statement::Describe { table, column })
    }

    // -- Maintenance
    // --------------------------------------------------------------------------------------

    pub(super) fn maintain(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        let action = match word {
            "ANALYZE" => Maintenance::Analyze,
            "CHECK" => Maintenance::Check,
            "OPTIMIZE" => Maintenance::Optimize,
            "REPAIR" => Maintenance::Repair,
            _ => Maintenance::Checksum,
        };
        self.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.eat_any(&["TABLE", "TABLES"]).is_none() {
            return Err(self.syntax_error());
        }
        let tables = self.list(Self::object_name)?;
        let mut options = Vec::new();
        if action == Maintenance::Analyze
            && let Some(verb) = self.eat_any(&["UPDATE", "DROP"])
        {
            return self.histogram(tables, verb == "UPDATE");
        }
        while self.at_any(&[
            "FOR", "QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM",
        ]) {
            if self.eat("FOR") {
                self.expect("UPGRADE")?;
                options.push("FOR UPGRADE".into());
            } else {
                options.push(self.take_upper());
            }
        }
        Ok(Statement::Maintain {
            action,
            tables,
            options,
        })
    }

    /// What follows `ANALYZE TABLE t UPDATE | DROP`.
    fn histogram(&mut self, tables: Vec<ObjectName>, update: bool) -> Result<Statement> {
        self.expect("HISTOGRAM")?;
        self.expect("ON")?;
        let columns = self.list(Self::ident)?;
        let action = if !update {
            HistogramAction::Drop
        } else if self.eat_all(&["USING", "DATA"]) {
            HistogramAction::Data(self.lossy_string()?)
        } else {
            let mut buckets = None;
            if self.eat("WITH") {
                buckets = Some(self.u64()?);
                self.expect("BUCKETS")?;
            }
            let word = self.eat_any(&["MANUAL", "AUTO"]);
            if word.is_some() {
                self.expect("UPDATE")?;
            }
            HistogramAction::Build {
                buckets,
                auto_update: word == Some("AUTO"),
            }
        };
        Ok(Statement::Histogram(Box::new(HistogramChange {
            tables,
            columns,
            action,
        })))
    }

    pub(super) fn flush(&mut self) -> Result<Statement> {
        self.expect("FLUSH")?;
        let local = self.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]).is_some();
        if self.eat_any(&["TABLE", "TABLES"]).is_some() {
            let tables = match self.at_ident() {
                true => self.list(Self::object_name)?,
                false => Vec::new(),
            };
            let read_lock = self.eat_all(&["WITH", "READ", "LOCK"]);
            let export = !read_lock && self.eat_all(&["FOR", "EXPORT"]);
            return Ok(Statement::Flush {
                local,
                targets: vec![FlushTarget::Tables {
                    tables,
                    read_lock,
                    export,
                }],
            });
        }
        let targets = self.list(Self::flush_target)?;
        Ok(Statement::Flush { local, targets })
    }

    /// `INSTALL COMPONENT 'urn', …`, `UNINSTALL COMPONENT 'urn', …`
    pub(super) fn component(&mut self) -> Result<Statement> {
        let install = self.eat("INSTALL");
        if !install {
            self.expect("UNINSTALL")?;
        }
        self.expect("COMPONENT")?;
        let urns = self.list(|p| {
            let urn = p.string()?;
            Ok(String::from_utf8_lossy(&urn).into())
        })?;
        Ok(Statement::Component { install, urns })
    }

    /// One of FLUSH's options but TABLES (MySQL 8.4 manual, 15.7.8.3).
    fn flush_target(&mut self) -> Result<FlushTarget> {
        const OPTIONS: &[&str] = &[
            "BINARY LOGS",
            "ENGINE LOGS",
            "ERROR LOGS",
            "GENERAL LOGS",
            "HOSTS",
            "LOGS",
            "OPTIMIZER_COSTS",
            "PRIVILEGES",
            "RELAY LOGS",
            "SLOW LOGS",
            "STATUS",
            "USER_RESOURCES",
        ];
        let error = self.syntax_error();
        let words = self.upper_words()?;
        let known = OPTIONS.contains(&&*words) || words.starts_with("RELAY LOGS FOR CHANNEL");
        match known {
            true => Ok(FlushTarget::Other(words)),
            false => Err(error),
        }
    }

    /// Words up to a comma or the end, in upper case with one space between.
    fn upper_words(&mut self) -> Result<Box<str>> {
        let mut words = String::new();
        while matches!(
            self.kind(),
            TokenKind::Word | TokenKind::QuotedName | TokenKind::Literal(_)
        ) {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(&String::from_utf8_lossy(self.text()).to_ascii_uppercase());
            self.advance();
        }
        match words.is_empty() {
            true => Err(self.syntax_error()),
            false => Ok(words.into()),
        }
    }

    fn reset_persist(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let is_at_end = matches!(self.kind(), TokenKind::Semicolon | TokenKind::End);
        if is_at_end && !if_exists {
            let name = None;
            return Ok(Statement::ResetPersist { if_exists, name });
        }
        let mut name = self.ident()?;
        if self.take(TokenKind::Dot) {
            let own = self.ident()?;
            name = Ident(compact_str::format_compact!("{}.{}", name.0, own.0));
        }
        Ok(Statement::ResetPersist {
            if_exists,
            name: Some(name),
        })
    }

    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.expect("RESET")?;
        if self.eat("PERSIST") {
            return self.reset_persist();
        }
        Ok(Statement::Reset(self.list(Self::upper_words)?))
    }
}
