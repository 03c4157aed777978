//! Client plug-ins: the log-ins that are built in can be looked up, others are refused.
//!
//! Programs look a log-in up to see whether there is one, or to set its options. None has options
//! here, and none is run by the program: `authenticate_user` fails.

use super::unsupported::refuse_plugin;
use crate::abi::{Mysql, Text};
use crate::border;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// `MYSQL_CLIENT_AUTHENTICATION_PLUGIN`, and the version of its interface.
const AUTHENTICATION: c_int = 2;
const AUTHENTICATION_INTERFACE: c_uint = 0x0100;

/// `CR_ERROR`: the log-in failed.
const LOG_IN_FAILED: c_int = 0;

/// `struct st_mysql_client_plugin_AUTHENTICATION`.
#[repr(C)]
pub struct LogInPlugin {
    kind: c_int,
    interface_version: c_uint,
    name: *const c_char,
    author: *const c_char,
    description: *const c_char,
    version: [c_uint; 3],
    license: *const c_char,
    mysql_api: *mut c_void,
    init: Option<extern "C" fn() -> c_int>,
    deinit: Option<extern "C" fn() -> c_int>,
    options: Option<extern "C" fn(*const c_char, *const c_void) -> c_int>,
    authenticate_user: extern "C" fn(*mut c_void, *mut Mysql) -> c_int,
}

// SAFETY: its pointers are to constants, or null, and nobody writes to it.
unsafe impl Sync for LogInPlugin {}

extern "C" fn refuse_log_in(_: *mut c_void, _: *mut Mysql) -> c_int {
    LOG_IN_FAILED
}

const fn log_in(name: &'static CStr, description: &'static CStr) -> LogInPlugin {
    LogInPlugin {
        kind: AUTHENTICATION,
        interface_version: AUTHENTICATION_INTERFACE,
        name: name.as_ptr(),
        author: c"Porpoise".as_ptr(),
        description: description.as_ptr(),
        version: [1, 0, 0],
        license: c"MIT OR Apache-2.0".as_ptr(),
        mysql_api: null_mut(),
        init: None,
        deinit: None,
        options: None,
        authenticate_user: refuse_log_in,
    }
}

static NATIVE: LogInPlugin = log_in(c"mysql_native_password", c"Log-in by SHA-1 scrambles");
static CACHING: LogInPlugin = log_in(c"caching_sha2_password", c"Log-in by SHA-256, cached");
static SHA256: LogInPlugin = log_in(c"sha256_password", c"Log-in by SHA-256");

fn built_in(name: &[u8], kind: c_int) -> Option<&'static LogInPlugin> {
    match (name, kind) {
        (b"mysql_native_password", AUTHENTICATION) => Some(&NATIVE),
        (b"caching_sha2_password", AUTHENTICATION) => Some(&CACHING),
        (b"sha256_password", AUTHENTICATION) => Some(&SHA256),
        _ => None,
    }
}

pub extern "C" fn mysql_client_find_plugin(
    mysql: Option<&mut Mysql>,
    name: Text,
    kind: c_int,
) -> *const LogInPlugin {
    border(std::ptr::null(), || {
        match built_in(name.bytes().unwrap_or_default(), kind) {
            Some(plugin) => plugin,
            None => {
                refuse_plugin(mysql, name);
                std::ptr::null()
            }
        }
    })
}

/// What is built in is loaded already; nothing else is.
pub extern "C" fn mysql_load_plugin(
    mysql: Option<&mut Mysql>,
    name: Text,
    kind: c_int,
    _count: c_int,
) -> *const LogInPlugin {
    mysql_client_find_plugin(mysql, name, kind)
}

/// A plug-in of the program's own, of which only the header is looked at.
pub extern "C" fn mysql_client_register_plugin(
    mysql: Option<&mut Mysql>,
    plugin: Option<&LogInPlugin>,
) -> *const LogInPlugin {
    border(std::ptr::null(), || {
        refuse_plugin(
            mysql,
            Text(plugin.map_or(std::ptr::null(), |plugin| plugin.name)),
        );
        std::ptr::null()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::PLUGIN_CANNOT_LOAD;

    #[test]
    fn built_in_log_ins_are_found_and_others_refused() {
        let mut mysql = Mysql::new();
        for name in [
            c"mysql_native_password",
            c"caching_sha2_password",
            c"sha256_password",
        ] {
            let found = mysql_client_find_plugin(Some(&mut mysql), Text(name.as_ptr()), 2);
            // SAFETY: it is null or one of the constants above.
            let found = unsafe { found.as_ref() }.unwrap();
            assert_eq!(Text(found.name).get(), Some(name));
            assert_eq!(mysql.net.last_errno, 0);
        }
        for (name, kind) in [(c"dialog", 2), (c"sha256_password", 3), (c"", -1)] {
            let found = mysql_load_plugin(Some(&mut mysql), Text(name.as_ptr()), kind, 0);
            assert!(found.is_null());
            assert_eq!(mysql.net.last_errno, PLUGIN_CANNOT_LOAD);
            mysql.clear_error();
        }
        assert!(mysql_client_register_plugin(Some(&mut mysql), Some(&NATIVE)).is_null());
        assert_eq!(mysql.net.last_errno, PLUGIN_CANNOT_LOAD);
        mysql.end();
    }
}
