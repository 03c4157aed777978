//! What is known of a table's contents beside its definition: distinct values of index prefixes,
//! and histograms of columns.
//!
//! ANALYZE TABLE and the refresh in the background count distinct values; histograms are made by
//! `ANALYZE TABLE … UPDATE HISTOGRAM`. Both are kept in the dictionary as one record a table, and
//! read by everybody from [`TableState::statistics`](crate::TableState), which is replaced as a
//! whole.
//!
//! ```text
//! ANALYZE TABLE, refresh ─► Statistics ─► StatisticsRecord ─► dictionary
//!                               │                ▲
//! planner, information_schema ◄─┘                └── the next start
//! ```

mod histogram;
mod histogram_json;

use std::sync::Arc;

use compact_str::CompactString;
use hashbrown::HashMap;
pub use histogram::{Buckets, HISTOGRAM_BUCKETS_MAX, Histogram, HistogramSource, can_have};
use porpoise_types::{Json, JsonValue};
use serde::{Deserialize, Serialize};

use crate::{Index, IndexKind, Table};

/// What ANALYZE TABLE, or the refresh in the background, found last; histograms too.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Distinct values of each index's first 1, 2, … parts, by index name. Of an index that isn't
    /// unique, the parts of the primary key follow its own.
    pub cardinality: HashMap<CompactString, Vec<u64>>,
    /// False: `cardinality` is empty because nobody has counted yet.
    pub analyzed: bool,
    /// About how many rows the table had when the values were counted.
    pub rows: u64,
    /// How many entries of each index were read for that, at most; 0 if nobody knows.
    pub entries_read: u64,
    /// How many changes the table had had by then, by the count of `Store::changes`; 0 after a
    /// start.
    pub changes: u64,
    /// When they were counted, in microseconds since 1970.
    pub updated_us: i64,
    /// Histograms of columns, by the columns' names.
    pub histograms: HashMap<CompactString, Arc<Histogram>>,
}

/// Of an index with more distinct values than this part of its rows, the number of values is taken
/// to grow with the rows.
const GROWING_PART: f64 = 0.1;

impl Statistics {
    /// About how many distinct values the first `parts` parts of an index have, in a table that has
    /// `rows` rows by now. `None` where nobody has counted.
    pub fn distinct(&self, index: &Index, parts: usize, rows: f64) -> Option<f64> {
        if index.kind == IndexKind::Primary && parts == index.parts.len() {
            return Some(rows);
        }
        let counted = *self
            .cardinality
            .get(&index.name)?
            .get(parts.checked_sub(1)?)? as f64;
        let then = self.rows as f64;
        let grows = then > 0.0 && counted > then * GROWING_PART;
        let now = if grows {
            counted * rows / then
        } else {
            counted
        };
        Some(now.min(rows))
    }

    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        self.analyzed || !self.histograms.is_empty()
    }

    /// The histogram of a column, by its name.
    pub fn histogram(&self, column: &str) -> Option<&Arc<Histogram>> {
        self.histograms.get(column)
    }

    /// What is left of the statistics when `old` becomes `new`: those of indexes with the same
    /// parts, and histograms of columns with the same type. `now` tells a column's new name.
    pub fn after_alter(
        &self,
        old: &Table,
        new: &Table,
        now: impl Fn(&CompactString) -> CompactString,
    ) -> Statistics {
        let parts = |table: &Table, index: &Index, follow: bool| {
            let part = |part: &crate::IndexPart| {
                let name = &table.columns[part.column].name;
                let name = if follow { now(name) } else { name.clone() };
                (name, part.prefix)
            };
            index.parts.iter().map(part).collect::<Vec<_>>()
        };
        let mut cardinality = HashMap::new();
        for index in &new.indexes {
            let wanted = parts(new, index, false);
            let same = |other: &&Index| {
                other.is_unique() == index.is_unique() && parts(old, other, true) == wanted
            };
            let counts = old.indexes.iter().find(same);
            let counts = counts.and_then(|other| self.cardinality.get(&other.name));
            if let Some(counts) = counts {
                // Those of the primary key's parts behind the index's own may have changed.
                let counts = counts.iter().take(index.parts.len()).copied().collect();
                cardinality.insert(index.name.clone(), counts);
            }
        }
        let mut histograms = HashMap::new();
        for column in &old.columns {
            let name = now(&column.name);
            let same = |other: &&crate::Column| other.name == name && other.ty == column.ty;
            if let Some(histogram) = self.histograms.get(&column.name)
                && new.columns.iter().any(|other| same(&other))
            {
                histograms.insert(name, histogram.clone());
            }
        }
        Statistics {
            cardinality,
            histograms,
            ..*self
        }
    }
}

/// Statistics as the dictionary keeps them. Histograms are written as
/// `information_schema.COLUMN_STATISTICS` shows them.
#[derive(Serialize, Deserialize)]
pub(crate) struct StatisticsRecord {
    cardinality: Vec<(CompactString, Vec<u64>)>,
    /// Records of older versions hold no more than the field above, and were written by ANALYZE.
    #[serde(default = "was_analyzed")]
    analyzed: bool,
    #[serde(default)]
    rows: u64,
    #[serde(default)]
    entries_read: u64,
    #[serde(default)]
    updated_us: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    histograms: Vec<(CompactString, String)>,
}

fn was_analyzed() -> bool {
    true
}

impl StatisticsRecord {
    pub(crate) fn of(statistics: &Statistics) -> StatisticsRecord {
        let cardinality = statistics.cardinality.iter();
        let histograms = statistics.histograms.iter();
        StatisticsRecord {
            cardinality: cardinality
                .map(|(name, counts)| (name.clone(), counts.clone()))
                .collect(),
            analyzed: statistics.analyzed,
            rows: statistics.rows,
            entries_read: statistics.entries_read,
            updated_us: statistics.updated_us,
            histograms: histograms
                .map(|(name, histogram)| (name.clone(), histogram.to_json().to_string()))
                .collect(),
        }
    }

    /// The statistics of a table. A histogram that can't be read is left out.
    pub(crate) fn bind(self, table: &Table) -> Statistics {
        let histograms = self.histograms.into_iter().filter_map(|(name, text)| {
            let column = &table.columns[table.column_position(&name)?];
            let json = Json::parse(&text).ok()?;
            let histogram = Histogram::of_json(json.value(), &column.ty)?;
            Some((name, Arc::new(histogram)))
        });
        Statistics {
            histograms: histograms.collect(),
            cardinality: self.cardinality.into_iter().collect(),
            analyzed: self.analyzed,
            rows: self.rows,
            entries_read: self.entries_read,
            changes: 0,
            updated_us: self.updated_us,
        }
    }
}

impl Histogram {
    /// The histogram as a JSON document, as `information_schema.COLUMN_STATISTICS` shows it.
    pub fn to_json(&self) -> JsonValue {
        histogram_json::write(self)
    }

    /// Reads what [`to_json`](Self::to_json) wrote, or what somebody wrote in its form. `None` where
    /// it isn't a histogram of a column of this type.
    pub fn of_json(json: &JsonValue, ty: &porpoise_types::DataType) -> Option<Histogram> {
        histogram_json::read(json, ty)
    }
}
