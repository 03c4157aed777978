//! `CREATE TABLE`: its elements and options.

use super::*;

impl Parser<'_> {
    // -- Tables
    // -------------------------------------------------------------------------------------------

    pub(super) fn create_table(&mut self, temporary: bool) -> Result<Statement> {
        self.expect("TABLE")?;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        if self.eat("LIKE") {
            let source = self.object_name()?;
            return Ok(Statement::CreateTableLike {
                temporary,
                if_not_exists,
                name,
                source,
            });
        }
        let mut table = CreateTable {
            temporary,
            if_not_exists,
            name,
            elements: Vec::new(),
            options: Vec::new(),
            partition_by: None,
            duplicates: Duplicates::Error,
            query: None,
        };
        if self.is(TokenKind::LeftParen) {
            if self.at_ahead(1, "LIKE") {
                self.advance();
                self.advance();
                let source = self.object_name()?;
                self.need(TokenKind::RightParen)?;
                let name = table.name;
                return Ok(Statement::CreateTableLike {
                    temporary,
                    if_not_exists,
                    name,
                    source,
                });
            }
            if !["SELECT", "WITH", "TABLE", "VALUES"]
                .iter()
                .any(|word| self.at_ahead(1, word))
                && !self.is_ahead(1, TokenKind::LeftParen)
            {
                table.elements = self.paren_list(Self::table_element)?;
            }
        }
        while let Some(option) = self.opt_table_option()? {
            table.options.push(option);
            self.take(TokenKind::Comma);
        }
        if self.at_all(&["PARTITION", "BY"]) {
            table.partition_by = Some(self.partition_by()?);
        }
        table.duplicates = self.duplicates();
        let query_must_follow = self.eat("AS");
        if query_must_follow || self.at_query() || self.is(TokenKind::LeftParen) {
            let mut query = Box::new(self.query()?);
            query.hints = self.statement_hints();
            table.query = Some(query);
        } else if table.elements.is_empty() {
            return Err(self.syntax_error());
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// `PARTITION BY …`, up to a query or the end.
    fn partition_by(&mut self) -> Result<Box<str>> {
        let start = self.tok(0).token.start as usize;
        let mut depth = 0u32;
        loop {
            match self.kind() {
                TokenKind::End | TokenKind::Semicolon => break,
                TokenKind::LeftParen => depth += 1,
                TokenKind::RightParen => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return Err(self.syntax_error()),
                },
                _ if depth == 0 && self.at_any(&["AS", "SELECT", "IGNORE", "REPLACE", "WITH"]) => {
                    break;
                }
                _ => {}
            }
            self.advance();
        }
        Ok(self.source(start))
    }

    pub(super) fn table_element(&mut self) -> Result<TableElement> {
        match self.keyword() {
            "CONSTRAINT" | "PRIMARY" | "UNIQUE" | "FOREIGN" | "CHECK" | "INDEX" | "KEY"
            | "FULLTEXT" | "SPATIAL" => self.constraint(),
            _ => {
                let name = self.ident()?;
                Ok(TableElement::Column(self.column_def(name)?))
            }
        }
    }

    /// A key, foreign key or check.
    fn constraint(&mut self) -> Result<TableElement> {
        let mut constraint = None;
        if self.eat("CONSTRAINT") && !self.at_any(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
            constraint = Some(self.ident()?);
        }
        match self.keyword() {
            "CHECK" => Ok(TableElement::Check(self.check(constraint)?)),
            "FOREIGN" => {
                self.advance();
                self.expect("KEY")?;
                let index_name = self.opt_ident()?;
                let columns = self.paren_list(Self::ident)?;
                let references = self.references()?;
                Ok(TableElement::ForeignKey(ForeignKey {
                    name: constraint,
                    index_name,
                    columns,
                    references,
                }))
            }
            "PRIMARY" => {
                self.advance();
                self.expect("KEY")?;
                self.index_rest(constraint, IndexKind::Primary)
            }
            "UNIQUE" => {
                self.advance();
                let _ = self.eat("INDEX") || self.eat("KEY");
                self.index_rest(constraint, IndexKind::Unique)
            }
            _ if constraint.is_some() => Err(self.syntax_error()),
            "FULLTEXT" | "SPATIAL" => {
                let kind = match self.advance().keyword.text() {
                    "FULLTEXT" => IndexKind::FullText,
                    _ => IndexKind::Spatial,
                };
                let _ = self.eat("INDEX") || self.eat("KEY");
                self.index_rest(None, kind)
            }
            "INDEX" | "KEY" => {
                self.advance();
                self.index_rest(None, IndexKind::Index)
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// `[name] [USING type] (parts) [options]`
    fn index_rest(&mut self, constraint: Option<Ident>, kind: IndexKind) -> Result<TableElement> {
        let name = self.opt_ident()?;
        let mut options = IndexOptions::default();
        self.index_type(&mut options)?;
        let parts = self.paren_list(Self::key_part)?;
        self.index_options(&mut options)?;
        Ok(TableElement::Index(IndexDef {
            constraint,
            name,
            kind,
            parts,
            options,
        }))
    }

    pub(super) fn index_type(&mut self, options: &mut IndexOptions) -> Result<bool> {
        let found = self.eat("USING") || self.eat("TYPE");
        if found {
            match self.at_any(&["BTREE", "HASH", "RTREE"]) {
                true => options.algorithm = Some(Ident::new(self.take_upper())),
                false => return Err(self.syntax_error()),
            }
        }
        Ok(found)
    }

    pub(super) fn index_options(&mut self, options: &mut IndexOptions) -> Result<()> {
        loop {
            if self.index_type(options)? {
            } else if self.eat("KEY_BLOCK_SIZE") {
                self.opt_eq();
                options.key_block_size = Some(self.whole_part()?);
            } else if self.eat("COMMENT") {
                options.comment = Some(self.string()?);
            } else if self.eat_all(&["WITH", "PARSER"]) {
                options.parser = Some(self.ident()?);
            } else if let Some(word) = self.eat_any(&["VISIBLE", "INVISIBLE"]) {
                options.visible = Some(word == "VISIBLE");
            } else if self.eat("ENGINE_ATTRIBUTE") || self.eat("SECONDARY_ENGINE_ATTRIBUTE") {
                self.opt_eq();
                options.engine_attribute = Some(self.string()?);
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn key_part(&mut self) -> Result<KeyPart> {
        let target = match self.is(TokenKind::LeftParen) {
            true => KeyTarget::Expr(self.parens(Self::expr)?),
            false => {
                let name = self.ident()?;
                KeyTarget::Column {
                    name,
                    length: self.opt_length()?,
                }
            }
        };
        Ok(KeyPart {
            target,
            descending: self.eat_any(&["ASC", "DESC"]) == Some("DESC"),
        })
    }

    /// `CHECK (expr) [[NOT] ENFORCED]`
    pub(super) fn check(&mut self, name: Option<Ident>) -> Result<Check> {
        self.expect("CHECK")?;
        let (expr, span) = self.parens(Self::spanned_expr)?;
        let enforced = match self.eat_all(&["NOT", "ENFORCED"]) {
            true => false,
            false => {
                self.eat("ENFORCED");
                true
            }
        };
        Ok(Check {
            name,
            expr,
            enforced,
            span,
        })
    }

    pub(super) fn spanned_expr(&mut self) -> Result<(Expr, Span)> {
        let start = self.tok(0).token.start;
        let expr = self.expr()?;
        Ok((
            expr,
            Span {
                start,
                end: self.last_end,
            },
        ))
    }

    pub(super) fn references(&mut self) -> Result<References> {
        self.expect("REFERENCES")?;
        let table = self.object_name()?;
        let columns = self.opt_column_names()?;
        let match_kind = match self.eat("MATCH") {
            true => Some(match self.at_any(&["FULL", "PARTIAL", "SIMPLE"]) {
                true => Ident::new(self.take_upper()),
                false => return Err(self.syntax_error()),
            }),
            false => None,
        };
        let mut references = References {
            table,
            columns,
            match_kind,
            on_delete: None,
            on_update: None,
        };
        while self.at("ON") && (self.at_ahead(1, "DELETE") || self.at_ahead(1, "UPDATE")) {
            self.advance();
            let delete = self.advance().keyword.text() == "DELETE";
            let action = if self.eat("RESTRICT") {
                ReferenceAction::Restrict
            } else if self.eat("CASCADE") {
                ReferenceAction::Cascade
            } else if self.eat_all(&["SET", "NULL"]) {
                ReferenceAction::SetNull
            } else if self.eat_all(&["SET", "DEFAULT"]) {
                ReferenceAction::SetDefault
            } else if self.eat_all(&["NO", "ACTION"]) {
                ReferenceAction::NoAction
            } else {
                return Err(self.syntax_error());
            };
            match delete {
                true => references.on_delete = Some(action),
                false => references.on_update = Some(action),
            }
        }
        Ok(references)
    }

    // -- Options
    // ------------------------------------------------------------------------------------------

    pub(super) fn opt_table_option(&mut self) -> Result<Option<TableOption>> {
        if self.at("DEFAULT")
            && !self.at_ahead(1, "CHARSET")
            && !self.at_ahead(1, "CHARACTER")
            && !self.at_ahead(1, "CHAR")
            && !self.at_ahead(1, "COLLATE")
        {
            return Ok(None);
        }
        self.eat("DEFAULT");
        if self.eat_charset_words() {
            self.opt_eq();
            return Ok(Some(TableOption::Charset(match self.eat("DEFAULT") {
                true => "default".into(),
                false => self.charset_name()?,
            })));
        }
        let word = self.keyword();
        Ok(Some(match word {
            "COLLATE" => {
                self.option_name();
                TableOption::Collation(match self.eat("DEFAULT") {
                    true => "default".into(),
                    false => self.charset_name()?,
                })
            }
            "ENGINE" => {
                self.option_name();
                TableOption::Engine(self.ident_or_string()?)
            }
            "AUTO_INCREMENT" => {
                self.option_name();
                TableOption::AutoIncrement(self.whole_part()?)
            }
            "COMMENT" => {
                self.option_name();
                TableOption::Comment(self.string()?)
            }
            "ROW_FORMAT" => {
                self.option_name();
                TableOption::RowFormat(self.word_of(&[
                    "DEFAULT",
                    "DYNAMIC",
                    "FIXED",
                    "COMPRESSED",
                    "REDUNDANT",
                    "COMPACT",
                ])?)
            }
            "AUTOEXTEND_SIZE"
            | "AVG_ROW_LENGTH"
            | "CHECKSUM"
            | "TABLE_CHECKSUM"
            | "COMPRESSION"
            | "CONNECTION"
            | "DELAY_KEY_WRITE"
            | "ENCRYPTION"
            | "ENGINE_ATTRIBUTE"
            | "INSERT_METHOD"
            | "KEY_BLOCK_SIZE"
            | "MAX_ROWS"
            | "MIN_ROWS"
            | "PACK_KEYS"
            | "PASSWORD"
            | "SECONDARY_ENGINE"
            | "SECONDARY_ENGINE_ATTRIBUTE"
            | "STATS_AUTO_RECALC"
            | "STATS_PERSISTENT"
            | "STATS_SAMPLE_PAGES"
            | "TABLESPACE" => {
                self.option_name();
                self.other_option(word)?
            }
            "STORAGE" => {
                self.advance();
                TableOption::Other(
                    "STORAGE".into(),
                    self.word_of(&["DISK", "MEMORY"])?.as_bytes().into(),
                )
            }
            "DATA" | "INDEX" if self.at_ahead(1, "DIRECTORY") => {
                self.advance();
                self.option_name();
                TableOption::Other(Ident::new(format!("{word} DIRECTORY")), self.string()?)
            }
            "UNION"
                if self.is_ahead(1, TokenKind::Eq) || self.is_ahead(1, TokenKind::LeftParen) =>
            {
                self.option_name();
                let start = self.tok(0).token.start as usize;
                self.paren_list(Self::object_name)?;
                TableOption::Other("UNION".into(), self.source(start).as_bytes().into())
            }
            "START" if self.at_all(&["START", "TRANSACTION"]) => {
                self.advance();
                self.advance();
                TableOption::Other("START TRANSACTION".into(), [].into())
            }
            _ if self.at_aria_option() => {
                let name = Ident::new(String::from_utf8_lossy(self.text()));
                self.option_name();
                self.other_option(&name)?
            }
            _ => return Ok(None),
        }))
    }

    /// What MariaDB prints of tables of its engine Aria, so that dumps of them can be loaded. The
    /// words are no keywords.
    fn at_aria_option(&mut self) -> bool {
        let word = self.text();
        let is_option = [b"PAGE_CHECKSUM".as_slice(), b"TRANSACTIONAL"]
            .iter()
            .any(|option| word.eq_ignore_ascii_case(option));
        is_option && self.is_ahead(1, TokenKind::Eq)
    }

    /// The option's word and the `=` that may follow.
    fn option_name(&mut self) {
        self.advance();
        self.opt_eq();
    }

    fn other_option(&mut self, name: &str) -> Result<TableOption> {
        let value = match self.kind() {
            TokenKind::Literal(LiteralKind::String) => self.string()?,
            TokenKind::Literal(_) => self.whole_part()?.to_string().into_bytes().into(),
            TokenKind::Word | TokenKind::QuotedName => self.any_ident()?.as_bytes().into(),
            _ => return Err(self.syntax_error()),
        };
        Ok(TableOption::Other(Ident::new(name), value))
    }
}
