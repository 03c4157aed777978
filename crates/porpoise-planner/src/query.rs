//! Bound queries: what a query means, before the optimizer decides how it runs.
//!
//! Names are slots and columns, types are known, but FROM is still a tree of joins and WHERE a list
//! of conditions. The optimizer ([`super::optimize`]) takes these apart and makes plan nodes of
//! them.
//!
//! A subquery inside an expression is an [`porpoise_expr::ExprKind::Subquery`] whose subplan is
//! still empty: its bound query is in the binder's list, under the subplan's number.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Table, VirtualTable};
use porpoise_expr::aggregate::{Aggregate, SortKey};
use porpoise_expr::{Expr, SlotId};
use porpoise_sql::ast::{HintKind, Span};

use crate::access::AccessColumn;
use crate::optimize::split::Split;
use crate::plan::{JsonTable, Node, RowLock, SetOperator, WindowCall};
use crate::slot_set::SlotSet;

/// A query with its ORDER BY and LIMIT.
#[derive(Clone, Debug)]
pub struct Query {
    pub body: Body,
    pub columns: Vec<OutputColumn>,
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

#[derive(Clone, Debug)]
pub enum Body {
    Select(Box<Block>),
    Values {
        slot: SlotId,
        rows: Vec<Vec<Expr>>,
    },
    /// JSON_TABLE: rows found in a document.
    JsonTable {
        slot: SlotId,
        doc: Expr,
        table: Arc<JsonTable>,
    },
    SetOperation {
        slot: SlotId,
        op: SetOperator,
        distinct: bool,
        inputs: Vec<Query>,
    },
    /// The steps of WITH RECURSIVE read `working`.
    Recursive {
        slot: SlotId,
        seed: Box<Query>,
        step: Box<Query>,
        distinct: bool,
        working: usize,
    },
}

/// SELECT … FROM … WHERE … GROUP BY … HAVING.
#[derive(Clone, Debug)]
pub struct Block {
    pub from: JoinTree,
    /// WHERE, split at AND.
    pub conditions: Vec<Expr>,
    pub group: Option<Grouping>,
    /// HAVING, split at AND.
    pub having: Vec<Expr>,
    pub windows: Vec<Window>,
    pub distinct: bool,
    /// STRAIGHT_JOIN: tables are read in the order written.
    pub straight: bool,
    /// The block's number in its text; 0: none.
    pub number: u32,
    /// How the block may be evaluated, where it is a subquery.
    pub subquery: SubqueryStrategies,
}

#[derive(Clone, Debug)]
pub struct Grouping {
    pub slot: SlotId,
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    pub rollup: bool,
}

#[derive(Clone, Debug)]
pub struct Window {
    pub slot: SlotId,
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub functions: Vec<WindowCall>,
}

/// A column of a query's result.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    pub expr: Expr,
    pub name: CompactString,
    /// The name is a piece of the statement's text that holds a literal lifted out of it: which
    /// piece.
    pub name_span: Option<Span>,
    pub origin: Option<Origin>,
}

/// The table's column that an output column is.
#[derive(Clone, Debug)]
pub struct Origin {
    pub alias: CompactString,
    /// `None`: a derived table's or a virtual table's column.
    pub table: Option<Arc<Table>>,
    pub column: usize,
    /// As which table's or view's column the query named it.
    pub access: Option<AccessColumn>,
}

#[derive(Clone, Debug)]
pub enum JoinTree {
    /// No FROM.
    One,
    Leaf(Box<Source>),
    /// A merged derived table's own WHERE.
    Filtered {
        tree: Box<JoinTree>,
        conditions: Vec<Expr>,
    },
    Join {
        left: Box<JoinTree>,
        right: Box<JoinTree>,
        kind: LogicalJoin,
        on: Vec<Expr>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalJoin {
    Inner,
    /// Inner, the left side first.
    Straight,
    Left,
    Semi,
    Anti,
}

/// A relation in FROM.
#[derive(Clone, Debug)]
pub struct Source {
    pub slot: SlotId,
    pub kind: SourceKind,
    pub hints: IndexHints,
    pub lock: RowLock,
}

#[derive(Clone, Debug)]
pub enum SourceKind {
    Table(Arc<Table>),
    Virtual(&'static VirtualTable),
    Derived {
        query: Box<Query>,
    },
    /// A derived or common table whose query is planned.
    Planned {
        plan: WithNode,
        materialize: usize,
        rows: f64,
        free: SlotSet,
        /// How it may be computed instead, for some rows of other tables.
        splits: Vec<Split>,
    },
    /// A reference to a common table that is computed once.
    Common {
        number: usize,
    },
    /// The rows of the last round of a recursive common table.
    Working {
        working: usize,
    },
}

/// A planned query.
#[derive(Clone, Debug)]
pub struct WithNode {
    pub node: Arc<Node>,
    pub output: Vec<Expr>,
}

/// What hints say of a table: USE, FORCE and IGNORE INDEX, and optimizer hints.
#[derive(Clone, Debug, Default)]
pub struct IndexHints {
    /// Indexes to find rows by.
    pub rows: IndexChoice,
    /// Indexes whose order spares a sort.
    pub sorting: IndexChoice,
    /// Indexes whose order spares a grouping's hash table.
    pub grouping: IndexChoice,
    /// Optimisations that are switched on or off.
    pub switches: Vec<TableSwitch>,
    /// The table came from a subquery that became a join: how it may be joined.
    pub joined_as: Option<SubqueryStrategies>,
}

/// Which indexes may serve a purpose.
#[derive(Clone, Debug, Default)]
pub struct IndexChoice {
    /// Only these, by position, when set.
    pub only: Option<Vec<usize>>,
    pub never: Vec<usize>,
    /// To go without is the last resort.
    pub force: bool,
}

/// An optimisation that a hint switches on or off for a table.
#[derive(Clone, Debug)]
pub struct TableSwitch {
    pub kind: HintKind,
    pub is_on: bool,
    /// By position; none: for all indexes.
    pub indexes: Vec<usize>,
}

/// How a subquery may be evaluated.
#[derive(Clone, Copy, Debug)]
pub struct SubqueryStrategies {
    /// As a semi-join or anti-join.
    pub semijoin: bool,
    /// A semi-join may look for the first row that matches, for each row anew.
    pub first_match: bool,
    /// A semi-join may read the subquery's rows once, and keep them.
    pub materialization: bool,
    /// A semi-join may be an inner join, of whose rows duplicates are weeded out.
    pub duplicate_weedout: bool,
    /// `x IN (SELECT y …)` is evaluated for each x, even where y are the same for all.
    pub into_exists: bool,
}

impl Default for SubqueryStrategies {
    fn default() -> SubqueryStrategies {
        SubqueryStrategies {
            semijoin: true,
            first_match: true,
            materialization: true,
            duplicate_weedout: true,
            into_exists: false,
        }
    }
}

impl IndexChoice {
    pub fn allows(&self, index: usize) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&index)) && !self.never.contains(&index)
    }

    /// Takes a hint for or against some of so many indexes; none named: all.
    pub fn choose(&mut self, is_for: bool, indexes: &[usize], count: usize) {
        match (is_for, indexes) {
            (true, []) => self.force = true,
            (true, indexes) => {
                self.only.get_or_insert_default().extend(indexes);
                self.force = true;
            }
            (false, []) => self.never.extend(0..count),
            (false, indexes) => self.never.extend(indexes),
        }
    }
}

impl IndexHints {
    /// Whether rows may be found by an index.
    pub fn allows(&self, index: usize) -> bool {
        self.rows.allows(index)
    }

    /// The purposes that a hint is about.
    pub fn choices_of(&mut self, kind: HintKind) -> Vec<&mut IndexChoice> {
        match kind {
            HintKind::JoinIndex => vec![&mut self.rows],
            HintKind::OrderIndex => vec![&mut self.sorting],
            HintKind::GroupIndex => vec![&mut self.grouping],
            _ => vec![&mut self.rows, &mut self.sorting, &mut self.grouping],
        }
    }

    /// Whether an optimisation is on for the table, or for one index of it; `otherwise` where no
    /// hint says.
    pub fn is_on(&self, kind: HintKind, index: Option<usize>, otherwise: bool) -> bool {
        let mut of_kind = self.switches.iter().filter(|switch| switch.kind == kind);
        let found = of_kind.find(|switch| {
            switch.indexes.is_empty() || index.is_some_and(|index| switch.indexes.contains(&index))
        });
        found.map_or(otherwise, |switch| switch.is_on)
    }
}

impl Query {
    /// Calls `visit` with every expression of the query, at every depth of derived tables; not
    /// inside subqueries of expressions.
    pub fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.body {
            Body::Select(block) => block.for_each_expr_mut(visit),
            Body::Values { rows, .. } => rows.iter_mut().flatten().for_each(&mut *visit),
            Body::JsonTable { doc, .. } => visit(doc),
            Body::SetOperation { inputs, .. } => inputs
                .iter_mut()
                .for_each(|input| input.for_each_expr_mut(visit)),
            Body::Recursive { seed, step, .. } => {
                seed.for_each_expr_mut(visit);
                step.for_each_expr_mut(visit);
            }
        }
        self.columns
            .iter_mut()
            .for_each(|column| visit(&mut column.expr));
        self.order.iter_mut().for_each(|key| visit(&mut key.expr));
        self.limit.iter_mut().for_each(&mut *visit);
        self.offset.iter_mut().for_each(&mut *visit);
    }

    pub fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.body {
            Body::Select(block) => block.for_each_expr(visit),
            Body::Values { rows, .. } => rows.iter().flatten().for_each(&mut *visit),
            Body::JsonTable { doc, .. } => visit(doc),
            Body::SetOperation { inputs, .. } => {
                inputs.iter().for_each(|input| input.for_each_expr(visit))
            }
            Body::Recursive { seed, step, .. } => {
                seed.for_each_expr(visit);
                step.for_each_expr(visit);
            }
        }
        self.columns.iter().for_each(|column| visit(&column.expr));
        self.order.iter().for_each(|key| visit(&key.expr));
        self.limit.iter().for_each(&mut *visit);
        self.offset.iter().for_each(&mut *visit);
    }

    /// Calls `visit` with every relation of the query, at every depth of derived tables; not inside
    /// subqueries of expressions.
    pub fn for_each_source(&self, visit: &mut dyn FnMut(&Source)) {
        match &self.body {
            Body::Select(block) => block.from.for_each_source(&mut |source| {
                visit(source);
                if let SourceKind::Derived { query } = &source.kind {
                    query.for_each_source(visit);
                }
            }),
            Body::Values { .. } | Body::JsonTable { .. } => {}
            Body::SetOperation { inputs, .. } => {
                inputs.iter().for_each(|input| input.for_each_source(visit));
            }
            Body::Recursive { seed, step, .. } => {
                seed.for_each_source(visit);
                step.for_each_source(visit);
            }
        }
    }

    /// Calls `visit` with every slot that the query fills.
    pub fn for_each_slot(&self, visit: &mut dyn FnMut(SlotId)) {
        match &self.body {
            Body::Select(block) => {
                block.from.for_each_slot(visit);
                if let Some(group) = &block.group {
                    visit(group.slot);
                }
                block.windows.iter().for_each(|window| visit(window.slot));
            }
            Body::Values { slot, .. } | Body::JsonTable { slot, .. } => visit(*slot),
            Body::SetOperation { slot, inputs, .. } => {
                visit(*slot);
                inputs.iter().for_each(|input| input.for_each_slot(visit));
            }
            Body::Recursive {
                slot, seed, step, ..
            } => {
                visit(*slot);
                seed.for_each_slot(visit);
                step.for_each_slot(visit);
            }
        }
    }
}

impl Block {
    fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.from.for_each_expr_mut(visit);
        self.conditions.iter_mut().for_each(&mut *visit);
        if let Some(group) = &mut self.group {
            group.keys.iter_mut().for_each(&mut *visit);
            for aggregate in &mut group.aggregates {
                aggregate.arguments.iter_mut().for_each(&mut *visit);
                aggregate
                    .order
                    .iter_mut()
                    .for_each(|key| visit(&mut key.expr));
            }
        }
        self.having.iter_mut().for_each(&mut *visit);
        self.windows
            .iter_mut()
            .for_each(|window| window.for_each_expr_mut(visit));
    }

    fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        self.from.for_each_expr(visit);
        self.conditions.iter().for_each(&mut *visit);
        if let Some(group) = &self.group {
            group.keys.iter().for_each(&mut *visit);
            for aggregate in &group.aggregates {
                aggregate.arguments.iter().for_each(&mut *visit);
                aggregate.order.iter().for_each(|key| visit(&key.expr));
            }
        }
        self.having.iter().for_each(&mut *visit);
        for window in &self.windows {
            window.partition.iter().for_each(&mut *visit);
            window.order.iter().for_each(|key| visit(&key.expr));
            window
                .functions
                .iter()
                .flat_map(|call| &call.arguments)
                .for_each(&mut *visit);
        }
    }
}

impl Window {
    pub fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.partition.iter_mut().for_each(&mut *visit);
        self.order.iter_mut().for_each(|key| visit(&mut key.expr));
        self.functions
            .iter_mut()
            .flat_map(|call| &mut call.arguments)
            .for_each(&mut *visit);
    }
}

impl JoinTree {
    pub fn has_outer_join(&self) -> bool {
        match self {
            JoinTree::One | JoinTree::Leaf(_) => false,
            JoinTree::Filtered { tree, .. } => tree.has_outer_join(),
            JoinTree::Join {
                left, right, kind, ..
            } => *kind == LogicalJoin::Left || left.has_outer_join() || right.has_outer_join(),
        }
    }

    pub fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            JoinTree::One => {}
            JoinTree::Leaf(source) => {
                if let SourceKind::Derived { query } = &mut source.kind {
                    query.for_each_expr_mut(visit);
                }
            }
            JoinTree::Filtered { tree, conditions } => {
                tree.for_each_expr_mut(visit);
                conditions.iter_mut().for_each(visit);
            }
            JoinTree::Join {
                left, right, on, ..
            } => {
                left.for_each_expr_mut(visit);
                right.for_each_expr_mut(visit);
                on.iter_mut().for_each(visit);
            }
        }
    }

    pub fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            JoinTree::One => {}
            JoinTree::Leaf(source) => {
                if let SourceKind::Derived { query } = &source.kind {
                    query.for_each_expr(visit);
                }
            }
            JoinTree::Filtered { tree, conditions } => {
                tree.for_each_expr(visit);
                conditions.iter().for_each(visit);
            }
            JoinTree::Join {
                left, right, on, ..
            } => {
                left.for_each_expr(visit);
                right.for_each_expr(visit);
                on.iter().for_each(visit);
            }
        }
    }

    /// Calls `visit` with every condition of the joins themselves.
    pub fn for_each_on_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            JoinTree::One | JoinTree::Leaf(_) => {}
            JoinTree::Filtered { tree, conditions } => {
                tree.for_each_on_mut(visit);
                conditions.iter_mut().for_each(visit);
            }
            JoinTree::Join {
                left, right, on, ..
            } => {
                left.for_each_on_mut(visit);
                right.for_each_on_mut(visit);
                on.iter_mut().for_each(visit);
            }
        }
    }

    /// Calls `visit` with each list of conditions of the joins themselves.
    pub fn for_each_list_mut(&mut self, visit: &mut dyn FnMut(&mut Vec<Expr>)) {
        match self {
            JoinTree::One | JoinTree::Leaf(_) => {}
            JoinTree::Filtered { tree, conditions } => {
                tree.for_each_list_mut(visit);
                visit(conditions);
            }
            JoinTree::Join {
                left, right, on, ..
            } => {
                left.for_each_list_mut(visit);
                right.for_each_list_mut(visit);
                visit(on);
            }
        }
    }

    /// Whether a condition of the joins themselves satisfies `test`.
    pub fn any_on(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        match self {
            JoinTree::One | JoinTree::Leaf(_) => false,
            JoinTree::Filtered { tree, conditions } => {
                tree.any_on(test) || conditions.iter().any(test)
            }
            JoinTree::Join {
                left, right, on, ..
            } => left.any_on(test) || right.any_on(test) || on.iter().any(test),
        }
    }

    /// Every slot filled inside, derived tables' insides included.
    pub fn for_each_slot(&self, visit: &mut dyn FnMut(SlotId)) {
        match self {
            JoinTree::One => {}
            JoinTree::Leaf(source) => {
                visit(source.slot);
                if let SourceKind::Derived { query } = &source.kind {
                    query.for_each_slot(visit);
                }
            }
            JoinTree::Filtered { tree, .. } => tree.for_each_slot(visit),
            JoinTree::Join { left, right, .. } => {
                left.for_each_slot(visit);
                right.for_each_slot(visit);
            }
        }
    }

    /// How many sources there are whose columns this tree yields.
    pub fn sources(&self) -> usize {
        let mut count = 0;
        self.for_each_source(&mut |_| count += 1);
        count
    }

    /// The sources whose columns this tree yields.
    pub fn for_each_source<'t>(&'t self, visit: &mut dyn FnMut(&'t Source)) {
        match self {
            JoinTree::One => {}
            JoinTree::Leaf(source) => visit(source),
            JoinTree::Filtered { tree, .. } => tree.for_each_source(visit),
            JoinTree::Join { left, right, .. } => {
                left.for_each_source(visit);
                right.for_each_source(visit);
            }
        }
    }

    /// The conditions of merged derived tables and views.
    /// Calls `visit` with what inner joins ask; `below`: in merged tables as well, and with the
    /// conditions of those.
    pub fn for_each_condition(&self, below: bool, visit: &mut dyn FnMut(&Expr)) {
        match self {
            JoinTree::One | JoinTree::Leaf(_) => {}
            JoinTree::Filtered { tree, conditions } => {
                if below {
                    conditions.iter().for_each(&mut *visit);
                    tree.for_each_condition(below, visit);
                }
            }
            JoinTree::Join {
                left,
                right,
                kind,
                on,
            } => {
                left.for_each_condition(below, visit);
                if matches!(kind, LogicalJoin::Inner | LogicalJoin::Straight) {
                    right.for_each_condition(below, visit);
                    on.iter().for_each(visit);
                }
            }
        }
    }

    pub fn for_each_source_mut(&mut self, visit: &mut dyn FnMut(&mut Source)) {
        match self {
            JoinTree::One => {}
            JoinTree::Leaf(source) => visit(source),
            JoinTree::Filtered { tree, .. } => tree.for_each_source_mut(visit),
            JoinTree::Join { left, right, .. } => {
                left.for_each_source_mut(visit);
                right.for_each_source_mut(visit);
            }
        }
    }
}
