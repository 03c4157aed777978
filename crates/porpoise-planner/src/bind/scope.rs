//! Names: what a column reference can mean where it stands (MySQL 8.4 manual, 15.2.13 and 11.2).
//!
//! A scope belongs to one query block. Its relations come in the order of FROM; while FROM is still
//! being bound only some of them are visible (the operands of a join to its ON, those before it to
//! a LATERAL table, none to another derived table).
//!
//! | clause | looks in |
//! | --- | --- |
//! | select list, WHERE, ON | FROM, then outer queries |
//! | GROUP BY | FROM, then the select list's aliases |
//! | HAVING | aliases and grouped columns; FROM inside aggregates |
//! | ORDER BY | a bare name: aliases first; else FROM, then aliases |

use std::ops::Range;
use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Table, VirtualTable};
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_expr::aggregate::{Aggregate, SortKey};
use porpoise_expr::typing::collation::Coercibility;
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_sql::ast;
use porpoise_types::{Collation, DataType};

use crate::access::{AccessColumn, AccessId};
use crate::bind::Binder;
use crate::bind::window::WindowDraft;
use crate::plan::RowLock;
use crate::query::{Origin, OutputColumn};

/// A window of the WINDOW clause.
pub struct NamedWindow {
    pub name: ast::Ident,
    pub window: ast::Window,
    /// Whether it has been bound.
    pub is_checked: bool,
}

pub struct Scope {
    pub relations: Vec<Relation>,
    pub visible: Range<usize>,
    /// Columns that USING or NATURAL merged into the other side's: relation, column.
    pub hidden: Vec<(usize, usize)>,
    /// As error 1054 names the clause being bound.
    pub clause: &'static str,
    pub aliases: Aliases,
    /// The select list, once it is bound.
    pub items: Vec<OutputColumn>,
    pub group_keys: Vec<GroupKey>,
    /// Aggregates met, by their number in the statement.
    pub aggregates: Vec<(usize, Aggregate)>,
    pub aggregates_allowed: bool,
    pub in_aggregate: bool,
    pub windows: Vec<WindowDraft>,
    pub windows_allowed: bool,
    pub named_windows: Vec<NamedWindow>,
    /// How messages call the window that is being bound.
    pub window_name: ast::Ident,
    /// The locks on rows of each table, by alias; the empty alias stands for all.
    pub locks: Vec<(CompactString, RowLock)>,
    /// ORDER BY of a merged derived table.
    pub merged_order: Vec<SortKey>,
    /// The query block's number in its text; 0: none that hints could name.
    pub block: u32,
}

/// A key of GROUP BY, and the item of the select list that it names by alias or number.
pub struct GroupKey {
    pub expr: Expr,
    pub item: Option<usize>,
}

/// When the select list's aliases are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aliases {
    No,
    /// After FROM.
    Last,
    /// HAVING: before FROM, and FROM only inside aggregates or for grouped columns.
    Having,
}

/// A relation in FROM.
pub struct Relation {
    pub alias: CompactString,
    pub schema: CompactString,
    pub columns: Columns,
    /// On the side of an outer join that may be filled with NULLs.
    pub nullable: bool,
    /// A table's or a view's.
    pub access: Option<AccessId>,
}

/// What a statement does with a column that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnUse {
    Read,
    /// A view's definition shows it.
    Shown,
}

impl Relation {
    /// In no schema: defined by the statement.
    pub fn of_statement(alias: CompactString, columns: Columns, nullable: bool) -> Relation {
        Relation {
            alias,
            schema: CompactString::default(),
            columns,
            nullable,
            access: None,
        }
    }
}

pub enum Columns {
    Table {
        slot: SlotId,
        table: Arc<Table>,
    },
    Virtual {
        slot: SlotId,
        table: &'static VirtualTable,
        /// Names of schemas and tables in it compare without case.
        folds: bool,
    },
    /// Columns of a row that the statement makes.
    Computed {
        slot: SlotId,
        columns: Vec<ComputedColumn>,
    },
    /// A derived table whose query became part of this one.
    Merged {
        columns: Vec<OutputColumn>,
        /// How many tables it reads.
        tables: usize,
    },
}

/// The type of a virtual table's column. `folds`: names of schemas and tables are in lower case, and
/// are found whichever way they are written.
pub fn virtual_type(table: &VirtualTable, column: usize, folds: bool) -> DataType {
    match (table.columns[column].1)() {
        DataType::Varchar {
            length: 64,
            collation: Collation::UTF8MB3_BIN,
        } if folds => DataType::Varchar {
            length: 64,
            collation: Collation::UTF8MB3_GENERAL_CI,
        },
        ty => ty,
    }
}

pub struct ComputedColumn {
    pub name: CompactString,
    pub ty: DataType,
    pub nullable: bool,
    /// The coercibility of its collation.
    pub strength: Coercibility,
    /// As [`OutputColumn::name_span`].
    pub name_span: Option<ast::Span>,
}

impl Scope {
    pub fn new(clause: &'static str) -> Scope {
        Scope {
            relations: Vec::new(),
            visible: 0..0,
            block: 0,
            hidden: Vec::new(),
            clause,
            aliases: Aliases::No,
            items: Vec::new(),
            group_keys: Vec::new(),
            aggregates: Vec::new(),
            aggregates_allowed: false,
            in_aggregate: false,
            windows: Vec::new(),
            windows_allowed: false,
            named_windows: Vec::new(),
            window_name: ast::Ident::default(),
            locks: Vec::new(),
            merged_order: Vec::new(),
        }
    }

    pub fn add(&mut self, relation: Relation) {
        self.relations.push(relation);
    }

    /// How many tables it joins, with those of merged views and derived tables.
    pub fn tables(&self) -> usize {
        let of_relation = |relation: &Relation| match &relation.columns {
            Columns::Merged { tables, .. } => *tables,
            _ => 1,
        };
        self.relations.iter().map(of_relation).sum()
    }

    pub fn show_all(&mut self) {
        self.visible = 0..self.relations.len();
    }

    /// The position of a column among the visible relations.
    pub fn find(&self, name: &ast::ColumnRef) -> Result<Option<(usize, usize)>> {
        let mut found: Option<(usize, usize)> = None;
        for at in self.visible.clone() {
            let relation = &self.relations[at];
            if let Some(table) = &name.table
                && !relation.is_called(name.schema.as_deref(), table)
            {
                continue;
            }
            let Some(column) = relation.columns.position(&name.name) else {
                continue;
            };
            if name.table.is_none() && self.hidden.contains(&(at, column)) {
                continue;
            }
            if found.is_some() {
                return Err(Error::ambiguous_column(display(name), self.clause));
            }
            found = Some((at, column));
        }
        Ok(found)
    }

    /// The column that an unknown name would be, for the privilege check: of the first table that
    /// it can mean.
    pub fn possible_column(&self, name: &ast::ColumnRef) -> Option<AccessColumn> {
        let is_meant = |relation: &&Relation| match &name.table {
            Some(table) => relation.is_called(name.schema.as_deref(), table),
            None => true,
        };
        let access = self
            .relations
            .iter()
            .filter(is_meant)
            .find_map(|r| r.access)?;
        Some((access, name.name.0.clone()))
    }

    /// Refuses what the select list computes of window functions where none may be: these come after
    /// GROUP BY and HAVING.
    pub fn check_windows(&self, item: &OutputColumn) -> Result<()> {
        let is_window = |part: &Expr| {
            let column = part.as_column();
            column.is_some_and(|(slot, _)| self.windows.iter().any(|window| window.slot == slot))
        };
        if !self.windows_allowed && item.expr.any(&mut |part| is_window(part)) {
            return Err(Error::window_alias_not_allowed(&item.name));
        }
        Ok(())
    }

    /// The select list's item with this alias. Columns of one name must be the same one; anything else
    /// that has the name comes before them.
    pub fn find_alias(&self, name: &str) -> Result<Option<&OutputColumn>> {
        let mut found: Option<&OutputColumn> = None;
        for item in self
            .items
            .iter()
            .filter(|item| item.name.eq_ignore_ascii_case(name))
        {
            match found {
                _ if item.expr.as_column().is_none() => return Ok(Some(item)),
                Some(held) if !held.expr.same_as(&item.expr, &[]) => {
                    return Err(Error::ambiguous_column(name, self.clause));
                }
                Some(_) => {}
                None => found = Some(item),
            }
        }
        Ok(found)
    }
}

/// A name as it was written, without quotes.
pub fn display(name: &ast::ColumnRef) -> String {
    let mut out = String::new();
    for qualifier in [&name.schema, &name.table].into_iter().flatten() {
        out.push_str(qualifier);
        out.push('.');
    }
    out.push_str(&name.name);
    out
}

impl Relation {
    /// A column of the table or view that is named here.
    pub fn access_column(&self, column: usize) -> Option<AccessColumn> {
        let access = self.access?;
        Some((access, CompactString::new(self.columns.name(column))))
    }

    /// Whether it is a view that joins tables.
    pub fn is_join_view(&self) -> bool {
        let joins = matches!(self.columns, Columns::Merged { tables: 2.., .. });
        joins && self.access.is_some()
    }

    /// Its name for messages about views.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", self.schema, self.alias)
    }

    pub fn is_called(&self, schema: Option<&str>, name: &str) -> bool {
        self.alias == name && schema.is_none_or(|schema| self.schema == schema)
    }
}

impl Columns {
    pub fn len(&self) -> usize {
        match self {
            Columns::Table { table, .. } => table.columns.len(),
            Columns::Virtual { table, .. } => table.columns.len(),
            Columns::Computed { columns, .. } => columns.len(),
            Columns::Merged { columns, .. } => columns.len(),
        }
    }

    pub fn name(&self, at: usize) -> &str {
        match self {
            Columns::Table { table, .. } => &table.columns[at].name,
            Columns::Virtual { table, .. } => table.columns[at].0,
            Columns::Computed { columns, .. } => &columns[at].name,
            Columns::Merged { columns, .. } => &columns[at].name,
        }
    }

    /// The piece of the text that a column is called by, if it holds a literal.
    pub fn name_span(&self, at: usize) -> Option<ast::Span> {
        match self {
            Columns::Table { .. } | Columns::Virtual { .. } => None,
            Columns::Computed { columns, .. } => columns[at].name_span,
            Columns::Merged { columns, .. } => columns[at].name_span,
        }
    }

    /// Whether `*` shows the column.
    pub fn is_shown(&self, at: usize) -> bool {
        match self {
            Columns::Table { table, .. } => table.columns[at].visible,
            _ => true,
        }
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        match self {
            Columns::Table { table, .. } => table.column_position(name),
            _ => (0..self.len()).find(|at| self.name(*at).eq_ignore_ascii_case(name)),
        }
    }

    pub fn expr(&self, at: usize) -> Expr {
        match self {
            Columns::Table { slot, table } => {
                let column = &table.columns[at];
                Expr::column(*slot, at, column.ty.clone(), column.nullable)
            }
            Columns::Virtual { slot, table, folds } => {
                let nullable = table.columns[at].2;
                Expr::column(*slot, at, virtual_type(table, at, *folds), nullable)
            }
            Columns::Computed { slot, columns } => {
                let column = &columns[at];
                Expr::column(*slot, at, column.ty.clone(), column.nullable)
                    .of_strength(column.strength)
            }
            Columns::Merged { columns, .. } => columns[at].expr.clone(),
        }
    }
}

impl Binder<'_> {
    /// The innermost scope.
    pub(super) fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::new("field list"));
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// Notes that the statement reads the columns in an expression.
    pub(super) fn mark_used(&mut self, expr: &Expr) {
        if let ExprKind::Column { slot, column, .. } = expr.kind {
            if let Some(used) = self
                .slots
                .get_mut(slot.0 as usize)
                .and_then(|draft| draft.used.get_mut(column as usize))
            {
                *used = true;
            }
            return;
        }
        let mut columns = Vec::new();
        expr.any(&mut |part| {
            columns.extend(part.as_column());
            false
        });
        for (slot, column) in columns {
            if let Some(used) = self
                .slots
                .get_mut(slot.0 as usize)
                .and_then(|draft| draft.used.get_mut(column))
            {
                *used = true;
            }
        }
    }

    /// A column of a relation, as an expression that reads it.
    pub(super) fn relation_column(&mut self, depth: usize, relation: usize, column: usize) -> Expr {
        self.used_column(depth, relation, column, ColumnUse::Read)
    }

    /// A column of a relation, with the privilege that its use needs.
    fn used_column(
        &mut self,
        depth: usize,
        relation: usize,
        column: usize,
        usage: ColumnUse,
    ) -> Expr {
        let relation = &self.scopes[depth].relations[relation];
        let mut expr = relation.columns.expr(column);
        if relation.nullable {
            expr.nullable = true;
        }
        if let Some(named) = relation.access_column(column) {
            match usage {
                ColumnUse::Read => self.accesses.column(&named, Privilege::Select),
                ColumnUse::Shown => self.accesses.show(&named),
            }
        }
        self.mark_used(&expr);
        expr
    }

    /// The same, with the column's metadata for the client.
    pub(super) fn output_column(
        &mut self,
        depth: usize,
        relation: usize,
        column: usize,
        usage: ColumnUse,
    ) -> OutputColumn {
        let expr = self.used_column(depth, relation, column, usage);
        let relation = &self.scopes[depth].relations[relation];
        let (table, position, name_span) = match &relation.columns {
            Columns::Table { table, .. } => (Some(table.clone()), column, None),
            Columns::Merged { columns, .. } => match &columns[column].origin {
                Some(origin) => (
                    origin.table.clone(),
                    origin.column,
                    columns[column].name_span,
                ),
                None => (None, column, columns[column].name_span),
            },
            Columns::Computed { columns, .. } => (None, column, columns[column].name_span),
            Columns::Virtual { .. } => (None, column, None),
        };
        let origin = Some(Origin {
            alias: relation.alias.clone(),
            table,
            column: position,
            access: relation.access_column(column),
        });
        OutputColumn {
            expr,
            name: CompactString::new(relation.columns.name(column)),
            name_span,
            origin,
        }
    }

    /// The program's variable of that name.
    pub(super) fn variable(&self, name: &ast::ColumnRef) -> Option<Expr> {
        let found = self.variables?.find(name)?;
        let kind = ExprKind::Variable(found.number);
        Some(Expr::new(kind, found.ty, true))
    }

    /// Finds a variable, or a column in this or an outer query.
    pub(super) fn resolve(&mut self, name: &ast::ColumnRef) -> Result<Expr> {
        if let Some(variable) = self.variable(name) {
            return Ok(variable);
        }
        for depth in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[depth];
            // An aggregate in a subquery of HAVING may be this query's.
            let in_aggregate = self.scopes[depth..].iter().any(|scope| scope.in_aggregate);
            if scope.aliases == Aliases::Having && !in_aggregate {
                if let Some(expr) = self.resolve_in_having(depth, name)? {
                    return Ok(expr);
                }
                continue;
            }
            if let Some((relation, column)) = scope.find(name)? {
                self.note_column(name, depth, (relation, column));
                return Ok(self.relation_column(depth, relation, column));
            }
            // A subquery names what the query around it selects.
            let is_outer = depth + 1 < self.scopes.len();
            if (scope.aliases == Aliases::Last || is_outer)
                && name.table.is_none()
                && let Some(item) = scope.find_alias(&name.name)?
            {
                let aggregates = |part: &Expr| matches!(part.kind, ExprKind::Aggregate(_));
                if scope.aliases == Aliases::No && item.expr.any(&mut |part| aggregates(part)) {
                    let why = "reference to group function";
                    return Err(Error::illegal_reference(name.name.as_str(), why));
                }
                scope.check_windows(item)?;
                let (expr, name_span) = (item.expr.clone(), item.name_span);
                self.note_alias(name_span);
                return Ok(expr);
            }
        }
        if self.scopes.len() > 1 && name.table.is_none() {
            self.unresolved = Some(name.name.0.clone());
        }
        let clause = self
            .scopes
            .last()
            .map_or("field list", |scope| scope.clause);
        if let ("global ORDER clause", Some(table)) = (clause, &name.table) {
            return Err(Error::table_not_in_from(table.as_str(), clause));
        }
        let clause = if clause == "global ORDER clause" {
            "order clause"
        } else {
            clause
        };
        let possible_column = |scope: &Scope| scope.possible_column(name);
        let looked_for = self.scopes.iter().rev().find_map(possible_column);
        Err(self.unknown_column(name, clause, looked_for, Privilege::Select))
    }

    /// Notes the column that a reference means.
    pub(super) fn note_column(
        &mut self,
        written: &ast::ColumnRef,
        depth: usize,
        (relation, column): (usize, usize),
    ) {
        let columns = &self.scopes[depth].relations[relation].columns;
        self.note_alias(columns.name_span(column));
        if !self.notes_names() {
            return;
        }
        let meant = self.full_name(depth, relation, &written.name);
        if let (Some(names), Some(meant)) = (&mut self.names, meant) {
            names.note_column(written, meant);
        }
    }

    /// A relation's column by its full name; `None` where the relation has no name.
    pub(super) fn full_name(
        &self,
        depth: usize,
        relation: usize,
        column: &str,
    ) -> Option<ast::ColumnRef> {
        let relation = &self.scopes[depth].relations[relation];
        let ident = |name: &str| ast::Ident(CompactString::new(name));
        let is_alias = |access| !self.accesses.is_named(access, &relation.alias);
        let has_schema = !relation.schema.is_empty() && !relation.access.is_none_or(is_alias);
        (!relation.alias.is_empty()).then(|| ast::ColumnRef {
            schema: has_schema.then(|| ident(&relation.schema)),
            table: Some(ident(&relation.alias)),
            name: ident(column),
        })
    }

    /// Error 1054. Who has privileges on some columns of a table alone isn't told which others
    /// there are not.
    pub(super) fn unknown_column(
        &mut self,
        name: &ast::ColumnRef,
        clause: &str,
        looked_for: Option<AccessColumn>,
        privilege: Privilege,
    ) -> Error {
        if let Some(column) = looked_for {
            self.accesses.column(&column, privilege);
        }
        Error::unknown_column(display(name), clause)
    }

    /// Notes that a column of a select list was named. A plan in which that is a piece of the text with a literal in it
    /// holds for no text with another literal.
    pub(super) fn note_alias(&mut self, name_span: Option<ast::Span>) {
        self.cacheable &= name_span.is_none();
    }

    fn resolve_in_having(&mut self, depth: usize, name: &ast::ColumnRef) -> Result<Option<Expr>> {
        let scope = &self.scopes[depth];
        let from = scope.find(name);
        if let Ok(Some((relation, column))) = from {
            let expr = scope.relations[relation].columns.expr(column);
            let grouped = (scope.group_keys.iter()).any(|key| key.expr.same_as(&expr, &[]));
            let selected = scope.items.iter().any(|item| item.expr.same_as(&expr, &[]));
            let aliased = name.table.is_none()
                && scope
                    .items
                    .iter()
                    .any(|item| item.name.eq_ignore_ascii_case(&name.name));
            // Inside a subquery of HAVING, columns functionally dependent on the keys are reachable
            // as well.
            if grouped || (selected && (!aliased || name.table.is_some())) {
                self.note_column(name, depth, (relation, column));
                return Ok(Some(self.relation_column(depth, relation, column)));
            }
        }
        let scope = &self.scopes[depth];
        if name.table.is_none()
            && let Some(item) = scope.find_alias(&name.name)?
        {
            scope.check_windows(item)?;
            let (expr, name_span) = (item.expr.clone(), item.name_span);
            self.note_alias(name_span);
            return Ok(Some(expr));
        }
        from.map(|_| None)
    }
}
