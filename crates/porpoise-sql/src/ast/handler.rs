//! HANDLER (MySQL 8.4 manual, 15.2.5).

use super::expr::Expr;
use super::name::{Ident, ObjectName};

/// `HANDLER …`.
#[derive(Debug, Clone, PartialEq)]
pub enum Handler {
    /// `HANDLER table OPEN [[AS] alias]`.
    Open {
        /// Which table.
        table: ObjectName,
        /// What the handler is called; the table's name when not written.
        alias: Option<Ident>,
    },
    /// `HANDLER name READ …`.
    Read(Box<HandlerRead>),
    /// `HANDLER name CLOSE`.
    Close(Ident),
}

/// `HANDLER name READ … [WHERE …] [LIMIT …]`.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerRead {
    /// The handler.
    pub name: Ident,
    /// The index; the table's own order when not written.
    pub index: Option<Ident>,
    /// Where reading begins, and which way it goes.
    pub start: HandlerStart,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `LIMIT`: how many rows are passed over.
    pub offset: u64,
    /// `LIMIT`: how many rows are wanted; one when not written.
    pub count: u64,
}

/// Where HANDLER … READ begins.
#[derive(Debug, Clone, PartialEq)]
pub enum HandlerStart {
    /// `FIRST`.
    First,
    /// `NEXT`.
    Next,
    /// `PREV`.
    Prev,
    /// `LAST`.
    Last,
    /// `= (values)` and the like: values of the index's first parts.
    Key(HandlerKey, Vec<Expr>),
}

/// How keys compare with the values of HANDLER … READ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerKey {
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `<=`
    AtMost,
    /// `<`
    Below,
}
