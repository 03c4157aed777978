//! Texts of definitions as they are kept and shown: expressions of defaults, generated columns and
//! checks, and queries of views.
//!
//! They read the same under every sql_mode: names are quoted, operators have their parentheses,
//! strings of expressions carry their character set.

use porpoise_core::reply::ResultColumn;
use porpoise_sql::ast;

/// The canonical text of an expression.
pub fn expression(expr: &ast::Expr) -> String {
    expr.with_introducer("utf8mb4").to_string()
}

/// The canonical text of a view's query. `*` becomes the columns it stands for now: those added to
/// the tables later are not the view's.
pub fn query(query: &ast::Query, columns: &[ResultColumn]) -> String {
    let mut query = query.clone();
    if let ast::QueryBody::Select(select) = &mut query.body
        && let Some(items) = expand(&select.items, columns)
    {
        select.items = items;
    }
    query.to_string()
}

/// The select list with every wildcard replaced. `None` where it can't be told which columns it
/// stands for.
fn expand(items: &[ast::SelectItem], columns: &[ResultColumn]) -> Option<Vec<ast::SelectItem>> {
    let mut left = columns;
    let mut expanded = Vec::with_capacity(columns.len());
    for (position, item) in items.iter().enumerate() {
        let count = match item {
            ast::SelectItem::Expr { .. } => {
                expanded.push(item.clone());
                left = left.get(1..)?;
                continue;
            }
            ast::SelectItem::Wildcard => {
                left.len().checked_sub(at_least(&items[position + 1..])?)?
            }
            ast::SelectItem::QualifiedWildcard(name) => left
                .iter()
                .take_while(|column| column.table.eq_ignore_ascii_case(&name.name))
                .count(),
        };
        for column in left.get(..count)? {
            if column.name.is_empty() {
                return None;
            }
            let table = Some(&column.table)
                .filter(|table| !table.is_empty())
                .map(|table| ast::Ident(table.clone()));
            let name = ast::Ident(column.name.clone());
            let reference = ast::ColumnRef {
                schema: None,
                table,
                name: name.clone(),
            };
            expanded.push(ast::SelectItem::Expr {
                expr: ast::Expr::Column(Box::new(reference)),
                alias: Some(name),
                span: ast::Span::default(),
            });
        }
        left = left.get(count..)?;
    }
    left.is_empty().then_some(expanded)
}

/// How many columns items without wildcards have; `None` if there is one.
fn at_least(items: &[ast::SelectItem]) -> Option<usize> {
    items
        .iter()
        .all(|item| matches!(item, ast::SelectItem::Expr { .. }))
        .then_some(items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_read_back_the_same() {
        for (written, kept) in [
            ("a+b*2", "(`a` + (`b` * 2))"),
            ("concat(a, 'it''s')", "concat(`a`,_utf8mb4'it\\'s')"),
            ("a > 1 and a < 5", "((`a` > 1) and (`a` < 5))"),
            ("g->>'$.x'", "json_unquote(json_extract(`g`,_utf8mb4'$.x'))"),
        ] {
            let parse = |sql: &str| {
                porpoise_sql::parse_expr(sql.as_bytes(), porpoise_sql::Modes::NONE).expect(sql)
            };
            let once = expression(&parse(written));
            assert_eq!(once, kept);
            assert_eq!(expression(&parse(&once)), once, "read back");
        }
    }
}
