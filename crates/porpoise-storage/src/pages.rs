//! redb's pages, read without redb: directly from disk, and beyond what is damaged.
//!
//! `CHECK TABLE` reads every page of a table as it lies on disk, `recover` goes on where redb would
//! fail, and blocks are made of [`leaves`](crate::leaves). All of them only read. The format is redb's, version 3 (its `docs/design.md`):
//!
//! ```text
//! header   9  u8  bit 0: which commit slot is the last one
//!         16  u32 pages of a region's header   20  u32 pages of a region's data
//!         64  commit slot, 192 the other one: u8 × 2 at 1: there is a root of tables, of system
//!             tables; at 8 and 40 these roots: u64 page, 16 bytes checksum, u64 length
//!
//! page     0  u8 kind: 1 leaf, 2 branch        2  u16 count
//! leaf     4  u32 × count ends of keys, u32 × count ends of values, keys, values
//! branch   8  16 bytes × (count + 1) checksums, u64 × (count + 1) pages, u32 × count ends of keys,
//!             keys
//! ```
//!
//! Ends count from the page's beginning, and are left out where all keys, or values, have one
//! length. A page's number has its index in bits 0..20, its region in 20..40, and in 59..64 its
//! order: it is 2^order pages of 4 KiB long.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use twox_hash::XxHash3_128;

use crate::DamagedPlace;
use crate::little_endian::{u16_at, u32_at, u64_at, u128_at};
use crate::page_checksums::PAGE_BYTES;
use crate::tree_file::CheckedFile;

const LEAF: u8 = 1;
const BRANCH: u8 = 2;
/// No tree is deeper.
const DEPTH_MAX: u32 = 40;
const ORDER_MAX: u32 = 20;

thread_local! {
    /// A page's bytes that nobody needs any more, for the next page that this thread reads.
    static SPARE_PAGE: Cell<Option<Arc<[u8]>>> = const { Cell::new(None) };
}

/// Keeps the bytes of a page that was read, if nobody else has them, for the next one.
pub(crate) fn recycle_page(mut bytes: Arc<[u8]>) {
    if bytes.len() == PAGE_BYTES && Arc::get_mut(&mut bytes).is_some() {
        // A thread that ends needs none.
        let _ = SPARE_PAGE.try_with(|spare| spare.set(Some(bytes)));
    }
}

/// The first of so many ascending keys that is not below `key`.
fn first_not_below<'a>(key: &[u8], count: usize, at: impl Fn(usize) -> Option<&'a [u8]>) -> usize {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = (from + to) / 2;
        match at(middle).is_some_and(|found| found < key) {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    from
}

/// A page's number, as redb writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PageRef(pub u64);

impl PageRef {
    fn order(self) -> u32 {
        (self.0 >> 59) as u32
    }

    fn region(self) -> u64 {
        self.0 >> 20 & 0xF_FFFF
    }

    fn index(self) -> u64 {
        self.0 & (0xF_FFFF >> self.order())
    }
}

/// A page, with the checksum of it that the page above has. One that was read under this checksum
/// before is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLink {
    pub page: PageRef,
    pub checksum: u128,
}

impl PageLink {
    /// From the bytes of a root: the page, then its checksum.
    fn of_root(bytes: &[u8], at: usize) -> Option<PageLink> {
        Some(PageLink {
            page: PageRef(u64_at(bytes, at)?),
            checksum: u128_at(bytes, at + 8)?,
        })
    }
}

/// A table's root and size, from the list of tables.
#[derive(Clone, Debug)]
pub(crate) struct TableEntry {
    pub name: String,
    pub root: Option<PageLink>,
    pub rows: u64,
    pub lengths: FixedLengths,
}

/// The lengths of keys and values, where all have one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FixedLengths {
    pub key: Option<usize>,
    pub value: Option<usize>,
}

/// What a walk meets.
pub(crate) enum Visit<'a> {
    Branch(PageRef),
    Leaf(PageRef, Leaf<'a>),
    /// A page that can't be read, and with it all keys above the first bound and up to the second.
    Damaged {
        damage: DamagedPlace,
        low: Option<&'a [u8]>,
        high: Option<&'a [u8]>,
    },
}

/// The rows of a page.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'a> {
    bytes: &'a [u8],
    count: usize,
    lengths: FixedLengths,
}

impl<'a> Leaf<'a> {
    /// A page's rows; `None` unless all of the page is a valid leaf.
    pub fn parse(bytes: &'a [u8], lengths: FixedLengths) -> Option<Leaf<'a>> {
        let count = usize::from(u16_at(bytes, 2)?);
        let leaf = Leaf {
            bytes,
            count,
            lengths,
        };
        let is_sound = bytes.first() == Some(&LEAF) && count > 0 && leaf.has_all_rows();
        is_sound.then_some(leaf)
    }

    fn has_all_rows(self) -> bool {
        let mut before = self.keys_at();
        let mut is_next =
            |end: Option<usize>| end.is_some_and(|end| std::mem::replace(&mut before, end) <= end);
        let are_ascending = (0..self.count).all(|row| is_next(self.key_end(row)))
            && (0..self.count).all(|row| is_next(self.value_end(row)));
        are_ascending && before <= self.bytes.len()
    }

    /// A page's rows, where [`parse`](Leaf::parse) has found that it is a valid leaf.
    pub fn of_sound(bytes: &'a [u8], lengths: FixedLengths) -> Leaf<'a> {
        Leaf {
            bytes,
            count: usize::from(u16_at(bytes, 2).unwrap_or_default()),
            lengths,
        }
    }

    /// How many bytes the page has.
    pub fn bytes(self) -> usize {
        self.bytes.len()
    }

    /// How many rows.
    pub fn len(self) -> usize {
        self.count
    }

    pub fn row(self, row: usize) -> Option<(&'a [u8], &'a [u8])> {
        Some((self.key(row)?, self.value(row)?))
    }

    pub fn rows(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.rows_in(0..self.count)
    }

    /// Some of the rows.
    pub fn rows_in(self, rows: Range<usize>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut begins = self.key_begin(rows.start).zip(self.value_begin(rows.start));
        rows.map_while(move |row| {
            let (key, value) = begins?;
            let (key_end, value_end) = (self.key_end(row)?, self.value_end(row)?);
            begins = Some((key_end, value_end));
            Some((
                self.bytes.get(key..key_end)?,
                self.bytes.get(value..value_end)?,
            ))
        })
    }

    /// The first row whose key is not below `key`.
    pub fn lower_bound(self, key: &[u8]) -> usize {
        first_not_below(key, self.count, |number| self.key(number))
    }

    fn keys_at(self) -> usize {
        let ends =
            usize::from(self.lengths.key.is_none()) + usize::from(self.lengths.value.is_none());
        4 + 4 * self.count * ends
    }

    fn key_end(self, row: usize) -> Option<usize> {
        if row >= self.count {
            return None;
        }
        match self.lengths.key {
            Some(len) => Some(self.keys_at() + len * (row + 1)),
            None => u32_at(self.bytes, 4 + 4 * row).map(|end| end as usize),
        }
    }

    fn key_begin(self, row: usize) -> Option<usize> {
        match row.checked_sub(1) {
            None => Some(self.keys_at()),
            Some(before) => self.key_end(before),
        }
    }

    fn key(self, row: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.key_begin(row)?..self.key_end(row)?)
    }

    fn value_end(self, row: usize) -> Option<usize> {
        if row >= self.count {
            return None;
        }
        match self.lengths.value {
            Some(len) => Some(self.key_end(self.count - 1)? + len * (row + 1)),
            None => {
                let ends = 4 + 4 * self.count * usize::from(self.lengths.key.is_none());
                u32_at(self.bytes, ends + 4 * row).map(|end| end as usize)
            }
        }
    }

    fn value_begin(self, row: usize) -> Option<usize> {
        match row.checked_sub(1) {
            None => self.key_end(self.count.checked_sub(1)?),
            Some(before) => self.value_end(before),
        }
    }

    fn value(self, row: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.value_begin(row)?..self.value_end(row)?)
    }
}

/// A page of children, with the keys between them.
#[derive(Clone, Copy)]
pub(crate) struct Branch<'a> {
    bytes: &'a [u8],
    /// How many keys: one less than children.
    keys: usize,
    lengths: FixedLengths,
}

impl<'a> Branch<'a> {
    /// `None` unless the page says that it is a branch.
    pub fn parse(bytes: &'a [u8], lengths: FixedLengths) -> Option<Branch<'a>> {
        let keys = usize::from(u16_at(bytes, 2)?);
        let is_branch = bytes.first() == Some(&BRANCH) && keys > 0;
        is_branch.then_some(Branch {
            bytes,
            keys,
            lengths,
        })
    }

    /// Whether all children and keys are there, the keys in ascending order.
    pub fn is_sound(self) -> bool {
        let mut before = None;
        let are_ascending = (0..self.keys).all(|number| {
            let key = self.key(number);
            let ascends = key.is_some() && before.is_none_or(|before| before < key);
            before = Some(key);
            ascends
        });
        are_ascending && self.child(self.keys).is_some()
    }

    /// The last child's number.
    pub fn last(self) -> usize {
        self.keys
    }

    pub fn child(self, number: usize) -> Option<PageLink> {
        let pages_at = 8 + 16 * (self.keys + 1);
        Some(PageLink {
            page: PageRef(u64_at(self.bytes, pages_at + 8 * number)?),
            checksum: u128_at(self.bytes, 8 + 16 * number)?,
        })
    }

    /// The key that a child's keys are not above, and the next child's are. The last child has none.
    pub fn key(self, child: usize) -> Option<&'a [u8]> {
        let begin = match child.checked_sub(1) {
            None => self.keys_at(),
            Some(before) => self.key_end(before)?,
        };
        self.bytes.get(begin..self.key_end(child)?)
    }

    /// The child that has the key, if any has.
    pub fn find(self, key: &[u8]) -> usize {
        first_not_below(key, self.keys, |number| self.key(number))
    }

    fn ends_at(self) -> usize {
        8 + 24 * (self.keys + 1)
    }

    fn keys_at(self) -> usize {
        self.ends_at() + 4 * self.keys * usize::from(self.lengths.key.is_none())
    }

    fn key_end(self, key: usize) -> Option<usize> {
        if key >= self.keys {
            return None;
        }
        match self.lengths.key {
            Some(len) => Some(self.keys_at() + len * (key + 1)),
            None => u32_at(self.bytes, self.ends_at() + 4 * key).map(|end| end as usize),
        }
    }

    /// The children, each with the key that its keys are not above; the last has none. `None` unless
    /// all of them are there.
    fn children(self) -> Option<Vec<(PageRef, Option<&'a [u8]>)>> {
        (0..=self.keys)
            .map(|child| {
                let key = self.key(child);
                let is_whole = key.is_some() || child == self.keys;
                Some((self.child(child).filter(|_| is_whole)?.page, key))
            })
            .collect()
    }
}

/// The tree as its last commit left it.
pub(crate) struct PageReader {
    file: Arc<CheckedFile>,
    region_header_bytes: u64,
    region_bytes: u64,
    tables: Option<PageLink>,
    system_tables: Option<PageLink>,
}

impl PageReader {
    /// The tree that the header describes which was written last.
    pub fn new(file: Arc<CheckedFile>) -> PageReader {
        let header = file.redb_header();
        let page = PAGE_BYTES as u64;
        let number = |at| u64::from(u32_at(&header, at).unwrap_or_default());
        let slot = last_slot(&header);
        let root = |exists: usize, at: usize| {
            let is_there = header[slot + exists] != 0;
            PageLink::of_root(&header, slot + at).filter(|_| is_there)
        };
        PageReader {
            region_header_bytes: number(16) * page,
            region_bytes: (number(16) + number(20)) * page,
            tables: root(1, 8),
            system_tables: root(2, 40),
            file,
        }
    }

    /// Where a page begins among redb's pages of 4 KiB, and how many of these it has.
    pub fn extent(&self, page: PageRef) -> (u64, u64) {
        let len = 1 << page.order().min(ORDER_MAX);
        let page_bytes = PAGE_BYTES as u64;
        let before = page_bytes + page.region() * self.region_bytes + self.region_header_bytes;
        (before / page_bytes + page.index() * len, len)
    }

    /// Reads the leaf that begins at a page, of any order that fits; its length in pages. For pages
    /// that no branch may lead to.
    pub fn leaf_at(&self, first: u64, read: &mut Vec<u8>) -> Option<u64> {
        let in_region = (first * PAGE_BYTES as u64)
            .checked_sub(PAGE_BYTES as u64 + self.region_header_bytes)?
            .checked_rem(self.region_bytes)?
            / PAGE_BYTES as u64;
        for order in 0..=ORDER_MAX {
            let len = 1 << order;
            if !in_region.is_multiple_of(len) || first + len > self.file.pages() {
                return None;
            }
            read.resize(len as usize * PAGE_BYTES, 0);
            self.file.read_pages(first, read).ok()?;
            if read.first() != Some(&LEAF) {
                return None;
            }
            if Leaf::parse(read, FixedLengths::default()).is_some() {
                return Some(len);
            }
        }
        None
    }

    /// The number of 4 KiB pages that redb may have.
    pub fn len(&self) -> u64 {
        self.file.pages()
    }

    /// Where a region's page lies, among redb's pages of 4 KiB.
    pub fn page_of_region(&self, region: u64, index: u64) -> u64 {
        let page = PAGE_BYTES as u64;
        (page + region * self.region_bytes + self.region_header_bytes) / page + index
    }

    /// The root of the list of tables.
    pub fn root_of_tables(&self) -> Option<PageLink> {
        self.tables
    }

    /// What to report of a page that isn't of the kind that it should be.
    pub fn no_page_of_a_table(&self, page: PageRef) -> DamagedPlace {
        let (first, _) = self.extent(page);
        self.file.damage(first, "it is no page of a table")
    }

    /// A page's bytes, verified.
    pub fn read(&self, page: PageRef) -> Result<Arc<[u8]>, DamagedPlace> {
        let (first, len) = self.extent(page);
        self.read_run(first, len)
    }

    /// The bytes of so many pages of 4 KiB that lie beside each other, verified.
    pub fn read_run(&self, first: u64, len: u64) -> Result<Arc<[u8]>, DamagedPlace> {
        if first + len > self.file.pages() {
            return Err(self
                .file
                .damage(first, "it lies behind the end of the file"));
        }
        let len = len as usize * PAGE_BYTES;
        let spare = (len == PAGE_BYTES).then(|| SPARE_PAGE.take()).flatten();
        let mut bytes = spare.unwrap_or_else(|| std::iter::repeat_n(0, len).collect());
        self.file.read_pages(first, Arc::make_mut(&mut bytes))?;
        Ok(bytes)
    }

    /// Whether the system has a page in memory. So it is said, too, where it doesn't tell.
    pub fn is_cached(&self, page: PageRef) -> bool {
        let (first, len) = self.extent(page);
        self.file.is_cached(first, len)
    }

    /// Has the disk begin to read pages, those that lie beside each other at once.
    pub fn begin_reading(&self, pages: impl Iterator<Item = PageRef>) {
        let mut extents: SmallVec<[(u64, u64); 64]> = pages.map(|page| self.extent(page)).collect();
        extents.sort_unstable();
        let mut run = (0, 0);
        for (first, len) in extents {
            if first == run.0 + run.1 {
                run.1 += len;
                continue;
            }
            if run.1 > 0 {
                self.file.begin_reading(run.0, run.1);
            }
            run = (first, len);
        }
        if run.1 > 0 {
            self.file.begin_reading(run.0, run.1);
        }
    }

    /// The tables of spaces and those of the store's own, by name; `damaged` is called for parts of
    /// the list that can't be read.
    pub fn tables(&self, damaged: impl FnMut(DamagedPlace)) -> Vec<TableEntry> {
        self.list(self.tables, damaged)
    }

    /// As [`tables`](PageReader::tables), of redb's own tables.
    pub fn system_tables(&self, damaged: impl FnMut(DamagedPlace)) -> Vec<TableEntry> {
        self.list(self.system_tables, damaged)
    }

    fn list(
        &self,
        root: Option<PageLink>,
        mut damaged: impl FnMut(DamagedPlace),
    ) -> Vec<TableEntry> {
        let mut tables = Vec::new();
        self.walk(root, FixedLengths::default(), &mut |visit| {
            match visit {
                Visit::Branch(_) => {}
                Visit::Leaf(_, leaf) => {
                    tables.extend(
                        leaf.rows()
                            .filter_map(|(name, entry)| table_entry(name, entry)),
                    );
                }
                Visit::Damaged { damage, .. } => damaged(damage),
            }
            true
        });
        tables
    }

    /// Calls `visit` with the place of each leaf of a table, and the key that all of its keys are
    /// above; the first has an empty one. Leaves themselves are not read.
    pub fn leaves(
        &self,
        root: Option<PageLink>,
        lengths: FixedLengths,
        visit: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), DamagedPlace> {
        let Some(PageLink { page: root, .. }) = root else {
            return Ok(());
        };
        let (mut height, mut first) = (0, root);
        loop {
            match children(&self.read(first)?, lengths) {
                Some(children) if height < DEPTH_MAX => {
                    (height, first) = (height + 1, children[0].0)
                }
                _ => break,
            }
        }
        self.leaves_below((root, height), lengths, &[], visit)
    }

    fn leaves_below(
        &self,
        (page, height): (PageRef, u32),
        lengths: FixedLengths,
        above: &[u8],
        visit: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), DamagedPlace> {
        let (first, _) = self.extent(page);
        if height == 0 {
            visit(first, above);
            return Ok(());
        }
        let bytes = self.read(page)?;
        let no_page = || self.no_page_of_a_table(page);
        let mut above = above;
        for (child, up_to) in children(&bytes, lengths).ok_or_else(no_page)? {
            self.leaves_below((child, height - 1), lengths, above, visit)?;
            above = up_to.unwrap_or(above);
        }
        Ok(())
    }

    /// How much of the file is in use, as redb's allocator knows.
    pub fn file_use(&self) -> Result<FileUse, DamagedPlace> {
        let mut damage = None;
        let (mut free, mut regions, mut unreachable) = (Vec::new(), 0, 0);
        for table in self.system_tables(|place| damage = Some(place)) {
            self.walk(table.root, table.lengths, &mut |visit| {
                match visit {
                    Visit::Branch(_) => {}
                    Visit::Damaged { damage: place, .. } => damage = Some(place),
                    Visit::Leaf(_, leaf) => {
                        for (key, value) in leaf.rows() {
                            if let Some(region) = region_of_state(&table.name, key) {
                                let ranges = parse_free_pages(value).unwrap_or_default();
                                let at = |index| self.page_of_region(region, index);
                                free.extend(ranges.iter().map(|r| at(r.start)..at(r.end)));
                                regions += 1;
                            } else if is_list_of_freed(&table.name) {
                                let pages = parse_page_list(value);
                                unreachable += pages.iter().map(|p| self.extent(*p).1).sum::<u64>();
                            }
                        }
                    }
                }
                true
            });
        }
        match damage {
            Some(damage) => Err(damage),
            // Without the allocator's state everything counts as used.
            None if regions == 0 => Ok(FileUse::of(self.len(), Vec::new(), 0)),
            None => Ok(FileUse::of(self.len(), free, unreachable)),
        }
    }

    /// Visits every page of both lists of tables.
    pub fn walk_lists(&self, visitor: &mut dyn FnMut(Visit<'_>) -> bool) {
        for root in [self.tables, self.system_tables] {
            self.walk(root, FixedLengths::default(), visitor);
        }
    }

    /// Visits the pages of a table in the order of its keys, for as long as `visitor` returns true.
    pub fn walk(
        &self,
        root: Option<PageLink>,
        lengths: FixedLengths,
        visitor: &mut dyn FnMut(Visit<'_>) -> bool,
    ) -> bool {
        match root {
            Some(root) => self.walk_below(root.page, lengths, (None, None), 0, visitor),
            None => true,
        }
    }

    fn walk_below(
        &self,
        page: PageRef,
        lengths: FixedLengths,
        (low, high): (Option<&[u8]>, Option<&[u8]>),
        depth: u32,
        visitor: &mut dyn FnMut(Visit<'_>) -> bool,
    ) -> bool {
        let damaged = |damage| Visit::Damaged { damage, low, high };
        let bytes = match self.read(page) {
            Ok(bytes) => bytes,
            Err(damage) => return visitor(damaged(damage)),
        };
        if let Some(leaf) = Leaf::parse(&bytes, lengths) {
            return visitor(Visit::Leaf(page, leaf));
        }
        let children = children(&bytes, lengths).filter(|_| depth < DEPTH_MAX);
        let Some(children) = children else {
            return visitor(damaged(self.no_page_of_a_table(page)));
        };
        if !visitor(Visit::Branch(page)) {
            return false;
        }
        let mut above = low;
        for (child, up_to) in children {
            let up_to = up_to.or(high);
            if !self.walk_below(child, lengths, (above, up_to), depth + 1, visitor) {
                return false;
            }
            above = up_to;
        }
        true
    }
}

/// How much of the file is in use. In pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileUse {
    /// The file's length.
    pub len: u64,
    /// What the rows take.
    pub live: u64,
    /// What is free when no reader needs it any more, and another commit is made.
    pub freed_later: u64,
    /// What is free: redb's blocks, each of some power of two of pages.
    free: Vec<Range<u64>>,
}

impl FileUse {
    /// However small the store is: what redb keeps about its own pages moves with each commit.
    const SLACK: u64 = 16;
    /// Free pages that are too few to be given back: the file would be in too many pieces.
    const LARGE: u64 = 16;

    fn of(len: u64, free: Vec<Range<u64>>, freed_later: u64) -> FileUse {
        let freed: u64 = free.iter().map(|range| range.end - range.start).sum();
        FileUse {
            len,
            live: len.saturating_sub(freed + freed_later),
            freed_later,
            free,
        }
    }

    /// The places that so many pages go to that are written next, in this order: redb takes the
    /// first of the smallest blocks that are free.
    pub fn places(&self, count: usize) -> Vec<u64> {
        let mut blocks: Vec<_> = self.free.iter().collect();
        blocks.sort_unstable_by_key(|block| (block.end - block.start, block.start));
        let places = blocks.into_iter().flat_map(Clone::clone);
        places.take(count).collect()
    }

    /// What can be given back to the disk, in the order of the file.
    pub fn holes(&self) -> Vec<Range<u64>> {
        let mut free = self.free.clone();
        free.sort_unstable_by_key(|range| range.start);
        let mut holes: Vec<Range<u64>> = Vec::new();
        for range in free {
            match holes.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => holes.push(range),
            }
        }
        holes.retain(|hole| hole.end - hole.start >= FileUse::LARGE);
        holes
    }

    /// Where the last leaf is to lie.
    pub fn goal(&self) -> u64 {
        self.live + self.live / 16 + FileUse::SLACK
    }

    /// Whether it isn't worth while to move pages, if these are given back.
    pub fn is_compact_without(&self, holes: &[Range<u64>]) -> bool {
        let given: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
        self.len - given.min(self.len) <= self.goal() + self.goal() / 16
    }
}

/// The region whose pages a row of redb's own tables tells of.
pub(crate) fn region_of_state(table: &str, key: &[u8]) -> Option<u64> {
    match (table, key) {
        ("allocator_state", &[3, a, b, c, d]) => Some(u32::from_le_bytes([a, b, c, d]).into()),
        _ => None,
    }
}

/// Whether a table of redb's own lists pages that it is about to free.
pub(crate) fn is_list_of_freed(table: &str) -> bool {
    table.ends_with("pages_unreachable")
}

/// Where the last commit's slot begins: the one that the header names, or the other, if only that
/// is sound.
fn last_slot(header: &[u8]) -> usize {
    let place = |slot: u8| 64 + 128 * usize::from(slot & 1);
    let is_sound = |slot: u8| {
        let slot = &header[place(slot)..place(slot) + 128];
        XxHash3_128::oneshot(&slot[..112]).to_le_bytes() == slot[112..]
    };
    let named = header[9];
    match !is_sound(named) && is_sound(named ^ 1) {
        true => place(named ^ 1),
        false => place(named),
    }
}

fn children(bytes: &[u8], lengths: FixedLengths) -> Option<Vec<(PageRef, Option<&[u8]>)>> {
    Branch::parse(bytes, lengths)?.children()
}

/// A row of a list of tables.
pub(crate) fn table_entry(name: &[u8], entry: &[u8]) -> Option<TableEntry> {
    let fixed = |at: usize| {
        let len = u32_at(entry, at + 1)? as usize;
        Some((entry[at] != 0).then_some(len))
    };
    let root = PageLink::of_root(entry, 10)?;
    Some(TableEntry {
        name: std::str::from_utf8(name).ok()?.to_string(),
        root: (entry[9] != 0).then_some(root),
        rows: u64_at(entry, 1)?,
        lengths: FixedLengths {
            key: fixed(42)?,
            value: fixed(47)?,
        },
    })
}

/// The pages of a region that are free, from the state of redb's allocator: ranges of pages.
///
/// ```text
/// 0  u8 highest order   4  u32 pages   8  u32 × (orders) ends of bitmaps, bitmaps
/// bitmap   0  u32 height   4  u32 × height ends of layers, layers: u32 bits, u64 words; the last layer
///          counts
/// ```
///
/// A bit is set for what is *not* free.
pub(crate) fn parse_free_pages(allocator: &[u8]) -> Option<Vec<Range<u64>>> {
    let orders = usize::from(*allocator.first()?) + 1;
    let mut free = Vec::new();
    let mut begin = 8 + 4 * orders;
    for order in 0..orders {
        let end = u32_at(allocator, 8 + 4 * order)? as usize;
        let bitmap = allocator.get(begin..end)?;
        begin = end;
        let height = u32_at(bitmap, 0)? as usize;
        let layer_begin = match height {
            0 => continue,
            1 => 4 + 4 * height,
            _ => u32_at(bitmap, 4 + 4 * (height - 2))? as usize,
        };
        let layer = bitmap.get(layer_begin..u32_at(bitmap, 4 * height)? as usize)?;
        for bit in 0..u64::from(u32_at(layer, 0)?) {
            let word = u64_at(layer, 4 + 8 * (bit / 64) as usize)?;
            if word >> (bit % 64) & 1 == 0 {
                free.push(bit << order..(bit + 1) << order);
            }
        }
    }
    Some(free)
}

/// The pages in one of redb's lists of pages.
pub(crate) fn parse_page_list(value: &[u8]) -> Vec<PageRef> {
    let count = usize::from(u16_at(value, 0).unwrap_or_default());
    (0..count)
        .filter_map(|page| u64_at(value, 2 + 8 * page).map(PageRef))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of two rows whose first value looks like a key behind the last.
    fn leaf() -> Vec<u8> {
        let mut bytes = vec![LEAF, 0, 2, 0];
        let (keys, values) = ([*b"\x28\x00\x00\x00", *b"bbbb"], [*b"zzzz", *b"yyyy"]);
        for end in [24u32, 28, 32, 36] {
            bytes.extend(end.to_le_bytes());
        }
        for part in keys.iter().chain(&values) {
            bytes.extend(part);
        }
        bytes.resize(64, 7);
        bytes
    }

    #[test]
    fn behind_the_last_row_of_a_leaf_there_is_none() {
        let bytes = leaf();
        let leaf = Leaf::parse(&bytes, FixedLengths::default()).unwrap();
        assert_eq!(leaf.row(1), Some((&b"bbbb"[..], &b"yyyy"[..])));
        assert_eq!(leaf.row(2), None);
        assert_eq!(leaf.lower_bound(b"zzzz"), 2);
    }

    #[test]
    fn a_branch_whose_keys_are_out_of_order_or_not_there_is_not_sound() {
        let branch = |keys: [&[u8; 2]; 2], last_end: u32| {
            let mut bytes = vec![BRANCH, 0, 2, 0, 0, 0, 0, 0];
            bytes.extend([1; 3 * 16 + 3 * 8]);
            let keys_at = bytes.len() as u32 + 8;
            bytes.extend((keys_at + 2).to_le_bytes());
            bytes.extend((keys_at + last_end).to_le_bytes());
            keys.iter().for_each(|key| bytes.extend(*key));
            bytes
        };
        let is_sound = |bytes: &[u8]| {
            let branch = Branch::parse(bytes, FixedLengths::default()).unwrap();
            branch.is_sound()
        };
        assert!(is_sound(&branch([b"bb", b"cc"], 4)));
        assert!(!is_sound(&branch([b"cc", b"bb"], 4)));
        assert!(!is_sound(&branch([b"bb", b"bb"], 4)));
        assert!(!is_sound(&branch([b"bb", b"cc"], 5)));
        assert!(!is_sound(&branch([b"bb", b"cc"], 1)));
        assert_eq!(
            Branch::parse(&leaf(), FixedLengths::default()).map(Branch::last),
            None
        );
    }
}
