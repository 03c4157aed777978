//! Values as comparable keys.

use porpoise_types::{DataType, KeyBuf, Rounding, Value, encode_key_part};

/// Encodes values as one comparable key: for sorting, grouping and distinctness. Of a quotient only
/// the digits count that its type shows.
pub fn encode_values<'v>(
    values: impl Iterator<Item = (&'v Value, &'v DataType, bool)>,
    out: &mut KeyBuf,
) {
    for (value, ty, descending) in values {
        if let (Value::Decimal(number), DataType::Decimal { scale, .. }) = (value, ty)
            && number.scale() > *scale
        {
            let shown = Value::Decimal(number.rescale(*scale, Rounding::HalfAwayFromZero));
            encode_key_part(&shown, ty, true, descending, None, out);
            continue;
        }
        encode_key_part(value, ty, true, descending, None, out);
    }
}
