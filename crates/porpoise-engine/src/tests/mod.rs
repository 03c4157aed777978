//! Tests of whole statements, over sessions of a database in memory.

mod accounts;
mod altered_rows;
mod binary_literals;
mod column_changes;
mod database;
mod ddl;
mod differences;
mod early_release;
mod explain;
mod fixed_size_fields;
mod forbidden;
mod hints;
mod hostile_programs;
mod index_build;
mod interrupts;
mod kept_plans;
mod load_separators;
mod lower_case_names;
mod metadata;
mod nesting;
mod read_uncommitted;
mod show;
mod spill;
mod statistics;
mod transaction_memory;
mod variables;
