//! `porpoise recover FOLDER [--into NEW]`: saves what can be read of a damaged database.
//!
//! Storage saves rows, and the engine then makes indexes agree with them. The damaged folder is
//! only read. What was saved, and what was not, is printed table by table; the exit code is 0 if
//! everything was saved, 2 if not everything was, 1 if nothing could be.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use porpoise_engine::mend::{MendedTable, mend_indexes};
use porpoise_engine::{Engine, EngineOptions};
use porpoise_storage::{Location, Options, Salvage, SavedSpace, SpaceId, salvage};

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
    match recover(&options.folder, &into) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(SOME_LOST),
        Err(error) => {
            eprintln!("porpoise recover: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was saved.
fn recover(from: &Path, into: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    if !from.is_dir() {
        return Err(format!("{} is no folder", from.display()).into());
    }
    if into
        .read_dir()
        .is_ok_and(|mut files| files.next().is_some())
    {
        return Err(format!("{} is there already, and not empty", into.display()).into());
    }
    let mut progress = Progress::new();
    let found = salvage(from, &Options::path(into), |at| {
        progress.show(&format!(
            "saving: part {} of {}, {} rows",
            at.spaces_done + 1,
            at.spaces,
            at.rows
        ));
    })?;
    let opened = Engine::open(EngineOptions {
        location: Location::Path(into.to_path_buf()),
        variables: Vec::new(),
    });
    let tables = opened.and_then(|engine| {
        let tables = mend_indexes(&engine, |table| {
            progress.show(&format!("comparing the indexes of {table}"));
        })?;
        engine.shared.store.close()?;
        Ok(tables)
    });
    progress.end();
    match tables {
        Ok(tables) => {
            let out = &mut std::io::stdout().lock();
            report(&found, &tables, into, out)?;
        }
        Err(error) => {
            for loss in &found.losses {
                println!("lost: {loss}");
            }
            let rows: u64 = found.spaces.values().map(|space| space.rows).sum();
            let into = into.display();
            println!("{rows} rows are in {into}, but not what tables they are of: {error}");
            return Ok(false);
        }
    }
    Ok(found.is_whole())
}

fn report(
    found: &Salvage,
    tables: &[MendedTable],
    into: &Path,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut unnamed: BTreeMap<SpaceId, &SavedSpace> = found
        .spaces
        .iter()
        .map(|(space, saved)| (*space, saved))
        .collect();
    let nothing = SavedSpace::default();
    for table in tables {
        let saved = unnamed.remove(&table.rows).unwrap_or(&nothing);
        let expected = match saved.gaps.is_empty() {
            true => String::new(),
            false => format!(" of about {}", saved.rows_in_tree),
        };
        writeln!(out, "{}: {}{expected} rows saved", table.name, saved.rows)?;
        for gap in &saved.gaps {
            writeln!(out, "    rows lost: {}", gap.place)?;
        }
        if saved.rows_of_orphans > 0 {
            let rows = saved.rows_of_orphans;
            writeln!(
                out,
                "    {rows} of them from below a page that can't be read"
            )?;
        }
        for entries in &table.entries {
            for gap in unnamed.remove(entries).iter().flat_map(|saved| &saved.gaps) {
                writeln!(
                    out,
                    "    an index's page, made good from the rows: {}",
                    gap.place
                )?;
            }
        }
        for (index, removed, added) in &table.mended {
            let counts = format!("{removed} entries removed, {added} added");
            writeln!(
                out,
                "    index {index} made to agree with the rows: {counts}"
            )?;
        }
    }
    // The first is the data dictionary.
    let dictionary = unnamed.remove(&SpaceId(0));
    for gap in dictionary.iter().flat_map(|saved| &saved.gaps) {
        writeln!(out, "definitions of tables or accounts lost: {}", gap.place)?;
    }
    let rows: u64 = unnamed.values().map(|saved| saved.rows).sum();
    if rows > 0 {
        let what = "whose definition is lost, or which was dropped";
        writeln!(out, "{rows} rows saved of tables or indexes {what}")?;
    }
    for loss in &found.losses {
        writeln!(out, "lost: {loss}")?;
    }
    let commits = found.commits_from_log;
    writeln!(out, "{commits} transactions taken from the log")?;
    let end = match found.is_whole() {
        true => "everything was saved",
        false => "not everything was saved; foreign keys were not looked at",
    };
    writeln!(out, "{}: {end}", into.display())
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
