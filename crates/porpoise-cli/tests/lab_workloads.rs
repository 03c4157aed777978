//! The workloads of `porpoise lab run`, each in a short experiment, and what must hold after them.

use std::path::Path;
use std::process::Command;

use porpoise::Database;
use tempfile::TempDir;

const HEAD: &str = "runs = 1
seconds = 0.4
warm_up = { min_seconds = 0.05, max_seconds = 0.1 }
clients = [2]
";

const PORPOISE: &str = "[[servers]]
name = \"Porpoise\"
options = [\"--innodb-flush-log-at-trx-commit=2\", \"--local-infile=ON\"]
";

/// An experiment that was run.
struct Ran {
    folder: TempDir,
    code: Option<i32>,
    said: String,
}

impl Ran {
    /// With these workloads and ways in, and files beside it.
    fn with(workloads: &str, ways: &str, servers: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let experiment = format!(
            "{HEAD}workloads = [{workloads}]\nways = [{ways}]\n[data]\nrows = 200\n{servers}"
        );
        std::fs::write(folder.path().join("short.toml"), experiment).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_porpoise"));
        command.args(["lab", "run", "short.toml", "--quiet"]);
        let output = command.current_dir(folder.path()).output().unwrap();
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        Self {
            folder,
            code: output.status.code(),
            said: String::from_utf8_lossy(&said).into_owned(),
        }
    }

    fn results(&self) -> std::path::PathBuf {
        self.folder.path().join("short.lab")
    }

    fn values(&self, sql: &str) -> Vec<String> {
        let connection = Database::open(self.results()).unwrap().connect().unwrap();
        let rows = connection.query(sql, ()).unwrap().to_text().into_iter();
        rows.map(|row| row.join("|")).collect()
    }

    fn has_succeeded(&self) {
        let failures = || self.values("SELECT failure FROM lab.runs WHERE state = 'failed'");
        assert_eq!(self.code, Some(0), "{} {:?}", self.said, failures());
    }
}

const WORKLOADS: &str = "{ tpcc = { items = 300, customers = 30 } }, { tpch = { scale = 0.001 } },
  { bulk_load = { rows = 50 } }, \"connect_query\"";

#[test]
fn every_workload_is_measured_and_what_must_hold_does() {
    let ran = Ran::with(WORKLOADS, "\"unix\", \"embedded\"", PORPOISE, &[]);
    ran.has_succeeded();
    tpcc_counts_its_kinds_apart(&ran);
    tpch_asks_all_its_queries(&ran);
    let by_file = "{ bulk_load = { by = \"load-data\", rows = 50 } }";
    let files = Ran::with(by_file, "\"tcp\", \"shm\"", PORPOISE, &[]);
    files.has_succeeded();
    assert_eq!(rows_of_bulk_loads(&ran), ["bulk INSERT|2|1"]);
    assert_eq!(rows_of_bulk_loads(&files), ["LOAD DATA|2|1"]);
    a_connection_has_one_query(&ran);

    let mut report = Command::new(env!("CARGO_BIN_EXE_porpoise"));
    report.args(["lab", "report", "short.lab"]);
    let output = report.current_dir(ran.folder.path()).output().unwrap();
    assert!(output.status.success());
    let html = std::fs::read_to_string(ran.folder.path().join("short.html")).unwrap();
    assert!(html.contains(">tpmC<") && html.contains(">Stock-Level<"));
}

fn tpcc_counts_its_kinds_apart(ran: &Ran) {
    let kinds = ran.values(
        "SELECT k.name, COUNT(*) FROM lab.kinds k JOIN lab.runs r ON r.id = k.run JOIN lab.points p ON p.id = r.point
         WHERE p.workload = 'tpcc' GROUP BY k.number, k.name ORDER BY k.number",
    );
    let expected = [
        "New-Order",
        "Payment",
        "Order-Status",
        "Delivery",
        "Stock-Level",
    ];
    assert_eq!(kinds, expected.map(|name| format!("{name}|2")));
    let figures =
        ran.values("SELECT COUNT(*), SUM(value) > 0 FROM lab.figures WHERE name = 'tpmC'");
    assert_eq!(figures, ["2|1"]);
}

fn tpch_asks_all_its_queries(ran: &Ran) {
    let kinds = ran.values(
        "SELECT COUNT(DISTINCT k.name), MIN(k.transactions) > 0 FROM lab.kinds k
         JOIN lab.runs r ON r.id = k.run JOIN lab.points p ON p.id = r.point
         WHERE p.workload = 'tpch' GROUP BY run",
    );
    assert_eq!(kinds, ["22|1"; 2]);
}

fn rows_of_bulk_loads(ran: &Ran) -> Vec<String> {
    ran.values(
        "SELECT p.workload, COUNT(*), MIN(ABS(f.value - r.transactions_per_second * 50) < 0.01)
         FROM lab.figures f JOIN lab.runs r ON r.id = f.run JOIN lab.points p ON p.id = r.point
         WHERE f.name = 'rows a second' GROUP BY p.workload",
    )
}

fn a_connection_has_one_query(ran: &Ran) {
    let statements = ran.values(
        "SELECT COUNT(*), MIN(r.statements = r.transactions) FROM lab.runs r JOIN lab.points p ON p.id = r.point
         WHERE p.workload = 'connect_query'",
    );
    assert_eq!(statements, ["2|1"]);
}

#[test]
fn a_run_whose_check_finds_something_has_failed() {
    let file = |check: &str| {
        format!(
            "setup = [\"DROP TABLE IF EXISTS t\", \"CREATE TABLE t (id INT PRIMARY KEY, n INT)\", \"INSERT INTO t VALUES (1, 0)\"]
[[transactions]]
name = \"count\"
statements = [\"UPDATE t SET n = n + 1 WHERE id = 1\"]
[[checks]]
name = \"nothing is counted\"
query = \"SELECT id, n > 0 FROM t WHERE {check}\"
"
        )
    };
    let (good, bad) = (file("n = 0"), file("n > 0"));
    let files = [("good.toml", &*good), ("bad.toml", &*bad)];
    let ran = Ran::with("\"good.toml\", \"bad.toml\"", "\"unix\"", PORPOISE, &files);
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    let states = ran.values(
        "SELECT p.workload, r.state, COALESCE(r.failure, '') FROM lab.runs r JOIN lab.points p ON p.id = r.point ORDER BY 1",
    );
    assert_eq!(
        states,
        [
            "bad|failed|after the run, nothing is counted is violated: 1, 1",
            "good|done|"
        ]
    );
}

#[test]
fn a_script_of_sysbench_is_measured_by_what_it_reports_or_it_is_said_why_not() {
    let script = "
function thread_init() connection = sysbench.sql.driver():connect() end
function event() connection:query('SELECT 1') end
function prepare() end
function cleanup() end
";
    let workload = "{ sysbench = { script = \"./own.lua\", options = [\"--rand-type=uniform\"] } }";
    let ran = Ran::with(workload, "\"unix\"", PORPOISE, &[("own.lua", script)]);
    if Command::new("sysbench").arg("--version").output().is_err() {
        assert!(
            ran.said.contains("sysbench, which is not installed"),
            "{}",
            ran.said
        );
        return;
    }
    ran.has_succeeded();
    let measured = ran.values(
        "SELECT p.workload, r.transactions > 0, r.seconds > 0.5, r.stationary IS NULL,
           r.latency_p50_ms > 0, r.latency_max_ms >= r.latency_p99_ms
         FROM lab.runs r JOIN lab.points p ON p.id = r.point",
    );
    assert_eq!(measured, ["sysbench own|1|1|1|1|1"]);
    assert_eq!(
        ran.values("SELECT name FROM lab.files WHERE number = 1"),
        ["./own.lua"]
    );

    let broken = "function event() sysbench.sql.driver():connect():query('SELECT nothing') end";
    let ran = Ran::with(workload, "\"unix\"", PORPOISE, &[("own.lua", broken)]);
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    let failure = ran.values("SELECT failure FROM lab.runs");
    assert!(
        failure[0].contains("sysbench ") && failure[0].contains("own.lua"),
        "{failure:?}"
    );
}

#[test]
fn results_of_an_earlier_version_get_what_they_have_not() {
    let ran = Ran::with("\"oltp_point_select\"", "\"unix\"", PORPOISE, &[]);
    ran.has_succeeded();
    let connection = Database::open(ran.results()).unwrap().connect().unwrap();
    for change in [
        "DROP TABLE lab.kinds, lab.figures",
        "UPDATE lab.format SET version = 1",
    ] {
        connection.execute(change, ()).unwrap();
    }
    drop(connection);
    let mut report = Command::new(env!("CARGO_BIN_EXE_porpoise"));
    report.args(["lab", "report", "short.lab"]);
    let output = report.current_dir(ran.folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(Path::new(&ran.folder.path().join("short.html")).exists());
    assert_eq!(ran.values("SELECT version FROM lab.format"), ["2"]);
}
