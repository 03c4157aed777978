//! INSERT, REPLACE, UPDATE and DELETE.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{ColumnDefault, Relation as CatalogRelation, Table, View};
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::{Privilege, Set};
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::typing;
use porpoise_expr::typing::collation::Coercibility;
use porpoise_expr::{Expr, Slot};
use porpoise_sql::ast;
use porpoise_types::{Charset, DataType};

use crate::access::{AccessId, Need};
use crate::bind::Binder;
use crate::bind::scope::{Aliases, Columns, MadeColumn, Relation, Scope, display};
use crate::file_format::FileFormat;
use crate::optimize;
use crate::plan::{
    Access, Assignment, Delete, Insert, InsertSource, Load, LoadTarget, Node, OnDuplicate,
    OnLocked, RowLock, TableUse, Update, UpdateTarget, ViewCheck,
};
use crate::query::{Block, Body, JoinTree, Query, SourceKind};

/// What INSERT writes to: a table, by its own name or through a view.
#[derive(Clone)]
pub struct ChangeTarget {
    table: Arc<Table>,
    slot: Slot,
    /// A view's columns by name, and where each lies in the table.
    view: Option<Vec<(CompactString, usize)>>,
    /// None for a temporary table.
    access: Option<AccessId>,
}

impl ChangeTarget {
    fn column_position(&self, name: &str) -> Option<usize> {
        match &self.view {
            None => self.table.column_position(name),
            Some(columns) => columns
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, column)| *column),
        }
    }

    /// What the target calls a column of the table.
    fn column_name(&self, position: usize) -> CompactString {
        let shown = self.view.iter().flatten().find(|(_, at)| *at == position);
        let name = shown.map_or(&self.table.columns[position].name, |(name, _)| name);
        name.clone()
    }

    /// The columns of an INSERT that names none.
    fn columns(&self) -> Vec<usize> {
        match &self.view {
            None => (0..self.table.columns.len())
                .filter(|at| self.table.columns[*at].visible)
                .collect(),
            Some(columns) => columns.iter().map(|(_, column)| *column).collect(),
        }
    }
}

impl Binder<'_> {
    /// What INSERT and REPLACE write to, as a relation that expressions can name.
    fn target(
        &mut self,
        name: &ast::ObjectName,
        somewhere: Set,
    ) -> Result<(ChangeTarget, Relation)> {
        let schema = self.schema_of(name)?;
        let (found, access) = self.open(&schema, &name.name, Need::All(somewhere))?;
        match found {
            CatalogRelation::Table(table) => {
                let alias = name.name.0.clone();
                self.table_names.push((table.clone(), alias.clone()));
                let slot = self.table_slot(alias.clone(), &table);
                let relation = Relation {
                    alias,
                    schema: table.schema.clone(),
                    columns: Columns::Table {
                        slot,
                        table: table.clone(),
                    },
                    nullable: false,
                    access,
                };
                let target = ChangeTarget {
                    table,
                    slot,
                    view: None,
                    access,
                };
                Ok((target, relation))
            }
            CatalogRelation::View(view) => {
                let found = self.view_target(&view, &name.name.0, access)?;
                if let Some(access) = access {
                    self.accesses.change(access, somewhere);
                }
                Ok(found)
            }
            CatalogRelation::Virtual(_) => {
                let session = self.session();
                Err(Error::db_access_denied(
                    &session.user,
                    &session.host,
                    schema,
                ))
            }
        }
    }

    /// The table behind a view of one table whose columns are all the table's own (1471).
    fn view_target(
        &mut self,
        view: &Arc<View>,
        alias: &CompactString,
        access: Option<AccessId>,
    ) -> Result<(ChangeTarget, Relation)> {
        self.scopes.push(Scope::new("field list"));
        let part = self.view(view, alias.clone(), access, false);
        self.change_views();
        let scope = self.scopes.pop();
        let part = part?;
        let refused = || Error::not_insertable(&view.name, "INSERT");
        let relation = scope
            .and_then(|mut scope| scope.relations.pop())
            .ok_or_else(refused)?;
        let mut sources = Vec::new();
        part.tree.for_each_source(&mut |source| {
            if let SourceKind::Table(table) = &source.kind {
                sources.push((table.clone(), source.slot));
            }
        });
        let Columns::Merged { columns } = &relation.columns else {
            return Err(refused());
        };
        let mut named: Vec<(CompactString, usize)> = Vec::with_capacity(columns.len());
        for column in columns {
            let (_, position) = column.expr.as_column().ok_or_else(refused)?;
            if named.iter().any(|(_, known)| *known == position) {
                return Err(refused());
            }
            named.push((column.name.clone(), position));
        }
        let [(table, slot)] = sources.as_slice() else {
            return Err(Error::not_supported_yet(
                "INSERT through a view of several tables",
            ));
        };
        // What the view doesn't show must go without saying.
        let silent = table.columns.iter().enumerate().any(|(at, column)| {
            !named.iter().any(|(_, shown)| *shown == at)
                && matches!(column.default, ColumnDefault::None)
                && !column.nullable
                && !column.auto_increment
                && column.generated.is_none()
        });
        if silent && self.session().sql_mode.strict() {
            let name = format!("{}.{}", view.schema, view.name);
            return Err(Error::view_field_has_no_default(name));
        }
        let target = ChangeTarget {
            table: table.clone(),
            slot: *slot,
            view: Some(named),
            access,
        };
        Ok((target, relation))
    }

    /// What WITH CHECK OPTION wants of rows of a slot that change.
    fn checks_of(&mut self, slot: Slot) -> Result<Vec<ViewCheck>> {
        let mut checks: Vec<ViewCheck> = self
            .view_checks
            .iter()
            .filter(|(slots, _)| slots.contains(&slot))
            .map(|(_, check)| check.clone())
            .collect();
        for condition in checks.iter_mut().flat_map(|check| &mut check.conditions) {
            optimize::finish_expr(self, condition)?;
        }
        Ok(checks)
    }

    /// Notes which columns of a target are given values.
    fn written(
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

    /// REPLACE deletes rows of its target.
    fn replaced(&mut self, target: &ChangeTarget) {
        if let Some(access) = target.access {
            self.accesses.whole(access, Privilege::Delete);
        }
    }

    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<Insert> {
        if !insert.partitions.is_empty() {
            return Err(Error::not_supported_yet("PARTITION ()"));
        }
        let mut needed = Privilege::Insert.set();
        if insert.replace {
            needed = needed.with(Privilege::Delete.set());
        }
        if !insert.on_duplicate.is_empty() {
            needed = needed.with(Privilege::Update.set());
        }
        let (target, relation) = self.target(&insert.table, needed)?;
        let (table, slot) = (target.table.clone(), target.slot);
        self.use_table(&table, TableUse::Write);
        self.slots[slot.0 as usize].used.fill(true);
        let checks = self.checks_of(slot)?;
        let columns = self.insert_columns(insert, &target)?;
        self.written(&target, Privilege::Insert, columns.iter().copied());
        if insert.replace {
            self.replaced(&target);
        }
        let mut scope = Scope::new("field list");
        scope.add(relation);
        scope.show_all();
        let source = match &insert.source {
            ast::InsertSource::Values(rows) => {
                self.scopes.push(scope);
                let rows = self.insert_rows(rows, &columns, &table)?;
                InsertSource::Values(rows)
            }
            ast::InsertSource::Query(query) => {
                let bound = self.query(query)?;
                if bound.columns.len() != columns.len() {
                    return Err(Error::column_count_mismatch(1));
                }
                if let Some(column) = columns
                    .iter()
                    .map(|at| &table.columns[*at])
                    .find(|column| column.generated.is_some())
                {
                    return Err(Error::generated_column_not_allowed(
                        &column.name,
                        &table.name,
                    ));
                }
                // ON DUPLICATE KEY UPDATE sees the tables that the query reads row by row.
                let plain = matches!(&bound.body, Body::Select(block) if block.group.is_none() && !block.distinct && block.windows.is_empty());
                if plain && bound.order.is_empty() {
                    for relation in std::mem::take(&mut self.popped) {
                        scope.add(relation);
                    }
                    scope.show_all();
                }
                let (mut node, mut output) = optimize::query(self, bound)?;
                self.scopes.push(scope);
                if self.reads(&table) {
                    (node, output) = optimize::at_once(self, node, output);
                }
                InsertSource::Query { node, output }
            }
        };
        let reads_itself = self.reads(&table);
        let duplicates = match (insert.replace, insert.on_duplicate.is_empty()) {
            (true, _) => OnDuplicate::Replace,
            (false, true) => OnDuplicate::Error,
            (false, false) => self.on_duplicate(insert, &target, &columns)?,
        };
        let mut plan = Insert {
            table,
            slot,
            columns,
            source,
            reads_itself,
            duplicates,
            ignore: insert.ignore,
            checks,
        };
        if let InsertSource::Values(rows) = &mut plan.source {
            for value in rows.iter_mut().flatten().flatten() {
                optimize::finish_expr(self, value)?;
            }
        }
        Ok(plan)
    }

    /// Whether what is bound so far reads the table that it inserts into, besides the row that is built.
    fn reads(&self, target: &Table) -> bool {
        let of_target = self
            .slots
            .iter()
            .filter(|slot| matches!(&slot.table, Some(table) if table.id == target.id));
        of_target.count() > 1
    }

    /// LOAD DATA is an INSERT whose rows come from a file.
    pub(super) fn load_data(&mut self, load: &ast::LoadData) -> Result<Insert> {
        if load.xml {
            return Err(Error::not_supported_yet("LOAD XML"));
        }
        if !load.partitions.is_empty() {
            return Err(Error::not_supported_yet("PARTITION ()"));
        }
        let replace = load.duplicates == ast::Duplicates::Replace;
        let mut needed = Privilege::Insert.set();
        if replace {
            needed = needed.with(Privilege::Delete.set());
        }
        let (target, relation) = self.target(&load.table, needed)?;
        let (table, slot) = (target.table.clone(), target.slot);
        self.use_table(&table, TableUse::Write);
        self.slots[slot.0 as usize].used.fill(true);
        let checks = self.checks_of(slot)?;
        let find = |name: &str| {
            target
                .column_position(name)
                .ok_or_else(|| Error::unknown_column(name, "field list"))
        };
        let mut columns: Vec<usize> = Vec::new();
        let mut targets = Vec::new();
        if load.columns.is_empty() {
            // Columns that are generated have no field.
            columns = target.columns();
            columns.retain(|at| table.columns[*at].generated.is_none());
            targets.extend((0..columns.len()).map(LoadTarget::Column));
        }
        for written in &load.columns {
            targets.push(match written {
                ast::LoadTarget::Variable(name) => LoadTarget::Variable(name.to_lowercase().into()),
                ast::LoadTarget::Column(name) => {
                    let column = find(name)?;
                    let definition = &table.columns[column];
                    if definition.generated.is_some() {
                        return Err(Error::generated_column_not_allowed(
                            &definition.name,
                            &table.name,
                        ));
                    }
                    if columns.contains(&column) {
                        return Err(Error::field_specified_twice(&definition.name));
                    }
                    columns.push(column);
                    LoadTarget::Column(columns.len() - 1)
                }
            });
        }
        let mut scope = Scope::new("field list");
        scope.add(relation);
        scope.show_all();
        self.scopes.push(scope);
        let mut assignments = Vec::with_capacity(load.assignments.len());
        for assignment in &load.assignments {
            let column = find(&assignment.column.name)?;
            let mut value = self.assigned(&assignment.value, column, &table)?;
            if let Some(value) = &mut value {
                optimize::finish_expr(self, value)?;
            }
            let at = columns.iter().position(|known| *known == column);
            let at = at.unwrap_or_else(|| {
                columns.push(column);
                columns.len() - 1
            });
            assignments.push((at, value));
        }
        self.written(&target, Privilege::Insert, columns.iter().copied());
        if replace {
            self.replaced(&target);
        }
        let charset = match &load.charset {
            None => Charset::Utf8mb4,
            Some(name) => {
                Charset::by_name(name).ok_or_else(|| Error::unknown_character_set(name.as_str()))?
            }
        };
        self.cacheable = false;
        Ok(Insert {
            table,
            slot,
            columns,
            source: InsertSource::Load(Load {
                format: FileFormat::of(&load.format)?,
                charset,
                ignore_lines: load.ignore_lines,
                targets,
                assignments,
            }),
            reads_itself: false,
            duplicates: if replace {
                OnDuplicate::Replace
            } else {
                OnDuplicate::Error
            },
            // A client's file can't be stopped: what doesn't fit is passed over.
            ignore: load.local || load.duplicates == ast::Duplicates::Ignore,
            checks,
        })
    }

    fn insert_columns(
        &mut self,
        insert: &ast::Insert,
        target: &ChangeTarget,
    ) -> Result<Vec<usize>> {
        let table = &target.table;
        let empty_row = matches!(&insert.source, ast::InsertSource::Values(rows) if rows.iter().all(Vec::is_empty));
        let Some(names) = &insert.columns else {
            if empty_row {
                return Ok(Vec::new());
            }
            if let Some(access) = target.access {
                self.accesses.unnamed(access, Privilege::Insert);
            }
            return Ok(target.columns());
        };
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let named_here = name
                .table
                .as_ref()
                .is_none_or(|of| **of == *insert.table.name);
            let position = target.column_position(&name.name).filter(|_| named_here);
            let Some(position) = position else {
                let looked_for = target.access.map(|access| (access, name.name.0.clone()));
                return Err(self.unknown_column(name, "field list", looked_for, Privilege::Insert));
            };
            if columns.contains(&position) {
                return Err(Error::field_specified_twice(&table.columns[position].name));
            }
            columns.push(position);
        }
        Ok(columns)
    }

    fn insert_rows(
        &mut self,
        rows: &[Vec<ast::Expr>],
        columns: &[usize],
        table: &Table,
    ) -> Result<Vec<Vec<Option<Expr>>>> {
        let mut bound = Vec::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            // `VALUES ()` is a row of defaults.
            if row.len() != columns.len() && !(row.is_empty() && columns.is_empty()) {
                return Err(Error::column_count_mismatch(number + 1));
            }
            let mut values = Vec::with_capacity(row.len());
            for (value, column) in row.iter().zip(columns) {
                values.push(self.assigned(value, *column, table)?);
            }
            bound.push(values);
        }
        Ok(bound)
    }

    /// The value a column is given; `None` is DEFAULT, all that a generated column takes.
    fn assigned(
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

    fn on_duplicate(
        &mut self,
        insert: &ast::Insert,
        target: &ChangeTarget,
        columns: &[usize],
    ) -> Result<OnDuplicate> {
        let table = &target.table;
        let new_slot = self.table_slot("new", table);
        self.slots[new_slot.0 as usize].used.fill(true);
        if let Some(alias) = &insert.row_alias {
            let mut made: Vec<MadeColumn> = Vec::new();
            for (at, column) in table.columns.iter().enumerate() {
                let given = columns
                    .iter()
                    .position(|given| *given == at)
                    .and_then(|at| insert.column_aliases.get(at));
                made.push(MadeColumn {
                    name: given.map_or_else(|| column.name.clone(), |name| name.0.clone()),
                    ty: column.ty.clone(),
                    nullable: column.nullable,
                    strength: Coercibility::Implicit,
                    name_span: None,
                });
            }
            if !insert.column_aliases.is_empty() && insert.column_aliases.len() != columns.len() {
                return Err(Error::column_count_of_view());
            }
            let columns = Columns::Made {
                slot: new_slot,
                columns: made,
            };
            let scope = self.scope();
            // The columns' own names mean the existing row; the new row's need its alias, unless they have their own.
            if insert.column_aliases.is_empty() {
                let hidden = (0..table.columns.len()).map(|column| (scope.relations.len(), column));
                scope.hidden.extend(hidden);
            }
            let alias = alias.0.clone();
            scope.add(Relation::of_statement(alias, columns, false));
            scope.show_all();
        }
        self.inserted_slot = Some((new_slot, target.clone()));
        let mut assignments = Vec::with_capacity(insert.on_duplicate.len());
        for assignment in &insert.on_duplicate {
            let named_here = assignment
                .column
                .table
                .as_ref()
                .is_none_or(|of| **of == *insert.table.name);
            let position = target
                .column_position(&assignment.column.name)
                .filter(|_| named_here);
            let Some(column) = position else {
                return Err(Error::unknown_column(
                    display(&assignment.column),
                    "field list",
                ));
            };
            let mut value = self.assigned(&assignment.value, column, table)?;
            if let Some(value) = &mut value {
                optimize::finish_expr(self, value)?;
            }
            assignments.push(Assignment { column, value });
        }
        self.inserted_slot = None;
        let changed = assignments.iter().map(|assignment| assignment.column);
        self.written(target, Privilege::Update, changed);
        let checks = self.checks_of(target.slot)?;
        let table = Arc::clone(&target.table);
        Ok(OnDuplicate::Update {
            new_slot,
            target: Box::new(UpdateTarget::new(table, target.slot, assignments, checks)),
        })
    }

    /// `VALUES(column)`: the refused row's value inside ON DUPLICATE KEY UPDATE, NULL elsewhere.
    pub(super) fn inserted_value(&mut self, name: &ast::ColumnRef) -> Result<Expr> {
        let Some((slot, target)) = self.inserted_slot.clone() else {
            let mut null = self.resolve(name)?;
            null.kind = porpoise_expr::ExprKind::Literal(porpoise_types::Value::Null);
            null.nullable = true;
            return Ok(null);
        };
        let position = target
            .column_position(&name.name)
            .ok_or_else(|| Error::unknown_column(display(name), "field list"))?;
        let column = &target.table.columns[position];
        Ok(Expr::column(
            slot,
            position,
            column.ty.clone(),
            column.nullable,
        ))
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
        self.scopes.push(Scope::new("from clause"));
        let (mut from, _) = self.changed_from(Privilege::Update, &update.tables)?;
        self.change_views();
        self.scope().clause = "field list";
        let mut assigned: Vec<(Arc<Table>, Slot, Vec<Assignment>)> = Vec::new();
        for assignment in &update.assignments {
            let Some(at) = self.scope().find(&assignment.column)? else {
                let name = &assignment.column;
                let looked_for = self.scope().might_be_of(name);
                return Err(self.unknown_column(name, "field list", looked_for, Privilege::Update));
            };
            let (table, slot, column) = self.changed_column(&from, at, "UPDATE")?;
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
        for target in &targets {
            self.check_target_unread(&target.table)?;
        }
        let assignments = targets
            .iter_mut()
            .flat_map(|target| &mut target.assignments);
        for value in assignments.filter_map(|assignment| assignment.value.as_mut()) {
            optimize::finish_expr(self, value)?;
        }
        for target in &targets {
            self.use_table(&target.table, TableUse::Write);
        }
        let slots: Vec<Slot> = targets.iter().map(|target| target.slot).collect();
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
        self.scopes.push(Scope::new("from clause"));
        let (mut from, _) = self.changed_from(Privilege::Delete, &delete.from)?;
        self.change_views();
        let mut targets: Vec<(Arc<Table>, Slot)> = Vec::new();
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
        let slots: Vec<Slot> = targets.iter().map(|target| target.1).collect();
        lock_targets(&mut from, &slots);
        let tables: Vec<Arc<Table>> = targets.iter().map(|target| target.0.clone()).collect();
        let (node, limit, single) = self.changed_rows(
            from,
            delete.selection.as_ref(),
            &delete.order_by,
            delete.limit.as_ref(),
            &tables,
        )?;
        let in_place = single && delete.order_by.is_empty();
        Ok(Delete {
            node,
            targets,
            ignore: delete.ignore,
            limit,
            in_place,
        })
    }

    /// FROM of a change: a table by itself is named to be changed, of several it is seen later which are.
    fn changed_from(
        &mut self,
        change: Privilege,
        tables: &[ast::TableRef],
    ) -> Result<(JoinTree, Vec<(usize, usize)>)> {
        if matches!(tables, [ast::TableRef::Table(_)]) {
            self.reads_need = Need::All(change.set());
        }
        let bound = self.from(tables);
        self.reads_need = Need::READ;
        bound
    }

    /// The stored column behind a relation's column.
    fn changed_column(
        &mut self,
        from: &JoinTree,
        (relation, column): (usize, usize),
        statement: &str,
    ) -> Result<(Arc<Table>, Slot, usize)> {
        let relation = &self.scope().relations[relation];
        let refused = || Error::non_updatable_table(&relation.alias, statement);
        match &relation.columns {
            Columns::Table { slot, table } => Ok((table.clone(), *slot, column)),
            Columns::Merged { columns } => {
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
        let block = Block {
            from,
            conditions,
            group: None,
            having: Vec::new(),
            windows: Vec::new(),
            distinct: false,
            straight: false,
        };
        let node = optimize::rows(self, block, order, limit.as_ref())?;
        if self.session().sql_safe_updates && limit.is_none() && reads_all(&node, targets) {
            return Err(Error::update_without_key());
        }
        let single = matches!(&node, Node::Scan(_) | Node::Empty);
        Ok((node, limit, single))
    }

    /// A subquery must not read the table that the statement changes, unless it is computed first, in a derived table (1093).
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

/// Whether a node reads one of the tables without the help of a key.
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

/// Whether a scan that opens one range after the other may meet a row again where its new values put it.
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
fn lock_targets(from: &mut JoinTree, slots: &[Slot]) {
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
