//! What is known of a connection, of its last statement, and of the library.

use super::{charsets::mysql_get_charset_by_name, charsets::mysql_get_charset_by_nr, with};
use crate::abi::{Bool, ConstString, Field, Mysql, Parameters, Text, put};
use crate::nonblocking;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};

/// The MariaDB with which that version of the library comes. MARIADB_CLIENT_VERSION tells it, and
/// programs look there for what the library can do.
const SERIES_VERSION: &CStr = c"10.11.19";
const SERIES_VERSION_NUMBER: usize = 101_119;

/// MARIADB_CONNECTION_TLS_VERSION_ID's numbers.
const TLS_1_2: c_uint = 3;
const TLS_1_3: c_uint = 4;

/// What this library is compatible with, and what it says it is.
const CLIENT_VERSION: &CStr = c"3.3.20";
const CLIENT_VERSION_NUMBER: c_ulong = 30_320;

pub extern "C" fn mysql_errno(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.net.last_errno)
}

pub extern "C" fn mysql_error(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(c"".as_ptr(), |mysql| mysql.net.last_error.as_ptr())
}

pub extern "C" fn mysql_sqlstate(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(c"00000".as_ptr(), |mysql| mysql.net.sqlstate.as_ptr())
}

pub extern "C" fn mysql_affected_rows(mysql: Option<&Mysql>) -> u64 {
    mysql.map_or(0, |mysql| mysql.affected_rows)
}

pub extern "C" fn mysql_insert_id(mysql: Option<&Mysql>) -> u64 {
    mysql.map_or(0, |mysql| mysql.insert_id)
}

pub extern "C" fn mysql_field_count(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.field_count)
}

pub extern "C" fn mysql_warning_count(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.warning_count)
}

pub extern "C" fn mysql_info(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(std::ptr::null(), |mysql| mysql.info)
}

pub extern "C" fn mysql_thread_id(mysql: Option<&Mysql>) -> c_ulong {
    mysql.map_or(0, |mysql| mysql.thread_id)
}

pub extern "C" fn mysql_get_socket(mysql: Option<&Mysql>) -> c_int {
    mysql.map_or(-1, |mysql| {
        nonblocking::awaited_socket(mysql).unwrap_or(mysql.net.fd)
    })
}

pub extern "C" fn mysql_get_host_info(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(std::ptr::null(), |mysql| mysql.host_info)
}

pub extern "C" fn mysql_get_proto_info(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.protocol_version)
}

pub extern "C" fn mysql_get_server_info(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(std::ptr::null(), |mysql| mysql.server_version)
}

pub extern "C" fn mysql_get_server_version(mysql: Option<&Mysql>) -> c_ulong {
    let version = mysql.and_then(|mysql| Text(mysql.server_version).string());
    version_number(&version.unwrap_or_default())
}

/// `8.4.3-Porpoise` is 80403.
fn version_number(version: &str) -> c_ulong {
    version
        .split(|c: char| !c.is_ascii_digit())
        .take(3)
        .fold(0, |number, part| {
            number * 100 + part.parse::<c_ulong>().unwrap_or(0)
        })
}

pub extern "C" fn mysql_get_server_name(mysql: Option<&Mysql>) -> *const c_char {
    let version = mysql.and_then(|mysql| Text(mysql.server_version).string());
    let is_mariadb = version.is_some_and(|version| version.contains("MariaDB"));
    if is_mariadb {
        c"MariaDB".as_ptr()
    } else {
        c"MySQL".as_ptr()
    }
}

pub extern "C" fn mariadb_connection(mysql: Option<&Mysql>) -> Bool {
    let version = mysql.and_then(|mysql| Text(mysql.server_version).string());
    version
        .is_some_and(|version| version.contains("MariaDB"))
        .into()
}

pub extern "C" fn mysql_get_client_info() -> *const c_char {
    CLIENT_VERSION.as_ptr()
}

pub extern "C" fn mysql_get_client_version() -> c_ulong {
    CLIENT_VERSION_NUMBER
}

pub extern "C" fn mysql_get_timeout_value(mysql: Option<&Mysql>) -> c_uint {
    mysql_get_timeout_value_ms(mysql).div_ceil(1000)
}

pub extern "C" fn mysql_get_timeout_value_ms(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| {
        let settled = || mysql.options.connect_timeout.saturating_mul(1000);
        nonblocking::patience_ms(mysql).unwrap_or_else(settled)
    })
}

/// Breaks a connection that another thread waits on.
pub extern "C" fn mariadb_cancel(mysql: Option<&mut Mysql>) -> c_int {
    with(mysql, 1, |handle| {
        let connection = handle.session.connection()?;
        connection
            .stream()
            .shutdown()
            .map_err(porpoise_client::Error::from)?;
        Ok(0)
    })
}

/// Programs read these and may write them.
struct Limits(std::cell::UnsafeCell<[c_ulong; 2]>);

// SAFETY: this library reads them never; what programs do is theirs, as with the original's
// variables.
unsafe impl Sync for Limits {}

static LIMITS: Limits = Limits(std::cell::UnsafeCell::new([1 << 30, 8192]));

struct SharedParameters(Parameters);

// SAFETY: the pointers lead to `LIMITS`; nobody writes the structure.
unsafe impl Sync for SharedParameters {}

static PARAMETERS: SharedParameters = SharedParameters(Parameters {
    max_allowed_packet: LIMITS.0.get().cast(),
    net_buffer_length: LIMITS.0.get().cast::<c_ulong>().wrapping_add(1),
    extension: std::ptr::null_mut(),
});

pub extern "C" fn mysql_get_parameters() -> *const Parameters {
    &PARAMETERS.0
}

/// A length-encoded number as the protocol has it; moves the pointer behind it.
pub extern "C" fn mysql_net_field_length(packet: Option<&mut *const u8>) -> c_ulong {
    const NULL_LENGTH: c_ulong = c_ulong::MAX;
    let Some(packet) = packet else { return 0 };
    let byte = |at: usize| crate::abi::take(packet.wrapping_add(at)).unwrap_or(0);
    let number = |bytes: usize| {
        (0..bytes)
            .rev()
            .fold(0, |number, at| number << 8 | c_ulong::from(byte(1 + at)))
    };
    let (value, taken) = match byte(0) {
        251 => (NULL_LENGTH, 1),
        252 => (number(2), 3),
        253 => (number(3), 4),
        254 => (number(8), 9),
        small => (small.into(), 1),
    };
    *packet = packet.wrapping_add(taken);
    value
}

pub extern "C" fn mariadb_field_attr(
    attribute: *mut ConstString,
    _field: Option<&Field>,
    _kind: c_uint,
) -> c_int {
    // The extended types that MariaDB's servers tell are not asked for.
    put(
        attribute,
        ConstString {
            str: std::ptr::null(),
            length: 0,
        },
    );
    1
}

pub extern "C" fn mariadb_get_info(
    mysql: Option<&mut Mysql>,
    what: c_uint,
    to: *mut c_void,
) -> Bool {
    mariadb_get_infov(mysql, what, to, std::ptr::null())
}

/// `enum mariadb_value`, as far as there is something to tell.
pub extern "C" fn mariadb_get_infov(
    mysql: Option<&mut Mysql>,
    what: c_uint,
    to: *mut c_void,
    argument: *const c_void,
) -> Bool {
    let mut mysql = mysql;
    let (cipher, version) = mysql
        .as_mut()
        .and_then(|mysql| mysql.session())
        .map_or((std::ptr::null(), std::ptr::null()), |handle| {
            (handle.session.tls_cipher(), handle.session.tls_version())
        });
    let mysql = mysql.as_deref();
    let text = |value: *const c_char| put(to.cast(), value);
    let number = |value: c_uint| put(to.cast(), value);
    match (what, mysql) {
        // The charset of a number or a name.
        (0, _) => put(
            to.cast(),
            mysql_get_charset_by_nr(argument as usize as c_uint),
        ),
        (1, _) => put(to.cast(), mysql_get_charset_by_name(Text(argument.cast()))),
        (3, _) => text(SERIES_VERSION.as_ptr()),
        (4, _) => put(to.cast(), SERIES_VERSION_NUMBER),
        (5, Some(mysql)) => number(mysql_get_timeout_value(Some(mysql))),
        (6, Some(mysql)) => number(mysql_get_timeout_value_ms(Some(mysql))),
        (7, Some(mysql)) => put(to.cast(), mysql.charset),
        (8, Some(mysql)) => text(mysql_error(Some(mysql))),
        (9, Some(mysql)) => number(mysql_errno(Some(mysql))),
        (10, Some(mysql)) => text(mysql.host),
        (11, Some(mysql)) => text(mysql.info),
        (12, Some(mysql)) => number(mysql.port),
        (13, Some(mysql)) => number(mysql.protocol_version),
        (14, Some(mysql)) => number(if mysql.port == 0 { 0 } else { 1 }),
        (15, Some(mysql)) => text(mysql.db),
        (16, Some(mysql)) => text(mysql_get_server_name(Some(mysql))),
        (17, Some(mysql)) => text(mysql.server_version),
        (18, Some(mysql)) => put(to.cast(), mysql_get_server_version(Some(mysql)) as usize),
        (19, Some(mysql)) => put(to.cast(), mysql_get_socket(Some(mysql))),
        (20, Some(mysql)) => text(mysql.net.sqlstate.as_ptr()),
        (21, Some(_)) => text(cipher),
        (22, _) => text(c"rustls".as_ptr()),
        (23, Some(_)) => text(version),
        (24, Some(_)) => match Text(version).bytes() {
            Some(b"TLSv1.2") => number(TLS_1_2),
            Some(b"TLSv1.3") => number(TLS_1_3),
            _ => return 1,
        },
        (26, Some(mysql)) => text(mysql.unix_socket),
        (27, Some(mysql)) => text(mysql.user),
        (28, _) => put(to.cast(), 1usize << 30),
        (29, _) => put(to.cast(), 8192usize),
        (30, Some(mysql)) => number(mysql.server_status),
        (31, Some(mysql)) => put(to.cast(), mysql.server_capabilities),
        (33, Some(mysql)) => put(to.cast(), mysql.client_flag),
        _ => return 1,
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number() {
        assert_eq!(version_number("8.4.3-Porpoise"), 80_403);
        assert_eq!(version_number("10.11.19-MariaDB-0+deb12u1"), 101_119);
    }
}
