//! The format of a file of rows: FIELDS and LINES of LOAD DATA and of SELECT … INTO OUTFILE (MySQL
//! 8.4 manual, 15.2.9).

use porpoise_core::error::{Error, Result};
use porpoise_sql::ast;

/// How a file says where fields and lines end.
#[derive(Clone, Debug)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY.
    pub fields_terminated: Vec<u8>,
    /// FIELDS ENCLOSED BY; `None`: fields are not quoted.
    pub enclosed: Option<u8>,
    /// OPTIONALLY ENCLOSED BY: only strings and what is written like them are quoted.
    pub encloses_strings_only: bool,
    /// FIELDS ESCAPED BY; `None`: no escapes.
    pub escaped: Option<u8>,
    /// LINES STARTING BY; what comes before it in a line is skipped.
    pub lines_starting: Vec<u8>,
    /// LINES TERMINATED BY.
    pub lines_terminated: Vec<u8>,
}

impl FileFormat {
    /// The format that a statement says, with MySQL's defaults for what it doesn't say. Errors: 1083
    /// for a quote or escape of more than one character.
    pub fn of(written: &ast::FileFormat) -> Result<FileFormat> {
        let or =
            |part: &Option<Box<[u8]>>, default: &[u8]| part.as_deref().unwrap_or(default).to_vec();
        // Error 1083: a separator that must be one character is longer.
        let single = |part: &Option<Box<[u8]>>, default: &[u8]| match or(part, default).as_slice() {
            [] => Ok(None),
            [byte] => Ok(Some(*byte)),
            _ => Err(Error::wrong_field_terminators()),
        };
        Ok(FileFormat {
            fields_terminated: or(&written.fields_terminated, b"\t"),
            enclosed: single(&written.fields_enclosed, b"")?,
            encloses_strings_only: written.optionally_enclosed,
            escaped: single(&written.fields_escaped, b"\\")?,
            lines_starting: or(&written.lines_starting, b""),
            lines_terminated: or(&written.lines_terminated, b"\n"),
        })
    }

    /// Whether fields are told apart by their length: nothing ends or encloses them.
    pub fn has_fixed_fields(&self) -> bool {
        self.fields_terminated.is_empty() && self.enclosed.is_none()
    }

    /// Whether a separator has other characters than ASCII's.
    pub fn has_non_ascii(&self) -> bool {
        let parts = [
            &self.fields_terminated,
            &self.lines_starting,
            &self.lines_terminated,
        ];
        let singles = self.enclosed.iter().chain(&self.escaped);
        !parts.iter().all(|part| part.is_ascii()) || !singles.into_iter().all(u8::is_ascii)
    }
}
