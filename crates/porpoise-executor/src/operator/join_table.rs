//! Rows by the key that they are joined on: what a hash join makes of its right side.
//!
//! ```text
//! key ──code──► bucket ──► entry ──other──► entry …        the keys of one bucket
//!                            │ same
//!                            └──► entry ──same──► entry …   the rows of one key, as they came
//! ```
//!
//! An entry is a row's place in all chains, and has its number. A key's code is the key itself if
//! it is one integer, and else its hash, beside which the key's bytes are kept. The buckets are
//! made when all rows are in, so they are as many as there are rows and never grow.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use porpoise_core::error::{Error, Result};
use porpoise_core::memory::{Arena, Charge, MemoryAccount, Place, reclaim};
use porpoise_core::temporary_file::PartWriter;
use porpoise_expr::{Expr, SlotId};
use porpoise_types::{DataType, KeyBuf, Value, convert};

use crate::Exec;
use crate::batch::{KeyProgram, Keys};
use crate::eval::{Evaluate, append_key};
use crate::row_buffer::RowBuffer;
use crate::spill::Hashing;

/// Tables of more rows are freed by another thread, and looked over some rows at a time.
const ROWS_MANY: usize = 1 << 16;

/// A row's number and one, or 0 for none: so fresh buckets are zeros, which cost nothing to make.
pub(super) type Link = u32;

#[derive(Clone, Copy)]
struct Entry {
    code: u64,
    /// The next row of this key.
    same: Link,
    /// The first row of the bucket's next key, if this is the first of its own.
    other: Link,
}

/// How keys are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// One integer each, of this signedness.
    Integer {
        unsigned: bool,
    },
    Bytes,
}

impl KeyForm {
    /// The form of the keys that both sides compute: one, so that equal keys have equal codes.
    pub(super) fn of(left: &[Expr], right: &[Expr]) -> KeyForm {
        let is_unsigned = |keys: &[Expr]| match keys {
            [
                Expr {
                    ty: DataType::Int { unsigned, .. },
                    ..
                },
            ] => Some(*unsigned),
            _ => None,
        };
        match (is_unsigned(left), is_unsigned(right)) {
            (Some(unsigned), Some(right)) if right == unsigned => KeyForm::Integer { unsigned },
            _ => KeyForm::Bytes,
        }
    }

    /// The key of the current row; false if a part of it is NULL, which equals nothing.
    pub(super) fn read(self, exec: &mut Exec<'_>, exprs: &[Expr], key: &mut Key) -> Result<bool> {
        key.bytes.clear();
        for expr in exprs {
            let value = expr.eval(exec)?;
            match self {
                _ if value.is_null() => return Ok(false),
                KeyForm::Integer { unsigned } => key.integer = integer_code(&value, unsigned),
                KeyForm::Bytes => {
                    append_key(exec, &value, &expr.ty, false, &mut key.bytes)?;
                }
            }
        }
        Ok(true)
    }
}

fn integer_code(value: &Value, unsigned: bool) -> u64 {
    match (value, unsigned) {
        (Value::Int(value), false) => *value as u64,
        (Value::UInt(value), true) => *value,
        (other, false) => convert::to_int(other).0 as u64,
        (other, true) => convert::to_uint(other).0,
    }
}

/// A row's key, as its form says.
#[derive(Default)]
pub(super) struct Key {
    integer: u64,
    bytes: KeyBuf,
}

impl Key {
    /// The key of a row of a batch, as [`KeyForm::read`].
    pub(super) fn read_of_batch(
        &mut self,
        exec: &mut Exec<'_>,
        (program, keys): (&KeyProgram<'_>, &Keys<'_>),
        row: usize,
        form: KeyForm,
    ) -> Result<bool> {
        self.bytes.clear();
        for (value, ty) in program.values(keys, row) {
            match form {
                _ if value.is_null() => return Ok(false),
                KeyForm::Integer { unsigned } => self.integer = integer_code(&value, unsigned),
                KeyForm::Bytes => append_key(exec, &value, ty, false, &mut self.bytes)?,
            }
        }
        Ok(true)
    }

    /// Appends it, before what lies behind it in a temporary file: eight bytes of an integer, else
    /// the length (u32) and the bytes.
    pub(super) fn write(&self, form: KeyForm, out: &mut Vec<u8>) {
        write_key(form, self.integer, &self.bytes, out);
    }

    /// Reads what [`write`](Key::write) appended, and gives what lies behind it.
    pub(super) fn read<'b>(&mut self, form: KeyForm, entry: &'b [u8]) -> Option<&'b [u8]> {
        match form {
            KeyForm::Integer { .. } => {
                let (integer, rest) = entry.split_first_chunk::<8>()?;
                self.integer = u64::from_le_bytes(*integer);
                Some(rest)
            }
            KeyForm::Bytes => {
                let (len, rest) = entry.split_first_chunk::<4>()?;
                let len = u32::from_le_bytes(*len) as usize;
                let (bytes, rest) = rest.split_at_checked(len)?;
                self.bytes.clear();
                self.bytes.extend_from_slice(bytes);
                Some(rest)
            }
        }
    }

    /// The part of a temporary file that its rows belong to.
    pub(super) fn part(&self, form: KeyForm, hashing: &Hashing) -> usize {
        part_of(form, hashing, self.integer, &self.bytes)
    }
}

fn write_key(form: KeyForm, integer: u64, bytes: &[u8], out: &mut Vec<u8>) {
    match form {
        KeyForm::Integer { .. } => out.extend_from_slice(&integer.to_le_bytes()),
        KeyForm::Bytes => {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

fn part_of(form: KeyForm, hashing: &Hashing, integer: u64, bytes: &[u8]) -> usize {
    match form {
        KeyForm::Integer { .. } => hashing.part_of(integer),
        KeyForm::Bytes => hashing.part_of(bytes),
    }
}

/// Rows by key.
pub struct JoinTable {
    form: KeyForm,
    rows: RowBuffer,
    entries: Vec<Entry>,
    /// The first entry of each bucket; a power of two of them.
    buckets: Vec<Link>,
    /// The bytes of the keys, and where each row's lie and how long they are.
    keys: Arena,
    keys_at: Vec<(Place, u32)>,
    charge: Charge,
    hasher: DefaultHashBuilder,
}

impl Default for JoinTable {
    fn default() -> JoinTable {
        JoinTable::new(KeyForm::Bytes)
    }
}

impl Drop for JoinTable {
    fn drop(&mut self) {
        // Returning so much to the system takes milliseconds.
        if self.entries.len() > ROWS_MANY {
            reclaim((
                std::mem::take(&mut self.entries),
                std::mem::take(&mut self.buckets),
                std::mem::take(&mut self.keys_at),
            ));
        }
    }
}

impl JoinTable {
    pub(super) fn new(form: KeyForm) -> JoinTable {
        JoinTable {
            form,
            rows: RowBuffer::default(),
            entries: Vec::new(),
            buckets: Vec::new(),
            keys: Arena::default(),
            keys_at: Vec::new(),
            charge: Charge::default(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps the slots' current rows. They are found from [`finish`](JoinTable::finish) on.
    ///
    /// # Errors
    /// Where the statement would take more memory than it may.
    pub(super) fn add(&mut self, key: &Key, exec: &Exec<'_>, slots: &[SlotId]) -> Result<()> {
        self.rows.push(exec, slots)?;
        self.add_entry(&exec.session.memory, key)
    }

    /// Keeps a row of a slot that isn't its current one, as [`add`](JoinTable::add).
    ///
    /// # Errors
    /// As [`add`](JoinTable::add).
    pub(super) fn add_row(
        &mut self,
        account: &Arc<MemoryAccount>,
        key: &Key,
        row: &[u8],
    ) -> Result<()> {
        self.rows.push_row(account, row)?;
        self.add_entry(account, key)
    }

    /// Keeps a row that was saved.
    ///
    /// # Errors
    /// As [`add`](JoinTable::add).
    pub(super) fn add_saved(
        &mut self,
        account: &Arc<MemoryAccount>,
        key: &Key,
        saved: &[u8],
    ) -> Result<()> {
        self.rows.push_saved(account, saved)?;
        self.add_entry(account, key)
    }

    /// How much memory it takes, in bytes, or will take when it is finished.
    pub(super) fn bytes(&self) -> usize {
        let buckets = self.entries.len().next_power_of_two() * size_of::<Link>();
        self.rows.bytes() + self.keys.bytes() + self.charge.bytes() + buckets
    }

    /// Divides the rows, each behind its key, among the parts of a file. The table isn't finished.
    ///
    /// # Errors
    /// As [`PartWriter::push`].
    pub(super) fn divide(
        &self,
        hashing: &Hashing,
        parts: &mut PartWriter,
        slots: usize,
    ) -> Result<()> {
        for (row, entry) in self.entries.iter().enumerate() {
            let bytes = self.bytes_of(row);
            let part = part_of(self.form, hashing, entry.code, bytes);
            parts.push(part, |out| {
                write_key(self.form, entry.code, bytes, out);
                out.extend_from_slice(self.rows.saved(row, slots));
            })?;
        }
        Ok(())
    }

    fn add_entry(&mut self, account: &Arc<MemoryAccount>, key: &Key) -> Result<()> {
        if self.entries.len() >= Link::MAX as usize {
            return Err(Error::engine_error("a hash table of too many rows"));
        }
        self.charge.reserve(account, &mut self.entries, 1)?;
        self.entries.push(Entry {
            code: self.code(key),
            same: 0,
            other: 0,
        });
        if self.form == KeyForm::Bytes {
            self.charge.reserve(account, &mut self.keys_at, 1)?;
            let place = self.keys.push(account, &key.bytes)?;
            self.keys_at.push((place, key.bytes.len() as u32));
        }
        Ok(())
    }

    /// Makes the buckets. `check` is called now and then.
    ///
    /// # Errors
    /// Where the statement would take more memory than it may, and those of `check`.
    pub(super) fn finish(
        &mut self,
        account: &Arc<MemoryAccount>,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let count = self.entries.len().next_power_of_two();
        self.charge.add(account, count * size_of::<Link>())?;
        self.buckets = vec![0; count];
        // Each row goes before the others of its key, so that they are found as they came.
        for row in (0..self.entries.len()).rev() {
            if row % ROWS_MANY == 0 {
                check()?;
            }
            self.link(row);
        }
        Ok(())
    }

    fn link(&mut self, row: usize) {
        let code = self.entries[row].code;
        let bucket = self.bucket(code);
        let this = row as Link + 1;
        let (mut at, mut before) = (self.buckets[bucket], 0);
        while let Some(found) = row_of(at) {
            if self.entries[found].code == code && self.bytes_of(found) == self.bytes_of(row) {
                self.entries[row].same = at;
                self.entries[row].other = std::mem::take(&mut self.entries[found].other);
                match row_of(before) {
                    Some(before) => self.entries[before].other = this,
                    None => self.buckets[bucket] = this,
                }
                return;
            }
            before = at;
            at = self.entries[found].other;
        }
        self.entries[row].other = self.buckets[bucket];
        self.buckets[bucket] = this;
    }

    fn code(&self, key: &Key) -> u64 {
        match self.form {
            KeyForm::Integer { .. } => key.integer,
            KeyForm::Bytes => self.hasher.hash_one(key.bytes.as_slice()),
        }
    }

    fn bucket(&self, code: u64) -> usize {
        self.hasher.hash_one(code) as usize & (self.buckets.len() - 1)
    }

    /// The bytes of a row's key; none of an integer, which is its code.
    fn bytes_of(&self, row: usize) -> &[u8] {
        match self.keys_at.get(row) {
            Some((place, len)) => &self.keys.from(*place)[..*len as usize],
            None => &[],
        }
    }

    /// The first row of a key.
    pub(super) fn first(&self, key: &Key) -> Option<u32> {
        if self.buckets.is_empty() {
            return None;
        }
        let code = self.code(key);
        let mut at = self.buckets[self.bucket(code)];
        while let Some(row) = row_of(at) {
            if self.entries[row].code == code && self.bytes_of(row) == key.bytes.as_slice() {
                return Some(row as u32);
            }
            at = self.entries[row].other;
        }
        None
    }

    /// As [`first`](JoinTable::first), of many keys that are one integer each. One look-up doesn't
    /// wait for the one before it.
    pub(super) fn first_of_each(&self, keys: &[i64], firsts: &mut Vec<Link>) {
        firsts.clear();
        if self.buckets.is_empty() {
            firsts.resize(keys.len(), 0);
            return;
        }
        let codes = keys.iter().map(|key| *key as u64);
        firsts.extend(codes.clone().map(|code| self.buckets[self.bucket(code)]));
        for (first, code) in firsts.iter_mut().zip(codes) {
            while let Some(row) = row_of(*first)
                && self.entries[row].code != code
            {
                *first = self.entries[row].other;
            }
        }
    }

    /// The next row of the same key.
    pub(super) fn after(&self, row: u32) -> Option<u32> {
        self.entries[row as usize].same.checked_sub(1)
    }

    /// Makes a row the slots' current one.
    pub(super) fn restore(&self, row: u32, exec: &mut Exec<'_>, slots: &[SlotId]) {
        self.rows.restore(row as usize, &mut exec.frame, slots);
    }
}

fn row_of(link: Link) -> Option<usize> {
    link.checked_sub(1).map(|row| row as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_of(form: KeyForm, keys: &[Key]) -> JoinTable {
        let account = Arc::default();
        let mut table = JoinTable::new(form);
        for key in keys {
            table.add_entry(&account, key).unwrap();
        }
        table.finish(&account, || Ok(())).unwrap();
        table
    }

    fn rows_of(table: &JoinTable, key: &Key) -> Vec<u32> {
        std::iter::successors(table.first(key), |row| table.after(*row)).collect()
    }

    fn integer(value: i64) -> Key {
        Key {
            integer: value as u64,
            bytes: KeyBuf::new(),
        }
    }

    fn bytes(value: &str) -> Key {
        Key {
            integer: 0,
            bytes: KeyBuf::from_slice(value.as_bytes()),
        }
    }

    #[test]
    fn rows_of_a_key_are_found_in_the_order_in_which_they_came() {
        const KEYS: i64 = 5000;
        let form = KeyForm::Integer { unsigned: false };
        let all: Vec<Key> = (0..4 * KEYS).map(|row| integer(row % KEYS - 100)).collect();
        let integers = table_of(form, &all);
        let all: Vec<Key> = (0..4 * KEYS)
            .map(|row| bytes(&format!("{:>3}", row % KEYS)))
            .collect();
        let texts = table_of(KeyForm::Bytes, &all);
        for key in 0..KEYS {
            let expected: Vec<u32> = (0..4).map(|turn| (turn * KEYS + key) as u32).collect();
            assert_eq!(rows_of(&integers, &integer(key - 100)), expected);
            assert_eq!(rows_of(&texts, &bytes(&format!("{key:>3}"))), expected);
        }
        for absent in [KEYS - 100, -101, i64::MIN, i64::MAX] {
            assert_eq!(integers.first(&integer(absent)), None);
        }
        assert_eq!(texts.first(&bytes("")), None);
        assert_eq!(texts.first(&bytes("0")), None);

        let (mut firsts, keys) = (Vec::new(), [KEYS - 100, -100, i64::MIN, KEYS - 101, -100]);
        integers.first_of_each(&keys, &mut firsts);
        let each = keys.iter().map(|key| integers.first(&integer(*key)));
        let found = firsts
            .iter()
            .map(|first| row_of(*first).map(|row| row as u32));
        assert!(found.eq(each));
    }

    #[test]
    fn many_rows_of_one_key_are_one_chain() {
        let form = KeyForm::Integer { unsigned: true };
        let all: Vec<Key> = (0..100_000).map(|row| integer(row / 99_999)).collect();
        let table = table_of(form, &all);
        assert_eq!(rows_of(&table, &integer(0)).len(), 99_999);
        assert_eq!(rows_of(&table, &integer(1)), [99_999]);
    }

    #[test]
    fn an_empty_table_has_no_key() {
        let table = table_of(KeyForm::Bytes, &[]);
        assert!(table.is_empty());
        assert_eq!(table.first(&bytes("")), None);
        let mut firsts = Vec::new();
        table.first_of_each(&[0, 1], &mut firsts);
        assert_eq!(firsts, [0, 0]);
    }

    #[test]
    fn a_table_can_be_ended_while_it_is_finished() {
        let account = Arc::default();
        let mut table = JoinTable::new(KeyForm::Integer { unsigned: false });
        table.add_entry(&account, &integer(1)).unwrap();
        let ended = table.finish(&account, || Err(Error::query_interrupted()));
        assert_eq!(ended.unwrap_err().number(), 1317);
    }
}
