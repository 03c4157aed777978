//! Servers under test: started, built from a revision, or found running.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fastrand::Rng;
use porpoise::Database;
use porpoise_client::{Connection, Options, TlsMode, Transport};

use super::interruptible::interruptible;
use crate::bench::connect_to_database;
use crate::experiment::{ServerKind, ServerSpec, WorkloadKind, WorkloadSpec};
use crate::lifeline::WorkFolder;
use crate::machine::{self, Fact};
use crate::serving::{CLIENTS_SCHEMA, Serving, prepare, routes_to};
use crate::{Error, Peer, Table, Way};

/// The log of a Porpoise.
const LOG: &str = "porpoise.log";
/// The last lines of a log that tell of a server's end.
const LAST_LINES: usize = 10;
/// How long a server may take to end once it has ended a connection.
const ENDING: Duration = Duration::from_millis(400);

/// What the tables of a workload are filled with.
#[derive(Clone, Copy)]
pub(super) struct Filling<'a> {
    pub workload: &'a WorkloadSpec,
    /// Of an OLTP workload.
    pub tables: &'a [Table],
    /// The same gives the same rows.
    pub seed: u64,
}

/// A server, with what was put into it.
pub(crate) struct RunningServer {
    process: Process,
    tcp: Options,
    unix: Options,
    embedded: Option<Embedded>,
    /// What holds tables that are as they were made: a workload's name, or the OLTP family's; each
    /// for the server, and for the embedded database.
    loaded: Vec<(bool, String)>,
}

enum Process {
    Porpoise(Serving),
    MariaDb(Peer),
    Elsewhere(Option<u32>),
}

/// A database in this process.
pub(crate) struct Embedded {
    /// Open as long as this is.
    _database: Database,
    options: Options,
}

impl RunningServer {
    /// Starts a server, which has its data in `folder`, for so many clients.
    pub(crate) fn start(spec: &ServerSpec, folder: &Path, clients: usize) -> Result<Self, Error> {
        std::fs::create_dir_all(folder)?;
        let failed = |doing: &str| {
            let (target, doing) = (spec.name.clone(), doing.to_owned());
            move |error| Error::Target {
                target,
                doing,
                error,
            }
        };
        let (process, [tcp, unix]) = match &spec.kind {
            ServerKind::Porpoise(_) | ServerKind::Revision { .. } => {
                let program = match &spec.kind {
                    ServerKind::Porpoise(program) => program.clone(),
                    ServerKind::Revision {
                        revision,
                        repository,
                    } => Some(build(revision, repository)?),
                    _ => None,
                };
                let log = folder.join(LOG);
                let serving = Serving::start(
                    program.as_deref(),
                    folder,
                    clients,
                    &spec.options,
                    Some(&log),
                )?;
                let mut root = serving.root().map_err(failed("connecting"))?;
                prepare(&mut root, &["localhost"])
                    .map_err(failed("making the clients' account"))?;
                let routes = routes_to(serving.port, &serving.socket);
                (Process::Porpoise(serving), routes)
            }
            ServerKind::MariaDb => {
                let peer = Peer::start(folder, clients, &spec.options)?;
                let mut root = peer.connect().map_err(failed("connecting"))?;
                prepare(&mut root, &["localhost", "%"])
                    .map_err(failed("making the clients' account"))?;
                let routes = routes_to(peer.port(), peer.socket());
                (Process::MariaDb(peer), routes)
            }
            ServerKind::Url(url) => {
                let mut options: Options = url.parse().map_err(failed("reading its URL"))?;
                // What is compared isn't encrypted, unless the URL says so.
                options.tls.mode.get_or_insert(TlsMode::Disabled);
                options
                    .database
                    .get_or_insert_with(|| CLIENTS_SCHEMA.into());
                connect_to_database(&options).map_err(failed("connecting"))?;
                let pid = options.socket.as_deref().and_then(process_behind);
                let way = |transport| Options {
                    transport,
                    ..options.clone()
                };
                let routes = [way(Transport::Tcp), way(Transport::Unix)];
                (Process::Elsewhere(pid), routes)
            }
        };
        Ok(Self {
            process,
            tcp,
            unix,
            embedded: None,
            loaded: Vec::new(),
        })
    }

    /// The server's process, if it is known.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.process {
            Process::Porpoise(serving) => Some(serving.pid()),
            Process::MariaDb(peer) => Some(peer.pid()),
            Process::Elsewhere(pid) => *pid,
        }
    }

    /// Ends a server that was started here, at once.
    pub(crate) fn kill(&mut self) {
        match &mut self.process {
            Process::Porpoise(serving) => serving.kill(),
            Process::MariaDb(peer) => peer.kill(),
            Process::Elsewhere(_) => {}
        }
    }

    /// How a server that was started here, with its data in `folder`, has ended, and its last words;
    /// nothing if it runs.
    pub(super) fn end_of(&mut self, folder: &Path) -> Option<String> {
        if matches!(self.process, Process::Elsewhere(_)) {
            return None;
        }
        let deadline = Instant::now() + ENDING;
        // Its connections end before the process does.
        let status = loop {
            match self.ended() {
                Some(status) => break status,
                None if Instant::now() > deadline => return None,
                None => std::thread::sleep(ENDING / 20),
            }
        };
        let logs = [folder.join(LOG), folder.join("mariadb.log")];
        let mut logs = logs.iter().filter_map(|log| std::fs::read(log).ok());
        let log = logs.next().unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        Some(format!("the server has ended ({status}) {last}"))
    }

    /// How a server that was started here has ended; nothing as long as it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        match &mut self.process {
            Process::Porpoise(serving) => serving.ended(),
            Process::MariaDb(peer) => peer.ended(),
            Process::Elsewhere(_) => None,
        }
    }

    /// How clients come in this way. The embedded database is opened when it is first asked for.
    pub(crate) fn options(
        &mut self,
        spec: &ServerSpec,
        way: Way,
        folder: &Path,
    ) -> Result<Options, Error> {
        if let Some(options) = way.route(&self.tcp, &self.unix) {
            return Ok(options);
        }
        if let Some(embedded) = &self.embedded {
            return Ok(embedded.options.clone());
        }
        let embedded = Embedded::open(&spec.name, &spec.options, &folder.join("embedded"))?;
        Ok(self.embedded.insert(embedded).options.clone())
    }

    /// The same for a workload's clients, whose tables may lie in a database of their own.
    pub(super) fn options_for(
        &mut self,
        spec: &ServerSpec,
        way: Way,
        workload: &WorkloadSpec,
        folder: &Path,
    ) -> Result<Options, Error> {
        let mut options = self.options(spec, way, folder)?;
        if let Some(own) = workload.database() {
            let clients = options.database.as_deref().unwrap_or(CLIENTS_SCHEMA);
            options.database = Some(format!("{clients}_{own}"));
        }
        if let WorkloadKind::Scenario(scenario) = &workload.kind {
            scenario.0.adapt(&mut options);
        }
        Ok(options)
    }

    /// Makes and fills the tables of a workload, unless they are there as they were made.
    pub(super) fn load(
        &mut self,
        way: Way,
        options: &Options,
        Filling {
            workload,
            tables,
            seed,
        }: Filling<'_>,
        stop: &AtomicBool,
        mut show: impl FnMut(&str),
    ) -> Result<(), Error> {
        let key = (way == Way::Embedded, set_of_tables(workload));
        if !self.loaded.contains(&key) {
            let failed = |error| Error::Target {
                target: format!("{way}"),
                doing: format!("making the tables of {}", workload.name),
                error,
            };
            let mut connection = connect_to_database(options).map_err(failed)?;
            match &workload.kind {
                WorkloadKind::Oltp(_) => {
                    let mut random = Rng::with_seed(seed);
                    let loaded = interruptible(&mut connection, options, stop, |connection| {
                        tables.iter().try_for_each(|table| {
                            let shown = |rows| show(&format!("{} of {} rows", rows, table.rows));
                            table.load(connection, &mut random, shown)
                        })
                    });
                    loaded.map_err(failed)?;
                }
                WorkloadKind::Scenario(scenario) => {
                    let scenario = &scenario.0;
                    let loaded = interruptible(&mut connection, options, stop, |connection| {
                        scenario.load(connection, seed, &mut show)
                    });
                    loaded.map_err(failed)?;
                }
                WorkloadKind::Sysbench(script) => {
                    show("prepare");
                    let failed = |what| Error::Plan(format!("sysbench {}: {what}", script.script));
                    script.prepare(options).map_err(failed)?;
                }
            }
            self.loaded.push(key.clone());
        }
        if workload.loads_for_each_run() {
            self.loaded.retain(|known| *known != key);
        }
        Ok(())
    }

    /// What it says of itself.
    pub(super) fn facts(&self, spec: &ServerSpec) -> Vec<Fact> {
        let mut facts = vec![("options".to_owned(), spec.options.join(" "))];
        let kind = match &spec.kind {
            ServerKind::Porpoise(None) => "this program".to_owned(),
            ServerKind::Porpoise(Some(program)) => program.display().to_string(),
            ServerKind::Revision { revision, .. } => format!("revision {revision}"),
            ServerKind::MariaDb => "MariaDB, installed".to_owned(),
            ServerKind::Url(_) => "runs already".to_owned(),
        };
        facts.push(("kind".to_owned(), kind));
        if let Some(pid) = self.pid() {
            let program = PathBuf::from(format!("/proc/{pid}/exe"));
            facts.extend(machine::fact_of_file("file", &program));
        }
        let told = self.tell("SELECT @@version, @@version_comment");
        if let Some([version, comment]) = told.first().map(Vec::as_slice) {
            facts.push(("version".to_owned(), format!("{version} {comment}")));
        }
        for name in [
            "innodb_flush_log_at_trx_commit",
            "sync_binlog",
            "innodb_buffer_pool_size",
        ] {
            if let Some([value]) = self
                .tell(&format!("SELECT @@{name}"))
                .first()
                .map(Vec::as_slice)
            {
                facts.push((name.to_owned(), value.clone()));
            }
        }
        facts
    }

    /// Empty if it doesn't answer, or hasn't got it.
    fn tell(&self, sql: &str) -> Vec<Vec<String>> {
        let options = match &self.process {
            Process::Elsewhere(_) if self.unix.socket.is_none() => &self.tcp,
            _ => &self.unix,
        };
        let connection = Connection::connect(options);
        let rows = connection.and_then(|mut connection| connection.rows(sql));
        rows.map(|rows| rows.to_text()).unwrap_or_default()
    }
}

/// Workloads that use the same tables have the same.
fn set_of_tables(workload: &WorkloadSpec) -> String {
    match &workload.kind {
        WorkloadKind::Oltp(_) => "oltp".to_owned(),
        _ => format!("of {}", workload.name),
    }
}

impl Embedded {
    /// Opens it with options as `porpoise serve` takes them.
    pub(crate) fn open(name: &str, options: &[String], folder: &Path) -> Result<Self, Error> {
        let failed = |error: porpoise::Error| {
            Error::Plan(format!("{name} embedded doesn't open: {}", error.message()))
        };
        let mut settings = Database::options().share(false);
        for option in options {
            let option = option.trim_start_matches('-');
            let (name, value) = option.split_once('=').unwrap_or((option, "ON"));
            settings = settings.set(name.replace('-', "_"), value);
        }
        let database = settings.open(folder).map_err(failed)?;
        porpoise::provide_to_clients();
        Ok(Self {
            _database: database,
            options: Options {
                transport: Transport::Embedded,
                folder: Some(folder.to_owned()),
                database: Some(CLIENTS_SCHEMA.into()),
                ..Options::default()
            },
        })
    }

    /// How clients in this process come in.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }
}

/// The process that listens at a Unix socket.
fn process_behind(socket: &Path) -> Option<u32> {
    let stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    let credentials = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
}

/// Whether there is a file that may be executed.
pub(crate) fn is_program(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What a command for a revision says, or why it failed.
fn said(revision: &str, command: &mut Command) -> Result<String, Error> {
    let failed = |what: String| Error::Plan(format!("revision {revision}: {what}"));
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("{command:?}: {error}")))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = words.lines().rev().take(12).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        return Err(failed(format!("{command:?}: {}", last.join("\n"))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn git(repository: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(arguments);
    command
}

/// The whole name of a revision's commit. Fails if the repository has none.
pub(crate) fn commit_of(revision: &str, repository: &Path) -> Result<String, Error> {
    let name = format!("{revision}^{{commit}}");
    let arguments = ["rev-parse", "--verify", "--end-of-options", &name];
    let here = repository.as_os_str().is_empty();
    let repository = if here { Path::new(".") } else { repository };
    said(revision, &mut git(repository, &arguments))
}

/// Builds Porpoise from a revision, unless that was done before, and gives the program. Builds lie
/// under the user's cache.
pub(crate) fn build(revision: &str, repository: &Path) -> Result<PathBuf, Error> {
    let failed = |what: String| Error::Plan(format!("revision {revision}: {what}"));
    let run = |command: &mut Command| said(revision, command);
    let git = |arguments: &[&str]| git(repository, arguments);
    let commit = commit_of(revision, repository)?;
    let cache =
        cache_folder().ok_or_else(|| failed("neither XDG_CACHE_HOME nor HOME is set".into()))?;
    let program = cache.join(&commit).join("porpoise");
    if program.is_file() {
        return Ok(program);
    }
    std::fs::create_dir_all(cache.join(&commit))?;
    let sources = WorkFolder::new("porpoise-lab")?;
    let tree = sources.path().join("sources");
    let place = tree.display().to_string();
    run(&mut git(&["worktree", "add", "--detach", &place, &commit]))?;
    let built = run(Command::new("cargo")
        .args([
            "build",
            "--release",
            "--package",
            "porpoise-cli",
            "--bin",
            "porpoise",
        ])
        .env("CARGO_TARGET_DIR", cache.join("target"))
        .current_dir(&tree));
    let removed = run(&mut git(&["worktree", "remove", "--force", &place]));
    built?;
    removed?;
    std::fs::copy(cache.join("target/release/porpoise"), &program)?;
    Ok(program)
}

fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))?;
    Some(cache.join("porpoise-lab"))
}
