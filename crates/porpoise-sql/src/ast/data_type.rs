//! Data types as they are written.

use super::name::Ident;

/// The type of a column, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// `TINYINT` … `BIGINT`; `BOOL` is `TINYINT(1)`.
    Integer {
        /// Its size.
        kind: IntegerKind,
        /// The display width, when written.
        width: Option<u32>,
        /// `UNSIGNED`, and implied by `ZEROFILL`.
        unsigned: bool,
        /// `ZEROFILL`.
        zerofill: bool,
    },
    /// `BIT[(width)]`
    Bit(Option<u32>),
    /// `DECIMAL`, `NUMERIC`, `DEC`, `FIXED` `[(precision[, scale])]`
    Decimal {
        /// 10 when not written.
        precision: Option<u32>,
        /// 0 when not written.
        scale: Option<u32>,
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`.
        zerofill: bool,
    },
    /// `FLOAT[(bits)]`, `FLOAT(digits, scale)`, `DOUBLE[(digits, scale)]`, `REAL`. `FLOAT(25)` and
    /// above are double.
    Float {
        /// Eight bytes; else four.
        double: bool,
        /// `(digits, scale)`.
        digits: Option<(u32, u32)>,
        /// `UNSIGNED`.
        unsigned: bool,
        /// `ZEROFILL`.
        zerofill: bool,
    },
    /// `DATE`
    Date,
    /// `TIME[(fraction digits)]`
    Time(Option<u32>),
    /// `DATETIME[(fraction digits)]`
    DateTime(Option<u32>),
    /// `TIMESTAMP[(fraction digits)]`
    Timestamp(Option<u32>),
    /// `YEAR`
    Year,
    /// `CHAR[(length)]`, in characters.
    Char {
        /// 1 when not written.
        length: Option<u32>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `VARCHAR(length)`, in characters.
    VarChar {
        /// In characters.
        length: u32,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `TINYTEXT` … `LONGTEXT`, `TEXT[(length)]`
    Text {
        /// Its size.
        size: LobSize,
        /// `TEXT(length)`: the smallest size that holds it is taken.
        length: Option<u32>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `BINARY[(length)]`, in bytes.
    Binary(Option<u32>),
    /// `VARBINARY(length)`, in bytes.
    VarBinary(u32),
    /// `TINYBLOB` … `LONGBLOB`, `BLOB[(length)]`
    Blob {
        /// Its size.
        size: LobSize,
        /// `BLOB(length)`: the smallest size that holds it is taken.
        length: Option<u32>,
    },
    /// `ENUM('a', 'b')`
    Enum {
        /// In order.
        members: Vec<Box<[u8]>>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `SET('a', 'b')`
    Set {
        /// In order.
        members: Vec<Box<[u8]>>,
        /// The character set.
        charset: CharsetSpec,
    },
    /// `JSON`
    Json,
    /// `GEOMETRY`, `POINT`…
    Geometry(GeometryKind),
}

/// Sizes of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntegerKind {
    /// `TINYINT`: 1 byte.
    TinyInt,
    /// `SMALLINT`: 2 bytes.
    SmallInt,
    /// `MEDIUMINT`: 3 bytes.
    MediumInt,
    /// `INT`: 4 bytes.
    Int,
    /// `BIGINT`: 8 bytes.
    BigInt,
}

/// Sizes of TEXT and BLOB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LobSize {
    /// Up to 255 bytes.
    Tiny,
    /// Up to 65,535 bytes.
    Normal,
    /// Up to 16 MiB - 1.
    Medium,
    /// Up to 4 GiB - 1.
    Long,
}

/// Kinds of geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GeometryKind {
    /// `GEOMETRY`.
    Geometry,
    /// `POINT`.
    Point,
    /// `LINESTRING`.
    LineString,
    /// `POLYGON`.
    Polygon,
    /// `MULTIPOINT`.
    MultiPoint,
    /// `MULTILINESTRING`.
    MultiLineString,
    /// `MULTIPOLYGON`.
    MultiPolygon,
    /// `GEOMETRYCOLLECTION`.
    GeometryCollection,
}

/// A text type's character set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CharsetSpec {
    /// `CHARACTER SET name`; `ascii` for `ASCII`, `ucs2` for `UNICODE`, `utf8mb3` for `NATIONAL`,
    /// `binary` for `BYTE`.
    pub charset: Option<Ident>,
    /// `BINARY`: the character set's `_bin` collation.
    pub binary: bool,
}
