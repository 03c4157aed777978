//! What this version doesn't do: the symbols are there, and each call fails.

use crate::abi::{Bool, Mysql, Text};
use crate::failure::{self, Failure};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

fn unsupported(mysql: Option<&mut Mysql>, what: &str) {
    if let Some(mysql) = mysql {
        mysql.fail(&Failure::new(
            failure::NOT_IMPLEMENTED,
            format!("This version of Porpoise doesn't yet support '{what}'"),
        ));
    }
}

/// A plug-in that isn't built in.
pub(super) fn refuse_plugin(mysql: Option<&mut Mysql>, name: Text) {
    if let Some(mysql) = mysql {
        let name = name.string().unwrap_or_default();
        let reason = "it isn't built in, and this library loads none";
        mysql.fail(&Failure::new(
            failure::PLUGIN_CANNOT_LOAD,
            format!("Plugin {name} could not be loaded: {reason}"),
        ));
    }
}

pub extern "C" fn mysql_net_read_packet(mysql: Option<&mut Mysql>) -> c_ulong {
    unsupported(mysql, "reading packets");
    c_ulong::from(c_uint::MAX)
}

pub extern "C" fn ma_pvio_register_callback(_register: Bool, _callback: *mut c_void) -> c_int {
    1
}

/// Replication: there is no handle, so every call on one fails.
pub extern "C" fn mariadb_rpl_init(mysql: Option<&mut Mysql>, _version: c_uint) -> *mut c_void {
    unsupported(mysql, "replication");
    std::ptr::null_mut()
}

pub extern "C" fn mariadb_rpl_nothing() -> *mut c_void {
    std::ptr::null_mut()
}

pub extern "C" fn mariadb_rpl_failure() -> c_int {
    1
}

pub extern "C" fn mariadb_rpl_errno() -> c_uint {
    failure::NOT_IMPLEMENTED
}

pub extern "C" fn mariadb_rpl_error() -> *const c_char {
    c"This version of Porpoise doesn't yet support 'replication'".as_ptr()
}
