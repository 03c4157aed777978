//! TEMPORARY: what the runtime needs of a routine's definition, from a registry in memory.
#![allow(missing_docs)]
use std::sync::Arc;

use compact_str::CompactString;
use parking_lot::{Mutex, RwLock};
use porpoise_catalog::{Catalog, Table};
use porpoise_core::variables::{self, Position, SqlMode};
use porpoise_session::session_state::SessionState;
use porpoise_sql::ast;
use porpoise_types::{Charset, Collation, Value};

use crate::code::Program;

#[derive(Debug)]
pub struct Routine {
    pub kind: u8,
    pub schema: CompactString,
    pub name: CompactString,
    pub table: CompactString,
    pub fired: Option<(ast::TriggerTime, ast::TriggerEvent)>,
    pub definer: String,
    pub invoker: bool,
    pub sql_mode: SqlMode,
    pub sql_mode_value: Value,
    pub client_charset: Charset,
    pub connection_collation: Collation,
    pub collation: Collation,
    pub text: String,
    pub compiled: Compiled,
}

pub static REGISTRY: RwLock<Vec<Arc<Routine>>> = RwLock::new(Vec::new());

#[derive(Debug, Default)]
pub struct Compiled(Mutex<Vec<(u8, u64, Arc<Program>)>>);

impl Compiled {
    pub fn get(&self, digits: u8, version: u64) -> Option<Arc<Program>> {
        let kept = self.0.lock();
        let mut kept = kept.iter();
        let found = kept.find(|(of, at, _)| *of == digits && *at == version);
        found.map(|(.., program)| Arc::clone(program))
    }

    pub fn keep(&self, digits: u8, version: u64, program: Arc<Program>) {
        let mut kept = self.0.lock();
        kept.retain(|(of, at, _)| *of != digits && *at == version);
        kept.push((digits, version, program));
    }
}

impl Routine {
    pub fn create_text(&self) -> String {
        self.text.clone()
    }
    pub fn is_deterministic(&self) -> bool {
        false
    }
    pub fn is_invokers(&self) -> bool {
        self.invoker
    }
    pub fn definer_name(&self) -> (&str, &str) {
        self.definer.rsplit_once('@').unwrap_or((&self.definer, "%"))
    }
    pub fn has_settings_of(&self, state: &SessionState) -> bool {
        state.sql_mode == self.sql_mode
            && state.client_charset == self.client_charset
            && state.collation == self.connection_collation
    }
    pub fn settings(&self) -> Vec<(Position, Value)> {
        [
            ("sql_mode", self.sql_mode_value.clone()),
            ("character_set_client", Value::text(self.client_charset.name())),
            ("character_set_connection", Value::text(self.connection_collation.charset().name())),
            ("collation_connection", Value::text(self.connection_collation.name())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((variables::find(name)?, value)))
        .collect()
    }
}

fn find(kind: u8, schema: &str, name: &str) -> Option<Arc<Routine>> {
    let all = REGISTRY.read();
    all.iter()
        .find(|r| r.kind == kind && r.schema == schema && r.name.eq_ignore_ascii_case(name))
        .cloned()
}
pub fn procedure(_: &Catalog, schema: &str, name: &str) -> Option<Arc<Routine>> {
    find(0, schema, name)
}
pub fn function(_: &Catalog, schema: &str, name: &str) -> Option<Arc<Routine>> {
    find(1, schema, name)
}
pub fn triggers(
    _: &Catalog,
    table: &Table,
) -> Vec<(ast::TriggerTime, ast::TriggerEvent, Arc<Routine>)> {
    let all = REGISTRY.read();
    all.iter()
        .filter(|r| r.kind == 2 && r.schema == table.schema && r.table == table.name)
        .filter_map(|r| {
            let (time, event) = r.fired?;
            Some((time, event, Arc::clone(r)))
        })
        .collect()
}
