//! Writes of a transaction that memory shall not hold: sorted runs in a file.
//!
//! A transaction whose writes are a memtable of their own ([`crate::overlay`]) writes that to a file
//! once it takes as much memory as it may, alone or among all transactions, and begins an empty one. All of its runs lie in one file,
//! one behind the other:
//!
//! ```text
//! spill-0000000000000007     │ block │ block │ … │ index │ block │ … │ index │ …
//!                            └────── run 1 ──────────────┴──── run 2 ────────┘
//!
//! reads of the transaction    its memtable, then run n … run 2, run 1, then what is committed
//! ```
//!
//! A run has the memtable's keys in order, of each its versions, told apart by the order of the
//! transaction's writes. So going back to a savepoint is a number for each run, up to which its
//! versions count ([`Runs::up_to`]), and nothing has to be written. While nobody could go back to a
//! moment within a run, it has only the newest version of each key. The index of a run, which stays
//! in memory, has the first key of each block; the first runs have a Bloom filter, too, as long as
//! those take little beside a memtable.
//!
//! **COMMIT** writes what is still in memory as the last run, syncs the file and its name, and then
//! logs a record that names the runs. The log has the writes no second time, and nothing of them
//! before: whatever stops the machine, either the record is in the log, and the runs are on the disk,
//! or the runs belong to nobody. The runs become the content of a memtable between those before and
//! after the commit ([`Memtable`](crate::memtable::Memtable)), and all that read memtables read them,
//! too. A checkpoint writes them into the tree, a slice at a time, and those who read go on under them with the
//! tree of the last slice. The file is removed when nobody
//! reads it any more.
//!
//! A start finds the runs by the log's records, and removes all files that none of them names.
//!
//! **PREPARE** ([`crate::prepared`]) writes and syncs the same, and the record of what is prepared names
//! the runs. It is a row of a space, which a start doesn't know: so files of transactions that are to be
//! prepared have names of their own, `prepared-…`, and are removed when somebody has asked for what is
//! prepared, and nothing of that names them.
//!
//! ```text
//! block   entries, then the checksum
//! entry   length of the key · key · order of the write · rows it added (zigzag) · 0 for a deletion,
//!         or the length of the value plus 1 · value
//! index   number of spaces, and for each: number · keys · bytes · rows added (zigzag) · last key ·
//!         number of blocks, and for each: position · length · first key; then the checksum
//! ```
//!
//! Numbers are LEB128, keys have their length before them, checksums are XXH3 of 8 bytes, seeded with
//! the store's identity, the file's number and the position. A key's versions lie in one block.

mod cursor;
mod file;
mod groups;
mod run;

use std::sync::Arc;

use crate::{Result, SpaceId};

pub(crate) use cursor::RunsCursor;
pub(crate) use file::{
    FileKind, SpillFile, next_number, open_any, remove_all_but, remove_unclaimed,
};
use groups::RunGroups;
pub(crate) use run::{Run, RunPlace, RunValue, RunWriter, filter_bytes};

/// Runs of one transaction, and how far each counts.
#[derive(Clone)]
pub(crate) struct Runs {
    /// The newest first.
    parts: Vec<RunPart>,
    groups: Arc<RunGroups>,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs::new(Vec::new())
    }
}

/// A run, of which only versions up to an order of writing count.
#[derive(Clone)]
pub(crate) struct RunPart {
    pub run: Arc<Run>,
    pub up_to: u64,
}

impl Runs {
    /// Some runs, the newest first.
    pub fn new(parts: Vec<RunPart>) -> Runs {
        let groups = Arc::new(RunGroups::of(parts.iter().map(|part| part.run.ranges())));
        Runs { parts, groups }
    }

    /// The newest first.
    pub fn parts(&self) -> &[RunPart] {
        &self.parts
    }

    /// Those that a record names, each with its file's number and the order up to which it counts; the
    /// newest first.
    pub fn open(
        places: &[(u64, RunPlace, u64)],
        mut open_file: impl FnMut(u64) -> Result<Arc<SpillFile>>,
    ) -> Result<Runs> {
        let mut parts = Vec::with_capacity(places.len());
        let mut last: Option<Arc<SpillFile>> = None;
        for &(number, place, up_to) in places {
            let file = match last.take().filter(|file| file.number == number) {
                Some(file) => file,
                None => open_file(number)?,
            };
            let run = Arc::new(Run::open(&file, place)?);
            last = Some(file);
            parts.push(RunPart { run, up_to });
        }
        Ok(Runs::new(parts))
    }

    /// What they have of a key: a value, a deletion (`None`), or nothing.
    pub fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<Option<RunValue>>> {
        for part in self.groups.that_may_have(space, key) {
            let part = &self.parts[part];
            if let Some(found) = part.run.get(space, key, part.up_to)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Whether there is anything of a space.
    pub fn has(&self, space: SpaceId) -> bool {
        self.parts.iter().any(|part| part.run.has(space))
    }

    /// The spaces that there is anything of, in order.
    pub fn spaces(&self) -> Vec<SpaceId> {
        let spaces = self.parts.iter().flat_map(|part| part.run.space_numbers());
        let mut spaces: Vec<SpaceId> = spaces.collect();
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }

    /// How many keys a space has, those in several runs counted as often; of all spaces if none is
    /// given.
    pub fn entries(&self, space: Option<SpaceId>) -> u64 {
        let entries = self.parts.iter().map(|part| part.run.entries(space));
        entries.sum()
    }

    /// How many bytes of keys and values there are.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.run.bytes()).sum()
    }

    /// Reads all that there is of some spaces. Fails where it isn't what was written, or can't be read.
    /// What was found to be whole isn't read a second time. Ends with the error of `check_goes_on`, which
    /// is called before each block.
    pub fn verify(&self, spaces: &[SpaceId], check_goes_on: impl Fn() -> Result<()>) -> Result<()> {
        let Some(file) = self.file().filter(|file| !file.is_verified()) else {
            return Ok(());
        };
        for part in &self.parts {
            part.run.verify(spaces, &check_goes_on)?;
        }
        file.set_verified(true);
        Ok(())
    }

    /// A part could not be read although [`verify`](Runs::verify) could.
    pub fn forget_verification(&self) {
        for part in &self.parts {
            part.run.file.set_verified(false);
        }
    }

    /// The file that they are in.
    pub fn file(&self) -> Option<Arc<SpillFile>> {
        Some(Arc::clone(&self.parts.first()?.run.file))
    }

    /// Has their file be removed when nobody reads it any more: no record of the log names it that
    /// could be read again.
    pub fn forget_file(&self) {
        for part in &self.parts {
            part.run.file.forget();
        }
    }

    /// How much memory their filters take.
    pub fn filter_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.run.filter_bytes()).sum()
    }

    /// How much memory their indexes and filters take.
    pub fn index_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.run.index_bytes()).sum()
    }
}
