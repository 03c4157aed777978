//! Runs the scripts of `tests/concurrency`, on MariaDB and on Porpoise.

use porpoise_e2e::script;
use porpoise_e2e::server::{Product, Route};

fn assert_passes(product: Product, route: Route) {
    script::assert_passes("tests/concurrency", product, route);
}

#[test]
fn mariadb_agrees_with_the_scripts() {
    assert_passes(Product::MariaDb, Route::UnixSocket);
}

#[test]
fn porpoise_over_a_unix_socket() {
    assert_passes(Product::Porpoise, Route::UnixSocket);
}

#[test]
fn porpoise_over_shared_memory() {
    assert_passes(Product::Porpoise, Route::SharedMemory);
}

#[test]
fn porpoise_over_tcp() {
    assert_passes(Product::Porpoise, Route::Tcp);
}
