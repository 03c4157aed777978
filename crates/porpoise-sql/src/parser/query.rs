//! Queries: WITH, SELECT, set operations, table references.

use std::sync::Arc;

use super::*;

/// What a parenthesis in FROM held.
enum ParenthesizedTables {
    Query(Box<Query>),
    Tables(TableRef),
}

impl Parser<'_> {
    /// Whether a query begins here, other than by a parenthesis.
    pub(super) fn at_query(&mut self) -> bool {
        match self.keyword() {
            "SELECT" | "WITH" | "TABLE" => true,
            "VALUES" => self.at_ahead(1, "ROW"),
            _ => false,
        }
    }

    /// Whether what follows a parenthesised query makes it part of a larger one.
    pub(super) fn at_query_continuation(&mut self) -> bool {
        self.at_any(&[
            "UNION",
            "EXCEPT",
            "INTERSECT",
            "ORDER",
            "LIMIT",
            "FOR",
            "LOCK",
            "INTO",
        ])
    }

    /// A query expression.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.nested(|p| {
            let with = p.opt_with()?;
            p.query_with(with)
        })
    }

    fn query_with(&mut self, with: Option<With>) -> Result<Query> {
        let outer_into = self.into.take();
        let body = self.query_term()?;
        let query = self.query_rest(with, body);
        self.into = outer_into;
        query
    }

    /// A query expression whose first part, in parentheses, was already read.
    pub(super) fn query_from(&mut self, first: Query) -> Result<Query> {
        let outer_into = self.into.take();
        let query = self.query_rest(None, flatten(first));
        self.into = outer_into;
        query
    }

    /// What follows the first term: set operations, ORDER BY, LIMIT, INTO, locking.
    fn query_rest(&mut self, with: Option<With>, first: QueryBody) -> Result<Query> {
        let body = self.set_operations(first)?;
        let before = self.params_so_far();
        let order_by = self.opt_order_by()?;
        if self.params_so_far() != before
            && matches!(&body, QueryBody::Select(select) if select.distinct)
        {
            // DISTINCT demands that an ORDER BY expression be in the select list.
            self.needs_values = true;
        }
        let limit = self.opt_limit()?;
        let mut into = self.into.take();
        if into.is_none() {
            into = self.opt_into()?;
        }
        let mut locking = Vec::new();
        while let Some(clause) = self.opt_locking()? {
            locking.push(clause);
        }
        if into.is_none() {
            into = self.opt_into()?;
        }
        match body {
            QueryBody::Query(query)
                if with.is_none()
                    && order_by.is_empty()
                    && limit.is_none()
                    && locking.is_empty()
                    && into.is_none() =>
            {
                Ok(*query)
            }
            body => Ok(Query {
                with,
                body,
                order_by,
                limit,
                locking,
                into,
                hints: None,
            }),
        }
    }

    /// How many literals are parameters now.
    fn params_so_far(&self) -> usize {
        self.params.as_ref().map_or(0, ParamMask::count)
    }

    fn set_operations(&mut self, first: QueryBody) -> Result<QueryBody> {
        let mut left = self.intersections(first)?;
        while let Some(word) = self.eat_any(&["UNION", "EXCEPT"]) {
            self.chain()?;
            self.check_into_follows()?;
            let op = if word == "UNION" {
                SetOperator::Union
            } else {
                SetOperator::Except
            };
            let all = self.all_or_distinct();
            let right = self.query_term()?;
            let right = self.intersections(right)?;
            left = QueryBody::SetOperation(Box::new(SetOperation {
                op,
                all,
                left,
                right,
            }));
        }
        Ok(left)
    }

    /// Of the SELECTs of a set operation only the last may say INTO.
    fn check_into_follows(&mut self) -> Result<()> {
        match self.into {
            Some(_) => Err(self.error(ParseErrorKind::MisplacedInto)),
            None => Ok(()),
        }
    }

    fn intersections(&mut self, mut left: QueryBody) -> Result<QueryBody> {
        while self.eat("INTERSECT") {
            self.chain()?;
            self.check_into_follows()?;
            let all = self.all_or_distinct();
            let right = self.query_term()?;
            left = QueryBody::SetOperation(Box::new(SetOperation {
                op: SetOperator::Intersect,
                all,
                left,
                right,
            }));
        }
        Ok(left)
    }

    fn all_or_distinct(&mut self) -> bool {
        self.eat_any(&["ALL", "DISTINCT"]) == Some("ALL")
    }

    fn query_term(&mut self) -> Result<QueryBody> {
        if self.is(TokenKind::LeftParen) {
            return Ok(flatten(self.parens(Self::query)?));
        }
        match self.keyword() {
            "SELECT" => Ok(QueryBody::Select(Box::new(self.select()?))),
            "TABLE" => {
                self.advance();
                Ok(QueryBody::Table(self.object_name()?))
            }
            "VALUES" => {
                self.advance();
                Ok(QueryBody::Values(self.list(|p| {
                    p.expect("ROW")?;
                    p.row_values()
                })?))
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// `(value, …)`, perhaps empty; a value may be DEFAULT.
    pub(super) fn row_values(&mut self) -> Result<Vec<Expr>> {
        self.parens(|p| match p.is(TokenKind::RightParen) {
            true => Ok(Vec::new()),
            false => p.list(Self::expr_or_default),
        })
    }

    /// An expression or DEFAULT.
    pub(super) fn expr_or_default(&mut self) -> Result<Expr> {
        match self.at("DEFAULT") && !self.is_ahead(1, TokenKind::LeftParen) {
            true => {
                self.advance();
                Ok(Expr::Default)
            }
            false => self.expr(),
        }
    }

    pub(super) fn opt_with(&mut self) -> Result<Option<With>> {
        if !self.eat("WITH") {
            return Ok(None);
        }
        // The query block behind WITH is the outer one of those in it.
        let block = self.begin_block();
        let recursive = self.eat("RECURSIVE");
        let tables = self.list(|p| {
            let name = p.table_ident()?;
            let columns = p.opt_column_names()?;
            p.expect("AS")?;
            let query = p.parens(Self::query)?;
            Ok(Arc::new(CommonTable {
                name,
                columns,
                query,
            }))
        })?;
        self.reserved_block = Some(block);
        Ok(Some(With { recursive, tables }))
    }

    /// `[(a, b, …)]`
    pub(super) fn opt_column_names(&mut self) -> Result<Vec<Ident>> {
        match self.is(TokenKind::LeftParen) {
            true => self.paren_list(Self::ident),
            false => Ok(Vec::new()),
        }
    }

    /// `WITH … SELECT | UPDATE | DELETE`
    pub(super) fn with_statement(&mut self) -> Result<Statement> {
        let with = self.opt_with()?;
        match self.keyword() {
            "UPDATE" => self.update(with),
            "DELETE" => self.delete(with),
            _ => Ok(Statement::Query(Box::new(self.query_with(with)?))),
        }
    }

    fn select(&mut self) -> Result<Select> {
        if self.selects >= SELECTS_NESTED_MAX {
            return Err(self.error(ParseErrorKind::TooDeep));
        }
        self.selects += 1;
        let select = self.select_block();
        self.selects -= 1;
        select
    }

    fn select_block(&mut self) -> Result<Select> {
        self.expect("SELECT")?;
        let number = self.begin_block();
        let mut select = Select {
            number,
            hints: self.hints(number),
            ..Select::default()
        };
        self.select_options(&mut select)?;
        // A bare star stands first only.
        if self.take(TokenKind::Star) {
            select.items.push(SelectItem::Wildcard);
        } else {
            select.items.push(self.select_item()?);
        }
        while self.take(TokenKind::Comma) {
            select.items.push(self.select_item()?);
        }
        if let Some(into) = self.opt_into()? {
            self.into = Some(into);
        }
        if self.eat("FROM") {
            match self.eat("DUAL") {
                true => {}
                false => select.from = self.table_refs()?,
            }
        }
        select.selection = self.opt_where()?;
        if self.eat_all(&["GROUP", "BY"]) {
            let before = self.params_so_far();
            select.group_by = self.list(|p| {
                let expr = p.expr()?;
                Ok(OrderItem {
                    expr: p.by_value(expr),
                    descending: false,
                })
            })?;
            if self.params_so_far() != before {
                // Only equal expressions are grouped ones, and parameters have no values to be
                // equal.
                self.needs_values = true;
            }
            select.rollup = self.eat_all(&["WITH", "ROLLUP"]);
        }
        if self.eat("HAVING") {
            select.having = Some(self.expr()?);
        }
        if self.eat("WINDOW") {
            select.windows = self.list(|p| {
                let name = p.ident()?;
                p.expect("AS")?;
                Ok((name, p.window_spec()?))
            })?;
        }
        Ok(select)
    }

    /// The number of the query block that begins here.
    pub(super) fn begin_block(&mut self) -> u32 {
        self.reserved_block.take().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks
        })
    }

    /// The optimizer hints right behind the last token, as written. What they say is kept for the
    /// statement.
    pub(super) fn hints(&mut self, block: u32) -> Option<Box<str>> {
        let rest = self
            .sql
            .get(self.last_end as usize..)?
            .trim_ascii_start()
            .strip_prefix(b"/*+")?;
        let length = rest.windows(2).position(|w| w == b"*/")?;
        let from = self.sql.len() - rest.len();
        let (hints, error) = hint::read(self.sql, from, from + length, self.modes);
        self.hint_comments.push(HintComment {
            block,
            hints,
            error,
        });
        Some(String::from_utf8_lossy(rest.get(..length)?.trim_ascii()).into())
    }

    /// The hints of the statement that was read, for its tree.
    pub(super) fn statement_hints(&mut self) -> Option<Box<StatementHints>> {
        let comments = std::mem::take(&mut self.hint_comments);
        let blocks = self.blocks;
        (!comments.is_empty()).then(|| Box::new(StatementHints { comments, blocks }))
    }

    fn select_options(&mut self, select: &mut Select) -> Result<()> {
        let options = &mut SelectOptions::default();
        loop {
            let flag = match self.keyword() {
                "ALL" => &mut false,
                "DISTINCT" | "DISTINCTROW" => &mut select.distinct,
                "HIGH_PRIORITY" => &mut options.high_priority,
                "STRAIGHT_JOIN" => &mut options.straight_join,
                "SQL_SMALL_RESULT" => &mut options.sql_small_result,
                "SQL_BIG_RESULT" => &mut options.sql_big_result,
                "SQL_BUFFER_RESULT" => &mut options.sql_buffer_result,
                "SQL_NO_CACHE" => &mut options.sql_no_cache,
                "SQL_CALC_FOUND_ROWS" => &mut options.sql_calc_found_rows,
                _ => break,
            };
            *flag = true;
            self.advance();
        }
        select.options = *options;
        Ok(())
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        // a.*, a.b.*
        if matches!(self.kind(), TokenKind::Word | TokenKind::QuotedName)
            && self.is_ahead(1, TokenKind::Dot)
        {
            if self.is_ahead(2, TokenKind::Star) {
                let name = self.object_name_before_star()?;
                return Ok(SelectItem::QualifiedWildcard(ObjectName {
                    schema: None,
                    name,
                }));
            }
            if self.is_ahead(3, TokenKind::Dot) && self.is_ahead(4, TokenKind::Star) {
                let schema = Some(self.table_ident()?);
                self.advance();
                let name = self.any_table_ident()?;
                self.advance();
                self.advance();
                return Ok(SelectItem::QualifiedWildcard(ObjectName { schema, name }));
            }
        }
        let start = self.tok(0).token.start;
        let expr = self.expr()?;
        let span = Span {
            start,
            end: self.last_end,
        };
        let alias = match self.eat("AS") {
            true => Some(self.ident_or_string()?),
            false if self.at_ident() || self.at_string() => Some(self.ident_or_string()?),
            false => None,
        };
        Ok(SelectItem::Expr { expr, alias, span })
    }

    /// `name.*`
    fn object_name_before_star(&mut self) -> Result<Ident> {
        let name = self.table_ident()?;
        self.need(TokenKind::Dot)?;
        self.need(TokenKind::Star)?;
        Ok(name)
    }

    pub(super) fn opt_where(&mut self) -> Result<Option<Expr>> {
        match self.eat("WHERE") {
            true => Ok(Some(self.expr()?)),
            false => Ok(None),
        }
    }

    pub(super) fn opt_order_by(&mut self) -> Result<Vec<OrderItem>> {
        match self.eat_all(&["ORDER", "BY"]) {
            true => self.list(Self::order_item),
            false => Ok(Vec::new()),
        }
    }

    fn order_item(&mut self) -> Result<OrderItem> {
        let expr = self.expr()?;
        let expr = self.by_value(expr);
        Ok(OrderItem {
            expr,
            descending: self.eat_any(&["ASC", "DESC"]) == Some("DESC"),
        })
    }

    pub(super) fn opt_limit(&mut self) -> Result<Option<Limit>> {
        if !self.eat("LIMIT") {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.take(TokenKind::Comma) {
            return Ok(Some(Limit {
                count: self.limit_value()?,
                offset: Some(first),
            }));
        }
        let offset = match self.eat("OFFSET") {
            true => Some(self.limit_value()?),
            false => None,
        };
        Ok(Some(Limit {
            count: first,
            offset,
        }))
    }

    /// A whole number, a parameter, or a routine's variable.
    pub(super) fn limit_value(&mut self) -> Result<Expr> {
        match self.kind() {
            TokenKind::Literal(LiteralKind::Int | LiteralKind::BigInt | LiteralKind::Hex)
            | TokenKind::Placeholder
            | TokenKind::QuotedName => self.expr_at(expr::Level::Suffix),
            TokenKind::Word if self.at_ident() => Ok(Expr::Column(Box::new(self.column_ref()?))),
            _ => Err(self.syntax_error()),
        }
    }

    fn opt_locking(&mut self) -> Result<Option<Locking>> {
        if self.eat_all(&["LOCK", "IN", "SHARE", "MODE"]) {
            return Ok(Some(Locking {
                update: false,
                of: Vec::new(),
                wait: LockWait::Wait,
            }));
        }
        if !self.at_all(&["FOR", "UPDATE"]) && !self.at_all(&["FOR", "SHARE"]) {
            return Ok(None);
        }
        self.advance();
        let update = self.advance().keyword.text() == "UPDATE";
        let of = match self.eat("OF") {
            true => self.list(Self::object_name)?,
            false => Vec::new(),
        };
        let wait = if self.eat("NOWAIT") {
            LockWait::NoWait
        } else if self.eat_all(&["SKIP", "LOCKED"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        };
        Ok(Some(Locking { update, of, wait }))
    }

    fn opt_into(&mut self) -> Result<Option<SelectInto>> {
        if !self.eat("INTO") {
            return Ok(None);
        }
        if self.eat("OUTFILE") {
            let path = self.string()?;
            let charset = match self.eat_charset_words() {
                true => Some(self.charset_name()?),
                false => None,
            };
            return Ok(Some(SelectInto::OutFile {
                path,
                charset,
                format: self.file_format()?,
            }));
        }
        if self.eat("DUMPFILE") {
            return Ok(Some(SelectInto::DumpFile(self.string()?)));
        }
        let targets = self.list(|p| match p.is(TokenKind::Variable) {
            true => p.variable().map(IntoTarget::User),
            false => p.ident().map(IntoTarget::Local),
        })?;
        Ok(Some(SelectInto::Variables(targets)))
    }

    /// `FIELDS | COLUMNS … LINES …`
    pub(super) fn file_format(&mut self) -> Result<FileFormat> {
        let mut format = FileFormat::default();
        if self.eat_any(&["FIELDS", "COLUMNS"]).is_some() {
            loop {
                if self.eat_all(&["TERMINATED", "BY"]) {
                    format.fields_terminated = Some(self.string_or_hex()?);
                } else if self.at("OPTIONALLY") || self.at("ENCLOSED") {
                    format.optionally_enclosed = self.eat("OPTIONALLY");
                    self.expect_all(&["ENCLOSED", "BY"])?;
                    format.fields_enclosed = Some(self.string_or_hex()?);
                } else if self.eat_all(&["ESCAPED", "BY"]) {
                    format.fields_escaped = Some(self.string_or_hex()?);
                } else {
                    break;
                }
            }
        }
        if self.eat("LINES") {
            loop {
                if self.eat_all(&["STARTING", "BY"]) {
                    format.lines_starting = Some(self.string_or_hex()?);
                } else if self.eat_all(&["TERMINATED", "BY"]) {
                    format.lines_terminated = Some(self.string_or_hex()?);
                } else {
                    break;
                }
            }
        }
        Ok(format)
    }

    // -- Table references
    // ---------------------------------------------------------------------------------

    pub(super) fn table_refs(&mut self) -> Result<Vec<TableRef>> {
        self.list(Self::table_ref)
    }

    /// A table with everything joined to it.
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        let first = self.nested(Self::table_factor)?;
        self.joins(first)
    }

    fn at_join(&mut self) -> bool {
        self.at_any(&[
            "JOIN",
            "INNER",
            "CROSS",
            "LEFT",
            "RIGHT",
            "NATURAL",
            "STRAIGHT_JOIN",
        ])
    }

    /// ON, but not `ON DUPLICATE KEY UPDATE`, which follows INSERT's query.
    fn at_on(&mut self) -> bool {
        self.at("ON") && !self.at_ahead(1, "DUPLICATE")
    }

    fn joins(&mut self, mut left: TableRef) -> Result<TableRef> {
        loop {
            if self.at_on() {
                // a JOIN b JOIN c ON … ON …: the last ON belongs to the first JOIN.
                let error = self.syntax_error();
                self.advance();
                let condition = JoinCondition::On(self.expr()?);
                left = attach_join_condition(left, condition).ok_or(error)?;
                continue;
            }
            if self.at("USING") {
                let error = self.syntax_error();
                self.advance();
                let condition = JoinCondition::Using(self.paren_list(Self::ident)?);
                left = attach_join_condition(left, condition).ok_or(error)?;
                continue;
            }
            if !self.at_join() {
                return Ok(left);
            }
            self.chain()?;
            left = self.join(left)?;
        }
    }

    fn join(&mut self, left: TableRef) -> Result<TableRef> {
        let natural = self.eat("NATURAL");
        let kind = match self.eat_any(&["JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "STRAIGHT_JOIN"])
        {
            Some("LEFT") => JoinKind::Left,
            Some("RIGHT") => JoinKind::Right,
            Some("STRAIGHT_JOIN") => JoinKind::Straight,
            Some("JOIN") => JoinKind::Inner,
            Some(_) => {
                self.expect("JOIN")?;
                JoinKind::Inner
            }
            None => return Err(self.syntax_error()),
        };
        let outer = matches!(kind, JoinKind::Left | JoinKind::Right);
        if outer {
            self.eat("OUTER");
            self.expect("JOIN")?;
        }
        let mut right = self.nested(Self::table_factor)?;
        if natural {
            return Ok(joined(left, right, kind, JoinCondition::Natural));
        }
        // An outer join must have its condition, so what comes before it is joined to the right
        // side.
        while outer && self.at_join() {
            self.chain()?;
            right = self.nested(|p| p.join(right))?;
        }
        let condition = if self.at_on() {
            self.advance();
            JoinCondition::On(self.expr()?)
        } else if self.eat("USING") {
            JoinCondition::Using(self.paren_list(Self::ident)?)
        } else if outer {
            return Err(self.syntax_error());
        } else {
            JoinCondition::None
        };
        Ok(joined(left, right, kind, condition))
    }

    fn table_factor(&mut self) -> Result<TableRef> {
        match self.kind() {
            TokenKind::LeftParen => match self.parenthesised()? {
                ParenthesizedTables::Tables(tables) => Ok(tables),
                ParenthesizedTables::Query(query) => self.derived(*query, false),
            },
            TokenKind::LeftBrace => {
                self.advance();
                self.expect("OJ")?;
                let table = self.table_ref()?;
                self.need(TokenKind::RightBrace)?;
                Ok(table)
            }
            _ if self.eat("LATERAL") => {
                let query = self.parens(Self::query)?;
                self.derived(query, true)
            }
            _ if self.at("JSON_TABLE") => self.json_table(),
            _ => self.table(),
        }
    }

    /// `(query)` or `(table references)`.
    fn parenthesised(&mut self) -> Result<ParenthesizedTables> {
        self.nested(|p| {
            p.need(TokenKind::LeftParen)?;
            let inner = if p.at_query() {
                ParenthesizedTables::Query(Box::new(p.query()?))
            } else if p.is(TokenKind::LeftParen) {
                match p.parenthesised()? {
                    ParenthesizedTables::Query(query) if p.at_query_continuation() => {
                        ParenthesizedTables::Query(Box::new(p.query_from(*query)?))
                    }
                    ParenthesizedTables::Query(query) if p.is(TokenKind::RightParen) => {
                        ParenthesizedTables::Query(query)
                    }
                    ParenthesizedTables::Query(query) => {
                        let first = p.derived(*query, false)?;
                        ParenthesizedTables::Tables(p.tables_from(first)?)
                    }
                    ParenthesizedTables::Tables(first) => {
                        ParenthesizedTables::Tables(p.tables_from(first)?)
                    }
                }
            } else {
                let first = p.table_factor()?;
                ParenthesizedTables::Tables(p.tables_from(first)?)
            };
            p.need(TokenKind::RightParen)?;
            Ok(inner)
        })
    }

    /// The rest of a parenthesised list of table references; commas are joins.
    fn tables_from(&mut self, first: TableRef) -> Result<TableRef> {
        let mut left = self.joins(first)?;
        while self.take(TokenKind::Comma) {
            self.chain()?;
            let right = self.table_ref()?;
            left = joined(left, right, JoinKind::Inner, JoinCondition::None);
        }
        Ok(left)
    }

    fn derived(&mut self, query: Query, lateral: bool) -> Result<TableRef> {
        let alias = self.opt_alias()?.unwrap_or_default();
        let columns = match alias.is_empty() {
            true => Vec::new(),
            false => self.opt_column_names()?,
        };
        Ok(TableRef::Derived(Box::new(Derived {
            lateral,
            query,
            alias,
            columns,
        })))
    }

    /// `[[AS] alias]`
    pub(super) fn opt_alias(&mut self) -> Result<Option<Ident>> {
        match self.eat("AS") || (self.take(TokenKind::Eq) && self.at_ident()) {
            true => self.table_ident().map(Some),
            false => Ok(self.opt_ident()?.map(|name| self.folded(name))),
        }
    }

    fn table(&mut self) -> Result<TableRef> {
        let name = self.object_name()?;
        let partitions = self.opt_partitions()?;
        let alias = self.opt_alias()?;
        let mut index_hints = Vec::new();
        while self.at_any(&["USE", "FORCE", "IGNORE"])
            && (self.at_ahead(1, "INDEX") || self.at_ahead(1, "KEY"))
        {
            index_hints.push(self.index_hint()?);
        }
        Ok(TableRef::Table(Box::new(TableFactor {
            name,
            alias,
            partitions,
            index_hints,
        })))
    }

    /// `[PARTITION (a, b)]`
    pub(super) fn opt_partitions(&mut self) -> Result<Vec<Ident>> {
        match self.at("PARTITION") && self.is_ahead(1, TokenKind::LeftParen) {
            true => {
                self.advance();
                self.paren_list(Self::ident)
            }
            false => Ok(Vec::new()),
        }
    }

    fn index_hint(&mut self) -> Result<IndexHint> {
        let action = match self.advance().keyword.text() {
            "USE" => IndexHintAction::Use,
            "FORCE" => IndexHintAction::Force,
            _ => IndexHintAction::Ignore,
        };
        self.advance();
        let scope = match self.eat("FOR") {
            false => None,
            true if self.eat("JOIN") => Some(IndexHintScope::Join),
            true if self.eat_all(&["ORDER", "BY"]) => Some(IndexHintScope::OrderBy),
            true => {
                self.expect_all(&["GROUP", "BY"])?;
                Some(IndexHintScope::GroupBy)
            }
        };
        let indexes =
            self.parens(
                |p| match p.is(TokenKind::RightParen) && action == IndexHintAction::Use {
                    true => Ok(Vec::new()),
                    false => p.list(Self::index_name),
                },
            )?;
        Ok(IndexHint {
            action,
            scope,
            indexes,
        })
    }

    /// The name of an index, PRIMARY included.
    pub(super) fn index_name(&mut self) -> Result<Ident> {
        match self.at("PRIMARY") {
            true => Ok(self.take_name()),
            false => self.ident(),
        }
    }

    fn json_table(&mut self) -> Result<TableRef> {
        self.expect("JSON_TABLE")?;
        self.need(TokenKind::LeftParen)?;
        let doc = self.expr()?;
        self.need(TokenKind::Comma)?;
        let path = self.string()?;
        let columns = self.json_table_columns()?;
        self.need(TokenKind::RightParen)?;
        let alias = self.opt_alias()?.unwrap_or_default();
        Ok(TableRef::JsonTable(Box::new(JsonTable {
            doc,
            path,
            columns,
            alias,
        })))
    }

    fn json_table_columns(&mut self) -> Result<Vec<JsonTableColumn>> {
        self.expect("COLUMNS")?;
        self.nested(|p| p.paren_list(Self::json_table_column))
    }

    fn json_table_column(&mut self) -> Result<JsonTableColumn> {
        if self.eat("NESTED") {
            self.eat("PATH");
            let path = self.string()?;
            return Ok(JsonTableColumn::Nested {
                path,
                columns: self.json_table_columns()?,
            });
        }
        let name = self.ident()?;
        if self.eat_all(&["FOR", "ORDINALITY"]) {
            return Ok(JsonTableColumn::Ordinality(name));
        }
        let data_type = self.data_type()?;
        let collation = match self.eat("COLLATE") {
            true => Some(self.charset_name()?),
            false => None,
        };
        let exists = self.eat("EXISTS");
        self.expect("PATH")?;
        let path = self.string()?;
        let (on_empty, on_error) = self.json_responses()?;
        Ok(JsonTableColumn::Path {
            name,
            data_type,
            collation,
            exists,
            path,
            on_empty,
            on_error,
        })
    }
}

/// A query that is only a body, as the body.
fn flatten(query: Query) -> QueryBody {
    let bare = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.locking.is_empty()
        && query.into.is_none();
    match bare {
        true => query.body,
        false => QueryBody::Query(Box::new(query)),
    }
}

fn joined(left: TableRef, right: TableRef, kind: JoinKind, condition: JoinCondition) -> TableRef {
    TableRef::Join(Box::new(Join {
        left,
        right,
        kind,
        condition,
    }))
}

/// Gives `condition` to the last join of `tree` that has none; what was joined after it moves to
/// its right side.
fn attach_join_condition(tree: TableRef, condition: JoinCondition) -> Option<TableRef> {
    let mut later = Vec::new();
    let mut tree = tree;
    loop {
        let TableRef::Join(join) = tree else {
            return None;
        };
        let Join {
            left,
            right,
            kind,
            condition: own,
        } = *join;
        if own != JoinCondition::None {
            later.push((right, kind, own));
            tree = left;
            continue;
        }
        let right = later
            .into_iter()
            .rev()
            .fold(right, |left, (right, kind, own)| {
                joined(left, right, kind, own)
            });
        return Some(joined(left, right, kind, condition));
    }
}
