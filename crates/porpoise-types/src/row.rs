//! The row encoding: how the columns of a row lie in one run of bytes.

use crate::{DataType, TimeZone, Value};

/// Where each column of a table lies in its rows.
#[derive(Clone, Debug)]
pub struct RowLayout {
    types: Vec<DataType>,
}

impl RowLayout {
    pub fn new(types: &[DataType]) -> RowLayout {
        RowLayout {
            types: types.to_vec(),
        }
    }
    pub fn types(&self) -> &[DataType] {
        &self.types
    }
    /// Appends the row's bytes to `out`.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) {
        let _ = (values, out);
    }
    /// The value of a column; NULL for a corrupt row.
    pub fn get(&self, row: &[u8], column: usize) -> Value {
        let _ = (row, column);
        Value::Null
    }
    pub fn is_null(&self, row: &[u8], column: usize) -> bool {
        let _ = (row, column);
        true
    }
    /// The stored bytes of a column; `None` for NULL or a corrupt row.
    pub fn raw<'a>(&self, row: &'a [u8], column: usize) -> Option<&'a [u8]> {
        let _ = (row, column);
        None
    }
    /// All columns.
    pub fn decode(&self, row: &[u8], out: &mut Vec<Value>) {
        out.extend((0..self.types.len()).map(|c| self.get(row, c)));
    }
}

/// Typed readers of a column's stored bytes (what [`RowLayout::raw`] gives).
pub mod stored {
    use super::*;
    /// Integers, BIT, YEAR, ENUM, SET: sign- or zero-extended.
    pub fn int(raw: &[u8], ty: &DataType) -> i64 {
        let _ = (raw, ty);
        0
    }
    pub fn value(raw: &[u8], ty: &DataType) -> Value {
        let _ = (raw, ty);
        Value::Null
    }
    /// The text protocol's form of a stored column; TIMESTAMPs are shown in `zone`.
    pub fn write_text(raw: &[u8], ty: &DataType, zone: &TimeZone, out: &mut Vec<u8>) {
        let _ = (raw, ty, zone, out);
    }
}
