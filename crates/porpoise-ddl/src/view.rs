//! CREATE VIEW, ALTER VIEW. (DROP VIEW is in [`super::drop`].)
//!
//! A view is kept as the text of its query, in canonical form, and bound anew by every statement
//! that names it. It is planned once here, for its columns and so that a query that can't run is
//! refused.

use compact_str::CompactString;
use porpoise_catalog::record::ViewRecord;
use porpoise_catalog::{CatalogChange, Relation, View};
use porpoise_core::error::{Error, ErrorKind, Level, Result};
use porpoise_core::quote;
use porpoise_core::reply::Completion;
use porpoise_planner::access::PlanError;
use porpoise_planner::plan::{Plan, PlanKind};
use porpoise_planner::{self as planner, Context, usable_name};
use porpoise_session::check;
use porpoise_sql::ast;

use crate::{Ddl, Name, check_table_name, column, lock};

impl Ddl<'_> {
    /// Plans a query whose rows a definition takes, against the newest catalog. The session may
    /// read what it names.
    pub fn plan(&self, statement: &ast::Statement) -> Result<Plan> {
        self.planned(
            |context| {
                let context = Context {
                    variables: self.inputs.variables,
                    parameters: self.inputs.types,
                    ..*context
                };
                planner::plan(statement, &context)
            },
            |plan| plan,
        )
    }

    /// What keeps a view from being read: what its text names and isn't there, and what a statement
    /// that names the view says. Nothing if it can be read.
    pub fn view_faults(&self, view: &View) -> Vec<Error> {
        let (schema, name) = (quote::name(&view.schema), quote::name(&view.name));
        let Err(error) = self.plan_text(&format!("SELECT * FROM {schema}.{name}")) else {
            return Vec::new();
        };
        match (error.is(ErrorKind::ViewInvalid), self.plan_text(&view.sql)) {
            (true, Err(cause)) => vec![cause, error],
            _ => vec![error],
        }
    }

    /// As [`plan`](Ddl::plan), of a text.
    pub(crate) fn plan_text(&self, sql: &str) -> Result<Plan> {
        let parsed = porpoise_sql::parse_statement(sql.as_bytes(), 0, porpoise_sql::Modes::NONE);
        let Ok(Some(parsed)) = parsed else {
            return Err(Error::engine_error(format!("unreadable statement: {sql}")));
        };
        self.planned(
            |context| {
                let context = Context {
                    sql: sql.as_bytes(),
                    ..*context
                };
                planner::plan(&parsed.statement, &context)
            },
            |plan| plan,
        )
    }

    fn planned<T>(
        &self,
        plan: impl FnOnce(&Context<'_>) -> Result<T, PlanError>,
        plan_of: impl FnOnce(&T) -> &Plan,
    ) -> Result<T> {
        let catalog = self.shared.catalog.load_full();
        let context = Context {
            catalog: &catalog,
            session: self.session,
            temporary_tables: &self.session.temporary_tables,
            parameters: &[],
            literals: &[],
            sql: self.sql,
            contents: &porpoise_planner::UnknownContents,
            variables: None,
            programs: Some(&porpoise_programs::functions::PROGRAMS),
            trace: None,
        };
        let accounts = &self.shared.accounts;
        let planned =
            plan(&context).map_err(|failed| check::refuse(self.session, accounts, failed))?;
        check::plan(self.session, accounts, plan_of(&planned))?;
        Ok(planned)
    }

    /// The account whose rights a view is to have: the session's, unless DEFINER names another.
    /// (ALTER VIEW keeps none.)
    fn definer(&mut self, create: &ast::CreateView, name: &Name) -> Result<String> {
        let definer = self.definer_of(create.definer.as_ref())?;
        // A view that has somebody else's rights is not changed by who couldn't have given it
        // these.
        let old = match create.alter {
            true => self
                .shared
                .catalog
                .load()
                .relation(&name.schema, &name.table),
            false => None,
        };
        if let Some(Relation::View(old)) = old {
            let (user, host) = old.definer_name();
            self.check_definer(user, host)?;
        }
        Ok(definer)
    }

    /// The account that DEFINER names, or the session's own, if the session may name it.
    pub(crate) fn definer_of(&mut self, definer: Option<&ast::Account>) -> Result<String> {
        let (own_user, own_host) = match &self.session.account {
            Some(account) => (account.user.clone(), account.host.clone()),
            None => (self.session.user.clone(), self.session.host.clone()),
        };
        let (user, host) = match definer {
            Some(ast::Account::Named { user, host }) => {
                let host = host.as_ref().map_or("%", |host| host.as_str());
                (user.0.clone(), host.to_ascii_lowercase().into())
            }
            _ => (own_user, own_host),
        };
        self.check_definer(&user, &host)?;
        Ok(format!("{user}@{host}"))
    }

    fn check_definer(&mut self, user: &str, host: &str) -> Result<()> {
        let accounts = &self.shared.accounts;
        if let Some(missing) = check::check_definer(self.session, accounts, user, host)? {
            self.session.warn(Level::Note, missing.into_condition());
        }
        Ok(())
    }
}

/// Which of a query's columns have a name that nobody wrote: those of expressions without an alias.
fn generated_names(query: &ast::Query, columns: usize) -> Vec<bool> {
    let mut body = &query.body;
    let items = loop {
        match body {
            ast::QueryBody::Select(select) => break &select.items[..],
            ast::QueryBody::SetOperation(operation) => body = &operation.left,
            ast::QueryBody::Query(query) => body = &query.body,
            ast::QueryBody::Values(_) | ast::QueryBody::Table(_) => break &[],
        }
    };
    let is_generated = |item: &ast::SelectItem| match item {
        ast::SelectItem::Expr { expr, alias, .. } => {
            Some(alias.is_none() && !matches!(expr, ast::Expr::Column(_)))
        }
        ast::SelectItem::Wildcard | ast::SelectItem::QualifiedWildcard(_) => None,
    };
    // How many columns a wildcard stands for, the items before it and behind it tell.
    let mut generated = vec![false; columns];
    let front = generated
        .iter_mut()
        .zip(items.iter().map_while(is_generated));
    front.for_each(|(column, is_generated)| *column = is_generated);
    let behind = items.iter().rev().map_while(is_generated);
    let back = generated.iter_mut().rev().zip(behind);
    back.for_each(|(column, is_generated)| *column = is_generated);
    generated
}

/// Gives generated names that stand more than once the prefix that they have in MySQL.
fn unique_names(mut names: Vec<CompactString>, is_generated: &[bool]) -> Vec<CompactString> {
    for at in 1..names.len() {
        for earlier in 0..at {
            if !names[earlier].eq_ignore_ascii_case(&names[at]) {
                continue;
            }
            let renamed = match (is_generated[at], is_generated[earlier]) {
                (true, _) => at,
                (false, true) => earlier,
                // An error of its own (1060).
                (false, false) => continue,
            };
            let name = names[renamed].clone();
            let first = std::iter::once(compact_str::format_compact!("My_exp_{name}"));
            let others = (1..).map(|n| compact_str::format_compact!("My_exp_{n}_{name}"));
            let is_free =
                |name: &CompactString| names.iter().all(|used| !used.eq_ignore_ascii_case(name));
            if let Some(free) = first.chain(others).find(is_free) {
                names[renamed] = free;
            }
        }
    }
    names
}

pub fn create(ddl: &mut Ddl<'_>, create: &ast::CreateView) -> Result<Completion> {
    let name = ddl.resolve(&create.name)?;
    check_table_name(&name.table)?;
    ddl.check_schema(&ddl.shared.catalog.load(), &name.schema)?;
    if !create.alter && ddl.is_set_aside(&name) {
        ddl.warn_of_own_table(&name);
        return Ok(Completion::default());
    }
    let definer = ddl.definer(create, &name)?;
    if create.query.into.is_some() {
        return Err(Error::view_select_clause("INTO"));
    }
    let (plan, names) = ddl.planned(
        |context| planner::plan_view(&create.query, context),
        |(plan, _)| plan,
    )?;
    let PlanKind::Query(query) = &plan.kind else {
        return Err(Error::not_supported_yet("this query in a view"));
    };
    if let Some((table, _)) = plan.tables.iter().find(|(table, _)| table.temporary) {
        return Err(Error::view_select_temporary_table(&table.name));
    }
    // A view that its own query goes through would have no end.
    let is_itself = |view: &View| view.schema == name.schema && view.name == name.table;
    if plan.views.iter().any(|(view, _)| is_itself(view)) {
        return Err(Error::no_such_table(&name.schema, &name.table));
    }
    if plan.parameter_count > 0 {
        return Err(Error::view_select_variable());
    }
    let columns: Vec<CompactString> = match create.columns.as_slice() {
        [] => {
            let names = query.columns.iter().enumerate();
            let names = names.map(|(at, column)| usable_name(&column.name, at));
            let is_generated = generated_names(&create.query, query.columns.len());
            unique_names(names.collect(), &is_generated)
        }
        names if names.len() != query.columns.len() => return Err(Error::column_count_of_view()),
        names => names.iter().map(|name| name.0.clone()).collect(),
    };
    for (at, column) in columns.iter().enumerate() {
        column::check_name(column)?;
        if columns[..at]
            .iter()
            .any(|earlier| earlier.eq_ignore_ascii_case(column))
        {
            return Err(Error::duplicate_column(column));
        }
    }
    let record = ViewRecord {
        schema: name.schema.clone(),
        name: name.table.clone(),
        version: ddl.shared.dictionary.next_version(),
        sql: create.query.with_names(&names).to_string(),
        columns,
        definer,
        invoker: create.invoker == Some(true),
        algorithm: create.algorithm.as_ref().map_or_else(
            || "UNDEFINED".into(),
            |name| name.to_ascii_uppercase().into(),
        ),
        check_option: match create.check_option {
            None => CompactString::default(),
            Some(ast::CheckOption::Cascaded) => "CASCADED".into(),
            Some(ast::CheckOption::Local) => "LOCAL".into(),
        },
    };
    let _held = lock::relations(ddl, std::slice::from_ref(&name))?;
    let mut change = CatalogChange::begin(ddl.shared.definitions());
    let old = change.catalog().relation(&name.schema, &name.table);
    match &old {
        None if create.alter => return Err(Error::no_such_table(&name.schema, &name.table)),
        None => {}
        Some(Relation::View(_)) if create.alter || create.or_replace => {}
        Some(Relation::View(_)) => return Err(Error::table_exists(&name.table)),
        Some(_) if create.alter || create.or_replace => {
            return Err(Error::not_view(&name.schema, &name.table));
        }
        Some(_) => return Err(Error::table_exists(&name.table)),
    }
    let old = match &old {
        Some(Relation::View(view)) => Some(&**view),
        _ => None,
    };
    change.put_view(record, old)?;
    change.commit()?;
    Ok(Completion::default())
}
