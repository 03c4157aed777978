//! Where the rows of a batch stand in an order.

use porpoise_core::error::Result;
use porpoise_core::memory::Charge;
use porpoise_expr::SlotId;
use porpoise_expr::aggregate::SortKey;
use porpoise_types::key::{KeyHead, encode_text_part, push_elements};
use porpoise_types::vector::ElementSlice;
use porpoise_types::{Collation, DataType, KeyBuf, RowLayout, Value, cancel};

use super::keys::{KeyProgram, Keys};
use super::{ROWS_MAX, Tries};
use crate::Exec;
use crate::eval::{append_key, push_text};

/// What makes the keys that rows are put in order by.
///
/// Most rows are told apart by the heads of their keys, which are made of the vectors: of numbers and
/// dates in loops, and of a text only what goes into a head.
pub(crate) struct OrderProgram<'p> {
    program: KeyProgram<'p>,
    order: &'p [SortKey],
    /// Where the first part is a text: by ASCII character, what the heads of texts that begin with it
    /// begin with.
    by_first: Option<Box<[u128; 128]>>,
    /// Of the last batch's rows.
    heads: Vec<KeyHead>,
    places: Vec<u32>,
    /// For these.
    _charge: Charge,
    tries: Tries,
    is_hopeless: bool,
}

impl<'p> OrderProgram<'p> {
    /// `None` where a key can't be computed in batches, nothing is gained by it, or the vectors are
    /// more than the statement may have.
    pub(crate) fn new(
        exec: &mut Exec<'_>,
        slot: SlotId,
        order: &'p [SortKey],
    ) -> Option<OrderProgram<'p>> {
        let program = KeyProgram::new(exec, slot, order.iter().map(|key| &key.expr))?;
        let mut charge = Charge::default();
        let bytes = ROWS_MAX * (size_of::<KeyHead>() + size_of::<u32>());
        charge.set(&exec.session.memory, bytes).ok()?;
        Some(OrderProgram {
            program,
            by_first: order.first().and_then(by_first),
            order,
            heads: Vec::new(),
            places: Vec::new(),
            _charge: charge,
            tries: Tries::default(),
            is_hopeless: false,
        })
    }

    /// The rows' keys; `None`: something is out of the ordinary, and nothing has happened.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn run<'r>(
        &mut self,
        exec: &mut Exec<'_>,
        layout: &'r RowLayout,
        rows: &[&'r [u8]],
    ) -> Result<Option<Keys<'r>>> {
        if self.is_hopeless {
            return Ok(None);
        }
        let keys = self.program.run(exec, layout, rows)?;
        self.is_hopeless = !self.tries.note(keys.is_some());
        Ok(keys)
    }

    /// The heads of the rows' keys.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn heads(&mut self, exec: &mut Exec<'_>, keys: &Keys<'_>) -> Result<&[KeyHead]> {
        self.begin(keys);
        for part in 0..self.order.len() {
            self.push(exec, keys, part)?;
        }
        Ok(&self.heads)
    }

    /// Finds the rows that may stand before a key with this head, which came before them: they are at
    /// [`places`](Self::places).
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn find_before(
        &mut self,
        exec: &mut Exec<'_>,
        keys: &Keys<'_>,
        head: KeyHead,
    ) -> Result<()> {
        self.begin(keys);
        self.leave_by_first(keys, head);
        for part in 0..self.order.len() {
            if self.places.is_empty() {
                break;
            }
            self.push(exec, keys, part)?;
            let heads = &self.heads;
            let may_be = |place: &u32| heads[*place as usize].bits() <= head.bits();
            self.places.retain(may_be);
        }
        // Of equal keys the first stays before the others.
        if head.whole_len().is_some() {
            let heads = &self.heads;
            self.places.retain(|place| heads[*place as usize] != head);
        }
        Ok(())
    }

    /// The places of the rows that were found.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places
    }

    /// The head of the key of a row that was found.
    pub(crate) fn head(&self, place: u32) -> KeyHead {
        self.heads[place as usize]
    }

    /// Replaces `out` by a row's whole key.
    ///
    /// # Errors
    /// 1317.
    pub(crate) fn key(
        &self,
        exec: &mut Exec<'_>,
        keys: &Keys<'_>,
        row: usize,
        out: &mut KeyBuf,
    ) -> Result<()> {
        out.clear();
        for (part, key) in self.order.iter().enumerate() {
            let Some((vector, expr)) = self.program.part(keys, part) else {
                continue;
            };
            if let (Some(collation), ElementSlice::Texts(texts)) =
                (collation_of(&expr.ty), vector.elements)
                && !vector.is_null(row)
                && texts[row].len() <= cancel::SHORT_BYTES
            {
                encode_text_part(texts[row], collation, key.descending, out);
                continue;
            }
            append_key(exec, &vector.value(row), &expr.ty, key.descending, out)?;
        }
        Ok(())
    }

    /// Leaves the rows that the first character of their text doesn't place behind a head.
    fn leave_by_first(&mut self, keys: &Keys<'_>, head: KeyHead) {
        let Some(by_first) = &self.by_first else {
            return;
        };
        let Some((vector, _)) = self.program.part(keys, 0) else {
            return;
        };
        if let ElementSlice::Texts(texts) = vector.elements {
            self.places.retain(|place| {
                let place = *place as usize;
                let first = texts[place].first().copied().unwrap_or(0x80);
                let known = by_first.get(usize::from(first)).copied().unwrap_or(0);
                known <= head.bits() || vector.is_null(place)
            });
        }
    }

    /// Heads of nothing, for all rows.
    fn begin(&mut self, keys: &Keys<'_>) {
        self.heads.clear();
        self.heads.resize(keys.len(), KeyHead::default());
        self.places.clear();
        self.places.extend(0..keys.len() as u32);
    }

    /// Appends a part to the heads of the rows that are left.
    fn push(&mut self, exec: &mut Exec<'_>, keys: &Keys<'_>, part: usize) -> Result<()> {
        let Some((vector, expr)) = self.program.part(keys, part) else {
            return Ok(());
        };
        let descending = self.order[part].descending;
        if push_elements(vector, &expr.ty, descending, &mut self.heads) {
            return Ok(());
        }
        let (Some(collation), ElementSlice::Texts(texts)) =
            (collation_of(&expr.ty), vector.elements)
        else {
            return self.push_values(exec, keys, part);
        };
        for place in &self.places {
            let place = *place as usize;
            let head = &mut self.heads[place];
            match vector.is_null(place) {
                true => head.push_null(descending),
                false if head.is_full() => {}
                false => push_text(exec, texts[place], collation, descending, head)?,
            }
        }
        Ok(())
    }

    /// As [`push`](Self::push), of what has to be a value first.
    fn push_values(&mut self, exec: &mut Exec<'_>, keys: &Keys<'_>, part: usize) -> Result<()> {
        let Some((vector, expr)) = self.program.part(keys, part) else {
            return Ok(());
        };
        let descending = self.order[part].descending;
        let mut bytes = KeyBuf::new();
        for place in &self.places {
            let head = &mut self.heads[*place as usize];
            if head.is_full() {
                continue;
            }
            let made;
            let value = match vector.elements {
                ElementSlice::Values(values) => &values[*place as usize],
                _ => {
                    made = vector.value(*place as usize);
                    &made
                }
            };
            if matches!(value, Value::Null) {
                head.push_null(descending);
                continue;
            }
            bytes.clear();
            append_key(exec, value, &expr.ty, descending, &mut bytes)?;
            head.push_part(&bytes);
        }
        Ok(())
    }
}

fn collation_of(ty: &DataType) -> Option<Collation> {
    match ty {
        DataType::Char { collation, .. }
        | DataType::Varchar { collation, .. }
        | DataType::Text { collation, .. } => Some(*collation),
        _ => None,
    }
}

/// The bits of the heads of texts, by their first character; 0 where they aren't known.
fn by_first(key: &SortKey) -> Option<Box<[u128; 128]>> {
    let first_bytes = collation_of(&key.expr.ty)?.first_bytes();
    Some(Box::new(first_bytes.map(|byte| match byte {
        0 => 0,
        byte => KeyHead::of_first_byte(byte, key.descending).bits(),
    })))
}
