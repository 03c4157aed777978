//! Refuses what a session may not do.
//!
//! | what is missing | error |
//! | --- | --- |
//! | a privilege on a schema | 1044 |
//! | a privilege on a table | 1142 |
//! | a privilege on a column | 1143 |
//! | a privilege of the server's administration | 1227 |

use std::sync::Arc;

use porpoise_sql::ast;

use crate::accounts::Grants;
use crate::accounts::privilege::Privilege;
use crate::accounts::role;
use crate::catalog::{Table, TableId};
use crate::error::{Error, Result};
use crate::planner::plan::{InsertSource, Node, OnDuplicate, Plan, PlanKind, TableUse};
use crate::session::SessionState;

/// The grants that count for a session; `None`: everything is allowed.
pub fn grants(state: &SessionState) -> Option<Arc<Grants>> {
    let account = state.account.as_ref()?;
    if state.active_roles.is_empty() {
        return Some(account.grants.load_full());
    }
    Some(role::with_roles(state, account))
}

/// Whether a session has a privilege at the global level.
pub fn has_global(state: &SessionState, privilege: Privilege) -> bool {
    grants(state).is_none_or(|grants| grants.global.has(privilege))
}

/// Whether the session has one of a static and a dynamic privilege; error 1227 names both.
pub fn check_admin(state: &SessionState, privilege: Privilege, dynamic: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.global.has(privilege) && !grants.has_dynamic(dynamic) => {
            let names = if dynamic.is_empty() {
                privilege.name().to_string()
            } else {
                format!("{} or {dynamic}", privilege.name())
            };
            Err(Error::specific_access_denied(names))
        }
        _ => Ok(()),
    }
}

fn denied(state: &SessionState, privilege: Privilege, table: &str) -> Error {
    Error::table_access_denied(privilege.name(), &state.user, &state.host, table)
}

fn schema_denied(state: &SessionState, schema: &str) -> Error {
    let (user, host) = match &state.account {
        Some(account) => (&account.user, &account.host),
        None => (&state.user, &state.host),
    };
    Error::db_access_denied(user, host, schema)
}

/// A privilege on a table as a whole.
pub fn check_table(
    state: &SessionState,
    privilege: Privilege,
    schema: &str,
    table: &str,
) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.on_table(schema, table).has(privilege) => {
            Err(denied(state, privilege, table))
        }
        _ => Ok(()),
    }
}

/// A privilege on a schema.
pub fn check_schema(state: &SessionState, privilege: Privilege, schema: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !grants.on_schema(schema).has(privilege) => {
            Err(schema_denied(state, schema))
        }
        _ => Ok(()),
    }
}

/// Any privilege on a table: it may be described.
pub fn check_table_visible(state: &SessionState, schema: &str, table: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !is_open(schema) && !grants.sees_table(schema, table) => {
            Err(denied(state, Privilege::Select, table))
        }
        _ => Ok(()),
    }
}

/// Schemas that everybody may read.
fn is_open(schema: &str) -> bool {
    schema.eq_ignore_ascii_case("information_schema")
        || schema.eq_ignore_ascii_case("performance_schema")
}

/// Whether the session may know of a schema (1044).
pub fn check_schema_visible(state: &SessionState, schema: &str) -> Result<()> {
    match grants(state) {
        Some(grants) if !is_open(schema) && !grants.sees_schema(schema) => {
            Err(schema_denied(state, schema))
        }
        _ => Ok(()),
    }
}

/// Whether the session may kill others' (CONNECTION_ADMIN).
pub fn may_kill(state: &SessionState) -> bool {
    grants(state).is_none_or(|grants| {
        grants.global.has(Privilege::Super) || grants.has_dynamic("CONNECTION_ADMIN")
    })
}

/// Whether the session may set global variables (1227).
pub fn check_set_global(state: &SessionState) -> Result<()> {
    check_admin(state, Privilege::Super, "SYSTEM_VARIABLES_ADMIN")
}

// ---------------------------------------------------------------------------------------------------------
// Plans
// ---------------------------------------------------------------------------------------------------------

/// Whether the session may run a plan (1142, 1143).
pub fn check_plan(state: &SessionState, plan: &Plan) -> Result<()> {
    let Some(grants) = grants(state) else {
        return Ok(());
    };
    if grants.global.contains(Privilege::Select.set()) && matches!(plan.kind, PlanKind::Query(_)) {
        return Ok(());
    }
    let check = Checker {
        state,
        grants: &grants,
    };
    let node = match &plan.kind {
        PlanKind::Query(query) => Some(&query.node),
        PlanKind::Insert(insert) => {
            check.columns(&insert.table, Privilege::Insert, &insert.columns)?;
            match &insert.duplicates {
                OnDuplicate::Error => {}
                OnDuplicate::Replace => check.whole(&insert.table, Privilege::Delete)?,
                OnDuplicate::Update { assignments, .. } => {
                    let columns: Vec<usize> = assignments
                        .iter()
                        .map(|assignment| assignment.column)
                        .collect();
                    check.columns(&insert.table, Privilege::Update, &columns)?;
                }
            }
            match &insert.source {
                InsertSource::Query { node, .. } => Some(node),
                InsertSource::Values(_) | InsertSource::Load(_) => None,
            }
        }
        PlanKind::Update(update) => {
            for target in &update.targets {
                let columns: Vec<usize> = target
                    .assignments
                    .iter()
                    .map(|assignment| assignment.column)
                    .collect();
                check.columns(&target.table, Privilege::Update, &columns)?;
            }
            Some(&update.node)
        }
        PlanKind::Delete(delete) => {
            for (table, _) in &delete.targets {
                check.whole(table, Privilege::Delete)?;
            }
            Some(&delete.node)
        }
    };
    let mut scanned = Vec::new();
    if let Some(node) = node {
        check.reads(node, &mut scanned)?;
    }
    // Tables that only subqueries read: SELECT on the whole of them.
    let others = plan
        .tables
        .iter()
        .filter(|(table, usage)| *usage == TableUse::Read && !scanned.contains(&table.id));
    others
        .map(|(table, _)| check.whole(table, Privilege::Select))
        .collect()
}

struct Checker<'a> {
    state: &'a SessionState,
    grants: &'a Grants,
}

impl Checker<'_> {
    fn whole(&self, table: &Table, privilege: Privilege) -> Result<()> {
        if table.temporary
            || self
                .grants
                .on_table(&table.schema, &table.name)
                .has(privilege)
        {
            return Ok(());
        }
        Err(denied(self.state, privilege, &table.name))
    }

    /// A privilege on the table, or on each of the columns.
    fn columns(&self, table: &Table, privilege: Privilege, columns: &[usize]) -> Result<()> {
        let Err(error) = self.whole(table, privilege) else {
            return Ok(());
        };
        let granted = self.grants.table(&table.schema, &table.name);
        if !granted.is_some_and(|grant| grant.columns.iter().any(|(_, set)| set.has(privilege))) {
            return Err(error);
        }
        for &column in columns {
            let name = &table.columns[column].name;
            if !self
                .grants
                .on_column(&table.schema, &table.name, name)
                .has(privilege)
            {
                let SessionState { user, host, .. } = self.state;
                return Err(Error::column_access_denied(
                    privilege.name(),
                    user,
                    host,
                    name,
                    &table.name,
                ));
            }
        }
        Ok(())
    }

    /// SELECT on every table, or the columns read of it, that a node scans.
    fn reads(&self, node: &Node, scanned: &mut Vec<TableId>) -> Result<()> {
        match node {
            Node::One
            | Node::Empty
            | Node::Values { .. }
            | Node::JsonTable { .. }
            | Node::Virtual { .. }
            | Node::Working { .. } => Ok(()),
            Node::Scan(scan) => {
                scanned.push(scan.table.id);
                let read = scan
                    .columns_read
                    .iter()
                    .enumerate()
                    .filter(|(_, read)| **read)
                    .map(|(column, _)| column);
                let read: Vec<usize> = read
                    .filter(|column| *column < scan.table.columns.len())
                    .collect();
                self.columns(&scan.table, Privilege::Select, &read)
            }
            Node::Derived { input, .. }
            | Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Sort { input, .. }
            | Node::Distinct { input, .. }
            | Node::Limit { input, .. } => self.reads(input, scanned),
            Node::Recursive { seed, step, .. } => {
                self.reads(seed, scanned)?;
                self.reads(step, scanned)
            }
            Node::NestedLoop { left, right, .. } | Node::HashJoin { left, right, .. } => {
                self.reads(left, scanned)?;
                self.reads(right, scanned)
            }
            Node::Group(group) => self.reads(&group.input, scanned),
            Node::Window(window) => self.reads(&window.input, scanned),
            Node::SetOperation { inputs, .. } => inputs
                .iter()
                .try_for_each(|(input, _)| self.reads(input, scanned)),
        }
    }
}

// ---------------------------------------------------------------------------------------------------------
// Statements without a plan
// ---------------------------------------------------------------------------------------------------------

/// Whether the session may run a DDL, maintenance or administration statement.
pub fn check_statement(state: &SessionState, statement: &ast::Statement) -> Result<()> {
    use ast::Statement as S;
    if grants(state).is_none() {
        return Ok(());
    }
    let here = |name: &ast::ObjectName| {
        let schema = name
            .schema
            .as_ref()
            .map(|schema| schema.0.clone())
            .or_else(|| state.schema.clone())
            .unwrap_or_default();
        (schema, name.name.0.clone())
    };
    let table = |name: &ast::ObjectName, privileges: &[Privilege]| {
        let (schema, name) = here(name);
        if state
            .temporary_tables
            .contains_key(&(schema.clone(), name.clone()))
        {
            return Ok(());
        }
        privileges
            .iter()
            .try_for_each(|&privilege| check_table(state, privilege, &schema, &name))
    };
    let refers_to = |key: &ast::ForeignKey, schema: &compact_str::CompactString| {
        let parent = &key.references.table;
        let schema = parent.schema.as_ref().map_or(schema, |schema| &schema.0);
        check_table(state, Privilege::References, schema, &parent.name)
    };
    match statement {
        S::CreateDatabase { name, .. } => check_schema(state, Privilege::Create, name),
        S::AlterDatabase { name, .. } => {
            let schema = name
                .as_ref()
                .map(|name| name.0.clone())
                .or_else(|| state.schema.clone())
                .unwrap_or_default();
            check_schema(state, Privilege::Alter, &schema)
        }
        S::DropDatabase { name, .. } => check_schema(state, Privilege::Drop, name),
        S::CreateTable(create) if create.temporary => check_schema(
            state,
            Privilege::CreateTemporaryTables,
            &here(&create.name).0,
        ),
        S::CreateTable(create) => {
            table(&create.name, &[Privilege::Create])?;
            if create.query.is_some() {
                table(&create.name, &[Privilege::Insert])?;
            }
            let schema = here(&create.name).0;
            create
                .elements
                .iter()
                .try_for_each(|element| match element {
                    ast::TableElement::ForeignKey(key) => refers_to(key, &schema),
                    _ => Ok(()),
                })
        }
        S::CreateTableLike {
            temporary: true,
            name,
            source,
            ..
        } => {
            table(source, &[Privilege::Select])?;
            check_schema(state, Privilege::CreateTemporaryTables, &here(name).0)
        }
        S::CreateTableLike { name, source, .. } => {
            table(source, &[Privilege::Select])?;
            table(name, &[Privilege::Create])
        }
        S::AlterTable(alter) => {
            table(&alter.table, &[Privilege::Alter])?;
            for action in &alter.actions {
                match action {
                    ast::AlterAction::RenameTable(new) => {
                        table(&alter.table, &[Privilege::Drop])?;
                        table(new, &[Privilege::Create, Privilege::Insert])?;
                    }
                    ast::AlterAction::AddForeignKey(key) => {
                        refers_to(key, &here(&alter.table).0)?;
                    }
                    _ => {}
                }
            }
            Ok(())
        }
        S::CreateIndex { table: name, .. } | S::DropIndex { table: name, .. } => {
            table(name, &[Privilege::Index])
        }
        S::DropTable { tables, .. } => tables
            .iter()
            .try_for_each(|name| table(name, &[Privilege::Drop])),
        S::DropView { views, .. } => views
            .iter()
            .try_for_each(|name| table(name, &[Privilege::Drop])),
        S::Truncate(name) => table(name, &[Privilege::Drop]),
        S::RenameTable(pairs) => pairs.iter().try_for_each(|(old, new)| {
            table(old, &[Privilege::Alter, Privilege::Drop])?;
            table(new, &[Privilege::Create, Privilege::Insert])
        }),
        S::CreateView(create) => {
            table(&create.name, &[Privilege::CreateView])?;
            if create.or_replace || create.alter {
                table(&create.name, &[Privilege::Drop])
            } else {
                Ok(())
            }
        }
        S::Maintain { action, tables, .. } => tables.iter().try_for_each(|name| match action {
            ast::Maintenance::Check | ast::Maintenance::Checksum => {
                table(name, &[Privilege::Select])
            }
            _ => table(name, &[Privilege::Select, Privilege::Insert]),
        }),
        S::LockTables(locks) => locks.iter().try_for_each(|lock| {
            table(&lock.table, &[Privilege::Select])?;
            check_schema(state, Privilege::LockTables, &here(&lock.table).0)
        }),
        S::Flush { .. } | S::Reset(_) => check_admin(state, Privilege::Reload, ""),
        _ => Ok(()),
    }
}
