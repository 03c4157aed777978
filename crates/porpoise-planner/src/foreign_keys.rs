//! What foreign keys require of a statement that changes rows, computed once, when it is planned.
//!
//! [`ForeignKeyGraph`] is a graph of tables: those that the statement changes, those their rows
//! refer to, and those whose rows refer to them, transitively where a reference cascades. Each
//! change of a table (rows are inserted, deleted, or get other values in some columns) is followed
//! over the foreign keys it can touch, and no further: an UPDATE of columns that no key holds has
//! no graph, and neither has a table without foreign keys.
//!
//! ```text
//! DELETE FROM customer
//!
//! customer ◄─ orders.customer   ON DELETE CASCADE   a node: its rows are deleted too
//!               ◄─ line.order   RESTRICT            a node: its rows are looked for
//! ```
//!
//! The executor's side is [`porpoise_executor::foreign_keys`].

use std::sync::Arc;

use porpoise_catalog::Catalog;
use porpoise_catalog::ForeignKey;
use porpoise_catalog::ReferenceAction;
use porpoise_catalog::Table;
use porpoise_expr::SlotId;

use crate::column_changes::ColumnChanges;
use crate::plan::OnDuplicate;
use crate::plan::PlanKind;
use crate::plan::TableUse;
use crate::plan::UpdateTarget;

/// The tables that a statement's changes can reach over foreign keys.
#[derive(Debug)]
pub struct ForeignKeyGraph {
    /// Each table once, those that the statement changes first.
    pub nodes: Vec<RelatedTable>,
}

/// A table that the statement, or a cascade of it, changes or reads.
#[derive(Debug)]
pub struct RelatedTable {
    /// The table as it was when the plan was made.
    pub table: Arc<Table>,
    /// Inserted or changed rows must refer to rows that exist.
    pub parents: Vec<ParentEdge>,
    /// Deleted or changed rows may be referred to.
    pub children: Vec<ChildEdge>,
    /// How cascades change this table's rows, if one does.
    pub cascade: Option<Cascade>,
    is_written: bool,
}

/// What cascades make of a table's rows.
#[derive(Debug)]
pub struct Cascade {
    /// Where the changed rows are made.
    pub slot: SlotId,
    /// What follows from the columns of all foreign keys that cascade to the table.
    pub changes: ColumnChanges,
}

/// From a row to the row it refers to.
#[derive(Debug)]
pub struct ParentEdge {
    /// Position in the child's `foreign_keys`.
    pub foreign_key: usize,
    /// The table and its index that finds the row; `None` if there is none, so that nothing can be
    /// referred to.
    pub parent: Option<(Arc<Table>, usize)>,
}

/// From a row to those that refer to it.
#[derive(Debug)]
pub struct ChildEdge {
    /// The referring table's node.
    pub child: usize,
    /// Position in the child's `foreign_keys`.
    pub foreign_key: usize,
    /// The child's index that finds the rows.
    pub index: usize,
    /// Positions of the columns that are referred to.
    pub columns: Vec<usize>,
}

impl ForeignKeyGraph {
    /// The node of a table.
    pub fn node(&self, table: &Table) -> Option<usize> {
        self.nodes.iter().position(|node| node.table.id == table.id)
    }

    /// Whether a cascade can change rows of the table.
    pub fn cascades_to(&self, table: &Table) -> bool {
        self.nodes.iter().any(|node| {
            node.children.iter().any(|edge| {
                let child = &self.nodes[edge.child].table;
                let key = &child.foreign_keys[edge.foreign_key];
                child.id == table.id && !(key.on_delete.refuses() && key.on_update.refuses())
            })
        })
    }

    /// Every table of the graph, and how it is used.
    pub fn tables(&self) -> Vec<(Arc<Table>, TableUse)> {
        let mut tables: Vec<(Arc<Table>, TableUse)> = Vec::new();
        for node in &self.nodes {
            let how = if node.is_written {
                TableUse::Write
            } else {
                TableUse::Read
            };
            tables.push((Arc::clone(&node.table), how));
        }
        for edge in self.nodes.iter().flat_map(|node| &node.parents) {
            if let Some((parent, _)) = &edge.parent
                && tables.iter().all(|(known, _)| known.id != parent.id)
            {
                tables.push((Arc::clone(parent), TableUse::Read));
            }
        }
        tables.sort_by(|(a, _), (b, _)| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        tables
    }
}

/// What happens to a table's rows.
#[derive(Clone, Debug, Default)]
pub struct RowChange {
    /// Rows are inserted.
    pub inserts: bool,
    /// Rows are deleted.
    pub deletes: bool,
    /// Columns that get other values.
    pub columns: Vec<usize>,
}

/// Follows changes of tables over foreign keys. `slot` allocates a slot for rows that a cascade
/// changes. `None` where no foreign key is touched.
pub fn foreign_key_graph(
    catalog: &Catalog,
    changes: &[(Arc<Table>, RowChange)],
    slot: &mut dyn FnMut(&Arc<Table>) -> SlotId,
) -> Option<ForeignKeyGraph> {
    let touched = changes.iter().any(|(table, _)| {
        !table.temporary
            && (!table.foreign_keys.is_empty()
                || !catalog.children(&table.schema, &table.name).is_empty())
    });
    if !touched {
        return None;
    }
    let mut builder = GraphBuilder {
        catalog,
        nodes: Vec::new(),
    };
    for (table, change) in changes.iter().filter(|(table, _)| !table.temporary) {
        builder.visit(table, change, false);
    }
    let nodes: Vec<RelatedTable> = builder
        .nodes
        .iter()
        .map(|node| builder.finish(node, slot))
        .collect();
    let has_edges = |node: &RelatedTable| !node.parents.is_empty() || !node.children.is_empty();
    nodes
        .iter()
        .any(has_edges)
        .then_some(ForeignKeyGraph { nodes })
}

/// The changes that a statement makes itself.
pub fn changes_of(kind: &PlanKind) -> Vec<(Arc<Table>, RowChange)> {
    let assigned = |target: &UpdateTarget| {
        let assignments = target.assignments.iter();
        assignments.map(|assignment| assignment.column).collect()
    };
    match kind {
        PlanKind::Query(_) => Vec::new(),
        PlanKind::Insert(insert) => {
            let mut change = RowChange {
                inserts: true,
                ..RowChange::default()
            };
            match &insert.duplicates {
                OnDuplicate::Error => {}
                OnDuplicate::Replace => change.deletes = true,
                OnDuplicate::Update { target, .. } => change.columns = assigned(target),
            }
            vec![(Arc::clone(&insert.table), change)]
        }
        PlanKind::Update(update) => update
            .targets
            .iter()
            .map(|target| {
                let change = RowChange {
                    columns: assigned(target),
                    ..RowChange::default()
                };
                (Arc::clone(&target.table), change)
            })
            .collect(),
        PlanKind::Delete(delete) => delete
            .targets
            .iter()
            .map(|(table, _)| {
                let change = RowChange {
                    deletes: true,
                    ..RowChange::default()
                };
                (Arc::clone(table), change)
            })
            .collect(),
    }
}

struct GraphBuilder<'a> {
    catalog: &'a Catalog,
    nodes: Vec<NodeDraft>,
}

struct NodeDraft {
    table: Arc<Table>,
    inserts: bool,
    deletes: bool,
    /// By column: whether it may get another value.
    changed: Vec<bool>,
    /// Columns that cascades assign to.
    cascaded: Vec<usize>,
}

impl NodeDraft {
    /// Adds a change. Whether it was new.
    fn add(&mut self, change: &RowChange, by_cascade: bool) -> bool {
        let state = |draft: &NodeDraft| {
            let cascaded = draft.cascaded.len();
            (
                draft.inserts,
                draft.deletes,
                draft.changed.clone(),
                cascaded,
            )
        };
        let before = state(self);
        self.inserts |= change.inserts;
        self.deletes |= change.deletes;
        if !change.columns.is_empty() {
            let follows = match by_cascade {
                true => ColumnChanges::of_cascade(&self.table, &change.columns),
                false => ColumnChanges::of_assignments(&self.table, &change.columns),
            };
            for (column, changed) in self.changed.iter_mut().enumerate() {
                *changed |= follows.touches(&[column]);
            }
        }
        if by_cascade {
            for column in &change.columns {
                if !self.cascaded.contains(column) {
                    self.cascaded.push(*column);
                }
            }
        }
        before != state(self)
    }

    fn changes(&self, columns: &[usize]) -> bool {
        columns.iter().any(|&column| self.changed[column])
    }
}

/// Where a key's referred columns lie in the parent; `None` if one isn't there.
pub fn referenced_columns(key: &ForeignKey, parent: &Table) -> Option<Vec<usize>> {
    key.parent_columns
        .iter()
        .map(|column| parent.column_position(column))
        .collect()
}

fn refers_to(key: &ForeignKey, table: &Table) -> bool {
    key.parent_table == table.name && key.parent_schema == table.schema
}

impl GraphBuilder<'_> {
    fn visit(&mut self, table: &Arc<Table>, change: &RowChange, by_cascade: bool) {
        let at = match self.nodes.iter().position(|node| node.table.id == table.id) {
            Some(at) => at,
            None => {
                self.nodes.push(NodeDraft {
                    table: Arc::clone(table),
                    inserts: false,
                    deletes: false,
                    changed: vec![false; table.columns.len()],
                    cascaded: Vec::new(),
                });
                self.nodes.len() - 1
            }
        };
        let is_new = self.nodes[at].add(change, by_cascade);
        if !is_new {
            return;
        }
        for (child, position, columns) in self.referring(table) {
            let key = &child.foreign_keys[position];
            let node = &self.nodes[at];
            let actions = [
                node.deletes.then_some(key.on_delete),
                node.changes(&columns).then_some(key.on_update),
            ];
            for (action, is_delete) in actions.into_iter().zip([true, false]) {
                let Some(action) = action else { continue };
                let change = match action {
                    ReferenceAction::Cascade if is_delete => RowChange {
                        deletes: true,
                        ..RowChange::default()
                    },
                    ReferenceAction::Cascade | ReferenceAction::SetNull => RowChange {
                        columns: key.columns.clone(),
                        ..RowChange::default()
                    },
                    ReferenceAction::NoAction | ReferenceAction::Restrict => RowChange::default(),
                };
                self.visit(&child, &change, true);
            }
        }
    }

    /// The foreign keys that refer to a table: whose, which, and to what columns. A table that is
    /// being created may refer to itself and is not in the catalog yet.
    fn referring(&self, table: &Arc<Table>) -> Vec<(Arc<Table>, usize, Vec<usize>)> {
        let mut children = self.catalog.children(&table.schema, &table.name);
        children.retain(|child| child.id != table.id);
        children.push(Arc::clone(table));
        let mut found = Vec::new();
        for child in children {
            for (position, key) in child.foreign_keys.iter().enumerate() {
                if refers_to(key, table)
                    && let Some(columns) = referenced_columns(key, table)
                {
                    found.push((Arc::clone(&child), position, columns));
                }
            }
        }
        found
    }

    fn finish(
        &self,
        node: &NodeDraft,
        slot: &mut dyn FnMut(&Arc<Table>) -> SlotId,
    ) -> RelatedTable {
        let table = &node.table;
        let mut parents = Vec::new();
        for (foreign_key, key) in table.foreign_keys.iter().enumerate() {
            if !node.inserts && !node.changes(&key.columns) {
                continue;
            }
            let parent = if refers_to(key, table) {
                Some(Arc::clone(table))
            } else {
                self.catalog
                    .base_table(&key.parent_schema, &key.parent_table)
            };
            let parent = parent.and_then(|parent| {
                let index = parent.index_over(&referenced_columns(key, &parent)?)?;
                Some((parent, index))
            });
            parents.push(ParentEdge {
                foreign_key,
                parent,
            });
        }
        let mut children = Vec::new();
        for (child, foreign_key, columns) in self.referring(table) {
            if !node.deletes && !node.changes(&columns) {
                continue;
            }
            let position = self.nodes.iter().position(|node| node.table.id == child.id);
            let index = child.index_over(&child.foreign_keys[foreign_key].columns);
            if let (Some(child), Some(index)) = (position, index) {
                children.push(ChildEdge {
                    child,
                    foreign_key,
                    index,
                    columns,
                });
            }
        }
        RelatedTable {
            table: Arc::clone(table),
            parents,
            children,
            cascade: (!node.cascaded.is_empty()).then(|| Cascade {
                slot: slot(table),
                changes: ColumnChanges::of_cascade(table, &node.cascaded),
            }),
            is_written: node.inserts || node.deletes || node.changed.contains(&true),
        }
    }
}
