//! The session: its database, its user's lists, its state.

use super::{command, query::query, with};
use crate::abi::{Mysql, Text, put};
use crate::charset;
use crate::columns::ColumnSet;
use crate::failure::Failure;
use crate::result::{ResultSet, mysql_store_result};
use crate::session::Handle;
use std::ffi::{CString, c_char, c_int, c_uint, c_ulong};
use std::sync::Arc;

pub extern "C" fn mysql_ping(mysql: Option<&mut Mysql>) -> c_int {
    with(mysql, 1, |handle| {
        handle.ready()?;
        let pinged = match handle.session.connection() {
            Ok(connection) => connection.ping().map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        match pinged {
            Err(failure) if failure.is_lost() && handle.may_reconnect() => handle.reconnect()?,
            pinged => pinged?,
        }
        handle.tell_end();
        handle.mysql.affected_rows = 0;
        Ok(0)
    })
}

pub extern "C" fn mysql_select_db(mysql: Option<&mut Mysql>, schema: Text) -> c_int {
    with(mysql, 1, |handle| {
        handle.ready()?;
        let schema = schema.string().unwrap_or_default();
        handle.session.connection()?.init_db(&schema)?;
        handle.tell_end();
        handle.set_schema(&schema);
        Ok(0)
    })
}

pub extern "C" fn mysql_set_server_option(mysql: Option<&mut Mysql>, option: c_uint) -> c_int {
    // MYSQL_OPTION_MULTI_STATEMENTS_ON is 0, …_OFF is 1.
    command(mysql, |connection| {
        connection.set_multi_statements(option == 0)
    })
}

pub extern "C" fn mysql_kill(mysql: Option<&mut Mysql>, connection_id: c_ulong) -> c_int {
    command(mysql, |connection| {
        connection.kill(u32::try_from(connection_id).unwrap_or(u32::MAX))
    })
}

pub extern "C" fn mysql_shutdown(mysql: Option<&mut Mysql>, _level: c_uint) -> c_int {
    command(mysql, porpoise_client::Connection::shut_down_server)
}

pub extern "C" fn mysql_refresh(mysql: Option<&mut Mysql>, what: c_uint) -> c_int {
    command(mysql, |connection| connection.refresh(what as u8))
}

pub extern "C" fn mysql_dump_debug_info(mysql: Option<&mut Mysql>) -> c_int {
    command(mysql, porpoise_client::Connection::debug)
}

pub extern "C" fn mysql_debug(_: Text) {}

pub extern "C" fn mysql_stat(mysql: Option<&mut Mysql>) -> *const c_char {
    with(mysql, c"".as_ptr(), |handle| {
        handle.ready()?;
        let line = handle.session.connection()?.statistics()?;
        handle.session.stat = CString::new(line).ok();
        Ok(handle
            .session
            .stat
            .as_ref()
            .map_or(c"".as_ptr(), |line| line.as_ptr()))
    })
}

/// A statement's rows at once; null if it failed.
fn listed(mysql: Option<&mut Mysql>, sql: &str) -> *mut ResultSet {
    let Some(mysql) = mysql else {
        return std::ptr::null_mut();
    };
    match with(Some(mysql), 1, |handle| {
        query(handle, sql.as_bytes()).map(|()| 0)
    }) {
        0 => mysql_store_result(Some(mysql)),
        _ => std::ptr::null_mut(),
    }
}

fn like(what: &str, pattern: Text) -> String {
    let Some(pattern) = pattern.bytes().filter(|pattern| !pattern.is_empty()) else {
        return what.to_owned();
    };
    let mut escaped = Vec::new();
    charset::default().escape(pattern, true, &mut escaped);
    format!("{what} LIKE '{}'", String::from_utf8_lossy(&escaped))
}

pub extern "C" fn mysql_list_dbs(mysql: Option<&mut Mysql>, pattern: Text) -> *mut ResultSet {
    listed(mysql, &like("SHOW DATABASES", pattern))
}

pub extern "C" fn mysql_list_tables(mysql: Option<&mut Mysql>, pattern: Text) -> *mut ResultSet {
    listed(mysql, &like("SHOW TABLES", pattern))
}

pub extern "C" fn mysql_list_processes(mysql: Option<&mut Mysql>) -> *mut ResultSet {
    listed(mysql, "SHOW PROCESSLIST")
}

/// Columns without rows, with their defaults.
pub extern "C" fn mysql_list_fields(
    mysql: Option<&mut Mysql>,
    table: Text,
    pattern: Text,
) -> *mut ResultSet {
    with(mysql, std::ptr::null_mut(), |handle| {
        handle.ready()?;
        let (table, pattern) = (table.string(), pattern.string());
        let columns = handle.session.connection()?.field_list(
            table.as_deref().unwrap_or_default(),
            pattern.as_deref().unwrap_or_default(),
        )?;
        handle.tell_end();
        let columns = Arc::new(ColumnSet::new(&columns));
        handle.mysql.field_count = columns.count();
        Ok(ResultSet::of_columns(columns))
    })
}

pub extern "C" fn mysql_session_track_get_first(
    mysql: Option<&mut Mysql>,
    kind: c_uint,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    with(mysql, 1, |handle| {
        handle.session.tracked_next = 0;
        Ok(tracked(handle, kind, text, length))
    })
}

pub extern "C" fn mysql_session_track_get_next(
    mysql: Option<&mut Mysql>,
    kind: c_uint,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    with(mysql, 1, |handle| Ok(tracked(handle, kind, text, length)))
}

fn tracked(
    handle: &mut Handle<'_>,
    kind: c_uint,
    text: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    let session = &mut *handle.session;
    let mut rest = session
        .tracked
        .iter()
        .enumerate()
        .skip(session.tracked_next);
    let Some((at, (_, found, bytes))) = rest.find(|(_, (known, ..))| *known == kind) else {
        return 1;
    };
    put(text, found.as_ptr());
    put(length, *bytes);
    session.tracked_next = at + 1;
    0
}
