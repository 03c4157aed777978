//! A result's columns as C programs see them: `MYSQL_FIELD`s whose texts end with a zero byte.
//!
//! ```text
//! fields │ name ─┐ │ table ─┐ │ … │ name ─┐ │ …
//! texts  │ id 0 sbtest1 0 def 0 … │ k 0 …                      one buffer for all of them
//! ```
//!
//! The same statement gives the same columns again and again: definitions that are those of last
//! time, byte by byte, are not made again ([`ColumnSet::renewed`]).

use crate::abi::Field;
use porpoise_client::Columns;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_uint, c_ulong};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct ColumnSet {
    /// In cells, as C programs have pointers to them, and some write to them.
    fields: Vec<UnsafeCell<Field>>,
    /// What the fields' pointers lead to.
    _texts: Vec<u8>,
    /// As they came from the server.
    definitions: Vec<u8>,
}

// SAFETY: the fields' pointers lead into the texts, which go wherever they go and never change.
unsafe impl Send for ColumnSet {}
// SAFETY: what changes through a shared reference is `max_length` alone: while a result is read, or
// a statement's rows are measured, on the thread that by the border's contract is the only one to
// use the columns then.
unsafe impl Sync for ColumnSet {}

impl ColumnSet {
    pub fn new(columns: &Columns) -> ColumnSet {
        let mut texts = Vec::with_capacity(columns.bytes().len() + 8 * columns.len());
        let mut places = Vec::with_capacity(columns.len() * 7);
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns.iter() {
            for text in [
                column.name,
                column.org_name,
                column.table,
                column.org_table,
                column.schema,
                b"def",
                column.default.unwrap_or_default(),
            ] {
                places.push((texts.len(), text.len()));
                texts.extend_from_slice(text);
                texts.push(0);
            }
            fields.push(Field {
                name: std::ptr::null_mut(),
                org_name: std::ptr::null_mut(),
                table: std::ptr::null_mut(),
                org_table: std::ptr::null_mut(),
                db: std::ptr::null_mut(),
                catalog: std::ptr::null_mut(),
                def: std::ptr::null_mut(),
                length: column.length.into(),
                max_length: 0,
                name_length: 0,
                org_name_length: 0,
                table_length: 0,
                org_table_length: 0,
                db_length: 0,
                catalog_length: 0,
                def_length: 0,
                flags: flags(&column),
                decimals: column.decimals.into(),
                charsetnr: column.collation.into(),
                field_type: column.column_type as u8 as c_uint,
                extension: std::ptr::null_mut(),
            });
        }
        let base: *mut c_char = texts.as_mut_ptr().cast();
        for (field, (places, column)) in fields
            .iter_mut()
            .zip(places.as_chunks::<7>().0.iter().zip(columns.iter()))
        {
            let text = |at: usize| (base.wrapping_add(places[at].0), places[at].1 as c_uint);
            (field.name, field.name_length) = text(0);
            (field.org_name, field.org_name_length) = text(1);
            (field.table, field.table_length) = text(2);
            (field.org_table, field.org_table_length) = text(3);
            (field.db, field.db_length) = text(4);
            (field.catalog, field.catalog_length) = text(5);
            if column.default.is_some() {
                (field.def, field.def_length) = text(6);
            }
        }
        ColumnSet {
            fields: fields.into_iter().map(UnsafeCell::new).collect(),
            _texts: texts,
            definitions: columns.bytes().to_vec(),
        }
    }

    /// These columns, or new ones if the definitions are others or a result that is still about has
    /// these.
    pub fn renewed(mut this: Arc<ColumnSet>, columns: &Columns) -> Arc<ColumnSet> {
        if this.definitions == columns.bytes()
            && let Some(set) = Arc::get_mut(&mut this)
        {
            for field in &mut set.fields {
                field.get_mut().max_length = 0;
            }
            return this;
        }
        Arc::new(ColumnSet::new(columns))
    }

    /// These columns if the definitions are the same, whoever else has them: what a statement's
    /// metadata shows is what its later executions write.
    pub fn kept(this: Arc<ColumnSet>, columns: &Columns) -> Arc<ColumnSet> {
        if this.definitions == columns.bytes() {
            return this;
        }
        Arc::new(ColumnSet::new(columns))
    }

    /// No value was seen yet.
    pub fn forget_seen(&self) {
        for cell in &self.fields {
            // SAFETY: as in `field`.
            unsafe { (*cell.get()).max_length = 0 };
        }
    }

    pub fn count(&self) -> c_uint {
        self.fields.len() as c_uint
    }

    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// A copy of one, from 0.
    #[inline]
    pub fn field(&self, at: usize) -> Option<Field> {
        let cell = self.fields.get(at)?;
        // SAFETY: by the border's contract no other thread uses the result or the connection that
        // it belongs to now.
        Some(unsafe { (*cell.get()).clone() })
    }

    /// What C programs get: they read it, and some write their own `max_length`.
    pub fn pointer(this: &Arc<ColumnSet>) -> *mut Field {
        this.fields.first().map_or(std::ptr::null_mut(), |_| {
            UnsafeCell::raw_get(this.fields.as_ptr())
        })
    }

    /// Notes that a value of this length was seen.
    #[inline]
    pub fn saw(&self, at: usize, length: usize) {
        let Some(cell) = self.fields.get(at) else {
            return;
        };
        // SAFETY: as in `field`.
        let longest = unsafe { &mut (*cell.get()).max_length };
        *longest = (*longest).max(length as c_ulong);
    }
}

/// The wire's flags, and NUM for what C programs take for numbers.
fn flags(column: &porpoise_client::ColumnDefinition<'_>) -> c_uint {
    use porpoise_client::codes::ColumnType as T;
    const NUM: c_uint = 0x8000;
    let is_number = match column.column_type {
        T::Timestamp => false,
        T::Year | T::NewDecimal => true,
        other => (other as u8) <= T::Int24 as u8,
    };
    let flags = c_uint::from(column.flags.bits());
    if is_number { flags | NUM } else { flags }
}
