//! The scripts of `tests/concurrency`, first on MariaDB, then on Porpoise.

use porpoise_e2e::server::{Product, Server, Way};
use porpoise_e2e::slt::Pending;
use porpoise_e2e::{files_below, repository, script};

fn assert_passes(product: Product, way: Way) {
    let pending = Pending::read("tests/concurrency");
    if product == Product::Porpoise && pending.is_everything() {
        println!("{product:?} over {way:?}: all scripts are pending");
        return;
    }
    let server = Server::start(product);
    let filter = std::env::var("PORPOISE_SLT_FILTER").unwrap_or_default();
    let mut files = files_below(&repository("tests/concurrency"), "txt");
    files.retain(|file| {
        filter
            .split_whitespace()
            .any(|word| file.ends_with(format!("{word}.txt")))
            || filter.is_empty()
    });
    assert!(!files.is_empty(), "no script is chosen");
    let mut wrong = 0;
    let mut passed = 0;
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let outcome = script::run_file(&server, way, file);
        passed += usize::from(outcome.is_ok());
        match (
            outcome,
            product == Product::Porpoise && pending.holds(&name),
        ) {
            (Ok(()), false) | (Err(_), true) => continue,
            (Ok(()), true) => println!("{name} passes: take it off tests/concurrency/PENDING"),
            (Err(e), false) => println!("\n──── {name} on {product:?} over {way:?}\n{e}"),
        }
        wrong += 1;
    }
    println!(
        "\n{product:?} over {way:?}: {passed} of {} scripts pass",
        files.len()
    );
    assert_eq!(wrong, 0, "scripts that went wrong");
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
