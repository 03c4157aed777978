//! Functions with a syntax of their own: `CONVERT`, `CAST`, `MATCH`, `TRIM`, `JSON_VALUE`…

use super::call::call;
use super::expr::Level;
use super::primary::IntervalOrFunction;
use super::*;

pub(super) fn cast(expr: Expr, to: CastType) -> Expr {
    Expr::Cast(Box::new(Cast {
        expr,
        to,
        time_zone: None,
        array: false,
    }))
}

impl Parser<'_> {
    /// `CONVERT(expr, type)`, `CONVERT(expr USING charset)`
    pub(super) fn convert(&mut self) -> Result<Expr> {
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
    pub(super) fn cast_rest(&mut self) -> Result<Expr> {
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
                let CharsetSpec { charset, binary } = self.charset_spec(CharsetSpec::default())?;
                CastType::Char {
                    length,
                    charset,
                    binary,
                }
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

    pub(super) fn match_against(&mut self) -> Result<Expr> {
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
    pub(super) fn timestamp_function(&mut self, add: bool) -> Result<Expr> {
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

    pub(super) fn json_value(&mut self) -> Result<Expr> {
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
    pub(super) fn weight_string(&mut self) -> Result<Expr> {
        self.advance();
        self.parens(|p| {
            let expr = p.expr()?;
            if !p.eat("AS") {
                return Ok(call("weight_string", vec![expr]));
            }
            if p.eat("CHAR") {
                let Some(chars @ 1..) = p.opt_length()? else {
                    return Err(p.syntax_error());
                };
                let chars = Expr::Literal(Literal::Int(chars.into()));
                return Ok(call("weight_string", vec![expr, chars]));
            }
            let to = p.cast_type()?;
            Ok(call("weight_string", vec![cast(expr, to)]))
        })
    }

    /// `(date, INTERVAL amount unit)`; of ADDDATE and SUBDATE, `(date, days)` too.
    pub(super) fn date_add(&mut self, subtract: bool, days: bool) -> Result<Expr> {
        self.parens(|p| {
            let date = p.expr()?;
            p.need(TokenKind::Comma)?;
            let (amount, unit) = match p.eat("INTERVAL") {
                true => match p.interval_or_function()? {
                    IntervalOrFunction::Interval(amount, unit) => (amount, unit),
                    IntervalOrFunction::Function(days) => (days, IntervalUnit::Day),
                },
                false if days => (p.expr()?, IntervalUnit::Day),
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
    pub(super) fn trim(&mut self) -> Result<Expr> {
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
}
