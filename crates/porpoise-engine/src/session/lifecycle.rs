//! Opening, resetting and closing a session: login, COM_RESET_CONNECTION, COM_CHANGE_USER,
//! COM_INIT_DB.

use std::sync::Arc;

use compact_str::CompactString;
use hashbrown::HashMap;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables;
use porpoise_mdl::process::Control;
use porpoise_planner::plan::Plan;
use porpoise_session::check;
use porpoise_session::plan_cache::SessionPlans;
use porpoise_session::session_state::SessionState;
use porpoise_session::shared::Shared;
use porpoise_sql::Literals;

use crate::session::state_changes::SessionStateChanges;
use crate::session::transaction::TransactionState;
use crate::session::{Login, Session};

impl Session {
    /// Opens a session for a login and adds it to the process list.
    pub(crate) fn open(shared: Arc<Shared>, login: Login) -> Result<Session> {
        let control = Arc::new(Control::new(
            login.connection_id,
            login.user.clone(),
            login.peer.clone(),
        ));
        let plan_in_use = Arc::default();
        control.set_plan::<Plan>(Arc::clone(&plan_in_use));
        let state = Self::initial_state(&shared, &login);
        let mut session = Session {
            state,
            shared,
            transaction: TransactionState::default(),
            control,
            plan_in_use,
            plans: SessionPlans::default(),
            prepared: HashMap::new(),
            kept_statements: Default::default(),
            named: HashMap::new(),
            next_statement_id: 1,
            literals: Literals::new(),
            parameters: Vec::new(),
            login: Login::default(),
            state_changes: SessionStateChanges::default(),
            multi_statements: true,
            programs: Default::default(),
            handlers: Vec::new(),
        };
        session.log_in(login)?;
        session.shared.locks.sessions.add(session.control.clone());
        Ok(session)
    }

    /// The state of a session before its login: the globals, with the client's collation.
    fn initial_state(shared: &Shared, login: &Login) -> SessionState {
        let globals = &shared.variables;
        SessionState::new(
            globals.begin_session(login.connection_id, login.collation),
            porpoise_ddl::execute,
        )
    }

    /// Gives a session that is in its initial state to the one who logs in.
    fn log_in(&mut self, mut login: Login) -> Result<()> {
        if let Some(collation) = login.collation {
            variables::client_charset(collation.charset())?;
        }
        if let Some(attributes) = login.attributes.take() {
            let globals = &self.shared.variables;
            let size = globals.get_u64("performance_schema_session_connect_attrs_size");
            let kept = kept_attributes(attributes, size);
            self.control.set_attributes(kept.into());
        }
        let state = &mut self.state;
        state.interrupt = self.control.interrupt.clone();
        state.waiter = self.control.waiter.clone();
        state.user = login.user.clone();
        state.host = login.host.clone();
        let lifetime = self.shared.variables.get_u64("default_password_lifetime");
        state.set_account(login.account.clone(), lifetime);
        state.proxy_user = login.proxy_user.clone();
        state.tls = login.tls.clone();
        state.compression = login.compression;
        state.found_rows_flag = login.found_rows;
        if login.interactive {
            porpoise_core::variables::make_interactive(state);
        }
        porpoise_session::active_roles::log_in(state, &self.shared.accounts)?;
        let is_exempt = state.account.is_some() && check::is_connection_admin(state);
        state.memory.set_exempt(is_exempt);
        self.end_transaction();
        self.login = login;
        if let Some(schema) = self.login.schema.clone() {
            self.init_db(&schema)?;
        }
        Ok(())
    }

    /// USE, and COM_INIT_DB.
    pub fn init_db(&mut self, name: &str) -> Result<()> {
        let name = &*self.state.folded(name);
        check::check_schema_visible(&self.state, name)?;
        let catalog = self.shared.catalog.load();
        let Some(schema) = catalog.schema_name(name) else {
            return Err(Error::unknown_database(name));
        };
        let collation = catalog.schema(name).map(|entry| entry.schema.collation);
        if let Some(collation) = collation {
            variables::set_database_collation(collation, &mut self.state);
        }
        self.state.schema = Some(schema.clone());
        self.control.set_schema(Some(schema.clone()));
        self.state_changes.schema = Some(schema);
        self.state_changes.state_changed = true;
        Ok(())
    }

    /// Has another schema, or none, for a statement that was prepared there; returns the current one.
    pub(super) fn enter_schema(&mut self, schema: Option<CompactString>) -> Option<CompactString> {
        let catalog = self.shared.catalog.load();
        let found = schema.as_ref().and_then(|schema| catalog.schema(schema));
        match found.map(|entry| entry.schema.collation) {
            Some(collation) => variables::set_database_collation(collation, &mut self.state),
            None => variables::forget_database_collation(&mut self.state),
        }
        std::mem::replace(&mut self.state.schema, schema)
    }

    /// Has the schema again that was current before [`enter_schema`](Session::enter_schema), if it
    /// is still there.
    pub(super) fn leave_schema(&mut self, held: Option<CompactString>) {
        let catalog = self.shared.catalog.load();
        let held = held.filter(|schema| catalog.schema(schema).is_some());
        drop(catalog);
        self.control.set_schema(held.clone());
        self.enter_schema(held);
    }

    /// COM_RESET_CONNECTION: as if just connected, without authenticating again.
    pub fn reset(&mut self) -> Result<()> {
        self.clear()?;
        let schema = self.state.schema.clone();
        let login = Login {
            schema: None,
            ..self.login.clone()
        };
        // With the global character sets, not with those the client asked for at login.
        let globals = &self.shared.variables;
        self.state = SessionState::new(
            globals.begin_session(login.connection_id, None),
            porpoise_ddl::execute,
        );
        self.log_in(login)?;
        self.state.schema = schema;
        Ok(())
    }

    /// COM_CHANGE_USER, after the new user has proven who they are.
    pub fn change_user(&mut self, login: Login) -> Result<()> {
        self.clear()?;
        self.state = Self::initial_state(&self.shared, &login);
        self.control.set_user(login.user.clone());
        self.log_in(login)
    }

    /// Ends what the session holds: transaction, locks, temporary tables, prepared statements,
    /// plans.
    fn clear(&mut self) -> Result<()> {
        self.leave_branch();
        self.transaction.rollback(&self.control);
        self.release_named_locks();
        self.handlers.clear();
        self.drop_temporary_tables()?;
        self.prepared.clear();
        self.kept_statements.clear();
        self.named.clear();
        self.plans.clear();
        self.shared.locks.sessions.reset_counts(&self.control);
        self.state_changes = SessionStateChanges::default();
        Ok(())
    }

    fn release_named_locks(&self) {
        let locks = &self.shared.locks.named;
        locks.release_all(self.state.connection_id);
    }

    /// Drops the session's temporary tables and their spaces, durably.
    pub(crate) fn drop_temporary_tables(&mut self) -> Result<()> {
        if self.state.temporary_tables.is_empty() {
            return Ok(());
        }
        let mut transaction = self.shared.store.begin();
        for (_, table) in self.state.temporary_tables.drain() {
            transaction.drop_space(table.space);
            for index in table
                .indexes
                .iter()
                .filter(|index| index.space != table.space)
            {
                transaction.drop_space(index.space);
            }
        }
        transaction.commit()?.wait()?;
        Ok(())
    }
}

/// The attributes that `performance_schema_session_connect_attrs_size` has room for, as they are
/// encoded in the protocol: the first ones.
fn kept_attributes(mut attributes: Vec<(String, String)>, size: u64) -> Vec<(String, String)> {
    /// What -1, the size that the server finds, stands for.
    const AUTOSIZED: usize = 512;
    let bytes_max = usize::try_from(size).map_or(AUTOSIZED, |size| match size {
        0..=1_048_576 => size,
        _ => AUTOSIZED,
    });
    let mut bytes = 0;
    let fitting = attributes.iter().take_while(|(name, value)| {
        bytes += [name, value]
            .map(|text| length_encoded(text.len()))
            .iter()
            .sum::<usize>();
        bytes <= bytes_max
    });
    let fitting = fitting.count();
    attributes.truncate(fitting);
    attributes
}

/// How long a text of so many bytes is with its length before it.
fn length_encoded(bytes: usize) -> usize {
    match bytes {
        0..=250 => bytes + 1,
        251..=0xFFFF => bytes + 3,
        _ => bytes + 4,
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave_branch();
        self.transaction.rollback(&self.control);
        self.release_named_locks();
        // A failure here leaves spaces that no definition names. The next start drops them.
        let _ = self.drop_temporary_tables();
        self.shared.locks.sessions.remove(self.control.id);
    }
}
