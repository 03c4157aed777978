//! GRANT and REVOKE of privileges (MySQL 8.4 manual, 15.7.1.6 and 15.7.1.8).

use compact_str::CompactString;
use porpoise_accounts::policy::now_us;
use porpoise_accounts::routine::{RoutineGrant, RoutineName};
use porpoise_accounts::{Grants, SchemaGrant, TableGrant};
use porpoise_catalog::Relation;
use porpoise_catalog::program::ProgramKind;
use porpoise_core::error::{Error, Level, Result};
use porpoise_core::privilege::{DYNAMIC, PRIVILEGES, Privilege, Set, level};
use porpoise_session::check::grants;
use porpoise_sql::ast;

use super::{AccountStatement, Name};

/// The privileges that a GRANT or REVOKE names, by level, and what they are on.
struct GrantSpec {
    target: Target,
    privileges: Set,
    columns: Vec<(CompactString, Set)>,
    dynamic: Vec<CompactString>,
    /// Whoever grants: `user@host`.
    grantor: CompactString,
}

enum Target {
    Global,
    Schema(CompactString),
    Table(CompactString, CompactString),
    Routine(RoutineName),
}

fn add(grants: &mut Grants, spec: &GrantSpec, grant_option: bool) {
    match &spec.target {
        Target::Global => {
            grants.global = grants.global.with(spec.privileges);
            for name in &spec.dynamic {
                match grants.dynamic.iter_mut().find(|(known, _)| known == name) {
                    Some((_, passes_on)) => *passes_on |= grant_option,
                    None => grants.dynamic.push((name.clone(), grant_option)),
                }
            }
        }
        Target::Schema(pattern) => match grants
            .schemas
            .iter_mut()
            .find(|grant| grant.pattern == *pattern)
        {
            Some(grant) => grant.privileges = grant.privileges.with(spec.privileges),
            None => grants.schemas.push(SchemaGrant {
                pattern: pattern.clone(),
                privileges: spec.privileges,
            }),
        },
        Target::Routine(routine) => grants.add_on_routine(RoutineGrant {
            routine: routine.clone(),
            privileges: spec.privileges,
            grantor: spec.grantor.clone(),
            granted_us: now_us(),
        }),
        Target::Table(schema, table) => {
            let position = grants
                .tables
                .iter()
                .position(|grant| grant.schema == *schema && grant.table == *table);
            let position = position.unwrap_or_else(|| {
                let fresh = TableGrant {
                    schema: schema.clone(),
                    table: table.clone(),
                    privileges: Set::NONE,
                    columns: Vec::new(),
                    grantor: CompactString::default(),
                    granted_us: 0,
                };
                grants.tables.push(fresh);
                grants.tables.len() - 1
            });
            let grant = &mut grants.tables[position];
            grant.grantor = spec.grantor.clone();
            grant.granted_us = now_us();
            grant.privileges = grant.privileges.with(spec.privileges);
            for (column, set) in &spec.columns {
                match grant
                    .columns
                    .iter_mut()
                    .find(|(known, _)| known.eq_ignore_ascii_case(column))
                {
                    Some((_, granted)) => *granted = granted.with(*set),
                    None => grant.columns.push((column.clone(), *set)),
                }
            }
        }
    }
}

/// Takes privileges away; an error if there was no grant at that level.
fn take(grants: &mut Grants, spec: &GrantSpec, name: &Name) -> Result<()> {
    match &spec.target {
        Target::Global => {
            grants.global = grants.global.without(spec.privileges);
            grants
                .dynamic
                .retain(|(known, _)| !spec.dynamic.contains(known));
        }
        Target::Schema(pattern) => {
            let Some(grant) = grants
                .schemas
                .iter_mut()
                .find(|grant| grant.pattern == *pattern)
            else {
                return Err(Error::no_such_grant(&name.0, &name.1));
            };
            grant.privileges = grant.privileges.without(spec.privileges);
            grants.schemas.retain(|grant| !grant.privileges.is_empty());
        }
        Target::Routine(routine) => {
            let mut granted = grants.routines.iter_mut();
            let Some(grant) = granted.find(|grant| grant.routine.is(routine)) else {
                let named = &routine.name;
                return Err(Error::no_such_routine_grant(&name.0, &name.1, named));
            };
            grant.privileges = grant.privileges.without(spec.privileges);
            grants.routines.retain(|grant| !grant.privileges.is_empty());
        }
        Target::Table(schema, table) => {
            let Some(grant) = grants
                .tables
                .iter_mut()
                .find(|grant| grant.schema == *schema && grant.table == *table)
            else {
                return Err(Error::no_such_table_grant(&name.0, &name.1, table));
            };
            grant.privileges = grant.privileges.without(spec.privileges);
            for (column, set) in &spec.columns {
                if let Some((_, granted)) = grant
                    .columns
                    .iter_mut()
                    .find(|(known, _)| known.eq_ignore_ascii_case(column))
                {
                    *granted = granted.without(*set);
                }
            }
            grant.columns.retain(|(_, set)| !set.is_empty());
            grants
                .tables
                .retain(|grant| !grant.privileges.is_empty() || !grant.columns.is_empty());
        }
    }
    Ok(())
}

impl AccountStatement<'_> {
    fn resolve(
        &self,
        privileges: &[ast::Privilege],
        object: &ast::GrantObject,
    ) -> Result<GrantSpec> {
        let current = || self.state.schema_or_current(None);
        let (target, at) = match object {
            ast::GrantObject::Global => (Target::Global, level::GLOBAL),
            ast::GrantObject::Database(None) => (Target::Schema(current()?), level::SCHEMA),
            ast::GrantObject::Database(Some(name)) => {
                (Target::Schema(name.0.clone()), level::SCHEMA)
            }
            ast::GrantObject::Table(name) => {
                let schema = name
                    .schema
                    .as_ref()
                    .map_or_else(current, |schema| Ok(schema.0.clone()))?;
                (Target::Table(schema, name.name.0.clone()), level::TABLE)
            }
            ast::GrantObject::Function(name) | ast::GrantObject::Procedure(name) => {
                let schema = name.schema.as_ref();
                let routine = RoutineName {
                    schema: schema.map_or_else(current, |schema| Ok(schema.0.clone()))?,
                    name: name.name.0.clone(),
                    is_function: matches!(object, ast::GrantObject::Function(_)),
                };
                (Target::Routine(routine), level::ROUTINE)
            }
        };
        let mut spec = GrantSpec {
            target,
            privileges: Set::NONE,
            columns: Vec::new(),
            dynamic: Vec::new(),
            grantor: self.own_name(),
        };
        for privilege in privileges {
            let name = &*privilege.name;
            match name {
                "USAGE" => continue,
                "ALL" => {
                    spec.privileges = spec.privileges.with(Set::all(at));
                    if at == level::GLOBAL {
                        spec.dynamic
                            .extend(DYNAMIC.iter().map(|name| CompactString::new(name)));
                    }
                    continue;
                }
                _ => {}
            }
            if DYNAMIC.contains(&name) {
                if at != level::GLOBAL {
                    return Err(Error::illegal_privilege_level(name));
                }
                spec.dynamic.push(name.into());
                continue;
            }
            let Some(row) = PRIVILEGES.iter().find(|row| row.name == name) else {
                return Err(Error::syntax_error(name, 1));
            };
            if privilege.columns.is_empty() {
                if row.levels & at == 0 {
                    return Err(match at {
                        level::SCHEMA => Error::wrong_usage("DB GRANT", "GLOBAL PRIVILEGES"),
                        _ => Error::illegal_grant_for_table(),
                    });
                }
                spec.privileges = spec.privileges.with(row.privilege.set());
                continue;
            }
            if at != level::TABLE {
                return Err(Error::wrong_usage("COLUMN GRANT", "GLOBAL PRIVILEGES"));
            }
            if row.levels & level::COLUMN == 0 {
                return Err(Error::wrong_usage("COLUMN GRANT", "NON-COLUMN PRIVILEGES"));
            }
            for column in &privilege.columns {
                spec.columns.push((column.0.clone(), row.privilege.set()));
            }
        }
        Ok(spec)
    }

    /// Whoever passes privileges on must have them, with GRANT OPTION.
    fn check_may_pass_on(&self, spec: &GrantSpec) -> Result<()> {
        let Some(own) = grants(self.state) else {
            return Ok(());
        };
        let (user, host) = (&self.state.user, &self.state.host);
        let columns = spec
            .columns
            .iter()
            .fold(Set::NONE, |set, (_, privileges)| set.with(*privileges));
        let needed = spec
            .privileges
            .with(columns)
            .with(Privilege::GrantOption.set());
        match &spec.target {
            Target::Global => {
                let only_dynamic = spec.privileges.is_empty() && !spec.dynamic.is_empty();
                let dynamic = spec.dynamic.iter().all(|name| {
                    own.dynamic
                        .iter()
                        .any(|(known, passes_on)| known == name && *passes_on)
                });
                if (only_dynamic || own.global.contains(needed)) && dynamic {
                    return Ok(());
                }
                Err(Error::access_denied(user, host, "YES"))
            }
            Target::Schema(schema) if own.on_schema(schema).contains(needed) => Ok(()),
            Target::Schema(schema) => Err(Error::db_access_denied(user, host, schema)),
            Target::Table(schema, table) if own.on_table(schema, table).contains(needed) => Ok(()),
            Target::Table(_, table) => Err(Error::table_access_denied("GRANT", user, host, table)),
            Target::Routine(routine) if own.on_routine(routine).contains(needed) => Ok(()),
            Target::Routine(routine) => {
                let named = format!("{}.{}", routine.schema, routine.name);
                Err(Error::routine_access_denied("grant", user, host, named))
            }
        }
    }

    /// A table or routine that privileges are granted on exists, and so do the columns.
    fn check_object(&self, spec: &GrantSpec) -> Result<()> {
        if let Target::Routine(routine) = &spec.target {
            let kind = match routine.is_function {
                true => ProgramKind::Function,
                false => ProgramKind::Procedure,
            };
            let catalog = self.shared.catalog.load();
            return match catalog.program(&routine.schema, kind, &routine.name) {
                Some(_) => Ok(()),
                None => {
                    let kind = "FUNCTION or PROCEDURE";
                    Err(Error::routine_does_not_exist(kind, &routine.name))
                }
            };
        }
        let Target::Table(schema, table) = &spec.target else {
            return Ok(());
        };
        let relation = self.shared.catalog.load().relation(schema, table);
        let known = |column: &str| match &relation {
            Some(Relation::Table(table)) => table.column_position(column).is_some(),
            Some(Relation::View(view)) => view
                .columns
                .iter()
                .any(|name| name.eq_ignore_ascii_case(column)),
            _ => true,
        };
        if relation.is_none() && !spec.privileges.has(Privilege::Create) {
            return Err(Error::no_such_table(schema, table));
        }
        match spec.columns.iter().find(|(column, _)| !known(column)) {
            Some((column, _)) => Err(Error::unknown_column(column, table)),
            None => Ok(()),
        }
    }

    pub(super) fn grant(&mut self, grant: &ast::Grant) -> Result<()> {
        let ast::Grant::Privileges {
            privileges,
            object,
            to,
            grant_option,
            as_user,
        } = grant
        else {
            return match grant {
                ast::Grant::Roles {
                    roles,
                    to,
                    admin_option,
                } => self.grant_roles(roles, to, *admin_option),
                ast::Grant::Proxy {
                    on,
                    to,
                    grant_option,
                } => self.grant_proxy(on, to, *grant_option),
                ast::Grant::Privileges { .. } => Ok(()),
            };
        };
        if as_user.is_some() {
            return Err(Error::not_supported_yet("GRANT … AS"));
        }
        let mut spec = self.resolve(privileges, object)?;
        self.check_may_pass_on(&spec)?;
        self.check_object(&spec)?;
        if *grant_option {
            spec.privileges = spec.privileges.with(Privilege::GrantOption.set());
        }
        for user in to {
            let name = self.name(&user.account)?;
            let Some(account) = self.change.get(&name.0, &name.1) else {
                return Err(Error::cannot_create_user_with_grant());
            };
            let mut grants = self.change.grants(&account);
            add(&mut grants, &spec, *grant_option);
            self.change.put_grants(&account, grants)?;
        }
        Ok(())
    }

    pub(super) fn revoke(&mut self, revoke: &ast::Revoke) -> Result<()> {
        let spec = match &revoke.what {
            ast::RevokeWhat::Privileges(privileges, object) => {
                let spec = self.resolve(privileges, object)?;
                self.check_may_pass_on(&spec)?;
                Some(spec)
            }
            ast::RevokeWhat::Everything => {
                self.check_create_user()?;
                None
            }
            ast::RevokeWhat::Proxy(on) => return self.revoke_proxy(on, &revoke.from),
            ast::RevokeWhat::Roles(roles) => return self.revoke_roles(roles, revoke),
        };
        for user in &revoke.from {
            let name = self.name(user)?;
            let Some(account) = self.change.get(&name.0, &name.1) else {
                let missing = match spec {
                    None => Error::cannot_revoke_all(),
                    Some(_) => Error::no_such_grant(&name.0, &name.1),
                };
                if revoke.ignore_unknown {
                    self.state.warn(Level::Warning, missing.into_condition());
                    continue;
                }
                return Err(missing);
            };
            let mut grants = self.change.grants(&account);
            match &spec {
                None => {
                    grants = Grants {
                        roles: grants.roles,
                        ..Grants::default()
                    }
                }
                Some(spec) => {
                    if let Err(error) = take(&mut grants, spec, &name) {
                        if !revoke.if_exists {
                            return Err(error);
                        }
                        self.state.warn(Level::Warning, error.into_condition());
                    }
                }
            }
            self.change.put_grants(&account, grants)?;
        }
        Ok(())
    }
}
