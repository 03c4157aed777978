//! HANDLER.

use super::*;
use crate::ast::{Handler, HandlerKey, HandlerRead, HandlerStart};

impl Parser<'_> {
    pub(super) fn handler(&mut self) -> Result<Statement> {
        self.expect("HANDLER")?;
        let table = self.object_name()?;
        let handler = if self.eat("OPEN") {
            let alias = match self.eat("AS") || self.at_ident() {
                true => Some(self.ident()?),
                false => None,
            };
            Handler::Open { table, alias }
        } else if table.schema.is_some() {
            return Err(self.syntax_error());
        } else if self.eat("CLOSE") {
            Handler::Close(table.name)
        } else {
            self.expect("READ")?;
            Handler::Read(Box::new(self.handler_read(table.name)?))
        };
        Ok(Statement::Handler(Box::new(handler)))
    }

    fn handler_read(&mut self, name: Ident) -> Result<HandlerRead> {
        let in_table_order = match self.is_ahead(1, TokenKind::End)
            || self.is_ahead(1, TokenKind::Semicolon)
            || self.at_ahead(1, "WHERE")
            || self.at_ahead(1, "LIMIT")
        {
            true => self.eat_any(&["FIRST", "NEXT"]),
            false => None,
        };
        let (index, start) = match in_table_order {
            Some("FIRST") => (None, HandlerStart::First),
            Some(_) => (None, HandlerStart::Next),
            None => (Some(self.ident()?), self.handler_start()?),
        };
        let filter = match self.eat("WHERE") {
            true => Some(self.expr()?),
            false => None,
        };
        let (mut offset, mut count) = (0, 1);
        if self.eat("LIMIT") {
            count = self.u64()?;
            if self.take(TokenKind::Comma) {
                offset = std::mem::replace(&mut count, self.u64()?);
            } else if self.eat("OFFSET") {
                offset = self.u64()?;
            }
        }
        Ok(HandlerRead {
            name,
            index,
            start,
            filter,
            offset,
            count,
        })
    }

    /// Where reading of an index begins.
    fn handler_start(&mut self) -> Result<HandlerStart> {
        let key = match self.kind() {
            TokenKind::Eq => HandlerKey::Equal,
            TokenKind::Ge => HandlerKey::AtLeast,
            TokenKind::Gt => HandlerKey::Above,
            TokenKind::Le => HandlerKey::AtMost,
            TokenKind::Lt => HandlerKey::Below,
            _ => {
                return match self.eat_any(&["FIRST", "NEXT", "PREV", "LAST"]) {
                    Some("FIRST") => Ok(HandlerStart::First),
                    Some("NEXT") => Ok(HandlerStart::Next),
                    Some("PREV") => Ok(HandlerStart::Prev),
                    Some(_) => Ok(HandlerStart::Last),
                    None => Err(self.syntax_error()),
                };
            }
        };
        self.advance();
        let values = self.parens(|parser| parser.list(Self::expr))?;
        Ok(HandlerStart::Key(key, values))
    }
}
