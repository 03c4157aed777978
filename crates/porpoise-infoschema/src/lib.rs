//! `information_schema`, `performance_schema` and `mysql`: tables whose rows are made by code when
//! a statement reads them, with MySQL 8.4's names and columns.
//!
//! Adding a table is one [`VirtualSource`] in its family's list: its columns, and a function that
//! calls back once a row. SHOW statements are SELECTs on these tables.
//!
//! | file | tables |
//! | --- | --- |
//! | [`objects`] | what the catalog holds: SCHEMATA, TABLES, COLUMNS, STATISTICS, constraints, views |
//! | [`server`] | what the server is: engines, collations, plugins, processes, keywords |
//! | [`innodb`] | what the engine knows of tables, columns, indexes, foreign keys: INNODB_* |
//! | [`locks`] | metadata locks held and waited for |
//! | [`privileges`] | who may do what |
//! | [`grant_tables`] | `mysql.user` and its kin |
//! | [`roles`] | roles that are granted, active or to be granted, and their privileges |
//! | [`system_tables`] | what else the schema `mysql` has: time zones, help, logs |
//! | [`variables`] | system variables and status counters |
//! | [`programs`] | procedures, functions, their parameters, triggers |
//! | [`events`] | events |
//! | [`empty_tables`] | tables that are always empty: files, partitions |
//!
//! A row is shown only to sessions with a privilege on what it describes (MySQL 8.4 manual, 28.1).

#![warn(missing_docs)]

pub mod account_text;
mod connection_attributes;
mod empty_tables;
mod events;
mod grant_tables;
mod innodb;
mod locks;
mod objects;
mod privileges;
mod programs;
mod roles;
mod server;
pub use programs::{Sight, sight};
pub mod show;
mod system_tables;
mod variables;
mod view_columns;

use porpoise_types::{BlobSize, Collation, DataType, Value};

pub(crate) use porpoise_catalog::virtual_table::VirtualColumn as ColumnRow;
use porpoise_core::error::Result;
use porpoise_executor::Exec;
use porpoise_executor::virtual_table::{self, Lookup, Sink, VirtualSource};

/// All families' tables.
const FAMILIES: &[&[VirtualSource]] = &[
    objects::TABLES,
    server::TABLES,
    innodb::TABLES,
    locks::TABLES,
    connection_attributes::TABLES,
    privileges::TABLES,
    grant_tables::TABLES,
    system_tables::TABLES,
    roles::TABLES,
    variables::TABLES,
    programs::TABLES,
    events::TABLES,
    empty_tables::TABLES,
];

/// Makes all of them known to the catalog and the executor.
pub fn register() {
    virtual_table::register(FAMILIES);
}

// ---------------------------------------------------------------------------------------------------------
// Types and values
// ---------------------------------------------------------------------------------------------------------

/// Names compare without case, as most of information_schema's do.
pub(crate) fn name() -> DataType {
    DataType::Varchar {
        length: 64,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

/// Names of schemas and tables compare with case.
pub(crate) fn exact() -> DataType {
    DataType::Varchar {
        length: 64,
        collation: Collation::UTF8MB3_BIN,
    }
}

pub(crate) fn word() -> DataType {
    DataType::Varchar {
        length: 255,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

pub(crate) fn wide() -> DataType {
    DataType::Varchar {
        length: 2048,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

pub(crate) fn long() -> DataType {
    DataType::Text {
        size: BlobSize::Long,
        collation: Collation::UTF8MB3_BIN,
    }
}

pub(crate) fn medium() -> DataType {
    DataType::Text {
        size: BlobSize::Medium,
        collation: Collation::UTF8MB3_BIN,
    }
}

pub(crate) fn json() -> DataType {
    DataType::Json
}

pub(crate) fn yes_no() -> DataType {
    DataType::Varchar {
        length: 3,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

pub(crate) fn int() -> DataType {
    DataType::INT
}

pub(crate) fn uint() -> DataType {
    DataType::Int {
        width: porpoise_types::IntWidth::Int,
        unsigned: true,
        zerofill: false,
        display_width: None,
    }
}

pub(crate) fn big() -> DataType {
    DataType::BIGINT
}

pub(crate) fn ubig() -> DataType {
    DataType::BIGINT_UNSIGNED
}

pub(crate) fn double() -> DataType {
    DataType::DOUBLE
}

pub(crate) fn moment() -> DataType {
    DataType::DateTime { fsp: 0 }
}

/// A text value.
pub(crate) fn text(value: impl AsRef<str>) -> Value {
    Value::text(value)
}

pub(crate) fn yes(flag: bool) -> Value {
    Value::text(if flag { "YES" } else { "NO" })
}

pub(crate) fn some_text(value: Option<&str>) -> Value {
    value.map_or(Value::Null, Value::text)
}

/// A moment (seconds since 1970) in the session's time zone.
pub(crate) fn local_time(exec: &Exec<'_>, unix_s: i64) -> Value {
    Value::DateTime(exec.session.to_local(unix_s.saturating_mul(1_000_000)))
}
