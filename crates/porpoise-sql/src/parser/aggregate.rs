//! Aggregate functions, and windows.

use std::sync::Arc;

use super::*;

/// Where a frame's bound may lie.
const BOTH_WAYS: [&str; 2] = ["PRECEDING", "FOLLOWING"];

/// Aggregate functions by name. Those marked are functions only when the parenthesis follows at
/// once.
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

impl Parser<'_> {
    pub(super) fn aggregate(&mut self, function: AggregateFunction) -> Result<Expr> {
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
    pub(super) fn maybe_window(&mut self, function: Function) -> Result<Expr> {
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
                true => p.list(Self::expr)?.into(),
                false => Arc::default(),
            };
            let order_by = p.opt_order_by()?.into();
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
                    let start = p.frame_bound(&BOTH_WAYS)?;
                    p.expect("AND")?;
                    (start, Some(p.frame_bound(&BOTH_WAYS)?))
                }
                // Up to the current row: so it begins before.
                false => (p.frame_bound(&BOTH_WAYS[..1])?, None),
            };
            Ok(Window {
                base,
                partition_by,
                order_by,
                frame: Some(Frame { unit, start, end }),
            })
        })
    }

    fn frame_bound(&mut self, ways: &[&'static str]) -> Result<FrameBound> {
        if self.eat_all(&["CURRENT", "ROW"]) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.eat("UNBOUNDED") {
            return match self.eat_any(ways) {
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
        match self.eat_any(ways) {
            Some("PRECEDING") => Ok(FrameBound::Preceding(amount, unit)),
            Some(_) => Ok(FrameBound::Following(amount, unit)),
            None => Err(self.syntax_error()),
        }
    }
}
