//! Tests of whole statements, over sessions of a database in memory.

mod accounts;
mod binary_literals;
mod column_changes;
mod database;
mod ddl;
mod differences;
mod early_release;
mod explain;
mod forbidden;
mod hints;
mod interrupts;
mod lower_case_names;
mod metadata;
mod nesting;
mod read_uncommitted;
mod show;
mod statistics;
mod transaction_memory;
mod variables;
