//! `porpoise serve`: options, the data folder, the listeners, and a clean end.
//!
//! 1. Option files and the command line, the way mysqld reads them (`porpoise_server::options`).
//! 2. The error log begins (`log_error`).
//! 3. The engine opens the folder; a folder that another server has open is refused, with that
//!    server's process.
//! 4. The server listens. One line says that it is ready, and where.
//! 5. SIGTERM, SIGINT or a client's SHUTDOWN: statements end, connections close, a checkpoint is
//!    written.

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::server_files::{ErrorLog, PidFile, host_name, place};
use porpoise_engine::variables::{self, parse_size};
use porpoise_engine::{Engine, EngineOptions};
use porpoise_server::options::{KnownOptions, OptionError, OptionKind, Options};
use porpoise_server::{InstanceSocket, Server, ServerOptions};
use porpoise_storage::Location;
use porpoise_transport::shared_memory;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing_subscriber::fmt::MakeWriter;

const HELP: &str = "\
Serve a database to MySQL clients

Usage: porpoise serve [OPTIONS]

Options:
      --datadir=FOLDER        Where the data lies; made if it isn't there [default: ./porpoise-data]
                              `:memory:` keeps nothing
      --port=PORT             TCP port, 0 for any free one [default: 3306]
      --bind-address=ADDRESS  TCP address; several with commas, * for all [default: 127.0.0.1]
      --skip-networking       No TCP at all
      --socket=PATH           Unix socket; empty for none [default: /run/mysqld/mysqld.sock, or /tmp/mysql.sock]
      --skip-shared-memory    No shared memory; Linux only, on by default
      --shared-memory-base-name=NAME
                              Shared memory is offered at a Unix socket of its own, SOCKET.NAME [default: MYSQL]
      --defaults-file=FILE    Read options from this file only
      --defaults-extra-file=FILE
                              Read options from this file too
      --no-defaults           Read no option file
      --print-defaults        Print the options in force and exit
      --VARIABLE=VALUE        Set a system variable, as SET GLOBAL would: --max-connections=500,
                              --innodb-flush-log-at-trx-commit=2, --skip-name-resolve, --loose-…
  -?, --help                  Print this
  -V, --version               Print the version

Option files: /etc/porpoise.cnf and ~/.porpoise.cnf, in the format of my.cnf, groups [client-server], [mysqld],
[server], [mariadb], [mariadbd] and [porpoise]. Options of MySQL and MariaDB that Porpoise has no use for do no
harm: a warning names them.

A fresh folder has one account, root@localhost. It is let in over the Unix socket when the client's user is the
one that runs the server, or the machine's root; over TCP once it has a password.
";

const GROUPS: &[&str] = &[
    "client-server",
    "mysqld",
    "mysqld-8.4",
    "server",
    "mariadb",
    "mariadbd",
    "porpoise",
];
const DEFAULT_FILES: &[&str] = &["/etc/porpoise.cnf", "~/.porpoise.cnf"];
const DEFAULT_PORT: u64 = 3306;
/// The value of `log_error` for a log that is no file.
const STDERR: &str = "stderr";
/// The longest path that a Unix socket can have.
const SOCKET_PATH_MAX: usize = 107;

/// Options that are the program's own, beside the system variables.
const OWN_OPTIONS: &[(&str, OptionKind)] = &[
    ("defaults_extra_file", OptionKind::Value),
    ("defaults_file", OptionKind::Value),
    ("help", OptionKind::Switch),
    ("networking", OptionKind::Switch),
    ("no_defaults", OptionKind::Switch),
    ("print_defaults", OptionKind::Switch),
    ("verbose", OptionKind::Switch),
    ("version", OptionKind::Switch),
];

/// Exit code of mysqld for options it doesn't understand and for a start that failed.
const REFUSED: u8 = 1;

pub fn run(words: Vec<String>) -> ExitCode {
    let words = match spell_out_letters(words) {
        Ok(words) => words,
        Err(code) => return code,
    };
    match serve(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!("{why}");
            eprintln!("porpoise: {why}");
            ExitCode::from(REFUSED)
        }
    }
}

/// What a log in a file tells beside warnings and errors: when the server starts and ends. Where it
/// is stderr, stdout tells the former.
const SYSTEM: &str = "system";

/// Warnings and errors to stderr; `RUST_LOG` asks for more.
pub fn start_log() {
    start_log_to(std::io::stderr, "warn");
}

fn start_log_to(writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static, level: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    // A second start in one process keeps the first one's.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        // It would be told on stderr, by the macro that panics where nobody reads that.
        .log_internal_errors(false)
        .with_target(false)
        .compact()
        .try_init();
}

/// Begins the log that `log_error` names. Returned is what the variable is to show.
fn start_error_log(options: &Options, data: Option<&Path>) -> Result<String, String> {
    let path = match options.get("log_error").unwrap_or(STDERR) {
        STDERR | "OFF" => {
            start_log();
            return Ok(STDERR.to_string());
        }
        // Without a value, it is named for the machine.
        "" | "ON" => place(&format!("{}.err", host_name()), data),
        path => place(path, data),
    };
    // The log of a fresh folder begins before the database does.
    if let Some(folder) = path.parent().filter(|folder| Some(*folder) == data) {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("can't make {}: {error}", folder.display()))?;
    }
    let shown = path.display().to_string();
    start_log_to(ErrorLog::open(path)?, &format!("warn,{SYSTEM}=info"));
    tracing::info!(target: SYSTEM, "{} starting as process {}", program(), std::process::id());
    Ok(shown)
}

/// The program's name and version.
fn program() -> String {
    format!(
        "porpoise {} (as MySQL {})",
        env!("CARGO_PKG_VERSION"),
        porpoise_server::SERVER_VERSION
    )
}

/// The single letters that mysqld knows, as their long names. Help and version end the program.
fn spell_out_letters(words: Vec<String>) -> Result<Vec<String>, ExitCode> {
    let mut long = Vec::with_capacity(words.len());
    for word in words {
        match word.as_str() {
            "-?" | "-h" | "--help" | "--verbose" => {
                print!("{HELP}");
                return Err(ExitCode::SUCCESS);
            }
            "-V" | "--version" => {
                println!("{}", program());
                return Err(ExitCode::SUCCESS);
            }
            "-P" => long.push("--port".to_string()),
            "-u" => long.push("--user".to_string()),
            _ => long.push(word),
        }
    }
    Ok(long)
}

fn known(name: &str) -> Option<(String, OptionKind)> {
    let own = OWN_OPTIONS.iter().find(|(own, _)| *own == name).copied();
    let (name, kind) = own.or_else(|| variables::option(name))?;
    Some((name.to_string(), kind))
}

/// Option files first, so that the command line overrules them.
fn read_options(words: Vec<String>, known: &dyn KnownOptions) -> Result<Options, OptionError> {
    let mut command_line = Options::default();
    command_line.read_arguments(words.clone(), known)?;
    let mut options = Options::default();
    if let Some(file) = command_line.get("defaults_file") {
        options.read_file(Path::new(file), GROUPS, true, known)?;
    } else if command_line.get("no_defaults").is_none() {
        for file in DEFAULT_FILES {
            if let Some(path) = expand_home(file) {
                options.read_file(&path, GROUPS, false, known)?;
            }
        }
    }
    if let Some(file) = command_line.get("defaults_extra_file") {
        options.read_file(Path::new(file), GROUPS, true, known)?;
    }
    options.read_arguments(words, known)?;
    for name in ["defaults_file", "defaults_extra_file", "no_defaults"] {
        options.take(name);
    }
    Ok(options)
}

fn expand_home(file: &str) -> Option<PathBuf> {
    match file.strip_prefix("~/") {
        Some(rest) => Some(PathBuf::from(std::env::var_os("HOME")?).join(rest)),
        None => Some(PathBuf::from(file)),
    }
}

/// What the options say beside system variables, which stay among them.
struct ServeConfig {
    location: Location,
    server: ServerOptions,
    base_name: String,
}

impl ServeConfig {
    /// The data folder; `None` for a database in memory.
    fn data(&self) -> Option<&Path> {
        match &self.location {
            Location::Memory => None,
            Location::Path(path) => Some(path),
        }
    }
}

fn config_of(options: &mut Options) -> Result<ServeConfig, String> {
    let folder = options.get("datadir").unwrap_or("porpoise-data");
    let location = match folder {
        ":memory:" => Location::Memory,
        folder => Location::Path(PathBuf::from(folder)),
    };
    let whole = |name: &str, default: u64| match options.get(name) {
        None => Ok(default),
        Some(text) => parse_size(text)
            .ok_or_else(|| format!("Unknown suffix or value '{text}' used for variable '{name}'")),
    };
    let port = u16::try_from(whole("port", DEFAULT_PORT)?)
        .map_err(|_| "a port is at most 65535".to_string())?;
    let workers = usize::try_from(whole("worker_threads", 0)?).unwrap_or(0);
    let off = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "off" | "0" | "false");
    let networking = !options.get("networking").is_some_and(off)
        && options.get("skip_networking").is_none_or(off);
    let addresses = options.get("bind_address").unwrap_or("127.0.0.1");
    let tcp = if networking {
        resolve(addresses, port)?
    } else {
        Vec::new()
    };
    let socket = match options.get("socket") {
        Some("") => None,
        Some(path) => Some(PathBuf::from(path)),
        None => Some(default_socket()),
    };
    let base_name = options
        .get("shared_memory_base_name")
        .unwrap_or(shared_memory::BASE_NAME)
        .to_string();
    let shared_memory = match options.get("shared_memory") {
        Some(value) if off(value) => None,
        None if !cfg!(target_os = "linux") => None,
        _ if base_name.contains('/') => Some(PathBuf::from(&base_name)),
        _ => socket
            .as_deref()
            .map(|socket| shared_memory::path_of(socket, &base_name)),
    };
    // A long folder's name is a reason not to start only if shared memory was asked for.
    let is_asked_for = options.get("shared_memory").is_some();
    let shared_memory = shared_memory.filter(|path| {
        let fits = path.as_os_str().len() <= SOCKET_PATH_MAX;
        if !fits && !is_asked_for {
            tracing::warn!(
                "no shared memory: '{}' is too long for a socket",
                path.display()
            );
        }
        fits || is_asked_for
    });
    options.take("networking");
    Ok(ServeConfig {
        location,
        server: ServerOptions {
            tcp,
            socket,
            shared_memory,
            instance_socket: None,
            workers,
            when_idle: Some(crate::give_memory_back),
            ..ServerOptions::default()
        },
        base_name,
    })
}

fn resolve(addresses: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let mut resolved = Vec::new();
    for address in addresses
        .split(',')
        .map(str::trim)
        .filter(|address| !address.is_empty())
    {
        let address = if address == "*" { "::" } else { address };
        let found = (address, port)
            .to_socket_addrs()
            .map_err(|error| format!("can't resolve the bind address '{address}': {error}"))?;
        resolved.extend(found.take(1));
    }
    Ok(resolved)
}

/// Where this machine's clients look first, if that folder is ours to write.
fn default_socket() -> PathBuf {
    let folder = Path::new("/run/mysqld");
    let ours = tempfile::Builder::new()
        .prefix(".porpoise")
        .tempfile_in(folder)
        .is_ok();
    if ours {
        folder.join("mysqld.sock")
    } else {
        PathBuf::from("/tmp/mysql.sock")
    }
}

/// As many file descriptors as the system lets this process have, or `wanted`, which only the
/// machine's root may have if it is more. Told is how many there are then.
pub fn raise_descriptor_limit(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map(|most| most.max(wanted));
    for maximum in [most, limit.maximum] {
        let raised = Rlimit {
            current: maximum,
            maximum,
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => break,
            Err(_) if maximum != limit.maximum => {}
            // It goes on with what it has: then some clients can't be let in.
            Err(error) => tracing::warn!("can't have more open files: {error}"),
        }
    }
    let current = getrlimit(Resource::Nofile).current;
    current.unwrap_or(i64::MAX as u64)
}

fn serve(words: Vec<String>) -> Result<(), String> {
    let mut options = read_options(words, &known).map_err(|error| error.to_string())?;
    if options.get("print_defaults").is_some() {
        print_options(options);
        return Ok(());
    }
    let config = config_of(&mut options)?;
    let log_error = start_error_log(&options, config.data())?;
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    let served = serve_with(config, options, &log_error);
    if let Err(why) = &served
        && log_error != STDERR
    {
        tracing::error!("{why}");
    }
    served
}

/// Opens the database, and serves it until it is asked to stop.
fn serve_with(config: ServeConfig, options: Options, log_error: &str) -> Result<(), String> {
    let data = config.data().map(Path::to_path_buf);
    let folder = data
        .as_ref()
        .map_or_else(|| "memory".to_string(), |path| path.display().to_string());
    let pid_path = options.get("pid_file").filter(|path| !path.is_empty());
    let pid_path = pid_path.map(|path| place(path, data.as_deref()));
    let wanted = options.get("open_files_limit").and_then(parse_size);
    let wanted = wanted.unwrap_or(0);
    let mut variables = options.into_pairs();
    let log_file = |end| format!("{}{end}", host_name());
    for (name, value) in [
        ("general_log_file", log_file(".log")),
        ("slow_query_log_file", log_file("-slow.log")),
        // A server that isn't told how names compare says so: a folder made otherwise is refused.
        ("lower_case_table_names", "0".to_string()),
    ] {
        if !variables.iter().any(|(given, _)| given == name) {
            variables.push((name.to_string(), value));
        }
    }
    let engine_options = EngineOptions {
        location: config.location,
        variables,
    };
    let open_files = raise_descriptor_limit(wanted);
    if open_files < wanted {
        tracing::warn!(
            "Could not increase number of max_open_files to more than {open_files} (request: {wanted})"
        );
    }
    let engine = Engine::open(engine_options).map_err(|error| error.cause().to_string())?;
    for warning in &engine.variables().start_up_warnings {
        tracing::warn!("{warning}");
    }
    // Before the server starts, which makes its certificates there; in memory there is no such place.
    let on_disk = data.as_ref().map_or(String::new(), |_| folder.clone());
    engine.variables().learn("datadir", &on_disk);
    let mut server_options = config.server;
    // Programs that open the folder come here instead. It is served without them as well.
    server_options.instance_socket = data.and_then(|folder| open_to_programs(&folder));
    let server =
        Server::start(engine.clone(), &server_options).map_err(|error| error.to_string())?;
    let pid_file = pid_path.map(PidFile::write).transpose()?;
    let facts = [
        ("datadir", folder.clone()),
        ("hostname", host_name()),
        ("log_error", log_error.to_string()),
        ("open_files_limit", open_files.to_string()),
        ("shared_memory_base_name", config.base_name),
    ];
    publish_variables(&engine, &server, facts);
    if let Some(pid_file) = &pid_file {
        engine.variables().learn("pid_file", &pid_file.to_string());
    }
    obey_signals(&server, engine.clone())?;
    announce(&server, &folder);
    server.wait();
    server.stop();
    drop(pid_file);
    engine
        .close()
        .map_err(|error| format!("can't close {folder}: {}", error.message()))?;
    tracing::info!(target: SYSTEM, "{}: shutdown complete", program());
    Ok(())
}

fn print_options(options: Options) {
    for (name, value) in options.into_pairs() {
        if name != "print_defaults" {
            println!("--{}={value}", name.replace('_', "-"));
        }
    }
}

/// The socket in a folder for programs that open it.
fn open_to_programs(folder: &Path) -> Option<Arc<InstanceSocket>> {
    match InstanceSocket::open(folder) {
        Ok(instance_socket) => Some(Arc::new(instance_socket)),
        Err(error) => {
            tracing::warn!(
                "other programs can't come in at {}: {error}",
                folder.display()
            );
            None
        }
    }
}

/// Has the variables of what was asked for show what there is.
fn publish_variables<const N: usize>(engine: &Engine, server: &Server, facts: [(&str, String); N]) {
    let port = server.tcp_addresses().first().map_or(0, SocketAddr::port);
    let socket = server
        .socket_path()
        .map_or_else(String::new, |path| path.display().to_string());
    let shared_memory = u8::from(server.shared_memory_path().is_some());
    for (name, value) in facts.into_iter().chain([
        ("port", port.to_string()),
        ("socket", socket),
        ("shared_memory", shared_memory.to_string()),
    ]) {
        engine.variables().learn(name, &value);
    }
}

/// SIGTERM and SIGINT stop the server; the second of them ends the process at once. SIGHUP opens
/// the logs anew.
fn obey_signals(server: &Server, engine: Engine) -> Result<(), String> {
    let stopper = server.stopper();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| format!("can't watch signals: {error}"))?;
    std::thread::spawn(move || {
        let mut asked = false;
        for signal in signals.forever() {
            if signal == SIGHUP {
                engine.variables().reopen_logs();
                continue;
            }
            if asked {
                // Asked twice: what is committed is safe without a clean end.
                std::process::exit(i32::from(REFUSED));
            }
            asked = true;
            stopper.stop();
        }
    });
    Ok(())
}

/// Prints the line that says that the server is ready, and where.
fn announce(server: &Server, folder: &str) {
    let mut places: Vec<String> = server
        .tcp_addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    places.extend(server.socket_path().map(|path| path.display().to_string()));
    places.extend(
        server
            .shared_memory_path()
            .map(|path| format!("{} (shared memory)", path.display())),
    );
    let ready = format!(
        "ready for connections on {} (data in {folder})",
        places.join(" and ")
    );
    tracing::info!(target: SYSTEM, "{}: {ready}", program());
    println!("porpoise {}: {ready}", env!("CARGO_PKG_VERSION"));
    // Whoever started it may have closed the other end.
    let _ = std::io::stdout().flush();
}
