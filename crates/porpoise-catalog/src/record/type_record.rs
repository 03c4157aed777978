//! Types of columns as the dictionary keeps them.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_types::{BlobSize, Collation, DataType, EnumDef, IntWidth};
use serde::{Deserialize, Serialize};

/// A column's type as written down; field names are short because every column has one.
#[derive(Serialize, Deserialize)]
pub(super) enum TypeRecord {
    Int {
        bits: u32,
        unsigned: bool,
        zerofill: bool,
        width: Option<u8>,
    },
    Bit(u8),
    Decimal {
        precision: u8,
        scale: u8,
        unsigned: bool,
        zerofill: bool,
    },
    Float {
        double: bool,
        unsigned: bool,
        zerofill: bool,
        digits: Option<(u8, u8)>,
    },
    Char(u32, u16),
    Varchar(u32, u16),
    Text(u8, u16),
    Binary(u32),
    Varbinary(u32),
    Blob(u8),
    Date,
    Time(u8),
    DateTime(u8),
    Timestamp(u8),
    Year,
    Enum(Vec<CompactString>, u16),
    Set(Vec<CompactString>, u16),
    Json,
    Null,
}

const INT_WIDTHS: [IntWidth; 5] = [
    IntWidth::Tiny,
    IntWidth::Small,
    IntWidth::Medium,
    IntWidth::Int,
    IntWidth::Big,
];
const BLOB_SIZES: [BlobSize; 4] = [
    BlobSize::Tiny,
    BlobSize::Normal,
    BlobSize::Medium,
    BlobSize::Long,
];

impl TypeRecord {
    pub(super) fn serialize<S: serde::Serializer>(
        ty: &DataType,
        to: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        TypeRecord::of(ty).serialize_record(to)
    }

    fn serialize_record<S: serde::Serializer>(
        &self,
        to: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        Serialize::serialize(self, to)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        from: D,
    ) -> std::result::Result<DataType, D::Error> {
        let record = <TypeRecord as Deserialize>::deserialize(from)?;
        record.data_type().ok_or_else(|| {
            serde::de::Error::custom("a type or collation this version doesn't know")
        })
    }

    fn of(ty: &DataType) -> TypeRecord {
        match ty {
            DataType::Null => TypeRecord::Null,
            DataType::Int {
                width,
                unsigned,
                zerofill,
                display_width,
            } => TypeRecord::Int {
                bits: width.bits(),
                unsigned: *unsigned,
                zerofill: *zerofill,
                width: *display_width,
            },
            DataType::Bit(bits) => TypeRecord::Bit(*bits),
            DataType::Decimal {
                precision,
                scale,
                unsigned,
                zerofill,
            } => TypeRecord::Decimal {
                precision: *precision,
                scale: *scale,
                unsigned: *unsigned,
                zerofill: *zerofill,
            },
            DataType::Float {
                unsigned,
                zerofill,
                digits,
            } => TypeRecord::Float {
                double: false,
                unsigned: *unsigned,
                zerofill: *zerofill,
                digits: *digits,
            },
            DataType::Double {
                unsigned,
                zerofill,
                digits,
            } => TypeRecord::Float {
                double: true,
                unsigned: *unsigned,
                zerofill: *zerofill,
                digits: *digits,
            },
            DataType::Char { length, collation } => TypeRecord::Char(*length, collation.id()),
            DataType::Varchar { length, collation } => TypeRecord::Varchar(*length, collation.id()),
            DataType::Text { size, collation } => TypeRecord::Text(*size as u8, collation.id()),
            DataType::Binary(length) => TypeRecord::Binary(*length),
            DataType::Varbinary(length) => TypeRecord::Varbinary(*length),
            DataType::Blob(size) => TypeRecord::Blob(*size as u8),
            DataType::Date => TypeRecord::Date,
            DataType::Time { fsp } => TypeRecord::Time(*fsp),
            DataType::DateTime { fsp } => TypeRecord::DateTime(*fsp),
            DataType::Timestamp { fsp } => TypeRecord::Timestamp(*fsp),
            DataType::Year => TypeRecord::Year,
            DataType::Enum(def) => TypeRecord::Enum(def.members.clone(), def.collation.id()),
            DataType::Set(def) => TypeRecord::Set(def.members.clone(), def.collation.id()),
            DataType::Json => TypeRecord::Json,
        }
    }

    fn data_type(self) -> Option<DataType> {
        let members = |members, collation| {
            Some(Arc::new(EnumDef {
                members,
                collation: Collation::by_id(collation)?,
            }))
        };
        Some(match self {
            TypeRecord::Null => DataType::Null,
            TypeRecord::Int {
                bits,
                unsigned,
                zerofill,
                width,
            } => DataType::Int {
                width: INT_WIDTHS.into_iter().find(|w| w.bits() == bits)?,
                unsigned,
                zerofill,
                display_width: width,
            },
            TypeRecord::Bit(bits) => DataType::Bit(bits),
            TypeRecord::Decimal {
                precision,
                scale,
                unsigned,
                zerofill,
            } => DataType::Decimal {
                precision,
                scale,
                unsigned,
                zerofill,
            },
            TypeRecord::Float {
                double: false,
                unsigned,
                zerofill,
                digits,
            } => DataType::Float {
                unsigned,
                zerofill,
                digits,
            },
            TypeRecord::Float {
                double: true,
                unsigned,
                zerofill,
                digits,
            } => DataType::Double {
                unsigned,
                zerofill,
                digits,
            },
            TypeRecord::Char(length, collation) => DataType::Char {
                length,
                collation: Collation::by_id(collation)?,
            },
            TypeRecord::Varchar(length, collation) => DataType::Varchar {
                length,
                collation: Collation::by_id(collation)?,
            },
            TypeRecord::Text(size, collation) => DataType::Text {
                size: *BLOB_SIZES.get(size as usize)?,
                collation: Collation::by_id(collation)?,
            },
            TypeRecord::Binary(length) => DataType::Binary(length),
            TypeRecord::Varbinary(length) => DataType::Varbinary(length),
            TypeRecord::Blob(size) => DataType::Blob(*BLOB_SIZES.get(size as usize)?),
            TypeRecord::Date => DataType::Date,
            TypeRecord::Time(fsp) => DataType::Time { fsp },
            TypeRecord::DateTime(fsp) => DataType::DateTime { fsp },
            TypeRecord::Timestamp(fsp) => DataType::Timestamp { fsp },
            TypeRecord::Year => DataType::Year,
            TypeRecord::Enum(m, collation) => DataType::Enum(members(m, collation)?),
            TypeRecord::Set(m, collation) => DataType::Set(members(m, collation)?),
            TypeRecord::Json => DataType::Json,
        })
    }
}
