//! What expressions are made of: the server's own table of functions, a form a row, and the forms
//! that have a grammar of their own.

use std::sync::LazyLock;

use porpoise_expr::function::{ArgumentKind, Function, Purity};
use porpoise_functions::{AGGREGATES, all};

/// What stands in a place of a form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// An expression that is wanted as such a value.
    Value(ArgumentKind),
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// A call, an operator, or another expression with places for others.
#[derive(Debug)]
pub(super) struct Form {
    /// The name that it is reported under.
    pub name: &'static str,
    /// Text before, between and behind the places; where there are more places than parts, the last
    /// part but one stands between all further ones.
    parts: Vec<&'static str>,
    places: Vec<Place>,
    /// How many places it has.
    pub arity: (usize, usize),
    /// The same arguments give the same value.
    pub is_pure: bool,
}

impl Form {
    fn of_function(function: &'static Function) -> Form {
        let kinds = function.argument_kinds.iter().copied();
        Form {
            name: function.name,
            parts: vec![function.name, "(", ", ", ")"],
            places: kinds.map(Place::Value).collect(),
            arity: (
                function.arity.min,
                function
                    .arity
                    .max
                    .min(ARGUMENTS_MAX.max(function.arity.min)),
            ),
            is_pure: function.purity == Purity::Pure,
        }
    }

    fn of_template((text, places): &'static (&'static str, &'static [Place])) -> Form {
        Form {
            name: text,
            parts: text.split('@').collect(),
            places: places.to_vec(),
            arity: (places.len(), places.len()),
            is_pure: !text.starts_with("NOW") && !text.starts_with("UTC"),
        }
    }

    fn is_call(&self) -> bool {
        self.parts.len() == 4 && self.parts[1] == "("
    }

    /// What stands at a place.
    pub(super) fn place(&self, at: usize) -> Place {
        let place = self.places.get(at).or(self.places.last());
        place.copied().unwrap_or(Place::Value(ArgumentKind::Any))
    }

    /// The text before a place, or behind the last of `count`.
    pub(super) fn text_at(&self, at: usize, count: usize, sql: &mut String) {
        if self.is_call() {
            if at == 0 {
                sql.push_str(self.name);
                sql.push('(');
            }
            if at == count {
                sql.push(')');
            } else if at > 0 {
                sql.push_str(", ");
            }
            return;
        }
        sql.push_str(self.parts.get(at).copied().unwrap_or_default());
    }
}

/// Functions of any number of arguments get so many.
const ARGUMENTS_MAX: usize = 5;

/// They wait, for a time or for somebody, or end another.
const WAITING: &[&str] = &["SLEEP", "BENCHMARK", "GET_LOCK"];

const UNITS: Place = Place::OneOf(&[
    "MICROSECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
]);
const ALL_UNITS: Place = Place::OneOf(&[
    "MICROSECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
]);
const TYPES: Place = Place::OneOf(&[
    "SIGNED",
    "UNSIGNED",
    "CHAR",
    "CHAR(3)",
    "CHAR(0)",
    "CHAR CHARACTER SET latin1",
    "CHAR CHARACTER SET ascii",
    "BINARY",
    "BINARY(5)",
    "DATE",
    "DATETIME",
    "DATETIME(6)",
    "TIME",
    "TIME(3)",
    "DECIMAL",
    "DECIMAL(5,2)",
    "DECIMAL(65,30)",
    "DECIMAL(1,1)",
    "DOUBLE",
    "FLOAT",
    "JSON",
    "YEAR",
]);
const COMPARISONS: Place = Place::OneOf(&["=", "<=>", "<", "<=", ">", ">=", "<>"]);
const ARITHMETIC: Place = Place::OneOf(&["+", "-", "*", "/", "DIV", "%", "MOD"]);
const BITS: Place = Place::OneOf(&["&", "|", "^", "<<", ">>"]);
const LOGIC: Place = Place::OneOf(&["AND", "OR", "XOR"]);
const TRUTHS: Place = Place::OneOf(&["TRUE", "FALSE", "UNKNOWN", "NULL", "NOT NULL", "NOT TRUE"]);
const NOT: Place = Place::OneOf(&["", "NOT"]);
const QUANTIFIED: Place = Place::OneOf(&["= ANY", "<> ALL", "< ANY", ">= ALL", "IN", "NOT IN"]);
const CHARSETS: Place = Place::OneOf(&[
    "utf8mb4", "utf8mb3", "latin1", "ascii", "binary", "ucs2", "utf16", "utf32",
]);
const COLLATIONS: Place = Place::OneOf(&[
    "utf8mb4_bin",
    "utf8mb4_general_ci",
    "utf8mb4_0900_ai_ci",
    "utf8mb4_0900_as_cs",
    "utf8mb4_unicode_ci",
    "utf8mb4_german2_ci",
    "latin1_swedish_ci",
    "binary",
]);
const SIDES: Place = Place::OneOf(&["BOTH", "LEADING", "TRAILING"]);
const FORMATS: Place = Place::OneOf(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]);
const REGIONS: Place = Place::OneOf(&[
    "'EUR'",
    "'USA'",
    "'ISO'",
    "'JIS'",
    "'INTERNAL'",
    "'x'",
    "NULL",
]);
const RESPONSES: Place = Place::OneOf(&[
    "",
    "NULL ON EMPTY",
    "DEFAULT '1' ON EMPTY NULL ON ERROR",
    "ERROR ON EMPTY ERROR ON ERROR",
]);
const PATH_LITERALS: Place = Place::OneOf(&["'$'", "'$.a'", "'$[0]'", "'$[last]'", "'$**.b'"]);
const PRECISIONS: Place = Place::OneOf(&["", "0", "3", "6"]);

const ANY: Place = Place::Value(ArgumentKind::Any);
const NUMBER: Place = Place::Value(ArgumentKind::Number);
const TEXT: Place = Place::Value(ArgumentKind::String);
const MOMENT: Place = Place::Value(ArgumentKind::Temporal);
const DOCUMENT: Place = Place::Value(ArgumentKind::Json);

/// Expressions that aren't calls with a list of arguments; each @ is a place.
static TEMPLATES: &[(&str, &[Place])] = &[
    ("(@ @ @)", &[NUMBER, ARITHMETIC, NUMBER]),
    ("(@ @ @)", &[ANY, ARITHMETIC, ANY]),
    ("(@ @ @)", &[ANY, BITS, ANY]),
    ("(@ @ @)", &[ANY, COMPARISONS, ANY]),
    ("(@ @ @)", &[TEXT, COMPARISONS, TEXT]),
    ("(@ @ @)", &[MOMENT, COMPARISONS, ANY]),
    ("(@ @ @)", &[ANY, LOGIC, ANY]),
    ("(- @)", &[ANY]),
    ("(~ @)", &[ANY]),
    ("(! @)", &[ANY]),
    ("(NOT @)", &[ANY]),
    ("(@ IS @)", &[ANY, TRUTHS]),
    ("(@ @ BETWEEN @ AND @)", &[ANY, NOT, ANY, ANY]),
    ("(@ @ IN (@, @, @))", &[ANY, NOT, ANY, ANY, ANY]),
    ("((@, @) = (@, @))", &[ANY, ANY, ANY, ANY]),
    (
        "((@, @) IN ((@, @), (@, @)))",
        &[ANY, ANY, ANY, ANY, ANY, ANY],
    ),
    ("((@, @) < (@, @))", &[ANY, ANY, ANY, ANY]),
    (
        "(@ @ (SELECT @ UNION ALL SELECT @))",
        &[ANY, QUANTIFIED, ANY, ANY],
    ),
    ("(SELECT @ LIMIT 1)", &[ANY]),
    ("EXISTS (SELECT @ WHERE @)", &[ANY, ANY]),
    ("(@ @ LIKE @)", &[TEXT, NOT, TEXT]),
    ("(@ LIKE @ ESCAPE '|')", &[TEXT, TEXT]),
    ("(@ @ REGEXP @)", &[TEXT, NOT, TEXT]),
    ("(@ SOUNDS LIKE @)", &[TEXT, TEXT]),
    ("CASE @ WHEN @ THEN @ ELSE @ END", &[ANY, ANY, ANY, ANY]),
    (
        "CASE WHEN @ THEN @ WHEN @ THEN @ END",
        &[ANY, ANY, ANY, ANY],
    ),
    ("CAST(@ AS @)", &[ANY, TYPES]),
    ("CONVERT(@, @)", &[ANY, TYPES]),
    ("CONVERT(@ USING @)", &[TEXT, CHARSETS]),
    ("(@ COLLATE @)", &[TEXT, COLLATIONS]),
    ("BINARY @", &[ANY]),
    ("(@ + INTERVAL @ @)", &[MOMENT, ANY, ALL_UNITS]),
    ("(@ - INTERVAL @ @)", &[MOMENT, ANY, ALL_UNITS]),
    ("DATE_ADD(@, INTERVAL @ @)", &[ANY, ANY, ALL_UNITS]),
    ("DATE_SUB(@, INTERVAL @ @)", &[ANY, ANY, ALL_UNITS]),
    ("EXTRACT(@ FROM @)", &[ALL_UNITS, MOMENT]),
    ("TIMESTAMPADD(@, @, @)", &[UNITS, NUMBER, MOMENT]),
    ("TIMESTAMPDIFF(@, @, @)", &[UNITS, MOMENT, MOMENT]),
    ("GET_FORMAT(@, @)", &[FORMATS, REGIONS]),
    ("POSITION(@ IN @)", &[TEXT, TEXT]),
    ("SUBSTRING(@ FROM @ FOR @)", &[TEXT, NUMBER, NUMBER]),
    ("TRIM(@ @ FROM @)", &[SIDES, TEXT, TEXT]),
    ("CHAR(@ USING @)", &[NUMBER, CHARSETS]),
    ("WEIGHT_STRING(@ AS CHAR(3))", &[TEXT]),
    ("JSON_VALUE(@, @)", &[DOCUMENT, PATH_LITERALS]),
    (
        "JSON_VALUE(@, @ RETURNING @ @)",
        &[DOCUMENT, PATH_LITERALS, TYPES, RESPONSES],
    ),
    ("(@ MEMBER OF (@))", &[ANY, DOCUMENT]),
    ("UTC_TIME(@)", &[PRECISIONS]),
    ("NOW(@)", &[PRECISIONS]),
];

/// Aggregates over rows without a table.
static AGGREGATE_TEMPLATES: &[(&str, &[Place])] = &[
    ("COUNT(DISTINCT @)", &[ANY]),
    ("COUNT(DISTINCT @, @)", &[ANY, ANY]),
    ("SUM(DISTINCT @)", &[ANY]),
    ("AVG(DISTINCT @)", &[ANY]),
    (
        "GROUP_CONCAT(DISTINCT @ ORDER BY @ DESC SEPARATOR @)",
        &[ANY, ANY, Place::OneOf(&["','", "''", "'😀'"])],
    ),
    ("SUM(@) OVER (ORDER BY @)", &[ANY, ANY]),
    (
        "MIN(@) OVER (PARTITION BY @ ORDER BY @ ROWS 1 PRECEDING)",
        &[ANY, ANY, ANY],
    ),
    ("LAG(@, 1, @) OVER (ORDER BY @)", &[ANY, ANY, ANY]),
    ("FIRST_VALUE(@) OVER (ORDER BY @)", &[ANY, ANY]),
    ("NTH_VALUE(@, 2) OVER (ORDER BY @)", &[ANY, ANY]),
    ("NTILE(2) OVER (ORDER BY @)", &[ANY]),
    ("PERCENT_RANK() OVER (ORDER BY @)", &[ANY]),
    (
        "SUM(@) OVER (ORDER BY @ RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        &[ANY, NUMBER],
    ),
];

/// Scalar forms.
pub(super) static SCALARS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let templates: Vec<Form> = TEMPLATES.iter().map(Form::of_template).collect();
    // Some are called in no other way than by the words of a template.
    let has_grammar = |name: &str| {
        [
            "EXTRACT",
            "TIMESTAMPDIFF",
            "TIMESTAMPADD",
            "DATE_ADD",
            "DATE_SUB",
            "GET_FORMAT",
            "MEMBER OF",
        ]
        .contains(&name)
    };
    let called =
        all().filter(|function| !WAITING.contains(&function.name) && !has_grammar(function.name));
    called.map(Form::of_function).chain(templates).collect()
});

/// Aggregates and window functions.
pub(super) static AGGREGATE_FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let rows = AGGREGATES.iter().map(|row| Form {
        name: row.name,
        parts: vec![row.name, "(", ", ", ")"],
        places: row
            .argument_kinds
            .iter()
            .copied()
            .map(Place::Value)
            .collect(),
        arity: (
            row.arity.min.max(1),
            row.arity.max.min(2).max(row.arity.min),
        ),
        is_pure: true,
    });
    let templates = AGGREGATE_TEMPLATES.iter().map(Form::of_template);
    rows.chain(templates).collect()
});
