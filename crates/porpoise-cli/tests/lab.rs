//! `porpoise lab`: experiments that are run, stopped, gone on with; servers that die; results that
//! are read by others.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use porpoise::Database;
use tempfile::TempDir;

const SHORT: &str = r#"title = "Short"
runs = 2
seconds = 0.3
warm_up = { min_seconds = 0.05, max_seconds = 0.1 }
ways = ["unix"]
workloads = ["oltp_point_select"]
clients = [1, 2]

[data]
rows = 200

[[servers]]
name = "Porpoise"
options = ["--innodb-flush-log-at-trx-commit=2"]
"#;

struct Laboratory {
    folder: TempDir,
}

impl Laboratory {
    fn with(experiment: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("short.toml"), experiment).unwrap();
        Self { folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_porpoise"));
        command
            .arg("lab")
            .args(arguments)
            .current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
        (status.code(), text.into_owned())
    }

    /// Has it run in the background.
    fn start(&self) -> Child {
        let mut command = self.command(&["run", "short.toml", "--quiet"]);
        command
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap()
    }

    fn results(&self) -> PathBuf {
        self.folder.path().join("short.lab")
    }

    /// What a query of the results answers, one value a row; nothing before there are any.
    fn values(&self, sql: &str) -> Vec<String> {
        let answer = || -> porpoise::Result<Vec<String>> {
            let connection = Database::open(self.results())?.connect()?;
            let rows = connection.query(sql, ())?;
            Ok(rows
                .to_text()
                .into_iter()
                .map(|row| row.join("|"))
                .collect())
        };
        answer().unwrap_or_default()
    }

    fn wait_for_a_run(&self, child: &mut Child, done: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        // Before it has started a server it may not have opened the results yet: whoever looked then
        // would open them in its stead.
        while !self.results().exists()
            || children(child.id()).is_empty()
            || self
                .values("SELECT id FROM lab.runs WHERE state = 'done'")
                .len()
                < done
        {
            assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The servers that a process has started. Before a child of another program is that program, it has
/// the name and the arguments of the process that started it.
fn children(pid: u32) -> Vec<u32> {
    let serves = |folder: &Path| {
        std::fs::read(folder.join("cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == b"serve"))
    };
    let parent_of = |folder: &Path| -> Option<(u32, u32)> {
        let own = folder.file_name()?.to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        let (name, fields) = stat.rsplit_once(')')?;
        if !name.ends_with("(porpoise") {
            return None;
        }
        serves(folder).then_some(())?;
        Some((own, fields.split_whitespace().nth(1)?.parse().ok()?))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let parents = processes.filter_map(|entry| parent_of(&entry.path()));
    parents
        .filter(|(_, parent)| *parent == pid)
        .map(|(own, _)| own)
        .collect()
}

#[test]
fn an_experiment_is_measured_once_and_its_results_can_be_read_and_exported() {
    let lab = Laboratory::with(SHORT);
    let (code, said) = lab.run(&["run", "short.toml", "--check"]);
    assert!(
        code == Some(0) && said.contains("2 points, 2 runs of each"),
        "{said}"
    );
    let (code, said) = lab.run(&["run", "short.toml"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("short.lab: 4 runs done, 0 failed, 0 left"),
        "{said}"
    );
    let runs = lab.values(
        "SELECT p.clients, r.repetition, r.transactions > 10 AND r.transactions = r.statements
           AND r.latency_p50_ms > 0 AND r.latency_max_ms >= r.latency_p99_ms AND r.seconds BETWEEN 0.3 AND 5
           AND r.server_user_seconds + r.server_system_seconds > 0 AND r.server_memory_bytes > 1000000
           AND r.client_user_seconds + r.client_system_seconds > 0
         FROM lab.runs r JOIN lab.points p ON p.id = r.point ORDER BY 1, 2",
    );
    assert_eq!(runs, ["1|1|1", "1|2|1", "2|1|1", "2|2|1"]);
    assert_eq!(lab.values("SELECT COUNT(*) >= 4 FROM lab.seconds"), ["1"]);
    let kernel =
        lab.values("SELECT value FROM lab.facts WHERE subject = 'machine' AND name = 'kernel'");
    assert_eq!(kernel.len(), 1);
    let options =
        lab.values("SELECT value FROM lab.facts WHERE subject = 'Porpoise' AND name = 'options'");
    assert_eq!(options, ["--innodb-flush-log-at-trx-commit=2"]);

    let before = lab.values("SELECT id, transactions FROM lab.runs ORDER BY id");
    assert_eq!(lab.run(&["run", "short.toml"]).0, Some(0));
    assert_eq!(
        lab.values("SELECT id, transactions FROM lab.runs ORDER BY id"),
        before
    );

    let (code, said) = lab.run(&["export", "short.lab", "--csv", "csv", "--sysbench"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("95th percentile:").count(), 4, "{said}");
    let csv = std::fs::read_to_string(lab.folder.path().join("csv/runs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let files = std::fs::read_to_string(lab.folder.path().join("csv/files.csv")).unwrap();
    assert!(files.contains("name = \"\"Porpoise\"\""), "{files}");

    // The folder is another experiment's now.
    std::fs::write(
        lab.folder.path().join("short.toml"),
        SHORT.replace("[1, 2]", "[1]"),
    )
    .unwrap();
    let (code, said) = lab.run(&["run", "short.toml"]);
    assert!(
        code == Some(1) && said.contains("another experiment"),
        "{said}"
    );
    assert_eq!(
        lab.values("SELECT COUNT(*) FROM lab.runs WHERE state = 'done'"),
        ["4"]
    );
}

#[test]
fn an_experiment_that_was_stopped_is_gone_on_with() {
    let lab = Laboratory::with(&SHORT.replace("runs = 2", "runs = 20"));
    let mut child = lab.start();
    lab.wait_for_a_run(&mut child, 1);
    let (_, said) = lab.run(&["run", "short.toml"]);
    assert!(
        said.contains("another 'porpoise lab' works at it") && !said.contains("goes on with them"),
        "{said}"
    );
    let servers = children(child.id());
    signal(child.id(), rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    for server in servers {
        assert!(
            !Path::new(&format!("/proc/{server}")).exists(),
            "the server was ended"
        );
    }
    let done = lab.values("SELECT id, transactions FROM lab.runs WHERE state = 'done' ORDER BY id");
    assert!((1..40).contains(&done.len()), "{done:?}");

    // Killed, it has no time to say good-bye, and leaves what was measured, but no server that
    // would disturb whatever is measured next.
    let mut child = lab.start();
    lab.wait_for_a_run(&mut child, done.len() + 1);
    let servers = children(child.id());
    signal(child.id(), rustix::process::Signal::KILL);
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    for server in servers {
        // One that nobody has waited for yet has no program any more.
        while std::fs::read_link(format!("/proc/{server}/exe")).is_ok() {
            assert!(Instant::now() < deadline, "the server goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let (code, said) = lab.run(&["run", "short.toml", "--quiet"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        lab.values("SELECT COUNT(*) FROM lab.runs WHERE state = 'done'"),
        ["40"]
    );
    let kept = lab.values("SELECT id, transactions FROM lab.runs ORDER BY id");
    assert_eq!(kept[..done.len()], done);
    assert_eq!(
        lab.values("SELECT COUNT(*), COUNT(ended) FROM lab.sessions"),
        ["3|2"]
    );
}

#[test]
fn tables_that_are_being_filled_keep_nobody_who_asks_to_stop() {
    // An hour's work.
    let lab = Laboratory::with(&SHORT.replace("rows = 200", "rows = 500000000"));
    let mut child = lab.start();
    lab.wait_for_a_run(&mut child, 0);
    std::thread::sleep(Duration::from_millis(500));
    signal(child.id(), rustix::process::Signal::INT);
    let deadline = Instant::now() + Duration::from_secs(30);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it goes on filling tables");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(2));
    assert_eq!(
        lab.values("SELECT DISTINCT state FROM lab.runs"),
        ["planned"]
    );
}

#[test]
fn options_that_cannot_be_are_refused_at_once() {
    let lab = Laboratory::with(SHORT);
    for (arguments, words) in [
        (
            &["affinity", "--clients", "1000000000"][..],
            "clients (up to 100000)",
        ),
        (&["affinity", "--clients", "0"], "clients (up to 100000)"),
        (&["affinity", "--seconds", "nan"], "a run has seconds"),
        (&["affinity", "--variation", "nan"], "variation has a bound"),
        (
            &["fuzz", "--threads", "1000000000"],
            "--threads is a number from 1 to",
        ),
        (
            &["fuzz", "--threads", "0"],
            "--threads is a number from 1 to",
        ),
        (
            &["fuzz", "--pipeline", "9"],
            "--pipeline is a number from 1 to 8",
        ),
        (
            &["fuzz", "--pipeline", "0"],
            "--pipeline is a number from 1 to 8",
        ),
        (&["fuzz", "--seconds", "nan"], "--seconds is a number"),
        (
            &["fuzz", "--queries", "1..2", "--ways", "tcp"],
            "unix or shm",
        ),
        (
            &["fuzz", "--statements", "1", "--findings", "short.toml/f"],
            "short.toml/f: ",
        ),
    ] {
        let (code, said) = lab.run(arguments);
        assert!(
            code == Some(1) && said.contains(words),
            "{arguments:?}: {said}"
        );
    }
    let mut bench = Command::new(env!("CARGO_BIN_EXE_porpoise"));
    let output = bench
        .args(["bench", "--clients=1000000000"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("too many clients"), "{said}");
}

#[test]
fn a_server_that_dies_fails_its_run_and_not_the_experiment() {
    let lab = Laboratory::with(&SHORT.replace("seconds = 0.3", "seconds = 1.0"));
    let mut child = lab.start();
    lab.wait_for_a_run(&mut child, 1);
    let [server] = children(child.id())[..] else {
        panic!("one server")
    };
    signal(server, rustix::process::Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let failures = lab.values("SELECT failure FROM lab.runs WHERE state = 'failed'");
    assert!(
        failures.len() == 1 && failures[0].contains("; the server has ended (signal: 9"),
        "{failures:?}"
    );
    assert_eq!(lab.run(&["report", "short.lab"]).0, Some(0));
    let html = std::fs::read_to_string(lab.folder.path().join("short.html")).unwrap();
    assert!(html.contains("1 runs came to nothing"));
    is_accessible(&lab, &html);
    assert_eq!(
        lab.values("SELECT COUNT(*) FROM lab.runs WHERE state = 'done'"),
        ["3"]
    );
    let (code, said) = lab.run(&["run", "short.toml"]);
    assert!(code == Some(1) && said.contains("1 failed"), "{said}");
    let (code, said) = lab.run(&["run", "short.toml", "--retry-failed"]);
    assert!(
        code == Some(0) && said.contains("4 runs done, 0 failed"),
        "{said}"
    );
}

#[test]
fn a_folder_of_a_newer_version_is_left_as_it_is() {
    let lab = Laboratory::with(SHORT);
    assert_eq!(lab.run(&["run", "short.toml", "--quiet"]).0, Some(0));
    lab.values("UPDATE lab.format SET version = 99");
    for arguments in [
        &["run", "short.toml"][..],
        &["export", "short.lab", "--sysbench"],
    ] {
        let (code, said) = lab.run(arguments);
        assert_eq!(code, Some(1));
        assert!(
            said.contains("newer version (format 99, this program knows 2)"),
            "{said}"
        );
    }
    let connection = Database::open(lab.results()).unwrap().connect().unwrap();
    connection.execute("DROP DATABASE lab", ()).unwrap();
    connection.execute("CREATE DATABASE shop", ()).unwrap();
    drop(connection);
    let (code, said) = lab.run(&["run", "short.toml"]);
    assert!(code == Some(1) && said.contains("something else"), "{said}");
    assert_eq!(lab.values("SHOW DATABASES LIKE 'shop'"), ["shop"]);
}

#[test]
fn a_folder_of_something_else_is_left_as_it_is_and_an_empty_one_is_used() {
    let lab = Laboratory::with(&SHORT.replace("[1, 2]", "[1]"));
    let place = |name: &str| lab.folder.path().join(name);
    for name in ["letters", "empty", "short-of-room"] {
        std::fs::create_dir(place(name)).unwrap();
    }
    std::fs::write(place("letters/letter"), "Dear").unwrap();
    for arguments in [
        &["run", "short.toml", "--results", "letters"][..],
        &["report", "letters"],
        &["export", "letters", "--sysbench"],
        &["report", "empty"],
    ] {
        let (code, said) = lab.run(arguments);
        assert!(
            code == Some(1) && said.contains(": it ") && !said.contains("are kept"),
            "{said}"
        );
    }
    let (code, said) = lab.run(&["run", "short.toml", "--results", "short.toml"]);
    assert!(code == Some(1) && said.contains("it is a file"), "{said}");
    let inside = |name: &str| std::fs::read_dir(place(name)).unwrap().count();
    assert_eq!((inside("letters"), inside("empty")), (1, 0));
    // One in which a database began to be made, on a disk that was full, say.
    std::fs::write(place("short-of-room/LOCK"), "").unwrap();
    for name in ["empty", "short-of-room"] {
        let (code, said) = lab.run(&["run", "short.toml", "--quiet", "--results", name]);
        assert_eq!(code, Some(0), "{said}");
    }
    // What can't be written is told by its name.
    for arguments in [
        ["report", "empty", "--svg", "short.toml/charts"],
        ["export", "empty", "--csv", "short.toml/tables"],
    ] {
        let (code, said) = lab.run(&arguments);
        assert!(code == Some(1) && said.contains(arguments[3]), "{said}");
    }
}

#[test]
fn a_failure_that_is_told_at_length_is_kept_with_its_end() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Laboratory::with(&SHORT.replace("name = \"P", "program = \"talker\"\nname = \"P"));
    let talker = lab.folder.path().join("talker");
    let script = "#!/bin/sh\nseq 1 40000 >&2; echo the reason >&2; exit 1\n";
    std::fs::write(&talker, script).unwrap();
    std::fs::set_permissions(&talker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, said) = lab.run(&["run", "short.toml", "--quiet"]);
    assert!(code == Some(1) && said.contains("4 failed"), "{said}");
    let failures = lab.values("SELECT DISTINCT failure FROM lab.runs");
    assert!(
        failures[0].contains("doesn't start") && failures[0].trim_end().ends_with("the reason"),
        "{failures:?}"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_servers_that_do_not_start_with_why() {
    let lab = Laboratory::with(&SHORT.replace("clients = [1, 2]", "client = [1, 2]"));
    let (code, said) = lab.run(&["run", "short.toml"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("short.toml, line 7: unknown field `client`"),
        "{said}"
    );
    assert!(said.contains("    client = [1, 2]\n"), "{said}");
    assert!(!lab.results().exists());

    let lab = Laboratory::with(&SHORT.replace("--innodb", "--inodb"));
    let (code, said) = lab.run(&["run", "short.toml", "--quiet"]);
    assert!(code == Some(1) && said.contains("4 failed"), "{said}");
    let failures = lab.values("SELECT DISTINCT failure FROM lab.runs");
    assert!(failures[0].contains("inodb"), "{failures:?}");

    let (code, said) = lab.run(&["export", "nowhere", "--sysbench"]);
    assert!(
        code == Some(1) && said.contains("there is no folder nowhere"),
        "{said}"
    );
}

#[test]
fn results_that_cannot_be_written_are_kept_as_far_as_they_are() {
    let options = "options = [\"--datadir=:memory:\", ";
    let lab = Laboratory::with(
        &SHORT
            .replace("runs = 2", "runs = 10")
            .replace("options = [", options),
    );
    let mut child = lab.start();
    lab.wait_for_a_run(&mut child, 2);
    signal(child.id(), rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let done = lab.values("SELECT id, transactions FROM lab.runs WHERE state = 'done' ORDER BY id");
    // As if the disk were full: no file may be written behind its first 20 KiB.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 40; exec {} lab run short.toml --quiet",
        env!("CARGO_BIN_EXE_porpoise")
    );
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &limited]).current_dir(lab.folder.path());
    let output = output.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("short.lab: ") && said.contains("are kept; the same command goes on"),
        "{said}"
    );
    let (code, said) = lab.run(&["run", "short.toml", "--quiet"]);
    assert!(code == Some(0) && said.contains("20 runs done"), "{said}");
    let kept = lab.values("SELECT id, transactions FROM lab.runs ORDER BY id");
    assert_eq!(kept[..done.len()], done);
}

/// What a page becomes in Chromium, and what it says on its console; nothing where there is none.
fn in_chromium(page: &Path) -> Option<(String, String)> {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
        ])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            page.with_extension("profile").display()
        ))
        .arg(format!("file://{}", page.display()))
        .output();
    match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        output => {
            let output = output.unwrap();
            let log = String::from_utf8_lossy(&output.stderr);
            let console: Vec<&str> = log
                .lines()
                .filter(|line| line.contains("CONSOLE"))
                .collect();
            let dom = String::from_utf8_lossy(&output.stdout).into_owned();
            Some((dom, console.join("\n")))
        }
    }
}

/// The number of circles of each figure, by the beginning of its caption.
fn marks(html: &str, caption: &str) -> usize {
    let mut figures = html.split("<figure>");
    let figure = figures.find(|figure| figure.contains(&format!("aria-label=\"{caption}")));
    let figure = figure.unwrap_or_else(|| panic!("no figure '{caption}'"));
    figure
        .split("</figure>")
        .next()
        .unwrap()
        .matches("<circle")
        .count()
}

#[test]
fn a_report_is_a_page_whose_charts_have_a_mark_for_each_value() {
    let lab = Laboratory::with(&SHORT.replace("seconds = 0.3", "seconds = 1.2"));
    assert_eq!(lab.run(&["run", "short.toml", "--quiet"]).0, Some(0));
    let (code, said) = lab.run(&[
        "report",
        "short.lab",
        "--svg",
        "svg",
        "--baseline",
        "nobody",
    ]);
    assert!(
        code == Some(1) && said.contains("one of: Porpoise Unix socket"),
        "{said}"
    );
    let (code, said) = lab.run(&["report", "short.lab", "--svg", "svg"]);
    assert!(code == Some(0) && said.contains("short.html\n"), "{said}");
    let page = lab.folder.path().join("short.html");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(!html.contains("<script") && !html.contains("http://l") && !html.contains("src="));
    let chart = lab
        .folder
        .path()
        .join("svg/oltp_point_select-throughput.svg");
    assert_eq!(
        std::fs::read_to_string(chart)
            .unwrap()
            .matches("<circle")
            .count(),
        4
    );

    let drawn = in_chromium(&page);
    if drawn.is_none() {
        eprintln!("chromium is not installed: the page is looked at as a text");
    }
    let (dom, console) = drawn.clone().unwrap_or((html.clone(), String::new()));
    assert_eq!(console, "");
    assert_eq!(marks(&dom, "Throughput of oltp_point_select by number"), 4);
    for clients in [1, 2] {
        let words = if clients == 1 {
            "1 client"
        } else {
            "2 clients"
        };
        let seconds = lab.values(&format!(
            "SELECT COUNT(*) FROM lab.seconds s JOIN lab.runs r ON r.id = s.run JOIN lab.points p ON p.id = r.point
             WHERE p.clients = {clients}"
        ));
        let caption = format!("Throughput of oltp_point_select with {words} over time");
        assert_eq!(marks(&dom, &caption).to_string(), seconds[0]);
    }
    is_accessible(&lab, &html);
}

/// Holds a page to the rules of accessibility, where axe-core is at hand.
fn is_accessible(lab: &Laboratory, html: &str) {
    let Some(axe) = std::env::var_os("PORPOISE_AXE") else {
        return;
    };
    let script = std::fs::read_to_string(axe).unwrap();
    let run = "axe.run().then(r => { const p = document.createElement('pre'); p.id = 'axe';
         p.textContent = 'violations ' + r.violations.length + ' passes ' + r.passes.length + ' '
           + r.violations.map(v => v.id + ' ' + v.nodes.map(n => n.html).join(' ')).join('; ');
         document.body.append(p); });";
    let judged = html.replace(
        "</body>",
        &format!("<script>{script}</script><script>{run}</script></body>"),
    );
    let place = lab.folder.path().join("judged.html");
    std::fs::write(&place, judged).unwrap();
    let Some((dom, _)) = in_chromium(&place) else {
        return;
    };
    let verdict = dom.split("<pre id=\"axe\">").nth(1).unwrap();
    let verdict = verdict.split("</pre>").next().unwrap();
    assert!(verdict.starts_with("violations 0 passes "), "{verdict}");
    println!("{verdict}");
}

#[test]
fn a_change_between_builds_is_found_told_once_and_kept() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Laboratory::with(
        &SHORT
            .replace("oltp_point_select", "nap.toml")
            .replace("clients = [1, 2]", "clients = [1]")
            .replace("runs = 2", "runs = 5")
            .replace("options = [\"--innodb-flush-log-at-trx-commit=2\"]", ""),
    );
    // Each transaction sleeps as long as the build's option says: on no machine, however busy,
    // are the slower ones as fast as the others. Of five runs, two may stand still and the median
    // stays; of seven builds, one may, and the change is still significant.
    // Every second one is measured; then, of those between the two sides, what it takes.
    const BUILDS: usize = 26;
    const CHANGED: usize = 13;
    const MEASURED: usize = BUILDS.div_ceil(2) + 1;
    const METRICS: usize = 3;
    std::fs::write(
        lab.folder.path().join("nap.toml"),
        "[[transactions]]\nname = \"nap\"\nstatements = [\"SELECT SLEEP(@@GLOBAL.long_query_time)\"]\n",
    )
    .unwrap();
    let builds = lab.folder.path().join("builds");
    std::fs::create_dir(&builds).unwrap();
    let build = |name: &str, ends: &str| {
        let path = builds.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{ends}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    for number in 0..BUILDS {
        let nap_seconds = if number < CHANGED { 0.02 } else { 0.1 };
        let program = env!("CARGO_BIN_EXE_porpoise");
        build(
            &format!("build-{number:02}"),
            &format!("exec {program} \"$@\" --long-query-time={nap_seconds}"),
        );
    }
    let watch = [
        "watch",
        "short.toml",
        "--builds",
        "builds",
        "--quiet",
        "--every",
        "2",
        "--bisect",
        "--junit",
        "junit.xml",
        "--values",
        "values.tsv",
    ];
    let (code, said) = lab.run(&watch);
    assert_eq!(code, Some(3), "{said}");
    let told = "worse: Porpoise Unix socket, nap, 1 clients, transactions a second:";
    let change = said.lines().find(|line| line.starts_with(told));
    assert!(
        change.is_some_and(|line| line.ends_with("by build-13")),
        "{said}"
    );
    let folder = lab.folder.path();
    let junit = std::fs::read_to_string(folder.join("junit.xml")).unwrap();
    assert!(junit.contains("<failure message=\"worse: "), "{junit}");
    let page = std::fs::read_to_string(folder.join("short.history/history.html")).unwrap();
    assert_eq!(page.matches("<circle").count(), METRICS * MEASURED);
    let values = std::fs::read_to_string(folder.join("values.tsv")).unwrap();
    assert_eq!(values.lines().count(), 1 + METRICS * MEASURED);
    // What is drawn has a mark for each row of the values.
    let drawn = in_chromium(&folder.join("short.history/history.html"));
    let (dom, console) = drawn.unwrap_or((page.clone(), String::new()));
    assert_eq!(console, "");
    for metric in [
        "transactions a second",
        "95th percentile, ms",
        "server µs a transaction",
    ] {
        let caption = format!("Porpoise Unix socket, nap, 1 clients, {metric}");
        let rows = values.lines().filter(|line| line.contains(metric)).count();
        assert_eq!(marks(&dom, &caption), rows);
    }
    is_accessible(&lab, &page);

    // Nothing is new, and nothing is measured again: what would be, would fail now.
    for number in 0..BUILDS {
        build(&format!("build-{number:02}"), "exit 1");
    }
    let (code, said) = lab.run(&watch);
    assert!(code == Some(0) && said.contains(" 0 failures"), "{said}");
    // A build that doesn't start is a finding.
    build("build-26", "echo it is broken; exit 1");
    let (code, said) = lab.run(&watch);
    assert!(
        code == Some(3) && said.contains("failed: build-26: ") && said.contains("it is broken"),
        "{said}"
    );
    assert_eq!(lab.run(&watch).0, Some(0));
    // What was narrowed stays so.
    let (code, said) = lab.run(&watch[..7]);
    assert!(code == Some(0) && said.contains("by build-13"), "{said}");
    let other = SHORT.replace(
        "name = \"Porpoise\"",
        "name = \"Other\"\nprogram = \"/bin/sh\"",
    );
    std::fs::write(lab.folder.path().join("other.toml"), other).unwrap();
    let (code, said) = lab.run(&["watch", "other.toml", "--builds", "builds"]);
    assert!(
        code == Some(1) && said.contains("no server of the experiment is the revision"),
        "{said}"
    );
    let (code, said) = lab.run(&["watch", "short.toml", "--range", "nothing..nowhere"]);
    assert!(
        code == Some(1) && said.contains("nothing..nowhere: "),
        "{said}"
    );
}

#[test]
fn random_statements_and_queries_find_nothing_wrong() {
    let lab = Laboratory::with(SHORT);
    let (code, said) = lab.run(&[
        "fuzz",
        "--ways",
        "embedded,shm",
        "--statements",
        "3000",
        "--functions",
        "json,inet,uuid,crc32",
        "--threads",
        "2",
        "--pipeline",
        "8",
        "--quiet",
    ]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("embedded ")
            && said.contains("shared memory ")
            && said.contains("0 findings"),
        "{said}"
    );
    let (code, said) = lab.run(&["fuzz", "--queries", "1..3", "--quiet"]);
    assert_eq!(code, Some(0), "{said}");
    // A statement is known by its number.
    let shown = |number: &str| lab.run(&["fuzz", "--show", number]).1;
    assert_eq!(shown("77"), shown("77"));
    assert_ne!(shown("77"), shown("85"));
    for more in [&[][..], &["--show", "5"]] {
        let (code, said) = lab.run(&[&["fuzz", "--functions", "no_such"], more].concat());
        assert!(
            code == Some(1) && said.contains("no function's name holds no_such"),
            "{said}"
        );
    }
    let (code, said) = lab.run(&["fuzz", "--mariadb", "--ways", "shm"]);
    assert!(code == Some(1) && said.contains("--ways unix"), "{said}");
}

#[test]
fn a_server_that_takes_too_much_memory_is_ended_and_the_run_goes_on() {
    let lab = Laboratory::with(SHORT);
    // No server has so little: each ends while it is asked, embedded or not.
    let (code, said) = lab.run(&[
        "fuzz",
        "--ways",
        "embedded,unix",
        "--statements",
        "20000",
        "--threads",
        "2",
        "--memory",
        "8",
        "--seconds",
        "3",
        "--findings",
        "found",
        "--quiet",
    ]);
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("too much memory: ") && said.contains(" of the 8 MiB that it may"),
        "{said}"
    );
    assert!(
        said.contains("embedded ") && said.contains("Unix socket "),
        "{said}"
    );
    let folder = lab.folder.path().join("found");
    let finding = std::fs::read_to_string(folder.join("finding-001.sql")).unwrap();
    assert!(finding.starts_with("-- too much memory: "), "{finding}");
    assert!(folder.join("ways.svg").exists());
}

#[test]
fn a_search_that_is_ended_writes_what_it_has_found() {
    let lab = Laboratory::with(SHORT);
    let search = [
        "fuzz",
        "--ways",
        "unix",
        "--statements",
        "1000000000",
        "--memory",
        "8",
        "--findings",
        "found",
        "--quiet",
    ];
    let mut child = lab
        .command(&search)
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    // Its second server follows one that was found to take too much.
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut servers = Vec::new();
    while servers.len() < 2 {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none());
        servers.extend(children(child.id()));
        servers.sort_unstable();
        servers.dedup();
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(child.id(), rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains(", not asked again: too much memory: "),
        "{said}"
    );
    let finding = std::fs::read_to_string(lab.folder.path().join("found/finding-001.sql")).unwrap();
    assert!(
        finding.contains("-- the run was ended before it was asked again\n"),
        "{finding}"
    );
}

#[test]
fn a_profile_has_functions_waits_and_flame_graphs_or_says_why_not() {
    let lab = Laboratory::with(SHORT);
    let profile = [
        "profile",
        "--way",
        "unix,shm",
        "--clients",
        "2",
        "--rows",
        "1000",
        "--seconds",
        "0.5",
        "--output",
        "profile",
    ];
    let (code, said) = lab.run(&profile);
    if code == Some(1) && said.contains("perf is") {
        // It isn't installed, or not allowed here: that is said, with what helps.
        assert!(
            said.contains("linux-perf") || said.contains("perf_event_paranoid"),
            "{said}"
        );
        eprintln!("perf takes no samples here");
    } else {
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains("hottest functions, server")
                && said.contains("hottest functions, clients")
                && said.contains("server: switches of context a second, by who waits"),
            "{said}"
        );
        let folder = lab.folder.path().join("profile");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let folded = read("porpoise-unix-socket-cpu.folded");
        // Stacks go from a thread's beginning to the function that ran.
        assert!(
            folded
                .lines()
                .any(|line| line.starts_with("server;") && line.contains(";porpoise")),
            "{folded}"
        );
        for name in ["porpoise-shared-memory-cpu.svg", "difference.svg"] {
            assert!(read(name).contains("samples, "), "{name}");
        }
    }
    // Where there is no perf.
    let mut without = lab.command(&profile);
    let output = without.env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("perf isn't installed"),
        "{said}"
    );
    let (code, said) = lab.run(&["profile", "--way", "shm", "--server", "mariadb"]);
    assert!(
        code == Some(1) && (said.contains("can't be reached") || said.contains("perf is")),
        "{said}"
    );
}
