//! SELECT … INTO OUTFILE and INTO DUMPFILE: rows into a file of the server.
//!
//! MySQL 8.4 manual, 15.2.13.1 (SELECT … INTO Statement) and 15.2.9 (LOAD DATA Statement) for the
//! format.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use porpoise_core::error::{Error, Level, Result};
use porpoise_core::variables::SessionVars;
use porpoise_expr::EvalContext;
use porpoise_planner::file_format::FileFormat;
use porpoise_planner::plan::{OutputFile, Query};
use porpoise_session::server_files;
use porpoise_types::{Charset, DataType, Value, convert};

use crate::eval::Evaluate;
use crate::{Exec, operator};

const BUFFER_BYTES: usize = 128 << 10;

/// Writes a query's rows to its file; returns how many there were. A statement that fails leaves no
/// file behind.
pub(crate) fn write_rows(exec: &mut Exec<'_>, query: &Query, target: &OutputFile) -> Result<u64> {
    let mut output = Output::create(exec, query, target)?;
    let written = output.write_all(exec, query);
    let finished = written.and_then(|rows| output.finish().map(|()| rows));
    if finished.is_err() {
        // The statement's own error tells more than one about the file that it began.
        let _ = std::fs::remove_file(&output.path);
    }
    finished
}

struct Output {
    writer: BufWriter<File>,
    path: PathBuf,
    /// `None` for DUMPFILE.
    fields: Option<FieldWriter>,
    /// One row's bytes.
    line: Vec<u8>,
}

impl Output {
    fn create(exec: &mut Exec<'_>, query: &Query, target: &OutputFile) -> Result<Output> {
        let (file, path) = server_files::create(exec.session, exec.engine, &target.path)?;
        let fields = target
            .format
            .as_ref()
            .map(|format| FieldWriter::new(format, target.charset, query, exec.session));
        Ok(Output {
            writer: BufWriter::with_capacity(BUFFER_BYTES, file),
            path,
            fields,
            line: Vec::new(),
        })
    }

    fn write_all(&mut self, exec: &mut Exec<'_>, query: &Query) -> Result<u64> {
        let mut input = operator::build(&query.node);
        input.open(exec)?;
        let mut rows = 0;
        while input.next(exec)? {
            exec.check_interrupt()?;
            rows += 1;
            if self.fields.is_none() && rows > 1 {
                return Err(Error::too_many_rows());
            }
            self.line.clear();
            for (position, expr) in query.output.iter().enumerate() {
                let value = expr.eval(exec)?;
                match &self.fields {
                    Some(fields) => fields.write(position, &value, &expr.ty, &mut self.line),
                    None if value.is_null() => self.line.push(0),
                    None => self.line.extend(encoded(&value, &expr.ty, None)),
                }
            }
            if let Some(fields) = &self.fields {
                fields.end_line(&mut self.line);
            }
            let written = self.writer.write_all(&self.line);
            written.map_err(|error| server_files::unwritable(&self.path, &error))?;
        }
        Ok(rows)
    }

    fn finish(&mut self) -> Result<()> {
        let flushed = self.writer.flush();
        flushed.map_err(|error| server_files::unwritable(&self.path, &error))
    }
}

/// A value's text in the character set of its column, or in another.
fn encoded(value: &Value, ty: &DataType, charset: Option<Charset>) -> Vec<u8> {
    let text = convert::to_bytes(value, ty);
    if !ty.is_string() || ty.is_binary_string() {
        return text;
    }
    let charset = charset.unwrap_or_else(|| ty.collation().charset());
    let mut bytes = Vec::with_capacity(text.len());
    charset.encode(&String::from_utf8_lossy(&text), &mut bytes);
    bytes
}

/// Writes fields as LOAD DATA reads them.
struct FieldWriter {
    format: FileFormat,
    charset: Option<Charset>,
    /// The first byte of the fields' separator, where an escape before it helps.
    separator: Option<u8>,
    last_position: usize,
    /// Fields of fixed size: how many bytes each has.
    widths: Option<Vec<usize>>,
}

/// Bytes that mean something else behind an escape: an escaped one wouldn't be read as itself.
const ESCAPE_LETTERS: &[u8] = b"ntrb0ZN";

/// Bytes that numbers are written with.
const NUMBER_BYTES: &[u8] = b".0123456789e+-";

impl FieldWriter {
    fn new(
        format: &FileFormat,
        charset: Option<Charset>,
        query: &Query,
        session: &mut SessionVars,
    ) -> FieldWriter {
        let is_text = |ty: &DataType| is_written_as_text(ty);
        let has_texts = query.output.iter().any(|expr| is_text(&expr.ty));
        let has_numbers = query.output.iter().any(|expr| !is_text(&expr.ty));
        let first = format.fields_terminated.first().copied();
        let is_ambiguous = first.is_some_and(|first| {
            let in_texts = has_texts && format.enclosed.is_none();
            let encloses_numbers = format.enclosed.is_some() && !format.encloses_strings_only;
            (in_texts && ESCAPE_LETTERS.contains(&first))
                || (has_numbers && !encloses_numbers && NUMBER_BYTES.contains(&first))
        });
        let mut warn = |error: Error| session.warn(Level::Warning, error.into_condition());
        if format.has_non_ascii() {
            warn(Error::non_ascii_separator());
        }
        if is_ambiguous {
            warn(Error::ambiguous_field_terminator());
        }
        FieldWriter {
            format: format.clone(),
            charset,
            separator: first.filter(|first| first.is_ascii() && !is_ambiguous),
            last_position: query.output.len().saturating_sub(1),
            widths: widths_of(format, query),
        }
    }

    fn write(&self, position: usize, value: &Value, ty: &DataType, line: &mut Vec<u8>) {
        let format = &self.format;
        if position == 0 {
            line.extend_from_slice(&format.lines_starting);
        }
        if let Some(widths) = &self.widths {
            let bytes = match value.is_null() {
                true => Vec::new(),
                false => encoded(value, ty, self.charset),
            };
            let (width, held) = (widths[position], bytes.len().min(widths[position]));
            self.escape(&bytes[..held], ty, None, line);
            line.resize(line.len() + width - held, b' ');
            return;
        }
        if value.is_null() {
            match format.escaped {
                Some(escape) => line.extend_from_slice(&[escape, b'N']),
                None => line.extend_from_slice(b"NULL"),
            }
        } else {
            let quote = format
                .enclosed
                .filter(|_| !format.encloses_strings_only || is_written_as_text(ty));
            line.extend(quote);
            self.escape(&encoded(value, ty, self.charset), ty, quote, line);
            line.extend(quote);
        }
        if position < self.last_position {
            line.extend_from_slice(&format.fields_terminated);
        }
    }

    fn end_line(&self, line: &mut Vec<u8>) {
        let end = match self.format.lines_terminated.as_slice() {
            // Lines that nothing ends are told apart as fields are.
            [] => &self.format.fields_terminated,
            end => end,
        };
        line.extend_from_slice(end);
    }

    /// Writes a field's bytes, with an escape before each that would end it or begin an escape. A
    /// byte within a character of several never does.
    fn escape(&self, bytes: &[u8], ty: &DataType, quote: Option<u8>, line: &mut Vec<u8>) {
        let is_wide = ty.is_string() && !ty.is_binary_string() && {
            let charset = self.charset.unwrap_or_else(|| ty.collation().charset());
            charset.min_len() > 1
        };
        let Some(escape) = self.format.escaped.filter(|_| !is_wide) else {
            line.extend_from_slice(bytes);
            return;
        };
        let field_end = quote.or(self.separator);
        let line_end = self.format.lines_terminated.first().copied();
        for &byte in bytes {
            if byte == 0 {
                line.extend_from_slice(&[escape, b'0']);
                continue;
            }
            if Some(byte) == quote && ESCAPE_LETTERS.contains(&byte) {
                // Doubled, it is read as itself.
                line.push(byte);
            } else if byte == escape || Some(byte) == field_end || Some(byte) == line_end {
                line.push(escape);
            }
            line.push(byte);
        }
    }
}

/// How many bytes each field has where nothing ends or encloses fields: as many as a value of its
/// type can take. Where one can take too many, none is of fixed size.
fn widths_of(format: &FileFormat, query: &Query) -> Option<Vec<usize>> {
    const WIDTH_MAX: u64 = (16 << 20) - 1;
    let width = |ty: &DataType| {
        let width = ty.max_octets(ty.collation().charset());
        (width <= WIDTH_MAX).then_some(width as usize)
    };
    let widths = query.output.iter().map(|expr| width(&expr.ty));
    widths
        .collect::<Option<Vec<usize>>>()
        .filter(|_| format.has_fixed_fields())
}

/// Whether OPTIONALLY ENCLOSED BY encloses values of a type: all but numbers.
fn is_written_as_text(ty: &DataType) -> bool {
    !matches!(
        ty,
        DataType::Int { .. }
            | DataType::Year
            | DataType::Decimal { .. }
            | DataType::Float { .. }
            | DataType::Double { .. }
            | DataType::Null
    )
}
