//! Debian's sysbench as the load, where its own figures are wanted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use porpoise_client::{Options, Transport};

use crate::{Error, Workload};

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
            .arg(format!("--mysql-user={}", to.user))
            .arg(format!("--mysql-password={}", to.password))
            .arg(format!(
                "--mysql-db={}",
                to.database.as_deref().unwrap_or_default()
            ))
            .args(["--db-driver=mysql", "--tables=1", "--rand-type=uniform"])
            .arg(format!("--table-size={rows}"))
            .arg(format!("--threads={clients}"))
            .arg(format!("--time={}", time.as_secs().max(1)));
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
        if let Some(library) = &self.library {
            let transport = if is_memory { "shm" } else { "unix" };
            let url = format!(
                "mysql:///?transport={transport}&socket={}",
                socket.display()
            );
            command
                .env("LD_LIBRARY_PATH", library)
                .env("PORPOISE_URL", url);
        } else if is_memory {
            return Err(failed(
                "for shared memory it needs the folder of Porpoise's libmariadb.so.3",
            ));
        }
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
}
