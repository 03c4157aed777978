//! Runs plans.
//!
//! [`Exec`] is the state of one execution: the frame of current rows, the parameters, the session,
//! the view of storage. The parts, in the order a plan meets them:
//!
//! 1. [`statement`] takes a whole plan: runs a query into the reply, or a change into the
//!    transaction.
//! 2. [`operator`] turns each plan node into an operator that yields rows into the frame.
//!    Long scans hand rows out in batches (`batch`).
//! 3. [`eval`] computes expressions over the frame; [`subquery`] those that hold queries.
//! 4. [`porpoise_planner::key_range`] makes storage keys out of conditions;
//!    [`porpoise_catalog::index_entry`] knows what an index holds.
//! 5. [`write`] changes one row with all its indexes, [`foreign_keys`] what belongs to it in other
//!    tables. [`bulk_fill`] fills empty tables with very many rows, [`index_build`] new indexes.
//!    [`insert`] and [`change`] are INSERT, and UPDATE and DELETE: they take values from
//!    [`defaults`] and `auto_increment`, convert them ([`column_value`]) and check the row
//!    ([`row_check`]).

#![warn(missing_docs)]

mod auto_increment;
mod batch;
pub mod bulk_fill;
mod change;
pub mod column_value;
mod condition;
pub mod defaults;
pub mod eval;
pub mod foreign_keys;
pub mod handler;
pub mod index_build;
pub mod insert;
mod json_table;
mod key_map;
pub mod load;
mod operator;
mod output_file;
pub mod row_batches;
mod row_buffer;
pub mod row_check;
mod spill;
pub mod statement;
pub mod stored;
mod stored_statement;
mod subquery;
mod value_list;
pub mod virtual_table;
mod window;
pub mod write;

pub use batch::units_of_others;

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use porpoise_catalog::{Catalog, TableId};
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::{RandomSequence, SessionVars};
use porpoise_expr::{EvalContext, Expr};
use porpoise_mdl::process::EXECUTING;
use porpoise_mdl::{self as mdl, named_locks};
use porpoise_planner::foreign_keys::ForeignKeyGraph;
use porpoise_planner::key_range::KeyValues;
use porpoise_planner::plan::{Measure, Plan, SlotLayout, Subplan};
use porpoise_session::SessionTransaction;
use porpoise_session::active_roles;
use porpoise_session::check::Privileged;
use porpoise_session::server_files;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_storage::{Cursor, Direction, Snapshot, SpaceId, Uncommitted};
use porpoise_types::{DataType, DateTime, KeptColumns, KeyBuf, Value};

use crate::eval::Evaluate;
use bulk_fill::BulkFill;
use operator::BuiltSide;
use row_buffer::RowBuffer;
use subquery::SubqueryState;
use value_list::ValueLists;

/// The state of one execution of one statement.
pub struct Exec<'a> {
    /// The current row of every slot.
    pub frame: Frame,
    /// How the rows in the frame are encoded: by slot.
    pub layouts: &'a [SlotLayout],
    /// The statement's literals, or the values bound to its placeholders.
    pub parameters: &'a [Value],
    /// The session that executes: variables, warnings, user variables.
    pub session: &'a mut SessionState,
    /// What all sessions share.
    pub engine: &'a Shared,
    /// The definitions that the plan was bound to.
    pub catalog: &'a Catalog,
    /// What rows are read from and written to.
    pub view: View<'a>,
    /// What foreign keys ask; nothing with foreign_key_checks=0.
    pub foreign_keys: Option<Arc<ForeignKeyGraph>>,
    /// NOW(): when the statement began, in UTC microseconds since 1970.
    pub started_us: i64,
    /// Which row of the statement is being written, from 1: warnings and errors name it.
    pub row_number: u64,
    /// The transaction begins and ends with the statement, which is committed if it succeeds.
    pub is_whole_transaction: bool,
    /// The plans of the statement's subqueries, as `Plan::subplans`.
    subplans: &'a [Option<Subplan>],
    /// The tables that the statement uses itself, where it runs programs.
    own_tables: &'a [TableId],
    /// What is kept from row to row; most statements keep nothing.
    kept: Option<Box<Kept<'a>>>,
}

/// What the parts of an execution keep for later rows.
#[derive(Default)]
struct Kept<'a> {
    /// What is kept of each subquery, by `Subplan::number`; empty until one has run.
    subqueries: Vec<SubqueryState<'a>>,
    /// Rows of derived tables that are materialised once, by `Node::Derived::materialize`.
    materialized: HashMap<usize, Arc<RowBuffer>>,
    /// Hash tables that are made once, each with its `Node::HashJoin::kept`.
    hash_tables: Vec<(usize, BuiltSide)>,
    /// IN lists that were looked at.
    value_lists: ValueLists,
    /// Constants that were computed, by where in the plan they lie.
    constants: Vec<(usize, Value)>,
    /// The last round's rows of recursive tables, by `Node::Recursive::working`.
    working: HashMap<usize, Arc<RowBuffer>>,
    /// What the operators of a measured plan did, by `Node::Measured::number`.
    measures: Vec<Measure>,
    /// The states of RAND(seed), by call: each call of a statement has a sequence of its own.
    random: HashMap<usize, RandomSequence>,
    /// The table that is being filled.
    fill: Option<Box<BulkFill>>,
}

/// What an execution reads from, and writes to.
pub enum View<'a> {
    /// No table is read.
    None,
    /// An autocommit read.
    Snapshot(Snapshot),
    /// An autocommit read at READ UNCOMMITTED.
    Uncommitted(Uncommitted),
    /// Reads see the transaction's own changes; writes are possible.
    Transaction(&'a mut SessionTransaction),
}

impl View<'_> {
    /// Whether rows are read that others are changing: what an index tells of a row must be compared
    /// with the row.
    pub(crate) fn is_uncommitted(&self) -> bool {
        match self {
            View::Uncommitted(_) => true,
            View::Transaction(transaction) => transaction.reads_uncommitted(),
            View::None | View::Snapshot(_) => false,
        }
    }

    /// Whether whoever reads a row again finds it as it was.
    pub(crate) fn is_unchanging(&self) -> bool {
        match self {
            View::None | View::Snapshot(_) => true,
            View::Uncommitted(_) => false,
            View::Transaction(transaction) => {
                !transaction.reads_uncommitted() && !transaction.has_writes()
            }
        }
    }

    /// The same view, for a statement within the statement.
    pub(crate) fn reborrow(&mut self) -> View<'_> {
        match self {
            View::None => View::None,
            View::Snapshot(snapshot) => View::Snapshot(snapshot.clone()),
            View::Uncommitted(read) => View::Uncommitted(read.clone()),
            View::Transaction(transaction) => View::Transaction(transaction),
        }
    }
}

/// The current row of every slot.
#[derive(Default)]
pub struct Frame {
    /// The rows, by slot number.
    pub slots: Vec<Row>,
}

/// What a thread keeps of its last statement's rows for the next one.
const KEPT_SLOTS_MAX: usize = 16;
const KEPT_ROW_BYTES_MAX: usize = 4096;

thread_local! {
    static KEPT: Cell<Vec<Row>> = const { Cell::new(Vec::new()) };
}

impl Frame {
    /// A frame of empty rows; it takes the buffers that the thread's last frame left.
    pub fn with_slots(count: usize) -> Frame {
        let mut slots = KEPT.take();
        slots.resize_with(count, Row::default);
        Frame { slots }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if self.slots.is_empty() || self.slots.len() > KEPT_SLOTS_MAX {
            return;
        }
        for row in &mut self.slots {
            match row.bytes.capacity() > KEPT_ROW_BYTES_MAX || row.key.spilled() {
                true => *row = Row::default(),
                false => row.clear(),
            }
        }
        // Where the thread ends already, they are dropped.
        let _ = KEPT.try_with(|kept| kept.set(std::mem::take(&mut self.slots)));
    }
}

/// A slot's current row, encoded; its buffers are used again for the next one.
#[derive(Default)]
pub struct Row {
    /// The row in the encoding of its slot's layout; empty while there is no row.
    pub bytes: Vec<u8>,
    /// The storage key of a table's row that is locked: the primary key's bytes, or the hidden row
    /// number's.
    pub key: KeyBuf,
    /// All columns are NULL: the right side of an outer join without a match.
    pub null: bool,
}

impl Row {
    /// Makes the bytes the current row. The key stays as it is.
    pub fn set(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.null = false;
    }

    /// As [`set`](Self::set), without the columns that aren't kept.
    pub fn set_kept(&mut self, bytes: &[u8], layout: &SlotLayout, kept: &KeptColumns) {
        match layout.layout.copy_kept(bytes, kept, &mut self.bytes) {
            true => self.null = false,
            false => self.set(bytes),
        }
    }

    /// Sets the row's storage key.
    pub fn set_key(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// Makes it the row of an outer join without a match.
    pub fn set_null(&mut self) {
        self.clear();
        self.null = true;
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.key.clear();
        self.null = false;
    }
}

impl<'a> Exec<'a> {
    /// To run a plan, or to evaluate its expressions.
    pub fn of_plan(
        session: &'a mut SessionState,
        engine: &'a Shared,
        catalog: &'a Catalog,
        view: View<'a>,
        plan: Privileged<'a, Plan>,
        parameters: &'a [Value],
    ) -> Exec<'a> {
        let plan = plan.get();
        let mut exec = Exec::of_rows(session, engine, catalog, view, &plan.slots, parameters);
        exec.subplans = &plan.subplans;
        exec.own_tables = &plan.own_tables;
        exec
    }

    /// To evaluate expressions over rows that the caller has and puts into slots. Nothing of a plan
    /// can be run with it: [`statement::execute`] wants the plan as a [`Privileged`].
    pub fn of_rows(
        session: &'a mut SessionState,
        engine: &'a Shared,
        catalog: &'a Catalog,
        view: View<'a>,
        layouts: &'a [SlotLayout],
        parameters: &'a [Value],
    ) -> Exec<'a> {
        let started_us = session.statement.started_us;
        Exec {
            frame: Frame::with_slots(layouts.len()),
            layouts,
            parameters,
            session,
            engine,
            catalog,
            view,
            foreign_keys: None,
            started_us,
            row_number: 0,
            is_whole_transaction: false,
            subplans: &[],
            own_tables: &[],
            kept: None,
        }
    }

    /// To evaluate an expression over a program's variables alone.
    #[inline]
    pub fn of_values(
        session: &'a mut SessionState,
        engine: &'a Shared,
        catalog: &'a Catalog,
        values: &'a [Value],
    ) -> Exec<'a> {
        let started_us = session.statement.started_us;
        Exec {
            frame: Frame::default(),
            layouts: &[],
            parameters: values,
            session,
            engine,
            catalog,
            view: View::None,
            foreign_keys: None,
            started_us,
            row_number: 0,
            is_whole_transaction: false,
            subplans: &[],
            own_tables: &[],
            kept: None,
        }
    }

    fn kept(&mut self) -> &mut Kept<'a> {
        self.kept.get_or_insert_default()
    }

    /// What the operators of a measured plan did, by `Node::Measured::number`.
    pub fn take_measures(&mut self) -> Vec<Measure> {
        std::mem::take(&mut self.kept().measures)
    }

    /// An expression's text in a message, with the statement's literals and its columns' names.
    pub fn describe(&self, expr: &porpoise_expr::Expr) -> String {
        let mut text = String::new();
        expr.write_sql(self, &mut text);
        text
    }

    /// The transaction, for statements that write or lock.
    pub fn transaction(&mut self) -> Result<&mut SessionTransaction> {
        match &mut self.view {
            View::Transaction(transaction) => Ok(transaction),
            _ => Err(Error::read_only_transaction()),
        }
    }

    /// Charges the session for what the transaction has written and locked.
    ///
    /// # Errors
    /// 1037, 4081 and 4082 beyond a limit.
    #[inline]
    pub fn charge_changes(&mut self) -> Result<()> {
        match &mut self.view {
            View::Transaction(transaction) => transaction.charge(&self.session.vars.memory),
            _ => Ok(()),
        }
    }

    /// Rows of a space between bounds. `latest` reads what is committed now, for locking reads.
    pub(crate) fn cursor(
        &self,
        space: SpaceId,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        direction: Direction,
        latest: bool,
    ) -> Result<Cursor> {
        let mut cursor = match &self.view {
            View::None => return Err(Error::engine_error("no view of storage")),
            View::Snapshot(snapshot) => snapshot.range(space, (low, high), direction)?,
            View::Uncommitted(newest) => newest.range(space, (low, high), direction)?,
            View::Transaction(transaction) if latest => {
                transaction.latest_range(space, (low, high), direction)?
            }
            View::Transaction(transaction) => transaction.range(space, (low, high), direction)?,
        };
        let threads = self.session.vars.innodb_parallel_read_threads;
        cursor.set_threads_ahead(threads.saturating_sub(1) as usize);
        Ok(cursor)
    }

    /// Reads one value where it lies.
    pub fn read<R>(
        view: &View<'_>,
        space: SpaceId,
        key: &[u8],
        latest: bool,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        Ok(match view {
            View::None => return Err(Error::engine_error("no view of storage")),
            View::Snapshot(snapshot) => snapshot.get(space, key, read)?,
            View::Uncommitted(newest) => newest.get(space, key, read)?,
            View::Transaction(transaction) if latest => transaction.latest_get(space, key, read)?,
            View::Transaction(transaction) => transaction.get(space, key, read)?,
        })
    }

    /// Gives one column of the slot's row another value, of the column's type; all others keep
    /// their bytes.
    pub(crate) fn set_column(&mut self, slot: porpoise_expr::SlotId, column: usize, value: &Value) {
        let layout = &self.layouts[slot.0 as usize];
        debug_assert!(layout.map.is_none(), "rows that change are whole");
        let row = &mut self.frame.slots[slot.0 as usize].bytes;
        match (value, &layout.types[column]) {
            (Value::DateTime(local), DataType::Timestamp { .. }) => {
                let utc = self.session.to_utc(*local).unwrap_or_default();
                layout.layout.set(row, column, &Value::DateTime(utc));
            }
            _ => layout.layout.set(row, column, value),
        }
    }

    /// Encodes values as the slot's row.
    pub(crate) fn fill(&mut self, slot: porpoise_expr::SlotId, values: &[Value]) -> Result<()> {
        let slot = slot.0 as usize;
        let row = &mut self.frame.slots[slot];
        row.bytes.clear();
        row.null = false;
        let layout = &self.layouts[slot];
        let stamped = values.iter().zip(&layout.types).any(|(value, ty)| {
            matches!(
                (value, ty),
                (Value::DateTime(_), DataType::Timestamp { .. })
            )
        });
        if !stamped {
            layout.layout.encode(values, &mut row.bytes);
            return Ok(());
        }
        // TIMESTAMPs lie in UTC.
        let mut values = values.to_vec();
        for (value, ty) in values.iter_mut().zip(&layout.types) {
            if let (Value::DateTime(local), DataType::Timestamp { .. }) = (&*value, ty) {
                *value = Value::DateTime(self.session.to_utc(*local).unwrap_or_default());
            }
        }
        layout.layout.encode(&values, &mut row.bytes);
        Ok(())
    }
}

impl EvalContext for Exec<'_> {
    #[inline]
    fn vars(&self) -> &SessionVars {
        &self.session.vars
    }

    #[inline]
    fn vars_mut(&mut self) -> &mut SessionVars {
        &mut self.session.vars
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<Value> {
        expr.eval(self)
    }

    fn started_us(&self) -> i64 {
        self.started_us
    }

    fn seeded_random(&mut self, seed: u64, call: usize) -> f64 {
        let sequences = &mut self.kept().random;
        let sequence = sequences.entry(call);
        sequence
            .or_insert_with(|| RandomSequence::of_seed(seed))
            .next()
    }

    fn current_user(&self) -> String {
        match &self.session.account {
            Some(account) => format!("{}@{}", account.user, account.host),
            None => format!("{}@{}", self.session.user, self.session.host),
        }
    }

    fn current_role(&self) -> String {
        active_roles::current(self.session)
    }

    fn before_waiting(&self, state: &'static str) {
        let locks = &self.engine.locks;
        if let Some(control) = locks.sessions.find(self.session.connection_id) {
            control.set_state(state);
        }
        locks.before_waiting();
    }

    fn after_waiting(&self) {
        let sessions = &self.engine.locks.sessions;
        if let Some(control) = sessions.find(self.session.connection_id) {
            control.set_state(EXECUTING);
        }
    }

    fn server_file(&self, path: &[u8], most: u64) -> Option<Vec<u8>> {
        server_files::read(self.session, self.engine, path, most)
    }

    fn get_lock(&self, name: &str, timeout: Option<Duration>) -> Result<bool> {
        let (locks, id) = (&self.engine.locks, self.session.connection_id);
        let got = locks.named.get(
            &named_locks::name_key(name)?,
            id,
            timeout,
            || self.before_waiting("User lock"),
            || mdl::closes_cycle(locks, id),
            || self.check_interrupt(),
        );
        self.after_waiting();
        got
    }

    fn lock_owner(&self, name: &str) -> Result<Option<u64>> {
        Ok(self.engine.locks.named.owner(&named_locks::name_key(name)?))
    }

    fn release_lock(&self, name: &str) -> Result<Option<bool>> {
        let (locks, id) = (&self.engine.locks, self.session.connection_id);
        Ok(locks.named.release(&named_locks::name_key(name)?, id))
    }

    fn release_all_locks(&self) -> u64 {
        let (locks, id) = (&self.engine.locks, self.session.connection_id);
        locks.named.release_all(id)
    }
}

impl KeyValues for Exec<'_> {
    #[inline]
    fn value(&mut self, expr: &Expr) -> Result<Value> {
        expr.eval(self)
    }

    #[inline]
    fn to_utc(&self, local: DateTime) -> Option<DateTime> {
        self.session.to_utc(local)
    }
}

impl porpoise_expr::ColumnNames for Exec<'_> {
    fn write_column(&self, slot: porpoise_expr::SlotId, column: usize, out: &mut String) {
        let Some(layout) = self.layouts.get(slot.0 as usize) else {
            return;
        };
        let name = layout
            .table
            .as_ref()
            .and_then(|table| Some((&table.schema, &table.columns.get(column)?.name)));
        match name {
            Some((schema, name)) => {
                out.push_str(&format!("`{schema}`.`{}`.`{name}`", layout.name));
            }
            None => out.push_str(&format!("`{}`.`{column}`", layout.name)),
        }
    }

    fn parameter(&self, number: usize) -> Option<&Value> {
        self.parameters.get(number)
    }
}
