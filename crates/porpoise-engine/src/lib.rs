//! Catalog, planner, executor, functions and transactions: SQL text in, rows out.
