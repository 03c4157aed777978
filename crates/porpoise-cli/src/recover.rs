//! `porpoise recover FOLDER [--into NEW]`: saves what can be read of a damaged database.
//!
//! What was saved, and what was not, is printed table by table; the exit code is 0 if
//! everything was saved, 2 if not everything was, 1 if nothing could be.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use porpoise::RecoveryProgress;

const SOME_LOST: u8 = 2;
/// How often progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub struct RecoverOptions {
    /// The folder of the damaged database; nothing is written to it
    folder: PathBuf,
    /// The folder to save into, which must be new or empty [default: FOLDER.recovered]
    #[arg(long, value_name = "NEW")]
    into: Option<PathBuf>,
}

pub fn run(options: &RecoverOptions) -> ExitCode {
    let into = options.into.clone().unwrap_or_else(|| {
        let mut name = options.folder.clone().into_os_string();
        name.push(".recovered");
        name.into()
    });
    let mut progress = Progress::new();
    let recovered = porpoise::recover(&options.folder, &into, |at| {
        progress.show(&match at {
            RecoveryProgress::Saving { part, parts, rows } => {
                format!("saving: part {part} of {parts}, {rows} rows")
            }
            RecoveryProgress::Comparing { table } => format!("comparing the indexes of {table}"),
        });
    });
    progress.end();
    let recovery = match recovered {
        Ok(recovery) => recovery,
        Err(error) => {
            eprintln!("porpoise recover: {}", error.message());
            return ExitCode::FAILURE;
        }
    };
    print!("{recovery}");
    match recovery.is_whole() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(SOME_LOST),
    }
}

/// One line that changes, on a terminal; a line now and then elsewhere.
struct Progress {
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    fn new() -> Progress {
        Progress {
            shown: None,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, what: &str) {
        let every = match self.is_terminal {
            true => PROGRESS_EVERY,
            false => 25 * PROGRESS_EVERY,
        };
        if self.shown.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.shown = Some(Instant::now());
        match self.is_terminal {
            true => eprint!("\r\x1b[K{what}"),
            false => eprintln!("{what}"),
        }
    }

    fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
