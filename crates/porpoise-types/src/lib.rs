//! What a value is: its kinds, its types, its order, its arithmetic and its bytes.
//!
//! Everything above this crate (planner, executor, storage, server) agrees on values through it. It
//! knows no SQL, no session and no storage: what depends on `sql_mode` or the time zone is a
//! parameter, and what a conversion loses is reported as a [`Loss`] for the caller to turn into a
//! warning or an error.
//!
//! The main types, in the order data meets them:
//!
//! 1. [`Charset`] turns a client's bytes into UTF-8, and back. Inside, all text is UTF-8.
//! 2. [`Value`] is one SQL value: a number, a text, a date, a document. [`Decimal`], [`Date`],
//!    [`Time`], [`DateTime`] and [`Json`] are its larger kinds.
//! 3. [`DataType`] is the static type beside it: what a column may hold, how it prints.
//! 4. [`convert`] takes values from kind to kind as expressions need; [`store()`] takes them into
//!    columns, with range checks and rounding. [`temporal`] has the clock, the calendar, intervals,
//!    formats and time zones.
//! 5. [`Collation`] compares, sorts and matches texts.
//! 6. [`RowLayout`] lays a row's values into bytes, and reads one column back in nanoseconds;
//!    [`stored`] reads raw columns without making a [`Value`].
//!    [`saved`] writes values into temporary files, as they are.
//! 7. [`encode_key_part`] writes bytes that sort as values do: index keys, `ORDER BY`, `GROUP BY`.
//! 8. [`cancel`] lets a statement end in the middle of work on one long value.
//!
//! A value's way into a row and an index:
//!
//! ```
//! use porpoise_types::*;
//!
//! // INSERT INTO t (price DECIMAL(6,2), name VARCHAR(10)) VALUES ('12.345', 'Porpoise')
//! let types = [DataType::decimal(6, 2), DataType::varchar(10)];
//! let cx = ConvertContext::default();
//! let (price, loss) = store(Value::text("12.345"), &DataType::varchar(6), &types[0], &cx)?;
//! assert_eq!(loss, Loss::Rounded);
//! let (name, loss) = store(Value::text("Porpoise"), &DataType::varchar(8), &types[1], &cx)?;
//! assert_eq!(loss, Loss::None);
//!
//! // The row's bytes, and a column of them as the text protocol sends it.
//! let layout = RowLayout::new(&types);
//! let mut row = Vec::new();
//! layout.encode(&[price, name.clone()], &mut row);
//! let mut text = Vec::new();
//! let raw = layout.raw(&row, 0).expect("the price is not NULL");
//! stored::write_text(raw, &types[0], &TimeZone::utc(), &mut text);
//! assert_eq!(text, b"12.35");
//!
//! // An index entry is found whatever the case of the letters: the collation is utf8mb4_0900_ai_ci.
//! let key = |v: &Value| {
//!     let mut key = KeyBuf::new();
//!     encode_key_part(v, &types[1], true, false, None, &mut key);
//!     key
//! };
//! assert_eq!(key(&name), key(&Value::text("PORPOISE")));
//! # Ok::<(), StoreError>(())
//! ```

#![warn(missing_docs)]

pub mod cancel;
pub mod charset;
pub mod collation;
pub mod convert;
pub mod data_type;
pub mod decimal;
pub mod json;
pub mod key;
pub mod number_text;
pub mod row;
pub mod saved;
pub mod store;
pub mod temporal;
pub mod value;
pub mod vector;

pub use charset::Charset;
pub use collation::{Collation, like, try_like};
pub use convert::{ConvertContext, Loss};
pub use data_type::{BlobSize, DataType, EnumDef, IntWidth};
pub use decimal::{Decimal, Rounding};
pub use json::path::JsonPath;
pub use json::{Json, JsonError, JsonValue};
pub use key::{KeyBuf, decode_key_part, encode_key_part, skip_key_part, successor_of_prefix};
pub use row::{Added, KeptColumns, ROW_VERSIONS_MAX, RowLayout, StoredColumn, stored};
pub use store::{StoreError, store};
pub use temporal::{Date, DateMode, DateTime, Interval, IntervalUnit, Time, TimeZone};
pub use value::Value;

pub use compact_str::CompactString;
