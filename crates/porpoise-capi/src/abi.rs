//! The structures of `mysql.h` as programs are compiled against them, and pointers from C.
//!
//! Layouts are those of MariaDB Connector/C 3.3 on 64-bit Linux; a test compiles a C program
//! against Debian's header and compares every offset. Fields that only the original library's
//! inside uses are here for their room.
//!
//! # The contract at this border
//!
//! What C can't state, its manual does: a pointer is null or points to a live object of its type,
//! which no other thread uses at the same time; texts end with a zero byte; a buffer has the length
//! that is given beside it. So exported functions take `Option<&mut Mysql>` where C has `MYSQL *`,
//! and [`Text`] where it has `const char *`: the contract is in the signature, and what follows
//! from it is safe code. Pointers that lie *in* structures (a [`Bind`]'s buffers) are followed in
//! the few places that have to, each under the same contract.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr;

/// `my_bool`.
pub type Bool = c_char;

/// A text from C: null, or bytes up to a zero byte.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(pub *const c_char);

impl Text {
    pub fn get<'a>(self) -> Option<&'a CStr> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: by the border's contract it ends with a zero byte and lives through the call.
        Some(unsafe { CStr::from_ptr(self.0) })
    }

    pub fn bytes<'a>(self) -> Option<&'a [u8]> {
        self.get().map(CStr::to_bytes)
    }

    pub fn string(self) -> Option<String> {
        self.bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Bytes from C with their length beside them; none for a null pointer.
pub fn bytes_of<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if start.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: by the border's contract `length` bytes are there and live through the call.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}

/// Writes `value` where C wants it, unless C doesn't want it.
pub fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: by the border's contract there is room for a T. Programs bind unaligned buffers.
        unsafe { to.write_unaligned(value) }
    }
}

/// Copies bytes to where C has room for them.
pub fn put_bytes(to: *mut u8, bytes: &[u8]) {
    if !to.is_null() {
        // SAFETY: by the border's contract, and the callers' arithmetic, there is room for all of
        // them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }
}

/// Reads a value from where C has it.
pub fn take<T: Copy>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    // SAFETY: by the border's contract a T is there. Programs bind unaligned buffers.
    Some(unsafe { from.read_unaligned() })
}

#[repr(C)]
pub struct MemoryRoot {
    free: *mut c_void,
    used: *mut c_void,
    pre_alloc: *mut c_void,
    min_malloc: usize,
    block_size: usize,
    block_num: c_uint,
    first_block_usage: c_uint,
    error_handler: *mut c_void,
}

pub const ERROR_BYTES: usize = 512;

#[repr(C)]
pub struct Net {
    /// Programs look whether it is null: then there is no connection.
    pub pvio: *mut c_void,
    buff: *mut u8,
    buff_end: *mut u8,
    write_pos: *mut u8,
    read_pos: *mut u8,
    pub fd: c_int,
    remain_in_buf: c_ulong,
    length: c_ulong,
    buf_length: c_ulong,
    where_b: c_ulong,
    pub max_packet: c_ulong,
    pub max_packet_size: c_ulong,
    pkt_nr: c_uint,
    compress_pkt_nr: c_uint,
    pub write_timeout: c_uint,
    pub read_timeout: c_uint,
    retry_count: c_uint,
    fcntl: c_int,
    return_status: *mut c_uint,
    reading_or_writing: u8,
    save_char: c_char,
    unused_1: c_char,
    unused_2: Bool,
    pub compress: Bool,
    unused_3: Bool,
    unused_4: *mut c_void,
    pub last_errno: c_uint,
    pub error: u8,
    unused_5: Bool,
    unused_6: Bool,
    pub last_error: [c_char; ERROR_BYTES],
    pub sqlstate: [c_char; 6],
    extension: *mut c_void,
}

/// `MYSQL_FIELD`: a column of a result.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Field {
    pub name: *mut c_char,
    pub org_name: *mut c_char,
    pub table: *mut c_char,
    pub org_table: *mut c_char,
    pub db: *mut c_char,
    pub catalog: *mut c_char,
    pub def: *mut c_char,
    pub length: c_ulong,
    pub max_length: c_ulong,
    pub name_length: c_uint,
    pub org_name_length: c_uint,
    pub table_length: c_uint,
    pub org_table_length: c_uint,
    pub db_length: c_uint,
    pub catalog_length: c_uint,
    pub def_length: c_uint,
    pub flags: c_uint,
    pub decimals: c_uint,
    pub charsetnr: c_uint,
    pub field_type: c_uint,
    pub extension: *mut c_void,
}

/// `MYSQL_ROW`: a pointer a value.
pub type RowPointers = *mut *mut c_char;

/// `MYSQL_ROWS`: a link in the list of a result's rows.
#[repr(C)]
pub struct RowLink {
    pub next: *mut RowLink,
    pub data: RowPointers,
    pub length: c_ulong,
}

/// `MYSQL_DATA`: all rows of a result.
#[repr(C)]
pub struct RowList {
    pub data: *mut RowLink,
    embedded_info: *mut c_void,
    alloc: MemoryRoot,
    pub rows: u64,
    pub fields: c_uint,
    extension: *mut c_void,
}

/// `struct st_mysql_options`.
#[repr(C)]
pub struct PublicOptions {
    pub connect_timeout: c_uint,
    pub read_timeout: c_uint,
    pub write_timeout: c_uint,
    pub port: c_uint,
    pub protocol: c_uint,
    pub client_flag: c_ulong,
    host: *mut c_char,
    user: *mut c_char,
    password: *mut c_char,
    unix_socket: *mut c_char,
    db: *mut c_char,
    init_command: *mut c_void,
    my_cnf_file: *mut c_char,
    my_cnf_group: *mut c_char,
    charset_dir: *mut c_char,
    charset_name: *mut c_char,
    pub ssl_key: *const c_char,
    pub ssl_cert: *const c_char,
    pub ssl_ca: *const c_char,
    pub ssl_capath: *const c_char,
    pub ssl_cipher: *const c_char,
    shared_memory_base_name: *mut c_char,
    pub max_allowed_packet: c_ulong,
    pub use_ssl: Bool,
    pub compress: Bool,
    named_pipe: Bool,
    pub reconnect: Bool,
    unused_1: Bool,
    unused_2: Bool,
    unused_3: Bool,
    methods_to_use: c_uint,
    bind_address: *mut c_char,
    pub secure_auth: Bool,
    pub report_data_truncation: Bool,
    pub local_infile_init: Option<InfileInit>,
    pub local_infile_read: Option<InfileRead>,
    pub local_infile_end: Option<InfileEnd>,
    pub local_infile_error: Option<InfileError>,
    pub local_infile_userdata: *mut c_void,
    extension: *mut c_void,
}

pub type InfileInit = extern "C" fn(*mut *mut c_void, *const c_char, *mut c_void) -> c_int;
pub type InfileRead = extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;
pub type InfileEnd = extern "C" fn(*mut c_void);
pub type InfileError = extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;

/// `MYSQL`: a connection. Its `extension` is our [`Session`](crate::session::Session).
#[repr(C)]
pub struct Mysql {
    pub net: Net,
    unused_0: *mut c_void,
    pub host: *mut c_char,
    pub user: *mut c_char,
    pub passwd: *mut c_char,
    pub unix_socket: *mut c_char,
    pub server_version: *mut c_char,
    pub host_info: *mut c_char,
    pub info: *mut c_char,
    pub db: *mut c_char,
    pub charset: *const CharsetInfo,
    pub fields: *mut Field,
    field_alloc: MemoryRoot,
    pub affected_rows: u64,
    pub insert_id: u64,
    pub extra_info: u64,
    pub thread_id: c_ulong,
    pub packet_length: c_ulong,
    pub port: c_uint,
    pub client_flag: c_ulong,
    pub server_capabilities: c_ulong,
    pub protocol_version: c_uint,
    pub field_count: c_uint,
    pub server_status: c_uint,
    pub server_language: c_uint,
    pub warning_count: c_uint,
    pub options: PublicOptions,
    pub status: c_uint,
    pub free_me: Bool,
    unused_1: Bool,
    scramble_buff: [c_char; 21],
    unused_2: Bool,
    unused_3: *mut c_void,
    unused_4: *mut c_void,
    unused_5: *mut c_void,
    unused_6: *mut c_void,
    stmts: *mut c_void,
    methods: *const c_void,
    thd: *mut c_void,
    unbuffered_fetch_owner: *mut Bool,
    info_buffer: *mut c_char,
    pub extension: *mut crate::session::Session,
}

/// `mysql->status`.
pub mod status {
    use std::ffi::c_uint;
    pub const READY: c_uint = 0;
    pub const GET_RESULT: c_uint = 1;
    pub const USE_RESULT: c_uint = 2;
    pub const QUERY_SENT: c_uint = 3;
    pub const STMT_RESULT: c_uint = 8;
}

/// `MYSQL_RES`: a result. Ours are [`ResultSet`](crate::result::ResultSet)s, which begin with it.
#[repr(C)]
pub struct Res {
    pub row_count: u64,
    pub field_count: c_uint,
    pub current_field: c_uint,
    pub fields: *mut Field,
    pub data: *mut RowList,
    pub data_cursor: *mut RowLink,
    field_alloc: MemoryRoot,
    pub row: RowPointers,
    pub current_row: RowPointers,
    pub lengths: *mut c_ulong,
    pub handle: *mut Mysql,
    pub eof: Bool,
    pub is_ps: Bool,
}

/// `MYSQL_BIND`: where a parameter comes from or a column goes to.
#[repr(C)]
#[derive(Clone)]
pub struct Bind {
    pub length: *mut c_ulong,
    pub is_null: *mut Bool,
    pub buffer: *mut c_void,
    pub error: *mut Bool,
    /// `u.row_ptr` or `u.indicator`.
    pub indicator: *mut c_char,
    store_param_func: *mut c_void,
    fetch_result: *mut c_void,
    skip_result: *mut c_void,
    pub buffer_length: c_ulong,
    pub offset: c_ulong,
    pub length_value: c_ulong,
    pub flags: c_uint,
    pack_length: c_uint,
    pub buffer_type: c_uint,
    pub error_value: Bool,
    pub is_unsigned: Bool,
    pub long_data_used: Bool,
    pub is_null_value: Bool,
    pub extension: *mut c_void,
}

#[repr(C)]
pub struct List {
    prev: *mut List,
    next: *mut List,
    data: *mut c_void,
}

#[repr(C)]
pub struct UpsertStatus {
    pub warning_count: c_uint,
    pub server_status: c_uint,
    pub affected_rows: u64,
    pub last_insert_id: u64,
}

/// `MYSQL_STMT`: a prepared statement. Ours are [`Statement`](crate::statement::Statement)s, which
/// begin with it.
#[repr(C)]
pub struct Stmt {
    mem_root: MemoryRoot,
    pub mysql: *mut Mysql,
    pub stmt_id: c_ulong,
    pub flags: c_ulong,
    pub state: c_uint,
    pub fields: *mut Field,
    pub field_count: c_uint,
    pub param_count: c_uint,
    send_types_to_server: u8,
    pub params: *mut Bind,
    pub bind: *mut Bind,
    pub result: RowList,
    pub result_cursor: *mut RowLink,
    pub bind_result_done: Bool,
    pub bind_param_done: Bool,
    pub upsert_status: UpsertStatus,
    pub last_errno: c_uint,
    pub last_error: [c_char; ERROR_BYTES + 1],
    pub sqlstate: [c_char; 6],
    pub update_max_length: Bool,
    pub prefetch_rows: c_ulong,
    list: List,
    pub cursor_exists: Bool,
    extension: *mut c_void,
    fetch_row_func: *mut c_void,
    pub execute_count: c_uint,
    default_rset_handler: *mut c_void,
    request_buffer: *mut u8,
    pub array_size: c_uint,
    pub row_size: usize,
    pub prebind_params: c_uint,
    pub user_data: *mut c_void,
    result_callback: *mut c_void,
    param_callback: *mut c_void,
    request_length: usize,
}

/// `MYSQL_TIME`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    pub year: c_uint,
    pub month: c_uint,
    pub day: c_uint,
    pub hour: c_uint,
    pub minute: c_uint,
    pub second: c_uint,
    pub second_part: c_ulong,
    pub neg: Bool,
    pub time_type: c_int,
}

pub mod time_type {
    use std::ffi::c_int;
    pub const ERROR: c_int = -1;
    pub const DATE: c_int = 0;
    pub const DATETIME: c_int = 1;
    pub const TIME: c_int = 2;
}

/// `MARIADB_CHARSET_INFO`.
#[repr(C)]
pub struct CharsetInfo {
    pub nr: c_uint,
    pub state: c_uint,
    pub csname: *const c_char,
    pub name: *const c_char,
    pub dir: *const c_char,
    pub codepage: c_uint,
    pub encoding: *const c_char,
    pub char_minlen: c_uint,
    pub char_maxlen: c_uint,
    pub mb_charlen: Option<extern "C" fn(c_uint) -> c_uint>,
    pub mb_valid: Option<extern "C" fn(*const c_char, *const c_char) -> c_uint>,
}

/// `MY_CHARSET_INFO`.
#[repr(C)]
pub struct MyCharsetInfo {
    pub number: c_uint,
    pub state: c_uint,
    pub csname: *const c_char,
    pub name: *const c_char,
    pub comment: *const c_char,
    pub dir: *const c_char,
    pub mbminlen: c_uint,
    pub mbmaxlen: c_uint,
}

/// `MYSQL_PARAMETERS`.
#[repr(C)]
pub struct Parameters {
    pub max_allowed_packet: *mut c_ulong,
    pub net_buffer_length: *mut c_ulong,
    pub extension: *mut c_void,
}

/// `MARIADB_CONST_STRING`.
#[repr(C)]
pub struct ConstString {
    pub str: *const c_char,
    pub length: usize,
}

/// A structure all of whose bytes are zero, as `calloc` makes them: null pointers, zeros, `None`.
///
/// # Safety
///
/// `T` is one of this module's structures: integers, raw pointers, optional functions.
pub unsafe fn zeroed<T>() -> T {
    // SAFETY: by this function's contract zeros are a value of T.
    unsafe { std::mem::zeroed() }
}

/// Copies a message into a C array, cut to what fits with its zero byte, at a character's boundary.
pub fn put_text(to: &mut [c_char], text: &str) {
    let Some(room) = to.len().checked_sub(1) else {
        return;
    };
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (to, &byte) in to.iter_mut().zip(&text.as_bytes()[..end]) {
        *to = byte as c_char;
    }
    to[end] = 0;
}
