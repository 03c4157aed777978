//! Users, roles and privileges.

use super::*;

/// Privileges of several words (MySQL 8.4 manual, 8.2.2), and those that are reserved words. All
/// others are one name.
const PRIVILEGES: &[&[&str]] = &[
    &["ALL", "PRIVILEGES"],
    &["ALL"],
    &["ALTER", "ROUTINE"],
    &["ALTER"],
    &["CREATE", "ROUTINE"],
    &["CREATE", "TABLESPACE"],
    &["CREATE", "TEMPORARY", "TABLES"],
    &["CREATE", "USER"],
    &["CREATE", "VIEW"],
    &["CREATE", "ROLE"],
    &["CREATE"],
    &["DELETE"],
    &["DROP", "ROLE"],
    &["DROP"],
    &["GRANT", "OPTION"],
    &["INDEX"],
    &["INSERT"],
    &["LOCK", "TABLES"],
    &["REFERENCES"],
    &["REPLICATION", "CLIENT"],
    &["REPLICATION", "SLAVE"],
    &["SELECT"],
    &["SHOW", "DATABASES"],
    &["SHOW", "VIEW"],
    &["TRIGGER"],
    &["UPDATE"],
    &["USAGE"],
];

/// Words that begin an option of passwords or login attempts.
const PASSWORD_OPTIONS: &[&str] = &["PASSWORD", "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"];

impl Parser<'_> {
    /// `user[@host]`, `CURRENT_USER[()]`
    pub(super) fn account(&mut self) -> Result<Account> {
        if self.eat("CURRENT_USER") {
            if self.take(TokenKind::LeftParen) {
                self.need(TokenKind::RightParen)?;
            }
            return Ok(Account::Current);
        }
        if self.at("USER") && self.is_ahead(1, TokenKind::LeftParen) {
            self.advance();
            self.advance();
            self.need(TokenKind::RightParen)?;
            return Ok(Account::Current);
        }
        let user = self.ident_or_string()?;
        let host = match self.is(TokenKind::Variable) {
            true => Some(Ident(self.take_name().0.to_ascii_lowercase())),
            false => None,
        };
        Ok(Account::Named { user, host })
    }

    /// `CREATE USER`, `ALTER USER`
    pub(super) fn create_user(&mut self, alter: bool) -> Result<Statement> {
        self.expect("USER")?;
        let if_exists = if alter {
            self.if_exists()
        } else {
            self.if_not_exists()
        };
        let users = self.list(Self::user_spec)?;
        if alter && self.at_all(&["DEFAULT", "ROLE"]) {
            self.eat_all(&["DEFAULT", "ROLE"]);
            let roles = self.role_set()?;
            return Ok(Statement::SetDefaultRole {
                roles,
                users: users.into_iter().map(|u| u.account).collect(),
            });
        }
        let mut user = CreateUser {
            if_exists,
            users,
            default_roles: None,
            require: None,
            limits: Vec::new(),
            locked: None,
            password_options: Vec::new(),
            comment: None,
            attribute: None,
        };
        while self.user_option(&mut user)? {}
        let user = Box::new(user);
        Ok(if alter {
            Statement::AlterUser(user)
        } else {
            Statement::CreateUser(user)
        })
    }

    fn user_option(&mut self, user: &mut CreateUser) -> Result<bool> {
        match self.keyword() {
            "DEFAULT" => {
                self.advance();
                self.expect("ROLE")?;
                user.default_roles = Some(self.role_set()?);
            }
            "REQUIRE" => {
                self.advance();
                user.require = Some(self.tls_requirement()?);
            }
            "WITH" => {
                self.advance();
                const LIMITS: &[&str] = &[
                    "MAX_QUERIES_PER_HOUR",
                    "MAX_UPDATES_PER_HOUR",
                    "MAX_CONNECTIONS_PER_HOUR",
                    "MAX_USER_CONNECTIONS",
                ];
                while let Some(limit) = self.eat_any(LIMITS) {
                    user.limits.push((limit.into(), self.u64()?));
                }
            }
            "ACCOUNT" => {
                self.advance();
                user.locked = match self.eat_any(&["LOCK", "UNLOCK"]) {
                    Some(word) => Some(word == "LOCK"),
                    None => return Err(self.syntax_error()),
                };
            }
            word if PASSWORD_OPTIONS.contains(&word) => {
                self.advance();
                let option = self.password_option(word)?;
                user.password_options.push(option);
            }
            "COMMENT" => {
                self.advance();
                user.comment = Some(self.string()?);
            }
            "ATTRIBUTE" => {
                self.advance();
                user.attribute = Some(self.string()?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What follows `PASSWORD`, `FAILED_LOGIN_ATTEMPTS`, `PASSWORD_LOCK_TIME`.
    fn password_option(&mut self, word: &str) -> Result<PasswordOption> {
        use PasswordOption as O;
        Ok(match word {
            "FAILED_LOGIN_ATTEMPTS" => O::FailedLogins(self.u64()?),
            "PASSWORD_LOCK_TIME" if self.eat("UNBOUNDED") => O::LockTime(None),
            "PASSWORD_LOCK_TIME" => O::LockTime(Some(self.u64()?)),
            _ if self.eat("EXPIRE") => match self.eat_any(&["DEFAULT", "NEVER", "INTERVAL"]) {
                None => O::Expire,
                Some("DEFAULT") => O::Lifetime(None),
                Some("NEVER") => O::Lifetime(Some(0)),
                Some(_) => match self.days()? {
                    0 => return Err(self.syntax_error()),
                    days => O::Lifetime(Some(days)),
                },
            },
            _ if self.eat_all(&["HISTORY", "DEFAULT"]) => O::History(None),
            _ if self.eat("HISTORY") => O::History(Some(self.u64()?)),
            _ if self.eat_all(&["REUSE", "INTERVAL", "DEFAULT"]) => O::ReuseInterval(None),
            _ if self.eat_all(&["REUSE", "INTERVAL"]) => O::ReuseInterval(Some(self.days()?)),
            _ => {
                self.expect_all(&["REQUIRE", "CURRENT"])?;
                O::RequireCurrent(match self.eat_any(&["DEFAULT", "OPTIONAL"]) {
                    None => Some(true),
                    Some("DEFAULT") => None,
                    Some(_) => Some(false),
                })
            }
        })
    }

    /// `n DAY`
    fn days(&mut self) -> Result<u64> {
        let days = self.u64()?;
        self.expect("DAY")?;
        Ok(days)
    }

    /// A user and `IDENTIFIED …`.
    fn user_spec(&mut self) -> Result<UserSpec> {
        let account = self.account()?;
        let mut user = UserSpec {
            account,
            auth: None,
            replace: None,
            retain: false,
            discard_old: false,
        };
        if self.eat_all(&["DISCARD", "OLD", "PASSWORD"]) {
            user.discard_old = true;
            return Ok(user);
        }
        if !self.eat("IDENTIFIED") {
            return Ok(user);
        }
        let mut plugin = match self.eat("WITH") {
            true => Some(self.ident_or_string()?),
            false => None,
        };
        let secret = if self.eat("BY") {
            if self.eat_all(&["RANDOM", "PASSWORD"]) {
                Secret::Random
            } else if self.at("PASSWORD") {
                // IDENTIFIED BY PASSWORD 'hash', of dumps by MariaDB and older MySQL, which had one kind.
                self.advance();
                plugin.get_or_insert_with(|| "mysql_native_password".into());
                Secret::Hash(self.string()?)
            } else {
                Secret::Password(self.string_or_hex()?)
            }
        } else if plugin.is_some() && self.eat("AS") {
            Secret::Hash(self.string_or_hex()?)
        } else if plugin.is_none() {
            return Err(self.syntax_error());
        } else {
            Secret::None
        };
        user.auth = Some(Auth { plugin, secret });
        if self.eat("REPLACE") {
            user.replace = Some(self.string()?);
        }
        user.retain = self.eat_all(&["RETAIN", "CURRENT", "PASSWORD"]);
        Ok(user)
    }

    fn tls_requirement(&mut self) -> Result<TlsRequirement> {
        match self.eat_any(&["NONE", "SSL", "X509"]) {
            Some("NONE") => return Ok(TlsRequirement::None),
            Some("SSL") => return Ok(TlsRequirement::Ssl),
            Some(_) => return Ok(TlsRequirement::X509),
            None => {}
        }
        let mut specified = Vec::new();
        while let Some(word) = self.eat_any(&["CIPHER", "ISSUER", "SUBJECT"]) {
            specified.push((word.into(), self.string()?));
            self.eat("AND");
        }
        match specified.is_empty() {
            true => Err(self.syntax_error()),
            false => Ok(TlsRequirement::Specified(specified)),
        }
    }

    pub(super) fn role_set(&mut self) -> Result<RoleSet> {
        Ok(match self.eat_any(&["DEFAULT", "NONE", "ALL"]) {
            Some("DEFAULT") => RoleSet::Default,
            Some("NONE") => RoleSet::None,
            Some(_) if self.eat("EXCEPT") => RoleSet::AllExcept(self.list(Self::account)?),
            Some(_) => RoleSet::All,
            None => RoleSet::List(self.list(Self::account)?),
        })
    }

    /// A privilege by its words; or a role or dynamic privilege, by its name and host.
    fn privilege(&mut self) -> Result<(Privilege, Option<Account>)> {
        if let Some(words) = PRIVILEGES.iter().find(|words| self.at_all(words)) {
            self.expect_all(words)?;
            let name = if words[0] == "ALL" {
                "ALL".into()
            } else {
                words.join(" ").into()
            };
            return Ok((
                Privilege {
                    name,
                    columns: self.opt_column_names()?,
                },
                None,
            ));
        }
        let account = self.account()?;
        let name = match &account {
            Account::Named { user, .. } => user.to_ascii_uppercase().into(),
            Account::Current => return Err(self.syntax_error()),
        };
        Ok((
            Privilege {
                name,
                columns: Vec::new(),
            },
            Some(account),
        ))
    }

    /// What ON names.
    fn grant_object(&mut self) -> Result<GrantObject> {
        let kind = self.eat_any(&["TABLE", "FUNCTION", "PROCEDURE"]);
        match kind {
            Some("FUNCTION") => return Ok(GrantObject::Function(self.object_name()?)),
            Some("PROCEDURE") => return Ok(GrantObject::Procedure(self.object_name()?)),
            _ => {}
        }
        if self.take(TokenKind::Star) {
            if self.take(TokenKind::Dot) {
                self.need(TokenKind::Star)?;
                return Ok(GrantObject::Global);
            }
            return Ok(GrantObject::Database(None));
        }
        let first = self.table_ident()?;
        if !self.take(TokenKind::Dot) {
            return Ok(GrantObject::Table(ObjectName {
                schema: None,
                name: first,
            }));
        }
        match self.take(TokenKind::Star) {
            true => Ok(GrantObject::Database(Some(first))),
            false => Ok(GrantObject::Table(ObjectName {
                schema: Some(first),
                name: self.any_table_ident()?,
            })),
        }
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.expect("GRANT")?;
        if self.eat("PROXY") {
            self.expect("ON")?;
            let on = self.account()?;
            self.expect("TO")?;
            let to = self.list(Self::account)?;
            let grant_option = self.eat_all(&["WITH", "GRANT", "OPTION"]);
            return Ok(Statement::Grant(Box::new(Grant::Proxy {
                on,
                to,
                grant_option,
            })));
        }
        let (privileges, accounts): (Vec<_>, Vec<_>) =
            self.list(Self::privilege)?.into_iter().unzip();
        if self.eat("TO") {
            let roles = accounts.into_iter().collect::<Option<Vec<_>>>();
            let Some(roles) = roles else {
                return Err(self.syntax_error());
            };
            let to = self.list(Self::account)?;
            let admin_option = self.eat_all(&["WITH", "ADMIN", "OPTION"]);
            return Ok(Statement::Grant(Box::new(Grant::Roles {
                roles,
                to,
                admin_option,
            })));
        }
        self.expect("ON")?;
        let object = self.grant_object()?;
        self.expect("TO")?;
        let to = self.list(Self::user_spec)?;
        let grant_option = self.eat_all(&["WITH", "GRANT", "OPTION"]);
        let as_user = match self.eat("AS") {
            true => {
                let user = self.account()?;
                if self.eat_all(&["WITH", "ROLE"]) {
                    self.role_set()?;
                }
                Some(user)
            }
            false => None,
        };
        Ok(Statement::Grant(Box::new(Grant::Privileges {
            privileges,
            object,
            to,
            grant_option,
            as_user,
        })))
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.expect("REVOKE")?;
        let if_exists = self.if_exists();
        let what = if self.eat_all(&["PROXY", "ON"]) {
            RevokeWhat::Proxy(self.account()?)
        } else {
            let (privileges, accounts): (Vec<_>, Vec<_>) =
                self.list(Self::privilege)?.into_iter().unzip();
            if self.eat("ON") {
                RevokeWhat::Privileges(privileges, self.grant_object()?)
            } else if let Some(roles) = accounts.into_iter().collect::<Option<Vec<_>>>() {
                RevokeWhat::Roles(roles)
            } else if matches!(&privileges[..], [all, option] if &*all.name == "ALL" && &*option.name == "GRANT OPTION")
            {
                RevokeWhat::Everything
            } else {
                return Err(self.syntax_error());
            }
        };
        self.expect("FROM")?;
        let from = self.list(Self::account)?;
        let ignore_unknown = self.eat_all(&["IGNORE", "UNKNOWN", "USER"]);
        Ok(Statement::Revoke(Box::new(Revoke {
            if_exists,
            ignore_unknown,
            what,
            from,
        })))
    }
}
