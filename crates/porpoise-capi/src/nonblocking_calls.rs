//! The functions of the [non-blocking calls](crate::nonblocking), a row for each pair: what is
//! called, on what, with which arguments, and what it answers if it fails.

use crate::abi::{Bool, Mysql, RowPointers, Text};
use crate::nonblocking::{proceed, start};
use crate::result::ResultSet;
use crate::statement::Statement;
use crate::{calls, result, statement};
use std::ffi::{c_char, c_int, c_uint, c_ulong};
use std::ptr::null_mut;

macro_rules! pairs {
    ($($begin:ident $proceed:ident: $call:path, $on:ty => $answer:ty, $failed:expr; ($($argument:ident: $kind:ty),*);)*) => {$(
        pub extern "C" fn $begin(to: *mut $answer, on: *mut $on, $($argument: $kind),*) -> c_int {
            // SAFETY: by the border's contract it is null or an object of that type, which the
            // program gives to nobody else before this call has returned.
            start(to, on, $failed, move || $call(unsafe { on.as_mut() }, $($argument),*))
        }

        pub extern "C" fn $proceed(to: *mut $answer, on: *mut $on, come: c_int) -> c_int {
            proceed(to, on, $failed, come)
        }
    )*};
}

pairs! {
    mysql_autocommit_start mysql_autocommit_cont: calls::mysql_autocommit, Mysql => Bool, 1; (mode: Bool);
    mysql_change_user_start mysql_change_user_cont: calls::mysql_change_user, Mysql => Bool, 1; (user: Text, password: Text, schema: Text);
    mysql_commit_start mysql_commit_cont: calls::mysql_commit, Mysql => Bool, 1; ();
    mysql_dump_debug_info_start mysql_dump_debug_info_cont: calls::mysql_dump_debug_info, Mysql => c_int, 1; ();
    mysql_fetch_row_start mysql_fetch_row_cont: result::mysql_fetch_row, ResultSet => RowPointers, null_mut(); ();
    mysql_kill_start mysql_kill_cont: calls::mysql_kill, Mysql => c_int, 1; (connection: c_ulong);
    mysql_list_fields_start mysql_list_fields_cont: calls::mysql_list_fields, Mysql => *mut ResultSet, null_mut(); (table: Text, pattern: Text);
    mysql_next_result_start mysql_next_result_cont: calls::mysql_next_result, Mysql => c_int, 1; ();
    mysql_ping_start mysql_ping_cont: calls::mysql_ping, Mysql => c_int, 1; ();
    mysql_query_start mysql_query_cont: calls::mysql_query, Mysql => c_int, 1; (sql: Text);
    mysql_read_query_result_start mysql_read_query_result_cont: calls::mysql_read_query_result, Mysql => Bool, 1; ();
    mysql_real_connect_start mysql_real_connect_cont: calls::mysql_real_connect, Mysql => *mut Mysql, null_mut(); (host: Text, user: Text, password: Text, schema: Text, port: c_uint, unix_socket: Text, flags: c_ulong);
    mysql_real_query_start mysql_real_query_cont: calls::mysql_real_query, Mysql => c_int, 1; (sql: *const c_char, length: c_ulong);
    mysql_refresh_start mysql_refresh_cont: calls::mysql_refresh, Mysql => c_int, 1; (what: c_uint);
    mysql_reset_connection_start mysql_reset_connection_cont: calls::mysql_reset_connection, Mysql => c_int, 1; ();
    mysql_rollback_start mysql_rollback_cont: calls::mysql_rollback, Mysql => Bool, 1; ();
    mysql_select_db_start mysql_select_db_cont: calls::mysql_select_db, Mysql => c_int, 1; (schema: Text);
    mysql_send_query_start mysql_send_query_cont: calls::mysql_send_query, Mysql => c_int, 1; (sql: *const c_char, length: c_ulong);
    mysql_set_character_set_start mysql_set_character_set_cont: calls::mysql_set_character_set, Mysql => c_int, 1; (name: Text);
    mysql_set_server_option_start mysql_set_server_option_cont: calls::mysql_set_server_option, Mysql => c_int, 1; (option: c_uint);
    mysql_shutdown_start mysql_shutdown_cont: calls::mysql_shutdown, Mysql => c_int, 1; (level: c_uint);
    mysql_stat_start mysql_stat_cont: calls::mysql_stat, Mysql => *const c_char, c"".as_ptr(); ();
    mysql_store_result_start mysql_store_result_cont: result::mysql_store_result, Mysql => *mut ResultSet, null_mut(); ();
    mysql_stmt_execute_start mysql_stmt_execute_cont: statement::mysql_stmt_execute, Statement => c_int, 1; ();
    mysql_stmt_fetch_start mysql_stmt_fetch_cont: statement::mysql_stmt_fetch, Statement => c_int, 1; ();
    mysql_stmt_free_result_start mysql_stmt_free_result_cont: statement::mysql_stmt_free_result, Statement => Bool, 1; ();
    mysql_stmt_next_result_start mysql_stmt_next_result_cont: statement::mysql_stmt_next_result, Statement => c_int, 1; ();
    mysql_stmt_prepare_start mysql_stmt_prepare_cont: statement::mysql_stmt_prepare, Statement => c_int, 1; (sql: *const c_char, length: c_ulong);
    mysql_stmt_reset_start mysql_stmt_reset_cont: statement::mysql_stmt_reset, Statement => Bool, 1; ();
    mysql_stmt_send_long_data_start mysql_stmt_send_long_data_cont: statement::mysql_stmt_send_long_data, Statement => Bool, 1; (parameter: c_uint, data: *const c_char, length: c_ulong);
    mysql_stmt_store_result_start mysql_stmt_store_result_cont: statement::mysql_stmt_store_result, Statement => c_int, 1; ();
}

pub extern "C" fn mysql_stmt_close_start(to: *mut Bool, on: *mut Statement) -> c_int {
    start(to, on, 1, move || statement::mysql_stmt_close(on))
}

pub extern "C" fn mysql_stmt_close_cont(to: *mut Bool, on: *mut Statement, come: c_int) -> c_int {
    proceed(to, on, 1, come)
}

pub extern "C" fn mysql_free_result_start(on: *mut ResultSet) -> c_int {
    start(null_mut(), on, (), move || result::mysql_free_result(on))
}

pub extern "C" fn mysql_free_result_cont(on: *mut ResultSet, come: c_int) -> c_int {
    proceed(null_mut(), on, (), come)
}

/// Leaving sends a few bytes and waits for nothing.
pub extern "C" fn mysql_close_start(on: *mut Mysql) -> c_int {
    calls::mysql_close(on);
    0
}

pub extern "C" fn mysql_close_cont(_: *mut Mysql, _: c_int) -> c_int {
    0
}
