//! Character sets: which one a connection has, and texts escaped and converted in it.

use super::with;
use crate::abi::{CharsetInfo, MyCharsetInfo, Mysql, Text, bytes_of, put, put_bytes};
use crate::border;
use crate::charset;
use crate::session::{charset_name, find_charset};
use porpoise_client::flags::Status;
use std::ffi::{c_char, c_int, c_uint, c_ulong};

pub extern "C" fn mysql_set_character_set(mysql: Option<&mut Mysql>, name: Text) -> c_int {
    with(mysql, 1, |handle| {
        let charset = find_charset(name.bytes().unwrap_or_default())?;
        handle.ready()?;
        handle.run(format!("SET NAMES {}", charset_name(charset)).as_bytes())?;
        handle.mysql.charset = &charset.info;
        Ok(0)
    })
}

pub extern "C" fn mysql_character_set_name(mysql: Option<&Mysql>) -> *const c_char {
    let charset = mysql.map_or(charset::default(), |mysql| charset::Row::of(mysql.charset));
    charset.info.csname
}

pub extern "C" fn mysql_get_character_set_info(mysql: Option<&Mysql>, info: *mut MyCharsetInfo) {
    let charset = mysql.map_or(charset::default(), |mysql| charset::Row::of(mysql.charset));
    put(info, charset.describe());
}

pub extern "C" fn mysql_get_charset_by_name(name: Text) -> *const CharsetInfo {
    let row = charset::Row::by_name(name.bytes().unwrap_or_default());
    row.map_or(std::ptr::null(), |row| &row.info)
}

pub extern "C" fn mysql_get_charset_by_nr(number: c_uint) -> *const CharsetInfo {
    let row = charset::Row::by_number(number);
    row.map_or(std::ptr::null(), |row| &row.info)
}

/// Writes `text` escaped, and a zero byte: there is room for twice as many bytes and one.
fn escape(
    charset: &charset::Row,
    backslashes: bool,
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    border(0, || {
        let mut escaped = Vec::with_capacity(length as usize + 16);
        charset.escape(bytes_of(from, length as usize), backslashes, &mut escaped);
        let length = escaped.len();
        escaped.push(0);
        put_bytes(to.cast(), &escaped);
        length as c_ulong
    })
}

pub extern "C" fn mysql_real_escape_string(
    mysql: Option<&Mysql>,
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    let Some(mysql) = mysql else {
        return mysql_escape_string(to, from, length);
    };
    let no_backslashes = c_uint::from(Status::NO_BACKSLASH_ESCAPES.bits());
    let backslashes = mysql.server_status & no_backslashes == 0;
    escape(
        charset::Row::of(mysql.charset),
        backslashes,
        to,
        from,
        length,
    )
}

pub extern "C" fn mysql_escape_string(
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    escape(charset::default(), true, to, from, length)
}

pub extern "C" fn mysql_hex_string(
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    border(0, || {
        let bytes = bytes_of(from, length as usize);
        let mut digits = Vec::with_capacity(2 * bytes.len() + 1);
        for byte in bytes {
            let digit =
                |value: u8| char::from_digit(value.into(), 16).map_or(b'0', |digit| digit as u8);
            digits.extend(
                [digit(byte >> 4), digit(byte & 15)].map(|digit| digit.to_ascii_uppercase()),
            );
        }
        let length = digits.len();
        digits.push(0);
        put_bytes(to.cast(), &digits);
        length as c_ulong
    })
}

/// Converts a text; returns the bytes written, or `-1` and a number of `errno`.
pub extern "C" fn mariadb_convert_string(
    from: *const c_char,
    from_length: *mut usize,
    from_charset: *const CharsetInfo,
    to: *mut c_char,
    to_length: *mut usize,
    to_charset: *const CharsetInfo,
    error: *mut c_int,
) -> usize {
    const EINVAL: c_int = 22;
    const E2BIG: c_int = 7;
    const FAILED: usize = usize::MAX;
    border(FAILED, || {
        let known = |info| porpoise_types::Charset::by_name(&charset_name(charset::Row::of(info)));
        let (Some(source), Some(target)) = (known(from_charset), known(to_charset)) else {
            put(error, EINVAL);
            return FAILED;
        };
        let length = crate::abi::take(from_length).unwrap_or(0);
        let room = crate::abi::take(to_length).unwrap_or(0);
        let Ok(text) = source.decode(bytes_of(from, length)) else {
            put(error, EINVAL);
            return FAILED;
        };
        let mut converted = Vec::new();
        target.encode(&text, &mut converted);
        if converted.len() > room {
            put(error, E2BIG);
            return FAILED;
        }
        put_bytes(to.cast(), &converted);
        put(from_length, 0);
        put(to_length, room - converted.len());
        put(error, 0);
        converted.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_hexadecimal() {
        let mut to = [0 as c_char; 7];
        assert_eq!(
            mysql_hex_string(to.as_mut_ptr(), c"\x01\xABz".as_ptr(), 3),
            6
        );
        assert_eq!(Text(to.as_ptr()).bytes(), Some(&b"01AB7A"[..]));
    }
}
