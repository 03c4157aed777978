//! A throw-away MariaDB to measure against: in a folder of its own, on loopback, ended when
//! dropped. It offers TLS with a certificate that is made for it, whose key is of the kind that
//! Porpoise's own certificates have.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use porpoise_client::{Connection, Options, Transport};

use crate::Error;
use crate::lifeline::Lifeline;
use crate::memory_group::{MemoryGroup, command};

/// How long it may take to answer; and where it has data already, which it may have to recover.
const START_PATIENCE: Duration = Duration::from_secs(30);
const RECOVERY_PATIENCE: Duration = Duration::from_secs(600);
/// Between two attempts to connect.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(2);
/// Where Debian has it, which is not in everybody's path.
const FOLDERS: &[&str] = &["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];

/// A running MariaDB.
pub struct Peer {
    child: Child,
    /// While the child is there.
    lifeline: Option<Lifeline>,
    socket: PathBuf,
    port: u16,
}

/// The path of one of MariaDB's programs, if it is installed.
fn program(name: &str) -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(FOLDERS.iter().map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

impl Peer {
    /// Whether there is a MariaDB on this machine to be started.
    pub fn is_installed() -> bool {
        program("mariadbd").is_some() && program("mariadb-install-db").is_some()
    }

    /// Starts one in `folder`, for so many clients, with more of mysqld's options. Its root has no
    /// password.
    pub fn start(folder: &Path, clients: usize, options: &[String]) -> Result<Peer, Error> {
        Self::start_in(None, folder, clients, options)
    }

    /// The same, with its memory limited by a group. A folder where one was is served again.
    pub(crate) fn start_in(
        group: Option<&MemoryGroup>,
        folder: &Path,
        clients: usize,
        options: &[String],
    ) -> Result<Peer, Error> {
        let failed = |what: String| Error::Plan(format!("MariaDB doesn't start: {what}"));
        let server = program("mariadbd").ok_or_else(|| failed(NOT_INSTALLED.into()))?;
        let data = folder.join("mariadb");
        let mut patience = RECOVERY_PATIENCE;
        if !data.join("mysql").is_dir() {
            install(folder, &data).map_err(failed)?;
            patience = START_PATIENCE;
        }
        let socket = folder.join("mariadb.sock");
        let [certificate, key] =
            make_certificate(folder).map_err(|error| failed(error.to_string()))?;
        let port = free_port().map_err(|error| failed(error.to_string()))?;
        let log = std::fs::File::create(folder.join("mariadb.log"))
            .map_err(|error| failed(error.to_string()))?;
        let child = command(group, &server)
            .env("TMPDIR", folder)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!(
                "--pid-file={}",
                folder.join("mariadb.pid").display()
            ))
            .arg(format!("--ssl-cert={}", certificate.display()))
            .arg(format!("--ssl-key={}", key.display()))
            .arg(format!("--port={port}"))
            .arg(format!("--max-connections={}", clients + 100))
            .arg(format!(
                "--max-prepared-stmt-count={}",
                crate::serving::PREPARED_MAX
            ))
            .args([
                "--bind-address=127.0.0.1",
                "--skip-log-bin",
                "--skip-name-resolve",
            ])
            .args(options)
            .args(user())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // A Ctrl-C at the terminal is for who measures.
            .process_group(0)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let mut peer = Peer {
            lifeline: Some(Lifeline::of(&child)),
            child,
            socket,
            port,
        };
        let deadline = Instant::now() + patience;
        while let Err(refusal) = peer.connect() {
            let ended = peer.ended().is_some();
            if ended || Instant::now() > deadline {
                let log = std::fs::read_to_string(folder.join("mariadb.log")).unwrap_or_default();
                return Err(failed(format!("{refusal}\n{log}")));
            }
            std::thread::sleep(ATTEMPT_PAUSE);
        }
        Ok(peer)
    }

    /// Logs in as its root.
    pub fn connect(&self) -> Result<Connection, porpoise_client::Error> {
        Connection::connect(&Options {
            user: "root".into(),
            transport: Transport::Unix,
            socket: Some(self.socket.clone()),
            ..Options::default()
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// How it has ended; nothing as long as it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        if status.is_some() {
            // Its number may be another's now.
            self.lifeline = None;
        }
        status
    }

    /// Its Unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.lifeline = None;
        // Nothing in it has to last: the folder goes as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const NOT_INSTALLED: &str = "it is not installed";

/// Started by the machine's root it wants to be told that this is meant.
fn user() -> Option<&'static str> {
    let is_root = rustix::process::geteuid().is_root();
    is_root.then_some("--user=root")
}

/// Makes its data folder; or says why not.
fn install(folder: &Path, data: &Path) -> Result<(), String> {
    let installer = program("mariadb-install-db").ok_or(NOT_INSTALLED)?;
    let installed = Command::new(installer)
        // One that starts removes temporary tables from the common folder, those of others
        // among them.
        .env("TMPDIR", folder)
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .args(user())
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    match installed.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&installed.stderr).into_owned()),
    }
}

/// The files of a certificate and its key.
fn make_certificate(folder: &Path) -> std::io::Result<[PathBuf; 2]> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let made = made.map_err(std::io::Error::other)?;
    let files = ["mariadb-cert.pem", "mariadb-key.pem"].map(|name| folder.join(name));
    std::fs::write(&files[0], made.cert.pem())?;
    std::fs::write(&files[1], made.signing_key.serialize_pem())?;
    Ok(files)
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
