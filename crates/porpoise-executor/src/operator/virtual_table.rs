//! A table of `information_schema` or `performance_schema`, made when it is read.

use porpoise_catalog::VirtualTable;
use porpoise_core::error::Result;
use porpoise_expr::EvalContext;
use porpoise_expr::{Expr, SlotId};

use super::{Operator, all_true, replay};
use crate::Exec;
use crate::row_buffer::{RowBuffer, RowReader};
use crate::virtual_table::{Lookup, row_maker};

pub(super) struct Virtual<'p> {
    slot: SlotId,
    table: &'static VirtualTable,
    filter: &'p [Expr],
    rows: RowBuffer,
    reader: RowReader,
}

impl<'p> Virtual<'p> {
    pub(super) fn new(
        slot: SlotId,
        table: &'static VirtualTable,
        filter: &'p [Expr],
    ) -> Virtual<'p> {
        Virtual {
            slot,
            table,
            filter,
            rows: RowBuffer::default(),
            reader: RowReader::default(),
        }
    }
}

impl Operator for Virtual<'_> {
    fn open(&mut self, exec: &mut Exec<'_>) -> Result<()> {
        self.reader = RowReader::default();
        self.rows.clear();
        let (slot, filter, rows) = (self.slot, self.filter, &mut self.rows);
        let lookup = Lookup::of(self.table, slot, filter, exec)?;
        row_maker(self.table)?(exec, &lookup, &mut |exec, values| {
            exec.check_interrupt()?;
            exec.fill(slot, values)?;
            if all_true(filter, exec)? {
                rows.put_aside(exec, &[slot])?;
            }
            Ok(())
        })?;
        self.rows.finish()
    }

    fn next(&mut self, exec: &mut Exec<'_>) -> Result<bool> {
        replay(&self.rows, &mut self.reader, exec, &[self.slot])
    }
}
