//! What was found: kept once for each kind, and written to files.

use std::io::Write;

use parking_lot::Mutex;

use super::asker::{BY_KEPT_PLAN, Statements};
use super::reply::Fault;
use super::statement::Statement;
use super::{Again, FuzzFinding, FuzzPlan};
use crate::Error;

/// Findings of one kind that are kept, to be made smaller.
const KEPT_MAX: usize = 60;

/// What is found while statements are asked.
pub(super) struct Findings<'s> {
    statements: &'s Statements,
    found: Mutex<Vec<Found>>,
}

#[derive(Clone)]
pub(super) struct Found {
    pub number: u64,
    pub fault: Fault,
    pub times: u64,
}

impl<'s> Findings<'s> {
    pub(super) fn new(statements: &'s Statements) -> Self {
        let found = Mutex::default();
        Self { statements, found }
    }

    /// Keeps a finding, or counts it where enough of its kind are kept.
    pub(super) fn keep(&self, number: u64, fault: Fault) {
        let first_name = |number| self.statements.numbered(number).names().first().copied();
        let name = first_name(number);
        let mut found = self.found.lock();
        let is_same =
            |other: &&mut Found| other.fault.is_like(&fault) && first_name(other.number) == name;
        if let Some(known) = found.iter_mut().find(is_same) {
            known.times += 1;
            return;
        }
        let of_its_kind = found
            .iter()
            .filter(|other| other.fault.kind() == fault.kind())
            .count();
        if of_its_kind < KEPT_MAX {
            found.push(Found {
                number,
                fault,
                times: 1,
            });
        }
    }

    pub(super) fn statement(&self, number: u64) -> Statement {
        self.statements.numbered(number)
    }

    pub(super) fn count(&self) -> usize {
        self.found.lock().len()
    }

    pub(super) fn into_all(self) -> Vec<Found> {
        self.found.into_inner()
    }
}

/// Writes a finding's file; `primers` are asked before it where a kept plan answers.
pub(super) fn write(
    finding: &FuzzFinding,
    plan: &FuzzPlan,
    primers: &[String],
) -> Result<(), Error> {
    let mut file = std::fs::File::create(&finding.file)?;
    let comment = |text: &str| {
        text.lines()
            .map(|line| format!("-- {line}\n"))
            .collect::<String>()
    };
    let primers = match &finding.fault {
        Fault::Differs { one, .. } if one.starts_with(BY_KEPT_PLAN) => primers,
        _ => &[],
    };
    write!(
        file,
        "{}{}{}{}SET time_zone = '+00:00';\n{}{};\n",
        comment(&finding.fault.to_string()),
        comment(&format!(
            "{}, seed {}, statement {}",
            finding.way, plan.seed, finding.number
        )),
        comment(&format!("found as: {}", finding.original)),
        match finding.again {
            Again::Fails => "",
            Again::Passes => "-- it didn't fail when it was asked again, alone\n",
            Again::NotAsked => "-- the run was ended before it was asked again\n",
        },
        primers
            .iter()
            .map(|sql| format!("{sql};\n"))
            .collect::<String>(),
        finding.sql
    )?;
    Ok(())
}
