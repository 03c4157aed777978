//! Recovery: what can be read of a damaged folder is saved into a new one.
//!
//! 1. Storage saves the rows of every table and index ([`porpoise_storage::salvage`]). The damaged
//!    folder is only read.
//! 2. The engine makes the indexes agree with the rows ([`porpoise_engine::index_repair`]).
//! 3. A [`Recovery`] says what was saved, and what was not.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use porpoise_engine::index_repair::{RepairedTable, repair_indexes};
use porpoise_engine::{Engine, EngineOptions, Error, Result, forget_lost_branches};
use porpoise_storage::{Location, Options, Salvage, SavedSpace, SpaceId, Store, salvage};

/// How far [`recover`] has come.
#[derive(Clone, Copy, Debug)]
pub enum RecoveryProgress<'a> {
    /// Rows are being saved. A part is the rows of a table, or the entries of an index.
    Saving {
        /// Its number, from 1.
        part: usize,
        /// How many there are.
        parts: usize,
        /// Rows and entries saved up to now, of all parts.
        rows: u64,
    },
    /// The indexes of a table are compared with its rows.
    Comparing {
        /// `schema.name`.
        table: &'a str,
    },
}

/// What [`recover`] has saved, and what not. [`Display`](fmt::Display) tells it table by table, a
/// line each.
#[derive(Debug)]
pub struct Recovery {
    into: PathBuf,
    salvage: Salvage,
    /// The tables, with what was done to their indexes, or why the new folder's definitions can't
    /// be read.
    tables: Result<Vec<RepairedTable>>,
}

/// Saves what can be read of the database in the folder `from` into the folder `into`, which must
/// be new or empty. Nothing is written to `from`. `progress` is called again and again meanwhile.
///
/// Error 1105 if `from` is no folder or is in use, if `into` isn't empty, or if nothing at all can
/// be saved.
pub fn recover(
    from: impl AsRef<Path>,
    into: impl AsRef<Path>,
    mut progress: impl FnMut(RecoveryProgress<'_>),
) -> Result<Recovery> {
    let (from, into) = (from.as_ref(), into.as_ref());
    let refused = |words: String| Error::unknown_error(words);
    if !from.is_dir() {
        return Err(refused(format!("{} is no folder", from.display())));
    }
    let is_filled = |mut files: std::fs::ReadDir| files.next().is_some();
    if into.read_dir().is_ok_and(is_filled) {
        return Err(refused(format!(
            "{} is there already, and not empty",
            into.display()
        )));
    }
    let mut salvage = salvage(from, &Options::path(into), |at| {
        progress(RecoveryProgress::Saving {
            part: at.spaces_done + 1,
            parts: at.spaces,
            rows: at.rows,
        });
    })
    .map_err(|error| refused(error.to_string()))?;
    let branches = Store::open(&Options::path(into)).and_then(|store| {
        let lost = forget_lost_branches(&store)?;
        store.close()?;
        Ok(lost)
    });
    match branches {
        Ok(branches) => salvage.losses.extend(branches.iter().map(|xid| {
            let name = String::from_utf8_lossy(&xid.gtrid);
            format!("the prepared XA transaction '{name}', whose writes had not all been in memory")
        })),
        Err(error) => salvage
            .losses
            .push(format!("prepared XA transactions: {error}")),
    }
    let opened = Engine::open(EngineOptions {
        location: Location::Path(into.to_path_buf()),
        variables: Vec::new(),
    });
    let tables = opened.and_then(|engine| {
        let tables = repair_indexes(&engine, |table| {
            progress(RecoveryProgress::Comparing { table });
        })?;
        engine.shared.store.close()?;
        Ok(tables)
    });
    Ok(Recovery {
        into: into.to_path_buf(),
        salvage,
        tables,
    })
}

impl Recovery {
    /// Whether everything was saved.
    pub fn is_whole(&self) -> bool {
        self.tables.is_ok() && self.salvage.is_whole()
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let into = self.into.display();
        let tables = match &self.tables {
            Ok(tables) => tables,
            Err(error) => {
                self.write_losses(out)?;
                let rows: u64 = self.salvage.spaces.values().map(|space| space.rows).sum();
                return writeln!(
                    out,
                    "{rows} rows are in {into}, but not what tables they are of: {error}"
                );
            }
        };
        let spaces = self.salvage.spaces.iter();
        let mut unnamed: BTreeMap<SpaceId, &SavedSpace> =
            spaces.map(|(space, saved)| (*space, saved)).collect();
        for table in tables {
            write_table(out, table, &mut unnamed)?;
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
        self.write_losses(out)?;
        let commits = self.salvage.commits_from_log;
        writeln!(out, "{commits} transactions taken from the log")?;
        let end = match self.is_whole() {
            true => "everything was saved",
            false => "not everything was saved; foreign keys were not looked at",
        };
        writeln!(out, "{into}: {end}")
    }
}

impl Recovery {
    fn write_losses(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut losses = self.salvage.losses.iter();
        losses.try_for_each(|loss| writeln!(out, "lost: {loss}"))
    }
}

/// A table's lines. Its spaces, of rows and of indexes, are taken out of `unnamed`.
fn write_table(
    out: &mut fmt::Formatter<'_>,
    table: &RepairedTable,
    unnamed: &mut BTreeMap<SpaceId, &SavedSpace>,
) -> fmt::Result {
    let nothing = SavedSpace::default();
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
    for (index, removed, added) in &table.repaired {
        let counts = format!("{removed} entries removed, {added} added");
        writeln!(
            out,
            "    index {index} made to agree with the rows: {counts}"
        )?;
    }
    Ok(())
}
