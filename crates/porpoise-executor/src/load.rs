//! LOAD DATA: rows out of a file of fields and lines.
//!
//! ```text
//! bytes ─► Fields::next_row ─► one field each: text, raw bytes or NULL ─► columns and variables ─► SET ─► the row
//! ```
//!
//! A field is stored as a text of its column's type would be by INSERT. Where the file has other
//! fields than the statement has columns, strict mode refuses the row, and a warning tells of it
//! otherwise.
//!
//! MySQL 8.4 manual, 15.2.9 (LOAD DATA Statement).

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use porpoise_core::error::{Error, Result};
use porpoise_core::memory::{Charge, MemoryAccount};
use porpoise_core::reply::Completion;
use porpoise_core::variables::SessionVars;
use porpoise_expr::EvalContext;
use porpoise_planner::file_format::FileFormat;
use porpoise_planner::plan::{Insert, Load, LoadTarget, OnDuplicate};
use porpoise_session::session_state::Source;
use porpoise_storage::Interrupt;
use porpoise_types::{Charset, DataType, Value};

use crate::Exec;
use crate::column_value::{fires_before, store_given};
use crate::defaults::with_defaults;
use crate::eval::Evaluate;
use crate::insert::{Counts, insert_row_of};

/// One field of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Field {
    /// \N, or NULL unquoted where fields are enclosed.
    #[default]
    Null,
    /// The field's bytes, unescaped, in the file's character set.
    Bytes(Vec<u8>),
}

/// Reads a file field by field.
pub struct Fields {
    input: BufReader<Interruptible>,
    /// Bytes that were looked at and given back, the next one last.
    given_back: Vec<u8>,
    format: Arc<FileFormat>,
    /// The bytes that may end a field, or mean something within one.
    special: [bool; 256],
    /// For the fields of a row.
    charge: Charge,
    account: Arc<MemoryAccount>,
}

/// A source that is read no further when the statement is to end.
struct Interruptible {
    source: Source,
    interrupt: Arc<Interrupt>,
}

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.interrupt.is_set() {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => self.source.read(buffer),
        }
    }
}

/// What ended a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Field,
    Line,
    File,
}

impl Fields {
    /// Reads `source` from its beginning, for a statement of the session.
    pub fn new(source: Source, format: FileFormat, session: &SessionVars) -> Fields {
        let source = Interruptible {
            source,
            interrupt: Arc::clone(&session.interrupt),
        };
        let mut special = [false; 256];
        let ends = [&format.fields_terminated, &format.lines_terminated];
        let ends = ends.into_iter().filter_map(|end| end.first().copied());
        for byte in ends.chain(format.enclosed).chain(format.escaped) {
            special[usize::from(byte)] = true;
        }
        Fields {
            input: BufReader::with_capacity(64 << 10, source),
            given_back: Vec::new(),
            format: Arc::new(format),
            special,
            charge: Charge::default(),
            account: Arc::clone(&session.memory),
        }
    }

    fn next(&mut self) -> Result<Option<u8>> {
        if let Some(byte) = self.given_back.pop() {
            return Ok(Some(byte));
        }
        let buffer = self.input.fill_buf().map_err(not_read)?;
        let first = buffer.first().copied();
        if first.is_some() {
            self.input.consume(1);
        }
        Ok(first)
    }

    /// Takes the bytes of a field that come next and mean themselves, as far as they are read.
    fn take_plain(&mut self, field: &mut Vec<u8>) -> Result<()> {
        if !self.given_back.is_empty() {
            return Ok(());
        }
        let buffer = self.input.fill_buf().map_err(not_read)?;
        let special = buffer
            .iter()
            .position(|byte| self.special[usize::from(*byte)]);
        let plain = &buffer[..special.unwrap_or(buffer.len())];
        self.charge.reserve(&self.account, field, plain.len())?;
        field.extend_from_slice(plain);
        let taken = plain.len();
        self.input.consume(taken);
        Ok(())
    }

    /// Takes `text` if it comes next. Nothing is taken otherwise.
    fn take(&mut self, text: &[u8]) -> Result<bool> {
        for (at, wanted) in text.iter().enumerate() {
            match self.next()? {
                Some(byte) if byte == *wanted => {}
                other => {
                    self.given_back.extend(other);
                    self.given_back.extend(text[..at].iter().rev());
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Takes what ends a field or a line if it comes next; nothing ends them where that is empty.
    fn take_end(&mut self, end: &[u8]) -> Result<bool> {
        Ok(!end.is_empty() && self.take(end)?)
    }

    fn is_at_end(&mut self) -> Result<bool> {
        let next = self.next()?;
        self.given_back.extend(next);
        Ok(next.is_none())
    }

    /// Skips to behind the next line's end.
    pub fn skip_line(&mut self) -> Result<()> {
        let format = Arc::clone(&self.format);
        while !self.take_end(&format.lines_terminated)? {
            if self.next()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The next line's fields; false at the file's end. A separator behind the last of the fields
    /// that are wanted, with nothing else before the line's end, begins no further one.
    pub fn next_row(&mut self, row: &mut Vec<Field>, wanted: usize) -> Result<bool> {
        if !self.begin_row(row)? {
            return Ok(false);
        }
        loop {
            let (field, ended) = self.field()?;
            row.push(field);
            if ended != Ended::Field || (row.len() == wanted && self.line_ends()?) {
                return Ok(true);
            }
        }
    }

    /// Goes to where the next line's fields begin; false at the file's end.
    fn begin_row(&mut self, row: &mut Vec<Field>) -> Result<bool> {
        row.clear();
        self.charge.clear();
        let format = Arc::clone(&self.format);
        let start = &format.lines_starting;
        while !start.is_empty() && !self.take(start)? {
            if self.next()?.is_none() {
                return Ok(false);
            }
        }
        Ok(!self.is_at_end()?)
    }

    /// The next line's fields, where each has as many bytes as its column, less where the line ends
    /// before. What comes behind them is one field more.
    pub fn next_fixed_row(&mut self, row: &mut Vec<Field>, widths: &[usize]) -> Result<bool> {
        if !self.begin_row(row)? {
            return Ok(false);
        }
        let total = widths
            .iter()
            .fold(0, |sum: usize, width| sum.saturating_add(*width));
        let format = Arc::clone(&self.format);
        let end = &format.lines_terminated;
        let mut bytes = Vec::new();
        let mut has_ended = false;
        while bytes.len() < total {
            self.charge.reserve(&self.account, &mut bytes, 1)?;
            has_ended = self.take_end(end)?;
            let next = match has_ended {
                true => None,
                false => self.next()?,
            };
            match next {
                None => {
                    has_ended = true;
                    break;
                }
                Some(byte) if Some(byte) == self.format.escaped => {
                    bytes.push(self.next()?.map_or(byte, unescaped));
                }
                Some(byte) => bytes.push(byte),
            }
        }
        let mut rest = &bytes[..];
        for width in widths {
            if rest.is_empty() {
                break;
            }
            let (field, behind) = rest.split_at((*width).min(rest.len()));
            row.push(Field::Bytes(field.to_vec()));
            rest = behind;
        }
        if !has_ended && !end.is_empty() && !self.line_ends()? {
            self.skip_line()?;
            row.push(Field::Null);
        }
        Ok(true)
    }

    /// Takes the line's end if it comes next.
    fn line_ends(&mut self) -> Result<bool> {
        let format = Arc::clone(&self.format);
        Ok(self.take_end(&format.lines_terminated)? || self.is_at_end()?)
    }

    fn field(&mut self) -> Result<(Field, Ended)> {
        let format = Arc::clone(&self.format);
        let (field_end, line_end) = (&format.fields_terminated, &format.lines_terminated);
        let enclosed = match format.enclosed {
            Some(quote) => self.take(&[quote])?.then_some(quote),
            None => None,
        };
        let mut bytes = Vec::new();
        // Escapes that stand for NULL only where they are all of the field.
        let mut nulls = 0;
        let ended = loop {
            self.take_plain(&mut bytes)?;
            // What follows adds at most one byte.
            self.charge.reserve(&self.account, &mut bytes, 1)?;
            if enclosed.is_none() {
                if self.take_end(field_end)? {
                    break Ended::Field;
                }
                if self.take_end(line_end)? {
                    break Ended::Line;
                }
            }
            let Some(byte) = self.next()? else {
                break Ended::File;
            };
            if Some(byte) == enclosed {
                // A doubled quote is one; a quote that nothing ends behind is itself.
                if self.take(&[byte])? {
                    bytes.push(byte);
                } else if self.take_end(field_end)? {
                    break Ended::Field;
                } else if self.take_end(line_end)? {
                    break Ended::Line;
                } else if self.is_at_end()? {
                    break Ended::File;
                } else {
                    bytes.push(byte);
                }
            } else if Some(byte) == format.escaped {
                match self.next()? {
                    None => bytes.push(byte),
                    Some(b'N') => {
                        nulls += 1;
                        bytes.push(b'N');
                    }
                    Some(escaped) => bytes.push(unescaped(escaped)),
                }
            } else {
                bytes.push(byte);
            }
        };
        let is_escaped_null = nulls == 1 && bytes.len() == 1;
        // The word is NULL where an escape can't say so, or quotes tell it from the text.
        let is_word = enclosed.is_none()
            && bytes == b"NULL"
            && (format.enclosed.is_some() || format.escaped.is_none());
        let field = if is_escaped_null || is_word {
            Field::Null
        } else {
            Field::Bytes(bytes)
        };
        Ok((field, ended))
    }
}

fn not_read(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::Interrupted => Error::query_interrupted(),
        _ => Error::engine_error(error),
    }
}

/// What an escaped byte stands for.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

/// How many bytes the fields of a file have whose fields are of fixed size.
fn widths_of(plan: &Insert, load: &Load) -> Vec<usize> {
    let width = |target: &LoadTarget| match target {
        LoadTarget::Column(position) => {
            let ty = &plan.table.columns[plan.columns[*position]].ty;
            usize::try_from(ty.max_octets(ty.collation().charset())).unwrap_or(usize::MAX)
        }
        LoadTarget::Variable(_) => 0,
    };
    load.targets.iter().map(width).collect()
}

/// A field's value and type: text where it is one in the file's character set.
fn value_of(field: Field, charset: Charset) -> (Value, DataType) {
    let Field::Bytes(bytes) = field else {
        return (Value::Null, DataType::Null);
    };
    let decoded = match charset {
        Charset::Binary => None,
        // Its bytes are the value's: nothing is copied.
        Charset::Utf8mb4 => {
            return match String::from_utf8(bytes) {
                Ok(text) => text_of(text),
                Err(error) => binary_of(error.into_bytes()),
            };
        }
        _ => charset.decode(&bytes).ok().map(Cow::into_owned),
    };
    match decoded {
        Some(text) => text_of(text),
        None => binary_of(bytes),
    }
}

fn text_of(text: String) -> (Value, DataType) {
    let length = text.chars().count() as u32;
    (Value::Text(text.into()), DataType::varchar(length))
}

fn binary_of(bytes: Vec<u8>) -> (Value, DataType) {
    let length = bytes.len() as u32;
    (Value::Bytes(bytes), DataType::Varbinary(length))
}

/// Reads the session's `load_source` to its end and inserts a row for each line. Fails without a
/// source.
pub fn load(exec: &mut Exec<'_>, plan: &Insert, load: &Load, counts: &mut Counts) -> Result<()> {
    let Some(source) = exec.session.load_source.take() else {
        return Err(Error::engine_error("LOAD DATA without a file"));
    };
    let mut fields = Fields::new(source, load.format.clone(), exec.session);
    for _ in 0..load.ignore_lines {
        exec.check_interrupt()?;
        fields.skip_line()?;
    }
    let mut row = Vec::new();
    let widths = load
        .format
        .has_fixed_fields()
        .then(|| widths_of(plan, load));
    while match &widths {
        Some(widths) => fields.next_fixed_row(&mut row, widths)?,
        None => fields.next_row(&mut row, load.targets.len())?,
    } {
        exec.check_interrupt()?;
        exec.row_number += 1;
        let mut given: Vec<Option<Value>> = vec![None; plan.columns.len()];
        for (at, target) in load.targets.iter().enumerate() {
            let field = row.get_mut(at).map(std::mem::take);
            if field.is_none() {
                exec.data_error(Error::row_lacks_fields(exec.row_number))?;
            }
            match target {
                LoadTarget::Variable(name) => {
                    let (value, ty) = value_of(field.unwrap_or_default(), load.charset);
                    exec.session.set_user_variable(name, value, ty)?;
                }
                // A field that isn't there is void, not its column's default.
                LoadTarget::Column(position) if field.is_none() && widths.is_some() => {
                    let column = &plan.table.columns[plan.columns[*position]];
                    given[*position] = Some(column.ty.implicit_default());
                }
                LoadTarget::Column(position) => {
                    if let Some(field) = field {
                        let (value, ty) = value_of(field, load.charset);
                        let column = &plan.table.columns[plan.columns[*position]];
                        let is_void = value.is_null() && !column.nullable;
                        // A trigger may yet give it a value.
                        if is_void && !column.auto_increment && !fires_before(plan) {
                            let row = exec.row_number;
                            exec.data_error(Error::null_to_not_null(&column.name, row))?;
                            given[*position] = Some(column.ty.implicit_default());
                        } else {
                            let column = plan.columns[*position];
                            given[*position] = store_given(exec, plan, column, value, &ty)?;
                        }
                    }
                }
            }
        }
        if row.len() > load.targets.len() {
            exec.data_error(Error::row_has_more_fields(exec.row_number))?;
        }
        for (position, expr) in &load.assignments {
            given[*position] = match expr {
                None => None,
                Some(expr) => {
                    let values = with_defaults(exec, plan, &given, false)?;
                    exec.fill(plan.slot, &values)?;
                    let value = expr.eval(exec)?;
                    store_given(exec, plan, plan.columns[*position], value, &expr.ty)?
                }
            };
        }
        insert_row_of(exec, plan, &mut given, counts)?;
    }
    Ok(())
}

/// What LOAD DATA says when it is done.
pub fn completion(plan: &Insert, counts: &Counts, warnings: usize) -> Completion {
    let (deleted, skipped) = match plan.duplicates {
        OnDuplicate::Replace => (counts.duplicates, 0),
        _ => (0, counts.records.saturating_sub(counts.affected)),
    };
    Completion {
        affected_rows: counts.affected,
        last_insert_id: counts.generated.or(counts.given).unwrap_or(0),
        warnings: 0,
        message: format!(
            "Records: {}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}",
            counts.records
        ),
    }
}

#[cfg(test)]
mod tests {
    use porpoise_sql::ast;

    use super::*;

    fn rows(text: &str, format: ast::FileFormat) -> Vec<Vec<Option<String>>> {
        rows_of(text, format, usize::MAX)
    }

    /// The rows, read for that many columns.
    fn rows_of(text: &str, format: ast::FileFormat, wanted: usize) -> Vec<Vec<Option<String>>> {
        let format = FileFormat::of(&format).expect("a format");
        let mut fields = Fields::new(
            Box::new(std::io::Cursor::new(text.as_bytes().to_vec())),
            format,
            &SessionVars::new(1),
        );
        let (mut all, mut row) = (Vec::new(), Vec::new());
        while fields.next_row(&mut row, wanted).expect("reads") {
            all.push(
                row.iter()
                    .map(|field| match field {
                        Field::Null => None,
                        Field::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                    })
                    .collect(),
            );
        }
        all
    }

    fn texts(rows: &[&[Option<&str>]]) -> Vec<Vec<Option<String>>> {
        rows.iter()
            .map(|row| row.iter().map(|field| field.map(String::from)).collect())
            .collect()
    }

    #[test]
    fn tabs_newlines_and_backslashes_unless_said_otherwise() {
        assert_eq!(
            rows(
                "1\ta\\tb\t\\N\n\n2\t\\\\N\tx\\\ny",
                ast::FileFormat::default()
            ),
            texts(&[
                &[Some("1"), Some("a\tb"), None],
                &[Some("")],
                &[Some("2"), Some("\\N"), Some("x\ny")],
            ])
        );
    }

    #[test]
    fn quotes_hold_terminators_and_doubled_quotes() {
        let csv = ast::FileFormat {
            fields_terminated: Some(b",".as_slice().into()),
            fields_enclosed: Some(b"\"".as_slice().into()),
            optionally_enclosed: true,
            lines_terminated: Some(b"\r\n".as_slice().into()),
            ..ast::FileFormat::default()
        };
        assert_eq!(
            rows("1,\"a,\"\"b\"\"\r\n\",NULL\r\n\"NULL\",5\" x,\"open", csv),
            texts(&[
                &[Some("1"), Some("a,\"b\"\r\n"), None],
                &[Some("NULL"), Some("5\" x"), Some("open")],
            ])
        );
    }

    #[test]
    fn a_separator_behind_the_last_wanted_field_begins_no_other() {
        let csv = ast::FileFormat {
            fields_terminated: Some(b",".as_slice().into()),
            ..ast::FileFormat::default()
        };
        assert_eq!(
            rows_of("1,2,\n3,,\n4,5,6\n7,\n8,9,", csv, 2),
            texts(&[
                &[Some("1"), Some("2")],
                &[Some("3"), Some("")],
                &[Some("4"), Some("5"), Some("6")],
                &[Some("7"), Some("")],
                &[Some("8"), Some("9")],
            ])
        );
    }

    #[test]
    fn lines_may_have_a_beginning() {
        let format = ast::FileFormat {
            fields_terminated: Some(b",".as_slice().into()),
            lines_starting: Some(b"xxx".as_slice().into()),
            ..ast::FileFormat::default()
        };
        assert_eq!(
            rows("xxx1,2\nsomething xxx3,4\nnothing\n", format),
            texts(&[&[Some("1"), Some("2")], &[Some("3"), Some("4")]])
        );
    }
}
