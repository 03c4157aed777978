//! Window functions: `function OVER (PARTITION BY … ORDER BY … frame)`.
//!
//! Calls over the same partition and order share a window, which has a slot for its functions'
//! results; a call is bound to a column of that slot at once.

use std::sync::Arc;

use porpoise_core::error::{Error, Result};
use porpoise_expr::aggregate::SortKey;
use porpoise_expr::typing::{self, hidden, operate};
use porpoise_expr::{Expr, ExprKind, SlotId};
use porpoise_sql::ast;
use porpoise_types::{DataType, Loss, Value, convert};

use crate::bind::Binder;
use crate::bind::group::{aggregate_name, find_aggregate};
use crate::plan::{FrameBound, WindowCall, WindowFrame, WindowKind};
use crate::query::Window;

/// A window under construction.
pub struct WindowDraft {
    pub slot: SlotId,
    partition: Vec<Expr>,
    order: Vec<SortKey>,
    functions: Vec<WindowCall>,
}

/// How messages call a window that OVER specifies.
pub(super) const UNNAMED: &str = "<unnamed window>";

/// A frame can't end before it begins, as far as its bounds' kinds tell.
fn check_frame(window: &str, frame: &ast::Frame) -> Result<()> {
    use ast::FrameBound as Bound;
    match (&frame.start, &frame.end) {
        (Bound::UnboundedFollowing, _) => Err(Error::window_frame_start_illegal(window)),
        (_, Some(Bound::UnboundedPreceding)) => Err(Error::window_frame_end_illegal(window)),
        (Bound::CurrentRow | Bound::Following(..), Some(Bound::Preceding(..)))
        | (Bound::Following(..), Some(Bound::CurrentRow)) => {
            Err(Error::window_frame_illegal(window))
        }
        _ => Ok(()),
    }
}

/// How many buckets, or how far away, is the same for all rows.
fn check_same_for_all(arguments: &[Expr], at: usize, function: &str) -> Result<()> {
    let reads_row = |part: &Expr| {
        matches!(
            part.kind,
            ExprKind::Column { .. }
                | ExprKind::Aggregate(_)
                | ExprKind::Stored { .. }
                | ExprKind::Subquery { .. }
        )
    };
    match arguments.get(at) {
        Some(count) if count.any(&mut |part| reads_row(part)) => {
            Err(Error::wrong_arguments(function))
        }
        _ => Ok(()),
    }
}

impl Binder<'_> {
    pub(super) fn window_call(&mut self, call: &ast::WindowCall) -> Result<Expr> {
        if call.from_last {
            return Err(Error::not_supported_yet("FROM LAST"));
        }
        if call.ignore_nulls {
            return Err(Error::not_supported_yet("IGNORE NULLS"));
        }
        let depth = self.scopes.len().saturating_sub(1);
        if !self.scope().windows_allowed || self.scope().in_aggregate {
            let name = match &call.function {
                ast::WindowFunction::Aggregate(aggregate) => {
                    aggregate_name(aggregate.function).to_ascii_lowercase()
                }
                ast::WindowFunction::Function(function) => function.name.as_str().to_string(),
            };
            return Err(Error::window_function_not_allowed(name));
        }
        let spec = self.window_spec(&call.over)?;
        // Windows don't nest.
        self.scopes[depth].windows_allowed = false;
        let bound = self.window_parts(call, &spec);
        self.scopes[depth].windows_allowed = true;
        let (function, nullable, partition, order) = bound?;
        let ty = typing::slot_type(&function.ty);
        let held = match &function.kind {
            WindowKind::Aggregate(aggregate) => {
                typing::held_type(aggregate, &function.arguments, &ty)
            }
            _ => ty.clone(),
        };
        let scope = &self.scopes[depth];
        let same = |draft: &WindowDraft| {
            let all = |a: &[Expr], b: &[Expr]| {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_as(b, &[]))
            };
            all(&draft.partition, &partition)
                && draft.order.len() == order.len()
                && draft
                    .order
                    .iter()
                    .zip(&order)
                    .all(|(a, b)| a.descending == b.descending && a.expr.same_as(&b.expr, &[]))
        };
        let at = match scope.windows.iter().position(same) {
            Some(at) => at,
            None => {
                let slot = self.new_slot("<window>", Vec::new(), Vec::new());
                self.scopes[depth].windows.push(WindowDraft {
                    slot,
                    partition,
                    order,
                    functions: Vec::new(),
                });
                self.scopes[depth].windows.len() - 1
            }
        };
        let draft = &mut self.scopes[depth].windows[at];
        draft.functions.push(function);
        let (slot, column) = (draft.slot, draft.functions.len() - 1);
        let slot_draft = &mut self.slots[slot.0 as usize];
        slot_draft.types.push(held.clone());
        slot_draft.used.push(true);
        if held == ty {
            return Ok(Expr::column(slot, column, ty, nullable));
        }
        let call = ExprKind::Call {
            function: &hidden::AVERAGE,
            arguments: vec![Expr::column(slot, column, held, nullable)],
        };
        Ok(Expr::new(call, ty, nullable))
    }

    /// What OVER says, with what it inherits.
    fn window_spec(&mut self, over: &ast::Over) -> Result<ast::Window> {
        let (name, spec) = match over {
            ast::Over::Named(name) => (name.clone(), self.named_window(name, 0)?),
            ast::Over::Spec(own) => (UNNAMED.into(), self.inherit(UNNAMED, own, 0)?),
        };
        self.scope().window_name = name;
        Ok(spec)
    }

    /// A window of the WINDOW clause, with what it inherits.
    fn named_window(&mut self, name: &str, depth: usize) -> Result<ast::Window> {
        let windows = &mut self.scope().named_windows;
        let count = windows.len();
        let named = windows
            .iter_mut()
            .find(|named| named.name.eq_ignore_ascii_case(name));
        let Some(named) = named else {
            return Err(Error::window_not_defined(name));
        };
        if depth > count {
            return Err(Error::window_circularity());
        }
        named.is_checked = true;
        let own = named.window.clone();
        self.inherit(name, &own, depth + 1)
    }

    /// A window with what it inherits from the one that it names.
    fn inherit(&mut self, name: &str, own: &ast::Window, depth: usize) -> Result<ast::Window> {
        let Some(base) = &own.base else {
            return Ok(own.clone());
        };
        let mut spec = self.named_window(base, depth)?;
        if !own.partition_by.is_empty() {
            return Err(Error::window_redefines_partition());
        }
        if spec.frame.is_some() {
            return Err(Error::window_no_inherit_frame(base.as_str()));
        }
        if !own.order_by.is_empty() && !spec.order_by.is_empty() {
            return Err(Error::window_redefines_order(name, base.as_str()));
        }
        if !own.order_by.is_empty() {
            spec.order_by = Arc::clone(&own.order_by);
        }
        if own.frame.is_some() {
            spec.frame = own.frame.clone();
        }
        Ok(spec)
    }

    /// Checks the windows of the WINDOW clause that no function is computed over.
    pub(super) fn check_named_windows(&mut self) -> Result<()> {
        let windows = &self.scope().named_windows;
        let twice = windows.iter().enumerate().find(|(at, named)| {
            let mut before = windows[..*at].iter();
            before.any(|other| other.name.eq_ignore_ascii_case(&named.name))
        });
        if let Some((_, named)) = twice {
            return Err(Error::window_duplicate_name(named.name.as_str()));
        }
        let unchecked = windows.iter().filter(|named| !named.is_checked);
        let names: Vec<ast::Ident> = unchecked.map(|named| named.name.clone()).collect();
        for name in names {
            let spec = self.window_spec(&ast::Over::Named(name))?;
            let depth = self.scopes.len() - 1;
            self.scopes[depth].windows_allowed = false;
            self.sorted_window(&spec)?;
            self.scopes[depth].windows_allowed = true;
        }
        Ok(())
    }

    /// The rows that belong together, their order, and the frame.
    fn sorted_window(
        &mut self,
        spec: &ast::Window,
    ) -> Result<(Vec<Expr>, Vec<SortKey>, WindowFrame)> {
        let ordered = spec.order_by.iter().map(|item| &item.expr);
        for expr in spec.partition_by.iter().chain(ordered) {
            self.check_no_position(expr)?;
        }
        let partition = self.exprs(spec.partition_by.iter())?;
        let mut order = Vec::with_capacity(spec.order_by.len());
        for item in spec.order_by.iter() {
            order.push(SortKey {
                expr: self.expr(&item.expr)?,
                descending: item.descending,
            });
        }
        let frame = self.frame(spec, &order)?;
        Ok((partition, order, frame))
    }

    #[allow(clippy::type_complexity)]
    fn window_parts(
        &mut self,
        call: &ast::WindowCall,
        spec: &ast::Window,
    ) -> Result<(WindowCall, bool, Vec<Expr>, Vec<SortKey>)> {
        let (partition, order, frame) = self.sorted_window(spec)?;
        let (kind, arguments, ty, nullable) = match &call.function {
            ast::WindowFunction::Aggregate(aggregate) => {
                if aggregate.distinct {
                    return Err(Error::not_supported_yet("<window function>(DISTINCT ..)"));
                }
                let parts = self.aggregate_parts(aggregate)?;
                let function = find_aggregate(aggregate_name(aggregate.function))?;
                (
                    WindowKind::Aggregate(function),
                    parts.arguments,
                    parts.ty,
                    parts.nullable,
                )
            }
            ast::WindowFunction::Function(function) => self.window_function(function)?,
        };
        Ok((
            WindowCall {
                kind,
                arguments,
                frame,
                ty: typing::slot_type(&ty),
            },
            nullable,
            partition,
            order,
        ))
    }

    #[allow(clippy::type_complexity)]
    fn window_function(
        &mut self,
        function: &ast::Function,
    ) -> Result<(WindowKind, Vec<Expr>, DataType, bool)> {
        let mut arguments = self.exprs(&function.args)?;
        let name = function.name.to_ascii_uppercase();
        let counts = |min: usize, max: usize, arguments: &[Expr]| match arguments.len() {
            count if count >= min && count <= max => Ok(()),
            _ => Err(Error::parameter_count(name.as_str())),
        };
        let first = |arguments: &[Expr]| {
            arguments
                .first()
                .map_or(DataType::Null, |argument| argument.ty.clone())
        };
        Ok(match name.as_str() {
            "ROW_NUMBER" | "RANK" | "DENSE_RANK" => {
                counts(0, 0, &arguments)?;
                let kind = match name.as_str() {
                    "ROW_NUMBER" => WindowKind::RowNumber,
                    "RANK" => WindowKind::Rank,
                    _ => WindowKind::DenseRank,
                };
                (kind, arguments, DataType::BIGINT_UNSIGNED, false)
            }
            "PERCENT_RANK" | "CUME_DIST" => {
                counts(0, 0, &arguments)?;
                let kind = if name == "CUME_DIST" {
                    WindowKind::CumeDist
                } else {
                    WindowKind::PercentRank
                };
                (kind, arguments, DataType::DOUBLE, false)
            }
            "NTILE" => {
                counts(1, 1, &arguments)?;
                check_same_for_all(&arguments, 0, "ntile")?;
                (
                    WindowKind::Ntile,
                    arguments,
                    DataType::BIGINT_UNSIGNED,
                    true,
                )
            }
            "LAG" | "LEAD" => {
                counts(1, 3, &arguments)?;
                check_same_for_all(&arguments, 1, &name.to_ascii_lowercase())?;
                let kind = if name == "LAG" {
                    WindowKind::Lag
                } else {
                    WindowKind::Lead
                };
                let ty = match arguments.get(2) {
                    None => first(&arguments),
                    Some(default) => typing::merged_type(
                        &[&arguments[0], default],
                        &name,
                        self.session().collation,
                    )?,
                };
                if arguments.len() == 3 {
                    let default = arguments.remove(2);
                    let value = arguments.remove(0);
                    arguments.insert(0, typing::coerce(value, &ty));
                    arguments.push(typing::coerce(default, &ty));
                }
                (kind, arguments, ty, true)
            }
            "FIRST_VALUE" | "LAST_VALUE" => {
                counts(1, 1, &arguments)?;
                let kind = if name == "FIRST_VALUE" {
                    WindowKind::FirstValue
                } else {
                    WindowKind::LastValue
                };
                let ty = first(&arguments);
                (kind, arguments, ty, true)
            }
            "NTH_VALUE" => {
                counts(2, 2, &arguments)?;
                check_same_for_all(&arguments, 1, "nth_value")?;
                let ty = first(&arguments);
                (WindowKind::NthValue, arguments, ty, true)
            }
            _ => return Err(Error::wrong_usage("OVER", name)),
        })
    }

    fn frame(&mut self, spec: &ast::Window, order: &[SortKey]) -> Result<WindowFrame> {
        let Some(frame) = &spec.frame else {
            // Up to the current row and its peers where there is an order, else the whole
            // partition.
            let end = if order.is_empty() {
                FrameBound::UnboundedFollowing
            } else {
                FrameBound::CurrentRow
            };
            return Ok(WindowFrame {
                rows: false,
                start: FrameBound::UnboundedPreceding,
                end,
            });
        };
        let rows = match frame.unit {
            ast::FrameUnit::Rows => true,
            ast::FrameUnit::Range => false,
            ast::FrameUnit::Groups => return Err(Error::not_supported_yet("GROUPS")),
        };
        let window = self.scope().window_name.clone();
        check_frame(&window, frame)?;
        let start = self.frame_bound(&frame.start, rows, order)?;
        let end = match &frame.end {
            None => FrameBound::CurrentRow,
            Some(end) => self.frame_bound(end, rows, order)?,
        };
        Ok(WindowFrame { rows, start, end })
    }

    /// In a RANGE frame the bound is the order's value that far away from the current row's.
    fn frame_bound(
        &mut self,
        bound: &ast::FrameBound,
        rows: bool,
        order: &[SortKey],
    ) -> Result<FrameBound> {
        let window = self.scope().window_name.clone();
        let mut distance = |amount: &ast::Expr,
                            unit: Option<ast::IntervalUnit>,
                            preceding: bool|
         -> Result<Box<Expr>> {
            self.check_distance(amount)?;
            let amount = self.expr(amount)?;
            if rows {
                return Ok(Box::new(amount));
            }
            let [key] = order else {
                return Err(Error::window_range_order(window.as_str()));
            };
            let kind = typing::class(&key.expr.ty);
            match unit {
                None if kind.is_temporal() => {
                    return Err(Error::window_frame_temporal(window.as_str()));
                }
                Some(_) if kind.is_number() => {
                    return Err(Error::window_frame_numeric(window.as_str()));
                }
                _ if kind.is_temporal() || kind.is_number() || kind == typing::Class::Null => {}
                _ => return Err(Error::window_range_order(window.as_str())),
            }
            let backward = preceding != key.descending;
            let value = key.expr.clone();
            let bound = match unit {
                None => {
                    let op = if backward {
                        porpoise_expr::Arithmetic::Subtract
                    } else {
                        porpoise_expr::Arithmetic::Add
                    };
                    let signed = typing::coerce(value, &DataType::BIGINT);
                    operate::arithmetic(
                        op,
                        if key.expr.ty.is_unsigned() {
                            signed
                        } else {
                            key.expr.clone()
                        },
                        amount,
                        self.session(),
                    )?
                }
                Some(unit) => {
                    let arguments = vec![value, amount, typing::unit_literal(unit)];
                    super::expr::call_function(
                        if backward { "DATE_SUB" } else { "DATE_ADD" },
                        arguments,
                        self.session(),
                    )?
                }
            };
            Ok(Box::new(bound))
        };
        Ok(match bound {
            ast::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            ast::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
            ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::FrameBound::Preceding(amount, unit) => {
                FrameBound::Preceding(distance(amount, *unit, true)?)
            }
            ast::FrameBound::Following(amount, unit) => {
                FrameBound::Following(distance(amount, *unit, false)?)
            }
        })
    }

    /// A whole number names no item of the select list here, as it does in the query's ORDER BY.
    fn check_no_position(&mut self, expr: &ast::Expr) -> Result<()> {
        match self.literal_value(expr) {
            Some(Value::Int(_) | Value::UInt(_)) => {
                Err(Error::window_position(self.scope().window_name.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// A frame's distance must be a number and not negative, as far as its text tells.
    fn check_distance(&mut self, amount: &ast::Expr) -> Result<()> {
        let window = self.scope().window_name.clone();
        let Some(value) = self.literal_value(amount) else {
            return match amount {
                ast::Expr::Literal(ast::Literal::Null) => {
                    Err(Error::window_frame_illegal(window.as_str()))
                }
                _ => Ok(()),
            };
        };
        let bound = self.expr(amount)?;
        self.fix_parameters(&bound);
        let is_number = match &value {
            Value::Null => false,
            Value::Text(text) => {
                let (number, loss) = convert::text_to_double(text.as_bytes());
                loss != Loss::NotANumber && number >= 0.0
            }
            _ => true,
        };
        match is_number {
            true => Ok(()),
            false => Err(Error::window_frame_illegal(window.as_str())),
        }
    }

    pub(super) fn finish_windows(&mut self, drafts: Vec<WindowDraft>) -> Vec<Window> {
        let window = |draft: WindowDraft| Window {
            slot: draft.slot,
            partition: draft.partition,
            order: draft.order,
            functions: draft.functions,
        };
        drafts.into_iter().map(window).collect()
    }
}
