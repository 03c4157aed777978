//! What changes rows: INSERT, REPLACE, LOAD DATA, UPDATE, DELETE.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::Table;
use porpoise_expr::function::StoredFunction;
use porpoise_expr::{Expr, SlotId};
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use porpoise_types::Charset;

use super::Node;
use crate::ProgramUses;
use crate::column_changes::ColumnChanges;
use crate::file_format::FileFormat;

/// INSERT, REPLACE or LOAD DATA.
#[derive(Debug)]
pub struct Insert {
    /// The table that gets the rows.
    pub table: Arc<Table>,
    /// The row being built: every column of the table; expressions in `values` and defaults read
    /// it.
    pub slot: SlotId,
    /// Positions of the columns that the source gives, in its order.
    pub columns: Vec<usize>,
    /// Where the rows come from.
    pub source: InsertSource,
    /// The source reads the table too: all its rows are computed before the first is written.
    pub reads_itself: bool,
    /// What happens to a row whose key another row has.
    pub duplicates: OnDuplicate,
    /// IGNORE: errors of a row become warnings.
    pub ignore: bool,
    /// WITH CHECK OPTION of the views through which the row is changed.
    pub checks: Vec<ViewCheck>,
    /// What its rows fire.
    pub triggers: Option<Arc<RowTriggers>>,
}

/// Where an INSERT gets its rows from.
#[derive(Debug)]
pub enum InsertSource {
    /// The lines of a file.
    Load(Load),
    /// `None` is DEFAULT.
    Values(Vec<Vec<Option<Expr>>>),
    /// The rows of a query.
    Query {
        /// Yields the rows.
        node: Node,
        /// A value each of the insert's `columns`, over the slots that `node` fills.
        output: Vec<Expr>,
    },
}

/// LOAD DATA: how a file's lines become rows.
#[derive(Debug)]
pub struct Load {
    /// How lines and fields are separated.
    pub format: FileFormat,
    /// The file's character set.
    pub charset: Charset,
    /// IGNORE n LINES.
    pub ignore_lines: u64,
    /// Where each field goes.
    pub targets: Vec<LoadTarget>,
    /// SET: positions in the statement's columns; `None` is DEFAULT.
    pub assignments: Vec<(usize, Option<Expr>)>,
}

/// Where LOAD DATA puts a field.
#[derive(Debug)]
pub enum LoadTarget {
    /// A position in the statement's columns.
    Column(usize),
    /// A user variable.
    Variable(CompactString),
}

/// What an INSERT does with a row whose unique key another row has.
#[derive(Debug)]
pub enum OnDuplicate {
    /// Error 1062, or with IGNORE a warning.
    Error,
    /// REPLACE: removes the other rows.
    Replace,
    /// Assignments over the existing row, which is put into the insert's slot, with the refused row
    /// in `new_slot` (VALUES(), row alias).
    Update {
        /// Where the refused row is put.
        new_slot: SlotId,
        /// The assignments, over both slots.
        target: Box<UpdateTarget>,
    },
}

/// `column = value`; `None` is DEFAULT.
#[derive(Debug)]
pub struct Assignment {
    /// Position in `table.columns`.
    pub column: usize,
    /// The new value; reads the row as the assignments before it left it.
    pub value: Option<Expr>,
}

/// WITH CHECK OPTION: a changed row must still be one of the view's (1369).
#[derive(Clone, Debug)]
pub struct ViewCheck {
    /// With its schema.
    pub view: String,
    /// Over the slots of the view's tables.
    pub conditions: Vec<Expr>,
}

/// UPDATE of one or several tables.
#[derive(Debug)]
pub struct Update {
    /// Yields the rows to change.
    pub node: Node,
    /// The tables that are changed, in the order of the statement.
    pub targets: Vec<UpdateTarget>,
    /// IGNORE: errors of a row become warnings.
    pub ignore: bool,
    /// LIMIT: how many rows are changed at most.
    pub limit: Option<Expr>,
    /// One table, no ORDER BY, and no changed row can be met again (the Halloween problem): rows
    /// may be changed while they are read, as the scan locks them. Otherwise target rows are
    /// collected first.
    pub in_place: bool,
}

/// A table whose rows get other values in some columns.
#[derive(Debug)]
pub struct UpdateTarget {
    /// The table that is changed.
    pub table: Arc<Table>,
    /// Where the row to change is, and where the new one is made.
    pub slot: SlotId,
    /// In the order of the statement.
    pub assignments: Vec<Assignment>,
    /// What follows from the assignments.
    pub changes: ColumnChanges,
    /// WITH CHECK OPTION of the views through which the row is changed.
    pub checks: Vec<ViewCheck>,
    /// What its rows fire.
    pub triggers: Option<Arc<RowTriggers>>,
}

impl UpdateTarget {
    /// Has changes of its rows fire triggers, which may assign to any column.
    pub fn fire(&mut self, triggers: Option<Arc<RowTriggers>>) {
        if let Some(found) = &triggers
            && found.has(TriggerTime::Before, TriggerEvent::Update)
        {
            let stamped = std::mem::take(&mut self.changes.stamped);
            self.changes = ColumnChanges::of_triggers(&self.table, stamped);
        }
        self.triggers = triggers;
    }

    /// Works out what follows from the assignments.
    pub fn new(
        table: Arc<Table>,
        slot: SlotId,
        assignments: Vec<Assignment>,
        checks: Vec<ViewCheck>,
    ) -> UpdateTarget {
        let assigned: Vec<usize> = assignments.iter().map(|a| a.column).collect();
        UpdateTarget {
            changes: ColumnChanges::of_assignments(&table, &assigned),
            table,
            slot,
            assignments,
            checks,
            triggers: None,
        }
    }
}

/// The triggers that changes of a table's rows fire, in their order.
#[derive(Clone, Debug, Default)]
pub struct RowTriggers {
    /// When each is fired, and the program.
    pub list: Vec<(TriggerTime, TriggerEvent, Arc<dyn StoredFunction>)>,
    /// What they use.
    pub uses: Arc<ProgramUses>,
}

impl RowTriggers {
    /// Those that a change fires.
    pub fn of(
        &self,
        time: TriggerTime,
        event: TriggerEvent,
    ) -> impl Iterator<Item = &Arc<dyn StoredFunction>> {
        let fired = self.list.iter();
        fired
            .filter(move |(when, what, _)| *when == time && *what == event)
            .map(|(.., program)| program)
    }

    /// Whether a change fires any.
    pub fn has(&self, time: TriggerTime, event: TriggerEvent) -> bool {
        self.of(time, event).next().is_some()
    }
}

/// DELETE from one or several tables.
#[derive(Debug)]
pub struct Delete {
    /// Yields the rows to delete.
    pub node: Node,
    /// The tables that lose rows, and the slots of the rows.
    pub targets: Vec<(Arc<Table>, SlotId)>,
    /// What the rows of each target fire.
    pub triggers: Vec<Option<Arc<RowTriggers>>>,
    /// IGNORE: errors of a row become warnings.
    pub ignore: bool,
    /// LIMIT: how many rows are deleted at most.
    pub limit: Option<Expr>,
    /// Rows may be deleted while they are read. Otherwise target rows are collected first.
    pub in_place: bool,
}
