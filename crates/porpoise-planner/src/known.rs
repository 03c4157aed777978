//! Values that are known while a statement is planned: those of literals, and the columns of rows
//! that are looked up by whole unique keys.
//!
//! ```sql
//! SELECT … FROM kinds k JOIN things t ON t.kind = k.number WHERE k.name = 'rare'
//! ```
//!
//! The row of `kinds` is read, and its number tells how many things there are to join. A plan holds
//! none of this: it is executed with other literals, and other rows.

use std::borrow::Cow;

use hashbrown::HashMap;
use porpoise_core::error::{Error, Result};
use porpoise_expr::{CastKind, Expr, ExprKind, SlotId};
use porpoise_types::{DataType, DateTime, Value};

use crate::Context;
use crate::key_range::KeyValues;

/// The columns of rows that were looked up, by slot.
#[derive(Debug, Default)]
pub struct KnownRows(HashMap<SlotId, Vec<Value>>);

impl KnownRows {
    /// Notes the row that a slot will hold.
    pub fn keep(&mut self, slot: SlotId, columns: Vec<Value>) {
        self.0.insert(slot, columns);
    }
}

/// What expressions are known to be.
#[derive(Clone, Copy)]
pub struct KnownValues<'a> {
    /// The statement's literals, and the session that converts them.
    pub context: &'a Context<'a>,
    /// Rows that were looked up.
    pub rows: &'a KnownRows,
}

impl<'a> KnownValues<'a> {
    /// The value of a literal, a known column, or a cast of either.
    pub fn of<'e>(&self, expr: &'e Expr) -> Option<Cow<'e, Value>>
    where
        'a: 'e,
    {
        match &expr.kind {
            ExprKind::Literal(value) => Some(Cow::Borrowed(value)),
            ExprKind::Parameter(number) => self.context.literals.get(*number).map(Cow::Borrowed),
            // As rows hold them they are in UTC.
            ExprKind::Column { .. } if matches!(expr.ty, DataType::Timestamp { .. }) => None,
            ExprKind::Column { slot, column, .. } => {
                let row = self.rows.0.get(slot)?;
                row.get(*column as usize).map(Cow::Borrowed)
            }
            ExprKind::Cast { operand, kind } => self.cast(self.of(operand)?, operand, expr, *kind),
            _ => None,
        }
    }

    /// A value as a cast makes it. `None` where the cast fails.
    pub fn cast<'e>(
        &self,
        value: Cow<'e, Value>,
        from: &Expr,
        to: &Expr,
        kind: CastKind,
    ) -> Option<Cow<'e, Value>> {
        if value.is_null() {
            return Some(value);
        }
        let conversion = self.context.session.conversion(0);
        let done =
            porpoise_expr::cast::cast(value.into_owned(), &from.ty, &to.ty, kind, &conversion);
        done.ok().map(|(value, _)| Cow::Owned(value))
    }
}

impl KeyValues for KnownValues<'_> {
    fn value(&mut self, expr: &Expr) -> Result<Value> {
        let known = self.of(expr).map(Cow::into_owned);
        known.ok_or_else(|| Error::engine_error("a value that is not known yet"))
    }

    fn to_utc(&self, local: DateTime) -> Option<DateTime> {
        self.context.session.to_utc(local)
    }
}
