//! System variables and status counters, as `performance_schema` and `information_schema` tell
//! them.

use std::sync::atomic::Ordering;

use porpoise_core::variables::{Reads, Scope, VARIABLES, read};
use porpoise_types::DateTime;

use super::*;

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

fn session_variables(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    variables(exec, Reads::Session, row)
}

/// Status counters by name. Counters that Porpoise does not keep are not in the list.
fn counters(exec: &Exec<'_>) -> Vec<(&'static str, String)> {
    let processes = exec.engine.locks.sessions.all();
    let running = processes
        .iter()
        .filter(|control| control.process().sql.is_some())
        .count();
    let stats = exec.engine.store.stats();
    let started_us = exec.engine.variables.started_us;
    let uptime_s = (exec.started_us - started_us).max(0) / 1_000_000;
    let mut counters = vec![
        ("Connections", exec.engine.connections().to_string()),
        (
            "Global_connection_memory",
            exec.engine.variables.memory().used().to_string(),
        ),
        (
            "Prepared_stmt_count",
            exec.engine
                .prepared_statements
                .load(Ordering::Relaxed)
                .to_string(),
        ),
        // No connection is encrypted.
        ("Ssl_cipher", String::new()),
        ("Ssl_version", String::new()),
        ("Threads_connected", processes.len().to_string()),
        ("Threads_running", running.to_string()),
        ("Uptime", uptime_s.to_string()),
        ("Uptime_since_flush_status", uptime_s.to_string()),
        (
            "Innodb_row_lock_current_waits",
            stats.locks_waiting.to_string(),
        ),
        ("Innodb_row_lock_waits", stats.lock_waits.to_string()),
        ("Innodb_deadlocks", stats.deadlocks.to_string()),
        ("Innodb_page_size", "16384".to_string()),
        ("Porpoise_commits", stats.commits.to_string()),
        ("Porpoise_block_bytes", stats.block_bytes.to_string()),
        ("Porpoise_version_bytes", stats.version_bytes.to_string()),
    ];
    let moment = |seconds: u64| {
        let micros = i64::try_from(seconds)
            .unwrap_or(0)
            .saturating_mul(1_000_000);
        let utc = DateTime::from_unix_micros(micros).filter(|_| seconds > 0);
        utc.map_or(String::new(), |utc| {
            exec.session.time_zone.from_utc(utc).to_string()
        })
    };
    let of_servers = exec.engine.server_status().into_iter();
    counters.extend(
        of_servers.map(|(name, value)| match name.ends_with("_time") {
            true => (name, moment(value)),
            false => (name, value.to_string()),
        }),
    );
    counters.sort();
    counters
}

fn status(exec: &mut Exec<'_>, row: Sink<'_>) -> Result<()> {
    for (name, value) in counters(exec) {
        row(exec, &[text(name), text(value)])?;
    }
    Ok(())
}

fn global_status(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    status(exec, row)
}

fn session_status(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    status(exec, row)
}
