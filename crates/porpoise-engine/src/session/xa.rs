//! XA statements: the branch that a session is at, and prepared branches that it ends.
//!
//! | state | statements | left by |
//! | --- | --- | --- |
//! | NON-EXISTING | any | XA START |
//! | ACTIVE | any but those that end a transaction | XA END |
//! | IDLE | those that use no table | XA PREPARE, XA COMMIT … ONE PHASE, XA ROLLBACK, XA START … RESUME |
//! | ROLLBACK ONLY | those that use no table | XA ROLLBACK |
//! | PREPARED | those that use no table | XA COMMIT, XA ROLLBACK |
//!
//! A deadlock rolls the branch back and leaves the session at it; it is in ROLLBACK ONLY when the
//! next statement finds that out. XA PREPARE takes the branch from its session: the session goes
//! on, and any session may end the branch. With `xa_detach_on_prepare=OFF` the session stays at it,
//! in PREPARED, and no other may end it before the session is gone; it may use temporary tables then.

use std::sync::Arc;

use porpoise_core::error::{Error, Level, Result};
use porpoise_core::reply::{Completion, Reply, ResultColumn};
use porpoise_planner::plan::Plan;
use porpoise_session::check;
use porpoise_session::xa::{Label, PreparedBranch, place_of};
use porpoise_sql::ast::{self, Xa, XaStart, Xid};
use porpoise_storage::{Commit, TxnId};
use porpoise_types::{DataType, Value};

use crate::session::Session;
use crate::session::administer::commits_implicitly;
use crate::session::transaction::TransactionState;

const NON_EXISTING: &str = "NON-EXISTING";

/// The branch that a session is at.
pub(crate) struct XaBranch {
    xid: Xid,
    state: XaState,
    /// XA PREPARE takes it from the session: what `xa_detach_on_prepare` was as it began. Temporary
    /// tables would be the session's still, so that it can't use any.
    detaches: bool,
    /// A deadlock has rolled it back.
    pub is_rolled_back: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum XaState {
    Active,
    Idle,
    RollbackOnly,
    Prepared,
}

impl XaState {
    fn name(self) -> &'static str {
        match self {
            XaState::Active => "ACTIVE",
            XaState::Idle => "IDLE",
            XaState::RollbackOnly => "ROLLBACK ONLY",
            XaState::Prepared => "PREPARED",
        }
    }
}

impl XaBranch {
    fn wrong_state(&self) -> Error {
        Error::xa_wrong_state(self.state.name())
    }

    /// Refuses what a branch that was rolled back can't do any more (1614).
    fn check_rolled_back(&mut self) -> Result<()> {
        match self.is_rolled_back {
            true => {
                self.state = XaState::RollbackOnly;
                Err(Error::xa_deadlock())
            }
            false => Ok(()),
        }
    }
}

impl TransactionState {
    /// Refuses a plan that the session's branch may not run.
    pub fn check_plan_in_xa(&mut self, plan: &Plan) -> Result<()> {
        match &mut self.xa {
            Some(branch) if !plan.tables.is_empty() => {
                branch.check_rolled_back()?;
                if branch.state != XaState::Active {
                    return Err(branch.wrong_state());
                }
                match branch.detaches && plan.tables.iter().any(|(table, _)| table.temporary) {
                    true => Err(Error::xa_temporary_table()),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Refuses a statement without a plan that the session's branch may not run: what would end
    /// the transaction.
    pub fn check_statement_in_xa(&self, statement: &ast::Statement) -> Result<()> {
        use ast::Statement as S;
        let Some(branch) = &self.xa else {
            return Ok(());
        };
        let is_temporary = match statement {
            S::CreateTable(create) => create.temporary,
            S::CreateTableLike { temporary, .. } | S::DropTable { temporary, .. } => *temporary,
            _ => false,
        };
        if is_temporary && branch.detaches {
            return Err(Error::xa_temporary_table());
        }
        let is_refused = match statement {
            S::Begin { .. } | S::Commit(_) | S::Rollback(_) => true,
            S::Savepoint(_) => branch.state != XaState::Active,
            statement => commits_implicitly(statement),
        };
        match is_refused {
            true => Err(branch.wrong_state()),
            false => Ok(()),
        }
    }

    /// Refuses to switch autocommit on, which would commit.
    pub fn check_commit_in_xa(&self) -> Result<()> {
        self.xa
            .as_ref()
            .map_or(Ok(()), |branch| Err(branch.wrong_state()))
    }

    /// The branch that the session is at, if it is this one.
    fn branch(&mut self, xid: &Xid) -> Option<&mut XaBranch> {
        self.xa.as_deref_mut().filter(|branch| branch.xid == *xid)
    }

    /// The state in which XA names the session's transaction.
    fn state_name(&self) -> &'static str {
        self.xa
            .as_ref()
            .map_or(NON_EXISTING, |branch| branch.state.name())
    }

    /// Whether a transaction is under way that is no branch.
    fn is_local(&self) -> bool {
        self.xa.is_none() && (self.open || self.storage.is_some())
    }
}

impl Session {
    pub(super) fn xa(&mut self, xa: &Xa, reply: &mut dyn Reply) -> Result<Option<Commit>> {
        let mut commit = None;
        match xa {
            Xa::Start { xid, option } => self.xa_start(xid, *option)?,
            Xa::End { xid, suspend } => self.xa_end(xid, *suspend)?,
            Xa::Prepare(xid) => self.xa_prepare(xid)?,
            Xa::Commit { xid, one_phase } => commit = self.xa_commit(xid, *one_phase)?,
            Xa::Rollback(xid) => commit = self.xa_rollback(xid)?,
            Xa::Recover { convert } => {
                self.xa_recover(*convert, reply)?;
                return Ok(None);
            }
        }
        reply.ok(&Completion {
            warnings: self.state.warning_count(),
            ..Completion::default()
        })?;
        Ok(commit)
    }

    fn xa_start(&mut self, xid: &Xid, option: XaStart) -> Result<()> {
        if let (XaStart::Resume, Some(branch)) = (option, &mut self.transaction.xa)
            && branch.state == XaState::Idle
        {
            if branch.xid != *xid {
                return Err(Error::xa_unknown());
            }
            branch.check_rolled_back()?;
            branch.state = XaState::Active;
            return Ok(());
        }
        if option != XaStart::New {
            return Err(Error::xa_invalid());
        }
        if let Some(branch) = &self.transaction.xa {
            return Err(branch.wrong_state());
        }
        if self.transaction.is_local() || !self.state.locked_tables.is_empty() {
            return Err(Error::xa_outside());
        }
        if !self.shared.xa.begin(xid) {
            return Err(Error::xa_duplicate());
        }
        let read_only = self.is_read_only();
        self.transaction.open = true;
        self.transaction.read_only = Some(read_only);
        self.transaction.xa = Some(Box::new(XaBranch {
            detaches: self.state.get("xa_detach_on_prepare") != Value::Int(0),
            xid: xid.clone(),
            state: XaState::Active,
            is_rolled_back: false,
        }));
        Ok(())
    }

    fn xa_end(&mut self, xid: &Xid, suspend: bool) -> Result<()> {
        if suspend {
            return Err(Error::xa_invalid());
        }
        let state = self.transaction.state_name();
        if state != XaState::Active.name() && state != XaState::RollbackOnly.name() {
            return Err(Error::xa_wrong_state(state));
        }
        let branch = self.transaction.branch(xid);
        let branch = branch.ok_or_else(Error::xa_unknown)?;
        branch.check_rolled_back()?;
        branch.state = XaState::Idle;
        Ok(())
    }

    /// XA PREPARE: takes the branch from the session, to be ended by any.
    fn xa_prepare(&mut self, xid: &Xid) -> Result<()> {
        let state = self.transaction.state_name();
        if state != XaState::Idle.name() {
            return Err(Error::xa_wrong_state(state));
        }
        let branch = self.transaction.branch(xid);
        let detaches = branch.ok_or_else(Error::xa_unknown)?.detaches;
        let changes = self.transaction.changes_lasting_tables;
        let (shared, control) = (Arc::clone(&self.shared), Arc::clone(&self.control));
        let changing = match changes {
            true => Some(self.state.begin_commit(&shared.locks, &control)?),
            false => None,
        };
        let writable = match changes {
            true => check::check_writable(&self.state, &self.shared.variables),
            false => Ok(()),
        };
        let prepared = writable.and_then(|()| self.prepare_branch(xid, changes));
        drop(changing);
        match prepared {
            Ok(mut prepared) => {
                prepared.owner = (!detaches).then(|| self.id());
                self.shared.xa.keep_prepared(xid, Box::new(prepared));
                self.leave_prepared();
                if !detaches {
                    self.transaction.open = true;
                    self.transaction.xa = Some(Box::new(XaBranch {
                        detaches,
                        xid: xid.clone(),
                        state: XaState::Prepared,
                        is_rolled_back: false,
                    }));
                }
                Ok(())
            }
            Err(error) => {
                self.leave_branch();
                self.state.warn(Level::Warning, error.into_condition());
                Err(Error::xa_rolled_back())
            }
        }
    }

    /// The session has no transaction any more: its branch is prepared, or has ended.
    fn leave_prepared(&mut self) {
        self.transaction.xa = None;
        self.transaction.rollback(&self.control);
        // What waits for the branch waits for no session.
        self.control.held.set_transaction(TxnId(0));
        self.end_transaction();
    }

    /// Prepares what the session has done at its branch.
    fn prepare_branch(&mut self, xid: &Xid, changes: bool) -> Result<PreparedBranch> {
        let catalog = self.shared.catalog.load();
        let held = self.transaction.tables.uses(&self.control);
        let locked = held.clone();
        let label = Label::of(&held, &catalog, changes).to_bytes();
        drop(catalog);
        let storage = self.transaction.take_storage(&self.shared, &self.state);
        let (space, key) = place_of(xid);
        let transaction = storage.prepare((space, &key), &label, &self.state.memory)?;
        Ok(PreparedBranch {
            owner: None,
            transaction,
            locked,
            tables: self.transaction.tables.detach(&self.control),
            changes_lasting_tables: changes,
        })
    }

    /// XA COMMIT: of the session's own branch with ONE PHASE, or of a prepared one.
    fn xa_commit(&mut self, xid: &Xid, one_phase: bool) -> Result<Option<Commit>> {
        let Some(branch) = self.transaction.branch(xid) else {
            // ONE PHASE is for what isn't prepared: a branch that its session is at.
            if one_phase {
                self.check_at_no_branch()?;
                return Err(match self.shared.xa.is_prepared(xid, self.id()) {
                    true => Error::xa_wrong_state(XaState::Prepared.name()),
                    false => Error::xa_unknown(),
                });
            }
            return self.end_prepared(xid, true).map(|()| None);
        };
        match branch.state {
            XaState::Prepared if !one_phase => return self.end_own(xid, true).map(|()| None),
            XaState::Idle | XaState::RollbackOnly if one_phase => {}
            _ => return Err(branch.wrong_state()),
        }
        if branch.is_rolled_back {
            self.leave_branch();
            return Err(Error::xa_deadlock());
        }
        let committed = self.commit();
        // Having waited in vain for FLUSH TABLES WITH READ LOCK, it may try again.
        if committed.is_ok() || self.transaction.storage.is_none() {
            self.leave_branch();
        }
        committed
    }

    /// XA ROLLBACK: of the session's own branch, or of a prepared one.
    fn xa_rollback(&mut self, xid: &Xid) -> Result<Option<Commit>> {
        match self.transaction.branch(xid) {
            None => self.end_prepared(xid, false).map(|()| None),
            Some(branch) if branch.state == XaState::Active => Err(branch.wrong_state()),
            Some(branch) if branch.state == XaState::Prepared => {
                self.end_own(xid, false).map(|()| None)
            }
            Some(_) => Ok(self.leave_branch()),
        }
    }

    /// Rolls the session's branch back, if it is at one, and forgets it. What is returned is to be
    /// waited for, as with ROLLBACK.
    pub(super) fn leave_branch(&mut self) -> Option<Commit> {
        let branch = self.transaction.xa.take()?;
        if branch.state == XaState::Prepared {
            self.shared.xa.detach(&branch.xid);
            self.leave_prepared();
            return None;
        }
        let unconfirmed = self.rollback();
        self.shared.xa.ended(&branch.xid);
        unconfirmed
    }

    /// Ends a prepared branch that no session is at.
    fn end_prepared(&mut self, xid: &Xid, commits: bool) -> Result<()> {
        self.check_at_no_branch()?;
        self.end_taken(xid, commits)
    }

    /// Refuses what a session that has a transaction can't do to another's branch.
    fn check_at_no_branch(&self) -> Result<()> {
        match self.transaction.xa.is_some() || self.transaction.is_local() {
            true => Err(Error::xa_wrong_state(self.transaction.state_name())),
            false => Ok(()),
        }
    }

    /// Ends the prepared branch that the session is at.
    fn end_own(&mut self, xid: &Xid, commits: bool) -> Result<()> {
        self.end_taken(xid, commits)?;
        self.leave_prepared();
        Ok(())
    }

    /// Commits a prepared branch, or rolls it back. If that fails it is still prepared.
    fn end_taken(&mut self, xid: &Xid, commits: bool) -> Result<()> {
        let branch = self.shared.xa.take_prepared(xid, self.id());
        let branch = branch.ok_or_else(Error::xa_unknown)?;
        let admitted = match branch.changes_lasting_tables {
            true => self
                .state
                .begin_commit(&self.shared.locks, &self.control)
                .map(Some),
            false => Ok(None),
        };
        let admitted = admitted.and_then(|changing| {
            if commits && branch.changes_lasting_tables {
                check::check_writable(&self.state, &self.shared.variables)?;
            }
            Ok(changing)
        });
        let _changing = match admitted {
            Ok(changing) => changing,
            Err(error) => {
                self.shared.xa.keep_prepared(xid, branch);
                return Err(error);
            }
        };
        let PreparedBranch {
            owner,
            transaction,
            locked,
            tables,
            changes_lasting_tables,
        } = *branch;
        let ended = match commits {
            true => transaction.commit(),
            false => transaction.rollback(),
        };
        match ended {
            Ok(()) => {
                drop(tables);
                self.shared.xa.ended(xid);
                Ok(())
            }
            Err(left) => {
                let branch = PreparedBranch {
                    owner,
                    transaction: left.transaction,
                    locked,
                    tables,
                    changes_lasting_tables,
                };
                self.shared.xa.keep_prepared(xid, Box::new(branch));
                Err(left.error.into())
            }
        }
    }

    fn xa_recover(&mut self, convert: bool, reply: &mut dyn Reply) -> Result<()> {
        if let Err(denied) = check::check_xa_recover(&self.state) {
            self.state.warn(Level::Error, denied.into_condition());
            return Err(Error::xa_fatal());
        }
        let number = |name| ResultColumn::expression(name, DataType::BIGINT, false);
        let columns = [
            number("formatID"),
            number("gtrid_length"),
            number("bqual_length"),
            ResultColumn::expression("data", DataType::varchar(258), false),
        ];
        let length = |part: &[u8]| Value::Int(part.len() as i64);
        let row = |xid: Xid| {
            let data = [&*xid.gtrid, &*xid.bqual].concat();
            let shown = match convert {
                true => {
                    let digits = data.iter().map(|byte| format!("{byte:02X}"));
                    Value::from(format!("0x{}", digits.collect::<String>()))
                }
                false => Value::Bytes(data),
            };
            vec![
                Value::Int(xid.format as i64),
                length(&xid.gtrid),
                length(&xid.bqual),
                shown,
            ]
        };
        let prepared = self.shared.xa.prepared();
        let rows: Vec<Vec<Value>> = prepared.into_iter().map(row).collect();
        self.send_rows(&columns, &rows, reply)
    }
}
