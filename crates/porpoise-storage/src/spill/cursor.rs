//! Reading a range of runs in order.

use std::ops::Bound;
use std::sync::Arc;

use super::run::{Run, RunBlock};
use super::{RunPart, Runs};
use crate::memtable::{BoundKey, is_before_low, is_past_high};
use crate::{Direction, Result, SpaceId};

/// A range of several runs, merged: of each key what the newest of them has.
pub(crate) struct RunsCursor {
    /// The newest run first.
    parts: Vec<RunCursor>,
    /// Those that aren't at their end: a heap, the nearest key on top, and of equal ones the newest
    /// run's.
    heap: Vec<u32>,
    direction: Direction,
    /// The key that is being left.
    left: Vec<u8>,
}

impl RunsCursor {
    pub fn new(
        runs: &Runs,
        space: SpaceId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<RunsCursor> {
        let parts = runs.parts().iter().filter(|part| part.run.has(space));
        let parts = parts.map(|part| RunCursor::new(part, space, bounds, direction));
        let mut cursor = RunsCursor {
            parts: parts.collect::<Result<_>>()?,
            heap: Vec::new(),
            direction,
            left: Vec::new(),
        };
        let open = cursor.parts.iter().enumerate();
        let open = open.filter(|(_, part)| part.current().is_some());
        cursor.heap = open.map(|(at, _)| at as u32).collect();
        for at in (0..cursor.heap.len() / 2).rev() {
            cursor.sift_down(at);
        }
        Ok(cursor)
    }

    /// The current key and its value; `None` for the value is a deletion.
    #[inline]
    pub fn current(&self) -> Option<(&[u8], Option<&[u8]>)> {
        self.parts[*self.heap.first()? as usize].current()
    }

    /// Goes to the next key.
    pub fn advance(&mut self) -> Result<()> {
        if self.heap.len() == 1 {
            return self.advance_top();
        }
        let mut left = std::mem::take(&mut self.left);
        left.clear();
        left.extend_from_slice(self.current().map_or(&[], |(key, _)| key));
        while self.current().is_some_and(|(key, _)| key == left) {
            self.advance_top()?;
        }
        self.left = left;
        Ok(())
    }

    fn advance_top(&mut self) -> Result<()> {
        let Some(top) = self.heap.first().map(|top| *top as usize) else {
            return Ok(());
        };
        self.parts[top].advance()?;
        if self.parts[top].current().is_none() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// Whether one run's key comes before another's.
    fn is_nearer(&self, one: u32, other: u32) -> bool {
        let key = |at: u32| {
            let row = self.parts[at as usize].current();
            row.map_or(&[][..], |(key, _)| key)
        };
        let order = match self.direction {
            Direction::Forward => key(one).cmp(key(other)),
            Direction::Backward => key(other).cmp(key(one)),
        };
        order.then(one.cmp(&other)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let children = [2 * at + 1, 2 * at + 2];
            let mut nearest = at;
            for child in children.into_iter().filter(|at| *at < self.heap.len()) {
                if self.is_nearer(self.heap[child], self.heap[nearest]) {
                    nearest = child;
                }
            }
            if nearest == at {
                return;
            }
            self.heap.swap(at, nearest);
            at = nearest;
        }
    }
}

/// A range of one run.
struct RunCursor {
    run: Arc<Run>,
    space: SpaceId,
    up_to: u64,
    direction: Direction,
    low: Bound<BoundKey>,
    high: Bound<BoundKey>,
    /// The block that is read, and its number.
    block: Option<(Arc<RunBlock>, usize)>,
    /// The entries of the block that count, in the cursor's direction.
    visible: std::vec::IntoIter<u32>,
    at: Option<u32>,
}

impl RunCursor {
    fn new(
        part: &RunPart,
        space: SpaceId,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<RunCursor> {
        let mut cursor = RunCursor {
            run: Arc::clone(&part.run),
            space,
            up_to: part.up_to,
            direction,
            low: low.map(BoundKey::from_slice),
            high: high.map(BoundKey::from_slice),
            block: None,
            visible: Vec::new().into_iter(),
            at: None,
        };
        let last = part.run.blocks(space).checked_sub(1);
        let first = match direction {
            Direction::Forward => match low {
                Bound::Included(key) | Bound::Excluded(key) => {
                    Some(part.run.block_of(space, key).unwrap_or(0))
                }
                Bound::Unbounded => Some(0),
            },
            Direction::Backward => match high {
                Bound::Included(key) | Bound::Excluded(key) => part.run.block_of(space, key),
                Bound::Unbounded => last,
            },
        };
        if let Some(first) = first.filter(|_| last.is_some()) {
            cursor.enter(first)?;
            cursor.advance()?;
        }
        Ok(cursor)
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (block, _) = self.block.as_ref()?;
        Some(block.row(self.at? as usize))
    }

    /// Reads a block. `false` if there is none.
    fn enter(&mut self, number: usize) -> Result<bool> {
        let block = self.run.block(self.space, number)?;
        let Some(block) = block else {
            self.block = None;
            return Ok(false);
        };
        let (low, high) = (as_slice(&self.low), as_slice(&self.high));
        let mut visible = block.visible(self.up_to);
        visible.retain(|at| {
            let (key, _) = block.row(*at as usize);
            !is_before_low(key, low) && !is_past_high(key, high)
        });
        if self.direction == Direction::Backward {
            visible.reverse();
        }
        self.visible = visible.into_iter();
        self.block = Some((block, number));
        Ok(true)
    }

    /// Whether no further block can have keys of the range.
    fn is_last(&self) -> bool {
        let Some((block, number)) = &self.block else {
            return true;
        };
        match self.direction {
            Direction::Forward => block
                .last_key()
                .is_none_or(|key| is_past_high(key, as_slice(&self.high))),
            Direction::Backward => {
                *number == 0
                    || block
                        .first_key()
                        .is_none_or(|key| is_before_low(key, as_slice(&self.low)))
            }
        }
    }

    fn advance(&mut self) -> Result<()> {
        loop {
            self.at = self.visible.next();
            if self.at.is_some() {
                return Ok(());
            }
            let Some((_, number)) = &self.block else {
                return Ok(());
            };
            let next = match self.direction {
                Direction::Forward => number + 1,
                Direction::Backward => number.wrapping_sub(1),
            };
            if self.is_last() || !self.enter(next)? {
                self.block = None;
                return Ok(());
            }
        }
    }
}

fn as_slice(bound: &Bound<BoundKey>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}
