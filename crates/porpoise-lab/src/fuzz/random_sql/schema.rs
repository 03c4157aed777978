//! Tables, their columns and keys, and what alters them.

use std::fmt::Write;

use super::*;

impl Generator {
    pub(super) fn table(&mut self, number: usize) -> Table {
        let id = Column {
            name: "id".to_string(),
            kind: Kind::Int,
            definition: "INT NOT NULL".to_string(),
            nullable: false,
            is_generated: false,
        };
        let mut columns = vec![id];
        for number in 0..self.random.usize(2..7) {
            columns.push(self.column(number));
        }
        let mut keys = vec!["PRIMARY KEY (id)".to_string()];
        let mut key_columns = Vec::new();
        for number in 0..self.random.usize(0..4) {
            let mut parts: Vec<String> = Vec::new();
            let mut positions = Vec::new();
            for _ in 0..self.random.usize(1..4) {
                let position = self.random.usize(0..columns.len());
                let column = &columns[position];
                if parts.iter().any(|part| part.starts_with(&column.name)) {
                    continue;
                }
                let mut part = column.name.clone();
                if column.definition.starts_with("TEXT") {
                    part.push_str("(3)");
                }
                if self.random.u32(0..5) == 0 {
                    part.push_str(" DESC");
                }
                parts.push(part);
                positions.push(position);
            }
            key_columns.push(positions);
            let unique = if self.chance(20) { "UNIQUE " } else { "" };
            keys.push(format!("{unique}KEY k{number} ({})", parts.join(", ")));
        }
        if self.chance(30) {
            // Of a CHAR(n), MariaDB allows no such expression: what is read depends on the
            // session's mode.
            let bases: Vec<&Column> = columns
                .iter()
                .filter(|column| !column.definition.starts_with("CHAR"))
                // What year it is decides on what a TIME's year is.
                .filter(|column| {
                    !column
                        .definition
                        .trim_end_matches(" NOT NULL")
                        .ends_with("TIME")
                        || column.definition.starts_with("DATE")
                })
                .collect();
            let base = bases[self.random.usize(0..bases.len())];
            let (kind, ty, expr) = match base.kind {
                Kind::Int => (Kind::Int, "BIGINT", format!("{} + 1", base.name)),
                Kind::Decimal => (
                    Kind::Decimal,
                    "DECIMAL(65,30)",
                    format!("{} * 2", base.name),
                ),
                Kind::Text(_) => (
                    Kind::Text(COLLATIONS[0]),
                    "VARCHAR(80)",
                    format!("CONCAT({}, 'x')", base.name),
                ),
                Kind::Date | Kind::DateTime => (Kind::Int, "INT", format!("YEAR({})", base.name)),
            };
            let stored = self.pick(&["STORED", "VIRTUAL"]);
            columns.push(Column {
                name: "g".to_string(),
                kind,
                definition: format!("{ty} AS ({expr}) {stored}"),
                nullable: true,
                is_generated: true,
            });
            if self.chance(50) {
                keys.push("KEY kg (g)".to_string());
            }
        }
        Table {
            name: format!("t{number}"),
            columns,
            keys,
            key_columns,
            is_large: false,
        }
    }

    pub(super) fn column(&mut self, number: usize) -> Column {
        let (kind, ty) = match self.random.u32(0..10) {
            0..5 if self.mixes => {
                let (kind, ty) = RARE[self.random.usize(0..RARE.len())];
                (kind, ty.to_string())
            }
            0..4 => (
                Kind::Int,
                self.pick(&["SMALLINT", "INT", "BIGINT", "INT UNSIGNED", "TINYINT"])
                    .to_string(),
            ),
            4 => (
                Kind::Decimal,
                self.pick(&["DECIMAL(10,2)", "DECIMAL(30,10)", "DECIMAL(7,4)"])
                    .to_string(),
            ),
            5..8 => {
                let collation = self.pick(COLLATIONS);
                let charset = collation.split('_').next().unwrap_or(collation);
                let ty = self.pick(&["VARCHAR(20)", "CHAR(8)", "TEXT", "VARCHAR(60)"]);
                (
                    Kind::Text(collation),
                    format!("{ty} CHARACTER SET {charset} COLLATE {collation}"),
                )
            }
            8 => (Kind::Date, "DATE".to_string()),
            _ => (
                Kind::DateTime,
                self.pick(&["DATETIME", "DATETIME(3)", "DATETIME(6)"])
                    .to_string(),
            ),
        };
        let nullable = self.chance(75);
        Column {
            name: format!("c{number}"),
            kind,
            definition: format!("{ty}{}", if nullable { "" } else { " NOT NULL" }),
            nullable,
            is_generated: false,
        }
    }

    /// A table's number, an ALTER TABLE of it, and the table as it is afterwards.
    pub fn alteration(&mut self) -> (usize, String, Table) {
        let number = self.random.usize(0..self.tables.len());
        let mut table = self.tables[number].clone();
        let any = 1 + self.random.usize(0..table.columns.len() - 1);
        let mut column = self.column(any);
        let change = match self.random.u32(0..10) {
            0..4 => {
                column.name = format!("a{}", self.random.u32(0..1_000_000));
                self.give_default(&table, &mut column);
                // Keys tell columns by their places.
                let place = match table.is_large || self.chance(40) {
                    true => table.columns.len(),
                    false => any,
                };
                let after = match place == table.columns.len() {
                    true => String::new(),
                    false => format!(" AFTER {}", table.columns[place - 1].name),
                };
                let change = format!("ADD COLUMN {} {}{after}", column.name, column.definition);
                table.columns.insert(place, column);
                change
            }
            4..8 => {
                let before = &table.columns[any];
                column.name = before.name.clone();
                let change = format!("MODIFY COLUMN {} {}", column.name, column.definition);
                table.columns[any] = column;
                change
            }
            8 if !table.is_large && table.columns.len() > 3 => {
                let column = table.columns.remove(any);
                format!("DROP COLUMN {}", column.name)
            }
            _ => {
                let name = format!("ka{}", self.random.u32(0..1_000_000));
                format!("ADD KEY {name} ({}, id)", table.columns[any].name)
            }
        };
        let how = self.pick(&["", "", ", ALGORITHM=COPY"]);
        (
            number,
            format!("ALTER TABLE {} {change}{how}", table.name),
            table,
        )
    }

    /// Often a default for a new column: a constant, or made of the row's other columns.
    pub(super) fn give_default(&mut self, table: &Table, column: &mut Column) {
        match self.random.u32(0..4) {
            0 | 1 => {}
            _ if column.definition.starts_with("TEXT") => {}
            2 => {
                let value = self.value(column.kind, column.nullable);
                let _ = write!(column.definition, " DEFAULT {value}");
            }
            _ => {
                let numbers: Vec<&Column> = table
                    .columns
                    .iter()
                    .filter(|of| of.kind == Kind::Int && !of.is_generated)
                    .collect();
                if column.kind == Kind::Int {
                    let of = &numbers[self.random.usize(0..numbers.len())].name;
                    let _ = write!(column.definition, " DEFAULT (COALESCE({of}, 0) % 100 + 1)");
                }
            }
        }
    }
}
