//! The history of a server's performance: a fixed experiment for each revision, and where it changes.
//!
//! ```text
//! revisions ──► one results folder each ──► a value a revision, for each point and metric
//!                                                  └──► change points ──► findings: table, JSON, JUnit, page
//!                                                                             └──► alerts: webhook, mail
//! ```
//!
//! A folder holds the history: `NAME.lab` for each revision, as `lab run` makes it, and
//! `findings.json` as they were told last; `alerts.json` has what each receiver has got.
//! `bisect` has what was measured to narrow a change. A revision that is measured stays so: the next
//! call adds those that are new.

mod alerts;
mod bisect;
pub mod change_points;
pub mod evaluate;
mod findings;
mod kept;
mod revisions;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::Way;
use crate::experiment::{Experiment, ServerKind};
use crate::page::study::Study;
use crate::{Error, Results, RunOptions, run_experiment};

use bisect::{Sides, narrow};
use findings::Bisections;

pub use alerts::{Mail, Receiver};
pub use findings::{Finding, Findings, Metric, Narrowed};
pub use revisions::{Revision, Source, builds_of, revisions_of};

/// Where it stands what bisections have found.
const BISECTIONS: &str = "bisections.json";

/// Where a history lies.
pub struct History {
    folder: PathBuf,
}

impl History {
    /// Opens a history, or begins one.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        crate::make_folder(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn results_of(&self, revision: &Revision) -> PathBuf {
        self.folder.join(format!("{}.lab", revision.name))
    }

    /// Why a revision can't be built.
    fn failure_of(&self, revision: &Revision) -> PathBuf {
        self.folder.join(format!("{}.failed", revision.name))
    }

    /// Runs the experiment for each revision that isn't measured yet: its servers of the kind
    /// `porpoise` are that revision. `tell` is told which one it is. Fails if no server would be.
    pub fn measure<'r>(
        &self,
        experiment: &Experiment,
        revisions: impl IntoIterator<Item = &'r Revision>,
        options: RunOptions<'_>,
        mut tell: impl FnMut(&Revision, usize),
    ) -> Result<(), Error> {
        let mut points = experiment.points.iter();
        if points.any(|point| point.way == Way::Embedded) {
            return Err(Error::Plan(
                "embedded is this program's own database, not a revision's: an experiment to watch has other ways in".into(),
            ));
        }
        let mut servers = experiment.servers.iter();
        if !servers.any(|server| server.kind == ServerKind::Porpoise(None)) {
            return Err(Error::Plan(
                "no server of the experiment is the revision: it needs one of the kind 'porpoise', without 'program' and 'revision'".into(),
            ));
        }
        for (at, revision) in revisions.into_iter().enumerate() {
            if options.stop.load(Ordering::Relaxed) {
                break;
            }
            if self.failure_of(revision).exists() {
                continue;
            }
            tell(revision, at);
            self.measure_one(experiment, revision, &self.results_of(revision), options)?;
        }
        Ok(())
    }

    /// Runs the experiment for a revision, as far as it isn't done. False if there comes to be no
    /// server: why is written down.
    fn measure_one(
        &self,
        experiment: &Experiment,
        revision: &Revision,
        results: &Path,
        options: RunOptions<'_>,
    ) -> Result<bool, Error> {
        if results.is_dir() {
            let known = Results::open_for(results, experiment)?;
            // Building takes longer than finding out that there is nothing to measure.
            if known.planned()?.is_empty() && !options.retry_failed {
                return Ok(true);
            }
        }
        let kind = match revision.server() {
            Ok(kind) => kind,
            Err(error) => {
                std::fs::write(self.failure_of(revision), error.to_string())?;
                return Ok(false);
            }
        };
        let mut own = experiment.clone();
        for server in &mut own.servers {
            if server.kind == ServerKind::Porpoise(None) {
                server.kind = kind.clone();
            }
        }
        run_experiment(&own, &Results::open_for(results, &own)?, options)?;
        Ok(true)
    }

    /// Measures between the two revisions of each change, and beside them, until it is known which
    /// one brought it. `tell` is told what is measured.
    pub fn bisect(
        &self,
        experiment: &Experiment,
        revisions: &[Revision],
        findings: &mut Findings,
        options: RunOptions<'_>,
        mut tell: impl FnMut(&Revision),
    ) -> Result<(), Error> {
        let path = self.folder.join(BISECTIONS);
        let mut known: Bisections = kept::read(&path)?;
        let place = |name: &str| revisions.iter().position(|revision| revision.name == name);
        for number in 0..findings.changes.len() {
            let change = &findings.changes[number];
            let key = change.key();
            if !known.contains_key(&key) {
                let guess = (place(&change.last_before), place(&change.first_after));
                let (Some(lo), Some(hi)) = guess else {
                    continue;
                };
                let bounds = findings.neighbours(number, place, revisions.len());
                let sides = Sides {
                    before: change.before,
                    after: change.after,
                    spread: change.spread,
                };
                let range = narrow((lo, hi), bounds, |at| {
                    sides.side(|measurement| {
                        let revision = &revisions[at];
                        if options.stop.load(Ordering::Relaxed) {
                            return Err(Error::Plan("stopped".into()));
                        }
                        self.value(
                            experiment,
                            revision,
                            measurement,
                            change,
                            options,
                            &mut tell,
                        )
                    })
                });
                if options.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let narrowed = range?.map(|(lo, hi)| Narrowed {
                    last_before: revisions[lo].name.clone(),
                    first_after: revisions[hi].name.clone(),
                    is_single: hi == lo + 1,
                });
                known.insert(key.clone(), narrowed);
                kept::write(&path, &known)?;
            }
        }
        findings.narrow(&known);
        Ok(())
    }

    /// What the n-th measurement of a revision came to; the first is the history's own.
    fn value(
        &self,
        experiment: &Experiment,
        revision: &Revision,
        measurement: usize,
        change: &Finding,
        options: RunOptions<'_>,
        tell: &mut impl FnMut(&Revision),
    ) -> Result<Option<f64>, Error> {
        if self.failure_of(revision).exists() {
            return Ok(None);
        }
        let own = self.results_of(revision);
        let results = match measurement {
            0 if own.is_dir() => own,
            _ => {
                let folder = self.folder.join("bisect");
                std::fs::create_dir_all(&folder)?;
                folder.join(format!("{}-{measurement}.lab", revision.name))
            }
        };
        if !results.is_dir() {
            tell(revision);
        }
        if !self.measure_one(experiment, revision, &results, options)? {
            return Ok(None);
        }
        let study = Study::read(&Results::open(&results)?)?;
        Ok(findings::value_of(&study, change))
    }

    /// What the history tells of these revisions. One that isn't measured is passed over; one that
    /// came to nothing is a failure.
    pub fn findings(&self, revisions: &[Revision]) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        for revision in revisions {
            let failure = self.failure_of(revision);
            if let Ok(why) = std::fs::read_to_string(failure) {
                findings.add_failure(&revision.name, &why);
                continue;
            }
            let folder = self.results_of(revision);
            if folder.is_dir() {
                findings.add(&revision.name, &Study::read(&Results::open(&folder)?)?);
            }
        }
        findings.find_changes();
        findings.narrow(&kept::read(&self.folder.join(BISECTIONS))?);
        Ok(findings)
    }
}
