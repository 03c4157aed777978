//! Binary data in string literals, as drivers send it, in statements of any length.

use porpoise_core::error::ErrorKind;

use crate::tests::database::Db;

/// More literals than a digest lifts out of a statement.
const ROWS: usize = 4_200;

fn insert(table: &str) -> Vec<u8> {
    let mut sql = format!("INSERT INTO {table} VALUES ").into_bytes();
    for row in 0..ROWS {
        sql.extend_from_slice(if row == 0 { b"('" } else { b",('" });
        sql.extend_from_slice(&[0x80, 0xFF, (row % 128) as u8 | 0x80]);
        sql.extend_from_slice(b"')");
    }
    sql
}

#[test]
fn long_statements_take_binary_data() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (b BLOB)");
    db.run_bytes(&insert("t")).unwrap();
    let count = db.rows("SELECT COUNT(*), MIN(HEX(b)), MAX(HEX(b)) FROM t");
    assert_eq!(count, [format!("{ROWS}|80FF80|80FFFF")]);
}

#[test]
fn a_text_column_refuses_what_is_no_text() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (c TEXT)");
    let short = b"INSERT INTO t VALUES ('\x80')".to_vec();
    for sql in [short, insert("t")] {
        let error = db.run_bytes(&sql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IncorrectValueForColumn, "{error}");
    }
    assert_eq!(db.rows("SELECT COUNT(*) FROM t"), ["0"]);
}

#[test]
fn a_string_of_bytes_is_no_number_as_a_hexadecimal_literal_is() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (n INT)");
    db.run("INSERT INTO t VALUES (0), (233)");
    let rows = db.rows_of_bytes(b"SELECT n FROM t WHERE n = '\xE9'");
    assert_eq!(rows, ["0"]);
    assert_eq!(db.rows("SELECT n FROM t WHERE n = 0xE9"), ["233"]);
}
