//! Texts that are answered by a plan that was made for other literals.

use crate::tests::database::Db;

#[test]
fn a_hexadecimal_literal_that_is_no_number_has_a_plan_of_its_own() {
    let mut db = Db::new();
    assert_eq!(db.rows("SELECT -x'00112233445566778899'"), ["-0"]);
    assert_eq!(db.rows("SELECT -x'80'"), ["-128"]);
    assert_eq!(db.rows("SELECT -x'00112233445566778899'"), ["-0"]);
    assert_eq!(db.rows("SELECT 0x112233445566778899 + 0"), ["0"]);
    assert_eq!(db.rows("SELECT 0x80 + 0"), ["128"]);
}

/// Clients make room for as many characters as they are told.
#[test]
fn a_result_is_as_long_as_its_column_is_said_to_be() {
    let mut db = Db::new();
    for query in [
        "SELECT 'T'",
        "SELECT CONCAT('T', 'x')",
        "SELECT c FROM (SELECT 'T' AS c UNION ALL SELECT 'b') d",
        "SELECT GREATEST('a', 'T')",
        "SELECT LEAST('T', 7, 'zzzzzz')",
        "SELECT DATE_FORMAT(DATE'2024-02-29', 'T')",
        "SELECT BINARY 'T'",
    ] {
        for text in ["a", "abcdef", "abc", "éééééééé", &"long ".repeat(60), "b"] {
            let sql = query.replace("'T'", &format!("'{text}'"));
            let (said, longest) = db.lengths(&sql);
            assert!(longest <= said, "{sql}: {longest} of {said}");
        }
    }
    for query in [
        "SELECT CAST(-0.0001 AS CHAR)",
        "SELECT FORMAT_BYTES(1e300)",
        "SELECT GREATEST(CHAR(8), REPEAT('é', 300))",
        "SELECT CONVERT(-0.0001 USING utf16)",
        "SELECT CONVERT(TRUNCATE(REPEAT('9', 65) + 0.0, 64) USING utf32)",
        "SELECT CONVERT(TRUNCATE(99999999999999999999999999999999999999999999999999999999999999999, 64) USING latin1)",
        "SELECT UNHEX(CAST(TIMESTAMP'2038-01-19 03:14:07.999999' AS FLOAT))",
        "SELECT WEIGHT_STRING(REVERSE(1 / TIMESTAMP'2024-03-31 02:30:00' / 1e0))",
        "SELECT LEFT(REGEXP_REPLACE(REPEAT('é', 70000), x'7F000001', 0), 1)",
        "SELECT LEFT(REGEXP_SUBSTR(REPEAT('é', 70000), x'2E'), 1)",
    ] {
        let (said, longest) = db.lengths(query);
        assert!(longest <= said, "{query}: {longest} of {said}");
    }
    let (said, _) = db.lengths("SELECT UNHEX(CAST(REPEAT('ab', 500) AS CHAR(4)))");
    assert_eq!(said, 2);
}

/// A column that is called by a literal has another name in the next text.
#[test]
fn an_order_by_the_name_of_a_literal_is_that_texts_alone() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (id INT, label VARCHAR(9))");
    db.run("INSERT INTO t VALUES (2, 'b'), (1, 'a')");
    assert_eq!(db.rows("SELECT 'id', label FROM t ORDER BY id").len(), 2);
    assert_eq!(
        db.rows("SELECT 'xx', label FROM t ORDER BY id"),
        ["xx|a", "xx|b"]
    );
    assert_eq!(db.rows("SELECT 'id' FROM t HAVING id = 'id'").len(), 2);
    db.fails("SELECT 'xx' FROM t HAVING id = 'id'", 1054);
    // The same of columns of derived tables, common tables and unions.
    assert_eq!(db.rows("SELECT xx FROM (SELECT 'xx' FROM t) d").len(), 2);
    db.fails("SELECT xx FROM (SELECT 'yy' FROM t) d", 1054);
    let unmerged = "SELECT xx FROM (SELECT 'xx', COUNT(*) FROM t) d";
    assert_eq!(db.rows(unmerged), ["xx"]);
    db.fails(&unmerged.replace("'xx'", "'yy'"), 1054);
    let common = "WITH c AS (SELECT 5, label FROM t) SELECT `5` FROM c";
    assert_eq!(db.rows(common).len(), 2);
    db.fails(&common.replace("SELECT 5", "SELECT 6"), 1054);
    let union = "SELECT 'xx' FROM t UNION SELECT 'bb' ORDER BY xx";
    assert_eq!(db.rows(union), ["bb", "xx"]);
    db.fails(&union.replace("'xx'", "'yy'"), 1054);
    assert_eq!(
        db.rows("SELECT label FROM (SELECT 'xx', label FROM t) d")
            .len(),
        2
    );
}
