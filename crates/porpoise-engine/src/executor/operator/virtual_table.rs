//! A table of `information_schema` or `performance_schema`, made when it is read.

use crate::catalog::VirtualTable;
use crate::error::Result;
use crate::executor::Exec;
use crate::executor::row_buffer::RowBuffer;
use crate::executor::virtual_table::{Lookup, row_maker};
use crate::expr::EvalContext;
use crate::expr::{Expr, Slot};

use super::{Operator, all_true, replay};

pub(super) struct Virtual<'p> {
    slot: Slot,
    table: &'static VirtualTable,
    filter: &'p [Expr],
    rows: RowBuffer,
    at: usize,
}

impl<'p> Virtual<'p> {
    pub(super) fn new(slot: Slot, table: &'static VirtualTable, filter: &'p [Expr]) -> Virtual<'p> {
        Virtual {
            slot,
            table,
            filter,
            rows: RowBuffer::default(),
            at: 0,
        }
    }
}

impl Operator for Virtual<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.at = 0;
        self.rows.clear();
        let (slot, filter, rows) = (self.slot, self.filter, &mut self.rows);
        let lookup = Lookup::of(self.table, slot, filter, exec)?;
        row_maker(self.table)?(exec, &lookup, &mut |exec, values| {
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
