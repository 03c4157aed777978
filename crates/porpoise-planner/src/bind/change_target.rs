//! What INSERT, REPLACE and LOAD DATA write to: a table, or a view of one table.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{ColumnDefault, Relation as CatalogRelation, Table, View};
use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Set;
use porpoise_expr::SlotId;
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
    /// None for a temporary table.
    pub access: Option<AccessId>,
}

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
                    access,
                };
                Ok((target, relation))
            }
            CatalogRelation::View(view) => {
                let found = self.view_target(&view, &name.name.0, access)?;
                if let Some(access) = access {
                    self.accesses.change(access, somewhere);
                }
                Ok(found)
            }
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

    /// The table behind a view of one table whose columns are all the table's own (1471).
    fn view_target(
        &mut self,
        view: &Arc<View>,
        alias: &CompactString,
        access: Option<AccessId>,
    ) -> Result<(ChangeTarget, Relation)> {
        self.scopes.push(Scope::new("field list"));
        self.binds_targets = true;
        let part = self.view(view, alias.clone(), access, false);
        self.binds_targets = false;
        self.change_views();
        let scope = self.scopes.pop();
        let part = part?;
        let refused = || Error::not_insertable(&view.name, "INSERT");
        let relation = scope
            .and_then(|mut scope| scope.relations.pop())
            .ok_or_else(refused)?;
        let mut sources = Vec::new();
        part.tree.for_each_source(&mut |source| {
            if let SourceKind::Table(table) = &source.kind {
                sources.push((table.clone(), source.slot));
            }
        });
        let Columns::Merged { columns } = &relation.columns else {
            return Err(refused());
        };
        let mut named: Vec<(CompactString, usize)> = Vec::with_capacity(columns.len());
        for column in columns {
            let (_, position) = column.expr.as_column().ok_or_else(refused)?;
            if named.iter().any(|(_, known)| *known == position) {
                return Err(refused());
            }
            named.push((column.name.clone(), position));
        }
        let [(table, slot)] = sources.as_slice() else {
            return Err(Error::not_supported_yet(
                "INSERT through a view of several tables",
            ));
        };
        // A column that the view doesn't show must have a default.
        let lacks_default = table.columns.iter().enumerate().any(|(at, column)| {
            !named.iter().any(|(_, shown)| *shown == at)
                && matches!(column.default, ColumnDefault::None)
                && !column.nullable
                && !column.auto_increment
                && column.generated.is_none()
        });
        if lacks_default && self.session().sql_mode.strict() {
            let name = format!("{}.{}", view.schema, view.name);
            return Err(Error::view_field_has_no_default(name));
        }
        let target = ChangeTarget {
            table: table.clone(),
            slot: *slot,
            view: Some(named),
            access,
        };
        Ok((target, relation))
    }
}
