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
    ] {
        let (said, longest) = db.lengths(query);
        assert!(longest <= said, "{query}: {longest} of {said}");
    }
}
