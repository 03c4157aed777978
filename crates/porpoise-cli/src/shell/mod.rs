//! `porpoise sql`: a shell like `mysql`, over every way in, and on a folder or memory without any
//! server.
//!
//! ```text
//!   terminal ─► Editor ─┐
//!   stdin, -e ──────────┼─► Input: statements, commands ─► Shell ─► porpoise_client ─► output: box, \G, tabs
//!   source FILE ────────┘
//! ```
//!
//! At a terminal it asks line by line and shows rows in boxes, with their number and time.
//! Otherwise it runs what comes on stdin, shows rows separated by tabs, and ends at the first error
//! with exit code 1, as `mysql` does.

mod commands;
mod editor;
mod input;
mod names;
mod output;
mod password;
mod server;
mod target;

use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use clap::Args;
use parking_lot::Mutex;
use porpoise_client::{Connection, Error};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use commands::{Action, Command};
use editor::{Editor, Typed};
use input::{Input, Item};
use names::Names;
use output::{Failure, Form, Output, Style};
use server::ServerOptions;
pub use server::spelled_out;
use target::Target;

#[derive(Args)]
pub struct SqlOptions {
    /// A folder, `:memory:` (the default), or the URL of a server:
    /// mysql://user:password@host:port/database?transport=…
    ///
    /// With a server's options, a URL, or the database to use
    target: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
    /// Run these statements and exit
    #[arg(short, long, value_name = "SQL")]
    execute: Option<String>,
    /// Rows separated by tabs, no prompt, no history
    #[arg(short = 'B', long)]
    batch: bool,
    /// Rows in boxes, also where nobody looks
    #[arg(short, long)]
    table: bool,
    /// A line a value
    #[arg(short = 'E', long)]
    vertical: bool,
    /// Leave out the names of columns
    #[arg(short = 'N', long)]
    skip_column_names: bool,
    /// Go on after an error
    #[arg(short, long)]
    force: bool,
    /// Say how many rows, and how long, also where nobody looks
    #[arg(short, long)]
    verbose: bool,
    /// Database to use
    #[arg(short = 'D', long)]
    database: Option<String>,
    /// What statements end with
    #[arg(long, default_value = ";")]
    delimiter: String,
    /// Print help
    #[arg(short = '?', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

pub fn run(options: &SqlOptions) -> ExitCode {
    crate::serve::start_log();
    let interactive = options.execute.is_none() && !options.batch && std::io::stdin().is_terminal();
    let for_people = std::io::stdout().is_terminal() && !options.batch;
    let style = Style {
        form: match options {
            SqlOptions { vertical: true, .. } => Form::Vertical,
            SqlOptions { table: true, .. } => Form::Box,
            _ if for_people && (interactive || options.execute.is_some()) => Form::Box,
            _ => Form::Tabs,
        },
        names: !options.skip_column_names,
        hexadecimal: for_people,
        summary: interactive || options.verbose,
    };
    let mut shell = match Shell::open(options, style, interactive) {
        Ok(shell) => shell,
        Err(error) => {
            eprintln!("{}", words(&error, None));
            return ExitCode::FAILURE;
        }
    };
    let ended = if interactive {
        shell.talk()
    } else if let Some(text) = &options.execute {
        shell.run_text(text)
    } else {
        shell.run_lines(std::io::stdin().lock())
    };
    match ended {
        Ok(()) | Err(End::Asked) => ExitCode::SUCCESS,
        Err(End::Failed) => ExitCode::FAILURE,
    }
}

/// Why the shell goes no further.
enum End {
    Asked,
    Failed,
}

/// An error as `mysql` words it; in a script with its line.
fn words(error: &Error, line: Option<usize>) -> String {
    let at = line.map_or(String::new(), |line| format!(" at line {line}"));
    match error {
        Error::Server {
            number,
            sqlstate,
            message,
        } => format!(
            "ERROR {number} ({}){at}: {message}",
            String::from_utf8_lossy(sqlstate)
        ),
        Error::Io(_) => format!("ERROR 2013 (HY000){at}: Lost connection to server during query"),
        Error::Closed => format!("ERROR 2006 (HY000){at}: Server has gone away"),
        Error::Tls(_) | Error::Compression => error.to_string(),
        error => format!("ERROR{at}: {error}"),
    }
}

/// What a connection is encrypted with, in `mysql`'s words.
fn encryption(connection: &Connection) -> String {
    match connection.tls() {
        Some(session) => format!("Cipher in use is {}, {}", session.cipher, session.version),
        None => "Not in use".to_string(),
    }
}

/// An error of connecting.
fn unreachable(error: Error) -> Error {
    match error {
        Error::Io(error) => Error::Server {
            number: 2002,
            sqlstate: *b"HY000",
            message: format!("Can't connect to server ({error})"),
        },
        error => error,
    }
}

struct Shell {
    target: Arc<Target>,
    connection: Option<Connection>,
    database: Option<String>,
    style: Style,
    interactive: bool,
    force: bool,
    shows_warnings: bool,
    delimiter: String,
    names: Arc<Mutex<Names>>,
    output: Output,
    /// The connection whose statement runs, for Ctrl-C to kill; 0 for none.
    running: Arc<AtomicU32>,
    /// Files that `source` is in the middle of.
    depth: usize,
}

/// `source` inside of sourced files.
const SOURCE_DEPTH_MAX: usize = 64;

impl Shell {
    fn open(options: &SqlOptions, style: Style, interactive: bool) -> Result<Shell, Error> {
        let target = Target::open(options.target.as_deref(), &options.server)?;
        let database = options
            .database
            .clone()
            .or_else(|| target.options().database.clone());
        let mut shell = Shell {
            target: Arc::new(target),
            connection: None,
            database,
            style,
            interactive,
            force: options.force,
            shows_warnings: false,
            delimiter: options.delimiter.clone(),
            names: Arc::default(),
            output: Output { tee: None },
            running: Arc::default(),
            depth: 0,
        };
        shell.connect()?;
        Ok(shell)
    }

    fn connect(&mut self) -> Result<(), Error> {
        self.connection = None;
        let connected = self.target.connect(self.database.as_deref());
        self.connection = Some(connected.map_err(unreachable)?);
        Ok(())
    }

    // ── where text comes from ───────────────────────────────────────────────────────────────────

    /// Asks a person, until there is no more.
    fn talk(&mut self) -> Result<(), End> {
        self.kill_on_interrupt();
        self.greet();
        self.rehash();
        let delimiter = Arc::new(Mutex::new(self.delimiter.clone()));
        let mut editor = Editor::new(self.names.clone(), delimiter.clone());
        loop {
            let typed = editor.read().map_err(|error| {
                eprintln!("porpoise: can't read from the terminal: {error}");
                End::Failed
            })?;
            let text = match typed {
                Typed::Text(text) => text,
                Typed::Dropped => continue,
                Typed::End => {
                    self.say("Bye\n");
                    return Ok(());
                }
            };
            let mut input = Input::new(&self.delimiter);
            for line in text.split('\n') {
                match self.take_line(&mut input, line) {
                    Err(End::Asked) => {
                        self.say("Bye\n");
                        return Err(End::Asked);
                    }
                    // A person sees what failed, and goes on.
                    Ok(()) | Err(End::Failed) => {}
                }
            }
            delimiter.lock().clone_from(&self.delimiter);
        }
    }

    fn greet(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let text = format!(
            "Welcome to Porpoise.  Commands end with {} or \\g.\n\
             Your connection id is {}, over {}\n\
             Server version: {}\n\n\
             Type 'help;' or '\\h' for help. Type '\\c' to clear the current input statement.\n\n",
            self.delimiter,
            connection.id(),
            self.target.describe(connection),
            connection.server_version()
        );
        self.say(&text);
    }

    fn run_text(&mut self, text: &str) -> Result<(), End> {
        let mut input = Input::new(&self.delimiter);
        for line in text.lines() {
            self.take_line(&mut input, line)?;
        }
        self.take(&mut input, Input::finish)
    }

    fn run_lines(&mut self, mut lines: impl BufRead) -> Result<(), End> {
        let mut input = Input::new(&self.delimiter);
        let mut line = Vec::new();
        loop {
            line.clear();
            // A script need not be text throughout: what isn't reaches the server as well as it
            // can.
            match lines.read_until(b'\n', &mut line) {
                Ok(0) => return self.take(&mut input, Input::finish),
                Ok(_) => {}
                Err(error) => {
                    eprintln!("porpoise: can't read: {error}");
                    return Err(End::Failed);
                }
            }
            let text = String::from_utf8_lossy(&line);
            self.take_line(&mut input, text.trim_end_matches(['\n', '\r']))?;
        }
    }

    fn take_line(&mut self, input: &mut Input, line: &str) -> Result<(), End> {
        input.delimiter.clone_from(&self.delimiter);
        self.take(input, |input| input.feed(line))
    }

    fn take(
        &mut self,
        input: &mut Input,
        items: impl Fn(&mut Input) -> Vec<Item>,
    ) -> Result<(), End> {
        for item in items(input) {
            let done = match item {
                Item::Statement {
                    sql,
                    vertical,
                    line,
                } => self.run_statement(&sql, vertical, line),
                Item::Command {
                    command,
                    argument,
                    line,
                } => self.obey(command, &argument, line, input),
                Item::Unknown { letter, line } => {
                    self.complain(&format!("Unknown command '\\{letter}'."), line);
                    Ok(())
                }
            };
            match done {
                Err(End::Failed) if self.force || self.interactive => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Says what is wrong with a command; in a script with its line.
    fn complain(&self, what: &str, line: usize) {
        match self.interactive {
            true => eprintln!("ERROR: {what}"),
            false => eprintln!("ERROR at line {line}: {what}"),
        }
    }

    // ── statements ──────────────────────────────────────────────────────────────────────────────

    fn run_statement(&mut self, sql: &str, vertical: bool, line: usize) -> Result<(), End> {
        let lost = self.connection.as_ref().is_none_or(Connection::is_broken);
        if lost {
            if !self.interactive {
                return self.fail(&Error::Closed, line);
            }
            eprintln!("No connection. Trying to reconnect...");
            if let Err(error) = self.connect() {
                return self.fail(&error, line);
            }
        }
        let Some(mut connection) = self.connection.take() else {
            return self.fail(&Error::Closed, line);
        };
        self.running.store(connection.id(), Ordering::SeqCst);
        let shown = self.show(&mut connection, sql, vertical);
        self.running.store(0, Ordering::SeqCst);
        self.connection = Some(connection);
        match shown {
            Ok(()) => {}
            Err(Failure::Server(error)) => return self.fail(&error, line),
            // Nobody reads on, as `| head` doesn't.
            Err(Failure::Output) => return Err(End::Asked),
        }
        if let Some(name) = sql
            .get(..4)
            .filter(|word| word.eq_ignore_ascii_case("use "))
        {
            let name = sql[name.len()..].trim().trim_matches('`');
            self.database = Some(name.to_string());
        }
        if self.interactive && changes_names(sql) {
            self.rehash();
        }
        Ok(())
    }

    /// Runs a statement and shows all of its results.
    fn show(
        &mut self,
        connection: &mut Connection,
        sql: &str,
        vertical: bool,
    ) -> Result<(), Failure> {
        let mut style = self.style;
        if vertical {
            style.form = Form::Vertical;
        }
        let mut began = Instant::now();
        let mut results = connection.query(sql)?;
        let mut warnings;
        loop {
            let summary = if results.columns().is_empty() {
                output::done_summary(results.outcome(), began.elapsed())
            } else {
                let count = output::rows(&mut results, style, &mut self.output)?;
                output::rows_summary(count, results.outcome(), began.elapsed())
            };
            warnings = results.outcome().warnings;
            if style.summary {
                self.output.write_all(summary.as_bytes())?;
            }
            began = Instant::now();
            if !results.next_result()? {
                break;
            }
        }
        if self.shows_warnings && warnings > 0 {
            for row in connection.rows("SHOW WARNINGS")?.to_text() {
                if let [level, number, message] = &row[..] {
                    writeln!(self.output, "{level} (Code {number}): {message}")?;
                }
            }
        }
        self.output.flush()?;
        Ok(())
    }

    /// Tells of an error, which ends everything but a conversation.
    fn fail(&mut self, error: &Error, line: usize) -> Result<(), End> {
        // What was shown before it comes before it.
        let _ = self.output.flush();
        if self.interactive {
            self.say(&format!("{}\n", words(error, None)));
        } else {
            eprintln!("{}", words(error, Some(line)));
        }
        Err(End::Failed)
    }

    fn say(&mut self, text: &str) {
        // A terminal that is gone ends the shell when it is read from.
        let _ = self.output.write_all(text.as_bytes());
        let _ = self.output.flush();
    }

    // ── commands ────────────────────────────────────────────────────────────────────────────────

    fn obey(
        &mut self,
        command: &Command,
        argument: &str,
        line: usize,
        input: &mut Input,
    ) -> Result<(), End> {
        match command.action {
            Action::Help => self.say(&commands::help()),
            Action::Clear => input.clear(),
            // There is nothing to send: the statement has ended before.
            Action::Go { .. } => {}
            Action::Quit => return Err(End::Asked),
            Action::Delimiter if argument.is_empty() => {
                self.complain(
                    "DELIMITER must be followed by a 'delimiter' character or string",
                    line,
                );
            }
            Action::Delimiter if argument.contains('\\') => {
                self.complain("DELIMITER cannot contain a backslash character", line);
            }
            Action::Delimiter => {
                self.delimiter = argument.to_string();
                input.delimiter = argument.to_string();
            }
            Action::Warnings(on) => {
                self.shows_warnings = on;
                self.say(if on {
                    "Show warnings enabled.\n"
                } else {
                    "Show warnings disabled.\n"
                });
            }
            Action::Print => {
                let text = format!(
                    "--------------\n{}\n--------------\n\n",
                    input.text().trim()
                );
                self.say(&text);
            }
            Action::Rehash => self.rehash(),
            Action::Source => return self.source(argument),
            Action::Status => return self.status(line),
            Action::System => self.system(argument),
            Action::Tee(true) => self.tee(argument),
            Action::Tee(false) => self.output.tee = None,
            Action::Use => return self.use_database(argument, line),
            Action::Connect => {
                if !argument.is_empty() {
                    self.database = argument.split_whitespace().next().map(Into::into);
                }
                if let Err(error) = self.connect() {
                    return self.fail(&error, line);
                }
                let id = self.connection.as_ref().map_or(0, Connection::id);
                let database = self.database.as_deref().unwrap_or("*** NONE ***");
                let text = format!("Connection id:    {id}\nCurrent database: {database}\n\n");
                self.say(&text);
            }
            Action::ResetConnection => {
                let reset = self
                    .connection
                    .as_mut()
                    .map_or(Err(Error::Closed), Connection::reset);
                if let Err(error) = reset {
                    return self.fail(&error, line);
                }
            }
        }
        Ok(())
    }

    fn use_database(&mut self, name: &str, line: usize) -> Result<(), End> {
        if name.is_empty() {
            eprintln!("ERROR: USE must be followed by a database name");
            return Ok(());
        }
        let used = match &mut self.connection {
            Some(connection) => connection.init_db(name),
            None => Err(Error::Closed),
        };
        if let Err(error) = used {
            return self.fail(&error, line);
        }
        self.database = Some(name.to_string());
        if self.interactive {
            self.say("Database changed\n");
            self.rehash();
        }
        Ok(())
    }

    fn source(&mut self, file: &str) -> Result<(), End> {
        if self.depth >= SOURCE_DEPTH_MAX {
            eprintln!("ERROR: files source each other too deeply");
            return Err(End::Failed);
        }
        let mut text = Vec::new();
        let read = std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut text));
        if let Err(error) = read {
            eprintln!("ERROR: Failed to open file '{file}': {error}");
            return Err(End::Failed);
        }
        self.depth += 1;
        let ran = self.run_lines(&text[..]);
        self.depth -= 1;
        ran
    }

    fn system(&mut self, command: &str) {
        let status = std::process::Command::new("sh")
            .arg("-c")
            .arg(command)
            .status();
        if let Err(error) = status {
            eprintln!("ERROR: can't run sh: {error}");
        }
    }

    fn tee(&mut self, file: &str) {
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        match opened {
            Ok(opened) => {
                self.output.tee = Some(opened);
                self.say(&format!("Logging to file '{file}'\n"));
            }
            Err(error) => eprintln!("Error logging to file '{file}': {error}"),
        }
    }

    fn status(&mut self, line: usize) -> Result<(), End> {
        let Some(connection) = &mut self.connection else {
            return self.fail(&Error::Closed, line);
        };
        let asked = connection
            .rows("SELECT DATABASE(), USER(), @@character_set_client, @@version_comment")
            .and_then(|rows| Ok((rows.to_text(), connection.statistics()?)));
        let (rows, statistics) = match asked {
            Ok(asked) => asked,
            Err(error) => return self.fail(&error, line),
        };
        let row = rows.first().cloned().unwrap_or_default();
        let fact = |at: usize| row.get(at).map_or("", String::as_str);
        let facts = [
            ("Connection id", connection.id().to_string()),
            ("Current database", fact(0).replace("NULL", "")),
            ("Current user", fact(1).to_string()),
            ("SSL", encryption(connection)),
            ("Using delimiter", self.delimiter.clone()),
            (
                "Server version",
                format!("{} {}", connection.server_version(), fact(3)),
            ),
            ("Protocol version", "10".to_string()),
            ("Connection", self.target.describe(connection)),
            ("Client characterset", fact(2).to_string()),
            (
                "Compression",
                connection
                    .compression()
                    .map_or("Off".to_string(), |by| format!("On ({})", by.name())),
            ),
        ];
        let mut text = format!("--------------\nporpoise {}\n\n", env!("CARGO_PKG_VERSION"));
        for (name, value) in facts {
            text.push_str(&format!("{:<24}{value}\n", format!("{name}:")));
        }
        text.push_str(&format!("\n{statistics}\n--------------\n\n"));
        self.say(&text);
        Ok(())
    }

    /// Reads the names that completion knows. Without them it goes on as it was.
    fn rehash(&mut self) {
        let Some(connection) = self.connection.as_mut().filter(|c| !c.is_broken()) else {
            return;
        };
        match Names::read(connection) {
            Ok(names) => *self.names.lock() = names,
            Err(error) => tracing::debug!("no names to complete: {error}"),
        }
    }

    /// Has Ctrl-C end the statement that runs, by a connection of its own.
    fn kill_on_interrupt(&self) {
        let (running, target) = (self.running.clone(), self.target.clone());
        let Ok(mut signals) = Signals::new([SIGINT]) else {
            return;
        };
        std::thread::spawn(move || {
            for _ in signals.forever() {
                let id = running.load(Ordering::SeqCst);
                if id == 0 {
                    continue;
                }
                let killed = target
                    .connect(None)
                    .and_then(|mut connection| connection.run(format!("KILL QUERY {id}")));
                match killed {
                    Ok(_) => eprintln!("^C -- query aborted"),
                    Err(error) => eprintln!("^C -- the query can't be aborted: {error}"),
                }
            }
        });
    }
}

/// A statement after which other names may be there.
fn changes_names(sql: &str) -> bool {
    let word = sql.split_whitespace().next().unwrap_or_default();
    ["CREATE", "DROP", "ALTER", "RENAME", "USE"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}
