//! UPDATE and DELETE, and what all changes of rows share.

use std::sync::Arc;

use porpoise_catalog::Table;
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::typing;
use porpoise_expr::{Expr, SlotId};
use porpoise_sql::ast;
use porpoise_types::DataType;

use crate::access::Need;
use crate::bind::Binder;
use crate::bind::change_target::ChangeTarget;
use crate::bind::scope::{Aliases, Columns, Scope};
use crate::optimize;
use crate::plan::{
    Access, Assignment, Delete, Node, OnLocked, RowLock, TableUse, Update, UpdateTarget, ViewCheck,
};
use crate::query::{Block, Body, JoinTree, Query, SourceKind, SubqueryStrategies};

/// The number of the query block that an UPDATE or DELETE is itself.
const CHANGE_BLOCK: u32 = 1;

impl Binder<'_> {
    /// The conditions that WITH CHECK OPTION puts on changed rows of a slot.
    pub(super) fn checks_of(&mut self, slot: SlotId) -> Result<Vec<ViewCheck>> {
        let mut checks: Vec<ViewCheck> = self
            .view_checks
            .iter()
            .filter(|(slots, _)| slots.contains(&slot))
            .map(|(_, check)| check.clone())
            .collect();
        for condition in checks.iter_mut().flat_map(|check| &mut check.conditions) {
            optimize::plan_subqueries(self, condition)?;
        }
        Ok(checks)
    }

    /// Notes which columns of a target are given values.
    pub(super) fn written(
        &mut self,
        target: &ChangeTarget,
        privilege: Privilege,
        columns: impl IntoIterator<Item = usize>,
    ) {
        let Some(access) = target.access else { return };
        for column in columns {
            let column = (access, target.column_name(column));
            self.accesses.column(&column, privilege);
        }
    }

    /// The value a column is given; `None` is DEFAULT, all that a generated column takes.
    pub(super) fn assigned(
        &mut self,
        value: &ast::Expr,
        column: usize,
        table: &Table,
    ) -> Result<Option<Expr>> {
        let definition = &table.columns[column];
        match value {
            ast::Expr::Default => Ok(None),
            _ if definition.generated.is_some() => Err(Error::generated_column_not_allowed(
                &definition.name,
                &table.name,
            )),
            value => {
                let value = self.expr(value)?;
                if porpoise_expr::typing::compare::width(&value) != 1 {
                    return Err(Error::operand_columns(1));
                }
                // A hexadecimal literal is a number to a column of numbers.
                let number = typing::class(&definition.ty).is_number()
                    && !matches!(definition.ty, DataType::Bit(_));
                Ok(Some(if number {
                    typing::hex_number(value)
                } else {
                    value
                }))
            }
        }
    }

    pub(super) fn update(&mut self, update: &ast::Update) -> Result<Update> {
        self.keeps_derived = true;
        if let Some(with) = &update.with {
            self.with(with)?;
        }
        single_table_only(
            "UPDATE",
            update.tables.len() == 1 && !is_join(&update.tables[0]),
            &update.order_by,
            update.limit.is_some(),
        )?;
        self.scopes.push(Scope {
            block: CHANGE_BLOCK,
            ..Scope::new("from clause")
        });
        let (mut from, _) = self.changed_from(Privilege::Update, &update.tables)?;
        self.change_views();
        self.scope().clause = "field list";
        let mut targets = self.update_targets(&update.assignments, &from)?;
        for target in &targets {
            self.check_target_unread(&target.table)?;
        }
        for target in &targets {
            self.use_table(&target.table, TableUse::Write);
        }
        let slots: Vec<SlotId> = targets.iter().map(|target| target.slot).collect();
        lock_targets(&mut from, &slots);
        let (node, limit, single) = self.changed_rows(
            from,
            update.selection.as_ref(),
            &update.order_by,
            update.limit.as_ref(),
            &targets
                .iter()
                .map(|target| target.table.clone())
                .collect::<Vec<_>>(),
        )?;
        self.block_rows = optimize::rows_of(&node);
        let assignments = targets
            .iter_mut()
            .flat_map(|target| &mut target.assignments);
        for value in assignments.filter_map(|assignment| assignment.value.as_mut()) {
            optimize::plan_subqueries(self, value)?;
        }
        self.keep_update_text(&targets, update.ignore);
        let in_place = single
            && update.order_by.is_empty()
            && !targets.iter().any(|target| meets_again(&node, target));
        Ok(Update {
            node,
            targets,
            ignore: update.ignore,
            limit,
            in_place,
        })
    }

    /// The tables that SET assigns to, in the order in which it names them.
    fn update_targets(
        &mut self,
        written: &[ast::Assignment],
        from: &JoinTree,
    ) -> Result<Vec<UpdateTarget>> {
        let mut assigned: Vec<(Arc<Table>, SlotId, Vec<Assignment>)> = Vec::new();
        // Of a view of several tables one may be changed.
        let mut changed: Vec<(usize, SlotId)> = Vec::new();
        for assignment in written {
            let Some(at) = self.scope().find(&assignment.column)? else {
                let name = &assignment.column;
                let looked_for = self.scope().possible_column(name);
                return Err(self.unknown_column(name, "field list", looked_for, Privilege::Update));
            };
            let (table, slot, column) = self.changed_column(from, at, "UPDATE")?;
            let relation = &self.scope().relations[at.0];
            let known = changed.iter().find(|(relation, _)| *relation == at.0);
            match known {
                Some((_, known)) if *known != slot => {
                    return Err(Error::view_changes_several(relation.qualified_name()));
                }
                _ => changed.push((at.0, slot)),
            }
            let named = self.scope().relations[at.0].access_column(at.1);
            if let Some(named) = named {
                self.accesses.change(named.0, Privilege::Update.set());
                self.accesses.column(&named, Privilege::Update);
            }
            let value = self.assigned(&assignment.value, column, &table)?;
            let assignment = Assignment { column, value };
            match assigned.iter_mut().find(|(_, known, _)| *known == slot) {
                Some((_, _, assignments)) => assignments.push(assignment),
                None => assigned.push((table, slot, vec![assignment])),
            }
        }
        let mut targets = Vec::with_capacity(assigned.len());
        for (table, slot, assignments) in assigned {
            let checks = self.checks_of(slot)?;
            targets.push(UpdateTarget::new(table, slot, assignments, checks));
        }
        Ok(targets)
    }

    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<Delete> {
        self.keeps_derived = true;
        if let Some(with) = &delete.with {
            self.with(with)?;
        }
        single_table_only(
            "DELETE",
            delete.targets.is_empty(),
            &delete.order_by,
            delete.limit.is_some(),
        )?;
        self.scopes.push(Scope {
            block: CHANGE_BLOCK,
            ..Scope::new("from clause")
        });
        let (mut from, _) = self.changed_from(Privilege::Delete, &delete.from)?;
        self.change_views();
        let mut targets: Vec<(Arc<Table>, SlotId)> = Vec::new();
        let mut named = Vec::new();
        let count = if delete.targets.is_empty() {
            1
        } else {
            delete.targets.len()
        };
        for number in 0..count {
            let relation =
                match delete.targets.get(number) {
                    None => Some(0),
                    Some(name) => self.scope().relations.iter().position(|relation| {
                        relation.is_called(name.schema.as_deref(), &name.name)
                    }),
                };
            let Some(relation) = relation else {
                let name = delete
                    .targets
                    .get(number)
                    .map_or("", |name| name.name.as_str());
                return Err(Error::unknown_table_in(name, "MULTI DELETE"));
            };
            if named.contains(&relation) {
                let alias = self.scope().relations[relation].alias.clone();
                return Err(Error::not_unique_table(alias));
            }
            named.push(relation);
            if self.scope().relations[relation].is_join_view() {
                let view = self.scope().relations[relation].qualified_name();
                return Err(Error::view_of_several_deletes(view));
            }
            if let Some(access) = self.scope().relations[relation].access {
                self.accesses.change(access, Privilege::Delete.set());
                self.accesses.whole(access, Privilege::Delete);
            }
            let (table, slot, _) = self.changed_column(&from, (relation, 0), "DELETE")?;
            if !targets.iter().any(|(_, known)| *known == slot) {
                self.use_table(&table, TableUse::Write);
                targets.push((table, slot));
            }
        }
        let slots: Vec<SlotId> = targets.iter().map(|target| target.1).collect();
        lock_targets(&mut from, &slots);
        let tables: Vec<Arc<Table>> = targets.iter().map(|target| target.0.clone()).collect();
        let (node, limit, single) = self.changed_rows(
            from,
            delete.selection.as_ref(),
            &delete.order_by,
            delete.limit.as_ref(),
            &tables,
        )?;
        self.keep_delete_text(&targets, !delete.targets.is_empty(), delete.ignore);
        let in_place = single && delete.order_by.is_empty();
        Ok(Delete {
            triggers: Vec::new(),
            node,
            targets,
            ignore: delete.ignore,
            limit,
            in_place,
        })
    }

    /// FROM of a change. A single table needs the privilege of the change; of several tables the
    /// assignments, or the list of targets, say which are changed.
    fn changed_from(
        &mut self,
        change: Privilege,
        tables: &[ast::TableRef],
    ) -> Result<(JoinTree, Vec<(usize, usize)>)> {
        if matches!(tables, [ast::TableRef::Table(_)]) {
            self.reads_need = Need::All(change.set());
        }
        self.binds_targets = true;
        let bound = self.from(tables);
        self.binds_targets = false;
        self.reads_need = Need::READ;
        bound
    }

    /// The stored column behind a relation's column.
    fn changed_column(
        &mut self,
        from: &JoinTree,
        (relation, column): (usize, usize),
        statement: &str,
    ) -> Result<(Arc<Table>, SlotId, usize)> {
        let relation = &self.scope().relations[relation];
        let refused = || Error::non_updatable_table(&relation.alias, statement);
        match &relation.columns {
            Columns::Table { slot, table } => Ok((table.clone(), *slot, column)),
            // A view's. A derived table can't be changed.
            Columns::Merged { columns, .. } if relation.access.is_some() => {
                let (slot, position) = columns
                    .get(column)
                    .and_then(|column| column.expr.as_column())
                    .ok_or_else(refused)?;
                let mut found = None;
                from.for_each_source(&mut |source| {
                    if let (true, SourceKind::Table(table)) = (source.slot == slot, &source.kind) {
                        found = Some(table.clone());
                    }
                });
                Ok((found.ok_or_else(refused)?, slot, position))
            }
            Columns::Virtual { table, .. } if table.is_log() => Err(Error::cant_lock_log_table()),
            _ => Err(refused()),
        }
    }

    /// The node that yields the rows to change, the limit, and whether one table alone is read.
    fn changed_rows(
        &mut self,
        from: JoinTree,
        selection: Option<&ast::Expr>,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Expr>,
        targets: &[Arc<Table>],
    ) -> Result<(Node, Option<Expr>, bool)> {
        self.scope().clause = "where clause";
        let conditions = match selection {
            Some(condition) => self.conditions(condition)?,
            None => Vec::new(),
        };
        let scope = self.scope();
        scope.clause = "order clause";
        scope.aliases = Aliases::Last;
        let order: Vec<SortKey> = self.order_items(order_by)?;
        let limit = limit.map(|limit| self.expr(limit)).transpose()?;
        for table in targets {
            self.check_target_unread(table)?;
        }
        self.keep_ending_text(&order, limit.as_ref());
        let block = Block {
            from,
            conditions,
            group: None,
            having: Vec::new(),
            windows: Vec::new(),
            distinct: false,
            straight: self.hints.is_fixed_order(CHANGE_BLOCK),
            number: CHANGE_BLOCK,
            subquery: SubqueryStrategies::default(),
        };
        let node = optimize::rows(self, block, order, limit.as_ref())?;
        if self.session().sql_safe_updates && limit.is_none() && reads_all(&node, targets) {
            return Err(Error::update_without_key());
        }
        let single = matches!(&node, Node::Scan(_) | Node::Empty);
        Ok((node, limit, single))
    }

    /// A subquery must not read the table that the statement changes, unless it is computed first,
    /// in a derived table (1093).
    fn check_target_unread(&self, table: &Table) -> Result<()> {
        for (number, query) in self.subqueries.iter().enumerate() {
            let Some(query) = query else { continue };
            if query_reads(query, table) && !self.subqueries_in_derived.contains(&number) {
                return Err(Error::update_table_used(&table.name));
            }
        }
        Ok(())
    }
}

/// Whether a node reads one of the tables without a key that conditions could use
/// (sql_safe_updates).
fn reads_all(node: &Node, tables: &[Arc<Table>]) -> bool {
    let whole = match node {
        Node::Scan(scan) => {
            scan.possible_keys.is_empty()
                && !matches!(scan.access, Access::Point { .. })
                && tables.iter().any(|table| table.id == scan.table.id)
        }
        _ => false,
    };
    whole
        || node
            .children()
            .into_iter()
            .any(|child| reads_all(child, tables))
}

/// Whether a scan of several ranges may meet a row again, in a later range where its new values put
/// it (the Halloween problem).
fn meets_again(node: &Node, target: &UpdateTarget) -> bool {
    let Node::Scan(scan) = node else { return false };
    let Access::Index { index, ranges, .. } = &scan.access else {
        return false;
    };
    let mut parts = scan.table.indexes[*index].parts.iter();
    ranges.len() > 1 && parts.any(|part| target.changes.touches(&[part.column]))
}

/// Whether a query reads a table directly, not in a derived table.
fn query_reads(query: &Query, table: &Table) -> bool {
    match &query.body {
        Body::Select(block) => {
            let mut found = false;
            block.from.for_each_source(&mut |source| {
                found |= matches!(&source.kind, SourceKind::Table(read) if read.id == table.id);
            });
            found
        }
        Body::SetOperation { inputs, .. } => inputs.iter().any(|input| query_reads(input, table)),
        Body::Values { .. } | Body::JsonTable { .. } | Body::Recursive { .. } => false,
    }
}

/// The rows that a statement changes are locked as they are read.
fn lock_targets(from: &mut JoinTree, slots: &[SlotId]) {
    from.for_each_source_mut(&mut |source| {
        if slots.contains(&source.slot) {
            source.lock = RowLock::Exclusive(OnLocked::Wait);
        }
    });
}

fn is_join(table: &ast::TableRef) -> bool {
    matches!(table, ast::TableRef::Join(_))
}

/// ORDER BY and LIMIT of UPDATE and DELETE go with one table.
fn single_table_only(
    statement: &str,
    single: bool,
    order_by: &[ast::OrderItem],
    limit: bool,
) -> Result<()> {
    match (single, order_by.is_empty(), limit) {
        (false, false, _) => Err(Error::wrong_usage(statement, "ORDER BY")),
        (false, _, true) => Err(Error::wrong_usage(statement, "LIMIT")),
        _ => Ok(()),
    }
}
