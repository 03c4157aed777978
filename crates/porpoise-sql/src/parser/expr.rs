//! Expressions: precedence climbing over MySQL's operators, and the functions with a syntax of their own.
//!
//! Binding, loosest first (MySQL 8.4 manual, 14.4.1); see [`Level`]:
//!
//! ```text
//! OR ||  <  XOR  <  AND &&  <  NOT  <  = <=> < > IS  <  IN BETWEEN LIKE REGEXP  <  |  <  &  <  << >>
//!        <  + -  <  * / % DIV MOD  <  ^  <  || as concatenation  <  - ~ !  (prefix)  <  COLLATE
//! ```

use super::*;

/// How tightly an operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    Xor,
    And,
    Not,
    Comparison,
    Predicate,
    BitOr,
    BitAnd,
    Shift,
    Sum,
    Product,
    BitXor,
    Concat,
    Prefix,
    Suffix,
}

/// What an infix token does.
enum Infix {
    Or,
    And,
    Is,
    Predicate,
    Concat,
    Collate,
    Binary(BinaryOp),
}

const TIME_UNITS: &[(&str, TimeUnit)] = &[
    ("MICROSECOND", TimeUnit::Microsecond),
    ("SECOND", TimeUnit::Second),
    ("MINUTE", TimeUnit::Minute),
    ("HOUR", TimeUnit::Hour),
    ("DAY", TimeUnit::Day),
    ("WEEK", TimeUnit::Week),
    ("MONTH", TimeUnit::Month),
    ("QUARTER", TimeUnit::Quarter),
    ("YEAR", TimeUnit::Year),
    ("SECOND_MICROSECOND", TimeUnit::SecondMicrosecond),
    ("MINUTE_MICROSECOND", TimeUnit::MinuteMicrosecond),
    ("MINUTE_SECOND", TimeUnit::MinuteSecond),
    ("HOUR_MICROSECOND", TimeUnit::HourMicrosecond),
    ("HOUR_SECOND", TimeUnit::HourSecond),
    ("HOUR_MINUTE", TimeUnit::HourMinute),
    ("DAY_MICROSECOND", TimeUnit::DayMicrosecond),
    ("DAY_SECOND", TimeUnit::DaySecond),
    ("DAY_MINUTE", TimeUnit::DayMinute),
    ("DAY_HOUR", TimeUnit::DayHour),
    ("YEAR_MONTH", TimeUnit::YearMonth),
    ("SQL_TSI_SECOND", TimeUnit::Second),
    ("SQL_TSI_MINUTE", TimeUnit::Minute),
    ("SQL_TSI_HOUR", TimeUnit::Hour),
    ("SQL_TSI_DAY", TimeUnit::Day),
    ("SQL_TSI_WEEK", TimeUnit::Week),
    ("SQL_TSI_MONTH", TimeUnit::Month),
    ("SQL_TSI_QUARTER", TimeUnit::Quarter),
    ("SQL_TSI_YEAR", TimeUnit::Year),
];

impl TimeUnit {
    /// The unit's name as SQL has it, upper case.
    pub fn name(self) -> &'static str {
        TIME_UNITS
            .iter()
            .find(|(_, unit)| *unit == self)
            .map_or("", |(name, _)| name)
    }

    /// Whether an amount in this unit has several numbers (`DAY_HOUR`).
    fn is_compound(self) -> bool {
        self.name().contains('_')
    }
}

/// Aggregate functions by name. Those marked are functions only when the parenthesis follows at once.
pub(crate) const AGGREGATES: &[(&str, AggregateFunction)] = &[
    ("count", AggregateFunction::Count),
    ("sum", AggregateFunction::Sum),
    ("avg", AggregateFunction::Avg),
    ("min", AggregateFunction::Min),
    ("max", AggregateFunction::Max),
    ("group_concat", AggregateFunction::GroupConcat),
    ("std", AggregateFunction::StdDevPop),
    ("stddev", AggregateFunction::StdDevPop),
    ("stddev_pop", AggregateFunction::StdDevPop),
    ("stddev_samp", AggregateFunction::StdDevSamp),
    ("variance", AggregateFunction::VarPop),
    ("var_pop", AggregateFunction::VarPop),
    ("var_samp", AggregateFunction::VarSamp),
    ("bit_and", AggregateFunction::BitAnd),
    ("bit_or", AggregateFunction::BitOr),
    ("bit_xor", AggregateFunction::BitXor),
    ("json_arrayagg", AggregateFunction::JsonArrayAgg),
    ("json_objectagg", AggregateFunction::JsonObjectAgg),
    ("any_value", AggregateFunction::AnyValue),
    ("st_collect", AggregateFunction::StCollect),
];

impl AggregateFunction {
    /// The function's name as `SHOW CREATE VIEW` prints it.
    pub fn name(self) -> &'static str {
        match self {
            AggregateFunction::StdDevPop => "std",
            _ => AGGREGATES
                .iter()
                .find(|(_, function)| *function == self)
                .map_or("", |(name, _)| name),
        }
    }
}

/// Names that are functions only when the parenthesis follows at once, or under IGNORE_SPACE
/// (MySQL 8.4 manual, 11.2.5).
const TOUCHING: &[&str] = &[
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
const BARE_FUNCTIONS: &[&str] = &[
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

/// How many arguments those functions take at least and at most whose calls are part of the grammar: any other count
/// is a syntax error, not error 1582.
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

/// Functions whose literal arguments, from the n-th on, a plan depends on: they never become parameters.
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

impl Parser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.expr_at(Level::Or)
    }

    /// An expression of operators that bind at least as tightly as `min`.
    pub(super) fn expr_at(&mut self, min: Level) -> Result<Expr> {
        let outer = std::mem::replace(&mut self.height, 0);
        let result = self.deeper(|p| {
            let left = p.prefix(min)?;
            p.climb(left, min)
        });
        self.height = outer.max(self.height + 1);
        result
    }

    /// The operator the current token is, and how it binds.
    fn infix(&mut self) -> Option<(Infix, Level)> {
        use BinaryOp as B;
        use Infix::*;
        use Level::*;
        Some(match self.kind() {
            TokenKind::PipePipe if self.modes.has(Modes::PIPES_AS_CONCAT) => {
                (Infix::Concat, Level::Concat)
            }
            TokenKind::PipePipe => (Infix::Or, Level::Or),
            TokenKind::AmpersandAmpersand => (Infix::And, Level::And),
            TokenKind::Eq => (Binary(B::Eq), Comparison),
            TokenKind::NullSafeEq => (Binary(B::NullSafeEq), Comparison),
            TokenKind::Ne => (Binary(B::Ne), Comparison),
            TokenKind::Lt => (Binary(B::Lt), Comparison),
            TokenKind::Le => (Binary(B::Le), Comparison),
            TokenKind::Gt => (Binary(B::Gt), Comparison),
            TokenKind::Ge => (Binary(B::Ge), Comparison),
            TokenKind::Pipe => (Binary(B::BitOr), BitOr),
            TokenKind::Ampersand => (Binary(B::BitAnd), BitAnd),
            TokenKind::ShiftLeft => (Binary(B::ShiftLeft), Shift),
            TokenKind::ShiftRight => (Binary(B::ShiftRight), Shift),
            TokenKind::Plus => (Binary(B::Add), Sum),
            TokenKind::Minus => (Binary(B::Sub), Sum),
            TokenKind::Star => (Binary(B::Mul), Product),
            TokenKind::Slash => (Binary(B::Div), Product),
            TokenKind::Percent => (Binary(B::Mod), Product),
            TokenKind::Caret => (Binary(B::BitXor), BitXor),
            TokenKind::Word => match self.keyword() {
                "OR" => (Infix::Or, Level::Or),
                "AND" => (Infix::And, Level::And),
                "XOR" => (Binary(B::Xor), Xor),
                "IS" => (Is, Comparison),
                "IN" | "BETWEEN" | "LIKE" | "REGEXP" | "RLIKE" => {
                    (Infix::Predicate, Level::Predicate)
                }
                "NOT"
                    if ["IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"]
                        .iter()
                        .any(|w| self.at_ahead(1, w)) =>
                {
                    (Infix::Predicate, Level::Predicate)
                }
                "SOUNDS" if self.at_ahead(1, "LIKE") => (Infix::Predicate, Level::Predicate),
                "MEMBER" if self.at_ahead(1, "OF") || self.is_ahead(1, TokenKind::LeftParen) => {
                    (Infix::Predicate, Level::Predicate)
                }
                "DIV" => (Binary(B::IntDiv), Product),
                "MOD" => (Binary(B::Mod), Product),
                "COLLATE" => (Collate, Suffix),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Takes operators that bind at least as tightly as `min`, with their right sides.
    fn climb(&mut self, mut left: Expr, min: Level) -> Result<Expr> {
        while let Some((infix, level)) = self.infix() {
            if level < min {
                break;
            }
            if self.height + self.depth > HEIGHT_MAX {
                return Err(self.error(ParseErrorKind::TooDeep));
            }
            left = self.infix_rest(left, infix, level)?;
        }
        Ok(left)
    }

    fn infix_rest(&mut self, left: Expr, infix: Infix, level: Level) -> Result<Expr> {
        match infix {
            Infix::Or => {
                self.advance();
                let right = self.expr_at(Level::Xor)?;
                let mut operands = match left {
                    Expr::Or(operands) => operands,
                    left => vec![left],
                };
                match right {
                    Expr::Or(more) => operands.extend(more),
                    right => operands.push(right),
                }
                return Ok(Expr::Or(operands));
            }
            Infix::And => {
                self.advance();
                let right = self.expr_at(Level::Not)?;
                let mut operands = match left {
                    Expr::And(operands) => operands,
                    left => vec![left],
                };
                match right {
                    Expr::And(more) => operands.extend(more),
                    right => operands.push(right),
                }
                return Ok(Expr::And(operands));
            }
            _ => self.height += 1,
        }
        match infix {
            Infix::Binary(op) => {
                self.advance();
                self.binary_rest(left, op, level)
            }
            Infix::Is => {
                self.advance();
                let negated = self.eat("NOT");
                let test = match self.eat_any(&["NULL", "TRUE", "FALSE", "UNKNOWN"]) {
                    Some("NULL") => IsTest::Null,
                    Some("TRUE") => IsTest::True,
                    Some("FALSE") => IsTest::False,
                    Some(_) => IsTest::Unknown,
                    None => return Err(self.syntax_error()),
                };
                Ok(Expr::Is {
                    expr: Box::new(left),
                    test,
                    negated,
                })
            }
            Infix::Concat => {
                self.advance();
                let right = self.expr_at(Level::Prefix)?;
                Ok(call("concat", vec![left, right]))
            }
            Infix::Collate => {
                self.advance();
                Ok(Expr::Collate(Box::new((left, self.charset_name()?))))
            }
            _ => self.predicate_rest(left),
        }
    }

    fn binary_rest(&mut self, left: Expr, op: BinaryOp, level: Level) -> Result<Expr> {
        if level == Level::Comparison
            && let Some(word) = self.eat_any(&["ANY", "SOME", "ALL"])
        {
            let query = self.parens(Self::query)?;
            return Ok(Expr::Quantified(Box::new(Quantified {
                left,
                op,
                all: word == "ALL",
                query,
            })));
        }
        let next = match level {
            Level::Xor => Level::And,
            Level::Comparison => Level::Predicate,
            Level::BitOr => Level::BitAnd,
            Level::BitAnd => Level::Shift,
            Level::Shift => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::BitXor,
            _ => Level::Concat,
        };
        if level == Level::Sum && self.at("INTERVAL") {
            self.advance();
            let right = self.interval_or_function()?;
            return match right {
                IntervalOrFunction::Interval(amount, unit) => {
                    Ok(Expr::DateArithmetic(Box::new(DateArithmetic {
                        date: left,
                        amount,
                        unit,
                        subtract: op == BinaryOp::Sub,
                    })))
                }
                IntervalOrFunction::Function(function) => {
                    let right = self.climb(function, next)?;
                    Ok(Expr::Binary(op, Box::new((left, right))))
                }
            };
        }
        let right = self.expr_at(next)?;
        Ok(Expr::Binary(op, Box::new((left, right))))
    }

    fn predicate_rest(&mut self, left: Expr) -> Result<Expr> {
        let negated = self.eat("NOT");
        match self.advance().keyword.text() {
            "IN" => self.in_rest(left, negated),
            "BETWEEN" => {
                let low = self.expr_at(Level::BitOr)?;
                self.expect("AND")?;
                let high = self.expr_at(Level::Predicate)?;
                Ok(Expr::Between {
                    operands: Box::new([left, low, high]),
                    negated,
                })
            }
            "LIKE" => {
                let pattern = self.expr_at(Level::Concat)?;
                let escape = match self.eat("ESCAPE") {
                    true => {
                        let escape = self.expr_at(Level::Concat)?;
                        Some(self.by_value(escape))
                    }
                    false => None,
                };
                Ok(Expr::Like(Box::new(Like {
                    expr: left,
                    pattern,
                    escape,
                    negated,
                })))
            }
            "SOUNDS" => {
                self.expect("LIKE")?;
                let right = self.expr_at(Level::BitOr)?;
                let operands = (call("soundex", vec![left]), call("soundex", vec![right]));
                Ok(Expr::Binary(BinaryOp::Eq, Box::new(operands)))
            }
            "MEMBER" => {
                self.eat("OF");
                let array = self.parens(Self::expr)?;
                Ok(Expr::MemberOf(Box::new((left, array))))
            }
            _ => {
                let pattern = self.expr_at(Level::BitOr)?;
                Ok(Expr::Regexp {
                    operands: Box::new((left, pattern)),
                    negated,
                })
            }
        }
    }

    fn in_rest(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        let expr = Box::new(left);
        let mut list = self.parens(|p| match p.at_query() {
            true => Ok(vec![Expr::Subquery(Box::new(p.query()?))]),
            false => {
                let first = p.paren_content()?;
                let mut list = vec![first];
                while p.take(TokenKind::Comma) {
                    list.push(p.expr()?);
                }
                Ok(list)
            }
        })?;
        match (list.pop(), list.is_empty()) {
            (Some(Expr::Subquery(query)), true) => Ok(Expr::InQuery {
                expr,
                query,
                negated,
            }),
            (Some(last), _) => {
                list.push(last);
                Ok(Expr::In {
                    expr,
                    list,
                    negated,
                })
            }
            (None, _) => Err(self.syntax_error()),
        }
    }

    /// What begins an expression.
    fn prefix(&mut self, min: Level) -> Result<Expr> {
        let op = match self.kind() {
            TokenKind::Minus => UnaryOp::Neg,
            TokenKind::Plus => UnaryOp::Plus,
            TokenKind::Tilde => UnaryOp::BitNot,
            TokenKind::Bang => UnaryOp::Not,
            TokenKind::Word => match self.keyword() {
                "NOT" if self.modes.has(Modes::HIGH_NOT_PRECEDENCE) => UnaryOp::Not,
                "NOT" if min <= Level::Not => {
                    self.advance();
                    let operand = self.expr_at(Level::Not)?;
                    return Ok(Expr::Unary(UnaryOp::Not, Box::new(operand)));
                }
                "BINARY" => {
                    self.advance();
                    let expr = self.expr_at(Level::Prefix)?;
                    return Ok(cast(expr, CastType::Binary(None)));
                }
                _ => return self.primary(),
            },
            _ => return self.primary(),
        };
        self.advance();
        let operand = self.expr_at(Level::Prefix)?;
        Ok(Expr::Unary(op, Box::new(operand)))
    }

    /// An expression without operators.
    fn primary(&mut self) -> Result<Expr> {
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

    /// What may stand first inside a parenthesis when it does not begin with SELECT: an expression, or a query that
    /// begins with another parenthesis.
    fn paren_content(&mut self) -> Result<Expr> {
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
    fn interval_or_function(&mut self) -> Result<IntervalOrFunction> {
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

    fn time_unit_ahead(&mut self) -> Option<TimeUnit> {
        let word = self.keyword();
        TIME_UNITS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, unit)| *unit)
    }

    pub(super) fn time_unit(&mut self) -> Result<TimeUnit> {
        match self.time_unit_ahead() {
            Some(unit) => {
                self.advance();
                Ok(unit)
            }
            None => Err(self.syntax_error()),
        }
    }

    /// `CONVERT(expr, type)`, `CONVERT(expr USING charset)`
    fn convert(&mut self) -> Result<Expr> {
        self.expect("CONVERT")?;
        self.need(TokenKind::LeftParen)?;
        let expr = self.expr()?;
        let converted = match self.eat("USING") {
            true => Expr::ConvertUsing(Box::new((expr, self.charset_name()?))),
            false => {
                self.need(TokenKind::Comma)?;
                let to = self.cast_type()?;
                cast(expr, to)
            }
        };
        self.need(TokenKind::RightParen)?;
        Ok(converted)
    }

    /// `(expr AS type)` of CAST.
    fn cast_rest(&mut self) -> Result<Expr> {
        self.need(TokenKind::LeftParen)?;
        let expr = self.expr()?;
        let time_zone = match self.eat("AT") {
            true => {
                self.expect("TIME")?;
                self.expect("ZONE")?;
                self.eat("INTERVAL");
                Some(self.string()?)
            }
            false => None,
        };
        self.expect("AS")?;
        let to = self.cast_type()?;
        let array = self.eat("ARRAY");
        self.need(TokenKind::RightParen)?;
        Ok(Expr::Cast(Box::new(Cast {
            expr,
            to,
            time_zone,
            array,
        })))
    }

    /// The type CAST converts to.
    pub(super) fn cast_type(&mut self) -> Result<CastType> {
        let word = self.keyword();
        if let Some(kind) = self.geometry_kind() {
            return Ok(CastType::Geometry(kind));
        }
        if word.is_empty() {
            return Err(self.syntax_error());
        }
        let error = self.syntax_error();
        self.advance();
        Ok(match word {
            "BINARY" => CastType::Binary(self.opt_length()?),
            "CHAR" | "CHARACTER" => {
                let length = self.opt_length()?;
                let charset = match self.eat_any(&["ASCII", "UNICODE", "BINARY", "BYTE"]) {
                    Some("ASCII") => Some("latin1".into()),
                    Some("UNICODE") => Some("ucs2".into()),
                    Some("BINARY" | "BYTE") => Some("binary".into()),
                    _ if self.eat_charset_words() => Some(self.charset_name()?),
                    _ => None,
                };
                CastType::Char { length, charset }
            }
            "NCHAR" => CastType::NChar(self.opt_length()?),
            "NATIONAL" => {
                self.expect("CHAR")?;
                CastType::NChar(self.opt_length()?)
            }
            "SIGNED" => {
                let _ = self.eat("INTEGER") || self.eat("INT");
                CastType::Signed
            }
            "UNSIGNED" => {
                let _ = self.eat("INTEGER") || self.eat("INT");
                CastType::Unsigned
            }
            "DECIMAL" | "DEC" | "NUMERIC" => match self.is(TokenKind::LeftParen) {
                true => {
                    let (precision, scale) = self.precision_scale()?;
                    CastType::Decimal(Some((precision, scale)))
                }
                false => CastType::Decimal(None),
            },
            "FLOAT" => CastType::Float(self.opt_length()?),
            "REAL" if self.modes.has(Modes::REAL_AS_FLOAT) => CastType::Float(None),
            "REAL" => CastType::Double,
            "DOUBLE" => {
                self.eat("PRECISION");
                CastType::Double
            }
            "DATE" => CastType::Date,
            "TIME" => CastType::Time(self.opt_length()?),
            "DATETIME" => CastType::DateTime(self.opt_length()?),
            "YEAR" => CastType::Year,
            "JSON" => CastType::Json,
            _ => return Err(error),
        })
    }

    /// `(precision[, scale])`
    pub(super) fn precision_scale(&mut self) -> Result<(u32, Option<u32>)> {
        self.parens(|p| {
            let precision = p.u32()?;
            let scale = match p.take(TokenKind::Comma) {
                true => Some(p.u32()?),
                false => None,
            };
            Ok((precision, scale))
        })
    }

    fn match_against(&mut self) -> Result<Expr> {
        self.expect("MATCH")?;
        let columns = match self.is(TokenKind::LeftParen) {
            true => self.paren_list(Self::column_ref)?,
            false => self.list(Self::column_ref)?,
        };
        self.expect("AGAINST")?;
        self.need(TokenKind::LeftParen)?;
        // IN would be taken for the operator.
        let against = self.expr_at(Level::BitOr)?;
        let mode = if self.eat_all(&["IN", "BOOLEAN", "MODE"]) {
            MatchMode::Boolean
        } else {
            self.eat_all(&["IN", "NATURAL", "LANGUAGE", "MODE"]);
            match self.eat_all(&["WITH", "QUERY", "EXPANSION"]) {
                true => MatchMode::Expansion,
                false => MatchMode::Natural,
            }
        };
        self.need(TokenKind::RightParen)?;
        Ok(Expr::Match(Box::new(Match {
            columns,
            against,
            mode,
        })))
    }

    /// `TIMESTAMPADD(unit, amount, date)`, `TIMESTAMPDIFF(unit, from, to)`
    fn timestamp_function(&mut self, add: bool) -> Result<Expr> {
        self.advance();
        self.parens(|p| {
            let unit = match p.time_unit_ahead() {
                Some(unit) if !unit.is_compound() => p.time_unit()?,
                _ => return Err(p.syntax_error()),
            };
            p.need(TokenKind::Comma)?;
            let first = p.expr()?;
            p.need(TokenKind::Comma)?;
            let second = p.expr()?;
            Ok(match add {
                true => Expr::DateArithmetic(Box::new(DateArithmetic {
                    date: second,
                    amount: first,
                    unit,
                    subtract: false,
                })),
                false => Expr::TimestampDiff(unit, Box::new((first, second))),
            })
        })
    }

    fn json_value(&mut self) -> Result<Expr> {
        self.advance();
        self.need(TokenKind::LeftParen)?;
        let doc = self.expr()?;
        self.need(TokenKind::Comma)?;
        let path = self.expr()?;
        let path = self.by_value(path);
        let returning = match self.eat("RETURNING") {
            true => Some(self.cast_type()?),
            false => None,
        };
        let (on_empty, on_error) = self.json_responses()?;
        self.need(TokenKind::RightParen)?;
        Ok(Expr::JsonValue(Box::new(JsonValue {
            doc,
            path,
            returning,
            on_empty,
            on_error,
        })))
    }

    /// `[response ON EMPTY] [response ON ERROR]`
    pub(super) fn json_responses(
        &mut self,
    ) -> Result<(Option<JsonResponse>, Option<JsonResponse>)> {
        let mut responses = (None, None);
        while responses.1.is_none() && self.at_any(&["NULL", "ERROR", "DEFAULT"]) {
            let response = match self.advance().keyword.text() {
                "NULL" => JsonResponse::Null,
                "ERROR" => JsonResponse::Error,
                _ => {
                    let value = self.expr_at(Level::Prefix)?;
                    JsonResponse::Default(Box::new(self.by_value(value)))
                }
            };
            self.expect("ON")?;
            match self.eat("EMPTY") && responses.0.is_none() {
                true => responses.0 = Some(response),
                false => {
                    self.expect("ERROR")?;
                    responses.1 = Some(response);
                }
            }
        }
        Ok(responses)
    }

    /// `WEIGHT_STRING(expr [AS CHAR(n) | BINARY(n)])`
    fn weight_string(&mut self) -> Result<Expr> {
        self.advance();
        self.parens(|p| {
            let mut expr = p.expr()?;
            if p.eat("AS") {
                let to = p.cast_type()?;
                expr = cast(expr, to);
            }
            Ok(call("weight_string", vec![expr]))
        })
    }

    /// A column, or a call of a function.
    fn name_or_call(&mut self) -> Result<Expr> {
        let tok = self.tok(0);
        let next = self.tok(1).token;
        if tok.token.kind == TokenKind::Word {
            if tok.keyword.is_reserved() {
                return Err(self.syntax_error());
            }
            if next.kind == TokenKind::LeftParen {
                let name = self.text().to_ascii_lowercase();
                let touching = next.start == tok.token.end || self.modes.has(Modes::IGNORE_SPACE);
                let special = TOUCHING.iter().any(|t| t.as_bytes() == name);
                return match special && !touching {
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
    fn plain_call(&mut self) -> Result<Expr> {
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
    fn planned_arguments(&mut self, name: &str, args: Vec<Expr>) -> Vec<Expr> {
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

    /// `(date, INTERVAL amount unit)`; of ADDDATE and SUBDATE, `(date, days)` too.
    fn date_add(&mut self, subtract: bool, days: bool) -> Result<Expr> {
        self.parens(|p| {
            let date = p.expr()?;
            p.need(TokenKind::Comma)?;
            let (amount, unit) = match p.eat("INTERVAL") {
                true => match p.interval_or_function()? {
                    IntervalOrFunction::Interval(amount, unit) => (amount, unit),
                    IntervalOrFunction::Function(days) => (days, TimeUnit::Day),
                },
                false if days => (p.expr()?, TimeUnit::Day),
                false => return Err(p.syntax_error()),
            };
            Ok(Expr::DateArithmetic(Box::new(DateArithmetic {
                date,
                amount,
                unit,
                subtract,
            })))
        })
    }

    /// `([LEADING | TRAILING | BOTH] [remove] FROM expr)`, `(expr)`
    fn trim(&mut self) -> Result<Expr> {
        self.parens(|p| {
            let word = p.eat_any(&["LEADING", "TRAILING", "BOTH"]);
            let side = match word {
                Some("LEADING") => TrimSide::Leading,
                Some("TRAILING") => TrimSide::Trailing,
                _ => TrimSide::Both,
            };
            if word.is_some() && p.eat("FROM") {
                let expr = p.expr()?;
                return Ok(Expr::Trim(Box::new(Trim {
                    side,
                    remove: None,
                    expr,
                })));
            }
            let first = p.expr()?;
            let (remove, expr) = match p.eat("FROM") {
                true => (Some(first), p.expr()?),
                false if word.is_some() => return Err(p.syntax_error()),
                false => (None, first),
            };
            Ok(Expr::Trim(Box::new(Trim { side, remove, expr })))
        })
    }

    fn aggregate(&mut self, function: AggregateFunction) -> Result<Expr> {
        self.advance();
        self.need(TokenKind::LeftParen)?;
        let mut aggregate = Aggregate {
            function,
            distinct: false,
            args: Vec::new(),
            order_by: Vec::new(),
            separator: None,
        };
        let star = function == AggregateFunction::Count && self.take(TokenKind::Star);
        if !star {
            aggregate.distinct = self.eat("DISTINCT");
            if !aggregate.distinct {
                self.eat("ALL");
            }
            aggregate.args.push(self.expr()?);
            let several = match function {
                AggregateFunction::Count => aggregate.distinct,
                AggregateFunction::GroupConcat => true,
                AggregateFunction::JsonObjectAgg => {
                    self.need(TokenKind::Comma)?;
                    aggregate.args.push(self.expr()?);
                    false
                }
                _ => false,
            };
            while several && self.take(TokenKind::Comma) {
                aggregate.args.push(self.expr()?);
            }
            if function == AggregateFunction::GroupConcat {
                aggregate.order_by = self.opt_order_by()?;
                if self.eat("SEPARATOR") {
                    aggregate.separator = Some(self.string_or_hex()?);
                }
            }
        }
        self.need(TokenKind::RightParen)?;
        match self.at("OVER") {
            true => {
                let over = self.over()?;
                let function = WindowFunction::Aggregate(aggregate);
                Ok(Expr::Window(Box::new(WindowCall {
                    function,
                    from_last: false,
                    ignore_nulls: false,
                    over,
                })))
            }
            false => Ok(Expr::Aggregate(Box::new(aggregate))),
        }
    }

    /// A function, and the OVER that may follow it.
    fn maybe_window(&mut self, function: Function) -> Result<Expr> {
        let from_last = match self.at_all(&["FROM", "LAST"]) || self.at_all(&["FROM", "FIRST"]) {
            true if &*function.name == "nth_value" => {
                self.advance();
                self.advance().keyword.text() == "LAST"
            }
            _ => false,
        };
        let ignore_nulls = self.eat_all(&["IGNORE", "NULLS"]);
        if !ignore_nulls {
            self.eat_all(&["RESPECT", "NULLS"]);
        }
        if !self.at("OVER") {
            return Ok(Expr::Function(Box::new(function)));
        }
        let over = self.over()?;
        let function = WindowFunction::Function(function);
        Ok(Expr::Window(Box::new(WindowCall {
            function,
            from_last,
            ignore_nulls,
            over,
        })))
    }

    fn over(&mut self) -> Result<Over> {
        self.expect("OVER")?;
        match self.is(TokenKind::LeftParen) {
            true => Ok(Over::Spec(self.window_spec()?)),
            false => Ok(Over::Named(self.ident()?)),
        }
    }

    /// `([name] [PARTITION BY …] [ORDER BY …] [frame])`
    pub(super) fn window_spec(&mut self) -> Result<Window> {
        self.parens(|p| {
            let base = p.opt_ident()?;
            let partition_by = match p.eat_all(&["PARTITION", "BY"]) {
                true => p.list(Self::expr)?,
                false => Vec::new(),
            };
            let order_by = p.opt_order_by()?;
            let unit = match p.eat_any(&["ROWS", "RANGE", "GROUPS"]) {
                Some("ROWS") => FrameUnit::Rows,
                Some("RANGE") => FrameUnit::Range,
                Some(_) => FrameUnit::Groups,
                None => {
                    return Ok(Window {
                        base,
                        partition_by,
                        order_by,
                        frame: None,
                    });
                }
            };
            let (start, end) = match p.eat("BETWEEN") {
                true => {
                    let start = p.frame_bound()?;
                    p.expect("AND")?;
                    (start, Some(p.frame_bound()?))
                }
                false => (p.frame_bound()?, None),
            };
            Ok(Window {
                base,
                partition_by,
                order_by,
                frame: Some(Frame { unit, start, end }),
            })
        })
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.eat_all(&["CURRENT", "ROW"]) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.eat("UNBOUNDED") {
            return match self.eat_any(&["PRECEDING", "FOLLOWING"]) {
                Some("PRECEDING") => Ok(FrameBound::UnboundedPreceding),
                Some(_) => Ok(FrameBound::UnboundedFollowing),
                None => Err(self.syntax_error()),
            };
        }
        let (amount, unit) = match self.eat("INTERVAL") {
            true => (self.expr()?, Some(self.time_unit()?)),
            false => (self.expr()?, None),
        };
        let amount = Box::new(self.by_value(amount));
        match self.eat_any(&["PRECEDING", "FOLLOWING"]) {
            Some("PRECEDING") => Ok(FrameBound::Preceding(amount, unit)),
            Some(_) => Ok(FrameBound::Following(amount, unit)),
            None => Err(self.syntax_error()),
        }
    }
}

/// What stands behind INTERVAL.
enum IntervalOrFunction {
    Interval(Expr, TimeUnit),
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

pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(Box::new(Function {
        schema: None,
        name: Ident::new(name),
        written: Ident::new(name),
        args,
    }))
}

fn cast(expr: Expr, to: CastType) -> Expr {
    Expr::Cast(Box::new(Cast {
        expr,
        to,
        time_zone: None,
        array: false,
    }))
}

fn introduced(charset: Ident, bytes: Box<[u8]>, binary_form: bool) -> Expr {
    Expr::Literal(Literal::Introduced(Box::new(Introduced {
        charset,
        bytes,
        binary_form,
    })))
}
