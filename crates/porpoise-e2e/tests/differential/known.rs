//! Where the servers are known to differ, and why: MariaDB isn't MySQL, or isn't right.
//!
//! A rule looks at the statement and at both answers. What it explains is counted under its reason
//! instead of being printed.

use porpoise_e2e::server::Product;

use crate::answer::{Answer, fold};

/// A reason why two answers differ, and when it holds.
struct Rule {
    peer: Product,
    reason: &'static str,
    holds: fn(&str, &Answer, &Answer) -> bool,
}

/// How statements begin that change rows.
const CHANGES: [&str; 4] = ["INSERT ", "REPLACE ", "UPDATE ", "DELETE "];
/// Nine digits behind the point, a word of MariaDB's decimals, are right in any quotient.
const DIVIDED_BY: f64 = 1e-8;

/// The last digit behind the point that a decimal of MySQL can have is rounded.
const SCALE_MAX: usize = 30;

const RULES: &[Rule] = &[
    Rule {
        peer: Product::MySql,
        reason: "MySQL 9 takes mixes of collations that the manual of 8.4 refuses",
        holds: |_, expected, got| {
            is_answered(expected) && matches!(got, Answer::Refused(1267 | 1270 | 1271, _))
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB has no total of no rows",
        holds: |sql, expected, got| match (expected, got) {
            (Answer::Rows(expected), Answer::Rows(got)) => {
                sql.contains(" WITH ROLLUP") && expected.is_empty() && got.len() == 1
            }
            _ => false,
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "what CAST cuts off is an error where strict mode changes rows, as in MySQL",
        holds: |sql, expected, got| {
            let types = ["CHAR(", "BINARY("].map(|ty| format!("Truncated incorrect {ty}"));
            let cuts = |text: &String| types.iter().any(|told| text.starts_with(told));
            sql.contains("CAST(")
                && matches!(expected, Answer::Done(_))
                && matches!(got, Answer::Refused(1292, text) if cuts(text))
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "a key of a column that becomes a TEXT needs a length, as in MySQL",
        holds: |sql, expected, got| {
            sql.starts_with("ALTER TABLE ")
                && sql.contains(" TEXT")
                && is_answered(expected)
                && matches!(got, Answer::Refused(1170, _))
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB doesn't drop a column of a unique key, or change one that others are made of",
        holds: |sql, expected, got| {
            sql.starts_with("ALTER TABLE ")
                && matches!(expected, Answer::Refused(1072 | 1901, _))
                && is_answered(got)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "texts of all character sets are stored alike: no list of them is refused that loses nothing",
        holds: |sql, expected, got| {
            let is_mix = matches!(expected, Answer::Refused(1271, text) if text.contains("'in'"));
            is_mix && sql.contains(" IN (") && is_answered(got)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB shows a digit behind the point of whole numbers that are rounded to one",
        holds: |sql, expected, got| {
            ["ROUND(", "TRUNCATE("]
                .iter()
                .any(|call| sql.contains(call))
                && expected.is_roughly(got, 0.0)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB cuts off the fraction of a text that becomes an integer by ALTER TABLE",
        holds: |sql, expected, got| {
            let is_to_integer = sql.starts_with("ALTER TABLE ")
                && sql.contains(" MODIFY COLUMN ")
                && (sql.contains("INT") || sql.contains("YEAR"));
            let fraction = matches!(expected, Answer::Refused(1292, text) if text.contains('.'));
            is_to_integer && (fraction && is_answered(got) || differ_by_rounding(expected, got))
        },
    },
    Rule {
        peer: Product::MariaDb,
        // A query is asked again, with comparisons; a change can't be.
        reason: "MariaDB misses rows by lists of rows, where columns differ in their character sets",
        holds: |sql, expected, got| {
            let changes = ["UPDATE ", "DELETE "];
            changes.iter().any(|word| sql.starts_with(word))
                && sql.contains(") IN ((")
                && matches!((expected, got), (Answer::Done(a), Answer::Done(b)) if a < b)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB groups by digits of a quotient that it doesn't show",
        holds: |sql, expected, got| {
            sql.contains(" / ") && sql.contains(" GROUP BY e") && groups_more(expected, got)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB makes several groups of one value of a subquery, WITH ROLLUP",
        holds: |sql, expected, got| {
            sql.starts_with("SELECT (SELECT ")
                && sql.contains(" GROUP BY e0")
                && sql.contains(" WITH ROLLUP")
                && groups_more(expected, got)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB takes TIMESTAMPDIFF() in two units for one expression",
        holds: |sql, _, got| {
            let calls = sql.split("TIMESTAMPDIFF(").skip(1);
            let units: Vec<&str> = calls.filter_map(|call| call.split(',').next()).collect();
            is_answered(got) && units.iter().any(|unit| *unit != units[0])
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB doesn't compute virtual columns of the rows that it writes",
        holds: |sql, expected, got| {
            let is_write = ["INSERT ", "REPLACE ", "UPDATE "];
            let Answer::Refused(1292, text) = got else {
                return false;
            };
            let value = [
                "Truncated incorrect DOUBLE value: ",
                "Incorrect datetime value: ",
            ]
            .iter()
            .find_map(|told| text.strip_prefix(told));
            is_write.iter().any(|word| sql.starts_with(word))
                && matches!(expected, Answer::Done(_))
                && value.is_some_and(|value| sql.contains(value.trim_matches('\'')))
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB rounds a quotient as it puts it into a temporary table, and aggregates that",
        holds: |sql, expected, got| {
            let calls = ["AVG((", "AVG(DISTINCT ("];
            let is_average = calls.iter().any(|call| sql.contains(call));
            let sums = ["SUM((", "SUM(DISTINCT ("];
            let is_sum = sums.iter().any(|call| sql.contains(call));
            sql.contains(" / ")
                && (is_average || is_sum)
                && same_but(expected, got, |a, b| {
                    is_rounded_before(a, b, is_sum, is_average)
                })
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB's common type of decimals and integers has too few digits for the integers",
        holds: |_, expected, got| {
            let is_full = |text: &str| {
                let digits = text.strip_prefix('-').unwrap_or(text);
                digits.len() > NINES_MIN
                    && digits.contains('.')
                    && digits.chars().all(|c| matches!(c, '9' | '.'))
            };
            same_but(expected, got, |a, b| match (number(a), number(b)) {
                (Some(x), Some(y)) => {
                    is_full(a) && y.abs() > x.abs() && x.is_sign_negative() == y.is_sign_negative()
                }
                _ => false,
            })
        },
    },
    Rule {
        peer: Product::MariaDb,
        // A query is asked again, with comparisons; a change can't be. By the manual they are
        // comparisons.
        reason: "MariaDB's BETWEEN and IN see digits of a quotient that its `=` doesn't",
        holds: |sql, expected, got| {
            let is_change = CHANGES.iter().any(|word| sql.starts_with(word));
            (is_change || matches!((expected, got), (Answer::Done(_), Answer::Done(_))))
                && !matches!(
                    (expected, got),
                    (Answer::Refused(..), _) | (_, Answer::Refused(..))
                )
                && compares_quotient_with_several(sql)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB divides a value of CASE by the digits that it has, and not by those of its type",
        holds: |sql, expected, got| {
            let choices = ["CASE ", "IF(", "COALESCE(", "IFNULL("];
            sql.contains(" / ")
                && choices.iter().any(|choice| sql.contains(choice))
                && expected.is_roughly(got, DIVIDED_BY)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB's decimals have up to 38 digits behind the point, those of MySQL up to 30",
        holds: |sql, expected, got| sql.contains(" / ") && same_but(expected, got, is_cut_to_scale),
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB computes the virtual columns of rows that ALTER TABLE copies, though it stores none",
        holds: |sql, expected, got| {
            sql.starts_with("ALTER TABLE ")
                && sql.contains(" ADD COLUMN ")
                && matches!(expected, Answer::Refused(1292, text) if text.starts_with("Truncated incorrect DOUBLE value"))
                && matches!(got, Answer::Done(_))
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB counts weeks of the date zero below zero, and has no week or day of it in DATE_FORMAT",
        holds: |sql, expected, got| {
            /// What a week below zero becomes without a sign.
            const WRAPPED: &str = "613566757";
            (sql.contains("DATE_FORMAT(") || sql.contains("EXTRACT(WEEK FROM"))
                && same_but(expected, got, |a, b| {
                    a == WRAPPED && b == "0" || a == NULL && b.starts_with("000 01 ")
                })
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB converts the least and the greatest text of a CAST to its character set twice",
        holds: |sql, expected, got| {
            let calls = ["MIN(CAST(", "MAX(CAST("];
            calls.iter().any(|call| sql.contains(call))
                && same_but(expected, got, |a, b| {
                    let lost = |c: char| if c.is_ascii() { c } else { '?' };
                    !b.is_ascii()
                        && (a == b.chars().map(lost).collect::<String>() || *a == as_latin1(b))
                })
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB makes a second of half a second of the date zero, which rounding can't leave",
        holds: |sql, expected, got| {
            sql.starts_with("ALTER TABLE ")
                && (sql.contains(" DATETIME") || sql.contains(" TIMESTAMP"))
                && same_but(expected, got, |a, b| {
                    a == "0000-00-00 00:00:01" && b == "0000-00-00 00:00:00"
                })
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "the date zero is NULL to functions of dates, without a warning that strict mode makes an error",
        holds: |sql, expected, got| {
            let zero = "Incorrect datetime value: '0000-00-00";
            let changes = ["UPDATE ", "DELETE ", "INSERT ", "REPLACE "];
            changes.iter().any(|word| sql.starts_with(word))
                && matches!(expected, Answer::Refused(1292, text) if text.starts_with(zero))
                && matches!(got, Answer::Done(_))
        },
    },
    Rule {
        peer: Product::MariaDb,
        // A query is asked again without keys; a change can't be.
        reason: "MariaDB looks up a time with a fraction by a key as if it had none",
        holds: |sql, expected, got| {
            let changes = ["UPDATE ", "DELETE "];
            changes.iter().any(|word| sql.starts_with(word))
                && sql.contains(" = '")
                && sql.contains(":03.456789'")
                && matches!((expected, got), (Answer::Done(a), Answer::Done(b)) if a > b)
        },
    },
];

/// A value of so many characters, all nines but the point, is the greatest of its type.
const NINES_MIN: usize = 5;

fn is_answered(answer: &Answer) -> bool {
    matches!(answer, Answer::Rows(_) | Answer::Done(_))
}

/// Refused for a value that an expression has: a division by zero, a date or a number that is too
/// large.
pub fn is_failure(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(1365 | 1441 | 1690, _))
}

/// NULL among the values that [`same_but`] compares.
const NULL: &str = "NULL";

/// How many values a sum has at most that is explained by their rounding.
const SUMMED_MAX: f64 = 2_000.0;
/// How many digits an average has more than what it is of.
const AVERAGE_DIGITS: i32 = 4;

/// Whether two sums or averages differ by no more than what rounding each value can make. A sum has
/// as many digits behind the point as its values, of which rounding takes half a unit each; an
/// average, of four digits more, differs by half a unit of its values, and by one of its own.
fn is_rounded_before(a: &str, b: &str, is_sum: bool, is_average: bool) -> bool {
    let digits = |text: &str| text.split_once('.').map(|(_, digits)| digits.len() as i32);
    let (Some(x), Some(y), Some(scale)) = (number(a), number(b), digits(a)) else {
        return false;
    };
    if digits(b) != Some(scale) || a.contains('e') || b.contains('e') {
        return false;
    }
    let unit = 10f64.powi(-scale);
    let of_sum = if is_sum { SUMMED_MAX * unit / 2.0 } else { 0.0 };
    let of_average = match is_average {
        true => 10f64.powi(AVERAGE_DIGITS - scale) / 2.0 + unit,
        false => 0.0,
    };
    // The difference of two doubles: its last digits aren't those of the decimals.
    let error = (x.abs() + y.abs()) * f64::EPSILON;
    (x - y).abs() <= of_sum.max(of_average) + error
}

#[test]
fn sums_of_rounded_values_are_near() {
    assert!(is_rounded_before("0.3333", "0.3340", true, false));
    assert!(!is_rounded_before("0.33333333", "0.33400000", true, false));
    assert!(is_rounded_before("0.83333333", "0.83335000", false, true));
    assert!(!is_rounded_before("0.83333333", "0.83345000", false, true));
    assert!(!is_rounded_before("0.333", "0.3333", true, true));
    assert!(!is_rounded_before("3", "4", true, true));
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Whether two texts are the same but for digits behind a point that MySQL's decimals don't have.
fn is_cut_to_scale(a: &str, b: &str) -> bool {
    let cut = |text: &str| {
        let mut digits = None;
        let kept = text.chars().filter(|c| {
            digits = match (c, digits) {
                ('.', _) => Some(0),
                ('0'..='9', Some(before)) => Some(before + 1),
                _ => None,
            };
            digits.is_none_or(|behind| behind < SCALE_MAX)
        });
        kept.collect::<String>()
    };
    a != b && cut(a) == cut(b)
}

#[test]
fn digits_beyond_the_scale_are_found() {
    let (long, short) = (
        "-0.02".to_string() + &"0".repeat(32),
        "-0.02".to_string() + &"0".repeat(28),
    );
    assert!(is_cut_to_scale(
        &format!("{long}{long};1"),
        &format!("{short}{short};1")
    ));
    assert!(!is_cut_to_scale("0.02", "0.03"));
    assert!(!is_cut_to_scale("0.02", "0.020"));
}

/// Whether two answers have the same rows but for values that are explained.
fn same_but(expected: &Answer, got: &Answer, explained: impl Fn(&str, &str) -> bool) -> bool {
    let (Answer::Rows(expected), Answer::Rows(got)) = (expected, got) else {
        return false;
    };
    let text = |value: &Option<Vec<u8>>| match value {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => NULL.to_string(),
    };
    let is_same = |a: &Option<Vec<u8>>, b: &Option<Vec<u8>>| {
        fold(a) == fold(b) || explained(&text(a), &text(b))
    };
    let mut left: Vec<_> = got.iter().collect();
    expected.len() == got.len()
        && expected.iter().all(|row| {
            // The same row rather than one that is explained.
            let exact = left.iter().position(|other| *other == row);
            let found = exact.or_else(|| {
                left.iter()
                    .position(|other| row.iter().zip(*other).all(|(a, b)| is_same(a, b)))
            });
            found.map(|at| left.swap_remove(at)).is_some()
        })
}

/// The characters that a text's bytes are in latin1.
fn as_latin1(text: &str) -> String {
    const C1: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    let of_byte = |byte: u8| match byte {
        0x80..=0x9F => C1.chars().nth(usize::from(byte - 0x80)).unwrap_or('?'),
        _ => char::from(byte),
    };
    text.bytes().map(of_byte).collect()
}

/// Whether a quotient, `(a / b)`, is an operand of BETWEEN or IN.
fn compares_quotient_with_several(sql: &str) -> bool {
    sql.match_indices(" / ").any(|(at, _)| {
        let (before, after) = (&sql[..at], &sql[at..]);
        let (Some(from), Some(to)) = (before.rfind('('), after.find(')')) else {
            return false;
        };
        let (before, after) = (&before[..from], &after[to + 1..]);
        let is_bound = [" BETWEEN ", " AND "]
            .iter()
            .any(|word| before.ends_with(word));
        let operators = [" BETWEEN ", " NOT BETWEEN ", " IN (", " NOT IN ("];
        (is_bound && before.contains(" BETWEEN "))
            || operators.iter().any(|word| after.starts_with(word))
    })
}

#[test]
fn quotients_are_found_beside_between_and_in() {
    for sql in [
        "SELECT 1 WHERE (0 BETWEEN (100 / x.a) AND (100 / x.a))",
        "SELECT 1 WHERE ((x.a / 3) NOT IN (1, 2))",
        "SELECT 1 WHERE (x.a BETWEEN 0 AND (1 / 3))",
    ] {
        assert!(compares_quotient_with_several(sql), "{sql}");
    }
    let plain = "SELECT (a / b) FROM t WHERE a BETWEEN 0 AND 127 AND b IN (1, 2)";
    assert!(!compares_quotient_with_several(plain));
}

fn groups_more(expected: &Answer, got: &Answer) -> bool {
    matches!((expected, got), (Answer::Rows(a), Answer::Rows(b)) if a.len() > b.len())
}

/// Whether two answers are the same but for integers next to each other.
fn differ_by_rounding(a: &Answer, b: &Answer) -> bool {
    let (Answer::Rows(a), Answer::Rows(b)) = (a, b) else {
        return false;
    };
    let number = |value: &Option<Vec<u8>>| -> Option<i64> {
        std::str::from_utf8(value.as_deref()?).ok()?.parse().ok()
    };
    let is_near = |(a, b): (&Option<Vec<u8>>, &Option<Vec<u8>>)| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.abs_diff(b) <= 1,
        _ => a == b,
    };
    a.len() == b.len() && a.iter().flatten().zip(b.iter().flatten()).all(is_near)
}

/// The reason why a peer's answer differs from Porpoise's, if it is a known one.
pub fn reason(peer: Product, sql: &str, expected: &Answer, got: &Answer) -> Option<&'static str> {
    let mut rules = RULES.iter().filter(|rule| rule.peer == peer);
    let found = rules.find(|rule| (rule.holds)(sql, expected, got))?;
    Some(found.reason)
}
