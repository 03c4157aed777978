//! What the sessions of a database share, what one session holds, and what it may do.
//!
//! 1. [`locked_tables`] is what LOCK TABLES has locked.
//! 2. [`plan_cache`] keeps plans by statement, of a session and of all.
//! 3. [`deadlines`] ends statements whose time is up.
//! 4. [`xa`] has the transaction branches that are prepared and wait to be ended.
//! 5. [`shared`] is the database, as its sessions see it.
//! 6. [`session_state`] is a session's variables, and what it holds.
//! 7. [`transaction`] is a session's transaction, charged for what it changes.
//! 8. [`plan_locks`] takes the metadata locks that a plan needs.
//! 9. [`active_roles`] are the roles that a session has activated.
//! 10. [`check`] is the only maker of [`Privileged`](check::Privileged), without which nothing runs.
//! 11. [`server_files`] opens the files that statements read and write.
//! 12. [`log_tables`] are the logs that can be queried.

#![warn(missing_docs)]

pub mod active_roles;
pub mod check;
pub mod deadlines;
pub mod event_bell;
pub mod locked_tables;
pub mod log_tables;
pub mod persisted;
pub mod plan_cache;
pub mod plan_locks;
pub mod planning_context;
pub mod server_files;
pub mod session_state;
pub mod set_variable;
pub mod shared;
pub mod transaction;
pub mod xa;

pub use session_state::SessionState;
pub use shared::Shared;
pub use transaction::SessionTransaction;
