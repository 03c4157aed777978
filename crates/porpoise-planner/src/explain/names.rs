//! Columns, expressions and conditions of a plan as EXPLAIN prints them.

use std::fmt::Write;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::Table;
use porpoise_expr::aggregate::{Aggregate, SortKey};
use porpoise_expr::{ColumnNames, Expr, SlotId};

use crate::plan::{Node, Plan};
use crate::trace::qualified;

/// Names of a plan's columns: `alias.column`, or in full and quoted.
pub(super) struct Names<'p> {
    pub(super) plan: &'p Plan,
    is_full: bool,
    tables: Vec<Option<Arc<Table>>>,
}

impl<'p> Names<'p> {
    pub(super) fn new(plan: &'p Plan) -> Names<'p> {
        let mut tables = vec![None; plan.slots.len()];
        plan.for_each_node(&mut |node| {
            if let Node::Scan(scan) = node {
                let of_entry = scan.index_condition.iter().map(|condition| condition.slot);
                for slot in of_entry.chain([scan.slot]) {
                    tables[slot.0 as usize] = Some(scan.table.clone());
                }
            }
        });
        Names {
            plan,
            is_full: false,
            tables,
        }
    }

    /// With schemas, and quoted.
    pub(super) fn in_full(plan: &'p Plan) -> Names<'p> {
        Names {
            is_full: true,
            ..Names::new(plan)
        }
    }

    pub(super) fn of(&self, slot: SlotId) -> &str {
        self.plan
            .slots
            .get(slot.0 as usize)
            .map_or("", |slot| &slot.name)
    }
}

impl ColumnNames for Names<'_> {
    fn write_column(&self, slot: SlotId, column: usize, out: &mut String) {
        let table = self.tables.get(slot.0 as usize).and_then(Option::as_ref);
        let name = match table {
            Some(table) => table.columns.get(column).map(|column| column.name.as_str()),
            None => self
                .plan
                .column_names
                .get(slot.0 as usize)
                .and_then(|names| names.get(column))
                .map(CompactString::as_str),
        };
        // What the grouping computed is known by what it computes.
        if name.is_none()
            && let Some(text) = self.computed(slot, column)
        {
            out.push_str(&text);
            return;
        }
        let name = name.unwrap_or("?");
        let _ = match (self.is_full, table) {
            (false, _) => write!(out, "{}.{name}", self.of(slot)),
            (true, table) => {
                let schema = table.map(|table| &*table.schema);
                out.write_str(&qualified(schema, self.of(slot), name))
            }
        };
    }
}

impl Names<'_> {
    fn computed(&self, slot: SlotId, column: usize) -> Option<String> {
        let mut found = None;
        self.plan.for_each_node(&mut |node| match node {
            Node::Group(group) if group.slot == slot => {
                found = Some(match group.keys.get(column) {
                    Some(key) => self.text(key),
                    None => group
                        .aggregates
                        .get(column - group.keys.len())
                        .map_or("grouping()".to_string(), |aggregate| {
                            self.aggregate(aggregate)
                        }),
                });
            }
            Node::Window(window) if window.slot == slot => {
                let call = window.functions.get(column);
                found = call.map(|call| format!("{}() OVER ", call.kind.name()));
            }
            Node::Project {
                slot: of, output, ..
            } if *of == slot => found = output.get(column).map(|expr| self.text(expr)),
            _ => {}
        });
        found
    }

    pub(super) fn text(&self, expr: &Expr) -> String {
        let mut out = String::new();
        expr.write_sql(self, &mut out);
        out
    }

    pub(super) fn aggregate(&self, aggregate: &Aggregate) -> String {
        let mut out = format!("{}(", aggregate.function.name.to_ascii_lowercase());
        if aggregate.distinct {
            out.push_str("distinct ");
        }
        if aggregate.arguments.is_empty() {
            out.push('0');
        }
        let joined = aggregate
            .arguments
            .len()
            .saturating_sub(aggregate.order.len());
        out.push_str(&self.list(&aggregate.arguments[..joined], ","));
        out.push(')');
        out
    }

    fn list(&self, exprs: &[Expr], between: &str) -> String {
        exprs
            .iter()
            .map(|expr| self.text(expr))
            .collect::<Vec<_>>()
            .join(between)
    }

    pub(super) fn conditions(&self, conditions: &[Expr]) -> String {
        match conditions {
            [only] => self.text(only),
            all => format!("({})", self.list(all, " and ")),
        }
    }

    pub(super) fn keys(&self, keys: &[SortKey]) -> String {
        let one = |key: &SortKey| {
            format!(
                "{}{}",
                self.text(&key.expr),
                if key.descending { " DESC" } else { "" }
            )
        };
        keys.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
