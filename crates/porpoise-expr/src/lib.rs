//! Bound expressions: names resolved, types known, conversions explicit.
//!
//! 1. [`tree`] is what an expression is.
//! 2. [`typing`] constructs them. It decides once what MySQL decides for every row: in which domain
//!    two values are compared, which result type an operator has, where a string becomes a number.
//!    Evaluation then only does what the tree says.
//! 3. [`function`] and [`aggregate`] say what a function is: its name, what it takes and returns,
//!    how it is computed. The functions themselves are in tables elsewhere, a row each.
//! 4. [`context`] is what a function may ask of the statement that calls it.
//! 5. [`cast`], [`compare`] and [`key`] are the arithmetic of values that evaluation and functions
//!    share.
//! 6. [`value_list`] is an IN list that values are looked up in.
//! 7. [`text`] prints expressions.

#![warn(missing_docs)]

pub mod aggregate;
pub mod cast;
pub mod compare;
pub mod context;
pub mod function;
pub mod key;
pub mod text;
pub mod tree;
pub mod typing;
pub mod value_list;

pub use context::{EvalContext, Pace};
pub use text::ColumnNames;
pub use tree::*;
