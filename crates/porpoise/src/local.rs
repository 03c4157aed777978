//! A session of an engine in this process: statements run on the caller's thread.

use std::collections::HashMap;
use std::sync::Arc;

use porpoise_engine::session::StatementOutcome;
use porpoise_engine::{Result, Session};
use porpoise_types as types;

use crate::answer::Answer;
use crate::backend::CACHED_STATEMENTS_MAX;
use crate::rows::Columns;

pub(crate) struct LocalSession {
    session: Session,
    cached: HashMap<Box<str>, CachedStatement>,
}

/// A prepared statement, and the columns of its last result.
#[derive(Clone, Default)]
struct CachedStatement {
    id: u32,
    columns: Arc<Columns>,
}

impl LocalSession {
    pub fn new(mut session: Session) -> LocalSession {
        session.set_multi_statements(false);
        LocalSession {
            session,
            cached: HashMap::new(),
        }
    }

    /// Error 2013 after somebody has killed the connection.
    pub fn check(&self) -> Result<()> {
        if self.session.control().is_connection_killed() {
            return Err(crate::backend::connection_lost());
        }
        Ok(())
    }

    /// Waits until what was committed is as durable as asked for.
    fn finish(&mut self, ran: Result<StatementOutcome>) -> Result<()> {
        let tracked = self.session.take_state_changes();
        if tracked.state_changed {
            // A statement is parsed with the sql_mode of its time.
            self.clear_cache();
        }
        if let Some(commit) = ran?.commit {
            commit.wait()?;
        }
        Ok(())
    }

    fn clear_cache(&mut self) {
        for (_, kept) in self.cached.drain() {
            self.session.close_statement(kept.id);
        }
    }

    pub fn query(&mut self, sql: &str, answer: &mut Answer<'_>) -> Result<()> {
        let ran = self.session.query(sql.as_bytes(), answer);
        self.finish(ran)
    }

    pub fn prepare(&mut self, sql: &str) -> Result<u32> {
        Ok(self.session.prepare(sql.as_bytes())?.id)
    }

    pub fn execute(
        &mut self,
        id: u32,
        parameters: &[types::Value],
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let ran = self.session.execute(id, parameters, answer);
        self.finish(ran)
    }

    /// The prepared statement of a text, from the cache if it is there, and the columns it had
    /// last.
    pub fn prepare_cached(&mut self, sql: &str) -> Result<(u32, Arc<Columns>)> {
        if let Some(kept) = self.cached.get(sql) {
            return Ok((kept.id, kept.columns.clone()));
        }
        if self.cached.len() >= CACHED_STATEMENTS_MAX {
            self.clear_cache();
        }
        let kept = CachedStatement {
            id: self.prepare(sql)?,
            columns: Arc::default(),
        };
        self.cached.insert(sql.into(), kept.clone());
        Ok((kept.id, kept.columns))
    }

    /// Remembers what columns a cached text had.
    pub fn remember_columns(&mut self, sql: &str, columns: &Arc<Columns>) {
        if let Some(kept) = self.cached.get_mut(sql) {
            kept.columns = columns.clone();
        }
    }

    pub fn close_statement(&mut self, id: u32) {
        self.session.close_statement(id);
    }

    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    pub fn id(&self) -> u64 {
        self.session.id()
    }
}
