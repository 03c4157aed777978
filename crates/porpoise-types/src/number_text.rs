//! Numbers as MySQL prints them, straight into a byte buffer.
//!
//! A DOUBLE prints the shortest digits that read back as the same number, plainly from 1e-15 up to
//! 1e15 and with an exponent beyond: `0.1`, `0.000001`, `100000000000000`, `1e15`, `1.5e-16`. A
//! FLOAT prints six significant digits in the same manner.

use crate::CompactString;

/// The powers of ten between which numbers print without an exponent.
const PLAIN: std::ops::Range<i32> = -15..15;

/// Appends a number in decimal digits.
pub fn write_int(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

/// Appends a number in decimal digits.
pub fn write_uint(v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes());
}

/// Writes an integer with zeros in front up to a width (ZEROFILL).
pub fn write_padded(v: u64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(v).as_bytes();
    out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits);
}

/// The shortest text that reads back as the same double. Infinities and NaN, which SQL has not,
/// print as 0. The zero of a negative sign has it.
pub fn write_double(v: f64, out: &mut Vec<u8>) {
    if v == 0.0 || !v.is_finite() {
        return write_zero(v.is_finite() && v.is_sign_negative(), out);
    }
    if v == v.trunc() && v.abs() < 1e15 {
        return write_int(v as i64, out);
    }
    let mut buffer = zmij::Buffer::new();
    write_scientific(buffer.format_finite(v), out);
}

/// A FLOAT column's value: six significant digits.
pub fn write_float(v: f32, out: &mut Vec<u8>) {
    if v == 0.0 || !v.is_finite() {
        return write_zero(v.is_finite() && v.is_sign_negative(), out);
    }
    if v == v.trunc() && v.abs() < 1e6 {
        return write_int(v as i64, out);
    }
    write_scientific(&format!("{v:.5e}"), out);
}

fn write_zero(is_negative: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_negative { b"-0" } else { b"0" });
}

/// With a fixed number of decimals, as DOUBLE(m,d) and `ROUND(x, d)` print.
pub fn write_fixed(v: f64, decimals: u8, out: &mut Vec<u8>) {
    let v = if v.is_finite() { v } else { 0.0 };
    let start = out.len();
    out.extend_from_slice(format!("{v:.*}", decimals.min(30) as usize).as_bytes());
    // MySQL has no negative zero.
    if out.get(start) == Some(&b'-') && !out[start..].iter().any(|b| matches!(b, b'1'..=b'9')) {
        out.remove(start);
    }
}

/// A double in at most so many characters, with as many digits as they have room for; `None` where
/// not even one digit fits. A fraction may become 0.
pub(crate) fn double_within(v: f64, max_chars: usize) -> Option<CompactString> {
    /// The most digits that tell doubles apart.
    const DIGITS: usize = 17;
    /// Smaller fractions have an exponent.
    const FRACTION_MIN: f64 = 1e-5;
    let mut text = Vec::new();
    for digits in (1..=DIGITS).rev() {
        let rounded = format!("{v:.*e}", digits - 1);
        text.clear();
        write_scientific(&rounded, &mut text);
        if text.len() > max_chars {
            text.clear();
            write_with_exponent(&rounded, &mut text);
        }
        if text.len() <= max_chars {
            return Some(CompactString::from_utf8_lossy(&text));
        }
    }
    let before_fraction = if v < 0.0 { "-0." } else { "0." }.len();
    if !(FRACTION_MIN..1.0).contains(&v.abs()) || max_chars < before_fraction {
        return None;
    }
    text.clear();
    write_double(
        format!("{v:.*}", max_chars - before_fraction)
            .parse()
            .ok()?,
        &mut text,
    );
    Some(CompactString::from_utf8_lossy(&text))
}

/// Writes what `{:e}` formats, without the zeros at the mantissa's end.
fn write_with_exponent(text: &str, out: &mut Vec<u8>) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    out.extend_from_slice(mantissa.as_bytes());
    out.push(b'e');
    out.extend_from_slice(exponent.as_bytes());
}

/// Rewrites digits in any of Rust's forms (`12.5`, `1.25e-7`) as MySQL lays them out.
fn write_scientific(text: &str, out: &mut Vec<u8>) {
    let text = match text.strip_prefix('-') {
        Some(rest) => {
            out.push(b'-');
            rest
        }
        None => text,
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i32>().unwrap_or(0)),
        None => (text, 0),
    };
    let point = mantissa.find('.').unwrap_or(mantissa.len()) as i32;
    let mut digits = [0u8; 64];
    let mut n = 0;
    for b in mantissa
        .bytes()
        .filter(u8::is_ascii_digit)
        .take(digits.len())
    {
        digits[n] = b;
        n += 1;
    }
    let leading = digits[..n].iter().take_while(|&&d| d == b'0').count();
    let significant = n - digits[..n].iter().rev().take_while(|&&d| d == b'0').count();
    let digits = digits.get(leading..significant).unwrap_or_default();
    if digits.is_empty() {
        out.push(b'0');
        return;
    }
    // The number is d.ddd × 10^exponent.
    let exponent = exponent + point - leading as i32 - 1;
    let is_fraction = exponent >= 0 && exponent + 1 < digits.len() as i32;
    if !PLAIN.contains(&exponent) && !is_fraction {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        write_int(exponent as i64, out);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let integer = exponent as usize + 1;
        if digits.len() <= integer {
            out.extend_from_slice(digits);
            out.resize(out.len() + integer - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..integer]);
            out.push(b'.');
            out.extend_from_slice(&digits[integer..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(v: f64) -> String {
        let mut out = Vec::new();
        write_double(v, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn float(v: f32) -> String {
        let mut out = Vec::new();
        write_float(v, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn doubles_print_plainly_between_1e_minus_15_and_1e15() {
        let facts = [
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1e16, "1e16"),
            (1234567890123456.0, "1.234567890123456e15"),
            (123456789012345678.0, "1.2345678901234568e17"),
            (1e-5, "0.00001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (1.2345678901234567e-15, "0.0000000000000012345678901234568"),
            (-1.2345678901234567e-14, "-0.000000000000012345678901234567"),
            (0.1 + 0.2, "0.30000000000000004"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e308"),
            (-1e15, "-1e15"),
            (-0.0, "-0"),
            (12.5, "12.5"),
        ];
        for (v, text) in facts {
            assert_eq!(double(v), text);
        }
    }

    /// Checked on MariaDB 10.11.
    #[test]
    fn floats_print_six_significant_digits() {
        let facts = [
            (0.1, "0.1"),
            (123456789.0, "123457000"),
            (1e10, "10000000000"),
            (1.5e-7, "0.00000015"),
            (16777216.0, "16777200"),
            (1e20, "1e20"),
            (3.4028234e38, "3.40282e38"),
            (0.33333334, "0.333333"),
            (123456.7, "123457"),
            (1.23456e15, "1.23456e15"),
            (1e-16, "1e-16"),
        ];
        for (v, text) in facts {
            assert_eq!(float(v), text);
        }
    }
}
