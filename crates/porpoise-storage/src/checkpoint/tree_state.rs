//! What the tree says about itself, and reading it at a start.

use std::path::Path;

use redb::{ReadableTable, WriteTransaction};

use crate::tree::tables::{COUNTERS, DAMAGED, META};
use crate::tree::{DamagedSpaces, Tree};
use crate::tree_file::catch_damage;
use crate::{CommitTs, DamagedPlace, Error, Lsn, Result, SpaceId};

const FORMAT_VERSION: u64 = 1;

/// What the tree says about itself: how far it has the log, and the next free number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeState {
    /// The newest commit that it has.
    pub ts: CommitTs,
    /// The position in the log behind that commit.
    pub lsn: Lsn,
    /// The next number for a space.
    pub next_space: u32,
}

impl TreeState {
    const NEW: TreeState = TreeState {
        ts: CommitTs(0),
        lsn: Lsn(0),
        next_space: 1,
    };
}

/// What a start reads of the tree.
pub(crate) struct OpenedTree {
    pub state: TreeState,
    pub counters: Vec<(SpaceId, u64)>,
    pub damaged: DamagedSpaces,
}

/// Reads the tree's state, its counters and which spaces are damaged; writes the state of a new
/// tree.
pub(crate) fn open_tree(tree: &Tree, path: &Path) -> Result<OpenedTree> {
    let state = match catch_damage(|| read_state(tree, path))? {
        Some(state) => state,
        None => {
            let writing = tree.begin_write()?;
            write_state(&writing, TreeState::NEW)?;
            writing.commit()?;
            TreeState::NEW
        }
    };
    catch_damage(|| {
        let reading = tree.begin_read()?;
        let mut counters = Vec::new();
        each_row(reading.open_table(COUNTERS), |space, value| {
            counters.push((SpaceId(space), value));
        })?;
        let damaged = DamagedSpaces::default();
        each_row(reading.open_table(DAMAGED), |space, (offset, what)| {
            let space = SpaceId(space);
            let place = DamagedPlace {
                space: Some(space),
                ..DamagedPlace::new(path, offset, what)
            };
            damaged.add(space, place.into());
        })?;
        Ok(OpenedTree {
            state,
            counters,
            damaged,
        })
    })
}

fn each_row<V: redb::Value + 'static>(
    table: Result<redb::ReadOnlyTable<u32, V>, redb::TableError>,
    mut row: impl FnMut(u32, V::SelfType<'_>),
) -> Result<()> {
    match table {
        Ok(table) => {
            for found in table.iter()? {
                let (key, value) = found?;
                row(key.value(), value.value());
            }
            Ok(())
        }
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// `None` for a tree that is new.
pub(super) fn read_state(tree: &Tree, path: &Path) -> Result<Option<TreeState>> {
    let reading = tree.begin_read()?;
    let meta = match reading.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let number =
        |name: &str| -> Result<u64> { Ok(meta.get(name)?.map(|found| found.value()).unwrap_or(0)) };
    let found = number("format_version")?;
    if found > FORMAT_VERSION {
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        return Err(Error::newer_format(path, found, FORMAT_VERSION as u32));
    }
    let next_space = u32::try_from(number("next_space")?)
        .map_err(|_| Error::corrupt(path, 0, "the number of the next space is out of range"))?;
    Ok(Some(TreeState {
        ts: CommitTs(number("ts")?),
        lsn: Lsn(number("lsn")?),
        next_space,
    }))
}

pub(super) fn write_state(writing: &WriteTransaction, state: TreeState) -> Result<()> {
    let mut meta = writing.open_table(META)?;
    meta.insert("format_version", FORMAT_VERSION)?;
    meta.insert("ts", state.ts.0)?;
    meta.insert("lsn", state.lsn.0)?;
    meta.insert("next_space", u64::from(state.next_space))?;
    Ok(())
}
