//! FROM: tables, joins, derived tables, views and common tables become a tree of joins.
//!
//! A derived table or view that only selects, joins and filters is *merged*: its joins and conditions
//! become part of the query around it, and its columns stand for its expressions. Others get a slot and
//! are computed by themselves.

use std::rc::Rc;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Relation as CatalogRelation, Table, View};
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_expr::typing::collation::computed_strength;
use porpoise_expr::typing::{self, compare};
use porpoise_expr::{Comparison, Expr, ExprKind, Slot};
use porpoise_sql::ast;
use porpoise_types::DataType;

use crate::access::{AccessColumn, AccessId, Need};
use crate::bind::scope::{Columns, MadeColumn, Relation};
use crate::bind::{Binder, is_one_block};
use crate::plan::{RowLock, SetOperator, TableUse, ViewCheck};
use crate::query::{
    Block, Body, IndexHints, JoinTree, LogicalJoin, OutputColumn, Query, Source, SourceKind,
};

/// A common table of a WITH clause.
pub struct Definition {
    name: CompactString,
    ast: Rc<ast::CommonTable>,
    recursive: bool,
    /// How many scopes enclose the WITH, and what it sees of other common tables.
    depth: usize,
    visible: Vec<usize>,
    /// The schema and text it was written in.
    schema: Option<CompactString>,
    /// Computed once: its number among the binder's `commons`, with its columns.
    shared: Option<(usize, Vec<OutputColumn>)>,
    /// While its own recursive step is bound: the working table's number and columns, and whether it was named.
    working: Option<(usize, Vec<OutputColumn>, bool)>,
}

/// A part of FROM.
pub(super) struct Part {
    pub tree: JoinTree,
    /// What `*` shows of it, in order: relation, column.
    star: Vec<(usize, usize)>,
    /// Its relations.
    relations: std::ops::Range<usize>,
}

impl Binder<'_> {
    /// Binds a FROM clause into the innermost scope; returns the joins, and what `*` shows.
    pub(super) fn from(
        &mut self,
        refs: &[ast::TableRef],
    ) -> Result<(JoinTree, Vec<(usize, usize)>)> {
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
        let mut star = None;
        let on = match &join.condition {
            ast::JoinCondition::None => Vec::new(),
            ast::JoinCondition::On(condition) => {
                let clause = self.scope().clause;
                self.scope().clause = "on clause";
                self.scope().visible = left.relations.start..right.relations.end;
                let on = self.conditions(condition)?;
                let scope = self.scope();
                scope.clause = clause;
                scope.visible = 0..0;
                on
            }
            ast::JoinCondition::Using(names) => {
                let names: Vec<&str> = names.iter().map(ast::Ident::as_str).collect();
                let (on, shown) =
                    self.using(&left, &right, &names, join.kind == ast::JoinKind::Right)?;
                star = Some(shown);
                on
            }
            ast::JoinCondition::Natural => {
                let scope = self.scope();
                let name = |&(relation, column): &(usize, usize)| {
                    scope.relations[relation].columns.name(column).to_string()
                };
                let of_right: Vec<String> = right.star.iter().map(name).collect();
                let common: Vec<String> = left
                    .star
                    .iter()
                    .map(name)
                    .filter(|name| {
                        of_right
                            .iter()
                            .any(|other| other.eq_ignore_ascii_case(name))
                    })
                    .collect();
                let names: Vec<&str> = common.iter().map(String::as_str).collect();
                let (on, shown) =
                    self.using(&left, &right, &names, join.kind == ast::JoinKind::Right)?;
                star = Some(shown);
                on
            }
        };
        // RIGHT JOIN is LEFT JOIN turned round; what `*` shows keeps the order written.
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

    /// Equates columns of one name on both sides and hides one of each pair. Returns what `*` shows.
    #[allow(clippy::type_complexity)]
    fn using(
        &mut self,
        left: &Part,
        right: &Part,
        names: &[&str],
        keep_right: bool,
    ) -> Result<(Vec<Expr>, Vec<(usize, usize)>)> {
        let depth = self.scopes.len() - 1;
        let (mut on, mut kept, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let find = |star: &[(usize, usize)], binder: &Self| {
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
        let star = kept.iter().chain(rest).copied().collect();
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
        let at = scope.relations.len();
        let star = (0..relation.columns.len())
            .filter(|column| relation.columns.is_shown(*column))
            .map(|column| (at, column))
            .collect();
        scope.add(relation);
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
                let types = table.columns.iter().map(|(_, ty, _)| ty()).collect();
                let names = table
                    .columns
                    .iter()
                    .map(|(name, _, _)| CompactString::new(name))
                    .collect();
                let slot = self.new_slot(alias.clone(), types, names);
                self.cacheable = false;
                let source = Source {
                    slot,
                    kind: SourceKind::Virtual(table),
                    hints: IndexHints::default(),
                    lock: RowLock::None,
                };
                let relation = Relation {
                    alias,
                    schema,
                    columns: Columns::Virtual { slot, table },
                    nullable,
                    access,
                };
                self.add_relation(relation, JoinTree::Leaf(Box::new(source)))
            }
        }
    }

    /// The schema that a name says, or the one where names without any belong.
    pub(super) fn schema_of(&self, name: &ast::ObjectName) -> Result<CompactString> {
        let named = name.schema.as_ref().map(|schema| schema.0.clone());
        named
            .or_else(|| self.schema.clone())
            .ok_or_else(Error::no_database_selected)
    }

    /// What a name of a table or view stands for; 1049 or 1146 where it is nothing. Nothing else finds tables and
    /// views for a statement: what is named takes `need`, whether it exists or not. Temporary tables are the session's own,
    /// and need nothing.
    pub(super) fn open(
        &mut self,
        schema: &str,
        name: &str,
        need: Need,
    ) -> Result<(CatalogRelation, Option<AccessId>)> {
        let temporary = self.cx.temporary_tables;
        if !temporary.is_empty()
            && let Some(table) =
                temporary.get(&(CompactString::new(schema), CompactString::new(name)))
        {
            // The name may stand for another table in another session.
            self.cacheable = false;
            return Ok((CatalogRelation::Table(table.clone()), None));
        }
        let found = self.cx.catalog.relation(schema, name);
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
            None if self.cx.catalog.schema(schema).is_none() && !is_virtual_schema(schema) => {
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
            // Everything before it is in sight.
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
        if !is_mergeable(&query, nullable) || (self.keeps_derived && self.scopes.len() > 1) {
            let (slot, columns) = self.made_columns(&alias, &query.columns);
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
            return self.leaf(relation, slot, kind);
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
        let tree = match conditions.is_empty() {
            true => from,
            false => JoinTree::Filtered {
                tree: Box::new(from),
                conditions,
            },
        };
        self.scope().merged_order = order;
        let relation = Relation {
            alias,
            schema,
            columns: Columns::Merged { columns },
            nullable,
            access,
        };
        self.add_relation(relation, tree)
    }

    fn made_columns(&mut self, alias: &CompactString, columns: &[OutputColumn]) -> (Slot, Columns) {
        let types: Vec<DataType> = columns
            .iter()
            .map(|column| typing::slot_type(&column.expr.ty))
            .collect();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let made = columns.iter().zip(&types).map(|(column, ty)| MadeColumn {
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
            Columns::Made {
                slot,
                columns: made,
            },
        )
    }

    pub(super) fn view(
        &mut self,
        view: &Arc<View>,
        alias: CompactString,
        access: Option<AccessId>,
        nullable: bool,
    ) -> Result<Part> {
        self.use_view(view);
        let broken = || Error::view_invalid(&view.schema, &view.name);
        let query = super::select::parse_query(&view.sql)?;
        // A view sees nothing of the statement that names it.
        let scopes = std::mem::take(&mut self.scopes);
        let visible = std::mem::take(&mut self.visible);
        let sql = std::mem::replace(&mut self.sql, view.sql.as_bytes().into());
        let schema = self.schema.replace(view.schema.clone());
        let need = std::mem::replace(&mut self.reads_need, Need::READ);
        self.accesses.enter(view);
        self.defines_view = is_one_block(&query);
        let bound = self.nested(|binder| binder.query(&query));
        self.defines_view = false;
        let relations = self.popped.iter().filter_map(|relation| relation.access);
        let relations: Vec<AccessId> = relations.collect();
        self.accesses.leave();
        self.reads_need = need;
        self.schema = schema;
        self.sql = sql;
        self.visible = visible;
        self.scopes = scopes;
        let mut bound = match bound {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnknownColumn
                        | ErrorKind::NoSuchTable
                        | ErrorKind::UnknownDatabase
                        | ErrorKind::ViewInvalid
                ) =>
            {
                return Err(broken());
            }
            other => other?,
        };
        for column in &mut bound.columns {
            column.name_span = None;
        }
        if bound.columns.len() != view.columns.len() {
            return Err(broken());
        }
        for (column, name) in bound.columns.iter_mut().zip(&view.columns) {
            column.name = name.clone();
        }
        if let Some(access) = access {
            let shown = |column: &OutputColumn| -> (CompactString, Option<AccessColumn>) {
                let origin = column.origin.as_ref();
                let below = origin.and_then(|origin| origin.access.clone());
                (column.name.clone(), below)
            };
            let columns = bound.columns.iter().map(shown).collect();
            self.accesses.lead_to(access, columns, relations);
        }
        self.note_check_option(view, &bound);
        self.query_part(bound, alias, view.schema.clone(), access, nullable)
    }

    /// Keeps what WITH CHECK OPTION wants of rows that go through a view: its own conditions and, if cascaded,
    /// those of the views below it.
    fn note_check_option(&mut self, view: &View, query: &Query) {
        let Body::Select(block) = &query.body else {
            return;
        };
        if view.check_option.is_empty() {
            return;
        }
        let mut conditions = block.conditions.clone();
        if view.check_option == "CASCADED" {
            block
                .from
                .for_each_condition(&mut |condition| conditions.push(condition.clone()));
        }
        let mut slots = Vec::new();
        block
            .from
            .for_each_source(&mut |source| slots.push(source.slot));
        let check = ViewCheck {
            view: format!("{}.{}", view.schema, view.name),
            conditions,
        };
        self.view_checks.push((slots, check));
    }

    /// Makes the tables of a WITH clause known; the caller drops them again.
    pub(super) fn with(&mut self, with: &ast::With) -> Result<()> {
        for (at, table) in with.tables.iter().enumerate() {
            if with.tables[..at]
                .iter()
                .any(|other| other.name.eq_ignore_ascii_case(&table.name))
            {
                return Err(Error::not_unique_table(table.name.as_str()));
            }
            self.definitions.push(Definition {
                name: table.name.0.clone(),
                ast: Rc::new(table.clone()),
                recursive: with.recursive,
                depth: self.scopes.len(),
                visible: self.visible.clone(),
                schema: self.schema.clone(),
                shared: None,
                working: None,
            });
            self.visible.push(self.definitions.len() - 1);
        }
        Ok(())
    }

    /// A reference to a common table.
    fn common(&mut self, at: usize, alias: CompactString, nullable: bool) -> Result<Part> {
        if let Some((working, columns, named)) = &mut self.definitions[at].working {
            *named = true;
            let (working, columns) = (*working, columns.clone());
            let (slot, made) = self.made_columns(&alias, &columns);
            let relation = Relation::of_statement(alias, made, nullable);
            return self.leaf(relation, slot, SourceKind::Working { working });
        }
        if self.definitions[at].shared.is_none() {
            let query = self.bind_definition(at)?;
            let once = self.is_named_once(at) && !self.definitions[at].recursive;
            if once || is_mergeable(&query, nullable) {
                return self.query_part(query, alias, CompactString::default(), None, nullable);
            }
            let columns = query.columns.clone();
            self.commons.push(Some(query));
            self.definitions[at].shared = Some((self.commons.len() - 1, columns));
        }
        let Some((number, columns)) = self.definitions[at].shared.clone() else {
            return Err(Error::no_such_table("", alias));
        };
        let (slot, made) = self.made_columns(&alias, &columns);
        let relation = Relation::of_statement(alias, made, nullable);
        self.leaf(relation, slot, SourceKind::Common { number })
    }

    /// Rows that the statement makes itself.
    fn leaf(&mut self, relation: Relation, slot: Slot, kind: SourceKind) -> Result<Part> {
        let source = Source {
            slot,
            kind,
            hints: IndexHints::default(),
            lock: RowLock::None,
        };
        self.add_relation(relation, JoinTree::Leaf(Box::new(source)))
    }

    /// A guess, by the text: the name stands there twice, where it is defined and where it is used.
    fn is_named_once(&self, at: usize) -> bool {
        let name = self.definitions[at].name.as_bytes();
        let found = self
            .sql
            .windows(name.len().max(1))
            .filter(|window| window.eq_ignore_ascii_case(name));
        found.take(3).count() <= 2
    }

    /// Binds a common table's query where it was written.
    fn bind_definition(&mut self, at: usize) -> Result<Query> {
        let definition = &self.definitions[at];
        let table = definition.ast.clone();
        let (recursive, depth) = (
            definition.recursive,
            definition.depth.min(self.scopes.len()),
        );
        let inner = self.scopes.split_off(depth);
        let mut visible = definition.visible.clone();
        let schema = std::mem::replace(&mut self.schema, definition.schema.clone());
        if recursive {
            visible.push(at);
        }
        let visible = std::mem::replace(&mut self.visible, visible);
        let bound = match recursive {
            true => self.recursive(at, &table),
            false => self
                .query(&table.query)
                .and_then(|query| rename(query, &table.columns)),
        };
        self.visible = visible;
        self.schema = schema;
        self.scopes.extend(inner);
        bound
    }

    /// `WITH RECURSIVE name AS (seed UNION [ALL] step)`. Parts that don't name the table are seeds.
    fn recursive(&mut self, at: usize, table: &ast::CommonTable) -> Result<Query> {
        let mut parts = Vec::new();
        let mut distinct = false;
        flatten_union(&table.query.body, &mut parts, &mut distinct);
        if parts.len() < 2 {
            self.visible.pop();
            return self
                .query(&table.query)
                .and_then(|query| rename(query, &table.columns));
        }
        let depth = self.definitions.len();
        if let Some(with) = &table.query.with {
            self.with(with)?;
        }
        let mut seeds: Vec<Query> = Vec::new();
        let mut steps: Vec<Query> = Vec::new();
        self.workings += 1;
        let working = self.workings - 1;
        for (number, part) in parts.into_iter().enumerate() {
            let named = self.definitions[at].working.as_mut().map(|working| {
                working.2 = false;
            });
            let mut query = self.body(part)?;
            let uses = named.is_some()
                && self.definitions[at]
                    .working
                    .as_ref()
                    .is_some_and(|working| working.2);
            if number == 0 {
                query = rename(query, &table.columns)?;
                let mut columns = query.columns.clone();
                for column in &mut columns {
                    column.expr.nullable = true;
                }
                self.definitions[at].working = Some((working, columns, false));
            }
            if uses { &mut steps } else { &mut seeds }.push(query);
        }
        let columns = self.definitions[at]
            .working
            .take()
            .map(|(_, columns, _)| columns)
            .unwrap_or_default();
        if steps.is_empty() {
            let bound = self.union(seeds, SetOperator::Union, distinct)?;
            return rename(bound, &table.columns);
        }
        let _ = depth;
        let types: Vec<DataType> = columns
            .iter()
            .map(|column| typing::slot_type(&column.expr.ty))
            .collect();
        for query in seeds.iter_mut().chain(&mut steps) {
            if query.columns.len() != types.len() {
                return Err(Error::wrong_value_count());
            }
            for (column, ty) in query.columns.iter_mut().zip(&types) {
                let expr = std::mem::replace(
                    &mut column.expr,
                    Expr::literal(porpoise_types::Value::Null, DataType::Null),
                );
                column.expr = typing::coerce(expr, ty);
            }
        }
        let mut single = |mut queries: Vec<Query>| match queries.len() {
            1 => Ok(queries.remove(0)),
            _ => self.union(queries, SetOperator::Union, false),
        };
        let (seed, step) = (Box::new(single(seeds)?), Box::new(single(steps)?));
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let slot = self.new_slot(table.name.0.clone(), types.clone(), names);
        let columns = columns
            .into_iter()
            .zip(types)
            .enumerate()
            .map(|(at, (column, ty))| OutputColumn {
                expr: Expr::column(slot, at, ty, true),
                origin: None,
                ..column
            });
        let columns = columns.collect();
        let (limit, offset) = self.limit(table.query.limit.as_ref())?;
        Ok(Query {
            body: Body::Recursive {
                slot,
                seed,
                step,
                distinct,
                working,
            },
            columns,
            order: Vec::new(),
            limit,
            offset,
        })
    }
}

fn flatten_union<'q>(
    body: &'q ast::QueryBody,
    parts: &mut Vec<&'q ast::QueryBody>,
    distinct: &mut bool,
) {
    match body {
        ast::QueryBody::SetOperation(operation) if operation.op == ast::SetOperator::Union => {
            flatten_union(&operation.left, parts, distinct);
            parts.push(&operation.right);
            *distinct |= !operation.all;
        }
        other => parts.push(other),
    }
}

fn is_virtual_schema(name: &str) -> bool {
    ["information_schema", "performance_schema"]
        .iter()
        .any(|schema| schema.eq_ignore_ascii_case(name))
}

/// Gives a derived table's columns the names listed behind its alias, which must be different.
fn rename(mut query: Query, names: &[ast::Ident]) -> Result<Query> {
    if !names.is_empty() {
        if names.len() != query.columns.len() {
            return Err(Error::column_count_of_view());
        }
        for (column, name) in query.columns.iter_mut().zip(names) {
            column.name = name.0.clone();
            column.name_span = None;
        }
    }
    for (at, column) in query.columns.iter().enumerate() {
        if query.columns[..at]
            .iter()
            .any(|other| other.name.eq_ignore_ascii_case(&column.name))
        {
            return Err(Error::duplicate_column(column.name.as_str()));
        }
    }
    Ok(query)
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
            // Beside a missing row a constant would show where NULL should.
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
        match hint.action {
            ast::IndexHintAction::Ignore => bound.never.extend(positions),
            // A hint for sorting alone leaves the choice of rows free.
            _ if hint
                .scope
                .is_some_and(|scope| scope != ast::IndexHintScope::Join) => {}
            ast::IndexHintAction::Use | ast::IndexHintAction::Force => {
                bound.only.get_or_insert_default().extend(positions);
                bound.force |= hint.action == ast::IndexHintAction::Force;
            }
        }
    }
    Ok(bound)
}
