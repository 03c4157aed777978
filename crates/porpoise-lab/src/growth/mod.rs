//! The growth experiment: what a table costs as it grows from what the cache holds to far more.
//!
//! ```text
//! for each number of rows
//!   for each server, in a new folder, its memory limited
//!     load              INSERTs of many rows, one client         rows a second
//!     idle              until the folder stays as it is          bytes a row
//!     select            any row; rows that the cache holds       statements a second
//!     update            any row, synced                          … in each second, the slowest statement
//!     scan              the sum of a column                      rows a second; is it the updates' sum?
//!     idle                                                       bytes a row
//!     stop, start       SIGTERM, then until SELECT 1 answers     seconds
//!     kill              SIGKILL while clients update             seconds, are the updates there?
//! ```
//!
//! A limit of memory counts the pages of files as well, so that a server whose cache is the kernel's
//! has no more of it than one that has its own.

mod clients;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::Error;
use crate::Target;
use crate::check_room;
use crate::memory_group::MemoryGroup;
use crate::own_server::{CACHE_MIN_MIB, EMPTY_BYTES, MEMORY_MAX_MIB, OwnServer, Product};
use crate::progress::{Progress, tell};
use crate::report::grouped;
use crate::statistics::median;

pub use report::{GrowthFigures, GrowthLine, GrowthReport};

/// Ids are an INT.
const ROWS_MAX: u64 = i32::MAX as u64;
/// What a VARCHAR of latin1 holds beside the other columns.
const TEXT_MAX_BYTES: usize = 60_000;
/// What a row takes beside its text, roughly, and how often the folder may hold all rows while
/// they are changed.
const ROW_BYTES: u64 = 40;
const COPIES: u64 = 4;
/// Scans of which the median counts.
const SCANS: usize = 3;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct GrowthPlan {
    /// Numbers of rows, in order.
    pub rows: Vec<u64>,
    /// Bytes of each row's text; with 0 a row is two integers.
    pub text_bytes: usize,
    /// `innodb_buffer_pool_size` of each server, in MiB.
    pub cache_mib: u64,
    /// What each server's process may have, pages of files included, in MiB; 0 is no limit.
    pub memory_mib: u64,
    /// Clients that select and update.
    pub clients: usize,
    /// How long each of selects and updates is measured.
    pub duration: Duration,
    /// How long to wait at most until a folder is at rest.
    pub idle: Duration,
    /// Whether a MariaDB is measured beside.
    pub peer: bool,
    /// When somebody sets it, the run ends; what was measured counts.
    pub stop: Arc<AtomicBool>,
    /// Whether to tell on stderr what is going on.
    pub progress: bool,
}

impl Default for GrowthPlan {
    fn default() -> Self {
        Self {
            rows: vec![100_000, 1_000_000],
            text_bytes: 60,
            cache_mib: 64,
            memory_mib: 256,
            clients: 8,
            duration: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            peer: false,
            stop: Arc::default(),
            progress: true,
        }
    }
}

impl GrowthPlan {
    fn check(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::Plan(why));
        if self.rows.is_empty() || self.clients == 0 || self.duration.is_zero() {
            return refused("nothing to measure".into());
        }
        let rows_min = self.clients as u64;
        for &rows in &self.rows {
            if rows < rows_min || rows > ROWS_MAX {
                let (least, most) = (grouped(rows_min), grouped(ROWS_MAX));
                let rows = grouped(rows);
                return refused(format!(
                    "{rows} rows: there must be {least} (one a client) to {most}"
                ));
            }
        }
        if self.text_bytes > TEXT_MAX_BYTES {
            let most = grouped(TEXT_MAX_BYTES as u64);
            return refused(format!("a text of a row has at most {most} bytes"));
        }
        if !(CACHE_MIN_MIB..=MEMORY_MAX_MIB).contains(&self.cache_mib) {
            return refused(format!(
                "a cache has {CACHE_MIN_MIB} to {MEMORY_MAX_MIB} MiB"
            ));
        }
        if self.memory_mib > MEMORY_MAX_MIB {
            return refused(format!("a limit has at most {MEMORY_MAX_MIB} MiB"));
        }
        if self.memory_mib != 0 && self.memory_mib <= self.cache_mib {
            let (memory, cache) = (self.memory_mib, self.cache_mib);
            return refused(format!(
                "a limit of {memory} MiB has no room for a cache of {cache} MiB and the server"
            ));
        }
        Ok(())
    }

    fn row_bytes(&self) -> u64 {
        self.text_bytes as u64 + ROW_BYTES
    }

    /// What so many rows may take on the disk.
    fn disk_bytes(&self, rows: u64) -> u64 {
        rows * self.row_bytes() * COPIES + EMPTY_BYTES
    }

    /// Rows that a cache holds easily.
    fn hot_rows(&self, rows: u64) -> u64 {
        let hot = (self.cache_mib << 20) / 4 / self.row_bytes();
        rows.min(hot).max(1)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// Runs the plan with folders in `folder`, of which there is one at a time. What goes wrong with one
/// server at one number of rows is part of the report.
///
/// # Errors
///
/// A plan that can't be run; too little room on the disk, before anything is begun; a folder that can't
/// be removed.
pub fn run(plan: &GrowthPlan, folder: &Path) -> Result<GrowthReport, Error> {
    plan.check()?;
    let mut report = GrowthReport::new(plan);
    for &rows in &plan.rows {
        check_room(rows, plan.disk_bytes(rows), folder)?;
    }
    for &rows in &plan.rows {
        for &product in Product::all(plan.peer) {
            if plan.is_stopped() {
                return Ok(report);
            }
            let folder = folder.join(format!("{rows}-{}", product.name()));
            let line = Run::start(plan, rows, product, &folder, &mut report);
            let line = line.map(Run::measure);
            report.lines.push(line.unwrap_or_else(|why| GrowthLine {
                rows,
                server: product.name().to_owned(),
                figures: GrowthFigures::default(),
                failure: Some(why.to_string()),
            }));
            if folder.exists() {
                std::fs::remove_dir_all(&folder)?;
            }
        }
    }
    Ok(report)
}

fn start_server(
    product: Product,
    plan: &GrowthPlan,
    folder: &Path,
    group: Option<&MemoryGroup>,
) -> Result<OwnServer, Error> {
    let cache = [format!("--innodb-buffer-pool-size={}M", plan.cache_mib)];
    OwnServer::start(product, folder, plan.clients, &cache, group)
}

/// One server with one number of rows.
struct Run<'a> {
    plan: &'a GrowthPlan,
    rows: u64,
    folder: PathBuf,
    server: OwnServer,
    target: Target,
    group: Option<MemoryGroup>,
    progress: Progress,
    figures: GrowthFigures,
    /// What the folder had without the rows.
    empty_bytes: u64,
    /// What the numbers of all rows come to.
    sum: u64,
}

impl<'a> Run<'a> {
    fn start(
        plan: &'a GrowthPlan,
        rows: u64,
        product: Product,
        folder: &Path,
        report: &mut GrowthReport,
    ) -> Result<Self, Error> {
        // Others may have taken of it meanwhile.
        let disk = folder.parent().unwrap_or(folder);
        check_room(rows, plan.disk_bytes(rows), disk)?;
        std::fs::create_dir(folder)?;
        let group = match plan.memory_mib {
            0 => None,
            mib => MemoryGroup::make(mib << 20)
                .inspect_err(|why| report.is_not_limited(why))
                .ok(),
        };
        let server = start_server(product, plan, folder, group.as_ref())?;
        let target = Target::at(product.name(), server.options());
        server
            .prepare()
            .map_err(target.failed("making the clients' account"))?;
        Ok(Self {
            plan,
            rows,
            empty_bytes: server.data_bytes(),
            folder: folder.to_owned(),
            server,
            target,
            group,
            progress: Progress::new(plan.progress),
            figures: GrowthFigures::default(),
            sum: 0,
        })
    }

    fn show(&mut self, doing: &str) {
        let (rows, name) = (grouped(self.rows), &self.target.name);
        self.progress.show(&format!("{rows} rows, {name}: {doing}"));
    }

    /// All steps, as far as they go.
    fn measure(mut self) -> GrowthLine {
        let failure = self.steps().err().map(|error| self.explained(&error));
        self.progress.clear();
        if let (Some(why), true) = (&failure, self.plan.progress) {
            tell(format!("{} rows: {why}", grouped(self.rows)));
        }
        GrowthLine {
            rows: self.rows,
            server: self.target.name.clone(),
            figures: self.figures.clone(),
            failure,
        }
    }

    /// An error, with what became of the server.
    fn explained(&mut self, error: &Error) -> String {
        let mut why = error.to_string();
        if let Some(status) = self.server.ended() {
            why = format!("{why}; the server has ended: {status}");
        }
        if self.group.as_ref().is_some_and(|group| group.kills() > 0) {
            let limit = self.plan.memory_mib;
            why = format!("{why}; it wanted more memory than the limit of {limit} MiB");
        }
        why
    }

    fn steps(&mut self) -> Result<(), Error> {
        let steps: [fn(&mut Self) -> Result<(), Error>; 8] = [
            Self::load,
            |run| {
                run.figures.loaded_bytes = run.rest()?;
                Ok(())
            },
            Self::select,
            Self::update,
            Self::scan,
            |run| {
                run.figures.updated_bytes = run.rest()?;
                run.figures.folder_bytes = Some(run.server.data_bytes() as f64);
                Ok(())
            },
            Self::stop_and_start,
            Self::kill_and_recover,
        ];
        for step in steps {
            if self.plan.is_stopped() {
                break;
            }
            step(self)?;
            self.measure_memory();
        }
        Ok(())
    }

    fn measure_memory(&mut self) {
        note_peak(&self.server, &mut self.figures);
    }

    fn load(&mut self) -> Result<(), Error> {
        let target = self.target.clone();
        let failed = target.failed("loading");
        let began = Instant::now();
        let plan = self.plan;
        let mut loader = clients::Loader::begin(&target, plan.text_bytes).map_err(&failed)?;
        while loader.rows() < self.rows {
            if plan.is_stopped() {
                return Ok(());
            }
            loader.insert(self.rows).map_err(&failed)?;
            self.show(&format!("loading, {} are there", grouped(loader.rows())));
        }
        self.figures.loads = Some(self.rows as f64 / began.elapsed().as_secs_f64());
        self.sum = loader.sum();
        Ok(())
    }

    /// Waits until the folder is at rest; bytes a row.
    fn rest(&mut self) -> Result<Option<f64>, Error> {
        self.show("waiting until the folder is at rest");
        let rest = self.server.rest(self.plan.idle, &self.plan.stop);
        Ok(rest.map(|bytes| (bytes as f64 - self.empty_bytes as f64) / self.rows as f64))
    }

    fn select(&mut self) -> Result<(), Error> {
        let hot_rows = self.plan.hot_rows(self.rows);
        for (what, rows) in [("any row", self.rows), ("rows of the cache", hot_rows)] {
            if self.plan.is_stopped() {
                break;
            }
            self.show(&format!("selecting {what}"));
            let selected = clients::select(&self.target, self.plan, rows)?;
            match what {
                "any row" => self.figures.selects = Some(selected.per_second),
                _ => self.figures.hot_selects = Some(selected.per_second),
            }
        }
        Ok(())
    }

    fn update(&mut self) -> Result<(), Error> {
        self.show("updating");
        let updated = clients::update(&self.target, self.plan, self.rows)?;
        self.sum += updated.statements;
        let figures = &mut self.figures;
        figures.updates = Some(updated.per_second);
        figures.longest_update = Some(updated.longest.as_secs_f64());
        let slowest = updated.seconds.iter().copied().reduce(f64::min);
        let usual = median(&updated.seconds);
        figures.worst_second = slowest
            .filter(|_| usual > 0.0)
            .map(|slowest| slowest / usual);
        Ok(())
    }

    fn scan(&mut self) -> Result<(), Error> {
        self.show("scanning");
        let mut took = Vec::new();
        let began = Instant::now();
        while took.is_empty() || (took.len() < SCANS && began.elapsed() < self.plan.duration) {
            let began = Instant::now();
            let sum = clients::sum(&self.target)?;
            took.push(began.elapsed().as_secs_f64());
            if sum != self.sum {
                let (name, expected) = (&self.target.name, self.sum);
                let why = format!("{name}: the rows' sum is {sum}, not {expected}");
                return Err(Error::Plan(why));
            }
        }
        self.figures.scans = Some(self.rows as f64 / median(&took));
        Ok(())
    }

    fn stop_and_start(&mut self) -> Result<(), Error> {
        self.show("stopping");
        let began = Instant::now();
        self.server.stop()?;
        self.figures.stop = Some(began.elapsed().as_secs_f64());
        self.show("starting");
        self.figures.start = Some(self.start_again()?);
        Ok(())
    }

    /// Seconds until it answers.
    fn start_again(&mut self) -> Result<f64, Error> {
        let began = Instant::now();
        let product = self.server.product();
        self.server = start_server(product, self.plan, &self.folder, self.group.as_ref())?;
        let answered = self.server.answers();
        answered.map_err(self.target.failed("asking after the start"))?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn kill_and_recover(&mut self) -> Result<(), Error> {
        self.show("updating until it is killed");
        let (server, figures) = (&mut self.server, &mut self.figures);
        let kill = || {
            note_peak(server, figures);
            server.kill();
        };
        let promised = clients::update_until_killed(&self.target, self.plan, self.rows, kill)?;
        self.show("recovering");
        self.figures.recovery = Some(self.start_again()?);
        self.show("looking for updates");
        let lost = clients::count_lost(&self.target, &promised)?;
        self.figures.lost = Some(lost as f64);
        Ok(())
    }
}

/// The most memory of a server's processes so far.
fn note_peak(server: &OwnServer, figures: &mut GrowthFigures) {
    if let Some(memory) = server.memory() {
        let known = figures.peak_bytes.unwrap_or(0.0);
        figures.peak_bytes = Some(known.max(memory.peak_bytes as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_cannot_be_run_are_refused() {
        let usual = GrowthPlan::default;
        let plans = [
            (
                GrowthPlan {
                    rows: vec![100, 3],
                    ..usual()
                },
                "3 rows: there must be 8 (one a client) to 2,147,483,647",
            ),
            (
                GrowthPlan {
                    rows: Vec::new(),
                    ..usual()
                },
                "nothing to measure",
            ),
            (
                GrowthPlan {
                    text_bytes: 60_001,
                    ..usual()
                },
                "a text of a row has at most 60,000 bytes",
            ),
            (
                GrowthPlan {
                    cache_mib: 4,
                    ..usual()
                },
                "a cache has 8 to 1048576 MiB",
            ),
            (
                GrowthPlan {
                    cache_mib: 256,
                    ..usual()
                },
                "a limit of 256 MiB has no room for a cache of 256 MiB and the server",
            ),
        ];
        for (plan, why) in plans {
            let error = run(&plan, Path::new("/nowhere")).unwrap_err();
            assert_eq!(error.to_string(), why);
        }
    }

    #[test]
    fn a_disk_that_is_too_small_is_told_before() {
        let folder = tempfile::tempdir().unwrap();
        let plan = GrowthPlan {
            rows: vec![ROWS_MAX],
            text_bytes: TEXT_MAX_BYTES,
            ..GrowthPlan::default()
        };
        let told = run(&plan, folder.path()).unwrap_err().to_string();
        assert!(
            told.starts_with("2,147,483,647 rows may take 491,") && told.contains("are free"),
            "{told}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn hot_rows_are_those_of_a_quarter_of_the_cache() {
        let plan = GrowthPlan::default();
        assert_eq!(plan.hot_rows(1000), 1000);
        assert_eq!(plan.hot_rows(10_000_000), (16 << 20) / 100);
    }
}
