//! The random function tester: small statements made of the server's own table of functions, at full
//! speed, by several threads, over any way in; and queries over random tables that check themselves.
//!
//! 1. [`FuzzPlan`]: which server, which ways in, how many statements of which forms.
//! 2. A statement is known by its number: the seed and the number make it, so a finding can be asked
//!    for again. Each shape is asked several times with other constants ([`statement`]), which a
//!    server may answer by a plan that it keeps.
//! 3. What comes is looked at ([`reply`]): the connection lives, the reply can be read, each value is
//!    one of its column's type. Now and then the answer has to be the one that the server gives when
//!    it plans the statement anew, and, with an oracle, the one of a second server.
//! 4. The server is a process of its own over each way in, embedded too ([`child`]): one that ends is
//!    a finding, the statement that ends it is looked for, and the run goes on with another.
//! 5. A statement that fails is made smaller while it fails in the same way ([`shrink`]), and written
//!    to a file of its own.
//! 6. [`FuzzReport`]: statements a second over each way in, memory, and what was found.
//!
//! ```text
//! number ─► statement ─► server ─► reply, checked ──► finding ─► smaller ─► file
//!                    └─► oracle ─► the same?
//! ```
//!
//! Wrong answers of queries are found without a second server by [`oracles`].

mod asker;
mod chart;
mod child;
mod course;
mod findings;
mod forms;
mod literals;
pub mod oracles;
pub mod random_sql;
mod reply;
mod run;
mod shrink;
mod statement;
mod subject;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::{ServerSpec, Way};

pub use child::serve as serve_as_child;
pub use reply::Fault;
pub use run::{run, statement_of};

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct FuzzPlan {
    /// The server.
    pub server: ServerSpec,
    /// The ways in, one after the other.
    pub ways: Vec<Way>,
    /// Connections at a time, each with a thread.
    pub threads: usize,
    /// Statements that a connection sends before it waits for the first one's reply: eight at most,
    /// those of a shape.
    pub ahead: usize,
    /// Statements over each way in.
    pub statements: u64,
    /// Each way in has so much time, however many statements are left.
    pub limit: Option<Duration>,
    /// The number of the first statement.
    pub first: u64,
    /// Statements come from it.
    pub seed: u64,
    /// How deep expressions nest.
    pub depth: u32,
    /// Only forms whose names hold one of these words; all, if there are none.
    pub functions: Vec<String>,
    /// The URL of a second server, whose answers have to be the same.
    pub oracle: Option<String>,
    /// A server that has more resident memory than this is ended, which is a finding.
    pub memory_max_bytes: u64,
    /// Where findings are written to.
    pub folder: PathBuf,
    /// Ends the run when somebody sets it: what was found until then is written as it is.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

/// A statement that shows that something is wrong.
#[derive(Clone, Debug)]
pub struct FuzzFinding {
    /// The way in.
    pub way: Way,
    /// The statement's number.
    pub number: u64,
    /// The statement, as small as it could be made.
    pub sql: String,
    /// As it was first found.
    pub original: String,
    /// What is wrong.
    pub fault: Fault,
    /// Whether it was asked again, alone, and failed.
    pub again: Again,
    /// How many statements were found that fail like it.
    pub times: u64,
    /// The file that it was written to.
    pub file: PathBuf,
}

/// What came of asking a statement again, alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It failed as before.
    Fails,
    /// It didn't fail.
    Passes,
    /// The run was ended before.
    NotAsked,
}

/// What came of a way in.
#[derive(Clone, Debug)]
pub struct WayReport {
    /// The way in.
    pub way: Way,
    /// Statements that were asked.
    pub statements: u64,
    /// Those that the server refused, which is no fault.
    pub refused: u64,
    /// How long it took.
    pub duration: Duration,
    /// Statements a second in each whole minute.
    pub minutes: Vec<f64>,
    /// The memory of the server's process once it was warm, and at the end.
    pub memory_bytes: Option<(u64, u64)>,
    /// The most that it had at any time.
    pub peak_bytes: u64,
    /// Whether memory grew more than caches that fill explain.
    pub has_grown: bool,
}

impl WayReport {
    /// Statements a second.
    pub fn per_second(&self) -> f64 {
        self.statements as f64 / self.duration.as_secs_f64().max(1e-9)
    }
}

/// What came of all.
#[derive(Clone, Debug, Default)]
pub struct FuzzReport {
    /// Of each way in.
    pub ways: Vec<WayReport>,
    /// What was found.
    pub findings: Vec<FuzzFinding>,
}

impl FuzzReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.count() == 0
    }

    /// Memory that goes on growing is a finding as well.
    fn count(&self) -> usize {
        self.findings.len() + self.ways.iter().filter(|way| way.has_grown).count()
    }
}

impl fmt::Display for FuzzReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<20} {:>13} {:>12} {:>9} {:>9} {:>14} {:>6}",
            "way in", "statements", "a second", "refused", "seconds", "memory MiB", "peak"
        )?;
        for way in &self.ways {
            let mib = |bytes: u64| bytes >> 20;
            let memory = way.memory_bytes.map_or(String::new(), |(before, after)| {
                format!("{} to {}", mib(before), mib(after))
            });
            let refused = 100.0 * way.refused as f64 / way.statements.max(1) as f64;
            writeln!(
                f,
                "{:<20} {:>13} {:>12.0} {:>8.1}% {:>9.1} {:>14} {:>6}{}",
                way.way.to_string(),
                crate::report::grouped(way.statements),
                way.per_second(),
                refused,
                way.duration.as_secs_f64(),
                memory,
                mib(way.peak_bytes),
                if way.has_grown { "  grows" } else { "" }
            )?;
        }
        chart::bars(self, f)?;
        for finding in &self.findings {
            writeln!(
                f,
                "\n{}, statement {}, {} times{}: {}\n  {}\n  {}",
                finding.way,
                finding.number,
                finding.times,
                match finding.again {
                    Again::Fails => "",
                    Again::Passes => ", not alone",
                    Again::NotAsked => ", not asked again",
                },
                finding.fault,
                finding.sql,
                finding.file.display()
            )?;
        }
        for way in self.ways.iter().filter(|way| way.has_grown) {
            writeln!(f, "\n{}: memory goes on growing", way.way)?;
        }
        writeln!(f, "{} findings", self.count())
    }
}
