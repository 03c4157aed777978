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

use std::sync::Arc;

use smallvec::SmallVec;

use crate::branch_cache::BranchCache;
use crate::pages::{Branch, FixedLengths, Leaf, PageLink, PageReader, table_entry};
use crate::tree_file::{CheckedFile, DatabaseState};
use crate::{Direction, Error, Result};

/// Leaves that a scan has the disk begin with at a time.
const LEAVES_AHEAD: usize = 32;
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
        }))
    }

    fn read(&self, link: PageLink) -> Result<Arc<[u8]>> {
        self.check_pages_are_kept()?;
        let read = self.pages.read(link.page);
        // What another database has written over it meanwhile isn't of this tree, nor is it damage.
        self.check_pages_are_kept()?;
        Ok(read?.into())
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

/// A space's tree, as one commit left it.
pub(crate) struct SpaceTree {
    reader: Arc<LeafReader>,
    root: Option<PageLink>,
    lengths: FixedLengths,
    rows: u64,
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

    /// The place of the first row that is not below a key, in the leaf that the key belongs to: there
    /// may be no such row there. `None` is the end of all keys; gives `None` for an empty tree.
    fn seek(&self, key: Option<&[u8]>) -> Result<Option<Place<'_>>> {
        let Some(root) = self.root else {
            return Ok(None);
        };
        let mut place = Place {
            tree: self,
            path: SmallVec::new(),
            leaf: Arc::default(),
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

/// A place in a tree: before a row of a leaf, or at the leaf's end.
struct Place<'t> {
    tree: &'t SpaceTree,
    /// The branches above the leaf, from the root, each with the number of the child.
    path: SmallVec<[(Arc<[u8]>, usize); 6]>,
    leaf: Arc<[u8]>,
    row: usize,
}

impl Place<'_> {
    fn leaf(&self) -> Leaf<'_> {
        Leaf::of_sound(&self.leaf, self.tree.lengths)
    }

    /// Goes down to a leaf from a page below the path.
    fn descend(&mut self, from: PageLink, choose: impl Fn(Branch<'_>) -> usize) -> Result<()> {
        let (reader, lengths) = (&self.tree.reader, self.tree.lengths);
        let mut link = from;
        loop {
            let kept = reader.branches.get(link);
            let is_kept = kept.is_some();
            let bytes = kept.map_or_else(|| reader.read(link), Ok)?;
            let Some(branch) = Branch::parse(&bytes, lengths) else {
                self.leaf = bytes;
                let is_leaf = Leaf::parse(&self.leaf, lengths).is_some();
                return match is_leaf {
                    true => Ok(()),
                    false => Err(reader.pages.no_page_of_a_table(link.page).into()),
                };
            };
            if !is_kept {
                if !branch.is_sound() {
                    return Err(reader.pages.no_page_of_a_table(link.page).into());
                }
                reader.branches.admit(link, Arc::clone(&bytes));
            }
            let number = choose(branch);
            let child = branch.child(number).filter(|_| self.path.len() < DEPTH_MAX);
            let child = child.ok_or_else(|| reader.pages.no_page_of_a_table(link.page))?;
            self.path.push((bytes, number));
            link = child;
        }
    }

    /// Goes to the beginning of the next leaf, if there is one.
    fn go_to_next_leaf(&mut self) -> Result<bool> {
        let lengths = self.tree.lengths;
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
        let above = self.path.iter().rev();
        above
            .filter_map(|(bytes, number)| Branch::parse(bytes, self.tree.lengths)?.key(*number))
            .next()
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
            if is_end || !place.go_to_next_leaf()? {
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
