//! What the sessions of a database share, what one session holds, and what it may do.
//!
//! 1. [`locked_tables`] is what LOCK TABLES has locked.
//! 2. [`plan_cache`] keeps plans by statement, of a session and of all.
//! 3. [`deadlines`] ends statements whose time is up.
//! 4. [`shared`] is the database, as its sessions see it.
//! 5. [`session_state`] is a session's variables, and what it holds.
//! 6. [`transaction`] is a session's transaction, charged for what it changes.
//! 7. [`plan_locks`] takes the metadata locks that a plan needs.
//! 8. [`active_roles`] are the roles that a session has activated.
//! 9. [`check`] is the only maker of [`Privileged`](check::Privileged), without which nothing runs.
//! 10. [`server_files`] opens the files that statements read and write.

#![warn(missing_docs)]

pub mod active_roles;
pub mod check;
pub mod deadlines;
pub mod locked_tables;
pub mod plan_cache;
pub mod plan_locks;
pub mod planning_context;
pub mod server_files;
pub mod session_state;
pub mod shared;
pub mod transaction;

pub use session_state::SessionState;
pub use shared::Shared;
pub use transaction::SessionTransaction;
