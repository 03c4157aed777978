//! Binding: every name finds its column, every expression its type.
//!
//! A [`Binder`] walks the syntax tree once. It keeps a stack of [`scope::Scope`]s, one a query
//! block, the innermost last; gives every relation a slot; and leaves subqueries of expressions,
//! bound, in a list of its own (see [`super::query`]).
//!
//! - [`expr`]: expressions; [`scope`]: names;
//! - [`from`]: tables, joins, derived tables; [`view`]: views; [`common_table`]: WITH;
//!   [`json_table`]: JSON_TABLE;
//! - [`select`]: query blocks, set operations, ORDER BY, LIMIT; [`group`]: GROUP BY and aggregates;
//!   [`window`]: OVER;
//! - [`hints`]: optimizer hints;
//! - [`insert`]: INSERT, REPLACE, LOAD DATA; [`change`]: UPDATE, DELETE; [`change_target`]: the
//!   tables and views that these may write to.

mod change;
mod change_target;
mod common_table;
mod expr;
mod from;
mod group;
pub mod hints;
mod insert;
mod json_table;
mod scope;
mod select;
mod view;
mod window;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::expression::{Disallowed, Refusal};
use porpoise_catalog::program::RoutineLock;
use porpoise_catalog::{Catalog, ColumnDefault, Index, IndexKind, Table, TemporaryTables, View};
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::{ColumnKey, ResultColumn};
use porpoise_core::variables::{SessionVars, Switches};
use porpoise_expr::typing::collation::Coercibility;
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_sql::{ResolvedNames, ast, stack};
use porpoise_types::{Charset, DataType, RowLayout, Value};

use crate::access::{AccessList, Need, PlanError, RoutineUse};
use crate::file_format::FileFormat;
use crate::foreign_keys::{self, ForeignKeyGraph};
use crate::known::KnownRows;
use crate::optimize::{ExpectedLong, QueryTexts};
use crate::plan::{
    Destination, Node, OnDuplicate, OutputFile, Plan, PlanKind, Query as QueryPlan, RowTriggers,
    SlotLayout, Subplan, TableUse, Target, ViewCheck,
};
use crate::query::{IndexChoice, OutputColumn, Query, WithNode};
use crate::slot_set::SlotSet;
use crate::{Context, ProgramUses, UnknownContents, Variables, explain, optimize};
use change_target::ChangeTarget;
use hints::{Hints, TableOrder};
pub use select::usable_name;

use scope::{Columns, ComputedColumn, Relation, Scope};

/// The state of binding one statement; the optimizer goes on with it.
pub struct Binder<'a> {
    pub context: &'a Context<'a>,
    pub slots: Vec<SlotDraft>,
    /// Bound subqueries of expressions, by `Subplan::number`; taken when they are planned.
    pub subqueries: Vec<Option<Query>>,
    /// The numbers of those that became EXISTS.
    pub exists_forms: Vec<usize>,
    /// Those that are planned, by number.
    pub subplans: Vec<Option<Subplan>>,
    /// The outer slots that each planned subquery reads.
    pub subquery_slots: Vec<SlotSet>,
    /// Bound queries of common tables that are computed once.
    pub common_tables: Vec<Option<Query>>,
    /// Those that are planned: number, plan, materialisation, rows, outer slots.
    pub planned_common_tables: Vec<(usize, WithNode, usize, f64, SlotSet)>,
    /// SQL_CALC_FOUND_ROWS: no row may be left out early.
    pub calc_found_rows: bool,
    /// How often the query that is being planned is expected to run: for each row of the enclosing
    /// query, and of those around that.
    pub executions: f64,
    /// For how many rows the expressions that are being planned are evaluated in each execution.
    pub block_rows: f64,
    /// How many tables there are that are materialised or hashed once, and recursive tables.
    pub materializations: usize,
    pub recursive_tables: usize,
    /// How many operators the plans of common tables have that were copied to where they are named.
    copied_nodes: usize,
    scopes: Vec<Scope>,
    /// Every common table met so far, and which of them can be named here.
    definitions: Vec<common_table::Definition>,
    visible: Vec<usize>,
    aggregate_count: usize,
    tables: Vec<(Arc<Table>, TableUse)>,
    views: Vec<(Arc<View>, TableUse)>,
    routine_locks: Vec<RoutineLock>,
    table_names: Vec<(Arc<Table>, CompactString)>,
    accesses: AccessList,
    /// The privileges that tables in FROM need: SELECT except in UPDATE's and DELETE's own FROM.
    reads_need: Need,
    /// The next query block is a view's: the privileges on the columns it selects depend on how the
    /// view's own columns are used.
    defines_view: bool,
    fixed_parameters: Vec<usize>,
    locks_rows: bool,
    parameter_count: usize,
    cacheable: bool,
    /// See [`Plan::user_variables`].
    user_variables: Vec<(CompactString, DataType)>,
    /// The text that spans point into: the statement's, or a view's.
    sql: Cow<'a, [u8]>,
    /// Variables of the program that the statement belongs to; none within views.
    variables: Option<&'a dyn Variables>,
    /// The programs that it runs, and what they use.
    routines: Vec<RoutineUse>,
    program_uses: Vec<Arc<ProgramUses>>,
    /// Whether the program takes the rows.
    is_cursor: bool,
    /// Schema of unqualified names.
    schema: Option<CompactString>,
    /// ForeignKeyGraph of the query block bound last.
    last_relations: Vec<Relation>,
    /// Texts of the queries that are planned, where they are wanted.
    pub texts: QueryTexts,
    /// The statement's optimizer hints.
    pub hints: Hints,
    /// Rows that were looked up for the estimates.
    pub known_rows: KnownRows,
    /// The range optimizer's memory was too little for a query.
    pub exceeds_range_memory: Cell<bool>,
    /// Orders of tables that STRAIGHT_JOIN and JOIN_FIXED_ORDER ask for.
    pub fixed_orders: Vec<TableOrder>,
    /// The refused row inside ON DUPLICATE KEY UPDATE.
    inserted_slot: Option<(SlotId, ChangeTarget)>,
    /// WITH CHECK OPTION of the views met so far, with the slots of their tables.
    view_checks: Vec<(Vec<SlotId>, ViewCheck)>,
    /// What is being bound may be changed: a view is always merged.
    binds_targets: bool,
    /// UPDATE and DELETE: derived tables are computed first, so that they may read the target.
    keeps_derived: bool,
    /// The number of derived tables that enclose what is being bound, and the subqueries inside
    /// one, by number.
    derived_depth: usize,
    subqueries_in_derived: Vec<usize>,
    /// What names mean, where that is wanted: in a view's definition.
    names: Option<ResolvedNames>,
    /// How deep expressions and queries are nested, the deepest so far, and the limit.
    depth: u32,
    deepest: u32,
    depth_max: u32,
    /// To which depth the stack has room as it is, and the depth that was wanted beyond: a view or common
    /// table leads deeper than the statement nests.
    room: u32,
    wants_room: Option<u32>,
    /// What is being bound is kept with a table, and what was met in it that may not be there.
    is_of_table: bool,
    disallowed: Option<Disallowed>,
    /// The name that a subquery's reference was refused for, which may be an alias that comes later.
    unresolved: Option<CompactString>,
}

/// A slot under construction.
pub struct SlotDraft {
    pub name: CompactString,
    /// A stored table's; others are laid out when their types are final.
    pub table: Option<Arc<Table>>,
    pub types: Vec<DataType>,
    pub column_names: Vec<CompactString>,
    /// Which columns the statement reads.
    pub used: Vec<bool>,
    pub covering: Option<usize>,
    /// Which of the table's indexes may serve to find rows.
    pub indexes: IndexChoice,
}

/// Statements that nest deeper than this, views included, are refused.
const DEPTH_MAX: u32 = 5_000;

/// How many tables one query may join, as in MySQL. Views and derived tables are merged into it, and
/// subqueries made joins, as long as there are no more.
pub const JOINED_TABLES_MAX: usize = 61;

/// A statement that reads more tables is refused: views and common tables that name each other twice
/// would make it twice as large with each.
const TABLES_MAX: usize = 8_192;

/// Expressions that are kept with a table are refused beyond this: they are evaluated on whatever
/// stack a statement has that writes to the table.
const STORED_DEPTH_MAX: u32 = 200;

impl<'a> Binder<'a> {
    fn new(context: &'a Context<'a>) -> Binder<'a> {
        Binder {
            context,
            slots: Vec::new(),
            subqueries: Vec::new(),
            exists_forms: Vec::new(),
            subplans: Vec::new(),
            subquery_slots: Vec::new(),
            common_tables: Vec::new(),
            planned_common_tables: Vec::new(),
            calc_found_rows: false,
            executions: 1.0,
            block_rows: 1.0,
            materializations: 0,
            recursive_tables: 0,
            copied_nodes: 0,
            scopes: Vec::new(),
            definitions: Vec::new(),
            visible: Vec::new(),
            aggregate_count: 0,
            tables: Vec::new(),
            views: Vec::new(),
            routine_locks: Vec::new(),
            table_names: Vec::new(),
            accesses: AccessList::default(),
            reads_need: Need::READ,
            defines_view: false,
            fixed_parameters: Vec::new(),
            locks_rows: false,
            parameter_count: 0,
            cacheable: true,
            user_variables: Vec::new(),
            sql: Cow::Borrowed(context.sql),
            variables: context.variables,
            routines: Vec::new(),
            program_uses: Vec::new(),
            is_cursor: false,
            schema: context.session.schema.clone(),
            last_relations: Vec::new(),
            texts: QueryTexts::default(),
            hints: Hints::default(),
            known_rows: KnownRows::default(),
            exceeds_range_memory: Cell::new(false),
            fixed_orders: Vec::new(),
            inserted_slot: None,
            view_checks: Vec::new(),
            binds_targets: false,
            keeps_derived: false,
            derived_depth: 0,
            subqueries_in_derived: Vec::new(),
            depth: 0,
            deepest: 0,
            names: None,
            depth_max: DEPTH_MAX,
            room: DEPTH_MAX,
            wants_room: None,
            is_of_table: false,
            disallowed: None,
            unresolved: None,
        }
    }

    /// Makes the columns of a table that an expression belongs to known in the innermost scope.
    fn show_table(&mut self, table: &Table) {
        let columns = &table.columns;
        let types = columns.iter().map(|column| column.ty.clone()).collect();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let computed = |column: &porpoise_catalog::Column| ComputedColumn {
            name: column.name.clone(),
            ty: column.ty.clone(),
            nullable: column.nullable,
            strength: Coercibility::Implicit,
            name_span: None,
        };
        let columns = columns.iter().map(computed).collect();
        let slot = self.new_slot(table.name.clone(), types, names);
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        scope.add(Relation {
            alias: table.name.clone(),
            schema: table.schema.clone(),
            columns: Columns::Computed { slot, columns },
            nullable: false,
            access: None,
        });
        scope.show_all();
    }

    /// Notes what an expression that is kept with a table may not hold. The error ends the binding;
    /// what is noted says why.
    fn refuse_in_table(&mut self, what: Disallowed) -> Error {
        self.disallowed.get_or_insert(what);
        Error::not_supported_yet("this expression of a table")
    }

    pub fn session(&self) -> &'a SessionVars {
        self.context.session
    }

    /// `optimizer_switch`.
    pub fn switches(&self) -> Switches {
        self.context.session.planner.switches
    }

    /// A new slot for rows that the statement itself makes.
    pub fn new_slot(
        &mut self,
        name: impl Into<CompactString>,
        types: Vec<DataType>,
        column_names: Vec<CompactString>,
    ) -> SlotId {
        let used = vec![true; types.len()];
        self.push_slot(SlotDraft {
            name: name.into(),
            table: None,
            types,
            column_names,
            used,
            covering: None,
            indexes: IndexChoice::default(),
        })
    }

    fn table_slot(&mut self, name: impl Into<CompactString>, table: &Arc<Table>) -> SlotId {
        let used = vec![false; table.columns.len()];
        self.push_slot(SlotDraft {
            name: name.into(),
            table: Some(table.clone()),
            types: Vec::new(),
            column_names: Vec::new(),
            used,
            covering: None,
            indexes: IndexChoice::default(),
        })
    }

    /// A slot for the entries of an index, in which the columns of the rows of `slot` are found.
    pub fn entry_slot(&mut self, slot: SlotId, table: &Arc<Table>, index: usize) -> SlotId {
        let entry = self.table_slot(self.slots[slot.0 as usize].name.clone(), table);
        self.slots[entry.0 as usize].covering = Some(index);
        entry
    }

    fn push_slot(&mut self, draft: SlotDraft) -> SlotId {
        self.slots.push(draft);
        SlotId(self.slots.len() as u16 - 1)
    }

    /// Ends the planning of a statement that was killed: asked for each expression that is bound,
    /// each query and each join that is planned.
    pub fn check_interrupt(&self) -> Result<()> {
        match self.context.session.interrupt.is_set() {
            true => Err(Error::query_interrupted()),
            false => Ok(()),
        }
    }

    /// Refuses a statement that reads too many tables (1116).
    fn check_tables(&self) -> Result<()> {
        match self.slots.len() + self.copied_nodes > TABLES_MAX {
            true => Err(Error::too_many_tables(TABLES_MAX)),
            false => Ok(()),
        }
    }

    /// The plan of a common table is about to be copied to a place that names it (1116 if the
    /// statement's plan grows too large by that).
    pub fn count_copy(&mut self, node: &Node) -> Result<()> {
        self.copied_nodes += node.len();
        self.check_interrupt()?;
        self.check_tables()
    }

    /// Runs `bind` one level deeper, or refuses to.
    fn nested<R>(&mut self, bind: impl FnOnce(&mut Binder<'a>) -> Result<R>) -> Result<R> {
        if self.depth >= self.depth_max {
            return Err(Error::statement_too_deep());
        }
        if self.depth >= self.room {
            self.wants_room = Some(self.room.saturating_mul(2).min(self.depth_max));
            return Err(Error::statement_too_deep());
        }
        self.check_interrupt()?;
        self.check_tables()?;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let result = bind(self);
        self.depth -= 1;
        result
    }

    /// Notes that the statement reads or writes a table.
    fn use_table(&mut self, table: &Arc<Table>, how: TableUse) {
        match self
            .tables
            .iter_mut()
            .find(|(known, _)| known.id == table.id)
        {
            Some((_, known)) if how == TableUse::Write => *known = TableUse::Write,
            Some(_) => {}
            None => self.tables.push((table.clone(), how)),
        }
    }

    /// Notes that the statement goes through a view.
    fn use_view(&mut self, view: &Arc<View>) {
        if self.views.iter().all(|(known, _)| known.id != view.id) {
            self.views.push((view.clone(), TableUse::Read));
        }
    }

    /// Notes what the programs use that the statement runs.
    fn use_programs(&mut self) {
        for uses in self.program_uses.clone() {
            for (table, usage) in &uses.tables {
                self.use_table(table, *usage);
            }
            for (view, _) in &uses.views {
                self.use_view(view);
            }
            for routine in &uses.routines {
                if self
                    .routine_locks
                    .iter()
                    .all(|known| known.id != routine.id)
                {
                    self.routine_locks.push(routine.clone());
                }
            }
        }
    }

    /// Notes that the views named so far are what the statement changes.
    fn change_views(&mut self) {
        for (_, usage) in &mut self.views {
            *usage = TableUse::Write;
        }
    }

    /// Makes the plan depend on the value of each parameter of an expression.
    fn fix_parameters(&mut self, expr: &Expr) {
        expr.any(&mut |part| {
            if let ExprKind::Parameter(number) = part.kind
                && number < self.context.literals.len()
                && !self.fixed_parameters.contains(&number)
            {
                self.fixed_parameters.push(number);
            }
            false
        });
    }

    /// The value of a literal, written or lifted out of the text.
    fn literal_value<'e>(&'e self, expr: &'e ast::Expr) -> Option<Value> {
        match expr {
            ast::Expr::Literal(ast::Literal::Int(v)) => {
                Some(i64::try_from(*v).map_or(Value::UInt(*v), Value::Int))
            }
            ast::Expr::Literal(ast::Literal::String(bytes)) => {
                std::str::from_utf8(bytes).ok().map(Value::from)
            }
            ast::Expr::Param(number) => self.context.literals.get(*number as usize).cloned(),
            _ => None,
        }
    }

    /// The foreign keys that a change touches. Rows that a cascade may change or delete under the
    /// statement's own scan are collected first.
    fn foreign_keys(&mut self, kind: &mut PlanKind) -> Option<ForeignKeyGraph> {
        let changes = foreign_keys::changes_of(kind);
        if changes.is_empty() {
            return None;
        }
        let catalog = self.context.catalog;
        let found = foreign_keys::foreign_key_graph(catalog, &changes, &mut |table| {
            let slot = self.table_slot(table.name.clone(), table);
            self.slots[slot.0 as usize].used.fill(true);
            slot
        })?;
        let meets_itself = changes.iter().any(|(table, _)| found.cascades_to(table));
        match kind {
            PlanKind::Update(update) => update.in_place &= !meets_itself,
            PlanKind::Delete(delete) => delete.in_place &= !meets_itself,
            PlanKind::Query(_) | PlanKind::Insert(_) => {}
        }
        Some(found)
    }

    fn finish(mut self, kind: PlanKind) -> Plan {
        let mut kind = kind;
        let foreign_keys = self.foreign_keys(&mut kind);
        let mut warnings = self.hints.take_warnings();
        if self.exceeds_range_memory.get() {
            let most = self.session().planner.range_bytes_max;
            warnings.push(Error::range_memory_exceeded(most).into_condition());
        }
        let mut foreign_key_tables = foreign_keys
            .as_ref()
            .map_or_else(Vec::new, ForeignKeyGraph::tables);
        foreign_key_tables
            .retain(|(table, _)| self.tables.iter().all(|(known, _)| known.id != table.id));
        let mut own_tables = Vec::new();
        if !self.program_uses.is_empty() {
            own_tables = self.tables.iter().map(|(table, _)| table.id).collect();
            self.use_programs();
        }
        let runs_writes = self.program_uses.iter().any(|uses| uses.writes);
        let mut slot_drafts = self.slots;
        let column_names = slot_drafts
            .iter_mut()
            .map(|draft| std::mem::take(&mut draft.column_names))
            .collect();
        let slots = slot_drafts.into_iter().map(SlotDraft::finish);
        let mut tables = self.tables;
        tables.sort_by(|(a, _), (b, _)| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        let mut views = self.views;
        views.sort_by(|(a, _), (b, _)| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        let slots: Vec<SlotLayout> = slots.collect();
        let depth = self.deepest + slots.len() as u32;
        Plan {
            expected_long: stack::reserve(depth, || ExpectedLong::of(&kind)),
            kind,
            depth,
            slots,
            parameter_count: self.parameter_count.max(self.context.parameters.len()),
            programs_version: self.context.catalog.programs_version,
            dependencies: tables
                .iter()
                .map(|(table, _)| (table.id, table.version))
                .collect(),
            tables,
            views,
            routine_locks: self.routine_locks,
            table_names: self.table_names,
            foreign_keys: foreign_keys.map(Arc::new),
            foreign_key_tables,
            subplans: self.subplans,
            cacheable: self.cacheable && !self.hints.sets_variables,
            user_variables: self.user_variables,
            warnings,
            locks_rows: self.locks_rows,
            fixed_parameters: self.fixed_parameters,
            accesses: self.accesses.finish(),
            routines: self.routines,
            runs_writes,
            own_tables,
            column_names,
        }
    }
}

impl SlotDraft {
    fn finish(self) -> SlotLayout {
        match (&self.table, self.covering) {
            (Some(table), None) => {
                let is_indexed = |column: usize| {
                    let mut parts = table.indexes.iter().flat_map(|index| &index.parts);
                    parts.any(|part| part.column == column)
                };
                let is_read =
                    |column| self.used.get(column).is_none_or(|used| *used) || is_indexed(column);
                SlotLayout {
                    table: self.table.clone(),
                    kept: table.layout.kept(is_read),
                    ..SlotLayout::of_rows(self.name, table)
                }
            }
            (Some(table), Some(index)) => {
                let index: &Index = &table.indexes[index];
                let mut map = vec![u16::MAX; table.columns.len()];
                for (position, column) in index.entry_columns.iter().enumerate() {
                    map[*column] = position as u16;
                }
                let types = index
                    .entry_columns
                    .iter()
                    .map(|column| table.columns[*column].ty.clone())
                    .collect();
                SlotLayout {
                    name: self.name,
                    table: self.table.clone(),
                    layout: index.entry_layout.clone(),
                    types,
                    map: Some(map),
                    kept: None,
                }
            }
            (None, _) => SlotLayout {
                name: self.name,
                table: None,
                layout: Arc::new(RowLayout::new(&self.types)),
                types: self.types,
                map: None,
                kept: None,
            },
        }
    }
}

/// Plans a SELECT, INSERT, REPLACE, UPDATE or DELETE.
pub fn plan(statement: &ast::Statement, context: &Context<'_>) -> Result<Plan, PlanError> {
    planned(context, &|binder| binder.statement(statement))
}

/// Plans the query of a view's definition.
pub fn view_definition(
    query: &ast::Query,
    context: &Context<'_>,
) -> Result<(Plan, ResolvedNames), PlanError> {
    let names = RefCell::default();
    let plan = planned(context, &|binder| {
        binder.defines_view = is_one_block(query);
        binder.hints = Hints::of_statement(query.hints.as_deref(), true);
        binder.names = Some(ResolvedNames::default());
        let bound = binder.top_query(query);
        names.replace(binder.names.take().unwrap_or_default());
        bound
    })?;
    Ok((plan, names.into_inner()))
}

/// Makes a plan of what `bind` binds; again with more stack, where views and common tables lead deeper
/// than the stack has room for.
fn planned(
    context: &Context<'_>,
    bind: &dyn Fn(&mut Binder<'_>) -> Result<PlanKind>,
) -> Result<Plan, PlanError> {
    planned_within(stack::levels_free(), context, bind)
}

fn planned_within(
    room: u32,
    context: &Context<'_>,
    bind: &dyn Fn(&mut Binder<'_>) -> Result<PlanKind>,
) -> Result<Plan, PlanError> {
    let mut binder = Binder::new(context);
    binder.room = room;
    let bound = bind(&mut binder);
    match binder.wants_room {
        Some(more) => stack::reserve(more, || planned_within(more, context, bind)),
        None => binder.finish_plan(bound),
    }
}

/// Whether a query is a block of its own, and no set operation.
fn is_one_block(query: &ast::Query) -> bool {
    matches!(query.body, ast::QueryBody::Select(_))
}

impl Binder<'_> {
    /// Makes a plan of what is bound; or an error, with what had been named by then.
    fn finish_plan(mut self, bound: Result<PlanKind>) -> Result<Plan, PlanError> {
        match bound {
            Ok(kind) => {
                let context = self.context;
                let text = std::mem::take(&mut self.texts.last);
                let plan = self.finish(kind);
                if let Some(schema) = plan.read_only_schema(context.catalog) {
                    return Err(PlanError {
                        error: Error::schema_read_only(schema),
                        accesses: plan.accesses.clone(),
                    });
                }
                if let Some(trace) = context.trace {
                    trace.push_query(text);
                    trace.push_plan(explain::operators(&plan));
                }
                Ok(plan)
            }
            Err(error) => Err(PlanError {
                error,
                accesses: self.accesses.finish(),
            }),
        }
    }

    fn statement(&mut self, statement: &ast::Statement) -> Result<PlanKind> {
        let mut kind = self.statement_alone(statement)?;
        self.add_triggers(&mut kind)?;
        Ok(kind)
    }

    /// Has a change fire the triggers of the tables that it changes.
    fn add_triggers(&mut self, kind: &mut PlanKind) -> Result<()> {
        use ast::TriggerEvent::{Delete, Insert, Update};
        match kind {
            PlanKind::Query(_) => {}
            PlanKind::Insert(insert) => {
                insert.triggers = match &mut insert.duplicates {
                    OnDuplicate::Error => self.triggers(&insert.table, &[Insert])?,
                    OnDuplicate::Replace => self.triggers(&insert.table, &[Insert, Delete])?,
                    OnDuplicate::Update { target, .. } => {
                        let triggers = self.triggers(&insert.table, &[Insert, Update])?;
                        target.fire(triggers.clone());
                        triggers
                    }
                };
            }
            PlanKind::Update(update) => {
                for target in &mut update.targets {
                    let triggers = self.triggers(&target.table, &[Update])?;
                    // A trigger may give the row a key under which it is met again.
                    update.in_place &= triggers.is_none();
                    target.fire(triggers);
                }
            }
            PlanKind::Delete(delete) => {
                for (table, _) in &delete.targets {
                    let triggers = self.triggers(table, &[Delete])?;
                    delete.triggers.push(triggers);
                }
            }
        }
        Ok(())
    }

    fn triggers(
        &mut self,
        table: &Arc<Table>,
        events: &[ast::TriggerEvent],
    ) -> Result<Option<Arc<RowTriggers>>> {
        let context = self.context;
        let Some(programs) = context.programs else {
            return Ok(None);
        };
        let found = (programs.triggers)(context, table, events)?;
        Ok(found.map(|found| {
            self.program_uses.push(Arc::clone(&found.uses));
            Arc::new(found)
        }))
    }

    fn statement_alone(&mut self, statement: &ast::Statement) -> Result<PlanKind> {
        let is_query = matches!(statement, ast::Statement::Query(_));
        self.hints = Hints::of_statement(statement.hints(), is_query);
        Ok(match statement {
            ast::Statement::Query(query) => {
                let limited = with_select_limit(query, self.session());
                self.top_query(limited.as_ref().unwrap_or(query))?
            }
            ast::Statement::Insert(insert) => PlanKind::Insert(self.insert(insert)?),
            ast::Statement::LoadData(load) => PlanKind::Insert(self.load_data(load)?),
            ast::Statement::Update(update) => PlanKind::Update(self.update(update)?),
            ast::Statement::Delete(delete) => PlanKind::Delete(self.delete(delete)?),
            _ => return Err(Error::not_supported_yet("this statement in a plan")),
        })
    }

    fn top_query(&mut self, query: &ast::Query) -> Result<PlanKind> {
        let bound = self.outermost_query(query)?;
        let into = match self.is_cursor {
            true => Destination::Program,
            false => self.destination(query, bound.columns.len())?,
        };
        let calc_found_rows = counts_found_rows(&query.body);
        let columns = bound.columns.iter().map(result_column).collect();
        let name_spans = bound
            .columns
            .iter()
            .map(|column| column.name_span)
            .collect();
        self.calc_found_rows = calc_found_rows;
        let (node, output) = optimize::query(self, bound)?;
        Ok(PlanKind::Query(QueryPlan {
            node,
            output,
            columns,
            name_spans,
            calc_found_rows,
            into,
            max_execution_time_ms: self.hints.max_execution_time_ms,
        }))
    }

    /// `INTO OUTFILE` and `INTO DUMPFILE`.
    fn output_file(&self, into: &ast::SelectInto) -> Result<Option<Box<OutputFile>>> {
        let file = match into {
            ast::SelectInto::Variables(_) => return Ok(None),
            ast::SelectInto::DumpFile(path) => OutputFile {
                path: path.clone(),
                format: None,
                charset: None,
            },
            ast::SelectInto::OutFile {
                path,
                charset,
                format,
            } => {
                let by_name = |name: &ast::Ident| {
                    Charset::by_name(name)
                        .ok_or_else(|| Error::unknown_character_set(name.as_str()))
                };
                let charset = charset.as_ref().map(by_name).transpose()?;
                OutputFile {
                    path: path.clone(),
                    format: Some(FileFormat::of(format)?),
                    charset: charset.filter(|charset| *charset != Charset::Binary),
                }
            }
        };
        Ok(Some(Box::new(file)))
    }

    /// The expressions of SET, DO and CALL: an empty row's columns.
    fn expressions(&mut self, exprs: &[&ast::Expr]) -> Result<PlanKind> {
        self.scopes.push(Scope::new("field list"));
        let mut columns = Vec::new();
        for expr in exprs {
            let expr = self.expr(expr)?;
            columns.push(OutputColumn {
                expr,
                name: CompactString::default(),
                name_span: None,
                origin: None,
            });
        }
        let results = columns.iter().map(result_column).collect();
        let mut output: Vec<Expr> = columns.into_iter().map(|column| column.expr).collect();
        optimize::plan_subqueries_of(self, &mut output)?;
        Ok(PlanKind::Query(QueryPlan {
            node: crate::plan::Node::One,
            output,
            columns: results,
            name_spans: Vec::new(),
            calc_found_rows: false,
            into: Destination::Program,
            max_execution_time_ms: None,
        }))
    }
}

/// Whether SQL_CALC_FOUND_ROWS is said where it counts: in the first SELECT.
fn counts_found_rows(body: &ast::QueryBody) -> bool {
    match body {
        ast::QueryBody::Select(select) => select.options.sql_calc_found_rows,
        ast::QueryBody::SetOperation(operation) => counts_found_rows(&operation.left),
        ast::QueryBody::Query(query) => counts_found_rows(&query.body),
        ast::QueryBody::Values(_) | ast::QueryBody::Table(_) => false,
    }
}

/// The query with `sql_select_limit`, if that bounds it.
fn with_select_limit(query: &ast::Query, session: &SessionVars) -> Option<ast::Query> {
    if session.sql_select_limit == u64::MAX || query.limit.is_some() {
        return None;
    }
    Some(ast::Query {
        limit: Some(ast::Limit {
            count: ast::Expr::Literal(ast::Literal::Int(session.sql_select_limit)),
            offset: None,
        }),
        ..query.clone()
    })
}

impl Binder<'_> {
    /// Where a query's rows go.
    fn destination(&self, query: &ast::Query, columns: usize) -> Result<Destination> {
        match &query.into {
            None => Ok(Destination::Client),
            Some(ast::SelectInto::Variables(targets)) => {
                if targets.len() != columns {
                    return Err(Error::wrong_value_count());
                }
                let targets = targets.iter().map(|target| self.target_of(target));
                Ok(Destination::Variables(targets.collect::<Result<_>>()?))
            }
            Some(into) => Ok(match self.output_file(into)? {
                Some(file) => Destination::File(file),
                None => Destination::Client,
            }),
        }
    }

    /// A variable that a value goes into.
    fn target_of(&self, target: &ast::IntoTarget) -> Result<Target> {
        match target {
            ast::IntoTarget::User(name) => Ok(Target::User(name.0.to_lowercase())),
            ast::IntoTarget::Local(name) => {
                let written = ast::ColumnRef {
                    schema: None,
                    table: None,
                    name: name.clone(),
                };
                let found = self.variables.and_then(|scope| scope.find(&written));
                let found = found.ok_or_else(|| Error::undeclared_variable(name.as_str()))?;
                Ok(Target::Local(found.number))
            }
        }
    }
}

/// Plans a query whose rows go to the program that it belongs to.
pub fn cursor(query: &ast::Query, context: &Context<'_>) -> Result<Plan, PlanError> {
    planned(context, &|binder| {
        binder.is_cursor = true;
        binder.hints = Hints::of_statement(query.hints.as_deref(), true);
        binder.top_query(query)
    })
}

/// The expressions of SET, DO and CALL.
pub fn expressions(exprs: &[&ast::Expr], context: &Context<'_>) -> Result<Plan, PlanError> {
    planned(context, &|binder| binder.expressions(exprs))
}

/// Binds an expression over the columns of its table, without other tables, subqueries and functions
/// that aren't built in.
pub fn table_expression(
    expr: &ast::Expr,
    table: &Table,
    clause: &'static str,
    session: &SessionVars,
) -> Result<Expr, Refusal> {
    let catalog = Catalog::default();
    let context = Context {
        catalog: &catalog,
        session,
        temporary_tables: &TemporaryTables::new(),
        parameters: &[],
        literals: &[],
        sql: b"",
        contents: &UnknownContents,
        variables: None,
        programs: None,
        trace: None,
    };
    let mut binder = Binder::new(&context);
    binder.depth_max = STORED_DEPTH_MAX;
    binder.is_of_table = true;
    binder.scopes.push(Scope::new(clause));
    binder.show_table(table);
    let bound = binder.expr(expr);
    match binder.disallowed {
        Some(disallowed) => Err(Refusal::Disallowed(disallowed)),
        None => Ok(bound?),
    }
}

/// An output column's metadata for the client.
pub fn result_column(column: &OutputColumn) -> ResultColumn {
    let mut result = ResultColumn::expression(
        column.name.clone(),
        column.expr.ty.clone(),
        column.expr.nullable,
    );
    let Some(origin) = &column.origin else {
        return result;
    };
    result.table = origin.alias.clone();
    let Some(table) = &origin.table else {
        return result;
    };
    let definition = &table.columns[origin.column];
    result.schema = table.schema.clone();
    result.original_table = table.name.clone();
    result.original_name = definition.name.clone();
    result.key = column_key(table, origin.column);
    result.auto_increment = definition.auto_increment;
    result.on_update_now = definition.on_update_now;
    result.no_default = !definition.nullable
        && !definition.auto_increment
        && definition.generated.is_none()
        && matches!(definition.default, ColumnDefault::None);
    result
}

/// How a column is indexed, for the client and SHOW COLUMNS.
pub fn column_key(table: &Table, column: usize) -> ColumnKey {
    let mut key = ColumnKey::None;
    for index in &table.indexes {
        let found = match index.kind {
            IndexKind::Primary if index.parts.iter().any(|part| part.column == column) => {
                return ColumnKey::Primary;
            }
            IndexKind::Unique if index.parts.len() == 1 && index.parts[0].column == column => {
                ColumnKey::Unique
            }
            _ if index
                .parts
                .first()
                .is_some_and(|part| part.column == column) =>
            {
                ColumnKey::Multiple
            }
            _ => continue,
        };
        if key == ColumnKey::None || found == ColumnKey::Unique {
            key = found;
        }
    }
    key
}
