//! Damaged folders as SQL sees them: right rows or an error that names the table, CHECK TABLE, and
//! `porpoise recover`.
//!
//! `PORPOISE_DAMAGES=500 cargo test --release -p porpoise-cli --test damage -- --nocapture` tries
//! so many random damages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use porpoise::{Connection, Database, Error};

const PAGE: usize = 4096;
const TABLES: [&str; 3] = ["fish", "boats", "ports"];
const ROWS: i64 = 400;

static PANICS: AtomicU64 = AtomicU64::new(0);

fn name_of(table: &str, id: i64) -> String {
    format!(
        "{table} {:04} {}",
        id * 7919 % 1000,
        "x".repeat((id % 40) as usize)
    )
}

/// A closed database: tables with a unique and a plain secondary index.
fn image() -> &'static Path {
    static IMAGE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = IMAGE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path()).unwrap();
        let mut connection = database.connect().unwrap();
        run(&mut connection, "CREATE DATABASE d");
        for table in TABLES {
            run(
                &mut connection,
                &format!(
                    "CREATE TABLE d.{table} (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), size INT, \
                     UNIQUE KEY by_id_and_name (id, name), KEY by_name (name), KEY by_size (size, id))"
                ),
            );
            for chunk in (1..=ROWS).collect::<Vec<_>>().chunks(100) {
                let rows: Vec<String> = chunk
                    .iter()
                    .map(|id| format!("({id}, '{}', {})", name_of(table, *id), id % 10))
                    .collect();
                run(&mut connection, &format!("INSERT INTO d.{table} VALUES {}", rows.join(",")));
            }
        }
        drop((connection, database));
        folder
    });
    folder.path()
}

fn run(connection: &mut Connection, sql: &str) {
    connection
        .execute(sql, ())
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn copy_of(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in files_in(from) {
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let is_file = |entry: &fs::DirEntry| entry.file_type().unwrap().is_file();
    let mut files: Vec<PathBuf> = files.filter(is_file).map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

type Row = (i64, String, i64);

fn rows(connection: &mut Connection, sql: &str) -> Result<Vec<Row>, Error> {
    connection.query(sql, ()).map(|rows| {
        rows.iter()
            .map(|row| {
                (
                    row.get(0).unwrap(),
                    row.get(1).unwrap(),
                    row.get(2).unwrap(),
                )
            })
            .collect()
    })
}

fn expected(table: &str) -> BTreeMap<i64, Row> {
    (1..=ROWS)
        .map(|id| (id, (id, name_of(table, id), id % 10)))
        .collect()
}

/// CHECK TABLE's rows: the kind of each, and its text.
fn check(connection: &mut Connection, table: &str, option: &str) -> Vec<(String, String)> {
    let rows = connection
        .query(&format!("CHECK TABLE d.{table} {option}"), ())
        .unwrap();
    rows.iter()
        .map(|row| (row.get(2).unwrap(), row.get(3).unwrap()))
        .collect()
}

fn is_ok(told: &[(String, String)]) -> bool {
    told == [("status".to_string(), "OK".to_string())]
}

/// Queries through the rows and through each index. How many failed, with a clear error each.
fn ask(connection: &mut Connection, table: &str) -> Result<u64, String> {
    let all = expected(table);
    let mut failed = 0;
    let mut judge = |what: &str, found: Result<Vec<Row>, Error>, due: Vec<Row>| match found {
        Ok(found) if found == due => Ok(()),
        Ok(found) => Err(format!(
            "{table}, {what}: {} rows where {} are due",
            found.len(),
            due.len()
        )),
        Err(error) if is_clear(&error, table) => {
            failed += 1;
            Ok(())
        }
        Err(error) => Err(format!("{table}, {what}: {error}")),
    };
    let found = rows(connection, &format!("SELECT * FROM d.{table} ORDER BY id"));
    judge("scan", found, all.values().cloned().collect())?;
    for id in (1..=ROWS).step_by(29) {
        let found = rows(
            connection,
            &format!("SELECT * FROM d.{table} WHERE id = {id}"),
        );
        judge("by id", found, vec![all[&id].clone()])?;
        let name = &all[&id].1;
        let sql = format!(
            "SELECT * FROM d.{table} FORCE INDEX (by_name) WHERE name = '{name}' ORDER BY id"
        );
        let due = all.values().filter(|row| row.1 == *name).cloned().collect();
        judge("by name", rows(connection, &sql), due)?;
    }
    for size in 0..10 {
        let sql = format!(
            "SELECT * FROM d.{table} FORCE INDEX (by_size) WHERE size = {size} ORDER BY id"
        );
        let due = all.values().filter(|row| row.2 == size).cloned().collect();
        judge("by size", rows(connection, &sql), due)?;
    }
    Ok(failed)
}

fn is_clear(error: &Error, table: &str) -> bool {
    let text = error.to_string();
    let names_file = text.contains("tree.redb");
    names_file && (text.contains(&format!("d.{table}")) || text.contains("mysql.data_dictionary"))
}

/// A damaged page of a table, which the bytes are on.
fn damage_page_with(folder: &Path, bytes: &[u8]) {
    edit(&folder.join("tree.redb"), |file| {
        let at = file
            .windows(bytes.len())
            .rposition(|window| window == bytes);
        let page = at.expect("the bytes are in the tree") / PAGE;
        file[page * PAGE + 3000] ^= 4;
    });
}

/// A page of the rows of a table is damaged. (Entries of indexes have no `size` of other rows
/// between.)
fn damaged_rows(table: &str) -> tempfile::TempDir {
    let folder = copy_of(image());
    // A row: no column NULL, the id, the size, where the name ends, the name.
    let (id, name) = (200i32, name_of(table, 200));
    let mut row = vec![0];
    row.extend(id.to_le_bytes());
    row.extend(0i32.to_le_bytes());
    row.extend((name.len() as u32).to_le_bytes());
    row.extend(name.as_bytes());
    damage_page_with(folder.path(), &row);
    folder
}

#[test]
fn an_error_names_the_table_and_the_place_and_others_go_on() {
    let folder = damaged_rows("fish");
    let database = Database::open(folder.path()).unwrap();
    let mut connection = database.connect().unwrap();
    let error = rows(&mut connection, "SELECT * FROM d.fish").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("Incorrect key file for table 'd.fish'; try to repair it"),
        "{text}"
    );
    assert!(text.contains("tree.redb is damaged at offset"), "{text}");
    assert!(text.contains("1034"), "{text}");
    assert!(ask(&mut connection, "fish").unwrap() > 0);
    for table in &TABLES[1..] {
        assert_eq!(ask(&mut connection, table), Ok(0));
        for option in [
            "",
            "QUICK",
            "FAST",
            "MEDIUM",
            "CHANGED",
            "EXTENDED",
            "FOR UPGRADE",
        ] {
            assert!(
                is_ok(&check(&mut connection, table, option)),
                "{table} {option}"
            );
        }
    }
    for option in ["", "QUICK", "EXTENDED"] {
        let told = check(&mut connection, "fish", option);
        assert_eq!(
            told.last().unwrap(),
            &("error".to_string(), "Corrupt".to_string())
        );
        assert_eq!(told[0].0, "Error");
        assert!(told[0].1.contains("d.fish"), "{told:?}");
    }
    // What is written elsewhere goes on being written, the damaged table can be dropped.
    run(
        &mut connection,
        "INSERT INTO d.boats VALUES (1000, 'new', 3)",
    );
    run(&mut connection, "DROP TABLE d.fish");
    drop((connection, database));
    let database = Database::open(folder.path()).unwrap();
    let mut connection = database.connect().unwrap();
    assert_eq!(ask(&mut connection, "ports"), Ok(0));
    let found = rows(&mut connection, "SELECT * FROM d.boats WHERE id = 1000").unwrap();
    assert_eq!(found.len(), 1);
}

#[test]
fn damage_to_an_index_names_the_index_and_leaves_the_rows() {
    let folder = copy_of(image());
    // The key of an entry by size: 7, then the id, each with its sign turned.
    let mut entry = vec![];
    for part in [7i32, 207] {
        entry.push(1);
        entry.extend((part ^ i32::MIN).to_be_bytes());
    }
    let tree = fs::read(folder.path().join("tree.redb")).unwrap();
    if !tree.windows(entry.len()).any(|window| window == entry) {
        // The key part of a column that can't be NULL has no byte in front.
        entry.remove(5);
    }
    damage_page_with(folder.path(), &entry);
    let database = Database::open(folder.path()).unwrap();
    let mut connection = database.connect().unwrap();
    let table = TABLES
        .into_iter()
        .find(|table| !is_ok(&check(&mut connection, table, "")))
        .expect("one table has the page");
    let told = check(&mut connection, table, "EXTENDED");
    assert!(
        told[0]
            .1
            .contains(&format!("Index d.{table}.by_size is corrupted")),
        "{told:?}"
    );
    let sql = format!("SELECT * FROM d.{table} FORCE INDEX (PRIMARY) ORDER BY id");
    let found = rows(&mut connection, &sql).unwrap();
    assert!(found.into_iter().eq(expected(table).into_values()));
    assert!(ask(&mut connection, table).unwrap() > 0);
    run(
        &mut connection,
        &format!("ALTER TABLE d.{table} DROP KEY by_size"),
    );
    run(
        &mut connection,
        &format!("ALTER TABLE d.{table} ADD KEY by_size (size, id)"),
    );
    assert_eq!(ask(&mut connection, table), Ok(0));
    assert!(is_ok(&check(&mut connection, table, "EXTENDED")));
}

/// Runs `porpoise recover`: its exit code, and what it printed.
fn recover(folder: &Path, into: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_porpoise"))
        .args([
            "recover",
            folder.to_str().unwrap(),
            "--into",
            into.to_str().unwrap(),
        ])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout) + &text(&output.stderr);
    (output.status.code().unwrap_or(-1), printed)
}

#[test]
fn recover_saves_all_of_a_sound_folder() {
    let folder = copy_of(image());
    let into = folder.path().join("new");
    let before: Vec<_> = files_in(folder.path())
        .iter()
        .map(|f| fs::read(f).unwrap())
        .collect();
    let (code, printed) = recover(folder.path(), &into);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("d.fish: 400 rows saved"), "{printed}");
    assert!(printed.contains("everything was saved"), "{printed}");
    let after: Vec<_> = files_in(folder.path())
        .iter()
        .map(|f| fs::read(f).unwrap())
        .collect();
    assert!(before == after, "the folder is only read");
    let database = Database::open(&into).unwrap();
    let mut connection = database.connect().unwrap();
    for table in TABLES {
        assert_eq!(ask(&mut connection, table), Ok(0));
        assert!(is_ok(&check(&mut connection, table, "EXTENDED")));
    }
    run(
        &mut connection,
        "INSERT INTO d.fish (name, size) VALUES ('next', 1)",
    );
    let found = rows(&mut connection, "SELECT * FROM d.fish WHERE name = 'next'").unwrap();
    assert_eq!(found[0].0, ROWS + 1, "AUTO_INCREMENT goes on");
    drop((connection, database));
    assert_eq!(
        recover(folder.path(), &into).0,
        1,
        "it never writes over anything"
    );
}

#[test]
fn recover_says_what_it_could_not_save() {
    let folder = damaged_rows("boats");
    let into = folder.path().join("new");
    let (code, printed) = recover(folder.path(), &into);
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("d.fish: 400 rows saved"), "{printed}");
    assert!(printed.contains("of about 400 rows saved"), "{printed}");
    assert!(
        printed.contains("rows lost: ") && printed.contains("tree.redb"),
        "{printed}"
    );
    assert!(printed.contains("index by_size made to agree"), "{printed}");
    let database = Database::open(&into).unwrap();
    let mut connection = database.connect().unwrap();
    for table in ["fish", "ports"] {
        assert_eq!(ask(&mut connection, table), Ok(0));
    }
    assert!(is_ok(&check(&mut connection, "boats", "EXTENDED")));
    let found = rows(&mut connection, "SELECT * FROM d.boats ORDER BY id").unwrap();
    assert!(found.len() > 200 && found.len() < 400, "{}", found.len());
    let all = expected("boats");
    assert!(found.iter().all(|row| all[&row.0] == *row));
}

/// A random damage to a page or a part of a file.
fn damage(folder: &Path, random: &mut fastrand::Rng) -> String {
    let files = files_in(folder);
    let path = match random.u32(..4) {
        0 => files[random.usize(..files.len())].clone(),
        _ => folder.join("tree.redb"),
    };
    let mut bytes = fs::read(&path).unwrap();
    let len = bytes.len().max(1);
    let pages = (len / PAGE).max(1);
    let at = random.usize(..len);
    let (one, two) = (random.usize(..pages) * PAGE, random.usize(..pages) * PAGE);
    let what = match random.u32(..6) {
        0 | 1 => {
            bytes
                .get_mut(at)
                .into_iter()
                .for_each(|byte| *byte ^= 1 << (at % 8));
            "a flip"
        }
        2 => {
            bytes
                .iter_mut()
                .skip(at / 512 * 512)
                .take(4096)
                .for_each(|byte| *byte = 0);
            "zeros"
        }
        3 => {
            let page: Vec<u8> = bytes.iter().skip(one).take(PAGE).copied().collect();
            bytes
                .iter_mut()
                .skip(two)
                .zip(page)
                .for_each(|(to, from)| *to = from);
            "a page in another's place"
        }
        4 => {
            bytes.truncate(at);
            "a cut"
        }
        _ => {
            fs::remove_file(&path).unwrap();
            return format!("{} removed", path.display());
        }
    };
    fs::write(&path, bytes).unwrap();
    format!("{}: {what} at {at}", path.display())
}

/// What came of a damage: refused, errors, or nothing.
fn judge(folder: &Path) -> Result<&'static str, String> {
    let database = match Database::open(folder) {
        Ok(database) => database,
        Err(error) => {
            let text = error.to_string();
            let names_file = text.contains("tree.redb") || text.contains("log-");
            return names_file.then_some("start refused").ok_or(text);
        }
    };
    let mut connection = database.connect().map_err(|error| error.to_string())?;
    let mut failed = 0;
    for table in TABLES {
        let before = ask(&mut connection, table)?;
        let told = check(&mut connection, table, "EXTENDED");
        if before > 0 && is_ok(&told) {
            return Err(format!("CHECK TABLE finds nothing wrong with {table}"));
        }
        if !is_ok(&told) && told.last().map(|row| row.1.as_str()) != Some("Corrupt") {
            return Err(format!("CHECK TABLE {table} says {told:?}"));
        }
        failed += before + u64::from(!is_ok(&told));
        let insert = format!("INSERT INTO d.{table} VALUES (5000, 'late', 3)");
        match connection.execute(&insert, ()) {
            Ok(_) => {
                let found = rows(
                    &mut connection,
                    &format!("SELECT * FROM d.{table} WHERE id = 5000"),
                );
                let is_there = found.as_ref().is_ok_and(|found| found.len() == 1);
                if !is_there && !found.is_err_and(|error| is_clear(&error, table)) {
                    return Err(format!("{table}: a row that was inserted is not there"));
                }
            }
            Err(error) if is_clear(&error, table) => failed += 1,
            Err(error) => return Err(format!("{table}: {error}")),
        }
    }
    Ok(if failed > 0 { "errors" } else { "all right" })
}

#[test]
fn random_damages_give_right_rows_or_a_clear_error() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        hook(info);
    }));
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let tries = number("PORPOISE_DAMAGES").unwrap_or(40);
    let first = number("PORPOISE_SEED").unwrap_or(0);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut failures = Vec::new();
    for seed in first..first + tries {
        let folder = copy_of(image());
        let what = damage(folder.path(), &mut fastrand::Rng::with_seed(seed));
        let panics = PANICS.load(Ordering::SeqCst);
        let outcome = std::panic::catch_unwind(|| judge(folder.path()));
        match outcome.unwrap_or_else(|_| Err("a panic".to_string())) {
            Ok(_) if PANICS.load(Ordering::SeqCst) > panics => {
                failures.push(format!("seed {seed}, {what}: a panic inside"));
            }
            Ok(fate) => *counts.entry(fate).or_default() += 1,
            Err(why) => failures.push(format!("seed {seed}, {what}: {why}")),
        }
    }
    println!("{tries} damages: {counts:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
