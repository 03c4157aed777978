//! The format of a file of rows: FIELDS and LINES of LOAD DATA and of SELECT … INTO OUTFILE (MySQL
//! 8.4 manual, 15.2.9).

use porpoise_core::error::{Error, Result};
use porpoise_sql::ast;

/// How a file says where fields and lines end.
#[derive(Clone, Debug)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY; never empty in a file that is read.
    pub fields_terminated: Vec<u8>,
    /// FIELDS ENCLOSED BY; `None`: fields are not quoted.
    pub enclosed: Option<u8>,
    /// OPTIONALLY ENCLOSED BY: only strings and what is written like them are quoted.
    pub encloses_strings_only: bool,
    /// FIELDS ESCAPED BY; `None`: no escapes.
    pub escaped: Option<u8>,
    /// LINES STARTING BY; what comes before it in a line is skipped.
    pub lines_starting: Vec<u8>,
    /// LINES TERMINATED BY; never empty in a file that is read.
    pub lines_terminated: Vec<u8>,
}

impl FileFormat {
    /// The format of a file that LOAD DATA reads, with MySQL's defaults for what the statement
    /// doesn't say. Errors: 1083 for a quote or escape of more than one character, 1235 for fields
    /// of fixed size.
    pub fn of_input(written: &ast::FileFormat) -> Result<FileFormat> {
        let format = FileFormat::of(written)?;
        if format.fields_terminated.is_empty() || format.lines_terminated.is_empty() {
            return Err(Error::not_supported_yet(
                "LOAD DATA of fields of fixed size",
            ));
        }
        Ok(format)
    }

    /// The format of a file that SELECT … INTO OUTFILE writes. Errors: as
    /// [`of_input`](FileFormat::of_input) has them.
    pub fn of_output(written: &ast::FileFormat) -> Result<FileFormat> {
        let format = FileFormat::of(written)?;
        if format.fields_terminated.is_empty() && format.enclosed.is_none() {
            return Err(Error::not_supported_yet(
                "SELECT INTO OUTFILE with fields of fixed size",
            ));
        }
        Ok(format)
    }

    fn of(written: &ast::FileFormat) -> Result<FileFormat> {
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
