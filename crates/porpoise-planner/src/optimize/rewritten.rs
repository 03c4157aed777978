//! A query after it was rewritten, as text: what EXPLAIN leaves as a note (1003), and a step of the
//! optimizer trace (MySQL 8.4 manual, 10.8.3).
//!
//! Derived tables that were merged and subqueries that became joins are where they are now; what is
//! computed by itself is in parentheses. Texts are made only where somebody wants them.

use std::sync::Arc;

use hashbrown::HashMap;
use porpoise_catalog::Table;
use porpoise_core::quote;
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::{Expr, SlotId};

use crate::bind::Binder;
use crate::plan::{
    FrameBound, Insert, InsertSource, OnDuplicate, SetOperator, UpdateTarget, WindowFrame,
    WindowKind,
};
use crate::query::{
    Block, Grouping, JoinTree, LogicalJoin, OutputColumn, Source, SourceKind, Window,
};

/// The texts of the queries that were planned so far.
#[derive(Default)]
pub struct QueryTexts {
    /// Of the query that was planned last.
    pub last: String,
    /// FROM, and the conditions, of the block that is being planned.
    joined: (String, Vec<String>),
    /// ORDER BY and LIMIT of a change.
    ending: String,
    /// Of subqueries of expressions, by number.
    subqueries: HashMap<usize, String>,
    /// Of derived tables and common tables, by their materialisation.
    derived: HashMap<usize, String>,
    /// What the columns are that a grouping or a window computes.
    pub computed: HashMap<(SlotId, usize), String>,
}

impl Binder<'_> {
    /// What was noted of the block that is being planned, while a subquery of it is.
    pub fn hold_joined_text(&mut self) -> (String, Vec<String>) {
        std::mem::take(&mut self.texts.joined)
    }

    /// Goes on with the block.
    pub fn return_joined_text(&mut self, joined: (String, Vec<String>)) {
        self.texts.joined = joined;
    }

    /// The query that was planned last is a subquery of an expression.
    pub fn keep_subquery_text(&mut self, number: usize) {
        if self.context.trace.is_some() {
            let text = std::mem::take(&mut self.texts.last);
            self.texts.subqueries.insert(number, text);
        }
    }

    /// The query that was planned last is a derived table's.
    pub fn keep_derived_text(&mut self, materialization: usize) {
        if self.context.trace.is_some() {
            let text = std::mem::take(&mut self.texts.last);
            self.texts.derived.insert(materialization, text);
        }
    }

    /// Notes a block's FROM and WHERE, rewritten.
    pub fn keep_joined_text(&mut self, tree: &JoinTree, conditions: &[Expr]) {
        if self.context.trace.is_none() {
            return;
        }
        let mut all: Vec<String> = conditions.iter().map(|c| self.text_of(c)).collect();
        let from = self.tree_text(tree, &mut all);
        self.texts.joined = (from, all);
    }

    fn tree_text(&self, tree: &JoinTree, conditions: &mut Vec<String>) -> String {
        match tree {
            JoinTree::One => String::new(),
            JoinTree::Leaf(source) => self.source_text(source),
            JoinTree::Filtered {
                tree,
                conditions: own,
            } => {
                conditions.extend(own.iter().map(|condition| self.text_of(condition)));
                self.tree_text(tree, conditions)
            }
            JoinTree::Join {
                left,
                right,
                kind,
                on,
            } => {
                let left = self.tree_text(left, conditions);
                // What an outer, semi- or anti-join holds is checked inside it.
                let mut own: Vec<String> = on.iter().map(|on| self.text_of(on)).collect();
                let is_inner = matches!(kind, LogicalJoin::Inner | LogicalJoin::Straight);
                let right = match is_inner {
                    true => self.tree_text(right, conditions),
                    false => self.tree_text(right, &mut own),
                };
                let word = match kind {
                    LogicalJoin::Inner => "join",
                    LogicalJoin::Straight => "straight_join",
                    LogicalJoin::Left => "left join",
                    LogicalJoin::Semi => "semi join",
                    LogicalJoin::Anti => "anti join",
                };
                let right = match right.contains(" join ") {
                    true => format!("({right})"),
                    false => right,
                };
                match own.is_empty() {
                    true => format!("{left} {word} {right}"),
                    false => format!("{left} {word} {right} on({})", all_of(&own)),
                }
            }
        }
    }

    fn source_text(&self, source: &Source) -> String {
        let alias = self.slot_name(source.slot);
        match &source.kind {
            SourceKind::Table(table) => {
                let name = format!(
                    "{}.{}",
                    quote::name(&table.schema),
                    quote::name(&table.name)
                );
                match table.name == self.slots[source.slot.0 as usize].name {
                    true => name,
                    false => format!("{name} {alias}"),
                }
            }
            SourceKind::Planned { materialize, .. } => match self.texts.derived.get(materialize) {
                Some(text) if !text.is_empty() => format!("({text}) {alias}"),
                _ => alias,
            },
            _ => alias,
        }
    }

    /// The columns that a grouping computes.
    pub fn keep_grouping_text(&mut self, group: &Grouping) {
        if self.context.trace.is_none() {
            return;
        }
        let keys = group.keys.iter().map(|key| self.text_of(key));
        let aggregates = group.aggregates.iter().map(|aggregate| {
            let count =
                aggregate.arguments.len() - aggregate.order.len().min(aggregate.arguments.len());
            let arguments = aggregate.arguments[..count].iter();
            let arguments: Vec<String> = arguments.map(|argument| self.text_of(argument)).collect();
            let distinct = if aggregate.distinct { "distinct " } else { "" };
            let name = aggregate.function.name.to_ascii_lowercase();
            match arguments.is_empty() {
                true => format!("{name}(0)"),
                false => format!("{name}({distinct}{})", arguments.join(",")),
            }
        });
        let computed: Vec<String> = keys.chain(aggregates).collect();
        for (at, text) in computed.into_iter().enumerate() {
            self.texts.computed.insert((group.slot, at), text);
        }
    }

    /// The columns that a window's functions compute.
    pub fn keep_window_text(&mut self, window: &Window) {
        if self.context.trace.is_none() {
            return;
        }
        let partition = window.partition.iter().map(|expr| self.text_of(expr));
        let order = window.order.iter().map(|key| self.key_text(key));
        let partition = partition.collect::<Vec<_>>().join(",");
        let order = order.collect::<Vec<_>>().join(",");
        let spec = format!(
            "{}{}",
            clause("PARTITION BY ", &partition),
            clause(" ORDER BY ", &order)
        );
        let computed = window.functions.iter().map(|call| {
            let arguments = call.arguments.iter().map(|argument| self.text_of(argument));
            let arguments = arguments.collect::<Vec<_>>().join(",");
            let arguments = match (&call.kind, arguments.is_empty()) {
                (WindowKind::Aggregate(_), true) => "0",
                _ => &arguments,
            };
            let spec = format!("{spec}{}", clause(" ", &frame_text(self, &call.frame)));
            format!("{}({arguments}) OVER ({})", call.kind.name(), spec.trim())
        });
        for (at, text) in computed.collect::<Vec<_>>().into_iter().enumerate() {
            self.texts.computed.insert((window.slot, at), text);
        }
    }

    /// The text of the block whose FROM was noted last.
    pub fn keep_block_text(&mut self, block: &BlockText) {
        if self.context.trace.is_none() {
            return;
        }
        let (from, conditions) = std::mem::take(&mut self.texts.joined);
        let mut text = format!("/* select#{} */ select ", block.number);
        if block.distinct {
            text.push_str("distinct ");
        }
        text.push_str(&block.columns.join(","));
        let mut clause = |word: &str, what: String| {
            if !what.is_empty() {
                text.push_str(word);
                text.push_str(&what);
            }
        };
        clause(" from ", from);
        clause(" where ", all_of(&conditions));
        clause(" group by ", block.keys.join(","));
        clause(" having ", all_of(&block.having));
        clause(" order by ", block.order.join(","));
        clause(" limit ", block.limit.clone());
        self.texts.last = self.with_subqueries(text);
    }

    /// The texts of a set operation's inputs make its own.
    pub fn keep_union_text(&mut self, op: SetOperator, distinct: bool, inputs: &[String]) {
        if self.context.trace.is_none() {
            return;
        }
        let word = match op {
            SetOperator::Union => "union",
            SetOperator::Intersect => "intersect",
            SetOperator::Except => "except",
        };
        let all = if distinct { "" } else { " all" };
        self.texts.last = inputs.join(&format!(" {word}{all} "));
    }

    /// ORDER BY and LIMIT of a change.
    pub fn keep_ending_text(&mut self, order: &[SortKey], limit: Option<&Expr>) {
        if self.context.trace.is_none() {
            return;
        }
        let keys: Vec<String> = order.iter().map(|key| self.key_text(key)).collect();
        let mut text = clause(" order by ", &keys.join(","));
        let limit = limit.map_or(String::new(), |limit| self.text_of(limit));
        text.push_str(&clause(" limit ", &limit));
        self.texts.ending = text;
    }

    /// The text of an UPDATE whose rows were planned last.
    pub fn keep_update_text(&mut self, targets: &[UpdateTarget], ignore: bool) {
        if self.context.trace.is_none() {
            return;
        }
        let assigned = targets.iter().map(|target| self.assigned_text(target));
        let assigned: Vec<String> = assigned.collect();
        let (from, conditions) = std::mem::take(&mut self.texts.joined);
        let ignore = if ignore { "ignore " } else { "" };
        let text = format!(
            "update {ignore}{from} set {}{}{}",
            assigned.join(","),
            clause(" where ", &all_of(&conditions)),
            self.texts.ending
        );
        self.texts.last = self.with_subqueries(text);
    }

    /// The text of a DELETE whose rows were planned last; `of_several`: it names what it deletes
    /// from apart from FROM.
    pub fn keep_delete_text(
        &mut self,
        targets: &[(Arc<Table>, SlotId)],
        of_several: bool,
        ignore: bool,
    ) {
        if self.context.trace.is_none() {
            return;
        }
        let names = targets.iter().map(|(_, slot)| self.slot_name(*slot));
        let names: Vec<String> = names.collect();
        let (from, conditions) = std::mem::take(&mut self.texts.joined);
        let text = format!(
            "delete {}{}from {from}{}{}",
            if ignore { "ignore " } else { "" },
            match of_several {
                true => format!("{} ", names.join(",")),
                false => String::new(),
            },
            clause(" where ", &all_of(&conditions)),
            self.texts.ending
        );
        self.texts.last = self.with_subqueries(text);
    }

    /// The text of an INSERT or REPLACE, whose query, if it has one, was planned last.
    pub fn keep_insert_text(&mut self, insert: &Insert) {
        if self.context.trace.is_none() {
            return;
        }
        let table = &insert.table;
        let verb = match (&insert.duplicates, insert.ignore) {
            (OnDuplicate::Replace, _) => "replace",
            (_, true) => "insert ignore",
            (_, false) => "insert",
        };
        let columns = insert.columns.iter().map(|at| &*table.columns[*at].name);
        let columns: Vec<String> = columns.map(quote::name).collect();
        let source = match &insert.source {
            InsertSource::Query { .. } => std::mem::take(&mut self.texts.last),
            InsertSource::Values(rows) => {
                let value = |value: &Option<Expr>| match value {
                    Some(value) => self.text_of(value),
                    None => "default".to_owned(),
                };
                let row = |row: &Vec<Option<Expr>>| {
                    let values: Vec<String> = row.iter().map(value).collect();
                    format!("({})", values.join(","))
                };
                let rows: Vec<String> = rows.iter().map(row).collect();
                format!("values {}", rows.join(","))
            }
            InsertSource::Load(_) => return,
        };
        let updated = match &insert.duplicates {
            OnDuplicate::Update { target, .. } => self.assigned_text(target),
            OnDuplicate::Error | OnDuplicate::Replace => String::new(),
        };
        let text = format!(
            "{verb} into {}.{} ({}) {source}{}",
            quote::name(&table.schema),
            quote::name(&table.name),
            columns.join(","),
            clause(" on duplicate key update ", &updated),
        );
        self.texts.last = self.with_subqueries(text);
    }

    /// What a table's columns are set to.
    fn assigned_text(&self, target: &UpdateTarget) -> String {
        let assigned = target.assignments.iter().map(|assignment| {
            let definition = &target.table.columns[assignment.column];
            let column = Expr::column(
                target.slot,
                assignment.column,
                definition.ty.clone(),
                definition.nullable,
            );
            let value = match &assignment.value {
                Some(value) => self.text_of(value),
                None => "default".to_owned(),
            };
            format!("{} = {value}", self.text_of(&column))
        });
        let assigned: Vec<String> = assigned.collect();
        assigned.join(",")
    }

    fn key_text(&self, key: &SortKey) -> String {
        let direction = if key.descending { " desc" } else { "" };
        format!("{}{direction}", self.text_of(&key.expr))
    }

    fn slot_name(&self, slot: SlotId) -> String {
        quote::name(&self.slots[slot.0 as usize].name)
    }

    /// Puts subqueries where their numbers stand.
    fn with_subqueries(&self, mut text: String) -> String {
        let mut known: Vec<(&usize, &String)> = self.texts.subqueries.iter().collect();
        // The longest numbers first: #12 begins with #1.
        known.sort_by_key(|(number, _)| std::cmp::Reverse(**number));
        for (number, subquery) in known {
            let place = format!("select #{}", number + 2);
            if !subquery.is_empty() && text.contains(&place) {
                text = text.replace(&place, subquery);
            }
        }
        text
    }
}

/// A block's clauses, but for FROM and WHERE.
#[derive(Default)]
pub struct BlockText {
    number: u32,
    distinct: bool,
    columns: Vec<String>,
    keys: Vec<String>,
    having: Vec<String>,
    order: Vec<String>,
    limit: String,
}

impl BlockText {
    /// What a block says, before it is taken apart; empty where nobody wants to know.
    pub fn of(
        binder: &Binder<'_>,
        block: &Block,
        columns: &[OutputColumn],
        order: &[SortKey],
        limit: Option<&Expr>,
        offset: Option<&Expr>,
    ) -> BlockText {
        if binder.context.trace.is_none() {
            return BlockText::default();
        }
        let column = |column: &OutputColumn| {
            let text = binder.text_of(&column.expr);
            format!("{text} AS {}", quote::name(&column.name))
        };
        let key = |key: &SortKey| binder.key_text(key);
        let bounds = offset.into_iter().chain(limit);
        let bounds: Vec<String> = bounds.map(|bound| binder.text_of(bound)).collect();
        let keys = block.group.as_ref().map_or(&[][..], |group| &group.keys);
        BlockText {
            number: block.number,
            distinct: block.distinct,
            columns: columns.iter().map(column).collect(),
            keys: keys.iter().map(|key| binder.text_of(key)).collect(),
            having: block.having.iter().map(|c| binder.text_of(c)).collect(),
            order: order.iter().map(key).collect(),
            limit: bounds.join(","),
        }
    }
}

/// A frame that isn't what goes without saying. Of RANGE distances only the values are known that
/// they lead to.
fn frame_text(binder: &Binder<'_>, frame: &WindowFrame) -> String {
    use FrameBound as Bound;
    let bound = |bound: &Bound| match bound {
        Bound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_string(),
        Bound::Preceding(distance) => format!("{} PRECEDING", binder.text_of(distance)),
        Bound::CurrentRow => "CURRENT ROW".to_string(),
        Bound::Following(distance) => format!("{} FOLLOWING", binder.text_of(distance)),
        Bound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_string(),
    };
    let is_default = !frame.rows
        && matches!(frame.start, Bound::UnboundedPreceding)
        && matches!(frame.end, Bound::CurrentRow | Bound::UnboundedFollowing);
    match is_default {
        true => String::new(),
        false => format!(
            "{} BETWEEN {} AND {}",
            if frame.rows { "ROWS" } else { "RANGE" },
            bound(&frame.start),
            bound(&frame.end)
        ),
    }
}

/// A clause with its words, or nothing.
fn clause(words: &str, what: &str) -> String {
    match what.is_empty() {
        true => String::new(),
        false => format!("{words}{what}"),
    }
}

fn all_of(conditions: &[String]) -> String {
    match conditions {
        [] => String::new(),
        [only] => only.clone(),
        all => format!("({})", all.join(" and ")),
    }
}
