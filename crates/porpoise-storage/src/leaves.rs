//! Rows read from the leaves of redb's trees, without redb.
//!
//! A row that no block has is in a leaf of 4 KiB. redb would read it through a cache of pages in
//! which the leaves, each read once and then kept as a block, push out the branches above them; and
//! what it reads on either side to fill a block are more leaves, each a read of the disk. Here
//! branches are kept ([`branch_cache`](crate::branch_cache)), and a caller may have the rows of one leaf: then
//! a row costs one read of 4 KiB. A scan tells the disk which leaves it comes to next: copy-on-write
//! has put them anywhere in the file, so that the system can't guess them.
//!
//! A [`SpaceTree`] is the tree of one commit. The redb transaction that its snapshot holds keeps the
//! pages from being freed, as long as the redb database is the one that uses the file. After that a
//! read fails ([`DatabaseState::check_attached`]), as one of the redb transaction would.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::branch_cache::BranchCache;
use crate::page_checksums::PAGE_BYTES;
use crate::pages::{
    Branch, FixedLengths, Leaf, PageLink, PageReader, PageRef, recycle_page, table_entry,
};
use crate::tree_file::{CheckedFile, DatabaseState};
use crate::{Direction, Error, Result};

/// Leaves that a scan has the disk begin with at a time.
const LEAVES_AHEAD: usize = 32;
/// Leaves that a scan reads at once, where they lie beside each other.
const LEAVES_OF_A_RUN: usize = 16;
/// Leaves that a range has the disk begin with. It may have a limit of rows that it comes to sooner.
const LEAVES_OF_A_RANGE: usize = 8;
/// Of leaves that are about to be read the system is asked whether it has one of so many.
const LEAVES_PER_LOOK: usize = 32;
/// No tree is deeper.
const DEPTH_MAX: usize = 40;

/// A key that a block begins or ends with.
pub(crate) type BoundaryKey = SmallVec<[u8; 24]>;

/// The trees of one commit.
pub(crate) struct LeafReader {
    pages: PageReader,
    database_state: Arc<DatabaseState>,
    branches: Arc<BranchCache>,
}

impl LeafReader {
    /// The trees of the last commit. The caller has begun a redb transaction that reads the same, and
    /// lets none write meanwhile.
    pub fn new(
        file: Arc<CheckedFile>,
        database_state: Arc<DatabaseState>,
        branches: Arc<BranchCache>,
    ) -> LeafReader {
        LeafReader {
            pages: PageReader::new(file),
            database_state,
            branches,
        }
    }

    /// A space's tree, by the name of its table; `None` if there is none.
    pub fn space(self: &Arc<LeafReader>, name: &str) -> Result<Option<SpaceTree>> {
        let tables = SpaceTree {
            reader: Arc::clone(self),
            root: self.pages.root_of_tables(),
            lengths: FixedLengths::default(),
            rows: 0,
            depth: OnceLock::new(),
        };
        let found = tables.get(name.as_bytes(), |entry| table_entry(name.as_bytes(), entry))?;
        let no_entry = || match tables.root {
            Some(root) => Error::from(self.pages.no_page_of_a_table(root.page)),
            None => Error::Closed,
        };
        let Some(found) = found else { return Ok(None) };
        let entry = found.ok_or_else(no_entry)?;
        Ok(Some(SpaceTree {
            reader: Arc::clone(self),
            root: entry.root,
            lengths: entry.lengths,
            rows: entry.rows,
            depth: OnceLock::new(),
        }))
    }

    fn read(&self, link: PageLink) -> Result<Arc<[u8]>> {
        let (first, len) = self.pages.extent(link.page);
        self.read_run(first, len)
    }

    /// Pages of 4 KiB that lie beside each other.
    fn read_run(&self, first: u64, len: u64) -> Result<Arc<[u8]>> {
        self.check_pages_are_kept()?;
        let read = self.pages.read_run(first, len);
        // What another database has written over it meanwhile isn't of this tree, nor is it damage.
        self.check_pages_are_kept()?;
        Ok(read?)
    }

    fn check_pages_are_kept(&self) -> Result<()> {
        let attached = self.database_state.check_attached();
        attached.map_err(redb::StorageError::Io)?;
        match self.database_state.is_closed() {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }
}

/// Leaves that some keys belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeavesOfKeys {
    /// How many of the keys do, of those in succession that were asked for.
    pub keys: usize,
    pub leaves: usize,
    /// The disk reads them.
    pub is_reading: bool,
}

/// A space's tree, as one commit left it.
pub(crate) struct SpaceTree {
    reader: Arc<LeafReader>,
    root: Option<PageLink>,
    lengths: FixedLengths,
    rows: u64,
    /// How many branches are above each leaf, once that is known.
    depth: OnceLock<usize>,
}

impl SpaceTree {
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Calls `read` with the value of a key, if there is one.
    pub fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let Some(place) = self.seek(Some(key))? else {
            return Ok(None);
        };
        let row = place.leaf().row(place.row);
        Ok(row
            .filter(|(found, _)| *found == key)
            .map(|(_, value)| read(value)))
    }

    /// The rows from a key on, in ascending order, below `end`.
    pub fn up<'t>(
        &'t self,
        key: &[u8],
        end: Option<&'t [u8]>,
        reads_ahead: bool,
    ) -> Result<RowsUp<'t>> {
        Ok(RowsUp {
            place: self.seek(Some(key))?,
            end,
            reads_ahead,
            is_scan: false,
        })
    }

    /// As [`up`](Self::up), where all of them are wanted: leaves that lie beside each other are read at
    /// once.
    pub fn scan<'t>(&'t self, key: &[u8], end: Option<&'t [u8]>) -> Result<RowsUp<'t>> {
        let rows = self.up(key, end, false)?;
        Ok(RowsUp {
            is_scan: true,
            ..rows
        })
    }

    /// The rows before a key (`None`: the end of all keys), in descending order, not below `end`.
    pub fn down<'t>(
        &'t self,
        key: Option<&[u8]>,
        end: &'t [u8],
        reads_ahead: bool,
    ) -> Result<RowsDown<'t>> {
        Ok(RowsDown {
            place: self.seek(key)?,
            end,
            reads_ahead,
        })
    }

    /// The leaf that a key belongs to; `None` for an empty tree.
    pub fn leaf_of(&self, key: &[u8]) -> Result<Option<WholeLeaf<'_>>> {
        Ok(self.seek(Some(key))?.map(WholeLeaf))
    }

    /// The leaf that the keys just below a key belong to, or the last leaf.
    pub fn leaf_before(&self, key: Option<&[u8]>) -> Result<Option<WholeLeaf<'_>>> {
        let Some(mut place) = self.seek(key)? else {
            return Ok(None);
        };
        // The key may be the first that can be in its leaf.
        if let Some(key) = key
            && place
                .key_before()
                .is_some_and(|before| &successor(before)[..] == key)
        {
            place.go_to_leaf_before()?;
        }
        Ok(Some(WholeLeaf(place)))
    }

    /// Goes through the leaves from the one that a key belongs to; `None` for an empty tree.
    pub fn spans_from(&self, key: &[u8]) -> Result<Option<LeafSpans>> {
        Ok(self.seek(Some(key))?.map(|place| LeafSpans {
            depth: place.path.len(),
            path: place.path,
        }))
    }

    /// The first key behind the next `count` leaves, or behind fewer where their branch ends; `None`
    /// for the last of all. Has the disk begin with these leaves.
    pub fn end_of_span(&self, spans: &mut LeafSpans, count: usize) -> Result<Option<BoundaryKey>> {
        let lengths = self.lengths;
        let Some((branch, number)) = spans.path.last_mut() else {
            return Ok(None);
        };
        if let Some(branch) = Branch::parse(branch, lengths) {
            let target = (*number + count.max(1) - 1).min(branch.last());
            let leaves = (*number..=target).filter_map(|leaf| branch.child(leaf));
            let pages = &self.reader.pages;
            pages.begin_reading(leaves.map(|link| link.page));
            *number = target;
        }
        let end = last_key_of(&spans.path, lengths).map(successor);
        while let Some((bytes, number)) = spans.path.pop() {
            let branch = Branch::parse(&bytes, lengths);
            let next = branch.filter(|branch| number < branch.last());
            if let Some(child) = next.and_then(|branch| branch.child(number + 1)) {
                spans.path.push((bytes, number + 1));
                self.descend_to(child, |_| 0, &mut spans.path, spans.depth)?;
                break;
            }
        }
        Ok(end)
    }

    /// Finds the leaves that keys belong to, so many at most. The keys ascend. If `begins_reading`, has the disk
    /// begin with the leaves, unless some of them tell that the system has them. `None` for an empty tree.
    pub fn leaves_of<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        leaves_max: usize,
        begins_reading: bool,
    ) -> Result<Option<LeavesOfKeys>> {
        let (Some(root), lengths) = (self.root, self.lengths) else {
            return Ok(None);
        };
        let mut depth = None;
        let mut path = Path::new();
        let mut leaves: Vec<PageRef> = Vec::new();
        let mut count = 0;
        for key in keys {
            let is_in_last = || last_key_of(&path, lengths).is_none_or(|last| key <= last);
            if count == 0 || !is_in_last() {
                if leaves.len() == leaves_max {
                    break;
                }
                match depth {
                    None => {
                        path = self
                            .seek(Some(key))?
                            .map_or(Path::new(), |place| place.path);
                        depth = Some(path.len());
                    }
                    Some(depth) => {
                        path.clear();
                        self.descend_to(root, |branch| branch.find(key), &mut path, depth)?;
                    }
                }
                let leaf = path.last().and_then(|(bytes, number)| {
                    let branch = Branch::parse(bytes, lengths)?;
                    branch.child(*number)
                });
                leaves.extend(leaf.map(|link| link.page));
            }
            count += 1;
        }
        let mut found = LeavesOfKeys {
            keys: count,
            leaves: leaves.len(),
            is_reading: false,
        };
        let pages = &self.reader.pages;
        let mut some = leaves.iter().step_by(LEAVES_PER_LOOK);
        if begins_reading && !some.all(|leaf| pages.is_cached(*leaf)) {
            pages.begin_reading(leaves.into_iter());
            found.is_reading = true;
        }
        Ok(Some(found))
    }

    /// Has the disk begin with the leaves of a range of keys, the first few of one branch from the lowest key on.
    /// Does nothing where that is one leaf.
    pub fn begin_reading_up(&self, low: &[u8], high: &[u8]) -> Result<()> {
        self.begin_reading_range(low, |branch, first| {
            let last = branch.last().min(first + LEAVES_OF_A_RANGE - 1);
            let begins_before = |leaf: &usize| branch.key(leaf - 1).is_some_and(|key| key < high);
            let others = (first + 1..=last).take_while(begins_before);
            first..first + 1 + others.count()
        })
    }

    /// The same from the highest key down.
    pub fn begin_reading_down(&self, high: &[u8], low: &[u8]) -> Result<()> {
        self.begin_reading_range(high, |branch, last| {
            let first = (last + 1).saturating_sub(LEAVES_OF_A_RANGE);
            let ends_behind = |leaf: &usize| branch.key(*leaf).is_some_and(|key| key >= low);
            let others = (first..last).rev().take_while(ends_behind);
            last - others.count()..last + 1
        })
    }

    /// Has the disk begin with some leaves of the branch above a key's leaf, which `choose` is told the number
    /// of, if they are more than one.
    fn begin_reading_range(
        &self,
        key: &[u8],
        choose: impl FnOnce(Branch<'_>, usize) -> Range<usize>,
    ) -> Result<()> {
        let Some(root) = self.root else {
            return Ok(());
        };
        let depth = match self.depth.get() {
            Some(depth) => *depth,
            None => {
                let place = self.seek(Some(key))?;
                let depth = place.map_or(0, |place| place.path.len());
                *self.depth.get_or_init(|| depth)
            }
        };
        let mut path = Path::new();
        self.descend_to(root, |branch| branch.find(key), &mut path, depth)?;
        let above = path.last();
        let above = above.and_then(|(bytes, at)| Some((Branch::parse(bytes, self.lengths)?, *at)));
        if let Some((branch, at)) = above {
            let leaves = choose(branch, at);
            if leaves.len() > 1 {
                let leaves = leaves.filter_map(|leaf| branch.child(leaf));
                let pages = &self.reader.pages;
                pages.begin_reading(leaves.map(|link| link.page));
            }
        }
        Ok(())
    }

    /// Goes down from a page below a path, until the path has so many branches, or to the first page
    /// that is no branch, which it gives with its number.
    fn descend_to(
        &self,
        from: PageLink,
        choose: impl Fn(Branch<'_>) -> usize,
        path: &mut Path,
        depth: usize,
    ) -> Result<Option<(PageRef, Arc<[u8]>)>> {
        let reader = &self.reader;
        let mut link = from;
        while path.len() < depth {
            let kept = reader.branches.get(link);
            let is_kept = kept.is_some();
            let bytes = kept.map_or_else(|| reader.read(link), Ok)?;
            let Some(branch) = Branch::parse(&bytes, self.lengths) else {
                return Ok(Some((link.page, bytes)));
            };
            if !is_kept {
                if !branch.is_sound() {
                    return Err(reader.pages.no_page_of_a_table(link.page).into());
                }
                reader.branches.admit(link, Arc::clone(&bytes));
            }
            let number = choose(branch);
            let child = branch.child(number);
            let child = child.ok_or_else(|| reader.pages.no_page_of_a_table(link.page))?;
            path.push((bytes, number));
            link = child;
        }
        Ok(None)
    }

    /// The place of the first row that is not below a key, in the leaf that the key belongs to: there
    /// may be no such row there. `None` is the end of all keys; gives `None` for an empty tree.
    fn seek(&self, key: Option<&[u8]>) -> Result<Option<Place<'_>>> {
        let Some(root) = self.root else {
            return Ok(None);
        };
        let mut place = Place {
            tree: self,
            path: SmallVec::new(),
            leaf: PageBytes::default(),
            run: None,
            row: 0,
        };
        place.descend(root, |branch| match key {
            Some(key) => branch.find(key),
            None => branch.last(),
        })?;
        place.row = match key {
            Some(key) => place.leaf().lower_bound(key),
            None => place.leaf().len(),
        };
        Ok(Some(place))
    }
}

/// The branches above a leaf, from the root, each with the number of the child.
type Path = SmallVec<[(Arc<[u8]>, usize); 6]>;

/// The key that the keys of the path's leaf are not above, and all others behind it are; `None` for
/// the last leaf.
fn last_key_of(path: &Path, lengths: FixedLengths) -> Option<&[u8]> {
    let above = path.iter().rev();
    above
        .filter_map(|(bytes, number)| Branch::parse(bytes, lengths)?.key(*number))
        .next()
}

/// Where a tree is divided into spans of leaves: their branches are read, the leaves are not.
pub(crate) struct LeafSpans {
    path: Path,
    /// How many branches are above each leaf.
    depth: usize,
}

/// The bytes of a page, among others that were read at once.
#[derive(Default)]
struct PageBytes {
    read: Arc<[u8]>,
    part: Range<usize>,
}

impl From<Arc<[u8]>> for PageBytes {
    fn from(read: Arc<[u8]>) -> PageBytes {
        let part = 0..read.len();
        PageBytes { read, part }
    }
}

impl Drop for PageBytes {
    fn drop(&mut self) {
        recycle_page(std::mem::take(&mut self.read));
    }
}

impl Deref for PageBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.read[self.part.clone()]
    }
}

/// Leaves of one page of 4 KiB each that lie beside each other.
struct LeafRun {
    first: u64,
    pages: Arc<[u8]>,
}

impl LeafRun {
    /// The leaf on a page, if it is among them.
    fn leaf(&self, page: u64) -> Option<PageBytes> {
        let begin = usize::try_from(page.checked_sub(self.first)?).ok()? * PAGE_BYTES;
        let part = begin..begin + PAGE_BYTES;
        (part.end <= self.pages.len()).then(|| PageBytes {
            read: Arc::clone(&self.pages),
            part,
        })
    }
}

/// A place in a tree: before a row of a leaf, or at the leaf's end.
struct Place<'t> {
    tree: &'t SpaceTree,
    path: Path,
    leaf: PageBytes,
    /// Leaves of a scan that were read at once.
    run: Option<LeafRun>,
    row: usize,
}

impl Place<'_> {
    fn leaf(&self) -> Leaf<'_> {
        Leaf::of_sound(&self.leaf, self.tree.lengths)
    }

    /// Goes down to a leaf from a page below the path.
    fn descend(&mut self, from: PageLink, choose: impl Fn(Branch<'_>) -> usize) -> Result<()> {
        let path = &mut self.path;
        if let Some((page, leaf)) = self.tree.descend_to(from, choose, path, DEPTH_MAX)? {
            self.leaf = leaf.into();
            if Leaf::parse(&self.leaf, self.tree.lengths).is_some() {
                return Ok(());
            }
            return Err(self.tree.reader.pages.no_page_of_a_table(page).into());
        }
        Err(self.tree.reader.pages.no_page_of_a_table(from.page).into())
    }

    /// Goes to the beginning of the next leaf, if there is one. A scan up to a key (`None`: to the
    /// end) reads those at once that lie beside each other in the file.
    fn go_to_next_leaf(&mut self, scan: Option<Option<&[u8]>>) -> Result<bool> {
        let lengths = self.tree.lengths;
        if let Some(end) = scan
            && self.go_to_neighbour(end)
        {
            return Ok(true);
        }
        while let Some((bytes, number)) = self.path.pop() {
            let branch = Branch::parse(&bytes, lengths);
            let next = branch.filter(|branch| number < branch.last());
            if let Some(child) = next.and_then(|branch| branch.child(number + 1)) {
                self.path.push((bytes, number + 1));
                self.descend(child, |_| 0)?;
                self.row = 0;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the next leaf, if it has the same branch and lies beside others that the scan comes
    /// to; otherwise, and where one of them can't be read, nothing has happened.
    fn go_to_neighbour(&mut self, end: Option<&[u8]>) -> bool {
        let SpaceTree {
            reader, lengths, ..
        } = self.tree;
        let Some((bytes, number)) = self.path.last_mut() else {
            return false;
        };
        let next = *number + 1;
        let branch = Branch::parse(bytes, *lengths).filter(|branch| next <= branch.last());
        let page_of = |leaf| {
            let (first, len) = reader.pages.extent(branch?.child(leaf)?.page);
            (len == 1).then_some(first)
        };
        let Some(first) = page_of(next) else {
            return false;
        };
        let leaf = self.run.as_ref().and_then(|run| run.leaf(first));
        let leaf = leaf.or_else(|| {
            let is_wanted = |leaf: usize| {
                let before = branch.and_then(|branch| branch.key(leaf - 1));
                end.is_none_or(|end| before.is_some_and(|before| before < end))
            };
            let others = (next + 1..next + LEAVES_OF_A_RUN).zip(first + 1..);
            let others =
                others.take_while(|(leaf, page)| page_of(*leaf) == Some(*page) && is_wanted(*leaf));
            let count = 1 + others.count() as u64;
            if count == 1 {
                return None;
            }
            let pages = reader.read_run(first, count).ok()?;
            self.run = Some(LeafRun { first, pages });
            self.run.as_ref()?.leaf(first)
        });
        let Some(leaf) = leaf.filter(|leaf| Leaf::parse(leaf, *lengths).is_some()) else {
            return false;
        };
        *number = next;
        (self.leaf, self.row) = (leaf, 0);
        true
    }

    /// Goes to the end of the leaf before, if there is one.
    fn go_to_leaf_before(&mut self) -> Result<bool> {
        let lengths = self.tree.lengths;
        while let Some((bytes, number)) = self.path.pop() {
            let before = number.checked_sub(1);
            let child = before
                .and_then(|before| Branch::parse(&bytes, lengths)?.child(before))
                .zip(before);
            if let Some((child, before)) = child {
                self.path.push((bytes, before));
                self.descend(child, |branch| branch.last())?;
                self.row = self.leaf().len();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// For a scan that has come to a leaf: has the disk begin with those that it comes to next, some
    /// at a time. Leaves of another branch aren't among them.
    fn read_ahead(&self, direction: Direction) {
        let Some((bytes, number)) = self.path.last() else {
            return;
        };
        let Some(branch) = Branch::parse(bytes, self.tree.lengths) else {
            return;
        };
        let last = branch.last();
        let passed = match direction {
            Direction::Forward => *number,
            Direction::Backward => last - number.min(&last),
        };
        if !passed.is_multiple_of(LEAVES_AHEAD) {
            return;
        }
        let from = match passed {
            0 => 1,
            _ => passed + LEAVES_AHEAD,
        };
        let leaves = (from..passed + 2 * LEAVES_AHEAD).take_while(|leaf| *leaf <= last);
        let leaves = leaves.filter_map(|leaf| {
            branch.child(match direction {
                Direction::Forward => leaf,
                Direction::Backward => last - leaf,
            })
        });
        let pages = &self.tree.reader.pages;
        pages.begin_reading(leaves.map(|link| link.page));
    }

    /// The key that the leaf's keys are not above, and all others behind it are; `None` for the last
    /// leaf.
    fn last_key(&self) -> Option<&[u8]> {
        last_key_of(&self.path, self.tree.lengths)
    }

    /// The key that the leaf's keys are above, and all others before it are not; `None` for the first
    /// leaf.
    fn key_before(&self) -> Option<&[u8]> {
        let above = self.path.iter().rev();
        above
            .filter_map(|(bytes, number)| {
                Branch::parse(bytes, self.tree.lengths)?.key(number.checked_sub(1)?)
            })
            .next()
    }
}

/// The lowest key above a key.
fn successor(key: &[u8]) -> BoundaryKey {
    let mut next = BoundaryKey::from_slice(key);
    next.push(0);
    next
}

/// A leaf with the interval of keys that belong to it.
pub(crate) struct WholeLeaf<'t>(Place<'t>);

impl WholeLeaf<'_> {
    pub fn rows(&self) -> Leaf<'_> {
        self.0.leaf()
    }

    /// For a scan: has the disk begin with the leaves that it comes to next.
    pub fn read_ahead(&self, direction: Direction) {
        self.0.read_ahead(direction);
    }

    /// The lowest key that belongs to it.
    pub fn low(&self) -> BoundaryKey {
        self.0.key_before().map(successor).unwrap_or_default()
    }

    /// The first key behind it; `None` for the last leaf.
    pub fn high(&self) -> Option<BoundaryKey> {
        self.0.last_key().map(successor)
    }
}

/// Rows in ascending order.
pub(crate) struct RowsUp<'t> {
    /// `None` in an empty tree.
    place: Option<Place<'t>>,
    end: Option<&'t [u8]>,
    reads_ahead: bool,
    /// Whether leaves may be read at once.
    is_scan: bool,
}

impl RowsUp<'_> {
    /// The next row, key and value.
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(place) = &mut self.place else {
            return Ok(None);
        };
        while place.row == place.leaf().len() {
            let behind = place.last_key();
            let is_end = behind.is_none_or(|last| self.end.is_some_and(|end| last >= end));
            let scan = self.is_scan.then_some(self.end);
            if is_end || !place.go_to_next_leaf(scan)? {
                return Ok(None);
            }
            if self.reads_ahead {
                place.read_ahead(Direction::Forward);
            }
        }
        place.row += 1;
        let row = place.leaf().row(place.row - 1);
        Ok(row.filter(|(key, _)| self.end.is_none_or(|end| *key < end)))
    }
}

/// Rows in descending order.
pub(crate) struct RowsDown<'t> {
    /// `None` in an empty tree.
    place: Option<Place<'t>>,
    end: &'t [u8],
    reads_ahead: bool,
}

impl RowsDown<'_> {
    /// The next row, key and value.
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(place) = &mut self.place else {
            return Ok(None);
        };
        while place.row == 0 {
            let is_end = place.key_before().is_none_or(|before| before < self.end);
            if is_end || !place.go_to_leaf_before()? {
                return Ok(None);
            }
            if self.reads_ahead {
                place.read_ahead(Direction::Backward);
            }
        }
        place.row -= 1;
        let row = place.leaf().row(place.row);
        Ok(row.filter(|(key, _)| *key >= self.end))
    }
}
