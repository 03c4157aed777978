//! What this version doesn't do: the symbols are there, and each call fails.

use crate::abi::{Bool, Mysql, Text, put};
use crate::failure::{self, Failure};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

fn unsupported(mysql: Option<&mut Mysql>, what: &str) {
    if let Some(mysql) = mysql {
        mysql.fail(&Failure::new(
            failure::PLUGIN_CANNOT_LOAD,
            format!("This version of Porpoise doesn't yet support '{what}'"),
        ));
    }
}

pub extern "C" fn mysql_client_find_plugin(
    mysql: Option<&mut Mysql>,
    _name: Text,
    _kind: c_int,
) -> *mut c_void {
    unsupported(mysql, "client plugins");
    std::ptr::null_mut()
}

pub extern "C" fn mysql_client_register_plugin(
    mysql: Option<&mut Mysql>,
    _plugin: *mut c_void,
) -> *mut c_void {
    unsupported(mysql, "client plugins");
    std::ptr::null_mut()
}

pub extern "C" fn mysql_load_plugin(
    mysql: Option<&mut Mysql>,
    _name: Text,
    _kind: c_int,
    _count: c_int,
) -> *mut c_void {
    unsupported(mysql, "client plugins");
    std::ptr::null_mut()
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

pub extern "C" fn mariadb_rpl_error() -> *const c_char {
    c"This version of Porpoise doesn't yet support 'replication'".as_ptr()
}

/// `…_start(int *ret, MYSQL *mysql, …)`: nothing to wait for, and the error in the connection.
pub extern "C" fn asynchronous(to: *mut c_int, mysql: Option<&mut Mysql>) -> c_int {
    put(to, 1);
    if let Some(mysql) = mysql {
        mysql.fail(&Failure::of(failure::ASYNC_NOT_SUPPORTED));
    }
    0
}

/// The same for calls that give a pointer.
pub extern "C" fn asynchronous_pointer(to: *mut *mut c_void, mysql: Option<&mut Mysql>) -> c_int {
    put(to, std::ptr::null_mut());
    if let Some(mysql) = mysql {
        mysql.fail(&Failure::of(failure::ASYNC_NOT_SUPPORTED));
    }
    0
}

/// The same for calls whose answer is a `my_bool`.
pub extern "C" fn asynchronous_bool(to: *mut Bool, mysql: Option<&mut Mysql>) -> c_int {
    put(to, 1);
    if let Some(mysql) = mysql {
        mysql.fail(&Failure::of(failure::ASYNC_NOT_SUPPORTED));
    }
    0
}

/// The same for calls on a statement: its own errors stay as they are.
pub extern "C" fn asynchronous_statement(to: *mut c_int) -> c_int {
    put(to, 1);
    0
}

/// The same for those whose answer is a `my_bool`.
pub extern "C" fn asynchronous_statement_bool(to: *mut Bool) -> c_int {
    put(to, 1);
    0
}

/// The same for the next row of a result: there is none.
pub extern "C" fn asynchronous_row(to: *mut *mut c_void) -> c_int {
    put(to, std::ptr::null_mut());
    0
}

/// The same for calls that give nothing.
pub extern "C" fn asynchronous_quietly() -> c_int {
    0
}
