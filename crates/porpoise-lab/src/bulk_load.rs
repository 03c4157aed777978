//! Bulk load: rows a second into a table with a primary key and an index, by INSERT of many rows or
//! by LOAD DATA LOCAL INFILE.
//!
//! A transaction is one statement, of as many rows as the plan says. Clients take their ids from a
//! common sequence, block by block, so that each adds to the table's end, as loaders do. Texts come
//! from a pool that each client has made beforehand: what is measured is the server.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use porpoise_client::flags::Capabilities;
use porpoise_client::{Connection, Error, FileSource, Options};

use crate::scenario::Scenario;
use crate::table::{c_value, pad_value};
use crate::workload::{Course, Filled};
use crate::{Measured, Way};

/// Texts of a client's pool.
const POOL: usize = 1000;
/// Of a file, what is sent at a time.
const PIECE_BYTES: usize = 64 << 10;

const DEFINITION: &str = "CREATE TABLE bulk (
  id BIGINT NOT NULL,
  k INT NOT NULL,
  c CHAR(120) NOT NULL,
  pad CHAR(60) NOT NULL,
  PRIMARY KEY (id),
  KEY k (k)
)";
const LOAD_DATA: &str = "LOAD DATA LOCAL INFILE 'rows' INTO TABLE bulk FIELDS TERMINATED BY ','";

/// The statement that loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadBy {
    Insert,
    LoadData,
}

/// A bulk load.
#[derive(Debug)]
pub(crate) struct BulkLoad {
    by: LoadBy,
    /// Of a statement.
    rows: u64,
    database: String,
    /// The id of the next row.
    next: Arc<AtomicU64>,
}

impl BulkLoad {
    pub(crate) fn new(by: LoadBy, rows: u64, database: String) -> Self {
        Self {
            by,
            rows,
            database,
            next: Arc::new(AtomicU64::new(1)),
        }
    }
}

impl Scenario for BulkLoad {
    fn database(&self) -> Option<&str> {
        Some(&self.database)
    }

    fn load(
        &self,
        connection: &mut Connection,
        _seed: u64,
        _show: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        connection.run("DROP TABLE IF EXISTS bulk")?;
        connection.run(DEFINITION)?;
        self.next.store(1, Ordering::Relaxed);
        Ok(())
    }

    fn loads_for_each_run(&self) -> bool {
        true
    }

    fn statements(&self) -> Vec<String> {
        vec![LOAD_DATA.to_owned()]
    }

    fn to_prepare(&self) -> Vec<usize> {
        Vec::new()
    }

    fn course(self: Arc<Self>, client: usize) -> Box<dyn Course> {
        let pool = Pool::make(&mut Rng::with_seed(client as u64));
        Box::new(Loading {
            load: self,
            pool: Some(pool),
            is_sent: false,
            text: String::new(),
        })
    }

    /// One that is under way when measuring begins doesn't count.
    fn transactions_min(&self) -> u64 {
        2
    }

    fn has_no_way(&self, way: Way) -> Option<&'static str> {
        (self.by == LoadBy::LoadData && way == Way::Embedded)
            .then_some("LOAD DATA LOCAL asks a client for the file, and there is none")
    }

    fn adapt(&self, options: &mut Options) {
        if self.by == LoadBy::LoadData {
            options.capabilities |= Capabilities::LOCAL_FILES;
        }
    }

    fn figures(&self, measured: &Measured) -> Vec<(String, f64)> {
        let rows = (measured.transactions * self.rows) as f64;
        vec![("rows a second".to_owned(), rows / measured.seconds)]
    }
}

/// Texts that rows are made of.
struct Pool(Vec<(String, String)>);

impl Pool {
    fn make(random: &mut Rng) -> Self {
        let texts = |_| (c_value(random), pad_value(random));
        Self((0..POOL).map(texts).collect())
    }

    /// The columns behind the id; `quote` is put around texts.
    fn write_row(&self, id: u64, quote: &str, to: &mut String) {
        let number = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let (c, pad) = &self.0[number as usize % self.0.len()];
        write!(to, "{id},{number},{quote}{c}{quote},{quote}{pad}{quote}")
            .expect("a String takes every write");
    }
}

struct Loading {
    load: Arc<BulkLoad>,
    /// That of a client that sends files has gone to these.
    pool: Option<Pool>,
    is_sent: bool,
    text: String,
}

impl Course for Loading {
    fn begin(&mut self, _: &mut Rng) -> Duration {
        self.is_sent = false;
        Duration::ZERO
    }

    fn next(&mut self, _: &mut Rng, _: &mut Vec<Filled>) -> Option<usize> {
        if self.is_sent {
            return None;
        }
        self.is_sent = true;
        if let Some(pool) = &self.pool {
            self.text.clear();
            self.text.push_str("INSERT INTO bulk VALUES ");
            let first = self.load.next.fetch_add(self.load.rows, Ordering::Relaxed);
            for id in first..first + self.load.rows {
                self.text.push_str(if id == first { "(" } else { ",(" });
                pool.write_row(id, "'", &mut self.text);
                self.text.push(')');
            }
        }
        Some(0)
    }

    fn text(&self) -> Option<&str> {
        (self.load.by == LoadBy::Insert).then_some(&self.text)
    }

    fn files(&mut self) -> Option<FileSource> {
        if self.load.by == LoadBy::Insert {
            return None;
        }
        let pool = self.pool.take()?;
        let (next, rows) = (self.load.next.clone(), self.load.rows);
        let mut piece = String::new();
        Some(Box::new(move |_name, send| {
            let first = next.fetch_add(rows, Ordering::Relaxed);
            for id in first..first + rows {
                pool.write_row(id, "", &mut piece);
                piece.push('\n');
                if piece.len() >= PIECE_BYTES {
                    send(piece.as_bytes());
                    piece.clear();
                }
            }
            send(piece.as_bytes());
            piece.clear();
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_rows_with_ids_that_follow_each_other() {
        let load = Arc::new(BulkLoad::new(LoadBy::Insert, 3, "bulk".into()));
        let mut course = load.course(0);
        let random = &mut Rng::with_seed(1);
        for first in [1, 4] {
            course.begin(random);
            assert_eq!(course.next(random, &mut Vec::new()), Some(0));
            let text = course.text().unwrap();
            assert!(text.starts_with(&format!("INSERT INTO bulk VALUES ({first},")));
            assert_eq!(text.matches('(').count(), 4 - 1);
            assert!(text.contains(&format!(",({},", first + 2)));
            assert_eq!(course.next(random, &mut Vec::new()), None);
        }
    }

    #[test]
    fn files_have_their_rows_as_lines() {
        let load = Arc::new(BulkLoad::new(LoadBy::LoadData, 1000, "bulk".into()));
        let mut course = load.course(0);
        let mut file = course.files().unwrap();
        for first in [1, 1001] {
            let mut content = Vec::new();
            file(b"rows", &mut |piece| content.extend_from_slice(piece)).unwrap();
            let text = String::from_utf8(content).unwrap();
            assert_eq!(text.lines().count(), 1000);
            assert!(text.starts_with(&format!("{first},")));
            assert!(text.lines().all(|line| line.split(',').count() == 4));
        }
    }
}
