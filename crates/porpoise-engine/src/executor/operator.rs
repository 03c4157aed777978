//! Operators: what plan nodes become when they run.
//!
//! `open` starts an operator, again and again for the right side of a nested loop; `next` puts the
//! next row into the frame and says whether there was one. After `next` has said no, it is not asked
//! again before another `open`.

use std::collections::BinaryHeap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use porpoise_storage::{Cursor, Direction, LockMode, Wait};
use porpoise_types::{KeyBuf, Value, key::encode_text_head};
use smallvec::SmallVec;

use crate::error::Result;
use crate::executor::json_table::JsonTableOperator;
use crate::executor::key_range::{self, Bounds};
use crate::executor::row_buffer::{self, RowBuffer};
use crate::executor::{Exec, index_entry};
use crate::expr::{Expr, Slot};
use crate::functions::Accumulator;
use crate::planner::plan::{
    Access, Aggregate, Group, JoinKind, Node, OnLocked, RowLock, Scan, SetOperator, SortKey,
};

pub trait Operator {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()>;
    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool>;
}

pub type BoxedOperator<'p> = Box<dyn Operator + 'p>;

/// Makes the operator of a node, and of all below it.
pub fn build(node: &Node) -> BoxedOperator<'_> {
    match node {
        Node::One => Box::new(One { done: true }),
        Node::Empty => Box::new(Empty),
        Node::Scan(scan) => Box::new(ScanOperator::new(scan)),
        Node::Values { slot, rows } => Box::new(Values {
            slot: *slot,
            rows,
            at: 0,
        }),
        Node::JsonTable { slot, doc, table } => Box::new(JsonTableOperator::new(*slot, doc, table)),
        Node::Virtual {
            slot,
            table,
            filter,
        } => Box::new(Virtual {
            slot: *slot,
            table,
            filter,
            rows: RowBuffer::default(),
            at: 0,
        }),
        Node::Derived {
            slot,
            input,
            output,
            materialize,
            correlated,
        } => match materialize {
            Some(number) if !correlated => Box::new(Materialized {
                slot: *slot,
                input,
                output,
                number: *number,
                rows: Arc::default(),
                at: 0,
            }),
            _ => Box::new(Project {
                input: build(input),
                slot: *slot,
                output,
            }),
        },
        Node::Recursive {
            slot,
            seed,
            seed_output,
            step,
            step_output,
            distinct,
            working,
        } => Box::new(Recursive {
            slot: *slot,
            parts: [(&**seed, &seed_output[..]), (&**step, &step_output[..])],
            distinct: *distinct,
            working: *working,
            rows: RowBuffer::default(),
            at: 0,
        }),
        Node::Working { slot, working } => Box::new(Working {
            slot: *slot,
            working: *working,
            rows: Arc::default(),
            at: 0,
        }),
        Node::Filter { input, conditions } => Box::new(Filter {
            input: build(input),
            conditions,
        }),
        Node::NestedLoop {
            left,
            right,
            kind,
            condition,
        } => Box::new(NestedLoop {
            left: build(left),
            right: build(right),
            right_slots: slots_of(right),
            kind: *kind,
            condition,
            state: LoopState::NeedLeft,
        }),
        Node::HashJoin {
            left,
            right,
            kind,
            left_keys,
            right_keys,
            condition,
            right_slots,
        } => Box::new(HashJoin {
            left: build(left),
            right: build(right),
            kind: *kind,
            left_keys,
            right_keys,
            condition,
            right_slots,
            rows: RowBuffer::default(),
            table: HashMap::new(),
            matches: None,
        }),
        Node::Group(group) => Box::new(GroupOperator::new(group)),
        Node::Project {
            input,
            slot,
            output,
        } => Box::new(Project {
            input: build(input),
            slot: *slot,
            output,
        }),
        Node::Sort {
            input,
            keys,
            limit: None,
            distinct,
            slots,
        } => Box::new(Sort {
            input: build(input),
            keys,
            distinct: *distinct,
            slots,
            rows: RowBuffer::default(),
            key_bytes: Vec::new(),
            keys_at: Vec::new(),
            order: Vec::new(),
            at: 0,
        }),
        Node::Sort {
            input,
            keys,
            limit: Some(limit),
            slots,
            ..
        } => Box::new(TopSort {
            input: build(input),
            keys,
            limit,
            slots,
            rows: Vec::new(),
            at: 0,
        }),
        Node::Distinct { input, keys } => Box::new(Distinct {
            input: build(input),
            keys,
            seen: HashSet::new(),
        }),
        Node::Limit {
            input,
            offset,
            count,
        } => Box::new(Limit {
            input: build(input),
            offset: offset.as_deref(),
            count: count.as_deref(),
            left: 0,
        }),
        Node::SetOperation {
            slot,
            op,
            distinct,
            inputs,
        } => Box::new(SetOperation {
            slot: *slot,
            op: *op,
            distinct: *distinct,
            inputs,
            rows: RowBuffer::default(),
            at: 0,
            seen: HashSet::new(),
            current: None,
        }),
        Node::Window(window) => Box::new(crate::executor::window::WindowOperator::new(window)),
    }
}

/// The slots a node's rows live in: what has to be kept to keep its row.
pub fn slots_of(node: &Node) -> Vec<Slot> {
    match node {
        Node::One | Node::Empty => Vec::new(),
        Node::Scan(scan) => vec![scan.slot],
        Node::Values { slot, .. }
        | Node::JsonTable { slot, .. }
        | Node::Virtual { slot, .. }
        | Node::Derived { slot, .. }
        | Node::Recursive { slot, .. }
        | Node::Working { slot, .. }
        | Node::SetOperation { slot, .. } => vec![*slot],
        Node::Group(group) => vec![group.slot],
        Node::Filter { input, .. }
        | Node::Distinct { input, .. }
        | Node::Limit { input, .. }
        | Node::Sort { input, .. } => slots_of(input),
        Node::Project { input, slot, .. } => {
            let mut slots = slots_of(input);
            slots.push(*slot);
            slots
        }
        Node::NestedLoop {
            left, right, kind, ..
        }
        | Node::HashJoin {
            left, right, kind, ..
        } => {
            let mut slots = slots_of(left);
            if matches!(kind, JoinKind::Inner | JoinKind::Left) {
                slots.extend(slots_of(right));
            }
            slots
        }
        Node::Window(window) => {
            let mut slots = slots_of(&window.input);
            slots.push(window.slot);
            slots
        }
    }
}

/// Whether every condition is true (neither false nor NULL).
pub fn all_true(conditions: &[Expr], exec: &mut Exec<'_>) -> Result<bool> {
    for condition in conditions {
        if !condition.eval_condition(exec)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Computes expressions and encodes them into a slot.
pub fn project(exec: &mut Exec<'_>, slot: Slot, output: &[Expr]) -> Result<()> {
    let mut values: SmallVec<[Value; 8]> = SmallVec::with_capacity(output.len());
    for expr in output {
        values.push(expr.eval(exec)?);
    }
    exec.fill(slot, &values)
}

/// The comparable key of some expressions over the current row.
pub fn key_of<'p>(
    exec: &mut Exec<'_>,
    exprs: impl Iterator<Item = (&'p Expr, bool)>,
    out: &mut KeyBuf,
) -> Result<()> {
    out.clear();
    for (expr, descending) in exprs {
        let value = expr.eval(exec)?;
        key_range::encode_values(std::iter::once((&value, &expr.ty, descending)), out);
    }
    Ok(())
}

struct One {
    done: bool,
}

impl Operator for One {
    fn open(&mut self, _: &mut Exec<'_>) -> Result<()> {
        self.done = false;
        Ok(())
    }

    fn next(&mut self, _: &mut Exec<'_>) -> Result<bool> {
        Ok(!std::mem::replace(&mut self.done, true))
    }
}

struct Empty;

impl Operator for Empty {
    fn open(&mut self, _: &mut Exec<'_>) -> Result<()> {
        Ok(())
    }

    fn next(&mut self, _: &mut Exec<'_>) -> Result<bool> {
        Ok(false)
    }
}

/// Reads a table, by whatever access path the plan chose.
///
/// A locking scan reads what is newest, locks each row that passes the filter, and looks again at what it
/// locked: another transaction may have changed it while this one waited.
struct ScanOperator<'p> {
    scan: &'p Scan,
    point: Option<KeyBuf>,
    bounds: SmallVec<[Bounds; 1]>,
    at: usize,
    cursor: Option<Cursor>,
    /// Rows yielded, to number a locking scan's waits.
    primary_key: KeyBuf,
}

impl<'p> ScanOperator<'p> {
    fn new(scan: &'p Scan) -> ScanOperator<'p> {
        ScanOperator {
            scan,
            point: None,
            bounds: SmallVec::new(),
            at: 0,
            cursor: None,
            primary_key: KeyBuf::new(),
        }
    }

    fn latest(&self) -> bool {
        self.scan.lock != RowLock::None
    }

    /// Looks a row up by its primary key, into the slot.
    fn fetch(&self, exec: &mut Exec<'_>, primary_key: &[u8]) -> Result<bool> {
        let latest = self.latest();
        let row = &mut exec.frame.slots[self.scan.slot.0 as usize];
        let found = Exec::read(
            &exec.view,
            self.scan.table.space,
            primary_key,
            latest,
            |bytes| row.set(bytes),
        )?;
        row.set_key(primary_key);
        Ok(found.is_some())
    }

    /// Filters, locks and checks again the row in the slot.
    fn accept(&self, exec: &mut Exec<'_>) -> Result<bool> {
        if !all_true(&self.scan.filter, exec)? {
            return Ok(false);
        }
        let (mode, on_locked) = match self.scan.lock {
            RowLock::None => return Ok(true),
            RowLock::Shared(on_locked) => (LockMode::Shared, on_locked),
            RowLock::Exclusive(on_locked) => (LockMode::Exclusive, on_locked),
        };
        let slot = self.scan.slot.0 as usize;
        let key = exec.frame.slots[slot].key.clone();
        let wait = match on_locked {
            OnLocked::Wait => Wait::Timeout(exec.session.lock_wait_timeout()),
            OnLocked::Fail | OnLocked::Skip => Wait::NoWait,
        };
        let space = self.scan.table.space;
        match exec.transaction()?.lock(space, &key, mode, wait) {
            Ok(porpoise_storage::Locked::AlreadyHeld) => return Ok(true),
            Ok(porpoise_storage::Locked::Granted) => {}
            Err(porpoise_storage::LockError::Busy) if on_locked == OnLocked::Skip => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.fetch(exec, &key)? && all_true(&self.scan.filter, exec)?)
    }

    fn open_cursor(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(bounds) = self.bounds.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        let space = match &self.scan.access {
            Access::Full => self.scan.table.space,
            Access::Index { index, .. } | Access::Point { index, .. } => {
                self.scan.table.indexes[*index].space
            }
        };
        let low = Bound::Included(bounds.low.as_slice());
        let high = bounds
            .high
            .as_ref()
            .map_or(Bound::Unbounded, |high| Bound::Excluded(high.as_slice()));
        let direction = if self.scan.reverse {
            Direction::Backward
        } else {
            Direction::Forward
        };
        self.cursor = Some(exec.cursor(space, low, high, direction, self.latest())?);
        Ok(true)
    }
}

impl Operator for ScanOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.cursor = None;
        self.point = None;
        self.at = 0;
        self.bounds.clear();
        let table = &self.scan.table;
        match &self.scan.access {
            Access::Full => self.bounds.push(Bounds {
                low: KeyBuf::new(),
                high: None,
            }),
            Access::Index { index, ranges, .. } => {
                self.bounds = key_range::all_bounds(exec, table, &table.indexes[*index], ranges)?;
                if self.scan.reverse {
                    self.bounds.reverse();
                }
            }
            Access::Point { index, key, .. } => {
                self.point = key_range::point(exec, table, &table.indexes[*index], key)?
            }
        }
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let slot = self.scan.slot.0 as usize;
        let table = &self.scan.table;
        if let Access::Point {
            index, covering, ..
        } = &self.scan.access
        {
            let Some(key) = self.point.take() else {
                return Ok(false);
            };
            let index = &table.indexes[*index];
            if index.space == table.space {
                return Ok(self.fetch(exec, &key)? && self.accept(exec)?);
            }
            let latest = self.latest();
            let row = &mut exec.frame.slots[slot];
            let primary_key = &mut self.primary_key;
            primary_key.clear();
            let found = Exec::read(&exec.view, index.space, &key, latest, |entry| {
                let (of_row, columns) = index_entry::split(entry);
                primary_key.extend_from_slice(of_row);
                row.set(columns);
            })?;
            let primary_key = self.primary_key.clone();
            return Ok(found.is_some()
                && {
                    exec.frame.slots[slot].set_key(&primary_key);
                    *covering || self.fetch(exec, &primary_key)?
                }
                && self.accept(exec)?);
        }
        loop {
            let Some(cursor) = &mut self.cursor else {
                if !self.open_cursor(exec)? {
                    return Ok(false);
                }
                continue;
            };
            let Some((key, value)) = cursor.next()? else {
                self.cursor = None;
                continue;
            };
            exec.check_interrupt()?;
            let row = &mut exec.frame.slots[slot];
            match &self.scan.access {
                Access::Index {
                    index, covering, ..
                } if table.indexes[*index].space != table.space => {
                    let (primary_key, columns) = index_entry::split(value);
                    if *covering {
                        row.set(columns);
                        row.set_key(primary_key);
                    } else {
                        self.primary_key.clear();
                        self.primary_key.extend_from_slice(primary_key);
                        let primary_key = std::mem::take(&mut self.primary_key);
                        let found = self.fetch(exec, &primary_key)?;
                        self.primary_key = primary_key;
                        if !found {
                            continue;
                        }
                    }
                }
                _ => {
                    row.set(value);
                    row.set_key(key);
                }
            }
            if self.accept(exec)? {
                return Ok(true);
            }
        }
    }
}

struct Values<'p> {
    slot: Slot,
    rows: &'p [Vec<Expr>],
    at: usize,
}

impl Operator for Values<'_> {
    fn open(&mut self, _: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(row) = self.rows.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        project(exec, self.slot, row)?;
        Ok(true)
    }
}

struct Virtual<'p> {
    slot: Slot,
    table: &'static crate::catalog::VirtualTable,
    filter: &'p [Expr],
    rows: RowBuffer,
    at: usize,
}

impl Operator for Virtual<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        self.rows.clear();
        let (slot, filter, rows) = (self.slot, self.filter, &mut self.rows);
        let lookup = self.table.lookup(slot, filter, exec)?;
        (self.table.rows)(exec, &lookup, &mut |exec, values| {
            exec.check_interrupt()?;
            exec.fill(slot, values)?;
            if all_true(filter, exec)? {
                rows.push(&exec.frame, &[slot]);
            }
            Ok(())
        })
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.at, exec, &[self.slot])
    }
}

/// Yields a buffer's next row.
pub(super) fn replay(
    rows: &RowBuffer,
    at: &mut usize,
    exec: &mut Exec<'_>,
    slots: &[Slot],
) -> Result<bool> {
    if *at >= rows.len() {
        return Ok(false);
    }
    rows.restore(*at, &mut exec.frame, slots);
    *at += 1;
    Ok(true)
}

struct Materialized<'p> {
    slot: Slot,
    input: &'p Node,
    output: &'p [Expr],
    number: usize,
    rows: Arc<RowBuffer>,
    at: usize,
}

impl Operator for Materialized<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        if let Some(rows) = exec.materialized.get(&self.number) {
            self.rows = rows.clone();
            return Ok(());
        }
        let mut rows = RowBuffer::default();
        let mut input = build(self.input);
        input.open(exec)?;
        while input.next(exec)? {
            project(exec, self.slot, self.output)?;
            rows.push(&exec.frame, &[self.slot]);
        }
        self.rows = Arc::new(rows);
        exec.materialized.insert(self.number, self.rows.clone());
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.at, exec, &[self.slot])
    }
}

struct Recursive<'p> {
    slot: Slot,
    /// Seed and step, each with its output.
    parts: [(&'p Node, &'p [Expr]); 2],
    distinct: bool,
    working: usize,
    rows: RowBuffer,
    at: usize,
}

impl Operator for Recursive<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        self.rows.clear();
        let slots = [self.slot];
        let mut seen: HashSet<Box<[u8]>> = HashSet::new();
        let mut rounds = 0;
        let most = exec.session.cte_max_recursion_depth();
        loop {
            let (node, output) = self.parts[usize::from(rounds > 0)];
            let mut round = RowBuffer::default();
            let mut input = build(node);
            input.open(exec)?;
            while input.next(exec)? {
                exec.check_interrupt()?;
                if self.distinct {
                    let mut key = KeyBuf::new();
                    key_of(exec, output.iter().map(|expr| (expr, false)), &mut key)?;
                    if !seen.insert(key.as_slice().into()) {
                        continue;
                    }
                }
                project(exec, self.slot, output)?;
                self.rows.push(&exec.frame, &slots);
                round.push(&exec.frame, &slots);
            }
            if round.is_empty() {
                break;
            }
            if rounds > most {
                return Err(crate::Error::recursive_cte_depth(rounds));
            }
            rounds += 1;
            exec.working.insert(self.working, Arc::new(round));
        }
        exec.working.remove(&self.working);
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.at, exec, &[self.slot])
    }
}

struct Working {
    slot: Slot,
    working: usize,
    rows: Arc<RowBuffer>,
    at: usize,
}

impl Operator for Working {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        self.rows = exec.working.get(&self.working).cloned().unwrap_or_default();
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.at, exec, &[self.slot])
    }
}

struct Filter<'p> {
    input: BoxedOperator<'p>,
    conditions: &'p [Expr],
}

impl Operator for Filter<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        while self.input.next(exec)? {
            if all_true(self.conditions, exec)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

enum LoopState {
    NeedLeft,
    /// The right side is open; whether a row of it has matched the left one.
    InRight {
        matched: bool,
    },
}

struct NestedLoop<'p> {
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    right_slots: Vec<Slot>,
    kind: JoinKind,
    condition: &'p [Expr],
    state: LoopState,
}

impl Operator for NestedLoop<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.state = LoopState::NeedLeft;
        self.left.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            match self.state {
                LoopState::NeedLeft => {
                    if !self.left.next(exec)? {
                        return Ok(false);
                    }
                    self.right.open(exec)?;
                    self.state = LoopState::InRight { matched: false };
                }
                LoopState::InRight { matched } => {
                    exec.check_interrupt()?;
                    if self.right.next(exec)? {
                        if !all_true(self.condition, exec)? {
                            continue;
                        }
                        match self.kind {
                            JoinKind::Inner | JoinKind::Left => {
                                self.state = LoopState::InRight { matched: true };
                                return Ok(true);
                            }
                            JoinKind::Semi => {
                                self.state = LoopState::NeedLeft;
                                return Ok(true);
                            }
                            JoinKind::Anti => self.state = LoopState::NeedLeft,
                        }
                    } else {
                        self.state = LoopState::NeedLeft;
                        match self.kind {
                            JoinKind::Left if !matched => {
                                for slot in &self.right_slots {
                                    exec.frame.slots[slot.0 as usize].set_null();
                                }
                                return Ok(true);
                            }
                            JoinKind::Anti => return Ok(true),
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}

struct HashJoin<'p> {
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    kind: JoinKind,
    left_keys: &'p [Expr],
    right_keys: &'p [Expr],
    condition: &'p [Expr],
    right_slots: &'p [Slot],
    rows: RowBuffer,
    table: HashMap<Box<[u8]>, Vec<u32>>,
    /// The current left row's matches: its key, how many were tried, whether one passed.
    matches: Option<(KeyBuf, usize, bool)>,
}

impl HashJoin<'_> {
    /// The key, or `None` if a part of it is NULL: NULL equals nothing.
    fn key(exec: &mut Exec<'_>, exprs: &[Expr]) -> Result<Option<KeyBuf>> {
        let mut key = KeyBuf::new();
        for expr in exprs {
            let value = expr.eval(exec)?;
            if value.is_null() {
                return Ok(None);
            }
            key_range::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
        }
        Ok(Some(key))
    }
}

impl Operator for HashJoin<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.table.clear();
        self.matches = None;
        self.right.open(exec)?;
        while self.right.next(exec)? {
            let Some(key) = Self::key(exec, self.right_keys)? else {
                continue;
            };
            let number = self.rows.len() as u32;
            self.rows.push(&exec.frame, self.right_slots);
            match self.table.get_mut(key.as_slice()) {
                Some(rows) => rows.push(number),
                None => {
                    self.table.insert(key.as_slice().into(), vec![number]);
                }
            }
        }
        self.left.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            let Some((key, tried, passed)) = &mut self.matches else {
                if !self.left.next(exec)? {
                    return Ok(false);
                }
                exec.check_interrupt()?;
                let key = Self::key(exec, self.left_keys)?;
                self.matches = Some((key.unwrap_or_default(), 0, false));
                continue;
            };
            let rows = self
                .table
                .get(key.as_slice())
                .map_or(&[][..], Vec::as_slice);
            if let Some(&row) = rows.get(*tried) {
                *tried += 1;
                self.rows
                    .restore(row as usize, &mut exec.frame, self.right_slots);
                if !all_true(self.condition, exec)? {
                    continue;
                }
                *passed = true;
                match self.kind {
                    JoinKind::Inner | JoinKind::Left => return Ok(true),
                    JoinKind::Semi => {
                        self.matches = None;
                        return Ok(true);
                    }
                    JoinKind::Anti => self.matches = None,
                }
            } else {
                let passed = *passed;
                self.matches = None;
                match self.kind {
                    JoinKind::Left if !passed => {
                        for slot in self.right_slots {
                            exec.frame.slots[slot.0 as usize].set_null();
                        }
                        return Ok(true);
                    }
                    JoinKind::Anti => return Ok(true),
                    _ => {}
                }
            }
        }
    }
}

struct Project<'p> {
    input: BoxedOperator<'p>,
    slot: Slot,
    output: &'p [Expr],
}

impl Operator for Project<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if !self.input.next(exec)? {
            return Ok(false);
        }
        project(exec, self.slot, self.output)?;
        Ok(true)
    }
}

/// The running aggregates of one group.
struct GroupState {
    keys: Vec<Value>,
    accumulators: Vec<Running>,
}

struct Running {
    accumulator: Box<dyn Accumulator>,
    /// Argument combinations seen, for the DISTINCT forms.
    seen: Option<HashSet<Box<[u8]>>>,
}

impl GroupState {
    fn new(keys: Vec<Value>, aggregates: &[Aggregate]) -> GroupState {
        let accumulators = aggregates
            .iter()
            .map(|aggregate| Running {
                accumulator: (aggregate.function.start)(aggregate),
                seen: aggregate.distinct.then(HashSet::new),
            })
            .collect();
        GroupState { keys, accumulators }
    }

    fn add(&mut self, exec: &mut Exec<'_>, aggregates: &[Aggregate]) -> Result<()> {
        for (running, aggregate) in self.accumulators.iter_mut().zip(aggregates) {
            let mut arguments: SmallVec<[Value; 2]> = SmallVec::new();
            for argument in &aggregate.arguments {
                arguments.push(argument.eval(exec)?);
            }
            if let Some(seen) = &mut running.seen {
                // Only whole combinations count: one NULL and the row is left out.
                let counted = aggregate
                    .arguments
                    .len()
                    .saturating_sub(aggregate.order.len());
                if arguments[..counted].iter().any(Value::is_null) {
                    continue;
                }
                let mut key = KeyBuf::new();
                let typed = arguments[..counted].iter().zip(&aggregate.arguments);
                key_range::encode_values(
                    typed.map(|(value, expr)| (value, &expr.ty, false)),
                    &mut key,
                );
                if !seen.insert(key.as_slice().into()) {
                    continue;
                }
            }
            running.accumulator.add(exec, &arguments)?;
        }
        Ok(())
    }

    /// The group's row: keys (NULL from `keep` on, for ROLLUP's sums), then aggregates.
    /// With ROLLUP, the mask of the keys that are rolled up comes last.
    fn finish(&mut self, exec: &mut Exec<'_>, slot: Slot, keep: usize, rollup: bool) -> Result<()> {
        let mut values: SmallVec<[Value; 8]> = SmallVec::new();
        for (position, key) in self.keys.iter().enumerate() {
            values.push(if position < keep {
                key.clone()
            } else {
                Value::Null
            });
        }
        for running in &mut self.accumulators {
            values.push(running.accumulator.finish(exec)?);
        }
        if rollup {
            let rolled_up = (keep..self.keys.len().min(64)).fold(0u64, |mask, key| mask | 1 << key);
            values.push(Value::UInt(rolled_up));
        }
        exec.fill(slot, &values)
    }
}

/// Groups its input: by a hash table, or group after group when the input comes ordered.
///
/// ROLLUP keeps a state for each number of leading keys, from all of them down to none; a level is
/// finished when a key within it changes.
struct GroupOperator<'p> {
    group: &'p Group,
    input: BoxedOperator<'p>,
    /// Finished rows not yet yielded.
    ready: RowBuffer,
    at: usize,
    /// Ordered input: the state of each level (one without ROLLUP), and the encoded keys of the group.
    levels: Vec<GroupState>,
    level_keys: Vec<KeyBuf>,
    done: bool,
}

impl<'p> GroupOperator<'p> {
    fn new(group: &'p Group) -> GroupOperator<'p> {
        GroupOperator {
            group,
            input: build(&group.input),
            ready: RowBuffer::default(),
            at: 0,
            levels: Vec::new(),
            level_keys: Vec::new(),
            done: false,
        }
    }

    fn keys(&self, exec: &mut Exec<'_>) -> Result<(Vec<Value>, Vec<KeyBuf>)> {
        let mut values = Vec::with_capacity(self.group.keys.len());
        let mut encoded = Vec::with_capacity(self.group.keys.len());
        for expr in &self.group.keys {
            let value = expr.eval(exec)?;
            let mut key = KeyBuf::new();
            key_range::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
            values.push(value);
            encoded.push(key);
        }
        Ok((values, encoded))
    }

    fn hash(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut groups: Vec<GroupState> = Vec::new();
        let mut by_key: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut key = KeyBuf::new();
        while self.input.next(exec)? {
            let mut values = Vec::with_capacity(self.group.keys.len());
            key.clear();
            for expr in &self.group.keys {
                let value = expr.eval(exec)?;
                key_range::encode_values(std::iter::once((&value, &expr.ty, false)), &mut key);
                values.push(value);
            }
            let number = match by_key.get(key.as_slice()) {
                Some(&number) => number,
                None => {
                    groups.push(GroupState::new(values, &self.group.aggregates));
                    by_key.insert(key.as_slice().into(), groups.len() - 1);
                    groups.len() - 1
                }
            };
            groups[number].add(exec, &self.group.aggregates)?;
        }
        if groups.is_empty() && self.group.scalar {
            groups.push(GroupState::new(Vec::new(), &self.group.aggregates));
        }
        for mut group in groups {
            group.finish(exec, self.group.slot, usize::MAX, false)?;
            self.ready.push(&exec.frame, &[self.group.slot]);
        }
        self.done = true;
        Ok(())
    }

    /// Finishes the levels that keep more than `keep` keys, deepest first.
    fn finish_levels(&mut self, exec: &mut Exec<'_>, keep: usize) -> Result<()> {
        let keys = self.group.keys.len();
        while let Some(mut level) = self.levels.pop() {
            let kept = if self.group.rollup {
                self.levels.len()
            } else {
                keys
            };
            if kept <= keep && keep != usize::MAX && self.group.rollup {
                self.levels.push(level);
                break;
            }
            level.finish(exec, self.group.slot, kept, self.group.rollup)?;
            self.ready.push(&exec.frame, &[self.group.slot]);
        }
        Ok(())
    }

    /// Reads on until a group is finished.
    fn ordered(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let keys = self.group.keys.len();
        while self.ready.is_empty() && !self.done {
            if !self.input.next(exec)? {
                self.done = true;
                if self.levels.is_empty() && self.group.scalar {
                    self.levels
                        .push(GroupState::new(Vec::new(), &self.group.aggregates));
                }
                self.finish_levels(exec, usize::MAX)?;
                break;
            }
            let (values, encoded) = self.keys(exec)?;
            let same = self
                .level_keys
                .iter()
                .zip(&encoded)
                .take_while(|(a, b)| a == b)
                .count();
            let fresh = self.levels.is_empty();
            if !fresh && same < keys {
                // Finishing writes the group's slot only; the input's current row stays in its own.
                self.finish_levels(exec, if self.group.rollup { same } else { usize::MAX })?;
            }
            let wanted = if self.group.rollup { keys + 1 } else { 1 };
            while self.levels.len() < wanted {
                self.levels
                    .push(GroupState::new(values.clone(), &self.group.aggregates));
            }
            self.level_keys = encoded;
            for level in &mut self.levels {
                level.add(exec, &self.group.aggregates)?;
            }
        }
        Ok(())
    }
}

impl Operator for GroupOperator<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.ready.clear();
        self.at = 0;
        self.levels.clear();
        self.level_keys.clear();
        self.done = false;
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        loop {
            if replay(&self.ready, &mut self.at, exec, &[self.group.slot])? {
                return Ok(true);
            }
            if self.done {
                return Ok(false);
            }
            self.ready.clear();
            self.at = 0;
            if self.group.ordered || self.group.rollup || self.group.keys.is_empty() {
                self.ordered(exec)?;
            } else {
                self.hash(exec)?;
            }
        }
    }
}

struct SortedRow {
    key: Box<[u8]>,
    /// Arrival order: equal keys keep it.
    number: u64,
    row: Box<[u8]>,
}

impl PartialEq for SortedRow {
    fn eq(&self, other: &SortedRow) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SortedRow {}

impl PartialOrd for SortedRow {
    fn partial_cmp(&self, other: &SortedRow) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortedRow {
    fn cmp(&self, other: &SortedRow) -> std::cmp::Ordering {
        self.key
            .cmp(&other.key)
            .then(self.number.cmp(&other.number))
    }
}

/// Keeps the first rows of an order, and no more.
struct TopSort<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    limit: &'p Expr,
    slots: &'p [Slot],
    rows: Vec<SortedRow>,
    at: usize,
}

impl Operator for TopSort<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.at = 0;
        let most = usize::try_from(count_of(exec, self.limit)?).unwrap_or(usize::MAX);
        self.input.open(exec)?;
        let mut heap = BinaryHeap::new();
        let (mut key, mut saved, mut number) = (KeyBuf::new(), Vec::new(), 0);
        while self.input.next(exec)? {
            key_of(
                exec,
                self.keys.iter().map(|key| (&key.expr, key.descending)),
                &mut key,
            )?;
            number += 1;
            if heap.len() >= most
                && heap
                    .peek()
                    .is_none_or(|worst: &SortedRow| *worst.key <= *key)
            {
                continue;
            }
            saved.clear();
            row_buffer::save(&exec.frame, self.slots, &mut saved);
            heap.push(SortedRow {
                key: key.as_slice().into(),
                number,
                row: saved.as_slice().into(),
            });
            if heap.len() > most {
                heap.pop();
            }
        }
        self.rows = heap.into_sorted_vec();
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(row) = self.rows.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        row_buffer::restore(&row.row, &mut exec.frame, self.slots);
        Ok(true)
    }
}

/// A row to be sorted.
#[derive(Clone, Copy)]
struct Sortable {
    /// The key's first bytes: nearly always enough to tell two rows apart.
    prefix: u64,
    row: u32,
    /// The key is no longer than its prefix.
    is_whole: bool,
}

/// Sorts all rows.
///
/// ```text
/// 1. rows come in: each is kept, and the first eight bytes of its key are taken
/// 2. sort by these
/// 3. where they are equal, and not the whole key, make the keys and sort by them
/// ```
///
/// So of a long text most is never looked at. Keys that are more than columns are made as the rows come: what they are
/// computed from may change.
struct Sort<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    distinct: bool,
    slots: &'p [Slot],
    rows: RowBuffer,
    /// Keys, side by side.
    key_bytes: Vec<u8>,
    /// Where each row's key lies in them, if it was made.
    keys_at: Vec<Range<usize>>,
    order: Vec<Sortable>,
    at: usize,
}

const PREFIX_BYTES: usize = size_of::<u64>();

impl Sort<'_> {
    fn is_of_columns(&self) -> bool {
        self.keys.iter().all(|key| key.expr.as_column().is_some())
    }

    fn whole_key(&self, exec: &mut Exec<'_>, key: &mut KeyBuf) -> Result<()> {
        key_of(
            exec,
            self.keys.iter().map(|key| (&key.expr, key.descending)),
            key,
        )
    }

    /// The beginning of the current row's key, at least as long as the prefix. True if that is all.
    fn head_of_key(&self, exec: &mut Exec<'_>, head: &mut KeyBuf) -> Result<bool> {
        head.clear();
        for key in self.keys {
            if head.len() >= PREFIX_BYTES {
                return Ok(false);
            }
            if let Some((text, collation)) = exec.text_column(&key.expr) {
                if !encode_text_head(text, collation, true, key.descending, head) {
                    return Ok(false);
                }
            } else {
                let value = key.expr.eval(exec)?;
                let part = (&value, &key.expr.ty, key.descending);
                key_range::encode_values(std::iter::once(part), head);
            }
        }
        Ok(true)
    }

    fn made_key(&self, row: u32) -> &[u8] {
        let at = self.keys_at.get(row as usize).cloned().unwrap_or_default();
        &self.key_bytes[at]
    }

    fn note_key(&mut self, row: u32, key: &[u8]) {
        let from = self.key_bytes.len();
        self.key_bytes.extend_from_slice(key);
        let row = row as usize;
        if self.keys_at.len() <= row {
            self.keys_at.resize(row + 1, 0..0);
        }
        self.keys_at[row] = from..self.key_bytes.len();
    }

    /// Puts rows whose prefixes are equal in order, and drops what is there twice if only distinct rows are wanted.
    fn settle_ties(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        let mut key = KeyBuf::new();
        let has_keys = !self.is_of_columns();
        for tied in order.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if tied.len() == 1 || tied.iter().all(|row| row.is_whole) {
                continue;
            }
            if !has_keys {
                for row in tied.iter() {
                    self.rows
                        .restore(row.row as usize, &mut exec.frame, self.slots);
                    self.whole_key(exec, &mut key)?;
                    self.note_key(row.row, &key);
                }
            }
            // Equal keys keep the order in which they came.
            tied.sort_unstable_by(|a, b| {
                (self.made_key(a.row).cmp(self.made_key(b.row))).then(a.row.cmp(&b.row))
            });
        }
        if self.distinct {
            order.dedup_by(|b, a| {
                a.prefix == b.prefix
                    && (a.is_whole && b.is_whole || self.made_key(a.row) == self.made_key(b.row))
            });
        }
        self.order = order;
        Ok(())
    }
}

impl Operator for Sort<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.key_bytes.clear();
        self.keys_at.clear();
        self.order.clear();
        self.at = 0;
        self.input.open(exec)?;
        let is_of_columns = self.is_of_columns();
        let mut key = KeyBuf::new();
        while self.input.next(exec)? {
            let row = u32::try_from(self.rows.len())
                .map_err(|_| crate::Error::engine_error("a sort of too many rows"))?;
            let is_all = if is_of_columns {
                self.head_of_key(exec, &mut key)?
            } else {
                self.whole_key(exec, &mut key)?;
                self.note_key(row, &key);
                true
            };
            let mut prefix = [0; PREFIX_BYTES];
            let len = key.len().min(PREFIX_BYTES);
            prefix[..len].copy_from_slice(&key[..len]);
            self.order.push(Sortable {
                prefix: u64::from_be_bytes(prefix),
                row,
                is_whole: is_all && key.len() <= PREFIX_BYTES,
            });
            self.rows.push(&exec.frame, self.slots);
        }
        self.order.sort_unstable_by_key(|row| (row.prefix, row.row));
        self.settle_ties(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let Some(row) = self.order.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        self.rows
            .restore(row.row as usize, &mut exec.frame, self.slots);
        Ok(true)
    }
}

struct Distinct<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [Expr],
    seen: HashSet<Box<[u8]>>,
}

impl Operator for Distinct<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.seen.clear();
        self.input.open(exec)
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        let mut key = KeyBuf::new();
        while self.input.next(exec)? {
            key_of(exec, self.keys.iter().map(|expr| (expr, false)), &mut key)?;
            if !self.seen.contains(key.as_slice()) {
                self.seen.insert(key.as_slice().into());
                return Ok(true);
            }
        }
        Ok(false)
    }
}

struct Limit<'p> {
    input: BoxedOperator<'p>,
    offset: Option<&'p Expr>,
    count: Option<&'p Expr>,
    left: u64,
}

/// The value of a LIMIT or OFFSET.
pub fn count_of(exec: &mut Exec<'_>, expr: &Expr) -> Result<u64> {
    let value = expr.eval(exec)?;
    match value {
        Value::Int(count) if count >= 0 => Ok(count as u64),
        Value::UInt(count) => Ok(count),
        _ => Err(crate::Error::wrong_arguments("LIMIT")),
    }
}

impl Operator for Limit<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.left = match self.count {
            Some(count) => count_of(exec, count)?,
            None => u64::MAX,
        };
        let mut skip = match self.offset {
            Some(offset) => count_of(exec, offset)?,
            None => 0,
        };
        if self.left == 0 {
            return Ok(());
        }
        self.input.open(exec)?;
        while skip > 0 {
            if !self.input.next(exec)? {
                self.left = 0;
                break;
            }
            skip -= 1;
        }
        Ok(())
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.left == 0 || !self.input.next(exec)? {
            return Ok(false);
        }
        self.left -= 1;
        Ok(true)
    }
}

/// UNION streams; INTERSECT and EXCEPT count the rows of their first input and strike off.
struct SetOperation<'p> {
    slot: Slot,
    op: SetOperator,
    distinct: bool,
    inputs: &'p [(Node, Vec<Expr>)],
    rows: RowBuffer,
    at: usize,
    seen: HashSet<Box<[u8]>>,
    current: Option<(usize, BoxedOperator<'p>)>,
}

impl<'p> SetOperation<'p> {
    /// The comparable key of the slot's row: in the result's types, not in each input's own.
    fn slot_key(&self, exec: &Exec<'_>, key: &mut KeyBuf) {
        key.clear();
        let layout = &exec.layouts[self.slot.0 as usize];
        let row = &exec.frame.slots[self.slot.0 as usize].bytes;
        for (column, ty) in layout.types.iter().enumerate() {
            let value = layout.layout.get(row, column);
            key_range::encode_values(std::iter::once((&value, ty, false)), key);
        }
    }

    fn count(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        let mut key = KeyBuf::new();
        // Each distinct row of the first input, in order, with how often it may pass.
        let mut order: Vec<(Box<[u8]>, i64)> = Vec::new();
        let mut firsts = RowBuffer::default();
        let mut positions: HashMap<Box<[u8]>, usize> = HashMap::new();
        for (number, (node, output)) in self.inputs.iter().enumerate() {
            let mut counts: HashMap<usize, i64> = HashMap::new();
            let mut input = build(node);
            input.open(exec)?;
            while input.next(exec)? {
                exec.check_interrupt()?;
                project(exec, self.slot, output)?;
                self.slot_key(exec, &mut key);
                match positions.get(key.as_slice()) {
                    Some(&position) => *counts.entry(position).or_insert(0) += 1,
                    None if number == 0 => {
                        positions.insert(key.as_slice().into(), order.len());
                        counts.insert(order.len(), 1);
                        order.push((key.as_slice().into(), 0));
                        firsts.push(&exec.frame, &[self.slot]);
                    }
                    None => {}
                }
            }
            for (position, (_, left)) in order.iter_mut().enumerate() {
                let count = counts.get(&position).copied().unwrap_or(0);
                *left = match (number, self.op, self.distinct) {
                    (0, _, true) => 1,
                    (0, _, false) => count,
                    (_, SetOperator::Intersect, true) => (*left).min(i64::from(count > 0)),
                    (_, SetOperator::Intersect, false) => (*left).min(count),
                    (_, _, true) => {
                        if count > 0 {
                            0
                        } else {
                            *left
                        }
                    }
                    (_, _, false) => (*left - count).max(0),
                };
            }
        }
        for (position, (_, left)) in order.iter().enumerate() {
            for _ in 0..*left {
                firsts.restore(position, &mut exec.frame, &[self.slot]);
                self.rows.push(&exec.frame, &[self.slot]);
            }
        }
        Ok(())
    }
}

impl Operator for SetOperation<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.rows.clear();
        self.at = 0;
        self.seen.clear();
        self.current = None;
        if self.op == SetOperator::Union {
            Ok(())
        } else {
            self.count(exec)
        }
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        if self.op != SetOperator::Union {
            return replay(&self.rows, &mut self.at, exec, &[self.slot]);
        }
        let mut key = KeyBuf::new();
        loop {
            let Some((number, input)) = &mut self.current else {
                let Some((node, _)) = self.inputs.first() else {
                    return Ok(false);
                };
                let mut input = build(node);
                input.open(exec)?;
                self.current = Some((0, input));
                continue;
            };
            if !input.next(exec)? {
                let next = *number + 1;
                let Some((node, _)) = self.inputs.get(next) else {
                    return Ok(false);
                };
                let mut input = build(node);
                input.open(exec)?;
                self.current = Some((next, input));
                continue;
            }
            let output = &self.inputs[*number].1;
            project(exec, self.slot, output)?;
            if !self.distinct {
                return Ok(true);
            }
            self.slot_key(exec, &mut key);
            if !self.seen.contains(key.as_slice()) {
                self.seen.insert(key.as_slice().into());
                return Ok(true);
            }
        }
    }
}
