//! Statements as text, and their results.

use super::{text_of, with};
use crate::abi::{Bool, Mysql, Text, status};
use crate::failure::{self, Failure};
use crate::session::Handle;
use porpoise_client::flags::Status;
use std::ffi::{c_char, c_int, c_uint, c_ulong};

pub extern "C" fn mysql_query(mysql: Option<&mut Mysql>, sql: Text) -> c_int {
    let sql = sql.bytes().unwrap_or_default();
    with(mysql, 1, |handle| query(handle, sql).map(|()| 0))
}

pub extern "C" fn mysql_real_query(
    mysql: Option<&mut Mysql>,
    sql: *const c_char,
    length: c_ulong,
) -> c_int {
    let sql = text_of(sql, length);
    with(mysql, 1, |handle| query(handle, sql).map(|()| 0))
}

pub(super) fn query(handle: &mut Handle<'_>, sql: &[u8]) -> Result<(), Failure> {
    handle.ready()?;
    let sent = handle.session.connection()?.query(sql).map(drop);
    if let Err(error) = sent {
        let failure = Failure::from(error);
        if !(failure.is_lost() && handle.may_reconnect() && handle.reconnect().is_ok()) {
            return Err(failure);
        }
        handle.session.connection()?.query(sql).map(drop)?;
    }
    handle.tell();
    Ok(())
}

pub extern "C" fn mysql_send_query(
    mysql: Option<&mut Mysql>,
    sql: *const c_char,
    length: c_ulong,
) -> c_int {
    with(mysql, 1, |handle| {
        handle.ready()?;
        let connection = handle.session.connection()?;
        connection.send_query(text_of(sql, length))?;
        connection.flush()?;
        handle.mysql.status = status::QUERY_SENT;
        Ok(0)
    })
}

pub extern "C" fn mysql_read_query_result(mysql: Option<&mut Mysql>) -> Bool {
    with(mysql, 1, |handle| {
        if handle.mysql.status != status::QUERY_SENT {
            return Err(Failure::of(failure::COMMANDS_OUT_OF_SYNC));
        }
        handle.mysql.status = status::READY;
        handle.session.connection()?.receive().map(drop)?;
        handle.tell();
        Ok(0)
    })
}

/// 0: there is one more result; -1: there is none; 1: there is, but it failed.
pub extern "C" fn mysql_next_result(mysql: Option<&mut Mysql>) -> c_int {
    with(mysql, 1, |handle| {
        handle.mysql.clear_error();
        if handle.mysql.status != status::READY {
            return Err(Failure::of(failure::COMMANDS_OUT_OF_SYNC));
        }
        if !handle.has_more_results() || !handle.session.connection()?.results().next_result()? {
            return Ok(-1);
        }
        handle.tell();
        Ok(0)
    })
}

pub extern "C" fn mysql_more_results(mysql: Option<&Mysql>) -> Bool {
    let more = c_uint::from(Status::MORE_RESULTS_EXISTS.bits());
    mysql
        .is_some_and(|mysql| mysql.server_status & more != 0)
        .into()
}

fn statement(mysql: Option<&mut Mysql>, sql: &str) -> Bool {
    with(mysql, 1, |handle| query(handle, sql.as_bytes()).map(|()| 0))
}

pub extern "C" fn mysql_commit(mysql: Option<&mut Mysql>) -> Bool {
    statement(mysql, "COMMIT")
}

pub extern "C" fn mysql_rollback(mysql: Option<&mut Mysql>) -> Bool {
    statement(mysql, "ROLLBACK")
}

pub extern "C" fn mysql_autocommit(mysql: Option<&mut Mysql>, on: Bool) -> Bool {
    statement(
        mysql,
        if on == 0 {
            "SET autocommit=0"
        } else {
            "SET autocommit=1"
        },
    )
}
