//! New rows out of stored ones, without decoding what stays as it is.

use std::ops::Range;

use super::{Extension, RowLayout, Slot, read_u32, write_fixed, write_variable};
use crate::Value;

impl RowLayout {
    /// Gives one column of a row another value. The other columns keep their bytes: the row is then
    /// what [`RowLayout::encode`] makes of all its values, but that it gets no [`Extension`]s that
    /// it can do without.
    ///
    /// The value must be of the column's type, as for `encode`. Columns of a corrupt row that can't
    /// be read become NULL.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn set(&self, row: &mut Vec<u8>, column: usize, value: &Value) {
        let null = match self.slots[column] {
            Slot::Fixed { at, width, null } => self
                .set_fixed(row, column, at..at + u32::from(width), value)
                .then_some(null),
            Slot::Variable { n, null } => self
                .set_variable(row, column, n as usize, value)
                .then_some(null),
            Slot::Added { extension, n } => {
                if self.set_added(row, extension as usize, n as usize, value) {
                    return;
                }
                None
            }
        };
        let Some(null) = null else {
            let mut values = Vec::with_capacity(self.columns);
            self.decode(row, &mut values);
            values[column] = value.clone();
            row.clear();
            self.encode(&values, row);
            return;
        };
        let (byte, bit) = (&mut row[null as usize / 8], 1 << (null % 8));
        match value.is_null() {
            true => *byte |= bit,
            false => *byte &= !bit,
        }
    }

    /// `false` if the row is corrupt.
    fn set_added(&self, row: &mut Vec<u8>, extension: usize, n: usize, value: &Value) -> bool {
        let Some((at, has_it)) = self.extension_at(row, extension) else {
            return false;
        };
        let Extension {
            layout, missing, ..
        } = &self.extensions[extension];
        if has_it {
            // What lies behind moves with it.
            let mut rest = row.split_off(at);
            layout.set(&mut rest, n, value);
            row.extend_from_slice(&rest);
            return true;
        }
        let mut written = missing.clone();
        layout.set(&mut written, n, value);
        if written == *missing {
            return true;
        }
        for before in 0..extension {
            if let Some((_, false)) = self.extension_at(row, before) {
                row.extend_from_slice(&self.extensions[before].missing);
            }
        }
        row.extend_from_slice(&written);
        true
    }

    /// `false` if the row is too short to have the column.
    fn set_fixed(&self, row: &mut [u8], column: usize, place: Range<u32>, value: &Value) -> bool {
        let Some(stored) = row.get_mut(place.start as usize..place.end as usize) else {
            return false;
        };
        match value.is_null() {
            true => stored.fill(0),
            false => write_fixed(value, &self.types[column], stored),
        }
        true
    }

    /// Replaces the bytes of the `n`-th variable column, and moves those behind it. `false` if the
    /// row's ends don't say where they are.
    fn set_variable(&self, row: &mut Vec<u8>, column: usize, n: usize, value: &Value) -> bool {
        let Some(old) = self.variable_place(row, n) else {
            return false;
        };
        let mut written = Vec::new();
        let new = match value {
            Value::Null => &[],
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(bytes) => bytes,
            _ => {
                write_variable(value, &self.types[column], &mut written);
                written.as_slice()
            }
        };
        if new.len() != old.len() {
            resize_place(row, &old, new.len());
            let ends = &mut row[self.ends_at as usize + 4 * n..self.data_at as usize];
            for end in ends.as_chunks_mut::<4>().0 {
                // In a corrupt row any number may be here.
                let moved = u32::from_le_bytes(*end)
                    .wrapping_sub(old.len() as u32)
                    .wrapping_add(new.len() as u32);
                *end = moved.to_le_bytes();
            }
        }
        row[old.start..old.start + new.len()].copy_from_slice(new);
        true
    }

    /// Where the bytes of the `n`-th variable column lie in the row.
    fn variable_place(&self, row: &[u8], n: usize) -> Option<Range<usize>> {
        let end_at = self.ends_at as usize + 4 * n;
        let begin = match n {
            0 => 0,
            _ => read_u32(row, end_at - 4)?,
        };
        let end = read_u32(row, end_at)?;
        let data_at = self.data_at as usize;
        let place = data_at + begin as usize..data_at + end as usize;
        (begin <= end && place.end <= row.len()).then_some(place)
    }

    /// Appends a row of this layout to `out` whose values are columns of another layout's row, in
    /// the order of `columns`. Both layouts must have them with the same types.
    pub fn encode_columns(
        &self,
        from: &RowLayout,
        row: &[u8],
        columns: &[usize],
        out: &mut Vec<u8>,
    ) {
        debug_assert!(columns.len() == self.columns);
        let stored = |to: usize| {
            let column = *columns.get(to)?;
            debug_assert!(from.types[column] == self.types[to]);
            from.raw(row, column)
        };
        self.copy_first(stored, out);
        for extension in &self.extensions {
            let stored = |n: usize| stored(extension.columns[n]);
            extension.layout.copy_first(stored, out);
        }
    }

    /// Appends the columns that are in no extension, of stored bytes.
    fn copy_first<'a>(&self, stored: impl Fn(usize) -> Option<&'a [u8]>, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.data_at as usize, 0);
        for column in self.order.iter().map(|&column| usize::from(column)) {
            let (is_null, stored) = match stored(column) {
                Some(stored) => (false, stored),
                None => (true, &[][..]),
            };
            let null = match self.slots[column] {
                Slot::Fixed { at, null, .. } => {
                    let at = start + at as usize;
                    out[at..at + stored.len()].copy_from_slice(stored);
                    null
                }
                Slot::Variable { n, null } => {
                    out.extend_from_slice(stored);
                    let end = (out.len() - start - self.data_at as usize) as u32;
                    let at = start + self.ends_at as usize + 4 * n as usize;
                    out[at..at + 4].copy_from_slice(&end.to_le_bytes());
                    null
                }
                Slot::Added { .. } => continue,
            };
            if is_null {
                out[start + null as usize / 8] |= 1 << (null % 8);
            }
        }
    }
}

/// Makes a place in the row longer or shorter; what lies behind it moves.
fn resize_place(row: &mut Vec<u8>, place: &Range<usize>, len: usize) {
    let old_len = row.len();
    let tail_to = place.start + len;
    let new_len = tail_to + (old_len - place.end);
    if new_len > old_len {
        row.resize(new_len, 0);
    }
    row.copy_within(place.end..old_len, tail_to);
    row.truncate(new_len);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data_type::EnumDef;
    use crate::{
        BlobSize, Collation, DataType, Date, DateTime, Decimal, IntWidth, Json, Time, TimeZone,
    };
    use proptest::prelude::*;
    use proptest::sample::Index;

    const C: Collation = Collation::UTF8MB4_0900_AI_CI;

    fn int(width: IntWidth, unsigned: bool) -> DataType {
        DataType::Int {
            width,
            unsigned,
            zerofill: false,
            display_width: None,
        }
    }

    fn every_type() -> Vec<DataType> {
        let members = ["a", "b", "c"].map(Into::into).to_vec();
        let members = Arc::new(EnumDef {
            members,
            collation: C,
        });
        vec![
            DataType::Varchar {
                length: 40,
                collation: C,
            },
            DataType::Null,
            int(IntWidth::Tiny, false),
            int(IntWidth::Small, true),
            int(IntWidth::Medium, false),
            DataType::Json,
            int(IntWidth::Int, true),
            int(IntWidth::Big, false),
            DataType::Bit(5),
            DataType::decimal(5, 2),
            DataType::Blob(BlobSize::Normal),
            DataType::decimal(18, 0),
            DataType::decimal(30, 10),
            DataType::decimal(65, 30),
            DataType::Float {
                unsigned: false,
                zerofill: false,
                digits: None,
            },
            DataType::DOUBLE,
            DataType::Binary(3),
            DataType::Varbinary(40),
            DataType::Date,
            DataType::Time { fsp: 6 },
            DataType::DateTime { fsp: 6 },
            DataType::Timestamp { fsp: 3 },
            DataType::Year,
            DataType::Enum(Arc::clone(&members)),
            DataType::Set(members),
            DataType::Char {
                length: 40,
                collation: C,
            },
            DataType::Text {
                size: BlobSize::Normal,
                collation: C,
            },
        ]
    }

    /// A value of the type, or NULL.
    fn value_of(ty: &DataType, number: i64, text: &str) -> Value {
        let unsigned = number.unsigned_abs();
        match ty {
            _ if number % 4 == 0 => Value::Null,
            DataType::Null => Value::Null,
            DataType::Int {
                width, unsigned, ..
            } => {
                let shift = 64 - width.bits();
                match unsigned {
                    true => Value::UInt(number as u64 >> shift),
                    false => Value::Int(number >> shift),
                }
            }
            DataType::Bit(bits) => Value::UInt(unsigned % (1 << bits)),
            DataType::Set(_) => Value::UInt(unsigned % 8),
            DataType::Enum(_) => Value::UInt(unsigned % 4),
            DataType::Year => Value::UInt(1901 + unsigned % 255),
            DataType::Decimal { precision: 5, .. } => {
                Value::Decimal(Decimal::new(number % 100_000, 2))
            }
            DataType::Decimal { scale: 0, .. } => {
                Value::Decimal(Decimal::new(number % 1_000_000_000_000_000_000, 0))
            }
            DataType::Decimal { scale, .. } => Value::Decimal(Decimal::from_i128(
                i128::from(number) * 1_000_000_007,
                *scale,
            )),
            DataType::Float { .. } => Value::Double(f64::from(number as f32 / 3.0)),
            DataType::Double { .. } => Value::Double(number as f64 / 3.0),
            DataType::Date => Value::Date(Date::new(2000, 1 + unsigned as u32 % 12, 28).unwrap()),
            DataType::Time { .. } => Value::Time(Time::from_micros_clamped(number)),
            DataType::DateTime { .. } | DataType::Timestamp { .. } => {
                Value::DateTime(DateTime::new(Date::MAX, 1, unsigned as u32 % 60, 3, 5000).unwrap())
            }
            DataType::Binary(_) => Value::Bytes(number.to_le_bytes()[..3].to_vec()),
            DataType::Varbinary(_) | DataType::Blob(_) => Value::Bytes(text.as_bytes().to_vec()),
            DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => {
                Value::text(text)
            }
            DataType::Json => {
                Value::Json(Json::parse(&format!("[{number}, {{\"a\": 1}}]")).unwrap())
            }
        }
    }

    type Seeds = Vec<(i64, String)>;

    fn seeds() -> impl Strategy<Value = Seeds> {
        let text = prop_oneof![Just(String::new()), "\\PC{1,40}"];
        let count = every_type().len();
        proptest::collection::vec((any::<i64>(), text), count)
    }

    fn values(types: &[DataType], seeds: &Seeds) -> Vec<Value> {
        let seeds = types.iter().zip(seeds);
        seeds
            .map(|(ty, (number, text))| value_of(ty, *number, text))
            .collect()
    }

    fn encoded(layout: &RowLayout, values: &[Value]) -> Vec<u8> {
        let mut row = Vec::new();
        layout.encode(values, &mut row);
        row
    }

    #[test]
    fn a_value_that_replaces_null_and_back_leaves_the_row_as_it_was() {
        let layout = RowLayout::new(&[DataType::varchar(9), DataType::INT, DataType::varchar(9)]);
        let before = encoded(&layout, &[Value::Null, Value::Null, Value::text("end")]);
        let mut row = before.clone();
        layout.set(&mut row, 0, &Value::text("begin"));
        layout.set(&mut row, 1, &Value::Int(-1));
        let after = [Value::text("begin"), Value::Int(-1), Value::text("end")];
        assert_eq!(row, encoded(&layout, &after));
        layout.set(&mut row, 1, &Value::Null);
        layout.set(&mut row, 0, &Value::Null);
        assert_eq!(row, before);
    }

    proptest! {
        #[test]
        fn columns_that_are_set_make_the_row_that_all_its_values_make(
            old in seeds(),
            new in seeds(),
            columns in proptest::collection::vec(any::<Index>(), 0..12),
        ) {
            let types = every_type();
            let layout = RowLayout::new(&types);
            let (mut expected, new) = (values(&types, &old), values(&types, &new));
            let mut row = encoded(&layout, &expected);
            for column in columns.iter().map(|column| column.index(types.len())) {
                layout.set(&mut row, column, &new[column]);
                expected[column] = new[column].clone();
                prop_assert_eq!(&row, &encoded(&layout, &expected));
            }
            let mut decoded = Vec::new();
            layout.decode(&row, &mut decoded);
            prop_assert_eq!(encoded(&layout, &decoded), row);
        }

        #[test]
        fn columns_of_another_row_make_the_row_that_their_values_make(
            seeds in seeds(),
            columns in proptest::collection::vec(any::<Index>(), 0..12),
        ) {
            let types = every_type();
            let layout = RowLayout::new(&types);
            let values = values(&types, &seeds);
            let row = encoded(&layout, &values);
            let columns: Vec<usize> = columns.iter().map(|column| column.index(types.len())).collect();
            let some = RowLayout::new(&columns.iter().map(|c| types[*c].clone()).collect::<Vec<_>>());
            let chosen: Vec<Value> = columns.iter().map(|column| values[*column].clone()).collect();
            let mut copied = vec![7];
            some.encode_columns(&layout, &row, &columns, &mut copied);
            prop_assert_eq!(&copied[1..], &encoded(&some, &chosen)[..]);
        }

        #[test]
        fn a_column_of_a_corrupt_row_can_be_set(
            row in proptest::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..300),
            new in seeds(),
        ) {
            let mut types = every_type();
            types.retain(|ty| !matches!(ty, DataType::Json));
            let layout = RowLayout::new(&types);
            let new = values(&types, &new);
            for (column, value) in new.iter().enumerate() {
                let mut row = row.clone();
                layout.set(&mut row, column, value);
                prop_assert_eq!(&layout.get(&row, column), value);
                let mut text = Vec::new();
                if let Some(raw) = layout.raw(&row, 0) {
                    crate::row::stored::write_text(raw, &types[0], &TimeZone::utc(), &mut text);
                }
            }
        }
    }
}
