//! What is granted on single procedures and functions (MySQL 8.4 manual, 8.2.2 and 27.2.2).

use compact_str::CompactString;
use porpoise_core::privilege::Set;
use serde::{Deserialize, Serialize};

use super::Grants;

/// A routine: routines of both kinds may have one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutineName {
    /// The schema's name; no pattern.
    pub schema: CompactString,
    /// The routine's name, in any case.
    pub name: CompactString,
    /// A function, else a procedure.
    pub is_function: bool,
}

impl RoutineName {
    /// Whether it names the same routine.
    pub fn is(&self, other: &RoutineName) -> bool {
        self.is_function == other.is_function
            && self.schema == other.schema
            && self.name.to_lowercase() == other.name.to_lowercase()
    }
}

/// What is granted on one routine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoutineGrant {
    /// Which routine.
    pub routine: RoutineName,
    /// What is granted; nothing after GRANT USAGE.
    pub privileges: Set,
    /// Who granted it last: `user@host`.
    #[serde(default)]
    pub grantor: CompactString,
    /// When, in UTC microseconds since 1970.
    #[serde(default)]
    pub granted_us: i64,
}

impl Grants {
    /// What is granted on a routine: on itself, its schema or globally.
    pub fn on_routine(&self, routine: &RoutineName) -> Set {
        let own = self.routine(routine);
        self.on_schema(&routine.schema)
            .with(own.map_or(Set::NONE, |grant| grant.privileges))
    }

    /// The grant on exactly this routine.
    pub fn routine(&self, routine: &RoutineName) -> Option<&RoutineGrant> {
        let mut grants = self.routines.iter();
        grants.find(|grant| grant.routine.is(routine))
    }

    /// Adds to what is granted on a routine.
    pub fn add_on_routine(&mut self, new: RoutineGrant) {
        let mut grants = self.routines.iter_mut();
        match grants.find(|grant| grant.routine.is(&new.routine)) {
            Some(grant) => {
                grant.privileges = grant.privileges.with(new.privileges);
                grant.grantor = new.grantor;
                grant.granted_us = new.granted_us;
            }
            None => self.routines.push(new),
        }
    }

    /// Whether anything is granted on a routine of a schema.
    pub(crate) fn has_routine_in(&self, schema: &str) -> bool {
        let mut grants = self.routines.iter();
        grants.any(|grant| grant.routine.schema == schema)
    }
}
