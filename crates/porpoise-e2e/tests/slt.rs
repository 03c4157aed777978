//! Runs the SQL files of `tests/slt` on MariaDB, which shows that they expect the right results,
//! and on Porpoise.
//!
//! `PORPOISE_SLT_FILTER='joins types/decimal' cargo test -p porpoise-e2e --test slt` runs the files
//! whose paths contain one of the words. With `-- --nocapture` the last line of each test is the
//! pass rate. With `PORPOISE_SLT_RECORD=1` MariaDB's results are written into those files first:
//! write the statements, record, then compare what came with MySQL 8.4's manual.

use porpoise_e2e::server::{Product, Route};
use porpoise_e2e::slt::{Subject, assert_passes, assert_subject_passes};
use porpoise_e2e::wire::Wire;

#[test]
fn mariadb_agrees_with_the_files() {
    assert_passes(Product::MariaDb, Route::UnixSocket);
}

/// Which answers of the files are not those of the MySQL server that `PORPOISE_MYSQL_SOCKET` names:
/// for somebody to read, since that server's version is its own, and what isn't supported fails.
#[test]
#[ignore = "needs a MySQL server, named by PORPOISE_MYSQL_SOCKET"]
fn mysql_and_the_files() {
    assert_passes(Product::MySql, Route::UnixSocket);
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

/// In this process: every statement runs on the thread of the test.
#[test]
fn porpoise_embedded() {
    /// Without optimization, deep nesting takes more stack than a test thread has.
    const STACK_BYTES: usize = 64 << 20;
    let run = || {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let database = porpoise::Database::open(folder.path().join("data")).expect("it opens");
        assert_subject_passes(&Subject {
            product: Product::Porpoise,
            route: "Embedded".into(),
            connect: Box::new(|name| {
                let stream = database.stream().expect("a database that is open");
                Wire::over(Box::new(stream), ("root", ""), name, 255)
            }),
        });
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread
        .spawn(run)
        .expect("a thread")
        .join()
        .expect("it passes");
}
