//! LOAD DATA of lines that end with a separator: behind it stands an empty field, which nobody misses
//! where there is no column for it (MySQL 8.4 manual, 15.2.9).

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
