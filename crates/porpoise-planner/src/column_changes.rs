//! What follows from an assignment to some columns of a row, computed once, when the statement is
//! planned.
//!
//! A changed row is its old bytes with some columns replaced. What follows from no assigned column
//! keeps its bytes, and is neither decoded nor checked again:
//!
//! ```text
//! CREATE TABLE t (a INT, b INT AS (a + 1), c TEXT, d INT, CHECK (b > 0), CHECK (d > 0), KEY (b), KEY (c))
//! UPDATE t SET a = 1
//!
//!   generated   b           it reads a
//!   checks      b > 0       it reads b
//!   indexes     KEY (b)     it holds b
//! ```

use porpoise_catalog::{IndexKind, Table};
use porpoise_expr::{Expr, ExprKind};

/// What follows from assignments to some columns of a table. Columns, checks and indexes are
/// positions in the table's definition, in its order.
#[derive(Debug)]
pub struct ColumnChanges {
    /// By column: whether it may get another value.
    changed: Vec<bool>,
    /// Generated columns that read assigned ones, or generated ones of these.
    pub generated: Vec<usize>,
    /// ON UPDATE CURRENT_TIMESTAMP columns: they change if anything else does.
    pub stamped: Vec<usize>,
    /// Generated columns that read those.
    pub generated_of_stamped: Vec<usize>,
    /// Enforced CHECKs that read a column that may change.
    pub checks: Vec<usize>,
    /// Indexes, but for the primary key, whose entries may change.
    pub indexes: Vec<usize>,
    /// Whether the row may get another primary key.
    pub moves_rows: bool,
    /// The AUTO_INCREMENT column, if it is assigned.
    pub auto_increment: Option<usize>,
}

impl ColumnChanges {
    /// What follows when a statement assigns to these columns. ON UPDATE CURRENT_TIMESTAMP columns
    /// that it doesn't assign to are stamped (MySQL 8.4 manual, 13.2.5).
    pub fn of_assignments(table: &Table, assigned: &[usize]) -> ColumnChanges {
        let stamped = table.columns.iter().enumerate();
        let stamped = stamped
            .filter(|(column, definition)| definition.on_update_now && !assigned.contains(column))
            .map(|(column, _)| column);
        ColumnChanges::of(table, assigned, stamped.collect())
    }

    /// What follows where triggers may assign to any column beside those of the statement.
    pub fn of_triggers(table: &Table, stamped: Vec<usize>) -> ColumnChanges {
        let columns: Vec<usize> = (0..table.columns.len()).collect();
        ColumnChanges::of(table, &columns, stamped)
    }

    /// What follows when a foreign key's cascade assigns to these columns: it stamps none.
    pub fn of_cascade(table: &Table, assigned: &[usize]) -> ColumnChanges {
        ColumnChanges::of(table, assigned, Vec::new())
    }

    fn of(table: &Table, assigned: &[usize], stamped: Vec<usize>) -> ColumnChanges {
        let mut changed = vec![false; table.columns.len()];
        for &column in assigned {
            changed[column] = true;
        }
        let generated = add_generated(table, &mut changed);
        let mut generated_of_stamped = Vec::new();
        if !stamped.is_empty() {
            let mut by_stamp = vec![false; table.columns.len()];
            for &column in &stamped {
                by_stamp[column] = true;
                changed[column] = true;
            }
            generated_of_stamped = add_generated(table, &mut by_stamp);
            for &column in &generated_of_stamped {
                changed[column] = true;
            }
        }
        let checks = table.checks.iter().enumerate();
        let checks = checks.filter(|(_, check)| check.enforced && reads_any(&check.expr, &changed));
        let is_changed = |column: usize| changed[column];
        let moves_rows = table
            .primary_key()
            .is_some_and(|key| key.parts.iter().any(|part| is_changed(part.column)));
        let indexes = table.indexes.iter().enumerate().filter(|(_, index)| {
            let parts = index.parts.iter().map(|part| part.column);
            let mut held = parts.chain(index.entry_columns.iter().copied());
            index.kind != IndexKind::Primary && (moves_rows || held.any(is_changed))
        });
        ColumnChanges {
            generated,
            generated_of_stamped,
            stamped,
            checks: checks.map(|(check, _)| check).collect(),
            indexes: indexes.map(|(index, _)| index).collect(),
            moves_rows,
            auto_increment: table
                .auto_increment_column()
                .filter(|column| assigned.contains(column)),
            changed,
        }
    }

    /// Whether one of the columns may get another value.
    pub fn touches(&self, columns: &[usize]) -> bool {
        columns.iter().any(|&column| self.changed[column])
    }
}

/// Adds the generated columns that read changed ones, and gives them in the order in which they are
/// computed: a generated column reads no generated one that comes after it.
fn add_generated(table: &Table, changed: &mut [bool]) -> Vec<usize> {
    let mut found = Vec::new();
    for (column, definition) in table.columns.iter().enumerate() {
        if let Some(generated) = &definition.generated
            && (changed[column] || reads_any(&generated.expr, changed))
        {
            changed[column] = true;
            found.push(column);
        }
    }
    found
}

/// Whether an expression over the table's row reads one of the columns.
fn reads_any(expr: &Expr, columns: &[bool]) -> bool {
    expr.any(&mut |part| match part.kind {
        ExprKind::Column { column, .. } => columns.get(usize::from(column)) == Some(&true),
        _ => false,
    })
}
