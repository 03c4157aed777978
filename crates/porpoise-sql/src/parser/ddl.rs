//! Statements that define: databases, tables, indexes, views.

use super::*;

/// What CREATE, ALTER and DROP of kinds that are only recognised are called.
const OBJECTS: &[(&[&str], &str, &str, &str)] = &[
    (
        &["TRIGGER"],
        "CREATE TRIGGER",
        "ALTER TRIGGER",
        "DROP TRIGGER",
    ),
    (
        &["PROCEDURE"],
        "CREATE PROCEDURE",
        "ALTER PROCEDURE",
        "DROP PROCEDURE",
    ),
    (
        &["FUNCTION"],
        "CREATE FUNCTION",
        "ALTER FUNCTION",
        "DROP FUNCTION",
    ),
    (
        &["AGGREGATE"],
        "CREATE FUNCTION",
        "ALTER FUNCTION",
        "DROP FUNCTION",
    ),
    (&["EVENT"], "CREATE EVENT", "ALTER EVENT", "DROP EVENT"),
    (&["SERVER"], "CREATE SERVER", "ALTER SERVER", "DROP SERVER"),
    (
        &["TABLESPACE"],
        "CREATE TABLESPACE",
        "ALTER TABLESPACE",
        "DROP TABLESPACE",
    ),
    (
        &["UNDO", "TABLESPACE"],
        "CREATE TABLESPACE",
        "ALTER TABLESPACE",
        "DROP TABLESPACE",
    ),
    (
        &["LOGFILE", "GROUP"],
        "CREATE LOGFILE GROUP",
        "ALTER LOGFILE GROUP",
        "DROP LOGFILE GROUP",
    ),
    (
        &["RESOURCE", "GROUP"],
        "CREATE RESOURCE GROUP",
        "ALTER RESOURCE GROUP",
        "DROP RESOURCE GROUP",
    ),
    (
        &["SPATIAL", "REFERENCE"],
        "CREATE SPATIAL REFERENCE SYSTEM",
        "",
        "DROP SPATIAL REFERENCE SYSTEM",
    ),
    (
        &["INSTANCE"],
        "CREATE INSTANCE",
        "ALTER INSTANCE",
        "DROP INSTANCE",
    ),
];

/// Words that say a character type's set.
const CHARSET_WORDS: &[(&str, &str)] =
    &[("ASCII", "latin1"), ("UNICODE", "ucs2"), ("BYTE", "binary")];

impl Parser<'_> {
    fn only_recognised(
        &mut self,
    ) -> Option<&'static (
        &'static [&'static str],
        &'static str,
        &'static str,
        &'static str,
    )> {
        OBJECTS.iter().find(|(words, ..)| self.at_all(words))
    }

    pub(super) fn create(&mut self) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.expect("CREATE")?;
        let or_replace = self.eat_all(&["OR", "REPLACE"]);
        if self.at_any(&["ALGORITHM", "DEFINER", "SQL", "VIEW"]) {
            return self.view_or_routine(false, or_replace, start);
        }
        if or_replace && !self.at_all(&["SPATIAL", "REFERENCE"]) {
            return Err(self.syntax_error());
        }
        if let Some((_, what, ..)) = self.only_recognised() {
            return self.unsupported_from(start, what);
        }
        match self.keyword() {
            "DATABASE" | "SCHEMA" => {
                self.advance();
                let if_not_exists = self.if_not_exists();
                let name = self.ident()?;
                Ok(Statement::CreateDatabase {
                    name,
                    if_not_exists,
                    options: self.database_options()?,
                })
            }
            "TABLE" => self.create_table(false),
            "TEMPORARY" => {
                self.advance();
                self.create_table(true)
            }
            "INDEX" | "UNIQUE" | "FULLTEXT" | "SPATIAL" => self.create_index(),
            "USER" => self.create_user(false),
            "ROLE" => {
                self.advance();
                let if_not_exists = self.if_not_exists();
                Ok(Statement::CreateRole {
                    if_not_exists,
                    roles: self.list(Self::account)?,
                })
            }
            _ => Err(self.syntax_error()),
        }
    }

    fn database_options(&mut self) -> Result<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        loop {
            let default = self.eat("DEFAULT");
            if self.eat_charset_words() {
                self.opt_eq();
                options.charset = Some(self.charset_name()?);
            } else if self.eat("COLLATE") {
                self.opt_eq();
                options.collation = Some(self.charset_name()?);
            } else if self.eat("ENCRYPTION") {
                self.opt_eq();
                options.encryption = Some(self.string()?);
            } else if !default && self.eat_all(&["READ", "ONLY"]) {
                self.opt_eq();
                options.read_only = Some(!self.eat("DEFAULT") && self.u64()? != 0);
            } else if default {
                return Err(self.syntax_error());
            } else {
                return Ok(options);
            }
        }
    }

    // -- Tables -------------------------------------------------------------------------------------------

    fn create_table(&mut self, temporary: bool) -> Result<Statement> {
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
            table.query = Some(Box::new(self.query()?));
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

    fn table_element(&mut self) -> Result<TableElement> {
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

    fn index_type(&mut self, options: &mut IndexOptions) -> Result<bool> {
        let found = self.eat("USING") || self.eat("TYPE");
        if found {
            match self.at_any(&["BTREE", "HASH", "RTREE"]) {
                true => options.algorithm = Some(Ident::new(self.take_upper())),
                false => return Err(self.syntax_error()),
            }
        }
        Ok(found)
    }

    fn index_options(&mut self, options: &mut IndexOptions) -> Result<()> {
        loop {
            if self.index_type(options)? {
            } else if self.eat("KEY_BLOCK_SIZE") {
                self.opt_eq();
                options.key_block_size = Some(self.u64()?);
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

    fn key_part(&mut self) -> Result<KeyPart> {
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
    fn check(&mut self, name: Option<Ident>) -> Result<Check> {
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

    fn spanned_expr(&mut self) -> Result<(Expr, Span)> {
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

    fn references(&mut self) -> Result<References> {
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

    // -- Columns ------------------------------------------------------------------------------------------

    /// Behind the name: type and attributes.
    fn column_def(&mut self, name: Ident) -> Result<ColumnDef> {
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
    fn word_of(&mut self, words: &[&str]) -> Result<Ident> {
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
    fn column_default(&mut self) -> Result<ColumnDefault> {
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
        let value = match literal || named || introduced {
            true => self.expr_at(expr::Level::Prefix)?,
            false => self.now()?,
        };
        Ok(ColumnDefault {
            value,
            expression: false,
        })
    }

    // -- Types --------------------------------------------------------------------------------------------

    pub(super) fn geometry_kind(&mut self) -> Option<GeometryKind> {
        let kind = match self.keyword() {
            "GEOMETRY" => GeometryKind::Geometry,
            "POINT" => GeometryKind::Point,
            "LINESTRING" => GeometryKind::LineString,
            "POLYGON" => GeometryKind::Polygon,
            "MULTIPOINT" => GeometryKind::MultiPoint,
            "MULTILINESTRING" => GeometryKind::MultiLineString,
            "MULTIPOLYGON" => GeometryKind::MultiPolygon,
            "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => GeometryKind::GeometryCollection,
            _ => return None,
        };
        self.advance();
        Some(kind)
    }

    /// The type of a column.
    pub(super) fn data_type(&mut self) -> Result<DataType> {
        if let Some(kind) = self.geometry_kind() {
            return Ok(DataType::Geometry(kind));
        }
        let error = self.syntax_error();
        Ok(match self.advance().keyword.text() {
            "TINYINT" | "INT1" => self.integer(IntegerKind::TinyInt)?,
            "SMALLINT" | "INT2" => self.integer(IntegerKind::SmallInt)?,
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => self.integer(IntegerKind::MediumInt)?,
            "INT" | "INTEGER" | "INT4" => self.integer(IntegerKind::Int)?,
            "BIGINT" | "INT8" => self.integer(IntegerKind::BigInt)?,
            "BOOL" | "BOOLEAN" => DataType::Integer {
                kind: IntegerKind::TinyInt,
                width: Some(1),
                unsigned: false,
                zerofill: false,
            },
            "BIT" => DataType::Bit(self.opt_length()?),
            "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => {
                let (precision, scale) = match self.is(TokenKind::LeftParen) {
                    true => {
                        let (precision, scale) = self.precision_scale()?;
                        (Some(precision), scale)
                    }
                    false => (None, None),
                };
                let (unsigned, zerofill) = self.sign();
                DataType::Decimal {
                    precision,
                    scale,
                    unsigned,
                    zerofill,
                }
            }
            "FLOAT" | "FLOAT4" => self.float(false)?,
            "REAL" => self.float(!self.modes.has(Modes::REAL_AS_FLOAT))?,
            "DOUBLE" | "FLOAT8" => {
                self.eat("PRECISION");
                self.float(true)?
            }
            "DATE" => DataType::Date,
            "TIME" => DataType::Time(self.opt_length()?),
            "DATETIME" => DataType::DateTime(self.opt_length()?),
            "TIMESTAMP" => DataType::Timestamp(self.opt_length()?),
            "YEAR" => {
                self.opt_length()?;
                self.sign();
                DataType::Year
            }
            "CHAR" | "CHARACTER" => match self.eat("VARYING") {
                true => self.varchar(CharsetSpec::default())?,
                false => {
                    let length = self.opt_length()?;
                    DataType::Char {
                        length,
                        charset: self.charset_spec(CharsetSpec::default())?,
                    }
                }
            },
            "NCHAR" => match self.eat("VARCHAR") || self.eat("VARYING") {
                true => self.varchar(national())?,
                false => {
                    let length = self.opt_length()?;
                    DataType::Char {
                        length,
                        charset: self.charset_spec(national())?,
                    }
                }
            },
            "NATIONAL" => match self.advance().keyword.text() {
                "VARCHAR" => self.varchar(national())?,
                "CHAR" | "CHARACTER" if self.eat("VARYING") => self.varchar(national())?,
                "CHAR" | "CHARACTER" => {
                    let length = self.opt_length()?;
                    DataType::Char {
                        length,
                        charset: self.charset_spec(national())?,
                    }
                }
                _ => return Err(error),
            },
            "NVARCHAR" => self.varchar(national())?,
            "VARCHAR" | "VARCHARACTER" => self.varchar(CharsetSpec::default())?,
            "TINYTEXT" => self.text_type(LobSize::Tiny, None)?,
            "TEXT" => {
                let length = self.opt_length()?;
                self.text_type(LobSize::Normal, length)?
            }
            "MEDIUMTEXT" => self.text_type(LobSize::Medium, None)?,
            "LONGTEXT" => self.text_type(LobSize::Long, None)?,
            "LONG" => match self.eat_any(&["VARBINARY", "VARCHAR", "VARCHARACTER"]) {
                Some("VARBINARY") => DataType::Blob {
                    size: LobSize::Medium,
                    length: None,
                },
                _ => self.text_type(LobSize::Medium, None)?,
            },
            "BINARY" => DataType::Binary(self.opt_length()?),
            "VARBINARY" => DataType::VarBinary(self.parens(Self::u32)?),
            "TINYBLOB" => DataType::Blob {
                size: LobSize::Tiny,
                length: None,
            },
            "BLOB" => DataType::Blob {
                size: LobSize::Normal,
                length: self.opt_length()?,
            },
            "MEDIUMBLOB" => DataType::Blob {
                size: LobSize::Medium,
                length: None,
            },
            "LONGBLOB" => DataType::Blob {
                size: LobSize::Long,
                length: None,
            },
            "ENUM" => {
                let members = self.paren_list(Self::string_or_hex)?;
                DataType::Enum {
                    members,
                    charset: self.charset_spec(CharsetSpec::default())?,
                }
            }
            "SET" => {
                let members = self.paren_list(Self::string_or_hex)?;
                DataType::Set {
                    members,
                    charset: self.charset_spec(CharsetSpec::default())?,
                }
            }
            "JSON" => DataType::Json,
            _ => return Err(error),
        })
    }

    fn integer(&mut self, kind: IntegerKind) -> Result<DataType> {
        let width = self.opt_length()?;
        let (unsigned, zerofill) = self.sign();
        Ok(DataType::Integer {
            kind,
            width,
            unsigned,
            zerofill,
        })
    }

    /// `[SIGNED | UNSIGNED] [ZEROFILL]`: unsigned, zerofill.
    fn sign(&mut self) -> (bool, bool) {
        let (mut unsigned, mut zerofill) = (false, false);
        while let Some(word) = self.eat_any(&["SIGNED", "UNSIGNED", "ZEROFILL"]) {
            unsigned |= word != "SIGNED";
            zerofill |= word == "ZEROFILL";
        }
        (unsigned, zerofill)
    }

    fn float(&mut self, double: bool) -> Result<DataType> {
        let (mut double, mut digits) = (double, None);
        if self.is(TokenKind::LeftParen) {
            match self.precision_scale()? {
                (precision, Some(scale)) => digits = Some((precision, scale)),
                // FLOAT(bits).
                (bits, None) => double |= bits > 24,
            }
        }
        let (unsigned, zerofill) = self.sign();
        Ok(DataType::Float {
            double,
            digits,
            unsigned,
            zerofill,
        })
    }

    fn varchar(&mut self, charset: CharsetSpec) -> Result<DataType> {
        let length = self.parens(Self::u32)?;
        Ok(DataType::VarChar {
            length,
            charset: self.charset_spec(charset)?,
        })
    }

    fn text_type(&mut self, size: LobSize, length: Option<u32>) -> Result<DataType> {
        Ok(DataType::Text {
            size,
            length,
            charset: self.charset_spec(CharsetSpec::default())?,
        })
    }

    /// `[CHARACTER SET name | ASCII | UNICODE | BYTE] [BINARY]`, in any order.
    fn charset_spec(&mut self, mut spec: CharsetSpec) -> Result<CharsetSpec> {
        loop {
            if self.eat_charset_words() {
                spec.charset = Some(self.charset_name()?);
            } else if self.eat("BINARY") {
                spec.binary = true;
            } else if let Some((word, charset)) =
                CHARSET_WORDS.iter().find(|(word, _)| self.at(word))
            {
                self.expect(word)?;
                spec.charset = Some(Ident::new(charset));
            } else {
                return Ok(spec);
            }
        }
    }

    // -- Options ------------------------------------------------------------------------------------------

    fn opt_table_option(&mut self) -> Result<Option<TableOption>> {
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
                TableOption::AutoIncrement(self.u64()?)
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
            _ => return Ok(None),
        }))
    }

    /// The option's word and the `=` that may follow.
    fn option_name(&mut self) {
        self.advance();
        self.opt_eq();
    }

    fn other_option(&mut self, name: &str) -> Result<TableOption> {
        let value = match self.kind() {
            TokenKind::Literal(LiteralKind::String) => self.string()?,
            TokenKind::Literal(_) => self.u64()?.to_string().into_bytes().into(),
            TokenKind::Word | TokenKind::QuotedName => self.any_ident()?.as_bytes().into(),
            _ => return Err(self.syntax_error()),
        };
        Ok(TableOption::Other(Ident::new(name), value))
    }

    // -- Indexes and views --------------------------------------------------------------------------------

    fn create_index(&mut self) -> Result<Statement> {
        let kind = match self.eat_any(&["UNIQUE", "FULLTEXT", "SPATIAL"]) {
            Some("UNIQUE") => IndexKind::Unique,
            Some("FULLTEXT") => IndexKind::FullText,
            Some(_) => IndexKind::Spatial,
            None => IndexKind::Index,
        };
        self.expect("INDEX")?;
        let name = Some(self.ident()?);
        let mut options = IndexOptions::default();
        self.index_type(&mut options)?;
        self.expect("ON")?;
        let table = self.object_name()?;
        let parts = self.paren_list(Self::key_part)?;
        self.index_options(&mut options)?;
        let (algorithm, lock) = self.algorithm_and_lock()?;
        let index = Box::new(IndexDef {
            constraint: None,
            name,
            kind,
            parts,
            options,
        });
        Ok(Statement::CreateIndex {
            index,
            table,
            algorithm,
            lock,
        })
    }

    /// `[ALGORITHM [=] word] [LOCK [=] word]`
    fn algorithm_and_lock(&mut self) -> Result<(Option<Ident>, Option<Ident>)> {
        let (mut algorithm, mut lock) = (None, None);
        loop {
            if self.eat("ALGORITHM") {
                self.opt_eq();
                algorithm = Some(Ident::new(self.any_ident()?.to_ascii_uppercase()));
            } else if self.eat("LOCK") {
                self.opt_eq();
                lock = Some(Ident::new(self.any_ident()?.to_ascii_uppercase()));
            } else {
                return Ok((algorithm, lock));
            }
        }
    }

    /// What may begin with DEFINER: a view, or something only recognised.
    fn view_or_routine(
        &mut self,
        alter: bool,
        or_replace: bool,
        start: usize,
    ) -> Result<Statement> {
        let algorithm = match self.eat("ALGORITHM") {
            true => {
                self.need(TokenKind::Eq)?;
                Some(self.word_of(&["UNDEFINED", "MERGE", "TEMPTABLE"])?)
            }
            false => None,
        };
        let definer = match self.eat("DEFINER") {
            true => {
                self.need(TokenKind::Eq)?;
                Some(self.account()?)
            }
            false => None,
        };
        if let Some((_, create, altered, _)) = self.only_recognised() {
            return self.unsupported_from(start, if alter { altered } else { create });
        }
        let invoker = match self.eat_all(&["SQL", "SECURITY"]) {
            true => match self.eat_any(&["DEFINER", "INVOKER"]) {
                Some(word) => Some(word == "INVOKER"),
                None => return Err(self.syntax_error()),
            },
            false => None,
        };
        self.expect("VIEW")?;
        let name = self.object_name()?;
        let columns = self.opt_column_names()?;
        self.expect("AS")?;
        let query = Box::new(self.query()?);
        let check_option = match self.eat("WITH") {
            true => {
                let local = self.eat_any(&["CASCADED", "LOCAL"]) == Some("LOCAL");
                self.expect_all(&["CHECK", "OPTION"])?;
                Some(if local {
                    CheckOption::Local
                } else {
                    CheckOption::Cascaded
                })
            }
            false => None,
        };
        Ok(Statement::CreateView(Box::new(CreateView {
            alter,
            or_replace,
            algorithm,
            definer,
            invoker,
            name,
            columns,
            query,
            check_option,
        })))
    }

    // -- ALTER, DROP, RENAME ------------------------------------------------------------------------------

    pub(super) fn alter(&mut self) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.expect("ALTER")?;
        match self.keyword() {
            "TABLE" => {
                self.advance();
                self.alter_table()
            }
            "DATABASE" | "SCHEMA" => {
                self.advance();
                let name = match self.at_any(&["CHARSET", "ENCRYPTION"]) {
                    true => None,
                    false => self.opt_ident()?,
                };
                Ok(Statement::AlterDatabase {
                    name,
                    options: self.database_options()?,
                })
            }
            "USER" => self.create_user(true),
            "ALGORITHM" | "DEFINER" | "SQL" | "VIEW" => self.view_or_routine(true, false, start),
            _ => match self.only_recognised() {
                Some((_, _, what, _)) => self.unsupported_from(start, what),
                None => Err(self.syntax_error()),
            },
        }
    }

    fn alter_table(&mut self) -> Result<Statement> {
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

    pub(super) fn drop(&mut self) -> Result<Statement> {
        let start = self.tok(0).token.start as usize;
        self.expect("DROP")?;
        if let Some(kind) = self.eat_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]) {
            return Ok(Statement::DropStored {
                kind,
                if_exists: self.if_exists(),
                name: self.object_name()?,
            });
        }
        if let Some((_, _, _, what)) = self.only_recognised() {
            return self.unsupported_from(start, what);
        }
        let temporary = self.eat("TEMPORARY");
        let error = self.syntax_error();
        match self.advance().keyword.text() {
            "TABLE" | "TABLES" => {
                let if_exists = self.if_exists();
                let tables = self.list(Self::object_name)?;
                self.eat_any(&["RESTRICT", "CASCADE"]);
                Ok(Statement::DropTable {
                    temporary,
                    if_exists,
                    tables,
                })
            }
            _ if temporary => Err(self.syntax_error()),
            "DATABASE" | "SCHEMA" => {
                let if_exists = self.if_exists();
                Ok(Statement::DropDatabase {
                    name: self.ident()?,
                    if_exists,
                })
            }
            "INDEX" => {
                let name = self.index_name()?;
                self.expect("ON")?;
                let table = self.object_name()?;
                let (algorithm, lock) = self.algorithm_and_lock()?;
                Ok(Statement::DropIndex {
                    name,
                    table,
                    algorithm,
                    lock,
                })
            }
            "VIEW" => {
                let if_exists = self.if_exists();
                let views = self.list(Self::object_name)?;
                self.eat_any(&["RESTRICT", "CASCADE"]);
                Ok(Statement::DropView { if_exists, views })
            }
            "USER" => {
                let if_exists = self.if_exists();
                Ok(Statement::DropUser {
                    if_exists,
                    users: self.list(Self::account)?,
                })
            }
            "ROLE" => {
                let if_exists = self.if_exists();
                Ok(Statement::DropRole {
                    if_exists,
                    roles: self.list(Self::account)?,
                })
            }
            "PREPARE" => Ok(Statement::Deallocate(self.ident()?)),
            _ => Err(error),
        }
    }

    pub(super) fn rename(&mut self) -> Result<Statement> {
        self.expect("RENAME")?;
        if self.eat("USER") {
            return Ok(Statement::RenameUser(self.list(|p| {
                let old = p.account()?;
                p.expect("TO")?;
                Ok((old, p.account()?))
            })?));
        }
        if self.eat_any(&["TABLE", "TABLES"]).is_none() {
            return Err(self.syntax_error());
        }
        Ok(Statement::RenameTable(self.list(|p| {
            let old = p.object_name()?;
            p.expect("TO")?;
            Ok((old, p.object_name()?))
        })?))
    }
}

fn national() -> CharsetSpec {
    CharsetSpec {
        charset: Some("utf8mb3".into()),
        binary: false,
    }
}
