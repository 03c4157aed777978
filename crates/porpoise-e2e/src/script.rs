//! Scripts of several sessions, whose statements run in the order written: locks, isolation,
//! deadlocks, privileges.
//!
//! ```text
//! # A title, and why it matters.
//! CREATE TABLE account (id INT PRIMARY KEY, balance INT)   setup: a line that names no session
//! INSERT INTO account VALUES (1, 100)
//!
//! a: BEGIN
//! a: UPDATE account SET balance = 50 WHERE id = 1
//! b: UPDATE account SET balance = 70 WHERE id = 1 => waits
//! a: COMMIT
//! b => ok                                                  the outcome of the statement that waited
//! b: SELECT balance FROM account => 70
//! b: SELECT * FROM account WHERE id = 2 => no rows
//! b: INSERT INTO account VALUES (1, 1) => error 1062 (23000)
//! bob logs in                                              as that account, without a password
//! bob logs in as ann                                       as another account, on a new connection
//! b closes                                                 its connection is closed without COM_QUIT
//! [mariadb] a: SELECT VERSION() LIKE '%MariaDB%' => 1      a line for one product only
//! ```
//!
//! `=>` is followed by what must come back: `ok`, `waits`, `no rows`, `error N (SQLSTATE)`, or
//! rows, with values one space apart and `; ` between rows. Without it the statement must succeed
//! at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::server::{Product, Route, Server};
use crate::slt::{Pending, text};
use crate::wire::{Error, Reply, Wire};
use crate::{files_below, repository};

/// A statement without an answer after this long is taken to wait.
const WAITS_MILLISECONDS: u64 = 250;
/// A statement that doesn't wait answers sooner than this, however busy the machine is.
const ANSWER_SECONDS_MAX: u64 = 10;

struct Session {
    statements: Sender<String>,
    answers: Receiver<Result<Reply, Error>>,
    waiting: bool,
}

impl Session {
    fn start(mut wire: Wire) -> Session {
        let (statements, to_run) = channel::<String>();
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            for statement in to_run {
                if answer.send(wire.query(&statement)).is_err() {
                    break;
                }
            }
        });
        Session {
            statements,
            answers,
            waiting: false,
        }
    }
}

/// Runs a folder's scripts: those that `PORPOISE_SLT_FILTER` names, or all. Prints every failure.
///
/// # Panics
/// Unless exactly the pending scripts fail, or when there is none to run.
pub fn assert_passes(folder: &str, product: Product, route: Route) {
    let pending = Pending::read(folder);
    if product == Product::Porpoise && pending.is_everything() {
        println!("{product:?} over {route:?}: all scripts are pending");
        return;
    }
    let server = Server::start(product);
    let filter = std::env::var("PORPOISE_SLT_FILTER").unwrap_or_default();
    let mut files = files_below(&repository(folder), "txt");
    files.retain(|file| {
        filter
            .split_whitespace()
            .any(|word| file.ends_with(format!("{word}.txt")))
            || filter.is_empty()
    });
    assert!(!files.is_empty(), "no script is chosen");
    let mut wrong = 0;
    let mut passed = 0;
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let outcome = run_file(&server, route, file);
        passed += usize::from(outcome.is_ok());
        match (
            outcome,
            product == Product::Porpoise && pending.holds(&name),
        ) {
            (Ok(()), false) | (Err(_), true) => continue,
            (Ok(()), true) => println!("{name} passes: take it off {folder}/PENDING"),
            (Err(e), false) => println!("\n──── {name} on {product:?} over {route:?}\n{e}"),
        }
        wrong += 1;
    }
    println!(
        "\n{product:?} over {route:?}: {passed} of {} scripts pass",
        files.len()
    );
    assert_eq!(wrong, 0, "scripts that went wrong");
}

/// Runs one script in a database of its own.
///
/// # Errors
/// The line that failed, and what came back instead of what it expects.
pub fn run_file(server: &Server, route: Route, file: &Path) -> Result<(), String> {
    let name = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .replace('-', "_");
    let database = format!("script_{name}");
    let script = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let mut admin = server.connect(route, "").map_err(|e| e.to_string())?;
    let mut run = |sql: &str| {
        let reply = admin.query(sql);
        reply.map(drop).map_err(|e| format!("{sql}: {e}"))
    };
    run(&format!("DROP DATABASE IF EXISTS {database}"))?;
    run(&format!("CREATE DATABASE {database}"))?;
    run(&format!("USE {database}"))?;
    let mut sessions = Sessions {
        server,
        route,
        database: &database,
        open: BTreeMap::new(),
    };
    let outcome = run_lines(&script, &mut sessions, &mut run);
    drop(sessions);
    // A failed script may leave a transaction that ends with its connection, a moment later.
    let dropped = run(&format!("DROP DATABASE {database}"));
    outcome.and(dropped)
}

/// Runs a script's lines, up to the first that fails. `setup` runs those that name no session.
fn run_lines(
    script: &str,
    sessions: &mut Sessions<'_>,
    setup: &mut dyn FnMut(&str) -> Result<(), String>,
) -> Result<(), String> {
    let product = sessions.server.product.label();
    for (index, line) in script.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let labelled = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "));
        let line = match labelled {
            Some((label, _)) if label != product => continue,
            Some((_, rest)) => rest,
            None => line,
        };
        let done = match Step::parse(line) {
            Step::Setup(sql) => setup(sql),
            step => sessions.run(step),
        };
        done.map_err(|e| format!("line {}: {line}\n    {e}", index + 1))?;
    }
    match sessions.open.iter().find(|(_, session)| session.waiting) {
        Some((name, _)) => Err(format!("{name} still waits at the end")),
        None => Ok(()),
    }
}

/// The sessions of a script, by name.
struct Sessions<'s> {
    server: &'s Server,
    route: Route,
    database: &'s str,
    open: BTreeMap<String, Session>,
}

impl Sessions<'_> {
    fn run(&mut self, step: Step<'_>) -> Result<(), String> {
        match step {
            Step::Setup(sql) => Err(format!("{sql}: a session has to be named")),
            Step::Closes(session) => {
                self.open.remove(session);
                Ok(())
            }
            Step::LogsIn { session, account } => {
                let wire = self.server.log_in(self.route, account, self.database);
                let wire = wire.map_err(|e| e.to_string())?;
                self.open.insert(session.to_owned(), Session::start(wire));
                Ok(())
            }
            Step::Runs {
                session,
                sql,
                expected,
            } => self.named(session)?.run(sql, expected),
            Step::Answers { session, expected } => match self.open.get_mut(session) {
                Some(session) if session.waiting => session.answer(expected),
                _ => Err("no statement waits here".to_owned()),
            },
        }
    }

    /// The session of this name, opened now as root if there is none.
    fn named(&mut self, name: &str) -> Result<&mut Session, String> {
        if !self.open.contains_key(name) {
            let wire = self.server.connect(self.route, self.database);
            let session = Session::start(wire.map_err(|e| e.to_string())?);
            self.open.insert(name.to_owned(), session);
        }
        Ok(self
            .open
            .get_mut(name)
            .expect("the session was just put there"))
    }
}

impl Session {
    fn run(&mut self, sql: &str, expected: &str) -> Result<(), String> {
        if self.waiting {
            return Err("this session still waits".to_owned());
        }
        self.statements
            .send(sql.to_owned())
            .map_err(|_| "the session has ended".to_owned())?;
        if expected != "waits" {
            return self.answer(expected);
        }
        match self
            .answers
            .recv_timeout(Duration::from_millis(WAITS_MILLISECONDS))
        {
            Err(RecvTimeoutError::Timeout) => {
                self.waiting = true;
                Ok(())
            }
            Err(RecvTimeoutError::Disconnected) => Err("the session has ended".to_owned()),
            Ok(answer) => Err(format!("did not wait: {}", shown(&answer))),
        }
    }

    fn answer(&mut self, expected: &str) -> Result<(), String> {
        let answer = self
            .answers
            .recv_timeout(Duration::from_secs(ANSWER_SECONDS_MAX))
            .map_err(|_| format!("no answer in {ANSWER_SECONDS_MAX} s"))?;
        self.waiting = false;
        let actual = shown(&answer);
        let met = match expected {
            "" | "ok" => answer.is_ok(),
            e if e.starts_with("error") => actual
                .strip_prefix(e)
                .is_some_and(|rest| rest.starts_with(':') || rest.starts_with(' ')),
            rows => actual == rows,
        };
        if met {
            Ok(())
        } else {
            Err(format!("came back: {actual}"))
        }
    }
}

fn shown(answer: &Result<Reply, Error>) -> String {
    match answer {
        Err(Error::Server {
            number,
            sqlstate,
            message,
        }) => format!("error {number} ({sqlstate}): {message}"),
        Err(e) => e.to_string(),
        Ok(Reply::Done { .. }) => "ok".to_owned(),
        Ok(Reply::Rows { rows, .. }) if rows.is_empty() => "no rows".to_owned(),
        Ok(Reply::Rows { rows, .. }) => {
            let row = |row: &Vec<Option<Vec<u8>>>| {
                row.iter()
                    .map(|value| text(value.as_deref()))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            rows.iter().map(row).collect::<Vec<_>>().join("; ")
        }
    }
}

enum Step<'a> {
    Setup(&'a str),
    Runs {
        session: &'a str,
        sql: &'a str,
        expected: &'a str,
    },
    Answers {
        session: &'a str,
        expected: &'a str,
    },
    Closes(&'a str),
    LogsIn {
        session: &'a str,
        account: &'a str,
    },
}

impl<'a> Step<'a> {
    fn parse(line: &'a str) -> Step<'a> {
        let (step, expected) = line
            .rsplit_once("=>")
            .map_or((line, ""), |(s, e)| (s.trim(), e.trim()));
        let is_name = |word: &str| {
            !word.is_empty()
                && word
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        match step.split_once(':') {
            Some((session, sql)) if is_name(session) => Step::Runs {
                session,
                sql: sql.trim(),
                expected,
            },
            _ if is_name(step) => Step::Answers {
                session: step,
                expected,
            },
            _ => match step.split_once(' ') {
                Some((session, "closes")) if is_name(session) => Step::Closes(session),
                Some((session, "logs in")) if is_name(session) => Step::LogsIn {
                    session,
                    account: session,
                },
                Some((session, how)) if is_name(session) && how.starts_with("logs in as ") => {
                    Step::LogsIn {
                        session,
                        account: &how["logs in as ".len()..],
                    }
                }
                _ => Step::Setup(line),
            },
        }
    }
}
