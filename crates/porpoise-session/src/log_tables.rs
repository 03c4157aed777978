//! `mysql.general_log` and `mysql.slow_log`: the logs as tables, with `log_output=TABLE`.
//!
//! MySQL keeps them with its engine CSV, outside transactions: a line is there as soon as it is
//! written, for whoever reads, and no lock is waited for. Here each is a file of the data folder to
//! which entries are appended and which a query reads from its beginning; in memory, bytes.
//!
//! ```text
//! "1764161761000000","root[root] @ localhost []","8","1","Query","SELECT \"a\""⏎
//! ```
//!
//! A field stands in quotes; a quote, a backslash and the end of a line in it have a backslash
//! before them. Moments are microseconds since 1970 in UTC, durations microseconds. What a crash
//! has left of an entry ends without its line's end: no reader sees it, and the next entry begins
//! on a line of its own.
//!
//! Source: MySQL 8.4 Reference Manual, 7.4.1 "Selecting General Query Log and Slow Query Log Output
//! Destinations".

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// The two tables.
#[derive(Debug)]
pub struct LogTables {
    /// `mysql.general_log`.
    pub general: LogTable,
    /// `mysql.slow_log`.
    pub slow: LogTable,
}

impl LogTables {
    /// The tables of the database in a folder, or of one in memory.
    pub fn new(folder: Option<&Path>) -> LogTables {
        LogTables {
            general: LogTable::new(folder, "general_log.csv"),
            slow: LogTable::new(folder, "slow_log.csv"),
        }
    }

    /// The table of this name in the schema `mysql`, if it is one of them.
    pub fn named(&self, schema: &str, table: &str) -> Option<&LogTable> {
        if !schema.eq_ignore_ascii_case("mysql") {
            return None;
        }
        match () {
            () if table.eq_ignore_ascii_case("general_log") => Some(&self.general),
            () if table.eq_ignore_ascii_case("slow_log") => Some(&self.slow),
            () => None,
        }
    }
}

/// One of them.
#[derive(Debug)]
pub struct LogTable {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
enum Kept {
    /// The file, once it was written to.
    Folder(PathBuf, Option<File>),
    Memory(Vec<u8>),
}

impl LogTable {
    fn new(folder: Option<&Path>, file: &str) -> LogTable {
        let kept = match folder {
            Some(folder) => Kept::Folder(folder.join(file), None),
            None => Kept::Memory(Vec::new()),
        };
        LogTable {
            kept: Mutex::new(kept),
        }
    }

    /// Appends an entry.
    pub fn append(&self, fields: &[&[u8]]) -> io::Result<()> {
        let mut line = Vec::new();
        for (place, field) in fields.iter().enumerate() {
            line.extend_from_slice(if place == 0 { b"\"" } else { b",\"" });
            for &byte in *field {
                match byte {
                    b'\n' => line.extend_from_slice(b"\\n"),
                    b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
                    byte => line.push(byte),
                }
            }
            line.push(b'"');
        }
        line.push(b'\n');
        match &mut *self.kept.lock() {
            Kept::Memory(bytes) => bytes.extend_from_slice(&line),
            Kept::Folder(path, open) => {
                let file = match open {
                    Some(file) => file,
                    None => open.insert(open_at_line_start(path)?),
                };
                file.write_all(&line)?;
            }
        }
        Ok(())
    }

    /// The entries, the oldest first. Those that are appended after this call aren't among them.
    pub fn entries(&self) -> io::Result<Entries> {
        let lines: Box<dyn BufRead> = match &*self.kept.lock() {
            Kept::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
            Kept::Folder(path, _) => match File::open(path) {
                Ok(file) => {
                    let length = file.metadata()?.len();
                    Box::new(BufReader::new(file.take(length)))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Box::new(io::empty()),
                Err(error) => return Err(error),
            },
        };
        Ok(Entries { lines })
    }

    /// Takes away the `count` oldest of the entries that have `fields` fields, and what lies between
    /// them. Those that are appended meanwhile stay.
    ///
    /// # Errors
    /// If the log can't be read, or written anew; then it is as it was.
    pub fn drop_oldest(&self, count: u64, fields: usize) -> io::Result<()> {
        match &mut *self.kept.lock() {
            Kept::Memory(bytes) => {
                let end = end_of(Cursor::new(&*bytes), count, fields)?;
                bytes.drain(..end as usize);
            }
            Kept::Folder(path, open) => {
                let mut file = match File::open(&*path) {
                    Ok(file) => file,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    Err(error) => return Err(error),
                };
                let end = end_of(BufReader::new(&file), count, fields)?;
                file.seek(SeekFrom::Start(end))?;
                let rest = path.with_extension("csv.new");
                io::copy(&mut file, &mut File::create(&rest)?)?;
                std::fs::rename(&rest, &*path)?;
                *open = None;
            }
        }
        Ok(())
    }

    /// TRUNCATE TABLE.
    pub fn clear(&self) -> io::Result<()> {
        match &mut *self.kept.lock() {
            Kept::Memory(bytes) => bytes.clear(),
            Kept::Folder(path, open) => {
                *open = None;
                match OpenOptions::new().write(true).open(path) {
                    Ok(file) => file.set_len(0)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// The end of the last of so many entries that have `fields` fields, in bytes.
fn end_of(mut lines: impl BufRead, mut count: u64, fields: usize) -> io::Result<u64> {
    let (mut end, mut line) = (0, Vec::new());
    while count > 0 {
        line.clear();
        end += lines.read_until(b'\n', &mut line)? as u64;
        if line.pop() != Some(b'\n') {
            break;
        }
        count -= u64::from(fields_of(&line).is_some_and(|found| found.len() == fields));
    }
    Ok(end)
}

/// A log's entries: the fields of each.
pub struct Entries {
    lines: Box<dyn BufRead>,
}

impl Iterator for Entries {
    type Item = io::Result<Vec<Vec<u8>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if let Err(error) = self.lines.read_until(b'\n', &mut line) {
                return Some(Err(error));
            }
            if line.pop() != Some(b'\n') {
                return None;
            }
            if let Some(fields) = fields_of(&line) {
                return Some(Ok(fields));
            }
        }
    }
}

/// Opens a log to append to it; an entry that a crash has cut off gets its line's end.
fn open_at_line_start(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).open(path)?;
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// The fields of a line; `None` if it isn't whole.
fn fields_of(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut fields = Vec::new();
    let mut rest = line.strip_prefix(b"\"")?;
    loop {
        let mut field = Vec::new();
        loop {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            match byte {
                b'"' => break,
                b'\\' => {
                    let (&escaped, after) = rest.split_first()?;
                    rest = after;
                    field.push(if escaped == b'n' { b'\n' } else { escaped });
                }
                byte => field.push(byte),
            }
        }
        fields.push(field);
        if rest.is_empty() {
            return Some(fields);
        }
        rest = rest.strip_prefix(b",\"")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(table: &LogTable) -> Vec<Vec<Vec<u8>>> {
        table.entries().unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        for place in [None, Some(folder.path())] {
            let tables = LogTables::new(place);
            let table = tables.named("MYSQL", "General_log").unwrap();
            assert!(entries(table).is_empty());
            let fields: [&[u8]; 4] = [b"", b"a \"b\"\n\\n,\"", b"\0\xff", b"\\"];
            table.append(&fields).unwrap();
            table.append(&[b"2"]).unwrap();
            let first = fields.map(<[u8]>::to_vec).to_vec();
            assert_eq!(entries(table), [first, vec![b"2".to_vec()]]);
            assert!(entries(&tables.slow).is_empty());
            table.clear().unwrap();
            assert!(entries(table).is_empty());
            table.append(&[b"3"]).unwrap();
            assert_eq!(entries(table), [[b"3".to_vec()]]);
        }
    }

    #[test]
    fn the_oldest_entries_are_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        for place in [None, Some(folder.path())] {
            let table = LogTables::new(place).general;
            table.drop_oldest(3, 2).unwrap();
            for fields in [
                &[b"1".as_slice(), b"a"][..],
                &[b"?"],
                &[b"2", b"b\n"],
                &[b"3", b"c"],
            ] {
                table.append(fields).unwrap();
            }
            table.drop_oldest(2, 2).unwrap();
            table.append(&[b"4", b"d"]).unwrap();
            let left = entries(&table);
            assert_eq!(
                left,
                [[b"3", b"c"], [b"4", b"d"]]
                    .map(|entry| entry.map(|field| field.to_vec()).to_vec())
            );
            table.drop_oldest(9, 2).unwrap();
            assert!(entries(&table).is_empty());
        }
    }

    #[test]
    fn an_entry_that_a_crash_cut_off_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slow_log.csv");
        std::fs::write(&path, "\"1\",\"a\"\n\"2\",\"half").unwrap();
        let table = LogTables::new(Some(folder.path())).slow;
        let first = vec![b"1".to_vec(), b"a".to_vec()];
        assert_eq!(entries(&table), std::slice::from_ref(&first));
        table.append(&[b"3"]).unwrap();
        assert_eq!(entries(&table), [first, vec![b"3".to_vec()]]);
    }

    #[test]
    fn other_tables_are_no_logs() {
        let tables = LogTables::new(None);
        assert!(tables.named("mysql", "user").is_none());
        assert!(tables.named("test", "general_log").is_none());
    }
}
