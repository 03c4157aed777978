//! What a plan needs metadata locks for.

use porpoise_catalog::TableState;
use porpoise_core::error::Result;
use porpoise_mdl::{MdlContext, MdlScope, Use, Uses};
use porpoise_planner::plan::{Plan, TableUse};

use crate::session_state::SessionState;

/// The tables, views and routines of a plan, but not what is temporary, nor what LOCK TABLES holds.
pub struct PlanUses<'a, 's> {
    plan: &'a Plan,
    session: &'s SessionState,
}

impl<'a, 's> PlanUses<'a, 's> {
    /// The uses of a plan, as seen by a session with these locked tables.
    pub fn of(plan: &'a Plan, session: &'s SessionState) -> PlanUses<'a, 's> {
        PlanUses { plan, session }
    }
}

impl<'a> Uses<'a, TableState> for PlanUses<'a, '_> {
    #[inline]
    fn each(&self, mut take: impl FnMut(Use<'a, TableState>)) {
        let locked = &self.session.locked_tables;
        for (table, usage) in self.plan.tables.iter().chain(&self.plan.foreign_key_tables) {
            if !table.temporary && (locked.is_empty() || locked.mode(&table.state).is_none()) {
                take(Use {
                    id: table.id,
                    state: &table.state,
                    usage: *usage,
                });
            }
        }
        for (view, usage) in &self.plan.views {
            take(Use {
                id: view.id,
                state: &view.state,
                usage: *usage,
            });
        }
        for routine in &self.plan.routine_locks {
            take(Use {
                id: routine.id,
                state: &routine.state,
                usage: TableUse::Read,
            });
        }
    }
}

/// Takes the metadata locks of a plan's tables, views and routines, for the transaction or else for the
/// statement, unless LOCK TABLES holds them already.
pub fn lock_tables_of<'a>(
    plan: &'a Plan,
    session: &SessionState,
    context: MdlContext<'_>,
    scope: &mut MdlScope<'_, 'a, TableState>,
) -> Result<()> {
    let locked = &session.locked_tables;
    if !locked.is_empty() {
        for (table, name) in &plan.table_names {
            locked.admits_name(table, name)?;
        }
        // LOCK TABLES need not name what foreign keys lead to.
        for (table, usage) in &plan.tables {
            locked.admits(table, *usage)?;
        }
    }
    scope.take(&PlanUses::of(plan, session), context)
}
