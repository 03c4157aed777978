//! `porpoise serve` as a process of its own, ended when dropped; and the account and routes by which
//! clients reach a server that was started to be measured.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use porpoise_client::{Connection, Options, TlsMode, TlsOptions, Transport};

use crate::Error;
use crate::lifeline::Lifeline;
use crate::memory_group::{MemoryGroup, command};

/// The schema of the clients' tables.
pub const CLIENTS_SCHEMA: &str = "sbtest";

/// Prepared statements that a server may have, the most that each of the known ones takes: a thousand
/// clients with some of each table are more than the default.
pub(crate) const PREPARED_MAX: u32 = 1 << 20;

/// A Porpoise that serves from a folder.
pub struct Serving {
    child: Child,
    /// While the child is there.
    lifeline: Option<Lifeline>,
    /// The TCP port on 127.0.0.1.
    pub port: u16,
    /// The Unix socket.
    pub socket: PathBuf,
}

impl Serving {
    /// Has `program`, or the one that runs, serve from `folder`, with more of its options, for so
    /// many clients. Its log goes to `log`, or where this program's goes.
    pub fn start(
        program: Option<&Path>,
        folder: &Path,
        clients: usize,
        options: &[String],
        log: Option<&Path>,
    ) -> Result<Serving, Error> {
        Self::start_in(None, program, folder, clients, options, log)
    }

    /// The same, with its memory limited by a group.
    pub(crate) fn start_in(
        group: Option<&MemoryGroup>,
        program: Option<&Path>,
        folder: &Path,
        clients: usize,
        options: &[String],
        log: Option<&Path>,
    ) -> Result<Serving, Error> {
        let program = match program {
            // A mere name would be sought where the system's programs are.
            Some(program) => std::path::absolute(program)?,
            None => std::env::current_exe()?,
        };
        let failed = |what: &str| {
            let log = log.and_then(|log| std::fs::read_to_string(log).ok());
            let told = log.unwrap_or_default();
            Error::Plan(format!(
                "{} doesn't start: {what} {told}",
                program.display()
            ))
        };
        let socket = folder.join("porpoise.sock");
        let mut command = command(group, &program);
        if let Some(log) = log {
            command.stderr(std::fs::File::create(log)?);
        }
        let mut child = command
            .args(["serve", "--no-defaults", "--port=0", "--loopback-fast-path"])
            .arg(format!("--datadir={}", folder.join("porpoise").display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--max-connections={}", clients + 100))
            .arg(format!("--max-prepared-stmt-count={PREPARED_MAX}"))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // A Ctrl-C at the terminal is for who measures.
            .process_group(0)
            .spawn()
            .map_err(|error| failed(&error.to_string()))?;
        let stdout = child.stdout.take();
        let mut serving = Serving {
            lifeline: Some(Lifeline::of(&child)),
            child,
            port: 0,
            socket,
        };
        let mut line = String::new();
        BufReader::new(stdout.ok_or_else(|| failed("it has no output"))?).read_line(&mut line)?;
        let port = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("127.0.0.1:")?.parse().ok());
        serving.port = port.ok_or_else(|| failed(line.trim()))?;
        Ok(serving)
    }

    /// Logs in as its root.
    pub fn root(&self) -> Result<Connection, porpoise_client::Error> {
        Connection::open(&format!(
            "mysql://root@localhost/?transport=unix&socket={}",
            self.socket.display()
        ))
    }

    /// The process.
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
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.lifeline = None;
        // Nothing in it has to last: the folder goes as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes the account of the clients, and what it may use.
pub fn prepare(root: &mut Connection, hosts: &[&str]) -> Result<(), porpoise_client::Error> {
    root.run(format!("CREATE DATABASE IF NOT EXISTS {CLIENTS_SCHEMA}"))?;
    for host in hosts {
        root.run(format!(
            "CREATE USER IF NOT EXISTS sb@'{host}' IDENTIFIED BY 'sb'"
        ))?;
        // Some workloads have a schema of their own, whose name begins so.
        root.run(format!("GRANT ALL ON `{CLIENTS_SCHEMA}%`.* TO sb@'{host}'"))?;
    }
    Ok(())
}

/// The clients' account by TCP and by a Unix socket.
pub fn routes_to(port: u16, socket: &Path) -> [Options; 2] {
    let account = Options {
        user: "sb".into(),
        password: "sb".into(),
        database: Some(CLIENTS_SCHEMA.into()),
        socket: Some(socket.to_path_buf()),
        tls: TlsOptions {
            mode: Some(TlsMode::Disabled),
            ..TlsOptions::default()
        },
        ..Options::default()
    };
    let tcp = Options {
        host: "127.0.0.1".into(),
        port,
        transport: Transport::Tcp,
        ..account.clone()
    };
    let unix = Options {
        transport: Transport::Unix,
        ..account
    };
    [tcp, unix]
}
