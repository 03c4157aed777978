//! Columns of `CREATE TABLE` and `ALTER TABLE`.

use super::*;

impl Parser<'_> {
    // -- Columns
    // ------------------------------------------------------------------------------------------

    /// Behind the name: type and attributes.
    pub(super) fn column_def(&mut self, name: Ident) -> Result<ColumnDef> {
        let serial = self.eat("SERIAL");
        let data_type = match serial {
            true => DataType::Integer {
                kind: IntegerKind::BigInt,
                width: None,
                unsigned: true,
                zerofill: false,
            },
            false => self.data_type()?,
        };
        let mut column = ColumnDef {
            name,
            data_type,
            collation: None,
            nullable: serial.then_some(false),
            default: None,
            on_update: None,
            auto_increment: serial,
            primary_key: false,
            unique: serial,
            comment: None,
            generated: None,
            visible: None,
            column_format: None,
            storage: None,
            srid: None,
            checks: Vec::new(),
            references: None,
            engine_attribute: None,
        };
        while self.column_attribute(&mut column)? {}
        Ok(column)
    }

    /// Takes one attribute; false when there is none.
    fn column_attribute(&mut self, column: &mut ColumnDef) -> Result<bool> {
        match self.keyword() {
            "NOT" if self.at_ahead(1, "NULL") => {
                self.advance();
                self.advance();
                column.nullable = Some(false);
            }
            "NULL" => {
                self.advance();
                column.nullable = Some(true);
            }
            "DEFAULT" => {
                self.advance();
                column.default = Some(self.column_default()?);
            }
            "ON" if self.at_ahead(1, "UPDATE") => {
                self.advance();
                self.advance();
                column.on_update = Some(self.now()?);
            }
            "AUTO_INCREMENT" => {
                self.advance();
                column.auto_increment = true;
            }
            "SERIAL" if self.at_all(&["SERIAL", "DEFAULT", "VALUE"]) => {
                self.eat_all(&["SERIAL", "DEFAULT", "VALUE"]);
                (column.nullable, column.auto_increment, column.unique) = (Some(false), true, true);
            }
            "PRIMARY" => {
                self.advance();
                self.expect("KEY")?;
                column.primary_key = true;
            }
            "KEY" => {
                self.advance();
                column.primary_key = true;
            }
            "UNIQUE" => {
                self.advance();
                self.eat("KEY");
                column.unique = true;
            }
            "COMMENT" => {
                self.advance();
                column.comment = Some(self.string()?);
            }
            "COLLATE" => {
                self.advance();
                column.collation = Some(self.charset_name()?);
            }
            "GENERATED" | "AS" => {
                if self.eat("GENERATED") {
                    self.expect("ALWAYS")?;
                }
                self.expect("AS")?;
                let (expr, span) = self.parens(Self::spanned_expr)?;
                let stored = self.eat_any(&["VIRTUAL", "STORED"]) == Some("STORED");
                column.generated = Some(Generated { expr, stored, span });
            }
            "VISIBLE" | "INVISIBLE" => {
                column.visible = Some(self.advance().keyword.text() == "VISIBLE")
            }
            "COLUMN_FORMAT" => {
                self.advance();
                column.column_format = Some(self.word_of(&["FIXED", "DYNAMIC", "DEFAULT"])?);
            }
            "STORAGE" => {
                self.advance();
                column.storage = Some(self.word_of(&["DISK", "MEMORY", "DEFAULT"])?);
            }
            "SRID" => {
                self.advance();
                column.srid = Some(self.u64()?);
            }
            "ENGINE_ATTRIBUTE" | "SECONDARY_ENGINE_ATTRIBUTE" => {
                self.advance();
                self.opt_eq();
                column.engine_attribute = Some(self.string()?);
            }
            "CONSTRAINT"
                if self.at_ahead(1, "CHECK")
                    || (self.at_ident_ahead(1) && self.at_ahead(2, "CHECK")) =>
            {
                self.advance();
                let name = self.opt_ident()?;
                column.checks.push(self.check(name)?);
            }
            "CHECK" => column.checks.push(self.check(None)?),
            "REFERENCES" => column.references = Some(self.references()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// One of these words, in upper case.
    pub(super) fn word_of(&mut self, words: &[&str]) -> Result<Ident> {
        match self.at_any(words) {
            true => Ok(Ident::new(self.take_upper())),
            false => Err(self.syntax_error()),
        }
    }

    /// `CURRENT_TIMESTAMP[(n)]` and its synonyms.
    fn now(&mut self) -> Result<Expr> {
        match self.at_any(&["CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"])
            || self.at_word("NOW")
        {
            true => self.expr_at(expr::Level::Suffix),
            false => Err(self.syntax_error()),
        }
    }

    /// Behind DEFAULT: a literal, `now()`, or an expression in parentheses.
    pub(super) fn column_default(&mut self) -> Result<ColumnDefault> {
        if self.is(TokenKind::LeftParen) {
            return Ok(ColumnDefault {
                value: self.parens(Self::expr)?,
                expression: true,
            });
        }
        let literal = matches!(
            self.kind(),
            TokenKind::Literal(_) | TokenKind::NationalString | TokenKind::Minus | TokenKind::Plus
        );
        let named = self.at_any(&["NULL", "TRUE", "FALSE", "DATE", "TIME", "TIMESTAMP"]);
        let introduced = self.kind() == TokenKind::Word && self.text().first() == Some(&b'_');
        // COLLATE behind it is the column's.
        let value = match literal || named || introduced {
            true => self.signed_literal()?,
            false => self.now()?,
        };
        Ok(ColumnDefault {
            value,
            expression: false,
        })
    }
}
