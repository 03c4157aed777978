//! Statements that change rows.

use super::*;

impl Generator {
    /// A statement that changes rows.
    pub fn change(&mut self) -> String {
        // A subquery would read the table that is changed (1093).
        self.nested = NESTED_MAX;
        self.commons.clear();
        let table = self.random.usize(0..self.tables.len());
        let name = self.tables[table].name.clone();
        let scope = self.readable(table, &name);
        let id = self.random.usize(1..2 * ROWS_MAX);
        let condition = match self.tables[table].is_large {
            true => self.selective(&scope, 2, true),
            false => self.condition(&scope, 2),
        };
        match self.random.u32(0..11) {
            8 | 9 => self.change_joined(table),
            10 => {
                let given = self.tables[table].given();
                let column = &self.tables[table].columns[1].name;
                let condition = condition.replace(&format!("{name}."), "x.");
                format!(
                    "INSERT INTO {name} ({given}) SELECT {given} FROM {name} x WHERE {condition} ORDER BY id LIMIT 4 ON DUPLICATE KEY UPDATE {column} = VALUES({column})"
                )
            }
            0 => self.insert(table, "INSERT", id, ""),
            1 => self.insert(table, "INSERT IGNORE", id, ""),
            2 => self.insert(table, "REPLACE", id, ""),
            3 => {
                let assignment = self.assignment(table, &scope);
                self.insert(
                    table,
                    "INSERT",
                    id,
                    &format!(" ON DUPLICATE KEY UPDATE {assignment}"),
                )
            }
            4 => {
                let given = self.tables[table].given();
                let read = given.replacen("id", "id + 20", 1);
                format!(
                    "INSERT INTO {name} ({given}) SELECT {read} FROM {name} WHERE {condition} ORDER BY id LIMIT 4"
                )
            }
            // A DELETE that divides by zero fails in MySQL's strict mode (1365), in MariaDB it
            // doesn't.
            5 if !divides(&condition) => {
                format!("DELETE FROM {name} WHERE {condition} ORDER BY id LIMIT 2")
            }
            _ => {
                let assignment = self.assignment(table, &scope);
                format!("UPDATE {name} SET {assignment} WHERE {condition}")
            }
        }
    }

    /// UPDATE and DELETE of joined tables. A row that joins several rows is changed once, so that
    /// its new values may depend on its own values only.
    pub(super) fn change_joined(&mut self, table: usize) -> String {
        let other = self.any_table();
        let (own, beside) = (self.readable(table, "a"), self.readable(other, "b"));
        let left = self.any_of(&own, |kind| kind == Kind::Int);
        let right = self.any_of(&beside, |kind| kind == Kind::Int);
        let joined = [own.clone(), beside].concat();
        let condition = self.condition(&joined, 1);
        let join = self.pick(&["JOIN", "LEFT JOIN"]);
        let from = format!(
            "{} a {join} {} b ON {} = {}",
            self.tables[table].name,
            self.tables[other].name,
            left.unwrap_or_default(),
            right.unwrap_or_default()
        );
        match self.random.u32(0..3) {
            0 if !divides(&condition) => format!("DELETE a FROM {from} WHERE {condition}"),
            1 if !divides(&condition) => format!("DELETE a, b FROM {from} WHERE {condition}"),
            _ => {
                let assignment = self.assignment(table, &own);
                format!("UPDATE {from} SET a.{assignment} WHERE {condition}")
            }
        }
    }

    pub(super) fn assignment(&mut self, table: usize, scope: &[Readable]) -> String {
        let columns = &self.tables[table].columns;
        let mut at = self.random.usize(1..columns.len());
        if columns[at].is_generated {
            at = 1;
        }
        let column = &columns[at];
        let (name, kind, nullable) = (column.name.clone(), column.kind, column.nullable);
        let value = match kind {
            _ if self.chance(40) => self.value(kind, nullable),
            Kind::Int | Kind::Decimal => self.number(scope, 1),
            Kind::Text(_) => self.text(scope, 1),
            Kind::Date | Kind::DateTime => self.moment(scope, 1),
        };
        format!("{name} = {value}")
    }
}
