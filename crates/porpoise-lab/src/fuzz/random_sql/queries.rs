//! Queries, subqueries and what they read.

use std::fmt::Write;

use super::*;

impl Generator {
    /// A query of the large table's columns as they are, often those of a key.
    pub(super) fn of_one_table(&mut self) -> String {
        let table = self.tables.len() - 1;
        let (alias, name) = (self.alias(), self.tables[table].name.clone());
        let mut scope = self.readable(table, &alias);
        let keys = self.tables[table].key_columns.clone();
        let mut condition = None;
        if !keys.is_empty() && self.chance(90) {
            let any_key = |generator: &mut Generator| -> Vec<Readable> {
                let key = &keys[generator.random.usize(0..keys.len())];
                key.iter().map(|column| scope[*column].clone()).collect()
            };
            let (key, other) = (any_key(self), any_key(self));
            condition = Some(self.on_keys([&key, &other]));
            scope = key;
        }
        let condition = match condition {
            _ if self.chance(20) => String::new(),
            Some(condition) => format!(" WHERE {condition}"),
            None => format!(" WHERE {}", self.selective(&scope, 2, true)),
        };
        let any = |generator: &mut Generator| {
            let at = generator.random.usize(0..scope.len());
            scope[at].text.clone()
        };
        let from = format!("FROM {name} {alias}{condition}");
        let (mut a, mut b, c) = (any(self), any(self), any(self));
        if let [first, second, ..] = &scope[..]
            && self.chance(50)
        {
            (a, b) = (first.text.clone(), second.text.clone());
        }
        match self.random.u32(0..8) {
            0 => format!("SELECT DISTINCT {a} AS e0, {b} AS e1 {from}"),
            1 => format!("SELECT DISTINCT {a} AS e0 {from} ORDER BY 1 LIMIT 5"),
            2 => format!("SELECT COUNT(DISTINCT {a}) AS e0, COUNT(DISTINCT {a}, {b}) AS e1 {from}"),
            3 => format!("SELECT {a} AS e0, MIN({b}) AS e1, MAX({b}) AS e2 {from} GROUP BY {a}"),
            4 => {
                let function = self.pick(&["MIN", "MAX"]);
                format!(
                    "SELECT {a} AS e0, {c} AS e1, {function}({b}) AS e2 {from} GROUP BY {a}, {c}"
                )
            }
            5 => format!("SELECT {a} AS e0, COUNT(DISTINCT {b}) AS e1 {from} GROUP BY {a}"),
            6 => format!(
                "SELECT {alias}.id AS e0, {a} AS e1 {from} ORDER BY {a}, {alias}.id LIMIT 10"
            ),
            _ => format!("SELECT {alias}.id AS e0, {a} AS e1, {b} AS e2 {from}"),
        }
    }

    /// A query of one integer column, which may read the query around it.
    pub(super) fn subquery(&mut self, outer: &[Readable]) -> String {
        self.nested += 1;
        let table = self.any_table();
        let alias = self.alias();
        let own = self.readable(table, &alias);
        let mut scope = own.clone();
        if self.chance(50) {
            scope.extend_from_slice(outer);
        }
        let column = self.any_of(&own, |kind| kind == Kind::Int);
        let column = column.unwrap_or_else(|| "1".to_string());
        let condition = self.inner_condition(&own, outer, &scope);
        let grouped = match self.random.u32(0..8) {
            0 => format!(" GROUP BY {column} HAVING COUNT(*) > 1"),
            1 => " UNION SELECT 3".to_string(),
            _ => String::new(),
        };
        self.nested -= 1;
        let name = &self.tables[table].name;
        format!("SELECT {column} FROM {name} {alias} WHERE {condition}{grouped}")
    }

    /// A subquery's WHERE: often a comparison with a column of any of the queries around it, beside
    /// others, and often with a further subquery.
    pub(super) fn inner_condition(
        &mut self,
        own: &[Readable],
        outer: &[Readable],
        scope: &[Readable],
    ) -> String {
        let condition = match self.nested < NESTED_MAX && self.chance(35) {
            true => {
                let not = self.pick(&["", "", "NOT "]);
                format!("{not}EXISTS ({})", self.subquery(scope))
            }
            false => self.condition(scope, 1),
        };
        let is_int = |kind| kind == Kind::Int;
        match (self.any_of(own, is_int), self.any_of(outer, is_int)) {
            (Some(inner), Some(outer)) if self.chance(50) => {
                let op = self.pick(COMPARISONS);
                let and = self.pick(&["AND", "AND", "AND", "OR"]);
                format!("({inner} {op} {outer} {and} {condition})")
            }
            _ => condition,
        }
    }

    pub(super) fn scalar(&mut self, outer: &[Readable]) -> String {
        self.nested += 1;
        let table = self.any_table();
        let alias = self.alias();
        let own = self.readable(table, &alias);
        let mut scope = own.clone();
        scope.extend_from_slice(outer);
        let function = self.pick(&["SUM", "MIN", "MAX", "COUNT"]);
        let number = self.number(&own, 0);
        let condition = self.inner_condition(&own, outer, &scope);
        self.nested -= 1;
        let name = &self.tables[table].name;
        format!("(SELECT {function}({number}) FROM {name} {alias} WHERE {condition})")
    }

    pub(super) fn source(&mut self, scope: &mut Vec<Readable>) -> String {
        let table = self.any_table();
        let alias = self.alias();
        let own = self.readable(table, &alias);
        let name = self.tables[table].name.clone();
        if self.chance(15) {
            // A derived table, or a common one, of a number and a text.
            let derived = self.alias();
            if !self.commons.is_empty() && self.chance(50) {
                // What is there already is read again.
                let at = self.random.usize(0..self.commons.len());
                let common = self.commons[at].0.clone();
                scope.extend(made(&derived));
                return format!("{common} {derived}");
            }
            // A quotient that is stored is rounded, one that isn't has more digits.
            let depth = u32::from(!self.mixes);
            let (number, mut text) = (self.number(&own, depth), self.text(&own, 1));
            let condition = self.condition(&own, 1);
            let distinct = match self.mixes {
                true => "",
                false => self.pick(&["", "DISTINCT "]),
            };
            if !distinct.is_empty() {
                // Which of equal texts is kept would show in what is made of it.
                text = format!("HEX({text})");
            }
            scope.extend(made(&derived));
            let query = format!(
                "(SELECT {distinct}{number} AS n, {text} AS s FROM {name} {alias} WHERE {condition})"
            );
            if self.chance(40) {
                let common = format!("w{}", self.commons.len());
                self.commons.push((common.clone(), query));
                return format!("{common} {derived}");
            }
            return format!("{query} {derived}");
        }
        scope.extend(own);
        format!("{name} {alias}")
    }

    pub(super) fn from(&mut self) -> (String, Vec<Readable>) {
        let mut scope = Vec::new();
        let mut text = self.source(&mut scope);
        for _ in 0..self.pick(&["", "", "j", "j", "jj"]).len() {
            let left = scope.clone();
            let mut own = Vec::new();
            let right = self.source(&mut own);
            let a = self.any_of(&left, |kind| kind == Kind::Int);
            let b = self.any_of(&own, |kind| kind == Kind::Int);
            scope.extend(own);
            let mut condition = match (a, b) {
                (Some(a), Some(b)) => {
                    format!("{a} {} {b}", self.pick(&["=", "=", "=", "<=>", "<"]))
                }
                _ => self.condition(&scope, 0),
            };
            if self.chance(30) {
                let other = self.condition(&scope, 1);
                let _ = write!(condition, " {} {other}", self.pick(&["AND", "OR"]));
            }
            let join = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT JOIN"]);
            text = format!("{text} {join} {right} ON {condition}");
        }
        (text, scope)
    }

    pub(super) fn item(&mut self, scope: &[Readable], depth: u32) -> String {
        match self.random.u32(0..6) {
            0 | 1 => self.number(scope, depth),
            2 | 3 => self.text(scope, depth),
            4 => self.moment(scope, depth),
            _ => scope[self.random.usize(0..scope.len())].text.clone(),
        }
    }

    /// Without subqueries inside subqueries: MariaDB takes a column of the outer one, read in the
    /// inner one, for a column outside of the aggregate function (1140).
    pub(super) fn aggregate(&mut self, scope: &[Readable]) -> String {
        let nested = std::mem::replace(&mut self.nested, NESTED_MAX - 1);
        let number = self.number(scope, 1);
        let aggregate = match self.random.u32(0..9) {
            0 => "COUNT(*)".to_string(),
            1 => format!("COUNT(DISTINCT {})", self.item(scope, 1)),
            2 => format!("SUM(DISTINCT {number})"),
            3 => format!("{}({})", self.pick(&["MIN", "MAX"]), self.text(scope, 1)),
            4 => format!("BIT_XOR({number})"),
            5 => format!(
                "GROUP_CONCAT({}{number} ORDER BY ({number} + 0){} SEPARATOR '{}')",
                self.pick(&["", "DISTINCT "]),
                self.pick(&["", " DESC"]),
                self.pick(&[",", "", "; "])
            ),
            _ => format!(
                "{}({number})",
                self.pick(&["SUM", "AVG", "MIN", "MAX", "COUNT"])
            ),
        };
        self.nested = nested;
        aggregate
    }

    /// A query of one or more columns `e0`, `e1` …
    pub fn query(&mut self) -> String {
        self.nested = 0;
        self.commons.clear();
        let query = match self.random.u32(0..20) {
            0 => self.compound(),
            1 => self.windows(),
            2..6 => self.of_one_table(),
            _ => self.select(),
        };
        format!("{}{query}", self.with())
    }

    /// `WITH …`, where the query has common tables.
    pub(super) fn with(&self) -> String {
        if self.commons.is_empty() {
            return String::new();
        }
        let commons = self.commons.iter();
        let commons: Vec<String> = commons
            .map(|(name, query)| format!("{name} AS {query}"))
            .collect();
        format!("WITH {} ", commons.join(", "))
    }

    /// A query whose rows depend on its condition row by row.
    pub fn parts(&mut self) -> Parts {
        self.nested = 0;
        self.commons.clear();
        let (from, scope) = match self.chance(30) {
            true => {
                let large = self.tables.len() - 1;
                let (alias, name) = (self.alias(), self.tables[large].name.clone());
                (format!("{name} {alias}"), self.readable(large, &alias))
            }
            false => self.from(),
        };
        let items: Vec<String> = (0..self.random.usize(1..4))
            .map(|_| self.item(&scope, 1))
            .collect();
        let condition = match self.chance(40) {
            true => self.selective(&scope, 2, true),
            false => self.condition(&scope, 2),
        };
        Parts {
            with: self.with(),
            items: items.join(", "),
            from,
            condition,
        }
    }

    /// Queries whose columns are alike, put together.
    pub(super) fn compound(&mut self) -> String {
        let width = self.random.usize(1..4);
        let kinds: Vec<u32> = (0..width).map(|_| self.random.u32(0..5)).collect();
        let mut text = String::new();
        for at in 0..self.random.usize(2..4) {
            if at > 0 {
                let operator = self.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]);
                let _ = write!(text, " {operator} ");
            }
            let (from, scope) = self.from();
            let mut items = Vec::new();
            for (number, kind) in kinds.iter().enumerate() {
                let item = match kind {
                    0 | 1 => self.number(&scope, 1),
                    2 => self.text(&scope, 1),
                    3 => self.moment(&scope, 1),
                    // Numbers and texts become texts.
                    _ => match at % 2 {
                        0 => self.any_of(&scope, |kind| kind == Kind::Int),
                        _ => self.any_of(&scope, |kind| matches!(kind, Kind::Text(_))),
                    }
                    .unwrap_or_else(|| "3".to_string()),
                };
                items.push(format!("{item} AS e{number}"));
            }
            let (items, condition) = (items.join(", "), self.condition(&scope, 1));
            let _ = write!(text, "SELECT {items} FROM {from} WHERE {condition}");
        }
        if self.chance(40) {
            let order: Vec<String> = (1..=width).map(|at| at.to_string()).collect();
            let _ = write!(text, " ORDER BY {} LIMIT 5", order.join(", "));
        }
        text
    }

    /// A number that rows are ordered or parted by. MySQL refuses a whole number there, MariaDB
    /// takes it.
    fn place_in_window(&mut self, scope: &[Readable], depth: u32) -> String {
        let number = self.number(scope, depth);
        match number.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("({number} + 0)"),
            false => number,
        }
    }

    /// Window functions over a table's rows in an order that leaves nothing open.
    pub(super) fn windows(&mut self) -> String {
        let table = self.any_table();
        let alias = self.alias();
        let scope = self.readable(table, &alias);
        let mut items = vec![format!("{alias}.id AS e0")];
        for at in 1..self.random.usize(2..5) {
            let (value, by) = (self.number(&scope, 1), self.place_in_window(&scope, 0));
            let text = self.text(&scope, 0);
            let function = match self.random.u32(0..13) {
                0 => "ROW_NUMBER()".to_string(),
                1 => format!("LAG({value}, {})", self.pick(&["0", "1", "3"])),
                2 => format!("LEAD({value})"),
                3 => format!("FIRST_VALUE({text})"),
                4 => format!("LAST_VALUE({value})"),
                5 => format!("NTH_VALUE({value}, 2)"),
                6 => format!("NTILE({})", self.pick(&["1", "3", "40"])),
                7 => self.pick(&["PERCENT_RANK()", "CUME_DIST()"]).to_string(),
                8 => self.pick(&["RANK()", "DENSE_RANK()"]).to_string(),
                9 => "COUNT(*)".to_string(),
                _ => format!(
                    "{}({value})",
                    self.pick(&["SUM", "AVG", "MIN", "MAX", "COUNT"])
                ),
            };
            // Functions of ranks have no frame.
            let is_framed = ["FIRST", "LAST", "NTH", "SUM", "AVG", "MIN", "MAX", "COUNT"]
                .iter()
                .any(|name| function.starts_with(name));
            let frame = if is_framed { self.pick(FRAMES) } else { "" };
            let partition = match self.chance(50) {
                true => format!("PARTITION BY {} ", self.place_in_window(&scope, 1)),
                false => String::new(),
            };
            let descending = self.pick(&["", " DESC"]);
            let over = format!(
                "{function} OVER ({partition}ORDER BY {by}{descending}, {alias}.id{frame})"
            );
            // MariaDB's shares are decimals.
            items.push(
                match function.contains("_RANK()") || function.contains("CUME") {
                    true => format!("CAST({over} AS DECIMAL(20, 6)) AS e{at}"),
                    false => format!("{over} AS e{at}"),
                },
            );
        }
        let name = self.tables[table].name.clone();
        let condition = self.condition(&scope, 1);
        format!(
            "SELECT {} FROM {name} {alias} WHERE {condition}",
            items.join(", ")
        )
    }

    pub(super) fn select(&mut self) -> String {
        let (from, scope) = self.from();
        let mut text = String::new();
        let mut tail = String::new();
        let mut items: Vec<String> = Vec::new();
        let form = self.random.u32(0..10);
        match form {
            0..5 => {
                for _ in 0..self.random.usize(1..4) {
                    items.push(self.item(&scope, 2));
                }
                if form == 4 {
                    text.push_str("DISTINCT ");
                }
            }
            5 => {
                for _ in 0..self.random.usize(1..4) {
                    items.push(self.aggregate(&scope));
                }
            }
            6 => {
                items.push(self.item(&scope, 0));
                let (number, part, by) = (
                    self.number(&scope, 0),
                    self.place_in_window(&scope, 1),
                    self.place_in_window(&scope, 0),
                );
                let function = match self.random.u32(0..4) {
                    0 => "RANK()".to_string(),
                    1 => "DENSE_RANK()".to_string(),
                    2 => format!("SUM({number})"),
                    _ => format!("MAX({number})"),
                };
                items.push(format!(
                    "{function} OVER (PARTITION BY {part} ORDER BY {by})"
                ));
            }
            _ => {
                let keys = self.random.usize(1..3);
                for _ in 0..keys {
                    items.push(self.item(&scope, 1));
                }
                for _ in 0..self.random.usize(1..3) {
                    items.push(self.aggregate(&scope));
                }
                let names: Vec<String> = (0..keys).map(|key| format!("e{key}")).collect();
                let _ = write!(tail, " GROUP BY {}", names.join(", "));
                // MariaDB forgets DISTINCT in totals where a group is a single row.
                let is_distinct = items.iter().any(|item| item.contains("(DISTINCT"));
                if !is_distinct && self.chance(15) {
                    tail.push_str(" WITH ROLLUP");
                }
                if self.chance(30) {
                    let _ = write!(tail, " HAVING COUNT(*) {} 2", self.pick(&["<", ">", "="]));
                }
            }
        }
        let condition = match self.chance(60) {
            true => format!(" WHERE {}", self.condition(&scope, 2)),
            false => String::new(),
        };
        for (number, item) in items.iter().enumerate() {
            let _ = write!(
                text,
                "{}{item} AS e{number}",
                if number > 0 { ", " } else { "" }
            );
        }
        if !tail.contains("ROLLUP") && self.chance(35) {
            let order: Vec<String> = (1..=items.len()).map(|at| at.to_string()).collect();
            let _ = write!(tail, " ORDER BY {}", order.join(", "));
            if self.chance(60) {
                let _ = write!(tail, " LIMIT {}", self.pick(&["1", "3", "10"]));
            }
        }
        format!("SELECT {text} FROM {from}{condition}{tail}")
    }
}
