//! The scripts of `tests/concurrency`, first on MariaDB, then on Porpoise.

use porpoise_e2e::script;
use porpoise_e2e::server::{Product, Way};

fn assert_passes(product: Product, way: Way) {
    script::assert_passes("tests/concurrency", product, way);
}

#[test]
fn mariadb_agrees_with_the_scripts() {
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
