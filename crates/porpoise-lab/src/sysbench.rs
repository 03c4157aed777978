//! The real sysbench as the load, where its own figures are wanted, or scripts of its own.
//!
//! [`Sysbench`] runs one of its OLTP workloads on tables that are there. [`SysbenchScript`] is any Lua
//! script, which makes its tables itself; what it reports is read by [`ScriptReport`].

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use porpoise_client::{Options, Transport};

use crate::machine::{Fact, fact_of_file};
use crate::{Error, Histogram, Workload};

/// The client library's file.
pub(crate) const LIBRARY: &str = "libmariadb.so.3";
/// By which Porpoise's library learns where to connect.
const URL_VARIABLE: &str = "PORPOISE_URL";

/// The program, and the client library that it has for shared memory.
#[derive(Clone, Debug, Default)]
pub struct Sysbench {
    /// The folder that holds Porpoise's `libmariadb.so.3`. Without it, sysbench has the library it
    /// was built with.
    pub library: Option<PathBuf>,
}

impl Sysbench {
    /// The transactions a second that so many clients do in a table of `rows` rows, for so long;
    /// over a Unix socket or shared memory if it has Porpoise's library, over a Unix socket or TCP
    /// otherwise.
    pub fn transactions_per_second(
        &self,
        to: &Options,
        workload: Workload,
        clients: usize,
        rows: u64,
        time: Duration,
    ) -> Result<f64, Error> {
        let failed = |what: &str| Error::Plan(format!("sysbench {workload}: {what}"));
        let mut command = Command::new("sysbench");
        command
            .arg(workload.name())
            .args(["--tables=1", "--rand-type=uniform"])
            .arg(format!("--table-size={rows}"))
            .arg(format!("--threads={clients}"))
            .arg(format!("--time={}", time.as_secs().max(1)));
        connect(&mut command, to, self.library.as_deref()).map_err(|what| failed(&what))?;
        let output = command
            .arg("run")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| failed(&error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let words = text.lines().filter(|line| line.starts_with("FATAL"));
            return Err(failed(&words.collect::<Vec<_>>().join("; ")));
        }
        rate(&text).ok_or_else(|| failed("it tells no transactions"))
    }
}

/// Has sysbench connect as `to` says; other ways than TCP and Unix sockets are the library's.
fn connect(command: &mut Command, to: &Options, library: Option<&Path>) -> Result<(), String> {
    command
        .arg("--db-driver=mysql")
        .arg(format!("--mysql-user={}", to.user))
        .arg(format!("--mysql-password={}", to.password))
        .arg(format!(
            "--mysql-db={}",
            to.database.as_deref().unwrap_or_default()
        ));
    let socket = to.socket.as_deref().unwrap_or(Path::new(""));
    match to.transport {
        Transport::Tcp => {
            command
                .arg(format!("--mysql-host={}", to.host))
                .arg(format!("--mysql-port={}", to.port));
        }
        _ => {
            command
                .arg("--mysql-host=localhost")
                .arg(format!("--mysql-socket={}", socket.display()));
        }
    }
    let is_memory = to.transport == Transport::SharedMemory;
    let Some(library) = library else {
        return match is_memory || to.loopback_fast_path {
            true => {
                Err("for shared memory it needs the folder of Porpoise's libmariadb.so.3".into())
            }
            false => Ok(()),
        };
    };
    let url = match to.transport {
        Transport::Tcp => format!(
            "mysql://{}:{}/?transport=tcp&loopback_fast_path={}",
            to.host, to.port, to.loopback_fast_path
        ),
        _ => {
            let transport = if is_memory { "shm" } else { "unix" };
            format!(
                "mysql:///?transport={transport}&socket={}",
                socket.display()
            )
        }
    };
    command
        .env("LD_LIBRARY_PATH", library)
        .env(URL_VARIABLE, url);
    Ok(())
}

/// Whether there is a sysbench on this machine.
pub(crate) fn is_installed() -> bool {
    let mut command = Command::new("sysbench");
    let version = command.arg("--version").stdin(Stdio::null()).output();
    version.is_ok_and(|output| output.status.success())
}

/// What an option's value comes from instead, if a script's options may not have it.
pub(crate) fn reserved_option(option: &str) -> Option<&'static str> {
    let name = option.trim_start_matches('-').replace('-', "_");
    let name = name.split('=').next().unwrap_or_default();
    Some(match name {
        "threads" | "num_threads" => "'clients'",
        "time" | "max_time" | "events" | "max_requests" | "forced_shutdown" => "'seconds'",
        "warmup_time" => "'warm_up'",
        "rate" | "tx_rate" => "'rates'",
        "db_ps_mode" => "'statements'",
        "db_driver" => "its 'servers', which are MySQL's kind",
        "report_interval" | "report_checkpoints" | "histogram" | "percentile" | "verbosity" => {
            "what it reports"
        }
        _ if name.starts_with("mysql_") && name != "mysql_storage_engine" => "'servers' and 'ways'",
        _ => return None,
    })
}

/// A Lua script of sysbench.
#[derive(Clone, Debug)]
pub struct SysbenchScript {
    /// Its name, if sysbench has it, or its path.
    pub(crate) script: String,
    pub(crate) options: Vec<String>,
    /// The folder of the client library that it has instead of the one it was built with.
    pub(crate) library: Option<PathBuf>,
    /// The end of the name of the database of its tables.
    pub(crate) database: String,
}

impl SysbenchScript {
    /// The program's version, and the client library that it has.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let told = Command::new("sysbench").arg("--version").output();
        let version = match told {
            Ok(told) => String::from_utf8_lossy(&told.stdout).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        let own = ("client library".to_owned(), "sysbench's own".to_owned());
        let library = match &self.library {
            Some(folder) => fact_of_file("client library", &folder.join(LIBRARY)),
            None => Some(own),
        };
        let mut facts = vec![("sysbench".to_owned(), version)];
        facts.extend(library);
        facts
    }

    /// Whether its library is one that knows Porpoise's own ways in.
    pub(crate) fn has_library_of_porpoise(&self) -> bool {
        let library = self.library.as_ref().map(|folder| folder.join(LIBRARY));
        let library = library.and_then(|library| std::fs::read(library).ok());
        let variable = URL_VARIABLE.as_bytes();
        library.is_some_and(|library| {
            library
                .windows(variable.len())
                .any(|bytes| bytes == variable)
        })
    }

    /// `sysbench SCRIPT OPTIONS`, for a server.
    pub(crate) fn command(&self, to: &Options) -> Result<Command, String> {
        let mut command = Command::new("sysbench");
        command
            .arg(&self.script)
            .args(&self.options)
            .stdin(Stdio::null());
        connect(&mut command, to, self.library.as_deref())?;
        Ok(command)
    }

    /// Makes its tables, after those of an earlier run have gone.
    pub(crate) fn prepare(&self, to: &Options) -> Result<(), String> {
        for action in ["cleanup", "prepare"] {
            let output = self.command(to)?.arg(action).output();
            let output = output.map_err(|error| error.to_string())?;
            if !output.status.success() {
                return Err(format!(
                    "{action}: {}",
                    complaints(&output.stdout, &output.stderr)
                ));
            }
        }
        Ok(())
    }
}

/// What sysbench says has gone wrong.
pub(crate) fn complaints(stdout: &[u8], stderr: &[u8]) -> String {
    let all = [stdout, stderr].map(String::from_utf8_lossy);
    let lines = all.iter().flat_map(|text| text.lines()).map(str::trim);
    let words: Vec<&str> = lines
        .filter(|line| line.starts_with("FATAL") || line.starts_with("PANIC"))
        .take(3)
        .collect();
    match words.is_empty() {
        false => words.join("; "),
        true => {
            let last = all.iter().flat_map(|text| text.lines());
            last.last().unwrap_or("it says nothing").trim().to_owned()
        }
    }
}

/// What a script's run came to, as sysbench 1.0 reports it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ScriptReport {
    pub seconds: f64,
    pub transactions: u64,
    pub queries: u64,
    /// Transactions that an error ended which the script expects.
    pub ignored_errors: u64,
    pub latencies: Histogram,
    /// When each interval ended, and transactions a second in it.
    pub per_second: Vec<(f64, f64)>,
}

impl ScriptReport {
    /// Nothing if it isn't one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut report = Self::default();
        for line in text.lines().map(str::trim) {
            if let Some(interval) = line.strip_prefix("[ ") {
                report.per_second.extend(interval_of(interval));
            } else if let Some((value, rest)) = line.split_once(" |")
                && let Ok(milliseconds) = value.trim().parse::<f64>()
                && let Some(Ok(count)) = rest.split_whitespace().last().map(str::parse)
            {
                let latency = Duration::from_secs_f64(milliseconds / 1e3);
                report.latencies.record_many(latency, count);
            }
        }
        let number = |name: &str| text.lines().find_map(|line| value_of(line, name));
        report.transactions = number("transactions:")? as u64;
        report.queries = number("queries:")? as u64;
        report.ignored_errors = number("ignored errors:")? as u64;
        report.seconds = number("total time:")?;
        Some(report)
    }
}

/// Of `1s ] thds: 4 tps: 3121.52 qps: …`.
fn interval_of(line: &str) -> Option<(f64, f64)> {
    let (at, rest) = line.split_once("s ]")?;
    let (_, rest) = rest.split_once("tps:")?;
    Some((
        at.trim().parse().ok()?,
        rest.split_whitespace().next()?.parse().ok()?,
    ))
}

/// The number behind a name, with or without an `s` for seconds.
fn value_of(line: &str, name: &str) -> Option<f64> {
    let value = line.trim().strip_prefix(name)?.split_whitespace().next()?;
    value.trim_end_matches('s').parse().ok()
}

/// Of `transactions: 15704 (5215.87 per sec.)`.
fn rate(report: &str) -> Option<f64> {
    let line = report
        .lines()
        .find_map(|line| line.trim().strip_prefix("transactions:"))?;
    let (_, rest) = line.split_once('(')?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found_in_sysbenchs_report() {
        let report = "SQL statistics:\n    queries performed:\n        total:  314080\n    \
                      transactions:                        15704  (5215.87 per sec.)\n    queries: 1 (2 per sec.)\n";
        assert_eq!(rate(report), Some(5215.87));
        assert_eq!(rate("FATAL: unable to connect"), None);
    }

    const REPORT: &str = "
[ 1s ] thds: 2 tps: 3119.52 qps: 3119.52 (r/w/o: 3119.52/0.00/0.00) lat (ms,95%): 0.81 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 2 tps: 2901.10 qps: 2901.10 (r/w/o: 2901.10/0.00/0.00) lat (ms,95%): 0.83 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.300 |****                                     10
       0.602 |**************************************** 5000
      11.045 |                                         1

SQL statistics:
    queries performed:
        read:                            5011
        total:                           5011
    transactions:                        5011   (2505.87 per sec.)
    queries:                             5011   (2505.87 per sec.)
    ignored errors:                      3      (1.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0003s
    total number of events:              5011
";

    #[test]
    fn a_report_of_sysbench_is_read() {
        let report = ScriptReport::parse(REPORT).unwrap();
        assert_eq!(report.per_second, [(1.0, 3119.52), (2.0, 2901.10)]);
        assert_eq!((report.transactions, report.queries), (5011, 5011));
        assert_eq!((report.ignored_errors, report.seconds), (3, 2.0003));
        assert_eq!(report.latencies.count(), 5011);
        let median = report.latencies.percentile(0.5).as_secs_f64() * 1e3;
        assert!((0.60..0.61).contains(&median), "{median}");
        assert!(report.latencies.max() > Duration::from_millis(11));
        assert_eq!(ScriptReport::parse("FATAL: unable to connect"), None);
    }

    #[test]
    fn options_that_the_experiment_gives_are_reserved() {
        for option in [
            "--threads=4",
            "--time=3",
            "--mysql-host=there",
            "--db-ps-mode=disable",
        ] {
            assert!(reserved_option(option).is_some(), "{option}");
        }
        for option in [
            "--tables=4",
            "--mysql-storage-engine=innodb",
            "--range_size=5",
        ] {
            assert_eq!(reserved_option(option), None, "{option}");
        }
    }

    #[test]
    fn what_went_wrong_is_found_among_what_sysbench_says() {
        let text = b"sysbench 1.0.20\nFATAL: unable to connect\nFATAL: error 2002\n";
        assert_eq!(
            complaints(text, b""),
            "FATAL: unable to connect; FATAL: error 2002"
        );
        assert_eq!(complaints(b"", b"no such script\n"), "no such script");
    }
}
