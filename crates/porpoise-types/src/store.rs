//! `store`: a value on its way into a column. Range checks, rounding, lengths, members, dates that exist.

use crate::{ConvertContext, DataType, JsonError, Loss, Value};

/// What can't be stored at all, in any mode.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    /// 3140
    InvalidJson(JsonError),
}

/// Converts a value of type `from` to a value of type `to`, as an assignment to a column does. NULL stays NULL:
/// whether the column takes it is for the caller to check.
pub fn store(
    value: Value,
    from: &DataType,
    to: &DataType,
    cx: &ConvertContext,
) -> Result<(Value, Loss), StoreError> {
    let _ = (from, to, cx);
    Ok((value, Loss::None))
}
