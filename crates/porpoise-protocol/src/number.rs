//! Numbers as text rows show them.
//!
//! A DOUBLE is the shortest decimal that reads back as the same number, a FLOAT is rounded to six digits; both
//! without an exponent from 1e-15 to below 1e15. A column with a fixed number of decimals shows just that many.

use crate::column::DECIMALS_NOT_FIXED;
use std::io::Write;

/// Powers of ten shown without an exponent.
const PLAIN_EXPONENTS: std::ops::RangeInclusive<i32> = -15..=14;

/// Digits of a FLOAT.
const FLOAT_DIGITS: usize = 6;

/// Appends a DOUBLE.
pub fn put_double(out: &mut Vec<u8>, value: f64, decimals: u8) {
    if decimals < DECIMALS_NOT_FIXED {
        put_fixed(out, value, decimals);
    } else {
        put_shortest(out, format_args!("{value:e}"));
    }
}

/// Appends a FLOAT.
pub fn put_float(out: &mut Vec<u8>, value: f32, decimals: u8) {
    if decimals < DECIMALS_NOT_FIXED {
        put_fixed(out, f64::from(value), decimals);
    } else {
        put_shortest(out, format_args!("{value:.*e}", FLOAT_DIGITS - 1));
    }
}

fn put_fixed(out: &mut Vec<u8>, value: f64, decimals: u8) {
    write!(out, "{value:.*}", usize::from(decimals)).expect("a Vec takes every write");
}

/// Lays out `scientific`, as `-d.ddde-x`.
fn put_shortest(out: &mut Vec<u8>, scientific: std::fmt::Arguments<'_>) {
    let mut text = [0u8; 40];
    let mut room = &mut text[..];
    // The longest is "-1.2345678901234567e-308".
    write!(room, "{scientific}").expect("no float is longer");
    let left = room.len();
    let text = &text[..text.len() - left];
    let (text, negative) = match text.strip_prefix(b"-") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let Some(at) = text.iter().position(|&byte| byte == b'e') else {
        // Not a number, or infinite: no column holds them.
        out.extend_from_slice(b"0");
        return;
    };
    let exponent = std::str::from_utf8(&text[at + 1..])
        .ok()
        .and_then(|digits| digits.parse::<i32>().ok())
        .unwrap_or(0);
    let mut digits = [0u8; 40];
    let mut count = 0;
    for &byte in text[..at].iter().filter(|&&byte| byte != b'.') {
        digits[count] = byte;
        count += 1;
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    let digits = &digits[..count];
    if negative {
        out.push(b'-');
    }
    if !PLAIN_EXPONENTS.contains(&exponent) {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        write!(out, "{exponent}").expect("a Vec takes every write");
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(digits);
            out.resize(out.len() + whole - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_read_as_mysql_shows_them() {
        for (value, text) in [
            (0.0, "0"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1e-5, "0.00001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (123456789012345680.0, "1.2345678901234568e17"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-12345.678, "-12345.678"),
            (1.5e300, "1.5e300"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        ] {
            let mut out = Vec::new();
            put_double(&mut out, value, DECIMALS_NOT_FIXED);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn floats_have_six_digits() {
        for (value, text) in [
            (1e10f32, "10000000000"),
            (1.1, "1.1"),
            (16777216.0, "16777200"),
            (1e15, "1e15"),
            (123456789.0, "123457000"),
            (0.00001, "0.00001"),
        ] {
            let mut out = Vec::new();
            put_float(&mut out, value, DECIMALS_NOT_FIXED);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn fixed_decimals_are_kept() {
        let mut out = Vec::new();
        put_double(&mut out, 2.5, 2);
        assert_eq!(out, b"2.50");
    }
}
