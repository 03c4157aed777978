//! AUTO_INCREMENT: the next values of a table, on the session's grid.

use std::ops::Range;
use std::sync::atomic::Ordering;

use porpoise_catalog::Table;
use porpoise_core::error::{Error, Result};
use porpoise_types::{DataType, IntWidth};

use crate::Exec;

impl Exec<'_> {
    pub(crate) fn load_auto_increment(&self, table: &Table) {
        if table.state.auto_increment.load(Ordering::Relaxed) == 0 {
            table
                .state
                .raise_auto_increment(self.engine.store.counter(table.space).max(1));
        }
    }

    /// Makes the next generated value at least `next`, durably with the transaction.
    pub fn raise_auto_increment(&mut self, table: &Table, next: u64) -> Result<()> {
        self.load_auto_increment(table);
        if table
            .state
            .auto_increment
            .fetch_max(next, Ordering::Relaxed)
            < next
        {
            self.transaction()?.set_counter(table.space, next);
        }
        Ok(())
    }

    /// The first value from this one on that the session's increment and offset allow.
    pub(crate) fn on_auto_increment_grid(&self, value: u64) -> u64 {
        let (increment, offset) = self.session.auto_increment_grid();
        if increment <= 1 {
            return value;
        }
        let steps = value.saturating_sub(offset).div_ceil(increment);
        offset.saturating_add(steps.saturating_mul(increment))
    }

    /// Takes the next `count` AUTO_INCREMENT values, fewer at the end of the type's range. Those on
    /// the session's grid are in the range that is returned.
    pub(crate) fn take_auto_increment(
        &mut self,
        table: &Table,
        ty: &DataType,
        count: u64,
    ) -> Result<Range<u64>> {
        self.load_auto_increment(table);
        let (increment, _) = self.session.auto_increment_grid();
        let most = match ty {
            DataType::Int {
                width, unsigned, ..
            } => width.range(*unsigned).1,
            _ => IntWidth::Big.range(true).1,
        };
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let mut current = table.state.auto_increment.load(Ordering::Relaxed);
        loop {
            // At the end of the type's range its last value comes again, and is a duplicate.
            let first = self.on_auto_increment_grid(current).min(most);
            if first == u64::MAX {
                return Err(Error::auto_increment_exhausted());
            }
            let past = first.saturating_add(count.max(1).saturating_mul(increment.max(1)));
            let next = past.min(most.saturating_add(1));
            match table.state.auto_increment.compare_exchange_weak(
                current,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.transaction()?.set_counter(table.space, next);
                    return Ok(first..next);
                }
                Err(now) => current = now,
            }
        }
    }
}
