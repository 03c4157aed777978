//! Foreign keys, row by row: whether what a row refers to is there, and what becomes of the rows
//! that refer to it. Which tables to look at, the plan says ([`ForeignKeyGraph`]); without it, rows are
//! written as they are.
//!
//! A row that comes or changes locks the row it refers to, shared, to the end of the transaction. A
//! row that goes is locked exclusive before. So the two never pass each other:
//!
//! ```text
//! a: INSERT child (parent 1)   locks parent 1 shared
//! b: DELETE parent 1           waits for a, then sees the child, and refuses (1451) or cascades
//! ```
//!
//! All is read as it is committed now, never by the read view. As in InnoDB each row is checked at
//! once, not at the statement's end, and a key that has a NULL refers to nothing.

use std::ops::Bound;

use porpoise_catalog::create_text;
use porpoise_catalog::{ForeignKey, Index, IndexKind, ReferenceAction, Table};
use porpoise_core::error::{Error, Result};
use porpoise_core::quote;
use porpoise_expr::EvalContext;
use porpoise_planner::foreign_keys::Cascade;
use porpoise_planner::foreign_keys::{ChildEdge, ForeignKeyGraph, ParentEdge};
use porpoise_storage::{Direction, LockMode, SpaceId, Wait};
use porpoise_types::{KeyBuf, Value, convert, encode_key_part, successor_of_prefix};

use crate::Exec;
use crate::write::RowUpdate;
use crate::write::Written;
use crate::{column_value, row_check};
use porpoise_catalog::index_entry;

/// With so many levels of cascades a row's change is refused: InnoDB takes the level of the row
/// itself for one of the fifteen.
const CASCADE_DEPTH_MAX: usize = 15;

/// How a change came about.
#[derive(Default)]
struct Chain {
    depth: usize,
    /// Nodes whose rows the chain has given other keys: one that comes back to them is refused.
    updated: Vec<usize>,
}

impl Exec<'_> {
    /// Inserts a row, which must refer to rows that are there.
    pub fn insert_related(&mut self, table: &Table, key: &[u8], row: &[u8]) -> Result<Written> {
        let written = self.insert_row(table, key, row)?;
        if let (Written::Done, Some(graph)) = (&written, self.foreign_keys.clone())
            && let Some(node) = graph.node(table)
        {
            self.check_parents(&graph, node, None, row)?;
        }
        Ok(written)
    }

    /// Replaces a row that is locked, with those that refer to it.
    pub fn update_related(&mut self, table: &Table, update: RowUpdate<'_>) -> Result<Written> {
        if let Some(graph) = self.foreign_keys.clone()
            && let Some(node) = graph.node(table)
        {
            return self.update_node(&graph, node, update, &mut Chain::default());
        }
        self.update_row(table, update)
    }

    /// Deletes a row that is locked, with those that refer to it.
    pub fn delete_related(&mut self, table: &Table, key: &[u8], row: &[u8]) -> Result<()> {
        if let Some(graph) = self.foreign_keys.clone()
            && let Some(node) = graph.node(table)
        {
            return self.delete_node(&graph, node, key, row, &mut Chain::default());
        }
        self.delete_row(table, key, row)
    }

    fn update_node(
        &mut self,
        graph: &ForeignKeyGraph,
        node: usize,
        update: RowUpdate<'_>,
        chain: &mut Chain,
    ) -> Result<Written> {
        let RowUpdate { old, new, .. } = update;
        let related = &graph.nodes[node];
        let table = &related.table;
        let touched: Vec<&ChildEdge> = related
            .children
            .iter()
            .filter(|edge| !same_columns(table, &edge.columns, old, new))
            .collect();
        chain.updated.push(node);
        for edge in &touched {
            let action = foreign_key(graph, edge).on_update;
            if action.refuses() || chain.updated.contains(&edge.child) {
                self.refuse_if_referred(graph, node, edge, old)?;
            }
        }
        let written = self.update_row(table, update)?;
        if written != Written::Done {
            chain.updated.pop();
            return Ok(written);
        }
        self.check_parents(graph, node, Some(old), new)?;
        for edge in &touched {
            let action = foreign_key(graph, edge).on_update;
            if !action.refuses() && !chain.updated.contains(&edge.child) {
                let values = match action {
                    ReferenceAction::Cascade => Some(self.local_values(table, &edge.columns, new)),
                    _ => None,
                };
                self.cascade_update(graph, node, edge, old, values, chain)?;
            }
        }
        chain.updated.pop();
        Ok(Written::Done)
    }

    fn delete_node(
        &mut self,
        graph: &ForeignKeyGraph,
        node: usize,
        key: &[u8],
        row: &[u8],
        chain: &mut Chain,
    ) -> Result<()> {
        let related = &graph.nodes[node];
        for edge in &related.children {
            if foreign_key(graph, edge).on_delete.refuses() {
                self.refuse_if_referred(graph, node, edge, row)?;
            }
        }
        self.delete_row(&related.table, key, row)?;
        for edge in &related.children {
            match foreign_key(graph, edge).on_delete {
                ReferenceAction::Cascade => self.cascade_delete(graph, node, edge, row, chain)?,
                ReferenceAction::SetNull => {
                    self.cascade_update(graph, node, edge, row, None, chain)?;
                }
                ReferenceAction::NoAction | ReferenceAction::Restrict => {}
            }
        }
        Ok(())
    }

    fn cascade_delete(
        &mut self,
        graph: &ForeignKeyGraph,
        node: usize,
        edge: &ChildEdge,
        parent_row: &[u8],
        chain: &mut Chain,
    ) -> Result<()> {
        let child = &graph.nodes[edge.child].table;
        let parent = &graph.nodes[node].table;
        let index = &child.indexes[edge.index];
        let Some(prefix) = key_over(parent, &edge.columns, parent_row, child, index) else {
            return Ok(());
        };
        for key in self.all_under(index, &prefix)? {
            if let Some(row) = self.lock_matching(child, index, &key, &prefix)? {
                self.go_down(chain)?;
                self.delete_node(graph, edge.child, &key, &row, chain)?;
                chain.depth -= 1;
            }
        }
        Ok(())
    }

    /// Gives the rows that refer to a row other values in the key's columns: the parent's new ones,
    /// or NULL.
    fn cascade_update(
        &mut self,
        graph: &ForeignKeyGraph,
        node: usize,
        edge: &ChildEdge,
        parent_row: &[u8],
        values: Option<Vec<Value>>,
        chain: &mut Chain,
    ) -> Result<()> {
        let related = &graph.nodes[edge.child];
        let child = &related.table;
        let parent = &graph.nodes[node].table;
        let index = &child.indexes[edge.index];
        let columns = &child.foreign_keys[edge.foreign_key].columns;
        let Some(Cascade { slot, changes }) = &related.cascade else {
            return Err(Error::engine_error("no place for a cascaded row"));
        };
        let slot = *slot;
        let Some(prefix) = key_over(parent, &edge.columns, parent_row, child, index) else {
            return Ok(());
        };
        for key in self.all_under(index, &prefix)? {
            let Some(old) = self.lock_matching(child, index, &key, &prefix)? else {
                continue;
            };
            self.frame.slots[slot.0 as usize].set(&old);
            for (position, &column) in columns.iter().enumerate() {
                let definition = &child.columns[column];
                let value = match &values {
                    None => Value::Null,
                    Some(values) => {
                        let from = &parent.columns[edge.columns[position]].ty;
                        column_value::store(self, definition, values[position].clone(), from)?
                    }
                };
                self.set_column(slot, column, &value);
            }
            let generated = changes.generated.iter().copied();
            row_check::compute_generated(self, child, slot, generated.clone())?;
            row_check::check_nulls(self, child, slot, columns.iter().copied().chain(generated))?;
            row_check::check_row(self, child, slot, changes.checks.iter().copied())?;
            let new = std::mem::take(&mut self.frame.slots[slot.0 as usize].bytes);
            if child.layout.is_same(&new, &old) {
                continue;
            }
            let update = RowUpdate {
                key: &key,
                old: &old,
                new: &new,
                changes,
            };
            self.go_down(chain)?;
            let written = self.update_node(graph, edge.child, update, chain)?;
            chain.depth -= 1;
            if let Written::Duplicate { index, .. } = written {
                let record = values_text(parent, &edge.columns, parent_row);
                let name = &child.indexes[index].name;
                return Err(Error::foreign_key_duplicate(
                    &parent.name,
                    record,
                    &child.name,
                    name,
                ));
            }
        }
        Ok(())
    }

    fn go_down(&self, chain: &mut Chain) -> Result<()> {
        self.check_interrupt()?;
        chain.depth += 1;
        if chain.depth >= CASCADE_DEPTH_MAX {
            return Err(Error::foreign_key_too_deep());
        }
        Ok(())
    }

    /// Error 1452 unless each key that is new in the row refers to a row that is there, which gets
    /// locked.
    fn check_parents(
        &mut self,
        graph: &ForeignKeyGraph,
        node: usize,
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<()> {
        let related = &graph.nodes[node];
        for edge in &related.parents {
            let columns = &related.table.foreign_keys[edge.foreign_key].columns;
            if old.is_some_and(|old| same_columns(&related.table, columns, old, new)) {
                continue;
            }
            self.check_parent(&related.table, edge, new, true)?;
        }
        Ok(())
    }

    /// Error 1452 unless the row that a key refers to is there. `lock` keeps it there.
    pub fn check_parent(
        &mut self,
        table: &Table,
        edge: &ParentEdge,
        row: &[u8],
        lock: bool,
    ) -> Result<()> {
        let key = &table.foreign_keys[edge.foreign_key];
        if key
            .columns
            .iter()
            .any(|&column| table.layout.is_null(row, column))
        {
            return Ok(());
        }
        let found = match &edge.parent {
            None => false,
            Some((parent, index)) => {
                let index = &parent.indexes[*index];
                match key_over(table, &key.columns, row, parent, index) {
                    Some(wanted) => self.find_parent(parent, index, &wanted, key, lock)?,
                    None => false,
                }
            }
        };
        if found {
            Ok(())
        } else {
            Err(Error::no_referenced_row(violated(table, key)))
        }
    }

    fn find_parent(
        &mut self,
        parent: &Table,
        index: &Index,
        wanted: &[u8],
        key: &ForeignKey,
        lock: bool,
    ) -> Result<bool> {
        let whole = index.is_unique() && index.parts.len() == key.columns.len();
        if whole && lock {
            // Also a row that another transaction is about to insert is waited for.
            self.lock_shared(index.space, wanted)?;
        }
        if whole && index.kind == IndexKind::Primary {
            return Ok(Exec::read(&self.view, parent.space, wanted, true, |_| ())?.is_some());
        }
        loop {
            let mut changed = false;
            let mut cursor = self.entries_under(index.space, wanted)?;
            while let Some((entry, value)) = cursor.next()? {
                self.check_interrupt()?;
                if !lock {
                    return Ok(true);
                }
                let primary_key = primary_key_of(index, entry, value);
                self.lock_shared(parent.space, &primary_key)?;
                if self
                    .matching(parent, index, &primary_key, wanted)?
                    .is_some()
                {
                    return Ok(true);
                }
                changed = true;
            }
            // What was found went away while its lock was waited for: another may have come.
            if !changed {
                return Ok(false);
            }
        }
    }

    /// Error 1451 if a row refers to this one.
    fn refuse_if_referred(
        &mut self,
        graph: &ForeignKeyGraph,
        node: usize,
        edge: &ChildEdge,
        row: &[u8],
    ) -> Result<()> {
        let child = &graph.nodes[edge.child].table;
        let index = &child.indexes[edge.index];
        let parent = &graph.nodes[node].table;
        let Some(prefix) = key_over(parent, &edge.columns, row, child, index) else {
            return Ok(());
        };
        let mut cursor = self.entries_under(index.space, &prefix)?;
        while let Some((entry, value)) = cursor.next()? {
            self.check_interrupt()?;
            let key = primary_key_of(index, entry, value);
            // Its delete may be on the way.
            self.lock_shared(child.space, &key)?;
            if self.matching(child, index, &key, &prefix)?.is_some() {
                let key = &child.foreign_keys[edge.foreign_key];
                return Err(Error::row_is_referenced(violated(child, key)));
            }
        }
        Ok(())
    }

    fn lock_shared(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        let wait = Wait::Timeout(self.session.lock_wait_timeout());
        self.transaction()?
            .lock(space, key, LockMode::Shared, wait)?;
        self.charge_changes()
    }

    fn entries_under(&self, space: SpaceId, prefix: &[u8]) -> Result<porpoise_storage::Cursor> {
        let mut end = KeyBuf::from_slice(prefix);
        let high = if successor_of_prefix(&mut end) {
            Bound::Excluded(end.as_slice())
        } else {
            Bound::Unbounded
        };
        self.cursor(
            space,
            Bound::Included(prefix),
            high,
            Direction::Forward,
            true,
        )
    }

    /// The keys of all rows whose index key begins with `prefix`. None of them is locked yet.
    fn all_under(&self, index: &Index, prefix: &[u8]) -> Result<Vec<KeyBuf>> {
        let mut cursor = self.entries_under(index.space, prefix)?;
        let mut keys = Vec::new();
        while let Some((entry, value)) = cursor.next()? {
            self.check_interrupt()?;
            keys.push(primary_key_of(index, entry, value));
        }
        Ok(keys)
    }

    /// The newest version of a row, if its index key still begins with `prefix`.
    fn matching(
        &self,
        table: &Table,
        index: &Index,
        key: &[u8],
        prefix: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let row = Exec::read(&self.view, table.space, key, true, <[u8]>::to_vec)?;
        Ok(row.filter(|row| {
            index_entry::parts_of(table, index, row)
                .parts
                .starts_with(prefix)
        }))
    }

    fn lock_matching(
        &mut self,
        table: &Table,
        index: &Index,
        key: &[u8],
        prefix: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let row = self.lock_and_read(table, key)?;
        Ok(row.filter(|row| {
            index_entry::parts_of(table, index, row)
                .parts
                .starts_with(prefix)
        }))
    }

    /// Columns of a stored row, as expressions see them.
    fn local_values(&self, table: &Table, columns: &[usize], row: &[u8]) -> Vec<Value> {
        columns
            .iter()
            .map(|&column| match table.layout.get(row, column) {
                Value::DateTime(utc)
                    if matches!(
                        table.columns[column].ty,
                        porpoise_types::DataType::Timestamp { .. }
                    ) =>
                {
                    Value::DateTime(self.session.from_utc(utc))
                }
                value => value,
            })
            .collect()
    }
}

fn foreign_key<'a>(graph: &'a ForeignKeyGraph, edge: &ChildEdge) -> &'a ForeignKey {
    &graph.nodes[edge.child].table.foreign_keys[edge.foreign_key]
}

fn same_columns(table: &Table, columns: &[usize], old: &[u8], new: &[u8]) -> bool {
    columns
        .iter()
        .all(|&column| table.layout.raw(old, column) == table.layout.raw(new, column))
}

/// The beginning of another table's index key that says what a row's columns say; `None` if one is
/// NULL.
fn key_over(
    table: &Table,
    columns: &[usize],
    row: &[u8],
    other: &Table,
    index: &Index,
) -> Option<KeyBuf> {
    let mut key = KeyBuf::new();
    for (&column, part) in columns.iter().zip(&index.parts) {
        let value = table.layout.get(row, column);
        if value.is_null() {
            return None;
        }
        let definition = &other.columns[part.column];
        encode_key_part(
            &value,
            &definition.ty,
            definition.nullable,
            part.descending,
            None,
            &mut key,
        );
    }
    Some(key)
}

fn primary_key_of(index: &Index, entry: &[u8], value: &[u8]) -> KeyBuf {
    match index.kind {
        IndexKind::Primary => KeyBuf::from_slice(entry),
        _ => KeyBuf::from_slice(index_entry::split(value).0),
    }
}

fn values_text(table: &Table, columns: &[usize], row: &[u8]) -> String {
    let texts: Vec<String> = columns
        .iter()
        .map(|&column| convert::to_text(&table.layout.get(row, column), &table.columns[column].ty))
        .collect();
    texts.join("-")
}

/// A key as errors 1451 and 1452 name it.
pub fn violated(table: &Table, key: &ForeignKey) -> String {
    format!(
        "{}.{}, {}",
        quote::name(&table.schema),
        quote::name(&table.name),
        create_text::foreign_key(table, key)
    )
}
