//! From syntax tree to plan: names, types, access paths, join order.
//!
//! 1. [`bind`] resolves names against the catalog and makes typed expressions ([`typing`]) and
//!    bound queries ([`query`]).
//! 2. [`optimize`] turns the bound query into [`plan::Node`]s: ranges, join order, semi-joins, sort
//!    elimination.
//!    How many rows a condition lets pass is found by trying it on samples of tables ([`sample`]).
//! 3. [`foreign_keys`] finds what foreign keys ask of a change.
//! 4. [`explain`] prints what came out, [`trace`] what was considered.
//!
//! ```text
//! ast::Statement ─► bind ─► query::Query (join tree, conditions) ─► optimize ─► plan::Plan ─► explain
//! ```

#![warn(missing_docs)]

pub mod access;
mod bind;
pub mod column_changes;
pub mod explain;
pub mod file_format;
pub mod foreign_keys;
mod json_text;
pub mod key_range;
mod known;
mod optimize;
pub mod places;
pub mod plan;
mod query;
mod sample;
mod slot_set;
pub mod trace;

use std::ops::Bound;
use std::sync::Arc;

use porpoise_catalog::expression::Refusal;
use porpoise_catalog::program::RoutineLock;
use porpoise_catalog::{
    Catalog, Index, IndexKind, Table, TableSample, TemporaryTables, View, index_entry,
};
use porpoise_core::error::Result;
use porpoise_core::variables::SessionVars;
use porpoise_expr::Expr;
use porpoise_expr::function::StoredFunction;
use porpoise_sql::{ResolvedNames, ast};
use porpoise_storage::Direction;
use porpoise_types::{DataType, Value};

pub use bind::usable_name;

use crate::access::PlanError;
use crate::key_range::Bounds;
pub use crate::optimize::cost;
use crate::trace::Trace;

/// What a statement is planned against: definitions, the session's variables, what is known of its
/// parameters.
pub struct Context<'a> {
    /// The definitions that names are looked up in.
    pub catalog: &'a Catalog,
    /// The current schema, sql_mode, character sets and optimizer switches.
    pub session: &'a SessionVars,
    /// Tables of the session's own, by schema and name: they hide others.
    pub temporary_tables: &'a TemporaryTables,
    /// The types of the parameters' values, where they are known; a `?` of unknown type
    /// (`DataType::Null`) compares as what it meets.
    pub parameters: &'a [DataType],
    /// The values of the literals that were lifted out of the text; empty where the parameters are
    /// `?`s. A plan that depends on one says so in [`plan::Plan::fixed_parameters`].
    pub literals: &'a [Value],
    /// The statement's text: column names come from it.
    pub sql: &'a [u8],
    /// What is known of tables' contents.
    pub contents: &'a dyn TableContents,
    /// The variables of the program that the statement belongs to, if it belongs to one.
    pub variables: Option<&'a dyn Variables>,
    /// Finds stored functions and triggers; `None` where there can't be any.
    pub programs: Option<&'static FindPrograms>,
    /// Where the planner tells of its choices, if somebody wants to know.
    pub trace: Option<&'a Trace>,
}

/// The variables that a statement of a program may name. They are found before columns (MySQL 8.4
/// manual, 15.6.4.2).
pub trait Variables {
    /// The variable of that name.
    fn find(&self, name: &ast::ColumnRef) -> Option<Variable>;
}

/// Finds the programs that a statement runs.
#[derive(Debug)]
pub struct FindPrograms {
    /// A stored function by schema and name.
    pub function: fn(&Context<'_>, &str, &str) -> Result<Option<FunctionSignature>>,
    /// The triggers of a table that changes of these kinds fire; `None` where there are none.
    pub triggers:
        fn(&Context<'_>, &Arc<Table>, &[ast::TriggerEvent]) -> Result<Option<plan::RowTriggers>>,
}

/// What statements that call a stored function need to know of it.
#[derive(Clone, Debug)]
pub struct FunctionSignature {
    /// The function.
    pub function: Arc<dyn StoredFunction>,
    /// How many parameters it has.
    pub parameters: usize,
    /// What it returns.
    pub returns: DataType,
    /// What its statements use.
    pub uses: Arc<ProgramUses>,
}

/// The tables, views and routines that a program's statements use, those of the programs that it runs included: a
/// statement that runs the program locks them with its own.
#[derive(Clone, Debug, Default)]
pub struct ProgramUses {
    /// How each table is used.
    pub tables: Vec<(Arc<Table>, plan::TableUse)>,
    /// How each view is used.
    pub views: Vec<(Arc<View>, plan::TableUse)>,
    /// The routines among them, and the program itself if it is one.
    pub routines: Vec<RoutineLock>,
    /// It changes rows, or locks them.
    pub writes: bool,
}

impl ProgramUses {
    /// Adds what another program uses.
    pub fn extend(&mut self, other: &ProgramUses) {
        self.tables.extend(other.tables.iter().cloned());
        self.views.extend(other.views.iter().cloned());
        self.routines.extend(other.routines.iter().cloned());
        self.writes |= other.writes;
    }
}

/// A variable of a program.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its value's position among the parameters.
    pub number: usize,
    /// Its declared type.
    pub ty: DataType,
}

/// What the planner may know of the rows of tables. Any answer is right, good ones make good plans.
pub trait TableContents {
    /// About how many rows the table has.
    fn rows(&self, table: &Table) -> u64;

    /// Some of the table's rows.
    fn sample(&self, table: &Table) -> Option<Arc<TableSample>>;

    /// The columns of the row that has a key in a unique index. `None`: there is none.
    fn row_of_key(&self, table: &Table, index: &Index, key: &[u8]) -> Option<Vec<Value>>;

    /// How many entries an index has between bounds, of which no more than `most` are counted.
    /// `None` where they can't be read.
    fn entries(&self, table: &Table, index: &Index, bounds: &Bounds, most: usize) -> Option<usize>;
}

/// For planning without statistics: every table has a thousand rows.
pub struct UnknownContents;

impl TableContents for UnknownContents {
    fn rows(&self, _: &Table) -> u64 {
        1000
    }

    fn sample(&self, _: &Table) -> Option<Arc<TableSample>> {
        None
    }

    fn row_of_key(&self, _: &Table, _: &Index, _: &[u8]) -> Option<Vec<Value>> {
        None
    }

    fn entries(&self, _: &Table, _: &Index, _: &Bounds, _: usize) -> Option<usize> {
        None
    }
}

impl TableContents for porpoise_storage::Store {
    fn rows(&self, table: &Table) -> u64 {
        self.approximate_len(table.space)
    }

    fn sample(&self, table: &Table) -> Option<Arc<TableSample>> {
        sample::of_table(self, table)
    }

    fn row_of_key(&self, table: &Table, index: &Index, key: &[u8]) -> Option<Vec<Value>> {
        let columns = |row: &[u8]| {
            let columns = 0..table.columns.len();
            columns
                .map(|column| table.layout.get(row, column))
                .collect()
        };
        let snapshot = self.snapshot();
        if index.kind == IndexKind::Primary {
            return snapshot.get(table.space, key, columns).ok()?;
        }
        let of_row = |entry: &[u8]| index_entry::split(entry).0.to_vec();
        let primary_key = snapshot.get(index.space, key, of_row).ok()??;
        snapshot.get(table.space, &primary_key, columns).ok()?
    }

    fn entries(&self, table: &Table, index: &Index, bounds: &Bounds, most: usize) -> Option<usize> {
        let space = match index.kind {
            IndexKind::Primary => table.space,
            _ => index.space,
        };
        let high = bounds.high.as_ref();
        let high = high.map_or(Bound::Unbounded, |high| Bound::Excluded(high.as_slice()));
        let range = (Bound::Included(bounds.low.as_slice()), high);
        let snapshot = self.snapshot();
        let mut cursor = snapshot.range(space, range, Direction::Forward).ok()?;
        for count in 0..most {
            if cursor.next().ok()?.is_none() {
                return Some(count);
            }
        }
        Some(most)
    }
}

/// About how many different values the first `parts` parts of an index have: as they were counted
/// last, or by the table's sample. `None` where neither tells.
pub fn distinct_of_index(
    contents: &dyn TableContents,
    table: &Table,
    index: &Index,
    parts: usize,
) -> Option<f64> {
    let rows = contents.rows(table) as f64;
    let taken = std::cell::OnceCell::new();
    let sample = || taken.get_or_init(|| contents.sample(table)).as_deref();
    sample::distinct_of_index(table, index, parts, rows, sample)
}

/// Plans a SELECT, INSERT, REPLACE, UPDATE or DELETE.
///
/// The plan or the error can be used only after `porpoise_session::check` has compared what the
/// statement names with what its user may do.
pub fn plan(statement: &ast::Statement, context: &Context<'_>) -> Result<plan::Plan, PlanError> {
    bind::plan(statement, context)
}

/// Plans the query of CREATE VIEW: columns that it plainly shows need any privilege, not SELECT.
/// What the query's names mean comes with it.
pub fn plan_view(
    query: &ast::Query,
    context: &Context<'_>,
) -> Result<(plan::Plan, ResolvedNames), PlanError> {
    bind::view_definition(query, context)
}

/// Plans a program's query whose rows the program takes: a cursor's.
pub fn plan_cursor(query: &ast::Query, context: &Context<'_>) -> Result<plan::Plan, PlanError> {
    bind::cursor(query, context)
}

/// Binds an expression over one table's row, which is in slot 0: generated columns, defaults,
/// CHECKs. `clause` is the clause that error 1054 names.
pub fn bind_table_expression(
    expr: &ast::Expr,
    table: &Table,
    clause: &'static str,
    session: &SessionVars,
) -> Result<Expr, Refusal> {
    bind::table_expression(expr, table, clause, session)
}

/// Binds an expression that may hold uncorrelated subqueries but names no columns: SET, DO, LIMIT.
/// The plan's node is one empty row and its output the expressions.
pub fn plan_expressions(
    exprs: &[&ast::Expr],
    context: &Context<'_>,
) -> Result<plan::Plan, PlanError> {
    bind::expressions(exprs, context)
}

/// The name of a column that is an expression: its text; of a lone string, the string.
pub fn column_name(text: &[u8]) -> compact_str::CompactString {
    if matches!(text.first(), Some(b'\'' | b'"'))
        && let Ok(ast::Expr::Literal(ast::Literal::String(value))) =
            porpoise_sql::parse_expr(text, porpoise_sql::Modes::NONE)
    {
        return name_of_text(&String::from_utf8_lossy(&value));
    }
    name_of_text(String::from_utf8_lossy(text).trim())
}

/// A column's name where that is a text: as much of it as an alias may have (MySQL 8.4 manual, 11.2.1).
/// Clients have no room for more: PHP's refuses a column's definition of more than 4 KiB.
fn name_of_text(text: &str) -> compact_str::CompactString {
    const ALIAS_BYTES_MAX: usize = 256;
    text[..text.floor_char_boundary(ALIAS_BYTES_MAX)].into()
}
