//! Proof that the structures of [`crate::abi`] lie as Debian's header says: a C program prints
//! where everything is.

use crate::abi::*;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

/// A structure's size and the places of its fields, by C's names, here and in a line of C that
/// prints the same.
macro_rules! layouts {
    ($($c:literal $rust:ident { $($c_field:literal $field:ident)* })*) => {
        (
            {
                let mut text = String::new();
                $(
                    writeln!(text, "{} {}", $c, size_of::<$rust>()).unwrap();
                    $(writeln!(text, "{}.{} {}", $c, $c_field, offset_of!($rust, $field)).unwrap();)*
                )*
                text
            },
            concat!(
                "#include <mysql.h>\n#include <stdio.h>\n#include <stddef.h>\nint main(void) {\n",
                $(
                    "printf(\"%s %zu\\n\", \"", $c, "\", sizeof(", $c, "));\n",
                    $("printf(\"%s %zu\\n\", \"", $c, ".", $c_field, "\", offsetof(", $c, ", ", $c_field, "));\n",)*
                )*
                "return 0; }\n"
            ),
        )
    };
}

#[test]
fn structures_lie_as_the_header_says() {
    let (ours, program) = layouts! {
        "NET" Net {
            "fd" fd "max_packet" max_packet "write_timeout" write_timeout "compress" compress
            "last_errno" last_errno "error" error "last_error" last_error "sqlstate" sqlstate
        }
        "MYSQL" Mysql {
            "net" net "host" host "user" user "passwd" passwd "unix_socket" unix_socket
            "server_version" server_version "host_info" host_info "info" info "db" db
            "charset" charset "fields" fields "affected_rows" affected_rows "insert_id" insert_id
            "extra_info" extra_info "thread_id" thread_id "packet_length" packet_length "port" port
            "client_flag" client_flag "server_capabilities" server_capabilities
            "protocol_version" protocol_version "field_count" field_count
            "server_status" server_status "server_language" server_language
            "warning_count" warning_count "options" options "status" status "free_me" free_me
            "extension" extension
        }
        "struct st_mysql_options" PublicOptions {
            "connect_timeout" connect_timeout "port" port "protocol" protocol
            "client_flag" client_flag "max_allowed_packet" max_allowed_packet "compress" compress
            "reconnect" reconnect "secure_auth" secure_auth
            "report_data_truncation" report_data_truncation
            "local_infile_init" local_infile_init "local_infile_userdata" local_infile_userdata
        }
        "MYSQL_FIELD" Field {
            "name" name "org_name" org_name "table" table "org_table" org_table "db" db
            "catalog" catalog "def" def "length" length "max_length" max_length
            "name_length" name_length "org_name_length" org_name_length
            "table_length" table_length "org_table_length" org_table_length
            "db_length" db_length "catalog_length" catalog_length "def_length" def_length
            "flags" flags "decimals" decimals "charsetnr" charsetnr "type" field_type
            "extension" extension
        }
        "MYSQL_ROWS" RowLink { "next" next "data" data "length" length }
        "MYSQL_DATA" RowList { "data" data "rows" rows "fields" fields }
        "MYSQL_RES" Res {
            "row_count" row_count "field_count" field_count "current_field" current_field
            "fields" fields "data" data "data_cursor" data_cursor "row" row
            "current_row" current_row "lengths" lengths "handle" handle "eof" eof "is_ps" is_ps
        }
        "MYSQL_BIND" Bind {
            "length" length "is_null" is_null "buffer" buffer "error" error "u" indicator
            "buffer_length" buffer_length "offset" offset "length_value" length_value
            "flags" flags "buffer_type" buffer_type "error_value" error_value
            "is_unsigned" is_unsigned "long_data_used" long_data_used
            "is_null_value" is_null_value "extension" extension
        }
        "MYSQL_STMT" Stmt {
            "mysql" mysql "stmt_id" stmt_id "flags" flags "state" state "fields" fields
            "field_count" field_count "param_count" param_count "params" params "bind" bind
            "result" result "bind_result_done" bind_result_done
            "bind_param_done" bind_param_done "upsert_status" upsert_status
            "last_errno" last_errno "last_error" last_error "sqlstate" sqlstate
            "update_max_length" update_max_length "prefetch_rows" prefetch_rows
            "cursor_exists" cursor_exists "execute_count" execute_count "array_size" array_size
            "row_size" row_size "prebind_params" prebind_params "user_data" user_data
        }
        "MYSQL_TIME" Time {
            "year" year "month" month "day" day "hour" hour "minute" minute "second" second
            "second_part" second_part "neg" neg "time_type" time_type
        }
        "MARIADB_CHARSET_INFO" CharsetInfo {
            "nr" nr "csname" csname "name" name "dir" dir "codepage" codepage
            "encoding" encoding "char_minlen" char_minlen "char_maxlen" char_maxlen
            "mb_charlen" mb_charlen "mb_valid" mb_valid
        }
        "MY_CHARSET_INFO" MyCharsetInfo {
            "number" number "state" state "csname" csname "name" name "comment" comment
            "dir" dir "mbminlen" mbminlen "mbmaxlen" mbmaxlen
        }
        "MYSQL_PARAMETERS" Parameters {
            "p_max_allowed_packet" max_allowed_packet "p_net_buffer_length" net_buffer_length
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc")
        .args(["-I/usr/include/mariadb", "-o"])
        .args([&binary, &source])
        .output()
        .expect("there is a C compiler");
    assert!(
        compiled.status.success(),
        "Debian's header (libmariadb-dev) has to be there: {}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = Command::new(binary).output().unwrap().stdout;
    assert_eq!(ours, String::from_utf8_lossy(&printed));
}
