//! The embedded database in a process of its own, which asks itself: whatever ends that process is a
//! finding, and the run goes on with another. Statements are made and asked in it, so each is a
//! function call.
//!
//! ```text
//! this process                                     its child
//!   Start, then Ask or Try ───── a line each ────► statement ─► database ─► reply, checked
//!   Progress, Found, Asked, Tried ◄───────────────────────────────┘
//!   shapes under way ◄──── a file, read when the child has ended
//! ```

use std::io::{self, BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use porpoise_client::{Connection, Options};
use serde::{Deserialize, Serialize};

use super::asker::{
    Asked, Asking, Counts, LOOK, Recipe, STUCK_LOOKS, Statements, Trial, UnderWay, VARIANTS,
    connect, oracle_options,
};
use super::reply::Fault;
use super::subject::{Look, Verdict};
use crate::Error;
use crate::runner::Embedded;

/// The file of shapes that are under way.
const UNDER_WAY: &str = "under-way";
/// Where the child's words go.
pub(super) const LOG: &str = "porpoise.log";
/// How often the child tells of its progress.
const PROGRESS: Duration = Duration::from_millis(500);
/// How long a child may take to open its database.
const START_MAX: Duration = Duration::from_secs(60);

/// The first line to the child.
#[derive(Serialize, Deserialize)]
struct Start {
    recipe: Recipe,
    /// Of the database, as `porpoise serve` takes them.
    options: Vec<String>,
    folder: PathBuf,
}

/// What a child is asked to do.
#[derive(Serialize, Deserialize)]
enum Request {
    Ask { from: u64, to: u64 },
    Stop,
    Try(Trial),
}

/// What it tells.
#[derive(Serialize, Deserialize)]
enum Message {
    Ready,
    Progress(Counts),
    Found(u64, Fault),
    /// One of these doesn't end.
    Stuck(Range<u64>),
    Asked {
        counts: Counts,
        next: u64,
    },
    Tried(Option<Fault>),
    Failed(String),
}

/// A process with an embedded database.
pub(super) struct Child {
    process: std::process::Child,
    requests: ChildStdin,
    messages: Receiver<Message>,
    folder: PathBuf,
}

impl Child {
    /// Starts `program`, or the one that runs.
    pub(super) fn start(
        program: Option<&Path>,
        recipe: &Recipe,
        options: &[String],
        folder: &Path,
    ) -> Result<Child, Error> {
        std::fs::create_dir_all(folder)?;
        let program = program.map_or_else(std::env::current_exe, |path| Ok(path.to_owned()))?;
        let mut process = Command::new(&program)
            .args(["lab", "fuzz", "--child"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join(LOG))?)
            // A Ctrl-C at the terminal is for who asks.
            .process_group(0)
            .spawn()?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Plan("a child has neither input nor output".into()));
        };
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(answers).lines().map_while(Result::ok) {
                // Half a line is what a child says that ends in the middle of it.
                let message = serde_json::from_str(&line).ok();
                if !message.is_some_and(|message| sender.send(message).is_ok()) {
                    break;
                }
            }
        });
        let mut child = Child {
            process,
            requests,
            messages,
            folder: folder.to_owned(),
        };
        child.send(&Start {
            recipe: recipe.clone(),
            options: options.to_vec(),
            folder: folder.join("embedded"),
        });
        match child.messages.recv_timeout(START_MAX) {
            Ok(Message::Ready) => Ok(child),
            Ok(Message::Failed(why)) => Err(Error::Plan(why)),
            _ => {
                child.kill();
                let log = std::fs::read_to_string(folder.join(LOG)).unwrap_or_default();
                Err(Error::Plan(format!(
                    "{} doesn't open a database: {log}",
                    program.display()
                )))
            }
        }
    }

    /// A child that is gone is noticed by what it doesn't say.
    fn send(&mut self, request: &impl Serialize) {
        let line = serde_json::to_string(request).expect("requests are plain values");
        let _ = writeln!(self.requests, "{line}");
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn kill(&mut self) {
        let _ = self.process.kill();
    }

    /// Waits for its end, and tells what it was.
    pub(super) fn end(&mut self) -> String {
        self.process
            .wait()
            .map_or_else(|error| error.to_string(), |status| told(&status))
    }

    /// Has it ask; gives what was found by `found`. The fault is that of the process, if it is gone.
    pub(super) fn ask(
        &mut self,
        shapes: Range<u64>,
        found: &(dyn Fn(u64, Fault) + Sync),
        look: &mut Look<'_>,
    ) -> Result<(Asked, Option<Fault>), Error> {
        let (mut counts, mut verdict, mut stuck) = (Counts::default(), Verdict::GoOn, None);
        self.send(&Request::Ask {
            from: shapes.start,
            to: shapes.end,
        });
        loop {
            match self.messages.recv_timeout(LOOK) {
                Ok(Message::Progress(new)) => counts = new,
                Ok(Message::Found(number, fault)) => found(number, fault),
                Ok(Message::Stuck(suspects)) => {
                    stuck = Some(suspects);
                    self.kill();
                }
                Ok(Message::Asked { counts, next }) => {
                    let suspects = Vec::new();
                    let asked = Asked {
                        counts,
                        next,
                        suspects,
                    };
                    return Ok((asked, None));
                }
                Ok(Message::Failed(why)) => return Err(Error::Plan(why)),
                Ok(Message::Ready | Message::Tried(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if matches!(verdict, Verdict::GoOn) {
                verdict = look(Some(self.pid()), counts);
                match &verdict {
                    Verdict::GoOn => {}
                    Verdict::Stop => self.send(&Request::Stop),
                    Verdict::End(_) => self.kill(),
                }
            }
        }
        let ended = self.end();
        let left = UnderWay::left(&self.folder.join("embedded").join(UNDER_WAY));
        let next = left.last().map_or(shapes.start, |last| last + 1);
        let all = |shape: u64| shape * VARIANTS..(shape + 1) * VARIANTS;
        let (suspects, fault) = match (stuck, verdict) {
            (Some(suspects), _) => (suspects.collect(), Fault::Stuck),
            (None, Verdict::End(fault)) => (left.into_iter().flat_map(all).collect(), fault),
            (None, _) => (
                left.into_iter().flat_map(all).collect(),
                Fault::Crash(ended),
            ),
        };
        let asked = Asked {
            counts,
            next,
            suspects,
        };
        Ok((asked, Some(fault)))
    }

    /// Has it try one statement.
    pub(super) fn attempt(&mut self, trial: &Trial, look: &mut Look<'_>) -> Option<Fault> {
        let (mut own, mut looks) = (None, 0);
        self.send(&Request::Try(trial.clone()));
        loop {
            match self.messages.recv_timeout(LOOK) {
                Ok(Message::Tried(fault)) => return fault,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if own.is_some() {
                continue;
            }
            looks += 1;
            if let Verdict::End(fault) = look(Some(self.pid()), Counts::default()) {
                own = Some(fault);
            } else if looks > STUCK_LOOKS {
                own = Some(Fault::Stuck);
            }
            if own.is_some() {
                self.kill();
            }
        }
        let ended = self.end();
        Some(own.unwrap_or(Fault::Crash(ended)))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        let _ = self.process.wait();
    }
}

/// How a process ended, in words.
pub(super) fn told(status: &ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        return status.to_string();
    };
    let name = match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic)",
        9 => " (killed: perhaps no memory was left)",
        11 => " (segmentation fault, or a stack that was too deep)",
        _ => "",
    };
    format!("signal {signal}{name}")
}

/// The child's side: does what it is asked on its input, until that ends.
pub fn serve() -> Result<(), Error> {
    let mut lines = BufReader::new(io::stdin()).lines();
    let Some(line) = lines.next().transpose()? else {
        return Ok(());
    };
    let start: Start = serde_json::from_str(&line).map_err(|error| {
        Error::Plan(format!(
            "--child is for processes that 'lab fuzz' starts itself: {error}"
        ))
    })?;
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let request: Option<Request> = serde_json::from_str(&line).ok();
            if !request.is_some_and(|request| sender.send(request).is_ok()) {
                break;
            }
        }
    });
    let out = Mutex::new(io::stdout());
    let tell = |message: &Message| {
        let line = serde_json::to_string(message).expect("messages are plain values");
        // Without anybody who listens there is nothing to be done any more.
        if writeln!(out.lock(), "{line}").is_err() {
            std::process::exit(1);
        }
    };
    let served = Served::open(&start);
    match served {
        Err(error) => tell(&Message::Failed(error.to_string())),
        Ok(mut served) => {
            tell(&Message::Ready);
            while let Ok(request) = requests.recv() {
                served.answer(request, &requests, &tell);
            }
        }
    }
    // Threads that still ask have nobody to ask for.
    std::process::exit(0)
}

/// A child's database.
struct Served {
    statements: Statements,
    embedded: Embedded,
    folder: PathBuf,
    /// For trials: to the database and to the oracle.
    connection: Option<Connection>,
    oracle: Option<Connection>,
}

impl Served {
    fn open(start: &Start) -> Result<Served, Error> {
        let embedded = Embedded::open("Porpoise", &start.options, &start.folder)?;
        let oracle = oracle_options(&start.recipe)?;
        Ok(Served {
            statements: Statements::of(start.recipe.clone()),
            embedded,
            folder: start.folder.clone(),
            connection: None,
            oracle: oracle
                .map(|options| connect(&options, "the oracle"))
                .transpose()?,
        })
    }

    /// No table is needed, so no schema is either.
    fn options(&self) -> Options {
        Options {
            database: None,
            ..self.embedded.options().clone()
        }
    }

    fn answer(
        &mut self,
        request: Request,
        requests: &Receiver<Request>,
        tell: &(impl Fn(&Message) + Sync),
    ) {
        let answer = match request {
            Request::Ask { from, to } => self.ask(from..to, requests, tell),
            Request::Stop => return,
            Request::Try(trial) => self.attempt(&trial).map(Message::Tried),
        };
        match answer {
            Ok(message) => tell(&message),
            Err(error) => tell(&Message::Failed(error.to_string())),
        }
    }

    fn ask(
        &self,
        shapes: Range<u64>,
        requests: &Receiver<Request>,
        tell: &(impl Fn(&Message) + Sync),
    ) -> Result<Message, Error> {
        let under_way = UnderWay::create(&self.folder.join(UNDER_WAY))?;
        let found = |number, fault| tell(&Message::Found(number, fault));
        let options = self.options();
        let asking = Asking::new(&self.statements, &options, shapes, Some(under_way), &found)?;
        let mut told = Instant::now();
        let asked = asking.go(|counts, stuck| {
            if let Some(number) = stuck {
                tell(&Message::Stuck(self.statements.suspects(number)));
            }
            if told.elapsed() > PROGRESS {
                tell(&Message::Progress(counts));
                told = Instant::now();
            }
            match requests.try_recv() {
                Ok(Request::Stop) => true,
                Err(TryRecvError::Disconnected) => std::process::exit(0),
                _ => false,
            }
        })?;
        Ok(Message::Asked {
            counts: asked.counts,
            next: asked.next,
        })
    }

    fn attempt(&mut self, trial: &Trial) -> Result<Option<Fault>, Error> {
        let own = self.connection.take();
        let mut own = own.map_or_else(|| connect(&self.options(), "the database"), Ok)?;
        let fault = trial.fault(&mut own, self.oracle.as_mut()).err();
        self.connection = fault.as_ref().is_none_or(is_usable).then_some(own);
        Ok(fault)
    }
}

/// Whether a connection can be used after such a fault.
pub(super) fn is_usable(fault: &Fault) -> bool {
    !matches!(
        fault,
        Fault::Lost(_) | Fault::Malformed(_) | Fault::Misfit(_)
    )
}
