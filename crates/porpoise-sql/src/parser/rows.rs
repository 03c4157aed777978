//! Statements that change rows: INSERT, REPLACE, UPDATE, DELETE, LOAD DATA; and CALL.

use super::*;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        let replace = self.advance().keyword.text() == "REPLACE";
        let block = self.begin_block();
        self.hints(block);
        let priority = match self.eat_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]) {
            Some("LOW_PRIORITY") => Priority::Low,
            Some("DELAYED") => Priority::Delayed,
            Some(_) => Priority::High,
            None => Priority::Normal,
        };
        let ignore = self.eat("IGNORE");
        self.eat("INTO");
        let table = self.object_name()?;
        let partitions = self.opt_partitions()?;
        let mut insert = Insert {
            replace,
            priority,
            ignore,
            table,
            partitions,
            columns: None,
            source: InsertSource::Values(Vec::new()),
            row_alias: None,
            column_aliases: Vec::new(),
            on_duplicate: Vec::new(),
            hints: None,
        };
        self.insert_source(&mut insert)?;
        if self.eat("AS") {
            insert.row_alias = Some(self.table_ident()?);
            insert.column_aliases = self.opt_column_names()?;
        }
        if self.eat_all(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            insert.on_duplicate = self.assignments()?;
        }
        Ok(Statement::Insert(Box::new(insert)))
    }

    fn insert_source(&mut self, insert: &mut Insert) -> Result<()> {
        if self.eat("SET") {
            let (columns, row) = self
                .assignments()?
                .into_iter()
                .map(|a| (a.column, a.value))
                .unzip();
            insert.columns = Some(columns);
            insert.source = InsertSource::Values(vec![row]);
            return Ok(());
        }
        // A parenthesis opens the columns, or a query.
        if self.is(TokenKind::LeftParen) && !self.query_in_parens_ahead() {
            insert.columns = Some(self.parens(|p| match p.is(TokenKind::RightParen) {
                true => Ok(Vec::new()),
                false => p.list(Self::column_ref),
            })?);
        }
        let values = self.at("VALUE") || (self.at("VALUES") && !self.at_ahead(1, "ROW"));
        insert.source = if values {
            self.advance();
            InsertSource::Values(self.list(Self::row_values)?)
        } else {
            // The query is the statement's own block.
            self.reserved_block = Some(self.blocks);
            let query = self.query()?;
            match query {
                Query {
                    body: QueryBody::Values(rows),
                    with: None,
                    limit: None,
                    ..
                } => InsertSource::Values(rows),
                query => InsertSource::Query(Box::new(query)),
            }
        };
        Ok(())
    }

    /// Whether the parentheses that open here hold a query.
    fn query_in_parens_ahead(&mut self) -> bool {
        let mut ahead = 0;
        while self.is_ahead(ahead, TokenKind::LeftParen) {
            ahead += 1;
        }
        ["SELECT", "WITH", "TABLE", "VALUES"]
            .iter()
            .any(|word| self.at_ahead(ahead, word))
    }

    /// `column = value, …`
    fn assignments(&mut self) -> Result<Vec<Assignment>> {
        self.list(|p| {
            let column = p.column_ref()?;
            if !p.take(TokenKind::Eq) {
                p.need(TokenKind::Assign)?;
            }
            Ok(Assignment {
                column,
                value: p.expr_or_default()?,
            })
        })
    }

    pub(super) fn update(&mut self, with: Option<With>) -> Result<Statement> {
        self.expect("UPDATE")?;
        let block = self.begin_block();
        self.hints(block);
        let low_priority = self.eat("LOW_PRIORITY");
        let ignore = self.eat("IGNORE");
        let tables = self.table_refs()?;
        self.expect("SET")?;
        let assignments = self.assignments()?;
        let selection = self.opt_where()?;
        let order_by = self.opt_order_by()?;
        let limit = self.opt_row_limit()?;
        Ok(Statement::Update(Box::new(Update {
            with,
            low_priority,
            ignore,
            tables,
            assignments,
            selection,
            order_by,
            limit,
            hints: None,
        })))
    }

    /// `[LIMIT n]`
    fn opt_row_limit(&mut self) -> Result<Option<Expr>> {
        match self.eat("LIMIT") {
            true => self.limit_value().map(Some),
            false => Ok(None),
        }
    }

    pub(super) fn delete(&mut self, with: Option<With>) -> Result<Statement> {
        self.expect("DELETE")?;
        let block = self.begin_block();
        self.hints(block);
        let mut delete = Delete {
            with,
            low_priority: false,
            quick: false,
            ignore: false,
            targets: Vec::new(),
            from: Vec::new(),
            selection: None,
            order_by: Vec::new(),
            limit: None,
            hints: None,
        };
        loop {
            match self.keyword() {
                "LOW_PRIORITY" => delete.low_priority = true,
                "QUICK" => delete.quick = true,
                "IGNORE" => delete.ignore = true,
                _ => break,
            }
            self.advance();
        }
        if !self.eat("FROM") {
            // DELETE a, b FROM …
            delete.targets = self.list(Self::delete_target)?;
            self.expect("FROM")?;
            delete.from = self.table_refs()?;
        } else {
            let targets_before_using = self.delete_lists_targets();
            if targets_before_using {
                delete.targets = self.list(Self::delete_target)?;
                self.expect("USING")?;
            }
            delete.from = match targets_before_using {
                true => self.table_refs()?,
                false => vec![self.single_table()?],
            };
        }
        delete.selection = self.opt_where()?;
        delete.order_by = self.opt_order_by()?;
        delete.limit = self.opt_row_limit()?;
        Ok(Statement::Delete(Box::new(delete)))
    }

    /// Behind DELETE FROM: whether a list of targets and USING follow.
    fn delete_lists_targets(&mut self) -> bool {
        let mut ahead = 0;
        loop {
            match self.tok(ahead).token.kind {
                TokenKind::Word if self.at_ahead(ahead, "USING") => return true,
                TokenKind::Word if self.tok(ahead).keyword.is_reserved() => return false,
                TokenKind::Word
                | TokenKind::QuotedName
                | TokenKind::Dot
                | TokenKind::Comma
                | TokenKind::Star => {
                    ahead += 1;
                }
                _ => return false,
            }
        }
    }

    /// `name[.*]`
    fn delete_target(&mut self) -> Result<ObjectName> {
        let name = self.table_ident()?;
        if !self.take(TokenKind::Dot) || self.take(TokenKind::Star) {
            return Ok(ObjectName { schema: None, name });
        }
        let target = ObjectName {
            schema: Some(name),
            name: self.any_table_ident()?,
        };
        if self.take(TokenKind::Dot) {
            self.need(TokenKind::Star)?;
        }
        Ok(target)
    }

    /// `name [AS alias] [PARTITION (…)]`
    fn single_table(&mut self) -> Result<TableRef> {
        let name = self.object_name()?;
        let alias = self.opt_alias()?;
        let partitions = self.opt_partitions()?;
        Ok(TableRef::Table(Box::new(TableFactor {
            name,
            alias,
            partitions,
            index_hints: Vec::new(),
        })))
    }

    pub(super) fn load(&mut self) -> Result<Statement> {
        self.expect("LOAD")?;
        let xml = match self.eat_any(&["DATA", "XML"]) {
            Some(word) => word == "XML",
            None => return Err(self.syntax_error()),
        };
        let priority = match self.eat_any(&["LOW_PRIORITY", "CONCURRENT"]) {
            Some("LOW_PRIORITY") => Priority::Low,
            Some(_) => Priority::High,
            None => Priority::Normal,
        };
        let local = self.eat("LOCAL");
        self.expect("INFILE")?;
        let path = self.string()?;
        let duplicates = self.duplicates();
        self.expect_all(&["INTO", "TABLE"])?;
        let table = self.object_name()?;
        let partitions = self.opt_partitions()?;
        let charset = match self.eat_charset_words() {
            true => Some(self.charset_name()?),
            false => None,
        };
        let row_tag = match self.eat_all(&["ROWS", "IDENTIFIED", "BY"]) {
            true => Some(self.string()?),
            false => None,
        };
        let format = self.file_format()?;
        let mut ignore_lines = 0;
        if self.eat("IGNORE") {
            ignore_lines = self.u64()?;
            if self.eat_any(&["LINES", "ROWS"]).is_none() {
                return Err(self.syntax_error());
            }
        }
        let columns = match self.is(TokenKind::LeftParen) {
            true => self.parens(|p| match p.is(TokenKind::RightParen) {
                true => Ok(Vec::new()),
                false => p.list(|p| match p.is(TokenKind::Variable) {
                    true => p.variable().map(LoadTarget::Variable),
                    false => p.ident().map(LoadTarget::Column),
                }),
            })?,
            false => Vec::new(),
        };
        let assignments = match self.eat("SET") {
            true => self.assignments()?,
            false => Vec::new(),
        };
        Ok(Statement::LoadData(Box::new(LoadData {
            xml,
            priority,
            local,
            path,
            duplicates,
            table,
            partitions,
            charset,
            format,
            row_tag,
            ignore_lines,
            columns,
            assignments,
        })))
    }

    /// `[IGNORE | REPLACE]`
    pub(super) fn duplicates(&mut self) -> Duplicates {
        match self.eat_any(&["IGNORE", "REPLACE"]) {
            Some("IGNORE") => Duplicates::Ignore,
            Some(_) => Duplicates::Replace,
            None => Duplicates::Error,
        }
    }

    pub(super) fn call(&mut self) -> Result<Statement> {
        self.expect("CALL")?;
        let name = self.object_name()?;
        let args = match self.is(TokenKind::LeftParen) {
            true => self.parens(|p| match p.is(TokenKind::RightParen) {
                true => Ok(Vec::new()),
                false => p.list(Self::expr),
            })?,
            false => Vec::new(),
        };
        Ok(Statement::Call { name, args })
    }
}
