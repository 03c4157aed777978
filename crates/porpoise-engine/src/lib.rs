//! Catalog, planner, executor, functions and transactions: SQL text in, rows out.
//!
//! What it is: the engine behind every way in. What it is not: it knows no sockets, no packets, no
//! authentication. A [`Session`] takes statements and writes their results into a [`reply::Reply`].
//!
//! The types in the order a statement meets them:
//!
//! ```text
//! text ─► session::Session ─► (statement cache) ─► planner::plan::Plan ─► executor::Exec ─► reply::Reply
//!                                    │ miss                                  │
//!                        porpoise_sql parser ─► planner           porpoise_storage
//!                                    └── catalog::Catalog ───────────────────┘
//! ```

#![warn(missing_docs)]

pub mod engine;
mod event_scheduler;
pub mod index_repair;
pub mod session;
mod statistics_refresh;
#[cfg(test)]
mod tests;

pub use engine::{Engine, EngineOptions, Front, Shared};
pub use porpoise_accounts::{Account, host_cache, policy, tls};
pub use porpoise_core::{Error, Result, error, memory, reply, variables};
pub use porpoise_mdl::command_counts;
pub use porpoise_mdl::process::Control;
pub use porpoise_session::log_tables;
pub use porpoise_session::xa::forget_lost_branches;
pub use session::{Session, expect_long};
