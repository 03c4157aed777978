//! What the optimizer takes work to cost.
//!
//! Costs are in reads of a row in key order, which take some 40 ns where the rows lie in memory.
//! `porpoise bench costs` measures what these constants stand for on the machine at hand. They are
//! what it found with 200,000 rows, rounded, or between that and what it found with 800,000, where
//! caches hold a smaller part of the rows (BENCHMARKS.md has both).

/// Finding the first row of a range.
pub const SEEK: f64 = 6.0;
/// Fetching a row by its primary key from a secondary index.
pub const FETCH: f64 = 6.0;
/// A row of a covering index, which is shorter than a table's.
pub const COVERED: f64 = 0.95;
/// Sorting a row, for each doubling of their number.
pub const SORT: f64 = 0.5;
/// Putting a row into a hash table.
pub const HASH_PUT: f64 = 5.0;
/// Looking for a row in a hash table.
pub const HASH_GET: f64 = 1.0;
/// Opening an operator again.
pub const OPEN: f64 = 1.0;
/// Passing a row on, and looking at it once more.
pub const PASS: f64 = 0.9;

/// The constants that `porpoise bench costs` measures, by name.
pub const MEASURED: [(&str, f64); 7] = [
    ("SEEK", SEEK),
    ("FETCH", FETCH),
    ("COVERED", COVERED),
    ("SORT", SORT),
    ("HASH_PUT", HASH_PUT),
    ("HASH_GET", HASH_GET),
    ("PASS", PASS),
];
