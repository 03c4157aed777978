//! Numbers as MySQL prints them, straight into a byte buffer.

pub fn write_int(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

pub fn write_uint(v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

/// The shortest text that reads back as the same double: `0.1`, `1e20`, `1.5e-7`.
pub fn write_double(v: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{v}").as_bytes());
}

/// A FLOAT column's value: six significant digits at most.
pub fn write_float(v: f32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{v}").as_bytes());
}

/// With a fixed number of decimals, as DOUBLE(m,d) prints.
pub fn write_fixed(v: f64, decimals: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{v:.*}", decimals as usize).as_bytes());
}
