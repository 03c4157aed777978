//! Makes a statement that fails smaller, as long as it fails in the same way.

use super::reply::Fault;
use super::statement::Statement;

/// A statement is tried so many times at most: each may cost a server.
const TRIES_MAX: usize = 2000;

/// The smallest statement that `fails` like `fault` and comes from this one by small steps, and its
/// fault.
pub(super) fn shrunk(
    statement: &Statement,
    fault: &Fault,
    mut fails: impl FnMut(&Statement) -> Option<Fault>,
) -> (Statement, Fault) {
    let (mut smallest, mut its_fault) = (statement.clone(), fault.clone());
    let mut tries = 0;
    'smaller: loop {
        for candidate in smallest.smaller() {
            if tries == TRIES_MAX {
                break 'smaller;
            }
            tries += 1;
            if let Some(fault) = fails(&candidate)
                && fault.is_like(&its_fault)
            {
                (smallest, its_fault) = (candidate, fault);
                continue 'smaller;
            }
        }
        break;
    }
    (smallest, its_fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::statement::forms_named;

    #[test]
    fn what_fails_is_made_as_small_as_it_can_be() {
        let mut shrunk_some = 0;
        for number in 0..3000 {
            let statement =
                Statement::of(&mut fastrand::Rng::with_seed(number), &forms_named(&[]), 2);
            let fault = Fault::Lost(String::new());
            let fails =
                |statement: &Statement| statement.sql().contains("SOUNDEX(").then(|| fault.clone());
            if fails(&statement).is_some() {
                let (smallest, _) = shrunk(&statement, &fault, fails);
                let sql = smallest.sql();
                assert!(
                    sql.contains("SOUNDEX(0)") && sql.len() < 45,
                    "{sql} of {}",
                    statement.sql()
                );
                shrunk_some += 1;
            }
        }
        assert!(shrunk_some > 5, "{shrunk_some}");
    }
}
