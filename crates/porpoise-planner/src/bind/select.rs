//! Query blocks, set operations, ORDER BY and LIMIT.
//!
//! The clauses of a block are bound in the order in which they see each other: FROM, WHERE, the
//! select list, GROUP BY (which may name an alias), HAVING, ORDER BY. Then everything behind the
//! grouping is rewritten to read the grouping's row ([`super::group`]).

use std::borrow::Cow;

use compact_str::CompactString;
use porpoise_catalog::expression::Disallowed;
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::variables::SessionVars;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::typing::collation::{Coercibility, computed_strength};
use porpoise_expr::typing::{self, compare};
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_sql::{NamedItem, ast};
use porpoise_types::{DataType, Value};

use crate::access::Need;
use crate::bind::scope::{
    Aliases, ColumnUse, Columns, ComputedColumn, GroupKey, NamedWindow, Relation, Scope,
};
use crate::bind::{Binder, group};
use crate::name_of_text;
use crate::plan::{OnLocked, RowLock, SetOperator};
use crate::query::{Block, Body, OutputColumn, Query};

/// Parses a view's SELECT; returns how deep it nests, too.
pub fn parse_query(sql: &str) -> Result<(ast::Query, u32)> {
    match porpoise_sql::parse_statement(sql.as_bytes(), 0, porpoise_sql::Modes::NONE) {
        Ok(Some(porpoise_sql::Parsed {
            statement: ast::Statement::Query(query),
            depth,
            ..
        })) => Ok((*query, depth)),
        Ok(_) => Err(Error::not_supported_yet("a view that is no query")),
        Err(error) => Err(Error::parse_error(error)),
    }
}

/// A column's name in a view's definition: another one where its text can't be a name.
pub fn usable_name(name: &str, at: usize) -> CompactString {
    if name.is_empty() || name.chars().count() > 64 || name.ends_with(' ') {
        compact_str::format_compact!("Name_exp_{}", at + 1)
    } else {
        name.into()
    }
}

/// A query block, or a set operation of such, whose columns haven't got their common types yet.
enum Terms {
    /// A block, or a query in parentheses with an ORDER BY or LIMIT of its own.
    Block(Box<Query>),
    Operation {
        op: SetOperator,
        distinct: bool,
        inputs: Vec<Terms>,
    },
}

impl Terms {
    fn collect_blocks<'t>(&'t self, blocks: &mut Vec<&'t Query>) {
        match self {
            Terms::Block(block) => blocks.push(block),
            Terms::Operation { inputs, .. } => {
                for input in inputs {
                    input.collect_blocks(blocks);
                }
            }
        }
    }

    /// The common type of a column of all blocks, and how easily its collation gives way.
    fn common_type(
        &self,
        column: usize,
        session: &SessionVars,
    ) -> Result<(DataType, Coercibility)> {
        let mut operands = Vec::new();
        match self {
            Terms::Block(block) => operands.push(Cow::Borrowed(&block.columns[column].expr)),
            Terms::Operation { inputs, .. } => {
                for input in inputs {
                    input.collect_operands(column, session, &mut operands)?;
                }
            }
        }
        let exprs: Vec<&Expr> = operands.iter().map(|operand| &**operand).collect();
        let ty = typing::slot_type(&typing::merged_type(&exprs, "UNION", session.collation)?);
        let strength = computed_strength(exprs);
        if typing::class(&ty) == typing::Class::Text && strength == Coercibility::None {
            return Err(Error::cannot_aggregate_many_collations("UNION"));
        }
        Ok((ty, strength))
    }

    /// What an operation's type depends on: all blocks below. INTERSECT binds closest, so that its
    /// operands have their common type before the others join them.
    fn collect_operands<'t>(
        &'t self,
        column: usize,
        session: &SessionVars,
        operands: &mut Vec<Cow<'t, Expr>>,
    ) -> Result<()> {
        match self {
            Terms::Operation {
                op: SetOperator::Intersect,
                ..
            } => {
                let (ty, strength) = self.common_type(column, session)?;
                let made = Expr::column(SlotId(0), column, ty, self.is_nullable(column));
                operands.push(Cow::Owned(made.of_strength(strength)));
            }
            Terms::Block(block) => operands.push(Cow::Borrowed(&block.columns[column].expr)),
            Terms::Operation { inputs, .. } => {
                for input in inputs {
                    input.collect_operands(column, session, operands)?;
                }
            }
        }
        Ok(())
    }

    fn is_nullable(&self, column: usize) -> bool {
        match self {
            Terms::Block(block) => block.columns[column].expr.nullable,
            Terms::Operation { inputs, .. } => inputs.iter().any(|input| input.is_nullable(column)),
        }
    }
}

impl Binder<'_> {
    /// A query expression with its WITH, ORDER BY and LIMIT.
    pub(super) fn query(&mut self, query: &ast::Query) -> Result<Query> {
        match query.into {
            Some(_) => Err(Error::misplaced_into()),
            None => self.outermost_query(query),
        }
    }

    /// Binds a query that may say INTO: nothing encloses it. The statement's own business is where
    /// its rows go.
    pub(super) fn outermost_query(&mut self, query: &ast::Query) -> Result<Query> {
        let visible = self.visible.len();
        if let Some(with) = &query.with {
            self.with(with)?;
        }
        let bound = self.nested(|binder| binder.query_body(query));
        self.visible.truncate(visible);
        bound
    }

    fn query_body(&mut self, query: &ast::Query) -> Result<Query> {
        let plain = query.order_by.is_empty() && query.limit.is_none();
        match &query.body {
            ast::QueryBody::Select(select) => self.select(
                select,
                &query.order_by,
                query.limit.as_ref(),
                &query.locking,
            ),
            ast::QueryBody::Query(inner) if plain => self.query(inner),
            body => {
                let bound = self.body(body)?;
                if plain {
                    Ok(bound)
                } else {
                    self.ordered(bound, &query.order_by, query.limit.as_ref())
                }
            }
        }
    }

    /// A query without ORDER BY and LIMIT of its own.
    pub(super) fn body(&mut self, body: &ast::QueryBody) -> Result<Query> {
        self.nested(|binder| match body {
            ast::QueryBody::Select(select) => binder.select(select, &[], None, &[]),
            ast::QueryBody::Query(inner) => binder.query(inner),
            ast::QueryBody::Values(rows) => binder.values(rows),
            ast::QueryBody::Table(name) => {
                binder.note_table(name)?;
                let factor = ast::TableFactor {
                    name: name.clone(),
                    alias: None,
                    partitions: Vec::new(),
                    index_hints: Vec::new(),
                };
                let select = ast::Select {
                    items: vec![ast::SelectItem::Wildcard],
                    from: vec![ast::TableRef::Table(Box::new(factor))],
                    ..ast::Select::default()
                };
                binder.select(&select, &[], None, &[])
            }
            ast::QueryBody::SetOperation(operation) => binder.set_operation(operation),
        })
    }

    /// A query inside an expression.
    pub(super) fn subquery(&mut self, query: &ast::Query) -> Result<Query> {
        if self.is_of_table {
            return Err(self.refuse_in_table(Disallowed::Nameless));
        }
        self.query(query)
    }

    pub(super) fn limit(
        &mut self,
        limit: Option<&ast::Limit>,
    ) -> Result<(Option<Expr>, Option<Expr>)> {
        let Some(limit) = limit else {
            return Ok((None, None));
        };
        let count = self.expr(&limit.count)?;
        let offset = limit
            .offset
            .as_ref()
            .map(|offset| self.expr(offset))
            .transpose()?;
        Ok((Some(count), offset))
    }

    fn values(&mut self, rows: &[Vec<ast::Expr>]) -> Result<Query> {
        self.scopes.push(Scope::new("field list"));
        let bound: Result<Vec<Vec<Expr>>> = rows.iter().map(|row| self.exprs(row)).collect();
        self.scopes.pop();
        let mut rows = bound?;
        let width = rows.first().map_or(0, Vec::len);
        if let Some(at) = rows.iter().position(|row| row.len() != width) {
            return Err(Error::column_count_mismatch(at + 1));
        }
        let session = self.session();
        let mut types = Vec::with_capacity(width);
        for column in 0..width {
            let values: Vec<&Expr> = rows.iter().map(|row| &row[column]).collect();
            types.push(typing::slot_type(&typing::merged_type(
                &values,
                "VALUES",
                session.collation,
            )?));
        }
        for row in &mut rows {
            *row = std::mem::take(row)
                .into_iter()
                .zip(&types)
                .map(|(value, ty)| typing::coerce(value, ty))
                .collect();
        }
        let names: Vec<CompactString> = (0..width)
            .map(|at| CompactString::from(format!("column_{at}")))
            .collect();
        let slot = self.new_slot("values", types.clone(), names.clone());
        let columns = types
            .into_iter()
            .zip(names)
            .enumerate()
            .map(|(at, (ty, name))| {
                let nullable = rows.iter().any(|row| row[at].nullable);
                OutputColumn {
                    expr: Expr::column(slot, at, ty, nullable),
                    name,
                    name_span: None,
                    origin: None,
                }
            });
        let columns = columns.collect();
        Ok(Query {
            body: Body::Values { slot, rows },
            columns,
            order: Vec::new(),
            limit: None,
            offset: None,
        })
    }

    fn set_operation(&mut self, operation: &ast::SetOperation) -> Result<Query> {
        let terms = self.operation_terms(operation)?;
        self.combine(terms)
    }

    /// The query blocks of an operation, and of those among its operands, without their common types.
    fn operation_terms(&mut self, operation: &ast::SetOperation) -> Result<Terms> {
        let op = match operation.op {
            ast::SetOperator::Union => SetOperator::Union,
            ast::SetOperator::Intersect => SetOperator::Intersect,
            ast::SetOperator::Except => SetOperator::Except,
        };
        // `a UNION ALL b UNION ALL c` is one operation; so is whatever a UNION DISTINCT follows.
        let mut bodies = vec![&operation.right];
        let mut left = &operation.left;
        while let ast::QueryBody::SetOperation(inner) = left {
            let is_implied = op == SetOperator::Union && !operation.all;
            if inner.op != operation.op || (inner.all != operation.all && !is_implied) {
                break;
            }
            bodies.push(&inner.right);
            left = &inner.left;
        }
        bodies.push(left);
        let terms = bodies.into_iter().rev().map(|body| match body {
            ast::QueryBody::SetOperation(inner) => {
                self.nested(|binder| binder.operation_terms(inner))
            }
            _ => Ok(Terms::Block(Box::new(self.body(body)?))),
        });
        Ok(Terms::Operation {
            op,
            distinct: !operation.all,
            inputs: terms.collect::<Result<_>>()?,
        })
    }

    /// Brings the inputs' columns to common types and puts them together.
    pub(super) fn union(
        &mut self,
        inputs: Vec<Query>,
        op: SetOperator,
        distinct: bool,
    ) -> Result<Query> {
        self.combine(Terms::Operation {
            op,
            distinct,
            inputs: inputs
                .into_iter()
                .map(|input| Terms::Block(Box::new(input)))
                .collect(),
        })
    }

    /// Puts query blocks together, in the common types of all of them: those of an operand that is
    /// an operation itself depend on the other operands as well, so that a value is converted once.
    fn combine(&mut self, terms: Terms) -> Result<Query> {
        let mut blocks = Vec::new();
        terms.collect_blocks(&mut blocks);
        let width = blocks.first().map_or(0, |block| block.columns.len());
        if blocks.iter().any(|block| block.columns.len() != width) {
            return Err(Error::wrong_value_count());
        }
        let session = self.session();
        let mut types = Vec::with_capacity(width);
        for column in 0..width {
            types.push(terms.common_type(column, session)?);
        }
        Ok(self.put_together(terms, &types))
    }

    /// The query of some terms, whose columns have these types.
    fn put_together(&mut self, terms: Terms, types: &[(DataType, Coercibility)]) -> Query {
        let (op, distinct, inputs) = match terms {
            Terms::Block(mut block) => {
                for (column, (ty, _)) in block.columns.iter_mut().zip(types) {
                    let null = Expr::literal(Value::Null, DataType::Null);
                    let expr = std::mem::replace(&mut column.expr, null);
                    column.expr = typing::coerce(expr, ty);
                }
                return *block;
            }
            Terms::Operation {
                op,
                distinct,
                inputs,
            } => (op, distinct, inputs),
        };
        let nullable: Vec<bool> = (0..types.len())
            .map(|column| inputs.iter().any(|input| input.is_nullable(column)))
            .collect();
        let inputs: Vec<Query> = inputs
            .into_iter()
            .map(|input| self.put_together(input, types))
            .collect();
        let firsts: Vec<(CompactString, Option<ast::Span>)> =
            inputs.first().map_or(Vec::new(), |first| {
                first
                    .columns
                    .iter()
                    .map(|column| (column.name.clone(), column.name_span))
                    .collect()
            });
        let names = firsts.iter().map(|(name, _)| name.clone()).collect();
        let slot_types = types.iter().map(|(ty, _)| ty.clone()).collect();
        let slot = self.new_slot("<union temporary>", slot_types, names);
        let columns = firsts.into_iter().zip(types).zip(nullable).enumerate();
        let columns =
            columns.map(
                |(at, (((name, name_span), (ty, strength)), nullable))| OutputColumn {
                    expr: Expr::column(slot, at, ty.clone(), nullable).of_strength(*strength),
                    name,
                    name_span,
                    origin: None,
                },
            );
        let columns = columns.collect();
        Query {
            body: Body::SetOperation {
                slot,
                op,
                distinct,
                inputs,
            },
            columns,
            order: Vec::new(),
            limit: None,
            offset: None,
        }
    }

    /// ORDER BY and LIMIT of a set operation, or of a query in parentheses: over its result's
    /// columns.
    fn ordered(
        &mut self,
        mut query: Query,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Limit>,
    ) -> Result<Query> {
        if !query.order.is_empty()
            || query.limit.is_some()
            || matches!(query.body, Body::Select(_) | Body::Recursive { .. })
        {
            // A query that has an order or a limit already is computed first, and read like a union
            // of one input.
            query = self.union(vec![query], SetOperator::Union, false)?;
        }
        let mut scope = Scope::new("global ORDER clause");
        let slot = match &query.body {
            Body::SetOperation { slot, .. } | Body::Values { slot, .. } => *slot,
            _ => return Err(Error::not_supported_yet("this ORDER BY")),
        };
        let made = query.columns.iter().map(|column| ComputedColumn {
            name: column.name.clone(),
            ty: column.expr.ty.clone(),
            nullable: column.expr.nullable,
            strength: computed_strength([&column.expr]),
            name_span: column.name_span,
        });
        let columns = Columns::Computed {
            slot,
            columns: made.collect(),
        };
        let alias = CompactString::default();
        scope.add(Relation::of_statement(alias, columns, false));
        scope.show_all();
        scope.items = query.columns.clone();
        scope.aliases = Aliases::Last;
        self.scopes.push(scope);
        let bound = self
            .order_items(order_by)
            .and_then(|order| Ok((order, self.limit(limit)?)));
        self.scopes.pop();
        let (order, (limit, offset)) = bound?;
        query.order = order;
        query.limit = limit;
        query.offset = offset;
        Ok(query)
    }

    /// `SELECT …`.
    fn select(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Limit>,
        locking: &[ast::Locking],
    ) -> Result<Query> {
        let mut scope = Scope::new("field list");
        scope.block = select.number;
        scope.locks = locks(locking);
        if scope.locks.is_empty() && self.session().statement.reads_lock {
            scope.locks = vec![(CompactString::default(), RowLock::Shared(OnLocked::Wait))];
        }
        let named = select.windows.iter().cloned();
        scope.named_windows = named
            .map(|(name, window)| NamedWindow {
                name,
                window,
                is_checked: false,
            })
            .collect();
        let depth = self.scopes.len();
        self.scopes.push(scope);
        let bound = self.select_in_scope(select, order_by, limit);
        self.scopes.truncate(depth);
        bound
    }

    fn select_in_scope(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Limit>,
    ) -> Result<Query> {
        let usage = match std::mem::take(&mut self.defines_view) {
            true => ColumnUse::Shown,
            false => ColumnUse::Read,
        };
        self.scope().clause = "from clause";
        let need = match usage {
            ColumnUse::Shown => Need::AnyOfView,
            ColumnUse::Read => Need::READ,
        };
        let outer = std::mem::replace(&mut self.reads_need, need);
        let bound = self.from(&select.from);
        self.reads_need = outer;
        let (from, star) = bound?;
        self.check_locks()?;
        self.scope().clause = "where clause";
        let conditions = match &select.selection {
            Some(condition) => self.conditions(condition)?,
            None => Vec::new(),
        };
        let scope = self.scope();
        scope.clause = "field list";
        scope.aggregates_allowed = true;
        scope.windows_allowed = true;
        let columns = self.select_items(&select.items, &star, select.from.is_empty(), usage)?;
        self.scope().items = columns;
        let keys = self.group_items(&select.group_by, select.rollup)?;
        let scope = self.scope();
        scope.group_keys = keys;
        scope.aggregates_allowed = true;
        scope.windows_allowed = false;
        let mut having = Vec::new();
        if let Some(condition) = &select.having {
            scope.clause = "having clause";
            scope.aliases = Aliases::Having;
            having = self.conditions(condition)?;
        }
        let scope = self.scope();
        scope.clause = "order clause";
        scope.aliases = Aliases::Last;
        scope.windows_allowed = true;
        let mut order = self.order_items(order_by)?;
        self.check_named_windows()?;
        let (limit, offset) = self.limit(limit)?;
        let depth = self.scopes.len() - 1;
        let scope = std::mem::replace(&mut self.scopes[depth], Scope::new("field list"));
        let grouped = !select.group_by.is_empty() || !scope.aggregates.is_empty();
        // The order of a merged table's rows is the block's own, unless it makes other rows of
        // them.
        let keeps_rows = !grouped && !select.distinct && select.having.is_none();
        if keeps_rows && order_by.is_empty() && select.from.len() == 1 && scope.relations.len() == 1
        {
            order = scope.merged_order.clone();
        }
        let mut block = Block {
            from,
            conditions,
            group: None,
            having,
            windows: Vec::new(),
            distinct: select.distinct,
            straight: select.options.straight_join || self.hints.is_fixed_order(select.number),
            number: select.number,
            subquery: self.hints.subquery(select.number, self.switches()),
        };
        let mut columns = scope.items;
        let drafts = scope.windows;
        let mut windows = self.finish_windows(drafts);
        if grouped {
            group::Grouper::new(
                self,
                &block,
                scope.group_keys,
                scope.aggregates,
                select.rollup,
                &scope.relations,
            )
            .rewrite(&mut columns, &mut block, &mut windows, &mut order)?;
            if select.distinct {
                order = distinct_order(order, &columns);
            }
        } else if select.distinct && self.session().sql_mode.only_full_group_by() {
            self.check_distinct_order(&order, &columns, &scope.relations)?;
        }
        block.windows = windows;
        self.last_relations = scope.relations;
        Ok(Query {
            body: Body::Select(Box::new(block)),
            columns,
            order,
            limit,
            offset,
        })
    }

    /// `FOR UPDATE OF t`: t must be in FROM.
    fn check_locks(&mut self) -> Result<()> {
        let scope = self.scope();
        for (alias, _) in scope.locks.iter().filter(|(alias, _)| !alias.is_empty()) {
            if !scope
                .relations
                .iter()
                .any(|relation| relation.alias == *alias)
            {
                return Err(Error::unresolved_table_lock(alias));
            }
        }
        Ok(())
    }

    fn select_items(
        &mut self,
        items: &[ast::SelectItem],
        star: &[(usize, usize)],
        no_from: bool,
        usage: ColumnUse,
    ) -> Result<Vec<OutputColumn>> {
        let depth = self.scopes.len() - 1;
        self.scopes[depth].items = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let first = self.scopes[depth].items.len();
            match item {
                ast::SelectItem::Wildcard => {
                    if no_from {
                        return Err(Error::no_tables_used());
                    }
                    for (relation, column) in star {
                        self.note_star(depth, *relation);
                        let column = self.output_column(depth, *relation, *column, usage);
                        self.scopes[depth].items.push(column);
                    }
                }
                ast::SelectItem::QualifiedWildcard(name) => {
                    let scope = &self.scopes[depth];
                    let relation = scope.relations.iter().position(|relation| {
                        relation.is_called(name.schema.as_deref(), &name.name)
                    });
                    let Some(relation) = relation else {
                        return Err(Error::unknown_table(name.name.as_str()));
                    };
                    self.note_star(depth, relation);
                    for column in 0..self.scopes[depth].relations[relation].columns.len() {
                        if self.scopes[depth].relations[relation]
                            .columns
                            .is_shown(column)
                        {
                            let column = self.output_column(depth, relation, column, usage);
                            self.scopes[depth].items.push(column);
                        }
                    }
                }
                ast::SelectItem::Expr { expr, alias, span } => {
                    self.unresolved = None;
                    let mut column = self
                        .selected(depth, expr, *span, usage)
                        .map_err(|error| self.forward_reference(&items[at..]).unwrap_or(error))?;
                    if let Some(alias) = alias {
                        column.name = alias.0.clone();
                        column.name_span = None;
                    }
                    // Subqueries of the items that follow may name it.
                    self.scopes[depth].items.push(column);
                }
            }
            self.note_item(item, star, first);
        }
        Ok(std::mem::take(&mut self.scopes[depth].items))
    }

    /// Error 1247: a subquery of the select list's item named an alias that comes with the item or
    /// after it.
    fn forward_reference(&self, later: &[ast::SelectItem]) -> Option<Error> {
        let name = self.unresolved.as_ref()?;
        let is_it = |item: &ast::SelectItem| match item {
            ast::SelectItem::Expr { alias, .. } => {
                let mut alias = alias.iter();
                alias.any(|alias| alias.eq_ignore_ascii_case(name))
            }
            _ => false,
        };
        let why = "forward reference in item list";
        later
            .iter()
            .any(is_it)
            .then(|| Error::illegal_reference(name.as_str(), why))
    }

    /// An expression of the select list, called as it is written.
    fn selected(
        &mut self,
        depth: usize,
        expr: &ast::Expr,
        span: ast::Span,
        usage: ColumnUse,
    ) -> Result<OutputColumn> {
        let name = match expr {
            ast::Expr::Column(name) if self.variable(name).is_none() => Some(name),
            _ => None,
        };
        let Some(name) = name else {
            let bound = self.expr(expr)?;
            if compare::width(&bound) != 1 {
                return Err(Error::operand_columns(1));
            }
            return Ok(self.named(bound, expr, span));
        };
        let Some((relation, position)) = self.scopes[depth].find(name)? else {
            let bound = self.resolve(name)?;
            return Ok(self.named(bound, expr, span));
        };
        self.note_column(name, depth, (relation, position));
        let mut column = self.output_column(depth, relation, position, usage);
        let relation = &self.scopes[depth].relations[relation];
        if !matches!(relation.columns, Columns::Virtual { table, .. } if table.is_view()) {
            column.name = name.name.0.clone();
        }
        column.name_span = None;
        Ok(column)
    }

    /// Notes what an item of a select list gives: the columns from the `first` on.
    fn note_item(&mut self, item: &ast::SelectItem, star: &[(usize, usize)], first: usize) {
        if !self.notes_names() {
            return;
        }
        let depth = self.scopes.len() - 1;
        let columns = &self.scopes[depth].items;
        let given = columns[first..].iter().enumerate();
        let given = given.map(|(at, column)| {
            let relation = match item {
                ast::SelectItem::Expr { .. } => None,
                ast::SelectItem::Wildcard => star.get(at).map(|(relation, _)| *relation),
                ast::SelectItem::QualifiedWildcard(name) => {
                    let mut relations = self.scopes[depth].relations.iter();
                    relations
                        .position(|relation| relation.is_called(name.schema.as_deref(), &name.name))
                }
            };
            NamedItem {
                column: relation.and_then(|relation| self.full_name(depth, relation, &column.name)),
                name: ast::Ident(usable_name(&column.name, first + at)),
            }
        });
        let given = given.collect();
        if let Some(names) = &mut self.names {
            names.note_item(item, given);
        }
    }

    /// `*` reads a relation's columns without naming them.
    fn note_star(&mut self, depth: usize, relation: usize) {
        if let Some(access) = self.scopes[depth].relations[relation].access {
            self.accesses.unnamed(access, Privilege::Select);
        }
    }

    /// An expression named by its text.
    fn named(&mut self, bound: Expr, expr: &ast::Expr, span: ast::Span) -> OutputColumn {
        if let Some(name) = self.constant_name(&bound, expr) {
            return OutputColumn {
                expr: bound,
                name,
                name_span: None,
                origin: None,
            };
        }
        let name = match (expr, self.literal_value(expr)) {
            (ast::Expr::Column(name), _) => name.name.0.clone(),
            (_, Some(Value::Text(text))) => name_of_text(&text),
            _ => name_of_text(String::from_utf8_lossy(span.of(&self.sql)).trim()),
        };
        let lifted = !self.accesses.is_in_view() && !self.context.literals.is_empty();
        let holds_literal = lifted
            && bound.any(&mut |part| {
                matches!(
                    part.kind,
                    ExprKind::Parameter(_) | ExprKind::Subquery { .. } | ExprKind::Aggregate(_)
                )
            });
        let name_span = holds_literal.then_some(span);
        OutputColumn {
            expr: bound,
            name,
            name_span,
            origin: None,
        }
    }

    /// The name that NAME_CONST gives its column.
    fn constant_name(&mut self, bound: &Expr, expr: &ast::Expr) -> Option<CompactString> {
        let ast::Expr::Function(call) = expr else {
            return None;
        };
        let written = call.args.first()?;
        if !call.name.eq_ignore_ascii_case("name_const") {
            return None;
        }
        if let ExprKind::Call { arguments, .. } = &bound.kind
            && let Some(name) = arguments.first()
        {
            self.fix_parameters(name);
        }
        match self.literal_value(written)? {
            Value::Text(name) => Some(name),
            _ => None,
        }
    }

    /// The ordinal that ORDER BY 2 or GROUP BY 2 names, from 0.
    fn ordinal(&mut self, expr: &ast::Expr, clause: &str) -> Result<Option<usize>> {
        let items = self.scope().items.len();
        self.ordinal_among(expr, items, clause)
    }

    /// A whole number that stands for one of so many items.
    pub(super) fn ordinal_among(
        &mut self,
        expr: &ast::Expr,
        items: usize,
        clause: &str,
    ) -> Result<Option<usize>> {
        let value = match self.literal_value(expr) {
            Some(Value::Int(value)) => value,
            Some(Value::UInt(_)) => i64::MAX,
            _ => return Ok(None),
        };
        if let ast::Expr::Param(number) = expr {
            let number = *number as usize;
            self.parameter_count = self.parameter_count.max(number + 1);
            self.fixed_parameters.push(number);
        }
        match usize::try_from(value) {
            Ok(position) if (1..=items).contains(&position) => Ok(Some(position - 1)),
            _ => Err(Error::unknown_column(value, clause)),
        }
    }

    pub(super) fn order_items(&mut self, order_by: &[ast::OrderItem]) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order_by.len());
        for item in order_by {
            let expr = match (self.ordinal(&item.expr, "order clause")?, &item.expr) {
                (Some(at), _) => self.scope().items[at].expr.clone(),
                // A bare name is an alias first.
                (None, ast::Expr::Column(name))
                    if name.table.is_none() && self.variable(name).is_none() =>
                {
                    let item = self.scope().find_alias(&name.name)?;
                    match item.map(|item| (item.expr.clone(), item.name_span)) {
                        Some((expr, name_span)) => {
                            self.note_alias(name_span);
                            expr
                        }
                        None => self.resolve(name)?,
                    }
                }
                (None, expr) => self.expr(expr)?,
            };
            if compare::width(&expr) != 1 {
                return Err(Error::operand_columns(1));
            }
            keys.push(SortKey {
                expr,
                descending: item.descending,
            });
        }
        Ok(keys)
    }

    fn group_items(&mut self, group_by: &[ast::OrderItem], rollup: bool) -> Result<Vec<GroupKey>> {
        if group_by.is_empty() {
            return Ok(Vec::new());
        }
        let depth = self.scopes.len() - 1;
        let scope = self.scope();
        scope.clause = "group statement";
        let aggregates = scope.aggregates.len();
        scope.windows_allowed = false;
        let mut keys: Vec<GroupKey> = Vec::with_capacity(group_by.len());
        for item in group_by {
            let mut alias = None;
            let mut named = None;
            let expr = match (self.ordinal(&item.expr, "group statement")?, &item.expr) {
                (Some(at), _) => {
                    alias = Some(self.scope().items[at].name.clone());
                    named = Some(at);
                    let scope = self.scope();
                    scope.check_windows(&scope.items[at])?;
                    scope.items[at].expr.clone()
                }
                // FROM first, then aliases, also where several columns in FROM have the name.
                (None, ast::Expr::Column(name))
                    if name.table.is_none()
                        && self.variable(name).is_none()
                        && !matches!(self.scopes[depth].find(name), Ok(Some(_))) =>
                {
                    let scope = self.scope();
                    let item = scope.find_alias(&name.name)?;
                    if let Some(item) = item {
                        scope.check_windows(item)?;
                    }
                    match item.map(|item| (item.expr.clone(), item.name_span)) {
                        Some((expr, name_span)) => {
                            self.note_alias(name_span);
                            alias = Some(name.name.0.clone());
                            let mut items = self.scope().items.iter();
                            named =
                                items.position(|item| item.name.eq_ignore_ascii_case(&name.name));
                            expr
                        }
                        None => self.resolve(name)?,
                    }
                }
                (None, expr) => {
                    self.scope().aliases = Aliases::Last;
                    let bound = self.expr(expr);
                    self.scope().aliases = Aliases::No;
                    bound?
                }
            };
            if compare::width(&expr) != 1 {
                return Err(Error::operand_columns(1));
            }
            if expr.any(&mut |part| matches!(part.kind, ExprKind::Aggregate(_))) {
                self.scope().aggregates.truncate(aggregates);
                let written = || item.expr.to_string().into();
                return Err(Error::cannot_group_on(alias.unwrap_or_else(written)));
            }
            // Every key is a level of ROLLUP, even one that is given twice.
            let known = keys
                .iter()
                .any(|key| key.expr.same_as(&expr, self.context.literals));
            if rollup || !known {
                keys.push(GroupKey { expr, item: named });
            }
        }
        Ok(keys)
    }

    /// With DISTINCT the order must be one of the distinct rows.
    fn check_distinct_order(
        &mut self,
        order: &[SortKey],
        columns: &[OutputColumn],
        relations: &[Relation],
    ) -> Result<()> {
        for (at, key) in order.iter().enumerate() {
            if columns
                .iter()
                .any(|column| column.expr.same_as(&key.expr, self.context.literals))
            {
                continue;
            }
            let mut foreign = None;
            key.expr.any(&mut |part| {
                if part.as_column().is_some()
                    && !columns.iter().any(|column| column.expr.same_as(part, &[]))
                {
                    foreign = foreign.take().or(Some(part.clone()));
                }
                false
            });
            if let Some(column) = foreign {
                let name = column_name(&column, relations);
                return Err(Error::distinct_order_by(at + 1, name));
            }
        }
        Ok(())
    }
}

/// Drops the sort keys that are columns but not among the distinct rows' columns.
fn distinct_order(order: Vec<SortKey>, columns: &[OutputColumn]) -> Vec<SortKey> {
    order
        .into_iter()
        .filter(|key| {
            columns
                .iter()
                .any(|column| column.expr.same_as(&key.expr, &[]))
                || key.expr.as_column().is_none()
        })
        .collect()
}

/// `schema.table.column`, as errors name it.
pub fn column_name(expr: &Expr, relations: &[Relation]) -> String {
    let Some((slot, column)) = expr.as_column() else {
        return String::new();
    };
    for relation in relations {
        let own = match &relation.columns {
            Columns::Table { slot, .. }
            | Columns::Virtual { slot, .. }
            | Columns::Computed { slot, .. } => *slot == slot_of(expr).unwrap_or(*slot),
            Columns::Merged { columns, .. } => {
                if let Some(at) = columns
                    .iter()
                    .position(|merged| merged.expr.as_column() == Some((slot, column)))
                {
                    return format!("{}.{}", relation.alias, columns[at].name);
                }
                false
            }
        };
        if own && column < relation.columns.len() {
            let name = relation.columns.name(column);
            return match relation.schema.is_empty() {
                true => format!("{}.{name}", relation.alias),
                false => format!("{}.{}.{name}", relation.schema, relation.alias),
            };
        }
    }
    String::new()
}

fn slot_of(expr: &Expr) -> Option<porpoise_expr::SlotId> {
    expr.as_column().map(|(slot, _)| slot)
}

fn locks(locking: &[ast::Locking]) -> Vec<(CompactString, RowLock)> {
    let mut locks = Vec::new();
    for clause in locking {
        let on_locked = match clause.wait {
            ast::LockWait::Wait => OnLocked::Wait,
            ast::LockWait::NoWait => OnLocked::Fail,
            ast::LockWait::SkipLocked => OnLocked::Skip,
        };
        let lock = if clause.update {
            RowLock::Exclusive(on_locked)
        } else {
            RowLock::Shared(on_locked)
        };
        if clause.of.is_empty() {
            locks.push((CompactString::default(), lock));
        }
        for name in &clause.of {
            locks.push((name.name.0.clone(), lock));
        }
    }
    locks
}
