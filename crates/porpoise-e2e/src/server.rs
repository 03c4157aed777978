//! A throw-away server: started in a temporary folder, ended when dropped, also when the test
//! fails.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use porpoise_transport::shared_memory::{BASE_NAME, path_of};
use tempfile::TempDir;

use crate::wire::{Address, Error, Wire};

/// How long a server may take to answer its first login.
const START_SECONDS_MAX: u64 = 30;

/// What a server's log says when another program listens on its port.
const PORT_IS_TAKEN: &str = "Address already in use";

/// On how many ports a server is started before that is a failure.
const TRIES_MAX: u32 = 5;

/// MySQL 8.4's default `sql_mode`, which MariaDB is started with so that both follow the same
/// rules, and the mode that makes MariaDB round fractions of seconds as MySQL does.
const SQL_MODE: &str = "TIME_ROUND_FRACTIONAL,ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                        ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// The collation of MariaDB nearest to `utf8mb4_0900_ai_ci`: the same letters, without padding.
const MARIADB_COLLATION: &str = "utf8mb4_uca1400_nopad_ai_ci";

/// The server that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// Debian's `mariadbd`: what passes here is a fact about the dialect.
    MariaDb,
    /// A MySQL server that runs already, on the Unix socket that `PORPOISE_MYSQL_SOCKET` names, and
    /// whose root has no password. No package of Debian's stable releases holds one, so that no test
    /// needs it: it is there to be asked.
    MySql,
    /// `PORPOISE_BIN`, or the program of this build.
    Porpoise,
}

impl Product {
    /// The label that `skipif` and `onlyif` name. What only Porpoise answers is what MySQL's manual
    /// says, so that a MySQL server is asked the same.
    pub fn label(self) -> &'static str {
        match self {
            Product::MariaDb => "mariadb",
            Product::MySql | Product::Porpoise => "porpoise",
        }
    }
}

/// The way in to a server that a suite uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The socket of `--socket`.
    UnixSocket,
    /// A port on 127.0.0.1.
    Tcp,
    /// Rings in memory that both processes map. Only Porpoise has it.
    SharedMemory,
}

/// A running server.
pub struct Server {
    /// Which one it is.
    pub product: Product,
    /// Its Unix socket.
    pub socket: PathBuf,
    /// Its TCP port on 127.0.0.1.
    pub port: u16,
    /// None if it ran before.
    child: Option<Child>,
    folder: TempDir,
    has_password: bool,
}

/// The password that root gets.
const PASSWORD: &str = "sesame";

impl Server {
    /// Starts a server on a new folder.
    ///
    /// # Panics
    /// When it doesn't start; the message holds the server's log.
    pub fn start(product: Product) -> Server {
        Server::start_with(product, &[])
    }

    /// As [`start`](Self::start), with further options.
    ///
    /// # Panics
    /// As `start`.
    pub fn start_with(product: Product, options: &[&str]) -> Server {
        Server::start_in(product, options, &[])
    }

    /// As [`start_with`](Self::start_with), with further environment variables, by name and value.
    ///
    /// # Panics
    /// As `start`.
    pub fn start_in(product: Product, options: &[&str], environment: &[(&str, &str)]) -> Server {
        Server::start_by(product, options, |command| {
            command.envs(environment.iter().copied());
        })
    }

    /// As [`start_with`](Self::start_with), with a limit of file descriptors.
    ///
    /// # Panics
    /// As `start`, and when `prlimit` (Debian: util-linux) is missing.
    pub fn start_limited(product: Product, options: &[&str], descriptors: u64) -> Server {
        Server::start_by(product, options, |command| {
            let mut limited = Command::new("prlimit");
            limited
                .arg(format!("--nofile={descriptors}:{descriptors}"))
                .arg(command.get_program())
                .args(command.get_args());
            *command = limited;
        })
    }

    /// The server that `PORPOISE_MYSQL_SOCKET` names.
    fn running() -> Server {
        let socket = std::env::var_os("PORPOISE_MYSQL_SOCKET")
            .expect("PORPOISE_MYSQL_SOCKET names the socket of a MySQL server");
        Server {
            product: Product::MySql,
            socket: socket.into(),
            port: 0,
            child: None,
            folder: TempDir::with_prefix("porpoise-e2e-").expect("a temporary folder can be made"),
            has_password: false,
        }
    }

    fn start_by(product: Product, options: &[&str], alter: impl Fn(&mut Command)) -> Server {
        if product == Product::MySql {
            assert!(options.is_empty(), "a server that runs takes no options");
            return Server::running();
        }
        let mut tries = 0;
        let mut server = loop {
            tries += 1;
            let mut server = Server::launch(product, options, &alter);
            match server.wait_for_first_answer() {
                Ok(()) => break server,
                // Somebody else has taken the port since it was found free.
                Err(why) if why.contains(PORT_IS_TAKEN) && tries < TRIES_MAX => {}
                Err(why) => panic!("{product:?} does not answer {why}"),
            }
        };
        match product {
            Product::MariaDb => server.load_time_zones(),
            Product::Porpoise => server.set_password(),
            Product::MySql => {}
        }
        server
    }

    fn launch(product: Product, options: &[&str], alter: impl Fn(&mut Command)) -> Server {
        let folder = TempDir::with_prefix("porpoise-e2e-").expect("a temporary folder can be made");
        let port = free_port();
        let socket = folder.path().join("s.sock");
        let data = folder.path().join("data");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log can be made");
        let mut command = command(product, &data);
        command
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--port={port}"))
            .args(options);
        alter(&mut command);
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file handle can be copied"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("can't start {product:?}: {e}"));
        Server {
            product,
            socket,
            port,
            child: Some(child),
            folder,
            has_password: false,
        }
    }

    /// Where the server listens on this route.
    pub fn address(&self, route: Route) -> Address {
        match route {
            Route::UnixSocket => Address::Unix(self.socket.clone()),
            Route::Tcp => Address::Tcp(self.port),
            Route::SharedMemory => Address::SharedMemory(path_of(&self.socket, BASE_NAME)),
        }
    }

    /// The server's temporary folder. It is removed with the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The number of the server's process.
    ///
    /// # Panics
    /// When it ran before.
    pub fn process(&self) -> u32 {
        let child = self.child.as_ref();
        child.expect("the server was started here").id()
    }

    /// Logs in as root over `route`, with `database` (empty: none) as the current one.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn connect(&self, route: Route, database: &str) -> Result<Wire, Error> {
        match self.product {
            Product::MariaDb => {
                let mut wire = Wire::connect(&self.address(route), ("root", ""), database, 45)?;
                wire.query(&format!("SET NAMES utf8mb4 COLLATE {MARIADB_COLLATION}"))?;
                Ok(wire)
            }
            Product::MySql | Product::Porpoise => {
                let password = if self.has_password { PASSWORD } else { "" };
                Wire::connect(&self.address(route), ("root", password), database, 255)
            }
        }
    }

    /// Logs in as an account without a password, with `database` as the current one if the account
    /// may see it.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn log_in(&self, route: Route, account: &str, database: &str) -> Result<Wire, Error> {
        let collation = match self.product {
            Product::MariaDb => 45,
            Product::MySql | Product::Porpoise => 255,
        };
        let connect =
            |database| Wire::connect(&self.address(route), (account, ""), database, collation);
        match connect(database) {
            Err(Error::Server { number: 1044, .. }) => connect(""),
            other => other,
        }
    }

    /// What the server has written to its log so far; empty where it can't be read.
    pub fn log(&self) -> String {
        std::fs::read(self.folder.path().join("log"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The error is why there is none, with the log.
    fn wait_for_first_answer(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
        loop {
            let answer = self
                .connect(Route::UnixSocket, "")
                .and_then(|mut wire| wire.query("SELECT 1"));
            let Err(refusal) = answer else { return Ok(()) };
            let child = self.child.as_mut();
            let ended = child.and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || Instant::now() > deadline {
                return Err(format!("({refusal}, {ended:?}):\n{}", self.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Without a password, root may log in over the Unix socket only.
    fn set_password(&mut self) {
        let sql = format!(
            "ALTER USER root@localhost IDENTIFIED WITH mysql_native_password BY '{PASSWORD}'"
        );
        let mut wire = self
            .connect(Route::UnixSocket, "")
            .expect("root gets in without a password");
        wire.query(&sql).expect("root's password can be set");
        // A test that counts descriptors or sessions doesn't find this connection.
        wire.quit().expect("the server closes the connection");
        self.has_password = true;
    }

    fn load_time_zones(&self) {
        let status = Command::new("sh")
            .arg("-c")
            .arg(format!(
                "(echo 'SET SESSION sql_mode=\"\";'; mariadb-tzinfo-to-sql /usr/share/zoneinfo) 2>/dev/null |
                 mariadb --no-defaults -uroot -S '{}' mysql",
                self.socket.display()
            ))
            .status();
        assert!(
            status.is_ok_and(|s| s.success()),
            "time zones can't be loaded"
        );
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing that was written has to survive: the folder is removed with the server.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command that starts a server on a folder. MariaDB's folder is made if it doesn't exist.
///
/// # Panics
/// When the program doesn't exist and can't be built.
pub fn command(product: Product, data: &Path) -> Command {
    let mut command = match product {
        Product::MariaDb => mariadb(data),
        Product::Porpoise => {
            let mut command = Command::new(porpoise_binary());
            command.arg("serve");
            command
        }
        Product::MySql => panic!("a MySQL server is started by hand"),
    };
    command.arg(format!("--datadir={}", data.display()));
    command
}

fn mariadb(data: &Path) -> Command {
    // A MariaDB that starts removes temporary tables from this folder, those of other servers too.
    let temporary = data.parent().unwrap_or(data);
    let user = format!("--user={}", if is_root() { "root" } else { "" });
    if !data.exists() {
        let installed = Command::new("mariadb-install-db")
            .env("TMPDIR", temporary)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .args(is_root().then_some(&user))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .stdin(Stdio::null())
            .output()
            .expect("mariadb-install-db can be run (Debian: mariadb-server)");
        assert!(
            installed.status.success(),
            "{}",
            String::from_utf8_lossy(&installed.stdout)
        );
    }
    let mut command = Command::new("mariadbd");
    command
        .env("TMPDIR", temporary)
        .arg("--no-defaults")
        .args(is_root().then_some(&user))
        .args([
            "--bind-address=127.0.0.1",
            "--skip-log-bin",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
        ])
        .args([
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=128M",
            "--innodb-fast-shutdown=3",
        ])
        .args([
            "--group-concat-max-len=1024",
            "--max-allowed-packet=64M",
            "--loose-innodb-deadlock-report=off",
        ])
        .arg(format!("--collation-server={MARIADB_COLLATION}"))
        .arg(format!("--sql-mode={SQL_MODE}"));
    command
}

/// The program under test: `PORPOISE_BIN`, or the one of this build.
fn porpoise_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("PORPOISE_BIN") {
        return path.into();
    }
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BUILT
        .get_or_init(|| {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let built = Command::new(cargo)
                .args(["build", "-q", "-p", "porpoise-cli", "--bin", "porpoise"])
                .status();
            assert!(built.is_ok_and(|s| s.success()), "porpoise does not build");
            let test = std::env::current_exe().expect("a running program has a path");
            let profile = test
                .ancestors()
                .nth(2)
                .expect("a test runs from target/PROFILE/deps");
            profile.join("porpoise")
        })
        .clone()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("loopback has a free port")
        .port()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}
