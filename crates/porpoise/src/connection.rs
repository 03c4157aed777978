//! A connection: statements on the caller's thread ([`LocalSession`]), or in the process that has
//! the folder open ([`RemoteSession`]).
//!
//! 1. A text without parameters goes to [`Session::query`], which finds its plan by its digest.
//! 2. A text with parameters is prepared once and cached until a setting changes.
//! 3. The answer is collected, or a closure sees each row ([`Answer`]).
//! 4. A change waits until its commit is as durable as `innodb_flush_log_at_trx_commit` asks.
//!
//! Wherever the session is, its statements, rows and errors are the same.
//!
//! Statements and transactions borrow the connection shared, so that several can be at hand; a
//! closure that sees a row is inside a statement, and can't run another (error 2014).

use std::cell::{Cell, RefCell, RefMut};
use std::ops::Deref;
use std::sync::Arc;

use porpoise_engine::{Error, Result, Session};
use porpoise_types as types;

use crate::answer::{Answer, Sink};
use crate::backend::Backend;
use crate::database::Instance;
use crate::local::LocalSession;
use crate::parameters::{self, Parameters};
use crate::remote::RemoteSession;
use crate::rows::{Columns, Row, Rows};

/// How a statement ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows that were changed.
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that was given, 0 if none was.
    pub last_insert_id: u64,
    /// How many warnings SHOW WARNINGS shows.
    pub warnings: u16,
    /// A summary, such as `Records: 3  Duplicates: 0  Warnings: 0`; often empty.
    pub message: String,
}

/// A session of an embedded database: it can go from thread to thread, and is one thread's at a
/// time.
///
/// Dropped, it rolls back what isn't committed. After a KILL by somebody else its statements are
/// error 2013.
pub struct Connection {
    // Before the instance: the session ends before the database does.
    backend: RefCell<Backend>,
    /// The parameters of the statement under way.
    bound: RefCell<Vec<types::Value>>,
    /// A transaction whose guard was dropped inside a statement: rolled back before the next.
    is_rollback_pending: Cell<bool>,
    /// A [`Transaction`] is alive.
    has_guard: Cell<bool>,
    _instance: Option<Arc<Instance>>,
}

impl Connection {
    pub(crate) fn local(session: Session, instance: Arc<Instance>) -> Connection {
        Connection::new(
            Backend::Local(Box::new(LocalSession::new(session))),
            Some(instance),
        )
    }

    pub(crate) fn remote(session: RemoteSession) -> Connection {
        Connection::new(Backend::Remote(Box::new(session)), None)
    }

    fn new(backend: Backend, instance: Option<Arc<Instance>>) -> Connection {
        Connection {
            backend: RefCell::new(backend),
            bound: RefCell::default(),
            is_rollback_pending: Cell::new(false),
            has_guard: Cell::new(false),
            _instance: instance,
        }
    }

    /// The session, unless one of its statements is under way.
    fn backend(&self) -> Result<RefMut<'_, Backend>> {
        let mut backend = self
            .backend
            .try_borrow_mut()
            .map_err(|_| Error::commands_out_of_sync())?;
        backend.check()?;
        if self.is_rollback_pending.take() {
            backend.query("ROLLBACK", &mut Answer::new(Sink::Discard, Arc::default()))?;
        }
        if self.has_guard.get() && !backend.in_transaction() {
            return Err(Error::unknown_error("The transaction has ended"));
        }
        Ok(backend)
    }

    fn run(&self, sql: &str, parameters: impl Parameters, sink: Sink<'_>) -> Result<Rows> {
        let mut backend = self.backend()?;
        // A closure that sees a row can't borrow the backend, so it doesn't get here either.
        let mut bound = self.bound.borrow_mut();
        parameters::bind(&parameters, &mut bound)?;
        if bound.is_empty() {
            let mut answer = Answer::new(sink, Arc::default());
            let ran = backend.query(sql, &mut answer);
            return answer.finish(ran);
        }
        let (id, columns) = backend.prepare_cached(sql)?;
        let mut answer = Answer::new(sink, columns);
        let ran = backend.execute(id, &bound, &mut answer);
        let rows = answer.finish(ran)?;
        backend.remember_columns(sql, rows.shared_columns());
        Ok(rows)
    }

    /// Runs one statement with values for its `?`, discarding rows. What it changed is durable when
    /// this returns, unless a transaction is open.
    pub fn execute(&self, sql: &str, parameters: impl Parameters) -> Result<Outcome> {
        Ok(self.run(sql, parameters, Sink::Discard)?.into_outcome())
    }

    /// Runs one statement and collects its rows.
    pub fn query(&self, sql: &str, parameters: impl Parameters) -> Result<Rows> {
        self.run(sql, parameters, Sink::Collect)
    }

    /// Runs one statement and calls `each` with every row while it is made; nothing is collected.
    /// An error from `each` ends the statement and is returned.
    pub fn query_each(
        &self,
        sql: &str,
        parameters: impl Parameters,
        mut each: impl FnMut(Row<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        Ok(self
            .run(sql, parameters, Sink::Each(&mut each))?
            .into_outcome())
    }

    /// Prepares a statement, to run it many times.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        let id = self.backend()?.prepare(sql)?;
        Ok(Statement {
            connection: self,
            id,
            columns: RefCell::default(),
        })
    }

    /// Begins a transaction, which is rolled back unless [`committed`](Transaction::commit).
    /// Error 1105 if one is open.
    pub fn transaction(&self) -> Result<Transaction<'_>> {
        if self.in_transaction() {
            return Err(Error::unknown_error("A transaction is open already"));
        }
        self.execute("START TRANSACTION", ())?;
        self.has_guard.set(true);
        Ok(Transaction { connection: self })
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        !self.is_rollback_pending.get()
            && self
                .backend
                .try_borrow()
                .is_ok_and(|backend| backend.in_transaction())
    }

    /// Its number: CONNECTION_ID(), and the Id of SHOW PROCESSLIST.
    pub fn id(&self) -> Result<u64> {
        Ok(self.backend()?.id())
    }
}

/// A prepared statement of a connection.
pub struct Statement<'c> {
    connection: &'c Connection,
    id: u32,
    columns: RefCell<Arc<Columns>>,
}

impl Statement<'_> {
    fn run(&self, parameters: impl Parameters, sink: Sink<'_>) -> Result<Rows> {
        let mut backend = self.connection.backend()?;
        let mut bound = self.connection.bound.borrow_mut();
        parameters::bind(&parameters, &mut bound)?;
        let mut answer = Answer::new(sink, self.columns.take());
        let ran = backend.execute(self.id, &bound, &mut answer);
        let rows = answer.finish(ran)?;
        self.columns.replace(rows.shared_columns().clone());
        Ok(rows)
    }

    /// As [`Connection::execute`].
    pub fn execute(&self, parameters: impl Parameters) -> Result<Outcome> {
        Ok(self.run(parameters, Sink::Discard)?.into_outcome())
    }

    /// As [`Connection::query`].
    pub fn query(&self, parameters: impl Parameters) -> Result<Rows> {
        self.run(parameters, Sink::Collect)
    }

    /// As [`Connection::query_each`].
    pub fn query_each(
        &self,
        parameters: impl Parameters,
        mut each: impl FnMut(Row<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        Ok(self.run(parameters, Sink::Each(&mut each))?.into_outcome())
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // Inside another statement it stays until the connection ends.
        if let Ok(mut backend) = self.connection.backend.try_borrow_mut() {
            backend.close_statement(self.id);
        }
    }
}

/// An open transaction. Statements run through it as through the connection; dropped, it is rolled
/// back.
///
/// If it ended by itself (a deadlock, DDL), statements through it are refused with error 1105.
pub struct Transaction<'c> {
    connection: &'c Connection,
}

impl Transaction<'_> {
    /// Commits: what was changed is durable when this returns.
    pub fn commit(self) -> Result<()> {
        self.connection.execute("COMMIT", ())?;
        Ok(())
    }

    /// Rolls back, and tells whether that failed.
    pub fn rollback(self) -> Result<()> {
        self.connection.execute("ROLLBACK", ())?;
        Ok(())
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.connection.has_guard.set(false);
        let Ok(mut backend) = self.connection.backend.try_borrow_mut() else {
            self.connection.is_rollback_pending.set(true);
            return;
        };
        if backend.in_transaction() {
            let rolled_back =
                backend.query("ROLLBACK", &mut Answer::new(Sink::Discard, Arc::default()));
            if let Err(error) = rolled_back {
                tracing::error!("can't roll back: {error}");
            }
        }
    }
}
