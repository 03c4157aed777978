//! What lives as long as a statement.

/// The state of the running statement. A session replaces it as a whole when a statement begins, so
/// nothing of it has to be reset by hand.
#[derive(Clone, Copy, Debug)]
pub struct StatementContext {
    /// When the statement began, in UTC microseconds since 1970; what `timestamp` says where it is
    /// set.
    pub started_us: i64,
    /// Whether plain reads lock what they read, as at SERIALIZABLE.
    pub reads_lock: bool,
    /// Whether a locking look-up by a whole unique key keeps the key locked that it doesn't find,
    /// as at REPEATABLE READ.
    pub keeps_absent_locks: bool,
    /// The statement said IGNORE: errors of a row are warnings.
    pub ignores_errors: bool,
    /// The statement changes rows: strict mode makes errors of what its expressions would only warn
    /// of.
    pub changes_rows: bool,
    /// The statement inserts one given row: NULL for a NOT NULL column is an error in any mode, in
    /// ON DUPLICATE KEY UPDATE as well.
    pub refuses_null: bool,
    /// A scan read far more rows than its plan expected, or found far fewer: a plan made for the
    /// statement's own literals may be better.
    pub is_misplanned: bool,
    /// LAST_INSERT_ID(expr) has been computed: its value is what the OK packet tells.
    pub gave_insert_id: bool,
    /// How many rows its scans have read, before any filter.
    pub rows_examined: u64,
    /// A scan read a whole table, or a whole index.
    pub uses_no_index: bool,
    /// The statement is about the diagnostics of the one before it, which stay (SHOW WARNINGS).
    pub keeps_diagnostics: bool,
}

impl StatementContext {
    /// A statement that begins now, of which nothing else is known yet.
    pub fn new(started_us: i64, reads_lock: bool) -> StatementContext {
        StatementContext {
            started_us,
            reads_lock,
            keeps_absent_locks: true,
            ignores_errors: false,
            changes_rows: false,
            refuses_null: false,
            is_misplanned: false,
            gave_insert_id: false,
            rows_examined: 0,
            uses_no_index: false,
            keeps_diagnostics: false,
        }
    }

    /// A statement turns out to change rows, with IGNORE or without.
    pub fn begin_change(&mut self, ignores_errors: bool) {
        self.ignores_errors = ignores_errors;
        self.changes_rows = true;
        self.refuses_null = false;
    }
}
