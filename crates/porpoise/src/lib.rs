//! Porpoise: a MySQL-compatible database for the machine its application runs on.
