//! Where the nanoseconds of a point select go, without any way in.
//!
//! `cargo bench -p porpoise-engine --bench point_select` opens a database in memory, loads sysbench's table
//! and prints the cost of each layer, and of the whole statement: prepared, and as text. A word after `--`
//! chooses the lines that hold it, for a profiler to look at.

use std::hint::black_box;
use std::time::Instant;

use porpoise_engine::reply::{Completion, Reply, ResultColumn};
use porpoise_engine::session::Login;
use porpoise_engine::{Engine, EngineOptions, Result, Session};
use porpoise_mdl::TableUse;
use porpoise_mdl::{HeldTables, MdlScope, StatementTables, Use};
use porpoise_storage::{Location, SpaceId};
use porpoise_types::{DataType, Date, DateTime, KeyBuf, Time, Value, encode_key_part};

const ROWS: u64 = 100_000;
const ROUNDS: u64 = 300_000;
const ROWS_PER_INSERT: u64 = 1_000;

/// Counts bytes, keeps nothing.
#[derive(Default)]
struct Sink {
    buffer: Vec<u8>,
    rows: u64,
}

impl Reply for Sink {
    fn ok(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }
    fn begin_rows(&mut self, _: &[ResultColumn]) -> Result<()> {
        self.buffer.clear();
        Ok(())
    }
    fn begin_row(&mut self) {}
    fn null(&mut self) {}
    fn int(&mut self, value: i64) {
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }
    fn uint(&mut self, value: u64) {
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }
    fn float(&mut self, _: f32) {}
    fn double(&mut self, _: f64) {}
    fn bytes(&mut self, value: &[u8]) {
        self.buffer.extend_from_slice(value);
    }
    fn date(&mut self, _: Date) {}
    fn datetime(&mut self, _: DateTime, _: u8) {}
    fn time(&mut self, _: Time, _: u8) {}
    fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        Ok(())
    }
    fn end_rows(&mut self, _: &Completion) -> Result<()> {
        Ok(())
    }
}

fn run(session: &mut Session, sql: &str) {
    let ran = session
        .query(sql.as_bytes(), &mut Sink::default())
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    if let Some(commit) = ran.commit {
        commit.wait().expect("the commit");
    }
}

/// Ids in a scattered order.
fn id(round: u64) -> i64 {
    (round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as i64 % ROWS as i64 + 1
}

fn measure(name: &str, mut body: impl FnMut(u64)) {
    let mut chosen = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    if chosen.next().is_some_and(|word| !name.contains(&word)) {
        return;
    }
    for round in 0..ROUNDS / 10 {
        body(round);
    }
    let start = Instant::now();
    for round in 0..ROUNDS {
        body(round);
    }
    println!(
        "{name:<44} {:>8.0} ns",
        start.elapsed().as_nanos() as f64 / ROUNDS as f64
    );
}

fn main() {
    let engine = Engine::open(EngineOptions {
        location: Location::Memory,
        variables: Vec::new(),
    })
    .expect("a database");
    let mut session = engine
        .connect(Login {
            connection_id: 1,
            user: "root".into(),
            host: "localhost".into(),
            ..Login::default()
        })
        .expect("a session");
    run(&mut session, "CREATE DATABASE sbtest");
    run(&mut session, "USE sbtest");
    run(
        &mut session,
        "CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id), KEY k_1 (k))",
    );
    for first in (0..ROWS).step_by(ROWS_PER_INSERT as usize) {
        let rows: Vec<String> = (first..first + ROWS_PER_INSERT)
            .map(|row| format!("({}, '{:0119}', '{:059}')", row % 1000, row, row))
            .collect();
        run(
            &mut session,
            &format!("INSERT INTO sbtest1 (k, c, pad) VALUES {}", rows.join(",")),
        );
    }
    engine.shared.store.checkpoint().expect("a checkpoint");

    let mut literals = porpoise_sql::Literals::new();
    measure("lexer: digest of the text", |round| {
        let sql = format_args!("SELECT c FROM sbtest1 WHERE id={}", id(round)).to_string();
        black_box(porpoise_sql::digest(
            sql.as_bytes(),
            porpoise_sql::Modes::NONE,
            &mut literals,
        ));
    });
    measure("  of which formatting the text", |round| {
        black_box(format_args!("SELECT c FROM sbtest1 WHERE id={}", id(round)).to_string());
    });
    let mut key = KeyBuf::new();
    measure("types: key encoded", |round| {
        key.clear();
        encode_key_part(
            &Value::Int(id(round)),
            &DataType::INT,
            false,
            false,
            None,
            &mut key,
        );
        black_box(&key);
    });
    measure("storage: snapshot", |_| {
        black_box(engine.shared.store.snapshot());
    });
    let catalog = engine.shared.catalog.load_full();
    let Some(porpoise_catalog::Relation::Table(table)) = catalog.relation("sbtest", "sbtest1")
    else {
        panic!("the table")
    };
    for (name, usage) in [
        ("metadata lock: of a read", TableUse::Read),
        ("metadata lock: of a change", TableUse::Write),
    ] {
        measure(name, |_| {
            let _changing = (usage == TableUse::Write).then(|| {
                session
                    .state
                    .begin_change(&engine.shared.locks, session.control())
                    .expect("a change")
            });
            let mut tables = StatementTables::none(session.control());
            let used = Use {
                id: table.id,
                state: &table.state,
                usage,
            };
            assert!(MdlScope::Statement(&mut tables).try_take(used, session.control()));
            black_box(&tables);
        });
    }
    let mut held = HeldTables::default();
    measure("metadata lock: of a transaction", |_| {
        let used = Use {
            id: table.id,
            state: &table.state,
            usage: TableUse::Read,
        };
        assert!(MdlScope::Transaction(&mut held).try_take(used, session.control()));
        held.release(session.control());
    });
    let space: SpaceId = table.space;
    let mut found = Vec::new();
    measure("storage: snapshot and get", |round| {
        key.clear();
        encode_key_part(
            &Value::Int(id(round)),
            &DataType::INT,
            false,
            false,
            None,
            &mut key,
        );
        engine
            .shared
            .store
            .snapshot()
            .get(space, &key, |row| {
                found.clear();
                found.extend_from_slice(row);
            })
            .expect("a read");
        black_box(&found);
    });
    let mut sink = Sink::default();
    let prepared = session
        .prepare(b"SELECT c FROM sbtest1 WHERE id=?")
        .expect("a statement");
    measure("whole: prepared point select", |round| {
        session
            .execute(prepared.id, &[Value::Int(id(round))], &mut sink)
            .expect("a row");
    });
    measure("whole: point select as text", |round| {
        let sql = format_args!("SELECT c FROM sbtest1 WHERE id={}", id(round)).to_string();
        session.query(sql.as_bytes(), &mut sink).expect("a row");
    });
    if std::env::args().skip(1).all(|word| word.starts_with('-')) {
        assert_eq!(sink.rows, 2 * (ROUNDS + ROUNDS / 10));
    }
    let range = session
        .prepare(b"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?")
        .expect("a statement");
    measure("whole: prepared range of 100 rows", |round| {
        let first = id(round).min(ROWS as i64 - 100);
        session
            .execute(
                range.id,
                &[Value::Int(first), Value::Int(first + 99)],
                &mut sink,
            )
            .expect("rows");
    });
    let ordered = session
        .prepare(b"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c")
        .expect("a statement");
    let distinct = session
        .prepare(b"SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c")
        .expect("a statement");
    let sum = session
        .prepare(b"SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?")
        .expect("a statement");
    for (name, statement) in [
        ("whole: 100 rows in order of a column", ordered),
        ("whole: 100 rows made distinct", distinct),
        ("whole: sum over 100 rows", sum),
    ] {
        measure(name, |round| {
            let first = id(round / 8).min(ROWS as i64 - 100);
            session
                .execute(
                    statement.id,
                    &[Value::Int(first), Value::Int(first + 99)],
                    &mut sink,
                )
                .expect("rows");
        });
    }
    let update = session
        .prepare(b"UPDATE sbtest1 SET k=k+1 WHERE id=?")
        .expect("a statement");
    measure("whole: prepared index update, in memory", |round| {
        let ran = session
            .execute(update.id, &[Value::Int(id(round))], &mut sink)
            .expect("an update");
        if let Some(commit) = ran.commit {
            commit.wait().expect("the commit");
        }
    });
    make_wide_table(&mut session);
    let update = session
        .prepare(b"UPDATE wide SET n0=n0+1 WHERE id=?")
        .expect("a statement");
    measure("whole: prepared update of 1 of 40 columns", |round| {
        let row = Value::Int(id(round) % WIDE_ROWS + 1);
        let ran = session
            .execute(update.id, &[row], &mut sink)
            .expect("an update");
        if let Some(commit) = ran.commit {
            commit.wait().expect("the commit");
        }
    });
}

const WIDE_ROWS: i64 = 1_000;

/// A table of 40 columns: numbers, texts, decimals and times in turn, with an index of a text.
fn make_wide_table(session: &mut Session) {
    let (mut columns, mut values) = (String::new(), String::new());
    for number in 0..39 {
        let (name, ty, value) = match number % 4 {
            0 => ("n", "INT NOT NULL", "12345"),
            1 => ("c", "VARCHAR(60)", "'some thirty characters of text'"),
            2 => ("d", "DECIMAL(12,2)", "1234567.89"),
            _ => ("t", "DATETIME", "'2026-01-02 03:04:05'"),
        };
        columns += &format!(", {name}{number} {ty}");
        values += &format!(", {value}");
    }
    run(
        session,
        &format!("CREATE TABLE wide (id INT PRIMARY KEY{columns}, KEY (c1))"),
    );
    let rows = (1..=WIDE_ROWS).map(|id| format!("({id}{values})"));
    let rows: Vec<String> = rows.collect();
    run(
        session,
        &format!("INSERT INTO wide VALUES {}", rows.join(",")),
    );
}
