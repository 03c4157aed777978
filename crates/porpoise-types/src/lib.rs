//! Values, types, collations, decimal and temporal arithmetic, row and key encodings.

pub mod charset;
pub mod collation;
pub mod convert;
pub mod data_type;
pub mod decimal;
pub mod json;
pub mod key;
pub mod number_text;
pub mod row;
pub mod store;
pub mod temporal;
pub mod value;

pub use charset::Charset;
pub use collation::{Collation, like};
pub use convert::{ConvertContext, Loss};
pub use data_type::{BlobSize, DataType, EnumDef, IntWidth};
pub use decimal::{Decimal, Rounding};
pub use json::path::JsonPath;
pub use json::{Json, JsonError, JsonValue};
pub use key::{KeyBuf, decode_key_part, encode_key_part, skip_key_part, successor_of_prefix};
pub use row::{RowLayout, stored};
pub use store::{StoreError, store};
pub use temporal::{Date, DateMode, DateTime, Interval, IntervalUnit, Time, TimeZone};
pub use value::Value;

pub use compact_str::CompactString;
