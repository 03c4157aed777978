//! The functions on a `MYSQL`: connecting, statements as text, the session, and facts.
//!
//! Each is thin: look whether it may be called now ([`Handle::ready`]), have the connection do it, and note the
//! outcome in the public fields. [`with`] does what all of them have in common.

use crate::abi::{
    Bool, CharsetInfo, ConstString, Field, InfileEnd, InfileError, InfileInit, InfileRead,
    MyCharsetInfo, Mysql, Parameters, Text, bytes_of, put, put_bytes, status,
};
use crate::border;
use crate::charset;
use crate::columns::ColumnSet;
use crate::embedded;
use crate::failure::{self, Failure};
use crate::infile::Handlers;
use crate::result::{ResultSet, mysql_store_result};
use crate::session::{Handle, charset_name, find_charset};
use crate::way::Request;
use porpoise_client::flags::Status;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::Arc;

/// What this library is compatible with, and what it says it is.
const CLIENT_VERSION: &CStr = c"3.3.20";
const CLIENT_VERSION_NUMBER: c_ulong = 30_320;

/// Calls `work` on a connection; `failed` says what the call returns if that fails.
#[inline]
fn with<T: Copy>(
    mysql: Option<&mut Mysql>,
    failed: T,
    work: impl FnOnce(&mut Handle<'_>) -> Result<T, Failure>,
) -> T {
    border(failed, || {
        let Some(mut handle) = mysql.and_then(Mysql::session) else {
            return failed;
        };
        work(&mut handle).unwrap_or_else(|failure| {
            let failure = handle.told(failure);
            handle.fail(&failure);
            failed
        })
    })
}

/// A command whose reply is OK.
fn command(
    mysql: Option<&mut Mysql>,
    work: impl FnOnce(&mut porpoise_client::Connection) -> Result<(), porpoise_client::Error>,
) -> c_int {
    with(mysql, 1, |handle| {
        handle.ready()?;
        work(handle.session.connection()?)?;
        handle.tell_end();
        Ok(0)
    })
}

// ── Beginning and end ────────────────────────────────────────────────────────────────────────

pub extern "C" fn mysql_init(mysql: *mut Mysql) -> *mut Mysql {
    border(std::ptr::null_mut(), || {
        let mut fresh = Mysql::new();
        if mysql.is_null() {
            fresh.free_me = 1;
            return Box::into_raw(Box::new(fresh));
        }
        // SAFETY: by the border's contract there is room for a MYSQL; whatever lies there is no value of ours.
        unsafe { mysql.write(fresh) };
        mysql
    })
}

pub extern "C" fn mysql_close(mysql: *mut Mysql) {
    border((), || {
        // SAFETY: by the border's contract it is null or was given to mysql_init().
        let Some(open) = (unsafe { mysql.as_mut() }) else {
            return;
        };
        let is_ours = std::mem::take(&mut open.free_me) != 0;
        open.end();
        if is_ours {
            // SAFETY: mysql_init() made it by Box::into_raw, as `free_me` told, and it comes back once.
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
        let Some(home) = embedded::home_of_arguments(words.iter().map(String::as_str)) else {
            return 0;
        };
        match embedded::open(&home) {
            Ok(_) => {
                embedded::set_default_home(Some(home));
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
        embedded::set_default_home(None);
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
    embedded::default_home().is_some().into()
}

// ── Options ──────────────────────────────────────────────────────────────────────────────────

pub extern "C" fn mysql_options(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    value: *const c_void,
) -> c_int {
    mysql_options4(mysql, option, value, std::ptr::null())
}

/// C declares it with any number of arguments; they come in the same registers as these.
pub extern "C" fn mysql_optionsv(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    first: *const c_void,
    second: *const c_void,
) -> c_int {
    mysql_options4(mysql, option, first, second)
}

pub extern "C" fn mysql_options4(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    first: *const c_void,
    second: *const c_void,
) -> c_int {
    with(mysql, 1, |handle| {
        handle.mysql.clear_error();
        if !handle.session.settings.set(option, first, second) {
            return Err(Failure::of(failure::NOT_IMPLEMENTED));
        }
        handle.session.settings.publish(&mut handle.mysql.options);
        Ok(0)
    })
}

pub extern "C" fn mysql_get_option(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    value: *mut c_void,
) -> c_int {
    mysql_get_optionv(mysql, option, value)
}

pub extern "C" fn mysql_get_optionv(
    mysql: Option<&mut Mysql>,
    option: c_uint,
    value: *mut c_void,
) -> c_int {
    with(mysql, 1, |handle| {
        match handle.session.settings.get(option, value) {
            true => Ok(0),
            false => Err(Failure::of(failure::NOT_IMPLEMENTED)),
        }
    })
}

pub extern "C" fn mysql_ssl_set(
    mysql: Option<&mut Mysql>,
    key: Text,
    certificate: Text,
    authority: Text,
    authorities: Text,
    cipher: Text,
) -> c_int {
    with(mysql, 1, |handle| {
        let asked = [key, certificate, authority, authorities, cipher];
        handle.session.settings.tls |= asked.iter().any(|text| text.get().is_some());
        Ok(0)
    })
}

pub extern "C" fn mysql_get_ssl_cipher(_: Option<&Mysql>) -> *const c_char {
    std::ptr::null()
}

pub extern "C" fn mysql_set_local_infile_handler(
    mysql: Option<&mut Mysql>,
    init: Option<InfileInit>,
    read: Option<InfileRead>,
    end: Option<InfileEnd>,
    error: Option<InfileError>,
    user_data: *mut c_void,
) {
    with(mysql, (), |handle| {
        let handlers = match (init, read, end, error) {
            (Some(init), Some(read), Some(end), Some(error)) => Some(Handlers {
                init,
                read,
                end,
                error,
                user_data,
            }),
            _ => None,
        };
        let public = &mut handle.mysql.options;
        public.local_infile_init = init;
        public.local_infile_read = read;
        public.local_infile_end = end;
        public.local_infile_error = error;
        public.local_infile_userdata = user_data;
        handle.session.infile.lock().handlers = handlers;
        Ok(())
    });
}

pub extern "C" fn mysql_set_local_infile_default(mysql: Option<&mut Mysql>) {
    mysql_set_local_infile_handler(mysql, None, None, None, None, std::ptr::null_mut());
}

// ── Statements ───────────────────────────────────────────────────────────────────────────────

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

fn text_of<'a>(sql: *const c_char, length: c_ulong) -> &'a [u8] {
    match length {
        c_ulong::MAX => Text(sql).bytes().unwrap_or_default(),
        length => bytes_of(sql, length as usize),
    }
}

fn query(handle: &mut Handle<'_>, sql: &[u8]) -> Result<(), Failure> {
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

// ── The session ──────────────────────────────────────────────────────────────────────────────

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

// ── Character sets ───────────────────────────────────────────────────────────────────────────

pub extern "C" fn mysql_set_character_set(mysql: Option<&mut Mysql>, name: Text) -> c_int {
    with(mysql, 1, |handle| {
        let charset = find_charset(name.bytes().unwrap_or_default())?;
        handle.ready()?;
        handle.run(format!("SET NAMES {}", charset_name(charset)).as_bytes())?;
        handle.mysql.charset = &charset.info;
        Ok(0)
    })
}

pub extern "C" fn mysql_character_set_name(mysql: Option<&Mysql>) -> *const c_char {
    let charset = mysql.map_or(charset::default(), |mysql| charset::Row::of(mysql.charset));
    charset.info.csname
}

pub extern "C" fn mysql_get_character_set_info(mysql: Option<&Mysql>, info: *mut MyCharsetInfo) {
    let charset = mysql.map_or(charset::default(), |mysql| charset::Row::of(mysql.charset));
    put(info, charset.describe());
}

pub extern "C" fn mysql_get_charset_by_name(name: Text) -> *const CharsetInfo {
    let row = charset::Row::by_name(name.bytes().unwrap_or_default());
    row.map_or(std::ptr::null(), |row| &row.info)
}

pub extern "C" fn mysql_get_charset_by_nr(number: c_uint) -> *const CharsetInfo {
    let row = charset::Row::by_number(number);
    row.map_or(std::ptr::null(), |row| &row.info)
}

/// Writes `text` escaped, and a zero byte: there is room for twice as many bytes and one.
fn escape(
    charset: &charset::Row,
    backslashes: bool,
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    border(0, || {
        let mut escaped = Vec::with_capacity(length as usize + 16);
        charset.escape(bytes_of(from, length as usize), backslashes, &mut escaped);
        let length = escaped.len();
        escaped.push(0);
        put_bytes(to.cast(), &escaped);
        length as c_ulong
    })
}

pub extern "C" fn mysql_real_escape_string(
    mysql: Option<&Mysql>,
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    let Some(mysql) = mysql else {
        return mysql_escape_string(to, from, length);
    };
    let no_backslashes = c_uint::from(Status::NO_BACKSLASH_ESCAPES.bits());
    let backslashes = mysql.server_status & no_backslashes == 0;
    escape(
        charset::Row::of(mysql.charset),
        backslashes,
        to,
        from,
        length,
    )
}

pub extern "C" fn mysql_escape_string(
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    escape(charset::default(), true, to, from, length)
}

pub extern "C" fn mysql_hex_string(
    to: *mut c_char,
    from: *const c_char,
    length: c_ulong,
) -> c_ulong {
    border(0, || {
        let bytes = bytes_of(from, length as usize);
        let mut digits = Vec::with_capacity(2 * bytes.len() + 1);
        for byte in bytes {
            let digit =
                |value: u8| char::from_digit(value.into(), 16).map_or(b'0', |digit| digit as u8);
            digits.extend(
                [digit(byte >> 4), digit(byte & 15)].map(|digit| digit.to_ascii_uppercase()),
            );
        }
        let length = digits.len();
        digits.push(0);
        put_bytes(to.cast(), &digits);
        length as c_ulong
    })
}

/// Converts a text; returns the bytes written, or `-1` and a number of `errno`.
pub extern "C" fn mariadb_convert_string(
    from: *const c_char,
    from_length: *mut usize,
    from_charset: *const CharsetInfo,
    to: *mut c_char,
    to_length: *mut usize,
    to_charset: *const CharsetInfo,
    error: *mut c_int,
) -> usize {
    const EINVAL: c_int = 22;
    const E2BIG: c_int = 7;
    const FAILED: usize = usize::MAX;
    border(FAILED, || {
        let known = |info| porpoise_types::Charset::by_name(&charset_name(charset::Row::of(info)));
        let (Some(source), Some(target)) = (known(from_charset), known(to_charset)) else {
            put(error, EINVAL);
            return FAILED;
        };
        let length = crate::abi::take(from_length).unwrap_or(0);
        let room = crate::abi::take(to_length).unwrap_or(0);
        let Ok(text) = source.decode(bytes_of(from, length)) else {
            put(error, EINVAL);
            return FAILED;
        };
        let mut converted = Vec::new();
        target.encode(&text, &mut converted);
        if converted.len() > room {
            put(error, E2BIG);
            return FAILED;
        }
        put_bytes(to.cast(), &converted);
        put(from_length, 0);
        put(to_length, room - converted.len());
        put(error, 0);
        converted.len()
    })
}

// ── Facts ────────────────────────────────────────────────────────────────────────────────────

pub extern "C" fn mysql_errno(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.net.last_errno)
}

pub extern "C" fn mysql_error(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(c"".as_ptr(), |mysql| mysql.net.last_error.as_ptr())
}

pub extern "C" fn mysql_sqlstate(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(c"00000".as_ptr(), |mysql| mysql.net.sqlstate.as_ptr())
}

pub extern "C" fn mysql_affected_rows(mysql: Option<&Mysql>) -> u64 {
    mysql.map_or(0, |mysql| mysql.affected_rows)
}

pub extern "C" fn mysql_insert_id(mysql: Option<&Mysql>) -> u64 {
    mysql.map_or(0, |mysql| mysql.insert_id)
}

pub extern "C" fn mysql_field_count(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.field_count)
}

pub extern "C" fn mysql_warning_count(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.warning_count)
}

pub extern "C" fn mysql_info(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(std::ptr::null(), |mysql| mysql.info)
}

pub extern "C" fn mysql_thread_id(mysql: Option<&Mysql>) -> c_ulong {
    mysql.map_or(0, |mysql| mysql.thread_id)
}

pub extern "C" fn mysql_get_socket(mysql: Option<&Mysql>) -> c_int {
    mysql.map_or(-1, |mysql| mysql.net.fd)
}

pub extern "C" fn mysql_get_host_info(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(std::ptr::null(), |mysql| mysql.host_info)
}

pub extern "C" fn mysql_get_proto_info(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.protocol_version)
}

pub extern "C" fn mysql_get_server_info(mysql: Option<&Mysql>) -> *const c_char {
    mysql.map_or(std::ptr::null(), |mysql| mysql.server_version)
}

pub extern "C" fn mysql_get_server_version(mysql: Option<&Mysql>) -> c_ulong {
    let version = mysql.and_then(|mysql| Text(mysql.server_version).string());
    version_number(&version.unwrap_or_default())
}

/// `8.4.3-Porpoise` is 80403.
fn version_number(version: &str) -> c_ulong {
    version
        .split(|c: char| !c.is_ascii_digit())
        .take(3)
        .fold(0, |number, part| {
            number * 100 + part.parse::<c_ulong>().unwrap_or(0)
        })
}

pub extern "C" fn mysql_get_server_name(mysql: Option<&Mysql>) -> *const c_char {
    let version = mysql.and_then(|mysql| Text(mysql.server_version).string());
    let is_mariadb = version.is_some_and(|version| version.contains("MariaDB"));
    if is_mariadb {
        c"MariaDB".as_ptr()
    } else {
        c"MySQL".as_ptr()
    }
}

pub extern "C" fn mariadb_connection(mysql: Option<&Mysql>) -> Bool {
    let version = mysql.and_then(|mysql| Text(mysql.server_version).string());
    version
        .is_some_and(|version| version.contains("MariaDB"))
        .into()
}

pub extern "C" fn mysql_get_client_info() -> *const c_char {
    CLIENT_VERSION.as_ptr()
}

pub extern "C" fn mysql_get_client_version() -> c_ulong {
    CLIENT_VERSION_NUMBER
}

pub extern "C" fn mysql_get_timeout_value(mysql: Option<&Mysql>) -> c_uint {
    mysql.map_or(0, |mysql| mysql.options.connect_timeout)
}

pub extern "C" fn mysql_get_timeout_value_ms(mysql: Option<&Mysql>) -> c_uint {
    mysql_get_timeout_value(mysql).saturating_mul(1000)
}

/// Breaks a connection that another thread waits on.
pub extern "C" fn mariadb_cancel(mysql: Option<&mut Mysql>) -> c_int {
    with(mysql, 1, |handle| {
        let connection = handle.session.connection()?;
        connection
            .stream()
            .shutdown()
            .map_err(porpoise_client::Error::from)?;
        Ok(0)
    })
}

/// Programs read these and may write them.
struct Limits(std::cell::UnsafeCell<[c_ulong; 2]>);

// SAFETY: this library reads them never; what programs do is theirs, as with the original's variables.
unsafe impl Sync for Limits {}

static LIMITS: Limits = Limits(std::cell::UnsafeCell::new([1 << 30, 8192]));

struct SharedParameters(Parameters);

// SAFETY: the pointers lead to `LIMITS`; nobody writes the structure.
unsafe impl Sync for SharedParameters {}

static PARAMETERS: SharedParameters = SharedParameters(Parameters {
    max_allowed_packet: LIMITS.0.get().cast(),
    net_buffer_length: LIMITS.0.get().cast::<c_ulong>().wrapping_add(1),
    extension: std::ptr::null_mut(),
});

pub extern "C" fn mysql_get_parameters() -> *const Parameters {
    &PARAMETERS.0
}

/// A length-encoded number as the protocol has it; moves the pointer behind it.
pub extern "C" fn mysql_net_field_length(packet: Option<&mut *const u8>) -> c_ulong {
    const NULL_LENGTH: c_ulong = c_ulong::MAX;
    let Some(packet) = packet else { return 0 };
    let byte = |at: usize| crate::abi::take(packet.wrapping_add(at)).unwrap_or(0);
    let number = |bytes: usize| {
        (0..bytes)
            .rev()
            .fold(0, |number, at| number << 8 | c_ulong::from(byte(1 + at)))
    };
    let (value, taken) = match byte(0) {
        251 => (NULL_LENGTH, 1),
        252 => (number(2), 3),
        253 => (number(3), 4),
        254 => (number(8), 9),
        small => (small.into(), 1),
    };
    *packet = packet.wrapping_add(taken);
    value
}

pub extern "C" fn mariadb_field_attr(
    attribute: *mut ConstString,
    _field: Option<&Field>,
    _kind: c_uint,
) -> c_int {
    // The extended types that MariaDB's servers tell are not asked for.
    put(
        attribute,
        ConstString {
            str: std::ptr::null(),
            length: 0,
        },
    );
    1
}

// ── Facts by number ──────────────────────────────────────────────────────────────────────────

pub extern "C" fn mariadb_get_info(
    mysql: Option<&mut Mysql>,
    what: c_uint,
    to: *mut c_void,
) -> Bool {
    mariadb_get_infov(mysql, what, to, std::ptr::null())
}

/// `enum mariadb_value`, as far as there is something to tell.
pub extern "C" fn mariadb_get_infov(
    mysql: Option<&mut Mysql>,
    what: c_uint,
    to: *mut c_void,
    argument: *const c_void,
) -> Bool {
    let mysql = mysql.as_deref();
    let text = |value: *const c_char| put(to.cast(), value);
    let number = |value: c_uint| put(to.cast(), value);
    match (what, mysql) {
        // The charset of a number or a name.
        (0, _) => put(
            to.cast(),
            mysql_get_charset_by_nr(argument as usize as c_uint),
        ),
        (1, _) => put(to.cast(), mysql_get_charset_by_name(Text(argument.cast()))),
        (3, _) => text(mysql_get_client_info()),
        (4, _) => put(to.cast(), mysql_get_client_version() as usize),
        (5, Some(mysql)) => number(mysql_get_timeout_value(Some(mysql))),
        (6, Some(mysql)) => number(mysql_get_timeout_value_ms(Some(mysql))),
        (7, Some(mysql)) => put(to.cast(), mysql.charset),
        (8, Some(mysql)) => text(mysql_error(Some(mysql))),
        (9, Some(mysql)) => number(mysql_errno(Some(mysql))),
        (10, Some(mysql)) => text(mysql.host),
        (11, Some(mysql)) => text(mysql.info),
        (12, Some(mysql)) => number(mysql.port),
        (13, Some(mysql)) => number(mysql.protocol_version),
        (14, Some(mysql)) => number(if mysql.port == 0 { 0 } else { 1 }),
        (15, Some(mysql)) => text(mysql.db),
        (16, Some(mysql)) => text(mysql_get_server_name(Some(mysql))),
        (17, Some(mysql)) => text(mysql.server_version),
        (18, Some(mysql)) => put(to.cast(), mysql_get_server_version(Some(mysql)) as usize),
        (19, Some(mysql)) => put(to.cast(), mysql.net.fd),
        (20, Some(mysql)) => text(mysql.net.sqlstate.as_ptr()),
        (21, Some(_)) => text(std::ptr::null()),
        (22, _) => text(c"none".as_ptr()),
        (26, Some(mysql)) => text(mysql.unix_socket),
        (27, Some(mysql)) => text(mysql.user),
        (28, _) => put(to.cast(), 1usize << 30),
        (29, _) => put(to.cast(), 8192usize),
        (30, Some(mysql)) => number(mysql.server_status),
        (31, Some(mysql)) => put(to.cast(), mysql.server_capabilities),
        (33, Some(mysql)) => put(to.cast(), mysql.client_flag),
        _ => return 1,
    }
    0
}

// ── What this version doesn't do ─────────────────────────────────────────────────────────────

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number() {
        assert_eq!(version_number("8.4.3-Porpoise"), 80_403);
        assert_eq!(version_number("10.11.19-MariaDB-0+deb12u1"), 101_119);
    }

    #[test]
    fn bytes_are_written_in_hexadecimal() {
        let mut to = [0 as c_char; 7];
        assert_eq!(
            mysql_hex_string(to.as_mut_ptr(), c"\x01\xABz".as_ptr(), 3),
            6
        );
        assert_eq!(Text(to.as_ptr()).bytes(), Some(&b"01AB7A"[..]));
    }
}
