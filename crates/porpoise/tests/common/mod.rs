//! Other programs that open the same folder: this one, started again for the one test that plays
//! them.

#![allow(dead_code)]

pub mod served;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use porpoise::Database;

const FOLDER: &str = "PORPOISE_TEST_FOLDER";
const PART: &str = "PORPOISE_TEST_PART";

/// What the other programs do.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Has the folder open until its stdin ends.
    Holds,
    /// The same, with the folder not shared.
    HoldsAlone,
    /// Opens the folder, adds rows, and goes.
    Adds,
}

pub const ROWS_EACH: i64 = 40;

/// Not a test of its own: the other program of those below, when they say where the folder is.
#[test]
fn other_program() {
    let (Ok(folder), Ok(part)) = (std::env::var(FOLDER), std::env::var(PART)) else {
        return;
    };
    match part.as_str() {
        "Adds" => add_rows(Path::new(&folder)),
        part => {
            let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
            let before = threads();
            let options = Database::options().share(part == "Holds");
            let database = options.open(&folder).unwrap();
            println!(
                "open here {} threads {}",
                database.is_local(),
                threads() - before
            );
            // Until the other end is gone or says so.
            let _ = std::io::stdin().read(&mut [0]);
        }
    }
}

/// Inserts rows of its own, each a transaction. When the process that has the folder ends, it goes
/// on with who has it next.
fn add_rows(folder: &Path) {
    let me = i64::from(std::process::id());
    let database = Database::open(folder).unwrap();
    let mut connection = None;
    for row in 0..ROWS_EACH {
        let began = Instant::now();
        loop {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "nobody lets it in"
            );
            let Ok(current) = connection
                .take()
                .map_or_else(|| database.connect_to("shop"), Ok)
            else {
                continue;
            };
            // Whether an insert whose answer never came was committed isn't known: it may be there
            // already.
            let insert = "INSERT IGNORE INTO seen VALUES (?, ?)";
            if current.execute(insert, (me, row)).is_ok() {
                connection = Some(current);
                break;
            }
        }
    }
}

pub struct Program {
    pub child: Child,
    _stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// What it said of itself when it had the folder open.
    pub said: String,
}

impl Program {
    pub fn start(folder: &Path, part: Part) -> Program {
        let (_, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::other_program");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(FOLDER, folder)
            .env(PART, format!("{part:?}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Program {
            _stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            said: String::new(),
        }
    }

    pub fn with_folder_open(folder: &Path, part: Part) -> Program {
        let mut program = Program::start(folder, part);
        while !program.said.contains("open here") {
            program.said.clear();
            let count = program.stdout.read_line(&mut program.said).unwrap();
            assert_ne!(count, 0, "it has ended");
        }
        program
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn end(mut self) {
        self._stdin.write_all(b".").unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// A database in a folder that another program has open, as long as this one runs.
pub fn held_by_another() -> Database {
    let folder = new_folder();
    std::mem::forget(Program::with_folder_open(&folder, Part::Holds));
    Database::open(folder).unwrap()
}

/// A folder for the time that this program runs: others may outlive the test that started them.
pub fn new_folder() -> PathBuf {
    static ALL: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    static LAST: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let all = ALL.get_or_init(|| tempfile::tempdir().unwrap());
    all.path().join(format!("data{number}"))
}
