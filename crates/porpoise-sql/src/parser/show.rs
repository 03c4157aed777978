//! SHOW.

use super::*;

impl Parser<'_> {
    pub(super) fn show(&mut self) -> Result<Statement> {
        self.expect("SHOW")?;
        let what = self.show_what()?;
        let mut show = Show {
            what,
            filter: None,
            limit: None,
        };
        if self.eat("LIKE") {
            show.filter = Some(ShowFilter::Like(self.string()?));
        } else if self.eat("WHERE") {
            show.filter = Some(ShowFilter::Where(Box::new(self.expr()?)));
        }
        show.limit = self.opt_limit()?;
        Ok(Statement::Show(Box::new(show)))
    }

    fn show_what(&mut self) -> Result<ShowWhat> {
        let extended = self.eat("EXTENDED");
        let full = self.eat("FULL");
        let scope = self.variable_scope();
        let global = scope == Some(VariableScope::Global);
        let error = self.syntax_error();
        let word = self.advance().keyword.text();
        // Only these may have the words before them.
        let allowed = match word {
            "TABLES" | "COLUMNS" | "FIELDS" => scope.is_none(),
            "INDEX" | "INDEXES" | "KEYS" => scope.is_none() && !full,
            "TRIGGERS" | "PROCESSLIST" => scope.is_none() && !extended,
            "VARIABLES" | "STATUS" => !extended && !full,
            _ => !extended && !full && scope.is_none(),
        };
        if !allowed {
            return Err(error);
        }
        Ok(match word {
            "DATABASES" | "SCHEMAS" => ShowWhat::Databases,
            "TABLES" => ShowWhat::Tables {
                extended,
                full,
                database: self.in_database()?,
            },
            "TABLE" => {
                self.expect("STATUS")?;
                ShowWhat::TableStatus {
                    database: self.in_database()?,
                }
            }
            "OPEN" => {
                self.expect("TABLES")?;
                ShowWhat::OpenTables {
                    database: self.in_database()?,
                }
            }
            "COLUMNS" | "FIELDS" => ShowWhat::Columns {
                extended,
                full,
                table: self.of_table()?,
            },
            "INDEX" | "INDEXES" | "KEYS" => ShowWhat::Indexes {
                extended,
                table: self.of_table()?,
            },
            "TRIGGERS" => ShowWhat::Triggers {
                full,
                database: self.in_database()?,
            },
            "EVENTS" => ShowWhat::Events {
                database: self.in_database()?,
            },
            "CREATE" => self.show_create()?,
            "VARIABLES" => ShowWhat::Variables { global },
            "STATUS" => ShowWhat::Status { global },
            "PROCESSLIST" => ShowWhat::ProcessList { full },
            "GRANTS" => self.show_grants()?,
            "WARNINGS" => ShowWhat::Warnings { count: false },
            "ERRORS" => ShowWhat::Errors { count: false },
            "ENGINES" => ShowWhat::Engines,
            "STORAGE" => {
                self.expect("ENGINES")?;
                ShowWhat::Engines
            }
            "ENGINE" => {
                let engine = match self.eat("ALL") {
                    true => None,
                    false => Some(self.ident_or_string()?),
                };
                match self.at_any(&["STATUS", "LOGS", "MUTEX"]) {
                    true => ShowWhat::Engine(engine, self.take_upper()),
                    false => return Err(self.syntax_error()),
                }
            }
            "PLUGINS" => ShowWhat::Plugins,
            "PRIVILEGES" => ShowWhat::Privileges,
            "CHARSET" => ShowWhat::CharacterSets,
            "CHARACTER" | "CHAR" => {
                self.expect("SET")?;
                ShowWhat::CharacterSets
            }
            "COLLATION" => ShowWhat::Collations,
            "PROCEDURE" if self.eat("STATUS") => ShowWhat::ProcedureStatus,
            "FUNCTION" if self.eat("STATUS") => ShowWhat::FunctionStatus,
            "PROCEDURE" | "FUNCTION" => {
                self.expect("CODE")?;
                ShowWhat::RoutineCode(self.object_name()?)
            }
            "PROFILES" => ShowWhat::Profiles,
            "PROFILE" => self.show_profile()?,
            "BINARY" if self.eat_all(&["LOG", "STATUS"]) => ShowWhat::BinaryLogStatus,
            "BINARY" | "MASTER" if self.eat("LOGS") => ShowWhat::BinaryLogs,
            "MASTER" => {
                self.expect("STATUS")?;
                ShowWhat::BinaryLogStatus
            }
            "BINLOG" | "RELAYLOG" => {
                self.expect("EVENTS")?;
                if self.eat("IN") {
                    self.string()?;
                }
                if self.eat("FROM") {
                    self.u64()?;
                }
                ShowWhat::BinlogEvents
            }
            "REPLICAS" => ShowWhat::Replicas,
            "REPLICA" => {
                self.expect("STATUS")?;
                self.opt_channel()?;
                ShowWhat::ReplicaStatus
            }
            "SLAVE" if self.eat("HOSTS") => ShowWhat::Replicas,
            "SLAVE" => {
                self.expect("STATUS")?;
                self.opt_channel()?;
                ShowWhat::ReplicaStatus
            }
            _ => match word.eq_ignore_ascii_case("") && self.counted(&error)? {
                true => {
                    let word = self.advance().keyword.text();
                    match word {
                        "WARNINGS" => ShowWhat::Warnings { count: true },
                        "ERRORS" => ShowWhat::Errors { count: true },
                        _ => return Err(error),
                    }
                }
                false => return Err(error),
            },
        })
    }

    /// Behind a word that is no keyword: whether it was COUNT, and `(*)` follows.
    fn counted(&mut self, error: &ParseError) -> Result<bool> {
        let written = self
            .sql
            .get(error.offset..self.last_end as usize)
            .unwrap_or(&[]);
        if !written.eq_ignore_ascii_case(b"COUNT") {
            return Ok(false);
        }
        self.parens(|p| p.need(TokenKind::Star))?;
        Ok(true)
    }

    /// `[FROM | IN database]`
    fn in_database(&mut self) -> Result<Option<Ident>> {
        match self.eat_any(&["FROM", "IN"]) {
            Some(_) => self.table_ident().map(Some),
            None => Ok(None),
        }
    }

    /// `FROM | IN table [FROM | IN database]`
    fn of_table(&mut self) -> Result<ObjectName> {
        if self.eat_any(&["FROM", "IN"]).is_none() {
            return Err(self.syntax_error());
        }
        let table = self.object_name()?;
        Ok(match self.in_database()? {
            Some(schema) => ObjectName {
                schema: Some(schema),
                name: table.name,
            },
            None => table,
        })
    }

    fn show_create(&mut self) -> Result<ShowWhat> {
        let error = self.syntax_error();
        Ok(match self.advance().keyword.text() {
            "DATABASE" | "SCHEMA" => {
                let if_not_exists = self.if_not_exists();
                ShowWhat::CreateDatabase {
                    name: self.table_ident()?,
                    if_not_exists,
                }
            }
            "TABLE" => ShowWhat::CreateTable(self.object_name()?),
            "VIEW" => ShowWhat::CreateView(self.object_name()?),
            word @ ("TRIGGER" | "PROCEDURE" | "FUNCTION" | "EVENT") => {
                ShowWhat::CreateRoutine(word, self.object_name()?)
            }
            "USER" => ShowWhat::CreateUser(self.account()?),
            _ => return Err(error),
        })
    }

    fn show_grants(&mut self) -> Result<ShowWhat> {
        if !self.eat("FOR") {
            return Ok(ShowWhat::Grants {
                user: None,
                roles: Vec::new(),
            });
        }
        let user = Some(self.account()?);
        let roles = match self.eat("USING") {
            true => self.list(Self::account)?,
            false => Vec::new(),
        };
        Ok(ShowWhat::Grants { user, roles })
    }

    fn show_profile(&mut self) -> Result<ShowWhat> {
        const TYPES: &[&str] = &["ALL", "CPU", "IPC", "MEMORY", "SOURCE", "SWAPS"];
        let mut types = Vec::new();
        loop {
            if self.at_any(TYPES) {
                types.push(self.take_upper());
            } else if self.eat_all(&["BLOCK", "IO"]) {
                types.push("BLOCK IO".into());
            } else if self.eat_all(&["CONTEXT", "SWITCHES"]) {
                types.push("CONTEXT SWITCHES".into());
            } else if self.eat_all(&["PAGE", "FAULTS"]) {
                types.push("PAGE FAULTS".into());
            } else {
                break;
            }
            if !self.take(TokenKind::Comma) {
                break;
            }
        }
        let query = match self.eat_all(&["FOR", "QUERY"]) {
            true => Some(self.u64()?),
            false => None,
        };
        Ok(ShowWhat::Profile { types, query })
    }

    /// `[FOR CHANNEL 'name']`
    fn opt_channel(&mut self) -> Result<()> {
        if self.eat_all(&["FOR", "CHANNEL"]) {
            self.ident_or_string()?;
        }
        Ok(())
    }
}
