//! What a statement needs privileges for: every table, view and column that it names.
//!
//! A table or view is found by name in one place only, [`Binder::open`](super::bind), and that
//! place notes the name here *before* it looks: whatever clause or subquery the name stands in, and
//! whether the statement holds it or a view does. The list is therefore complete by construction.
//! It travels with the plan, or with the error where there is none, and neither can be used before
//! [`accounts::check`](porpoise_session::check) has gone through it.
//!
//! ```text
//!  SELECT v.a FROM v          1  pub.v     SELECT on column a      by the session
//!  v: SELECT a FROM secret.t  2  secret.t  SELECT on column a      by v's definer; else error 1356 for v
//! ```
//!
//! A view's plainly selected columns are needed in the way in which the view's own columns are
//! used: what reads `v.a` needs SELECT on `secret.t.a`, what assigns to it UPDATE. So an access
//! remembers which columns of what it stands for ([`AccessList::expand_view`]).
//!
//! MySQL 8.4 manual, 8.2.2 (privileges), 15.1.23 (CREATE VIEW), 27.6 (SQL SECURITY).

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_catalog::View;
use porpoise_core::privilege::{Privilege, Set};

/// A table or view that a statement names, and the privileges that this needs.
#[derive(Clone, Debug)]
pub struct Access {
    /// The schema as the statement names it, or the current one.
    pub schema: CompactString,
    /// The table or view as the statement names it. It need not exist.
    pub name: CompactString,
    /// Needed on the whole.
    pub whole: Set,
    /// Needed on the whole, or else on a column of it, whichever.
    pub somewhere: Set,
    /// One of these is needed, on the whole or on a column.
    pub any_of: Set,
    /// Needed on a column, or on the whole.
    pub columns: Vec<(CompactString, Set)>,
    /// Needed on all columns, because the statement names none (`*`, an INSERT without a list):
    /// they are among `columns`, but the error names the table.
    pub unnamed: Set,
    /// Columns that a view's definition shows: any privilege on each will do.
    pub shown: Vec<CompactString>,
    /// Its rows are locked by a read: that takes the right to change them, too.
    pub locks_rows: bool,
    /// Whose privileges are checked.
    pub authority: Authority,
    /// The outermost view that the statement reached it through: the only one that errors may name
    /// to the session.
    pub outermost_view: Option<Arc<View>>,
}

/// The privileges that naming a table or view needs, whichever of its columns are used.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// All of these privileges, on the whole or on a column.
    All(Set),
    /// One of those that a view's columns may be used for: a view's definition names it.
    AnyOfView,
}

impl Need {
    /// SELECT, on the whole or on a column: what naming a table in FROM takes.
    pub const READ: Need = Need::All(Set::SELECT);
}

/// A stored function that a statement calls.
#[derive(Clone, Debug)]
pub struct RoutineUse {
    /// Its schema.
    pub schema: CompactString,
    /// Its name.
    pub name: CompactString,
    /// Who needs EXECUTE on it.
    pub authority: Authority,
    /// The outermost view that calls it: the only one that errors may name to the session.
    pub outermost_view: Option<Arc<View>>,
}

/// Whose privileges an access needs.
#[derive(Clone, Debug)]
pub enum Authority {
    /// The session's own user, with its active roles.
    Session,
    /// The definer of a view with SQL SECURITY DEFINER, the innermost such around the name.
    Definer(Arc<View>),
}

impl Access {
    /// The privileges that suffice if they are granted globally.
    fn enough(&self) -> Set {
        let columns = self.columns.iter().map(|(_, set)| *set);
        let mut enough = columns.fold(self.whole.with(self.somewhere), Set::with);
        if self.locks_rows {
            enough = enough.with(Privilege::Update.set());
        }
        if !self.any_of.is_empty() {
            enough = enough.with(Set::SELECT);
        }
        enough
    }
}

/// An [`Access`] of an [`AccessList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessId(usize);

/// A column of what an access names.
pub type AccessColumn = (AccessId, CompactString);

/// The accesses of a statement while it is bound.
#[derive(Default)]
pub struct AccessList {
    accesses: Vec<Access>,
    /// What a view stands for, of each access.
    expansions: Vec<ViewExpansion>,
    /// The views that are being bound, the innermost last.
    views: Vec<Arc<View>>,
    /// The views whose definers' privileges count, whatever these views name.
    of_definers: Vec<Arc<View>>,
}

#[derive(Clone, Default)]
struct ViewExpansion {
    /// For each of the view's columns, the column that it plainly shows.
    columns: Vec<(CompactString, Option<AccessColumn>)>,
    /// What the view's FROM names.
    relations: Vec<AccessId>,
}

impl AccessList {
    /// Notes that a table or view is named. It is not known yet whether it exists.
    pub fn name(&mut self, schema: &str, name: &str, need: Need) -> AccessId {
        let (somewhere, any_of) = match need {
            Need::All(all) => (all, Set::NONE),
            Need::AnyOfView => (Set::NONE, Set::OF_VIEWS),
        };
        let authority = self.authority();
        self.accesses.push(Access {
            schema: schema.into(),
            name: name.into(),
            whole: Set::NONE,
            somewhere,
            any_of,
            columns: Vec::new(),
            unnamed: Set::NONE,
            shown: Vec::new(),
            locks_rows: false,
            authority,
            outermost_view: self.views.first().cloned(),
        });
        self.expansions.push(ViewExpansion::default());
        AccessId(self.accesses.len() - 1)
    }

    /// Whose privileges count where the statement is being bound.
    fn authority(&self) -> Authority {
        let definer = self.views.iter().rev().find(|view| !view.invoker);
        match definer {
            Some(view) => Authority::Definer(Arc::clone(view)),
            None => Authority::Session,
        }
    }

    /// Notes that a stored function is called.
    pub fn call(&self, schema: &str, name: &str) -> RoutineUse {
        RoutineUse {
            schema: schema.into(),
            name: name.into(),
            authority: self.authority(),
            outermost_view: self.views.first().cloned(),
        }
    }

    /// Whether a name of a table or view is its own, and no alias.
    pub fn is_named(&self, access: AccessId, name: &str) -> bool {
        self.accesses[access.0].name == name
    }

    /// What is named from here on is named by this view.
    pub fn enter_view(&mut self, view: &Arc<View>) {
        self.views.push(Arc::clone(view));
        if !view.invoker && !self.of_definers.iter().any(|known| known.id == view.id) {
            self.of_definers.push(Arc::clone(view));
        }
    }

    /// The end of the view entered last.
    pub fn leave_view(&mut self) {
        self.views.pop();
    }

    /// Whether this view is being bound.
    pub fn is_within(&self, view: &View) -> bool {
        self.views.iter().any(|outer| outer.id == view.id)
    }

    /// Whether a view is being bound.
    pub fn is_in_view(&self) -> bool {
        !self.views.is_empty()
    }

    /// Notes what a view's columns are columns of, and which relations its rows come from.
    pub fn expand_view(
        &mut self,
        view: AccessId,
        columns: Vec<(CompactString, Option<AccessColumn>)>,
        relations: Vec<AccessId>,
    ) {
        let somewhere = self.accesses[view.0].somewhere;
        for below in &relations {
            self.need(*below, somewhere);
        }
        self.expansions[view.0] = ViewExpansion { columns, relations };
    }

    /// Adds to what is needed somewhere, on what a view stands for, too.
    fn need(&mut self, access: AccessId, somewhere: Set) {
        let noted = &mut self.accesses[access.0];
        noted.somewhere = noted.somewhere.with(somewhere);
        for below in self.expansions[access.0].relations.clone() {
            self.need(below, somewhere);
        }
    }

    /// A column is read, or given a value. Through views this goes down to the tables.
    pub fn column(&mut self, (access, name): &AccessColumn, privilege: Privilege) {
        let columns = &mut self.accesses[access.0].columns;
        let known = columns.iter_mut().find(|(known, _)| known == name);
        match known {
            Some((_, set)) if set.has(privilege) => return,
            Some((_, set)) => *set = set.with(privilege.set()),
            None => columns.push((name.clone(), privilege.set())),
        }
        let below = self.expansions[access.0]
            .columns
            .iter()
            .find(|(shown, _)| shown.eq_ignore_ascii_case(name));
        if let Some((_, Some(below))) = below {
            let below = below.clone();
            self.column(&below, privilege);
        }
    }

    /// All columns are used without being named.
    pub fn unnamed(&mut self, access: AccessId, privilege: Privilege) {
        let noted = &mut self.accesses[access.0];
        noted.unnamed = noted.unnamed.with(privilege.set());
    }

    /// A column is shown by a view's definition, for whatever use.
    pub fn show(&mut self, (access, name): &AccessColumn) {
        let shown = &mut self.accesses[access.0].shown;
        if !shown.contains(name) {
            shown.push(name.clone());
        }
    }

    /// Rows are changed: what the name stands for needs these privileges somewhere instead of
    /// SELECT, which only the columns that are read need.
    pub fn change(&mut self, access: AccessId, somewhere: Set) {
        let noted = &mut self.accesses[access.0];
        noted.somewhere = noted.somewhere.without(Set::SELECT).with(somewhere);
        for below in self.expansions[access.0].relations.clone() {
            self.change(below, somewhere);
        }
    }

    /// Privileges on a whole table or view, and on what a view's rows come from.
    pub fn whole(&mut self, access: AccessId, privilege: Privilege) {
        let noted = &mut self.accesses[access.0];
        noted.whole = noted.whole.with(privilege.set());
        for below in self.expansions[access.0].relations.clone() {
            self.whole(below, privilege);
        }
    }

    /// Rows are locked by a read.
    pub fn lock_rows(&mut self, access: AccessId) {
        self.accesses[access.0].locks_rows = true;
    }

    /// All accesses noted, with what suffices for them worked out.
    pub fn finish(self) -> Accesses {
        Accesses::new(self.accesses, self.of_definers)
    }
}

/// All accesses of a statement.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    list: Vec<Access>,
    /// The views with SQL SECURITY DEFINER that were entered.
    of_definers: Vec<Arc<View>>,
    /// What suffices if it is granted globally to the session's user; `None` where others'
    /// privileges count as well.
    enough: Option<Set>,
}

impl Accesses {
    fn new(list: Vec<Access>, of_definers: Vec<Arc<View>>) -> Accesses {
        let enough = of_definers.is_empty().then(|| {
            list.iter()
                .fold(Set::NONE, |set, access| set.with(access.enough()))
        });
        Accesses {
            list,
            of_definers,
            enough,
        }
    }

    /// Every access, in the order in which the statement names tables and views.
    pub fn iter(&self) -> impl Iterator<Item = &Access> {
        self.list.iter()
    }

    /// The views whose definers have to exist, even where a view names no table.
    pub fn of_definers(&self) -> &[Arc<View>] {
        &self.of_definers
    }

    /// Whether these global privileges of the session's user allow all of it.
    pub fn are_allowed_by(&self, global: Set) -> bool {
        self.enough.is_some_and(|enough| global.contains(enough))
    }
}

/// Why a statement has no plan, and what it had named by then: a session that lacks privileges for
/// that gets an error about the privileges instead.
#[derive(Debug)]
pub struct PlanError {
    pub(crate) error: porpoise_core::error::Error,
    pub(crate) accesses: Accesses,
}

impl PlanError {
    /// The error for the session: what `check` refuses of the names that were looked up before,
    /// else why there is no plan.
    pub fn after_check(
        self,
        check: impl FnOnce(&Accesses) -> porpoise_core::error::Result<()>,
    ) -> porpoise_core::error::Error {
        match check(&self.accesses) {
            Err(denied) => denied,
            Ok(()) => self.error,
        }
    }

    /// The error, where the session may see the definition that was planned.
    pub fn of_definition(self) -> porpoise_core::error::Error {
        self.error
    }
}
