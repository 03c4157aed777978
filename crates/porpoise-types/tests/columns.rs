//! Columns of many rows are read as those of each row.

use porpoise_types::vector::Kind;
use porpoise_types::{
    Added, Collation, DataType, Date, DateTime, Decimal, IntWidth, RowLayout, StoredColumn, Value,
};
use proptest::prelude::*;

fn integer(width: IntWidth, unsigned: bool) -> DataType {
    DataType::Int {
        width,
        unsigned,
        zerofill: false,
        display_width: None,
    }
}

fn types() -> Vec<DataType> {
    let collation = Collation::UTF8MB4_0900_AI_CI;
    vec![
        integer(IntWidth::Tiny, false),
        integer(IntWidth::Small, true),
        integer(IntWidth::Int, false),
        integer(IntWidth::Int, true),
        DataType::BIGINT,
        DataType::BIGINT_UNSIGNED,
        DataType::decimal(9, 2),
        DataType::decimal(18, 0),
        DataType::decimal(38, 4),
        DataType::DOUBLE,
        DataType::Date,
        DataType::DateTime { fsp: 3 },
        DataType::Varchar {
            length: 20,
            collation,
        },
        DataType::Char {
            length: 5,
            collation,
        },
    ]
}

/// A value of the type; of the widest types now and then one that has no place in a vector.
fn value_of(ty: &DataType, number: i64) -> Value {
    let small = number % 100;
    match ty {
        DataType::Int {
            unsigned: true,
            width: IntWidth::Big,
            ..
        } if number % 97 == 0 => Value::UInt(u64::MAX - small.unsigned_abs()),
        DataType::Int { unsigned: true, .. } => Value::UInt(small.unsigned_abs()),
        DataType::Int {
            width: IntWidth::Big,
            ..
        } => Value::Int(number),
        DataType::Int { .. } => Value::Int(small),
        DataType::Decimal {
            precision: 38,
            scale,
            ..
        } if number % 97 == 0 => Value::Decimal(Decimal::from_i128(i128::MAX / 100, *scale)),
        DataType::Decimal { scale, .. } => Value::Decimal(Decimal::new(small, *scale)),
        DataType::Double { .. } => Value::Double(number as f64 / 7.0),
        DataType::Date => match small {
            0 => Value::Date(Date::ZERO),
            _ => Value::Date(Date::new(1990 + small.unsigned_abs() as u32, 2, 28).unwrap()),
        },
        DataType::DateTime { .. } => {
            let date = Date::new(2000, 1 + small.unsigned_abs() as u32 % 12, 0).unwrap();
            Value::DateTime(DateTime::new(date, 23, 59, 58, 123_000).unwrap())
        }
        _ => Value::text(format!("ä{small}")),
    }
}

proptest! {
    #[test]
    fn a_column_of_many_rows_is_that_of_each(
        numbers in proptest::collection::vec((any::<i64>(), any::<u16>(), any::<bool>()), 0..40),
        added in any::<u16>(),
    ) {
        let types = types();
        let is_added = |column: usize| added >> column & 1 == 1;
        let steps: Vec<Option<Added>> = (0..types.len())
            .map(|column| is_added(column).then(|| Added {
                step: 1 + column as u16 % 2,
                value: value_of(&types[column], column as i64 + 1),
            }))
            .collect();
        let stored = types.iter().zip(&steps).map(|(ty, added)| StoredColumn {
            ty,
            added: added.as_ref(),
            place: 0,
        });
        let layout = RowLayout::altered(&stored.collect::<Vec<_>>(), &[]);
        let before: Vec<usize> = (0..types.len()).filter(|&column| !is_added(column)).collect();
        let old: Vec<DataType> = before.iter().map(|&column| types[column].clone()).collect();
        let old = RowLayout::new(&old);
        let mut rows: Vec<Vec<u8>> = Vec::new();
        for (number, nulls, is_old) in numbers {
            let value = |(column, ty)| match nulls >> column & 1 {
                1 if column % 3 > 0 => Value::Null,
                _ => value_of(ty, number),
            };
            let values: Vec<Value> = types.iter().enumerate().map(value).collect();
            let mut row = Vec::new();
            if is_old {
                let values = before.iter().map(|&column| values[column].clone());
                old.encode(&values.collect::<Vec<_>>(), &mut row);
            } else {
                layout.encode(&values, &mut row);
            }
            rows.push(row);
        }
        let slices: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        for column in 0..types.len() {
            let expected: Vec<Value> = rows.iter().map(|row| layout.get(row, column)).collect();
            let nulls = layout.read_nulls(&slices, column);
            for (row, value) in expected.iter().enumerate() {
                let is_null = nulls.get(row).copied().unwrap_or(false);
                prop_assert_eq!(value.is_null(), is_null);
            }
            let kind = layout.column_kind(column).unwrap();
            let fits = |value: &Value| {
                value.is_null()
                    || matches!(kind, Kind::Text | Kind::Double)
                    || kind.integer_of(value).is_some()
            };
            match layout.read_column(&slices, column) {
                Some(vector) => {
                    let all = vector.slice(0..rows.len());
                    let values: Vec<Value> = (0..all.len()).map(|row| all.value(row)).collect();
                    prop_assert_eq!(&values, &expected);
                    let counted = expected.iter().filter(|value| !value.is_null()).count();
                    prop_assert_eq!(all.count(), counted);
                }
                None => prop_assert!(!expected.iter().all(fits)),
            }
        }
    }
}
