//! A client connection to any server that speaks the MySQL protocol.
//!
//! Blocking: the calling thread sends, waits and reads. It knows neither SQL nor how bytes travel;
//! the protocol is `porpoise-protocol`'s, the way to the server a
//! [`Stream`](porpoise_transport::Stream), so every further way in is one more stream under the
//! same [`Connection`].
//!
//! In the order in which a program meets them:
//!
//! 1. [`Options`]: where to connect and as whom, from a URL or field by field. On this machine
//!    shared memory is taken before a Unix socket, and that before TCP. [`embedded`]: no server at
//!    all.
//! 2. [`Connection`]: [`run`](Connection::run) a statement, [`query`](Connection::query) for rows,
//!    [`prepare`](Connection::prepare) and [`execute`](Connection::execute).
//! 3. [`Results`]: what a statement gave, read row by row as it comes in, or collected into
//!    [`Rows`].
//! 4. [`Row`]: one row, its values borrowed from the bytes received; [`FromValue`] turns them into
//!    Rust's types. [`rows`] tells what rows of all kinds are asked, those of the embedded engine
//!    too.
//!
//! ```no_run
//! use porpoise_client::Connection;
//!
//! let mut connection = Connection::open("mysql://root@localhost/shop")?;
//! connection.run("CREATE TABLE fish (id INT PRIMARY KEY, name VARCHAR(40))")?;
//!
//! let insert = connection.prepare("INSERT INTO fish VALUES (?, ?)")?;
//! connection.execute(&insert, &[1.into(), "porpoise".into()])?.finish()?;
//!
//! let mut results = connection.query("SELECT id, name FROM fish")?;
//! while let Some(row) = results.next_row()? {
//!     println!("{}: {}", row.get::<i64>(0)?, row.get::<&str>(1)?);
//! }
//! # Ok::<(), porpoise_client::Error>(())
//! ```
//!
//! Statements can be sent before the replies to earlier ones were read, which saves a round trip
//! each:
//!
//! ```no_run
//! # let mut connection = porpoise_client::Connection::open("mysql://root@localhost/shop")?;
//! connection.send_query("BEGIN")?;
//! connection.send_query("UPDATE fish SET name = 'dolphin' WHERE id = 1")?;
//! connection.send_query("COMMIT")?;
//! for _ in 0..3 {
//!     connection.receive()?.finish()?;
//! }
//! # Ok::<(), porpoise_client::Error>(())
//! ```
//!
//! A thread that has several connections sends on all of them, and [`Poll`] tells which have a
//! reply.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod compression;
mod connection;
pub mod embedded;
mod error;
mod filter;
mod from_value;
mod login;
mod options;
mod poll;
mod results;
pub mod rows;
mod tls;

pub use compression::CompressionOptions;
pub use connection::{Connection, FileSource, Outcome, Statement, connect_stream};
pub use error::Error;
pub use from_value::FromValue;
pub use options::{Options, Transport};
pub use poll::Poll;
pub use porpoise_protocol::value::{Date, DateTime, Time, Value};
pub use porpoise_protocol::{codes, column::ColumnDefinition, flags};
pub use results::{Columns, Results, Row, Rows};
pub use tls::{TlsMode, TlsOptions, TlsSession};
