//! Texts of definitions as they are kept and shown: expressions of defaults, generated columns and
//! checks.
//!
//! They read the same under every sql_mode: names are quoted, operators have their parentheses,
//! strings of expressions carry their character set.

use porpoise_sql::ast;

/// The canonical text of an expression.
pub fn expression(expr: &ast::Expr) -> String {
    expr.with_introducer("utf8mb4").to_string()
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
