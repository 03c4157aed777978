//! INSERT, REPLACE and LOAD DATA.

use std::sync::Arc;

use porpoise_catalog::Table;
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_expr::typing::collation::Coercibility;
use porpoise_expr::{Expr, SlotId};
use porpoise_sql::ast;
use porpoise_types::Charset;

use crate::bind::Binder;
use crate::bind::change_target::{Assigned, ChangeTarget};
use crate::bind::scope::{Columns, ComputedColumn, Relation, Scope, display};
use crate::file_format::FileFormat;
use crate::optimize;
use crate::plan::{
    Assignment, Insert, InsertSource, Load, LoadTarget, OnDuplicate, TableUse, UpdateTarget,
};
use crate::query::Body;

impl Binder<'_> {
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
        let (target, relation) = self.target(&insert.table, needed, &Assigned::of(insert))?;
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
            ast::InsertSource::Query(query) => self.insert_query(query, scope, &columns, &table)?,
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
            triggers: None,
        };
        if let InsertSource::Values(rows) = &mut plan.source {
            for value in rows.iter_mut().flatten().flatten() {
                optimize::plan_subqueries(self, value)?;
            }
        }
        self.keep_insert_text(&plan);
        Ok(plan)
    }

    /// The query of INSERT … SELECT, under `scope`, which ON DUPLICATE KEY UPDATE sees.
    fn insert_query(
        &mut self,
        query: &ast::Query,
        mut scope: Scope,
        columns: &[usize],
        table: &Table,
    ) -> Result<InsertSource> {
        let bound = self.outermost_query(query)?;
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
            for relation in std::mem::take(&mut self.last_relations) {
                scope.add(relation);
            }
            scope.show_all();
        }
        let (mut node, mut output) = optimize::query(self, bound)?;
        self.scopes.push(scope);
        if self.reads(table) {
            (node, output) = optimize::buffered(self, node, output);
        }
        Ok(InsertSource::Query { node, output })
    }

    /// Whether what is bound so far reads the table that it inserts into, besides the row that is
    /// built.
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
        let (target, relation) = self.target(&load.table, needed, &Assigned::ByFile)?;
        let (table, slot) = (target.table.clone(), target.slot);
        self.use_table(&table, TableUse::Write);
        self.slots[slot.0 as usize].used.fill(true);
        let checks = self.checks_of(slot)?;
        let (mut columns, targets) = load_fields(load, &target)?;
        let format = FileFormat::of(&load.format)?;
        let is_variable = |target: &LoadTarget| matches!(target, LoadTarget::Variable(_));
        if format.has_fixed_fields() && targets.iter().any(is_variable) {
            return Err(Error::fixed_fields_to_variable());
        }
        let mut scope = Scope::new("field list");
        scope.add(relation);
        scope.show_all();
        self.scopes.push(scope);
        let mut assignments = Vec::with_capacity(load.assignments.len());
        for assignment in &load.assignments {
            let column = target.named(&assignment.column.name)?;
            let mut value = self.assigned(&assignment.value, column, &table)?;
            if let Some(value) = &mut value {
                optimize::plan_subqueries(self, value)?;
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
        // Separators are bytes (MySQL 8.4 manual, 15.2.9).
        if !charset.extends_ascii() {
            let feature = format!("LOAD DATA of files in {}", charset.name());
            return Err(Error::not_supported_yet(feature));
        }
        self.cacheable = false;
        Ok(Insert {
            triggers: None,
            table,
            slot,
            columns,
            source: InsertSource::Load(Load {
                format,
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
            // A client can't be told to stop sending its file: rows that don't fit are passed over.
            ignore: load.local || load.duplicates == ast::Duplicates::Ignore,
            checks,
        })
    }

    /// The columns that the source gives values to, in its order.
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
            self.row_alias(alias, &insert.column_aliases, new_slot, table, columns)?;
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
            if let (None, Some((columns, view))) = (position, &target.beside)
                && columns.contains(&assignment.column.name.0)
            {
                return Err(Error::view_changes_several(view));
            }
            let Some(column) = position else {
                return Err(Error::unknown_column(
                    display(&assignment.column),
                    "field list",
                ));
            };
            let mut value = self.assigned(&assignment.value, column, table)?;
            if let Some(value) = &mut value {
                optimize::plan_subqueries(self, value)?;
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

    /// Adds the refused row to the scope, under the alias that `VALUES … AS alias(columns)` gives
    /// it.
    fn row_alias(
        &mut self,
        alias: &ast::Ident,
        aliases: &[ast::Ident],
        new_slot: SlotId,
        table: &Table,
        columns: &[usize],
    ) -> Result<()> {
        let mut made: Vec<ComputedColumn> = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let given = columns
                .iter()
                .position(|given| *given == at)
                .and_then(|at| aliases.get(at));
            made.push(ComputedColumn {
                name: given.map_or_else(|| column.name.clone(), |name| name.0.clone()),
                ty: column.ty.clone(),
                nullable: column.nullable,
                strength: Coercibility::Implicit,
                name_span: None,
            });
        }
        if !aliases.is_empty() && aliases.len() != columns.len() {
            return Err(Error::column_count_of_view());
        }
        let columns = Columns::Computed {
            slot: new_slot,
            columns: made,
        };
        let scope = self.scope();
        // The columns' own names mean the existing row; the new row's need its alias, unless they
        // have their own.
        if aliases.is_empty() {
            let hidden = (0..table.columns.len()).map(|column| (scope.relations.len(), column));
            scope.hidden.extend(hidden);
        }
        let alias = alias.0.clone();
        scope.add(Relation::of_statement(alias, columns, false));
        scope.show_all();
        Ok(())
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
}

/// The columns that a file's fields give values to, and where each field goes.
fn load_fields(
    load: &ast::LoadData,
    target: &ChangeTarget,
) -> Result<(Vec<usize>, Vec<LoadTarget>)> {
    let table = &target.table;
    let mut columns: Vec<usize> = Vec::new();
    let mut targets = Vec::new();
    if load.columns.is_empty() {
        // Generated columns have no field.
        columns = target.columns();
        columns.retain(|at| table.columns[*at].generated.is_none());
        targets.extend((0..columns.len()).map(LoadTarget::Column));
    }
    for written in &load.columns {
        let name = match written {
            ast::LoadTarget::Column(name) => name,
            ast::LoadTarget::Variable(name) => {
                targets.push(LoadTarget::Variable(name.to_lowercase().into()));
                continue;
            }
        };
        let column = target.named(name)?;
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
        targets.push(LoadTarget::Column(columns.len() - 1));
    }
    Ok((columns, targets))
}
