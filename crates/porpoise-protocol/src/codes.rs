//! The one-byte codes of the protocol: commands and column types, and the collations named by
//! number.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $code:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$item_doc])* $item = $code,)*
        }

        impl $name {
            /// Every code, in order.
            pub const ALL: &'static [$name] = &[$($name::$item,)*];

            /// The code a byte stands for.
            #[inline]
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($code => Some($name::$item),)*
                    _ => None,
                }
            }

            /// What MySQL's own tables and logs call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$item => $text,)*
                }
            }
        }
    };
}

codes! {
    /// The first byte of a client's packet, once it is connected. Names are those of `SHOW
    /// PROCESSLIST`.
    CommandCode {
        /// Refused from clients.
        Sleep = 0x00 "Sleep",
        /// The client leaves.
        Quit = 0x01 "Quit",
        /// `USE`.
        InitDb = 0x02 "Init DB",
        /// A statement as text.
        Query = 0x03 "Query",
        /// The columns of a table; deprecated.
        FieldList = 0x04 "Field List",
        /// Refused since 4.0.
        CreateDb = 0x05 "Create DB",
        /// Refused since 4.0.
        DropDb = 0x06 "Drop DB",
        /// `FLUSH`; gone in 8.4.
        Refresh = 0x07 "Refresh",
        /// `SHUTDOWN`; gone in 8.0.
        Shutdown = 0x08 "Shutdown",
        /// A line of figures as a bare string.
        Statistics = 0x09 "Statistics",
        /// `SHOW PROCESSLIST`; gone in 8.4.
        ProcessInfo = 0x0A "Processlist",
        /// Refused from clients.
        Connect = 0x0B "Connect",
        /// `KILL`; gone in 8.4, and still sent by clients.
        ProcessKill = 0x0C "Kill",
        /// Write debug facts to the log.
        Debug = 0x0D "Debug",
        /// Are you there?
        Ping = 0x0E "Ping",
        /// Refused from clients.
        Time = 0x0F "Time",
        /// Refused from clients.
        DelayedInsert = 0x10 "Delayed insert",
        /// Log in again on the same connection.
        ChangeUser = 0x11 "Change user",
        /// Replication.
        BinlogDump = 0x12 "Binlog Dump",
        /// Replication.
        TableDump = 0x13 "Table Dump",
        /// Replication.
        ConnectOut = 0x14 "Connect Out",
        /// Replication.
        RegisterReplica = 0x15 "Register Replica",
        /// Prepare a statement.
        StmtPrepare = 0x16 "Prepare",
        /// Execute a prepared statement.
        StmtExecute = 0x17 "Execute",
        /// A piece of one parameter; no reply.
        StmtSendLongData = 0x18 "Long Data",
        /// Forget a prepared statement; no reply.
        StmtClose = 0x19 "Close stmt",
        /// Close its cursor and forget its long data.
        StmtReset = 0x1A "Reset stmt",
        /// Several statements a query, on or off.
        SetOption = 0x1B "Set option",
        /// Rows from a cursor.
        StmtFetch = 0x1C "Fetch",
        /// Refused from clients.
        Daemon = 0x1D "Daemon",
        /// Replication.
        BinlogDumpGtid = 0x1E "Binlog Dump GTID",
        /// A session as new, without logging in again.
        ResetConnection = 0x1F "Reset Connection",
        /// The clone plugin.
        Clone = 0x20 "Clone",
        /// Replication.
        SubscribeGroupReplicationStream = 0x21 "Group Replication Data Stream subscription",
    }
}

codes! {
    /// The type of a column or a parameter.
    ColumnType {
        /// DECIMAL before 5.0.
        OldDecimal = 0x00 "DECIMAL",
        /// TINYINT, one byte in binary rows.
        Tiny = 0x01 "TINYINT",
        /// SMALLINT, two bytes.
        Short = 0x02 "SMALLINT",
        /// INT, four bytes.
        Long = 0x03 "INT",
        /// FLOAT, four bytes.
        Float = 0x04 "FLOAT",
        /// DOUBLE, eight bytes.
        Double = 0x05 "DOUBLE",
        /// NULL, no bytes.
        Null = 0x06 "NULL",
        /// TIMESTAMP, as DATETIME.
        Timestamp = 0x07 "TIMESTAMP",
        /// BIGINT, eight bytes.
        LongLong = 0x08 "BIGINT",
        /// MEDIUMINT, four bytes.
        Int24 = 0x09 "MEDIUMINT",
        /// DATE.
        Date = 0x0A "DATE",
        /// TIME.
        Time = 0x0B "TIME",
        /// DATETIME.
        DateTime = 0x0C "DATETIME",
        /// YEAR, two bytes.
        Year = 0x0D "YEAR",
        /// DATE in storage; never sent.
        NewDate = 0x0E "NEWDATE",
        /// VARCHAR in storage; clients send it for strings.
        VarChar = 0x0F "VARCHAR",
        /// BIT, as a string of bytes.
        Bit = 0x10 "BIT",
        /// TIMESTAMP in storage.
        Timestamp2 = 0x11 "TIMESTAMP2",
        /// DATETIME in storage.
        DateTime2 = 0x12 "DATETIME2",
        /// TIME in storage.
        Time2 = 0x13 "TIME2",
        /// Arrays of a multi-valued index; never sent.
        TypedArray = 0x14 "TYPED_ARRAY",
        /// VECTOR, as a string of bytes.
        Vector = 0xF2 "VECTOR",
        /// No type.
        Invalid = 0xF3 "INVALID",
        /// Reserved for BOOL.
        Bool = 0xF4 "BOOL",
        /// JSON, as text.
        Json = 0xF5 "JSON",
        /// DECIMAL, as text.
        NewDecimal = 0xF6 "DECIMAL",
        /// ENUM in storage; sent as String with the ENUM flag.
        Enum = 0xF7 "ENUM",
        /// SET in storage; sent as String with the SET flag.
        Set = 0xF8 "SET",
        /// TINYBLOB, TINYTEXT.
        TinyBlob = 0xF9 "TINYBLOB",
        /// MEDIUMBLOB, MEDIUMTEXT.
        MediumBlob = 0xFA "MEDIUMBLOB",
        /// LONGBLOB, LONGTEXT.
        LongBlob = 0xFB "LONGBLOB",
        /// BLOB, TEXT.
        Blob = 0xFC "BLOB",
        /// VARCHAR, VARBINARY.
        VarString = 0xFD "VARCHAR",
        /// CHAR, BINARY, ENUM, SET.
        String = 0xFE "CHAR",
        /// Geometry, as a string of bytes.
        Geometry = 0xFF "GEOMETRY",
    }
}

/// A collation by its number, as handshakes and column definitions name it. The numbers that the
/// protocol itself needs have names; the full table of collations is the catalog's.
pub type CollationId = u16;

/// `latin1_swedish_ci`.
pub const LATIN1_SWEDISH_CI: CollationId = 8;
/// `ascii_general_ci`.
pub const ASCII_GENERAL_CI: CollationId = 11;
/// `utf8mb3_general_ci`.
pub const UTF8MB3_GENERAL_CI: CollationId = 33;
/// `utf8mb4_general_ci`.
pub const UTF8MB4_GENERAL_CI: CollationId = 45;
/// `utf8mb4_bin`.
pub const UTF8MB4_BIN: CollationId = 46;
/// `latin1_bin`.
pub const LATIN1_BIN: CollationId = 47;
/// `binary`: bytes, numbers and times.
pub const BINARY: CollationId = 63;
/// `utf8mb3_bin`.
pub const UTF8MB3_BIN: CollationId = 83;
/// `utf8mb4_unicode_ci`.
pub const UTF8MB4_UNICODE_CI: CollationId = 224;
/// `utf8mb4_unicode_520_ci`.
pub const UTF8MB4_UNICODE_520_CI: CollationId = 246;
/// `utf8mb4_0900_ai_ci`, the default of MySQL 8.4.
pub const UTF8MB4_0900_AI_CI: CollationId = 255;
/// `utf8mb4_0900_as_cs`.
pub const UTF8MB4_0900_AS_CS: CollationId = 278;
/// `utf8mb4_0900_bin`.
pub const UTF8MB4_0900_BIN: CollationId = 309;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_byte() {
        for &code in CommandCode::ALL {
            assert_eq!(CommandCode::from_byte(code as u8), Some(code));
        }
        for &code in ColumnType::ALL {
            assert_eq!(ColumnType::from_byte(code as u8), Some(code));
        }
        assert_eq!(CommandCode::from_byte(0x7F), None);
        assert_eq!(ColumnType::from_byte(0x80), None);
    }
}
