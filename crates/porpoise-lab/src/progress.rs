//! What is going on, on stderr: one line that is written over each second on a terminal, elsewhere
//! a line now and then.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Between two lines where there is no terminal.
const LINE_SECONDS: u64 = 5;

/// Says something on stderr, if anybody listens: `eprintln!` panics where nobody does.
pub(crate) fn tell(words: impl Display) {
    let _ = writeln!(stderr(), "{words}");
}

#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    on: bool,
    last_line: Option<Instant>,
    shown: usize,
}

impl Progress {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            terminal: stderr().is_terminal(),
            on,
            last_line: None,
            shown: 0,
        }
    }

    /// Shows where things are.
    pub(crate) fn show(&mut self, text: &str) {
        if !self.on {
            return;
        }
        // A terminal that is gone is no reason to stop.
        if self.terminal {
            let width = text.chars().count();
            let _ = write!(
                stderr(),
                "\r{text}{:blank$}",
                "",
                blank = self.shown.saturating_sub(width)
            );
            let _ = stderr().flush();
            self.shown = width;
        } else if self
            .last_line
            .is_none_or(|line| line.elapsed() >= Duration::from_secs(LINE_SECONDS))
        {
            let _ = writeln!(stderr(), "{text}");
            self.last_line = Some(Instant::now());
        }
    }

    /// Wipes the line away.
    pub(crate) fn clear(&mut self) {
        if self.on && self.terminal && self.shown > 0 {
            let _ = write!(stderr(), "\r{:blank$}\r", "", blank = self.shown);
            let _ = stderr().flush();
            self.shown = 0;
        }
    }
}
