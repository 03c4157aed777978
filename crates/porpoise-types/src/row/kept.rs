//! Copies of rows without the long columns that nobody reads.
//!
//! Such a copy has the layout of the whole row. The variable columns that are left out have no bytes
//! in it, so what sorts, joins and windows keep of a row with a long text is short.

use super::{RowLayout, Slot, read_u32};

/// Which variable columns a copy of a row keeps, by part of the row.
#[derive(Clone, Debug)]
pub struct KeptColumns {
    parts: Vec<Vec<bool>>,
}

impl RowLayout {
    /// What is kept for a reader of some columns; `None` where nothing is left out.
    pub fn kept(&self, is_read: impl Fn(usize) -> bool) -> Option<KeptColumns> {
        let is_read = |column: usize| column < self.columns && is_read(column);
        let mut parts = vec![self.kept_of_first(is_read)];
        for extension in &self.extensions {
            let is_read = |n: usize| is_read(extension.columns[n]);
            parts.push(extension.layout.kept_of_first(is_read));
        }
        let keeps_all = parts.iter().flatten().all(|kept| *kept);
        (!keeps_all).then_some(KeptColumns { parts })
    }

    /// By variable column of those in no extension.
    fn kept_of_first(&self, is_read: impl Fn(usize) -> bool) -> Vec<bool> {
        let columns = self.order.iter().map(|&column| usize::from(column));
        let variable = columns.filter(|&at| matches!(self.slots[at], Slot::Variable { .. }));
        variable.map(is_read).collect()
    }

    /// Replaces `out` by a copy of a row without the variable columns that aren't kept. `false` for a
    /// corrupt row, which can't be copied so.
    #[must_use]
    pub fn copy_kept(&self, row: &[u8], kept: &KeptColumns, out: &mut Vec<u8>) -> bool {
        out.clear();
        let layouts = self.extensions.iter().map(|extension| &extension.layout);
        let mut rest = row;
        for (layout, kept) in std::iter::once(self).chain(layouts).zip(&kept.parts) {
            // Written before the columns were added.
            if rest.is_empty() {
                break;
            }
            match layout.copy_kept_of_first(rest, kept, out) {
                Some(len) => rest = &rest[len..],
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Appends the part of a row that holds the columns in no extension; returns how long it was.
    fn copy_kept_of_first(&self, row: &[u8], kept: &[bool], out: &mut Vec<u8>) -> Option<usize> {
        let (start, ends_at) = (out.len(), self.ends_at as usize);
        let (head, data) = row.split_at_checked(self.data_at as usize)?;
        out.extend_from_slice(head);
        let mut begin = 0;
        for (n, kept) in kept.iter().enumerate() {
            let end = read_u32(head, ends_at + 4 * n)? as usize;
            let bytes = data.get(begin..end)?;
            if *kept {
                out.extend_from_slice(bytes);
            }
            let len = (out.len() - start - head.len()) as u32;
            let at = start + ends_at + 4 * n;
            out[at..at + 4].copy_from_slice(&len.to_le_bytes());
            begin = end;
        }
        Some(head.len() + begin)
    }
}
