//! The steps of a run: what is done with the store, chosen at random.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use porpoise_storage::{Cursor, Direction, Error, Flush, LockMode, Snapshot, SpaceId, Wait, Work};

use crate::disk::Faults;
use crate::model::{Change, Contents, Place, Value};
use crate::run::{OpenTransaction, Run, RunState, StoreCall, key};

const KEYS: u16 = 40;
const SPACES_MAX: usize = 5;
const TRANSACTIONS_MAX: usize = 4;

/// The rows of a range, by the number of their key.
fn rows_of(mut cursor: Cursor) -> Result<BTreeMap<u16, Value>, Error> {
    let mut rows = BTreeMap::new();
    while let Some((key, value)) = cursor.next()? {
        rows.insert(u16::from_be_bytes([key[0], key[1]]), Value::from(value));
    }
    Ok(rows)
}

impl Run {
    /// What may happen while something else does.
    pub(crate) fn step_during(&self, call: StoreCall) {
        if self.disk.is_off() {
            return;
        }
        self.state().counts.steps += 1;
        let choice = self.state().random.u8(..10);
        match (choice, call) {
            (0..4, _) => self.change_something(),
            (4..7, _) => self.commit_one(),
            (7, _) => self.sync_pending(),
            (8, StoreCall::Checkpoint | StoreCall::Shrink | StoreCall::IdleSync) => {
                self.preallocate()
            }
            (8, _) => self.checkpoint(),
            (_, StoreCall::Checkpoint | StoreCall::Shrink | StoreCall::Preallocate) => self.sync(),
            _ => self.checkpoint(),
        }
    }

    pub(crate) fn step(&self) {
        let (choice, is_faultless) = {
            let mut state = self.state();
            state.counts.steps += 1;
            state.model.shorten();
            (
                state.random.u16(..1000),
                state.plan.faults == Faults::default(),
            )
        };
        match choice {
            0..450 => self.change_something(),
            450..620 => self.read_something(),
            620..800 => self.commit_one(),
            800..835 => self.sync_pending(),
            835..843 => self.prepare_one(),
            843..850 => self.end_prepared(),
            850..865 => self.roll_back(),
            865..885 => self.take_snapshot(),
            885..900 => self.drop_snapshot(),
            900..930 => self.sync(),
            930..955 => self.preallocate(),
            955..967 => self.checkpoint(),
            967..970 => self.shrink(),
            970..985 => self.recover(),
            985..990 => self.change_policy(),
            990..995 if !is_faultless => self.toggle_faults(),
            995..997 => self.stop_faults(),
            997..999 => self.restart(),
            _ => self.read_something(),
        }
    }

    pub(crate) fn pick_space(&self, state: &mut RunState) -> Option<u32> {
        let spaces = std::mem::take(&mut state.spaces);
        let space = state.random.choice(&spaces).copied();
        state.spaces = spaces;
        space
    }

    pub(crate) fn take_transaction(&self) -> Option<OpenTransaction> {
        let store = self.store()?;
        let mut state = self.state();
        let count = state.open.len();
        let begins = count == 0 || count < TRANSACTIONS_MAX && state.random.u8(..10) == 0;
        if !begins {
            let index = state.random.usize(..count);
            return Some(state.open.swap_remove(index));
        }
        let may_be_prepared = state.random.bool();
        drop(state);
        let mut txn = store.begin();
        if may_be_prepared {
            txn.may_be_prepared();
        }
        Some(OpenTransaction {
            txn,
            may_be_prepared,
            view: None,
            change: Change::default(),
            savepoints: Vec::new(),
            spaces_in_use: BTreeSet::new(),
            rests_on: BTreeSet::new(),
        })
    }

    pub(crate) fn put_back(&self, work: OpenTransaction) {
        self.state().open.push(work);
    }

    pub(crate) fn use_space(&self, work: &mut OpenTransaction, space: u32) {
        if work.spaces_in_use.insert(space) {
            *self.state().spaces_in_use.entry(space).or_default() += 1;
        }
    }

    pub(crate) fn release_spaces(&self, spaces_in_use: &BTreeSet<u32>) {
        let mut state = self.state();
        for space in spaces_in_use {
            if let Some(count) = state.spaces_in_use.get_mut(space) {
                *count = count.saturating_sub(1);
            }
        }
    }

    pub(crate) fn change_something(&self) {
        let Some(mut work) = self.take_transaction() else {
            return;
        };
        let (choice, space, number, len, fill) = {
            let mut state = self.state();
            let space = self.pick_space(&mut state);
            let number = state.random.u16(..KEYS);
            let len = match state.random.u16(..200) {
                0 => 12_000,
                1..4 => 3_000,
                _ => state.random.usize(..80),
            };
            (
                state.random.u16(..1000),
                space,
                number,
                len,
                state.random.u8(..),
            )
        };
        let has_room = self.state().spaces.len() < SPACES_MAX;
        match (choice, space) {
            (0..5, _) if has_room => self.create_space(&mut work),
            (5..8, Some(space)) => self.drop_space(&mut work, space),
            (8..28, _) => {
                let savepoint = work.txn.savepoint();
                work.savepoints.push((savepoint, work.change.clone()));
            }
            (28..38, _) => {
                if let Some((savepoint, change)) = work.savepoints.pop() {
                    work.txn.rollback_to(savepoint);
                    let counters = std::mem::take(&mut work.change.counters);
                    work.change = Change { counters, ..change };
                }
            }
            (38..60, Some(space)) if !work.change.dropped.contains(&space) => {
                self.use_space(&mut work, space);
                let store = self.store().expect("an open store");
                let value = store.counter(SpaceId(space)) + 1;
                work.txn.set_counter(SpaceId(space), value);
                work.change.counters.insert(space, value);
            }
            (_, Some(space)) if !work.change.dropped.contains(&space) => {
                let is_deletion = choice % 4 == 0;
                let value = (!is_deletion).then(|| Value::from(vec![fill; len]));
                self.write(&mut work, (space, number), value);
            }
            (_, None) => self.create_space(&mut work),
            _ => {}
        }
        self.put_back(work);
    }

    pub(crate) fn write(&self, work: &mut OpenTransaction, place: Place, value: Option<Value>) {
        let (space, key) = (SpaceId(place.0), key(place.1));
        let locked = work
            .txn
            .lock(space, &key, LockMode::Exclusive, Wait::NoWait);
        if locked.is_err() {
            return;
        }
        self.use_space(work, place.0);
        if !work.change.writes.contains_key(&place) {
            self.read_newest(work, place);
        }
        match &value {
            Some(value) => work.txn.put(space, &key, value),
            None => work.txn.delete(space, &key),
        }
        work.change.writes.insert(place, value);
    }

    /// Who has locked a row reads its newest version, on disk or not, but none that has failed.
    fn read_newest(&self, work: &mut OpenTransaction, place: Place) {
        let Some(store) = self.store() else { return };
        let found = work
            .txn
            .latest_get(SpaceId(place.0), &key(place.1), |v| Value::from(v));
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.expect_disturbed("get what is newest", &error),
        };
        let is_read_only = store.stats().is_read_only;
        let state = self.state();
        let newest = match is_read_only {
            true => (state.model.contents_at(store.snapshot().ts().0), None),
            false => state.model.newest(place),
        };
        let (contents, writer) = newest;
        assert_eq!(found.as_ref(), contents.rows.get(&place), "{place:?}");
        if let Some(writer) = writer.filter(|writer| state.pending.contains(writer)) {
            assert!(work.txn.is_unconfirmed(), "{place:?} is of {writer}");
            work.rests_on.insert(writer);
        }
    }

    pub(crate) fn create_space(&self, work: &mut OpenTransaction) {
        let Some(store) = self.store() else { return };
        let space = store.allocate_space();
        work.txn.create_space(space);
        work.change.created.push(space.0);
    }

    /// As the catalog does: nobody else may be at the space.
    pub(crate) fn drop_space(&self, work: &mut OpenTransaction, space: u32) {
        let mut state = self.state();
        let is_free = state.spaces_in_use.get(&space).copied().unwrap_or(0) == 0;
        if !is_free {
            return;
        }
        state.spaces.retain(|s| *s != space);
        drop(state);
        self.use_space(work, space);
        work.txn.drop_space(SpaceId(space));
        work.change.dropped.push(space);
    }

    pub(crate) fn contents_now(&self, snapshot: &Snapshot) -> Arc<Contents> {
        let ts = snapshot.ts().0;
        let mut state = self.state();
        if let Some((cached, contents)) = &state.view_cache
            && *cached == ts
        {
            return Arc::clone(contents);
        }
        let contents = Arc::new(state.model.contents_at(ts));
        state.view_cache = Some((ts, Arc::clone(&contents)));
        contents
    }

    pub(crate) fn read_something(&self) {
        let (choice, number, space) = {
            let mut state = self.state();
            let space = self.pick_space(&mut state);
            (state.random.u8(..10), state.random.u16(..KEYS), space)
        };
        let Some(space) = space else { return };
        match choice {
            0..5 => self.read_in_transaction(space, number),
            5..8 => self.scan_in_transaction(space, number),
            8 => self.read_uncommitted(space, number),
            _ => self.read_in_snapshot(space, number),
        }
    }

    pub(crate) fn read_in_transaction(&self, space: u32, number: u16) {
        let Some(mut work) = self.take_transaction() else {
            return;
        };
        let view = self.view_of(&mut work);
        let place = (space, number);
        let own = work.change.writes.get(&place).cloned();
        let wanted = own.unwrap_or_else(|| view.rows.get(&place).cloned());
        let found = work
            .txn
            .get(SpaceId(space), &key(number), |v| Value::from(v));
        match found {
            Ok(found) => assert_eq!(
                found,
                wanted,
                "{place:?} at {:?}",
                work.txn.read_view().ts()
            ),
            Err(error) => self.expect_disturbed("get", &error),
        }
        self.put_back(work);
    }

    pub(crate) fn view_of(&self, work: &mut OpenTransaction) -> Arc<Contents> {
        if work.view.is_none() {
            let snapshot = work.txn.read_view().clone();
            work.view = Some(self.contents_now(&snapshot));
        }
        Arc::clone(work.view.as_ref().expect("just set"))
    }

    pub(crate) fn scan_in_transaction(&self, space: u32, number: u16) {
        let Some(mut work) = self.take_transaction() else {
            return;
        };
        let view = self.view_of(&mut work);
        let mut wanted: BTreeMap<u16, Value> = view
            .rows
            .range((space, number)..=(space, u16::MAX))
            .map(|((_, number), value)| (*number, Arc::clone(value)))
            .collect();
        for ((_, number), value) in work
            .change
            .writes
            .range((space, number)..=(space, u16::MAX))
        {
            match value {
                Some(value) => wanted.insert(*number, Arc::clone(value)),
                None => wanted.remove(number),
            };
        }
        let direction = match number % 2 {
            0 => Direction::Forward,
            _ => Direction::Backward,
        };
        let low = key(number);
        let bounds = (Bound::Included(&low[..]), Bound::Unbounded);
        let rows = work
            .txn
            .range(SpaceId(space), bounds, direction)
            .and_then(rows_of);
        match rows {
            Ok(rows) => assert!(
                rows == wanted,
                "scan of {space} from {number} by {direction:?}"
            ),
            Err(error) => self.expect_disturbed("scan", &error),
        }
        self.put_back(work);
    }

    /// Who reads what isn't committed has the writes of each open transaction, over what those read
    /// who lock rows.
    pub(crate) fn read_uncommitted(&self, space: u32, number: u16) {
        let Some(store) = self.store() else { return };
        let state = self.state();
        let settled = match store.stats().is_read_only {
            true => state.model.contents_at(store.snapshot().ts().0),
            false => state.model.newest((space, number)).0,
        };
        let of_space = (space, 0)..=(space, u16::MAX);
        let mut wanted: BTreeMap<u16, Value> = settled
            .rows
            .range(of_space.clone())
            .map(|((_, number), value)| (*number, Arc::clone(value)))
            .collect();
        let open = state.open.iter().map(|work| &work.change);
        for change in open.chain(state.prepared.iter().map(|work| &work.change)) {
            for ((_, number), value) in change.writes.range(of_space.clone()) {
                match value {
                    Some(value) => wanted.insert(*number, Arc::clone(value)),
                    None => wanted.remove(number),
                };
            }
        }
        drop(state);
        let newest = store.uncommitted();
        match newest.get(SpaceId(space), &key(number), |v| Value::from(v)) {
            Ok(found) => assert_eq!(found.as_ref(), wanted.get(&number)),
            Err(error) => self.expect_disturbed("get what isn't committed", &error),
        }
        let direction = match number % 2 {
            0 => Direction::Forward,
            _ => Direction::Backward,
        };
        let all = (Bound::Unbounded, Bound::Unbounded);
        let rows = newest
            .range(SpaceId(space), all, direction)
            .and_then(rows_of);
        match rows {
            Ok(rows) => assert!(rows == wanted, "scan of {space} by {direction:?}"),
            Err(error) => self.expect_disturbed("scan what isn't committed", &error),
        }
    }

    pub(crate) fn read_in_snapshot(&self, space: u32, number: u16) {
        let mut state = self.state();
        if state.snapshots.is_empty() {
            return;
        }
        let count = state.snapshots.len();
        let index = state.random.usize(..count);
        let (snapshot, contents) = state.snapshots[index].clone();
        drop(state);
        match snapshot.get(SpaceId(space), &key(number), |v| Value::from(v)) {
            Ok(found) => assert_eq!(found.as_ref(), contents.rows.get(&(space, number))),
            Err(error) => self.expect_disturbed("get from a snapshot", &error),
        }
    }

    pub(crate) fn take_snapshot(&self) {
        let Some(store) = self.store() else { return };
        let snapshot = store.snapshot();
        let contents = self.contents_now(&snapshot);
        let mut state = self.state();
        if state.snapshots.len() < 4 {
            state.snapshots.push((snapshot, contents));
        }
    }

    pub(crate) fn drop_snapshot(&self) {
        let mut state = self.state();
        if state.snapshots.is_empty() {
            return;
        }
        let count = state.snapshots.len();
        let index = state.random.usize(..count);
        let dropped = state.snapshots.swap_remove(index);
        drop(state);
        drop(dropped);
    }

    /// Removes one of the open transactions, chosen at random.
    pub(crate) fn remove_open(state: &mut RunState) -> Option<OpenTransaction> {
        let count = state.open.len();
        if count == 0 {
            return None;
        }
        let index = state.random.usize(..count);
        Some(state.open.swap_remove(index))
    }

    pub(crate) fn commit_one(&self) {
        let mut state = self.state();
        let Some(work) = Run::remove_open(&mut state) else {
            return;
        };
        let call = state.call;
        // Another thread would wait until the tree is free.
        let keeps_tree = matches!(call, StoreCall::Checkpoint | StoreCall::Shrink);
        // It is synced whatever the policy, and waits for the sync under way.
        let is_synced = call == StoreCall::IdleSync && work.txn.has_spilled();
        if state.depth > 0 && (keeps_tree && work.txn.is_large() || is_synced) {
            state.open.push(work);
            return;
        }
        if work.change.is_empty() {
            drop(state);
            return self.release_spaces(&work.spaces_in_use);
        }
        let number = state.model.begin_commit(work.change.clone());
        if state.depth == 0 {
            state.call = StoreCall::Commit;
        }
        drop(state);
        let policy = self.store().map(|store| store.flush_policy().get());
        let outcome = work.txn.commit();
        self.state().call = call;
        let (spaces_in_use, change) = (work.spaces_in_use, work.change);
        let rests_on = work.rests_on;
        let commit = match outcome {
            Ok(commit) => commit,
            Err(error) => {
                self.note("refused", number, 0);
                self.state().model.refused(number);
                self.not_dropped(&change);
                self.release_spaces(&spaces_in_use);
                return self.expect_disturbed("commit", &error);
            }
        };
        let ts = commit.ts().0;
        self.note("commit", number, ts);
        {
            let mut state = self.state();
            state.model.made(number, ts);
            state.pending.insert(number);
            state.counts.commits += 1;
        }
        let me = self.me.clone();
        commit.on_durable(Box::new(move |outcome| {
            if let Some(run) = me.upgrade() {
                run.release_spaces(&spaces_in_use);
                if outcome.is_ok() {
                    run.check_grounds(number, &rests_on);
                }
                run.finished(number, ts, policy, &change, outcome);
            }
        }));
    }

    /// What is acknowledged rests on nothing that has failed, or may fail yet.
    pub(crate) fn check_grounds(&self, number: u64, rests_on: &BTreeSet<u64>) {
        let state = self.state();
        for writer in rests_on {
            let is_good = !state.lost.contains(writer) && !state.pending.contains(writer);
            assert!(is_good, "{number} was acknowledged before {writer}");
        }
    }

    pub(crate) fn not_dropped(&self, change: &Change) {
        self.state().spaces.extend(&change.dropped);
    }

    pub(crate) fn finished(
        &self,
        number: u64,
        ts: u64,
        policy: Option<Flush>,
        change: &Change,
        outcome: Result<(), Error>,
    ) {
        self.note(if outcome.is_ok() { "done" } else { "failed" }, number, ts);
        let mut state = self.state();
        state.pending.remove(&number);
        match outcome {
            Ok(()) => {
                state.spaces.extend(&change.created);
                if policy == Some(Flush::AtCommit) {
                    state.model.durable = state.model.durable.max(ts);
                }
                if policy != Some(Flush::EachSecond) {
                    state.model.written = state.model.written.max(ts);
                }
            }
            Err(error) => {
                state.counts.failed_commits += 1;
                state.model.failed(number);
                state.lost.insert(number);
                state.spaces.extend(&change.dropped);
                drop(state);
                self.expect_disturbed("commit", &error);
            }
        }
    }

    pub(crate) fn roll_back(&self) {
        let mut state = self.state();
        let Some(work) = Run::remove_open(&mut state) else {
            return;
        };
        if !work.change.counters.is_empty() {
            state.model.is_last_ts_certain = false;
        }
        drop(state);
        self.release_spaces(&work.spaces_in_use);
        self.not_dropped(&work.change);
        work.txn.rollback();
    }

    pub(crate) fn during<R>(&self, call: StoreCall, act: impl FnOnce() -> R) -> R {
        let before = {
            let mut state = self.state();
            let before = state.call;
            if state.depth == 0 {
                state.call = call;
                state.operations_in_call = 0;
            }
            before
        };
        let result = act();
        self.state().call = before;
        result
    }

    pub(crate) fn sync_pending(&self) {
        let Some(store) = self.store() else { return };
        self.during(StoreCall::Commit, || store.sync_pending());
    }

    pub(crate) fn sync(&self) {
        let Some(store) = self.store() else { return };
        let is_idle = self.state().pending.is_empty();
        let call = match is_idle {
            true => StoreCall::IdleSync,
            false => StoreCall::Commit,
        };
        let visible = store.snapshot().ts().0;
        let outcome = self.during(call, || store.work(Work::Sync));
        let stats = store.stats();
        if outcome.is_ok() && !stats.is_read_only && stats.log_synced >= stats.log_written {
            self.note("synced", visible, 0);
            let mut state = self.state();
            state.model.durable = state.model.durable.max(visible);
            state.model.written = state.model.written.max(visible);
        }
    }

    pub(crate) fn preallocate(&self) {
        let Some(store) = self.store() else { return };
        self.note("spare", 0, 0);
        let outcome = self.during(StoreCall::Preallocate, || {
            store.work(Work::PreallocateSegment)
        });
        if let Err(error) = outcome {
            self.expect_disturbed("spare", &error);
        }
    }

    pub(crate) fn checkpoint(&self) {
        let Some(store) = self.store() else { return };
        let visible = store.snapshot().ts().0;
        self.note("merge", visible, 0);
        match self.during(StoreCall::Checkpoint, || store.checkpoint()) {
            Ok(()) => {
                self.note("merged", visible, 0);
                let mut state = self.state();
                state.counts.checkpoints += 1;
                state.model.durable = state.model.durable.max(visible);
                state.model.written = state.model.written.max(visible);
            }
            Err(error) => {
                self.note("merge failed", 0, 0);
                self.expect_disturbed("checkpoint", &error);
            }
        }
    }

    pub(crate) fn shrink(&self) {
        let Some(store) = self.store() else { return };
        self.note("shrink", 0, 0);
        match self.during(StoreCall::Shrink, || store.work(Work::Shrink)) {
            Ok(()) => self.state().counts.shrinks += 1,
            Err(error) => {
                self.note("shrink failed", 0, 0);
                self.expect_disturbed("shrink", &error);
            }
        }
    }

    pub(crate) fn recover(&self) {
        let Some(store) = self.store() else { return };
        let was_read_only = store.stats().is_read_only;
        let outcome = self.during(StoreCall::Commit, || store.work(Work::Recover));
        if let Err(error) = &outcome {
            self.note("recovery failed", 0, 0);
            self.expect_disturbed("recovery", error);
        }
        if was_read_only && !store.stats().is_read_only {
            self.note("recovered", store.snapshot().ts().0, 0);
            let mut state = self.state();
            state.counts.recoveries += 1;
            state.model.recovered();
        }
    }
}
