//! GROUP BY and aggregates.
//!
//! A grouped query has two kinds of rows: those of FROM, and those of the grouping, which hold the
//! keys and the aggregates. What is computed after the grouping (select list, HAVING, windows,
//! ORDER BY) is bound over FROM like everything else and then rewritten, by the [`Grouper`], to
//! read the grouping's row:
//!
//! ```text
//! SELECT a + 1, COUNT(*) … GROUP BY a + 1      keys: slot0.a + 1      aggregates: COUNT(1)
//!        └ slot1.0  └ slot1.1
//! ```
//!
//! A column that is no key must be determined by the keys (`ONLY_FULL_GROUP_BY`; MySQL 8.4 manual,
//! 14.19.3): then any row's value will do.

use porpoise_catalog::IndexKind;
use porpoise_core::error::{Error, Result};
use porpoise_expr::aggregate::AggregateFunction;
use porpoise_expr::aggregate::{Aggregate, SortKey};
use porpoise_expr::typing::{self, compare, hidden, operate};
use porpoise_expr::{Arithmetic, Comparison, Domain, Expr, ExprKind, SlotId, SubqueryKind};
use porpoise_functions as functions;
use porpoise_sql::ast;
use porpoise_types::{DataType, Value};

use crate::bind::Binder;
use crate::bind::scope::{Columns, GroupKey, Relation, Scope};
use crate::bind::select::column_name;
use crate::query::{Block, Grouping, JoinTree, OutputColumn, Query, SourceKind, Window};
use crate::slot_set::SlotSet;

/// The column of the rollup mask, until its position is known.
const MASK: u16 = u16::MAX;

/// The function that makes any value of a group do, and the aggregate that finds it. Where nothing
/// is grouped the function is its argument.
const ANY_VALUE: &str = "ANY_VALUE";

pub fn aggregate_name(function: ast::AggregateFunction) -> &'static str {
    use ast::AggregateFunction::*;
    match function {
        Count => "COUNT",
        Sum => "SUM",
        Avg => "AVG",
        Min => "MIN",
        Max => "MAX",
        GroupConcat => "GROUP_CONCAT",
        StdDevPop => "STDDEV_POP",
        StdDevSamp => "STDDEV_SAMP",
        VarPop => "VAR_POP",
        VarSamp => "VAR_SAMP",
        BitAnd => "BIT_AND",
        BitOr => "BIT_OR",
        BitXor => "BIT_XOR",
        JsonArrayAgg => "JSON_ARRAYAGG",
        JsonObjectAgg => "JSON_OBJECTAGG",
        StCollect => "ST_COLLECT",
    }
}

pub fn find_aggregate(name: &str) -> Result<&'static AggregateFunction> {
    functions::find_aggregate(name).ok_or_else(|| Error::not_supported_yet(name))
}

fn owns(scope: &Scope, slot: SlotId) -> bool {
    scope
        .relations
        .iter()
        .any(|relation| match &relation.columns {
            Columns::Table { slot: own, .. }
            | Columns::Virtual { slot: own, .. }
            | Columns::Computed { slot: own, .. } => *own == slot,
            Columns::Merged { columns, .. } => columns.iter().any(|column| {
                column
                    .expr
                    .any(&mut |part| part.as_column().is_some_and(|at| at.0 == slot))
            }),
        })
}

impl Binder<'_> {
    /// The arguments of an aggregate, converted, with its type.
    pub(super) fn aggregate_parts(&mut self, aggregate: &ast::Aggregate) -> Result<Aggregate> {
        let function = find_aggregate(aggregate_name(aggregate.function))?;
        let arguments = self.exprs(&aggregate.args)?;
        let mut order = Vec::with_capacity(aggregate.order_by.len());
        for item in &aggregate.order_by {
            let expr = match self.ordinal_among(&item.expr, arguments.len(), "order clause")? {
                Some(at) => arguments[at].clone(),
                None => self.expr(&item.expr)?,
            };
            order.push(SortKey {
                expr,
                descending: item.descending,
            });
        }
        let arguments = match aggregate.distinct {
            // Of quotients that are shown alike one counts, as it is shown.
            true => (arguments.into_iter())
                .map(|argument| match typing::class(&argument.ty) {
                    typing::Class::Decimal => compare::into_domain(argument, Domain::Decimal),
                    _ => argument,
                })
                .collect(),
            false => arguments,
        };
        let (arguments, ty, nullable) = operate::aggregate(function, arguments, self.session())?;
        let separator = aggregate
            .separator
            .as_ref()
            .map(|text| String::from_utf8_lossy(text).into_owned());
        Ok(Aggregate {
            function,
            arguments,
            distinct: aggregate.distinct,
            order,
            separator,
            ty,
            nullable,
        })
    }

    pub(super) fn aggregate(&mut self, aggregate: &ast::Aggregate) -> Result<Expr> {
        let depth = self.scopes.len().saturating_sub(1);
        if self.scope().in_aggregate {
            return Err(Error::invalid_group_function_use());
        }
        self.scope().in_aggregate = true;
        let parts = self.aggregate_parts(aggregate);
        self.scope().in_aggregate = false;
        let parts = parts?;
        // `(SELECT MAX(outer.x))`: an aggregate over outer columns alone is the outer query's.
        let mut slots = SlotSet::default();
        for argument in &parts.arguments {
            argument.any(&mut |part| {
                if let Some((slot, _)) = part.as_column() {
                    slots.insert(slot);
                }
                false
            });
        }
        let mut at = depth;
        if !slots.is_empty() && !slots.iter().any(|slot| owns(&self.scopes[depth], slot)) {
            let outer = (0..depth)
                .rev()
                .find(|outer| slots.iter().any(|slot| owns(&self.scopes[*outer], slot)));
            if let Some(outer) = outer.filter(|outer| self.scopes[*outer].aggregates_allowed) {
                at = outer;
            }
        }
        let scope = &mut self.scopes[at];
        if !scope.aggregates_allowed || (at != depth && scope.in_aggregate) {
            return Err(Error::invalid_group_function_use());
        }
        let (ty, nullable) = (parts.ty.clone(), parts.nullable);
        let literals = self.context.literals;
        let known = scope
            .aggregates
            .iter()
            .find(|(_, held)| same_aggregate(held, &parts, literals))
            .map(|(number, _)| *number);
        let number = match known {
            Some(number) => number,
            None => {
                let number = self.aggregate_count;
                self.aggregate_count += 1;
                scope.aggregates.push((number, parts));
                number
            }
        };
        Ok(Expr::new(ExprKind::Aggregate(number), ty, nullable))
    }
}

fn same_aggregate(a: &Aggregate, b: &Aggregate, literals: &[Value]) -> bool {
    std::ptr::eq(a.function, b.function)
        && a.distinct == b.distinct
        && a.order.is_empty()
        && b.order.is_empty()
        && a.separator == b.separator
        && a.arguments.len() == b.arguments.len()
        // Plans must not depend on literals that happen to be equal: only the very same parameter
        // counts.
        && a.arguments.iter().zip(&b.arguments).all(|(a, b)| a.same_as(b, if literals.is_empty() { literals } else { &[] }))
}

/// Where an expression stands, for errors.
#[derive(Clone, Copy)]
enum ClausePosition {
    SelectList(usize),
    OrderBy(usize),
    Other,
}

/// Rewrites what stands behind a grouping.
pub struct Grouper<'g, 'b, 'a> {
    binder: &'b mut Binder<'a>,
    relations: &'g [Relation],
    slot: SlotId,
    keys: Vec<Expr>,
    /// The keys' subqueries, which run before there are groups; each with the one that stands for
    /// it where the groups' rows are read.
    key_subqueries: Vec<(usize, Option<usize>)>,
    /// Of each key the item of the select list that it names, which it speaks for even if another
    /// key is the same expression.
    items: Vec<Option<usize>>,
    /// Aggregates by their number in the statement; those added here have none.
    aggregates: Vec<(Option<usize>, Aggregate)>,
    rollup: bool,
    local: SlotSet,
    determined: Determined,
}

impl<'g, 'b, 'a> Grouper<'g, 'b, 'a> {
    pub fn new(
        binder: &'b mut Binder<'a>,
        block: &Block,
        keys: Vec<GroupKey>,
        aggregates: Vec<(usize, Aggregate)>,
        rollup: bool,
        relations: &'g [Relation],
    ) -> Grouper<'g, 'b, 'a> {
        let mut local = SlotSet::default();
        block
            .from
            .for_each_source(&mut |source| local.insert(source.slot));
        let slot = binder.new_slot("<temporary>", Vec::new(), Vec::new());
        let (keys, items): (Vec<Expr>, Vec<Option<usize>>) =
            keys.into_iter().map(|key| (key.expr, key.item)).unzip();
        let determined = Determined::new(block, &keys);
        let mut key_subqueries = Vec::new();
        for key in &keys {
            add_subqueries(binder, key, &mut key_subqueries);
        }
        let aggregates = aggregates
            .into_iter()
            .map(|(number, aggregate)| (Some(number), aggregate))
            .collect();
        Grouper {
            binder,
            relations,
            slot,
            keys,
            key_subqueries,
            items,
            aggregates,
            rollup,
            local,
            determined,
        }
    }

    pub fn rewrite(
        mut self,
        columns: &mut [OutputColumn],
        block: &mut Block,
        windows: &mut [Window],
        order: &mut [SortKey],
    ) -> Result<()> {
        let mut failed = Ok(());
        for (at, column) in columns.iter_mut().enumerate() {
            match self.items.iter().position(|item| *item == Some(at)) {
                Some(key) => self.key_column(&mut column.expr, key),
                None => self.expr(&mut column.expr, ClausePosition::SelectList(at + 1))?,
            }
        }
        for condition in &mut block.having {
            self.expr(condition, ClausePosition::Other)?;
        }
        for window in windows.iter_mut() {
            window.for_each_expr_mut(&mut |expr| {
                if failed.is_ok() {
                    failed = self.expr(expr, ClausePosition::Other);
                }
            });
        }
        failed?;
        for (at, key) in order.iter_mut().enumerate() {
            self.expr(&mut key.expr, ClausePosition::OrderBy(at + 1))?;
        }
        // The mask's column is the last one, now that all others are known.
        let mask = (self.keys.len() + self.aggregates.len()) as u16;
        let slot = self.slot;
        let mut fix = |expr: &mut Expr| fix_mask(expr, slot, mask);
        columns.iter_mut().for_each(|column| fix(&mut column.expr));
        block.having.iter_mut().for_each(&mut fix);
        windows
            .iter_mut()
            .for_each(|window| window.for_each_expr_mut(&mut fix));
        order.iter_mut().for_each(|key| fix(&mut key.expr));
        let mut types: Vec<DataType> = self
            .keys
            .iter()
            .map(|key| typing::slot_type(&key.ty))
            .collect();
        types.extend(self.aggregates.iter().map(|(_, aggregate)| {
            let (function, arguments) = (aggregate.function, &aggregate.arguments);
            typing::slot_type(&typing::held_type(function, arguments, &aggregate.ty))
        }));
        if self.rollup {
            types.push(DataType::BIGINT_UNSIGNED);
        }
        let draft = &mut self.binder.slots[slot.0 as usize];
        draft.used = vec![true; types.len()];
        draft.types = types;
        let aggregates = self
            .aggregates
            .into_iter()
            .map(|(_, aggregate)| aggregate)
            .collect();
        block.group = Some(Grouping {
            slot,
            keys: self.keys,
            aggregates,
            rollup: self.rollup,
        });
        Ok(())
    }

    fn column(&self, at: usize, ty: &DataType, nullable: bool) -> Expr {
        Expr::column(self.slot, at, typing::slot_type(ty), nullable)
    }

    fn expr(&mut self, expr: &mut Expr, place: ClausePosition) -> Result<()> {
        match &expr.kind {
            ExprKind::Aggregate(number) => {
                if let Some(at) = self
                    .aggregates
                    .iter()
                    .position(|(held, _)| *held == Some(*number))
                {
                    *expr = self.column(self.keys.len() + at, &expr.ty.clone(), expr.nullable);
                }
                return Ok(());
            }
            ExprKind::Call {
                function,
                arguments,
            } if std::ptr::eq(*function, &hidden::GROUPING) => {
                *expr = self.grouping(arguments)?;
                return Ok(());
            }
            ExprKind::Call {
                function,
                arguments,
            } if function.name == ANY_VALUE && self.is_of_rows(&arguments[0]) => {
                *expr = arguments[0].clone();
                return self.first_value(expr);
            }
            _ => {}
        }
        let literals = self.binder.context.literals;
        if let Some(at) = self.keys.iter().position(|key| key.same_as(expr, literals)) {
            self.key_column(expr, at);
            return Ok(());
        }
        if let Some((slot, column)) = expr.as_column() {
            if self.local.contains(slot) {
                self.determined_column(expr, slot, column, place)?;
            }
            return Ok(());
        }
        if let ExprKind::Subquery { number, kind } = &mut expr.kind {
            *number = self.grouped_subquery(*number);
            let number = *number;
            if let Some(mut query) = self
                .binder
                .subqueries
                .get_mut(number)
                .and_then(Option::take)
            {
                let result = self.query(&mut query, place);
                self.binder.subqueries[number] = Some(query);
                result?;
            }
            if let SubqueryKind::Quantified { operand, .. } = kind {
                self.use_key_types(operand);
            }
        }
        let mut failed = Ok(());
        expr.for_each_child_mut(&mut |child| {
            // A constant that happens to be a key's value is no key.
            let is_constant = matches!(
                child.kind,
                ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Variable(_)
            );
            if failed.is_ok() && !is_constant {
                failed = self.expr(child, place);
            }
        });
        failed
    }

    /// Whether an expression reads the rows that are grouped, not their groups.
    fn is_of_rows(&self, expr: &Expr) -> bool {
        let reads_rows = |part: &Expr| {
            part.as_column()
                .is_some_and(|(slot, _)| self.local.contains(slot))
        };
        expr.any(&mut |part| reads_rows(part))
            && !expr.any(&mut |part| matches!(part.kind, ExprKind::Aggregate(_)))
    }

    /// The subquery to run over the groups' rows: of one that a key has, a copy.
    fn grouped_subquery(&mut self, number: usize) -> usize {
        let of_key = self.key_subqueries.iter().position(|(of, _)| *of == number);
        let Some(at) = of_key else {
            return number;
        };
        if let (_, Some(copy)) = self.key_subqueries[at] {
            return copy;
        }
        let query = self.binder.subqueries.get(number).cloned().flatten();
        let Some(query) = query else {
            return number;
        };
        let copy = self.binder.keep_subquery(query);
        self.key_subqueries[at].1 = Some(copy);
        copy
    }

    /// Reads an expression that is key `at` from the grouping's row.
    fn key_column(&mut self, expr: &mut Expr, at: usize) {
        self.binder.fix_parameters(expr);
        let key = self.keys[at].clone();
        self.binder.fix_parameters(&key);
        let named = std::mem::replace(&mut expr.ty, DataType::Null);
        *expr = self.column(at, &key.ty, key.nullable || self.rollup);
        if named != key.ty {
            // A comparison has given its operand another name for its type (`compare::key_pair`).
            expr.ty = typing::slot_type(&named);
        }
    }

    /// Calls are the same only if their types are: an operand of IN that is a key, but for the name
    /// that its type has for the comparison, becomes the key's column here.
    fn use_key_types(&mut self, operand: &mut Expr) {
        if let ExprKind::Row(items) = &mut operand.kind {
            items.iter_mut().for_each(|item| self.use_key_types(item));
            return;
        }
        if !matches!(operand.kind, ExprKind::Call { .. }) {
            return;
        }
        let named = operand.ty.clone();
        let literals = self.binder.context.literals;
        let at = self.keys.iter().position(|key| {
            operand.ty = key.ty.clone();
            typing::class(&key.ty) == typing::class(&named) && key.same_as(operand, literals)
        });
        let Some(at) = at else {
            operand.ty = named;
            return;
        };
        self.binder.fix_parameters(operand);
        let key = self.keys[at].clone();
        self.binder.fix_parameters(&key);
        *operand = self.column(at, &key.ty, key.nullable || self.rollup);
        operand.ty = typing::slot_type(&named);
    }

    /// The outer references of a subquery read the grouping's row as well.
    fn query(&mut self, query: &mut Query, place: ClausePosition) -> Result<()> {
        let mut failed = Ok(());
        query.for_each_expr_mut(&mut |expr| {
            if failed.is_ok() {
                failed = self.expr(expr, place);
            }
        });
        failed
    }

    /// A column that is no key: any value of the group, if the keys determine it.
    fn determined_column(
        &mut self,
        expr: &mut Expr,
        slot: SlotId,
        column: usize,
        place: ClausePosition,
    ) -> Result<()> {
        if self.binder.session().sql_mode.only_full_group_by()
            && !self.determined.contains(slot, column)
        {
            let name = column_name(expr, self.relations);
            return Err(match (self.keys.is_empty(), place) {
                (true, ClausePosition::SelectList(at)) => Error::mix_of_group_and_fields(at, name),
                (true, _) => Error::mix_of_group_and_fields(1, name),
                (false, ClausePosition::SelectList(at)) => {
                    Error::only_full_group_by(at, "SELECT list", name)
                }
                (false, ClausePosition::OrderBy(at)) => {
                    Error::only_full_group_by(at, "ORDER BY", name)
                }
                (false, ClausePosition::Other) => Error::only_full_group_by(1, "HAVING", name),
            });
        }
        self.first_value(expr)
    }

    /// Any value that an expression has in the group.
    fn first_value(&mut self, expr: &mut Expr) -> Result<()> {
        let any_value = find_aggregate(ANY_VALUE)?;
        let held = self.aggregates.iter().position(|(number, held)| {
            number.is_none()
                && held
                    .arguments
                    .first()
                    .is_some_and(|argument| argument.same_as(expr, &[]))
        });
        let at = held.unwrap_or(self.aggregates.len());
        let (ty, nullable) = (
            expr.ty.clone(),
            expr.nullable || self.keys.is_empty() || self.rollup,
        );
        if held.is_none() {
            let aggregate = Aggregate {
                function: any_value,
                arguments: vec![expr.clone()],
                distinct: false,
                order: Vec::new(),
                separator: None,
                ty: typing::slot_type(&ty),
                nullable,
            };
            self.aggregates.push((None, aggregate));
        }
        *expr = self.column(self.keys.len() + at, &ty, nullable);
        Ok(())
    }

    /// GROUPING(a, b): a bit an argument, the last one lowest.
    fn grouping(&mut self, arguments: &[Expr]) -> Result<Expr> {
        if !self.rollup {
            return Err(Error::invalid_group_function_use());
        }
        let literals = self.binder.context.literals;
        let session = self.binder.session();
        let int = |value: i64| Expr::literal(Value::Int(value), DataType::BIGINT);
        let mut sum: Option<Expr> = None;
        for (position, argument) in arguments.iter().rev().enumerate() {
            let Some(key) = self
                .keys
                .iter()
                .position(|key| key.same_as(argument, literals))
            else {
                return Err(Error::grouping_not_in_group_by(arguments.len() - position));
            };
            let mask = Expr::column(self.slot, MASK as usize, DataType::BIGINT_UNSIGNED, false);
            let shifted =
                operate::arithmetic(Arithmetic::ShiftRight, mask, int(key as i64), session)?;
            let bit = operate::arithmetic(Arithmetic::BitAnd, shifted, int(1), session)?;
            let bit =
                operate::arithmetic(Arithmetic::ShiftLeft, bit, int(position as i64), session)?;
            sum = Some(match sum {
                None => bit,
                Some(sum) => operate::arithmetic(Arithmetic::BitOr, sum, bit, session)?,
            });
        }
        sum.map(|sum| typing::implicit(sum, DataType::BIGINT))
            .ok_or_else(Error::invalid_group_function_use)
    }
}

fn fix_mask(expr: &mut Expr, slot: SlotId, mask: u16) {
    if let ExprKind::Column {
        slot: of, column, ..
    } = &mut expr.kind
        && *of == slot
        && *column == MASK
    {
        *column = mask;
    }
    expr.for_each_child_mut(&mut |child| fix_mask(child, slot, mask));
}

/// Which columns a grouping's keys determine.
struct Determined {
    columns: Vec<(SlotId, usize)>,
    /// Tables of which a whole unique key is determined.
    tables: SlotSet,
}

impl Determined {
    fn new(block: &Block, keys: &[Expr]) -> Determined {
        let mut known = Determined {
            columns: keys.iter().filter_map(Expr::as_column).collect(),
            tables: SlotSet::default(),
        };
        let mut pairs = Vec::new();
        let mut conditions: Vec<&Expr> = block.conditions.iter().collect();
        on_conditions(&block.from, &mut conditions);
        for condition in conditions {
            let ExprKind::Compare {
                op: Comparison::Eq,
                left,
                right,
                ..
            } = &condition.kind
            else {
                continue;
            };
            match (left.as_column(), right.as_column()) {
                (Some(a), Some(b)) => pairs.push((a, b)),
                (Some(a), None) if right.is_constant() => known.columns.push(a),
                (None, Some(b)) if left.is_constant() => known.columns.push(b),
                _ => {}
            }
        }
        loop {
            let before = (known.columns.len(), known.tables.clone().iter().count());
            block.from.for_each_source(&mut |source| {
                let SourceKind::Table(table) = &source.kind else {
                    return;
                };
                let unique = table
                    .indexes
                    .iter()
                    .filter(|index| index.kind != IndexKind::NonUnique)
                    .any(|index| {
                        index.parts.iter().all(|part| {
                            part.prefix.is_none()
                                && !table.columns[part.column].nullable
                                && known.contains(source.slot, part.column)
                        })
                    });
                if unique {
                    known.tables.insert(source.slot);
                }
            });
            for (a, b) in &pairs {
                for (from, to) in [(a, b), (b, a)] {
                    if known.contains(from.0, from.1) && !known.contains(to.0, to.1) {
                        known.columns.push(*to);
                    }
                }
            }
            if before == (known.columns.len(), known.tables.iter().count()) {
                return known;
            }
        }
    }

    fn contains(&self, slot: SlotId, column: usize) -> bool {
        self.tables.contains(slot) || self.columns.contains(&(slot, column))
    }
}

fn on_conditions<'t>(tree: &'t JoinTree, out: &mut Vec<&'t Expr>) {
    match tree {
        JoinTree::One | JoinTree::Leaf(_) => {}
        JoinTree::Filtered { tree, conditions } => {
            on_conditions(tree, out);
            out.extend(conditions);
        }
        JoinTree::Join {
            left, right, on, ..
        } => {
            on_conditions(left, out);
            on_conditions(right, out);
            out.extend(on);
        }
    }
}

/// Adds the subqueries in an expression, and those in them.
fn add_subqueries(binder: &Binder<'_>, expr: &Expr, found: &mut Vec<(usize, Option<usize>)>) {
    expr.any(&mut |part| {
        if let ExprKind::Subquery { number, .. } = part.kind
            && found.iter().all(|(of, _)| *of != number)
        {
            found.push((number, None));
            if let Some(Some(query)) = binder.subqueries.get(number) {
                query.for_each_expr(&mut |expr| add_subqueries(binder, expr, found));
            }
        }
        false
    });
}
