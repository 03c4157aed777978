//! Views in FROM.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::View;
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_expr::Expr;
use porpoise_sql::{ast, stack};

use crate::access::{AccessColumn, AccessId, Need};
use crate::bind::from::Part;
use crate::bind::{Binder, is_one_block, select};
use crate::plan::ViewCheck;
use crate::query::{Body, OutputColumn, Query};

impl Binder<'_> {
    /// A view's query, and how deep it nests; refused where the stack has no room for it.
    fn view_query(&mut self, view: &View) -> Result<(ast::Query, u32)> {
        let (query, depth) = select::parse_query(&view.sql)?;
        let deepest = self.depth + depth;
        if deepest > self.depth_max || deepest > self.room {
            if deepest <= self.depth_max {
                self.wants_room = Some(deepest);
            }
            stack::reserve(depth, || drop(query));
            return Err(Error::statement_too_deep());
        }
        Ok((query, depth))
    }

    /// A view in FROM: its text is bound in place, by the definer's or the session's privileges.
    /// Errors: 1356 where the text names what is no longer there, 1462 where it names the view
    /// itself, which definitions that change together may lead to.
    pub(super) fn view(
        &mut self,
        view: &Arc<View>,
        alias: CompactString,
        access: Option<AccessId>,
        nullable: bool,
    ) -> Result<Part> {
        if self.accesses.is_within(view) {
            return Err(Error::view_recursive(&view.schema, &view.name));
        }
        self.use_view(view);
        let broken = || Error::view_invalid(&view.schema, &view.name);
        let (query, depth) = self.view_query(view)?;
        // A view sees nothing of the statement that names it.
        let scopes = std::mem::take(&mut self.scopes);
        let visible = std::mem::take(&mut self.visible);
        let variables = self.variables.take();
        let sql = std::mem::replace(&mut self.sql, view.sql.as_bytes().to_vec().into());
        let schema = self.schema.replace(view.schema.clone());
        let hints = self.hints.enter_view(query.hints.as_deref());
        let need = std::mem::replace(&mut self.reads_need, Need::READ);
        self.accesses.enter_view(view);
        self.defines_view = is_one_block(&query);
        let bound = self.nested(|binder| binder.query(&query));
        stack::reserve(depth, || drop(query));
        self.defines_view = false;
        let relations = self
            .last_relations
            .iter()
            .filter_map(|relation| relation.access);
        let relations: Vec<AccessId> = relations.collect();
        self.accesses.leave_view();
        self.hints.leave_view(hints);
        self.reads_need = need;
        self.schema = schema;
        self.sql = sql;
        self.visible = visible;
        self.variables = variables;
        self.scopes = scopes;
        let mut bound = match bound {
            Err(error) if is_broken_reference(&error) => {
                return Err(broken());
            }
            other => other?,
        };
        for column in &mut bound.columns {
            column.name_span = None;
        }
        if bound.columns.len() != view.columns.len() {
            return Err(broken());
        }
        for (column, name) in bound.columns.iter_mut().zip(&view.columns) {
            column.name = name.clone();
        }
        if let Some(access) = access {
            let shown = |column: &OutputColumn| -> (CompactString, Option<AccessColumn>) {
                let origin = column.origin.as_ref();
                let below = origin.and_then(|origin| origin.access.clone());
                (column.name.clone(), below)
            };
            let columns = bound.columns.iter().map(shown).collect();
            self.accesses.expand_view(access, columns, relations);
        }
        self.note_check_option(view, &bound);
        self.query_part(bound, alias, view.schema.clone(), access, nullable)
    }

    /// Keeps the conditions that WITH CHECK OPTION puts on rows that go through a view: its own
    /// conditions and, if cascaded, those of the views below it.
    fn note_check_option(&mut self, view: &View, query: &Query) {
        let Body::Select(block) = &query.body else {
            return;
        };
        if view.check_option.is_empty() {
            return;
        }
        let mut conditions = block.conditions.clone();
        let is_cascaded = view.check_option == "CASCADED";
        let mut keep = |condition: &Expr| conditions.push(condition.clone());
        block.from.for_each_condition(is_cascaded, &mut keep);
        let mut slots = Vec::new();
        block
            .from
            .for_each_source(&mut |source| slots.push(source.slot));
        let check = ViewCheck {
            view: format!("{}.{}", view.schema, view.name),
            conditions,
        };
        self.view_checks.push((slots, check));
    }
}

/// Whether a view's text names something that isn't there.
fn is_broken_reference(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnknownColumn
            | ErrorKind::NoSuchTable
            | ErrorKind::UnknownDatabase
            | ErrorKind::FunctionDoesNotExist
            | ErrorKind::ViewInvalid
    )
}
