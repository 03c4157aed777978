//! The functions on a `MYSQL_STMT`: each has the [`Statement`] do it, and notes a failure in its
//! public fields.

use super::{CURSOR_READ_ONLY, INITTED, Statement, attribute};
use crate::abi::{Bind, Field, Mysql, RowLink, bytes_of, put, take};
use crate::border;
use crate::calls::text_of;
use crate::failure::{self, Failure};
use crate::result::ResultSet;
use crate::session::COUNT_ERROR;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

/// Calls `work` on a statement; `failed` says what the call returns if that fails.
#[inline]
fn with<T: Copy>(
    statement: Option<&mut Statement>,
    failed: T,
    work: impl FnOnce(&mut Statement) -> Result<T, Failure>,
) -> T {
    border(failed, || {
        let Some(statement) = statement else {
            return failed;
        };
        statement.clear_error();
        work(statement).unwrap_or_else(|failure| {
            statement.fail(&failure);
            failed
        })
    })
}

pub extern "C" fn mysql_stmt_init(mysql: Option<&mut Mysql>) -> *mut Statement {
    border(std::ptr::null_mut(), || {
        let Some(mysql) = mysql else {
            return std::ptr::null_mut();
        };
        let statement = Box::into_raw(Statement::new(mysql));
        if let Some(handle) = mysql.session() {
            handle.session.statements.push(statement);
        }
        statement
    })
}

pub extern "C" fn mysql_stmt_prepare(
    statement: Option<&mut Statement>,
    sql: *const c_char,
    length: c_ulong,
) -> c_int {
    with(statement, 1, |statement| {
        statement.prepare(text_of(sql, length)).map(|()| 0)
    })
}

#[inline]
pub extern "C" fn mysql_stmt_execute(statement: Option<&mut Statement>) -> c_int {
    with(statement, 1, |statement| statement.execute().map(|()| 0))
}

pub extern "C" fn mariadb_stmt_execute_direct(
    statement: Option<&mut Statement>,
    sql: *const c_char,
    length: usize,
) -> c_int {
    with(statement, 1, |statement| {
        let bound = std::mem::take(&mut statement.parameters);
        statement.prepare(text_of(sql, length as c_ulong))?;
        statement.parameters = bound;
        statement.execute().map(|()| 0)
    })
}

pub extern "C" fn mysql_stmt_store_result(statement: Option<&mut Statement>) -> c_int {
    with(statement, 1, |statement| statement.store().map(|()| 0))
}

pub extern "C" fn mysql_stmt_fetch(statement: Option<&mut Statement>) -> c_int {
    with(statement, 1, Statement::fetch)
}

pub extern "C" fn mysql_stmt_fetch_column(
    statement: Option<&mut Statement>,
    bind: Option<&mut Bind>,
    column: c_uint,
    offset: c_ulong,
) -> c_int {
    with(statement, 1, |statement| match bind {
        Some(bind) => statement
            .fetch_column(bind, column as usize, offset as usize)
            .map(|()| 0),
        None => Err(Failure::of(failure::INVALID_PARAMETER)),
    })
}

pub extern "C" fn mysql_stmt_bind_param(
    statement: Option<&mut Statement>,
    binds: *const Bind,
) -> c_char {
    with(statement, 1, |statement| {
        statement.bind_parameters(binds).map(|()| 0)
    })
}

pub extern "C" fn mysql_stmt_bind_result(
    statement: Option<&mut Statement>,
    binds: *const Bind,
) -> c_char {
    with(statement, 1, |statement| {
        statement.bind_result(binds).map(|()| 0)
    })
}

pub extern "C" fn mysql_stmt_send_long_data(
    statement: Option<&mut Statement>,
    parameter: c_uint,
    data: *const c_char,
    length: c_ulong,
) -> c_char {
    with(statement, 1, |statement| {
        statement
            .send_long(parameter, bytes_of(data, length as usize))
            .map(|()| 0)
    })
}

pub extern "C" fn mysql_stmt_free_result(statement: Option<&mut Statement>) -> c_char {
    with(statement, 1, |statement| {
        statement.free_result().map(|()| 0)
    })
}

pub extern "C" fn mysql_stmt_reset(statement: Option<&mut Statement>) -> c_char {
    with(statement, 1, |statement| statement.reset().map(|()| 0))
}

pub extern "C" fn mysql_stmt_close(statement: *mut Statement) -> c_char {
    border(1, || {
        if statement.is_null() {
            return 1;
        }
        // SAFETY: mysql_stmt_init() made it by Box::into_raw, and by the border's contract it comes
        // back once.
        let mut owned = unsafe { Box::from_raw(statement) };
        // What can't be read to its end is dropped with its connection.
        let _ = owned.free_result();
        owned.close_prepared();
        if let Ok(handle) = owned.handle() {
            handle
                .session
                .statements
                .retain(|known| *known != statement);
        }
        0
    })
}

pub extern "C" fn mysql_stmt_next_result(statement: Option<&mut Statement>) -> c_int {
    with(statement, 1, Statement::next_result)
}

pub extern "C" fn mysql_stmt_more_results(statement: Option<&mut Statement>) -> c_char {
    let more = |statement: &mut Statement| {
        statement
            .handle()
            .is_ok_and(|handle| handle.has_more_results())
    };
    statement.is_some_and(more).into()
}

pub extern "C" fn mysql_stmt_result_metadata(statement: Option<&mut Statement>) -> *mut ResultSet {
    border(std::ptr::null_mut(), || match statement {
        Some(statement) if statement.columns.count() > 0 && statement.public.field_count > 0 => {
            ResultSet::of_columns(statement.columns.clone())
        }
        _ => std::ptr::null_mut(),
    })
}

/// As the original: parameters have no metadata.
pub extern "C" fn mysql_stmt_param_metadata(_: Option<&Statement>) -> *mut ResultSet {
    std::ptr::null_mut()
}

pub extern "C" fn mariadb_stmt_fetch_fields(statement: Option<&Statement>) -> *mut Field {
    statement.map_or(std::ptr::null_mut(), |statement| statement.public.fields)
}

pub extern "C" fn mysql_stmt_attr_set(
    statement: Option<&mut Statement>,
    attribute: c_uint,
    value: *const c_void,
) -> c_char {
    with(statement, 1, |statement| {
        let public = &mut statement.public;
        match attribute {
            attribute::UPDATE_MAX_LENGTH => {
                public.update_max_length = take(value.cast()).unwrap_or(0);
            }
            attribute::CURSOR_TYPE => {
                let flags: c_ulong = take(value.cast()).unwrap_or(0);
                if flags > CURSOR_READ_ONLY {
                    return Err(Failure::of(failure::NOT_IMPLEMENTED));
                }
                public.flags = flags;
            }
            attribute::PREFETCH_ROWS => {
                let rows: c_ulong = take(value.cast()).unwrap_or(0);
                public.prefetch_rows = rows.max(1);
            }
            attribute::PREBIND_PARAMS => {
                public.prebind_params = take(value.cast()).unwrap_or(0);
                public.state = INITTED;
            }
            attribute::ARRAY_SIZE => public.array_size = take(value.cast()).unwrap_or(0),
            attribute::ROW_SIZE => public.row_size = take(value.cast()).unwrap_or(0),
            attribute::USER_DATA => public.user_data = value.cast_mut(),
            _ => return Err(Failure::of(failure::NOT_IMPLEMENTED)),
        }
        Ok(0)
    })
}

pub extern "C" fn mysql_stmt_attr_get(
    statement: Option<&mut Statement>,
    attribute: c_uint,
    value: *mut c_void,
) -> c_char {
    with(statement, 1, |statement| {
        let public = &statement.public;
        match attribute {
            attribute::UPDATE_MAX_LENGTH => put(value.cast(), public.update_max_length),
            attribute::CURSOR_TYPE => put(value.cast(), public.flags),
            attribute::PREFETCH_ROWS => put(value.cast(), public.prefetch_rows),
            attribute::PREBIND_PARAMS => put(value.cast(), public.prebind_params),
            attribute::ARRAY_SIZE => put(value.cast(), public.array_size),
            attribute::ROW_SIZE => put(value.cast(), public.row_size),
            attribute::STATE => put(value.cast(), public.state),
            attribute::USER_DATA => put(value.cast(), public.user_data),
            _ => return Err(Failure::of(failure::NOT_IMPLEMENTED)),
        }
        Ok(0)
    })
}

pub extern "C" fn mysql_stmt_data_seek(statement: Option<&mut Statement>, row: u64) {
    if let Some(statement) = statement {
        statement.next = usize::try_from(row).unwrap_or(usize::MAX);
        statement.current = None;
    }
}

/// Where the next row is: its number and one more, as null is no place.
pub extern "C" fn mysql_stmt_row_tell(statement: Option<&Statement>) -> *mut RowLink {
    let place = |statement: &Statement| std::ptr::without_provenance_mut(statement.next + 1);
    statement.map_or(std::ptr::null_mut(), place)
}

pub extern "C" fn mysql_stmt_row_seek(
    statement: Option<&mut Statement>,
    place: *mut RowLink,
) -> *mut RowLink {
    let Some(statement) = statement else {
        return std::ptr::null_mut();
    };
    let before = mysql_stmt_row_tell(Some(statement));
    statement.next = (place as usize).checked_sub(1).unwrap_or(usize::MAX);
    statement.current = None;
    before
}

pub extern "C" fn mysql_stmt_num_rows(statement: Option<&Statement>) -> u64 {
    statement.map_or(0, |statement| statement.public.result.rows)
}

pub extern "C" fn mysql_stmt_affected_rows(statement: Option<&Statement>) -> u64 {
    statement.map_or(COUNT_ERROR, |statement| {
        statement.public.upsert_status.affected_rows
    })
}

pub extern "C" fn mysql_stmt_insert_id(statement: Option<&Statement>) -> u64 {
    statement.map_or(0, |statement| statement.public.upsert_status.last_insert_id)
}

pub extern "C" fn mysql_stmt_warning_count(statement: Option<&Statement>) -> c_int {
    statement.map_or(0, |statement| {
        statement.public.upsert_status.warning_count as c_int
    })
}

pub extern "C" fn mysql_stmt_field_count(statement: Option<&Statement>) -> c_uint {
    statement.map_or(0, |statement| statement.public.field_count)
}

pub extern "C" fn mysql_stmt_param_count(statement: Option<&Statement>) -> c_ulong {
    statement.map_or(0, |statement| statement.public.param_count.into())
}

pub extern "C" fn mysql_stmt_errno(statement: Option<&Statement>) -> c_uint {
    statement.map_or(0, |statement| statement.public.last_errno)
}

pub extern "C" fn mysql_stmt_error(statement: Option<&Statement>) -> *const c_char {
    statement.map_or(c"".as_ptr(), |statement| {
        statement.public.last_error.as_ptr()
    })
}

pub extern "C" fn mysql_stmt_sqlstate(statement: Option<&Statement>) -> *const c_char {
    statement.map_or(c"00000".as_ptr(), |statement| {
        statement.public.sqlstate.as_ptr()
    })
}
