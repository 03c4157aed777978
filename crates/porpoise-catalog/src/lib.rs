//! Schemas, tables, views, accounts: what exists, and how DDL changes it.
//!
//! A [`Catalog`] is an immutable version of all definitions; the engine holds the newest one in an
//! `ArcSwap`. A statement takes one version and keeps it to its end. DDL makes a new version and
//! publishes it when its storage transaction is durable.

#![warn(missing_docs)]

mod change;
pub mod create_text;
mod definition;
pub mod dictionary;
pub mod event;
pub mod expression;
pub mod index_entry;
pub mod program;
pub mod program_statistics;
pub mod record;
pub mod statistics;
pub mod system_table;
pub mod virtual_table;

use std::sync::Arc;

use compact_str::CompactString;
use hashbrown::HashMap;

pub use change::{CatalogChange, Definitions};
pub use definition::*;
pub use dictionary::Dictionary;
pub use program::StoredProgram;
pub use statistics::{Histogram, Statistics};
pub use virtual_table::VirtualTable;

use porpoise_storage::SpaceId;

/// One version of all definitions.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Grows with every change.
    pub version: u64,
    /// The version in which a program was last made, changed or dropped.
    pub programs_version: u64,
    /// By name; names compare by case.
    pub schemas: HashMap<CompactString, Arc<SchemaEntry>>,
    /// The tables whose foreign keys name a table, by its schema and name.
    pub(crate) children: Arc<HashMap<TableName, Vec<TableName>>>,
}

/// A schema's and a table's name.
pub type TableName = (CompactString, CompactString);

/// A session's own tables.
pub type TemporaryTables = HashMap<TableName, Arc<Table>>;

/// A schema and what is in it.
#[derive(Clone, Debug)]
pub struct SchemaEntry {
    /// The schema's own definition.
    pub schema: Schema,
    /// Base tables and views, by name. Virtual tables are registered with [`virtual_table`]
    /// instead.
    pub relations: HashMap<CompactString, Relation>,
    /// Procedures, functions and triggers, by kind and name in lower case.
    pub programs: HashMap<program::ProgramName, Arc<StoredProgram>>,
}

/// What a name in FROM can stand for.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A base table, or a session's temporary one.
    Table(Arc<Table>),
    /// A view, to be bound from its text.
    View(Arc<View>),
    /// A table whose rows are made by code.
    Virtual(&'static VirtualTable),
}

impl Catalog {
    /// A schema. The built-in ones' names compare in any case.
    pub fn schema(&self, name: &str) -> Option<&Arc<SchemaEntry>> {
        self.schemas.get(name).or_else(|| {
            let built_in = dictionary::BUILT_IN_SCHEMAS
                .iter()
                .find(|known| known.eq_ignore_ascii_case(name))?;
            self.schemas.get(*built_in)
        })
    }

    /// How many base tables and views there are.
    pub fn relation_count(&self) -> usize {
        let schemas = self.schemas.values();
        schemas.map(|entry| entry.relations.len()).sum()
    }

    /// The tables whose foreign keys refer to a table, or to a table of that name that is yet to
    /// come.
    pub fn children(&self, schema: &str, name: &str) -> Vec<Arc<Table>> {
        if self.children.is_empty() {
            return Vec::new();
        }
        let children = self.children.get(&(schema.into(), name.into()));
        children
            .into_iter()
            .flatten()
            .filter_map(|(schema, name)| self.base_table(schema, name))
            .collect()
    }

    /// The table that has its rows, or the entries of an index, in a space; and the index.
    pub fn owner_of(&self, space: SpaceId) -> Option<(Arc<Table>, Option<CompactString>)> {
        let relations = || {
            self.schemas
                .values()
                .flat_map(|entry| entry.relations.values())
        };
        relations().find_map(|relation| {
            let Relation::Table(table) = relation else {
                return None;
            };
            if table.space == space {
                return Some((Arc::clone(table), None));
            }
            let mut secondary = table.indexes.iter();
            let index =
                secondary.find(|index| index.kind != IndexKind::Primary && index.space == space)?;
            Some((Arc::clone(table), Some(index.name.clone())))
        })
    }

    /// The base table of that name; `None` if there is none, or a view or virtual table has the
    /// name.
    pub fn base_table(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        match self.schema(schema)?.relations.get(name)? {
            Relation::Table(table) => Some(Arc::clone(table)),
            _ => None,
        }
    }

    /// A procedure, function or trigger.
    pub fn program(
        &self,
        schema: &str,
        kind: program::ProgramKind,
        name: &str,
    ) -> Option<Arc<StoredProgram>> {
        let programs = &self.schema(schema)?.programs;
        if programs.is_empty() {
            return None;
        }
        programs.get(&program::program_name(kind, name)).cloned()
    }

    /// All events.
    pub fn events(&self) -> Vec<Arc<StoredProgram>> {
        let entries = self.schemas.values();
        let with_programs = entries.filter(|entry| !entry.programs.is_empty());
        let programs = with_programs.flat_map(|entry| entry.programs.values());
        let events = programs.filter(|program| program.record.event.is_some());
        events.cloned().collect()
    }

    /// The triggers of a table, those of one time and event in the order in which they are fired.
    pub fn triggers(&self, schema: &str, table: &str) -> Vec<Arc<StoredProgram>> {
        let Some(entry) = self
            .schema(schema)
            .filter(|entry| !entry.programs.is_empty())
        else {
            return Vec::new();
        };
        let order = |program: &StoredProgram| {
            let fired = program.record.trigger.as_ref()?;
            (fired.table == table).then_some(fired.order)
        };
        let programs = entry.programs.values();
        let fired = programs.filter_map(|program| Some((order(program)?, program)));
        let mut fired: Vec<_> = fired.collect();
        fired.sort_by_key(|(order, _)| *order);
        let fired = fired.into_iter();
        fired.map(|(_, program)| Arc::clone(program)).collect()
    }

    /// A schema's name as it was created.
    pub fn schema_name(&self, name: &str) -> Option<CompactString> {
        self.schema(name).map(|entry| entry.schema.name.clone())
    }

    /// A table or view. `information_schema`'s and `performance_schema`'s names compare in any
    /// case.
    pub fn relation(&self, schema: &str, name: &str) -> Option<Relation> {
        let entry = self.schema(schema)?;
        if let Some(found) = entry.relations.get(name) {
            return Some(found.clone());
        }
        let built_in = dictionary::BUILT_IN_SCHEMAS.contains(&entry.schema.name.as_str());
        built_in
            .then(|| virtual_table::find(schema, name))
            .flatten()
            .map(Relation::Virtual)
    }
}
