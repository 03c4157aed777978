//! XA: the transaction branches of all sessions, and those that are prepared and no session's any
//! more (MySQL 8.4 manual, 15.3.8).
//!
//! ```text
//! XA START ─► begun: a session's ── XA END, XA PREPARE ─► prepared: nobody's ── XA COMMIT ─► gone
//!                   └─ ended by its session ─► gone            ▲          └─ XA ROLLBACK ─► gone
//!                                                    a restart ┘
//! ```
//!
//! A prepared branch keeps its row locks ([`PreparedTransaction`]) and the metadata locks of its
//! tables, and any session may end it. Storage keeps it in the dictionary's space under
//! [`KIND_PREPARED`] and the branch's name, with its tables as the label; [`XaBranches::open`] makes
//! of these what was there before a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;
use parking_lot::Mutex;
use porpoise_catalog::dictionary::{DICTIONARY_SPACE, KIND_PREPARED};
use porpoise_catalog::{Catalog, Relation, Table, TableId, TableState};
use porpoise_core::error::{Error, Result};
use porpoise_mdl::{HeldTables, TableUse};
use porpoise_sql::ast::Xid;
use porpoise_storage::{PreparedTransaction, SpaceId, Store};

/// What tells branches apart while they are there: gtrid and bqual, whatever the format.
type Name = (Box<[u8]>, Box<[u8]>);

/// The branches of a database.
#[derive(Default)]
pub struct XaBranches(Mutex<BTreeMap<Name, Branch>>);

enum Branch {
    /// A session is at it: it has begun the branch, or ends it.
    Taken,
    Prepared(Xid, Box<PreparedBranch>),
}

/// A branch that waits for XA COMMIT or XA ROLLBACK.
pub struct PreparedBranch {
    /// The session that has prepared it and alone may end it, while it is there
    /// (`xa_detach_on_prepare=OFF`).
    pub owner: Option<u64>,
    /// Its writes and its row locks.
    pub transaction: PreparedTransaction,
    /// Which tables those are.
    pub locked: Vec<(TableId, TableUse)>,
    /// The metadata locks of its tables.
    pub tables: HeldTables<TableState>,
    /// It has changed something: a server with `read_only` doesn't commit it.
    pub changes_lasting_tables: bool,
}

/// Deletes what storage keeps of prepared branches whose writes it doesn't have any more, in a store that
/// was salvaged: a start would fail for want of them. Gives the branches.
///
/// # Errors
/// Damage in storage, and I/O errors.
pub fn forget_lost_branches(store: &Store) -> porpoise_storage::Result<Vec<Xid>> {
    let lost = store.forget_lost_prepared(DICTIONARY_SPACE, &[KIND_PREPARED])?;
    Ok(lost.iter().filter_map(|key| xid_in_key(key)).collect())
}

fn name_of(xid: &Xid) -> Name {
    (xid.gtrid.clone(), xid.bqual.clone())
}

impl XaBranches {
    /// The branches that were prepared when the database was closed, or crashed. To be called before
    /// there is a session.
    ///
    /// # Errors
    /// What is kept of them can't be read.
    pub fn open(store: &Store, catalog: &Catalog) -> Result<XaBranches> {
        let found = store.recover_prepared(DICTIONARY_SPACE, &[KIND_PREPARED])?;
        let mut branches = BTreeMap::new();
        for transaction in found {
            let unreadable = || Error::engine_error("an unreadable prepared transaction");
            let xid = xid_in_key(transaction.key()).ok_or_else(unreadable)?;
            let label = Label::read(transaction.label()).ok_or_else(unreadable)?;
            let prepared = PreparedBranch {
                owner: None,
                tables: label.lock(catalog),
                changes_lasting_tables: label.changes_lasting_tables,
                locked: label.tables,
                transaction,
            };
            branches.insert(name_of(&xid), Branch::Prepared(xid, Box::new(prepared)));
        }
        Ok(XaBranches(Mutex::new(branches)))
    }

    /// Begins a branch. `false` if there is one of that name (1440).
    pub fn begin(&self, xid: &Xid) -> bool {
        let mut branches = self.0.lock();
        let is_new = !branches.contains_key(&name_of(xid));
        if is_new {
            branches.insert(name_of(xid), Branch::Taken);
        }
        is_new
    }

    /// A branch that a session was at is prepared, or is prepared still.
    pub fn keep_prepared(&self, xid: &Xid, branch: Box<PreparedBranch>) {
        let prepared = Branch::Prepared(xid.clone(), branch);
        self.0.lock().insert(name_of(xid), prepared);
    }

    /// Whether a branch of that name and format is prepared, and no other session is at it.
    pub fn is_prepared(&self, xid: &Xid, session: u64) -> bool {
        let branches = self.0.lock();
        let found = branches.get(&name_of(xid));
        found.is_some_and(|found| match found {
            Branch::Prepared(known, branch) => {
                known == xid && branch.owner.is_none_or(|owner| owner == session)
            }
            Branch::Taken => false,
        })
    }

    /// Takes a prepared branch out, to be ended by a session. `None` if there is none of that name
    /// and format that no other session is at.
    pub fn take_prepared(&self, xid: &Xid, session: u64) -> Option<Box<PreparedBranch>> {
        let mut branches = self.0.lock();
        let found = branches.get_mut(&name_of(xid))?;
        match std::mem::replace(found, Branch::Taken) {
            Branch::Prepared(known, branch)
                if known == *xid && branch.owner.is_none_or(|owner| owner == session) =>
            {
                Some(branch)
            }
            other => {
                *found = other;
                None
            }
        }
    }

    /// The session that has prepared a branch leaves it to any.
    pub fn detach(&self, xid: &Xid) {
        if let Some(Branch::Prepared(_, branch)) = self.0.lock().get_mut(&name_of(xid)) {
            branch.owner = None;
        }
    }

    /// The session that was at a branch has ended it.
    pub fn ended(&self, xid: &Xid) {
        self.0.lock().remove(&name_of(xid));
    }

    /// The tables that prepared branches have locked: the session that is at the branch, if one is,
    /// and the tables by their numbers.
    pub fn locked_tables(&self) -> Vec<(Option<u64>, Vec<(TableId, TableUse)>)> {
        let branches = self.0.lock();
        let prepared = branches.values().filter_map(|branch| match branch {
            Branch::Prepared(_, branch) => Some((branch.owner, branch.locked.clone())),
            Branch::Taken => None,
        });
        prepared.collect()
    }

    /// The prepared ones, by name.
    pub fn prepared(&self) -> Vec<Xid> {
        let branches = self.0.lock();
        let prepared = branches.values().filter_map(|branch| match branch {
            Branch::Prepared(xid, _) => Some(xid.clone()),
            Branch::Taken => None,
        });
        prepared.collect()
    }
}

// ── What storage keeps of a branch ───────────────────────────────────────────────────────────────

/// Where storage keeps a prepared branch.
pub fn place_of(xid: &Xid) -> (SpaceId, Vec<u8>) {
    let mut key = vec![KIND_PREPARED];
    for part in [&xid.gtrid, &xid.bqual] {
        // The parser admits 64 bytes.
        key.push(part.len() as u8);
        key.extend_from_slice(part);
    }
    key.extend_from_slice(&xid.format.to_be_bytes());
    (DICTIONARY_SPACE, key)
}

fn xid_in_key(key: &[u8]) -> Option<Xid> {
    fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (len, behind) = rest.split_first()?;
        let (part, behind) = behind.split_at_checked(usize::from(*len))?;
        *rest = behind;
        Some(part)
    }
    let mut rest = key.strip_prefix(&[KIND_PREPARED])?;
    Some(Xid {
        gtrid: part(&mut rest)?.into(),
        bqual: part(&mut rest)?.into(),
        format: u64::from_be_bytes(rest.try_into().ok()?),
    })
}

/// What storage keeps beside a branch's writes: which tables it has locked.
///
/// ```text
/// u8 it has changed lasting tables, then for each table: u32 id, u8 it may write to it
/// ```
pub struct Label {
    tables: Vec<(TableId, TableUse)>,
    changes_lasting_tables: bool,
}

impl Label {
    const TABLE_BYTES: usize = 5;

    /// The label of a branch that has locked these. Views are left out: what they are is not known
    /// after a restart, and nothing of theirs is locked.
    pub fn of(
        held: &[(TableId, TableUse)],
        catalog: &Catalog,
        changes_lasting_tables: bool,
    ) -> Label {
        let wanted: HashSet<TableId> = held.iter().map(|(id, _)| *id).collect();
        let tables: HashSet<TableId> = tables(catalog)
            .filter(|table| wanted.contains(&table.id))
            .map(|table| table.id)
            .collect();
        let held = held.iter().copied();
        Label {
            tables: held.filter(|(id, _)| tables.contains(id)).collect(),
            changes_lasting_tables,
        }
    }

    /// As storage keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.changes_lasting_tables)];
        for (table, usage) in &self.tables {
            bytes.extend_from_slice(&table.0.to_le_bytes());
            bytes.push(u8::from(*usage == TableUse::Write));
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Label> {
        let (flag, tables) = bytes.split_first()?;
        let (tables, rest) = tables.as_chunks::<{ Label::TABLE_BYTES }>();
        let table = |bytes: &[u8; Label::TABLE_BYTES]| {
            let (id, usage) = bytes.split_first_chunk()?;
            let usage = match usage {
                [0] => TableUse::Read,
                [1] => TableUse::Write,
                _ => return None,
            };
            Some((TableId(u32::from_le_bytes(*id)), usage))
        };
        let tables = tables.iter().map(table).collect::<Option<_>>()?;
        rest.is_empty().then_some(Label {
            tables,
            changes_lasting_tables: *flag != 0,
        })
    }

    /// Takes the metadata locks again, which nobody else has yet.
    fn lock(&self, catalog: &Catalog) -> HeldTables<TableState> {
        let mut held = HeldTables::default();
        for table in tables(catalog) {
            let used = self.tables.iter().filter(|(id, _)| *id == table.id);
            for (_, usage) in used {
                held.enter(Arc::clone(&table.state), *usage);
            }
        }
        held
    }
}

fn tables(catalog: &Catalog) -> impl Iterator<Item = &Table> {
    let relations = catalog.schemas.values();
    let relations = relations.flat_map(|entry| entry.relations.values());
    relations.filter_map(|relation| match relation {
        Relation::Table(table) => Some(&**table),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xid(gtrid: &[u8], bqual: &[u8], format: u64) -> Xid {
        Xid {
            gtrid: gtrid.into(),
            bqual: bqual.into(),
            format,
        }
    }

    #[test]
    fn a_key_gives_the_name_back_and_begins_no_other() {
        let names = [
            xid(b"", b"", 0),
            xid(b"a", b"b", 1),
            xid(b"ab", b"", 1),
            xid(&[0xff; 64], &[0; 64], i64::MAX as u64),
        ];
        let keys = names.each_ref().map(|name| place_of(name).1);
        for (name, key) in names.iter().zip(&keys) {
            assert_eq!(xid_in_key(key).as_ref(), Some(name));
            let begun = keys.iter().filter(|other| other.starts_with(key));
            assert_eq!(begun.count(), 1);
        }
        assert_eq!(xid_in_key(&keys[1][..5]), None);
    }

    #[test]
    fn a_name_is_taken_whatever_its_format_but_ended_by_its_own_alone() {
        let branches = XaBranches::default();
        assert!(branches.begin(&xid(b"a", b"b", 1)));
        assert!(!branches.begin(&xid(b"a", b"b", 2)));
        assert!(branches.begin(&xid(b"ab", b"", 1)));
        assert!(branches.take_prepared(&xid(b"a", b"b", 1), 1).is_none());
        branches.ended(&xid(b"a", b"b", 1));
        assert!(branches.begin(&xid(b"a", b"b", 2)));
    }

    #[test]
    fn a_label_reads_back_and_odd_bytes_are_refused() {
        let label = Label {
            tables: vec![(TableId(7), TableUse::Write), (TableId(9), TableUse::Read)],
            changes_lasting_tables: true,
        };
        let bytes = label.to_bytes();
        let read = Label::read(&bytes).unwrap();
        assert!(read.changes_lasting_tables);
        assert_eq!(read.tables, label.tables);
        assert!(Label::read(&bytes[..bytes.len() - 1]).is_none());
        assert!(Label::read(&[]).is_none());
    }
}
