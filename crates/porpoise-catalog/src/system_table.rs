//! The tables of the schema `mysql` as MySQL 8.4 defines them: defaults and keys, which
//! [`VirtualTable`] doesn't have.
//!
//! Their rows are made by code, and no index is read. SHOW CREATE TABLE, information_schema and
//! CREATE TABLE … LIKE show and copy these definitions.
//!
//! Source: what SHOW CREATE TABLE of MySQL 8.4 prints.

use porpoise_types::{Charset, Collation, DataType, EnumDef, Value};

use crate::IndexKind;
use crate::record::{ColumnRecord, DefaultRecord, IndexRecord, PartRecord, TableRecord};
use crate::virtual_table::{VirtualColumn, VirtualTable};

/// What a table has beyond its columns' types.
struct Definition {
    table: &'static str,
    defaults: Defaults,
    /// Columns whose default is neither that of their type nor missing, with its text.
    literals: &'static [(&'static str, &'static str)],
    /// The column whose default is the time, and whether each change of the row sets it.
    now: Option<(&'static str, bool)>,
    /// The primary key, then others.
    keys: &'static [Key],
}

/// Which columns that can't be NULL have the empty value of their type as default: `''`, `0`, the
/// first member of an ENUM.
enum Defaults {
    None,
    All,
    AllBut(&'static str),
    Of(&'static [&'static str]),
}

/// A key's name, whether it is unique, and its columns.
type Key = (&'static str, bool, &'static [&'static str]);

const PRIMARY: &str = "PRIMARY";

const DEFINITIONS: &[Definition] = &[
    Definition {
        table: "user",
        defaults: Defaults::All,
        literals: &[("plugin", "caching_sha2_password")],
        now: None,
        keys: &[(PRIMARY, true, &["Host", "User"])],
    },
    Definition {
        table: "db",
        defaults: Defaults::All,
        literals: &[],
        now: None,
        keys: &[
            (PRIMARY, true, &["Host", "User", "Db"]),
            ("User", false, &["User"]),
        ],
    },
    Definition {
        table: "global_grants",
        defaults: Defaults::All,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["USER", "HOST", "PRIV"])],
    },
    Definition {
        table: "tables_priv",
        defaults: Defaults::All,
        literals: &[],
        now: Some(("Timestamp", true)),
        keys: &[
            (PRIMARY, true, &["Host", "User", "Db", "Table_name"]),
            ("Grantor", false, &["Grantor"]),
        ],
    },
    Definition {
        table: "columns_priv",
        defaults: Defaults::All,
        literals: &[],
        now: Some(("Timestamp", true)),
        keys: &[(
            PRIMARY,
            true,
            &["Host", "User", "Db", "Table_name", "Column_name"],
        )],
    },
    Definition {
        table: "procs_priv",
        defaults: Defaults::AllBut("Routine_type"),
        literals: &[],
        now: Some(("Timestamp", true)),
        keys: &[
            (
                PRIMARY,
                true,
                &["Host", "User", "Db", "Routine_name", "Routine_type"],
            ),
            ("Grantor", false, &["Grantor"]),
        ],
    },
    Definition {
        table: "proxies_priv",
        defaults: Defaults::All,
        literals: &[],
        now: Some(("Timestamp", true)),
        keys: &[
            (
                PRIMARY,
                true,
                &["Host", "User", "Proxied_host", "Proxied_user"],
            ),
            ("Grantor", false, &["Grantor"]),
        ],
    },
    Definition {
        table: "role_edges",
        defaults: Defaults::All,
        literals: &[],
        now: None,
        keys: &[(
            PRIMARY,
            true,
            &["FROM_HOST", "FROM_USER", "TO_HOST", "TO_USER"],
        )],
    },
    Definition {
        table: "default_roles",
        defaults: Defaults::All,
        literals: &[("DEFAULT_ROLE_HOST", "%")],
        now: None,
        keys: &[(
            PRIMARY,
            true,
            &["HOST", "USER", "DEFAULT_ROLE_HOST", "DEFAULT_ROLE_USER"],
        )],
    },
    Definition {
        table: "password_history",
        defaults: Defaults::All,
        literals: &[],
        now: Some(("Password_timestamp", false)),
        keys: &[(PRIMARY, true, &["Host", "User", "Password_timestamp DESC"])],
    },
    Definition {
        table: "time_zone_name",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["Name"])],
    },
    Definition {
        table: "time_zone",
        defaults: Defaults::None,
        literals: &[("Use_leap_seconds", "N")],
        now: None,
        keys: &[(PRIMARY, true, &["Time_zone_id"])],
    },
    Definition {
        table: "time_zone_leap_second",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["Transition_time"])],
    },
    Definition {
        table: "time_zone_transition",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["Time_zone_id", "Transition_time"])],
    },
    Definition {
        table: "time_zone_transition_type",
        defaults: Defaults::Of(&["Offset", "Is_DST", "Abbreviation"]),
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["Time_zone_id", "Transition_type_id"])],
    },
    Definition {
        table: "component",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["component_id"])],
    },
    Definition {
        table: "plugin",
        defaults: Defaults::All,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["name"])],
    },
    Definition {
        table: "func",
        defaults: Defaults::AllBut("type"),
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["name"])],
    },
    Definition {
        table: "servers",
        defaults: Defaults::All,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["Server_name"])],
    },
    Definition {
        table: "help_category",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[
            (PRIMARY, true, &["help_category_id"]),
            ("name", true, &["name"]),
        ],
    },
    Definition {
        table: "help_keyword",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[
            (PRIMARY, true, &["help_keyword_id"]),
            ("name", true, &["name"]),
        ],
    },
    Definition {
        table: "help_relation",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[(PRIMARY, true, &["help_keyword_id", "help_topic_id"])],
    },
    Definition {
        table: "help_topic",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[
            (PRIMARY, true, &["help_topic_id"]),
            ("name", true, &["name"]),
        ],
    },
    Definition {
        table: "engine_cost",
        defaults: Defaults::None,
        literals: &[],
        now: Some(("last_update", true)),
        keys: &[(PRIMARY, true, &["cost_name", "engine_name", "device_type"])],
    },
    Definition {
        table: "server_cost",
        defaults: Defaults::None,
        literals: &[],
        now: Some(("last_update", true)),
        keys: &[(PRIMARY, true, &["cost_name"])],
    },
    Definition {
        table: "gtid_executed",
        defaults: Defaults::None,
        literals: &[],
        now: None,
        keys: &[(
            PRIMARY,
            true,
            &["source_uuid", "gtid_tag", "interval_start"],
        )],
    },
    Definition {
        table: "innodb_table_stats",
        defaults: Defaults::None,
        literals: &[],
        now: Some(("last_update", true)),
        keys: &[(PRIMARY, true, &["database_name", "table_name"])],
    },
    Definition {
        table: "innodb_index_stats",
        defaults: Defaults::None,
        literals: &[],
        now: Some(("last_update", true)),
        keys: &[(
            PRIMARY,
            true,
            &["database_name", "table_name", "index_name", "stat_name"],
        )],
    },
    Definition {
        table: "general_log",
        defaults: Defaults::None,
        literals: &[],
        now: Some(("event_time", true)),
        keys: &[],
    },
    Definition {
        table: "slow_log",
        defaults: Defaults::None,
        literals: &[],
        now: Some(("start_time", true)),
        keys: &[],
    },
];

/// Tables whose default collation is utf8mb3_bin; that of the others is utf8mb3_general_ci.
const COMPARES_BYTES: &[&str] = &[
    "columns_priv",
    "db",
    "default_roles",
    "global_grants",
    "innodb_index_stats",
    "innodb_table_stats",
    "password_history",
    "procs_priv",
    "proxies_priv",
    "role_edges",
    "tables_priv",
    "user",
];

/// A table of the schema `mysql` as a record that is in no dictionary: its identifiers and spaces
/// are 0. `None` for tables of other schemas.
pub fn record(own: &VirtualTable) -> Option<TableRecord> {
    if own.schema != "mysql" {
        return None;
    }
    let definition = DEFINITIONS
        .iter()
        .find(|definition| definition.table == own.name);
    let columns = own
        .columns
        .iter()
        .map(|column| column_record(column, definition))
        .collect();
    let keys = definition.map_or(&[][..], |definition| definition.keys);
    Some(TableRecord {
        id: 0,
        version: 0,
        schema: own.schema.into(),
        name: own.name.into(),
        space: 0,
        columns,
        dropped: Vec::new(),
        indexes: keys.iter().map(index_record).collect(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        collation: match COMPARES_BYTES.contains(&own.name) {
            true => Collation::UTF8MB3_BIN.id(),
            false => Charset::Utf8mb3.default_collation().id(),
        },
        comment: own.comment().to_string(),
        options: Vec::new(),
        created_s: 0,
        temporary: false,
    })
}

fn column_record(
    (name, ty, nullable): &VirtualColumn,
    definition: Option<&Definition>,
) -> ColumnRecord {
    let mut column = ColumnRecord::new((*name).into(), ty(), *nullable);
    let Some(definition) = definition else {
        return column;
    };
    let has_empty_default = match definition.defaults {
        Defaults::None => false,
        Defaults::All => true,
        Defaults::AllBut(other) => other != *name,
        Defaults::Of(names) => names.contains(name),
    };
    let literal = definition
        .literals
        .iter()
        .find(|(column, _)| column == name)
        .map(|(_, text)| literal_of(text, &column.ty));
    let takes_default = !matches!(
        column.ty,
        DataType::Blob(_) | DataType::Text { .. } | DataType::Json
    );
    match (definition.now, literal) {
        (Some((now, on_update)), _) if now == *name => {
            column.default = DefaultRecord::Now;
            column.on_update_now = on_update;
        }
        (_, Some(value)) => column.default = DefaultRecord::literal(value, &column.ty),
        _ if has_empty_default && takes_default && !*nullable => {
            column.default = DefaultRecord::literal(column.ty.implicit_default(), &column.ty);
        }
        _ => {}
    }
    column
}

/// The value that a text is in a column of text or of an ENUM's members.
fn literal_of(text: &str, ty: &DataType) -> Value {
    match ty {
        DataType::Enum(members) => member_of(text, members),
        _ => Value::text(text),
    }
}

fn member_of(text: &str, members: &EnumDef) -> Value {
    let mut members = members.members.iter();
    let place = members.position(|member| member.as_str() == text);
    place.map_or(Value::Null, |place| Value::UInt(place as u64 + 1))
}

fn index_record((name, unique, columns): &Key) -> IndexRecord {
    let part = |column: &&'static str| {
        let (column, descending) = match column.strip_suffix(" DESC") {
            Some(column) => (column, true),
            None => (*column, false),
        };
        PartRecord {
            column: column.into(),
            prefix: None,
            descending,
        }
    };
    IndexRecord {
        name: (*name).into(),
        space: 0,
        kind: match (*name, *unique) {
            (PRIMARY, _) => IndexKind::Primary,
            (_, true) => IndexKind::Unique,
            (_, false) => IndexKind::NonUnique,
        },
        parts: columns.iter().map(part).collect(),
        invisible: false,
        comment: String::new(),
        algorithm: None,
        implicit: false,
        origin: None,
    }
}
