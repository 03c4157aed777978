//! One large scan on more than one core.
//!
//! Who reads many rows of a scan takes them from it before its conditions were looked at, divides them
//! into units, and has other threads take one each where cores are idle ([`idle_threads`]). What is done
//! to a unit's rows is [`Work`]:
//!
//! | who divides the rows | what others do | what is done with what comes of it |
//! | --- | --- | --- |
//! | a grouping ([`GroupWork`](super::GroupWork)) | filter and aggregate | it is given to the groups |
//! | otherwise the scan itself, where conditions take long ([`FilterWork`](super::FilterWork)) | filter | rows that have passed are yielded, as batches or one by one |
//!
//! ```text
//! rows      ──────────────────────────────────────────────────────────►
//!                unit          unit          unit          unit
//! who        the statement   thread 1      thread 2      nobody yet
//!            ▲ taken         computed      is computing  waits
//! ```
//!
//! Only the statement's thread reads: it asks its cursor for rows, which stay in their blocks, so that
//! to read them costs little beside what is computed of them, and what the others get is what the
//! statement sees. They have nothing of the session, and nothing of the store but these blocks.
//!
//! What comes of the units is taken in their order: rows are yielded, and groups come, in the order of
//! the scan, sums of doubles are added in the order of theirs, and of equal texts the first is kept.
//! Rows of a unit in which something is out of the ordinary are put back into the scan, which goes
//! through them as it does alone: so errors and warnings come of the same rows, in the same order. An
//! error that reading meets is kept until the rows before it are done.
//!
//! The statement waits for none of the threads for more than a moment: it computes the unit itself, and
//! after a few such waits goes on alone for a while. They have no lock of it either, which one of them
//! could keep while others compute: who takes a unit first says so in it, and what has come of it lies
//! there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use porpoise_core::error::{Error, Result};
use porpoise_core::memory::Charge;
use porpoise_expr::EvalContext;
use porpoise_storage::Rows;
use porpoise_storage::idle_threads::{self, Help};

use super::{RawRows, Tries, UNIT_BATCHES, UNIT_BYTES};
use crate::Exec;

/// How many units each thread may be ahead of the statement.
const UNITS_AHEAD: usize = 3;

/// How many units there are at most for each core, of all statements of the process.
const UNITS_OF_CORE_MAX: usize = 16;

/// Where more bytes than so many may come of one unit, as of very many aggregates, there are none.
const COMPUTED_BYTES_MAX: usize = 8 << 20;

/// How long the statement waits for a thread that has the unit which it wants, and how often before it
/// goes on alone.
const WAIT_MAX: Duration = Duration::from_millis(2);
const WAITS_MAX: u32 = 3;

/// How many batches it goes on alone for then, at first, and how many times as many the next time.
const BATCHES_ALONE: u32 = 64;
const LATER_AFTER_WAITS: u32 = 8;

/// How many batches it is alone for where no more rows came many at a time.
const BATCHES_TO_END: u32 = 8;

/// What is computed of units: nothing of the session or of the store is needed for it.
pub(crate) trait Work: Send + Sync + 'static {
    /// What comes of a unit's rows.
    type Computed: Send + Sync;

    /// Computes that; `None`: something is out of the ordinary, or it is over.
    fn compute(&self, unit: &[Rows], is_over: &dyn Fn() -> bool) -> Option<Self::Computed>;

    /// What the vectors of a batch take at most, in bytes.
    fn vectors_bytes(&self) -> usize;

    /// What comes of a unit takes at most, in bytes.
    fn computed_bytes(&self) -> usize;
}

/// A scan's units.
pub(crate) struct Units<W: Work> {
    running: Option<Running<W>>,
    /// There are to be none.
    is_off: bool,
    /// So many batches are to be read before it is tried again, and so many the next time.
    alone: u32,
    alone_next: u32,
}

struct Running<W: Work> {
    work: Arc<W>,
    is_over: Arc<AtomicBool>,
    /// In the order of their rows.
    units: VecDeque<Arc<Unit<W>>>,
    /// How many bytes their rows have.
    bytes: usize,
    units_max: usize,
    /// How many batches the next unit has.
    batches: usize,
    /// No more rows come, or none that are read many at a time.
    is_read: bool,
    /// What reading has met.
    error: Option<Error>,
    waits: u32,
    tries: Tries,
    /// What the vectors take, and all that may come of units.
    fixed_bytes: usize,
    charge: Charge,
}

struct Unit<W: Work> {
    work: Arc<W>,
    /// Nobody wants to know any more what comes of the unit.
    is_over: Arc<AtomicBool>,
    /// Waits for what comes of it.
    statement: Thread,
    rows: Vec<Rows>,
    bytes: usize,
    is_taken: AtomicBool,
    /// `None`: something is out of the ordinary.
    computed: OnceLock<Option<W::Computed>>,
    _held: Held,
}

/// The next unit of a scan.
pub(crate) struct Next<W: Work> {
    unit: Arc<Unit<W>>,
    /// What the statement has computed itself.
    own: Option<W::Computed>,
}

impl<W: Work> Next<W> {
    /// What has come of the rows; `None`: something is out of the ordinary.
    fn outcome(&self) -> Option<&W::Computed> {
        let of_unit = || self.unit.computed.get().and_then(Option::as_ref);
        self.own.as_ref().or_else(of_unit)
    }

    /// What has come of the rows.
    ///
    /// # Errors
    /// If nobody has computed it.
    pub(crate) fn computed(&self) -> Result<&W::Computed> {
        let missing = || Error::engine_error("a unit of rows that nobody has computed");
        self.outcome().ok_or_else(missing)
    }

    /// What computes it.
    pub(crate) fn work(&self) -> &W {
        &self.unit.work
    }

    /// An entry of it, by the numbers of its batch and of its row within that.
    pub(crate) fn entry(&self, (batch, row): (usize, usize)) -> &[u8] {
        self.unit.rows[batch].value(row)
    }

    /// Its rows.
    pub(crate) fn into_rows(self) -> Vec<Rows> {
        rows_of(self.unit)
    }
}

/// How many units there are, of all statements of the process.
static UNITS_HELD: AtomicUsize = AtomicUsize::new(0);

/// One of them.
struct Held;

impl Held {
    /// `None` if there are so many already.
    fn new() -> Option<Held> {
        let units_max = UNITS_OF_CORE_MAX * (1 + idle_threads::threads_max());
        let is_held = UNITS_HELD.try_update(Ordering::Relaxed, Ordering::Relaxed, |units| {
            (units < units_max).then_some(units + 1)
        });
        is_held.ok().map(|_| Held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        UNITS_HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many units other threads than the statements' have computed.
static UNITS_OF_OTHERS: AtomicUsize = AtomicUsize::new(0);

/// How many units of scans other threads than the statements' have computed, in this process.
pub fn units_of_others() -> usize {
    UNITS_OF_OTHERS.load(Ordering::Relaxed)
}

impl<W: Work> Units<W> {
    pub(crate) fn new() -> Units<W> {
        Units {
            running: None,
            is_off: false,
            alone: 0,
            alone_next: BATCHES_ALONE,
        }
    }

    /// Whether rows wait behind those that the scan has: where it has no more, the next unit is to be
    /// asked for.
    pub(crate) fn are_left(&self) -> bool {
        self.running.is_some()
    }

    /// The next unit. `None`: rows are to be had from the scan, those that were put back or those that
    /// come next. `work` tells what is to be computed of units, if that can be.
    ///
    /// # Errors
    /// 1317, and what reading has met.
    pub(crate) fn next(
        &mut self,
        exec: &mut Exec<'_>,
        scan: &mut dyn RawRows,
        work: impl FnOnce(&mut Exec<'_>, &mut dyn RawRows) -> Option<W>,
    ) -> Result<Option<Next<W>>> {
        if self.is_off || scan.has_put_back() {
            return Ok(None);
        }
        if self.running.is_none() {
            if self.alone > 0 {
                self.alone -= 1;
                return Ok(None);
            }
            if !scan.is_large(exec) {
                return Ok(None);
            }
            self.running = Running::begin(exec, |exec| work(exec, scan));
            self.is_off = self.running.is_none();
        }
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        exec.check_interrupt()?;
        running.read(exec, scan);
        match running.take(exec) {
            Some(next) => {
                let is_plain = next.outcome().is_some();
                let is_worth_it = running.tries.note(is_plain);
                if is_plain {
                    return Ok(Some(next));
                }
                scan.put_back(next.into_rows());
                if !is_worth_it {
                    self.end(scan);
                }
                Ok(None)
            }
            None => {
                let error = running.error.take();
                self.alone = match running.is_read {
                    true => BATCHES_TO_END,
                    false => self.alone_next,
                };
                if running.waits >= WAITS_MAX {
                    self.alone_next = self.alone_next.saturating_mul(LATER_AFTER_WAITS);
                }
                self.stop(scan);
                error.map_or(Ok(None), Err)
            }
        }
    }

    /// Puts all rows back that were taken: there are no more units.
    pub(crate) fn end(&mut self, scan: &mut dyn RawRows) {
        self.is_off = true;
        self.stop(scan);
    }

    fn stop(&mut self, scan: &mut dyn RawRows) {
        if let Some(mut running) = self.running.take() {
            running.is_over.store(true, Ordering::Relaxed);
            for unit in running.units.drain(..) {
                scan.put_back(rows_of(unit));
            }
            scan.end_raw(running.error.take());
        }
    }
}

fn rows_of<W: Work>(unit: Arc<Unit<W>>) -> Vec<Rows> {
    // A thread that wasn't waited for may be at them.
    match Arc::try_unwrap(unit) {
        Ok(unit) => unit.rows,
        Err(unit) => unit.rows.clone(),
    }
}

impl<W: Work> Running<W> {
    fn begin(
        exec: &mut Exec<'_>,
        work: impl FnOnce(&mut Exec<'_>) -> Option<W>,
    ) -> Option<Running<W>> {
        let others = exec.session.vars.innodb_parallel_read_threads - 1;
        let threads = idle_threads::threads_max().min(usize::try_from(others).ok()?);
        if threads == 0 {
            return None;
        }
        let work = work(exec)?;
        if work.computed_bytes() > COMPUTED_BYTES_MAX {
            return None;
        }
        let units_max = 1 + threads * UNITS_AHEAD;
        let vectors = (1 + threads) * work.vectors_bytes();
        let fixed_bytes = vectors + units_max * work.computed_bytes();
        if !exec.session.memory.can_spare(fixed_bytes) {
            return None;
        }
        let mut charge = Charge::default();
        charge.set(&exec.session.memory, fixed_bytes).ok()?;
        Some(Running {
            work: Arc::new(work),
            is_over: Arc::default(),
            units: VecDeque::with_capacity(units_max),
            bytes: 0,
            units_max,
            batches: 1,
            is_read: false,
            error: None,
            waits: 0,
            tries: Tries::default(),
            fixed_bytes,
            charge,
        })
    }

    /// Reads rows for the units that may wait.
    fn read(&mut self, exec: &mut Exec<'_>, scan: &mut dyn RawRows) {
        while !self.is_read && self.waits < WAITS_MAX && self.units.len() < self.units_max {
            let charged = self.fixed_bytes + self.bytes + UNIT_BYTES;
            let memory = &exec.session.memory;
            let may_have = memory.can_spare(UNIT_BYTES) && self.charge.set(memory, charged).is_ok();
            let Some(held) = Held::new().filter(|_| may_have) else {
                return;
            };
            let mut rows = Vec::with_capacity(self.batches);
            let mut bytes = 0;
            while rows.len() < self.batches && bytes < UNIT_BYTES {
                let mut batch = Rows::default();
                match scan.next_raw(exec, &mut batch) {
                    Ok(true) => {
                        bytes += batch.bytes();
                        rows.push(batch);
                    }
                    Ok(false) => {
                        self.is_read = true;
                        break;
                    }
                    Err(error) => {
                        self.is_read = true;
                        self.error = Some(error);
                        break;
                    }
                }
            }
            if rows.is_empty() {
                return;
            }
            self.batches = (self.batches + 1).min(UNIT_BATCHES);
            self.bytes += bytes;
            let unit = Arc::new(Unit {
                work: Arc::clone(&self.work),
                is_over: Arc::clone(&self.is_over),
                statement: std::thread::current(),
                rows,
                bytes,
                is_taken: AtomicBool::new(false),
                computed: OnceLock::new(),
                _held: held,
            });
            idle_threads::offer(&unit);
            self.units.push_back(unit);
        }
    }

    /// The first unit, computed; `None` if there is none.
    fn take(&mut self, exec: &Exec<'_>) -> Option<Next<W>> {
        let first = Arc::clone(self.units.front()?);
        // Whether the statement is to end: what it computes itself tells nothing then.
        let is_over = || exec.check_interrupt().is_err();
        let mut own = None;
        if first.is_free() {
            own = first.work.compute(&first.rows, &is_over);
        } else {
            while first.computed.get().is_none() {
                let mut others = self.units.iter();
                if let Some(other) = others.find(|unit| unit.is_free()) {
                    let computed = other.work.compute(&other.rows, &is_over);
                    let _ = other.computed.set(computed);
                } else if !first.wait() {
                    self.waits += 1;
                    own = first.work.compute(&first.rows, &is_over);
                    break;
                }
            }
        }
        self.units.pop_front();
        self.bytes -= first.bytes;
        Some(Next { unit: first, own })
    }
}

impl<W: Work> Drop for Running<W> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl<W: Work> Unit<W> {
    /// Whether nobody has taken it; it is taken then.
    fn is_free(&self) -> bool {
        !self.is_taken.load(Ordering::Relaxed) && !self.is_taken.swap(true, Ordering::Relaxed)
    }

    /// Waits for a moment until it is computed; `false` if it isn't by then.
    fn wait(&self) -> bool {
        let end = Instant::now() + WAIT_MAX;
        loop {
            if self.computed.get().is_some() {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::park_timeout(left);
        }
    }
}

impl<W: Work> Help for Unit<W> {
    fn help(&self) {
        if self.is_free() {
            let is_over = || self.is_over.load(Ordering::Relaxed);
            let computed = self.work.compute(&self.rows, &is_over);
            if self.computed.set(computed).is_ok() {
                UNITS_OF_OTHERS.fetch_add(1, Ordering::Relaxed);
            }
            self.statement.unpark();
        }
    }
}
