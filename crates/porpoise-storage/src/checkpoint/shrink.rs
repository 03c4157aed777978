//! Giving room in the tree's file back to the disk, while others read and write.
//!
//! Free pages that lie together become holes of the file. Where too many lie among others, these are
//! moved to the front first: by writing a row of each leaf anew, with the value that it has, as a
//! page is never changed in place. The rows stay as they are, and so do the blocks of them that
//! readers have.
//!
//! ```text
//! file      ▓▓▓░▓░░▓░░░▓░░░░▓░░░▓      ▓ in use  ░ free
//! move      ▓▓▓▓▓▓▓▓░░▓░░░░░░░░░░      the leaves behind the goal, the last ones first, in redb's
//!                                      own transactions
//! discard   ▓▓▓▓▓▓▓▓░░▓                the rest is holes, until it is used again
//! ```
//!
//! redb writes to the first of the smallest free blocks. Where those lie behind the goal, they are
//! filled within the transaction, with rows that are gone when it ends.
//!
//! Nothing here counts for recovery: each transaction leaves all rows as they were, and a hole is
//! made only of pages that no commit refers to, which redb might overwrite as well.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use redb::{ReadableTable, TableDefinition, TableError, TableHandle, WriteTransaction};

use super::{check_disk_space, free_pages, reopen_if_failed, reopen_or_fail, show_tree};
use crate::pages::{FileUse, PageReader};
use crate::store::Shared;
use crate::tree::Tree;
use crate::tree::tables::COUNTERS;
use crate::tree_file::{CheckedFile, catch_damage, catch_panic};
use crate::tree_snapshot::{definition, space_of_table, table_name};
use crate::{Result, SpaceId, recovery};

/// Leaves that are moved in one transaction: checkpoints wait meanwhile.
const SLICE: usize = 4096;
/// So many small places behind the goal are filled for a moment, so that pages go to larger ones
/// before it.
const FILLED_MAX: usize = 4096;

/// A table that is gone before the transaction ends, with rows of a page each.
const FILLER: TableDefinition<u32, &[u8]> = TableDefinition::new("filler");
const FILLER_BYTES: usize = 4000;

/// Pages that are to be moved to the front of the file.
pub(crate) struct Shrinking {
    /// Leaves, the last of the file at the end: the space, and a key that is below all of the
    /// leaf's and not below those before it.
    moves: Vec<(SpaceId, Vec<u8>)>,
    has_high_counters: bool,
    /// Pages to be filled meanwhile.
    filled: usize,
}

impl Shrinking {
    /// Finds the pages to be moved; `None` if there is no need: then what is free is given back.
    pub fn plan(shared: &Shared) -> Result<Option<Shrinking>> {
        let _hurry = shared.pace.hurry();
        let mut guard = shared.tree.lock();
        reopen_if_failed(shared, &mut guard)?;
        let Some(file) = &shared.tree_file else {
            return Ok(None);
        };
        let mut pages = PageReader::new(file.clone());
        let mut found = pages.file_use()?;
        if found.freed_later > 0 && !found.is_compact_without(&found.holes()) {
            free_pages(shared, &mut guard)?;
            pages = PageReader::new(file.clone());
            found = pages.file_use()?;
        }
        let holes = found.holes();
        if found.is_compact_without(&holes) {
            file.discard(&holes)?;
            return Ok(None);
        }
        let planned = Shrinking::of_leaves(high_leaves(shared, &pages, &found)?, &found);
        if planned.moves.is_empty() && !planned.has_high_counters {
            file.discard(&holes)?;
            return Ok(None);
        }
        Ok(Some(planned))
    }

    fn of_leaves(mut high: HighLeaves, found: &FileUse) -> Shrinking {
        high.leaves.sort_unstable_by_key(|(page, ..)| *page);
        let from: Vec<u64> = high.leaves.iter().rev().map(|(page, ..)| *page).collect();
        let places = found.places(from.len() + FILLED_MAX);
        let filled = places.iter().position(|place| *place < found.goal());
        let filled = filled.filter(|filled| *filled <= FILLED_MAX).unwrap_or(0);
        let count = moves_worthwhile(&from, &places[filled..]);
        let moves = high.leaves.split_off(high.leaves.len() - count);
        let moves = moves.into_iter().map(|(_, space, above)| (space, above));
        Shrinking {
            moves: moves.collect(),
            has_high_counters: high.has_counters,
            filled,
        }
    }

    /// Moves some of the pages; `false` when all were moved, and the rest of the file is given back.
    pub fn step(&mut self, shared: &Shared) -> Result<bool> {
        let _hurry = shared.pace.hurry();
        let mut guard = shared.tree.lock();
        reopen_if_failed(shared, &mut guard)?;
        let tree = guard.as_ref().ok_or_else(|| recovery::no_tree(shared))?;
        let first = self.moves.len().saturating_sub(SLICE);
        let is_more = !self.moves.is_empty();
        let mut slice = self.moves.split_off(first);
        slice.sort_unstable();
        let filled = if slice.is_empty() { 0 } else { self.filled };
        check_disk_space(shared, (slice.len() + filled) as u64, 0)?;
        let moves_counters = std::mem::take(&mut self.has_high_counters);
        let moved = move_pages(tree, &slice, moves_counters, filled);
        if let Err(error) = moved {
            reopen_or_fail(shared, &mut guard)?;
            return Err(error);
        }
        // Readers of the tree before keep its pages.
        show_tree(shared, tree)?;
        if !is_more && let Some(file) = &shared.tree_file {
            file.discard(&file_use(file)?.holes())?;
        }
        Ok(is_more)
    }
}

/// The leaves behind the goal: the page, the space, and a key that all of the leaf's keys are above.
#[derive(Default)]
struct HighLeaves {
    leaves: Vec<(u64, SpaceId, Vec<u8>)>,
    /// The table of counters has some.
    has_counters: bool,
}

fn high_leaves(shared: &Shared, pages: &PageReader, found: &FileUse) -> Result<HighLeaves> {
    let mut high = HighLeaves::default();
    let goal = found.goal();
    for table in pages.tables(|_| ()) {
        if table.name == COUNTERS.name() {
            let mut note = |page, _: &[u8]| high.has_counters |= page >= goal;
            pages.leaves(table.root, table.lengths, &mut note)?;
        }
        let space = space_of_table(&table.name);
        let Some(space) = space.filter(|space| !shared.damaged.has(*space)) else {
            continue;
        };
        let mut note = |page, above: &[u8]| {
            if page >= goal {
                high.leaves.push((page, space, above.to_vec()));
            }
        };
        pages.leaves(table.root, table.lengths, &mut note)?;
    }
    Ok(high)
}

/// How often it is worth while to plan anew: a page that is moved goes to the lowest place of its
/// size, which may be behind the goal, too, while larger places are free before it.
pub(crate) const ROUNDS_MAX: u32 = 10;

/// Gives back as much room as there is.
pub(crate) fn shrink(shared: &Shared, mut goes_on: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..ROUNDS_MAX {
        let Some(mut shrinking) = Shrinking::plan(shared)? else {
            return Ok(());
        };
        while goes_on() && shrinking.step(shared)? {}
        if !goes_on() {
            break;
        }
    }
    Ok(())
}

/// How many of the leaves to move, which lie at these places, the last one first, if pages that are
/// written anew go to those places, one after another. Most of the moves have to be towards the
/// front. Some will not be: they fill small places far behind, so that the others come forward.
fn moves_worthwhile(from: &[u64], to: &[u64]) -> usize {
    let (mut forward, mut count) = (0, 0);
    for (number, (from, to)) in (1..).zip(from.iter().zip(to)) {
        forward += usize::from(to < from);
        if forward * 4 >= number * 3 {
            count = number;
        }
    }
    count
}

/// Whether it is time to shorten the tree's file: while nothing is committed if that is worth
/// while, and else if much more than half of it is free. Under load almost half is: what the last
/// checkpoint wrote anew it left behind as many free pages, which the next one writes to.
pub(crate) fn is_file_too_long(shared: &Shared, is_quiet: bool) -> Result<bool> {
    /// A file may have so many free pages, however little is in it.
    const FREE_MIN: u64 = 4096;
    let _guard = shared.tree.lock();
    let Some(file) = &shared.tree_file else {
        return Ok(false);
    };
    let found = file_use(file)?;
    let live = found.live;
    let bearable = match is_quiet {
        true => live + live / 8,
        false => 2 * live + live / 4,
    };
    Ok(file.room() > bearable + FREE_MIN)
}

/// How the tree's file is used, as of the last commit.
fn file_use(file: &Arc<CheckedFile>) -> Result<FileUse> {
    Ok(PageReader::new(file.clone()).file_use()?)
}

/// Writes a row of each leaf anew.
fn move_pages(
    tree: &Tree,
    leaves: &[(SpaceId, Vec<u8>)],
    counters: bool,
    filled: usize,
) -> Result<()> {
    let mut by_space: BTreeMap<SpaceId, Vec<&[u8]>> = BTreeMap::new();
    for (space, above) in leaves {
        by_space.entry(*space).or_default().push(above);
    }
    let mut spaces = Vec::with_capacity(by_space.len());
    for (space, leaves) in by_space {
        if has_table(tree, space)? {
            spaces.push((space, leaves));
        }
    }
    catch_panic(|| {
        let writing = tree.begin_write()?;
        if filled > 0 {
            let mut filler = writing.open_table(FILLER)?;
            for page in 0..filled {
                filler.insert(page as u32, &[0; FILLER_BYTES][..])?;
            }
        }
        for (space, leaves) in spaces {
            let name = table_name(space);
            let mut table = writing.open_table(definition(&name))?;
            for above in leaves {
                write_first_row_anew(&mut table, above)?;
            }
        }
        if counters {
            write_counters_anew(&writing)?;
        }
        if filled > 0 {
            writing.delete_table(FILLER)?;
        }
        Ok(writing.commit()?)
    })
}

/// Whether a space has a table: to open one for writing makes it, and the space may be dropped.
fn has_table(tree: &Tree, space: SpaceId) -> Result<bool> {
    let name = table_name(space);
    catch_damage(|| match tree.begin_read()?.open_table(definition(&name)) {
        Ok(_) => Ok(true),
        Err(TableError::TableDoesNotExist(_)) => Ok(false),
        Err(error) => Err(error.into()),
    })
}

/// Writes the first row above a key anew; no key is above all.
fn write_first_row_anew(
    table: &mut redb::Table<'_, &'static [u8], &'static [u8]>,
    above: &[u8],
) -> Result<()> {
    let low = match above.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Excluded(above),
    };
    let row = table.range::<&[u8]>((low, Bound::Unbounded))?.next();
    let row = row.transpose()?;
    let row = row.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()));
    if let Some((key, value)) = row {
        table.insert(&key[..], &value[..])?;
    }
    Ok(())
}

fn write_counters_anew(writing: &WriteTransaction) -> Result<()> {
    let mut table = writing.open_table(COUNTERS)?;
    let mut rows = Vec::new();
    for row in table.iter()? {
        let (space, value) = row?;
        rows.push((space.value(), value.value()));
    }
    for (space, value) in rows {
        table.insert(space, value)?;
    }
    Ok(())
}
