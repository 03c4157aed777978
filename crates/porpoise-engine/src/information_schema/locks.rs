//! Metadata locks that sessions hold and wait for (MySQL 8.4 manual, 29.12.13.3).

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_types::{Collation, DataType, Value};

use super::*;
use crate::catalog::{Relation, TableId};
use crate::session::metadata::{Mode, Wanted};

pub const TABLES: &[VirtualTable] = &[VirtualTable {
    schema: "performance_schema",
    name: "metadata_locks",
    columns: &[
        ("OBJECT_TYPE", name, false),
        ("OBJECT_SCHEMA", exact, true),
        ("OBJECT_NAME", exact, true),
        ("COLUMN_NAME", name, true),
        ("OBJECT_INSTANCE_BEGIN", ubig, false),
        ("LOCK_TYPE", short, false),
        ("LOCK_DURATION", short, false),
        ("LOCK_STATUS", short, false),
        ("SOURCE", name, true),
        ("OWNER_THREAD_ID", ubig, true),
        ("OWNER_EVENT_ID", ubig, true),
    ],
    rows: metadata_locks,
}];

fn short() -> DataType {
    DataType::Varchar {
        length: 32,
        collation: Collation::UTF8MB4_0900_AI_CI,
    }
}

/// A lock that somebody has or wants.
struct Lock {
    kind: &'static str,
    /// Schema and name; the number that stands for the object.
    object: (Option<CompactString>, Option<CompactString>, u64),
    lock_type: &'static str,
    duration: &'static str,
    is_granted: bool,
    session: u64,
}

impl Lock {
    fn values(self) -> [Value; 11] {
        let (schema, name, number) = self.object;
        [
            text(self.kind),
            some_text(schema.as_deref()),
            some_text(name.as_deref()),
            Value::Null,
            Value::UInt(number),
            text(self.lock_type),
            text(self.duration),
            text(if self.is_granted {
                "GRANTED"
            } else {
                "PENDING"
            }),
            text(""),
            Value::UInt(self.session),
            Value::Null,
        ]
    }
}

fn metadata_locks(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for lock in all_locks(exec) {
        row(exec, &lock.values())?;
    }
    Ok(())
}

fn all_locks(exec: &Exec<'_>) -> Vec<Lock> {
    let catalog = exec.engine.catalog.load();
    let mut names: HashMap<TableId, (CompactString, CompactString)> = HashMap::new();
    for entry in catalog.schemas.values() {
        for relation in entry.relations.values() {
            if let Relation::Table(table) = relation {
                names.insert(table.id, (table.schema.clone(), table.name.clone()));
            }
        }
    }
    let of_table = |table: TableId, mode: Mode, is_granted, session| {
        // A session's temporary tables are its own business.
        let (schema, name) = names.get(&table).cloned()?;
        Some(Lock {
            kind: "TABLE",
            object: (Some(schema), Some(name), u64::from(table.0)),
            lock_type: mode.name(),
            duration: mode.duration(),
            is_granted,
            session,
        })
    };
    let global = |lock_type, is_granted, session| Lock {
        kind: "GLOBAL",
        object: (None, None, 0),
        lock_type,
        duration: if lock_type == "SHARED" {
            "EXPLICIT"
        } else {
            "STATEMENT"
        },
        is_granted,
        session,
    };
    let mut locks = Vec::new();
    for session in exec.engine.processes.all() {
        if session.held.has_global() {
            locks.push(global("SHARED", true, session.id));
        }
        for (table, mode) in session.held.tables() {
            locks.extend(of_table(table, mode, true, session.id));
        }
        match exec.engine.metadata_waits.of(session.id) {
            Some(Wanted::Table(table, mode)) => {
                locks.extend(of_table(table, mode, false, session.id));
            }
            Some(Wanted::Global) => locks.push(global("SHARED", false, session.id)),
            Some(Wanted::Change) => {
                locks.push(global("INTENTION_EXCLUSIVE", false, session.id));
            }
            None => {}
        }
    }
    let (held, waiting) = exec.engine.named_locks.all();
    let named = held.into_iter().map(|lock| (lock, true));
    for ((name, session), is_granted) in named.chain(waiting.into_iter().map(|lock| (lock, false)))
    {
        locks.push(Lock {
            kind: "USER LEVEL LOCK",
            object: (None, Some(name), 0),
            lock_type: "EXCLUSIVE",
            duration: "EXPLICIT",
            is_granted,
            session,
        });
    }
    locks
}
