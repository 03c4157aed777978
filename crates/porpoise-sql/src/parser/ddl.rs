//! Statements that define: databases, tables, indexes, views.

use super::*;

/// What CREATE, ALTER and DROP of kinds that are only recognised are called.
const OBJECTS: &[(&[&str], &str, &str, &str)] = &[
    (
        &["TRIGGER"],
        "CREATE TRIGGER",
        "ALTER TRIGGER",
        "DROP TRIGGER",
    ),
    (
        &["PROCEDURE"],
        "CREATE PROCEDURE",
        "ALTER PROCEDURE",
        "DROP PROCEDURE",
    ),
    (
        &["FUNCTION"],
        "CREATE FUNCTION",
        "ALTER FUNCTION",
        "DROP FUNCTION",
    ),
    (
        &["AGGREGATE"],
        "CREATE FUNCTION",
        "ALTER FUNCTION",
        "DROP FUNCTION",
    ),
    (
        &["TABLESPACE"],
        "CREATE TABLESPACE",
        "ALTER TABLESPACE",
        "DROP TABLESPACE",
    ),
    (
        &["UNDO", "TABLESPACE"],
        "CREATE TABLESPACE",
        "ALTER TABLESPACE",
        "DROP TABLESPACE",
    ),
    (
        &["LOGFILE", "GROUP"],
        "CREATE LOGFILE GROUP",
        "ALTER LOGFILE GROUP",
        "DROP LOGFILE GROUP",
    ),
    (
        &["RESOURCE", "GROUP"],
        "CREATE RESOURCE GROUP",
        "ALTER RESOURCE GROUP",
        "DROP RESOURCE GROUP",
    ),
    (
        &["SPATIAL", "REFERENCE"],
        "CREATE SPATIAL REFERENCE SYSTEM",
        "",
        "DROP SPATIAL REFERENCE SYSTEM",
    ),
    (
        &["INSTANCE"],
        "CREATE INSTANCE",
        "ALTER INSTANCE",
        "DROP INSTANCE",
    ),
];

impl Parser<'_> {
    fn unsupported_object(
        &mut self,
    ) -> Option<&'static (
        &'static [&'static str],
        &'static str,
        &'static str,
        &'static str,
    )> {
        OBJECTS.iter().find(|(words, ..)| self.at_all(words))
    }

    pub(super) fn create(&mut self) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.expect("CREATE")?;
        let or_replace = self.eat_all(&["OR", "REPLACE"]);
        if self.at_any(&["ALGORITHM", "DEFINER", "SQL", "VIEW"]) {
            return self.view_or_routine(false, or_replace, start);
        }
        if or_replace && !self.at_all(&["SPATIAL", "REFERENCE"]) {
            return Err(self.syntax_error());
        }
        if self.at_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]) {
            return self.create_program(None);
        }
        if let Some((_, what, ..)) = self.unsupported_object() {
            return self.unsupported_from(start, what);
        }
        match self.keyword() {
            "SERVER" => self.change_server(true),
            "DATABASE" | "SCHEMA" => {
                self.advance();
                let if_not_exists = self.if_not_exists();
                let name = self.table_ident()?;
                Ok(Statement::CreateDatabase {
                    name,
                    if_not_exists,
                    options: self.database_options(false)?,
                })
            }
            "TABLE" => self.create_table(false),
            "TEMPORARY" => {
                self.advance();
                self.create_table(true)
            }
            "INDEX" | "UNIQUE" | "FULLTEXT" | "SPATIAL" => self.create_index(),
            "USER" => self.create_user(false),
            "ROLE" => {
                self.advance();
                let if_not_exists = self.if_not_exists();
                Ok(Statement::CreateRole {
                    if_not_exists,
                    roles: self.list(Self::account)?,
                })
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// Only an existing database can be made READ ONLY.
    fn database_options(&mut self, exists: bool) -> Result<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        loop {
            let default = self.eat("DEFAULT");
            if self.eat_charset_words() {
                self.opt_eq();
                options.charset = Some(self.charset_name()?);
            } else if self.eat("COLLATE") {
                self.opt_eq();
                options.collation = Some(self.charset_name()?);
            } else if self.eat("ENCRYPTION") {
                self.opt_eq();
                options.encryption = Some(self.string()?);
            } else if exists && !default && self.eat_all(&["READ", "ONLY"]) {
                self.opt_eq();
                options.read_only = Some(match self.eat("DEFAULT") {
                    true => false,
                    false => match self.u64()? {
                        number @ 0..=1 => number == 1,
                        _ => return Err(self.syntax_error()),
                    },
                });
            } else if default {
                return Err(self.syntax_error());
            } else {
                return Ok(options);
            }
        }
    }

    // -- Indexes and views
    // --------------------------------------------------------------------------------

    fn create_index(&mut self) -> Result<Statement> {
        let kind = match self.eat_any(&["UNIQUE", "FULLTEXT", "SPATIAL"]) {
            Some("UNIQUE") => IndexKind::Unique,
            Some("FULLTEXT") => IndexKind::FullText,
            Some(_) => IndexKind::Spatial,
            None => IndexKind::Index,
        };
        self.expect("INDEX")?;
        let name = Some(self.ident()?);
        let mut options = IndexOptions::default();
        self.index_type(&mut options)?;
        self.expect("ON")?;
        let table = self.object_name()?;
        let parts = self.paren_list(Self::key_part)?;
        self.index_options(&mut options)?;
        let (algorithm, lock) = self.algorithm_and_lock()?;
        let index = Box::new(IndexDef {
            constraint: None,
            name,
            kind,
            parts,
            options,
        });
        Ok(Statement::CreateIndex {
            index,
            table,
            algorithm,
            lock,
        })
    }

    /// `[ALGORITHM [=] word] [LOCK [=] word]`
    pub(super) fn algorithm_and_lock(&mut self) -> Result<(Option<Ident>, Option<Ident>)> {
        let (mut algorithm, mut lock) = (None, None);
        loop {
            if self.eat("ALGORITHM") {
                self.opt_eq();
                algorithm = Some(Ident::new(self.any_ident()?.to_ascii_uppercase()));
            } else if self.eat("LOCK") {
                self.opt_eq();
                lock = Some(Ident::new(self.any_ident()?.to_ascii_uppercase()));
            } else {
                return Ok((algorithm, lock));
            }
        }
    }

    /// What may begin with DEFINER: a view, or something only recognised.
    fn view_or_routine(
        &mut self,
        alter: bool,
        or_replace: bool,
        start: usize,
    ) -> Result<Statement> {
        let algorithm = match self.eat("ALGORITHM") {
            true => {
                self.need(TokenKind::Eq)?;
                Some(self.word_of(&["UNDEFINED", "MERGE", "TEMPTABLE"])?)
            }
            false => None,
        };
        let definer = match self.eat("DEFINER") {
            true => {
                self.need(TokenKind::Eq)?;
                Some(self.account()?)
            }
            false => None,
        };
        if !alter && self.at_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]) {
            return self.create_program(definer);
        }
        if alter && self.at_any(&["EVENT"]) {
            return self.alter_event(definer);
        }
        if let Some((_, create, altered, _)) = self.unsupported_object() {
            return self.unsupported_from(start, if alter { altered } else { create });
        }
        let invoker = match self.eat_all(&["SQL", "SECURITY"]) {
            true => match self.eat_any(&["DEFINER", "INVOKER"]) {
                Some(word) => Some(word == "INVOKER"),
                None => return Err(self.syntax_error()),
            },
            false => None,
        };
        self.expect("VIEW")?;
        let name = self.object_name()?;
        let columns = self.opt_column_names()?;
        self.expect("AS")?;
        let mut query = Box::new(self.query()?);
        query.hints = self.statement_hints();
        let check_option = match self.eat("WITH") {
            true => {
                let local = self.eat_any(&["CASCADED", "LOCAL"]) == Some("LOCAL");
                self.expect_all(&["CHECK", "OPTION"])?;
                Some(if local {
                    CheckOption::Local
                } else {
                    CheckOption::Cascaded
                })
            }
            false => None,
        };
        Ok(Statement::CreateView(Box::new(CreateView {
            alter,
            or_replace,
            algorithm,
            definer,
            invoker,
            name,
            columns,
            query,
            check_option,
        })))
    }

    // -- ALTER, DROP, RENAME
    // ------------------------------------------------------------------------------

    pub(super) fn alter(&mut self) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.expect("ALTER")?;
        match self.keyword() {
            "TABLE" => {
                self.advance();
                self.alter_table()
            }
            "DATABASE" | "SCHEMA" => {
                self.advance();
                let name = match self.at_any(&["CHARSET", "ENCRYPTION"]) {
                    true => None,
                    false => self.opt_ident()?.map(|name| self.folded(name)),
                };
                Ok(Statement::AlterDatabase {
                    name,
                    options: self.database_options(true)?,
                })
            }
            "USER" => self.create_user(true),
            "PROCEDURE" | "FUNCTION" => self.alter_routine(),
            "EVENT" => self.alter_event(None),
            "SERVER" => self.change_server(false),
            "INSTANCE" if self.at_all(&["INSTANCE", "RELOAD", "TLS"]) => self.reload_tls(),
            "ALGORITHM" | "DEFINER" | "SQL" | "VIEW" => self.view_or_routine(true, false, start),
            _ => match self.unsupported_object() {
                Some((_, _, what, _)) => self.unsupported_from(start, what),
                None => Err(self.syntax_error()),
            },
        }
    }

    /// `SERVER …`, created or altered.
    fn change_server(&mut self, is_new: bool) -> Result<Statement> {
        self.expect("SERVER")?;
        let name = self.ident_or_string()?;
        let wrapper = match is_new {
            true => {
                self.expect_all(&["FOREIGN", "DATA", "WRAPPER"])?;
                Some(self.ident_or_string()?)
            }
            false => None,
        };
        self.expect("OPTIONS")?;
        let options = self.parens(|parser| parser.list(Self::server_option))?;
        Ok(Statement::ChangeServer(Box::new(ChangeServer {
            name,
            wrapper,
            options,
        })))
    }

    fn server_option(&mut self) -> Result<ServerOption> {
        let option = self.advance().keyword.text();
        Ok(match option {
            "HOST" => ServerOption::Host(self.lossy_string()?),
            "DATABASE" | "SCHEMA" => ServerOption::Database(self.lossy_string()?),
            "USER" => ServerOption::User(self.lossy_string()?),
            "PASSWORD" => ServerOption::Password(self.lossy_string()?),
            "SOCKET" => ServerOption::Socket(self.lossy_string()?),
            "OWNER" => ServerOption::Owner(self.lossy_string()?),
            "PORT" => ServerOption::Port(self.u64()?),
            _ => return Err(self.syntax_error()),
        })
    }

    fn reload_tls(&mut self) -> Result<Statement> {
        self.expect_all(&["INSTANCE", "RELOAD", "TLS"])?;
        let channel = match self.eat_all(&["FOR", "CHANNEL"]) {
            true => Some(self.ident()?),
            false => None,
        };
        let no_rollback = self.eat_all(&["NO", "ROLLBACK", "ON", "ERROR"]);
        Ok(Statement::ReloadTls {
            channel,
            no_rollback,
        })
    }

    pub(super) fn drop(&mut self) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.expect("DROP")?;
        if let Some(kind) = self.eat_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]) {
            return Ok(Statement::DropStored {
                kind,
                if_exists: self.if_exists(),
                name: self.object_name()?,
            });
        }
        if self.eat("SERVER") {
            return Ok(Statement::DropServer {
                if_exists: self.if_exists(),
                name: self.ident_or_string()?,
            });
        }
        if let Some((_, _, _, what)) = self.unsupported_object() {
            return self.unsupported_from(start, what);
        }
        let temporary = self.eat("TEMPORARY");
        let error = self.syntax_error();
        match self.advance().keyword.text() {
            "TABLE" | "TABLES" => {
                let if_exists = self.if_exists();
                let tables = self.list(Self::object_name)?;
                self.eat_any(&["RESTRICT", "CASCADE"]);
                Ok(Statement::DropTable {
                    temporary,
                    if_exists,
                    tables,
                })
            }
            _ if temporary => Err(self.syntax_error()),
            "DATABASE" | "SCHEMA" => {
                let if_exists = self.if_exists();
                Ok(Statement::DropDatabase {
                    name: self.table_ident()?,
                    if_exists,
                })
            }
            "INDEX" => {
                let name = self.index_name()?;
                self.expect("ON")?;
                let table = self.object_name()?;
                let (algorithm, lock) = self.algorithm_and_lock()?;
                Ok(Statement::DropIndex {
                    name,
                    table,
                    algorithm,
                    lock,
                })
            }
            "VIEW" => {
                let if_exists = self.if_exists();
                let views = self.list(Self::object_name)?;
                self.eat_any(&["RESTRICT", "CASCADE"]);
                Ok(Statement::DropView { if_exists, views })
            }
            "USER" => {
                let if_exists = self.if_exists();
                Ok(Statement::DropUser {
                    if_exists,
                    users: self.list(Self::account)?,
                })
            }
            "ROLE" => {
                let if_exists = self.if_exists();
                Ok(Statement::DropRole {
                    if_exists,
                    roles: self.list(Self::account)?,
                })
            }
            "PREPARE" => Ok(Statement::Deallocate(self.ident()?)),
            _ => Err(error),
        }
    }

    pub(super) fn rename(&mut self) -> Result<Statement> {
        self.expect("RENAME")?;
        if self.eat("USER") {
            return Ok(Statement::RenameUser(self.list(|p| {
                let old = p.account()?;
                p.expect("TO")?;
                Ok((old, p.account()?))
            })?));
        }
        if self.eat_any(&["TABLE", "TABLES"]).is_none() {
            return Err(self.syntax_error());
        }
        Ok(Statement::RenameTable(self.list(|p| {
            let old = p.object_name()?;
            p.expect("TO")?;
            Ok((old, p.object_name()?))
        })?))
    }
}
