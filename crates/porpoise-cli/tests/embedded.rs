//! A program that embeds the database, and a server that has the same folder open.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use porpoise::Database;

/// `porpoise serve` on a folder, ready; ended when dropped.
struct Serving(Child);

impl Serving {
    fn start(folder: &Path) -> Serving {
        let mut child = Command::new(env!("CARGO_BIN_EXE_porpoise"))
            .args(["serve", "--no-defaults", "--skip-networking", "--socket="])
            .arg(format!("--datadir={}", folder.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let serving = Serving(child);
        let mut ready = String::new();
        BufReader::new(stdout).read_line(&mut ready).unwrap();
        assert!(!ready.is_empty(), "it has ended");
        serving
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_folder_that_a_server_has_is_refused_with_its_process_where_it_is_not_shared() {
    let folder = tempfile::tempdir().unwrap();
    let server = Serving::start(folder.path());
    let refused = Database::options().share(false).open(folder.path());
    let message = refused.map(drop).unwrap_err().message().to_string();
    let expected = format!("in use by process {}", server.0.id());
    assert!(message.ends_with(&expected), "{message}");
}

#[test]
fn a_server_that_has_the_folder_lets_programs_in() {
    let folder = tempfile::tempdir().unwrap();
    let _server = Serving::start(folder.path());
    let database = Database::open(folder.path()).unwrap();
    assert!(!database.is_local());
    let connection = database.connect().unwrap();
    connection.execute("CREATE DATABASE shop", ()).unwrap();
    connection
        .execute("CREATE TABLE shop.seen (who BIGINT PRIMARY KEY)", ())
        .unwrap();
    // Whatever accounts there are: whoever may read the files needs none.
    connection.execute("DROP USER root@localhost", ()).unwrap();
    let connection = database.connect_to("shop").unwrap();
    let rows = connection.query("SELECT COUNT(*) FROM seen", ()).unwrap();
    assert_eq!(rows.get(0).unwrap().get(0), Ok(0));
}
