//! Real clients, each started as its users start it, first on MariaDB, then on Porpoise.
//!
//! A folder of `tests/clients` holds one: `run` runs it, `install` fetches what it needs. They are
//! programs in many languages with packages of their own, so this target runs only when it is
//! named: `./test clients`.

use std::process::Command;

use porpoise_e2e::repository;
use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::slt::Pending;

const PASSWORD: &str = "s3cret 'quoted'";

/// Starts a server with the users that a client logs in as, and runs the client's script against
/// it.
fn assert_client_passes(client: &str, product: Product) {
    let pending = Pending::read("tests/clients");
    let pending =
        product == Product::Porpoise && (pending.is_everything() || pending.holds(client));
    if pending {
        println!("{client} on {product:?} is pending");
        return;
    }
    // Kept until the server has ended.
    let certificates = Certificates::make(client);
    let server = Server::start_with(product, &certificates.options());
    let mut admin = server.connect(Route::UnixSocket, "").expect("root logs in");
    let password = PASSWORD.replace('\'', "''");
    // MariaDB has no caching_sha2_password; its own default is what MySQL calls
    // mysql_native_password.
    let users: &[(&str, &str)] = match product {
        Product::MariaDb => &[("tester", "")],
        Product::MySql | Product::Porpoise => &[
            ("tester", "WITH caching_sha2_password "),
            ("tester_native", "WITH mysql_native_password "),
        ],
    };
    let mut run = |sql: &str| {
        admin
            .query(sql)
            .map(drop)
            .unwrap_or_else(|e| panic!("{sql}: {e}"))
    };
    run("CREATE DATABASE client");
    for (user, plugin) in users {
        run(&format!(
            "CREATE USER {user}@'%' IDENTIFIED {plugin}BY '{password}'"
        ));
        run(&format!("GRANT ALL PRIVILEGES ON *.* TO {user}@'%'"));
    }
    let names: Vec<&str> = users.iter().map(|(user, _)| *user).collect();
    let output = Command::new(repository("tests/clients").join(client).join("run"))
        .env("DB_HOST", "127.0.0.1")
        .env("DB_PORT", server.port.to_string())
        .env("DB_SOCKET", &server.socket)
        .env("DB_USER", names[0])
        .env("DB_USERS", names.join(" "))
        .env("DB_PASSWORD", PASSWORD)
        .env("DB_NAME", "client")
        .env("DB_PRODUCT", product.label())
        .env("DB_CERTIFICATES", certificates.folder.path())
        .output()
        .unwrap_or_else(|e| panic!("{client}/run: {e}"));
    print!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let log = server.log();
    let last_lines = log
        .lines()
        .rev()
        .take(20)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        output.status.success(),
        "{client} on {product:?} failed; the server's log ends with:\n{last_lines}"
    );
}

/// Files with which the server encrypts, made by another program, where a client's folder has a
/// script for that.
struct Certificates {
    folder: tempfile::TempDir,
    options: Vec<String>,
}

impl Certificates {
    fn make(client: &str) -> Certificates {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = repository("tests/clients")
            .join(client)
            .join("certificates");
        let mut options = Vec::new();
        if script.exists() {
            let made = Command::new(&script).arg(folder.path()).status();
            assert!(made.is_ok_and(|status| status.success()), "{script:?}");
            for (option, file) in [("ca", "ca"), ("cert", "server-cert"), ("key", "server-key")] {
                let path = folder.path().join(file);
                options.push(format!("--ssl-{option}={}.pem", path.display()));
            }
        }
        Certificates { folder, options }
    }

    fn options(&self) -> Vec<&str> {
        self.options.iter().map(String::as_str).collect()
    }
}

macro_rules! clients {
    ($($client:ident)*) => {$(
        mod $client {
            #[test]
            fn works_with_mariadb() {
                super::assert_client_passes(stringify!($client), super::Product::MariaDb);
            }

            #[test]
            fn works_with_porpoise() {
                super::assert_client_passes(stringify!($client), super::Product::Porpoise);
            }
        }
    )*};
}

clients! { pymysql sqlalchemy go node jdbc php shell sysbench login tls }
