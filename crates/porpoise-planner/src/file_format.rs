//! The format of a file of rows: FIELDS and LINES of LOAD DATA (MySQL 8.4 manual, 15.2.9).

use porpoise_core::error::{Error, Result};
use porpoise_sql::ast;

/// How a file says where fields and lines end.
#[derive(Clone, Debug)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY; never empty.
    pub fields_terminated: Vec<u8>,
    /// FIELDS ENCLOSED BY; `None`: fields are not quoted.
    pub enclosed: Option<u8>,
    /// FIELDS ESCAPED BY; `None`: no escapes.
    pub escaped: Option<u8>,
    /// LINES STARTING BY; what comes before it in a line is skipped.
    pub lines_starting: Vec<u8>,
    /// LINES TERMINATED BY; never empty.
    pub lines_terminated: Vec<u8>,
}

impl FileFormat {
    /// The format that a statement asks for, with MySQL's defaults for what it doesn't say. Errors:
    /// 1083 for a quote or escape of more than one character, 1235 for fields of fixed size.
    pub fn of(written: &ast::FileFormat) -> Result<FileFormat> {
        let or =
            |part: &Option<Box<[u8]>>, default: &[u8]| part.as_deref().unwrap_or(default).to_vec();
        // Error 1083: a separator that must be one character is longer.
        let single = |part: &Option<Box<[u8]>>, default: &[u8]| match or(part, default).as_slice() {
            [] => Ok(None),
            [byte] => Ok(Some(*byte)),
            _ => Err(Error::wrong_field_terminators()),
        };
        let format = FileFormat {
            fields_terminated: or(&written.fields_terminated, b"\t"),
            enclosed: single(&written.fields_enclosed, b"")?,
            escaped: single(&written.fields_escaped, b"\\")?,
            lines_starting: or(&written.lines_starting, b""),
            lines_terminated: or(&written.lines_terminated, b"\n"),
        };
        if format.fields_terminated.is_empty() || format.lines_terminated.is_empty() {
            return Err(Error::not_supported_yet(
                "LOAD DATA of fields of fixed size",
            ));
        }
        Ok(format)
    }
}
