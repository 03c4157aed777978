//! Every symbol of the library, with its version.
//!
//! Debian's library gives each of MySQL's functions under two versions, `libmysqlclient_18` (what
//! programs are linked to) and `libmariadbclient_18` (hidden, for older ones), and MariaDB's own
//! under `libmariadb_3`. A row of this table is a symbol that jumps to a function of this crate:
//! rustc can't version a symbol, the assembler can.
//!
//! ```text
//! mysql_ping@@libmysqlclient_18   ─┐
//! mysql_ping@libmariadbclient_18  ─┴─► jmp ─► calls::mysql_ping
//! ```

use crate::{calls, nonblocking_calls as nonblocking, result, statement};

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {target}"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {target}"
    };
}

/// One symbol: a label that jumps, and the name and version that it is known by.
macro_rules! symbol {
    ($label:literal, $name:ident, $version:literal, $target:path) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.", $label, stringify!($name), ",\"ax\",%progbits"),
            concat!(".globl ", $label, stringify!($name)),
            concat!(".type ", $label, stringify!($name), ",%function"),
            concat!($label, stringify!($name), ":"),
            jump!(),
            concat!(".size ", $label, stringify!($name), ", . - ", $label, stringify!($name)),
            concat!(".symver ", $label, stringify!($name), ", ", stringify!($name), $version),
            ".popsection",
            target = sym $target,
        );
    };
}

macro_rules! exports {
    ($($version:ident $name:ident => $target:path;)*) => {
        $(exports!(@ $version $name $target);)*
    };
    (@ mysqlclient $name:ident $target:path) => {
        symbol!("capi_", $name, "@@libmysqlclient_18", $target);
        symbol!("capi_18_", $name, "@libmariadbclient_18", $target);
    };
    (@ mariadb $name:ident $target:path) => {
        symbol!("capi_", $name, "@@libmariadb_3", $target);
    };
    (@ mariadb_3_3_5 $name:ident $target:path) => {
        symbol!("capi_", $name, "@@libmariadb_3_3_5", $target);
    };
}

/// Variables that the original has and programs don't use: zeros of their size.
macro_rules! variable {
    ($name:ident, $bytes:literal) => {
        std::arch::global_asm!(
            concat!(
                ".pushsection .bss.capi_",
                stringify!($name),
                ",\"aw\",%nobits"
            ),
            ".balign 32",
            concat!(".globl capi_", stringify!($name)),
            concat!(".type capi_", stringify!($name), ",%object"),
            concat!("capi_", stringify!($name), ": .zero ", $bytes),
            concat!(".size capi_", stringify!($name), ", ", $bytes),
            concat!(
                ".symver capi_",
                stringify!($name),
                ", ",
                stringify!($name),
                "@@libmariadb_3"
            ),
            ".popsection",
        );
    };
}

variable!(mariadb_deinitialize_ssl, 4);
variable!(mysql_ps_fetch_functions, 6144);

exports! {
    // Of MySQL's library, under both names that its versions had.
    mysqlclient mysql_affected_rows => calls::mysql_affected_rows;
    mysqlclient mysql_autocommit => calls::mysql_autocommit;
    mysqlclient mysql_change_user => calls::mysql_change_user;
    mysqlclient mysql_character_set_name => calls::mysql_character_set_name;
    mysqlclient mysql_client_find_plugin => calls::mysql_client_find_plugin;
    mysqlclient mysql_client_register_plugin => calls::mysql_client_register_plugin;
    mysqlclient mysql_close => calls::mysql_close;
    mysqlclient mysql_commit => calls::mysql_commit;
    mysqlclient mysql_data_seek => result::mysql_data_seek;
    mysqlclient mysql_debug => calls::mysql_debug;
    mysqlclient mysql_dump_debug_info => calls::mysql_dump_debug_info;
    mysqlclient mysql_embedded => calls::mysql_embedded;
    mysqlclient mysql_eof => result::mysql_eof;
    mysqlclient mysql_errno => calls::mysql_errno;
    mysqlclient mysql_error => calls::mysql_error;
    mysqlclient mysql_escape_string => calls::mysql_escape_string;
    mysqlclient mysql_fetch_field => result::mysql_fetch_field;
    mysqlclient mysql_fetch_field_direct => result::mysql_fetch_field_direct;
    mysqlclient mysql_fetch_fields => result::mysql_fetch_fields;
    mysqlclient mysql_fetch_lengths => result::mysql_fetch_lengths;
    mysqlclient mysql_fetch_row => result::mysql_fetch_row;
    mysqlclient mysql_field_count => calls::mysql_field_count;
    mysqlclient mysql_field_seek => result::mysql_field_seek;
    mysqlclient mysql_field_tell => result::mysql_field_tell;
    mysqlclient mysql_free_result => result::mysql_free_result;
    mysqlclient mysql_get_character_set_info => calls::mysql_get_character_set_info;
    mysqlclient mysql_get_charset_by_name => calls::mysql_get_charset_by_name;
    mysqlclient mysql_get_charset_by_nr => calls::mysql_get_charset_by_nr;
    mysqlclient mysql_get_client_info => calls::mysql_get_client_info;
    mysqlclient mysql_get_client_version => calls::mysql_get_client_version;
    mysqlclient mysql_get_host_info => calls::mysql_get_host_info;
    mysqlclient mysql_get_option => calls::mysql_get_option;
    mysqlclient mysql_get_optionv => calls::mysql_get_optionv;
    mysqlclient mysql_get_parameters => calls::mysql_get_parameters;
    mysqlclient mysql_get_proto_info => calls::mysql_get_proto_info;
    mysqlclient mysql_get_server_info => calls::mysql_get_server_info;
    mysqlclient mysql_get_server_name => calls::mysql_get_server_name;
    mysqlclient mysql_get_server_version => calls::mysql_get_server_version;
    mysqlclient mysql_get_socket => calls::mysql_get_socket;
    mysqlclient mysql_get_ssl_cipher => calls::mysql_get_ssl_cipher;
    mysqlclient mysql_hex_string => calls::mysql_hex_string;
    mysqlclient mysql_info => calls::mysql_info;
    mysqlclient mysql_init => calls::mysql_init;
    mysqlclient mysql_insert_id => calls::mysql_insert_id;
    mysqlclient mysql_kill => calls::mysql_kill;
    mysqlclient mysql_list_dbs => calls::mysql_list_dbs;
    mysqlclient mysql_list_fields => calls::mysql_list_fields;
    mysqlclient mysql_list_processes => calls::mysql_list_processes;
    mysqlclient mysql_list_tables => calls::mysql_list_tables;
    mysqlclient mysql_load_plugin => calls::mysql_load_plugin;
    mysqlclient mysql_load_plugin_v => calls::mysql_load_plugin;
    mysqlclient mysql_more_results => calls::mysql_more_results;
    mysqlclient mysql_net_field_length => calls::mysql_net_field_length;
    mysqlclient mysql_net_read_packet => calls::mysql_net_read_packet;
    mysqlclient mysql_next_result => calls::mysql_next_result;
    mysqlclient mysql_num_fields => result::mysql_num_fields;
    mysqlclient mysql_num_rows => result::mysql_num_rows;
    mysqlclient mysql_options => calls::mysql_options;
    mysqlclient mysql_options4 => calls::mysql_options4;
    mysqlclient mysql_ping => calls::mysql_ping;
    mysqlclient mysql_query => calls::mysql_query;
    mysqlclient mysql_read_query_result => calls::mysql_read_query_result;
    mysqlclient mysql_real_connect => calls::mysql_real_connect;
    mysqlclient mysql_real_escape_string => calls::mysql_real_escape_string;
    mysqlclient mysql_real_query => calls::mysql_real_query;
    mysqlclient mysql_refresh => calls::mysql_refresh;
    mysqlclient mysql_reset_connection => calls::mysql_reset_connection;
    mysqlclient mysql_rollback => calls::mysql_rollback;
    mysqlclient mysql_row_seek => result::mysql_row_seek;
    mysqlclient mysql_row_tell => result::mysql_row_tell;
    mysqlclient mysql_select_db => calls::mysql_select_db;
    mysqlclient mysql_send_query => calls::mysql_send_query;
    mysqlclient mysql_server_end => calls::mysql_server_end;
    mysqlclient mysql_server_init => calls::mysql_server_init;
    mysqlclient mysql_session_track_get_first => calls::mysql_session_track_get_first;
    mysqlclient mysql_session_track_get_next => calls::mysql_session_track_get_next;
    mysqlclient mysql_set_character_set => calls::mysql_set_character_set;
    mysqlclient mysql_set_local_infile_default => calls::mysql_set_local_infile_default;
    mysqlclient mysql_set_local_infile_handler => calls::mysql_set_local_infile_handler;
    mysqlclient mysql_set_server_option => calls::mysql_set_server_option;
    mysqlclient mysql_shutdown => calls::mysql_shutdown;
    mysqlclient mysql_sqlstate => calls::mysql_sqlstate;
    mysqlclient mysql_ssl_set => calls::mysql_ssl_set;
    mysqlclient mysql_stat => calls::mysql_stat;
    mysqlclient mysql_stmt_affected_rows => statement::mysql_stmt_affected_rows;
    mysqlclient mysql_stmt_attr_get => statement::mysql_stmt_attr_get;
    mysqlclient mysql_stmt_attr_set => statement::mysql_stmt_attr_set;
    mysqlclient mysql_stmt_bind_param => statement::mysql_stmt_bind_param;
    mysqlclient mysql_stmt_bind_result => statement::mysql_stmt_bind_result;
    mysqlclient mysql_stmt_close => statement::mysql_stmt_close;
    mysqlclient mysql_stmt_data_seek => statement::mysql_stmt_data_seek;
    mysqlclient mysql_stmt_errno => statement::mysql_stmt_errno;
    mysqlclient mysql_stmt_error => statement::mysql_stmt_error;
    mysqlclient mysql_stmt_execute => statement::mysql_stmt_execute;
    mysqlclient mysql_stmt_fetch => statement::mysql_stmt_fetch;
    mysqlclient mysql_stmt_fetch_column => statement::mysql_stmt_fetch_column;
    mysqlclient mysql_stmt_field_count => statement::mysql_stmt_field_count;
    mysqlclient mysql_stmt_free_result => statement::mysql_stmt_free_result;
    mysqlclient mysql_stmt_init => statement::mysql_stmt_init;
    mysqlclient mysql_stmt_insert_id => statement::mysql_stmt_insert_id;
    mysqlclient mysql_stmt_more_results => statement::mysql_stmt_more_results;
    mysqlclient mysql_stmt_next_result => statement::mysql_stmt_next_result;
    mysqlclient mysql_stmt_num_rows => statement::mysql_stmt_num_rows;
    mysqlclient mysql_stmt_param_count => statement::mysql_stmt_param_count;
    mysqlclient mysql_stmt_param_metadata => statement::mysql_stmt_param_metadata;
    mysqlclient mysql_stmt_prepare => statement::mysql_stmt_prepare;
    mysqlclient mysql_stmt_reset => statement::mysql_stmt_reset;
    mysqlclient mysql_stmt_result_metadata => statement::mysql_stmt_result_metadata;
    mysqlclient mysql_stmt_row_seek => statement::mysql_stmt_row_seek;
    mysqlclient mysql_stmt_row_tell => statement::mysql_stmt_row_tell;
    mysqlclient mysql_stmt_send_long_data => statement::mysql_stmt_send_long_data;
    mysqlclient mysql_stmt_sqlstate => statement::mysql_stmt_sqlstate;
    mysqlclient mysql_stmt_store_result => statement::mysql_stmt_store_result;
    mysqlclient mysql_store_result => result::mysql_store_result;
    mysqlclient mysql_thread_end => calls::mysql_thread_end;
    mysqlclient mysql_thread_id => calls::mysql_thread_id;
    mysqlclient mysql_thread_init => calls::mysql_thread_init;
    mysqlclient mysql_thread_safe => calls::mysql_thread_safe;
    mysqlclient mysql_use_result => result::mysql_use_result;
    mysqlclient mysql_warning_count => calls::mysql_warning_count;
    // MariaDB's own.
    mariadb ma_pvio_register_callback => calls::ma_pvio_register_callback;
    mariadb mariadb_cancel => calls::mariadb_cancel;
    mariadb mariadb_connection => calls::mariadb_connection;
    mariadb mariadb_convert_string => calls::mariadb_convert_string;
    mariadb mariadb_field_attr => calls::mariadb_field_attr;
    mariadb mariadb_free_rpl_event => calls::mariadb_rpl_failure;
    mariadb mariadb_get_charset_by_name => calls::mysql_get_charset_by_name;
    mariadb mariadb_get_charset_by_nr => calls::mysql_get_charset_by_nr;
    mariadb mariadb_get_info => calls::mariadb_get_info;
    mariadb mariadb_get_infov => calls::mariadb_get_infov;
    mariadb mariadb_reconnect => calls::mariadb_reconnect;
    mariadb mariadb_rpl_close => calls::mariadb_rpl_failure;
    mariadb mariadb_rpl_fetch => calls::mariadb_rpl_nothing;
    mariadb mariadb_rpl_get_optionsv => calls::mariadb_rpl_failure;
    mariadb mariadb_rpl_init_ex => calls::mariadb_rpl_init;
    mariadb mariadb_rpl_open => calls::mariadb_rpl_failure;
    mariadb mariadb_rpl_optionsv => calls::mariadb_rpl_failure;
    mariadb mariadb_stmt_execute_direct => statement::mariadb_stmt_execute_direct;
    mariadb mariadb_stmt_fetch_fields => statement::mariadb_stmt_fetch_fields;
    mariadb mysql_get_timeout_value => calls::mysql_get_timeout_value;
    mariadb mysql_get_timeout_value_ms => calls::mysql_get_timeout_value_ms;
    mariadb mysql_optionsv => calls::mysql_optionsv;
    mariadb mysql_stmt_warning_count => statement::mysql_stmt_warning_count;
    mariadb_3_3_5 mariadb_rpl_errno => calls::mariadb_rpl_errno;
    mariadb_3_3_5 mariadb_rpl_error => calls::mariadb_rpl_error;
    mariadb_3_3_5 mariadb_rpl_extract_rows => calls::mariadb_rpl_nothing;
    // The non-blocking ones.
    mariadb mysql_autocommit_cont => nonblocking::mysql_autocommit_cont;
    mariadb mysql_autocommit_start => nonblocking::mysql_autocommit_start;
    mariadb mysql_change_user_cont => nonblocking::mysql_change_user_cont;
    mariadb mysql_change_user_start => nonblocking::mysql_change_user_start;
    mariadb mysql_close_cont => nonblocking::mysql_close_cont;
    mariadb mysql_close_start => nonblocking::mysql_close_start;
    mariadb mysql_commit_cont => nonblocking::mysql_commit_cont;
    mariadb mysql_commit_start => nonblocking::mysql_commit_start;
    mariadb mysql_dump_debug_info_cont => nonblocking::mysql_dump_debug_info_cont;
    mariadb mysql_dump_debug_info_start => nonblocking::mysql_dump_debug_info_start;
    mariadb mysql_fetch_row_cont => nonblocking::mysql_fetch_row_cont;
    mariadb mysql_fetch_row_start => nonblocking::mysql_fetch_row_start;
    mariadb mysql_free_result_cont => nonblocking::mysql_free_result_cont;
    mariadb mysql_free_result_start => nonblocking::mysql_free_result_start;
    mariadb mysql_kill_cont => nonblocking::mysql_kill_cont;
    mariadb mysql_kill_start => nonblocking::mysql_kill_start;
    mariadb mysql_list_fields_cont => nonblocking::mysql_list_fields_cont;
    mariadb mysql_list_fields_start => nonblocking::mysql_list_fields_start;
    mariadb mysql_next_result_cont => nonblocking::mysql_next_result_cont;
    mariadb mysql_next_result_start => nonblocking::mysql_next_result_start;
    mariadb mysql_ping_cont => nonblocking::mysql_ping_cont;
    mariadb mysql_ping_start => nonblocking::mysql_ping_start;
    mariadb mysql_query_cont => nonblocking::mysql_query_cont;
    mariadb mysql_query_start => nonblocking::mysql_query_start;
    mariadb mysql_read_query_result_cont => nonblocking::mysql_read_query_result_cont;
    mariadb mysql_read_query_result_start => nonblocking::mysql_read_query_result_start;
    mariadb mysql_real_connect_cont => nonblocking::mysql_real_connect_cont;
    mariadb mysql_real_connect_start => nonblocking::mysql_real_connect_start;
    mariadb mysql_real_query_cont => nonblocking::mysql_real_query_cont;
    mariadb mysql_real_query_start => nonblocking::mysql_real_query_start;
    mariadb mysql_refresh_cont => nonblocking::mysql_refresh_cont;
    mariadb mysql_refresh_start => nonblocking::mysql_refresh_start;
    mariadb mysql_reset_connection_cont => nonblocking::mysql_reset_connection_cont;
    mariadb mysql_reset_connection_start => nonblocking::mysql_reset_connection_start;
    mariadb mysql_rollback_cont => nonblocking::mysql_rollback_cont;
    mariadb mysql_rollback_start => nonblocking::mysql_rollback_start;
    mariadb mysql_select_db_cont => nonblocking::mysql_select_db_cont;
    mariadb mysql_select_db_start => nonblocking::mysql_select_db_start;
    mariadb mysql_send_query_cont => nonblocking::mysql_send_query_cont;
    mariadb mysql_send_query_start => nonblocking::mysql_send_query_start;
    mariadb mysql_set_character_set_cont => nonblocking::mysql_set_character_set_cont;
    mariadb mysql_set_character_set_start => nonblocking::mysql_set_character_set_start;
    mariadb mysql_set_server_option_cont => nonblocking::mysql_set_server_option_cont;
    mariadb mysql_set_server_option_start => nonblocking::mysql_set_server_option_start;
    mariadb mysql_shutdown_cont => nonblocking::mysql_shutdown_cont;
    mariadb mysql_shutdown_start => nonblocking::mysql_shutdown_start;
    mariadb mysql_stat_cont => nonblocking::mysql_stat_cont;
    mariadb mysql_stat_start => nonblocking::mysql_stat_start;
    mariadb mysql_stmt_close_cont => nonblocking::mysql_stmt_close_cont;
    mariadb mysql_stmt_close_start => nonblocking::mysql_stmt_close_start;
    mariadb mysql_stmt_execute_cont => nonblocking::mysql_stmt_execute_cont;
    mariadb mysql_stmt_execute_start => nonblocking::mysql_stmt_execute_start;
    mariadb mysql_stmt_fetch_cont => nonblocking::mysql_stmt_fetch_cont;
    mariadb mysql_stmt_fetch_start => nonblocking::mysql_stmt_fetch_start;
    mariadb mysql_stmt_free_result_cont => nonblocking::mysql_stmt_free_result_cont;
    mariadb mysql_stmt_free_result_start => nonblocking::mysql_stmt_free_result_start;
    mariadb mysql_stmt_next_result_cont => nonblocking::mysql_stmt_next_result_cont;
    mariadb mysql_stmt_next_result_start => nonblocking::mysql_stmt_next_result_start;
    mariadb mysql_stmt_prepare_cont => nonblocking::mysql_stmt_prepare_cont;
    mariadb mysql_stmt_prepare_start => nonblocking::mysql_stmt_prepare_start;
    mariadb mysql_stmt_reset_cont => nonblocking::mysql_stmt_reset_cont;
    mariadb mysql_stmt_reset_start => nonblocking::mysql_stmt_reset_start;
    mariadb mysql_stmt_send_long_data_cont => nonblocking::mysql_stmt_send_long_data_cont;
    mariadb mysql_stmt_send_long_data_start => nonblocking::mysql_stmt_send_long_data_start;
    mariadb mysql_stmt_store_result_cont => nonblocking::mysql_stmt_store_result_cont;
    mariadb mysql_stmt_store_result_start => nonblocking::mysql_stmt_store_result_start;
    mariadb mysql_store_result_cont => nonblocking::mysql_store_result_cont;
    mariadb mysql_store_result_start => nonblocking::mysql_store_result_start;
}
