//! SHOW statements as SELECTs.

use porpoise_catalog::Relation;
use porpoise_core::error::{Error, Result};
use porpoise_core::quote::{name, quoted};
use porpoise_session::check;
use porpoise_sql::ast::{self, ShowWhat};

use super::ShowContext;
use crate::view_columns::view_columns;

/// A SELECT, and the name of the column that LIKE is about.
pub struct ShowQuery {
    pub sql: String,
    pub matched: String,
}

impl ShowQuery {
    /// LIKE is about another column than the first.
    fn matching(mut self, column: &str) -> Self {
        self.matched = column.to_owned();
        self
    }
}

/// `(column of the table, column of SHOW)`.
type Columns = &'static [(&'static str, &'static str)];

fn simple(table: &str, columns: Columns, condition: &str) -> ShowQuery {
    let list: Vec<String> = columns
        .iter()
        .map(|(from, shown)| format!("{from} AS {}", name(shown)))
        .collect();
    let condition = if condition.is_empty() {
        String::new()
    } else {
        format!(" WHERE {condition}")
    };
    let matched = columns.first().map_or("", |(_, shown)| shown).to_string();
    ShowQuery {
        sql: format!("SELECT {} FROM {table}{condition}", list.join(",")),
        matched,
    }
}

const TABLE_STATUS: Columns = &[
    ("TABLE_NAME", "Name"),
    ("ENGINE", "Engine"),
    ("VERSION", "Version"),
    ("ROW_FORMAT", "Row_format"),
    ("TABLE_ROWS", "Rows"),
    ("AVG_ROW_LENGTH", "Avg_row_length"),
    ("DATA_LENGTH", "Data_length"),
    ("MAX_DATA_LENGTH", "Max_data_length"),
    ("INDEX_LENGTH", "Index_length"),
    ("DATA_FREE", "Data_free"),
    ("AUTO_INCREMENT", "Auto_increment"),
    ("CREATE_TIME", "Create_time"),
    ("UPDATE_TIME", "Update_time"),
    ("CHECK_TIME", "Check_time"),
    ("TABLE_COLLATION", "Collation"),
    ("CHECKSUM", "Checksum"),
    ("CREATE_OPTIONS", "Create_options"),
    ("TABLE_COMMENT", "Comment"),
];

const COLUMNS: Columns = &[
    ("COLUMN_NAME", "Field"),
    ("COLUMN_TYPE", "Type"),
    ("IS_NULLABLE", "Null"),
    ("COLUMN_KEY", "Key"),
    ("COLUMN_DEFAULT", "Default"),
    ("EXTRA", "Extra"),
];

const FULL_COLUMNS: Columns = &[
    ("COLUMN_NAME", "Field"),
    ("COLUMN_TYPE", "Type"),
    ("COLLATION_NAME", "Collation"),
    ("IS_NULLABLE", "Null"),
    ("COLUMN_KEY", "Key"),
    ("COLUMN_DEFAULT", "Default"),
    ("EXTRA", "Extra"),
    ("PRIVILEGES", "Privileges"),
    ("COLUMN_COMMENT", "Comment"),
];

const INDEXES: Columns = &[
    ("TABLE_NAME", "Table"),
    ("NON_UNIQUE", "Non_unique"),
    ("INDEX_NAME", "Key_name"),
    ("SEQ_IN_INDEX", "Seq_in_index"),
    ("COLUMN_NAME", "Column_name"),
    ("COLLATION", "Collation"),
    ("CARDINALITY", "Cardinality"),
    ("SUB_PART", "Sub_part"),
    ("PACKED", "Packed"),
    ("NULLABLE", "Null"),
    ("INDEX_TYPE", "Index_type"),
    ("COMMENT", "Comment"),
    ("INDEX_COMMENT", "Index_comment"),
    ("IS_VISIBLE", "Visible"),
    ("EXPRESSION", "Expression"),
];

const TRIGGERS: Columns = &[
    ("TRIGGER_NAME", "Trigger"),
    ("EVENT_MANIPULATION", "Event"),
    ("EVENT_OBJECT_TABLE", "Table"),
    ("ACTION_STATEMENT", "Statement"),
    ("ACTION_TIMING", "Timing"),
    ("CREATED", "Created"),
    ("SQL_MODE", "sql_mode"),
    ("DEFINER", "Definer"),
    ("CHARACTER_SET_CLIENT", "character_set_client"),
    ("COLLATION_CONNECTION", "collation_connection"),
    ("DATABASE_COLLATION", "Database Collation"),
];

const EVENTS: Columns = &[
    ("EVENT_SCHEMA", "Db"),
    ("EVENT_NAME", "Name"),
    ("DEFINER", "Definer"),
    ("TIME_ZONE", "Time zone"),
    ("EVENT_TYPE", "Type"),
    ("EXECUTE_AT", "Execute at"),
    ("INTERVAL_VALUE", "Interval value"),
    ("INTERVAL_FIELD", "Interval field"),
    ("STARTS", "Starts"),
    ("ENDS", "Ends"),
    ("STATUS", "Status"),
    ("ORIGINATOR", "Originator"),
    ("CHARACTER_SET_CLIENT", "character_set_client"),
    ("COLLATION_CONNECTION", "collation_connection"),
    ("DATABASE_COLLATION", "Database Collation"),
];

const ROUTINES: Columns = &[
    ("ROUTINE_SCHEMA", "Db"),
    ("ROUTINE_NAME", "Name"),
    ("ROUTINE_TYPE", "Type"),
    ("DEFINER", "Definer"),
    ("LAST_ALTERED", "Modified"),
    ("CREATED", "Created"),
    ("SECURITY_TYPE", "Security_type"),
    ("ROUTINE_COMMENT", "Comment"),
    ("CHARACTER_SET_CLIENT", "character_set_client"),
    ("COLLATION_CONNECTION", "collation_connection"),
    ("DATABASE_COLLATION", "Database Collation"),
];

const PROCESSES: Columns = &[
    ("ID", "Id"),
    ("USER", "User"),
    ("HOST", "Host"),
    ("DB", "db"),
    ("COMMAND", "Command"),
    ("TIME", "Time"),
    ("STATE", "State"),
    ("INFO", "Info"),
];

const PROCESSES_CUT: Columns = &[
    ("ID", "Id"),
    ("USER", "User"),
    ("HOST", "Host"),
    ("DB", "db"),
    ("COMMAND", "Command"),
    ("TIME", "Time"),
    ("STATE", "State"),
    ("LEFT(INFO,100)", "Info"),
];

const VARIABLES: Columns = &[
    ("VARIABLE_NAME", "Variable_name"),
    ("VARIABLE_VALUE", "Value"),
];

/// The SELECT of a SHOW. `pattern` is LIKE's, which SHOW DATABASES and TABLES put in a column's
/// name.
pub fn to_query(
    context: ShowContext<'_>,
    what: &ShowWhat,
    pattern: Option<&str>,
) -> Result<ShowQuery> {
    let suffix = pattern.map_or(String::new(), |pattern| format!(" ({pattern})"));
    Ok(match what {
        ShowWhat::Databases => {
            let matched = format!("Database{suffix}");
            ShowQuery {
                sql: format!(
                    "SELECT SCHEMA_NAME AS {} FROM information_schema.SCHEMATA",
                    name(&matched)
                ),
                matched,
            }
        }
        // No table is kept open between statements.
        ShowWhat::OpenTables { .. } => ShowQuery {
            sql: "SELECT '' AS `Database`, '' AS `Table`, 0 AS `In_use`, 0 AS `Name_locked` FROM DUAL WHERE FALSE".into(),
            matched: "Database".into(),
        },
        ShowWhat::Tables { full, database, .. } => {
            let schema = schema(context, database.as_ref())?;
            let matched = format!("Tables_in_{schema}{suffix}");
            let kind = if *full {
                ",TABLE_TYPE AS `Table_type`"
            } else {
                ""
            };
            let sql = format!(
                "SELECT TABLE_NAME AS {}{kind} FROM information_schema.TABLES WHERE TABLE_SCHEMA={}",
                name(&matched),
                quoted(&schema)
            );
            ShowQuery { sql, matched }
        }
        ShowWhat::TableStatus { database } => {
            let schema = schema(context, database.as_ref())?;
            simple(
                "information_schema.TABLES",
                TABLE_STATUS,
                &format!("TABLE_SCHEMA={}", quoted(&schema)),
            )
        }
        ShowWhat::Columns { full, table, .. } => {
            let condition = table_condition(context, table)?;
            check_view(context, table)?;
            simple(
                "information_schema.COLUMNS",
                if *full { FULL_COLUMNS } else { COLUMNS },
                &condition,
            )
        }
        ShowWhat::Indexes { table, .. } => {
            let condition = table_condition(context, table)?;
            simple("information_schema.STATISTICS", INDEXES, &condition)
        }
        ShowWhat::Triggers { database, .. } => {
            let schema = schema(context, database.as_ref())?;
            simple(
                "information_schema.TRIGGERS",
                TRIGGERS,
                &format!("TRIGGER_SCHEMA={}", quoted(&schema)),
            )
            .matching("Table")
        }
        ShowWhat::Events { database } => {
            let schema = schema(context, database.as_ref())?;
            simple(
                "information_schema.EVENTS",
                EVENTS,
                &format!("EVENT_SCHEMA={}", quoted(&schema)),
            )
            .matching("Name")
        }
        ShowWhat::ProcedureStatus => simple(
            "information_schema.ROUTINES",
            ROUTINES,
            "ROUTINE_TYPE='PROCEDURE'",
        )
        .matching("Name"),
        ShowWhat::FunctionStatus => simple(
            "information_schema.ROUTINES",
            ROUTINES,
            "ROUTINE_TYPE='FUNCTION'",
        )
        .matching("Name"),
        ShowWhat::Variables { global: true } => {
            simple("performance_schema.global_variables", VARIABLES, "")
        }
        ShowWhat::Variables { global: false } => {
            simple("performance_schema.session_variables", VARIABLES, "")
        }
        ShowWhat::Status { global: true } => {
            simple("performance_schema.global_status", VARIABLES, "")
        }
        ShowWhat::Status { global: false } => {
            simple("performance_schema.session_status", VARIABLES, "")
        }
        ShowWhat::ProcessList { full } => simple(
            "information_schema.PROCESSLIST",
            if *full { PROCESSES } else { PROCESSES_CUT },
            "",
        ),
        ShowWhat::Engines => simple(
            "information_schema.ENGINES",
            &[
                ("ENGINE", "Engine"),
                ("SUPPORT", "Support"),
                ("COMMENT", "Comment"),
                ("TRANSACTIONS", "Transactions"),
                ("XA", "XA"),
                ("SAVEPOINTS", "Savepoints"),
            ],
            "",
        ),
        ShowWhat::Plugins => simple(
            "information_schema.PLUGINS",
            &[
                ("PLUGIN_NAME", "Name"),
                ("PLUGIN_STATUS", "Status"),
                ("PLUGIN_TYPE", "Type"),
                ("PLUGIN_LIBRARY", "Library"),
                ("PLUGIN_LICENSE", "License"),
            ],
            "",
        ),
        ShowWhat::CharacterSets => simple(
            "information_schema.CHARACTER_SETS",
            &[
                ("CHARACTER_SET_NAME", "Charset"),
                ("DESCRIPTION", "Description"),
                ("DEFAULT_COLLATE_NAME", "Default collation"),
                ("MAXLEN", "Maxlen"),
            ],
            "",
        ),
        ShowWhat::Collations => simple(
            "information_schema.COLLATIONS",
            &[
                ("COLLATION_NAME", "Collation"),
                ("CHARACTER_SET_NAME", "Charset"),
                ("ID", "Id"),
                ("IS_DEFAULT", "Default"),
                ("IS_COMPILED", "Compiled"),
                ("SORTLEN", "Sortlen"),
                ("PAD_ATTRIBUTE", "Pad_attribute"),
            ],
            "",
        ),
        ShowWhat::RoutineCode(name) => {
            context.state.schema_or_current(name.schema.as_ref())?;
            return Err(Error::feature_disabled(
                "SHOW PROCEDURE|FUNCTION CODE",
                "--with-debug",
            ));
        }
        _ => return Err(Error::not_supported_yet("this SHOW")),
    })
}

/// The schema named, or the current one; it must exist and be visible.
pub fn schema(context: ShowContext<'_>, named: Option<&ast::Ident>) -> Result<String> {
    let name = context.state.schema_or_current(named)?;
    check::check_schema_visible(context.state, &name)?;
    let found = context.shared.catalog.load().schema_name(&name);
    found
        .map(|name| name.to_string())
        .ok_or_else(|| Error::unknown_database(name))
}

/// The full name of a table, view or virtual table that exists and is visible.
pub fn table(context: ShowContext<'_>, named: &ast::ObjectName) -> Result<(String, String)> {
    let schema = context.state.schema_or_current(named.schema.as_ref())?;
    let schema = schema.to_string();
    let name = named.name.as_str();
    if context
        .state
        .temporary_tables
        .contains_key(&(schema.as_str().into(), name.into()))
    {
        return Ok((schema, name.to_string()));
    }
    check::check_table_visible(context.state, &schema, name)?;
    match context.shared.catalog.load().relation(&schema, name) {
        Some(Relation::Virtual(table)) => Ok((table.schema.to_string(), table.name.to_string())),
        Some(_) => Ok((schema, name.to_string())),
        None => Err(Error::no_such_table(&schema, name)),
    }
}

/// A view whose tables are gone has no columns to show, which is an error.
fn check_view(context: ShowContext<'_>, named: &ast::ObjectName) -> Result<()> {
    let (schema, name) = table(context, named)?;
    let shared = context.shared;
    let catalog = shared.catalog.load_full();
    let hidden = (schema.as_str().into(), name.as_str().into());
    match catalog.relation(&schema, &name) {
        Some(Relation::View(view)) if !context.state.temporary_tables.contains_key(&hidden) => {
            view_columns(&view, &catalog, context.state, shared).map(drop)
        }
        _ => Ok(()),
    }
}

fn table_condition(context: ShowContext<'_>, named: &ast::ObjectName) -> Result<String> {
    let (schema, name) = table(context, named)?;
    Ok(format!(
        "TABLE_SCHEMA={} AND TABLE_NAME={}",
        quoted(&schema),
        quoted(&name)
    ))
}
