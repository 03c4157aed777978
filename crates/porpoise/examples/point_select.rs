//! Prepared point selects a second, on one thread, of a database in a folder: sysbench's table, a
//! scattered order of ids.
//!
//! `cargo run --release -p porpoise --example point_select`

use std::time::Instant;

use porpoise::Database;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: u64 = 100_000;
const ROUNDS: u64 = 1_000_000;

fn id(round: u64) -> u64 {
    (round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % ROWS + 1
}

fn main() -> porpoise::Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = Database::open(folder.path())?;
    let connection = database.connect()?;
    connection.execute("CREATE DATABASE sbtest", ())?;
    connection.execute("USE sbtest", ())?;
    connection.execute(
        "CREATE TABLE sbtest1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0,
         c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))",
        (),
    )?;
    let transaction = connection.transaction()?;
    let insert = transaction.prepare("INSERT INTO sbtest1 (k, c, pad) VALUES (?, ?, ?)")?;
    for row in 0..ROWS {
        insert.execute((row % 1000, format!("{row:0119}"), format!("{row:059}")))?;
    }
    drop(insert);
    transaction.commit()?;

    let select = connection.prepare("SELECT c FROM sbtest1 WHERE id = ?")?;
    let mut bytes = 0;
    let mut report = |name: &str, run: &mut dyn FnMut(u64) -> porpoise::Result<usize>| {
        for round in 0..ROUNDS / 10 {
            bytes += run(round)?;
        }
        let begun = Instant::now();
        for round in 0..ROUNDS {
            bytes += run(round)?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{name:<28} {:>9.0}/s {:>6.0} ns",
            ROUNDS as f64 / seconds,
            seconds * 1e9 / ROUNDS as f64
        );
        Ok::<(), porpoise::Error>(())
    };
    report("prepared, row collected", &mut |round| {
        let rows = select.query((id(round),))?;
        let row = rows.get(0).expect("a row of every id");
        Ok(row.get::<&str>(0)?.len())
    })?;
    report("prepared, row seen in place", &mut |round| {
        let mut length = 0;
        select.query_each((id(round),), |row| {
            length = row.get::<&str>(0)?.len();
            Ok(())
        })?;
        Ok(length)
    })?;
    report("text with a parameter", &mut |round| {
        let rows = connection.query("SELECT c FROM sbtest1 WHERE id = ?", (id(round),))?;
        let row = rows.get(0).expect("a row of every id");
        Ok(row.get::<&str>(0)?.len())
    })?;
    std::hint::black_box(bytes);
    Ok(())
}
