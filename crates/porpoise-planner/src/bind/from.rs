//! FROM: tables, joins, derived tables, views and common tables become a tree of joins.
//!
//! A derived table or view that only selects, joins and filters is *merged*: its joins and
//! conditions become part of the query around it, and its columns stand for its expressions. Others
//! get a slot and are computed by themselves.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Relation as CatalogRelation, Table};
use porpoise_core::error::{Error, Result};
use porpoise_expr::typing::collation::computed_strength;
use porpoise_expr::typing::{self, compare};
use porpoise_expr::{Comparison, Expr, ExprKind, SlotId};
use porpoise_sql::ast::{self, HintKind};
use porpoise_types::DataType;

use crate::access::{AccessId, Need};
use crate::bind::common_table::rename;
use crate::bind::scope::{Columns, ComputedColumn, Relation, virtual_type};
use crate::bind::{Binder, JOINED_TABLES_MAX};
use crate::optimize::source_slots;
use crate::plan::{RowLock, TableUse};
use crate::query::{
    Block, Body, IndexHints, JoinTree, LogicalJoin, OutputColumn, Query, Source, SourceKind,
};

/// A column of a scope: its relation's position in the scope, and its own in the relation.
pub(super) type ColumnPosition = (usize, usize);

/// A part of FROM.
pub(super) struct Part {
    pub tree: JoinTree,
    /// What `*` shows of it, in order.
    star: Vec<ColumnPosition>,
    /// Its relations.
    relations: std::ops::Range<usize>,
}

impl Binder<'_> {
    /// Binds a FROM clause into the innermost scope; returns the joins, and what `*` shows.
    pub(super) fn from(
        &mut self,
        refs: &[ast::TableRef],
    ) -> Result<(JoinTree, Vec<ColumnPosition>)> {
        let mut all: Option<Part> = None;
        for table in refs {
            let next = self.table_ref(table, false)?;
            all = Some(match all {
                None => next,
                Some(held) => self.inner(held, next, LogicalJoin::Inner, Vec::new()),
            });
        }
        self.scope().show_all();
        Ok(match all {
            None => (JoinTree::One, Vec::new()),
            Some(part) => (part.tree, part.star),
        })
    }

    fn inner(&mut self, left: Part, right: Part, kind: LogicalJoin, on: Vec<Expr>) -> Part {
        let mut star = left.star;
        star.extend(right.star);
        Part {
            tree: JoinTree::Join {
                left: Box::new(left.tree),
                right: Box::new(right.tree),
                kind,
                on,
            },
            star,
            relations: left.relations.start..right.relations.end,
        }
    }

    /// `nullable`: an outer join may fill the relation with NULLs.
    fn table_ref(&mut self, table: &ast::TableRef, nullable: bool) -> Result<Part> {
        self.nested(|binder| match table {
            ast::TableRef::Table(factor) => binder.table_factor(factor, nullable),
            ast::TableRef::Derived(derived) => binder.derived(derived, nullable),
            ast::TableRef::JsonTable(table) => binder.json_table(table, nullable),
            ast::TableRef::Join(join) => binder.join(join, nullable),
        })
    }

    fn join(&mut self, join: &ast::Join, nullable: bool) -> Result<Part> {
        let left = self.table_ref(&join.left, nullable || join.kind == ast::JoinKind::Right)?;
        let right = self.table_ref(&join.right, nullable || join.kind == ast::JoinKind::Left)?;
        let (on, star) = self.join_condition(join, &left, &right, nullable)?;
        // RIGHT JOIN is LEFT JOIN with its sides exchanged; what `*` shows keeps the order written.
        let mut part = match join.kind {
            ast::JoinKind::Inner => self.inner(left, right, LogicalJoin::Inner, on),
            ast::JoinKind::Straight => self.inner(left, right, LogicalJoin::Straight, on),
            ast::JoinKind::Left => self.inner(left, right, LogicalJoin::Left, on),
            ast::JoinKind::Right => {
                let relations = left.relations.start..right.relations.end;
                let mut shown = left.star.clone();
                shown.extend(right.star.iter().copied());
                let tree = JoinTree::Join {
                    left: Box::new(right.tree),
                    right: Box::new(left.tree),
                    kind: LogicalJoin::Left,
                    on,
                };
                Part {
                    tree,
                    star: shown,
                    relations,
                }
            }
        };
        if let Some(star) = star {
            part.star = star;
        }
        Ok(part)
    }

    /// ON, USING or NATURAL as conditions; for the latter two also what `*` shows. `nullable`: an
    /// outer join may fill the whole with NULLs.
    fn join_condition(
        &mut self,
        join: &ast::Join,
        left: &Part,
        right: &Part,
        nullable: bool,
    ) -> Result<(Vec<Expr>, Option<Vec<ColumnPosition>>)> {
        let keep_right = join.kind == ast::JoinKind::Right;
        match &join.condition {
            ast::JoinCondition::None => Ok((Vec::new(), None)),
            ast::JoinCondition::On(condition) => {
                let clause = self.scope().clause;
                self.scope().clause = "on clause";
                self.scope().visible = left.relations.start..right.relations.end;
                let on = match join.kind {
                    ast::JoinKind::Inner | ast::JoinKind::Straight if !nullable => {
                        self.conditions(condition)?
                    }
                    _ => self.outer_join_conditions(condition)?,
                };
                let scope = self.scope();
                scope.clause = clause;
                scope.visible = 0..0;
                Ok((on, None))
            }
            ast::JoinCondition::Using(names) => {
                let names: Vec<&str> = names.iter().map(ast::Ident::as_str).collect();
                self.note_using(join, left, right, &names);
                let (on, star) = self.using(left, right, &names, keep_right)?;
                Ok((on, Some(star)))
            }
            ast::JoinCondition::Natural => {
                let common = self.common_columns(left, right);
                let names: Vec<&str> = common.iter().map(String::as_str).collect();
                self.note_using(join, left, right, &names);
                let (on, star) = self.using(left, right, &names, keep_right)?;
                Ok((on, Some(star)))
            }
        }
    }

    /// The names that columns of both sides have, in the order of the left side.
    fn common_columns(&mut self, left: &Part, right: &Part) -> Vec<String> {
        let scope = self.scope();
        let name = |&(relation, column): &ColumnPosition| {
            scope.relations[relation].columns.name(column).to_string()
        };
        let of_right: Vec<String> = right.star.iter().map(name).collect();
        let mut common: Vec<String> = left.star.iter().map(name).collect();
        common.retain(|name| {
            of_right
                .iter()
                .any(|other| other.eq_ignore_ascii_case(name))
        });
        common
    }

    /// Notes the condition that USING or NATURAL stands for, where each of its columns has a name.
    fn note_using(&mut self, join: &ast::Join, left: &Part, right: &Part, names: &[&str]) {
        if !self.notes_names() {
            return;
        }
        let depth = self.scopes.len() - 1;
        let column = |star: &[ColumnPosition], name: &str| {
            let relations = &self.scopes[depth].relations;
            let is_it = |(relation, column): &&ColumnPosition| {
                let columns = &relations[*relation].columns;
                columns.name(*column).eq_ignore_ascii_case(name)
            };
            let (relation, column) = star.iter().find(is_it)?;
            let shown = CompactString::new(relations[*relation].columns.name(*column));
            let name = self.full_name(depth, *relation, &shown)?;
            Some(ast::Expr::Column(Box::new(name)))
        };
        let pair = |name: &&str| {
            let sides = (column(&left.star, name)?, column(&right.star, name)?);
            Some(ast::Expr::Binary(ast::BinaryOp::Eq, Box::new(sides)))
        };
        let Some(mut pairs) = names.iter().map(pair).collect::<Option<Vec<_>>>() else {
            return;
        };
        let condition = match pairs.len() {
            0 => None,
            1 => Some(pairs.remove(0)),
            _ => Some(ast::Expr::And(pairs)),
        };
        if let Some(names) = &mut self.names {
            names.note_join(join, condition);
        }
    }

    /// Whether what names mean is wanted: of a view's own text, not of views in it.
    pub(super) fn notes_names(&self) -> bool {
        self.names.is_some() && !self.accesses.is_in_view()
    }

    /// Equates columns of one name on both sides and hides one of each pair. Returns what `*`
    /// shows: those first, in the order of their table, however they were listed.
    fn using(
        &mut self,
        left: &Part,
        right: &Part,
        names: &[&str],
        keep_right: bool,
    ) -> Result<(Vec<Expr>, Vec<ColumnPosition>)> {
        let depth = self.scopes.len() - 1;
        let (mut on, mut kept, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let find = |star: &[ColumnPosition], binder: &Self| {
                let relations = &binder.scopes[depth].relations;
                let mut found = star.iter().filter(|(relation, column)| {
                    relations[*relation]
                        .columns
                        .name(*column)
                        .eq_ignore_ascii_case(name)
                });
                match (found.next(), found.next()) {
                    (Some(at), None) => Ok(*at),
                    (Some(_), Some(_)) => Err(Error::ambiguous_column(name, "from clause")),
                    (None, _) => Err(Error::unknown_column(name, "from clause")),
                }
            };
            let (of_left, of_right) = (find(&left.star, self)?, find(&right.star, self)?);
            let a = self.relation_column(depth, of_left.0, of_left.1);
            let b = self.relation_column(depth, of_right.0, of_right.1);
            on.push(compare::compare(Comparison::Eq, a, b, self.session())?);
            let (keep, drop) = if keep_right {
                (of_right, of_left)
            } else {
                (of_left, of_right)
            };
            kept.push(keep);
            dropped.push(drop);
        }
        let (first, second) = if keep_right {
            (right, left)
        } else {
            (left, right)
        };
        let rest = first
            .star
            .iter()
            .chain(&second.star)
            .filter(|at| !kept.contains(at) && !dropped.contains(at));
        let shown_first = first.star.iter().filter(|at| kept.contains(at));
        let star = shown_first.chain(rest).copied().collect();
        self.scope().hidden.extend(dropped);
        Ok((on, star))
    }

    /// Adds a relation to the innermost scope.
    fn add_relation(&mut self, relation: Relation, tree: JoinTree) -> Result<Part> {
        let scope = self.scope();
        let twice = scope.relations.iter().any(|other| {
            other.alias == relation.alias
                && (other.schema == relation.schema
                    || other.schema.is_empty()
                    || relation.schema.is_empty())
        });
        if twice {
            return Err(Error::not_unique_table(relation.alias));
        }
        let (at, block) = (scope.relations.len(), scope.block);
        let star = (0..relation.columns.len())
            .filter(|column| relation.columns.is_shown(*column))
            .map(|column| (at, column))
            .collect();
        let alias = relation.alias.clone();
        scope.add(relation);
        if scope.relations.len() > JOINED_TABLES_MAX {
            return Err(Error::too_many_tables(JOINED_TABLES_MAX));
        }
        self.hints.note_slots(block, &alias, source_slots(&tree));
        Ok(Part {
            tree,
            star,
            relations: at..at + 1,
        })
    }

    fn table_factor(&mut self, factor: &ast::TableFactor, nullable: bool) -> Result<Part> {
        if !factor.partitions.is_empty() {
            return Err(Error::not_supported_yet("PARTITION ()"));
        }
        let name = &factor.name;
        let alias = factor.alias.as_ref().unwrap_or(&name.name).0.clone();
        if name.schema.is_none() {
            let definition = self
                .visible
                .iter()
                .rev()
                .copied()
                .find(|at| self.definitions[*at].name.eq_ignore_ascii_case(&name.name));
            if let Some(definition) = definition {
                return self.common(definition, alias, nullable);
            }
        }
        let schema = self.schema_of(name)?;
        self.note_table(name)?;
        let (found, access) = self.open(&schema, &name.name, self.reads_need)?;
        match found {
            CatalogRelation::Table(table) => {
                let lock = self.lock_of(&alias);
                self.locks_rows |= lock != RowLock::None;
                if let (RowLock::Exclusive(_), Some(access)) = (lock, access) {
                    self.accesses.lock_rows(access);
                }
                let hints = index_hints(&table, &factor.index_hints)?;
                if matches!(lock, RowLock::Exclusive(_)) {
                    self.use_table(&table, TableUse::Write);
                }
                self.table(&table, alias, access, hints, lock, nullable)
            }
            CatalogRelation::View(view) => self.view(&view, alias, access, nullable),
            CatalogRelation::Virtual(table) => {
                let folds = self.session().lower_case_names;
                let types = (0..table.columns.len())
                    .map(|at| virtual_type(table, at, folds))
                    .collect();
                let names = table
                    .columns
                    .iter()
                    .map(|(name, _, _)| CompactString::new(name))
                    .collect();
                let slot = self.new_slot(alias.clone(), types, names);
                self.cacheable = false;
                if let ("OPTIMIZER_TRACE", Some(trace)) = (table.name, self.context.trace) {
                    trace.forget();
                }
                let source = Source {
                    slot,
                    kind: SourceKind::Virtual(table),
                    hints: IndexHints::default(),
                    lock: RowLock::None,
                };
                let relation = Relation {
                    alias,
                    schema,
                    columns: Columns::Virtual { slot, table, folds },
                    nullable,
                    access,
                };
                self.add_relation(relation, JoinTree::Leaf(Box::new(source)))
            }
        }
    }

    /// Notes the table or view that a name in FROM means.
    pub(super) fn note_table(&mut self, name: &ast::ObjectName) -> Result<()> {
        if !self.notes_names() {
            return Ok(());
        }
        let schema = Some(ast::Ident(self.schema_of(name)?));
        if let Some(names) = &mut self.names {
            let meant = ast::ObjectName {
                schema,
                name: name.name.clone(),
            };
            names.note_table(name, meant);
        }
        Ok(())
    }

    /// The schema that a name says, or the current one.
    pub(super) fn schema_of(&self, name: &ast::ObjectName) -> Result<CompactString> {
        let named = name.schema.as_ref().map(|schema| schema.0.clone());
        named
            .or_else(|| self.schema.clone())
            .ok_or_else(Error::no_database_selected)
    }

    /// What a name of a table or view stands for; 1049 or 1146 where it is nothing. Nothing else
    /// finds tables and views for a statement: what is named takes `need`, whether it exists or
    /// not. Temporary tables are the session's own, and need nothing.
    pub(super) fn open(
        &mut self,
        schema: &str,
        name: &str,
        need: Need,
    ) -> Result<(CatalogRelation, Option<AccessId>)> {
        let temporary = self.context.temporary_tables;
        if !temporary.is_empty()
            && let Some(table) =
                temporary.get(&(CompactString::new(schema), CompactString::new(name)))
        {
            // The name may stand for another table in another session.
            self.cacheable = false;
            return Ok((CatalogRelation::Table(table.clone()), None));
        }
        let found = self.context.catalog.relation(schema, name);
        let is_open = match &found {
            Some(CatalogRelation::Virtual(table)) => table.is_open_to_all(),
            _ => schema.eq_ignore_ascii_case("information_schema"),
        };
        let (named_schema, named) = match &found {
            Some(CatalogRelation::Virtual(table)) => (table.schema, table.name),
            _ => (schema, name),
        };
        let access = (!is_open).then(|| self.accesses.name(named_schema, named, need));
        match found {
            Some(relation) => Ok((relation, access)),
            None if self.context.catalog.schema(schema).is_none() && !is_virtual_schema(schema) => {
                Err(Error::unknown_database(schema))
            }
            None if schema.eq_ignore_ascii_case("information_schema") => Err(
                Error::unknown_table_in(name.to_uppercase(), "information_schema"),
            ),
            None => Err(Error::no_such_table(schema, name)),
        }
    }

    fn table(
        &mut self,
        table: &Arc<Table>,
        alias: CompactString,
        access: Option<AccessId>,
        hints: IndexHints,
        lock: RowLock,
        nullable: bool,
    ) -> Result<Part> {
        let slot = self.table_slot(alias.clone(), table);
        let block = self.scope().block;
        let hints = self.hints.of_table(block, &alias, Some(table), hints);
        self.slots[slot.0 as usize].indexes = hints.rows.clone();
        self.use_table(table, TableUse::Read);
        if !self.accesses.is_in_view() {
            self.table_names.push((table.clone(), alias.clone()));
        }
        let source = Source {
            slot,
            kind: SourceKind::Table(table.clone()),
            hints,
            lock,
        };
        let schema = table.schema.clone();
        let relation = Relation {
            alias,
            schema,
            columns: Columns::Table {
                slot,
                table: table.clone(),
            },
            nullable,
            access,
        };
        self.add_relation(relation, JoinTree::Leaf(Box::new(source)))
    }

    /// The lock that the block's locking clauses put on a table's rows.
    fn lock_of(&mut self, alias: &str) -> RowLock {
        let locks = &self.scope().locks;
        let named = locks
            .iter()
            .find(|(of, _)| of == alias)
            .or_else(|| locks.iter().find(|(of, _)| of.is_empty()));
        named.map_or(RowLock::None, |(_, lock)| *lock)
    }

    fn derived(&mut self, derived: &ast::Derived, nullable: bool) -> Result<Part> {
        if derived.alias.is_empty() {
            return Err(Error::derived_must_have_alias());
        }
        if derived.lateral {
            // LATERAL sees the tables before it.
            self.scope().show_all();
        }
        let computed_first = self.keeps_derived && !derived.lateral && self.scopes.len() > 1;
        self.derived_depth += usize::from(computed_first);
        let query = self.query(&derived.query);
        self.derived_depth -= usize::from(computed_first);
        self.scope().visible = 0..0;
        let query = rename(query?, &derived.columns)?;
        self.query_part(
            query,
            derived.alias.0.clone(),
            CompactString::default(),
            None,
            nullable,
        )
    }

    /// A query in FROM: merged where it can be, else with a slot of its own.
    pub(super) fn query_part(
        &mut self,
        query: Query,
        alias: CompactString,
        schema: CompactString,
        access: Option<AccessId>,
        nullable: bool,
    ) -> Result<Part> {
        let block = self.scope().block;
        let hints = IndexHints::default();
        let hints = self.hints.of_table(block, &alias, None, hints);
        let merges = hints.is_on(HintKind::Merge, None, self.switches().derived_merge());
        if !self.is_merged(&query, nullable)
            || (self.keeps_derived && self.scopes.len() > 1)
            || (!merges && !self.binds_targets)
        {
            let (slot, columns) = self.computed_columns(&alias, &query.columns);
            let kind = SourceKind::Derived {
                query: Box::new(query),
            };
            let relation = Relation {
                alias,
                schema,
                columns,
                nullable,
                access,
            };
            return self.hinted_leaf(relation, slot, kind, hints);
        }
        let Query {
            body: Body::Select(block),
            columns,
            order,
            ..
        } = query
        else {
            return Err(Error::not_supported_yet("this derived table"));
        };
        let Block {
            from, conditions, ..
        } = *block;
        // In a change the joins of a view are told from those around it.
        let is_changed = self.binds_targets && matches!(from, JoinTree::Join { .. });
        let tree = match conditions.is_empty() && !is_changed {
            true => from,
            false => JoinTree::Filtered {
                tree: Box::new(from),
                conditions,
            },
        };
        self.trace_transformation("derived table", "part of the query around it", || {
            alias.to_string()
        });
        self.scope().merged_order = order;
        let tables = tree.sources();
        let relation = Relation {
            alias,
            schema,
            columns: Columns::Merged { columns, tables },
            nullable,
            access,
        };
        self.add_relation(relation, tree)
    }

    /// Whether a query can become part of the one around it, and leaves that few enough tables.
    pub(super) fn is_merged(&mut self, query: &Query, nullable: bool) -> bool {
        if !is_mergeable(query, nullable) {
            return false;
        }
        let Body::Select(block) = &query.body else {
            return false;
        };
        let tables = self.scope().tables() + block.from.sources();
        self.binds_targets || tables <= JOINED_TABLES_MAX
    }

    pub(super) fn computed_columns(
        &mut self,
        alias: &CompactString,
        columns: &[OutputColumn],
    ) -> (SlotId, Columns) {
        let types: Vec<DataType> = columns
            .iter()
            .map(|column| typing::slot_type(&column.expr.ty))
            .collect();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let made = columns
            .iter()
            .zip(&types)
            .map(|(column, ty)| ComputedColumn {
                name: column.name.clone(),
                ty: ty.clone(),
                nullable: column.expr.nullable,
                strength: computed_strength([&column.expr]),
                name_span: column.name_span,
            });
        let made = made.collect();
        let slot = self.new_slot(alias.clone(), types, names);
        (
            slot,
            Columns::Computed {
                slot,
                columns: made,
            },
        )
    }

    /// A relation whose rows the statement computes.
    pub(super) fn leaf(
        &mut self,
        relation: Relation,
        slot: SlotId,
        kind: SourceKind,
    ) -> Result<Part> {
        let block = self.scope().block;
        let hints = IndexHints::default();
        let hints = self.hints.of_table(block, &relation.alias, None, hints);
        self.hinted_leaf(relation, slot, kind, hints)
    }

    fn hinted_leaf(
        &mut self,
        relation: Relation,
        slot: SlotId,
        kind: SourceKind,
        hints: IndexHints,
    ) -> Result<Part> {
        let source = Source {
            slot,
            kind,
            hints,
            lock: RowLock::None,
        };
        self.add_relation(relation, JoinTree::Leaf(Box::new(source)))
    }
}

fn is_virtual_schema(name: &str) -> bool {
    ["information_schema", "performance_schema"]
        .iter()
        .any(|schema| schema.eq_ignore_ascii_case(name))
}

/// Whether a derived table can become part of the query around it.
fn is_mergeable(query: &Query, nullable: bool) -> bool {
    let Body::Select(block) = &query.body else {
        return false;
    };
    let plain = block.group.is_none()
        && block.having.is_empty()
        && block.windows.is_empty()
        && !block.distinct
        && !block.straight
        && query.limit.is_none()
        && query.offset.is_none()
        && !matches!(block.from, JoinTree::One);
    plain
        && query.columns.iter().all(|column| match &column.expr.kind {
            ExprKind::Column { .. } => true,
            // For a row that an outer join misses, a constant would show where NULL should.
            _ => !nullable && !column.expr.is_volatile() && !column.expr.has_subquery(),
        })
}

fn index_hints(table: &Arc<Table>, hints: &[ast::IndexHint]) -> Result<IndexHints> {
    let mut bound = IndexHints::default();
    for hint in hints {
        let mut positions = Vec::new();
        for name in &hint.indexes {
            let position = table
                .index_position(name)
                .ok_or_else(|| Error::key_does_not_exist(name.as_str(), &table.name))?;
            positions.push(position);
        }
        let purposes = match hint.scope {
            None => vec![&mut bound.rows, &mut bound.sorting, &mut bound.grouping],
            Some(ast::IndexHintScope::Join) => vec![&mut bound.rows],
            Some(ast::IndexHintScope::OrderBy) => vec![&mut bound.sorting],
            Some(ast::IndexHintScope::GroupBy) => vec![&mut bound.grouping],
        };
        for choice in purposes {
            match hint.action {
                ast::IndexHintAction::Ignore => choice.never.extend(&positions),
                ast::IndexHintAction::Use | ast::IndexHintAction::Force => {
                    choice.only.get_or_insert_default().extend(&positions);
                    choice.force |= hint.action == ast::IndexHintAction::Force;
                }
            }
        }
    }
    Ok(bound)
}
