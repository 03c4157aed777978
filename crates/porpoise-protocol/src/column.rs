//! Column definitions: what a result set says of a column before its rows come.

use crate::Error;
use crate::codes::{CollationId, ColumnType};
use crate::flags::{Capabilities, ColumnFlags};
use crate::frame::PacketWriter;
use crate::value::ValueType;
use crate::wire::{Fields, PutFields};

/// `decimals` of a FLOAT, DOUBLE or string that has no fixed number of them.
pub const DECIMALS_NOT_FIXED: u8 = 0x1F;

/// The length of the fields of fixed length together.
const FIXED_BYTES: u64 = 0x0C;

/// One column of a result, or one parameter of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// The database; empty for an expression.
    pub schema: &'a [u8],
    /// The table's alias in the statement.
    pub table: &'a [u8],
    /// The table.
    pub org_table: &'a [u8],
    /// The column's alias in the statement.
    pub name: &'a [u8],
    /// The column; empty for an expression.
    pub org_name: &'a [u8],
    /// The collation of a string; [`crate::codes::BINARY`] for everything else.
    pub collation: CollationId,
    /// The longest value, in bytes of its character set, as it would be displayed.
    pub length: u32,
    /// The type.
    pub column_type: ColumnType,
    /// The flags.
    pub flags: ColumnFlags,
    /// Digits behind the point, 0 to 30; fractional digits of a time; [`DECIMALS_NOT_FIXED`].
    pub decimals: u8,
    /// The column's default value, in the reply to COM_FIELD_LIST only.
    pub default: Option<&'a [u8]>,
}

impl Default for ColumnDefinition<'_> {
    /// A parameter, as MySQL describes it before its type is known.
    fn default() -> Self {
        Self {
            schema: b"",
            table: b"",
            org_table: b"",
            name: b"?",
            org_name: b"",
            collation: crate::codes::BINARY,
            length: 0,
            column_type: ColumnType::VarString,
            flags: ColumnFlags::BINARY,
            decimals: 0,
            default: None,
        }
    }
}

impl<'a> ColumnDefinition<'a> {
    /// Writes it.
    pub fn write(&self, writer: &mut PacketWriter) {
        writer.packet(|out| {
            for text in [
                b"def",
                self.schema,
                self.table,
                self.org_table,
                self.name,
                self.org_name,
            ] {
                out.put_lenenc_bytes(text);
            }
            out.put_lenenc(FIXED_BYTES);
            out.put_u16(self.collation);
            out.put_u32(self.length);
            out.push(self.column_type as u8);
            out.put_u16(self.flags.bits());
            out.push(self.decimals);
            out.put_u16(0);
            if let Some(default) = self.default {
                out.put_lenenc_bytes(default);
            }
        });
    }

    /// Reads it.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(payload);
        let _catalog = fields.lenenc_bytes()?;
        let schema = fields.lenenc_bytes()?;
        let table = fields.lenenc_bytes()?;
        let org_table = fields.lenenc_bytes()?;
        let name = fields.lenenc_bytes()?;
        let org_name = fields.lenenc_bytes()?;
        let mut fixed = Fields::new(fields.lenenc_bytes()?);
        Ok(Self {
            schema,
            table,
            org_table,
            name,
            org_name,
            collation: fixed.u16()?,
            length: fixed.u32()?,
            column_type: ColumnType::from_byte(fixed.u8()?)
                .ok_or(Error::Malformed("a column of an unknown type"))?,
            flags: ColumnFlags::from_bits_retain(fixed.u16()?),
            decimals: fixed.u8()?,
            default: fields.nullable_bytes().ok().flatten(),
        })
    }

    /// What reading a binary value of it needs.
    pub fn value_type(&self) -> ValueType {
        ValueType {
            column_type: self.column_type,
            unsigned: self.flags.contains(ColumnFlags::UNSIGNED),
        }
    }
}

/// Begins a result set: the number of columns. The definitions come next, then EOF without
/// DEPRECATE_EOF, then rows.
pub fn write_column_count(writer: &mut PacketWriter, columns: usize) {
    writer.packet(|out| out.put_lenenc(columns as u64));
}

/// Whether an EOF stands between definitions and rows.
pub fn has_eof_after_definitions(capabilities: Capabilities) -> bool {
    !capabilities.contains(Capabilities::DEPRECATE_EOF)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SELECT @@version_comment LIMIT 1` in the protocol documentation.
    #[test]
    fn the_documented_example_is_read_and_written() {
        let mut payload = b"\x03def\x00\x00\x00\x11@@version_comment\x00\x0c\x08\x00".to_vec();
        payload.extend_from_slice(&[0x1C, 0, 0, 0, 0xFD, 0, 0, 0x1F, 0, 0]);
        let column = ColumnDefinition::parse(&payload).unwrap();
        assert_eq!(column.name, b"@@version_comment");
        assert_eq!(column.collation, crate::codes::LATIN1_SWEDISH_CI);
        assert_eq!(column.column_type, ColumnType::VarString);
        assert_eq!((column.length, column.decimals), (28, DECIMALS_NOT_FIXED));
        let mut writer = PacketWriter::new();
        column.write(&mut writer);
        assert_eq!(&writer.bytes()[4..], payload);
    }
}
