//! What the names in a query stand for: noted while the query is bound, read when it is printed as
//! a view's definition.
//!
//! A view keeps the tables and columns that its query named when it was created, whatever the
//! current schema is later and whatever columns the tables get. The binder notes them here for each
//! place of the syntax tree, which has to stay where it is meanwhile.

use std::collections::HashMap;

use crate::ast::{ColumnRef, Expr, Ident, Join, ObjectName, SelectItem};

/// A column that `*` stands for, or the name of an item that is an expression.
#[derive(Clone, Debug)]
pub struct NamedItem {
    /// The column; `None` for an item that is printed as it is written.
    pub column: Option<ColumnRef>,
    /// What the result calls it.
    pub name: Ident,
}

/// The names of a query that has been bound.
#[derive(Debug, Default)]
pub struct ResolvedNames {
    columns: HashMap<usize, ColumnRef>,
    tables: HashMap<usize, ObjectName>,
    items: HashMap<usize, Vec<NamedItem>>,
    joins: HashMap<usize, Option<Expr>>,
}

fn place<T>(of: &T) -> usize {
    std::ptr::from_ref(of) as usize
}

impl ResolvedNames {
    /// Notes the column that a reference means.
    pub fn note_column(&mut self, written: &ColumnRef, meant: ColumnRef) {
        self.columns.insert(place(written), meant);
    }

    /// Notes the table or view that a name in FROM means.
    pub fn note_table(&mut self, written: &ObjectName, meant: ObjectName) {
        self.tables.insert(place(written), meant);
    }

    /// Notes what an item of a select list gives.
    pub fn note_item(&mut self, written: &SelectItem, gives: Vec<NamedItem>) {
        self.items.insert(place(written), gives);
    }

    /// Notes the condition that USING or NATURAL stands for, with full names; `None` where the sides
    /// have no column in common.
    pub fn note_join(&mut self, written: &Join, condition: Option<Expr>) {
        self.joins.insert(place(written), condition);
    }

    /// The tables and views that FROM names, each place of the text one.
    pub fn tables(&self) -> impl Iterator<Item = &ObjectName> {
        self.tables.values()
    }

    /// The condition that USING or NATURAL stands for, if it was noted.
    pub fn join(&self, written: &Join) -> Option<Option<&Expr>> {
        self.joins.get(&place(written)).map(Option::as_ref)
    }

    /// The column that a reference means.
    pub fn column<'a>(&'a self, written: &'a ColumnRef) -> &'a ColumnRef {
        self.columns.get(&place(written)).unwrap_or(written)
    }

    /// The table or view that a name in FROM means.
    pub fn table<'a>(&'a self, written: &'a ObjectName) -> &'a ObjectName {
        self.tables.get(&place(written)).unwrap_or(written)
    }

    /// What an item of a select list gives.
    pub fn item(&self, written: &SelectItem) -> Option<&[NamedItem]> {
        self.items.get(&place(written)).map(Vec::as_slice)
    }
}
