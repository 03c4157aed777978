//! Changes of definitions: the dictionary's records and the catalog, in one step.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::MutexGuard;
use porpoise_core::error::Result;
use porpoise_storage::{SpaceId, Store, Transaction};

use crate::dictionary::{
    Dictionary, KIND_PROGRAM, KIND_SCHEMA, KIND_STATISTICS, KIND_TABLE, KIND_UNCLAIMED, KIND_VIEW,
    delete_record, program_key, put_record, put_statistics, view_key,
};
use crate::program::{ProgramKind, ProgramRecord, program_name};
use crate::record::{SchemaRecord, TableRecord, ViewRecord};
use crate::{Catalog, Relation, Schema, Statistics, Table, TableId, View};

/// What a change of a database's definitions works on: the store, the newest catalog, the
/// dictionary.
#[derive(Clone, Copy)]
pub struct Definitions<'a> {
    /// Holds the dictionary's records and the tables' rows.
    pub store: &'a Store,
    /// The newest catalog; [`CatalogChange::commit`] replaces it.
    pub catalog: &'a ArcSwap<Catalog>,
    /// Admits one change at a time, and numbers what is new.
    pub dictionary: &'a Dictionary,
}

/// A change of definitions under way. Dropping it without `commit` takes it back.
pub struct CatalogChange<'a> {
    definitions: Definitions<'a>,
    transaction: Transaction,
    catalog: Catalog,
    _one_at_a_time: MutexGuard<'a, ()>,
}

impl<'a> CatalogChange<'a> {
    /// Waits for other changes to end, and starts from the newest catalog.
    pub fn begin(definitions: Definitions<'a>) -> CatalogChange<'a> {
        let one_at_a_time = definitions.dictionary.change.lock();
        let newest = definitions.catalog.load();
        CatalogChange {
            definitions,
            transaction: definitions.store.begin(),
            catalog: Catalog {
                version: newest.version + 1,
                programs_version: newest.programs_version,
                schemas: newest.schemas.clone(),
                children: Arc::clone(&newest.children),
            },
            _one_at_a_time: one_at_a_time,
        }
    }

    /// The catalog as the change will leave it.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The storage transaction that the change is committed with: for spaces made and dropped, and
    /// rows moved.
    pub fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Puts a schema in place: a new one, or another collation for one that is there.
    pub fn put_schema(&mut self, schema: Schema) -> Result<()> {
        let record = SchemaRecord {
            name: schema.name.clone(),
            collation: schema.collation.id(),
            read_only: schema.read_only,
            encrypted: schema.encrypted,
        };
        put_record(
            &mut self.transaction,
            KIND_SCHEMA,
            schema.name.as_bytes(),
            &record,
        )?;
        match self.catalog.schemas.get_mut(&schema.name) {
            Some(entry) => Arc::make_mut(entry).schema = schema,
            None => self.catalog.add_schema(schema),
        }
        Ok(())
    }

    /// Drops a schema with all in it.
    pub fn drop_schema(&mut self, name: &str) {
        let Some(entry) = self.catalog.schemas.get(name).cloned() else {
            return;
        };
        for relation in entry.relations.keys() {
            self.drop_relation(name, relation);
        }
        for program in entry.programs.values() {
            let record = &program.record;
            self.drop_program(name, record.kind, &record.name);
        }
        delete_record(&mut self.transaction, KIND_SCHEMA, name.as_bytes());
        self.catalog.schemas.remove(name);
    }

    /// Puts a table in place, new or changed.
    pub fn put_table(&mut self, record: &TableRecord, table: Arc<Table>) -> Result<()> {
        put_record(
            &mut self.transaction,
            KIND_TABLE,
            &record.id.to_be_bytes(),
            record,
        )?;
        self.catalog
            .put(&record.schema, &record.name, Relation::Table(table));
        Ok(())
    }

    /// Replaces the record of a table's statistics. What is read of them until the next start is the
    /// caller's to replace.
    pub fn put_statistics(&mut self, table: &Table, statistics: &Statistics) -> Result<()> {
        put_statistics(&mut self.transaction, table, statistics)
    }

    /// Puts a view in place: a new one, or `old` changed.
    pub fn put_view(&mut self, record: ViewRecord, old: Option<&View>) -> Result<()> {
        put_record(
            &mut self.transaction,
            KIND_VIEW,
            &view_key(&record.schema, &record.name),
            &record,
        )?;
        let (schema, name) = (record.schema.clone(), record.name.clone());
        let (id, state) = match old {
            Some(old) => (old.id, Arc::clone(&old.state)),
            None => {
                let dictionary = &self.definitions.dictionary;
                let id = TableId(dictionary.next_table_id());
                (id, Arc::new(dictionary.new_state()))
            }
        };
        let view = View::of(record, id, state);
        self.catalog
            .put(&schema, &name, Relation::View(Arc::new(view)));
        Ok(())
    }

    /// Puts a program in place, new or changed.
    pub fn put_program(&mut self, record: ProgramRecord) -> Result<()> {
        let key = program_key(&record.schema, record.kind, &record.name);
        put_record(&mut self.transaction, KIND_PROGRAM, &key, &record)?;
        // No plan runs an event.
        if record.kind != ProgramKind::Event {
            self.catalog.programs_version = self.catalog.version;
        }
        let dictionary = &self.definitions.dictionary;
        let new_lock = |kind| dictionary.new_routine_lock(kind);
        self.catalog.put_program(record, new_lock);
        Ok(())
    }

    /// Drops a program. Whether there was one of that kind and name.
    pub fn drop_program(&mut self, schema: &str, kind: ProgramKind, name: &str) -> bool {
        let Some(entry) = self.catalog.schemas.get_mut(schema) else {
            return false;
        };
        let name = program_name(kind, name);
        let taken = Arc::make_mut(entry).programs.remove(&name);
        if let Some(program) = &taken {
            let key = program_key(schema, kind, &program.record.name);
            delete_record(&mut self.transaction, KIND_PROGRAM, &key);
            self.catalog.programs_version = self.catalog.version;
        }
        taken.is_some()
    }

    /// Drops the triggers of a table.
    fn drop_triggers(&mut self, schema: &str, table: &str) {
        for trigger in self.catalog.triggers(schema, table) {
            self.drop_program(schema, ProgramKind::Trigger, &trigger.record.name);
        }
    }

    /// Removes a table or view from the catalog, but not its rows. `None`: there is none of that
    /// name.
    pub fn detach_relation(&mut self, schema: &str, name: &str) -> Option<Relation> {
        let relation = self.catalog.take(schema, name)?;
        match &relation {
            Relation::Table(table) => {
                delete_record(&mut self.transaction, KIND_TABLE, &table.id.0.to_be_bytes())
            }
            Relation::View(_) => {
                delete_record(&mut self.transaction, KIND_VIEW, &view_key(schema, name))
            }
            Relation::Virtual(_) => {}
        }
        Some(relation)
    }

    /// Drops a table with its rows, or a view.
    pub fn drop_relation(&mut self, schema: &str, name: &str) {
        if let Some(Relation::Table(table)) = self.detach_relation(schema, name) {
            self.drop_triggers(schema, name);
            delete_record(
                &mut self.transaction,
                KIND_STATISTICS,
                &table.id.0.to_be_bytes(),
            );
            for space in table.spaces() {
                self.transaction.drop_space(space);
            }
        }
    }

    /// Removes the mark of an unclaimed space, which a table owns from this change on.
    pub fn claim_space(&mut self, space: SpaceId) {
        delete_record(
            &mut self.transaction,
            KIND_UNCLAIMED,
            &space.0.to_be_bytes(),
        );
    }

    /// Makes the change durable, then visible.
    pub fn commit(self) -> Result<()> {
        self.transaction.commit()?.wait()?;
        self.definitions.catalog.store(Arc::new(self.catalog));
        Ok(())
    }
}
