//! Where the servers are known to differ, and why: MariaDB isn't MySQL, or isn't right.
//!
//! A rule looks at the statement and at both answers. What it explains is counted under its reason
//! instead of being printed.

use porpoise_e2e::server::Product;

use crate::answer::Answer;

/// A reason why two answers differ, and when it holds.
struct Rule {
    peer: Product,
    reason: &'static str,
    holds: fn(&str, &Answer, &Answer) -> bool,
}

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
            let cuts = |text: &String| text.starts_with("Truncated incorrect CHAR(");
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
        reason: "what fails needn't be computed: behind a LIMIT, or beside what is true already",
        holds: |sql, expected, got| {
            let fails = |answer: &Answer| matches!(answer, Answer::Refused(1365 | 1441 | 1690, _));
            (sql.contains(" LIMIT ") || sql.contains(" OR "))
                && (fails(expected) && is_answered(got) || fails(got) && is_answered(expected))
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
        reason: "MariaDB takes FIELD() and INTERVAL() of NULL for NULL, and an outer join for an inner one",
        holds: |sql, expected, got| match (expected, got) {
            (Answer::Rows(expected), Answer::Rows(got)) => {
                (sql.contains("FIELD(") || sql.contains("INTERVAL("))
                    && [" LEFT JOIN ", " RIGHT JOIN "]
                        .iter()
                        .any(|join| sql.contains(join))
                    && (sql.contains(" LIMIT ")
                        || expected.len() < got.len()
                            && expected.iter().all(|row| got.contains(row)))
            }
            _ => false,
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB's GROUP_CONCAT takes the NULL of a subquery for ''",
        holds: |sql, expected, got| {
            let calls = ["GROUP_CONCAT((SELECT", "GROUP_CONCAT(DISTINCT (SELECT"];
            calls.iter().any(|call| sql.contains(call)) && same_number_of_rows(expected, got)
        },
    },
    Rule {
        peer: Product::MariaDb,
        reason: "MariaDB rounds a quotient as it puts it into a temporary table, and aggregates that",
        holds: |sql, expected, got| {
            let aggregates = ["AVG((", "SUM((", "AVG(DISTINCT (", "SUM(DISTINCT ("];
            sql.contains(" / ")
                && aggregates.iter().any(|call| sql.contains(call))
                && expected.is_roughly(got, 1e-2)
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
        reason: "MariaDB's common type of decimals and integers has too few digits for the integers",
        holds: |_, expected, got| {
            let is_full = |value: &Option<Vec<u8>>| {
                let value = value.as_deref().unwrap_or_default();
                let digits = value.strip_prefix(b"-").unwrap_or(value);
                digits.len() > NINES_MIN
                    && digits.contains(&b'.')
                    && digits.iter().all(|c| matches!(c, b'9' | b'.'))
            };
            match expected {
                Answer::Rows(rows) => {
                    rows.iter().flatten().any(is_full) && same_number_of_rows(expected, got)
                }
                _ => false,
            }
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
        // By the manual they are comparisons.
        reason: "MariaDB's BETWEEN and IN see digits of a quotient that its `=` doesn't",
        holds: |sql, expected, got| {
            is_answered(expected) && is_answered(got) && compares_quotient_with_several(sql)
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
];

/// A value of so many characters, all nines but the point, is the greatest of its type.
const NINES_MIN: usize = 5;

fn is_answered(answer: &Answer) -> bool {
    matches!(answer, Answer::Rows(_) | Answer::Done(_))
}

fn same_number_of_rows(a: &Answer, b: &Answer) -> bool {
    matches!((a, b), (Answer::Rows(a), Answer::Rows(b)) if a.len() == b.len())
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

/// `(a, b) IN ((1, 2), (3, 4))` as comparisons of values, which has to have the same rows. `None`
/// where a statement has no such list.
pub fn rows_as_comparisons(sql: &str) -> Option<String> {
    const IN: &str = ") IN ((";
    let at = sql.find(IN)?;
    let from = sql[..at].rfind('(')?;
    let operands: Vec<&str> = sql[from + 1..at].split(", ").collect();
    let is_name = |operand: &&str| operand.chars().all(|c| c.is_alphanumeric() || c == '.');
    if operands.len() < 2 || !operands.iter().all(is_name) {
        return None;
    }
    let list = &sql[at + IN.len() - 1..];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut depth, mut is_quoted, mut end) = (0, false, None);
    for (place, c) in list.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => {
                depth += 1;
                rows.push(vec![String::new()]);
                continue;
            }
            ')' if !is_quoted && depth == 0 => {
                end = Some(place + 1);
                break;
            }
            ')' if !is_quoted => {
                depth -= 1;
                continue;
            }
            ',' if !is_quoted && depth == 1 => {
                rows.last_mut()?.push(String::new());
                continue;
            }
            _ => {}
        }
        if depth == 1 {
            rows.last_mut()?.last_mut()?.push(c);
        }
    }
    let one = |row: &Vec<String>| {
        let pairs = operands.iter().zip(row);
        let pairs = pairs.map(|(operand, value)| format!("{operand} = {}", value.trim()));
        format!("({})", pairs.collect::<Vec<_>>().join(" AND "))
    };
    let rows: Vec<String> = rows.iter().map(one).collect();
    let rest = &list[end?..];
    let so_far = format!("{}({})", &sql[..from], rows.join(" OR "));
    let rest = rows_as_comparisons(rest).unwrap_or_else(|| rest.to_string());
    Some(format!("{so_far}{rest}"))
}

#[test]
fn a_list_of_rows_becomes_comparisons() {
    assert_eq!(
        rows_as_comparisons("SELECT 1 FROM t WHERE (a, t.b) IN (('x,)', 1), ('y', NULL)) LIMIT 1"),
        Some(
            "SELECT 1 FROM t WHERE ((a = 'x,)' AND t.b = 1) OR (a = 'y' AND t.b = NULL)) LIMIT 1"
                .to_string()
        )
    );
    assert_eq!(rows_as_comparisons("SELECT 1 WHERE a IN (1, 2)"), None);
}
