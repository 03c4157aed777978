//! The data dictionary: definitions in a storage space of their own.
//!
//! ```text
//! 's' schema              SchemaRecord
//! 't' table id            TableRecord
//! 'w' schema 0 name       ViewRecord
//! 'i' table id            StatisticsRecord (ANALYZE TABLE)
//! 'a' host 0 user         AccountRecord
//! 'd'                     the key that says how users without an account are asked
//! 'x' space               nothing: a space that belongs to no table yet, or only to a session
//! 'f'                     the format's version
//! ```
//!
//! Values are JSON, so that a field can be added without a new format.
//!
//! DDL is atomic: a [`CatalogChange`] holds the dictionary writes, `create_space` and `drop_space` in one
//! storage transaction, and the new [`Catalog`] picture beside it. [`CatalogChange::commit`] makes the first
//! durable, then the second visible. One change is made at a time.
//!
//! Rows that DDL copies go into spaces marked 'x' by transactions of their own, so that memory stays
//! bounded; the change that puts the finished table in place removes the marks. Spaces still
//! marked at the next start are what a crash or a temporary table left, and are dropped.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use compact_str::CompactString;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};
use porpoise_core::error::{Error, Result};
use porpoise_mdl::MetadataLocks;
use porpoise_storage::{Direction, SpaceId, Store, Transaction};
use porpoise_types::Collation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::expression::BindExpression;
use super::record::{SchemaRecord, TableRecord, ViewRecord};
use super::{
    Catalog, Relation, Schema, SchemaEntry, Statistics, Table, TableId, TableName, TableState, View,
};

/// Where the dictionary lives.
pub const DICTIONARY_SPACE: SpaceId = SpaceId(0);

/// What this version writes. A higher one is refused.
const FORMAT: u32 = 1;

const FORMAT_KEY: &[u8] = b"f";
/// The records of accounts, which the crate of accounts reads and writes itself.
pub const KIND_ACCOUNT: u8 = b'a';
/// The record of the key that chooses plugins for users without an account.
pub const KIND_DECOY_KEY: u8 = b'd';
const KIND_SCHEMA: u8 = b's';
const KIND_TABLE: u8 = b't';
const KIND_VIEW: u8 = b'w';
const KIND_STATISTICS: u8 = b'i';
const KIND_UNCLAIMED: u8 = b'x';

/// Schemas that always exist and hold tables made by code.
pub const BUILT_IN_SCHEMAS: [&str; 4] =
    ["information_schema", "mysql", "performance_schema", "sys"];

/// What DDL statements share: who may change the catalog, and the next numbers.
pub struct Dictionary {
    change: Mutex<()>,
    next_table: AtomicU32,
    next_version: AtomicU64,
    locks: Arc<MetadataLocks>,
}

#[derive(Serialize, Deserialize)]
struct StatisticsRecord {
    cardinality: Vec<(CompactString, Vec<u64>)>,
}

impl Dictionary {
    /// Reads every definition. The time it takes grows with the number of tables, not of rows.
    pub fn open(
        store: &Store,
        locks: &Arc<MetadataLocks>,
        binder: BindExpression,
    ) -> Result<(Dictionary, Catalog)> {
        prepare(store)?;
        let mut catalog = Catalog {
            version: 1,
            schemas: HashMap::new(),
            children: Arc::default(),
        };
        for name in BUILT_IN_SCHEMAS {
            let collation = match name {
                "information_schema" => Collation::UTF8MB3_GENERAL_CI,
                _ => Collation::UTF8MB4_0900_AI_CI,
            };
            catalog.add_schema(Schema {
                name: name.into(),
                collation,
            });
        }
        for (_, record) in read_kind::<SchemaRecord>(store, KIND_SCHEMA)? {
            let collation =
                Collation::by_id(record.collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI);
            catalog.add_schema(Schema {
                name: record.name,
                collation,
            });
        }
        let mut statistics: HashMap<Vec<u8>, StatisticsRecord> =
            read_kind(store, KIND_STATISTICS)?.into_iter().collect();
        let (mut last_table, mut last_version) = (0, 0);
        for (id, record) in read_kind::<TableRecord>(store, KIND_TABLE)? {
            last_table = last_table.max(record.id);
            last_version = last_version.max(record.version);
            let state = TableState::new(locks);
            if let Some(found) = statistics.remove(&id) {
                state.statistics.store(Arc::new(Statistics {
                    cardinality: found.cardinality.into_iter().collect(),
                    analyzed: true,
                }));
            }
            let table = record.bind(Arc::new(state), binder)?;
            catalog.put(
                &record.schema,
                &record.name,
                Relation::Table(Arc::new(table)),
            );
        }
        for (_, record) in read_kind::<ViewRecord>(store, KIND_VIEW)? {
            last_version = last_version.max(record.version);
            last_table += 1;
            let (schema, name) = (record.schema.clone(), record.name.clone());
            let state = Arc::new(TableState::new(locks));
            let view = View::of(record, TableId(last_table), state);
            catalog.put(&schema, &name, Relation::View(Arc::new(view)));
        }
        let dictionary = Dictionary {
            change: Mutex::new(()),
            next_table: AtomicU32::new(last_table + 1),
            next_version: AtomicU64::new(last_version + 1),
            locks: Arc::clone(locks),
        };
        Ok((dictionary, catalog))
    }

    /// A number for a new table or view; no number is given twice while the database is open.
    pub fn next_table_id(&self) -> u32 {
        self.next_table.fetch_add(1, Ordering::Relaxed)
    }

    /// What lives beside a new table's definition.
    pub fn new_state(&self) -> TableState {
        TableState::new(&self.locks)
    }

    /// A version for a new or changed definition, above all given before.
    pub fn next_version(&self) -> u64 {
        self.next_version.fetch_add(1, Ordering::Relaxed)
    }
}

/// Makes the dictionary's space on a fresh store, and clears away what a crash left.
fn prepare(store: &Store) -> Result<()> {
    let mut transaction = store.begin();
    match transaction.get(DICTIONARY_SPACE, FORMAT_KEY, <[u8]>::to_vec)? {
        None => {
            transaction.create_space(DICTIONARY_SPACE);
            transaction.insert(DICTIONARY_SPACE, FORMAT_KEY, FORMAT.to_string().as_bytes());
        }
        Some(found) => {
            let found: u32 = std::str::from_utf8(&found)
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(u32::MAX);
            if found > FORMAT {
                return Err(Error::engine_error(format!(
                    "data dictionary of format {found}; this program reads up to {FORMAT}"
                )));
            }
        }
    }
    for (key, ()) in scan_kind(store, KIND_UNCLAIMED, |_| Ok(()))? {
        if let Ok(space) = <[u8; 4]>::try_from(key.as_slice()) {
            transaction.drop_space(SpaceId(u32::from_be_bytes(space)));
        }
        transaction.delete(DICTIONARY_SPACE, &dictionary_key(KIND_UNCLAIMED, &key));
    }
    if transaction.has_writes() {
        transaction.commit()?.wait()?;
    }
    Ok(())
}

fn dictionary_key(kind: u8, name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 1);
    key.push(kind);
    key.extend_from_slice(name);
    key
}

/// Every entry of a kind: its key without the kind, and its value as `read` makes it.
fn scan_kind<T>(
    store: &Store,
    kind: u8,
    read: impl Fn(&[u8]) -> Result<T>,
) -> Result<Vec<(Vec<u8>, T)>> {
    let (low, high) = ([kind], [kind + 1]);
    let bounds = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
    let mut cursor = store
        .snapshot()
        .range(DICTIONARY_SPACE, bounds, Direction::Forward)?;
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        found.push((key.get(1..).unwrap_or_default().to_vec(), read(value)?));
    }
    Ok(found)
}

/// Every record of a kind, with its key without the kind.
pub fn read_kind<T: DeserializeOwned>(store: &Store, kind: u8) -> Result<Vec<(Vec<u8>, T)>> {
    scan_kind(store, kind, |value| {
        serde_json::from_slice(value).map_err(|error| {
            Error::engine_error(format!("unreadable data dictionary entry: {error}"))
        })
    })
}

/// Writes one record of a kind.
pub fn put_record<T: Serialize>(
    transaction: &mut Transaction,
    kind: u8,
    name: &[u8],
    record: &T,
) -> Result<()> {
    let value = serde_json::to_vec(record).map_err(Error::engine_error)?;
    transaction.put(DICTIONARY_SPACE, &dictionary_key(kind, name), &value);
    Ok(())
}

/// Deletes one record of a kind; nothing happens if there is none.
pub fn delete_record(transaction: &mut Transaction, kind: u8, name: &[u8]) {
    transaction.delete(DICTIONARY_SPACE, &dictionary_key(kind, name));
}

fn view_key(schema: &str, name: &str) -> Vec<u8> {
    let mut key = schema.as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(name.as_bytes());
    key
}

impl Catalog {
    fn add_schema(&mut self, schema: Schema) {
        let name = schema.name.clone();
        self.schemas.insert(
            name,
            Arc::new(SchemaEntry {
                schema,
                relations: HashMap::new(),
            }),
        );
    }

    fn put(&mut self, schema: &str, name: &str, relation: Relation) {
        if let Some(entry) = self.schemas.get_mut(schema) {
            let new = parents_of(&relation);
            let old = Arc::make_mut(entry).relations.insert(name.into(), relation);
            self.move_child(schema, name, old.as_ref(), new);
        }
    }

    /// Keeps `children` true: a table's foreign keys were `old`'s and name `new` from now on.
    fn move_child(
        &mut self,
        schema: &str,
        name: &str,
        old: Option<&Relation>,
        new: Vec<TableName>,
    ) {
        let old = old.map_or_else(Vec::new, parents_of);
        if old.is_empty() && new.is_empty() {
            return;
        }
        let child: TableName = (schema.into(), name.into());
        let children = Arc::make_mut(&mut self.children);
        for parent in old {
            if let Some(of_parent) = children.get_mut(&parent) {
                of_parent.retain(|known| *known != child);
                if of_parent.is_empty() {
                    children.remove(&parent);
                }
            }
        }
        for parent in new {
            let of_parent = children.entry(parent).or_default();
            if !of_parent.contains(&child) {
                of_parent.push(child.clone());
                of_parent.sort();
            }
        }
    }

    fn take(&mut self, schema: &str, name: &str) -> Option<Relation> {
        let taken = Arc::make_mut(self.schemas.get_mut(schema)?)
            .relations
            .remove(name)?;
        self.move_child(schema, name, Some(&taken), Vec::new());
        Some(taken)
    }
}

/// The tables that a relation's foreign keys name.
fn parents_of(relation: &Relation) -> Vec<TableName> {
    match relation {
        Relation::Table(table) => table
            .foreign_keys
            .iter()
            .map(|key| (key.parent_schema.clone(), key.parent_table.clone()))
            .collect(),
        _ => Vec::new(),
    }
}

/// A database's definitions: where they lie, how they are now, and what names new ones.
#[derive(Clone, Copy)]
pub struct Definitions<'a> {
    /// Holds the dictionary's records and the tables' rows.
    pub store: &'a Store,
    /// The newest picture; [`CatalogChange::commit`] replaces it.
    pub catalog: &'a ArcSwap<Catalog>,
    /// Admits one change at a time, and numbers what is new.
    pub dictionary: &'a Dictionary,
}

/// A change of the catalog on its way. Dropped without `commit`, nothing happened.
pub struct CatalogChange<'a> {
    definitions: Definitions<'a>,
    transaction: Transaction,
    catalog: Catalog,
    _one_at_a_time: MutexGuard<'a, ()>,
}

impl<'a> CatalogChange<'a> {
    /// Waits for other changes to end, and starts from the newest picture.
    pub fn begin(definitions: Definitions<'a>) -> CatalogChange<'a> {
        let one_at_a_time = definitions.dictionary.change.lock();
        let newest = definitions.catalog.load();
        CatalogChange {
            definitions,
            transaction: definitions.store.begin(),
            catalog: Catalog {
                version: newest.version + 1,
                schemas: newest.schemas.clone(),
                children: Arc::clone(&newest.children),
            },
            _one_at_a_time: one_at_a_time,
        }
    }

    /// The picture as the change will leave it.
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

    /// Takes a name out of the catalog and leaves its rows alone.
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

    /// Takes the mark off a space that a table now owns.
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

/// Makes spaces that belong to no table yet.
pub fn create_unclaimed(store: &Store, spaces: &[SpaceId]) -> Result<()> {
    let mut transaction = store.begin();
    for &space in spaces {
        transaction.create_space(space);
        transaction.put(
            DICTIONARY_SPACE,
            &dictionary_key(KIND_UNCLAIMED, &space.0.to_be_bytes()),
            b"",
        );
    }
    transaction.commit()?.wait()?;
    Ok(())
}

/// Drops spaces that belong to no table, or to a temporary one.
pub fn drop_unclaimed(store: &Store, spaces: &[SpaceId]) -> Result<()> {
    let mut transaction = store.begin();
    for &space in spaces {
        transaction.drop_space(space);
        delete_record(&mut transaction, KIND_UNCLAIMED, &space.0.to_be_bytes());
    }
    transaction.commit()?.wait()?;
    Ok(())
}

/// Keeps what ANALYZE TABLE found.
pub fn write_statistics(store: &Store, table: &Table, statistics: Statistics) -> Result<()> {
    if !table.temporary {
        let cardinality = statistics
            .cardinality
            .iter()
            .map(|(name, counts)| (name.clone(), counts.clone()))
            .collect();
        let mut transaction = store.begin();
        put_record(
            &mut transaction,
            KIND_STATISTICS,
            &table.id.0.to_be_bytes(),
            &StatisticsRecord { cardinality },
        )?;
        transaction.commit()?.wait()?;
    }
    table.state.statistics.store(Arc::new(statistics));
    Ok(())
}
