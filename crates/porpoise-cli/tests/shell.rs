//! `porpoise sql` as its users have it: typed at a terminal, piped, and as a command among others.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use porpoise::Database;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

fn shell(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_porpoise"));
    command.arg("sql").args(arguments);
    command
}

fn piped(arguments: &[&str], input: &str) -> Output {
    let mut child = shell(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    if let Err(error) = stdin.write_all(input.as_bytes()) {
        // A shell that refuses its options doesn't stay to read.
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
    }
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Stdout, stderr and the exit code.
fn told(output: &Output) -> (String, String, i32) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        output.status.code().unwrap(),
    )
}

const FISH: &str = "CREATE DATABASE shop; USE shop;
    CREATE TABLE fish (id INT PRIMARY KEY, name VARCHAR(20), kg DOUBLE);
    INSERT INTO fish VALUES (1, 'cod', 12.5), (22, 'Wäl', NULL);\n";

#[test]
fn piped_statements_give_lines_of_tabs() {
    let (out, err, code) = told(&piped(
        &[],
        &format!("{FISH} SELECT * FROM fish; SELECT 'a\tb\nc\\\\'"),
    ));
    assert_eq!(
        out, "id\tname\tkg\n1\tcod\t12.5\n22\tWäl\tNULL\na\\tb\\nc\\\\\na\\tb\\nc\\\\\n",
        "{err}"
    );
    assert_eq!((err.as_str(), code), ("", 0));
    let (out, _, _) = told(&piped(&["-N"], "SELECT 1, 'x';"));
    assert_eq!(out, "1\tx\n");
}

#[test]
fn the_first_error_ends_a_script_with_its_line_and_code_1() {
    let script = "SELECT 1;\n\nSELECT *\nFROM nowhere.at_all;\nSELECT 2;\n";
    let (out, err, code) = told(&piped(&[], script));
    assert_eq!((out.as_str(), code), ("1\n1\n", 1));
    assert_eq!(
        err,
        "ERROR 1049 (42000) at line 3: Unknown database 'nowhere'\n"
    );
    let (out, _, code) = told(&piped(&["--force"], script));
    assert_eq!((out.as_str(), code), ("1\n1\n2\n2\n", 0));
    let (_, err, code) = told(&piped(
        &["-e", "CREATE DATABASE d; USE d; SELECT * FROM t"],
        "",
    ));
    assert_eq!(
        (err.as_str(), code),
        (
            "ERROR 1146 (42S02) at line 1: Table 'd.t' doesn't exist\n",
            1
        )
    );
    let (_, err, code) = told(&piped(
        &["mysql://root@127.0.0.1:1/?transport=tcp"],
        "SELECT 1",
    ));
    assert!(err.starts_with("ERROR 2002 (HY000): "), "{err}");
    assert_eq!(code, 1);
}

#[test]
fn rows_are_drawn_in_a_box_or_a_line_a_value() {
    let script = format!(
        "{FISH}SELECT * FROM fish; SELECT * FROM fish WHERE id = 1\\G SELECT 1 FROM fish WHERE id = 7;"
    );
    let (out, err, _) = told(&piped(&["--table"], &script));
    assert_eq!(
        out,
        "+----+------+------+\n\
         | id | name | kg   |\n\
         +----+------+------+\n\
         |  1 | cod  | 12.5 |\n\
         | 22 | Wäl  | NULL |\n\
         +----+------+------+\n\
         *************************** 1. row ***************************\n\
         \x20 id: 1\n\
         name: cod\n\
         \x20 kg: 12.5\n",
        "{err}"
    );
}

#[test]
fn what_people_are_told_is_how_many_rows_and_how_long() {
    let script = "CREATE DATABASE d;\nUSE d\nCREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2);
                  UPDATE t SET a = 3 WHERE a = 2; SELECT a FROM t WHERE a = 9; SELECT COUNT(*) FROM t; SELECT 1/0;";
    let (out, _, _) = told(&piped(&["--verbose"], script));
    // Times differ.
    let lines: Vec<&str> = out
        .lines()
        .map(|line| line.split(" (0.").next().unwrap())
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(
        lines,
        [
            "Query OK, 1 row affected",
            "Query OK, 0 rows affected",
            "Query OK, 2 rows affected",
            "Records: 2  Duplicates: 0  Warnings: 0",
            "Query OK, 1 row affected",
            "Rows matched: 1  Changed: 1  Warnings: 0",
            "Empty set",
            "COUNT(*)",
            "2",
            "1 row in set",
            "1/0",
            "NULL",
            "1 row in set, 1 warning",
        ]
    );
}

#[test]
fn commands_work_in_scripts_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("fish.sql"), FISH).unwrap();
    let script = format!(
        "source {}\n\\W\nSELECT 1/0;\n\\w\nDELIMITER //\nSELECT 1; SELECT 2//\ndelimiter ;\n\\T {}\nSELECT 3;\n\\t\nSELECT 4;
         use shop\nSELECT COUNT(*) FROM fish;\n\\! echo from the system\n\\u mysql\nSELECT DATABASE();\nquit\nSELECT 5;\n",
        file("fish.sql"),
        file("tee.txt")
    );
    let (out, err, code) = told(&piped(&["-N"], &script));
    let out = out.replace(&file("tee.txt"), "FILE");
    assert_eq!(
        out,
        "Show warnings enabled.\nNULL\nWarning (Code 1365): Division by 0\nShow warnings disabled.\n1\n2\n\
         Logging to file 'FILE'\n3\n4\n2\nfrom the system\nmysql\n",
        "{err}"
    );
    assert_eq!(code, 0);
    assert!(
        std::fs::read_to_string(file("tee.txt"))
            .unwrap()
            .ends_with("\n3\n")
    );
    let (_, err, code) = told(&piped(&[], "source /no/such/file\nSELECT 1;"));
    assert!(err.contains("/no/such/file"), "{err}");
    assert_eq!(code, 1);
}

#[test]
fn a_folder_is_opened_without_a_server_or_through_the_program_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let target = data.to_str().unwrap();
    assert_eq!(told(&piped(&[target], FISH)).2, 0);
    assert!(data.join("LOCK").exists());
    let status = |text: &str| told(&piped(&[target, "-D", "shop"], text)).0;
    assert!(status("status").contains("in this process"));
    assert!(status("status").contains("Not in use"));

    let database = Database::open(&data).unwrap();
    let connection = database.connect_to("shop").unwrap();
    assert!(status("status").contains("which another process has open"));
    assert_eq!(
        told(&piped(
            &[target, "-e", "DELETE FROM shop.fish WHERE id = 1"],
            ""
        ))
        .2,
        0
    );
    let rows = connection.query("SELECT name FROM fish", ()).unwrap();
    assert_eq!(rows.get(0).unwrap().get::<&str>(0).unwrap(), "Wäl");

    let url = format!("porpoise://{target}?database=shop");
    assert_eq!(
        told(&piped(&[&url, "-N"], "SELECT COUNT(*) FROM fish")).0,
        "1\n"
    );
}

#[test]
fn every_way_in_to_a_server_works() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let database = Database::options()
        .set("loopback_fast_path", "ON")
        .in_memory()
        .unwrap();
    let doors = porpoise::Listen::unix(&socket)
        .and(porpoise::Listen::shared_memory(
            folder.path().join("s.MYSQL"),
        ))
        .and(porpoise::Listen::tcp(([127, 0, 0, 1], 0).into()));
    let listening = database.listen(doors).unwrap();
    let connection = database.connect().unwrap();
    connection
        .execute("CREATE USER ann IDENTIFIED BY 'x'", ())
        .unwrap();
    let (port, socket) = (listening.tcp_addresses()[0].port(), socket.display());
    for (parameters, way) in [
        (format!("transport=unix&socket={socket}"), "UNIX socket"),
        (format!("socket={socket}"), "shared memory"),
        ("transport=tcp".to_string(), "TCP/IP"),
        (
            "transport=tcp&loopback_fast_path=true".to_string(),
            "shared memory",
        ),
    ] {
        let url = format!("mysql://ann:x@127.0.0.1:{port}/?{parameters}");
        let (out, err, code) = told(&piped(&[&url], "status\nSELECT 6 * 7;"));
        assert!(
            out.contains(way) && out.ends_with("\n42\n"),
            "{parameters}: {out} {err}"
        );
        assert_eq!(code, 0);
    }
}

/// A server with an account `ann`, whose password is `sesame`, and a database `shop`; its port.
fn serve_ann(socket: &Path) -> (Database, porpoise::Listening, u16) {
    let database = Database::in_memory().unwrap();
    let mut name = socket.as_os_str().to_owned();
    name.push(".MYSQL");
    let doors = porpoise::Listen::unix(socket)
        .and(porpoise::Listen::shared_memory(name))
        .and(porpoise::Listen::tcp(([127, 0, 0, 1], 0).into()));
    let listening = database.listen(doors).unwrap();
    let connection = database.connect().unwrap();
    for statement in [
        "CREATE USER ann IDENTIFIED BY 'sesame'",
        "CREATE DATABASE shop",
        "GRANT ALL ON shop.* TO ann",
    ] {
        connection.execute(statement, ()).unwrap();
    }
    let port = listening.tcp_addresses()[0].port();
    // The key for passwords over TCP is made when the first client asks for it, which takes long on
    // a busy machine. Shells wait for ten seconds.
    let url = format!("mysql://ann:sesame@127.0.0.1:{port}/?transport=tcp&connect_timeout=300");
    porpoise_client::Connection::open(&url).unwrap();
    (database, listening, port)
}

#[test]
fn a_server_is_named_by_options_as_mysql_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let (_database, _listening, port) = serve_ann(&socket);
    let socket = socket.to_str().unwrap();
    let url = format!("mysql://nobody:x@127.0.0.1:1/?socket={socket}");
    for (options, way) in [
        (format!("-psesame -h 127.0.0.1 -P{port} shop"), "TCP/IP"),
        (format!("-psesame -P {port} shop"), "TCP/IP"),
        (format!("-psesame -S{socket} shop"), "shared memory"),
        (
            format!("--password=sesame --protocol=socket --socket={socket} -D shop"),
            "UNIX socket",
        ),
        (
            format!("-psesame --protocol=MEMORY -S {socket} shop"),
            "shared memory",
        ),
        (
            format!("-psesame --host=localhost --port={port} --protocol=tcp -S {socket} shop"),
            "TCP/IP",
        ),
        (format!("-psesame -D shop {url}"), "shared memory"),
    ] {
        let mut arguments = vec!["-u", "ann"];
        arguments.extend(options.split(' '));
        let (out, err, code) = told(&piped(&arguments, "status\nSELECT DATABASE();"));
        assert!(
            out.contains(way) && out.ends_with("\nshop\n"),
            "{options}: {out} {err}"
        );
        assert_eq!(code, 0);
    }
}

#[test]
fn options_that_lead_nowhere_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let (_database, _listening, _) = serve_ann(&socket);
    let socket = format!("-S{}", socket.display());
    let path = folder.path().join("data");
    for (arguments, words) in [
        (
            vec!["-uann", "-pSesame", &socket],
            "ERROR 1045 (28000): Access denied for user 'ann'@'localhost' (using password: YES)",
        ),
        (
            vec!["-uann", "--password=", &socket],
            "ERROR 1045 (28000): Access denied for user 'ann'@'localhost' (using password: NO)",
        ),
        (
            vec!["-uann", path.to_str().unwrap()],
            "is opened without a server",
        ),
        (vec!["-P1", "porpoise:///nowhere"], "names no server"),
        (
            vec![
                "-uann",
                "-psesame",
                &socket,
                "--protocol=memory",
                "--ssl-mode=required",
            ],
            "ERROR 2026 (HY000): SSL connection error: SSL is required, but isn't for shared memory",
        ),
        (
            vec!["-uann", "-psesame", &socket, "--compression-algorithms=lz4"],
            "ERROR 2066 (HY000): Connection failed due to wrongly configured compression algorithm",
        ),
    ] {
        let (_, err, code) = told(&piped(&arguments, "SELECT 1"));
        assert!(err.contains(words), "{arguments:?}: {err}");
        assert_eq!(code, 1);
    }
    assert!(!path.exists());
}

#[test]
fn a_password_is_asked_for_and_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("s");
    let (_database, _listening, _) = serve_ann(&socket);
    let socket = format!("-S{}", socket.display());
    let arguments = ["-uann", &socket, "-p", "shop"];

    let mut terminal = Terminal::begin(&arguments, home.path());
    terminal.wait_for("Enter password: ");
    terminal.press("sesamy\x7fe\r");
    terminal.wait_for_question();
    let shown = plain(&terminal.seen);
    assert!(!shown.contains("sesam"), "{shown}");
    terminal.enter("SELECT DATABASE();", "| shop ");
    // A connection that is made again doesn't ask again.
    terminal.enter("KILL CONNECTION_ID();", "ERROR 1317 (70100)");
    terminal.enter("SELECT 1;", "ERROR 2013 (HY000)");
    terminal.enter("SELECT 40 + 2;", "     42 |");
    assert_eq!(terminal.leave("quit\r"), 0);

    // A wrong one, and none at all; the terminal is as it was.
    for (keys, words) in [("open\r", "using password: YES"), ("\x03", "no password")] {
        let mut terminal = Terminal::begin(&arguments, home.path());
        terminal.wait_for("Enter password: ");
        terminal.press(keys);
        terminal.wait_for(words);
        assert_eq!(terminal.end(), 1);
        assert!(terminal.is_usual());
    }
}

/// In a script that no terminal belongs to, the first line is the answer.
#[test]
fn without_a_terminal_the_password_is_a_line_of_the_input() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("s");
    let (_database, _listening, _) = serve_ann(&socket);
    let mut child = Command::new("setsid")
        .args(["--wait", env!("CARGO_BIN_EXE_porpoise"), "sql", "-Np"])
        .args(["--user=ann", "--socket"])
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"sesame\nSELECT 6 * 7;\n").unwrap();
    drop(stdin);
    let (out, err, code) = told(&child.wait_with_output().unwrap());
    assert_eq!((out.as_str(), err.as_str(), code), ("42\n", "", 0));
}

/// The shell at a terminal.
struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn open(target: &str, home: &Path) -> Terminal {
        let mut terminal = Terminal::begin(&[target], home);
        terminal.wait_for_question();
        terminal
    }

    fn begin(arguments: &[&str], home: &Path) -> Terminal {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let name = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
        let far = File::options().read(true).write(true).open(name).unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&far, size).unwrap();
        // In a session of its own, so that Ctrl-C reaches it as at any terminal.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_porpoise"), "sql"])
            .args(arguments)
            .env("TERM", "xterm")
            .env("HOME", home)
            .env_remove("PORPOISE_HISTFILE")
            .stdin(far.try_clone().unwrap())
            .stdout(far.try_clone().unwrap())
            .stderr(far)
            .spawn()
            .unwrap();
        let keys = File::from(near);
        let mut shown = keys.try_clone().unwrap();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal {
            keys,
            child,
            screen,
            seen: String::new(),
        }
    }

    fn wait_for_question(&mut self) {
        self.wait_until("porpoise>", |seen| seen.trim_end().ends_with("porpoise>"));
    }

    /// Whether it shows what is typed, and Ctrl-C is heard.
    fn is_usual(&self) -> bool {
        let usual = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcgetattr(&self.keys).unwrap().local_modes.contains(usual)
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line, and waits for what it brings and for the next question.
    fn enter(&mut self, text: &str, expected: &str) -> String {
        self.seen.clear();
        self.press(&format!("{text}\r"));
        self.wait_until(expected, |seen| {
            seen.contains(expected) && seen.trim_end().ends_with("porpoise>")
        })
    }

    /// Waits until the screen has shown this, and returns all that it has shown.
    fn wait_for(&mut self, text: &str) -> String {
        self.wait_until(text, |seen| seen.contains(text))
    }

    fn wait_until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_there(&plain(&self.seen)) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => {
                    let shown = String::from_utf8_lossy(&bytes).into_owned();
                    // The editor asks where the cursor is, as terminals are asked.
                    for _ in shown.matches("\x1b[6n") {
                        self.press("\x1b[1;1R");
                    }
                    self.seen.push_str(&shown);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("'{what}' isn't shown, but:\n{}", plain(&self.seen))
                }
            }
        }
        plain(&self.seen)
    }

    /// Types what ends the shell; its exit code.
    fn leave(mut self, keys: &str) -> i32 {
        self.press(keys);
        self.wait_for("Bye");
        self.end()
    }

    fn end(&mut self) -> i32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(began.elapsed() < Duration::from_secs(10), "it doesn't end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is shown, without colours and movements.
fn plain(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\x1b' if rest.next_if_eq(&'[').is_some() => {
                while rest
                    .next()
                    .is_some_and(|letter| !letter.is_ascii_alphabetic())
                {}
            }
            '\x1b' => {
                rest.next();
            }
            '\r' => {}
            letter => text.push(letter),
        }
    }
    text
}

#[test]
fn at_a_terminal_it_asks_shows_and_remembers() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(":memory:", home.path());
    assert!(plain(&terminal.seen).contains("Welcome to Porpoise.  Commands end with ; or \\g."));
    terminal.enter("CREATE DATABASE shop;", "Query OK, 1 row affected (0.");
    terminal.enter("use shop", "Database changed");
    terminal.enter(
        "CREATE TABLE fish (porosity INT PRIMARY KEY, name VARCHAR(9));",
        "Query OK, 0 rows affected",
    );
    // A statement goes on until it is complete.
    terminal.press("INSERT INTO fish\r");
    terminal.wait_for("->");
    terminal.enter("VALUES (1, 'cod');", "Query OK, 1 row affected");
    let shown = terminal.enter("SELECT * FROM fish;", "1 row in set (0.");
    assert!(
        shown.contains("| porosity | name |\n+----------+------+\n|        1 | cod  |"),
        "{shown}"
    );
    terminal.enter(
        "SELECT * FROM nothing;",
        "ERROR 1146 (42S02): Table 'shop.nothing' doesn't exist",
    );
    terminal.enter("help", "List of all Porpoise commands:");
    terminal.enter("status", "memory, in this process");
    // Tab completes a name that was made just now.
    terminal.press("SELECT poros\t");
    terminal.wait_for("SELECT porosity");
    terminal.enter("+ 41 FROM fish;", "42");
    assert_eq!(terminal.leave("quit\r"), 0);

    // Another time, arrow up brings the last statement back.
    let mut terminal = Terminal::open(":memory:", home.path());
    terminal.press("\x1b[A\x1b[A");
    terminal.wait_for("SELECT porosity");
    terminal.seen.clear();
    terminal.press("\x03");
    terminal.wait_until("porpoise>", |seen| seen.trim_end().ends_with("porpoise>"));
    terminal.enter("CREATE USER ann IDENTIFIED BY 'sesame';", "Query OK");
    assert_eq!(terminal.leave("\\q\r"), 0);
    let history = std::fs::read_to_string(home.path().join(".porpoise_history")).unwrap();
    assert!(history.contains("SELECT * FROM fish;"), "{history}");
    assert!(!history.contains("sesame"), "{history}");
}

#[test]
fn control_c_ends_the_statement_and_not_the_shell() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(":memory:", home.path());
    terminal.press("SELECT 'began', SLEEP(30) FROM (SELECT 1) t WHERE SLEEP(30) = 0;\r");
    std::thread::sleep(Duration::from_millis(500));
    let began = Instant::now();
    terminal.seen.clear();
    terminal.press("\x03");
    terminal.wait_until("aborted", |seen| {
        seen.contains("query aborted") && seen.trim_end().ends_with("porpoise>")
    });
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    terminal.enter("SELECT 40 + 2;", "     42 |");
    assert_eq!(terminal.leave("\x04"), 0);
}

#[test]
fn a_connection_that_is_lost_is_made_again() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(":memory:", home.path());
    terminal.enter("KILL CONNECTION_ID();", "ERROR 1317 (70100)");
    terminal.enter("SELECT 1;", "ERROR 2013 (HY000)");
    terminal.enter("SELECT 40 + 2;", "     42 |");
    assert_eq!(terminal.leave("exit;\r"), 0);
}
