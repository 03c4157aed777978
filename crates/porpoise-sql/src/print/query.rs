//! Queries as SQL.

use super::*;

/// Whether a body binds looser than INTERSECT.
fn is_loose(body: &QueryBody) -> bool {
    matches!(body, QueryBody::SetOperation(operation) if operation.op != SetOperator::Intersect)
}

impl Printer<'_, '_> {
    // -- Queries
    // ------------------------------------------------------------------------------------------

    /// A query in FROM or WITH.
    pub(super) fn subquery(&mut self, open: &str, query: &Query) -> fmt::Result {
        self.nested_query(open, query, true)
    }

    /// A query in an expression: nobody asks for its columns' names.
    pub(super) fn value_subquery(&mut self, open: &str, query: &Query) -> fmt::Result {
        self.nested_query(open, query, false)
    }

    fn nested_query(&mut self, open: &str, query: &Query, names_items: bool) -> fmt::Result {
        let outer = std::mem::replace(&mut self.names_items, names_items);
        self.word(open)?;
        self.query(query)?;
        self.names_items = outer;
        self.word(")")
    }

    pub(super) fn query(&mut self, query: &Query) -> fmt::Result {
        if let Some(with) = &query.with {
            self.word(if with.recursive {
                "with recursive "
            } else {
                "with "
            })?;
            self.list(&with.tables, |p, table| {
                put!(p, "{}", table.name)?;
                p.column_names(&table.columns)?;
                p.subquery(" as (", &table.query)
            })?;
            self.word(" ")?;
        }
        self.body(&query.body)?;
        self.order_by(&query.order_by)?;
        if let Some(limit) = &query.limit {
            self.word(" limit ")?;
            if let Some(offset) = &limit.offset {
                self.expr(offset)?;
                self.word(",")?;
            }
            self.expr(&limit.count)?;
        }
        for locking in &query.locking {
            self.word(if locking.update {
                " for update"
            } else {
                " for share"
            })?;
            if !locking.of.is_empty() {
                self.word(" of ")?;
                self.list(&locking.of, |p, table| put!(p, "{table}"))?;
            }
            self.word(match locking.wait {
                LockWait::Wait => "",
                LockWait::NoWait => " nowait",
                LockWait::SkipLocked => " skip locked",
            })?;
        }
        match &query.into {
            Some(into) => self.into(into),
            None => Ok(()),
        }
    }

    fn into(&mut self, into: &SelectInto) -> fmt::Result {
        self.word(" into ")?;
        match into {
            SelectInto::Variables(targets) => self.list(targets, |p, target| match target {
                IntoTarget::User(name) => put!(p, "@{name}"),
                IntoTarget::Local(name) => put!(p, "{name}"),
            }),
            SelectInto::DumpFile(path) => {
                self.word("dumpfile ")?;
                self.string(path)
            }
            SelectInto::OutFile {
                path,
                charset,
                format,
            } => {
                self.word("outfile ")?;
                self.string(path)?;
                if let Some(charset) = charset {
                    put!(self, " character set {}", charset.as_str())?;
                }
                self.file_format(format)
            }
        }
    }

    fn file_format(&mut self, format: &FileFormat) -> fmt::Result {
        let enclosed = if format.optionally_enclosed {
            " optionally enclosed by "
        } else {
            " enclosed by "
        };
        let fields = [
            (" terminated by ", &format.fields_terminated),
            (enclosed, &format.fields_enclosed),
            (" escaped by ", &format.fields_escaped),
        ];
        let lines = [
            (" starting by ", &format.lines_starting),
            (" terminated by ", &format.lines_terminated),
        ];
        for (word, parts) in [(" fields", &fields[..]), (" lines", &lines[..])] {
            if parts.iter().any(|(_, value)| value.is_some()) {
                self.word(word)?;
            }
            for (name, value) in parts {
                if let Some(value) = value {
                    self.word(name)?;
                    self.string(value)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn order_by(&mut self, items: &[OrderItem]) -> fmt::Result {
        if items.is_empty() {
            return Ok(());
        }
        self.word(" order by ")?;
        self.order_items(items)
    }

    fn order_items(&mut self, items: &[OrderItem]) -> fmt::Result {
        self.list(items, |p, item| {
            p.expr(&item.expr)?;
            p.word(if item.descending { " desc" } else { "" })
        })
    }

    fn body(&mut self, body: &QueryBody) -> fmt::Result {
        match body {
            QueryBody::Select(select) => self.select(select),
            QueryBody::Values(rows) => {
                self.word("values ")?;
                self.list(rows, |p, row| {
                    p.word("row(")?;
                    p.exprs(row)?;
                    p.word(")")
                })
            }
            QueryBody::Table(name) => {
                self.word("table ")?;
                self.table_name(name)
            }
            QueryBody::SetOperation(operation) => {
                let left_needs_parens =
                    operation.op == SetOperator::Intersect && is_loose(&operation.left);
                self.operand(&operation.left, left_needs_parens)?;
                self.word(match operation.op {
                    SetOperator::Union => " union ",
                    SetOperator::Intersect => " intersect ",
                    SetOperator::Except => " except ",
                })?;
                self.word(if operation.all { "all " } else { "" })?;
                let right_needs_parens = matches!(&operation.right, QueryBody::SetOperation(right)
                    if right.op != SetOperator::Intersect || operation.op == SetOperator::Intersect);
                self.operand(&operation.right, right_needs_parens)
            }
            QueryBody::Query(query) => self.nested_query("(", query, self.names_items),
        }
    }

    pub(super) fn operand(&mut self, body: &QueryBody, parens: bool) -> fmt::Result {
        self.word(if parens { "(" } else { "" })?;
        self.body(body)?;
        self.word(if parens { ")" } else { "" })
    }

    fn select(&mut self, select: &Select) -> fmt::Result {
        self.word("select ")?;
        if let Some(hints) = &select.hints {
            put!(self, "/*+ {hints} */ ")?;
        }
        let options = &select.options;
        for (set, word) in [
            (select.distinct, "distinct "),
            (options.high_priority, "high_priority "),
            (options.straight_join, "straight_join "),
            (options.sql_small_result, "sql_small_result "),
            (options.sql_big_result, "sql_big_result "),
            (options.sql_buffer_result, "sql_buffer_result "),
            (options.sql_no_cache, "sql_no_cache "),
            (options.sql_calc_found_rows, "sql_calc_found_rows "),
        ] {
            self.word(if set { word } else { "" })?;
        }
        self.list(&select.items, Self::select_item)?;
        if !select.from.is_empty() {
            self.word(" from ")?;
            self.from(&select.from)?;
        }
        if let Some(selection) = &select.selection {
            self.word(if select.from.is_empty() {
                " from dual where "
            } else {
                " where "
            })?;
            self.expr(selection)?;
        }
        if !select.group_by.is_empty() {
            self.word(" group by ")?;
            self.order_items(&select.group_by)?;
            self.word(if select.rollup { " with rollup" } else { "" })?;
        }
        if let Some(having) = &select.having {
            self.word(" having ")?;
            self.expr(having)?;
        }
        if !select.windows.is_empty() {
            self.word(" window ")?;
            self.list(&select.windows, |p, (name, window)| {
                put!(p, "{name} AS ")?;
                p.window(window)
            })?;
        }
        Ok(())
    }

    fn select_item(&mut self, item: &SelectItem) -> fmt::Result {
        let gives = self.names.and_then(|names| names.item(item));
        match (item, gives) {
            (SelectItem::Expr { expr, alias, .. }, gives) => {
                self.expr(expr)?;
                let name = gives.and_then(|gives| gives.first().map(|given| &given.name));
                let name = name.filter(|_| self.names_items);
                match alias.as_ref().or(name) {
                    Some(alias) => put!(self, " AS {alias}"),
                    None => Ok(()),
                }
            }
            (_, Some(gives)) => self.list(gives, |p, given| {
                if let Some(column) = &given.column {
                    put!(p, "{column}")?;
                }
                match p.names_items {
                    true => put!(p, " AS {}", given.name),
                    false => Ok(()),
                }
            }),
            (SelectItem::Wildcard, None) => self.word("*"),
            (SelectItem::QualifiedWildcard(table), None) => put!(self, "{table}.*"),
        }
    }

    fn table_ref(&mut self, table: &TableRef) -> fmt::Result {
        match table {
            TableRef::Table(table) => {
                self.table_name(&table.name)?;
                if !table.partitions.is_empty() {
                    self.word(" partition (")?;
                    self.idents(&table.partitions)?;
                    self.word(")")?;
                }
                self.alias(&table.alias)?;
                table
                    .index_hints
                    .iter()
                    .try_for_each(|hint| self.index_hint(hint))
            }
            TableRef::Derived(derived) => {
                self.word(if derived.lateral { "lateral " } else { "" })?;
                self.subquery("(", &derived.query)?;
                if !derived.alias.is_empty() {
                    put!(self, " {}", derived.alias)?;
                }
                self.column_names(&derived.columns)
            }
            TableRef::JsonTable(table) => {
                self.word("json_table(")?;
                self.expr(&table.doc)?;
                self.word(", ")?;
                self.string(&table.path)?;
                self.json_columns(&table.columns)?;
                self.word(")")?;
                match table.alias.is_empty() {
                    true => Ok(()),
                    false => put!(self, " {}", table.alias),
                }
            }
            TableRef::Join(join) => self.join(join),
        }
    }

    fn alias(&mut self, alias: &Option<Ident>) -> fmt::Result {
        match alias {
            Some(alias) => put!(self, " {alias}"),
            None => Ok(()),
        }
    }

    fn index_hint(&mut self, hint: &IndexHint) -> fmt::Result {
        self.word(match hint.action {
            IndexHintAction::Use => " use index ",
            IndexHintAction::Force => " force index ",
            IndexHintAction::Ignore => " ignore index ",
        })?;
        self.word(match hint.scope {
            None => "(",
            Some(IndexHintScope::Join) => "for join (",
            Some(IndexHintScope::OrderBy) => "for order by (",
            Some(IndexHintScope::GroupBy) => "for group by (",
        })?;
        self.idents(&hint.indexes)?;
        self.word(")")
    }

    fn json_columns(&mut self, columns: &[JsonTableColumn]) -> fmt::Result {
        self.word(" columns (")?;
        self.list(columns, |p, column| match column {
            JsonTableColumn::Ordinality(name) => put!(p, "{name} for ordinality"),
            JsonTableColumn::Path {
                name,
                data_type,
                collation,
                exists,
                path,
                on_empty,
                on_error,
            } => {
                put!(p, "{name} {data_type}")?;
                if let Some(collation) = collation {
                    put!(p, " collate {}", collation.as_str())?;
                }
                p.word(if *exists { " exists path " } else { " path " })?;
                p.string(path)?;
                p.responses(on_empty, on_error)
            }
            JsonTableColumn::Nested { path, columns } => {
                p.word("nested path ")?;
                p.string(path)?;
                p.json_columns(columns)
            }
        })?;
        self.word(")")
    }

    /// The tables of FROM. A view's definition has joins where it was written with commas.
    fn from(&mut self, tables: &[TableRef]) -> fmt::Result {
        if self.names.is_none() {
            return self.list(tables, Self::table_ref);
        }
        for (n, table) in tables.iter().enumerate() {
            self.word(if n > 0 { " join " } else { "" })?;
            self.table_ref(table)?;
        }
        Ok(())
    }

    fn join(&mut self, join: &Join) -> fmt::Result {
        let noted = self.names.and_then(|names| names.join(join));
        // A view's definition has no RIGHT JOIN.
        let (kind, left, right) = match (join.kind, self.names) {
            (JoinKind::Right, Some(_)) => (JoinKind::Left, &join.right, &join.left),
            (kind, _) => (kind, &join.left, &join.right),
        };
        self.word("(")?;
        self.table_ref(left)?;
        self.word(
            if noted.is_none() && join.condition == JoinCondition::Natural {
                " natural"
            } else {
                ""
            },
        )?;
        self.word(match kind {
            JoinKind::Inner => " join ",
            JoinKind::Straight => " straight_join ",
            JoinKind::Left => " left join ",
            JoinKind::Right => " right join ",
        })?;
        self.table_ref(right)?;
        if let Some(condition) = noted {
            // Its names are full ones.
            let names = self.names.take();
            if let Some(condition) = condition {
                self.word(" on(")?;
                self.expr(condition)?;
                self.word(")")?;
            }
            self.names = names;
            return self.word(")");
        }
        match &join.condition {
            JoinCondition::None | JoinCondition::Natural => {}
            JoinCondition::On(condition) => {
                self.word(" on(")?;
                self.expr(condition)?;
                self.word(")")?;
            }
            JoinCondition::Using(columns) => {
                self.word(" using (")?;
                self.idents(columns)?;
                self.word(")")?;
            }
        }
        self.word(")")
    }
}
