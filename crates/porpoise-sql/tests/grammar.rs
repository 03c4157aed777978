//! What statements mean: precedence, modes, error positions, canonical SQL.

use porpoise_sql::ast::*;
use porpoise_sql::{Modes, digest, parse_expr, parse_statement};

fn expr(sql: &str) -> String {
    expr_in(sql, Modes::NONE)
}

fn expr_in(sql: &str, modes: Modes) -> String {
    match parse_expr(sql.as_bytes(), modes) {
        Ok(expr) => expr.to_string(),
        Err(error) => format!("error near '{}'", error.near),
    }
}

fn statement(sql: &str) -> Statement {
    match parse_statement(sql.as_bytes(), 0, Modes::NONE) {
        Ok(Some(parsed)) => parsed.statement,
        other => panic!("{sql}: {other:?}"),
    }
}

fn query(sql: &str) -> String {
    match statement(sql) {
        Statement::Query(query) => query.to_string(),
        other => panic!("{sql}: {other:?}"),
    }
}

fn error(sql: &str) -> String {
    match parse_statement(sql.as_bytes(), 0, Modes::NONE) {
        Err(error) => format!("{}:{}", error.line, error.near),
        Ok(parsed) => panic!("{sql}: {parsed:?}"),
    }
}

#[test]
fn operators_bind_as_in_the_manual() {
    assert_eq!(
        expr("a OR b AND c XOR d"),
        "(`a` or ((`b` and `c`) xor `d`))"
    );
    assert_eq!(expr("NOT a = b AND c"), "((not((`a` = `b`))) and `c`)");
    assert_eq!(expr("! a = b"), "((not(`a`)) = `b`)");
    assert_eq!(expr("a = b = c"), "((`a` = `b`) = `c`)");
    assert_eq!(expr("a + b * c - d"), "((`a` + (`b` * `c`)) - `d`)");
    assert_eq!(
        expr("a | b & c << d + e"),
        "(`a` | (`b` & (`c` << (`d` + `e`))))"
    );
    assert_eq!(expr("-a ^ b * c"), "((-`a` ^ `b`) * `c`)");
    assert_eq!(expr("a = b LIKE c"), "(`a` = (`b` like `c`))");
    assert_eq!(
        expr("a BETWEEN b AND c AND d"),
        "((`a` between `b` and `c`) and `d`)"
    );
    assert_eq!(expr("a IN (b) IS NULL"), "((`a` in (`b`)) is null)");
    assert_eq!(expr("a COLLATE x = b"), "((`a` collate x) = `b`)");
    assert_eq!(expr("BINARY a = b"), "(cast(`a` as binary) = `b`)");
    assert_eq!(expr("@a := 1 + 2"), "(@`a`:=(1 + 2))");
    assert_eq!(
        expr("a AND (b AND c) AND d"),
        "(`a` and `b` and `c` and `d`)"
    );
    assert_eq!(
        expr("d + INTERVAL 1 DAY > now()"),
        "((`d` + interval 1 day) > now())"
    );
}

#[test]
fn modes_change_what_is_read() {
    assert_eq!(expr("a || b"), "(`a` or `b`)");
    assert_eq!(
        expr_in("a || b || c", Modes::PIPES_AS_CONCAT),
        "concat(concat(`a`,`b`),`c`)"
    );
    assert_eq!(expr("\"a\""), "'a'");
    assert_eq!(expr_in("\"a\"\"b\"", Modes::ANSI_QUOTES), "`a\"b`");
    assert_eq!(expr(r"'a\nb'"), r"'a\nb'");
    assert_eq!(expr_in(r"'a\nb'", Modes::NO_BACKSLASH_ESCAPES), r"'a\\nb'");
    assert_eq!(
        expr("NOT a BETWEEN 1 AND 2"),
        "(not((`a` between 1 and 2)))"
    );
    assert_eq!(
        expr_in("NOT a BETWEEN 1 AND 2", Modes::HIGH_NOT_PRECEDENCE),
        "((not(`a`)) between 1 and 2)"
    );
    assert_eq!(expr("count (*)"), "error near '*)'");
    assert_eq!(expr_in("count (*)", Modes::IGNORE_SPACE), "count(0)");
}

#[test]
fn forms_that_mean_the_same_are_one() {
    assert_eq!(expr("d->'$.a'"), "json_extract(`d`,'$.a')");
    assert_eq!(expr("d->>'$.a'"), "json_unquote(json_extract(`d`,'$.a'))");
    assert_eq!(expr("a SOUNDS LIKE b"), "(soundex(`a`) = soundex(`b`))");
    assert_eq!(
        expr("DATE_SUB(a, INTERVAL 2 HOUR)"),
        "(`a` - interval 2 hour)"
    );
    assert_eq!(expr("ADDDATE(a, 3)"), "(`a` + interval 3 day)");
    assert_eq!(
        expr("TIMESTAMPADD(SQL_TSI_WEEK, 1, a)"),
        "(`a` + interval 1 week)"
    );
    assert_eq!(expr("MID(a, 1, 2)"), "substr(`a`,1,2)");
    assert_eq!(expr("POSITION(a IN b)"), "locate(`a`,`b`)");
    assert_eq!(expr("CURRENT_TIMESTAMP"), "now()");
    assert_eq!(expr("SCHEMA()"), "database()");
    assert_eq!(expr("MOD(a, b) + a MOD b"), "((`a` % `b`) + (`a` % `b`))");
    assert_eq!(expr("'a' 'b'"), "'ab'");
    assert_eq!(expr("CONVERT(a, CHAR(3))"), "cast(`a` as char(3))");
    assert_eq!(expr("a IN ((SELECT 1))"), "(`a` in (select 1))");
}

#[test]
fn reserved_words_are_names_only_behind_a_dot_or_quoted() {
    assert_eq!(expr("t.select + `from`"), "(`t`.`select` + `from`)");
    assert_eq!(expr("select"), "error near 'select'");
    assert_eq!(
        expr("begin + status + date + rank_"),
        "(((`begin` + `status`) + `date`) + `rank_`)"
    );
    assert_eq!(error("SELECT 1 FROM groups"), "1:groups");
}

#[test]
fn joins_nest_as_written() {
    assert_eq!(
        query("SELECT * FROM a LEFT JOIN b LEFT JOIN c ON b.x = c.x ON a.x = b.x"),
        "select * from (`a` left join (`b` left join `c` on((`b`.`x` = `c`.`x`))) on((`a`.`x` = `b`.`x`)))"
    );
    assert_eq!(
        query("SELECT * FROM a JOIN b JOIN c ON p ON q"),
        "select * from (`a` join (`b` join `c` on(`p`)) on(`q`))"
    );
    assert_eq!(
        query("SELECT * FROM a JOIN b JOIN c ON p"),
        "select * from ((`a` join `b`) join `c` on(`p`))"
    );
    assert_eq!(
        query("SELECT * FROM a, (b, c) NATURAL JOIN d"),
        "select * from `a`,((`b` join `c`) natural join `d`)"
    );
}

#[test]
fn set_operations_bind_as_in_the_manual() {
    let of = |sql: &str| match statement(sql) {
        Statement::Query(query) => match query.body {
            QueryBody::SetOperation(operation) => (operation.op, operation.all),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(
        of("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3"),
        (SetOperator::Union, false)
    );
    assert_eq!(
        of("SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3"),
        (SetOperator::Except, false)
    );
    assert_eq!(
        of("(SELECT 1 UNION ALL SELECT 2) INTERSECT ALL SELECT 3"),
        (SetOperator::Intersect, true)
    );
    assert_eq!(
        query("(SELECT a FROM t ORDER BY a LIMIT 1) UNION SELECT 2 ORDER BY 1 LIMIT 3, 4"),
        "(select `a` from `t` order by `a` limit 1) union select 2 order by 1 limit 3,4"
    );
}

#[test]
fn errors_say_where() {
    assert_eq!(error("SELEC 1"), "1:SELEC 1");
    assert_eq!(error("SELECT * FORM t"), "1:FORM t");
    assert_eq!(error("SELECT 1 +"), "1:");
    assert_eq!(error("SELECT\n1,\n  FROM t"), "3:FROM t");
    assert_eq!(error("SELECT 'abc"), "1:'abc");
    assert_eq!(error("SELECT (1"), "1:");
    assert_eq!(error("INSERT INTO t VALUES (1,)"), "1:)");
    assert_eq!(error("CREATE TABLE t (a INTT)"), "1:INTT)");
    assert_eq!(error("SELECT 1 /* open"), "1:/* open");
    let long = format!("SELECT a b c {}", "x".repeat(200));
    assert_eq!(error(&long), format!("1:c {}", "x".repeat(78)));
    let Err(whole) = parse_statement(b"SELECT 1 FROM", 0, Modes::NONE) else {
        panic!("an error")
    };
    assert_eq!(
        whole.to_string(),
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the \
         right syntax to use near '' at line 1"
    );
}

#[test]
fn statements_are_taken_one_by_one() {
    let sql = b"  SELECT 1 ; -- one\n;SELECT 2;/* end */";
    let Ok(Some(one)) = parse_statement(sql, 0, Modes::NONE) else {
        panic!("a statement")
    };
    assert_eq!(one.span.of(sql), b"SELECT 1");
    // Nothing but a comment is a statement only where the text ends.
    assert!(parse_statement(sql, one.next, Modes::NONE).is_err());
    let Ok(Some(two)) = parse_statement(sql, 21, Modes::NONE) else {
        panic!("a statement")
    };
    assert_eq!(two.span.of(sql), b"SELECT 2");
    let Ok(Some(comment)) = parse_statement(sql, two.next, Modes::NONE) else {
        panic!("a statement")
    };
    assert_eq!(comment.statement, Statement::Empty);
    assert_eq!(parse_statement(sql, comment.next, Modes::NONE), Ok(None));
    let Ok(Some(prepared)) =
        parse_statement(b"SELECT ?, a FROM t WHERE b IN (?, ?)", 0, Modes::NONE)
    else {
        panic!("a statement")
    };
    assert_eq!(prepared.placeholders, 3);
}

#[test]
fn executable_comments_of_our_version_are_text() {
    assert_eq!(
        query("SELECT 1 /*!40101 , 2 */ /*! , 3 */ /*!80401 , 4 */ /*M! , 5 */"),
        "select 1,2,3"
    );
    assert_eq!(
        query("SELECT /*+ NO_ICP(t) */ 1"),
        "select /*+ NO_ICP(t) */ 1"
    );
    assert_eq!(query("SELECT 1--1"), "select (1 - -1)");
}

#[test]
fn a_scope_word_of_set_holds_for_what_follows() {
    let Statement::Set(items) = statement("SET GLOBAL a = 1, b = ON, @@c = 2, SESSION d = DEFAULT")
    else {
        panic!()
    };
    let scopes: Vec<_> = items
        .iter()
        .map(|item| match item {
            SetItem::System { variable, .. } => variable.scope,
            _ => panic!(),
        })
        .collect();
    assert_eq!(
        scopes,
        [
            Some(VariableScope::Global),
            Some(VariableScope::Global),
            None,
            Some(VariableScope::Session)
        ]
    );
}

#[test]
fn types_print_as_show_create_table_has_them() {
    for (written, printed) in [
        ("BOOL", "tinyint(1)"),
        ("INTEGER UNSIGNED", "int unsigned"),
        ("INT(5) ZEROFILL", "int(5) unsigned zerofill"),
        ("NUMERIC(10,2)", "decimal(10,2)"),
        ("DOUBLE PRECISION", "double"),
        ("FLOAT(53)", "double"),
        (
            "CHARACTER VARYING(10) CHARSET latin1",
            "varchar(10) CHARACTER SET latin1",
        ),
        ("ENUM('a','it''s')", "enum('a','it''s')"),
        ("TIMESTAMP(6)", "timestamp(6)"),
        ("LONG VARBINARY", "mediumblob"),
    ] {
        let Statement::CreateTable(table) = statement(&format!("CREATE TABLE t (c {written})"))
        else {
            panic!()
        };
        let TableElement::Column(column) = &table.elements[0] else {
            panic!()
        };
        assert_eq!(column.data_type.to_string(), printed);
    }
}

#[test]
fn the_reported_digest_ignores_literals_case_and_space() {
    let text = |sql: &str| digest::normalized_text(sql.as_bytes(), Modes::NONE);
    assert_eq!(
        text("select  c FROM t where id=5"),
        "SELECT `c` FROM `t` WHERE `id` = ?"
    );
    assert_eq!(
        text("SELECT a FROM t WHERE b IN (1, 'x', NULL) LIMIT 3"),
        "SELECT `a` FROM `t` WHERE `b` IN ( ... ) LIMIT ?"
    );
    assert_eq!(
        text("INSERT INTO t VALUES (1,2),(3,4),(5,6)"),
        "INSERT INTO `t` VALUES ( ... ) /* , ... */"
    );
    assert_eq!(
        text("INSERT INTO t VALUES (1),(3)"),
        "INSERT INTO `t` VALUES ( ? ) /* , ... */"
    );
}

#[test]
fn every_query_of_the_corpus_prints_to_itself() {
    let mut printed = 0;
    for file in std::fs::read_dir(format!("{}/tests/corpus", env!("CARGO_MANIFEST_DIR"))).unwrap() {
        let text =
            String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned();
        for line in text.lines() {
            // Parameters are numbered as written, and LIMIT prints its offset first.
            let line = line
                .to_ascii_lowercase()
                .replace("count(*)", "count(0)")
                .replace('?', "7");
            if let Ok(Some(parsed)) = parse_statement(line.as_bytes(), 0, Modes::NONE)
                && let Statement::Query(query) = parsed.statement
            {
                assert_eq!(
                    statement(&query.to_string()),
                    Statement::Query(query),
                    "{line}"
                );
                printed += 1;
            }
        }
    }
    assert!(printed > 100, "{printed}");
}
