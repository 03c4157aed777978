//! Joins of two sides that are on disk, divided by the keys that they are joined on.
//!
//! ```text
//! right ─► part 0 │ part 1 │ …       a job: the rows of one part of each side
//! left  ─► part 0 │ part 1 │ … │ rows that can't match
//! ```
//!
//! A job makes a hash table of its right rows and looks its left rows up. Where these are too many
//! for memory, both are divided again, by another hash. Where dividing doesn't help, as many of them
//! have one key, the left rows are gone through once for each piece of the right ones that fits; a
//! bit for each left row says whether an earlier piece had a match.
//!
//! Rows come out in the order of the parts. Where the left side's order counts, they are sorted by
//! the number that each left row has got.

use porpoise_core::error::Result;
use porpoise_core::memory::{Buffer, Charge};
use porpoise_core::temporary_file::{Part, PartReader, PartWriter};
use porpoise_expr::{EvalContext, SlotId};
use porpoise_planner::plan::JoinKind;

use super::hash_join::{ASKED_EVERY_BYTES, DividedSide, JoinOn, Matches, ROWS_PER_LOOK};
use super::join_table::{JoinTable, Key, KeyForm};
use super::{DiskSort, RowOrder, SortedRows, all_true};
use crate::Exec;
use crate::row_buffer::{restore, save};
use crate::spill::{Hashing, unreadable};

/// Rows are divided so many times, at most.
const LEVELS_MAX: u32 = 8;

/// A left row's number, which its entry begins with.
const NUMBER_BYTES: usize = size_of::<u64>();

pub(super) struct DiskJoin {
    kind: JoinKind,
    left_slots: Vec<SlotId>,
    /// The left side while it is read, and how many rows it had.
    left: Option<PartWriter>,
    left_rows: u64,
    jobs: Vec<Job>,
    running: Option<Box<Running>>,
    /// The rows in the order of the left side, where that counts.
    in_order: Option<SortedRows>,
}

/// Rows of both sides that have to be compared with each other alone.
struct Job {
    /// How the rows are divided next, if they are too many.
    hashing: Hashing,
    left: Part,
    right: Option<Part>,
    /// Dividing them doesn't help.
    is_one_key: bool,
}

/// A job that is being done.
struct Running {
    job: Job,
    /// The right rows behind those in the table.
    right: Option<PartReader>,
    table: JoinTable,
    left: PartReader,
    /// The current left row's number among the job's, and among all.
    row: u64,
    number: u64,
    key: Key,
    matches: Option<Matches>,
    matched: Matched,
}

/// Which left rows had a match in an earlier piece of the right rows. Empty: none.
#[derive(Default)]
struct Matched {
    bits: Vec<u64>,
    charge: Charge,
}

impl Matched {
    fn has(&self, row: u64) -> bool {
        let word = self.bits.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    fn set(&mut self, exec: &Exec<'_>, row: u64, rows: u64) -> Result<()> {
        if self.bits.is_empty() {
            let words = rows.div_ceil(64) as usize;
            let account = &exec.session.memory;
            self.charge.reserve(account, &mut self.bits, words)?;
            self.bits.resize(words, 0);
        }
        self.bits[(row / 64) as usize] |= 1 << (row % 64);
        Ok(())
    }
}

impl DiskJoin {
    /// A join with a right side. The left side's rows follow.
    pub(super) fn new(
        exec: &Exec<'_>,
        right: &DividedSide,
        kind: JoinKind,
        left_slots: Vec<SlotId>,
    ) -> Result<DiskJoin> {
        Ok(DiskJoin {
            kind,
            left_slots,
            left: Some(right.hashing.create_with_rest(&exec.session.memory)?),
            left_rows: 0,
            jobs: Vec::new(),
            running: None,
            in_order: None,
        })
    }

    /// Adds the current left row; without a key, or with one that no right row has, it matches none.
    pub(super) fn add_left(
        &mut self,
        exec: &Exec<'_>,
        right: &DividedSide,
        form: KeyForm,
        key: Option<&Key>,
    ) -> Result<()> {
        let number = self.left_rows;
        self.left_rows += 1;
        let part = key.map(|key| key.part(form, &right.hashing));
        let part = part.filter(|part| right.parts[*part].entries() > 0);
        let needs_match = matches!(self.kind, JoinKind::Inner | JoinKind::Semi);
        let (Some(left), false) = (&mut self.left, part.is_none() && needs_match) else {
            return Ok(());
        };
        let rest = right.parts.len();
        let no_key = Key::default();
        left.push(part.unwrap_or(rest), |out| {
            out.extend_from_slice(&number.to_be_bytes());
            key.unwrap_or(&no_key).write(form, out);
            save(&exec.frame, &self.left_slots, out);
        })
    }

    /// All left rows were added.
    pub(super) fn begin(
        &mut self,
        exec: &mut Exec<'_>,
        right: &DividedSide,
        on: &JoinOn<'_>,
        order: RowOrder,
    ) -> Result<()> {
        let Some(left) = self.left.take() else {
            return Ok(());
        };
        let job = |(number, left): (usize, Part)| Job {
            hashing: right.hashing.deeper(),
            left,
            right: right.parts.get(number).cloned(),
            is_one_key: false,
        };
        let jobs = left.finish()?.into_iter().enumerate().map(job);
        self.jobs = jobs.filter(|job| job.left.entries() > 0).collect();
        self.jobs.reverse();
        match order {
            RowOrder::Free => Ok(()),
            RowOrder::Kept => self.put_in_order(exec, on),
        }
    }

    /// Does all jobs, and sorts the rows by the left rows' numbers.
    fn put_in_order(&mut self, exec: &mut Exec<'_>, on: &JoinOn<'_>) -> Result<()> {
        let slots = self.slots(on);
        let mut sort = DiskSort::new(exec);
        while self.next_of_jobs(exec, on)? {
            let number = self.running.as_ref().map_or(0, |running| running.number);
            sort.push(exec, &number.to_be_bytes(), &slots)?;
        }
        self.in_order = Some(sort.finish(exec)?);
        Ok(())
    }

    /// The slots that a row of the join fills.
    fn slots(&self, on: &JoinOn<'_>) -> Vec<SlotId> {
        let mut slots = self.left_slots.clone();
        if matches!(self.kind, JoinKind::Inner | JoinKind::Left) {
            slots.extend(on.right_slots);
        }
        slots
    }

    /// Leaves the next row in the slots of both sides; false if there is none.
    pub(super) fn next(&mut self, exec: &mut Exec<'_>, on: &JoinOn<'_>) -> Result<bool> {
        if self.in_order.is_none() {
            return self.next_of_jobs(exec, on);
        }
        let slots = self.slots(on);
        match &mut self.in_order {
            Some(rows) => rows.next(exec, &slots),
            None => Ok(false),
        }
    }

    fn next_of_jobs(&mut self, exec: &mut Exec<'_>, on: &JoinOn<'_>) -> Result<bool> {
        loop {
            if let Some(running) = &mut self.running {
                if running.next(exec, on, &self.left_slots)? {
                    return Ok(true);
                }
                self.running = None;
            }
            let Some(job) = self.jobs.pop() else {
                return Ok(false);
            };
            let running = Running::begin(exec, on, job)?;
            if running.is_too_large() {
                let job = running.job;
                drop((running.table, running.left, running.right));
                self.jobs.extend(divide(exec, on, job)?);
            } else {
                self.running = Some(Box::new(running));
            }
        }
    }
}

impl Running {
    fn begin(exec: &mut Exec<'_>, on: &JoinOn<'_>, job: Job) -> Result<Running> {
        let mut running = Running {
            right: job.right.as_ref().map(Part::reader),
            table: JoinTable::new(on.key_form),
            left: job.left.reader(),
            job,
            row: 0,
            number: 0,
            key: Key::default(),
            matches: None,
            matched: Matched::default(),
        };
        running.fill(exec, on)?;
        Ok(running)
    }

    /// Whether the rows can and should be divided: the table has not taken them all.
    fn is_too_large(&self) -> bool {
        !self.is_last() && !self.job.is_one_key && self.job.hashing.level() < LEVELS_MAX
    }

    /// Whether the table has the last of the right rows.
    fn is_last(&self) -> bool {
        let rows = self.job.right.as_ref().map_or(0, Part::entries);
        self.right
            .as_ref()
            .is_none_or(|right| right.position() >= rows)
    }

    /// Takes the next right rows into the table, as many as memory holds.
    fn fill(&mut self, exec: &mut Exec<'_>, on: &JoinOn<'_>) -> Result<()> {
        let account = exec.session.memory.clone();
        self.table = JoinTable::new(on.key_form);
        let Some(right) = &mut self.right else {
            return Ok(());
        };
        let mut asked_at = ASKED_EVERY_BYTES;
        while let Some(entry) = right.next_entry()? {
            exec.check_interrupt()?;
            let saved = self.key.read(on.key_form, entry).ok_or_else(unreadable)?;
            self.table.add_saved(&account, &self.key, saved)?;
            let bytes = self.table.bytes();
            if bytes >= asked_at {
                asked_at = bytes + ASKED_EVERY_BYTES;
                if account.is_to_spill(Buffer::Join, bytes) {
                    break;
                }
            }
        }
        self.table.finish(&account, || exec.check_interrupt())
    }

    fn next(
        &mut self,
        exec: &mut Exec<'_>,
        on: &JoinOn<'_>,
        left_slots: &[SlotId],
    ) -> Result<bool> {
        loop {
            if self.matches.is_none() && !self.next_left(exec, on, left_slots)? {
                if self.is_last() {
                    return Ok(false);
                }
                self.fill(exec, on)?;
                self.left = self.job.left.reader();
                continue;
            }
            if self.next_match(exec, on)? {
                return Ok(true);
            }
        }
    }

    /// Makes the next left row that may still yield something the current one.
    fn next_left(
        &mut self,
        exec: &mut Exec<'_>,
        on: &JoinOn<'_>,
        left_slots: &[SlotId],
    ) -> Result<bool> {
        loop {
            exec.check_interrupt()?;
            let row = self.left.position();
            let Some(entry) = self.left.next_entry()? else {
                return Ok(false);
            };
            let is_matched = self.matched.has(row);
            if is_matched && matches!(on.kind, JoinKind::Semi | JoinKind::Anti) {
                continue;
            }
            let (number, rest) = entry
                .split_first_chunk::<NUMBER_BYTES>()
                .ok_or_else(unreadable)?;
            (self.row, self.number) = (row, u64::from_be_bytes(*number));
            let saved = self.key.read(on.key_form, rest).ok_or_else(unreadable)?;
            let next = match self.job.right {
                Some(_) => self.table.first(&self.key),
                None => None,
            };
            restore(saved, &mut exec.frame, left_slots);
            self.matches = Some(Matches {
                next,
                tried: 0,
                passed: is_matched,
            });
            return Ok(true);
        }
    }

    /// Goes on with the current left row; false when nothing more comes of it.
    fn next_match(&mut self, exec: &mut Exec<'_>, on: &JoinOn<'_>) -> Result<bool> {
        let is_last = self.is_last();
        let Some(matches) = &mut self.matches else {
            return Ok(false);
        };
        while let Some(row) = matches.next {
            matches.next = self.table.after(row);
            matches.tried = matches.tried.wrapping_add(1);
            if matches.tried % ROWS_PER_LOOK == 0 {
                exec.check_interrupt()?;
            }
            self.table.restore(row, exec, on.right_slots);
            if !all_true(on.condition, exec)? {
                continue;
            }
            if !matches.passed && !is_last && on.kind != JoinKind::Inner {
                self.matched.set(exec, self.row, self.job.left.entries())?;
            }
            matches.passed = true;
            match on.kind {
                JoinKind::Inner | JoinKind::Left => return Ok(true),
                JoinKind::Semi | JoinKind::Anti => break,
            }
        }
        let passed = matches.passed;
        self.matches = None;
        Ok(match on.kind {
            JoinKind::Inner => false,
            JoinKind::Semi => passed,
            JoinKind::Anti => !passed && is_last,
            JoinKind::Left if !passed && is_last => {
                for slot in on.right_slots {
                    exec.frame.slots[slot.0 as usize].set_null();
                }
                true
            }
            JoinKind::Left => false,
        })
    }
}

/// Divides a job's rows. If the right ones stay together, dividing is of no use.
fn divide(exec: &mut Exec<'_>, on: &JoinOn<'_>, mut job: Job) -> Result<Vec<Job>> {
    let Some(right) = &job.right else {
        return Ok(vec![job]);
    };
    let (hashing, form) = (job.hashing, on.key_form);
    let rights = divide_part(exec, hashing, form, right, 0)?;
    let all = right.entries();
    if rights.iter().any(|part| part.entries() == all) {
        job.is_one_key = true;
        return Ok(vec![job]);
    }
    let lefts = divide_part(exec, hashing, form, &job.left, NUMBER_BYTES)?;
    let needs_match = matches!(on.kind, JoinKind::Inner | JoinKind::Semi);
    let sides = lefts.into_iter().zip(rights);
    let sides =
        sides.filter(|(left, right)| left.entries() > 0 && !(needs_match && right.entries() == 0));
    let job = |(left, right)| Job {
        hashing: hashing.deeper(),
        left,
        right: Some(right),
        is_one_key: false,
    };
    let mut jobs: Vec<Job> = sides.map(job).collect();
    jobs.reverse();
    Ok(jobs)
}

/// Divides entries by the keys that lie behind their first `before` bytes.
fn divide_part(
    exec: &Exec<'_>,
    hashing: Hashing,
    form: KeyForm,
    part: &Part,
    before: usize,
) -> Result<Vec<Part>> {
    let mut parts = hashing.create(&exec.session.memory)?;
    let mut reader = part.reader();
    let mut key = Key::default();
    while let Some(entry) = reader.next_entry()? {
        exec.check_interrupt()?;
        let rest = entry.get(before..).ok_or_else(unreadable)?;
        key.read(form, rest).ok_or_else(unreadable)?;
        let part = key.part(form, &hashing);
        parts.push(part, |out| out.extend_from_slice(entry))?;
    }
    parts.finish()
}
