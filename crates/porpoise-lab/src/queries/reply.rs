//! What a SELECT answered, and how long it took.

use std::hash::{DefaultHasher, Hasher};
use std::time::Instant;

use porpoise_client::{Connection, Error};

use super::Answer;

/// The rows of an answer, or what stands for them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// All rows.
    Rows(Answer),
    /// How many rows, and what all their bytes in their order come to.
    Digest(u64, u64),
}

impl Reply {
    /// Asks a statement; how many seconds it took until its last row was there. Rows of one that `is_long`
    /// are looked at as they come, and not kept.
    pub(crate) fn ask(
        connection: &mut Connection,
        text: &str,
        is_long: bool,
    ) -> Result<(f64, Self), Error> {
        let began = Instant::now();
        if !is_long {
            let rows = connection.rows(text)?;
            let seconds = began.elapsed().as_secs_f64();
            return Ok((seconds, Self::Rows(Answer::of(&rows))));
        }
        let mut results = connection.query(text)?;
        let columns = results.columns().len();
        let (mut rows, mut digest) = (0, DefaultHasher::new());
        while let Some(row) = results.next_row()? {
            rows += 1;
            for column in 0..columns {
                digest.write(row.raw(column).unwrap_or_default());
                digest.write_u8(0);
            }
        }
        results.finish()?;
        let seconds = began.elapsed().as_secs_f64();
        Ok((seconds, Self::Digest(rows, digest.finish())))
    }

    /// Whether both are the same, rows being in the order of these columns.
    pub(crate) fn agrees(&self, other: &Self, ordered_by: &[usize]) -> bool {
        match (self, other) {
            (Self::Rows(one), Self::Rows(other)) => one.agrees(other, ordered_by),
            _ => self == other,
        }
    }
}
