//! Results of text queries: `MYSQL_RES`, its rows kept or read as they come.
//!
//! ```text
//! bytes    │7 0│fish 0│8 0│whale 0│      every value with a zero byte behind it
//! pointers │ ●   ●     │ ●   ●    │      a row's are side by side: what mysql_fetch_row() returns
//! lengths  │ 1   4     │ 1   5    │      what mysql_fetch_lengths() returns
//! links    │ row ──────► row ─► ∅        the list that mysql_row_tell() and mysql_row_seek() walk
//! ```
//!
//! A result is [`ResultSet`], which begins with C's `MYSQL_RES`. Small ones are kept for the
//! thread's next, as a point query's result would else cost more to allocate than to read.

use crate::abi::{Mysql, Res, RowLink, RowList, RowPointers, status, zeroed};
use crate::border;
use crate::columns::ColumnSet;
use crate::failure::{self, Failure};
use crate::session::Handle;
use porpoise_client::Row;
use std::cell::RefCell;
use std::ffi::{c_char, c_uint, c_ulong};
use std::sync::Arc;

/// Results that a thread keeps for later, and the most bytes of one.
const KEPT_MAX: usize = 4;
const KEPT_BYTES_MAX: usize = 64 << 10;

#[repr(C)]
pub struct ResultSet {
    pub public: Res,
    list: RowList,
    columns: Arc<ColumnSet>,
    bytes: Vec<u8>,
    /// Where each value begins in `bytes`; `NULL` for NULL.
    starts: Vec<usize>,
    pointers: Vec<*mut c_char>,
    lengths: Vec<c_ulong>,
    links: Vec<RowLink>,
}

const NULL: usize = usize::MAX;

thread_local! {
    #[expect(clippy::vec_box, reason = "C has their addresses")]
    static KEPT: RefCell<Vec<Box<ResultSet>>> = const { RefCell::new(Vec::new()) };
}

impl ResultSet {
    fn new(columns: Arc<ColumnSet>) -> Box<ResultSet> {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        let mut result = kept.unwrap_or_else(|| {
            Box::new(ResultSet {
                // SAFETY: a MYSQL_RES is integers and pointers.
                public: unsafe { zeroed() },
                // SAFETY: so is a MYSQL_DATA.
                list: unsafe { zeroed() },
                columns: Arc::default(),
                bytes: Vec::new(),
                starts: Vec::new(),
                pointers: Vec::new(),
                lengths: Vec::new(),
                links: Vec::new(),
            })
        });
        result.public.field_count = columns.count();
        result.public.fields = ColumnSet::pointer(&columns);
        result.columns = columns;
        result
    }

    /// Columns without rows.
    pub fn of_columns(columns: Arc<ColumnSet>) -> *mut ResultSet {
        let mut result = ResultSet::new(columns);
        result.public.is_ps = 1;
        result.finish_rows();
        Box::into_raw(result)
    }

    fn release(mut self: Box<Self>) {
        if self.bytes.capacity() + 8 * self.pointers.capacity() > KEPT_BYTES_MAX {
            return;
        }
        self.columns = Arc::default();
        // SAFETY: as in `new`.
        self.public = unsafe { zeroed() };
        // SAFETY: as in `new`.
        self.list = unsafe { zeroed() };
        self.clear_rows();
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_MAX {
                kept.push(self);
            }
        });
    }

    fn clear_rows(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.pointers.clear();
        self.lengths.clear();
        self.links.clear();
    }

    #[inline]
    fn push(&mut self, row: &Row<'_>) {
        for at in 0..self.columns.len() {
            match row.raw(at) {
                Some(value) => {
                    self.starts.push(self.bytes.len());
                    self.lengths.push(value.len() as c_ulong);
                    self.bytes.extend_from_slice(value);
                    self.bytes.push(0);
                    self.columns.saw(at, value.len());
                }
                None => {
                    self.starts.push(NULL);
                    self.lengths.push(0);
                }
            }
        }
    }

    /// All bytes are there and stay where they are: pointers to them can be made.
    fn point(&mut self) {
        let base: *mut c_char = self.bytes.as_mut_ptr().cast();
        let pointers = self.starts.iter().map(|&start| match start {
            NULL => std::ptr::null_mut(),
            start => base.wrapping_add(start),
        });
        self.pointers.extend(pointers);
    }

    fn finish_rows(&mut self) {
        self.point();
        let width = self.columns.len().max(1);
        let rows = self.pointers.len() / width;
        let base = self.pointers.as_mut_ptr();
        self.links.extend((0..rows).map(|at| RowLink {
            next: std::ptr::null_mut(),
            data: base.wrapping_add(at * width),
            length: 0,
        }));
        let first = self.links.as_mut_ptr();
        for at in 1..rows {
            self.links[at - 1].next = first.wrapping_add(at);
        }
        self.list.data = if rows > 0 {
            first
        } else {
            std::ptr::null_mut()
        };
        self.list.rows = rows as u64;
        self.list.fields = self.columns.count();
        self.public.row_count = rows as u64;
        self.public.data_cursor = self.list.data;
        self.public.data = &mut self.list;
        self.public.eof = 1;
    }

    /// The row of a link, if it is one of ours.
    fn place_of(&self, link: *const RowLink) -> Option<usize> {
        let offset = (link as usize).checked_sub(self.links.as_ptr() as usize)?;
        let at = offset / size_of::<RowLink>();
        (at < self.links.len()).then_some(at)
    }

    fn link(&mut self, at: usize) -> *mut RowLink {
        match self.links.get_mut(at) {
            Some(link) => link,
            None => std::ptr::null_mut(),
        }
    }

    fn next_row(&mut self) -> RowPointers {
        if self.public.is_ps != 0 {
            return std::ptr::null_mut();
        }
        if self.public.data.is_null() {
            return self.read_row();
        }
        let Some(at) = self.place_of(self.public.data_cursor) else {
            self.public.current_row = std::ptr::null_mut();
            return std::ptr::null_mut();
        };
        let width = self.columns.len();
        self.public.data_cursor = self.link(at + 1);
        self.public.current_row = self.links[at].data;
        self.public.lengths = self.lengths.as_mut_ptr().wrapping_add(at * width);
        self.public.current_row
    }

    /// The next row from the server.
    fn read_row(&mut self) -> RowPointers {
        self.public.current_row = std::ptr::null_mut();
        self.public.lengths = std::ptr::null_mut();
        // SAFETY: `disown` takes the pointer away before its MYSQL goes; by the border's contract
        // no other thread uses it.
        let Some(mut handle) = (unsafe { self.public.handle.as_mut() }).and_then(Mysql::session)
        else {
            return std::ptr::null_mut();
        };
        self.clear_rows();
        let read = match handle.session.connection() {
            Ok(connection) => match connection.results().next_row() {
                Ok(Some(row)) => {
                    self.push(&row);
                    Ok(true)
                }
                Ok(None) => Ok(false),
                Err(error) => Err(Failure::from(error)),
            },
            Err(failure) => Err(failure),
        };
        match read {
            Ok(true) => {
                self.point();
                self.public.row_count += 1;
                self.public.row = self.pointers.as_mut_ptr();
                self.public.current_row = self.public.row;
                self.public.lengths = self.lengths.as_mut_ptr();
                return self.public.current_row;
            }
            Ok(false) => handle.tell_end(),
            Err(failure) => handle.fail(&failure),
        }
        handle.mysql.status = status::READY;
        handle.session.unbuffered = std::ptr::null_mut();
        self.disown();
        std::ptr::null_mut()
    }

    /// Its connection is no more, or has nothing more for it.
    pub fn disown(&mut self) {
        self.public.handle = std::ptr::null_mut();
        self.public.eof = 1;
    }
}

/// Reads all rows of the result that the connection stands at.
fn store(handle: &mut Handle<'_>) -> Result<*mut ResultSet, Failure> {
    if handle.mysql.status != status::GET_RESULT {
        return Err(Failure::of(failure::COMMANDS_OUT_OF_SYNC));
    }
    handle.mysql.status = status::READY;
    let mut result = ResultSet::new(handle.session.columns.clone());
    let mut results = handle.session.connection()?.results();
    while let Some(row) = results.next_row()? {
        result.push(&row);
    }
    result.finish_rows();
    handle.tell_end();
    handle.mysql.affected_rows = result.public.row_count;
    Ok(Box::into_raw(result))
}

/// Leaves the rows with the server until they are fetched.
fn lend(handle: &mut Handle<'_>) -> Result<*mut ResultSet, Failure> {
    if handle.mysql.status != status::GET_RESULT {
        return Err(Failure::of(failure::COMMANDS_OUT_OF_SYNC));
    }
    handle.mysql.status = status::USE_RESULT;
    let mut result = ResultSet::new(handle.session.columns.clone());
    result.public.handle = handle.mysql;
    let result = Box::into_raw(result);
    handle.session.unbuffered = result;
    Ok(result)
}

fn begun(
    mysql: Option<&mut Mysql>,
    begin: impl FnOnce(&mut Handle<'_>) -> Result<*mut ResultSet, Failure>,
) -> *mut ResultSet {
    border(std::ptr::null_mut(), || {
        let Some(mut handle) = mysql.and_then(Mysql::session) else {
            return std::ptr::null_mut();
        };
        if handle.mysql.field_count == 0 {
            return std::ptr::null_mut();
        }
        handle.mysql.clear_error();
        begin(&mut handle).unwrap_or_else(|failure| {
            handle.fail(&failure);
            std::ptr::null_mut()
        })
    })
}

pub extern "C" fn mysql_store_result(mysql: Option<&mut Mysql>) -> *mut ResultSet {
    begun(mysql, store)
}

pub extern "C" fn mysql_use_result(mysql: Option<&mut Mysql>) -> *mut ResultSet {
    begun(mysql, lend)
}

pub extern "C" fn mysql_free_result(result: *mut ResultSet) {
    border((), || {
        if result.is_null() {
            return;
        }
        // SAFETY: results are given out by Box::into_raw, and by the border's contract each comes
        // back once.
        let mut result = unsafe { Box::from_raw(result) };
        while !result.public.handle.is_null() {
            result.read_row();
        }
        result.release();
    });
}

#[inline]
pub extern "C" fn mysql_fetch_row(result: Option<&mut ResultSet>) -> RowPointers {
    border(std::ptr::null_mut(), || {
        result.map_or(std::ptr::null_mut(), ResultSet::next_row)
    })
}

pub extern "C" fn mysql_fetch_lengths(result: Option<&mut ResultSet>) -> *mut c_ulong {
    match result {
        Some(result) if !result.public.current_row.is_null() => result.public.lengths,
        _ => std::ptr::null_mut(),
    }
}

pub extern "C" fn mysql_num_rows(result: Option<&ResultSet>) -> u64 {
    result.map_or(0, |result| result.public.row_count)
}

pub extern "C" fn mysql_num_fields(result: Option<&ResultSet>) -> c_uint {
    result.map_or(0, |result| result.public.field_count)
}

pub extern "C" fn mysql_eof(result: Option<&ResultSet>) -> c_char {
    result.map_or(1, |result| result.public.eof)
}

pub extern "C" fn mysql_fetch_fields(result: Option<&ResultSet>) -> *mut crate::abi::Field {
    result.map_or(std::ptr::null_mut(), |result| result.public.fields)
}

fn field_at(result: &ResultSet, at: c_uint) -> *mut crate::abi::Field {
    if at < result.public.field_count {
        result.public.fields.wrapping_add(at as usize)
    } else {
        std::ptr::null_mut()
    }
}

pub extern "C" fn mysql_fetch_field_direct(
    result: Option<&ResultSet>,
    at: c_uint,
) -> *mut crate::abi::Field {
    result.map_or(std::ptr::null_mut(), |result| field_at(result, at))
}

pub extern "C" fn mysql_fetch_field(result: Option<&mut ResultSet>) -> *mut crate::abi::Field {
    let Some(result) = result else {
        return std::ptr::null_mut();
    };
    let field = field_at(result, result.public.current_field);
    if !field.is_null() {
        result.public.current_field += 1;
    }
    field
}

pub extern "C" fn mysql_field_seek(result: Option<&mut ResultSet>, at: c_uint) -> c_uint {
    result.map_or(0, |result| {
        std::mem::replace(&mut result.public.current_field, at)
    })
}

pub extern "C" fn mysql_field_tell(result: Option<&ResultSet>) -> c_uint {
    result.map_or(0, |result| result.public.current_field)
}

pub extern "C" fn mysql_data_seek(result: Option<&mut ResultSet>, row: u64) {
    let Some(result) = result else { return };
    let at = usize::try_from(row).unwrap_or(usize::MAX);
    result.public.current_row = std::ptr::null_mut();
    result.public.data_cursor = result.link(at);
}

pub extern "C" fn mysql_row_seek(
    result: Option<&mut ResultSet>,
    link: *mut RowLink,
) -> *mut RowLink {
    let Some(result) = result else {
        return std::ptr::null_mut();
    };
    result.public.current_row = std::ptr::null_mut();
    std::mem::replace(&mut result.public.data_cursor, link)
}

pub extern "C" fn mysql_row_tell(result: Option<&ResultSet>) -> *mut RowLink {
    result.map_or(std::ptr::null_mut(), |result| result.public.data_cursor)
}
