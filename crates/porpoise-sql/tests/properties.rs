//! What must hold for every statement, tried on random ones.

use porpoise_sql::ast::{Expr, Literal, Statement};
use porpoise_sql::{Digest, LiteralKind, Literals, Modes, ParseErrorKind, SourceMap};
use porpoise_sql::{digest, parse_digested, parse_expr, parse_statement};
use proptest::prelude::*;

/// A random expression with holes for literals: `«i»`, `«d»`, `«e»`, `«s»`, `«h»`.
fn expr_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["«i»", "«d»", "«e»", "«s»", "«h»"]).prop_map(str::to_owned),
        4 => prop::sample::select(vec!["a", "t.b", "s.t.c", "`x y`", "@v", "@@sql_mode", "NULL", "TRUE", "now()",
            "CURRENT_DATE", "CURRENT_TIMESTAMP(3)", "DATE'2024-01-01'", "_latin1'x'", "N'n'", "x'00FF'", "b'101'",
            "'a' 'b'", "uuid()", "d->'$.a'", "d->>'$.b'", "count(1)", "`cast`(1)"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let two = (inner.clone(), inner.clone());
        let three = (inner.clone(), inner.clone(), inner.clone());
        let operators = vec![
            "+",
            "-",
            "*",
            "/",
            "%",
            "DIV",
            "MOD",
            "|",
            "&",
            "^",
            "<<",
            ">>",
            "=",
            "<=>",
            "<>",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "AND",
            "&&",
            "OR",
            "||",
            "XOR",
            "LIKE",
            "NOT LIKE",
            "REGEXP",
            "SOUNDS LIKE",
        ];
        prop_oneof![
            (two.clone(), prop::sample::select(operators))
                .prop_map(|((a, b), op)| format!("{a} {op} {b}")),
            (
                two.clone(),
                prop::sample::select(vec!["+", "*", "=", "OR", "AND"])
            )
                .prop_map(|((a, b), op)| format!("({a}){op}({b})")),
            (
                inner.clone(),
                prop::sample::select(vec!["-", "+", "~", "!", "NOT ", "BINARY "])
            )
                .prop_map(|(a, op)| format!("{op}({a})")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "IS NULL",
                    "IS NOT TRUE",
                    "IS UNKNOWN",
                    "COLLATE utf8mb4_bin",
                    "+ INTERVAL «i» DAY"
                ])
            )
                .prop_map(|(a, op)| format!("({a}) {op}")),
            three
                .clone()
                .prop_map(|(a, b, c)| format!("({a}) BETWEEN ({b}) AND ({c})")),
            three
                .clone()
                .prop_map(|(a, b, c)| format!("({a}) NOT IN ({b}, {c})")),
            three
                .clone()
                .prop_map(|(a, b, c)| format!("CASE WHEN {a} THEN {b} ELSE {c} END")),
            three
                .clone()
                .prop_map(|(a, b, c)| format!("CASE {a} WHEN {b} THEN {c} END")),
            three
                .clone()
                .prop_map(|(a, b, c)| format!("coalesce({a}, {b}, {c})")),
            two.clone().prop_map(|(a, b)| format!("round({a}, {b})")),
            two.clone()
                .prop_map(|(a, b)| format!("({a}, {b}) = ROW({b}, {a})")),
            two.clone()
                .prop_map(|(a, b)| format!("substring({a} FROM {b} FOR 2)")),
            two.clone()
                .prop_map(|(a, b)| format!("trim(LEADING {a} FROM {b})")),
            two.clone()
                .prop_map(|(a, b)| format!("date_add({a}, INTERVAL {b} MINUTE_SECOND)")),
            two.clone().prop_map(|(a, b)| format!("INTERVAL({a}, {b})")),
            two.clone().prop_map(|(a, b)| format!(
                "group_concat(DISTINCT {a} ORDER BY {b} DESC, «i» SEPARATOR «s»)"
            )),
            two.clone().prop_map(|(a, b)| format!(
                "sum({a}) OVER (PARTITION BY {b} ORDER BY a ROWS 2 PRECEDING)"
            )),
            two.clone()
                .prop_map(|(a, b)| format!("({a}) IN (SELECT {b} FROM t LIMIT «i»)")),
            two.clone().prop_map(|(a, b)| format!(
                "((SELECT {a}) UNION ALL (SELECT {b}) ORDER BY «i» LIMIT 1)"
            )),
            inner
                .clone()
                .prop_map(|a| format!("EXISTS (SELECT * FROM t WHERE {a})")),
            inner
                .clone()
                .prop_map(|a| format!("({a}) > ALL (SELECT 1)")),
            inner
                .clone()
                .prop_map(|a| format!("CAST({a} AS DECIMAL(10, 2))")),
            inner
                .clone()
                .prop_map(|a| format!("CONVERT({a} USING utf8mb4)")),
            inner
                .clone()
                .prop_map(|a| format!("extract(YEAR FROM {a})")),
            inner.clone().prop_map(|a| format!("(@w := {a})")),
            inner.prop_map(|a| format!("({a}) LIKE «s» ESCAPE «s»")),
        ]
    })
}

/// A random statement of those the cache takes, with holes.
fn statement_text() -> impl Strategy<Value = String> {
    let e = expr_text;
    prop_oneof![
        (e(), e(), e(), any::<[bool; 5]>()).prop_map(|(a, b, c, [distinct, group, order, limit, union])| {
            let mut sql = format!("SELECT {}{a}, {b} AS «s», t.*", if distinct { "DISTINCT " } else { "" });
            sql += " FROM t AS x LEFT JOIN (u JOIN v USING (id)) ON x.a = «i»";
            sql += &format!(" WHERE {c}");
            sql += if group { " GROUP BY a, «i» HAVING b > «d»" } else { "" };
            sql += if union { " UNION ALL SELECT «i», «s» FROM (SELECT «i») AS d" } else { "" };
            sql += if order { " ORDER BY «i» DESC, a + «i»" } else { "" };
            sql += if limit { " LIMIT «i» OFFSET «i»" } else { "" };
            sql
        }),
        (e(), e()).prop_map(|(a, b)| format!("INSERT INTO t (a, b) VALUES ({a}, {b}), («i», DEFAULT) ON DUPLICATE KEY UPDATE a = VALUES(a) + «i»")),
        (e(), e()).prop_map(|(a, b)| format!("UPDATE t SET a = {a}, b = «s» WHERE {b} ORDER BY «i» LIMIT «i»")),
        e().prop_map(|a| format!("DELETE FROM t WHERE {a} LIMIT «i»")),
        (e(), e()).prop_map(|(a, b)| format!("WITH c (x) AS (SELECT {a}) SELECT x FROM c WHERE {b} GROUP BY x + «i»")),
        e().prop_map(|a| format!("(SELECT {a} ORDER BY «i») UNION (SELECT {a} LIMIT «i», «i»)")),
    ]
}

/// The text with its holes filled; the seed decides the values, never the classes.
fn filled(text: &str, seed: u64) -> String {
    let mut state = seed;
    let mut next = move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    let mut parts = text.split(['«', '»']);
    let mut out = parts.next().unwrap_or("").to_owned();
    while let (Some(class), Some(rest)) = (parts.next(), parts.next()) {
        let n = next();
        match class {
            "i" => out += &n.to_string(),
            "d" => out += &format!("{}.{:02}", 1000 + n % 9000, n % 100),
            "e" => out += &format!("{n}e{}", n % 100),
            "h" => out += &format!("0x{n:X}"),
            _ => {
                out += &format!(
                    "'{}'",
                    ["", "a", "it''s", "x\\n\\'y", "%\\%_", "日本", "--", "/*"][n as usize % 8]
                )
            }
        }
        out += rest;
    }
    out
}

fn digested(sql: &str) -> (Digest, Literals) {
    let mut literals = Literals::new();
    let digest =
        digest(sql.as_bytes(), Modes::NONE, &mut literals).expect("a statement for the cache");
    (digest, literals)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_expression_parses_to_the_same_tree(text in expr_text(), seed: u64) {
        let sql = filled(&text, seed);
        if let Ok(expr) = parse_expr(sql.as_bytes(), Modes::NONE) {
            let printed = expr.to_string();
            let again = parse_expr(printed.as_bytes(), Modes::NONE);
            prop_assert_eq!(Ok(expr), again, "{}\n{}", sql, printed);
        }
    }

    #[test]
    fn a_printed_query_parses_to_the_same_tree(text in statement_text(), seed: u64) {
        let sql = filled(&text, seed);
        if let Ok(Some(parsed)) = parse_statement(sql.as_bytes(), 0, Modes::NONE)
            && let Statement::Query(query) = parsed.statement
        {
            let printed = query.to_string();
            let again = parse_statement(printed.as_bytes(), 0, Modes::NONE).map(|p| p.map(|p| p.statement));
            prop_assert_eq!(Ok(Some(Statement::Query(query))), again, "{}\n{}", sql, printed);
        }
    }

    /// The parser as told to make parameters, and the literals as the digest found them, together
    /// say what the parser says by itself.
    #[test]
    fn literals_put_back_for_parameters_give_the_tree_of_the_text(text in statement_text(), seed: u64) {
        let sql = filled(&text, seed);
        let plain = parse_statement(sql.as_bytes(), 0, Modes::NONE);
        let cached = parse_digested(sql.as_bytes(), Modes::NONE);
        prop_assert_eq!(plain.as_ref().err(), cached.as_ref().err());
        if let (Ok(Some(plain)), Ok(Some((cached, mask)))) = (plain, cached) {
            let (_, literals) = digested(&sql);
            let mut tree = format!("{:?}", cached.statement);
            for (n, literal) in literals.iter().enumerate() {
                let value = Expr::Literal(literal.value(sql.as_bytes(), Modes::NONE).into());
                let param = format!("Param({n})");
                prop_assert_eq!(tree.contains(&param), mask.has(n as u32));
                tree = tree.replace(&param, &format!("{value:?}"));
            }
            prop_assert_eq!(tree, format!("{:?}", plain.statement));
        }
    }

    #[test]
    fn statements_of_one_key_parse_to_one_tree(text in statement_text(), one: u64, two: u64) {
        let (a, b) = (filled(&text, one), filled(&text, two));
        let trees = (parse_digested(a.as_bytes(), Modes::NONE), parse_digested(b.as_bytes(), Modes::NONE));
        if let (Ok(Some((first, first_mask))), Ok(Some((second, second_mask)))) = trees {
            let ((da, la), (db, lb)) = (digested(&a), digested(&b));
            let classes = |l: &Literals| l.iter().map(|l| l.kind).collect::<Vec<_>>();
            prop_assert_eq!(da.shape == db.shape, classes(&la) == classes(&lb));
            if da.shape == db.shape {
                prop_assert_eq!(&first_mask, &second_mask);
                let keys = (da.key(a.as_bytes(), &la, &first_mask), db.key(b.as_bytes(), &lb, &second_mask));
                prop_assert_eq!(keys.0 == keys.1, first.statement == second.statement);
            }
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), modes in 0u8..64) {
        survive(&bytes, modes);
    }

    #[test]
    fn any_tokens_are_parsed_or_refused(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        survive(words.join(" ").as_bytes(), 0);
    }
}

const WORDS: &[&str] = &[
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "(", ")", ",", ".", "*", "a", "t",
    "1", "'x'", "=", "UNION", "JOIN", "LEFT", "ON", "USING", "AS", "NOT", "IN", "BETWEEN", "AND",
    "CASE", "WHEN", "THEN", "END", "SET", "INSERT", "INTO", "VALUES", "UPDATE", "DELETE", "CREATE",
    "TABLE", "ALTER", "ADD", "DROP", "INDEX", "KEY", "INT", "PRIMARY", "DEFAULT", "SHOW", "TABLES",
    "@a", "@@", "INTERVAL", "DAY", "?", ";", "GRANT", "TO", "USER", "WITH", "/*!50000", "*/", "->",
    ":=", "||", "!", "COUNT(", "CAST(", "EXISTS", "NULL", "{", "}", "LATERAL", "WINDOW",
];

fn survive(bytes: &[u8], modes: u8) {
    let all = [
        Modes::ANSI_QUOTES,
        Modes::PIPES_AS_CONCAT,
        Modes::NO_BACKSLASH_ESCAPES,
        Modes::HIGH_NOT_PRECEDENCE,
        Modes::IGNORE_SPACE,
        Modes::REAL_AS_FLOAT,
    ];
    let modes = all
        .iter()
        .enumerate()
        .filter(|(n, _)| modes & (1 << n) != 0)
        .fold(Modes::NONE, |m, (_, x)| m.with(*x));
    let mut literals = Literals::new();
    let found = digest(bytes, modes, &mut literals);
    let _ = porpoise_sql::digest::normalized_text(bytes, modes);
    if let (Some(found), Ok(Some((_, mask)))) = (found, parse_digested(bytes, modes)) {
        found.key(bytes, &literals, &mask);
    }
    let mut at = 0;
    while let Ok(Some(parsed)) = parse_statement(bytes, at, modes) {
        if let Statement::Query(query) = &parsed.statement {
            let printed = query.to_string();
            let _ = parse_statement(printed.as_bytes(), 0, Modes::NONE);
        }
        assert!(parsed.next > at);
        at = parsed.next;
    }
}

/// The corpus with bytes changed, dropped, doubled and statements spliced.
#[test]
fn damaged_statements_are_parsed_or_refused() {
    let folder = format!("{}/tests/corpus", env!("CARGO_MANIFEST_DIR"));
    let mut statements: Vec<Vec<u8>> = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        statements.extend(
            bytes
                .split(|b| *b == b';')
                .map(<[u8]>::to_vec)
                .filter(|s| s.len() < 2000),
        );
    }
    let mut state = 4711u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % below.max(1)
    };
    for _ in 0..6_000 {
        let mut sql = statements[random(statements.len())].clone();
        for _ in 0..1 + random(4) {
            let at = random(sql.len());
            match random(5) {
                0 if !sql.is_empty() => sql[at] = random(256) as u8,
                1 if !sql.is_empty() => {
                    sql.remove(at);
                }
                2 => sql.insert(at, b"'\"`()@,.;*/ ?\\"[random(14)]),
                3 => sql.truncate(at),
                _ => {
                    let other = &statements[random(statements.len())];
                    let from = random(other.len());
                    let piece = other[from..].to_vec();
                    sql.truncate(at);
                    sql.extend(piece);
                }
            }
        }
        survive(&sql, random(64) as u8);
    }
}

#[test]
fn deep_nesting_is_refused_not_a_stack_overflow() {
    let n = 100_000;
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("-", "1", ""),
        ("NOT ", "1", ""),
        ("! ", "1", ""),
        ("(SELECT ", "1", ")"),
        ("f(", "1", ")"),
        ("1 + (", "1", ")"),
        ("a IN (", "1", ")"),
        ("CASE WHEN ", "1", " THEN 1 END"),
        ("EXISTS (SELECT ", "1", ")"),
        ("INTERVAL (", "1", ") DAY + a"),
        ("BINARY ", "1", ""),
        ("@a := ", "1", ""),
        ("1 = ", "1", ""),
        ("1 + ", "1", ""),
        ("{fn ", "1", "}"),
        ("a LIKE ", "1", ""),
        ("ROW(", "1", ",1)"),
        ("cast(", "1", " AS CHAR)"),
    ] {
        let expr = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
        let error = parse_expr(expr.as_bytes(), Modes::NONE).expect_err(open);
        assert_eq!(error.kind, ParseErrorKind::TooDeep, "{open}");
    }
    for (open, middle, close) in [
        ("(", "SELECT 1", ")"),
        ("SELECT * FROM (", "SELECT 1", ") AS d"),
        ("WITH c AS (", "SELECT 1", ") SELECT 1"),
        ("SELECT 1 UNION ", "SELECT 1", ""),
        ("SELECT 1 INTERSECT (", "SELECT 1", ")"),
    ] {
        let sql = format!("{}{middle}{}", open.repeat(n), close.repeat(n));
        let error = parse_statement(sql.as_bytes(), 0, Modes::NONE).expect_err(open);
        assert_eq!(error.kind, ParseErrorKind::TooDeep, "{open}");
    }
    for (open, middle, close) in [
        ("SELECT * FROM ", "t", " JOIN t"),
        ("SELECT * FROM ", "(", "("),
        ("SELECT * FROM ", "t", " LEFT JOIN t"),
        ("EXPLAIN ", "EXPLAIN ", "EXPLAIN "),
    ] {
        let sql = format!("{open}{middle}{}", close.repeat(n));
        assert!(
            parse_statement(sql.as_bytes(), 0, Modes::NONE).is_err(),
            "{open}{middle}{close}"
        );
    }
}

#[test]
fn long_lists_are_no_depth() {
    let list = vec!["1"; 20_000].join(", ");
    let sql = format!(
        "SELECT * FROM t WHERE a IN ({list}) OR {}",
        vec!["b = 1"; 20_000].join(" OR ")
    );
    assert!(parse_statement(sql.as_bytes(), 0, Modes::NONE).is_ok());
    let rows = vec!["(1, 'x', NULL)"; 20_000].join(", ");
    assert!(
        parse_statement(
            format!("INSERT INTO t VALUES {rows}").as_bytes(),
            0,
            Modes::NONE
        )
        .is_ok()
    );
    let sum = vec!["a"; 700].join(" + ");
    assert!(parse_expr(sum.as_bytes(), Modes::NONE).is_ok());
}

#[test]
fn names_of_columns_come_from_the_current_text() {
    let cached = "SELECT a +  100, 'x', f(1, b) , c AS d FROM t WHERE id = 1";
    let current =
        "  /* trace */ SELECT a +  7, 'longer', f(12345, b) , c AS d FROM t WHERE id = 99;";
    let ((from, from_literals), (to, to_literals)) = (digested(cached), digested(current));
    assert_eq!(from.shape, to.shape);
    let map = SourceMap {
        from: (from, &from_literals),
        to: (to, &to_literals),
    };
    let Ok(Some((parsed, _))) = parse_digested(cached.as_bytes(), Modes::NONE) else {
        panic!("parses")
    };
    let Statement::Query(query) = parsed.statement else {
        panic!("a query")
    };
    let porpoise_sql::ast::QueryBody::Select(select) = query.body else {
        panic!("a select")
    };
    let names: Vec<_> = select
        .items
        .iter()
        .filter_map(|item| match item {
            porpoise_sql::ast::SelectItem::Expr { span, .. } => {
                Some(String::from_utf8_lossy(map.map(*span).of(current.as_bytes())).into_owned())
            }
            _ => None,
        })
        .collect();
    assert_eq!(names, ["a +  7", "'longer'", "f(12345, b)", "c"]);
}

#[test]
fn classes_of_literals_are_told_apart() {
    let shape = |sql: &str| digested(sql).0.shape;
    let same = |a: &str, b: &str| shape(&format!("SELECT {a}")) == shape(&format!("SELECT {b}"));
    assert!(same("1", "9223372036854775807") && !same("1", "9223372036854775808"));
    assert!(same("1.25", "9.99") && !same("1.25", "1.5") && !same("1.5", "1e5"));
    assert!(
        same("'a'", "'it''s'")
            && !same("'1'", "1")
            && same("0x41", "x'4142'")
            && !same("0x1", "0b1")
    );
    assert!(same("t1 + 1", "t1 + 2") && !same("t1 + 1", "t2 + 1") && !same("'a'", "N'a'"));
    assert!(!same("1", "1 + 1") && !same("(1, 2)", "(1, 2, 3)"));
}

#[test]
fn what_is_not_for_the_cache_has_no_digest() {
    let mut literals = Literals::new();
    for sql in [
        "SELECT ?",
        "SELECT 1; SELECT 2",
        "SELECT /*! 1 */",
        "SET a = 1",
        "",
        "SELECT 'x",
        "CREATE TABLE t (a INT)",
    ] {
        assert_eq!(
            digest(sql.as_bytes(), Modes::NONE, &mut literals),
            None,
            "{sql}"
        );
    }
    for sql in [
        "SELECT 1;",
        " ( SELECT 1) -- x",
        "WITH a AS (SELECT 1) SELECT 1",
        "replace t values (1)",
    ] {
        assert!(
            digest(sql.as_bytes(), Modes::NONE, &mut literals).is_some(),
            "{sql}"
        );
    }
}

#[test]
fn literals_a_plan_depends_on_stay_in_the_tree() {
    let values = |sql: &str| {
        let (_, literals) = digested(sql);
        let (_, mask) = parse_digested(sql.as_bytes(), Modes::NONE)
            .unwrap()
            .unwrap();
        let kept = literals
            .iter()
            .enumerate()
            .filter(|(n, _)| !mask.has(*n as u32));
        kept.map(|(_, l)| String::from_utf8_lossy(l.text(sql.as_bytes())).into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        values("SELECT a + 1 FROM t WHERE b = 2 ORDER BY 3, 4 + a LIMIT 5, 6"),
        "3"
    );
    assert_eq!(
        values("SELECT ROUND(a * 1.5, 2), CAST(3 AS DECIMAL(4, 1)), NOW(6) AS 'x'"),
        "2 4 1 6 'x'"
    );
    assert_eq!(values("SELECT a FROM t GROUP BY a, 2"), "2");
    assert_eq!(values("SELECT a + 1 FROM t GROUP BY a + 1"), "1 1");
    assert_eq!(values("SELECT DISTINCT a + 1 FROM t ORDER BY a + 1"), "1 1");
    assert_eq!(
        values("SELECT 'a' 'b', _latin1'c', 'd' LIKE 'e' ESCAPE 'f'"),
        "'a' 'b' 'c' 'f'"
    );
    assert_eq!(values("INSERT INTO t VALUES (1, 'x'), (2, NULL)"), "");
}

#[test]
fn literals_have_their_values() {
    let value = |sql: &str| match parse_expr(sql.as_bytes(), Modes::NONE) {
        Ok(Expr::Literal(literal)) => literal,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(
        value("'a\\'b\\n\\%\\_\\\\''\"'"),
        Literal::String(b"a'b\n\\%\\_\\'\""[..].into())
    );
    assert_eq!(value("\"a\"\"b'\""), Literal::String(b"a\"b'"[..].into()));
    assert_eq!(value("0xABC"), Literal::Hex([0x0A, 0xBC][..].into()));
    assert_eq!(value("b'100000001'"), Literal::Bit([1, 1][..].into()));
    assert_eq!(value("18446744073709551615"), Literal::Int(u64::MAX));
    assert_eq!(
        value("18446744073709551616"),
        Literal::Decimal("18446744073709551616".into())
    );
    assert_eq!(value(".5"), Literal::Decimal(".5".into()));
    assert_eq!(value("1.5e-3"), Literal::Double(0.0015));
    let mut literals = Literals::new();
    digest(b"SELECT 1.50, 'a'", Modes::NONE, &mut literals);
    assert_eq!(
        literals[0].kind,
        LiteralKind::Decimal {
            precision: 3,
            scale: 2
        }
    );
}
