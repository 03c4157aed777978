//! A session of an engine in this process: statements run on the caller's thread.

use std::collections::HashMap;
use std::sync::Arc;

use porpoise_engine::session::StatementOutcome;
use porpoise_engine::{Result, Session};
use porpoise_types as types;

use crate::answer::Answer;
use crate::connection::STATEMENTS_KEPT_MAX;
use crate::rows::Columns;

pub(crate) struct Here {
    session: Session,
    kept: HashMap<Box<str>, Kept>,
}

/// A prepared statement, and the columns of its last result.
#[derive(Clone, Default)]
struct Kept {
    id: u32,
    columns: Arc<Columns>,
}

impl Here {
    pub fn new(mut session: Session) -> Here {
        session.set_multi_statements(false);
        Here {
            session,
            kept: HashMap::new(),
        }
    }

    /// Error 2013 after somebody has killed the connection.
    pub fn check(&self) -> Result<()> {
        if self.session.control().is_connection_killed() {
            return Err(crate::connection::lost());
        }
        Ok(())
    }

    /// Holds the caller back until what was committed is durable.
    fn finish(&mut self, ran: Result<StatementOutcome>) -> Result<()> {
        let tracked = self.session.take_state_changes();
        if tracked.state_changed {
            // A statement is parsed with the sql_mode of its time.
            self.forget_kept();
        }
        if let Some(commit) = ran?.commit {
            commit.wait()?;
        }
        Ok(())
    }

    fn forget_kept(&mut self) {
        for (_, kept) in self.kept.drain() {
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

    /// Prepares the text, unless it was lately.
    pub fn keep(&mut self, sql: &str) -> Result<(u32, Arc<Columns>)> {
        if let Some(kept) = self.kept.get(sql) {
            return Ok((kept.id, kept.columns.clone()));
        }
        if self.kept.len() >= STATEMENTS_KEPT_MAX {
            self.forget_kept();
        }
        let kept = Kept {
            id: self.prepare(sql)?,
            columns: Arc::default(),
        };
        self.kept.insert(sql.into(), kept.clone());
        Ok((kept.id, kept.columns))
    }

    /// Remembers what columns a kept text had.
    pub fn note_columns(&mut self, sql: &str, columns: &Arc<Columns>) {
        if let Some(kept) = self.kept.get_mut(sql) {
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
