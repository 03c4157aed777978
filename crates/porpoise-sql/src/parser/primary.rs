//! What an expression is made of: literals, names, variables, and the forms that begin with a word.

use super::call::{BARE_FUNCTIONS, call};
use super::expr::Level;
use super::*;

/// What stands behind INTERVAL.
pub(super) enum IntervalOrFunction {
    Interval(Expr, IntervalUnit),
    Function(Expr),
}

fn string_follows_introducer(word: &[u8], next: TokenKind) -> bool {
    let follows = matches!(
        next,
        TokenKind::Literal(LiteralKind::String | LiteralKind::Hex | LiteralKind::Bit)
    );
    follows
        && word.first() == Some(&b'_')
        && CHARSETS
            .iter()
            .any(|c| c.as_bytes().eq_ignore_ascii_case(&word[1..]))
}

/// Character sets that can introduce a string (MySQL 8.4 manual, 12.10).
const CHARSETS: &[&str] = &[
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
    "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
    "utf8", "utf8mb3", "utf8mb4",
];

pub(super) fn introduced(charset: Ident, bytes: Box<[u8]>, binary_form: bool) -> Expr {
    Expr::Literal(Literal::Introduced(Box::new(Introduced {
        charset,
        bytes,
        binary_form,
    })))
}

impl Parser<'_> {
    /// An expression without operators.
    pub(super) fn primary(&mut self) -> Result<Expr> {
        let tok = self.tok(0);
        match tok.token.kind {
            TokenKind::Literal(kind) => self.literal(kind),
            TokenKind::NationalString => {
                let token = self.advance().token;
                let mut bytes =
                    lexer::unquote(token.text(self.sql).get(1..).unwrap_or(&[]), self.modes)
                        .into_owned();
                if self.at_string() {
                    bytes.extend_from_slice(&self.string()?);
                }
                Ok(introduced("utf8mb3".into(), bytes.into(), false))
            }
            TokenKind::Placeholder => {
                self.advance();
                Ok(Expr::Param(tok.ordinal))
            }
            TokenKind::Variable => {
                let name = self.take_name();
                match self.take(TokenKind::Assign) {
                    true => Ok(Expr::AssignVariable(Box::new((name, self.expr()?)))),
                    false => Ok(Expr::UserVariable(name)),
                }
            }
            TokenKind::AtAt => Ok(Expr::SystemVariable(Box::new(self.system_variable()?))),
            TokenKind::LeftParen => {
                self.advance();
                let inner = self.paren_expr()?;
                Ok(inner)
            }
            TokenKind::LeftBrace => {
                // ODBC: {d '…'}, {fn f(x)}.
                self.advance();
                let kind = self.ident()?.to_ascii_lowercase();
                let expr = match kind.as_str() {
                    "d" | "t" | "ts" if self.at_string() => {
                        let text = CompactString::from_utf8_lossy(&self.string()?);
                        Expr::Literal(match kind.as_str() {
                            "d" => Literal::Date(text),
                            "t" => Literal::Time(text),
                            _ => Literal::Timestamp(text),
                        })
                    }
                    _ => self.expr()?,
                };
                self.need(TokenKind::RightBrace)?;
                Ok(expr)
            }
            TokenKind::QuotedName => self.name_or_call(),
            TokenKind::Dot if self.at_ident_ahead(1) => {
                Ok(Expr::Column(Box::new(self.column_ref()?)))
            }
            TokenKind::Word => self.word(),
            _ => Err(self.syntax_error()),
        }
    }

    /// Behind a left parenthesis, up to and with the right one.
    fn paren_expr(&mut self) -> Result<Expr> {
        let first = match self.at_query() {
            true => Expr::Subquery(Box::new(self.query()?)),
            false => self.paren_content()?,
        };
        if !self.is(TokenKind::Comma) {
            self.need(TokenKind::RightParen)?;
            return Ok(first);
        }
        let mut row = vec![first];
        while self.take(TokenKind::Comma) {
            row.push(self.expr()?);
        }
        self.need(TokenKind::RightParen)?;
        Ok(Expr::Row(row))
    }

    /// What may stand first inside a parenthesis when it does not begin with SELECT: an expression,
    /// or a query that begins with another parenthesis.
    pub(super) fn paren_content(&mut self) -> Result<Expr> {
        match self.expr()? {
            Expr::Subquery(query) if self.at_query_continuation() => {
                Ok(Expr::Subquery(Box::new(self.query_from(*query)?)))
            }
            expr => Ok(expr),
        }
    }

    /// A literal; a parameter, if literals are to become such.
    fn literal(&mut self, kind: LiteralKind) -> Result<Expr> {
        let tok = self.advance();
        if kind == LiteralKind::String && self.at_string() {
            let mut bytes = lexer::unquote(tok.token.text(self.sql), self.modes).into_owned();
            bytes.extend_from_slice(&self.string()?);
            return Ok(Expr::Literal(Literal::String(bytes.into())));
        }
        if let Some(mask) = &mut self.params {
            mask.set(tok.ordinal);
            return Ok(Expr::Param(tok.ordinal));
        }
        Ok(Expr::Literal(
            lexer::literal_value(kind, tok.token.text(self.sql), self.modes).into(),
        ))
    }

    /// A literal that became a parameter, as a literal again; anything else as it is.
    pub(super) fn by_value(&mut self, expr: Expr) -> Expr {
        if let Expr::Unary(op, operand) = expr {
            return Expr::Unary(op, Box::new(self.by_value(*operand)));
        }
        let (Expr::Param(n), Some(mask)) = (&expr, &mut self.params) else {
            return expr;
        };
        let Some(token) = self.literal_tokens.get(*n as usize) else {
            return expr;
        };
        let TokenKind::Literal(kind) = token.kind else {
            return expr;
        };
        mask.clear(*n);
        Expr::Literal(lexer::literal_value(kind, token.text(self.sql), self.modes).into())
    }

    /// `@@[scope.][component.]name`
    pub(super) fn system_variable(&mut self) -> Result<SystemVariable> {
        self.need(TokenKind::AtAt)?;
        let scope = match self.is_ahead(1, TokenKind::Dot) {
            true => self.variable_scope(),
            false => None,
        };
        if scope.is_some() {
            self.need(TokenKind::Dot)?;
        }
        let name = self.any_ident()?;
        match self.take(TokenKind::Dot) {
            true => Ok(SystemVariable {
                scope,
                component: Some(name),
                name: self.any_ident()?,
            }),
            false => Ok(SystemVariable {
                scope,
                component: None,
                name,
            }),
        }
    }

    /// `GLOBAL`, `SESSION`…
    pub(super) fn variable_scope(&mut self) -> Option<VariableScope> {
        Some(
            match self.eat_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"])? {
                "GLOBAL" => VariableScope::Global,
                "PERSIST" => VariableScope::Persist,
                "PERSIST_ONLY" => VariableScope::PersistOnly,
                _ => VariableScope::Session,
            },
        )
    }

    /// An expression that begins with a word.
    fn word(&mut self) -> Result<Expr> {
        let word = self.keyword();
        let next = self.tok(1).token;
        let open = next.kind == TokenKind::LeftParen;
        let string = next.kind == TokenKind::Literal(LiteralKind::String);
        match word {
            "NULL" => self.constant(Literal::Null),
            "TRUE" => self.constant(Literal::Bool(true)),
            "FALSE" => self.constant(Literal::Bool(false)),
            "DATE" | "TIME" | "TIMESTAMP" if string => {
                self.advance();
                let text = CompactString::from_utf8_lossy(&self.string()?);
                Ok(Expr::Literal(match word {
                    "DATE" => Literal::Date(text),
                    "TIME" => Literal::Time(text),
                    _ => Literal::Timestamp(text),
                }))
            }
            "CASE" => self.case(),
            "EXISTS" => {
                self.advance();
                let query = self.parens(Self::query)?;
                Ok(Expr::Exists(Box::new(query)))
            }
            "INTERVAL" => {
                self.advance();
                match self.interval_or_function()? {
                    IntervalOrFunction::Function(function) => Ok(function),
                    IntervalOrFunction::Interval(amount, unit) => {
                        self.need(TokenKind::Plus)?;
                        let date = self.expr_at(Level::Product)?;
                        Ok(Expr::DateArithmetic(Box::new(DateArithmetic {
                            date,
                            amount,
                            unit,
                            subtract: false,
                        })))
                    }
                }
            }
            "CONVERT" => self.convert(),
            "MATCH" => self.match_against(),
            "ROW" if open => {
                self.advance();
                let mut row = self.paren_list(Self::expr)?;
                match (row.len(), row.pop()) {
                    (1, Some(only)) => Ok(only),
                    (_, Some(last)) => {
                        row.push(last);
                        Ok(Expr::Row(row))
                    }
                    (_, None) => Err(self.syntax_error()),
                }
            }
            "CHAR" if open => {
                self.advance();
                self.need(TokenKind::LeftParen)?;
                let codes = self.list(Self::expr)?;
                let charset = match self.eat("USING") {
                    true => Some(self.charset_name()?),
                    false => None,
                };
                self.need(TokenKind::RightParen)?;
                Ok(Expr::Char(Box::new((codes, charset))))
            }
            "DEFAULT" if open => {
                self.advance();
                let column = self.parens(Self::column_ref)?;
                Ok(Expr::DefaultOf(Box::new(column)))
            }
            "VALUES" if open => {
                self.advance();
                let column = self.parens(Self::column_ref)?;
                Ok(Expr::InsertedValue(Box::new(column)))
            }
            "TIMESTAMPADD" | "TIMESTAMPDIFF" if open => {
                self.timestamp_function(word == "TIMESTAMPADD")
            }
            "GET_FORMAT" if open => {
                self.advance();
                self.need(TokenKind::LeftParen)?;
                let Some(kind) = self.eat_any(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]) else {
                    return Err(self.syntax_error());
                };
                let kind = if kind == "TIMESTAMP" {
                    "DATETIME"
                } else {
                    kind
                };
                self.need(TokenKind::Comma)?;
                let area = self.expr()?;
                let area = self.by_value(area);
                self.need(TokenKind::RightParen)?;
                let kind = Expr::Literal(Literal::String(kind.as_bytes().into()));
                Ok(call("get_format", vec![kind, area]))
            }
            "JSON_VALUE" if open => self.json_value(),
            "WEIGHT_STRING" if open => self.weight_string(),
            _ if RESERVED_FUNCTIONS.contains(&word) => match open || BARE_FUNCTIONS.contains(&word)
            {
                true => self.plain_call(),
                false => Err(self.syntax_error()),
            },
            _ if string_follows_introducer(self.text(), next.kind) => self.introducer(),
            _ => self.name_or_call(),
        }
    }

    fn constant(&mut self, literal: Literal) -> Result<Expr> {
        self.advance();
        Ok(Expr::Literal(literal))
    }

    /// `_charset'text'`, `_charset x'…'`
    fn introducer(&mut self) -> Result<Expr> {
        let name = self.take_name();
        let charset = Ident::new(name.trim_start_matches('_').to_ascii_lowercase());
        let binary_form = !self.at_string();
        let bytes = self.string_or_hex()?;
        Ok(introduced(charset, bytes, binary_form))
    }

    fn case(&mut self) -> Result<Expr> {
        self.expect("CASE")?;
        let operand = match self.at("WHEN") {
            true => None,
            false => Some(self.expr()?),
        };
        let mut branches = Vec::new();
        while self.eat("WHEN") {
            let condition = self.expr()?;
            self.expect("THEN")?;
            branches.push((condition, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.syntax_error());
        }
        let otherwise = match self.eat("ELSE") {
            true => Some(self.expr()?),
            false => None,
        };
        self.expect("END")?;
        Ok(Expr::Case(Box::new(Case {
            operand,
            branches,
            otherwise,
        })))
    }

    /// Behind INTERVAL: `expr unit`, or `(a, b, …)`, the function.
    pub(super) fn interval_or_function(&mut self) -> Result<IntervalOrFunction> {
        let amount = match self.take(TokenKind::LeftParen) {
            true => match self.paren_expr()? {
                Expr::Row(args) => {
                    let args = self.planned_arguments("interval", args);
                    return Ok(IntervalOrFunction::Function(call("interval", args)));
                }
                first => self.climb(first, Level::Or)?,
            },
            false => self.expr()?,
        };
        Ok(IntervalOrFunction::Interval(amount, self.time_unit()?))
    }

    pub(super) fn time_unit_ahead(&mut self) -> Option<IntervalUnit> {
        let word = self.keyword();
        IntervalUnit::by_name(word.strip_prefix("SQL_TSI_").unwrap_or(word))
    }

    pub(super) fn time_unit(&mut self) -> Result<IntervalUnit> {
        match self.time_unit_ahead() {
            Some(unit) => {
                self.advance();
                Ok(unit)
            }
            None => Err(self.syntax_error()),
        }
    }
}
