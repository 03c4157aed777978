//! Expressions over the columns in scope, by the kind of their value.

use super::*;

/// Days and weeks of a year; MariaDB has none of the date zero, or counts them below zero.
const WEEKS: &str = "%j %U %u %V %v %X %x";

impl Generator {
    pub(super) fn readable(&self, table: usize, alias: &str) -> Vec<Readable> {
        let columns = self.tables[table].columns.iter();
        columns
            .map(|column| Readable {
                text: format!("{alias}.{}", column.name),
                kind: column.kind,
            })
            .collect()
    }

    pub(super) fn any_of(
        &mut self,
        scope: &[Readable],
        is: impl Fn(Kind) -> bool,
    ) -> Option<String> {
        let fitting: Vec<&Readable> = scope.iter().filter(|column| is(column.kind)).collect();
        if fitting.is_empty() {
            return None;
        }
        Some(fitting[self.random.usize(0..fitting.len())].text.clone())
    }

    pub(super) fn number(&mut self, scope: &[Readable], depth: u32) -> String {
        if depth == 0 || self.chance(30) {
            let column = self.any_of(scope, |kind| matches!(kind, Kind::Int | Kind::Decimal));
            return match column {
                Some(column) if self.chance(75) => column,
                _ => self.literal(Kind::Int).to_string(),
            };
        }
        let depth = depth - 1;
        let a = self.number(scope, depth);
        match self.random.u32(0..19) {
            16 => {
                let b = self.number(scope, 0);
                match self.random.u32(0..4) {
                    0 => format!("BIT_COUNT({a})"),
                    1 => format!("INTERVAL({a}, 0, 5, 100)"),
                    _ => format!("({a} {} {b})", self.pick(&["&", "|", "^"])),
                }
            }
            17 => format!("TRUNCATE({a}, {})", self.pick(&["0", "1", "2", "-1"])),
            18 => {
                let (a, b) = (self.moment(scope, depth), self.moment(scope, 0));
                match self.random.u32(0..4) {
                    0 => format!("DATEDIFF({a}, {b})"),
                    1 => format!("WEEK({a}, {})", self.random.u32(0..8)),
                    2 => format!("YEARWEEK({a}, {})", self.random.u32(0..8)),
                    _ => format!(
                        "EXTRACT({} FROM {a})",
                        self.pick(&[
                            "YEAR_MONTH",
                            "DAY_SECOND",
                            "MICROSECOND",
                            "WEEK",
                            "HOUR_MINUTE"
                        ])
                    ),
                }
            }
            0..3 => {
                let b = self.number(scope, depth);
                format!("({a} {} {b})", self.pick(&["+", "-", "*", "DIV", "%", "/"]))
            }
            3 => format!(
                "{}({a})",
                self.pick(&["ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "ISNULL"])
            ),
            4 => format!("ROUND({a}, {})", self.pick(&["0", "1", "-1"])),
            5 => {
                let b = self.number(scope, depth);
                let function =
                    self.pick(&["GREATEST", "LEAST", "COALESCE", "IFNULL", "NULLIF", "MOD"]);
                format!("{function}({a}, {b})")
            }
            6 | 7 => {
                let (condition, b) = (self.condition(scope, depth), self.number(scope, depth));
                format!("CASE WHEN {condition} THEN {a} ELSE {b} END")
            }
            8 => {
                let text = self.text(scope, depth);
                let function = self.pick(&["LENGTH", "CHAR_LENGTH", "ASCII", "BIT_LENGTH", "ORD"]);
                format!("{function}({text})")
            }
            9 => {
                let (a, b) = (self.text(scope, depth), self.text(scope, 0));
                match self.random.u32(0..8) {
                    // An empty text that is looked for behind the end is found in different places.
                    0 => format!(
                        "LOCATE(CONCAT({a}, 'a'), {b}, {})",
                        self.pick(&["0", "1", "2", "-1", "NULL", "40"])
                    ),
                    1 => format!("FIELD({a}, {b}, 'a')"),
                    // MariaDB finds nothing in a list that has fewer bytes.
                    2 => format!("FIND_IN_SET({a}, CONCAT({b}, ',abcdefghijklmnop'))"),
                    3 => format!("STRCMP({a}, {b})"),
                    _ => format!("{}({a}, {b})", self.pick(&["LOCATE", "INSTR"])),
                }
            }
            10 => {
                let at = self.moment(scope, depth);
                let function = self.pick(&[
                    "YEAR",
                    "MONTH",
                    "DAY",
                    "DAYOFWEEK",
                    "QUARTER",
                    "TO_DAYS",
                    "WEEKDAY",
                    "DAYOFYEAR",
                    "TO_SECONDS",
                    "HOUR",
                ]);
                format!("{function}({at})")
            }
            11 => {
                let (a, b) = (self.moment(scope, depth), self.moment(scope, 0));
                format!("TIMESTAMPDIFF({}, {a}, {b})", self.pick(UNITS))
            }
            12 => format!("(- {a})"),
            13 => format!("({})", self.condition(scope, depth)),
            14 if self.nested < NESTED_MAX => self.scalar(scope),
            _ => format!("CAST({a} AS {})", self.pick(&["SIGNED", "DECIMAL(20,2)"])),
        }
    }

    pub(super) fn text(&mut self, scope: &[Readable], depth: u32) -> String {
        if depth == 0 || self.chance(30) {
            let column = self.any_of(scope, |kind| matches!(kind, Kind::Text(_)));
            return match column {
                Some(column) if self.chance(75) => column,
                _ => self.literal(Kind::Text("")).to_string(),
            };
        }
        let depth = depth - 1;
        let a = self.text(scope, depth);
        match self.random.u32(0..15) {
            0 => format!(
                "{}({a})",
                self.pick(&["UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM", "REVERSE", "HEX"])
            ),
            1 => format!("CONCAT({a}, {})", self.text(scope, depth)),
            2 => format!("CONCAT_WS('-', {a}, {})", self.text(scope, depth)),
            3 => format!(
                "{}({a}, {})",
                self.pick(&["LEFT", "RIGHT"]),
                self.pick(COUNTS)
            ),
            4 => format!(
                "SUBSTRING({a}, {}, {})",
                self.pick(COUNTS),
                self.pick(COUNTS)
            ),
            // With NULL for the replacement it is NULL in MySQL 8, in MariaDB only if something is
            // replaced.
            5 => format!(
                "REPLACE({a}, {}, COALESCE({}, 'x'))",
                self.text(scope, 0),
                self.text(scope, 0)
            ),
            // Padded with nothing a text is empty in MySQL 8, and NULL in MariaDB.
            6 => format!(
                "{}({a}, {}, {})",
                self.pick(&["LPAD", "RPAD"]),
                self.pick(&["0", "1", "5", "9", "-1", "NULL"]),
                self.pick(&["'xy'", "'xy'", "'é'", "NULL"])
            ),
            7 => format!(
                "{}({a}, {})",
                self.pick(&["COALESCE", "IFNULL", "NULLIF"]),
                self.text(scope, depth)
            ),
            8 => {
                let (condition, b) = (self.condition(scope, depth), self.text(scope, depth));
                format!("IF({condition}, {a}, {b})")
            }
            9 => format!(
                "SUBSTRING_INDEX({a}, {}, {})",
                self.text(scope, 0),
                self.pick(COUNTS)
            ),
            10 => format!("REPEAT({a}, {})", self.pick(&["0", "2", "-1", "NULL"])),
            11 => format!("CONCAT({}, {a})", self.number(scope, 0)),
            12 => {
                let moment = self.moment(scope, depth);
                let pattern = self.pick(&[
                    "%Y-%m-%d %H:%i",
                    "%W %M %e %D",
                    WEEKS,
                    "%H:%i:%s.%f",
                    "%y %c %b %a %w",
                    "%r %T %p %l %k",
                ]);
                match pattern {
                    WEEKS => {
                        format!("DATE_FORMAT(IF(YEAR({moment}) = 0, NULL, {moment}), '{WEEKS}')")
                    }
                    _ => format!("DATE_FORMAT({moment}, '{pattern}')"),
                }
            }
            13 => format!(
                "CAST({a} AS {})",
                self.pick(&["CHAR", "CHAR(2)", "CHAR(60)"])
            ),
            _ => format!(
                "INSERT({a}, {}, {}, {})",
                self.pick(COUNTS),
                self.pick(COUNTS),
                self.text(scope, 0)
            ),
        }
    }

    pub(super) fn moment(&mut self, scope: &[Readable], depth: u32) -> String {
        let column = self.any_of(scope, |kind| matches!(kind, Kind::Date | Kind::DateTime));
        if depth == 0 || self.chance(50) {
            return match column {
                Some(column) if self.chance(80) => column,
                _ => self
                    .pick(&[
                        "DATE'2024-02-29'",
                        "TIMESTAMP'2023-06-15 10:20:30'",
                        "DATE'2000-01-01'",
                    ])
                    .to_string(),
            };
        }
        let at = self.moment(scope, depth - 1);
        match self.random.u32(0..4) {
            0 if self.chance(60) => format!(
                "({at} {} INTERVAL {} {})",
                self.pick(&["+", "-"]),
                self.pick(&["1", "13", "0", "31", "-1", "-400", "NULL"]),
                self.pick(UNITS)
            ),
            0 => format!(
                "({at} {} INTERVAL {})",
                self.pick(&["+", "-"]),
                self.pick(&[
                    "'1:30' MINUTE_SECOND",
                    "'-1 2' DAY_HOUR",
                    "'1-2' YEAR_MONTH",
                    "'1 2:3:4.5' DAY_MICROSECOND",
                    "1.5 SECOND",
                ])
            ),
            1 => format!("LAST_DAY({at})"),
            2 => format!(
                "CAST({at} AS {})",
                self.pick(&["DATE", "DATETIME", "DATETIME(3)"])
            ),
            _ => format!("COALESCE({at}, {})", self.moment(scope, 0)),
        }
    }

    /// Two expressions that can be compared.
    pub(super) fn pair(&mut self, scope: &[Readable], depth: u32) -> (String, String) {
        if self.mixes && self.chance(40) {
            let column = scope[self.random.usize(0..scope.len())].text.clone();
            let other = match self.random.u32(0..3) {
                0 => self.pick(MIXED).to_string(),
                1 => self.item(scope, depth),
                _ => scope[self.random.usize(0..scope.len())].text.clone(),
            };
            return (column, other);
        }
        match self.random.u32(0..6) {
            0..3 => (self.number(scope, depth), self.number(scope, depth)),
            3 | 4 => (self.text(scope, depth), self.text(scope, depth)),
            _ => (self.moment(scope, depth), self.moment(scope, depth)),
        }
    }

    /// A column compared with literals.
    pub(super) fn sargable(&mut self, column: &Readable) -> String {
        let (name, kind) = (&column.text, column.kind);
        let (a, b) = (self.constant(kind), self.constant(kind));
        match self.random.u32(0..8) {
            0 => format!("{name} IN ({a}, {b}, {})", self.constant(kind)),
            1 => format!("{name} BETWEEN {a} AND {b}"),
            2 => format!("{name} IS NULL"),
            3 => format!("{name} <=> {a}"),
            4 | 5 => format!("{name} {} {a}", self.pick(&["<", ">", "<=", ">="])),
            _ => format!("{name} = {a}"),
        }
    }

    /// Conditions that select parts of indexes: on several columns, or by rows of columns. Rows come
    /// only where `alone` says that no outer join makes NULLs: MariaDB takes a comparison of rows
    /// to be unknown if any column of it is NULL.
    pub(super) fn selective(&mut self, scope: &[Readable], depth: u32, alone: bool) -> String {
        let (x, y) = (
            self.random.usize(0..scope.len()),
            self.random.usize(0..scope.len()),
        );
        let (x, y) = (scope[x].clone(), scope[y].clone());
        let pair = |generator: &mut Generator| {
            let (a, b) = (generator.constant(x.kind), generator.constant(y.kind));
            format!("({a}, {b})")
        };
        let rows = format!("({}, {})", x.text, y.text);
        match self.random.u32(0..10) {
            0 if alone => format!("{rows} IN ({}, {}, {})", pair(self), pair(self), pair(self)),
            1 if alone => {
                let op = self.pick(&["<", ">", "<=", ">=", "="]);
                format!("{rows} {op} {}", pair(self))
            }
            2..6 if depth > 0 => {
                let a = self.selective(scope, depth - 1, alone);
                let b = self.selective(scope, depth - 1, alone);
                format!("({a} {} {b})", self.pick(&["AND", "OR", "OR"]))
            }
            _ => self.sargable(&x),
        }
    }

    /// What indexes, merged or by themselves, may answer: conditions on the columns of two keys.
    pub(super) fn on_keys(&mut self, [key, other]: [&[Readable]; 2]) -> String {
        let (first, second) = (&key[0], &key[key.len() - 1]);
        match self.random.u32(0..8) {
            at @ 0..4 => {
                let (a, b) = (self.sargable(first), self.sargable(&other[0]));
                format!("({a} {} {b})", if at == 0 { "AND" } else { "OR" })
            }
            4 | 5 => self.sargable(second),
            _ => self.selective(&[key, other].concat(), 2, true),
        }
    }

    pub(super) fn condition(&mut self, scope: &[Readable], depth: u32) -> String {
        if self.chance(5) {
            return format!("({})", self.selective(scope, depth, false));
        }
        let (a, b) = self.pair(scope, depth.saturating_sub(1));
        let compared = format!("({a} {} {b})", self.pick(COMPARISONS));
        if depth == 0 {
            return compared;
        }
        let depth = depth - 1;
        let not = self.pick(&["", "NOT "]);
        match self.random.u32(0..13) {
            0 | 1 => {
                let other = self.condition(scope, depth);
                format!("({compared} {} {other})", self.pick(&["AND", "OR", "XOR"]))
            }
            2 => format!("(NOT {})", self.condition(scope, depth)),
            3 => format!("({a} IS {not}NULL)"),
            4 => format!(
                "({compared} IS {not}{})",
                self.pick(&["TRUE", "FALSE", "UNKNOWN"])
            ),
            5 => format!("({a} {not}BETWEEN {b} AND {b})"),
            6 => format!("({a} {not}IN ({b}, {b}, {a}))"),
            7 => format!(
                "({} {not}LIKE {})",
                self.text(scope, depth),
                self.pick(&["'a%'", "'%b%'", "'_'", "'A_'", "'%'", "''"])
            ),
            8 if self.nested < NESTED_MAX => {
                let column = self.any_of(scope, |kind| kind == Kind::Int);
                let column = column.unwrap_or_else(|| "1".to_string());
                let fits = fits_every_column(&column);
                format!("({fits} AND {column} {not}IN ({}))", self.subquery(scope))
            }
            9 if self.nested < NESTED_MAX => format!("({not}EXISTS ({}))", self.subquery(scope)),
            10 if self.nested < NESTED_MAX => {
                let (op, all) = (
                    self.pick(&["=", "<", ">", "<>"]),
                    self.pick(&["ANY", "ALL"]),
                );
                let number = self.number(scope, 0);
                let fits = fits_every_column(&number);
                format!(
                    "({fits} AND {number} {op} {all} ({}))",
                    self.subquery(scope)
                )
            }
            _ => compared,
        }
    }
}
