//! What there is none of: tables that are always empty, for the programs that ask.

use super::*;

const fn empty(name: &'static str, columns: &'static [ColumnRow]) -> VirtualSource {
    VirtualSource {
        schema: "information_schema",
        name,
        columns,
        rows: no_rows,
    }
}

fn no_rows(_: &mut Exec<'_>, _: &Lookup, _: Sink<'_>) -> Result<()> {
    Ok(())
}

pub const TABLES: &[VirtualSource] = &[
    empty(
        "ST_GEOMETRY_COLUMNS",
        &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("COLUMN_NAME", name, true),
            ("SRS_NAME", name, true),
            ("SRS_ID", uint, true),
            ("GEOMETRY_TYPE_NAME", long, true),
        ],
    ),
    empty(
        "FILES",
        &[
            ("FILE_ID", big, true),
            ("FILE_NAME", long, true),
            ("FILE_TYPE", word, true),
            ("TABLESPACE_NAME", word, false),
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, true),
            ("TABLE_NAME", exact, true),
            ("LOGFILE_GROUP_NAME", word, true),
            ("LOGFILE_GROUP_NUMBER", big, true),
            ("ENGINE", name, false),
            ("FULLTEXT_KEYS", yes_no, true),
            ("DELETED_ROWS", yes_no, true),
            ("UPDATE_COUNT", yes_no, true),
            ("FREE_EXTENTS", big, true),
            ("TOTAL_EXTENTS", big, true),
            ("EXTENT_SIZE", big, true),
            ("INITIAL_SIZE", big, true),
            ("MAXIMUM_SIZE", big, true),
            ("AUTOEXTEND_SIZE", big, true),
            ("CREATION_TIME", moment, true),
            ("LAST_UPDATE_TIME", moment, true),
            ("LAST_ACCESS_TIME", moment, true),
            ("RECOVER_TIME", moment, true),
            ("TRANSACTION_COUNTER", big, true),
            ("VERSION", big, true),
            ("ROW_FORMAT", word, true),
            ("TABLE_ROWS", big, true),
            ("AVG_ROW_LENGTH", big, true),
            ("DATA_LENGTH", big, true),
            ("MAX_DATA_LENGTH", big, true),
            ("INDEX_LENGTH", big, true),
            ("DATA_FREE", big, true),
            ("CREATE_TIME", moment, true),
            ("UPDATE_TIME", moment, true),
            ("CHECK_TIME", moment, true),
            ("CHECKSUM", big, true),
            ("STATUS", word, true),
            ("EXTRA", word, true),
        ],
    ),
    empty(
        "PROFILING",
        &[
            ("QUERY_ID", uint, false),
            ("SEQ", uint, false),
            ("STATE", name, false),
            ("DURATION", double, false),
            ("CPU_USER", double, true),
            ("CPU_SYSTEM", double, true),
            ("CONTEXT_VOLUNTARY", int, true),
            ("CONTEXT_INVOLUNTARY", int, true),
            ("BLOCK_OPS_IN", int, true),
            ("BLOCK_OPS_OUT", int, true),
            ("MESSAGES_SENT", int, true),
            ("MESSAGES_RECEIVED", int, true),
            ("PAGE_FAULTS_MAJOR", int, true),
            ("PAGE_FAULTS_MINOR", int, true),
            ("SWAPS", int, true),
            ("SOURCE_FUNCTION", name, true),
            ("SOURCE_FILE", name, true),
            ("SOURCE_LINE", int, true),
        ],
    ),
    empty(
        "ST_SPATIAL_REFERENCE_SYSTEMS",
        &[
            ("SRS_NAME", name, false),
            ("SRS_ID", uint, false),
            ("ORGANIZATION", word, true),
            ("ORGANIZATION_COORDSYS_ID", uint, true),
            ("DEFINITION", wide, false),
            ("DESCRIPTION", wide, true),
        ],
    ),
    empty(
        "ST_UNITS_OF_MEASURE",
        &[
            ("UNIT_NAME", word, true),
            ("UNIT_TYPE", name, true),
            ("CONVERSION_FACTOR", double, true),
            ("DESCRIPTION", word, true),
        ],
    ),
    empty(
        "TABLESPACES_EXTENSIONS",
        &[
            ("TABLESPACE_NAME", word, false),
            ("ENGINE_ATTRIBUTE", || DataType::Json, true),
        ],
    ),
    empty(
        "VIEW_ROUTINE_USAGE",
        &[
            ("TABLE_CATALOG", name, false),
            ("TABLE_SCHEMA", exact, false),
            ("TABLE_NAME", exact, false),
            ("SPECIFIC_CATALOG", name, false),
            ("SPECIFIC_SCHEMA", exact, false),
            ("SPECIFIC_NAME", name, false),
        ],
    ),
];
