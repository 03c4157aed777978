//! The data dictionary: definitions in a storage space of their own.
//!
//! ```text
//! 's' schema              SchemaRecord
//! 't' table id            TableRecord
//! 'w' schema 0 name       ViewRecord
//! 'p' schema 0 kind name  ProgramRecord
//! 'i' table id            StatisticsRecord (ANALYZE TABLE)
//! 'a' host 0 user         AccountRecord
//! 'd'                     the key that says how users without an account are asked
//! 'x' space               nothing: a space that belongs to no table yet, or only to a session
//! '2' xid chunk           a prepared transaction, as storage keeps it (two-phase commit)
//! 'f'                     the format's version
//! 'n'                     lower_case_table_names, as the database was made
//! ```
//!
//! Most values are JSON, so that a field can be added without a new format.
//!
//! DDL is atomic: a [`CatalogChange`](crate::CatalogChange) holds the dictionary writes,
//! `create_space` and `drop_space` in one storage transaction, and the new [`Catalog`] beside it.
//! [`commit`](crate::CatalogChange::commit) makes the first durable, then the second visible. One
//! change is made at a time.
//!
//! Rows that DDL copies go into spaces marked 'x' by transactions of their own, so that memory
//! stays bounded; the change that puts the finished table in place removes the marks. Spaces still
//! marked at the next start are what a crash or a temporary table left, and are dropped.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use porpoise_core::error::{Error, Result};
use porpoise_mdl::MetadataLocks;
use porpoise_storage::{Direction, SpaceId, Store, Transaction};
use porpoise_types::Collation;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change::Definitions;
use super::expression::BindExpression;
use super::program::{
    Compiled, ProgramKind, ProgramRecord, RoutineLock, StoredProgram, program_name,
};
use super::record::{SchemaRecord, TableRecord, ViewRecord};
use super::statistics::StatisticsRecord;
use super::{
    Catalog, Relation, Schema, SchemaEntry, Statistics, Table, TableId, TableName, TableState, View,
};

/// The space that holds the dictionary.
pub const DICTIONARY_SPACE: SpaceId = SpaceId(0);

/// What this version writes. A higher one is refused.
const FORMAT: u32 = 1;

const FORMAT_KEY: &[u8] = b"f";
const LOWER_CASE_KEY: &[u8] = b"n";
/// The records of accounts, which the crate of accounts reads and writes itself.
pub const KIND_ACCOUNT: u8 = b'a';
/// The record of the key that chooses plugins for users without an account.
pub const KIND_DECOY_KEY: u8 = b'd';
/// The kind of prepared transactions' records, which storage writes and reads.
pub const KIND_PREPARED: u8 = b'2';
/// The kind of installed components' records.
pub const KIND_COMPONENT: u8 = b'c';
/// The kind of foreign servers' records.
pub const KIND_SERVER: u8 = b'r';
pub(crate) const KIND_SCHEMA: u8 = b's';
pub(crate) const KIND_TABLE: u8 = b't';
pub(crate) const KIND_VIEW: u8 = b'w';
pub(crate) const KIND_PROGRAM: u8 = b'p';
pub(crate) const KIND_STATISTICS: u8 = b'i';
pub(crate) const KIND_UNCLAIMED: u8 = b'x';

/// Schemas that always exist and hold tables made by code.
pub const BUILT_IN_SCHEMAS: [&str; 4] =
    ["information_schema", "mysql", "performance_schema", "sys"];

/// What DDL statements share: the lock that admits one change at a time, and the next ids and
/// versions.
pub struct Dictionary {
    /// `lower_case_table_names` is 1: all names are in lower case, as statements' are then.
    pub lowers_names: bool,
    /// Held by the change under way.
    pub(crate) change: Mutex<()>,
    next_table: AtomicU32,
    next_version: AtomicU64,
    locks: Arc<MetadataLocks>,
}

impl Dictionary {
    /// Reads every definition. The time it takes grows with the number of tables, not of rows.
    ///
    /// `lowers_names` is what `lower_case_table_names` is to be: what the database was made with,
    /// where the caller doesn't say.
    pub fn open(
        store: &Store,
        locks: &Arc<MetadataLocks>,
        binder: BindExpression,
        lowers_names: Option<bool>,
    ) -> Result<(Dictionary, Catalog)> {
        let lowers_names = prepare(store, lowers_names)?;
        let mut catalog = Catalog {
            version: 1,
            programs_version: 1,
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
                read_only: false,
                encrypted: false,
            });
        }
        for (_, record) in read_kind::<SchemaRecord>(store, KIND_SCHEMA)? {
            let collation =
                Collation::by_id(record.collation).unwrap_or(Collation::UTF8MB4_0900_AI_CI);
            catalog.add_schema(Schema {
                name: record.name,
                collation,
                read_only: record.read_only,
                encrypted: record.encrypted,
            });
        }
        let mut statistics: HashMap<Vec<u8>, StatisticsRecord> =
            read_kind(store, KIND_STATISTICS)?.into_iter().collect();
        let (mut last_table, mut last_version) = (0, 0);
        for (id, record) in read_kind::<TableRecord>(store, KIND_TABLE)? {
            last_table = last_table.max(record.id);
            last_version = last_version.max(record.version);
            let table = record.bind(Arc::new(TableState::new(locks)), binder)?;
            if let Some(found) = statistics.remove(&id) {
                table.state.statistics.store(Arc::new(found.bind(&table)));
            }
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
        for (_, record) in read_kind::<ProgramRecord>(store, KIND_PROGRAM)? {
            catalog.put_program(record, |kind| {
                last_table += 1;
                routine_lock(kind, locks, TableId(last_table))
            });
        }
        let dictionary = Dictionary {
            lowers_names,
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

    /// The state of a new table: what is kept beside its definition.
    pub fn new_state(&self) -> TableState {
        TableState::new(&self.locks)
    }

    /// The metadata lock of a new program; only a routine has one.
    pub(crate) fn new_routine_lock(&self, kind: ProgramKind) -> Option<RoutineLock> {
        routine_lock(kind, &self.locks, TableId(self.next_table_id()))
    }

    /// A version for a new or changed definition, above all given before.
    pub fn next_version(&self) -> u64 {
        self.next_version.fetch_add(1, Ordering::Relaxed)
    }
}

/// Makes the dictionary's space on a fresh store, and clears away what a crash left. Returns whether
/// names are in lower case: a database keeps what it was made with.
fn prepare(store: &Store, wanted: Option<bool>) -> Result<bool> {
    let mut transaction = store.begin();
    match transaction.get(DICTIONARY_SPACE, FORMAT_KEY, <[u8]>::to_vec)? {
        None => {
            transaction.create_space(DICTIONARY_SPACE);
            transaction.insert(DICTIONARY_SPACE, FORMAT_KEY, FORMAT.to_string().as_bytes());
            if wanted == Some(true) {
                transaction.insert(DICTIONARY_SPACE, LOWER_CASE_KEY, b"1");
            }
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
    let kept = transaction.get(DICTIONARY_SPACE, LOWER_CASE_KEY, |value| value == b"1")?;
    let kept = kept.unwrap_or(false);
    if let Some(wanted) = wanted.filter(|wanted| *wanted != kept) {
        let (wanted, kept) = (u8::from(wanted), u8::from(kept));
        return Err(Error::engine_error(format!(
            "Different lower_case_table_names settings for server ('{wanted}') and data dictionary ('{kept}')."
        )));
    }
    for space in unclaimed(store)? {
        transaction.drop_space(space);
        let mark = dictionary_key(KIND_UNCLAIMED, &space.0.to_be_bytes());
        transaction.delete(DICTIONARY_SPACE, &mark);
    }
    if transaction.has_writes() {
        transaction.commit()?.wait()?;
    }
    Ok(kept)
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

pub(crate) fn view_key(schema: &str, name: &str) -> Vec<u8> {
    let mut key = schema.as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(name.as_bytes());
    key
}

fn routine_lock(kind: ProgramKind, locks: &Arc<MetadataLocks>, id: TableId) -> Option<RoutineLock> {
    let is_function = match kind {
        ProgramKind::Function => true,
        ProgramKind::Procedure => false,
        ProgramKind::Trigger | ProgramKind::Event => return None,
    };
    let state = Arc::new(TableState::of_routine(locks, is_function));
    Some(RoutineLock { id, state })
}

pub(crate) fn program_key(schema: &str, kind: ProgramKind, name: &str) -> Vec<u8> {
    let (_, name) = program_name(kind, name);
    view_key(schema, &format!("{} {name}", kind.name()))
}

impl Catalog {
    /// Puts a program in place. One of that name that is there already keeps its metadata lock; a new
    /// routine gets `new_lock`'s.
    pub(crate) fn put_program(
        &mut self,
        record: ProgramRecord,
        new_lock: impl FnOnce(ProgramKind) -> Option<RoutineLock>,
    ) {
        if let Some(entry) = self.schemas.get_mut(&record.schema) {
            let name = program_name(record.kind, &record.name);
            let lock = match entry.programs.get(&name) {
                Some(old) => old.lock.clone(),
                None => new_lock(record.kind),
            };
            let program = StoredProgram {
                record,
                lock,
                compiled: Compiled::default(),
                statistics: Arc::default(),
            };
            let programs = &mut Arc::make_mut(entry).programs;
            programs.insert(name, Arc::new(program));
        }
    }

    pub(crate) fn add_schema(&mut self, schema: Schema) {
        let name = schema.name.clone();
        self.schemas.insert(
            name,
            Arc::new(SchemaEntry {
                schema,
                relations: HashMap::new(),
                programs: HashMap::new(),
            }),
        );
    }

    pub(crate) fn put(&mut self, schema: &str, name: &str, relation: Relation) {
        if let Some(entry) = self.schemas.get_mut(schema) {
            let new = parents_of(&relation);
            let old = Arc::make_mut(entry).relations.insert(name.into(), relation);
            self.move_child(schema, name, old.as_ref(), new);
        }
    }

    /// Updates `children`: a table's foreign keys were `old`'s and reference the tables `new` from
    /// now on.
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

    pub(crate) fn take(&mut self, schema: &str, name: &str) -> Option<Relation> {
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

/// The spaces that belong to no table yet, or only to a session.
pub fn unclaimed(store: &Store) -> Result<Vec<SpaceId>> {
    let marks = scan_kind(store, KIND_UNCLAIMED, |_| Ok(()))?;
    let spaces = marks.iter().filter_map(|(key, ())| {
        let number = <[u8; 4]>::try_from(key.as_slice()).ok()?;
        Some(SpaceId(u32::from_be_bytes(number)))
    });
    Ok(spaces.collect())
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

/// Changes what is known of a table's contents: of a temporary one in memory, of others in the
/// dictionary too. Nothing happens if the table has been dropped or altered meanwhile.
pub fn change_statistics(
    definitions: Definitions<'_>,
    table: &Table,
    change: impl FnOnce(&mut Statistics),
) -> Result<()> {
    let _one_at_a_time = definitions.dictionary.change.lock();
    let mut statistics = Statistics::clone(&table.state.statistics.load());
    change(&mut statistics);
    if !table.temporary {
        let newest = definitions.catalog.load();
        let known = newest.base_table(&table.schema, &table.name);
        if known.is_none_or(|known| known.version != table.version) {
            return Ok(());
        }
        let mut transaction = definitions.store.begin();
        put_statistics(&mut transaction, table, &statistics)?;
        transaction.commit()?.wait()?;
    }
    table.state.statistics.store(Arc::new(statistics));
    Ok(())
}

/// Writes the record of a table's statistics.
pub(crate) fn put_statistics(
    transaction: &mut Transaction,
    table: &Table,
    statistics: &Statistics,
) -> Result<()> {
    put_record(
        transaction,
        KIND_STATISTICS,
        &table.id.0.to_be_bytes(),
        &StatisticsRecord::of(statistics),
    )
}
