//! Counting and sampling what tables hold: the statistics that plans are made by.
//!
//! ANALYZE TABLE does it for its session, and [`refresh`] in the background for tables of which more
//! than a tenth of the rows has changed. Both count the distinct values of each index's leading
//! parts and make the histograms anew that are kept up to date; then a sample is taken, and plans
//! that were made before are retired.
//!
//! | rows | ANALYZE TABLE | in the background |
//! | --- | --- | --- |
//! | up to `entries_max` | reads every entry of each index | the same |
//! | more | reads runs of entries at places spread over the keys | the same, fewer |
//!
//! Of a run the number of distinct values is that of neighbours that differ; so is that of all
//! entries, in proportion.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_catalog::statistics::{HistogramSource, can_have};
use porpoise_catalog::{Histogram, Index, IndexKind, Relation, Statistics, Table, dictionary};
use porpoise_core::error::Result;
use porpoise_planner::{TableContents, places};
use porpoise_session::shared::Shared;
use porpoise_storage::{Direction, Snapshot, SpaceId};
use porpoise_types::{Value, skip_key_part};

/// How much may be read of a table, and who may end it.
pub(crate) struct Effort<'a> {
    /// Indexes and tables of no more entries are read as a whole.
    pub entries_max: u64,
    /// How much memory the values of a histogram may take, in bytes.
    pub values_bytes_max: u64,
    /// Asked once an entry; an error ends the work.
    pub check: &'a dyn Fn() -> Result<()>,
}

/// What ANALYZE TABLE may read.
pub(crate) const ANALYZED_ENTRIES_MAX: u64 = 500_000;
/// What a refresh in the background may read, of the table and of each index.
const REFRESHED_ENTRIES_MAX: u64 = 50_000;
/// At how many places a part of the entries is read.
const PLACES: usize = 256;

/// A table's statistics are refreshed when more than this part of its rows has changed
/// (MySQL 8.4 manual, 17.8.10.1), but not for fewer changes than `CHANGES_MIN`.
const CHANGED_PART: f64 = 0.1;
const CHANGES_MIN: u64 = 16;

/// Counts and samples a table anew, keeps what was found, and retires plans made before.
pub(crate) fn analyze(shared: &Shared, table: &Table, effort: &Effort<'_>) -> Result<()> {
    let store = &shared.store;
    let snapshot = store.snapshot();
    let (rows, changes) = (
        store.approximate_len(table.space),
        store.changes(table.space),
    );
    let (cardinality, entries_read) = count(table, &snapshot, rows, effort)?;
    let old = table.state.statistics.load_full();
    let histograms = remade_histograms(table, &snapshot, rows, &old, effort)?;
    keep(shared, table, |statistics| {
        statistics.cardinality = cardinality;
        statistics.analyzed = true;
        statistics.rows = rows;
        statistics.entries_read = entries_read;
        statistics.changes = changes;
        statistics.updated_us = now_us();
        for (name, histogram) in histograms {
            // One that was dropped or replaced meanwhile stays so.
            if let Some(known) = statistics.histograms.get_mut(&name)
                && known.auto_update
            {
                *known = histogram;
            }
        }
    })
}

/// Changes what is known of a table, takes a new sample of it, and retires plans made before.
pub(crate) fn keep(
    shared: &Shared,
    table: &Table,
    change: impl FnOnce(&mut Statistics),
) -> Result<()> {
    dictionary::change_statistics(shared.definitions(), table, change)?;
    table.state.sample.store(None);
    shared.store.sample(table);
    shared.plans.retire(table.id);
    Ok(())
}

/// Refreshes the statistics of tables that have changed much since these were made. Ends early,
/// without an error, when `is_ended` says so.
pub fn refresh(shared: &Shared, is_ended: &dyn Fn() -> bool) -> Result<()> {
    let catalog = shared.catalog.load_full();
    let relations = catalog
        .schemas
        .values()
        .flat_map(|entry| entry.relations.values());
    for relation in relations {
        let Relation::Table(table) = relation else {
            continue;
        };
        if is_ended() {
            return Ok(());
        }
        if is_refreshed(table) && is_outdated(shared, table) {
            let effort = Effort {
                entries_max: REFRESHED_ENTRIES_MAX,
                values_bytes_max: REFRESHED_ENTRIES_MAX * VALUE_BYTES,
                check: &|| match is_ended() {
                    true => Err(porpoise_core::error::Error::query_interrupted()),
                    false => Ok(()),
                },
            };
            analyze(shared, table, &effort)?;
        }
    }
    Ok(())
}

/// Whether the table's own option doesn't forbid it.
fn is_refreshed(table: &Table) -> bool {
    let mut options = table.options.iter();
    !options.any(|(name, value)| name == "STATS_AUTO_RECALC" && value == "0")
}

fn is_outdated(shared: &Shared, table: &Table) -> bool {
    let statistics = table.state.statistics.load();
    let rows = shared.store.approximate_len(table.space);
    let changes = shared.store.changes(table.space);
    let since = changes.saturating_sub(statistics.changes);
    let changed = since.max(rows.abs_diff(statistics.rows));
    changed >= CHANGES_MIN && changed as f64 > statistics.rows as f64 * CHANGED_PART
}

// -- Distinct values
// ---------------------------------------------------------------------------------------------------

/// Distinct values of every index's first 1, 2, … parts, and how many entries of an index were read.
fn count(
    table: &Table,
    snapshot: &Snapshot,
    rows: u64,
    effort: &Effort<'_>,
) -> Result<(HashMap<CompactString, Vec<u64>>, u64)> {
    let mut cardinality = HashMap::new();
    let mut entries_read = 0;
    for index in &table.indexes {
        let is_primary = index.kind == IndexKind::Primary;
        let space = if is_primary { table.space } else { index.space };
        let mut counts = Counts::of(table, index);
        read_spread(snapshot, space, rows, effort, &mut |run, key, _| {
            counts.add(run, key);
            Ok(())
        })?;
        entries_read = counts.read.max(entries_read);
        cardinality.insert(index.name.clone(), counts.distinct(rows));
    }
    Ok((cardinality, entries_read))
}

/// Counts the distinct values of an index's leading parts as entries come.
struct Counts<'a> {
    table: &'a Table,
    /// The columns that keys consist of, and whether each descends: of an index that isn't unique,
    /// the primary key's come after its own.
    parts: Vec<(usize, bool)>,
    /// Entries whose first 1, 2, … parts differ from those of the entry before.
    new: Vec<u64>,
    /// The same, where the entry before was of the same run.
    new_in_runs: Vec<u64>,
    read: u64,
    /// Entries that followed another in their run.
    followed: u64,
    last: Vec<u8>,
    last_run: usize,
}

impl<'a> Counts<'a> {
    fn of(table: &'a Table, index: &Index) -> Counts<'a> {
        let key = |index: &Index| {
            let parts = index.parts.iter();
            parts
                .map(|part| (part.column, part.descending))
                .collect::<Vec<_>>()
        };
        let mut parts = key(index);
        if let Some(primary) = table.primary_key()
            && !index.is_unique()
        {
            parts.extend(key(primary));
        }
        Counts {
            table,
            new: vec![0; parts.len()],
            new_in_runs: vec![0; parts.len()],
            parts,
            read: 0,
            followed: 0,
            last: Vec::new(),
            last_run: 0,
        }
    }

    fn add(&mut self, run: usize, key: &[u8]) {
        let same = key
            .iter()
            .zip(&self.last)
            .take_while(|(a, b)| a == b)
            .count();
        let follows = self.read > 0 && run == self.last_run;
        let mut end = 0;
        for (part, (column, descending)) in self.parts.iter().enumerate() {
            let column = &self.table.columns[*column];
            let rest = key.get(end..).unwrap_or_default();
            let len = skip_key_part(rest, &column.ty, column.nullable, *descending);
            end += len.unwrap_or(rest.len());
            // The part is new if the keys differ before its end.
            if self.read == 0 || same < end {
                self.new[part] += 1;
                self.new_in_runs[part] += u64::from(follows);
            }
        }
        self.read += 1;
        self.followed += u64::from(follows);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.last_run = run;
    }

    /// About how many distinct values there are among so many entries.
    fn distinct(&self, entries: u64) -> Vec<u64> {
        if self.read >= entries || self.followed == 0 {
            return self.new.clone();
        }
        let estimate = |(seen, differing): (&u64, &u64)| {
            let part = *differing as f64 / self.followed as f64;
            ((entries as f64 * part) as u64).clamp(*seen, entries)
        };
        self.new
            .iter()
            .zip(&self.new_in_runs)
            .map(estimate)
            .collect()
    }
}

/// Reads a space's entries: all, or runs of neighbours at places spread over the keys. Calls back
/// with the number of the run, the key and the value. Runs don't overlap.
fn read_spread(
    snapshot: &Snapshot,
    space: SpaceId,
    entries: u64,
    effort: &Effort<'_>,
    entry: &mut dyn FnMut(usize, &[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    if entries <= effort.entries_max {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut cursor = snapshot.range(space, all, Direction::Forward)?;
        while let Some((key, value)) = cursor.next()? {
            (effort.check)()?;
            entry(0, key, value)?;
        }
        return Ok(());
    }
    let places = places::spread(snapshot, space, PLACES)?;
    let run_len = effort.entries_max / places.len().max(1) as u64;
    for (run, place) in places.iter().enumerate() {
        let end = match places.get(run + 1) {
            Some(next) => Bound::Excluded(&next[..]),
            None => Bound::Unbounded,
        };
        let bounds = (Bound::Included(&place[..]), end);
        let mut cursor = snapshot.range(space, bounds, Direction::Forward)?;
        for _ in 0..run_len {
            let Some((key, value)) = cursor.next()? else {
                break;
            };
            (effort.check)()?;
            entry(run, key, value)?;
        }
    }
    Ok(())
}

// -- Histograms
// ---------------------------------------------------------------------------------------------------

/// About what a value takes, in bytes.
const VALUE_BYTES: u64 = size_of::<Value>() as u64;

/// A histogram that is to be made.
pub(crate) struct Wanted {
    /// The column's position.
    pub column: usize,
    /// How many buckets there may be.
    pub buckets: u64,
    /// Whether it is to be made anew whenever the table is analyzed.
    pub auto_update: bool,
}

/// Makes histograms of columns, of all rows or of as many as the effort allows.
pub(crate) fn histograms(
    table: &Table,
    snapshot: &Snapshot,
    rows: u64,
    wanted: &[Wanted],
    effort: &Effort<'_>,
) -> Result<Vec<Histogram>> {
    let row_bytes: u64 = wanted
        .iter()
        .map(|wanted| VALUE_BYTES + table.columns[wanted.column].ty.max_chars().min(64) / 2)
        .sum();
    let rows_max = (effort.values_bytes_max / row_bytes.max(1)).max(1);
    let effort = Effort {
        entries_max: rows_max,
        ..*effort
    };
    let mut values: Vec<Vec<Value>> = wanted.iter().map(|_| Vec::new()).collect();
    let mut read = 0u64;
    read_spread(snapshot, table.space, rows, &effort, &mut |_, _, row| {
        read += 1;
        for (values, wanted) in values.iter_mut().zip(wanted) {
            values.push(table.layout.get(row, wanted.column));
        }
        Ok(())
    })?;
    let sampling_rate = match rows <= rows_max {
        true => 1.0,
        false => (read as f64 / rows as f64).min(1.0),
    };
    let made = values.into_iter().zip(wanted).map(|(values, wanted)| {
        Histogram::build(HistogramSource {
            ty: &table.columns[wanted.column].ty,
            values,
            sampling_rate,
            buckets: wanted.buckets,
            auto_update: wanted.auto_update,
            now_us: now_us(),
        })
    });
    Ok(made.collect())
}

/// Makes anew the histograms that are to be kept up to date.
fn remade_histograms(
    table: &Table,
    snapshot: &Snapshot,
    rows: u64,
    old: &Statistics,
    effort: &Effort<'_>,
) -> Result<Vec<(CompactString, Arc<Histogram>)>> {
    let automatic = old.histograms.iter().filter(|(_, known)| known.auto_update);
    let wanted = automatic.filter_map(|(name, known)| {
        let column = table.column_position(name)?;
        can_have(&table.columns[column].ty).then_some(Wanted {
            column,
            buckets: known.buckets_specified,
            auto_update: true,
        })
    });
    let wanted: Vec<Wanted> = wanted.collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let made = histograms(table, snapshot, rows, &wanted, effort)?;
    let name = |wanted: &Wanted| table.columns[wanted.column].name.clone();
    let made = made.into_iter().map(Arc::new);
    Ok(wanted.iter().map(name).zip(made).collect())
}

fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}
