//! `print!` and its kin, for output that its reader may stop reading.
//!
//! Those of the standard library panic when a write fails, so that `porpoise lab report | head -1`
//! would end with a backtrace. Within this program these take their place. Of a pipe that nobody
//! reads any more, nothing is said: the command does the rest of its work and ends with the code
//! that it would have had anyway. To end at once, as a signal has other programs do it, would leave
//! servers running that were started for the command. Any other failure, a full disk for one, is
//! told at the end ([`end`]).

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The first write to stdout that failed. There are none behind it.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

macro_rules! print {
    ($($words:tt)*) => { $crate::printing::to_stdout(format_args!($($words)*)) };
}

macro_rules! println {
    ($($words:tt)*) => { $crate::printing::to_stdout(format_args!("{}\n", format_args!($($words)*))) };
}

macro_rules! eprint {
    ($($words:tt)*) => { $crate::printing::to_stderr(format_args!($($words)*)) };
}

macro_rules! eprintln {
    ($($words:tt)*) => { $crate::printing::to_stderr(format_args!("{}\n", format_args!($($words)*))) };
}

pub fn to_stdout(words: Arguments<'_>) {
    if FAILURE.get().is_none()
        && let Err(error) = io::stdout().write_fmt(words)
    {
        let _ = FAILURE.set(error);
    }
}

pub fn to_stderr(words: Arguments<'_>) {
    // There is nowhere to tell of it.
    let _ = io::stderr().write_fmt(words);
}

/// The code to exit with, for a command that would exit with `code`.
pub fn end(code: ExitCode) -> ExitCode {
    let flushed = io::stdout().flush().err();
    match FAILURE.get().or(flushed.as_ref()) {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("porpoise: stdout: {error}");
            ExitCode::FAILURE
        }
        _ => code,
    }
}
