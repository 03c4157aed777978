//! RENAME TABLE of `mysql.general_log` and `mysql.slow_log`, by which logs are rotated and emptied.
//!
//! ```sql
//! CREATE TABLE mysql.next LIKE mysql.general_log;
//! RENAME TABLE mysql.general_log TO mysql.archive, mysql.next TO mysql.general_log;
//! ```
//!
//! The server's table stays, and entries move: a log that is renamed leaves them to a new table of
//! the other name, and a table that is renamed to an emptied log gives them its rows and is dropped.
//!
//! 1. The archive is filled with the log's entries; it belongs to nobody yet.
//! 2. The rows of the table that comes in its place are appended to the log.
//! 3. The change of the catalog is committed, with the other renames of the statement.
//! 4. The entries that the archive has leave the log.
//!
//! A crash before the last step leaves them in both. While the log is written to, it has to get
//! another table back in the same statement (1581), as in MySQL. While it isn't, it stays, empty,
//! and a table may come back later: as long as the log is empty.
//!
//! Source: MySQL 8.4 Reference Manual, 7.4.1 "Selecting General Query Log and Slow Query Log Output
//! Destinations".

use std::sync::Arc;

use porpoise_catalog::dictionary::{create_unclaimed, drop_unclaimed};
use porpoise_catalog::record::TableRecord;
use porpoise_catalog::virtual_table::{self, VirtualTable};
use porpoise_catalog::{CatalogChange, Relation, Table, system_table};
use porpoise_core::error::{Error, Result};
use porpoise_storage::SpaceId;
use porpoise_types::{TimeZone, Value};

use crate::create::{Filling, fill, place};
use crate::{Ddl, Name, maintain, table};

/// The logs that a statement renames.
#[derive(Default)]
pub struct LogRenames {
    archives: Vec<Archive>,
    returns: Vec<Name>,
}

/// A log's entries as a table, which no catalog has yet.
struct Archive {
    log: &'static VirtualTable,
    record: TableRecord,
    table: Arc<Table>,
    /// How many entries it has.
    entries: u64,
}

/// The log that a name is of, unless the session has a temporary table of that name.
pub fn log_named(ddl: &Ddl<'_>, name: &Name) -> Option<&'static VirtualTable> {
    let own = virtual_table::find(&name.schema, &name.table)?;
    (own.is_log() && ddl.temporary(name).is_none()).then_some(own)
}

impl LogRenames {
    /// Fills the archives and the logs as the steps say.
    ///
    /// # Errors
    /// 1050 where a table is renamed to a log that has entries or is written to, 1581 where a log
    /// that is written to gets no table back; those of reading and writing rows.
    pub fn begin(ddl: &mut Ddl<'_>, steps: &[(Name, Name)]) -> Result<LogRenames> {
        let mut renames = LogRenames::default();
        match renames.carry_out(ddl, steps) {
            Ok(()) => Ok(renames),
            Err(error) => {
                renames.abandon(ddl)?;
                Err(error)
            }
        }
    }

    fn carry_out(&mut self, ddl: &mut Ddl<'_>, steps: &[(Name, Name)]) -> Result<()> {
        let mut vacated: Vec<&str> = Vec::new();
        for (old, new) in steps {
            let (from, to) = (log_named(ddl, old), log_named(ddl, new));
            if let Some(to) = to {
                let is_vacated = vacated.contains(&to.name);
                if !is_vacated && (ddl.shared.is_logged_to(to) || has_entries(ddl, to)?) {
                    return Err(Error::table_exists(&new.table));
                }
                vacated.retain(|name| *name != to.name);
            }
            if let Some(from) = from {
                if vacated.contains(&from.name) || to.is_some() {
                    return Err(Error::no_such_table(&old.schema, &old.table));
                }
                vacated.push(from.name);
            }
        }
        let left = vacated
            .iter()
            .filter_map(|name| virtual_table::find("mysql", name))
            .find(|log| ddl.shared.is_logged_to(log));
        if let Some(log) = left {
            return Err(Error::cant_rename_log_table(log.name, log.name));
        }
        for (old, new) in steps {
            if let Some(log) = log_named(ddl, old) {
                self.archive(ddl, log, new)?;
            }
        }
        for (old, new) in steps {
            if let Some(log) = log_named(ddl, new) {
                give_back(ddl, log, old)?;
                self.returns.push(old.clone());
            }
        }
        Ok(())
    }

    fn archive(&mut self, ddl: &mut Ddl<'_>, log: &'static VirtualTable, new: &Name) -> Result<()> {
        let Some(mut record) = system_table::record(log) else {
            return Err(Error::no_such_table(log.schema, log.name));
        };
        record.id = ddl.shared.dictionary.next_table_id();
        record.version = ddl.shared.dictionary.next_version();
        record.created_s = ddl.now_us() / 1_000_000;
        record.schema = new.schema.clone();
        record.name = new.table.clone();
        place(ddl, &mut record);
        let state = Arc::new(ddl.shared.dictionary.new_state());
        let table = Arc::new(table::bind(&record, state)?);
        let spaces: Vec<SpaceId> = table.spaces().collect();
        create_unclaimed(&ddl.shared.store, &spaces)?;
        self.archives.push(Archive {
            log,
            record,
            table: Arc::clone(&table),
            entries: 0,
        });
        // Moments stay what they are, also where a local time means two of them.
        let zone = std::mem::replace(&mut ddl.session.time_zone, TimeZone::utc());
        let filled = ddl
            .plan_text(&format!("SELECT * FROM mysql.{}", log.name))
            .and_then(|plan| fill(ddl, &table, Filling::of_all(plan, log.columns.len())));
        ddl.session.time_zone = zone;
        if let Some(archive) = self.archives.last_mut() {
            archive.entries = filled?.affected_rows;
        }
        Ok(())
    }

    /// Carries out a step of the statement within the change, if it is a log's.
    ///
    /// # Errors
    /// 1050 where the archive's name is taken.
    pub fn put(&self, change: &mut CatalogChange<'_>, old: &Name, new: &Name) -> Result<bool> {
        let is_of = |archive: &&Archive| {
            let log = virtual_table::find(&old.schema, &old.table);
            let is_named =
                (&archive.record.schema, &archive.record.name) == (&new.schema, &new.table);
            is_named && log.is_some_and(|log| log.name == archive.log.name)
        };
        if let Some(archive) = self.archives.iter().find(is_of) {
            if change.catalog().relation(&new.schema, &new.table).is_some() {
                return Err(Error::table_exists(&new.table));
            }
            for space in archive.table.spaces() {
                change.claim_space(space);
            }
            change.put_table(&archive.record, Arc::clone(&archive.table))?;
            return Ok(true);
        }
        if self.returns.contains(old) {
            change.drop_relation(&old.schema, &old.table);
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes what the archives have out of the logs. The change is committed.
    ///
    /// # Errors
    /// If a log can't be written anew.
    pub fn finish(self, ddl: &Ddl<'_>) -> Result<()> {
        for archive in self.archives {
            let log = archive.log;
            if let Some(table) = ddl.shared.log_tables.named(log.schema, log.name) {
                let dropped = table.drop_oldest(archive.entries, log.columns.len());
                dropped.map_err(Error::engine_error)?;
            }
        }
        Ok(())
    }

    /// Drops the archives. The change failed.
    ///
    /// # Errors
    /// Those of storage.
    pub fn abandon(self, ddl: &Ddl<'_>) -> Result<()> {
        for archive in self.archives {
            let spaces: Vec<SpaceId> = archive.table.spaces().collect();
            drop_unclaimed(&ddl.shared.store, &spaces)?;
        }
        Ok(())
    }
}

fn has_entries(ddl: &Ddl<'_>, log: &VirtualTable) -> Result<bool> {
    let Some(table) = ddl.shared.log_tables.named(log.schema, log.name) else {
        return Ok(false);
    };
    let mut entries = table.entries().map_err(Error::engine_error)?;
    entries
        .next()
        .transpose()
        .map_err(Error::engine_error)
        .map(|entry| entry.is_some())
}

/// Appends the rows of a table that is renamed to a log to that log.
fn give_back(ddl: &Ddl<'_>, log: &VirtualTable, name: &Name) -> Result<()> {
    let catalog = ddl.shared.catalog.load();
    let Some(Relation::Table(table)) = catalog.relation(&name.schema, &name.table) else {
        return Err(Error::no_such_table(&name.schema, &name.table));
    };
    let names = table.declared_columns().map(|column| column.name.as_str());
    if !names.eq(log.columns.iter().map(|column| column.0)) {
        return Err(Error::not_supported_yet("a log table with other columns"));
    }
    let Some(entries) = ddl.shared.log_tables.named(log.schema, log.name) else {
        return Ok(());
    };
    let snapshot = ddl.shared.store.snapshot();
    maintain::each(&snapshot, table.space, |_, row| {
        maintain::interrupted(ddl)?;
        let fields = (0..table.columns.len()).map(|at| field(table.layout.get(row, at)));
        let fields: Vec<Vec<u8>> = fields.collect();
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        entries.append(&fields).map_err(Error::engine_error)?;
        Ok(true)
    })
}

/// A value as a log keeps it: moments and durations in microseconds.
fn field(value: Value) -> Vec<u8> {
    match value {
        Value::DateTime(utc) => utc.unix_micros().to_string().into_bytes(),
        Value::Time(duration) => duration.micros().to_string().into_bytes(),
        Value::Bytes(bytes) => bytes,
        Value::Int(number) => number.to_string().into_bytes(),
        Value::UInt(number) => number.to_string().into_bytes(),
        Value::Text(text) => text.as_bytes().to_vec(),
        _ => Vec::new(),
    }
}
