//! XA statements.

use super::*;
use crate::ast::{Xa, XaStart, Xid};

impl Parser<'_> {
    pub(super) fn xa(&mut self) -> Result<Statement> {
        self.expect("XA")?;
        let word = self.eat_any(&[
            "START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER",
        ]);
        let xa = match word {
            Some("START" | "BEGIN") => Xa::Start {
                xid: self.xid()?,
                option: match self.eat_any(&["JOIN", "RESUME"]) {
                    Some("JOIN") => XaStart::Join,
                    Some(_) => XaStart::Resume,
                    None => XaStart::New,
                },
            },
            Some("END") => {
                let xid = self.xid()?;
                let suspend = self.eat("SUSPEND");
                if suspend && self.eat("FOR") {
                    self.expect("MIGRATE")?;
                }
                Xa::End { xid, suspend }
            }
            Some("PREPARE") => Xa::Prepare(self.xid()?),
            Some("COMMIT") => Xa::Commit {
                xid: self.xid()?,
                one_phase: self.eat_all(&["ONE", "PHASE"]),
            },
            Some("ROLLBACK") => Xa::Rollback(self.xid()?),
            Some(_) => Xa::Recover {
                convert: self.eat_all(&["CONVERT", "XID"]),
            },
            None => return Err(self.syntax_error()),
        };
        Ok(Statement::Xa(Box::new(xa)))
    }

    /// `gtrid [, bqual [, formatID]]`
    fn xid(&mut self) -> Result<Xid> {
        let gtrid = self.xid_part()?;
        let mut xid = Xid {
            gtrid,
            bqual: Box::default(),
            format: 1,
        };
        if self.take(TokenKind::Comma) {
            xid.bqual = self.xid_part()?;
            if self.take(TokenKind::Comma) {
                let error = self.syntax_error();
                xid.format = self.whole_part()?;
                if i64::try_from(xid.format).is_err() {
                    return Err(error);
                }
            }
        }
        Ok(xid)
    }

    /// A text, or bytes as a hexadecimal or bit literal.
    fn xid_part(&mut self) -> Result<Box<[u8]>> {
        const BYTES_MAX: usize = 64;
        let part = match self.at_string() {
            true => {
                let token = self.advance().token;
                lexer::unquote(token.text(self.sql), self.modes).into()
            }
            false => self.string_or_hex()?,
        };
        match part.len() <= BYTES_MAX {
            true => Ok(part),
            false => Err(self.syntax_error()),
        }
    }
}
