//! What sessions keep beyond their statements counts against the limits of memory.

use super::accounts::login;
use super::database::{Db, beside};
use super::transaction_memory::used_by_all;

const MIB: u64 = 1 << 20;

fn kept(db: &Db) -> u64 {
    db.session.state.memory.kept()
}

#[test]
fn user_variables_count_until_they_are_shorter_or_the_session_ends() {
    let mut db = Db::new();
    db.run("SET @a = REPEAT('x', 5000000)");
    // Of each kind of thing 64 KiB don't count.
    assert!((4_900_000..5_100_000).contains(&kept(&db)), "{}", kept(&db));
    assert_eq!(used_by_all(&db), kept(&db).div_ceil(8192) * 8192);
    db.run("SET @a = 'x'");
    assert!(kept(&db) < MIB);
    db.run("SET statement_memory_limit = 16777216");
    db.run("SET @a = REPEAT('x', 10000000)");
    for assignment in [
        "SET @b = REPEAT('y', 10000000)",
        "SELECT @b := REPEAT('y', 10000000)",
        "SELECT REPEAT('y', 10000000) INTO @b",
    ] {
        db.fails(assignment, 1037);
        assert_eq!(db.rows("SELECT LENGTH(@a), @b"), ["10000000|NULL"]);
    }
    // What the session keeps isn't counted for a statement.
    db.run("SET @b = REPEAT('y', 5000000)");
    let lengths = "SELECT LENGTH(CONCAT(@a, 'x')), LENGTH(CONCAT(@b, @b))";
    assert_eq!(db.rows(lengths), ["10000001|10000000"]);
    let mut other = beside(&db);
    other.run("SET @a = REPEAT('x', 10000000)");
    assert!(used_by_all(&db) > 24_000_000);
    other.session.reset().expect("resets");
    drop(other);
    db.session.reset().expect("resets");
    assert_eq!((kept(&db), used_by_all(&db)), (0, 0));
    assert_eq!(db.rows("SELECT @a"), ["NULL"]);
}

#[test]
fn many_small_user_variables_count() {
    let mut db = Db::new();
    db.run("SET statement_memory_limit = 2097152");
    let mut failed = 0;
    for n in 0..100 {
        let names: Vec<String> = (0..500).map(|i| format!("@v{n}_{i} = {i}")).collect();
        failed = match db.try_run(&format!("SET {}", names.join(", "))) {
            Ok(_) => 0,
            Err(error) => error.number(),
        };
        if failed != 0 {
            break;
        }
    }
    assert_eq!(failed, 1037);
    assert!(kept(&db) <= 2 * MIB);
}

#[test]
fn prepared_statements_count_until_they_are_closed() {
    let mut db = Db::new();
    db.run("SET statement_memory_limit = 16777216");
    let text = format!("SELECT LENGTH('{}')", "x".repeat(1_000_000));
    db.run(&format!("SET @sql = {}", quoted(&text)));
    let mut prepared = 0;
    let error = loop {
        match db.try_run(&format!("PREPARE s{prepared} FROM @sql")) {
            Ok(_) => prepared += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.number(), 1037);
    assert!((3..16).contains(&prepared), "{prepared}");
    assert_eq!(db.rows("EXECUTE s0"), ["1000000"]);
    for n in 0..prepared {
        db.run(&format!("DEALLOCATE PREPARE s{n}"));
    }
    assert!(kept(&db) < 2 * MIB, "{}", kept(&db));
    // One that is prepared anew takes the place of the old one.
    for _ in 0..50 {
        db.run("PREPARE s FROM @sql");
    }
    db.session.reset().expect("resets");
    assert_eq!((kept(&db), used_by_all(&db)), (0, 0));
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[test]
fn trees_of_long_texts_count_while_they_grow() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a INT)");
    let ones = |count: usize| vec!["1"; count].join(", ");
    let lists = |count: usize| vec!["(1)"; count].join(", ");
    let many = 200_000;
    let statements: [&dyn Fn(usize) -> String; 4] = [
        &|count| format!("SELECT 1 + 0 IN ({})", ones(count)),
        &|count| format!("INSERT INTO t VALUES {}", lists(count)),
        &|count| format!("DO {}", ones(count)),
        &|count| format!("SELECT COALESCE({})", vec!["a"; count].join(", ")),
    ];
    for statement in statements {
        db.run("SET statement_memory_limit = 16777216");
        db.fails(&statement(many), 1037);
        assert_eq!(used_by_all(&db), 0);
    }
    // One value that is as long is a token.
    let long = "x".repeat(2 * many);
    db.run("SET statement_memory_limit = 8388608");
    assert_eq!(db.rows(&format!("SELECT LENGTH('{long}')")), ["400000"]);
    db.run(&statements[0](1000));
    let prepare = format!("PREPARE s FROM {}", quoted(&statements[0](many)));
    db.fails(&prepare, 1037);
    assert_eq!(used_by_all(&db), 0);
}

#[test]
fn variables_of_programs_count_while_they_run() {
    let mut db = Db::new();
    db.run(
        "CREATE PROCEDURE deep (n INT) BEGIN
           DECLARE v LONGTEXT DEFAULT REPEAT('x', 1000000);
           IF n > 0 THEN CALL deep(n - 1); END IF;
         END",
    );
    db.run(
        "CREATE PROCEDURE again () BEGIN
           DECLARE v LONGTEXT;
           DECLARE i INT DEFAULT 0;
           WHILE i < 50 DO
             SET v = REPEAT('x', 1000000), v = '', i = i + 1;
           END WHILE;
         END",
    );
    db.run("SET max_sp_recursion_depth = 100, statement_memory_limit = 16777216");
    db.run("CALL deep(5)");
    db.run("CALL again()");
    db.fails("CALL deep(50)", 1037);
    assert_eq!(used_by_all(&db), 0);
}

#[test]
fn no_handler_takes_the_error_that_closes_the_connection() {
    let db = Db::new();
    let mut own = beside(&db);
    own.run(
        "CREATE PROCEDURE p () BEGIN
           DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @handled = 1;
           SET @a = REPEAT('x', 5000000);
           SET @b = 1;
         END",
    );
    own.run("SET connection_memory_limit = 4194304");
    own.fails("CALL p()", 4082);
    assert!(own.session.control().is_connection_killed());
    drop(own);
    assert_eq!(used_by_all(&db), 0);
    beside(&db).run("SELECT 1");
}

#[test]
fn rows_with_many_long_values_count() {
    let mut db = Db::new();
    db.run("CREATE TABLE t (a LONGTEXT)");
    db.run("INSERT INTO t VALUES (REPEAT('x', 1000000))");
    db.run("SET statement_memory_limit = 8388608");
    let columns = |column: &str, count: usize| vec![column; count].join(", ");
    for column in ["a", "REPEAT('x', 1000000)", "CONCAT(a, 'y')"] {
        db.run(&format!("SELECT {} FROM t", columns(column, 5)));
        db.fails(&format!("SELECT {} FROM t", columns(column, 20)), 1037);
    }
    assert_eq!(used_by_all(&db), 0);
}

#[test]
fn limits_of_connections_are_not_for_administrators() {
    let mut db = Db::new();
    db.run("CREATE USER admin, usual");
    db.run("GRANT CONNECTION_ADMIN ON *.* TO admin");
    db.run("SET GLOBAL connection_memory_limit = 4194304");
    db.run("SET GLOBAL global_connection_memory_limit = 16777216");
    db.run("SET GLOBAL global_connection_memory_tracking = ON");
    let mut admin = login(&db, "admin");
    admin.run("SET @a = REPEAT('x', 20000000)");
    let mut usual = login(&db, "usual");
    for variable in [
        "connection_memory_limit",
        "global_connection_memory_tracking",
        "statement_memory_limit",
    ] {
        usual.fails(&format!("SET {variable} = DEFAULT"), 1227);
    }
    usual.run("SET @a = REPEAT('x', 60000)");
    // What administrators take counts for the others.
    usual.fails("SET @a = REPEAT('x', 1000000)", 4081);
    assert!(usual.session.control().is_connection_killed());
    let tracked = "SHOW GLOBAL STATUS LIKE 'Global_connection_memory'";
    assert_ne!(db.rows(tracked), ["Global_connection_memory|0"]);
    admin.run("SET @a = NULL");
    let mut usual = login(&db, "usual");
    usual.run("SET @a = REPEAT('x', 1000000)");
    usual.fails("SET @b = REPEAT('x', 4000000)", 4082);
    drop((admin, usual));
    assert_eq!(db.rows(tracked), ["Global_connection_memory|0"]);
}

#[test]
fn documents_are_charged_while_a_function_reads_them() {
    let mut db = Db::new();
    let long = "SELECT JSON_LENGTH(CONCAT('[', REPEAT('1,', 3000000), '1]'))";
    assert_eq!(db.rows(long), ["3000001"]);
    db.run("CREATE TABLE d (j JSON)");
    db.run("INSERT INTO d SELECT CONCAT('[', REPEAT('1,', 3000000), '1]')");
    db.run("SET statement_memory_limit = 67108864");
    for reads in [
        long.to_string(),
        long.replace("JSON_LENGTH", "JSON_PRETTY"),
        "SELECT JSON_LENGTH(j) FROM d".to_string(),
        "SELECT CAST(CONCAT('[', REPEAT('[],', 3000000), '1]') AS JSON) IS NULL".to_string(),
    ] {
        db.fails(&reads, 1037);
    }
    assert_eq!(db.rows("SELECT JSON_LENGTH('[1, 2]')"), ["2"]);
}
