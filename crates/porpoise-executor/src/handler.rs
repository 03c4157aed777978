//! HANDLER … READ: rows in an index's order, from where the last READ has stopped.
//!
//! A position is the key of an entry, as storage has it. It needs no cursor that stays open: what
//! was inserted or deleted meanwhile is seen by the next READ.

use std::ops::Bound;

use porpoise_catalog::{Index, IndexKind, Table, index_entry};
use porpoise_core::error::{Error, Result};
use porpoise_core::reply::Reply;
use porpoise_expr::{EvalContext, Expr};
use porpoise_planner::plan::{Node, Plan, PlanKind, Query, Scan};
use porpoise_session::check::Privileged;
use porpoise_sql::ast::HandlerKey;
use porpoise_storage::{Cursor, Direction};
use porpoise_types::{DataType, KeyBuf, Value, successor_of_prefix};

use crate::operator::all_true;
use crate::{Exec, statement};

/// Where a READ has stopped.
#[derive(Clone)]
pub enum Position {
    /// At an entry, its last row's.
    At(KeyBuf),
    /// Between this key and the ones behind it: there were no more.
    Behind(KeyBuf),
    /// Between this key and the ones before it.
    Before(KeyBuf),
}

/// Where a READ begins.
pub enum Start {
    /// At the first entry.
    First,
    /// At the last one.
    Last,
    /// At the next entry from a position on.
    Next(Position),
    /// At the one before.
    Prev(Position),
    /// At a key whose first parts compare with these values.
    Key(HandlerKey, Vec<(Value, DataType)>),
}

/// What a READ reads.
pub struct Read {
    /// The index, by its position in the table; the table's own order for `None`.
    pub index: Option<usize>,
    /// Where it begins.
    pub start: Start,
    /// So many rows are passed over.
    pub offset: u64,
    /// So many are wanted.
    pub count: u64,
    /// Where it has stopped; `None` if it has looked at nothing.
    pub stopped_at: Option<Position>,
}

/// The entries that a READ looks at, in its direction.
struct Range {
    low: Bound<KeyBuf>,
    high: Bound<KeyBuf>,
    direction: Direction,
}

/// Sends the rows of a READ. `plan` is that of a SELECT of all columns, with its condition, that
/// uses no index.
pub fn read(
    exec: &mut Exec<'_>,
    plan: Privileged<'_, Plan>,
    read: &mut Read,
    reply: &mut dyn Reply,
) -> Result<()> {
    let PlanKind::Query(query) = &plan.get().kind else {
        return Err(Error::engine_error("the plan of a HANDLER"));
    };
    let mut outer: Vec<&[Expr]> = Vec::new();
    let mut node = &query.node;
    loop {
        node = match node {
            Node::Filter { input, conditions } => {
                outer.push(conditions);
                input
            }
            // Conditions that read no row are looked at before the table.
            Node::NestedLoop { left, right, .. }
                if let Node::Filter { input, conditions } = &**left
                    && matches!(**input, Node::One) =>
            {
                outer.push(conditions);
                right
            }
            _ => break,
        };
    }
    let scan = match node {
        Node::Scan(scan) => Some(&**scan),
        // A condition that is never true.
        Node::Empty => None,
        _ => return Err(Error::not_supported_yet("subqueries in HANDLER")),
    };
    let Some((table, _)) = plan.get().tables.first() else {
        return Err(Error::engine_error("the table of a HANDLER"));
    };
    let index = read.index.map(|index| &table.indexes[index]);
    let range = range_of(exec, table, index, &read.start)?;
    let space = index.map_or(table.space, |index| index.space);
    let bounds = (as_slice(&range.low), as_slice(&range.high));
    reply.begin_rows(&query.columns)?;
    let mut sent = 0;
    match scan {
        Some(scan) => {
            let cursor = exec.cursor(space, bounds.0, bounds.1, range.direction, false)?;
            let conditions = [&[&scan.filter[..]], &outer[..]].concat();
            let rows = Rows {
                query,
                scan,
                conditions: &conditions,
                secondary: index.filter(|index| index.kind != IndexKind::Primary),
            };
            sent = rows.send(exec, cursor, read, reply)?;
        }
        None if read.count > 0 => {
            let opposite = match range.direction {
                Direction::Forward => Direction::Backward,
                Direction::Backward => Direction::Forward,
            };
            let mut cursor = exec.cursor(space, bounds.0, bounds.1, opposite, false)?;
            let last = cursor.next()?;
            read.stopped_at = last.map(|(key, _)| Position::At(KeyBuf::from_slice(key)));
        }
        None => {}
    }
    if sent < read.count {
        read.stopped_at = range.end_behind(read.stopped_at.take());
    }
    exec.session.found_rows = sent;
    exec.session.row_count = -1;
    statement::end_rows(exec, reply)
}

/// What becomes of the entries of a READ.
struct Rows<'a> {
    query: &'a Query,
    scan: &'a Scan,
    conditions: &'a [&'a [Expr]],
    /// The index, unless its entries are the rows.
    secondary: Option<&'a Index>,
}

impl Rows<'_> {
    fn send(
        &self,
        exec: &mut Exec<'_>,
        mut entries: Cursor,
        read: &mut Read,
        reply: &mut dyn Reply,
    ) -> Result<u64> {
        let (mut offset, mut sent) = (read.offset, 0);
        while sent < read.count
            && let Some(entry) = entries.next()?
        {
            exec.check_interrupt()?;
            exec.session.statement.rows_examined += 1;
            read.stopped_at = Some(Position::At(KeyBuf::from_slice(entry.0)));
            if !self.put(exec, entry)? {
                continue;
            }
            let mut passes = true;
            for conditions in self.conditions {
                passes = passes && all_true(conditions, exec)?;
            }
            match (passes, offset) {
                (false, _) => {}
                (true, 0) => {
                    sent += 1;
                    statement::write_row(exec, self.query, reply)?;
                }
                (true, _) => offset -= 1,
            }
        }
        Ok(sent)
    }

    /// Puts the row of an entry into the scan's slot; `false` if it is gone.
    fn put(&self, exec: &mut Exec<'_>, (key, value): (&[u8], &[u8])) -> Result<bool> {
        let slot = self.scan.slot.0 as usize;
        let Some(index) = self.secondary else {
            exec.frame.slots[slot].set(value);
            return Ok(true);
        };
        let (primary_key, _) = index_entry::split(value);
        let row = &mut exec.frame.slots[slot];
        let table = &self.scan.table;
        let set = |bytes: &[u8]| row.set(bytes);
        let found = Exec::read(&exec.view, table.space, primary_key, false, set)?;
        if found.is_none() || !exec.view.is_uncommitted() {
            return Ok(found.is_some());
        }
        // Where rows are read that others are changing, it may have another value by now.
        let row = (primary_key, &*exec.frame.slots[slot].bytes);
        let mut room = Vec::new();
        Ok(index_entry::is_entry_of(
            table,
            index,
            row,
            (key, value),
            &mut room,
        ))
    }
}

impl Range {
    /// The position of a READ that has found no more: beyond the last entry that it has looked at,
    /// or where it began.
    fn end_behind(&self, last: Option<Position>) -> Option<Position> {
        match (last, self.direction) {
            (Some(Position::At(key)), Direction::Forward) => Some(Position::Behind(key)),
            (Some(Position::At(key)), Direction::Backward) => Some(Position::Before(key)),
            (_, Direction::Forward) => match &self.low {
                Bound::Included(key) => Some(Position::Before(key.clone())),
                Bound::Excluded(key) => Some(Position::Behind(key.clone())),
                Bound::Unbounded => None,
            },
            (_, Direction::Backward) => match &self.high {
                Bound::Included(key) => Some(Position::Behind(key.clone())),
                Bound::Excluded(key) => Some(Position::Before(key.clone())),
                Bound::Unbounded => None,
            },
        }
    }
}

fn as_slice(bound: &Bound<KeyBuf>) -> Bound<&[u8]> {
    bound.as_ref().map(KeyBuf::as_slice)
}

fn range_of(
    exec: &mut Exec<'_>,
    table: &Table,
    index: Option<&Index>,
    start: &Start,
) -> Result<Range> {
    let all = |direction| Range {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        direction,
    };
    let (key, values) = match start {
        Start::First => return Ok(all(Direction::Forward)),
        Start::Last => return Ok(all(Direction::Backward)),
        Start::Next(position) => {
            let low = match position {
                Position::At(key) | Position::Behind(key) => Bound::Excluded(key.clone()),
                Position::Before(key) => Bound::Included(key.clone()),
            };
            return Ok(Range {
                low,
                ..all(Direction::Forward)
            });
        }
        Start::Prev(position) => {
            let high = match position {
                Position::At(key) | Position::Before(key) => Bound::Excluded(key.clone()),
                Position::Behind(key) => Bound::Included(key.clone()),
            };
            return Ok(Range {
                high,
                ..all(Direction::Backward)
            });
        }
        Start::Key(key, values) => (*key, values),
    };
    let index = index.ok_or_else(|| Error::engine_error("a key without an index"))?;
    let prefix = encode(exec, table, index, values)?;
    let mut successor = prefix.clone();
    let behind = match successor_of_prefix(&mut successor) {
        true => Bound::Included(successor),
        false => Bound::Excluded(KeyBuf::from_slice(&[0xFF; 8])),
    };
    let end = match &behind {
        Bound::Included(key) => Bound::Excluded(key.clone()),
        _ => Bound::Unbounded,
    };
    Ok(match key {
        HandlerKey::Equal => Range {
            low: Bound::Included(prefix),
            high: end,
            direction: Direction::Forward,
        },
        HandlerKey::AtLeast => Range {
            low: Bound::Included(prefix),
            ..all(Direction::Forward)
        },
        HandlerKey::Above => Range {
            low: behind,
            ..all(Direction::Forward)
        },
        HandlerKey::AtMost => Range {
            high: end,
            ..all(Direction::Backward)
        },
        HandlerKey::Below => Range {
            high: Bound::Excluded(prefix),
            ..all(Direction::Backward)
        },
    })
}

/// The beginning of the keys that have these values in their first parts.
fn encode(
    exec: &mut Exec<'_>,
    table: &Table,
    index: &Index,
    values: &[(Value, DataType)],
) -> Result<KeyBuf> {
    if values.len() > index.parts.len() {
        return Err(Error::too_many_key_parts(index.parts.len()));
    }
    let mut key = KeyBuf::new();
    for (part, (value, ty)) in index.parts.iter().zip(values) {
        let column = &table.columns[part.column];
        // What doesn't fit is cut to what does, without a word.
        let value = match value {
            Value::Null if column.nullable => Value::Null,
            Value::Null => column.ty.implicit_default(),
            value => porpoise_types::store(value.clone(), ty, &column.ty, &exec.conversion())
                .map_or(Value::Null, |(stored, _)| stored),
        };
        let value = match (&value, &column.ty) {
            // TIMESTAMPs lie in UTC.
            (Value::DateTime(local), DataType::Timestamp { .. }) => {
                Value::DateTime(exec.session.to_utc(*local).unwrap_or_default())
            }
            _ => value,
        };
        part.encode(column, &value, &mut key);
    }
    Ok(key)
}
