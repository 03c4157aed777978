//! The columns of the INNODB_* tables, as MySQL 8.4 has them.

use porpoise_types::DataType;

use super::*;

/// VARCHAR of so many characters.
fn varchar<const LENGTH: u32>() -> DataType {
    DataType::Varchar {
        length: LENGTH,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

fn numbers_text() -> DataType {
    DataType::Varbinary(256)
}

fn plain_text() -> DataType {
    DataType::Text {
        size: BlobSize::Normal,
        collation: Collation::UTF8MB3_GENERAL_CI,
    }
}

/// FLOAT(12,0).
fn float() -> DataType {
    DataType::Float {
        unsigned: false,
        zerofill: false,
        digits: Some((12, 0)),
    }
}

pub(super) const TABLES_COLUMNS: &[ColumnRow] = &[
    ("TABLE_ID", ubig, false),
    ("NAME", varchar::<655>, false),
    ("FLAG", int, false),
    ("N_COLS", int, false),
    ("SPACE", big, false),
    ("ROW_FORMAT", varchar::<12>, true),
    ("ZIP_PAGE_SIZE", uint, false),
    ("SPACE_TYPE", varchar::<10>, true),
    ("INSTANT_COLS", int, false),
    ("TOTAL_ROW_VERSIONS", int, false),
];

pub(super) const COLUMNS_COLUMNS: &[ColumnRow] = &[
    ("TABLE_ID", ubig, false),
    ("NAME", varchar::<193>, false),
    ("POS", ubig, false),
    ("MTYPE", int, false),
    ("PRTYPE", int, false),
    ("LEN", int, false),
    ("HAS_DEFAULT", int, false),
    ("DEFAULT_VALUE", plain_text, true),
];

pub(super) const INDEXES_COLUMNS: &[ColumnRow] = &[
    ("INDEX_ID", ubig, false),
    ("NAME", varchar::<193>, false),
    ("TABLE_ID", ubig, false),
    ("TYPE", int, false),
    ("N_FIELDS", int, false),
    ("PAGE_NO", int, false),
    ("SPACE", int, false),
    ("MERGE_THRESHOLD", int, false),
];

pub(super) const FIELDS_COLUMNS: &[ColumnRow] = &[
    ("INDEX_ID", numbers_text, true),
    ("NAME", varchar::<64>, false),
    ("POS", ubig, false),
];

pub(super) const FOREIGN_COLUMNS: &[ColumnRow] = &[
    ("ID", varchar::<129>, true),
    ("FOR_NAME", varchar::<129>, true),
    ("REF_NAME", varchar::<129>, true),
    ("N_COLS", big, false),
    ("TYPE", ubig, false),
];

pub(super) const FOREIGN_COLS_COLUMNS: &[ColumnRow] = &[
    ("ID", varchar::<129>, true),
    ("FOR_COL_NAME", varchar::<64>, false),
    ("REF_COL_NAME", varchar::<64>, false),
    ("POS", uint, false),
];

pub(super) const TABLESTATS_COLUMNS: &[ColumnRow] = &[
    ("TABLE_ID", ubig, false),
    ("NAME", varchar::<193>, false),
    ("STATS_INITIALIZED", varchar::<193>, false),
    ("NUM_ROWS", ubig, false),
    ("CLUST_INDEX_SIZE", ubig, false),
    ("OTHER_INDEX_SIZE", ubig, false),
    ("MODIFIED_COUNTER", ubig, false),
    ("AUTOINC", ubig, false),
    ("REF_COUNT", int, false),
];

pub(super) const VIRTUAL_COLUMNS: &[ColumnRow] = &[
    ("TABLE_ID", ubig, false),
    ("POS", uint, false),
    ("BASE_POS", uint, false),
];

pub(super) const TEMP_TABLE_COLUMNS: &[ColumnRow] = &[
    ("TABLE_ID", ubig, false),
    ("NAME", varchar::<64>, true),
    ("N_COLS", uint, false),
    ("SPACE", uint, false),
];

pub(super) const CMP_COLUMNS: &[ColumnRow] = &[
    ("page_size", int, false),
    ("compress_ops", int, false),
    ("compress_ops_ok", int, false),
    ("compress_time", int, false),
    ("uncompress_ops", int, false),
    ("uncompress_time", int, false),
];

pub(super) const CMPMEM_COLUMNS: &[ColumnRow] = &[
    ("page_size", int, false),
    ("buffer_pool_instance", int, false),
    ("pages_used", int, false),
    ("pages_free", int, false),
    ("relocation_ops", big, false),
    ("relocation_time", int, false),
];

pub(super) const CMP_PER_INDEX_COLUMNS: &[ColumnRow] = &[
    ("database_name", varchar::<192>, false),
    ("table_name", varchar::<192>, false),
    ("index_name", varchar::<192>, false),
    ("compress_ops", int, false),
    ("compress_ops_ok", int, false),
    ("compress_time", int, false),
    ("uncompress_ops", int, false),
    ("uncompress_time", int, false),
];

pub(super) const METRICS_COLUMNS: &[ColumnRow] = &[
    ("NAME", varchar::<193>, false),
    ("SUBSYSTEM", varchar::<193>, false),
    ("COUNT", big, false),
    ("MAX_COUNT", big, true),
    ("MIN_COUNT", big, true),
    ("AVG_COUNT", float, true),
    ("COUNT_RESET", big, false),
    ("MAX_COUNT_RESET", big, true),
    ("MIN_COUNT_RESET", big, true),
    ("AVG_COUNT_RESET", float, true),
    ("TIME_ENABLED", moment, true),
    ("TIME_DISABLED", moment, true),
    ("TIME_ELAPSED", big, true),
    ("TIME_RESET", moment, true),
    ("STATUS", varchar::<193>, false),
    ("TYPE", varchar::<193>, false),
    ("COMMENT", varchar::<193>, false),
];

pub(super) const TABLESPACES_COLUMNS: &[ColumnRow] = &[
    ("SPACE", uint, false),
    ("NAME", varchar::<655>, false),
    ("FLAG", uint, false),
    ("ROW_FORMAT", varchar::<22>, true),
    ("PAGE_SIZE", uint, false),
    ("ZIP_PAGE_SIZE", uint, false),
    ("SPACE_TYPE", varchar::<10>, true),
    ("FS_BLOCK_SIZE", uint, false),
    ("FILE_SIZE", ubig, false),
    ("ALLOCATED_SIZE", ubig, false),
    ("AUTOEXTEND_SIZE", ubig, false),
    ("SERVER_VERSION", varchar::<10>, true),
    ("SPACE_VERSION", uint, false),
    ("ENCRYPTION", varchar::<1>, true),
    ("STATE", varchar::<10>, true),
];

pub(super) const TABLESPACES_BRIEF_COLUMNS: &[ColumnRow] = &[
    ("SPACE", numbers_text, true),
    ("NAME", varchar::<268>, false),
    ("PATH", varchar::<512>, false),
    ("FLAG", numbers_text, true),
    ("SPACE_TYPE", varchar::<7>, false),
];

pub(super) const DATAFILES_COLUMNS: &[ColumnRow] = &[
    ("SPACE", numbers_text, true),
    ("PATH", varchar::<512>, false),
];

pub(super) const SESSION_TEMP_COLUMNS: &[ColumnRow] = &[
    ("ID", uint, false),
    ("SPACE", uint, false),
    ("PATH", varchar::<4001>, false),
    ("SIZE", ubig, false),
    ("STATE", varchar::<192>, false),
    ("PURPOSE", varchar::<192>, false),
];

pub(super) const CACHED_INDEXES_COLUMNS: &[ColumnRow] = &[
    ("SPACE_ID", uint, false),
    ("INDEX_ID", ubig, false),
    ("N_CACHED_PAGES", ubig, false),
];

pub(super) const BUFFER_PAGE_COLUMNS: &[ColumnRow] = &[
    ("POOL_ID", ubig, false),
    ("BLOCK_ID", ubig, false),
    ("SPACE", ubig, false),
    ("PAGE_NUMBER", ubig, false),
    ("PAGE_TYPE", varchar::<64>, true),
    ("FLUSH_TYPE", ubig, false),
    ("FIX_COUNT", ubig, false),
    ("IS_HASHED", varchar::<3>, true),
    ("NEWEST_MODIFICATION", ubig, false),
    ("OLDEST_MODIFICATION", ubig, false),
    ("ACCESS_TIME", ubig, false),
    ("TABLE_NAME", varchar::<1024>, true),
    ("INDEX_NAME", varchar::<1024>, true),
    ("NUMBER_RECORDS", ubig, false),
    ("DATA_SIZE", ubig, false),
    ("COMPRESSED_SIZE", ubig, false),
    ("PAGE_STATE", varchar::<64>, true),
    ("IO_FIX", varchar::<64>, true),
    ("IS_OLD", varchar::<3>, true),
    ("FREE_PAGE_CLOCK", ubig, false),
    ("IS_STALE", varchar::<3>, true),
];

pub(super) const BUFFER_PAGE_LRU_COLUMNS: &[ColumnRow] = &[
    ("POOL_ID", ubig, false),
    ("LRU_POSITION", ubig, false),
    ("SPACE", ubig, false),
    ("PAGE_NUMBER", ubig, false),
    ("PAGE_TYPE", varchar::<64>, true),
    ("FLUSH_TYPE", ubig, false),
    ("FIX_COUNT", ubig, false),
    ("IS_HASHED", varchar::<3>, true),
    ("NEWEST_MODIFICATION", ubig, false),
    ("OLDEST_MODIFICATION", ubig, false),
    ("ACCESS_TIME", ubig, false),
    ("TABLE_NAME", varchar::<1024>, true),
    ("INDEX_NAME", varchar::<1024>, true),
    ("NUMBER_RECORDS", ubig, false),
    ("DATA_SIZE", ubig, false),
    ("COMPRESSED_SIZE", ubig, false),
    ("COMPRESSED", varchar::<3>, true),
    ("IO_FIX", varchar::<64>, true),
    ("IS_OLD", varchar::<3>, true),
    ("FREE_PAGE_CLOCK", ubig, false),
];

pub(super) const BUFFER_POOL_COLUMNS: &[ColumnRow] = &[
    ("POOL_ID", ubig, false),
    ("POOL_SIZE", ubig, false),
    ("FREE_BUFFERS", ubig, false),
    ("DATABASE_PAGES", ubig, false),
    ("OLD_DATABASE_PAGES", ubig, false),
    ("MODIFIED_DATABASE_PAGES", ubig, false),
    ("PENDING_DECOMPRESS", ubig, false),
    ("PENDING_READS", ubig, false),
    ("PENDING_FLUSH_LRU", ubig, false),
    ("PENDING_FLUSH_LIST", ubig, false),
    ("PAGES_MADE_YOUNG", ubig, false),
    ("PAGES_NOT_MADE_YOUNG", ubig, false),
    ("PAGES_MADE_YOUNG_RATE", float, false),
    ("PAGES_MADE_NOT_YOUNG_RATE", float, false),
    ("NUMBER_PAGES_READ", ubig, false),
    ("NUMBER_PAGES_CREATED", ubig, false),
    ("NUMBER_PAGES_WRITTEN", ubig, false),
    ("PAGES_READ_RATE", float, false),
    ("PAGES_CREATE_RATE", float, false),
    ("PAGES_WRITTEN_RATE", float, false),
    ("HIT_RATE", ubig, false),
    ("YOUNG_MAKE_PER_THOUSAND_GETS", ubig, false),
    ("NOT_YOUNG_MAKE_PER_THOUSAND_GETS", ubig, false),
    ("NUMBER_PAGES_READ_AHEAD", ubig, false),
    ("NUMBER_READ_AHEAD_EVICTED", ubig, false),
    ("READ_AHEAD_RATE", float, false),
    ("READ_AHEAD_EVICTED_RATE", float, false),
    ("LRU_IO_TOTAL", ubig, false),
    ("LRU_IO_CURRENT", ubig, false),
    ("UNCOMPRESS_TOTAL", ubig, false),
    ("UNCOMPRESS_CURRENT", ubig, false),
];

pub(super) const FT_CONFIG_COLUMNS: &[ColumnRow] = &[
    ("KEY", varchar::<193>, false),
    ("VALUE", varchar::<193>, false),
];

pub(super) const FT_DELETED_COLUMNS: &[ColumnRow] = &[("DOC_ID", ubig, false)];

pub(super) const FT_STOPWORD_COLUMNS: &[ColumnRow] = &[("value", varchar::<18>, false)];

pub(super) const FT_INDEX_COLUMNS: &[ColumnRow] = &[
    ("WORD", varchar::<337>, false),
    ("FIRST_DOC_ID", ubig, false),
    ("LAST_DOC_ID", ubig, false),
    ("DOC_COUNT", ubig, false),
    ("DOC_ID", ubig, false),
    ("POSITION", ubig, false),
];

pub(super) const TRX_COLUMNS: &[ColumnRow] = &[
    ("trx_id", ubig, false),
    ("trx_state", name, false),
    ("trx_started", moment, false),
    ("trx_requested_lock_id", word, true),
    ("trx_wait_started", moment, true),
    ("trx_weight", ubig, false),
    ("trx_mysql_thread_id", ubig, false),
    ("trx_query", wide, true),
    ("trx_operation_state", name, true),
    ("trx_tables_in_use", ubig, false),
    ("trx_tables_locked", ubig, false),
    ("trx_lock_structs", ubig, false),
    ("trx_lock_memory_bytes", ubig, false),
    ("trx_rows_locked", ubig, false),
    ("trx_rows_modified", ubig, false),
    ("trx_concurrency_tickets", ubig, false),
    ("trx_isolation_level", name, false),
    ("trx_unique_checks", int, false),
    ("trx_foreign_key_checks", int, false),
    ("trx_last_foreign_key_error", word, true),
    ("trx_adaptive_hash_latched", int, false),
    ("trx_adaptive_hash_timeout", ubig, false),
    ("trx_is_read_only", int, false),
    ("trx_autocommit_non_locking", int, false),
    ("trx_schedule_weight", ubig, true),
];
