//! Catalog, planner, executor, functions and transactions: SQL text in, rows out.
//!
//! What it is: the engine behind every way in. What it is not: it knows no sockets, no packets, no
//! passwords' exchange. A [`Session`] takes statements and writes answers into a [`reply::Reply`].
//!
//! The types in the order a statement meets them:
//!
//! ```text
//! text ─► session::Session ─► (statement cache) ─► planner::plan::Plan ─► executor::Exec ─► reply::Reply
//!                                    │ miss                                  │
//!                        porpoise_sql parser ─► planner           porpoise_storage
//!                                    └── catalog::Catalog ───────────────────┘
//! ```

pub mod accounts;
pub mod catalog;
pub mod ddl;
pub mod engine;
pub mod error;
pub mod executor;
pub mod expr;
pub mod functions;
pub mod hosts;
pub mod information_schema;
pub mod locked_tables;
pub mod mdl;
pub mod mend;
pub mod plan_cache;
pub mod plan_locks;
pub mod planner;
pub mod quote;
pub mod reply;
pub mod session;
pub mod session_state;
pub mod shared;
pub mod show;
pub mod variables;

pub use engine::{Engine, EngineOptions, Front};
pub use error::{Error, Result};
pub use session::Session;
