//! Other ways to say the same, for a server that may contradict itself.

/// Queries that have to have the same rows, with what differs in them. The last says everything in
/// another way.
pub fn same_queries(sql: &str) -> Vec<(&'static str, String)> {
    let rewritings: [(&str, fn(&str) -> String); 5] = [
        ("with comparisons for a list of rows", |sql| {
            rows_as_comparisons(sql).unwrap_or_else(|| sql.to_string())
        }),
        ("with FIELD() and INTERVAL() that are never NULL", |sql| {
            let sql = around_calls(sql, "FIELD(", "COALESCE(", ", 0)");
            around_calls(&sql, "INTERVAL(", "COALESCE(", ", -1)")
        }),
        (
            "with remainders that aren't below zero if they are zero",
            |sql| {
                let sql = around_calls(sql, "MOD(", "(", " + 0)");
                around_groups(&sql, " % ", "(", " + 0)")
            },
        ),
        ("with a value of a subquery that is no subquery", |sql| {
            let sql = sql.replace(
                "GROUP_CONCAT(DISTINCT (SELECT ",
                "GROUP_CONCAT(DISTINCT (VALUE ",
            );
            let sql = sql.replace("GROUP_CONCAT((SELECT ", "GROUP_CONCAT((VALUE ");
            let sql = around_groups(&sql, "VALUE ", "COALESCE(", ", NULL)");
            sql.replace("(VALUE ", "(SELECT ")
        }),
        ("with comparisons for BETWEEN and IN of a quotient", |sql| {
            quotients_compared(sql)
        }),
    ];
    let mut all = sql.to_string();
    let mut queries = Vec::new();
    for (how, rewrite) in rewritings {
        let rewritten = rewrite(sql);
        if rewritten != sql {
            queries.push((how, rewritten));
        }
        all = rewrite(&all);
    }
    if queries.len() > 1 {
        queries.push(("said in another way altogether", all));
    }
    queries
}

/// A query of which everything has to be computed: without LIMIT, and with XOR for OR. It has other
/// rows, but fails wherever a value fails.
pub fn without_short_cuts(sql: &str) -> String {
    let mut out = String::new();
    let mut rest = sql;
    while let Some(at) = unquoted(rest, &[" OR ", " LIMIT "]) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match rest.strip_prefix(" OR ") {
            Some(behind) => {
                out.push_str(" XOR ");
                rest = behind;
            }
            None => {
                let behind = rest.trim_start_matches(" LIMIT ");
                rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
            }
        }
    }
    out.push_str(rest);
    out
}

/// Where one of some words is first, outside of strings.
fn unquoted(sql: &str, words: &[&str]) -> Option<usize> {
    let mut is_quoted = false;
    sql.char_indices().find_map(|(at, c)| {
        is_quoted ^= c == '\'';
        let is_one = words.iter().any(|word| sql[at..].starts_with(word));
        (!is_quoted && is_one).then_some(at)
    })
}

/// Where the group ends that begins before a text: its `)`.
fn end_of_group(sql: &str) -> Option<usize> {
    let (mut is_quoted, mut depth) = (false, 0);
    sql.char_indices().find_map(|(at, c)| {
        is_quoted ^= c == '\'';
        match c {
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted && depth == 0 => return Some(at),
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Puts something before and behind each call of a function.
fn around_calls(sql: &str, function: &str, before: &str, behind: &str) -> String {
    let mut out = String::new();
    let mut rest = sql;
    while let Some(at) = unquoted(rest, &[function]) {
        let arguments = &rest[at + function.len()..];
        out.push_str(&rest[..at]);
        let is_part = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let Some(end) = end_of_group(arguments).filter(|_| !is_part) else {
            out.push_str(function);
            rest = arguments;
            continue;
        };
        let inner = around_calls(&arguments[..end], function, before, behind);
        out.push_str(&format!("{before}{function}{inner}){behind}"));
        rest = &arguments[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Puts something before and behind each pair of parentheses that has an operator between.
fn around_groups(sql: &str, operator: &str, before: &str, behind: &str) -> String {
    let mut out = String::new();
    let mut groups: Vec<(usize, bool)> = Vec::new();
    let mut is_quoted = false;
    for (at, c) in sql.char_indices() {
        is_quoted ^= c == '\'';
        if !is_quoted && c == '(' {
            groups.push((out.len(), false));
        }
        if let Some((_, has)) = groups.last_mut()
            && !is_quoted
            && sql[at..].starts_with(operator)
        {
            *has = true;
        }
        out.push(c);
        if !is_quoted
            && c == ')'
            && let Some((from, true)) = groups.pop()
        {
            out.insert_str(from, before);
            out.push_str(behind);
        }
    }
    out
}

/// `(a BETWEEN b AND c)` and `(a IN (b, c))` as comparisons, where one of them is a quotient.
fn quotients_compared(sql: &str) -> String {
    const WORDS: [&str; 4] = [" NOT BETWEEN ", " BETWEEN ", " NOT IN (", " IN ("];
    let mut out = String::new();
    let mut rest = sql;
    while let Some(at) = unquoted(rest, &WORDS) {
        let (before, from) = rest.split_at(at);
        let word = WORDS.iter().find(|word| from.starts_with(**word));
        let word = word.expect("one of them is there");
        let behind = &from[word.len()..];
        let compared = operand_before(before).and_then(|start| {
            let (said, end) = match word.contains("IN (") {
                true => {
                    let end = end_of_group(behind)?;
                    (in_compared(&before[start..], &behind[..end])?, end + 1)
                }
                false => between_compared(&before[start..], behind)?,
            };
            let not = if word.contains("NOT") { "NOT " } else { "" };
            Some((start, format!("({not}{said})"), end))
        });
        match compared {
            Some((start, said, end)) => {
                out.push_str(&before[..start]);
                out.push_str(&said);
                rest = &behind[end..];
            }
            None => {
                out.push_str(before);
                out.push_str(word);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Where the operand begins that a text ends in.
fn operand_before(text: &str) -> Option<usize> {
    let (mut depth, mut is_quoted) = (0_i32, false);
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        is_quoted ^= c == '\'';
        match c {
            _ if is_quoted => {}
            ')' => depth += 1,
            '(' if depth == 0 => break,
            '(' => depth -= 1,
            ' ' if depth == 0 => break,
            _ => {}
        }
        start = at;
    }
    (start < text.len()).then_some(start)
}

fn in_compared(operand: &str, list: &str) -> Option<String> {
    if list.starts_with(['(', 'S']) || !(operand.contains(" / ") || list.contains(" / ")) {
        return None;
    }
    let mut values = Vec::new();
    let mut rest = list;
    loop {
        let end = top_level(rest, &[", "]).unwrap_or(rest.len());
        values.push(format!("({operand} = {})", &rest[..end]));
        match rest.get(end + 2..) {
            Some(behind) => rest = behind,
            None => return Some(format!("({})", values.join(" OR "))),
        }
    }
}

/// The comparisons, and where the operands end.
fn between_compared(operand: &str, bounds: &str) -> Option<(String, usize)> {
    const AND: &str = " AND ";
    let and = top_level(bounds, &[AND])?;
    let upper = &bounds[and + AND.len()..];
    let end = top_level(upper, &[" ", ")"]).unwrap_or(upper.len());
    let (lower, upper) = (&bounds[..and], &upper[..end]);
    [operand, lower, upper]
        .iter()
        .any(|part| part.contains(" / "))
        .then(|| {
            let said = format!("(({operand} >= {lower}) AND ({operand} <= {upper}))");
            (said, and + AND.len() + end)
        })
}

/// Where one of some words is first, outside of strings and parentheses.
fn top_level(sql: &str, words: &[&str]) -> Option<usize> {
    let (mut is_quoted, mut depth) = (false, 0);
    sql.char_indices().find_map(|(at, c)| {
        is_quoted ^= c == '\'';
        if is_quoted {
            return None;
        }
        if depth == 0 && words.iter().any(|word| sql[at..].starts_with(word)) {
            return Some(at);
        }
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        None
    })
}

/// `(a, b) IN ((1, 2), (3, 4))` as comparisons of values, which has to have the same rows. `None`
/// where a statement has no such list.
fn rows_as_comparisons(sql: &str) -> Option<String> {
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

#[test]
fn what_is_said_in_another_way_is_the_same() {
    let said = |sql: &str| {
        let queries = same_queries(sql);
        queries
            .last()
            .map(|(_, sql)| sql.clone())
            .unwrap_or_default()
    };
    for (sql, other) in [
        (
            "SELECT 1 WHERE (FIELD(a, FIELD('b(', 'c')) <> 5)",
            "SELECT 1 WHERE (COALESCE(FIELD(a, COALESCE(FIELD('b(', 'c'), 0)), 0) <> 5)",
        ),
        (
            "SELECT MOD(a, 2), (b % (c % 3))",
            "SELECT (MOD(a, 2) + 0), ((b % ((c % 3) + 0)) + 0)",
        ),
        (
            "SELECT GROUP_CONCAT((SELECT MAX(a) FROM t) ORDER BY 1)",
            "SELECT GROUP_CONCAT(COALESCE((SELECT MAX(a) FROM t), NULL) ORDER BY 1)",
        ),
        (
            "SELECT 1 WHERE ((a / 3) NOT BETWEEN 1 AND ABS(2)) AND b BETWEEN 1 AND 2",
            "SELECT 1 WHERE ((NOT (((a / 3) >= 1) AND ((a / 3) <= ABS(2))))) AND b BETWEEN 1 AND 2",
        ),
        (
            "SELECT 1 WHERE (x.a IN (1, (2 / 3), 'a, b'))",
            "SELECT 1 WHERE ((((x.a = 1) OR (x.a = (2 / 3)) OR (x.a = 'a, b'))))",
        ),
    ] {
        assert_eq!(said(sql), other);
    }
    assert_eq!(said("SELECT 1 WHERE a IN (1, 2) LIMIT 1"), "");
    assert_eq!(
        without_short_cuts("SELECT ' OR ' FROM t WHERE (a OR b) ORDER BY 1 LIMIT 5"),
        "SELECT ' OR ' FROM t WHERE (a XOR b) ORDER BY 1"
    );
}
