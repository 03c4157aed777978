//! Every function and operator of `templates.txt` over columns and constants of every type, on
//! Porpoise and on a MySQL server. What differs is printed by template, for somebody to read: in
//! some corners MySQL's answer is no model (a date made of the number 2.5).

use std::collections::BTreeMap;

use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::Wire;

use crate::answer::Answer;

const TEMPLATES: &str = include_str!("templates.txt");
/// Templates of more than one argument are tried with so many arguments, by chance.
const TRIES: usize = 60;
/// How many differences of a template are shown.
const SHOWN_MAX: usize = 3;

/// Columns with their types, and two values of each; a third row is NULL.
const COLUMNS: &[(&str, &str, [&str; 2])] = &[
    ("ti", "TINYINT", ["-5", "0"]),
    ("iu", "INT UNSIGNED", ["7", "4294967295"]),
    ("bi", "BIGINT", ["-9000000000", "255"]),
    ("bu", "BIGINT UNSIGNED", ["18446744073709551615", "1"]),
    ("de", "DECIMAL(10, 3)", ["12.345", "-0.005"]),
    ("fl", "FLOAT", ["1.5", "-0.1"]),
    ("db", "DOUBLE", ["-2.25", "1e20"]),
    ("ch", "CHAR(10)", ["'abc'", "''"]),
    ("vc", "VARCHAR(40)", ["'12abc'", "' 7 '"]),
    (
        "vl",
        "VARCHAR(40) CHARACTER SET latin1",
        ["'Ab'", "'10:11:12'"],
    ),
    ("bn", "BINARY(5)", ["'ab'", "''"]),
    ("vb", "VARBINARY(20)", ["'AB'", "'1'"]),
    ("tx", "TEXT", ["'2001-02-03'", "'Hello, World'"]),
    ("bl", "BLOB", ["'xyz'", "'5'"]),
    ("en", "ENUM('a', 'b', '10')", ["'b'", "'10'"]),
    ("se", "SET('x', 'y', 'z')", ["'x,z'", "''"]),
    ("bt", "BIT(8)", ["b'1000001'", "b'0'"]),
    ("ye", "YEAR", ["2001", "1999"]),
    ("da", "DATE", ["'2001-02-03'", "'1970-01-01'"]),
    ("tm", "TIME", ["'10:20:30'", "'-838:59:59'"]),
    ("t3", "TIME(3)", ["'-01:02:03.456'", "'00:00:00.001'"]),
    (
        "dt",
        "DATETIME",
        ["'2004-02-29 23:59:58'", "'1970-01-01 00:00:01'"],
    ),
    (
        "d6",
        "DATETIME(6)",
        ["'1999-12-31 23:59:59.999999'", "'2038-01-19 03:14:07.5'"],
    ),
    (
        "ts",
        "TIMESTAMP NULL",
        ["'2010-10-10 10:10:10'", "'2001-09-09 01:46:40'"],
    ),
    (
        "js",
        "JSON",
        ["'{\"a\": 1, \"b\": [1, 2.5, \"x\"]}'", "'[1, 2, 3]'"],
    ),
];

const CONSTANTS: &[&str] = &[
    "1",
    "0",
    "-3",
    "'a'",
    "'12'",
    "''",
    "'abcdefgh'",
    "'2001-02-03'",
    "'10:20:30.5'",
    "'2001-02-03 04:05:06'",
    "2.5",
    "1234.56789",
    "1e2",
    "NULL",
    "x'41'",
    "20010203",
    "101112",
    "DATE'2001-02-03'",
    "TIME'10:20:30'",
    "TIMESTAMP'2001-02-03 04:05:06.5'",
];

fn set_up() -> Vec<String> {
    let list = |part: fn(&(&str, &str, [&str; 2])) -> String| {
        COLUMNS.iter().map(part).collect::<Vec<_>>().join(", ")
    };
    let mut statements = vec![
        "SET time_zone = '+00:00'".to_string(),
        "DROP DATABASE IF EXISTS templates".to_string(),
        "CREATE DATABASE templates".to_string(),
        "USE templates".to_string(),
        format!(
            "CREATE TABLE t (id INT PRIMARY KEY, {})",
            list(|(name, ty, _)| format!("{name} {ty}"))
        ),
        "INSERT INTO t (id) VALUES (3)".to_string(),
    ];
    for (id, values) in [
        (1, list(|(_, _, values)| values[0].to_string())),
        (2, list(|(_, _, values)| values[1].to_string())),
    ] {
        statements.push(format!("INSERT INTO t VALUES ({id}, {values})"));
    }
    statements
}

/// A template with its arguments filled in.
fn filled(template: &str, mut argument: impl FnMut() -> &'static str) -> String {
    let mut parts = template.split('@');
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        text.push_str(argument());
        text.push_str(part);
    }
    text
}

/// The queries of a template: one for every argument of a template of one.
fn queries(template: &str, random: &mut fastrand::Rng) -> Vec<String> {
    let columns = COLUMNS.iter().map(|(name, ..)| *name);
    let arguments: Vec<&'static str> = columns.chain(CONSTANTS.iter().copied()).collect();
    let expressions: Vec<String> = match template.matches('@').count() {
        1 => arguments
            .iter()
            .map(|argument| filled(template, || argument))
            .collect(),
        _ => (0..TRIES)
            .map(|_| filled(template, || arguments[random.usize(0..arguments.len())]))
            .collect(),
    };
    let is_scalar = |expression: &str| !AGGREGATES.iter().any(|name| expression.starts_with(name));
    let query = |expression: String| match is_scalar(&expression) || expression.contains(" over ") {
        true => format!("SELECT id, {expression} FROM t"),
        false => format!("SELECT {expression} FROM t"),
    };
    expressions.into_iter().map(query).collect()
}

/// What makes one row of all.
const AGGREGATES: &[&str] = &[
    "sum(",
    "avg(",
    "min(",
    "max(",
    "count(",
    "group_concat(",
    "bit_and(",
    "bit_or(",
    "bit_xor(",
    "std(",
    "var_samp(",
    "json_arrayagg(",
];

/// Whether two answers differ; of refusals the numbers have to be the same.
fn differ(theirs: &Answer, ours: &Answer) -> bool {
    match (theirs, ours) {
        (Answer::Refused(a, _), Answer::Refused(b, _)) => a != b,
        (Answer::Rows(a), Answer::Rows(b)) => a != b,
        _ => true,
    }
}

#[test]
#[ignore = "needs a MySQL server, named by PORPOISE_MYSQL_SOCKET"]
fn functions_of_all_types_on_mysql() {
    compare_with(Product::MySql);
}

#[test]
#[ignore = "prints what differs from MariaDB, for somebody to read: much is as MySQL has it"]
fn functions_of_all_types_on_mariadb() {
    compare_with(Product::MariaDb);
}

fn compare_with(peer: Product) {
    let servers = [peer, Product::Porpoise].map(Server::start);
    let connect = |server: &Server| server.connect(Route::UnixSocket, "").expect("root logs in");
    let [mut theirs, mut ours]: [Wire; 2] = [connect(&servers[0]), connect(&servers[1])];
    for sql in set_up() {
        for wire in [&mut theirs, &mut ours] {
            wire.query(&sql)
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
    let mut random = fastrand::Rng::with_seed(1);
    let mut differing: BTreeMap<&str, usize> = BTreeMap::new();
    let mut asked = 0;
    let templates = TEMPLATES.lines().filter(|line| !line.starts_with('#'));
    for template in templates {
        for sql in queries(template, &mut random) {
            asked += 1;
            let (expected, got) = (Answer::to(&mut theirs, &sql), Answer::to(&mut ours, &sql));
            if !differ(&expected, &got) {
                continue;
            }
            let seen = differing.entry(template).or_default();
            *seen += 1;
            if *seen <= SHOWN_MAX {
                println!(
                    "{sql}\n  expected {}\n       got {}",
                    expected.shown(),
                    got.shown()
                );
            }
        }
    }
    for (template, count) in &differing {
        println!("{count:4} {template}");
    }
    let count: usize = differing.values().sum();
    println!(
        "{asked} expressions, {count} differ, of {} templates",
        differing.len()
    );
    assert_eq!(count, 0, "of {asked} expressions");
}
