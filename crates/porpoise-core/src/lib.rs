//! What every layer of the engine speaks of.
//!
//! 1. [`error`] has errors and warnings, with MySQL's numbers and words.
//! 2. [`reply`] is where a statement's answer goes.
//! 3. [`quote`] spells names and texts as statements do.
//! 4. [`memory`] counts what statements' buffers take, and [`temporary_space`] what their files do;
//!    [`temporary_file`] is where rows go that memory doesn't hold. [`sort`] sorts in a way that can
//!    be ended, [`external_sort`] what memory doesn't hold.
//! 5. [`privilege`] is the table of privileges, and sets of them; [`password_validation`] tells good
//!    passwords from bad ones.
//! 6. [`variables`] has the system variables, a row each, and a session's values of them.

#![warn(missing_docs)]

pub mod error;
pub mod external_sort;
pub mod memory;
pub mod password_validation;
pub mod privilege;
pub mod quote;
pub mod reply;
pub mod sort;
pub mod temporary_file;
pub mod temporary_space;
pub mod variables;

pub use error::{Error, Result};
