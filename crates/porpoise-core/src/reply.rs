//! Where a statement's answer goes.
//!
//! The executor writes rows straight into a [`Reply`]: the server's encodes them into the
//! connection's reply buffer, in the text or the binary protocol; the embedded connection's keeps
//! them as values. The engine knows neither.
//!
//! A statement answers with exactly one of: `ok`; or `begin_rows`, any number of rows, `end_rows`;
//! or an `Err` from the call that ran it (also after rows have begun).
//!
//! ```text
//! begin_rows(columns)
//!   begin_row()  int(7)  text("x")  null()  end_row()?      once a row
//! end_rows(status)
//! ```

use compact_str::CompactString;
use porpoise_types::{DataType, Date, DateTime, Time, Value};

use crate::error::{Error, Result};

/// One column of a result, as COM_QUERY's column definition and `mysql_fetch_field` show it.
#[derive(Clone, Debug)]
pub struct ResultColumn {
    /// The table's schema; empty for an expression.
    pub schema: CompactString,
    /// The table's alias; empty for an expression.
    pub table: CompactString,
    /// The table's own name; empty for an expression.
    pub original_table: CompactString,
    /// The alias, or what stands in the SELECT list.
    pub name: CompactString,
    /// The column's own name; empty for an expression.
    pub original_name: CompactString,
    /// What its values are, with length, scale and collation.
    pub ty: DataType,
    /// Whether it can be NULL.
    pub nullable: bool,
    /// The strongest key that the column begins or is.
    pub key: ColumnKey,
    /// AUTO_INCREMENT_FLAG.
    pub auto_increment: bool,
    /// The column has neither a default nor NULL (NO_DEFAULT_VALUE_FLAG).
    pub no_default: bool,
    /// TIMESTAMP/DATETIME with ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
}

/// The part a column has in its table's keys (PRI, UNI, MUL).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnKey {
    /// The column begins no key.
    #[default]
    None,
    /// Part of the primary key.
    Primary,
    /// The only part of a unique key.
    Unique,
    /// The first part of a key that may hold a value several times.
    Multiple,
}

impl ResultColumn {
    /// A column that is an expression: no table, no schema.
    pub fn expression(
        name: impl Into<CompactString>,
        ty: DataType,
        nullable: bool,
    ) -> ResultColumn {
        ResultColumn {
            schema: CompactString::default(),
            table: CompactString::default(),
            original_table: CompactString::default(),
            name: name.into(),
            original_name: CompactString::default(),
            ty,
            nullable,
            key: ColumnKey::None,
            auto_increment: false,
            no_default: false,
            on_update_now: false,
        }
    }
}

/// What an OK packet tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Changed rows (or matched ones under CLIENT_FOUND_ROWS; the engine chooses by the session's
    /// flag).
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that the statement generated, or LAST_INSERT_ID(expr)'s
    /// argument; 0 for none.
    pub last_insert_id: u64,
    /// How many warnings the statement left, at most 65,535.
    pub warnings: u16,
    /// Human-readable summary, such as `Records: 3  Duplicates: 0  Warnings: 0`; often empty.
    pub message: String,
}

/// The receiver of one statement's answer. Calls that may have to wait for a slow reader return an
/// error when the reader is gone; the statement then ends there.
pub trait Reply {
    /// The statement has done, and has no rows.
    fn ok(&mut self, completion: &Completion) -> Result<()>;

    /// Rows of these columns follow, if any.
    fn begin_rows(&mut self, columns: &[ResultColumn]) -> Result<()>;
    /// A row follows: one value for each column, in their order.
    fn begin_row(&mut self);
    /// NULL.
    fn null(&mut self);
    /// A signed integer of any width.
    fn int(&mut self, value: i64);
    /// An unsigned integer of any width; YEAR.
    fn uint(&mut self, value: u64);
    /// A FLOAT column's value.
    fn float(&mut self, value: f32);
    /// A DOUBLE column's value.
    fn double(&mut self, value: f64);
    /// Text, raw bytes, and everything that travels as its text: DECIMAL, ENUM, SET, JSON; BIT as
    /// its bytes.
    fn bytes(&mut self, value: &[u8]);
    /// A DATE.
    fn date(&mut self, value: Date);
    /// A DATETIME or a TIMESTAMP in the session's time zone, with `fsp` digits after the second.
    fn datetime(&mut self, value: DateTime, fsp: u8);
    /// A TIME, with `fsp` digits after the second.
    fn time(&mut self, value: Time, fsp: u8);
    /// The row is complete.
    fn end_row(&mut self) -> Result<()>;
    /// There are no more rows.
    fn end_rows(&mut self, completion: &Completion) -> Result<()>;

    /// The statement gives several answers, or another statement follows it: what tells how its rows
    /// begin says so, too.
    fn expect_more(&mut self) {}

    /// The rows that have ended are one of several answers: whatever follows is another one, an
    /// error included.
    fn more_follows(&mut self) {}

    /// The row that follows has the values of OUT parameters. `false` if the client takes none.
    fn begin_out_parameters(&mut self) -> bool {
        true
    }

    /// The rows under way end here: the statement failed, and a handler of the program that it
    /// belongs to goes on.
    fn abandon_rows(&mut self) -> Result<()> {
        self.end_rows(&Completion::default())
    }

    /// A row's values, for the program that the statement belongs to: a cursor's, or those of
    /// `SELECT … INTO` that go into the program's variables.
    fn values(&mut self, values: Vec<(Value, DataType)>) -> Result<()> {
        let _ = values;
        Err(Error::engine_error("values without a program"))
    }

    /// Asks the client for the content of a file of its own: LOAD DATA LOCAL. An `Err` if it can't
    /// be had.
    fn local_file(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        let _ = path;
        Err(Error::local_data_disabled())
    }
}

/// A reply that nobody reads.
#[derive(Clone, Copy, Debug)]
pub struct Unread;

impl Reply for Unread {
    fn ok(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }
    fn begin_rows(&mut self, _: &[ResultColumn]) -> Result<()> {
        Ok(())
    }
    fn begin_row(&mut self) {}
    fn null(&mut self) {}
    fn int(&mut self, _: i64) {}
    fn uint(&mut self, _: u64) {}
    fn float(&mut self, _: f32) {}
    fn double(&mut self, _: f64) {}
    fn bytes(&mut self, _: &[u8]) {}
    fn date(&mut self, _: Date) {}
    fn datetime(&mut self, _: DateTime, _: u8) {}
    fn time(&mut self, _: Time, _: u8) {}
    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }
    fn end_rows(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }
}
