//! Where a connection's session is: [`LocalSession`] or [`RemoteSession`]. Both have the same
//! methods.

use std::sync::Arc;

use porpoise_engine::{Error, Result};
use porpoise_types as types;

use crate::answer::Answer;
use crate::local::LocalSession;
use crate::remote::RemoteSession;
use crate::rows::Columns;

/// How many texts a connection keeps prepared. One more empties the cache.
pub(crate) const CACHED_STATEMENTS_MAX: usize = 64;

/// Where the session is: in this process, or in the one that has the folder open.
pub(crate) enum Backend {
    Local(Box<LocalSession>),
    Remote(Box<RemoteSession>),
}

/// Calls a method that both backends have.
macro_rules! on_either {
    ($backend:expr, $session:ident => $call:expr) => {
        match $backend {
            Backend::Local($session) => $call,
            Backend::Remote($session) => $call,
        }
    };
}

impl Backend {
    pub fn check(&self) -> Result<()> {
        on_either!(self, session => session.check())
    }

    pub fn query(&mut self, sql: &str, answer: &mut Answer<'_>) -> Result<()> {
        on_either!(self, session => session.query(sql, answer))
    }

    pub fn prepare(&mut self, sql: &str) -> Result<u32> {
        on_either!(self, session => session.prepare(sql))
    }

    pub fn execute(
        &mut self,
        id: u32,
        parameters: &[types::Value],
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        on_either!(self, session => session.execute(id, parameters, answer))
    }

    pub fn prepare_cached(&mut self, sql: &str) -> Result<(u32, Arc<Columns>)> {
        on_either!(self, session => session.prepare_cached(sql))
    }

    pub fn remember_columns(&mut self, sql: &str, columns: &Arc<Columns>) {
        if let Backend::Local(session) = self {
            session.remember_columns(sql, columns);
        }
    }

    pub fn close_statement(&mut self, id: u32) {
        on_either!(self, session => session.close_statement(id));
    }

    pub fn in_transaction(&self) -> bool {
        on_either!(self, session => session.in_transaction())
    }

    pub fn id(&self) -> u64 {
        on_either!(self, session => session.id())
    }
}

/// The error of a statement on a connection that has ended.
pub(crate) fn connection_lost() -> Error {
    Error::server_lost()
}
