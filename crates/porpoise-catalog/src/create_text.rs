//! The texts of SHOW CREATE TABLE, VIEW and DATABASE, as MySQL 8.4 writes them: dumps and
//! object-relational mappers read them back.

use std::fmt::Write;

use compact_str::CompactString;
use porpoise_core::quote::{name, quoted};
use porpoise_core::variables::SessionVars;
use porpoise_sql::{ast, stack};
use porpoise_types::{Collation, DataType, Value, convert};

use crate::{
    Check, Column, ColumnDefault, ForeignKey, Index, IndexKind, ReferenceAction, Schema, Table,
    View,
};

/// SHOW CREATE TABLE's text. `next_auto_increment` is printed when above 1.
pub fn table(table: &Table, session: &SessionVars, next_auto_increment: u64) -> String {
    table_in("InnoDB", table, session, next_auto_increment)
}

/// As [`table`], of a table in the storage engine of that name.
pub fn table_in(
    engine: &str,
    table: &Table,
    session: &SessionVars,
    next_auto_increment: u64,
) -> String {
    let mut out = String::from(if table.temporary {
        "CREATE TEMPORARY TABLE "
    } else {
        "CREATE TABLE "
    });
    out.push_str(&name(&table.name));
    out.push_str(" (\n");
    let columns = table
        .declared_columns()
        .map(|column| self::column(table, column, session));
    let indexes = table.indexes.iter().map(|index| self::index(table, index));
    let mut keys: Vec<&ForeignKey> = table.foreign_keys.iter().collect();
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    let keys = keys.into_iter().map(|key| foreign_key(table, key));
    let checks = table.checks.iter().map(check);
    let lines: Vec<String> = columns.chain(indexes).chain(keys).chain(checks).collect();
    for (position, line) in lines.iter().enumerate() {
        out.push_str("  ");
        out.push_str(line);
        out.push_str(if position + 1 < lines.len() {
            ",\n"
        } else {
            "\n"
        });
    }
    out.push_str(") ENGINE=");
    out.push_str(engine);
    if table.auto_increment_column().is_some() && next_auto_increment > 1 {
        let _ = write!(out, " AUTO_INCREMENT={next_auto_increment}");
    }
    let charset = table.collation.charset();
    let _ = write!(out, " DEFAULT CHARSET={}", charset.name());
    if shows_collation(table.collation) {
        let _ = write!(out, " COLLATE={}", table.collation.name());
    }
    for (option, value) in &table.options {
        let _ = write!(out, " {option}={value}");
    }
    if !table.comment.is_empty() {
        let _ = write!(out, " COMMENT={}", quoted(&table.comment));
    }
    out
}

/// A table's collation is printed unless it is its character set's default; utf8mb4's always is.
fn shows_collation(collation: Collation) -> bool {
    !collation.is_default() || collation == Collation::UTF8MB4_0900_AI_CI
}

fn column(table: &Table, column: &Column, session: &SessionVars) -> String {
    let mut out = name(&column.name);
    out.push(' ');
    out.push_str(&column.ty.sql_name());
    out.push_str(&charset_clause(column, table.collation));
    if let Some(generated) = &column.generated {
        let kind = if generated.stored {
            "STORED"
        } else {
            "VIRTUAL"
        };
        let _ = write!(out, " GENERATED ALWAYS AS ({}) {kind}", generated.sql);
    }
    if !column.nullable {
        out.push_str(" NOT NULL");
    } else if matches!(column.ty, DataType::Timestamp { .. }) {
        out.push_str(" NULL");
    }
    if column.auto_increment {
        out.push_str(" AUTO_INCREMENT");
    }
    if let Some(default) = default_clause(column, session) {
        let _ = write!(out, " DEFAULT {default}");
    }
    if column.on_update_now {
        let _ = write!(out, " ON UPDATE {}", now(&column.ty));
    }
    if !column.visible {
        out.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        let _ = write!(out, " COMMENT {}", quoted(&column.comment));
    }
    out
}

/// ` CHARACTER SET … COLLATE …` where the column's isn't the table's, or its definition said so.
fn charset_clause(column: &Column, of_table: Collation) -> String {
    let ty = &column.ty;
    let is_text = matches!(
        ty,
        DataType::Char { .. }
            | DataType::Varchar { .. }
            | DataType::Text { .. }
            | DataType::Enum(_)
            | DataType::Set(_)
    );
    let collation = ty.collation();
    if !is_text {
        String::new()
    } else if collation != of_table || column.explicit_collation {
        format!(
            " CHARACTER SET {} COLLATE {}",
            collation.charset().name(),
            collation.name()
        )
    } else if !collation.is_default() {
        // The table's own is left out only where it is the character set's default.
        format!(" COLLATE {}", collation.name())
    } else {
        String::new()
    }
}

/// `CURRENT_TIMESTAMP`, with the column's fractional digits.
pub fn now(ty: &DataType) -> String {
    match ty {
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } if *fsp > 0 => {
            format!("CURRENT_TIMESTAMP({fsp})")
        }
        _ => "CURRENT_TIMESTAMP".to_string(),
    }
}

/// A literal default's text, without quotes: also information_schema's COLUMN_DEFAULT.
pub fn default_text(value: &Value, ty: &DataType, session: &SessionVars) -> Option<String> {
    match (value, ty) {
        (Value::Null, _) => None,
        (Value::UInt(bits), DataType::Bit(_)) => Some(format!("b'{bits:b}'")),
        (Value::DateTime(utc), DataType::Timestamp { .. }) => Some(convert::to_text(
            &Value::DateTime(session.from_utc(*utc)),
            ty,
        )),
        (Value::Bytes(bytes), _) if std::str::from_utf8(bytes).is_err() => {
            Some(bytes.iter().fold(String::from("0x"), |text, byte| {
                text + &format!("{byte:02X}")
            }))
        }
        (Value::Bytes(bytes), DataType::Binary(_)) => {
            // The zero bytes that pad a BINARY are not shown.
            let end = bytes
                .iter()
                .rposition(|&byte| byte != 0)
                .map_or(0, |last| last + 1);
            Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
        }
        (value, ty) => Some(convert::to_text(value, ty)),
    }
}

fn default_clause(column: &Column, session: &SessionVars) -> Option<String> {
    if column.generated.is_some() {
        return None;
    }
    match &column.default {
        ColumnDefault::None => None,
        // MySQL prints no DEFAULT NULL for BLOB and TEXT.
        ColumnDefault::Literal(Value::Null)
            if column.ty.is_blob() && column.ty != DataType::Json =>
        {
            None
        }
        ColumnDefault::Literal(Value::Null) => column.nullable.then(|| "NULL".to_string()),
        ColumnDefault::Literal(value) => {
            let text = default_text(value, &column.ty, session)?;
            Some(
                if matches!(column.ty, DataType::Bit(_)) || text.starts_with("0x") {
                    text
                } else {
                    quoted(&text)
                },
            )
        }
        ColumnDefault::Now => Some(now(&column.ty)),
        ColumnDefault::Expression { sql, .. } => Some(format!("({sql})")),
    }
}

fn index(table: &Table, index: &Index) -> String {
    let mut out = match index.kind {
        IndexKind::Primary => "PRIMARY KEY".to_string(),
        IndexKind::Unique => format!("UNIQUE KEY {}", name(&index.name)),
        IndexKind::NonUnique => format!("KEY {}", name(&index.name)),
    };
    out.push_str(" (");
    for (position, part) in index.parts.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        match part.expression(table) {
            Some(sql) => {
                let _ = write!(out, "({sql})");
            }
            None => out.push_str(&name(&table.columns[part.column].name)),
        }
        if let Some(prefix) = part.prefix {
            let _ = write!(out, "({prefix})");
        }
        if part.descending {
            out.push_str(" DESC");
        }
    }
    out.push(')');
    if let Some(algorithm) = &index.algorithm {
        let _ = write!(out, " USING {algorithm}");
    }
    if !index.comment.is_empty() {
        let _ = write!(out, " COMMENT {}", quoted(&index.comment));
    }
    if !index.visible {
        out.push_str(" /*!80000 INVISIBLE */");
    }
    out
}

/// A foreign key, as errors name it too. The parent's schema is printed where it is another.
pub fn foreign_key(table: &Table, key: &ForeignKey) -> String {
    let list =
        |names: &mut dyn Iterator<Item = &str>| names.map(name).collect::<Vec<_>>().join(", ");
    let columns = list(
        &mut key
            .columns
            .iter()
            .map(|&column| table.columns[column].name.as_str()),
    );
    let parent_columns = list(&mut key.parent_columns.iter().map(|column| column.as_str()));
    let mut out = format!(
        "CONSTRAINT {} FOREIGN KEY ({columns}) REFERENCES ",
        name(&key.name)
    );
    if key.parent_schema != table.schema {
        let _ = write!(out, "{}.", name(&key.parent_schema));
    }
    let _ = write!(out, "{} ({parent_columns})", name(&key.parent_table));
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if action != ReferenceAction::NoAction {
            let _ = write!(out, " ON {event} {}", action.name());
        }
    }
    out
}

fn check(check: &Check) -> String {
    let enforced = if check.enforced {
        ""
    } else {
        " /*!80016 NOT ENFORCED */"
    };
    format!(
        "CONSTRAINT {} CHECK ({}){enforced}",
        name(&check.name),
        check.sql
    )
}

/// SHOW CREATE DATABASE's text.
pub fn schema(schema: &Schema, if_not_exists: bool) -> String {
    let not_exists = if if_not_exists {
        "/*!32312 IF NOT EXISTS*/ "
    } else {
        ""
    };
    let charset = schema.collation.charset().name();
    let collate = if shows_collation(schema.collation) {
        format!(" COLLATE {}", schema.collation.name())
    } else {
        String::new()
    };
    let encryption = if schema.encrypted { 'Y' } else { 'N' };
    let read_only = match schema.read_only {
        true => " /* READ ONLY=1 */",
        false => "",
    };
    format!(
        "CREATE DATABASE {not_exists}{} /*!40100 DEFAULT CHARACTER SET {charset}{collate} */ \
         /*!80016 DEFAULT ENCRYPTION='{encryption}' */{read_only}",
        name(&schema.name)
    )
}

/// SHOW CREATE VIEW's text. A view in the current schema is named without it, and so are its tables
/// if all of them are there.
pub fn view(view: &View, current_schema: Option<&str>) -> String {
    let (query, depth) = query_of(view).unzip();
    stack::reserve(depth.unwrap_or(0), || {
        view_text(view, query, current_schema)
    })
}

fn view_text(view: &View, query: Option<ast::Query>, current_schema: Option<&str>) -> String {
    let (user, host) = view.definer_name();
    let security = if view.invoker { "INVOKER" } else { "DEFINER" };
    let is_here = current_schema == Some(view.schema.as_str());
    let qualified = match is_here {
        true => name(&view.name),
        false => format!("{}.{}", name(&view.schema), name(&view.name)),
    };
    let within = query.as_ref().filter(|_| is_here);
    let within = within.and_then(|query| query.within_schema(&view.schema));
    let sql = within.as_ref().unwrap_or(&view.sql);
    let mut out = format!(
        "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {security} VIEW {qualified}{} AS {}",
        view.algorithm,
        name(user),
        name(host),
        column_list(view, query.as_ref()),
        sql
    );
    if !view.check_option.is_empty() {
        let _ = write!(out, " WITH {} CHECK OPTION", view.check_option);
    }
    out
}

/// A view's query, and how deep it nests; its text doesn't depend on any session's sql_mode.
fn query_of(view: &View) -> Option<(ast::Query, u32)> {
    let parsed = porpoise_sql::parse_statement(view.sql.as_bytes(), 0, porpoise_sql::Modes::NONE);
    let porpoise_sql::Parsed {
        statement, depth, ..
    } = parsed.ok()??;
    match statement {
        ast::Statement::Query(query) => Some((*query, depth)),
        _ => None,
    }
}

/// ` (a,b)` where the view's columns are called otherwise than its query's.
fn column_list(view: &View, query: Option<&ast::Query>) -> String {
    let names = query.and_then(|query| item_names(&query.body));
    if names.is_some_and(|names| names.iter().copied().eq(view.columns.iter().map(Some))) {
        return String::new();
    }
    let columns: Vec<String> = view.columns.iter().map(|column| name(column)).collect();
    format!(" ({})", columns.join(","))
}

/// The aliases of a query's columns; `None` for what is no select list.
fn item_names(body: &ast::QueryBody) -> Option<Vec<Option<&CompactString>>> {
    match body {
        ast::QueryBody::Select(select) => {
            let names = select.items.iter().map(|item| match item {
                ast::SelectItem::Expr { alias, .. } => alias.as_ref().map(|alias| &alias.0),
                _ => None,
            });
            Some(names.collect())
        }
        ast::QueryBody::SetOperation(operation) => item_names(&operation.left),
        ast::QueryBody::Query(query) => item_names(&query.body),
        ast::QueryBody::Values(_) | ast::QueryBody::Table(_) => None,
    }
}
