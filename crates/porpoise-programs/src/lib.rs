//! Stored programs: procedures, functions, triggers (MySQL 8.4 manual, 15.6 and 27).
//!
//! ```text
//! text ─► ast::CreateProgram ─► compile ─► Program: instructions, slots ─► Machine::run ─► Host
//! ```
//!
//! 1. [`compile`](compile::compile) makes a flat list of [`Instruction`](code::Instruction)s of a
//!    body. Each variable has a numbered slot, blocks and labels become jumps, and which handlers
//!    are in force at an instruction is known from where it stands.
//! 2. Expressions without subqueries are bound once, with the variables as
//!    `ExprKind::Variable`s; SQL statements are planned when they first run, with the
//!    slots as their parameters, and the plan is kept with the program ([`code::Planned`]).
//! 3. [`Machine`](machine::Machine) runs the instructions. What a session or a statement alone can
//!    do (evaluate, run a plan, call another program) it asks of a [`Host`](machine::Host).
//! 4. [`conditions`] chooses handlers, and carries out SIGNAL, RESIGNAL and GET DIAGNOSTICS.
//!
//! The crate is below the executor, which is a host for functions and triggers; the engine's
//! session is a host for procedures.

#![warn(missing_docs)]

pub mod code;
pub mod compile;
pub mod conditions;
pub mod definition;
pub mod filling;
pub mod functions;
pub mod machine;
pub mod routine;
mod scope;

pub use scope::Scope;
