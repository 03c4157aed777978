//! Saving what can be read of a damaged store into a new one.
//!
//! ```text
//! tree   list of tables ─► each space's pages ─► rows          damaged pages: the keys between their
//!                                │                             neighbours are lost, nothing else
//!                                └─ below a damaged branch: leaves that nothing leads to (orphans)
//! side   rows that a checkpoint could not put into a damaged space          replace those of the tree
//! log    every whole record behind the tree's position, with what it has    replaces both
//!        spilled
//! ```
//!
//! Nothing is ever written to the damaged folder: its files are opened for reading. Spaces keep
//! their numbers. Everything that was not saved is in the report, by file and position.
//!
//! **Orphans.** The pages below a branch that can't be read are in use as far as redb's allocator
//! knows, nothing leads to them, and they are on no list of pages to be freed. Such a leaf is
//! assigned to the space whose gap has room for all its keys, if there is only one such gap;
//! ambiguous ones are left alone, and counted. Without the allocator's state, or with a gap in the
//! list of tables, none is used: it might be a page that was freed long ago.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::{Bound, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkpoint::side_table_name;
use crate::disk::DiskFile;
use crate::first_start::TREE;
use crate::log::{SalvagedSegment, salvage_log};
use crate::options::{Flush, Options};
use crate::pages::{
    FixedLengths, PageReader, TableEntry, Visit, is_list_of_freed, parse_free_pages,
    parse_page_list, region_of_state,
};
use crate::payload::{Operation, decode};
use crate::spill::{Run, RunPart, RunPlace, Runs, RunsCursor, SpillFile, open_any};
use crate::store::Store;
use crate::tree_file::CheckedFile;
use crate::tree_snapshot::table_name;
use crate::{DamagedPlace, Direction, Error, Lsn, Result, SpaceId, StoreId};

/// A commit into the new store has so many bytes of rows, about.
const BATCH_BYTES: usize = 1 << 20;

/// The report of a salvage.
#[derive(Debug, Default)]
pub struct Salvage {
    /// The spaces that were found, but for dropped ones.
    pub spaces: BTreeMap<SpaceId, SavedSpace>,
    /// What is lost, or may be, beside rows of known spaces: a sentence each.
    pub losses: Vec<String>,
    /// Commits that the log had and the tree lacked.
    pub commits_from_log: u64,
}

impl Salvage {
    /// Whether everything was saved.
    pub fn is_whole(&self) -> bool {
        self.losses.is_empty() && self.spaces.values().all(|space| space.gaps.is_empty())
    }
}

/// What was saved of a space.
#[derive(Debug, Default)]
pub struct SavedSpace {
    /// Rows that were saved.
    pub rows: u64,
    /// Rows that the tree had by its own count, without side tables and log.
    pub rows_in_tree: u64,
    /// Rows saved from below a branch that couldn't be read.
    pub rows_of_orphans: u64,
    /// Where rows could not be read.
    pub gaps: Vec<Gap>,
}

/// Keys whose rows could not be read.
#[derive(Clone, Debug)]
pub struct Gap {
    /// File, position and what is wrong there, in words.
    pub place: String,
    /// Lost are keys greater than this one, up to and with `up_to`; `None`: from the first key on.
    pub above: Option<Vec<u8>>,
    /// The greatest key that may be lost; `None`: to the last key.
    pub up_to: Option<Vec<u8>>,
}

impl Gap {
    fn has(&self, key: &[u8]) -> bool {
        let is_above = self.above.as_deref().is_none_or(|above| key > above);
        is_above && self.up_to.as_deref().is_none_or(|up_to| key <= up_to)
    }
}

/// How far a salvage has come.
#[derive(Clone, Copy, Debug)]
pub struct SalvageProgress {
    /// The space that is being saved.
    pub space: SpaceId,
    /// Spaces that were saved before it.
    pub spaces_done: usize,
    /// Spaces that are to be saved.
    pub spaces: usize,
    /// Rows that were saved so far.
    pub rows: u64,
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// Changes later than the tree: the newest value of each key, or `None` if it was deleted.
type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Saves what can be read of the store in the folder `from` into a new one, opened as `into` says.
/// That folder must be new. Calls `progress` now and then.
///
/// Fails with [`Error::InUse`] if a process has the damaged store open, with [`Error::OlderFormat`]
/// or [`Error::NewerFormat`] if another version has written it, and if there is neither a tree nor
/// a log.
pub fn salvage(
    from: &Path,
    into: &Options,
    mut progress: impl FnMut(SalvageProgress),
) -> Result<Salvage> {
    refuse_folder_in_use(from)?;
    let mut found = Salvage::default();
    let mut source = DamagedStore::open(from, &mut found)?;
    let later = source.read_log(&mut found)?;
    let store = Store::open(into)?;
    store.flush_policy().set(Flush::EachSecond);
    let spaces: BTreeSet<SpaceId> = source
        .spaces()
        .chain(later.changes.keys().copied())
        .collect();
    let orphans = source.orphans(&mut found);
    let mut rows_done = 0;
    for (number, &space) in spaces.iter().enumerate() {
        if later.dropped.contains(&space) {
            continue;
        }
        let mut tell = |rows: u64| {
            progress(SalvageProgress {
                space,
                spaces_done: number,
                spaces: spaces.len(),
                rows: rows_done + rows,
            });
        };
        let changes = later.changes.get(&space);
        let saved = source.save(space, &orphans, changes, &store, &mut tell)?;
        rows_done += saved.rows;
        found.spaces.insert(space, saved);
    }
    save_counters(&store, &source.counters, &later.counters)?;
    store.close()?;
    Ok(found)
}

fn refuse_folder_in_use(folder: &Path) -> Result<()> {
    let Ok(lock) = File::open(folder.join("LOCK")) else {
        return Ok(());
    };
    match lock.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => Err(Error::InUse {
            path: folder.to_path_buf(),
            pid: None,
        }),
        _ => Ok(()),
    }
}

/// Why a record of the log isn't applied.
struct NotApplied {
    what: String,
    /// It names a file that isn't there.
    lacks_file: bool,
}

impl From<Error> for NotApplied {
    fn from(error: Error) -> NotApplied {
        NotApplied {
            what: error.to_string(),
            lacks_file: matches!(&error, Error::Io { source, .. }
                if source.kind() == io::ErrorKind::NotFound),
        }
    }
}

impl From<String> for NotApplied {
    fn from(what: String) -> NotApplied {
        NotApplied {
            what,
            lacks_file: false,
        }
    }
}

/// What the log has beyond the tree.
#[derive(Default)]
struct LogChanges {
    changes: BTreeMap<SpaceId, Changes>,
    dropped: BTreeSet<SpaceId>,
    counters: BTreeMap<SpaceId, u64>,
}

impl LogChanges {
    fn apply(
        &mut self,
        payload: &[u8],
        open_run: impl Fn(u64, RunPlace) -> Result<Run>,
    ) -> Result<(), NotApplied> {
        // The newest comes first.
        let mut runs = Vec::new();
        for operation in decode(payload) {
            if let Operation::Run { file, place, up_to } = operation? {
                let run = Arc::new(open_run(file, place)?);
                runs.push(RunPart { run, up_to });
            }
        }
        self.apply_runs(&Runs::new(runs))?;
        for operation in decode(payload) {
            match operation? {
                Operation::Put { space, key, value } => {
                    let changes = self.changes.entry(space).or_default();
                    changes.insert(key.to_vec(), Some(value.to_vec()));
                }
                Operation::Delete { space, key } => {
                    let changes = self.changes.entry(space).or_default();
                    changes.insert(key.to_vec(), None);
                }
                Operation::Create { space } => {
                    self.changes.entry(space).or_default();
                }
                Operation::Drop { space } => {
                    self.changes.remove(&space);
                    self.dropped.insert(space);
                }
                Operation::Counter { space, value } => {
                    let counter = self.counters.entry(space).or_default();
                    *counter = value.max(*counter);
                }
                Operation::Rows { .. } | Operation::Run { .. } => {}
            }
        }
        Ok(())
    }

    fn apply_runs(&mut self, runs: &Runs) -> Result<()> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        for space in runs.spaces() {
            let changes = self.changes.entry(space).or_default();
            let mut rows = RunsCursor::new(runs, space, all, Direction::Forward)?;
            while let Some((key, value)) = rows.current() {
                changes.insert(key.to_vec(), value.map(<[u8]>::to_vec));
                rows.advance()?;
            }
        }
        Ok(())
    }
}

/// A damaged store.
struct DamagedStore {
    folder: PathBuf,
    /// `None` if there is no file of a tree.
    pages: Option<PageReader>,
    tables: BTreeMap<String, TableEntry>,
    /// Whether the list of tables could be read as a whole.
    has_all_tables: bool,
    counters: BTreeMap<SpaceId, u64>,
    /// The store's identity, if its tree tells.
    id: Option<StoreId>,
    /// The position from which on the log is needed, if the tree tells.
    lsn: Option<Lsn>,
    log: Vec<SalvagedSegment>,
}

impl DamagedStore {
    fn open(folder: &Path, found: &mut Salvage) -> Result<DamagedStore> {
        let log = salvage_log(folder)?;
        let mut source = DamagedStore {
            folder: folder.to_path_buf(),
            pages: None,
            tables: BTreeMap::new(),
            has_all_tables: true,
            counters: BTreeMap::new(),
            id: None,
            lsn: None,
            log,
        };
        source.read_tree(found)?;
        if source.pages.is_none() && source.log.is_empty() {
            return Err(Error::corrupt(
                folder,
                0,
                "there is neither a tree nor a log",
            ));
        }
        Ok(source)
    }

    fn read_tree(&mut self, found: &mut Salvage) -> Result<()> {
        let path = self.folder.join(TREE);
        let file = match File::open(&path) {
            Ok(file) => Arc::new(ReadOnlyFile(file)),
            Err(error) => {
                found.losses.push(format!("{}: {error}", path.display()));
                self.has_all_tables = false;
                return Ok(());
            }
        };
        let id = self.log.iter().find_map(|segment| segment.id);
        let (file, error) = CheckedFile::salvage(file, &path, id);
        if let Some(error) = error.as_ref().filter(|error| error.is_other_format()) {
            return Err(error.clone());
        }
        self.id = error.is_none().then_some(file.id());
        found.losses.extend(error.map(|error| error.to_string()));
        let pages = PageReader::new(Arc::new(file));
        let tables = pages.tables(|damage| {
            let what = "of the tables listed there nothing is saved but what the log has";
            found.losses.push(format!("{damage}; {what}"));
            self.has_all_tables = false;
        });
        self.tables = tables
            .into_iter()
            .map(|table| (table.name.clone(), table))
            .collect();
        let mut damaged = Vec::new();
        each_row(
            &pages,
            self.tables.get("meta"),
            &mut damaged,
            |name, value| {
                if let (b"lsn", Ok(lsn)) = (name, value.try_into()) {
                    self.lsn = Some(Lsn(u64::from_le_bytes(lsn)));
                }
            },
        );
        each_row(
            &pages,
            self.tables.get("counters"),
            &mut damaged,
            |space, value| {
                if let (Ok(space), Ok(value)) = (space.try_into(), value.try_into()) {
                    let space = SpaceId(u32::from_le_bytes(space));
                    self.counters.insert(space, u64::from_le_bytes(value));
                }
            },
        );
        let lost = damaged.into_iter().map(|damage| {
            format!("{damage}; AUTO_INCREMENT values, or from where on the log counts, are lost")
        });
        found.losses.extend(lost);
        self.pages = Some(pages);
        Ok(())
    }

    /// The spaces that the tree has.
    fn spaces(&self) -> impl Iterator<Item = SpaceId> {
        let names = self.tables.keys();
        names.filter_map(|name| name.strip_prefix('s')?.parse().ok().map(SpaceId))
    }

    fn read_log(&mut self, found: &mut Salvage) -> Result<LogChanges> {
        let mut later = LogChanges::default();
        let mut is_covered = false;
        let from = self.lsn.unwrap_or(Lsn(0));
        for segment in std::mem::take(&mut self.log) {
            if let (Some(own), Some(owner)) = (self.id, segment.id)
                && own != owner
            {
                let path = segment.path.display();
                found
                    .losses
                    .push(format!("{path} belongs to the log of another store"));
                continue;
            }
            let Range { start, end } = segment.positions;
            is_covered |= (start..=end).contains(&from);
            let wanted = segment.records.iter().filter(|(lsn, _)| *lsn >= from);
            for (lsn, payload) in wanted {
                let open_run = |file, place| self.open_run(segment.id, file, place);
                match later.apply(payload, open_run) {
                    Ok(()) => found.commits_from_log += 1,
                    Err(NotApplied { what, lacks_file }) => {
                        let mut loss = format!("the log's record at {lsn}: {what}");
                        // Older rows must not replace those of a tree that has newer ones.
                        if lacks_file && self.lsn.is_none() && self.pages.is_some() {
                            later.changes.clear();
                            later.dropped.clear();
                            found.commits_from_log = 0;
                            loss.push_str(
                                "; a checkpoint removes the file when the tree has that commit, and \
                                 all before it, so these are taken from the tree: if somebody else \
                                 has removed it, what they wrote may be lost",
                            );
                        }
                        found.losses.push(loss);
                    }
                }
            }
            let is_wanted = |lost: &&(Lsn, String)| lost.0 >= from;
            let losses = segment.losses.iter().filter(is_wanted);
            found.losses.extend(losses.map(|(_, what)| what.clone()));
        }
        if !is_covered {
            let what = "what was committed since the last checkpoint is lost";
            found
                .losses
                .push(format!("there is no log at position {from}; {what}"));
        }
        Ok(later)
    }

    /// What a commit of the log has spilled.
    fn open_run(&self, id: Option<StoreId>, number: u64, place: RunPlace) -> Result<Run> {
        let opened = open_any(&self.folder, number, |path| File::open(path));
        let (file, path) = opened.map_err(|(error, path)| Error::io("open", &path)(error))?;
        let id = self.id.or(id).unwrap_or(StoreId(0));
        let file = Arc::new(ReadOnlyFile(file));
        let file = SpillFile::committed(None, file, path, number, id, Arc::default());
        Run::open(&Arc::new(file), place)
    }

    /// Copies a space into the new store.
    fn save(
        &self,
        space: SpaceId,
        orphans: &Orphans,
        later: Option<&Changes>,
        store: &Store,
        tell: &mut dyn FnMut(u64),
    ) -> Result<SavedSpace> {
        let mut saved = SavedSpace::default();
        let changes = self.changes_above(space, later, &mut saved);
        let mut writer = Writer::new(store, space);
        if let (Some(pages), Some(table)) = (&self.pages, self.tables.get(&table_name(space))) {
            saved.rows_in_tree = table.rows;
            let mut failure = None;
            pages.walk(table.root, table.lengths, &mut |visit| {
                match visit {
                    Visit::Branch(_) => {}
                    Visit::Leaf(_, leaf) => {
                        let rows = leaf.rows().filter(|(key, _)| !changes.contains_key(*key));
                        failure = writer.write(rows).err();
                        tell(writer.rows);
                    }
                    Visit::Damaged { damage, low, high } => saved.gaps.push(Gap {
                        place: damage.to_string(),
                        above: low.map(<[u8]>::to_vec),
                        up_to: high.map(<[u8]>::to_vec),
                    }),
                }
                failure.is_none()
            });
            if let Some(error) = failure {
                return Err(error);
            }
        }
        if let Some(rows) = orphans.by_space.get(&space) {
            let rows = rows.iter().filter(|(key, _)| !changes.contains_key(*key));
            let before = writer.rows;
            writer.write(rows.map(|(key, value)| (&key[..], &value[..])))?;
            saved.rows_of_orphans = writer.rows - before;
        }
        let put = changes
            .iter()
            .filter_map(|(key, value)| Some((&key[..], value.as_deref()?)));
        writer.write(put)?;
        saved.rows = writer.finish()?;
        Ok(saved)
    }

    /// What replaces rows of the tree: what a checkpoint put into the side table, and what the log
    /// has.
    fn changes_above(
        &self,
        space: SpaceId,
        later: Option<&Changes>,
        saved: &mut SavedSpace,
    ) -> Changes {
        let mut changes = Changes::new();
        if let Some(pages) = &self.pages {
            let mut damaged = Vec::new();
            let kept = self.tables.get(&side_table_name(space));
            each_row(pages, kept, &mut damaged, |key, value| {
                let value = value.split_first().filter(|(is_there, _)| **is_there != 0);
                changes.insert(key.to_vec(), value.map(|(_, value)| value.to_vec()));
            });
            let lost = damaged.into_iter().map(|damage| Gap {
                place: format!("{damage}; changes that were made after other damage are lost"),
                above: None,
                up_to: None,
            });
            saved.gaps.extend(lost);
        }
        let later = later.into_iter().flatten();
        changes.extend(later.map(|(key, value)| (key.clone(), value.clone())));
        changes
    }

    /// Finds leaves that nothing leads to any more.
    fn orphans(&self, found: &mut Salvage) -> Orphans {
        let mut orphans = Orphans::default();
        let Some(pages) = &self.pages else {
            return orphans;
        };
        let mut reachable = ReachablePages::default();
        pages.walk_lists(&mut |visit| reachable.visit(pages, None, visit));
        for table in self.tables.values() {
            let space = table.name.strip_prefix('s').and_then(|n| n.parse().ok());
            let space = space.map(SpaceId);
            pages.walk(table.root, table.lengths, &mut |visit| {
                reachable.visit(pages, space, visit)
            });
        }
        if reachable.gaps.is_empty() {
            return orphans;
        }
        let Some(in_use) = self
            .pages_in_use(pages, &mut reachable)
            .filter(|_| self.has_all_tables)
        else {
            let what = "redb's list of tables or of free pages is damaged, too";
            found.losses.push(format!(
                "below damaged pages nothing was looked for: {what}"
            ));
            return orphans;
        };
        let mut bytes = Vec::new();
        let mut unclear = 0u64;
        for first in in_use {
            if reachable.reached.contains(&first) {
                continue;
            }
            let Some(len) = pages.leaf_at(first, &mut bytes) else {
                continue;
            };
            reachable.reached.extend(first..first + len);
            let Some(leaf) = crate::pages::Leaf::parse(&bytes, FixedLengths::default()) else {
                continue;
            };
            let fits = |gap: &Gap| leaf.rows().all(|(key, _)| gap.has(key));
            let mut owners = reachable.gaps.iter().filter(|(_, gap)| fits(gap));
            match (owners.next(), owners.next()) {
                (Some((Some(space), _)), None) => {
                    let rows = leaf
                        .rows()
                        .map(|(key, value)| (key.to_vec(), value.to_vec()));
                    orphans.by_space.entry(*space).or_default().extend(rows);
                }
                (None, _) => {}
                _ => unclear += leaf.rows().count() as u64,
            }
        }
        if unclear > 0 {
            let what = "might be of several tables, and were left alone";
            found
                .losses
                .push(format!("{unclear} rows below damaged pages {what}"));
        }
        orphans
    }

    /// The pages that are in use for redb's allocator, less those that it is about to free.
    fn pages_in_use(
        &self,
        pages: &PageReader,
        reachable: &mut ReachablePages,
    ) -> Option<BTreeSet<u64>> {
        let mut is_damaged = false;
        let system = pages.system_tables(|_| is_damaged = true);
        let mut free = FreePages::default();
        for table in &system {
            pages.walk(table.root, table.lengths, &mut |visit| {
                is_damaged |= matches!(visit, Visit::Damaged { .. });
                if let Visit::Leaf(_, leaf) = &visit {
                    for (key, value) in leaf.rows() {
                        free.note_row(pages, &table.name, key, value);
                    }
                }
                reachable.visit(pages, None, visit)
            });
        }
        if is_damaged || free.regions == 0 {
            return None;
        }
        let mut in_use: BTreeSet<u64> = (1..pages.len()).collect();
        for page in free.ranges.into_iter().flatten() {
            in_use.remove(&page);
        }
        Some(in_use)
    }
}

/// The pages that redb's own tables say are free, or about to be freed.
#[derive(Default)]
struct FreePages {
    ranges: Vec<Range<u64>>,
    /// How many regions the allocator's state has free pages of.
    regions: u32,
}

impl FreePages {
    /// Notes the free pages in a row of one of redb's own tables.
    fn note_row(&mut self, pages: &PageReader, table: &str, key: &[u8], value: &[u8]) {
        if let Some(region) = region_of_state(table, key) {
            let ranges = parse_free_pages(value).unwrap_or_default();
            self.regions += u32::from(!ranges.is_empty());
            let at = |index| pages.page_of_region(region, index);
            self.ranges
                .extend(ranges.iter().map(|r| at(r.start)..at(r.end)));
        } else if is_list_of_freed(table) {
            for page in parse_page_list(value) {
                let (first, len) = pages.extent(page);
                self.ranges.push(first..first + len);
            }
        }
    }
}

/// Rows of leaves that nothing leads to, by the space that they are assigned to.
#[derive(Default)]
struct Orphans {
    by_space: BTreeMap<SpaceId, Rows>,
}

/// Which pages tables lead to, and which key ranges can't be read.
#[derive(Default)]
struct ReachablePages {
    reached: BTreeSet<u64>,
    gaps: Vec<(Option<SpaceId>, Gap)>,
}

impl ReachablePages {
    fn visit(&mut self, pages: &PageReader, space: Option<SpaceId>, visit: Visit<'_>) -> bool {
        match visit {
            Visit::Branch(page) | Visit::Leaf(page, _) => {
                let (first, len) = pages.extent(page);
                self.reached.extend(first..first + len);
            }
            Visit::Damaged { damage, low, high } => {
                let gap = Gap {
                    place: damage.to_string(),
                    above: low.map(<[u8]>::to_vec),
                    up_to: high.map(<[u8]>::to_vec),
                };
                self.gaps.push((space, gap));
            }
        }
        true
    }
}

fn each_row(
    pages: &PageReader,
    table: Option<&TableEntry>,
    damaged: &mut Vec<DamagedPlace>,
    mut row: impl FnMut(&[u8], &[u8]),
) {
    let Some(table) = table else { return };
    pages.walk(table.root, table.lengths, &mut |visit| {
        match visit {
            Visit::Branch(_) => {}
            Visit::Leaf(_, leaf) => leaf.rows().for_each(|(key, value)| row(key, value)),
            Visit::Damaged { damage, .. } => damaged.push(damage),
        }
        true
    });
}

/// Writes rows into the new store, many in a commit.
struct Writer<'a> {
    store: &'a Store,
    space: SpaceId,
    work: Option<crate::Transaction>,
    bytes: usize,
    rows: u64,
}

impl<'a> Writer<'a> {
    fn new(store: &'a Store, space: SpaceId) -> Writer<'a> {
        let mut work = store.begin();
        work.create_space(space);
        Writer {
            store,
            space,
            work: Some(work),
            bytes: 0,
            rows: 0,
        }
    }

    fn write<'r>(&mut self, rows: impl Iterator<Item = (&'r [u8], &'r [u8])>) -> Result<()> {
        for (key, value) in rows {
            let work = self.work.get_or_insert_with(|| self.store.begin());
            work.insert(self.space, key, value);
            self.rows += 1;
            self.bytes += key.len() + value.len();
            if self.bytes > BATCH_BYTES {
                self.commit()?;
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.bytes = 0;
        match self.work.take() {
            Some(work) => work.commit()?.wait(),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<u64> {
        self.commit()?;
        Ok(self.rows)
    }
}

fn save_counters(
    store: &Store,
    of_tree: &BTreeMap<SpaceId, u64>,
    of_log: &BTreeMap<SpaceId, u64>,
) -> Result<()> {
    let mut work = store.begin();
    for (space, value) in of_tree.iter().chain(of_log) {
        work.set_counter(*space, *value);
    }
    work.commit()?.wait()
}

/// A file that can't be written to.
#[derive(Debug)]
pub(crate) struct ReadOnlyFile(pub File);

impl DiskFile for ReadOnlyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(&self.0, bytes, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}
