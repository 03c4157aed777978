//! SET: user variables, system variables, NAMES, TRANSACTION.

use porpoise_core::error::{Error, Result};
use porpoise_core::variables::{self, Isolation, Reads};
use porpoise_mdl::{self as mdl, MdlTicket};
use porpoise_session::set_variable::{Assigned, Persists, bare_word};
use porpoise_sql::ast::{self, VariableScope};
use porpoise_types::{Charset, Collation, DataType, Value};

use crate::session::Session;

impl Session {
    pub(super) fn set(
        &mut self,
        statement: &ast::Statement,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
    ) -> Result<()> {
        match statement {
            ast::Statement::Set(items) => {
                for item in items {
                    self.set_item(item, sql, types, parameters)?;
                }
                Ok(())
            }
            ast::Statement::SetTransaction {
                scope,
                isolation,
                read_only,
            } => self.set_transaction(*scope, *isolation, *read_only),
            _ => Err(Error::not_supported_yet("this form of SET")),
        }
    }

    fn set_item(
        &mut self,
        item: &ast::SetItem,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
    ) -> Result<()> {
        match item {
            ast::SetItem::User { name, value } => {
                let (value, ty) = self.evaluate(value, sql, types, parameters)?;
                self.state
                    .set_user_variable(&name.to_ascii_lowercase(), value, ty)
            }
            ast::SetItem::System { variable, value } => {
                self.set_system(variable, value, sql, types, parameters)
            }
            ast::SetItem::Names { charset, collation } => {
                let charset = match charset {
                    Some(name) => Charset::by_name(name)
                        .ok_or_else(|| Error::unknown_character_set(&**name))?,
                    None => Charset::Utf8mb4,
                };
                let charset = variables::client_charset(charset)?;
                let collation = match collation {
                    Some(name) => {
                        let collation = Collation::by_name(name)
                            .ok_or_else(|| Error::unknown_collation(&**name))?;
                        if collation.charset() != charset {
                            return Err(Error::collation_charset_mismatch(
                                collation.name(),
                                charset.name(),
                            ));
                        }
                        collation
                    }
                    None => charset.default_collation(),
                };
                variables::set_names(charset, collation, &mut self.state);
                for name in [
                    "character_set_client",
                    "character_set_connection",
                    "character_set_results",
                ] {
                    self.track_variable(name, charset.name());
                }
                Ok(())
            }
            ast::SetItem::Charset(name) => {
                let charset = match name {
                    Some(name) => Charset::by_name(name)
                        .ok_or_else(|| Error::unknown_character_set(&**name))?,
                    None => Charset::Utf8mb4,
                };
                let charset = variables::client_charset(charset)?;
                // The connection's character set becomes the current schema's.
                let catalog = self.shared.catalog.load();
                let schema = self
                    .state
                    .schema
                    .as_deref()
                    .and_then(|name| catalog.schema(name));
                let collation = schema.map_or(Collation::UTF8MB4_0900_AI_CI, |entry| {
                    entry.schema.collation
                });
                variables::set_names(charset, collation, &mut self.state);
                Ok(())
            }
        }
    }

    fn set_system(
        &mut self,
        variable: &ast::SystemVariable,
        value: &ast::Expr,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
    ) -> Result<()> {
        let assigned = Assigned::find(&self.state, variable)?;
        let Assigned {
            position,
            scope,
            persists,
        } = assigned;
        let value = match value {
            ast::Expr::Default => None,
            // A bare word is a text: SET x = ON, SET x = utf8mb4.
            value => match bare_word(value) {
                Some(word) => Some(Value::text(word)),
                None => Some(self.evaluate(value, sql, types, parameters)?.0),
            },
        };
        assigned.check(&self.state)?;
        let _quiet = match scope {
            _ if persists == Persists::Only => None,
            Reads::Global => self.wait_for_changes_to_end(position, value.as_ref())?,
            Reads::Session => None,
        };
        let was_autocommit = self.state.autocommit;
        if scope == Reads::Session && !was_autocommit {
            self.check_autocommit_in_xa(position, value.as_ref())?;
        }
        if scope == Reads::Session && variables::VARIABLES[position].name == "transaction_read_only"
        {
            self.pin_read_only();
        }
        assigned.set(value, &mut self.state, &self.shared)?;
        if scope == Reads::Session {
            let definition = &variables::VARIABLES[position];
            let shown = definition.show(&self.state.variables[position]);
            self.track_variable(definition.name, &shown);
            if !was_autocommit && self.state.autocommit {
                // Turning autocommit on commits what is open.
                if let Some(commit) = self.commit()? {
                    commit.wait()?;
                }
            }
            if definition.name == "transaction_isolation" && !self.transaction.open {
                self.transaction.isolation = self.state.isolation;
            }
        }
        Ok(())
    }

    /// Refuses to switch autocommit on where that would commit an XA branch (1399).
    fn check_autocommit_in_xa(
        &self,
        position: variables::Position,
        value: Option<&Value>,
    ) -> Result<()> {
        let variable = &variables::VARIABLES[position];
        let switches_on = |value: &Value| variable.check(value.clone()) == Ok(Value::Int(1));
        match variable.name == "autocommit" && value.is_none_or(switches_on) {
            true => self.transaction.check_commit_in_xa(),
            false => Ok(()),
        }
    }

    /// Before `read_only` or `super_read_only` is switched on: waits until every statement that
    /// changes something has ended, and every commit. Meanwhile, and while the locks returned are
    /// held, none begins. (MySQL 8.4 manual, 7.1.8, `read_only`.)
    ///
    /// # Errors
    /// 1192 for a session that has a transaction or locked tables, which it would wait for.
    fn wait_for_changes_to_end(
        &self,
        position: variables::Position,
        value: Option<&Value>,
    ) -> Result<Option<[MdlTicket; 2]>> {
        let variable = &variables::VARIABLES[position];
        let is_protection = matches!(variable.name, "read_only" | "super_read_only");
        let switches_on = |value: &Value| variable.check(value.clone()) == Ok(Value::Int(1));
        if !is_protection || !value.is_some_and(switches_on) {
            return Ok(None);
        }
        if self.transaction.open || !self.state.locked_tables.is_empty() {
            return Err(Error::locked_or_in_transaction());
        }
        if self.state.global_read_lock.is_some() {
            return Ok(None);
        }
        mdl::take_global_read_lock(self.state.requester(&self.shared.locks)).map(Some)
    }

    fn set_transaction(
        &mut self,
        scope: Option<VariableScope>,
        isolation: Option<ast::IsolationLevel>,
        read_only: Option<bool>,
    ) -> Result<()> {
        let isolation = isolation.map(|level| match level {
            ast::IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
            ast::IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            ast::IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            ast::IsolationLevel::Serializable => Isolation::Serializable,
        });
        let reads = match scope {
            None => {
                if self.transaction.open {
                    return Err(Error::transaction_characteristics());
                }
                if let Some(isolation) = isolation {
                    self.transaction.isolation = isolation;
                }
                if let Some(read_only) = read_only {
                    self.transaction.read_only = Some(read_only);
                }
                return Ok(());
            }
            Some(VariableScope::Global) => {
                porpoise_session::check::check_set_global(&self.state)?;
                Reads::Global
            }
            Some(_) => Reads::Session,
        };
        if reads == Reads::Session {
            self.pin_read_only();
        }
        let shared = &self.shared;
        let mut set = |name: &str, value: Value| {
            let position =
                variables::find(name).ok_or_else(|| Error::unknown_system_variable(name))?;
            variables::set(
                position,
                reads,
                Some(value),
                &mut self.state,
                &shared.variables,
            )
        };
        if let Some(isolation) = isolation {
            set("transaction_isolation", Value::text(isolation.name()))?;
        }
        if let Some(read_only) = read_only {
            set("transaction_read_only", Value::Int(read_only.into()))?;
        }
        if !self.transaction.open {
            self.transaction.isolation = self.state.isolation;
        }
        Ok(())
    }
}
