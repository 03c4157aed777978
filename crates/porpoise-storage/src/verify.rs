//! Reading all of a space from disk, to find out whether it is damaged.

use std::sync::Arc;

use crate::pages::{PageReader, Visit};
use crate::store::Store;
use crate::tree_snapshot::table_name;
use crate::{Error, Result, SpaceId};

/// The outcome of reading a space's pages.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Pages that could be read.
    pub pages: u64,
    /// Rows in these pages.
    pub rows: u64,
    /// The damage: an error for each place, or the error that a checkpoint has met before.
    pub damage: Vec<Error>,
}

impl Store {
    /// Reads every page of a space as it lies on disk, bypassing all caches, for as long as
    /// `goes_on` returns true. Commits since the last checkpoint are not verified: they are in the
    /// log, which a start reads. Gives an empty result for a store in memory; fails with
    /// [`Error::Closed`] if the store was closed.
    pub fn verify(&self, space: SpaceId, mut goes_on: impl FnMut() -> bool) -> Result<Verified> {
        let shared = self.shared();
        let mut verified = Verified::default();
        let Some(file) = &shared.tree_file else {
            return Ok(verified);
        };
        if let Some(error) = shared.damaged.get(space) {
            verified.damage.push(error);
            return Ok(verified);
        }
        // Under this lock no checkpoint writes the header; the transaction keeps these pages from
        // being freed.
        let (pages, reading) = {
            let tree = shared.tree.lock();
            let reading = tree.as_ref().ok_or(Error::Closed)?.begin_read()?;
            file.forget_checksums();
            (PageReader::new(Arc::clone(file)), reading)
        };
        let mut damage = Vec::new();
        let tables = pages.tables(|place| damage.push(place));
        let name = table_name(space);
        if let Some(table) = tables.iter().find(|table| table.name == name) {
            damage.clear();
            pages.walk(table.root, table.lengths, &mut |visit| {
                match visit {
                    Visit::Branch(_) => verified.pages += 1,
                    Visit::Leaf(_, leaf) => {
                        verified.pages += 1;
                        verified.rows += leaf.rows().count() as u64;
                    }
                    Visit::Damaged { damage: place, .. } => damage.push(place),
                }
                goes_on()
            });
        }
        drop(reading);
        let met = |place: crate::DamagedPlace| shared.damaged.attribute(place.into(), space);
        verified.damage.extend(damage.into_iter().map(met));
        Ok(verified)
    }
}
