//! LOAD DATA of lines that end with a separator: behind it stands an empty field, which nobody misses
//! where there is no column for it (MySQL 8.4 manual, 15.2.9). Separators are bytes.

use super::database::Db;

#[test]
fn a_separator_at_the_end_needs_no_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lines.txt");
    let mut db = Db::with(&[("secure_file_priv", &folder.path().display().to_string())]);
    db.run("CREATE TABLE t (a INT, b INT)");
    db.run("CREATE TABLE wider (a INT, b INT, c VARCHAR(5))");
    let load = |ignore: &str, table: &str| {
        let file = path.display();
        format!("LOAD DATA INFILE '{file}' {ignore} INTO TABLE {table} FIELDS TERMINATED BY ','")
    };
    let write = |lines: &str| std::fs::write(&path, lines).expect("the file can be written");
    let none: [&str; 0] = [];

    write("1,2,\n3,4,\n");
    for ignore in ["", "IGNORE"] {
        db.run(&load(ignore, "t"));
        assert_eq!(db.rows("SHOW WARNINGS"), none);
        assert_eq!(db.rows("SELECT * FROM t"), ["1|2", "3|4"]);
        db.run("TRUNCATE TABLE t");
    }
    db.run(&load("", "wider"));
    assert_eq!(db.rows("SELECT * FROM wider"), ["1|2|", "3|4|"]);

    write("1,2,3\n");
    db.fails(&load("", "t"), 1262);
    db.run(&load("IGNORE", "t"));
    assert_eq!(
        db.rows("SHOW WARNINGS"),
        [
            "Warning|1262|Row 1 was truncated; it contained more data than there were input \
             columns"
        ]
    );
    assert_eq!(db.rows("SELECT * FROM t"), ["1|2"]);
}

#[test]
fn files_in_wide_character_sets_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wide.txt");
    std::fs::write(&path, b"\0a\0\n").expect("the file can be written");
    let mut db = Db::with(&[("secure_file_priv", &folder.path().display().to_string())]);
    db.run("CREATE TABLE t (a VARCHAR(5) CHARACTER SET utf16)");
    for charset in ["ucs2", "utf16", "utf16le", "utf32"] {
        let file = path.display();
        let load = format!("LOAD DATA INFILE '{file}' INTO TABLE t CHARACTER SET {charset}");
        db.fails(&load, 1235);
    }
    std::fs::write(&path, b"a\n").expect("the file can be written");
    db.run(&format!(
        "LOAD DATA INFILE '{}' INTO TABLE t CHARACTER SET latin1",
        path.display()
    ));
    assert_eq!(db.rows("SELECT a, HEX(a) FROM t"), ["a|0061"]);
}

#[test]
fn a_trigger_gives_a_value_to_a_column_that_the_file_leaves_null() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nulls.txt");
    std::fs::write(&path, b"1\t\\N\n2\t5\n").expect("the file can be written");
    let mut db = Db::with(&[("secure_file_priv", &folder.path().display().to_string())]);
    db.run("CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL)");
    let load = format!("LOAD DATA INFILE '{}' INTO TABLE t", path.display());
    db.fails(&load, 1263);
    db.run("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.b = COALESCE(NEW.b, 7)");
    for replace in ["", "REPLACE "] {
        db.run(&load.replace("INTO", &format!("{replace}INTO")));
        assert_eq!(db.rows("SELECT * FROM t"), ["1|7", "2|5"]);
    }
    db.run("DROP TRIGGER r");
    db.run("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @seen = NEW.a");
    db.fails(&load.replace("INTO", "REPLACE INTO"), 1048);
    assert_eq!(db.rows("SELECT * FROM t"), ["1|7", "2|5"]);
}
