//! Whether two servers answered alike.
//!
//! Numbers with decimal places may differ by what servers round differently: by a billionth, or by
//! one in the last place of the one with fewer places. Everything else has to be the same. Rows
//! have to come in the order of the columns that ORDER BY names; which of several that are alike in
//! these comes first is left to the server.

use std::cmp::Ordering;

use porpoise_client::{Rows, Value};

/// What numbers may differ by, of the greater one.
const RELATIVE_TOLERANCE: f64 = 1e-9;

/// The rows of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Null,
    /// A number, and how it was shown.
    Number(f64, String),
    Text(String),
}

impl Answer {
    pub(crate) fn of(rows: &Rows) -> Self {
        let cell = |(value, text): (Result<Value<'_>, porpoise_client::Error>, String)| match value
        {
            Ok(Value::Null) => Cell::Null,
            Ok(
                Value::Int(_)
                | Value::UInt(_)
                | Value::Float(_)
                | Value::Double(_)
                | Value::Decimal(_),
            ) => text
                .parse()
                .map_or(Cell::Null, |number| Cell::Number(number, text)),
            _ => Cell::Text(text),
        };
        let texts = rows.to_text().into_iter();
        let rows = rows
            .iter()
            .zip(texts)
            .map(|(row, texts)| row.values().zip(texts).map(cell).collect());
        Self {
            rows: rows.collect(),
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether both are the same, rows being in the order of these columns.
    pub fn agrees(&self, other: &Self, ordered_by: &[usize]) -> bool {
        let pairs = || self.rows.iter().zip(&other.rows);
        let is_in_order = |column: usize| {
            pairs().all(|(one, other)| match (one.get(column), other.get(column)) {
                (Some(one), Some(other)) => one.agrees(other),
                _ => false,
            })
        };
        let (one, two) = (self.sorted(), other.sorted());
        self.len() == other.len()
            && ordered_by.iter().all(|&column| is_in_order(column))
            && one.iter().zip(two).all(|(one, two)| {
                let cells = || one.iter().zip(two);
                one.len() == two.len() && cells().all(|(one, two)| one.agrees(two))
            })
    }

    fn sorted(&self) -> Vec<&Vec<Cell>> {
        let mut rows: Vec<&Vec<Cell>> = self.rows.iter().collect();
        rows.sort_by(|one, other| {
            let cells = one.iter().zip(other.iter());
            let mut orders = cells.map(|(one, other)| one.order(other));
            orders
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        rows
    }
}

impl Cell {
    fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one, shown), Self::Number(other, shown_other)) => {
                let places = decimal_places(shown).min(decimal_places(shown_other));
                let last_place = match places {
                    0 => 0.0,
                    // What is one apart in decimals may be a little more in binary.
                    places => 1.000_001 * 0.1_f64.powi(places as i32),
                };
                let is_whole = |shown: &str| !shown.contains(['.', 'e', 'E']);
                match is_whole(shown) && is_whole(shown_other) {
                    true => shown == shown_other,
                    false => {
                        let relative = RELATIVE_TOLERANCE * one.abs().max(other.abs());
                        (one - other).abs() <= relative.max(last_place)
                    }
                }
            }
            _ => self == other,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one, _), Self::Number(other, _)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => self.kind().cmp(&other.kind()),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Number(..) => 1,
            Self::Text(_) => 2,
        }
    }
}

/// Places after the point; none for a number that is shown with an exponent.
fn decimal_places(shown: &str) -> usize {
    match shown.split_once('.') {
        Some((_, places)) if !shown.contains(['e', 'E']) => places.len(),
        _ => 0,
    }
}

/// A result for people: columns' names, then rows.
pub(super) fn shown(rows: &Rows) -> String {
    let mut table = rows.to_text();
    if rows.columns().len() > 1 {
        table.insert(0, rows.columns().names().collect());
    }
    let lines = table.iter().map(|row| row.join(" │ ") + "\n");
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(shown: &str) -> Cell {
        Cell::Number(shown.parse().unwrap(), shown.into())
    }

    fn answer(rows: &[[&str; 2]]) -> Answer {
        let row = |[one, two]: &[&str; 2]| vec![number(one), Cell::Text((*two).into())];
        Answer {
            rows: rows.iter().map(row).collect(),
        }
    }

    #[test]
    fn numbers_may_be_rounded_differently() {
        for (one, other, agree) in [
            ("7", "7", true),
            ("7", "8", false),
            ("123456789012", "123456789013", false),
            ("7", "7.0000", true),
            ("0.3333", "0.3334", true),
            ("0.3333", "0.33333333", true),
            ("0.3333", "0.3335", false),
            ("1e20", "1.0000000001e20", true),
            ("1e20", "1.00000001e20", false),
        ] {
            assert_eq!(number(one).agrees(&number(other)), agree, "{one} {other}");
        }
        assert!(Cell::Null.agrees(&Cell::Null));
        assert!(!Cell::Null.agrees(&number("0")));
    }

    #[test]
    fn rows_come_in_the_order_that_is_asked_for() {
        let one = answer(&[["1", "a"], ["1", "b"], ["2", "c"]]);
        let ties = answer(&[["1", "b"], ["1", "a"], ["2", "c"]]);
        let turned = answer(&[["2", "c"], ["1", "a"], ["1", "b"]]);
        assert!(one.agrees(&ties, &[0]) && !one.agrees(&ties, &[0, 1]));
        assert!(one.agrees(&turned, &[]) && !one.agrees(&turned, &[0]));
        assert!(!one.agrees(&answer(&[["1", "a"], ["1", "b"]]), &[]));
        assert!(!one.agrees(&answer(&[["1", "a"], ["1", "b"], ["2", "d"]]), &[]));
    }
}
