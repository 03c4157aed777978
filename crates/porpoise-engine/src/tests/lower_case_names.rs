//! `lower_case_table_names=1`: names of schemas, tables and aliases count in lower case, wherever a
//! statement may write them (MySQL 8.4 manual, 11.2.3).

use porpoise_core::error::ErrorKind;
use porpoise_storage::Location;

use super::database::{Db, beside};
use crate::session::Login;
use crate::{Engine, EngineOptions};

fn lowering() -> Db {
    Db::with(&[("lower-case-table-names", "1")])
}

#[test]
fn names_count_in_lower_case_in_every_statement() {
    let mut db = lowering();
    db.run("CREATE DATABASE Sea");
    db.run("USE SEA");
    assert_eq!(
        db.rows("SELECT DATABASE(), @@lower_case_table_names"),
        ["sea|1"]
    );
    db.run("CREATE TABLE Fish (Id INT PRIMARY KEY, Name VARCHAR(20))");
    db.run("INSERT INTO fISH VALUES (1, 'Cod'), (2, 'Eel')");
    // Columns keep their case.
    assert_eq!(db.columns("SELECT * FROM FISH"), "Id|Name");
    let names = "SELECT F.Name, SEA.Fish.Id FROM Fish F JOIN sea.FISH ON f.ID = fish.id \
                 WHERE SEA.fish.Id = 1";
    assert_eq!(db.rows(names), ["Cod|1"]);
    assert_eq!(
        db.rows("WITH Cte AS (SELECT F.* FROM Fish F) SELECT COUNT(*) FROM CTE"),
        ["2"]
    );
    db.run("UPDATE Fish AS X SET x.Name = 'Ling' WHERE X.Id = 2");
    db.run("DELETE A FROM Fish AS a WHERE A.Id = 2");
    db.run("INSERT INTO FISH VALUES (1, 'Tench') AS New ON DUPLICATE KEY UPDATE Name = NEW.Name");
    assert_eq!(
        db.rows("SELECT * FROM fish FOR UPDATE OF FISH"),
        ["1|Tench"]
    );
    assert_eq!(db.rows("SHOW TABLES FROM Sea"), ["fish"]);
    assert_eq!(db.rows("SHOW TABLES LIKE 'FI%'"), ["fish"]);
    assert!(db.rows("SHOW CREATE TABLE FISH")[0].starts_with("fish|CREATE TABLE `fish` ("));
    let columns = "SELECT COUNT(*) FROM information_schema.Columns \
                   WHERE TABLE_SCHEMA = 'SEA' AND TABLE_NAME = 'Fish'";
    assert_eq!(db.rows(columns), ["2"]);
    db.fails("CREATE TABLE FISH (a INT)", 1050);
    db.fails("CREATE DATABASE SEA", 1007);
    db.fails("SELECT * FROM Fish F, fish f", 1066);
}

#[test]
fn definitions_name_others_in_lower_case() {
    let mut db = lowering();
    db.run("CREATE TABLE Parent (id INT PRIMARY KEY)");
    db.run("CREATE TABLE Child (id INT, FOREIGN KEY (id) REFERENCES PARENT (id))");
    db.run("INSERT INTO parent VALUES (1)");
    db.fails("INSERT INTO CHILD VALUES (2)", 1452);
    db.fails("DROP TABLE Parent", 3730);
    db.run("CREATE VIEW Both_ AS SELECT P.id FROM Parent P JOIN D.Child C ON c.id = p.id");
    db.run("INSERT INTO Child VALUES (1)");
    assert_eq!(db.rows("SELECT BOTH_.ID FROM both_"), ["1"]);
    db.run("RENAME TABLE CHILD TO Grown");
    assert_eq!(db.rows("SHOW TABLES"), ["both_", "grown", "parent"]);
    db.run("CREATE TABLE Likeness LIKE GROWN");
    db.run("ALTER TABLE LIKENESS ADD COLUMN a INT, RENAME TO Other");
    db.run("CREATE TEMPORARY TABLE Temp (a INT)");
    db.run("INSERT INTO TEMP VALUES (1)");
    db.run("DROP TABLE tEMP, Other");
    db.run("CREATE DATABASE Elsewhere");
    db.run("ALTER DATABASE ELSEWHERE CHARACTER SET latin1");
    db.run("DROP DATABASE elseWHERE");
}

#[test]
fn locks_and_privileges_are_on_lower_case_names() {
    let mut db = lowering();
    db.run("CREATE TABLE Fish (id INT)");
    db.run("INSERT INTO fish VALUES (1)");
    db.run("LOCK TABLES Fish AS F WRITE");
    db.run("UPDATE FISH AS f SET id = 3");
    db.fails("SELECT * FROM Fish", 1100);
    db.run("UNLOCK TABLES");
    db.run("CREATE USER reader");
    db.run("GRANT SELECT ON D.FISH TO reader");
    assert_eq!(
        db.rows("SHOW GRANTS FOR reader"),
        [
            "GRANT USAGE ON *.* TO `reader`@`%`",
            "GRANT SELECT ON `d`.`fish` TO `reader`@`%`"
        ]
    );
    let mut second = beside(&db);
    second
        .session
        .init_db("D")
        .expect("a schema's name in a command counts alike");
    assert_eq!(second.rows("SELECT DATABASE(), id FROM FISH"), ["d|3"]);
    assert_eq!(
        second.session.field_list("FISH", "").expect("fields").len(),
        1
    );
}

#[test]
fn hints_name_tables_whichever_way() {
    let mut db = lowering();
    db.run("CREATE TABLE One (a INT)");
    db.run("CREATE TABLE Two (a INT)");
    db.run("SELECT /*+ JOIN_ORDER(TWO, One) */ 1 FROM ONE, Two");
    assert!(db.rows("SHOW WARNINGS").is_empty());
}

#[test]
fn names_keep_their_case_where_it_counts() {
    let mut db = Db::new();
    db.run("CREATE TABLE Fish (a INT)");
    db.run("CREATE TABLE fish (a INT)");
    db.fails("SELECT * FROM FISH", 1146);
}

#[test]
fn a_folder_keeps_the_value_it_was_made_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = |value: Option<&str>| {
        let given = value.map(|value| ("lower_case_table_names".to_string(), value.to_string()));
        Engine::open(EngineOptions {
            location: Location::Path(folder.path().join("data")),
            variables: given.into_iter().collect(),
        })
    };
    open(Some("1")).expect("makes it").close().expect("closes");
    let refused = open(Some("0")).err().expect("another value");
    assert!(refused.is(ErrorKind::EngineError), "{refused}");
    assert!(refused.message().contains(
        "Different lower_case_table_names settings for server ('0') and data dictionary ('1')."
    ));
    // Who says nothing takes the folder as it is.
    for value in [None, Some("1")] {
        let engine = open(value).expect("opens");
        let session = engine.connect(Login::default()).expect("connects");
        let mut db = Db { engine, session };
        db.run("CREATE DATABASE IF NOT EXISTS Made");
        assert_eq!(db.rows("SHOW DATABASES LIKE 'made'"), ["made"]);
        db.engine.close().expect("closes");
    }
}
