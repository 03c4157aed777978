//! Expressions: precedence climbing over MySQL's operators, and the functions with a syntax of
//! their own.
//!
//! Binding, loosest first (MySQL 8.4 manual, 14.4.1); see [`Level`]:
//!
//! ```text
//! OR ||  <  XOR  <  AND &&  <  NOT  <  = <=> < > IS  <  IN BETWEEN LIKE REGEXP  <  |  <  &  <  << >>
//!        <  + -  <  * / % DIV MOD  <  ^  <  || as concatenation  <  - ~ !  (prefix)  <  COLLATE
//! ```

use super::call::call;
use super::primary::IntervalOrFunction;
use super::special_call::cast;
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

impl Parser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.expr_at(Level::Or)
    }

    /// An expression of operators that bind at least as tightly as `min`.
    pub(super) fn expr_at(&mut self, min: Level) -> Result<Expr> {
        let outer = std::mem::replace(&mut self.height, 0);
        let result = self.nested(|p| {
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
    pub(super) fn climb(&mut self, mut left: Expr, min: Level) -> Result<Expr> {
        while let Some((infix, level)) = self.infix() {
            if level < min {
                break;
            }
            if self.height + self.depth > HEIGHT_MAX {
                return Err(self.error(ParseErrorKind::TooDeep));
            }
            left = self.infix_rest(left, infix, level)?;
            self.deepest = self.deepest.max(self.depth + self.height);
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
    /// A literal, perhaps with a sign, without the operators behind it.
    pub(super) fn signed_literal(&mut self) -> Result<Expr> {
        let op = match self.kind() {
            TokenKind::Minus => UnaryOp::Neg,
            TokenKind::Plus => UnaryOp::Plus,
            _ => return self.primary(),
        };
        self.advance();
        Ok(Expr::Unary(op, Box::new(self.primary()?)))
    }

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
}
