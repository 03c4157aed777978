//! Definitions of stored programs: procedures, functions, triggers, events.
//!
//! A program is kept as the text that made it, with the settings that it was made under. What is
//! compiled from it is kept beside the definition, by whoever compiles.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use parking_lot::Mutex;
use porpoise_mdl::TableId;
use porpoise_sql::ast::{TriggerEvent, TriggerTime};
use serde::{Deserialize, Serialize};

use crate::definition::TableState;
use crate::event::EventRecord;
use crate::program_statistics::ProgramStatistics;

/// What a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProgramKind {
    /// Of CREATE PROCEDURE.
    Procedure,
    /// Of CREATE FUNCTION.
    Function,
    /// Of CREATE TRIGGER.
    Trigger,
    /// Of CREATE EVENT.
    Event,
}

impl ProgramKind {
    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            ProgramKind::Procedure => "PROCEDURE",
            ProgramKind::Function => "FUNCTION",
            ProgramKind::Trigger => "TRIGGER",
            ProgramKind::Event => "EVENT",
        }
    }
}

/// A program as the dictionary keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// What it is.
    pub kind: ProgramKind,
    /// The schema that it is in.
    pub schema: CompactString,
    /// As it was created.
    pub name: CompactString,
    /// The statement that made it.
    pub sql: String,
    /// `user@host` of its definer.
    pub definer: String,
    /// SQL SECURITY INVOKER.
    #[serde(default)]
    pub invoker: bool,
    /// DETERMINISTIC.
    #[serde(default)]
    pub deterministic: bool,
    /// `sql_mode` when it was created.
    pub sql_mode: String,
    /// `character_set_client` then.
    pub client_charset: CompactString,
    /// `collation_connection` then.
    pub connection_collation: CompactString,
    /// The number of the schema's collation then: that of its texts.
    pub collation: u16,
    /// Seconds since 1970.
    pub created_s: i64,
    /// What ALTER has said since: it counts instead of what the text says.
    #[serde(default)]
    pub altered: Altered,
    /// What fires it; `None` unless it is a trigger.
    #[serde(default)]
    pub trigger: Option<TriggerRecord>,
    /// When it runs; `None` unless it is an event. Of `sql` only the body counts then.
    #[serde(default)]
    pub event: Option<EventRecord>,
}

/// What ALTER PROCEDURE and ALTER FUNCTION have said of a routine; `None`: nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Altered {
    /// When, in seconds since 1970.
    pub at_s: Option<i64>,
    /// COMMENT.
    pub comment: Option<String>,
    /// `NO SQL`, `READS SQL DATA`…
    pub data_access: Option<CompactString>,
}

/// What fires a trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerRecord {
    /// The table of the same schema whose rows fire it.
    pub table: CompactString,
    /// BEFORE; else AFTER.
    pub is_before: bool,
    /// `INSERT`, `UPDATE`, `DELETE`.
    pub event: CompactString,
    /// Its place among those of the same time and event: the least goes first.
    pub order: u32,
}

impl TriggerRecord {
    /// When and by what it is fired.
    pub fn fired(&self) -> (TriggerTime, TriggerEvent) {
        let time = match self.is_before {
            true => TriggerTime::Before,
            false => TriggerTime::After,
        };
        let event = match self.event.as_str() {
            "INSERT" => TriggerEvent::Insert,
            "UPDATE" => TriggerEvent::Update,
            _ => TriggerEvent::Delete,
        };
        (time, event)
    }
}

/// A routine's metadata lock: held by the statements that call it, and by whoever drops or alters it.
#[derive(Clone, Debug)]
pub struct RoutineLock {
    /// Numbered with tables and views.
    pub id: TableId,
    /// Shared by all versions of the definition.
    pub state: Arc<TableState>,
}

/// A program that can be run.
#[derive(Debug)]
pub struct StoredProgram {
    /// What the dictionary keeps of it.
    pub record: ProgramRecord,
    /// `None` for a trigger or event: their metadata lock is their table's, or nobody's.
    pub lock: Option<RoutineLock>,
    /// What was compiled from it.
    pub compiled: Compiled,
    /// What its runs have taken.
    pub statistics: Arc<ProgramStatistics>,
}

/// A program's name among those of its schema: its kind, and the name in lower case.
pub type ProgramName = (ProgramKind, CompactString);

/// The name under which a program is found.
pub(crate) fn program_name(kind: ProgramKind, name: &str) -> ProgramName {
    (kind, name.to_lowercase().into())
}

/// Under what something was compiled, the catalog's version, and what came out.
type Kept = (u64, u64, Arc<dyn Any + Send + Sync>);

/// What is compiled from a program, for one version of the catalog.
#[derive(Default)]
pub struct Compiled(Mutex<Vec<Kept>>);

impl Compiled {
    /// What was compiled under these settings for this version of the catalog.
    pub fn get<T: Any + Send + Sync>(&self, settings: u64, version: u64) -> Option<Arc<T>> {
        let kept = self.0.lock();
        let mut kept = kept.iter();
        let found = kept.find(|(under, of, _)| *under == settings && *of == version);
        found.and_then(|(.., compiled)| Arc::clone(compiled).downcast().ok())
    }

    /// Keeps it; what was compiled for other versions goes.
    pub fn keep<T: Any + Send + Sync>(&self, settings: u64, version: u64, compiled: Arc<T>) {
        let mut kept = self.0.lock();
        kept.retain(|(under, of, _)| *under != settings && *of == version);
        kept.push((settings, version, compiled));
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled")
    }
}
