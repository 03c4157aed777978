//! Random schemas, rows and statements, all made of one seed.
//!
//! Expressions are kept to what both products promise to answer alike: numbers are compared with
//! numbers, texts with texts, temporal values with temporal values; sums are of exact numbers; a
//! LIMIT follows only an ORDER BY of everything. What a query may still leave open, the order of
//! its rows and which of two equal texts stands for a group, is for the comparison to allow.

mod changes;
mod expressions;
mod queries;
mod schema;
mod values;

/// As what a column is compared and computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Decimal,
    Text(&'static str),
    Date,
    DateTime,
}

/// A column of a random table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    kind: Kind,
    definition: String,
    nullable: bool,
    /// It is computed from others: no value can be given for it.
    pub is_generated: bool,
}

/// A random table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, `id` first.
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

/// The statement with other texts, longer and shorter ones, where it has constant texts.
pub fn with_other_texts(sql: &str) -> String {
    let mut parts = sql.split('\'');
    let mut other = parts.next().unwrap_or_default().to_string();
    while let (Some(text), Some(behind)) = (parts.next(), parts.next()) {
        let literal = format!("'{text}'");
        let known = TEXTS.iter().position(|known| *known == literal);
        // A date's literal has its type before it.
        let known = known.filter(|_| !other.ends_with(char::is_alphanumeric));
        let text = known.map_or(literal.as_str(), |at| TEXTS[(at + 4) % TEXTS.len()]);
        other.push_str(text);
        other.push_str(behind);
    }
    other
}

/// Whether an expression may divide by zero.
fn divides(expression: &str) -> bool {
    [" / ", " % ", " DIV ", "MOD("]
        .iter()
        .any(|operator| expression.contains(operator))
}

/// Makes tables, rows and statements of a seed.
pub struct Generator {
    random: fastrand::Rng,
    /// The tables; the last one is large.
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
    /// What is selected.
    pub items: String,
    /// The tables.
    pub from: String,
    /// A condition on their rows.
    pub condition: String,
}

/// Two tables, and a condition on a row `a` of the first and a row `b` of the other.
pub struct Pivot {
    /// Their names.
    pub tables: [String; 2],
    /// The condition.
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

    /// Two tables side by side, and a condition on a row of each.
    pub fn pivot(&mut self) -> Pivot {
        self.nested = 0;
        self.commons.clear();
        let (one, other) = (self.any_table(), self.random.usize(0..self.tables.len()));
        let scope = [self.readable(one, "a"), self.readable(other, "b")].concat();
        let condition = match self.chance(40) {
            true => self.selective(&scope, 2, true),
            false => self.condition(&scope, 2),
        };
        let tables = [one, other].map(|at| self.tables[at].name.clone());
        Pivot { tables, condition }
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
}
