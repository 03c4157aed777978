//! Rows, and the values that they hold.

use super::*;

impl Generator {
    /// INSERTs of a table's first rows, one each.
    pub fn rows(&mut self, table: usize) -> Vec<String> {
        let least = if self.tables[table].is_large {
            ROWS_MAX / 2
        } else {
            0
        };
        let count = self.random.usize(least..ROWS_MAX);
        let verb = if self.mixes {
            "INSERT IGNORE"
        } else {
            "INSERT"
        };
        let mut rows: Vec<String> = (1..=count)
            .map(|id| self.insert(table, verb, id, ""))
            .collect();
        if self.tables[table].is_large {
            rows.push(self.enlarge(table));
        }
        rows
    }

    /// Rows made of columns of two others each.
    pub(super) fn enlarge(&mut self, table: usize) -> String {
        let mut values = vec![format!("a.id + {LARGE_FROM} * b.id")];
        for at in 1..self.tables[table].columns.len() {
            let (of, spread) = (self.pick(&["a", "b"]), self.pick(&["", " + 3 * b.id"]));
            let column = &self.tables[table].columns[at];
            if !column.is_generated {
                let spread = if column.kind == Kind::Int { spread } else { "" };
                values.push(format!("{of}.{}{spread}", column.name));
            }
        }
        let table = &self.tables[table];
        let (name, given, values) = (&table.name, table.given(), values.join(", "));
        format!(
            "INSERT IGNORE INTO {name} ({given}) SELECT {values} FROM {name} a JOIN {name} b WHERE b.id <= {TIMES_LARGER} ORDER BY 1"
        )
    }

    pub(super) fn insert(&mut self, table: usize, verb: &str, id: usize, tail: &str) -> String {
        let mut values = Vec::new();
        for at in 0..self.tables[table].columns.len() {
            let column = &self.tables[table].columns[at];
            if !column.is_generated {
                let (kind, nullable) = (column.kind, column.nullable);
                values.push(match at {
                    0 => id.to_string(),
                    _ => self.value(kind, nullable),
                });
            }
        }
        let table = &self.tables[table];
        let (name, given) = (&table.name, table.given());
        format!(
            "{verb} INTO {name} ({given}) VALUES ({}){tail}",
            values.join(", ")
        )
    }

    pub(super) fn value(&mut self, kind: Kind, nullable: bool) -> String {
        if nullable && self.chance(15) {
            return "NULL".to_string();
        }
        match kind {
            Kind::Int if self.chance(80) => self.random.i32(-3..12).to_string(),
            kind => self.literal(kind).to_string(),
        }
    }

    pub(super) fn literal(&mut self, kind: Kind) -> &'static str {
        self.pick(match kind {
            Kind::Int => INTEGERS,
            Kind::Decimal => DECIMALS,
            Kind::Text(_) => TEXTS,
            Kind::Date => DATES,
            Kind::DateTime => MOMENTS,
        })
    }

    pub(super) fn constant(&mut self, kind: Kind) -> String {
        if self.mixes && self.chance(50) {
            return self.pick(MIXED).to_string();
        }
        self.value(kind, false)
    }

    /// A statement of thousands of literals: rows for an empty table `bulk` of a number and a text.
    pub fn bulk(&mut self) -> String {
        let rows: Vec<String> = (0..self.random.usize(2000..4500))
            .map(|id| format!("({id}, {})", self.literal(Kind::Text(""))))
            .collect();
        format!("INSERT INTO bulk VALUES {}", rows.join(", "))
    }
}
