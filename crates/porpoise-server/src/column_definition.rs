//! Column definitions: what a result set tells the client of each column.
//!
//! Source: MySQL's protocol documentation, "Column Definition" and "Column Definition Flags".

use std::borrow::Cow;

use porpoise_engine::reply::{ColumnKey, ResultColumn};
use porpoise_protocol::codes::{self, ColumnType};
use porpoise_protocol::column::{ColumnDefinition, DECIMALS_NOT_FIXED};
use porpoise_protocol::flags::ColumnFlags;
use porpoise_protocol::frame::PacketWriter;
use porpoise_types::{BlobSize, Charset, Collation, DataType, IntWidth};

/// The protocol's type of a column.
fn column_type(ty: &DataType) -> ColumnType {
    match ty {
        DataType::Null => ColumnType::Null,
        DataType::Int { width, .. } => match width {
            IntWidth::Tiny => ColumnType::Tiny,
            IntWidth::Small => ColumnType::Short,
            IntWidth::Medium => ColumnType::Int24,
            IntWidth::Int => ColumnType::Long,
            IntWidth::Big => ColumnType::LongLong,
        },
        DataType::Bit(_) => ColumnType::Bit,
        DataType::Decimal { .. } => ColumnType::NewDecimal,
        DataType::Float { .. } => ColumnType::Float,
        DataType::Double { .. } => ColumnType::Double,
        DataType::Char { .. } | DataType::Binary(_) | DataType::Enum(_) | DataType::Set(_) => {
            ColumnType::String
        }
        DataType::Varchar { .. } | DataType::Varbinary(_) => ColumnType::VarString,
        DataType::Text { .. } | DataType::Blob(_) => ColumnType::Blob,
        DataType::Date => ColumnType::Date,
        DataType::Time { .. } => ColumnType::Time,
        DataType::DateTime { .. } => ColumnType::DateTime,
        DataType::Timestamp { .. } => ColumnType::Timestamp,
        DataType::Year => ColumnType::Year,
        DataType::Json => ColumnType::Json,
    }
}

/// Writes a column's definition for a client that reads `charset`; returns its type and its digits
/// behind the point.
pub(crate) fn write_column_definition(
    column: &ResultColumn,
    charset: Charset,
    default: Option<&[u8]>,
    writer: &mut PacketWriter,
) -> (ColumnType, u8) {
    let mut definition = column_definition(column, charset);
    definition.default = default;
    let described = (definition.column_type, definition.decimals);
    let is_unchanged = is_text(charset) || (charset.extends_ascii() && is_ascii(&definition));
    if !is_unchanged {
        let [schema, table, org_table, called, org_name] = [
            &column.schema,
            &column.table,
            &column.original_table,
            &column.name,
            &column.original_name,
        ]
        .map(|name| encoded(name, charset));
        ColumnDefinition {
            schema: &schema,
            table: &table,
            org_table: &org_table,
            name: &called,
            org_name: &org_name,
            ..definition
        }
        .write(writer);
        return described;
    }
    definition.write(writer);
    described
}

/// Whether all names of a column are the same in every character set that extends ASCII.
fn is_ascii(definition: &ColumnDefinition<'_>) -> bool {
    [
        definition.schema,
        definition.table,
        definition.org_table,
        definition.name,
        definition.org_name,
    ]
    .iter()
    .all(|name| name.is_ascii())
}

/// Whether texts are in this character set as they are.
fn is_text(charset: Charset) -> bool {
    matches!(charset, Charset::Utf8mb4 | Charset::Binary)
}

/// A text in a client's character set; what it can't hold becomes `?`.
pub(crate) fn encoded(text: &str, charset: Charset) -> Cow<'_, [u8]> {
    if charset.extends_ascii() && text.is_ascii() || is_text(charset) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut encoded = Vec::with_capacity(text.len());
    charset.encode(text, &mut encoded);
    Cow::Owned(encoded)
}

fn column_definition(column: &ResultColumn, charset: Charset) -> ColumnDefinition<'_> {
    let ty = &column.ty;
    let text = ty.is_string() && !ty.is_binary_string();
    ColumnDefinition {
        schema: column.schema.as_bytes(),
        table: column.table.as_bytes(),
        org_table: column.original_table.as_bytes(),
        name: column.name.as_bytes(),
        org_name: column.original_name.as_bytes(),
        collation: if text {
            charset.default_collation().id()
        } else {
            codes::BINARY
        },
        length: u32::try_from(length_bytes(ty, charset)).unwrap_or(u32::MAX),
        column_type: column_type(ty),
        flags: column_flags(column),
        decimals: decimals(column),
        default: None,
    }
}

/// Digits behind the point. Of an expression that is a text or bytes nothing is known; a table's column
/// has none.
fn decimals(column: &ResultColumn) -> u8 {
    let is_computed = column.table.is_empty();
    match column.ty.is_string() && is_computed {
        true => DECIMALS_NOT_FIXED,
        false => column.ty.decimals(),
    }
}

/// The length of a column's widest value in bytes. A TEXT's length is bytes already.
fn length_bytes(ty: &DataType, charset: Charset) -> u64 {
    match ty {
        DataType::Text { size, .. } if *size != BlobSize::Long => {
            size.max_octets() * u64::from(charset.max_len())
        }
        _ => ty.max_octets(charset),
    }
}

/// Whether a collation is one of code points or bytes, whose names tell so (MySQL 8.4 manual, 12.3.1).
/// Drivers that go by the flag BINARY alone take texts of these for bytes.
fn compares_code_points(collation: Collation) -> bool {
    collation.is_binary() || collation.name().ends_with("_bin")
}

fn column_flags(column: &ResultColumn) -> ColumnFlags {
    let ty = &column.ty;
    let key = match column.key {
        ColumnKey::None => ColumnFlags::empty(),
        ColumnKey::Primary => ColumnFlags::PRI_KEY | ColumnFlags::PART_KEY,
        ColumnKey::Unique => ColumnFlags::UNIQUE_KEY | ColumnFlags::PART_KEY,
        ColumnKey::Multiple => ColumnFlags::MULTIPLE_KEY | ColumnFlags::PART_KEY,
    };
    let unsigned = ty.is_unsigned() && !matches!(ty, DataType::Enum(_) | DataType::Set(_));
    let binary = ty.is_binary_string()
        || ty.is_temporal()
        || matches!(ty, DataType::Json | DataType::Null)
        || (ty.is_string() && compares_code_points(ty.collation()))
        || (ty.is_numeric() && column.table.is_empty());
    let number = ty.is_numeric() && !matches!(ty, DataType::Bit(_));
    [
        (ColumnFlags::NOT_NULL, !column.nullable),
        (ColumnFlags::BLOB, ty.is_blob()),
        (ColumnFlags::UNSIGNED, unsigned),
        (
            ColumnFlags::ZEROFILL,
            ty.is_zerofill() || matches!(ty, DataType::Year),
        ),
        (ColumnFlags::BINARY, binary),
        (ColumnFlags::ENUM, matches!(ty, DataType::Enum(_))),
        (ColumnFlags::SET, matches!(ty, DataType::Set(_))),
        (ColumnFlags::AUTO_INCREMENT, column.auto_increment),
        (
            ColumnFlags::TIMESTAMP,
            matches!(ty, DataType::Timestamp { .. }) && column.on_update_now,
        ),
        (ColumnFlags::ON_UPDATE_NOW, column.on_update_now),
        (ColumnFlags::NO_DEFAULT_VALUE, column.no_default),
        (ColumnFlags::NUM, number),
    ]
    .into_iter()
    .filter(|(_, is_set)| *is_set)
    .fold(key, |flags, (flag, _)| flags | flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_computed_have_no_fixed_number_of_digits() {
        let mut column = ResultColumn::expression("c", DataType::varchar(5), true);
        let described =
            |column: &ResultColumn| column_definition(column, Charset::Utf8mb4).decimals;
        assert_eq!(described(&column), DECIMALS_NOT_FIXED);
        column.table = "t".into();
        assert_eq!(described(&column), 0);
    }

    #[test]
    fn texts_of_code_points_are_flagged_as_binary() {
        for (name, expected) in [
            ("binary", true),
            ("latin1_bin", true),
            ("utf8mb4_bin", true),
            ("utf8mb4_0900_bin", true),
            ("utf8mb4_0900_as_cs", false),
            ("latin1_general_cs", false),
        ] {
            let collation = Collation::by_name(name).unwrap();
            let ty = DataType::Varchar {
                length: 5,
                collation,
            };
            let column = ResultColumn::expression("c", ty, true);
            let flags = column_flags(&column);
            assert_eq!(flags.contains(ColumnFlags::BINARY), expected, "{name}");
        }
    }
}
