//! Provisional: what the runtime needs of a routine's definition.
use std::sync::Arc;
use compact_str::CompactString;
use parking_lot::Mutex;
use porpoise_core::variables::{self, Position, SqlMode};
use porpoise_catalog::Catalog;
use crate::code::Program;
use porpoise_session::session_state::SessionState;
use porpoise_types::{Charset, Collation, Value};

#[derive(Debug)]
pub struct Routine {
    pub schema: CompactString,
    pub name: CompactString,
    pub definer: String,
    pub invoker: bool,
    pub sql_mode: SqlMode,
    pub client_charset: Charset,
    pub connection_collation: Collation,
    pub collation: Collation,
    pub text: String,
    pub compiled: Compiled,
}
#[derive(Default)]
pub struct Compiled(Mutex<Vec<(u8, u64, Arc<Program>)>>);
impl std::fmt::Debug for Compiled { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("Compiled") } }
impl Compiled {
    pub fn get(&self, digits: u8, version: u64) -> Option<Arc<Program>> {
        let kept = self.0.lock();
        kept.iter().find(|(of, at, _)| *of == digits && *at == version).map(|(_, _, p)| p.clone())
    }
    pub fn keep(&self, digits: u8, version: u64, program: Arc<Program>) {
        let mut kept = self.0.lock();
        kept.retain(|(of, at, _)| *of != digits && *at == version);
        kept.push((digits, version, program));
    }
}
impl Routine {
    pub fn create_text(&self) -> String { self.text.clone() }
    pub fn is_deterministic(&self) -> bool { false }
    pub fn is_invokers(&self) -> bool { self.invoker }
    pub fn definer_name(&self) -> (&str, &str) { self.definer.rsplit_once('@').unwrap_or((&self.definer, "%")) }
    pub fn has_settings_of(&self, state: &SessionState) -> bool {
        state.sql_mode == self.sql_mode && state.client_charset == self.client_charset && state.collation == self.connection_collation
    }
    pub fn settings(&self) -> Vec<(Position, Value)> { let _ = variables::find("sql_mode"); Vec::new() }
}
/// Of a table, in the order in which they are fired.
pub fn triggers(_catalog: &Catalog, _table: &porpoise_catalog::Table) -> Vec<(porpoise_sql::ast::TriggerTime, porpoise_sql::ast::TriggerEvent, Arc<Routine>)> { Vec::new() }
pub fn function(_catalog: &Catalog, _schema: &str, _name: &str) -> Option<Arc<Routine>> { None }
pub fn procedure(_catalog: &Catalog, _schema: &str, _name: &str) -> Option<Arc<Routine>> { None }
