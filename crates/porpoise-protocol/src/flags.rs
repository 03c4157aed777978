//! The flag words of the protocol: what a connection can do, what state it is in, what a column is.
//!
//! Values are those of the MySQL 8.4 protocol documentation, "Capabilities Flags",
//! "SERVER_STATUS_flags_enum" and "Column Definition Flags".

use bitflags::bitflags;

bitflags! {
    /// What the two ends of a connection can do; each uses what both have.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Capabilities: u32 {
        /// The improved old password authentication; every client of this century sets it.
        /// MariaDB's server leaves it out.
        const LONG_PASSWORD = 1;
        /// Affected rows are the rows found, not the rows changed.
        const FOUND_ROWS = 1 << 1;
        /// Column flags have two bytes.
        const LONG_FLAG = 1 << 2;
        /// A database can be named while connecting.
        const CONNECT_WITH_DB = 1 << 3;
        /// `database.table.column` isn't allowed.
        const NO_SCHEMA = 1 << 4;
        /// zlib compression.
        const COMPRESS = 1 << 5;
        /// An ODBC client; nothing follows from it.
        const ODBC = 1 << 6;
        /// `LOAD DATA LOCAL` is allowed.
        const LOCAL_FILES = 1 << 7;
        /// Spaces may stand between a function's name and its parenthesis.
        const IGNORE_SPACE = 1 << 8;
        /// The protocol of MySQL 4.1 and later: the only one spoken here.
        const PROTOCOL_41 = 1 << 9;
        /// `interactive_timeout` applies instead of `wait_timeout`.
        const INTERACTIVE = 1 << 10;
        /// TLS begins after a short handshake response.
        const SSL = 1 << 11;
        /// The client ignores SIGPIPE.
        const IGNORE_SIGPIPE = 1 << 12;
        /// Status flags are sent with OK.
        const TRANSACTIONS = 1 << 13;
        /// Unused since 4.1.
        const RESERVED = 1 << 14;
        /// The 4.1 authentication: a 20-byte nonce.
        const SECURE_CONNECTION = 1 << 15;
        /// Several statements may stand in one COM_QUERY.
        const MULTI_STATEMENTS = 1 << 16;
        /// COM_QUERY may have several results.
        const MULTI_RESULTS = 1 << 17;
        /// COM_STMT_EXECUTE may have several results.
        const PS_MULTI_RESULTS = 1 << 18;
        /// Authentication plugins are named.
        const PLUGIN_AUTH = 1 << 19;
        /// Connection attributes are sent.
        const CONNECT_ATTRS = 1 << 20;
        /// The authentication response has a length-encoded length.
        const PLUGIN_AUTH_LENENC_CLIENT_DATA = 1 << 21;
        /// The client can be told that its password has expired.
        const CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22;
        /// Session state changes are sent in OK.
        const SESSION_TRACK = 1 << 23;
        /// OK packets take the place of EOF packets.
        const DEPRECATE_EOF = 1 << 24;
        /// Result metadata may be left out.
        const OPTIONAL_RESULTSET_METADATA = 1 << 25;
        /// zstd compression.
        const ZSTD_COMPRESSION = 1 << 26;
        /// COM_QUERY and COM_STMT_EXECUTE carry query attributes.
        const QUERY_ATTRIBUTES = 1 << 27;
        /// More than one authentication factor.
        const MULTI_FACTOR_AUTHENTICATION = 1 << 28;
        /// Reserved for an extension of this word.
        const CAPABILITY_EXTENSION = 1 << 29;
        /// Client library only: verify the server's certificate.
        const SSL_VERIFY_SERVER_CERT = 1 << 30;
        /// Client library only: keep options after a failed connect.
        const REMEMBER_OPTIONS = 1 << 31;
    }
}

bitflags! {
    /// What an OK or EOF packet tells of the session and of the result.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Status: u16 {
        /// A transaction is open.
        const IN_TRANS = 1;
        /// Autocommit is on.
        const AUTOCOMMIT = 1 << 1;
        /// Another result follows.
        const MORE_RESULTS_EXISTS = 1 << 3;
        /// The query used no good index.
        const NO_GOOD_INDEX_USED = 1 << 4;
        /// The query used no index.
        const NO_INDEX_USED = 1 << 5;
        /// A cursor was opened; rows come by COM_STMT_FETCH.
        const CURSOR_EXISTS = 1 << 6;
        /// The cursor has given its last row.
        const LAST_ROW_SENT = 1 << 7;
        /// The database was dropped.
        const DB_DROPPED = 1 << 8;
        /// The SQL mode NO_BACKSLASH_ESCAPES is on.
        const NO_BACKSLASH_ESCAPES = 1 << 9;
        /// Preparing again found other result columns.
        const METADATA_CHANGED = 1 << 10;
        /// The query was slower than `long_query_time`.
        const QUERY_WAS_SLOW = 1 << 11;
        /// The result holds output parameters.
        const PS_OUT_PARAMS = 1 << 12;
        /// The open transaction is read only.
        const IN_TRANS_READONLY = 1 << 13;
        /// Session state changes follow in this OK.
        const SESSION_STATE_CHANGED = 1 << 14;
    }
}

bitflags! {
    /// What a column definition tells of a column.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ColumnFlags: u16 {
        /// NOT NULL.
        const NOT_NULL = 1;
        /// Part of the primary key.
        const PRI_KEY = 1 << 1;
        /// Part of a unique key.
        const UNIQUE_KEY = 1 << 2;
        /// Part of a key that isn't unique.
        const MULTIPLE_KEY = 1 << 3;
        /// A blob or text.
        const BLOB = 1 << 4;
        /// UNSIGNED.
        const UNSIGNED = 1 << 5;
        /// ZEROFILL.
        const ZEROFILL = 1 << 6;
        /// Binary strings or a `_bin` collation.
        const BINARY = 1 << 7;
        /// An ENUM.
        const ENUM = 1 << 8;
        /// AUTO_INCREMENT.
        const AUTO_INCREMENT = 1 << 9;
        /// A TIMESTAMP.
        const TIMESTAMP = 1 << 10;
        /// A SET.
        const SET = 1 << 11;
        /// No default value.
        const NO_DEFAULT_VALUE = 1 << 12;
        /// Set to the current time by UPDATE.
        const ON_UPDATE_NOW = 1 << 13;
        /// Part of some key; clients call it GROUP too.
        const PART_KEY = 1 << 14;
        /// A number; clients call it NUM.
        const NUM = 1 << 15;
    }
}

bitflags! {
    /// How COM_STMT_EXECUTE wants its result.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CursorFlags: u8 {
        /// A cursor to fetch rows from.
        const READ_ONLY = 1;
        /// A cursor for `FOR UPDATE`; no server has it.
        const FOR_UPDATE = 2;
        /// A cursor that scrolls; no server has it.
        const SCROLLABLE = 4;
        /// The number of parameters is sent even if the statement has none.
        const PARAMETER_COUNT_AVAILABLE = 8;
    }
}
