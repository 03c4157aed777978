//! The C library in programs written for Debian's, in whose place they load it, over every way in.
//!
//! | program | what it does |
//! | --- | --- |
//! | `types.c` | prints what every type becomes in every buffer; must print what Debian's library prints on MariaDB |
//! | `wire.c` | connects with every option of TLS and compression; must print what it prints with Debian's library |
//! | `waiting.c` | makes calls that don't block; must print what it prints with Debian's library on MariaDB |
//! | `sysbench` | every OLTP script, Debian's binary |
//! | `mysqlclient` | the test suite of Python's driver |
//! | `dbd.pl` | Perl's `DBD::mysql` and `DBD::MariaDB` |
//! | `mysql2.rb` | Ruby's driver |
//!
//! They are in `tests/clients/capi`, and `install` there fetches what they need. So this target
//! runs only when it is named: `./test clients`.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use porpoise_e2e::repository;
use porpoise_e2e::server::{Product, Route, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use sha1::{Digest, Sha1};
use tempfile::TempDir;

/// How a program reaches its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientRoute {
    /// MariaDB's Unix socket, with Debian's own library.
    Original,
    MariaDb,
    Tcp,
    FastPath,
    UnixSocket,
    SharedMemory,
    Embedded,
}

const USER: &str = "tester";
const PASSWORD: &str = "secret";
const SCHEMA: &str = "client";

/// The C library of this build, under the name that programs load: the folder it is in.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<TempDir> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            let built = match std::env::var_os("PORPOISE_CAPI") {
                Some(path) => PathBuf::from(path),
                None => {
                    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                    let built = Command::new(cargo)
                        .args(["build", "-q", "-p", "porpoise-capi"])
                        .status();
                    assert!(
                        built.is_ok_and(|s| s.success()),
                        "the library does not build"
                    );
                    let test = std::env::current_exe().expect("a running program has a path");
                    let profile = test
                        .ancestors()
                        .nth(2)
                        .expect("it runs from target/PROFILE/deps");
                    profile.join("libmariadb.so")
                }
            };
            let folder = TempDir::new().expect("a temporary folder can be made");
            symlink(built, folder.path().join("libmariadb.so.3")).expect("a link can be made");
            folder
        })
        .path()
}

/// A program of ours, linked to Debian's library.
fn compiled(name: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let program = folder.path().join(name);
    let compiled = Command::new("cc")
        .args(["-I/usr/include/mariadb", "-o"])
        .arg(&program)
        .arg(repository("tests/clients/capi").join(format!("{name}.c")))
        .arg("-lmariadb")
        .status();
    assert!(
        compiled.is_ok_and(|s| s.success()),
        "{name}.c does not compile"
    );
    (folder, program)
}

/// `types.c`, linked to Debian's library.
fn types_program() -> &'static Path {
    static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| compiled("types"));
    program
}

/// `waiting.c`, linked to Debian's library.
fn waiting_program() -> &'static Path {
    static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| compiled("waiting"));
    program
}

/// A database, and the route by which programs reach it.
struct Setup {
    route: ClientRoute,
    server: Option<Server>,
    folder: TempDir,
}

impl Setup {
    fn open(route: ClientRoute) -> Setup {
        let product = match route {
            ClientRoute::Original | ClientRoute::MariaDb => Some(Product::MariaDb),
            ClientRoute::Embedded => None,
            _ => Some(Product::Porpoise),
        };
        let server = product.map(Server::start);
        if let Some(server) = &server {
            let mut admin = server.connect(Route::UnixSocket, "").expect("root logs in");
            let mut run = |sql: &str| {
                admin
                    .query(sql)
                    .map(drop)
                    .unwrap_or_else(|e| panic!("{sql}: {e}"));
            };
            run(&format!(
                "CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'"
            ));
            run(&format!("GRANT ALL PRIVILEGES ON *.* TO {USER}@'%'"));
            if route == ClientRoute::FastPath {
                run("SET GLOBAL loopback_fast_path = ON");
            }
        }
        let folder = TempDir::new().expect("a temporary folder can be made");
        Setup {
            route,
            server,
            folder,
        }
    }

    fn run(&self, program: &Path) -> Output {
        let mut command = Command::new(program);
        command
            .env("DB_USER", USER)
            .env("DB_PASSWORD", PASSWORD)
            .env("DB_NAME", SCHEMA)
            .env("DB_HOST", "localhost");
        if self.route != ClientRoute::Original {
            command.env("LD_LIBRARY_PATH", library());
        }
        let url = match (&self.server, self.route) {
            (None, _) => {
                let data = self.folder.path().join("data");
                Some(format!("porpoise://{}?local_infile=1", data.display()))
            }
            (Some(server), ClientRoute::SharedMemory) => {
                let socket = server.socket.display();
                Some(format!("mysql:///?transport=shm&socket={socket}"))
            }
            (Some(server), ClientRoute::FastPath) => {
                let port = server.port;
                let host = "mysql://127.0.0.1";
                Some(format!(
                    "{host}:{port}/?transport=tcp&loopback_fast_path=true"
                ))
            }
            _ => None,
        };
        command.envs(url.map(|url| ("PORPOISE_URL", url)));
        match &self.server {
            Some(server) if self.route == ClientRoute::Tcp => {
                command.env("DB_HOST", "127.0.0.1");
                command.env("DB_PORT", server.port.to_string());
            }
            Some(server) => {
                command.env("DB_SOCKET", &server.socket);
            }
            // The URL overrides what the program asks for.
            None => {
                command.env("DB_SOCKET", "/no/such/socket");
            }
        }
        let product = match self.route {
            ClientRoute::Original | ClientRoute::MariaDb => Product::MariaDb,
            _ => Product::Porpoise,
        };
        command.env("DB_PRODUCT", product.label());
        let output = command.output();
        output.unwrap_or_else(|e| panic!("{}: {e}", program.display()))
    }

    /// Runs a program, which must succeed, and returns what it printed.
    fn output_of(&self, program: &Path) -> String {
        let output = self.run(program);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{} over {:?}: {:?}\n{printed}{}",
            program.display(),
            self.route,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        printed
    }
}

/// What `types.c` prints with Debian's library, on MariaDB.
fn reference_output() -> &'static str {
    static PRINTED: OnceLock<String> = OnceLock::new();
    PRINTED.get_or_init(|| Setup::open(ClientRoute::Original).output_of(types_program()))
}

fn assert_programs_work(route: ClientRoute) {
    let setup = Setup::open(route);
    // It also makes the database that the other programs use.
    let types = setup.output_of(types_program());
    let differs = types
        .lines()
        .zip(reference_output().lines())
        .find(|(ours, theirs)| ours != theirs);
    assert_eq!(differs, None, "types.c over {route:?}");
    assert_eq!(types.lines().last(), Some("end"));
    for program in ["mysqlclient", "dbd.pl", "mysql2.rb", "sysbench"] {
        setup.output_of(&repository("tests/clients/capi").join(program));
    }
}

/// What `waiting.c` prints with Debian's library, on MariaDB.
fn reference_of_waiting() -> &'static str {
    static PRINTED: OnceLock<String> = OnceLock::new();
    PRINTED.get_or_init(|| Setup::open(ClientRoute::Original).output_of(waiting_program()))
}

#[test]
fn calls_that_do_not_block_return_where_they_would_wait() {
    use ClientRoute::{FastPath, MariaDb, SharedMemory, Tcp, UnixSocket};
    assert!(reference_of_waiting().ends_with("\nend\n"));
    for route in [MariaDb, Tcp, FastPath, UnixSocket, SharedMemory] {
        let printed = Setup::open(route).output_of(waiting_program());
        assert_eq!(printed, reference_of_waiting(), "{route:?}");
    }
}

/// Names and versions of what a library exports, as `objdump` lists them.
fn exported(library: &Path) -> BTreeSet<String> {
    let listed = Command::new("objdump").arg("-T").arg(library).output();
    let listed = listed
        .expect("objdump can be run (Debian: binutils)")
        .stdout;
    String::from_utf8_lossy(&listed)
        .lines()
        .filter(|line| line.contains(" g ") && !line.contains("*ABS*"))
        .filter_map(|line| {
            let mut words = line.split_whitespace().rev();
            let (name, version) = (words.next()?, words.next()?);
            Some(format!("{name} {version}"))
        })
        .collect()
}

#[test]
fn every_symbol_of_debians_library_is_there_under_its_versions() {
    let linked = Command::new("ldd").arg(types_program()).output();
    let linked = linked.expect("ldd can be run").stdout;
    let linked = String::from_utf8_lossy(&linked).into_owned();
    let original = linked
        .lines()
        .find_map(|line| line.trim().strip_prefix("libmariadb.so.3 => "))
        .and_then(|line| line.split_whitespace().next())
        .expect("types.c is linked to the library");
    let original = exported(Path::new(original));
    assert!(original.len() > 300);
    assert_eq!(exported(&library().join("libmariadb.so.3")), original);
}

/// Makes `ca.pem`, `other-ca.pem`, and certificates of the first for a server and a client, with
/// their keys; returns the server's, DER.
fn make_certificates(folder: &Path) -> Vec<u8> {
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("the folder can be written to");
    };
    let authority = |name: &str| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key can be made");
        CertifiedIssuer::self_signed(params, key).expect("a certificate can be made")
    };
    let trusted = authority("trusted");
    write("ca.pem", trusted.pem());
    write("other-ca.pem", authority("other").pem());
    let issue = |name: &str| {
        let hosts = vec!["127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(hosts).expect("it is an address");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params.signed_by(&key, &trusted);
        let certificate = certificate.expect("a certificate can be made");
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}-key.pem"), key.serialize_pem());
        certificate.der().to_vec()
    };
    issue("client");
    issue("server")
}

#[test]
fn options_of_tls_and_compression_mean_what_they_mean_in_debians_library() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let certificate = make_certificates(folder.path());
    let file = |name: &str| folder.path().join(name);
    let option = |name: &str, of: &str| format!("--{name}={}", file(of).display());
    let options = [
        option("ssl-ca", "ca.pem"),
        option("ssl-cert", "server.pem"),
        option("ssl-key", "server-key.pem"),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start_with(Product::MariaDb, &options);
    let mut admin = server.connect(Route::UnixSocket, "").expect("root logs in");
    let account = format!("CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'");
    admin.query(&account).expect("an account is made");
    let (_folder, program) = compiled("wire");
    let digest = Sha1::digest(&certificate);
    let fingerprint: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    let run = |libraries: Option<&Path>| {
        let mut command = Command::new(&program);
        command
            .env("DB_USER", USER)
            .env("DB_PASSWORD", PASSWORD)
            .env("DB_PORT", server.port.to_string())
            .env("DB_CA", file("ca.pem"))
            .env("DB_OTHER_CA", file("other-ca.pem"))
            .env("DB_CERT", file("client.pem"))
            .env("DB_KEY", file("client-key.pem"))
            .env("DB_FINGERPRINT", fingerprint.join(":"));
        command.envs(libraries.map(|folder| ("LD_LIBRARY_PATH", folder)));
        let output = command.output().expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let wanted = run(None);
    assert!(
        wanted.contains("enforce compress: TLSv1.3 4 compressed 1"),
        "{wanted}"
    );
    assert_eq!(run(Some(library())), wanted);
}

#[test]
fn arguments_of_mysql_server_init_name_the_folder() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let output = Command::new(types_program())
        .arg(format!("--datadir={}", data.display()))
        .env("LD_LIBRARY_PATH", library())
        .env("DB_USER", USER)
        .env("DB_PASSWORD", PASSWORD)
        .env("DB_NAME", SCHEMA)
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, reference_output());
    assert!(data.is_dir());
}

macro_rules! routes {
    ($($name:ident $route:ident,)*) => {$(
        #[test]
        fn $name() {
            assert_programs_work(ClientRoute::$route);
        }
    )*};
}

routes! {
    programs_work_with_mariadb MariaDb,
    programs_work_over_tcp Tcp,
    programs_work_over_the_loopback_fast_path FastPath,
    programs_work_over_a_unix_socket UnixSocket,
    programs_work_over_shared_memory SharedMemory,
    programs_work_embedded Embedded,
}
