//! Names, and calls of functions in the usual syntax.

use super::expr::Level;
use super::*;

/// Names that are functions only when the parenthesis follows at once, or under IGNORE_SPACE
/// (MySQL 8.4 manual, 11.2.5).
const NO_SPACE_FUNCTIONS: &[&str] = &[
    "adddate",
    "bit_and",
    "bit_or",
    "bit_xor",
    "cast",
    "count",
    "curdate",
    "curtime",
    "date_add",
    "date_sub",
    "extract",
    "group_concat",
    "max",
    "mid",
    "min",
    "now",
    "position",
    "session_user",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "subdate",
    "substr",
    "substring",
    "sum",
    "sysdate",
    "system_user",
    "trim",
    "var_pop",
    "var_samp",
    "variance",
];

/// Functions known under several names, and the one the tree has.
pub const SYNONYMS: &[(&str, &str)] = &[
    ("substring", "substr"),
    ("mid", "substr"),
    ("schema", "database"),
    ("session_user", "user"),
    ("system_user", "user"),
    ("current_date", "curdate"),
    ("current_time", "curtime"),
    ("current_timestamp", "now"),
    ("localtime", "now"),
    ("localtimestamp", "now"),
    ("lcase", "lower"),
    ("ucase", "upper"),
    ("power", "pow"),
    ("ceil", "ceiling"),
    ("character_length", "char_length"),
    ("octet_length", "length"),
    ("day", "dayofmonth"),
];

/// Reserved words that are also names of functions called in the usual way.
pub(crate) const RESERVED_FUNCTIONS: &[&str] = &[
    "DATABASE",
    "SCHEMA",
    "LEFT",
    "RIGHT",
    "IF",
    "REPLACE",
    "INSERT",
    "REPEAT",
    "MOD",
    "GROUPING",
    "CURRENT_USER",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "CUME_DIST",
    "DENSE_RANK",
    "FIRST_VALUE",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "NTH_VALUE",
    "NTILE",
    "PERCENT_RANK",
    "RANK",
    "ROW_NUMBER",
];

/// Reserved words that call a function even without parentheses.
pub(super) const BARE_FUNCTIONS: &[&str] = &[
    "CURRENT_USER",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
];

/// How many arguments those functions take at least and at most whose calls are part of the
/// grammar: any other count is a syntax error, not error 1582.
const GRAMMAR_COUNTS: &[(&str, usize, usize)] = &[
    ("ascii", 1, 1),
    ("charset", 1, 1),
    ("coalesce", 1, usize::MAX),
    ("collation", 1, 1),
    ("cume_dist", 0, 0),
    ("curdate", 0, 0),
    ("current_user", 0, 0),
    ("curtime", 0, 1),
    ("database", 0, 0),
    ("date", 1, 1),
    ("dayofmonth", 1, 1),
    ("dense_rank", 0, 0),
    ("first_value", 1, 1),
    ("format", 2, 3),
    ("grouping", 1, usize::MAX),
    ("hour", 1, 1),
    ("if", 3, 3),
    ("insert", 4, 4),
    ("lag", 1, 3),
    ("last_value", 1, 1),
    ("lead", 1, 3),
    ("left", 2, 2),
    ("microsecond", 1, 1),
    ("minute", 1, 1),
    ("mod", 2, 2),
    ("month", 1, 1),
    ("now", 0, 1),
    ("nth_value", 2, 2),
    ("ntile", 1, 1),
    ("percent_rank", 0, 0),
    ("quarter", 1, 1),
    ("rank", 0, 0),
    ("repeat", 2, 2),
    ("replace", 3, 3),
    ("reverse", 1, 1),
    ("right", 2, 2),
    ("row_count", 0, 0),
    ("row_number", 0, 0),
    ("second", 1, 1),
    ("sysdate", 0, 1),
    ("time", 1, 1),
    ("timestamp", 1, 2),
    ("truncate", 2, 2),
    ("user", 0, 0),
    ("utc_date", 0, 0),
    ("utc_time", 0, 1),
    ("utc_timestamp", 0, 1),
    ("week", 1, 2),
    ("year", 1, 1),
];

/// Functions whose literal arguments, from the n-th on, a plan depends on: they never become
/// parameters.
const PLANNED_ARGUMENTS: &[(&str, usize)] = &[
    ("round", 1),
    ("truncate", 1),
    ("now", 0),
    ("curtime", 0),
    ("sysdate", 0),
    ("utc_time", 0),
    ("utc_timestamp", 0),
    ("ntile", 0),
    ("lag", 1),
    ("lead", 1),
    ("nth_value", 1),
    ("get_format", 0),
    ("interval", 1),
    ("addtime", 1),
    ("subtime", 1),
    ("convert_tz", 0),
    ("str_to_date", 1),
    ("time", 0),
    ("timediff", 0),
    ("timestamp", 0),
    ("unix_timestamp", 0),
];

pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(Box::new(Function {
        schema: None,
        name: Ident::new(name),
        written: Ident::new(name),
        args,
    }))
}

fn is_no_space_function(name: &[u8]) -> bool {
    let mut functions = NO_SPACE_FUNCTIONS.iter();
    functions.any(|function| function.as_bytes().eq_ignore_ascii_case(name))
}

impl Parser<'_> {
    /// Whether the current word is a function's and can't be a name: `count(`.
    pub(super) fn at_no_space_call(&mut self) -> bool {
        self.kind() == TokenKind::Word
            && self.tok(1).token.kind == TokenKind::LeftParen
            && self.has_touching_parenthesis()
            && is_no_space_function(self.text())
    }

    /// Whether a parenthesis behind the current word belongs to it.
    fn has_touching_parenthesis(&mut self) -> bool {
        let touches = self.tok(1).token.start == self.tok(0).token.end;
        touches || self.modes.has(Modes::IGNORE_SPACE)
    }

    /// A column, or a call of a function.
    pub(super) fn name_or_call(&mut self) -> Result<Expr> {
        let tok = self.tok(0);
        let next = self.tok(1).token;
        if tok.token.kind == TokenKind::Word {
            if tok.keyword.is_reserved() {
                return Err(self.syntax_error());
            }
            if next.kind == TokenKind::LeftParen {
                let name = self.text().to_ascii_lowercase();
                return match is_no_space_function(&name) && !self.has_touching_parenthesis() {
                    true => self.stored_call(),
                    false => self.named_call(&name),
                };
            }
        } else if next.kind == TokenKind::LeftParen {
            return self.stored_call();
        }
        let first = self.ident()?;
        let column = self.column_ref_from(first)?;
        match self.kind() {
            // schema.function(…)
            TokenKind::LeftParen if column.table.is_some() && column.schema.is_none() => {
                let args = self.arguments()?;
                Ok(Expr::Function(Box::new(Function {
                    schema: column.table,
                    written: column.name.clone(),
                    name: column.name,
                    args,
                })))
            }
            TokenKind::Arrow | TokenKind::ArrowText => {
                let unquote = self.advance().token.kind == TokenKind::ArrowText;
                let path = Expr::Literal(Literal::String(self.string()?));
                let extract = call("json_extract", vec![Expr::Column(Box::new(column)), path]);
                Ok(if unquote {
                    call("json_unquote", vec![extract])
                } else {
                    extract
                })
            }
            _ => Ok(Expr::Column(Box::new(column))),
        }
    }

    /// A call of what can't be a built-in function that has a syntax of its own.
    fn stored_call(&mut self) -> Result<Expr> {
        let written = self.ident()?;
        let args = self.arguments()?;
        self.maybe_window(Function {
            schema: None,
            name: Ident::new(written.to_ascii_lowercase()),
            written,
            args,
        })
    }

    /// A call by an unquoted name, which is in lower case here.
    fn named_call(&mut self, name: &[u8]) -> Result<Expr> {
        let aggregate = AGGREGATES
            .iter()
            .find(|(known, _)| known.as_bytes() == name);
        if let Some((_, function)) = aggregate {
            return self.aggregate(*function);
        }
        match name {
            b"cast" => {
                self.advance();
                self.cast_rest()
            }
            b"date_add" | b"adddate" | b"date_sub" | b"subdate" => {
                self.advance();
                let subtract = name.ends_with(b"sub") || name.starts_with(b"sub");
                self.date_add(subtract, name.ends_with(b"date"))
            }
            b"extract" => {
                self.advance();
                self.parens(|p| {
                    let unit = p.time_unit()?;
                    p.expect("FROM")?;
                    let expr = p.expr()?;
                    Ok(Expr::Extract(unit, Box::new(expr)))
                })
            }
            b"trim" => {
                self.advance();
                self.trim()
            }
            b"position" => {
                self.advance();
                self.parens(|p| {
                    let needle = p.expr_at(Level::BitOr)?;
                    p.expect("IN")?;
                    let text = p.expr()?;
                    Ok(call("locate", vec![needle, text]))
                })
            }
            b"substring" | b"substr" | b"mid" => {
                self.advance();
                self.parens(|p| {
                    let mut args = vec![p.expr()?];
                    let from = p.eat("FROM");
                    if !from {
                        p.need(TokenKind::Comma)?;
                    }
                    args.push(p.expr()?);
                    if (from && p.eat("FOR")) || (!from && p.take(TokenKind::Comma)) {
                        args.push(p.expr()?);
                    }
                    Ok(call("substr", args))
                })
            }
            _ => self.plain_call(),
        }
    }

    /// `name(args)`, or a bare name that calls a function.
    pub(super) fn plain_call(&mut self) -> Result<Expr> {
        let written = self.take_name();
        let lower = written.to_ascii_lowercase();
        let name = SYNONYMS
            .iter()
            .find(|(synonym, _)| *synonym == lower)
            .map_or(lower.as_str(), |(_, name)| name);
        let counts = GRAMMAR_COUNTS
            .iter()
            .find(|(known, ..)| *known == name)
            .map_or((0, usize::MAX), |(_, min, max)| (*min, *max));
        let args = match self.is(TokenKind::LeftParen) {
            true => self.counted_arguments(counts)?,
            false => Vec::new(),
        };
        if name == "mod" && args.len() == 2 {
            let mut args = args.into_iter();
            if let (Some(left), Some(right)) = (args.next(), args.next()) {
                return Ok(Expr::Binary(BinaryOp::Mod, Box::new((left, right))));
            }
            return Err(self.syntax_error());
        }
        let args = self.planned_arguments(name, args);
        self.maybe_window(Function {
            schema: None,
            name: Ident::new(name),
            written: Ident::new(written.as_str()),
            args,
        })
    }

    /// Gives those arguments their values back that a plan depends on.
    pub(super) fn planned_arguments(&mut self, name: &str, args: Vec<Expr>) -> Vec<Expr> {
        let Some((_, from)) = PLANNED_ARGUMENTS.iter().find(|(known, _)| *known == name) else {
            return args;
        };
        let by_value = |(n, arg)| if n >= *from { self.by_value(arg) } else { arg };
        args.into_iter().enumerate().map(by_value).collect()
    }

    /// `(a, b, …)`, `()`. Arguments of loadable functions may have aliases, which are dropped.
    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.counted_arguments((0, usize::MAX))
    }

    /// Arguments of which there are at least and at most so many.
    fn counted_arguments(&mut self, (min, max): (usize, usize)) -> Result<Vec<Expr>> {
        self.parens(|p| {
            let mut args = Vec::new();
            if max > 0 && !p.is(TokenKind::RightParen) {
                args.push(p.expr()?);
                while args.len() < max && p.take(TokenKind::Comma) {
                    args.push(p.expr()?);
                }
            }
            match args.len() < min {
                true => Err(p.syntax_error()),
                false => Ok(args),
            }
        })
    }
}
