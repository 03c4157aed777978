//! The beginning and the end of a connection, and of the library.

use super::with;
use crate::abi::{Bool, Mysql, Text, status};
use crate::border;
use crate::embedded;
use crate::nonblocking;
use crate::route::Request;
use std::ffi::{c_char, c_int, c_uint, c_ulong};

pub extern "C" fn mysql_init(mysql: *mut Mysql) -> *mut Mysql {
    border(std::ptr::null_mut(), || {
        let mut fresh = Mysql::new();
        if mysql.is_null() {
            fresh.free_me = 1;
            return Box::into_raw(Box::new(fresh));
        }
        // SAFETY: by the border's contract there is room for a MYSQL; whatever lies there is no
        // value of ours.
        unsafe { mysql.write(fresh) };
        mysql
    })
}

pub extern "C" fn mysql_close(mysql: *mut Mysql) {
    border((), || {
        nonblocking::cancel(mysql);
        // SAFETY: by the border's contract it is null or was given to mysql_init().
        let Some(open) = (unsafe { mysql.as_mut() }) else {
            return;
        };
        let is_ours = std::mem::take(&mut open.free_me) != 0;
        open.end();
        if is_ours {
            // SAFETY: mysql_init() made it by Box::into_raw, as `free_me` told, and it comes back
            // once.
            drop(unsafe { Box::from_raw(mysql) });
        }
    });
}

pub extern "C" fn mysql_real_connect(
    mysql: Option<&mut Mysql>,
    host: Text,
    user: Text,
    password: Text,
    schema: Text,
    port: c_uint,
    unix_socket: Text,
    flags: c_ulong,
) -> *mut Mysql {
    let Some(mysql) = mysql else {
        return std::ptr::null_mut();
    };
    let request = Request {
        host: host.string(),
        user: user.string(),
        password: password.string(),
        schema: schema.string(),
        port,
        unix_socket: unix_socket.string(),
        flags,
    };
    let connected = with(Some(mysql), false, |handle| {
        handle.mysql.clear_error();
        handle.connect(request).map(|()| true)
    });
    if connected {
        mysql
    } else {
        std::ptr::null_mut()
    }
}

pub extern "C" fn mariadb_reconnect(mysql: Option<&mut Mysql>) -> Bool {
    with(mysql, 1, |handle| handle.reconnect().map(|()| 0))
}

pub extern "C" fn mysql_change_user(
    mysql: Option<&mut Mysql>,
    user: Text,
    password: Text,
    schema: Text,
) -> Bool {
    with(mysql, 1, |handle| {
        handle.ready()?;
        let schema = schema.string().filter(|schema| !schema.is_empty());
        let user = user.string().unwrap_or_default();
        let password = password.string().unwrap_or_default();
        let changed = handle
            .session
            .connection()?
            .change_user(&user, &password, schema.as_deref());
        handle.detach_statements();
        changed?;
        handle.set_account(&user, &password);
        handle.set_schema(schema.as_deref().unwrap_or_default());
        handle.tell_end();
        Ok(0)
    })
}

pub extern "C" fn mysql_reset_connection(mysql: Option<&mut Mysql>) -> c_int {
    with(mysql, 1, |handle| {
        handle.mysql.clear_error();
        if handle.mysql.status == status::STMT_RESULT || handle.mysql.status == status::GET_RESULT {
            handle.mysql.status = status::READY;
        }
        let reset = handle.session.connection()?.reset();
        handle.detach_statements();
        handle.detach_result();
        handle.mysql.status = status::READY;
        handle.mysql.server_status = 0;
        reset?;
        handle.mysql.affected_rows = crate::session::COUNT_ERROR;
        handle.mysql.insert_id = 0;
        handle.tell_end();
        Ok(0)
    })
}

/// `argc` words, of which the first is the program's name.
pub extern "C" fn mysql_server_init(
    count: c_int,
    arguments: *const *const c_char,
    _groups: *const *const c_char,
) -> c_int {
    border(1, || {
        let count = usize::try_from(count).unwrap_or(0);
        if arguments.is_null() || count == 0 {
            return 0;
        }
        // SAFETY: by the border's contract there are `count` texts.
        let arguments = unsafe { std::slice::from_raw_parts(arguments, count) };
        let words: Vec<String> = arguments
            .iter()
            .filter_map(|&argument| Text(argument).string())
            .collect();
        let Some(config) = embedded::config_of_arguments(words.iter().map(String::as_str)) else {
            return 0;
        };
        match embedded::open(&config) {
            Ok(_) => {
                embedded::set_default_config(Some(config));
                0
            }
            Err(failure) => {
                // There is no handle that could hold the message.
                eprintln!("{}", failure.message);
                1
            }
        }
    })
}

pub extern "C" fn mysql_server_end() {
    border((), || {
        embedded::set_default_config(None);
        embedded::close();
    });
}

pub extern "C" fn mysql_thread_init() -> Bool {
    0
}

pub extern "C" fn mysql_thread_end() {}

pub extern "C" fn mysql_thread_safe() -> c_uint {
    1
}

pub extern "C" fn mysql_embedded() -> Bool {
    embedded::default_config().is_some().into()
}
