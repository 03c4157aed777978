//! The server that is killed, and its clients.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use porpoise_e2e::server::{self, Product};
use porpoise_e2e::wire::{Address, Error, Reply, Wire};

const START_SECONDS_MAX: u64 = 60;
/// The smallest value of the first, so that checkpoints come often; and a small one of the second, so
/// that large transactions go on in files.
const PORPOISE_OPTIONS: &[&str] = &[
    "--innodb-redo-log-capacity=8388608",
    "--transaction-memory-size=1M",
];
const MYSQL_OPTIONS: &[&str] = &["--innodb-redo-log-capacity=8388608"];
const MARIADB_OPTIONS: &[&str] = &["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=32M"];
/// The errors after which a transaction is rolled back and tried again: lock wait timeout,
/// deadlock, a table that changed under a snapshot.
const LOCK_ERRORS: &[u16] = &[1205, 1213, 1412, 1020];

/// Why a statement has not succeeded.
#[derive(Debug)]
pub enum Trouble {
    /// The server is gone. Whether the statement took effect is not known.
    Lost,
    /// Refused because of locks: nothing of the statement took effect.
    Refused,
    /// Something that must not happen.
    Wrong(String),
}

pub type Attempt<T = ()> = Result<T, Trouble>;

pub struct Victim {
    pub product: Product,
    pub data: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Victim {
    pub fn new(product: Product, folder: &Path) -> Victim {
        Victim {
            product,
            data: folder.join("data"),
            socket: folder.join("s.sock"),
            log: folder.join("log"),
            child: None,
        }
    }

    /// Starts the program without waiting for it.
    pub fn launch(&mut self, options: &[String]) {
        let mut command = server::command(self.product, &self.data);
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .expect("a log can be made");
        let child = command
            .arg(format!("--socket={}", self.socket.display()))
            .args(match self.product {
                Product::Porpoise => PORPOISE_OPTIONS,
                Product::MySql => MYSQL_OPTIONS,
                Product::MariaDb => MARIADB_OPTIONS,
            })
            .arg("--skip-networking")
            .args(options)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file handle can be copied"))
            .stderr(log)
            .spawn()
            .expect("the server can be started");
        self.child = Some(child);
    }

    /// Starts the program and waits for its first answer. Returns how long that took.
    pub fn start(&mut self, options: &[String]) -> Result<Duration, String> {
        self.launch(options);
        let began = Instant::now();
        loop {
            if self.connect().is_ok_and(|mut c| c.run("SELECT 1").is_ok()) {
                return Ok(began.elapsed());
            }
            let ended = self
                .child
                .as_mut()
                .and_then(|c| c.try_wait().ok().flatten());
            if ended.is_some() || began.elapsed() > Duration::from_secs(START_SECONDS_MAX) {
                self.kill();
                return Err(format!(
                    "the server does not start ({ended:?}):\n{}",
                    self.log()
                ));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn connect(&self) -> Attempt<Client> {
        let address = Address::Unix(self.socket.clone());
        let mut client = Client(Wire::connect(&address, ("root", ""), "", 45).map_err(trouble)?);
        client.run("SET SESSION innodb_lock_wait_timeout = 2, lock_wait_timeout = 1")?;
        Ok(client)
    }

    /// The end of the server's log.
    pub fn log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let start = text.len().saturating_sub(4000);
        String::from_utf8_lossy(&text[start..]).into_owned()
    }

    /// Waits for the B-tree's file to change. Returns whether it did.
    pub fn wait_for_checkpoint(&self, at_most: Duration) -> bool {
        let tree = match self.product {
            Product::Porpoise | Product::MySql => self.data.join("tree.redb"),
            Product::MariaDb => self.data.join("ibdata1"),
        };
        let changed = || -> Option<SystemTime> { tree.metadata().ok()?.modified().ok() };
        let before = changed();
        let began = Instant::now();
        while began.elapsed() < at_most {
            if changed() != before {
                // Somewhere within the checkpoint.
                std::thread::sleep(Duration::from_micros(fastrand::u64(0..20_000)));
                return true;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        false
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.kill();
    }
}

pub struct Client(Wire);

fn trouble(error: Error) -> Trouble {
    match error {
        Error::Connection(_) => Trouble::Lost,
        Error::Server { number, .. } if LOCK_ERRORS.contains(&number) => Trouble::Refused,
        Error::Server { .. } => Trouble::Wrong(error.to_string()),
    }
}

impl Client {
    pub fn run(&mut self, sql: &str) -> Attempt {
        self.0
            .query(sql)
            .map(drop)
            .map_err(|error| match trouble(error) {
                Trouble::Wrong(what) => Trouble::Wrong(format!("{what}\n  in: {sql:.300}")),
                other => other,
            })
    }

    /// Runs a statement that must be refused with this error.
    pub fn refused(&mut self, sql: &str, number: u16) -> Attempt {
        match self.0.query(sql) {
            Err(Error::Server { number: n, .. }) if n == number => Ok(()),
            Err(other) => Err(trouble(other)),
            Ok(reply) => Err(Trouble::Wrong(format!(
                "error {number} did not come, but {reply:?}\n  in: {sql:.300}"
            ))),
        }
    }

    /// Rows as text, NULL as "NULL".
    pub fn rows(&mut self, sql: &str) -> Attempt<Vec<Vec<String>>> {
        self.table(sql).map(|(_, rows)| rows)
    }

    /// The columns' names, and the rows.
    pub fn table(&mut self, sql: &str) -> Attempt<(Vec<String>, Vec<Vec<String>>)> {
        let reply = self.0.query(sql).map_err(|error| match trouble(error) {
            Trouble::Wrong(what) => Trouble::Wrong(format!("{what}\n  in: {sql:.300}")),
            other => other,
        })?;
        match reply {
            Reply::Rows { columns, rows } => {
                let text = |cell: Option<Vec<u8>>| match cell {
                    Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    None => "NULL".to_owned(),
                };
                let names = columns.into_iter().map(|c| c.name).collect();
                let rows = rows.into_iter().map(|r| r.into_iter().map(text).collect());
                Ok((names, rows.collect()))
            }
            Reply::Done { .. } => Err(Trouble::Wrong(format!("no rows from {sql}"))),
        }
    }

    /// Rows of a statement that must succeed.
    pub fn must_rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        self.rows(sql).map_err(|t| format!("{sql}: {t:?}"))
    }

    pub fn must(&mut self, sql: &str) -> Result<(), String> {
        self.run(sql).map_err(|t| format!("{sql}: {t:?}"))
    }

    /// The single number that a statement returns.
    pub fn number(&mut self, sql: &str) -> Result<i64, String> {
        match self.must_rows(sql)?.as_slice() {
            [row] if row.len() == 1 => row[0].parse().map_err(|e| format!("{sql}: {row:?}: {e}")),
            other => Err(format!("{sql}: {other:?}")),
        }
    }
}
