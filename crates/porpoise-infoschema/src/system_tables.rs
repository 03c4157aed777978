//! The rest of the schema `mysql`: time zones, components, and tables of what isn't there, which
//! are empty.
//!
//! Time zones come from the IANA database that the program carries. `time_zone_name` and
//! `time_zone` list them; the tables of their transitions are empty, as nothing reads them.
//!
//! MySQL 8.4 manual, 7.3 (The mysql System Schema).

use std::sync::Arc;

use porpoise_core::error::Error;
use porpoise_session::log_tables::LogTable;
use porpoise_types::{EnumDef, IntWidth, Time, TimeZone};

use super::*;

pub const TABLES: &[VirtualSource] = &[
    VirtualSource {
        schema: "mysql",
        name: "time_zone_name",
        columns: &[("Name", object_name, false), ("Time_zone_id", uint, false)],
        rows: time_zone_name,
    },
    VirtualSource {
        schema: "mysql",
        name: "time_zone",
        columns: &[
            ("Time_zone_id", uint, false),
            ("Use_leap_seconds", leap_seconds, false),
        ],
        rows: time_zone,
    },
    empty(
        "time_zone_leap_second",
        &[("Transition_time", big, false), ("Correction", int, false)],
    ),
    empty(
        "time_zone_transition",
        &[
            ("Time_zone_id", uint, false),
            ("Transition_time", big, false),
            ("Transition_type_id", uint, false),
        ],
    ),
    empty(
        "time_zone_transition_type",
        &[
            ("Time_zone_id", uint, false),
            ("Transition_type_id", uint, false),
            ("Offset", int, false),
            ("Is_DST", unsigned_tiny, false),
            ("Abbreviation", abbreviation, false),
        ],
    ),
    VirtualSource {
        schema: "mysql",
        name: "component",
        columns: &[
            ("component_id", uint, false),
            ("component_group_id", uint, false),
            ("component_urn", plain_text, false),
        ],
        rows: component,
    },
    VirtualSource {
        schema: "mysql",
        name: "engine_cost",
        columns: &[
            ("engine_name", name, false),
            ("device_type", int, false),
            ("cost_name", name, false),
            ("cost_value", float, true),
            ("last_update", second, false),
            ("comment", comment, true),
            ("default_value", float, true),
        ],
        rows: engine_cost,
    },
    VirtualSource {
        schema: "mysql",
        name: "server_cost",
        columns: &[
            ("cost_name", name, false),
            ("cost_value", float, true),
            ("last_update", second, false),
            ("comment", comment, true),
            ("default_value", float, true),
        ],
        rows: server_cost,
    },
    empty(
        "gtid_executed",
        &[
            ("source_uuid", uuid, false),
            ("interval_start", big, false),
            ("interval_end", big, false),
            ("gtid_tag", tag, false),
        ],
    ),
    empty("plugin", &[("name", name, false), ("dl", library, false)]),
    empty(
        "func",
        &[
            ("name", object_name, false),
            ("ret", tiny, false),
            ("dl", library, false),
            ("type", function_type, false),
        ],
    ),
    VirtualSource {
        schema: "mysql",
        name: "servers",
        columns: &[
            ("Server_name", object_name, false),
            ("Host", word, false),
            ("Db", object_name, false),
            ("Username", object_name, false),
            ("Password", object_name, false),
            ("Port", int, false),
            ("Socket", object_name, false),
            ("Wrapper", object_name, false),
            ("Owner", object_name, false),
        ],
        rows: servers,
    },
    empty(
        "help_category",
        &[
            ("help_category_id", small, false),
            ("name", object_name, false),
            ("parent_category_id", small, true),
            ("url", plain_text, false),
        ],
    ),
    empty(
        "help_keyword",
        &[
            ("help_keyword_id", uint, false),
            ("name", object_name, false),
        ],
    ),
    empty(
        "help_relation",
        &[
            ("help_topic_id", uint, false),
            ("help_keyword_id", uint, false),
        ],
    ),
    empty(
        "help_topic",
        &[
            ("help_topic_id", uint, false),
            ("name", object_name, false),
            ("help_category_id", small, false),
            ("description", plain_text, false),
            ("example", plain_text, false),
            ("url", plain_text, false),
        ],
    ),
    VirtualSource {
        schema: "mysql",
        name: "general_log",
        columns: &[
            ("event_time", microsecond, false),
            ("user_host", user_host, false),
            ("thread_id", ubig, false),
            ("server_id", uint, false),
            ("command_type", name, false),
            ("argument", bytes, false),
        ],
        rows: general_log,
    },
    VirtualSource {
        schema: "mysql",
        name: "slow_log",
        columns: &[
            ("start_time", microsecond, false),
            ("user_host", user_host, false),
            ("query_time", duration, false),
            ("lock_time", duration, false),
            ("rows_sent", int, false),
            ("rows_examined", int, false),
            ("db", schema_name, false),
            ("last_insert_id", int, false),
            ("insert_id", int, false),
            ("server_id", uint, false),
            ("sql_text", bytes, false),
            ("thread_id", ubig, false),
        ],
        rows: slow_log,
    },
];

/// MySQL's default costs, which EXPLAIN's are measured in.
fn engine_cost(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (name, cost) in [
        ("io_block_read_cost", 1.0),
        ("memory_block_read_cost", 0.25),
    ] {
        let values = [
            text("default"),
            Value::Int(0),
            text(name),
            Value::Null,
            started(exec),
            Value::Null,
            Value::Double(cost),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

/// As [`engine_cost`], of what the server does.
fn server_cost(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    const COSTS: [(&str, f64); 6] = [
        ("disk_temptable_create_cost", 20.0),
        ("disk_temptable_row_cost", 0.5),
        ("key_compare_cost", 0.05),
        ("memory_temptable_create_cost", 1.0),
        ("memory_temptable_row_cost", 0.1),
        ("row_evaluate_cost", 0.1),
    ];
    for (name, cost) in COSTS {
        let values = [
            text(name),
            Value::Null,
            started(exec),
            Value::Null,
            Value::Double(cost),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

/// When the server started: nobody has changed its costs since.
fn started(exec: &Exec<'_>) -> Value {
    local_time(exec, exec.engine.variables.started_us / 1_000_000)
}

fn general_log(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let columns = [microsecond, user_host, ubig, uint, name, bytes];
    logged(exec, &exec.engine.log_tables.general, &columns, row)
}

fn slow_log(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let columns = [
        microsecond,
        user_host,
        duration,
        duration,
        int,
        int,
        schema_name,
        int,
        int,
        uint,
        bytes,
        ubig,
    ];
    logged(exec, &exec.engine.log_tables.slow, &columns, row)
}

/// The entries of a log whose columns are of these types, moments in the session's time zone.
fn logged(
    exec: &mut Exec<'_>,
    log: &LogTable,
    columns: &[fn() -> DataType],
    row: Sink<'_>,
) -> Result<()> {
    for fields in log.entries().map_err(Error::engine_error)? {
        let fields = fields.map_err(Error::engine_error)?;
        let values = fields.iter().zip(columns).map(|(field, column)| {
            let text = String::from_utf8_lossy(field);
            let number = || text.parse::<i64>().unwrap_or_default();
            match column() {
                DataType::Timestamp { .. } => Value::DateTime(exec.session.to_local(number())),
                DataType::Time { .. } => Value::Time(Time::from_micros_clamped(number())),
                DataType::Int { unsigned: true, .. } => Value::UInt(number() as u64),
                DataType::Int { .. } => Value::Int(number()),
                DataType::Blob(_) => Value::Bytes(field.clone()),
                _ => Value::text(text),
            }
        });
        let values: Vec<Value> = values.collect();
        if values.len() == columns.len() {
            row(exec, &values)?;
        }
    }
    Ok(())
}

const fn empty(name: &'static str, columns: &'static [ColumnRow]) -> VirtualSource {
    VirtualSource {
        schema: "mysql",
        name,
        columns,
        rows: |_, _, _| Ok(()),
    }
}

fn chars(length: u32) -> DataType {
    DataType::Char {
        length,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

fn object_name() -> DataType {
    chars(64)
}

fn float() -> DataType {
    DataType::FLOAT
}

fn second() -> DataType {
    DataType::Timestamp { fsp: 0 }
}

fn comment() -> DataType {
    DataType::Varchar {
        length: 1024,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

fn uuid() -> DataType {
    chars(36)
}

fn tag() -> DataType {
    chars(32)
}

fn schema_name() -> DataType {
    DataType::Varchar {
        length: 512,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

fn library() -> DataType {
    chars(128)
}

fn abbreviation() -> DataType {
    chars(8)
}

fn plain_text() -> DataType {
    DataType::Text {
        size: BlobSize::Normal,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

fn user_host() -> DataType {
    DataType::Text {
        size: BlobSize::Medium,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

fn bytes() -> DataType {
    DataType::Blob(BlobSize::Medium)
}

fn microsecond() -> DataType {
    DataType::Timestamp { fsp: 6 }
}

fn duration() -> DataType {
    DataType::Time { fsp: 6 }
}

fn integer(width: IntWidth, unsigned: bool) -> DataType {
    DataType::Int {
        width,
        unsigned,
        zerofill: false,
        display_width: None,
    }
}

fn tiny() -> DataType {
    integer(IntWidth::Tiny, false)
}

fn unsigned_tiny() -> DataType {
    integer(IntWidth::Tiny, true)
}

fn small() -> DataType {
    integer(IntWidth::Small, true)
}

fn members(names: &[&str]) -> DataType {
    DataType::Enum(Arc::new(EnumDef {
        members: names.iter().map(|name| (*name).into()).collect(),
        collation: Collation::UTF8MB3_GENERAL_CI,
    }))
}

fn leap_seconds() -> DataType {
    members(&["Y", "N"])
}

fn function_type() -> DataType {
    members(&["function", "aggregate"])
}

fn servers(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for server in exec.engine.servers.all() {
        let values = [
            text(server.name),
            text(server.host),
            text(server.database),
            text(server.user),
            text(server.password),
            Value::Int(i64::try_from(server.port).unwrap_or(i64::MAX)),
            text(server.socket),
            text(server.wrapper),
            text(server.owner),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

fn component(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for component in exec.engine.components.all() {
        let values = [
            Value::UInt(component.id.into()),
            Value::UInt(component.group.into()),
            text(component.urn),
        ];
        row(exec, &values)?;
    }
    Ok(())
}

fn time_zone_name(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    for (number, name) in (1..).zip(TimeZone::names()) {
        row(exec, &[text(name), Value::UInt(number)])?;
    }
    Ok(())
}

fn time_zone(exec: &mut Exec<'_>, _: &Lookup, row: Sink<'_>) -> Result<()> {
    let without_leap_seconds = Value::UInt(2);
    for (number, _) in (1..).zip(TimeZone::names()) {
        row(exec, &[Value::UInt(number), without_leap_seconds.clone()])?;
    }
    Ok(())
}
