//! A connection: statements on the caller's thread ([`Here`]), or in the process that has the folder open ([`Far`]).
//!
//! 1. A text without parameters goes to [`Session::query`], which finds its plan by its digest.
//! 2. A text with parameters is prepared once and kept until a setting changes.
//! 3. The answer is collected, or a closure sees each row ([`Answer`]).
//! 4. A change waits until its commit is as durable as `innodb_flush_log_at_trx_commit` asks.
//!
//! Whatever program a connection finds itself in, its statements, rows and errors are the same.
//!
//! Statements and transactions borrow the connection shared, so that several can be at hand; a closure that sees
//! a row is inside a statement, and can't run another (error 2014).

use std::cell::{Cell, RefCell, RefMut};
use std::ops::Deref;
use std::sync::Arc;

use porpoise_engine::{Error, Result, Session};
use porpoise_types as types;

use crate::answer::{Answer, Sink};
use crate::database::Core;
use crate::far::Far;
use crate::here::Here;
use crate::parameters::{self, Parameters};
use crate::rows::{Columns, Row, Rows};

/// Texts that a connection keeps prepared. One more, and it begins anew.
pub(crate) const STATEMENTS_KEPT_MAX: usize = 64;

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

/// A session of an embedded database: it can go from thread to thread, and is one thread's at a time.
///
/// Dropped, it rolls back what isn't committed. After a KILL by somebody else its statements are error 2013.
pub struct Connection {
    // Before the core: the session ends before the database does.
    seat: RefCell<Seat>,
    /// The parameters of the statement under way.
    bound: RefCell<Vec<types::Value>>,
    /// A transaction whose guard was dropped inside a statement: rolled back before the next.
    is_abandoned: Cell<bool>,
    /// A [`Transaction`] is alive.
    is_guarded: Cell<bool>,
    _core: Option<Arc<Core>>,
}

/// Where the session is.
enum Seat {
    Here(Box<Here>),
    Far(Box<Far>),
}

/// Calls a method that both kinds have.
macro_rules! seated {
    ($seat:expr, $session:ident => $call:expr) => {
        match $seat {
            Seat::Here($session) => $call,
            Seat::Far($session) => $call,
        }
    };
}

impl Seat {
    fn check(&self) -> Result<()> {
        seated!(self, session => session.check())
    }

    fn query(&mut self, sql: &str, answer: &mut Answer<'_>) -> Result<()> {
        seated!(self, session => session.query(sql, answer))
    }

    fn prepare(&mut self, sql: &str) -> Result<u32> {
        seated!(self, session => session.prepare(sql))
    }

    fn execute(
        &mut self,
        id: u32,
        parameters: &[types::Value],
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        seated!(self, session => session.execute(id, parameters, answer))
    }

    fn keep(&mut self, sql: &str) -> Result<(u32, Arc<Columns>)> {
        seated!(self, session => session.keep(sql))
    }

    fn note_columns(&mut self, sql: &str, columns: &Arc<Columns>) {
        if let Seat::Here(here) = self {
            here.note_columns(sql, columns);
        }
    }

    fn close_statement(&mut self, id: u32) {
        seated!(self, session => session.close_statement(id));
    }

    fn in_transaction(&self) -> bool {
        seated!(self, session => session.in_transaction())
    }

    fn id(&self) -> u64 {
        seated!(self, session => session.id())
    }
}

/// What a statement on a connection that is no more is told.
pub(crate) fn lost() -> Error {
    Error::server_lost()
}

impl Connection {
    pub(crate) fn here(session: Session, core: Arc<Core>) -> Connection {
        Connection::new(Seat::Here(Box::new(Here::new(session))), Some(core))
    }

    pub(crate) fn far(far: Far) -> Connection {
        Connection::new(Seat::Far(Box::new(far)), None)
    }

    fn new(seat: Seat, core: Option<Arc<Core>>) -> Connection {
        Connection {
            seat: RefCell::new(seat),
            bound: RefCell::default(),
            is_abandoned: Cell::new(false),
            is_guarded: Cell::new(false),
            _core: core,
        }
    }

    /// The session, unless one of its statements is under way.
    fn seat(&self) -> Result<RefMut<'_, Seat>> {
        let mut seat = self
            .seat
            .try_borrow_mut()
            .map_err(|_| Error::commands_out_of_sync())?;
        seat.check()?;
        if self.is_abandoned.take() {
            seat.query("ROLLBACK", &mut Answer::new(Sink::PassOver, Arc::default()))?;
        }
        if self.is_guarded.get() && !seat.in_transaction() {
            return Err(Error::unknown_error("The transaction has ended"));
        }
        Ok(seat)
    }

    fn run(&self, sql: &str, parameters: impl Parameters, sink: Sink<'_>) -> Result<Rows> {
        let mut seat = self.seat()?;
        // A closure that sees a row has no seat, so it doesn't get here either.
        let mut bound = self.bound.borrow_mut();
        parameters::bind(&parameters, &mut bound)?;
        if bound.is_empty() {
            let mut answer = Answer::new(sink, Arc::default());
            let ran = seat.query(sql, &mut answer);
            return answer.finish(ran);
        }
        let (id, columns) = seat.keep(sql)?;
        let mut answer = Answer::new(sink, columns);
        let ran = seat.execute(id, &bound, &mut answer);
        let rows = answer.finish(ran)?;
        seat.note_columns(sql, rows.shared_columns());
        Ok(rows)
    }

    /// Runs one statement with values for its `?`, passing over rows. What it changed is durable when this returns,
    /// unless a transaction is open.
    pub fn execute(&self, sql: &str, parameters: impl Parameters) -> Result<Outcome> {
        Ok(self.run(sql, parameters, Sink::PassOver)?.into_outcome())
    }

    /// Runs one statement and collects its rows.
    pub fn query(&self, sql: &str, parameters: impl Parameters) -> Result<Rows> {
        self.run(sql, parameters, Sink::Keep)
    }

    /// Runs one statement and calls `each` with every row while it is made; nothing is collected. An error
    /// from `each` ends the statement and is returned.
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
        let id = self.seat()?.prepare(sql)?;
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
        self.is_guarded.set(true);
        Ok(Transaction { connection: self })
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        !self.is_abandoned.get()
            && self
                .seat
                .try_borrow()
                .is_ok_and(|seat| seat.in_transaction())
    }

    /// Its number: CONNECTION_ID(), and the Id of SHOW PROCESSLIST.
    pub fn id(&self) -> Result<u64> {
        Ok(self.seat()?.id())
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
        let mut seat = self.connection.seat()?;
        let mut bound = self.connection.bound.borrow_mut();
        parameters::bind(&parameters, &mut bound)?;
        let mut answer = Answer::new(sink, self.columns.take());
        let ran = seat.execute(self.id, &bound, &mut answer);
        let rows = answer.finish(ran)?;
        self.columns.replace(rows.shared_columns().clone());
        Ok(rows)
    }

    /// As [`Connection::execute`].
    pub fn execute(&self, parameters: impl Parameters) -> Result<Outcome> {
        Ok(self.run(parameters, Sink::PassOver)?.into_outcome())
    }

    /// As [`Connection::query`].
    pub fn query(&self, parameters: impl Parameters) -> Result<Rows> {
        self.run(parameters, Sink::Keep)
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
        if let Ok(mut seat) = self.connection.seat.try_borrow_mut() {
            seat.close_statement(self.id);
        }
    }
}

/// An open transaction. Statements run through it as through the connection; dropped, it is rolled back.
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
        self.connection.is_guarded.set(false);
        let Ok(mut seat) = self.connection.seat.try_borrow_mut() else {
            self.connection.is_abandoned.set(true);
            return;
        };
        if seat.in_transaction() {
            let rolled_back =
                seat.query("ROLLBACK", &mut Answer::new(Sink::PassOver, Arc::default()));
            if let Err(error) = rolled_back {
                tracing::error!("can't roll back: {error}");
            }
        }
    }
}
