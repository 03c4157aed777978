//! Common tables: WITH, and WITH RECURSIVE.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_core::error::{Error, Result};
use porpoise_expr::Expr;
use porpoise_expr::typing;
use porpoise_sql::lexer::{Lexer, TokenKind, name_text};
use porpoise_sql::{Modes, ast};
use porpoise_types::{DataType, Value};

use crate::bind::Binder;
use crate::bind::from::Part;
use crate::bind::scope::Relation;
use crate::plan::SetOperator;
use crate::query::{Body, OutputColumn, Query, SourceKind};

/// A common table of a WITH clause.
pub struct Definition {
    pub(super) name: CompactString,
    ast: Arc<ast::CommonTable>,
    recursive: bool,
    /// How many scopes enclose the WITH, and what it sees of other common tables.
    depth: usize,
    visible: Vec<usize>,
    /// The schema and text it was written in.
    schema: Option<CompactString>,
    /// Computed once: its number among the binder's `common_tables`, with its columns.
    shared: Option<(usize, Vec<OutputColumn>)>,
    /// While its own recursive query is bound.
    own: Option<OwnQuery>,
}

/// The query of a recursive common table, while it is bound.
struct OwnQuery {
    /// Whether it is a UNION.
    is_union: bool,
    /// The working table's number and columns; `None` in its first part, which says what the
    /// columns are.
    working: Option<(usize, Vec<OutputColumn>)>,
    /// How many scopes enclose its parts.
    depth: usize,
    /// Whether the part that is bound names the table.
    is_named: bool,
}

impl Binder<'_> {
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
                ast: Arc::clone(table),
                recursive: with.recursive,
                depth: self.scopes.len(),
                visible: self.visible.clone(),
                schema: self.schema.clone(),
                shared: None,
                own: None,
            });
            self.visible.push(self.definitions.len() - 1);
        }
        Ok(())
    }

    /// A reference to a common table.
    pub(super) fn common(
        &mut self,
        at: usize,
        alias: CompactString,
        nullable: bool,
    ) -> Result<Part> {
        let depth = self.scopes.len();
        if let Definition {
            name,
            own: Some(own),
            ..
        } = &mut self.definitions[at]
        {
            let (working, columns) = own.reference(name, depth, nullable)?;
            let (slot, made) = self.computed_columns(&alias, &columns);
            let relation = Relation::of_statement(alias, made, nullable);
            return self.leaf(relation, slot, SourceKind::Working { working });
        }
        if self.definitions[at].shared.is_none() {
            let query = self.bind_definition(at)?;
            let once = self.is_named_once(at) && !self.definitions[at].recursive;
            if once || self.is_merged(&query, nullable) {
                return self.query_part(query, alias, CompactString::default(), None, nullable);
            }
            let columns = query.columns.clone();
            self.common_tables.push(Some(query));
            self.definitions[at].shared = Some((self.common_tables.len() - 1, columns));
        }
        let Some((number, columns)) = self.definitions[at].shared.clone() else {
            return Err(Error::no_such_table("", alias));
        };
        let (slot, made) = self.computed_columns(&alias, &columns);
        let relation = Relation::of_statement(alias, made, nullable);
        self.leaf(relation, slot, SourceKind::Common { number })
    }

    /// Whether the text names the table twice: where it is defined and where it is used. Names of
    /// its columns (`name.column`) don't count; an alias or a column of the same name does, and so
    /// does a string, which may be a name by the SQL mode.
    fn is_named_once(&self, at: usize) -> bool {
        let name = &self.definitions[at].name;
        let modes = match self.session().sql_mode.no_backslash_escapes() {
            true => Modes::NO_BACKSLASH_ESCAPES,
            false => Modes::NONE,
        };
        let mut lexer = Lexer::new(&self.sql, 0, modes);
        let (mut count, mut is_behind_dot) = (0, false);
        let mut token = lexer.next();
        while token.kind != TokenKind::End {
            if token.kind == TokenKind::Invalid {
                return false;
            }
            let next = lexer.next();
            let is_qualified = is_behind_dot || next.kind == TokenKind::Dot;
            let text = token.text(&self.sql);
            if !is_qualified && name_text(token.kind, text).eq_ignore_ascii_case(name) {
                count += 1;
            }
            is_behind_dot = token.kind == TokenKind::Dot;
            token = next;
        }
        count <= 2
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
        // Common tables lead to each other as deep as views do.
        let bound = self.nested(|binder| match recursive {
            true => {
                let bound = binder.recursive(at, &table);
                binder.definitions[at].own = None;
                bound
            }
            false => binder
                .query(&table.query)
                .and_then(|query| rename(query, &table.columns)),
        });
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
        self.definitions[at].own = Some(OwnQuery {
            is_union: parts.len() > 1,
            working: None,
            depth: self.scopes.len(),
            is_named: false,
        });
        if parts.len() < 2 {
            return self
                .query(&table.query)
                .and_then(|query| rename(query, &table.columns));
        }
        if let Some(with) = &table.query.with {
            self.with(with)?;
        }
        self.recursive_tables += 1;
        let working = self.recursive_tables - 1;
        let (mut seeds, mut steps) = self.recursive_parts(at, table, parts, working)?;
        let own = self.definitions[at].own.take();
        let (_, columns) = own.and_then(|own| own.working).unwrap_or_default();
        if steps.is_empty() {
            let bound = self.union(seeds, SetOperator::Union, distinct)?;
            return rename(bound, &table.columns);
        }
        let types: Vec<DataType> = columns
            .iter()
            .map(|column| typing::slot_type(&column.expr.ty))
            .collect();
        for query in seeds.iter_mut().chain(&mut steps) {
            coerce_columns(query, &types)?;
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
        if !table.query.order_by.is_empty() {
            let what = "ORDER BY over UNION in recursive Common Table Expression";
            return Err(Error::not_supported_yet(what));
        }
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

    /// Binds the parts of a recursive query: the seeds, and the steps, which name the table itself.
    /// The first seed says what its columns are.
    fn recursive_parts(
        &mut self,
        at: usize,
        table: &ast::CommonTable,
        parts: Vec<&ast::QueryBody>,
        working: usize,
    ) -> Result<(Vec<Query>, Vec<Query>)> {
        let mut seeds: Vec<Query> = Vec::new();
        let mut steps: Vec<Query> = Vec::new();
        let name = &table.name;
        for (number, part) in parts.into_iter().enumerate() {
            if let Some(own) = &mut self.definitions[at].own {
                own.is_named = false;
            }
            let mut query = self.body(part)?;
            if number == 0 {
                query = rename(query, &table.columns)?;
            }
            let Some(own) = &mut self.definitions[at].own else {
                return Err(Error::engine_error("a recursive table's query"));
            };
            if number == 0 {
                let mut columns = query.columns.clone();
                for column in &mut columns {
                    column.expr.nullable = true;
                }
                own.working = Some((working, columns));
            }
            match (own.is_named, steps.is_empty()) {
                (true, _) => {
                    check_step(name, &query)?;
                    steps.push(query);
                }
                (false, true) => seeds.push(query),
                (false, false) => return Err(Error::recursive_cte_without_seed(name.as_str())),
            }
        }
        Ok((seeds, steps))
    }
}

impl OwnQuery {
    /// The working table, where a part of the query names its table in a scope of that depth.
    fn reference(
        &mut self,
        name: &str,
        depth: usize,
        nullable: bool,
    ) -> Result<(usize, Vec<OutputColumn>)> {
        let Some((working, columns)) = &self.working else {
            return Err(match self.is_union {
                true => Error::recursive_cte_without_seed(name),
                false => Error::recursive_cte_without_union(name),
            });
        };
        if self.is_named || depth > self.depth + 1 {
            return Err(Error::recursive_cte_named_twice(name));
        }
        if nullable {
            return Err(Error::recursive_cte_join_order(name));
        }
        self.is_named = true;
        Ok((*working, columns.clone()))
    }
}

/// Refuses what a recursive part can't have (MySQL 8.4 manual, 15.2.20).
fn check_step(name: &str, query: &Query) -> Result<()> {
    let Body::Select(block) = &query.body else {
        return Ok(());
    };
    if block.group.is_some() || !block.windows.is_empty() {
        return Err(Error::recursive_cte_aggregates(name));
    }
    if block.distinct {
        let what = "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table \
                    Expression";
        return Err(Error::not_supported_yet(what));
    }
    Ok(())
}

/// Brings a query's columns to the types of a recursive table's.
fn coerce_columns(query: &mut Query, types: &[DataType]) -> Result<()> {
    if query.columns.len() != types.len() {
        return Err(Error::wrong_value_count());
    }
    for (column, ty) in query.columns.iter_mut().zip(types) {
        let null = Expr::literal(Value::Null, DataType::Null);
        let expr = std::mem::replace(&mut column.expr, null);
        column.expr = typing::coerce(expr, ty);
    }
    Ok(())
}

/// The operands of a chain of UNIONs, the first one first.
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

/// Gives a derived table's columns the names listed after its alias, which must be different.
pub(super) fn rename(mut query: Query, names: &[ast::Ident]) -> Result<Query> {
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
