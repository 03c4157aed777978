//! Runs the scripts of `tests/privileges`, on MariaDB and on Porpoise.

use porpoise_e2e::script;
use porpoise_e2e::server::{Product, Route};

#[test]
fn mariadb_agrees_with_the_scripts() {
    script::assert_passes("tests/privileges", Product::MariaDb, Route::UnixSocket);
}

#[test]
fn porpoise_agrees_with_mariadb() {
    script::assert_passes("tests/privileges", Product::Porpoise, Route::UnixSocket);
}
