//! The server that is asked: another process always, so that whatever ends it is a finding.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use porpoise_client::{Connection, Options};

use super::FuzzPlan;
use super::asker::{
    Asked, Asking, Counts, LOOK, Recipe, STUCK_LOOKS, Statements, Trial, connect, oracle_options,
};
use super::child::{Child, LOG, is_usable, told};
use super::reply::Fault;
use crate::lifeline::WorkFolder;
use crate::runner::RunningServer;
use crate::{Error, ServerKind, Way};

/// How long a server may take to answer again.
const RETURN_MAX: Duration = Duration::from_secs(20);
/// How long a process that doesn't answer may take to end.
const END_MAX: Duration = Duration::from_secs(3);

/// What is to be done after a look at the server's process and at how far things are.
pub(super) enum Verdict {
    GoOn,
    /// Enough has been asked.
    Stop,
    /// The process has to be ended.
    End(Fault),
}

/// Looks at the server's process.
pub(super) type Look<'l> = dyn FnMut(Option<u32>, Counts) -> Verdict + 'l;

/// A server that runs, or is started again.
pub(super) struct Subject<'p> {
    plan: &'p FuzzPlan,
    way: Way,
    statements: &'p Statements,
    folder: WorkFolder,
    starts: u32,
    side: Option<Side>,
}

/// Who asks.
enum Side {
    /// This process, a server.
    Server(Box<Server>),
    /// A child, itself.
    Child(Child),
}

struct Server {
    server: RunningServer,
    options: Options,
    /// For trials: to the server and to the oracle.
    connection: Option<Connection>,
    oracle: Option<Connection>,
}

impl<'p> Subject<'p> {
    pub(super) fn start(
        plan: &'p FuzzPlan,
        way: Way,
        statements: &'p Statements,
    ) -> Result<Self, Error> {
        let mut subject = Self {
            plan,
            way,
            statements,
            folder: WorkFolder::new("porpoise-fuzz")?,
            starts: 0,
            side: None,
        };
        subject.revived()?;
        Ok(subject)
    }

    /// Asks statements; where the server ends meanwhile, the fault is that of its process, and the
    /// suspects are the statements that were under way.
    pub(super) fn ask(
        &mut self,
        shapes: Range<u64>,
        found: &(dyn Fn(u64, Fault) + Sync),
        look: &mut Look<'_>,
    ) -> Result<(Asked, Option<Fault>), Error> {
        let (statements, is_elsewhere) = (self.statements, self.is_elsewhere());
        let (asked, fault) = match self.revived()? {
            Side::Child(child) => child.ask(shapes, found, look)?,
            Side::Server(server) => {
                let (asked, fault) = server.ask(statements, shapes, found, look)?;
                let is_gone = fault.is_some() || !asked.suspects.is_empty();
                let crash = |server: &mut Server| {
                    Fault::Crash(match is_elsewhere {
                        true => "it can't be reached".to_owned(),
                        false => server.end(),
                    })
                };
                let fault = is_gone.then(|| fault.unwrap_or_else(|| crash(server)));
                (asked, fault)
            }
        };
        let fault = fault.map(|fault| self.with_last_words(fault));
        if fault.is_some() {
            self.side = None;
        }
        Ok((asked, fault))
    }

    /// Tries one statement, and gives what is wrong with it. A server that ends is started again for
    /// the next one.
    pub(super) fn attempt(
        &mut self,
        trial: &Trial,
        look: &mut Look<'_>,
    ) -> Result<Option<Fault>, Error> {
        let is_elsewhere = self.is_elsewhere();
        let fault = match self.revived()? {
            Side::Child(child) => child.attempt(trial, look),
            Side::Server(server) => {
                let fault = server.attempt(trial, look);
                match fault {
                    Some(Fault::Lost(why)) => Some(match is_elsewhere || server.answers() {
                        true => Fault::Lost(why),
                        false => Fault::Crash(server.end()),
                    }),
                    fault => fault,
                }
            }
        };
        let fault = fault.map(|fault| self.with_last_words(fault));
        if matches!(
            fault,
            Some(Fault::Crash(_) | Fault::Memory(_) | Fault::Stuck)
        ) {
            self.side = None;
        }
        Ok(fault)
    }

    fn is_elsewhere(&self) -> bool {
        matches!(self.plan.server.kind, ServerKind::Url(_))
    }

    /// Who is asked; started again if it is gone.
    fn revived(&mut self) -> Result<&mut Side, Error> {
        let side = match self.side.take() {
            Some(side) => side,
            None => self.started()?,
        };
        Ok(self.side.insert(side))
    }

    fn started(&mut self) -> Result<Side, Error> {
        self.starts += 1;
        let folder = self.log_folder();
        let spec = &self.plan.server;
        if self.way == Way::Embedded {
            let program = match &spec.kind {
                ServerKind::Porpoise(program) => program.as_deref(),
                _ => None,
            };
            let recipe = &self.statements.recipe;
            return Child::start(program, recipe, &spec.options, &folder).map(Side::Child);
        }
        let is_restarted = self.is_elsewhere() && self.starts > 1;
        let deadline = Instant::now() + RETURN_MAX;
        loop {
            match Server::start(self.plan, self.way, &self.statements.recipe, &folder) {
                Ok(server) => return Ok(Side::Server(Box::new(server))),
                // Somebody else starts it again.
                Err(_) if is_restarted && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn log_folder(&self) -> PathBuf {
        self.folder.path().join(self.starts.to_string())
    }

    /// What the server wrote last before it ended, or before it ended a connection.
    fn with_last_words(&self, fault: Fault) -> Fault {
        let words = |why: String| match last_words(&self.log_folder().join(LOG)) {
            Some(words) if why.is_empty() => words,
            Some(words) => format!("{why}: {words}"),
            None => why,
        };
        match fault {
            Fault::Crash(why) => Fault::Crash(words(why)),
            Fault::Lost(why) => Fault::Lost(words(why)),
            fault => fault,
        }
    }
}

impl Server {
    fn start(plan: &FuzzPlan, way: Way, recipe: &Recipe, folder: &Path) -> Result<Server, Error> {
        let mut server = RunningServer::start(&plan.server, folder, plan.threads)?;
        // No table is needed, so no schema is either.
        let options = Options {
            database: None,
            ..server.options(&plan.server, way, folder)?
        };
        let oracle = oracle_options(recipe)?;
        Ok(Server {
            connection: Some(connect(&options, "the server")?),
            oracle: oracle
                .map(|options| connect(&options, "the oracle"))
                .transpose()?,
            server,
            options,
        })
    }

    fn ask(
        &mut self,
        statements: &Statements,
        shapes: Range<u64>,
        found: &(dyn Fn(u64, Fault) + Sync),
        look: &mut Look<'_>,
    ) -> Result<(Asked, Option<Fault>), Error> {
        let Server {
            server, options, ..
        } = self;
        let asking = Asking::new(statements, options, shapes, None, found)?;
        let (mut fault, mut culprit) = (None, None);
        let asked = asking.go(|counts, stuck| {
            if fault.is_some() {
                return true;
            }
            if let Some(number) = stuck {
                (fault, culprit) = (Some(Fault::Stuck), Some(number));
            }
            let verdict = look(server.pid(), counts);
            if let Verdict::End(own) = verdict {
                fault.get_or_insert(own);
            } else if fault.is_none() {
                return matches!(verdict, Verdict::Stop);
            }
            // Whoever waits for it sees its connection end.
            server.kill();
            true
        });
        let mut asked = asked?;
        if let Some(number) = culprit {
            asked.suspects = statements.suspects(number).collect();
        }
        Ok((asked, fault))
    }

    fn answers(&self) -> bool {
        connect(&self.options, "the server").is_ok()
    }

    /// How the process has ended, in words.
    fn end(&mut self) -> String {
        let deadline = Instant::now() + END_MAX;
        loop {
            match self.server.ended() {
                Some(status) => return told(&status),
                None if Instant::now() > deadline => return "it doesn't answer".into(),
                None => std::thread::sleep(LOOK),
            }
        }
    }

    fn attempt(&mut self, trial: &Trial, look: &mut Look<'_>) -> Option<Fault> {
        let Server {
            server,
            options,
            connection,
            oracle,
        } = self;
        let own = connection.take();
        let mut own = match own.map_or_else(|| connect(options, "the server"), Ok) {
            Ok(own) => own,
            Err(error) => return Some(Fault::Lost(error.to_string())),
        };
        let (sender, answer) = mpsc::channel();
        let fault = std::thread::scope(|scope| {
            scope.spawn(|| {
                let fault = trial.fault(&mut own, oracle.as_mut()).err();
                // Somebody waits for it, below.
                let _ = sender.send(fault);
            });
            let (mut fault, mut looks) = (None, 0);
            loop {
                match answer.recv_timeout(LOOK) {
                    Ok(answered) => return fault.or(answered),
                    Err(RecvTimeoutError::Disconnected) => return fault,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if fault.is_some() {
                    continue;
                }
                looks += 1;
                if let Verdict::End(own) = look(server.pid(), Counts::default()) {
                    fault = Some(own);
                } else if looks > STUCK_LOOKS {
                    fault = Some(Fault::Stuck);
                }
                if fault.is_some() {
                    server.kill();
                }
            }
        });
        *connection = fault.as_ref().is_none_or(is_usable).then_some(own);
        fault
    }
}

/// What a log says last of an end: a panic, a stack that is too small, memory that there isn't.
fn last_words(log: &Path) -> Option<String> {
    let log = std::fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = text.lines().collect();
    let is_telling = |line: &&str| {
        [
            "panicked at",
            "has overflowed its stack",
            "memory allocation of",
        ]
        .iter()
        .any(|words| line.contains(words))
    };
    let at = lines.iter().rposition(is_telling)?;
    let behind = match lines[at].contains("panicked at") {
        true => lines.get(at + 1).copied().unwrap_or_default(),
        false => "",
    };
    let words = format!("{} {behind}", lines[at]);
    Some(words.trim().chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_last_of_a_panic_or_an_abort() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let says = |text: &str| {
            std::fs::write(&log, text).expect("written");
            last_words(&log)
        };
        assert_eq!(says("ready\n"), None);
        let panic = "thread 'w' panicked at a.rs:1:\nfirst\nthread 'w' panicked at b.rs:2:\nsecond\nnote: x\n";
        assert_eq!(
            says(panic).as_deref(),
            Some("thread 'w' panicked at b.rs:2: second")
        );
        assert_eq!(
            says("memory allocation of 99 bytes failed\n").as_deref(),
            Some("memory allocation of 99 bytes failed")
        );
    }
}
