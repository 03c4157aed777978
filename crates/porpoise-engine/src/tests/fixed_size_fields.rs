//! Files whose fields nothing ends or encloses: each is as long as a value of its type can be (MySQL
//! 8.4 manual, 15.2.9). The bytes, and what becomes of them, were MySQL's.

use std::path::Path;

use super::database::Db;

const TABLE: &str = "CREATE TABLE t (a TINYINT, b SMALLINT UNSIGNED, c INT, d BIGINT, e DECIMAL(6,2), f FLOAT,
    g DOUBLE, h CHAR(5), i VARCHAR(4), j DATE, k DATETIME(3), l TIME, m YEAR, n ENUM('aa','b'), o SET('x','yy'),
    v VARCHAR(3) CHARACTER SET latin1, w VARBINARY(3))";

fn database(folder: &Path) -> Db {
    let mut db = Db::with(&[("secure_file_priv", &folder.display().to_string())]);
    db.run(TABLE);
    db.run("INSERT INTO t VALUES (1, 2, 3, 4, 5.5, 1.5, 2.25, 'abc', 'é', '2024-01-02', '2024-01-02 03:04:05.678', '10:11:12', 2024, 'aa', 'x,yy', 'txt', 'ab'), (-128, NULL, NULL, -9, -1234.56, NULL, NULL, NULL, 'x', NULL, NULL, '-100:00:00', NULL, NULL, '', '', '')");
    db
}

#[test]
fn fields_are_filled_with_spaces() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = database(folder.path());
    let cases: [(&str, &str, &str); 6] = [
        (
            "SELECT * FROM t",
            "ENCLOSED BY ''",
            concat!(
                "1   2    3          4                   5.50    1.5         2.25                  abc                 é              ",
                "2024-01-022024-01-02 03:04:05.67810:11:12  2024aa      x,yy            txtab \n",
                "-128                -9                  -1234.56                                                      x               ",
                "                                 -100:00:00                            ",
                "      \n",
            ),
        ),
        (
            "SELECT a, h, 'a|b' AS c FROM t LIMIT 1",
            "LINES TERMINATED BY '|'",
            "1   abc                 a\\|b         |",
        ),
        (
            "SELECT a, h FROM t",
            "ESCAPED BY '' LINES TERMINATED BY ''",
            "1   abc                 -128                    ",
        ),
        (
            "SELECT a, h FROM t",
            "LINES STARTING BY '>>' TERMINATED BY '\\r\\n'",
            ">>1   abc                 \r\n>>-128                    \r\n",
        ),
        // The longest texts are of no size.
        (
            "SELECT a, CAST(h AS JSON) FROM (SELECT 1 AS a, '[1]' AS h) d",
            "",
            "1[1]\n",
        ),
        ("SELECT a FROM t WHERE a = 0", "", ""),
    ];
    for (number, (query, format, expected)) in cases.iter().enumerate() {
        let path = folder.path().join(format!("{number}.txt"));
        let into = format!("INTO OUTFILE '{}' FIELDS TERMINATED BY ''", path.display());
        db.run(&format!("{query} {into} {format}"));
        let written = std::fs::read(&path).expect("the file");
        assert_eq!(String::from_utf8_lossy(&written), *expected, "{query}");
    }
}

#[test]
fn fields_are_told_apart_by_their_length() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut db = database(folder.path());
    let path = folder.path().join("rows.txt");
    let load = |what: &str| format!("LOAD DATA INFILE '{}' INTO TABLE {what}", path.display());
    db.run("SET sql_mode = ''");
    db.run(&format!(
        "SELECT * FROM t WHERE a = 1 INTO OUTFILE '{}' FIELDS TERMINATED BY ''",
        path.display()
    ));
    db.run("CREATE TABLE u LIKE t");
    db.run(&load("u FIELDS TERMINATED BY '' ENCLOSED BY ''"));
    let expected = "1|2|3|4|5.50|1.5|2.25|abc|é   |2024-01-02|2024-01-02 03:04:05.678|10:11:12|2024|aa|x,yy|txt|ab ";
    assert_eq!(db.rows("SELECT * FROM u"), [expected]);

    let rows = b"1   abc\n2\n\n3   defghijklmnopqrstuvw4   x   y\n5   a\\tb\\\nc\n6   \\Nxy";
    std::fs::write(&path, rows).expect("written");
    db.run("TRUNCATE TABLE u");
    db.run(&load("u FIELDS TERMINATED BY '' (a, h, c)"));
    let warnings = db.rows("SHOW WARNINGS");
    let numbers: Vec<&str> = warnings
        .iter()
        .filter_map(|row| row.split('|').nth(1))
        .collect();
    let lacks = "1261";
    let cut = "1265";
    let expected = [
        lacks, lacks, lacks, lacks, lacks, lacks, cut, cut, lacks, lacks,
    ];
    assert_eq!(numbers, expected, "{warnings:?}");
    let expected = [
        "1|616263|0",
        "2||0",
        "0||0",
        "3|6465666768|4",
        "5|6109620A63|0",
        "6|4E7879|0",
    ];
    assert_eq!(db.rows("SELECT a, HEX(h), c FROM u"), expected);

    std::fs::write(&path, b">>1   abc                 more\r\n>>-1  d\r\n").expect("written");
    db.run("TRUNCATE TABLE u");
    let format = "FIELDS TERMINATED BY '' LINES STARTING BY '>>' TERMINATED BY '\\r\\n'";
    db.run(&load(&format!("u {format} (a, h) SET b = a + 1")));
    assert_eq!(db.rows("SELECT a, b, h FROM u"), ["1|2|abc", "-1|0|d"]);
    db.fails(&load(&format!("u {format} (a, @h)")), 1409);
    db.run("SET sql_mode = 'STRICT_TRANS_TABLES'");
    db.fails(&load(&format!("u {format} (a, h)")), 1262);
    std::fs::write(&path, b"1   abc                 -1  d                   ").expect("written");
    db.run("TRUNCATE TABLE u");
    db.run(&load(
        "u FIELDS TERMINATED BY '' LINES TERMINATED BY '' (a, h)",
    ));
    assert_eq!(db.rows("SELECT a, h FROM u"), ["1|abc", "-1|d"]);
}
