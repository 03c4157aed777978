//! The SQL files of `tests/slt`, first on MariaDB, which proves what they expect, then on Porpoise.
//!
//! `PORPOISE_SLT_FILTER='joins types/decimal' cargo test -p porpoise-e2e --test slt` runs the files whose paths hold
//! one of the words. The last line printed for each test is the pass rate (add `-- --nocapture`).
//! With `PORPOISE_SLT_RECORD=1` MariaDB's answers are written into those files first: write the statements, record,
//! then read what came, for where MySQL 8.4 documents something else.

use porpoise_e2e::server::{Product, Way};
use porpoise_e2e::slt::assert_passes;

#[test]
fn mariadb_agrees_with_the_files() {
    assert_passes(Product::MariaDb, Way::UnixSocket);
}

#[test]
fn porpoise_over_a_unix_socket() {
    assert_passes(Product::Porpoise, Way::UnixSocket);
}

#[test]
fn porpoise_over_shared_memory() {
    assert_passes(Product::Porpoise, Way::SharedMemory);
}

#[test]
fn porpoise_over_tcp() {
    assert_passes(Product::Porpoise, Way::Tcp);
}
