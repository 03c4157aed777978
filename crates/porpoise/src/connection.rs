//! A connection: statements on the caller's thread.
//!
//! 1. A text without parameters goes to [`Session::query`], which finds its plan by its digest.
//! 2. A text with parameters is prepared once and kept ([`Kept`]) until a setting changes.
//! 3. The answer is collected, or a closure sees each row ([`Answer`]).
//! 4. A change waits here until its commit is as durable as `innodb_flush_log_at_trx_commit` asks.
//!
//! Statements and transactions borrow the connection shared, so that several can be at hand; a closure that sees
//! a row is inside a statement, and can't run another (error 2014).

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use porpoise_engine::session::Ran;
use porpoise_engine::{Error, Result, Session};
use porpoise_types as types;

use crate::answer::{Answer, Sink};
use crate::database::Core;
use crate::parameters::{self, Parameters};
use crate::rows::{Columns, Row, Rows};

/// Texts that a connection keeps prepared. One more, and it begins anew.
const STATEMENTS_KEPT_MAX: usize = 64;

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
    /// A transaction whose guard was dropped inside a statement: rolled back before the next.
    is_abandoned: Cell<bool>,
    /// A [`Transaction`] is alive.
    is_guarded: Cell<bool>,
    _core: Arc<Core>,
}

struct Seat {
    session: Session,
    kept: HashMap<Box<str>, Kept>,
    parameters: Vec<types::Value>,
}

/// A prepared statement, and the columns of its last result.
#[derive(Clone, Default)]
struct Kept {
    id: u32,
    columns: Arc<Columns>,
}

impl Seat {
    /// Holds the caller back until what was committed is durable.
    fn finish(&mut self, ran: Result<Ran>) -> Result<()> {
        let tracked = self.session.take_tracked();
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

    fn query(&mut self, sql: &str, answer: &mut Answer<'_>) -> Result<()> {
        let ran = self.session.query(sql.as_bytes(), answer);
        self.finish(ran)
    }

    fn execute(&mut self, id: u32, answer: &mut Answer<'_>) -> Result<()> {
        let ran = self.session.execute(id, &self.parameters, answer);
        self.finish(ran)
    }

    fn keep(&mut self, sql: &str) -> Result<Kept> {
        if let Some(kept) = self.kept.get(sql) {
            return Ok(kept.clone());
        }
        if self.kept.len() >= STATEMENTS_KEPT_MAX {
            self.forget_kept();
        }
        let kept = Kept {
            id: self.session.prepare(sql.as_bytes())?.id,
            columns: Arc::default(),
        };
        self.kept.insert(sql.into(), kept.clone());
        Ok(kept)
    }
}

impl Connection {
    pub(crate) fn new(mut session: Session, core: Arc<Core>) -> Connection {
        session.set_multi_statements(false);
        Connection {
            seat: RefCell::new(Seat {
                session,
                kept: HashMap::new(),
                parameters: Vec::new(),
            }),
            is_abandoned: Cell::new(false),
            is_guarded: Cell::new(false),
            _core: core,
        }
    }

    /// The session, unless one of its statements is under way.
    fn seat(&self) -> Result<RefMut<'_, Seat>> {
        let mut seat = self.seat.try_borrow_mut().map_err(|_| {
            Error::new(
                2014,
                "HY000",
                "Commands out of sync; you can't run this command now",
            )
        })?;
        if seat.session.control().is_connection_killed() {
            return Err(Error::new(
                2013,
                "HY000",
                "Lost connection to MySQL server during query",
            ));
        }
        if self.is_abandoned.take() {
            seat.query("ROLLBACK", &mut Answer::new(Sink::PassOver, Arc::default()))?;
        }
        if self.is_guarded.get() && !seat.session.in_transaction() {
            return Err(Error::new(1105, "HY000", "The transaction has ended"));
        }
        Ok(seat)
    }

    fn run(&self, sql: &str, parameters: impl Parameters, sink: Sink<'_>) -> Result<Rows> {
        let mut seat = self.seat()?;
        parameters::bind(&parameters, &mut seat.parameters)?;
        if seat.parameters.is_empty() {
            let mut answer = Answer::new(sink, Arc::default());
            let ran = seat.query(sql, &mut answer);
            return answer.finish(ran);
        }
        let kept = seat.keep(sql)?;
        let mut answer = Answer::new(sink, kept.columns);
        let ran = seat.execute(kept.id, &mut answer);
        let rows = answer.finish(ran)?;
        if let Some(kept) = seat.kept.get_mut(sql) {
            kept.columns = rows.columns.clone();
        }
        Ok(rows)
    }

    /// Runs one statement with values for its `?`, passing over rows. What it changed is durable when this returns,
    /// unless a transaction is open.
    pub fn execute(&self, sql: &str, parameters: impl Parameters) -> Result<Outcome> {
        Ok(self.run(sql, parameters, Sink::PassOver)?.outcome)
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
        Ok(self.run(sql, parameters, Sink::Each(&mut each))?.outcome)
    }

    /// Prepares a statement, to run it many times.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        let prepared = self.seat()?.session.prepare(sql.as_bytes())?;
        Ok(Statement {
            connection: self,
            id: prepared.id,
            columns: RefCell::default(),
        })
    }

    /// Begins a transaction, which is rolled back unless [`committed`](Transaction::commit).
    /// Error 1105 if one is open.
    pub fn transaction(&self) -> Result<Transaction<'_>> {
        if self.in_transaction() {
            return Err(Error::new(1105, "HY000", "A transaction is open already"));
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
                .is_ok_and(|seat| seat.session.in_transaction())
    }

    /// Its number: CONNECTION_ID(), and the Id of SHOW PROCESSLIST.
    pub fn id(&self) -> Result<u64> {
        Ok(self.seat()?.session.id())
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
        parameters::bind(&parameters, &mut seat.parameters)?;
        let mut answer = Answer::new(sink, self.columns.take());
        let ran = seat.execute(self.id, &mut answer);
        let rows = answer.finish(ran)?;
        self.columns.replace(rows.columns.clone());
        Ok(rows)
    }

    /// As [`Connection::execute`].
    pub fn execute(&self, parameters: impl Parameters) -> Result<Outcome> {
        Ok(self.run(parameters, Sink::PassOver)?.outcome)
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
        Ok(self.run(parameters, Sink::Each(&mut each))?.outcome)
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // Inside another statement it stays until the connection ends.
        if let Ok(mut seat) = self.connection.seat.try_borrow_mut() {
            seat.session.close_statement(self.id);
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
        if seat.session.in_transaction() {
            let rolled_back =
                seat.query("ROLLBACK", &mut Answer::new(Sink::PassOver, Arc::default()));
            if let Err(error) = rolled_back {
                tracing::error!("can't roll back: {error}");
            }
        }
    }
}
