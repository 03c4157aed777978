//! The rows of the bulk experiment: the same for each server, and in a file for LOAD DATA.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use porpoise_client::{Connection, FileSource};

use super::{BulkPlan, ClientError};
use crate::Error;

/// Of the file, what is sent at a time.
const PIECE_BYTES: usize = 64 << 10;

/// What the rows are drawn from, from the first one on.
pub(super) fn random() -> Rng {
    Rng::with_seed(1)
}

/// What a table with all rows adds up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expected {
    rows: u64,
    numbers: u64,
    text_bytes: u64,
}

impl Expected {
    /// The same once each `k` is one more.
    pub(super) fn with_all_counted_up(&self) -> Self {
        Self {
            numbers: self.numbers + self.rows,
            ..self.clone()
        }
    }

    /// What is different in a table, if anything is.
    pub(super) fn difference(
        &self,
        connection: &mut Connection,
        table: &str,
    ) -> Result<Option<String>, ClientError> {
        let sums = connection.rows(format!(
            "SELECT COUNT(*), SUM(k), SUM(LENGTH(c) + LENGTH(pad)) FROM {table}"
        ))?;
        let expected = [self.rows, self.numbers, self.text_bytes].map(|sum| sum.to_string());
        let found = sums.to_text().into_iter().next().unwrap_or_default();
        Ok((found != expected).then(|| {
            format!(
                "rows of {table}, sum of k and bytes of texts are {}, not {}",
                found.join(", "),
                expected.join(", ")
            )
        }))
    }
}

/// A file with a line for each row.
pub(super) struct RowsFile {
    path: PathBuf,
    pub(super) expected: Expected,
}

impl RowsFile {
    /// Writes it; nothing, if the plan is stopped before it is complete.
    pub(super) fn write(plan: &BulkPlan, path: &Path) -> Result<Option<Self>, Error> {
        let (table, mut random) = (plan.table(), random());
        let mut expected = Expected::default();
        let mut file = BufWriter::new(File::create(path)?);
        for id in 1..=table.rows {
            if plan.is_stopped() {
                return Ok(None);
            }
            let (k, c, pad) = table.random_row(&mut random);
            writeln!(file, "{id},{k},{c},{pad}")?;
            expected.rows += 1;
            expected.numbers += k;
            expected.text_bytes += (c.len() + pad.len()) as u64;
        }
        file.flush()?;
        Ok(Some(Self {
            path: path.to_owned(),
            expected,
        }))
    }

    /// Sends it to a server that asks.
    pub(super) fn source(&self) -> FileSource {
        let path = self.path.clone();
        Box::new(move |_name, send| {
            let mut file = File::open(&path).map_err(ClientError::Io)?;
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                match file.read(&mut piece).map_err(ClientError::Io)? {
                    0 => return Ok(()),
                    bytes => send(&piece[..bytes]),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_rows_of_the_inserts() {
        let folder = tempfile::tempdir().unwrap();
        let plan = BulkPlan {
            rows: 30,
            ..BulkPlan::default()
        };
        let file = RowsFile::write(&plan, &folder.path().join("rows")).unwrap();
        let file = file.unwrap();
        let mut content = Vec::new();
        file.source()(b"rows", &mut |piece| content.extend_from_slice(piece)).unwrap();
        let content = String::from_utf8(content).unwrap();
        let mut sql = String::new();
        plan.table().write_insert(30, &mut random(), &mut sql);
        let mut numbers = 0;
        for (line, id) in content.lines().zip(1..) {
            let values: Vec<&str> = line.split(',').collect();
            let [number, k, c, pad] = values[..] else {
                panic!("{line}");
            };
            assert_eq!(number, id.to_string());
            assert!(sql.contains(&format!("({k},'{c}','{pad}')")), "{line}");
            numbers += k.parse::<u64>().unwrap();
        }
        let expected = Expected {
            rows: 30,
            numbers,
            text_bytes: 30 * (119 + 59),
        };
        assert_eq!(file.expected, expected);
        assert_eq!(file.expected.with_all_counted_up().numbers, numbers + 30);

        plan.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let stopped = RowsFile::write(&plan, &folder.path().join("other")).unwrap();
        assert!(stopped.is_none());
    }
}
