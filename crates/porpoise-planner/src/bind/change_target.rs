//! What INSERT, REPLACE and LOAD DATA write to: a table, a view of one table, or one table of a view
//! that joins several (MySQL 8.4 manual, 27.5.3).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{ColumnDefault, Relation as CatalogRelation, Table, View};
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Set;
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_sql::ast;

use crate::access::{AccessId, Need};
use crate::bind::Binder;
use crate::bind::scope::{Columns, Relation, Scope};
use crate::query::SourceKind;

/// What INSERT writes to: a table, by its own name or through a view.
#[derive(Clone)]
pub struct ChangeTarget {
    pub table: Arc<Table>,
    pub slot: SlotId,
    /// A view's columns by name, and where each lies in the table.
    pub view: Option<Vec<(CompactString, usize)>>,
    /// The columns of the other tables of a view that joins some, and the view's name.
    pub beside: Option<(Vec<CompactString>, String)>,
    /// None for a temporary table.
    pub access: Option<AccessId>,
}

/// Which columns a statement gives values to.
pub enum Assigned<'a> {
    /// Those that its list names.
    Named(Vec<&'a str>),
    /// Those of the target, as it names none.
    Unnamed,
    /// Those that LOAD DATA says.
    ByFile,
}

impl<'a> Assigned<'a> {
    pub fn of(insert: &'a ast::Insert) -> Assigned<'a> {
        match &insert.columns {
            Some(names) if !names.is_empty() => {
                Assigned::Named(names.iter().map(|name| name.name.as_str()).collect())
            }
            _ => Assigned::Unnamed,
        }
    }
}

/// A column of a view: its name, and the column of a table that it is, if it is one.
type ViewColumn = (CompactString, Option<(SlotId, usize)>);

impl ChangeTarget {
    pub fn column_position(&self, name: &str) -> Option<usize> {
        match &self.view {
            None => self.table.column_position(name),
            Some(columns) => columns
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, column)| *column),
        }
    }

    /// The column of that name, which a list of columns names.
    pub fn named(&self, name: &str) -> Result<usize> {
        self.column_position(name)
            .ok_or_else(|| Error::unknown_column(name, "field list"))
    }

    /// What the target calls a column of the table.
    pub fn column_name(&self, position: usize) -> CompactString {
        let shown = self.view.iter().flatten().find(|(_, at)| *at == position);
        let name = shown.map_or(&self.table.columns[position].name, |(name, _)| name);
        name.clone()
    }

    /// The columns of an INSERT that names none.
    pub fn columns(&self) -> Vec<usize> {
        match &self.view {
            None => (0..self.table.columns.len())
                .filter(|at| self.table.columns[*at].visible)
                .collect(),
            Some(columns) => columns.iter().map(|(_, column)| *column).collect(),
        }
    }
}

impl Binder<'_> {
    /// What INSERT and REPLACE write to, as a relation that expressions can name.
    pub(super) fn target(
        &mut self,
        name: &ast::ObjectName,
        somewhere: Set,
        assigned: &Assigned<'_>,
    ) -> Result<(ChangeTarget, Relation)> {
        let schema = self.schema_of(name)?;
        let (found, access) = self.open(&schema, &name.name, Need::All(somewhere))?;
        match found {
            CatalogRelation::Table(table) => {
                let alias = name.name.0.clone();
                self.table_names.push((table.clone(), alias.clone()));
                let slot = self.table_slot(alias.clone(), &table);
                let relation = Relation {
                    alias,
                    schema: table.schema.clone(),
                    columns: Columns::Table {
                        slot,
                        table: table.clone(),
                    },
                    nullable: false,
                    access,
                };
                let target = ChangeTarget {
                    table,
                    slot,
                    view: None,
                    beside: None,
                    access,
                };
                Ok((target, relation))
            }
            CatalogRelation::View(view) => {
                let found = self.view_target(&view, &name.name.0, access, assigned)?;
                if let Some(access) = access {
                    self.accesses.change(access, somewhere);
                }
                Ok(found)
            }
            CatalogRelation::Virtual(table) if table.is_log() => Err(Error::cant_lock_log_table()),
            CatalogRelation::Virtual(_) => {
                let session = self.session();
                Err(Error::db_access_denied(
                    &session.user,
                    &session.host,
                    schema,
                ))
            }
        }
    }

    /// The table behind a view (1471 if there is none that rows can be inserted into).
    fn view_target(
        &mut self,
        view: &Arc<View>,
        alias: &CompactString,
        access: Option<AccessId>,
        assigned: &Assigned<'_>,
    ) -> Result<(ChangeTarget, Relation)> {
        self.scopes.push(Scope::new("field list"));
        self.binds_targets = true;
        let part = self.view(view, alias.clone(), access, false);
        self.binds_targets = false;
        self.change_views();
        let scope = self.scopes.pop();
        let part = part?;
        let refused = || Error::not_insertable(&view.name, "INSERT");
        let mut relation = scope
            .and_then(|mut scope| scope.relations.pop())
            .ok_or_else(refused)?;
        let mut sources = Vec::new();
        part.tree.for_each_source(&mut |source| {
            if let SourceKind::Table(table) = &source.kind {
                sources.push((table.clone(), source.slot));
            }
        });
        let Columns::Merged { columns, tables } = &mut relation.columns else {
            return Err(refused());
        };
        let shown: Vec<ViewColumn> = columns
            .iter()
            .map(|column| (column.name.clone(), column.expr.as_column()))
            .collect();
        let joins = *tables > 1;
        let slot = match joins {
            false => {
                stand_for_themselves(&shown).ok_or_else(refused)?;
                sources.first().ok_or_else(refused)?.1
            }
            true if part.tree.has_outer_join() => return Err(refused()),
            true => self.inserted_table(view, &shown, assigned)?,
        };
        let is_source = |(_, of): &&(Arc<Table>, SlotId)| *of == slot;
        let (table, _) = sources.iter().find(is_source).ok_or_else(refused)?.clone();
        sources.retain(|(_, of)| *of != slot);
        // Values can't name what other tables hold.
        columns.retain(|column| column.expr.as_column().is_some_and(|(of, _)| of == slot));
        let (mut named, mut beside) = (Vec::new(), Vec::new());
        for (name, column) in shown {
            match column {
                Some((of, position)) if of == slot => named.push((name, position)),
                _ => beside.push(name),
            }
        }
        self.check_without_rows_of(&sources, slot);
        let view_name = format!("{}.{}", view.schema, view.name);
        if lacks_default(&table, &named) && self.session().sql_mode.strict() {
            return Err(Error::view_field_has_no_default(view_name));
        }
        let target = ChangeTarget {
            table,
            slot,
            view: Some(named),
            beside: joins.then_some((beside, view_name)),
            access,
        };
        Ok((target, relation))
    }

    /// The table of a join view that the columns of an INSERT belong to.
    fn inserted_table(
        &self,
        view: &View,
        shown: &[ViewColumn],
        assigned: &Assigned<'_>,
    ) -> Result<SlotId> {
        let view_name = || format!("{}.{}", view.schema, view.name);
        let names = match assigned {
            Assigned::Named(names) => names,
            Assigned::Unnamed => return Err(Error::view_inserts_unnamed(view_name())),
            Assigned::ByFile => return Err(Error::wrong_usage("Multi-table VIEW", "LOAD")),
        };
        let mut chosen = None;
        for name in names {
            let mut found = shown.iter();
            let found = found.find(|(known, _)| known.eq_ignore_ascii_case(name));
            let Some((_, column)) = found else {
                return Err(Error::unknown_column(name, "field list"));
            };
            let Some((slot, _)) = column else {
                return Err(Error::not_insertable(&view.name, "INSERT"));
            };
            match chosen {
                Some(known) if known != *slot => {
                    return Err(Error::view_changes_several(view_name()));
                }
                _ => chosen = Some(*slot),
            }
        }
        let slot = chosen.ok_or_else(|| Error::view_inserts_unnamed(view_name()))?;
        Ok(slot)
    }

    /// Has WITH CHECK OPTION look at a row that comes through a join view as MySQL does: the columns
    /// of the view's other tables hold what a row has that nothing was written to.
    fn check_without_rows_of(&mut self, others: &[(Arc<Table>, SlotId)], slot: SlotId) {
        let mut checks = std::mem::take(&mut self.view_checks);
        for (slots, check) in &mut checks {
            if slots.contains(&slot) {
                let conditions = check.conditions.iter_mut();
                conditions.for_each(|condition| self.unwrite_columns(condition, others));
            }
        }
        self.view_checks = checks;
    }

    /// Puts what a row has that nothing was written to in the place of tables' columns, in
    /// subqueries as well.
    fn unwrite_columns(&mut self, expr: &mut Expr, of: &[(Arc<Table>, SlotId)]) {
        match &expr.kind {
            ExprKind::Column { slot, column, .. } => {
                if let Some((table, _)) = of.iter().find(|(_, known)| known == slot) {
                    let value = table.columns[*column as usize].unwritten();
                    *expr = Expr::literal(value, expr.ty.clone());
                }
                return;
            }
            ExprKind::Subquery { number, .. } => {
                let number = *number;
                let query = self.subqueries.get_mut(number);
                if let Some(mut query) = query.and_then(Option::take) {
                    query.for_each_expr_mut(&mut |expr| self.unwrite_columns(expr, of));
                    self.subqueries[number] = Some(query);
                }
            }
            _ => {}
        }
        expr.for_each_child_mut(&mut |child| self.unwrite_columns(child, of));
    }
}

/// `None` unless each column of a view is a table's own, which no other column is.
fn stand_for_themselves(shown: &[ViewColumn]) -> Option<()> {
    for (at, (_, column)) in shown.iter().enumerate() {
        let column = (*column)?;
        let mut earlier = shown[..at].iter();
        if earlier.any(|(_, other)| *other == Some(column)) {
            return None;
        }
    }
    Some(())
}

/// Whether a column that a view doesn't show needs a value.
fn lacks_default(table: &Table, named: &[(CompactString, usize)]) -> bool {
    table.columns.iter().enumerate().any(|(at, column)| {
        !named.iter().any(|(_, shown)| *shown == at)
            && matches!(column.default, ColumnDefault::None)
            && !column.nullable
            && !column.auto_increment
            && column.generated.is_none()
    })
}
