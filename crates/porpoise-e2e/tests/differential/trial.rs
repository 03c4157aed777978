//! Random statements on Porpoise and on another server, the peer.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use porpoise_e2e::server::{Product, Route, Server};
use porpoise_e2e::wire::Wire;

use crate::answer::{Answer, report};
use crate::{SCHEMA, STATEMENTS, file_of_statements};
use crate::{known, rewritten};
use porpoise_lab::fuzz::random_sql::Generator;

/// How many of a hundred statements change rows.
const CHANGES_PERCENT: u32 = 15;
/// How many of a hundred statements alter a table.
const ALTERATIONS_PERCENT: u32 = 4;
/// How long a peer that was started elsewhere may take to be there again.
const RETURN_MAX: Duration = Duration::from_secs(60);

/// Modes that are tried, after the default.
const MODES: &[&str] = &[
    "",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO",
    "PIPES_AS_CONCAT,ANSI_QUOTES,STRICT_TRANS_TABLES",
    "NO_UNSIGNED_SUBTRACTION,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES",
    "ALLOW_INVALID_DATES",
    "HIGH_NOT_PRECEDENCE,IGNORE_SPACE",
    "TRADITIONAL",
    "ANSI,STRICT_ALL_TABLES",
    "REAL_AS_FLOAT,NO_AUTO_VALUE_ON_ZERO,NO_DIR_IN_CREATE",
    "STRICT_TRANS_TABLES,TIME_TRUNCATE_FRACTIONAL",
];

/// What SET NAMES says, by seed; most are of the first.
const CONNECTIONS: [&str; 7] = [
    "utf8mb4 COLLATE utf8mb4_general_ci",
    "utf8mb4 COLLATE utf8mb4_general_ci",
    "utf8mb4 COLLATE utf8mb4_bin",
    "latin1 COLLATE latin1_swedish_ci",
    "utf8mb4 COLLATE utf8mb4_general_ci",
    "utf8mb3 COLLATE utf8mb3_general_ci",
    "utf8mb4 COLLATE utf8mb4_general_ci",
];

/// What SET NAMES says instead, for a seed in 29 each: strings that are bytes, and strings of ASCII.
const UNUSUAL_CONNECTIONS: [(u64, &str); 2] =
    [(4, "binary"), (8, "ascii COLLATE ascii_general_ci")];

/// What SET NAMES says under a seed.
fn connection(seed: u64) -> &'static str {
    let unusual = UNUSUAL_CONNECTIONS.iter();
    let mut unusual = unusual.filter(|(rest, _)| *rest == seed % 29);
    let usual = CONNECTIONS[(seed % 7) as usize];
    unusual.next().map_or(usual, |(_, charset)| *charset)
}

/// Settings under which a peer's answer has to be the same, of MariaDB and of MySQL. One that a
/// peer doesn't know changes nothing.
const OTHER_PLANS: &[&[&str]] = &[
    &["derived_merge=off"],
    &["semijoin=off"],
    &["semijoin=off", "materialization=off"],
    &["materialization=off"],
    &[
        "condition_pushdown_for_derived=off",
        "condition_pushdown_for_subquery=off",
        "condition_pushdown_from_having=off",
        "derived_condition_pushdown=off",
    ],
    &[
        "derived_merge=off",
        "condition_pushdown_for_derived=off",
        "condition_pushdown_from_having=off",
        "derived_condition_pushdown=off",
        "split_materialized=off",
        "in_to_exists=off",
    ],
    &["exists_to_in=off", "subquery_cache=off"],
    &[
        "join_cache_hashed=off",
        "block_nested_loop=off",
        "outer_join_with_cache=off",
    ],
    &["index_merge=off", "mrr=off", "rowid_filter=off"],
];

/// The server whose answers are expected.
struct Peer {
    server: Server,
    wire: Wire,
}

impl Peer {
    fn start(product: Product) -> Peer {
        let server = Server::start(product);
        let wire = server.connect(Route::UnixSocket, "").expect("root logs in");
        Peer { server, wire }
    }

    /// Starts it again, or waits for one that was started elsewhere.
    fn restart(&mut self) {
        if self.server.product == Product::MariaDb {
            *self = Peer::start(Product::MariaDb);
            return;
        }
        let deadline = Instant::now() + RETURN_MAX;
        loop {
            match self.server.connect(Route::UnixSocket, "") {
                Ok(wire) => break self.wire = wire,
                Err(error) => assert!(Instant::now() < deadline, "the peer is gone: {error}"),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    pub statements: usize,
    /// Neither server is known to be right.
    pub differences: usize,
    /// Both are right, or the peer isn't: how often for which reason.
    pub known: BTreeMap<&'static str, usize>,
    /// The peer answers as Porpoise does when it takes another path to the same rows.
    pub contradictions: usize,
    /// The peer ended.
    pub crashes: usize,
}

/// A pair of servers, and what was found.
pub struct Trial {
    peer: Peer,
    porpoise: Wire,
    /// Ends with the search.
    _ours: Server,
    /// What was found so far.
    pub findings: Findings,
    /// The file that statements are written to, if any.
    written: Option<File>,
    /// What SET NAMES said.
    connection: &'static str,
    /// The peer has ended: nothing more can be compared under this seed.
    is_lost: bool,
}

/// A text in the clients' character set. In ascii there is an `e` for what it hasn't got: the manual
/// doesn't say what bytes are that aren't well-formed, and MariaDB refuses to mix them.
fn encoded(sql: &str, connection: &str) -> Vec<u8> {
    let byte = |c| u8::try_from(c).expect("what is generated is in latin1");
    let ascii = |c: char| if c.is_ascii() { c } else { 'e' };
    match connection.split(' ').next() {
        Some("latin1") => sql.chars().map(byte).collect(),
        Some("ascii") => sql.chars().map(ascii).map(byte).collect(),
        _ => sql.as_bytes().to_vec(),
    }
}

/// A query on the copies of its tables.
fn on_copies(generator: &Generator, sql: &str) -> String {
    let tables = generator.tables.iter();
    tables.fold(sql.to_string(), |sql, table| {
        let name = &table.name;
        sql.replace(&format!(" {name} "), &format!(" {name}n "))
    })
}

impl Trial {
    /// Starts Porpoise, and the peer unless it runs.
    pub fn start(product: Product) -> Trial {
        let ours = Server::start(Product::Porpoise);
        Trial {
            peer: Peer::start(product),
            porpoise: ours.connect(Route::UnixSocket, "").expect("root logs in"),
            _ours: ours,
            findings: Findings::default(),
            written: file_of_statements(),
            connection: CONNECTIONS[0],
            is_lost: false,
        }
    }

    /// The peer's answer and Porpoise's.
    fn both(&mut self, sql: &str) -> (Answer, Answer) {
        if let Some(file) = &mut self.written {
            writeln!(file, "{sql};").expect("the statements can be written down");
        }
        self.findings.statements += 1;
        let theirs = self.ask_peer(sql);
        (theirs, self.ask(sql))
    }

    fn ask(&mut self, sql: &str) -> Answer {
        let answer = Answer::to_bytes(&mut self.porpoise, &encoded(sql, self.connection));
        assert!(!matches!(answer, Answer::Lost), "Porpoise is gone: {sql}");
        answer
    }

    fn ask_peer(&mut self, sql: &str) -> Answer {
        let answer = Answer::to_bytes(&mut self.peer.wire, &encoded(sql, self.connection));
        if matches!(answer, Answer::Lost) && !self.is_lost {
            println!("the peer has ended: {sql}");
            self.is_lost = true;
        }
        answer
    }

    fn compare(&mut self, seed: u64, sql: &str, how: &str, expected: &Answer, got: &Answer) {
        // Porpoise has no reason to differ from itself.
        let is_peers = how.contains("the peer");
        if !expected.agrees_with(got) && !(is_peers && self.is_known(sql, expected, got)) {
            self.findings.differences += 1;
            report(seed, sql, how, expected, got);
        }
    }

    /// Whether there is a known reason why the answers differ; it is counted.
    fn is_known(&mut self, sql: &str, expected: &Answer, got: &Answer) -> bool {
        let product = self.peer.server.product;
        let Some(reason) = known::reason(product, sql, expected, got) else {
            return false;
        };
        *self.findings.known.entry(reason).or_default() += 1;
        true
    }

    /// Runs a seed's statements.
    pub fn run(&mut self, seed: u64) {
        if std::mem::take(&mut self.is_lost) {
            self.peer.restart();
        }
        let mut generator = Generator::new(seed);
        self.set_up(seed);
        self.fill(seed, &mut generator);
        let mut has_copies = false;
        for _ in 0..STATEMENTS {
            if self.is_lost {
                self.findings.crashes += 1;
                return;
            }
            if generator.chance(ALTERATIONS_PERCENT) {
                self.alter(seed, &mut generator);
                has_copies = false;
            } else if generator.chance(CHANGES_PERCENT) {
                let sql = generator.change();
                self.change(seed, &generator, &sql);
                has_copies = false;
            } else {
                let sql = generator.query();
                if !has_copies {
                    self.copy(&generator);
                    has_copies = true;
                }
                self.query(seed, &generator, &sql);
            }
        }
    }

    /// Makes the schema, and gives both sessions this seed's modes and character set.
    fn set_up(&mut self, seed: u64) {
        let charset = connection(seed);
        self.connection = charset;
        let mode = match usize::try_from(seed % 16).map(|at| MODES.get(at)) {
            Ok(Some(mode)) => format!("'{mode}'"),
            _ => "DEFAULT".to_string(),
        };
        for sql in [
            format!("DROP DATABASE IF EXISTS {SCHEMA}"),
            format!("CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
            format!("USE {SCHEMA}"),
            format!("SET NAMES {charset}"),
            "CREATE TABLE bulk (id INT PRIMARY KEY, c VARCHAR(60), KEY (c))".to_string(),
        ] {
            self.both(&sql);
        }
        // MariaDB cuts off what doesn't fit into DATETIME(n) unless it is told to round.
        const TRUNCATE: &str = ",TIME_TRUNCATE_FRACTIONAL";
        let theirs = match mode.strip_suffix('\'') {
            Some(modes)
                if self.peer.server.product == Product::MariaDb && modes.ends_with(TRUNCATE) =>
            {
                mode.replace(TRUNCATE, "")
            }
            Some(modes) if self.peer.server.product == Product::MariaDb => {
                format!("{modes},TIME_ROUND_FRACTIONAL'")
            }
            _ => mode.clone(),
        };
        self.ask_peer(&format!("SET sql_mode = {theirs}"));
        let answer = self.ask(&format!("SET sql_mode = {mode}"));
        assert!(matches!(answer, Answer::Done(_)), "{mode}: {answer:?}");
    }

    fn fill(&mut self, seed: u64, generator: &mut Generator) {
        for table in 0..generator.tables.len() {
            let name = generator.tables[table].name.clone();
            let mut statements = vec![generator.tables[table].definition(&name, true)];
            statements.extend(generator.rows(table));
            for sql in statements {
                let (theirs, ours) = self.both(&sql);
                self.compare(seed, &sql, "on the peer", &theirs, &ours);
                let is_definition = sql.starts_with("CREATE ");
                if let (true, Answer::Refused(number, message)) = (is_definition, &ours) {
                    panic!("seed {seed}: {sql}: {number} {message}");
                }
            }
        }
        for sql in [&generator.bulk(), "SELECT * FROM bulk"] {
            let (theirs, ours) = self.both(sql);
            self.compare(seed, "thousands of literals", "on the peer", &theirs, &ours);
        }
    }

    fn change(&mut self, seed: u64, generator: &Generator, sql: &str) {
        let whole = self.whole_change(sql);
        let (theirs, ours) = self.both(sql);
        // A change that one of them refuses for a known reason is made by the other.
        let is_one_sided =
            matches!(theirs, Answer::Refused(..)) != matches!(ours, Answer::Refused(..));
        let is_told = is_one_sided || !theirs.agrees_with(&ours);
        let fails_whole = match (&theirs, &ours) {
            (failed, Answer::Done(_)) if known::is_failure(failed) => &whole.1,
            (Answer::Done(_), failed) if known::is_failure(failed) => &whole.0,
            _ => &None,
        };
        match fails_whole {
            Some(whole) if known::is_failure(whole) => self.count_cut_short(),
            _ => self.compare(seed, sql, "on the peer", &theirs, &ours),
        }
        for table in &generator.tables {
            let read = format!("SELECT * FROM {}", table.name);
            let (theirs, ours) = self.both(&read);
            if !theirs.agrees_with(&ours) {
                if !is_told {
                    self.compare(seed, sql, "the table on the peer", &theirs, &ours);
                }
                // What follows from a difference isn't another difference.
                self.both(&format!("DELETE FROM {}", table.name));
            }
        }
    }

    /// What the peer and Porpoise say of a change of which everything has to be computed. It is
    /// rolled back, and asked first: afterwards the rows are others.
    fn whole_change(&mut self, sql: &str) -> (Option<Answer>, Option<Answer>) {
        let change = rewritten::without_short_cuts(sql);
        if change == sql {
            return (None, None);
        }
        self.both("START TRANSACTION");
        let (theirs, ours) = self.both(&change);
        self.both("ROLLBACK");
        (Some(theirs), Some(ours))
    }

    /// Alters a table that has rows.
    fn alter(&mut self, seed: u64, generator: &mut Generator) {
        let (number, sql, altered) = generator.alteration();
        let before = generator.tables[number].clone();
        let (theirs, ours) = self.both(&sql);
        match (&theirs, &ours) {
            // How many rows were copied is each server's own affair.
            (Answer::Done(_), Answer::Done(_)) => {
                generator.tables[number] = altered;
                let read = format!("SELECT * FROM {}", before.name);
                let (theirs, ours) = self.both(&read);
                if theirs.agrees_with(&ours) {
                    return;
                }
                self.compare(seed, &sql, "the table on the peer", &theirs, &ours);
                self.both(&format!("DELETE FROM {}", before.name));
            }
            (Answer::Refused(..), Answer::Refused(..)) => {}
            _ => {
                self.compare(seed, &sql, "on the peer", &theirs, &ours);
                let drop = format!("DROP TABLE IF EXISTS {}", before.name);
                self.both(&drop);
                let (theirs, ours) = self.both(&before.definition(&before.name, true));
                // A key of a column that was dropped or became a TEXT, earlier.
                if matches!(theirs, Answer::Refused(..)) || matches!(ours, Answer::Refused(..)) {
                    self.both(&drop);
                    self.both(&before.definition(&before.name, false));
                }
            }
        }
    }

    /// Makes the copies without keys again.
    fn copy(&mut self, generator: &Generator) {
        for sql in copies(generator) {
            if let Answer::Refused(number, message) = self.ask(&sql) {
                panic!("{sql}: {number} {message}");
            }
        }
    }

    fn query(&mut self, seed: u64, generator: &Generator, sql: &str) {
        let (theirs, ours) = self.both(sql);
        if !theirs.agrees_with(&ours)
            && !self.is_cut_short(sql, &theirs, &ours)
            && !self.is_known(sql, &theirs, &ours)
        {
            match self.contradiction(generator, sql, &ours) {
                Some(how) => {
                    self.findings.contradictions += 1;
                    println!("seed {seed}: {sql};\n  the peer contradicts itself: {how}");
                }
                None => self.compare(seed, sql, "on the peer", &theirs, &ours),
            }
        }
        let Answer::Rows(_) = &ours else { return };
        let quoted = sql.replace('\'', "''");
        self.ask(&format!("PREPARE s FROM '{quoted}'"));
        for time in ["prepared", "prepared, the second time"] {
            let prepared = self.ask("EXECUTE s");
            self.compare(seed, sql, time, &ours, &prepared);
        }
        let unkeyed = self.ask(&on_copies(generator, sql));
        // An expression that fails may not be reached on every path.
        if let Answer::Rows(_) = &unkeyed {
            self.compare(seed, sql, "against tables without keys", &unkeyed, &ours);
        }
    }

    /// Whether one server fails at a value that the other didn't compute, and fails at as well where
    /// it has to; it is counted.
    fn is_cut_short(&mut self, sql: &str, expected: &Answer, got: &Answer) -> bool {
        let answers = |answer: &Answer| matches!(answer, Answer::Rows(_));
        let query = rewritten::without_short_cuts(sql);
        let whole = match (expected, got) {
            _ if query == sql => return false,
            (failed, got) if known::is_failure(failed) && answers(got) => self.ask(&query),
            (expected, failed) if known::is_failure(failed) && answers(expected) => {
                self.ask_peer(&query)
            }
            _ => return false,
        };
        let is_one = known::is_failure(&whole);
        if is_one {
            self.count_cut_short();
        }
        is_one
    }

    fn count_cut_short(&mut self) {
        let reason = "what fails needn't be computed, and fails where it has to be";
        *self.findings.known.entry(reason).or_default() += 1;
    }

    /// How the peer gets at Porpoise's answer, if it does: by another plan of the same query, or
    /// from copies of the tables without keys.
    fn contradiction(&mut self, generator: &Generator, sql: &str, ours: &Answer) -> Option<String> {
        let Answer::Rows(_) = ours else { return None };
        let is_ours =
            |answer: &Answer| matches!(answer, Answer::Rows(_)) && answer.agrees_with(ours);
        for flags in OTHER_PLANS {
            for flag in *flags {
                self.ask_peer(&format!("SET optimizer_switch = '{flag}'"));
            }
            let answer = self.ask_peer(sql);
            self.ask_peer("SET optimizer_switch = DEFAULT");
            if is_ours(&answer) {
                return Some(flags.join(","));
            }
        }
        for (how, query) in rewritten::same_queries(sql) {
            if is_ours(&self.ask_peer(&query)) {
                return Some(how.to_string());
            }
        }
        let made = copies(generator).iter().all(|sql| {
            let answer = self.ask_peer(sql);
            !matches!(answer, Answer::Refused(..))
        });
        let answer = self.ask_peer(&on_copies(generator, sql));
        (made && is_ours(&answer)).then(|| "without keys".to_string())
    }
}

/// The statements that make copies of the tables, without keys.
fn copies(generator: &Generator) -> Vec<String> {
    let of_table = |table: &porpoise_lab::fuzz::random_sql::Table| {
        let (name, copy) = (&table.name, format!("{}n", table.name));
        let given = table.given();
        [
            format!("DROP TABLE IF EXISTS {copy}"),
            table.definition(&copy, false),
            format!(
                "INSERT IGNORE INTO {copy} ({given}) SELECT {given} FROM {name} ORDER BY RAND(1)"
            ),
        ]
    };
    generator.tables.iter().flat_map(of_table).collect()
}
