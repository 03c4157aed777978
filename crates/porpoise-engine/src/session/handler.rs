//! HANDLER: tables that a session reads index by index, from where it has stopped (MySQL 8.4
//! manual, 15.2.5).
//!
//! Each READ is a statement of its own: it is planned as a SELECT of the table with the same
//! condition, has the privileges checked and the metadata lock taken that such a SELECT needs, and
//! reads what that would. Between two READs a handler has a position and no lock, so that DDL
//! doesn't wait for it: DDL of the session itself closes the handlers of its tables, that of others
//! loses them their position.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::{Catalog, Table, TableId};
use porpoise_core::error::{Error, ErrorKind, Result};
use porpoise_core::quote;
use porpoise_core::reply::{Completion, Reply};
use porpoise_executor::handler::{Position, Read, Start};
use porpoise_planner::plan::Plan;
use porpoise_planner::{self as planner};
use porpoise_session::check;
use porpoise_sql::ast::{self, Handler, HandlerRead, HandlerStart};
use porpoise_sql::{Modes, stack};
use porpoise_storage::Commit;
use porpoise_types::{DataType, Value};

use crate::session::Session;

/// What error 1109 names.
const HANDLER: &str = "HANDLER";

/// A table that HANDLER … OPEN has opened.
pub(super) struct OpenHandler {
    alias: CompactString,
    schema: CompactString,
    name: CompactString,
    table: TableId,
    version: u64,
    stop: Option<Stop>,
}

/// Where the last READ has stopped, in an index, or in the table's order.
struct Stop {
    index: Option<CompactString>,
    position: Position,
}

impl OpenHandler {
    /// The table that is read, if it is still the one that was opened.
    fn check_table(&mut self, table: &Table) -> Result<()> {
        if table.id != self.table {
            return Err(Error::unknown_table_in(&self.alias, HANDLER));
        }
        if table.version != self.version {
            self.version = table.version;
            self.stop = None;
        }
        Ok(())
    }

    /// Where a READ begins. NEXT and PREV go on in the order in which the last READ has read; in
    /// another they begin at its end.
    fn start(&self, index: Option<&str>, wanted: &HandlerStart) -> Option<Start> {
        let stop = self.stop.as_ref();
        let stop = stop.filter(|stop| stop.index.as_deref() == index);
        let position = stop.map(|stop| stop.position.clone());
        match (wanted, position) {
            (HandlerStart::First, _) | (HandlerStart::Next, None) => Some(Start::First),
            (HandlerStart::Last, _) | (HandlerStart::Prev, None) => Some(Start::Last),
            (HandlerStart::Next, Some(position)) => Some(Start::Next(position)),
            (HandlerStart::Prev, Some(position)) => Some(Start::Prev(position)),
            (HandlerStart::Key(..), _) => None,
        }
    }
}

impl Session {
    /// HANDLER. `sql` is the text that its expressions point into.
    pub(super) fn handler(
        &mut self,
        handler: &Handler,
        sql: &[u8],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        if !self.state.locked_tables.is_empty() {
            return Err(Error::locked_or_in_transaction());
        }
        match handler {
            Handler::Open { table, alias } => self.open_handler(table, alias.as_ref())?,
            Handler::Close(name) => {
                let position = self.position_of_handler(name)?;
                self.handlers.remove(position);
            }
            Handler::Read(read) => return self.read_handler(read, sql, reply),
        }
        reply.ok(&Completion {
            warnings: self.state.warning_count(),
            ..Completion::default()
        })?;
        Ok(None)
    }

    fn position_of_handler(&self, name: &str) -> Result<usize> {
        let mut handlers = self.handlers.iter();
        let found = handlers.position(|known| known.alias.eq_ignore_ascii_case(name));
        found.ok_or_else(|| Error::unknown_table_in(name, HANDLER))
    }

    fn open_handler(&mut self, table: &ast::ObjectName, alias: Option<&ast::Ident>) -> Result<()> {
        let alias = alias.unwrap_or(&table.name);
        if self.position_of_handler(alias).is_ok() {
            return Err(Error::not_unique_table(alias.as_str()));
        }
        let schema = match (&table.schema, &self.state.schema) {
            (Some(schema), _) => self.state.folded(schema).as_ref().into(),
            (None, Some(schema)) => schema.clone(),
            (None, None) => return Err(Error::no_database_selected()),
        };
        let name = CompactString::from(&*self.state.folded(&table.name));
        let mut opened = OpenHandler {
            alias: alias.0.clone(),
            schema,
            name,
            table: TableId(0),
            version: 0,
            stop: None,
        };
        let catalog = self.shared.catalog.load_full();
        let plan = self.plan_handler(&opened, None, b"", &catalog)?;
        check::plan(&self.state, &self.shared.accounts, &plan)?;
        let not_base_table = || Error::not_base_table(&opened.schema, &opened.name);
        let (table, _) = match plan.views.is_empty() {
            true => plan.tables.first().ok_or_else(not_base_table)?,
            false => return Err(not_base_table()),
        };
        (opened.table, opened.version) = (table.id, table.version);
        self.transaction.check_plan_in_xa(&plan)?;
        self.handlers.push(opened);
        Ok(())
    }

    /// Plans the query whose rows a handler reads, in an order of its own.
    fn plan_handler(
        &self,
        handler: &OpenHandler,
        filter: Option<&ast::Expr>,
        sql: &[u8],
        catalog: &Arc<Catalog>,
    ) -> Result<Plan> {
        let (schema, name) = (quote::name(&handler.schema), quote::name(&handler.name));
        let alias = quote::name(&handler.alias);
        let text = format!("SELECT * FROM {schema}.{name} AS {alias} USE INDEX ()");
        let parsed = porpoise_sql::parse_statement(text.as_bytes(), 0, Modes::NONE);
        let Ok(Some(mut parsed)) = parsed else {
            return Err(Error::engine_error("the query of a HANDLER"));
        };
        if let ast::Statement::Query(query) = &mut parsed.statement
            && let ast::QueryBody::Select(select) = &mut query.body
        {
            select.selection = filter.cloned();
        }
        let context = self.context(catalog, sql, &[]);
        let plan = planner::plan(&parsed.statement, &context);
        plan.map_err(|failed| self.refuse(failed))
    }

    fn read_handler(
        &mut self,
        read: &HandlerRead,
        sql: &[u8],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        let at = self.position_of_handler(&read.name)?;
        let catalog = self.shared.catalog.load_full();
        let handler = &self.handlers[at];
        let planned = self.plan_handler(handler, read.filter.as_ref(), sql, &catalog);
        let plan = match planned {
            Err(error) if error.is(ErrorKind::NoSuchTable) => {
                self.handlers.remove(at);
                return Err(Error::unknown_table_in(read.name.as_str(), HANDLER));
            }
            planned => planned?,
        };
        let Some((table, _)) = plan.tables.first() else {
            return Err(Error::engine_error("the table of a HANDLER"));
        };
        if let Err(error) = self.handlers[at].check_table(table) {
            self.handlers.remove(at);
            return Err(error);
        }
        let index = match &read.index {
            Some(name) => Some(table.index_position(name).ok_or_else(|| {
                Error::key_does_not_exist(name.as_str(), &self.handlers[at].alias)
            })?),
            None => None,
        };
        let index_name = index.map(|index| table.indexes[index].name.clone());
        let start = self.handlers[at].start(index_name.as_deref(), &read.start);
        let start = match (&read.start, start) {
            (_, Some(start)) => start,
            (HandlerStart::Key(key, values), None) => {
                let parts = index.map_or(0, |index| table.indexes[index].parts.len());
                if values.len() > parts {
                    return Err(Error::too_many_key_parts(parts));
                }
                Start::Key(*key, self.key_values(values, sql)?)
            }
            (_, None) => return Err(Error::engine_error("the start of a HANDLER's READ")),
        };
        let reads = Read {
            index,
            start,
            offset: read.offset,
            count: read.count,
            stopped_at: None,
        };
        let (reads, commit) = stack::reserve(plan.depth, || {
            self.execute_handler(&plan, &catalog, reads, reply)
        })?;
        if let Some(position) = reads.stopped_at {
            self.handlers[at].stop = Some(Stop {
                index: index_name,
                position,
            });
        }
        Ok(commit)
    }

    /// The values of a key, which are constants.
    fn key_values(&mut self, values: &[ast::Expr], sql: &[u8]) -> Result<Vec<(Value, DataType)>> {
        let mut found = Vec::with_capacity(values.len());
        for value in values {
            let evaluated = self.evaluate(value, sql, &[], &[]);
            found.push(evaluated.map_err(|error| match error.kind() {
                ErrorKind::UnknownColumn => Error::wrong_arguments("HANDLER ... READ"),
                _ => error,
            })?);
        }
        Ok(found)
    }

    /// After DDL: closes the handlers of tables that aren't what they were opened as.
    pub(super) fn close_changed_handlers(&mut self) {
        if self.handlers.is_empty() {
            return;
        }
        let catalog = self.shared.catalog.load();
        let temporary = &self.state.temporary_tables;
        self.handlers.retain(|handler| {
            let key = (handler.schema.clone(), handler.name.clone());
            let now = temporary.get(&key).cloned();
            let now = now.or_else(|| catalog.base_table(&handler.schema, &handler.name));
            now.is_some_and(|now| now.id == handler.table && now.version == handler.version)
        });
    }

    /// FLUSH TABLES: handlers stay open, and begin anew.
    pub(super) fn forget_positions_of_handlers(&mut self) {
        for handler in &mut self.handlers {
            handler.stop = None;
        }
    }
}
