//! Random schemas, rows and statements, all made of one seed.
//!
//! Expressions are kept to what both products promise to answer alike: numbers are compared with
//! numbers, texts with texts, temporal values with temporal values; sums are of exact numbers; a
//! LIMIT follows only an ORDER BY of everything. What a query may still leave open, the order of
//! its rows and which of two equal texts stands for a group, is for the comparison to allow.

use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Decimal,
    Text(&'static str),
    Date,
    DateTime,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    kind: Kind,
    definition: String,
    nullable: bool,
    pub is_generated: bool,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    keys: Vec<String>,
    /// The columns of each key but the primary one.
    key_columns: Vec<Vec<usize>>,
    is_large: bool,
}

impl Table {
    /// CREATE TABLE, under another name if wanted, and with or without keys.
    pub fn definition(&self, name: &str, with_keys: bool) -> String {
        let columns = self.columns.iter();
        let mut parts: Vec<String> = columns
            .map(|column| format!("{} {}", column.name, column.definition))
            .collect();
        if with_keys {
            parts.extend(self.keys.iter().cloned());
        }
        format!("CREATE TABLE {name} ({})", parts.join(", "))
    }

    /// The columns that values can be given for.
    pub fn given(&self) -> String {
        let given = self.columns.iter().filter(|column| !column.is_generated);
        let names: Vec<&str> = given.map(|column| column.name.as_str()).collect();
        names.join(", ")
    }
}

/// A column that an expression may read, as it is written.
#[derive(Clone, Debug)]
struct Readable {
    text: String,
    kind: Kind,
}

const COLLATIONS: &[&str] = &[
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_bin",
    "latin1_swedish_ci",
];
const TEXTS: &[&str] = &[
    "''", "'a'", "'A'", "'b'", "'abc'", "'ABC'", "'a '", "' a'", "'é'", "'e'", "'ß'", "'ss'",
    "'10'", "'10abc'", "'-3'", "'zz'", "'a%'", "'a_b'", "'aab'", "'Ab'", "'z'",
];
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "5",
    "7",
    "10",
    "100",
    "127",
    "255",
    "65535",
    "2147483647",
    "-2147483648",
];
const DECIMALS: &[&str] = &[
    "0.0", "1.5", "-1.50", "2.345", "0.005", "99.99", "-0.0001", "12345.67", "10.10", "0.5",
];
const DATES: &[&str] = &[
    "'2024-02-29'",
    "'1999-12-31'",
    "'2000-01-01'",
    "'2024-03-01'",
    "'1000-01-01'",
    "'9999-12-31'",
    "'2023-06-15'",
];
const MOMENTS: &[&str] = &[
    "'2024-02-29 12:30:45'",
    "'1999-12-31 23:59:59'",
    "'2000-01-01 00:00:00'",
    "'2024-03-01 01:02:03.456789'",
    "'2023-06-15'",
];
const UNITS: &[&str] = &[
    "DAY",
    "MONTH",
    "YEAR",
    "HOUR",
    "SECOND",
    "WEEK",
    "QUARTER",
    "MINUTE",
    "MICROSECOND",
];
/// Constants that are compared with columns of other types.
const MIXED: &[&str] = &[
    "'10'",
    "'1.5'",
    "'-1.50'",
    "'12345.67'",
    "'1e1'",
    "' 7'",
    "'7 '",
    "'abc'",
    "''",
    "'2024-02-29'",
    "'2024-2-29'",
    "'20240229'",
    "'2024-02-29 12:30:45'",
    "'10:11:12'",
    "1.5",
    "2.5e0",
    "1e30",
    "10.0",
    "20240229",
    "20240229123045",
    "18446744073709551615",
    "-9223372036854775808",
    "DATE'2024-02-29'",
    "TIMESTAMP'2024-02-29 12:30:45'",
    "TIME'10:11:12'",
    "0x3130",
    "b'1010'",
    "TRUE",
    "NULL",
];
/// Types that are rare, or that MariaDB treats in ways of its own: how they are compared, and what
/// they are.
const RARE: &[(Kind, &str)] = &[
    (Kind::Decimal, "DOUBLE"),
    (Kind::Decimal, "FLOAT"),
    (Kind::Decimal, "DECIMAL(20,5)"),
    (Kind::Decimal, "DECIMAL(30,0)"),
    (Kind::Int, "BIGINT UNSIGNED"),
    (Kind::Int, "YEAR"),
    (Kind::Int, "MEDIUMINT ZEROFILL"),
    (Kind::DateTime, "TIMESTAMP(3)"),
    (Kind::DateTime, "TIME"),
    (Kind::Text("utf8mb4_bin"), "ENUM('a','b','10','abc','')"),
    (Kind::Text("utf8mb4_bin"), "SET('a','b','10')"),
    (Kind::Text("binary"), "VARBINARY(20)"),
    (Kind::Text("binary"), "BINARY(4)"),
    (
        Kind::Text("utf8mb4_0900_ai_ci"),
        "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci",
    ),
];
/// Lengths and positions, also unusual ones.
const COUNTS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "-1",
    "-2",
    "NULL",
    "40",
    "-40",
    "2147483648",
    "-2147483649",
];
/// Which of a partition's rows a window function sees.
const FRAMES: &[&str] = &[
    "",
    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING",
    " ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " ROWS 2 PRECEDING",
];
const COMPARISONS: &[&str] = &["=", "<", ">", "<=", ">=", "<>", "<=>", "="];
const ROWS_MAX: usize = 20;
/// The large table has so many times more rows, whose values are those of others, put together anew:
/// enough of the same value for indexes to be merged and leapt over.
const TIMES_LARGER: usize = 15;
/// Their keys are above those of all rows that statements name.
const LARGE_FROM: usize = 1000;
/// How deep queries nest in expressions.
const NESTED_MAX: u32 = 3;

/// A number that the subquery's column can't hold isn't among NULLs for MariaDB: `70000 NOT IN
/// (SELECT smallint …)` is true there, whatever is NULL. So only values that fit into every column
/// are looked for in a subquery.
fn fits_every_column(number: &str) -> String {
    format!("{number} BETWEEN 0 AND 127")
}

/// The columns of a derived table.
fn made(alias: &str) -> [Readable; 2] {
    [("n", Kind::Decimal), ("s", Kind::Text(COLLATIONS[0]))].map(|(column, kind)| Readable {
        text: format!("{alias}.{column}"),
        kind,
    })
}

/// Whether an expression may divide by zero.
fn divides(expression: &str) -> bool {
    [" / ", " % ", " DIV ", "MOD("]
        .iter()
        .any(|operator| expression.contains(operator))
}

pub struct Generator {
    random: fastrand::Rng,
    pub tables: Vec<Table>,
    /// In how many queries of expressions the next one would stand.
    nested: u32,
    aliases: u32,
    /// The common tables of the query being made: names, and what they are.
    commons: Vec<(String, String)>,
    /// Values of any types are compared, in columns of all types: what MariaDB answers otherwise.
    mixes: bool,
}

/// A query without grouping, in parts.
pub struct Parts {
    /// `WITH …`, or nothing.
    pub with: String,
    pub items: String,
    pub from: String,
    pub condition: String,
}

impl Generator {
    /// Of statements that MariaDB and Porpoise answer alike.
    pub fn new(seed: u64) -> Generator {
        Generator::of(seed, false)
    }

    /// Of statements on which Porpoise agrees with itself only.
    pub fn mixing(seed: u64) -> Generator {
        Generator::of(seed, true)
    }

    fn of(seed: u64, mixes: bool) -> Generator {
        let mut generator = Generator {
            random: fastrand::Rng::with_seed(seed),
            tables: Vec::new(),
            nested: 0,
            aliases: 0,
            commons: Vec::new(),
            mixes,
        };
        for number in 0..generator.random.usize(2..4) {
            let table = generator.table(number);
            generator.tables.push(table);
        }
        let mut large = generator.table(generator.tables.len());
        large.is_large = true;
        generator.tables.push(large);
        generator
    }

    /// Any table but the large one: what joins it to itself takes too long.
    fn any_table(&mut self) -> usize {
        self.random.usize(0..self.tables.len() - 1)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(0..100) < percent
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.random.usize(0..of.len())]
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("x{}", self.aliases)
    }

    fn table(&mut self, number: usize) -> Table {
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

    fn column(&mut self, number: usize) -> Column {
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
    fn enlarge(&mut self, table: usize) -> String {
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

    fn insert(&mut self, table: usize, verb: &str, id: usize, tail: &str) -> String {
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

    fn value(&mut self, kind: Kind, nullable: bool) -> String {
        if nullable && self.chance(15) {
            return "NULL".to_string();
        }
        match kind {
            Kind::Int if self.chance(80) => self.random.i32(-3..12).to_string(),
            kind => self.literal(kind).to_string(),
        }
    }

    fn literal(&mut self, kind: Kind) -> &'static str {
        self.pick(match kind {
            Kind::Int => INTEGERS,
            Kind::Decimal => DECIMALS,
            Kind::Text(_) => TEXTS,
            Kind::Date => DATES,
            Kind::DateTime => MOMENTS,
        })
    }

    fn readable(&self, table: usize, alias: &str) -> Vec<Readable> {
        let columns = self.tables[table].columns.iter();
        columns
            .map(|column| Readable {
                text: format!("{alias}.{}", column.name),
                kind: column.kind,
            })
            .collect()
    }

    fn any_of(&mut self, scope: &[Readable], is: impl Fn(Kind) -> bool) -> Option<String> {
        let fitting: Vec<&Readable> = scope.iter().filter(|column| is(column.kind)).collect();
        if fitting.is_empty() {
            return None;
        }
        Some(fitting[self.random.usize(0..fitting.len())].text.clone())
    }

    fn number(&mut self, scope: &[Readable], depth: u32) -> String {
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

    fn text(&mut self, scope: &[Readable], depth: u32) -> String {
        if depth == 0 || self.chance(30) {
            let column = self.any_of(scope, |kind| matches!(kind, Kind::Text(_)));
            return match column {
                Some(column) if self.chance(75) => column,
                _ => self.literal(Kind::Text("")).to_string(),
            };
        }
        let depth = depth - 1;
        let a = self.text(scope, depth);
        match self.random.u32(0..14) {
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
            12 => format!(
                "DATE_FORMAT({}, '{}')",
                self.moment(scope, depth),
                self.pick(&[
                    "%Y-%m-%d %H:%i",
                    "%W %M %e %D",
                    "%j %U %u %V %v %X %x",
                    "%H:%i:%s.%f",
                    "%y %c %b %a %w",
                    "%r %T %p %l %k",
                ])
            ),
            _ => format!(
                "INSERT({a}, {}, {}, {})",
                self.pick(COUNTS),
                self.pick(COUNTS),
                self.text(scope, 0)
            ),
        }
    }

    fn moment(&mut self, scope: &[Readable], depth: u32) -> String {
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
    fn pair(&mut self, scope: &[Readable], depth: u32) -> (String, String) {
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
    fn sargable(&mut self, column: &Readable) -> String {
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

    fn constant(&mut self, kind: Kind) -> String {
        if self.mixes && self.chance(50) {
            return self.pick(MIXED).to_string();
        }
        self.value(kind, false)
    }

    /// Conditions that select parts of indexes: on several columns, or by rows of columns. Rows come
    /// only where `alone` says that no outer join makes NULLs: MariaDB takes a comparison of rows
    /// to be unknown if any column of it is NULL.
    fn selective(&mut self, scope: &[Readable], depth: u32, alone: bool) -> String {
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
    fn on_keys(&mut self, [key, other]: [&[Readable]; 2]) -> String {
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

    /// A query of the large table's columns as they are, often those of a key.
    fn of_one_table(&mut self) -> String {
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

    fn condition(&mut self, scope: &[Readable], depth: u32) -> String {
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

    /// A query of one integer column, which may read the query around it.
    fn subquery(&mut self, outer: &[Readable]) -> String {
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
    fn inner_condition(
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

    fn scalar(&mut self, outer: &[Readable]) -> String {
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

    fn source(&mut self, scope: &mut Vec<Readable>) -> String {
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
            let (number, text) = (self.number(&own, depth), self.text(&own, 1));
            let condition = self.condition(&own, 1);
            // Which of equal texts is kept shows in what is made of it.
            let distinct = match self.mixes {
                true => "",
                false => self.pick(&["", "DISTINCT "]),
            };
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

    fn from(&mut self) -> (String, Vec<Readable>) {
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

    fn item(&mut self, scope: &[Readable], depth: u32) -> String {
        match self.random.u32(0..6) {
            0 | 1 => self.number(scope, depth),
            2 | 3 => self.text(scope, depth),
            4 => self.moment(scope, depth),
            _ => scope[self.random.usize(0..scope.len())].text.clone(),
        }
    }

    /// Without subqueries inside subqueries: MariaDB takes a column of the outer one, read in the
    /// inner one, for a column outside of the aggregate function (1140).
    fn aggregate(&mut self, scope: &[Readable]) -> String {
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
    fn with(&self) -> String {
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
    fn compound(&mut self) -> String {
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

    /// Window functions over a table's rows in an order that leaves nothing open.
    fn windows(&mut self) -> String {
        let table = self.any_table();
        let alias = self.alias();
        let scope = self.readable(table, &alias);
        let mut items = vec![format!("{alias}.id AS e0")];
        for at in 1..self.random.usize(2..5) {
            let (value, by) = (self.number(&scope, 1), self.number(&scope, 0));
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
                true => format!("PARTITION BY {} ", self.number(&scope, 1)),
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

    fn select(&mut self) -> String {
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
                    self.number(&scope, 1),
                    self.number(&scope, 0),
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
    fn give_default(&mut self, table: &Table, column: &mut Column) {
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

    /// A statement of thousands of literals: rows for an empty table `bulk` of a number and a text.
    pub fn bulk(&mut self) -> String {
        let rows: Vec<String> = (0..self.random.usize(2000..4500))
            .map(|id| format!("({id}, {})", self.literal(Kind::Text(""))))
            .collect();
        format!("INSERT INTO bulk VALUES {}", rows.join(", "))
    }

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
    fn change_joined(&mut self, table: usize) -> String {
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

    fn assignment(&mut self, table: usize, scope: &[Readable]) -> String {
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
