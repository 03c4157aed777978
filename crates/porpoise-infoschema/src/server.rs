//! What the server is: engines, character sets, collations, plugins, keywords, and who is
//! connected.

use std::sync::Arc;

use porpoise_accounts::host_cache::{Host, Refusal};
use porpoise_core::privilege::Privilege;
use porpoise_core::variables::VERSION;
use porpoise_mdl::process::Process;
use porpoise_session::check::has_global;
use porpoise_types::{Charset, Collation, DataType, DateTime, EnumDef, IntWidth, Value};

use super::*;

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "information_schema",
        name: "ENGINES",
        columns: &[
            ("ENGINE", name, false),
            ("SUPPORT", yes_no_default, false),
            ("COMMENT", word, false),
            ("TRANSACTIONS", yes_no, true),
            ("XA", yes_no, true),
            ("SAVEPOINTS", yes_no, true),
        ],
        rows: engines,
    },
    VirtualSource {
        schema: "information_schema",
        name: "CHARACTER_SETS",
        columns: &[
            ("CHARACTER_SET_NAME", name, false),
            ("DEFAULT_COLLATE_NAME", name, false),
            ("DESCRIPTION", wide, false),
            ("MAXLEN", uint, false),
        ],
        rows: character_sets,
    },
    VirtualSource {
        schema: "information_schema",
        name: "COLLATIONS",
        columns: &[
            ("COLLATION_NAME", name, false),
            ("CHARACTER_SET_NAME", name, false),
            ("ID", ubig, false),
            ("IS_DEFAULT", yes_no, false),
            ("IS_COMPILED", yes_no, false),
            ("SORTLEN", uint, false),
            ("PAD_ATTRIBUTE", name, false),
        ],
        rows: collations,
    },
    VirtualSource {
        schema: "information_schema",
        name: "COLLATION_CHARACTER_SET_APPLICABILITY",
        columns: &[
            ("COLLATION_NAME", name, false),
            ("CHARACTER_SET_NAME", name, false),
        ],
        rows: applicability,
    },
    VirtualSource {
        schema: "information_schema",
        name: "PLUGINS",
        columns: &[
            ("PLUGIN_NAME", name, false),
            ("PLUGIN_VERSION", name, false),
            ("PLUGIN_STATUS", name, false),
            ("PLUGIN_TYPE", name, false),
            ("PLUGIN_TYPE_VERSION", name, false),
            ("PLUGIN_LIBRARY", name, true),
            ("PLUGIN_LIBRARY_VERSION", name, true),
            ("PLUGIN_AUTHOR", name, true),
            ("PLUGIN_DESCRIPTION", long, true),
            ("PLUGIN_LICENSE", name, true),
            ("LOAD_OPTION", name, false),
        ],
        rows: plugins,
    },
    VirtualSource {
        schema: "information_schema",
        name: "KEYWORDS",
        columns: &[("WORD", name, true), ("RESERVED", int, true)],
        rows: keywords,
    },
    VirtualSource {
        schema: "information_schema",
        name: "OPTIMIZER_TRACE",
        columns: &[
            ("QUERY", long, false),
            ("TRACE", long, false),
            ("MISSING_BYTES_BEYOND_MAX_MEM_SIZE", int, false),
            ("INSUFFICIENT_PRIVILEGES", int, false),
        ],
        rows: optimizer_traces,
    },
    VirtualSource {
        schema: "information_schema",
        name: "PROCESSLIST",
        columns: PROCESS_COLUMNS,
        rows: processes,
    },
    VirtualSource {
        schema: "information_schema",
        name: "RESOURCE_GROUPS",
        columns: &[
            ("RESOURCE_GROUP_NAME", name, false),
            ("RESOURCE_GROUP_TYPE", resource_group_type, false),
            ("RESOURCE_GROUP_ENABLED", flag, false),
            ("VCPU_IDS", blob, true),
            ("THREAD_PRIORITY", int, false),
        ],
        rows: resource_groups,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "processlist",
        columns: PROCESS_COLUMNS,
        rows: processes,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "threads",
        columns: &[
            ("THREAD_ID", ubig, false),
            ("NAME", word, false),
            ("TYPE", name, false),
            ("PROCESSLIST_ID", ubig, true),
            ("PROCESSLIST_USER", name, true),
            ("PROCESSLIST_HOST", word, true),
            ("PROCESSLIST_DB", name, true),
            ("PROCESSLIST_COMMAND", name, true),
            ("PROCESSLIST_TIME", big, true),
            ("PROCESSLIST_STATE", name, true),
            ("PROCESSLIST_INFO", long, true),
            ("CONNECTION_TYPE", name, true),
        ],
        rows: threads,
    },
    VirtualSource {
        schema: "performance_schema",
        name: "host_cache",
        columns: HOST_COLUMNS,
        rows: hosts,
    },
];

const PROCESS_COLUMNS: &[ColumnRow] = &[
    ("ID", ubig, false),
    ("USER", name, false),
    ("HOST", word, false),
    ("DB", name, true),
    ("COMMAND", name, false),
    ("TIME", int, false),
    ("STATE", name, true),
    ("INFO", long, true),
];

const HOST_COLUMNS: &[ColumnRow] = &[
    ("IP", name, false),
    ("HOST", word, true),
    ("HOST_VALIDATED", yes_no, false),
    ("SUM_CONNECT_ERRORS", big, false),
    ("COUNT_HOST_BLOCKED_ERRORS", big, false),
    ("COUNT_NAMEINFO_TRANSIENT_ERRORS", big, false),
    ("COUNT_NAMEINFO_PERMANENT_ERRORS", big, false),
    ("COUNT_FORMAT_ERRORS", big, false),
    ("COUNT_ADDRINFO_TRANSIENT_ERRORS", big, false),
    ("COUNT_ADDRINFO_PERMANENT_ERRORS", big, false),
    ("COUNT_FCRDNS_ERRORS", big, false),
    ("COUNT_HOST_ACL_ERRORS", big, false),
    ("COUNT_NO_AUTH_PLUGIN_ERRORS", big, false),
    ("COUNT_AUTH_PLUGIN_ERRORS", big, false),
    ("COUNT_HANDSHAKE_ERRORS", big, false),
    ("COUNT_PROXY_USER_ERRORS", big, false),
    ("COUNT_PROXY_USER_ACL_ERRORS", big, false),
    ("COUNT_AUTHENTICATION_ERRORS", big, false),
    ("COUNT_SSL_ERRORS", big, false),
    ("COUNT_MAX_USER_CONNECTIONS_ERRORS", big, false),
    ("COUNT_MAX_USER_CONNECTIONS_PER_HOUR_ERRORS", big, false),
    ("COUNT_DEFAULT_DATABASE_ERRORS", big, false),
    ("COUNT_INIT_CONNECT_ERRORS", big, false),
    ("COUNT_LOCAL_ERRORS", big, false),
    ("COUNT_UNKNOWN_ERRORS", big, false),
    ("FIRST_SEEN", moment, false),
    ("LAST_SEEN", moment, false),
    ("FIRST_ERROR_SEEN", moment, true),
    ("LAST_ERROR_SEEN", moment, true),
];

fn yes_no_default() -> porpoise_types::DataType {
    porpoise_types::DataType::Varchar {
        length: 8,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

fn resource_group_type() -> DataType {
    DataType::Enum(Arc::new(EnumDef {
        members: vec!["SYSTEM".into(), "USER".into()],
        collation: Collation::UTF8MB3_GENERAL_CI,
    }))
}

/// TINYINT(1).
fn flag() -> DataType {
    DataType::Int {
        width: IntWidth::Tiny,
        unsigned: false,
        zerofill: false,
        display_width: Some(1),
    }
}

fn blob() -> DataType {
    DataType::Blob(porpoise_types::BlobSize::Normal)
}

/// The groups that all threads are in: there are no others.
fn resource_groups(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let ids = match processors {
        1 => "0".to_string(),
        count => format!("0-{}", count - 1),
    };
    for (group, kind) in [("USR_default", 2), ("SYS_default", 1)] {
        let values = [
            text(group),
            Value::UInt(kind),
            Value::TRUE,
            Value::Bytes(ids.clone().into_bytes()),
            Value::Int(0),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

/// The session's own.
fn optimizer_traces(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for trace in exec.session.optimizer_traces.shown().to_vec() {
        let missing = i64::try_from(trace.missing_bytes).unwrap_or(i64::MAX);
        row(
            exec,
            &[
                Value::from(trace.query),
                Value::from(trace.trace),
                Value::Int(missing),
                Value::Int(trace.insufficient_privileges.into()),
            ],
        )?;
    }
    Ok(())
}

fn engines(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let comment = "Supports transactions, row-level locking, and foreign keys";
    row(
        exec,
        &[
            text("InnoDB"),
            text("DEFAULT"),
            text(comment),
            text("YES"),
            text("YES"),
            text("YES"),
        ],
    )?;
    row(
        exec,
        &[
            text("PERFORMANCE_SCHEMA"),
            text("YES"),
            text("Performance Schema"),
            text("NO"),
            text("NO"),
            text("NO"),
        ],
    )
}

fn character_sets(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let mut sets = Charset::ALL;
    sets.sort_by_key(|charset| charset.name());
    for charset in sets {
        let values = [
            text(charset.name()),
            text(charset.default_collation().name()),
            text(charset.description()),
            Value::UInt(u64::from(charset.max_len())),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

fn sorted_collations() -> Vec<Collation> {
    let mut all: Vec<Collation> = Collation::all().collect();
    all.sort_by_key(|collation| collation.name());
    all
}

fn collations(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for collation in sorted_collations() {
        let values = [
            text(collation.name()),
            text(collation.charset().name()),
            Value::UInt(u64::from(collation.id())),
            text(if collation.is_default() { "Yes" } else { "" }),
            text("Yes"),
            Value::UInt(u64::from(collation.row().sort_length)),
            text(if collation.pads_space() {
                "PAD SPACE"
            } else {
                "NO PAD"
            }),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

fn applicability(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for collation in sorted_collations() {
        row(
            exec,
            &[text(collation.name()), text(collation.charset().name())],
        )?;
    }
    Ok(())
}

fn plugins(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    const PLUGINS: [(&str, &str, &str); 5] = [
        (
            "mysql_native_password",
            "AUTHENTICATION",
            "Native MySQL authentication",
        ),
        (
            "sha256_password",
            "AUTHENTICATION",
            "SHA256 password authentication",
        ),
        (
            "caching_sha2_password",
            "AUTHENTICATION",
            "Caching sha2 authentication",
        ),
        (
            "auth_socket",
            "AUTHENTICATION",
            "Unix Socket based authentication",
        ),
        (
            "InnoDB",
            "STORAGE ENGINE",
            "Supports transactions, row-level locking, and foreign keys",
        ),
    ];
    let version = VERSION.split('-').next().unwrap_or(VERSION);
    let short = version.rsplit_once('.').map_or(version, |(short, _)| short);
    for (plugin, kind, description) in PLUGINS {
        let values = [
            text(plugin),
            text(short),
            text("ACTIVE"),
            text(kind),
            text(version),
            Value::Null,
            Value::Null,
            text("Porpoise"),
            text(description),
            text("PROPRIETARY"),
            text("FORCE"),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

fn keywords(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let reserved = porpoise_sql::keyword::RESERVED.iter().map(|word| (word, 1));
    let others = porpoise_sql::keyword::NONRESERVED
        .iter()
        .map(|word| (word, 0));
    let mut words: Vec<(String, i64)> = reserved
        .chain(others)
        .map(|(word, reserved)| (word.to_ascii_uppercase(), reserved))
        .collect();
    words.sort();
    for (word, reserved) in words {
        row(exec, &[text(word), Value::Int(reserved)])?;
    }
    Ok(())
}

/// Processes that the session may see: its own user's, or all with PROCESS.
pub fn visible_processes(exec: &Exec<'_>) -> Vec<Process> {
    let all = has_global(exec.session, Privilege::Process);
    let processes = exec
        .engine
        .locks
        .sessions
        .all()
        .into_iter()
        .map(|control| control.process());
    processes
        .filter(|process| all || process.user == exec.session.user)
        .collect()
}

/// Whose process it is, where it is, and what it does: user, host, schema, command, seconds, state,
/// statement.
fn what_it_does(exec: &Exec<'_>, process: &Process) -> [Value; 7] {
    let seconds = (exec.started_us - process.since_us).max(0) / 1_000_000;
    [
        text(&process.user),
        text(&process.host),
        some_text(process.schema.as_deref()),
        text(process.command.name()),
        Value::Int(seconds),
        text(process.state),
        some_text(process.sql.as_deref()),
    ]
}

fn processes(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for process in visible_processes(exec) {
        let mut values = vec![Value::UInt(process.id)];
        values.extend(what_it_does(exec, &process));
        row(exec, &values)?;
    }
    Ok(())
}

fn threads(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for process in visible_processes(exec) {
        let id = || Value::UInt(process.id);
        let mut values = vec![id(), text("thread/sql/one_connection")];
        values.extend([text("FOREGROUND"), id()]);
        values.extend(what_it_does(exec, &process));
        values.push(Value::Null);
        row(exec, &values)?;
    }
    Ok(())
}

/// What each column of the host cache counts; nothing counts in the others.
const HOST_COUNTS: &[(&str, fn(&Host) -> u64)] = &[
    ("SUM_CONNECT_ERRORS", |host| host.errors_in_a_row),
    ("COUNT_HOST_BLOCKED_ERRORS", |host| host.blocked),
    ("COUNT_NAMEINFO_TRANSIENT_ERRORS", |host| {
        host.lookup_errors[0]
    }),
    ("COUNT_NAMEINFO_PERMANENT_ERRORS", |host| {
        host.lookup_errors[1]
    }),
    ("COUNT_FORMAT_ERRORS", |host| host.lookup_errors[2]),
    ("COUNT_ADDRINFO_TRANSIENT_ERRORS", |host| {
        host.lookup_errors[3]
    }),
    ("COUNT_ADDRINFO_PERMANENT_ERRORS", |host| {
        host.lookup_errors[4]
    }),
    ("COUNT_FCRDNS_ERRORS", |host| host.lookup_errors[5]),
    ("COUNT_HOST_ACL_ERRORS", |host| {
        host.count(Refusal::NoAccount)
    }),
    ("COUNT_HANDSHAKE_ERRORS", |host| {
        host.count(Refusal::Handshake)
    }),
    ("COUNT_AUTHENTICATION_ERRORS", |host| {
        host.count(Refusal::Authentication)
    }),
    ("COUNT_MAX_USER_CONNECTIONS_ERRORS", |host| {
        host.count(Refusal::MaxUserConnections)
    }),
    ("COUNT_MAX_USER_CONNECTIONS_PER_HOUR_ERRORS", |host| {
        host.count(Refusal::MaxConnectionsPerHour)
    }),
    ("COUNT_DEFAULT_DATABASE_ERRORS", |host| {
        host.count(Refusal::DefaultDatabase)
    }),
];

fn hosts(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let time_zone = exec.session.time_zone.clone();
    let at = |us: i64| {
        let utc = DateTime::from_unix_micros(us);
        utc.map_or(Value::Null, |utc| Value::DateTime(time_zone.from_utc(utc)))
    };
    for (address, host) in exec.engine.hosts.all() {
        let values = HOST_COLUMNS.iter().map(|(column, ..)| match *column {
            "IP" => text(address.to_string()),
            "HOST" => some_text(host.name.as_deref()),
            "HOST_VALIDATED" => yes(host.is_validated),
            "FIRST_SEEN" => at(host.first_seen_us),
            "LAST_SEEN" => at(host.last_seen_us),
            "FIRST_ERROR_SEEN" => host.first_error_us.map_or(Value::Null, at),
            "LAST_ERROR_SEEN" => host.last_error_us.map_or(Value::Null, at),
            column => {
                let count = HOST_COUNTS.iter().find(|(name, _)| *name == column);
                Value::Int(count.map_or(0, |(_, count)| count(&host) as i64))
            }
        });
        let values: Vec<Value> = values.collect();
        row(exec, &values)?;
    }
    Ok(())
}
