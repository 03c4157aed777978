//! System variables and status counters, as `performance_schema` and `information_schema` tell
//! them.

use std::sync::atomic::{AtomicU64, Ordering};

use porpoise_accounts::tls::ClientTls;
use porpoise_core::temporary_space::SpillCounts;
use porpoise_core::variables::{Reads, Scope, VARIABLES, read};
use porpoise_mdl::command_counts::{CountedCommand, NAMES};
use porpoise_types::DateTime;

use super::*;

/// What `Innodb_page_size` says, and what memory is counted in.
const PAGE_BYTES: u64 = 16 << 10;

const NAME_AND_VALUE: &[ColumnRow] = &[
    ("VARIABLE_NAME", name, false),
    ("VARIABLE_VALUE", wide, true),
];

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "performance_schema",
        name: "global_variables",
        columns: NAME_AND_VALUE,
        rows: global_variables,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "persisted_variables",
        columns: NAME_AND_VALUE,
        rows: persisted_variables,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "session_variables",
        columns: NAME_AND_VALUE,
        rows: session_variables,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "global_status",
        columns: NAME_AND_VALUE,
        rows: global_status,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "session_status",
        columns: NAME_AND_VALUE,
        rows: session_status,
    },
];

fn variables(exec: &mut Exec<'_>, reads: Reads, row: Sink<'_>) -> Result<()> {
    for (position, variable) in VARIABLES.iter().enumerate() {
        if !variable.is_there(exec.session) {
            continue;
        }
        let reads = match (variable.scope, reads) {
            (Scope::Session, Reads::Global) => continue,
            (Scope::Global, _) => Reads::Global,
            (_, reads) => reads,
        };
        let value = read(position, reads, exec.session, &exec.engine.variables);
        let shown = text(variable.show(&value));
        row(exec, &[text(variable.name), shown])?;
    }
    Ok(())
}

fn global_variables(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    variables(exec, Reads::Global, row)
}

fn persisted_variables(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (name, value) in exec.engine.persisted.all() {
        row(exec, &[text(name), text(value)])?;
    }
    Ok(())
}

fn session_variables(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    variables(exec, Reads::Session, row)
}

/// Status counters by name. Counters that Porpoise does not keep are not in the list. `spilled`:
/// what the session, or all sessions, put on disk.
fn counters(
    exec: &Exec<'_>,
    spilled: &SpillCounts,
    lookup: &Lookup,
) -> Vec<(&'static str, String)> {
    let space = exec.engine.variables.memory().space();
    let mut processes = exec.engine.locks.sessions.all();
    processes.retain(|control| control.has_client());
    let running = processes
        .iter()
        .filter(|control| control.process().sql.is_some())
        .count();
    let stats = exec.engine.store.stats();
    let started_us = exec.engine.variables.started_us;
    let uptime_s = (exec.started_us - started_us).max(0) / 1_000_000;
    let of_tls = |which: fn(&ClientTls) -> &'static str| {
        let tls = exec.session.tls.as_deref();
        tls.map_or(String::new(), |tls| which(tls).to_string())
    };
    let compression = exec.session.compression;
    let (algorithm, level) = compression.unwrap_or_default();
    let is_compressed = if compression.is_some() { "ON" } else { "OFF" };
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
    // Definitions stay open, as COM_STATISTICS has it.
    let tables = exec.engine.catalog.load().relation_count().to_string();
    let flushes = exec.engine.locks.sessions.counts()[CountedCommand::Flush as usize];
    let mut counters = vec![
        ("Flush_commands", flushes.to_string()),
        ("Open_table_definitions", tables.clone()),
        ("Open_tables", tables.clone()),
        ("Opened_table_definitions", tables.clone()),
        ("Opened_tables", tables),
        ("Compression", is_compressed.to_string()),
        ("Compression_algorithm", algorithm.to_string()),
        ("Compression_level", level.to_string()),
        ("Connections", exec.engine.connections().to_string()),
        ("Created_tmp_disk_tables", load(&spilled.disk_tables)),
        ("Created_tmp_files", space.files().to_string()),
        (
            "Global_connection_memory",
            exec.engine.variables.memory().tracked().to_string(),
        ),
        (
            "Prepared_stmt_count",
            exec.engine
                .prepared_statements
                .load(Ordering::Relaxed)
                .to_string(),
        ),
        ("Sort_merge_passes", load(&spilled.merge_passes)),
        ("Ssl_cipher", of_tls(|tls| tls.cipher)),
        ("Ssl_version", of_tls(|tls| tls.version)),
        ("Threads_connected", processes.len().to_string()),
        ("Threads_running", running.to_string()),
        ("Tmp_space_used", space.used().to_string()),
        ("Uptime", uptime_s.to_string()),
        ("Uptime_since_flush_status", uptime_s.to_string()),
        (
            "Innodb_row_lock_current_waits",
            stats.locks_waiting.to_string(),
        ),
        ("Innodb_row_lock_waits", stats.lock_waits.to_string()),
        ("Innodb_deadlocks", stats.deadlocks.to_string()),
        ("Innodb_page_size", PAGE_BYTES.to_string()),
        ("Porpoise_commits", stats.commits.to_string()),
        (
            "Porpoise_lock_escalations",
            stats.lock_escalations.to_string(),
        ),
        ("Porpoise_block_bytes", stats.block_bytes.to_string()),
        ("Porpoise_version_bytes", stats.version_bytes.to_string()),
    ];
    counters.extend(
        buffer_pool(
            stats.block_bytes,
            stats.version_bytes,
            exec.engine.variables.cache_bytes() as u64,
        )
        .map(|(name, value)| (name, value.to_string())),
    );
    let moment = |seconds: u64| {
        let micros = i64::try_from(seconds)
            .unwrap_or(0)
            .saturating_mul(1_000_000);
        let utc = DateTime::from_unix_micros(micros).filter(|_| seconds > 0);
        utc.map_or(String::new(), |utc| {
            exec.session.time_zone.from_utc(utc).to_string()
        })
    };
    let validation = &exec.engine.variables.password_validation;
    if validation.is_installed() {
        let dictionary = validation.dictionary();
        counters.extend([
            (
                "validate_password.dictionary_file_last_parsed",
                moment(dictionary.read_s()),
            ),
            (
                "validate_password.dictionary_file_words_count",
                dictionary.word_count().to_string(),
            ),
        ]);
    }
    let of_servers = exec.engine.server_status().into_iter();
    counters.extend(
        of_servers.map(|(name, value)| match name.ends_with("_time") {
            true => (name, moment(value)),
            false => (name, value.to_string()),
        }),
    );
    counters.extend(
        exec.engine
            .server_facts(&|name| lookup.wants_variable(name)),
    );
    counters
}

/// The memory that rows have, counted as InnoDB counts it (MySQL 8.4 manual, 7.1.10). Versions, which
/// the next checkpoint writes, are what its dirty pages are, and blocks of rows what its clean ones
/// are; what has been given for the cache and neither takes is free.
fn buffer_pool(block_bytes: u64, version_bytes: u64, cache_bytes: u64) -> [(&'static str, u64); 6] {
    let bytes = block_bytes + version_bytes;
    let pages = bytes.div_ceil(PAGE_BYTES);
    let total = (cache_bytes / PAGE_BYTES).max(pages);
    [
        ("Innodb_buffer_pool_bytes_data", bytes),
        ("Innodb_buffer_pool_bytes_dirty", version_bytes),
        ("Innodb_buffer_pool_pages_data", pages),
        (
            "Innodb_buffer_pool_pages_dirty",
            version_bytes.div_ceil(PAGE_BYTES),
        ),
        ("Innodb_buffer_pool_pages_free", total - pages),
        ("Innodb_buffer_pool_pages_total", total),
    ]
}

/// Sends the counters, with those of statements (`Com_…`) in the order of [`NAMES`].
fn status(
    exec: &mut Exec<'_>,
    commands: Vec<u64>,
    mut counters: Vec<(&'static str, String)>,
    row: Sink<'_>,
) -> Result<()> {
    let commands = NAMES.iter().zip(commands);
    counters.extend(commands.map(|(name, count)| (*name, count.to_string())));
    counters.sort();
    for (name, value) in counters {
        row(exec, &[text(name), text(value)])?;
    }
    Ok(())
}

fn global_status(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    let commands = exec.engine.locks.sessions.counts();
    let counters = counters(
        exec,
        exec.engine.variables.memory().space().counts(),
        lookup,
    );
    status(exec, commands, counters, row)
}

fn session_status(exec: &mut Exec<'_>, lookup: &Lookup, row: Sink<'_>) -> Result<()> {
    let sessions = &exec.engine.locks.sessions;
    let own = sessions.find(exec.session.connection_id);
    let commands = own.map_or(Vec::new(), |control| control.counts.values());
    let counters = counters(exec, exec.session.memory.space().counts(), lookup);
    status(exec, commands, counters, row)
}
