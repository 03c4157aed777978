//! Porpoise: a MySQL-compatible database for the machine its application runs on.
//!
//! This crate is the database inside a Rust program. (The command-line program is `porpoise-cli`.)
//! A statement runs on the thread that asks for it. There is no server, but for one thread that
//! sleeps at the folder's socket until another program opens the same folder; that program then
//! gets connections to this one, by the same calls.
//!
//! ```
//! let database = porpoise::Database::in_memory()?;
//! let connection = database.connect()?;
//! connection.execute("CREATE DATABASE sea", ())?;
//! connection.execute("USE sea", ())?;
//! connection.execute("CREATE TABLE fish (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), kg DOUBLE)", ())?;
//!
//! let insert = connection.prepare("INSERT INTO fish (name, kg) VALUES (?, ?)")?;
//! assert_eq!(insert.execute(("porpoise", 61.5))?.last_insert_id, 1);
//! insert.execute(("blobfish", None::<f64>))?;
//!
//! let transaction = connection.transaction()?;
//! transaction.execute("DELETE FROM fish WHERE kg > ?", (50,))?;
//! drop(transaction); // not committed: rolled back
//!
//! for row in &connection.query("SELECT id, name, kg FROM fish ORDER BY id", ())? {
//!     let kg: Option<f64> = row.get("kg")?;
//!     println!("{} {} {kg:?}", row.get::<i32>(0)?, row.get::<&str>("name")?);
//! }
//! assert_eq!(connection.query("SELECT COUNT(*) FROM fish", ())?.get(0).map(|row| row.get(0)), Some(Ok(2)));
//! # Ok::<(), porpoise::Error>(())
//! ```
//!
//! In the order in which a program meets them:
//!
//! 1. [`Database`]: a folder, or memory; open as long as a handle to it lives. [`Options`] sets
//!    system variables, and whether the folder is shared with other programs.
//! 2. [`Connection`]: a session, for one thread at a time; [`Statement`] and [`Transaction`] borrow
//!    it.
//! 3. [`Parameters`]: what stands for a statement's `?`; a tuple, a slice or an array.
//! 4. [`Rows`] and [`Row`]: a result collected, or a row borrowed while it is made
//!    ([`Connection::query_each`]).
//! 5. [`Listen`]: listeners for MySQL clients in the running program.
//! 6. [`recover`]: what can be read of a damaged folder, saved into a new one.
//!
//! ```text
//! Connection ── text, parameters ──► LocalSession: porpoise_engine::Session ── rows ──► Answer ──► Rows, or a closure
//!      │                                            waits until the commit is durable ◄── Commit
//!      └────────── or ─────────────► RemoteSession: porpoise_client, over shared memory, to the program that has the folder
//! ```
//!
//! What the database has to tell beside answers (a folder it can't let other programs into, a
//! checkpoint that fails) goes to `tracing`; whether somebody listens there is the program's
//! affair.
//!
//! A program owns the database it embeds: a connection may do everything, as `root@localhost`,
//! whatever accounts there are. Statements run on the caller's stack, for which 256 KiB are enough;
//! one that nests deeply gets a larger stack while it runs, and beyond a limit is refused (error
//! 1436).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod backend;
mod connection;
mod database;
mod instance_listener;
mod listen;
mod local;
mod parameters;
mod recovery;
mod remote;
mod rows;

pub use connection::{Connection, Outcome, Statement, Transaction};
pub use database::{Database, Options, provide_to_clients};
pub use listen::{Listen, Listening};
pub use parameters::{Parameter, Parameters};
pub use porpoise_client::rows::ColumnIndex;
pub use porpoise_client::{Date, DateTime, FromValue, Time, Value};
pub use porpoise_engine::{Error, Result};
pub use recovery::{Recovery, RecoveryProgress, recover};
pub use rows::{Column, Columns, Row, Rows};
