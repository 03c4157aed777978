//! `ALTER TABLE`.

use super::*;

impl Parser<'_> {
    pub(super) fn alter_table(&mut self) -> Result<Statement> {
        let table = self.object_name()?;
        let mut alter = AlterTable {
            table,
            actions: Vec::new(),
            algorithm: None,
            lock: None,
        };
        while !matches!(self.kind(), TokenKind::End | TokenKind::Semicolon) {
            self.alter_action(&mut alter)?;
            if !self.take(TokenKind::Comma) {
                // Table options and partition clauses need no comma before them.
                while let Some(option) = self.opt_table_option()? {
                    alter.actions.push(AlterAction::Option(option));
                }
                if self.at("PARTITION") || self.at("REMOVE") {
                    alter
                        .actions
                        .push(AlterAction::Other(self.rest_of_statement()));
                }
                break;
            }
        }
        Ok(Statement::AlterTable(Box::new(alter)))
    }

    fn alter_action(&mut self, alter: &mut AlterTable) -> Result<()> {
        let action = match self.keyword() {
            "ADD" if self.at_ahead(1, "PARTITION") => AlterAction::Other(self.rest_of_statement()),
            "ADD" => {
                self.advance();
                return self.alter_add(&mut alter.actions);
            }
            "DROP" if self.at_ahead(1, "PARTITION") && !self.is_ahead(2, TokenKind::Comma) => {
                AlterAction::Other(self.rest_of_statement())
            }
            "DROP" => {
                self.advance();
                self.alter_drop()?
            }
            "MODIFY" => {
                self.advance();
                self.eat("COLUMN");
                let old_name = self.ident()?;
                let column = Box::new(self.column_def(old_name.clone())?);
                AlterAction::ChangeColumn {
                    old_name,
                    column,
                    position: self.column_position()?,
                }
            }
            "CHANGE" => {
                self.advance();
                self.eat("COLUMN");
                let old_name = self.ident()?;
                let name = self.ident()?;
                let column = Box::new(self.column_def(name)?);
                AlterAction::ChangeColumn {
                    old_name,
                    column,
                    position: self.column_position()?,
                }
            }
            "ALTER" => {
                self.advance();
                self.alter_alter()?
            }
            "RENAME" => {
                self.advance();
                self.alter_rename()?
            }
            "CONVERT" => {
                self.advance();
                self.expect("TO")?;
                if !self.eat_charset_words() {
                    return Err(self.syntax_error());
                }
                let charset = match self.eat("DEFAULT") {
                    true => None,
                    false => Some(self.charset_name()?),
                };
                let collation = match self.eat("COLLATE") {
                    true => Some(self.charset_name()?),
                    false => None,
                };
                AlterAction::ConvertCharset(charset, collation)
            }
            "ORDER" => AlterAction::OrderBy(self.opt_order_by()?),
            "DISABLE" | "ENABLE" => {
                let enable = self.advance().keyword.text() == "ENABLE";
                self.expect("KEYS")?;
                AlterAction::SetKeys { enable }
            }
            "FORCE" => {
                self.advance();
                AlterAction::Force
            }
            "WITH" | "WITHOUT" if self.at_ahead(1, "VALIDATION") => {
                let with = self.advance().keyword.text() == "WITH";
                self.advance();
                AlterAction::Validation(with)
            }
            "ALGORITHM" | "LOCK" => {
                let (algorithm, lock) = self.algorithm_and_lock()?;
                alter.algorithm = algorithm.or(alter.algorithm.take());
                alter.lock = lock.or(alter.lock.take());
                return Ok(());
            }
            "DISCARD" | "IMPORT" | "PARTITION" | "REMOVE" | "TRUNCATE" | "REORGANIZE"
            | "EXCHANGE" | "COALESCE" | "ANALYZE" | "CHECK" | "OPTIMIZE" | "REBUILD" | "REPAIR"
            | "UPGRADE" | "SECONDARY_LOAD" | "SECONDARY_UNLOAD" => {
                AlterAction::Other(self.rest_of_statement())
            }
            _ => {
                // Options follow one another without commas.
                let Some(option) = self.opt_table_option()? else {
                    return Err(self.syntax_error());
                };
                alter.actions.push(AlterAction::Option(option));
                while let Some(option) = self.opt_table_option()? {
                    alter.actions.push(AlterAction::Option(option));
                }
                return Ok(());
            }
        };
        alter.actions.push(action);
        Ok(())
    }

    fn column_position(&mut self) -> Result<Option<ColumnPosition>> {
        if self.eat("FIRST") {
            return Ok(Some(ColumnPosition::First));
        }
        match self.eat("AFTER") {
            true => Ok(Some(ColumnPosition::After(self.ident()?))),
            false => Ok(None),
        }
    }

    fn alter_add(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        let column_word = self.eat("COLUMN");
        if self.is(TokenKind::LeftParen) {
            let elements = self.paren_list(Self::table_element)?;
            actions.extend(elements.into_iter().map(|element| match element {
                TableElement::Column(column) => AlterAction::AddColumn {
                    column: Box::new(column),
                    position: None,
                },
                TableElement::Index(index) => AlterAction::AddIndex(index),
                TableElement::ForeignKey(key) => AlterAction::AddForeignKey(key),
                TableElement::Check(check) => AlterAction::AddCheck(check),
            }));
            return Ok(());
        }
        let element = match column_word {
            true => {
                let name = self.ident()?;
                TableElement::Column(self.column_def(name)?)
            }
            false => self.table_element()?,
        };
        actions.push(match element {
            TableElement::Column(column) => AlterAction::AddColumn {
                column: Box::new(column),
                position: self.column_position()?,
            },
            TableElement::Index(index) => AlterAction::AddIndex(index),
            TableElement::ForeignKey(key) => AlterAction::AddForeignKey(key),
            TableElement::Check(check) => AlterAction::AddCheck(check),
        });
        Ok(())
    }

    fn alter_drop(&mut self) -> Result<AlterAction> {
        if self.eat_all(&["PRIMARY", "KEY"]) {
            return Ok(AlterAction::DropPrimaryKey);
        }
        if self.eat_all(&["FOREIGN", "KEY"]) {
            return Ok(AlterAction::DropForeignKey(self.ident()?));
        }
        match self.eat_any(&["INDEX", "KEY", "CHECK", "CONSTRAINT", "COLUMN"]) {
            Some("INDEX" | "KEY") => Ok(AlterAction::DropIndex(self.index_name()?)),
            Some("CHECK") => Ok(AlterAction::DropCheck(self.ident()?)),
            Some("CONSTRAINT") => Ok(AlterAction::DropConstraint(self.index_name()?)),
            _ => {
                let name = self.ident()?;
                self.eat_any(&["RESTRICT", "CASCADE"]);
                Ok(AlterAction::DropColumn(name))
            }
        }
    }

    fn alter_alter(&mut self) -> Result<AlterAction> {
        match self.eat_any(&["INDEX", "CHECK", "CONSTRAINT"]) {
            Some("INDEX") => {
                let name = self.index_name()?;
                return match self.eat_any(&["VISIBLE", "INVISIBLE"]) {
                    Some(word) => Ok(AlterAction::SetIndexVisible(name, word == "VISIBLE")),
                    None => Err(self.syntax_error()),
                };
            }
            Some(_) => {
                let name = self.ident()?;
                let not = self.eat("NOT");
                self.expect("ENFORCED")?;
                return Ok(AlterAction::SetEnforced(name, !not));
            }
            None => {}
        }
        self.eat("COLUMN");
        let name = self.ident()?;
        if self.eat_all(&["DROP", "DEFAULT"]) {
            return Ok(AlterAction::DropDefault(name));
        }
        self.expect("SET")?;
        match self.eat_any(&["DEFAULT", "VISIBLE", "INVISIBLE"]) {
            Some("DEFAULT") => Ok(AlterAction::SetDefault(name, self.column_default()?)),
            Some(word) => Ok(AlterAction::SetColumnVisible(name, word == "VISIBLE")),
            None => Err(self.syntax_error()),
        }
    }

    fn alter_rename(&mut self) -> Result<AlterAction> {
        match self.eat_any(&["COLUMN", "INDEX", "KEY"]) {
            Some("COLUMN") => {
                let old = self.ident()?;
                self.expect("TO")?;
                Ok(AlterAction::RenameColumn(old, self.ident()?))
            }
            Some(_) => {
                let old = self.ident()?;
                self.expect("TO")?;
                Ok(AlterAction::RenameIndex(old, self.ident()?))
            }
            None => {
                let _ = self.eat("TO") || self.eat("AS") || self.take(TokenKind::Eq);
                Ok(AlterAction::RenameTable(self.object_name()?))
            }
        }
    }
}
