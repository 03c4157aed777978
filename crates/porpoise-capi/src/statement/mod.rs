//! Prepared statements: `MYSQL_STMT`.
//!
//! ```text
//! init ─► prepare ─► bind_param ─► execute ─┬─► fetch … fetch      row by row from the server
//!                                           ├─► store_result ─► fetch, data_seek, row_seek
//!                                           └─► with a cursor: fetch, prefetch_rows at a time
//! ```
//!
//! Rows stay as they came on the wire (`porpoise_client::Rows`); a value is looked at when it is
//! delivered into the program's buffer ([`crate::convert`]).

mod calls;

pub use calls::*;

use crate::abi::{Bind, Mysql, Stmt, Text, put_text, status, take, zeroed};
use crate::columns::ColumnSet;
use crate::convert::{Buffer, deliver, parameter, write_text};
use crate::failure::{self, Failure};
use crate::session::{COUNT_ERROR, Handle};
use porpoise_client::flags::Status;
use porpoise_client::{Columns, Rows, Value};
use smallvec::SmallVec;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::{Arc, LazyLock};

const NO_DATA: c_int = 100;
const TRUNCATED: c_int = 101;

/// `stmt->state`.
const INITTED: c_uint = 0;
const PREPARED: c_uint = 1;
const EXECUTED: c_uint = 2;
const WAITING: c_uint = 3;
const STORED: c_uint = 4;
const FETCHING: c_uint = 5;
const FETCH_DONE: c_uint = 6;

const CURSOR_READ_ONLY: c_ulong = 1;

/// `enum enum_stmt_attr_type`.
mod attribute {
    use std::ffi::c_uint;
    pub const UPDATE_MAX_LENGTH: c_uint = 0;
    pub const CURSOR_TYPE: c_uint = 1;
    pub const PREFETCH_ROWS: c_uint = 2;
    pub const PREBIND_PARAMS: c_uint = 200;
    pub const ARRAY_SIZE: c_uint = 201;
    pub const ROW_SIZE: c_uint = 202;
    pub const STATE: c_uint = 203;
    pub const USER_DATA: c_uint = 204;
}

/// Where the rows after those in memory come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Nothing was executed, or its result is freed.
    Nothing,
    /// All are in memory.
    Memory,
    /// The connection stands among them.
    Stream,
    Cursor {
        is_at_end: bool,
    },
}

#[repr(C)]
pub struct Statement {
    public: Stmt,
    prepared: Option<porpoise_client::Statement>,
    /// Prepared on a connection that is no more.
    is_lost: bool,
    parameters: Vec<Bind>,
    binds: Vec<Bind>,
    columns: Arc<ColumnSet>,
    rows: Rows,
    /// The next row in `rows`, and the one fetched last.
    next: usize,
    current: Option<usize>,
    source: Source,
}

static NO_COLUMNS: LazyLock<Arc<Columns>> = LazyLock::new(Arc::default);

/// Rows that have let go of the connection's columns, which it can then use again.
fn emptied(rows: &mut Rows) {
    rows.clear(NO_COLUMNS.clone());
}

impl Statement {
    fn new(mysql: &mut Mysql) -> Box<Statement> {
        // SAFETY: a MYSQL_STMT is integers, pointers and arrays of characters.
        let mut public: Stmt = unsafe { zeroed() };
        public.mysql = mysql;
        public.prefetch_rows = 1;
        put_text(&mut public.sqlstate, "00000");
        Box::new(Statement {
            public,
            prepared: None,
            is_lost: false,
            parameters: Vec::new(),
            binds: Vec::new(),
            columns: Arc::default(),
            rows: Rows::default(),
            next: 0,
            current: None,
            source: Source::Nothing,
        })
    }

    /// Its connection, if there is still one.
    fn handle<'a>(&self) -> Result<Handle<'a>, Failure> {
        // SAFETY: `disown` takes the pointer away before its MYSQL goes; by the border's contract
        // no other thread uses it now, and the callers drop the handle before they ask for another.
        let mysql = unsafe { self.public.mysql.as_mut() };
        mysql
            .and_then(Mysql::session)
            .ok_or_else(|| Failure::of(failure::SERVER_LOST))
    }

    /// Its MYSQL is about to go.
    pub fn disown(&mut self) {
        self.lose_connection();
        self.public.mysql = std::ptr::null_mut();
    }

    /// The server doesn't know it any more.
    pub fn lose_connection(&mut self) {
        if self.prepared.take().is_some() {
            self.is_lost = true;
        }
        if self.source != Source::Memory {
            self.source = Source::Nothing;
        }
    }

    fn prepared(&self) -> Result<&porpoise_client::Statement, Failure> {
        self.prepared.as_ref().ok_or_else(|| {
            Failure::of(match self.is_lost {
                true => failure::STATEMENT_CLOSED,
                false => failure::NO_PREPARED_STATEMENT,
            })
        })
    }

    /// Its connection, null if that was closed.
    pub fn mysql(&self) -> *mut Mysql {
        self.public.mysql
    }

    pub fn fail(&mut self, failure: &Failure) {
        self.public.last_errno = failure.number;
        put_text(&mut self.public.last_error, &failure.message);
        put_text(
            &mut self.public.sqlstate,
            &String::from_utf8_lossy(&failure.sqlstate),
        );
        self.public.upsert_status.affected_rows = COUNT_ERROR;
        if let Ok(mut handle) = self.handle() {
            handle.fail(failure);
        }
    }

    #[inline]
    fn clear_error(&mut self) {
        if self.public.last_errno != 0 {
            self.public.last_errno = 0;
            self.public.last_error[0] = 0;
            put_text(&mut self.public.sqlstate, "00000");
        }
    }

    /// Lets go of what it executed before: rows that weren't read, further results, its cursor.
    fn free_result(&mut self) -> Result<(), Failure> {
        let source = std::mem::replace(&mut self.source, Source::Nothing);
        emptied(&mut self.rows);
        (self.next, self.current) = (0, None);
        self.public.result.rows = 0;
        if self.public.state > PREPARED {
            self.public.state = PREPARED;
        }
        match source {
            Source::Stream => {
                let mut handle = self.handle()?;
                handle.mysql.status = status::READY;
                while handle.session.connection()?.results().next_result()? {}
                handle.tell_end();
            }
            Source::Cursor { .. } => {
                let handle = self.handle()?;
                if let Some(prepared) = &self.prepared {
                    handle.session.connection()?.reset_statement(prepared)?;
                }
            }
            Source::Nothing | Source::Memory => {}
        }
        Ok(())
    }

    fn close_prepared(&mut self) {
        if let Some(prepared) = self.prepared.take()
            && let Ok(handle) = self.handle()
            && let Ok(connection) = handle.session.connection()
        {
            connection.close_statement(prepared);
        }
    }

    fn prepare(&mut self, sql: &[u8]) -> Result<(), Failure> {
        self.free_result()?;
        let mut handle = self.handle()?;
        handle.ready()?;
        self.close_prepared();
        self.is_lost = false;
        self.parameters.clear();
        self.binds.clear();
        self.public.bind_param_done = 0;
        self.public.bind_result_done = 0;
        self.public.state = INITTED;
        let prepared = handle.session.connection()?.prepare(sql)?;
        self.columns = Arc::new(ColumnSet::new(prepared.columns()));
        self.public.stmt_id = prepared.id().into();
        self.public.param_count = prepared.parameters() as c_uint;
        self.public.upsert_status.warning_count = prepared.warnings().into();
        self.public.state = PREPARED;
        self.show_columns();
        handle.mysql.warning_count = prepared.warnings().into();
        self.prepared = Some(prepared);
        Ok(())
    }

    fn show_columns(&mut self) {
        self.public.fields = ColumnSet::pointer(&self.columns);
        self.public.field_count = self.columns.count();
    }

    #[inline]
    fn execute(&mut self) -> Result<(), Failure> {
        if self.source != Source::Nothing {
            self.free_result()?;
        }
        let mut handle = self.handle()?;
        handle.ready()?;
        if self.public.array_size > 0 && self.public.param_count > 0 {
            return self.execute_array(&mut handle);
        }
        let prepared = self.prepared()?;
        let mut values: SmallVec<[Value<'_>; 16]> = SmallVec::new();
        if self.parameters.len() < prepared.parameters() {
            return Err(Failure::of(failure::PARAMETERS_NOT_BOUND));
        }
        for bind in &self.parameters {
            values.push(parameter(bind)?);
        }
        let connection = handle.session.connection()?;
        let with_cursor = self.public.flags & CURSOR_READ_ONLY != 0;
        let executed = match with_cursor {
            false => connection.execute(prepared, &values).map(drop),
            true => connection.execute_with_cursor(prepared, &values).map(drop),
        };
        for bind in &mut self.parameters {
            bind.long_data_used = 0;
        }
        executed?;
        self.public.execute_count = self.public.execute_count.wrapping_add(1);
        self.begin(&mut handle, with_cursor)
    }

    /// Looks at the head of a result.
    #[inline]
    fn begin(&mut self, handle: &mut Handle<'_>, with_cursor: bool) -> Result<(), Failure> {
        let mut results = handle.session.connection()?.results();
        self.public.state = EXECUTED;
        self.public.cursor_exists = 0;
        if results.columns().is_empty() {
            handle.tell_ok();
            self.public.field_count = 0;
            self.tell(handle);
            return Ok(());
        }
        self.columns = ColumnSet::kept(std::mem::take(&mut self.columns), results.columns());
        self.show_columns();
        self.source = Source::Stream;
        self.public.state = WAITING;
        if with_cursor {
            results.row_into(&mut self.rows)?;
            if self.rows.is_empty() && results.outcome().status.contains(Status::CURSOR_EXISTS) {
                self.source = Source::Cursor { is_at_end: false };
                self.public.cursor_exists = 1;
                handle.tell_columns(&self.columns, status::READY);
                handle.tell_end();
                self.tell(handle);
                return Ok(());
            }
        }
        handle.tell_columns(&self.columns, status::STMT_RESULT);
        if self.is_call() {
            self.read_ahead(handle)?;
        }
        self.tell(handle);
        Ok(())
    }

    /// Whether its results have columns that its preparation couldn't know.
    fn is_call(&self) -> bool {
        let prepared = self.prepared.as_ref();
        prepared.is_some_and(|prepared| prepared.columns().is_empty())
    }

    /// Reads a CALL's result to its end if it is of one row at most. Its OUT parameters are such a
    /// result, programs look for `SERVER_PS_OUT_PARAMS` before they fetch it, and with
    /// `CLIENT_DEPRECATE_EOF` only the end of the result tells.
    fn read_ahead(&mut self, handle: &mut Handle<'_>) -> Result<(), Failure> {
        let mut results = handle.session.connection()?.results();
        if !results.row_into(&mut self.rows)? || !results.append_row(&mut self.rows)? {
            self.source = Source::Memory;
            self.end(handle);
        }
        Ok(())
    }

    #[inline]
    fn tell(&mut self, handle: &Handle<'_>) {
        let upsert = &mut self.public.upsert_status;
        upsert.affected_rows = handle.mysql.affected_rows;
        upsert.last_insert_id = handle.mysql.insert_id;
        upsert.server_status = handle.mysql.server_status;
        upsert.warning_count = handle.mysql.warning_count;
    }

    /// The rows of a result have all been read.
    fn end(&mut self, handle: &mut Handle<'_>) {
        handle.mysql.status = status::READY;
        handle.tell_end();
        self.tell(handle);
    }

    fn store(&mut self) -> Result<(), Failure> {
        if self.public.field_count == 0 {
            return Ok(());
        }
        let mut handle = self.handle()?;
        match self.source {
            Source::Stream if self.current.is_none() => {
                let mut results = handle.session.connection()?.results();
                self.source = Source::Memory;
                let mut stored = Ok(true);
                if self.rows.is_empty() {
                    stored = results.row_into(&mut self.rows);
                }
                while let Ok(true) = stored {
                    stored = results.append_row(&mut self.rows);
                }
                self.end(&mut handle);
                stored?;
            }
            Source::Memory if self.public.state == WAITING => {}
            Source::Cursor { .. } => {
                let prepared = self.prepared.as_ref();
                let prepared = prepared.ok_or_else(|| Failure::of(failure::STATEMENT_CLOSED))?;
                let connection = handle.session.connection()?;
                connection
                    .fetch(prepared, u32::MAX)?
                    .rows_into(&mut self.rows)?;
                self.source = Source::Memory;
                self.end(&mut handle);
            }
            _ => return Err(Failure::of(failure::COMMANDS_OUT_OF_SYNC)),
        }
        (self.next, self.current) = (0, None);
        let count = self.rows.len() as u64;
        self.public.result.rows = count;
        self.public.upsert_status.affected_rows = count;
        self.public.state = STORED;
        handle.mysql.affected_rows = count;
        if self.public.update_max_length != 0 {
            self.measure()?;
        }
        Ok(())
    }

    /// Notes how long each column's longest value is as text.
    fn measure(&mut self) -> Result<(), Failure> {
        self.columns.forget_seen();
        let mut text = Vec::new();
        for row in self.rows.iter() {
            for at in 0..row.len() {
                let Some(field) = self.columns.field(at) else {
                    continue;
                };
                text.clear();
                write_text(row.value(at)?, &field, &mut text);
                self.columns.saw(at, text.len());
            }
        }
        Ok(())
    }

    /// Goes to the next row; false at the end.
    fn step(&mut self) -> Result<bool, Failure> {
        while self.next >= self.rows.len() {
            self.current = None;
            match self.source {
                Source::Nothing => {
                    self.prepared()?;
                    return match self.public.state {
                        FETCH_DONE => Ok(false),
                        _ => Err(Failure::of(failure::COMMANDS_OUT_OF_SYNC)),
                    };
                }
                Source::Memory | Source::Cursor { is_at_end: true } => return Ok(false),
                Source::Stream => {
                    let mut handle = self.handle()?;
                    let read = handle
                        .session
                        .connection()?
                        .results()
                        .row_into(&mut self.rows);
                    if !matches!(read, Ok(true)) {
                        self.source = Source::Nothing;
                        self.public.state = FETCH_DONE;
                        self.end(&mut handle);
                        return Ok(read?);
                    }
                }
                Source::Cursor { is_at_end: false } => {
                    let mut handle = self.handle()?;
                    let prepared = self.prepared()?;
                    let count = u32::try_from(self.public.prefetch_rows).unwrap_or(u32::MAX);
                    let connection = handle.session.connection()?;
                    let mut results = connection.fetch(prepared, count.max(1))?;
                    results.rows_into(&mut self.rows)?;
                    let status = results.outcome().status;
                    self.source = Source::Cursor {
                        is_at_end: self.rows.is_empty() || status.contains(Status::LAST_ROW_SENT),
                    };
                    handle.tell_end();
                }
            }
            self.next = 0;
        }
        self.current = Some(self.next);
        self.next += 1;
        Ok(true)
    }

    fn fetch(&mut self) -> Result<c_int, Failure> {
        if !self.step()? {
            self.public.state = FETCH_DONE;
            return Ok(NO_DATA);
        }
        self.public.state = FETCHING;
        let mut is_truncated = false;
        if let Some(row) = self.current.and_then(|at| self.rows.get(at)) {
            for (at, bind) in self.binds.iter_mut().enumerate() {
                if let Some(field) = self.columns.field(at) {
                    is_truncated |= deliver(row.value(at)?, &field, bind, 0);
                }
            }
        }
        let reports = self.handle()?.mysql.options.report_data_truncation != 0;
        Ok(if is_truncated && reports {
            TRUNCATED
        } else {
            0
        })
    }

    fn fetch_column(&mut self, bind: &mut Bind, at: usize, offset: usize) -> Result<(), Failure> {
        self.prepared()?;
        let row = self.current.and_then(|at| self.rows.get(at));
        let row = row.ok_or_else(|| Failure::of(failure::NO_DATA))?;
        let Some(field) = self.columns.field(at) else {
            return Err(Failure::of(failure::NO_DATA));
        };
        deliver(row.value(at)?, &field, bind, offset);
        Ok(())
    }

    fn bind_parameters(&mut self, binds: *const Bind) -> Result<(), Failure> {
        let count = match self.public.state {
            // Bound before prepare, for mariadb_stmt_execute_direct().
            INITTED => self.public.prebind_params as usize,
            _ => self.public.param_count as usize,
        };
        if self.public.state == INITTED && count == 0 {
            return Err(Failure::of(failure::NO_PREPARED_STATEMENT));
        }
        self.parameters = copied(binds, count)?;
        for bind in &mut self.parameters {
            bind.long_data_used = 0;
            bind.is_null_value = 0;
        }
        self.public.params = self.parameters.as_mut_ptr();
        self.public.bind_param_done = 1;
        Ok(())
    }

    fn bind_result(&mut self, binds: *const Bind) -> Result<(), Failure> {
        self.prepared()?;
        if self.public.field_count == 0 {
            return Err(Failure::of(failure::NO_STATEMENT_METADATA));
        }
        self.binds = copied(binds, self.public.field_count as usize)?;
        self.public.bind = self.binds.as_mut_ptr();
        self.public.bind_result_done = 1;
        Ok(())
    }

    /// Goes to the next result: 0, or -1 if there is none.
    fn next_result(&mut self) -> Result<c_int, Failure> {
        self.prepared()?;
        let mut handle = self.handle()?;
        if self.source == Source::Stream {
            let mut results = handle.session.connection()?.results();
            while results.next_row()?.is_some() {}
            self.end(&mut handle);
        }
        self.source = Source::Nothing;
        emptied(&mut self.rows);
        (self.next, self.current) = (0, None);
        if !handle.has_more_results() || !handle.session.connection()?.results().next_result()? {
            return Ok(-1);
        }
        self.begin(&mut handle, false)?;
        Ok(0)
    }

    fn send_long(&mut self, at: c_uint, bytes: &[u8]) -> Result<(), Failure> {
        let prepared = self.prepared()?;
        let Some(bind) = self.parameters.get(at as usize) else {
            return Err(Failure::of(failure::INVALID_PARAMETER_NUMBER));
        };
        if !Buffer::of(bind.buffer_type).is_some_and(Buffer::is_string) {
            return Err(Failure::of(failure::INVALID_BUFFER_USE));
        }
        let handle = self.handle()?;
        let connection = handle.session.connection()?;
        connection.send_long(prepared, at as u16, bytes)?;
        self.parameters[at as usize].long_data_used = 1;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.free_result()?;
        let mut handle = self.handle()?;
        handle.ready()?;
        let prepared = self.prepared()?;
        handle.session.connection()?.reset_statement(prepared)?;
        for bind in &mut self.parameters {
            bind.long_data_used = 0;
        }
        Ok(())
    }

    /// One execution for each row of parameters (`STMT_ATTR_ARRAY_SIZE`).
    fn execute_array(&mut self, handle: &mut Handle<'_>) -> Result<(), Failure> {
        let prepared = self.prepared()?;
        if self.parameters.len() < prepared.parameters() {
            return Err(Failure::of(failure::PARAMETERS_NOT_BOUND));
        }
        let connection = handle.session.connection()?;
        let mut affected = 0;
        for row in 0..self.public.array_size as usize {
            let mut values: SmallVec<[Value<'_>; 16]> = SmallVec::new();
            for bind in &self.parameters {
                values.push(array_parameter(bind, row, self.public.row_size)?);
            }
            let outcome = connection.execute(prepared, &values)?.finish()?;
            affected += outcome.affected_rows;
        }
        self.public.state = EXECUTED;
        handle.tell_ok();
        handle.mysql.affected_rows = affected;
        self.tell(handle);
        Ok(())
    }
}

/// A parameter of one row of an array: columns side by side, or rows of `row_size` bytes.
fn array_parameter<'a>(bind: &Bind, row: usize, row_size: usize) -> Result<Value<'a>, Failure> {
    const NUL_TERMINATED: c_char = -1;
    const IS_NULL: c_char = 1;
    let mut one = bind.clone();
    let step = |own: usize| row * if row_size > 0 { row_size } else { own };
    let indicator = take(
        bind.indicator
            .wrapping_byte_add(match bind.indicator.is_null() {
                true => 0,
                false => step(1),
            }),
    );
    match indicator.unwrap_or(0) {
        IS_NULL => return Ok(Value::Null),
        0 | NUL_TERMINATED => {}
        _ => return Err(Failure::of(failure::NOT_IMPLEMENTED)),
    }
    one.is_null = std::ptr::null_mut();
    one.is_null_value = 0;
    let buffer = Buffer::of(bind.buffer_type)
        .ok_or_else(|| Failure::of(failure::UNSUPPORTED_PARAMETER_TYPE))?;
    let size = match buffer {
        Buffer::Null => return Ok(Value::Null),
        Buffer::Integer(width) => width,
        Buffer::Float => 4,
        Buffer::Double => 8,
        Buffer::Time(_) => size_of::<crate::abi::Time>(),
        Buffer::Text | Buffer::Decimal | Buffer::Bytes => size_of::<*mut c_void>(),
    };
    one.buffer = bind.buffer.wrapping_byte_add(step(size));
    if buffer.is_string() {
        if row_size == 0 {
            one.buffer = take(one.buffer.cast::<*mut c_void>()).unwrap_or(std::ptr::null_mut());
        }
        if !bind.length.is_null() {
            one.length = bind.length.wrapping_byte_add(step(size_of::<c_ulong>()));
        }
        if indicator == Some(NUL_TERMINATED) {
            let text = Text(one.buffer.cast()).bytes().unwrap_or_default();
            one.length = std::ptr::null_mut();
            one.buffer_length = text.len() as c_ulong;
        }
    }
    parameter(&one)
}

fn copied(binds: *const Bind, count: usize) -> Result<Vec<Bind>, Failure> {
    if binds.is_null() || count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: by the border's contract there is a MYSQL_BIND for each parameter or column.
    let binds = unsafe { std::slice::from_raw_parts(binds, count) }.to_vec();
    match binds
        .iter()
        .all(|bind| Buffer::of(bind.buffer_type).is_some())
    {
        true => Ok(binds),
        false => Err(Failure::of(failure::UNSUPPORTED_PARAMETER_TYPE)),
    }
}
