//! The table of the OLTP workloads, as sysbench lays it out, and what is in it.
//!
//! ```text
//! sbtest1   id, 1 to rows │ k, a random id │ c, ten groups of eleven digits │ pad, five groups
//! ```

use fastrand::Rng;
use porpoise_client::{Connection, Error};
use std::fmt::Write;

/// Groups of digits in the columns `c` and `pad`.
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;
const GROUP_DIGITS: usize = 11;

/// Rows a statement while loading: some 200 bytes each.
pub(crate) const LOAD_ROWS: u64 = 1000;

/// One table of the OLTP workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its number, from 1: the table is `sbtest1`.
    pub number: u32,
    /// Its rows.
    pub rows: u64,
}

impl Table {
    /// Its name.
    pub fn name(&self) -> String {
        format!("sbtest{}", self.number)
    }

    /// The statement that makes it.
    pub fn create_statement(&self) -> String {
        format!(
            "CREATE TABLE sbtest{number} (
  id INT NOT NULL AUTO_INCREMENT,
  k INT NOT NULL DEFAULT 0,
  c CHAR(120) NOT NULL DEFAULT '',
  pad CHAR(60) NOT NULL DEFAULT '',
  PRIMARY KEY (id),
  KEY k_{number} (k)
)",
            number = self.number
        )
    }

    /// Drops it if it is there, makes it and fills it; `loaded` is told how many rows are in.
    pub fn load(
        &self,
        connection: &mut Connection,
        random: &mut Rng,
        mut loaded: impl FnMut(u64),
    ) -> Result<(), Error> {
        let name = self.name();
        connection.run(format!("DROP TABLE IF EXISTS {name}"))?;
        connection.run(self.create_statement())?;
        let mut sql = String::new();
        let mut done = 0;
        while done < self.rows {
            let rows = LOAD_ROWS.min(self.rows - done);
            self.write_insert(rows, random, &mut sql);
            connection.run(&sql)?;
            done += rows;
            loaded(done);
        }
        Ok(())
    }

    /// Makes `sql` the statement that inserts so many rows, which are random.
    pub(crate) fn write_insert(&self, rows: u64, random: &mut Rng, sql: &mut String) {
        sql.clear();
        write!(sql, "INSERT INTO {} (k, c, pad) VALUES ", self.name())
            .expect("a String takes every write");
        for row in 0..rows {
            let separator = if row == 0 { "" } else { "," };
            let (k, c, pad) = self.random_row(random);
            write!(sql, "{separator}({k},'{c}','{pad}')").expect("a String takes every write");
        }
    }

    /// What a row has beside its id: `k`, `c` and `pad`.
    pub(crate) fn random_row(&self, random: &mut Rng) -> (u64, String, String) {
        (self.random_id(random), c_value(random), pad_value(random))
    }

    /// Any of its ids, each as likely as the other.
    pub fn random_id(&self, random: &mut Rng) -> u64 {
        random.u64(1..=self.rows.max(1))
    }
}

/// A value of the column `c`: 119 characters.
pub fn c_value(random: &mut Rng) -> String {
    digit_groups(random, C_GROUPS)
}

/// A value of the column `pad`: 59 characters.
pub fn pad_value(random: &mut Rng) -> String {
    digit_groups(random, PAD_GROUPS)
}

/// Groups of random digits with dashes between them.
fn digit_groups(random: &mut Rng, groups: usize) -> String {
    let mut text = String::with_capacity(groups * (GROUP_DIGITS + 1));
    for group in 0..groups {
        if group > 0 {
            text.push('-');
        }
        let number = random.u64(0..10u64.pow(GROUP_DIGITS as u32));
        write!(text, "{number:0width$}", width = GROUP_DIGITS).expect("a String takes every write");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_hold_groups_of_eleven_digits() {
        let mut random = Rng::with_seed(1);
        for (text, groups) in [(c_value(&mut random), 10), (pad_value(&mut random), 5)] {
            let parts: Vec<_> = text.split('-').collect();
            assert_eq!(parts.len(), groups);
            assert!(
                parts
                    .iter()
                    .all(|part| part.len() == 11 && part.bytes().all(|byte| byte.is_ascii_digit()))
            );
        }
    }
}
