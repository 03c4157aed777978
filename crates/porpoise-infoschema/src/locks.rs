//! Metadata locks that sessions hold and wait for (MySQL 8.4 manual, 29.12.13.3).

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_catalog::{Relation, TableId};
use porpoise_mdl::queue::MdlRow;
use porpoise_mdl::{Duration, Mode, Object};
use porpoise_types::{Collation, DataType, Value};

use super::*;

pub const TABLES: &[VirtualSource] = &[VirtualSource {
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

/// A metadata lock that a session holds or waits for.
struct Lock {
    kind: &'static str,
    /// Schema and name; the number that stands for the object.
    object: (Option<CompactString>, Option<CompactString>, u64),
    lock_type: &'static str,
    duration: &'static str,
    is_granted: bool,
    /// Of whom; 0 for a prepared XA branch that no session is at.
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
            match self.session {
                0 => Value::Null,
                session => Value::UInt(session),
            },
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
    let mut names: HashMap<TableId, (&str, CompactString, CompactString)> = HashMap::new();
    for entry in catalog.schemas.values() {
        for (relation_name, relation) in &entry.relations {
            let id = match relation {
                Relation::Table(table) => table.id,
                Relation::View(view) => view.id,
                Relation::Virtual(_) => continue,
            };
            let schema = entry.schema.name.clone();
            names.insert(id, ("TABLE", schema, relation_name.clone()));
        }
        for program in entry.programs.values() {
            if let Some(lock) = &program.lock {
                let record = &program.record;
                let schema = entry.schema.name.clone();
                names.insert(lock.id, (record.kind.name(), schema, record.name.clone()));
            }
        }
    }
    let mut found = exec.engine.locks.metadata.shown();
    for session in exec.engine.locks.sessions.all() {
        let inside = |object, mode, duration| MdlRow {
            session: session.id,
            object,
            mode,
            duration,
            is_granted: true,
        };
        let intends = |object| inside(object, Mode::IntentionExclusive, Duration::Statement);
        found.extend(session.held.changes().then(|| intends(Object::Global)));
        found.extend(session.held.commits().then(|| intends(Object::Commit)));
        let tables = session.held.tables().into_iter();
        found.extend(
            tables.map(|(table, mode)| inside(Object::Table(table), mode, Duration::Transaction)),
        );
    }
    // Those of prepared XA branches are no session's, or that of the session which stays at them.
    for (owner, tables) in exec.engine.xa.locked_tables() {
        found.extend(tables.into_iter().map(|(table, usage)| MdlRow {
            session: owner.unwrap_or(0),
            object: Object::Table(table),
            mode: usage.mode(),
            duration: Duration::Transaction,
            is_granted: true,
        }));
    }
    let lock = |shown: MdlRow| {
        let (kind, object) = match shown.object {
            Object::Global => ("GLOBAL", (None, None, 0)),
            Object::Commit => ("COMMIT", (None, None, 0)),
            Object::Backup => ("BACKUP LOCK", (None, None, 0)),
            Object::Schema(name) => ("SCHEMA", (Some(name), None, 0)),
            Object::Table(id) | Object::Function(id) | Object::Procedure(id) => {
                // What is being dropped has no name any more.
                let (kind, schema, name) = names.get(&id).cloned()?;
                (kind, (Some(schema), Some(name), u64::from(id.0)))
            }
        };
        Some(Lock {
            kind,
            object,
            // A routine is called; it has no rows to read.
            lock_type: match shown.mode {
                Mode::SharedRead if matches!(kind, "FUNCTION" | "PROCEDURE") => Mode::Shared.name(),
                mode => mode.name(),
            },
            duration: shown.duration.name(),
            is_granted: shown.is_granted,
            session: shown.session,
        })
    };
    let mut locks: Vec<Lock> = found.into_iter().filter_map(lock).collect();
    let (held, waiting) = exec.engine.locks.named.all();
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
