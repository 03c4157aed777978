//! The spill experiment: sorts, groups, hash joins and windows that take more memory than they may.
//!
//! ```text
//! Porpoise, in one folder       sbtest1, filled once
//!   in memory                   each statement, with memory enough      seconds, peak, answer
//!   to disk                     the same, with a limit                  …; did it go to disk?
//! MariaDB, with --peer          the same rows, the same limit           …
//! ```
//!
//! Every answer has all rows in it: the whole table in its order as a digest, or sums over all that a
//! derived table has. So a row that was lost, doubled or out of its order on the way to the disk and back is an answer
//! that differs.

mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fastrand::Rng;
use porpoise_client::{Connection, Options};

use crate::own_server::{CACHE_MIN_MIB, EMPTY_BYTES, MEMORY_MAX_MIB, OwnServer, Product};
use crate::progress::{Progress, tell};
use crate::queries::Reply;
use crate::report::grouped;
use crate::{Error, Table, Target, check_room};

pub use report::{SpillReport, SpillRun};

type ClientError = porpoise_client::Error;

/// What a row of sysbench's table has: two integers and two texts.
const ROW_BYTES: u64 = 4 + 4 + 119 + 59;
/// What a row takes on the disk, roughly: in the table with its index and its log, and in the files of a
/// statement, twice while they are merged.
const DISK_BYTES: u64 = 1200;
/// Of `statement_memory_limit`, below which a session has no room for itself.
const LIMIT_MIN_MIB: u64 = 16;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct SpillPlan {
    /// MiB of the table's values.
    pub table_mib: u64,
    /// MiB that a statement may take when it is to go to disk.
    pub limit_mib: u64,
    /// `innodb_buffer_pool_size` of each server, in MiB.
    pub cache_mib: u64,
    /// Whether a MariaDB is measured beside.
    pub peer: bool,
    /// When somebody sets it, the run ends after the statement that is under way.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for SpillPlan {
    fn default() -> Self {
        Self {
            table_mib: 1024,
            limit_mib: 64,
            cache_mib: 64,
            peer: false,
            stop: Arc::default(),
            progress: true,
        }
    }
}

impl SpillPlan {
    fn check(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Plan(why));
        if !(1..=MEMORY_MAX_MIB).contains(&self.table_mib) {
            return refused(format!("a table has 1 to {MEMORY_MAX_MIB} MiB"));
        }
        if !(LIMIT_MIN_MIB..=MEMORY_MAX_MIB).contains(&self.limit_mib) {
            return refused(format!(
                "a statement may take {LIMIT_MIN_MIB} to {MEMORY_MAX_MIB} MiB"
            ));
        }
        if !(CACHE_MIN_MIB..=MEMORY_MAX_MIB).contains(&self.cache_mib) {
            return refused(format!(
                "a buffer pool has {CACHE_MIN_MIB} to {MEMORY_MAX_MIB} MiB"
            ));
        }
        Ok(())
    }

    fn table(&self) -> Table {
        Table {
            number: 1,
            rows: (self.table_mib << 20) / ROW_BYTES,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// What the server of a run is started with.
    fn options(&self, run: Setting) -> Vec<String> {
        let limit = self.limit_mib;
        let mut options = vec![format!("--innodb-buffer-pool-size={}M", self.cache_mib)];
        options.extend(match run {
            // What all statements together may take grows with it.
            Setting::InMemory => vec![
                format!("--statement-memory-limit={MEMORY_MAX_MIB}M"),
                format!("--temptable-max-ram={MEMORY_MAX_MIB}M"),
            ],
            Setting::ToDisk => vec![format!("--statement-memory-limit={limit}M")],
            Setting::MariaDb => vec![
                format!("--sort-buffer-size={limit}M"),
                format!("--join-buffer-size={limit}M"),
                format!("--join-buffer-space-limit={limit}M"),
                format!("--tmp-table-size={limit}M"),
                format!("--max-heap-table-size={limit}M"),
                // Hash joins, which it has but doesn't use unless told to.
                "--join-cache-level=8".to_owned(),
                "--optimizer-switch=join_cache_hashed=on,optimize_join_buffer_size=off".to_owned(),
            ],
        });
        options
    }
}

/// A statement over the whole table.
#[derive(Debug)]
struct Query {
    name: &'static str,
    text: &'static str,
    /// It has as many rows as the table: they are looked at as they come, and not kept.
    is_long: bool,
}

const QUERIES: &[Query] = &[
    Query {
        name: "ORDER BY c",
        text: "SELECT * FROM sbtest1 ORDER BY c",
        is_long: true,
    },
    Query {
        name: "GROUP BY c",
        text: "SELECT COUNT(*), SUM(n), BIT_XOR(CRC32(CONCAT(c, p))) \
               FROM (SELECT c, COUNT(*) AS n, MAX(pad) AS p FROM sbtest1 GROUP BY c) AS grouped",
        is_long: false,
    },
    Query {
        name: "hash join ON a.c = b.c",
        text: "SELECT COUNT(*), BIT_XOR(CRC32(CONCAT(a.pad, b.pad, b.id))) \
               FROM sbtest1 AS a JOIN sbtest1 AS b ON a.c = b.c",
        is_long: false,
    },
    Query {
        name: "ROW_NUMBER() OVER (PARTITION BY k % 1000 ORDER BY c)",
        text: "SELECT COUNT(*), BIT_XOR(CRC32(CONCAT(r, c, pad))) \
               FROM (SELECT c, pad, ROW_NUMBER() OVER (PARTITION BY k % 1000 ORDER BY c) AS r FROM sbtest1) AS numbered",
        is_long: false,
    },
];

/// A server, and what its statements may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    InMemory,
    ToDisk,
    MariaDb,
}

impl Setting {
    const fn name(self) -> &'static str {
        match self {
            Self::InMemory => "in memory",
            Self::ToDisk => "to disk",
            Self::MariaDb => "MariaDB",
        }
    }

    const fn product(self) -> Product {
        match self {
            Self::InMemory | Self::ToDisk => Product::Porpoise,
            Self::MariaDb => Product::MariaDb,
        }
    }

    /// In the order in which they are measured.
    const fn all(with_peer: bool) -> &'static [Self] {
        match with_peer {
            true => &[Self::InMemory, Self::ToDisk, Self::MariaDb],
            false => &[Self::InMemory, Self::ToDisk],
        }
    }
}

/// Runs the plan with folders in `folder`, of which there is one at a time. What goes wrong with a
/// server is part of the report.
///
/// # Errors
///
/// A plan that can't be run; too little room on the disk, before anything is begun; a folder that can't
/// be made or removed.
pub fn run(plan: &SpillPlan, folder: &Path) -> Result<SpillReport, Error> {
    plan.check()?;
    let rows = plan.table().rows;
    check_room(rows, rows * DISK_BYTES + EMPTY_BYTES, folder)?;
    let mut report = SpillReport::new(plan);
    let mut progress = Progress::new(plan.progress);
    let mut filled: Option<(Product, PathBuf)> = None;
    for &setting in Setting::all(plan.peer) {
        if plan.is_stopped() {
            break;
        }
        let product = setting.product();
        let is_filled = filled.as_ref().is_some_and(|(of, _)| *of == product);
        if !is_filled {
            if let Some((_, older)) = filled.take() {
                std::fs::remove_dir_all(older)?;
            }
            let folder = folder.join(product.name());
            std::fs::create_dir(&folder)?;
            filled = Some((product, folder));
        }
        let Some((_, folder)) = &filled else {
            unreachable!("a folder was made");
        };
        let mut run = SpillRun::new(setting.name());
        if let Err(why) = measure(plan, setting, folder, is_filled, &mut run, &mut progress) {
            progress.clear();
            if plan.progress {
                tell(why.to_string());
            }
            run.failures.push(why.to_string());
        }
        report.runs.push(run);
    }
    progress.clear();
    if let Some((_, folder)) = filled {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(report)
}

/// All statements of a run. One that fails is told, and the others go on as long as there is a server.
fn measure(
    plan: &SpillPlan,
    setting: Setting,
    folder: &Path,
    is_filled: bool,
    run: &mut SpillRun,
    progress: &mut Progress,
) -> Result<(), Error> {
    let name = setting.name();
    progress.show(&format!("{name}: starting"));
    let options = plan.options(setting);
    let mut server = OwnServer::start(setting.product(), folder, 1, &options, None)?;
    let target = Target::at(name, server.options());
    if !is_filled {
        let failed = target.failed("loading");
        server.prepare().map_err(&failed)?;
        let mut connection = Connection::connect(&target.options).map_err(&failed)?;
        let table = plan.table();
        let loaded = |rows| {
            let rows = grouped(rows);
            progress.show(&format!("{name}: {rows} rows are there"));
        };
        let mut random = Rng::with_seed(1);
        table
            .load(&mut connection, &mut random, loaded)
            .map_err(&failed)?;
        // What the load leaves to be done isn't the statements' work.
        progress.show(&format!("{name}: stopping"));
        drop(connection);
        server.stop()?;
        server = OwnServer::start(setting.product(), folder, 1, &options, None)?;
    }
    let target = Target::at(name, server.options());
    for (at, query) in QUERIES.iter().enumerate() {
        if plan.is_stopped() {
            break;
        }
        progress.show(&format!("{name}: {}", query.name));
        if server.forget_peak().is_err() {
            run.has_older_peaks = true;
        }
        match ask(&target.options, query) {
            Ok((seconds, reply, on_disk)) => {
                run.seconds[at] = Some(seconds);
                run.replies[at] = Some(reply);
                run.peaks[at] = server.memory().map(|memory| memory.peak_bytes);
                // Of MariaDB's files this tells only some.
                let is_to_spill = setting == Setting::ToDisk;
                if setting != Setting::MariaDb && on_disk != is_to_spill {
                    let had = if on_disk { "went" } else { "did not go" };
                    run.failures
                        .push(format!("{name}: {} {had} to disk", query.name));
                }
            }
            Err(error) => {
                run.failures
                    .push(target.failed(query.name)(error).to_string());
                if let Some(status) = server.ended() {
                    return Err(Error::Plan(format!("{name}: the server ended: {status}")));
                }
            }
        }
    }
    progress.show(&format!("{name}: stopping"));
    server.stop()
}

/// Asks it in a session of its own; how long it took until its last row was there, what it answered,
/// and whether it made temporary files.
fn ask(options: &Options, query: &Query) -> Result<(f64, Reply, bool), ClientError> {
    let mut connection = Connection::connect(options)?;
    let files = |connection: &mut Connection| {
        let rows = connection.rows("SHOW STATUS LIKE 'Created_tmp_files'")?;
        let value = rows
            .to_text()
            .into_iter()
            .next()
            .and_then(|mut row| row.pop());
        Ok::<_, ClientError>(value)
    };
    let before = files(&mut connection)?;
    let (seconds, reply) = Reply::ask(&mut connection, query.text, query.is_long)?;
    let after = files(&mut connection)?;
    Ok((seconds, reply, before != after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_cannot_be_run_are_refused() {
        let usual = SpillPlan::default;
        let plans = [
            (
                SpillPlan {
                    table_mib: 0,
                    ..usual()
                },
                "a table has 1 to 1048576 MiB",
            ),
            (
                SpillPlan {
                    limit_mib: 1,
                    ..usual()
                },
                "a statement may take 16 to 1048576 MiB",
            ),
            (
                SpillPlan {
                    cache_mib: 4,
                    ..usual()
                },
                "a buffer pool has 8 to 1048576 MiB",
            ),
        ];
        for (plan, why) in plans {
            let error = run(&plan, Path::new("/nowhere")).unwrap_err();
            assert_eq!(error.to_string(), why);
        }
        let folder = tempfile::tempdir().unwrap();
        let plan = SpillPlan {
            table_mib: MEMORY_MAX_MIB,
            ..usual()
        };
        let told = run(&plan, folder.path()).unwrap_err().to_string();
        assert!(told.starts_with("5,911,352,837 rows may take "), "{told}");
    }
}
