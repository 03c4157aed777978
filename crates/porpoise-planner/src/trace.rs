//! The optimizer trace: what the planner considered, and what it chose (MySQL 8.4 manual, 10.15).
//!
//! Each step is a JSON object of the array `steps`. Steps are made only where somebody wants them:
//! [`Binder::trace`] takes a closure. Costs are in reads of a row in key order
//! ([`crate::optimize::access`]), not in those that EXPLAIN prints.
//!
//! | step | tells |
//! | --- | --- |
//! | `transformation` | a derived table merged, a subquery that became a join, an outer join that is an inner one, a condition moved |
//! | `condition_processing` | the conditions of WHERE, when all that follows from them is known |
//! | `table_access` | the ways to a table's rows that were compared, with the tables read before it |
//! | `join_step` | the tables of an order, the next one, the ways to join it |
//! | `chosen_join_order` | the order |
//! | `rewritten_query` | a query as text, after all transformations |
//! | `plan` | the operators, as EXPLAIN FORMAT=TREE prints them |

use std::cell::{Cell, RefCell};

use compact_str::CompactString;
use porpoise_expr::{ColumnNames, Expr, SlotId};

use crate::bind::Binder;
use crate::json_text::{Item, Members};
use crate::slot_set::SlotSet;

/// What is to be traced; by default, a query's text alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceOptions {
    /// The steps without line breaks.
    pub is_one_line: bool,
    /// Orders of tables (`greedy_search`).
    pub search: bool,
    /// Ways to a table's rows (`range_optimizer`).
    pub access: bool,
    /// So many bytes of steps are kept.
    pub bytes_max: usize,
}

/// The steps of planning one statement.
pub struct Trace {
    options: TraceOptions,
    steps: RefCell<Vec<String>>,
    bytes: Cell<usize>,
    /// Of steps that were not kept.
    missing_bytes: Cell<usize>,
    is_unwanted: Cell<bool>,
    query: RefCell<String>,
}

impl Trace {
    /// An empty one.
    pub fn new(options: TraceOptions) -> Trace {
        Trace {
            options,
            steps: RefCell::default(),
            bytes: Cell::new(0),
            missing_bytes: Cell::new(0),
            is_unwanted: Cell::new(false),
            query: RefCell::default(),
        }
    }

    /// The statement reads traces: its own would take the place of what it wants to see.
    pub(crate) fn forget(&self) {
        self.is_unwanted.set(true);
    }

    /// Whether the trace is not to be kept.
    pub fn is_unwanted(&self) -> bool {
        self.is_unwanted.get()
    }

    /// How many bytes of steps there was no room for.
    pub fn missing_bytes(&self) -> usize {
        self.missing_bytes.get()
    }

    fn push(&self, step: Item) {
        /// A step's depth in the document.
        const DEPTH: usize = 2;
        let depth = (!self.options.is_one_line).then_some(DEPTH);
        let text = step.document(depth);
        let bytes = self.bytes.get() + text.len();
        if bytes > self.options.bytes_max {
            let missing = self.missing_bytes.get() + text.len();
            self.missing_bytes.set(missing);
            return;
        }
        self.bytes.set(bytes);
        self.steps.borrow_mut().push(text);
    }

    /// A query, rewritten; empty for another statement.
    pub fn query(&self) -> String {
        self.query.borrow().clone()
    }

    /// A query, rewritten.
    pub(crate) fn push_query(&self, query: String) {
        if !query.is_empty() {
            self.push(Item::Object(vec![(
                "rewritten_query",
                text(query.as_str()),
            )]));
        }
        self.query.replace(query);
    }

    /// The lines of the plan.
    pub(crate) fn push_plan(&self, lines: Vec<String>) {
        self.push(Item::Object(vec![("plan", texts(lines))]));
    }

    /// The document.
    pub fn text(&self) -> String {
        let steps = self.steps.borrow();
        match self.options.is_one_line {
            true => format!("{{\"steps\": [{}]}}", steps.join(", ")),
            false => format!("{{\n  \"steps\": [\n    {}\n  ]\n}}", steps.join(",\n    ")),
        }
    }
}

/// A step of one member.
fn step(name: &'static str, members: Members) -> Item {
    Item::Object(vec![(name, Item::Object(members))])
}

pub(crate) fn text(text: impl Into<String>) -> Item {
    Item::Text(text.into())
}

pub(crate) fn texts(all: impl IntoIterator<Item = String>) -> Item {
    Item::Array(all.into_iter().map(Item::Text).collect())
}

impl Binder<'_> {
    /// Notes a step, if traces are wanted.
    pub fn trace(&self, name: &'static str, members: impl FnOnce() -> Members) {
        if let Some(trace) = self.context.trace {
            trace.push(step(name, members()));
        }
    }

    /// Notes a step of the search for a join order.
    pub fn trace_search(&self, name: &'static str, members: impl FnOnce() -> Members) {
        if self.context.trace.is_some_and(|trace| trace.options.search) {
            self.trace(name, members);
        }
    }

    /// Whether the ways to tables' rows are traced.
    pub fn traces_access(&self) -> bool {
        self.context.trace.is_some_and(|trace| trace.options.access)
    }

    /// Notes what became of a part of the statement.
    pub fn trace_transformation(&self, from: &str, to: &str, what: impl FnOnce() -> String) {
        self.trace("transformation", || {
            vec![
                ("from", text(from)),
                ("to", text(to)),
                ("what", text(what())),
            ]
        });
    }

    /// The names of the tables whose rows are in some slots.
    pub fn names_of(&self, slots: &SlotSet) -> Vec<String> {
        let named = slots.iter().filter_map(|slot| {
            let name = &self.slots.get(slot.0 as usize)?.name;
            Some(name.to_string())
        });
        named.collect()
    }

    /// An expression as EXPLAIN would print it.
    pub fn text_of(&self, expr: &Expr) -> String {
        let mut out = String::new();
        expr.write_sql(&SlotNames { binder: self }, &mut out);
        out
    }
}

/// Names of the columns of slots that are being made.
struct SlotNames<'b, 'a> {
    binder: &'b Binder<'a>,
}

/// A column's name in full, as the rewritten statement and conditions in JSON have it; derived
/// tables have no schema.
pub(crate) fn qualified(schema: Option<&str>, table: &str, column: &str) -> String {
    let ident = |name: &str| porpoise_sql::ast::Ident::new(name);
    let (table, column) = (ident(table), ident(column));
    match schema {
        Some(schema) => format!("{}.{table}.{column}", ident(schema)),
        None => format!("{table}.{column}"),
    }
}

impl ColumnNames for SlotNames<'_, '_> {
    fn write_column(&self, slot: SlotId, column: usize, out: &mut String) {
        let Some(draft) = self.binder.slots.get(slot.0 as usize) else {
            return;
        };
        if let Some(text) = self.binder.texts.computed.get(&(slot, column)) {
            out.push_str(text);
            return;
        }
        let of_table = draft
            .table
            .as_ref()
            .and_then(|table| table.columns.get(column));
        let name = of_table.map(|column| &column.name);
        let name = name.or_else(|| draft.column_names.get(column));
        let schema = draft.table.as_ref().map(|table| &*table.schema);
        let name = name.map_or("?", CompactString::as_str);
        out.push_str(&qualified(schema, &draft.name, name));
    }
}
